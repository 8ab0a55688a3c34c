"""Runs: the figures of one run, and of the several runs of a side, that a comparison needs."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.calls import Calls, Functions, in_ns
from fxframework.analysis.scheduling import Waits, waits_of
from fxframework.analysis.signals import Signal, counters_of, entries_of, instants_of, templates_of
from fxframework.analysis.spread import Spreads, spreads
from fxframework.analysis.tree import CallTree, call_tree
from fxframework.errors import UsageError
from fxframework.kernels.arrays import F64, I64
from fxframework.kernels.sorting import dense
from fxframework.kit.shown import amount
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.threads import Threads

KINDS = ("name", "path", "process", "thread", "category")
"""What calls can be grouped by; or by another column of `slices`."""
DEEPEST = 256
"""Levels of the call tree; deeper calls are counted at the call above them."""
BINS = 192
"""Bins of a distribution, four for each power of two nanoseconds."""
SHAPED = 20_000
"""Names up to which distributions are kept."""
NOBODY = b"(no name)"
TOP = -1
"""Parent in ``Names`` of names of calls."""
ASYNC_TOP = -2
"""Parent in ``Names`` of names of asynchronous slices."""


class Names:
    """Numbers for names, and for paths of names; a path is known by its caller's number."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, bytes], int] = {}
        self.parents: list[int] = []
        self._names: list[bytes] = []

    def __len__(self) -> int:
        return len(self._names)

    def number(self, name: bytes, parent: int = TOP) -> int:
        """Return the number of a name below a parent, which is new if it was not known."""
        key = (parent, name)
        number = self._numbers.get(key)
        if number is None:
            number = len(self._names)
            self._numbers[key] = number
            self.parents.append(parent)
            self._names.append(name)
        return number

    def name(self, number: int) -> str:
        """Return a name; bytes that are not UTF-8 become U+FFFD."""
        return self._names[number].decode("utf-8", "replace")

    def path(self, number: int) -> list[str]:
        """Return the names from the outermost caller to a number."""
        innermost_first = []
        while number >= 0:
            innermost_first.append(self.name(number))
            number = self.parents[number]
        return innermost_first[::-1]

    def is_asynchronous(self, number: int) -> bool:
        """Return whether a name is of asynchronous slices."""
        return self.parents[number] == ASYNC_TOP


@attrs.frozen(eq=False)
class Figures:
    """Figures of groups of calls, as columns of shape (n,); times in nanoseconds."""

    keys: I64
    """Numbers in ``Names``, distinct."""
    count: I64
    """Calls that ended."""
    total: I64
    own: I64
    """Self time."""
    mean: F64
    """NaN without calls, like the next three."""
    median: F64
    p90: F64
    p99: F64
    noise: F64
    """Variance of the mean, relative to its square, if the calls are independent."""

    @classmethod
    def none(cls) -> Figures:
        """Return the figures of no calls."""
        return cls.of_paths(*(np.zeros(0, np.int64) for _ in range(4)))

    @classmethod
    def of_paths(cls, keys: I64, count: I64, total: I64, own: I64) -> Figures:
        """Return figures of call paths, which have no lengths: the other columns are empty."""
        empty = np.zeros(0)
        return cls(
            keys, count, total, own, mean=empty, median=empty, p90=empty, p99=empty, noise=empty
        )


@attrs.frozen(eq=False)
class Run:
    """What is compared of one capture."""

    name: str
    format: str
    figures: Figures | None = None
    """None if the format has no slices; likewise the others."""
    lengths: Sequence[F64] = ()
    """Sorted lengths by group, in the order of ``figures``; empty if its side has more runs."""
    tree: Figures | None = None
    """Counts, totals and self times by call path; the other columns are empty."""
    counters: Mapping[tuple[str, ...], Signal] | None = None
    logs: Mapping[tuple[str, ...], int] | None = None
    instants: Mapping[tuple[str, ...], int] | None = None
    entries: Mapping[str, Any] | None = None
    waits: Waits | None = None
    timed: bool = True
    """Whether lengths are nanoseconds, not ticks of an unknown rate."""
    several_threads: bool = False
    """Whether more than one thread has calls."""


