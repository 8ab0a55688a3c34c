"""Items of tables: what `slices`, `instants` and so on become as records, as columns.

Slices recorded as complete events become complete events, others begins and ends with the same
nesting. Each table gives ``TableItems``, which ``Bulk`` puts in order and writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace.format import EventType
from fx_trace.kinds import ArgType
from fx_trace.records import ContextSwitch, LegacyContextSwitch
from fx_trace.write.pack import (
    LEGACY_SWITCH,
    LOG,
    SWITCH,
    WAKEUP,
    ArgumentItems,
    Messages,
    Switches,
)
from fxframework.kernels.arrays import I64, Bools
from fxframework.kernels.nesting import unfolded
from fxframework.kernels.sorting import begins_of_runs, outer_first, places_among, stable_order
from fxframework.model.schema import TABLE_CODES
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table

GREATEST_STATE = ContextSwitch.layout.place("outgoing_state").mask
GREATEST_LEGACY_CPU = LegacyContextSwitch.layout.place("cpu").mask
GREATEST_PRIORITY = LegacyContextSwitch.layout.place("outgoing_priority").mask

CONTINUATION = range(0x80, 0xC0)
"""Bytes of UTF-8 that begin no character."""
LAST = 1 << 62
"""Sorts after everything else of the same time."""
_, COMPLETE, ASYNC, _ = range(4)
"""Kinds of slices (`model.schema.SLICE_KINDS`); the others are written as begins and ends."""
SINGLE, PAIRED, ALONE, APART = range(4)
"""How a slice is written: as one event; as a begin and an end; as a begin alone (it never ended);
or as one event, because an unclosed slice within it would take its end."""
EVENTS_APART = 4
"""Between the places of two events of slices, so that points of flows have places there."""


@attrs.define(kw_only=True)
class TableItems:
    """The items of a table, or of a part of it: columns of shape (items,)."""

    source: str
    """The table that owns the arguments; empty if they have none."""
    kind: NDArray[np.uint8]
    time: I64
    thread: NDArray[Any]
    category: NDArray[Any]
    name: NDArray[Any]
    word: I64
    table: Table
    """The rows that the items, or arguments of the items, are of."""
    item_of_row: I64 | None = None
    """Item of each row, if several rows make one item."""
    depth: NDArray[Any] = attrs.field(factory=lambda: np.zeros(1, np.int32))
    """Order of items of the same time, in a trace of these items alone."""
    sequence: I64 = attrs.field(factory=lambda: np.full(1, LAST, np.int64))
    """Order of items of the same time."""
    events: I64 | None = None
    """Of slices of which some end by events of their own: the rows that begin, and -1 - row for
    those that end, in an order that holds within each thread."""
    extra: list[ExtraArgument] = attrs.field(factory=list)
    first: int = 0
    """The number of the first of these items among all."""

    @classmethod
    def of(cls, source: str, table: Table, kind: Any, word: I64) -> TableItems:
        """Return the items of a table; a kind may hold for all of them."""
        return cls(
            source=source,
            kind=np.broadcast_to(np.asarray(kind, np.uint8), len(table)),
            time=table.array("ts"),
            thread=table.array("thread"),
            category=table.array("category"),
            name=table.array("name"),
            word=word,
            table=table,
        )

    @property
    def places(self) -> I64:
        """Order of the events, or items, of the same time."""
        if self.events is None:
            return self.sequence
        return np.arange(0, EVENTS_APART * self.events.size, EVENTS_APART)

    @property
    def is_mixed(self) -> bool:
        """Whether items may come before earlier ones of their time, of other tables or this."""
        if self.events is not None:
            return False
        return bool((self.sequence != LAST).any() or self.depth.any())

    def all_events(self) -> I64:
        """Return the items in order, and -1 - item for each end of one."""
        if self.events is None:
            return np.arange(self.first, self.first + self.time.size)
        return self.events  # slices come first, so that their rows are their items

    def items_of(self, parents: I64) -> tuple[I64, Bools | None]:
        """Return the items of the rows with these numbers, and which exist, if some do not."""
        index = rows_of(self.table, parents)
        exists = None
        if int(index.min()) < 0:
            exists = index >= 0
        if self.item_of_row is not None:
            index = self.item_of_row[np.maximum(index, 0)]
        return index + self.first, exists


@attrs.define
class ExtraArgument:
    """An argument that some items get besides their rows in `args`."""

    items: I64
    name: int
    type: ArgType
    whole: I64 | None = attrs.field(default=None, kw_only=True)
    text: I64 | None = attrs.field(default=None, kw_only=True)

    def columns(self, first: int) -> ArgumentItems:
        """Return the argument for items from number ``first`` on."""
        rows = self.items.size
        nothing = np.broadcast_to(np.int64(0), rows)
        return ArgumentItems(
            item=self.items + first,
            name=np.broadcast_to(np.int32(self.name), rows),
            type=np.broadcast_to(np.uint8(self.type), rows),
            whole=nothing if self.whole is None else self.whole,
            real=nothing,
            text=nothing - 1 if self.text is None else self.text,
        )


class Tables:
    """The tables of a capture, with what their items share: threads, strings, and what is lost.

    ``dropped`` counts by name what records have no place for.
    """

    def __init__(
        self, tables: Mapping[str, Table], pool: StringPool, *, logs_as_instants: bool
    ) -> None:
        self.tables = tables
        self.pool = pool
        self.logs_as_instants = logs_as_instants
        self.dropped: Counter[str] = Counter()
        self.switches: Switches | None = None
        self.messages: Messages | None = None
        self.koids = np.zeros((1, 2), np.int64)
        """Process and thread koid by thread id + 1: first those of no thread."""
        self.begin_places = np.zeros(0, np.int64)
        self.end_places = np.zeros(0, np.int64)
        """Of slices in order, if flows may need them: the places of their begins and ends."""
        if "threads" in tables:
            ids = tables["threads"].array("id")
            self.koids = np.zeros((int(ids.max(initial=-1)) + 2, 2), np.int64)
            for column, name in enumerate(("pid", "tid")):
                self.koids[ids + 1, column] = tables["threads"].array(name).view(np.int64)

    def has_rows(self, name: str) -> bool:
        """Return whether there is a table with rows."""
        return name in self.tables and len(self.tables[name]) > 0

    def drop(self, what: str, count: Any) -> None:
        """Count what cannot be written."""
        if count > 0:
            self.dropped[what] += int(count)

    def listed(self, ids: NDArray[Any]) -> NDArray[Any]:
        """Return ids of threads, with -1 for threads that no table lists."""
        is_strange = (ids < -1) | (ids >= len(self.koids) - 1)
        if not is_strange.any():
            return ids
        self.drop("threads that are not listed", is_strange.sum())
        return np.where(is_strange, -1, ids)

    def thread_ids(self, pid: NDArray[np.uint64], tid: NDArray[np.uint64]) -> I64:
        """Return the ids of threads given by koids; new ones are added."""
        pairs = np.column_stack((pid, tid)).view(np.int64)
        unique_pairs, pair_of_row = np.unique(pairs, axis=0, return_inverse=True)
        listed_pairs = map(tuple, self.koids[1:].tolist())
        id_of_pair = {pair: number for number, pair in enumerate(listed_pairs)}
        count = len(self.koids) - 1
        new_pairs: list[tuple[int, int]] = []
        ids = np.empty(len(unique_pairs), np.int64)
        for row, pair in enumerate(map(tuple, unique_pairs.tolist())):
            if pair not in id_of_pair:
                id_of_pair[pair] = count + len(new_pairs)
                new_pairs.append(pair)
            ids[row] = id_of_pair[pair]
        self.koids = np.concatenate((self.koids, np.array(new_pairs, np.int64).reshape(-1, 2)))
        return ids[pair_of_row.reshape(-1)]


# --- Slices ---------------------------------------------------------------------------------------


def items_of_slices(tables: Tables, table: Table) -> list[TableItems]:
    """Return the begins of slices, or whole slices, and the ends of asynchronous ones."""
    kinds = table.array("kind")
    dur = table.array("dur")
    if (kinds == COMPLETE).all() and int(dur.min()) >= 0:
        items = TableItems.of("slices", table, EventType.DURATION_COMPLETE, dur)
        items.depth = table.array("depth")
        items.sequence = np.zeros(1, np.int64)
        return [items]
    is_async = kinds == ASYNC
    word = np.where(is_async, table.array("id").view(np.int64), dur)
    forms = forms_of_slices(table, kinds)
    types = np.full(len(table), EventType.DURATION_COMPLETE, np.uint8)
    types[is_async] = EventType.ASYNC_BEGIN
    types[(forms == PAIRED) | (forms == ALONE)] = EventType.DURATION_BEGIN
    begins = TableItems.of("slices", table, types, word)
    begins.thread = tables.listed(begins.thread)
    begins.events = events_of_slices(table, begins.thread, forms, is_async)
    if tables.has_rows("flows"):
        tables.begin_places, tables.end_places = np.full((2, len(table)), -1, np.int64)
        is_end = begins.events < 0
        tables.begin_places[begins.events[~is_end]] = begins.places[~is_end]
        tables.end_places[~begins.events[is_end]] = begins.places[is_end]
    closed = np.flatnonzero(is_async & (dur >= 0))
    if not closed.size:
        return [begins]
    ends = TableItems.of("", table.select(closed), EventType.ASYNC_END, word[closed])
    ends.thread = begins.thread[closed]
    ends.time = ends.time + dur[closed]
    # An operation of length 0 ends after its begin; any other before begins of the same time.
    ends.sequence = np.where(dur[closed] == 0, LAST - 1, -1)
    return [begins, ends]


def forms_of_slices(table: Table, kinds: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return how each slice is written."""
    dur = table.array("dur")
    forms = np.full(len(table), PAIRED, np.uint8)
    forms[dur < 0] = ALONE
    forms[((kinds == COMPLETE) & (dur >= 0)) | (kinds == ASYNC)] = SINGLE
    alone = np.flatnonzero(forms == ALONE)
    if not alone.size:
        return forms
    # The slices around an unclosed one, up to one that was looked at already.
    parent = rows_of(table, table.array("parent"))
    parent = np.where(kinds == ASYNC, -1, parent)
    around = parent[alone]
    around = around[around >= 0]
    around = around[np.isin(forms[around], (SINGLE, PAIRED))]
    for outer in np.unique(around).tolist():
        while outer >= 0 and forms[outer] in (SINGLE, PAIRED):
            forms[outer] = APART
            outer = int(parent[outer])
    return forms


