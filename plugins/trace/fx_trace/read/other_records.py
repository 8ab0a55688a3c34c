"""The records of a scan beside events: what sets the stage, scheduling, logs, blobs, objects."""

from __future__ import annotations

from fx_trace.format import (
    BACKTRACE_FLAGS,
    BLOB_DATA,
    BLOB_KIND,
    BLOB_LENGTH,
    BLOB_NAME,
    BLOB_PERFETTO,
    FRAME_COUNT,
    LARGE_ARGS,
    LARGE_CATEGORY,
    LARGE_FORMAT,
    LARGE_KIND,
    LARGE_NAME,
    LARGE_THREAD,
    LARGE_WITH_METADATA,
    LARGE_WITHOUT_METADATA,
    LEGACY_CPU,
    LEGACY_INCOMING,
    LEGACY_INCOMING_PRIORITY,
    LEGACY_OUTGOING,
    LEGACY_OUTGOING_PRIORITY,
    LEGACY_STATE,
    LOG_LENGTH,
    LOG_THREAD,
    MAGIC,
    METADATA_TYPE,
    MMAP_FLAGS,
    MODULE_BUILD_ID_LENGTH,
    MODULE_ID,
    MODULE_NAME_LENGTH,
    OBJECT_ARGS,
    OBJECT_NAME,
    OBJECT_OWNER,
    PROFILER_BACKTRACE,
    PROFILER_MMAP,
    PROFILER_MODULE,
    PROFILER_THREAD,
    PROFILER_TYPE,
    PROVIDER_EVENT,
    PROVIDER_EVENT_ID,
    PROVIDER_ID,
    PROVIDER_INFO,
    PROVIDER_NAME_LENGTH,
    PROVIDER_SECTION,
    SCHED_LEGACY_SWITCH,
    SCHED_SWITCH,
    SCHED_WAKEUP,
    SCHEDULING_TYPE,
    STATE_DEAD,
    STATE_RUNNING,
    STRING_INDEX,
    STRING_LENGTH,
    SWITCH_ARGS,
    SWITCH_CPU,
    SWITCH_STATE,
    TABLE_BLOBS,
    TABLE_OBJECTS,
    TABLE_SCHED,
    THREAD_INDEX,
    TRACE_INFO,
    TRACE_INFO_KIND,
    TRACE_INFO_MAGIC,
    UNUSED_BLOB,
    UNUSED_INITIALIZATION,
    UNUSED_LARGE,
    UNUSED_LARGE_WITH,
    UNUSED_LARGE_WITHOUT,
    UNUSED_LOG,
    UNUSED_MMAP,
    UNUSED_MODULE,
    UNUSED_OBJECT,
    UNUSED_PROVIDER_EVENT,
    UNUSED_PROVIDER_INFO,
    UNUSED_PROVIDER_SECTION,
    UNUSED_STRING,
    UNUSED_SWITCH,
    UNUSED_THREAD,
    UNUSED_TRACE_INFO,
    UNUSED_WAKEUP,
)
from fx_trace.read.fields import FieldReader
from fx_trace.rules import (
    BUFFER_FULL,
    INDEX_ZERO,
    INVALID_STATE,
    NOT_UTF8,
    OBJECT_NOT_UTF8,
    ONE_WORD_THREAD,
    OTHER_MAGIC,
    PROVIDER_NOT_INTRODUCED,
    TWO_WORD_PROCESS,
    UNKNOWN_BLOB_TYPE,
    UNKNOWN_KIND,
)
from fxframework.kernels.annotations import Fallible, i64, status

__all__ = ["OtherRecords"]

LOW32 = 0xFFFFFFFF


