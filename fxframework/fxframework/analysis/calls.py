"""Calls: the slices of a capture as calls of functions, with callers and lengths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis import kernels
from fxframework.analysis.lazy import LazySequence
from fxframework.errors import UsageError, did_you_mean
from fxframework.io import arena
from fxframework.io.spill import Spill
from fxframework.kernels.buffers import view
from fxframework.model.capture import Capture, View
from fxframework.model.clock import NS_MAX, NS_PER_SECOND
from fxframework.model.schema import ASYNC, Column
from fxframework.model.strings import StringPool
from fxframework.model.table import Table
from fxframework.model.threads import Threads

__all__ = [
    "UNMATCHED_EXIT",
    "CallBatches",
    "Calls",
    "Function",
    "Functions",
    "ThreadNames",
    "dense",
    "found_in",
    "functions_of",
    "in_ns",
    "measured",
    "numbered",
]

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
UNMATCHED_EXIT = "unmatched_exit"
"""Category of instants that mark the end of a call whose beginning is missing."""
NAMELESS = "(no name)"
NO_THREAD = "no thread"
ROOMY = 1 << 16
"""Numbers are looked up in a table if their range is no longer than this, or than four times
their count."""


@attrs.frozen
class Function:
    """A called function, or any other value that calls are grouped by."""

    name: str
    id: int | None = None
    source: str | None = None
    """Place of its declaration; None if unknown."""


class Functions(LazySequence[Function]):
    """A sequence of n functions, stored as columns of shape (n,)."""

    def __init__(
        self, pool: StringPool, codes: I32, ids: I64 | None = None, sources: I32 | None = None
    ) -> None:
        self.pool = pool
        self.codes = codes
        """Codes of the names in the pool."""
        self.ids = ids
        """Ids, -1 for a function without one; None if no function has one."""
        self.sources = sources
        """Codes of the places of declaration, -1 if unknown; None if all are unknown."""
        # A bound method would create a reference cycle.
        super().__init__(codes.size, partial(_function, pool, codes, ids, sources))

    def name(self, place: int) -> str:
        """Return the name of the function at an index."""
        return self.pool[int(self.codes[place])]


def _function(
    pool: StringPool, codes: I32, ids: I64 | None, sources: I32 | None, place: int
) -> Function:
    number = -1 if ids is None else int(ids[place])
    source = -1 if sources is None else int(sources[place])
    return Function(
        pool[codes[place]],
        None if number < 0 else number,
        (pool[source] or None) if source >= 0 else None,
    )


@attrs.frozen(eq=False)
class Calls:
    """The calls of a capture, as columns of one length, in the order of its slices.

    Asynchronous slices belong to no stack: they are counted, and left out or marked.
    """

    functions: Functions
    function: I32
    """Index of the called function in ``functions``."""
    parent: I64
    """Index of the enclosing call in these columns; -1 if there is none."""
    length: I64
    """Length of the call, -1 if it never ended; limited so that the sum of all lengths fits."""
    thread: I32
    """Id in `threads`."""
    per_second: int
    """Units of length per second; 0 if unknown."""
    asynchronous: int = 0
    """Number of asynchronous slices."""
    marked: NDArray[np.bool_] | None = None
    """Marks the asynchronous slices; None if there are none in these columns."""

    @classmethod
    def of(cls, capture: Capture, by: str = "", *, with_asynchronous: bool = False) -> Calls:
        """Return the calls of a capture, or of a part of one, grouped by the column ``by``.

        ``by`` is ``id`` (the id of the function), ``name``, ``category`` or another column of
        `slices` with integers or strings; by default the id if the capture has ids, else the name.
        Lengths are in ticks if the capture has ticks, else in nanoseconds.
        The caller of a call is the nearest enclosing call that belongs to the part; that of an
        asynchronous slice is an asynchronous slice of the same operation.

        Raises UsageError if there are no slices or no such column.
        """
        column, length_name, per_second = measured(capture, by)
        columns = _columns(capture, {column.name, length_name, "parent", "thread", "kind"})
        marked = columns["kind"] == ASYNC
        asynchronous = int(np.count_nonzero(marked))
        omitted = 0 if with_asynchronous else asynchronous
        if omitted or isinstance(capture, View):
            columns |= _columns(capture, {"row"})
        if omitted:
            columns = {name: values[~marked] for name, values in columns.items()}
        parent = columns["parent"]
        if "row" in columns:
            parent = _places(capture, columns["row"], parent, dropped=omitted > 0)
        function, distinct = dense(columns[column.name])
        length = columns[length_name]
        longest = NS_MAX // max(length.size, 1)
        if length.size and int(length.max()) > longest:
            length = np.minimum(length, longest)
        return cls(
            functions=functions_of(capture, column, distinct),
            function=np.ascontiguousarray(function, np.int32),
            parent=np.ascontiguousarray(parent, np.int64),
            length=np.ascontiguousarray(length, np.int64),
            thread=np.ascontiguousarray(columns["thread"], np.int32),
            per_second=per_second,
            asynchronous=asynchronous,
            marked=marked if asynchronous > omitted else None,
        )

    def __len__(self) -> int:
        return int(self.function.size)

    def recursion(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Return two masks of calls that take part in a recursion, uint8 of shape (n,).

        The first marks calls within another call of the same function, the second these and the
        outermost calls around them.
        """
        rows = len(self)
        first, beside = (np.full(rows, -1, np.int64) for _ in range(2))
        kernels.link_children(self.parent.data, first.data, beside.data)
        inner, recursive = (np.zeros(rows, np.uint8) for _ in range(2))
        active = np.full(len(self.functions), -1, np.int64)
        columns = (self.function, self.parent, first, beside, active, inner, recursive)
        kernels.find_recursion(*(column.data for column in columns))
        return inner, recursive