class Side:
    """The runs of one side."""

    DATA: ClassVar = {
        "figures": "calls",
        "counters": "counters",
        "logs": "logs",
        "instants": "instants",
        "entries": "properties",
    }
    """Attributes of runs with data, and the word for these in messages."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.runs: list[Run] = []
        self._bins = np.zeros((0, BINS), np.uint32)

    def can_have(self, what: str) -> bool:
        """Return whether the format of any run has such data."""
        return any(getattr(run, what) is not None for run in self.runs)

    def has(self, what: str) -> bool:
        """Return whether any run has such data."""
        if what == "figures":
            return any(run.figures is not None and run.figures.keys.size for run in self.runs)
        return any(getattr(run, what) for run in self.runs)

    def matrix(self, column: str, size: int, fill: float = np.nan) -> F64:
        """Return a figure of every run, shape (runs, ``size``), by number of ``Names``."""
        matrix = np.full((len(self.runs), size), fill)
        for row, run in enumerate(self.runs):
            if run.figures is not None:
                matrix[row, run.figures.keys] = getattr(run.figures, column)
        return matrix

    def sums(self, column: str, size: int) -> I64:
        """Return the sum of a figure over the runs, shape (``size``,)."""
        sums = np.zeros(size, np.int64)
        for run in self.runs:
            if run.figures is not None:
                sums[run.figures.keys] += getattr(run.figures, column)
        return sums

    def path_means(self, column: str, size: int) -> F64:
        """Return the mean over the runs of a figure of call paths, shape (``size``,)."""
        sums = np.zeros(size)
        for run in self.runs:
            if run.tree is not None:
                sums[run.tree.keys] += getattr(run.tree, column)
        return sums / len(self.runs)

    def add(self, run: Run) -> None:
        """Add a run. Lengths are kept of the only run of each format."""
        for position, earlier in enumerate(self.runs):
            if earlier.format == run.format:
                self.runs[position] = attrs.evolve(earlier, lengths=())
                run = attrs.evolve(run, lengths=())
        self.runs.append(run)

    def by_format(self) -> dict[str, list[Run]]:
        """Return the runs by their format."""
        formats: dict[str, list[Run]] = {}
        for run in self.runs:
            formats.setdefault(run.format, []).append(run)
        return formats

    def lengths(self) -> dict[int, F64]:
        """Return the sorted lengths of the only run by number of ``Names``."""
        run = self.runs[0]
        if run.figures is None:
            return {}
        return dict(zip(run.figures.keys.tolist(), run.lengths, strict=True))

    def bins(self, number: int) -> NDArray[np.uint32]:
        """Return the distribution of the lengths of a name, over all runs; see ``bin_edges``."""
        if number < len(self._bins):
            bins: NDArray[np.uint32] = self._bins[number]
            return bins
        return np.zeros(BINS, np.uint32)

    def count(self, keys: I64, group: NDArray[np.int64], lengths: F64) -> None:
        """Add lengths to the distributions of groups, which are known as ``keys``."""
        if len(self.names) > SHAPED:
            # All distributions go: otherwise the number of names would decide the memory.
            self._bins = self._bins[:0]
            return
        new_names = len(self.names) - len(self._bins)
        if new_names > 0:
            self._bins = np.pad(self._bins, ((0, new_names), (0, 0)))
        with np.errstate(divide="ignore"):  # the logarithm of 0 is in the first bin
            quarters_of_powers = np.log2(lengths) * 4
        bin_of_length = np.clip(quarters_of_powers, 0, BINS - 1).astype(np.int64)
        bin_of_all = group * BINS + bin_of_length
        counts = np.bincount(bin_of_all, minlength=keys.size * BINS)
        counts = counts.reshape(-1, BINS)
        self._bins[keys] += counts.astype(np.uint32)


def bin_edges() -> F64:
    """Return the lower edges of the bins of a distribution, in nanoseconds; the first has 0 too."""
    edges: F64 = 2.0 ** (np.arange(BINS) / 4)
    return edges


@attrs.frozen
class Reader:
    """Reads runs; numbers of names are shared by both sides."""

    by: str = "name"
    paths: Names = attrs.field(factory=Names)
    """Numbers of call paths."""
    names: Names = attrs.field(factory=Names)
    """Numbers of groups: the same as ``paths`` if they are call paths."""

    @classmethod
    def of(cls, by: str) -> Reader:
        """Return a reader that groups calls by one of KINDS, or a column of `slices`."""
        paths = Names()
        return cls(by, paths, paths if by == "path" else Names())

    def read(self, capture: Capture, side: Side) -> None:
        """Add the figures of a capture to a side.

        Raises UsageError if there is nothing in it to compare.
        """
        # Lengths are of use only if this is the only run of its format.
        keep_lengths = all(run.format != capture.format for run in side.runs)
        tables_with_rows = {table for table, rows in capture.row_counts().items() if rows}
        run = Run(name=capture.name, format=capture.format)
        waits = None
        if "slices" in tables_with_rows:
            run = self._with_calls(run, capture, side, keep_lengths=keep_lengths)
            if "sched" in tables_with_rows:
                waits = waits_of(capture)
        elif "slices" in capture.schemas:
            run = attrs.evolve(run, figures=Figures.none(), tree=Figures.none())

        def data_of(table: str, read: Callable[[Capture], Any]) -> Any:
            """Return data of a table: empty without rows, None if the format has no such table."""
            if table in tables_with_rows:
                return read(capture)
            return {} if table in capture.schemas else None

        run = attrs.evolve(
            run,
            counters=data_of("counters", counters_of),
            logs=data_of("logs", templates_of),
            instants=data_of("instants", instants_of),
            entries=entries_of(capture),
            waits=waits,
        )
        side.add(run)
        if not capture.schemas.keys() & {"slices", "counters", "logs", "properties"}:
            raise UsageError(
                f"{capture.format} captures have no slices, counters, logs or properties",
                path=capture.name,
                remedy="`fxf diff` compares captures of every format record by record",
            )

    def read_calls(self, capture: Capture, side: Side) -> None:
        """Add the calls of a capture alone to a side."""
        run = Run(name=capture.name, format=capture.format)
        side.runs.append(self._with_calls(run, capture, side, keep_lengths=False))

    def _with_calls(self, run: Run, capture: Capture, side: Side, *, keep_lengths: bool) -> Run:
        """Return a run with what is compared of the calls of its capture."""
        by_path = self.by == "path"
        has_names = by_path or self.by in {"name", "process", "thread"}
        calls = Calls.of(capture, "name" if has_names else self.by, with_asynchronous=True)
        # The tree is that of the names of calls that nest: the calls in memory are these, unless
        # they have other labels or asynchronous slices among them.
        calls_of_tree = calls if has_names and calls.marked is None else None
        if by_path and calls_of_tree is None:
            calls = Calls.of(capture, "name")
            calls_of_tree = calls
        tree = call_tree(capture, by="name", depth=DEEPEST, calls=calls_of_tree, with_nodes=by_path)
        path_numbers = self._path_numbers(tree)
        if by_path:
            group = tree.nodes
            keys = path_numbers
        else:
            group, keys = self._groups(capture, calls)
        group_of_key, distinct_keys = dense(keys)
        if distinct_keys.size < keys.size or not np.array_equal(distinct_keys, keys):
            # Several groups have one name, or names are numbered in another order.
            group = group_of_key[group]
        spreads_of_groups = spreads(
            np.ascontiguousarray(group, np.int32),
            distinct_keys.size,
            calls.parent,
            calls.length,
            ordered=True,
        )
        rate = calls.per_second
        several_threads = bool((calls.thread != calls.thread[:1]).any())
        del calls, calls_of_tree, group  # before more columns of their size are made
        figures, lengths = _figures(
            distinct_keys, spreads_of_groups, rate, side, keep_lengths=keep_lengths
        )
        return attrs.evolve(
            run,
            figures=figures,
            lengths=lengths,
            tree=_figures_of_tree(tree, path_numbers),
            timed=rate > 0,
            several_threads=several_threads,
        )

    def _groups(self, capture: Capture, calls: Calls) -> tuple[NDArray[Any], I64]:
        """Return the group of each call, and the number of each group."""
        if self.by in {"process", "thread"}:
            label = _labels(capture, self.by)
            group, thread_ids = dense(calls.thread)
            numbers = [self.names.number(label(thread_id)) for thread_id in thread_ids.tolist()]
            return group, np.array(numbers, np.int64)
        names = _names_of(calls.functions)
        if calls.marked is None:
            numbers = [self.names.number(name) for name in names]
            return calls.function, np.array(numbers, np.int64)
        # Asynchronous slices of a name are a group of their own: function 3 has 6 and 7.
        functions_and_marks = calls.function.astype(np.int64) * 2 + calls.marked
        group, used = dense(functions_and_marks)
        numbers = []
        for function_and_mark in used.tolist():
            function, is_asynchronous = divmod(function_and_mark, 2)
            parent = ASYNC_TOP if is_asynchronous else TOP
            numbers.append(self.names.number(names[function], parent))
        return group, np.array(numbers, np.int64)

    def _path_numbers(self, tree: CallTree) -> I64:
        """Return the number of each node of a tree; TOP for its root."""
        names = _names_of(tree.functions)
        numbers = [TOP] * len(tree)
        for node, (parent, function) in enumerate(
            zip(tree.parent.tolist(), tree.function.tolist(), strict=True)
        ):
            if function >= 0:
                numbers[node] = self.paths.number(names[function], numbers[parent])
        return np.array(numbers, np.int64)


def _names_of(functions: Functions) -> list[bytes]:
    """Return the names of functions."""
    pool = functions.pool
    return [pool.bytes_of(code) if code >= 0 else NOBODY for code in functions.codes.tolist()]


def _labels(capture: Capture, by: str) -> Callable[[int], bytes]:
    """Return a function from a thread's id to the name of its process or of itself."""
    pool = capture.strings
    threads = Threads(capture.schemas, capture.table)
    names = threads.names
    system_ids = threads.tids
    if by == "process":
        names = threads.process_names
        system_ids = threads.pids

    def label(thread_id: int) -> bytes:
        row = threads.row(thread_id)
        if row < 0:
            return NOBODY
        if names[row] >= 0 and pool.bytes_of(int(names[row])):
            return pool.bytes_of(int(names[row]))
        return f"{by} {int(system_ids[row])}".encode()

    return label


