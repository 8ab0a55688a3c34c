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
from fxframework.testing.contracts.base import Captures
from fxframework.testing.contracts.checks import rows_of, some, thread_labels

__all__ = ["Choosing", "check_extract", "events_from", "kept_by_filter", "selections_of"]

COMPARED = ("ts", "name", "category", "message", "value", "phase", "severity")
"""Columns of events that are independent of the file."""


def timed(capture: Capture) -> dict[str, Table]:
    """Return the tables whose rows have times, by name, if they have rows."""
    tables = {name: capture.table(name) for name in capture.schemas}
    return {name: table for name, table in tables.items() if "ts" in table and len(table)}


def selections_of(capture: Capture) -> Iterator[Selection]:
    """Yield selections of a capture: time ranges and threads."""
    times = [table.array("ts") for table in timed(capture).values()]
    if not times:
        return
    each = np.unique(np.concatenate(times))
    first, middle, last = (int(each[at]) for at in (0, len(each) // 2, -1))
    yield Selection(stop_ns=middle)
    yield Selection(start_ns=middle)
    if len(each) > 3:
        yield Selection(start_ns=int(each[1]), stop_ns=last)
    yield Selection(start_ns=first, stop_ns=first + 1)
    for label in list(thread_labels(capture).values())[:2]:
        yield Selection(threads=(label,))


def bounds(selection: Selection) -> tuple[int, int]:
    """Return the time range of a selection in nanoseconds."""
    start, stop = selection.start_ns, selection.stop_ns
    return -(1 << 63) if start is None else start, 1 << 63 if stop is None else stop


def kept_by_filter(table: Table, selection: Selection, chosen: set[int]) -> NDArray[np.bool_]:
    """Return the mask of a plain filter of a table with times; ``chosen`` are thread ids."""
    start, stop = bounds(selection)
    keep = []
    tasks = [table.array(c).tolist() for c in ("thread", "prev", "next") if c in table]
    names = ("ts", "dur", "kind") if "kind" in table and "dur" in table else ("ts",)
    for row, (begin, *more) in enumerate(table.tuples(*names)):
        dur, kind = more or (0, -1)
        length = max(dur, 0) if kind == COMPLETE else dur
        reaches = length < 0 or begin + length > start or begin >= start
        fits = reaches and begin < stop
        if selection.threads:
            fits = fits and any(column[row] in chosen for column in tasks)
        keep.append(fits)
    return np.array(keep, np.bool_)


def thread_ids(capture: Capture, selection: Selection) -> set[int]:
    """Return the ids of the threads that a selection names as pid/tid."""
    labels = thread_labels(capture) if selection.threads else {}
    return {id for id, label in labels.items() if label in selection.threads}


def described(selection: Selection) -> str:
    """Return a short description of a selection."""
    if selection.threads:
        return f"thread {selection.threads[0]}"
    return f"{selection.start_ns} to {selection.stop_ns} ns"


class Choosing(Captures):
    """Contract of ``Capture.select()``."""

    def test_select_keeps_what_a_filter_keeps(self) -> None:
        """A selection has exactly the rows that a plain filter by time or thread keeps."""
        for name, selection, capture in some(
            self._selected(), "no small sample has rows with times"
        ):
            part = capture.select(selection)
            for table in timed(capture).values():
                if table.name != "logs":
                    self._check_part(capture, part, table, selection, name)

    def _selected(self) -> Iterator[tuple[str, Selection, Capture]]:
        """Yield the small samples with their selections."""
        for sample, capture in self._opened(self._small()):
            for selection in selections_of(capture):
                yield f"{sample.name}, {described(selection)}", selection, capture

    def _check_part(
        self, whole: Capture, part: Capture, table: Table, selection: Selection, where: str
    ) -> None:
        keep = kept_by_filter(table, selection, thread_ids(whole, selection))
        wanted = table.array("row")[keep].tolist()
        for rows in (None, 2):
            tables = [part.table(table.name)] if rows is None else part.batches(table.name, rows)
            found = [row for each in tables for row in each.array("row").tolist()]
            assert found == wanted, (
                f"select: {where}: of {table.name} it keeps rows {found[:8]}, a filter of them "
                f"{wanted[:8]}" + ("" if rows is None else f" (in batches of {rows})")
            )

    def test_select_keeps_the_records_of_its_time(self) -> None:
        """A selection has the records in its time range and those without a time."""
        chosen = (
            (name, selection, capture)
            for name, selection, capture in self._selected()
            if capture.timed_records and capture.row_table is None and selection.by_time_alone
        )
        reason = (
            "no small sample has records to select by their own time (timed_records, row_table)"
        )
        for name, selection, capture in some(chosen, reason):
            start, stop = bounds(selection)
            times = [(record.offset, getattr(record, "ns", None)) for record in capture.records()]
            wanted = [at for at, ns in times if ns is None or start <= ns < stop]
            found = [record.offset for record in capture.select(selection).records()]
            assert found == wanted, (
                f"select: {name}: it keeps the records at {found[:8]}, a filter of their ns keeps "
                f"{wanted[:8]}"
            )


def check_extract(
    capture: Capture, selection: Selection, output: Capture, dropped: Any, where: str
) -> None:
    """Check that an extracted file has the events of the part and reports the rest."""
    part_of = f"extract: {where}, {described(selection)}"
    part = capture.select(selection)
    lost = 0
    # What the file has no place for excuses as many rows as it counts.
    excused = sum(dropped.dropped.values()) if isinstance(dropped, Omitted) else 0
    tables = timed(capture)
    records = {at for name in tables for at in part.table(name).array("offset").tolist()}
    for name, whole in tables.items():
        kept = part.table(name)
        wanted, found = _events(kept), _events(output.table(name))
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
    rows = zip(capture.table(name).array("offset").tolist(), _compared(capture.table(name)),
               strict=True)  # fmt: skip
    return [row for at, row in rows if at >= offset]


def _compared(table: Table) -> Iterator[tuple[Any, ...]]:
    """Yield the compared columns of each row."""
    columns, _ = rows_of(table)
    return zip(*(columns[name] for name in COMPARED if name in columns), strict=True)


def _events(table: Table) -> Counter[tuple[Any, ...]]:
    """Return the rows of a table by their compared columns, with counts."""
    return Counter(_compared(table))


def _row(rows: Counter[tuple[Any, ...]]) -> Any:
    return next(iter(rows))