class CallBatch(NamedTuple):
    """Consecutive calls: the columns of ``Calls`` from the call at index ``first`` on."""

    first: int
    function: I32
    parent: I64
    length: I64
    thread: I32


class CallBatches:
    """The calls of a capture in parts, for captures that do not fit into memory.

    Together the parts are what ``Calls.of`` returns. The caller of a call is in the same part or in
    an earlier one. A ``View``, or a capture that fits into memory, is one part. If calls come long
    before their callers, a part is kept in temporary files; ``release`` drops it from memory.
    """

    def __init__(self, capture: Capture, by: str = "", calls: Calls | None = None) -> None:
        self._capture = capture
        self._whole: Calls | None = None
        self._held: list[Spill] = []
        if calls is not None or isinstance(capture, View) or capture.fits_memory:
            self._whole = calls = calls or Calls.of(capture, by)
            self.functions = calls.functions
            self.threads: NDArray[Any] = dense(calls.thread)[1]
            """Ids of the threads that have calls, ascending."""
            self.per_second = calls.per_second
            self.asynchronous = calls.asynchronous
            return
        self._column, self._length, self.per_second = measured(capture, by)
        self._count = 0
        keys, threads_of = _Distinct(), _Distinct()
        left: list[tuple[I64, I64]] = []
        for batch in capture.batches("slices"):
            chosen = batch.array("kind") != ASYNC
            values, threads = self._keys(batch), batch.array("thread")
            if not chosen.all():
                rows = np.flatnonzero(~chosen)
                left.append((rows + self._count, batch.array("parent")[rows]))
                values, threads = values[chosen], threads[chosen]
            keys.add(dense(values)[1].astype(values.dtype))
            threads_of.add(dense(threads)[1])
            self._count += chosen.size
        self._distinct, self.threads = keys.all(), threads_of.all()
        self._left = _Omitted(left)
        self.asynchronous = len(self._left)
        self.functions = functions_of(capture, self._column, self._distinct)

    def _keys(self, batch: Table) -> NDArray[Any]:
        """Return the column that calls are grouped by; booleans become 0 and 1."""
        values = batch.array(self._column.name)
        return values.view(np.uint8) if values.dtype.kind == "b" else values

    def parts(self) -> Iterator[CallBatch]:
        """Yield the calls, part by part."""
        calls = self._whole
        if calls is not None:
            yield CallBatch(0, calls.function, calls.parent, calls.length, calls.thread)
            return
        count = self._count - self.asynchronous
        first = stop = 0
        latest = -1
        for batch in self._capture.batches("slices"):
            columns = self._calls(batch, NS_MAX // max(count, 1))
            begin, stop = stop, stop + columns[0].size
            parent = columns[1]
            latest = max(latest, int(parent[parent < count].max(initial=-1)))
            if first < begin or latest >= stop:
                self._hold(columns, begin - first)
                columns = tuple(column.array[: stop - first] for column in self._held)
            if latest < stop:
                yield CallBatch(first, *columns)
                self._held.clear()
                first = stop

    def _calls(self, batch: Table, longest: int) -> tuple[NDArray[Any], ...]:
        """Return the columns of ``CallBatch`` for the calls of a batch."""
        chosen = batch.array("kind") != ASYNC
        columns = [self._keys(batch), *map(batch.array, ("parent", self._length, "thread"))]
        if not chosen.all():
            columns = [column[chosen] for column in columns]
        key, parent, length, thread = columns
        return (
            np.searchsorted(self._distinct, key).astype(np.int32),
            np.ascontiguousarray(self._left.places(parent), np.int64),
            np.minimum(length.astype(np.int64, copy=False), longest),
            np.ascontiguousarray(thread, np.int32),
        )

    def _hold(self, columns: tuple[NDArray[Any], ...], at: int) -> None:
        """Keep calls whose callers come later, from index ``at`` of the part on."""
        if not at:
            self._held = [Spill(column.dtype) for column in columns]
        for held, column in zip(self._held, columns, strict=True):
            held.grow(at + column.size)[at : at + column.size] = column
        self.release()

    def release(self) -> None:
        """Drop the current part from memory if it is in temporary files."""
        for column in self._held:
            column.release()


class _Distinct:
    """Distinct numbers of many batches: sorted arrays, each at least twice as long as the next."""

    def __init__(self) -> None:
        self._sorted: list[NDArray[Any]] = []

    def add(self, values: NDArray[Any]) -> None:
        """Add ascending numbers, which are merged with arrays that are not much longer."""
        while self._sorted and self._sorted[-1].size < 2 * values.size:
            values = self._merged(self._sorted.pop(), values)
        self._sorted.append(values)

    def all(self) -> NDArray[Any]:
        """Return all numbers, ascending."""
        values = np.zeros(0, np.int64)
        if self._sorted:
            values = self._sorted.pop()
            while self._sorted:
                values = self._merged(self._sorted.pop(), values)
        return values

    @staticmethod
    def _merged(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        both = np.concatenate((left, right))
        both.sort(kind="stable")  # which merges what is sorted
        new = np.ones(both.size, np.bool_)
        np.not_equal(both[1:], both[:-1], out=new[1:])
        return both[new]


class _Omitted:
    """Omitted rows, given in ascending pieces, and the rows of their callers."""

    def __init__(self, pieces: list[tuple[I64, I64]]) -> None:
        self._rows, self._parents = (
            np.concatenate([np.zeros(0, np.int64), *(piece[which] for piece in pieces)])
            for which in (0, 1)
        )

    def __len__(self) -> int:
        return int(self._rows.size)

    def places(self, parent: I64) -> I64:
        """Return the indices of callers, given by row, among the remaining rows; -1 for none."""
        if not len(self):
            return parent
        found = parent.copy()
        for _ in range(len(self) + 1):
            place = np.searchsorted(self._rows, found)
            there = self._rows[np.minimum(place, len(self) - 1)] == found
            if not there.any():
                break
            found[there] = self._parents[place[there]]
        return np.where(found < 0, -1, found - place)


def dense(values: NDArray[Any]) -> tuple[I32, NDArray[Any]]:
    """Return the index of each value among the distinct values, and these, ascending."""
    if not values.size:
        return np.zeros(0, np.int32), np.zeros(0, values.dtype)
    if values.dtype.kind == "b":
        values = values.view(np.uint8)
    low, high = int(values.min()), int(values.max())
    if high - low > max(ROOMY, 4 * values.size) or high > NS_MAX:
        distinct, places = np.unique(values, return_inverse=True)
        return places.reshape(-1).astype(np.int32), distinct
    numbers = view(values.view(np.int64) if values.dtype == np.uint64 else values, np.int64)
    seen = np.zeros(high - low + 1, np.uint8)
    kernels.mark_numbers(numbers, low, seen.data)
    offsets = np.flatnonzero(seen)
    table = np.zeros(seen.size, np.int32)
    table[offsets] = np.arange(offsets.size, dtype=np.int32)
    out = arena.empty(values.size, np.int32)
    kernels.look_up(numbers, low, table.data, out.data)
    return out, offsets + low


def in_ns(times: I64, per_second: int) -> I64:
    """Convert times to nanoseconds, rounded down; unchanged if the rate is unknown (0).

    Times beyond int64 become its greatest value.
    """
    if per_second in {0, NS_PER_SECOND}:
        return times
    if per_second <= NS_MAX // NS_PER_SECOND:
        whole, part = np.divmod(times, per_second)
        if int(whole.max(initial=0)) < NS_MAX // NS_PER_SECOND:
            ns: I64 = whole * NS_PER_SECOND + part * NS_PER_SECOND // per_second
            return ns
    exact = (min(time * NS_PER_SECOND // per_second, NS_MAX) for time in map(int, times))
    return np.fromiter(exact, np.int64, times.size)


class ThreadNames(Mapping[int, str]):
    """Labels of threads by id: name and koid, with that of the process if there are several."""

    def __init__(self, capture: Capture) -> None:
        self._threads = threads = Threads(capture.schemas, capture.table)
        self._several = bool((threads.pids[1:] != threads.pids[:1]).any())
        self._texts = capture.strings

    def __getitem__(self, number: int) -> str:
        threads, row = self._threads, self._threads.row(number)
        if row < 0:
            if number == -1:
                return NO_THREAD
            raise KeyError(number)
        pid, tid, code = (int(a[row]) for a in (threads.pids, threads.tids, threads.names))
        koids = f"{pid}/{tid}" if self._several else f"{tid}"
        name = self._texts.text(code)
        return f"{name} ({koids})" if name else f"thread_{koids}"

    def __iter__(self) -> Iterator[int]:
        return iter(self._threads.ids.tolist())

    def __len__(self) -> int:
        return int(self._threads.ids.size)


# --- Columns -----------------------------------------------------------------------------------


def measured(capture: Capture, by: str) -> tuple[Column, str, int]:
    """Return the column to group by, the name of the length column, and its units per second."""
    if "slices" not in capture.schemas:
        raise UsageError(
            f"{capture.format} captures have no slices",
            path=capture.name,
            remedy=f"it has {', '.join(capture.tables)}",
        )
    own, rate = capture.calls, capture.ticks_per_second
    column = _key_column(capture, by)
    if own is None or rate is None:
        return column, "dur", NS_PER_SECOND
    return column, own.ticks, rate


def _key_column(capture: Capture, by: str) -> Column:
    """Return the column that calls are grouped by."""
    own = capture.calls
    if by == "id" and own is None:
        raise UsageError(
            f"the slices of {capture.format} captures are not calls of numbered functions",
            path=capture.name,
            remedy="tell them apart by name",
        )
    name = own.function if own is not None and by in {"", "id"} else by or "name"
    schema = capture.schemas["slices"]
    fit = {column.name: column for column in schema.all_columns if _groups_calls(column)}
    if name not in fit:
        raise UsageError(
            f"slices cannot be grouped by {name!r}{did_you_mean(name, fit)}",
            path=capture.name,
            remedy=f"there are {', '.join(fit)}",
        )
    return fit[name]


def _groups_calls(column: Column) -> bool:
    return column.kind == "code" or column.kind[0] in "iu?"


def _columns(capture: Capture, names: set[str]) -> dict[str, NDArray[Any]]:
    """Return columns of `slices`, read in batches if the table does not fit into memory."""
    if capture.fits_memory:
        table = capture.table("slices")
        return {name: table.array(name) for name in names}
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
    for batch in capture.batches("slices", rows=1 << 20):
        for name, some in parts.items():
            some.append(np.array(batch.array(name)))
    return {
        name: np.concatenate(some) if some else np.zeros(0, np.int64)
        for name, some in parts.items()
    }


def _places(capture: Capture, rows: I64, parent: I64, *, dropped: bool) -> I64:
    """Return the index of each call's nearest enclosing call among ``rows``; -1 for none."""
    count = rows.size
    if not count or (not dropped and rows[0] == 0 and rows[-1] == count - 1):
        return parent
    whole = capture
    while isinstance(whole, View):
        whole = whole.whole
    above = np.array(_columns(whole, {"parent"})["parent"], np.int64)
    place = np.full(max(above.size, int(rows.max()) + 1), -1, np.int64)
    place[rows] = np.arange(count)
    out = np.empty(count, np.int64)
    kernels.nearest_chosen(
        view(rows, np.int64), view(above, np.int64), place.data, above.copy().data, out.data
    )
    return out


# --- Names -------------------------------------------------------------------------------------


def functions_of(capture: Capture, column: Column, distinct: NDArray[Any]) -> Functions:
    """Return the functions that the distinct values of a column stand for."""
    own, pool = capture.calls, capture.strings
    if own is not None and column.name == own.function:
        return numbered(capture.table(own.functions), distinct.astype(np.int64))
    if column.kind == "code":
        codes = distinct.astype(np.int32)
        if (codes < 0).any():
            codes[codes < 0] = pool.intern(NAMELESS.encode())
        return Functions(pool, codes)
    names: Mapping[int, str] = ThreadNames(capture) if column.name == "thread" else column.values
    texts = (names.get(each) or str(each) for each in distinct.tolist())
    named = (pool.intern(text.encode("utf-8", "replace")) for text in texts)
    return Functions(pool, np.fromiter(named, np.int32, distinct.size))


def numbered(table: Table, numbers: I64) -> Functions:
    """Return the functions with these ids; a function without a name is called by its id."""
    ids = table.array("id").astype(np.int64)
    name, source = table.array("name"), table.array("source")
    if not np.array_equal(ids, numbers):
        order, at, there = found_in(ids, numbers)
        rows = order[at]
        name, source = (
            np.where(there, codes[rows] if ids.size else -1, -1) for codes in (name, source)
        )
    unnamed = name <= 0  # none, or the empty string
    if unnamed.any():
        name = name.copy()
        name[unnamed] = table.pool.intern_numbers(numbers[unnamed])
    codes = (column.astype(np.int32, copy=False) for column in (name, source))
    return Functions(table.pool, next(codes), numbers, next(codes))


def found_in(values: NDArray[Any], wanted: NDArray[Any]) -> tuple[I64, I64, NDArray[np.bool_]]:
    """Find the first occurrence of each wanted number.

    Return a stable order of ``values``, the place of each wanted number in that order (int64 of the
    """
    order = np.argsort(values, kind="stable")
    if not values.size:
        nowhere = np.zeros(wanted.size, np.int64)
        return order, nowhere, np.zeros(wanted.size, np.bool_)
    at = np.minimum(np.searchsorted(values, wanted, sorter=order), values.size - 1)
    return order, at, values[order[at]] == wanted
