"""Counts of the table values that a writer of another format cannot represent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable

import numpy as np

from fxframework.model.capture import Capture
from fxframework.model.schema import STANDARD_TABLES
from fxframework.model.strings import TextColumn
from fxframework.model.table import Table, null_of


def omitted_columns(
    capture: Capture, tables: Iterable[str], written: Container[str] = ()
) -> Counter[str]:
    """Count the values in columns that plugins added to ``tables``, as ``values of COLUMN``.

    Columns in ``written`` are not counted, nor are null or empty strings and zeros, because rows
    without a value have these.
    """
    found: Counter[str] = Counter()
    for name in tables:
        schema = capture.schemas.get(name)
        standard = STANDARD_TABLES.get(name)
        if schema is None or standard is None:
            continue
        known = {column.name for column in standard.all_columns}
        added = [column.name for column in schema.columns if column.name not in known]
        added = [column for column in added if column not in written]
        for batch in capture.batches(name) if added else ():
            for column in added:
                found[f"values of {column}"] += omitted_values(batch, column)
    return +found


def omitted_values(table: Table, name: str) -> int:
    """Count the rows in which a column has a value, as for ``omitted_columns``."""
    column = table[name]
    if isinstance(column, TextColumn):
        return int(np.count_nonzero(np.diff(column.offsets)))
    shape = table.schema.column(name)
    if shape.kind == "code":
        return int(np.count_nonzero(column >= 0))
    return int(np.count_nonzero(column if column.ndim > 1 else column != null_of(shape)))
