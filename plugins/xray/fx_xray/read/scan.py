"""The hot loops: framing of XRay traces, their events in order of time, and the calls these make.

Framing (``frame_fdr``, ``frame_basic``) looks at every record once: it finds what is damaged, and
the stretches of sound records that belong together. ``decode_fdr`` and ``decode_basic`` take
stretches that are sound, so that they need not look; they merge threads by time. ``match`` makes
calls of events. All can stop and go on anywhere: their state lies in arrays that the caller keeps.
They are written without looking at ``records.py``, which decodes the same bytes for clarity; tests
hold the two against each other. Numbers are int64 (their bits as they are), so that the
plain-Python body and the compiled one compute the same. Times are kept ``biased`` where they are
compared: by 2^63, which makes the order of int64 that of uint64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from fxframework.io.jit import kernel

# Arrays of shape (n,); the name says the dtype, which numba checks.
I64 = NDArray[Any]
I32 = NDArray[Any]
U32 = NDArray[Any]
U16 = NDArray[Any]
U8 = NDArray[Any]

# --- Numbers ------------------------------------------------------------------------------------
LATEST = 0x7FFFFFFFFFFFFFFF
SIGN = -9223372036854775808
LOW32 = 0xFFFFFFFF
SCATTER = -7046029254386353131
"""An odd factor whose products differ most in their high bits."""
NS_PER_SECOND = 1_000_000_000
NO_CPU = 0xFFFF

# --- Kinds, as layout has them ------------------------------------------------------------------
ENTER, EXIT, TAIL_EXIT, ENTER_ARG = 0, 1, 2, 3
GARBAGE_RUN = 8
CUT_RECORD_JUMP = 1 << 40
ARGUMENT, CUSTOM, TYPED = 4, 5, 6
"""Kinds of events: those of functions, then these."""
BACK = 8
"""Beside the kind of a function's event: its time is before that of its thread's last one."""
(
    NEW_BUFFER, END_OF_BUFFER, NEW_CPU, TSC_WRAP, WALL_TIME, CUSTOM_EVENT, CALL_ARGUMENT,
    BUFFER_EXTENTS, TYPED_EVENT, PID, FUNCTION, PADDING, UNKNOWN, DAMAGED, FILE_HEADER, START,
) = range(16)  # fmt: skip
"""Kinds of records: those of metadata, then ours."""
KIND_NAMES = (
    "new_buffer", "end_of_buffer", "new_cpu", "tsc_wrap", "wall_time", "custom_event",
    "call_argument", "buffer_extents", "typed_event", "pid", "function", "padding", "unknown",
    "damaged", "file_header",
)  # fmt: skip
LITTLE, BIG, BIG_LSB = 0, 1, 2
"""Byte orders, as layout lists them."""

FEW = 8
"""Threads up to which the next one is looked for among all of them."""
FINDING_FIELDS = 4
CODES = 1000
"""Findings have numbers below this."""
RECORD_FINDINGS = 12
"""Findings that a record can have when it is framed."""


class Notes(NamedTuple):
    """Where findings go."""

    findings: I64
    """[code, offset, record, value] of each finding kept."""
    counts: I64
    """[findings kept, limit per code], then a count per code."""


class Stretches(NamedTuple):
    """Sound records that follow each other in one block, or in basic mode in one thread."""

    start: I64
    stop: I64
    block: I64
    """Index of the block; in basic mode the place in ``IdAllocator``."""
    flags: U8
    tsc: I64
    """Of a record that was cut in half: its mended time."""


class Blocks(NamedTuple):
    """Buffers of the flight data recorder, in file order."""

    start: I64
    stop: I64
    pid: I64
    tid: I64
    flags: I64
    seconds: I64
    micros: I64
    tsc: I64
    """Time of its first record."""
    records: I64


INHABITED, WALLED, HAS_PID, HAS_THREAD, SETTLED, TIMELESS, EARLY = 1, 2, 4, 8, 16, 32, 64
"""Of the ``flags`` of a block: it has more records than its extents; a wall time, a process, a
thread; something that belongs to the thread has been read; it begins without a time; an argument
or an event of its own time stands before its first one."""
CUT, FIRST, ORPHAN = 1, 2, 4
"""Of ``flags``: one record that was cut in half; the first one of a block; begins with an argument
of no call."""


class Plan(NamedTuple):
    """Stretches in the order in which their threads wrote them; those of a thread together."""

    start: I64
    stop: I64
    flags: U8
    base: I64
    """Biased: the time of a cut record, or of a block before its first NewCPUId."""


class Heads(NamedTuple):
    """Where each thread stands: shape (threads,)."""

    next: I64
    """The stretch of the plan after the one that it stands in."""
    last: I64
    """The one behind its last."""
    at: I64
    stop: I64
    base: I64
    """Biased time of the record before."""
    cpu: I64
    function: I64
    """Of the function record before in the block; -1 none."""
    latest: I64
    """Biased time of its last function record before what came last."""
    head: I64
    """Biased time of its next event."""
    heap: I64
    """Threads that have events left: a heap with the least head first, or where there are FEW, in
    order."""
    used: I64
    """[threads in ``heap``]"""


class Events(NamedTuple):
    """Events in order of time, as the kernels fill them; see ``columns.Events``."""

    kind: U8
    function: U32
    tsc: I64
    cpu: U16
    thread: I32
    offset: I64
    value: I64
    size: I32


class Slices(NamedTuple):
    """Columns of `slices` that are known when a call is entered."""

    offset: I64
    ticks: I64
    thread: I32
    function: U32
    depth: I32
    parent: I64
    cpu: U16
    entry: U8


class Spans(NamedTuple):
    """Columns of `slices` that are known when a call is left, by row."""

    ticks: I64
    exit: U8


class Instants(NamedTuple):
    """Raw columns of `instants`."""

    offset: I64
    ticks: I64
    thread: I32
    kind: U8
    """Of the event: an exit, or a custom or typed event."""
    function: U32
    """Function id, or type of the event."""
    cpu: U16


class Args(NamedTuple):
    """Raw columns of `args`."""

    offset: I64
    of_instant: U8
    parent: I64
    name: I32
    """Number of the argument, or one of DATA and EVENT_TYPE."""
    value: I64
    """The value; of DATA the place of the payload."""
    size: I32
    """Bytes of the payload."""


DATA, EVENT_TYPE = -1, -2
UNWOUND = 3
"""How a call ended that is not known to have been left."""


class Calls(NamedTuple):
    """Open calls, and what else matching carries from event to event."""

    nodes: I64
    """Open calls, NODE_FIELDS each; a free one has the next free one in ``below``."""
    top: I64
    """By thread: the innermost open call; -1 none."""
    depth: I64
    """By thread."""
    shallow: I64
    """By thread: the open call under the first one of depth DEEP."""
    deep_key: I64
    """An open-addressed map of (thread, function) to open calls of at least depth DEEP."""
    deep_open: I64
    counts: I64
    """Entries by function id, as far as it goes."""
    count_key: I64
    """An open-addressed map of function id + 1, beyond ``counts``, to entries."""
    count_of: I64
    scalars: I64


NODE_ROW, NODE_FUNCTION, NODE_TSC, NODE_OFFSET, NODE_BELOW = range(5)
NODE_FIELDS = 5
DEEP = 64
"""Calls this deep are counted by function, so that the exit of a function that is not open is told
without going down the whole stack."""

# --- Scalars of framing -------------------------------------------------------------------------
(
    AT, RECORD, LIMIT, BOUNDED, SIZE, UNTIL, VERSION, ORDER, PAGE, BY_EXTENTS, LAST, LAST_OFFSET,
    BLOCK, BASE, TIMED, GARBAGE, CALLED, CALLED_ID, N_BLOCKS, N_STRETCHES, OPEN, MEND, CUTS,
    N_ENTRIES, N_EVENTS, N_ARGUMENTS, MAX_RECORD, ROOM_FINDINGS, RUN, RUN_FLAGS,
) = range(30)  # fmt: skip
FRAME_SCALARS = 32
# --- Scalars of matching --------------------------------------------------------------------------
(
    M_NODES, M_FREE, M_DEEP, M_SLICES, M_INSTANTS, M_ARGS, M_FIRST_SLICE, M_FIRST_INSTANT,
    M_FIRST_ARG, M_UNMATCHED, M_UNWOUND, M_COUNTED, M_AGAIN, M_MAX_DEPTH, M_LOW, M_HIGH,
    M_ROW, M_ROW_OF_INSTANT, M_ARGUMENT,
) = range(19)  # fmt: skip
MATCH_SCALARS = 24
"""M_LOW and M_HIGH: the least and the greatest time, biased. M_ROW: what an argument belongs to;
its arguments so far are M_ARGUMENT."""


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
def wrapped(value):  # type: ignore[no-untyped-def]
    """The low 64 bits of a number, as int64."""
    low = value & LATEST
    if (value >> 63) & 1:
        low = low + SIGN
    return low


@kernel
def field(words, start, offset, nbytes, big):  # type: ignore[no-untyped-def]
    """The ``nbytes`` bytes at byte ``offset`` of a record of at least 16; int64 where they are 8.

    ``words`` has a word at every byte.
    """
    at = start + offset
    skipped = 0
    if offset > 8 and offset < 16:
        at = start + 8
        skipped = offset - 8
    word = words[at]
    value = 0
    if big:
        for index in range(nbytes):
            value = value << 8 | (word >> (8 * (skipped + index)) & 0xFF)
        if nbytes == 8:
            value = wrapped(value)
    elif nbytes == 8:
        value = word
    else:
        value = (word >> (8 * skipped)) & ((1 << (8 * nbytes)) - 1)
    return value


@kernel
def signed32(value):  # type: ignore[no-untyped-def]
    """32 bits as a signed number."""
    return value - ((value & 0x80000000) << 1)


@kernel
def place_of(key, keys):  # type: ignore[no-untyped-def]
    """Place of a key in an open-addressed map, or the free one (key 0) where it belongs."""
    mask = len(keys) - 1
    slot = ((key * SCATTER) >> 32) & mask
    while keys[slot] and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def refill(keys, values, new_keys, new_values):  # type: ignore[no-untyped-def]
    """Enter all of a map into an empty, larger one."""
    for slot in range(len(keys)):
        if keys[slot]:
            place = place_of(keys[slot], new_keys)
            new_keys[place] = keys[slot]
            new_values[place] = values[slot]


# --- Threads by time -----------------------------------------------------------------------------


@kernel
def sift(heads):  # type: ignore[no-untyped-def]
    """Put the first thread of the heap where it belongs."""
    heap = heads.heap
    head = heads.head
    used = heads.used[0]
    place = 0
    thread = heap[0]
    key = head[thread]
    while True:
        child = 2 * place + 1
        if child >= used:
            break
        below = heap[child]
        if child + 1 < used:
            other = heap[child + 1]
            if head[other] < head[below] or (head[other] == head[below] and other < below):
                child += 1
                below = other
        if head[below] > key or (head[below] == key and below > thread):
            break
        heap[place] = below
        place = child
    heap[place] = thread


@kernel
def drop(place, heads):  # type: ignore[no-untyped-def]
    """Take a thread that has no events left out of the heap."""
    heap = heads.heap
    used = heads.used[0] - 1
    heads.used[0] = used
    if used > FEW:
        heap[0] = heap[used]
        sift(heads)
        return
    for at in range(place, used):
        heap[at] = heap[at + 1]
    if used == FEW:
        # They were a heap so far, and are in order of their numbers from here on.
        for at in range(1, used):
            thread = heap[at]
            to = at
            while to > 0 and heap[to - 1] > thread:
                heap[to] = heap[to - 1]
                to -= 1
            heap[to] = thread


@kernel
def first_of_few(heads):  # type: ignore[no-untyped-def]
    """Place in the heap of the thread with the least head; and up to when it comes first.

    Without a heap: which thread comes first is hard to guess, and a branch on it is slow.
    """
    best = second = LATEST
    place = other = -1
    for at in range(heads.used[0]):
        head = heads.head[heads.heap[at]]
        less = head < best or place < 0
        between = not less and (head < second or other < 0)
        second = best if less else (head if between else second)
        other = place if less else (at if between else other)
        best = head if less else best
        place = at if less else place
    if 0 <= other < place and second > SIGN:
        second -= 1
    return place, second


@kernel
def bound_of(heads):  # type: ignore[no-untyped-def]
    """Up to which biased time the first thread's events come before those of all others."""
    used = heads.used[0]
    bound = LATEST
    if used > 1:
        other = heads.heap[1]
        if used > 2:
            third = heads.heap[2]
            if heads.head[third] < heads.head[other] or (
                heads.head[third] == heads.head[other] and third < other
            ):
                other = third
        bound = heads.head[other]
        if other < heads.heap[0] and bound > SIGN:
            bound -= 1
    return bound


