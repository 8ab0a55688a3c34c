"""Registration of the records format and of the bundled exporters for all formats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fxframework import hookimpl
from fxframework.analysis.figures import FIGURES
from fxframework.io.limits import MOST
from fxframework.model.schema import STANDARD_TABLES
from fxframework.registry import (
    EVERY_CAPTURE,
    SHORTEN,
    Confidence,
    Exporter,
    Option,
    Probe,
    Reader,
    Writer,
    lazy,
    nondeterministic,
)

SUFFIX = ".jsonl"
CALLS = frozenset({"slices"})
NO_ROWS: frozenset[str] = frozenset()
"""Of exporters whose output holds tables without rows, too."""
BY = Option(
    "by",
    "",
    "identify functions by id, name, category or another column of slices; by default id, or name"
    " for calls without an id",
)
TABLE = Option(
    "table",
    "",
    "table to write; default: the first of slices, logs, properties, instants, counters, … that "
    "has rows",
)
WEIGHT = Option(
    "weight",
    "ns",
    "unit of the numbers: ns, count (calls), or ticks (the capture's own units)",
    choices=("ns", "count", "ticks"),
)
THREAD = Option("thread", True, "begin each stack with its thread; no: sum over threads")
DEPTH = Option(
    "depth",
    1000,
    "greatest nesting; deeper calls count for the call at that depth",
    most=MOST,
)
COLUMNAR: dict[str, Any] = {
    "accepts": frozenset(STANDARD_TABLES),
    "options": (TABLE,),
    "binary": True,
    "rows": NO_ROWS,
    "extra": "arrow",
    "folders": True,
}
"""What exporters for columnar tools have in common."""


def _figure(name: str, purpose: str, default: str) -> Option:
    """Return an option that selects a measure of the graph."""
    choices = f"{', '.join(FIGURES[:-1])} or {FIGURES[-1]}"
    return Option(name, default, f"{purpose}: {choices}", choices=FIGURES)


BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def sniff(probe: Probe) -> Confidence:
    """Return CERTAIN if the first line is the header of a records file, else NONE."""
    first_line, _, _ = probe.head.partition(b"\n")
    if b'"fxframework"' not in first_line:
        return Confidence.NONE
    import orjson

    try:
        header = orjson.loads(first_line.removeprefix(BYTE_ORDER_MARK))
    except orjson.JSONDecodeError:
        return Confidence.NONE
    if isinstance(header, dict) and header.get("fxframework") == "records":
        return Confidence.CERTAIN
    return Confidence.NONE


@hookimpl
def fx_readers() -> Iterable[Reader]:
    """Return the reader of records files."""
    return [
        Reader(
            format="records",
            title="records as JSON lines, of any format that has a writer",
            suffixes=(SUFFIX, f"{SUFFIX}.gz"),
            sniff=sniff,
            open=lazy("fxframework.exporters.records:open_records"),
            options=(
                Option("format", "", "format of the records, if the file has no header line"),
            ),
        )
    ]


@hookimpl
def fx_writers() -> Iterable[Writer]:
    """Return the writer of opaque records."""
    return [
        Writer(
            format="records",
            title="the bytes of damaged records",
            suffixes=(),
            open=lazy("fxframework.exporters.records:open_raw_writer"),
            exempt={"suffixes_are_the_readers": "the exporter of records has them"},
        )
    ]


EXPORTERS = (
    Exporter(
        name="records",
        title="every record, lossless, one JSON object per line",
        accepts=EVERY_CAPTURE,
        suffixes=(SUFFIX, f"{SUFFIX}.gz"),
        open=lazy("fxframework.exporters.records:RecordsExport"),
        exempt={"unknown_columns_are_passed_on_or_reported": "it reads records, no tables"},
        options=(
            Option(
                "header",
                True,
                "begin with the header line that readers of records files need",
            ),
        ),
    ),
    Exporter(
        name="text",
        title="a line a row of every table, by time",
        accepts=frozenset(STANDARD_TABLES),
        suffixes=(".txt",),
        open=lazy("fxframework.exporters.text:TextExport"),
        options=(SHORTEN,),
    ),
    Exporter(
        name="json",
        title="Chrome JSON (Trace Event Format)",
        accepts=frozenset({"slices", "instants", "counters", "flows"}),
        suffixes=(".json",),
        open=lazy("fxframework.exporters.chrome:ChromeExport"),
        options=(SHORTEN,),
    ),
    Exporter(
        name="csv",
        title="one table as comma-separated values (RFC 4180)",
        accepts=frozenset(STANDARD_TABLES),
        suffixes=(".csv", ".csv.gz"),
        open=lazy("fxframework.exporters.csv_table:CsvExport"),
        options=(
            TABLE,
            Option("delimiter", ",", "field separator: one character, or `tab`"),
            Option(
                "threads",
                True,
                "add pid, tid, process name and thread name to rows that have a thread",
            ),
            Option("args", True, "add a row's arguments, as a JSON object"),
            Option(
                "spreadsheet",
                False,
                "put ' before strings that spreadsheets take for formulas: = + - @",
            ),
            SHORTEN,
        ),
    ),
    Exporter(
        name="arrow",
        title="one table as an Arrow IPC file; all tables in a folder, OUT/",
        suffixes=(".arrow", ".feather"),
        open=lazy("fxframework.exporters.columnar:open_arrow"),
        **COLUMNAR,
    ),
    Exporter(
        name="parquet",
        title="one table as a Parquet file; all tables in a folder, OUT/",
        suffixes=(".parquet",),
        open=lazy("fxframework.exporters.columnar:open_parquet"),
        **COLUMNAR,
    ),
    Exporter(
        name="duckdb",
        title="every table in a duckdb database file",
        accepts=frozenset(STANDARD_TABLES),
        suffixes=(".duckdb", ".db"),
        open=lazy("fxframework.exporters.columnar:DatabaseExport"),
        exempt=nondeterministic("duckdb writes other bytes each time"),
        binary=True,
        rows=NO_ROWS,
        extra="sql",
    ),
    Exporter(
        name="folded",
        title="stacks and the time they took by themselves, as flamegraph.pl reads them",
        accepts=CALLS,
        suffixes=(".folded", ".folded.gz"),
        open=lazy("fxframework.exporters.folded:FoldedExport"),
        options=(WEIGHT, THREAD, BY, DEPTH, SHORTEN),
    ),
    Exporter(
        name="flamegraph",
        title="a flame graph as one SVG, which zooms and searches in a browser",
        accepts=CALLS,
        suffixes=(".svg", ".svg.gz"),
        open=lazy("fxframework.exporters.flamegraph:FlameExport"),
        options=(WEIGHT, THREAD, BY, DEPTH, SHORTEN),
    ),
    Exporter(
        name="speedscope",
        title="calls as they began and ended, a profile a thread, for speedscope",
        accepts=CALLS,
        suffixes=(".speedscope.json", ".speedscope.json.gz"),
        open=lazy("fxframework.exporters.speedscope:SpeedscopeExport"),
        streams=False,
        options=(BY, SHORTEN),
    ),
    Exporter(
        name="firefox",
        title="a profile for the Firefox Profiler: stacks with their lengths, instants as markers",
        accepts=frozenset({"slices", "instants"}),
        suffixes=(".firefox.json", ".firefox.json.gz"),
        open=lazy("fxframework.exporters.firefox:FirefoxExport"),
        streams=False,
        options=(BY, SHORTEN),
    ),
    Exporter(
        name="otlp-traces",
        title="OpenTelemetry traces, as OTLP/JSON: a span a slice",
        accepts=CALLS,
        suffixes=(".otlp-traces.json", ".otlp-traces.json.gz"),
        open=lazy("fxframework.exporters.otlp_traces:TraceExport"),
        streams=False,
        exempt={
            "output_does_not_depend_on_batches": "each batch of rows has its resources",
            "unknown_columns_are_passed_on_or_reported": "it has no place for them",
        },
        options=(
            Option(
                "utc_offset_ns",
                0,
                "nanoseconds from the Unix epoch to time 0 of the clock; 0: as the capture says, "
                "if it does",
            ),
            SHORTEN,
        ),
    ),
    Exporter(
        name="perfetto",
        title="a timeline for Perfetto: slices, counters, flows, switches, logs",
        accepts=frozenset({"slices", "instants", "counters", "sched", "logs", "properties"}),
        suffixes=(".pftrace", ".pftrace.gz", ".perfetto-trace"),
        open=lazy("fxframework.exporters.perfetto.export:PerfettoExport"),
        exempt={
            "output_does_not_depend_on_batches": "names are listed where a batch needs them",
            "unknown_columns_are_passed_on_or_reported": "it has no place for them",
        },
        binary=True,
        options=(SHORTEN,),
    ),
    Exporter(
        name="html",
        title="a report as one page: timeline, slowest slices, flame graph, logs, findings",
        accepts=frozenset({"slices", "instants", "counters", "logs", "properties"}),
        suffixes=(".html", ".htm"),
        open=lazy("fxframework.exporters.report:HtmlExport"),
        streams=False,
        exempt={
            "a_failure_leaves_nothing_behind": "of some captures it reads no rows",
            "a_row_that_is_missing_is_noticed": "a report shows no single rows of large tables",
            "unknown_columns_are_passed_on_or_reported": "a report shows no single columns",
        },
        options=(
            Option("title", "", "heading of the report; default: the names of the captures"),
            SHORTEN,
        ),
    ),
    Exporter(
        name="pprof",
        title="a profile of stacks, for pprof",
        accepts=CALLS,
        suffixes=(".pb", ".pb.gz"),
        open=lazy("fxframework.exporters.pprof:PprofExport"),
        options=(BY, DEPTH, SHORTEN),
        binary=True,
    ),
    Exporter(
        name="callgrind",
        title="functions with their own and inclusive times, for callgrind_annotate, KCachegrind",
        accepts=CALLS,
        suffixes=(".callgrind", ".callgrind.gz"),
        open=lazy("fxframework.exporters.callgrind:CallgrindExport"),
        options=(BY, DEPTH, SHORTEN),
    ),
    Exporter(
        name="dot",
        title="who calls whom, for Graphviz",
        accepts=CALLS,
        suffixes=(".dot", ".gv"),
        open=lazy("fxframework.exporters.dot:DotExport"),
        streams=False,
        options=(
            BY,
            _figure("edge_label", "label of a call", "sum"),
            _figure("vertex_label", "label of a function", "count"),
            _figure("edge_color", "measure that colours calls (darker is more)", "sum"),
            _figure("vertex_color", "measure that colours functions", "sum"),
            SHORTEN,
        ),
    ),
)
"""The bundled exporters."""


@hookimpl
def fx_exporters() -> Iterable[Exporter]:
    """Return the bundled exporters."""
    return EXPORTERS
