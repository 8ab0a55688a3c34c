"""Values: the nodes, properties, arrays, histograms and links that a program makes and changes."""

# ruff: noqa: SLF001 (values know their parents, and what is in their parents' blocks)

from __future__ import annotations

import itertools
import reprlib
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from fx_inspect import layout as wire
from fx_inspect.layout import BlockType
from fx_inspect.write.heap import NONE, order_of
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
    double_word,
    int64,
    refused,
    uint64,
    utf8,
)
from fxframework.io.words import U64_MAX, WORD, padding

if TYPE_CHECKING:
    from fx_inspect.write.writer import Inspector

__all__ = [
    "Array",
    "BoolProperty",
    "BytesProperty",
    "DoubleArray",
    "DoubleProperty",
    "ExponentialHistogram",
    "Histogram",
    "IntArray",
    "IntProperty",
    "Lazy",
    "LinearHistogram",
    "Node",
    "NumberArray",
    "StringArray",
    "StringProperty",
    "UintArray",
    "UintProperty",
    "Value",
]

GENERATION = wire.GENERATION_AT >> 3
"""The word of the generation."""
_INT_VALUE = BlockType.INT_VALUE
_MOST_NUMBERS = (wire.MAX_BLOCK - wire.SLOTS_AT) // 8
"""Slots of the largest array of numbers."""

T = TypeVar("T")
Number = TypeVar("Number", int, float)


# --- Values --------------------------------------------------------------------------------------


class Value:
    """A node, property or link in the tree.

    One that a full VMO has no room for, and one that was deleted, ignores what is done to it.
    """

    __slots__ = ("_at", "_parent", "_state", "_text")

    def __init__(self, state: State, parent: Node | None = None) -> None:
        self._state = state
        self._at = 0
        """Byte of its block; 0 where it has none, as the root."""
        self._text: Text | None = None
        # The root is its own parent.
        self._parent: Node = self if parent is None else parent  # type: ignore[assignment]

    def __repr__(self) -> str:
        where = f"block {self._at >> 4}" if self.exists else "not in the VMO"
        return f"<{type(self).__name__} {reprlib.repr(self.name)}: {where}>"

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
                    self._remove()

    def reparent(self, parent: Node) -> None:
        """Make it a child of another node of the same VMO.

        Raises WriteRefusedError (FXI0412) for a node that it would then be a part of, for one of
        another VMO, and of the root.
        """
        state = self._state
        if parent._state is not state:
            raise refused(412, "a value cannot go to a node of another VMO")
        if self is self._parent:
            raise refused(412, "the root stays where it is")
        if self._text is None or not (parent._at or parent is parent._parent):
            return
        with state:
            above = parent
            while above is not above._parent:
                if above is self:
                    raise refused(412, f"{reprlib.repr(self.name)} cannot be a part of itself")
                above = above._parent
            old = self._parent
            if parent._at:
                parent._count += 1
                state.store(parent._at + 8, parent._count)
            word = state.load(self._at) & ~state.parent_mask
            state.store(self._at, word | (parent._at >> 4) << state.parent_at)
            self._parent = parent
            old._left()

    # --- within a locked period ---

    def _entered(self) -> None:
        """Write what it has beside its block, which was written just now."""

    def _release(self) -> None:
        """Free what it has beside its block and its name."""

    def _remove(self) -> None:
        """Free its block and its name."""
        state = self._state
        self._parent._left()
        assert self._text is not None  # noqa: S101 (what is in the tree has a name)
        state.release(self._text)
        self._text = None
        at, self._at = self._at, 0
        state.free(at >> 4)

    # --- before one ---

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
            index = state.take(order)
            if index == NONE:
                return
            text = state.take_name(given, name)
            if text is None:
                state.free(index)
                return
            if parent._at:
                parent._count += 1
                state.store(parent._at + 8, parent._count)
            self._text = text
            self._at = at = index << 4
            state.store(
                at,
                order
                | type << state.type_at
                | parent._at >> 4 << state.parent_at
                | text.index << state.name_at,
            )
            state.store(at + 8, payload)
            if rest:
                state.write(at + 16, rest)
            self._entered()


