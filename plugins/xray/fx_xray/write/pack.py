"""Bulk writing: columns of events in, the bytes of a trace out, without a Python object per event.

Like ``kernels.py``, whose conventions these loops keep: the plain-Python body is the reference,
and all state lies in arrays of the caller. Every time stamp is kept exactly, whatever the records
around it were in the file that it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_xray import layout as wire
from fx_xray.read.columns import Events
from fxframework.io.jit import kernel
from fxframework.io.sink import Sink
from fxframework.model.clock import NS_PER_SECOND

__all__ = ["BasicPacker", "Header", "RecorderPacker"]

I64 = NDArray[Any]
U8 = NDArray[Any]

ENTER, EXIT, TAIL_EXIT, ENTER_ARG, ARGUMENT, CUSTOM, TYPED = range(7)
"""Kinds of events."""
NOT_NEGATIVE = 0x7FFFFFFFFFFFFFFF
LOW_32 = 0xFFFFFFFF
LOW_48 = 0xFFFFFFFFFFFF
SIGN = -(1 << 63)
NO_CPU = 0xFFFF
MAX_FUNCTION = wire.MAX_FUNCTION_ID
MAX_SIGNED_FUNCTION = 0x7FFFFFFF
"""Of basic mode, whose ids are signed."""

DONE, GROW, FLUSH = 0, 1, 2
"""Why a loop came back: all was taken; a thread needs more room; the output is full."""
ROW, WRITTEN, MADE, NEEDED, THREAD, LAST_THREAD, RANKS = 0, 1, 2, 3, 4, 5, 6
"""Of the state."""
HEADROOM = 160
"""Bytes that a record of no payload takes at most, with all that may come before and behind it:
extents, a preamble of 64, NewCPUId, a record of 16, and the end of a buffer."""
END_BYTES = 40
"""Bytes that version 1 needs at the end of a buffer: its end record, and 24 of padding."""

DROPPED: Final = (
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
"""What a version cannot hold, by what counts it."""
D_FUNCTION, D_ARGUMENT, D_TYPED, D_CUSTOM, D_LARGE = 0, 1, 2, 3, 4
D_EVENT_CPU, D_NO_CPU, D_CPU, D_TAIL_EXIT, D_MANY = 5, 6, 7, 8, 9


class Log(NamedTuple):
    """The columns as the loops take them; time stamps and values are signed there."""

    kind: U8
    function: I64
    tsc: I64
    cpu: I64
    thread: I64
    value: I64
    size: I64
    payloads: U8


class Plan(NamedTuple):
    """How the flight data recorder's records are laid out in a version."""

    version: int
    size: int
    """Bytes of a buffer, to which version 1 fills one up."""
    limit: int
    """Bytes of it that records may take."""
    head: int
    """Bytes of the extents before it."""
    preamble: int
    """Bytes of what begins it, up to and with its first NewCPUId."""
    wrap: int
    """The greatest delta."""


class Lanes(NamedTuple):
    """By thread: the buffer that is being filled."""

    start: I64
    """Where its room begins in the arena."""
    room: I64
    """Bytes of it."""
    fill: I64
    """Bytes in use; 0 where there is no buffer."""
    base: I64
    """The time stamp that deltas count from."""
    cpu: I64
    call: I64
    """Where in the buffer the call stands to which arguments belong; -1 none."""
    wall: I64
    """The time stamp of which the wall time is made; it never goes back."""
    process: I64
    number: I64
    """Of the thread."""
    rank: I64
    """Where it comes among those of which a buffer was put out; 0 none was."""


@kernel
def put_metadata(words, data, at, first, low, high):  # type: ignore[no-untyped-def]
    """Write 16 bytes: ``first``, eight of ``low`` and seven of ``high``."""
    word0 = first | (low & 0xFFFFFF) << 8
    word1 = (low >> 24) & LOW_32
    word2 = (low >> 56) & 0xFF | (high & 0xFFFFFF) << 8
    word3 = (high >> 24) & LOW_32
    if at & 3 == 0:
        index = (at >> 2) & NOT_NEGATIVE
        words[index] = word0
        words[index + 1] = word1
        words[index + 2] = word2
        words[index + 3] = word3
        return
    index = at & NOT_NEGATIVE
    for shift in range(4):
        data[index + shift] = (word0 >> 8 * shift) & 0xFF
        data[index + 4 + shift] = (word1 >> 8 * shift) & 0xFF
        data[index + 8 + shift] = (word2 >> 8 * shift) & 0xFF
        data[index + 12 + shift] = (word3 >> 8 * shift) & 0xFF


