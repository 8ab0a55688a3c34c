"""Sound records: the stretches of a trace that salvage copies as they are."""

from __future__ import annotations

from typing import Any

from fx_trace.format import (
    ARG_NAME,
    ARG_SIZE,
    ARG_STRING,
    ARG_STRING_REF,
    ARG_TYPE,
    EVENT_NAME,
    LARGE_FORMAT,
    LARGE_KIND,
    LARGE_SIZE,
    MAX_ARGS,
    METADATA_TYPE,
    OWN_FIELDS_AT,
    PROVIDER_EVENT,
    PROVIDER_ID,
    PROVIDER_INFO,
    PROVIDER_NAME_LENGTH,
    PROVIDER_SECTION,
    RECORD_EVENT,
    RECORD_KERNEL_OBJECT,
    RECORD_LARGE,
    RECORD_METADATA,
    RECORD_STRING,
    RECORD_THREAD,
    RECORD_USERSPACE_OBJECT,
    SIZE,
    STRING_INDEX,
    STRING_LENGTH,
    THREAD_INDEX,
    TYPE,
    UNUSED_LARGE,
)
from fx_trace.read.forms import (
    FIELD_WIDTH,
    FORM_WIDTH,
    FORM_WORDS,
    KOIDS,
    NARGS_AT,
    STRING,
    TAIL,
)
from fx_trace.read.framing import RecordBounds
from fx_trace.write.registrations import Registrations
from fxframework.kernels.alignment import Judge
from fxframework.kernels.annotations import Fallible, View, flag, i64, status, u64
from fxframework.kernels.kernel import Kernel

__all__ = ["SoundRecords", "TraceJudge"]

INLINE = 0x8000
LOW32, LOW64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
MOST_WORDS = SIZE.limit
"""Words of a record that is not large."""
SOON = 1 << 32
"""Ticks between two events that follow one another in a file, at most."""


class SoundRecords(Kernel):
    """Passes over records whose contents fill them exactly and whose references are registered.

    ``run`` returns the word of the first record that is not so, or the end of the words, and
    ``stopped`` is 1; or it is at word ``until`` or behind it. Of metadata, only records that switch
    providers are passed, and those only if ``switches``. ``pos`` is behind the last record passed.
    The caller handles the record at which it stopped, calls ``register`` if that is framed, and
    sets ``pos`` behind it. ``count`` is the number of records passed, ``max_record`` a limit in
    bytes, 0 for none.
    """

    words: View[i64]
    records: RecordBounds
    registrations: Registrations
    max_record: i64
    switches: flag
    pos: i64
    until: i64
    stopped: flag
    count: i64
    total: i64

    def __init__(self, words: Any) -> None:
        self.words = memoryview(words)
        self.total = len(self.words)
        self.records = RecordBounds(words)
        self.registrations = Registrations(self.total)
        self.max_record = 0
        self.switches = False
        self.pos = 0
        self.until = 0
        self.stopped = 1
        self.count = 0

    def step(self) -> Fallible[i64]:
        """Pass over sound records."""
        self.stopped = 1
        while self.pos < self.total:
            if self.pos >= self.until:
                self.stopped = 0
                break
            word = self.words[self.pos]
            kind = TYPE.get(word)
            size = self.records.sound_size(self.pos)
            if size == 0 or (self.max_record and 8 * size > self.max_record):
                break
            if kind == RECORD_METADATA:
                if not self.switches or size != self.switch_size(word):
                    break
                self.enter(self.pos)
            else:
                form = self.records.form_of(self.pos, self.pos + size)
                if form < 0 or not self.is_resolved(self.pos, form):
                    break
                if kind == RECORD_STRING or kind == RECORD_THREAD:
                    self.enter(self.pos)
            self.pos += size
            self.count += 1
        return self.pos

    def switch_size(self, word: i64) -> i64:
        """Return the words that a metadata record fills exactly; 0 if it switches no providers."""
        kind = METADATA_TYPE.get(word)
        if kind == PROVIDER_SECTION:
            return 1
        if kind == PROVIDER_INFO:
            return 1 + (PROVIDER_NAME_LENGTH.get(word) + 7) // 8
        return 0

    def limit(self, end: int) -> None:
        """Look for records before word ``end`` only."""
        self.total = end
        self.records.total = end

    def register(self, at: int) -> None:
        """Enter what the framed record at word ``at`` registers: a string, thread or provider."""
        self.enter(at)

    def is_resolved(self, at: i64, form: i64) -> flag:
        """Return whether all strings and threads that a record refers to are registered."""
        word = self.words[at]
        row = form * FORM_WIDTH
        end = at + self.records.forms[row + FORM_WORDS]
        field = row + TAIL + 1
        while field < row + FORM_WIDTH:
            kind = self.records.forms[field]
            value = (word >> self.records.forms[field + 1]) & self.records.forms[field + 2]
            if kind == STRING:
                if not self.has_string(value):
                    return False
                end += self.records.inline_words(value)
            elif kind == KOIDS:
                if value and not self.registrations.has_thread(value):
                    return False
                if value == 0:
                    end += self.records.forms[field + 3]
            field += FIELD_WIDTH
        if self.records.forms[row + NARGS_AT] >= 0:
            count = (word >> self.records.forms[row + NARGS_AT]) & MAX_ARGS
            while count > 0:
                word = self.words[end]
                if not self.has_string(ARG_NAME.get(word)):
                    return False
                if ARG_TYPE.get(word) == ARG_STRING:
                    if not self.has_string(ARG_STRING_REF.get(word)):
                        return False
                end += ARG_SIZE.get(word)
                count -= 1
        return True

    def has_string(self, ref: i64) -> flag:
        """Return whether a string reference is empty, inline, or registered."""
        return ref == 0 or ref & INLINE != 0 or self.registrations.has_string(ref)

    def enter(self, at: i64) -> status:
        """Enter what a record registers, as ``register`` does."""
        word = self.words[at]
        kind = TYPE.get(word)
        end = at + self.records.size_of(word)
        if kind == RECORD_STRING:
            index = STRING_INDEX.get(word)
            words = ((STRING_LENGTH.get(word)) + 7) // 8
            if index and at + 1 + words <= end:
                self.registrations.register_string(index, at)
        elif kind == RECORD_THREAD:
            index = THREAD_INDEX.get(word)
            if index and at + 3 <= end:
                self.registrations.register_thread(index, at)
        elif kind == RECORD_METADATA:
            words = self.switch_size(word)
            if words and at + words <= end:
                self.registrations.switch(METADATA_TYPE.get(word), PROVIDER_ID.get(word))
        return 0


