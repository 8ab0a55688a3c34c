"""The flight data recorder: the decisions of compiler-rt at run time, over any memory.

``FdrWriter`` holds the buffers, ``FdrThread`` records into them for a thread. A buffer is in a slot
of the memory: two words, then the records. The first word is the number of bytes of records, and is
stored last, so that a sound log remains whenever the program stops: ``log_of`` makes it from the
memory, as ``writer.log()`` does. The second word is twice the number of the buffer, in the order of
use, plus 1 while a thread is using it.

Differences from compiler-rt: a tail exit that is not kept removes its own entry and nothing else;
extents include the headers of typed events; an event that does not fit any buffer is refused;
buffers are in the file in the order of use, which decides between those of the same microsecond.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from fx_xray import format as wire
from fx_xray import rules
from fx_xray.format import (
    BUFFER_BYTES,
    BUFFERS,
    ENTER,
    ENTER_ARG,
    EVENT_CPU_VERSION,
    EVENT_DELTA_VERSION,
    EXTENTS_VERSION,
    FDR_VERSIONS,
    FUNCTION_BYTES,
    MAX_FUNCTION_ID,
    METADATA_BYTES,
    PID_VERSION,
    SMALLEST_BUFFER,
    THRESHOLD_US,
    WRAP_TICKS,
    BufferForm,
    FileHeader,
)
from fx_xray.write.recorder import (
    CPU_MASK,
    Recorder,
    ThreadRecorder,
    argument_numbers,
    function_number,
    microseconds_of,
    whole_number,
)
from fxframework.errors import refusal
from fxframework.io.memory import BytesMemory
from fxframework.io.words import U64_MAX, WORD, Bits
from fxframework.model.target import Clock, Memory, TimestampCounter

SLOT_HEADER_BYTES: Final = 16
"""Two words: bytes of records, and number of the buffer with its bit of use."""
FUNCTION_ROOM: Final = METADATA_BYTES + FUNCTION_BYTES
"""Bytes that a function record may need, including metadata before it."""
_KIND_AT = wire.FUNCTION_KIND.low
_ID_AT = wire.FUNCTION_ID.low
_DELTA_AT = wire.DELTA_BIT
_SLOT_NUMBER, _SLOT_USED = Bits("number", 1, 63), Bits("used", 0, 0)
_MOST_I32 = (1 << 31) - 1
_U16_MAX = (1 << 16) - 1

_FUNCTION = struct.Struct("<II").pack
_NO_CPU = -1


_NEW_BUFFER = wire.packer(wire.NewBuffer)
_END_OF_BUFFER = wire.packer(wire.EndOfBuffer)()
_NEW_CPU = wire.packer(wire.NewCpu)
_TSC_WRAP = wire.packer(wire.TscWrap)
_WALL_TIME = wire.packer(wire.WallTime)
_ARGUMENT = wire.packer(wire.CallArgument)
_EXTENTS = wire.packer(wire.BufferExtents)
_PID = wire.packer(wire.Pid)
_CUSTOM = wire.packer(wire.CustomEvent)
_CUSTOM_AT = wire.packer(wire.CustomEventAt)
_CUSTOM_ON = wire.packer(wire.CustomEventOn)
_TYPED = wire.packer(wire.TypedEvent)
_TYPED_AT = wire.packer(wire.TypedEventAt)


def slot_bytes(buffer_size: int) -> int:
    """Return the bytes of memory that a buffer takes."""
    return SLOT_HEADER_BYTES + -(-buffer_size // WORD) * WORD


def log_of(
    image: bytes,
    *,
    version: int = FDR_VERSIONS[-1],
    buffer_size: int = BUFFER_BYTES,
    cycle_frequency: int,
    constant_tsc: bool = True,
    nonstop_tsc: bool = True,
) -> bytes:
    """Return the file of an ``FdrWriter``'s memory, even after a crash.

    The arguments are those of the writer and its counter. Buffers are in the order of use, without
    empty ones. From version 2 on each has its extents; in version 1 it ends with EndOfBuffer and
    padding up to its full size.
    """
    header = FileHeader(
        version=version,
        constant_tsc=constant_tsc,
        nonstop_tsc=nonstop_tsc,
        cycle_frequency=cycle_frequency,
        buffer_size=buffer_size,
    )
    file_parts = [header.pack()]
    for records in buffers_of(image, buffer_size):
        if version >= EXTENTS_VERSION:
            file_parts += [_EXTENTS(len(records)), records]
        else:
            file_parts += [_padded(records, buffer_size)]
    return b"".join(file_parts)


def _padded(records: bytes, buffer_size: int) -> bytes:
    """Return a buffer of version 1: its records, EndOfBuffer, and padding.

    llvm-xray 14 to 19 reads the padding as records. Zeros are valid records of 8 bytes; if their
    number is not a multiple of 8, because of a payload or the size, an event with the remaining
    bytes comes first.
    """
    ended = records + _END_OF_BUFFER
    odd = (buffer_size - len(records)) % WORD
    if odd and len(ended) + METADATA_BYTES + odd <= buffer_size:
        ended += _CUSTOM_AT(odd, 0)
    return ended.ljust(buffer_size, b"\0")


def buffers_of(image: bytes, buffer_size: int) -> Iterator[bytes]:
    """Yield the records of each non-empty buffer, in the order of use."""
    step = slot_bytes(buffer_size)
    slots_in_use = []
    for slot in range(0, len(image) - step + 1, step):
        committed, state = struct.unpack_from("<QQ", image, slot)
        if committed:
            slots_in_use.append(
                (_SLOT_NUMBER.get(state), slot + SLOT_HEADER_BYTES, min(committed, buffer_size))
            )
    for _, start, nbytes in sorted(slots_in_use):
        yield image[start : start + nbytes]


class FdrWriter(Recorder["FdrThread"]):
    """Records calls as XRay's flight data recorder does.

    Args:
        counter: the time-stamp counter of threads without their own; None: this machine's
            clock. Its frequency, constant and nonstop flags are in the header.
        version: version of the file, 1 to 5.
        memory: memory of the buffers; None: memory of this process. Earlier contents are
            overwritten.
        buffer_size: bytes of a buffer, 128 or more.
        buffers: number of buffers; None: 100, or as many as fit into the memory.
        process: the process id of threads without their own; stored from version 3 on.
        threshold_us: calls shorter than this many microseconds are not kept, unless they contain
            kept ones or have arguments. 0 keeps all.
        clock: the wall time of buffers: a ``Clock`` (its monotonic time), or a function that
            returns nanoseconds; None: this machine's clock.
        circular: whether full and released buffers are reused, the oldest first, losing their
            records. Otherwise calls are dropped once all buffers are used.
        check: whether to refuse the exit of a function that the thread is not in.

    Raises WriteRefusedError for values out of range (WRONG_TYPE, OUT_OF_RANGE), and if the buffers
    are too small or do not fit into the memory (BUFFER_TOO_SMALL). Several threads may record, each
    by its own ``thread(...)``.
    """

    losses = "entries, exits and events were dropped: no buffer was free"
    VERSIONS = FDR_VERSIONS
    IDS = (-(1 << 31), (1 << 31) - 1)

    def __init__(
        self,
        counter: TimestampCounter | None = None,
        *,
        version: int = FDR_VERSIONS[-1],
        memory: Memory | None = None,
        buffer_size: int = BUFFER_BYTES,
        buffers: int | None = None,
        process: int = 1,
        threshold_us: int = THRESHOLD_US,
        clock: Clock | Callable[[], int] | None = None,
        circular: bool = True,
        check: bool = True,
    ) -> None:
        super().__init__(
            counter, version=version, process=process, threshold_us=threshold_us, check=check
        )
        self.buffer_size = whole_number("buffer_size", buffer_size, 0, U64_MAX)
        if self.buffer_size < SMALLEST_BUFFER:
            raise refusal(rules.BUFFER_TOO_SMALL, f"a buffer has {buffer_size} bytes")
        self.form = BufferForm(self.version, self.buffer_size)
        self.wrap_ticks = WRAP_TICKS[self.version]
        self.circular = circular
        step = slot_bytes(self.buffer_size)
        if buffers is None:
            buffers = BUFFERS if memory is None else memory.size // step
        self.buffers = whole_number("buffers", buffers, 0, U64_MAX)
        self.words: memoryview | None = None
        """The memory as words, if it is private to this writer."""
        if memory is None:
            memory = BytesMemory(self.buffers * step)
            self.words = memory.words
        self.memory: Memory = memory
        if not 0 < self.buffers * step <= self.memory.size:
            raise refusal(
                rules.BUFFER_TOO_SMALL,
                f"{self.buffers} buffers of {step} bytes in {self.memory.size} bytes of memory",
            )
        for slot in range(0, self.buffers * step, step):
            if self.memory.load_u64(slot):
                self.memory.store_u64(slot, 0)
        self._wall = microseconds_of(clock)
        self._free = deque(range(0, self.buffers * step, step))
        """Free slots, the next one first."""
        self._taken = 0
        self._finished = False

    def _new(self, process: int, tid: int, counter: TimestampCounter) -> FdrThread:
        return FdrThread(self, process, tid, counter)

    def finish(self) -> None:
        """Release all buffers. Later records are dropped."""
        self._finished = True
        super().finish()

    def log(self, image: bytes | None = None) -> bytes:
        """Return the file recorded so far, or that of an image of the memory."""
        if image is None:
            image = self.memory.read(0, self.buffers * slot_bytes(self.buffer_size))
        return log_of(
            image,
            version=self.version,
            buffer_size=self.buffer_size,
            cycle_frequency=self.cycle_frequency,
            constant_tsc=self.counter.constant,
            nonstop_tsc=self.counter.nonstop,
        )

    # --- for its threads ---

    def take(self, process: int, tid: int) -> tuple[int, bytes] | None:
        """Take an empty slot. Return it with its buffer's preamble, not stored yet, or None."""
        with self._lock:
            if self._finished or not self._free:
                return None
            slot = self._free.popleft()
            self._taken += 1
            number = self._taken
        # Clear it first, so that old bytes are not read as those of this buffer.
        self.memory.store_u64(slot, 0)
        self.memory.store_u64(slot + WORD, _SLOT_NUMBER.put(number) | _SLOT_USED.put(1))
        preamble = _NEW_BUFFER(tid) + _WALL_TIME(*self._wall())
        if self.version >= PID_VERSION:
            preamble += _PID(process)
        return slot, preamble

    def release(self, slot: int) -> None:
        """Release a slot that a thread has finished."""
        state = self.memory.load_u64(slot + WORD)
        self.memory.store_u64(slot + WORD, state & ~_SLOT_USED.mask)
        if self.circular:
            with self._lock:
                self._free.append(slot)