@kernel
def put_function(words, data, at, word, delta):  # type: ignore[no-untyped-def]
    """Write the 8 bytes of a function record."""
    if at & 3 == 0:
        index = (at >> 2) & NOT_NEGATIVE
        words[index] = word
        words[index + 1] = delta
        return
    index = at & NOT_NEGATIVE
    for shift in range(4):
        data[index + shift] = (word >> 8 * shift) & 0xFF
        data[index + 4 + shift] = (delta >> 8 * shift) & 0xFF


@kernel
def put_cpu(words, data, at, cpu, tsc):  # type: ignore[no-untyped-def]
    """Write a NewCPUId."""
    put_metadata(words, data, at, 0x05, cpu | (tsc & LOW_48) << 16, (tsc >> 48) & 0xFFFF)


@kernel
def begin_buffer(plan, lanes, thread, cpu, tsc, arena, words):  # type: ignore[no-untyped-def]
    """Begin a buffer of a thread at a time; its extents and wall time are filled in at the end."""
    at = lanes.start[thread]
    if plan.head:
        put_metadata(words, arena, at, 0x0F, 0, 0)
        at += 16
    put_metadata(words, arena, at, 0x01, lanes.number[thread] & LOW_32, 0)
    put_metadata(words, arena, at + 16, 0x09, 0, 0)
    at += 32
    if plan.version >= 3:
        put_metadata(words, arena, at, 0x13, lanes.process[thread] & LOW_32, 0)
        at += 16
    put_cpu(words, arena, at, cpu, tsc)
    lanes.fill[thread] = plan.head + plan.preamble
    lanes.base[thread] = tsc
    lanes.cpu[thread] = cpu
    lanes.call[thread] = -1
    if (tsc ^ SIGN) > (lanes.wall[thread] ^ SIGN):
        lanes.wall[thread] = tsc


@kernel
def end_buffer(plan, lanes, thread, fill, arena, words, out, places, walls, state):  # type: ignore[no-untyped-def]
    """Put the first ``fill`` bytes of a thread's buffer out; False where there is no room."""
    start = lanes.start[thread]
    made = state[MADE] & NOT_NEGATIVE
    at = state[WRITTEN] & NOT_NEGATIVE
    nbytes = fill
    if plan.version < 2:
        nbytes = plan.size
    if made >= len(places) or at + nbytes > len(out):
        state[NEEDED] = nbytes
        return False
    if plan.head:
        put_metadata(words, arena, start, 0x0F, fill - 16, 0)
    out[at : at + fill] = arena[start : start + fill]
    if plan.version < 2:
        out[at + fill] = 0x03
        for index in range(at + fill + 1, at + nbytes):
            out[index & NOT_NEGATIVE] = 0
        odd = (nbytes - fill) & 7
        if odd:
            # Readers since LLVM 7 take what follows for records, which an event of `odd` bytes
            # makes as many whole ones of as zeros give them elsewhere.
            out[at + fill + 16] = 0x0B
            out[at + fill + 17] = odd
    places[made] = at + plan.head + 16
    walls[made] = lanes.wall[thread]
    if lanes.rank[thread] == 0:
        state[RANKS] += 1
        lanes.rank[thread] = state[RANKS]
    state[MADE] = made + 1
    state[WRITTEN] = at + nbytes
    lanes.fill[thread] = 0
    return True


