"""Logs: which rows of a capture's `logs` a selection chooses.

What a name says of a log is decided once for each distinct string, by its code in the pool; only
messages are looked at one by one, and only those that nothing else has decided.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from fxframework.errors import UsageError
from fxframework.model.rows import Bools, HasTables, RowMarks
from fxframework.model.selection import Selection
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table

__all__ = ["LogFilter"]

KERNEL = "klog"
"""The component of the kernel's logs, or their tag."""
URL = "log_url"
"""The column that has the component's url, where a format knows one."""
MESSAGES = 1 << 14
"""Messages that are looked at together."""
NOT_MET, NO, YES = range(3)


class _Strings:
    """Which strings of a pool pass a test; each that is met is tested once."""

    def __init__(self, pool: StringPool, test: Callable[[str], bool]) -> None:
        self._pool = pool
        self._test = test
        self._known = np.zeros(0, np.uint8)

    def of(self, codes: NDArray[np.int32]) -> Bools:
        """By row: whether its string passes; a null does not."""
        if self._known.size < len(self._pool):
            grown = np.full(max(len(self._pool), 2 * self._known.size), NOT_MET, np.uint8)
            grown[: self._known.size] = self._known
            self._known = grown
        there = codes >= 0
        met = codes[there]
        for code in np.unique(met[self._known[met] == NOT_MET]).tolist():
            text = self._pool.bytes_of(code).decode("utf-8", "replace")
            self._known[code] = YES if self._test(text) else NO
        out = np.zeros(codes.shape, np.bool_)
        out[there] = self._known[met] == YES
        return out


class LogFilter:
    """Tells, batch by batch, which rows of `logs` a selection chooses by what the logs say.

    Raises UsageError where the capture has no logs. A detail table of `logs` whose name ends in
    ``tags`` and that has a column ``name`` gives the tags of a log one by one, so that they may
    hold commas; without one the column ``tags`` is taken apart at its commas.
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
        self._tagged = self._with_tag(map(fold, selection.tags), fold)
        self._tagged_out = self._with_tag(map(fold, selection.exclude_tags), fold)
        self._kernel_tag = self._with_tag([KERNEL] if selection.kernel else [], str)
        self._kernel = self._strings(lambda text: text == KERNEL)
        self._component = self._holding(tuple(map(fold, selection.components)))
        self._named = self._holding(self._filters)
        self._named_out = self._holding(self._excludes)

    def mask(self, logs: Table) -> Bools:
        """By row of these: whether it is chosen."""
        selection = self._selection
        keep = np.ones(len(logs), np.bool_)
        if selection.min_severity is not None:
            keep &= logs.array("severity") >= selection.min_severity
        for name, numbers in (("pid", selection.pids), ("tid", selection.tids)):
            if numbers:
                known = [number for number in numbers if 0 <= number < 1 << 64]
                keep &= np.isin(logs.array(name), np.array(known, np.uint64))
        if selection.tags:
            keep &= self._tagged(logs)
        if selection.exclude_tags:
            keep &= ~self._tagged_out(logs)
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
            keep &= ~self._named_out(logs)
            rows = np.flatnonzero(keep)
            keep[rows] = ~self._in_messages(logs, rows, self._excludes)
        return keep

    def _strings(self, test: Callable[[str], bool]) -> _Strings:
        return _Strings(self._capture.strings, test)

    def _holding(self, needles: Sequence[str]) -> Callable[[Table], Bools]:
        """A test of whether the moniker or the url of a log holds one of these."""
        fold = self._fold
        strings = self._strings(lambda text: any(needle in fold(text) for needle in needles))

        def holds(logs: Table) -> Bools:
            found = strings.of(logs.array("component"))
            return found | strings.of(logs.array(URL)) if URL in logs else found

        return holds

    def _with_tag(
        self, tags: Iterable[str], fold: Callable[[str], str]
    ) -> Callable[[Table], Bools]:
        """A test of whether a log has one of these tags."""
        wanted = frozenset(tags)
        table = self._tag_table
        if table is None:
            joined = self._strings(lambda text: not wanted.isdisjoint(map(fold, text.split(","))))
            return lambda logs: joined.of(logs.array("tags"))
        names = self._strings(lambda text: fold(text) in wanted)
        marks: list[RowMarks] = []

        def tagged(logs: Table) -> Bools:
            if not marks:  # the tags are gone through when they are first asked for
                marks.append(RowMarks())
                for batch in self._capture.batches(table):
                    marks[0].add(batch.array("parent")[names.of(batch.array("name"))])
            return marks[0].of(logs.array("row"))

        return tagged

    def _in_messages(self, logs: Table, rows: NDArray[np.int64], needles: Sequence[str]) -> Bools:
        """For each of these rows, whether its message holds one of the needles."""
        found = np.zeros(rows.size, np.bool_)
        if not rows.size:
            return found
        column = logs["message"]
        assert isinstance(column, TextColumn)  # noqa: S101 (the schema says so)
        for at in range(0, rows.size, MESSAGES):
            messages = column.take(rows[at : at + MESSAGES])
            self._look(messages, needles, found[at : at + MESSAGES])
        return found

    def _look(self, messages: TextColumn, needles: Sequence[str], found: Bools) -> None:
        """Mark the messages that hold one of the needles."""
        data = messages.data.tobytes()
        bounds = messages.offsets.tolist()
        if self._selection.case_sensitive or data.isascii():
            # Bytes are searched at once: what is ASCII folds byte by byte.
            if not self._selection.case_sensitive:
                data = data.lower()
            for needle in needles:
                _mark(data, bounds, needle.encode(errors="surrogateescape"), found)
            return
        for row, (start, stop) in enumerate(itertools.pairwise(bounds)):
            text = self._fold(data[start:stop].decode("utf-8", "replace"))
            found[row] = any(needle in text for needle in needles)


def _mark(data: bytes, bounds: list[int], needle: bytes, found: Bools) -> None:
    """Mark the stretches of ``data`` between two bounds that hold the needle."""
    if not needle:
        found[:] = True
        return
    at = data.find(needle)
    while at >= 0:
        row = bisect.bisect_right(bounds, at) - 1
        if at + len(needle) <= bounds[row + 1]:
            found[row] = True
            at = data.find(needle, bounds[row + 1])
        else:  # it reaches into the next message
            at = data.find(needle, at + 1)
