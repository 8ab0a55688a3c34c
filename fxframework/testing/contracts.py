"""Contracts: what every reader and every exporter must keep, as tests to be subclassed.

    class TestMyReader(ReaderContract):
        plugin = "fx_mine.plugin"
        format = "mine"

        def samples(self):
            yield Sample("empty.mine", MAGIC)
            yield Sample("three.mine", Path("three.mine").read_bytes())

Nothing here knows a format, and nothing needs the plugin to be installed: its module is enough.
"""

from __future__ import annotations

import ast
import copy
import gzip
import importlib
import inspect
import itertools
import json
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fxframework.errors import (
    FRAMEWORK_RULES,
    Catalogue,
    FxError,
    Severity,
    StrictError,
    UsageError,
    WriteRefusedError,
)
from fxframework.host import Host
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.capture import Capture
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.schema import STANDARD_TABLES, Column
from fxframework.model.strings import TextColumn
from fxframework.model.table import ColumnData, Table
from fxframework.registry import (
    HEAD,
    Confidence,
    Exporter,
    Option,
    Probe,
    Reader,
    Writer,
    parse_options,
)
from fxframework.testing.strategies import (
    bit_flips,
    byte_strings,
    every_truncation,
    truncations,
)

__all__ = ["FOREIGN", "Contract", "ExporterContract", "ReaderContract", "Sample", "open_bytes"]

BATCH_SIZES = (1, 2, 3, 7, 64, 65536)
HEAVY = ("numpy", "numba", "pyarrow", "orjson", "click", "rich")
"""What a plugin's module must not import: `fxf --help` loads every one of them."""

FOREIGN: Mapping[str, bytes] = {
    "empty": b"",
    "one byte": b"\0",
    "zeros": bytes(4096),
    "ones": b"\xff" * 4096,
    "text": b"The quick brown fox jumps over the lazy dog.\n" * 40,
    "json": b'{"traceEvents": [{"ph": "X", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}',
    "json lines": b'{"a": 1}\n{"a": 2}\n',
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(64),
    "elf": b"\x7fELF\x02\x01\x01" + bytes(121),
    "zip": b"PK\x03\x04\x14\0\0\0\x08\0" + bytes(64),
    "zstd": b"\x28\xb5\x2f\xfd" + bytes(64),
    "sqlite": b"SQLite format 3\0" + bytes(84),
    "utf-16": "\ufefftext".encode("utf-16-le") * 20,
    "counting bytes": bytes(range(256)) * 4,
}
"""Bytes that belong to no format of telemetry."""


@attrs.frozen
class Sample:
    """An input that a contract is tried with."""

    name: str
    """A file name with the format's suffix."""
    data: bytes = attrs.field(repr=lambda data: f"<{len(data)} bytes>")
    confidence: Confidence = attrs.field(default=Confidence.CERTAIN, kw_only=True)
    """What the sniffer has to say."""
    sound: bool = attrs.field(default=True, kw_only=True)
    """Whether nothing in it departs from the format: no finding of WARNING or worse."""