@kernel
def pack_recorder(log, stop, plan, lanes, arena, words, out, places, walls, counts, state):  # type: ignore[no-untyped-def]
    """Write events, from ``state[ROW]`` on, into the buffers of their threads; says why it stops.

    ``words`` is ``arena`` as uint32. Buffers that are full go to ``out``; ``places`` then has the
    place of each one's wall time there, ``walls`` the time stamp that it is made of.
    """
    row = state[ROW] & NOT_NEGATIVE
    version = plan.version
    wrap = plan.wrap
    kinds, functions, times, cpus, threads = log.kind, log.function, log.tsc, log.cpu, log.thread
    values, sizes, payloads = log.value, log.size, log.payloads
    starts, rooms, fills, bases = lanes.start, lanes.room, lanes.fill, lanes.base
    current, calls = lanes.cpu, lanes.call
    while row < stop:
        kind = kinds[row]
        thread = threads[row] & NOT_NEGATIVE
        tsc = times[row]
        fill = fills[thread]
        base = bases[thread]
        at = starts[thread] + fill
        if fill and kind <= 3 and at & 3 == 0:
            # Calls of one thread, as long as nothing has to come between them: most rows.
            same = current[thread]
            rest = min(plan.head + plan.limit, rooms[thread] - HEADROOM) - fill
            bound = min(stop, row + (rest >> 3))
            first = row
            index = (at >> 2) & NOT_NEGATIVE
            while row < bound:
                kind = kinds[row]
                tsc = times[row]
                function = functions[row]
                delta = tsc - base
                if (
                    kind > 3
                    or threads[row] != thread
                    or cpus[row] != same
                    or function > MAX_FUNCTION
                    or (tsc < 0) != (base < 0)
                    or delta < 0
                    or delta > wrap
                ):
                    break
                words[index] = function << 4 | kind << 1
                words[index + 1] = delta
                index += 2
                base = tsc
                row += 1
            if row > first:
                fill += (row - first) << 3
                fills[thread] = fill
                bases[thread] = base
                calls[thread] = fill - 8
                continue
        nbytes = 8
        if kind == 4:
            nbytes = 16
            if calls[thread] < 0:
                counts[D_ARGUMENT] += 1
                row += 1
                continue
        elif kind >= 5:
            nbytes = 16 + sizes[row]
            if kind == 6 and version < 3:
                counts[D_TYPED] += 1
                calls[thread] = -1
                row += 1
                continue
            if version < 2 and plan.preamble + nbytes > plan.limit:
                counts[D_LARGE] += 1
                calls[thread] = -1
                row += 1
                continue
        elif functions[row] > MAX_FUNCTION:
            counts[D_FUNCTION] += 1
            calls[thread] = -1
            row += 1
            continue
        if fill + HEADROOM + nbytes > rooms[thread]:
            state[ROW] = row
            state[THREAD] = thread
            state[NEEDED] = fill + HEADROOM + nbytes
            return GROW
        cpu = cpus[row]
        absolute = kind >= 5 and version < 5
        no_cpu = kind >= 5 and cpu == NO_CPU
        if no_cpu:
            cpu = current[thread]
        # A time stamp on the other side of the sign is as good as far away.
        delta = tsc - base
        near = (tsc < 0) == (base < 0) and 0 <= delta <= wrap
        moved = kind != 4 and not absolute and cpu != current[thread]
        wrapped = kind != 4 and not absolute and not near
        if fill:
            extra = 0
            if moved or wrapped:
                extra = 16
            if fill - plan.head + extra + nbytes > plan.limit:
                if kind == 4:
                    # Its call goes with it into the next buffer, if that gives it room.
                    call = calls[thread]
                    if call > plan.head + plan.preamble:
                        held = fill - call
                        source = starts[thread] + call
                        if not end_buffer(
                            plan, lanes, thread, call, arena, words, out, places, walls, state
                        ):
                            state[ROW] = row
                            return FLUSH
                        word0 = arena[source & NOT_NEGATIVE]
                        word1 = arena[(source + 1) & NOT_NEGATIVE]
                        word2 = arena[(source + 2) & NOT_NEGATIVE]
                        word3 = arena[(source + 3) & NOT_NEGATIVE]
                        # Backwards into the buffer: what is read stands behind what is written.
                        target = starts[thread] + plan.head + plan.preamble
                        for index in range(8, held):
                            arena[(target + index) & NOT_NEGATIVE] = arena[
                                (source + index) & NOT_NEGATIVE
                            ]
                        begin_buffer(plan, lanes, thread, current[thread], base, arena, words)
                        word = word0 | word1 << 8 | word2 << 16 | word3 << 24
                        put_function(words, arena, target, word, 0)
                        calls[thread] = plan.head + plan.preamble
                        fill = plan.head + plan.preamble + held
                        fills[thread] = fill
                    if version < 2 and fill + nbytes > plan.limit:
                        counts[D_MANY] += 1
                        row += 1
                        continue
                elif fill > plan.head + plan.preamble:
                    if not end_buffer(
                        plan, lanes, thread, fill, arena, words, out, places, walls, state
                    ):
                        state[ROW] = row
                        return FLUSH
                    fill = 0
        if no_cpu and not absolute and cpu != NO_CPU:
            counts[D_NO_CPU] += 1
        at = starts[thread] + fill
        if fill == 0:
            begin_buffer(plan, lanes, thread, cpu, tsc, arena, words)
            fill = plan.head + plan.preamble
            at += fill
            base = tsc
        elif moved:
            put_cpu(words, arena, at, cpu, tsc)
            current[thread] = cpu
            base = tsc
            fill += 16
            at += 16
        elif wrapped:
            put_metadata(words, arena, at, 0x07, tsc, 0)
            base = tsc
            fill += 16
            at += 16
        if kind <= 3:
            put_function(words, arena, at, functions[row] << 4 | kind << 1, (tsc - base) & LOW_32)
            bases[thread] = tsc
            calls[thread] = fill
        elif kind == 4:
            if version < 4 and fill == calls[thread] + 8:
                # Up to version 3 the writer calls it an enter: its arguments say the rest.
                first = (starts[thread] + calls[thread]) & NOT_NEGATIVE
                if arena[first] & 0x0E == 0x06:
                    arena[first] = arena[first] & 0xF0
            put_metadata(words, arena, at, 0x0D, values[row], 0)
        else:
            size = sizes[row]
            first = 0x0B
            high = 0
            if kind == 6:
                first = 0x11
                high = functions[row] & 0xFFFF
            if version >= 5:
                low = size | ((tsc - base) & LOW_32) << 32
                bases[thread] = tsc
            else:
                low = size | (tsc & LOW_32) << 32
                if kind == 5 and version == 4:
                    high = cpu
                    if no_cpu:
                        counts[D_NO_CPU] += 1
                elif not no_cpu:
                    counts[D_EVENT_CPU] += 1
                high = (tsc >> 32) & LOW_32 | high << 32
                if kind == 6:
                    # llvm-xray takes half of the time for a delta: let a TSCWrap set it right.
                    bases[thread] = tsc ^ SIGN
            put_metadata(words, arena, at, first, low, high)
            begin = values[row] & NOT_NEGATIVE
            target = (at + 16) & NOT_NEGATIVE
            arena[target : target + size] = payloads[begin : begin + size]
            calls[thread] = -1
        fills[thread] = fill + nbytes
        row += 1
    state[ROW] = row
    return DONE


