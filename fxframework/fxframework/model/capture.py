"""Capture: an opened input, read lazily as records or as tables."""

from __future__ import annotations

import abc
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework import rules
from fxframework.errors import (
    Catalogue,
    FxError,
    PluginError,
    Rule,
    UsageError,
    checked_type,
    did_you_mean,
)
from fxframework.io.budget import Budget
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.kernels.arrays import Bools
from fxframework.model.clock import NS_MAX, NS_MIN, ends_of
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.logs import LogFilter
from fxframework.model.opened import Opened
from fxframework.model.rows import RowMarks, category_mask, function_mask, thread_mask
from fxframework.model.schema import STANDARD_TABLES, TABLE_CODES, TableSchema
from fxframework.model.selection import Selection
from fxframework.model.skipped import SkippedSlices
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import ColumnData, Table, html_table

if TYPE_CHECKING:
    import pyarrow as pa

    from fxframework import ConversionReport

__all__ = [
    "CallColumns",
    "Capture",
    "Entry",
    "OpenRequest",
    "Record",
    "SameRows",
    "Summary",
    "View",
    "Window",
    "is_part",
    "kind_of",
    "under_views",
]

LINES = 512
"""Lines of record JSON in one chunk."""
COUNTERS = TABLE_CODES["counters"]
RECORDS = 512
"""Records between two checks of the budget, and records looked up together."""


@runtime_checkable
class Record(Protocol):
    """One record, lossless: an object of a class of the format, with its place in the file.

    A record with a time may have it as ``ns`` (int), in nanoseconds on the capture's clock; see
    ``Capture.timed_records``. A record that only supplements another may have the offset of that
    one as ``row_offset`` (int); see ``Capture.row_table``.
    """

    @property
    def offset(self) -> int:
        """Byte offset of its first byte in the (unpacked) file."""

    @property
    def nbytes(self) -> int:
        """Size of the record in bytes."""

    def to_json(self) -> dict[str, Any]:
        """The record as JSON (docs/records.md)."""


def kind_of(record: Record) -> str:
    """Return the kind of a record, as in its JSON."""
    kind = getattr(record, "record", None)
    return kind if isinstance(kind, str) else str(record.to_json()["record"])


def not_plain(format: str, record: Record, error: Exception) -> PluginError:
    """Return the error for a record whose JSON is not made of plain values of Python."""
    return PluginError(
        f"the reader of {format}: the record at byte {record.offset} is not JSON: {error}",
        remedy="its fields are texts, integers of 64 bits, floats, lists and dicts of Python",
    )


class Entry(NamedTuple):
    """One named value of a captured state; see ``Capture.entries``."""

    path: str
    """Its name. Entries of the same name are distinguished by their order."""
    type: str
    """The type of the value, as the format names it."""
    value: Any
    """Its exact value as plain JSON; equal values have equal JSON."""
    offset: int
    """Byte offset of a record that holds it."""


@attrs.frozen(kw_only=True)
class CallColumns:
    """Names of the columns and the table that a capture of function calls adds."""

    function: str
    """Column of `slices`: the number of the called function."""
    ticks: str
    """Column of `slices`: exact length in ticks; -1 if the slice was never closed."""
    ended: str
    """Column of `slices`: how the call ended."""
    functions: str
    """Table of functions: ``id`` is the number, ``name`` and ``source`` are codes."""
    count: str = ""
    """Column of `slices`: how many calls a slice stands for; empty if each is one call."""


@attrs.frozen(kw_only=True)
class OpenRequest:
    """How to read a capture: what `fxf` and `fxframework.open` pass to a reader."""

    limits: Limits = attrs.field(factory=Limits)
    """Bounds on memory and time."""
    budget: Budget = attrs.field(
        default=attrs.Factory(lambda request: Budget(request.limits), takes_self=True), eq=False
    )
    """Time and memory used so far, checked by ``Capture.check_budget``."""
    strict: bool = False
    """Whether the first finding of DATA_LOSS or worse raises StrictError."""
    options: Mapping[str, Any] = attrs.field(factory=dict)
    """Options of the reader, already converted to their types."""
    observer: Any = None
    """Called with every Diagnostic."""
    host: Any = None
    """The Host; readers of containers use it to open the formats inside."""

    def diagnostics(self, rules: Mapping[str, Rule], source: Source) -> Diagnostics:
        """Return an empty collection of findings for ``source``, by the rules of a format."""
        return Diagnostics(
            rules,
            limit=self.limits.max_findings,
            strict=self.strict,
            path=source.name,
            observer=self.observer,
        )