class _Scalar(Value):
    """A value of one word."""

    __slots__ = ()

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
                words[GENERATION] = state.generation + 1
                words[at >> 3] = word
                generation = (state.generation + 2) & U64_MAX
                words[GENERATION] = state.generation = generation


class _NumberProperty(_Scalar, Generic[Number]):
    """A number."""

    __slots__ = ()
    _kind: ClassVar[Kind]

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


class IntProperty(_NumberProperty[int]):
    """An integer from -2^63 to 2^63-1."""

    __slots__ = ()
    _kind = INT

    def set(self, value: int) -> None:
        """Set it."""
        if type(value) is not int or not LEAST <= value <= MOST:
            value = int64(value)
        state = self._state
        # What ``_set`` does, without the call: this is what programs do most.
        with state.lock:
            words = state.words
            if words is not None and not state.depth and self._text is not None:
                generation = state.generation
                words[1] = generation + 1
                words[(self._at >> 3) + 1] = value & U64_MAX
                words[1] = state.generation = (generation + 2) & U64_MAX
                return
        self._set(value & U64_MAX)


class UintProperty(_NumberProperty[int]):
    """An integer from 0 to 2^64-1."""

    __slots__ = ()
    _kind = UINT

    def set(self, value: int) -> None:
        """Set it."""
        if type(value) is not int or not 0 <= value <= U64_MAX:
            value = uint64(value)
        self._set(value)


class DoubleProperty(_NumberProperty[float]):
    """A double."""

    __slots__ = ()
    _kind = DOUBLE

    def set(self, value: float) -> None:
        """Set it."""
        self._set(double_word(double(value)))


class BoolProperty(_Scalar):
    """True or false. Version 0 has none."""

    __slots__ = ()

    def set(self, value: bool) -> None:
        """Set it."""
        self._set(_bool(value))


def _bool(value: Any) -> int:
    # Numpy's too; of what only counts as true or false, most is a mistake.
    if type(value).__name__ not in {"bool", "bool_"}:
        raise refused(403, f"a bool is True or False, not {reprlib.repr(value)}")
    return int(bool(value))


class _Buffer(Value):
    """A value in a chain of extents."""

    __slots__ = ("_extents",)
    _format: ClassVar[int]

    def __init__(self, state: State, parent: Node) -> None:
        super().__init__(state, parent)
        self._extents: list[int] = []

    def _store(self, data: bytes) -> None:
        """Write the bytes, as many as there is room for. Within a period."""
        state = self._state
        state.free_all(self._extents)
        blocks, done = state.extents(data) or ([], 0)
        self._extents = blocks
        first = blocks[0] if blocks else 0
        state.store(self._at + 8, done | first << 32 | self._format << 60)

    def _release(self) -> None:
        self._state.free_all(self._extents)
        self._extents = []


class BytesProperty(_Buffer):
    """Bytes. A full VMO has as many of them as there is room for."""

    __slots__ = ("_data",)
    _format = wire.BUFFER_BYTES

    def __init__(self, state: State, parent: Node, data: bytes) -> None:
        super().__init__(state, parent)
        self._data = data

    def set(self, value: bytes | bytearray | memoryview) -> None:
        """Set it."""
        data = _bytes(value)
        if self._text is not None:
            with self._state:
                if self._text is not None:
                    self._store(data)

    def _entered(self) -> None:
        data, self._data = self._data, b""
        if data:
            self._store(data)


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise refused(403, f"bytes are bytes, not {reprlib.repr(value)}")
    data = bytes(value)
    if len(data) > wire.MAX_STRING:
        raise refused(405, f"{len(data)} bytes: a value has {wire.MAX_STRING}")
    return data


