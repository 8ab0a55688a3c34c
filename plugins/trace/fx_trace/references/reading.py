"""Reading: the record of a trace at hand, and what records introduced, as Perfetto takes them."""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from fx_trace import format as wire
from fx_trace.references.plain import LOW32, NS_PER_SECOND, PlainRecords
from fxframework.io.source import Source
from fxframework.io.words import WORD
from fxframework.model.prediction import Prediction

__all__ = ["LeftOut", "Reading", "nanoseconds"]

MASK: Final = (1 << 64) - 1
SIGN: Final = 1 << 63


def nanoseconds(ticks: int, rate: int) -> int:
    """Return the time of ticks as Perfetto computes it, high and low half; -1 beyond 63 bits."""
    if not rate:
        return -1
    high = (ticks >> 32) * ((NS_PER_SECOND << 32) // rate)
    if high > MASK:
        return -1
    total = (high + (ticks & LOW32) * NS_PER_SECOND // rate) & MASK
    return -1 if total >= SIGN else total


class LeftOut(Exception):  # noqa: N818 (not an error: a record without a place)
    """A record is left out; the quirk says why."""


@attrs.define
class Provider:
    """A provider: its number in the tables of strings and threads, and its ticks per second."""

    number: int
    rate: int = wire.DEFAULT_TICKS_PER_SECOND


class Reading:
    """The record at hand, whose header is word ``at`` and which ends before word ``end``.

    ``plain`` is the kernel that takes plain records, and has the tables of strings and threads.
    """

    def __init__(self, source: Source, found: Prediction) -> None:
        self.source = source
        self.found = found
        self.words: memoryview[int] = source.words().data
        self.at = self.end = 0
        self.plain = PlainRecords(source.words().view(np.int64))
        self.providers: dict[int, Provider] = {}
        self.introduced = 0
        self.nobody = Provider(-1)
        """The provider of a section whose records are left out."""
        self.tracks: dict[tuple[int, int], int] = {}
        """Numbers of tracks, by the process and thread of 32 bits."""
        self.texts = {b"": 0}
        """Numbers of texts."""
        self.introduce(wire.DEFAULT_PROVIDER)

    def note(self, key: str, detail: str = "") -> None:
        """Count a quirk at the record at hand."""
        self.found.add(key, self.at * WORD, self.plain.record, detail)

    def introduce(self, number: int) -> None:
        """Make new tables for a provider, and enter its section."""
        provider = self.providers[number] = Provider(self.introduced)
        self.introduced += 1
        self.enter(provider)

    def enter(self, provider: Provider) -> None:
        """Take the records that follow for those of a provider."""
        self.provider = provider
        self.plain.provider = provider.number
        self.plain.rate = provider.rate
        self.plain.high = (NS_PER_SECOND << 32) // provider.rate if provider.rate else 0

    def behind(self, ref: int, cursor: int) -> int:
        """Return the word behind an inline string."""
        cursor += -(-(ref & wire.STRING_FIELD_BYTES) // WORD)
        if cursor > self.end:
            raise LeftOut("short")
        return cursor

    def number(self, text: bytes) -> int:
        """Return the number of a text."""
        return self.texts.setdefault(text, len(self.texts))

    def inline(self, ref: int, cursor: int) -> tuple[int, int]:
        """Return the number of an inline string, and the word behind it."""
        behind = self.behind(ref, cursor)
        text = self.source.read(cursor * WORD, ref & wire.STRING_FIELD_BYTES)
        return self.number(text), behind

    def text(self, ref: int, cursor: int) -> tuple[int, int]:
        """Return the number of the string of a reference, and the word behind it."""
        if ref & wire.INLINE_STRING:
            return self.inline(ref, cursor)
        text = self.registered_text(ref)
        if text < 0:
            raise LeftOut("string-ref")
        return text, cursor

    def registered_text(self, ref: int) -> int:
        """Return the number of the string of an index; -1 if it was not registered."""
        return self.plain.strings.get(self.provider.number, ref) if ref else 0

    def track(self, pid: int, tid: int) -> int:
        """Return the number of a thread's track."""
        pair = pid - (pid // SIGN << 64), tid - (tid // SIGN << 64)  # as a kernel takes them
        found = self.plain.koids.get(*pair)
        if found < 0:
            if max(pid, tid) > LOW32:
                self.note("koid")
            short = pid & LOW32, tid & LOW32
            found = self.tracks.setdefault(short, len(self.tracks))
            self.plain.koids.put(*pair, found)
        return found

    def registered(self, ref: int) -> int:
        """Return the number of the track of a thread reference."""
        track = self.plain.threads.get(self.provider.number, ref)
        if track < 0:
            self.note("thread-ref")
            return self.track(0, 0)
        return track

    def time(self, cursor: int) -> int:
        """Return the time in the word behind the header."""
        if cursor >= self.end:
            raise LeftOut("short")
        ts = nanoseconds(self.words[cursor], self.provider.rate)
        if ts < 0:
            raise LeftOut("time")
        return ts
