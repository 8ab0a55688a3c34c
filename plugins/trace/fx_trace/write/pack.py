"""Packing: events, context switches and logs, given as columns, become records by declaration.

``Packer`` takes a block of items at a time. Records of one shape, and arguments of one type, are
columns of ``fxframework.wire.column_records``, which knows sizes, places and bits of all fields.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fx_trace import records as r
from fx_trace.indexed import Thread
from fx_trace.kinds import MAX_ARGS, MAX_RECORD_WORDS, STRING_FIELD_BYTES, ArgType, EventType
from fxframework.io.words import WORD
from fxframework.kernels.arrays import I64, U8, Bools
from fxframework.kernels.sorting import joined_ranges
from fxframework.model.strings import TextColumn
from fxframework.wire.column_records import ColumnItems, ColumnRecords
from fxframework.wire.json_columns import Column
from fxframework.wire.json_shapes import Shape
from fxframework.wire.state import State

SWITCH, WAKEUP, LEGACY_SWITCH, LOG = range(16, 20)
"""Kinds of items beyond the types of events."""
STATE = State()
LOW32 = (1 << 32) - 1
STRINGS = 1 << 12
"""Strings that are registered at a time."""
LAST_FIELDS = ("", "scope", "counter_id", "end_timestamp", "id")
"""Forms of events: each has at most one of these fields, behind its arguments."""
WITHOUT_LAST, SCOPED, COUNTER, COMPLETE, WITH_ID = range(len(LAST_FIELDS))
FORM_OF_KIND = np.arange(LOG + 1)
"""The form of the records of items of a kind; other kinds than events are forms by themselves."""
FORM_OF_KIND[: EventType.FLOW_END + 1] = WITH_ID
FORM_OF_KIND[[EventType.DURATION_BEGIN, EventType.DURATION_END]] = WITHOUT_LAST
FORM_OF_KIND[EventType.INSTANT] = SCOPED
FORM_OF_KIND[EventType.COUNTER] = COUNTER
FORM_OF_KIND[EventType.DURATION_COMPLETE] = COMPLETE


class Items(NamedTuple):
    """Items to write, one record each: columns of shape (items,)."""

    kind: U8
    """A type of events, or SWITCH and the like."""
    time: I64
    thread: NDArray[Any]
    """Id of the thread; -1 for none."""
    category: NDArray[Any]
    name: NDArray[Any]
    word: I64
    """Length of a complete event; counter id; correlation id; scope of an instant (0: none); row of
    ``Switches`` or ``Messages`` for other kinds."""


class ArgumentItems(NamedTuple):
    """Arguments of items, in ascending order of ``item``: columns of shape (arguments,)."""

    item: I64
    name: NDArray[Any]
    type: U8
    whole: I64
    real: I64
    """Bits of the double."""
    text: NDArray[Any]


class Switches(NamedTuple):
    """Context switches and wakeups: columns of shape (rows,)."""

    cpu: I64
    outgoing_state: I64
    outgoing_priority: I64
    incoming_priority: I64
    outgoing: I64
    """Koid of the thread, of a legacy switch its id; of a wakeup ``incoming`` alone counts."""
    incoming: I64


class Messages(NamedTuple):
    """The messages of logs: first byte and length of each row, in ``data``."""

    starts: I64
    lengths: I64
    data: U8


SCHEDULED: Mapping[int, tuple[Any, Mapping[str, str]]] = {
    SWITCH: (
        r.ContextSwitch,
        {
            "cpu": "cpu", "outgoing_state": "outgoing_state",
            "outgoing_tid": "outgoing", "incoming_tid": "incoming",
        },
    ),
    WAKEUP: (r.ThreadWakeup, {"cpu": "cpu", "waking_tid": "incoming"}),
    LEGACY_SWITCH: (r.LegacyContextSwitch, {name: name for name in Switches._fields}),
}  # fmt: skip
"""By kind of scheduling, the class of its records, and the columns of ``Switches`` by field."""


class References(NamedTuple):
    """How records refer to strings and threads, and what is inline."""

    strings: I64
    """The reference to a string, by code + 1."""
    text_data: U8
    text_starts: I64
    text_lengths: I64
    """The strings of the pool, by code; behind them an empty one, for code -1."""
    threads: I64
    """The index of a thread by id + 1; 0 for inline."""
    koids: I64
    """Process and thread koid, by id + 1, of shape (threads, 2)."""


class Block(NamedTuple):
    """The items of one block, and ends of items, in the order of the file."""

    item: I64
    is_end: Bools
    kind: I64
    time: I64
    word: I64


class Packer:
    """Packs items, and the ends of items, as records.

    ``first_arguments`` has the place of each item's first argument, of one more element than there
    are items; None without arguments. ``shift`` is added to all times. ``dropped`` counts the
    arguments for which a record has no place.
    """

    def __init__(
        self,
        items: Items,
        arguments: ArgumentItems,
        first_arguments: I64 | None,
        switches: Switches | None,
        messages: Messages | None,
        references: References,
    ) -> None:
        self.items = items
        self.arguments = arguments
        self.first_arguments = first_arguments
        self.switches = switches
        self.messages = messages
        self.references = references
        self.shift = 0
        self.dropped: Counter[str] = Counter()

    def pack(self, order: I64) -> U8:
        """Return the records of items; -1 - item is the end of one, its ``word`` after its time."""
        block = self._block(order)
        arguments = self._arguments_of(block)
        groups = list(self._groups(block, arguments))
        sizes = measured(groups, order.size)
        too_large = np.sort(np.concatenate([rows[group.odd] for rows, group in groups]))
        if too_large.size:
            arguments = self._without_excess(arguments, too_large, sizes)
            groups = list(self._groups(block, arguments))
            sizes = measured(groups, order.size)
        ends = np.cumsum(sizes)
        out = np.zeros(int(ends[-1]), np.uint8)
        for rows, group in groups:
            if group.odd.any():
                msg = "columns do not fit the records that they are to make"
                raise ValueError(msg)
            group.put(out, (ends - sizes)[rows])
        return out

    def _block(self, order: I64) -> Block:
        is_end = order < 0
        item = np.maximum(order, ~order)
        kind = self.items.kind[item].astype(np.int64)
        time = self.items.time[item] + self.shift
        word = self.items.word[item]
        if is_end.any():
            # Masks of ends and begins in turn take several times as long.
            kind = np.where(is_end, EventType.DURATION_END, kind)
            time += np.where(is_end, word, 0)
        return Block(item, is_end, kind, time, word)

    # --- Records --------------------------------------------------------------------------------

    def _groups(
        self, block: Block, arguments: BlockArguments
    ) -> Iterator[tuple[I64, ColumnRecords]]:
        """Yield the records of one form after another: which of the block, and their columns."""
        form = FORM_OF_KIND[block.kind]
        form[(form == SCOPED) & (block.word == 0)] = WITHOUT_LAST
        for number in np.flatnonzero(np.bincount(form)).tolist():
            rows = np.flatnonzero(form == number)
            own = block
            if rows.size < form.size:
                own = Block._make(column[rows] for column in block)
            if number == LOG:
                group = self._logs(own)
            elif number in SCHEDULED:
                group = self._scheduled(number, own)
            else:
                group = self._events(own, LAST_FIELDS[number])
            set_numbers(group, timestamp=own.time)
            if arguments.rows.size and number not in (LEGACY_SWITCH, LOG):
                own_arguments = arguments.of(rows)
                types = self._by_type(own_arguments.rows)
                items = ColumnItems(group, own_arguments.counts, 1, types)
                group.lists[group.field("args")] = items
                group.odd |= items.counts > MAX_ARGS
            yield rows, group

    def _events(self, block: Block, last_field: str) -> ColumnRecords:
        """Return events, which have a field behind their arguments, or none."""
        items = self.items
        item = block.item
        group = ColumnRecords(shape_of(r.Event, last_field), STATE, item.size)
        set_numbers(group, event=block.kind)
        if last_field == "end_timestamp":
            # An end from 2^63 on wraps, and has the right bits.
            set_numbers(group, end_timestamp=block.time + block.word)
        elif last_field:
            set_numbers(group, **{last_field: block.word})
        self._put_thread(group, "thread", items.thread[item])
        self._put_text(group, "category", items.category[item])
        self._put_text(group, "name", items.name[item])
        return group

    def _scheduled(self, kind: int, block: Block) -> ColumnRecords:
        """Return records of a kind of scheduling."""
        cls, columns = SCHEDULED[kind]
        group = ColumnRecords(shape_of(cls), STATE, block.item.size)
        for name, column in columns.items():
            rows = getattr(self.switches, column)[block.word]
            if isinstance(group.field(name), Thread):
                self._put_thread(group, name, rows)
            else:
                set_numbers(group, **{name: rows})
        return group

    def _logs(self, block: Block) -> ColumnRecords:
        messages = self.messages
        assert messages is not None  # noqa: S101 (items of this kind have rows)
        group = ColumnRecords(shape_of(r.Log), STATE, block.item.size)
        self._put_thread(group, "thread", self.items.thread[block.item])
        starts = messages.starts[block.word]
        column = gathered(messages.data, starts, messages.lengths[block.word])
        group.columns[group.field("message")] = column
        return group

    def registrations(self, codes: I64, lengths: I64, threads: I64) -> Iterator[U8]:
        """Yield records that register strings and threads, with indexes from 1 on.

        They are the first bytes of strings of the pool, by code, and threads, by id + 1.
        """
        referred = self.references
        for begin in range(0, codes.size, STRINGS):
            rows = slice(begin, begin + STRINGS)
            starts = referred.text_starts[codes[rows]]
            strings = ColumnRecords(shape_of(r.StringRecord), STATE, starts.size)
            set_numbers(strings, index=np.arange(begin + 1, begin + starts.size + 1))
            texts = gathered(referred.text_data, starts, lengths[rows])
            strings.columns[strings.field("value")] = texts
            yield packed(strings)
        koids = referred.koids[threads]
        registered = ColumnRecords(shape_of(r.ThreadRecord), STATE, threads.size)
        set_numbers(registered, index=np.arange(1, threads.size + 1))
        set_numbers(registered, pid=koids[:, 0], tid=koids[:, 1])
        yield packed(registered)

    # --- References -----------------------------------------------------------------------------

    def _put_thread(self, group: ColumnRecords, name: str, threads: NDArray[Any]) -> None:
        """Let a field refer to threads, or have their koids inline."""
        field = group.field(name)
        indexes = self.references.threads[threads + 1]
        group.indexes[field] = indexes
        is_inline = indexes == 0
        if not is_inline.any():
            return
        koids = self.references.koids[threads[is_inline] + 1]
        lengths = koids.itemsize * koids.shape[1] * is_inline
        group.columns[field] = Column(lengths, koids.reshape(-1).view(np.uint8), lengths)

    def _put_text(self, group: ColumnRecords, name: str, codes: NDArray[Any]) -> None:
        """Let a field refer to strings of the pool, or have them inline."""
        referred = self.references
        field: Any = group.field(name)
        references = referred.strings[codes + 1]
        group.indexes[field] = references
        is_inline = references & field.inline != 0
        if is_inline.any():
            lengths = np.where(is_inline, references & STRING_FIELD_BYTES, 0)
            group.columns[field] = gathered(
                referred.text_data, referred.text_starts[codes], lengths
            )

    # --- Arguments ------------------------------------------------------------------------------

    def _arguments_of(self, block: Block) -> BlockArguments:
        """Return the arguments of a block's items; ends of items have none."""
        first_arguments = self.first_arguments
        if first_arguments is None:
            return BlockArguments(np.zeros(0, np.int64), np.zeros(block.item.size, np.int64))
        begins = first_arguments[block.item]
        counts = np.where(block.is_end, 0, first_arguments[block.item + 1] - begins)
        rows = joined_ranges(begins, counts)
        is_defined = self.arguments.type[rows] <= max(ArgType)
        if not is_defined.all():
            self.dropped["arguments of unknown types"] += int((~is_defined).sum())
            record_of_row = np.repeat(np.arange(counts.size), counts)
            counts = np.bincount(record_of_row[is_defined], minlength=counts.size)
            rows = rows[is_defined]
        return BlockArguments(rows, counts)

    def _by_type(self, rows: I64) -> list[tuple[I64, ColumnRecords]]:
        """Return the arguments at some rows as columns, and which of them are of each type."""
        types = self.arguments.type[rows]
        # Narrow types give way to wide values.
        for narrow, dtype, wide in (
            (ArgType.INT32, np.int32, ArgType.INT64),
            (ArgType.UINT32, np.uint32, ArgType.UINT64),
        ):
            places = np.flatnonzero(types == narrow)
            values = self.arguments.whole[rows[places]]
            types[places[values != values.astype(dtype)]] = wide
        groups = []
        for number in np.flatnonzero(np.bincount(types)).tolist():
            places = np.flatnonzero(types == number)
            own_rows = rows[places] if places.size < rows.size else rows
            groups.append((places, self._typed(number, own_rows)))
        return groups

    def _typed(self, number: int, rows: I64) -> ColumnRecords:
        """Return arguments of one type as columns."""
        arguments = self.arguments
        group = ColumnRecords(shape_of(r.Argument, type=number), STATE, rows.size)
        set_numbers(group, type=number)
        self._put_text(group, "name", arguments.name[rows])
        if number == ArgType.STRING:
            self._put_text(group, "value", arguments.text[rows])
        elif number == ArgType.BLOB:
            referred = self.references
            texts = arguments.text[rows]
            starts = referred.text_starts[texts]
            octets = gathered(referred.text_data, starts, referred.text_lengths[texts])
            group.columns[group.field("value")] = octets
        elif number == ArgType.DOUBLE:
            set_numbers(group, value=arguments.real[rows])
        elif number == ArgType.BOOL:
            set_numbers(group, value=(arguments.whole[rows] != 0).astype(np.int64))
        elif number in (ArgType.INT32, ArgType.UINT32):
            set_numbers(group, value=arguments.whole[rows] & LOW32)
        elif number != ArgType.NULL:
            set_numbers(group, value=arguments.whole[rows])
        return group

    def _without_excess(
        self, arguments: BlockArguments, too_large: I64, sizes: I64
    ) -> BlockArguments:
        """Return the arguments without those for which records have no room.

        ``too_large`` are these records, ``sizes`` the bytes of all. The arguments of such a record
        are taken in their order; each that still fits is kept.
        """
        fits = np.ones(arguments.rows.size, np.bool_)
        counts = arguments.counts.copy()
        sizes_of_arguments = measured(self._by_type(arguments.rows), arguments.rows.size)
        ends = np.cumsum(counts)
        for record in too_large.tolist():
            end = int(ends[record])
            begin = end - int(counts[record])
            argument_sizes = sizes_of_arguments[begin:end].tolist()
            bytes_left = WORD * MAX_RECORD_WORDS - int(sizes[record]) + sum(argument_sizes)
            argument_count = 0
            for place, nbytes in enumerate(argument_sizes, begin):
                if argument_count == MAX_ARGS:
                    self.dropped["arguments beyond 15 of a record"] += end - place
                    fits[place:end] = False
                    break
                if nbytes > bytes_left:
                    self.dropped["arguments that a record has no room for"] += 1
                    fits[place] = False
                    continue
                bytes_left -= nbytes
                argument_count += 1
            counts[record] = argument_count
        return BlockArguments(arguments.rows[fits], counts)


