"""Window: a capture as it looks through a selection: a stretch of time, or some of its rows."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.errors import UsageError, did_you_mean
from fxframework.model.capture import Capture, Record, Summary
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.logs import LogFilter, RowMarks, least_severity
from fxframework.model.schema import SLICE_KINDS, STANDARD_TABLES, TABLE_CODES
from fxframework.model.table import Table

__all__ = ["Omitted", "Selection", "View", "Window"]

Bools = NDArray[np.bool_]
COMPLETE = next(number for number, name in SLICE_KINDS.items() if name == "complete")

RECORDS = 512
"""Records that are looked up together."""


@attrs.frozen(kw_only=True)
class Selection:
    """A part of a capture: a stretch of time; threads, processes, categories, functions; or logs.

    Times are nanoseconds on the capture's clock, ``start_ns <= time < stop_ns``, None open-ended.
    Threads and processes are chosen by name, or by number: a thread's id, or ``pid/tid``.
    ``*`` and ``?`` in a name stand for any letters. No names at all choose everything. Functions
    are the names of slices: where some are chosen, rows of other tables that have a time do not
    belong, but for instants of such a name.

    Logs are chosen by what they say. Of several values of one field any will do; what several
    fields ask for must all hold. Case counts only with ``case_sensitive``. Where logs are chosen,
    rows of other tables that have a time do not belong.
    """

    start_ns: int | None = None
    stop_ns: int | None = None
    threads: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    min_severity: int | None = attrs.field(
        default=None, converter=attrs.converters.optional(least_severity)
    )
    """Logs of at least this severity: a byte, or the name of a level (UsageError for none)."""
    tags: tuple[str, ...] = ()
    """Logs that have one of these tags."""
    exclude_tags: tuple[str, ...] = ()
    """Logs that have none of these tags."""
    components: tuple[str, ...] = ()
    """Logs of components whose moniker or url holds one of these."""
    filters: tuple[str, ...] = ()
    """Logs whose message, moniker or url holds one of these."""
    excludes: tuple[str, ...] = ()
    """Logs whose message, moniker and url hold none of these."""
    case_sensitive: bool = False
    kernel: bool = False
    """Logs of the kernel: their component, or a tag, is ``klog``."""
    pids: tuple[int, ...] = ()
    tids: tuple[int, ...] = ()

    @property
    def by_time_alone(self) -> bool:
        """Whether it names no thread, process, category or function, and chooses no logs."""
        named = self.threads or self.processes or self.categories or self.functions
        return not (named or self.by_logs)

    @property
    def by_logs(self) -> bool:
        """Whether it chooses logs by what they say."""
        return (
            self.min_severity is not None
            or self.kernel
            or any(
                (
                    self.tags,
                    self.exclude_tags,
                    self.components,
                    self.filters,
                    self.excludes,
                    self.pids,
                    self.tids,
                )
            )
        )

    @staticmethod
    def matches(text: str | None, patterns: Iterable[str]) -> bool:
        """Whether a name fits one of the patterns."""
        return text is not None and any(_fits(text, pattern) for pattern in patterns)


def thread_mask(selection: Selection, capture: Capture) -> Bools | None:
    """By thread id, whether the thread is selected; None where all are.

    Raises UsageError where a name matches no thread or process, and where the capture knows none.
    """
    if not (selection.threads or selection.processes):
        return None
    for name, asked in (("threads", selection.threads), ("processes", selection.processes)):
        if asked and not {name, "threads"} <= capture.schemas.keys():
            raise UsageError(
                f"a {capture.format} capture has no table of {name}",
                path=capture.name,
                remedy="choose its logs by number, with --pid and --tid"
                if "logs" in capture.schemas
                else f"it has {', '.join(capture.tables)}",
            )
    table = capture.table("threads")
    ids, pids, tids = (table.array(name).tolist() for name in ("id", "pid", "tid"))
    mask = np.zeros(max(ids, default=-1) + 1, np.bool_)
    mask[ids] = True
    if selection.threads:
        called = [
            (str(name), str(tid), f"{pid}/{tid}")
            for name, pid, tid in zip(table.texts("name"), pids, tids, strict=True)
        ]
        mask[ids] &= _fitting("thread", selection.threads, called)
    if selection.processes:
        processes = capture.table("processes")
        names = dict(zip(processes.array("pid").tolist(), processes.texts("name"), strict=True))
        mask[ids] &= _fitting(
            "process", selection.processes, [(str(names.get(pid)), str(pid)) for pid in pids]
        )
    return mask


def category_mask(selection: Selection, capture: Capture) -> Bools | None:
    """By string code, whether it is a selected category; None where all are.

    Raises UsageError for a pattern that no category of the capture fits; blobs may have some that
    no table shows.
    """
    if not selection.categories:
        return None
    hidden = "blobs" in capture.schemas and any(len(batch) for batch in capture.batches("blobs"))
    used: set[int] = set()
    for name, schema in capture.schemas.items():
        if any(column.name == "category" for column in schema.columns):
            for batch in capture.batches(name):
                used.update(np.unique(batch.array("category")).tolist())
    texts = capture.strings.texts()
    known = sorted({texts[code] for code in used if code >= 0})
    for pattern in selection.categories:
        if not hidden and not any(_fits(text, pattern) for text in known):
            raise _nothing("category", pattern, known)
    mask = np.zeros(len(texts), np.bool_)
    for code in used:
        mask[code] = code >= 0 and Selection.matches(texts[code], selection.categories)
    return mask


def function_mask(selection: Selection, capture: Capture) -> Bools | None:
    """By string code, whether it is the name of a selected function; None where all are.

    Raises UsageError where there are no slices, and for a pattern that the name of none fits.
    """
    if not selection.functions:
        return None
    if "slices" not in capture.schemas:
        raise UsageError(
            f"a {capture.format} capture has no slices, which functions are the names of",
            path=capture.name,
            remedy=f"it has {', '.join(capture.tables)}",
        )
    used = np.zeros(1, np.bool_)
    for name in ("slices", "instants"):
        for batch in capture.batches(name) if name in capture.schemas else ():
            codes = batch.array("name")  # strings may be known only once a column is made
            grown = np.zeros(max(used.size, len(capture.strings) + 1), np.bool_)
            grown[: used.size] = used
            grown[codes] = True  # -1 is the last one, which no string is
            grown[-1] = False
            used = grown
        if name == "slices":
            known = np.flatnonzero(used).tolist()
    texts = capture.strings.texts()
    for pattern in selection.functions:
        if not any(_fits(texts[code], pattern) for code in known):
            raise _nothing("function", pattern, sorted(texts[code] for code in known))
    mask = np.zeros(len(texts), np.bool_)
    for code in np.flatnonzero(used).tolist():
        mask[code] = Selection.matches(texts[code], selection.functions)
    return mask


def _fits(name: str, pattern: str) -> bool:
    """Whether a name is what a pattern says, in which only ``*`` and ``?`` are special."""
    return name == pattern or fnmatchcase(name, pattern.replace("[", "[[]"))


def _nothing(what: str, pattern: str, known: Sequence[str]) -> UsageError:
    some = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
    return UsageError(
        f"there is no {what} {pattern!r}{did_you_mean(pattern, known)}",
        remedy=f"there are {some}" if some else "the capture names none",
    )


def _fitting(what: str, patterns: Sequence[str], called: Sequence[tuple[str, ...]]) -> Bools:
    """Which of the things that are called so fit a pattern; UsageError for one that none fits."""
    mask = np.zeros(len(called), np.bool_)
    for pattern in patterns:
        fits = [any(_fits(name, pattern) for name in names) for names in called]
        if not any(fits):
            known = {names[-1] if names[0] == "None" else names[0] for names in called}
            raise _nothing(what, pattern, sorted(known))
        mask |= np.array(fits, np.bool_)
    return mask


class Omitted(dict[str, int]):
    """What is outside of a part, by name, with counts.

    ``dropped`` is what belongs to it, and had no place where it was written.
    """

    def __init__(self, outside: Mapping[str, int], dropped: Mapping[str, int]) -> None:
        super().__init__(outside)
        self.dropped = dict(dropped)


class View(Capture):
    """A capture that is looked at through another, which shows some of its rows."""

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
    def ticks_per_second(self) -> int | None:
        """That of the whole capture."""
        return self.whole.ticks_per_second

    def scan(self) -> None:
        """Read the whole capture."""
        self.whole.scan()

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
                f"records of a {self.format} capture cannot be chosen by time",
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