@kernel
def end_buffers(order, plan, lanes, arena, words, out, places, walls, state):  # type: ignore[no-untyped-def]
    """Put out what all threads have, in an order, from ``state[ROW]`` on; says why it stops."""
    for place in range(state[ROW], len(order)):
        thread = order[place & NOT_NEGATIVE] & NOT_NEGATIVE
        fill = lanes.fill[thread]
        if fill and not end_buffer(
            plan, lanes, thread, fill, arena, words, out, places, walls, state
        ):
            state[ROW] = place
            return FLUSH
    return DONE


@kernel
def pack_basic(log, stop, version, processes, numbers, words, counts, state):  # type: ignore[no-untyped-def]
    """Write events, from ``state[ROW]`` on, as records of basic mode; says why it stops."""
    row = state[ROW] & NOT_NEGATIVE
    while row < stop:
        at = (state[WRITTEN] >> 2) & NOT_NEGATIVE
        if at + 8 > len(words):
            state[ROW] = row
            return FLUSH
        kind = log.kind[row]
        thread = log.thread[row] & NOT_NEGATIVE
        function = log.function[row]
        process = 0
        if version >= 3:
            process = processes[thread] & LOW_32
        if kind >= 5:
            if kind == 5:
                counts[D_CUSTOM] += 1
            else:
                counts[D_TYPED] += 1
            if state[LAST_THREAD] == thread:
                state[LAST_THREAD] = -1
            row += 1
            continue
        if kind == 4:
            if state[LAST_THREAD] != thread:
                counts[D_ARGUMENT] += 1
                row += 1
                continue
            value = log.value[row]
            words[at] = 1
            words[at + 1] = function
            words[at + 2] = numbers[thread] & LOW_32
            words[at + 3] = process
            words[at + 4] = value & LOW_32
            words[at + 5] = (value >> 32) & LOW_32
        else:
            if function > MAX_SIGNED_FUNCTION:
                counts[D_FUNCTION] += 1
                state[LAST_THREAD] = -1
                row += 1
                continue
            cpu = log.cpu[row]
            if cpu == NO_CPU:
                counts[D_NO_CPU] += 1
                cpu = 0
            elif cpu > 255:
                counts[D_CPU] += 1
            if kind == 2 and version < 2:
                counts[D_TAIL_EXIT] += 1
                kind = 1
            tsc = log.tsc[row]
            words[at] = (cpu & 0xFF) << 16 | kind << 24
            words[at + 1] = function
            words[at + 2] = tsc & LOW_32
            words[at + 3] = (tsc >> 32) & LOW_32
            words[at + 4] = numbers[thread] & LOW_32
            words[at + 5] = process
            state[LAST_THREAD] = thread
        words[at + 6] = 0
        words[at + 7] = 0
        state[WRITTEN] += 32
        row += 1
    state[ROW] = row
    return DONE


