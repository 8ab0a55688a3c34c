"""Choosing: contract of selections, and of files that are extracted by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.selection import Omitted, Selection
from fxframework.model.table import Table
from fxframework.testing.contracts.agreement import event_tables
from fxframework.testing.contracts.base import Captures
from fxframework.testing.contracts.checks import rows_of, some, thread_labels

COMPARED = ("ts", "name", "category", "message", "value", "phase", "severity")
"""Columns of events that are independent of the file."""


def selections_of(capture: Capture) -> Iterator[Selection]:
    """Yield selections of a capture: time ranges and threads."""
    times = [table.array("ts") for table in event_tables(capture)]
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


def described(selection: Selection) -> str:
    """Return a short description of a selection."""
    if selection.threads:
        return f"thread {selection.threads[0]}"
    return f"{selection.start_ns} to {selection.stop_ns} ns"


class Choosing(Captures):
    """Contract of ``Capture.select()``, whose rows the host selects."""

    def test_select_keeps_the_records_of_its_time(self) -> None:
        """A selection has the records in its time range and those without a time."""
        chosen = (
            (f"{sample.name}, {described(selection)}", selection, capture)
            for sample, capture in self._opened(self._small())
            if capture.timed_records and capture.row_table is None
            for selection in selections_of(capture)
            if selection.by_time_alone
        )
        reason = (
            "no small sample has records to select by their own time (timed_records, row_table)"
        )
        for name, selection, capture in some(chosen, reason):
            start = NS_MIN if selection.start_ns is None else selection.start_ns
            stop = NS_MAX + 1 if selection.stop_ns is None else selection.stop_ns
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
    tables = {table.name: table for table in event_tables(capture)}
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
