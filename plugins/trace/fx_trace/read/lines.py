"""Lines of record JSON, from the columns of blocks.

``fxframework.wire.json_rows`` writes the fields of declared records. What columns do not say is
shown by objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from fx_trace import rules
from fx_trace.indexed import HexBits, OptionalBits, Payload, Process, Thread, ThreadOrProcess
from fx_trace.read.blocks import TraceBlocks, koids_of
from fx_trace.read.frames import TraceFile
from fx_trace.records import TraceRecord
from fxframework.io.limits import Limits
from fxframework.io.words import WORD
from fxframework.kernels.arrays import I64, Bools
from fxframework.kernels.parts import NATURAL
from fxframework.kernels.templates import Cell
from fxframework.kit.lossless import LosslessRecord
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.strings import StringPool
from fxframework.wire.json_rows import RowTexts, ShownRows, is_said, is_shown, just, when
from fxframework.wire.known import CODE, LENGTH, START
from fxframework.wire.lines import LineReader
from fxframework.wire.runs import Run


class TraceLines(TraceBlocks, LineReader):
    """Reads the records of a trace into lines of record JSON."""

    texts: TraceTexts

    def __init__(self, file: TraceFile, limits: Limits) -> None:
        super().__init__(file, limits)
        self.texts = TraceTexts(self.numbers.data, self.strings, file)

    def lines_reported(self, diagnostics: Diagnostics | None) -> Iterator[bytes]:
        """Yield the lines of each block, once its findings are reported."""
        for lines in self.lines():
            self.report(diagnostics)
            yield lines
        self.report_more(diagnostics)

    def says(self, layout: Any) -> bool:
        """Return whether columns say what records or parts of a class show."""
        if layout.is_part:
            return is_said(layout)
        is_plain = layout.cls.show is TraceRecord.show
        return is_plain and all(map(is_shown_here, layout.shown))

    def show(self, record: LosslessRecord) -> None:
        """Make the line of the record that the walk has read."""
        place = self.walk.place
        line = record.to_json()
        (offset,) = self.file.offset_of(np.array([place]))
        line["offset"] = int(offset)
        self.keep(place, line)

    def put_stretches(self, run: Run, entry: int, rows: I64) -> None:
        """Make the lines of stretches that are not records."""
        del entry
        faults = self.frames.faults[rows]
        for fault in np.unique(faults[faults > 0]).tolist():
            of_fault = rows[faults == fault]
            if fault == int(rules.ZERO_WORDS):
                self.texts.put_padding(run.places[of_fault], run.sizes[of_fault])
            else:
                self.put_damaged(run, fault, of_fault)
        for row in rows[faults <= 0].tolist():
            self.put_special(run, row)

    def put_special(self, run: Run, row: int) -> None:
        """Make the line of a stretch in which no records are looked for; report what is found."""
        place = int(run.places[row])
        self.walk.state = SimpleNamespace(ordinal=row)
        self.walk.at = place
        record, notes = self.walk.next()
        self.show(record)
        for rule, offset, value in notes:
            run.note_rows(rule, np.array([row]), np.array([value]), np.array([offset]))


class TraceTexts(RowTexts):
    """Writes records, or arguments."""

    def __init__(self, data: NDArray[np.uint8], strings: StringPool, file: TraceFile) -> None:
        super().__init__(data, strings)
        self.file = file

    @property
    def shows(self) -> type[ShownRows]:
        """The class of rows as parts of a template."""
        return TraceRows

    def offsets_of(self, places: I64) -> I64:
        """Return the offsets that lines show for places of the data."""
        return self.file.offset_of(places)

    def of_items(self) -> TraceTexts:
        """Return what writes the items of a list."""
        return TraceTexts(self.data, self.strings, self.file)


class TraceRows(ShownRows):
    """Records of a class, or arguments, as parts of a template."""

    texts: TraceTexts

    def fields(self) -> list[Cell]:
        """Return what tells the kind, and all fields."""
        constants: dict[str, Any] = getattr(self.many.layout.cls, "constants", {})
        members = [
            b"," + orjson.dumps(key) + b":" + orjson.dumps(value)
            for key, value in constants.items()
        ]
        return [*members, *super().fields()]

    def presence(self, field: Any) -> Bools:
        """Return in which rows a field is shown."""
        if isinstance(field, OptionalBits):
            is_set: Bools = self.column(field) != 0
            return is_set
        return super().presence(field)

    def member(self, field: Any) -> list[Cell]:
        """Return the key and the value of a field that is there; of a payload its size, too."""
        member = super().member(field)
        if isinstance(field, Payload):
            return [b',"size":', (NATURAL, self.column((field, LENGTH))), *member]
        if isinstance(field, ThreadOrProcess):
            return self.thread_or_process(field, member)
        return member

    def thread_or_process(self, field: ThreadOrProcess, member: list[Cell]) -> list[Cell]:
        """Return the key and the value of a thread, or a process, by the words that it has."""
        if (field, LENGTH) not in self.many.known:  # none is inline
            return member
        words = self.column((field, LENGTH)) // WORD
        if isinstance(field, Process):
            thread: list[Cell] = [b',"thread":', *self.both_koids(field)]
            return [*member, *when(words == 2, lambda: thread)]
        process: list[Cell] = [b',"process":', (NATURAL, self.koid(field, 0))]
        return [*when(words == 1, lambda: process), *when(words != 1, lambda: member)]

    def value(self, field: Any) -> list[Cell]:
        """Return the value of a field."""
        if isinstance(field, HexBits):
            return self.made(field, self.every_row, self.column(field), int)
        if isinstance(field, Thread):
            return self.thread(field)
        return super().value(field)

    def thread(self, field: Thread) -> list[Cell]:
        """Return threads: two koids, or the marker of an index that nobody registered."""
        in_table = self.by_number(field)
        value_of = self.process_of if isinstance(field, Process) else self.thread_of
        is_known = np.zeros(self.count, bool)
        codes = np.zeros(0, np.int32)
        if in_table.any():
            codes = self.column((field, CODE))
            is_known = in_table & (codes >= 0)
        unknown_name = (b'"<thr#', (NATURAL, self.column(field.index)), b'>"')
        return [
            *when(~in_table, self.koids, field),
            *when(is_known, self.made, field, is_known, codes, value_of),
            *when(in_table & ~is_known, just, *unknown_name),
        ]

    def koids(self, field: Thread) -> list[Cell]:
        """Return the koids that are in the records."""
        if isinstance(field, Process):
            return [(NATURAL, self.koid(field, 0))]
        return self.both_koids(field)

    def both_koids(self, field: Thread) -> list[Cell]:
        """Return the two koids that are in the records."""
        process, thread = (self.koid(field, number) for number in (0, 1))
        return [b"[", (NATURAL, process), b",", (NATURAL, thread), b"]"]

    def koid(self, field: Thread, number: int) -> I64:
        """Return one of the koids in the records; rows without them have some number."""
        places = self.column((field, START)) + WORD * number
        places = np.where(places > self.texts.data.size - WORD, 0, places)
        return self.many.reading.numbers.integers(places, WORD, big=self.many.big)

    def thread_of(self, code: int) -> tuple[int, int]:
        """Return the thread of a code."""
        return koids_of(self.texts.strings.bytes_of(code), big=self.many.big)

    def process_of(self, code: int) -> int:
        """Return the process of a thread by its code."""
        return self.thread_of(code)[0]

    def by_number(self, field: Any) -> Bools:
        """Return in which rows a reference that is there is a number."""
        if isinstance(field, Thread):
            is_number: Bools = self.column(field.index) != 0
            return is_number
        return super().by_number(field)


def is_shown_here(field: Any) -> bool:
    """Return whether columns can show a field."""
    return isinstance(field, HexBits | OptionalBits | Thread | Payload) or is_shown(field)