def events_of_slices(
    table: Table, threads: NDArray[Any], forms: NDArray[np.uint8], is_async: Bools
) -> I64:
    """Return the begins and ends of slices (see ``TableItems.events``).

    A slice is listed as ended before the next one that it does not enclose. ``Bulk`` sorts by time,
    and leaves those of one time in this order: so slices of no length nest as they did, too.
    """
    # What the first step needs is released before the second one.
    return inner_ends_first(nested_events(table, threads, forms, is_async), table, threads)


def nested_events(
    table: Table, threads: NDArray[Any], forms: NDArray[np.uint8], is_async: Bools
) -> I64:
    """Return begins, and the ends that are written, as the slices nest."""
    # Asynchronous slices enclose nothing: they are on a thread of their own. Those of no thread,
    # -1, are on the last one.
    thread_count = int(threads.max()) + 3
    own_threads = np.where(threads < 0, thread_count - 1, threads).astype(np.int32, copy=False)
    own_threads[is_async] = thread_count - 2
    parents = np.ascontiguousarray(rows_of(table, table.array("parent")))
    if is_async.any():
        parents = np.where(is_async, -1, parents)
    order = outer_first(table.array("ts"), parents)
    events, _, _ = unfolded(order, own_threads, parents, thread_count)
    # The end of row 2 is -3: so a negative index, from the end, finds it in the reverse.
    is_paired_from_end = (forms == PAIRED)[::-1]
    is_written = events >= 0
    is_written |= is_paired_from_end[events]
    return events[is_written]


