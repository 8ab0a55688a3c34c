"""The scan: trace bytes to raw rows, in one pass that can stop and go on at any record.

``framing.py`` checks the sizes of records, but of plain events and strings that fit, and
``read_record`` reports what it finds; ``event`` and ``read_on`` add the rows of events.
It shares nothing with ``records``, which decodes the same bytes for clarity, but the numbers of
the format; tests hold the two against each other. Words are int64, their bits as they are.
"""

from __future__ import annotations

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
    ARG_SIZE,
    ARG_STRING,
    ARG_STRING_REF,
    ARG_TRUTH,
    ARG_TYPE,
    ARG_UINT32,
    ARG_VALUE,
    ARG_VALUE_AT,
    BARE_EVENTS,
    EVENT_ARGS,
    EVENT_ASYNC_BEGIN,
    EVENT_ASYNC_END,
    EVENT_ASYNC_INSTANT,
    EVENT_CATEGORY,
    EVENT_COUNTER,
    EVENT_DURATION_BEGIN,
    EVENT_DURATION_COMPLETE,
    EVENT_DURATION_END,
    EVENT_FLOW_BEGIN,
    EVENT_FLOW_END,
    EVENT_FLOW_STEP,
    EVENT_INSTANT,
    EVENT_KIND,
    EVENT_NAME,
    EVENT_THREAD,
    KIND_DAMAGED,
    KIND_PADDING,
    KIND_UNKNOWN,
    KINDS,
    METADATA_TYPE,
    OVERRUN_NEED,
    PARENT_END,
    PROVIDER_ID,
    PROVIDER_SECTION,
    RECORD_BLOB,
    RECORD_EVENT,
    RECORD_INITIALIZATION,
    RECORD_KERNEL_OBJECT,
    RECORD_LOG,
    RECORD_METADATA,
    RECORD_PROFILER,
    RECORD_SCHEDULING,
    RECORD_STRING,
    RECORD_THREAD,
    RECORD_USERSPACE_OBJECT,
    SCHED_SWITCH,
    SCHED_WAKEUP,
    SIGN,
    STRING_INDEX,
    STRING_LENGTH,
    STRING_REF_END,
    STRING_REF_INDEX,
    TABLE_COUNTERS,
    TABLE_FLOWS,
    TABLE_INSTANTS,
    TABLE_SLICES,
    TRUTH_END,
    TYPE,
    UNUSED_PROVIDER_SECTION,
    UNUSED_STRING,
)
from fx_trace.read.other_records import OtherRecords
from fx_trace.rules import (
    ARGUMENT_LEFT_OVER,
    CONTENTS_OVERRUN,
    COUNTER_NOT_NUMERIC,
    NOT_UTF8,
    OF_DEFAULT_PROVIDER,
    PADDING_NOT_ZERO,
    RESERVED_BITS,
    STRING_NOT_REGISTERED,
    THREAD_NOT_REGISTERED,
    UNKNOWN_ARGUMENT,
    UNKNOWN_KIND,
    UNKNOWN_RECORD,
    UNKNOWN_SCOPE,
    ZERO_WORDS,
)
from fxframework.kernels.annotations import Array, Fallible, flag, i64, inline, status
from fxframework.kernels.buffers import full, view
from fxframework.kernels.maps import PairMap
from fxframework.kernels.notes import Notes
from fxframework.kernels.pools import Pool

__all__ = ["Scan"]

LOW32 = 0xFFFFFFFF
INLINE = 0x8000
"""In a string reference: the string follows, and the rest is its length."""
ENTRY = 32
"""Where the generation of a cache entry begins (``providers``)."""
NAMED_INLINE = 1 << 31
VALUE_INLINE = -(1 << 47)
HIGH_HALF = -(1 << 31)
ABSENT, BORROWED = 1 << 31, 1 << 30
"""In such an entry: what it stands for is to be reported; it is that of provider 0."""
ABSENT_BIT = 31
CODE = 0x1FFFFFFF
CATEGORY_INLINE, NAME_INLINE = 1 << 47, -(1 << 63)
"""Bits of an event's header."""
ONE = 1
EVENTS_AT = 16 * RECORD_EVENT
"""Where ``kinds`` counts events, by type."""
BARE_BITS = 0xFFFFFF
"""Type, size, event type and number of arguments of an event."""
NO_SCOPE = 254
AHEAD, AHEAD_WORDS = 32, 1024
"""Strings, and words, that are looked at ahead of the one that is read."""
MANY_ARGS = 16
"""Arguments that there is always room for before a record is read."""
SECOND_WORD, VALUE_BITS, TEXT_BITS, ODD_BITS = 0, 16, 32, 48
"""Parts of ``plain_types``: by argument type, whether the value is a second word; masks of the
value and of a string's code; bits of the header that make the argument none of the plain ones."""
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


