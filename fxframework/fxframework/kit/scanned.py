"""The scanned capture: the base of readers whose tables come from kernels that scan the file.

A reader supplies the first pass over the file (``FirstPass``), the columns of a batch of rows,
and its rules. This module does the rest: memory check, whole tables and batches,
counts, conversion of a kernel's notes to findings, summary.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.errors import Catalogue, LimitError, PluginError, Rule
from fxframework.io import arena
from fxframework.kernels.arrays import I64
from fxframework.model.capture import Capture, Summary
from fxframework.model.table import ColumnData, Table

Columns = dict[str, ColumnData | Callable[[], ColumnData]]
"""Columns by name; a function makes the column on first use."""
Timeline = tuple[tuple[str, tuple[int, ...]], ...]
"""The type of ``Summary.timeline``."""

WHOLE_BYTES = 1 << 30
"""Files up to this many bytes are summarised from whole columns, larger ones part by part."""
PACKED_FACTOR, PACKED_FLOOR = 10, 150_000_000
"""Bytes for the columns of a compressed file: for each of its bytes, and in addition. Columns of a
file that unpacks to more are made part by part."""
BINS = 64
"""Time intervals in a timeline."""
SKETCHED_ROWS = 1 << 19
"""Rows sampled for a timeline, at least; of more rows it takes every second, third, …"""
BUSIEST = 8
"""Groups shown in a timeline."""
TEXT_TYPES = 1 << 6 | 1 << 10
"""Types whose values are string codes, one bit per type."""
DOUBLE_TYPES = 1 << 5
INTEGER_TYPES = (1 << 11) - 2 & ~TEXT_TYPES & ~DOUBLE_TYPES


class Notes(Protocol):
    """The findings of a pass, as numbers only (``fxframework.wire.findings.Findings``)."""

    @property
    def rows(self) -> I64:
        """The listed ones, of shape (n, 4): rule, offset, record and value of each."""

    def beyond_limit(self) -> list[tuple[int, int]]:
        """Return the rules with more findings than are listed, and how many more."""


class Note(NamedTuple):
    """One finding of a kernel."""

    rule: Rule
    """The rule, of the format's catalogue."""
    offset: int
    """Byte offset in the (unpacked) file."""
    record: int
    """Index of the record; negative if unknown."""
    value: int
    """A further number whose meaning depends on the rule."""


def listed_notes(notes: Notes, rules: Catalogue) -> Iterator[Note]:
    """Yield the findings that a pass listed, in the order in which it found them."""
    for number, *fields in notes.rows.tolist():
        yield Note(rules.numbered(number), *fields)


@attrs.frozen
class Batch:
    """Consecutive rows of one table."""

    first: int
    """Number of the first row within the table."""
    count: int
    """Number of rows."""
    columns: Columns
    """All columns except `row`. Functions here must not refer to the capture: its own cached
    tables would keep it in memory."""

    @classmethod
    def of(cls, first: int, table: Table) -> Batch:
        """Return the rows of a table, such as ``Table.of`` makes, numbered from ``first``."""
        columns: Columns = {name: table[name] for name in table.columns if name != "row"}
        return cls(first, len(table), columns)


ChunkT = TypeVar("ChunkT")


class FirstPass(abc.ABC, Generic[ChunkT]):
    """The result of one pass over the whole file; each format derives a class with its counts.

    ``ChunkT`` is the type of the raw columns that the kernels make from a part of the file.
    """

    whole: ChunkT | None = None
    """The raw columns of the whole file, if the pass kept them."""

    @property
    def notes(self) -> Sequence[Notes]:
        """The findings of the kernels that ran."""
        return ()

    @property
    @abc.abstractmethod
    def records(self) -> int:
        """Number of records in the file."""

    @property
    @abc.abstractmethod
    def kinds(self) -> dict[str, int]:
        """Number of records by kind, as named in record JSON."""

    @property
    @abc.abstractmethod
    def rows(self) -> dict[str, int]:
        """Number of rows of each table except `diagnostics`."""

    @property
    def range(self) -> tuple[int | None, int | None]:
        """The first and the last time of the capture in nanoseconds; None if it has no times."""
        return None, None

    @property
    def timeline(self) -> Timeline:
        """Events per time interval; see ``sketch``."""
        return ()


