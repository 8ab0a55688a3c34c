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
from fxframework.kernels.arrays import Bools
from fxframework.model.rows import HasTables, RowMarks
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
UNTESTED = 0
NO = 1
YES = 2


def log_levels(logs: Table) -> NDArray[np.int64]:
    """Return the levels of logs: 1 for TRACE to 6 for FATAL, and 0 without a severity.

    A severity between two levels is of the higher one, as its ``severity_name`` says.
    """
    severity = logs.array("severity")
    levels_below = np.searchsorted(sorted(LOG_LEVELS.values()), severity, "left")
    levels = np.minimum(levels_below, len(LOG_LEVELS) - 1) + 1
    has_no_severity = (severity == 0) & (logs.array("severity_name") < 0)
    return np.where(has_no_severity, 0, levels)


class _Strings:
    """A test of the strings of a pool, applied once to each distinct string."""

    def __init__(self, pool: StringPool, test: Callable[[str], bool]) -> None:
        self._pool = pool
        self._test = test
        self._results = np.zeros(0, np.uint8)
        """UNTESTED, NO or YES, by code."""

    def of(self, codes: NDArray[np.int32]) -> Bools:
        """Return for each code whether its string passes; a null does not."""
        if self._results.size < len(self._pool):
            size = max(len(self._pool), 2 * self._results.size)
            results = np.full(size, UNTESTED, np.uint8)
            results[: self._results.size] = self._results
            self._results = results
        has_string = codes >= 0
        string_codes = codes[has_string]
        untested = string_codes[self._results[string_codes] == UNTESTED]
        for code in np.unique(untested).tolist():
            text = self._pool.bytes_of(code).decode("utf-8", "replace")
            self._results[code] = YES if self._test(text) else NO
        passes = np.zeros(codes.shape, np.bool_)
        passes[has_string] = self._results[string_codes] == YES
        return passes


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
        self._tag_table = _tag_table_of(capture)
        fold = self._fold
        self._filters = tuple(map(fold, selection.filters))
        self._excludes = tuple(map(fold, selection.excludes))
        self._has_tag = self._tag_test(map(fold, selection.tags), fold)
        self._has_excluded_tag = self._tag_test(map(fold, selection.exclude_tags), fold)
        self._has_kernel_tag = self._tag_test([KERNEL], str)
        self._is_kernel = self._strings(lambda text: text == KERNEL)
        self._is_of_component = self._name_test(tuple(map(fold, selection.components)))
        self._is_filtered_by_name = self._name_test(self._filters)
        self._is_excluded_by_name = self._name_test(self._excludes)

    def mask(self, logs: Table) -> Bools:
        """Return for each of these rows whether it matches."""
        selection = self._selection
        keep = np.ones(len(logs), np.bool_)
        if selection.min_severity is not None:
            keep &= logs.array("severity") >= selection.min_severity
        if selection.pids:
            keep &= self._has_number(logs, "pid", 2, selection.pids)
        if selection.tids:
            keep &= self._has_number(logs, "tid", 4, selection.tids)
        if selection.tags:
            keep &= self._has_tag(logs)
        if selection.exclude_tags:
            keep &= ~self._has_excluded_tag(logs)
        if selection.kernel:
            keep &= self._is_kernel.of(logs.array("component")) | self._has_kernel_tag(logs)
        if selection.components:
            keep &= self._is_of_component(logs)
        # Messages come last: each is searched, so only those of rows that nothing else decides.
        if selection.filters:
            passes = self._is_filtered_by_name(logs)
            undecided = np.flatnonzero(keep & ~passes)
            passes[undecided] = self._in_messages(logs, undecided, self._filters)
            keep &= passes
        if selection.excludes:
            keep &= ~self._is_excluded_by_name(logs)
            undecided = np.flatnonzero(keep)
            keep[undecided] = ~self._in_messages(logs, undecided, self._excludes)
        return keep

    @staticmethod
    def _has_number(logs: Table, column: str, given_bit: int, numbers: Sequence[int]) -> Bools:
        """Return which logs have one of these process or thread ids."""
        ids = [number for number in numbers if 0 <= number < 1 << 64]
        has_number = np.isin(logs.array(column), np.array(ids, np.uint64))
        if GIVEN in logs:  # 0 also means that there is none
            has_number &= logs.array(GIVEN) & given_bit != 0
        return has_number

    def _strings(self, test: Callable[[str], bool]) -> _Strings:
        return _Strings(self._capture.strings, test)

    def _name_test(self, needles: Sequence[str]) -> Callable[[Table], Bools]:
        """Return a test whether the moniker or URL of a log contains one of these."""
        fold = self._fold
        strings = self._strings(lambda text: any(needle in fold(text) for needle in needles))

        def contains(logs: Table) -> Bools:
            in_name = strings.of(logs.array("component"))
            if URL in logs:
                in_name |= strings.of(logs.array(URL))
            return in_name

        return contains

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
        tagged_logs: RowMarks | None = None

        def has_tag(logs: Table) -> Bools:
            nonlocal tagged_logs
            if tagged_logs is None:  # read the table of tags on the first call
                tagged_logs = RowMarks()
                for batch in self._capture.batches(table):
                    is_wanted = names.of(batch.array("name"))
                    tagged_logs.add(batch.array("parent")[is_wanted])
            return tagged_logs.of(logs.array("row"))

        return has_tag

    def _in_messages(self, logs: Table, rows: NDArray[np.int64], needles: Sequence[str]) -> Bools:
        """Return for each of these rows whether its message contains one of the needles."""
        contains = np.zeros(rows.size, np.bool_)
        if not rows.size:
            return contains
        column = logs["message"]
        assert isinstance(column, TextColumn)  # noqa: S101 (the schema says so)
        for first in range(0, rows.size, MESSAGES):
            messages = column.take(rows[first : first + MESSAGES])
            self._search(messages, needles, contains[first : first + MESSAGES])
        return contains

    def _search(self, messages: TextColumn, needles: Sequence[str], contains: Bools) -> None:
        """Mark the messages that contain one of the needles."""
        data = messages.data.tobytes()
        bounds = messages.offsets.tolist()
        if self._selection.case_sensitive or data.isascii():
            # Search the joined bytes: ASCII can be folded byte by byte.
            if not self._selection.case_sensitive:
                data = data.lower()
            for needle in needles:
                _mark(data, bounds, needle.encode(errors="surrogateescape"), contains)
            return
        for row, (start, stop) in enumerate(itertools.pairwise(bounds)):
            text = self._fold(data[start:stop].decode("utf-8", "replace"))
            contains[row] = any(needle in text for needle in needles)


def _tag_table_of(capture: HasTables) -> str | None:
    """Return the name of the detail table of `logs` with a row for each tag; None if none has."""
    for schema in capture.schemas.values():
        is_of_tags = schema.parent_table == "logs" and schema.name.endswith("tags")
        if is_of_tags and any(column.name == "name" for column in schema.columns):
            return schema.name
    return None


def _mark(data: bytes, bounds: list[int], needle: bytes, contains: Bools) -> None:
    """Mark the stretches of ``data`` between consecutive bounds that contain the needle."""
    if not needle:
        contains[:] = True
        return
    offset = data.find(needle)
    while offset >= 0:
        row = bisect.bisect_right(bounds, offset) - 1
        row_end = bounds[row + 1]
        if offset + len(needle) <= row_end:
            contains[row] = True
            offset = data.find(needle, row_end)  # one match is enough
        else:  # the match crosses into the next message
            offset = data.find(needle, offset + 1)