class Scan(OtherRecords):
    """Reads a trace's records into rows; all of its state is kept from one ``run`` to the next.

    ``run`` reads the records that begin before word ``limit``, until about ``most`` rows of any
    table are there.
    """

    limit: i64
    most: i64
    pos: i64
    full: flag
    pointers: flag
    koids: flag
    counter_rows: i64
    arg_rows: i64
    end_args: i64
    types_seen: i64
    category: i64
    ahead: Array[i64]
    ahead_tags: Array[i64]
    next_ahead: i64
    known_ahead: i64
    rest_ahead: i64
    kinds: Array[i64]
    bare: Array[i64]
    plain_types: Array[i64]
    object_names: PairMap
    incoming_weight: i64
    outgoing_weight: i64
    weight: i64
    process_name: i64

    def __init__(self, words: Any, streams: Any, data: Any, pool: Pool, notes: Notes) -> None:
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

    def step(self) -> Fallible[i64]:
        """Read on. Return whether every record before the limit was read."""
        self.full = False
        while self.pos < self.limit and not self.full:
            self.read_on()
        return self.pos >= self.limit

    def jump(self, pos: int, total: int) -> None:
        """Go on at word ``pos``; no record passes word ``total``."""
        self.pos = pos
        self.total = total
        self.bounds.total = total
        self.next_ahead = self.known_ahead

    # --- The plain event -------------------------------------------------------------------------

    def read_on(self) -> status:
        """Read records until there is to be more room for events, the most frequent ones by far.

        Its loop reads plain events: their arguments have one or two words, their references are
        indexed and known, and there is nothing to report but of its own. Those without arguments
        are recognized by one comparison (``bare``). Arrays are local, because C reaches those in
        fewer steps.
        """
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
                kind = EVENT_KIND.get(word)
                thread = threads[EVENT_THREAD.get(word)]
                category = strings[STRING_REF_INDEX.get(EVENT_CATEGORY.get(word))]
                name = strings[STRING_REF_INDEX.get(EVENT_NAME.get(word))]
                end = start + (ARG_SIZE.get(word))
                # What is inline, or unknown so far, or was never registered.
                other = ((thread ^ era) | (category ^ era) | (name ^ era)) >> ABSENT_BIT
                other |= word & (CATEGORY_INLINE | NAME_INLINE)
                value = 0
                if (word & BARE_BITS) == bare[kind] and not other and start < safe:
                    if kind >= EVENT_DURATION_COMPLETE:
                        value = words[start + 2]
                else:
                    if (
                        TYPE.get(word) != RECORD_EVENT
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
                    nargs = EVENT_ARGS.get(word)
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

    @inline
    def plain_other(self, word: i64) -> Fallible[i64]:
        """Read a string or a provider section; False, with nothing done, if it is not plain."""
        kind = TYPE.get(word)
        if kind == RECORD_STRING:
            return self.plain_string(word)
        return kind == RECORD_METADATA and self.plain_section(word)

    def missed_references(self, word: i64, thread: i64, category: i64, name: i64) -> Fallible[i64]:
        """Report which indices of an event the provider has not registered, by their entries.

        Return whether more of them are only counted, other than those of provider 0.
        """
        if thread & ABSENT:
            self.missed(thread, THREAD_NOT_REGISTERED, EVENT_THREAD.get(word))
        if category & ABSENT:
            ref = STRING_REF_INDEX.get(EVENT_CATEGORY.get(word))
            self.missed(category, STRING_NOT_REGISTERED, ref)
        if name & ABSENT:
            self.missed(name, STRING_NOT_REGISTERED, STRING_REF_INDEX.get(EVENT_NAME.get(word)))
        return (
            self.notes.count(THREAD_NOT_REGISTERED) >= self.notes.limit
            and self.notes.count(STRING_NOT_REGISTERED) >= self.notes.limit
        )

    @inline
    def missed(self, entry: i64, rule: i64, index: i64) -> status:
        """Report an index of the record at ``pos`` that the provider has not registered."""
        rule = OF_DEFAULT_PROVIDER if entry & BORROWED else rule
        if self.notes.totals[rule] < self.notes.limit:
            self.notes.add(rule, self.pos * 8, self.record, index)
        else:  # counted, without a call
            self.notes.totals[rule] += 1
        return 0

    @inline
    def plain_arguments(
        self, start: i64, at: i64, end: i64, nargs: i64, table: i64, parent: i64
    ) -> flag:
        """Arguments of one or two words; False, with no row added, where one is not so.

        Without branches on the type, which are hard to predict: tables say what each type's
        value is made of, and ``odd`` gathers whatever is not plain.
        """
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
            kind = ARG_TYPE.get(head)
            second = self.plain_types[SECOND_WORD + kind]
            name = self.providers.strings[STRING_REF_INDEX.get(ARG_NAME.get(head))]
            text = self.providers.strings[STRING_REF_INDEX.get(ARG_STRING_REF.get(head))]
            text_bits = self.plain_types[TEXT_BITS + kind]
            wide = self.words[at + 1]
            value = wide if second else head >> ARG_VALUE_AT
            size = ARG_SIZE.get(head)
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
            types |= ONE << kind
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

    def plain_section(self, word: i64) -> Fallible[i64]:
        """Read a provider section record; False, with nothing done, for any other metadata."""
        if (
            METADATA_TYPE.get(word) != PROVIDER_SECTION
            or ARG_SIZE.get(word) != 1
            or word & UNUSED_PROVIDER_SECTION
        ):
            return False
        self.providers.record = self.record
        self.providers.enter_section(PROVIDER_ID.get(word), self.pos * 8)
        self.kinds[16 * RECORD_METADATA + PROVIDER_SECTION] += 1
        self.record += 1
        self.pos += 1
        return True

    def plain_string(self, word: i64) -> Fallible[i64]:
        """Read a string record; False, with nothing done, where there is something to report."""
        start = self.pos
        length = STRING_LENGTH.get(word)
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
        self.providers.register_string(STRING_INDEX.get(word), code)
        self.kinds[16 * RECORD_STRING] += 1
        self.record += 1
        self.pos = start + (ARG_SIZE.get(word))
        return True

    @inline
    def is_plain_string(self, start: i64, word: i64) -> flag:
        """Return whether there is nothing to report about a string record but of its text."""
        size = ARG_SIZE.get(word)
        length = STRING_LENGTH.get(word)
        rest = 8 * (length % 8)
        return not (
            word & UNUSED_STRING
            or not STRING_INDEX.get(word)
            or size != 1 + (length + 7) // 8
            or start + size >= self.total
            or (self.max_string and length > self.max_string)
            or (self.bounds.max_record and size * 8 > self.bounds.max_record)
            or (rest and self.streams[start + size - 1] >> rest)
        )

    def look_ahead(self, start: i64) -> i64:
        """Hash the plain strings that follow, and load where the pool has them, all at once.

        One after the other, each would wait for memory. What comes ahead may be damaged: then it
        is not met where it was expected. Where there are few, it is not worth it for a while.
        """
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
            size = ARG_SIZE.get(word)
            if size == 0:
                break
            if TYPE.get(word) == RECORD_STRING and self.is_plain_string(at, word):
                self.ahead[found] = at
                self.ahead_tags[found] = self.pool.announce(at + 1, STRING_LENGTH.get(word))
                found += 1
            at += size
        if found < AHEAD // 4:
            self.rest_ahead = 4 * AHEAD
        self.known_ahead = found
        return 0

    # --- Any record ------------------------------------------------------------------------------

    def read_record(self, word: i64) -> status:
        """The record, or the stretch of zero words or damage, that begins with this word."""
        start = self.pos
        offset = start * 8
        kind = TYPE.get(word)
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

    def sound_record(self, kind: i64, word: i64) -> Fallible[i64]:
        """Read a record of a sound size. Return what it counts as."""
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
            self.note(CONTENTS_OVERRUN, start * 8, OVERRUN_NEED.put(need) | (self.end - start))
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

    def contents(self, kind: i64, word: i64) -> status:
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

    def event(self, word: i64) -> status:
        """An event of any kind, with whatever references."""
        offset = self.start * 8
        kind = EVENT_KIND.get(word)
        nargs = EVENT_ARGS.get(word)
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

    @inline
    def references_end(self, start: i64, word: i64) -> i64:
        """Return the word behind the inline references of the event at word ``start``."""
        at = start + (2 if EVENT_THREAD.get(word) else 4)
        if word & CATEGORY_INLINE:
            at += (STRING_REF_INDEX.get(EVENT_CATEGORY.get(word)) + 7) // 8
        if word & NAME_INLINE:
            at += (STRING_REF_INDEX.get(EVENT_NAME.get(word)) + 7) // 8
        return at

    def references(self, word: i64) -> status:
        """Look up the thread, category and name of an event; report what is wrong with them."""
        at = self.start + 2
        ref = EVENT_THREAD.get(word)
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
            size = STRING_REF_INDEX.get(EVENT_CATEGORY.get(word))
            self.category = self.inline_string(at, size)
            at += (size + 7) // 8
        else:
            self.category = self.indexed_string(STRING_REF_INDEX.get(EVENT_CATEGORY.get(word)))
        if word & NAME_INLINE:
            self.name = self.inline_string(at, STRING_REF_INDEX.get(EVENT_NAME.get(word)))
        else:
            self.name = self.indexed_string(STRING_REF_INDEX.get(EVENT_NAME.get(word)))
        return 0

    @inline
    def indexed_string(self, ref: i64) -> Fallible[i64]:
        """Return the code of an event's indexed string."""
        entry = self.providers.strings[ref]
        if (entry >> ENTRY) ^ self.providers.generation | entry & ABSENT:
            return self.string(ref, 0, self.start * 8, NOT_UTF8)
        return entry & CODE

    @inline
    def inline_string(self, at: i64, nbytes: i64) -> Fallible[i64]:
        """Return the code of an event's inline string at word ``at``."""
        if nbytes % 8 or (self.max_string and nbytes > self.max_string):
            return self.string(INLINE | nbytes, at, self.start * 8, NOT_UTF8)
        code = self.pool.intern(at, nbytes)
        if not self.pool.valid[code]:
            self.note(NOT_UTF8, self.start * 8, code)
        return code

    @inline
    def table_of(self, kind: i64) -> i64:
        """Return the table of the rows of events of a type, to which their arguments belong."""
        if EVENT_DURATION_BEGIN <= kind <= EVENT_ASYNC_BEGIN or kind == EVENT_ASYNC_END:
            return TABLE_SLICES
        if kind >= EVENT_FLOW_BEGIN:
            return TABLE_FLOWS
        return TABLE_COUNTERS if kind == EVENT_COUNTER else TABLE_INSTANTS

    @inline
    def next_row(self, kind: i64) -> i64:
        """Return the row that the next event of a type gets, to which its arguments belong."""
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

    @inline
    def seen(self, kind: i64) -> i64:
        """Return the number of events of a type so far."""
        return self.kinds[EVENTS_AT + kind]

    # --- Arguments -------------------------------------------------------------------------------

    def arguments(self, kind: i64, reserved: i64, unpadded: i64) -> status:
        """The arguments of a record, of which it is known that they fit it.

        ``reserved`` and ``unpadded`` are how often those two findings had been made before the
        record, which reports each of them once.
        """
        if self.args.rows + MANY_ARGS > self.args.room:
            self.args.grow()
        count = self.nargs
        while count > 0:
            word = self.words[self.at]
            here = self.at * 8
            end = self.at + (ARG_SIZE.get(word))
            row = self.args.rows
            type = ARG_TYPE.get(word)
            name_ref = ARG_NAME.get(word)
            self.dirty = 0
            name = self.string(name_ref, self.at + 1, here, NOT_UTF8)
            at = self.at + 1 + self.inline_words(name_ref)
            value = 0
            high = 0
            after = at
            if type == ARG_INT32:
                value = word >> ARG_VALUE_AT
            elif type == ARG_UINT32:
                value = ARG_VALUE.get(word)
            elif (ARG_INT64 <= type <= ARG_DOUBLE) or type == ARG_POINTER or type == ARG_KOID:
                value = self.words[at]
                high = word >> ARG_VALUE_AT
                after = at + 1
            elif type == ARG_STRING:
                ref = ARG_STRING_REF.get(word)
                value = self.string(ref, at, here, NOT_UTF8)
                high = word >> STRING_REF_END
                after = at + self.inline_words(ref)
            elif type == ARG_BOOL:
                value = ARG_TRUTH.get(word)
                high = word >> TRUTH_END
            elif type == ARG_BLOB:
                length = ARG_VALUE.get(word)
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
                self.types_seen |= ONE << type
                self.relate(kind, row, type, name, value)
                self.args.rows = row + 1
                self.arg_rows += 1
            self.at = end
            count -= 1
        return 0

    def annotate(self, kind: i64) -> status:
        """An object annotates the arguments that come after it: they are plain no more."""
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

    def relate(self, kind: i64, row: i64, type: i64, name: i64, value: i64) -> status:
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

    def refer(self, row: i64, owner: i64, value: i64) -> status:
        """Annotate an argument with the name of the object that it means."""
        name = self.object_names.get(owner, value)
        if name >= 0:
            at = self.annotations.add_row()
            self.annotations.arg[at] = row
            self.annotations.name[at] = name
        return 0

    def counter_value(self, row: i64, type: i64) -> status:
        """A counter has a row for each argument that is a number."""
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

    def priority(self, name: i64, value: i64) -> status:
        """The weights of a scheduling record are among its arguments."""
        row = self.sched.rows - 1
        if self.subtype == SCHED_SWITCH:
            if name == self.incoming_weight:
                self.sched.next_priority[row] = value
            elif name == self.outgoing_weight:
                self.sched.prev_priority[row] = value
        elif self.subtype == SCHED_WAKEUP and name == self.weight:
            self.sched.next_priority[row] = value
        return 0
