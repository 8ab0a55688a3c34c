"""Bulk writing: encodes tables as a provider's records, without a Python object per event.

Slices recorded as complete events become complete events, others become begins and ends with the
same nesting; instants, counters, flows, context switches and logs become records of their kinds,
names become kernel objects. Times are written in nanoseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.format import (
    LEGACY_CPU,
    LEGACY_INCOMING_PRIORITY,
    LEGACY_OUTGOING_PRIORITY,
    LEGACY_STATE,
    SIZE,
    STRING_INDEX,
    STRING_LENGTH,
    SWITCH_CPU,
    SWITCH_STATE,
    THREAD_INDEX,
    ArgType,
    EventType,
    RecordType,
)
from fx_trace.records import Argument, Blob, Initialization, KernelObject
from fx_trace.write import items as packing
from fx_trace.write.pack import CountUses, Pack, Unfold
from fxframework.errors import refusal
from fxframework.io.words import U64_MAX, pad8
from fxframework.kernels.buffers import view
from fxframework.model.clock import NS_MAX
from fxframework.model.schema import TABLE_CODES
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table

__all__ = ["TABLES", "Bulk"]

CONTINUATION = range(0x80, 0xC0)
"""Bytes of UTF-8 that begin no character."""

I64 = NDArray[np.int64]
TABLES = ("slices", "instants", "counters", "flows", "sched", "logs")
"""Tables that become records, in the order in which rows of the same time are written."""
NAMES = ("processes", "threads")
BLOB_NAME = 752
"""Most inline bytes of a blob's name besides a payload of 32,000 bytes."""
LAST = 1 << 62
"""Sorts after everything else of the same time."""
BLOCK = 1 << 19
"""Words encoded at a time."""
_NONE = np.zeros(1, np.int64)
_NUMERIC = np.isin(
    np.arange(256),
    [ArgType.INT32, ArgType.UINT32, ArgType.INT64, ArgType.UINT64, ArgType.DOUBLE],
)
"""Argument types that a counter may have."""
COMPLETE, ASYNC = 1, 2
"""Kinds of slices (`model.schema.SLICE_KINDS`); the others are written as begins and ends."""


