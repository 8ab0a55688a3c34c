# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""The records of a scan beside events: what sets the stage, scheduling, logs, blobs, objects."""

from libc.stdint cimport int64_t

from fx_trace.read.fields cimport FieldReader
from fxframework.kernels.fields cimport Field, field, get

from fx_trace import format as wire
from fx_trace import rules

cdef int64_t BLOB_DATA = wire.BLOB_DATA, BLOB_PERFETTO = wire.BLOB_PERFETTO
cdef int64_t LARGE_WITHOUT_METADATA = wire.LARGE_WITHOUT_METADATA
cdef int64_t LARGE_WITH_METADATA = wire.LARGE_WITH_METADATA, MAGIC = wire.MAGIC
cdef int64_t PROFILER_BACKTRACE = wire.PROFILER_BACKTRACE, PROFILER_MMAP = wire.PROFILER_MMAP
cdef int64_t PROFILER_MODULE = wire.PROFILER_MODULE, PROVIDER_EVENT = wire.PROVIDER_EVENT
cdef int64_t PROVIDER_INFO = wire.PROVIDER_INFO, PROVIDER_SECTION = wire.PROVIDER_SECTION
cdef int64_t SCHED_LEGACY_SWITCH = wire.SCHED_LEGACY_SWITCH, SCHED_SWITCH = wire.SCHED_SWITCH
cdef int64_t SCHED_WAKEUP = wire.SCHED_WAKEUP, STATE_DEAD = wire.STATE_DEAD
cdef int64_t STATE_RUNNING = wire.STATE_RUNNING, TABLE_BLOBS = wire.TABLE_BLOBS
cdef int64_t TABLE_OBJECTS = wire.TABLE_OBJECTS, TABLE_SCHED = wire.TABLE_SCHED
cdef int64_t TRACE_INFO = wire.TRACE_INFO, UNUSED_BLOB = wire.UNUSED_BLOB
cdef int64_t UNUSED_INITIALIZATION = wire.UNUSED_INITIALIZATION, UNUSED_LARGE = wire.UNUSED_LARGE
cdef int64_t UNUSED_LARGE_WITH = wire.UNUSED_LARGE_WITH
cdef int64_t UNUSED_LARGE_WITHOUT = wire.UNUSED_LARGE_WITHOUT, UNUSED_LOG = wire.UNUSED_LOG
cdef int64_t UNUSED_MMAP = wire.UNUSED_MMAP, UNUSED_MODULE = wire.UNUSED_MODULE
cdef int64_t UNUSED_OBJECT = wire.UNUSED_OBJECT, UNUSED_PROVIDER_EVENT = wire.UNUSED_PROVIDER_EVENT
cdef int64_t UNUSED_PROVIDER_INFO = wire.UNUSED_PROVIDER_INFO
cdef int64_t UNUSED_PROVIDER_SECTION = wire.UNUSED_PROVIDER_SECTION
cdef int64_t UNUSED_STRING = wire.UNUSED_STRING, UNUSED_SWITCH = wire.UNUSED_SWITCH
cdef int64_t UNUSED_THREAD = wire.UNUSED_THREAD, UNUSED_TRACE_INFO = wire.UNUSED_TRACE_INFO
cdef int64_t UNUSED_WAKEUP = wire.UNUSED_WAKEUP
cdef Field BACKTRACE_FLAGS = field(wire.BACKTRACE_FLAGS), BLOB_KIND = field(wire.BLOB_KIND)
cdef Field BLOB_LENGTH = field(wire.BLOB_LENGTH), BLOB_NAME = field(wire.BLOB_NAME)
cdef Field FRAME_COUNT = field(wire.FRAME_COUNT), LARGE_ARGS = field(wire.LARGE_ARGS)
cdef Field LARGE_CATEGORY = field(wire.LARGE_CATEGORY), LARGE_FORMAT = field(wire.LARGE_FORMAT)
cdef Field LARGE_KIND = field(wire.LARGE_KIND), LARGE_NAME = field(wire.LARGE_NAME)
cdef Field LARGE_THREAD = field(wire.LARGE_THREAD), LEGACY_CPU = field(wire.LEGACY_CPU)
cdef Field LEGACY_INCOMING = field(wire.LEGACY_INCOMING)
cdef Field LEGACY_INCOMING_PRIORITY = field(wire.LEGACY_INCOMING_PRIORITY)
cdef Field LEGACY_OUTGOING = field(wire.LEGACY_OUTGOING)
cdef Field LEGACY_OUTGOING_PRIORITY = field(wire.LEGACY_OUTGOING_PRIORITY)
cdef Field LEGACY_STATE = field(wire.LEGACY_STATE), LOG_LENGTH = field(wire.LOG_LENGTH)
cdef Field LOG_THREAD = field(wire.LOG_THREAD), METADATA_TYPE = field(wire.METADATA_TYPE)
cdef Field MMAP_FLAGS = field(wire.MMAP_FLAGS)
cdef Field MODULE_BUILD_ID_LENGTH = field(wire.MODULE_BUILD_ID_LENGTH)
cdef Field MODULE_ID = field(wire.MODULE_ID), MODULE_NAME_LENGTH = field(wire.MODULE_NAME_LENGTH)
cdef Field OBJECT_ARGS = field(wire.OBJECT_ARGS), OBJECT_NAME = field(wire.OBJECT_NAME)
cdef Field OBJECT_OWNER = field(wire.OBJECT_OWNER), PROFILER_THREAD = field(wire.PROFILER_THREAD)
cdef Field PROFILER_TYPE = field(wire.PROFILER_TYPE)
cdef Field PROVIDER_EVENT_ID = field(wire.PROVIDER_EVENT_ID), PROVIDER_ID = field(wire.PROVIDER_ID)
cdef Field PROVIDER_NAME_LENGTH = field(wire.PROVIDER_NAME_LENGTH)
cdef Field SCHEDULING_TYPE = field(wire.SCHEDULING_TYPE), STRING_INDEX = field(wire.STRING_INDEX)
cdef Field STRING_LENGTH = field(wire.STRING_LENGTH), SWITCH_ARGS = field(wire.SWITCH_ARGS)
cdef Field SWITCH_CPU = field(wire.SWITCH_CPU), SWITCH_STATE = field(wire.SWITCH_STATE)
cdef Field THREAD_INDEX = field(wire.THREAD_INDEX), TRACE_INFO_KIND = field(wire.TRACE_INFO_KIND)
cdef Field TRACE_INFO_MAGIC = field(wire.TRACE_INFO_MAGIC)
cdef int64_t BUFFER_FULL = rules.BUFFER_FULL, INDEX_ZERO = rules.INDEX_ZERO
cdef int64_t INVALID_STATE = rules.INVALID_STATE, NOT_UTF8 = rules.NOT_UTF8
cdef int64_t OBJECT_NOT_UTF8 = rules.OBJECT_NOT_UTF8, ONE_WORD_THREAD = rules.ONE_WORD_THREAD
cdef int64_t OTHER_MAGIC = rules.OTHER_MAGIC
cdef int64_t PROVIDER_NOT_INTRODUCED = rules.PROVIDER_NOT_INTRODUCED
cdef int64_t TWO_WORD_PROCESS = rules.TWO_WORD_PROCESS, UNKNOWN_BLOB_TYPE = rules.UNKNOWN_BLOB_TYPE
cdef int64_t UNKNOWN_KIND = rules.UNKNOWN_KIND

