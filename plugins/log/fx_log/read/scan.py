"""The hot loops: the bytes of logs to frames, and frames to raw columns.

Framing is each format's own (``frame_log``, ``frame_ring``, ``frame_stream``); ``decode`` takes
the frames of structured records, whatever they stood in, and ``decode_packets`` those of legacy
packets. All can stop and go on at any record: their state lies in arrays that the caller keeps.
They are written without looking at ``records.py``, which decodes the same bytes for clarity; tests
hold the two against each other. Words are int64 (their bits as they are), so that the plain-Python
body and the compiled one compute the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from fx_log.severity import Level
from fxframework.io.jit import kernel
from fxframework.model.strings import intern_words, utf8_valid

# Arrays of shape (n,); the name says the dtype, which numba checks.
I64 = NDArray[Any]
I32 = NDArray[Any]
U32 = NDArray[Any]
U8 = NDArray[Any]

# --- Codes that the decoder interns first, so that they are the same in every capture -----------
(
    EMPTY, PID, TID, TAG, MESSAGE, FILE, LINE, NUM_DROPPED, DROPPED_LOGS, VERBOSITY, ROLLED_OUT,
    MONIKER, URL, PRINTF, OWN_MONIKER, OWN_URL, OWN_ROLLED_OUT, UNKNOWN,
) = range(18)  # fmt: skip
WELL_KNOWN = (
    b"", b"pid", b"tid", b"tag", b"message", b"file", b"line", b"num_dropped", b"dropped_logs",
    b"verbosity", b"rolled_out", b"moniker", b"url", b"printf", b"$__moniker", b"$__url",
    b"$__rolled_out", b"UNKNOWN",
)  # fmt: skip
LEVEL_NAMES = tuple(level.name.encode() for level in Level)
"""Interned behind WELL_KNOWN, in this order."""
WORD_PID, WORD_TID, WORD_TAG, WORD_MESSAGE = (
    int.from_bytes(name, "little") for name in (b"pid", b"tid", b"tag", b"message")
)

# --- Argument types, as layout.ArgType has them --------------------------------------------------
NULL, INT64, UINT64, DOUBLE, STRING, BOOL = 0, 3, 4, 5, 6, 9

# --- Bits of `given`; the last two never leave the reader -----------------------------------------
GIVEN_MESSAGE, GIVEN_PID, GIVEN_TID, GIVEN_LINE, HAS_VERBOSITY, IS_PRINTF = 1, 2, 4, 8, 64, 128

# --- Scalars of the state ------------------------------------------------------------------------
POS, RECORD, N_LOGS, N_ARGS, N_TAGS, N_POSITIONAL, T_LOGS = 0, 1, 2, 3, 4, 5, 6
LAST_NS, FIRST_NS, FINAL_NS, TYPES_SEEN, ROOM_STRINGS, ROOM_FINDINGS = 7, 8, 9, 10, 11, 12
DROPPED_LOW, DROPPED_HIGH, ROLLED_LOW, ROLLED_HIGH = 13, 14, 15, 16
MAX_RECORD, SUFFIXED, WITH_PRINTF, WITH_LIMITS, ERA_2022 = 17, 18, 19, 20, 21
BASE, WRAP, CAPACITY, ENTRIES, T_ARGS, T_TAGS, N_RARE, SEEN_AHEAD = 22, 23, 24, 25, 26, 27, 28, 29
SCALARS = 32
"""BASE, WRAP, CAPACITY: word w stands at byte 8w + BASE of the file; from WRAP on CAPACITY less."""

# --- Columns of `Rare` ----------------------------------------------------------------------------
DROPPED, ROLLED, VERBOSE = 0, 1, 2

# --- Kinds of records, as framing counts them -----------------------------------------------------
(
    KIND_LOG, KIND_ATTRIBUTION, KIND_PADDING, KIND_DAMAGED, KIND_RING_HEADER, KIND_RING_ENTRY,
    KIND_PACKET, KIND_STREAM_HEADER,
) = range(8)  # fmt: skip
KIND_NAMES = (
    "log", "attribution", "padding", "damaged", "ring_header", "ring_entry", "legacy_packet",
    "stream_header",
)  # fmt: skip

FINDING_FIELDS = 4
CODES = 1000
"""Findings have numbers below this."""
RECORD_FINDINGS = 12
WORD_FINDINGS = 8
"""Findings that a record can have: so many, and so many a word."""
ENTRY_WORDS = 8192
"""Words of the largest entry of a ring."""
PACKET_TAGS = 5
PACKET_STRINGS = 16
"""More than a packet enters: strings, and their words by its square."""
DEBUG, INFO = 0x20, 0x30
AHEAD = 64
"""Words that framing looks ahead."""
MET = 1 << 10
"""Places for strings met lately."""
NOT_ASCII = -9187201950435737472
SCATTER = -7046029254386353131
"""An odd factor whose products differ most in their high bits."""
LATEST = 0x7FFFFFFFFFFFFFFF
SIGN = -9223372036854775808
LOW32 = 0xFFFFFFFF
IDENT = 0x7FFFFFFF
"""Of a tag: the component's id."""