@kernel
def unfold(order, thread, time, dur, depth, top, latest, below, ends, rows, times, lengths):  # type: ignore[no-untyped-def]
    """Tell slices by entries and exits that nest as the slices did.

    ``order`` are rows by time, what encloses others first. By thread, ``top`` is the innermost
    open slice, -1 at first, and ``latest`` the time of what was told last; by row, ``below`` is the
    slice under it and ``ends`` its end, of one that never ended that of what is around it.
    Fills ``rows``, an exit as ``~row``, and ``times``;
    ``lengths`` becomes how many, and how many ends had to come earlier.
    """
    made = 0
    clamped = 0
    for step in range(len(order)):
        row = order[step] & NOT_NEGATIVE
        lane = thread[row] & NOT_NEGATIVE
        begin = time[row]
        begin = max(begin, latest[lane])
        node = top[lane]
        while node >= 0 and depth[node] >= depth[row]:
            if dur[node] >= 0:
                end = ends[node]
                if end > begin:
                    end = begin
                    clamped += 1
                rows[made & NOT_NEGATIVE] = ~node
                times[made & NOT_NEGATIVE] = end
                made += 1
            node = below[node]
        end = NOT_NEGATIVE
        if node >= 0:
            end = ends[node]
        if dur[row] >= 0:
            until = time[row]
            if until > 0 and dur[row] > NOT_NEGATIVE - until:
                until = NOT_NEGATIVE
            else:
                until += dur[row]
            until = max(until, begin)
            if until > end:
                clamped += 1
            else:
                end = until
        ends[row] = end
        below[row] = node
        top[lane] = row
        latest[lane] = begin
        rows[made & NOT_NEGATIVE] = row
        times[made & NOT_NEGATIVE] = begin
        made += 1
    for lane in range(len(top)):
        node = top[lane]
        while node >= 0:
            if dur[node] >= 0:
                rows[made & NOT_NEGATIVE] = ~node
                times[made & NOT_NEGATIVE] = ends[node]
                made += 1
            node = below[node]
    lengths[0] = made
    lengths[1] = clamped


# --- Over these loops -----------------------------------------------------------------------------

OUT: Final = 1 << 20
"""Bytes put out at a time, where buffers are not larger."""
ROOM: Final = 4096
"""Bytes of a thread's first room in the arena."""
FLAGS: Final = wire.CONSTANT_TSC | wire.NONSTOP_TSC


@attrs.frozen(kw_only=True)
class Header:
    """The file header of what is written."""

    type: int
    version: int
    flags: int = FLAGS
    cycle_frequency: int = wire.EMULATED_FREQUENCY
    buffer_size: int = 0
    reserved: bytes = bytes(8)

    def pack(self) -> bytes:
        """Its 32 bytes."""
        parts = {
            "version": self.version,
            "type": self.type,
            "flags": self.flags,
            "cycle_frequency": self.cycle_frequency,
            "buffer_size": self.buffer_size,
        }
        numbers = b"".join(
            parts[field.name].to_bytes(field.nbytes, "little") for field in wire.FILE_HEADER[:-1]
        )
        return numbers + self.reserved


