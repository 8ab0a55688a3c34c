"""Capture: a file of a declared format, read by programs into lines and columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fxframework.io import arena
from fxframework.io.source import Source
from fxframework.io.words import view_of
from fxframework.kernels.notes import Notes
from fxframework.kernels.ops import AT_END, HANDED_OVER
from fxframework.kernels.program import Program
from fxframework.kit.lossless import LosslessRecord
from fxframework.kit.record_lines import PIECE
from fxframework.kit.scanned import Batch, FirstPass, ScannedCapture
from fxframework.model.capture import OpenRequest
from fxframework.model.schema import TableSchema
from fxframework.model.strings import TextColumn
from fxframework.model.table import Table
from fxframework.wire.columns import WHICH, Rows, differing
from fxframework.wire.expressions import Expression, wrapped
from fxframework.wire.fields import Field, Number, Span
from fxframework.wire.format import Format
from fxframework.wire.operations import Compiled
from fxframework.wire.programs import (
    CODES,
    COPIES,
    compile_copy,
    compile_lines,
    compile_rows,
)
from fxframework.wire.state import State, TextTable
from fxframework.wire.walk import Walk

__all__ = ["DeclaredCapture", "ProgramState", "capture_class"]

I64 = NDArray[np.int64]
Numbers = Mapping[Any, int]
Spans = Mapping[Any, tuple[int, int]]
Cells = dict[str, Any]
"""Columns of a table by name, of the types of the schema."""
TIME_BEYOND = 109
"""The number of the rule for times that saturate."""
LINES = ("/lines",)
"""The key of the program for record JSON; those for rows have the names of their tables."""
ROWS = 1 << 14
"""Rows of a table that a program makes at a time; they stay in the processor's cache."""
RELEASED = 8 << 20
"""Bytes of the file that are released at a time."""


class ProgramState(State):
    """The state of a program, for the object decoder of records that it hands over."""

    def __init__(self, compiled: Compiled, program: Program, data: memoryview) -> None:
        super().__init__(compiled.registers, big=bool(program.framing.big))
        self.compiled = compiled
        self.program = program
        self.data = data
        for register, slot in compiled.registers.items():
            self.registers[register] = program.slots[slot]

    def text(self, table: TextTable, index: int) -> str | None:
        """Return the text of a number; None if nothing declared it."""
        texts = self.program.texts
        number = texts.find(self.compiled.table_numbers[table], wrapped(index))
        if number < 0:
            return None
        start, length = texts.starts[number], texts.lengths[number]
        length = length if length >= 0 else -1 - length
        return bytes(self.data[start : start + length]).decode(errors="surrogateescape")

    def define(self, table: TextTable, index: int, text: str, start: int, nbytes: int) -> None:
        """Declare a text of the file."""
        del text
        number = self.compiled.table_numbers[table]
        self.program.texts.define(number, wrapped(index), start, nbytes)

    def clear(self, table: TextTable) -> None:
        """Forget all texts of a table."""
        self.program.texts.forget(self.compiled.table_numbers[table])

    def set(self, register: Expression, value: int) -> None:
        """Set a register."""
        super().set(register, value)
        self.program.slots[self.compiled.registers[register]] = wrapped(value)  # type: ignore[index]