class Frames(NamedTuple):
    """Records to decode: ``size`` words from word ``start``, or in packets bytes from a byte."""

    start: I64
    size: I64
    offset: I64
    """Of the record, in the file."""
    record: I64
    """Its index."""
    tag: I64
    suffix: I64
    """Word of its attribution; -1 where it has none."""


class Logs(NamedTuple):
    """Raw log columns; the message is bytes ``start`` to ``start + length`` of the data."""

    offset: I64
    ns: I64
    start: I64
    length: U32
    severity: U8
    given: U8
    pid: I64
    tid: I64
    tags: I32
    component: I32
    url: I32
    file: I32
    line: U32
    tag: I64


class Rare(NamedTuple):
    """What few logs have: a value in one of the columns DROPPED, ROLLED and VERBOSE."""

    row: I64
    """Row of `logs`."""
    column: U8
    value: I64


class Args(NamedTuple):
    """Argument columns; ``split`` makes of ``value`` what the table shows."""

    type: U8
    name: I32
    parent: I64
    """Row of `logs`."""
    offset: I64
    value: I64
    """The integer, the bits of the double, or the code of the string or bytes."""


class Tags(NamedTuple):
    """Tags, each on its own."""

    parent: I64
    offset: I64
    name: I32


class Positional(NamedTuple):
    """Values for a structured printf's format."""

    parent: I64
    """Row of `logs`, counted from the first one of these columns."""
    type: U8
    value: I64


class Components(NamedTuple):
    """An open-addressed map of tags to what manifests name; ``used[0]`` of them are there."""

    state: U8
    """0 free, 1 not named (which was reported), 2 named."""
    tag: I64
    moniker: I32
    url: I32
    used: I64


class Notes(NamedTuple):
    """Where findings go."""

    findings: I64
    """[code, offset, record, value] of each finding kept."""
    counts: I64
    """[findings kept, limit per code], then a count per code."""


class Texts(NamedTuple):
    """What interning takes beside the pool, and what is counted by string."""

    valid: U8
    """By string code: 1 where it is UTF-8."""
    met: I64
    """Strings of up to 16 bytes met lately, all of them UTF-8: two words, the bytes, the code."""
    scratch: I64
    bytes: U8
    """The same memory as ``scratch``."""
    by_component: I64
    """Logs by the code of their component."""
    by_tag: I64
    """Logs by the code of their tag."""


class State(NamedTuple):
    """What the kernels carry from record to record."""

    scalars: I64
    kinds: I64
    severities: I64
    """Logs by severity byte."""
    notes: Notes
    texts: Texts


# --- Small helpers -------------------------------------------------------------------------------


@kernel
def note(notes, code, offset, record, value):  # type: ignore[no-untyped-def]
    """Report a finding: counted always, kept while its code is under the limit."""
    counts = notes.counts
    counts[code + 2] += 1
    if counts[code + 2] <= counts[1]:
        row = counts[0] * 4
        notes.findings[row] = code
        notes.findings[row + 1] = offset
        notes.findings[row + 2] = record
        notes.findings[row + 3] = value
        counts[0] += 1


@kernel
def ascii_words(words, start, end):  # type: ignore[no-untyped-def]
    """Whether words are ASCII, and what pads them is."""
    every = 0
    for at in range(start, end):
        every |= words[at]
    return every & NOT_ASCII == 0


@kernel
def met_lately(words, start, nbytes, met):  # type: ignore[no-untyped-def]
    """Code of the 1 to 16 bytes at word ``start``, where they were met lately; else - 1 - place.

    The place is where ``recall`` keeps them. A kernel that hands over few arrays is quickly called.
    """
    first = words[start]
    second = 0
    if nbytes < 8:
        first &= (1 << (8 * nbytes)) - 1
    elif nbytes > 8:
        second = words[start + 1]
        if nbytes < 16:
            second &= (1 << (8 * nbytes - 64)) - 1
    mixed = (first ^ (second >> 5) ^ (second << 7 & LOW32) ^ nbytes) * SCATTER
    place = ((mixed >> 54) & (MET - 1)) * 4
    if met[place] == first and met[place + 1] == second and met[place + 2] == nbytes:
        return met[place + 3]
    return -1 - place


@kernel
def recall(words, data, start, nbytes, texts, pool):  # type: ignore[no-untyped-def]
    """Code of the bytes at word ``start``, which are entered where they are new.

    ``data`` are the bytes of ``words``.
    """
    if nbytes == 0:
        return EMPTY
    known = pool.used[0]
    code = intern_words(words, start, nbytes, pool)
    if code >= known:
        texts.valid[code] = 1 if utf8_valid(data, 8 * start, nbytes) else 0
    if nbytes <= 16 and texts.valid[code]:
        place = -1 - met_lately(words, start, nbytes, texts.met)
        if place >= 0:
            at = pool.starts[code]
            texts.met[place] = pool.words[at]
            texts.met[place + 1] = pool.words[at + 1] if nbytes > 8 else 0
            texts.met[place + 2] = nbytes
            texts.met[place + 3] = code
    return code


