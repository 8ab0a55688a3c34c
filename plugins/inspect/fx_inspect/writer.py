"""Writer: the tree of a program as an Inspect VMO, changed one call at a time; and blocks as bytes.

``Inspector`` is what a program holds: its ``root`` has nodes and properties, which are made, set
and deleted. Everything is in the memory when the call returns, and whoever looks at the memory
meanwhile finds an odd generation. ``open_writer`` puts blocks that were read, or their JSON, back
into bytes.
"""

from __future__ import annotations

import struct
import sys
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, Generic, TypeVar

import attrs

from fx_inspect import layout as wire
from fx_inspect.heap import NONE, Growth, Heap, PlainMemory, order_of
from fx_inspect.layout import BlockType
from fx_inspect.records import InspectRecord, RecordEncoder
from fxframework.errors import WriteRefusedError
from fxframework.io.memory import BytesMemory
from fxframework.io.sink import Sink
from fxframework.io.words import U64_MAX, WORD, padding, to_i64
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.target import Memory

__all__ = [
    "STATS_NODE",
    "Array",
    "BoolProperty",
    "BytesProperty",
    "DoubleArray",
    "DoubleProperty",
    "ExponentialHistogram",
    "Inspector",
    "IntArray",
    "IntProperty",
    "Lazy",
    "LinearHistogram",
    "Node",
    "RecordRewriter",
    "Stats",
    "StringArray",
    "StringProperty",
    "Transaction",
    "UintArray",
    "UintProperty",
    "Value",
    "open_writer",
]

STATS_NODE = "fuchsia.inspect.Stats"
BUFFER = 1 << 20
"""Bytes gathered before they go to the sink."""
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_MAX_REFERENCES = wire.MAX_REFERENCES - 1
"""One less than fits: a value may use one string twice."""
_GENERATION = wire.GENERATION_AT >> 3
_DOUBLE = struct.Struct("<d")
_WORD = struct.Struct("<Q")
_HEAD = struct.Struct("<QI").pack
_NATIVE = sys.byteorder == "little"

T = TypeVar("T")
Number = TypeVar("Number", int, float)


def _refused(number: int, message: str, remedy: str = "") -> WriteRefusedError:
    return WriteRefusedError(message, code=f"FXI{number:04}", remedy=remedy)


# --- Kinds of numbers -----------------------------------------------------------------------------


def _int64(value: Any, what: str = "an int") -> int:
    return _integer(value, what, _LEAST, _MOST)


def _uint64(value: Any, what: str = "a uint") -> int:
    return _integer(value, what, 0, U64_MAX)


