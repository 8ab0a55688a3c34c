"""A record being read or written: its words, its JSON, and the tables that it refers to."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import attrs
from tests.reference.trace import layout as wire

from fx_trace import rules
from fxframework.errors import Rule, WriteRefusedError, refusal
from fxframework.io.words import U64_MAX, WORD, pad8
from fxframework.kit.json_fields import (
    JsonFields,
    unfit,
)
from fxframework.model.clock import Clock
from fxframework.model.diagnostics import Found

Koids = tuple[int, int] | str
"""A thread: (process koid, thread koid), or ``<thr#N>`` where index N was never registered."""
Value = None | bool | int | float | str | bytes

UNREGISTERED_THREAD = re.compile(r"<thr#(\d{1,3})>")
_U64 = struct.Struct("<Q")


class OverrunError(Exception):
    """The contents pass the end of the record; they go on to byte ``end`` at least."""

    def __init__(self, end: int) -> None:
        super().__init__(end)
        self.end = end


def string_marker(index: int) -> str:
    """Return what stands for a string that was never registered."""
    return f"<str#{index}>"


def thread_marker(index: int) -> str:
    """Return what stands for a thread that was never registered."""
    return f"<thr#{index}>"


# --- State: what earlier records say about later ones ------------------------------------------


# What a provider has that registered nothing: a file may name a great many of those.
NO_STRINGS: dict[int, str] = {}
NO_THREADS: dict[int, tuple[int, int]] = {}
_NANOSECONDS = Clock()


@attrs.define
class Provider:
    """One provider's tables (Provider section metadata)."""

    strings: dict[int, str] = attrs.field(default=NO_STRINGS)
    threads: dict[int, tuple[int, int]] = attrs.field(default=NO_THREADS)
    ticks_per_second: int | None = None
    clock: Clock = _NANOSECONDS
    introduced: bool = False
    """Whether provider info named it, not only a section."""


class Tables:
    """The providers of a file up to some record, and which of them is speaking."""

    def __init__(self) -> None:
        self.default = Provider()
        self.current = self.default
        self.providers = {wire.DEFAULT_PROVIDER: self.default}

    def provider(self, number: int) -> Provider:
        """A provider, entered where it is new: with the clock that provider 0 has by then."""
        provider = self.providers.get(number)
        if provider is None:
            provider = self.providers[number] = Provider(clock=self.default.clock)
        return provider

    def string(self, index: int) -> str | None:
        """The string registered at an index: the speaker's own, else the default provider's."""
        found = self.current.strings.get(index)
        return self.default.strings.get(index) if found is None else found

    def thread(self, index: int) -> tuple[int, int] | None:
        """The thread registered at an index: the speaker's own, else the default provider's."""
        found = self.current.threads.get(index)
        return self.default.threads.get(index) if found is None else found


# --- Reading and writing words -----------------------------------------------------------------


class Cursor:
    """A record being read: what is left of it, and what was noticed on the way."""

    __slots__ = (
        "at",
        "data",
        "end",
        "findings",
        "header",
        "outside",
        "refs",
        "reserved",
        "spot",
        "tables",
        "unpadded",
        "word",
    )

    def __init__(self, tables: Tables, *, big_endian: bool) -> None:
        self.tables = tables
        self.word = struct.Struct(">Q" if big_endian else "<Q").unpack_from
        self.begin(memoryview(b""), 0, 0, 0)

    def begin(self, data: memoryview, at: int, end: int, header: int) -> None:
        """Stand after the header of the record that fills bytes ``at`` to ``end``."""
        self.data = data
        self.at = at + WORD
        self.end = end
        self.header = header
        self.spot = at
        self.refs: dict[str, int] | None = None
        self.findings: list[Found] = []
        self.reserved: int | None = None
        self.unpadded: int | None = None

    def find(self, rule: Rule, value: object = None) -> None:
        """Note a finding at the record, or at the argument being read."""
        self.findings.append(Found(rule, self.spot, value))

    def find_once(self, *, reserved: bool = False, unpadded: bool = False) -> None:
        """Note a finding that a record has once, where it shows first."""
        if reserved and self.reserved is None:
            self.reserved = self.spot
        if unpadded and self.unpadded is None:
            self.unpadded = self.spot

    def refer(self, name: str, index: int) -> None:
        """Note that a field was an index."""
        if self.refs is None:
            self.refs = {name: index}
        else:
            self.refs[name] = index

    def u64(self) -> int:
        """Return the next word."""
        at = self.at
        self.at = at + WORD
        if self.at > self.end:
            raise OverrunError(self.at)
        value: int = self.word(self.data, at)[0]
        return value

    def enter_argument(self) -> int:
        """Move behind the header of the next argument, whose end is now that of the record.

        Returns the argument type; ``leave_argument`` returns to the record.
        """
        self.outside = self.header, self.end, self.refs, self.spot
        spot = self.at
        header = self.u64()
        end = spot + (header >> wire.ARG_SIZE.low & wire.ARG_SIZE.limit) * WORD
        if not self.at <= end <= self.end:
            raise OverrunError(max(end, self.at))
        self.header, self.end, self.refs, self.spot = header, end, None, spot
        return wire.TYPE.get(header)

    def leave_argument(self) -> None:
        """Stand after the argument, in the record again."""
        self.at = self.end
        self.header, self.end, self.refs, self.spot = self.outside

    def stream(self, nbytes: int) -> bytes:
        """Return the next stream of ``nbytes`` bytes; its padding is stepped over."""
        at = self.at
        stop = at + nbytes
        self.at = stop + (-nbytes % WORD)
        if self.at > self.end:
            raise OverrunError(self.at)
        if stop != self.at and any(self.data[stop : self.at]):
            self.find_once(unpadded=True)
        return self.data[at:stop].tobytes()

    def text(self, nbytes: int, rule: Rule) -> str:
        """Return the next stream as text; ``rule`` is that of the finding if it is not UTF-8."""
        data = self.stream(nbytes)
        try:
            return data.decode()
        except UnicodeDecodeError:
            self.find(rule, data)
            return data.decode(errors="surrogateescape")


