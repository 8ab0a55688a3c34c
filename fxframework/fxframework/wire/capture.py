"""Capture: a file of a declared format, read by blocks into tables or lines."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fxframework.io import arena
from fxframework.io.source import Source
from fxframework.kit.lossless import LosslessRecord
from fxframework.kit.scanned import Batch, Columns, FirstPass, Note, ScannedCapture, task_columns
from fxframework.model.capture import OpenRequest
from fxframework.model.schema import STANDARD_TABLES, TableSchema
from fxframework.model.strings import TextColumn
from fxframework.model.table import Table
from fxframework.wire.findings import Findings
from fxframework.wire.format import Format
from fxframework.wire.format import Note as Found
from fxframework.wire.walk import Walk

if TYPE_CHECKING:
    from fxframework.wire.blocks import BlockReader
    from fxframework.wire.runs import Block

Cells = dict[str, Any]
"""Columns of a table by name, of the types of the schema."""
Tables = dict[str, tuple[int, Cells]]
"""Some rows of each table: the number of the first, and the columns."""
LEAST_FACTOR = 4
ROW_BYTES = 16
"""Bytes of the columns that every row has: its number, and the offset of its record."""
TASKS = ("processes", "threads")
"""Tables that are made of the ids in rows."""
WIDTHS = {"code": 4, "bytes": 16, "text": 16}
"""Bytes of a cell by kind of column, at most, where they are not 8."""


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
            # As many as the file has, if its rest is like what was read, and a little more.
            expected_rows = int((self.rows + count) / max(fraction, 1e-6) * 1.02)
            self.room = max(expected_rows, self.rows + count)
            for name, column in self.columns.items():
                longer = self.empty(column)
                longer[: self.rows] = column[: self.rows]
                self.columns[name] = longer
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
        if like.ndim == 1:
            return arena.empty(self.room, like.dtype)
        width = like.shape[1]
        return arena.empty(self.room * width, like.dtype).reshape(self.room, width)

    def taken(self) -> Cells:
        """Return the columns of all rows."""
        cells: Cells = {name: column[: self.rows] for name, column in self.columns.items()}
        for name, columns in self.texts.items():
            cells[name] = TextColumn.joined(columns)
        return cells


class Tasks:
    """The threads that rows name by the ids of process and thread, in the order of the file."""

    def __init__(self) -> None:
        from fxframework.kernels.pools import PairMap

        self._pid_numbers = PairMap()
        self._tid_numbers = PairMap()
        self._pair_numbers = PairMap()
        """Numbers of pairs of the numbers of both."""
        self.pids: list[int] = []
        self.tids: list[int] = []
        self.offsets: list[int] = []
        """Of the first record that names each thread."""

    def of(self, pids: Any, tids: NDArray[Any], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the numbers of the threads of rows, of shape (rows,); ``pids`` may be one id."""
        tids = tids.astype(np.int64)
        pids = np.broadcast_to(pids, tids.shape).astype(np.int64)
        # Ids have 64 bits, their numbers fewer than 32: two of them are one number.
        pairs = self._pid_numbers.enter(pids) << 32 | self._tid_numbers.enter(tids)
        numbers = self._pair_numbers.enter(pairs)
        known_count = len(self.pids)
        if self._pair_numbers.count > known_count:
            distinct, first_rows = np.unique(numbers, return_index=True)
            new_rows = first_rows[distinct >= known_count]
            self.pids += pids[new_rows].view(np.uint64).tolist()
            self.tids += tids[new_rows].view(np.uint64).tolist()
            self.offsets += offsets[new_rows].tolist()
        return numbers.astype(np.int32)

    def columns(self, name: str) -> Columns:
        """Return the columns of `threads`, or of `processes`."""
        pids, tids = (np.array(ids, np.uint64) for ids in (self.pids, self.tids))
        return task_columns(name, pids, tids, np.array(self.offsets, np.int64))