class FdrThread(ThreadRecorder):
    """Records for one thread; created by ``FdrWriter.thread``."""

    def __init__(
        self, writer: FdrWriter, process: int, tid: int, counter: TimestampCounter
    ) -> None:
        super().__init__(writer, process, tid, counter)
        self._writer = writer
        self._store = writer.memory.store_u64
        self._memory = writer.memory
        self._words = writer.words
        self._wrap = writer.wrap_ticks
        self._version = writer.version
        self._capacity = writer.form.preamble + writer.form.room
        self._slot = -1
        self._start = 0
        self._at = 0
        """Byte of the memory for the next record."""
        self._end = 0
        """End of the buffer; 0 without one."""
        self._cpu = _NO_CPU
        """CPU of the last record; none in a new buffer."""
        self._latest = 0
        """Time to which the next record's delta refers."""

    def enter(
        self, function_id: int, *arguments: int, counter: TimestampCounter | None = None
    ) -> bool:
        """Record the entry of a function, with arguments of 64 bits.

        A call with arguments is kept, however short it is.
        """
        if function_id.__class__ is not int or not 0 <= function_id <= MAX_FUNCTION_ID:
            function_id = function_number(function_id)
        if arguments:
            return self._enter_with(function_id, arguments, counter)
        tsc, aux = (counter or self._counter).read_tscp()
        cpu = aux & CPU_MASK
        delta = tsc - self._latest
        # Metadata or another buffer is needed, which is rare.
        if cpu != self._cpu or not 0 <= delta <= self._wrap or self._at + FUNCTION_ROOM > self._end:
            if not self._put_with_metadata(ENTER, function_id, tsc, cpu):
                if self._check:
                    self._open.append(~function_id)
                return False
            self._undoable.append((function_id, tsc, 0))
        else:
            self._put(function_id << _ID_AT | delta << _DELTA_AT)
            self._latest = tsc
            self._undoable.append((function_id, tsc, delta))
        if self._check:
            self._open.append(function_id)
        return True

    def custom_event(self, data: bytes, *, counter: TimestampCounter | None = None) -> bool:
        """Record an event with a payload of at least one byte (llvm-xray refuses empty ones)."""
        data = self._payload(data)
        tsc, cpu, metadata = self._before_event(len(data), counter)
        if metadata is None:
            return False
        if self._version >= EVENT_DELTA_VERSION:
            record = _CUSTOM(len(data), tsc - self._latest)
            self._latest = tsc
        elif self._version == EVENT_CPU_VERSION:
            record = _CUSTOM_ON(len(data), tsc, cpu)
        else:
            record = _CUSTOM_AT(len(data), tsc)
        self._put_bytes(metadata + record + data)
        return True

    def typed_event(
        self, event_type: int, data: bytes, *, counter: TimestampCounter | None = None
    ) -> bool:
        """Record an event with a type, 0 to 65535, and a payload as above; from version 3 on."""
        if self._version < PID_VERSION:
            raise refusal(rules.UNSUPPORTED_VERSION, f"version {self._version} has no typed events")
        event_type = whole_number("event_type", event_type, 0, _U16_MAX)
        data = self._payload(data)
        tsc, _, metadata = self._before_event(len(data), counter)
        if metadata is None:
            return False
        if self._version >= EVENT_DELTA_VERSION:
            record = _TYPED(len(data), tsc - self._latest, event_type)
            self._latest = tsc
        else:
            record = _TYPED_AT(len(data), tsc, event_type)
            # llvm-xray reads half of the time as a delta: force a TSCWrap that corrects it.
            self._latest = tsc ^ (1 << 63)
        self._put_bytes(metadata + record + data)
        return True

    def finish(self) -> None:
        """Release the buffer. A later record takes another one."""
        if self._slot >= 0:
            self._writer.release(self._slot)
            self._slot = -1
        self._end = 0
        self._cpu = _NO_CPU
        self._undoable.clear()

    # --- helpers ---

    def _enter_with(
        self, function_id: int, arguments: tuple[Any, ...], counter: TimestampCounter | None
    ) -> bool:
        """Record an entry with arguments; versions 1 to 3 have no kind of entry for them."""
        numbers = argument_numbers(arguments)
        size = FUNCTION_BYTES + METADATA_BYTES * len(numbers)
        self._fit(f"an entry with {len(numbers)} arguments", size)
        tsc, aux = (counter or self._counter).read_tscp()
        metadata = self._before(METADATA_BYTES + size, tsc, aux & CPU_MASK)
        if metadata is not None:
            kind = ENTER
            if self._version >= EVENT_CPU_VERSION:
                kind = ENTER_ARG
            record = _FUNCTION(function_id << _ID_AT | kind << _KIND_AT, tsc - self._latest)
            self._put_bytes(metadata + record + b"".join(map(_ARGUMENT, numbers)))
            self._latest = tsc
            self._undoable.clear()
        is_recorded = metadata is not None
        if self._check:
            self._open.append(function_id if is_recorded else ~function_id)
        return is_recorded

    def _leave(self, kind: int, function_id: int, counter: TimestampCounter | None) -> bool:
        if function_id.__class__ is not int or not 0 <= function_id <= MAX_FUNCTION_ID:
            function_id = function_number(function_id)
        if self._check:
            calls = self._open
            if calls and calls[-1] == function_id:
                calls.pop()
            elif not self._leave_open(function_id):
                self._writer.drop()
                return False
        tsc, aux = (counter or self._counter).read_tscp()
        cpu = aux & CPU_MASK
        delta = tsc - self._latest
        if cpu != self._cpu or not 0 <= delta <= self._wrap or self._at + FUNCTION_ROOM > self._end:
            return self._put_with_metadata(kind, function_id, tsc, cpu)
        undoable = self._undoable
        if undoable:
            entered, since, entry_delta = undoable[-1]
            if entered == function_id and tsc - since < self._threshold:
                # Too short to be kept: remove the entry, which is the last record.
                undoable.pop()
                self._at -= FUNCTION_BYTES
                self._latest -= entry_delta
                self._store(self._slot, self._at - self._start)
                return True
            undoable.clear()
        self._put(function_id << _ID_AT | kind << _KIND_AT | delta << _DELTA_AT)
        self._latest = tsc
        return True

    def _payload(self, data: Any) -> bytes:
        """Return the bytes of an event; WriteRefusedError if they do not fit a buffer."""
        try:
            payload = bytes(memoryview(data))
        except TypeError:
            message = f"a payload must be bytes, not a {type(data).__name__}"
            raise refusal(rules.WRONG_TYPE, message) from None
        whole_number("the size of a payload", len(payload), 1, _MOST_I32)
        self._fit(f"an event of {len(payload):,} bytes", METADATA_BYTES + len(payload))
        return payload

    def _fit(self, what: str, size: int) -> None:
        room = self._writer.form.room
        if size > room:
            raise refusal(
                rules.EVENT_TOO_LARGE,
                f"{what} needs {size:,} bytes; a buffer has room for {room:,}",
            )

    def _before_event(
        self, size: int, counter: TimestampCounter | None
    ) -> tuple[int, int, bytes | None]:
        """Return time and CPU of an event, and the metadata before it; None without a buffer."""
        tsc, aux = (counter or self._counter).read_tscp()
        cpu = aux & CPU_MASK
        absolute = self._version < EVENT_DELTA_VERSION
        metadata = self._before(2 * METADATA_BYTES + size, tsc, cpu, absolute=absolute)
        if metadata is not None:
            self._undoable.clear()
        return tsc, cpu, metadata

    def _before(self, room: int, tsc: int, cpu: int, *, absolute: bool = False) -> bytes | None:
        """Return the metadata before a record, which may take ``room`` bytes with it.

        None without a buffer. A record with an ``absolute`` time needs metadata only at the
        beginning of a buffer.
        """
        metadata = b""
        if self._at + room > self._end:
            self.finish()
            slot_and_preamble = self._writer.take(self.process, self.tid)
            if slot_and_preamble is None:
                self._writer.drop()
                return None
            self._slot, metadata = slot_and_preamble
            self._at = self._slot + SLOT_HEADER_BYTES
            self._start = self._at
            self._end = self._start + self._capacity
        if self._cpu == _NO_CPU or (cpu != self._cpu and not absolute):
            metadata += _NEW_CPU(cpu, tsc)
            self._cpu = cpu
        elif absolute or 0 <= tsc - self._latest <= self._wrap:
            return metadata
        else:
            metadata += _TSC_WRAP(tsc)
        self._latest = tsc
        self._undoable.clear()
        return metadata

    def _put_with_metadata(self, kind: int, function_id: int, tsc: int, cpu: int) -> bool:
        """Record a function after the metadata that it needs. Return False without a buffer."""
        metadata = self._before(FUNCTION_ROOM, tsc, cpu)
        if metadata is None:
            return False
        word = function_id << _ID_AT | kind << _KIND_AT
        self._put_bytes(metadata + _FUNCTION(word, tsc - self._latest))
        self._latest = tsc
        self._undoable.clear()
        return True

    def _put(self, record: int) -> None:
        """Store a record of 8 bytes, then the number of bytes."""
        place = self._at
        word, odd = divmod(place, WORD)
        if odd:  # after a payload
            self._put_bytes(record.to_bytes(FUNCTION_BYTES, "little"))
            return
        self._at = place + FUNCTION_BYTES
        words = self._words
        if words is not None:
            words[word] = record
            words[self._slot // WORD] = self._at - self._start
            return
        self._store(place, record)
        self._store(self._slot, self._at - self._start)

    def _put_bytes(self, data: bytes) -> None:
        """Store records, then the number of bytes; those before them in a word do not change."""
        place = self._at
        low = place - place % WORD
        whole_words = self._memory.read(low, place - low) + data
        self._memory.write(low, whole_words + bytes(-len(whole_words) % WORD))
        self._at = place + len(data)
        self._store(self._slot, self._at - self._start)
