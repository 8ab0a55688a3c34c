"""Helpers shared by the exporters of calls: call trees, and counts of what is left out."""

from __future__ import annotations

import itertools
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.calls import Calls, Functions
from fxframework.analysis.tree import CallTree, call_tree
from fxframework.errors import WriteRefusedError
from fxframework.kernels.arrays import I64
from fxframework.kernels.nesting import unfolded
from fxframework.kernels.pools import PairMap
from fxframework.kernels.sorting import dense
from fxframework.kit.export import empty_refusal
from fxframework.model.capture import Capture
from fxframework.model.clock import ends_of
from fxframework.model.schema import ASYNC, STANDARD_TABLES
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

ASYNCHRONOUS = "asynchronous slices"
OVERLAPS = "overlaps of calls, which one of them was cut by"
UNFINISHED = "lengths of calls that never ended"
TIMELESS = "calls that took no time"
DEEP = "calls that are too deep, added to those above"
ON_ONE_LINE = str.maketrans(dict.fromkeys([*map(chr, range(32)), "\x85", "\u2028", "\u2029"], " "))
"""Blanks for all characters that may end a line, and for other control characters."""


def left_out(capture: Capture) -> Counter[str]:
    """Count the rows and columns of a capture that are unrelated to its calls, by name."""
    dropped: Counter[str] = Counter()
    calls = capture.calls
    used_tables = {"slices", "threads", "processes"}
    known_columns = {column.name for column in STANDARD_TABLES["slices"].all_columns}
    if calls is not None:
        used_tables.add(calls.functions)
        known_columns |= {calls.function, calls.ticks, calls.ended, calls.count}
    for name, rows in capture.row_counts().items():
        if not rows:
            continue
        if name not in used_tables:
            dropped[f"rows of {name}"] += rows
        if name == "slices":
            for column in capture.schemas[name].all_columns:
                if column.name not in known_columns:
                    dropped[f"values of slices.{column.name}"] += rows
    return dropped


def stacks_of(capture: Capture, options: Mapping[str, Any], dropped: Counter[str]) -> CallTree:
    """Return the call tree for the options `by`, `thread` and `depth`; count what is omitted.

    Calls that took no time are omitted if the option `weight` is a time.

    Raises WriteRefusedError, and counts nothing, if there are no calls.
    """
    tree = call_tree(
        capture, by=options["by"], per_thread=options["thread"], depth=options["depth"]
    )
    if len(tree) == len(tree.roots):
        raise no_calls(capture)
    omitted = {
        ASYNCHRONOUS: tree.asynchronous,
        UNFINISHED: int(tree.unfinished.sum()),
        DEEP: tree.deep,
    }
    if options.get("weight", "count") != "count":
        omitted[TIMELESS] = tree.timeless
    dropped.update(left_out(capture))
    dropped.update({name: count for name, count in omitted.items() if count})
    return tree


def no_calls(capture: Capture) -> WriteRefusedError:
    """Return the error for a capture without calls."""
    return empty_refusal(capture, "there are no calls")


class Unfolded(NamedTuple):
    """The begins and ends of calls, which nest: those of each thread together, in order of time."""

    slices: Table
    """The slices that are calls, in the order of ``Calls``."""
    thread: NDArray[np.int32]
    """Ids of threads, of shape (begins and ends,)."""
    call: I64
    """Index of the call that begins or ends."""
    is_end: NDArray[np.bool_]
    time: I64
    """In nanoseconds."""


def unfolded_calls(capture: Capture, calls: Calls, dropped: Counter[str]) -> Unfolded:
    """Return the begins and ends of the calls of a capture; count what is changed to nest them.

    A call that reaches beyond the one around it ends with that one, and a call that never ended
    with the last one of its thread.
    """
    slices = capture.table("slices")
    if calls.asynchronous:
        slices = slices.select(slices.array("kind") != ASYNC)
    start = slices.array("ts")
    dur = slices.array("dur")
    depth = slices.array("depth").astype(np.int64)
    thread, thread_ids = dense(calls.thread)
    end = ends_of(start, dur)
    last_end = np.full(thread_ids.size, start.min(initial=0), np.int64)
    np.maximum.at(last_end, thread, end)
    is_open = dur < 0
    end = np.where(is_open, last_end[thread], end)
    dropped[UNFINISHED] += int(np.count_nonzero(is_open))
    # Of calls that begin together the outer one comes first, and of those of one depth the one that
    # lasts comes last: the others ended before it began.
    order = np.lexsort(((end > start) | is_open, depth, start))
    rows, times, cut = unfolded(
        order, thread.astype(np.int32), depth, thread_ids.size, start, end - start
    )
    dropped[OVERLAPS] += cut
    is_end = rows < 0
    rows = np.where(is_end, ~rows, rows)
    by_thread = np.argsort(thread[rows], kind="stable")
    rows = rows[by_thread]
    threads = thread_ids[thread[rows]].astype(np.int32)
    return Unfolded(slices, threads, rows, is_end[by_thread], times[by_thread])


def place_of(source: str) -> tuple[str, int | None, int | None]:
    """Return file, line and column of ``file:line:column``, whose numbers may be missing."""
    numbers: list[int] = []
    head, colon, tail = source.rpartition(":")  # the name of a file may contain a colon
    while colon and tail.isdecimal() and len(numbers) < 2:
        source = head
        numbers.insert(0, int(tail))
        head, colon, tail = source.rpartition(":")
    line, column = (*numbers, None, None)[:2]
    return source, line, column


class Frames:
    """Numbers the functions of several captures; equal name and source get the same number."""

    def __init__(self, pool: StringPool | None = None) -> None:
        self._pool = pool
        self._number_of_name = array("i")
        """By code of the name, the number of the function without a source; -1 where unknown."""
        self._number_of_place = PairMap()
        """By codes of name and source, the number of the function."""
        self._codes = array("i")
        """Code of the name, then of the source (0 for none), of each function."""

    def numbers_of(self, functions: Functions) -> NDArray[np.int32]:
        """Return the numbers of functions, of shape (functions,); new ones are appended."""
        if self._pool is None:
            self._pool = functions.pool
        pool = self._pool
        is_same_pool = pool is functions.pool
        numbers = np.empty(len(functions), np.int32)
        for index, name in enumerate(map(int, functions.codes)):
            source = 0
            if functions.sources is not None:
                source = max(int(functions.sources[index]), 0)
            if not is_same_pool:
                name = pool.intern(functions.pool.bytes_of(name))
                if source:
                    source = pool.intern(functions.pool.bytes_of(source))
            numbers[index] = self._number(name, source)
        return numbers

    @property
    def pool(self) -> StringPool:
        """The names and sources of the functions: as given, or that of the first capture."""
        if self._pool is None:
            self._pool = StringPool()
        return self._pool

    def _number(self, name: int, source: int) -> int:
        """Return the number of a function, given the codes of name and source (0: none)."""
        if source:
            number = self._number_of_place.get(name, source)
        else:
            missing = name + 1 - len(self._number_of_name)
            self._number_of_name.extend(itertools.repeat(-1, max(missing, 0)))
            number = self._number_of_name[name]
        if number < 0:
            number = len(self._codes) // 2
            self._codes.extend((name, source))
            if source:
                self._number_of_place.put(name, source, number)
            else:
                self._number_of_name[name] = number
        return number

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield the codes of name and source of each function, by number."""
        return zip(self._codes[::2], self._codes[1::2], strict=True)