class Run:
    """One pass of a program over a file, with hand-overs to the object decoder."""

    def __init__(self, capture: DeclaredCapture, compiled: Compiled, most: int) -> None:
        self.capture = capture
        self.compiled = compiled
        self.source = capture.source
        limits = capture.request.limits
        self.notes = Notes(CODES, limits.max_findings)
        pool = capture.strings.pool
        self.program = compiled.start(self.source, limits, pool, self.notes, most)
        self.data = view_of(self.source.data)
        self.walk = Walk(compiled.format, self.source, None, limits)
        self.kinds: dict[str, int] = {}
        self.behind = 0
        self.context = capture.begin()
        self.header = b""
        """The bytes before the first record, if they are sound."""
        self.waiting: Iterator[tuple[str, list[int]]] = iter(())
        """Rows of the record that was handed over: table and cells."""

    def head(self) -> LosslessRecord | None:
        """Read what is before the first record; None if there is nothing."""
        if not (self.compiled.format.begin and self.source.size):
            return None
        record = self._one(Walk.head)
        if record.record != "damaged":
            self.header = bytes(self.data[: record.nbytes])
        return record

    def run(self) -> int:
        """Run the program until it stops; return why."""
        program = self.program
        program.prepare()
        status = program.run()
        if program.pos - self.behind > RELEASED:
            self.source.passed(self.behind, program.pos)
            self.behind = program.pos
        return int(status)

    def hand_over(self) -> LosslessRecord:
        """Read the record at which the program stopped, as an object."""
        return self._one(Walk.next)

    def _one(self, read: Callable[[Walk], Any]) -> LosslessRecord:
        program, walk = self.program, self.walk
        state = walk.state = ProgramState(self.compiled, program, self.data)
        walk.at = int(program.pos)
        walk.views = None if self.compiled.lines else []  # rows need the places of fields
        record: LosslessRecord
        record, notes = read(walk)
        for number, offset, value in notes:
            self.notes.add(number, offset, program.records, wrapped(value))
        self.kinds[record.record] = self.kinds.get(record.record, 0) + 1
        program.records += 1
        program.pos = walk.at
        if record.record != "damaged":
            program.sound = walk.at
        program.framing.big = int(state.big)
        for slot in self.compiled.parts:
            program.slots[slot] = 0
        if isinstance(record, self.capture.watch):
            self.capture.seen(self.context, record)
        if not self.compiled.lines:
            self.waiting = self._rows_of(record, walk)
        return record

    def _rows_of(self, record: LosslessRecord, walk: Walk) -> Iterator[tuple[str, list[int]]]:
        """Yield table and cells of each row of a record that was handed over."""
        if COPIES in self.compiled.columns:
            if type(record) in self.compiled.copied:
                yield COPIES, [record.offset, record.nbytes]
            return
        beyond = False
        for rows in self.compiled.format.tables:
            if rows.table in self.compiled.columns and type(record) is rows.record:
                c = walk.last
                known = {**c.known, **walk.state.registers}
                for item, own, spans in rows.items_of(record, c):
                    numbers, places = {**known, **own}, {**c.spans, **spans}
                    yield rows.table, self._cells_of(rows, record, item, numbers, places)
                    beyond = beyond or rows.beyond(numbers)
        if beyond:
            self.notes.add(TIME_BEYOND, record.offset, self.program.records - 1, 0)

    def _cells_of(
        self, rows: Rows, record: LosslessRecord, item: Any, known: Numbers, spans: Spans
    ) -> list[int]:
        """Return the cells of a row of a record, or of an item of it."""

        def code_of(field: Field) -> int:
            text = getattr(item if field in rows.inside else record, field.name)
            data = (text or "").encode(errors="surrogateescape")
            return -1 if text is None else self.capture.strings.intern(data)

        cells: list[int] = []
        for name in self.compiled.columns[rows.table]:
            source = rows.sources.get(name)
            if name == "offset":
                cells.append(record.offset)
            elif name.endswith("/length"):
                continue
            elif isinstance(source, Span):
                code = rows.known[name].kind == "code"
                cells += [code_of(source)] if code else spans.get(source, (0, 0))
            elif isinstance(source, Number) and source.refers is not None:
                cells.append(code_of(source))
            elif source is not None:
                cells.append(wrapped(source.value(known)))
            else:
                cells.append(rows.default(name))
        return cells

    def table(self, name: str) -> int:
        """Return the number of a table."""
        return list(self.compiled.columns).index(name)

    def first(self, name: str) -> int:
        """Return the number of the first cell of a table."""
        before = 0
        for table, cells in self.compiled.columns.items():
            if table == name:
                break
            before += len(cells)
        return before

    def totals(self) -> dict[str, int]:
        """Return the number of records by kind."""
        counts = dict(self.kinds)
        names = [cls.record for cls in self.compiled.format.classes]
        for name, count in zip(
            [*names, "unknown", "damaged", "padding"],
            np.asarray(self.program.kinds).tolist(),
            strict=True,
        ):
            if count:
                counts[name] = counts.get(name, 0) + count
        return counts

    def batches(self, *, lasting: bool = True) -> Iterator[dict[str, Cells]]:
        """Yield the columns of all tables, a batch of records at a time.

        Unless they are ``lasting``, those of a batch are gone when the next one is asked for.
        """
        program = self.program
        program.make_room(ROWS)
        self.head()
        while True:
            status = self.run()
            if status == HANDED_OVER:
                self.hand_over()
                for table, cells in self.waiting:
                    number = self.table(table)
                    if program.rows[number] == program.room:
                        yield self._batch(lasting=lasting)
                    program.add_row(number, self.first(table), cells)
                continue
            if any(np.asarray(program.rows).tolist()):
                yield self._batch(lasting=lasting)
            elif status != AT_END:
                program.make_room(2 * int(program.room))
            if status == AT_END:
                return

    def _batch(self, *, lasting: bool) -> dict[str, Cells]:
        """Return the columns of all tables, and empty them."""
        rows = np.asarray(self.program.rows).tolist()
        made = {name: self._taken(name, rows) for name in self.compiled.columns}
        if lasting:
            self.program.make_room(int(self.program.room))
        else:
            self.program.clear_rows()
        return made

    def _taken(self, name: str, rows: list[int]) -> Cells:
        """Return the columns of a table, in the types of its schema, for the rows so far."""
        capture, room = self.capture, int(self.program.room)
        count, at = rows[self.table(name)], self.first(name)
        cells = np.asarray(self.program.cells)
        schema = capture.schemas.get(name)
        made: Cells = {}
        columns = self.compiled.columns[name]
        tables = [rows for rows in self.compiled.format.tables if rows.table == name]
        mixed = differing(tables, name) if WHICH in columns else []
        which = cells[room * (at + columns.index(WHICH)) :][:count] if mixed else None
        for number, column in enumerate(columns):
            if column.endswith("/length") or column == WHICH:
                continue
            place = room * (at + number)
            values = cells[place : place + count]
            kind = "i8" if schema is None else schema.column(column).kind
            if kind in ("text", "bytes"):
                lengths = cells[place + room : place + room + count]
                made[column] = capture.spans(kind, values, lengths)
            elif which is not None and column in mixed:
                made[column] = np.empty(count, np.int32 if kind == "code" else kind)
                for each in tables:
                    mine = which == each.number
                    meaning = each.meaning(column)
                    made[column][mine] = self._read(meaning, kind, values[mine])
            else:
                meanings = (rows.meaning(column) for rows in tables)
                made[column] = self._read(next(filter(None, meanings), None), kind, values)
        return capture.finish(self.context, name, made)

    def _read(self, meaning: Any, kind: str, values: I64) -> NDArray[Any]:
        """Return cells as a column of a kind; ``meaning`` is that of ``Rows``."""
        how, what = meaning if isinstance(meaning, tuple) else (meaning, None)
        if how == "constant":
            if kind == "code" and isinstance(what, str):
                what = self.capture.strings.intern(what.encode())
            return np.full(values.size, what, np.int32 if kind == "code" else kind)
        if how == "text of":
            return self._codes(what, values)
        if how == "float":
            bits = values.astype("u4").view("f4") if what == 4 else values.view("f8")
            with np.errstate(invalid="ignore"):  # signalling NaN
                return bits.astype(kind)
        dtype = np.dtype(np.int32 if kind == "code" else kind)
        if how == "unsigned" and dtype.kind == "f":
            return values.view(np.uint64).astype(dtype)
        return (
            values.view(dtype)
            if dtype.kind in "iu" and dtype.itemsize == 8
            else values.astype(dtype)
        )

    def _codes(self, names: TextTable, values: I64) -> NDArray[np.int32]:
        """Return codes of strings; a number that nothing declared gets the text that shows it."""
        if values.size == 0 or values.min() >= -1:
            return values.astype(np.int32)
        found = values.copy()
        missing = np.flatnonzero(values < -1)
        numbers, where = np.unique(values[missing], return_inverse=True)
        texts = [names.unknown(-2 - number).encode() for number in numbers.tolist()]
        made = np.array([self.capture.strings.intern(text) for text in texts], np.int64)
        found[missing] = made[where]
        return found.astype(np.int32)