@attrs.frozen(kw_only=True)
class Summary:
    """Counts, times and facts of a capture, as `fxf info` shows them."""

    records: int
    """Number of records, damaged stretches and padding included."""
    kinds: Mapping[str, int]
    """Number of records by kind."""
    start_ns: int | None
    """First time on the capture's clock, in nanoseconds; None if nothing has a time."""
    end_ns: int | None
    """Last time, likewise; includes the ends of slices."""
    facts: Mapping[str, Any]
    """Facts specific to the format, as plain JSON values."""
    rows: Mapping[str, int] = attrs.field(factory=dict)
    """Rows of each table; empty if the pass does not count them."""
    timeline: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Labels with histograms of equal length: events per time interval."""

    def _repr_html_(self) -> str:
        """Return the summary as an HTML table, for a notebook."""
        rows: list[tuple[str, Any]] = [("records", self.records)]
        rows += [(f"records: {kind}", count) for kind, count in self.kinds.items()]
        rows += [(f"rows: {name}", count) for name, count in self.rows.items()]
        if self.start_ns is not None and self.end_ns is not None:
            rows.append(("first time (ns)", self.start_ns))
            rows.append(("last time (ns)", self.end_ns))
        rows += [(name, value) for name, value in self.facts.items() if value not in ([], {})]
        return html_table("summary", [], rows)


class Capture(Opened, abc.ABC):
    """An opened input. Use as a context manager.

    ``records()`` yields every record in file order, damaged stretches and padding included;
    ``table(name)`` returns a whole table; ``batches(name, rows)`` yields the same rows in bounded
    memory. ``diagnostics`` holds the findings of what was read so far, of the whole capture if
    nothing was. After ``close()`` everything else raises ClosedError.

    A reader with a faster way to record JSON overrides ``records_json()``, which must report the
    same findings as ``records()``.
    """

    format: ClassVar[str]
    """The name of the format."""
    rules: ClassVar[Catalogue] = Catalogue([])
    """The rules of the format's findings."""
    schemas: ClassVar[Mapping[str, TableSchema]] = {}
    """The tables that the format fills, except `diagnostics`."""
    timed_records: ClassVar[bool] = False
    """Whether every record with a time has it as ``ns``, so that time can select records."""
    row_table: ClassVar[str | None] = None
    """The table with a row, at the record's offset, for every self-contained record; None if the
    format has no such table. A selection of the capture contains the records of the selected
    rows and the records without a row, so that the format's own writer can write it."""
    support_records: ClassVar[frozenset[str]] = frozenset()
    """Kinds of records that only support others. They are ignored when captures are compared."""
    calls: ClassVar[CallColumns | None] = None
    """The columns and the table of calls, if the slices are calls of numbered functions."""

    def __init__(
        self, source: Source, request: OpenRequest, diagnostics: Diagnostics | None = None
    ) -> None:
        if diagnostics is None:
            diagnostics = request.diagnostics(self.rules, source)
            if not source.size:
                diagnostics.add(rules.EMPTY_INPUT, 0)
        self.source = source
        self.request = request
        self._findings = diagnostics
        self.strings = StringPool()
        self._tables: dict[str, Table] = {}
        for fault in source.faults:
            diagnostics.add(fault.rule, fault.offset, value=fault.message)

    @property
    def name(self) -> str:
        """The name of the input."""
        return self.source.name

    @property
    def writer_options(self) -> Mapping[str, Any]:
        """Options that make the format's writer reproduce the same bytes."""
        return {}

    @property
    def utc_offset_ns(self) -> int | None:
        """Nanoseconds since the Unix epoch at time 0 of the capture's clock; None if unknown."""
        return None

    @property
    def clocks(self) -> Mapping[str, int]:
        """The readings of other clocks, in nanoseconds, at time 0 of the capture's clock.

        Names are ``utc``, ``boot`` (time since boot, suspended time included) and ``monotonic``.
        """
        offset = self.utc_offset_ns
        return {} if offset is None else {"utc": offset}

    @property
    def tick_rate(self) -> tuple[int, int] | None:
        """Ticks at time 0 and ticks per second; None if times do not count ticks of one counter."""
        return None

    @property
    def ticks_per_second(self) -> int | None:
        """Ticks per second if ``calls`` has lengths in ticks, 0 if unknown.

        None if the lengths of slices are known only in nanoseconds.
        """
        return None

    @property
    def has_summed_calls(self) -> bool:
        """Whether a slice stands for several calls, of which only the sum is known."""
        return self.calls is not None and bool(self.calls.count)

    def resume(self) -> tuple[int, bytes] | None:
        """Return where to continue reading once the file has grown.

        The result is the offset of the end of the last whole record, and the bytes to put before
        the new bytes so that a reader decodes them as part of the file. None, the default, if the
        format cannot be followed.
        """
        return None

    @property
    def fits_memory(self) -> bool:
        """Whether whole tables fit in memory; if not, internal passes use batches."""
        return True

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables of this capture."""
        return (*self.schemas, "diagnostics")

    @abc.abstractmethod
    def records(self) -> Iterator[Record]:
        """Yield every record in file order; their ``nbytes`` add up to the source's size."""

    def records_json(self) -> Iterator[bytes]:
        """Yield the same records as JSON lines (docs/records.md), in chunks of whole lines."""
        import orjson

        lines: list[bytes] = []
        for record in self.checked_records():
            try:
                lines.append(orjson.dumps(record.to_json()))
            except orjson.JSONEncodeError as error:
                raise not_plain(self.format, record, error) from error
            if len(lines) == LINES:
                yield b"\n".join(lines) + b"\n"
                lines.clear()
        if lines:
            yield b"\n".join(lines) + b"\n"

    @property
    def record_diagnostics(self) -> Diagnostics | None:
        """What ``records()`` reports its findings to, so that each occurs once.

        Each reading of the records asks for its own. None where a pass over the records has
        reported them all.
        """
        return self.diagnostics.reading()

    def summary(self) -> Summary:
        """Return counts and times, from one pass over the whole capture.

        The default counts records and rows, and takes the times from the tables with a ``ts``, and
        their ends from those that also have a ``dur``.
        """
        self.scan()
        kinds = self._kinds  # None where a subclass scans in its own way
        if kinds is None:
            kinds = Counter(kind_of(record) for record in self.checked_records())
        rows = dict.fromkeys(self.schemas, 0)
        times: list[int] = []
        for name in self.schemas:
            for batch in self.batches(name):
                rows[name] += len(batch)
                if not len(batch) or "ts" not in batch:
                    continue
                ts = batch.array("ts")
                times += (int(ts.min()), int(ts.max()))
                if "dur" in batch:
                    ends = ends_of(ts, batch.array("dur"))
                    times.append(int(ends.max()))
        return Summary(
            records=kinds.total(),
            kinds=kinds,
            start_ns=min(times, default=None),
            end_ns=max(times, default=None),
            facts={},
            rows=rows,
        )

    def scan(self) -> None:
        """Read the whole capture, so that ``diagnostics`` is complete.

        The default reads all records on the first call; they report to ``record_diagnostics``.
        """
        self._start_reading()
        if self._kinds is None:
            self.diagnostics.forget(self.rules)
            self._kinds = Counter(kind_of(record) for record in self.checked_records())

    _kinds: Counter[str] | None = None
    """Number of records by kind, once ``scan`` has read them."""

    def record_counts(self) -> Mapping[str, int]:
        """Return the number of records of each kind, in bounded memory.

        ``diagnostics`` is complete then.
        """
        kinds = self.summary().kinds
        self.scan()
        return kinds

    @abc.abstractmethod
    def _table(self, name: str) -> Table:
        """Return a whole table of ``schemas``."""

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        """Yield the rows of a table, at most ``rows`` at a time; by default slice the whole one."""
        return self.table(name).batches(rows)

    def table(self, name: str) -> Table:
        """Return a whole table. Raises UsageError for a name that is not in ``tables``."""
        self._start_reading()
        if name == "diagnostics":
            return self._diagnostics_table()
        self._check(name)
        table = self._table(name)
        self.request.budget.check_inputs()
        return table

    def batches(self, name: str, rows: int = 65536) -> Iterator[Table]:
        """Yield the rows of a table in order, at most ``rows`` at a time, in bounded memory.

        Raises UsageError for a name that is not in ``tables``, and for less than one row.
        """
        self._start_reading()
        checked_type(rows, Integral, "the size of batches", "an int")
        if rows < 1:
            raise UsageError(
                f"invalid batch size {rows}: must be 1 or more", remedy="give 1 or more"
            )
        if name == "diagnostics":
            return self._diagnostics_table().batches(rows)
        self._check(name)
        return self._followed(self._batches(name, rows))

    def _followed(self, batches: Iterator[Table]) -> Iterator[Table]:
        """Yield the batches, noting progress and checking the budget for each."""
        position = 0
        for batch in batches:
            if len(batch) and "offset" in batch:
                # Rows may be in another order than their records.
                position = max(position, int(batch.array("offset")[-1]))
                self.source.position = position
            self.check_budget()
            yield batch
            self._check_open()

    def check_budget(self) -> None:
        """Raise LimitError if reading has exceeded ``max_time`` or ``max_memory``.

        A reader calls it between the stretches of a long pass.
        """
        self.request.budget.check(path=self.name)

    def checked_records(self) -> Iterator[Record]:
        """Yield ``records()``, checking the budget at intervals. Raises LimitError."""
        self._start_reading()
        for number, record in enumerate(self.records()):
            if not number % RECORDS:
                self.source.position = record.offset
                self.check_budget()
            yield record

    def checked_pieces(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield pieces of bytes, checking the budget before each. Raises LimitError."""
        for piece in pieces:
            self.check_budget()
            yield piece

    def frame(self, name: str, *, args: bool = False) -> pa.Table:
        """Return a table joined with what its rows refer to, as an Arrow table.

        Each column that holds a thread is joined with ``pid``, ``tid``, ``process_name`` and
        ``thread_name`` (``prev_pid``, … and ``next_pid``, … for `sched`). With ``args``, each
        argument name gets a column ``arg_NAME`` of integers, doubles, bools or strings, null for
        rows without the argument; if arguments of one name have different types, they become
        strings. If a row has several arguments of one name, the first one is used.

        Raises UsageError for a table that the capture does not have, MissingExtraError without
        pyarrow, LimitError if the argument columns would hold more than 2^28 values.
        """
        from fxframework.model.frame import frame_of

        return frame_of(self.table(name), self.schemas, self.table, args=args)

    def row_counts(self) -> Mapping[str, int]:
        """Return the number of rows of each table except `diagnostics`."""
        rows = self.summary().rows
        if rows:
            return rows
        return {name: sum(len(batch) for batch in self.batches(name)) for name in self.schemas}

    def _check(self, name: str) -> None:
        checked_type(name, str, "the name of a table", "a str")
        if name not in self.schemas:
            raise UsageError(
                f"{self.format} captures have no table {name!r}{did_you_mean(name, self.tables)}",
                remedy=f"it has {', '.join(self.tables)}",
            )

    def _diagnostics_table(self) -> Table:
        self.scan()
        findings = self.diagnostics.sorted()
        codes = [self.strings.intern(finding.code.encode()) for finding in findings]
        severities = [finding.severity for finding in findings]
        columns: dict[str, ColumnData] = {
            "code": np.array(codes, np.int32),
            "severity": np.array(severities, np.uint8),
            "offset": _with_nulls(finding.offset for finding in findings),
            "record": _with_nulls(finding.record for finding in findings),
            "message": TextColumn.of(finding.message for finding in findings),
        }
        return Table(STANDARD_TABLES["diagnostics"], len(findings), columns, self.strings)

    def between(self, start_ns: int | None, stop_ns: int | None) -> Capture:
        """Return a view of the rows and records of a time range; None leaves that end open.

        Raises UsageError if it stops before it starts.
        """
        return self.select(Selection(start_ns=start_ns, stop_ns=stop_ns))

    def select(self, selection: Selection) -> Window:
        """Return a view of the rows and records that a selection chooses; see ``Window``.

        Raises UsageError for a thread or process that the capture does not have, and for a
        selection of logs from a format without logs.
        """
        checked_type(selection, Selection, "what is selected", "a Selection")
        self._check_open()
        return Window(self, selection)

    def choose(self, selectors: Sequence[str]) -> Capture:
        """Return a view of what any of these selectors chooses; one str is one selector.

        Raises UsageError for an invalid selector. The default, for a format without selectors,
        always raises it.
        """
        selector = selectors if isinstance(selectors, str) else next(iter(selectors), "")
        raise UsageError(
            f"{selector!r} is not a file, and {self.format} captures have no selectors",
            path=self.name,
            remedy="`cat` takes one FILE; `fxf info` takes several",
        )

    def entries(self) -> Iterator[Entry] | None:
        """Return the entries of a captured state; None if the capture is a sequence of events.

        States are compared by their entries; offsets of records and references between them are
        ignored.
        """
        return None

    def export(
        self, out: str | os.PathLike[str], to: str | None = None, **options: Any
    ) -> ConversionReport:
        """Convert the capture to the format or exporter named by ``to`` or the suffix of ``out``.

        ``options`` are those of ``fxframework.convert``.
        """
        import fxframework

        return fxframework.convert(self, out, to=to, **options)

    def trim(self) -> None:
        """Free cached tables and intermediate results; they are made again when needed.

        Findings are kept. Tables that callers hold remain valid.
        """
        self._tables.clear()
        self.source.release(0, self.source.size)

    def _repr_html_(self) -> str:
        """Return the format, row counts and findings as an HTML table, for a notebook."""
        title = f"{self.name}: {self.format}"
        rows = [(name, f"{count:,}") for name, count in self.row_counts().items() if count]
        for code, count in self.diagnostics.counts.items():
            rows.append((f"finding {code}", f"{count:,}"))
        return html_table(title, ["table", "rows"], rows)

    def close(self) -> None:
        """Release the input: its memory, and its descriptor. Calling it twice is allowed.

        Tables that callers hold remain valid; one with texts of the file keeps it mapped.
        """
        self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close it. Raises UnreadableError if the input was shortened while it was read."""
        self.close()
        fault = self.request.budget.fault()
        if fault is not None and (kind is None or issubclass(kind, FxError)):
            raise fault from None


def _with_nulls(values: Iterable[int | None]) -> NDArray[np.int64]:
    """Return a column in which -1 is null."""
    return np.array([-1 if value is None else value for value in values], np.int64)


class View(Capture):
    """A capture that shows some rows of another capture."""

    def __init__(self, whole: Capture) -> None:
        self.whole = whole
        # Class variables elsewhere; a view takes the values of the capture it shows.
        self.format = whole.format  # type: ignore[misc]
        self.schemas = whole.schemas  # type: ignore[misc]
        self.timed_records = whole.timed_records  # type: ignore[misc]
        self.row_table = whole.row_table  # type: ignore[misc]
        self.support_records = whole.support_records  # type: ignore[misc]
        self.calls = whole.calls  # type: ignore[misc]
        # Shared with the whole capture; a view adds nothing to them.
        self.source = whole.source
        self.request = whole.request
        self.strings = whole.strings
        self.skipped: SkippedSlices | None = whole.skipped if isinstance(whole, View) else None
        """Slices that its selection skips; None if it skips none."""
        self._shown_rows: dict[str, RowMarks] = {}
        """Rows that are shown, by table, once they are known."""

    @property
    def diagnostics(self) -> Diagnostics:
        """As in the whole capture."""
        return self.whole.diagnostics

    def _start_reading(self) -> None:
        self.whole._start_reading()  # noqa: SLF001 (of the same class)

    def rows_kept(self, name: str) -> RowMarks:
        """Return the set of rows of a table that are shown."""
        rows = self._shown_rows.get(name)
        if rows is None:
            rows = RowMarks()
            for batch in self.batches(name):
                rows.add(batch.array("row"))
            self._shown_rows[name] = rows
        return rows

    @property
    def writer_options(self) -> Mapping[str, Any]:
        """As in the whole capture."""
        return self.whole.writer_options

    @property
    def utc_offset_ns(self) -> int | None:
        """As in the whole capture."""
        return self.whole.utc_offset_ns

    @property
    def clocks(self) -> Mapping[str, int]:
        """As in the whole capture."""
        return self.whole.clocks

    @property
    def tick_rate(self) -> tuple[int, int] | None:
        """As in the whole capture."""
        return self.whole.tick_rate

    @property
    def ticks_per_second(self) -> int | None:
        """As in the whole capture."""
        return self.whole.ticks_per_second

    @property
    def fits_memory(self) -> bool:
        """As in the whole capture."""
        return self.whole.fits_memory

    def scan(self) -> None:
        """Read the whole capture."""
        self.whole.scan()

    def trim(self) -> None:
        """Free the cached tables of the whole capture."""
        self.whole.trim()

    def close(self) -> None:
        """Close the whole capture."""
        self.whole.close()

    @abc.abstractmethod
    def _part(self, table: Table) -> Table:
        """Return the rows of a table or batch that are shown; the same object if all are."""

    def _table(self, name: str) -> Table:
        return self._part(self.whole.table(name))

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        for batch in self.whole.batches(name, rows):
            part = self._part(batch)
            if part is batch or len(part):
                yield part


class SameRows(View):
    """A view of all rows and records of another capture, some of whose values differ."""

    def records(self) -> Iterator[Record]:
        """Return the records of the whole capture, as they are there."""
        return self.whole.records()

    def row_counts(self) -> Mapping[str, int]:
        """As in the whole capture."""
        return self.whole.row_counts()

    def summary(self) -> Summary:
        """As in the whole capture."""
        return self.whole.summary()


def is_part(capture: Capture) -> bool:
    """Return whether a capture is a view of some rows of another one."""
    while isinstance(capture, SameRows):
        capture = capture.whole
    return isinstance(capture, View)


def under_views(capture: Capture) -> Capture:
    """Return the capture of which views, if there are any, show a part."""
    while isinstance(capture, View):
        capture = capture.whole
    return capture


class Window(View):
    """The rows and records of another capture that match a selection.

    A slice matches if any part of it is within the time range; other rows with a ``ts`` match by
    their ``ts``. If threads or processes are selected, only their rows match. A context switch
    matches if either of its threads does; `threads` and `processes` then include the other one.
    If categories are selected, rows of other categories or without one do not match. If functions
    are selected, of the rows with a time only slices and instants of these names match; if logs
    are selected, only logs. Slices that are skipped do not match, and enclose nothing: `depth` and
    `parent` of the others, and `slice` of flows, are as if they had not been.

    `args` follow the rows that they belong to, as do the rows of detail tables
    (``TableSchema.parent_table``). Other tables (`blobs`, `diagnostics`, …) and records without a
    time are not filtered. ``row`` keeps the numbers of the whole capture, so that references
    between rows stay valid.
    """

    def __init__(self, whole: Capture, selection: Selection) -> None:
        super().__init__(whole)
        self.selection = selection
        self.start_ns = NS_MIN if selection.start_ns is None else selection.start_ns
        self.stop_ns = NS_MAX + 1 if selection.stop_ns is None else selection.stop_ns
        self._logs = LogFilter(selection, whole) if selection.by_logs else None
        self._threads = thread_mask(selection, whole)
        self._categories = category_mask(selection, whole)
        self._functions = function_mask(selection.functions, whole)
        if selection.skips:
            self.skipped = SkippedSlices(selection, whole)
        self._koids = [] if self._threads is None else self._koids_of(self._threads)
        self._counter_offsets: NDArray[np.int64] | None = None
        """Offsets of the records of counters that are shown, once they are known."""

    def records(self) -> Iterator[Record]:
        """Yield the records that match.

        If the capture has a ``row_table``, these are the records of its matching rows and the
        records without a row; a record with a ``row_offset`` follows the record at that offset.
        Otherwise these are the records whose time matches and those without a time.

        Raises UsageError if the format relates records neither to rows nor to times, or relates
        them only to times and the selection has other criteria.
        """
        if self.whole.row_table is not None:
            return self._records_of_rows()
        if not self.whole.timed_records:
            raise UsageError(
                f"records of {self.format} captures cannot be chosen by time",
                remedy="choose a table, or an exporter of tables; or leave out --since and --until",
            )
        if not self.selection.by_time_alone:
            raise UsageError(
                "records cannot be chosen by thread, process, category, function or length, nor by "
                "what logs say",
                remedy="cut the capture first: `fxf convert IN OUT` with OUT in its own format",
            )
        return self._timed_records()

    def _timed_records(self) -> Iterator[Record]:
        for record in self.whole.checked_records():
            ns = getattr(record, "ns", None)
            if ns is None or self.start_ns <= ns < self.stop_ns:
                yield record

    def _records_of_rows(self) -> Iterator[Record]:
        # The sentinel NS_MAX is beyond all offsets and keeps the result of searchsorted valid.
        left_out = np.append(self.offsets_left_out(), NS_MAX)
        all_records = self.whole.checked_records()
        while records := list(itertools.islice(all_records, RECORDS)):
            offsets = np.array([_row_offset(record) for record in records], np.int64)
            next_left_out = left_out[np.searchsorted(left_out, offsets)]
            yield from itertools.compress(records, (next_left_out != offsets).tolist())

    def offsets_left_out(self) -> NDArray[np.int64]:
        """Return the offsets of the records whose rows do not match, sorted, int64 of shape (n,).

        Only for a capture with a ``row_table``; a writer of the selection omits these records.
        """
        assert self.whole.row_table is not None  # noqa: S101 (the caller checks it)
        offsets = [np.zeros(0, np.int64)]
        for batch in self.whole.batches(self.whole.row_table):
            mask = self._mask(batch)
            if mask is not None:
                offsets.append(batch.array("offset")[~mask])
        return np.sort(np.concatenate(offsets))

    def summary(self) -> Summary:
        """Return the summary of the whole capture, with the rows and times of the selection."""
        summary = self.whole.summary()
        start = summary.start_ns
        if start is not None:
            start = max(start, self.start_ns)
        end = summary.end_ns
        if end is not None:
            end = min(end, self.stop_ns)
        rows = {name: sum(len(batch) for batch in self.batches(name)) for name in self.schemas}
        return attrs.evolve(summary, start_ns=start, end_ns=end, rows=rows, timeline=())

    def _part(self, table: Table) -> Table:
        mask = self._mask(table)
        part = table if mask is None else table.select(mask)
        return part if self.skipped is None else self.skipped.relinked(part)

    def skipped_counts(self) -> Mapping[str, int]:
        """Return how many slices are skipped that the other criteria choose, by the reason."""
        if self.skipped is None:
            return {}
        rest = attrs.evolve(self.selection, exclude_functions=(), min_duration_ns=None)
        slices = Window(self.whole, rest).batches("slices")
        return self.skipped.counts(batch.array("row") for batch in slices)

    def _mask(self, table: Table) -> Bools | None:
        """Return which rows match; None if all do."""
        if table.name == "args":
            return self._args_mask(table)
        if table.name in self._shown_rows:
            return self._shown_rows[table.name].of(table.array("row"))
        parent_table = table.schema.parent_table
        if parent_table is not None and parent_table in self.schemas:
            return self.rows_kept(parent_table).of(table.array("parent"))
        criteria = (
            self._time_mask(table),
            self._thread_mask(table),
            self._category_mask(table),
            self._function_mask(table),
            self._skip_mask(table),
            self._log_mask(table),
        )
        masks = [mask for mask in criteria if mask is not None]
        return np.asarray(np.logical_and.reduce(masks)) if masks else None

    def _time_mask(self, table: Table) -> Bools | None:
        if "ts" not in table or (self.selection.start_ns is self.selection.stop_ns is None):
            return None
        ts = table.array("ts")
        if "dur" not in table:
            return np.asarray((ts >= self.start_ns) & (ts < self.stop_ns))
        dur = table.array("dur")
        end = ends_of(ts, dur)
        is_open = dur < 0  # a slice that was never closed reaches to the end
        reaches_start = is_open | (end > self.start_ns) | (ts >= self.start_ns)
        return np.asarray(reaches_start & (ts < self.stop_ns))

    def _thread_mask(self, table: Table) -> Bools | None:
        if self._threads is None:
            return None
        thread_columns = [name for name in ("thread", "prev", "next") if name in table]
        if thread_columns:
            is_chosen = np.append(self._threads, False)  # index -1: no thread
            masks = [is_chosen[table.array(name)] for name in thread_columns]
            return np.asarray(np.logical_or.reduce(masks))
        koid_columns = [name for name in ("pid", "tid") if name in table]
        if not koid_columns or table.name not in STANDARD_TABLES:
            return None
        koids = self._koids
        if table.name in {"threads", "processes"}:
            koids = self._koids_of_shown_rows()
        # A table of processes has pids alone.
        chosen = {pid_and_tid[: len(koid_columns)] for pid_and_tid in koids}
        rows = np.column_stack([table.array(name) for name in koid_columns])
        distinct, index_of_row = np.unique(rows, axis=0, return_inverse=True)
        is_distinct_chosen = [tuple(row) in chosen for row in distinct.tolist()]
        return np.array(is_distinct_chosen, np.bool_)[index_of_row.reshape(-1)]

    def _koids_of_shown_rows(self) -> list[tuple[int, ...]]:
        """Return the pid and tid of every thread that a matching row refers to.

        These are the selected threads and the other threads of their context switches.
        """
        assert self._threads is not None  # noqa: S101 (threads are selected)
        is_referred = np.append(self._threads, False)  # index -1: no thread
        if "sched" in self.schemas:
            for batch in self.batches("sched"):
                is_referred[batch.array("prev")] = True
                is_referred[batch.array("next")] = True
        return self._koids_of(is_referred)

    def _koids_of(self, chosen: Bools) -> list[tuple[int, ...]]:
        """Return the pid and tid of the threads that a mask by id chooses."""
        table = self.whole.table("threads")
        return list(table.select(chosen[table.array("id")]).tuples("pid", "tid"))

    def _category_mask(self, table: Table) -> Bools | None:
        if not self.selection.categories or "ts" not in table:
            return None
        if "category" not in table:
            return np.zeros(len(table), np.bool_)
        assert self._categories is not None  # noqa: S101 (there are some)
        is_chosen = np.append(self._categories, False)  # index -1: no category
        return np.asarray(is_chosen[table.array("category")])

    def _function_mask(self, table: Table) -> Bools | None:
        if self._functions is None or "ts" not in table:
            return None
        if table.name not in {"slices", "instants"}:
            return np.zeros(len(table), np.bool_)
        is_chosen = np.append(self._functions, False)  # index -1: no name
        return np.asarray(is_chosen[table.array("name")])

    def _skip_mask(self, table: Table) -> Bools | None:
        if self.skipped is None or table.name != "slices":
            return None
        return ~self.skipped.among(table.array("row"))

    def _log_mask(self, table: Table) -> Bools | None:
        if self._logs is None or "ts" not in table:
            return None
        if table.name != "logs":
            return np.zeros(len(table), np.bool_)
        return self._logs.mask(table)

    def _args_mask(self, args: Table) -> Bools:
        codes = args.array("table")
        parents = args.array("parent")
        mask = np.asarray(codes >= len(TABLE_CODES))  # tables of plugins, which stay whole
        for name, code in TABLE_CODES.items():
            is_of_table = codes == code
            if name in self.schemas and name != "args" and is_of_table.any():
                mask[is_of_table] = self.rows_kept(name).of(parents[is_of_table])
        # Of a counter, what is not a number belongs to a record with several rows, and to none.
        without_row = np.flatnonzero((codes == COUNTERS) & (parents < 0))
        if without_row.size:
            offsets = args.array("offset")[without_row]
            mask[without_row] = np.isin(offsets, self._offsets_of_counters())
        return mask

    def _offsets_of_counters(self) -> NDArray[np.int64]:
        """Return the offsets of the records of counters that are shown."""
        if self._counter_offsets is None:
            offsets = [batch.array("offset") for batch in self.batches("counters")]
            self._counter_offsets = np.unique(np.concatenate([np.zeros(0, np.int64), *offsets]))
        return self._counter_offsets


def _row_offset(record: Record) -> int:
    """Return the offset of the record whose row decides about a record."""
    offset: int = getattr(record, "row_offset", record.offset)
    return offset
