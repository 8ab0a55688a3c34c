"""The shared state of a VMO's values: heap, strings, lock and generation."""

from __future__ import annotations

import operator
import reprlib
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

import attrs

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.format import BlockType
from fx_inspect.write.heap import NONE, Growth, Heap, order_of
from fxframework.errors import WriteRefusedError, refusal
from fxframework.io.words import U64_MAX, padding, to_i64
from fxframework.kit.json_fields import bits_of, double_of
from fxframework.model.target import Memory

LEAST = -(1 << 63)
MOST = (1 << 63) - 1
"""Range of an int."""
_MAX_REFERENCES = wire.MAX_REFERENCES - 1
"""One less than fits, because a value may use one string twice."""
_STRING_REFERENCE = int(BlockType.STRING_REFERENCE)
_WORD = struct.Struct("<Q")
_HEAD = struct.Struct("<QI").pack


# --- Kinds of numbers -----------------------------------------------------------------------------


def int64(value: Any, what: str = "an int") -> int:
    """Return the value if an int can hold it. Raises WriteRefusedError otherwise."""
    return _integer(value, what, LEAST, MOST)


def uint64(value: Any, what: str = "a uint") -> int:
    """Return the value if a uint can hold it. Raises WriteRefusedError otherwise."""
    return _integer(value, what, 0, U64_MAX)