class OtherRecords(FieldReader):
    """Reads a record of each kind into its rows; 0, with nothing done, where it does not fit."""

    # --- Records that set the stage --------------------------------------------------------------

    def metadata(self, word: i64) -> status:
        """Read a metadata record."""
        offset = self.start * 8
        kind = METADATA_TYPE.get(word)
        number = PROVIDER_ID.get(word)
        self.subtype = kind
        after = self.start + 1
        if kind == PROVIDER_INFO:
            length = PROVIDER_NAME_LENGTH.get(word)
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
            self.provider_event(number, PROVIDER_EVENT_ID.get(word))
        elif kind == TRACE_INFO and TRACE_INFO_KIND.get(word) == 0:
            self.unused(word & UNUSED_TRACE_INFO)
            if TRACE_INFO_MAGIC.get(word) != MAGIC:
                self.note(OTHER_MAGIC, offset, TRACE_INFO_MAGIC.get(word))
        else:
            self.note(UNKNOWN_KIND, offset, 0)
            return 1
        self.leftover(after)
        return 1

    def provider_event(self, number: i64, event: i64) -> status:
        """Read what a provider reports: event 0 says that its buffer was full."""
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

    def initialization(self, word: i64) -> status:
        """Read a tick rate, and in files of Jane Street's a base tick and the wall time at it."""
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

    def string_record(self, word: i64) -> status:
        """Register a string at an index."""
        index = STRING_INDEX.get(word)
        length = STRING_LENGTH.get(word)
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

    def thread_record(self, word: i64) -> status:
        """Register a thread at an index."""
        index = THREAD_INDEX.get(word)
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

    def scheduling(self, word: i64) -> status:
        """Read a context switch or a wakeup."""
        kind = SCHEDULING_TYPE.get(word)
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

    def legacy_switch(self, word: i64) -> Fallible[i64]:
        """Read a legacy context switch.

        Return the word after what it needs; -1 where it does not fit.
        """
        outgoing = LEGACY_OUTGOING.get(word)
        incoming = LEGACY_INCOMING.get(word)
        outgoing_at = self.start + 2
        incoming_at = outgoing_at if outgoing else outgoing_at + 2
        after = incoming_at if incoming else incoming_at + 2
        if not self.fits(after):
            return -1
        row = self.sched.rows
        self.sched.prev[row] = self.thread_at(outgoing, outgoing_at)
        self.sched.next[row] = self.thread_at(incoming, incoming_at)
        self.sched.cpu[row] = LEGACY_CPU.get(word)
        self.state(row, LEGACY_STATE.get(word), 0)
        self.sched.prev_priority[row] = LEGACY_OUTGOING_PRIORITY.get(word)
        self.sched.next_priority[row] = LEGACY_INCOMING_PRIORITY.get(word)
        return after

    def switch(self, word: i64, kind: i64) -> Fallible[i64]:
        """Read a context switch or wakeup by tids, as ``legacy_switch``."""
        nargs = SWITCH_ARGS.get(word)
        at = self.start + 4 if kind == SCHED_SWITCH else self.start + 3
        after = self.args_end(at, nargs)
        if after < 0:
            return -1
        row = self.sched.rows
        self.sched.cpu[row] = SWITCH_CPU.get(word)
        self.sched.prev_priority[row] = -1
        self.sched.next_priority[row] = -1
        if kind == SCHED_SWITCH:
            self.unused(word & UNUSED_SWITCH)
            self.state(row, SWITCH_STATE.get(word), 1)
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

    def state(self, row: i64, state: i64, may_run: i64) -> status:
        """The state in which a switch leaves a thread."""
        self.sched.state[row] = state
        if state > STATE_DEAD or (state == STATE_RUNNING and not may_run):
            self.note(INVALID_STATE, self.start * 8, state)
        return 0

    def log(self, word: i64) -> status:
        """Read a line that was logged."""
        length = LOG_LENGTH.get(word)
        thread_ref = LOG_THREAD.get(word)
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

    def blob(self, word: i64) -> status:
        """Read a blob: bytes of some other format."""
        ref = BLOB_NAME.get(word)
        length = BLOB_LENGTH.get(word)
        name_at = self.start + 1
        at = name_at + self.inline_words(ref)
        after = at + ((length + 7) // 8)
        if not self.fits(after):
            return 0
        self.unused(word & UNUSED_BLOB)
        name = self.string(ref, name_at, self.start * 8, NOT_UTF8)
        self.padded(at, length)
        self.leftover(after)
        kind = BLOB_KIND.get(word)
        if kind < BLOB_DATA or kind > BLOB_PERFETTO:
            self.note(UNKNOWN_BLOB_TYPE, self.start * 8, kind)
        self.add_blob(kind, name, at * 8, length)
        return 1

    def add_blob(self, kind: i64, name: i64, start: i64, length: i64) -> status:
        """Add a row of a blob."""
        row = self.blobs.add_row()
        self.blobs.type[row] = kind
        self.blobs.name[row] = name
        self.blobs.offset[row] = self.start * 8
        self.blobs.start[row] = start
        self.blobs.length[row] = length
        self.blob_rows += 1
        return 0

    def userspace_object(self, word: i64) -> status:
        """Read what a pointer of a process points to."""
        process = OBJECT_OWNER.get(word)
        ref = OBJECT_NAME.get(word)
        nargs = OBJECT_ARGS.get(word)
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

    def kernel_object(self, word: i64) -> status:
        """Read what a koid stands for."""
        ref = OBJECT_NAME.get(word)
        nargs = OBJECT_ARGS.get(word)
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
        self.add_object(0, OBJECT_OWNER.get(word), 0, name)
        return 1

    def add_object(self, kind: i64, type: i64, pid: i64, name: i64) -> status:
        """Add a row of an object."""
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

    def profiler_record(self, word: i64) -> status:
        """Read a module, a mapping or a backtrace of the CPU profiler."""
        kind = PROFILER_TYPE.get(word)
        self.subtype = kind
        if kind > PROFILER_BACKTRACE:
            self.note(UNKNOWN_KIND, self.start * 8, 0)
            return 1
        ref = PROFILER_THREAD.get(word)
        name_words = 0
        if kind == PROFILER_MODULE:
            name_words = ((MODULE_NAME_LENGTH.get(word)) + 7) // 8
            more = name_words + (((MODULE_BUILD_ID_LENGTH.get(word)) + 7) // 8)
        elif kind == PROFILER_MMAP:
            more = 3
        else:
            more = FRAME_COUNT.get(word)
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

    def profiler_row(self, row: i64, kind: i64, word: i64, at: i64) -> status:
        """Read what only one kind of profiler record has; its words begin at ``at``."""
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
            self.profiler.length[row] = (FRAME_COUNT.get(word)) * 8
            self.profiler.flags[row] = BACKTRACE_FLAGS.get(word)
            return 0
        self.profiler.module[row] = MODULE_ID.get(word)
        if kind == PROFILER_MMAP:
            self.unused(word & UNUSED_MMAP)
            self.profiler.flags[row] = MMAP_FLAGS.get(word)
            self.profiler.address[row] = self.words[at]
            self.profiler.size[row] = self.words[at + 1]
            self.profiler.vaddr[row] = self.words[at + 2]
            return 0
        self.unused(word & UNUSED_MODULE)
        name_length = MODULE_NAME_LENGTH.get(word)
        build_length = MODULE_BUILD_ID_LENGTH.get(word)
        build_at = at + ((name_length + 7) // 8)
        self.padded(at, name_length)
        self.padded(build_at, build_length)
        self.profiler.name[row] = self.text(at, name_length, self.start * 8, NOT_UTF8)
        self.profiler.build_id[row] = self.text(build_at, build_length, self.start * 8, 0)
        return 0

    # --- Large records ---------------------------------------------------------------------------

    def large(self, word: i64) -> status:
        """Read a large blob, with or without metadata."""
        form = LARGE_FORMAT.get(word)
        if LARGE_KIND.get(word) or form > LARGE_WITHOUT_METADATA:
            self.note(UNKNOWN_KIND, self.start * 8, 0)
            self.subtype = 15
            return 1
        self.subtype = form
        offset = self.start * 8
        if not self.fits(self.start + 3):
            return 0
        second = self.words[self.start + 1]
        category_ref = LARGE_CATEGORY.get(second)
        name_ref = LARGE_NAME.get(second)
        category_at = self.start + 2
        name_at = category_at + self.inline_words(category_ref)
        at = name_at + self.inline_words(name_ref)
        thread_at = at + 1
        thread_ref = LARGE_THREAD.get(second)
        nargs = 0
        if form == LARGE_WITH_METADATA:
            nargs = LARGE_ARGS.get(second)
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
