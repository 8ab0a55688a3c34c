"""Capture: an opened input, as records and as tables, both made when they are asked for."""

from __future__ import annotations

import abc
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.errors import Rule, UsageError, did_you_mean
from fxframework.io.budget import Budget
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.logs import LogFilter
from fxframework.model.rows import Bools, RowMarks, category_mask, function_mask, thread_mask
from fxframework.model.schema import COMPLETE, STANDARD_TABLES, TABLE_CODES, TableSchema
from fxframework.model.selection import Selection
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table, html_table

if TYPE_CHECKING:
    import pyarrow as pa

    from fxframework import ConversionReport

__all__ = [
    "CallColumns",
    "Capture",
    "Entry",
    "OpenRequest",
    "Record",
    "Summary",
    "View",
    "Window",
    "kind_of",
]

LINES = 512
"""Lines of record JSON that are made before they are given."""
RECORDS = 512
"""Records that are looked up together."""


@runtime_checkable
class Record(Protocol):
    """One record, lossless: an object of the format's own with its place in the file.

    A record that has a time may have it as ``ns`` (int), nanoseconds on the capture's clock; see
    ``Capture.timed_records``. One that is nothing without another may have that one's offset as
    ``row_offset`` (int); see ``Capture.row_table``.
    """

    @property
    def offset(self) -> int:
        """Byte offset of its first byte in the (unpacked) file."""

    @property
    def nbytes(self) -> int:
        """Bytes that it takes there."""

    def to_json(self) -> dict[str, Any]:
        """The record as JSON (docs/records.md)."""


def kind_of(record: Record) -> str:
    """The kind of a record, as its JSON names it."""
    kind = getattr(record, "record", None)
    return kind if isinstance(kind, str) else str(record.to_json()["record"])


class Entry(NamedTuple):
    """One named value of a capture of a state: see ``Capture.entries``."""

    path: str
    """Its name. Several entries may have the same one; then their order distinguishes them."""
    type: str
    """What kind of value it is, as the format names it."""
    value: Any
    """Its exact value, as plain JSON: equal for equal values."""
    offset: int
    """Byte offset of a record that holds it."""


@attrs.frozen(kw_only=True)
class CallColumns:
    """Columns and table of a capture of calls, beside the standard columns of `slices`."""

    function: str
    """Column of `slices`: the number of the function that was called."""
    ticks: str
    """Column of `slices`: its exact length in ticks; -1 where it was never closed."""
    ended: str
    """Column of `slices`: how the call ended."""
    functions: str
    """Table of the functions: ``id`` is such a number, ``name`` and ``source`` are codes."""


@attrs.frozen(kw_only=True)
class OpenRequest:
    """How to read a capture: what `fxf` and `fxframework.open` pass to a reader."""

    limits: Limits = attrs.field(factory=Limits)
    """Bounds on memory and time."""
    budget: Budget = attrs.field(
        default=attrs.Factory(lambda request: Budget(request.limits), takes_self=True), eq=False
    )
    """What the work may take; ``Capture.check_budget`` checks it."""
    strict: bool = False
    """Whether the first finding of DATA_LOSS or worse raises StrictError."""
    options: Mapping[str, Any] = attrs.field(factory=dict)
    """The reader's own options, already of their types."""
    observer: Any = None
    """Called with every Diagnostic."""
    host: Any = None
    """The Host, for readers of containers that hold other formats."""

    def diagnostics(self, rules: Mapping[str, Rule], source: Source) -> Diagnostics:
        """The findings of a reading of the source, by the rules of a format."""
        return Diagnostics(
            rules,
            limit=self.limits.max_findings,
            strict=self.strict,
            path=source.name,
            observer=self.observer,
        )