class BlocksRead(Protocol):
    """What has read a file by blocks, and what it has found so far."""

    findings: Any
    """The findings (``fxframework.kit.scanned.Notes``)."""
    handed: int
    """Number of records that were read as objects."""

    @property
    def records(self) -> int:
        """Number of records."""

    @property
    def kinds(self) -> dict[str, int]:
        """Number of records by kind."""


class BlockPass(FirstPass[Tables]):
    """A whole file, read once."""

    # Set when the file has been read.
    notes: Sequence[Findings] = ()
    records = 0
    kinds: dict[str, int] = {}  # noqa: RUF012 (each pass has its own)
    range: tuple[int | None, int | None] = (None, None)

    def __init__(self, capture: BlockCapture, *, whole: bool) -> None:
        reader, batches = capture.read_blocks()
        self._rows = dict.fromkeys(capture.schemas, 0)
        earliest: int | None = None
        latest: int | None = None
        columns_of = {name: Growing() for name in capture.schemas} if whole else {}
        for end, batch in batches:
            fraction = end / max(1, capture.source.size)
            for name, cells in batch.items():
                count = len(cells["offset"])
                if not count:
                    continue
                self._rows[name] += count
                if "ts" in cells:
                    low = int(cells["ts"].min())
                    high = int(cells["ts"].max())
                    earliest = low if earliest is None else min(earliest, low)
                    latest = high if latest is None else max(latest, high)
                if whole:
                    columns_of[name].add(cells, fraction)
            capture.check_budget()
        if whole:
            self.whole = {
                name: (0, growing.taken()) for name, growing in columns_of.items() if growing.rows
            }
        self.range = earliest, latest
        # Not the reader itself, which may have the capture, which has this.
        self.notes = (reader.findings,)
        self.records = reader.records
        self.kinds = reader.kinds
        self.handed = reader.handed
        self.tasks = capture.tasks
        self.small: dict[str, Cells] = {}
        """Tables that are made of the whole file, beside those of the tasks."""

    @property
    def rows(self) -> dict[str, int]:
        """Number of rows of each table."""
        if self.tasks is not None:
            self._rows["threads"] = len(self.tasks.pids)
            self._rows["processes"] = len(set(self.tasks.pids))
        return self._rows | {name: len(cells["offset"]) for name, cells in self.small.items()}


