"""Walk: the records of a trace one by one, as words, for the models of reference readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

import attrs

from fx_trace import format as wire
from fx_trace.format import MetadataType, RecordType
from fxframework.io.source import Source
from fxframework.io.words import WORD
from fxframework.model.prediction import Prediction

__all__ = ["LeftOut", "Provider", "Walk"]

CHUNK: Final = 1 << 16
"""Words that are looked at together."""
AHEAD: Final = CHUNK + 3 * wire.MAX_RECORD_WORDS
"""Words of a chunk, with what the fields of its last record may have behind it."""


class LeftOut(Exception):  # noqa: N818 (not an error: a record without a place)
    """A record is left out; the quirk says why."""


@attrs.define
class Provider:
    """What is registered for one provider."""

    rate: int = wire.DEFAULT_TICKS_PER_SECOND
    strings: dict[int, bytes] = attrs.field(factory=dict)
    threads: dict[int, int] = attrs.field(factory=dict)
    """What a reader keeps of a thread, by its index."""


class Walk:
    """One reading of a trace: frames records and gives each to the handler of its type.

    A handler takes the header and raises LeftOut where the record is left out. Fields are read at
    word indexes of the chunk: ``at`` is the header, ``end`` the word behind the record.
    """

    wide_sizes: ClassVar[bool] = True
    """Whether the size of a large record has 32 bits."""

    def __init__(self, source: Source, found: Prediction) -> None:
        self.source = source
        self.found = found
        self.providers = {wire.DEFAULT_PROVIDER: Provider()}
        self.provider = self.providers[wire.DEFAULT_PROVIDER]
        self.nobody = Provider()
        """The provider of a section whose records are left out."""
        self.words: list[int] = []
        """The words of one chunk; the fields of a record are whole in it."""
        self.first = 0
        """Index of the chunk's first word in the file."""
        self.at = self.end = 0
        self.offset = self.record = 0
        """The record at hand: its byte offset, and its number."""

    # --- What a reader decides -------------------------------------------------------------------

    def handlers(self) -> Mapping[int, Callable[[int], None]]:
        """Return the handlers, by record type."""
        raise NotImplementedError

    def other(self, _header: int) -> None:
        """A record of a type without a handler."""
        self.note("record-type")

    def zero_size(self, _header: int) -> int:
        """Return how many words to go on by behind a record of size 0; 0 ends the reading."""
        raise NotImplementedError

    def unregistered(self, _index: int) -> bytes:
        """Return the string of an index that was not registered."""
        raise LeftOut("string-ref")

    # --- Records ---------------------------------------------------------------------------------

    def note(self, key: str, detail: str = "") -> None:
        """Count a quirk at the record at hand."""
        self.found.add(key, self.offset, self.record, detail)

    def run(self) -> bool:
        """Take record after record; False where a record of size 0 ends the reading."""
        whole = self.source.words()
        count = len(whole)
        position = 0
        handlers, add = self.handlers(), self.found.add
        metadata, large = RecordType.METADATA.value, RecordType.LARGE.value
        wide = self.wide_sizes
        while position < count:
            words = self.words = whole[position : position + AHEAD].tolist()
            self.first, at, held = position, 0, min(len(words), CHUNK)
            while at < held:
                header = words[at]
                kind = header & 15
                size = header >> 4 & (0xFFFFFFFF if wide and kind == large else 0xFFF)
                self.offset = (position + at) * WORD
                end = at + size
                if not size:
                    step = self.zero_size(header)
                    if not step:
                        return False
                    at += step
                    continue
                if position + end > count:
                    add("cut", self.offset, self.record)
                    return True
                self.at, self.end = at, end
                if self.provider is self.nobody and kind != metadata:
                    add("provider", self.offset, self.record)
                else:
                    handle = handlers.get(kind)
                    if handle is None:
                        self.other(header)
                    else:
                        try:
                            handle(header)
                        except LeftOut as why:
                            add(str(why), self.offset, self.record)
                self.record += 1
                at = end
            self.source.passed(position * WORD, min(position + at, count) * WORD)
            position += at
        if self.source.size % WORD:
            add("odd-bytes", count * WORD, self.record)
        return True

    # --- Parts of records ------------------------------------------------------------------------

    def behind(self, ref: int, cursor: int) -> int:
        """Return the word behind an inline string."""
        cursor += (ref & 0x7FFF) + 7 >> 3
        if cursor > self.end:
            raise LeftOut("short")
        return cursor

    def inline(self, ref: int, cursor: int) -> tuple[bytes, int]:
        """Return an inline string, and the word behind it."""
        behind = self.behind(ref, cursor)
        return self.source.read((self.first + cursor) * WORD, ref & 0x7FFF), behind

    def text(self, ref: int, cursor: int) -> tuple[bytes, int]:
        """Return the string of a reference, and the word behind it."""
        if ref & wire.INLINE_STRING:
            return self.inline(ref, cursor)
        if not ref:
            return b"", cursor
        text = self.provider.strings.get(ref)
        return (self.unregistered(ref) if text is None else text), cursor

    # --- Records that most readers take alike ----------------------------------------------------

    def enter_provider(self, kind: int, header: int) -> None:
        """Introduce a provider, which makes new tables for it, or enter its section."""
        number = header >> 20 & 0xFFFFFFFF
        if kind == MetadataType.PROVIDER_INFO:
            self.behind(header >> 52 & 0xFF, self.at + 1)
            self.provider = self.providers[number] = Provider()
        elif kind == MetadataType.PROVIDER_SECTION:
            self.provider = self.providers.get(number, self.nobody)