def inner_ends_first(events: I64, table: Table, threads: NDArray[Any]) -> I64:
    """Return begins and ends so that, of ends of one time, the last slice to begin ends first.

    That is so already, unless slices overlap, or do not say what encloses them: then those that go
    on are listed as if they had ended before the next one began. The result is by thread and time.
    """
    is_end = events < 0
    rows = np.maximum(events, ~events)
    own_threads = threads[rows].astype(np.int32, copy=False)
    times = table.array("ts")[rows]
    np.add(times, table.array("dur")[rows], out=times, where=is_end)
    if not is_any_earlier(own_threads, times):
        return events
    order = np.lexsort((times, own_threads))
    begin_places = np.empty(len(table), np.int64)
    begin_places[events[~is_end]] = np.flatnonzero(~is_end)
    # Ends that follow one another, of one thread and time, are turned round.
    begins_run = begins_of_runs(own_threads[order]) | begins_of_runs(times[order])
    begins_run |= ~is_end[order] | begins_of_runs(is_end[order])
    turned = np.where(is_end[order], -begin_places[rows[order]], 0)
    return events[order[np.lexsort((turned, np.cumsum(begins_run)))]]


def is_any_earlier(threads: NDArray[Any], times: I64) -> bool:
    """Return whether an event is earlier than one before it on its thread."""
    order = stable_order(threads)
    if order is not None:
        threads = threads[order]
        times = times[order]
    is_earlier = times[1:] < times[:-1]
    return bool((is_earlier & (threads[1:] == threads[:-1])).any())