PassT = TypeVar("PassT", bound=FirstPass[Any])


class ScannedCapture(Capture, Generic[PassT, ChunkT]):
    """A capture whose tables come from kernels. See ``FirstPass`` for the type parameters.

    A reader supplies ``_run_pass`` (the first pass), ``_parts`` (a second pass, in bounded
    memory), ``_batch`` (the columns of a table from such a part), ``_facts`` (for its summary),
    and the class variables below.
    """

    memory_factor: ClassVar[int] = 4
    """The most bytes of columns in whole tables per byte of the file."""
    streamed: ClassVar[frozenset[str] | None] = None
    """Tables that are made part by part; None: all of them. The others are small, and ``_small``
    makes each at once."""

    _first: PassT | None = None
    _reported = False
    """Whether the findings of a first pass were reported."""

    # --- What a reader supplies -------------------------------------------------------------------

    @abc.abstractmethod
    def _run_pass(self, *, whole: bool) -> PassT:
        """Read the whole file once; if ``whole``, keep its raw columns."""

    @abc.abstractmethod
    def _parts(self, passed: PassT) -> Iterator[ChunkT]:
        """Read the file again, after the first pass; yield its raw columns part by part."""

    def _parts_with(self, name: str, passed: PassT) -> Iterator[ChunkT]:  # noqa: ARG002
        """Return the same; only the columns of one table need to be there."""
        return self._parts(passed)

    @abc.abstractmethod
    def _batch(self, name: str, passed: PassT, part: ChunkT) -> Batch:
        """Return the rows of a table in a part."""

    def _small(self, name: str, passed: PassT) -> Columns:  # noqa: ARG002
        """Return the columns, except `row`, of a table that is not ``streamed``."""
        raise PluginError(f"{type(self).__qualname__} does not define _small, for {name}")

    def _facts(self, passed: PassT) -> dict[str, Any]:  # noqa: ARG002 (a format's to use)
        """Return the format's facts for the summary, as plain JSON values."""
        return {}

    def _value(self, note: Note) -> object:
        """Return what the message of a finding shows as its value; None: the title alone."""
        return note.value

    def _record(self, note: Note) -> int | None:
        """Return the index of the record that a finding is about; None if there is none."""
        return None if note.record < 0 else note.record

    def _report(self, passed: PassT) -> None:
        """Report the findings of the first pass. A reader extends it for other findings."""
        for notes in passed.notes:
            self.report_notes(notes)

    # --- The first pass ---------------------------------------------------------------------------

    def scan(self) -> None:
        """Read the whole file, so that ``diagnostics`` is complete."""
        self._start_reading()
        if not self._reported:
            self.first_pass()

    def trim(self) -> None:
        """Free tables and the first pass; both are made again when needed."""
        self._first = None
        super().trim()

    @property
    def fits_memory(self) -> bool:
        """Whether whole columns fit in memory; if not, passes work part by part."""
        bound = self.request.limits.max_memory or self.memory_factor * WHOLE_BYTES
        packed = self.source.packed_size
        if packed:
            bound = min(bound, PACKED_FACTOR * packed + PACKED_FLOOR)
        return self.memory_factor * self.source.size <= bound

    def first_pass(self, *, whole: bool | None = None) -> PassT:
        """Return the first pass, running it if necessary.

        ``whole`` says whether it must keep its raw columns; None: if they fit in memory. Raises
        LimitError if whole columns may take more than ``max_memory``, or if the pass takes longer
        than ``max_time``.
        """
        self._start_reading()
        if whole is None:
            whole = self.fits_memory
        earlier = self._first
        if earlier is not None and (earlier.whole is not None or not whole):
            return earlier
        if whole:
            self._check_memory()
        if not self._reported:
            # The pass repeats what `records()` has found so far.
            self.diagnostics.forget(self.rules)
        passed = self._run_pass(whole=whole)
        self.check_budget()
        self._first = passed
        if not self._reported:
            self._reported = True
            self._report(passed)
        return passed

    def _check_memory(self) -> None:
        bound = self.request.limits.max_memory
        if bound and self.memory_factor * self.source.size > bound:
            raise LimitError(
                f"whole tables of a capture ({self.format}) of {self.source.size} bytes may take "
                f"{self.memory_factor * self.source.size} bytes; max_memory is {bound}",
                path=self.name,
                remedy="raise the limit with -o max_memory=BYTES, choose a part with --since and "
                "--until, or read batches: `capture.batches`, or an exporter such as perfetto",
            )

    def report_notes(self, notes: Notes) -> None:
        """Convert the findings of a pass to diagnostics; those not listed are only counted."""
        self.diagnostics.add_each(
            (note.rule, note.offset, self._record(note), self._value(note))
            for note in listed_notes(notes, self.rules)
        )
        for number, count in notes.beyond_limit():
            self.diagnostics.add(self.rules.numbered(number), times=count)

    def report_more(self, rule: Rule, total: int, listed: int) -> None:
        """Count the findings by a rule that were not listed."""
        if total > listed:
            self.diagnostics.add(rule, times=total - listed)

    def report_offsets(self, rule: Rule, offsets: I64, total: int | None = None) -> None:
        """Report a finding at each of these offsets, of shape (n,); count those past the limit.

        Where the offsets are only the first ones, ``total`` is the number of all findings.
        """
        listed = offsets[: self.request.limits.max_findings or offsets.size].tolist()
        self.diagnostics.add_each((rule, offset, None, None) for offset in listed)
        self.report_more(rule, int(offsets.size) if total is None else total, len(listed))

    # --- Tables -----------------------------------------------------------------------------------

    def _is_streamed(self, name: str) -> bool:
        return self.streamed is None or name in self.streamed

    def _table(self, name: str) -> Table:
        table = self._tables.get(name)
        if table is None:
            if self._is_streamed(name):
                passed = self.first_pass(whole=True)
                assert passed.whole is not None  # noqa: S101 (such a pass keeps its columns)
                table = self._made(name, passed, passed.whole)
            else:
                columns = self._small(name, self.first_pass())
                count = next(len(column) for column in columns.values() if not callable(column))
                table = self._table_of(name, Batch(0, count, columns))
            self._tables[name] = table
        return table

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        passed = self.first_pass(whole=False)
        if passed.whole is not None or not self._is_streamed(name):
            yield from self._table(name).batches(rows)
            return
        for part in self._parts_with(name, passed):
            yield from self._made(name, passed, part).batches(rows)

    def _made(self, name: str, passed: PassT, part: ChunkT) -> Table:
        return self._table_of(name, self._batch(name, passed, part))

    def _table_of(self, name: str, batch: Batch) -> Table:
        first, count, columns = batch.first, batch.count, batch.columns
        columns["row"] = lambda: row_numbers(first, count)
        return Table(self.schemas[name], count, columns, self.strings)

    def record_counts(self) -> Mapping[str, int]:
        """Return the number of records of each kind, from a pass that keeps no columns."""
        return self.first_pass(whole=False).kinds

    # --- Summary ----------------------------------------------------------------------------------

    def summary(self) -> Summary:
        """Counts and times, from one pass over the whole capture."""
        passed = self.first_pass()
        start, end = passed.range
        return Summary(
            records=passed.records,
            kinds=passed.kinds,
            start_ns=start,
            end_ns=end,
            facts=self._facts(passed),
            rows=passed.rows,
            timeline=passed.timeline,
        )


