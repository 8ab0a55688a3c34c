"""Checks used by contracts, and conversion of tables to plain values for comparison."""

from __future__ import annotations

import contextlib
import importlib
import json
import signal
import sys
import threading
import unittest
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from fxframework.errors import Catalogue, FxError
from fxframework.model.capture import Capture
from fxframework.model.schema import Column
from fxframework.model.strings import TextColumn
from fxframework.model.table import Table
from fxframework.rules import RULES as FRAMEWORK_RULES

__all__ = [
    "EndlessError",
    "check_cover",
    "check_dropped",
    "check_findings",
    "check_same",
    "check_table",
    "contents_of",
    "deliberate",
    "lacking",
    "limited",
    "or_fx_error",
    "put_together",
    "raising",
    "rows_of",
    "skip",
    "through_json",
    "tolerating",
]


def skip(reason: str) -> NoReturn:
    """Skip the current test, for pytest and unittest."""
    raise unittest.SkipTest(reason)


@contextlib.contextmanager
def raising(wanted: type[FxError], what: str) -> Iterator[list[FxError]]:
    """Check that an error of a type is raised, and append it to the yielded list."""
    caught: list[FxError] = []
    try:
        yield caught
    except wanted as error:
        caught.append(error)
    except Exception as error:
        raise AssertionError(
            f"{what} raises {type(error).__name__}, not {wanted.__name__}: {error}"
        ) from error
    else:
        raise AssertionError(f"{what} is not refused with {wanted.__name__}")


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

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def deliberate(error: BaseException) -> bool:
    """Return whether an error was raised on purpose: it is coded, or of a plugin's own class."""
    home = type(error).__module__.partition(".")[0]
    return isinstance(error, FxError) or home not in sys.stdlib_module_names


def lacking(function: Any) -> tuple[Any, str]:
    """Return the target of a ``lazy`` function, or the function itself, and what is missing."""
    module, colon, attribute = getattr(function, "__qualname__", "").partition(":")
    if not colon:
        return function, ""
    try:
        home = importlib.import_module(module)
    except ModuleNotFoundError as error:
        return None, f"there is no module {error.name}"
    found = getattr(home, attribute, None)
    return found, "" if found is not None else f"{module} has no {attribute}"


class tolerating:  # noqa: N801 (reads like contextlib.suppress)
    """Like ``contextlib.suppress``, but checks that the error has a message and a code."""

    def __init__(self, *errors: type[FxError]) -> None:
        self.errors = errors

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, self.errors):
            return False
        assert error.message
        assert error.code
        return True


def or_fx_error(check: Callable[[bytes], object]) -> Callable[[bytes], None]:
    """Return ``check`` with coded errors suppressed."""

    def run(data: bytes) -> None:
        with tolerating(FxError):
            check(data)

    return run


def check_same(found: bytes, expected: bytes, what: str) -> None:
    """Check that bytes are equal; the error shows where they begin to differ."""
    if found == expected:
        return
    shorter = min(len(found), len(expected))
    at = next((n for n in range(shorter) if found[n] != expected[n]), shorter)
    raise AssertionError(
        f"{what}: bytes differ from {at} on, {len(found)} in place of {len(expected)}: "
        f"{found[at : at + 16].hex(' ') or 'nothing'} in place of "
        f"{expected[at : at + 16].hex(' ') or 'nothing'}"
    )


def check_cover(places: list[tuple[int, int]], data: bytes) -> None:
    """Check that offsets and lengths tile the data."""
    at = 0
    for offset, nbytes in sorted(places):
        assert nbytes > 0, f"the record at {offset} has no bytes"
        assert offset == at, f"byte {at} is in no record, or in two"
        at += nbytes
    assert at == len(data), f"records end at {at} of {len(data)}"


def check_dropped(dropped: Mapping[str, int], what: str) -> None:
    """Check that the report of what was left out has names and positive counts."""
    assert isinstance(dropped, Mapping), f"{what}: {dropped!r} is not a mapping of names and counts"
    for name, count in dropped.items():
        assert isinstance(name, str), f"{what}: {name!r} does not name what was left out"
        assert name, f"{what}: something without a name was left out"
        assert isinstance(count, int), f"{what}: {count!r} of {name} were left out"
        assert count > 0, f"{what}: {count} of {name} were left out: omit names without a count"


