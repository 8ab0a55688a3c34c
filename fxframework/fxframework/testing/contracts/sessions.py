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

    def _check_output(self, output: bytes, capture: Capture, given: Input) -> None:
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
        for seed in SEEDS if self._accepted else ():
            made = functools.partial(GeneratedCapture, seed)
            given = Input(f"generated capture {seed}", made, is_sample=False)
            with contextlib.suppress(WriteRefusedError):
                if self._takes(made()):
                    self._written(given)
                    yield given

    def _write(
        self, sink: Sink, *captures: Capture, options: Mapping[str, Any] | None = None
    ) -> Mapping[str, int]:
        """Write captures with one session; return what it dropped."""
        session = self._session(sink, options)
        for capture in captures:
            before = sink.written
            try:
                session.write(capture)
            except WriteRefusedError:
                assert sink.written == before, (
                    f"sink: a capture is refused after {sink.written - before} bytes were written"
                )
                raise
        dropped: Mapping[str, int] = session.close()
        names = ", ".join(capture.name for capture in captures) or "nothing"
        check_dropped(dropped, f"dropped: close() of a session that was given {names}")
        return dropped

    def _written(
        self,
        given: Input,
        change: Change = untouched,
        *,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[bytes, Mapping[str, int]]:
        """Write an input that is changed; return the output and what was dropped."""
        sink = WatchedSink()
        with given.open() as capture:
            change(capture)
            dropped = self._write(sink, capture, options=options)
            sink.check_left_open(f"the session of {self.noun} {self._name}")
            if change is untouched and options is None:
                self._check_output(sink.getvalue(), capture, given)
        return sink.getvalue(), dropped

    def test_several_captures_are_merged_or_refused(self) -> None:
        """A session merges a second capture or refuses it with a coded error."""
        for given in self._inputs():
            sink = Sink.memory()
            with (
                tolerating(WriteRefusedError, UsageError),
                given.open() as first,
                given.open() as second,
            ):
                self._write(sink, first, second)
                self._check_output(sink.getvalue(), first, given)

    # --- What is left out --------------------------------------------------------------------

    def _rows(self, capture: Capture) -> int:
        """Return the number of rows that a session writes."""
        return sum(len(capture.table(name)) for name in self._accepted & {*capture.tables})

    def _check_added_columns(self, inputs: Iterable[Input]) -> None:
        """Check that a column that a plugin added is in the output or reported as dropped."""
        for given in inputs:
            output, dropped = self._written(given, widen(ADDED))
            there = ADDED.encode() in output or any(ADDED in what for what in dropped)
            assert there, (
                f"dropped: {given.name} with a column {ADDED} more: close() does not report that "
                "it was left out; fxframework.kit.omitted.omitted_columns() counts such columns"
            )

    def _check_missing_rows(self, inputs: Iterable[Input], most: int | None = None) -> None:
        """Check that without one of its rows, a capture gives another output or a lower count.

        At most ``most`` of the slices are removed. Arguments of rows that are left out are counted
        with these.
        """
        for given in inputs:
            _, dropped = self._written(given)
            gone = [n for n, name in enumerate(STANDARD_TABLES) if any(name in d for d in dropped)]
            with given.open() as capture:
                tables = [capture.table(name) for name in self._accepted & {*capture.tables}]
            for table in tables:
                if "row" not in table:
                    continue
                rows = table.array("row")
                if table.name == "args":
                    rows = rows[~np.isin(table.array("table"), gone)]
                step = -(-len(rows) // ((table.name == "slices" and most) or ROWS))
                empty = rows[table.array("dur") == 0] if "dur" in table else rows[:0]
                if len(rows) > 1:
                    some = dict.fromkeys([*rows[::step].tolist(), *empty.tolist()])
                    self._check_rows_removed(given, table.name, list(some))

    def _check_rows_removed(self, given: Input, table: str, rows: list[int]) -> None:
        """Check that each row is in the output, or is counted as dropped.

        Rows are removed one at a time. If that changes no byte, less must be dropped, under a name
        that does not hold for all rows in it, nor counts values of a column where other events are
        there.
        """
        whole, dropped = self._written(given)
        of_columns = re.compile(rf"\b{table}\.\w")
        counted: dict[int, set[str]] = {}
        there = []
        for row in rows:
            with contextlib.suppress(WriteRefusedError):
                output, less = self._written(given, without(table, row))
                counted[row] = {name for name, n in dropped.items() if n > less.get(name, 0)}
                if output != whole:
                    there.append(row)
        usual = set.intersection(*(counted[row] for row in there)) if there else set()
        if there and table not in {"threads", "processes"}:
            usual |= {name for name in dropped if of_columns.search(name)}
        for row in counted.keys() - set(there):
            assert not counted[row] <= usual, (
                f"output: without row {row} of {table} of {given.name} it is the same, and nothing "
                "counts the row as dropped"
            )