class Growing:
    """The columns of a table, collected from batches."""

    def __init__(self) -> None:
        self.rows = 0
        self.room = 0
        self.columns: dict[str, Any] = {}
        self.texts: dict[str, list[TextColumn]] = {}

    def add(self, cells: Cells, fraction: float) -> None:
        """Add rows; ``fraction`` of the file has been read."""
        count = len(cells["offset"])
        if self.rows + count > self.room:
            expected = int((self.rows + count) / max(fraction, 1e-6) * 1.02)
            self.room = max(expected, self.rows + count)
            for name, old in self.columns.items():
                new = self.empty(old)
                new[: self.rows] = old[: self.rows]
                self.columns[name] = new
        for name, values in cells.items():
            if isinstance(values, TextColumn):
                self.texts.setdefault(name, []).append(values)
                continue
            if name not in self.columns:
                self.columns[name] = self.empty(values)
            self.columns[name][self.rows : self.rows + count] = values
        self.rows += count

    def empty(self, like: NDArray[Any]) -> NDArray[Any]:
        """Return an empty column of the type of another, with the present room."""
        width = like.shape[1] if like.ndim > 1 else 1
        made = arena.empty(self.room * width, like.dtype)
        return made.reshape(self.room, width) if like.ndim > 1 else made

    def taken(self) -> Cells:
        """Return the columns of all rows."""
        made: Cells = {name: column[: self.rows] for name, column in self.columns.items()}
        for name, parts in self.texts.items():
            lengths = np.concatenate([np.diff(part.offsets) for part in parts])
            offsets = np.zeros(lengths.size + 1, np.int64)
            np.cumsum(lengths, out=offsets[1:])
            made[name] = TextColumn(offsets, np.concatenate([part.data for part in parts]))
        return made


