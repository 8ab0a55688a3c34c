"""The steps for all formats: decode, expect, export, compare."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from fxframework.errors import Severity, UsageError, did_you_mean
from fxframework.io.sink import Sink
from fxframework.kit.shown import amount
from fxframework.kit.steps import Outcome, Run, parameter
from fxframework.replay import golden

if TYPE_CHECKING:
    from fxframework.host import Host
    from fxframework.model.capture import Capture
    from fxframework.model.table import Table

LISTED = 5
"""The most findings or values to list in a message."""


# --- decode ------------------------------------------------------------------------------------


@attrs.frozen
class CaptureDecode:
    """Read bytes as a capture, which later steps look at."""

    from_: str = parameter(help="an output, or a device that has an image", refers="input")
    as_: str = parameter(help="the name of the capture", makes="capture")
    format: str = parameter("", help="the format, instead of detecting it")
    options: dict[str, Any] = parameter(
        factory=dict, help="options of the reader, and limits; a file is one beside the scenario"
    )

    def do(self, run: Run) -> Outcome:
        """Open the bytes with the named or detected reader, and read all of them."""
        options = {name: _option_value(value, run) for name, value in self.options.items()}
        capture = open_bytes(run.host, run.bytes_of(self.from_), self.from_, self.format, options)
        run.captures[self.as_] = capture
        capture.scan()
        records = capture.summary().records
        message = f"{records:,} {capture.format} records"
        findings = dict(sorted(capture.diagnostics.counts.items()))
        if findings:
            message += f"; findings: {_counts_text(findings)}"
        return Outcome.ok(message, format=capture.format, records=records, findings=findings)


def _option_value(value: Any, run: Run) -> Any:
    """Return the value of an option; of a file beside the scenario, its path.

    Raises UsageError for a value that names a file elsewhere, also as in ``main,1=lib.so``.
    """
    if not isinstance(value, str):
        return value
    folder = Path(run.folder or ".")
    for name in re.split("[,=]", value):
        if name and Path(folder, name).exists():
            run.file(name)  # raises for a file elsewhere
    return str(run.file(value)) if Path(folder, value).is_file() else value


def open_bytes(
    host: Host, data: bytes, name: str, format: str, options: Mapping[str, Any]
) -> Capture:
    """Open bytes as a capture, of the given format or detected from the bytes and the name."""
    source = host.source(data)
    source.name = name
    return host.open(source, format=format or None, options=options)


def _counts_text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count:,})" for name, count in sorted(counts.items()))


# --- expect ------------------------------------------------------------------------------------

Number = int | float
Value = bool | int | float | str
"""A value of a column: codes are strings, values of an enumeration their names."""


@attrs.frozen
class Range:
    """Expected sum and extremes of a column, over the rows that ``where`` selects."""

    sum: Number | None = parameter(None, help="their sum")
    min: Number | None = parameter(None, help="the least")
    max: Number | None = parameter(None, help="the greatest")


@attrs.frozen
class CaptureExpect:
    """Say what a capture holds. All of it must hold, and no finding is unexpected."""

    capture: str = parameter(help="the capture", refers="capture")
    format: str = parameter("", help="its format")
    findings: list[str] | None = parameter(
        None, help="codes that must be found; no other warning or worse may be, but for those "
        "that an earlier step expects of this capture"
    )  # fmt: skip
    records: int | None = parameter(None, help="how many records", least=0)
    kinds: dict[str, int] = parameter(factory=dict, help="how many records of a kind")
    table: str = parameter("", help="a table, of which the following is said")
    where: dict[str, Value] = parameter(
        factory=dict, help="choose the rows that have these values in these columns"
    )
    rows: int | None = parameter(None, help="how many rows", least=0)
    at_least: int | None = parameter(None, help="how many rows at least", least=0)
    at_most: int | None = parameter(None, help="how many rows at most", least=0)
    equals: dict[str, list[Value]] = parameter(
        factory=dict, help="the values of a column, row after row"
    )
    values: dict[str, list[Value]] = parameter(
        factory=dict, help="the different values of a column, in any order; null is none"
    )
    columns: dict[str, Range] = parameter(
        factory=dict, help="sum, min and max of columns of numbers"
    )

    def __attrs_post_init__(self) -> None:
        """Raise ValueError for an expectation about a table if no table is named."""
        if self.table:
            return
        for name in ("where", "rows", "at_least", "at_most", "equals", "values", "columns"):
            if getattr(self, name) not in (None, {}):
                raise ValueError(f"{name} needs a table; name it with table = …")

    def do(self, run: Run) -> Outcome:
        """Check the expectations of a capture; report all differences."""
        capture = run.capture(self.capture)
        capture.scan()
        differences = [*_wrong_summary(self, capture), *_wrong_findings(self, capture, run)]
        message = ""
        if self.table:
            table = _rows_with(capture.table(self.table), self.where)
            differences += _wrong_rows(self, table)
            message = f"{len(table):,} rows of {self.table}"
        if differences:
            return Outcome.failed("; ".join(differences), wrong=differences)
        return Outcome.ok(message)


def _wrong_summary(expected: CaptureExpect, capture: Capture) -> Iterator[str]:
    """Yield what is not as expected of the format and the numbers of records."""
    if expected.format and capture.format != expected.format:
        yield f"the format is {capture.format}, not {expected.format}"
    if expected.records is None and not expected.kinds:
        return
    summary = capture.summary()
    if expected.records is not None and summary.records != expected.records:
        yield f"there are {summary.records:,} records, not {expected.records:,}"
    for kind, expected_count in expected.kinds.items():
        # A full kind (`event instant`) or its first word (`event`).
        matching_kinds = [name for name in summary.kinds if f"{name} ".startswith(f"{kind} ")]
        count = sum(summary.kinds[name] for name in matching_kinds)
        if count != expected_count:
            hint = ""
            if not matching_kinds:
                hint = did_you_mean(kind, {name.split()[0] for name in summary.kinds})
            yield f"there are {count:,} records of kind {kind}, not {expected_count:,}{hint}"


def _wrong_findings(expected: CaptureExpect, capture: Capture, run: Run) -> Iterator[str]:
    """Yield the expected codes that were not found, and the unexpected ones that were."""
    counts = capture.diagnostics.counts
    expected_codes = run.findings.setdefault(expected.capture, set())
    for code in expected.findings or ():
        run.host.rule(code)  # raises for an unknown code
        expected_codes.add(code)
        if code not in counts:
            yield f"{code} is expected, but was not found"
    unexpected: dict[str, str] = {}
    for finding in capture.diagnostics.sorted():
        if finding.severity >= Severity.WARNING and finding.code not in expected_codes:
            message = finding.message
            if finding.offset is not None:
                message += f" at byte {finding.offset:,}"
            unexpected.setdefault(finding.code, message)
    for code, message in list(unexpected.items())[:LISTED]:
        yield f"unexpected {code} ({counts[code]:,}): {message}"
    if len(unexpected) > LISTED:
        yield f"and {len(unexpected) - LISTED} more codes"


def _rows_with(table: Table, values: Mapping[str, Any]) -> Table:
    """Return the rows that have these values, by column."""
    if not values:
        return table
    import numpy as np

    is_chosen = np.ones(len(table), np.bool_)
    for column, expected in values.items():
        is_chosen &= np.array([value == expected for value in table.plain(column)], np.bool_)
    return table.select(is_chosen)


def _wrong_rows(expected: CaptureExpect, table: Table) -> Iterator[str]:
    """Yield what is not as expected of the rows of a table."""
    count = len(table)
    rows = f"rows of {expected.table}"
    if expected.where:
        rows += " that were chosen"
    if expected.rows is not None and count != expected.rows:
        yield f"there are {count:,} {rows}, not {expected.rows:,}"
    if expected.at_least is not None and count < expected.at_least:
        yield f"there are {count:,} {rows}, fewer than {expected.at_least:,}"
    if expected.at_most is not None and count > expected.at_most:
        yield f"there are {count:,} {rows}, more than {expected.at_most:,}"
    for column, expected_values in expected.equals.items():
        values = table.plain(column)
        if values != expected_values:
            yield f"{column}: {_first_difference(expected_values, values)}"
    for column, expected_values in expected.values.items():
        # A row without a value is neither expected nor unexpected, unless null is listed.
        distinct = list(dict.fromkeys(table.plain(column)))
        missing = [value for value in expected_values if value not in distinct]
        unexpected = [
            value for value in distinct if value is not None and value not in expected_values
        ]
        if missing:
            yield f"{column}: {_listed(missing)} missing"
        if unexpected:
            yield f"{column}: {_listed(unexpected)} not expected"
    for column, bounds in expected.columns.items():
        yield from _wrong_column(column, bounds, table)


def _wrong_column(column: str, expected: Range, table: Table) -> Iterator[str]:
    values = table.plain(column)
    if any(not isinstance(value, int | float) for value in values):
        raise UsageError(f"column {column!r} is not numeric", remedy="use `equals` or `values`")
    figures = [
        ("sum", sum(values), expected.sum),
        ("min", min(values, default=None), expected.min),
        ("max", max(values, default=None), expected.max),
    ]
    for name, value, expected_value in figures:
        if expected_value is not None and value != expected_value:
            yield f"{column}: the {name} is {value}, not {expected_value}"


def _first_difference(expected: list[Any], values: list[Any]) -> str:
    for row, (expected_value, value) in enumerate(zip(expected, values, strict=False)):
        if value != expected_value:
            return f"row {row} has {value!r}, not {expected_value!r}"
    return f"{len(values):,} rows, not {len(expected):,}"


def _listed(values: list[Any]) -> str:
    text = ", ".join(map(repr, values[:LISTED]))
    if len(values) > LISTED:
        text += f" and {len(values) - LISTED} more"
    return text


# --- export ------------------------------------------------------------------------------------


@attrs.frozen
class CaptureExport:
    """Put captures into another form, as `fxf convert` does; several on one timeline."""

    path: str = parameter(help="the output", makes="output")
    capture: str = parameter("", help="the capture", refers="capture")
    captures: list[str] = parameter(
        factory=list, help="several captures instead, which an exporter of tables takes"
    )
    to: str = parameter("", help="an exporter or a format, instead of what the suffix names")
    options: dict[str, Any] = parameter(factory=dict, help="options of the exporter or writer")

    def do(self, run: Run) -> Outcome:
        """Write captures with an exporter, or one capture with the writer of its format."""
        from fxframework.conversion import plan

        names = list(self.captures)
        if self.capture:
            names.insert(0, self.capture)
        if not names:
            raise UsageError("no capture is named", remedy='capture = "NAME"')
        captures = [run.capture(name) for name in names]
        sink = Sink.memory()
        for value in self.options.values():
            if isinstance(value, str) and {"/", "\\"} & set(value):
                run.file(value)  # raises for a path elsewhere, to which an option may write
        conversion = plan(run.host, captures, self.path, to=self.to or None, options=self.options)
        report = conversion.run(sink)
        run.put(self.path, sink.getvalue())
        message = f"{amount(report.nbytes, 'byte')} as {report.to}"
        if report.dropped:
            message += f", without {_counts_text(report.dropped)}"
        unaligned = [alignment.name for alignment in report.alignments if alignment.assumed]
        if unaligned:
            message += f"; not on one clock: {', '.join(unaligned)}"
        return Outcome.ok(message, bytes=report.nbytes, to=report.to, dropped=dict(report.dropped))


# --- golden ------------------------------------------------------------------------------------


@attrs.frozen
class GoldenCompare:
    """Compare an output, byte for byte, with the golden file beside the scenario."""

    output: str = parameter(help="the output", refers="output")
    golden: str = parameter(
        "", help="the golden file; if not given, that of the output's name in SCENARIO.golden"
    )

    def do(self, run: Run) -> Outcome:
        """Compare the output with its golden file, or write the file."""
        return golden.compare(run, self.output, self.golden)
