"""Bulk writing: the tables of a capture of another format as events, with the same nesting.

Slices become calls, instants custom events with their name as payload, and integer arguments of
slices arguments of calls. A tick is a nanosecond.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fx_xray.format import ARGUMENT, CUSTOM, ENTER, ENTER_ARG, EXIT
from fx_xray.read.events import Events, joined, picked
from fx_xray.write.buffers import Rows
from fxframework.kernels.nesting import unfolded
from fxframework.kernels.pools import PairMap
from fxframework.kernels.sorting import outer_first, places_among
from fxframework.model.capture import Capture
from fxframework.model.schema import ASYNC, STANDARD_TABLES, TABLE_CODES, ArgType
from fxframework.model.table import Table

I64 = NDArray[Any]
_SIGNED: Final = (ArgType.INT32, ArgType.INT64, ArgType.BOOL)
_UNSIGNED: Final = (ArgType.UINT32, ArgType.UINT64, ArgType.POINTER, ArgType.KOID)
_ASYNC_SCOPE: Final = 255
_WITH: Final = ("processes", "threads", "slices", "instants", "args", "diagnostics")
"""Tables that are written, as far as possible, or that describe the file."""
_NAMELESS: Final = b"instant"
"""Payload of an instant without a name, since llvm-xray refuses empty events."""


def table_of(capture: Capture, name: str) -> Table:
    """Return a table of a capture; an empty one if it has none of this name."""
    if name in capture.schemas:
        return capture.table(name)
    return Table.of(STANDARD_TABLES[name], capture.strings)


class Calls:
    """The calls of a capture's tables, as events in order of time.

    ``names`` are the names of the functions in order of first call; the function of a slice is an
    index into them. ``pids`` and ``tids`` are by thread. ``dropped`` has the counts of what could
    not be written, by name.
    """

    def __init__(self, capture: Capture) -> None:
        self.dropped: Counter[str] = Counter()
        self._pool = capture.strings
        self._set_threads(table_of(capture, "threads"))
        slices = table_of(capture, "slices")
        asynchronous = slices.array("kind") == ASYNC
        self.dropped["asynchronous slices"] += int(asynchronous.sum())
        if asynchronous.any():
            slices = slices.select(~asynchronous)
        instants = table_of(capture, "instants")
        elsewhere = instants.array("scope") == _ASYNC_SCOPE
        self.dropped["asynchronous instants"] += int(elsewhere.sum())
        instants = instants.select(~elsewhere)
        for table in (slices, instants):
            self.dropped["categories"] += int((table.array("category") >= 0).sum())
        self.names, function = self._functions(slices)
        merged = self._merged(self._of_slices(slices, function), self._of_instants(instants))
        *columns, _ = self._with_arguments(merged, slices, table_of(capture, "args"))
        events = Events._make(columns)
        ticks, values = (column.view(np.uint64) for column in (events.tsc, events.value))
        self.events = events._replace(tsc=ticks, value=values)
        for name in capture.schemas:
            if name not in _WITH:
                rows = sum(len(batch) for batch in capture.batches(name))
                self.dropped[f"rows of {name}"] += rows

    # --- Threads -------------------------------------------------------------------------------

    def _set_threads(self, threads: Table) -> None:
        """Set the koids by thread, with one more entry for events without a listed thread."""
        ids = threads.array("id")
        size = int(ids.max(initial=-1)) + 2
        self.pids = np.zeros(size, np.uint64)
        self.tids = np.zeros(size, np.uint64)
        self.pids[ids] = threads.array("pid")
        self.tids[ids] = threads.array("tid")

    def _threads(self, table: Table) -> NDArray[np.int32]:
        unlisted_thread = self.pids.size - 1
        ids = table.array("thread")
        is_listed = (ids >= 0) & (ids < unlisted_thread)
        return np.where(is_listed, ids, unlisted_thread).astype(np.int32)

    # --- Events --------------------------------------------------------------------------------

    def _functions(self, slices: Table) -> tuple[list[bytes], I64]:
        """Return the names in order of first call, and the index of each slice's name."""
        codes = slices.array("name")
        order = np.argsort(slices.array("ts"), kind="stable")
        numbers = PairMap().enter(codes[order].astype(np.int64))
        _, first_calls = np.unique(numbers, return_index=True)
        function = np.empty(codes.size, np.uint32)
        function[order] = numbers
        names = [self._name(code) for code in codes[order[first_calls]].tolist()]
        return names, function

    def _name(self, code: int) -> bytes:
        """Return the name with a code; empty for none."""
        return self._pool.bytes_of(code) if code >= 0 else b""

    def _of_slices(self, slices: Table, function: I64) -> Rows:
        """Return entries and exits, ordered so that those of each thread nest.

        The number of an entry is that of its slice, the number of an exit the complement of it.
        """
        ts = slices.array("ts")
        dur = slices.array("dur")
        depth = slices.array("depth").astype(np.int64)
        thread = self._threads(slices)
        parents = places_among(slices.array("parent"), slices.array("row"))
        order = outer_first(ts, parents)
        rows, times, cut = unfolded(order, thread, depth, self.pids.size, ts, dur)
        self.dropped["ends of slices beyond what is around them"] += cut
        row = np.where(rows < 0, ~rows, rows)
        return Rows(
            kind=np.where(rows < 0, np.uint8(EXIT), np.uint8(ENTER)),
            function=function[row],
            tsc=times,
            cpu=np.zeros(rows.size, np.uint16),
            thread=thread[row],
            offset=slices.array("offset")[row],
            value=np.zeros(rows.size, np.int64),
            size=np.zeros(rows.size, np.int32),
            number=rows,
        )

    def _of_instants(self, instants: Table) -> Rows:
        """Return custom events, whose payloads are the names of the instants."""
        codes, code = np.unique(instants.array("name"), return_inverse=True)
        texts = [self._name(code) or _NAMELESS for code in codes.tolist()]
        lengths = np.array([len(text) for text in texts], np.int64)
        starts = np.cumsum(lengths) - lengths
        self.payloads = np.frombuffer(b"".join(texts), np.uint8)
        code = code.reshape(-1)
        return Rows(
            kind=np.full(code.size, CUSTOM, np.uint8),
            function=np.zeros(code.size, np.uint32),
            tsc=instants.array("ts"),
            cpu=np.zeros(code.size, np.uint16),
            thread=self._threads(instants),
            offset=instants.array("offset"),
            value=starts[code],
            size=lengths[code].astype(np.int32),
            number=np.full(code.size, np.iinfo(np.int64).min),
        )

    def _merged(self, calls: Rows, instants: Rows) -> Rows:
        """Return both in order of time, calls first at equal times."""
        rows = joined([calls, instants])
        if instants.tsc.size or not bool((rows.tsc[1:] >= rows.tsc[:-1]).all()):
            rows = picked(rows, np.argsort(rows.tsc, kind="stable"))
        self.dropped["times before zero"] += int(np.count_nonzero(rows.tsc < 0))
        return rows._replace(tsc=np.maximum(rows.tsc, 0))

    def _with_arguments(self, rows: Rows, slices: Table, args: Table) -> Rows:
        """Return the rows, with the arguments of a call directly after its entry."""
        values, parents = self._arguments(slices, args)
        if not parents.size:
            return rows
        entries = np.flatnonzero(rows.number >= 0)
        entry_of_slice = np.zeros(len(slices), np.int64)
        entry_of_slice[rows.number[entries]] = entries
        calls = entry_of_slice[parents]
        rows.kind[calls] = ENTER_ARG
        kinds = np.full(calls.size, ARGUMENT, np.uint8)
        arguments = picked(rows, calls)._replace(kind=kinds, value=values)
        order = np.argsort(np.append(np.arange(rows.kind.size), calls), kind="stable")
        return picked(joined([rows, arguments]), order)

    def _arguments(self, slices: Table, args: Table) -> tuple[I64, I64]:
        """Return the bits of slices' integer arguments, and their slices, in order."""
        kinds = args.array("type")
        tables = args.array("table")
        is_whole = np.isin(kinds, (*_SIGNED, *_UNSIGNED)) & (tables == TABLE_CODES["slices"])
        index = places_among(args.array("parent"), slices.array("row"))
        is_whole &= index >= 0
        self.dropped["arguments"] += int((~is_whole).sum())
        self.dropped["names of arguments"] += int(is_whole.sum())
        value_bits = np.where(
            np.isin(kinds, _UNSIGNED), args.array("uint").view(np.int64), args.array("int")
        )
        chosen = np.flatnonzero(is_whole)
        chosen = chosen[np.argsort(index[chosen], kind="stable")]
        return value_bits[chosen], index[chosen]
