"""Bulk writing: tables as a provider's records, without a Python object per event.

`table_items` says what rows become, `pack` writes them; here they are put in order, with their
arguments, and the strings and threads that records refer to. Times are written in nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.kinds import ArgType
from fx_trace.meaning import is_numeric
from fx_trace.records import Argument, Blob, Initialization, KernelObject
from fx_trace.write.pack import (
    LEGACY_SWITCH,
    SWITCH,
    WAKEUP,
    ArgumentItems,
    Items,
    Packer,
    References,
)
from fx_trace.write.table_items import MAKERS, ExtraArgument, TableItems, Tables, cut_lengths
from fxframework.errors import refusal
from fxframework.io.words import WORD
from fxframework.kernels.arrays import I64
from fxframework.kernels.sorting import stable_order
from fxframework.model.clock import NS_MAX
from fxframework.model.schema import TABLE_CODES
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

TABLES = tuple(MAKERS)
"""Tables that become records, in the order in which rows of the same time are written."""
NAMES = ("processes", "threads")
INLINE_BYTES = 8000
"""Most bytes of an inline string when the string table is full; the rest is cut."""
BLOB_NAME = 752
"""Most inline bytes of a blob's name besides a payload of 32,000 bytes."""
BLOCK = 1 << 15
"""Records packed at a time."""


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
        self._tables = Tables(tables, pool, logs_as_instants=logs_as_instants)
        self._pool = pool
        self._source = source
        self._table_items: list[TableItems] = []
        for name, items_of in MAKERS.items():
            if self._tables.has_rows(name):
                self._table_items += items_of(self._tables, tables[name])
        self.items = self._joined()
        self.arguments = self._all_arguments()
        self._order = self._in_order()
        self._uses_slots()

    @property
    def dropped(self) -> dict[str, int]:
        """Counts of what could not be written, by name; complete after ``blocks()``."""
        return dict(self._tables.dropped)

    # --- Items and their order ------------------------------------------------------------------

    def _joined(self) -> Items:
        """Return the items of all tables, one table after another."""
        item_count = 0
        for table_items in self._table_items:
            table_items.first = item_count
            table_items.thread = self._tables.listed(table_items.thread)
            item_count += table_items.time.size
        dtypes = {"kind": np.uint8, "time": np.int64, "word": np.int64}
        columns = [self._column(name, dtypes.get(name, np.int32)) for name in Items._fields]
        return Items(*columns)

    def _column(self, name: str, dtype: Any) -> NDArray[Any]:
        """Return a column of the items of all tables."""
        columns = [getattr(table_items, name) for table_items in self._table_items]
        if len(columns) == 1:
            return columns[0]  # type: ignore[no-any-return]
        column = np.concatenate([np.zeros(0, dtype), *columns])
        return column.astype(dtype, copy=False)

    def _in_order(self) -> I64 | None:
        """Return the items by time, and -1 - item for the end of one; None if they are in order.

        At the same time, enclosing slices come first, then it goes by table.
        """
        time = self.items.time
        self._time_range = (0, 0)
        if not time.size:
            return None
        if len(self._table_items) == 1 and self._table_items[0].events is None:
            self._time_range = (int(time.min()), int(time.max()))
            depth = np.broadcast_to(self._table_items[0].depth, time.size)
            is_later = time[1:] > time[:-1]
            if (is_later | ((time[1:] == time[:-1]) & (depth[1:] >= depth[:-1]))).all():
                return None
            return np.lexsort((depth, time))
        events = [table_items.all_events() for table_items in self._table_items]
        order = np.concatenate(events)
        item = np.maximum(order, ~order)
        times = time[item]
        times += np.where(order < 0, self.items.word[item], 0)
        self._time_range = (int(times.min()), int(times.max()))
        if any(table_items.is_mixed for table_items in self._table_items):
            # Among those of one time, ends of asynchronous slices and points of flows have places.
            depths = []
            places = []
            for table_items, table_events in zip(self._table_items, events, strict=True):
                depths.append(np.broadcast_to(table_items.depth, table_events.size))
                places.append(np.broadcast_to(table_items.places, table_events.size))
            keys = (np.concatenate(depths), np.concatenate(places), times)
            return order[np.lexsort(keys)]
        by_time = stable_order(times)
        return order if by_time is None else order[by_time]

    def _blocks_of_order(self) -> Iterator[I64]:
        """Yield the items, and ends of items, in order, a block at a time."""
        count = self.items.time.size if self._order is None else self._order.size
        for begin in range(0, count, BLOCK):
            end = min(begin + BLOCK, count)
            yield np.arange(begin, end) if self._order is None else self._order[begin:end]

    # --- Arguments ------------------------------------------------------------------------------

    def _all_arguments(self) -> ArgumentItems:
        """Return the arguments of all items, in order of the items."""
        # A record holds 15: the fields of a log come before its keys.
        columns = []
        for table_items in self._table_items:
            columns += [extra.columns(table_items.first) for extra in table_items.extra]
        if self._tables.has_rows("args"):
            columns += self._rows_of_args(self._tables.tables["args"])
        for table_items in self._table_items:
            if table_items.source == "counters":
                columns += self._series(table_items, columns)
            if table_items.source == "sched":
                columns += self._weights(table_items, columns)
        if len(columns) == 1:
            (joined,) = columns
        else:
            nothing = np.zeros(0, np.int64)
            empty = ArgumentItems(
                nothing, nothing, np.zeros(0, np.uint8), nothing, nothing, nothing
            )
            all_columns = zip(empty, *columns, strict=True)
            joined = ArgumentItems(*map(np.concatenate, all_columns))
        order = stable_order(joined.item)
        if order is not None:
            joined = ArgumentItems._make(column[order] for column in joined)
        return joined

    def _rows_of_args(self, table: Table) -> list[ArgumentItems]:
        """Return the rows of `args` that belong to items."""
        owners = table.array("table")
        parents = table.array("parent")
        types = table.array("type")
        texts = table.array("str")
        # As exporters have it: bytes of a type that only the other format has are a blob.
        is_bytes = (texts >= 0) & (types != ArgType.STRING)
        types = np.where(is_bytes, np.uint8(ArgType.BLOB), types)
        columns = (
            table.array("name"), types, table.array("int"), table.array("float").view(np.int64),
            texts,
        )  # fmt: skip
        written_count = 0
        arguments = []
        for table_items in self._table_items:
            rows = np.flatnonzero(owners == TABLE_CODES.get(table_items.source, -1))
            if not rows.size:
                continue
            item, exists = table_items.items_of(parents[rows])
            if exists is not None:
                rows = rows[exists]
                item = item[exists]
            if table_items.source == "counters":
                is_number = is_numeric(types[rows])
                lost_count = int((~is_number).sum())
                self._tables.drop("arguments of counters that are not numbers", lost_count)
                rows = rows[is_number]
                item = item[is_number]
                written_count += lost_count
            written_count += item.size
            own_columns: tuple[NDArray[Any], ...] = columns
            if rows.size < len(table):
                own_columns = tuple(column[rows] for column in columns)
            arguments.append(ArgumentItems(item, *own_columns))
        if not self._tables.logs_as_instants:
            written_count += int((owners == TABLE_CODES["logs"]).sum())
        self._tables.drop("arguments of rows that are not written", len(table) - written_count)
        return arguments

    def _series(self, table_items: TableItems, columns: list[ArgumentItems]) -> list[ArgumentItems]:
        """Return the series of counters without rows in `args`, as arguments."""
        table = self._tables.tables["counters"]
        assert table_items.item_of_row is not None  # noqa: S101 (`items_of_counters` has set it)
        items = table_items.first + table_items.item_of_row
        rows = np.flatnonzero(~self._has_arguments(columns)[items])
        integers = table.array("value_int")[rows]
        is_small = integers == integers.astype(np.int32)
        number_types = np.where(is_small, ArgType.INT32, ArgType.INT64)
        types = np.where(table.array("is_int")[rows], number_types, ArgType.DOUBLE)
        return [
            ArgumentItems(
                item=items[rows],
                name=table.array("series")[rows],
                type=types.astype(np.uint8),
                whole=integers,
                real=table.array("value")[rows].view(np.int64),
                text=np.full(rows.size, -1),
            )
        ]

    def _weights(
        self, table_items: TableItems, columns: list[ArgumentItems]
    ) -> list[ArgumentItems]:
        """Return the priorities of switches and wakeups without rows in `args`, as arguments."""
        table = self._tables.tables["sched"]
        own = slice(table_items.first, table_items.first + table_items.time.size)
        is_bare = ~self._has_arguments(columns)[own]
        arguments = []
        for name, kind, column in (
            (b"outgoing_weight", SWITCH, "prev_priority"),
            (b"incoming_weight", SWITCH, "next_priority"),
            (b"weight", WAKEUP, "next_priority"),
        ):
            weights = table.array(column).astype(np.int64)
            is_weighted = (table_items.kind == kind) & (weights != -1)
            rows = np.flatnonzero(is_bare & is_weighted)
            if rows.size:
                code = self._pool.intern(name)
                extra = ExtraArgument(rows, code, ArgType.INT32, whole=weights[rows])
                arguments.append(extra.columns(table_items.first))
        return arguments

    def _has_arguments(self, columns: list[ArgumentItems]) -> NDArray[np.bool_]:
        """Return which items have arguments."""
        has_arguments = np.zeros(self.items.time.size, np.bool_)
        for arguments in columns:
            has_arguments[arguments.item] = True
        return has_arguments

    # --- What records refer to ------------------------------------------------------------------

    def _uses_slots(self) -> None:
        """Give indexes to the strings and threads that are used most."""
        string_uses, thread_uses = self._uses()
        pool = self._pool.pool
        starts = WORD * pool.array("starts")
        lengths = pool.array("lengths")
        data = pool.array("words").view(np.uint8)
        self._registered_lengths = cut_lengths(data, starts, lengths, wire.MAX_STRING_BYTES)
        inline_lengths = cut_lengths(data, starts, lengths, INLINE_BYTES)
        references = np.zeros(string_uses.size, np.int64)
        references[1:] = np.where(lengths > 0, wire.INLINE_STRING | inline_lengths, 0)
        registered = used_most(string_uses, wire.MAX_STRING_INDEX)
        references[registered] = np.arange(1, registered.size + 1)
        self._registered_strings = registered - 1
        is_cut = inline_lengths < lengths
        has_shorter_entry = self._registered_lengths < lengths
        is_cut[self._registered_strings] = has_shorter_entry[registered - 1]
        self._tables.drop("ends of long strings", string_uses[1:][is_cut].sum())
        indexes = np.zeros(thread_uses.size, np.int64)
        self._registered_threads = used_most(thread_uses, wire.MAX_THREAD_INDEX)
        indexes[self._registered_threads] = np.arange(1, self._registered_threads.size + 1)
        self._references = References(
            strings=references,
            text_data=data,
            text_starts=np.append(starts, 0),
            text_lengths=np.append(lengths, 0),
            threads=indexes,
            koids=self._tables.koids,
        )

    def _uses(self) -> tuple[I64, I64]:
        """Return how often strings, by code + 1, and threads, by id + 1, are referred to.

        What is always inline, no thread and the empty string, counts as unused.
        """
        items = self.items
        arguments = self.arguments
        strings = np.zeros(len(self._pool) + 1, np.int64)
        threads = np.zeros(len(self._tables.koids), np.int64)
        for order in self._blocks_of_order():
            item = np.maximum(order, ~order)
            kind = items.kind[item]
            events = item
            if int(kind.max()) >= SWITCH:
                # Of records of scheduling, none counts: only legacy ones refer to threads.
                events = item[kind < SWITCH]
                item = item[(kind < SWITCH) | (kind > LEGACY_SWITCH)]
            for column in (items.category, items.name):
                count_uses(strings, column[events])
            count_uses(threads, items.thread[item])
        for begin in range(0, arguments.item.size, BLOCK):
            rows = slice(begin, begin + BLOCK)
            count_uses(strings, arguments.name[rows])
            texts = arguments.text[rows]
            check_codes(texts, strings.size)
            is_string = arguments.type[rows] == ArgType.STRING
            count_uses(strings, texts[is_string])
        strings[:2] = 0
        threads[0] = 0
        return strings, threads

    # --- Bytes ----------------------------------------------------------------------------------

    def blocks(self) -> Iterator[bytes | memoryview]:
        """Yield the records, without the provider info: rate, names, slots, events, and blobs."""
        yield Initialization(ticks_per_second=wire.DEFAULT_TICKS_PER_SECOND).pack()
        yield b"".join(self._names())
        packer = self._packer()
        codes = self._registered_strings
        lengths = self._registered_lengths[codes]
        for records in packer.registrations(codes, lengths, self._registered_threads):
            yield records.data
        for order in self._blocks_of_order():
            yield packer.pack(order).data
        for reason, count in packer.dropped.items():
            self._tables.drop(reason, count)
        yield from self._blobs()

    def _packer(self) -> Packer:
        """Return what packs the items. Raises WriteRefusedError if times span too much."""
        first_arguments = None
        if self.arguments.item.size:
            counts = np.bincount(self.arguments.item, minlength=self.items.time.size)
            first_arguments = np.append(0, np.cumsum(counts))
        shift = self._shift()
        tables = self._tables
        packer = Packer(
            self.items,
            self.arguments,
            first_arguments,
            tables.switches,
            tables.messages,
            self._references,
        )
        packer.shift = shift
        return packer

    def _shift(self) -> int:
        """Return the amount to add to times, so that none is negative."""
        earliest, latest = self._time_range
        if earliest >= 0:
            return 0
        if latest - earliest > NS_MAX:
            raise refusal(
                rules.OUT_OF_RANGE, f"times from {earliest} ns to {latest} ns do not fit 63 bits"
            )
        self._tables.drop(f"the beginning of time: all times are later by {-earliest} ns", 1)
        if -earliest > NS_MAX:
            # 2^63 is not an int64; adding it to negative times flips their bit 63.
            self.items = self.items._replace(time=self.items.time ^ np.int64(earliest))
            return 0
        return -earliest

    def _names(self) -> Iterator[bytes]:
        """Yield the names of processes and threads."""
        tables = self._tables.tables
        if "processes" in tables:
            table = tables["processes"]
            pids = table.array("pid").tolist()
            for pid, name in zip(pids, table.texts("name"), strict=True):
                if name is not None:
                    yield self._object(wire.ObjectType.PROCESS, pid, name)
        if "threads" in tables:
            table = tables["threads"]
            koids = zip(table.array("pid").tolist(), table.array("tid").tolist(), strict=True)
            for (pid, tid), name in zip(koids, table.texts("name"), strict=True):
                if name is not None:
                    process = Argument(name="process", type="koid", value=pid)
                    yield self._object(wire.ObjectType.THREAD, tid, name, process)

    def _object(self, kind: int, koid: int, name: str, *args: Argument) -> bytes:
        """Return the record of the name of a process or thread."""
        data = name.encode()
        if len(data) > wire.MAX_STRING_BYTES:
            self._tables.drop("ends of long names", 1)
            name = data[: wire.MAX_STRING_BYTES].decode(errors="ignore")
        return KernelObject(object_type=kind, koid=koid, name=name, args=args).pack()

    def _blobs(self) -> Iterator[bytes]:
        """Yield blob records of at most 32,000 bytes."""
        if not self._tables.has_rows("blobs"):
            return
        table = self._tables.tables["blobs"]
        if self._source is None:
            self._tables.drop("blobs", len(table))
            return
        step = wire.MAX_STRING_BYTES
        places = table.array("data").tolist()
        kinds = table.array("type").tolist()
        for name, kind, (start, size) in zip(table.texts("name"), kinds, places, strict=True):
            # Inline, besides a payload of 32,000 bytes.
            short_name = (name or "").encode()[:BLOB_NAME].decode(errors="ignore")
            self._tables.drop("ends of long names", int(short_name != (name or "")))
            blob_type = kind if 1 <= kind <= 255 else wire.BlobType.DATA
            for begin in range(start, start + (size or 1), step):
                end = min(begin + step, start + size)
                payload = self._source[begin:end].tobytes()
                yield Blob(name=short_name, blob_type=blob_type, payload=payload).pack()


def used_most(uses: I64, limit: int) -> I64:
    """Return the numbers of those in use, in order; if there are too many, of those used most."""
    used = np.flatnonzero(uses)
    if used.size > limit:
        most_used_first = np.argsort(-uses[used], kind="stable")
        used = np.sort(used[most_used_first[:limit]])
    return used


def count_uses(uses: I64, codes: NDArray[Any]) -> None:
    """Count references to strings or threads, by number + 1."""
    check_codes(codes, uses.size)
    uses += np.bincount(codes + 1, minlength=uses.size)


def check_codes(codes: NDArray[Any], size: int) -> None:
    """Raise ValueError for codes of strings that the pool does not have."""
    if codes.size and not (int(codes.min()) >= -1 and int(codes.max()) < size - 1):
        msg = "tables refer to strings that the pool does not have"
        raise ValueError(msg)
