"""Window: a capture as it looks through a stretch of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.errors import UsageError
from fxframework.model.capture import Capture, Record, Summary
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.schema import TABLE_CODES
from fxframework.model.table import Table

__all__ = ["Selection", "Window"]


@attrs.frozen(kw_only=True)
class Selection:
    """A part of a capture: a stretch of time, and which threads, processes and categories.

    Times are nanoseconds on the capture's clock, ``start_ns <= time < stop_ns``, None open-ended.
    Threads and processes are chosen by name, or by number: a thread's id, or ``pid/tid``.
    ``*`` and ``?`` in a name stand for any letters. No names at all choose everything.
    """

    start_ns: int | None = None
    stop_ns: int | None = None
    threads: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def by_time_alone(self) -> bool:
        """Whether it names no thread, process or category."""
        return not (self.threads or self.processes or self.categories)


class Window(Capture):
    """The rows and records of another capture that belong to ``start_ns <= time < stop_ns``.

    A slice belongs where any part of it does, every other row with a ``ts`` by that; `args`
    follow the rows that they are arguments of. Tables without times (`processes`, `threads`,
    `diagnostics`, …) and records without one stay whole. ``row`` keeps the numbers of the whole
    capture, so that references between rows hold.
    """

    def __init__(self, whole: Capture, start_ns: int | None, stop_ns: int | None) -> None:
        self.whole = whole
        self.start_ns = NS_MIN if start_ns is None else start_ns
        self.stop_ns = NS_MAX + 1 if stop_ns is None else stop_ns
        # Of the class elsewhere; a window is of the class that it looks into.
        self.format = whole.format  # type: ignore[misc]
        self.schemas = whole.schemas  # type: ignore[misc]
        # The whole capture's own, shared: nothing is added to them here.
        self.source = whole.source
        self.request = whole.request
        self.diagnostics = whole.diagnostics
        self.strings = whole.strings
        self._kept: dict[str, NDArray[np.int64]] = {}

    @property
    def writer_options(self) -> Mapping[str, Any]:
        """Those of the whole capture."""
        return self.whole.writer_options

    def records(self) -> Iterator[Record]:
        """The records whose time belongs, and those that have none.

        Raises UsageError where the format's records do not say their time.
        """
        if not self.whole.timed_records:
            raise UsageError(
                f"records of a {self.format} capture cannot be chosen by time",
                remedy="choose a table, or an exporter of tables; or leave out --since and --until",
            )
        return self._records()

    def _records(self) -> Iterator[Record]:
        start, stop = self.start_ns, self.stop_ns
        for record in self.whole.records():
            ns = getattr(record, "ns", None)
            if ns is None or start <= ns < stop:
                yield record

    def summary(self) -> Summary:
        """The whole capture's, with the rows and the times of this stretch."""
        summary = self.whole.summary()
        first, last = summary.start_ns, summary.end_ns
        return attrs.evolve(
            summary,
            start_ns=first if first is None else max(first, self.start_ns),
            end_ns=last if last is None else min(last, self.stop_ns),
            rows={name: sum(len(batch) for batch in self.batches(name)) for name in self.schemas},
            timeline=(),
        )

    def scan(self) -> None:
        """Read the whole capture."""
        self.whole.scan()

    def close(self) -> None:
        """Close the whole capture."""
        self.whole.close()

    def _table(self, name: str) -> Table:
        whole = self.whole.table(name)
        mask = self._mask(whole)
        return whole if mask is None else whole.select(mask)

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        for batch in self.whole.batches(name, rows):
            mask = self._mask(batch)
            if mask is None:
                yield batch
            elif mask.any():
                yield batch.select(mask)

    def _mask(self, table: Table) -> NDArray[np.bool_] | None:
        """Which rows belong; None where all do."""
        if table.name == "args":
            return self._args_mask(table)
        if "ts" not in table:
            return None
        ts = table.array("ts")
        if "dur" not in table:
            return np.asarray((ts >= self.start_ns) & (ts < self.stop_ns))
        # A length of -1 reaches to the end; times may be near the ends of what int64 holds.
        dur = table.array("dur")
        end = ts + np.minimum(np.maximum(dur, 0), NS_MAX - np.maximum(ts, 0))
        touches = (dur < 0) | (end > self.start_ns) | (ts >= self.start_ns)
        return np.asarray(touches & (ts < self.stop_ns))

    def _args_mask(self, args: Table) -> NDArray[np.bool_]:
        mask = np.zeros(len(args), np.bool_)
        codes, parents = args.array("table"), args.array("parent")
        for name, code in TABLE_CODES.items():
            mine = codes == code
            if name in self.schemas and name != "args" and mine.any():
                mask[mine] = np.isin(parents[mine], self._rows_kept(name))
        return mask

    def _rows_kept(self, name: str) -> NDArray[np.int64]:
        """Row numbers of a table that belong."""
        kept = self._kept.get(name)
        if kept is None:
            parts = [batch.array("row") for batch in self.batches(name)]
            kept = np.concatenate(parts) if parts else np.zeros(0, np.int64)
            self._kept[name] = kept
        return kept
