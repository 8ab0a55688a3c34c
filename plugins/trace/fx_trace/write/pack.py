"""Bulk writing: encodes columns as the words of records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fx_trace.format import (
    ARG_BLOB,
    ARG_BOOL,
    ARG_DOUBLE,
    ARG_INT32,
    ARG_INT64,
    ARG_KOID,
    ARG_NAME,
    ARG_POINTER,
    ARG_STRING,
    ARG_UINT32,
    ARG_UINT64,
    ARG_VALUE_AT,
    EVENT_ARGS_AT,
    EVENT_CATEGORY,
    EVENT_DURATION_BEGIN,
    EVENT_DURATION_COMPLETE,
    EVENT_DURATION_END,
    EVENT_FLOW_END,
    EVENT_INSTANT,
    EVENT_KIND,
    EVENT_NAME_AT,
    EVENT_THREAD,
    LEGACY_INCOMING,
    LEGACY_OUTGOING,
    LOG_LENGTH,
    LOG_THREAD,
    OPEN_END,
    RECORD_EVENT,
    RECORD_LOG,
    RECORD_SCHEDULING,
    SCHED_SWITCH,
    SCHED_WAKEUP,
    SCHEDULING_TYPE,
    SIZE_AT,
    STRING_REF_INDEX,
    SWITCH_ARGS_AT,
)
from fx_trace.write.items import (
    ALONE,
    APART,
    ARGUMENTS,
    D_ARGUMENTS,
    D_TOO_LARGE,
    D_UNKNOWN,
    LEGACY_SWITCH,
    LOG,
    PAIRED,
    RECORD_WORDS,
    SWITCH,
    ArgumentItems,
    Items,
    RecordRows,
    Slotted,
    column,
)
from fxframework.kernels.annotations import Array, Bytes, Fallible, View, flag, i32, i64, u8
from fxframework.kernels.buffers import full, room, view
from fxframework.kernels.kernel import Kernel

__all__ = ["CountUses", "Pack", "Unfold"]

LOW64 = 0xFFFFFFFFFFFFFFFF
LOW32 = 0xFFFFFFFF
INLINE = 0x8000
HALF = 0x10000
LEAST_INT32, MOST_INT32 = -0x80000000, 0x7FFFFFFF
NEGATIVE_BYTE = 128


class CountUses(Kernel):
    """Counts, by code + 1 and by thread id + 1, how often strings and threads are referred to.

    ``order`` is that of ``Pack``.
    ``run`` gives 0 where a code is not one of the pool's; threads have been looked at.
    """

    count: i64
    args: i64
    codes: i64
    natural: flag
    kind: Bytes
    arg_type: Bytes
    category: View[i32]
    name: View[i32]
    thread: View[i32]
    order: View[i64]
    arg_name: View[i64]
    arg_text: View[i64]
    strings: Array[i64]
    threads: Array[i64]

    def __init__(
        self, items: Items, args: ArgumentItems, order: Any, strings: Any, threads: Any
    ) -> None:
        rows = len(items.time)
        self.order = memoryview(order)
        self.natural = len(self.order) == 0
        self.count = rows if self.natural else len(self.order)
        self.kind = column(items.kind, "u1", rows)
        self.category = column(items.category, "i4", rows)
        self.name = column(items.name, "i4", rows)
        self.thread = column(items.thread, "i4", rows)
        self.args = len(args.item)
        self.arg_name = column(args.name, "i8", self.args)
        self.arg_type = column(args.type, "u1", self.args)
        self.arg_text = column(args.text, "i8", self.args)
        self.strings = memoryview(strings)
        self.threads = memoryview(threads)
        self.codes = len(self.strings) - 1

    def step(self) -> Fallible[i64]:
        """Count."""
        place = 0
        while place < self.count:
            item = place if self.natural else self.order[place]
            if item < 0:
                item = -1 - item
            kind = self.kind[item]
            if kind <= EVENT_FLOW_END:
                if not self.use(self.category[item]) or not self.use(self.name[item]):
                    return 0
            if kind <= EVENT_FLOW_END or kind == LOG:
                self.threads[self.thread[item] + 1] += 1
            place += 1
        row = 0
        while row < self.args:
            text = self.arg_text[row]
            if not self.use(self.arg_name[row]) or text < -1 or text >= self.codes:
                return 0
            if self.arg_type[row] == ARG_STRING:
                self.use(text)
            row += 1
        return 1

    def use(self, code: i64) -> flag:
        """Count a string. Return False for an unknown code."""
        if code < -1 or code >= self.codes:
            return False
        self.strings[code + 1] += 1
        return True


class Unfold(Kernel):
    """Writes slices as begins and ends, so that those of no length nest as they did, too.

    ``order`` are rows by time, none if all rows are in order; ``parent`` is the row of the slice
    that encloses one, or -1; ``form`` says how each is written (``items.PAIRED``), and may become
    APART. ``threads`` is the number of threads; thread -1 is one of them. ``events`` takes the
    rows that begin, and -1 - row for those that end, in an order that holds within each thread.
    ``run`` gives how many there are.
    """

    order: View[i64]
    time: View[i64]
    dur: View[i64]
    parent: View[i64]
    thread: View[i32]
    natural: flag
    form: Array[u8]
    count: i64
    threads: i64
    made: i64
    link: Array[i64]
    top: Array[i64]
    events: Array[i64]

    def __init__(
        self,
        order: Any,
        columns: Mapping[str, Any],
        form: Any,
        threads: int,
    ) -> None:
        self.order = memoryview(order)
        self.thread = memoryview(columns["thread"])
        self.time = memoryview(columns["time"])
        self.dur = memoryview(columns["dur"])
        self.parent = memoryview(columns["parent"])
        self.form = memoryview(form)
        self.count = len(self.time)
        self.threads = threads
        self.natural = len(self.order) == 0
        # Of a paired slice the open one below it, of another the nearest enclosing paired one.
        self.link = full(self.count, "i8", -1)
        self.top = full(threads, "i8", -1)
        self.events = room(2 * self.count, "i8")
        self.made = 0

    def step(self) -> Fallible[i64]:
        """Write all slices."""
        row = 0
        while row < self.count:
            if self.form[row] == ALONE:
                self.set_apart(self.parent[row])
            row += 1
        place = 0
        while place < self.count:
            self.begin(place if self.natural else self.order[place])
            place += 1
        thread = 0
        while thread < self.threads:
            open_slice = self.top[thread]
            while open_slice >= 0:
                self.put(-1 - open_slice)
                open_slice = self.link[open_slice]
            thread += 1
        return self.made

    def set_apart(self, outer: i64) -> i64:
        """Mark the slices around an unclosed one to be written as single events."""
        while outer >= 0 and (self.form[outer] == 0 or self.form[outer] == PAIRED):
            self.form[outer] = APART
            outer = self.parent[outer]
        return 0

    def begin(self, row: i64) -> i64:
        """Begin a slice, after ending those that do not enclose it."""
        # The nearest enclosing slice with an end event.
        outer = self.parent[row]
        if outer >= 0 and self.form[outer] != PAIRED:
            outer = self.link[outer]
        thread = self.thread[row] + 1
        open_slice = self.top[thread]
        # End the slices that do not enclose this one, as far as they are over by now.
        while (
            open_slice >= 0
            and open_slice != outer
            and self.time[open_slice] + self.dur[open_slice] <= self.time[row]
        ):
            self.put(-1 - open_slice)
            open_slice = self.link[open_slice]
        self.put(row)
        self.link[row] = outer
        if self.form[row] == PAIRED:
            self.link[row] = open_slice
            open_slice = row
        self.top[thread] = open_slice
        return 0

    def put(self, event: i64) -> i64:
        """Add an event of a slice."""
        self.events[self.made] = event
        self.made += 1
        return 0


class Pack(Kernel):
    """Writes items as records to ``out``, until that has no room for another.

    ``order`` are items in the order of the file, and -1 - item for the end of one, which is its
    ``word`` after its beginning; ``first``, of one element more than there are items, is the place
    of each item's first argument. Both are empty where the items are in order, ``first`` also
    without arguments. ``shift`` is added to all times. ``run`` gives the words written; ``done``
    of ``count`` records are.
    """

    kind: Bytes
    arg_type: Bytes
    message: Bytes
    time: View[i64]
    word: View[i64]
    thread: View[i32]
    category: View[i32]
    name: View[i32]
    arg_item: View[i64]
    arg_name: View[i64]
    arg_whole: View[i64]
    arg_real: View[i64]
    arg_text: View[i64]
    bits: View[i64]
    prev: View[i64]
    next: View[i64]
    starts_of_rows: View[i64]
    lengths_of_rows: View[i64]
    strings: View[i64]
    words: View[i64]
    starts: View[i64]
    lengths: View[i64]
    threads: View[i64]
    pids: View[i64]
    tids: View[i64]
    order: View[i64]
    first: View[i64]
    out: Array[i64]
    dropped: Array[i64]
    shift: i64
    done: i64
    count: i64
    args: i64
    most: i64
    arg: i64
    at: i64
    start: i64
    head: i64
    counts: i64
    last: i64
    natural: flag
    has_last: flag

    def __init__(
        self,
        items: Items,
        args: ArgumentItems,
        rows: RecordRows,
        slotted: Slotted,
        order: Any,
        first: Any,
        out: Any,
    ) -> None:
        count = len(items.time)
        self.kind = column(items.kind, "u1", count)
        self.time = column(items.time, "i8", count)
        self.thread = column(items.thread, "i4", count)
        self.category = column(items.category, "i4", count)
        self.name = column(items.name, "i4", count)
        self.word = column(items.word, "i8", count)
        self.args = len(args.item)
        self.arg_item = column(args.item, "i8", self.args)
        self.arg_name = column(args.name, "i8", self.args)
        self.arg_type = column(args.type, "u1", self.args)
        self.arg_whole = column(args.whole, "i8", self.args)
        self.arg_real = column(args.real, "i8", self.args)
        self.arg_text = column(args.text, "i8", self.args)
        self.bits = view(rows.bits, "i8")
        self.prev = view(rows.prev, "i8")
        self.next = view(rows.next, "i8")
        self.starts_of_rows = view(rows.start, "i8")
        self.lengths_of_rows = view(rows.length, "i8")
        self.message = view(rows.message, "u1")
        self.strings = view(slotted.strings, "i8")
        self.words = view(slotted.words, "i8")
        self.starts = view(slotted.starts, "i8")
        self.lengths = view(slotted.lengths, "i8")
        self.threads = view(slotted.threads, "i8")
        self.pids = view(slotted.pids, "i8")
        self.tids = view(slotted.tids, "i8")
        self.order = memoryview(order)
        self.first = memoryview(first)
        self.natural = len(self.order) == 0
        self.count = count if self.natural else len(self.order)
        self.out = memoryview(out)
        self.most = len(self.out) - RECORD_WORDS - 1
        self.dropped = full(3, "i8")
        self.shift = 0
        self.done = 0
        self.arg = 0
        self.at = 0
        self.start = 0
        self.head = 0
        self.counts = 0
        self.last = 0
        self.has_last = False

    def step(self) -> Fallible[i64]:
        """Write records."""
        self.at = 0
        while self.done < self.count and self.at <= self.most:
            item = self.done if self.natural else self.order[self.done]
            self.done += 1
            self.record(item)
        return self.at

    def record(self, item: i64) -> i64:
        """Write the record of an item, or of the end of one."""
        count = 0
        ends = item < 0
        if ends:
            item = -1 - item
        kind = self.kind[item]
        self.start = self.at
        self.counts = EVENT_ARGS_AT
        self.has_last = False
        now = self.time[item] + self.shift
        if ends:
            kind = EVENT_DURATION_END
            now += self.word[item]
        self.out[self.at + 1] = now
        self.at += 2
        if kind <= EVENT_FLOW_END:
            self.event(item, kind, now)
        elif kind == LOG:
            self.log(item)
        else:
            self.scheduling(kind, self.word[item])
        if not ends:
            count = self.arguments(item)
        if self.has_last:
            self.out[self.at] = self.last
            self.at += 1
        size = self.at - self.start
        self.out[self.start] = self.head | (size << SIZE_AT) | (count << self.counts)
        return 0

    def put_thread(self, thread: i64) -> i64:
        """Return a thread's index; 0 after writing its koids inline."""
        index = self.threads[thread]
        if index == 0:
            self.out[self.at] = self.pids[thread]
            self.out[self.at + 1] = self.tids[thread]
            self.at += 2
        return index

    def put_string(self, code: i64, nbytes: i64) -> i64:
        """Write the first bytes of a string, padded."""
        source = self.starts[code]
        whole = nbytes // 8
        end = source + whole
        while source < end:
            self.out[self.at] = self.words[source]
            self.at += 1
            source += 1
        rest = nbytes % 8
        if rest:
            self.out[self.at] = (self.words[source] & LOW64) & (LOW64 >> (64 - 8 * rest))
            self.at += 1
        return 0

    def put_inline(self, code: i64, ref: i64) -> i64:
        """Write the bytes of an inline string."""
        if ref & INLINE:
            self.put_string(code, STRING_REF_INDEX.get(ref))
        return 0

    def event(self, item: i64, kind: i64, now: i64) -> i64:
        """Write an event without its arguments."""
        category = self.strings[self.category[item] + 1]
        name = self.strings[self.name[item] + 1]
        word = self.word[item]
        index = self.put_thread(self.thread[item] + 1)
        # Bit 63 makes a word negative: the inline bit of the name is taken as its sign.
        signed = name - HALF if name & INLINE else name
        self.head = (
            RECORD_EVENT
            | EVENT_KIND.put(kind)
            | EVENT_THREAD.put(index)
            | EVENT_CATEGORY.put(category)
            | (signed << EVENT_NAME_AT)
        )
        self.put_inline(self.category[item], category)
        self.put_inline(self.name[item], name)
        self.last = word
        if kind == EVENT_DURATION_COMPLETE:
            self.has_last = True
            if now <= OPEN_END - word:
                self.last = now + word
            else:  # an end from 2^63 on
                self.last = now - OPEN_END - 1 + word - OPEN_END - 1
        elif kind == EVENT_INSTANT:
            self.has_last = word != 0
        elif kind != EVENT_DURATION_BEGIN and kind != EVENT_DURATION_END:
            self.has_last = True
        return 0

    def log(self, item: i64) -> i64:
        """Write a log record."""
        row = self.word[item]
        length = self.lengths_of_rows[row]
        index = self.put_thread(self.thread[item] + 1)
        self.head = RECORD_LOG | LOG_LENGTH.put(length) | LOG_THREAD.put(index)
        source = self.starts_of_rows[row]
        first = 0
        while first < length:
            word = 0
            place = 0
            while place < 8 and first + place < length:
                byte = self.message[source + first + place]
                if place == 7 and byte >= NEGATIVE_BYTE:
                    byte -= 256
                word |= byte << (8 * place)
                place += 1
            self.out[self.at] = word
            self.at += 1
            first += 8
        return 0

    def scheduling(self, kind: i64, row: i64) -> i64:
        """Write a scheduling record without its arguments."""
        self.head = RECORD_SCHEDULING | self.bits[row]
        if kind == LEGACY_SWITCH:
            outgoing = self.put_thread(self.prev[row] + 1)
            incoming = self.put_thread(self.next[row] + 1)
            self.head |= LEGACY_OUTGOING.put(outgoing) | LEGACY_INCOMING.put(incoming)
            return 0
        self.counts = SWITCH_ARGS_AT
        number = SCHED_WAKEUP
        if kind == SWITCH:
            number = SCHED_SWITCH
            self.out[self.at] = self.prev[row]
            self.at += 1
        self.head |= SCHEDULING_TYPE.put(number)
        self.out[self.at] = self.next[row]
        self.at += 1
        return 0

    def arguments(self, item: i64) -> i64:
        """Write the arguments of an item. Return their number."""
        count = 0
        if self.args and not self.natural:
            self.arg = self.first[item]
        while self.arg < self.args and self.arg_item[self.arg] == item:
            row = self.arg
            self.arg += 1
            if count == ARGUMENTS:
                self.dropped[D_ARGUMENTS] += 1
                continue
            count += self.argument(row)
        return count

    def argument(self, row: i64) -> i64:
        """Write an argument. Return 1, or 0 if it was dropped."""
        type = self.arg_type[row]
        name = self.strings[self.arg_name[row] + 1]
        whole = self.arg_whole[row]
        code = -1
        text = 0
        if type == ARG_INT32 and (whole < LEAST_INT32 or whole > MOST_INT32):
            type = ARG_INT64
        elif type == ARG_UINT32 and (whole < 0 or whole > LOW32):
            type = ARG_UINT64
        size = 1 + self.inline_words(name)
        if type == ARG_STRING:
            code = self.arg_text[row]
            text = self.strings[code + 1]
            size += self.inline_words(text)
        elif type == ARG_BLOB:
            code = self.arg_text[row]
            text = self.lengths[code] if code >= 0 else 0
            size += (text + 7) // 8
        elif (ARG_INT64 <= type <= ARG_DOUBLE) or type == ARG_POINTER or type == ARG_KOID:
            size += 1
        if type > ARG_BLOB:
            self.dropped[D_UNKNOWN] += 1
            return 0
        if self.at + size - self.start >= RECORD_WORDS:
            self.dropped[D_TOO_LARGE] += 1
            return 0
        head = self.at
        value = 0
        self.at += 1
        self.put_inline(self.arg_name[row], name)
        if type == ARG_INT32 or type == ARG_UINT32:
            value = whole - (LOW32 + 1) if whole > MOST_INT32 else whole
        elif type == ARG_STRING:
            value = text
            self.put_inline(code, text)
        elif type == ARG_BLOB:
            value = text
            if text:
                self.put_string(code, text)
        elif type == ARG_BOOL:
            value = 1 if whole else 0
        elif type:
            self.out[self.at] = self.arg_real[row] if type == ARG_DOUBLE else whole
            self.at += 1
        self.out[head] = type | (size << SIZE_AT) | ARG_NAME.put(name) | (value << ARG_VALUE_AT)
        return 1

    def inline_words(self, ref: i64) -> i64:
        """Return the number of inline words of a reference."""
        return (STRING_REF_INDEX.get(ref) + 7) // 8 if ref & INLINE else 0
