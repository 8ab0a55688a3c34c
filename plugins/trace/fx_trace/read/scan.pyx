# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""The scan: trace bytes to raw rows, in one pass that can stop and go on at any record.

``framing.py`` checks the sizes of records, but of plain events and strings that fit, and
``read_record`` reports what it finds; ``event`` and ``read_on`` add the rows of events.
It shares nothing with ``records``, which decodes the same bytes for clarity, but the numbers of
the format; tests hold the two against each other. Words are int64, their bits as they are.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from fx_trace.read.other_records cimport OtherRecords
from fxframework.kernels.fields cimport Field, field, get, put
from fxframework.kernels.pools cimport PairMap, Pool
from fxframework.kernels.rows cimport Notes

from typing import Any

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.format import BARE_EVENTS, KINDS
from fxframework.kernels.buffers import full, view

cdef int64_t ARG_BLOB = wire.ARG_BLOB, ARG_BOOL = wire.ARG_BOOL, ARG_DOUBLE = wire.ARG_DOUBLE
cdef int64_t ARG_INT32 = wire.ARG_INT32, ARG_INT64 = wire.ARG_INT64, ARG_KOID = wire.ARG_KOID
cdef int64_t ARG_POINTER = wire.ARG_POINTER, ARG_STRING = wire.ARG_STRING
cdef int64_t ARG_UINT32 = wire.ARG_UINT32, ARG_VALUE_AT = wire.ARG_VALUE_AT
cdef int64_t EVENT_ASYNC_BEGIN = wire.EVENT_ASYNC_BEGIN, EVENT_ASYNC_END = wire.EVENT_ASYNC_END
cdef int64_t EVENT_ASYNC_INSTANT = wire.EVENT_ASYNC_INSTANT, EVENT_COUNTER = wire.EVENT_COUNTER
cdef int64_t EVENT_DURATION_BEGIN = wire.EVENT_DURATION_BEGIN
cdef int64_t EVENT_DURATION_COMPLETE = wire.EVENT_DURATION_COMPLETE
cdef int64_t EVENT_DURATION_END = wire.EVENT_DURATION_END, EVENT_FLOW_BEGIN = wire.EVENT_FLOW_BEGIN
cdef int64_t EVENT_FLOW_END = wire.EVENT_FLOW_END, EVENT_FLOW_STEP = wire.EVENT_FLOW_STEP
cdef int64_t EVENT_INSTANT = wire.EVENT_INSTANT, KIND_DAMAGED = wire.KIND_DAMAGED
cdef int64_t KIND_PADDING = wire.KIND_PADDING, KIND_UNKNOWN = wire.KIND_UNKNOWN
cdef int64_t PARENT_END = wire.PARENT_END, PROVIDER_SECTION = wire.PROVIDER_SECTION
cdef int64_t RECORD_BLOB = wire.RECORD_BLOB, RECORD_EVENT = wire.RECORD_EVENT
cdef int64_t RECORD_INITIALIZATION = wire.RECORD_INITIALIZATION
cdef int64_t RECORD_KERNEL_OBJECT = wire.RECORD_KERNEL_OBJECT, RECORD_LOG = wire.RECORD_LOG
cdef int64_t RECORD_METADATA = wire.RECORD_METADATA, RECORD_PROFILER = wire.RECORD_PROFILER
cdef int64_t RECORD_SCHEDULING = wire.RECORD_SCHEDULING, RECORD_STRING = wire.RECORD_STRING
cdef int64_t RECORD_THREAD = wire.RECORD_THREAD
cdef int64_t RECORD_USERSPACE_OBJECT = wire.RECORD_USERSPACE_OBJECT
cdef int64_t SCHED_SWITCH = wire.SCHED_SWITCH, SCHED_WAKEUP = wire.SCHED_WAKEUP, SIGN = wire.SIGN
cdef int64_t STRING_REF_END = wire.STRING_REF_END, TABLE_COUNTERS = wire.TABLE_COUNTERS
cdef int64_t TABLE_FLOWS = wire.TABLE_FLOWS, TABLE_INSTANTS = wire.TABLE_INSTANTS
cdef int64_t TABLE_SLICES = wire.TABLE_SLICES, TRUTH_END = wire.TRUTH_END
cdef int64_t UNUSED_PROVIDER_SECTION = wire.UNUSED_PROVIDER_SECTION
cdef int64_t UNUSED_STRING = wire.UNUSED_STRING
cdef Field ARG_NAME = field(wire.ARG_NAME), ARG_SIZE = field(wire.ARG_SIZE)
cdef Field ARG_STRING_REF = field(wire.ARG_STRING_REF), ARG_TRUTH = field(wire.ARG_TRUTH)
cdef Field ARG_TYPE = field(wire.ARG_TYPE), ARG_VALUE = field(wire.ARG_VALUE)
cdef Field EVENT_ARGS = field(wire.EVENT_ARGS), EVENT_CATEGORY = field(wire.EVENT_CATEGORY)
cdef Field EVENT_KIND = field(wire.EVENT_KIND), EVENT_NAME = field(wire.EVENT_NAME)
cdef Field EVENT_THREAD = field(wire.EVENT_THREAD), METADATA_TYPE = field(wire.METADATA_TYPE)
cdef Field OVERRUN_NEED = field(wire.OVERRUN_NEED), PROVIDER_ID = field(wire.PROVIDER_ID)
cdef Field STRING_INDEX = field(wire.STRING_INDEX), STRING_LENGTH = field(wire.STRING_LENGTH)
cdef Field STRING_REF_INDEX = field(wire.STRING_REF_INDEX), TYPE = field(wire.TYPE)
cdef int64_t ARGUMENT_LEFT_OVER = rules.ARGUMENT_LEFT_OVER
cdef int64_t CONTENTS_OVERRUN = rules.CONTENTS_OVERRUN
cdef int64_t COUNTER_NOT_NUMERIC = rules.COUNTER_NOT_NUMERIC, NOT_UTF8 = rules.NOT_UTF8
cdef int64_t OF_DEFAULT_PROVIDER = rules.OF_DEFAULT_PROVIDER
cdef int64_t PADDING_NOT_ZERO = rules.PADDING_NOT_ZERO, RESERVED_BITS = rules.RESERVED_BITS
cdef int64_t STRING_NOT_REGISTERED = rules.STRING_NOT_REGISTERED
cdef int64_t THREAD_NOT_REGISTERED = rules.THREAD_NOT_REGISTERED
cdef int64_t UNKNOWN_ARGUMENT = rules.UNKNOWN_ARGUMENT, UNKNOWN_KIND = rules.UNKNOWN_KIND
cdef int64_t UNKNOWN_RECORD = rules.UNKNOWN_RECORD, UNKNOWN_SCOPE = rules.UNKNOWN_SCOPE
cdef int64_t ZERO_WORDS = rules.ZERO_WORDS