# --- Framing of the flight data recorder's records ------------------------------------------------


@kernel
def begins(data, at, kind, scalars):  # type: ignore[no-untyped-def]
    """Whether the first byte of a kind of metadata record stands at ``at``."""
    if at >= scalars[SIZE]:
        return False
    if scalars[ORDER] == BIG:
        return data[at] == 0x80 | kind
    return data[at] == kind << 1 | 1


@kernel
def sound_extents(words, data, at, scalars):  # type: ignore[no-untyped-def]
    """Whether extents stand at ``at`` that do not run past the end of the file."""
    left = scalars[SIZE] - at - 16
    if left < 0 or not begins(data, at, BUFFER_EXTENTS, scalars):
        return False
    nbytes = field(words, at, 1, 8, scalars[ORDER] != LITTLE)
    return 0 <= nbytes <= left


@kernel
def next_extents(words, data, at, scalars):  # type: ignore[no-untyped-def]
    """Where the next buffer begins that makes sense; the end of the file where none does."""
    size = scalars[SIZE]
    for start in range(at, size):
        if sound_extents(words, data, start, scalars):
            behind = start + 16
            if behind == size or begins(data, behind, NEW_BUFFER, scalars):
                return start
    return size


@kernel
def end_stretch(at, stretches, scalars):  # type: ignore[no-untyped-def]
    """What was sound up to ``at`` is a stretch."""
    if 0 <= scalars[OPEN] < at:
        row = scalars[N_STRETCHES]
        stretches.start[row] = scalars[OPEN]
        stretches.stop[row] = at
        stretches.block[row] = scalars[BLOCK]
        stretches.flags[row] = 0
        stretches.tsc[row] = 0
        scalars[N_STRETCHES] = row + 1
    scalars[OPEN] = -1


@kernel
def lose(code, at, end, stretches, scalars, kinds, notes, value):  # type: ignore[no-untyped-def]
    """The bytes up to ``end`` are no record; something new begins behind them."""
    note(notes, code, at, scalars[RECORD], value)
    end_stretch(at, stretches, scalars)
    scalars[GARBAGE] = 0
    scalars[CALLED] = 0
    kinds[DAMAGED] += 1
    scalars[RECORD] += 1
    scalars[AT] = end


@kernel
def unbind(scalars):  # type: ignore[no-untyped-def]
    """Believe no limit but the end of the file."""
    scalars[PAGE] = 0
    scalars[LIMIT] = scalars[SIZE]
    scalars[BOUNDED] = 0


