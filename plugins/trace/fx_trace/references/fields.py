"""Fields: the fields of each record, as readers take them that look at a record by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np

from fx_trace import layout
from fx_trace.layout import ArgType, EventType, ProfilerType, RecordType, SchedulingType
from fx_trace.references.walk import CHUNK, LeftOut, Provider, Walk
from fxframework.io.words import WORD

__all__ = ["FieldWalk"]

LONG = frozenset({ArgType.INT64, ArgType.UINT64, ArgType.DOUBLE, ArgType.POINTER, ArgType.KOID})
"""Types whose value is a word of its own."""
FIXED = {SchedulingType.CONTEXT_SWITCH: 4, SchedulingType.THREAD_WAKEUP: 3}
"""Words before the arguments."""


class FieldWalk(Walk):
    """Checks that the fields of each record are within it, and that what they refer to is known.

    What is beyond the fields of a record is ignored. Readers override what they take otherwise.
    """

    exact_args: ClassVar[bool] = False
    """Whether an argument must fill its size exactly."""

    def handlers(self) -> Mapping[int, Callable[[int], None]]:
        """Return the handlers, by record type."""
        return {
            RecordType.METADATA: self.metadata,
            RecordType.INITIALIZATION: self.initialization,
            RecordType.STRING: self.string,
            RecordType.THREAD: self.thread,
            RecordType.EVENT: self.event,
            RecordType.BLOB: self.blob,
            RecordType.USERSPACE_OBJECT: self.userspace_object,
            RecordType.KERNEL_OBJECT: self.kernel_object,
            RecordType.SCHEDULING: self.scheduling,
            RecordType.LOG: self.log,
            RecordType.PROFILER: self.profiler,
            RecordType.LARGE: self.large,
        }

    def zero_words(self) -> int:
        """Read words of zero from the record at hand on, up to a chunk of them."""
        here = self.offset // WORD
        there = self.source.words()[here : here + CHUNK]
        nonzero = np.flatnonzero(there)
        return int(nonzero[0]) if nonzero.size else len(there)

    # --- What a reader decides -------------------------------------------------------------------

    def unregistered_thread(self, _index: int) -> None:
        """A thread reference to what was not registered."""
        raise LeftOut("thread-ref")

    def check_text(self, text: bytes) -> None:
        """A string is taken."""

    def check_arg(self, kind: int, _nbytes: int) -> None:
        """An argument is taken; a blob has so many bytes."""
        if kind > ArgType.BLOB:
            raise LeftOut("arg-type")

    def thread_table(self) -> dict[int, int]:
        """Return where threads are registered."""
        return self.provider.threads

    # --- Parts of records ------------------------------------------------------------------------

    def need(self, cursor: int) -> None:
        """Raise LeftOut unless the words before ``cursor`` are in the record."""
        if cursor > self.end:
            raise LeftOut("short")

    def inline(self, ref: int, cursor: int) -> tuple[bytes, int]:
        """Return an inline string, and the word behind it."""
        text, cursor = super().inline(ref, cursor)
        self.check_text(text)
        return text, cursor

    def who(self, ref: int, cursor: int, words: int = 2) -> int:
        """Return the word behind a thread reference."""
        if not ref:
            cursor += words
            self.need(cursor)
        elif ref not in self.thread_table():
            self.unregistered_thread(ref)
        return cursor

    def args(self, count: int, cursor: int) -> int:
        """Return the word behind arguments."""
        for _ in range(count):
            self.need(cursor + 1)
            header = self.words[cursor]
            end = cursor + (header >> 4 & 0xFFF)
            if end == cursor or end > self.end:
                raise LeftOut("short")
            kind = header & 15
            value = header >> 32
            _, behind = self.text(header >> 16 & 0xFFFF, cursor + 1)
            nbytes = 0
            if kind in LONG:
                behind += 1
            elif kind == ArgType.STRING:
                _, behind = self.text(value & 0xFFFF, behind)
            elif kind == ArgType.BLOB:
                nbytes = value
                behind += -(-nbytes // 8)
            self.check_arg(kind, nbytes)
            if behind > end:
                raise LeftOut("short")
            if self.exact_args and behind != end:
                raise LeftOut("arg-size")
            cursor = end
        return cursor

    # --- Records ---------------------------------------------------------------------------------

    def metadata(self, header: int) -> None:
        """A provider, its section, or the note that its buffer was full."""
        self.enter_provider(header >> 16 & 15, header)
        if self.provider is self.nobody:
            self.provider = self.providers[header >> 20 & 0xFFFFFFFF] = Provider()

    def initialization(self, _header: int) -> None:
        """The tick rate."""
        self.need(self.at + 2)
        self.provider.rate = self.words[self.at + 1]

    def string(self, header: int) -> None:
        """Register a string."""
        text, _ = self.inline(header >> 32 & 0x7FFF, self.at + 1)
        index = header >> 16 & 0x7FFF
        if not index:
            raise LeftOut("index-zero")
        self.register_string(index, text)

    def thread(self, header: int) -> None:
        """Register a thread."""
        self.need(self.at + 3)
        index = header >> 16 & 0xFF
        if not index:
            raise LeftOut("index-zero")
        pid, tid = self.words[self.at + 1 : self.at + 3]
        self.register_thread(index, pid << 64 | tid)

    def register_string(self, index: int, text: bytes) -> None:
        """A string replaces what was there."""
        self.provider.strings[index] = text

    def register_thread(self, index: int, thread: int) -> None:
        """A thread replaces what was there."""
        self.thread_table()[index] = thread

    def event(self, header: int) -> None:
        """An event."""
        self.event_fields(header)

    def event_fields(self, header: int) -> int:
        """Return the word behind the arguments of an event, where the word of its own is."""
        self.need(self.at + 2)
        kind = header >> 16 & 15
        if kind > EventType.FLOW_END:
            raise LeftOut("event-type")
        cursor = self.who(header >> 24 & 0xFF, self.at + 2)
        _, cursor = self.text(header >> 32 & 0xFFFF, cursor)
        _, cursor = self.text(header >> 48, cursor)
        cursor = self.args(header >> 20 & 15, cursor)
        if kind in layout.EVENT_HAS_WORD:
            self.need(cursor + 1)
        return cursor

    def blob(self, header: int) -> None:
        """A blob."""
        _, cursor = self.text(header >> 16 & 0xFFFF, self.at + 1)
        self.need(cursor + ((header >> 32 & 0x7FFF) + 7 >> 3))

    def userspace_object(self, header: int) -> None:
        """A userspace object; an inline process is one word."""
        self.need(self.at + 2)
        cursor = self.who(header >> 16 & 0xFF, self.at + 2, 1)
        _, cursor = self.text(header >> 24 & 0xFFFF, cursor)
        self.args(header >> 40 & 15, cursor)

    def kernel_object(self, header: int) -> None:
        """A kernel object."""
        self.need(self.at + 2)
        _, cursor = self.text(header >> 24 & 0xFFFF, self.at + 2)
        self.args(header >> 40 & 15, cursor)

    def scheduling(self, header: int) -> None:
        """A context switch or a wakeup."""
        kind = header >> 60
        if kind == SchedulingType.LEGACY_CONTEXT_SWITCH:
            cursor = self.who(header >> 28 & 0xFF, self.at + 2)
            self.need(self.who(header >> 36 & 0xFF, cursor))
        elif kind in FIXED:
            cursor = self.at + FIXED[SchedulingType(kind)]
            self.need(cursor)
            self.args(header >> 16 & 15, cursor)
        else:
            raise LeftOut("event-type")

    def log(self, header: int) -> None:
        """A log message."""
        self.need(self.at + 2)
        cursor = self.who(header >> 32 & 0xFF, self.at + 2)
        self.inline(header >> 16 & 0x7FFF, cursor)

    def profiler(self, header: int) -> None:
        """A profiler record."""
        kind = header >> 16 & 15
        if kind > ProfilerType.BACKTRACE:
            raise LeftOut("event-type")
        self.need(self.at + 2)

    def large(self, header: int) -> None:
        """A large record."""
        if header >> 36 & 15:
            raise LeftOut("record-type")
        self.need(self.at + 2)