# --- Other events ---------------------------------------------------------------------------------


def items_of_instants(tables: Tables, table: Table) -> list[TableItems]:
    """Return instants; those without a thread belong to an operation, whose id they have."""
    del tables
    scope = table.array("scope")
    is_async = scope == 255
    kinds = np.where(is_async, EventType.ASYNC_INSTANT, EventType.INSTANT)
    word = np.where(is_async, table.array("id").view(np.int64), scope)
    return [TableItems.of("instants", table, kinds, word)]


def items_of_counters(tables: Tables, table: Table) -> list[TableItems]:
    """Return one item for the rows of each record: same offset, time, thread, name and id."""
    del tables
    is_first = np.zeros(len(table), np.bool_)
    for name in ("offset", "ts", "thread", "category", "name", "id"):
        is_first |= begins_of_runs(table.array(name))
    is_first |= table.array("offset") < 0
    # At most as many series as a record has arguments.
    first_rows = np.flatnonzero(is_first)
    row_counts = np.diff(np.append(first_rows, len(table)))
    series = np.arange(len(table)) - np.repeat(first_rows, row_counts)
    is_first |= series % wire.MAX_ARGS == 0
    rows = np.flatnonzero(is_first)
    word = table.array("id")[rows].view(np.int64)
    items = TableItems.of("counters", table.select(rows), EventType.COUNTER, word)
    items.table = table
    items.item_of_row = np.cumsum(is_first) - 1
    return [items]


def items_of_flows(tables: Tables, table: Table) -> list[TableItems]:
    """Return the points of flows, in the slices that they are in."""
    kinds = EventType.FLOW_BEGIN + table.array("phase")
    items = TableItems.of("flows", table, kinds, table.array("id").view(np.int64))
    if not tables.has_rows("slices"):
        return [items]
    slices = tables.tables["slices"]
    index = rows_of(slices, table.array("slice"))
    has_slice = index >= 0
    starts = slices.array("ts")[index]
    # A point before the begin of its slice is written at the begin.
    items.time = np.where(has_slice, np.maximum(items.time, starts), items.time)
    if tables.begin_places.size:
        # At the begin or end of its slice, a point is right behind the one, or before the other.
        end_places = tables.end_places[index]
        is_at_begin = has_slice & (items.time == starts)
        is_at_end = has_slice & (end_places >= 0)
        is_at_end &= items.time == starts + slices.array("dur")[index]
        items.sequence = np.where(is_at_end, end_places - 1, LAST)
        items.sequence[is_at_begin] = tables.begin_places[index[is_at_begin]] + 1
    return [items]


# --- Records of other types -----------------------------------------------------------------------


def bare_items(
    source: str, table: Table, kind: Any, thread: NDArray[Any] | None = None
) -> TableItems:
    """Return items without category and name, whose word is their row."""
    nothing = np.broadcast_to(np.int32(-1), len(table))
    return TableItems(
        source=source,
        kind=np.broadcast_to(np.asarray(kind, np.uint8), len(table)),
        time=table.array("ts"),
        thread=nothing if thread is None else thread,
        category=nothing,
        name=nothing,
        word=np.arange(len(table)),
        table=table,
    )


def items_of_sched(tables: Tables, table: Table) -> list[TableItems]:
    """Return context switches and wakeups; priorities of the former are extra arguments."""
    kinds = np.array([LEGACY_SWITCH, SWITCH, WAKEUP])[table.array("kind")]
    is_legacy = kinds == LEGACY_SWITCH
    cpu = table.array("cpu").astype(np.int64)
    state = np.minimum(table.array("prev_state").astype(np.int64), GREATEST_STATE)
    tables.drop("CPU numbers above 255", (is_legacy & (cpu > GREATEST_LEGACY_CPU)).sum())
    priorities = []
    clipped_count = 0
    for name in ("prev_priority", "next_priority"):
        priority = table.array(name).astype(np.int64)
        clipped = np.clip(priority, 0, GREATEST_PRIORITY)
        clipped_count += int((is_legacy & (clipped != priority)).sum())
        priorities.append(clipped)
    tables.drop("priorities that 8 bits do not hold", clipped_count)
    outgoing, incoming = (
        tables.listed(table.array(name).astype(np.int64)) for name in ("prev", "next")
    )
    # Only legacy switches refer to threads; others have the koid.
    tables.switches = Switches(
        cpu=np.where(is_legacy, cpu & GREATEST_LEGACY_CPU, cpu),
        outgoing_state=state,
        outgoing_priority=priorities[0],
        incoming_priority=priorities[1],
        outgoing=np.where(is_legacy, outgoing, tables.koids[outgoing + 1, 1]),
        incoming=np.where(is_legacy, incoming, tables.koids[incoming + 1, 1]),
    )
    return [bare_items("sched", table, kinds)]


