"""Runs: the figures of one run, and of the several runs of a side, that a comparison needs."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.calls import Calls, in_ns
from fxframework.analysis.scheduling import Waits, waits_of
from fxframework.analysis.signals import Signal, counters_of, entries_of, instants_of, templates_of
from fxframework.analysis.spread import spreads
from fxframework.analysis.tree import CallTree, call_tree
from fxframework.errors import UsageError
from fxframework.kit.shown import amount
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.threads import Threads

__all__ = ["BINS", "KINDS", "Figures", "Names", "Reader", "Run", "Side", "bin_edges", "join_runs"]

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
KINDS = ("name", "path", "process", "thread", "category")
"""What calls can be grouped by; or by another column of `slices`."""
DEEPEST = 256
"""Levels of the call tree; deeper calls are counted at the call above them."""
BINS = 192
"""Bins of a distribution, four for each power of two nanoseconds."""
SHAPED = 20_000
"""Names up to which distributions are kept."""
NOBODY = b"(no name)"
TOP, ASYNC_TOP = -1, -2
"""Parents of names in ``Names``: of calls, and of asynchronous slices."""


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
        key = parent, name
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._names)
            self.parents.append(parent)
            self._names.append(name)
        return found

    def name(self, number: int) -> str:
        """Return a name; bytes that are not UTF-8 become U+FFFD."""
        return self._names[number].decode("utf-8", "replace")

    def path(self, number: int) -> list[str]:
        """Return the names from the outermost caller to a number."""
        found = []
        while number >= 0:
            found.append(self.name(number))
            number = self.parents[number]
        return found[::-1]

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
        whole, real = np.zeros(0, np.int64), np.zeros(0)
        return cls(whole, whole, whole, whole, real, real, real, real, real)


@attrs.frozen(eq=False)
class Run:
    """What is compared of one capture."""

    name: str
    format: str
    figures: Figures | None
    """None if the format has no slices; likewise the others."""
    lengths: Sequence[F64]
    """Sorted lengths by group, in the order of ``figures``; empty if its side has more runs."""
    tree: Figures | None
    """Counts, totals and self times by call path; the other columns are empty."""
    counters: Mapping[tuple[str, ...], Signal] | None
    logs: Mapping[tuple[str, ...], int] | None
    instants: Mapping[tuple[str, ...], int] | None
    entries: Mapping[str, Any] | None
    waits: Waits | None
    timed: bool
    """Whether lengths are nanoseconds, not ticks of an unknown rate."""
    several_threads: bool = False
    """Whether more than one thread has calls."""


class _CallFigures(NamedTuple):
    """What is compared of the calls of a capture; see ``Run``."""

    figures: Figures
    lengths: Sequence[F64]
    tree: Figures
    timed: bool = True
    several_threads: bool = False


class Side:
    """The runs of one side."""

    DATA: ClassVar = {"figures": "calls", "counters": "counters", "logs": "logs",
                      "instants": "instants", "entries": "properties"}  # fmt: skip
    """What runs have, with its word."""

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
        out = np.full((len(self.runs), size), fill)
        for row, run in enumerate(self.runs):
            if run.figures is not None:
                out[row, run.figures.keys] = getattr(run.figures, column)
        return out

    def sums(self, column: str, size: int) -> I64:
        """Return the sum of a figure over the runs, shape (``size``,)."""
        out = np.zeros(size, np.int64)
        for run in self.runs:
            if run.figures is not None:
                out[run.figures.keys] += getattr(run.figures, column)
        return out

    def path_means(self, column: str, size: int) -> F64:
        """Return the mean over the runs of a figure of call paths, shape (``size``,)."""
        out = np.zeros(size)
        for run in self.runs:
            if run.tree is not None:
                out[run.tree.keys] += getattr(run.tree, column)
        return out / len(self.runs)

    def add(self, run: Run) -> None:
        """Add a run. Lengths are kept of the only run of each format."""
        for place, earlier in enumerate(self.runs):
            if earlier.format == run.format:
                self.runs[place] = attrs.evolve(earlier, lengths=())
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
        keys = [] if run.figures is None else run.figures.keys.tolist()
        return dict(zip(keys, run.lengths, strict=True))

    def bins(self, number: int) -> NDArray[np.uint32]:
        """Return the distribution of the lengths of a name, over all runs; see ``bin_edges``."""
        found: NDArray[np.uint32] = np.zeros(BINS, np.uint32)
        if number < len(self._bins):
            found = self._bins[number]
        return found

    def count(self, keys: I64, group: NDArray[np.int64], lengths: F64) -> None:
        """Add lengths to the distributions of groups, which are known as ``keys``."""
        more = len(self.names) - len(self._bins)
        if len(self.names) > SHAPED:
            self._bins = self._bins[:0]  # their number would decide the memory
            return
        if more > 0:
            self._bins = np.pad(self._bins, ((0, more), (0, 0)))
        with np.errstate(divide="ignore"):
            place = np.clip(np.log2(lengths) * 4, 0, BINS - 1).astype(np.int64)
        counts = np.bincount(group * BINS + place, minlength=keys.size * BINS)
        self._bins[keys] += counts.reshape(-1, BINS).astype(np.uint32)


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
        keep = all(run.format != capture.format for run in side.runs)
        has = {name for name, rows in capture.row_counts().items() if rows}
        calls = waits = None

        def signals(table: str, of: Callable[[Capture], Any]) -> Any:
            if table in has:
                return of(capture)
            return {} if table in capture.schemas else None

        if "slices" in capture.schemas:
            calls = _CallFigures(Figures.none(), (), Figures.none())
        if "slices" in has:
            calls = self._calls(capture, side, keep=keep)
            if "sched" in has:
                waits = waits_of(capture)
        side.add(
            Run(
                name=capture.name,
                format=capture.format,
                figures=None if calls is None else calls.figures,
                lengths=() if calls is None else calls.lengths,
                tree=None if calls is None else calls.tree,
                counters=signals("counters", counters_of),
                logs=signals("logs", templates_of),
                instants=signals("instants", instants_of),
                entries=entries_of(capture),
                waits=waits,
                timed=calls is None or calls.timed,
                several_threads=calls is not None and calls.several_threads,
            )
        )
        if not capture.schemas.keys() & {"slices", "counters", "logs", "properties"}:
            raise UsageError(
                f"{capture.format} captures have no slices, counters, logs or properties",
                path=capture.name,
                remedy="`fxf diff` compares captures of every format record by record",
            )

    def read_calls(self, capture: Capture, side: Side) -> None:
        """Add the calls of a capture alone to a side."""
        calls = self._calls(capture, side, keep=False)
        side.runs.append(
            Run(capture.name, capture.format, calls.figures, calls.lengths, calls.tree, None, None,
                None, None, None, calls.timed)
        )  # fmt: skip

    def _calls(self, capture: Capture, side: Side, *, keep: bool) -> _CallFigures:
        """Return what is compared of the calls of a capture."""
        special = self.by in {"name", "path", "process", "thread"}
        calls = Calls.of(capture, "name" if special else self.by, with_asynchronous=True)
        stacked = None if calls.marked is not None or not special else calls
        keyed = self.by == "path"
        if keyed and stacked is None:
            calls = stacked = Calls.of(capture, "name")
        tree = call_tree(
            capture, by="name", depth=DEEPEST, calls=stacked, with_nodes=keyed
        )  # fmt: skip
        numbers = self._path_numbers(tree)
        if keyed:
            group, keys = tree.nodes, numbers
        else:
            group, keys = self._groups(capture, calls)
        distinct, place = np.unique(keys, return_inverse=True)
        if distinct.size < keys.size or not np.array_equal(distinct, keys):
            group = place.reshape(-1).astype(np.int32)[group]
        found = spreads(
            np.ascontiguousarray(group, np.int32), distinct.size, calls.parent, calls.length,
            ordered=True,
        )  # fmt: skip
        rate = calls.per_second
        several_threads = bool((calls.thread != calls.thread[:1]).any())
        del calls, stacked, group
        figures, lengths = _figures(distinct, found, rate, side, keep=keep)
        branches = _branches(tree, numbers)
        return _CallFigures(figures, lengths, branches, rate > 0, several_threads)

    def _groups(self, capture: Capture, calls: Calls) -> tuple[NDArray[Any], I64]:
        """Return the group of each call, and the number of each group."""
        if self.by in {"process", "thread"}:
            labels = _labels(capture, self.by)
            ids, group = np.unique(calls.thread, return_inverse=True)
            numbers = [self.names.number(labels(one)) for one in ids.tolist()]
            return group.reshape(-1), np.array(numbers, np.int64)
        pool, codes = calls.functions.pool, calls.functions.codes.tolist()
        texts = [pool.bytes_of(code) if code >= 0 else NOBODY for code in codes]
        if calls.marked is None:
            return calls.function, np.array([self.names.number(text) for text in texts], np.int64)
        marked = calls.function.astype(np.int64) * 2 + calls.marked
        used, group = np.unique(marked, return_inverse=True)
        tops = (TOP, ASYNC_TOP)
        numbers = [self.names.number(texts[one >> 1], tops[one & 1]) for one in used.tolist()]
        return group.reshape(-1), np.array(numbers, np.int64)

    def _path_numbers(self, tree: CallTree) -> I64:
        """Return the number of each node of a tree; TOP for its root."""
        pool, codes = tree.functions.pool, tree.functions.codes.tolist()
        texts = [pool.bytes_of(code) if code >= 0 else NOBODY for code in codes]
        numbers = [TOP] * len(tree)
        number = self.paths.number
        for node, (parent, function) in enumerate(
            zip(tree.parent.tolist(), tree.function.tolist(), strict=True)
        ):
            if function >= 0:
                numbers[node] = number(texts[function], numbers[parent])
        return np.array(numbers, np.int64)


def _labels(capture: Capture, by: str) -> Callable[[int], bytes]:
    """Return a function from a thread's id to the name of its process or of itself."""
    threads, pool = Threads(capture.schemas, capture.table), capture.strings
    names, keys = threads.names, threads.tids
    if by == "process":
        names, keys = threads.process_names, threads.pids

    def label(number: int) -> bytes:
        row = threads.row(number)
        if row < 0:
            return NOBODY
        name = pool.bytes_of(int(names[row])) if names[row] >= 0 else b""
        return name or f"{by} {int(keys[row])}".encode()

    return label


