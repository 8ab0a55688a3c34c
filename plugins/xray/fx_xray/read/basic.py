"""Basic mode: its records, block by block, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fx_xray import rules
from fx_xray.format import (
    BASIC_BYTES,
    BASIC_PID_VERSION,
    BASIC_TAIL_EXIT_VERSION,
    CALL_ARGUMENT,
    DAMAGED,
    ENTER_ARG,
    FOLLOWS,
    FUNCTION,
    HEADER_BYTES,
    KIND_NAMES,
    TAIL_EXIT,
    BasicArgument,
    BasicFunction,
)
from fx_xray.read.buffers import Frames, Notes, SoundRows
from fx_xray.read.columns import latest, shifted
from fx_xray.read.frames import ROOM, Records
from fxframework.kernels.arrays import I64
from fxframework.kernels.sorting import begins_of_runs

TYPE_BYTES = 2
THREADS = 1 << 32
"""More numbers of threads than there are."""
WHO = ("function_id", "thread", "process")
"""Fields of a record that say whose it is; of a thread, the process has the bits above."""


class BasicFrames:
    """Reads the records of basic mode; of its ``sound`` rows, a block is a thread."""

    cuts = 0

    def __init__(self, records: Records) -> None:
        self.records = records
        self.version = records.version
        self.size = int(records.data.size)
        self.at = HEADER_BYTES
        self.ordinal = 1
        self.kinds = np.zeros(len(KIND_NAMES), np.int64)
        self.sound = SoundRows()
        self.calls_of: int | None = None
        """The thread of the last record, if that is a call."""
        self.losses: list[I64] = []
        # The last sound call before a block, if arguments of it may follow, and the last thread.
        self.call: tuple[int, int] | None = None
        self.thread = 0

    def skip(self, offset: int) -> None:
        """Step over whole records before a byte."""
        bytes_into_record = (offset - HEADER_BYTES) % BASIC_BYTES
        self.at = max(HEADER_BYTES, offset - bytes_into_record)

    def blocks(self, most: int = ROOM) -> Iterator[Frames]:
        """Yield the records, ``most`` at a time; none of an empty file."""
        while self.at < self.size:
            whole_records, bytes_over = divmod(self.size - self.at, BASIC_BYTES)
            count = min(most, whole_records + bool(bytes_over))
            begin = self.at + BASIC_BYTES * np.arange(count)
            end = np.minimum(begin + BASIC_BYTES, self.size)
            self.at = int(end[-1])
            yield self._read(begin, end)

    def _read(self, begin: I64, end: I64) -> Frames:
        notes = Notes(begin, self.ordinal + np.arange(begin.size))
        report = notes.report
        nbytes = end - begin
        fault = np.zeros(begin.size, np.int64)
        cut_rows = np.flatnonzero(nbytes < BASIC_BYTES)
        fault[cut_rows] = int(rules.PARTIAL_RECORD)
        report(rules.PARTIAL_RECORD, cut_rows, nbytes[cut_rows])
        whole_begin = begin[nbytes == BASIC_BYTES]
        type = np.full(begin.size, -1)
        type[: whole_begin.size] = self.records.numbers.integers(
            whole_begin, TYPE_BYTES, big=self.records.big
        )
        odd_rows = np.flatnonzero(type > 1)
        fault[odd_rows] = int(rules.BAD_TYPE)
        report(rules.BAD_TYPE, odd_rows, type[odd_rows])
        calls = np.flatnonzero(type == 0)
        kind, *of_calls = self.records.fields(BasicFunction, begin[calls], "kind", *WHO)
        is_bad = kind > ENTER_ARG
        fault[calls[is_bad]] = int(rules.BAD_KIND)
        report(rules.BAD_KIND, calls[is_bad], kind[is_bad])
        if self.version < BASIC_TAIL_EXIT_VERSION:
            report(rules.BASIC_TAIL_EXIT, calls[kind == TAIL_EXIT])
        is_call = (type == 0) & (fault == 0)
        is_argument = type == 1
        arguments = np.flatnonzero(is_argument)
        of_arguments = self.records.fields(BasicArgument, begin[arguments], *WHO)
        owners = np.zeros((len(WHO), begin.size), np.int64)
        owners[:, calls] = of_calls
        owners[:, arguments] = of_arguments
        function, thread, process = owners
        if self.version >= BASIC_PID_VERSION:
            thread += process * THREADS
        is_called, is_orphan = self._called(is_call, is_argument, function, thread)
        orphans = np.flatnonzero(is_orphan)
        report(rules.BASIC_ORPHAN, orphans, function[orphans])
        self._add_sound(begin, fault == 0, is_call, is_called, thread)
        shown_kind = np.full(begin.size, FUNCTION, np.uint8)
        shown_kind[is_argument] = CALL_ARGUMENT
        shown_kind[fault > 0] = DAMAGED
        self.kinds += np.bincount(shown_kind, minlength=self.kinds.size)
        lost = np.flatnonzero(fault)
        if lost.size:
            losses = np.stack([begin[lost], end[lost], fault[lost]])
            self.losses.append(losses)
        self.ordinal += begin.size
        return Frames(
            begin=begin,
            end=end,
            count=np.ones(begin.size, np.int64),
            kind=shown_kind,
            fault=fault,
            block=np.full(begin.size, -1),
            is_called=is_called,
            notes=notes.in_order(),
        )

    def _called(
        self, is_call: Any, is_argument: Any, function: I64, thread: I64
    ) -> tuple[Any, Any]:
        """Return whether arguments may follow, and which arguments are of no call.

        An argument belongs to the call before it, of the same function and thread, unless one
        between them does not.
        """
        call_before = shifted(latest(~is_argument))
        call_function = function[call_before]
        call_thread = thread[call_before]
        has_call = is_call[call_before]
        is_of_block_before = call_before < 0
        has_call[is_of_block_before] = self.call is not None
        if self.call is not None:
            call_function[is_of_block_before], call_thread[is_of_block_before] = self.call
        fits = has_call & (function == call_function) & (thread == call_thread)
        misfit = latest(is_argument & ~fits)
        is_orphan = is_argument & (misfit > call_before)
        is_called = is_call | is_argument & ~is_orphan
        if not is_called[-1]:
            self.call = None
        elif is_call[-1]:
            self.call = int(function[-1]), int(thread[-1])
        elif call_before[-1] >= 0:
            self.call = int(call_function[-1]), int(call_thread[-1])
        return is_called, is_orphan

    def _add_sound(
        self, begin: I64, is_sound: Any, is_call: Any, is_called: Any, thread: I64
    ) -> None:
        """Enter the calls that one thread wrote at a time, and each argument."""
        is_first = begins_of_runs(thread)
        call_before = np.append(self.calls_of == thread[0], is_call[:-1] & ~is_first[1:])
        begins = is_sound & ~(is_call & call_before)
        first = np.flatnonzero(begins)
        rows = np.cumsum(begins)
        # The first of the counts is of what goes on with the last row before.
        counts = np.bincount(rows[is_sound], minlength=first.size + 1)
        self.sound.lengthen(int(counts[0]))
        code = np.where(is_call[first], FUNCTION, CALL_ARGUMENT)
        flags = np.where(is_called[first] & ~is_call[first], FOLLOWS, 0)
        self.sound.add(begin[first], counts[1:], code, thread[first], flags)
        self.calls_of = int(thread[-1]) if is_call[-1] else None