def _figures(
    keys: I64, spreads_of_groups: Spreads, rate: int, side: Side, *, keep_lengths: bool
) -> tuple[Figures, list[F64]]:
    """Return the figures of groups that have calls, and their lengths."""
    ns_per_tick = NS_PER_SECOND / rate if rate else 1.0
    counts = spreads_of_groups.column("count")
    groups = np.flatnonzero((counts > 0) & (keys >= 0))
    counts = counts[groups]

    def statistic(name: str) -> F64:
        return np.asarray(spreads_of_groups.column(name)[groups] * ns_per_tick, np.float64)

    lengths = spreads_of_groups.lengths.astype(np.float64)
    if ns_per_tick != 1.0:
        lengths *= ns_per_tick
    mean = np.full(groups.size, np.nan)
    noise = np.full(groups.size, np.nan)
    lengths_by_group = []
    group_of_length = np.full(lengths.size, -1, np.int64)
    starts = spreads_of_groups.starts[groups]
    for group, (start, count) in enumerate(zip(starts.tolist(), counts.tolist(), strict=True)):
        lengths_of_group = lengths[start : start + count]
        group_of_length[start : start + count] = group
        mean[group] = lengths_of_group.mean()
        if count > 1 and mean[group] > 0:
            # The variance of the mean, relative to the square of the mean.
            variance_of_mean = lengths_of_group.var(ddof=1) / count
            noise[group] = variance_of_mean / mean[group] ** 2
        if keep_lengths:
            lengths_by_group.append(lengths_of_group)
    is_of_group = group_of_length >= 0
    if is_of_group.all():
        side.count(keys[groups], group_of_length, lengths)
    else:
        side.count(keys[groups], group_of_length[is_of_group], lengths[is_of_group])
    figures = Figures(
        keys=keys[groups],
        count=counts,
        total=in_ns(spreads_of_groups.column("sum")[groups], rate),
        own=in_ns(spreads_of_groups.column("own")[groups], rate),
        mean=mean,
        median=statistic("median"),
        p90=statistic("p90"),
        p99=statistic("p99"),
        noise=noise,
    )
    return figures, lengths_by_group


