"""Filter for logs: computes which rows of a capture's `logs` match a selection.

Names are tested once per distinct string, by code in the pool. Only messages are searched one by
one, and only those of rows that the other criteria have not already decided.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from fxframework.errors import UsageError
from fxframework.model.rows import Bools, HasTables, RowMarks
from fxframework.model.schema import LOG_LEVELS
from fxframework.model.selection import Selection
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table

__all__ = ["LogFilter", "log_levels"]

KERNEL = "klog"
"""The component or tag of kernel logs."""
URL = "log_url"
"""The column with the component's URL, in formats that have it."""
GIVEN = "log_given"
"""The column that says which of pid (2) and tid (4) a log has, in formats that have it."""
MESSAGES = 1 << 14
"""Messages searched together."""
UNTESTED, NO, YES = range(3)


def log_levels(logs: Table) -> NDArray[np.int64]:
    """Return the levels of logs: 1 for TRACE to 6 for FATAL, and 0 without a severity.

    A severity between two levels is of the higher one, as its ``severity_name`` says.
    """
    severity = logs.array("severity")
    most = len(LOG_LEVELS) - 1
    found = np.minimum(np.searchsorted(sorted(LOG_LEVELS.values()), severity, "left"), most) + 1
    return np.where((severity == 0) & (logs.array("severity_name") < 0), 0, found)


class _Strings:
    """A test of the strings of a pool, applied once to each distinct string."""

    def __init__(self, pool: StringPool, test: Callable[[str], bool]) -> None:
        self._pool = pool
        self._test = test
        self._known = np.zeros(0, np.uint8)

    def of(self, codes: NDArray[np.int32]) -> Bools:
        """Return for each code whether its string passes; a null does not."""
        if self._known.size < len(self._pool):
            grown = np.full(max(len(self._pool), 2 * self._known.size), UNTESTED, np.uint8)
            grown[: self._known.size] = self._known
            self._known = grown
        there = codes >= 0
        met = codes[there]
        for code in np.unique(met[self._known[met] == UNTESTED]).tolist():
            text = self._pool.bytes_of(code).decode("utf-8", "replace")
            self._known[code] = YES if self._test(text) else NO
        out = np.zeros(codes.shape, np.bool_)
        out[there] = self._known[met] == YES
        return out


