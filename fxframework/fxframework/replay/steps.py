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

__all__ = [
    "CaptureDecode",
    "CaptureExpect",
    "CaptureExport",
    "GoldenCompare",
    "Range",
    "open_bytes",
]

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
        facts = {"format": capture.format, "records": records}
        return Outcome.ok(
            f"{records:,} {capture.format} records{_listed(capture)}",
            **facts,
            findings=dict(sorted(capture.diagnostics.counts.items())),
        )


def _option_value(value: Any, run: Run) -> Any:
    """Return the value of an option; of a file beside the scenario, its path.

    Raises UsageError for a value that names a file elsewhere, also as in ``main,1=lib.so``.
    """
    if not isinstance(value, str):
        return value
    for name in re.split("[,=]", value):
        if name and Path(run.folder or ".", name).exists():
            run.file(name)
    beside = Path(run.folder or ".", value)
    return str(run.file(value)) if beside.is_file() else value


def open_bytes(
    host: Host, data: bytes, name: str, format: str, options: Mapping[str, Any]
) -> Capture:
    """Open bytes as a capture, of the given format or detected from the bytes and the name."""
    source = host.source(data)
    source.name = name
    return host.open(source, format=format or None, options=options)


def _listed(capture: Capture) -> str:
    counts = capture.diagnostics.counts
    return f"; findings: {_counts(counts)}" if counts else ""


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{code} ({count:,})" for code, count in sorted(counts.items()))


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
        given = [
            name
            for name in ("where", "rows", "at_least", "at_most", "equals", "values", "columns")
            if getattr(self, name) not in (None, {})
        ]
        if given and not self.table:
            raise ValueError(f"{given[0]} needs a table; name it with table = …")

    def do(self, run: Run) -> Outcome:
        """Check the expectations of a capture; report all differences."""
        capture = run.capture(self.capture)
        capture.scan()
        wrong = [*_wrong_whole(self, capture), *_wrong_findings(self, capture, run)]
        notes = []
        if self.table:
            table = _chosen(capture.table(self.table), self.where)
            wrong += _wrong_rows(self, table)
            notes.append(f"{len(table):,} rows of {self.table}")
        if wrong:
            return Outcome.failed("; ".join(wrong), wrong=wrong)
        return Outcome.ok("; ".join(notes))


def _wrong_whole(given: CaptureExpect, capture: Capture) -> Iterator[str]:
    if given.format and capture.format != given.format:
        yield f"the format is {capture.format}, not {given.format}"
    if given.records is None and not given.kinds:
        return
    summary = capture.summary()
    if given.records is not None and summary.records != given.records:
        yield f"there are {summary.records:,} records, not {given.records:,}"
    for kind, count in given.kinds.items():
        # A full kind (`event instant`) or its first word (`event`).
        fitting = [name for name in summary.kinds if f"{name} ".startswith(f"{kind} ")]
        found = sum(summary.kinds[name] for name in fitting)
        if found != count:
            hint = "" if fitting else did_you_mean(kind, {n.split()[0] for n in summary.kinds})
            yield f"there are {found:,} records of kind {kind}, not {count:,}{hint}"


def _wrong_findings(given: CaptureExpect, capture: Capture, run: Run) -> Iterator[str]:
    found = capture.diagnostics.counts
    expected = run.findings.setdefault(given.capture, set())
    for code in given.findings or ():
        run.host.rule(code)  # raises for an unknown code
        expected.add(code)
        if code not in found:
            yield f"{code} is expected, but was not found"
    worst: dict[str, str] = {}
    for finding in capture.diagnostics.sorted():
        if finding.severity >= Severity.WARNING and finding.code not in expected:
            at = "" if finding.offset is None else f" at byte {finding.offset:,}"
            worst.setdefault(finding.code, f"{finding.message}{at}")
    for code, message in list(worst.items())[:LISTED]:
        yield f"unexpected {code} ({found[code]:,}): {message}"
    if len(worst) > LISTED:
        yield f"and {len(worst) - LISTED} more codes"


def _chosen(table: Table, where: Mapping[str, Any]) -> Table:
    """Return the rows that have these values."""
    if not where:
        return table
    import numpy as np

    keep = np.ones(len(table), np.bool_)
    for column, wanted in where.items():
        keep &= np.array([value == wanted for value in table.plain(column)], np.bool_)
    return table.select(keep)


def _wrong_rows(given: CaptureExpect, table: Table) -> Iterator[str]:
    rows = len(table)
    what = f"rows of {given.table}" + (" that were chosen" if given.where else "")
    if given.rows is not None and rows != given.rows:
        yield f"there are {rows:,} {what}, not {given.rows:,}"
    if given.at_least is not None and rows < given.at_least:
        yield f"there are {rows:,} {what}, fewer than {given.at_least:,}"
    if given.at_most is not None and rows > given.at_most:
        yield f"there are {rows:,} {what}, more than {given.at_most:,}"
    for column, wanted in given.equals.items():
        found = table.plain(column)
        if found != wanted:
            yield f"{column}: {_unlike(wanted, found)}"
    for column, wanted in given.values.items():
        found = table.plain(column)
        missing = [value for value in wanted if value not in found]
        more = [each for each in dict.fromkeys(found) if each is not None and each not in wanted]
        if missing:
            yield f"{column}: {_some(missing)} missing"
        if more:
            yield f"{column}: {_some(more)} not expected"
    for column, bounds in given.columns.items():
        yield from _wrong_column(column, bounds, table)


def _wrong_column(column: str, bounds: Range, table: Table) -> Iterator[str]:
    values = table.plain(column)
    if any(not isinstance(value, int | float) for value in values):
        raise UsageError(f"column {column!r} is not numeric", remedy="use `equals` or `values`")
    found = {"sum": sum(values), "min": min(values, default=None), "max": max(values, default=None)}
    for name, value in found.items():
        wanted = getattr(bounds, name)
        if wanted is not None and value != wanted:
            yield f"{column}: the {name} is {value}, not {wanted}"


def _unlike(wanted: list[Any], found: list[Any]) -> str:
    for row, (one, other) in enumerate(zip(wanted, found, strict=False)):
        if one != other:
            return f"row {row} has {other!r}, not {one!r}"
    return f"{len(found):,} rows, not {len(wanted):,}"


def _some(values: list[Any]) -> str:
    more = f" and {len(values) - LISTED} more" if len(values) > LISTED else ""
    return ", ".join(map(repr, values[:LISTED])) + more


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

        names = [*([self.capture] if self.capture else []), *self.captures]
        if not names:
            raise UsageError("no capture is named", remedy='capture = "NAME"')
        captures = [run.capture(name) for name in names]
        sink = Sink.memory()
        for value in self.options.values():
            if isinstance(value, str) and {"/", "\\"} & set(value):
                run.file(value)  # raises for a path elsewhere, to which an option may write
        work = plan(run.host, captures, self.path, to=self.to or None, options=self.options)
        report = work.run(sink)
        run.put(self.path, sink.getvalue())
        message = f"{amount(report.nbytes, 'byte')} as {report.to}"
        if report.dropped:
            message += f", without {_counts(report.dropped)}"
        facts = {"bytes": report.nbytes, "to": report.to, "dropped": dict(report.dropped)}
        assumed = [each.name for each in report.alignments if each.assumed]
        if assumed:
            message += f"; not on one clock: {', '.join(assumed)}"
        return Outcome.ok(message, **facts)


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