class StringProperty(_Buffer):
    """A text: one that many may share (version 2), or in extents (before).

    A full VMO has as much of it as there is room for; one that it has no room for at all leaves the
    value as it was.
    """

    __slots__ = ("_new", "_value")
    _format = wire.BUFFER_UTF8

    def __init__(self, state: State, parent: Node, text: str) -> None:
        super().__init__(state, parent)
        self._value: Text | None = None
        self._new: tuple[bytes | Text, str] | None = (self._given(text), text)

    def set(self, value: str) -> None:
        """Set it."""
        state = self._state
        given = self._given(value)
        if self._text is not None:
            with state:
                if self._text is not None:
                    self._put(given, value)

    def _given(self, text: str) -> bytes | Text:
        if self._state.version == 2:
            return self._state.shared(text, "a string")
        return _bytes(utf8(text, "a string"))

    def _put(self, given: bytes | Text, text: str) -> bool:
        state = self._state
        if state.version != 2:
            assert isinstance(given, bytes)  # noqa: S101 (strings of old versions are not shared)
            self._store(given)
            return True
        taken = state.take_string(given, text)
        if taken is None:
            return False
        old, self._value = self._value, taken
        state.store(self._at + 8, taken.index << 32 | wire.BUFFER_STRING_REFERENCE << 60)
        if old is not None:
            state.release(old)
        return True

    def _entered(self) -> None:
        assert self._new is not None  # noqa: S101 (it is entered once)
        (given, text), self._new = self._new, None
        if not self._put(given, text):
            self._remove()

    def _release(self) -> None:
        super()._release()
        if self._value is not None:
            self._state.release(self._value)
            self._value = None


# --- Arrays --------------------------------------------------------------------------------------


class Array(Value, Generic[T]):
    """Values of one kind in slots, whose number is that of the beginning.

    A slot that is not there ignores what is done to it.
    """

    __slots__ = ("_slots",)

    def __init__(self, state: State, parent: Node, slots: int) -> None:
        super().__init__(state, parent)
        self._slots = slots

    def __len__(self) -> int:
        return self._slots

    def set(self, index: int, value: T) -> None:
        """Set a slot."""
        raise NotImplementedError

    def clear(self) -> None:
        """Set all slots to zero, or to the empty string."""
        raise NotImplementedError


def _slots_of(given: int | Iterable[Any], most: int) -> tuple[int, list[Any]]:
    """How many slots an array has, and what is in them."""
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        values = list(given)
        count = len(values)
    else:
        values = []
        count = uint64(given, "a number of slots")
    if count > most:
        raise refused(406, f"an array of {count} slots: it has {most}", "make several of it")
    return count, values


class NumberArray(Array[Number]):
    """An array of numbers."""

    __slots__ = ("_format",)
    _kind: ClassVar[Kind]

    def __init__(
        self, state: State, parent: Node, slots: int, array_format: int = wire.ARRAY_FLAT
    ) -> None:
        super().__init__(state, parent, slots)
        self._format = array_format

    def set(self, index: int, value: Number) -> None:
        """Set a slot."""
        self._put(uint64(index, "a slot"), self._kind.word(self._kind.check(value)))

    def add(self, index: int, value: Number) -> None:
        """Add to a slot; an integer stops at its greatest or least."""
        self._change(uint64(index, "a slot"), self._kind.check(value))

    def subtract(self, index: int, value: Number) -> None:
        """Subtract from a slot; an integer stops at its greatest or least."""
        self._change(uint64(index, "a slot"), -self._kind.check(value))

    def clear(self) -> None:
        """Set all slots to zero."""
        self._clear(0)

    def _make(self, name: str, values: Iterable[Number]) -> None:
        words = [self._kind.word(self._kind.check(value)) for value in values]
        words += [0] * (self._slots - len(words))
        order = order_of(8 * self._slots + wire.SLOTS_AT)
        payload = self._kind.type | self._format << 4 | self._slots << 8
        rest = struct.pack(f"<{len(words)}Q", *words)
        self._enter(name, BlockType.ARRAY_VALUE, payload, order, rest)

    def _put(self, slot: int, word: int) -> None:
        state = self._state
        if self._text is not None and slot < self._slots:
            with state:
                if self._text is not None:
                    state.store(self._at + wire.SLOTS_AT + 8 * slot, word)

    def _change(self, slot: int, by: Number) -> None:
        kind, state = self._kind, self._state
        if self._text is not None and slot < self._slots:
            with state:
                if self._text is not None:
                    at = self._at + wire.SLOTS_AT + 8 * slot
                    state.store(at, kind.word(kind.sum(kind.value(state.load(at)), by)))

    def _clear(self, first: int) -> None:
        state = self._state
        if self._text is not None:
            with state:
                if self._text is not None:
                    zeros = bytes(8 * (self._slots - first))
                    state.write(self._at + wire.SLOTS_AT + 8 * first, zeros)


