# cython: boundscheck=False, wraparound=False, show_performance_hints=False
# Bounds are not checked: columns are of equal length, and room is made before a record is
# written.
"""Bulk writing: encodes columns as the words of records."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t

from fxframework.kernels.fields cimport Field, field, get, put
from fxframework.kernels.rows cimport Loop

from fx_trace import format as wire
from fx_trace.write import items
from fx_trace.write.items import column
from fxframework.kernels.buffers import full, room, view

cdef int64_t ARG_BLOB = wire.ARG_BLOB, ARG_BOOL = wire.ARG_BOOL, ARG_DOUBLE = wire.ARG_DOUBLE
cdef int64_t ARG_INT32 = wire.ARG_INT32, ARG_INT64 = wire.ARG_INT64, ARG_KOID = wire.ARG_KOID
cdef int64_t ARG_POINTER = wire.ARG_POINTER, ARG_STRING = wire.ARG_STRING
cdef int64_t ARG_UINT32 = wire.ARG_UINT32, ARG_UINT64 = wire.ARG_UINT64
cdef int64_t ARG_VALUE_AT = wire.ARG_VALUE_AT, EVENT_ARGS_AT = wire.EVENT_ARGS_AT
cdef int64_t EVENT_DURATION_BEGIN = wire.EVENT_DURATION_BEGIN
cdef int64_t EVENT_DURATION_COMPLETE = wire.EVENT_DURATION_COMPLETE
cdef int64_t EVENT_DURATION_END = wire.EVENT_DURATION_END, EVENT_FLOW_END = wire.EVENT_FLOW_END
cdef int64_t EVENT_INSTANT = wire.EVENT_INSTANT, EVENT_NAME_AT = wire.EVENT_NAME_AT
cdef int64_t OPEN_END = wire.OPEN_END, RECORD_EVENT = wire.RECORD_EVENT
cdef int64_t RECORD_LOG = wire.RECORD_LOG, RECORD_SCHEDULING = wire.RECORD_SCHEDULING
cdef int64_t SCHED_SWITCH = wire.SCHED_SWITCH, SCHED_WAKEUP = wire.SCHED_WAKEUP
cdef int64_t SIZE_AT = wire.SIZE_AT, SWITCH_ARGS_AT = wire.SWITCH_ARGS_AT
cdef Field ARG_NAME = field(wire.ARG_NAME), EVENT_CATEGORY = field(wire.EVENT_CATEGORY)
cdef Field EVENT_KIND = field(wire.EVENT_KIND), EVENT_THREAD = field(wire.EVENT_THREAD)
cdef Field LEGACY_INCOMING = field(wire.LEGACY_INCOMING)
cdef Field LEGACY_OUTGOING = field(wire.LEGACY_OUTGOING), LOG_LENGTH = field(wire.LOG_LENGTH)
cdef Field LOG_THREAD = field(wire.LOG_THREAD), SCHEDULING_TYPE = field(wire.SCHEDULING_TYPE)
cdef Field STRING_REF_INDEX = field(wire.STRING_REF_INDEX)
cdef int64_t ALONE = items.ALONE, APART = items.APART, ARGUMENTS = items.ARGUMENTS
cdef int64_t D_ARGUMENTS = items.D_ARGUMENTS, D_TOO_LARGE = items.D_TOO_LARGE
cdef int64_t D_UNKNOWN = items.D_UNKNOWN, LEGACY_SWITCH = items.LEGACY_SWITCH, LOG = items.LOG
cdef int64_t PAIRED = items.PAIRED, RECORD_WORDS = items.RECORD_WORDS, SWITCH = items.SWITCH

__all__ = ["CountUses", "Pack", "Unfold"]

cdef uint64_t LOW64 = 0xFFFFFFFFFFFFFFFFULL
cdef int64_t LOW32 = 0xFFFFFFFFLL

cdef enum:
    INLINE = 0x8000
    HALF = 0x10000
    LEAST_INT32 = -0x80000000
    MOST_INT32 = 0x7FFFFFFF
    NEGATIVE_BYTE = 128


@cython.final
cdef class CountUses(Loop):
    """Counts, by code + 1 and by thread id + 1, how often strings and threads are referred to.

    ``order`` is that of ``Pack``.
    ``run`` gives 0 where a code is not one of the pool's; threads have been looked at.
    """

    cdef public int64_t args
    cdef readonly int64_t count
    cdef int64_t codes
    cdef bint natural
    cdef readonly const uint8_t[::1] kind
    cdef const uint8_t[::1] arg_type
    cdef readonly const int32_t[::1] category
    cdef public const int32_t[::1] thread
    cdef readonly const int32_t[::1] name
    cdef public const int64_t[::1] order
    cdef const int64_t[::1] arg_name, arg_text
    cdef readonly int64_t[::1] threads
    cdef int64_t[::1] strings

    def __init__(self, items, args, order, strings, threads):
        rows = len(items.time)
        self.order = order
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
        self.strings = strings
        self.threads = threads
        self.codes = len(self.strings) - 1

    cdef int64_t step(self) except? -9 nogil:
        """Count."""
        cdef int64_t place, item, kind, row, text
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

    cdef bint use(self, int64_t code) noexcept nogil:
        """Count a string. Return False for an unknown code."""
        if code < -1 or code >= self.codes:
            return False
        self.strings[code + 1] += 1
        return True


@cython.final
cdef class Unfold(Loop):
    """Writes slices as begins and ends, so that those of no length nest as they did, too.

    ``order`` are rows by time, none if all rows are in order; ``parent`` is the row of the slice
    that encloses one, or -1; ``form`` says how each is written (``items.PAIRED``), and may become
    APART. ``threads`` is the number of threads; thread -1 is one of them. ``events`` takes the
    rows that begin, and -1 - row for those that end, in an order that holds within each thread.
    ``run`` gives how many there are.
    """

    cdef public const int64_t[::1] order, time
    cdef readonly const int64_t[::1] dur
    cdef readonly const int64_t[::1] parent
    cdef public const int32_t[::1] thread
    cdef bint natural
    cdef uint8_t[::1] form
    cdef readonly int64_t count, threads
    cdef int64_t made
    cdef int64_t[::1] link
    cdef int64_t[::1] top
    cdef public int64_t[::1] events

    def __init__(self, order, columns, form, threads):
        self.order = order
        self.thread = columns["thread"]
        self.time = columns["time"]
        self.dur = columns["dur"]
        self.parent = columns["parent"]
        self.form = form
        self.count = len(self.time)
        self.threads = threads
        self.natural = len(self.order) == 0
        # Of a paired slice the open one below it, of another the nearest enclosing paired one.
        self.link = full(self.count, "i8", -1)
        self.top = full(threads, "i8", -1)
        self.events = room(2 * self.count, "i8")
        self.made = 0

    cdef int64_t step(self) except? -9 nogil:
        """Write all slices."""
        cdef int64_t row, place, thread, open_slice
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

    cdef int64_t set_apart(self, int64_t outer) noexcept nogil:
        """Mark the slices around an unclosed one to be written as single events."""
        while outer >= 0 and (self.form[outer] == 0 or self.form[outer] == PAIRED):
            self.form[outer] = APART
            outer = self.parent[outer]
        return 0

    cdef int64_t begin(self, int64_t row) noexcept nogil:
        """Begin a slice, after ending those that do not enclose it."""
        cdef int64_t outer, thread, open_slice
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

    cdef int64_t put(self, int64_t event) noexcept nogil:
        """Add an event of a slice."""
        self.events[self.made] = event
        self.made += 1
        return 0


@cython.final
cdef class Pack(Loop):
    """Writes items as records to ``out``, until that has no room for another.

    ``order`` are items in the order of the file, and -1 - item for the end of one, which is its
    ``word`` after its beginning; ``first``, of one element more than there are items, is the place
    of each item's first argument. Both are empty where the items are in order, ``first`` also
    without arguments. ``shift`` is added to all times. ``run`` gives the words written; ``done``
    of ``count`` records are.
    """

    cdef readonly const uint8_t[::1] kind
    cdef const uint8_t[::1] arg_type
    cdef readonly const uint8_t[::1] message
    cdef public const int64_t[::1] time, word
    cdef public const int32_t[::1] thread
    cdef readonly const int32_t[::1] category
    cdef readonly const int32_t[::1] name
    cdef const int64_t[::1] arg_item, arg_name, arg_whole, arg_real, arg_text
    cdef readonly const int64_t[::1] bits
    cdef readonly const int64_t[::1] prev
    cdef readonly const int64_t[::1] next
    cdef const int64_t[::1] starts_of_rows, lengths_of_rows
    cdef readonly const int64_t[::1] words
    cdef const int64_t[::1] strings
    cdef readonly const int64_t[::1] starts, lengths
    cdef public const int64_t[::1] pids, tids, order, first
    cdef readonly const int64_t[::1] threads
    cdef public int64_t[::1] dropped
    cdef int64_t[::1] out
    cdef public int64_t shift
    cdef readonly int64_t done
    cdef public int64_t args
    cdef readonly int64_t count
    cdef int64_t most
    cdef int64_t arg
    cdef readonly int64_t start
    cdef int64_t at
    cdef int64_t head, counts
    cdef int64_t last
    cdef bint natural, has_last

    def __init__(self, items, args, rows, slotted, order, first, out):
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
        self.order = order
        self.first = first
        self.natural = len(self.order) == 0
        self.count = count if self.natural else len(self.order)
        self.out = out
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

    cdef int64_t step(self) except? -9 nogil:
        """Write records."""
        cdef int64_t item
        self.at = 0
        while self.done < self.count and self.at <= self.most:
            item = self.done if self.natural else self.order[self.done]
            self.done += 1
            self.record(item)
        return self.at

    cdef int64_t record(self, int64_t item) noexcept nogil:
        """Write the record of an item, or of the end of one."""
        cdef int64_t count, ends, kind, now, size
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

    cdef int64_t put_thread(self, int64_t thread) noexcept nogil:
        """Return a thread's index; 0 after writing its koids inline."""
        cdef int64_t index
        index = self.threads[thread]
        if index == 0:
            self.out[self.at] = self.pids[thread]
            self.out[self.at + 1] = self.tids[thread]
            self.at += 2
        return index

    cdef int64_t put_string(self, int64_t code, int64_t nbytes) noexcept nogil:
        """Write the first bytes of a string, padded."""
        cdef int64_t source, whole, end, rest
        source = self.starts[code]
        whole = nbytes // 8
        end = source + whole
        while source < end:
            self.out[self.at] = self.words[source]
            self.at += 1
            source += 1
        rest = nbytes % 8
        if rest:
            self.out[self.at] = (<uint64_t>self.words[source]) & (LOW64 >> (64 - 8 * rest))
            self.at += 1
        return 0

    cdef int64_t put_inline(self, int64_t code, int64_t ref) noexcept nogil:
        """Write the bytes of an inline string."""
        if ref & INLINE:
            self.put_string(code, get(STRING_REF_INDEX, ref))
        return 0

    cdef int64_t event(self, int64_t item, int64_t kind, int64_t now) noexcept nogil:
        """Write an event without its arguments."""
        cdef int64_t category, name, word, index, signed
        category = self.strings[self.category[item] + 1]
        name = self.strings[self.name[item] + 1]
        word = self.word[item]
        index = self.put_thread(self.thread[item] + 1)
        # Bit 63 makes a word negative: the inline bit of the name is taken as its sign.
        signed = name - HALF if name & INLINE else name
        self.head = (
            RECORD_EVENT
            | put(EVENT_KIND, kind)
            | put(EVENT_THREAD, index)
            | put(EVENT_CATEGORY, category)
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

    cdef int64_t log(self, int64_t item) noexcept nogil:
        """Write a log record."""
        cdef int64_t row, length, index, source, first, word, place, byte
        row = self.word[item]
        length = self.lengths_of_rows[row]
        index = self.put_thread(self.thread[item] + 1)
        self.head = RECORD_LOG | put(LOG_LENGTH, length) | put(LOG_THREAD, index)
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

    cdef int64_t scheduling(self, int64_t kind, int64_t row) noexcept nogil:
        """Write a scheduling record without its arguments."""
        cdef int64_t outgoing, incoming, number
        self.head = RECORD_SCHEDULING | self.bits[row]
        if kind == LEGACY_SWITCH:
            outgoing = self.put_thread(self.prev[row] + 1)
            incoming = self.put_thread(self.next[row] + 1)
            self.head |= put(LEGACY_OUTGOING, outgoing) | put(LEGACY_INCOMING, incoming)
            return 0
        self.counts = SWITCH_ARGS_AT
        number = SCHED_WAKEUP
        if kind == SWITCH:
            number = SCHED_SWITCH
            self.out[self.at] = self.prev[row]
            self.at += 1
        self.head |= put(SCHEDULING_TYPE, number)
        self.out[self.at] = self.next[row]
        self.at += 1
        return 0

    cdef int64_t arguments(self, int64_t item) noexcept nogil:
        """Write the arguments of an item. Return their number."""
        cdef int64_t count, row
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

    cdef int64_t argument(self, int64_t row) noexcept nogil:
        """Write an argument. Return 1, or 0 if it was dropped."""
        cdef int64_t type, name, whole, code, text, size, head, value
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
        self.out[head] = type | (size << SIZE_AT) | put(ARG_NAME, name) | (value << ARG_VALUE_AT)
        return 1

    cdef int64_t inline_words(self, int64_t ref) noexcept nogil:
        """Return the number of inline words of a reference."""
        return (get(STRING_REF_INDEX, ref) + 7) // 8 if ref & INLINE else 0