def _integer(value: Any, what: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise refusal(rules.WRONG_TYPE, f"{what} must be a whole number, not {reprlib.repr(value)}")
    number = value.__index__()
    if not least <= number <= most:
        raise refusal(rules.OUT_OF_RANGE, f"{what} of {number} is out of range: {least} to {most}")
    return int(number)


def double(value: Any, what: str = "a double") -> float:
    """Return the value as a float. Raises WriteRefusedError if a double cannot hold it."""
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise refusal(rules.WRONG_TYPE, f"{what} must be a number, not {reprlib.repr(value)}")
    try:
        return float(value)
    except OverflowError:
        raise refusal(
            rules.OUT_OF_RANGE, f"{what} of {value} is out of range of a double"
        ) from None


@attrs.frozen
class Kind:
    """A kind of numbers: how they are checked, stored and added. Integers saturate, as in Rust."""

    type: BlockType
    check: Callable[..., Any]
    word: Callable[[Any], int]
    value: Callable[[int], Any]
    sum: Callable[[Any, Any], Any]

    def add(self, state: State, at: int, by: Any) -> None:
        """Add to the number at byte ``at`` of the memory."""
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


# --- Strings and state ---------------------------------------------------------------------------


class Text:
    """A string or name in the memory, with its reference count."""

    __slots__ = ("count", "extents", "index", "text", "word")

    def __init__(
        self, index: int, text: str, word: int, extents: Sequence[int], count: int
    ) -> None:
        self.index = index
        self.text = text
        """The given text, of which a full VMO may hold less."""
        self.word = word
        """The block's header without the count."""
        self.extents = extents
        self.count = count
        """References; 0 for a NAME, which has one user and no count."""


class State:
    """The heap, the strings and the lock of one VMO. ``with state:`` is a locked period."""

    def __init__(self, memory: Memory, *, version: int, max_size: int, growth: Growth) -> None:
        self.memory = memory
        self.version = version
        self.heap = Heap(memory, version=version, max_size=max_size, growth=growth)
        self.lock = threading.Lock()
        self.generation = 0
        self.depth = 0
        """Number of open transactions."""
        self.words: memoryview | None = None
        """The memory as words, if it allows direct stores."""
        self.viewed = 0
        """Size of the heap when ``words`` was set."""
        self.view()
        self.store = memory.store_u64
        self.load = memory.load_u64
        self.write = memory.write
        self.take = self.heap.take
        self.free = self.heap.free
        head = wire.HEADS["v0" if version == 0 else "new"]
        self.type_at = head.type.low
        self.parent_at = head.first.low
        self.name_at = head.second.low
        self.parent_mask = head.first.mask
        self.strings: dict[str, Text] = {}
        """Shared strings (version 2), by text."""
        self.links: dict[str, Callable[[], Any]] = {}
        """Functions that return the trees of links, by content."""
        self.link_number = 0

    def view(self) -> None:
        """Update ``words``, which depends on the memory's size."""
        words = getattr(self.memory, "words", None)
        self.words = words if isinstance(words, memoryview) else None
        self.viewed = self.heap.size

    # --- periods ---

    def __enter__(self) -> None:
        self.lock.acquire()
        try:
            self.begin()
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
            # Otherwise the tree may be inconsistent, and the odd generation tells readers so.
        finally:
            self.lock.release()

    def begin(self) -> None:
        """Make the generation odd, unless it is. The caller holds the lock."""
        if not self.depth:
            self.store(8, self.generation + 1)
            self.generation += 1
        self.depth += 1

    def end(self) -> None:
        """Make the generation even at the end of the outermost period."""
        if self.depth == 1:
            generation = (self.generation + 1) & U64_MAX
            self.store(8, generation)
            self.generation = generation
            if self.viewed != self.heap.size:
                self.view()
        self.depth -= 1

    # --- blocks ---

    def extents(self, data: bytes) -> tuple[list[int], int] | None:
        """Write bytes to a chain of extents. Return the blocks, and the number of bytes that fit.

        None if there is no room at all.
        """
        blocks: list[int] = []
        bytes_done = 0
        order = order_of(min(len(data) + 8, wire.MAX_BLOCK))
        index = self.take(order) if data else NONE
        while index != NONE:
            blocks.append(index)
            extent_bytes = data[bytes_done : bytes_done + wire.ORDER_SIZE(order) - 8]
            bytes_done += len(extent_bytes)
            word = order | BlockType.EXTENT << self.type_at
            block_at = index * wire.UNIT
            index = NONE
            if bytes_done < len(data):
                order = order_of(min(len(data) - bytes_done + 8, wire.MAX_BLOCK))
                index = self.take(order)
                word |= max(index, 0) << self.parent_at
            self.write(
                block_at, _WORD.pack(word) + extent_bytes + bytes(padding(len(extent_bytes)))
            )
        return None if data and not blocks else (blocks, bytes_done)

    def free_all(self, blocks: Iterable[int]) -> None:
        """Free several blocks in order."""
        for index in blocks:
            self.free(index)

    # --- names and strings ---

    def named(self, name: str) -> bytes | Text:
        """Return the existing string of a name, or the bytes of a new one.

        Raises WriteRefusedError for an invalid name, before anything changes.
        """
        if self.version == 2:
            return self.shared(name, "a name")
        data = utf8(name, "a name")
        if len(data) > wire.MAX_NAME:
            raise refusal(
                rules.STRING_TOO_LONG,
                f"a name of {len(data)} bytes is too long for version {self.version}: at most "
                f"{wire.MAX_NAME}",
                "shorten it, or write version 2",
            )
        return data

    def shared(self, text: str, what: str) -> bytes | Text:
        """Return the existing shared string of a text, or the bytes of a new one."""
        shared_text = self.strings.get(text) if type(text) is str else None
        if shared_text is None:
            data = utf8(text, what)
            if len(data) > wire.MAX_STRING:
                raise refusal(
                    rules.STRING_TOO_LONG,
                    f"{what} of {len(data)} bytes is too long: at most {wire.MAX_STRING}",
                )
            return data
        if shared_text.count >= _MAX_REFERENCES:
            raise refusal(
                rules.OUT_OF_RANGE,
                f"{what} is in use {shared_text.count} times already, the most that can be counted",
            )
        return shared_text

    def take_name(self, given: bytes | Text, text: str) -> Text | None:
        """Add a user of a name. Return None without room for a new one."""
        if self.version == 2:
            return self.take_string(given, text)
        assert isinstance(given, bytes)  # noqa: S101 (names of old versions are not shared)
        order = order_of(len(given) + 8)
        index = self.take(order)
        if index == NONE:
            return None
        word = order | BlockType.NAME << self.type_at | len(given) << self.parent_at
        self.write(index * wire.UNIT, _WORD.pack(word) + given + bytes(padding(len(given))))
        return Text(index, text, word, (), 0)

    def take_string(self, given: bytes | Text, text: str) -> Text | None:
        """Add a user of a shared string. Return None without room for a new one."""
        # Look it up again, because it may have changed before the lock was taken.
        shared_text = self.strings.get(text)
        if shared_text is None:
            return self.new_string(given if isinstance(given, bytes) else text.encode(), text)
        shared_text.count += 1
        self.store(
            shared_text.index * wire.UNIT, shared_text.word | shared_text.count << self.name_at
        )
        return shared_text

    def new_string(self, data: bytes, text: str) -> Text | None:
        """Create a shared string with one user. Return None without room."""
        order = order_of(min(len(data) + 12, wire.MAX_BLOCK))
        index = self.take(order)
        if index == NONE:
            return None
        word = order | _STRING_REFERENCE << self.type_at
        blocks: Sequence[int] = ()
        stored_bytes = len(data)
        inline_bytes = data
        if stored_bytes > wire.MAX_BLOCK - 12:
            inline_bytes = data[: wire.MAX_BLOCK - 12]
            chain = self.extents(data[len(inline_bytes) :])
            if chain is None:
                self.free(index)
                return None
            blocks, stored_bytes = chain
            stored_bytes += len(inline_bytes)
            word |= blocks[0] << self.parent_at
        self.write(
            index * wire.UNIT,
            _HEAD(word | 1 << self.name_at, stored_bytes)
            + inline_bytes
            + bytes(padding(len(inline_bytes) + 12)),
        )
        shared_text = Text(index, text, word, blocks, 1)
        self.strings[text] = shared_text
        return shared_text

    def release(self, text: Text) -> None:
        """Remove a user of a string; free the string after its last user."""
        if text.count > 1:
            text.count -= 1
            self.store(text.index * wire.UNIT, text.word | text.count << self.name_at)
            return
        if text.count:
            del self.strings[text.text]
        self.free(text.index)
        self.free_all(text.extents)


def utf8(text: Any, what: str) -> bytes:
    """Return a text as UTF-8. Raises WriteRefusedError (WRONG_TYPE) if it cannot be encoded."""
    if not isinstance(text, str):
        raise refusal(rules.WRONG_TYPE, f"{what} must be a string, not {reprlib.repr(text)}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise refusal(
            rules.WRONG_TYPE, f"{what} cannot be encoded as UTF-8: {reprlib.repr(text)}"
        ) from None
