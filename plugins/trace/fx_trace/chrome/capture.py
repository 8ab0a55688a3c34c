"""Capture: opens Chrome JSON. Records are stretches of the file, tables are made at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

import attrs
import numpy as np

from fx_trace.chrome import rules
from fx_trace.chrome.rows import ChromeRows
from fx_trace.chrome.scan import KINDS, Scanner
from fx_trace.meaning import IS_ROW_OF
from fx_trace.read.capture import EventCapture
from fx_trace.read.chunks import Chunk, Filled
from fx_trace.read.first_pass import EventPass
from fx_trace.read.tables import STREAMED
from fxframework.kit.pieces import Piece
from fxframework.kit.scanned import Batch
from fxframework.model.schema import STANDARD_TABLES, TABLE_CODES, TableSchema

TABLES: Final = ("processes", "threads", "slices", "instants", "counters", "flows", "args")


class ChromePass(EventPass):
    """A whole file, read once."""

    reader: ChromeRows
    by_id = True

    @property
    def kinds(self) -> dict[str, int]:
        """Number of records by kind."""
        counts = zip(KINDS, self.reader.kinds.tolist(), strict=True)
        return {kind: count for kind, count in counts if count}

    @property
    def rows(self) -> dict[str, int]:
        """Number of rows by table."""
        rows = super().rows
        rows["args"] -= rows["counters"]
        return {name: rows[name] for name in TABLES}

    def finish(self) -> None:
        """Settle what needs the whole file; bind points of flows to the slices that begin next."""
        super().finish()
        whole = self.whole
        points = np.concatenate(self.reader.bound_to_next)
        if whole is None or not points.size:
            return
        kind = whole.events.kind
        slices = np.flatnonzero(IS_ROW_OF["slices"][kind])
        events = np.append(np.flatnonzero(IS_ROW_OF["flows"][kind])[points], slices)
        is_slice = np.arange(events.size) >= points.size
        thread = whole.events.thread[events]
        # A slice that begins with the point is the next one.
        order = np.lexsort((is_slice, whole.events.time[events], thread))
        places = np.where(is_slice[order], np.arange(order.size), order.size - 1)
        following = order[np.minimum.accumulate(places[::-1])[::-1]]
        is_bound = ~is_slice[order] & is_slice[following] & (thread[order] == thread[following])
        self.spans.flows[points[order[is_bound]]] = following[is_bound] - points.size


class ChromeCapture(EventCapture[ChromePass]):
    """A trace in the Trace Event Format: an array of events, or an object that has one."""

    format = "chrome-json"
    rules = rules.RULES
    memory_factor = 10
    streamed = STREAMED
    schemas: ClassVar[Mapping[str, TableSchema]] = {name: STANDARD_TABLES[name] for name in TABLES}

    def records(self) -> Iterator[Piece]:
        """Yield every event with the separators behind it, and what is around and between them."""
        diagnostics = self.record_diagnostics
        report = no_report if diagnostics is None else diagnostics.add
        data = self.source.data.data
        for block in Scanner(data, self.request.limits.max_record, report).blocks():
            starts = block.starts.tolist()
            ends = [*starts[1:], block.stop]
            for kind, start, end in zip(block.kinds.tolist(), starts, ends, strict=True):
                yield record_of(KINDS[kind], start, bytes(data[start:end]))

    def _new_pass(self, *, whole: bool, ordered: bool) -> ChromePass:
        del whole  # rows are kept: flows are bound to slices far behind them
        report = no_report if self._reported else self.diagnostics.add
        reader = ChromeRows(self.source, self.request.limits, self.strings, report)
        return ChromePass(reader, self.request.limits, ordered=ordered, in_memory=True)

    def _batch(self, name: str, passed: ChromePass, part: Chunk) -> Batch:
        if name != "args":
            return super()._batch(name, passed, part)
        # Numbers of counters are rows of `counters` alone.
        args = part.args
        is_arg = (args.table != TABLE_CODES["counters"]) | (args.parent < 0)
        columns = {column: values[is_arg] for column, values in vars(args).items()}
        batch = super()._batch(name, passed, attrs.evolve(part, args=Filled(**columns)))
        del batch.columns["trace_annotation"]  # there are no objects
        return batch


def record_of(kind: str, offset: int, raw: bytes) -> Piece:
    """Return a record, with its ``text``, or ``raw`` in hexadecimal if that is not UTF-8."""
    try:
        return Piece(kind, offset, raw, {"text": raw.decode()})
    except UnicodeDecodeError:
        return Piece(kind, offset, raw, {"raw": raw.hex()})


def no_report(*_: object, **__: object) -> None:
    """Report nothing: an earlier reading has reported the same."""
