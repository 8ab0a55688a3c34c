"""Choosing: contract of selections, compared with a plain filter of rows and records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.model.capture import Capture
from fxframework.model.schema import COMPLETE
from fxframework.model.selection import Omitted, Selection
from fxframework.model.table import Table
from fxframework.testing.contracts.base import RoundTrips
from fxframework.testing.contracts.checks import rows_of, skip

__all__ = ["Choosing", "events_from", "kept_by_filter", "selections_of"]

COMPARED = ("ts", "name", "category", "message", "value", "phase", "severity")
"""Columns of events that are independent of the file."""


def selections_of(capture: Capture) -> Iterator[Selection]:
    """Yield selections of a capture: time ranges and threads."""
    times = [
        capture.table(name).array("ts")
        for name in capture.schemas
        if "ts" in capture.table(name) and len(capture.table(name))
    ]
    if not times:
        return
    each = np.unique(np.concatenate(times))
    first, middle, last = (int(each[at]) for at in (0, len(each) // 2, -1))
    yield Selection(stop_ns=middle)
    yield Selection(start_ns=middle)
    if len(each) > 3:
        yield Selection(start_ns=int(each[1]), stop_ns=last)
    yield Selection(start_ns=first, stop_ns=first + 1)
    if "threads" in capture.schemas:
        threads = capture.table("threads")
        tasks = zip(threads.array("pid").tolist(), threads.array("tid").tolist(), strict=True)
        yield from (Selection(threads=(f"{pid}/{tid}",)) for pid, tid in list(tasks)[:2])


def bounds(selection: Selection) -> tuple[int, int]:
    """Return the time range of a selection in nanoseconds."""
    start, stop = selection.start_ns, selection.stop_ns
    return -(1 << 63) if start is None else start, 1 << 63 if stop is None else stop


def kept_by_filter(table: Table, selection: Selection, chosen: set[int]) -> NDArray[np.bool_]:
    """Return the mask of a plain filter of a table with times; ``chosen`` are thread ids."""
    start, stop = bounds(selection)
    keep = []
    ts = table.array("ts").tolist()
    dur = table.array("dur").tolist() if "dur" in table else [0] * len(ts)
    kind = table.array("kind").tolist() if "dur" in table and "kind" in table else [-1] * len(ts)
    tasks = [table.array(c).tolist() for c in ("thread", "prev", "next") if c in table]
    for row, begin in enumerate(ts):
        length = max(dur[row], 0) if kind[row] == COMPLETE else dur[row]
        reaches = length < 0 or begin + length > start or begin >= start
        fits = reaches and begin < stop
        if selection.threads:
            fits = fits and any(column[row] in chosen for column in tasks)
        keep.append(fits)
    return np.array(keep, np.bool_)


def thread_ids(capture: Capture, selection: Selection) -> set[int]:
    """Return the ids of the threads that a selection names as pid/tid."""
    if not selection.threads:
        return set()
    table = capture.table("threads")
    columns = (table.array(name).tolist() for name in ("id", "pid", "tid"))
    rows = zip(*columns, strict=True)
    return {id for id, pid, tid in rows if f"{pid}/{tid}" in selection.threads}


def described(selection: Selection) -> str:
    """Return a short description of a selection."""
    if selection.threads:
        return f"thread {selection.threads[0]}"
    return f"{selection.start_ns} to {selection.stop_ns} ns"


class Choosing(RoundTrips):
    """Contract of ``Capture.select()``."""

    def test_select_keeps_what_a_filter_keeps(self) -> None:
        """A selection has exactly the rows that a plain filter by time or thread keeps."""
        tried = 0
        for sample, capture in self._opened(self._small()):
            for selection in selections_of(capture):
                part = capture.select(selection)
                for name in capture.schemas:
                    if "ts" in capture.table(name) and name != "logs":
                        tried += 1
                        self._check_part(capture, part, name, selection, sample.name)
        if not tried:
            skip("no small sample has rows with times")

    def _check_part(
        self, whole: Capture, part: Capture, name: str, selection: Selection, where: str
    ) -> None:
        table = whole.table(name)
        part_of = f"select: {where}, {described(selection)}"
        keep = kept_by_filter(table, selection, thread_ids(whole, selection))
        wanted = table.array("row")[keep].tolist()
        found = part.table(name).array("row").tolist()
        assert found == wanted, (
            f"{part_of}: of {name} it keeps rows {found[:8]}, a filter of them {wanted[:8]}"
        )
        batched = [row for batch in part.batches(name, 2) for row in batch.array("row").tolist()]
        assert batched == wanted, (
            f"{part_of}: batches of {name} have rows {batched[:8]}, the table {wanted[:8]}"
        )

    def test_select_keeps_the_records_of_its_time(self) -> None:
        """A selection has the records in its time range and those without a time."""
        tried = 0
        for sample, capture in self._opened(self._small()):
            if not capture.timed_records or capture.row_table is not None:
                continue
            times = [(record.offset, getattr(record, "ns", None)) for record in capture.records()]
            for selection in selections_of(capture):
                if not selection.by_time_alone:
                    continue
                tried += 1
                start, stop = bounds(selection)
                wanted = [at for at, ns in times if ns is None or start <= ns < stop]
                found = [record.offset for record in capture.select(selection).records()]
                assert found == wanted, (
                    f"select: {sample.name}, {described(selection)}: it keeps the records at "
                    f"{found[:8]}, a filter of their ns keeps {wanted[:8]}"
                )
        if not tried:
            skip(
                "no small sample has records to select by their own time (timed_records, row_table)"
            )


class Extracting(RoundTrips):
    """Contract of a writer's ``extract``."""

    def _check_extract(self, capture: Capture, selection: Selection, output: bytes, dropped: Any,
                   where: str) -> None:  # fmt: skip
        """Check that an extracted file has the events of the part and reports the rest."""
        part_of = f"extract: {where}, {described(selection)}"
        part = capture.select(selection)
        lost = 0
        # What the file has no place for excuses as many rows as it counts.
        excused = sum(dropped.dropped.values()) if isinstance(dropped, Omitted) else 0
        names = [n for n in capture.schemas if "ts" in capture.table(n) and len(capture.table(n))]
        records = {at for name in names for at in part.table(name).array("offset").tolist()}
        with self._open(output) as again:
            for name in names:
                whole, kept = capture.table(name), part.table(name)
                wanted, found = _events(kept), _events(again.table(name))
                # A record of which a row is kept may come along with its other rows.
                together = whole.select(np.isin(whole.array("offset"), list(records)))
                missing, extra = wanted - found, found - (wanted | _events(together))
                assert not extra, (
                    f"{part_of}: {name} has {sum(extra.values())} rows "
                    f"outside of the part, such as {_row(extra)}"
                )
                excused -= sum(missing.values())
                assert not missing or excused >= 0, (
                    f"{part_of}: {name} lacks {sum(missing.values())} rows of the part, more than "
                    f"its `dropped` counts, such as {_row(missing)}"
                )
                lost += len(whole) - len(kept)
        assert dropped or not lost, f"{part_of}: {lost} rows were left out, and it reports nothing"


def events_from(capture: Capture, name: str, offset: int) -> list[tuple[Any, ...]]:
    """Return the compared columns of the rows whose records begin at or after an offset."""
    table = capture.table(name)
    columns, _ = rows_of(table)
    chosen = [columns[each] for each in COMPARED if each in columns]
    rows = zip(columns["offset"], zip(*chosen, strict=True), strict=True)
    return [row for at, row in rows if at >= offset]


def _events(table: Table) -> Counter[tuple[Any, ...]]:
    """Return the rows of a table by their compared columns, with counts."""
    columns, _ = rows_of(table)
    chosen = [columns[name] for name in COMPARED if name in columns]
    return Counter(zip(*chosen, strict=True)) if chosen else Counter()


def _row(rows: Counter[tuple[Any, ...]]) -> Any:
    return next(iter(rows))