def _figures(
    keys: I64, found: Any, rate: int, side: Side, *, keep: bool
) -> tuple[Figures, list[F64]]:
    """Return the figures of groups that have calls, and their lengths."""
    count = found.column("count")
    some = np.flatnonzero((count > 0) & (keys >= 0))
    count, starts = count[some], found.starts[some]
    scale = NS_PER_SECOND / rate if rate else 1.0
    lengths = found.lengths.astype(np.float64)
    if scale != 1.0:
        lengths *= scale
    mean = np.full(some.size, np.nan)
    noise = np.full(some.size, np.nan)
    kept = []
    group = np.full(lengths.size, -1, np.int64)
    for at, (start, size) in enumerate(zip(starts.tolist(), count.tolist(), strict=True)):
        mine = lengths[start : start + size]
        group[start : start + size] = at
        mean[at] = mine.mean()
        if size > 1 and mean[at] > 0:
            noise[at] = mine.var(ddof=1) / size / mean[at] ** 2
        if keep:
            kept.append(mine)
    inside = group >= 0
    whole = bool(inside.all())
    side.count(keys[some], group if whole else group[inside], lengths if whole else lengths[inside])
    return Figures(
        keys=keys[some],
        count=count,
        total=in_ns(found.column("sum")[some], rate),
        own=in_ns(found.column("own")[some], rate),
        mean=mean,
        **{name: found.column(name)[some] * scale for name in ("median", "p90", "p99")},
        noise=noise,
    ), kept


