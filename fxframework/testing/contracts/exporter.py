"""The contract of exporters."""

from __future__ import annotations

import copy
import inspect
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from hypothesis import strategies as st

from fxframework.errors import FxError, UsageError, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.schema import Column
from fxframework.model.table import ColumnData, Table
from fxframework.registry import Exporter, Reader, parse_options
from fxframework.testing.contracts.base import BATCH_SIZES, Contract, open_bytes
from fxframework.testing.contracts.checks import check_options, only, or_fx_error, skip, tolerating
from fxframework.testing.strategies import bit_flips, byte_strings, truncations

__all__ = ["ExporterContract"]


class BrokenCaptureError(Exception):
    """What a capture raises that breaks in the middle."""


def untouched(_capture: Capture) -> None:
    """Leave a capture as it is."""


class ExporterContract(Contract):
    """What every exporter keeps. Give ``plugin``, ``name`` and ``samples()``.

    The samples are files of ``format``, whose reader is in ``reader_plugin`` where it is not the
    exporter's own plugin.
    """

    name: ClassVar[str]
    """The name of the exporter."""
    accepts: ClassVar[frozenset[str] | str | None] = None
    """Which exporter of that name, where the plugin has several."""
    format: ClassVar[str]
    """The format of the samples."""
    reader_plugin: ClassVar[Any] = None
    """The module of the hooks that read the samples; None: the exporter's own."""
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
        assert len(found) == 1, f"{self._plugin_name} has {len(found)} such exporters {self.name!r}"
        return found[0]

    @property
    def reader(self) -> Reader:
        """The reader of the samples."""
        if self.reader_plugin is None:
            return self._reader(self.format)
        readers: list[Reader] = list(self._imported(self.reader_plugin).fx_readers())
        return next(reader for reader in readers if reader.format == self.format)

    def _export(
        self, data: bytes, prepare: Callable[[Capture], None] = untouched
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
        assert not exporter.title.endswith("."), "a title has no full stop"
        assert exporter.accepts, "it accepts nothing"
        for suffix in exporter.suffixes:
            assert re.fullmatch(r"(\.[a-z0-9]+)+", suffix), suffix

    def test_options_are_documented(self) -> None:
        """Each option says what it does; its default is of its type."""
        check_options(self.exporter.options)

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
                found = self._export(sample.data, rebatch(size))
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
            skip(f"it is for {self.exporter.accepts} alone, whose columns it knows")
        name = "zz_added"
        for sample in self._small():
            output, dropped = self._export(sample.data, widen(name))
            there = name.encode() in output or any(name in what for what in dropped)
            assert there, f"{sample.name}: {name} was lost in silence"

    def test_empty_capture_is_handled(self) -> None:
        """Nothing to write is a sound output or a refusal, never a crash."""
        with tolerating(FxError):
            self._export(b"")

    def test_damaged_captures_are_handled(self) -> None:
        """What the reader makes of damaged samples can be exported, or is refused."""
        small = [sample.data for sample in self._small()]
        inputs = st.one_of(bit_flips(*small), truncations(*small), byte_strings(small))
        self._try(inputs, or_fx_error(lambda data: only(self._export(data))))

    def test_several_captures_are_merged_or_refused(self) -> None:
        """A session that cannot take a second capture says so."""
        sample = self._small()[0]
        sink = Sink.memory()
        with (
            tolerating(WriteRefusedError, UsageError),
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
        """Neither a part of a file, nor harm to an existing one."""
        sample = next(iter(self.samples()))
        target = tmp_path / "out"
        target.write_bytes(b"before")

        def export() -> None:
            with (
                open_bytes(self.reader, sample.data) as capture,
                Sink.open(target, force=True) as sink,
            ):
                break_off(capture)
                session = self.exporter.open(sink, self._options())
                session.write(capture)
                session.close()

        try:
            export()
        except BrokenCaptureError:
            pass
        else:
            raise AssertionError("the session hides that the capture failed in the middle")
        assert target.read_bytes() == b"before"
        assert list(tmp_path.iterdir()) == [target]


# --- Captures made difficult -------------------------------------------------------------------


def rebatch(size: int) -> Callable[[Capture], None]:
    """Make a capture give batches of ``size`` rows at most, whatever is asked for."""

    def prepare(capture: Capture) -> None:
        original = capture.batches

        def batches(name: str, rows: int = size) -> Iterator[Table]:
            return original(name, min(rows, size))

        vars(capture).update(batches=batches)

    return prepare


def break_off(capture: Capture) -> None:
    """Make every view of a capture fail after its first item."""

    def failing(view: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def broken(*args: Any, **kwargs: Any) -> Iterator[Any]:
            yield from itertools.islice(view(*args, **kwargs), 1)
            raise BrokenCaptureError

        return broken

    def no_table(name: str) -> Table:
        raise BrokenCaptureError(name)

    vars(capture).update(
        batches=failing(capture.batches), records=failing(capture.records), table=no_table
    )


def widen(name: str) -> Callable[[Capture], None]:
    """Give every table of a capture one more column, of integers."""
    extra = Column(name, "i8", "added by a test")

    def wider(given: Table) -> Table:
        columns: dict[str, ColumnData] = {column: given[column] for column in given.columns}
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