def _figures_of_tree(tree: CallTree, path_numbers: I64) -> Figures:
    """Return counts and times by call path."""
    nodes = np.flatnonzero(path_numbers >= 0)
    count = np.array(tree.count[nodes], np.int64)
    total = np.array(tree.in_ns(tree.total)[nodes], np.int64)
    own = np.array(tree.in_ns(tree.own)[nodes], np.int64)
    return Figures.of_paths(path_numbers[nodes], count, total, own)


# --- Captures of one run -------------------------------------------------------------------------


def join_runs(sides: Sequence[Side]) -> list[str]:
    """Make one run of the captures of each run, on sides with captures of several formats.

    The first trace and the first log of a side are one run, the second ones another, and so on: a
    run that recorded several captures is one sample. A format that has fewer captures than others
    is left out, as nobody knows of which runs they are, and one that the other side lacks. Returns
    notes about them.
    """
    formats_of_sides = [side.by_format() for side in sides]
    if all(len(runs_by_format) == 1 for runs_by_format in formats_of_sides):
        return []
    complete_of_sides = []
    for runs_by_format in formats_of_sides:
        most_runs = max(map(len, runs_by_format.values()), default=0)
        complete = {name for name, runs in runs_by_format.items() if len(runs) == most_runs}
        complete_of_sides.append(complete)
    common = set.intersection(*complete_of_sides)
    notes = []
    for side, runs_by_format, complete in zip(
        sides, formats_of_sides, complete_of_sides, strict=True
    ):
        # Without a common format the sides are left as they are, for a message that says so.
        joined_formats = common or complete
        captures = [runs for name, runs in runs_by_format.items() if name in joined_formats]
        side.runs = [_joined(captures_of_run) for captures_of_run in zip(*captures, strict=True)]
        for name, runs in runs_by_format.items():
            if name not in joined_formats:
                count_text = amount(len(runs), "capture")
                notes.append(
                    f"left out: {count_text} of format {name}: there is not one for each run of "
                    "both sides"
                )
    return notes