class DeclaredPass(FirstPass[dict[str, tuple[int, Cells]]]):
    """A whole file, read once."""

    def __init__(self, run: Run, *, whole: bool) -> None:
        self._run = run
        self._rows = dict.fromkeys(run.compiled.columns, 0)
        first: int | None = None
        last: int | None = None
        kept = {name: Growing() for name in run.compiled.columns} if whole else {}
        for batch in run.batches(lasting=False):
            fraction = run.program.pos / max(1, run.source.size)
            for name, cells in batch.items():
                count = len(cells["offset"])
                self._rows[name] += count
                if count and "ts" in cells:
                    low, high = int(cells["ts"].min()), int(cells["ts"].max())
                    first = low if first is None else min(first, low)
                    last = high if last is None else max(last, high)
                if whole and count:
                    kept[name].add(cells, fraction)
            run.capture.check_budget()
        if whole:
            self.whole = {name: (0, growing.taken()) for name, growing in kept.items()}
        self._range = first, last
        self.handed = int(run.program.handed)

    @property
    def notes(self) -> tuple[Notes, ...]:
        """The findings of the program."""
        return (self._run.notes,)

    @property
    def records(self) -> int:
        """Number of records."""
        return int(self._run.program.records)

    @property
    def kinds(self) -> dict[str, int]:
        """Number of records by kind."""
        return self._run.totals()

    @property
    def rows(self) -> dict[str, int]:
        """Number of rows of each table."""
        return self._rows

    @property
    def range(self) -> tuple[int | None, int | None]:
        """First and last time."""
        return self._range


