"""Nodes: where a program makes its values."""

# ruff: noqa: SLF001 (values know their parents, and what is in their parents' blocks)

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from fx_inspect import layout as wire
from fx_inspect.layout import BlockType
from fx_inspect.write.arrays import (
    MOST_NUMBERS,
    DoubleArray,
    IntArray,
    NumberArray,
    StringArray,
    UintArray,
    checked_slots,
)
from fx_inspect.write.histograms import ExponentialHistogram, LinearHistogram
from fx_inspect.write.links import Lazy, LinkedTree
from fx_inspect.write.state import LEAST, MOST, double, int64, refused, uint64, utf8
from fx_inspect.write.values import (
    BoolProperty,
    BytesProperty,
    Container,
    DoubleProperty,
    IntProperty,
    StringProperty,
    UintProperty,
    bool_word,
    checked_bytes,
)
from fxframework.io.words import U64_MAX
from fxframework.kit.json_fields import bits_of

__all__ = ["Node"]

Number = TypeVar("Number", int, float)
A = TypeVar("A", IntArray, UintArray, DoubleArray)
_INT_VALUE = BlockType.INT_VALUE


class Node(Container):
    """A node: it has children and properties.

    Each ``create_…`` gives a value, at which it is set and deleted. Where a full VMO has no room
    for it the value ignores what is done to it, and ``Inspector.stats`` counts that. Raises
    WriteRefusedError (FXI0403 to FXI0411), with nothing changed, for what the format has no place
    for.
    """

    __slots__ = ()

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
        made._enter(name, BlockType.DOUBLE_VALUE, bits_of(double(value)))
        return made

    def create_bool(self, name: str, value: bool = False) -> BoolProperty:
        """True or false. Version 0 has none (FXI0410)."""
        self._since("a bool", 1)
        made = BoolProperty(self._state, self)
        made._enter(name, BlockType.BOOL_VALUE, bool_word(value))
        return made

    def create_string(self, name: str, value: str = "") -> StringProperty:
        """A text."""
        made = StringProperty(self._state, self, value)
        made._enter(name, BlockType.BUFFER_VALUE, 0)
        return made

    def create_bytes(self, name: str, value: bytes | bytearray | memoryview = b"") -> BytesProperty:
        """Bytes."""
        made = BytesProperty(self._state, self, checked_bytes(value))
        made._enter(name, BlockType.BUFFER_VALUE, wire.BUFFER_BYTES << 60)
        return made

    # --- arrays ---

    def create_int_array(self, name: str, slots: int | Iterable[int]) -> IntArray:
        """An array of so many zeros, or of these values: at most 254."""
        return self._numbers(IntArray, name, slots)

    def create_uint_array(self, name: str, slots: int | Iterable[int]) -> UintArray:
        """An array of so many zeros, or of these values: at most 254."""
        return self._numbers(UintArray, name, slots)

    def create_double_array(self, name: str, slots: int | Iterable[float]) -> DoubleArray:
        """An array of so many zeros, or of these values: at most 254."""
        return self._numbers(DoubleArray, name, slots)

    def create_string_array(self, name: str, slots: int | Iterable[str]) -> StringArray:
        """An array of so many empty strings, or of these: at most 255. Version 2 only (FXI0410)."""
        self._since("an array of strings", 2)
        count, values = checked_slots(slots, wire.MAX_SLOTS)
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

    def create_lazy_child(self, name: str, callback: Callable[[], LinkedTree]) -> Lazy:
        """A child whose tree ``callback`` gives when somebody reads it."""
        return self._lazy(name, callback, 0)

    def create_lazy_values(self, name: str, callback: Callable[[], LinkedTree]) -> Lazy:
        """Children and properties of this node that ``callback`` gives when somebody reads it."""
        return self._lazy(name, callback, 1)

    # --- within ---

    def _since(self, what: str, version: int) -> None:
        if self._state.version < version:
            raise refused(
                410, f"{what} does not exist in version {self._state.version}", "write version 2"
            )

    def _numbers(self, kind: type[A], name: str, slots: int | Iterable[float]) -> A:
        count, values = checked_slots(slots, MOST_NUMBERS)
        made = kind(self._state, self, count)
        made._make(name, values)
        return made

    def _lazy(self, name: str, callback: Callable[[], LinkedTree], disposition: int) -> Lazy:
        if not callable(callback):
            raise refused(403, f"expected a function that gives a tree, not {callback!r}")
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
        most = MOST_NUMBERS - len(parameters) - 2
        if not count:
            raise refused(404, f"a histogram needs 1 to {most} buckets")
        if count > most:
            raise refused(406, f"a histogram of {count} buckets is too large: at most {most}")
        made = array(self._state, self, count + len(parameters) + 2, array_format)
        made._make(name, parameters)
        return made, count