class IntArray(NumberArray[int]):
    """Integers from -2^63 to 2^63-1."""

    __slots__ = ()
    _kind = INT


class UintArray(NumberArray[int]):
    """Integers from 0 to 2^64-1."""

    __slots__ = ()
    _kind = UINT


class DoubleArray(NumberArray[float]):
    """Doubles."""

    __slots__ = ()
    _kind = DOUBLE


class StringArray(Array[str]):
    """Texts, which share their blocks with other texts (version 2). Empty ones take none."""

    __slots__ = ("_new", "_texts")

    def __init__(self, state: State, parent: Node, slots: int, texts: Iterable[str]) -> None:
        super().__init__(state, parent, slots)
        self._texts: list[Text | None] = [None] * slots
        self._new = [(state.shared(text, "a string"), text) for text in texts]

    def set(self, index: int, value: str) -> None:
        """Set a slot; one for whose text there is no room stays as it was."""
        state = self._state
        slot = uint64(index, "a slot")
        given = state.shared(value, "a string")
        if self._text is not None and slot < self._slots:
            with state:
                if self._text is not None:
                    self._put(slot, given, value)

    def clear(self) -> None:
        """Set all slots to the empty string."""
        state = self._state
        if self._text is not None:
            with state:
                if self._text is not None:
                    for slot in range(self._slots):
                        self._place(slot, None)

    def _make(self, name: str) -> None:
        payload = BlockType.STRING_REFERENCE | self._slots << 8
        nbytes = 4 * self._slots
        rest = bytes(nbytes + padding(nbytes))
        order = order_of(nbytes + wire.SLOTS_AT)
        self._enter(name, BlockType.ARRAY_VALUE, payload, order, rest)

    def _entered(self) -> None:
        new, self._new = self._new, []
        for slot, (given, text) in enumerate(new):
            self._put(slot, given, text)

    def _put(self, slot: int, given: bytes | Text, text: str) -> None:
        taken = None
        if text:
            taken = self._state.take_string(given, text)
            if taken is None:
                return
        self._place(slot, taken)

    def _place(self, slot: int, taken: Text | None) -> None:
        """Let a slot have a string, which is counted already, instead of the one that it had."""
        state = self._state
        old = self._texts[slot]
        if old is not None:
            state.release(old)
        if old is not None or taken is not None:
            self._texts[slot] = taken
            at = self._at + wire.SLOTS_AT + 4 * slot
            word = state.load(at & -WORD)
            index = 0 if taken is None else taken.index
            shift = 8 * (at & 7)
            state.store(at & -WORD, word & ~(0xFFFFFFFF << shift) | index << shift)

    def _release(self) -> None:
        for text in self._texts:
            if text is not None:
                self._state.release(text)
        self._texts = []


# --- Histograms ----------------------------------------------------------------------------------