@kernel
def turn_page(at, scalars):  # type: ignore[no-untyped-def]
    """Put the limit of version 1 where the buffer that begins at ``at`` ends by its size."""
    left = scalars[SIZE] - at
    scalars[BOUNDED] = 1 if 0 < scalars[PAGE] <= left else 0
    scalars[LIMIT] = at + (scalars[PAGE] if scalars[BOUNDED] else left)


@kernel
def close_block(at, blocks, stretches, scalars, notes):  # type: ignore[no-untyped-def]
    """End the block, as something else begins or the file ends; ``at`` is behind it."""
    end_stretch(at, stretches, scalars)
    block = scalars[BLOCK]
    if block < 0:
        return
    last = scalars[LAST]
    if last in (NEW_BUFFER, WALL_TIME, PID):
        note(notes, 202, scalars[LAST_OFFSET], scalars[RECORD] - 1, last)
    if last != START and not scalars[BY_EXTENTS]:
        note(notes, 112, scalars[LAST_OFFSET], scalars[RECORD] - 1, 0)
    leave_block(at, blocks, scalars)


@kernel
def leave_block(at, blocks, scalars):  # type: ignore[no-untyped-def]
    """There is no block from ``at`` on."""
    block = scalars[BLOCK]
    blocks.stop[block] = at
    blocks.records[block] += scalars[RECORD]
    scalars[BLOCK] = -1
    scalars[CALLED] = 0


@kernel
def open_block(at, blocks, scalars):  # type: ignore[no-untyped-def]
    """The index of the block, of a new one where there is none."""
    block = scalars[BLOCK]
    if block >= 0:
        return block
    block = scalars[N_BLOCKS]
    scalars[N_BLOCKS] = block + 1
    scalars[BLOCK] = block
    blocks.start[block] = blocks.stop[block] = at
    blocks.records[block] = -scalars[RECORD]
    blocks.pid[block] = blocks.tid[block] = blocks.flags[block] = 0
    blocks.seconds[block] = blocks.micros[block] = blocks.tsc[block] = 0
    scalars[LAST] = START
    scalars[TIMED] = 0
    scalars[CALLED] = 0
    return block


@kernel
def may_follow(last, kind):  # type: ignore[no-untyped-def]
    """Whether a kind of record may follow another in a block (notes §2.1)."""
    if last == START:
        return kind == BUFFER_EXTENTS or kind == NEW_BUFFER
    if last == BUFFER_EXTENTS:
        return kind == NEW_BUFFER
    if last == NEW_BUFFER:
        return kind == WALL_TIME
    if last == WALL_TIME:
        return kind == PID or kind == NEW_CPU
    if last == PID:
        return kind == NEW_CPU
    if kind == CALL_ARGUMENT:
        return last == FUNCTION or last == CALL_ARGUMENT
    return kind in (NEW_CPU, TSC_WRAP, CUSTOM_EVENT, TYPED_EVENT, FUNCTION, END_OF_BUFFER)


@kernel
def follow(kind, at, scalars, notes):  # type: ignore[no-untyped-def]
    """Hold a record against the one before it in its block."""
    last = scalars[LAST]
    if not may_follow(last, kind):
        note(notes, 201, at, scalars[RECORD], last << 8 | kind)
    scalars[LAST] = kind
    scalars[LAST_OFFSET] = at


@kernel
def settle(block, at, blocks, scalars, notes):  # type: ignore[no-untyped-def]
    """Decide what the thread of a block is, as something of it is read."""
    flags = blocks.flags[block]
    if not flags & SETTLED:
        if not flags & HAS_THREAD:
            note(notes, 204, at, scalars[RECORD], 0)
        blocks.flags[block] = flags | SETTLED


@kernel
def advance(delta, block, at, blocks, scalars, notes):  # type: ignore[no-untyped-def]
    """A record counts its time from the one before (notes §2.2)."""
    if scalars[TIMED]:
        scalars[BASE] = wrapped(scalars[BASE] + delta)
    elif not blocks.flags[block] & TIMELESS:
        note(notes, 203, at, scalars[RECORD], 0)
        blocks.flags[block] |= TIMELESS


@kernel
def crossing(words, data, at, end, stretches, scalars, kinds, notes):  # type: ignore[no-untyped-def]
    """Whether what runs past the limit, to ``end``, is lost; if not, there is another limit now."""
    limit = scalars[LIMIT]
    code = 0
    if limit == scalars[SIZE]:
        code = 102
    elif not scalars[BY_EXTENTS]:
        if begins(data, limit, NEW_BUFFER, scalars):
            code = 101
    elif sound_extents(words, data, limit, scalars):
        code = 101
    else:
        note(notes, 108, at, scalars[RECORD], 0)
    if code:
        lose(code, at, limit, stretches, scalars, kinds, notes, end - at)
        return True
    unbind(scalars)
    return False


@kernel
def buffer_end(data, end, scalars):  # type: ignore[no-untyped-def]
    """Where the space of a version-1 buffer ends whose records end at ``end``."""
    size = scalars[SIZE]
    follows = begins(data, end, NEW_BUFFER, scalars)
    if scalars[BY_EXTENTS]:
        if follows or begins(data, end, BUFFER_EXTENTS, scalars):
            return end
        return scalars[LIMIT]
    page = scalars[PAGE]
    if page:
        used = end - 32
        boundary = 32 + (used + page - 1) // page * page
        if boundary == size or begins(data, boundary, NEW_BUFFER, scalars):
            return boundary
        if boundary < size and not follows:
            return boundary
        unbind(scalars)
    return end if follows else size


@kernel
def skip_space(words, data, at, end, scalars, kinds, notes):  # type: ignore[no-untyped-def]
    """The space up to ``end`` behind the end of a buffer of version 1 is one record."""
    if at >= end:
        return
    every = 0
    place = at
    while place + 8 <= end:
        every |= words[place]
        place += 8
    while place < end:
        every |= data[place]
        place += 1
    if every:
        note(notes, 113, at, scalars[RECORD], end - at)
    scalars[GARBAGE] = 0
    kinds[PADDING] += 1
    scalars[RECORD] += 1
    scalars[AT] = end


@kernel
def cut_time(words, at, kind, base):  # type: ignore[no-untyped-def]
    """The biased time of a record whose second half was overwritten; ``base`` where it was not.

    ``base`` is the time before, with which no such record's time is worth mending.
    """
    word = words[at + 8]
    if word & 1:
        sound = (word >> 1) & 0x7F <= PID
    else:
        sound = word & 8 == 0 and word & 0xFFFFFFF0 != 0
    if not sound:
        return LATEST
    bits = 40 if kind == NEW_CPU else 56
    mask = (1 << bits) - 1
    low = (words[at] >> (64 - bits)) & mask
    # Bias changes none of the low bits.
    ahead = (low - base) & mask
    if ahead >> 36 or base > LATEST - ahead:
        return LATEST
    return base + ahead


@kernel
def take_clock(  # type: ignore[no-untyped-def]
    words, at, kind, tsc, block, blocks, stretches, scalars, notes
):
    """Take the time that a record says; gives the bytes that it has."""
    nbytes = 16
    time = tsc ^ SIGN
    base = scalars[BASE]
    if scalars[TIMED]:
        far = wrapped(time - base) if time >= base else wrapped(base - time)
        if far < 0 or far > CUT_RECORD_JUMP:
            mended = LATEST
            if scalars[ORDER] == LITTLE:
                mended = cut_time(words, at, kind, base)
            if mended == LATEST:
                note(notes, 206, at, scalars[RECORD], wrapped(time - base))
            else:
                note(notes, 205, at, scalars[RECORD], wrapped(mended ^ SIGN))
                scalars[CUTS] += 1
                if scalars[MEND]:
                    time = mended
                    nbytes = 8
                    end_stretch(at, stretches, scalars)
                    row = scalars[N_STRETCHES]
                    stretches.start[row] = at
                    stretches.stop[row] = at + 8
                    stretches.block[row] = block
                    stretches.flags[row] = CUT
                    stretches.tsc[row] = mended
                    scalars[N_STRETCHES] = row + 1
    if not scalars[TIMED] and not blocks.flags[block] & TIMELESS:
        blocks.tsc[block] = tsc
    scalars[TIMED] = 1
    scalars[BASE] = time
    return nbytes