class Bulk:
    """The records of one capture's tables, for one provider.

    ``tables`` are by name, with one common ``pool``: those in ``TABLES``, and `processes`,
    `threads`, `args` and `blobs`; each may be missing. ``blocks()`` yields the bytes, after which
    ``dropped`` has the losses. With ``logs_as_instants``, logs become instant events with all
    fields as arguments, which Perfetto shows; otherwise log records, which have a time, a thread
    and a message.

    Raises WriteRefusedError (OUT_OF_RANGE) if times span more than 64 bits of nanoseconds.
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        pool: StringPool,
        *,
        source: NDArray[np.uint8] | None = None,
        logs_as_instants: bool = False,
    ) -> None:
        self.dropped: dict[str, int] = {}
        """Counts of what could not be written, by name; complete after ``blocks()``."""
        self._tables = tables
        self._pool = pool
        self._source = source
        self._logs_as_instants = logs_as_instants
        self._threads()
        self._begin_end: I64 = np.zeros((2, 0), np.int64)
        """Sequence of the begin and of the end of each slice, among events of the same time."""
        self._blocks: list[_Block] = []
        makers = (
            self._slices,
            self._instants,
            self._counters,
            self._flows,
            self._sched,
            self._logs,
        )
        for name, make in zip(TABLES, makers, strict=True):
            if name in tables and len(tables[name]):
                self._blocks += make(tables[name])
        self.items = self._joined()
        self.args = self._args()
        self._order()
        self._slots()

    # --- Threads -------------------------------------------------------------------------------

    def _threads(self) -> None:
        """Set the koids by thread id + 1; logs may add further threads."""
        pids, tids = np.zeros(1, np.int64), np.zeros(1, np.int64)
        if "threads" in self._tables:
            table = self._tables["threads"]
            ids = table.array("id")
            size = int(ids.max(initial=-1)) + 2
            pids, tids = np.zeros(size, np.int64), np.zeros(size, np.int64)
            pids[ids + 1] = table.array("pid").view(np.int64)
            tids[ids + 1] = table.array("tid").view(np.int64)
        self.pids, self.tids = pids, tids

    def _thread_ids(self, pid: NDArray[np.uint64], tid: NDArray[np.uint64]) -> I64:
        """Return ids of threads given by koids, adding new ones."""
        pairs, where = np.unique(
            np.column_stack((pid, tid)).view(np.int64), axis=0, return_inverse=True
        )
        known = {
            (p, t): at - 1
            for at, (p, t) in enumerate(zip(self.pids.tolist(), self.tids.tolist(), strict=True))
            if at
        }
        ids = np.empty(len(pairs), np.int64)
        new: list[tuple[int, int]] = []
        for at, (p, t) in enumerate(pairs.tolist()):
            if (p, t) not in known:
                known[p, t] = self.pids.size - 1 + len(new)
                new.append((p, t))
            ids[at] = known[p, t]
        self.pids = np.append(self.pids, np.array([p for p, _ in new], np.int64))
        self.tids = np.append(self.tids, np.array([t for _, t in new], np.int64))
        return ids[where.reshape(-1)]

    def _listed(self, ids: NDArray[Any]) -> NDArray[Any]:
        """Return ids of threads, with -1 for threads that no table lists."""
        if not ids.size or (int(ids.min()) >= -1 and int(ids.max()) + 1 < self.pids.size):
            return ids
        strange = (ids < -1) | (ids >= self.pids.size - 1)
        self._drop("threads that are not listed", int(strange.sum()))
        return np.where(strange, -1, ids)

    # --- Tables to items -----------------------------------------------------------------------

    def _slices(self, table: Table) -> list[_Block]:
        kinds, dur = table.array("kind"), table.array("dur")
        if _constant(kinds) == COMPLETE and int(dur.min()) >= 0:
            types = np.full(1, EventType.DURATION_COMPLETE, np.uint8)
            block = _Block.of("slices", table, types, dur)
            block.depth = table.array("depth")
            block.sequence = np.zeros(1, np.int64)
            return [block]
        asynchronous = kinds == ASYNC
        word = dur
        if asynchronous.any():
            word = np.where(asynchronous, table.array("id").view(np.int64), dur)
        forms, events = self._unfolded(table, kinds)
        types = np.full(len(table), EventType.DURATION_COMPLETE, np.uint8)
        types[asynchronous] = EventType.ASYNC_BEGIN
        types[(forms == packing.PAIRED) | (forms == packing.ALONE)] = EventType.DURATION_BEGIN
        begins = _Block.of("slices", table, types, word)
        begins.events = events
        if len(self._tables.get("flows", ())):
            self._begin_end = np.full((2, len(table)), -1, np.int64)
            for row, some in enumerate((events >= 0, events < 0)):
                self._begin_end[row, events[some] ^ -row] = 4 * np.flatnonzero(some)
        closed = np.flatnonzero(asynchronous & (dur >= 0))
        if not closed.size:
            return [begins]
        operations = _Block.of(
            "", table.select(closed), np.full(1, EventType.ASYNC_END, np.uint8), word[closed]
        )
        operations.time = operations.time + dur[closed]
        # An operation of length 0 ends after its begin; any other before begins of the same time.
        operations.sequence = np.where(dur[closed] == 0, LAST - 1, -1)
        return [begins, operations]

    def _unfolded(self, table: Table, kinds: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], I64]:
        """Return how each slice is written, and its events, ordered by thread.

        An event is the row of a slice that begins, or -1 - row of one that ends.
        """
        count = len(table)
        time, dur = table.array("ts"), table.array("dur")
        parent = _rows_of(table, table.array("parent"))
        forms = np.full(count, packing.PAIRED, np.uint8)
        forms[dur < 0] = packing.ALONE
        forms[((kinds == COMPLETE) & (dur >= 0)) | (kinds == ASYNC)] = 0
        if _constant(kinds) is None:
            parent = np.where(kinds == ASYNC, -1, parent)
        order = np.zeros(0, np.int64)
        late = np.flatnonzero(parent > np.arange(count))
        late = late[time[parent[late]] == time[late]]
        if late.size:
            # Complete events may follow the slices that they enclose: move them before.
            place = np.arange(count)
            place[late] = parent[late]
            for _ in range(int(table.array("depth").max()).bit_length()):
                place[late] = place[place[late]]
            order = np.lexsort((table.array("depth"), place, time))
        elif not bool(np.all(time[1:] >= time[:-1])):
            order = np.argsort(time, kind="stable")
        columns = {
            "thread": view(self._listed(table.array("thread")), "i4"),
            **{
                name: view(column, "i8")
                for name, column in (("time", time), ("dur", dur), ("parent", parent))
            },
        }
        unfold = Unfold(order, columns, forms, self.pids.size)
        made = unfold.run()
        return forms, np.asarray(unfold.events)[:made]

    def _instants(self, table: Table) -> list[_Block]:
        scope = table.array("scope")
        asynchronous = scope == 255
        kinds = np.where(asynchronous, EventType.ASYNC_INSTANT, EventType.INSTANT).astype(np.uint8)
        word = np.where(asynchronous, table.array("id").view(np.int64), scope)
        return [_Block.of("instants", table, kinds, word)]

    def _counters(self, table: Table) -> list[_Block]:
        """Return one item for the rows of each record: same offset, time, thread, name and id."""
        new = np.ones(len(table), np.bool_)
        new[1:] = False
        for name in ("offset", "ts", "thread", "category", "name", "id"):
            column = table.array(name)
            new[1:] |= column[1:] != column[:-1]
        new |= table.array("offset") < 0
        # At most as many series as a record has arguments.
        first = np.flatnonzero(new)
        place = np.arange(len(table)) - np.repeat(first, np.diff(np.append(first, len(table))))
        new |= place % wire.MAX_ARGS == 0
        rows = np.flatnonzero(new)
        kinds = np.full(1, EventType.COUNTER, np.uint8)
        block = _Block.of(
            "counters", table.select(rows), kinds, table.array("id")[rows].view(np.int64)
        )
        block.table = table
        block.item_of = np.cumsum(new) - 1
        return [block]

    def _flows(self, table: Table) -> list[_Block]:
        kinds = (EventType.FLOW_BEGIN + table.array("phase")).astype(np.uint8)
        block = _Block.of("flows", table, kinds, table.array("id").view(np.int64))
        slices = self._tables.get("slices")
        if slices is None or not len(slices):
            return [block]
        numbers, rows = slices.array("row"), table.array("slice")
        index = np.minimum(np.searchsorted(numbers, rows), numbers.size - 1)
        known = (rows >= 0) & (numbers[index] == rows)
        # A point before the begin of its slice is written at the begin.
        block.time = np.where(known, np.maximum(block.time, slices.array("ts")[index]), block.time)
        if self._begin_end.size:
            block.sequence = self._within_slices(slices, block.time, index, known)
        return [block]

    def _within_slices(
        self, slices: Table, time: I64, index: NDArray[Any], known: NDArray[np.bool_]
    ) -> I64:
        """Return the sequence of flow points at the begin or end of their slices."""
        begin, end = self._begin_end[:, index]
        starts = slices.array("ts")[index]
        at_end = known & (end >= 0) & (time == starts + slices.array("dur")[index])
        sequence = np.where(at_end, end - 1, LAST)
        return np.where(known & (time == starts), begin + 1, sequence)

    def _sched(self, table: Table) -> list[_Block]:
        kinds = np.array([packing.LEGACY_SWITCH, packing.SWITCH, packing.WAKEUP], np.uint8)[
            table.array("kind")
        ]
        legacy = kinds == packing.LEGACY_SWITCH
        cpu, state = table.array("cpu").astype(np.int64), table.array("prev_state").astype(np.int64)
        state = np.where(kinds == packing.WAKEUP, 0, np.minimum(state, 15))
        given = [table.array(name) for name in ("prev_priority", "next_priority")]
        priorities = [np.clip(column, 0, 0xFF).astype(np.int64) for column in given]
        clipped = [(legacy & (a != b)).sum() for a, b in zip(given, priorities, strict=True)]
        self._drop("CPU numbers above 255", int((legacy & (cpu > 0xFF)).sum()))
        self._drop("priorities that 8 bits do not hold", int(sum(clipped)))
        # Fields of the headers (Context switch, Thread wakeup and Legacy context switch records).
        bits = np.where(
            legacy,
            (cpu & LEGACY_CPU.limit) << LEGACY_CPU.low
            | state << LEGACY_STATE.low
            | priorities[0] << LEGACY_OUTGOING_PRIORITY.low
            | priorities[1] << LEGACY_INCOMING_PRIORITY.low,
            cpu << SWITCH_CPU.low | state << SWITCH_STATE.low,
        )
        block = _Block.of("sched", table, kinds, np.arange(len(table), dtype=np.int64), bare=True)
        prev, following = (
            self._listed(table.array(name).astype(np.int64)) for name in ("prev", "next")
        )
        block.rows = packing.RecordRows(
            bits=bits,
            prev=np.where(legacy, prev, self.tids[prev + 1]),
            next=np.where(legacy, following, self.tids[following + 1]),
            start=_NONE,
            length=_NONE,
            message=np.zeros(1, np.uint8),
        )
        return [block]

    def _logs(self, table: Table) -> list[_Block]:
        threads = self._thread_ids(table.array("pid"), table.array("tid"))
        message = table["message"]
        assert isinstance(message, TextColumn)  # noqa: S101 (its schema says so)
        starts = message.offsets[:-1]
        lengths = np.diff(message.offsets)
        rows = len(table)
        if self._logs_as_instants:
            category = self._pool.intern(b"log")
            names = table.array("severity_name")
            plain = self._pool.intern(b"log")
            block = _Block(
                name="logs",
                kind=np.full(rows, EventType.INSTANT, np.uint8),
                time=table.array("ts"),
                thread=threads,
                category=np.full(rows, category, np.int64),
                names=np.where(names < 0, plain, names).astype(np.int64),
                word=np.zeros(rows, np.int64),
                table=table,
            )
            block.extra = self._log_arguments(table, message)
            return [block]
        cut = _cut_lengths(message.data, starts, lengths, wire.MAX_STRING_BYTES)
        self._drop("ends of long messages", int((cut < lengths).sum()))
        for name, missing in (
            ("severity", 0), ("tags", -1), ("component", -1), ("file", -1), ("line", 0),
            ("dropped", 0),
        ):  # fmt: skip
            self._drop(f"{name} of logs", int((table.array(name) != missing).sum()))
        if "args" in self._tables:
            mine = self._tables["args"].array("table") == TABLE_CODES["logs"]
            self._drop("arguments of logs", int(mine.sum()))
        block = _Block(
            name="",
            kind=np.full(rows, packing.LOG, np.uint8),
            time=table.array("ts"),
            thread=threads,
            category=np.full(rows, -1, np.int64),
            names=np.full(rows, -1, np.int64),
            word=np.arange(rows, dtype=np.int64),
            table=table,
        )
        block.rows = packing.RecordRows(
            bits=_NONE, prev=_NONE, next=_NONE, start=starts, length=cut, message=message.data
        )
        return [block]

    def _log_arguments(self, table: Table, message: TextColumn) -> list[_Extra]:
        """Return the fields of logs as arguments: message, severity, tags, component, and so on."""
        intern = self._pool.intern
        everywhere = np.arange(len(table))
        texts = np.array([intern(message.bytes_of(row)) for row in range(len(table))], np.int64)
        extra = [_Extra(everywhere, intern(b"message"), ArgType.STRING, text=texts)]
        severity = table.array("severity").astype(np.int64)
        extra.append(_Extra(everywhere, intern(b"severity"), ArgType.UINT32, whole=severity))
        for name in ("tags", "component", "file"):
            codes = table.array(name).astype(np.int64)
            some = np.flatnonzero(codes >= 0)
            extra.append(_Extra(some, intern(name.encode()), ArgType.STRING, text=codes[some]))
        for name in ("line", "dropped"):
            numbers = table.array(name).astype(np.uint64).view(np.int64)
            some = np.flatnonzero(numbers != 0)
            extra.append(_Extra(some, intern(name.encode()), ArgType.UINT64, whole=numbers[some]))
        return extra

    # --- All items -----------------------------------------------------------------------------

    def _joined(self) -> packing.Items:
        """Return the items of all blocks, one block after another."""
        at = 0
        rows = 0
        gathered: list[packing.RecordRows] = []
        for block in self._blocks:
            block.first = at
            block.thread = self._listed(block.thread)
            at += block.time.size
            if block.rows is not None:
                block.word = block.word + rows
                rows += block.rows.bits.size if block.rows.bits.size > 1 else block.time.size
                gathered.append(_wide(block.rows, block.time.size))
        self.rows = _rows_joined(gathered)
        if len(self._blocks) == 1:
            (block,) = self._blocks
            return packing.Items(
                block.kind, block.time, block.thread, block.category, block.names, block.word
            )

        def joined(name: str, dtype: type) -> NDArray[Any]:
            parts = [np.broadcast_to(getattr(b, name), b.time.size) for b in self._blocks]
            return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype, copy=False)

        return packing.Items(
            joined("kind", np.uint8), joined("time", np.int64), joined("thread", np.int32),
            joined("category", np.int32), joined("names", np.int32), joined("word", np.int64),
        )  # fmt: skip

    def _order(self) -> None:
        """Set the order: by time; at the same time enclosing slices first, then by table."""
        none = np.zeros(0, np.int64)
        time = self.items.time
        self.order, self.first = none, none
        self.range = (int(time.min()), int(time.max())) if time.size else (0, 0)
        if not time.size:
            return
        blocks = self._blocks
        if len(blocks) == 1 and blocks[0].events is None:
            depth = blocks[0].depth
            depth = np.broadcast_to(depth, time.size) if depth.size == 1 else depth
            later = time[1:] > time[:-1]
            if bool((later | ((time[1:] == time[:-1]) & (depth[1:] >= depth[:-1]))).all()):
                return
            self.order = np.lexsort((depth, time))
        else:
            self.order = self._merged()
        if self.args.item.size:
            counts = np.bincount(self.args.item, minlength=time.size)
            self.first = np.concatenate(([0], np.cumsum(counts)))

    def _merged(self) -> I64:
        """Return the events of all blocks, in order; set the range of their times."""
        time, word = self.items.time, self.items.word
        parts = [block.all_events() for block in self._blocks]
        order = parts[0] if len(parts) == 1 else np.concatenate(parts)
        times = np.empty(order.size, np.int64)
        for at in range(0, order.size, BLOCK):
            some = order[at : at + BLOCK]
            ends = some < 0
            items = np.where(ends, ~some, some)
            times[at : at + BLOCK] = time[items] + np.where(ends, word[items], 0)
        self.range = int(times.min()), int(times.max())
        if any(block.is_mixed for block in self._blocks):
            blocks = list(zip(self._blocks, (part.size for part in parts), strict=True))
            depths = [np.broadcast_to(block.depth, size) for block, size in blocks]
            places = [np.broadcast_to(block.places, size) for block, size in blocks]
            return order[np.lexsort((np.concatenate(depths), np.concatenate(places), times))]
        if bool((times[1:] >= times[:-1]).all()):
            return order
        return order[np.argsort(times, kind="stable")]

    # --- Arguments -----------------------------------------------------------------------------

    def _args(self) -> packing.ArgumentItems:
        """Return the arguments of all items, in order."""
        # A record holds 15: the fields of a log come before its keys.
        parts = [extra.items(block.first) for block in self._blocks for extra in block.extra]
        table = self._tables.get("args")
        if table is not None and len(table):
            parts += self._args_of(table)
        for block in self._blocks:
            if block.name == "counters":
                parts += self._series(block, parts)
            if block.name == "sched":
                parts += self._weights(block, parts)
        if not parts:
            empty = np.zeros(0, np.int64)
            return packing.ArgumentItems(
                empty, empty.astype(np.int32), np.zeros(1, np.uint8), _NONE, _NONE,
                np.zeros(1, np.int32),
            )  # fmt: skip
        joined = parts[0] if len(parts) == 1 else _args_joined(parts)
        if joined.item.size and not bool(np.all(joined.item[1:] >= joined.item[:-1])):
            order = np.argsort(joined.item, kind="stable")
            joined = packing.ArgumentItems(
                *(column if column.size == 1 else column[order] for column in joined)
            )
        return joined

    def _args_of(self, table: Table) -> list[packing.ArgumentItems]:
        """Return the rows of `args` that belong to items."""
        codes = table.array("table")
        types, texts = table.array("type"), table.array("str")
        # As exporters have it: bytes of a type that only the other format has are a blob.
        as_bytes = (texts >= 0) & (types != ArgType.STRING)
        if as_bytes.any():
            types = np.where(as_bytes, np.uint8(ArgType.BLOB), types)
        columns = [
            table.array("name"), types, table.array("int"),
            table.array("float").view(np.int64) if table.array("float").strides != (0,)
            else np.zeros(1, np.float64).view(np.int64),
            texts,
        ]  # fmt: skip
        columns = [columns[0], *(_narrowed(column) for column in columns[1:])]
        parents = table.array("parent")
        found: list[packing.ArgumentItems] = []
        taken = 0
        for block in self._blocks:
            if not block.name:
                continue
            mine = codes == TABLE_CODES[block.name]
            everything = bool(mine.all())
            parent = parents if everything else parents[mine]
            if not parent.size:
                continue
            item, valid = block.items_of(parent)
            picked: Any = slice(None)
            if not everything or valid is not None:
                picked = np.flatnonzero(mine)
                if valid is not None:
                    picked, item = picked[valid], item[valid]
            if block.name == "counters":
                numeric = _NUMERIC[np.broadcast_to(columns[1], len(table))[picked]]
                if not numeric.all():
                    taken += int(numeric.size - numeric.sum())
                    self._drop("arguments of counters that are not numbers", int((~numeric).sum()))
                    picked = np.arange(len(table))[picked][numeric]
                    item = item[numeric]
            taken += int(item.size)
            found.append(
                packing.ArgumentItems(
                    item,
                    columns[0][picked],
                    *(c if c.size == 1 and len(table) > 1 else c[picked] for c in columns[1:]),
                )
            )
        logs = 0 if self._logs_as_instants else int((codes == TABLE_CODES["logs"]).sum())
        self._drop("arguments of rows that are not written", len(table) - taken - logs)
        return found

    def _series(
        self, block: _Block, parts: list[packing.ArgumentItems]
    ) -> list[packing.ArgumentItems]:
        """Return the series of counters without rows in `args`, as arguments."""
        table = self._tables["counters"]
        assert block.item_of is not None  # noqa: S101 (`_counters` has set it)
        items = block.first + block.item_of
        has = np.zeros(self.items.time.size, np.bool_)
        for part in parts:
            has[part.item] = True
        rows = np.flatnonzero(~has[items])
        if not rows.size:
            return []
        is_int = table.array("is_int")[rows]
        whole = table.array("value_int")[rows]
        small = (whole >= -(1 << 31)) & (whole < 1 << 31)
        types = np.where(is_int, np.where(small, ArgType.INT32, ArgType.INT64), ArgType.DOUBLE)
        return [
            packing.ArgumentItems(
                items[rows],
                table.array("series")[rows],
                types.astype(np.uint8),
                whole,
                table.array("value")[rows].view(np.int64),
                np.zeros(1, np.int32),
            )
        ]

    def _weights(
        self, block: _Block, parts: list[packing.ArgumentItems]
    ) -> list[packing.ArgumentItems]:
        """Return the priorities of switches and wakeups without rows in `args`, as arguments."""
        table = self._tables["sched"]
        bare = np.ones(self.items.time.size, np.bool_)
        for part in parts:
            bare[part.item] = False
        bare = bare[block.first : block.first + block.time.size]
        found = []
        for name, kind, column in (
            (b"outgoing_weight", packing.SWITCH, "prev_priority"),
            (b"incoming_weight", packing.SWITCH, "next_priority"),
            (b"weight", packing.WAKEUP, "next_priority"),
        ):
            weights = table.array(column).astype(np.int64)
            rows = np.flatnonzero(bare & (block.kind == kind) & (weights != -1))
            if rows.size:
                extra = _Extra(rows, self._pool.intern(name), ArgType.INT32, whole=weights[rows])
                found.append(extra.items(block.first))
        return found

    # --- Slots ---------------------------------------------------------------------------------

    def _slots(self) -> None:
        """Assign slots to the strings and threads used most."""
        pool = self._pool
        items, args = self.items, self.args
        strings = np.zeros(len(pool) + 1, np.int64)
        threads = np.zeros(self.pids.size, np.int64)
        if not CountUses(items, args, self.order, strings, threads).run():
            msg = "tables refer to strings that the pool does not have"
            raise ValueError(msg)
        strings[:2] = 0  # null and the empty string need no slot
        starts = pool.pool.array("starts")
        lengths = pool.pool.array("lengths")
        data = pool.pool.array("words").view(np.uint8)
        written = _cut_lengths(data, 8 * starts, lengths, wire.MAX_STRING_BYTES)
        chosen = _most(strings, wire.MAX_STRING_INDEX)
        refs = np.zeros(strings.size, np.int64)
        inline = _cut_lengths(data, 8 * starts, lengths, packing.INLINE_BYTES)
        refs[1:] = np.where(lengths > 0, wire.INLINE_STRING | inline, 0)
        cut = strings[1:] * (inline < lengths)
        self._strings = chosen - 1
        refs[chosen] = np.arange(1, chosen.size + 1)
        cut[self._strings] = (written < lengths)[self._strings]
        self._drop("ends of long strings", int(cut.sum()))
        self._written = written
        indexes = np.zeros(threads.size, np.int64)
        threads[0] = 0  # no thread: (0, 0), inline
        self._slotted_threads = _most(threads, wire.MAX_THREAD_INDEX)
        indexes[self._slotted_threads] = np.arange(1, self._slotted_threads.size + 1)
        self.slotted = packing.Slotted(
            refs, pool.pool.array("words"), starts, lengths, indexes, self.pids, self.tids
        )

    # --- Bytes ---------------------------------------------------------------------------------

    def blocks(self) -> Iterator[bytes | memoryview]:
        """Yield the records, without the provider info: rate, names, slots, events, and blobs."""
        yield Initialization(ticks_per_second=wire.DEFAULT_TICKS_PER_SECOND).pack()
        yield b"".join(self._stage())
        yield from self._events()
        yield from self._blobs()

    def _events(self) -> Iterator[memoryview]:
        shift = self._shift()
        items = self.items
        out = np.empty(BLOCK + packing.RECORD_WORDS + 1, np.int64)
        pack = Pack(items, self.args, self.rows, self.slotted, self.order, self.first, out)
        pack.shift = shift
        while pack.done < pack.count:
            words = pack.run()
            yield memoryview(out[:words].view(np.uint8))  # type: ignore[arg-type]
        self._drop("arguments beyond 15 of a record", int(pack.dropped[packing.D_ARGUMENTS]))
        self._drop(
            "arguments that a record has no room for", int(pack.dropped[packing.D_TOO_LARGE])
        )
        self._drop("arguments of unknown types", int(pack.dropped[packing.D_UNKNOWN]))

    def _shift(self) -> int:
        """Return the amount to add to times, so that none is negative."""
        least, most = self.range
        if least >= 0:
            return 0
        if most - least > NS_MAX:
            raise refusal(
                rules.OUT_OF_RANGE, f"times from {least} ns to {most} ns do not fit 63 bits"
            )
        self.dropped[f"the beginning of time: all times are later by {-least} ns"] = 1
        if -least > NS_MAX:
            # 2^63 is not an int64; adding it to negative times flips their bit 63.
            self.items = self.items._replace(time=self.items.time ^ np.int64(least))
            return 0
        return -least

    def _stage(self) -> Iterator[bytes]:
        """Yield names of processes and threads, then strings and threads in slots."""
        texts: dict[str, list[str | None]] = {}
        for name in NAMES:
            if name in self._tables:
                texts[name] = self._tables[name].texts("name")
        if "processes" in texts:
            pids = self._tables["processes"].array("pid").tolist()
            for pid, text in zip(pids, texts["processes"], strict=True):
                if text is not None:
                    yield self._object(wire.ObjectType.PROCESS, pid, text)
        if "threads" in texts:
            table = self._tables["threads"]
            pids, tids = table.array("pid").tolist(), table.array("tid").tolist()
            for pid, tid, text in zip(pids, tids, texts["threads"], strict=True):
                if text is not None:
                    process = Argument(name="process", type="koid", value=pid)
                    yield self._object(wire.ObjectType.THREAD, tid, text, process)
        pack = struct.Struct("<Q").pack
        for index, code in enumerate(self._strings.tolist(), start=1):
            data = self._pool.bytes_of(code)[: int(self._written[code])]
            head = RecordType.STRING | SIZE.put(1 + -(-len(data) // 8)) | STRING_INDEX.put(index)
            yield pack(head | STRING_LENGTH.put(len(data))) + pad8(data)
        pack3 = struct.Struct("<QQQ").pack
        for index, at in enumerate(self._slotted_threads.tolist(), start=1):
            koids = int(self.pids[at]) & U64_MAX, int(self.tids[at]) & U64_MAX
            yield pack3(RecordType.THREAD | SIZE.put(3) | THREAD_INDEX.put(index), *koids)

    def _object(self, kind: int, koid: int, name: str, *args: Argument) -> bytes:
        data = name.encode()
        if len(data) > wire.MAX_STRING_BYTES:
            self._drop("ends of long names", 1)
            name = data[: wire.MAX_STRING_BYTES].decode(errors="ignore")
        return KernelObject(object_type=kind, koid=koid, name=name, args=args).pack()

    def _blobs(self) -> Iterator[bytes]:
        """Yield blob records of at most 32,000 bytes."""
        table = self._tables.get("blobs")
        if table is None or not len(table):
            return
        if self._source is None:
            self._drop("blobs", len(table))
            return
        step = wire.MAX_STRING_BYTES
        places = table.array("data").tolist()
        names = table.texts("name")
        kinds = table.array("type").tolist()
        for name, kind, (start, size) in zip(names, kinds, places, strict=True):
            # Inline, besides a payload of 32,000 bytes.
            short = (name or "").encode()[:BLOB_NAME].decode(errors="ignore")
            self._drop("ends of long names", int(short != (name or "")))
            for at in range(0, size or 1, step):
                payload = self._source[start + at : start + min(at + step, size)].tobytes()
                blob_type = kind if 1 <= kind <= 255 else wire.BlobType.DATA
                yield Blob(name=short, blob_type=blob_type, payload=payload).pack()

    def _drop(self, what: str, count: int) -> None:
        if count > 0:
            self.dropped[what] = self.dropped.get(what, 0) + count


@attrs.define(kw_only=True)
class _Block:
    """The items of a table, or of a part of it."""

    name: str
    """The table that owns the arguments; empty if they have none."""
    kind: NDArray[np.uint8]
    time: I64
    thread: NDArray[Any]
    category: NDArray[Any]
    names: NDArray[Any]
    word: I64
    table: Table
    """The rows that the items, or arguments of the items, are of."""
    item_of: I64 | None = None
    """Item of each row, if several rows make one item."""
    depth: NDArray[Any] = attrs.field(factory=lambda: np.zeros(1, np.int32))
    """Order of items of the same time, in a trace of this block alone."""
    sequence: I64 = attrs.field(factory=lambda: np.full(1, LAST, np.int64))
    """Order of items of the same time."""
    events: I64 | None = None
    """Of slices of which some end by events of their own: the events (see ``_unfolded``)."""
    rows: packing.RecordRows | None = None
    extra: list[_Extra] = attrs.field(factory=list)
    first: int = 0

    @classmethod
    def of(
        cls, name: str, table: Table, kind: NDArray[np.uint8], word: I64, *, bare: bool = False
    ) -> _Block:
        """Return the items of a table; with ``bare`` without thread, category and name."""
        none = np.full(len(table) if bare else 0, -1, np.int32)
        return cls(
            name=name,
            kind=kind,
            time=table.array("ts"),
            thread=none if bare else table.array("thread"),
            category=none if bare else table.array("category"),
            names=none if bare else table.array("name"),
            word=word,
            table=table,
        )

    @property
    def places(self) -> I64:
        """Order of the events, or items, of the same time."""
        return self.sequence if self.events is None else np.arange(0, 4 * self.events.size, 4)

    @property
    def is_mixed(self) -> bool:
        """Whether items may come before those of earlier blocks, or of their own, of their time."""
        if self.events is not None:
            return False
        return bool((self.sequence != LAST).any() or self.depth.any())

    def all_events(self) -> I64:
        """Return the items in the order of the block, and -1 - item for each end of one."""
        if self.events is None:
            return np.arange(self.first, self.first + self.time.size)
        return self.events  # slices are the first block

    def items_of(self, parents: I64) -> tuple[I64, NDArray[np.bool_] | None]:
        """Return the items of the rows with these numbers, and which exist, if some do not."""
        rows = len(self.table)
        index = _rows_of(self.table, parents)
        valid = None if int(index.min()) >= 0 else index >= 0
        if self.item_of is not None:
            index = self.item_of[np.clip(index, 0, rows - 1)]
        return (index if self.first == 0 else index + self.first), valid


@attrs.define
class _Extra:
    """An argument that some items get besides their rows in `args`."""

    places: I64
    name: int
    type: ArgType
    whole: I64 | None = attrs.field(default=None, kw_only=True)
    text: I64 | None = attrs.field(default=None, kw_only=True)

    def items(self, first: int) -> packing.ArgumentItems:
        """Return the argument for items from ``first`` on."""
        rows = self.places.size
        return packing.ArgumentItems(
            self.places + first,
            np.full(rows, self.name, np.int32),
            np.full(rows, self.type, np.uint8),
            np.zeros(rows, np.int64) if self.whole is None else self.whole,
            _NONE,
            np.full(rows, -1, np.int32) if self.text is None else self.text.astype(np.int32),
        )


def _rows_of(table: Table, numbers: I64) -> I64:
    """Return the places of rows with these numbers in a table, -1 for those that it lacks.

    ``numbers`` is returned itself if it is the result.
    """
    rows = len(table)
    own = table.array("row")
    if rows and int(own[0]) == 0 and int(own[-1]) == rows - 1:
        if not numbers.size or (int(numbers.min()) >= -1 and int(numbers.max()) < rows):
            return numbers
        return np.where((numbers >= 0) & (numbers < rows), numbers, -1)
    index = np.minimum(np.searchsorted(own, numbers), rows - 1)
    return np.where((numbers >= 0) & (own[index] == numbers), index, -1)


def _constant(column: NDArray[Any]) -> int | None:
    """Return the value of a column that repeats one value, or None."""
    return int(column[0]) if column.size and column.strides == (0,) else None


def _narrowed(column: NDArray[Any]) -> NDArray[Any]:
    """Return the column, with one element if it repeats one value."""
    return column[:1].copy() if column.size > 1 and column.strides == (0,) else column


def _most(uses: I64, limit: int) -> I64:
    """Return those in use, in order; if there are too many, those used most."""
    used = np.flatnonzero(uses)
    if used.size > limit:
        used = np.sort(used[np.argsort(-uses[used], kind="stable")[:limit]])
    return used


def _cut_lengths(data: NDArray[np.uint8], starts: I64, lengths: I64, limit: int) -> I64:
    """Return lengths cut to a limit, without a partial character at the end."""
    if not lengths.size or int(lengths.max()) <= limit:
        return lengths
    cut = np.minimum(lengths, limit)
    for row in np.flatnonzero(lengths > limit).tolist():
        start = int(starts[row])
        end = limit
        while end > limit - 4 and int(data[start + end]) in CONTINUATION:
            end -= 1
        cut[row] = end
    return cut


def _wide(rows: packing.RecordRows, size: int) -> packing.RecordRows:
    """Return rows with all columns at full length, except the message."""
    *columns, message = rows
    wide = (np.broadcast_to(c, size) if c.size == 1 else c for c in columns)
    return packing.RecordRows._make((*wide, message))


def _rows_joined(parts: list[packing.RecordRows]) -> packing.RecordRows:
    """Return the rows of several parts, with the messages moved accordingly."""
    message = np.concatenate([np.zeros(1, np.uint8), *(part.message for part in parts)])
    moved, at = [], 1
    for part in parts:
        moved.append(part._replace(start=part.start + at))
        at += part.message.size
    *columns, _ = zip(*moved, strict=True) if moved else ([[]] * len(packing.RecordRows._fields))
    none = np.zeros(0, np.int64)
    return packing.RecordRows._make((*(np.concatenate([none, *each]) for each in columns), message))


def _args_joined(parts: list[packing.ArgumentItems]) -> packing.ArgumentItems:
    dtypes = (np.int64, np.int32, np.uint8, np.int64, np.int64, np.int32)
    return packing.ArgumentItems(
        *(
            np.concatenate([np.broadcast_to(part[at], part.item.size) for part in parts]).astype(
                dtype, copy=False
            )
            for at, dtype in enumerate(dtypes)
        )
    )