class Histogram(Value, Generic[Number]):
    """Counts of values in buckets, with one below and one above all of them (notes §1.3).

    Bucket ``k`` of a linear one begins at ``floor + k * step``. Of an exponential one the first
    begins at ``floor``, the next at ``floor + initial_step``, and bucket ``k`` at ``floor +
    initial_step * step_multiplier ** (k - 1)``.
    """

    __slots__ = ("_array", "_bounds", "_rising", "_under")

    def __init__(
        self, array: NumberArray[Number], parameters: Sequence[Number], bounds: list[Number]
    ) -> None:
        super().__init__(array._state, array._parent)
        self._array: NumberArray[Number] = array
        self._under = len(parameters)
        """Slot of what is below all buckets."""
        self._bounds: list[Number] = bounds
        """Where each bucket begins, and what is above all of them."""
        self._rising = all(low <= high for low, high in itertools.pairwise(bounds))

    @property
    def name(self) -> str:
        """Its name, as it was given; the empty string once it is not there any more."""
        return self._array.name

    @property
    def block(self) -> int | None:
        """The index of its block; None where it has none."""
        return self._array.block

    @property
    def exists(self) -> bool:
        """Whether it is in the VMO: there was room, and it was not deleted."""
        return self._array.exists

    def delete(self) -> None:
        """Take it out of the tree."""
        self._array.delete()

    def reparent(self, parent: Node) -> None:
        """Make it a child of another node of the same VMO."""
        self._array.reparent(parent)

    def insert(self, value: Number) -> None:
        """Count a value."""
        self.insert_multiple(value, 1)

    def insert_multiple(self, value: Number, count: int) -> None:
        """Count a value several times."""
        kind = self._array._kind
        number = kind.check(value)
        times = kind.check(uint64(count, "a count"))
        self._array._change(self._slot(number), times)

    def clear(self) -> None:
        """Set all counts to zero."""
        self._array._clear(self._under)

    def _slot(self, value: Number) -> int:
        bounds = self._bounds
        if self._rising and value == value:  # noqa: PLR0124 (a NaN is below all buckets)
            return self._under + bisect_right(bounds, value)
        passed = 0
        while passed < len(bounds) and value >= bounds[passed]:
            passed += 1
        return self._under + passed


class LinearHistogram(Histogram[Number]):
    """A histogram whose buckets have one width."""

    __slots__ = ()


class ExponentialHistogram(Histogram[Number]):
    """A histogram each of whose buckets ends further away than the one before, by a factor."""

    __slots__ = ()


# --- Links ---------------------------------------------------------------------------------------


class Lazy(Value):
    """A link to a tree of its own, which ``Inspector.trees`` asks for when somebody reads it."""

    __slots__ = ("_content", "_new", "callback")

    def __init__(
        self, state: State, parent: Node, callback: Callable[[], Inspector], content: str
    ) -> None:
        super().__init__(state, parent)
        self.callback = callback
        """Gives the tree."""
        self._content: Text | None = None
        self._new = (state.named(content), content)

    @property
    def content(self) -> str:
        """What the link says; the empty string once it is not there any more."""
        return "" if self._content is None else self._content.text

    def _make(self, name: str, disposition: int) -> None:
        self._enter(name, BlockType.LINK_VALUE, disposition << 60)

    def _entered(self) -> None:
        state = self._state
        taken = state.take_name(*self._new)
        if taken is None:
            self._remove()
            return
        if taken.index > wire.MAX_LINK_INDEX:
            state.release(taken)
            self._remove()
            raise refused(
                411,
                f"a link's content would be block {taken.index}; it has 0 to {wire.MAX_LINK_INDEX}",
                "make links before the VMO grows over 16 MiB",
            )
        self._content = taken
        state.store(self._at + 8, state.load(self._at + 8) | taken.index)
        state.links[taken.text] = self.callback

    def delete(self) -> None:
        """Take it out of the tree, and forget what would give its own."""
        state = self._state
        if self._text is not None:
            with state:
                if self._text is not None and self._content is not None:
                    self._remove()
                    content, self._content = self._content, None
                    state.links.pop(content.text, None)
                    state.release(content)


# --- Nodes ---------------------------------------------------------------------------------------