def _branches(tree: CallTree, numbers: I64) -> Figures:
    """Return counts and times by call path."""
    some = np.flatnonzero(numbers >= 0)
    none = np.zeros(0)
    count, total, own = (
        np.array(column[some], np.int64)
        for column in (tree.count, tree.in_ns(tree.total), tree.in_ns(tree.own))
    )
    return Figures(numbers[some], count, total, own, none, none, none, none, none)


def join_runs(sides: Sequence[Side]) -> list[str]:
    """Make one run of the captures of each run, on sides with captures of several formats.

    The first trace and the first log of a side are one run, the second ones another, and so on: a
    run that recorded several captures is one sample. A format that has fewer captures than others
    is left out, as nobody knows of which runs they are, and one that the other side lacks. Returns
    notes about them.
    """
    formats = [side.by_format() for side in sides]
    if all(len(found) == 1 for found in formats):
        return []
    counts = [max(map(len, found.values()), default=0) for found in formats]
    complete = [
        {name for name, runs in found.items() if len(runs) == most}
        for found, most in zip(formats, counts, strict=True)
    ]
    common = set.intersection(*complete)
    notes = []
    for side, found, own in zip(sides, formats, complete, strict=True):
        chosen = common or own
        parts = [runs for name, runs in found.items() if name in chosen]
        side.runs = [_joined(run) for run in zip(*parts, strict=True)]
        notes += [
            f"left out: {amount(len(runs), 'capture')} of format {name}: there is not one for "
            "each run of both sides"
            for name, runs in found.items()
            if name not in chosen
        ]
    return notes


