"""The contract of exporters."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from fxframework.batch_exporter import LOCATING
from fxframework.errors import FxError
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.schema import Column
from fxframework.registry import Exporter, parse_options
from fxframework.testing.contracts.base import BATCH_SIZES, descriptors
from fxframework.testing.contracts.changed import (
    REFERENCES,
    BrokenCaptureError,
    Change,
    alter,
    break_off,
    enlarge,
    lengthen,
    rebatch,
    rename,
    shifted,
    untouched,
)
from fxframework.testing.contracts.checks import check_same, rows_of, skip, tables_of, tolerating
from fxframework.testing.contracts.choosing import selections_of
from fxframework.testing.contracts.expectation import Sample
from fxframework.testing.contracts.repetition import ask
from fxframework.testing.contracts.sessions import Input, Sessions
from fxframework.testing.contracts.watching import WatchedSink, watched

__all__ = ["ExporterContract"]

ODD = b"\"'\\<&>,;\t\r\n\0\xff\xc3\xa9"
"""Unusual bytes for names, which may contain any bytes."""
KEPT_FILES = ("/dev/null",)
"""Files that may be opened for writing and exist afterwards."""


class ExporterContract(Sessions):
    """Contract of every exporter. Provide ``plugin``, ``name``, ``format`` and ``samples()``.

    The samples are files of ``format``, whose reader is in ``reader_plugin`` if not in the
    exporter's plugin.
    """

    noun: ClassVar[str] = "exporter"
    name: ClassVar[str]
    """The name of the exporter."""
    accepts: ClassVar[frozenset[str] | str | None] = None
    """Identifies the exporter if the plugin has several of that name."""
    options: ClassVar[Mapping[str, Any]] = {}
    """Options that differ from their defaults."""

    def check_output(self, output: bytes, capture: Capture) -> None:
        """Assert that an output is valid, for example by parsing it; by default nothing."""

    @property
    def exporter(self) -> Exporter:
        """The exporter under test."""
        exporter: Exporter = self.item
        return exporter

    def _found(self) -> list[Any]:
        return [
            exporter for exporter in super()._found() if self.accepts in (None, exporter.accepts)
        ]

    def _options(self, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
        values = self.options if options is None else options
        return parse_options(values, self.exporter.options, whose=f"exporter {self.name}")

    def _session(self, sink: Sink, options: Mapping[str, Any] | None = None) -> Any:
        return self.exporter.open(sink, self._options(options))

    def _takes(self, capture: Capture) -> bool:
        return self.exporter.takes(capture.format, capture.tables)

    def _check_output(self, output: bytes, capture: Capture, input: Input) -> None:
        if input.is_sample:
            self.check_output(output, capture)

    def _every_input(self) -> Iterator[Input]:
        """Yield all samples, of any size, and generated captures."""
        return itertools.chain(map(self._input, self.samples()), self._generated())

    # --- The output ------------------------------------------------------------------------

    def test_every_sample_is_exported(self) -> None:
        """The exporter accepts every sample, gives a valid output, and names what it drops."""
        for sample, capture in self._opened():
            table_names = ", ".join(capture.tables)
            assert self._takes(capture), (
                f"accepts: exporter {self.name} does not take {sample.name}, which has "
                f"{table_names}"
            )
            output, _ = self._written(self._input(sample))
            assert output, f"output: {sample.name} gives no bytes"

    def test_output_is_deterministic(self) -> None:
        """The same capture always gives the same bytes."""
        for input in self._every_input():
            usual = self._written(input)
            self._check_alike(input, untouched, usual, f"{input.name}, exported again,")

    def test_output_does_not_depend_on_batches(self) -> None:
        """Batches of any size give the same output."""
        for input in self._inputs():
            usual = self._written(input)
            for size in BATCH_SIZES:
                what = f"{input.name} in batches of {size} rows"
                self._check_alike(input, rebatch(size), usual, what)

    def _check_alike(
        self, input: Input, change: Change, usual: tuple[bytes, Mapping[str, int]], what: str
    ) -> None:
        """Check that a change makes no difference to the output and to what is dropped."""
        usual_output, usual_dropped = usual
        output, dropped = self._written(input, change)
        check_same(output, usual_output, f"output of {what}")
        assert dropped == usual_dropped, f"dropped: {what} drops {dropped}, not {usual_dropped}"

    def test_another_process_exports_the_same(self) -> None:
        """Another process, with another hash seed, writes the same bytes."""
        reader_module = self.plugin if self.reader_plugin is None else self.reader_plugin
        if not isinstance(self.plugin, str) or not isinstance(reader_module, str):
            skip("the plugin is not a module that another process can import")
        sample = self._small()[-1]
        output, dropped = self._written(self._input(sample), options=self.options)
        wanted = {"output": output, "dropped": sorted(dropped.items())}
        # Several exporters may have this name: the other process finds this one by its number.
        namesakes = [
            exporter.accepts for exporter in descriptors(self.plugin, "exporter", self.name)
        ]
        ask(
            wanted,
            f"it exports {sample.name}",
            plugin=reader_module,
            format=self.format,
            data=sample.data.hex(),
            exporter_plugin=self.plugin,
            options=self._options(),
            exporter=[self.name, namesakes.index(self.exporter.accepts)],
        )

    def test_unknown_columns_are_passed_on_or_reported(self) -> None:
        """A column added by a plugin is in the output, or ``close()`` reports it."""
        self._need_tables()
        self._check_added_columns(self._inputs())

    def test_a_row_that_is_missing_is_noticed(self) -> None:
        """Without one of its rows, a capture gives another output, or `close()` counts it."""
        self._need_tables()
        self._check_missing_rows(self._inputs())

    def test_columns_that_it_claims_are_written(self) -> None:
        """Other values in a column of ``writes`` give another output, in each table."""
        if not self.exporter.writes:
            skip("it names no columns that it writes")
        # By table and column: whether other values have had no effect in any input.
        is_ignored: dict[tuple[str, str], bool] = {}
        for input in self._inputs():
            usual_output, _ = self._written(input)
            for table, column in self._columns(input):
                place = (table, column.name)
                is_claimed = column.name in self.exporter.writes
                if not is_claimed or not is_ignored.get(place, True):
                    continue
                if self._can_alter(input, *place):
                    output, _ = self._outcome(input, alter(*place))  # a failure is an effect, too
                    is_ignored[place] = output == usual_output
        for place, without_effect in is_ignored.items():
            assert not without_effect, (
                f"writes: other values of {'.'.join(place)} give the same output: leave it out of "
                "writes=, so that its values are counted as left out, or write it"
            )

    def test_values_are_written_whole(self) -> None:
        """A column that has an effect on the output is written whole.

        Long texts that differ in the case of their last letter, and numbers that differ by 2**32,
        give different outputs.
        """
        self._need_tables()
        for input in itertools.islice(self._generated(), 1):
            usual_outcome = self._outcome(input)
            for table, column in self._columns(input):
                place = (table, column.name)
                if column.kind in ("code", "text"):
                    what = "long texts that end with a and with A"
                    outcome_a = self._outcome(input, lengthen(*place, b"a"))
                    outcome_b = self._outcome(input, lengthen(*place, b"A"))
                elif column.kind in ("i8", "u8") and column.name not in LOCATING | REFERENCES:
                    what = "numbers 2**32 apart"
                    outcome_a = usual_outcome
                    outcome_b = self._outcome(input, enlarge(*place))
                else:
                    continue
                _, dropped = outcome_a
                is_counted = dropped != usual_outcome[1]  # what is cut
                if outcome_a == outcome_b and not is_counted:
                    # The same is right only for a column that is not written at all.
                    outcome = self._outcome(input, alter(*place))
                    assert outcome == usual_outcome, (
                        f"output: {'.'.join(place)} is not written whole: {what} give the same "
                        "output"
                    )

    def _outcome(self, input: Input, change: Change = untouched) -> tuple[Any, Any]:
        """Return the output of an input and what was dropped, or the exception of a failure."""
        try:
            return self._written(input, change)
        except Exception as error:  # noqa: BLE001 (what is not written is not cut)
            return error, None

    def _columns(self, input: Input) -> Iterator[tuple[str, Column]]:
        """Yield the columns of an input that the exporter may write, each behind its table."""
        with input.open() as capture:
            for name in sorted(self._accepted & {*capture.tables}):
                for column in capture.table(name).schema.all_columns:
                    yield name, column

    def _can_alter(self, input: Input, table: str, column: str) -> bool:
        """Return whether a column can have other values in an input."""
        with input.open() as capture:
            rows_before = rows_of(capture.table(table))
            alter(table, column)(capture)
            return rows_of(capture.table(table)) != rows_before

    def _need_tables(self) -> None:
        """Skip the test if the exporter goes by a format."""
        if not self._accepted:
            skip(f"it is for {self.exporter.accepts} alone, whose records and columns it knows")

    # --- Odd captures ----------------------------------------------------------------------

    def test_empty_capture_is_handled(self) -> None:
        """An empty capture gives a valid output or a coded error."""
        self._export_bytes(b"")

    def test_damaged_captures_are_handled(self) -> None:
        """Captures of damaged samples are exported or refused with a coded error."""
        self._try_damaged(self._export_bytes)

    def _export_bytes(self, data: bytes) -> None:
        with tolerating(FxError):
            self._written(self._input(Sample("a damaged sample", data)))

    def test_close_without_a_capture_is_handled(self) -> None:
        """A session without a capture closes, or raises a coded error."""
        with tolerating(FxError):
            self._write(Sink.memory())

    def test_switches_are_taken(self) -> None:
        """Each switch, inverted, gives an output or a coded error."""
        input = self._input(self._small()[0])
        for option in self.exporter.options:
            if option.type is bool:
                default = self._options()[option.name]
                options = {**self.options, option.name: not default}
                with tolerating(FxError):
                    output, _ = self._written(input, options=options)
                    assert output, f"option {option.name}: the other way, it gives no bytes"

    def test_parts_are_exported(self) -> None:
        """A selection of a capture, as by --since, is exported or refused with a coded error."""
        for input in self._inputs():
            with input.open() as capture:
                selections = [*selections_of(capture)][:4]
            for selection in selections:
                with tolerating(FxError), input.open() as capture:
                    self._write(Sink.memory(), capture.select(selection))

    def test_odd_captures_are_exported(self) -> None:
        """Odd names, negative times and times near the limits of int64 are exported or refused.

        The names have quotes, line ends, NUL and invalid UTF-8.
        """
        for input in self._inputs():
            for change in (rename(ODD), shifted(-(1 << 62)), shifted(1 << 62)):
                with tolerating(FxError):
                    output, _ = self._written(input, change)
                    assert output, f"output: {input.name} with odd values gives no bytes"

    # --- Side effects ----------------------------------------------------------------------

    def test_captures_are_left_as_they_were(self) -> None:
        """The session does not change the tables that it reads."""
        for input in self._inputs():
            with input.open() as capture:
                tables_before = tables_of(capture)
                with tolerating(FxError):
                    self._write(Sink.memory(), capture)
                what = f"capture: the session changes the tables of {input.name}"
                check_same(tables_of(capture), tables_before, what)

    def test_sessions_do_not_disturb_each_other(self) -> None:
        """Two sessions at once write the same as one alone."""
        input = self._input(self._small()[0])
        output_alone, _ = self._written(input)
        pairs = [(sink, self._session(sink)) for sink in (Sink.memory(), Sink.memory())]
        with input.open() as first_capture, input.open() as second_capture:
            for (_, session), capture in zip(pairs, (first_capture, second_capture), strict=True):
                session.write(capture)
            for sink, session in reversed(pairs):
                session.close()
                check_same(sink.getvalue(), output_alone, "output of one of two sessions at once")

    def test_it_writes_to_its_sink_only(self, tmp_path: Path) -> None:
        """The session prints nothing, leaves no file, uses no network, and leaves the sink open."""
        input = self._input(self._small()[0])
        self._written(input)  # trigger imports before watching
        sink = WatchedSink()
        with contextlib.chdir(tmp_path), watched(streams=True) as events, input.open() as capture:
            self._write(sink, capture)
        sink.check_left_open(f"exporter {self.name}")
        left_files = [path.name for path in tmp_path.iterdir()]
        assert not left_files, (
            f"sink: exporter {self.name} writes {', '.join(left_files)} beside its sink"
        )
        for event in events:
            path = event.partition("'")[2].rpartition("'")[0]
            is_new_file = (
                event.startswith("writes") and Path(path).exists() and path not in KEPT_FILES
            )
            is_side_effect = is_new_file or event.startswith(("prints", "uses", "starts"))
            assert not is_side_effect, f"sink: exporter {self.name} {event}, beside its sink"

    # --- The sink --------------------------------------------------------------------------

    def test_a_file_appears_whole_or_not_at_all(self, tmp_path: Path) -> None:
        """The file appears only when the sink is committed."""
        input = next(self._every_input())
        expected, _ = self._written(input)
        target = tmp_path / "out"
        with Sink.open(target) as sink, input.open() as capture:
            self._write(sink, capture)
            assert not target.exists(), "sink: the session puts the file in place by itself"
        check_same(target.read_bytes(), expected, "sink: the file")

    def test_a_failure_leaves_nothing_behind(self, tmp_path: Path) -> None:
        """After a failure there is no partial file, and an existing file is unchanged."""
        input = next(self._every_input())
        target = tmp_path / "out"
        target.write_bytes(b"before")
        with contextlib.suppress(BrokenCaptureError):
            with input.open() as capture, Sink.open(target, force=True) as sink:
                break_off(capture)
                self._write(sink, capture)
            raise AssertionError("sink: the session hides that the capture failed in the middle")
        assert target.read_bytes() == b"before", "sink: a failure harms the file that was there"
        left_files = [path.name for path in tmp_path.iterdir() if path != target]
        assert not left_files, f"sink: a failure leaves {', '.join(left_files)} behind"