@kernel
def find_component(tag, components):  # type: ignore[no-untyped-def]
    """Place of a tag, or the free one where it belongs."""
    mask = len(components.state) - 1
    slot = ((tag * SCATTER) >> 32) & mask
    while components.state[slot] and components.tag[slot] != tag:
        slot = (slot + 1) & mask
    return slot


@kernel
def refill_components(old, new):  # type: ignore[no-untyped-def]
    """Enter all of ``old`` into the empty, larger ``new``."""
    for slot in range(len(old.state)):
        if old.state[slot]:
            place = find_component(old.tag[slot], new)
            new.state[place] = old.state[slot]
            new.tag[place] = old.tag[slot]
            new.moniker[place] = old.moniker[slot]
            new.url[place] = old.url[slot]
            new.used[0] += 1


@kernel
def joined(first, count, tags, texts, pool):  # type: ignore[no-untyped-def]
    """Code of the names of ``count`` tags from row ``first``, joined by commas."""
    total = 0
    for row in range(first, first + count):
        if row > first:
            texts.bytes[total] = 44
            total += 1
        code = tags.name[row]
        start = pool.starts[code]
        for index in range(pool.lengths[code]):
            shift = 8 * (index & 7)
            texts.bytes[total] = (pool.words[start + (index >> 3)] >> shift) & 0xFF
            total += 1
    return recall(texts.scratch, texts.bytes, 0, total, texts, pool)


@kernel
def rare_row(  # type: ignore[no-untyped-def]
    row, ns, dropped, rolled_out, verbosity, offset, record, rare, scalars, notes
):
    """Take in what few logs have: a time before the last one's, lost logs, a verbosity."""
    if ns < scalars[LAST_NS]:
        note(notes, 203, offset, record, scalars[LAST_NS])
    scalars[FIRST_NS] = min(scalars[FIRST_NS], ns)
    if dropped != 0 or rolled_out != 0:
        note(notes, 206, offset, record, dropped or rolled_out)
        scalars[DROPPED_LOW] += dropped & LOW32
        scalars[DROPPED_HIGH] += (dropped >> 32) & LOW32
        scalars[ROLLED_LOW] += rolled_out & LOW32
        scalars[ROLLED_HIGH] += (rolled_out >> 32) & LOW32
    place = scalars[N_RARE]
    for column in range(3):
        value = verbosity
        if column == DROPPED:
            value = dropped
        elif column == ROLLED:
            value = rolled_out
        if value:
            rare.row[place] = row
            rare.column[place] = column
            rare.value[place] = value
            place += 1
    scalars[N_RARE] = place


@kernel
def plausible(word, left):  # type: ignore[no-untyped-def]
    """Whether a word looks like the header of a record, ``left`` words before the end."""
    size = (word >> 4) & 0xFFF
    return word & 15 == 9 and 2 <= size <= left and (word >> 48) & 0xFF == 0 and word >> 56 > 0


@kernel
def sound_after(words, start, total):  # type: ignore[no-untyped-def]
    """The first word from ``start`` at which plausible records follow each other, or ``total``.

    Three of them, or fewer that end where the file does.
    """
    for begin in range(start, total):
        at = begin
        good = 0
        while good < 3 and at < total and plausible(words[at], total - at):
            at += (words[at] >> 4) & 0xFFF
            good += 1
        if good == 3 or (good > 0 and at == total):
            return begin
    return total


@kernel
def frame_log(words, nbytes, frames, state):  # type: ignore[no-untyped-def]
    """Frame the records of a file of ``nbytes`` from where it stands; gives how many there are.

    Stops where there is no room for another one, or for findings.
    """
    scalars = state.scalars
    notes = state.notes
    kinds = state.kinds
    total = len(words)
    at = scalars[POS]
    record = scalars[RECORD]
    count = 0
    ahead = 0
    while 8 * at < nbytes and count < len(frames.start):
        if notes.counts[0] + RECORD_FINDINGS > scalars[ROOM_FINDINGS]:
            break
        offset = 8 * at
        if at == total:
            note(notes, 4, offset, record, nbytes - offset)
            kinds[KIND_DAMAGED] += 1
            record += 1
            at += 1
            break
        word = words[at]
        # What lies ahead is asked for early, as the next header is only found by this one.
        ahead ^= words[min(at + AHEAD, total - 1)]
        if word == 0:
            until = at + 1
            while until < total and words[until] == 0:
                until += 1
            note(notes, 6, offset, record, until - at)
            kinds[KIND_PADDING] += 1
            record += 1
            at = until
            continue
        size = (word >> 4) & 0xFFF
        code = 0
        if word & 15 != 9:
            code = 1
        elif at + 1 == total:
            code = 5
        elif size < 2:
            code = 2
        elif size > total - at:
            code = 3
        if code:
            note(notes, code, offset, record, word & 15 if code == 1 else size)
            kinds[KIND_DAMAGED] += 1
            record += 1
            at = sound_after(words, at + 1, total)
            if at == total:
                at = total + 1  # the odd bytes belong to it
            continue
        if scalars[MAX_RECORD] and 8 * size > scalars[MAX_RECORD]:
            note(notes, 8, offset, record, 8 * size)
            kinds[KIND_DAMAGED] += 1
            record += 1
            at += size
            continue
        frames.start[count] = at
        frames.size[count] = size
        frames.offset[count] = offset
        frames.record[count] = record
        frames.tag[count] = (word >> 16) & LOW32
        frames.suffix[count] = -1
        kinds[KIND_LOG] += 1
        record += 1
        at += size
        if scalars[SUFFIXED] and at + 2 <= total:
            moniker = words[at] & LOW32
            url = (words[at] >> 32) & LOW32
            body = 2 + ((moniker + 7) >> 3) + ((url + 7) >> 3)
            if body > total - at:
                note(notes, 210, 8 * at, record - 1, 8 * body)
            else:
                frames.suffix[count] = at
                kinds[KIND_ATTRIBUTION] += 1
                record += 1
                at += body
        count += 1
    scalars[POS] = at
    scalars[RECORD] = record
    scalars[SEEN_AHEAD] = ahead
    return count


