"""Accounts: how often each function was called, and how long its calls took."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.calls import (
    UNMATCHED_EXIT,
    Calls,
    Function,
    Functions,
    numbered,
    rows_of,
    thread_names,
)
from fxframework.analysis.figures import FIELDS, RECURSIONS, SORTS
from fxframework.analysis.lazy import LazySequence
from fxframework.analysis.spread import ALL, Spread, spreads
from fxframework.errors import UsageError, did_you_mean
from fxframework.kernels.arrays import I64
from fxframework.kernels.sorting import begins_of_runs, dense
from fxframework.model.capture import Capture

CODE_BITS = 32
CODES = (1 << CODE_BITS) - 1
"""The low bits of the number of a name on a thread, which hold the code of the name."""


@attrs.frozen
class Entry:
    """One function, or one function on one thread."""

    function: Function
    spread: Spread
    unmatched: int = 0
    """Number of ends of calls whose beginning is missing."""
    thread: str | None = None
    asynchronous: bool = False
    """Whether these are asynchronous slices, which do not nest like calls."""


@attrs.frozen(eq=False)
class Account:
    """The account of a capture's calls."""

    entries: Sequence[Entry]
    per_second: int
    """Units of time per second; 0 if unknown."""
    asynchronous: int
    """Number of asynchronous slices, which have entries of their own."""
    figure: Callable[[str], NDArray[Any] | None]
    """Returns a new column of the entries by name: a field of ``Spread``, ``unmatched``, ``funcid``
    or ``source`` (codes). Missing values are -1; None if no entry has a value."""

    def sorted(
        self, by: str, *, descending: bool = False, top: int | None = None
    ) -> Sequence[Entry]:
        """Return the entries sorted by one of SORTS, equal ones in the order of the account.

        ``top`` limits the number of entries. Raises UsageError for an unknown sort key.
        """
        if by not in SORTS:
            raise UsageError(
                f"an account is not sorted by {by!r}{did_you_mean(by, SORTS)}",
                remedy=f"there are {', '.join(SORTS)}",
            )
        if by == "func":
            names = [entry.function.name for entry in self.entries]
            by_name = sorted(range(len(names)), key=names.__getitem__, reverse=descending)
            order = np.array(by_name, np.int64)
        else:
            column = self.figure(FIELDS.get(by, by))
            if column is None:
                column = np.zeros(len(self.entries), np.int64)
            if descending:
                # Not the order reversed, for equal entries keep theirs.
                np.negative(column, out=column)
            order = np.argsort(column, kind="stable")
        entries = self.entries
        chosen = order[:top]
        return LazySequence(len(chosen), lambda index: entries[int(chosen[index])])


def account(
    capture: Capture, *, by: str = "", recursion: str = "all", per_thread: bool = False
) -> Account:
    """Return the account of a capture's calls, grouped by ``by`` (see ``Calls.of``).

    Asynchronous slices have entries of their own, also those of a name that calls have too.
    ``recursion`` is one of RECURSIONS. Calls that are grouped by something other than their
    function, such as the thread, count only if no call of the same group is around them: time that
    several of them share would count several times. Raises UsageError for any other value, and if
    the capture has no slices.
    """
    if recursion not in RECURSIONS:
        raise UsageError(
            f"an account knows no recursion {recursion!r}{did_you_mean(recursion, RECURSIONS)}",
            remedy=f"there are {', '.join(RECURSIONS)}",
        )
    by_function = by in {"", "id", "name"}
    calls = Calls.of(capture, by, with_asynchronous=True)
    groups = _Groups.of(calls, per_thread=per_thread)
    counted = ALL
    summed = ALL
    if recursion != "all" or not by_function:
        inner, recursive = calls.recursion()
        if not by_function:
            counted = 1 - inner
        elif recursion == "only":
            counted = recursive
        else:
            summed = 1 - inner
    figures = spreads(
        groups.of_call, len(groups), calls.parent, calls.length, chosen=counted, summed=summed,
        stands_for=calls.stands_for,
    )  # fmt: skip
    per_second = calls.per_second
    asynchronous = calls.asynchronous
    functions = calls.functions
    del calls, counted, summed
    groups = attrs.evolve(groups, of_call=np.zeros(0, np.int32))  # all that has a row a call
    unmatched = np.zeros(len(groups), np.int64)
    if by_function:
        ends, end_counts = _unmatched_ends(capture, per_thread=per_thread)
        if ends.size:
            # Ends count with the calls of the same name and thread, if there are any.
            end_of_group = _name_on_thread(functions.codes[groups.function], groups.thread)
            group_of_end, has_group = rows_of(end_of_group, ends)
            unmatched[group_of_end[has_group]] = end_counts[has_group]
            lost_ends = ends[~has_group]
            if lost_ends.size:
                names = (lost_ends & CODES).astype(np.int32)
                functions_of_ends = _functions_named(capture, names, with_ids=by != "name")
                new_functions = len(functions) + np.arange(lost_ends.size)
                threads = (lost_ends >> CODE_BITS).astype(np.int32)
                groups = groups.extended(new_functions, threads)
                functions = _joined(functions, functions_of_ends)
                figures = figures.extended(lost_ends.size)
                unmatched = np.append(unmatched, end_counts[~has_group])
    has_calls = figures.column("count") | figures.column("unfinished")
    shown = np.flatnonzero(has_calls | unmatched).astype(np.int32)
    labels = thread_names(capture) if per_thread else {}

    def entry(index: int) -> Entry:
        group = int(shown[index])
        return Entry(
            function=functions[int(groups.function[group])],
            spread=figures[group],
            unmatched=int(unmatched[group]),
            thread=labels.get(int(groups.thread[group])),
            asynchronous=bool(groups.is_asynchronous[group]),
        )

    def figure(name: str) -> NDArray[Any] | None:
        if name == "unmatched":
            return unmatched[shown]
        if name not in {"funcid", "source"}:
            return figures.column(name)[shown]
        column: NDArray[Any] | None = functions.ids
        if name == "source":
            column = functions.sources
        if column is None:
            return None
        return column[groups.function[shown]]

    return Account(LazySequence(shown.size, entry), per_second, asynchronous, figure)


