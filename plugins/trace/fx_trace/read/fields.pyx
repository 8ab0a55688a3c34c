# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""The steps that the records of a scan share: references, strings, padding, arguments.

Strings become codes here (``FieldReader.text``, ``string``); plain ones in ``scan.py``.
"""

from libc.stdint cimport int64_t

from fx_trace.read.framing cimport RecordBounds
from fx_trace.read.providers cimport Providers
from fx_trace.read.rows cimport (
    ArgRows, BlobRows, CounterRows, EventRows, LogRows, NoteRows, ObjectRows, ProfilerRows,
    SchedRows,
)
from fxframework.kernels.fields cimport Field, field, get
from fxframework.kernels.rows cimport Notes
from fxframework.kernels.pools cimport Pool, Utf8

from fx_trace import format as wire
from fx_trace import rules
from fxframework.kernels.buffers import full

cdef Field STRING_REF_INDEX = field(wire.STRING_REF_INDEX)
cdef int64_t OF_DEFAULT_PROVIDER = rules.OF_DEFAULT_PROVIDER, RESERVED_BITS = rules.RESERVED_BITS
cdef int64_t STRING_NOT_REGISTERED = rules.STRING_NOT_REGISTERED
cdef int64_t STRING_OVER_LIMIT = rules.STRING_OVER_LIMIT
cdef int64_t THREAD_NOT_REGISTERED = rules.THREAD_NOT_REGISTERED
cdef int64_t WORDS_LEFT_OVER = rules.WORDS_LEFT_OVER

__all__ = ["FieldReader"]

LOW32 = 0xFFFFFFFF

cdef enum:
    INLINE = 0x8000  # In a string reference: the string follows, and the rest is its length.
    ENTRY = 32
    CODE = 0x1FFFFFFF
# Parts of a cache entry (``providers``): where its generation begins, its code, its marks.
cdef int64_t ABSENT = 1 << 31

cdef enum:
    BORROWED = 1 << 30
    # Threads that are found without a map, and what lays those of each process apart from others.
    RECENT = 1 << 13
    SPREAD = 0x9E37


cdef class FieldReader(Loop):
    """Reads the fields of the record from word ``start`` to ``end``, and holds what a scan fills.

    ``words`` are the file's in the machine's byte order, ``streams`` as they are in the file,
    both int64; ``data`` are its bytes. ``need`` is the word behind the last field looked at,
    counted from the record's first.
    """

    def __init__(self, words, streams, data, pool, notes):
        self.words = words
        self.streams = streams
        self.total = len(self.words)
        self.pool = pool
        self.notes = notes
        self.utf8 = Utf8(data)
        self.events = EventRows()
        self.args = ArgRows()
        self.sched = SchedRows()
        self.logs = LogRows()
        self.blobs = BlobRows()
        self.objects = ObjectRows()
        self.profiler = ProfilerRows()
        self.counters = CounterRows()
        self.annotations = NoteRows()
        self.providers = Providers(pool, notes, self.events, self.sched, self.logs, self.profiler)
        self.bounds = RecordBounds(words)
        self.max_string = 0
        self.record = 0
        self.sched_rows = 0
        self.log_rows = 0
        self.blob_rows = 0
        self.object_rows = 0
        self.profiler_rows = 0
        self.large_ticks = False
        self.recent = full(RECENT, "i8", -1)
        # The record being read.
        self.start = 0
        self.end = 0
        self.at = 0
        self.need = 0
        self.subtype = 0
        self.nargs = 0
        self.arg_table = -1
        self.arg_parent = -1
        self.thread = -1
        self.name = 0
        self.dirty = 0

    cdef int note(self, int64_t code, int64_t offset, int64_t value) except -1 nogil:
        """Report a finding."""
        self.notes.add(code, offset, self.record, value)
        return 0

    cdef bint fits(self, int64_t after) noexcept nogil:
        """Return whether the record goes on to word ``after``."""
        self.need = after - self.start
        return after <= self.end

    cdef int leftover(self, int64_t after) except -1 nogil:
        """Report words behind what the record needs."""
        if after < self.end:
            self.note(WORDS_LEFT_OVER, self.start * 8, self.end - after)
        return 0

    cdef int unused(self, int64_t bits) except -1 nogil:
        """Report bits that must be zero."""
        if bits:
            self.note(RESERVED_BITS, self.start * 8, self.words[self.start])
        return 0

    cdef int64_t padded(self, int64_t at, int64_t nbytes) noexcept nogil:
        """Look at the padding of a stream of bytes at word ``at``."""
        if nbytes % 8 and self.streams[at + nbytes // 8] >> (8 * (nbytes % 8)):
            self.dirty = 1
        return 0

    cdef int64_t inline_words(self, int64_t ref) noexcept nogil:
        """Return the number of words that a string reference has behind the header."""
        return (get(STRING_REF_INDEX, ref) + 7) // 8 if ref & INLINE else 0

    cdef int64_t text(self, int64_t at, int64_t nbytes, int64_t offset,
                      int64_t bad) except? -9 nogil:
        """Return the code of the bytes at word ``at``; ``bad`` is the rule if not UTF-8."""
        cdef int64_t code
        if self.max_string and nbytes > self.max_string:
            self.note(STRING_OVER_LIMIT, offset, nbytes)
            nbytes = self.max_string
        code = self.pool.intern(at, nbytes)
        if bad and not self.pool.valid[code]:
            self.note(bad, offset, code)
        return code

    cdef int64_t string(self, int64_t ref, int64_t at, int64_t offset,
                        int64_t bad) except? -9 nogil:
        """Return the code of a string reference; inline bytes are at word ``at``."""
        cdef int64_t entry
        if ref & INLINE:
            self.padded(at, get(STRING_REF_INDEX, ref))
            return self.text(at, get(STRING_REF_INDEX, ref), offset, bad)
        entry = self.providers.strings[ref]
        if entry >> ENTRY != self.providers.generation:
            entry = self.providers.string(ref)
        if entry & ABSENT:
            self.absent(entry, STRING_NOT_REGISTERED, offset, ref)
        return entry & CODE

    cdef int64_t thread_at(self, int64_t ref, int64_t at) except? -9 nogil:
        """Id of a thread reference, whose koids are at word ``at`` where it is inline."""
        cdef int64_t entry
        if ref == 0:
            return self.inline_thread(self.words[at], self.words[at + 1])
        entry = self.providers.threads[ref]
        if entry >> ENTRY != self.providers.generation:
            entry = self.providers.thread(ref, self.start * 8)
        if entry & ABSENT:
            self.absent(entry, THREAD_NOT_REGISTERED, self.start * 8, ref)
        return entry & CODE

    cdef int absent(self, int64_t entry, int64_t rule, int64_t offset,
                    int64_t index) except -1 nogil:
        """Report an index that the provider has not registered."""
        if entry & BORROWED:
            rule = OF_DEFAULT_PROVIDER
        self.notes.add(rule, offset, self.record, index)
        return 0

    cdef int64_t inline_thread(self, int64_t pid, int64_t tid) except? -9 nogil:
        """Id of a thread by its koids; often it is the last one met in its slot."""
        cdef int64_t slot, thread
        slot = (tid + SPREAD * pid) & (RECENT - 1)
        thread = self.recent[slot]
        if (
            thread < 0
            or self.providers.known.pid[thread] != pid
            or self.providers.known.tid[thread] != tid
        ):
            thread = self.providers.identity(pid, tid, self.start * 8)
            self.recent[slot] = thread
        return thread

    cdef int time_of(self, int64_t ticks) except -1 nogil:
        """Make sure that the clock in force is that of the record."""
        if not self.providers.ready:
            self.providers.start_clock(self.start * 8)
        if ticks < 0:
            self.large_ticks = True
        return 0

    cdef int64_t args_end(self, int64_t at, int64_t count) noexcept nogil:
        """The word after ``count`` arguments at word ``at``; -1 where they overrun the record."""
        cdef int64_t after
        after = self.bounds.args_end(at, count, self.end)
        if after < 0:
            self.need = self.bounds.value - self.start
        return after
