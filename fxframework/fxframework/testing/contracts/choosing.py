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
    """Yield selections of a capture: time ranges, threads, and slices by length and name."""
    times = [table.array("ts") for table in event_tables(capture)]
    if not times:
        return
    moments = np.unique(np.concatenate(times))
    first_ns = int(moments[0])
    middle_ns = int(moments[len(moments) // 2])
    yield Selection(stop_ns=middle_ns)
    yield Selection(start_ns=middle_ns)
    if len(moments) > 3:
        second_moment = int(moments[1])
        yield Selection(start_ns=second_moment, stop_ns=int(moments[-1]))
    yield Selection(start_ns=first_ns, stop_ns=first_ns + 1)
    for label in list(thread_labels(capture).values())[:2]:
        yield Selection(threads=(label,))
    if "slices" in capture.schemas and len(capture.table("slices")):
        slices = capture.table("slices")
        lengths = np.sort(slices.array("dur"))
        middle_length = int(lengths[len(lengths) // 2])
        yield Selection(min_duration_ns=max(middle_length, 0) + 1)
        names = [name for name in slices.texts("name")[:1] if name is not None]
        yield Selection(exclude_functions=tuple(map(glob_of, names)))


def glob_of(name: str) -> str:
    """Return a pattern that matches a name, whose stars and question marks match any character."""
    return name.replace("*", "?")


def described(selection: Selection) -> str:
    """Return a short description of a selection."""
    if selection.threads:
        return f"thread {selection.threads[0]}"
    if selection.skips:
        names = ", ".join(selection.exclude_functions)
        return f"slices of {selection.min_duration_ns or 0} ns and more, without {names or 'none'}"
    return f"{selection.start_ns} to {selection.stop_ns} ns"


def check_extract(
    capture: Capture, selection: Selection, output: Capture, dropped: Any, where: str
) -> None:
    """Check that an extracted file has the events of the part and reports the rest."""
    part_of = f"extract: {where}, {described(selection)}"
    part = capture.select(selection)
    left_out = 0
    # What the file has no place for excuses as many rows as it counts.
    excused = sum(dropped.dropped.values()) if isinstance(dropped, Omitted) else 0
    tables = {table.name: table for table in event_tables(capture)}
    records = {offset for name in tables for offset in part.table(name).array("offset").tolist()}
    for name, whole in tables.items():
        part_rows = part.table(name)
        expected = Counter(_compared(part_rows))
        extracted = Counter(_compared(output.table(name)))
        missing_rows = expected - extracted
        # A record of which a row is kept may come along with its other rows.
        is_of_records = np.isin(whole.array("offset"), list(records))
        with_their_records = whole.select(is_of_records)
        extra_rows = extracted - (expected | Counter(_compared(with_their_records)))
        assert not extra_rows, (
            f"{part_of}: {name} has {extra_rows.total()} rows outside of the part, such as "
            f"{next(iter(extra_rows))}"
        )
        excused -= missing_rows.total()
        are_excused = not missing_rows or excused >= 0
        assert are_excused, (
            f"{part_of}: {name} lacks {missing_rows.total()} rows of the part, more than its "
            f"`dropped` counts, such as {next(iter(missing_rows))}"
        )
        left_out += len(whole) - len(part_rows)
    assert dropped or not left_out, (
        f"{part_of}: {left_out} rows were left out, and it reports nothing"
    )


def events_from(capture: Capture, name: str, offset: int) -> list[tuple[Any, ...]]:
    """Return the compared columns of the rows whose records begin at or after an offset."""
    table = capture.table(name)
    return list(_compared(table.select(table.array("offset") >= offset)))


def _compared(table: Table) -> Iterator[tuple[Any, ...]]:
    """Yield the compared columns of each row."""
    columns = rows_of(table)
    return zip(*(columns[name] for name in COMPARED if name in columns), strict=True)
