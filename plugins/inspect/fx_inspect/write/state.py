"""State: what all values of a VMO share: its heap, its strings, its lock and its generation."""

from __future__ import annotations

import operator
import reprlib
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

import attrs

from fx_inspect import layout as wire
from fx_inspect.layout import BlockType
from fx_inspect.write.heap import NONE, Growth, Heap, order_of
from fxframework.errors import WriteRefusedError
from fxframework.io.words import U64_MAX, padding, to_i64
from fxframework.kit.json_fields import bits_of, double_of
from fxframework.model.target import Memory

__all__ = [
    "DOUBLE",
    "INT",
    "LEAST",
    "MOST",
    "UINT",
    "Kind",
    "State",
    "Text",
    "double",
    "int64",
    "refused",
    "uint64",
    "utf8",
]

LEAST, MOST = -(1 << 63), (1 << 63) - 1
"""What an int has."""
_MAX_REFERENCES = wire.MAX_REFERENCES - 1
"""One less than fits: a value may use one string twice."""
_STRING_REFERENCE = int(BlockType.STRING_REFERENCE)
_WORD = struct.Struct("<Q")
_HEAD = struct.Struct("<QI").pack


def refused(number: int, message: str, remedy: str = "") -> WriteRefusedError:
    """The refusal of that number (FXI04xx)."""
    return WriteRefusedError(message, code=f"FXI{number:04}", remedy=remedy)


# --- Kinds of numbers -----------------------------------------------------------------------------


def int64(value: Any, what: str = "an int") -> int:
    """A value that an int can have."""
    return _integer(value, what, LEAST, MOST)


def uint64(value: Any, what: str = "a uint") -> int:
    """A value that a uint can have."""
    return _integer(value, what, 0, U64_MAX)


