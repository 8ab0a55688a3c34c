"""Checks used by contracts, and conversion of tables to plain values for comparison."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
import unittest
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn, TypeVar

import numpy as np

from fxframework.errors import Catalogue, FxError, Severity
from fxframework.model.capture import Capture, Record, kind_of
from fxframework.model.diagnostics import Diagnostic
from fxframework.model.schema import Column
from fxframework.model.strings import TextColumn
from fxframework.model.table import Table
from fxframework.rules import RULES as FRAMEWORK_RULES

T = TypeVar("T")


def skip(reason: str) -> NoReturn:
    """Skip the current test, for pytest and unittest."""
    raise unittest.SkipTest(reason)


def some(items: Iterable[T], reason: str) -> Iterator[T]:
    """Yield the items; skip the current test if there are none."""
    count = 0
    for count, item in enumerate(items, 1):  # noqa: B007 (counts them)
        yield item
    if not count:
        skip(reason)


@contextlib.contextmanager
def tolerating(*errors: type[FxError]) -> Iterator[None]:
    """Suppress coded errors, as ``contextlib.suppress`` does, if they have a message and a code."""
    try:
        yield
    except errors as error:
        assert error.message
        assert error.code


class EndlessError(BaseException):
    """A test exceeded its CPU time. Not an Exception, so that property tests do not retry."""


@contextlib.contextmanager
def limited(seconds: float, what: str) -> Iterator[None]:
    """Raise EndlessError after so many seconds of CPU time.

    Only works in the main thread of systems with interval timers; elsewhere there is no limit.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
        yield
        return

    def end(_number: int, _frame: object) -> None:
        raise EndlessError(f"endless: {what} used {seconds:g} s of CPU time without ending")

    handler_before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, handler_before)


def deliberate(error: BaseException) -> bool:
    """Return whether an error was raised on purpose: it is coded, or of a plugin's own class."""
    home = type(error).__module__.partition(".")[0]
    return isinstance(error, FxError) or home not in sys.stdlib_module_names


# --- Comparing ----------------------------------------------------------------------------------

MISSING = "<missing>"
"""Stands for a value that is not there."""


def short(value: Any) -> str:
    """Return a value as text, cut to a length that a message can show."""
    text = value if value is MISSING else repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def unit_remark(actual: Any, expected: Any) -> str:
    """Return a remark if numbers differ by a power of a thousand."""
    if not isinstance(actual, int) or not isinstance(expected, int) or not actual or not expected:
        return ""
    for factor, units in ((10**3, "µs for ns"), (10**6, "ms for ns"), (10**9, "s for ns")):
        if actual * factor == expected:
            return f" ({units}: {factor:,} times too small)"
        if expected * factor == actual:
            return f" ({factor:,} times too large: a wrong unit)"
    return ""