class DeclaredCapture(ScannedCapture[DeclaredPass, dict[str, tuple[int, Cells]]]):
    """A file of a declared format.

    A format with columns that a declaration cannot say derives its own class, ``of=`` the format.
    ``watch`` names kinds of records that it wants as objects (rare ones), ``seen`` gets them in the
    order of the file, and ``finish`` computes columns of a batch; ``begin`` makes what both share
    in one pass.
    """

    declared: ClassVar[Format]
    watch: ClassVar[tuple[type[LosslessRecord], ...]] = ()

    def __init_subclass__(cls, of: Format | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if of is not None:
            of.capture = cls

    def begin(self) -> Any:
        """Return what ``seen`` and ``finish`` share in a pass over the file."""
        return None

    def seen(self, context: Any, record: LosslessRecord) -> None:
        """Take a record of a class in ``watch``."""

    def finish(self, context: Any, table: str, columns: Cells) -> Cells:  # noqa: ARG002
        """Return the columns of a batch of rows; ``offset`` must stay. By default the declared."""
        return columns

    # --- Records --------------------------------------------------------------------------------

    def records(self) -> Iterator[LosslessRecord]:
        """Yield every record as an object."""
        findings = self.record_diagnostics
        walk = Walk(self.declared, self.source, None, self.request.limits)
        for index, (record, notes) in enumerate(walk):
            if findings is not None:
                for number, offset, value in notes:
                    findings.add(self.rules.numbered(number), offset, index, value)
            yield record

    def records_json(self) -> Iterator[bytes]:
        """Yield the same records as JSON lines, written by a program."""
        findings = self.record_diagnostics
        run = Run(self, lines_of(self.declared), PIECE)
        out = run.program.out
        reported = 0

        def line(record: LosslessRecord) -> None:
            out.line(record.to_json())

        head = run.head()
        if head is not None:
            line(head)
        while True:
            status = run.run()
            if status == HANDED_OVER:
                line(run.hand_over())
            if findings is not None and run.notes.used > reported:
                rows = np.asarray(run.notes.rows)[4 * reported : 4 * run.notes.used]
                for number, offset, record, value in rows.reshape(-1, 4).tolist():
                    findings.add(self.rules.numbered(number), offset, record, value)
                reported = run.notes.used
            if out.used >= PIECE or (status == AT_END and out.used):
                self.check_budget()
                yield out.take()
            if status == AT_END:
                break
        totals = np.asarray(run.notes.totals)
        limit = self.request.limits.max_findings
        if findings is not None and limit:
            for number in np.flatnonzero(totals > limit).tolist():
                findings.add(self.rules.numbered(number), times=int(totals[number]) - limit)

    # --- Tables ---------------------------------------------------------------------------------

    def _run_pass(self, *, whole: bool) -> DeclaredPass:
        names = tuple(self.schemas)
        return DeclaredPass(Run(self, rows_of(self.declared, names), 1), whole=whole)

    def _parts(self, passed: DeclaredPass) -> Iterator[dict[str, tuple[int, Cells]]]:
        del passed
        for batch in Run(self, rows_of(self.declared, tuple(self.schemas)), 1).batches():
            yield {name: (0, cells) for name, cells in batch.items()}

    def _batch(self, name: str, passed: DeclaredPass, part: dict[str, tuple[int, Cells]]) -> Batch:
        del passed
        first, cells = part[name]
        return Batch.of(first, self._made_of(name, cells))

    def _made_of(self, name: str, cells: Cells) -> Table:
        constants = {
            column: value
            for rows in self.declared.tables
            if rows.table == name
            for column, value in rows.constants.items()
        }
        return Table.of(self.schemas[name], self.strings, **{"row": 0, **constants, **cells})

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        passed = self.first_pass(whole=False)
        if passed.whole is not None:
            yield from self._table(name).batches(rows)
            return
        first = 0
        for tables in Run(self, rows_of(self.declared, (name,)), 1).batches():
            cells = tables[name]
            batch = Batch.of(first, self._made_of(name, cells))
            first += batch.count
            yield from self._table_of(name, batch).batches(rows)

    def spans(self, kind: str, starts: I64, lengths: I64) -> Any:
        """Return a column of bytes of the file: pairs of place and length, or texts."""
        if kind == "bytes":
            return np.stack([starts, lengths], axis=1)
        return TextColumn.gather(self.source.data, starts, lengths)

    def resume(self) -> tuple[int, bytes] | None:
        """Return the end of the last sound record, and the records that later ones depend on.

        None if rows come from such records too, because these rows would be there again.
        """
        format = self.declared
        support = [cls for cls in format.classes if cls.layout.changes_state]
        if any(rows.record in support for rows in format.tables):
            return None
        run = Run(self, compile_copy(format, support), 1)
        run.program.framing.growing = run.walk.framing.growing = 1
        parts: list[bytes] = []
        for batch in run.batches(lasting=False):
            places, sizes = (batch[COPIES][name].tolist() for name in ("offset", "nbytes"))
            parts += [self.source.read(*place) for place in zip(places, sizes, strict=True)]
        if format.begin and not run.header:
            return 0, b""
        return int(run.program.sound), run.header + b"".join(parts)


def lines_of(format: Format) -> Compiled:
    """Return the program for record JSON, compiled once."""
    made = format.compiled.get(LINES)
    if made is None:
        made = format.compiled[LINES] = compile_lines(format)
    return made


def rows_of(format: Format, tables: tuple[str, ...]) -> Compiled:
    """Return the program for some tables, compiled once."""
    made = format.compiled.get(tables)
    if made is None:
        made = format.compiled[tables] = compile_rows(format, tables)
    return made


def capture_class(format: Format) -> type[DeclaredCapture]:
    """Return the class of captures of a format."""
    schemas: dict[str, TableSchema] = {}
    for rows in format.tables:
        schemas[rows.table] = rows.schema(schemas.get(rows.table))
    base = format.capture or DeclaredCapture
    have_rows = {rows.record.record for rows in format.tables}
    tables = {each.table for each in format.tables}
    plain = len(tables) == 1 and all(each.items is None for each in format.tables)
    row_table = format.tables[0].table if plain else None
    timed = any(rows.time is not None for rows in format.tables)
    return type(
        f"{base.__name__}Of{format.name.title().replace('-', '')}",
        (base,),
        {
            "__doc__": f"A capture: {format.title}.",
            "declared": format,
            "format": format.name,
            "rules": format.rules,
            "schemas": schemas,
            "row_table": row_table,
            "timed_records": timed,
            "support_records": frozenset(format.kinds.keys() - have_rows),
            "memory_factor": 16,
        },
    )


def open_capture(format: Format, source: Source, request: OpenRequest) -> DeclaredCapture:
    """Open a file of a format."""
    if format.opened is None:
        format.opened = capture_class(format)
    made: DeclaredCapture = format.opened(source, request)
    return made