class Node(Value):
    """A node: it has children and properties.

    Each ``create_…`` gives a value, at which it is set and deleted. Where a full VMO has no room
    for it the value ignores what is done to it, and ``Inspector.stats`` counts that. Raises
    WriteRefusedError (FXI0403 to FXI0411), with nothing changed, for what the format has no place
    for.
    """

    __slots__ = ("_count", "_tombstone")

    def __init__(self, state: State, parent: Node | None = None) -> None:
        super().__init__(state, parent)
        self._count = 0
        """Values that have it as parent."""
        self._tombstone = False

    def create_child(self, name: str) -> Node:
        """A node below it."""
        made = Node(self._state, self)
        made._enter(name, BlockType.NODE_VALUE, 0)
        return made

    # --- scalars ---

    def create_int(self, name: str, value: int = 0) -> IntProperty:
        """An integer from -2^63 to 2^63-1."""
        if type(value) is not int or not LEAST <= value <= MOST:
            value = int64(value)
        made = IntProperty(self._state, self)
        made._enter(name, _INT_VALUE, value & U64_MAX)
        return made

    def create_uint(self, name: str, value: int = 0) -> UintProperty:
        """An integer from 0 to 2^64-1."""
        made = UintProperty(self._state, self)
        made._enter(name, BlockType.UINT_VALUE, uint64(value))
        return made

    def create_double(self, name: str, value: float = 0.0) -> DoubleProperty:
        """A double."""
        made = DoubleProperty(self._state, self)
        made._enter(name, BlockType.DOUBLE_VALUE, double_word(double(value)))
        return made

    def create_bool(self, name: str, value: bool = False) -> BoolProperty:
        """True or false. Version 0 has none (FXI0410)."""
        self._since("a bool", 1)
        made = BoolProperty(self._state, self)
        made._enter(name, BlockType.BOOL_VALUE, _bool(value))
        return made

    def create_string(self, name: str, value: str = "") -> StringProperty:
        """A text."""
        made = StringProperty(self._state, self, value)
        made._enter(name, BlockType.BUFFER_VALUE, 0)
        return made

    def create_bytes(self, name: str, value: bytes | bytearray | memoryview = b"") -> BytesProperty:
        """Bytes."""
        made = BytesProperty(self._state, self, _bytes(value))
        made._enter(name, BlockType.BUFFER_VALUE, wire.BUFFER_BYTES << 60)
        return made

    # --- arrays ---

    def create_int_array(self, name: str, slots: int | Iterable[int]) -> IntArray:
        """An array of so many zeros, or of these values: at most 254."""
        count, values = _slots_of(slots, _MOST_NUMBERS)
        made = IntArray(self._state, self, count)
        made._make(name, values)
        return made

    def create_uint_array(self, name: str, slots: int | Iterable[int]) -> UintArray:
        """An array of so many zeros, or of these values: at most 254."""
        count, values = _slots_of(slots, _MOST_NUMBERS)
        made = UintArray(self._state, self, count)
        made._make(name, values)
        return made

    def create_double_array(self, name: str, slots: int | Iterable[float]) -> DoubleArray:
        """An array of so many zeros, or of these values: at most 254."""
        count, values = _slots_of(slots, _MOST_NUMBERS)
        made = DoubleArray(self._state, self, count)
        made._make(name, values)
        return made

    def create_string_array(self, name: str, slots: int | Iterable[str]) -> StringArray:
        """An array of so many empty strings, or of these: at most 255. Version 2 only (FXI0410)."""
        self._since("an array of strings", 2)
        count, values = _slots_of(slots, wire.MAX_SLOTS)
        made = StringArray(self._state, self, count, values)
        made._make(name)
        return made

    # --- histograms ---

    def create_int_linear_histogram(
        self, name: str, floor: int, step: int, buckets: int
    ) -> LinearHistogram[int]:
        """A histogram of integers, with buckets of one width: at most 250."""
        return self._linear(IntArray, name, (floor, step), buckets)

    def create_uint_linear_histogram(
        self, name: str, floor: int, step: int, buckets: int
    ) -> LinearHistogram[int]:
        """A histogram of unsigned integers, with buckets of one width: at most 250."""
        return self._linear(UintArray, name, (floor, step), buckets)

    def create_double_linear_histogram(
        self, name: str, floor: float, step: float, buckets: int
    ) -> LinearHistogram[float]:
        """A histogram of doubles, with buckets of one width: at most 250."""
        return self._linear(DoubleArray, name, (floor, step), buckets)

    def create_int_exponential_histogram(
        self, name: str, floor: int, initial_step: int, step_multiplier: int, buckets: int
    ) -> ExponentialHistogram[int]:
        """A histogram of integers, with buckets that grow: at most 249."""
        parameters = (floor, initial_step, step_multiplier)
        return self._exponential(IntArray, name, parameters, buckets)

    def create_uint_exponential_histogram(
        self, name: str, floor: int, initial_step: int, step_multiplier: int, buckets: int
    ) -> ExponentialHistogram[int]:
        """A histogram of unsigned integers, with buckets that grow: at most 249."""
        parameters = (floor, initial_step, step_multiplier)
        return self._exponential(UintArray, name, parameters, buckets)

    def create_double_exponential_histogram(
        self, name: str, floor: float, initial_step: float, step_multiplier: float, buckets: int
    ) -> ExponentialHistogram[float]:
        """A histogram of doubles, with buckets that grow: at most 249."""
        parameters = (floor, initial_step, step_multiplier)
        return self._exponential(DoubleArray, name, parameters, buckets)

    # --- links ---

    def create_lazy_child(self, name: str, callback: Callable[[], Inspector]) -> Lazy:
        """A child whose tree ``callback`` gives when somebody reads it."""
        return self._lazy(name, callback, 0)

    def create_lazy_values(self, name: str, callback: Callable[[], Inspector]) -> Lazy:
        """Children and properties of this node that ``callback`` gives when somebody reads it."""
        return self._lazy(name, callback, 1)

    # --- within ---

    def _left(self) -> None:
        """It has one child less; a tombstone without any is freed."""
        if not self._at:
            return
        state = self._state
        self._count -= 1
        if self._count or not self._tombstone:
            state.store(self._at + 8, self._count)
        else:
            at, self._at = self._at, 0
            state.free(at >> 4)

    def _remove(self) -> None:
        """Free its block and name; with children it becomes a tombstone instead."""
        if not self._count:
            super()._remove()
            return
        state = self._state
        self._parent._left()
        assert self._text is not None  # noqa: S101 (what is in the tree has a name)
        state.release(self._text)
        self._text = None
        self._tombstone = True
        order = state.load(self._at) & 0xF
        state.store(self._at, order | BlockType.TOMBSTONE << state.type_at)

    def _since(self, what: str, version: int) -> None:
        if self._state.version < version:
            raise refused(410, f"{what}: version {self._state.version} has none", "write version 2")

    def _lazy(self, name: str, callback: Callable[[], Inspector], disposition: int) -> Lazy:
        if not callable(callback):
            raise refused(403, f"a lazy tree is given by a function, not by {callback!r}")
        state = self._state
        utf8(name, "a name")
        with state.lock:
            content = f"{name}-{state.link_number}"
            state.link_number += 1
        made = Lazy(state, self, callback, content)
        made._make(name, disposition)
        return made

    def _linear(
        self,
        array: type[NumberArray[Number]],
        name: str,
        parameters: tuple[Number, Number],
        buckets: int,
    ) -> LinearHistogram[Number]:
        floor, step = (array._kind.check(each) for each in parameters)
        made, count = self._counts(array, name, (floor, step), buckets, wire.ARRAY_LINEAR)
        bounds = [floor]
        for _ in range(count):
            # As the reference does it, whose doubles are what comes of many additions.
            bounds.append(bounds[-1] + step)
        return LinearHistogram(made, parameters, bounds)

    def _exponential(
        self,
        array: type[NumberArray[Number]],
        name: str,
        parameters: tuple[Number, Number, Number],
        buckets: int,
    ) -> ExponentialHistogram[Number]:
        floor, step, factor = (array._kind.check(each) for each in parameters)
        made, count = self._counts(
            array, name, (floor, step, factor), buckets, wire.ARRAY_EXPONENTIAL
        )
        bounds = [floor]
        for _ in range(count):
            bounds.append(floor + step)
            step *= factor
        return ExponentialHistogram(made, parameters, bounds)

    def _counts(
        self,
        array: type[NumberArray[Number]],
        name: str,
        parameters: tuple[Number, ...],
        buckets: int,
        array_format: int,
    ) -> tuple[NumberArray[Number], int]:
        count = uint64(buckets, "a number of buckets")
        most = _MOST_NUMBERS - len(parameters) - 2
        if not count:
            raise refused(404, f"a histogram of no buckets: it has 1 to {most}")
        if count > most:
            raise refused(406, f"a histogram of {count} buckets: it has {most}")
        made = array(self._state, self, count + len(parameters) + 2, array_format)
        made._make(name, parameters)
        return made, count