def _joined(captures: Sequence[Run]) -> Run:
    """Return the captures of one run as one: what several have is that of the first."""
    folders = {posixpath.dirname(capture.name) for capture in captures}
    are_in_one_folder = len(folders) == 1 and "" not in folders
    figures, lengths = _joined_figures(
        [(capture.figures, capture.lengths) for capture in captures if capture.figures is not None]
    )
    trees = [(capture.tree, ()) for capture in captures if capture.tree is not None]
    tree, _ = _joined_figures(trees)
    # The runs of several formats are named by the folder that has them all, if there is one.
    return Run(
        name=folders.pop() if are_in_one_folder else captures[0].name,
        format=", ".join(sorted(capture.format for capture in captures)),
        figures=figures,
        lengths=lengths,
        tree=tree,
        counters=_merged([capture.counters for capture in captures]),
        logs=_merged([capture.logs for capture in captures]),
        instants=_merged([capture.instants for capture in captures]),
        entries=_merged([capture.entries for capture in captures]),
        waits=next((capture.waits for capture in captures if capture.waits is not None), None),
        timed=all(capture.timed for capture in captures if capture.figures is not None),
        several_threads=any(capture.several_threads for capture in captures) or len(trees) > 1,
    )


def _joined_figures(
    figures_and_lengths: Sequence[tuple[Figures, Sequence[F64]]],
) -> tuple[Figures | None, Sequence[F64]]:
    """Return figures, and the lengths kept with them, as those of one run; None if there are none.

    Keys stay distinct: calls that two captures recorded under one name are those of the first.
    """
    if not figures_and_lengths:
        return None, ()
    earlier_keys: set[int] = set()
    columns: dict[str, list[NDArray[Any]]] = {field.name: [] for field in attrs.fields(Figures)}
    joined_lengths: list[F64] = []
    for figures, lengths in figures_and_lengths:
        keys = figures.keys.tolist()
        is_new = np.array([key not in earlier_keys for key in keys], np.bool_)
        earlier_keys.update(keys)
        for name, columns_of_captures in columns.items():
            column = getattr(figures, name)
            # Some columns of a tree's figures are empty.
            columns_of_captures.append(column[is_new] if column.size else column)
        # Not strict: lengths are not kept of every run.
        for lengths_of_key, key_is_new in zip(lengths, is_new, strict=False):
            if key_is_new:
                joined_lengths.append(lengths_of_key)
    joined = {}
    for name, columns_of_captures in columns.items():
        joined[name] = np.concatenate(columns_of_captures)
    return Figures(**joined), joined_lengths


def _merged(mappings: Sequence[Mapping[Any, Any] | None]) -> dict[Any, Any] | None:
    """Return mappings as one, the first ones first; None if there are none."""
    merged: dict[Any, Any] | None = None
    for mapping in mappings:
        if mapping is None:
            continue
        if merged is None:
            merged = {}
        for key, value in mapping.items():
            merged.setdefault(key, value)
    return merged