class BlockCapture(ScannedCapture[BlockPass, Tables]):
    """A file whose tables are read block by block (``read_blocks``)."""

    pass_class: ClassVar[type[BlockPass]] = BlockPass
    tasks: Tasks | None = None
    """The threads of the last pass over the file, if rows name them by ids."""

    @abc.abstractmethod
    def read_blocks(self) -> tuple[BlocksRead, Iterator[tuple[int, dict[str, Cells]]]]:
        """Return what reads the file, and its blocks: where each ends, and columns by table.

        Of a table without rows in a block there may be no columns. All have ``offset``, those of
        rows with a time ``ts``.
        """

    def with_findings(self, findings: Findings, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield pieces of what is read by blocks; report what is found meanwhile."""
        diagnostics = self.record_diagnostics

        def report() -> None:
            if diagnostics is None:
                return
            for number, *place in findings.taken().tolist():
                note = Note(self.rules.numbered(number), *place)
                diagnostics.add(note.rule, note.offset, note.record, self._value(note))

        for piece in pieces:
            report()
            self.check_budget()
            yield piece
        report()  # what belongs to no piece
        if diagnostics is not None:
            for number, times in findings.beyond_limit():
                diagnostics.add(self.rules.numbered(number), times=times)

    def _run_pass(self, *, whole: bool) -> BlockPass:
        return self.pass_class(self, whole=whole)

    def _small(self, name: str, passed: BlockPass) -> Columns:
        if name in passed.small:
            return dict(passed.small[name])
        if passed.tasks is None:
            return super()._small(name, passed)
        return passed.tasks.columns(name)

    def _parts(self, passed: BlockPass) -> Iterator[Tables]:
        del passed
        rows_before = dict.fromkeys(self.schemas, 0)
        _, batches = self.read_blocks()
        for _, batch in batches:
            yield {name: (rows_before[name], cells) for name, cells in batch.items()}
            for name, cells in batch.items():
                rows_before[name] += len(cells["offset"])


class DeclaredCapture(BlockCapture):
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
        for index, (record, notes) in enumerate(self._found_records()):
            if findings is not None:
                for number, offset, value in notes:
                    findings.add(self.rules.numbered(number), offset, index, value)
            yield record

    def _found_records(self) -> Iterator[tuple[LosslessRecord, list[Found]]]:
        """Yield every record with its findings: from columns where they say it whole."""
        from fxframework.wire.objects import ObjectReader, has_columns

        if has_columns(self.declared):
            reader = ObjectReader(self.declared, self.source, self.request.limits)
            return reader.found_records()
        return iter(Walk(self.declared, self.source, None, self.request.limits))

    def records_json(self) -> Iterator[bytes]:
        """Yield the same records as JSON lines, block by block."""
        from fxframework.wire.lines import LineReader

        reader = LineReader(self.declared, self.source, self.request.limits)
        return self.with_findings(reader.findings, reader.lines())

    # --- Tables ---------------------------------------------------------------------------------

    def read_blocks(
        self, *, growing: bool = False
    ) -> tuple[BlockReader, Iterator[tuple[int, dict[str, Cells]]]]:
        """Return what reads the file, and its blocks: where each ends, and columns by table.

        Of a table without rows in a block there are no columns.
        """
        from fxframework.wire.blocks import BlockReader

        context = self.begin()
        self.tasks = Tasks() if self.declared.task_columns else None
        reader = BlockReader(
            self.declared,
            self.source,
            self.request.limits,
            self.strings,
            tables=self.declared.tables,
            watch=self.watch,
            seen=lambda record: self.seen(context, record),
            growing=growing,
        )
        return reader, self._finished(context, reader)

    def _finished(
        self, context: Any, reader: BlockReader
    ) -> Iterator[tuple[int, dict[str, Cells]]]:
        """Yield the end of each block, and the columns of its tables as the capture shows them."""
        for block in reader.blocks():
            tables: dict[str, Cells] = {}
            for name, parts in block.tables.items():
                if parts:
                    tables[name] = self.finish(context, name, self._joined(name, block))
            for cells in tables.values():
                self._number_threads(cells)
            yield block.end, tables

    def _number_threads(self, cells: Cells) -> None:
        """Give rows the threads that two of their columns name."""
        columns = self.declared.task_columns
        if self.tasks is not None and cells.keys() >= {*columns}:
            process, thread = (cells[name] for name in columns)
            cells["thread"] = self.tasks.of(process, thread, cells["offset"])

    def _joined(self, name: str, block: Block) -> Cells:
        """Return the columns of a table in a block, which has them in parts."""
        schema = self.schemas[name]
        cells: Cells = {"offset": np.concatenate([offsets for offsets, _ in block.tables[name]])}
        parts = [part for _, part in block.tables[name]]
        for column, first_cells in parts[0].items():
            if isinstance(first_cells, tuple):  # bytes of the file, by places and lengths
                starts = np.concatenate([part[column][0] for part in parts])
                lengths = np.concatenate([part[column][1] for part in parts])
                cells[column] = self.spans(schema.column(column).kind, starts, lengths)
            elif len(parts) == 1:
                cells[column] = first_cells
            else:
                cells[column] = np.concatenate([part[column] for part in parts])
        return cells

    def _batch(self, name: str, passed: BlockPass, part: Tables) -> Batch:
        del passed
        first_row, cells = part.get(name, (0, {}))
        return Batch.of(first_row, self._declared_table(name, cells))

    def _declared_table(self, name: str, cells: Cells) -> Table:
        if not cells:
            return Table.of(self.schemas[name], self.strings, row=np.zeros(0, np.int64))
        constants: dict[str, Any] = {}
        for rows in self.declared.tables:
            if rows.table == name:
                constants.update(rows.constants)
        return Table.of(self.schemas[name], self.strings, **{"row": 0, **constants, **cells})

    def spans(self, kind: str, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Any:
        """Return a column of bytes of the file: pairs of place and length, or texts."""
        if kind == "bytes":
            return np.stack([starts, lengths], axis=1)
        return TextColumn.gather(self.source.data, starts, lengths)

    def resume(self) -> tuple[int, bytes] | None:
        """Return the end of the last sound record, and the records that later ones depend on.

        None if rows come from such records too, because these rows would be there again, or if they
        are sums over the whole file.
        """
        format = self.declared
        support = [cls for cls in format.classes if cls.layout.changes_state]
        if self.has_summed_calls or any(rows.record in support for rows in format.tables):
            return None
        reader, _ = self.read_blocks(growing=True)
        support_records: list[bytes] = []
        for block in reader.blocks():
            for places, sizes in block.copies:
                for place, size in zip(places.tolist(), sizes.tolist(), strict=True):
                    support_records.append(self.source.read(place, size))
        if format.begin and not reader.header:
            return 0, b""
        return reader.sound, reader.header + b"".join(support_records)


def memory_factor(format: Format) -> int:
    """Return the most bytes of columns in whole tables for each byte of a file of a format.

    It is that of records as short as they can be, which have only the fewest bytes of fields.
    """
    factor = LEAST_FACTOR
    for cls in format.classes:
        least_bytes = max(1, cls.layout.fixed or cls.layout.least)
        per_record = 0
        per_item_byte = 0.0
        for rows in format.tables:
            if rows.record is not cls:
                continue
            nbytes = row_bytes(format, rows.table)
            if rows.items is None:
                per_record += nbytes
            else:
                per_item_byte += nbytes / rows.items.least_item()
        factor = max(factor, math.ceil(per_record / least_bytes + per_item_byte))
    return factor


def row_bytes(format: Format, table: str) -> int:
    """Return the most bytes of the columns of a row."""
    rows_of_table = [rows for rows in format.tables if rows.table == table]
    kinds: dict[str, str] = {}
    for rows in rows_of_table:
        for name in rows.celled(rows_of_table):
            kinds[name] = rows.known[name].kind
    return ROW_BYTES + sum(WIDTHS.get(kind, 8) for kind in kinds.values())


def capture_class(format: Format) -> type[DeclaredCapture]:
    """Return the class of captures of a format."""
    base = format.capture or DeclaredCapture
    of_tasks = {name: STANDARD_TABLES[name] for name in TASKS if format.task_columns}
    # A class of the format's own may make further tables, which it has the schemas of.
    schemas: dict[str, TableSchema] = {**of_tasks, **base.schemas}
    for rows in format.tables:
        schemas[rows.table] = rows.schema(schemas.get(rows.table))
    streamed = base.streamed
    if of_tasks:  # which are known once the file was read
        streamed = frozenset(schemas) - of_tasks.keys()
    have_rows = {rows.record.record for rows in format.tables}
    tables = {rows.table for rows in format.tables}
    # The table of which each row is a record that a part may have without those before it, if there
    # is one: further tables have rows of several records.
    row_table = None
    has_items = any(rows.items is not None for rows in format.tables)
    is_of_records = len(tables) == 1 and not has_items and not base.schemas.keys() - tables
    if is_of_records and not format.parts_depend:
        row_table = format.tables[0].table
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
            "streamed": streamed,
            "row_table": row_table,
            "timed_records": timed,
            "support_records": frozenset(format.kinds.keys() - have_rows),
            "memory_factor": memory_factor(format),
        },
    )


def open_capture(format: Format, source: Source, request: OpenRequest) -> DeclaredCapture:
    """Open a file of a format."""
    if format.opened is None:
        format.opened = capture_class(format)
    capture: DeclaredCapture = format.opened(source, request)
    return capture
