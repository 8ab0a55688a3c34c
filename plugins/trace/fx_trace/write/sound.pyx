# cython: boundscheck=False, wraparound=False, show_performance_hints=False
# Bounds are not checked: a record is framed, within the words, before its fields are read.
"""Sound records: the stretches of a trace that salvage copies as they are.

``Registrations`` has which records registered the strings and threads in force.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t

from fx_trace.read.framing cimport RecordBounds
from fxframework.kernels.alignment cimport Judge
from fxframework.kernels.fields cimport Field, field, get
from fxframework.kernels.pools cimport PairMap
from fxframework.kernels.rows cimport Loop

from fx_trace import format as wire
from fx_trace.read import forms
from fxframework.kernels.buffers import full

cdef int64_t ARG_STRING = wire.ARG_STRING, MAX_ARGS = wire.MAX_ARGS
cdef int64_t OWN_FIELDS_AT = wire.OWN_FIELDS_AT, PROVIDER_EVENT = wire.PROVIDER_EVENT
cdef int64_t PROVIDER_INFO = wire.PROVIDER_INFO, PROVIDER_SECTION = wire.PROVIDER_SECTION
cdef int64_t RECORD_EVENT = wire.RECORD_EVENT, RECORD_KERNEL_OBJECT = wire.RECORD_KERNEL_OBJECT
cdef int64_t RECORD_LARGE = wire.RECORD_LARGE, RECORD_METADATA = wire.RECORD_METADATA
cdef int64_t RECORD_STRING = wire.RECORD_STRING, RECORD_THREAD = wire.RECORD_THREAD
cdef int64_t RECORD_USERSPACE_OBJECT = wire.RECORD_USERSPACE_OBJECT
cdef int64_t UNUSED_LARGE = wire.UNUSED_LARGE
cdef Field ARG_NAME = field(wire.ARG_NAME), ARG_SIZE = field(wire.ARG_SIZE)
cdef Field ARG_STRING_REF = field(wire.ARG_STRING_REF), ARG_TYPE = field(wire.ARG_TYPE)
cdef Field EVENT_NAME = field(wire.EVENT_NAME), LARGE_FORMAT = field(wire.LARGE_FORMAT)
cdef Field LARGE_KIND = field(wire.LARGE_KIND), LARGE_SIZE = field(wire.LARGE_SIZE)
cdef Field METADATA_TYPE = field(wire.METADATA_TYPE), PROVIDER_ID = field(wire.PROVIDER_ID)
cdef Field PROVIDER_NAME_LENGTH = field(wire.PROVIDER_NAME_LENGTH), SIZE = field(wire.SIZE)
cdef Field STRING_INDEX = field(wire.STRING_INDEX), STRING_LENGTH = field(wire.STRING_LENGTH)
cdef Field THREAD_INDEX = field(wire.THREAD_INDEX), TYPE = field(wire.TYPE)
cdef int64_t FIELD_WIDTH = forms.FIELD_WIDTH, FORM_WIDTH = forms.FORM_WIDTH
cdef int64_t FORM_WORDS = forms.FORM_WORDS, KOIDS = forms.KOIDS, NARGS_AT = forms.NARGS_AT
cdef int64_t STRING = forms.STRING, TAIL = forms.TAIL

cdef enum:
    # An entry of a cache is its generation << 40 | the word at which the record begins.
    GENERATION_AT = 40
cdef int64_t WORD_MASK = 0xFFFFFFFFFFLL

cdef enum:
    # State of a provider id in ``providers``.
    EPOCH_OF = 0
    INTRODUCED = 1
STRINGS = 1 << 15
THREADS = 1 << 8


@cython.final
cdef class Registrations:
    """Where each index was registered, by provider: the word at which the record begins.

    A provider's own registrations count first, then those of provider 0. A provider that is
    introduced once more begins with empty tables (an epoch). Words from ``made`` on are those of
    records that salvage put in for a provider: what provider 0 registered counts before them.
    """

    cdef public PairMap strings, threads
    cdef PairMap providers
    cdef int64_t[::1] string_at, thread_at
    cdef int64_t made
    cdef int64_t epoch, epochs
    cdef int64_t generation

    def __init__(self, made):
        self.made = made
        self.strings = PairMap(64)
        self.string_at = full(STRINGS, "i8", -1)
        self.threads = PairMap(64)
        self.thread_at = full(THREADS, "i8", -1)
        self.providers = PairMap(16)
        self.epoch = 0
        self.epochs = 0
        self.generation = 0
        self.providers.put(0, EPOCH_OF, 0)

    cdef int64_t lookup(self, PairMap table, int64_t index) noexcept nogil:
        """Return where an index was registered, by the provider itself or else by provider 0.

        Or -1.
        """
        cdef int64_t at, found
        at = table.get(self.epoch, index)
        if at < 0 or at >= self.made:
            found = table.get(self.providers.get(0, EPOCH_OF), index)
            if at < 0 or 0 <= found < self.made:
                at = found
        return at

    cpdef int64_t string(self, int64_t index) noexcept nogil:
        """Return where the string of an index from 1 to 32,767 was registered; or -1."""
        cdef int64_t entry
        entry = self.string_at[index]
        if entry >> GENERATION_AT == self.generation:
            return entry & WORD_MASK
        return self.lookup(self.strings, index)

    cpdef int64_t thread(self, int64_t index) noexcept nogil:
        """Return where the thread of an index from 1 to 255 was registered; or -1."""
        cdef int64_t entry
        entry = self.thread_at[index]
        if entry >> GENERATION_AT == self.generation:
            return entry & WORD_MASK
        return self.lookup(self.threads, index)

    cdef bint is_hidden(self, PairMap table, int64_t index) noexcept nogil:
        """Return whether a record put in hides what provider 0 registered at an index since."""
        cdef int64_t at
        at = table.get(self.epoch, index)
        return at >= self.made and self.lookup(table, index) < self.made

    cpdef bint has_string(self, int64_t index) noexcept nogil:
        """Return whether a string is registered, and in what is written too."""
        if self.string_at[index] >> GENERATION_AT == self.generation:
            return True
        return self.lookup(self.strings, index) >= 0 and not self.is_hidden(self.strings, index)

    cpdef bint has_thread(self, int64_t index) noexcept nogil:
        """Return whether a thread is registered, and in what is written too."""
        if self.thread_at[index] >> GENERATION_AT == self.generation:
            return True
        return self.lookup(self.threads, index) >= 0 and not self.is_hidden(self.threads, index)

    cpdef int register_string(self, int64_t index, int64_t at) except -1 nogil:
        """Register a string by the record at word ``at``."""
        self.strings.put(self.epoch, index, at)
        if at < self.made:
            self.string_at[index] = (self.generation << GENERATION_AT) | at
        return 0

    cpdef int register_thread(self, int64_t index, int64_t at) except -1 nogil:
        """Register a thread by the record at word ``at``."""
        self.threads.put(self.epoch, index, at)
        if at < self.made:
            self.thread_at[index] = (self.generation << GENERATION_AT) | at
        return 0

    cpdef bint switch(self, int64_t kind, int64_t number) except? -1 nogil:
        """Switch to the tables of a provider; return whether its id is new."""
        cdef int64_t epoch, known, again
        epoch = self.providers.get(number, EPOCH_OF)
        known = epoch >= 0
        again = kind == PROVIDER_INFO and self.providers.get(number, INTRODUCED) > 0
        if not known or again:
            self.epochs += 1
            epoch = self.epochs
            self.providers.put(number, EPOCH_OF, epoch)
        if kind == PROVIDER_INFO:
            self.providers.put(number, INTRODUCED, 1)
        self.epoch = epoch
        self.generation += 1
        return not known


cdef enum:
    INLINE = 0x8000
# Words of a record that is not large.
cdef int64_t MOST_WORDS = SIZE.limit
# Ticks between two events that follow one another in a file, at most.
cdef int64_t SOON = 1 << 32


@cython.final
cdef class SoundRecords(Loop):
    """Passes over records whose contents fill them exactly and whose references are registered.

    ``run`` returns the word of the first record that is not so, or the end of the words, and
    ``stopped`` is 1; or it is at word ``until`` or behind it. Of metadata, only records that switch
    providers are passed, and those only if ``switches``. ``pos`` is behind the last record passed.
    The caller handles the record at which it stopped, calls ``register`` if that is framed, and
    sets ``pos`` behind it. ``count`` is the number of records passed, ``max_record`` a limit in
    bytes, 0 for none.
    """

    cdef readonly const int64_t[::1] words
    cdef readonly RecordBounds records
    cdef readonly Registrations registrations
    cdef public int64_t max_record
    cdef public bint switches
    cdef public int64_t pos, until
    cdef readonly bint stopped
    cdef public int64_t count, total

    def __init__(self, words):
        self.words = words
        self.total = len(self.words)
        self.records = RecordBounds(words)
        self.registrations = Registrations(self.total)
        self.max_record = 0
        self.switches = False
        self.pos = 0
        self.until = 0
        self.stopped = 1
        self.count = 0

    cdef int64_t step(self) except? -9 nogil:
        """Pass over sound records."""
        cdef int64_t word, kind, size, form
        self.stopped = 1
        while self.pos < self.total:
            if self.pos >= self.until:
                self.stopped = 0
                break
            word = self.words[self.pos]
            kind = get(TYPE, word)
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

    cdef int64_t switch_size(self, int64_t word) noexcept nogil:
        """Return the words that a metadata record fills exactly; 0 if it switches no providers."""
        cdef int64_t kind
        kind = get(METADATA_TYPE, word)
        if kind == PROVIDER_SECTION:
            return 1
        if kind == PROVIDER_INFO:
            return 1 + (get(PROVIDER_NAME_LENGTH, word) + 7) // 8
        return 0

    def limit(self, end):
        """Look for records before word ``end`` only."""
        self.total = end
        self.records.total = end

    def register(self, at):
        """Enter what the framed record at word ``at`` registers: a string, thread or provider."""
        self.enter(at)

    cdef bint is_resolved(self, int64_t at, int64_t form) noexcept nogil:
        """Return whether all strings and threads that a record refers to are registered."""
        cdef int64_t word, row, end, field, kind, value, count
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
                if not self.has_string(get(ARG_NAME, word)):
                    return False
                if get(ARG_TYPE, word) == ARG_STRING:
                    if not self.has_string(get(ARG_STRING_REF, word)):
                        return False
                end += get(ARG_SIZE, word)
                count -= 1
        return True

    cdef bint has_string(self, int64_t ref) noexcept nogil:
        """Return whether a string reference is empty, inline, or registered."""
        return ref == 0 or ref & INLINE != 0 or self.registrations.has_string(ref)

    cdef int enter(self, int64_t at) except -1 nogil:
        """Enter what a record registers, as ``register`` does."""
        cdef int64_t word, kind, end, index, words
        word = self.words[at]
        kind = get(TYPE, word)
        end = at + self.records.size_of(word)
        if kind == RECORD_STRING:
            index = get(STRING_INDEX, word)
            words = ((get(STRING_LENGTH, word)) + 7) // 8
            if index and at + 1 + words <= end:
                self.registrations.register_string(index, at)
        elif kind == RECORD_THREAD:
            index = get(THREAD_INDEX, word)
            if index and at + 3 <= end:
                self.registrations.register_thread(index, at)
        elif kind == RECORD_METADATA:
            words = self.switch_size(word)
            if words and at + words <= end:
                self.registrations.switch(get(METADATA_TYPE, word), get(PROVIDER_ID, word))
        return 0


@cython.final
cdef class TraceJudge(Judge):
    """Tells where records of a trace are."""

    cdef RecordBounds bounds

    def __init__(self):
        Judge.__init__(self)
        self.bounds = RecordBounds(self.words)

    cdef int64_t whole(self, int64_t at) noexcept nogil:
        """Return the words of the record at word ``at`` that its contents fill; 0 if none is.

        Of large records, which say less, only one that no other could hold.
        """
        cdef int64_t size
        self.bounds.total = self.total
        if self.bounds.is_exact(at):
            return self.bounds.size_of(self.words[at])
        size = self.large_size(self.words[at])
        return size if size > MOST_WORDS else 0

    cdef int64_t stated(self, int64_t at) noexcept nogil:
        """Return the words of a record by the header at word ``at``, which few words look like."""
        cdef int64_t word, size, form
        self.bounds.total = self.total
        word = self.words[at]
        size = self.large_size(word)
        form = self.bounds.first_form[get(TYPE, word)]
        while form < self.bounds.first_form[get(TYPE, word) + 1] and size == 0:
            if self.bounds.is_of(word, form):
                size = self.bounds.sound_size(at)
            form += 1
        return size

    cdef bint leads(self, int64_t at) noexcept nogil:
        """Return whether the record at word ``at`` is not what parts of others look like.

        Provider events look like the ends of headers, objects like arguments, headers without
        fields of their own like numbers, events like texts, whose times are other ones.
        """
        cdef int64_t word, kind, behind
        word = self.words[at]
        kind = get(TYPE, word)
        behind = at + get(SIZE, word)
        if kind == RECORD_METADATA:
            return get(METADATA_TYPE, word) != PROVIDER_EVENT
        if kind in (RECORD_USERSPACE_OBJECT, RECORD_KERNEL_OBJECT):
            return False
        if kind == RECORD_EVENT and behind < self.total:
            return get(TYPE, self.words[behind]) != RECORD_EVENT or self.behind(at, behind) > 0
        return word >> OWN_FIELDS_AT != 0

    cdef int64_t behind(self, int64_t before, int64_t at) noexcept nogil:
        """Return the words of an event at word ``at`` soon after one at word ``before``; or 0.

        Where that is of another kind, of any record by its header.
        """
        cdef int64_t word
        cdef uint64_t elapsed
        if get(TYPE, self.words[before]) != RECORD_EVENT:
            return self.stated(at)
        word = self.words[at]
        if get(TYPE, word) != RECORD_EVENT or get(EVENT_NAME, word) == 0 or at + 1 == self.total:
            return 0
        elapsed = <uint64_t>(self.words[at + 1] - self.words[before + 1] + SOON)
        return get(SIZE, word) if elapsed < 2 * SOON and get(SIZE, word) > 1 else 0

    cdef int64_t large_size(self, int64_t word) noexcept nogil:
        """Return the words of a large record of a known kind with this header; 0 for others."""
        cdef int64_t format
        format = get(LARGE_FORMAT, word)
        if get(TYPE, word) != RECORD_LARGE or get(LARGE_KIND, word) or format > 1:
            return 0
        return 0 if word & UNUSED_LARGE else get(LARGE_SIZE, word)
