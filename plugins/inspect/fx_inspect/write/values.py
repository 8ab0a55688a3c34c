"""Values: their common base, numbers, bools, strings and bytes, and links to other VMOs."""

# ruff: noqa: SLF001 (values access their parents' blocks)

from __future__ import annotations

import reprlib
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.format import BlockType
from fx_inspect.write.heap import NONE
from fx_inspect.write.state import (
    DOUBLE,
    INT,
    LEAST,
    MOST,
    UINT,
    Kind,
    State,
    Text,
    double,
    int64,
    uint64,
    utf8,
)
from fxframework.errors import refusal
from fxframework.io.words import U64_MAX, WORD
from fxframework.kit.json_fields import bits_of
from fxframework.model.target import Memory

GENERATION = wire.GENERATION_AT // WORD
"""Index of the generation's word."""

Number = TypeVar("Number", int, float)


class Value:
    """A node, property or link in the tree.

    Operations on a value without room in a full VMO, and on a deleted one, are ignored.
    """

    __slots__ = ("_at", "_parent", "_state", "_text")

    def __init__(self, state: State, parent: Container | None = None) -> None:
        self._state = state
        self._at = 0
        """Byte offset of the block; 0 without a block, as for the root."""
        self._text: Text | None = None
        # The root is its own parent.
        self._parent: Container = self if parent is None else parent  # type: ignore[assignment]

    def __repr__(self) -> str:
        where = f"block {self._at // wire.UNIT}" if self.exists else "not in the VMO"
        return f"<{type(self).__name__} {reprlib.repr(self.name)}: {where}>"

    @property
    def name(self) -> str:
        """The name; the empty string once it is deleted."""
        return "" if self._text is None else self._text.text

    @property
    def block(self) -> int | None:
        """Index of the block, or None."""
        return self._at // wire.UNIT if self._at else None

    @property
    def exists(self) -> bool:
        """Whether it is in the VMO: there was room for it, and it was not deleted."""
        return self._text is not None

    def delete(self) -> None:
        """Delete it from the tree.

        The children of a node become invisible, until they are deleted too.
        """
        self._within(self._deleted)

    def reparent(self, parent: Container) -> None:
        """Move this value to another node of the same VMO; without effect if either is deleted.

        Raises WriteRefusedError (INVALID_MOVE) if the value is the root, or the node is below the
        value or in another VMO.
        """
        state = self._state
        if parent._state is not state:
            raise refusal(rules.INVALID_MOVE, "a value cannot be moved to a node of another VMO")
        if self is self._parent:
            raise refusal(rules.INVALID_MOVE, "the root cannot be moved")
        if self._text is None or not (parent._at or parent is parent._parent):
            return
        with state:
            node_above = parent
            while node_above is not node_above._parent:
                if node_above is self:
                    raise refusal(
                        rules.INVALID_MOVE,
                        f"{reprlib.repr(self.name)} cannot be moved below itself",
                    )
                node_above = node_above._parent
            old_parent = self._parent
            if parent._at:
                parent._count += 1
                state.store(parent._at + 8, parent._count)
            word = state.load(self._at) & ~state.parent_mask
            state.store(self._at, word | parent._at // wire.UNIT << state.parent_at)
            self._parent = parent
            old_parent._child_left()

    def _within(self, change: Callable[[], object]) -> None:
        """Run a change in one period, if the value is in the tree."""
        if self._text is not None:
            with self._state:
                if self._text is not None:
                    change()

    # --- called within a locked period ---

    def _deleted(self) -> None:
        """Free everything."""
        self._release()
        self._remove()

    def _entered(self) -> None:
        """Write further blocks, after the value's own block."""

    def _release(self) -> None:
        """Free everything except block and name."""

    def _remove(self) -> None:
        """Free block and name."""
        state = self._state
        self._parent._child_left()
        assert self._text is not None  # noqa: S101 (values in the tree have a name)
        state.release(self._text)
        self._text = None
        block_at = self._at
        self._at = 0
        state.free(block_at // wire.UNIT)

    # --- called outside of a period ---

    def _enter(
        self, name: str, type: BlockType, payload: int, order: int = 0, rest: bytes = b""
    ) -> None:
        """Write the block: header, payload, and ``rest``. Takes a period of its own."""
        state = self._state
        parent = self._parent
        encoded_name = state.named(name)
        with state:
            if not (parent._at or parent is parent._parent):
                return
            index = state.take(order)
            if index == NONE:
                return
            text = state.take_name(encoded_name, name)
            if text is None:
                state.free(index)
                return
            if parent._at:
                parent._count += 1
                state.store(parent._at + 8, parent._count)
            self._text = text
            self._at = block_at = index * wire.UNIT
            state.store(
                block_at,
                order
                | type << state.type_at
                | parent._at // wire.UNIT << state.parent_at
                | text.index << state.name_at,
            )
            state.store(block_at + 8, payload)
            if rest:
                state.write(block_at + 16, rest)
            self._entered()


class Container(Value):
    """A value that can be the parent of other values."""

    __slots__ = ("_count", "_tombstone")

    def __init__(self, state: State, parent: Container | None = None) -> None:
        super().__init__(state, parent)
        self._count = 0
        """Number of children."""
        self._tombstone = False

    def _child_left(self) -> None:
        """Decrement the number of children. A tombstone without children is freed."""
        if not self._at:
            return
        state = self._state
        self._count -= 1
        if self._count or not self._tombstone:
            state.store(self._at + 8, self._count)
        else:
            block_at = self._at
            self._at = 0
            state.free(block_at // wire.UNIT)

    def _remove(self) -> None:
        """Free block and name; with children the block becomes a tombstone instead."""
        if not self._count:
            super()._remove()
            return
        state = self._state
        self._parent._child_left()
        assert self._text is not None  # noqa: S101 (values in the tree have a name)
        state.release(self._text)
        self._text = None
        self._tombstone = True
        order = wire.ORDER.get(state.load(self._at))
        state.store(self._at, order | BlockType.TOMBSTONE << state.type_at)


class _Scalar(Value):
    """A value of one word."""

    __slots__ = ()

    def _set(self, word: int) -> None:
        """Store the word in one period."""
        state = self._state
        with state.lock:
            if self._text is None:
                return
            word_at = self._at + 8
            words = state.words
            if words is None or state.depth:
                state.begin()
                state.store(word_at, word)
                state.end()
            else:
                # What ``begin``, ``store`` and ``end`` do, without three calls.
                words[GENERATION] = state.generation + 1
                words[word_at // WORD] = word
                generation = (state.generation + 2) & U64_MAX
                words[GENERATION] = state.generation = generation


class _NumberProperty(_Scalar, Generic[Number]):
    """A number."""

    __slots__ = ()
    _kind: ClassVar[Kind]

    def add(self, value: Number) -> None:
        """Add to the value; integers saturate."""
        self._change(self._kind.check(value))

    def subtract(self, value: Number) -> None:
        """Subtract from the value; integers saturate."""
        self._change(-self._kind.check(value))

    def _change(self, by: Number) -> None:
        self._within(lambda: self._kind.add(self._state, self._at + 8, by))


class IntProperty(_NumberProperty[int]):
    """An integer from -2^63 to 2^63-1."""

    __slots__ = ()
    _kind = INT

    def set(self, value: int) -> None:
        """Set the value."""
        if type(value) is not int or not LEAST <= value <= MOST:
            value = int64(value)
        self._set(value & U64_MAX)


class UintProperty(_NumberProperty[int]):
    """An integer from 0 to 2^64-1."""

    __slots__ = ()
    _kind = UINT

    def set(self, value: int) -> None:
        """Set the value."""
        if type(value) is not int or not 0 <= value <= U64_MAX:
            value = uint64(value)
        self._set(value)


class DoubleProperty(_NumberProperty[float]):
    """A double."""

    __slots__ = ()
    _kind = DOUBLE

    def set(self, value: float) -> None:
        """Set the value."""
        self._set(bits_of(double(value)))


class BoolProperty(_Scalar):
    """A bool. Version 0 has none."""

    __slots__ = ()

    def set(self, value: bool) -> None:
        """Set the value."""
        self._set(bool_word(value))


def bool_word(value: Any) -> int:
    """Return 0 or 1 for a bool of Python or numpy; other types are refused (WRONG_TYPE)."""
    if type(value).__name__ not in {"bool", "bool_"}:
        raise refusal(rules.WRONG_TYPE, f"a bool must be True or False, not {reprlib.repr(value)}")
    return int(bool(value))


class _Buffer(Value):
    """A value in a chain of extents."""

    __slots__ = ("_extents",)
    _format: ClassVar[int]

    def __init__(self, state: State, parent: Container) -> None:
        super().__init__(state, parent)
        self._extents: list[int] = []

    def _store(self, data: bytes) -> None:
        """Write the bytes, as many as fit. Called within a period."""
        state = self._state
        state.free_all(self._extents)
        blocks, stored_bytes = state.extents(data) or ([], 0)
        self._extents = blocks
        first_extent = blocks[0] if blocks else 0
        state.store(
            self._at + 8,
            stored_bytes
            | wire.BUFFER_EXTENT.put(first_extent)
            | wire.BUFFER_FORMAT.put(self._format),
        )

    def _release(self) -> None:
        self._state.free_all(self._extents)
        self._extents = []


class BytesProperty(_Buffer):
    """Bytes. A full VMO holds as many of them as fit."""

    __slots__ = ("_data",)
    _format = wire.BUFFER_BYTES

    def __init__(self, state: State, parent: Container, data: bytes) -> None:
        super().__init__(state, parent)
        self._data = data

    def set(self, value: bytes | bytearray | memoryview) -> None:
        """Set the value."""
        data = checked_bytes(value)
        self._within(lambda: self._store(data))

    def _entered(self) -> None:
        data = self._data
        self._data = b""
        if data:
            self._store(data)


def checked_bytes(value: Any) -> bytes:
    """Return the bytes of a bytes-like value.

    Raises WriteRefusedError: WRONG_TYPE for another type, STRING_TOO_LONG for too many bytes.
    """
    if not isinstance(value, bytes | bytearray | memoryview):
        raise refusal(rules.WRONG_TYPE, f"expected bytes, not {reprlib.repr(value)}")
    data = bytes(value)
    if len(data) > wire.MAX_STRING:
        raise refusal(
            rules.STRING_TOO_LONG,
            f"{len(data)} bytes are too many: a value holds at most {wire.MAX_STRING}",
        )
    return data


class StringProperty(_Buffer):
    """A text: a shared string (version 2), or extents (before).

    A full VMO holds as much of it as fits; without any room the value does not change.
    """

    __slots__ = ("_new", "_value")
    _format = wire.BUFFER_UTF8

    def __init__(self, state: State, parent: Container, text: str) -> None:
        super().__init__(state, parent)
        self._value: Text | None = None
        self._new: tuple[bytes | Text, str] | None = (self._given(text), text)

    def set(self, value: str) -> None:
        """Set the value."""
        encoded_text = self._given(value)
        self._within(lambda: self._put(encoded_text, value))

    def _given(self, text: str) -> bytes | Text:
        if self._state.version == 2:
            return self._state.shared(text, "a string")
        return checked_bytes(utf8(text, "a string"))

    def _put(self, encoded_text: bytes | Text, text: str) -> bool:
        state = self._state
        if state.version != 2:
            assert isinstance(encoded_text, bytes)  # noqa: S101 (strings of old versions are not shared)
            self._store(encoded_text)
            return True
        shared_text = state.take_string(encoded_text, text)
        if shared_text is None:
            return False
        old_text = self._value
        self._value = shared_text
        state.store(
            self._at + 8,
            wire.BUFFER_EXTENT.put(shared_text.index)
            | wire.BUFFER_FORMAT.put(wire.BUFFER_STRING_REFERENCE),
        )
        if old_text is not None:
            state.release(old_text)
        return True

    def _entered(self) -> None:
        assert self._new is not None  # noqa: S101 (it is entered once)
        (encoded_text, text) = self._new
        self._new = None
        if not self._put(encoded_text, text):
            self._remove()

    def _release(self) -> None:
        super()._release()
        if self._value is not None:
            self._state.release(self._value)
            self._value = None


class LinkedTree(Protocol):
    """A tree that a link refers to, such as an ``Inspector``."""

    memory: Memory

    def copy(self) -> bytes | None:
        """Return the VMO; None while a transaction is open."""


class Lazy(Value):
    """A link to a separate tree, which ``Inspector.trees`` requests when it is read."""

    __slots__ = ("_content", "_new", "callback")

    def __init__(
        self, state: State, parent: Container, callback: Callable[[], LinkedTree], content: str
    ) -> None:
        super().__init__(state, parent)
        self.callback = callback
        """Returns the tree."""
        self._content: Text | None = None
        self._new = (state.named(content), content)

    @property
    def content(self) -> str:
        """The content of the link; the empty string once it is deleted."""
        return "" if self._content is None else self._content.text

    def _make(self, name: str, disposition: int) -> None:
        self._enter(name, BlockType.LINK_VALUE, wire.LINK_DISPOSITION.put(disposition))

    def _entered(self) -> None:
        state = self._state
        content_name = state.take_name(*self._new)
        if content_name is None:
            self._remove()
            return
        if content_name.index > wire.MAX_LINK_INDEX:
            state.release(content_name)
            self._remove()
            raise refusal(
                rules.INDEX_OUT_OF_RANGE,
                f"a link cannot refer to block {content_name.index}: at most {wire.MAX_LINK_INDEX}",
                "make links before the VMO grows over 16 MiB",
            )
        self._content = content_name
        state.store(self._at + 8, state.load(self._at + 8) | content_name.index)
        state.links[content_name.text] = self.callback

    def _deleted(self) -> None:
        if self._content is not None:
            self._remove()
            content = self._content
            self._content = None
            self._state.links.pop(content.text, None)
            self._state.release(content)
