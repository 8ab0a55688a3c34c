"""Expectation: what a sample contains, as its author says or as a golden file has it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from fxframework.model.capture import Capture
from fxframework.model.table import Table
from fxframework.registry import Confidence
from fxframework.testing.contracts.checks import check_same, rows_of, thread_labels, unit_remark

__all__ = [
    "UPDATE",
    "Expected",
    "Sample",
    "check_capture",
    "check_golden",
    "golden_of",
    "plain_rows",
]

UPDATE = "FXF_UPDATE_GOLDEN"
"""Environment variable: if set, golden files are written instead of compared."""
ROWS = 100
"""Rows per table in a golden file; all are counted."""


@attrs.frozen(kw_only=True)
class Expected:
    """The expected contents of a sample; fields that are not given are not compared.

    Expected(
        rows={"slices": 2, "threads": 1},
        values={"slices": [{"ts": 1_500_000, "dur": 250_000, "name": "load"}]},
        start_ns=1_500_000,
    )
    """

    records: int | None = None
    """Number of records."""
    kinds: Mapping[str, int] | None = None
    """Number of records by kind, for all kinds."""
    rows: Mapping[str, int] = attrs.field(factory=dict)
    """Number of rows by table."""
    values: Mapping[str, Sequence[Mapping[str, Any]]] = attrs.field(factory=dict)
    """The first rows of tables, each with some columns: strings instead of codes, ``pid/tid``
    instead of thread ids, names instead of values of an enumeration."""
    findings: Sequence[str] | None = None
    """Codes of all findings, by offset."""
    start_ns: int | None = None
    """The first time of the summary, in nanoseconds."""
    end_ns: int | None = None
    """The last time of the summary, in nanoseconds."""


@attrs.frozen
class Sample:
    """An input for contract tests."""

    name: str
    """A file name with the format's suffix."""
    data: bytes = attrs.field(repr=lambda data: f"<{len(data)} bytes>")
    """The bytes of the file."""
    confidence: Confidence = attrs.field(default=Confidence.CERTAIN, kw_only=True)
    """The confidence that the sniffer must return."""
    sound: bool = attrs.field(default=True, kw_only=True)
    """Whether it conforms to the format: no finding of WARNING or worse."""
    expected: Expected | None = attrs.field(default=None, kw_only=True)
    """Expected contents, if given."""


def check_capture(capture: Capture, sample: Sample) -> None:
    """Compare a capture with ``sample.expected``. Raises AssertionError."""
    expected = sample.expected
    if expected is None:
        return
    for name in (*expected.rows, *expected.values):
        assert name in capture.tables, f"tables: {sample.name} has no table {name}"
    for name, expected_rows in expected.values.items():
        rows = plain_rows(capture, name, len(expected_rows))
        least = len(expected_rows)
        assert len(rows) == least, (
            f"rows: {sample.name} has {len(rows)} rows of {name}, not {least} or more"
        )
        table = capture.table(name)
        # Rows have doubles as their bits, to compare them; here they are numbers.
        doubles = [column.name for column in table.schema.all_columns if column.kind == "f8"]
        for number, (row, values) in enumerate(zip(rows, expected_rows, strict=True)):
            row |= {column: table.array(column)[number].item() for column in doubles}
            place = f"{name} row {number} of {sample.name}"
            for column, value in values.items():
                assert column in row, f"columns: {place} has no column {column}"
                _same(f"value: {place}: {column} is", row[column], value)
    capture.scan()
    summary = capture.summary()
    for name, count in expected.rows.items():
        row_count = len(capture.table(name))
        assert row_count == count, (
            f"rows: {sample.name} has {row_count} rows of {name}, not {count}"
        )
    codes = [finding.code for finding in capture.diagnostics.sorted()]
    for what, actual, expected_value in (
        ("records", summary.records, expected.records),
        ("kinds", dict(summary.kinds), expected.kinds and dict(expected.kinds)),
        ("start_ns", summary.start_ns, expected.start_ns),
        ("end_ns", summary.end_ns, expected.end_ns),
        ("findings", codes, None if expected.findings is None else list(expected.findings)),
    ):
        if expected_value is not None:
            _same(f"{what}: {sample.name} has", actual, expected_value)


def _same(what: str, actual: Any, expected: Any) -> None:
    remark = unit_remark(actual, expected)
    assert actual == expected, f"{what} {actual!r}, not {expected!r}{remark}"


# --- Rows as plain values ----------------------------------------------------------------------


def plain_rows(capture: Capture, name: str, row_count: int | None = None) -> list[dict[str, Any]]:
    """Return the first ``row_count`` rows of a table in readable form.

    Codes are strings, thread ids ``pid/tid``, values of an enumeration their names.
    """
    table = capture.table(name).select(slice(row_count))
    columns = rows_of(table)
    tasks = thread_labels(capture)
    plain_columns = [
        [_plain(table, name, value, tasks) for value in values] for name, values in columns.items()
    ]
    return [dict(zip(columns, row, strict=True)) for row in zip(*plain_columns, strict=True)]


def _plain(table: Table, name: str, value: Any, tasks: Mapping[int, str]) -> Any:
    column = table.schema.column(name)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if name in {"thread", "prev", "next"} and column.kind == "i4":
        return tasks.get(value)
    if column.values:
        return column.values.get(value, value)
    return value


# --- Golden files ------------------------------------------------------------------------------


def golden_of(capture: Capture) -> dict[str, Any]:
    """Return the contents of a golden file for a capture, as JSON values."""
    capture.scan()
    summary = capture.summary()
    return {
        "format": capture.format,
        "records": dict(sorted(summary.kinds.items())),
        "start_ns": summary.start_ns,
        "end_ns": summary.end_ns,
        "findings": [
            {"code": finding.code, "offset": finding.offset, "record": finding.record}
            for finding in capture.diagnostics.sorted()
        ],
        "tables": {
            name: {"count": len(capture.table(name)), "rows": plain_rows(capture, name, ROWS)}
            for name in capture.schemas
            if len(capture.table(name))
        },
    }


def check_golden(capture: Capture, path: Path, *, update: bool | None = None) -> None:
    """Compare a capture with a golden file, or write the file if ``update``.

    ``update`` defaults to the environment variable FXF_UPDATE_GOLDEN, which `pytest
    --fxf-update-golden` sets. Raises AssertionError, whose first line has the first difference.
    """
    contents = json.loads(json.dumps(golden_of(capture)))
    if update or (update is None and os.environ.get(UPDATE)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(contents, indent=1, ensure_ascii=False) + "\n", "utf-8")
        return
    assert path.is_file(), (
        f"golden: there is no file {path.name}; write it with pytest --fxf-update-golden, and "
        "review it"
    )
    golden = json.loads(path.read_text("utf-8"))
    check_same(contents, golden, f"golden: {path.name}")