class _Packer:
    """What both modes do: threads by number, counts of what had no place."""

    def __init__(self, sink: Sink, header: Header, expected: int) -> None:
        self._sink = sink
        self._version = header.version
        self._expected = expected
        self._counts = np.zeros(len(DROPPED), np.int64)
        self._state = np.zeros(8, np.int64)
        self._state[LAST_THREAD] = -1
        sink.write(header.pack())

    @property
    def dropped(self) -> dict[str, int]:
        """What had no place so far, by name, with counts."""
        counted = zip(DROPPED, self._counts.tolist(), strict=True)
        return {name: count for name, count in counted if count}

    @staticmethod
    def _log(events: Events, payloads: U8) -> Log:
        return Log(
            kind=_fixed(events.kind, np.uint8),
            function=_fixed(events.function, np.uint32),
            tsc=_fixed(events.tsc, np.uint64).view(np.int64),
            cpu=_fixed(events.cpu, np.uint16),
            thread=_fixed(events.thread, np.int32),
            value=_fixed(events.value, np.uint64).view(np.int64),
            size=_fixed(events.size, np.int32),
            payloads=_fixed(payloads, np.uint8),
        )


class RecorderPacker(_Packer):
    """Writes the flight data recorder's traces, versions 1 to 5.

    ``expected`` is about how many bytes there will be: it decides whether compiled code pays.
    """

    def __init__(self, sink: Sink, header: Header, *, expected: int = 0) -> None:
        super().__init__(sink, header, expected)
        version = header.version
        size = header.buffer_size
        if not wire.LEAST_BUFFER * 2 <= size < 1 << 62:  # it says nothing
            size = wire.BUFFER_BYTES
        self._frequency = header.cycle_frequency or NS_PER_SECOND
        self._plan = Plan(
            version=version,
            size=size,
            limit=size if version >= wire.EXTENTS_VERSION else size - END_BYTES,
            head=wire.METADATA_BYTES if version >= wire.EXTENTS_VERSION else 0,
            preamble=(4 if version >= wire.PID_VERSION else 3) * wire.METADATA_BYTES,
            wrap=wire.WRAP_TICKS[version],
        )
        self._lanes = Lanes(*(np.zeros(0, np.int64) for _ in Lanes._fields))
        self._arena = np.empty(0, np.uint32)
        self._used = 0
        self._free: dict[int, list[int]] = {}
        """Rooms that are free again, by their size."""
        self._out = np.empty(OUT, np.uint8)
        self._places = np.empty(OUT >> 7, np.int64)
        self._walls = np.empty(OUT >> 7, np.int64)

    def add_threads(self, processes: I64, numbers: I64) -> None:
        """Number more threads, int64 of shape (n,): process and thread ids that 32 bits hold."""
        fresh = {name: np.zeros(len(numbers), np.int64) for name in Lanes._fields}
        fresh["call"] -= 1
        fresh["process"], fresh["number"] = processes, numbers
        self._lanes = Lanes(
            *(
                np.append(column, fresh[name].astype(np.int64))
                for name, column in zip(Lanes._fields, self._lanes, strict=True)
            )
        )

    def write(self, events: Events, payloads: U8) -> None:
        """Add events, whose ``thread`` is the number of one that was added.

        Each thread's stand in the order of its program, arguments behind their calls.
        """
        log = self._log(events, payloads)
        pack = pack_recorder.for_size(self._expected)
        self._state[ROW] = 0
        while True:
            why = pack(
                log, len(log.kind), self._plan, self._lanes, self._arena.view(np.uint8),
                self._arena, self._out, self._places, self._walls, self._counts, self._state,
            )  # fmt: skip
            if why == DONE:
                return
            self._go_on(why)

    def close(self) -> Mapping[str, int]:
        """Put out what is held back; gives what had no place, by name, with counts."""
        self._state[ROW] = 0
        # Threads in the order in which readers meet them, so that a part of a part is the same.
        rank = np.where(self._lanes.rank > 0, self._lanes.rank, NOT_NEGATIVE)
        order = np.argsort(rank, kind="stable")
        while end_buffers.for_size(self._expected)(
            order, self._plan, self._lanes, self._arena.view(np.uint8), self._arena, self._out,
            self._places, self._walls, self._state,
        ):  # fmt: skip
            self._go_on(FLUSH)
        self._flush()
        return self.dropped

    def _go_on(self, why: int) -> None:
        if why == GROW:
            self._grow(int(self._state[THREAD]), int(self._state[NEEDED]))
            return
        self._flush()
        needed = int(self._state[NEEDED])
        if needed > len(self._out):
            self._out = np.empty(needed, np.uint8)

    def _grow(self, thread: int, needed: int) -> None:
        """Give a thread a room of at least so many bytes, with what it has there."""
        start, room = int(self._lanes.start[thread]), int(self._lanes.room[thread])
        size = ROOM
        while size < needed:
            size *= 2
        free = self._free.get(size)
        if free:
            place = free.pop()
        else:
            place = self._used
            self._used += size
            if self._used > self._arena.nbytes:
                arena = np.empty(max(self._used, 2 * self._arena.nbytes) // 4, np.uint32)
                arena[: len(self._arena)] = self._arena
                self._arena = arena
        if room:
            arena = self._arena.view(np.uint8)
            fill = int(self._lanes.fill[thread])
            arena[place : place + fill] = arena[start : start + fill]
            self._free.setdefault(room, []).append(start)
        self._lanes.start[thread], self._lanes.room[thread] = place, size

    def _flush(self) -> None:
        made, written = int(self._state[MADE]), int(self._state[WRITTEN])
        if made:
            self._set_wall_times(self._places[:made], self._walls[:made].view(np.uint64))
        self._sink.write(self._out[:written].data)
        self._state[MADE] = self._state[WRITTEN] = 0

    def _set_wall_times(self, places: I64, ticks: NDArray[np.uint64]) -> None:
        """Fill in seconds and microseconds, as the counter has them."""
        frequency = np.uint64(self._frequency)
        seconds, rest = np.divmod(ticks, frequency)
        if self._frequency < 1 << 44:
            micros = rest * np.uint64(1_000_000) // frequency
        else:  # a clock of no machine: the product would not fit
            micros = np.minimum(rest // np.uint64(self._frequency // 1_000_000), 999_999)
        fields = np.empty((len(places), 12), np.uint8)
        seconds = np.minimum(seconds, np.uint64(NOT_NEGATIVE)).astype("<u8")
        fields[:, :8] = seconds.view(np.uint8).reshape(-1, 8)
        fields[:, 8:] = micros.astype("<u4").view(np.uint8).reshape(-1, 4)
        self._out[(places + 1)[:, None] + np.arange(12)] = fields


class BasicPacker(_Packer):
    """Writes traces of basic mode, versions 1 to 3, with events in the order in which they come."""

    def __init__(self, sink: Sink, header: Header, *, expected: int = 0) -> None:
        super().__init__(sink, header, expected)
        self._out = np.empty(OUT // 4, np.uint32)
        self._processes = self._numbers = np.zeros(0, np.int64)

    def add_threads(self, processes: I64, numbers: I64) -> None:
        """Number more threads, int64 of shape (n,): process and thread ids that 32 bits hold."""
        self._processes = np.append(self._processes, processes.astype(np.int64))
        self._numbers = np.append(self._numbers, numbers.astype(np.int64))

    def write(self, events: Events, payloads: U8) -> None:
        """Add events, whose ``thread`` is the number of one that was added.

        Each thread's stand in the order of its program, arguments behind their calls.
        """
        log = self._log(events, payloads)
        pack = pack_basic.for_size(self._expected)
        self._state[ROW] = 0
        while pack(
            log, len(log.kind), self._version, self._processes, self._numbers, self._out,
            self._counts, self._state,
        ):  # fmt: skip
            self._flush()

    def close(self) -> Mapping[str, int]:
        """Put out what is held back; gives what had no place, by name, with counts."""
        self._flush()
        return self.dropped

    def _flush(self) -> None:
        written = int(self._state[WRITTEN])
        self._sink.write(self._out[: written // 4].view(np.uint8).data)
        self._state[WRITTEN] = 0


def _fixed(column: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """A column as compiled code takes it: in one piece, of its type, and not to be written to."""
    fixed = np.ascontiguousarray(column, dtype).view()
    fixed.flags.writeable = False
    return fixed
