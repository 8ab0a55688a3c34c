"""Basic mode: its records, block by block, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_xray import rules
from fx_xray.format import (
    BASIC_BYTES,
    BASIC_PID_VERSION,
    BASIC_TAIL_EXIT_VERSION,
    CALL_ARGUMENT,
    DAMAGED,
    ENTER_ARG,
    FUNCTION,
    HEADER_BYTES,
    KIND_NAMES,
    ORPHAN,
    TAIL_EXIT,
    BasicArgument,
    BasicFunction,
)
from fx_xray.read.buffers import Frames, Notes, SoundRows
from fx_xray.read.columns import latest, shifted
from fx_xray.read.frames import ROOM, Records
from fxframework.errors import Rule

__all__ = ["BasicFrames"]

I64 = NDArray[np.int64]
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
        self.last_thread: int | None = None
        """The thread of the last record, if that is sound."""
        self.losses: list[I64] = []
        # The last sound call before a block, if arguments of it may follow, and the last thread.
        self.call: tuple[int, int] | None = None
        self.thread = 0

    def skip(self, offset: int) -> None:
        """Step over whole records before a byte."""
        self.at = max(HEADER_BYTES, offset - (offset - HEADER_BYTES) % BASIC_BYTES)

    def blocks(self, most: int = ROOM) -> Iterator[Frames]:
        """Yield the records, ``most`` at a time; none of an empty file."""
        while self.at < self.size:
            count = min(most, -(-(self.size - self.at) // BASIC_BYTES))
            begin = self.at + BASIC_BYTES * np.arange(count)
            end = np.minimum(begin + BASIC_BYTES, self.size)
            self.at = int(end[-1])
            yield self._read(begin, end)

    def _read(self, begin: I64, end: I64) -> Frames:
        notes = Notes()
        ordinals = self.ordinal + np.arange(begin.size)

        def report(rule: Rule, rows_found: I64, value: Any = 0) -> None:
            notes.add(rule, rows_found, begin[rows_found], ordinals[rows_found], value)

        whole_records = int(np.count_nonzero(end - begin == BASIC_BYTES))
        fault = np.zeros(begin.size, np.int64)
        rows_found = np.arange(whole_records, begin.size)
        fault[rows_found] = int(rules.PARTIAL_RECORD)
        report(rules.PARTIAL_RECORD, rows_found, (end - begin)[rows_found])
        type = np.full(begin.size, -1)
        type[:whole_records] = self.records.numbers.integers(
            begin[:whole_records], TYPE_BYTES, big=self.records.big
        )
        rows_found = np.flatnonzero(type > 1)
        fault[rows_found] = int(rules.BAD_TYPE)
        report(rules.BAD_TYPE, rows_found, type[rows_found])
        calls = np.flatnonzero(type == 0)
        kind, *who_calls = self.records.fields(BasicFunction, begin[calls], "kind", *WHO)
        is_bad = kind > ENTER_ARG
        fault[calls[is_bad]] = int(rules.BAD_KIND)
        report(rules.BAD_KIND, calls[is_bad], kind[is_bad])
        if self.version < BASIC_TAIL_EXIT_VERSION:
            report(rules.BASIC_TAIL_EXIT, calls[kind == TAIL_EXIT])
        is_call = (type == 0) & (fault == 0)
        is_argument = type == 1
        arguments = np.flatnonzero(is_argument)
        who_argues = self.records.fields(BasicArgument, begin[arguments], *WHO)
        function, thread, process = np.zeros((3, begin.size), np.int64)
        for rows, columns in ((calls, who_calls), (arguments, who_argues)):
            function[rows], thread[rows], process[rows] = columns
        if self.version >= BASIC_PID_VERSION:
            thread += process * THREADS
        is_called, is_orphan = self._called(is_call, is_argument, function, thread)
        rows_found = np.flatnonzero(is_orphan)
        report(rules.BASIC_ORPHAN, rows_found, function[rows_found])
        self._add_sound(begin, fault == 0, is_orphan, thread)
        shown_kind = np.where(fault > 0, DAMAGED, np.where(is_argument, CALL_ARGUMENT, FUNCTION))
        self.kinds += np.bincount(shown_kind, minlength=self.kinds.size)
        lost = np.flatnonzero(fault)
        if lost.size:
            self.losses.append(np.stack([begin[lost], end[lost], fault[lost]]))
        self.ordinal += begin.size
        notes_in_order, rows_noted = notes.in_order()
        nothing = np.zeros(begin.size, np.int64)
        return Frames(begin, end, nothing + 1, shown_kind.astype(np.uint8), fault, nothing - 1,
                      is_called, nothing, notes_in_order, begin[rows_noted])  # fmt: skip

    def _called(
        self, is_call: Any, is_argument: Any, function: I64, thread: I64
    ) -> tuple[Any, Any]:
        """Return whether arguments may follow, and which arguments are of no call.

        An argument belongs to the call before it, of the same function and thread, unless one
        between them does not.
        """
        index = np.arange(is_call.size)
        call_before = shifted(latest(~is_argument))
        carried = self.call or (0, 0)
        call_function = np.where(call_before < 0, carried[0], function[call_before])
        call_thread = np.where(call_before < 0, carried[1], thread[call_before])
        has_call = np.where(call_before < 0, self.call is not None, is_call[call_before])
        fits = has_call & (function == call_function) & (thread == call_thread)
        misfit = latest(is_argument & ~fits)
        is_orphan = is_argument & (misfit > call_before)
        is_called = is_call | is_argument & ~is_orphan
        if index.size:
            last_call = index[-1] if is_call[-1] else call_before[-1]
            if not is_called[-1]:
                self.call = None
            elif last_call >= 0:
                self.call = int(function[last_call]), int(thread[last_call])
        return is_called, is_orphan

    def _add_sound(self, begin: I64, is_sound: Any, is_orphan: Any, thread: I64) -> None:
        """Enter what one thread wrote at a time; arguments of no call begin a new row."""
        sound_before = np.append(self.last_thread is not None, is_sound[:-1])
        same_thread = thread == np.append(self.last_thread or 0, thread[:-1])
        begins = is_sound & ~(sound_before & same_thread & ~is_orphan)
        # The first of the counts is of what goes on with the last row before.
        rows = np.cumsum(begins)
        counts = np.bincount(rows[is_sound], minlength=int(rows[-1]) + 1)
        first = np.flatnonzero(begins)
        self.sound.lengthen(int(counts[0]))
        nothing = np.zeros(first.size, np.int64)
        flags = np.where(is_orphan[first], ORPHAN, 0)
        self.sound.add(begin[first], counts[1:], nothing, thread[first], flags)
        self.last_thread = int(thread[-1]) if is_sound[-1] else None
