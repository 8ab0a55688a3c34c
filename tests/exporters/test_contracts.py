"""The bundled exporters and the records reader keep the contracts that everybody's keep."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

import toy

from fxframework.model.capture import Capture
from fxframework.registry import Confidence
from fxframework.testing import ExporterContract, ReaderContract, Sample, WriterContract

ROWS = toy.toy(toy.mark("one", 1, 7), toy.span("two", 2, 5), toy.mark("thr\xe9e", 5, -1))
DAMAGED = toy.toy(toy.mark("m", 1), toy.record(9), bytes(24), toy.record(7), b"odd")


class _OfToys(ExporterContract):
    plugin = "fxframework.exporters.plugin"
    reader_plugin = "toy"
    format = "toy"

    def samples(self) -> Iterable[Sample]:
        yield Sample("rows.toy", ROWS)
        yield Sample("damaged.toy", DAMAGED, sound=False)


class TestRecordsExporter(_OfToys):
    name = "records"

    # It writes records, and looks at no table.
    test_unknown_columns_are_passed_on_or_reported = None

    def check_output(self, output: bytes, capture: Capture) -> None:
        header, *records = [json.loads(line) for line in output.splitlines()]
        assert header["format"] == "toy"
        assert sum(record["nbytes"] for record in records) == capture.source.size


class TestCsvExporter(_OfToys):
    name = "csv"
    options = {"table": "instants"}  # noqa: RUF012 (as the contract has it)

    def check_output(self, output: bytes, capture: Capture) -> None:
        rows = list(csv.reader(io.StringIO(output.decode(), newline="")))
        assert len({len(row) for row in rows}) == 1
        assert len(rows) == len(capture.table("instants")) + 1


class TestTextExporter(_OfToys):
    name = "text"

    def check_output(self, output: bytes, capture: Capture) -> None:
        rows = sum(len(capture.table(name)) for name in capture.schemas if name != "args")
        assert len(output.decode().splitlines()) in {rows, 2 * rows}  # one capture, or two


class TestChromeExporter(_OfToys):
    name = "json"

    def check_output(self, output: bytes, capture: Capture) -> None:
        events = json.loads(output)["traceEvents"]
        slices = capture.table("slices").array("dur")
        lengths = [ns / 1000 for ns in slices.tolist() if ns >= 0]
        assert [e["dur"] for e in events if e["ph"] == "X"] in (lengths, 2 * lengths)
        instants = len(capture.table("instants"))
        assert sum(e["ph"] == "i" for e in events) in {instants, 2 * instants}


class TestRecordsReader(ReaderContract):
    """Without a header line whose format is installed, bytes are one damaged record."""

    plugin = "fxframework.exporters.plugin"
    format = "records"

    def samples(self) -> Iterable[Sample]:
        yield Sample(
            "opaque.jsonl", b'{"record":"mark"}\n', confidence=Confidence.NONE, sound=False
        )
        yield Sample("binary.jsonl", bytes(range(256)), confidence=Confidence.NONE, sound=False)


class TestRecordsWriter(WriterContract):
    """What cannot be read by any format is written again as it was."""

    plugin = "fxframework.exporters.plugin"
    format = "records"

    def samples(self) -> Iterable[Sample]:
        yield Sample("opaque.jsonl", b'{"record":"mark"}\n', sound=False)
        yield Sample("binary.jsonl", bytes(range(256)), sound=False)

    def refused(self) -> Iterable[tuple[Mapping[str, Any], str]]:
        yield {"record": "mark", "ts": 1}, "FXF0002"

    def many(self) -> Iterable[Mapping[str, Any]]:
        return itertools.repeat({"record": "damaged", "raw": "00" * 2000})

    # A .jsonl file is written by the exporter of records, and read as one record.
    test_suffixes_are_the_readers = None
    test_many_records_come_back = None
