"""Nodes, in which a program creates its values."""

# ruff: noqa: SLF001 (values access their parents' blocks)

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.format import BlockType
from fx_inspect.write.arrays import (
    MOST_NUMBERS,
    DoubleArray,
    ExponentialHistogram,
    IntArray,
    LinearHistogram,
    StringArray,
    UintArray,
    checked_slots,
)
from fx_inspect.write.state import DOUBLE, INT, LEAST, MOST, UINT, Kind, double, int64, uint64, utf8
from fx_inspect.write.values import (
    BoolProperty,
    BytesProperty,
    Container,
    DoubleProperty,
    IntProperty,
    Lazy,
    LinkedTree,
    StringProperty,
    UintProperty,
    bool_word,
    checked_bytes,
)
from fxframework.errors import refusal
from fxframework.io.words import U64_MAX
from fxframework.kit.json_fields import bits_of

H = TypeVar("H", LinearHistogram[Any], ExponentialHistogram[Any])
A = TypeVar("A", IntArray, UintArray, DoubleArray)
_INT_VALUE = BlockType.INT_VALUE


class Node(Container):
    """A node with children and properties.

    Each ``create_…`` returns a value, by which it is set and deleted. If a full VMO has no room for
    a value, operations on it are ignored, and ``Inspector.stats`` counts the failure. Raises
    WriteRefusedError without side effects for values that the format cannot
    hold.
    """

    __slots__ = ()

    def create_child(self, name: str) -> Node:
        """Create a child node."""
        child = Node(self._state, self)
        child._enter(name, BlockType.NODE_VALUE, 0)
        return child

    # --- scalars ---

    def create_int(self, name: str, value: int = 0) -> IntProperty:
        """Create an integer from -2^63 to 2^63-1."""
        if type(value) is not int or not LEAST <= value <= MOST:
            value = int64(value)
        number = IntProperty(self._state, self)
        number._enter(name, _INT_VALUE, value & U64_MAX)
        return number

    def create_uint(self, name: str, value: int = 0) -> UintProperty:
        """Create an integer from 0 to 2^64-1."""
        number = UintProperty(self._state, self)
        number._enter(name, BlockType.UINT_VALUE, uint64(value))
        return number

    def create_double(self, name: str, value: float = 0.0) -> DoubleProperty:
        """Create a double."""
        number = DoubleProperty(self._state, self)
        number._enter(name, BlockType.DOUBLE_VALUE, bits_of(double(value)))
        return number

    def create_bool(self, name: str, value: bool = False) -> BoolProperty:
        """Create a bool. Version 0 has none (UNSUPPORTED_VALUE)."""
        self._since("a bool", 1)
        flag = BoolProperty(self._state, self)
        flag._enter(name, BlockType.BOOL_VALUE, bool_word(value))
        return flag

    def create_string(self, name: str, value: str = "") -> StringProperty:
        """Create a text."""
        text = StringProperty(self._state, self, value)
        text._enter(name, BlockType.BUFFER_VALUE, 0)
        return text

    def create_bytes(self, name: str, value: bytes | bytearray | memoryview = b"") -> BytesProperty:
        """Create a property of bytes."""
        octets = BytesProperty(self._state, self, checked_bytes(value))
        octets._enter(name, BlockType.BUFFER_VALUE, wire.BUFFER_FORMAT.put(wire.BUFFER_BYTES))
        return octets

    # --- arrays ---

    def create_int_array(self, name: str, slots: int | Iterable[int]) -> IntArray:
        """Create an array of ``slots`` zeros, or of the given values: at most 254."""
        return self._numbers(IntArray, name, slots)

    def create_uint_array(self, name: str, slots: int | Iterable[int]) -> UintArray:
        """Create an array of ``slots`` zeros, or of the given values: at most 254."""
        return self._numbers(UintArray, name, slots)

    def create_double_array(self, name: str, slots: int | Iterable[float]) -> DoubleArray:
        """Create an array of ``slots`` zeros, or of the given values: at most 254."""
        return self._numbers(DoubleArray, name, slots)

    def create_string_array(self, name: str, slots: int | Iterable[str]) -> StringArray:
        """Create an array of ``slots`` empty strings, or of the given ones: at most 255.

        Version 2 only (UNSUPPORTED_VALUE).
        """
        self._since("an array of strings", 2)
        count, values = checked_slots(slots, wire.MAX_SLOTS)
        string_array = StringArray(self._state, self, count, values)
        string_array._make(name)
        return string_array

    # --- histograms ---

    def create_int_linear_histogram(
        self, name: str, floor: int, step: int, buckets: int
    ) -> LinearHistogram[int]:
        """Create a histogram of integers with buckets of the same width: at most 250."""
        return self._histogram(LinearHistogram, INT, name, (floor, step), buckets)

    def create_uint_linear_histogram(
        self, name: str, floor: int, step: int, buckets: int
    ) -> LinearHistogram[int]:
        """Create a histogram of unsigned integers with buckets of the same width: at most 250."""
        return self._histogram(LinearHistogram, UINT, name, (floor, step), buckets)

    def create_double_linear_histogram(
        self, name: str, floor: float, step: float, buckets: int
    ) -> LinearHistogram[float]:
        """Create a histogram of doubles with buckets of the same width: at most 250."""
        return self._histogram(LinearHistogram, DOUBLE, name, (floor, step), buckets)

    def create_int_exponential_histogram(
        self, name: str, floor: int, initial_step: int, step_multiplier: int, buckets: int
    ) -> ExponentialHistogram[int]:
        """Create a histogram of integers with growing buckets: at most 249."""
        parameters = (floor, initial_step, step_multiplier)
        return self._histogram(ExponentialHistogram, INT, name, parameters, buckets)

    def create_uint_exponential_histogram(
        self, name: str, floor: int, initial_step: int, step_multiplier: int, buckets: int
    ) -> ExponentialHistogram[int]:
        """Create a histogram of unsigned integers with growing buckets: at most 249."""
        parameters = (floor, initial_step, step_multiplier)
        return self._histogram(ExponentialHistogram, UINT, name, parameters, buckets)

    def create_double_exponential_histogram(
        self, name: str, floor: float, initial_step: float, step_multiplier: float, buckets: int
    ) -> ExponentialHistogram[float]:
        """Create a histogram of doubles with growing buckets: at most 249."""
        parameters = (floor, initial_step, step_multiplier)
        return self._histogram(ExponentialHistogram, DOUBLE, name, parameters, buckets)

    # --- links ---

    def create_lazy_child(self, name: str, callback: Callable[[], LinkedTree]) -> Lazy:
        """Create a link to a child, whose tree ``callback`` returns when it is read."""
        return self._lazy(name, callback, 0)

    def create_lazy_values(self, name: str, callback: Callable[[], LinkedTree]) -> Lazy:
        """Create a link to values of this node, whose tree ``callback`` returns when it is read."""
        return self._lazy(name, callback, 1)

    # --- helpers ---

    def _since(self, kind_of_value: str, version: int) -> None:
        if self._state.version < version:
            raise refusal(
                rules.UNSUPPORTED_VALUE,
                f"{kind_of_value} does not exist in version {self._state.version}",
                "write version 2",
            )

    def _numbers(self, kind: type[A], name: str, slots: int | Iterable[float]) -> A:
        count, values = checked_slots(slots, MOST_NUMBERS)
        number_array = kind(self._state, self, count)
        number_array._make(name, values)
        return number_array

    def _lazy(self, name: str, callback: Callable[[], LinkedTree], disposition: int) -> Lazy:
        if not callable(callback):
            raise refusal(
                rules.WRONG_TYPE, f"expected a function that returns a tree, not {callback!r}"
            )
        state = self._state
        utf8(name, "a name")
        with state.lock:
            content = f"{name}-{state.link_number}"
            state.link_number += 1
        link = Lazy(state, self, callback, content)
        link._make(name, disposition)
        return link

    def _histogram(
        self,
        histogram_class: type[H],
        kind: Kind,
        name: str,
        parameters: Sequence[Any],
        buckets: int,
    ) -> H:
        """Create a histogram.

        ``parameters`` are its floor and step; an exponential one has a multiplier, too.
        """
        values = [kind.check(parameter) for parameter in parameters]
        floor, step, *factors = values
        bucket_count = uint64(buckets, "a number of buckets")
        # Numbers are also needed for what is below the floor and above the last bucket.
        most_buckets = MOST_NUMBERS - len(values) - 2
        if not bucket_count:
            raise refusal(rules.OUT_OF_RANGE, f"a histogram needs 1 to {most_buckets} buckets")
        if bucket_count > most_buckets:
            raise refusal(
                rules.TOO_MANY,
                f"a histogram of {bucket_count} buckets is too large: at most {most_buckets}",
            )
        bounds = [floor]
        for _ in range(bucket_count):
            # Repeated addition, as in the reference, so that doubles are equal.
            if factors:
                bounds.append(floor + step)
                step *= factors[0]
            else:
                bounds.append(bounds[-1] + step)
        histogram = histogram_class(self._state, self, kind, len(values), bounds)
        histogram._make(name, values)
        return histogram
