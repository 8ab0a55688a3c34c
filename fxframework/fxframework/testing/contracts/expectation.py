"""Expectation: compares a capture with expected contents or with a golden file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fxframework.model.capture import Capture
from fxframework.model.table import Table
from fxframework.testing.contracts.base import Sample
from fxframework.testing.contracts.checks import rows_of

__all__ = ["UPDATE", "check_capture", "check_golden", "golden_of", "plain_rows"]

UPDATE = "FXF_UPDATE_GOLDEN"
"""Environment variable: if set, golden files are written instead of compared."""
ROWS = 100
"""Rows per table in a golden file; all are counted."""


def check_capture(capture: Capture, sample: Sample) -> None:
    """Compare a capture with ``sample.expected``. Raises AssertionError."""
    expected = sample.expected
    if expected is None:
        return
    for name in (*expected.rows, *expected.values):
        assert name in capture.tables, f"tables: {sample.name} has no table {name}"
    for name, wanted in expected.values.items():
        rows = list(plain_rows(capture, name, len(wanted)))
        assert len(rows) == len(wanted), (
            f"rows: {sample.name} has {len(rows)} rows of {name}, not {len(wanted)} or more"
        )
        table = capture.table(name)
        doubles = [each.name for each in table.schema.all_columns if each.kind == "f8"]
        for number, (row, values) in enumerate(zip(rows, wanted, strict=True)):
            row |= {column: table.array(column)[number].item() for column in doubles}
            where = f"{name} row {number} of {sample.name}"
            for column, value in values.items():
                assert column in row, f"columns: {where} has no column {column}"
                _same(f"value: {where}: {column} is", row[column], value)
    capture.scan()
    summary = capture.summary()
    for name, count in expected.rows.items():
        there = len(capture.table(name))
        assert there == count, f"rows: {sample.name} has {there} rows of {name}, not {count}"
    codes = [one.code for one in capture.diagnostics.sorted()]
    for what, found, wanted_value in (
        ("records", summary.records, expected.records),
        ("kinds", dict(summary.kinds), expected.kinds and dict(expected.kinds)),
        ("start_ns", summary.start_ns, expected.start_ns),
        ("end_ns", summary.end_ns, expected.end_ns),
        ("findings", codes, None if expected.findings is None else list(expected.findings)),
    ):
        if wanted_value is not None:
            _same(f"{what}: {sample.name} has", found, wanted_value)


def _same(what: str, found: Any, wanted: Any) -> None:
    assert found == wanted, f"{what} {found!r}, not {wanted!r}{_unit(found, wanted)}"


def _unit(found: Any, wanted: Any) -> str:
    """Return a remark if numbers differ by a power of a thousand."""
    if not isinstance(found, int) or not isinstance(wanted, int) or not found or not wanted:
        return ""
    for factor, units in ((10**3, "µs for ns"), (10**6, "ms for ns"), (10**9, "s for ns")):
        if found * factor == wanted:
            return f" ({units}: {factor:,} times too small)"
        if wanted * factor == found:
            return f" ({factor:,} times too large: a wrong unit)"
    return ""


# --- Rows as plain values ----------------------------------------------------------------------


def plain_rows(capture: Capture, name: str, most: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the first ``most`` rows of a table in readable form.

    Codes are strings, thread ids ``pid/tid``, values of an enumeration their names.
    """
    table = capture.table(name)
    count = len(table) if most is None else min(most, len(table))
    columns, _ = rows_of(table)
    tasks = _thread_labels(capture)
    shown = {
        column: [_plain(table, column, value, tasks) for value in values[:count]]
        for column, values in columns.items()
    }
    for row in range(count):
        yield {column: values[row] for column, values in shown.items()}


def _thread_labels(capture: Capture) -> dict[int, str]:
    if "threads" not in capture.schemas:
        return {}
    table = capture.table("threads")
    columns = (table.array(column).tolist() for column in ("id", "pid", "tid"))
    return {id: f"{pid}/{tid}" for id, pid, tid in zip(*columns, strict=True)}


def _plain(table: Table, name: str, value: Any, tasks: Mapping[int, str]) -> Any:
    column = table.schema.column(name)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if name in {"thread", "prev", "next"} and column.kind == "i4":
        return tasks.get(value)
    return column.values.get(value, value) if column.values else value


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
            {"code": one.code, "offset": one.offset, "record": one.record}
            for one in capture.diagnostics.sorted()
        ],
        "tables": {
            name: {"count": len(capture.table(name)), "rows": list(plain_rows(capture, name, ROWS))}
            for name in capture.schemas
            if len(capture.table(name))
        },
    }


def check_golden(capture: Capture, path: Path, *, update: bool | None = None) -> None:
    """Compare a capture with a golden file, or write the file if ``update``.

    ``update`` defaults to the environment variable FXF_UPDATE_GOLDEN, which `pytest
    --fxf-update-golden` sets. Raises AssertionError, whose first line has the first difference.
    """
    found = json.loads(json.dumps(golden_of(capture)))
    if update or (update is None and os.environ.get(UPDATE)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
        return
    assert path.is_file(), (
        f"golden: there is no file {path.name}; write it with pytest --fxf-update-golden, and "
        "review it"
    )
    wanted = json.loads(path.read_text("utf-8"))
    difference = next(_differences(found, wanted, ""), None)
    assert difference is None, f"golden: {path.name}: {difference}"


def _differences(found: Any, wanted: Any, at: str) -> Iterator[str]:
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in [*wanted, *(key for key in found if key not in wanted)]:
            place = f"{at}.{key}" if at else key
            if key not in found:
                yield f"{place} is missing"
            elif key not in wanted:
                yield f"{place} is new"
            else:
                yield from _differences(found[key], wanted[key], place)
    elif isinstance(found, list) and isinstance(wanted, list):
        for number, (one, other) in enumerate(zip(found, wanted, strict=False)):
            yield from _differences(one, other, f"{at}[{number}]")
        if len(found) != len(wanted):
            yield f"{at} has {len(found)} items, not {len(wanted)}"
    elif found != wanted:
        yield f"{at} is {found!r}, not {wanted!r}{_unit(found, wanted)}"