@attrs.frozen(eq=False)
class _Groups:
    """Groups of calls with an entry each, as columns of shape (n,)."""

    function: NDArray[np.int32]
    """Index of the function."""
    thread: NDArray[np.int32]
    """Id in `threads`; 0 unless there are entries for each thread."""
    is_asynchronous: NDArray[np.bool_]
    of_call: NDArray[np.int32]
    """The group of each call."""

    @classmethod
    def of(cls, calls: Calls, *, per_thread: bool) -> _Groups:
        """Return the groups of calls: by function, asynchronous slices apart, and by thread."""
        function_count = max(len(calls.functions), 1)
        if not per_thread and calls.marked is None:
            # The usual case needs no number for each call.
            function = np.arange(len(calls.functions), dtype=np.int32)
            return cls(
                function=function,
                thread=np.zeros(function.size, np.int32),
                is_asynchronous=np.zeros(function.size, np.bool_),
                of_call=calls.function,
            )
        # One number for all three: (thread * functions + function) * 2 + asynchronous.
        numbers = calls.function.astype(np.int64)
        if per_thread:
            numbers += calls.thread.astype(np.int64) * function_count
        numbers <<= 1
        if calls.marked is not None:
            numbers |= calls.marked
        of_call, keys = dense(numbers)
        thread, function = np.divmod(keys >> 1, function_count)
        return cls(
            function=function.astype(np.int32),
            thread=thread.astype(np.int32),
            is_asynchronous=(keys & 1).astype(np.bool_),
            of_call=of_call,
        )

    def __len__(self) -> int:
        return int(self.function.size)

    def extended(self, functions: NDArray[Any], threads: NDArray[np.int32]) -> _Groups:
        """Return these groups followed by groups without calls."""
        return _Groups(
            function=np.append(self.function, functions),
            thread=np.append(self.thread, threads),
            is_asynchronous=np.append(self.is_asynchronous, np.zeros(threads.size, np.bool_)),
            of_call=self.of_call,
        )


def _functions_named(capture: Capture, names: NDArray[np.int32], *, with_ids: bool) -> Functions:
    """Return functions of these names, with the id and source of the first function of the name."""
    if not with_ids or capture.calls is None:
        return Functions(capture.strings, names)
    table = capture.table(capture.calls.functions)
    known = numbered(table, table.array("id").astype(np.int64))
    rows, is_known = rows_of(known.codes, names)
    ids = None
    sources = None
    if len(known) and known.ids is not None:
        ids = np.where(is_known, known.ids[rows], -1)
    if len(known) and known.sources is not None:
        sources = np.where(is_known, known.sources[rows], -1)
    return Functions(capture.strings, names, ids, sources)


def _joined(first: Functions, second: Functions) -> Functions:
    """Return the functions of both, which have one pool."""
    codes = np.concatenate((first.codes, second.codes))
    ids = _joined_columns(first.ids, len(first), second.ids, len(second))
    sources = _joined_columns(first.sources, len(first), second.sources, len(second))
    return Functions(first.pool, codes, ids, sources)


def _joined_columns(
    first: NDArray[Any] | None, first_size: int, second: NDArray[Any] | None, second_size: int
) -> NDArray[Any] | None:
    """Join columns of which one may lack: then its values are -1."""
    if first is None and second is None:
        return None
    if first is None:
        first = np.full(first_size, -1)
    if second is None:
        second = np.full(second_size, -1)
    return np.concatenate((first, second))


def _unmatched_ends(capture: Capture, *, per_thread: bool) -> tuple[I64, I64]:
    """Return the distinct unmatched ends (see ``_name_on_thread``), ascending, and their counts.

    The thread is 0 unless ``per_thread``.
    """
    ends_of_batches = [np.zeros(0, np.int64)]
    batches = capture.batches("instants") if "instants" in capture.schemas else iter(())
    for batch in batches:
        # Before the code is looked up: strings may be known only once a column is made.
        categories = batch.array("category")
        category = capture.strings.code(UNMATCHED_EXIT)
        is_end = (categories == category) & (batch.array("name") >= 0)
        if category >= 0 and is_end.any():
            threads = batch.array("thread")[is_end] if per_thread else np.int32(0)
            ends_of_batches.append(_name_on_thread(batch.array("name")[is_end], threads))
    ends = np.concatenate(ends_of_batches)
    del ends_of_batches
    ends.sort()
    firsts = np.flatnonzero(begins_of_runs(ends))
    return ends[firsts], np.diff(firsts, append=ends.size)


def _name_on_thread(codes: NDArray[Any], threads: NDArray[Any] | np.int32) -> I64:
    """Return numbers for names on threads, shape (n,), ordered by thread, then by code."""
    numbers = np.empty(codes.size, np.int64)
    numbers[:] = threads
    numbers <<= CODE_BITS
    numbers |= codes
    return numbers
