"""The steps that the records of a scan share: references, strings, padding, arguments.

Strings become codes here (``FieldReader.text``, ``string``); plain ones in ``scan.py``.
"""

from __future__ import annotations

from typing import Any

from fx_trace.format import STRING_REF_INDEX
from fx_trace.read.framing import RecordBounds
from fx_trace.read.providers import Providers
from fx_trace.read.rows import (
    ArgRows,
    BlobRows,
    CounterRows,
    EventRows,
    LogRows,
    NoteRows,
    ObjectRows,
    ProfilerRows,
    SchedRows,
)
from fx_trace.rules import (
    OF_DEFAULT_PROVIDER,
    RESERVED_BITS,
    STRING_NOT_REGISTERED,
    STRING_OVER_LIMIT,
    THREAD_NOT_REGISTERED,
    WORDS_LEFT_OVER,
)
from fxframework.kernels.annotations import Array, Fallible, View, flag, i64, status
from fxframework.kernels.buffers import full
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.notes import Notes
from fxframework.kernels.pools import Pool
from fxframework.kernels.utf8 import Utf8

__all__ = ["FieldReader"]

LOW32 = 0xFFFFFFFF
INLINE = 0x8000
"""In a string reference: the string follows, and the rest is its length."""
ENTRY = 32
CODE = 0x1FFFFFFF
ABSENT, BORROWED = 1 << 31, 1 << 30
"""Parts of a cache entry (``providers``): where its generation begins, its code, its marks."""
RECENT, SPREAD = 1 << 13, 0x9E37
"""Threads that are found without a map, and what lays those of each process apart from others."""


class FieldReader(Kernel):
    """Reads the fields of the record from word ``start`` to ``end``, and holds what a scan fills.

    ``words`` are the file's in the machine's byte order, ``streams`` as they are in the file,
    both int64; ``data`` are its bytes. ``need`` is the word behind the last field looked at,
    counted from the record's first.
    """

    words: View[i64]
    streams: View[i64]
    total: i64
    pool: Pool
    notes: Notes
    utf8: Utf8
    bounds: RecordBounds
    providers: Providers
    events: EventRows
    args: ArgRows
    sched: SchedRows
    logs: LogRows
    blobs: BlobRows
    objects: ObjectRows
    profiler: ProfilerRows
    counters: CounterRows
    annotations: NoteRows
    max_string: i64
    record: i64
    sched_rows: i64
    log_rows: i64
    blob_rows: i64
    object_rows: i64
    profiler_rows: i64
    large_ticks: flag
    recent: Array[i64]
    start: i64
    end: i64
    at: i64
    need: i64
    subtype: i64
    nargs: i64
    arg_table: i64
    arg_parent: i64
    thread: i64
    name: i64
    dirty: i64

    def __init__(self, words: Any, streams: Any, data: Any, pool: Pool, notes: Notes) -> None:
        self.words = memoryview(words)
        self.streams = memoryview(streams)
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

    def note(self, code: i64, offset: i64, value: i64) -> status:
        """Report a finding."""
        self.notes.add(code, offset, self.record, value)
        return 0

    def fits(self, after: i64) -> flag:
        """Return whether the record goes on to word ``after``."""
        self.need = after - self.start
        return after <= self.end

    def leftover(self, after: i64) -> status:
        """Report words behind what the record needs."""
        if after < self.end:
            self.note(WORDS_LEFT_OVER, self.start * 8, self.end - after)
        return 0

    def unused(self, bits: i64) -> status:
        """Report bits that must be zero."""
        if bits:
            self.note(RESERVED_BITS, self.start * 8, self.words[self.start])
        return 0

    def padded(self, at: i64, nbytes: i64) -> i64:
        """Look at the padding of a stream of bytes at word ``at``."""
        if nbytes % 8 and self.streams[at + nbytes // 8] >> (8 * (nbytes % 8)):
            self.dirty = 1
        return 0

    def inline_words(self, ref: i64) -> i64:
        """Return the number of words that a string reference has behind the header."""
        return (STRING_REF_INDEX.get(ref) + 7) // 8 if ref & INLINE else 0

    def text(self, at: i64, nbytes: i64, offset: i64, bad: i64) -> Fallible[i64]:
        """Return the code of the bytes at word ``at``; ``bad`` is the rule if not UTF-8."""
        if self.max_string and nbytes > self.max_string:
            self.note(STRING_OVER_LIMIT, offset, nbytes)
            nbytes = self.max_string
        code = self.pool.intern(at, nbytes)
        if bad and not self.pool.valid[code]:
            self.note(bad, offset, code)
        return code

    def string(self, ref: i64, at: i64, offset: i64, bad: i64) -> Fallible[i64]:
        """Return the code of a string reference; inline bytes are at word ``at``."""
        if ref & INLINE:
            self.padded(at, STRING_REF_INDEX.get(ref))
            return self.text(at, STRING_REF_INDEX.get(ref), offset, bad)
        entry = self.providers.strings[ref]
        if entry >> ENTRY != self.providers.generation:
            entry = self.providers.string(ref)
        if entry & ABSENT:
            self.absent(entry, STRING_NOT_REGISTERED, offset, ref)
        return entry & CODE

    def thread_at(self, ref: i64, at: i64) -> Fallible[i64]:
        """Id of a thread reference, whose koids are at word ``at`` where it is inline."""
        if ref == 0:
            return self.inline_thread(self.words[at], self.words[at + 1])
        entry = self.providers.threads[ref]
        if entry >> ENTRY != self.providers.generation:
            entry = self.providers.thread(ref, self.start * 8)
        if entry & ABSENT:
            self.absent(entry, THREAD_NOT_REGISTERED, self.start * 8, ref)
        return entry & CODE

    def absent(self, entry: i64, rule: i64, offset: i64, index: i64) -> status:
        """Report an index that the provider has not registered."""
        if entry & BORROWED:
            rule = OF_DEFAULT_PROVIDER
        self.notes.add(rule, offset, self.record, index)
        return 0

    def inline_thread(self, pid: i64, tid: i64) -> Fallible[i64]:
        """Id of a thread by its koids; often it is the last one met in its slot."""
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

    def time_of(self, ticks: i64) -> status:
        """Make sure that the clock in force is that of the record."""
        if not self.providers.ready:
            self.providers.start_clock(self.start * 8)
        if ticks < 0:
            self.large_ticks = True
        return 0

    def args_end(self, at: i64, count: i64) -> i64:
        """The word after ``count`` arguments at word ``at``; -1 where they overrun the record."""
        after = self.bounds.args_end(at, count, self.end)
        if after < 0:
            self.need = self.bounds.value - self.start
        return after
