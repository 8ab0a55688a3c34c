"""The main table of a capture: the default of exporters that write a single table."""

from __future__ import annotations

from collections.abc import Mapping

from fxframework.kit.export import empty_refusal
from fxframework.model.capture import Capture

PREFERRED = (
    "slices",
    "logs",
    "properties",
    "instants",
    "counters",
    "flows",
    "sched",
    "blobs",
    "nodes",
    "threads",
    "processes",
)
"""The main table is the first of these that has rows, or else any other that has."""


def main_table(capture: Capture, counts: Mapping[str, int]) -> str:
    """Return the name of the main table; ``counts`` has the number of rows of each table.

    Raises WriteRefusedError if no table has rows.
    """
    for name in (*PREFERRED, *counts):
        if counts.get(name):
            return name
    raise empty_refusal(capture, "no table has any rows")