@kernel
def frame_metadata(  # type: ignore[no-untyped-def]
    words, data, at, kind, blocks, stretches, scalars, kinds, notes
):
    """Frame the metadata record of a known kind at ``at``, whose 16 bytes are there."""
    big = scalars[ORDER] != LITTLE
    version = scalars[VERSION]
    if kind == CUSTOM_EVENT or kind == TYPED_EVENT:
        size = signed32(field(words, at, 1, 4, big))
        if size < 0:
            lose(106, at, scalars[LIMIT], stretches, scalars, kinds, notes, size)
            return
        end = at + 16 + size
        while end > scalars[LIMIT]:
            if crossing(words, data, at, end, stretches, scalars, kinds, notes):
                return
        scalars[GARBAGE] = 0
        if version < 3 and kind == TYPED_EVENT:
            note(notes, 111, at, scalars[RECORD], kind)
        if size == 0:
            note(notes, 107, at, scalars[RECORD], 0)
        block = open_block(at, blocks, scalars)
        follow(kind, at, scalars, notes)
        settle(block, at, blocks, scalars, notes)
        scalars[CALLED] = 0
        if version >= 5:
            delta = signed32(field(words, at, 5, 4, big))
            advance(delta, block, at, blocks, scalars, notes)
        if scalars[OPEN] < 0:
            scalars[OPEN] = at
        blocks.flags[block] |= INHABITED if scalars[TIMED] else INHABITED | EARLY
        if scalars[MAX_RECORD] and end - at > scalars[MAX_RECORD]:
            note(notes, 114, at, scalars[RECORD], end - at)
            kinds[DAMAGED] += 1
        else:
            kinds[kind] += 1
            scalars[N_EVENTS] += 1
        scalars[RECORD] += 1
        scalars[AT] = end
        return
    scalars[GARBAGE] = 0
    if (version < 2 and kind == BUFFER_EXTENTS) or (version < 3 and kind == PID):
        note(notes, 111, at, scalars[RECORD], kind)
    if kind == END_OF_BUFFER and version >= 2:
        note(notes, 110, at, scalars[RECORD], 0)
        end_stretch(at, stretches, scalars)
        scalars[CALLED] = 0
        kinds[kind] += 1
        scalars[RECORD] += 1
        scalars[AT] = at + 16
        return
    if kind == NEW_BUFFER:
        block = scalars[BLOCK]
        if block < 0 or blocks.flags[block] & (SETTLED | HAS_THREAD):
            close_block(at, blocks, stretches, scalars, notes)
    elif kind == BUFFER_EXTENTS:
        close_block(at, blocks, stretches, scalars, notes)
        scalars[BY_EXTENTS] = 1
        scalars[PAGE] = 0
        left = scalars[SIZE] - at - 16
        nbytes = field(words, at, 1, 8, big)
        scalars[BOUNDED] = 1 if 0 <= nbytes <= left else 0
        if not scalars[BOUNDED]:
            note(notes, 103, at, scalars[RECORD], wrapped(nbytes - left))
            nbytes = left
        scalars[LIMIT] = at + 16 + nbytes
    block = open_block(at, blocks, scalars)
    follow(kind, at, scalars, notes)
    nbytes = 16
    if kind == CALL_ARGUMENT:
        settle(block, at, blocks, scalars, notes)
        if not scalars[CALLED]:
            note(notes, 207, at, scalars[RECORD], 0)
        scalars[N_ARGUMENTS] += 1
        if not scalars[TIMED]:
            blocks.flags[block] |= EARLY
    else:
        scalars[CALLED] = 0
        if kind == NEW_BUFFER:
            blocks.tid[block] = signed32(field(words, at, 1, 4, big))
            blocks.flags[block] |= HAS_THREAD
        elif kind == NEW_CPU:
            tsc = field(words, at, 3, 8, big)
            nbytes = take_clock(words, at, kind, tsc, block, blocks, stretches, scalars, notes)
        elif kind == TSC_WRAP:
            tsc = field(words, at, 1, 8, big)
            nbytes = take_clock(words, at, kind, tsc, block, blocks, stretches, scalars, notes)
        elif kind == WALL_TIME:
            if not blocks.flags[block] & (WALLED | SETTLED):
                blocks.seconds[block] = field(words, at, 1, 8, big)
                blocks.micros[block] = signed32(field(words, at, 9, 4, big))
                blocks.flags[block] |= WALLED
        elif kind == PID and not blocks.flags[block] & SETTLED:
            blocks.pid[block] = signed32(field(words, at, 1, 4, big))
            blocks.flags[block] |= HAS_PID
    if kind != BUFFER_EXTENTS:
        blocks.flags[block] |= INHABITED
    kinds[kind] += 1
    scalars[RECORD] += 1
    scalars[AT] = at + nbytes
    if nbytes == 16 and scalars[OPEN] < 0:
        scalars[OPEN] = at
    if kind == END_OF_BUFFER:
        end_stretch(at + 16, stretches, scalars)
        leave_block(at + 16, blocks, scalars)
        end = buffer_end(data, at + 16, scalars)
        skip_space(words, data, at + 16, end, scalars, kinds, notes)


@kernel
def frame_fdr(words, data, blocks, stretches, scalars, kinds, notes):  # type: ignore[no-untyped-def]
    """Frame on, up to the byte that the scalars say at least, if there is room for all of it.

    ``words`` has a word at every byte of ``data``.
    """
    order = scalars[ORDER]
    while scalars[AT] < scalars[UNTIL]:
        if (
            scalars[N_BLOCKS] + 2 > len(blocks.start)
            or scalars[N_STRETCHES] + 4 > len(stretches.start)
            or notes.counts[0] + RECORD_FINDINGS > scalars[ROOM_FINDINGS]
        ):
            break
        at = scalars[AT]
        if scalars[GARBAGE] >= GARBAGE_RUN:
            scalars[GARBAGE] = 0
            end = scalars[LIMIT]
            if not scalars[BOUNDED]:
                end = next_extents(words, data, at, scalars)
            if end > at:
                lose(109, at, end, stretches, scalars, kinds, notes, end - at)
                continue
        if at == scalars[LIMIT]:
            if scalars[BY_EXTENTS]:
                if not begins(data, at, BUFFER_EXTENTS, scalars):
                    note(notes, 108, at, scalars[RECORD], 0)
                unbind(scalars)  # extents bound what follows them
            elif scalars[BLOCK] < 0 or begins(data, at, NEW_BUFFER, scalars):
                close_block(at, blocks, stretches, scalars, notes)
                turn_page(at, scalars)
            else:
                unbind(scalars)
        first = 0 + data[at]  # int64, where a byte shifted would be uint64
        meta = first >> 7 if order == BIG else first & 1
        end = at + (16 if meta else 8)
        lost = False
        while end > scalars[LIMIT] and not lost:
            lost = crossing(words, data, at, end, stretches, scalars, kinds, notes)
        if lost:
            continue
        if meta:
            kind = first & 0x7F if order == BIG else first >> 1
            if kind <= PID:
                frame_metadata(words, data, at, kind, blocks, stretches, scalars, kinds, notes)
                continue
            note(notes, 105, at, scalars[RECORD], kind)
            end_stretch(at, stretches, scalars)
            scalars[GARBAGE] += 1
            scalars[CALLED] = 0
            kinds[UNKNOWN] += 1
            scalars[RECORD] += 1
            scalars[AT] = end
            continue
        word = words[at]
        delta = (word >> 32) & LOW32
        if order != LITTLE:
            delta = field(words, at, 4, 4, True)
            word = field(words, at, 0, 4, True)
            if order == BIG:
                word = (word >> 28 & 7) << 1
        if word & 8:
            note(notes, 104, at, scalars[RECORD], (word >> 1) & 7)
            end_stretch(at, stretches, scalars)
            scalars[GARBAGE] += 1
            scalars[CALLED] = 0
            kinds[DAMAGED] += 1
            scalars[RECORD] += 1
            scalars[AT] = end
            continue
        block = open_block(at, blocks, scalars)
        follow(FUNCTION, at, scalars, notes)
        settle(block, at, blocks, scalars, notes)
        advance(delta, block, at, blocks, scalars, notes)
        blocks.flags[block] |= INHABITED
        if scalars[OPEN] < 0:
            scalars[OPEN] = at
        scalars[GARBAGE] = 0
        scalars[CALLED] = 1
        exits = ((word >> 1) ^ (word >> 2)) & 1
        count = 1
        at = end
        if order == LITTLE and scalars[TIMED]:
            # Most of a trace: functions behind functions.
            base = scalars[BASE]
            stop = min(scalars[LIMIT], scalars[UNTIL]) - 8
            while at <= stop:
                word = words[at]
                if word & 9:
                    break
                base += (word >> 32) & LOW32
                if base > LATEST:
                    base = wrapped(base)
                exits += ((word >> 1) ^ (word >> 2)) & 1
                at += 8
            count += (at - end) >> 3
            scalars[BASE] = base
            scalars[LAST_OFFSET] = at - 8
        kinds[FUNCTION] += count
        scalars[N_ENTRIES] += count - exits
        scalars[RECORD] += count
        scalars[AT] = at