def items_of_logs(tables: Tables, table: Table) -> list[TableItems]:
    """Return logs, as records or as instants with all fields."""
    threads = tables.thread_ids(table.array("pid"), table.array("tid"))
    message = table["message"]
    assert isinstance(message, TextColumn)  # noqa: S101 (its schema says so)
    if tables.logs_as_instants:
        return [logs_as_instants(tables, table, threads, message)]
    starts = message.offsets[:-1]
    lengths = np.diff(message.offsets)
    cut = cut_lengths(message.data, starts, lengths, wire.MAX_STRING_BYTES)
    tables.drop("ends of long messages", (cut < lengths).sum())
    for name, missing in (
        ("severity", 0), ("tags", -1), ("component", -1), ("file", -1), ("line", 0), ("dropped", 0),
    ):  # fmt: skip
        tables.drop(f"{name} of logs", (table.array(name) != missing).sum())
    if "args" in tables.tables:
        is_of_log = tables.tables["args"].array("table") == TABLE_CODES["logs"]
        tables.drop("arguments of logs", is_of_log.sum())
    tables.messages = Messages(starts, cut, message.data)
    return [bare_items("", table, LOG, threads)]


def logs_as_instants(tables: Tables, table: Table, threads: I64, message: TextColumn) -> TableItems:
    """Return logs as instants: message, severity, tags, component, and so on are arguments."""
    intern = tables.pool.intern
    rows = len(table)
    plain = intern(b"log")
    names = table.array("severity_name")
    texts = np.array([intern(message.bytes_of(row)) for row in range(rows)], np.int64)
    severity = table.array("severity").astype(np.int64)
    every_item = np.arange(rows)
    extra = [
        ExtraArgument(every_item, intern(b"message"), ArgType.STRING, text=texts),
        ExtraArgument(every_item, intern(b"severity"), ArgType.UINT32, whole=severity),
    ]
    for name in ("tags", "component", "file"):
        codes = table.array(name).astype(np.int64)
        items = np.flatnonzero(codes >= 0)
        extra.append(ExtraArgument(items, intern(name.encode()), ArgType.STRING, text=codes[items]))
    for name in ("line", "dropped"):
        numbers = table.array(name).astype(np.uint64).view(np.int64)
        items = np.flatnonzero(numbers != 0)
        number_name = intern(name.encode())
        extra.append(ExtraArgument(items, number_name, ArgType.UINT64, whole=numbers[items]))
    return TableItems(
        source="logs",
        kind=np.broadcast_to(np.uint8(EventType.INSTANT), rows),
        time=table.array("ts"),
        thread=threads,
        category=np.broadcast_to(np.int64(plain), rows),
        name=np.where(names < 0, plain, names),
        word=np.broadcast_to(np.int64(0), rows),
        table=table,
        extra=extra,
    )


MAKERS = {
    "slices": items_of_slices,
    "instants": items_of_instants,
    "counters": items_of_counters,
    "flows": items_of_flows,
    "sched": items_of_sched,
    "logs": items_of_logs,
}
"""What makes the items of a table, in the order in which rows of the same time are written."""


def rows_of(table: Table, numbers: I64) -> I64:
    """Return the places of rows with these numbers in a table, -1 for those that it lacks.

    ``numbers`` is returned itself if it is the result.
    """
    rows = len(table)
    own_numbers = table.array("row")
    if rows and int(own_numbers[0]) == 0 and int(own_numbers[-1]) == rows - 1:
        if not numbers.size or (int(numbers.min()) >= -1 and int(numbers.max()) < rows):
            return numbers
        return np.where((numbers >= 0) & (numbers < rows), numbers, -1)
    return places_among(numbers, own_numbers)


def cut_lengths(data: NDArray[np.uint8], starts: I64, lengths: I64, limit: int) -> I64:
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