def _joined(parts: Sequence[Run]) -> Run:
    """Return the captures of one run as one: what several have is that of the first."""
    folders = {posixpath.dirname(part.name) for part in parts}
    in_one_folder = len(folders) == 1 and "" not in folders
    figures = [(part.figures, part.lengths) for part in parts if part.figures is not None]
    trees = [(part.tree, ()) for part in parts if part.tree is not None]
    joined_figures, lengths = _joined_figures(figures)
    return Run(
        name=folders.pop() if in_one_folder else parts[0].name,
        format=", ".join(sorted(part.format for part in parts)),
        figures=joined_figures,
        lengths=lengths,
        tree=_joined_figures(trees)[0],
        counters=_merged([part.counters for part in parts]),
        logs=_merged([part.logs for part in parts]),
        instants=_merged([part.instants for part in parts]),
        entries=_merged([part.entries for part in parts]),
        waits=next((part.waits for part in parts if part.waits is not None), None),
        timed=all(part.timed for part in parts if part.figures is not None),
        several_threads=any(part.several_threads for part in parts) or len(trees) > 1,
    )


def _joined_figures(
    several: Sequence[tuple[Figures, Sequence[F64]]],
) -> tuple[Figures | None, Sequence[F64]]:
    """Return figures, and the lengths kept with them, as those of one run; None if there are none.

    Keys stay distinct: calls that two captures recorded under one name are those of the first.
    """
    if not several:
        return None, ()
    seen: set[int] = set()
    columns: dict[str, list[NDArray[Any]]] = {field.name: [] for field in attrs.fields(Figures)}
    kept: list[F64] = []
    for figures, lengths in several:
        keys = figures.keys.tolist()
        fresh = np.array([key not in seen for key in keys], np.bool_)
        seen.update(keys)
        for name, parts in columns.items():
            column = getattr(figures, name)
            parts.append(column[fresh] if column.size else column)  # a tree's figures lack some
        kept += [mine for mine, is_fresh in zip(lengths, fresh, strict=False) if is_fresh]
    return Figures(**{name: np.concatenate(parts) for name, parts in columns.items()}), kept


def _merged(several: Sequence[Mapping[Any, Any] | None]) -> dict[Any, Any] | None:
    """Return mappings as one, the first ones first; None if there are none."""
    known = [each for each in several if each is not None]
    found: dict[Any, Any] = {}
    for mapping in known:
        for key, value in mapping.items():
            found.setdefault(key, value)
    return found if known else None
