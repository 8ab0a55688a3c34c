"""Trace buffers: records committed to a device's memory, as in Fuchsia's trace engine."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.format import BUFFER_HEADER_BYTES, BufferingMode
from fx_trace.read.buffer import END_AT, BufferHeader, Image, header_offset
from fx_trace.records import FIRST_WORD, TYPE, claimed_bytes
from fxframework.errors import refusal
from fxframework.io.words import WORD
from fxframework.model.target import Memory

MAGIC_AT = header_offset("magic")
MODE_WORD_AT = header_offset("version")
WRAPPED_COUNT = BufferHeader.layout.place("wrapped_count")


class TraceBuffer:
    """A trace buffer in any memory, maintained as in Fuchsia's trace engine.

    ``put`` commits one whole record with a single store, that of its header word, so that an image
    taken (or a crash) between any two stores contains exactly the records committed so far. A
    ``streaming`` buffer calls ``on_full(wrapped_count, durable_data_end)`` for each filled half,
    and does not overwrite it until ``saved`` is called.

    With ``format=False`` an existing buffer in the memory is continued. Raises WriteRefusedError
    for a memory that cannot be a trace buffer (BUFFER_TOO_SMALL, INVALID_BUFFER_HEADER).
    """

    def __init__(
        self,
        memory: Memory,
        mode: BufferingMode | int | str,
        *,
        format: bool = True,
        on_full: Callable[[int, int], None] | None = None,
    ) -> None:
        self.memory = memory
        self.on_full = on_full
        self.lock = threading.RLock()
        """Held by a ``TraceWriter`` while it encodes and puts a record."""
        self.stopped = False
        self.dropped = 0
        """Records without room; stored in the header when the buffer is stopped."""
        self._full = False
        self._filled = [False, False]
        self._durable_used = 0
        self._offset = 0
        header = BufferHeader.for_size(memory.size, mode)
        self.mode = BufferingMode[str(header.mode).upper()]
        if format:
            self._format(header)
        else:
            header = self._resume(header)
        self._wrapped = header.wrapped_count
        self._durable_size = header.durable_buffer_size
        self._rolling_size = header.rolling_buffer_size
        self._starts = {name: start for name, start, _, _ in header.buffers()}

    @property
    def header(self) -> BufferHeader:
        """The header in the memory."""
        return BufferHeader.of(self.memory.read(0, BUFFER_HEADER_BYTES))

    @property
    def keeps_order(self) -> bool:
        """Whether readers see records in the order of ``put``; if not, durable ones come first."""
        return self.mode == BufferingMode.ONESHOT

    def has_room(self, nbytes: int) -> bool:
        """Return whether a durable record of ``nbytes`` would fit."""
        if self.mode == BufferingMode.ONESHOT:
            return not self._full and self._offset + nbytes <= self._rolling_size
        return self._durable_used + nbytes <= self._durable_size

    @property
    def wrapped_count(self) -> int:
        """How often the rolling buffers were switched."""
        return self._wrapped

    def put(self, record: bytes, *, durable: bool = False) -> bool:
        """Commit one whole record.

        Return False if it was dropped, for lack of room or after ``stop``.

        A ``durable`` record (strings, threads, the initialization record) goes to the durable
        buffer, which is never overwritten; a oneshot buffer needs none. Raises WriteRefusedError:
        METADATA_INSIDE_PROVIDER for metadata, BUFFER_TOO_SMALL for bytes that are not one record.
        """
        nbytes = len(record)
        self._check(record)
        if self.stopped:
            return False
        if durable and self.mode != BufferingMode.ONESHOT:
            return self._put_durable(record)
        size = self._rolling_size
        if nbytes > min(wire.MAX_LARGE_BYTES, size):
            return self._drop()
        is_switched = False
        if self._offset + nbytes > size or self._full:
            if self.mode == BufferingMode.ONESHOT:
                self._full = True  # permanent: later records must not appear without the lost ones
                return self._drop()
            if self._filled[1 - self._wrapped % 2]:
                return self._drop()
            self._switch()
            is_switched = True
        self._commit(f"rolling {self._wrapped % 2}", self._offset, record, size)
        self._offset += nbytes
        if is_switched and self.mode == BufferingMode.STREAMING and self.on_full is not None:
            # Called behind the record, which is then in the buffer whatever the callback does.
            self.on_full((self._wrapped - 1) & WRAPPED_COUNT.mask, self._durable_used)
        return True

    def _put_durable(self, record: bytes) -> bool:
        """Commit a record to the durable buffer, if it has room there."""
        used = self._durable_used + len(record)
        if len(record) > wire.MAX_LARGE_BYTES or used > self._durable_size:
            return self._drop()
        self._commit("durable", self._durable_used, record, self._durable_size)
        self._durable_used = used
        return True

    def saved(self, wrapped_count: int, durable_data_end: int) -> None:
        """Mark the half that was current at ``wrapped_count`` as saved, so that it can be reused.

        The manager calls it, with the bytes saved of the durable buffer, which stay. Values that do
        not fit a waiting half are ignored, as in the engine.
        """
        is_waiting = (wrapped_count + 1) & WRAPPED_COUNT.mask == self._wrapped
        if is_waiting and durable_data_end <= self._durable_used:
            self._filled[wrapped_count % 2] = False

    def stop(self) -> None:
        """Write the ends of the records and the number of dropped ones to the header."""
        if self.stopped:
            return
        self.stopped = True
        store = self.memory.store_u64
        store(END_AT["durable"], self._durable_used)
        store(END_AT[f"rolling {self._wrapped % 2}"], self._offset)
        self._store_wrapped()
        store(header_offset("num_records_dropped"), self.dropped)

    # --- stores ---

    def _format(self, header: BufferHeader) -> None:
        """Write the header of an empty buffer. Its magic is stored last, and makes it valid."""
        store = self.memory.store_u64
        store(MAGIC_AT, 0)
        for _, start, _, _ in header.buffers():
            store(start, 0)
        header_bytes = header.pack()
        for offset in range(0, len(header_bytes), WORD):
            if offset != MAGIC_AT:
                store(offset, FIRST_WORD.get(header_bytes, offset))
        store(MAGIC_AT, header.magic)

    def _resume(self, wanted: BufferHeader) -> BufferHeader:
        """Continue an existing buffer after its last record."""
        image = Image(np.frombuffer(self.memory.read(0, self.memory.size), np.uint8))
        header = image.header
        wanted_kind = wanted.total_size, wanted.mode
        if header is None or (header.total_size, header.mode) != wanted_kind:
            problem = image.faults[0] if image.faults else "another size or mode"
            raise refusal(
                rules.INVALID_BUFFER_HEADER,
                f"the memory does not hold such a trace buffer: {problem}",
            )
        self.dropped = header.num_records_dropped
        for region in image.regions:
            is_current = region is image.regions[-1]
            if region.name == "durable":
                self._durable_used = region.used
            if is_current:
                self._offset = region.used
            if is_current or region.name == "durable":
                # Until the buffer is stopped, readers find its end by scanning.
                if region.used < region.size:
                    self.memory.store_u64(region.offset + region.used, 0)
                self.memory.store_u64(END_AT[region.name], 0)
            else:
                self._filled[int(region.name[-1])] = self.mode == BufferingMode.STREAMING
        return header

    def _check(self, record: bytes) -> None:
        """Raise WriteRefusedError for bytes that are not one record, and for metadata."""
        nbytes = claimed_bytes(record) if len(record) >= WORD else 0
        if len(record) != nbytes or not nbytes:
            raise refusal(
                rules.BUFFER_TOO_SMALL, f"{len(record)} bytes that are not one whole record"
            )
        if TYPE.get(record, 0) == wire.RecordType.METADATA:
            raise refusal(
                rules.METADATA_INSIDE_PROVIDER,
                "a provider writes no metadata into its trace buffer",
            )

    def _drop(self) -> bool:
        """Count a record for which there is no room; return False, what ``put`` returns then."""
        self.dropped += 1
        return False

    def _commit(self, buffer: str, offset: int, record: bytes, size: int) -> None:
        """Store a record at byte ``offset`` of a buffer, where readers see no record yet.

        The header word is stored last: until then a reader finds a zero there, afterwards the whole
        record and a zero word that separates it from older contents.
        """
        place = self._starts[buffer] + offset
        payload = bytes(record[WORD:])
        if payload:
            self.memory.write(place + WORD, payload)
        if offset + len(record) < size:
            self.memory.store_u64(place + len(record), 0)
        self.memory.store_u64(place, FIRST_WORD.get(record, 0))

    def _switch(self) -> None:
        """Switch to the other half, whose contents are discarded with the second store.

        After each of the stores, the filled half reads whole.
        """
        filled = self._wrapped % 2
        next_half = 1 - filled
        self.memory.store_u64(END_AT[f"rolling {next_half}"], 0)
        self.memory.store_u64(self._starts[f"rolling {next_half}"], 0)
        self.memory.store_u64(END_AT[f"rolling {filled}"], self._offset)
        self._wrapped = (self._wrapped + 1) & WRAPPED_COUNT.mask
        self._store_wrapped()
        self._offset = 0
        self._filled[filled] = self.mode == BufferingMode.STREAMING

    def _store_wrapped(self) -> None:
        """Store how often the halves were switched."""
        # Version and mode are in the same word, and must not change even briefly.
        word = self.memory.load_u64(MODE_WORD_AT)
        self.memory.store_u64(MODE_WORD_AT, WRAPPED_COUNT.put(word, self._wrapped))
