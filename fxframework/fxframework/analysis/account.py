"""Accounts: how often each function was called, and how long its calls took."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.calls import (
    UNMATCHED_EXIT,
    Calls,
    Function,
    Functions,
    ThreadNames,
    dense,
    found_in,
    numbered,
)
from fxframework.analysis.figures import FIELDS, RECURSIONS, SORTS
from fxframework.analysis.lazy import LazySequence
from fxframework.analysis.spread import ALL, Spread, spreads
from fxframework.errors import UsageError, did_you_mean
from fxframework.model.capture import Capture

__all__ = ["Account", "Entry", "account"]

I64 = NDArray[np.int64]
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
        column = None if by == "func" else self.figure(FIELDS.get(by, by))
        if column is None:
            keys = [entry.function.name if by == "func" else "" for entry in self.entries]
            order = np.array(
                sorted(range(len(keys)), key=keys.__getitem__, reverse=descending), np.int64
            )
        else:
            if descending:
                np.negative(column, out=column)
            order = np.argsort(column, kind="stable")
        entries, chosen = self.entries, order[:top]
        return LazySequence(len(chosen), lambda at: entries[int(chosen[at])])


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
    calls = Calls.of(capture, by, with_asynchronous=True)
    chosen = summed = ALL
    by_function = by in {"", "id", "name"}
    if recursion != "all" or not by_function:
        inner, recursive = calls.recursion()
        if not by_function:
            chosen = 1 - inner
        elif recursion == "only":
            chosen = recursive
        else:
            summed = 1 - inner
    functions = calls.functions
    group, keys = calls.function, np.arange(len(functions)) << 1
    if per_thread or calls.marked is not None:
        numbers = calls.thread.astype(np.int64) * len(functions) if per_thread else np.int64(0)
        numbers = (numbers + calls.function) << 1
        group, keys = dense(numbers if calls.marked is None else numbers | calls.marked)
        del numbers
    found = spreads(group, keys.size, calls.parent, calls.length, chosen=chosen, summed=summed)
    marked = (keys & 1).astype(np.bool_)
    threads = ((keys >> 1) // max(len(functions), 1)).astype(np.int32)
    which = ((keys >> 1) % max(len(functions), 1)).astype(np.int32)
    unmatched = np.zeros(keys.size, np.int64)
    del group, keys, chosen, summed
    per_second, asynchronous = calls.per_second, calls.asynchronous
    del calls
    if by_function:
        ends, times = _unmatched(capture, per_thread=per_thread)
        if ends.size:
            # Count ends with the calls of the same name and thread, if there are any.
            own = _ends(functions.codes[which], threads)
            at = np.searchsorted(ends, own).astype(np.int32)
            np.minimum(at, ends.size - 1, out=at)
            mine = np.flatnonzero(ends[at] == own)[::-1].astype(np.int32)
            first = np.full(ends.size, -1, np.int32)
            first[at[mine]] = mine  # of several functions of one name, the first one
            del own, at, mine
            there = first >= 0
            unmatched[first[there]] = times[there]
            ends, times = ends[~there], times[~there]
            lost, on = (ends & CODES).astype(np.int32), (ends >> CODE_BITS).astype(np.int32)
            del ends, first, there
            if lost.size:
                which = np.append(which, len(functions) + np.arange(lost.size))
                threads = np.append(threads, on)
                marked = np.append(marked, np.zeros(lost.size, np.bool_))
                unmatched = np.append(unmatched, times)
                functions = _joined(functions, _named(capture, lost, with_ids=by != "name"))
                found = found.extended(lost.size)
    shown = np.flatnonzero(found.column("count") | found.column("unfinished") | unmatched).astype(
        np.int32
    )
    names: Mapping[int, str] = ThreadNames(capture) if per_thread else {}

    def entry(at: int) -> Entry:
        place = int(shown[at])
        thread = names.get(int(threads[place]))
        return Entry(
            functions[int(which[place])], found[place], int(unmatched[place]), thread,
            bool(marked[place]),
        )  # fmt: skip

    def figure(name: str) -> NDArray[Any] | None:
        if name == "unmatched":
            return unmatched[shown]
        if name in {"funcid", "source"}:
            column = functions.ids if name == "funcid" else functions.sources
            return None if column is None else column[which[shown]]
        return found.column(name)[shown]

    return Account(LazySequence(shown.size, entry), per_second, asynchronous, figure)


def _named(capture: Capture, names: NDArray[np.int32], *, with_ids: bool) -> Functions:
    """Return functions of these names, with the id and source of the first function of the name."""
    if not with_ids or capture.calls is None:
        return Functions(capture.strings, names)
    table = capture.table(capture.calls.functions)
    known = numbered(table, table.array("id").astype(np.int64))
    order, at, there = found_in(known.codes, names)
    ids, sources = (
        np.where(there, column[order[at]], -1) if column is not None and len(known) else None
        for column in (known.ids, known.sources)
    )
    return Functions(capture.strings, names, ids, sources)


def _joined(first: Functions, second: Functions) -> Functions:
    columns: list[Any] = []
    for name in ("codes", "ids", "sources"):
        both = [getattr(first, name), getattr(second, name)]
        if all(column is None for column in both):
            columns.append(None)
            continue
        sizes = len(first), len(second)
        none = (np.full(size, -1) for size in sizes)
        columns.append(np.concatenate([
            other if column is None else column for column, other in zip(both, none, strict=True)
        ]))  # fmt: skip
    return Functions(first.pool, *columns)


def _unmatched(capture: Capture, *, per_thread: bool) -> tuple[I64, I64]:
    """Return the distinct unmatched ends (see ``_ends``), ascending, and the count of each.

    The thread is 0 unless ``per_thread``.
    """
    parts = [np.zeros(0, np.int64)]
    for batch in capture.batches("instants") if "instants" in capture.schemas else ():
        categories = batch.array("category")  # strings may be known only once a column is made
        category = capture.strings.code(UNMATCHED_EXIT)
        mine = (categories == category) & (batch.array("name") >= 0)
        if category >= 0 and mine.any():
            threads = batch.array("thread")[mine] if per_thread else np.int32(0)
            parts.append(_ends(batch.array("name")[mine], threads))
    ends = np.concatenate(parts)
    del parts
    ends.sort()
    begins = np.ones(ends.size, np.bool_)
    np.not_equal(ends[1:], ends[:-1], out=begins[1:])
    starts = np.flatnonzero(begins)
    return ends[starts], np.diff(starts, append=ends.size)


def _ends(codes: NDArray[Any], threads: NDArray[Any] | np.int32) -> I64:
    """Return numbers for names on threads, shape (n,), ordered by thread, then by code."""
    numbers = np.empty(codes.size, np.int64)
    numbers[:] = threads
    numbers <<= CODE_BITS
    numbers |= codes
    return numbers