@kernel
def frame_ring(words, used, frames, state):  # type: ignore[no-untyped-def]
    """Frame the entries in the first ``used`` words; gives how many hold a record.

    Stops where there is no room for another one, or for findings.
    """
    scalars = state.scalars
    notes = state.notes
    at = scalars[POS]
    record = scalars[RECORD]
    count = 0
    while at < used and count < len(frames.start):
        if notes.counts[0] + RECORD_FINDINGS > scalars[ROOM_FINDINGS]:
            break
        offset = 8 * at + scalars[BASE]
        if at >= scalars[WRAP]:
            offset -= scalars[CAPACITY]
        length = 0
        if used - at >= 2:
            length = words[at + 1]
        size = 2 + (length >> 3) + (1 if length & 7 else 0)
        if used - at < 2 or length < 0 or size > used - at or size > ENTRY_WORDS:
            note(notes, 802 if used - at < 2 else 803, offset, record, length)
            state.kinds[KIND_DAMAGED] += 1
            record += 1
            at = used
            break
        start = at + 2
        end = at + size
        words_in = 0
        if length >= 16 and words[start] & 15 == 9:
            words_in = (words[start] >> 4) & 0xFFF
        if words_in < 2 or 8 * words_in > length:
            note(notes, 805, offset, record, length)
        else:
            if 8 * words_in < length:
                note(notes, 806, offset, record, length - 8 * words_in)
            frames.start[count] = start
            frames.size[count] = words_in
            frames.offset[count] = offset
            frames.record[count] = record
            frames.tag[count] = words[at]
            frames.suffix[count] = -1
            count += 1
        if length & 7 and words[end - 1] >> (8 * (length & 7)):
            note(notes, 807, offset, record, 0)
        state.kinds[KIND_RING_ENTRY] += 1
        record += 1
        at = end
    scalars[POS] = at
    scalars[RECORD] = record
    return count


@kernel
def misplaced(first, end, args, record, notes):  # type: ignore[no-untyped-def]
    """Report rows of `args` that would be attribution, were they at the end of their record."""
    for row in range(first, end):
        note(notes, 207, args.offset[row], record, args.name[row])


@kernel
def forget_meaning(kept, otherwise, twice, elsewhere, notes):  # type: ignore[no-untyped-def]
    """Take back what was found about the meaning of a manifest's arguments: it has another.

    ``kept`` findings had been kept before, and so many had the codes 201, 202 and 207.
    """
    counts = notes.counts
    end = kept
    for row in range(kept, counts[0]):
        code = notes.findings[4 * row]
        if code != 201 and code != 202 and code != 207:
            for field in range(4):
                notes.findings[4 * end + field] = notes.findings[4 * row + field]
            end += 1
    counts[0] = end
    counts[201 + 2] = otherwise
    counts[202 + 2] = twice
    counts[207 + 2] = elsewhere


@kernel
def manifest(header, first, end, offset, record, args, components, notes):  # type: ignore[no-untyped-def]
    """Take in what the arguments of a manifest name, which are rows ``first`` to ``end``."""
    moniker = -1
    url = -1
    for row in range(first, end):
        if args.type[row] == STRING:
            if args.name[row] == MONIKER:
                moniker = args.value[row]
            elif args.name[row] == URL:
                url = args.value[row]
    if moniker < 0 or url < 0:
        note(notes, 205, offset, record, 0)
        return
    tag = (header >> 16) & IDENT
    slot = find_component(tag, components)
    if components.state[slot] == 0:
        components.tag[slot] = tag
        components.used[0] += 1
    components.state[slot] = 2
    components.moniker[slot] = moniker
    components.url[slot] = url