# --- Helpers for readers --------------------------------------------------------------------------


def row_numbers(first: int, rows: int) -> I64:
    """Return row numbers from ``first`` on, int64 of shape (rows,)."""
    numbers: I64 = arena.empty(rows, np.int64)
    block = np.arange(min(rows, 1 << 15), dtype=np.int64)
    for at in range(0, rows, block.size or 1):
        part = numbers[at : at + block.size]
        np.add(block[: part.size], first + at, out=part)
    return numbers


def task_columns(
    name: str, pids: NDArray[np.uint64], tids: NDArray[np.uint64], offsets: I64
) -> Columns:
    """Return the columns of `threads`, or of `processes`, whose names are not known.

    Of each thread there are the ids and the offset of its first record, of shape (threads,).
    """
    if name == "threads":
        return {
            "offset": offsets,
            "pid": pids,
            "name": np.full(pids.size, -1, np.int32),
            "id": np.arange(pids.size, dtype=np.int32),
            "tid": tids,
        }
    # Each process once, in the order of its first thread.
    _, first_threads = np.unique(pids, return_index=True)
    first_threads.sort()
    names = np.full(first_threads.size, -1, np.int32)
    return {"offset": offsets[first_threads], "pid": pids[first_threads], "name": names}


def busiest(groups: NDArray[Any]) -> list[int]:
    """Return the groups with the most rows, the largest first, given the group of each row."""
    counts = np.zeros(int(groups.max(initial=0)) + 1, np.int64)
    for first in range(0, groups.size, SKETCHED_ROWS):
        some = np.bincount(groups[first : first + SKETCHED_ROWS])  # which makes int64 of them
        counts[: some.size] += some
    order = np.argsort(-counts, kind="stable")[:BUSIEST].tolist()
    return [group for group in order if counts[group]]


