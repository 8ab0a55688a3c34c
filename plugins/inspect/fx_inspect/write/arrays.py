"""Arrays of numbers and of strings, and histograms, whose slots count values in buckets."""

from __future__ import annotations

import itertools
import struct
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.format import BlockType
from fx_inspect.write.heap import order_of
from fx_inspect.write.state import DOUBLE, INT, UINT, Kind, State, Text, uint64
from fx_inspect.write.values import Container, Value
from fxframework.errors import refusal
from fxframework.io.words import WORD, padding

MOST_NUMBERS = (wire.MAX_BLOCK - wire.SLOTS_AT) // 8
"""Most slots of an array of numbers."""

Number = TypeVar("Number", int, float)


class Array(Value):
    """Values of one kind in a fixed number of slots.

    Operations on a slot out of range are ignored.
    """

    __slots__ = ("_slots",)

    def __init__(self, state: State, parent: Container, slots: int) -> None:
        super().__init__(state, parent)
        self._slots = slots

    def __len__(self) -> int:
        return self._slots


def checked_slots(content: int | Iterable[Any], most: int) -> tuple[int, list[Any]]:
    """Return the number of slots of an array, and their initial values.

    Raises WriteRefusedError (TOO_MANY) for more than ``most`` slots.
    """
    if isinstance(content, Iterable) and not isinstance(content, str | bytes):
        values = list(content)
        count = len(values)
    else:
        values = []
        count = uint64(content, "a number of slots")
    if count > most:
        raise refusal(
            rules.TOO_MANY,
            f"an array of {count} slots is too large: at most {most}",
            "make several arrays",
        )
    return count, values


class _Numbers(Value):
    """Numbers of a kind in a number of slots."""

    __slots__ = ()
    _kind: Kind
    _slots: int
    _format: int

    def _make(self, name: str, values: Iterable[Any]) -> None:
        slot_words = [self._kind.word(self._kind.check(value)) for value in values]
        slot_words += [0] * (self._slots - len(slot_words))
        data = struct.pack(f"<{len(slot_words)}Q", *slot_words)
        order = order_of(8 * self._slots + wire.SLOTS_AT)
        format_bits = wire.ARRAY_FORMAT.put(self._format)
        payload = self._kind.type | format_bits | wire.SLOT_COUNT.put(self._slots)
        self._enter(name, BlockType.ARRAY_VALUE, payload, order, data)

    def _change(self, slot: int, by: Any) -> None:
        if slot < self._slots:
            self._within(lambda: self._kind.add(self._state, self._place(slot), by))

    def _clear(self, first_slot: int) -> None:
        zero_bytes = bytes(8 * (self._slots - first_slot))
        self._within(lambda: self._state.write(self._place(first_slot), zero_bytes))

    def _place(self, slot: int) -> int:
        """Return the byte offset of a slot."""
        return self._at + wire.SLOTS_AT + 8 * slot


class NumberArray(_Numbers, Array, Generic[Number]):
    """An array of numbers."""

    __slots__ = ("_format",)

    def __init__(
        self, state: State, parent: Container, slots: int, array_format: int = wire.ARRAY_FLAT
    ) -> None:
        super().__init__(state, parent, slots)
        self._format = array_format

    def set(self, index: int, value: Number) -> None:
        """Set a slot."""
        slot = uint64(index, "a slot")
        word = self._kind.word(self._kind.check(value))
        if slot < self._slots:
            self._within(lambda: self._state.store(self._place(slot), word))

    def add(self, index: int, value: Number) -> None:
        """Add to a slot; integers saturate."""
        self._change(uint64(index, "a slot"), self._kind.check(value))

    def subtract(self, index: int, value: Number) -> None:
        """Subtract from a slot; integers saturate."""
        self._change(uint64(index, "a slot"), -self._kind.check(value))

    def clear(self) -> None:
        """Set all slots to zero."""
        self._clear(0)


class IntArray(NumberArray[int]):
    """An array of integers from -2^63 to 2^63-1."""

    __slots__ = ()
    _kind = INT


class UintArray(NumberArray[int]):
    """An array of integers from 0 to 2^64-1."""

    __slots__ = ()
    _kind = UINT


class DoubleArray(NumberArray[float]):
    """An array of doubles."""

    __slots__ = ()
    _kind = DOUBLE


