"""Checks used by contracts, and conversion of tables to plain values for comparison."""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import signal
import sys
import threading
import unittest
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from fxframework.errors import Catalogue, FxError
from fxframework.model.capture import Capture
from fxframework.model.schema import STANDARD_TABLES, Column
from fxframework.model.strings import TextColumn
from fxframework.model.table import Table
from fxframework.registry import Option
from fxframework.rules import RULES as FRAMEWORK_RULES

__all__ = [
    "EndlessError",
    "check_cover",
    "check_descriptor",
    "check_dropped",
    "check_findings",
    "check_options",
    "check_references",
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
    "schema_fault",
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


def check_descriptor(item: Any, noun: str, name: str) -> None:
    """Check that a reader, writer or exporter has a valid name, title and suffixes."""
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name), (
        f"{name!r} is not a valid name of a {noun}: small letters, digits and hyphens"
    )
    assert item.title, f"the {noun} {name} has no title"
    assert not item.title.endswith("."), f"the title of {noun} {name} ends in a full stop"
    for suffix in item.suffixes:
        assert re.fullmatch(r"(\.[a-z0-9]+(-[a-z0-9]+)*)+", suffix), (
            f"{suffix!r} is not a suffix such as .abc ({noun} {name})"
        )


def check_options(options: Iterable[Option]) -> None:
    """Check that options have valid names, help texts, and defaults of their types."""
    names = [option.name for option in options]
    assert len(set(names)) == len(names), f"two options have one name: {names}"
    for option in options:
        name, default = option.name, option.default
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name), f"{name!r} is not a valid name of an option"
        assert option.help, f"option {name} does not say what it does"
        assert option.type in {bool, int, float, str}, f"option {name} is of type {option.type}"
        assert type(default) is option.type, (
            f"option {name}: {default!r} is not of type {option.type}"
        )
        assert option.parse(str(default)) == default, f"option {name}: its default is refused"


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


def check_references(capture: Capture) -> None:
    """Check that references from rows to threads and other rows are valid."""
    threads = {-1}
    if "threads" in capture.tables:
        threads |= set(capture.table("threads").array("id").tolist())
    lengths = {name: len(capture.table(name)) for name in capture.tables}
    for name in capture.tables:
        table = capture.table(name)
        for column in {"thread", "prev", "next"}.intersection(table.columns):
            strange = sorted(set(table.array(column).tolist()) - threads)
            assert not strange, (
                f"{name}.{column}: thread {strange[:1]} is not in the table `threads`"
            )
    if "slices" in capture.tables:
        slices = capture.table("slices")
        parents = slices.array("parent")
        _check_rows(parents, len(slices), "slices.parent")
        nested = parents >= 0
        depth = slices.array("depth")
        assert np.all(depth >= 0), "slices.depth is below 0"
        assert np.all(depth[~nested] == 0), "slices.depth: one without a parent is not at 0"
        assert np.all(depth[nested] <= depth[parents[nested]] + 1), (
            "slices.depth is more than one below its parent"
        )
        assert np.all(slices.array("dur") >= -1), "slices.dur is below -1"
    if "flows" in capture.tables:
        _check_rows(capture.table("flows").array("slice"), lengths.get("slices", 0), "flows.slice")
    if "args" in capture.tables:
        args = capture.table("args")
        owners, parents = args.array("table"), args.array("parent")
        for code, name in enumerate(STANDARD_TABLES):
            if name in lengths:
                _check_rows(parents[owners == code], lengths[name], f"args.parent in {name}")


def _check_rows(rows: Any, count: int, where: str) -> None:
    if rows.size:
        assert rows.min() >= -1, f"{where} has a row below -1"
        assert rows.max() < count, f"{where} has row {rows.max()} of {count}"


# --- JSON ---------------------------------------------------------------------------------------


def through_json(shown: Any, what: str = "it") -> Any:
    """Return a copy of a value after a JSON round trip. Raises AssertionError if not JSON."""
    try:
        return json.loads(json.dumps(shown, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{what}: not plain JSON: {error}") from None


# --- JSON Schema -------------------------------------------------------------------------------

_JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,),
    "number": (int, float), "boolean": (bool,),
}  # fmt: skip


def schema_fault(value: Any, schema: Mapping[str, Any], whole: Mapping[str, Any]) -> str | None:
    """Return why a JSON value violates a schema; None if it is valid.

    ``whole`` has the definitions for ``$ref``. Supports the features that `fxf replay --schema`
    uses.
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return schema_fault(value, whole["$defs"][name], whole)
    for key, most in (("oneOf", 1), ("anyOf", sys.maxsize)):
        if key in schema:
            faults = [schema_fault(value, each, whole) for each in schema[key]]
            if not 1 <= faults.count(None) <= most:
                return f"{value!r} fits {faults.count(None)} of {key}: {faults[:3]}"
    if "const" in schema and value != schema["const"]:
        return f"{value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{value!r} is not one of {schema['enum']}"
    types = schema.get("type", ())
    types = [types] if isinstance(types, str) else types
    if types and not any(_is_json(value, name) for name in types):
        return f"{value!r} is not of type {' or '.join(types)}"
    if isinstance(value, int | float) and not (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
    ):
        return f"{value!r} is beyond its bounds"
    if isinstance(value, list) and "items" in schema:
        return _first(schema_fault(each, schema["items"], whole) for each in value)
    if isinstance(value, dict) and ("properties" in schema or "additionalProperties" in schema):
        return _object_fault(value, schema, whole)
    return None


def _object_fault(
    value: Mapping[str, Any], schema: Mapping[str, Any], whole: Mapping[str, Any]
) -> str | None:
    known, more = schema.get("properties", {}), schema.get("additionalProperties", {})
    absent = [key for key in schema.get("required", ()) if key not in value]
    if absent:
        return f"{', '.join(absent)} is missing"
    extra = [key for key in value if key not in known]
    if extra and more is False:
        return f"there is no {', '.join(extra)}"
    return _first(
        fault and f"{key}: {fault}"
        for key, each in value.items()
        for fault in [schema_fault(each, known.get(key, more or {}), whole)]
    )


def _is_json(value: Any, name: str) -> bool:
    fits = isinstance(value, _JSON_TYPES[name])
    return fits and (name == "boolean" or not isinstance(value, bool))


def _first(faults: Iterable[str | None]) -> str | None:
    return next((fault for fault in faults if fault), None)


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
