"""Where records begin and end, for scans: sizes, stretches of zero words, and the end of damage."""

from __future__ import annotations

from typing import Any

from fx_trace.layout import MINIMUM_WORDS, SOUND_RUN
from fx_trace.numbers import *
from fxframework.kernels.buffers import view

__all__ = ["RecordBounds"]

SIZE_BITS = 0xFFF
LARGE_SIZE_BITS = 0xFFFFFFFF
INLINE = 0x8000
RUN = SOUND_RUN
_LEAST = {int(kind): words for kind, words in MINIMUM_WORDS.items()}


class RecordBounds:
    """The words of a trace (int64) as records; ``least`` has, by record type, their least size.

    ``least`` is 0 for the types that the format does not define.
    """

    def __init__(self, words: Any) -> None:
        self.words = memoryview(words)
        self.total = len(self.words)
        self.least = view([_LEAST.get(kind, 0) for kind in range(16)], "i8")

    def size_of(self, word: int) -> int:
        """Words of the record with this header."""
        if word & 15 == RECORD_LARGE:
            return (word >> SIZE_AT) & LARGE_SIZE_BITS
        return (word >> SIZE_AT) & SIZE_BITS

    def zeros_end(self, at: int) -> int:
        """The word after the zero words that begin at word ``at``."""
        while at < self.total and self.words[at] == 0:
            at += 1
        return at

    def sound_size(self, at: int) -> int:
        """Words of the record at word ``at``; 0 where there can be none of a defined type."""
        if at >= self.total:
            return 0
        word = self.words[at]
        size = self.size_of(word)
        least = self.least[word & 15]
        if word == 0 or least == 0 or size < least or size > self.total - at:
            return 0
        return size

    def resume(self, at: int) -> int:
        """The first word from ``at`` on where records follow again; the end where none do.

        That is before three records of sound sizes, or before one whose contents fill it exactly.
        """
        while at < self.total and not self.follows(at):
            at += 1
        return at

    def follows(self, at: int) -> bool:
        """Whether records follow at word ``at``."""
        size = self.sound_size(at)
        if size == 0:
            return False
        after = at + size
        if self.is_exact(at, after):
            return True
        run = 1
        while run < RUN and size:
            size = self.sound_size(after)
            after += size
            run += 1
        return size != 0

    def is_exact(self, at: int, end: int) -> bool:
        """Whether a string, thread, event or log fills words ``at`` to ``end`` exactly."""
        word = self.words[at]
        kind = word & 15
        if kind == RECORD_STRING:
            length = (word >> STRING_LENGTH_AT) & 0x7FFF
            return (
                (word & UNUSED_STRING) == 0
                and (word >> STRING_INDEX_AT) & 0x7FFF != 0
                and length != 0
                and at + 1 + ((length + 7) >> 3) == end
            )
        if kind == RECORD_THREAD:
            return (
                (word & UNUSED_THREAD) == 0
                and (word >> THREAD_INDEX_AT) & 0xFF != 0
                and at + 3 == end
            )
        if kind == RECORD_LOG:
            length = (word >> LOG_LENGTH_AT) & 0x7FFF
            inline = 0 if (word >> LOG_THREAD_AT) & 0xFF else 2
            return (
                (word & UNUSED_LOG) == 0
                and length != 0
                and at + 2 + inline + ((length + 7) >> 3) == end
            )
        return kind == RECORD_EVENT and self.is_exact_event(word, at, end)

    def is_exact_event(self, word: int, at: int, end: int) -> bool:
        """The same of an event, which has to have a name."""
        kind = (word >> EVENT_KIND_AT) & 15
        name = (word >> EVENT_NAME_AT) & 0xFFFF
        if kind > EVENT_FLOW_END or name == 0:
            return False
        after = at + 2 + (0 if (word >> EVENT_THREAD_AT) & 0xFF else 2)
        after += self.inline_words((word >> EVENT_CATEGORY_AT) & 0xFFFF) + self.inline_words(name)
        count = (word >> EVENT_ARGS_AT) & 15
        while count > 0:
            if after >= end:
                return False
            size = (self.words[after] >> SIZE_AT) & SIZE_BITS
            if size == 0 or size != self.argument_words(self.words[after]):
                return False
            after += size
            count -= 1
        if kind == EVENT_COUNTER or kind >= EVENT_DURATION_COMPLETE:
            after += 1
        return after == end or (kind == EVENT_INSTANT and after + 1 == end)

    def sizes_end(self, at: int, end: int) -> int:
        """The word at which records end that begin at word ``at``, going by their sizes alone.

        Up to a size of zero, or a record that passes word ``end``; one that fills the rest exactly
        counts, which the scan of the reference manager loses.
        """
        while at < end:
            size = self.size_of(self.words[at])
            if size == 0 or size > end - at:
                break
            at += size
        return at

    def metadata_after(self, at: int, end: int, max_record: int) -> int:
        """The first word from ``at``, where a record begins, with a metadata record; or ``end``.

        Records are framed as a scan of the words before ``end`` does.
        """
        total = self.total
        self.total = end
        while at < end:
            word = self.words[at]
            size = self.sound_size(at)
            if word and size and word & 15 == RECORD_METADATA:
                if max_record == 0 or size * 8 <= max_record:
                    break
            if word == 0:
                at += 1
            elif size or self.is_framed(at):
                at += self.size_of(word)
            else:
                at = self.resume(at + 1)
        self.total = total
        return at

    def is_framed(self, at: int) -> bool:
        """Whether a record of a type that is not defined has a size that fits."""
        size = self.size_of(self.words[at])
        return self.least[self.words[at] & 15] == 0 and 0 < size <= self.total - at

    def metadata_in(self, at: int, end: int, max_record: int) -> list[int]:
        """The words from ``at`` to ``end`` at which metadata records begin."""
        found = []
        while at < end:
            at = self.metadata_after(at, end, max_record)
            if at < end:
                found.append(at)
                at += self.size_of(self.words[at])
        return found

    def inline_words(self, ref: int) -> int:
        """Words that a string reference has behind the header."""
        return ((ref & 0x7FFF) + 7) >> 3 if ref & INLINE else 0

    def argument_words(self, word: int) -> int:
        """Words that an argument with this header needs; 0 for types that are not defined."""
        kind = word & 15
        if kind > ARG_BLOB:
            return 0
        words = 1 + self.inline_words((word >> ARG_NAME_AT) & 0xFFFF)
        if kind == ARG_STRING:
            words += self.inline_words((word >> ARG_VALUE_AT) & 0xFFFF)
        elif (ARG_INT64 <= kind <= ARG_DOUBLE) or kind == ARG_POINTER or kind == ARG_KOID:
            words += 1
        elif kind == ARG_BLOB:
            words += (((word >> ARG_VALUE_AT) & LARGE_SIZE_BITS) + 7) >> 3
        return words
