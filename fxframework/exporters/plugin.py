"""Hook implementations: records as JSON lines, both ways, and tables as CSV."""

from __future__ import annotations

from collections.abc import Iterable

from fxframework import hookimpl
from fxframework.model.schema import STANDARD_TABLES
from fxframework.registry import (
    EVERY_CAPTURE,
    Confidence,
    Exporter,
    Option,
    Probe,
    Reader,
    Writer,
    lazy,
)

SUFFIX = ".jsonl"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def sniff(probe: Probe) -> Confidence:
    """CERTAIN where the first line is the header of a records file."""
    first, _, _ = probe.head.partition(b"\n")
    if b'"fxframework"' not in first:
        return Confidence.NONE
    import orjson

    try:
        header = orjson.loads(first.removeprefix(BYTE_ORDER_MARK))
    except orjson.JSONDecodeError:
        return Confidence.NONE
    if isinstance(header, dict) and header.get("fxframework") == "records":
        return Confidence.CERTAIN
    return Confidence.NONE


@hookimpl
def fx_readers() -> Iterable[Reader]:
    """Records files, whatever the format of their records."""
    return [
        Reader(
            format="records",
            title="records as JSON lines, of any format that has a writer",
            suffixes=(SUFFIX, f"{SUFFIX}.gz"),
            sniff=sniff,
            open=lazy("fxframework.exporters.records:open_records"),
            options=(
                Option(
                    name="format",
                    type=str,
                    default="",
                    help="the format of the records, where the file has no header line",
                ),
            ),
        )
    ]


@hookimpl
def fx_writers() -> Iterable[Writer]:
    """Bytes that no reader could make anything of."""
    return [
        Writer(
            format="records",
            title="the bytes of damaged records",
            suffixes=(),
            open=lazy("fxframework.exporters.records:open_raw_writer"),
        )
    ]


@hookimpl
def fx_exporters() -> Iterable[Exporter]:
    """Records as JSON lines, and CSV."""
    return [
        Exporter(
            name="records",
            title="every record, lossless, one JSON object per line",
            accepts=EVERY_CAPTURE,
            suffixes=(SUFFIX, f"{SUFFIX}.gz"),
            open=lazy("fxframework.exporters.records:open_export"),
            options=(
                Option(
                    name="header",
                    type=bool,
                    default=True,
                    help="begin with the header line that a records file needs to be read again",
                ),
            ),
        ),
        Exporter(
            name="csv",
            title="one table as comma-separated values (RFC 4180)",
            accepts=frozenset(STANDARD_TABLES),
            suffixes=(".csv", ".csv.gz"),
            open=lazy("fxframework.exporters.csv_table:open_export"),
            options=(
                Option(
                    name="table",
                    type=str,
                    default="",
                    help="the table; if not given, the first of slices, logs, properties, "
                    "instants, counters, … that has rows",
                ),
                Option(
                    name="delimiter",
                    type=str,
                    default=",",
                    help="what stands between two fields: one character, or `tab`",
                ),
                Option(
                    name="threads",
                    type=bool,
                    default=True,
                    help="add pid, tid and the names of process and thread to rows of a thread",
                ),
                Option(
                    name="args",
                    type=bool,
                    default=True,
                    help="add a row's arguments, as a JSON object",
                ),
            ),
        ),
    ]