def open_bytes(
    reader: Reader,
    data: bytes,
    *,
    name: str = "<bytes>",
    strict: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Capture:
    """Open bytes with one reader, as a host without plugins does.

    ``options`` are the reader's and the limits. Raises FxError as the reader does.
    """
    source = Source.open(data)
    source.name = name
    return Host(discover=False).read(source, reader, strict=strict, options=options)


def _untouched(_capture: Capture) -> None:
    """Leave a capture as it is."""


class Contract:
    """What both contracts share: the plugin, its samples, and how hard they are tried."""

    plugin: ClassVar[str]
    """The module of the hooks, such as ``fx_trace.plugin``."""
    examples: ClassVar[int] = 100
    """Inputs that each property is tried with."""
    seconds: ClassVar[float] = 5.0
    """CPU time that one damaged sample may take."""

    def samples(self) -> Iterable[Sample]:
        """Inputs of the format, small ones among them; the first must hold a record."""
        raise NotImplementedError

    # --- What is under test ------------------------------------------------------------------

    def _descriptors(self, hook: str) -> list[Any]:
        module = importlib.import_module(self.plugin)
        give = getattr(module, hook, None)
        return [] if give is None else list(give())

    def _reader(self, format: str) -> Reader:
        readers: list[Reader] = self._descriptors("fx_readers")
        found = [reader for reader in readers if reader.format == format]
        assert len(found) == 1, f"{self.plugin} registers {len(found)} readers of {format!r}"
        return found[0]

    def _small(self, most: int = 4096) -> list[Sample]:
        """The samples that are small enough to be damaged many times; at least one."""
        chosen = sorted(self.samples(), key=lambda sample: len(sample.data))
        assert chosen, "samples() gives none"
        small = [sample for sample in chosen if 0 < len(sample.data) <= most]
        assert small, f"samples() gives none of 1 to {most} bytes"
        return small

    def _try(self, inputs: st.SearchStrategy[bytes], check: Callable[[bytes], None]) -> None:
        """Run ``check`` on inputs of a strategy; a failing one is made small and shown."""

        @settings(
            max_examples=self.examples,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(inputs)
        def run(data: bytes) -> None:
            check(data)

        run()

    # --- Tests that hold for any plugin ------------------------------------------------------

    def test_host_takes_the_plugin(self) -> None:
        """Every hook that it implements exists, and all that it registers is what it should be."""
        host = Host(discover=False)
        module = importlib.import_module(self.plugin)
        known = host.register(module, name=self.plugin, distribution="under test")
        assert known.status == "loaded", host.failures

    def test_plugin_is_light_to_import(self) -> None:
        """Importing it and asking for its descriptors loads nothing that takes long."""
        code = (
            "import importlib, sys\n"
            f"sys.path[:0] = {sys.path!r}\n"
            f"module = importlib.import_module({self.plugin!r})\n"
            "for hook in ('fx_readers', 'fx_writers', 'fx_exporters', 'fx_step_kinds'):\n"
            "    list(getattr(module, hook, list)())\n"
            f"print(sorted({set(HEAVY)!r} & sys.modules.keys()))\n"
        )
        done = subprocess.run(  # noqa: S603 (this very interpreter, on the code above)
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert ast.literal_eval(done.stdout) == [], f"{self.plugin} imports {done.stdout}"

    def test_plugin_has_docstrings(self) -> None:
        """The module says what it is, and so does its package."""
        module = importlib.import_module(self.plugin)
        assert module.__doc__, f"{self.plugin} has no docstring"
        package = importlib.import_module(self.plugin.partition(".")[0])
        assert package.__doc__, f"{package.__name__} has no docstring"


class ReaderContract(Contract):
    """What every reader keeps. Give ``plugin``, ``format`` and ``samples()``."""

    format: ClassVar[str]
    memory: ClassVar[tuple[int, int]] = (64 << 20, 200)
    """Bytes that reading a damaged sample may take: a base, and so many per byte of input."""

    def foreign(self) -> Mapping[str, bytes]:
        """Inputs that the sniffer must leave to others, by name."""
        return FOREIGN

    @property
    def reader(self) -> Reader:
        """The reader under test."""
        return self._reader(self.format)

    @property
    def writer(self) -> Writer | None:
        """The writer of the same format, where the plugin has one."""
        writers: list[Writer] = self._descriptors("fx_writers")
        return next((writer for writer in writers if writer.format == self.format), None)

    @property
    def rules(self) -> Catalogue:
        """The reader's catalogue of findings; empty where it declares none."""
        rules = self.reader.rules
        return Catalogue([]) if rules is None else rules()

    def _open(self, data: bytes, **more: Any) -> Capture:
        return open_bytes(self.reader, data, **more)

    # --- The descriptor --------------------------------------------------------------------

    def test_descriptor_is_complete(self) -> None:
        """Names are ones that a command line can take, and there is something to say."""
        reader = self.reader
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", reader.format)
        assert reader.title
        assert not reader.title.endswith("."), "a title is no sentence"
        for suffix in reader.suffixes:
            assert re.fullmatch(r"(\.[a-z0-9]+)+", suffix), suffix

    def test_options_are_documented(self) -> None:
        """Each option says what it does; its default is of its type."""
        _check_options(self.reader.options)
        if self.writer is not None:
            _check_options(self.writer.options)

    def test_public_things_have_docstrings(self) -> None:
        """The capture, its views and the tables of its own say what they give."""
        with self._open(self._small()[0].data) as capture:
            kind = type(capture)
            assert kind.__doc__, kind
            assert kind.__doc__ != Capture.__doc__, f"{kind.__name__} does not say what it is"
            assert capture.format == self.format
            for name, schema in capture.schemas.items():
                assert name == schema.name
                assert schema.doc, name
                for column in schema.columns:
                    assert column.doc, f"{name}.{column.name}"

    def test_standard_tables_keep_their_columns(self) -> None:
        """A plugin may add columns, behind the standard ones and under a prefix; none goes."""
        with self._open(self._small()[0].data) as capture:
            for name, schema in capture.schemas.items():
                if name not in STANDARD_TABLES:
                    continue
                standard = STANDARD_TABLES[name].columns
                assert schema.columns[: len(standard)] == standard, name
                for column in schema.columns[len(standard) :]:
                    assert "_" in column.name, f"{name}.{column.name} has no prefix"

    def test_rules_are_complete(self) -> None:
        """Each rule of the catalogue says what it demands and where that stands."""
        for code, rule in self.rules.items():
            assert re.fullmatch(r"[A-Z]{3,4}[0-9]{4}", code), code
            assert code not in FRAMEWORK_RULES, f"{code} is the framework's"
            assert rule.title, code
            assert rule.rule, code
            assert rule.section, code
            assert rule.ours, f"{code}: what does the reader do about it?"

    # --- Sniffing --------------------------------------------------------------------------

    def _sniff(self, data: bytes, name: str = "") -> Confidence:
        found = self.reader.sniff(Probe(head=data[:HEAD], size=len(data), name=name))
        assert isinstance(found, Confidence), found
        return found

    def test_sniff_knows_its_samples(self) -> None:
        """With the confidence that each of them deserves, whatever the file is called."""
        for sample in self.samples():
            assert self._sniff(sample.data, sample.name) is sample.confidence, sample.name

    def test_sniff_leaves_others_alone(self) -> None:
        """What is none of the format gets NONE, even under the format's own suffix."""
        for name, data in self.foreign().items():
            assert self._sniff(data) is Confidence.NONE, name
            for suffix in self.reader.suffixes:
                assert self._sniff(data, f"x{suffix}") is not Confidence.CERTAIN, name

    def test_sniff_never_raises(self) -> None:
        """Any first bytes have a confidence; a part of a sample has not more than the whole."""
        samples = list(self.samples())
        heads = [sample.data[:512] for sample in samples]
        self._try(byte_strings(heads), lambda data: _only(self._sniff(data)))
        for sample in samples:
            for head in itertools.islice(every_truncation(sample.data), 256):
                assert self._sniff(head) <= sample.confidence, len(head)

    # --- Records ---------------------------------------------------------------------------

    def test_records_cover_the_file(self) -> None:
        """``offset`` and ``nbytes`` of all records tile the input without gap or overlap."""
        for sample in self.samples():
            with self._open(sample.data) as capture:
                _check_cover([(r.offset, r.nbytes) for r in capture.records()], sample.data)

    def test_records_are_json(self) -> None:
        """Each one is a JSON object that names its kind and its place."""
        for sample in self.samples():
            with self._open(sample.data) as capture:
                for record in capture.records():
                    shown = record.to_json()
                    assert isinstance(shown["record"], str)
                    assert (shown["offset"], shown["nbytes"]) == (record.offset, record.nbytes)
                    again = json.loads(json.dumps(shown, allow_nan=False))
                    assert again == shown, "keys are text, values plain JSON"

    def test_records_round_trip(self) -> None:
        """Written again, as they are and by way of JSON text, they are the same bytes."""
        if self.writer is None:
            pytest.skip(f"{self.plugin} does not write {self.format}")
        for sample in self.samples():
            assert self._rewritten(sample.data, as_json=False) == sample.data, sample.name
            assert self._rewritten(sample.data, as_json=True) == sample.data, sample.name

    def test_damaged_records_round_trip(self) -> None:
        """So are those of inputs that nobody meant to write."""
        if self.writer is None:
            pytest.skip(f"{self.plugin} does not write {self.format}")
        small = [sample.data for sample in self._small()]

        def check(data: bytes) -> None:
            assert self._rewritten(data, as_json=True) == data

        self._try(st.one_of(bit_flips(*small), truncations(*small), byte_strings(small)), check)

    def _rewritten(self, data: bytes, *, as_json: bool) -> bytes:
        assert self.writer is not None
        with self._open(data) as capture:
            given: Mapping[str, Any] = getattr(capture, "writer_options", {})
            options = parse_options(given, self.writer.options, whose="writer")
            sink = Sink.memory()
            writer = self.writer.open(sink, options, Diagnostics(self.rules))
            for record in capture.records():
                writer.write(json.loads(json.dumps(record.to_json())) if as_json else record)
            writer.close()
        return sink.getvalue()

    # --- Tables ----------------------------------------------------------------------------

    def test_tables_match_their_schemas(self) -> None:
        """Columns have their types and lengths; rows are counted, offsets lie in the file."""
        for sample in self.samples():
            with self._open(sample.data) as capture:
                for name in capture.tables:
                    _check_table(capture.table(name), len(sample.data))

    def test_references_between_tables_hold(self) -> None:
        """Threads, parents and owners of arguments are rows that exist."""
        for sample in self.samples():
            with self._open(sample.data) as capture:
                _check_references(capture)

    def test_batches_are_the_table(self) -> None:
        """In any size, in order, and never more rows than were asked for."""
        for sample in self.samples():
            with self._open(sample.data) as capture:
                whole = {name: _rows(capture.table(name)) for name in capture.tables}
            most = max((rows for _, rows in whole.values()), default=0)
            for size in BATCH_SIZES:
                if most > 5000 and size < 64:
                    continue  # one by one is for small samples
                with self._open(sample.data) as capture:
                    for name, (columns, rows) in whole.items():
                        parts = list(capture.batches(name, size))
                        assert all(0 < len(part) <= size for part in parts), (name, size)
                        joined = _joined([_rows(part)[0] for part in parts], columns)
                        where = f"{sample.name}, {name} by {size}"
                        assert sum(map(len, parts)) == rows, where
                        assert joined == columns, where

    def test_views_do_not_disturb_each_other(self) -> None:
        """Tables are the same in any order, asked for again, or while records are read."""
        for sample in self._small():
            with self._open(sample.data) as first, self._open(sample.data) as second:
                names = first.tables
                forwards = {name: _rows(first.table(name)) for name in names}
                under_way = second.records()
                next(under_way, None)
                backwards = {name: _rows(second.table(name)) for name in reversed(names)}
                assert forwards == backwards, sample.name
                assert {name: _rows(first.table(name)) for name in names} == forwards
                rest = [record.to_json() for record in under_way]
                assert rest == [record.to_json() for record in first.records()][1:]

    def test_arrays_outlive_the_capture(self) -> None:
        """A column that was asked for stays what it was after ``close()``."""
        for sample in self._small():
            with self._open(sample.data) as capture:
                tables = [capture.table(name) for name in capture.tables]
                before = [_rows(table) for table in tables]
            assert [_rows(table) for table in tables] == before, sample.name

    def test_wrong_requests_are_refused(self) -> None:
        """A table that there is not, a batch of no rows: UsageError, with what there is."""
        with self._open(self._small()[0].data) as capture:
            for ask in (capture.table, capture.batches):
                with pytest.raises(UsageError) as refused:
                    ask("no-such-table")
                assert capture.tables[0] in refused.value.remedy
            for rows in (0, -1):
                with pytest.raises(UsageError):
                    capture.batches(capture.tables[0], rows)

    # --- Findings and summary --------------------------------------------------------------

    def test_findings_are_catalogued_and_placed(self) -> None:
        """Codes are in a catalogue, offsets within the file, messages there."""
        small = [sample.data for sample in self._small()]
        for sample in self.samples():
            with self._open(sample.data) as capture:
                capture.scan()
                _check_findings(capture, self.rules)

        def check(data: bytes) -> None:
            with self._open(data) as capture:
                capture.scan()
                _check_findings(capture, self.rules)

        self._try(bit_flips(*small), _or_fx_error(check))

    def test_sound_samples_have_no_findings(self) -> None:
        """None of WARNING or worse, so that `fxf verify` passes them."""
        for sample in self.samples():
            if sample.sound:
                with self._open(sample.data) as capture:
                    capture.scan()
                    bad = [f for f in capture.diagnostics if f.severity >= Severity.WARNING]
                    assert not bad, sample.name

    def test_findings_are_made_once(self) -> None:
        """Reading again, or by another view, does not report them again."""
        for sample in self._small():
            for data in (sample.data, sample.data[: len(sample.data) * 2 // 3]):
                with self._open(data) as capture:
                    capture.scan()
                    once = capture.diagnostics.counts
                    capture.scan()
                    list(capture.records())
                    for name in capture.tables:
                        capture.table(name)
                        list(capture.batches(name, 3))
                    assert capture.diagnostics.counts == once, sample.name

    def test_strict_stops_at_a_loss(self) -> None:
        """Where lenient reading reports DATA_LOSS, strict reading raises StrictError."""
        lost = 0
        for sample in self._small():
            for data in itertools.islice(every_truncation(sample.data), 1, 200):
                with self._open(data) as capture:
                    capture.scan()
                    worst = capture.diagnostics.worst
                if worst is None or worst < Severity.DATA_LOSS:
                    with self._open(data, strict=True) as capture:
                        capture.scan()
                    continue
                lost += 1
                with pytest.raises(StrictError), self._open(data, strict=True) as capture:
                    capture.scan()
        assert lost, "no truncation of any small sample loses data?"

    def test_summary_counts_the_records(self) -> None:
        """``summary()`` agrees with ``records()`` and can be shown as JSON."""
        for sample in self.samples():
            with self._open(sample.data) as capture:
                summary = capture.summary()
                records = sum(1 for _ in capture.records())
                assert summary.records == records, sample.name
                assert sum(summary.kinds.values()) == records, sample.name
                if summary.start_ns is not None:
                    assert summary.end_ns is not None
                    assert summary.start_ns <= summary.end_ns
                json.dumps(dict(summary.facts), allow_nan=False)
                lengths = {len(cells) for _, cells in summary.timeline}
                assert len(lengths) <= 1, "rows of a timeline are of equal length"

    def test_explain_covers_every_byte(self) -> None:
        """The fields at any offset lie in the record there, and say their section."""
        explain = self.reader.explain
        if explain is None:
            pytest.skip(f"the reader of {self.format} explains no bytes")
        sample = self._small()[0]
        with self._open(sample.data) as capture:
            for record in capture.records():
                for offset in (record.offset, record.offset + record.nbytes - 1):
                    views = explain(capture.source, offset)
                    assert views, f"nothing at byte {offset}"
                    end = record.offset + record.nbytes
                    assert all(record.offset <= view.offset < end for view in views)
                    assert all(view.name and view.section for view in views)

    # --- Inputs that nobody meant ----------------------------------------------------------

    def test_truncation_keeps_the_records_before_it(self) -> None:
        """Cut at any byte, a sample gives all its records up to there, or a coded error."""
        sample = self._small()[-1]
        with self._open(sample.data) as capture:
            whole = [record.to_json() for record in capture.records()]
        for data in every_truncation(sample.data):
            kept = [r for r in whole if r["offset"] + r["nbytes"] <= len(data)]
            try:
                with self._open(data) as capture:
                    found = [record.to_json() for record in capture.records()]
                    for name in capture.tables:
                        _check_table(capture.table(name), len(data))
            except FxError:
                assert not kept, f"{len(data)} bytes hold {len(kept)} records"
                continue
            assert found[: len(kept)] == kept, f"cut at {len(data)}"

    def test_bit_flips_are_survived(self) -> None:
        """Records still cover the file, tables still match, and it takes no longer."""
        small = [sample.data for sample in self._small()]
        self._try(bit_flips(*small), _or_fx_error(self._survive))

    def test_any_bytes_are_survived(self) -> None:
        """Forced through the reader, any bytes give a result or a coded error."""
        small = [sample.data for sample in self._small()]
        self._try(byte_strings(small), _or_fx_error(self._survive))

    def _survive(self, data: bytes) -> None:
        start = time.process_time()
        with self._open(data) as capture:
            _check_cover([(r.offset, r.nbytes) for r in capture.records()], data)
            for name in capture.tables:
                _check_table(capture.table(name), len(data))
            capture.summary()
        spent = time.process_time() - start
        assert spent < self.seconds, f"{len(data)} bytes took {spent:.1f} s"

    def test_memory_follows_the_input(self) -> None:
        """Sizes that a damaged file declares drive no allocation."""
        small = [sample.data for sample in self._small()]
        base, per_byte = self.memory

        def check(data: bytes) -> None:
            tracemalloc.start()
            try:
                with self._open(data) as capture:
                    for name in capture.tables:
                        capture.table(name)
                    for _ in capture.records():
                        pass
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert peak <= base + per_byte * len(data), f"{len(data)} bytes took {peak}"

        self._try(bit_flips(*small), _or_fx_error(check))

    def test_empty_input_is_a_finding_or_an_error(self) -> None:
        """No bytes give no records, and are never passed over in silence."""
        try:
            with self._open(b"") as capture:
                assert list(capture.records()) == []
                for name in capture.tables:
                    if name != "diagnostics":
                        assert len(capture.table(name)) == 0
                capture.scan()
                assert capture.diagnostics.worst is not None
        except FxError:
            return

    # --- Where the bytes come from ---------------------------------------------------------

    def test_paths_and_gzip_give_the_same(self, tmp_path: Path) -> None:
        """A file, a packed file and bytes in memory are read alike."""
        for number, sample in enumerate(self._small()):
            plain = tmp_path / f"{number}-{sample.name}"
            plain.write_bytes(sample.data)
            packed = tmp_path / f"{plain.name}.gz"
            packed.write_bytes(gzip.compress(sample.data))
            with self._open(sample.data) as capture:
                expected = [record.to_json() for record in capture.records()]
            for path in (plain, packed):
                source = Source.open(path)
                with Host(discover=False).read(source, self.reader) as capture:
                    assert [record.to_json() for record in capture.records()] == expected

    def test_close_may_be_called_again(self) -> None:
        """And a capture that was never read can be closed."""
        for sample in self._small():
            capture = self._open(sample.data)
            capture.close()
            capture.close()


class ExporterContract(Contract):
    """What every exporter keeps. Give ``plugin``, ``name`` and ``samples()``.

    The samples are files of ``format``, whose reader is in ``reader_plugin`` where it is not the
    exporter's own plugin.
    """

    name: ClassVar[str]
    accepts: ClassVar[frozenset[str] | str | None] = None
    """Which exporter of that name, where the plugin has several."""
    format: ClassVar[str]
    reader_plugin: ClassVar[str | None] = None
    options: ClassVar[Mapping[str, Any]] = {}
    """Options that differ from their defaults."""

    def check_output(self, output: bytes, capture: Capture) -> None:
        """Assert that an output is sound in itself, such as by parsing it; here, nothing."""

    @property
    def exporter(self) -> Exporter:
        """The exporter under test."""
        exporters: list[Exporter] = self._descriptors("fx_exporters")
        found = [
            exporter
            for exporter in exporters
            if exporter.name == self.name and self.accepts in (None, exporter.accepts)
        ]
        assert len(found) == 1, f"{self.plugin} has {len(found)} such exporters {self.name!r}"
        return found[0]

    @property
    def reader(self) -> Reader:
        """The reader of the samples."""
        if self.reader_plugin is None:
            return self._reader(self.format)
        readers: list[Reader] = list(importlib.import_module(self.reader_plugin).fx_readers())
        return next(reader for reader in readers if reader.format == self.format)

    def _export(
        self, data: bytes, prepare: Callable[[Capture], None] = _untouched
    ) -> tuple[bytes, Mapping[str, int]]:
        sink = Sink.memory()
        with open_bytes(self.reader, data) as capture:
            prepare(capture)
            session = self.exporter.open(sink, self._options())
            session.write(capture)
            dropped = session.close()
            output = sink.getvalue()
            self.check_output(output, capture)
        return output, dropped

    def _options(self) -> dict[str, Any]:
        return parse_options(self.options, self.exporter.options, whose=f"exporter {self.name}")

    # --- The descriptor --------------------------------------------------------------------

    def test_descriptor_is_complete(self) -> None:
        """Names are ones that a command line can take, and there is something to say."""
        exporter = self.exporter
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", exporter.name)
        assert exporter.title
        assert not exporter.title.endswith("."), "a title is no sentence"
        assert exporter.accepts, "it accepts nothing"
        for suffix in exporter.suffixes:
            assert re.fullmatch(r"(\.[a-z0-9]+)+", suffix), suffix

    def test_options_are_documented(self) -> None:
        """Each option says what it does; its default is of its type."""
        _check_options(self.exporter.options)

    def test_it_takes_the_samples(self) -> None:
        """What it says that it accepts is what these captures have."""
        for sample in self.samples():
            with open_bytes(self.reader, sample.data) as capture:
                assert self.exporter.takes(capture.format, capture.tables), sample.name

    def test_session_has_docstrings(self) -> None:
        """What ``open`` gives says what it does."""
        session = self.exporter.open(Sink.memory(), self._options())
        assert inspect.getdoc(type(session)), type(session)

    # --- The output ------------------------------------------------------------------------

    def test_every_sample_is_exported(self) -> None:
        """And the output is sound."""
        for sample in self.samples():
            output, _ = self._export(sample.data)
            assert output, sample.name

    def test_output_is_deterministic(self) -> None:
        """The same capture gives the same bytes."""
        for sample in self.samples():
            assert self._export(sample.data) == self._export(sample.data), sample.name

    def test_output_does_not_depend_on_batches(self) -> None:
        """However large the batches are that a capture gives."""
        for sample in self._small(1 << 16):
            expected = self._export(sample.data)
            for size in BATCH_SIZES:
                found = self._export(sample.data, _rebatch(size))
                assert found == expected, f"{sample.name} by {size}"

    def test_drops_are_reported_by_name(self) -> None:
        """``close()`` gives names and counts; a count of nothing is left out."""
        for sample in self.samples():
            _, dropped = self._export(sample.data)
            for what, count in dropped.items():
                assert what, sample.name
                assert isinstance(what, str)
                assert isinstance(count, int)
                assert count > 0, f"{sample.name}: {what}"

    def test_unknown_columns_are_passed_on_or_reported(self) -> None:
        """A column that a plugin added comes out, or ``close()`` names it."""
        if isinstance(self.exporter.accepts, str):
            pytest.skip(f"it is for {self.exporter.accepts} alone, whose columns it knows")
        name = "zz_added"
        for sample in self._small():
            output, dropped = self._export(sample.data, _widen(name))
            there = name.encode() in output or any(name in what for what in dropped)
            assert there, f"{sample.name}: {name} was lost in silence"

    def test_empty_capture_is_handled(self) -> None:
        """Nothing to write is a sound output or a refusal, never a crash."""
        with _tolerating(FxError):
            self._export(b"")

    def test_damaged_captures_are_handled(self) -> None:
        """What the reader makes of damaged samples can be exported, or is refused."""
        small = [sample.data for sample in self._small()]
        inputs = st.one_of(bit_flips(*small), truncations(*small), byte_strings(small))
        self._try(inputs, _or_fx_error(lambda data: _only(self._export(data))))

    def test_several_captures_are_merged_or_refused(self) -> None:
        """A session that cannot take a second capture says so."""
        sample = self._small()[0]
        sink = Sink.memory()
        with (
            _tolerating(WriteRefusedError, UsageError),
            open_bytes(self.reader, sample.data) as first,
            open_bytes(self.reader, sample.data) as second,
        ):
            session = self.exporter.open(sink, self._options())
            session.write(first)
            session.write(second)
            session.close()
            self.check_output(sink.getvalue(), first)

    # --- The sink --------------------------------------------------------------------------

    def test_a_file_appears_whole_or_not_at_all(self, tmp_path: Path) -> None:
        """The session leaves it to the sink to put the file in its place, or to forget it."""
        sample = next(iter(self.samples()))
        expected, _ = self._export(sample.data)
        target = tmp_path / "out"
        with Sink.open(target) as sink, open_bytes(self.reader, sample.data) as capture:
            session = self.exporter.open(sink, self._options())
            session.write(capture)
            session.close()
            assert not target.exists(), "the session has put the file in place by itself"
        assert target.read_bytes() == expected

    def test_a_failure_leaves_nothing_behind(self, tmp_path: Path) -> None:
        """Neither a part of a file, nor harm to one that stood there."""
        sample = next(iter(self.samples()))
        target = tmp_path / "out"
        target.write_bytes(b"before")

        def export() -> None:
            with (
                open_bytes(self.reader, sample.data) as capture,
                Sink.open(target, force=True) as sink,
            ):
                _break(capture)
                session = self.exporter.open(sink, self._options())
                session.write(capture)
                session.close()

        with pytest.raises(_BrokenCaptureError):
            export()
        assert target.read_bytes() == b"before"
        assert list(tmp_path.iterdir()) == [target]


# --- Checks ------------------------------------------------------------------------------------


def _only(value: object) -> None:
    """Nothing more than that ``value`` could be made."""


class _BrokenCaptureError(Exception):
    """What a capture raises that breaks in the middle."""


class _tolerating:  # noqa: N801 (reads like contextlib.suppress)
    """Like ``contextlib.suppress``, but the errors must say what can be done or what is wrong."""

    def __init__(self, *errors: type[FxError]) -> None:
        self.errors = errors

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, self.errors):
            return False
        assert error.message
        assert error.code
        return True


def _or_fx_error(check: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """``check``, which may also end in a coded error."""

    def run(data: bytes) -> None:
        with _tolerating(FxError):
            check(data)

    return run


def _check_options(options: Iterable[Option]) -> None:
    names = [option.name for option in options]
    assert len(set(names)) == len(names), names
    for option in options:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", option.name), option.name
        assert option.help, option.name
        assert option.type in {bool, int, float, str}, option.name
        assert type(option.default) is option.type, option.name
        assert option.parse(str(option.default)) == option.default, option.name


def _check_cover(places: list[tuple[int, int]], data: bytes) -> None:
    at = 0
    for offset, nbytes in sorted(places):
        assert nbytes > 0, f"the record at {offset} is of no bytes"
        assert offset == at, f"byte {at} is in no record, or in two"
        at += nbytes
    assert at == len(data), f"records end at {at} of {len(data)}"


def _check_findings(capture: Capture, rules: Catalogue) -> None:
    for found in capture.diagnostics:
        assert found.code in rules or found.code in FRAMEWORK_RULES, found
        assert found.message, found
        if found.offset is not None:
            assert 0 <= found.offset <= capture.source.size, found
        if found.record is not None:
            assert found.record >= 0, found
    assert sum(capture.diagnostics.counts.values()) >= len(capture.diagnostics)


_DTYPES = {"code": np.dtype(np.int32), "?": np.dtype(np.bool_)}


def _check_table(table: Table, size: int) -> None:
    assert list(table) == [column.name for column in table.schema.all_columns]
    for column in table.schema.all_columns:
        _check_column(table, column, size)
    if not table.schema.plain:
        assert np.array_equal(table.array("row"), np.arange(len(table)))
        offsets = table.array("offset")
        assert not len(table) or (offsets.min() >= 0 and offsets.max() < max(size, 1))


def _check_column(table: Table, column: Column, size: int) -> None:
    where = f"{table.name}.{column.name}"
    data = table[column.name]
    assert len(data) == len(table), where
    if column.kind == "text":
        assert isinstance(data, TextColumn), where
        assert data.offsets.dtype == np.int64, where
        assert np.all(np.diff(data.offsets) >= 0), where
        assert int(data.offsets[-1]) <= data.data.size, where
        return
    values = np.asarray(data)
    if column.kind in {"bytes", "array"}:
        assert values.shape == (len(table), 2), where
        assert values.dtype == np.int64, where
        if column.kind == "bytes" and len(table):
            assert values.min() >= 0, where
            assert values.sum(axis=1).max() <= size, f"{where} reaches beyond the file"
        return
    assert values.shape == (len(table),), where
    wanted = _DTYPES[column.kind] if column.kind in _DTYPES else np.dtype(column.kind)
    assert values.dtype == wanted, where
    if column.kind == "code" and len(table):
        assert values.min() >= -1, where
        assert values.max() < len(table.pool), f"{where} is not in the pool"


def _check_references(capture: Capture) -> None:
    threads = {-1}
    if _has(capture, "threads"):
        threads |= set(capture.table("threads").array("id").tolist())
    lengths = {name: len(capture.table(name)) for name in capture.tables}
    for name in capture.tables:
        table = capture.table(name)
        for column in ("thread", "prev", "next"):
            if column in table:
                used = set(table.array(column).tolist())
                assert used <= threads, f"{name}.{column}"
    if _has(capture, "slices"):
        slices = capture.table("slices")
        parents = slices.array("parent")
        _check_rows(parents, len(slices), "slices.parent")
        nested = parents >= 0
        depth = slices.array("depth")
        assert np.all(depth >= 0)
        assert np.all(depth[~nested] == 0), "a slice without a parent is at depth 0"
        assert np.all(depth[nested] <= depth[parents[nested]] + 1)
        assert np.all(slices.array("dur") >= -1)
    if _has(capture, "flows"):
        _check_rows(capture.table("flows").array("slice"), lengths.get("slices", 0), "flows.slice")
    if _has(capture, "args"):
        args = capture.table("args")
        owners, parents = args.array("table"), args.array("parent")
        for code, name in enumerate(STANDARD_TABLES):
            if name in lengths:
                _check_rows(parents[owners == code], lengths[name], f"args.parent in {name}")


def _has(capture: Capture, name: str) -> bool:
    return name in capture.tables


def _check_rows(rows: Any, count: int, where: str) -> None:
    if rows.size:
        assert rows.min() >= -1, where
        assert rows.max() < count, where


# --- Tables as plain values --------------------------------------------------------------------

Columns = dict[str, list[Any]]


def _rows(table: Table) -> tuple[Columns, int]:
    """A table as lists of plain values that can be compared: codes resolved, NaN as its bits."""
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


def _joined(parts: list[Columns], like: Columns) -> Columns:
    return {name: [value for part in parts for value in part[name]] for name in like}


# --- Captures made difficult -------------------------------------------------------------------


def _rebatch(size: int) -> Callable[[Capture], None]:
    """Make a capture give batches of ``size`` rows at most, whatever is asked for."""

    def prepare(capture: Capture) -> None:
        original = capture.batches

        def batches(name: str, rows: int = size) -> Iterator[Table]:
            return original(name, min(rows, size))

        vars(capture).update(batches=batches)

    return prepare


def _break(capture: Capture) -> None:
    """Make every view of a capture fail after its first item."""

    def failing(view: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def broken(*args: Any, **kwargs: Any) -> Iterator[Any]:
            yield from itertools.islice(view(*args, **kwargs), 1)
            raise _BrokenCaptureError

        return broken

    def no_table(name: str) -> Table:
        raise _BrokenCaptureError(name)

    vars(capture).update(
        batches=failing(capture.batches), records=failing(capture.records), table=no_table
    )


def _widen(name: str) -> Callable[[Capture], None]:
    """Give every table of a capture one more column, of integers."""
    extra = Column(name, "i8", "added by a test")

    def wider(given: Table) -> Table:
        columns: dict[str, ColumnData] = {column: given[column] for column in given}
        columns[name] = np.arange(len(given), dtype=np.int64)
        return Table(given.schema.extended(extra), len(given), columns, given.pool)

    def prepare(capture: Capture) -> None:
        # The capture makes its tables as it always does: of itself as it was.
        inner = copy.copy(capture)
        table, batches = inner.table, inner.batches
        vars(capture).update(
            schemas={key: schema.extended(extra) for key, schema in capture.schemas.items()},
            table=lambda which: wider(table(which)),
            batches=lambda which, rows=65536: map(wider, batches(which, rows)),
        )

    return prepare