def _integer(value: Any, what: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise _refused(403, f"{what} is a whole number, not {value!r}")
    number = value.__index__()
    if not least <= number <= most:
        raise _refused(404, f"{what} is {number}; it has {least} to {most}")
    return int(number)


def _double(value: Any, what: str = "a double") -> float:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise _refused(403, f"{what} is a number, not {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise _refused(404, f"{what} is {value}, which no double can be") from None


def _double_word(value: float) -> int:
    return int(_WORD.unpack(_DOUBLE.pack(value))[0])


def _word_double(word: int) -> float:
    return float(_DOUBLE.unpack(_WORD.pack(word))[0])


def _to_word(value: int) -> int:
    return value & U64_MAX


def _same(value: int) -> int:
    return value


def _int_sum(left: int, right: int) -> int:
    return min(max(left + right, _LEAST), _MOST)


def _uint_sum(left: int, right: int) -> int:
    return min(max(left + right, 0), U64_MAX)


def _double_sum(left: float, right: float) -> float:
    return left + right


@attrs.frozen
class _Kind:
    """A kind of numbers: how one is checked, stored and added. Integers saturate, as in Rust."""

    name: str
    type: BlockType
    check: Callable[..., Any]
    word: Callable[[Any], int]
    value: Callable[[int], Any]
    sum: Callable[[Any, Any], Any]


_INT = _Kind("int", BlockType.INT_VALUE, _int64, _to_word, to_i64, _int_sum)
_UINT = _Kind("uint", BlockType.UINT_VALUE, _uint64, _same, _same, _uint_sum)
_FLOAT = _Kind(
    "double", BlockType.DOUBLE_VALUE, _double, _double_word, _word_double, _double_sum
)


# --- What all values of a VMO share --------------------------------------------------------------


class _Text:
    """A string or name in the memory, and who uses it."""

    __slots__ = ("count", "extents", "index", "text", "word")

    def __init__(self, index: int, text: str, word: int, extents: Sequence[int], count: int) -> None:
        self.index = index
        self.text = text
        """As it was given; a full VMO may have less of it."""
        self.word = word
        """The block's header, without the count."""
        self.extents = extents
        self.count = count
        """References; 0 of a NAME, which has one user and no count."""


class _State:
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
        self.view()
        self.store, self.load, self.write = memory.store_u64, memory.load_u64, memory.write
        self.take, self.free = self.heap.take, self.heap.free
        self.type_at, self.parent_at = (4, 8) if version == 0 else (8, 16)
        self.name_at = self.parent_at + (28 if version == 0 else 24)
        self.parent_mask = ((1 << self.name_at) - 1) & ~((1 << self.parent_at) - 1)
        self.strings: dict[str, _Text] = {}
        """Shared strings (version 2), by what they say."""
        self.links: dict[str, Lazy] = {}
        self.link_number = 0

    def view(self) -> None:
        """The memory as words, where it lets us store without asking."""
        words = getattr(self.memory, "words", None)
        self.words = words if isinstance(words, memoryview) else None

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
            # Else the tree may be torn: the period never ends, and readers are told so.
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
            self.view()
        self.depth -= 1

    # --- blocks ---

    def head(self, type: BlockType, order: int, parent: int, name: int) -> int:
        """The header of a value."""
        return order | type << self.type_at | parent << self.parent_at | name << self.name_at

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
        for index in blocks:
            self.free(index)

    # --- names and strings ---

    def named(self, name: str) -> bytes | _Text:
        """What ``name`` takes: the bytes of a new one, or one that is there. Refuses what it must,
        before anything is changed.
        """
        if self.version == 2:
            return self.shared(name, "a name")
        data = _utf8(name, "a name")
        if len(data) > wire.MAX_NAME:
            raise _refused(
                405,
                f"a name of {len(data)} bytes: in version {self.version} it has {wire.MAX_NAME}",
                "shorten it, or write version 2",
            )
        return data

    def shared(self, text: str, what: str) -> bytes | _Text:
        """Likewise of a string that many may share."""
        found = self.strings.get(text) if type(text) is str else None
        if found is None:
            data = _utf8(text, what)
            if len(data) > wire.MAX_STRING:
                raise _refused(405, f"{what} of {len(data)} bytes: it has {wire.MAX_STRING}")
            return data
        if found.count >= _MAX_REFERENCES:
            raise _refused(406, f"{what} has {found.count} users already, all that can be counted")
        return found

    def take_name(self, given: bytes | _Text, text: str) -> _Text | None:
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
        return _Text(index, text, word, (), 0)

    def take_string(self, given: bytes | _Text, text: str) -> _Text | None:
        """One more user of a shared string; None where there is no room for a new one."""
        if isinstance(given, bytes):
            # A value whose name is its own text has made it meanwhile.
            found = self.strings.get(text)
            if found is None:
                return self.new_string(given, text)
            given = found
        given.count += 1
        self.store(given.index << 4, given.word | given.count << 40)
        return given

    def new_string(self, data: bytes, text: str) -> _Text | None:
        order = order_of(min(len(data) + 12, wire.MAX_BLOCK))
        index = self.take(order)
        if index == NONE:
            return None
        word = order | BlockType.STRING_REFERENCE << self.type_at
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
        entry = self.strings[text] = _Text(index, text, word, blocks, 1)
        return entry

    def release(self, text: _Text) -> None:
        """One user less; what nobody uses is freed."""
        if text.count > 1:
            text.count -= 1
            self.store(text.index << 4, text.word | text.count << 40)
            return
        if text.count:
            del self.strings[text.text]
        self.free(text.index)
        self.free_all(text.extents)

    # --- values ---

    def new_value(
        self, value: Value, parent: Node, name: str, given: bytes | _Text, order: int
    ) -> int:
        """A block for a value, its name, and its place in the parent; the index, or -1."""
        index = self.take(order)
        if index == NONE:
            return NONE
        text = self.take_name(given, name)
        if text is None:
            self.free(index)
            return NONE
        if parent._at:
            parent._count += 1
            self.store(parent._at + 8, parent._count)
        value._text = text
        value._at = index << 4
        value._parent = parent
        return index

    def delete_value(self, value: Value) -> None:
        """Free a value's block and name; a node with children becomes a tombstone."""
        self.leave(value._parent)
        assert value._text is not None  # noqa: S101 (what is in the memory has a name)
        self.release(value._text)
        value._text = None
        at = value._at
        if isinstance(value, Node) and value._count:
            value._tombstone = True
            order = self.load(at) & 0xF
            self.store(at, order | BlockType.TOMBSTONE << self.type_at)
        else:
            value._at = 0
            self.free(at >> 4)

    def leave(self, parent: Node) -> None:
        """A parent has one child less; a tombstone without any is freed."""
        if not parent._at:
            return
        parent._count -= 1
        if parent._count or not parent._tombstone:
            self.store(parent._at + 8, parent._count)
        else:
            at, parent._at = parent._at, 0
            self.free(at >> 4)


def _utf8(text: Any, what: str) -> bytes:
    if not isinstance(text, str):
        raise _refused(403, f"{what} is a text, not {text!r}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _refused(403, f"{what} is {text!r}, which has no UTF-8") from None


# --- Values --------------------------------------------------------------------------------------


class Value:
    """A node, property or link in the tree.

    One that a full VMO has no room for, and one that was deleted, ignores what is done to it.
    """

    __slots__ = ("_at", "_parent", "_state", "_text")

    def __init__(self, state: _State, parent: Node | None = None) -> None:
        self._state = state
        self._at = 0
        """Byte of its block; 0 where it has none, as the root."""
        self._text: _Text | None = None
        # The root is its own parent.
        self._parent: Node = self if parent is None else parent  # type: ignore[assignment]

    def __repr__(self) -> str:
        where = f"block {self._at >> 4}" if self.exists else "not in the VMO"
        return f"<{type(self).__name__} {self.name!r}: {where}>"

    @property
    def name(self) -> str:
        """Its name, as it was given; the empty string once it is not there any more."""
        return "" if self._text is None else self._text.text

    @property
    def block(self) -> int | None:
        """The index of its block; None where it has none."""
        return self._at >> 4 if self._at else None

    @property
    def exists(self) -> bool:
        """Whether it is in the VMO: there was room, and it was not deleted."""
        return self._text is not None

    def delete(self) -> None:
        """Take it out of the tree. A node's children are not seen any more, until they go too."""
        state = self._state
        if self._text is not None:
            with state:
                if self._text is not None:
                    self._release()
                    state.delete_value(self)

    def reparent(self, parent: Node) -> None:
        """Make it a child of another node of the same VMO.

        Raises WriteRefusedError (FXI0411) for a node that it would then be a part of, and for one
        of another VMO.
        """
        state = self._state
        if parent._state is not state:
            raise _refused(411, "a value cannot go to a node of another VMO")
        if self._text is None or not (parent._at or parent is parent._parent):
            return
        with state:
            above = parent
            while above is not above._parent:
                if above is self:
                    raise _refused(411, f"{self.name!r} cannot be a part of itself")
                above = above._parent
            old = self._parent
            if parent._at:
                parent._count += 1
                state.store(parent._at + 8, parent._count)
            word = state.load(self._at) & ~state.parent_mask
            state.store(self._at, word | (parent._at >> 4) << state.parent_at)
            self._parent = parent
            state.leave(old)

    def _release(self) -> None:
        """Free what it has beside its block and its name. Within a locked period."""

    def _enter(
        self, name: str, type: BlockType, payload: int, order: int = 0, rest: bytes = b""
    ) -> None:
        """Write its block: header, payload, and what follows. Within no period yet."""
        state = self._state
        parent = self._parent
        given = state.named(name)
        with state:
            if not (parent._at or parent is parent._parent):
                return
            index = state.new_value(self, parent, name, given, order)
            if index == NONE:
                return
            assert self._text is not None  # noqa: S101 (it was given just now)
            word = state.head(type, order, parent._at >> 4, self._text.index)
            state.store(self._at, word)
            state.store(self._at + 8, payload)
            if rest:
                state.write(self._at + 16, rest)
            self._entered(state)

    def _entered(self, state: _State) -> None:
        """Write what else it has. Within the period in which its block was written."""


class _NumberProperty(Value, Generic[Number]):
    """A number."""

    __slots__ = ()
    _kind: ClassVar[_Kind]

    def add(self, value: Number) -> None:
        """Add to it; an integer stops at its greatest or least."""
        self._change(self._kind.check(value))

    def subtract(self, value: Number) -> None:
        """Subtract from it; an integer stops at its greatest or least."""
        self._change(-self._kind.check(value))

    def _change(self, by: Number) -> None:
        kind, state = self._kind, self._state
        if self._text is None:
            return
        with state:
            at = self._at + 8
            if self._text is not None:
                state.store(at, kind.word(kind.sum(kind.value(state.load(at)), by)))

    def _set(self, word: int) -> None:
        """Store the word, in one period."""
        state = self._state
        with state.lock:
            if self._text is None:
                return
            at = self._at + 8
            words = state.words
            if words is None or state.depth:
                state.begin()
                state.store(at, word)
                state.end()
            else:
                words[_GENERATION] = state.generation + 1
                words[at >> 3] = word
                generation = (state.generation + 2) & U64_MAX
                words[_GENERATION] = state.generation = generation


class IntProperty(_NumberProperty[int]):
    """An integer from -2^63 to 2^63-1."""

    __slots__ = ()
    _kind = _INT

    def set(self, value: int) -> None:
        """Set it."""
        if type(value) is not int or not _LEAST <= value <= _MOST:
            value = _int64(value)
        # What ``_set`` does, without the call: this is what programs do most.
        state = self._state
        with state.lock:
            words = state.words
            if self._text is None or words is None or state.depth:
                pass
            else:
                generation = state.generation
                words[1] = generation + 1
                words[(self._at >> 3) + 1] = value & U64_MAX
                words[1] = state.generation = (generation + 2) & U64_MAX
                return
        self._set(value & U64_MAX)


class UintProperty(_NumberProperty[int]):
    """An integer from 0 to 2^64-1."""

    __slots__ = ()
    _kind = _UINT

    def set(self, value: int) -> None:
        """Set it."""
        if type(value) is not int or not 0 <= value <= U64_MAX:
            value = _uint64(value)
        self._set(value)


class DoubleProperty(_NumberProperty[float]):
    """A double."""

    __slots__ = ()
    _kind = _FLOAT

    def set(self, value: float) -> None:
        """Set it."""
        self._set(_double_word(_double(value)))


class BoolProperty(_NumberProperty[int]):
    """True or false. Version 0 has none."""

    __slots__ = ()

    def set(self, value: bool) -> None:
        """Set it."""
        self._set(_bool(value))


def _bool(value: Any) -> int:
    # Also numpy's; what only counts as true is more often a mistake.
    if type(value).__name__ not in {"bool", "bool_"}:
        raise _refused(403, f"a bool is True or False, not {value!r}")
    return int(bool(value))
