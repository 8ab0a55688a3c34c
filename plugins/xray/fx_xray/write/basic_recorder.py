"""The recorder of basic mode: a record of 32 bytes for each entry, exit and argument.

``BasicWriter`` holds the file, ``BasicThread`` records for a thread. As in compiler-rt, the records
of a thread are buffered, and moved to the file when there are 1,024 of them.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from fx_xray import rules
from fx_xray.format import (
    BASIC,
    BASIC_ARGUMENT,
    BASIC_BYTES,
    BASIC_FUNCTION,
    BASIC_MAX_CPU,
    BASIC_PID_VERSION,
    BASIC_TAIL_EXIT_VERSION,
    BASIC_VERSIONS,
    ENTER,
    ENTER_ARG,
    TAIL_EXIT,
    THRESHOLD_US,
    FileHeader,
)
from fx_xray.write.recorder import (
    CPU_MASK,
    Recorder,
    ThreadRecorder,
    argument_numbers,
    whole_number,
)
from fxframework.errors import refusal
from fxframework.io.words import U64_MAX
from fxframework.model.target import TimestampCounter

THREAD_RECORDS: Final = 1024
"""Records of a thread buffered before they go into the file."""
_MOST_I32 = (1 << 31) - 1
_FUNCTION = struct.Struct("<HBBiQII8x").pack
_ARGUMENT = struct.Struct("<H2xiIIQ8x").pack


class BasicWriter(Recorder["BasicThread"]):
    """Records calls as XRay's basic mode does.

    Args:
        counter: the time-stamp counter of threads without their own; None: this machine's
            clock. Its frequency, constant and nonstop flags are in the header.
        version: version of the file, 1 to 3.
        process: the process id of threads without their own; stored in version 3.
        threshold_us: calls shorter than this many microseconds are not kept, unless they contain
            kept ones, have arguments, or their thread changed its CPU. 0 keeps all.
        depth: calls nested deeper are not recorded; compiler-rt records 64. 0: no limit.
        check: whether to refuse the exit of a function that the thread is not in.

    Raises WriteRefusedError for values out of range (WRONG_TYPE, OUT_OF_RANGE). Several threads may
    record, each by its own ``thread(...)``.
    """

    VERSIONS = BASIC_VERSIONS
    IDS = (0, (1 << 32) - 1)

    def __init__(
        self,
        counter: TimestampCounter | None = None,
        *,
        version: int = BASIC_VERSIONS[-1],
        process: int = 1,
        threshold_us: int = THRESHOLD_US,
        depth: int = 0,
        check: bool = True,
    ) -> None:
        super().__init__(
            counter, version=version, process=process, threshold_us=threshold_us, check=check
        )
        self.depth = whole_number("depth", depth, 0, U64_MAX)
        self.losses = f"entries and exits below {self.depth} calls were dropped"
        self._parts: list[bytes] = []

    def _new(self, process: int, tid: int, counter: TimestampCounter) -> BasicThread:
        return BasicThread(self, process, tid, counter)

    def log(self) -> bytes:
        """Return the file recorded so far, with the threads' buffered records at the end."""
        counter = self.counter
        header = FileHeader(
            version=self.version,
            type=BASIC,
            constant_tsc=counter.constant,
            nonstop_tsc=counter.nonstop,
            cycle_frequency=self.cycle_frequency,
        ).pack()
        with self._lock:
            gathered = [bytes(thread.gathered) for thread in self._threads.values()]
            return b"".join([header, *self._parts, *gathered])

    # --- for its threads ---

    def put(self, records: bytearray) -> None:
        """Move a thread's buffered records into the file."""
        with self._lock:
            self._parts.append(bytes(records))
            records.clear()


class BasicThread(ThreadRecorder):
    """Records for one thread; created by ``BasicWriter.thread``."""

    def __init__(
        self, writer: BasicWriter, process: int, tid: int, counter: TimestampCounter
    ) -> None:
        super().__init__(writer, process, tid, counter)
        self.gathered = bytearray()
        """Buffered records, not in the file yet."""
        self._writer = writer
        self._process_field = process if writer.version >= BASIC_PID_VERSION else 0
        self._follows = writer.check or writer.depth > 0

    def enter(
        self, function_id: int, *arguments: int, counter: TimestampCounter | None = None
    ) -> bool:
        """Record the entry of a function, with arguments of 64 bits.

        A call with arguments is kept, however short it is.
        """
        function_id = whole_number("function_id", function_id, 0, _MOST_I32)
        numbers = argument_numbers(arguments)
        kind = ENTER_ARG if arguments else ENTER
        tsc, cpu = self._read(counter)
        if self._writer.depth and len(self._open) >= self._writer.depth:
            self._open.append(~function_id)
            self._writer.drop()
            return False
        if self._follows:
            self._open.append(function_id)
        self._put(kind, function_id, tsc, cpu)
        for value in numbers:
            self.gathered += _ARGUMENT(
                BASIC_ARGUMENT, function_id, self.tid, self._process_field, value
            )
        if numbers:
            self._undoable.clear()
        else:
            self._undoable.append((function_id, tsc, cpu))
        self._flush()
        return True

    def finish(self) -> None:
        """Move the buffered records into the file."""
        self._writer.put(self.gathered)
        self._undoable.clear()

    # --- helpers ---

    def _read(self, counter: TimestampCounter | None) -> tuple[int, int]:
        """Return time and CPU. Raises WriteRefusedError for a CPU number over a byte."""
        tsc, aux = (counter or self._counter).read_tscp()
        return tsc, whole_number("cpu", aux & CPU_MASK, 0, BASIC_MAX_CPU)

    def _leave(self, kind: int, function_id: Any, counter: TimestampCounter | None) -> bool:
        if kind == TAIL_EXIT and self._writer.version < BASIC_TAIL_EXIT_VERSION:
            message = f"version {self._writer.version} has no tail exits"
            raise refusal(rules.UNSUPPORTED_VERSION, message)
        function_id = whole_number("function_id", function_id, 0, _MOST_I32)
        tsc, cpu = self._read(counter)
        if self._follows and not self._leave_open(function_id):
            self._writer.drop()
            return False
        if self._undoable:
            entered, since, where = self._undoable[-1]
            short = 0 <= tsc - since < self._threshold
            if entered == function_id and where == cpu and short:
                # Too short to be kept: remove the entry, which is the last record.
                self._undoable.pop()
                del self.gathered[-BASIC_BYTES:]
                return True
            self._undoable.clear()
        self._put(kind, function_id, tsc, cpu)
        self._flush()
        return True

    def _put(self, kind: int, function_id: int, tsc: int, cpu: int) -> None:
        self.gathered += _FUNCTION(
            BASIC_FUNCTION, cpu, kind, function_id, tsc, self.tid, self._process_field
        )

    def _flush(self) -> None:
        """Move a full buffer into the file; its entries can no longer be undone."""
        if len(self.gathered) >= BASIC_BYTES * THREAD_RECORDS:
            self.finish()