class LogFilter:
    """Computes, batch by batch, which rows of `logs` match the log criteria of a selection.

    Raises UsageError if the capture has no logs. Tags are taken from a detail table of `logs`
    whose name ends in ``tags`` and that has a column ``name``, so that they may contain commas;
    without such a table, the column ``tags`` is split at its commas.
    """

    def __init__(self, selection: Selection, capture: HasTables) -> None:
        if "logs" not in capture.schemas:
            raise UsageError(
                f"{capture.format} captures have no logs to choose from",
                path=capture.name,
                remedy=f"it has {', '.join(capture.tables)}; leave out the options for logs",
            )
        self._capture = capture
        self._selection = selection
        self._fold: Callable[[str], str] = str if selection.case_sensitive else str.casefold
        self._tag_table = next(
            (
                schema.name
                for schema in capture.schemas.values()
                if schema.parent_table == "logs"
                and schema.name.endswith("tags")
                and any(column.name == "name" for column in schema.columns)
            ),
            None,
        )
        fold = self._fold
        self._filters = tuple(map(fold, selection.filters))
        self._excludes = tuple(map(fold, selection.excludes))
        self._tagged = self._tag_test(map(fold, selection.tags), fold)
        self._excluded_tags = self._tag_test(map(fold, selection.exclude_tags), fold)
        self._kernel_tag = self._tag_test([KERNEL] if selection.kernel else [], str)
        self._kernel = self._strings(lambda text: text == KERNEL)
        self._component = self._name_test(tuple(map(fold, selection.components)))
        self._named = self._name_test(self._filters)
        self._excluded_names = self._name_test(self._excludes)

    def mask(self, logs: Table) -> Bools:
        """Return for each of these rows whether it matches."""
        selection = self._selection
        keep = np.ones(len(logs), np.bool_)
        if selection.min_severity is not None:
            keep &= logs.array("severity") >= selection.min_severity
        for name, bit, numbers in (("pid", 2, selection.pids), ("tid", 4, selection.tids)):
            if numbers:
                if GIVEN in logs:  # 0 also means that there is none
                    keep &= logs.array(GIVEN) & bit != 0
                known = [number for number in numbers if 0 <= number < 1 << 64]
                keep &= np.isin(logs.array(name), np.array(known, np.uint64))
        if selection.tags:
            keep &= self._tagged(logs)
        if selection.exclude_tags:
            keep &= ~self._excluded_tags(logs)
        if selection.kernel:
            keep &= self._kernel.of(logs.array("component")) | self._kernel_tag(logs)
        if selection.components:
            keep &= self._component(logs)
        if selection.filters:
            found = self._named(logs)
            rows = np.flatnonzero(keep & ~found)
            found[rows] = self._in_messages(logs, rows, self._filters)
            keep &= found
        if selection.excludes:
            keep &= ~self._excluded_names(logs)
            rows = np.flatnonzero(keep)
            keep[rows] = ~self._in_messages(logs, rows, self._excludes)
        return keep

    def _strings(self, test: Callable[[str], bool]) -> _Strings:
        return _Strings(self._capture.strings, test)

    def _name_test(self, needles: Sequence[str]) -> Callable[[Table], Bools]:
        """Return a test whether the moniker or URL of a log contains one of these."""
        fold = self._fold
        strings = self._strings(lambda text: any(needle in fold(text) for needle in needles))

        def holds(logs: Table) -> Bools:
            found = strings.of(logs.array("component"))
            return found | strings.of(logs.array(URL)) if URL in logs else found

        return holds

    def _tag_test(
        self, tags: Iterable[str], fold: Callable[[str], str]
    ) -> Callable[[Table], Bools]:
        """Return a test whether a log has one of these tags."""
        wanted = frozenset(tags)
        table = self._tag_table
        if table is None:
            joined = self._strings(lambda text: not wanted.isdisjoint(map(fold, text.split(","))))
            return lambda logs: joined.of(logs.array("tags"))
        names = self._strings(lambda text: fold(text) in wanted)
        marks: list[RowMarks] = []

        def tagged(logs: Table) -> Bools:
            if not marks:  # read the table of tags on the first call
                marks.append(RowMarks())
                for batch in self._capture.batches(table):
                    marks[0].add(batch.array("parent")[names.of(batch.array("name"))])
            return marks[0].of(logs.array("row"))

        return tagged

    def _in_messages(self, logs: Table, rows: NDArray[np.int64], needles: Sequence[str]) -> Bools:
        """Return for each of these rows whether its message contains one of the needles."""
        found = np.zeros(rows.size, np.bool_)
        if not rows.size:
            return found
        column = logs["message"]
        assert isinstance(column, TextColumn)  # noqa: S101 (the schema says so)
        for at in range(0, rows.size, MESSAGES):
            messages = column.take(rows[at : at + MESSAGES])
            self._search(messages, needles, found[at : at + MESSAGES])
        return found

    def _search(self, messages: TextColumn, needles: Sequence[str], found: Bools) -> None:
        """Mark the messages that contain one of the needles."""
        data = messages.data.tobytes()
        bounds = messages.offsets.tolist()
        if self._selection.case_sensitive or data.isascii():
            # Search the joined bytes: ASCII can be folded byte by byte.
            if not self._selection.case_sensitive:
                data = data.lower()
            for needle in needles:
                _mark(data, bounds, needle.encode(errors="surrogateescape"), found)
            return
        for row, (start, stop) in enumerate(itertools.pairwise(bounds)):
            text = self._fold(data[start:stop].decode("utf-8", "replace"))
            found[row] = any(needle in text for needle in needles)


def _mark(data: bytes, bounds: list[int], needle: bytes, found: Bools) -> None:
    """Mark the stretches of ``data`` between consecutive bounds that contain the needle."""
    if not needle:
        found[:] = True
        return
    at = data.find(needle)
    while at >= 0:
        row = bisect.bisect_right(bounds, at) - 1
        if at + len(needle) <= bounds[row + 1]:
            found[row] = True
            at = data.find(needle, bounds[row + 1])
        else:  # the match crosses into the next message
            at = data.find(needle, at + 1)