class HeaderBits(Protocol):
    """Bits of a header word."""

    name: str
    low: int
    limit: int


class Holder(Protocol):
    """What is being written: a record or an argument."""

    refs: dict[str, int] | None

    @property
    def title(self) -> str:
        """What a message calls it."""


class RecordBuilder:
    """A record, or an argument, being written: its header so far, and the words after it."""

    __slots__ = ("chunks", "first", "header", "holder", "outer", "pack", "refs", "second")

    def __init__(
        self,
        pack: Callable[[int], bytes],
        header: int,
        holder: Holder,
        outer: RecordBuilder | None = None,
    ) -> None:
        self.pack = pack
        self.header = header
        self.holder = holder
        self.outer = outer
        self.refs = holder.refs or {}
        self.chunks: list[bytes] = []
        self.first: int | None = None
        self.second = 0

    @property
    def what(self) -> str:
        """What is being written, for a refusal."""
        return f"{self.outer.what}, {self.holder.title}" if self.outer else self.holder.title

    def put(self, part: HeaderBits, value: int) -> None:
        """Set a field of the header."""
        if not 0 <= value <= part.limit:
            raise self.unfit(part.name, value, 0, part.limit)
        self.header |= value << part.low

    def unfit(self, name: str, value: int, least: int, most: int) -> WriteRefusedError:
        """Return the refusal of a number that does not fit."""
        return unfit(rules.OUT_OF_RANGE, self.what, name, value, least, most)

    def u64(self, name: str, value: int) -> None:
        """Append a word."""
        if not 0 <= value <= U64_MAX:
            raise self.unfit(name, value, 0, U64_MAX)
        self.chunks.append(self.pack(value))

    def stream(self, name: str, data: bytes, limit: int) -> None:
        """Append a stream of at most ``limit`` bytes."""
        if len(data) > limit:
            raise refusal(
                rules.STRING_TOO_LONG,
                f"{self.what}: {name} has {len(data)} bytes, its field holds {limit}",
            )
        self.chunks.append(pad8(data))

    def next_header(self) -> None:
        """From here on, fields are those of a second header word, which is the next one."""
        self.first = self.header
        self.header = 0
        self.second = len(self.chunks)
        self.chunks.append(b"")

    def finish(self, size: HeaderBits) -> bytes:
        """Return the bytes, with the number of words in the ``size`` field of the first header."""
        if self.first is not None:
            self.chunks[self.second] = self.pack(self.header)
            self.header = self.first
        words = 1 + sum(map(len, self.chunks)) // WORD
        if words > size.limit:
            raise refusal(
                rules.TOO_LARGE,
                f"{self.what}: it needs {words} words, a size field holds {size.limit}",
            )
        return b"".join((self.pack(self.header | words << size.low), *self.chunks))


def encoded(what: str, name: str, text: str) -> bytes:
    """Return the bytes of a text. Raises WriteRefusedError (WRONG_TYPE) for a lone surrogate."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise refusal(rules.WRONG_TYPE, f"{what}: {name} holds a lone surrogate: {error}") from None


# --- JSON on its way in ------------------------------------------------------------------------


class TraceFields(JsonFields):
    """A JSON object of a trace being taken apart."""

    def __init__(self, what: str, given: Mapping[str, Any]) -> None:
        super().__init__(what, given, rules.REFUSALS)

    def koids(self, key: str) -> Koids:
        """Return a thread: two koids, or the marker of an index that was never registered."""
        value = self.need(key)
        if isinstance(value, str):
            found = UNREGISTERED_THREAD.fullmatch(value)
            if found and 1 <= int(found[1]) <= wire.MAX_THREAD_INDEX:
                return thread_marker(int(found[1]))
        elif isinstance(value, list | tuple) and [type(koid) for koid in value] == [int, int]:
            return (value[0], value[1])
        raise self.wrong(key, "[process koid, thread koid] or '<thr#N>'")
