"""Choosing: selections of captures, and checks of files that are extracted by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from fxframework.model.capture import Capture
from fxframework.model.selection import Omitted, Selection
from fxframework.model.table import Table
from fxframework.testing.contracts.agreement import event_tables
from fxframework.testing.contracts.checks import rows_of, thread_labels

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
        wanted, found = Counter(_compared(kept)), Counter(_compared(output.table(name)))
        # A record of which a row is kept may come along with its other rows.
        together = whole.select(np.isin(whole.array("offset"), list(records)))
        missing, extra = wanted - found, found - (wanted | Counter(_compared(together)))
        assert not extra, (
            f"{part_of}: {name} has {extra.total()} rows outside of the part, such as "
            f"{next(iter(extra))}"
        )
        excused -= missing.total()
        assert not missing or excused >= 0, (
            f"{part_of}: {name} lacks {missing.total()} rows of the part, more than its `dropped` "
            f"counts, such as {next(iter(missing))}"
        )
        lost += len(whole) - len(kept)
    assert dropped or not lost, f"{part_of}: {lost} rows were left out, and it reports nothing"


def events_from(capture: Capture, name: str, offset: int) -> list[tuple[Any, ...]]:
    """Return the compared columns of the rows whose records begin at or after an offset."""
    table = capture.table(name)
    return list(_compared(table.select(table.array("offset") >= offset)))


def _compared(table: Table) -> Iterator[tuple[Any, ...]]:
    """Yield the compared columns of each row."""
    columns = rows_of(table)
    return zip(*(columns[name] for name in COMPARED if name in columns), strict=True)
