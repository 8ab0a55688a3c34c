"""The match: which exit ends which entry, and the rows of `slices`, `instants` and `args`.

``fxframework.kernels.nesting`` nests the calls; here rows are made of what it says.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_xray.format import ARGUMENT, BACK, CUSTOM, DATA, EVENT_TYPE, TYPED, UNWOUND
from fx_xray.read.events import EVENT, Events, summed_by_function
from fx_xray.read.log import Log
from fx_xray.rules import RULES, TIME_BACK, TOO_DEEP, UNMATCHED_EXIT, UNWOUND_CALL
from fxframework.io import arena
from fxframework.io.limits import Limits
from fxframework.io.temporary import TemporaryFile, reserve
from fxframework.io.words import U64_MAX
from fxframework.kernels.arrays import I64, Bools
from fxframework.kernels.nesting import BEGIN, END, OTHER, Nesting
from fxframework.wire.findings import Findings, FoundAt

WHAT: Final = np.array([BEGIN, END, END, BEGIN, OTHER, OTHER, OTHER], np.uint8)
"""What an event is to the nesting, by its kind."""
COUNTED: Final = 1 << 17
"""Functions below it are counted in a table."""
AT_ONCE: Final = 1 << 17
"""Calls among which those that are open at the end are looked for together."""
IN_MEMORY: Final = 1 << 30
"""Bytes of one column that stay in memory; a longer one goes to a file."""
SLICES: Final = {
    "offset": "i8", "ticks": "i8", "parent": "i8", "thread": "i4", "depth": "i4",
    "function": "u4", "cpu": "u2", "entry": "u1",
}  # fmt: skip
"""Columns of `slices` that are known when a call is entered."""
ARGS: Final = {
    "offset": "i8", "parent": "i8", "value": "i8", "of_instant": "u1", "name": "i4", "size": "i4",
}  # fmt: skip
"""Columns of `args`; ``name`` is the number of the argument, or DATA or EVENT_TYPE. Of DATA,
``value`` and ``size`` are place and bytes of the payload."""


class Spans(NamedTuple):
    """Columns of `slices` that are known when a call is left, by row."""

    ticks: I64
    """-1 of a call that was not left."""
    exit: NDArray[np.uint8]


Columns = dict[str, NDArray[Any]]


@attrs.frozen
class Rows:
    """Raw columns of some rows of each table, and where they begin in the whole tables.

    ``slices`` has the columns SLICES, ``args`` those of ARGS. ``instants`` has offset, ticks,
    thread, kind, function (of a typed event its type) and cpu.
    """

    slices: Columns
    instants: Columns
    args: Columns
    first: dict[str, int]


class Matcher:
    """Makes rows of the events of a log, from its first one on.

    ``spans`` are those that an earlier matcher of the same log filled. Where there are none, they
    are filled, and findings noted.
    """

    def __init__(self, log: Log, limits: Limits, spans: Spans | None = None) -> None:
        self._log = log
        self._is_first_pass = spans is None
        self.notes = Findings(limits.max_findings, RULES.numbers)
        if spans is None:
            ticks = _spilled(log.calls, np.int64)
            spans = Spans(ticks, _spilled(log.calls, np.uint8))
        self.spans = spans
        self.nesting = Nesting(max(log.pids.size, 1), values=1)
        self._max_depth = limits.max_depth or 1 << 62
        self.counted = {"slices": 0, "instants": 0, "args": 0}
        """Rows of each table so far."""
        self.range: tuple[int, int] | None = None
        """The least and the greatest time of an event so far, in ticks."""
        self.unmatched_exits = 0
        self.unwound = 0
        """Calls that ended with the one around them."""
        function_count = min(COUNTED, max(16, log.nbytes // 16))
        self._calls = np.zeros(function_count if self._is_first_pass else 0, np.int64)
        self._first_offsets = np.full(self._calls.size, -1)
        """By function below COUNTED: its calls, and the byte offset of its first event, or -1."""
        self._far: list[tuple[NDArray[np.uint32], I64, Bools]] = []
        """Of entries of other functions, and of exits without one: the function, the byte offset,
        and whether it is an entry."""

    def rows_of(self, events: Events) -> Rows:
        """Match these events of the log too (``Log.chunks``), and return their rows."""
        columns: Columns = events._asdict()
        columns["tsc"] = events.tsc.view(np.int64)
        columns["value"] = events.value.view(np.int64)
        kind = columns["kind"] & np.uint8(BACK - 1)
        nesting_kinds = WHAT.take(kind)
        nesting = self.nesting
        offsets = columns["offset"].reshape(-1, 1)
        nesting.nest(nesting_kinds, columns["thread"], columns["function"], offsets)
        begin_rows = np.flatnonzero(nesting_kinds == BEGIN)
        is_unmatched = (nesting_kinds == END) & (nesting.closes < 0)
        if self._is_first_pass:
            self._measure(columns, kind, begin_rows)
            self._note(columns, begin_rows, is_unmatched)
            self._count(columns, nesting_kinds, begin_rows, is_unmatched)
        depths = np.minimum(nesting.depths[begin_rows], self._max_depth)
        names = ("offset", "thread", "function", "cpu")
        slices = {name: columns[name].take(begin_rows) for name in names}
        slices["ticks"] = columns["tsc"].take(begin_rows)
        slices["parent"] = nesting.parents[begin_rows]
        slices["depth"] = depths.astype(np.int32)
        slices["entry"] = kind[begin_rows]
        instant_rows = np.flatnonzero(is_unmatched | (kind >= CUSTOM))
        instants = {name: columns[name][instant_rows] for name in names}
        instants["ticks"] = columns["tsc"][instant_rows]
        instants["kind"] = kind[instant_rows]
        args = self._arguments(columns, kind, begin_rows, instant_rows)
        rows = Rows(slices, instants, args, dict(self.counted))
        nesting.release()
        for name, table in (("slices", slices), ("instants", instants), ("args", args)):
            self.counted[name] += table["offset"].size
        return rows

    def all_rows(self) -> Rows:
        """Match all events of the log, before any other, and return their rows."""
        count = self._log.calls
        slices: Columns = {name: arena.empty(count, kind) for name, kind in SLICES.items()}
        # A batch of no events says which columns there are.
        no_rows = self.rows_of(Events.of(np.zeros(0, EVENT)))
        instant_parts = [no_rows.instants]
        args_parts = [no_rows.args]
        for events in self._log.chunks():
            batch_rows = self.rows_of(events)
            first_row = batch_rows.first["slices"]
            for name, column in batch_rows.slices.items():
                slices[name][first_row : first_row + column.size] = column
            if batch_rows.instants["offset"].size:
                instant_parts.append(batch_rows.instants)
            if batch_rows.args["offset"].size:
                args_parts.append(batch_rows.args)
        entered = self.counted["slices"]
        slices = {name: column[:entered] for name, column in slices.items()}
        instants = _joined(instant_parts)
        args = _joined(args_parts)
        return Rows(slices, instants, args, dict.fromkeys(self.counted, 0))

    # --- Slices -----------------------------------------------------------------------------------

    def _measure(self, columns: Columns, kind: NDArray[np.uint8], begins: I64) -> None:
        """Note how long the calls took that end now, and how they ended.

        Of calls that are open, ``spans.ticks`` has the times at which they were entered.
        """
        nesting = self.nesting
        time = columns["tsc"]
        ticks = self.spans.ticks
        first_row = self.counted["slices"]
        own_rows = slice(first_row, first_row + begins.size)
        ticks[own_rows] = time.take(begins)
        self.spans.exit[own_rows] = 0
        end_rows = np.flatnonzero(nesting.closes >= 0)
        rows = nesting.closes.take(end_rows)
        ticks[rows] = np.maximum(time.take(end_rows) - ticks[rows], 0)
        self.spans.exit[rows] = kind.take(end_rows)
        unwound = nesting.unwound
        if unwound.size:
            exits, rows, _, _ = unwound.T
            ticks[rows] = np.maximum(time[exits] - ticks[rows], 0)
            self.spans.exit[rows] = UNWOUND

    def _count(
        self, columns: Columns, nesting_kinds: NDArray[np.uint8], begins: I64, is_unmatched: Bools
    ) -> None:
        """Count calls by function, find its first event, and the first and the last time."""
        events = begins
        has_exits = bool(is_unmatched.any())
        if has_exits:
            # Any other exit comes behind an event of its function.
            events = np.flatnonzero(is_unmatched | (nesting_kinds == BEGIN))
        functions = columns["function"][events]
        if functions.size and int(functions.max()) >= self._calls.size:
            is_far = functions >= self._calls.size
            far = events[is_far]
            is_entry = nesting_kinds[far] == BEGIN
            self._far.append((functions[is_far], columns["offset"][far], is_entry))
            events = events[~is_far]
            functions = functions[~is_far]
        counts = np.bincount(functions)
        self._calls[: counts.size] += counts
        if has_exits:
            exits = np.bincount(functions[nesting_kinds[events] != BEGIN])
            self._calls[: exits.size] -= exits
        is_new = (counts > 0) & (self._first_offsets[: counts.size] < 0)
        if is_new.any():
            # Of several of one function, the last that is stored is the first.
            new_events = events[is_new[functions]][::-1]
            self._first_offsets[columns["function"][new_events]] = columns["offset"][new_events]
        times = columns["tsc"].view(np.uint64)
        if times.size:
            low = int(times.min())
            high = int(times.max())
            if self.range is not None:
                low = min(low, self.range[0])
                high = max(high, self.range[1])
            self.range = low, high

    def _note(self, columns: Columns, begins: I64, is_unmatched: Bools) -> None:
        """Report what is wrong with these events, in their order."""
        nesting = self.nesting
        offset = columns["offset"]
        rows_back = np.flatnonzero(columns["kind"] >= BACK)
        findings = [FoundAt(int(TIME_BACK), rows_back, offset[rows_back])]
        if self._max_depth < nesting.rows:
            deep_rows = begins[nesting.depths[begins] > self._max_depth]
            depths = nesting.depths[deep_rows]
            findings.append(FoundAt(int(TOO_DEEP), deep_rows, offset[deep_rows], depths))
        unwound = nesting.unwound
        self.unwound += len(unwound)
        exit_rows = unwound[:, 0]
        entry_offsets = unwound[:, -1]
        findings.append(FoundAt(int(UNWOUND_CALL), exit_rows, entry_offsets))
        unmatched = np.flatnonzero(is_unmatched)
        self.unmatched_exits += unmatched.size
        functions = columns["function"][unmatched]
        findings.append(FoundAt(int(UNMATCHED_EXIT), unmatched, offset[unmatched], functions))
        self.notes.add_found(findings)

    # --- Arguments --------------------------------------------------------------------------------

    def _arguments(
        self, columns: Columns, kind: NDArray[np.uint8], begins: I64, outside: I64
    ) -> Columns:
        """Return the rows of `args`: arguments of calls, and payloads and types of events.

        ``begins`` are the events that are rows of `slices`, ``outside`` those of `instants`.
        """
        events = np.flatnonzero(kind >= ARGUMENT)
        if not events.size:
            return {name: np.zeros(0, type) for name, type in ARGS.items()}
        row_of = self.nesting.closes
        row_of[begins] = self.counted["slices"] + np.arange(begins.size)
        row_of[outside] = self.counted["instants"] + np.arange(outside.size)
        is_instant = np.zeros(kind.size, np.uint8)
        is_instant[outside] = 1
        calls = np.flatnonzero(kind < ARGUMENT)
        kind = kind[events]
        size = columns["size"][events].astype(np.int32)
        is_argument = kind == ARGUMENT
        is_orphan = is_argument & (size < 0)
        is_own = is_argument & ~is_orphan
        arguments_so_far = np.cumsum(is_own)
        # The last call before each: that of an argument is in its batch.
        call = np.append(0, calls)[np.searchsorted(calls, events)]
        counts_at_events = np.append(0, arguments_so_far)
        arguments_before = counts_at_events[np.searchsorted(events, call)]
        number = arguments_so_far - 1 - arguments_before
        parent = np.where(is_own, row_of[call], row_of[events])
        parent[is_orphan] = -1
        of_instant = np.where(is_own, is_instant[call], ~is_orphan)
        name = np.where(is_own, number, DATA)
        name[is_orphan] = 0
        size[is_argument] = 0
        args = {
            "offset": columns["offset"][events],
            "parent": parent,
            "value": columns["value"][events],
            "of_instant": of_instant.astype(np.uint8),
            "name": name.astype(np.int32),
            "size": size,
        }
        is_typed = kind == TYPED
        typed_rows = np.flatnonzero(is_typed)
        if typed_rows.size:
            # Behind the payload of a typed event comes its type.
            order = np.repeat(np.arange(events.size), 1 + is_typed)
            args = {name: column[order] for name, column in args.items()}
            types = typed_rows + 1 + np.arange(typed_rows.size)
            args["name"][types] = EVENT_TYPE
            args["value"][types] = columns["function"][events[typed_rows]]
            args["size"][types] = 0
        return args

    # --- The end ----------------------------------------------------------------------------------

    def end(self) -> tuple[I64, I64, I64, I64]:
        """Forget what only further events would need; return what it says at last.

        These are function ids, ascending, how many entries each has, and the byte offset of its
        first event; and the byte offsets of the entries of the calls that are open, ascending.
        """
        open_offsets = np.sort(self.nesting.open_values()[:, 0])
        self.nesting = Nesting(0)
        call_count = self.counted["slices"]
        for start in range(0, call_count, AT_ONCE):
            some = slice(start, min(start + AT_ONCE, call_count))
            is_open = self.spans.exit[some] == 0
            self.spans.ticks[some][is_open] = -1
        ids = np.flatnonzero(self._first_offsets >= 0)
        calls = self._calls[ids]
        first_offsets = self._first_offsets[ids]
        if self._far:
            functions, offsets, is_entry = map(np.concatenate, zip(*self._far, strict=True))
            self._far = []
            sums = summed_by_function(functions, is_entry, offsets)
            below = (ids, calls, first_offsets)
            ids, calls, first_offsets = map(np.append, below, sums)
        return ids, calls, first_offsets, open_offsets


def beyond(rows: Rows, bound: int) -> I64:
    """Return the byte offsets of rows that are beyond ``bound`` ticks."""
    if bound >= U64_MAX:
        return np.zeros(0, np.int64)
    offsets = []
    for columns in (rows.slices, rows.instants):
        is_beyond = columns["ticks"].view(np.uint64) > np.uint64(bound)
        offsets.append(columns["offset"][is_beyond])
    return np.concatenate(offsets)


def _joined(parts: list[Columns]) -> Columns:
    """Return the rows of several parts, column by column."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _spilled(size: int, dtype: type) -> NDArray[Any]:
    """Return an array in memory, or where it is very large in a file."""
    if size * np.dtype(dtype).itemsize <= IN_MEMORY:
        return arena.empty(size, dtype)
    with TemporaryFile() as file:
        reserve(file.fileno(), size * np.dtype(dtype).itemsize)
        return np.memmap(file, dtype, "r+", shape=(size,))