@kernel
def decode(  # type: ignore[no-untyped-def]
    words, data, frames, first, count, logs, rare, args, tags, positional, components, state, pool
):
    """Decode frames ``first`` to ``count`` as far as there is room; gives the first one left.

    ``data`` are the bytes of ``words``.
    """
    scalars = state.scalars
    notes = state.notes
    texts = state.texts
    met = texts.met
    by_tag = texts.by_tag
    by_component = texts.by_component
    severities = state.severities
    last_ident = -1  # whose component is known
    last_moniker = -1
    last_url = -1
    n_logs = scalars[N_LOGS]
    n_args = scalars[N_ARGS]
    n_tags = scalars[N_TAGS]
    n_positional = scalars[N_POSITIONAL]
    types = scalars[TYPES_SEEN]
    base = scalars[T_LOGS] - n_logs
    index = first
    while index < count:
        start = frames.start[index]
        size = frames.size[index]
        end = start + size
        suffix = frames.suffix[index]
        more = size
        if suffix >= 0:
            lengths = words[suffix]
            more += 2 + ((lengths & LOW32) >> 3) + ((lengths >> 35) & (LOW32 >> 3))
        if (
            n_logs >= len(logs.ns)
            or scalars[N_RARE] + 3 > len(rare.row)
            or n_args + size > len(args.type)
            or n_tags + size > len(tags.name)
            or (scalars[WITH_PRINTF] and n_positional + size > len(positional.type))
            or pool.used[0] + size + 4 > scalars[ROOM_STRINGS]
            or pool.used[1] + size + more + 4 > len(pool.words)
            or notes.counts[0] + WORD_FINDINGS * size + RECORD_FINDINGS > scalars[ROOM_FINDINGS]
            or 2 * components.used[0] + 2 > len(components.state)
        ):
            break
        record = frames.record[index]
        offset = frames.offset[index]
        spot = 8 * start + scalars[BASE]  # in a ring it stands within an entry
        if start >= scalars[WRAP]:
            spot -= scalars[CAPACITY]
        tag = frames.tag[index]
        index += 1

        word = words[start]
        control = (word >> 47) & 1
        # What a manifest, should it be one, takes back.
        kept = notes.counts[0]
        otherwise = notes.counts[201 + 2]
        twice = notes.counts[202 + 2]
        elsewhere = notes.counts[207 + 2]
        severity = (word >> 56) & 0xFF
        ns = words[start + 1]
        odd = False
        unpadded = False
        if (word >> 48) & 0xFF:
            note(notes, 101, spot, record, word)
            odd = True
        if (word >> 16) & LOW32 and notes.counts[105 + 2] == 0:
            note(notes, 105, spot, record, (word >> 16) & LOW32)
        if severity & 15 or severity < 0x10 or severity > 0x60:
            note(notes, 106, spot, record, severity)

        row = base + n_logs
        first_arg = n_args
        first_tag = n_tags
        first_positional = n_positional
        run = -1  # the row of `args` at which what may be attribution at the end begins
        printing = False
        given = 0
        pid = 0
        tid = 0
        file = -1
        line = 0
        verbosity = 0
        dropped = 0
        message_at = 0
        message_bytes = 0
        messages = 0
        lost = 0
        printed = False
        known = 0  # bits of well-known arguments met so far, by their codes
        nargs = 0
        at = start + 2
        while at < end:
            word = words[at]
            here = 8 * at + scalars[BASE]
            if at >= scalars[WRAP]:
                here -= scalars[CAPACITY]
            kind = word & 15
            size_words = (word >> 4) & 0xFFF
            ref = (word >> 16) & 0xFFFF
            inner = at + 1
            failed = 0
            nargs += 1
            if not odd and word >> 32:
                # From 32 on all is reserved but a string's reference and the bit of a bool.
                if word >> (48 if kind == STRING else 33 if kind == BOOL else 32):
                    note(notes, 101, here, record, word)
                    odd = True

            if kind > BOOL:
                note(notes, 113, here, record, kind)
            name = EMPTY
            name_bytes = 0
            if ref >= 0x8000:
                name_bytes = ref & 0x7FFF
                inner += (name_bytes + 7) >> 3
                if inner > end:
                    failed = 114
                elif name_bytes == 0:
                    note(notes, 117, here, record, 0)
                else:
                    if name_bytes & 7 and not unpadded:
                        if words[inner - 1] >> (8 * (name_bytes & 7)):
                            note(notes, 102, here, record, 0)
                            unpadded = True
                    if name_bytes == 3 and words[at + 1] & 0xFFFFFF == WORD_PID:
                        name = PID
                    elif name_bytes == 3 and words[at + 1] & 0xFFFFFF == WORD_TID:
                        name = TID
                    elif name_bytes == 3 and words[at + 1] & 0xFFFFFF == WORD_TAG:
                        name = TAG
                    elif name_bytes == 7 and words[at + 1] & 0xFFFFFFFFFFFFFF == WORD_MESSAGE:
                        name = MESSAGE
                        messages += 1
                    else:
                        name = -1
                        if name_bytes <= 16:
                            name = met_lately(words, at + 1, name_bytes, met)
                        if name < 0:
                            name = recall(words, data, at + 1, name_bytes, texts, pool)
                            if not texts.valid[name]:
                                note(notes, 107, here, record, name)
            elif ref:
                failed = 109
            if name == EMPTY and kind != NULL and not failed:
                note(notes, 118, here, record, 0)

            value = 0
            value_at = inner
            value_bytes = 0
            if failed:
                pass
            elif kind == UINT64 or kind == INT64 or kind == DOUBLE:
                if inner >= end:
                    failed = 115
                else:
                    value = words[inner]
                    inner += 1
            elif kind == STRING:
                ref = (word >> 32) & 0xFFFF
                if ref >= 0x8000:
                    value_bytes = ref & 0x7FFF
                    inner += (value_bytes + 7) >> 3
                    if inner > end:
                        failed = 114
                    elif value_bytes == 0:
                        note(notes, 117, here, record, 0)
                    elif value_bytes & 7 and not unpadded:
                        if words[inner - 1] >> (8 * (value_bytes & 7)):
                            note(notes, 102, here, record, 0)
                            unpadded = True
                elif ref:
                    failed = 109
                if not failed:
                    if name == MESSAGE:
                        if not ascii_words(words, value_at, inner):
                            if not utf8_valid(data, 8 * value_at, value_bytes):
                                note(notes, 108 if messages == 1 else 107, here, record, 0)
                    elif value_bytes:
                        value = -1
                        if value_bytes <= 16:
                            value = met_lately(words, value_at, value_bytes, met)
                        if value < 0:
                            value = recall(words, data, value_at, value_bytes, texts, pool)
                            if not texts.valid[value]:
                                note(notes, 107, here, record, value)
            elif kind == BOOL:
                value = (word >> 32) & 1
            elif kind == NULL:
                note(notes, 110, here, record, 0)
            elif inner - at <= size_words <= end - at:
                inner = at + size_words
                value = recall(words, data, value_at, 8 * (inner - value_at), texts, pool)
                if kind < BOOL:
                    note(notes, 112, here, record, kind)
            else:
                failed = 116
            if failed:
                note(notes, failed, here, record, kind)
                if run >= 0:
                    misplaced(run, n_args, args, record, notes)
                    run = -1
                at += size_words if 1 <= size_words <= end - at else end - at
                continue
            if size_words != inner - at and word:
                note(notes, 104, here, record, size_words)
            if name_bytes > 256 and scalars[WITH_LIMITS]:
                note(notes, 302, here, record, name_bytes)

            # What it means. Whatever is left is an ordinary key.
            at = inner
            if OWN_MONIKER <= name <= OWN_ROLLED_OUT and kind == (
                UINT64 if name == OWN_ROLLED_OUT else STRING
            ):
                if run < 0:
                    run = n_args
            else:
                if run >= 0:
                    misplaced(run, n_args, args, record, notes)
                    run = -1
                if OWN_MONIKER <= name <= OWN_ROLLED_OUT:
                    note(notes, 207, here, record, name)
            if printing:
                if name == EMPTY:
                    positional.parent[n_positional] = row
                    positional.type[n_positional] = kind
                    positional.value[n_positional] = value
                    n_positional += 1
                    printed = True
                    continue
                if printed:
                    printing = False
            if name == EMPTY:
                pass
            elif name <= VERBOSITY:
                wanted = UINT64
                if name == TAG or name == MESSAGE or name == FILE:
                    wanted = STRING
                elif name == VERBOSITY:
                    wanted = INT64
                if kind == wanted:
                    if name == TAG:
                        tags.parent[n_tags] = row
                        tags.offset[n_tags] = here
                        tags.name[n_tags] = value
                        n_tags += 1
                        continue
                    if name == NUM_DROPPED or name == DROPPED_LOGS:
                        if value:
                            dropped = value
                        continue
                    if (known >> name) & 1:
                        note(notes, 202, here, record, name)
                    known |= 1 << name
                    if name == PID:
                        pid = value
                    elif name == TID:
                        tid = value
                    elif name == MESSAGE:
                        message_at = 8 * value_at
                        message_bytes = value_bytes
                    elif name == FILE:
                        file = value
                    elif name == LINE:
                        line = value
                    else:
                        verbosity = value
                    continue
                note(notes, 201, here, record, name)
            elif name == ROLLED_OUT:
                if control and kind == UINT64:
                    known |= 1 << ROLLED_OUT
                    lost = value
                    continue
            elif name == PRINTF and kind == UINT64 and value == 0:
                if scalars[WITH_PRINTF] and not given:
                    given = IS_PRINTF
                    printing = True
                    continue
            types |= 1 << kind
            args.type[n_args] = kind
            args.name[n_args] = name
            args.parent[n_args] = row
            args.offset[n_args] = here
            args.value[n_args] = value
            n_args += 1
        if scalars[WITH_LIMITS] and nargs > 15:
            note(notes, 301, spot, record, nargs)

        # Whose it is.
        if control and not (known >> ROLLED_OUT) & 1:
            forget_meaning(kept, otherwise, twice, elsewhere, notes)
            manifest(words[start], first_arg, n_args, spot, record, args, components, notes)
            n_args = first_arg
            n_tags = first_tag
            n_positional = first_positional
            last_ident = -1
            continue
        moniker = -1
        url = -1
        rolled_out = 0
        if suffix >= 0:
            lengths = words[suffix]
            length = lengths & LOW32
            rolled_out = words[suffix + 1]
            moniker = recall(words, data, suffix + 2, length, texts, pool)
            url_at = suffix + 2 + ((length + 7) >> 3)
            url = recall(words, data, url_at, (lengths >> 32) & LOW32, texts, pool)
        if run >= 0:
            for place in range(run, n_args):
                name = args.name[place]
                value = args.value[place]
                if name == OWN_MONIKER:
                    moniker = value
                elif name == OWN_URL:
                    url = value
                else:
                    rolled_out = value
            n_args = run
        if control:
            rolled_out = lost
        if moniker < 0:
            ident = tag & IDENT
            if ident != last_ident or control:
                slot = find_component(ident, components)
                last_ident = -1 if control else ident
                last_moniker = -1
                last_url = -1
                if components.state[slot] == 2:
                    last_moniker = components.moniker[slot]
                    last_url = components.url[slot]
                elif control or (ident and not scalars[ENTRIES]):
                    last_moniker = UNKNOWN
                    last_url = EMPTY
                    if not control and components.state[slot] == 0:
                        note(notes, 204, offset, record, ident)
                        components.state[slot] = 1
                        components.tag[slot] = ident
                        components.used[0] += 1
            moniker = last_moniker
            if url < 0:
                url = last_url
        all_tags = -1
        if n_tags > first_tag:
            all_tags = tags.name[first_tag]
            if n_tags > first_tag + 1:
                all_tags = joined(first_tag, n_tags - first_tag, tags, texts, pool)
            for place in range(first_tag, n_tags):
                by_tag[tags.name[place]] += 1
        given |= (known >> MESSAGE) & 1
        given |= ((known >> PID) & 1) << 1
        given |= ((known >> TID) & 1) << 2
        given |= ((known >> LINE) & 1) << 3
        shown = severity
        if (known >> VERBOSITY) & 1:
            given |= HAS_VERBOSITY
            if scalars[ERA_2022]:
                shown = DEBUG
        logs.offset[n_logs] = offset
        logs.ns[n_logs] = ns
        logs.start[n_logs] = message_at
        logs.length[n_logs] = message_bytes
        logs.severity[n_logs] = shown
        logs.given[n_logs] = given
        logs.pid[n_logs] = pid
        logs.tid[n_logs] = tid
        logs.tags[n_logs] = all_tags
        logs.component[n_logs] = moniker
        logs.url[n_logs] = url
        logs.file[n_logs] = file
        logs.line[n_logs] = line if 0 <= line <= LOW32 else LOW32
        logs.tag[n_logs] = tag
        n_logs += 1
        severities[shown] += 1
        if moniker >= 0:
            by_component[moniker] += 1
        if verbosity or dropped or rolled_out or ns < scalars[LAST_NS] or ns < scalars[FIRST_NS]:
            rare_row(row, ns, dropped, rolled_out, verbosity, offset, record, rare, scalars, notes)
        scalars[LAST_NS] = ns
        scalars[FINAL_NS] = max(scalars[FINAL_NS], ns)
        scalars[T_LOGS] += 1
    scalars[N_LOGS] = n_logs
    scalars[N_ARGS] = n_args
    scalars[N_TAGS] = n_tags
    scalars[N_POSITIONAL] = n_positional
    scalars[TYPES_SEEN] = types
    return index