@kernel
def frame_end(blocks, stretches, scalars, notes):  # type: ignore[no-untyped-def]
    """The file ends."""
    close_block(scalars[SIZE], blocks, stretches, scalars, notes)


# --- Events of the flight data recorder -----------------------------------------------------------


@kernel
def decode_fdr(  # type: ignore[no-untyped-def]
    words, data, version, max_record, all_columns, plan, heads, events
):
    """Fill ``events`` from where the threads stand, merged by time; gives how many there are.

    ``words`` has a word at every byte of ``data``, which is little-endian. Fewer events than there
    is room for are given at the end alone. Where not ``all_columns`` are asked for, ``value`` and
    ``size`` of functions stay as they are; ``thread`` does where there is one alone.
    """
    count = 0
    room = len(events.kind)
    many = len(heads.head) > 1
    while count < room and heads.used[0]:
        place = 0
        few = heads.used[0] <= FEW
        if few:
            place, bound = first_of_few(heads)
        else:
            bound = bound_of(heads)
        thread = heads.heap[place]
        at = heads.at[thread]
        stop = heads.stop[thread]
        base = heads.base[thread]
        cpu = heads.cpu[thread]
        function = heads.function[thread]
        latest = heads.latest[thread]
        following = heads.next[thread]
        done = False
        head = SIGN
        while True:
            if at >= stop:
                if following == heads.last[thread]:
                    done = True
                    break
                flags = plan.flags[following]
                at = plan.start[following]
                stop = plan.stop[following]
                if function >= 0:
                    latest = base
                    function = -1
                if flags & FIRST:
                    base = plan.base[following]
                    cpu = NO_CPU
                if flags & CUT:
                    base = plan.base[following]
                    if data[at] == NEW_CPU << 1 | 1:
                        cpu = (words[at] >> 8) & 0xFFFF
                    at = stop
                following += 1
                continue
            word = words[at]
            if word & 1 == 0:
                time = base + ((word >> 32) & LOW32)
                if time > LATEST:
                    time = wrapped(time)
                if time > bound or count == room:
                    head = time
                    break
                base = time
                kind = (word >> 1) & 3
                events.offset[count] = at
                at += 8
                if at < stop and data[at] == CALL_ARGUMENT << 1 | 1 and kind == ENTER:
                    kind = ENTER_ARG
                if function < 0 and time < latest:
                    kind |= BACK
                function = (word >> 4) & 0xFFFFFFF
                events.kind[count] = kind
                events.function[count] = function
                events.tsc[count] = base ^ SIGN
                events.cpu[count] = cpu
                if many:
                    events.thread[count] = thread
                if all_columns:
                    events.value[count] = 0
                    events.size[count] = 0
                count += 1
                continue
            kind = (word >> 1) & 0x7F
            if kind != CALL_ARGUMENT and function >= 0:
                latest = base
                function = -1
            if kind == NEW_CPU:
                cpu = (word >> 8) & 0xFFFF
                base = words[at + 3] ^ SIGN
            elif kind == TSC_WRAP:
                base = words[at + 1] ^ SIGN
            elif kind == CALL_ARGUMENT:
                if function < 0 and base > bound:
                    head = base
                    break
                if count == room:
                    # Before any other event, where it belongs to the one before.
                    head = base if function < 0 else SIGN
                    break
                events.kind[count] = ARGUMENT
                events.function[count] = max(function, 0)
                events.tsc[count] = base ^ SIGN
                events.cpu[count] = cpu
                events.thread[count] = thread
                events.offset[count] = at
                events.value[count] = words[at + 1]
                events.size[count] = -1 if function < 0 else 0
                count += 1
            elif kind == CUSTOM_EVENT or kind == TYPED_EVENT:
                size = (word >> 8) & LOW32
                second = words[at + 8]
                where = cpu if version >= 5 else NO_CPU
                if version >= 5:
                    time = base + signed32((word >> 40) & 0xFFFFFF | (second & 0xFF) << 24)
                    if time > LATEST or time < SIGN:
                        time = wrapped(time)
                    order = time
                else:
                    time = words[at + 5] ^ SIGN
                    # A time of its own, which may be nonsense, keeps its place in the thread.
                    order = time if base <= time and (time - base) >> 40 == 0 else base
                    if kind == CUSTOM_EVENT and version == 4:
                        where = (second >> 40) & 0xFFFF
                if order > bound or count == room:
                    head = order
                    break
                if version >= 5:
                    base = time
                at += 16 + size
                if max_record and 16 + size > max_record:
                    continue
                what = 0
                if kind == TYPED_EVENT:
                    what = (second >> 8 if version >= 5 else second >> 40) & 0xFFFF
                events.kind[count] = CUSTOM if kind == CUSTOM_EVENT else TYPED
                events.function[count] = what
                events.tsc[count] = time ^ SIGN
                events.cpu[count] = where
                events.thread[count] = thread
                events.offset[count] = at - size - 16
                events.value[count] = at - size
                events.size[count] = size
                count += 1
                continue
            at += 16
        heads.at[thread] = at
        heads.stop[thread] = stop
        heads.base[thread] = base
        heads.cpu[thread] = cpu
        heads.function[thread] = function
        heads.latest[thread] = latest
        heads.next[thread] = following
        heads.head[thread] = head
        if done:
            drop(place, heads)
        elif not few:
            sift(heads)
    return count