__all__ = ["OtherRecords"]

cdef int64_t LOW32 = 0xFFFFFFFFLL


cdef class OtherRecords(FieldReader):
    """Reads a record of each kind into its rows; 0, with nothing done, where it does not fit."""

    # --- Records that set the stage --------------------------------------------------------------

    cdef int metadata(self, int64_t word) except -1 nogil:
        """Read a metadata record."""
        cdef int64_t offset, kind, number, after, length, provider, name
        offset = self.start * 8
        kind = get(METADATA_TYPE, word)
        number = get(PROVIDER_ID, word)
        self.subtype = kind
        after = self.start + 1
        if kind == PROVIDER_INFO:
            length = get(PROVIDER_NAME_LENGTH, word)
            after += (length + 7) // 8
            if not self.fits(after):
                return 0
            provider = self.providers.introduce(number, offset)
            self.unused(word & UNUSED_PROVIDER_INFO)
            self.padded(self.start + 1, length)
            name = self.text(self.start + 1, length, offset, NOT_UTF8)
            self.providers.table.name[provider] = name
            self.providers.switch(provider)
        elif kind == PROVIDER_SECTION:
            self.unused(word & UNUSED_PROVIDER_SECTION)
            self.providers.enter_section(number, offset)
        elif kind == PROVIDER_EVENT:
            self.unused(word & UNUSED_PROVIDER_EVENT)
            self.provider_event(number, get(PROVIDER_EVENT_ID, word))
        elif kind == TRACE_INFO and get(TRACE_INFO_KIND, word) == 0:
            self.unused(word & UNUSED_TRACE_INFO)
            if get(TRACE_INFO_MAGIC, word) != MAGIC:
                self.note(OTHER_MAGIC, offset, get(TRACE_INFO_MAGIC, word))
        else:
            self.note(UNKNOWN_KIND, offset, 0)
            return 1
        self.leftover(after)
        return 1

    cdef int provider_event(self, int64_t number, int64_t event) except -1 nogil:
        """Read what a provider reports: event 0 says that its buffer was full."""
        cdef int64_t provider
        if event:
            self.note(UNKNOWN_KIND, self.start * 8, 0)
        else:
            self.note(BUFFER_FULL, self.start * 8, number)
        provider = self.providers.numbers.get(number, 0)
        if provider < 0:
            self.note(PROVIDER_NOT_INTRODUCED, self.start * 8, number)
        elif event == 0:
            self.providers.table.full[provider] += 1
        return 0

    cdef int initialization(self, int64_t word) except -1 nogil:
        """Read a tick rate, and in files of Jane Street's a base tick and the wall time at it."""
        cdef int64_t size, rate, base, wall
        size = self.end - self.start
        self.unused(word & UNUSED_INITIALIZATION)
        rate = self.words[self.start + 1]
        if size >= 4:
            base = self.words[self.start + 2]
            wall = self.words[self.start + 3]
            self.providers.initialize(self.start * 8, rate, base, wall, True)
            self.leftover(self.start + 4)
        else:
            self.providers.initialize(self.start * 8, rate, 0, -1, False)
            self.leftover(self.start + 2)
        return 1

    cdef int string_record(self, int64_t word) except -1 nogil:
        """Register a string at an index."""
        cdef int64_t index, length, at, after, code
        index = get(STRING_INDEX, word)
        length = get(STRING_LENGTH, word)
        at = self.start + 1
        after = at + ((length + 7) // 8)
        if not self.fits(after):
            return 0
        self.unused(word & UNUSED_STRING)
        self.padded(at, length)
        self.leftover(after)
        code = self.text(at, length, self.start * 8, NOT_UTF8)
        if index:
            self.providers.register_string(index, code)
        else:
            self.note(INDEX_ZERO, self.start * 8, 0)
        return 1

    cdef int thread_record(self, int64_t word) except -1 nogil:
        """Register a thread at an index."""
        cdef int64_t index, at, thread
        index = get(THREAD_INDEX, word)
        at = self.start + 1
        self.unused(word & UNUSED_THREAD)
        self.leftover(at + 2)
        if index:
            thread = self.providers.identity(self.words[at], self.words[at + 1], self.start * 8)
            self.providers.register_thread(index, thread)
        else:
            self.note(INDEX_ZERO, self.start * 8, 0)
        return 1

    # --- Scheduling and logs ---------------------------------------------------------------------

    cdef int scheduling(self, int64_t word) except -1 nogil:
        """Read a context switch or a wakeup."""
        cdef int64_t kind, after, row
        kind = get(SCHEDULING_TYPE, word)
        self.subtype = kind
        if kind > SCHED_WAKEUP:
            self.note(UNKNOWN_KIND, self.start * 8, 0)
            return 1
        if self.sched.rows == self.sched.room:
            self.sched.grow()
        if kind == SCHED_LEGACY_SWITCH:
            after = self.legacy_switch(word)
        else:
            after = self.switch(word, kind)
        if after < 0:
            return 0
        self.leftover(after)
        row = self.sched.rows
        self.time_of(self.words[self.start + 1])
        self.sched.kind[row] = kind
        self.sched.offset[row] = self.start * 8
        self.sched.ticks[row] = self.words[self.start + 1]
        self.sched.rows = row + 1
        self.sched_rows += 1
        return 1

    cdef int64_t legacy_switch(self, int64_t word) except? -9 nogil:
        """Read a legacy context switch.

        Return the word after what it needs; -1 where it does not fit.
        """
        cdef int64_t outgoing, incoming, outgoing_at, incoming_at, after, row
        outgoing = get(LEGACY_OUTGOING, word)
        incoming = get(LEGACY_INCOMING, word)
        outgoing_at = self.start + 2
        incoming_at = outgoing_at if outgoing else outgoing_at + 2
        after = incoming_at if incoming else incoming_at + 2
        if not self.fits(after):
            return -1
        row = self.sched.rows
        self.sched.prev[row] = self.thread_at(outgoing, outgoing_at)
        self.sched.next[row] = self.thread_at(incoming, incoming_at)
        self.sched.cpu[row] = get(LEGACY_CPU, word)
        self.state(row, get(LEGACY_STATE, word), 0)
        self.sched.prev_priority[row] = get(LEGACY_OUTGOING_PRIORITY, word)
        self.sched.next_priority[row] = get(LEGACY_INCOMING_PRIORITY, word)
        return after

    cdef int64_t switch(self, int64_t word, int64_t kind) except? -9 nogil:
        """Read a context switch or wakeup by tids, as ``legacy_switch``."""
        cdef int64_t nargs, at, after, row
        nargs = get(SWITCH_ARGS, word)
        at = self.start + 4 if kind == SCHED_SWITCH else self.start + 3
        after = self.args_end(at, nargs)
        if after < 0:
            return -1
        row = self.sched.rows
        self.sched.cpu[row] = get(SWITCH_CPU, word)
        self.sched.prev_priority[row] = -1
        self.sched.next_priority[row] = -1
        if kind == SCHED_SWITCH:
            self.unused(word & UNUSED_SWITCH)
            self.state(row, get(SWITCH_STATE, word), 1)
            self.sched.prev[row] = self.words[self.start + 2]
            self.sched.next[row] = self.words[self.start + 3]
        else:
            self.unused(word & UNUSED_WAKEUP)
            self.sched.state[row] = 255
            self.sched.prev[row] = -1
            self.sched.next[row] = self.words[self.start + 2]
        self.at = at
        self.nargs = nargs
        self.arg_table = TABLE_SCHED
        self.arg_parent = self.sched_rows
        return after

    cdef int state(self, int64_t row, int64_t state, int64_t may_run) except -1 nogil:
        """The state in which a switch leaves a thread."""
        self.sched.state[row] = state
        if state > STATE_DEAD or (state == STATE_RUNNING and not may_run):
            self.note(INVALID_STATE, self.start * 8, state)
        return 0

    cdef int log(self, int64_t word) except -1 nogil:
        """Read a line that was logged."""
        cdef int64_t length, thread_ref, thread_at, at, after, thread, row
        length = get(LOG_LENGTH, word)
        thread_ref = get(LOG_THREAD, word)
        thread_at = self.start + 2
        at = thread_at if thread_ref else thread_at + 2
        after = at + ((length + 7) // 8)
        if not self.fits(after):
            return 0
        self.unused(word & UNUSED_LOG)
        self.padded(at, length)
        self.leftover(after)
        thread = self.thread_at(thread_ref, thread_at)
        if not self.utf8.valid(at * 8, length):
            self.note(NOT_UTF8, self.start * 8, 0)
        self.time_of(self.words[self.start + 1])
        row = self.logs.add_row()
        self.logs.thread[row] = thread
        self.logs.offset[row] = self.start * 8
        self.logs.ticks[row] = self.words[self.start + 1]
        self.logs.start[row] = at * 8
        self.logs.length[row] = length
        self.log_rows += 1
        return 1

    # --- Blobs and objects -----------------------------------------------------------------------

    cdef int blob(self, int64_t word) except -1 nogil:
        """Read a blob: bytes of some other format."""
        cdef int64_t ref, length, name_at, at, after, name, kind
        ref = get(BLOB_NAME, word)
        length = get(BLOB_LENGTH, word)
        name_at = self.start + 1
        at = name_at + self.inline_words(ref)
        after = at + ((length + 7) // 8)
        if not self.fits(after):
            return 0
        self.unused(word & UNUSED_BLOB)
        name = self.string(ref, name_at, self.start * 8, NOT_UTF8)
        self.padded(at, length)
        self.leftover(after)
        kind = get(BLOB_KIND, word)
        if kind < BLOB_DATA or kind > BLOB_PERFETTO:
            self.note(UNKNOWN_BLOB_TYPE, self.start * 8, kind)
        self.add_blob(kind, name, at * 8, length)
        return 1

    cdef int add_blob(self, int64_t kind, int64_t name, int64_t start,
                      int64_t length) except -1 nogil:
        """Add a row of a blob."""
        cdef int64_t row
        row = self.blobs.add_row()
        self.blobs.type[row] = kind
        self.blobs.name[row] = name
        self.blobs.offset[row] = self.start * 8
        self.blobs.start[row] = start
        self.blobs.length[row] = length
        self.blob_rows += 1
        return 0

    cdef int userspace_object(self, int64_t word) except -1 nogil:
        """Read what a pointer of a process points to."""
        cdef int64_t process, ref, nargs, at, name_words, inline, after, one, pid, name
        process = get(OBJECT_OWNER, word)
        ref = get(OBJECT_NAME, word)
        nargs = get(OBJECT_ARGS, word)
        at = self.start + 2
        name_words = self.inline_words(ref)
        inline = 0
        if process:
            after = self.args_end(at + name_words, nargs)
        else:
            # One word by the document, two by the C++ serializer: the record's size tells.
            inline = 2
            after = self.args_end(at + 2 + name_words, nargs)
            if after != self.end:
                one = self.args_end(at + 1 + name_words, nargs)
                if one == self.end or after < 0 or one >= 0:
                    inline = 1
                    after = one
        if after < 0:
            return 0
        if inline == 2:
            self.note(TWO_WORD_PROCESS, self.start * 8, 0)
        if process:
            pid = self.providers.known.pid[self.thread_at(process, at)]
        else:
            pid = self.words[at]
        self.unused(word & UNUSED_OBJECT)
        name = self.string(ref, at + inline, self.start * 8, NOT_UTF8)
        self.leftover(after)
        self.at = at + inline + name_words
        self.nargs = nargs
        self.add_object(1, 0, pid, name)
        return 1

    cdef int kernel_object(self, int64_t word) except -1 nogil:
        """Read what a koid stands for."""
        cdef int64_t ref, nargs, name_at, at, after, name
        ref = get(OBJECT_NAME, word)
        nargs = get(OBJECT_ARGS, word)
        name_at = self.start + 2
        at = name_at + self.inline_words(ref)
        after = self.args_end(at, nargs)
        if after < 0:
            return 0
        self.unused(word & UNUSED_OBJECT)
        name = self.string(ref, name_at, self.start * 8, OBJECT_NOT_UTF8)
        self.leftover(after)
        self.at = at
        self.nargs = nargs
        self.add_object(0, get(OBJECT_OWNER, word), 0, name)
        return 1

    cdef int add_object(self, int64_t kind, int64_t type, int64_t pid,
                        int64_t name) except -1 nogil:
        """Add a row of an object."""
        cdef int64_t row
        row = self.objects.add_row()
        self.objects.kind[row] = kind
        self.objects.type[row] = type
        self.objects.name[row] = name
        self.objects.offset[row] = self.start * 8
        self.objects.value[row] = self.words[self.start + 1]
        self.objects.pid[row] = pid
        self.arg_table = TABLE_OBJECTS
        self.arg_parent = self.object_rows
        self.object_rows += 1
        self.name = name
        return 0

    # --- Profiler --------------------------------------------------------------------------------

    cdef int profiler_record(self, int64_t word) except -1 nogil:
        """Read a module, a mapping or a backtrace of the CPU profiler."""
        cdef int64_t kind, ref, name_words, more, at, inline, one_word, ticks, row, thread
        kind = get(PROFILER_TYPE, word)
        self.subtype = kind
        if kind > PROFILER_BACKTRACE:
            self.note(UNKNOWN_KIND, self.start * 8, 0)
            return 1
        ref = get(PROFILER_THREAD, word)
        name_words = 0
        if kind == PROFILER_MODULE:
            name_words = ((get(MODULE_NAME_LENGTH, word)) + 7) // 8
            more = name_words + (((get(MODULE_BUILD_ID_LENGTH, word)) + 7) // 8)
        elif kind == PROFILER_MMAP:
            more = 3
        else:
            more = get(FRAME_COUNT, word)
        at = self.start + 2
        inline = 0
        if ref == 0:
            # Of a module and a mapping the process alone may be given: the record's size tells.
            one_word = kind != PROFILER_BACKTRACE and at + 1 + more == self.end
            inline = 1 if one_word else 2
        if not self.fits(at + inline + more):
            return 0
        ticks = self.words[self.start + 1]
        self.time_of(ticks)
        row = self.profiler.add_row()
        if inline == 1:
            self.note(ONE_WORD_THREAD, self.start * 8, 0)
            self.profiler.thread[row] = -1
            self.profiler.pid[row] = self.words[at]
        else:
            thread = self.thread_at(ref, at)
            self.profiler.thread[row] = thread
            self.profiler.pid[row] = self.providers.known.pid[thread]
        self.profiler.kind[row] = kind
        self.profiler.offset[row] = self.start * 8
        self.profiler.ticks[row] = ticks
        self.profiler_row(row, kind, word, at + inline)
        self.profiler_rows += 1
        self.leftover(at + inline + more)
        return 1

    cdef int profiler_row(self, int64_t row, int64_t kind, int64_t word,
                          int64_t at) except -1 nogil:
        """Read what only one kind of profiler record has; its words begin at ``at``."""
        cdef int64_t name_length, build_length, build_at
        self.profiler.module[row] = -1
        self.profiler.name[row] = -1
        self.profiler.build_id[row] = -1
        self.profiler.flags[row] = 0
        self.profiler.address[row] = 0
        self.profiler.size[row] = 0
        self.profiler.vaddr[row] = 0
        self.profiler.start[row] = at * 8
        self.profiler.length[row] = 0
        if kind == PROFILER_BACKTRACE:
            self.profiler.length[row] = (get(FRAME_COUNT, word)) * 8
            self.profiler.flags[row] = get(BACKTRACE_FLAGS, word)
            return 0
        self.profiler.module[row] = get(MODULE_ID, word)
        if kind == PROFILER_MMAP:
            self.unused(word & UNUSED_MMAP)
            self.profiler.flags[row] = get(MMAP_FLAGS, word)
            self.profiler.address[row] = self.words[at]
            self.profiler.size[row] = self.words[at + 1]
            self.profiler.vaddr[row] = self.words[at + 2]
            return 0
        self.unused(word & UNUSED_MODULE)
        name_length = get(MODULE_NAME_LENGTH, word)
        build_length = get(MODULE_BUILD_ID_LENGTH, word)
        build_at = at + ((name_length + 7) // 8)
        self.padded(at, name_length)
        self.padded(build_at, build_length)
        self.profiler.name[row] = self.text(at, name_length, self.start * 8, NOT_UTF8)
        self.profiler.build_id[row] = self.text(build_at, build_length, self.start * 8, 0)
        return 0

    # --- Large records ---------------------------------------------------------------------------

    cdef int large(self, int64_t word) except -1 nogil:
        """Read a large blob, with or without metadata."""
        cdef int64_t form, offset, second, category_ref, name_ref, category_at, name_at, at
        cdef int64_t thread_at, thread_ref, nargs, after, length, unused, name
        form = get(LARGE_FORMAT, word)
        if get(LARGE_KIND, word) or form > LARGE_WITHOUT_METADATA:
            self.note(UNKNOWN_KIND, self.start * 8, 0)
            self.subtype = 15
            return 1
        self.subtype = form
        offset = self.start * 8
        if not self.fits(self.start + 3):
            return 0
        second = self.words[self.start + 1]
        category_ref = get(LARGE_CATEGORY, second)
        name_ref = get(LARGE_NAME, second)
        category_at = self.start + 2
        name_at = category_at + self.inline_words(category_ref)
        at = name_at + self.inline_words(name_ref)
        thread_at = at + 1
        thread_ref = get(LARGE_THREAD, second)
        nargs = 0
        if form == LARGE_WITH_METADATA:
            nargs = get(LARGE_ARGS, second)
            at = thread_at if thread_ref else thread_at + 2
        after = self.args_end(at, nargs)
        if after < 0 or not self.fits(after + 1):
            return 0
        length = self.words[after]
        if length < 0 or length > (self.end - after - 1) * 8:
            self.need = after + 1 - self.start + ((length - 1) // 8 + 1 if length > 0 else LOW32)
            return 0
        unused = UNUSED_LARGE_WITH if form == LARGE_WITH_METADATA else UNUSED_LARGE_WITHOUT
        self.unused((word & UNUSED_LARGE) | (second & unused))
        self.string(category_ref, category_at, offset, NOT_UTF8)
        name = self.string(name_ref, name_at, offset, NOT_UTF8)
        if form == LARGE_WITH_METADATA:
            self.thread_at(thread_ref, thread_at)
            self.time_of(self.words[thread_at - 1])
        self.padded(after + 1, length)
        self.leftover(after + 1 + ((length + 7) // 8))
        self.at = at
        self.nargs = nargs
        self.arg_table = TABLE_BLOBS
        self.arg_parent = self.blob_rows
        self.add_blob(0, name, (after + 1) * 8, length)
        return 1