class BlockArguments(NamedTuple):
    """The arguments of the records of a block, those of each record together."""

    rows: I64
    """Their rows among all arguments."""
    counts: I64
    """How many each record has."""

    def of(self, records: I64) -> BlockArguments:
        """Return the arguments of some of the records, in order."""
        if records.size == self.counts.size:
            return self
        counts = self.counts[records]
        begins = np.cumsum(self.counts)[records] - counts
        return BlockArguments(self.rows[joined_ranges(begins, counts)], counts)


@functools.cache
def shape_of(cls: Any, condition: str = "", **selectors: int) -> Shape:
    """Return the shape of records that have a field which depends on a condition, or none such."""
    fields = [field for field in cls.layout.fields if field.public]
    keys = [field.key for field in fields if field.when is None or field.name == condition]
    return Shape(cls.layout, dict.fromkeys(keys) | selectors, STATE)


def set_numbers(group: ColumnRecords, **numbers: Any) -> None:
    """Set the numbers of fields, by name: one for all records, or one for each."""
    for name, column in numbers.items():
        group.numbers[group.field(name)] = column


def measured(groups: list[tuple[I64, ColumnRecords]], count: int) -> I64:
    """Return the sizes of so many records or arguments, of which groups have some each."""
    sizes = np.zeros(count, np.int64)
    for rows, group in groups:
        sizes[rows] = group.measure()
    return sizes


def packed(group: ColumnRecords) -> U8:
    """Return records of one shape, one after another."""
    ends = np.cumsum(group.measure())
    out = np.zeros(int(ends[-1]) if ends.size else 0, np.uint8)
    if ends.size:
        group.put(out, np.append(0, ends[:-1]))
    return out


def gathered(data: U8, starts: I64, lengths: I64) -> Column:
    """Return stretches of bytes as a column."""
    return Column(lengths, TextColumn.gather(data, starts, lengths).data, lengths)