@kernel
def normalise(words, data, out, version, order, start, stop):  # type: ignore[no-untyped-def]
    """Write the sound records of a stretch into ``out`` as a little-endian machine would have.

    Every record keeps its place; payloads and padding stay as they are.
    """
    at = start
    while at < stop:
        first = 0 + data[at]  # int64, where a byte shifted would be uint64
        meta = first >> 7 if order == BIG else first & 1
        if not meta:
            word = field(words, at, 0, 4, True)
            if order == BIG:
                word = (word >> 28 & 7) << 1 | (word & 0xFFFFFFF) << 4
            word &= ~1
            for index in range(4):
                out[at + index] = (word >> (8 * index)) & 0xFF
                out[at + 4 + index] = data[at + 7 - index]
            at += 8
            continue
        kind = first & 0x7F if order == BIG else first >> 1
        out[at] = kind << 1 | 1
        # The bytes of each field, from its last one on.
        one, one_bytes, two, two_bytes, three, three_bytes = 1, 0, 1, 0, 1, 0
        size = 0
        if kind in (NEW_BUFFER, PID):
            one_bytes = 4
        elif kind in (TSC_WRAP, CALL_ARGUMENT, BUFFER_EXTENTS):
            one_bytes = 8
        elif kind == NEW_CPU:
            one_bytes, two, two_bytes = 2, 3, 8
        elif kind == WALL_TIME:
            one_bytes, two, two_bytes = 8, 9, 4
        elif kind in (CUSTOM_EVENT, TYPED_EVENT):
            size = field(words, at, 1, 4, True)
            one_bytes, two, two_bytes = 4, 5, 4 if version >= 5 else 8
            if kind == TYPED_EVENT:
                three, three_bytes = 9 if version >= 5 else 13, 2
            elif version == 4:
                three, three_bytes = 13, 2
        for index in range(one_bytes):
            out[at + one + index] = data[at + one + one_bytes - 1 - index]
        for index in range(two_bytes):
            out[at + two + index] = data[at + two + two_bytes - 1 - index]
        for index in range(three_bytes):
            out[at + three + index] = data[at + three + three_bytes - 1 - index]
        at += 16 + size


# --- Basic mode -----------------------------------------------------------------------------------


@kernel
def end_run(at, stretches, scalars):  # type: ignore[no-untyped-def]
    """What one thread wrote up to ``at`` is a stretch."""
    if 0 <= scalars[OPEN] < at:
        row = scalars[N_STRETCHES]
        stretches.start[row] = scalars[OPEN]
        stretches.stop[row] = at
        stretches.block[row] = scalars[RUN]
        stretches.flags[row] = scalars[RUN_FLAGS]
        stretches.tsc[row] = 0
        scalars[N_STRETCHES] = row + 1
    scalars[OPEN] = -1


@kernel
def frame_basic(words, data, stretches, scalars, kinds, notes):  # type: ignore[no-untyped-def]
    """Frame on, up to the byte that the scalars say at least, if there is room for all of it.

    ``words`` has a word at every byte of ``data``. The ``block`` of a stretch is its process, times
    2^32, and its thread.
    """
    size = scalars[SIZE]
    version = scalars[VERSION]
    big = scalars[ORDER] != LITTLE
    while scalars[AT] < scalars[UNTIL]:
        if (
            scalars[N_STRETCHES] + 2 > len(stretches.start)
            or notes.counts[0] + RECORD_FINDINGS > scalars[ROOM_FINDINGS]
        ):
            break
        at = scalars[AT]
        record = scalars[RECORD]
        scalars[RECORD] = record + 1
        scalars[AT] = min(at + 32, size)
        code = 0
        value = 0
        what = FUNCTION
        if size - at < 32:
            code, value = 401, size - at
        else:
            value = field(words, at, 0, 2, big)
            if value > 1:
                code = 402
            elif value:
                what = CALL_ARGUMENT
            elif data[at + 3] > ENTER_ARG:
                code, value = 403, data[at + 3]
        if code:
            note(notes, code, at, record, value)
            end_run(at, stretches, scalars)
            scalars[CALLED] = 0
            kinds[DAMAGED] += 1
            continue
        kinds[what] += 1
        function = field(words, at, 4, 4, big)
        people = 16 if what == FUNCTION else 8
        thread = field(words, at, people, 4, big)
        process = field(words, at, people + 4, 4, big) if version >= 3 else 0
        run = wrapped(process << 32 | thread)
        flags = 0
        if what == FUNCTION:
            if data[at + 3] == TAIL_EXIT and version < 2:
                note(notes, 405, at, record, 0)
            if data[at + 3] in (ENTER, ENTER_ARG):
                scalars[N_ENTRIES] += 1
            scalars[CALLED] = 1
            scalars[CALLED_ID] = function
        else:
            scalars[N_ARGUMENTS] += 1
            if not scalars[CALLED] or function != scalars[CALLED_ID] or run != scalars[RUN]:
                note(notes, 404, at, record, function)
                scalars[CALLED] = 0
                flags = ORPHAN
        if scalars[OPEN] < 0 or run != scalars[RUN] or flags:
            end_run(at, stretches, scalars)
            scalars[OPEN] = at
            scalars[RUN] = run
            scalars[RUN_FLAGS] = flags


@kernel
def decode_basic(words, data, big, plan, heads, events):  # type: ignore[no-untyped-def]
    """Fill ``events`` from where the threads stand, merged by time; gives how many there are.

    As ``decode_fdr``.
    """
    count = 0
    room = len(events.kind)
    while count < room and heads.used[0]:
        place = 0
        few = heads.used[0] <= FEW
        if few:
            place, bound = first_of_few(heads)
        else:
            bound = bound_of(heads)
        thread = heads.heap[place]
        at = heads.at[thread]
        stop = heads.stop[thread]
        base = heads.base[thread]
        cpu = heads.cpu[thread]
        function = heads.function[thread]
        following = heads.next[thread]
        done = False
        head = SIGN
        while True:
            if at >= stop:
                if following == heads.last[thread]:
                    done = True
                    break
                at = plan.start[following]
                stop = plan.stop[following]
                function = -1
                cpu = NO_CPU
                following += 1
                continue
            if field(words, at, 0, 2, big):
                if function < 0 and base > bound:
                    head = base
                    break
                if count == room:
                    head = base if function < 0 else SIGN
                    break
                kind = ARGUMENT
                value = field(words, at, 16, 8, big)
                size = -1 if function < 0 else 0
            else:
                time = field(words, at, 8, 8, big) ^ SIGN
                if time > bound or count == room:
                    head = time
                    break
                kind = 0 + data[at + 3]
                cpu = 0 + data[at + 2]
                function = field(words, at, 4, 4, big)
                value = size = 0
                if kind == ENTER and at + 32 < stop and field(words, at + 32, 0, 2, big):
                    kind = ENTER_ARG
                if time < base:
                    kind |= BACK
                base = time
            events.kind[count] = kind
            events.function[count] = max(function, 0)
            events.tsc[count] = base ^ SIGN
            events.cpu[count] = cpu
            events.thread[count] = thread
            events.offset[count] = at
            events.value[count] = value
            events.size[count] = size
            count += 1
            at += 32
        heads.at[thread] = at
        heads.stop[thread] = stop
        heads.base[thread] = base
        heads.cpu[thread] = cpu
        heads.function[thread] = function
        heads.next[thread] = following
        heads.head[thread] = head
        if done:
            drop(place, heads)
        elif not few:
            sift(heads)
    return count


# --- Calls ----------------------------------------------------------------------------------------


@kernel
def count_entry(function, calls):  # type: ignore[no-untyped-def]
    """Count an entry of a function beyond the table of counts."""
    key = function + 1
    place = place_of(key, calls.count_key)
    if not calls.count_key[place]:
        calls.count_key[place] = key
        calls.scalars[M_COUNTED] += 1
    calls.count_of[place] += 1


@kernel
def push_deep(thread, function, calls):  # type: ignore[no-untyped-def]
    """Count an open call of at least depth DEEP."""
    key = (thread << 32 | function) + 1
    place = place_of(key, calls.deep_key)
    if not calls.deep_key[place]:
        calls.deep_key[place] = key
        calls.scalars[M_DEEP] += 1
    calls.deep_open[place] += 1


@kernel
def pop_deep(thread, function, calls):  # type: ignore[no-untyped-def]
    """An open call of at least depth DEEP has ended."""
    calls.deep_open[place_of((thread << 32 | function) + 1, calls.deep_key)] -= 1


