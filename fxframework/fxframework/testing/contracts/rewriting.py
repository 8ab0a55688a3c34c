"""Contract of writers, the part on whole captures: salvaging, extracting and merging them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from fxframework.errors import UsageError, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX
from fxframework.model.selection import Selection
from fxframework.rules import RULES as FRAMEWORK_RULES
from fxframework.testing.contracts.checks import (
    check_dropped,
    check_same,
    contents_of,
    skip,
    tolerating,
)
from fxframework.testing.contracts.choosing import check_extract, selections_of
from fxframework.testing.contracts.expectation import Sample
from fxframework.testing.contracts.sessions import Input
from fxframework.testing.contracts.watching import WatchedSink
from fxframework.testing.contracts.writing import Writing
from fxframework.wire.rules import TIME_TOO_FAR

MISSING_ROWS = 12
"""Slices that are removed, one at a time, before a capture is merged."""


class Rewriting(Writing):
    """Contract of the optional functions of a writer, which make files of whole captures."""

    def _optional(self, name: str) -> Callable[..., Any]:
        """Return a function of the descriptor; skip the test if there is none."""
        function: Callable[..., Any] | None = getattr(self.writer, name)
        if function is None or self._reader_if_any() is None:
            skip(f"the writer of {self.format} has no {name} of its own, or the format no reader")
        return function

    def _sound(self, name: str) -> Iterator[tuple[Sample, Capture]]:
        """Yield the sound samples, open, for a test of a function of the descriptor."""
        self._optional(name)
        sound_samples = [sample for sample in self.samples() if sample.sound]
        assert sound_samples, "samples() gives none that is sound"
        return self._opened(sound_samples)

    def _call_on(self, name: str, capture: Capture, *arguments: Any) -> tuple[bytes, Any]:
        """Call ``salvage`` or ``extract`` of the descriptor; return the bytes and the result."""
        sink = WatchedSink()
        options = self._options(capture.writer_options)
        result = self._optional(name)(capture, *arguments, sink, options)
        if name == "salvage":
            result = list(result)  # losses, as they are found
        sink.check_left_open(name)
        return sink.getvalue(), result

    def test_salvage_keeps_what_is_sound(self) -> None:
        """Salvaging a sound sample gives the same bytes, without losses."""
        for sample, capture in self._sound("salvage"):
            output, losses = self._call_on("salvage", capture)
            check_same(output, sample.data, f"{sample.name}, which is sound, salvaged")
            assert not losses, f"{sample.name} is sound, but {losses[0]}"

    def test_salvaged_files_are_sound(self) -> None:
        """Salvaged files are read without data loss, and each loss has a kind, place and message.

        Without reported losses, the bytes are those of the input.
        """
        self._optional("salvage")
        rules = {**FRAMEWORK_RULES, **self.rules}
        too_far = {code for code, rule in rules.items() if rule.title == TIME_TOO_FAR}

        def check(data: bytes) -> None:
            with self._open(data) as capture:
                output, losses = self._call_on("salvage", capture)
            for loss in losses:
                assert 0 <= loss.offset <= len(data), f"{loss} is outside of {len(data)} bytes"
                assert 0 <= loss.nbytes <= len(data) - loss.offset, f"{loss} has too many bytes"
                assert loss.what, f"{loss} does not say what was lost"
                assert loss.message, f"{loss} does not say what was wrong"
                assert not loss.code or loss.code in rules, f"{loss}: the code is in no catalogue"
            if not losses:
                check_same(output, data, "a sample salvaged without a loss")
            if output:
                self._check_readable(output, "a salvaged sample", self.salvage_leaves | too_far)

        self._try_damaged(check)

    def _extracted(self, capture: Capture, selection: Selection, what: str) -> tuple[bytes, Any]:
        """Extract a part; return the bytes, which can be read, and what was dropped."""
        output, dropped = self._call_on("extract", capture, selection)
        check_dropped(dropped, f"extract: {what}")
        if output or not self.may_be_empty:
            self._check_readable(output, f"extract: {what}")
        return output, dropped

    def test_extract_of_everything_is_everything(self) -> None:
        """A selection of everything in a sound sample keeps all rows of all tables.

        Data that is in no table, such as an unused string, may be omitted.
        """
        for sample, capture in self._sound("extract"):
            output, _ = self._extracted(capture, Selection(), sample.name)
            with self._open(output) as part:
                for name in capture.schemas:
                    what = f"{sample.name}, all of it extracted: {name}"
                    check_same(contents_of(part, name), contents_of(capture, name), what)

    def test_extract_of_nothing_is_readable(self) -> None:
        """Extracting an empty time range gives a readable file."""
        for sample, capture in self._sound("extract"):
            for start, stop in ((0, 0), (NS_MAX - 1, NS_MAX), (NS_MAX, NS_MAX)):
                nothing = Selection(start_ns=start, stop_ns=stop)
                self._extracted(capture, nothing, f"{sample.name} from {start} to {stop} ns")

    def test_extract_keeps_what_a_filter_keeps(self) -> None:
        """Extracting has exactly the events that a plain filter keeps, and reports the others."""
        for sample, capture in self._sound("extract"):
            for selection in selections_of(capture):
                output, dropped = self._extracted(capture, selection, sample.name)
                if output or not self.may_be_empty:
                    with self._open(output) as extracted:
                        check_extract(capture, selection, extracted, dropped, sample.name)

    # --- Merging -------------------------------------------------------------------------

    def _session(self, sink: Sink, options: Mapping[str, Any] | None = None) -> Any:
        return self._optional("merge")(sink, self._options(options or {}))

    def _takes(self, capture: Capture) -> bool:
        return self.writer.merges(capture.format, capture.tables)

    def _check_output(self, output: bytes, capture: Capture, input: Input) -> None:
        self._check_readable(output, f"{input.name} merged")
        had_rows = self._rows(capture)
        with self._open(output) as merged:
            has_rows = self._rows(merged) > 0
        assert has_rows or not had_rows, f"{input.name}: none of {had_rows} rows was merged"

    def _inputs(self) -> Iterator[Input]:
        """Yield the sound samples, and generated captures; skip where none can be merged."""
        try:
            self._session(Sink.memory())
        except UsageError as refused:
            skip(str(refused))
        yield from (self._input(sample) for sample in self.samples() if sample.sound)
        yield from self._generated()

    def _foreign(self) -> Iterator[Input]:
        """Yield the same as captures of a format that nobody knows, with the same tables."""
        for input in self._inputs():
            with input.open() as capture:
                rows = self._rows(capture)
            if rows:
                yield attrs.evolve(input, foreign=True)

    def test_merged_files_are_readable(self) -> None:
        """Merged files are read without loss, have rows, and are reproducible."""
        for input in self._inputs():
            with input.open() as capture:
                has_rows = self._rows(capture) > 0
            # Only a capture without rows may be refused.
            tolerated = () if has_rows else (WriteRefusedError,)
            with tolerating(*tolerated):
                output, _ = self._written(input)
                again, _ = self._written(input)
                check_same(again, output, f"{input.name} merged again")

    def test_a_row_that_is_missing_is_noticed_by_merge(self) -> None:
        """Without one of its rows, a capture merges into another file, or `close()` counts it."""
        self._check_missing_rows(self._foreign(), MISSING_ROWS)

    def test_columns_without_a_place_are_reported(self) -> None:
        """Columns that other plugins add and the format cannot represent are reported."""
        self._check_added_columns(self._foreign())