def differences(actual: Any, expected: Any, place: str = "") -> Iterator[str]:
    """Yield how values differ, each with its place: of bytes, mappings, sequences and others."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        for key in {**expected, **actual}:
            inner_place = f"{place}.{key}" if place else str(key)
            actual_value = actual.get(key, MISSING)
            expected_value = expected.get(key, MISSING)
            yield from differences(actual_value, expected_value, inner_place)
    elif isinstance(actual, list | tuple) and isinstance(expected, list | tuple):
        for number, both in enumerate(zip(actual, expected, strict=False)):
            yield from differences(*both, f"{place}[{number}]")
        if len(actual) != len(expected):
            yield f"{place} has {len(actual)} items, not {len(expected)}"
    elif actual != expected and isinstance(actual, bytes) and isinstance(expected, bytes):
        shorter = min(len(actual), len(expected))
        differing = (index for index in range(shorter) if actual[index] != expected[index])
        first_difference = next(differing, shorter)
        shown = slice(first_difference, first_difference + 16)
        actual_bytes = actual[shown].hex(" ") or "nothing"
        expected_bytes = expected[shown].hex(" ") or "nothing"
        yield (
            f"{place} bytes differ from {first_difference} on, {len(actual)} in place of "
            f"{len(expected)}: {actual_bytes} in place of {expected_bytes}"
        )
    elif actual != expected:
        remark = unit_remark(actual, expected)
        yield f"{place} is {short(actual)}, not {short(expected)}{remark}"


def check_same(actual: Any, expected: Any, what: str) -> None:
    """Check that values are equal; the error shows the first difference."""
    if actual != expected:
        first_difference = next(differences(actual, expected), "they are of different types")
        raise AssertionError(f"{what}: {first_difference.strip()}")


def check_cover(places: list[tuple[int, int]], data: bytes) -> None:
    """Check that offsets and lengths tile the data."""
    end = 0
    for offset, nbytes in sorted(places):
        assert nbytes > 0, f"the record at {offset} has no bytes"
        assert offset == end, f"byte {end} is in no record, or in two"
        end += nbytes
    assert end == len(data), f"records end at {end} of {len(data)}"


def check_dropped(dropped: Mapping[str, int], what: str) -> None:
    """Check that the report of what was left out has names and positive counts."""
    assert isinstance(dropped, Mapping), f"{what}: {dropped!r} is not a mapping of names and counts"
    for name, count in dropped.items():
        is_sound = isinstance(name, str) and name and isinstance(count, int) and count > 0
        assert is_sound, (
            f"{what}: {count!r} of {name!r} were left out: give names, and counts above 0"
        )


def check_damage_codes(records: Iterable[Record], rules: Catalogue) -> None:
    """Check that the code of each damaged record, if it has one, is catalogued."""
    for record in records:
        if kind_of(record) == "damaged":
            code = record.to_json().get("code")
            is_known = code is None or code in rules or code in FRAMEWORK_RULES
            assert is_known, (
                f"the damaged record at byte {record.offset} has the code {code!r}, of no catalogue"
            )


def check_findings(capture: Capture, rules: Catalogue) -> None:
    """Check that findings are catalogued and lie in the file."""
    for finding in capture.diagnostics:
        is_known = finding.code in rules or finding.code in FRAMEWORK_RULES
        assert is_known, f"finding {finding.code} is in no catalogue"
        size = capture.source.size
        is_inside = finding.offset is None or 0 <= finding.offset <= size
        assert is_inside, f"finding {finding.code} is at byte {finding.offset} of {size}"


def findings_of(capture: Capture, least: Severity) -> list[Diagnostic]:
    """Read a capture; return its findings of a severity or worse."""
    capture.scan()
    return [finding for finding in capture.diagnostics if finding.severity >= least]


def check_table(table: Table, size: int) -> None:
    """Check that the columns of a table match its schema, for an input of ``size`` bytes."""
    for column in table.schema.all_columns:
        _check_column(table, column, size)
    if not table.schema.plain:
        counts_rows = np.array_equal(table.array("row"), np.arange(len(table)))
        assert counts_rows, f"table {table.name}: `row` does not count its rows from 0"
        offsets = table.array("offset")
        is_inside = (offsets >= 0) & (offsets < max(size, 1))
        assert is_inside.all(), (
            f"table {table.name}: `offset` of a row is outside of the {size} bytes of the file"
        )


def check_tables(capture: Capture, size: int) -> None:
    """Check that all tables of a capture match their schemas."""
    for name in capture.tables:
        check_table(capture.table(name), size)


def _check_column(table: Table, column: Column, size: int) -> None:
    column_text = f"column {table.name}.{column.name}"
    data = table[column.name]
    rows = len(table)
    assert len(data) == rows, f"{column_text} has {len(data)} values of {rows} rows"
    if column.kind == "text":
        assert isinstance(data, TextColumn), f"{column_text} is not a TextColumn"
        offsets = data.offsets
        assert offsets.dtype == np.int64, f"{column_text}: offsets are {offsets.dtype}"
        assert np.all(np.diff(offsets) >= 0), f"{column_text}: offsets go back"
        assert int(offsets[-1]) <= data.data.size, f"{column_text} reaches beyond its text"
        return
    values = np.asarray(data)
    # A place of bytes, or of items: an offset and a length.
    is_pairs = column.kind in {"bytes", "array"}
    shape = (len(table), 2) if is_pairs else (len(table),)
    assert values.shape == shape, f"{column_text} has shape {values.shape}"
    dtype_of_kind = {"code": "i4", "bytes": "i8", "array": "i8"}
    dtype = np.dtype(dtype_of_kind.get(column.kind, column.kind))
    assert values.dtype == dtype, f"{column_text} is {values.dtype}, not {dtype}"
    if column.kind == "bytes" and len(table):
        assert values.min() >= 0, f"{column_text} has a place below 0"
        assert values.sum(axis=1).max() <= size, f"{column_text} reaches beyond the file"
    if column.kind == "code" and len(table):
        assert values.min() >= -1, f"{column_text} has a code below -1"
        assert values.max() < len(table.pool), f"{column_text} has a code that is not in the pool"


# --- JSON ---------------------------------------------------------------------------------------


def shown_of(capture: Capture, start: int = 0) -> list[dict[str, Any]]:
    """Return the records from an offset on as JSON."""
    return [record.to_json() for record in capture.records() if record.offset >= start]


def through_json(shown: Any, what: str = "it") -> Any:
    """Return a copy of a value after a JSON round trip. Raises AssertionError if not JSON."""
    try:
        return json.loads(json.dumps(shown, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{what}: not plain JSON: {error}") from None


def check_json(shown: Any, what: str) -> None:
    """Check that a value is the same after a JSON round trip."""
    again = through_json(shown, what)
    assert again == shown, f"{what}: not plain JSON: {shown} becomes {again}"


# --- Tables as plain values --------------------------------------------------------------------

Columns = dict[str, list[Any]]


def rows_of(table: Table) -> Columns:
    """Return a table as lists of comparable values: codes resolved, doubles as their bits."""
    return {column.name: _values(table, column) for column in table.schema.all_columns}


def tables_of(capture: Capture) -> dict[str, Columns]:
    """Return all tables of a capture likewise."""
    return {name: rows_of(capture.table(name)) for name in capture.tables}


def _values(table: Table, column: Column) -> list[Any]:
    data = table[column.name]
    if isinstance(data, TextColumn):
        return [data.bytes_of(row) for row in range(len(data))]
    if column.kind == "code":
        return [None if code < 0 else table.pool.bytes_of(code) for code in data.tolist()]
    if data.dtype.kind == "f":
        return np.ascontiguousarray(data).view(np.int64).tolist()  # type: ignore[no-any-return]
    return data.tolist()  # type: ignore[no-any-return]


def thread_labels(capture: Capture) -> dict[int, str]:
    """Return ``pid/tid`` of each thread, by its id."""
    if "threads" not in capture.schemas:
        return {}
    rows = capture.table("threads").tuples("id", "pid", "tid")
    return {id: f"{pid}/{tid}" for id, pid, tid in rows}


def contents_of(capture: Capture, name: str) -> Columns:
    """Return a table as plain values without row numbers and offsets, to compare files."""
    table = capture.table(name)
    columns = rows_of(table)
    for column in table.schema.all_columns:
        if column.name in {"row", "offset"}:
            del columns[column.name]
        elif column.kind == "bytes":
            columns[column.name] = [capture.source.read(*extent) for extent in columns[column.name]]
        elif column.kind == "array":
            columns[column.name] = [length for _, length in columns[column.name]]
    return columns