def sketch(
    times: NDArray[Any],
    groups: NDArray[Any],
    bounds: tuple[int, int],
    labels: Iterable[tuple[int, str]],
) -> Timeline:
    """Return rows per time interval for some groups, as in ``Summary.timeline``.

    ``times`` and ``groups`` have the same shape (rows,); ``bounds`` are the first and last time,
    in the unit of ``times``; ``labels`` names the groups to show. Groups without rows are omitted;
    the result is empty if the times span 2^53 or more.
    """
    first, last = bounds
    span = last - first + 1
    if not 0 < span < 1 << 53 or not times.size:
        return ()
    step = max(1, times.size // SKETCHED_ROWS)
    groups = groups[::step]
    bins = ((times[::step] - times.dtype.type(first)) // times.dtype.type(-(-span // BINS))).astype(
        np.int64
    )
    return tuple(
        (label, tuple(np.bincount(mine, minlength=BINS)[:BINS].tolist()))
        for group, label in labels
        if (mine := bins[groups == group]).size
    )


def value_columns(
    types: NDArray[np.uint8],
    values: NDArray[np.int64],
    seen: int,
    texts: int = TEXT_TYPES,
    integers: int = INTEGER_TYPES,
) -> dict[str, Callable[[], NDArray[Any]]]:
    """Return functions that make the columns ``int``, ``uint``, ``float`` and ``str`` of `args`.

    ``types`` and ``values`` have the same shape (rows,); a value is an integer, the bits of a
    double, or the code of a string. ``seen`` has a bit for each type that may occur, ``texts`` and
    ``integers`` for each type with values of that kind.
    """
    rows = types.size
    made: dict[int, NDArray[Any]] = {}

    def part(wanted: int, otherwise: int, dtype: type) -> NDArray[Any]:
        if not seen & wanted:
            return np.broadcast_to(dtype(otherwise), rows)
        if not seen & ~wanted and dtype is np.int64:
            return values
        if wanted not in made:
            is_wanted = np.array([wanted >> kind & 1 for kind in range(256)], bool)
            made[wanted] = np.where(is_wanted[types], values, otherwise).astype(dtype, copy=False)
        return made[wanted]

    return {
        "int": lambda: part(integers, 0, np.int64),
        "uint": lambda: part(integers, 0, np.int64).view(np.uint64),
        "float": lambda: part(DOUBLE_TYPES, 0, np.int64).view(np.float64),
        "str": lambda: part(texts, -1, np.int32),
    }