class TraceJudge(Judge):
    """Tells where records of a trace are."""

    bounds: RecordBounds

    def __init__(self) -> None:
        Judge.__init__(self)
        self.bounds = RecordBounds(self.words)

    def whole(self, at: i64) -> i64:
        """Return the words of the record at word ``at`` that its contents fill; 0 if none is.

        Of large records, which say less, only one that no other could hold.
        """
        self.bounds.total = self.total
        if self.bounds.is_exact(at):
            return self.bounds.size_of(self.words[at])
        size = self.large_size(self.words[at])
        return size if size > MOST_WORDS else 0

    def stated(self, at: i64) -> i64:
        """Return the words of a record by the header at word ``at``, which few words look like."""
        self.bounds.total = self.total
        word = self.words[at]
        size = self.large_size(word)
        form = self.bounds.first_form[TYPE.get(word)]
        while form < self.bounds.first_form[TYPE.get(word) + 1] and size == 0:
            if self.bounds.is_of(word, form):
                size = self.bounds.sound_size(at)
            form += 1
        return size

    def leads(self, at: i64) -> flag:
        """Return whether the record at word ``at`` is not what parts of others look like.

        Provider events look like the ends of headers, objects like arguments, headers without
        fields of their own like numbers, events like texts, whose times are other ones.
        """
        word = self.words[at]
        kind = TYPE.get(word)
        behind = at + SIZE.get(word)
        if kind == RECORD_METADATA:
            return METADATA_TYPE.get(word) != PROVIDER_EVENT
        if kind in (RECORD_USERSPACE_OBJECT, RECORD_KERNEL_OBJECT):
            return False
        if kind == RECORD_EVENT and behind < self.total:
            return TYPE.get(self.words[behind]) != RECORD_EVENT or self.behind(at, behind) > 0
        return word >> OWN_FIELDS_AT != 0

    def behind(self, before: i64, at: i64) -> i64:
        """Return the words of an event at word ``at`` soon after one at word ``before``; or 0.

        Where that is of another kind, of any record by its header.
        """
        if TYPE.get(self.words[before]) != RECORD_EVENT:
            return self.stated(at)
        word = self.words[at]
        if TYPE.get(word) != RECORD_EVENT or EVENT_NAME.get(word) == 0 or at + 1 == self.total:
            return 0
        elapsed: u64 = (self.words[at + 1] - self.words[before + 1] + SOON) & LOW64
        return SIZE.get(word) if elapsed < 2 * SOON and SIZE.get(word) > 1 else 0

    def large_size(self, word: i64) -> i64:
        """Return the words of a large record of a known kind with this header; 0 for others."""
        format = LARGE_FORMAT.get(word)
        if TYPE.get(word) != RECORD_LARGE or LARGE_KIND.get(word) or format > 1:
            return 0
        return 0 if word & UNUSED_LARGE else LARGE_SIZE.get(word)
