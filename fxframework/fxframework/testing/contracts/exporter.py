"""The contract of exporters."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs
import numpy as np

from fxframework.errors import FxError, UsageError, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.schema import STANDARD_TABLES
from fxframework.model.table import Table
from fxframework.registry import Exporter, Reader, parse_options
from fxframework.testing.contracts.base import (
    BATCH_SIZES,
    Contract,
    Sample,
    descriptors,
    open_bytes,
)
from fxframework.testing.contracts.changed import (
    BrokenCaptureError,
    Change,
    break_off,
    check_missing,
    rebatch,
    rename,
    shifted,
    untouched,
    widen,
)
from fxframework.testing.contracts.checks import (
    check_dropped,
    check_same,
    or_fx_error,
    rows_of,
    skip,
    tolerating,
)
from fxframework.testing.contracts.choosing import selections_of
from fxframework.testing.contracts.generated import SEEDS, GeneratedCapture
from fxframework.testing.contracts.repetition import ask, hashes_of
from fxframework.testing.contracts.sinks import WatchedSink
from fxframework.testing.contracts.watching import watched

__all__ = ["ExporterContract"]

ODD = b"\"'\\<&>,;\t\r\n\0\xff\xc3\xa9"
"""Unusual bytes for names, which may contain any bytes."""
KEPT_FILES = ("/dev/null",)
"""Files that may be opened for writing and exist afterwards."""
ROWS = 12
"""Rows of a table that are removed and relabelled, one at a time."""


@attrs.frozen
class Input:
    """A capture to export: a sample, or one that is generated."""

    name: str
    open: Callable[[], Capture]
    checked: bool = True
    """Whether ``check_output()`` knows such captures."""


class ExporterContract(Contract):
    """Contract of every exporter. Provide ``plugin``, ``name``, ``format`` and ``samples()``.

    The samples are files of ``format``, whose reader is in ``reader_plugin`` if not in the
    exporter's plugin.
    """

    name: ClassVar[str]
    """The name of the exporter."""
    accepts: ClassVar[frozenset[str] | str | None] = None
    """Identifies the exporter if the plugin has several of that name."""
    format: ClassVar[str]
    """The format of the samples."""
    reader_plugin: ClassVar[Any] = None
    """The module of the reader's hooks; None: the exporter's plugin."""
    options: ClassVar[Mapping[str, Any]] = {}
    """Options that differ from their defaults."""

    def check_output(self, output: bytes, capture: Capture) -> None:
        """Assert that an output is valid, for example by parsing it; by default nothing."""

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
    def item(self) -> Exporter:
        """The exporter."""
        return self.exporter

    @property
    def reader(self) -> Reader:
        """The reader of the samples."""
        if self.reader_plugin is None:
            return self._reader(self.format)
        readers: list[Reader] = descriptors(self._imported(self.reader_plugin), "fx_readers")
        return next(reader for reader in readers if reader.format == self.format)

    def _input(self, sample: Sample) -> Input:
        return Input(sample.name, functools.partial(open_bytes, self.reader, sample.data))

    def _inputs(self, most: int = 4096) -> Iterator[Input]:
        """Yield the small samples, and generated captures if the exporter goes by their tables."""
        yield from map(self._input, self._small(most))
        for seed in SEEDS if not isinstance(self.exporter.accepts, str) else ():
            made = Input(
                f"generated capture {seed}", functools.partial(GeneratedCapture, seed), False
            )
            with made.open() as capture:
                taken = self.exporter.takes(capture.format, capture.tables)
            if taken:
                with contextlib.suppress(WriteRefusedError):
                    self._export(made)
                    yield made

    def _export(
        self,
        given: Input,
        prepare: Change = untouched,
        *,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[bytes, Mapping[str, int]]:
        """Export an input, changed by ``prepare``; return the output and what was dropped."""
        sink = Sink.memory()
        with given.open() as capture:
            prepare(capture)
            dropped = self._written(sink, capture, options=options)
            output = sink.getvalue()
            if given.checked and prepare is untouched and options is None:
                self.check_output(output, capture)
        return output, dropped

    def _export_bytes(self, data: bytes) -> None:
        self._export(self._input(Sample("a damaged sample", data)))

    def _written(
        self, sink: Sink, *captures: Capture, options: Mapping[str, Any] | None = None
    ) -> Mapping[str, int]:
        """Write captures with one session; return what it dropped."""
        session = self.exporter.open(sink, self._options(options))
        for capture in captures:
            before = sink.written
            try:
                session.write(capture)
            except WriteRefusedError:
                assert sink.written == before, (
                    f"sink: a capture is refused after {sink.written - before} bytes were written"
                )
                raise
        return session.close()

    def _options(self, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
        own = self.options if given is None else given
        return parse_options(own, self.exporter.options, whose=f"exporter {self.name}")

    # --- The descriptor --------------------------------------------------------------------

    def test_it_takes_the_samples(self) -> None:
        """The exporter accepts captures of the samples."""
        for sample in self.samples():
            with open_bytes(self.reader, sample.data) as capture:
                assert self.exporter.takes(capture.format, capture.tables), (
                    f"accepts: exporter {self.name} does not take {sample.name}, which has "
                    f"{', '.join(capture.tables)}"
                )

    # --- The output ------------------------------------------------------------------------

    def test_every_sample_is_exported(self) -> None:
        """Every sample gives a valid output."""
        for sample in self.samples():
            output, _ = self._export(self._input(sample))
            assert output, f"output: {sample.name} gives no bytes"

    def test_output_is_deterministic(self) -> None:
        """The same capture always gives the same bytes."""
        for given in (*map(self._input, self.samples()), *self._inputs()):
            self._check_alike(given, untouched, f"{given.name}, exported again,")

    def test_output_does_not_depend_on_batches(self) -> None:
        """Batches of any size give the same output."""
        for given in self._inputs(1 << 16):
            for size in BATCH_SIZES:
                what = f"{given.name} in batches of {size} rows"
                self._check_alike(given, rebatch(size), what)

    def _check_alike(self, given: Input, change: Change, what: str) -> None:
        """Check that a change makes no difference to the output and to what is dropped."""
        expected, found = self._export(given), self._export(given, change)
        check_same(found[0], expected[0], f"output of {what}")
        assert found[1] == expected[1], f"dropped: {what} drops {found[1]}, not {expected[1]}"

    def test_another_process_exports_the_same(self) -> None:
        """Another process, with another hash seed, writes the same bytes."""
        home = self.plugin if self.reader_plugin is None else self.reader_plugin
        if not isinstance(self.plugin, str) or not isinstance(home, str):
            skip("the plugin is not a module that another process can import")
        sample = self._small()[-1]
        output, dropped = self._export(self._input(sample), options=self.options)
        here = hashes_of({"output": output, "dropped": sorted((dropped or {}).items())})
        own = self.exporter.name, self.exporter.accepts
        exporters = self._descriptors("fx_exporters")
        number = [(each.name, each.accepts) for each in exporters].index(own)
        there = ask(
            {"path": sys.path, "plugin": home, "format": self.format, "data": sample.data.hex(),
             "exporter_plugin": self.plugin, "exporter": number, "options": self._options()}
        )  # fmt: skip
        assert "error" not in there, f"another process cannot export: {there['error']}"
        differ = [name for name, digest in here.items() if there.get(name) != digest]
        assert not differ, (
            f"output: another process with another seed of hashes exports {sample.name} otherwise: "
            f"{', '.join(differ)} differ"
        )

    def test_drops_are_reported_by_name(self) -> None:
        """``close()`` returns names with positive counts."""
        for given in (*map(self._input, self.samples()), *self._inputs()):
            check_dropped(self._export(given)[1], f"dropped of {given.name}")

    def test_unknown_columns_are_passed_on_or_reported(self) -> None:
        """A column added by a plugin is in the output, or ``close()`` reports it."""
        if isinstance(self.exporter.accepts, str):
            skip(f"it is for {self.exporter.accepts} alone, whose columns it knows")
        name = "zz_added"
        for given in self._inputs():
            output, dropped = self._export(given, widen(name))
            there = name.encode() in output or any(name in what for what in dropped)
            assert there, (
                f"dropped: {given.name} with a column {name} more: close() does not report that "
                "it was left out"
            )

    def _rows(self) -> Iterator[tuple[Input, Table, list[int]]]:
        """Yield inputs with the tables that the exporter takes, and some or all of their rows.

        Arguments of rows that are left out are counted with these.
        """
        if isinstance(self.exporter.accepts, str):
            skip(f"it is for {self.exporter.accepts} alone, whose records it may read")
        for given in self._inputs():
            _, dropped = self._export(given)
            gone = [n for n, name in enumerate(STANDARD_TABLES) if any(name in d for d in dropped)]
            with given.open() as capture:
                tables = [capture.table(name) for name in capture.tables]
            for table in tables:
                if table.name not in self.exporter.accepts or "row" not in table:
                    continue
                rows = table.array("row")
                if table.name == "args":
                    rows = rows[~np.isin(table.array("table"), gone)]
                most = len(rows) if table.name == "slices" else ROWS
                if len(rows) > 1:
                    yield given, table, rows[:: -(-len(rows) // most)].tolist()

    def test_a_row_that_is_missing_is_noticed(self) -> None:
        """Without one of its rows, a capture gives another output, or `close()` counts it."""
        for given, table, rows in self._rows():
            check_missing(functools.partial(self._export, given), table.name, rows, given.name)

    def test_empty_capture_is_handled(self) -> None:
        """An empty capture gives a valid output or a coded error."""
        with tolerating(FxError):
            self._export_bytes(b"")

    def test_damaged_captures_are_handled(self) -> None:
        """Captures of damaged samples are exported or refused with a coded error."""
        self._try(self._damaged(), or_fx_error(self._export_bytes))

    def test_several_captures_are_merged_or_refused(self) -> None:
        """A session merges a second capture or refuses it with a coded error."""
        sample = self._small()[0]
        sink = Sink.memory()
        with (
            tolerating(WriteRefusedError, UsageError),
            open_bytes(self.reader, sample.data) as first,
            open_bytes(self.reader, sample.data) as second,
        ):
            self._written(sink, first, second)
            self.check_output(sink.getvalue(), first)

    def test_close_without_a_capture_is_handled(self) -> None:
        """A session without a capture closes, or raises a coded error."""
        with tolerating(FxError):
            check_dropped(
                self._written(Sink.memory()), "close() of a session that was given nothing"
            )

    def test_switches_are_taken(self) -> None:
        """Each switch, inverted, gives an output or a coded error."""
        sample = self._small()[0]
        for option in self.exporter.options:
            if option.type is not bool:
                continue
            given = {**self.options, option.name: not self._options()[option.name]}
            with tolerating(FxError):
                output, _ = self._export(self._input(sample), options=given)
                assert output, f"option {option.name}: the other way, it gives no bytes"

    def test_parts_are_exported(self) -> None:
        """A selection of a capture, as by --since, is exported or refused with a coded error."""
        for given in self._inputs():
            with given.open() as capture:
                selections = [*selections_of(capture)][:4]
            for selection in selections:
                with tolerating(FxError), given.open() as capture:
                    dropped = self._written(Sink.memory(), capture.select(selection))
                    check_dropped(dropped, f"dropped of a part of {given.name}")

    def test_odd_texts_are_exported(self) -> None:
        """Names with quotes, line ends, NUL and invalid UTF-8 are exported or refused."""
        for given in self._inputs():
            with tolerating(FxError):
                output, _ = self._export(given, rename(ODD))
                assert output, f"output: {given.name} with odd names gives no bytes"

    def test_times_at_the_ends_are_exported(self) -> None:
        """Negative times and times near the limits of int64 are exported or refused."""
        for given in self._inputs():
            for shift in (-(1 << 62), (1 << 62)):
                with tolerating(FxError):
                    self._export(given, shifted(shift))

    # --- Side effects ----------------------------------------------------------------------

    def test_captures_are_left_as_they_were(self) -> None:
        """The session does not change the tables that it reads."""
        for given in self._inputs():
            with given.open() as capture:
                before = {name: rows_of(capture.table(name)) for name in capture.tables}
                with tolerating(FxError):
                    self._written(Sink.memory(), capture)
                for name, rows in before.items():
                    assert rows_of(capture.table(name)) == rows, (
                        f"capture: the session changes the table {name} of {given.name}"
                    )

    def test_sessions_do_not_disturb_each_other(self) -> None:
        """Two sessions at once write the same as one alone."""
        sample = self._small()[0]
        alone, _ = self._export(self._input(sample))
        sinks = Sink.memory(), Sink.memory()
        with (
            open_bytes(self.reader, sample.data) as first,
            open_bytes(self.reader, sample.data) as second,
        ):
            sessions = [self.exporter.open(sink, self._options()) for sink in sinks]
            for session, capture in zip(sessions, (first, second), strict=True):
                session.write(capture)
            for session in reversed(sessions):
                session.close()
        for sink in sinks:
            check_same(sink.getvalue(), alone, "output of one of two sessions at once")

    def test_it_writes_to_its_sink_only(self, tmp_path: Path) -> None:
        """The session prints nothing, leaves no file, uses no network, and leaves the sink open."""
        sample = self._small()[0]
        self._export(self._input(sample))  # trigger imports before watching
        sink = WatchedSink()
        before = Path.cwd()
        os.chdir(tmp_path)
        try:
            with watched(streams=True) as events, open_bytes(self.reader, sample.data) as capture:
                self._written(sink, capture)
        finally:
            os.chdir(before)
        sink.check_left_open(f"exporter {self.name}")
        left = [path.name for path in tmp_path.iterdir()]
        assert not left, f"sink: exporter {self.name} writes {', '.join(left)} beside its sink"
        for event in events:
            path = event.partition("'")[2].rpartition("'")[0]
            if event.startswith(("prints", "uses", "starts")):
                raise AssertionError(f"sink: exporter {self.name} {event}")
            if event.startswith("writes") and Path(path).exists() and path not in KEPT_FILES:
                raise AssertionError(f"sink: exporter {self.name} {event} beside its sink")

    # --- The sink --------------------------------------------------------------------------

    def test_a_file_appears_whole_or_not_at_all(self, tmp_path: Path) -> None:
        """The file appears only when the sink is committed."""
        sample = next(iter(self.samples()))
        expected, _ = self._export(self._input(sample))
        target = tmp_path / "out"
        with Sink.open(target) as sink, open_bytes(self.reader, sample.data) as capture:
            self._written(sink, capture)
            assert not target.exists(), "sink: the session puts the file in place by itself"
        check_same(target.read_bytes(), expected, "sink: the file")

    def test_a_failure_leaves_nothing_behind(self, tmp_path: Path) -> None:
        """After a failure there is no partial file, and an existing file is unchanged."""
        sample = next(iter(self.samples()))
        target = tmp_path / "out"
        target.write_bytes(b"before")
        raised = False
        try:
            with (
                open_bytes(self.reader, sample.data) as capture,
                Sink.open(target, force=True) as sink,
            ):
                break_off(capture)
                self._written(sink, capture)
        except BrokenCaptureError:
            raised = True
        assert raised, "sink: the session hides that the capture failed in the middle"
        assert target.read_bytes() == b"before", "sink: a failure harms the file that was there"
        left = [path.name for path in tmp_path.iterdir() if path != target]
        assert not left, f"sink: a failure leaves {', '.join(left)} behind"