__all__ = ["Scan"]

LOW32 = 0xFFFFFFFF

cdef enum:
    INLINE = 0x8000  # In a string reference: the string follows, and the rest is its length.
    ENTRY = 32  # Where the generation of a cache entry begins (``providers``).
NAMED_INLINE = 1 << 31
VALUE_INLINE = -(1 << 47)
HIGH_HALF = -(1 << 31)
# In such an entry: what it stands for is to be reported; it is that of provider 0.
cdef int64_t ABSENT = 1 << 31

cdef enum:
    BORROWED = 1 << 30
    ABSENT_BIT = 31
    CODE = 0x1FFFFFFF
# Bits of an event's header.
cdef int64_t CATEGORY_INLINE = 1 << 47
cdef int64_t NAME_INLINE = <int64_t>(1ULL << 63)
# Where ``kinds`` counts events, by type.
cdef int64_t EVENTS_AT = 16 * RECORD_EVENT

cdef enum:
    ONE = 1
    BARE_BITS = 0xFFFFFF  # Type, size, event type and number of arguments of an event.
    NO_SCOPE = 254
    # Strings, and words, that are looked at ahead of the one that is read.
    AHEAD = 32
    AHEAD_WORDS = 1024
    MANY_ARGS = 16  # Arguments that there is always room for before a record is read.
    # Parts of ``plain_types``: by argument type, whether the value is a second word; masks of the
    # value and of a string's code; bits of the header that make the argument none of the plain ones.
    SECOND_WORD = 0
    VALUE_BITS = 16
    TEXT_BITS = 32
    ODD_BITS = 48
