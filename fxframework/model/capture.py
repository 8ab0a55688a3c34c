"""Capture: what a reader gives. Two views of one input, both lazy: records and tables."""

from __future__ import annotations

import abc
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import attrs
import numpy as np

from fxframework.errors import Rule, UsageError, did_you_mean
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.schema import STANDARD_TABLES, TableSchema
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table, html_table

if TYPE_CHECKING:
    import pyarrow as pa

    from fxframework import ConversionReport
    from fxframework.model.window import Selection

__all__ = ["CallColumns", "Capture", "Entry", "OpenRequest", "Record", "Summary", "kind_of"]

LINES = 512
"""Lines of record JSON that are made before they are given."""


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
        ...

    @property
    def nbytes(self) -> int:
        """Bytes that it takes there."""
        ...

    def to_json(self) -> dict[str, Any]:
        """The record as CONTRACTS §3 shows it."""
        ...


def kind_of(record: Record) -> str:
    """The kind of a record, as its JSON names it."""
    kind = getattr(record, "record", None)
    return kind if isinstance(kind, str) else str(record.to_json()["record"])


class Entry(NamedTuple):
    """Something that a capture of a state says, by its name: see ``Capture.entries``."""

    path: str
    """What names it. Several entries may have the same one: they are told apart by their order."""
    type: str
    value: Any
    """Its value as plain JSON has it: exact, so that two are the same where they say the same."""
    offset: int
    """Byte offset of a record that says so."""


@attrs.frozen(kw_only=True)
class CallColumns:
    """Where a capture of calls has what the standard columns of `slices` do not say."""

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
    """How a capture is to be read: what `fxf` and `fxframework.open` pass to a reader."""

    limits: Limits = attrs.field(factory=Limits)
    strict: bool = False
    options: Mapping[str, Any] = attrs.field(factory=dict)
    """The reader's own options, already of their types."""
    observer: Any = None
    """Called with every Diagnostic."""
    host: Any = None
    """The Host, for readers of containers that hold other formats."""

    def diagnostics(self, rules: Mapping[str, Rule], source: Source) -> Diagnostics:
        """A place for the findings of a reading of the source, by a format's rules."""
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
    kinds: Mapping[str, int]
    """Records of each kind."""
    start_ns: int | None
    end_ns: int | None
    facts: Mapping[str, Any]
    """What only this format has to say, as plain JSON values."""
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
    ``diagnostics`` holds what was found by the views that were asked for so far.

    A reader that has a fast way to the record JSON overrides ``records_json()``; it reports what
    ``records()`` does.
    """

    format: ClassVar[str]
    rules: ClassVar[Mapping[str, Rule]] = {}
    """The format's findings by code."""
    schemas: ClassVar[Mapping[str, TableSchema]] = {}
    """The tables that the format fills, beside `diagnostics`."""
    timed_records: ClassVar[bool] = False
    """Whether every record that has a time says it (``ns``), so that records can be cut by it."""
    row_table: ClassVar[str | None] = None
    """The table that has a row, at the record's offset, for every record that says something by
    itself; None where there is none. A part of such a capture has the records of its rows, and
    those that have no row, so that its own writer can write it."""
    support_records: ClassVar[frozenset[str]] = frozenset()
    """Kinds of records that say nothing by themselves: others refer to them, and show what they
    say. Captures that differ in these alone say the same."""
    calls: ClassVar[CallColumns | None] = None
    """For a capture whose slices are calls of numbered functions: where it says which."""

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
        """Options with which the format's writer gives the same bytes again."""
        return {}

    @property
    def utc_offset_ns(self) -> int | None:
        """Nanoseconds since the Unix epoch at time 0 of the capture's clock; None: not known."""
        return None

    @property
    def ticks_per_second(self) -> int | None:
        """Ticks in a second, where ``calls`` has lengths in ticks; 0: not known.

        None where the lengths of slices are known in nanoseconds alone.
        """
        return None

    def resume(self) -> tuple[int, bytes] | None:
        """Where to go on reading once the file has grown, for what follows one.

        Gives the offset up to which there are whole records, and the bytes that must stand before
        what follows there so that it reads as it would in the file. None for a format in which
        that cannot be done, which is how it is unless a capture says otherwise.
        """
        return None

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that this capture can give."""
        return (*self.schemas, "diagnostics")

    @abc.abstractmethod
    def records(self) -> Iterator[Record]:
        """Every record in file order; their ``nbytes`` add up to the source's size."""

    def records_json(self) -> Iterator[bytes]:
        """The same records as JSON lines (CONTRACTS §3), in chunks of whole lines."""
        import orjson

        lines: list[bytes] = []
        for record in self.records():
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

        This one counts the records, and takes the times from the tables that have a ``ts``.
        """
        kinds: Counter[str] = Counter(kind_of(record) for record in self.records())
        times = [
            batch.array("ts")
            for name in self.schemas
            for batch in self.batches(name)
            if "ts" in batch and len(batch)
        ]
        return Summary(
            records=kinds.total(),
            kinds=kinds,
            start_ns=min((int(ts.min()) for ts in times), default=None),
            end_ns=max((int(ts.max()) for ts in times), default=None),
            facts={},
        )

    def scan(self) -> None:
        """Read all of it, so that ``diagnostics`` is complete.

        This one reads all records, the first time; they report to ``record_diagnostics``.
        """
        if not self._scanned:
            self._scanned = True
            self.diagnostics.forget(self.rules)
            for _ in self.records():
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
            raise UsageError(f"a batch of {rows} rows makes no sense", remedy="give 1 or more")
        if name == "diagnostics":
            return self._diagnostics_table().batches(rows)
        self._check(name)
        return self._followed(self._batches(name, rows))

    def _followed(self, batches: Iterator[Table]) -> Iterator[Table]:
        """Keep ``position`` at the last row of the batch that was given."""
        for batch in batches:
            if len(batch) and "offset" in batch:
                self.position = int(batch.array("offset")[-1])
            yield batch

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
                f"a {self.format} capture has no table {name!r}{did_you_mean(name, self.tables)}",
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
        from fxframework.model.window import Selection

        return self.select(Selection(start_ns=start_ns, stop_ns=stop_ns))

    def select(self, selection: Selection) -> Capture:
        """The same capture with the rows and records of a part of it.

        See ``fxframework.model.window.Window`` for what belongs to a part. Raises UsageError where
        a thread or process is named that it does not have, and where logs are chosen of a format
        that has none.
        """
        from fxframework.model.window import Window

        return Window(self, selection)

    def choose(self, selectors: Sequence[str]) -> Capture:
        """The same capture with what any of these selectors chooses.

        Raises UsageError for a selector that is none, and for a format that has none, which is
        how it is unless a capture says otherwise.
        """
        raise UsageError(
            f"{selectors[0]!r} would be a selector, and a {self.format} capture has none",
            path=self.name,
            remedy="`cat` takes one FILE; `fxf info` takes several",
        )

    def entries(self) -> Iterator[Entry] | None:
        """What it states, by name, where it is a state and no sequence of events; else None.

        Captures of a state are compared by their entries: where their records stand, and how they
        refer to each other, says nothing then.
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

    def close(self) -> None:
        """Let go of the input; may be called again."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