# --- Legacy packets -------------------------------------------------------------------------------


@kernel
def number_at(data, at, nbytes):  # type: ignore[no-untyped-def]
    """The signed little-endian number of so many bytes."""
    value = 0 + data[at + nbytes - 1]
    if value >= 128:
        value -= 256
    for place in range(nbytes - 2, -1, -1):
        value = (value << 8) | (0 + data[at + place])
    return value


@kernel
def frame_stream(data, frames, state):  # type: ignore[no-untyped-def]
    """Frame the packets of a container from where it stands; gives how many there are."""
    scalars = state.scalars
    at = scalars[POS]
    record = scalars[RECORD]
    count = 0
    while at < len(data) and count < len(frames.start):
        start = at + 4
        left = len(data) - start
        size = 0
        if left >= 0:
            size = number_at(data, at, 4) & LOW32
        if size > left:
            note(state.notes, 701, at, record, size)
            state.kinds[KIND_DAMAGED] += 1
            at = len(data)
        else:
            frames.start[count] = start
            frames.size[count] = size
            frames.offset[count] = at
            frames.record[count] = record
            count += 1
            at = start + size
        record += 1
    scalars[POS] = at
    scalars[RECORD] = record
    return count


@kernel
def packet_fault(data, at, end):  # type: ignore[no-untyped-def]
    """The finding that says why a packet cannot be read; 0 where it can."""
    if end - at < 33:
        return 601
    if data[end - 1]:
        return 602
    at += 32
    tags = 0
    while True:
        if at >= end:
            return 605
        size = data[at]
        at += 1
        if size == 0:
            break
        if tags == PACKET_TAGS:
            return 603
        if size > 63:
            return 604
        if at + size > end:
            return 605
        tags += 1
        at += size
    return 605 if at >= end else 0


