"""Sessions: contract of what writes the tables of captures: exporters, and writers that merge."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from fxframework.errors import UsageError, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.schema import STANDARD_TABLES
from fxframework.model.table import Table
from fxframework.testing.contracts.base import Captures
from fxframework.testing.contracts.changed import Change, Foreign, untouched, widen, without
from fxframework.testing.contracts.checks import check_dropped, tolerating
from fxframework.testing.contracts.expectation import Sample
from fxframework.testing.contracts.generated import SEEDS, GeneratedCapture
from fxframework.testing.contracts.watching import WatchedSink

ROWS = 12
"""Rows of a table that are removed, one at a time; of slices all are."""
ADDED = "zz_added"
"""A column that a plugin could have added."""


@attrs.frozen
class Input:
    """A capture to write: a sample, or one that is generated."""

    name: str
    make: Callable[[], Capture]
    is_sample: bool = True
    foreign: bool = False
    """Whether it is of a format that nobody knows."""

    def open(self) -> Capture:
        """Return the capture, open."""
        return Foreign(self.make()) if self.foreign else self.make()


class Sessions(Captures):
    """Contract of what opens sessions, which write captures and count what they drop."""

    def _session(self, sink: Sink, options: Mapping[str, Any] | None = None) -> Any:
        """Return a session."""
        raise NotImplementedError

    def _takes(self, capture: Capture) -> bool:
        """Return whether a session can write a capture."""
        raise NotImplementedError

    def _check_output(self, output: bytes, capture: Capture, input: Input) -> None:
        """Check that the output of an input is valid."""
        raise NotImplementedError

    @property
    def _accepted(self) -> frozenset[str]:
        """The tables that a session writes; empty if it goes by a format."""
        accepts = self.item.accepts
        return frozenset() if isinstance(accepts, str) else accepts

    def _input(self, sample: Sample) -> Input:
        return Input(sample.name, functools.partial(self._open, sample.data))

    def _inputs(self) -> Iterator[Input]:
        """Yield the small samples, and generated captures if a session goes by their tables."""
        yield from map(self._input, self._small())
        yield from self._generated()

    def _generated(self) -> Iterator[Input]:
        if not self._accepted:
            return
        for seed in SEEDS:
            make = functools.partial(GeneratedCapture, seed)
            input = Input(f"generated capture {seed}", make, is_sample=False)
            with contextlib.suppress(WriteRefusedError):
                if self._takes(make()):
                    self._written(input)
                    yield input

    def _write(
        self, sink: Sink, *captures: Capture, options: Mapping[str, Any] | None = None
    ) -> Mapping[str, int]:
        """Write captures with one session; return what it dropped."""
        session = self._session(sink, options)
        for capture in captures:
            written_before = sink.written
            try:
                session.write(capture)
            except WriteRefusedError:
                nbytes = sink.written - written_before
                assert not nbytes, f"sink: a capture is refused after {nbytes} bytes were written"
                raise
        dropped: Mapping[str, int] = session.close()
        names = ", ".join(capture.name for capture in captures) or "nothing"
        check_dropped(dropped, f"dropped: close() of a session that was given {names}")
        return dropped

    def _written(
        self,
        input: Input,
        change: Change = untouched,
        *,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[bytes, Mapping[str, int]]:
        """Write an input that is changed; return the output and what was dropped."""
        sink = WatchedSink()
        with input.open() as capture:
            change(capture)
            dropped = self._write(sink, capture, options=options)
            sink.check_left_open(f"the session of {self.noun} {self._name}")
            if change is untouched and options is None:
                self._check_output(sink.getvalue(), capture, input)
        return sink.getvalue(), dropped

    def test_several_captures_are_merged_or_refused(self) -> None:
        """A session merges a second capture or refuses it with a coded error."""
        for input in self._inputs():
            sink = Sink.memory()
            with (
                tolerating(WriteRefusedError, UsageError),
                input.open() as first_capture,
                input.open() as second_capture,
            ):
                self._write(sink, first_capture, second_capture)
                self._check_output(sink.getvalue(), first_capture, input)

    # --- What is left out --------------------------------------------------------------------

    def _rows(self, capture: Capture) -> int:
        """Return the number of rows that a session writes."""
        return sum(len(capture.table(name)) for name in self._accepted & {*capture.tables})

    def _check_added_columns(self, inputs: Iterable[Input]) -> None:
        """Check that a column that a plugin added is in the output or reported as dropped."""
        for input in inputs:
            output, dropped = self._written(input, widen(ADDED))
            is_noticed = ADDED.encode() in output or any(ADDED in what for what in dropped)
            assert is_noticed, (
                f"dropped: {input.name} with a column {ADDED} more: close() does not report that "
                "it was left out; fxframework.kit.omitted.omitted_columns() counts such columns"
            )

    def _check_missing_rows(self, inputs: Iterable[Input], most_slices: int | None = None) -> None:
        """Check that without one of its rows, a capture gives another output or a lower count.

        At most ``most_slices`` of the slices are removed. Arguments of rows that are left out are
        counted with these rows.
        """
        for input in inputs:
            full_output, dropped = self._written(input)
            # Codes of the tables that are named by a count of what is dropped.
            dropped_codes = [
                code
                for code, table_name in enumerate(STANDARD_TABLES)
                if any(table_name in dropped_name for dropped_name in dropped)
            ]
            with input.open() as capture:
                tables = [capture.table(name) for name in self._accepted & {*capture.tables}]
            for table in tables:
                if "row" not in table:
                    continue
                rows = table.array("row")
                if table.name == "args":
                    rows = rows[~np.isin(table.array("table"), dropped_codes)]
                if len(rows) <= 1:
                    continue
                most = ROWS
                if table.name == "slices" and most_slices:
                    most = most_slices
                step = -(-len(rows) // most)
                chosen_rows = dict.fromkeys(rows[::step].tolist())
                if "dur" in table:  # slices that took no time are easily lost
                    chosen_rows |= dict.fromkeys(rows[table.array("dur") == 0].tolist())
                self._check_rows_removed(input, table, list(chosen_rows), full_output, dropped)

    def _check_rows_removed(
        self,
        input: Input,
        table: Table,
        rows: list[int],
        full_output: bytes,
        dropped: Mapping[str, int],
    ) -> None:
        """Check that each row is in the output, or is counted as dropped.

        Rows are removed one at a time. If that changes no byte, less must be dropped, under a name
        that does not hold for all rows in it, nor counts values of a column where other events are
        there.
        """
        of_columns = re.compile(rf"\b{table.name}\.\w")
        of_rows = re.compile(rf"(rows of |\w+ )?{table.name}")
        dropped_with_row: dict[int, set[str]] = {}
        written_rows = []
        for row in rows:
            with contextlib.suppress(WriteRefusedError):
                output, dropped_without = self._written(input, without(table.name, row))
                dropped_with_row[row] = {
                    name for name, count in dropped.items() if count > dropped_without.get(name, 0)
                }
                if output != full_output:
                    written_rows.append(row)
        # Names under which rows that are in the output are counted, too: they excuse no other row.
        usual_names: set[str] = set()
        if written_rows:
            usual_names = set.intersection(*(dropped_with_row[row] for row in written_rows))
            # Of the ten longest slices, another takes the place of one that is removed, so that
            # fewer "slices" are dropped then, too. Those that are dropped and those that are
            # written are all: the name counts rows that are left out, and no others.
            most_left_out = len(table) - len(written_rows)
            usual_names -= {
                name
                for name, count in dropped.items()
                if of_rows.fullmatch(name) and count <= most_left_out
            }
            if table.name not in {"threads", "processes"}:
                usual_names |= {name for name in dropped if of_columns.search(name)}
        for row in dropped_with_row.keys() - set(written_rows):
            assert not dropped_with_row[row] <= usual_names, (
                f"output: without row {row} of {table.name} of {input.name} it is the same, and "
                "nothing counts the row as dropped"
            )