def _integer(value: Any, what: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise refused(403, f"{what} must be a whole number, not {reprlib.repr(value)}")
    number = value.__index__()
    if not least <= number <= most:
        raise refused(404, f"{what} of {number} is out of range: {least} to {most}")
    return int(number)


def double(value: Any, what: str = "a double") -> float:
    """A value that a double can have."""
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise refused(403, f"{what} must be a number, not {reprlib.repr(value)}")
    try:
        return float(value)
    except OverflowError:
        raise refused(404, f"{what} of {value} is out of range of a double") from None


@attrs.frozen
class Kind:
    """A kind of numbers: how one is checked, stored and added. Integers saturate, as in Rust."""

    type: BlockType
    check: Callable[..., Any]
    word: Callable[[Any], int]
    value: Callable[[int], Any]
    sum: Callable[[Any, Any], Any]

    def add(self, state: State, at: int, by: Any) -> None:
        """Add to the number at a byte of the memory."""
        state.store(at, self.word(self.sum(self.value(state.load(at)), by)))


INT = Kind(
    BlockType.INT_VALUE,
    int64,
    lambda value: value & U64_MAX,
    to_i64,
    lambda left, right: min(max(left + right, LEAST), MOST),
)
UINT = Kind(
    BlockType.UINT_VALUE,
    uint64,
    int,
    int,
    lambda left, right: min(max(left + right, 0), U64_MAX),
)
DOUBLE = Kind(BlockType.DOUBLE_VALUE, double, bits_of, double_of, operator.add)


# --- What all values of a VMO share --------------------------------------------------------------


class Text:
    """A string or name in the memory, and who uses it."""

    __slots__ = ("count", "extents", "index", "text", "word")

    def __init__(
        self, index: int, text: str, word: int, extents: Sequence[int], count: int
    ) -> None:
        self.index = index
        self.text = text
        """As it was given; a full VMO may have less of it."""
        self.word = word
        """The block's header, without the count."""
        self.extents = extents
        self.count = count
        """References; 0 of a NAME, which has one user and no count."""


class State:
    """The heap, the strings and the lock of one VMO. ``with state:`` is a locked period."""

    def __init__(self, memory: Memory, *, version: int, max_size: int, growth: Growth) -> None:
        self.memory = memory
        self.version = version
        self.heap = Heap(memory, version=version, max_size=max_size, growth=growth)
        self.lock = threading.Lock()
        self.generation = 0
        self.depth = 0
        """Transactions that are open."""
        self.words: memoryview | None = None
        """The memory as words, where it lets us store into them without asking."""
        self.viewed = 0
        """Bytes of the heap when ``words`` was taken."""
        self.view()
        self.store, self.load, self.write = memory.store_u64, memory.load_u64, memory.write
        self.take, self.free = self.heap.take, self.heap.free
        self.type_at, self.parent_at = (4, 8) if version == 0 else (8, 16)
        self.name_at = self.parent_at + (28 if version == 0 else 24)
        self.parent_mask = ((1 << self.name_at) - 1) & ~((1 << self.parent_at) - 1)
        self.strings: dict[str, Text] = {}
        """Shared strings (version 2), by what they say."""
        self.links: dict[str, Callable[[], Any]] = {}
        """What gives the trees of links, by what the links say."""
        self.link_number = 0

    def view(self) -> None:
        """Take the words of the memory again; they depend on its size."""
        words = getattr(self.memory, "words", None)
        self.words = words if isinstance(words, memoryview) else None
        self.viewed = self.heap.size

    # --- periods ---

    def __enter__(self) -> None:
        self.lock.acquire()
        try:
            # ``begin``, without the call.
            if not self.depth:
                self.store(8, self.generation + 1)
                self.generation += 1
            self.depth += 1
        except BaseException:
            self.lock.release()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is None or isinstance(error, WriteRefusedError):
                self.end()
            # Otherwise the tree may be inconsistent: the generation stays odd, which readers see.
        finally:
            self.lock.release()

    def begin(self) -> None:
        """Make the generation odd, unless it is. The lock is held."""
        if not self.depth:
            self.store(8, self.generation + 1)
            self.generation += 1
        self.depth += 1

    def end(self) -> None:
        """Make it even again, where this was the last one to do so."""
        if self.depth == 1:
            generation = (self.generation + 1) & U64_MAX
            self.store(8, generation)
            self.generation = generation
            if self.viewed != self.heap.size:
                self.view()
        self.depth -= 1

    # --- blocks ---

    def extents(self, data: bytes) -> tuple[list[int], int] | None:
        """Write bytes into a chain of extents; the blocks, and how many bytes there was room for.

        None where there was no room for any.
        """
        blocks: list[int] = []
        done = 0
        order = order_of(min(len(data) + 8, wire.MAX_BLOCK))
        index = self.take(order) if data else NONE
        while index != NONE:
            blocks.append(index)
            part = data[done : done + wire.ORDER_SIZE(order) - 8]
            done += len(part)
            word = order | BlockType.EXTENT << self.type_at
            at, index = index << 4, NONE
            if done < len(data):
                order = order_of(min(len(data) - done + 8, wire.MAX_BLOCK))
                index = self.take(order)
                word |= max(index, 0) << self.parent_at
            self.write(at, _WORD.pack(word) + part + bytes(padding(len(part))))
        return None if data and not blocks else (blocks, done)

    def free_all(self, blocks: Iterable[int]) -> None:
        """Free several blocks, one after the other."""
        for index in blocks:
            self.free(index)

    # --- names and strings ---

    def named(self, name: str) -> bytes | Text:
        """What ``name`` takes: the bytes of a new one, or one that is there.

        What has to be refused is, before anything is changed.
        """
        if self.version == 2:
            return self.shared(name, "a name")
        data = utf8(name, "a name")
        if len(data) > wire.MAX_NAME:
            raise refused(
                405,
                f"a name of {len(data)} bytes is too long for version {self.version}: at most "
                f"{wire.MAX_NAME}",
                "shorten it, or write version 2",
            )
        return data

    def shared(self, text: str, what: str) -> bytes | Text:
        """Likewise of a string that many may share."""
        found = self.strings.get(text) if type(text) is str else None
        if found is None:
            data = utf8(text, what)
            if len(data) > wire.MAX_STRING:
                raise refused(
                    405, f"{what} of {len(data)} bytes is too long: at most {wire.MAX_STRING}"
                )
            return data
        if found.count >= _MAX_REFERENCES:
            raise refused(
                404, f"{what} is in use {found.count} times already, the most that can be counted"
            )
        return found

    def take_name(self, given: bytes | Text, text: str) -> Text | None:
        """One more user of a name; None where there is no room for a new one."""
        if self.version == 2:
            return self.take_string(given, text)
        assert isinstance(given, bytes)  # noqa: S101 (names of old versions are not shared)
        order = order_of(len(given) + 8)
        index = self.take(order)
        if index == NONE:
            return None
        word = order | BlockType.NAME << self.type_at | len(given) << self.parent_at
        self.write(index << 4, _WORD.pack(word) + given + bytes(padding(len(given))))
        return Text(index, text, word, (), 0)

    def take_string(self, given: bytes | Text, text: str) -> Text | None:
        """One more user of a shared string; None where there is no room for a new one."""
        # What was there before the lock may be gone, and what was not may have come.
        found = self.strings.get(text)
        if found is None:
            return self.new_string(given if isinstance(given, bytes) else text.encode(), text)
        found.count += 1
        self.store(found.index << 4, found.word | found.count << 40)
        return found

    def new_string(self, data: bytes, text: str) -> Text | None:
        """A shared string with its first user; None where there is no room for it."""
        order = order_of(min(len(data) + 12, wire.MAX_BLOCK))
        index = self.take(order)
        if index == NONE:
            return None
        word = order | _STRING_REFERENCE << 8
        blocks: Sequence[int] = ()
        done = len(data)
        inline = data
        if done > wire.MAX_BLOCK - 12:
            inline = data[: wire.MAX_BLOCK - 12]
            chain = self.extents(data[len(inline) :])
            if chain is None:
                self.free(index)
                return None
            blocks, done = chain
            done += len(inline)
            word |= blocks[0] << 16
        self.write(
            index << 4, _HEAD(word | 1 << 40, done) + inline + bytes(padding(len(inline) + 12))
        )
        entry = self.strings[text] = Text(index, text, word, blocks, 1)
        return entry

    def release(self, text: Text) -> None:
        """One user less; what nobody uses is freed."""
        if text.count > 1:
            text.count -= 1
            self.store(text.index << 4, text.word | text.count << 40)
            return
        if text.count:
            del self.strings[text.text]
        self.free(text.index)
        self.free_all(text.extents)


def utf8(text: Any, what: str) -> bytes:
    """A text's bytes."""
    if not isinstance(text, str):
        raise refused(403, f"{what} must be a string, not {reprlib.repr(text)}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise refused(403, f"{what} cannot be encoded as UTF-8: {reprlib.repr(text)}") from None