PLAIN_TYPES = (
    # null int32 uint32 int64 uint64 double string pointer koid bool, and none from 10 on
    *(0, 0, 0, 1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0),
    *(0, -1, LOW32, -1, -1, -1, 0, -1, -1, 1, 0, 0, 0, 0, 0, 0),
    *(0, 0, 0, 0, 0, 0, CODE, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    *(HIGH_HALF, NAMED_INLINE, NAMED_INLINE),
    *(HIGH_HALF,) * 3,
    VALUE_INLINE | NAMED_INLINE,
    *(HIGH_HALF,) * 2,
    -(1 << 33) | NAMED_INLINE,
    *(-1,) * 6,
)


@cython.final
cdef class Scan(OtherRecords):
    """Reads a trace's records into rows; all of its state is kept from one ``run`` to the next.

    ``run`` reads the records that begin before word ``limit``, until about ``most`` rows of any
    table are there.
    """

    cdef public int64_t limit, most, pos
    cdef public bint full
    cdef bint pointers
    cdef public bint koids
    cdef readonly int64_t counter_rows, arg_rows, end_args, types_seen, category
    cdef readonly int64_t[::1] ahead
    cdef int64_t[::1] ahead_tags
    cdef int64_t next_ahead, known_ahead, rest_ahead
    cdef readonly int64_t[::1] kinds, bare
    cdef int64_t[::1] plain_types
    cdef PairMap object_names
    cdef readonly int64_t incoming_weight, outgoing_weight, weight, process_name

    def __init__(self, words, streams, data, pool, notes):
        super().__init__(words, streams, data, pool, notes)
        self.object_names = PairMap(64)
        self.kinds = full(KINDS, "i8")
        self.bare = view(BARE_EVENTS, "i8")
        self.plain_types = view(PLAIN_TYPES, "i8")
        self.incoming_weight = pool.enter(b"incoming_weight")
        self.outgoing_weight = pool.enter(b"outgoing_weight")
        self.weight = pool.enter(b"weight")
        self.process_name = pool.enter(b"process")
        self.limit = self.total
        self.most = 1 << 61
        self.pos = 0
        self.full = False
        self.counter_rows = 0
        self.arg_rows = 0
        self.end_args = 0
        self.types_seen = 0
        self.category = 0
        self.ahead = full(AHEAD, "i8")
        self.ahead_tags = full(AHEAD, "i8")
        self.next_ahead = 0
        self.known_ahead = 0
        self.rest_ahead = 0
        self.pointers = False
        self.koids = False

    cdef int64_t step(self) except? -9 nogil:
        """Read on. Return whether every record before the limit was read."""
        self.full = False
        while self.pos < self.limit and not self.full:
            self.read_on()
        return self.pos >= self.limit

    def jump(self, pos, total):
        """Go on at word ``pos``; no record passes word ``total``."""
        self.pos = pos
        self.total = total
        self.bounds.total = total
        self.next_ahead = self.known_ahead

    # --- The plain event -------------------------------------------------------------------------

    cdef int read_on(self) except -1 nogil:
        """Read records until there is to be more room for events, the most frequent ones by far.

        Its loop reads plain events: their arguments have one or two words, their references are
        indexed and known, and there is nothing to report but of its own. Those without arguments
        are recognized by one comparison (``bare``). Arrays are local, because C reaches those in
        fewer steps.
        """
        cdef const int64_t[::1] words
        cdef int64_t[::1] threads, strings, offsets, times, values, counts, bare
        cdef uint8_t[::1] kinds
        cdef int32_t[::1] event_threads, categories, names
        cdef int64_t room, last_row, longest, only_counted, threads_missed, strings_missed, era
        cdef int64_t row, safe, record, behind, signs, start, word, kind, thread, category, name
        cdef int64_t end, other, value, nargs, args_at, last, table, parent, ticks
        words = self.words
        threads = self.providers.threads
        strings = self.providers.strings
        kinds = self.events.kind
        event_threads = self.events.thread
        categories = self.events.category
        names = self.events.name
        offsets = self.events.offset
        times = self.events.ticks
        values = self.events.word
        counts = self.kinds
        bare = self.bare
        room = self.events.room
        last_row = min(room, self.most)
        longest = self.total
        if self.bounds.max_record:
            longest = self.bounds.max_record // 8
        only_counted = 0
        threads_missed = 0
        strings_missed = 0
        while self.pos < self.limit and not self.full and self.events.room == room:
            era = self.providers.generation << ENTRY
            row = self.events.rows
            safe = min(self.limit, self.total - 3) if longest >= 3 else 0
            record = self.record - row
            behind = last_row if self.providers.ready else row
            signs = 0
            start = self.pos
            while start < self.limit and row < behind:
                word = words[start]
                kind = get(EVENT_KIND, word)
                thread = threads[get(EVENT_THREAD, word)]
                category = strings[get(STRING_REF_INDEX, get(EVENT_CATEGORY, word))]
                name = strings[get(STRING_REF_INDEX, get(EVENT_NAME, word))]
                end = start + (get(ARG_SIZE, word))
                # What is inline, or unknown so far, or was never registered.
                other = ((thread ^ era) | (category ^ era) | (name ^ era)) >> ABSENT_BIT
                other |= word & (CATEGORY_INLINE | NAME_INLINE)
                value = 0
                if (word & BARE_BITS) == bare[kind] and not other and start < safe:
                    if kind >= EVENT_DURATION_COMPLETE:
                        value = words[start + 2]
                else:
                    if (
                        get(TYPE, word) != RECORD_EVENT
                        or kind == EVENT_COUNTER
                        or kind > EVENT_FLOW_END
                    ):
                        self.pos = start
                        self.record = record + row
                        if not self.plain_other(word):
                            break
                        start = self.pos
                        record += 1
                        era = self.providers.generation << ENTRY
                        behind = last_row if self.providers.ready else row
                        continue
                    nargs = get(EVENT_ARGS, word)
                    args_at = start + 2
                    other &= -2  # those that were never registered are reported below
                    if other:
                        args_at = self.references_end(start, word)
                    if end >= self.total or end - start > longest:
                        break
                    last = end
                    if kind >= EVENT_DURATION_COMPLETE:
                        last = end - 1
                        value = words[last]
                    if nargs:
                        table = self.table_of(kind)
                        parent = self.next_row(kind)
                        if not self.plain_arguments(start, args_at, last, nargs, table, parent):
                            break
                    elif last != args_at:
                        break
                    if other:
                        self.record = record + row
                        self.providers.record = self.record
                        self.start = start
                        self.dirty = 0
                        self.references(word)
                        if self.dirty:
                            self.note(PADDING_NOT_ZERO, start * 8, 0)
                        thread = self.thread
                        category = self.category
                        name = self.name
                    elif (thread | category | name) & ABSENT:
                        if only_counted and not (thread | category | name) & BORROWED:
                            if thread & ABSENT:
                                threads_missed += 1
                            if category & ABSENT:
                                strings_missed += 1
                            if name & ABSENT:
                                strings_missed += 1
                        else:
                            self.pos = start
                            self.record = record + row
                            only_counted = self.missed_references(word, thread, category, name)
                ticks = words[start + 1]
                signs |= ticks
                if kind == EVENT_DURATION_COMPLETE:
                    signs |= value
                kinds[row] = kind
                event_threads[row] = thread & CODE
                categories[row] = category & CODE
                names[row] = name & CODE
                offsets[row] = start * 8
                times[row] = ticks
                values[row] = value
                row += 1
                counts[EVENTS_AT + kind] += 1
                start = end
            self.record = record + row
            self.events.rows = row
            self.pos = start
            if signs < 0:
                self.large_ticks = True
            if row >= self.most:
                self.full = True
            elif start < self.limit and not self.plain_other(words[start]):
                self.read_record(words[start])
        self.notes.totals[THREAD_NOT_REGISTERED] += threads_missed
        self.notes.totals[STRING_NOT_REGISTERED] += strings_missed
        return 0

    cdef inline int64_t plain_other(self, int64_t word) except? -9 nogil:
        """Read a string or a provider section; False, with nothing done, if it is not plain."""
        cdef int64_t kind
        kind = get(TYPE, word)
        if kind == RECORD_STRING:
            return self.plain_string(word)
        return kind == RECORD_METADATA and self.plain_section(word)

    cdef int64_t missed_references(self, int64_t word, int64_t thread, int64_t category,
                                   int64_t name) except? -9 nogil:
        """Report which indices of an event the provider has not registered, by their entries.

        Return whether more of them are only counted, other than those of provider 0.
        """
        cdef int64_t ref
        if thread & ABSENT:
            self.missed(thread, THREAD_NOT_REGISTERED, get(EVENT_THREAD, word))
        if category & ABSENT:
            ref = get(STRING_REF_INDEX, get(EVENT_CATEGORY, word))
            self.missed(category, STRING_NOT_REGISTERED, ref)
        if name & ABSENT:
            self.missed(name, STRING_NOT_REGISTERED, get(STRING_REF_INDEX, get(EVENT_NAME, word)))
        return (
            self.notes.count(THREAD_NOT_REGISTERED) >= self.notes.limit
            and self.notes.count(STRING_NOT_REGISTERED) >= self.notes.limit
        )

    cdef inline int missed(self, int64_t entry, int64_t rule, int64_t index) except -1 nogil:
        """Report an index of the record at ``pos`` that the provider has not registered."""
        rule = OF_DEFAULT_PROVIDER if entry & BORROWED else rule
        if self.notes.totals[rule] < self.notes.limit:
            self.notes.add(rule, self.pos * 8, self.record, index)
        else:  # counted, without a call
            self.notes.totals[rule] += 1
        return 0

    cdef inline bint plain_arguments(self, int64_t start, int64_t at, int64_t end, int64_t nargs,
                                     int64_t table, int64_t parent) noexcept nogil:
        """Arguments of one or two words; False, with no row added, where one is not so.

        Without branches on the type, which are hard to predict: tables say what each type's
        value is made of, and ``odd`` gathers whatever is not plain.
        """
        cdef int64_t generation, offset, row, odd, types, count, head, kind, second, name, text
        cdef int64_t text_bits, wide, value, size
        if self.args.rows + MANY_ARGS > self.args.room:
            return False
        generation = self.providers.generation
        offset = start * 8
        row = self.args.rows
        odd = 0
        types = 0
        count = nargs
        while count > 0:
            if at >= end:
                return False
            head = self.words[at]
            kind = get(ARG_TYPE, head)
            second = self.plain_types[SECOND_WORD + kind]
            name = self.providers.strings[get(STRING_REF_INDEX, get(ARG_NAME, head))]
            text = self.providers.strings[get(STRING_REF_INDEX, get(ARG_STRING_REF, head))]
            text_bits = self.plain_types[TEXT_BITS + kind]
            wide = self.words[at + 1]
            value = wide if second else head >> ARG_VALUE_AT
            size = get(ARG_SIZE, head)
            odd |= (
                (head & self.plain_types[ODD_BITS + kind])
                | (size ^ (1 + second))
                | ((name >> ENTRY) ^ generation)
                | ((((text >> ENTRY) ^ generation) | (text & ABSENT)) & -(text_bits & ONE))
                | (name & ABSENT)
            )
            self.args.table[row] = table
            self.args.type[row] = kind
            self.args.name[row] = name & CODE
            self.args.parent[row] = parent
            self.args.offset[row] = offset
            self.args.value[row] = (value & self.plain_types[VALUE_BITS + kind]) | (
                text & text_bits
            )
            types |= <int64_t>ONE << kind
            row += 1
            at += size
            count -= 1
        if odd or at != end:
            return False
        self.types_seen |= types
        self.arg_rows += nargs
        if parent < 0:
            self.end_args += nargs
        self.args.rows = row
        return True

    # --- The plain section and string ------------------------------------------------------------

    cdef int64_t plain_section(self, int64_t word) except? -9 nogil:
        """Read a provider section record; False, with nothing done, for any other metadata."""
        if (
            get(METADATA_TYPE, word) != PROVIDER_SECTION
            or get(ARG_SIZE, word) != 1
            or word & UNUSED_PROVIDER_SECTION
        ):
            return False
        self.providers.record = self.record
        self.providers.enter_section(get(PROVIDER_ID, word), self.pos * 8)
        self.kinds[16 * RECORD_METADATA + PROVIDER_SECTION] += 1
        self.record += 1
        self.pos += 1
        return True

    cdef int64_t plain_string(self, int64_t word) except? -9 nogil:
        """Read a string record; False, with nothing done, where there is something to report."""
        cdef int64_t start, length, tag, code
        start = self.pos
        length = get(STRING_LENGTH, word)
        if self.next_ahead == self.known_ahead:
            self.look_ahead(start)
        if self.next_ahead < self.known_ahead and self.ahead[self.next_ahead] == start:
            tag = self.ahead_tags[self.next_ahead]
            self.next_ahead += 1
        elif self.is_plain_string(start, word):
            self.next_ahead = self.known_ahead
            tag = self.pool.hash_of(start + 1, length)
        else:
            return False
        code = self.pool.intern_hashed(start + 1, length, tag)
        if not self.pool.valid[code]:
            self.note(NOT_UTF8, start * 8, code)
        self.providers.register_string(get(STRING_INDEX, word), code)
        self.kinds[16 * RECORD_STRING] += 1
        self.record += 1
        self.pos = start + (get(ARG_SIZE, word))
        return True

    cdef inline bint is_plain_string(self, int64_t start, int64_t word) noexcept nogil:
        """Return whether there is nothing to report about a string record but of its text."""
        cdef int64_t size, length, rest
        size = get(ARG_SIZE, word)
        length = get(STRING_LENGTH, word)
        rest = 8 * (length % 8)
        return not (
            word & UNUSED_STRING
            or not get(STRING_INDEX, word)
            or size != 1 + (length + 7) // 8
            or start + size >= self.total
            or (self.max_string and length > self.max_string)
            or (self.bounds.max_record and size * 8 > self.bounds.max_record)
            or (rest and self.streams[start + size - 1] >> rest)
        )

    cdef int64_t look_ahead(self, int64_t start) noexcept nogil:
        """Hash the plain strings that follow, and load where the pool has them, all at once.

        One after the other, each would wait for memory. What comes ahead may be damaged: then it
        is not met where it was expected. Where there are few, it is not worth it for a while.
        """
        cdef int64_t at, stop, found, word, size
        self.next_ahead = 0
        self.known_ahead = 0
        if self.rest_ahead:
            self.rest_ahead -= 1
            return 0
        at = start
        stop = min(start + AHEAD_WORDS, self.total)
        found = 0
        while at < stop and found < AHEAD:
            word = self.words[at]
            size = get(ARG_SIZE, word)
            if size == 0:
                break
            if get(TYPE, word) == RECORD_STRING and self.is_plain_string(at, word):
                self.ahead[found] = at
                self.ahead_tags[found] = self.pool.announce(at + 1, get(STRING_LENGTH, word))
                found += 1
            at += size
        if found < AHEAD // 4:
            self.rest_ahead = 4 * AHEAD
        self.known_ahead = found
        return 0

    # --- Any record ------------------------------------------------------------------------------

    cdef int read_record(self, int64_t word) except -1 nogil:
        """The record, or the stretch of zero words or damage, that begins with this word."""
        cdef int64_t start, offset, kind, fault
        start = self.pos
        offset = start * 8
        kind = get(TYPE, word)
        self.providers.record = self.record
        fault = self.bounds.fault(start)
        self.pos = self.bounds.end
        if fault == 0:
            self.start = start
            self.end = self.pos
            kind = self.sound_record(kind, word)
        else:
            self.note(fault, offset, self.bounds.value)
            kind = KIND_DAMAGED
            if fault == ZERO_WORDS:
                kind = KIND_PADDING
            elif fault == UNKNOWN_RECORD:
                kind = KIND_UNKNOWN
        self.kinds[kind] += 1
        self.record += 1
        return 0

    cdef int64_t sound_record(self, int64_t kind, int64_t word) except? -9 nogil:
        """Read a record of a sound size. Return what it counts as."""
        cdef int64_t start, reserved, unpadded, need
        start = self.start
        self.nargs = 0
        self.arg_table = -1
        self.arg_parent = -1
        self.thread = -1
        self.subtype = 0
        self.need = 0
        self.dirty = 0
        reserved = self.notes.count(RESERVED_BITS)
        unpadded = self.notes.count(PADDING_NOT_ZERO)
        if not self.contents(kind, word):
            need = min(self.need, 0x7FFFFFFF)
            self.note(CONTENTS_OVERRUN, start * 8, put(OVERRUN_NEED, need) | (self.end - start))
            return KIND_DAMAGED
        if self.dirty:
            self.note(PADDING_NOT_ZERO, start * 8, 0)
        if self.nargs:
            self.arguments(kind, reserved, unpadded)
        if kind == RECORD_USERSPACE_OBJECT or kind == RECORD_KERNEL_OBJECT:
            self.annotate(kind)
        self.full = (
            self.events.rows >= self.most
            or self.args.rows >= 2 * self.most
            or self.sched.rows >= self.most
            or self.logs.rows >= self.most
            or self.blobs.rows >= self.most
            or self.objects.rows >= self.most
            or self.profiler.rows >= self.most
        )
        return 16 * kind + self.subtype

    cdef int contents(self, int64_t kind, int64_t word) except -1 nogil:
        """Read what is in a record. Return 0, with nothing done, if it does not fit."""
        if kind == RECORD_EVENT:
            return self.event(word)
        if kind == RECORD_STRING:
            return self.string_record(word)
        if kind == RECORD_THREAD:
            return self.thread_record(word)
        if kind == RECORD_SCHEDULING:
            return self.scheduling(word)
        if kind == RECORD_LOG:
            return self.log(word)
        if kind == RECORD_METADATA:
            return self.metadata(word)
        if kind == RECORD_INITIALIZATION:
            return self.initialization(word)
        if kind == RECORD_BLOB:
            return self.blob(word)
        if kind == RECORD_KERNEL_OBJECT:
            return self.kernel_object(word)
        if kind == RECORD_USERSPACE_OBJECT:
            return self.userspace_object(word)
        if kind == RECORD_PROFILER:
            return self.profiler_record(word)
        return self.large(word)

    # --- Events ----------------------------------------------------------------------------------

    cdef int event(self, int64_t word) except -1 nogil:
        """An event of any kind, with whatever references."""
        cdef int64_t offset, kind, nargs, args_at, after, known, has_word, ticks, value, row
        offset = self.start * 8
        kind = get(EVENT_KIND, word)
        nargs = get(EVENT_ARGS, word)
        args_at = self.references_end(self.start, word)
        after = self.args_end(args_at, nargs)
        if after < 0:
            return 0
        known = kind <= EVENT_FLOW_END
        has_word = kind == EVENT_COUNTER or (kind >= EVENT_DURATION_COMPLETE and known)
        if has_word and not self.fits(after + 1):
            return 0
        self.subtype = kind
        if not known:
            # An event type of the future: its beginning is that of every event.
            self.note(UNKNOWN_KIND, offset, 0)
        self.references(word)
        self.at = args_at
        self.nargs = nargs
        if not known:
            return 1
        ticks = self.words[self.start + 1]
        self.time_of(ticks)
        value = 0
        if has_word:
            value = self.words[after]
            after += 1
            if value < 0 and kind == EVENT_DURATION_COMPLETE:
                self.large_ticks = True
        elif kind == EVENT_INSTANT and after < self.end:
            value = self.words[after]
            after += 1
            if value < 0 or value > 2:
                self.note(UNKNOWN_SCOPE, offset, value)
                if value < 0 or value > NO_SCOPE:
                    value = NO_SCOPE
        self.leftover(after)
        self.arg_table = self.table_of(kind)
        self.arg_parent = self.next_row(kind)
        if self.arg_parent < 0:
            self.end_args += nargs
        row = self.events.add_row()
        self.events.kind[row] = kind
        self.events.thread[row] = self.thread
        self.events.category[row] = self.category
        self.events.name[row] = self.name
        self.events.offset[row] = offset
        self.events.ticks[row] = ticks
        self.events.word[row] = value
        return 1

    cdef inline int64_t references_end(self, int64_t start, int64_t word) noexcept nogil:
        """Return the word behind the inline references of the event at word ``start``."""
        cdef int64_t at
        at = start + (2 if get(EVENT_THREAD, word) else 4)
        if word & CATEGORY_INLINE:
            at += (get(STRING_REF_INDEX, get(EVENT_CATEGORY, word)) + 7) // 8
        if word & NAME_INLINE:
            at += (get(STRING_REF_INDEX, get(EVENT_NAME, word)) + 7) // 8
        return at

    cdef int references(self, int64_t word) except -1 nogil:
        """Look up the thread, category and name of an event; report what is wrong with them."""
        cdef int64_t at, ref, entry, size
        at = self.start + 2
        ref = get(EVENT_THREAD, word)
        if ref:
            entry = self.providers.threads[ref]
            if (entry >> ENTRY) ^ self.providers.generation | entry & ABSENT:
                self.thread = self.thread_at(ref, at)
            else:
                self.thread = entry & CODE
        else:
            self.thread = self.inline_thread(self.words[at], self.words[at + 1])
            at += 2
        if word & CATEGORY_INLINE:
            size = get(STRING_REF_INDEX, get(EVENT_CATEGORY, word))
            self.category = self.inline_string(at, size)
            at += (size + 7) // 8
        else:
            self.category = self.indexed_string(get(STRING_REF_INDEX, get(EVENT_CATEGORY, word)))
        if word & NAME_INLINE:
            self.name = self.inline_string(at, get(STRING_REF_INDEX, get(EVENT_NAME, word)))
        else:
            self.name = self.indexed_string(get(STRING_REF_INDEX, get(EVENT_NAME, word)))
        return 0

    cdef inline int64_t indexed_string(self, int64_t ref) except? -9 nogil:
        """Return the code of an event's indexed string."""
        cdef int64_t entry
        entry = self.providers.strings[ref]
        if (entry >> ENTRY) ^ self.providers.generation | entry & ABSENT:
            return self.string(ref, 0, self.start * 8, NOT_UTF8)
        return entry & CODE

    cdef inline int64_t inline_string(self, int64_t at, int64_t nbytes) except? -9 nogil:
        """Return the code of an event's inline string at word ``at``."""
        cdef int64_t code
        if nbytes % 8 or (self.max_string and nbytes > self.max_string):
            return self.string(INLINE | nbytes, at, self.start * 8, NOT_UTF8)
        code = self.pool.intern(at, nbytes)
        if not self.pool.valid[code]:
            self.note(NOT_UTF8, self.start * 8, code)
        return code

    cdef inline int64_t table_of(self, int64_t kind) noexcept nogil:
        """Return the table of the rows of events of a type, to which their arguments belong."""
        if EVENT_DURATION_BEGIN <= kind <= EVENT_ASYNC_BEGIN or kind == EVENT_ASYNC_END:
            return TABLE_SLICES
        if kind >= EVENT_FLOW_BEGIN:
            return TABLE_FLOWS
        return TABLE_COUNTERS if kind == EVENT_COUNTER else TABLE_INSTANTS

    cdef inline int64_t next_row(self, int64_t kind) noexcept nogil:
        """Return the row that the next event of a type gets, to which its arguments belong."""
        cdef int64_t durations, begun
        if kind == EVENT_DURATION_END or kind == EVENT_ASYNC_END:
            return PARENT_END - self.seen(EVENT_DURATION_END) - self.seen(EVENT_ASYNC_END)
        if EVENT_DURATION_BEGIN <= kind <= EVENT_ASYNC_BEGIN:
            durations = self.seen(EVENT_DURATION_BEGIN) + self.seen(EVENT_DURATION_COMPLETE)
            return durations + self.seen(EVENT_ASYNC_BEGIN)
        if kind == EVENT_COUNTER:
            return self.counter_rows
        if kind < EVENT_FLOW_BEGIN:
            return self.seen(EVENT_INSTANT) + self.seen(EVENT_ASYNC_INSTANT)
        begun = self.seen(EVENT_FLOW_BEGIN) + self.seen(EVENT_FLOW_STEP)
        return begun + self.seen(EVENT_FLOW_END)

    cdef inline int64_t seen(self, int64_t kind) noexcept nogil:
        """Return the number of events of a type so far."""
        return self.kinds[EVENTS_AT + kind]

    # --- Arguments -------------------------------------------------------------------------------

    cdef int arguments(self, int64_t kind, int64_t reserved, int64_t unpadded) except -1 nogil:
        """The arguments of a record, of which it is known that they fit it.

        ``reserved`` and ``unpadded`` are how often those two findings had been made before the
        record, which reports each of them once.
        """
        cdef int64_t count, word, here, end, row, type, name_ref, name, at, value, high, after, ref
        cdef int64_t length
        if self.args.rows + MANY_ARGS > self.args.room:
            self.args.grow()
        count = self.nargs
        while count > 0:
            word = self.words[self.at]
            here = self.at * 8
            end = self.at + (get(ARG_SIZE, word))
            row = self.args.rows
            type = get(ARG_TYPE, word)
            name_ref = get(ARG_NAME, word)
            self.dirty = 0
            name = self.string(name_ref, self.at + 1, here, NOT_UTF8)
            at = self.at + 1 + self.inline_words(name_ref)
            value = 0
            high = 0
            after = at
            if type == ARG_INT32:
                value = word >> ARG_VALUE_AT
            elif type == ARG_UINT32:
                value = get(ARG_VALUE, word)
            elif (ARG_INT64 <= type <= ARG_DOUBLE) or type == ARG_POINTER or type == ARG_KOID:
                value = self.words[at]
                high = word >> ARG_VALUE_AT
                after = at + 1
            elif type == ARG_STRING:
                ref = get(ARG_STRING_REF, word)
                value = self.string(ref, at, here, NOT_UTF8)
                high = word >> STRING_REF_END
                after = at + self.inline_words(ref)
            elif type == ARG_BOOL:
                value = get(ARG_TRUTH, word)
                high = word >> TRUTH_END
            elif type == ARG_BLOB:
                length = get(ARG_VALUE, word)
                self.padded(at, length)
                value = self.text(at, length, here, 0)
                after = at + ((length + 7) // 8)
            elif type > ARG_BLOB:
                self.note(UNKNOWN_ARGUMENT, here, type)
                after = end
            else:
                high = word >> ARG_VALUE_AT
            if high and self.notes.count(RESERVED_BITS) == reserved:
                self.note(RESERVED_BITS, here, word)
            if self.dirty and self.notes.count(PADDING_NOT_ZERO) == unpadded:
                self.note(PADDING_NOT_ZERO, here, 0)
            if after < end:
                self.note(ARGUMENT_LEFT_OVER, here, end - after)
            # Those of an event type that we do not know are only checked: their row is not kept.
            if self.arg_table >= 0:
                self.args.table[row] = self.arg_table
                self.args.type[row] = type
                self.args.name[row] = name
                self.args.parent[row] = self.arg_parent
                self.args.offset[row] = self.start * 8
                self.args.value[row] = value
                self.types_seen |= <int64_t>ONE << type
                self.relate(kind, row, type, name, value)
                self.args.rows = row + 1
                self.arg_rows += 1
            self.at = end
            count -= 1
        return 0

    cdef int annotate(self, int64_t kind) except -1 nogil:
        """An object annotates the arguments that come after it: they are plain no more."""
        cdef int64_t row, value
        row = self.objects.rows - 1
        value = self.objects.value[row]
        if kind == RECORD_KERNEL_OBJECT:
            self.object_names.put(0, value, self.name)
            self.koids = True
            self.plain_types[ODD_BITS + ARG_KOID] = -1
        else:
            self.object_names.put(self.objects.pid[row] ^ SIGN, value, self.name)
            self.pointers = True
            self.plain_types[ODD_BITS + ARG_POINTER] = -1
        return 0

    cdef int relate(self, int64_t kind, int64_t row, int64_t type, int64_t name,
                    int64_t value) except -1 nogil:
        """What an argument says beyond itself: an object, a counter's value, a priority."""
        if type == ARG_POINTER:
            # Of the event's process; a pointer outside any event has none.
            if self.pointers and self.thread >= 0:
                self.refer(row, self.providers.known.pid[self.thread] ^ SIGN, value)
        elif type == ARG_KOID and self.koids:
            self.refer(row, 0, value)
        if kind == RECORD_EVENT:
            if self.subtype == EVENT_COUNTER:
                self.counter_value(row, type)
        elif kind == RECORD_SCHEDULING:
            if type == ARG_INT32:
                self.priority(name, value)
        elif kind == RECORD_KERNEL_OBJECT and type == ARG_KOID and name == self.process_name:
            self.objects.pid[self.objects.rows - 1] = value
        return 0

    cdef int refer(self, int64_t row, int64_t owner, int64_t value) except -1 nogil:
        """Annotate an argument with the name of the object that it means."""
        cdef int64_t name, at
        name = self.object_names.get(owner, value)
        if name >= 0:
            at = self.annotations.add_row()
            self.annotations.arg[at] = row
            self.annotations.name[at] = name
        return 0

    cdef int counter_value(self, int64_t row, int64_t type) except -1 nogil:
        """A counter has a row for each argument that is a number."""
        cdef int64_t at
        if type < ARG_INT32 or type > ARG_DOUBLE:
            self.args.parent[row] = -1
            self.note(COUNTER_NOT_NUMERIC, self.at * 8, type)
            return 0
        at = self.counters.add_row()
        self.counters.event[at] = self.events.rows - 1
        self.counters.arg[at] = row
        self.args.parent[row] = self.counter_rows
        self.counter_rows += 1
        return 0

    cdef int priority(self, int64_t name, int64_t value) except -1 nogil:
        """The weights of a scheduling record are among its arguments."""
        cdef int64_t row
        row = self.sched.rows - 1
        if self.subtype == SCHED_SWITCH:
            if name == self.incoming_weight:
                self.sched.next_priority[row] = value
            elif name == self.outgoing_weight:
                self.sched.prev_priority[row] = value
        elif self.subtype == SCHED_WAKEUP and name == self.weight:
            self.sched.next_priority[row] = value
        return 0