def check_findings(capture: Capture, rules: Catalogue) -> None:
    """Check that findings are catalogued and lie in the file."""
    for found in capture.diagnostics:
        assert found.code in rules or found.code in FRAMEWORK_RULES, (
            f"finding {found.code} is in no catalogue"
        )
        assert found.message, f"finding {found.code} has no message"
        if found.offset is not None:
            assert 0 <= found.offset <= capture.source.size, (
                f"finding {found.code} is at byte {found.offset} of {capture.source.size}"
            )
        if found.record is not None:
            assert found.record >= 0, f"finding {found.code} is of record {found.record}"
    assert sum(capture.diagnostics.counts.values()) >= len(capture.diagnostics), (
        "findings: there are more than were counted"
    )


_DTYPES = {"code": np.dtype(np.int32), "?": np.dtype(np.bool_)}


def check_table(table: Table, size: int) -> None:
    """Check that a table matches its schema, for an input of ``size`` bytes."""
    wanted = [column.name for column in table.schema.all_columns]
    assert list(table.columns) == wanted, (
        f"table {table.name} has the columns {list(table.columns)}, its schema {wanted}"
    )
    for column in table.schema.all_columns:
        _check_column(table, column, size)
    if not table.schema.plain:
        assert np.array_equal(table.array("row"), np.arange(len(table))), (
            f"table {table.name}: `row` does not count its rows from 0"
        )
        offsets = table.array("offset")
        assert not len(table) or (offsets.min() >= 0 and offsets.max() < max(size, 1)), (
            f"table {table.name}: `offset` of a row is outside of the {size} bytes of the file"
        )


def _check_column(table: Table, column: Column, size: int) -> None:
    where = f"column {table.name}.{column.name}"
    data = table[column.name]
    assert len(data) == len(table), f"{where} has {len(data)} values of {len(table)} rows"
    if column.kind == "text":
        assert isinstance(data, TextColumn), f"{where} is not a TextColumn"
        assert data.offsets.dtype == np.int64, f"{where}: offsets are {data.offsets.dtype}"
        assert np.all(np.diff(data.offsets) >= 0), f"{where}: offsets go back"
        assert int(data.offsets[-1]) <= data.data.size, f"{where} reaches beyond its text"
        return
    values = np.asarray(data)
    if column.kind in {"bytes", "array"}:
        assert values.shape == (len(table), 2), f"{where} has shape {values.shape}"
        assert values.dtype == np.int64, f"{where} is {values.dtype}, not int64"
        if column.kind == "bytes" and len(table):
            assert values.min() >= 0, f"{where} has a place below 0"
            assert values.sum(axis=1).max() <= size, f"{where} reaches beyond the file"
        return
    assert values.shape == (len(table),), f"{where} has shape {values.shape}"
    wanted = _DTYPES[column.kind] if column.kind in _DTYPES else np.dtype(column.kind)
    assert values.dtype == wanted, f"{where} is {values.dtype}, not {wanted}"
    if column.kind == "code" and len(table):
        assert values.min() >= -1, f"{where} has a code below -1"
        assert values.max() < len(table.pool), f"{where} has a code that is not in the pool"


# --- JSON ---------------------------------------------------------------------------------------


def through_json(shown: Any, what: str = "it") -> Any:
    """Return a copy of a value after a JSON round trip. Raises AssertionError if not JSON."""
    try:
        return json.loads(json.dumps(shown, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{what}: not plain JSON: {error}") from None


# --- Tables as plain values --------------------------------------------------------------------

Columns = dict[str, list[Any]]


def rows_of(table: Table) -> tuple[Columns, int]:
    """Return a table as lists of comparable values: codes resolved, doubles as their bits."""
    return {column.name: _values(table, column) for column in table.schema.all_columns}, len(table)


def _values(table: Table, column: Column) -> list[Any]:
    data = table[column.name]
    if isinstance(data, TextColumn):
        return [data.bytes_of(row) for row in range(len(data))]
    if column.kind == "code":
        return [None if code < 0 else table.pool.bytes_of(code) for code in data.tolist()]
    if data.dtype.kind == "f":
        return np.ascontiguousarray(data).view(np.int64).tolist()  # type: ignore[no-any-return]
    return data.tolist()  # type: ignore[no-any-return]


def put_together(parts: list[Columns], like: Columns) -> Columns:
    """Concatenate the columns of batches."""
    return {name: [value for part in parts for value in part[name]] for name in like}


def contents_of(capture: Capture, name: str) -> tuple[Columns, int]:
    """Return a table as plain values without row numbers and offsets, to compare files."""
    table = capture.table(name)
    columns, count = rows_of(table)
    for column in table.schema.all_columns:
        if column.name in {"row", "offset"}:
            del columns[column.name]
        elif column.kind == "bytes":
            columns[column.name] = [capture.source.read(*at) for at in columns[column.name]]
        elif column.kind == "array":
            columns[column.name] = [length for _, length in columns[column.name]]
    return columns, count