@kernel
def find_open(thread, function, calls):  # type: ignore[no-untyped-def]
    """The innermost open call of a function on a thread; -1 where there is none."""
    nodes = calls.nodes
    node = calls.top[thread]
    if calls.depth[thread] > DEEP:
        place = place_of((thread << 32 | function) + 1, calls.deep_key)
        if not calls.deep_key[place] or not calls.deep_open[place]:
            node = calls.shallow[thread]
    while node >= 0 and nodes[NODE_FIELDS * node + NODE_FUNCTION] != function:
        node = nodes[NODE_FIELDS * node + NODE_BELOW]
    return node


@kernel
def leave(thread, tsc, how, calls, spans):  # type: ignore[no-untyped-def]
    """The innermost open call of a thread ends; gives its row."""
    nodes = calls.nodes
    node = calls.top[thread]
    at = NODE_FIELDS * node
    row = nodes[at + NODE_ROW]
    spans.ticks[row] = max(wrapped(tsc - nodes[at + NODE_TSC]), 0)
    spans.exit[row] = how
    calls.top[thread] = nodes[at + NODE_BELOW]
    calls.depth[thread] -= 1
    if calls.depth[thread] >= DEEP:
        pop_deep(thread, nodes[at + NODE_FUNCTION], calls)
    nodes[at + NODE_BELOW] = calls.scalars[M_FREE]
    calls.scalars[M_FREE] = node
    return row


@kernel
def leave_other(thread, function, tsc, how, calls, spans, notes):  # type: ignore[no-untyped-def]
    """A function ends that is not the innermost open call; gives its row, -1 where it is not open.

    What was called within it ends too.
    """
    node = find_open(thread, function, calls)
    if node < 0:
        return -1
    while calls.top[thread] != node:
        above = NODE_FIELDS * calls.top[thread]
        note(notes, 303, calls.nodes[above + NODE_OFFSET], -1, 0)
        calls.scalars[M_UNWOUND] += 1
        leave(thread, tsc, UNWOUND, calls, spans)
    return leave(thread, tsc, how, calls, spans)


@kernel
def match_event(  # type: ignore[no-untyped-def]
    index, kind, thread, events, calls, instants, args
):
    """Make the rows of an event that is neither an entry nor an exit."""
    scalars = calls.scalars
    row = scalars[M_ARGS]
    args.offset[row] = events.offset[index]
    args.value[row] = events.value[index]
    if kind == ARGUMENT:
        args.size[row] = 0
        if events.size[index] < 0:
            args.parent[row] = -1
            args.of_instant[row] = 0
            args.name[row] = 0
        else:
            args.parent[row] = scalars[M_ROW]
            args.of_instant[row] = scalars[M_ROW_OF_INSTANT]
            args.name[row] = scalars[M_ARGUMENT]
            scalars[M_ARGUMENT] += 1
        scalars[M_ARGS] = row + 1
        return
    place = scalars[M_INSTANTS]
    instants.offset[place] = events.offset[index]
    instants.ticks[place] = events.tsc[index]
    instants.thread[place] = thread
    instants.kind[place] = kind
    instants.function[place] = events.function[index]
    instants.cpu[place] = events.cpu[index]
    scalars[M_INSTANTS] = place + 1
    place += scalars[M_FIRST_INSTANT]
    args.of_instant[row] = 1
    args.parent[row] = place
    args.name[row] = DATA
    args.size[row] = events.size[index]
    row += 1
    if kind == TYPED:
        args.offset[row] = events.offset[index]
        args.of_instant[row] = 1
        args.parent[row] = place
        args.name[row] = EVENT_TYPE
        args.value[row] = events.function[index]
        args.size[row] = 0
        row += 1
    scalars[M_ARGS] = row


@kernel
def match(events, count, calls, slices, spans, instants, args, notes):  # type: ignore[no-untyped-def]
    """Make rows of the first ``count`` events. The caller has made room for that many of each.

    ``slices``, ``instants`` and ``args`` begin where the scalars say; ``spans`` goes by row. Where
    there is one thread alone, its number is left out of ``slices``.
    """
    scalars = calls.scalars
    nodes = calls.nodes
    counts = calls.counts
    counted = len(counts)
    n_slices = scalars[M_SLICES]
    first_slice = scalars[M_FIRST_SLICE]
    max_depth = scalars[M_MAX_DEPTH]
    again = scalars[M_AGAIN]
    free = scalars[M_FREE]
    used = scalars[M_NODES]
    low = scalars[M_LOW]
    high = scalars[M_HIGH]
    called = scalars[M_ROW]
    of_instant = scalars[M_ROW_OF_INSTANT]
    many = len(calls.top) > 1
    thread = 0
    top = calls.top[0]
    depth = calls.depth[0]
    for index in range(count):
        kind = 0 + events.kind[index]
        if many:
            # Threads take turns so often that to guess whether this is another one costs more.
            thread = 0 + events.thread[index]
            top = calls.top[thread]
            depth = calls.depth[thread]
        tsc = events.tsc[index]
        time = tsc ^ SIGN
        low = min(low, time)
        high = max(high, time)
        if kind & BACK:
            note(notes, 304, events.offset[index], -1, 0)
            kind &= BACK - 1
        if kind == ENTER or kind == ENTER_ARG:
            function = 0 + events.function[index]
            offset = events.offset[index]
            node = free
            if node >= 0:
                free = nodes[NODE_FIELDS * node + NODE_BELOW]
            else:
                node = used
                used += 1
            parent = -1
            if top >= 0:
                parent = nodes[NODE_FIELDS * top + NODE_ROW]
            called = first_slice + n_slices
            of_instant = 0
            place = NODE_FIELDS * node
            nodes[place + NODE_ROW] = called
            nodes[place + NODE_FUNCTION] = function
            nodes[place + NODE_TSC] = tsc
            nodes[place + NODE_OFFSET] = offset
            nodes[place + NODE_BELOW] = top
            shown = depth
            if depth >= DEEP:
                if depth == DEEP:
                    calls.shallow[thread] = top
                push_deep(thread, function, calls)
                if depth > max_depth:
                    note(notes, 306, offset, -1, depth)
                    shown = max_depth
            top = node
            depth += 1
            slices.offset[n_slices] = offset
            slices.ticks[n_slices] = tsc
            slices.function[n_slices] = function
            slices.depth[n_slices] = shown
            slices.parent[n_slices] = parent
            slices.cpu[n_slices] = events.cpu[index]
            slices.entry[n_slices] = kind
            if many:
                slices.thread[n_slices] = thread
                calls.top[thread] = top
                calls.depth[thread] = depth
            n_slices += 1
            if not again:
                spans.ticks[called] = -1
                spans.exit[called] = 0
            if function < counted:
                counts[function] += 1
            else:
                count_entry(function, calls)
            scalars[M_ARGUMENT] = 0
        elif kind == EXIT or kind == TAIL_EXIT:
            function = 0 + events.function[index]
            place = NODE_FIELDS * top
            scalars[M_ARGUMENT] = 0
            if top >= 0 and nodes[place + NODE_FUNCTION] == function:
                called = nodes[place + NODE_ROW]
                of_instant = 0
                spans.ticks[called] = max(wrapped(tsc - nodes[place + NODE_TSC]), 0)
                spans.exit[called] = kind
                node = top
                top = nodes[place + NODE_BELOW]
                nodes[place + NODE_BELOW] = free
                free = node
                depth -= 1
                if depth >= DEEP:
                    pop_deep(thread, function, calls)
                if many:
                    calls.top[thread] = top
                    calls.depth[thread] = depth
                continue
            calls.top[thread] = top
            calls.depth[thread] = depth
            scalars[M_FREE] = free
            called = leave_other(thread, function, tsc, kind, calls, spans, notes)
            top = calls.top[thread]
            depth = calls.depth[thread]
            free = scalars[M_FREE]
            of_instant = 0
            if called < 0:
                note(notes, 301, events.offset[index], -1, function)
                scalars[M_UNMATCHED] += 1
                place = scalars[M_INSTANTS]
                instants.offset[place] = events.offset[index]
                instants.ticks[place] = tsc
                instants.thread[place] = thread
                instants.kind[place] = kind
                instants.function[place] = function
                instants.cpu[place] = events.cpu[index]
                scalars[M_INSTANTS] = place + 1
                called = scalars[M_FIRST_INSTANT] + place
                of_instant = 1
        else:
            scalars[M_ROW] = called
            scalars[M_ROW_OF_INSTANT] = of_instant
            match_event(index, kind, thread, events, calls, instants, args)
    if not many:
        calls.top[0] = top
        calls.depth[0] = depth
    scalars[M_SLICES] = n_slices
    scalars[M_FREE] = free
    scalars[M_NODES] = used
    scalars[M_LOW] = low
    scalars[M_HIGH] = high
    scalars[M_ROW] = called
    scalars[M_ROW_OF_INSTANT] = of_instant