@kernel
def decode_packets(data, frames, first, count, logs, rare, tags, state, pool):  # type: ignore[no-untyped-def]
    """Decode packets ``first`` to ``count`` as far as there is room; gives the first one left."""
    scalars = state.scalars
    notes = state.notes
    texts = state.texts
    n_logs = scalars[N_LOGS]
    n_tags = scalars[N_TAGS]
    base = scalars[T_LOGS] - n_logs
    index = first
    while index < count:
        if (
            n_logs >= len(logs.ns)
            or scalars[N_RARE] + 3 > len(rare.row)
            or n_tags + PACKET_TAGS > len(tags.name)
            or pool.used[0] + PACKET_STRINGS > scalars[ROOM_STRINGS]
            or pool.used[1] + PACKET_STRINGS * PACKET_STRINGS > len(pool.words)
            or notes.counts[0] + RECORD_FINDINGS > scalars[ROOM_FINDINGS]
        ):
            break
        at = frames.start[index]
        size = frames.size[index]
        offset = frames.offset[index]
        record = frames.record[index]
        end = at + size
        index += 1
        fault = packet_fault(data, at, end)
        if fault:
            note(notes, fault, offset, record, size)
            state.kinds[KIND_DAMAGED] += 1
            continue
        state.kinds[KIND_PACKET] += 1
        ns = number_at(data, at + 16, 8)
        given_severity = number_at(data, at + 24, 4)
        dropped = number_at(data, at + 28, 4) & LOW32
        row = base + n_logs
        first_tag = n_tags
        place = at + 32
        sound = True
        while data[place]:
            nbytes = 0 + data[place]
            for byte in range(nbytes):
                texts.bytes[byte] = data[place + 1 + byte]
            name = recall(texts.scratch, texts.bytes, 0, nbytes, texts, pool)
            if not texts.valid[name]:
                sound = False
            texts.by_tag[name] += 1
            tags.parent[n_tags] = row
            tags.offset[n_tags] = place
            tags.name[n_tags] = name
            n_tags += 1
            place += 1 + nbytes
        all_tags = -1
        if n_tags > first_tag:
            all_tags = tags.name[first_tag]
            if n_tags > first_tag + 1:
                all_tags = joined(first_tag, n_tags - first_tag, tags, texts, pool)
        message_at = place + 1
        message_end = message_at
        while data[message_end]:
            message_end += 1
        if size > 32768:
            note(notes, 609, offset, record, size)
        if given_severity & 15 or given_severity < 0x10 or given_severity > 0x60:
            note(notes, 606, offset, record, given_severity)
        if message_end + 1 < end:
            note(notes, 607, offset, record, end - message_end - 1)
        if not utf8_valid(data, message_at, message_end - message_at):
            sound = False
        if not sound:
            note(notes, 608, offset, record, 0)
        severity = min(max(given_severity, 0), 255)
        verbosity = 0
        if scalars[ERA_2022]:
            if -10 <= given_severity <= -3:
                severity = DEBUG
                verbosity = -given_severity - 2
            elif -2 <= given_severity <= 3:
                severity = 0x10 + 0x10 * (given_severity + 2)
            elif DEBUG < given_severity < INFO:
                severity = DEBUG
                verbosity = INFO - given_severity
        logs.offset[n_logs] = offset
        logs.ns[n_logs] = ns
        logs.start[n_logs] = message_at
        logs.length[n_logs] = message_end - message_at
        logs.severity[n_logs] = severity
        logs.given[n_logs] = GIVEN_MESSAGE | GIVEN_PID | GIVEN_TID
        logs.pid[n_logs] = number_at(data, at, 8)
        logs.tid[n_logs] = number_at(data, at + 8, 8)
        logs.tags[n_logs] = all_tags
        logs.component[n_logs] = -1
        logs.url[n_logs] = -1
        logs.file[n_logs] = -1
        logs.line[n_logs] = 0
        logs.tag[n_logs] = 0
        n_logs += 1
        state.severities[severity] += 1
        if verbosity or dropped or ns < scalars[LAST_NS] or ns < scalars[FIRST_NS]:
            rare_row(row, ns, dropped, 0, verbosity, offset, record, rare, scalars, notes)
        scalars[LAST_NS] = ns
        scalars[FINAL_NS] = max(scalars[FINAL_NS], ns)
        scalars[T_LOGS] += 1
    scalars[N_LOGS] = n_logs
    scalars[N_TAGS] = n_tags
    return index
