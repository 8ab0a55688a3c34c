"""Figures: those of every capture of a dataset, by SQL over its tables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fxframework.dataset.manifest import Entry
from fxframework.dataset.query import DatasetQueries
from fxframework.dataset.store import Store

if TYPE_CHECKING:
    from fxframework.analysis.oddity import Figure

CALLS = """
select capture, coalesce(name, '(no name)') as name, count(*) as calls, sum(dur)::double as time,
    quantile_disc(dur, 0.99)::double as p99
from slices where dur >= 0 group by all
"""
LOGS = """
select capture, severity_name as severity, count(*) as logs,
    regexp_replace(regexp_replace(message[:400], '"[^"]*"', '"#"', 'g'),
        '0x[0-9a-fA-F]+|\\b\\d+(\\.\\d+)*', '#', 'g') as template
from logs group by all
"""
COUNTERS = """
select capture, concat_ws(' ', category, name, series) as name, avg(value) as level
from counters where isfinite(value) group by all
"""


def figures_of_dataset(
    root: str | os.PathLike[str],
) -> tuple[dict[str, dict[Figure, float]], dict[str, str]]:
    """Return the figures of each capture of a dataset by its file, and the format of each.

    See ``analysis.oddity``.

    Raises UnreadableError for a path that is not a dataset, and MissingExtraError without duckdb.
    """
    root = os.fspath(root)
    with DatasetQueries(root) as queries:
        entries = [entry for entry in Store(root).entries().values() if entry.format]
        entries.sort(key=lambda entry: entry.file)
        figures_of_capture: dict[str, dict[Figure, float]] = {}  # by its id
        for entry in entries:
            figures: dict[Figure, float] = {}
            for table, rows in entry.rows.items():
                if rows:
                    figures["rows", table] = rows
            for code, count in entry.findings.items():
                figures["findings", code] = count
            figures_of_capture[entry.capture] = figures
        for row in _query_table(queries, entries, "slices", CALLS):
            figures = figures_of_capture[row["capture"]]
            for kind in ("calls", "time", "p99"):
                figures[kind, row["name"]] = row[kind]
        for row in _query_table(queries, entries, "logs", LOGS):
            figures = figures_of_capture[row["capture"]]
            name = " ".join(filter(None, (row["severity"], row["template"])))
            figures["logs", name] = row["logs"]
        for row in _query_table(queries, entries, "counters", COUNTERS):
            figures = figures_of_capture[row["capture"]]
            figures["counter", row["name"]] = row["level"]
    figures_of_file = {entry.file: figures_of_capture[entry.capture] for entry in entries}
    return figures_of_file, {entry.file: entry.format for entry in entries}


def _query_table(
    queries: DatasetQueries, entries: list[Entry], table: str, sql: str
) -> list[dict[str, Any]]:
    """Return the rows of a query of a table; none if no capture has rows in it."""
    if not any(entry.rows.get(table) for entry in entries):
        return []
    rows: list[dict[str, Any]] = queries.query(sql).to_pylist()
    return rows
