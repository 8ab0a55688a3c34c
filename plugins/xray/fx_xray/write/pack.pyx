# cython: boundscheck=False, wraparound=False, show_performance_hints=False
# Bounds are not checked: columns are of equal length, and room is made before a record is
# written.
"""The pack: encodes columns of events as records, without a Python object per event.

Time stamps are kept exactly, also where records around them in the original file are gone.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint8_t

from fxframework.kernels.fields cimport Field, field, get, put
from fxframework.kernels.rows cimport Loop

from fx_xray import format as wire
from fxframework.io import words
from fxframework.io.words import Bits
from fxframework.kernels.buffers import full

cdef int64_t ARGUMENT = wire.ARGUMENT, BASIC_ARGUMENT = wire.BASIC_ARGUMENT
cdef int64_t BASIC_MAX_CPU = wire.BASIC_MAX_CPU, BASIC_PID_VERSION = wire.BASIC_PID_VERSION
cdef int64_t BASIC_TAIL_EXIT_VERSION = wire.BASIC_TAIL_EXIT_VERSION, CPU_AT = wire.CPU_AT
cdef int64_t CPU_TSC_AT = wire.CPU_TSC_AT, CUSTOM = wire.CUSTOM
cdef int64_t CUT_REACH_BITS = wire.CUT_REACH_BITS, CUT_RECORD_JUMP = wire.CUT_RECORD_JUMP
cdef int64_t DONE = wire.DONE, ENTER_ARG = wire.ENTER_ARG
cdef int64_t EVENT_CPU_VERSION = wire.EVENT_CPU_VERSION
cdef int64_t EVENT_DELTA_VERSION = wire.EVENT_DELTA_VERSION, EXIT = wire.EXIT
cdef int64_t EXTENTS_VERSION = wire.EXTENTS_VERSION, FIRST_ARGUMENT = wire.FIRST_ARGUMENT
cdef int64_t FIRST_CUSTOM_EVENT = wire.FIRST_CUSTOM_EVENT
cdef int64_t FIRST_END_OF_BUFFER = wire.FIRST_END_OF_BUFFER, FIRST_EXTENTS = wire.FIRST_EXTENTS
cdef int64_t FIRST_NEW_BUFFER = wire.FIRST_NEW_BUFFER, FIRST_NEW_CPU = wire.FIRST_NEW_CPU
cdef int64_t FIRST_PID = wire.FIRST_PID, FIRST_TSC_WRAP = wire.FIRST_TSC_WRAP
cdef int64_t FIRST_TYPED_EVENT = wire.FIRST_TYPED_EVENT, FIRST_WALL_TIME = wire.FIRST_WALL_TIME
cdef int64_t FLUSH = wire.FLUSH, FUNCTION_BYTES = wire.FUNCTION_BYTES
cdef int64_t FUNCTION_DELTA_AT = wire.FUNCTION_DELTA_AT, GROW = wire.GROW, LATEST = wire.LATEST
cdef int64_t LOW32 = wire.LOW32, MAX_FUNCTION_ID = wire.MAX_FUNCTION_ID
cdef int64_t METADATA_BYTES = wire.METADATA_BYTES, NOTHING = wire.NOTHING, NO_CPU = wire.NO_CPU
cdef int64_t PID_VERSION = wire.PID_VERSION, SIGN = wire.SIGN, SIZE_AT = wire.SIZE_AT
cdef int64_t TAIL_EXIT = wire.TAIL_EXIT, TYPED = wire.TYPED, WRAP_TSC_AT = wire.WRAP_TSC_AT
cdef Field BASIC_CPU = field(wire.BASIC_CPU), BASIC_KIND = field(wire.BASIC_KIND)
cdef Field FUNCTION_ID = field(wire.FUNCTION_ID), FUNCTION_KIND = field(wire.FUNCTION_KIND)
cdef Field IS_METADATA = field(wire.IS_METADATA), KIND_2 = field(wire.KIND_2)
cdef Field BYTE_0 = field(words.BYTE_0), BYTE_1 = field(words.BYTE_1), BYTE_2 = field(words.BYTE_2)
cdef Field BYTE_3 = field(words.BYTE_3), HIGH_HALF = field(words.HIGH_HALF)

__all__ = ["DROPPED", "LEFT_OUT", "BasicPack", "EventColumns", "FdrPack", "ThreadBuffers"]

cdef enum:
    ONE = 1
    BYTE = 8
    WORD_BITS = 64
    LOW16 = 0xFFFF
# Of a time stamp: its last bits in a NewCPUId, behind the eight bytes after the first.
cdef Field CPU_TSC_HIGH = field(Bits("tsc", WORD_BITS - BYTE * (CPU_TSC_AT - CPU_AT), WORD_BITS - 1))
cdef Field CPU_TSC_REST = field(Bits("tsc", WORD_BITS - BYTE * CPU_TSC_AT, WORD_BITS - 1))
# Of a time stamp: its bits in the second half of a NewCPUId, and of a TSCWrap.
cdef Field WRAP_TSC_REST = field(Bits("tsc", WORD_BITS - BYTE * WRAP_TSC_AT, WORD_BITS - 1))

cdef enum:
    WORDS = 4  # Bytes of a number of the arena's ``words``.
    MAX_BASIC_FUNCTION = 0x7FFFFFFF  # Basic mode's ids are signed.
    # Bytes that a record without payload takes at most, with all that may come before and behind it:
    # extents, a preamble of 64, NewCPUId, a record of 16, and the end of a buffer.
    HEADROOM = 160

DROPPED = (
    "calls of functions with greater numbers than fit",
    "arguments of no call",
    "typed events",
    "custom events",
    "events larger than a buffer",
    "CPUs of events",
    "CPUs that are not known",
    "CPU numbers above 255",
    "kinds of exits",
    "arguments beyond the size of a buffer",
)
"""Names of the losses of a version, in the order of the counts."""
LEFT_OUT = (*DROPPED[:5], DROPPED[9])
"""Those by which an event is not written; by the others, something of it is changed."""

cdef enum:
    D_FUNCTION = 0
    D_ARGUMENT = 1
    D_TYPED = 2
    D_CUSTOM = 3
    D_LARGE = 4
    D_EVENT_CPU = 5
    D_NO_CPU = 6
    D_CPU = 7
    D_TAIL_EXIT = 8
    D_MANY = 9


@cython.final
cdef class EventColumns:
    """The events to be packed, as columns; time stamps and values are the bits of uint64."""

    cdef readonly const uint8_t[::1] kind, payloads
    cdef readonly const uint32_t[::1] function
    cdef readonly const int64_t[::1] tsc, value
    cdef readonly const uint16_t[::1] cpu
    cdef readonly const int32_t[::1] thread, size
    cdef readonly uint8_t[::1] left_out
    cdef int64_t count

    def __init__(self, kind, function, tsc, cpu, thread, value, size, payloads, left_out):
        self.kind = kind
        self.function = function
        self.tsc = tsc
        self.cpu = cpu
        self.thread = thread
        self.value = value
        self.size = size
        self.payloads = payloads
        # Why an event was not written: 1 + the number of the loss; 0 if it was.
        self.left_out = left_out
        self.count = len(self.kind)


@cython.final
cdef class ThreadBuffers:
    """The current buffer of each thread."""

    cdef const int64_t[::1] process, number
    cdef readonly int64_t[::1] start, room
    cdef readonly int64_t[::1] fill
    cdef readonly int64_t[::1] base, cpu, call, wall
    cdef readonly int64_t[::1] rank
    cdef uint8_t[::1] skewed

    def __init__(self, processes, numbers):
        threads = len(processes)
        self.process = processes
        self.number = numbers
        # Start of the buffer in the arena.
        self.start = full(threads, "i8")
        self.room = full(threads, "i8")
        # Bytes in use; 0 without a buffer.
        self.fill = full(threads, "i8")
        self.base = full(threads, "i8")
        self.skewed = full(threads, "u1")
        self.cpu = full(threads, "i8")
        # Position in the buffer of the call that gets arguments; -1 for none.
        self.call = full(threads, "i8", NOTHING)
        self.wall = full(threads, "i8")
        self.rank = full(threads, "i8")


@cython.final
cdef class FdrPack(Loop):
    """Packs events of the flight data recorder.

    The buffers of threads lie in ``arena``, of which ``words`` is the same memory as uint32. Full
    ones go to ``out``; ``places`` has the place of each one's wall time there, ``walls`` the time
    stamp that it is made of. The caller makes room, empties ``out`` and calls ``run()`` again.
    """

    cdef readonly int64_t version, size
    cdef int64_t limit, head
    cdef int64_t preamble
    cdef int64_t wrap
    cdef public ThreadBuffers buffers
    cdef public EventColumns events
    cdef public uint8_t[::1] arena, out
    cdef public uint32_t[::1] words
    cdef public int64_t[::1] places, walls
    cdef readonly int64_t[::1] counts
    cdef public int64_t row, written, made
    cdef readonly int64_t needed
    cdef readonly int64_t thread
    cdef int64_t ranks

    def __init__(self, *, version, size, limit, head, preamble, wrap):
        none = full(0, "i8")
        self.version = version
        self.size = size
        self.limit = limit
        self.head = head
        self.preamble = preamble
        self.wrap = wrap
        self.buffers = ThreadBuffers(none, none)
        self.events = EventColumns(
            full(0, "u1"), full(0, "u4"), none, full(0, "u2"), full(0, "i4"), none,
            full(0, "i4"), full(0, "u1"), full(0, "u1"),
        )  # fmt: skip
        self.arena = full(0, "u1")
        self.words = full(0, "u4")
        self.out = full(0, "u1")
        self.places = none
        self.walls = none
        self.counts = full(len(DROPPED), "i8")
        self.row = 0
        self.written = 0
        self.made = 0
        self.needed = 0
        self.thread = 0
        self.ranks = 0

    cdef int64_t step(self) except? -9 nogil:
        """Pack ``events`` from ``row`` on. Return why it stops."""
        cdef int64_t why
        why = DONE
        while self.row < self.events.count and why == DONE:
            why = self.event()
        return why

    def end_thread(self, thread):
        """Output the buffer of a thread. Return the reason for stopping."""
        fill = self.buffers.fill[thread]
        if fill and not self.end_buffer(thread, fill):
            return FLUSH
        return DONE

    # --- Bytes ---

    cdef void put_metadata(self, int64_t at, int64_t first, int64_t low,
                           int64_t high) noexcept nogil:
        """Write 16 bytes: ``first``, eight of ``low`` and seven of ``high``."""
        cdef int64_t index
        self.arena[at] = first
        index = 0
        while index < 8:
            self.arena[at + 1 + index] = get(BYTE_0, low >> BYTE * index)
            index += 1
        index = 0
        while index < 7:
            self.arena[at + 9 + index] = get(BYTE_0, high >> BYTE * index)
            index += 1

    cdef void put_function(self, int64_t at, int64_t word, int64_t delta) noexcept nogil:
        """Write the 8 bytes of a function record."""
        cdef int64_t index
        index = at // WORDS
        if at == index * WORDS:
            self.words[index] = word
            self.words[index + 1] = delta
            return
        index = 0
        while index < 4:
            self.arena[at + index] = get(BYTE_0, word >> BYTE * index)
            self.arena[at + FUNCTION_DELTA_AT + index] = get(BYTE_0, delta >> BYTE * index)
            index += 1

    cdef void put_cpu(self, int64_t at, int64_t cpu, int64_t tsc) noexcept nogil:
        """Write a NewCPUId."""
        cdef int64_t below
        below = BYTE * (CPU_TSC_AT - CPU_AT)
        self.put_metadata(at, FIRST_NEW_CPU, cpu | tsc << below, get(CPU_TSC_HIGH, tsc))

    # --- Buffers ---

    cdef void begin_buffer(self, int64_t thread, int64_t cpu, int64_t tsc) noexcept nogil:
        """Begin a buffer; its extents and its wall time are filled in at its end."""
        cdef int64_t at
        at = self.buffers.start[thread]
        if self.head:
            self.put_metadata(at, FIRST_EXTENTS, 0, 0)
            at += METADATA_BYTES
        self.put_metadata(at, FIRST_NEW_BUFFER, self.buffers.number[thread] & LOW32, 0)
        at += METADATA_BYTES
        self.put_metadata(at, FIRST_WALL_TIME, 0, 0)
        at += METADATA_BYTES
        if self.version >= PID_VERSION:
            self.put_metadata(at, FIRST_PID, self.buffers.process[thread] & LOW32, 0)
            at += METADATA_BYTES
        self.put_cpu(at, cpu, tsc)
        self.buffers.fill[thread] = self.head + self.preamble
        self.buffers.base[thread] = tsc
        self.buffers.skewed[thread] = 0
        self.buffers.cpu[thread] = cpu
        self.buffers.call[thread] = NOTHING
        if (tsc ^ SIGN) > (self.buffers.wall[thread] ^ SIGN):
            self.buffers.wall[thread] = tsc

    cdef bint end_buffer(self, int64_t thread, int64_t fill) noexcept nogil:
        """Output the first ``fill`` bytes of a buffer. Return False without room."""
        cdef int64_t start, at, nbytes, index, odd
        start = self.buffers.start[thread]
        at = self.written
        nbytes = self.size if self.version < EXTENTS_VERSION else fill
        if self.made >= len(self.places) or at + nbytes > len(self.out):
            self.needed = nbytes
            return False
        if self.head:
            self.put_metadata(start, FIRST_EXTENTS, fill - METADATA_BYTES, 0)
        index = 0
        while index < fill:
            self.out[at + index] = self.arena[start + index]
            index += 1
        if self.version < EXTENTS_VERSION:
            while index < nbytes:
                self.out[at + index] = 0
                index += 1
            self.out[at + fill] = FIRST_END_OF_BUFFER
            odd = (nbytes - fill) % FUNCTION_BYTES
            if odd:
                # Readers since LLVM 7 take what follows for records: an event of `odd` bytes
                # leaves as many whole ones as zeros make elsewhere.
                self.out[at + fill + METADATA_BYTES] = FIRST_CUSTOM_EVENT
                self.out[at + fill + METADATA_BYTES + SIZE_AT] = odd
        self.places[self.made] = at + self.head + METADATA_BYTES
        self.walls[self.made] = self.buffers.wall[thread]
        if self.buffers.rank[thread] == 0:
            self.ranks += 1
            self.buffers.rank[thread] = self.ranks
        self.made += 1
        self.written = at + nbytes
        self.buffers.fill[thread] = 0
        return True

    cdef int64_t carry_call(self, int64_t thread) noexcept nogil:
        """Begin a buffer with the call of an argument. Return the reason for stopping."""
        cdef int64_t call, begin, held, source, word, target, index
        call = self.buffers.call[thread]
        begin = self.head + self.preamble
        if call <= begin:
            return DONE
        held = self.buffers.fill[thread] - call
        source = self.buffers.start[thread] + call
        word = (
            self.arena[source]
            | put(BYTE_1, self.arena[source + 1])
            | put(BYTE_2, self.arena[source + 2])
            | put(BYTE_3, self.arena[source + 3])
        )
        if not self.end_buffer(thread, call):
            return FLUSH
        # The target precedes the source, so copying upwards is safe.
        target = self.buffers.start[thread] + begin
        index = FUNCTION_BYTES
        while index < held:
            self.arena[target + index] = self.arena[source + index]
            index += 1
        self.begin_buffer(thread, self.buffers.cpu[thread], self.buffers.base[thread])
        self.put_function(target, word, 0)
        self.buffers.call[thread] = begin
        self.buffers.fill[thread] = begin + held
        return DONE

    # --- Events ---

    cdef int64_t event(self) noexcept nogil:
        """Pack the event of ``row`` and the calls after it. Return the reason for stopping."""
        cdef int64_t row, kind, thread, nbytes, fill, tsc, cpu, absolute, no_cpu, base, near, own
        cdef int64_t moved, wraps, clocked, ends
        row = self.row
        kind = self.events.kind[row]
        thread = self.events.thread[row]
        if self.buffers.fill[thread] and kind <= ENTER_ARG and self.calls(thread):
            return DONE
        nbytes = self.needs(row, kind, thread)
        if nbytes < 0:
            self.row = row + 1
            return DONE
        fill = self.buffers.fill[thread]
        if fill + HEADROOM + nbytes > self.buffers.room[thread]:
            self.thread = thread
            self.needed = fill + HEADROOM + nbytes
            return GROW
        tsc = self.events.tsc[row]
        cpu = self.events.cpu[row]
        absolute = kind >= CUSTOM and self.version < EVENT_DELTA_VERSION
        no_cpu = kind >= CUSTOM and cpu == NO_CPU
        if no_cpu:
            cpu = self.buffers.cpu[thread]
        # A time stamp of the other sign counts as far away.
        base = self.buffers.base[thread]
        near = (tsc < 0) == (base < 0) and tsc >= base and tsc - base <= self.wrap
        near = near and not self.buffers.skewed[thread]
        own = kind == ARGUMENT or absolute
        moved = not own and cpu != self.buffers.cpu[thread]
        wraps = not own and not near
        clocked = moved or wraps
        ends = fill - self.head + nbytes + (METADATA_BYTES if clocked else 0) > self.limit
        if fill and (ends or (clocked and self.looks_cut(base, tsc, moved))):
            if kind == ARGUMENT:
                if self.carry_call(thread) == FLUSH:
                    return FLUSH
                fill = self.buffers.fill[thread]
                if self.version < EXTENTS_VERSION and fill + nbytes > self.limit:
                    self.counts[D_MANY] += 1
                    self.events.left_out[row] = 1 + D_MANY
                    self.row = row + 1
                    return DONE
            elif fill > self.head + self.preamble and not self.end_buffer(thread, fill):
                return FLUSH
        if no_cpu and not absolute and cpu != NO_CPU:
            self.counts[D_NO_CPU] += 1
        fill = self.buffers.fill[thread]
        if fill == 0:
            self.begin_buffer(thread, cpu, tsc)
        elif moved:
            self.put_cpu(self.buffers.start[thread] + fill, cpu, tsc)
            self.buffers.cpu[thread] = cpu
            self.buffers.base[thread] = tsc
            self.buffers.skewed[thread] = 0
            self.buffers.fill[thread] = fill + METADATA_BYTES
        elif wraps:
            self.put_metadata(self.buffers.start[thread] + fill, FIRST_TSC_WRAP, tsc, 0)
            self.buffers.base[thread] = tsc
            self.buffers.skewed[thread] = 0
            self.buffers.fill[thread] = fill + METADATA_BYTES
        self.put_event(row, kind, thread, cpu, no_cpu)
        self.buffers.fill[thread] += nbytes
        self.row = row + 1
        return DONE

    cdef bint looks_cut(self, int64_t base, int64_t tsc, bint moved) noexcept nogil:
        """Return whether a reader takes a record of this time for one that was cut in half.

        A reader does so where the time is far from the one before, its low bits are near it, and
        the second half of the record could be a record itself. The first record of a buffer is
        safe: no time is before it.
        """
        cdef int64_t time, before, apart, bits, half, first, sound, mask, ahead
        time = tsc ^ SIGN
        before = base ^ SIGN
        apart = time - before if time >= before else before - time
        if 0 <= apart <= CUT_RECORD_JUMP:
            return False
        # The bits of the time in the first half of the record; the second begins with the rest.
        bits = WORD_BITS - BYTE * (CPU_TSC_AT if moved else WRAP_TSC_AT)
        half = get(CPU_TSC_REST, tsc) if moved else get(WRAP_TSC_REST, tsc)
        if get(IS_METADATA, half):
            first = get(BYTE_0, half)
            sound = (
                first == FIRST_END_OF_BUFFER
                or first == FIRST_NEW_CPU
                or first == FIRST_TSC_WRAP
                or first == FIRST_CUSTOM_EVENT
                or first == FIRST_TYPED_EVENT
            )
        else:
            sound = get(KIND_2, half) == 0 and get(FUNCTION_ID, half) != 0
        mask = (<int64_t>ONE << bits) - 1
        ahead = ((tsc & mask) - (base & mask)) & mask
        return sound and ahead >> CUT_REACH_BITS == 0 and before <= LATEST - ahead

    cdef int64_t needs(self, int64_t row, int64_t kind, int64_t thread) noexcept nogil:
        """Return the bytes of an event; count one that the version cannot hold, and return -1."""
        cdef int64_t why, nbytes
        why = NOTHING
        nbytes = FUNCTION_BYTES
        if kind == ARGUMENT:
            nbytes = METADATA_BYTES
            if self.buffers.call[thread] < 0:
                self.counts[D_ARGUMENT] += 1
                self.events.left_out[row] = 1 + D_ARGUMENT
                return -1
        elif kind >= CUSTOM:
            nbytes = METADATA_BYTES + self.events.size[row]
            if kind == TYPED and self.version < PID_VERSION:
                why = D_TYPED
            elif self.version < EXTENTS_VERSION and self.preamble + nbytes > self.limit:
                why = D_LARGE
        elif self.events.function[row] > MAX_FUNCTION_ID:
            why = D_FUNCTION
        if why >= 0:
            self.counts[why] += 1
            self.events.left_out[row] = 1 + why
            self.buffers.call[thread] = NOTHING
            return -1
        return nbytes

    cdef int64_t calls(self, int64_t thread) noexcept nogil:
        """Pack calls of one thread, until another record is needed. Return their number."""
        cdef int64_t fill, at, index, cpu, base, rest, first, row, bound, kind, tsc, function
        fill = self.buffers.fill[thread]
        at = self.buffers.start[thread] + fill
        index = at // WORDS
        if at != index * WORDS or self.buffers.skewed[thread]:
            return 0
        cpu = self.buffers.cpu[thread]
        base = self.buffers.base[thread]
        rest = min(self.head + self.limit, self.buffers.room[thread] - HEADROOM) - fill
        first = self.row
        row = first
        bound = min(self.events.count, row + rest // FUNCTION_BYTES)
        while row < bound:
            kind = self.events.kind[row]
            tsc = self.events.tsc[row]
            function = self.events.function[row]
            if (
                kind > ENTER_ARG
                or self.events.thread[row] != thread
                or self.events.cpu[row] != cpu
                or function > MAX_FUNCTION_ID
                or (tsc < 0) != (base < 0)
                or tsc < base
                or tsc - base > self.wrap
            ):
                break
            self.words[index] = put(FUNCTION_ID, function) | put(FUNCTION_KIND, kind)
            self.words[index + 1] = tsc - base
            index += 2
            base = tsc
            row += 1
        if row > first:
            fill += (row - first) * FUNCTION_BYTES
            self.buffers.fill[thread] = fill
            self.buffers.base[thread] = base
            self.buffers.call[thread] = fill - FUNCTION_BYTES
            self.row = row
        return row - first

    cdef void put_event(self, int64_t row, int64_t kind, int64_t thread, int64_t cpu,
                        bint no_cpu) noexcept nogil:
        """Write the record of an event."""
        cdef int64_t fill, at, tsc, call, first, word
        fill = self.buffers.fill[thread]
        at = self.buffers.start[thread] + fill
        tsc = self.events.tsc[row]
        if kind == ARGUMENT:
            call = self.buffers.start[thread] + self.buffers.call[thread]
            first = fill == self.buffers.call[thread] + FUNCTION_BYTES
            if self.version < EVENT_CPU_VERSION and first:
                # Up to version 3 it is an enter record, followed by its arguments.
                if get(FUNCTION_KIND, self.arena[call]) == ENTER_ARG:
                    self.arena[call] ^= put(FUNCTION_KIND, ENTER_ARG)
            self.put_metadata(at, FIRST_ARGUMENT, self.events.value[row], 0)
        elif kind <= ENTER_ARG:
            word = put(FUNCTION_ID, self.events.function[row]) | put(FUNCTION_KIND, kind)
            self.put_function(at, word, (tsc - self.buffers.base[thread]) & LOW32)
            self.buffers.base[thread] = tsc
            self.buffers.call[thread] = fill
        else:
            self.put_payload(row, kind, thread, cpu, no_cpu)
            self.buffers.call[thread] = NOTHING

    cdef void put_payload(self, int64_t row, int64_t kind, int64_t thread, int64_t cpu,
                          bint no_cpu) noexcept nogil:
        """Write a custom or typed event with its payload."""
        cdef int64_t at, tsc, low, high, first, begin, size, index
        at = self.buffers.start[thread] + self.buffers.fill[thread]
        tsc = self.events.tsc[row]
        low = self.events.size[row]
        high = 0
        if kind == TYPED:
            high = self.events.function[row] & LOW16
        if self.version >= EVENT_DELTA_VERSION:
            low |= put(HIGH_HALF, (tsc - self.buffers.base[thread]) & LOW32)
            self.buffers.base[thread] = tsc
        else:
            low |= put(HIGH_HALF, tsc & LOW32)
            if kind == CUSTOM and self.version == EVENT_CPU_VERSION:
                high = cpu
                if no_cpu:
                    self.counts[D_NO_CPU] += 1
            elif not no_cpu:
                self.counts[D_EVENT_CPU] += 1
            high = get(HIGH_HALF, tsc) | put(HIGH_HALF, high)
            if kind == TYPED:
                # llvm-xray reads half of the time as a delta: force a TSCWrap that corrects it.
                self.buffers.skewed[thread] = 1
        first = FIRST_TYPED_EVENT if kind == TYPED else FIRST_CUSTOM_EVENT
        self.put_metadata(at, first, low, high)
        begin = self.events.value[row]
        size = self.events.size[row]
        index = 0
        while index < size:
            self.arena[at + METADATA_BYTES + index] = self.events.payloads[begin + index]
            index += 1


@cython.final
cdef class BasicPack(Loop):
    """Packs events as records of basic mode into ``out`` (uint32), until it is full."""

    cdef readonly int64_t version
    cdef public uint32_t[::1] out
    cdef public const int64_t[::1] processes, numbers
    cdef public EventColumns events
    cdef readonly int64_t[::1] counts
    cdef public int64_t row, written
    cdef int64_t last_thread

    def __init__(self, out, *, version):
        none = full(0, "i8")
        self.version = version
        self.out = out
        self.processes = none
        self.numbers = none
        self.events = EventColumns(
            full(0, "u1"), full(0, "u4"), none, full(0, "u2"), full(0, "i4"), none,
            full(0, "i4"), full(0, "u1"), full(0, "u1"),
        )  # fmt: skip
        self.counts = full(len(DROPPED), "i8")
        self.row = 0
        self.written = 0
        self.last_thread = NOTHING

    cdef int64_t step(self) except? -9 nogil:
        """Pack ``events`` from ``row`` on. Return why it stops."""
        cdef int64_t kind, why
        while self.row < self.events.count:
            if self.written + 8 > len(self.out):
                return FLUSH
            kind = self.events.kind[self.row]
            if kind == ARGUMENT:
                self.argument()
            elif kind <= ENTER_ARG:
                self.call(kind)
            else:
                why = D_CUSTOM if kind == CUSTOM else D_TYPED
                self.counts[why] += 1
                self.events.left_out[self.row] = 1 + why
                if self.last_thread == self.events.thread[self.row]:
                    self.last_thread = NOTHING
            self.row += 1
        return DONE

    cdef int64_t process(self, int64_t thread) noexcept nogil:
        """Return the number that a record has for the process of a thread."""
        return self.processes[thread] & LOW32 if self.version >= BASIC_PID_VERSION else 0

    cdef void argument(self) noexcept nogil:
        """Pack an argument of the call before it."""
        cdef int64_t row, thread, value, at
        row = self.row
        thread = self.events.thread[row]
        if self.last_thread != thread:
            self.counts[D_ARGUMENT] += 1
            self.events.left_out[row] = 1 + D_ARGUMENT
            return
        value = self.events.value[row]
        at = self.written
        self.out[at] = BASIC_ARGUMENT
        self.out[at + 1] = self.events.function[row]
        self.out[at + 2] = self.numbers[thread] & LOW32
        self.out[at + 3] = self.process(thread)
        self.out[at + 4] = value & LOW32
        self.out[at + 5] = get(HIGH_HALF, value)
        self.out[at + 6] = 0
        self.out[at + 7] = 0
        self.written = at + 8

    cdef void call(self, int64_t kind) noexcept nogil:
        """Pack the entry or the exit of a function."""
        cdef int64_t row, thread, function, cpu, tsc, at
        row = self.row
        thread = self.events.thread[row]
        function = self.events.function[row]
        if function > MAX_BASIC_FUNCTION:
            self.counts[D_FUNCTION] += 1
            self.events.left_out[row] = 1 + D_FUNCTION
            self.last_thread = NOTHING
            return
        cpu = self.events.cpu[row]
        if cpu == NO_CPU:
            self.counts[D_NO_CPU] += 1
            cpu = 0
        elif cpu > BASIC_MAX_CPU:
            self.counts[D_CPU] += 1
        if kind == TAIL_EXIT and self.version < BASIC_TAIL_EXIT_VERSION:
            self.counts[D_TAIL_EXIT] += 1
            kind = EXIT
        tsc = self.events.tsc[row]
        at = self.written
        self.out[at] = put(BASIC_CPU, cpu & BASIC_MAX_CPU) | put(BASIC_KIND, kind)
        self.out[at + 1] = function
        self.out[at + 2] = tsc & LOW32
        self.out[at + 3] = get(HIGH_HALF, tsc)
        self.out[at + 4] = self.numbers[thread] & LOW32
        self.out[at + 5] = self.process(thread)
        self.out[at + 6] = 0
        self.out[at + 7] = 0
        self.last_thread = thread
        self.written = at + 8