class StringArray(Array):
    """An array of texts, which share their blocks with equal texts (version 2).

    Empty texts have none.
    """

    __slots__ = ("_new", "_texts")

    def __init__(self, state: State, parent: Container, slots: int, texts: Iterable[str]) -> None:
        super().__init__(state, parent, slots)
        self._texts: list[Text | None] = [None] * slots
        self._new = [(state.shared(text, "a string"), text) for text in texts]

    def set(self, index: int, value: str) -> None:
        """Set a slot; without room for the text the slot does not change."""
        slot = uint64(index, "a slot")
        shared_text = self._state.shared(value, "a string")
        if slot < self._slots:
            self._within(lambda: self._put(slot, shared_text, value))

    def clear(self) -> None:
        """Set all slots to the empty string."""

        def empty() -> None:
            for slot in range(self._slots):
                self._place(slot, None)

        self._within(empty)

    def _make(self, name: str) -> None:
        payload = BlockType.STRING_REFERENCE | wire.SLOT_COUNT.put(self._slots)
        nbytes = 4 * self._slots
        empty_slots = bytes(nbytes + padding(nbytes))
        order = order_of(nbytes + wire.SLOTS_AT)
        self._enter(name, BlockType.ARRAY_VALUE, payload, order, empty_slots)

    def _entered(self) -> None:
        new_texts = self._new
        self._new = []
        for slot, (shared_text, text) in enumerate(new_texts):
            self._put(slot, shared_text, text)

    def _put(self, slot: int, shared_text: bytes | Text, text: str) -> None:
        new_text = None
        if text:
            new_text = self._state.take_string(shared_text, text)
            if new_text is None:
                return
        self._place(slot, new_text)

    def _place(self, slot: int, new_text: Text | None) -> None:
        """Replace the string of a slot by another one, which has been counted already."""
        state = self._state
        old_text = self._texts[slot]
        if old_text is not None:
            state.release(old_text)
        if old_text is not None or new_text is not None:
            self._texts[slot] = new_text
            slot_offset = self._at + wire.SLOTS_AT + 4 * slot
            word = state.load(slot_offset & -WORD)
            index = 0 if new_text is None else new_text.index
            shift = 8 * (slot_offset % WORD)
            other_slot = word & ~(wire.SLOT_STRING.mask << shift)
            state.store(slot_offset - slot_offset % WORD, other_slot | index << shift)

    def _release(self) -> None:
        for text in self._texts:
            if text is not None:
                self._state.release(text)
        self._texts = []


class Histogram(_Numbers, Generic[Number]):
    """Counts of values in buckets, with an underflow and an overflow bucket.

    Bucket ``k`` of a linear histogram begins at ``floor + k * step``. The first bucket of an
    exponential one begins at ``floor``, bucket ``k`` at ``floor + initial_step * step_multiplier **
    (k - 1)``.
    """

    __slots__ = ("_bounds", "_kind", "_rising", "_slots", "_under")

    def __init__(
        self, state: State, parent: Container, kind: Kind, under: int, bounds: list[Number]
    ) -> None:
        super().__init__(state, parent)
        self._kind = kind
        self._under = under
        """Slot of the underflow bucket, behind the parameters."""
        self._bounds: list[Number] = bounds
        """Lower bound of each bucket, and of the overflow bucket."""
        self._slots = under + 1 + len(bounds)
        self._rising = all(low <= high for low, high in itertools.pairwise(bounds))

    def insert(self, value: Number) -> None:
        """Count a value."""
        self.insert_multiple(value, 1)

    def insert_multiple(self, value: Number, count: int) -> None:
        """Count a value several times."""
        number = self._kind.check(value)
        times = self._kind.check(uint64(count, "a count"))
        self._change(self._slot(number), times)

    def clear(self) -> None:
        """Set all counts to zero."""
        self._clear(self._under)

    def _slot(self, value: Number) -> int:
        bounds = self._bounds
        if self._rising and value == value:  # noqa: PLR0124 (a NaN goes to the underflow bucket)
            return self._under + bisect_right(bounds, value)
        buckets_passed = 0
        while buckets_passed < len(bounds) and value >= bounds[buckets_passed]:
            buckets_passed += 1
        return self._under + buckets_passed


class LinearHistogram(Histogram[Number]):
    """A histogram whose buckets have the same width."""

    __slots__ = ()
    _format = wire.ARRAY_LINEAR


class ExponentialHistogram(Histogram[Number]):
    """A histogram whose bucket widths grow by a factor."""

    __slots__ = ()
    _format = wire.ARRAY_EXPONENTIAL
