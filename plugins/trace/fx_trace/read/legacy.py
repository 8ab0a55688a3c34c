"""The hot loops: trace bytes to raw columns, and slices matched on them.

``scan`` frames, resolves and extracts in one pass, and can stop and go on at any record: all its
state lies in arrays that the caller keeps. ``match`` nests slices in time order. Both are written
without looking at ``records.py``, which decodes the same bytes for clarity; tests hold the two
against each other. Words are int64 (their bits as they are), so that the plain-Python body and
the compiled one compute the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from fxframework.io.jit import kernel
from fxframework.model.strings import intern_words

# Arrays of shape (n,); the name says the dtype, which numba checks.
I64 = NDArray[Any]
I32 = NDArray[Any]
U8 = NDArray[Any]

# --- Status of a run of `scan` -----------------------------------------------------------------
DONE = 0
"""Every record that begins before the limit was read."""
FULL = 1
"""Something has no room for another record: make room, or take what is there, and call again."""

# --- Codes of the table column of `args` (model.schema.TABLE_CODES) and our own ----------------
SLICES, INSTANTS, COUNTERS, FLOWS, SCHED, BLOBS, OBJECTS = 2, 3, 4, 5, 6, 9, 128

# --- Codes that the reader interns first, so that they are the same in every capture -----------
CODE_EMPTY, CODE_INCOMING, CODE_OUTGOING, CODE_WEIGHT, CODE_PROCESS = 0, 1, 2, 3, 4
WELL_KNOWN = (b"", b"incoming_weight", b"outgoing_weight", b"weight", b"process")

# --- Scalars of the state ----------------------------------------------------------------------
POS, RECORD, EPOCH, GENERATION, PROVIDER, CLOCK, CUT = 0, 1, 2, 3, 4, 5, 6
N_EVENTS, N_ARGS, N_SCHED, N_LOGS, N_BLOBS, N_OBJECTS, N_COUNTERS = 7, 8, 9, 10, 11, 12, 13
N_ANNOTATIONS, N_SEGMENTS, N_PROVIDERS, N_CLOCKS, N_THREADS, N_EPOCHS = 14, 15, 16, 17, 18, 19
T_SLICES, T_INSTANTS, T_COUNTERS, T_FLOWS, T_SCHED, T_BLOBS, T_OBJECTS, T_ENDS = (
    20, 21, 22, 23, 24, 25, 26, 27,
)  # fmt: skip
END_ARGS, LARGE_TICKS, POINTERS, KOIDS, T_LOGS, T_ARGS, TYPES_SEEN = 28, 29, 30, 31, 32, 33, 34
LAST_INLINE, SLACK = 35, 36
SCALARS = 40
RECORD_SLACK = 128
"""Units of slack that one record can use up: strings, findings, map entries, sparse rows."""
RECORD_STRING_WORDS = 70000
"""Words that the strings of one record can take at most (a large record's 15 arguments)."""

# --- Kinds of records, as `scan` counts them: type * 16 + subtype, and these -------------------
KIND_PADDING, KIND_UNKNOWN, KIND_DAMAGED = 256, 257, 258
KINDS = 260

PROVIDER_FIELDS = 8
P_ID, P_NAME, P_EPOCH, P_CLOCK, P_INTRODUCED, P_INITIALIZED, P_FULL, P_OFFSET = range(8)
CLOCK_FIELDS = 3
SEGMENT_FIELDS = 5
FINDING_FIELDS = 4

LOW32 = 0xFFFFFFFF
NOT_NEGATIVE = 0x7FFFFFFFFFFFFFFF
"""Masking an index with it tells the compiler that it does not count from the end."""
INLINE = 1 << 31
INLINE_OR_HIGH = -1 << 31
PLAIN_MASK = -0x7FFF7FFFFFFFFFF1
"""Of an event's header: the type, and the bits that say that category and name are inline."""
NOT_ASCII = -9187201950435737472
SIGN = -9223372036854775808
THREAD_GONE = 1 << 16
"""Keys of threads that were never registered begin here, behind the indices."""


class Words(NamedTuple):
    """The file: ``words`` in the reader's byte order, ``streams`` in the file's."""

    words: I64
    streams: I64


class Map(NamedTuple):
    """An open-addressed map of two int64 to one: ``used[0]`` entries, values >= 0."""

    first: I64
    second: I64
    value: I64
    used: I64


class Events(NamedTuple):
    """Raw event columns, one row an event record, of shape (capacity,)."""

    kind: U8
    thread: I32
    category: I32
    name: I32
    offset: I64
    ticks: I64
    word: I64
    """End ticks, counter id or correlation id; an instant's scope."""


class Args(NamedTuple):
    """Argument columns; ``split`` makes of ``value`` what the table shows."""

    table: U8
    type: U8
    name: I32
    parent: I64
    """Row in ``table``; below -1, -2 - the ordinal of an end event whose slice is not known yet."""
    offset: I64
    value: I64
    """The integer, the bits of the double, or the code of the string or blob."""


class Sched(NamedTuple):
    """Raw scheduling columns; ``prev`` and ``next`` are tids, in legacy switches thread ids."""

    kind: U8
    state: U8
    cpu: I32
    prev_priority: I32
    next_priority: I32
    offset: I64
    ticks: I64
    prev: I64
    next: I64


class Logs(NamedTuple):
    """Raw log columns; the message is bytes ``start`` to ``start + length`` of the file."""

    thread: I32
    offset: I64
    ticks: I64
    start: I64
    length: I64


class Blobs(NamedTuple):
    """Raw blob columns; type 0 is a large record's."""

    type: U8
    name: I32
    offset: I64
    start: I64
    length: I64


class Objects(NamedTuple):
    """Raw object annotations: kind 0 kernel (value koid), 1 userspace (value pointer)."""

    kind: U8
    type: U8
    name: I32
    offset: I64
    value: I64
    pid: I64


class Sparse(NamedTuple):
    """Rows that few have: a counter's (event, argument), an annotated argument's (row, name)."""

    counter_event: I64
    counter_arg: I64
    annotated: I64
    annotation: I64


class Threads(NamedTuple):
    """Threads in order of first mention; ``gone`` is the index + 1 that was never registered."""

    pid: I64
    tid: I64
    offset: I64
    gone: I64


class Notes(NamedTuple):
    """Where findings go. Kernels hand over no more than is needed: each array costs code."""

    scalars: I64
    findings: I64
    """[code, offset, record, value] of each finding kept."""
    counts: I64
    """[findings kept, limit per code], then a count per code."""


class Texts(NamedTuple):
    """What interning a string takes beside the pool."""

    valid: U8
    """By string code: 1 where it is UTF-8."""
    limits: I64
    """[max_string, max_record] bytes."""
    scratch: I64


class State(NamedTuple):
    """What `scan` carries from record to record."""

    scalars: I64
    strings: I64
    """Cache of the string table in force: generation << 32 | code."""
    threads: I64
    """Cache of the thread table in force: generation << 32 | thread id."""
    string_map: Map
    thread_map: Map
    identities: Map
    objects: Map
    provider_map: Map
    clock_map: Map
    providers: I64
    clocks: I64
    segments: I64
    kinds: I64
    notes: Notes
    texts: Texts
    tables: I64
    """By argument type, 16 each: a second word; masks of the value, and of a string's code; bits
    of the header that are odd."""


PLAIN_TABLES = (
    # null int32 uint32 int64 uint64 double string pointer koid bool, and none from 10 on
    *(0, 0, 0, 1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0),
    *(0, -1, LOW32, -1, -1, -1, 0, -1, -1, 1, 0, 0, 0, 0, 0, 0),
    *(0, 0, 0, 0, 0, 0, LOW32, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    # bit 31 is an inline name's; from 32 on what is reserved, bit 47 an inline value's
    *(INLINE_OR_HIGH, INLINE, INLINE),
    *(INLINE_OR_HIGH,) * 3,
    (-1 << 47) | INLINE,
    *(INLINE_OR_HIGH,) * 2,
    (-1 << 33) | INLINE,
    *(-1,) * 6,
)


# --- Small helpers -----------------------------------------------------------------------------


@kernel
def map_find(table, first, second):  # type: ignore[no-untyped-def]
    """Slot of a key, or of the free place where it belongs."""
    mask = len(table.value) - 1
    mixed = ((first * 1000003) ^ second) & 0x3FFFFFFFFFFFFFFF
    mixed = (mixed ^ (mixed >> 31)) & 0xFFFFFFFF
    mixed = (mixed * 0x9E3779B1) & 0x3FFFFFFFFFFFFFFF
    slot = (mixed >> 16) & mask
    while table.value[slot] >= 0 and (table.first[slot] != first or table.second[slot] != second):
        slot = (slot + 1) & mask
    return slot


@kernel
def map_get(table, first, second):  # type: ignore[no-untyped-def]
    """Value of a key; -1 where it has none."""
    return table.value[map_find(table, first, second)]


@kernel
def map_put(table, first, second, value):  # type: ignore[no-untyped-def]
    """Set a key's value; there is room for one more."""
    slot = map_find(table, first, second)
    if table.value[slot] < 0:
        table.used[0] += 1
        table.first[slot] = first
        table.second[slot] = second
    table.value[slot] = value


@kernel
def map_refill(old, new):  # type: ignore[no-untyped-def]
    """Enter all of ``old`` into the empty, larger ``new``."""
    for slot in range(len(old.value)):
        if old.value[slot] >= 0:
            map_put(new, old.first[slot], old.second[slot], old.value[slot])


@kernel
def note(notes, code, offset, value):  # type: ignore[no-untyped-def]
    """Report a finding: counted always, kept while its code is under the limit."""
    counts = notes.counts
    counts[code + 2] += 1
    if counts[code + 2] <= counts[1]:
        row = counts[0] * 4
        notes.findings[row] = code
        notes.findings[row + 1] = offset
        notes.findings[row + 2] = notes.scalars[RECORD]
        notes.findings[row + 3] = value
        counts[0] += 1
        notes.scalars[SLACK] -= 1


@kernel
def note_once(notes, code, before, offset, value):  # type: ignore[no-untyped-def]
    """Report a finding, if it was not since it had been made ``before`` times."""
    if notes.counts[code + 2] == before:
        note(notes, code, offset, value)


@kernel
def utf8_valid(words, start, nbytes):  # type: ignore[no-untyped-def]
    """Whether the bytes at word ``start`` are UTF-8."""
    ascii_only = True
    for index in range(start, start + ((nbytes + 7) >> 3)):
        if words[index] & NOT_ASCII:
            ascii_only = False
            break
    if ascii_only:
        return True
    at = 0
    while at < nbytes:
        byte = (words[start + (at >> 3)] >> (8 * (at & 7))) & 0xFF
        at += 1
        if byte < 0x80:
            continue
        if 0xC2 <= byte <= 0xDF:
            more = 1
        elif 0xE0 <= byte <= 0xEF:
            more = 2
        elif 0xF0 <= byte <= 0xF4:
            more = 3
        else:
            return False
        if at + more > nbytes:
            return False
        follow = (words[start + (at >> 3)] >> (8 * (at & 7))) & 0xFF
        low = 0x80
        high = 0xBF
        if byte == 0xE0:
            low = 0xA0
        elif byte == 0xED:
            high = 0x9F
        elif byte == 0xF0:
            low = 0x90
        elif byte == 0xF4:
            high = 0x8F
        if follow < low or follow > high:
            return False
        at += 1
        for _ in range(more - 1):
            follow = (words[start + (at >> 3)] >> (8 * (at & 7))) & 0xFF
            if follow < 0x80 or follow > 0xBF:
                return False
            at += 1
    return True


@kernel
def minimum(kind):  # type: ignore[no-untyped-def]
    """Words that a record of this type always has; 0 where the format does not define the type."""
    if kind == 0 or kind == 2 or kind == 5 or kind == 15:
        return 1
    if kind == 3:
        return 3
    if kind <= 10:
        return 2
    return 0


@kernel
def size_of(word):  # type: ignore[no-untyped-def]
    """Words of the record with this header."""
    if word & 15 == 15:
        return (word >> 4) & 0xFFFFFFFF
    return (word >> 4) & 0xFFF


@kernel
def sound_after(words, start, total):  # type: ignore[no-untyped-def]
    """The first word from ``start`` at which three sound records follow each other, or -1."""
    for begin in range(start, total):
        at = begin
        good = 0
        while good < 3 and at < total:
            word = words[at]
            size = size_of(word)
            least = minimum(word & 15)
            if word == 0 or least == 0 or size < least or size > total - at:
                break
            at += size
            good += 1
        if good == 3:
            return begin
    return -1


@kernel
def intern_checked(streams, start, nbytes, offset, code_if_bad, pool, texts, notes):  # type: ignore[no-untyped-def]
    """Code of a string in the file, with a finding where it is not UTF-8 or over the limit."""
    limit = texts.limits[0]
    if limit and nbytes > limit:
        note(notes, 116, offset, nbytes)
        nbytes = limit
    known = pool.used[0]
    code = intern_words(streams, start, nbytes, pool)
    if code >= known:
        notes.scalars[SLACK] -= 1
        texts.valid[code] = 1 if utf8_valid(streams, start, nbytes) else 0
    if code_if_bad and not texts.valid[code]:
        note(notes, code_if_bad, offset, code)
    return code


@kernel
def placeholder(index, pool, texts, notes):  # type: ignore[no-untyped-def]
    """Code of the text ``<str#N>``."""
    digits = 1
    power = 10
    while index >= power:
        digits += 1
        power *= 10
    # '<', 's', 't', 'r', '#' are the low bytes of the first word.
    low = 0x237274733C
    high = 0
    for place in range(digits):
        at = 5 + digits - 1 - place
        byte = 48 + index % 10
        index //= 10
        if at < 8:
            low |= byte << (8 * at)
        else:
            high |= byte << (8 * (at - 8))
    at = 5 + digits
    if at < 8:
        low |= 62 << (8 * at)
    else:
        high |= 62 << (8 * (at - 8))
    texts.scratch[0] = low
    texts.scratch[1] = high
    known = pool.used[0]
    code = intern_words(texts.scratch, 0, 6 + digits, pool)
    if code >= known:
        notes.scalars[SLACK] -= 1
        texts.valid[code] = 1
    return code


@kernel
def absent_string(index, offset, table, cache, providers, pool, texts, notes):  # type: ignore[no-untyped-def]
    """Code of an indexed string that the cache lacks; ``table`` has those of all providers."""
    scalars = notes.scalars
    code = map_get(table, scalars[EPOCH], index)
    if code >= 0:
        cache[index] = (scalars[GENERATION] << 32) | code
        return code
    if scalars[PROVIDER] != 0:
        code = map_get(table, providers[P_EPOCH], index)
        if code >= 0:
            note(notes, 106, offset, index)
            return code
    note(notes, 104, offset, index)
    return placeholder(index, pool, texts, notes)


@kernel
def identity(pid, tid, offset, known, identities, scalars):  # type: ignore[no-untyped-def]
    """Thread id of a (pid, tid), which is entered where it is new."""
    thread = map_get(identities, pid, tid)
    if thread < 0:
        thread = scalars[N_THREADS]
        known.pid[thread] = pid
        known.tid[thread] = tid
        known.offset[thread] = offset
        known.gone[thread] = 0
        scalars[N_THREADS] = thread + 1
        scalars[SLACK] -= 1
        map_put(identities, pid, tid, thread)
    return thread


@kernel
def absent_thread(index, offset, known, table, cache, providers, notes):  # type: ignore[no-untyped-def]
    """Thread id of an indexed thread that the cache lacks; ``table`` has those of all providers."""
    scalars = notes.scalars
    epoch = scalars[EPOCH]
    thread = map_get(table, epoch, index)
    if thread >= 0:
        cache[index] = (scalars[GENERATION] << 32) | thread
        return thread
    if scalars[PROVIDER] != 0:
        thread = map_get(table, providers[P_EPOCH], index)
        if thread >= 0:
            note(notes, 106, offset, index)
            return thread
    note(notes, 105, offset, index)
    thread = map_get(table, epoch, THREAD_GONE + index)
    if thread < 0:
        thread = scalars[N_THREADS]
        known.pid[thread] = 0
        known.tid[thread] = 0
        known.offset[thread] = offset
        known.gone[thread] = index + 1
        scalars[N_THREADS] = thread + 1
        scalars[SLACK] -= 1
        map_put(table, epoch, THREAD_GONE + index, thread)
    return thread


@kernel
def switch(provider, state):  # type: ignore[no-untyped-def]
    """Make a provider's tables and clock the ones in force."""
    scalars = state.scalars
    row = provider * PROVIDER_FIELDS
    scalars[PROVIDER] = provider
    scalars[EPOCH] = state.providers[row + P_EPOCH]
    scalars[GENERATION] += 1
    state.strings[0] = scalars[GENERATION] << 32
    set_clock(state.providers[row + P_CLOCK], state)


@kernel
def set_clock(clock, state):  # type: ignore[no-untyped-def]
    """Make a clock the one in force, from the rows that come on."""
    scalars = state.scalars
    if clock == scalars[CLOCK]:
        return
    scalars[CLOCK] = clock
    row = scalars[N_SEGMENTS] * SEGMENT_FIELDS
    state.segments[row] = clock
    state.segments[row + 1] = scalars[N_EVENTS]
    state.segments[row + 2] = scalars[N_SCHED]
    state.segments[row + 3] = scalars[N_LOGS]
    scalars[N_SEGMENTS] += 1


@kernel
def new_epoch(provider, state):  # type: ignore[no-untyped-def]
    """Empty a provider's tables."""
    state.scalars[N_EPOCHS] += 1
    state.providers[provider * PROVIDER_FIELDS + P_EPOCH] = state.scalars[N_EPOCHS]


@kernel
def find_provider(number, offset, state):  # type: ignore[no-untyped-def]
    """Place of a provider, entered where it is new; second, whether it was."""
    provider = map_get(state.provider_map, number, 0)
    if provider >= 0:
        return provider, False
    provider = state.scalars[N_PROVIDERS]
    row = provider * PROVIDER_FIELDS
    state.providers[row + P_ID] = number
    state.providers[row + P_NAME] = 0
    state.providers[row + P_CLOCK] = 0
    state.providers[row + P_INTRODUCED] = 0
    state.providers[row + P_INITIALIZED] = 0
    state.providers[row + P_FULL] = 0
    state.providers[row + P_OFFSET] = offset
    state.scalars[N_PROVIDERS] = provider + 1
    new_epoch(provider, state)
    map_put(state.provider_map, number, 0, provider)
    return provider, True


@kernel
def metadata(words, streams, pos, size, pool, state):  # type: ignore[no-untyped-def]
    """A metadata record. Gives whether its contents fit it."""
    notes = state.notes
    texts = state.texts
    word = words[pos]
    offset = pos * 8
    kind = (word >> 16) & 15
    number = (word >> 20) & LOW32
    need = 1
    reserved = 0
    if kind == 1:
        length = (word >> 52) & 0xFF
        need = 1 + ((length + 7) >> 3)
        if need > size:
            return False
        reserved = (word >> 60) & 15
        provider, _ = find_provider(number, offset, state)
        row = provider * PROVIDER_FIELDS
        if state.providers[row + P_INTRODUCED]:
            note(notes, 205, offset, number)
            new_epoch(provider, state)
        state.providers[row + P_INTRODUCED] = 1
        if reserved:
            note(notes, 101, offset, word)
            reserved = 0
        if (length & 7) and streams[pos + need - 1] >> (8 * (length & 7)):
            note(notes, 102, offset, 0)
        state.providers[row + P_NAME] = intern_checked(
            streams, pos + 1, length, offset, 107, pool, texts, notes
        )
        state.providers[row + P_OFFSET] = offset
        switch(provider, state)
    elif kind == 2:
        reserved = (word >> 52) & 0xFFF
        provider, new = find_provider(number, offset, state)
        if new:
            note(notes, 206, offset, number)
        switch(provider, state)
    elif kind == 3:
        reserved = (word >> 56) & 0xFF
        if (word >> 52) & 15 == 0:
            note(notes, 207, offset, number)
            provider = map_get(state.provider_map, number, 0)
            if provider >= 0:
                state.providers[provider * PROVIDER_FIELDS + P_FULL] += 1
        else:
            note(notes, 111, offset, (word >> 52) & 15)
    elif kind == 4:
        if (word >> 20) & 15 == 0:
            reserved = (word >> 56) & 0xFF
        else:
            note(notes, 111, offset, (word >> 20) & 15)
            need = size
    else:
        note(notes, 111, offset, kind)
        need = size
    if reserved:
        note(notes, 101, offset, word)
    if need < size:
        note(notes, 103, offset, size - need)
    return True


@kernel
def initialization(words, pos, size, state):  # type: ignore[no-untyped-def]
    """An initialization record: rate, and Jane Street's base tick and wall time."""
    notes = state.notes
    scalars = state.scalars
    offset = pos * 8
    row = scalars[PROVIDER] * PROVIDER_FIELDS
    if words[pos] >> 16:
        note(notes, 101, offset, words[pos])
    rate = words[pos + 1]
    base = 0
    wall = -1
    if size >= 4:
        base = words[pos + 2]
        wall = words[pos + 3]
        note(notes, 204, offset, 0)
        if size > 4:
            note(notes, 103, offset, size - 4)
    elif size > 2:
        note(notes, 103, offset, size - 2)
    if rate == 0:
        note(notes, 203, offset, 0)
        return
    # A clock is known by its rate and base; the wall time of its first record is kept.
    clock = map_get(state.clock_map, rate, base)
    if clock < 0:
        clock = scalars[N_CLOCKS]
        state.clocks[clock * CLOCK_FIELDS] = rate
        state.clocks[clock * CLOCK_FIELDS + 1] = base
        state.clocks[clock * CLOCK_FIELDS + 2] = wall
        scalars[N_CLOCKS] = clock + 1
        map_put(state.clock_map, rate, base, clock)
    elif wall != -1 and state.clocks[clock * CLOCK_FIELDS + 2] == -1:
        state.clocks[clock * CLOCK_FIELDS + 2] = wall
    before = state.providers[row + P_CLOCK]
    if state.providers[row + P_INITIALIZED] == 1 and state.clocks[before * CLOCK_FIELDS] != rate:
        note(notes, 209, offset, rate)
    state.providers[row + P_INITIALIZED] = 1
    state.providers[row + P_CLOCK] = clock
    set_clock(clock, state)


@kernel
def profiler(words, streams, pos, size, table, providers, notes):  # type: ignore[no-untyped-def]
    """A profiler record, which no table holds: only checked. Gives whether its contents fit."""
    word = words[pos]
    offset = pos * 8
    kind = (word >> 16) & 15
    inline = (word >> 20) & 0xFF == 0
    reserved = 0
    if kind == 0:
        name_length = (word >> 44) & 0xFF
        build_length = (word >> 52) & 0xFF
        need = 2 + ((name_length + 7) >> 3) + ((build_length + 7) >> 3)
        reserved = (word >> 60) & 15
    elif kind == 1:
        need = 5
        reserved = word >> 47
    elif kind == 2:
        need = 2 + ((word >> 28) & 0xFF)
        reserved = word >> 36
    else:
        note(notes, 111, offset, kind)
        return True
    one_word = False
    if inline:
        one_word = kind < 2 and size == need + 1
        need += 1 if one_word else 2
    if need > size:
        return False
    if not inline:
        check_thread((word >> 20) & 0xFF, offset, table, providers, notes)
    if one_word:
        note(notes, 113, offset, 0)
    if reserved:
        note(notes, 101, offset, word)
    if kind == 0:
        at = pos + 2 + (0 if not inline else (1 if one_word else 2))
        middle = at + ((name_length + 7) >> 3)
        after = middle + ((build_length + 7) >> 3)
        dirty = 0
        if name_length & 7:
            dirty = streams[middle - 1] >> (8 * (name_length & 7))
        if dirty == 0 and build_length & 7:
            dirty = streams[after - 1] >> (8 * (build_length & 7))
        if dirty:
            note(notes, 102, offset, 0)
        if not utf8_valid_bytes(streams, at, name_length):
            note(notes, 107, offset, 0)
    if need < size:
        note(notes, 103, offset, size - need)
    return True


@kernel
def utf8_valid_bytes(words, start, nbytes):  # type: ignore[no-untyped-def]
    """Whether the bytes are UTF-8, whatever their padding holds."""
    whole = nbytes >> 3
    for index in range(start, start + whole):
        if words[index] & NOT_ASCII:
            return utf8_valid(words, start, nbytes)
    rest = nbytes & 7
    if rest and words[start + whole] & NOT_ASCII & ((1 << (8 * rest)) - 1):
        return utf8_valid(words, start, nbytes)
    return True


@kernel
def check_thread(index, offset, table, providers, notes):  # type: ignore[no-untyped-def]
    """Report an indexed thread that does not resolve, without entering it anywhere."""
    scalars = notes.scalars
    if map_get(table, scalars[EPOCH], index) >= 0:
        return
    if scalars[PROVIDER] != 0 and map_get(table, providers[P_EPOCH], index) >= 0:
        note(notes, 106, offset, index)
        return
    note(notes, 105, offset, index)


@kernel
def args_fit(words, at, end, count):  # type: ignore[no-untyped-def]
    """Word after the arguments at ``at``, or -1 where they overrun ``end`` or themselves."""
    for _ in range(count):
        if at >= end:
            return -1
        word = words[at]
        size = (word >> 4) & 0xFFF
        if size == 0 or size > end - at:
            return -1
        ref = (word >> 16) & 0xFFFF
        need = 1
        if ref & 0x8000:
            need += ((ref & 0x7FFF) + 7) >> 3
        kind = word & 15
        if kind == 6:
            ref = (word >> 32) & 0xFFFF
            if ref & 0x8000:
                need += ((ref & 0x7FFF) + 7) >> 3
        elif (3 <= kind <= 5) or kind == 7 or kind == 8:
            need += 1
        elif kind == 10:
            need += (((word >> 32) & LOW32) + 7) >> 3
        if need > size:
            return -1
        at += size
    return at


# --- The scan ----------------------------------------------------------------------------------


@kernel
def scan(file, total, limit, events, args, sched, logs, blobs, objects, sparse, known, pool, state):  # type: ignore[no-untyped-def]
    """Read records that begin before word ``limit``, until something is full.

    ``total`` is the whole words in the file. Events, arguments and the words of strings are
    checked for room here; of everything else the caller has made room for ``scalars[SLACK]``
    more entries, which rare paths count down. Gives DONE or FULL.
    """
    words = file.words
    streams = file.streams
    scalars = state.scalars
    cache = state.strings
    threads = state.threads
    string_map = state.string_map
    thread_map = state.thread_map
    identities = state.identities
    providers = state.providers
    notes = state.notes
    texts = state.texts
    limits = texts.limits
    pos = scalars[POS]
    n_events = scalars[N_EVENTS]
    n_args = scalars[N_ARGS]
    t_slices = scalars[T_SLICES]
    generation = scalars[GENERATION]
    last_event = len(events.kind)
    last_args = len(args.type) - 16
    record = scalars[RECORD]
    t_ends = scalars[T_ENDS]
    t_instants = scalars[T_INSTANTS]
    t_flows = scalars[T_FLOWS]
    initialized = state.providers[scalars[PROVIDER] * PROVIDER_FIELDS + P_INITIALIZED] != 0
    tables = state.tables
    types = scalars[TYPES_SEEN]
    run_of = 0
    run = 0
    status = DONE
    while pos < limit:
        word = words[pos & NOT_NEGATIVE]

        # The plain event, by far the most frequent record: all references indexed and known,
        # arguments of one or two words, nothing that would need reporting. It is taken here
        # whole, or left to what follows, which knows every record.
        subtype = (word >> 16) & 15
        if word & PLAIN_MASK == 4 and subtype != 1 and subtype <= 10:
            at = (pos & NOT_NEGATIVE) + 2
            end = at + ((word >> 4) & 0xFFF) - 2
            after = end
            nargs = (word >> 20) & 15
            thread_entry = threads[(word >> 24) & 0xFF]
            category_entry = cache[(word >> 32) & 0x7FFF]
            name_entry = cache[(word >> 48) & 0x7FFF]
            has_word = subtype >= 4
            plain = (
                thread_entry >> 32 == generation
                and category_entry >> 32 == generation
                and name_entry >> 32 == generation
                and end < total
                and n_events < last_event
                and n_args <= last_args
                and initialized
            )
            if plain:
                offset = pos * 8
                row = n_args & NOT_NEGATIVE
                if has_word:
                    end -= 1
                arg_table = SLICES
                if subtype == 4 or subtype == 2 or subtype == 5:
                    arg_parent = t_slices
                elif subtype == 3 or subtype == 7:
                    arg_parent = -2 - t_ends
                elif subtype == 0 or subtype == 6:
                    arg_table = INSTANTS
                    arg_parent = t_instants
                else:
                    arg_table = FLOWS
                    arg_parent = t_flows
                # Without branches on the type, which are hard to predict: tables say what each
                # type's value is made of, and `odd` gathers whatever is not plain.
                odd = 0
                for _ in range(nargs):
                    if at >= end:
                        odd = 1
                        break
                    place = at & NOT_NEGATIVE
                    arg = row & NOT_NEGATIVE
                    head = words[place]
                    arg_type = head & 15
                    arg_size = (head >> 4) & 0xFFF
                    two = tables[arg_type]
                    entry = cache[(head >> 16) & 0x7FFF]
                    text = cache[(head >> 32) & 0x7FFF]
                    wide = words[place + 1]
                    value = wide if two else head >> 32
                    of_text = tables[32 + arg_type]
                    odd |= (
                        (head & tables[48 + arg_type])
                        | (arg_size ^ (1 + two))
                        | ((entry >> 32) ^ generation)
                        | (((text >> 32) ^ generation) & of_text)
                    )
                    args.table[arg] = arg_table
                    args.type[arg] = arg_type
                    args.name[arg] = entry & LOW32
                    args.parent[arg] = arg_parent
                    args.offset[arg] = offset
                    args.value[arg] = (value & tables[16 + arg_type]) | (text & of_text)
                    types |= 1 << arg_type
                    row += 1
                    at += arg_size
                plain = odd == 0
                if plain and at == end:
                    event = n_events & NOT_NEGATIVE
                    value = 0
                    if has_word:
                        value = words[at & NOT_NEGATIVE]
                    ticks = words[(pos & NOT_NEGATIVE) + 1]
                    if ticks < 0 or (subtype == 4 and value < 0):
                        scalars[LARGE_TICKS] = 1
                    events.kind[event] = subtype
                    events.thread[event] = thread_entry & LOW32
                    events.category[event] = category_entry & LOW32
                    events.name[event] = name_entry & LOW32
                    events.offset[event] = offset
                    events.ticks[event] = ticks
                    events.word[event] = value
                    n_events += 1
                    n_args = row
                    if subtype != run_of:
                        state.kinds[64 + run_of] += run
                        run_of = subtype
                        run = 0
                    run += 1
                    if arg_table == INSTANTS:
                        t_instants += 1
                    elif arg_table == FLOWS:
                        t_flows += 1
                    elif arg_parent < 0:
                        t_ends += 1
                        if nargs:
                            scalars[END_ARGS] += 1
                    else:
                        t_slices += 1
                    record += 1
                    pos = after
                    continue

        scalars[RECORD] = record
        scalars[T_ENDS] = t_ends
        scalars[T_INSTANTS] = t_instants
        scalars[T_FLOWS] = t_flows
        kind = word & 15
        size = (word >> 4) & 0xFFF
        offset = pos * 8
        if kind == 15:
            size = (word >> 4) & 0xFFFFFFFF
        if (
            n_events >= last_event
            or n_args > last_args
            or scalars[SLACK] < RECORD_SLACK
            or min(size, RECORD_STRING_WORDS) + 96 > len(pool.words) - pool.used[1]
        ):
            status = FULL
            break

        # 1 frame: an impossible size costs everything up to where records follow again.
        if word == 0:
            end = pos + 1
            while end < total and words[end] == 0:
                end += 1
            note(notes, 6, offset, end - pos)
            state.kinds[KIND_PADDING] += 1
            record += 1
            pos = end
            continue
        least = minimum(kind)
        if size == 0 or size > total - pos or size < least:
            note(notes, 1 if size == 0 else (2 if size > total - pos else 3), offset, size)
            end = sound_after(words, pos + 1, total)
            state.kinds[KIND_DAMAGED] += 1
            record += 1
            pos = end if end >= 0 else total
            if end < 0:
                scalars[CUT] = 1
            continue
        end = pos + size
        if limits[1] and size * 8 > limits[1]:
            note(notes, 8, offset, size * 8)
            state.kinds[KIND_DAMAGED] += 1
            record += 1
            pos = end
            continue
        if least == 0:
            note(notes, 7, offset, kind)
            state.kinds[KIND_UNKNOWN] += 1
            record += 1
            pos = end
            continue

        # 2 resolve and 3 extract. `at` walks the record; `need_word` is an event's last word.
        at = pos + 1
        nargs = 0
        arg_table = -1
        arg_parent = -1
        reserved = notes.counts[2 + 101]
        unpadded = notes.counts[2 + 102]
        fits = True
        subtype = 0
        thread = -1
        name = 0
        if kind == 4:
            subtype = (word >> 16) & 15
            nargs = (word >> 20) & 15
            thread_ref = (word >> 24) & 0xFF
            category_ref = (word >> 32) & 0xFFFF
            name_ref = (word >> 48) & 0xFFFF
            at = pos + 2
            strings_at = at + 2 if thread_ref == 0 else at
            args_at = strings_at
            if category_ref & 0x8000:
                args_at += ((category_ref & 0x7FFF) + 7) >> 3
            name_at = args_at
            if name_ref & 0x8000:
                args_at += ((name_ref & 0x7FFF) + 7) >> 3
            if args_at > end:
                fits = False
            else:
                after = args_fit(words, args_at, end, nargs) if nargs else args_at
                has_word = subtype == 1 or (4 <= subtype <= 10)
                if after < 0 or (has_word and after >= end):
                    fits = False
            if fits and subtype > 10:
                # An event type of the future: its beginning is that of every event.
                note(notes, 111, offset, subtype)
            if fits:
                if thread_ref == 0:
                    pid = words[at]
                    tid = words[at + 1]
                    thread = scalars[LAST_INLINE]
                    if thread < 0 or known.pid[thread] != pid or known.tid[thread] != tid:
                        thread = identity(pid, tid, offset, known, identities, scalars)
                        scalars[LAST_INLINE] = thread
                else:
                    entry = threads[thread_ref]
                    if entry >> 32 == generation:
                        thread = entry & LOW32
                    else:
                        thread = absent_thread(
                            thread_ref, offset, known, thread_map, threads, providers, notes
                        )
                if category_ref < 0x8000:
                    entry = cache[category_ref]
                    if entry >> 32 == generation:
                        category = entry & LOW32
                    else:
                        category = absent_string(
                            category_ref, offset, string_map, cache, providers, pool, texts, notes
                        )
                else:
                    length = category_ref & 0x7FFF
                    category = intern_checked(
                        streams, strings_at, length, offset, 107, pool, texts, notes
                    )
                if name_ref < 0x8000:
                    entry = cache[name_ref]
                    if entry >> 32 == generation:
                        name = entry & LOW32
                    else:
                        name = absent_string(
                            name_ref, offset, string_map, cache, providers, pool, texts, notes
                        )
                else:
                    name = intern_checked(
                        streams, name_at, name_ref & 0x7FFF, offset, 107, pool, texts, notes
                    )
                if (category_ref | name_ref) & 0x8000:
                    dirty = 0
                    if category_ref & 0x8000 and category_ref & 7:
                        dirty = streams[name_at - 1] >> (8 * (category_ref & 7))
                    if dirty == 0 and name_ref & 0x8000 and name_ref & 7:
                        dirty = streams[args_at - 1] >> (8 * (name_ref & 7))
                    if dirty:
                        note(notes, 102, offset, 0)
                ticks = words[at - 1]
                if ticks < 0:
                    scalars[LARGE_TICKS] = 1
                if subtype <= 10:
                    value = 0
                    if has_word:
                        value = words[after]
                        after += 1
                        if value < 0 and subtype == 4:
                            scalars[LARGE_TICKS] = 1
                    elif subtype == 0 and after < end:
                        value = words[after]
                        after += 1
                        if value < 0 or value > 2:
                            note(notes, 115, offset, value)
                            value = 254 if value < 0 or value > 254 else value
                    if after < end:
                        note(notes, 103, offset, end - after)
                    if subtype == 2 or subtype == 4 or subtype == 5:
                        arg_table = SLICES
                        arg_parent = t_slices
                        t_slices += 1
                    elif subtype == 3 or subtype == 7:
                        arg_table = SLICES
                        arg_parent = -2 - t_ends
                        t_ends += 1
                        if nargs:
                            scalars[END_ARGS] += 1
                    elif subtype == 0 or subtype == 6:
                        arg_table = INSTANTS
                        arg_parent = t_instants
                        t_instants += 1
                    elif subtype == 1:
                        arg_table = COUNTERS
                        arg_parent = scalars[T_COUNTERS]
                    else:
                        arg_table = FLOWS
                        arg_parent = t_flows
                        t_flows += 1
                    events.kind[n_events] = subtype
                    events.thread[n_events] = thread
                    events.category[n_events] = category
                    events.name[n_events] = name
                    events.offset[n_events] = offset
                    events.ticks[n_events] = ticks
                    events.word[n_events] = value
                    n_events += 1
                at = args_at
        elif kind == 2:
            index = (word >> 16) & 0x7FFF
            length = (word >> 32) & 0x7FFF
            after = at + ((length + 7) >> 3)
            fits = after <= end
            if fits:
                if (word >> 47) or (word >> 31) & 1:
                    note(notes, 101, offset, word)
                if (length & 7) and streams[after - 1] >> (8 * (length & 7)):
                    note(notes, 102, offset, 0)
                if after < end:
                    note(notes, 103, offset, end - after)
                code = intern_checked(streams, at, length, offset, 107, pool, texts, notes)
                if index == 0:
                    note(notes, 109, offset, 0)
                else:
                    cache[index] = (generation << 32) | code
                    map_put(state.string_map, scalars[EPOCH], index, code)
        elif kind == 3:
            index = (word >> 16) & 0xFF
            if word >> 24:
                note(notes, 101, offset, word)
            if size > 3:
                note(notes, 103, offset, size - 3)
            if index == 0:
                note(notes, 109, offset, 0)
            else:
                thread = identity(
                    words[pos + 1], words[pos + 2], offset, known, identities, scalars
                )
                threads[index] = (generation << 32) | thread
                map_put(state.thread_map, scalars[EPOCH], index, thread)
        elif kind == 0:
            subtype = (word >> 16) & 15
            scalars[N_EVENTS] = n_events
            fits = metadata(words, streams, pos, size, pool, state)
            generation = scalars[GENERATION]
        elif kind == 1:
            scalars[N_EVENTS] = n_events
            initialization(words, pos, size, state)
        elif kind == 5:
            ref = (word >> 16) & 0xFFFF
            length = (word >> 32) & 0x7FFF
            name_words = 0
            if ref & 0x8000:
                name_words = ((ref & 0x7FFF) + 7) >> 3
            after = at + name_words + ((length + 7) >> 3)
            fits = after <= end
            if fits:
                if (word >> 56) or (word >> 47) & 1:
                    note(notes, 101, offset, word)
                if ref & 0x8000:
                    name = intern_checked(
                        streams, at, ref & 0x7FFF, offset, 107, pool, texts, notes
                    )
                else:
                    entry = cache[ref]
                    if entry >> 32 == generation:
                        name = entry & LOW32
                    else:
                        name = absent_string(
                            ref, offset, string_map, cache, providers, pool, texts, notes
                        )
                dirty = 0
                if ref & 0x8000 and ref & 7:
                    dirty = streams[at + name_words - 1] >> (8 * (ref & 7))
                if dirty == 0 and length & 7:
                    dirty = streams[after - 1] >> (8 * (length & 7))
                if dirty:
                    note(notes, 102, offset, 0)
                if after < end:
                    note(notes, 103, offset, end - after)
                row = scalars[N_BLOBS]
                blobs.type[row] = (word >> 48) & 0xFF
                blobs.name[row] = name
                blobs.offset[row] = offset
                blobs.start[row] = (at + name_words) * 8
                blobs.length[row] = length
                scalars[N_BLOBS] = row + 1
                scalars[T_BLOBS] += 1
        elif kind == 6 or kind == 7:
            ref = (word >> 24) & 0xFFFF
            nargs = (word >> 40) & 15
            process = (word >> 16) & 0xFF
            at = pos + 2
            name_words = 0
            if ref & 0x8000:
                name_words = ((ref & 0x7FFF) + 7) >> 3
            inline = 0
            if kind == 6 and process == 0:
                # One word by the document, two by the C++ serializer: the record's size tells.
                inline = 1
                after = -1
                if at + 1 + name_words <= end:
                    after = args_fit(words, at + 1 + name_words, end, nargs)
                if after != end and at + 2 + name_words <= end:
                    other = args_fit(words, at + 2 + name_words, end, nargs)
                    if other == end or (after < 0 and other >= 0):
                        inline = 2
                        after = other
            elif at + name_words <= end:
                after = args_fit(words, at + name_words, end, nargs)
            else:
                after = -1
            fits = after >= 0
            if fits:
                pid = 0
                if kind == 6:
                    if inline:
                        pid = words[at]
                    else:
                        entry = threads[process]
                        if entry >> 32 == generation:
                            pid = known.pid[entry & LOW32]
                        else:
                            pid = known.pid[
                                absent_thread(
                                    process, offset, known, thread_map, threads, providers, notes
                                )
                            ]
                    if inline == 2:
                        note(notes, 112, offset, 0)
                    at += inline
                if word >> 44:
                    note(notes, 101, offset, word)
                if ref & 0x8000:
                    name = intern_checked(
                        streams,
                        at,
                        ref & 0x7FFF,
                        offset,
                        107 if kind == 6 else 108,
                        pool,
                        texts,
                        notes,
                    )
                    if ref & 7 and streams[at + name_words - 1] >> (8 * (ref & 7)):
                        note(notes, 102, offset, 0)
                else:
                    entry = cache[ref]
                    if entry >> 32 == generation:
                        name = entry & LOW32
                    else:
                        name = absent_string(
                            ref, offset, string_map, cache, providers, pool, texts, notes
                        )
                at += name_words
                if after < end:
                    note(notes, 103, offset, end - after)
                row = scalars[N_OBJECTS]
                objects.kind[row] = 1 if kind == 6 else 0
                objects.type[row] = process if kind == 7 else 0
                objects.name[row] = name
                objects.offset[row] = offset
                objects.value[row] = words[pos + 1]
                objects.pid[row] = pid
                scalars[N_OBJECTS] = row + 1
                arg_table = OBJECTS
                arg_parent = scalars[T_OBJECTS]
                scalars[T_OBJECTS] += 1
        elif kind == 8:
            subtype = (word >> 60) & 15
            row = scalars[N_SCHED]
            if subtype == 0:
                outgoing = (word >> 28) & 0xFF
                incoming = (word >> 36) & 0xFF
                after = pos + 2 + (2 if outgoing == 0 else 0) + (2 if incoming == 0 else 0)
                fits = after <= end
                if fits:
                    at = pos + 2
                    if outgoing == 0:
                        sched.prev[row] = identity(
                            words[at], words[at + 1], offset, known, identities, scalars
                        )
                        at += 2
                    else:
                        entry = threads[outgoing]
                        if entry >> 32 == generation:
                            sched.prev[row] = entry & LOW32
                        else:
                            sched.prev[row] = absent_thread(
                                outgoing, offset, known, thread_map, threads, providers, notes
                            )
                    if incoming == 0:
                        sched.next[row] = identity(
                            words[at], words[at + 1], offset, known, identities, scalars
                        )
                    else:
                        entry = threads[incoming]
                        if entry >> 32 == generation:
                            sched.next[row] = entry & LOW32
                        else:
                            sched.next[row] = absent_thread(
                                incoming, offset, known, thread_map, threads, providers, notes
                            )
                    sched.cpu[row] = (word >> 16) & 0xFF
                    sched.state[row] = (word >> 24) & 15
                    sched.prev_priority[row] = (word >> 44) & 0xFF
                    sched.next_priority[row] = (word >> 52) & 0xFF
            elif subtype == 1 or subtype == 2:
                nargs = (word >> 16) & 15
                at = pos + (4 if subtype == 1 else 3)
                after = -1
                if at <= end:
                    after = args_fit(words, at, end, nargs)
                fits = after >= 0
                if fits:
                    sched.cpu[row] = (word >> 20) & 0xFFFF
                    sched.prev_priority[row] = -1
                    sched.next_priority[row] = -1
                    if subtype == 1:
                        if (word >> 40) & 0xFFFFF:
                            note(notes, 101, offset, word)
                        sched.state[row] = (word >> 36) & 15
                        sched.prev[row] = words[pos + 2]
                        sched.next[row] = words[pos + 3]
                    else:
                        if (word >> 36) & 0xFFFFFF:
                            note(notes, 101, offset, word)
                        sched.state[row] = 255
                        sched.prev[row] = -1
                        sched.next[row] = words[pos + 2]
                    arg_table = SCHED
                    arg_parent = scalars[T_SCHED]
            else:
                note(notes, 111, offset, subtype)
            if fits and subtype <= 2:
                if after < end:
                    note(notes, 103, offset, end - after)
                sched.kind[row] = subtype
                sched.offset[row] = offset
                sched.ticks[row] = words[pos + 1]
                if words[pos + 1] < 0:
                    scalars[LARGE_TICKS] = 1
                scalars[N_SCHED] = row + 1
                scalars[T_SCHED] += 1
        elif kind == 9:
            length = (word >> 16) & 0x7FFF
            thread_ref = (word >> 32) & 0xFF
            at = pos + 2 + (2 if thread_ref == 0 else 0)
            after = at + ((length + 7) >> 3)
            fits = after <= end
            if fits:
                if (word >> 40) or (word >> 31) & 1:
                    note(notes, 101, offset, word)
                if (length & 7) and streams[after - 1] >> (8 * (length & 7)):
                    note(notes, 102, offset, 0)
                if after < end:
                    note(notes, 103, offset, end - after)
                if thread_ref == 0:
                    thread = identity(
                        words[pos + 2], words[pos + 3], offset, known, identities, scalars
                    )
                else:
                    entry = threads[thread_ref]
                    if entry >> 32 == generation:
                        thread = entry & LOW32
                    else:
                        thread = absent_thread(
                            thread_ref, offset, known, thread_map, threads, providers, notes
                        )
                if not utf8_valid_bytes(streams, at, length):
                    note(notes, 107, offset, 0)
                row = scalars[N_LOGS]
                logs.thread[row] = thread
                logs.offset[row] = offset
                logs.ticks[row] = words[pos + 1]
                if words[pos + 1] < 0:
                    scalars[LARGE_TICKS] = 1
                logs.start[row] = at * 8
                logs.length[row] = length
                scalars[N_LOGS] = row + 1
                scalars[T_LOGS] += 1
        elif kind == 10:
            subtype = (word >> 16) & 15
            fits = profiler(words, streams, pos, size, thread_map, providers, notes)
        else:
            subtype = (word >> 40) & 15
            if (word >> 36) & 15 or subtype > 1:
                note(notes, 111, offset, (word >> 36) & 255)
                subtype = 15
            elif size < (4 if subtype == 0 else 3):
                fits = False
            else:
                second = words[pos + 1]
                category_ref = second & 0xFFFF
                name_ref = (second >> 16) & 0xFFFF
                thread_ref = 1
                if subtype == 0:
                    nargs = (second >> 32) & 15
                    thread_ref = (second >> 36) & 0xFF
                strings_at = pos + 2
                name_at = strings_at
                if category_ref & 0x8000:
                    name_at += ((category_ref & 0x7FFF) + 7) >> 3
                at = name_at
                if name_ref & 0x8000:
                    at += ((name_ref & 0x7FFF) + 7) >> 3
                threads_at = at + 1
                if subtype == 0:
                    at += 3 if thread_ref == 0 else 1
                after = -1
                if at <= end:
                    after = args_fit(words, at, end, nargs)
                if after < 0 or after >= end:
                    fits = False
                else:
                    length = words[after]
                    if length < 0 or length > (end - after - 1) * 8:
                        fits = False
                if fits:
                    if (word >> 44) or second >> (44 if subtype == 0 else 32):
                        note(notes, 101, offset, word)
                    if category_ref & 0x8000:
                        intern_checked(
                            streams,
                            strings_at,
                            category_ref & 0x7FFF,
                            offset,
                            107,
                            pool,
                            texts,
                            notes,
                        )
                    elif cache[category_ref] >> 32 != generation:
                        absent_string(
                            category_ref, offset, string_map, cache, providers, pool, texts, notes
                        )
                    if name_ref & 0x8000:
                        name = intern_checked(
                            streams, name_at, name_ref & 0x7FFF, offset, 107, pool, texts, notes
                        )
                    else:
                        entry = cache[name_ref]
                        if entry >> 32 == generation:
                            name = entry & LOW32
                        else:
                            name = absent_string(
                                name_ref, offset, string_map, cache, providers, pool, texts, notes
                            )
                    if subtype == 0:
                        if thread_ref == 0:
                            identity(
                                words[threads_at],
                                words[threads_at + 1],
                                offset,
                                known,
                                identities,
                                scalars,
                            )
                        elif threads[thread_ref] >> 32 != generation:
                            absent_thread(
                                thread_ref, offset, known, thread_map, threads, providers, notes
                            )
                    finish = after + 1 + ((length + 7) >> 3)
                    dirty = 0
                    if category_ref & 0x8000 and category_ref & 7:
                        dirty = streams[name_at - 1] >> (8 * (category_ref & 7))
                    if dirty == 0 and name_ref & 0x8000 and name_ref & 7:
                        dirty = streams[threads_at - 2] >> (8 * (name_ref & 7))
                    if dirty == 0 and length & 7:
                        dirty = streams[finish - 1] >> (8 * (length & 7))
                    if dirty:
                        note(notes, 102, offset, 0)
                    if finish < end:
                        note(notes, 103, offset, end - finish)
                    row = scalars[N_BLOBS]
                    blobs.type[row] = 0
                    blobs.name[row] = name
                    blobs.offset[row] = offset
                    blobs.start[row] = (after + 1) * 8
                    blobs.length[row] = length
                    scalars[N_BLOBS] = row + 1
                    arg_table = BLOBS
                    arg_parent = scalars[T_BLOBS]
                    scalars[T_BLOBS] += 1

        if not fits:
            note(notes, 4, offset, 0)
            state.kinds[KIND_DAMAGED] += 1
            record += 1
            pos = end
            continue
        if kind != 4:
            scalars[SLACK] -= 1

        # Arguments, whosever they are; that they fit is known.
        # Those of an event type that we do not know are only checked: their row is not kept.
        kept = 1 if arg_table >= 0 else 0
        for _ in range(nargs):
            word = words[at]
            arg_type = word & 15
            arg_size = (word >> 4) & 0xFFF
            ref = (word >> 16) & 0xFFFF
            here = at * 8
            inner = at + 1
            if ref < 0x8000:
                entry = cache[ref]
                if entry >> 32 == generation:
                    arg_name = entry & LOW32
                else:
                    arg_name = absent_string(
                        ref, here, string_map, cache, providers, pool, texts, notes
                    )
            else:
                length = ref & 0x7FFF
                arg_name = intern_checked(streams, inner, length, here, 107, pool, texts, notes)
                inner += (length + 7) >> 3
                if length & 7 and streams[inner - 1] >> (8 * (length & 7)):
                    note_once(notes, 102, unpadded, here, 0)
            high = (word >> 32) & LOW32
            value = 0
            if arg_type == 1:
                value = word >> 32
                high = 0
            elif arg_type == 2:
                value = high
                high = 0
            elif (3 <= arg_type <= 5) or arg_type == 7 or arg_type == 8:
                value = words[inner]
                inner += 1
            elif arg_type == 6:
                ref = high & 0xFFFF
                high >>= 16
                if ref < 0x8000:
                    entry = cache[ref]
                    if entry >> 32 == generation:
                        value = entry & LOW32
                    else:
                        value = absent_string(
                            ref, here, string_map, cache, providers, pool, texts, notes
                        )
                else:
                    length = ref & 0x7FFF
                    value = intern_checked(streams, inner, length, here, 107, pool, texts, notes)
                    inner += (length + 7) >> 3
                    if length & 7 and streams[inner - 1] >> (8 * (length & 7)):
                        note_once(notes, 102, unpadded, here, 0)
            elif arg_type == 9:
                value = high & 1
                high >>= 1
            elif arg_type == 10:
                length = high
                high = 0
                value = intern_checked(streams, inner, length, here, 0, pool, texts, notes)
                inner += (length + 7) >> 3
                if length & 7 and streams[inner - 1] >> (8 * (length & 7)):
                    note_once(notes, 102, unpadded, here, 0)
            elif arg_type > 10:
                note(notes, 110, here, arg_type)
                high = 0
                inner = at + arg_size
            if high:
                note_once(notes, 101, reserved, here, word)
            if inner < at + arg_size:
                note(notes, 114, here, at + arg_size - inner)
            args.table[n_args] = max(arg_table, 0)
            args.type[n_args] = arg_type
            args.name[n_args] = arg_name
            args.parent[n_args] = arg_parent
            args.offset[n_args] = offset
            args.value[n_args] = value
            types |= 1 << arg_type
            if kept == 0:
                pass
            elif arg_type == 7:
                if scalars[POINTERS]:
                    # of the event's process; a pointer outside any event has none
                    if thread >= 0:
                        found = map_get(state.objects, known.pid[thread] ^ SIGN, value)
                        if found >= 0:
                            row = scalars[N_ANNOTATIONS]
                            sparse.annotated[row] = n_args
                            sparse.annotation[row] = found
                            scalars[N_ANNOTATIONS] = row + 1
                            scalars[SLACK] -= 1
            elif arg_type == 8 and scalars[KOIDS]:
                found = map_get(state.objects, 0, value)
                if found >= 0:
                    row = scalars[N_ANNOTATIONS]
                    sparse.annotated[row] = n_args
                    sparse.annotation[row] = found
                    scalars[N_ANNOTATIONS] = row + 1
                    scalars[SLACK] -= 1
            if kind == 4:
                if subtype == 1:
                    if 1 <= arg_type <= 5:
                        row = scalars[N_COUNTERS]
                        sparse.counter_event[row] = n_events - 1
                        sparse.counter_arg[row] = n_args
                        scalars[N_COUNTERS] = row + 1
                        scalars[SLACK] -= 1
                        args.parent[n_args] = scalars[T_COUNTERS]
                        scalars[T_COUNTERS] += 1
                    else:
                        args.parent[n_args] = -1
                        note(notes, 307, here, arg_type)
            elif kind == 8:
                if arg_type == 1:
                    row = scalars[N_SCHED] - 1
                    if subtype == 1 and arg_name == CODE_INCOMING:
                        sched.next_priority[row] = value
                    elif subtype == 1 and arg_name == CODE_OUTGOING:
                        sched.prev_priority[row] = value
                    elif subtype == 2 and arg_name == CODE_WEIGHT:
                        sched.next_priority[row] = value
            elif kind == 7 and arg_type == 8 and arg_name == CODE_PROCESS:
                objects.pid[scalars[N_OBJECTS] - 1] = value
            n_args += kept
            at += arg_size

        # An object annotates what comes after it.
        if kind == 6 or kind == 7:
            row = scalars[N_OBJECTS] - 1
            if kind == 6:
                scalars[POINTERS] += 1
                map_put(state.objects, objects.pid[row] ^ SIGN, objects.value[row], name)
            else:
                scalars[KOIDS] += 1
                map_put(state.objects, 0, objects.value[row], name)
        if kind != 0 and (kind == 4 or kind == 8 or kind == 9):
            if not state.providers[scalars[PROVIDER] * PROVIDER_FIELDS + P_INITIALIZED]:
                state.providers[scalars[PROVIDER] * PROVIDER_FIELDS + P_INITIALIZED] = 2
                note(notes, 202, offset, 0)
                initialized = True
        state.kinds[kind * 16 + subtype] += 1
        record += 1
        pos = end
        if kind != 4:
            initialized = state.providers[scalars[PROVIDER] * PROVIDER_FIELDS + P_INITIALIZED] != 0
            # Once there are objects to annotate them, pointers and koids are not plain.
            if scalars[POINTERS]:
                tables[48 + 7] = -1
            if scalars[KOIDS]:
                tables[48 + 8] = -1
    scalars[RECORD] = record
    scalars[T_ENDS] = t_ends
    scalars[T_INSTANTS] = t_instants
    scalars[T_FLOWS] = t_flows
    state.kinds[64 + run_of] += run
    scalars[POS] = pos
    scalars[T_ARGS] += n_args - scalars[N_ARGS]
    scalars[TYPES_SEEN] = types
    scalars[N_EVENTS] = n_events
    scalars[N_ARGS] = n_args
    scalars[T_SLICES] = t_slices
    return status


# --- Matching ----------------------------------------------------------------------------------

LATEST = 0x7FFFFFFFFFFFFFFF


class Spans(NamedTuple):
    """What matching finds: per slice row, per end event, per flow row."""

    dur: I64
    """Length of the slice; -1 where it was never closed."""
    parent: I64
    depth: I32
    ends: I64
    """By ordinal of the end event: the row of the slice it closes, or -1."""
    flows: I64
    """By flow row: the row of the slice that encloses it, or -1."""


class Stacks(NamedTuple):
    """What matching carries from event to event: the open slices of each thread, innermost last.

    A thread's stack is ``open_slices`` of ``room`` entries from ``base`` in ``row`` and its
    like; it moves to the end of them, twice as large, when it is full.
    """

    base: I64
    room: I64
    open_slices: I64
    last: I64
    """By thread id: time of its latest event."""
    last_end: I64
    """By thread id: end of the complete event that began last, at that time."""
    row: I64
    start: I64
    offset: I64
    """Of a begin, as is ``start``: when, and where in the file."""
    end: I64
    """When a complete event ends; LATEST while an end event is awaited."""
    operations: Map
    """(pid, name) to the number of an asynchronous operation."""
    open: Map
    """(operation, id) to 1 + the node of its innermost open slice; 0 none."""
    async_row: I64
    async_start: I64
    async_offset: I64
    async_below: I64
    """By node: 1 + the node that encloses it."""
    scalars: I64


M_SLICES, M_ENDS, M_FLOWS, M_LAST_ASYNC, M_OPERATIONS, M_NODES, M_USED = 0, 1, 2, 3, 4, 5, 6
MATCH_SCALARS = 8


@kernel
def length_of(start, end):  # type: ignore[no-untyped-def]
    """Nanoseconds from ``start`` to ``end``; the most that 63 bits hold, where it is more.

    Times before a clock's base are negative.
    """
    if start < 0 and end > LATEST + start:
        return LATEST
    return end - start


@kernel
def match_async(event, kind, now, row, events, pids, max_depth, spans, stacks, notes):  # type: ignore[no-untyped-def]
    """Match an asynchronous begin (its slice is ``row``) or end (its ordinal is ``row``)."""
    scalars = stacks.scalars
    pid = pids[events.thread[event]]
    operation = map_get(stacks.operations, pid, events.name[event])
    if operation < 0:
        operation = scalars[M_OPERATIONS]
        scalars[M_OPERATIONS] = operation + 1
        map_put(stacks.operations, pid, events.name[event], operation)
    outer = max(map_get(stacks.open, operation, events.word[event]), 0)
    if kind == 5:
        depth = 0
        spans.parent[row] = -1
        if outer:
            spans.parent[row] = stacks.async_row[outer - 1]
            depth = min(spans.depth[stacks.async_row[outer - 1]] + 1, max_depth)
        spans.depth[row] = depth
        spans.dur[row] = -1
        node = scalars[M_NODES]
        scalars[M_NODES] = node + 1
        stacks.async_row[node] = row
        stacks.async_start[node] = now
        stacks.async_offset[node] = events.offset[event]
        stacks.async_below[node] = outer
        map_put(stacks.open, operation, events.word[event], node + 1)
    elif outer:
        spans.ends[row] = stacks.async_row[outer - 1]
        closed = stacks.async_row[outer - 1]
        spans.dur[closed] = length_of(stacks.async_start[outer - 1], now)
        map_put(stacks.open, operation, events.word[event], stacks.async_below[outer - 1])
    else:
        note(notes, 306, events.offset[event], 0)
        spans.ends[row] = -1


@kernel
def deepen(thread, stacks):  # type: ignore[no-untyped-def]
    """Move a thread's full stack to where there is room for twice as much."""
    old = stacks.base[thread]
    new = stacks.scalars[M_USED]
    for index in range(stacks.open_slices[thread]):
        stacks.row[new + index] = stacks.row[old + index]
        stacks.start[new + index] = stacks.start[old + index]
        stacks.offset[new + index] = stacks.offset[old + index]
        stacks.end[new + index] = stacks.end[old + index]
    stacks.base[thread] = new
    stacks.room[thread] = 2 * stacks.room[thread] + 8
    stacks.scalars[M_USED] = new + stacks.room[thread]


@kernel
def match(count, events, time, finish, order, refs, pids, max_depth, spans, stacks, notes):  # type: ignore[no-untyped-def]
    """Nest the slices of ``count`` events, and find what ends and flows belong to.

    ``time`` and ``finish`` are the events' times and a complete event's end, in ns. With
    ``order`` (event indices by time) ``refs`` gives each event's row or ordinal; with an empty
    one the events are taken as they stand, rows and ordinals going on from the last call, and
    the first event that steps back in time stops the run. Gives -1, or that event's index.
    """
    natural = len(order) == 0
    scalars = stacks.scalars
    slice_row = scalars[M_SLICES]
    end_row = scalars[M_ENDS]
    flow_row = scalars[M_FLOWS]
    last_async = scalars[M_LAST_ASYNC]
    for index in range(count):
        event = (index if natural else order[index]) & NOT_NEGATIVE
        kind = events.kind[event]
        now = time[event]
        if kind == 4 or kind == 2:
            thread = events.thread[event] & NOT_NEGATIVE
            row = (slice_row if natural else refs[event]) & NOT_NEGATIVE
            slice_row += 1
            end = LATEST
            dur = -1
            if kind == 4:
                end = min(finish[event], LATEST - 1)
                dur = length_of(now, end)
            if natural:
                last = stacks.last[thread]
                if now <= last:
                    if now < last or (kind == 4 and end > stacks.last_end[thread]):
                        return event
                else:
                    stacks.last[thread] = now
                stacks.last_end[thread] = end
            place = (stacks.base[thread] + stacks.open_slices[thread]) & NOT_NEGATIVE
            deep = stacks.open_slices[thread]
            top = (place - 1) & NOT_NEGATIVE
            while deep > 0 and stacks.end[top] <= now:
                deep -= 1
                place -= 1
                top = (place - 1) & NOT_NEGATIVE
            parent = -1
            if deep > 0:
                parent = stacks.row[top]
                if kind == 4 and end > stacks.end[top]:
                    note(notes, 305, events.offset[event], 0)
            spans.parent[row] = parent
            if deep > max_depth:
                spans.depth[row] = max_depth
                note(notes, 308, events.offset[event], 0)
            else:
                spans.depth[row] = deep
            if kind == 4 and dur < 0:
                note(notes, 301, events.offset[event], 0)
                spans.dur[row] = -1
                stacks.open_slices[thread] = deep
                continue
            spans.dur[row] = dur
            if deep >= stacks.room[thread]:
                stacks.open_slices[thread] = deep
                deepen(thread, stacks)
                place = stacks.base[thread] + deep
            place &= NOT_NEGATIVE
            stacks.row[place] = row
            if kind == 2:
                stacks.start[place] = now
                stacks.offset[place] = events.offset[event]
            stacks.end[place] = end
            stacks.open_slices[thread] = deep + 1
            continue
        if kind < 2 or kind == 6 or kind > 10:
            continue
        if 5 <= kind <= 7:
            if natural:
                if now < last_async:
                    return event
                last_async = now
            row = 0
            if kind == 5:
                row = slice_row if natural else refs[event]
                slice_row += 1
            else:
                row = end_row if natural else refs[event]
                end_row += 1
            match_async(event, kind, now, row, events, pids, max_depth, spans, stacks, notes)
            continue
        thread = events.thread[event] & NOT_NEGATIVE
        if natural:
            if now < stacks.last[thread]:
                return event
            if now > stacks.last[thread]:
                stacks.last[thread] = now
                stacks.last_end[thread] = LATEST
        base = stacks.base[thread]
        deep = stacks.open_slices[thread]
        if kind == 3:
            row = end_row if natural else refs[event]
            end_row += 1
            while deep > 0 and stacks.end[base + deep - 1] <= now:
                deep -= 1
            stacks.open_slices[thread] = deep
            # A complete event that goes on beyond the end of what encloses it ends there.
            while deep > 0 and stacks.end[base + deep - 1] != LATEST:
                deep -= 1
            if deep == 0:
                note(notes, 302, events.offset[event], 0)
                spans.ends[row] = -1
            else:
                closed = stacks.row[base + deep - 1]
                spans.ends[row] = closed
                spans.dur[closed] = length_of(stacks.start[base + deep - 1], now)
                stacks.open_slices[thread] = deep - 1
        else:
            row = flow_row if natural else refs[event]
            flow_row += 1
            while deep > 0 and stacks.end[base + deep - 1] < now:
                deep -= 1
            spans.flows[row] = -1 if deep == 0 else stacks.row[base + deep - 1]
    scalars[M_SLICES] = slice_row
    scalars[M_ENDS] = end_row
    scalars[M_FLOWS] = flow_row
    scalars[M_LAST_ASYNC] = last_async
    return -1


@kernel
def longest_first(order, count, events, time, finish):  # type: ignore[no-untyped-def]
    """Within each stretch of equal times, put a thread's complete events longest first.

    They stay in the places that complete events of that thread had; equal ones keep file order.
    """
    start = 0
    while start < count:
        stop = start + 1
        while stop < count and time[order[stop]] == time[order[start]]:
            stop += 1
        for index in range(start + 1, stop):
            # Insertion sort: stretches are short; a long one of one thread is a hostile file's.
            place = index
            if events.kind[order[index]] != 4 or index - start > 4096:
                continue
            before = index - 1
            while before >= start:
                other = order[before]
                if events.kind[other] == 4 and events.thread[other] == events.thread[order[place]]:
                    if finish[other] >= finish[order[place]]:
                        break
                    order[before], order[place] = order[place], order[before]
                    place = before
                before -= 1
        start = stop