@attrs.frozen(kw_only=True)
class Summary:
    """What `fxf info` shows of a capture."""

    records: int
    """How many records there are, damaged stretches and padding included."""
    kinds: Mapping[str, int]
    """Records of each kind."""
    start_ns: int | None
    """The first time on the capture's clock, in nanoseconds; None where nothing has a time."""
    end_ns: int | None
    """The last time, likewise; ends of slices count."""
    facts: Mapping[str, Any]
    """Facts that only this format has, as plain JSON values."""
    rows: Mapping[str, int] = attrs.field(factory=dict)
    """Rows of each table, where the pass counts them; empty where it does not."""
    timeline: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Named rows of equal length: events per stretch of time, for a sketch on a terminal."""

    def _repr_html_(self) -> str:
        """The summary as a table, for a notebook."""
        rows: list[tuple[str, Any]] = [("records", self.records)]
        rows += [(f"records: {kind}", count) for kind, count in self.kinds.items()]
        rows += [(f"rows: {name}", count) for name, count in self.rows.items()]
        if self.start_ns is not None and self.end_ns is not None:
            rows.append(("first time (ns)", self.start_ns))
            rows.append(("last time (ns)", self.end_ns))
        rows += [(name, value) for name, value in self.facts.items() if value not in ([], {})]
        return html_table("summary", [], rows)


class Capture(abc.ABC):
    """An opened input. Use as a context manager.

    ``records()`` gives every record in file order, damaged stretches and padding included;
    ``table(name)`` a whole table; ``batches(name, rows)`` the same rows in bounded memory.
    ``diagnostics`` holds the findings of what was read so far.

    A reader that has a fast way to the record JSON overrides ``records_json()``; it reports what
    ``records()`` does.
    """

    format: ClassVar[str]
    """The name of the format."""
    rules: ClassVar[Mapping[str, Rule]] = {}
    """The format's findings by code."""
    schemas: ClassVar[Mapping[str, TableSchema]] = {}
    """The tables that the format fills, beside `diagnostics`."""
    timed_records: ClassVar[bool] = False
    """Whether every record with a time has it as ``ns``: records can be selected by time."""
    row_table: ClassVar[str | None] = None
    """The table that has a row, at the record's offset, for every record that says something by
    itself; None where there is none. A part of such a capture has the records of its rows, and
    those that have no row, so that its own writer can write it."""
    support_records: ClassVar[frozenset[str]] = frozenset()
    """Kinds of records that others only refer to. They do not count when captures are compared."""
    calls: ClassVar[CallColumns | None] = None
    """For a capture whose slices are calls of numbered functions: its columns and table."""

    def __init__(
        self, source: Source, request: OpenRequest, diagnostics: Diagnostics | None = None
    ) -> None:
        if diagnostics is None:
            diagnostics = request.diagnostics(self.rules, source)
            if not source.size:
                diagnostics.add("FXF0102", offset=0)
        self.source = source
        self.request = request
        self.diagnostics = diagnostics
        self.strings = StringPool()
        self.position = 0
        """How far the current pass is: bytes of the source, of the batches given so far."""
        self._tables: dict[str, Table] = {}
        for fault in source.faults:
            diagnostics.add(fault.code, fault.message, offset=fault.offset)

    @property
    def name(self) -> str:
        """The name of the input."""
        return self.source.name

    @property
    def writer_options(self) -> Mapping[str, Any]:
        """Options with which the writer of the format writes the same bytes again."""
        return {}

    @property
    def utc_offset_ns(self) -> int | None:
        """Nanoseconds since the Unix epoch at time 0 of the capture's clock; None: not known."""
        return None

    @property
    def clocks(self) -> Mapping[str, int]:
        """Clocks that the capture's times relate to: the ns of each at time 0 of the capture.

        Names are ``utc``, ``boot`` (since the system started, in suspension too) and ``monotonic``.
        """
        offset = self.utc_offset_ns
        return {} if offset is None else {"utc": offset}

    @property
    def tick_rate(self) -> tuple[int, int] | None:
        """The ticks at time 0 and ticks per second, where times count ticks of one counter."""
        return None

    @property
    def ticks_per_second(self) -> int | None:
        """Ticks in a second, where ``calls`` has lengths in ticks; 0: not known.

        None where the lengths of slices are known in nanoseconds alone.
        """
        return None

    def resume(self) -> tuple[int, bytes] | None:
        """Where to continue once the file has grown, for following it.

        Returns the offset up to which there are whole records, and the bytes that must precede
        what follows, so that it reads as it would in the file. None for a format that cannot
        be followed, which is the default.
        """
        return None

    @property
    def fits_memory(self) -> bool:
        """Whether whole tables may be made where nobody asked for them; else batches are."""
        return True

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that this capture can give."""
        return (*self.schemas, "diagnostics")

    @abc.abstractmethod
    def records(self) -> Iterator[Record]:
        """Every record in file order; their ``nbytes`` add up to the source's size."""

    def records_json(self) -> Iterator[bytes]:
        """The same records as JSON lines (docs/records.md), in chunks of whole lines."""
        import orjson

        lines: list[bytes] = []
        for record in self.checked_records():
            lines.append(orjson.dumps(record.to_json()))
            if len(lines) == LINES:
                yield b"\n".join(lines) + b"\n"
                lines.clear()
        if lines:
            yield b"\n".join(lines) + b"\n"

    @property
    def record_diagnostics(self) -> Diagnostics | None:
        """Where ``records()`` reports its findings, so that each is reported once.

        The capture's own as long as it has none of the format's rules; None after that.
        """
        return None if self.diagnostics.has_any(self.rules) else self.diagnostics

    def summary(self) -> Summary:
        """Counts and times, from one pass over the whole capture.

        This one counts the records and rows, and takes the times from the tables with a ``ts``.
        """
        kinds: Counter[str] = Counter(kind_of(record) for record in self.checked_records())
        rows = dict.fromkeys(self.schemas, 0)
        times: list[int] = []
        for name in self.schemas:
            for batch in self.batches(name):
                rows[name] += len(batch)
                if "ts" in batch and len(batch):
                    ts = batch.array("ts")
                    times += (int(ts.min()), int(ts.max()))
        return Summary(
            records=kinds.total(),
            kinds=kinds,
            start_ns=min(times, default=None),
            end_ns=max(times, default=None),
            facts={},
            rows=rows,
        )

    def scan(self) -> None:
        """Read all of it, so that ``diagnostics`` is complete.

        This one reads all records, the first time; they report to ``record_diagnostics``.
        """
        if not self._scanned:
            self._scanned = True
            self.diagnostics.forget(self.rules)
            for _ in self.checked_records():
                pass

    _scanned = False

    @abc.abstractmethod
    def _table(self, name: str) -> Table:
        """A whole table that the format fills."""

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        """The rows of a table, at most ``rows`` at a time. This one cuts the whole table."""
        return self.table(name).batches(rows)

    def table(self, name: str) -> Table:
        """A whole table. Raises UsageError for a name that the format does not fill."""
        if name == "diagnostics":
            return self._diagnostics_table()
        self._check(name)
        return self._table(name)

    def batches(self, name: str, rows: int = 65536) -> Iterator[Table]:
        """The rows of a table in order, at most ``rows`` at a time, in bounded memory."""
        if rows < 1:
            raise UsageError(
                f"invalid batch size {rows}: must be 1 or more", remedy="give 1 or more"
            )
        if name == "diagnostics":
            return self._diagnostics_table().batches(rows)
        self._check(name)
        return self._followed(self._batches(name, rows))

    def _followed(self, batches: Iterator[Table]) -> Iterator[Table]:
        """Keep ``position`` at the last row of the batch that was given."""
        for batch in batches:
            if len(batch) and "offset" in batch:
                self.position = int(batch.array("offset")[-1])
            self.check_budget()
            yield batch

    def check_budget(self) -> None:
        """Stop where reading took longer than ``max_time``, or more than ``max_memory``.

        A reader calls it between the stretches of a long pass. Raises LimitError.
        """
        self.request.budget.check(path=self.name)

    def checked_records(self) -> Iterator[Record]:
        """``records()``, with a look at the budget after some of them. Raises LimitError."""
        for number, record in enumerate(self.records()):
            if not number % RECORDS:
                self.check_budget()
            yield record

    def checked_pieces(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Pieces of bytes, with a look at the budget before each. Raises LimitError."""
        for piece in pieces:
            self.check_budget()
            yield piece

    def frame(self, name: str, *, args: bool = False) -> pa.Table:
        """A table with what its rows refer to, as an Arrow table.

        Beside each column that holds a thread there are ``pid``, ``tid``, ``process_name`` and
        ``thread_name`` (``prev_pid``, … and ``next_pid``, … for `sched`). With ``args``, each name
        of an argument has a column ``arg_NAME``: an integer, a double, a bool or a string, null
        for rows without it; strings where arguments of one name have different types. The first
        of several arguments of one name counts.

        Raises UsageError for a table that the capture does not have, MissingExtraError without
        pyarrow, LimitError where arguments would make more than 2^28 values.
        """
        from fxframework.model import arrow  # noqa: F401 (it says where pyarrow is missing)
        from fxframework.model.frame import frame_of

        return frame_of(self.table(name), self.schemas, self.table, args=args)

    def row_counts(self) -> Mapping[str, int]:
        """Rows of each table but `diagnostics`: as the summary has them, or else counted."""
        return self.summary().rows or {
            name: sum(len(batch) for batch in self.batches(name)) for name in self.schemas
        }

    def _check(self, name: str) -> None:
        if name not in self.schemas:
            raise UsageError(
                f"{self.format} captures have no table {name!r}{did_you_mean(name, self.tables)}",
                remedy=f"it has {', '.join(self.tables)}",
            )

    def _diagnostics_table(self) -> Table:
        self.scan()
        found = self.diagnostics.sorted()
        schema = STANDARD_TABLES["diagnostics"]
        intern = self.strings.intern

        def optional(values: list[int | None]) -> Any:
            return np.array([-1 if value is None else value for value in values], np.int64)

        columns = {
            "code": np.array([intern(f.code.encode()) for f in found], np.int32),
            "severity": np.array([f.severity for f in found], np.uint8),
            "offset": optional([f.offset for f in found]),
            "record": optional([f.record for f in found]),
            "message": TextColumn.of(f.message for f in found),
        }
        return Table(schema, len(found), columns, self.strings)

    def between(self, start_ns: int | None, stop_ns: int | None) -> Capture:
        """The same capture with the rows and records of a stretch of time; None is open-ended."""
        return self.select(Selection(start_ns=start_ns, stop_ns=stop_ns))

    def select(self, selection: Selection) -> Capture:
        """The same capture with the rows and records of a part of it.

        See ``Window`` for what belongs to a part. Raises UsageError where
        a thread or process is named that it does not have, and where logs are chosen of a format
        that has none.
        """
        return Window(self, selection)

    def choose(self, selectors: Sequence[str]) -> Capture:
        """The same capture with what any of these selectors chooses.

        Raises UsageError for an invalid selector, and for a format without selectors, which is
        the default.
        """
        raise UsageError(
            f"{selectors[0]!r} is not a file, and {self.format} captures have no selectors",
            path=self.name,
            remedy="`cat` takes one FILE; `fxf info` takes several",
        )

    def entries(self) -> Iterator[Entry] | None:
        """Its entries, if it captures a state and not a sequence of events; else None.

        States are compared by their entries: the places of records, and references between
        them, do not count.
        """
        return None

    def export(
        self, out: str | os.PathLike[str], to: str | None = None, **options: Any
    ) -> ConversionReport:
        """Write it in another form, which ``to`` or the suffix of ``out`` names.

        ``options`` are those of ``fxframework.convert``, which does it.
        """
        import fxframework

        return fxframework.convert(self, out, to=to, **options)

    def trim(self) -> None:
        """Free tables and what else reading made; they are made again where they are asked for.

        Findings stay. Tables that somebody holds stay as they are.
        """
        self._tables.clear()
        self.source.release(0, self.source.size)

    def _repr_html_(self) -> str:
        """What it is and what it holds, for a notebook; `html` exports a page of it."""
        title = f"{self.name}: {self.format}"
        rows = [(name, f"{count:,}") for name, count in self.row_counts().items() if count]
        found = self.diagnostics.counts.items()
        findings = [(f"finding {code}", f"{count:,}") for code, count in found]
        return html_table(title, ["table", "rows"], [*rows, *findings])

    def close(self) -> None:
        """Release the input; may be called again."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class View(Capture):
    """A capture that shows some rows of another one."""

    def __init__(self, whole: Capture) -> None:
        self.whole = whole
        # Of the class elsewhere; a view is of the class that it looks at.
        self.format = whole.format  # type: ignore[misc]
        self.schemas = whole.schemas  # type: ignore[misc]
        self.timed_records = whole.timed_records  # type: ignore[misc]
        self.row_table = whole.row_table  # type: ignore[misc]
        self.support_records = whole.support_records  # type: ignore[misc]
        self.calls = whole.calls  # type: ignore[misc]
        # The whole capture's own, shared: nothing is added to them here.
        self.source = whole.source
        self.request = whole.request
        self.diagnostics = whole.diagnostics
        self.strings = whole.strings
        self.position = 0

    @property
    def writer_options(self) -> Mapping[str, Any]:
        """Those of the whole capture."""
        return self.whole.writer_options

    @property
    def utc_offset_ns(self) -> int | None:
        """That of the whole capture."""
        return self.whole.utc_offset_ns

    @property
    def clocks(self) -> Mapping[str, int]:
        """Those of the whole capture."""
        return self.whole.clocks

    @property
    def tick_rate(self) -> tuple[int, int] | None:
        """That of the whole capture."""
        return self.whole.tick_rate

    @property
    def ticks_per_second(self) -> int | None:
        """That of the whole capture."""
        return self.whole.ticks_per_second

    @property
    def fits_memory(self) -> bool:
        """Whether the whole capture does."""
        return self.whole.fits_memory

    def scan(self) -> None:
        """Read the whole capture."""
        self.whole.scan()

    def trim(self) -> None:
        """Free what the whole capture has made."""
        self.whole.trim()

    def close(self) -> None:
        """Close the whole capture."""
        self.whole.close()

    @abc.abstractmethod
    def _part(self, table: Table) -> Table:
        """The rows of a table, or of a batch of it, that are shown; itself where all are."""

    def _table(self, name: str) -> Table:
        return self._part(self.whole.table(name))

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        for batch in self.whole.batches(name, rows):
            part = self._part(batch)
            if part is batch or len(part):
                yield part


class Window(View):
    """The rows and records of another capture that belong to a selection.

    Slices belong where any part of them is within the time, other rows with a ``ts`` by that.
    With threads or processes, only their rows belong. A context switch does where one of its two
    threads does; `threads` and `processes` then have the other one, too. With categories, rows of
    others or of none do not belong. With functions, only slices and instants of such a name
    belong; with logs chosen, only logs.
    `args` follow the rows that they are arguments of, and so do the rows of a table that has
    details of another's (``TableSchema.parent_table``). Other tables (`blobs`, `diagnostics`, …)
    and records without a time stay whole. ``row`` keeps the numbers of the whole capture, so that
    references between rows hold.
    """

    def __init__(self, whole: Capture, selection: Selection) -> None:
        super().__init__(whole)
        self.selection = selection
        self.start_ns = NS_MIN if selection.start_ns is None else selection.start_ns
        self.stop_ns = NS_MAX + 1 if selection.stop_ns is None else selection.stop_ns
        self._kept: dict[str, RowMarks] = {}
        self._logs = LogFilter(selection, whole) if selection.by_logs else None
        self._threads = thread_mask(selection, whole)
        self._categories = category_mask(selection, whole)
        self._functions = function_mask(selection, whole)
        self._people: list[tuple[int, ...]] = []
        if self._threads is not None:
            table = whole.table("threads")
            chosen = self._threads[table.array("id")]
            koids = [table.array(name)[chosen].tolist() for name in ("pid", "tid")]
            self._people = list(zip(*koids, strict=True))

    def records(self) -> Iterator[Record]:
        """The records that belong.

        Where the capture has a ``row_table``, those of its rows that belong, and those that have
        no row; where a record has a ``row_offset``, it goes where the record at that offset goes.
        Elsewhere, the records whose time belongs, and those that have none.

        Raises UsageError where the format's records say neither their row nor their time, and
        where they say their time alone and anything else is chosen.
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
                "records cannot be chosen by thread, process, category or function, nor by what "
                "logs say",
                remedy="cut the capture first: `fxf convert IN OUT` with OUT in its own format",
            )
        return self._timed_records()

    def _timed_records(self) -> Iterator[Record]:
        start, stop = self.start_ns, self.stop_ns
        for record in self.whole.records():
            ns = getattr(record, "ns", None)
            if ns is None or start <= ns < stop:
                yield record

    def _records_of_rows(self) -> Iterator[Record]:
        # One offset that no record has, so that there always is a nearest one.
        left_out = np.append(self.offsets_left_out(), NS_MAX)
        records = self.whole.records()
        while some := list(itertools.islice(records, RECORDS)):
            offsets = np.array([_row_offset(record) for record in some], np.int64)
            keep = left_out[np.searchsorted(left_out, offsets)] != offsets
            yield from itertools.compress(some, keep.tolist())

    def offsets_left_out(self) -> NDArray[np.int64]:
        """Offsets of the records whose rows do not belong, int64 of shape (n,), in order.

        For a capture that has a ``row_table``: what writes a part of it leaves these out.
        """
        assert self.whole.row_table is not None  # noqa: S101 (who asks knows)
        parts = [np.zeros(0, np.int64)]
        for batch in self.whole.batches(self.whole.row_table):
            mask = self._mask(batch)
            if mask is not None:
                parts.append(batch.array("offset")[~mask])
        return np.sort(np.concatenate(parts))

    def summary(self) -> Summary:
        """The whole capture's, with the rows and the times of this stretch."""
        summary = self.whole.summary()
        first, last = summary.start_ns, summary.end_ns
        return attrs.evolve(
            summary,
            start_ns=first if first is None else max(first, self.start_ns),
            end_ns=last if last is None else min(last, self.stop_ns),
            rows={name: sum(len(batch) for batch in self.batches(name)) for name in self.schemas},
            timeline=(),
        )

    def _part(self, table: Table) -> Table:
        mask = self._mask(table)
        return table if mask is None else table.select(mask)

    def _mask(self, table: Table) -> Bools | None:
        """Which rows belong; None where all do."""
        if table.name == "args":
            return self._args_mask(table)
        if table.name in self._kept:  # it has been decided
            return self._kept[table.name].of(table.array("row"))
        parents = table.schema.parent_table
        if parents is not None and parents in self.schemas:
            return self._rows_kept(parents).of(table.array("parent"))
        masks = [
            mask
            for mask in (
                self._time_mask(table),
                self._thread_mask(table),
                self._category(table),
                self._function(table),
                self._log_mask(table),
            )
            if mask is not None
        ]
        return np.asarray(np.logical_and.reduce(masks)) if masks else None

    def _time_mask(self, table: Table) -> Bools | None:
        if "ts" not in table or (self.selection.start_ns is self.selection.stop_ns is None):
            return None
        ts = table.array("ts")
        if "dur" not in table:
            return np.asarray((ts >= self.start_ns) & (ts < self.stop_ns))
        # A length of -1 reaches to the end, but for an event that is said to be complete; times
        # may be near the ends of what int64 holds.
        dur = table.array("dur")
        if "kind" in table:
            dur = np.where(table.array("kind") == COMPLETE, np.maximum(dur, 0), dur)
        end = ts + np.minimum(np.maximum(dur, 0), NS_MAX - np.maximum(ts, 0))
        touches = (dur < 0) | (end > self.start_ns) | (ts >= self.start_ns)
        return np.asarray(touches & (ts < self.stop_ns))

    def _thread_mask(self, table: Table) -> Bools | None:
        threads = self._threads
        if threads is None:
            return None
        ids = [table.array(name) for name in ("thread", "prev", "next") if name in table]
        if ids:
            known = np.append(threads, False)  # what -1 finds
            return np.asarray(np.logical_or.reduce([known[column] for column in ids]))
        people = [name for name in ("pid", "tid") if name in table]
        if not people or table.name not in STANDARD_TABLES:
            return None
        koids_of = self._named_people() if table.name in {"threads", "processes"} else self._people
        chosen = {koids if len(people) == 2 else koids[:1] for koids in koids_of}
        columns = np.column_stack([table.array(name) for name in people])
        each, where = np.unique(columns, axis=0, return_inverse=True)
        fits = [tuple(koids) in chosen for koids in each.tolist()]
        return np.array(fits, np.bool_)[where.reshape(-1)]

    def _named_people(self) -> list[tuple[int, ...]]:
        """The pid and tid of every thread that a row of this part names.

        These are the selected threads, and those at the other side of their context switches.
        """
        assert self._threads is not None  # noqa: S101 (threads are selected)
        named = np.append(self._threads, False)  # what -1 finds
        if "sched" in self.schemas:
            for batch in self.batches("sched"):
                for side in ("prev", "next"):
                    named[batch.array(side)] = True
        table = self.whole.table("threads")
        chosen = named[:-1][table.array("id")]
        koids = [table.array(name)[chosen].tolist() for name in ("pid", "tid")]
        return list(zip(*koids, strict=True))

    def _category(self, table: Table) -> Bools | None:
        if not self.selection.categories or "ts" not in table:
            return None
        if "category" not in table:
            return np.zeros(len(table), np.bool_)
        codes = table.array("category")
        assert self._categories is not None  # noqa: S101 (there are some)
        known = np.append(self._categories, False)  # what -1 finds
        return np.asarray(known[codes])

    def _function(self, table: Table) -> Bools | None:
        if self._functions is None or "ts" not in table:
            return None
        if table.name not in {"slices", "instants"}:
            return np.zeros(len(table), np.bool_)
        known = np.append(self._functions, False)  # what -1 finds
        return np.asarray(known[table.array("name")])

    def _log_mask(self, table: Table) -> Bools | None:
        if self._logs is None or "ts" not in table:
            return None
        return self._logs.mask(table) if table.name == "logs" else np.zeros(len(table), np.bool_)

    def _args_mask(self, args: Table) -> Bools:
        mask = np.zeros(len(args), np.bool_)
        codes, parents = args.array("table"), args.array("parent")
        for name, code in TABLE_CODES.items():
            mine = codes == code
            if name in self.schemas and name != "args" and mine.any():
                mask[mine] = self._rows_kept(name).of(parents[mine])
        return mask

    def _rows_kept(self, name: str) -> RowMarks:
        """Marks on the rows of a table that belong."""
        kept = self._kept.get(name)
        if kept is None:
            kept = RowMarks()
            for batch in self.batches(name):
                kept.add(batch.array("row"))
            self._kept[name] = kept
        return kept


def _row_offset(record: Record) -> int:
    own: int = getattr(record, "row_offset", record.offset)
    return own
