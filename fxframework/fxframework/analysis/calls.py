"""Calls: the slices of a capture as calls of functions, with callers and lengths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.lazy import LazySequence
from fxframework.errors import UsageError, did_you_mean
from fxframework.io.spill import Spill
from fxframework.kernels.arrays import I32, I64
from fxframework.kernels.calls import toured
from fxframework.kernels.sorting import begins_of_runs, dense, outermost, stable_order
from fxframework.model.capture import Capture, is_part, under_views
from fxframework.model.clock import NS_MAX, NS_PER_SECOND
from fxframework.model.rows import check_slices
from fxframework.model.schema import ASYNC, Column
from fxframework.model.strings import StringPool
from fxframework.model.table import Table
from fxframework.model.tasks import tasks

UNMATCHED_EXIT = "unmatched_exit"
"""Category of instants that mark the end of a call whose beginning is missing."""
NAMELESS = "(no name)"
NO_THREAD = "no thread"


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

    def name(self, index: int) -> str:
        """Return the name of the function at an index."""
        return self.pool[int(self.codes[index])]


def _function(
    pool: StringPool, codes: I32, ids: I64 | None, sources: I32 | None, index: int
) -> Function:
    function_id: int | None = None
    if ids is not None and ids[index] >= 0:
        function_id = int(ids[index])
    source: str | None = None
    if sources is not None and sources[index] >= 0:
        source = pool[int(sources[index])] or None
    return Function(pool[codes[index]], function_id, source)


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
    stands_for: I64 | None = None
    """How many calls each of them stands for, whose lengths are added up; None if each is one."""

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
        wanted = {column.name, length_name, "parent", "thread", "kind"}
        counted = ""
        if capture.calls is not None and capture.calls.count:
            counted = capture.calls.count
            wanted.add(counted)
        columns = _columns(capture, wanted)
        is_asynchronous = columns["kind"] == ASYNC
        asynchronous = int(np.count_nonzero(is_asynchronous))
        leaves_out = asynchronous > 0 and not with_asynchronous
        # Callers are known by row; the index of a row is another one in a part of a capture, and
        # where rows were left out.
        if leaves_out or is_part(capture):
            columns |= _columns(capture, {"row"})
        if leaves_out:
            columns = {name: values[~is_asynchronous] for name, values in columns.items()}
        parent = columns["parent"]
        if "row" in columns:
            parent = _indexes_of_callers(capture, columns["row"], parent, left_out=leaves_out)
        function, distinct = dense(columns[column.name])
        functions = functions_of(capture, column, distinct)
        marked = is_asynchronous if asynchronous and not leaves_out else None
        length = columns[length_name]
        longest = NS_MAX // max(length.size, 1)
        if length.size and int(length.max()) > longest:
            length = np.minimum(length, longest)
        return cls(
            functions=functions,
            function=np.ascontiguousarray(function, np.int32),
            parent=np.ascontiguousarray(parent, np.int64),
            length=np.ascontiguousarray(length, np.int64),
            thread=np.ascontiguousarray(columns["thread"], np.int32),
            per_second=per_second,
            asynchronous=asynchronous,
            marked=marked,
            stands_for=columns[counted] if counted else None,
        )

    def __len__(self) -> int:
        return int(self.function.size)

    def recursion(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Return two masks of calls that take part in a recursion, uint8 of shape (n,).

        The first marks calls within another call of the same function, the second these and the
        outermost calls around them.
        """
        places, ends, _ = toured(self.parent)
        met = np.flatnonzero(places >= 0)
        tour = np.empty_like(met)
        tour[places[met]] = met
        order = stable_order(self.function[tour])
        rows = tour if order is None else tour[order]
        # Of one function, a call within another follows it, and begins before the other ends.
        base = self.function[rows].astype(np.int64) * (len(self) + 1)
        latest_end = np.maximum.accumulate(base + ends[rows])
        is_within = base[1:] + places[rows[1:]] < latest_end[:-1]
        inner, recursive = np.zeros((2, len(self)), np.uint8)
        inner[rows[1:]] = is_within
        recursive[rows[:-1]] = is_within
        return inner, inner | recursive


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
    an earlier one. A part, or a capture that fits into memory, is one part. If calls come long
    before their callers, a part is kept in temporary files; ``release`` drops it from memory.
    """

    def __init__(self, capture: Capture, by: str = "", calls: Calls | None = None) -> None:
        self._capture = capture
        self.stands_for: I64 | None = None
        """How many calls each stands for (``Calls.stands_for``), if they are one part."""
        self._spilled: list[Spill] = []
        """Columns of the current part, while it waits for callers that come later."""
        self._whole: Calls | None = None
        """All calls, if they are one part; then the private attributes below do not exist."""
        if calls is not None or is_part(capture) or capture.fits_memory:
            self._whole = calls or Calls.of(capture, by)
            self.functions = self._whole.functions
            self.threads: NDArray[Any] = dense(self._whole.thread)[1]
            """Ids of the threads that have calls, ascending."""
            self.stands_for = self._whole.stands_for
            self.per_second = self._whole.per_second
            self.asynchronous = self._whole.asynchronous
            return
        self._column, self._length_name, self.per_second = measured(capture, by)
        self._row_count = 0
        distinct_keys = _Distinct()
        distinct_threads = _Distinct()
        omitted: list[tuple[I64, I64]] = []
        for batch in capture.batches("slices"):
            is_call = batch.array("kind") != ASYNC
            keys = self._keys(batch)
            threads = batch.array("thread")
            if not is_call.all():
                left_out = np.flatnonzero(~is_call)
                parents = batch.array("parent")[left_out]
                omitted.append((left_out + self._row_count, parents))
                keys = keys[is_call]
                threads = threads[is_call]
            distinct_keys.add(dense(keys)[1].astype(keys.dtype))
            distinct_threads.add(dense(threads)[1])
            self._row_count += is_call.size
        self._distinct_keys = distinct_keys.all()
        self.threads = distinct_threads.all()
        self._omitted = _Omitted(omitted)
        self.asynchronous = len(self._omitted)
        self.functions = functions_of(capture, self._column, self._distinct_keys)

    def _keys(self, batch: Table) -> NDArray[Any]:
        """Return the column that calls are grouped by; booleans become 0 and 1."""
        values = batch.array(self._column.name)
        return values.view(np.uint8) if values.dtype.kind == "b" else values

    def parts(self) -> Iterator[CallBatch]:
        """Yield the calls, part by part."""
        whole = self._whole
        if whole is not None:
            yield CallBatch(0, whole.function, whole.parent, whole.length, whole.thread)
            return
        call_count = self._row_count - self.asynchronous
        longest = NS_MAX // max(call_count, 1)  # so that the sum of all lengths fits
        part_start = 0
        stop = 0
        last_caller = -1
        for batch in self._capture.batches("slices"):
            columns = self._calls(batch, longest)
            _, parent, _, _ = columns
            batch_start = stop
            stop += parent.size
            # An invalid caller, beyond all calls, is none: nothing waits for it.
            valid_parents = parent[parent < call_count]
            last_caller = max(last_caller, int(valid_parents.max(initial=-1)))
            is_complete = last_caller < stop
            if part_start < batch_start or not is_complete:
                self._spill(columns, batch_start - part_start)
                columns = tuple(spill.array[: stop - part_start] for spill in self._spilled)
            if is_complete:
                yield CallBatch(part_start, *columns)
                self._spilled.clear()
                part_start = stop

    def _calls(self, batch: Table, longest: int) -> tuple[NDArray[Any], ...]:
        """Return the columns of ``CallBatch`` for the calls of a batch."""
        columns = [
            self._keys(batch),
            batch.array("parent"),
            batch.array(self._length_name),
            batch.array("thread"),
        ]
        is_call = batch.array("kind") != ASYNC
        if not is_call.all():
            columns = [column[is_call] for column in columns]
        key, parent, length, thread = columns
        function = np.searchsorted(self._distinct_keys, key).astype(np.int32)
        parent = np.ascontiguousarray(self._omitted.indexes_of_callers(parent), np.int64)
        length = np.minimum(length.astype(np.int64, copy=False), longest)
        return function, parent, length, np.ascontiguousarray(thread, np.int32)

    def _spill(self, columns: tuple[NDArray[Any], ...], offset: int) -> None:
        """Write calls whose callers come later to files, from an index of the part on."""
        if offset == 0:
            self._spilled = [Spill(column.dtype) for column in columns]
        for spill, column in zip(self._spilled, columns, strict=True):
            stop = offset + column.size
            spill.grow(stop)[offset:stop] = column
        self.release()

    def release(self) -> None:
        """Drop the current part from memory if it is in temporary files."""
        for spill in self._spilled:
            spill.release()


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
        values = np.concatenate((left, right))
        values.sort(kind="stable")  # which merges what is sorted
        return values[begins_of_runs(values)]


class _Omitted:
    """Omitted rows, passed in ascending pieces, and the rows of their callers."""

    def __init__(self, pieces: list[tuple[I64, I64]]) -> None:
        no_rows = np.zeros(0, np.int64)
        self._rows = np.concatenate([no_rows, *(rows for rows, _ in pieces)])
        self._parents = np.concatenate([no_rows, *(parents for _, parents in pieces)])

    def __len__(self) -> int:
        return int(self._rows.size)

    def indexes_of_callers(self, parent: I64) -> I64:
        """Return the indices of callers, passed by row, among the remaining rows; -1 for none."""
        if not len(self):
            return parent
        callers = parent.copy()
        # While a caller is omitted, its own caller is taken. A chain has at most all omitted rows;
        # the limit ends one that goes in a circle.
        for _ in range(len(self) + 1):
            omitted_before = np.searchsorted(self._rows, callers)
            candidates = self._rows[np.minimum(omitted_before, len(self) - 1)]
            is_omitted = candidates == callers
            if not is_omitted.any():
                break
            callers[is_omitted] = self._parents[omitted_before[is_omitted]]
        return np.where(callers < 0, -1, callers - omitted_before)


def in_ns(times: I64, per_second: int) -> I64:
    """Convert times to nanoseconds, rounded down; unchanged if the rate is unknown (0).

    Times beyond int64 become its greatest value.
    """
    if per_second in {0, NS_PER_SECOND}:
        return times
    if per_second <= NS_MAX // NS_PER_SECOND:
        # The product of time and NS_PER_SECOND may not fit; seconds and the rest of each do.
        seconds, rest = np.divmod(times, per_second)
        if int(seconds.max(initial=0)) < NS_MAX // NS_PER_SECOND:
            ns_of_rest = rest * NS_PER_SECOND // per_second
            ns: I64 = seconds * NS_PER_SECOND + ns_of_rest
            return ns
    exact_ns = (time * NS_PER_SECOND // per_second for time in map(int, times))
    ns_of_int64 = (min(time_ns, NS_MAX) for time_ns in exact_ns)
    return np.fromiter(ns_of_int64, np.int64, times.size)


def thread_names(capture: Capture) -> dict[int, str]:
    """Return labels of threads by id: name and koid, with that of the process if there are several.

    The id -1 is that of rows without a thread.
    """
    threads = tasks(capture)
    has_several_processes = len({task.pid for task in threads.values()}) > 1
    names = {-1: NO_THREAD}
    for id, task in threads.items():
        koid = f"{task.pid}/{task.tid}" if has_several_processes else str(task.tid)
        names[id] = f"{task.thread} ({koid})" if task.thread else f"thread_{koid}"
    return names


# --- Columns -----------------------------------------------------------------------------------


def measured(capture: Capture, by: str) -> tuple[Column, str, int]:
    """Return the column to group by, the name of the length column, and its units per second."""
    check_slices(capture)
    column = _key_column(capture, by)
    if capture.calls is None or capture.ticks_per_second is None:
        return column, "dur", NS_PER_SECOND
    return column, capture.calls.ticks, capture.ticks_per_second


def _key_column(capture: Capture, by: str) -> Column:
    """Return the column that calls are grouped by."""
    numbered_calls = capture.calls
    if by == "id" and numbered_calls is None:
        raise UsageError(
            f"the slices of {capture.format} captures are not calls of numbered functions",
            path=capture.name,
            remedy="tell them apart by name",
        )
    name = by or "name"
    if numbered_calls is not None and by in {"", "id"}:
        name = numbered_calls.function
    schema = capture.schemas["slices"]
    suitable = {column.name: column for column in schema.all_columns if _groups_calls(column)}
    if name not in suitable:
        raise UsageError(
            f"slices cannot be grouped by {name!r}{did_you_mean(name, suitable)}",
            path=capture.name,
            remedy=f"there are {', '.join(suitable)}",
        )
    return suitable[name]


def _groups_calls(column: Column) -> bool:
    return column.kind == "code" or column.kind[0] in "iu?"


def _columns(capture: Capture, names: set[str]) -> dict[str, NDArray[Any]]:
    """Return columns of `slices`, read in batches if the table does not fit into memory."""
    if capture.fits_memory:
        table = capture.table("slices")
        return {name: table.array(name) for name in names}
    pieces: dict[str, list[NDArray[Any]]] = defaultdict(list)
    for batch in capture.batches("slices", rows=1 << 20):
        for name in names:
            pieces[name].append(np.array(batch.array(name)))
    no_rows = [np.zeros(0, np.int64)]
    return {name: np.concatenate(pieces[name] or no_rows) for name in names}


def _indexes_of_callers(capture: Capture, rows: I64, parent: I64, *, left_out: bool) -> I64:
    """Return the index of each call's nearest enclosing call among ``rows``; -1 for none.

    ``left_out``: whether rows between the first and the last may lack.
    """
    count = rows.size
    if not count:
        return parent
    has_all_rows = rows[0] == 0 and rows[-1] == count - 1
    if has_all_rows and not left_out:
        return parent  # rows are indices
    columns = _columns(under_views(capture), {"parent"})
    parent_of_row = np.asarray(columns["parent"], np.int64)
    row_count = max(parent_of_row.size, int(rows.max()) + 1)
    index_of_row = np.full(row_count, -1, np.int64)
    index_of_row[rows] = np.arange(count)
    return nearest_chosen(rows, parent_of_row, index_of_row)


def nearest_chosen(rows: I64, parent: I64, place: I64) -> I64:
    """Return the place of the nearest chosen row that encloses each chosen one; -1 for none.

    ``place`` has the place of each row of the whole among those chosen, -1 where it is not. A
    parent outside of the rows means that there is none.
    """
    nowhere = parent.size
    place = np.append(place[:nowhere], -1)
    nearest = np.append(np.where((parent >= 0) & (parent < nowhere), parent, nowhere), nowhere)
    enclosing = nearest[rows]
    chosen = np.flatnonzero(place >= 0)
    nearest[chosen] = chosen  # where the way from parent to parent ends
    found = place[outermost(nearest)[enclosing]]
    return np.where(found == np.arange(rows.size), -1, found)


# --- Names -------------------------------------------------------------------------------------


def functions_of(capture: Capture, column: Column, distinct: NDArray[Any]) -> Functions:
    """Return the functions that the distinct values of a column stand for."""
    pool = capture.strings
    if capture.calls is not None and column.name == capture.calls.function:
        return numbered(capture.table(capture.calls.functions), distinct.astype(np.int64))
    if column.kind == "code":
        codes = distinct.astype(np.int32)
        if (codes < 0).any():
            codes[codes < 0] = pool.intern(NAMELESS.encode())
        return Functions(pool, codes)
    names: Mapping[int, str] = column.values
    if column.name == "thread":
        names = thread_names(capture)
    codes = np.empty(distinct.size, np.int32)
    for index, value in enumerate(distinct.tolist()):
        text = names.get(value) or str(value)
        codes[index] = pool.intern(text.encode("utf-8", "replace"))
    return Functions(pool, codes)


def numbered(table: Table, numbers: I64) -> Functions:
    """Return the functions with these ids; a function without a name is called by its id."""
    ids = table.array("id").astype(np.int64)
    name_codes = table.array("name")
    source_codes = table.array("source")
    if not np.array_equal(ids, numbers):
        rows, is_present = rows_of(ids, numbers)
        name_codes = _codes_at(name_codes, rows, is_present)
        source_codes = _codes_at(source_codes, rows, is_present)
    is_unnamed = name_codes <= 0  # none, or the empty string
    if is_unnamed.any():
        name_codes = name_codes.copy()
        name_codes[is_unnamed] = table.pool.intern_numbers(numbers[is_unnamed])
    return Functions(
        table.pool,
        name_codes.astype(np.int32, copy=False),
        numbers,
        source_codes.astype(np.int32, copy=False),
    )


def _codes_at(codes: NDArray[Any], rows: I64, is_present: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the codes of some rows; -1 where there is no row."""
    codes_at = np.full(rows.size, -1, codes.dtype)
    codes_at[is_present] = codes[rows[is_present]]
    return codes_at


def rows_of(values: NDArray[Any], wanted: NDArray[Any]) -> tuple[I64, NDArray[np.bool_]]:
    """Find the first occurrence of each wanted number.

    Return its index in ``values``, and whether it is there; the index of a number that is not
    there is any. Both have the shape of ``wanted``.
    """
    if not values.size:
        no_index = np.zeros(wanted.size, np.int64)
        return no_index, np.zeros(wanted.size, np.bool_)
    order = np.argsort(values, kind="stable")
    place_in_order = np.searchsorted(values, wanted, sorter=order)
    rows = order[np.minimum(place_in_order, values.size - 1)]
    return rows, values[rows] == wanted