@kernel
def roomy(count, calls, instants, args, notes):  # type: ignore[no-untyped-def]
    """Whether there is room for all that ``count`` events may make, but for their slices."""
    scalars = calls.scalars
    return (
        scalars[M_INSTANTS] + count <= len(instants.offset)
        and scalars[M_ARGS] + 2 * count <= len(args.offset)
        and NODE_FIELDS * (scalars[M_NODES] + count) <= len(calls.nodes)
        and 2 * (scalars[M_DEEP] + count) <= len(calls.deep_key)
        and 2 * (scalars[M_COUNTED] + count) <= len(calls.count_key)
        and FINDING_FIELDS * (notes.counts[0] + scalars[M_NODES] + 2 * count) <= len(notes.findings)
    )


@kernel
def run_fdr(  # type: ignore[no-untyped-def]
    words, data, version, max_record, plan, heads, events, calls, slices, spans, instants, args,
    notes,
):  # fmt: skip
    """Decode and match to the end; gives 1 where there is too little room to go on."""
    room = len(events.kind)
    while roomy(room, calls, instants, args, notes):
        count = decode_fdr(words, data, version, max_record, False, plan, heads, events)
        if count == 0:
            return 0
        match(events, count, calls, slices, spans, instants, args, notes)
    return 1


@kernel
def run_basic(  # type: ignore[no-untyped-def]
    words, data, big, plan, heads, events, calls, slices, spans, instants, args, notes
):
    """Decode and match to the end; gives 1 where there is too little room to go on."""
    room = len(events.kind)
    while roomy(room, calls, instants, args, notes):
        count = decode_basic(words, data, big, plan, heads, events)
        if count == 0:
            return 0
        match(events, count, calls, slices, spans, instants, args, notes)
    return 1


# --- Nanoseconds ----------------------------------------------------------------------------------


@kernel
def divided(ticks, rate, parts):  # type: ignore[no-untyped-def]
    """Nanoseconds of uint64 ticks, rounded down, and what is left of them: ``parts[0]``, ``[1]``.

    The nanoseconds are LATEST where int64 does not hold them. ``rate`` is a uint64 too.
    """
    whole = 0
    left = ticks
    if rate > 0 and ticks >= 0:
        whole = ticks // rate
        left = ticks - whole * rate
    else:
        # As uint64: bit by bit, where the sign would be in the way.
        left = 0
        for bit in range(63, -1, -1):
            carry = left < 0
            left = wrapped(left << 1 | (ticks >> bit) & 1)
            whole = whole << 1
            if carry or left ^ SIGN >= rate ^ SIGN:
                left = wrapped(left - rate)
                whole += 1
    fraction = 0
    if 0 < rate <= LATEST // NS_PER_SECOND:
        fraction = left * NS_PER_SECOND // rate
        left = left * NS_PER_SECOND - fraction * rate
    else:
        rest = left
        left = 0
        for bit in range(29, -1, -1):
            carry = left < 0
            left = wrapped(left << 1)
            fraction = fraction << 1
            if carry or left ^ SIGN >= rate ^ SIGN:
                left = wrapped(left - rate)
                fraction += 1
            if (NS_PER_SECOND >> bit) & 1:
                # Both are less than the rate.
                room = wrapped(rate - rest)
                if left ^ SIGN >= room ^ SIGN:
                    left = wrapped(left - room)
                    fraction += 1
                else:
                    left = wrapped(left + rest)
    if whole < 0 or whole > (LATEST - fraction) // NS_PER_SECOND:
        parts[0] = LATEST
        parts[1] = -1
    else:
        parts[0] = whole * NS_PER_SECOND + fraction
        parts[1] = left


@kernel
def window(rate):  # type: ignore[no-untyped-def]
    """Ticks that ``near`` goes beyond what has been divided; 0 where it cannot."""
    if rate <= 0 or rate >= 1 << 60:
        return 0
    factor = (NS_PER_SECOND << 32) // rate
    return min(1 << 32, (1 << 62) // max(factor, 1))


@kernel
def times(ticks, rate, parts, out):  # type: ignore[no-untyped-def]
    """Nanoseconds of uint64 ticks, rounded down; LATEST where int64 does not hold them.

    Times follow each other closely, so that few of them are divided; the others are counted from
    the one that was. ``parts`` has room for two numbers.
    """
    reach = window(rate)
    factor = 0
    if reach:
        factor = (NS_PER_SECOND << 32) // rate
    base = base_ns = left = near = 0
    for row in range(len(out)):
        tick = ticks[row]
        ahead = tick - base
        if not 0 <= ahead < near:
            divided(tick, rate, parts)
            base = tick
            base_ns = parts[0]
            left = parts[1]
            near = reach
            if base_ns >= LATEST - (1 << 31) or -(1 << 32) <= base < 0:
                near = 0  # beyond it lies what int64, or uint64, does not hold
            out[row] = base_ns
            continue
        ns = (ahead * factor) >> 32
        over = left + ahead * NS_PER_SECOND - ns * rate
        while over >= rate:
            over -= rate
            ns += 1
        out[row] = base_ns + ns


@kernel
def spans_of(ticks, more, rate, parts, starts, out):  # type: ignore[no-untyped-def]
    """As ``times``, into ``starts``; into ``out`` the nanoseconds of ``more`` ticks from there on.

    These are the difference of both ends, each rounded down; -1 where ``more`` is negative.
    """
    reach = window(rate)
    factor = 0
    if reach:
        factor = (NS_PER_SECOND << 32) // rate
    base = base_ns = left = near = 0
    for row in range(len(out)):
        tick = ticks[row]
        length = more[row]
        ahead = tick - base
        if not 0 <= ahead < near:
            divided(tick, rate, parts)
            base = tick
            base_ns = parts[0]
            left = parts[1]
            near = reach
            if base_ns >= LATEST - (1 << 31) or -(1 << 32) <= base < 0:
                near = 0  # beyond it lies what int64, or uint64, does not hold
            ahead = 0
        ns = (ahead * factor) >> 32
        over = left + ahead * NS_PER_SECOND - ns * rate
        while over >= rate and near:
            over -= rate
            ns += 1
        starts[row] = base_ns + ns
        if length < near:
            if length < 0:
                out[row] = -1
                continue
            ns = (length * factor) >> 32
            over += length * NS_PER_SECOND - ns * rate
            while over >= rate:
                over -= rate
                ns += 1
            out[row] = ns
        elif length < 0:
            out[row] = -1
        else:
            divided(wrapped(tick + length), rate, parts)
            out[row] = max(parts[0] - starts[row], 0)


@kernel
def pick(table, keys, out):  # type: ignore[no-untyped-def]
    """What a table has for each key."""
    for row in range(len(out)):
        out[row] = table[keys[row]]
