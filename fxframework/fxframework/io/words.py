"""Words and bit fields, from which all formats are built.

A field is declared once, as ``Bits``. It works on a Python int and on a numpy array;
``WordLayout.explain`` displays it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, overload

import attrs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "U64_MAX",
    "WORD",
    "Bits",
    "FieldView",
    "WordLayout",
    "explain_stretch",
    "hex_and_ascii",
    "pad8",
    "padding",
    "plain_numbers",
    "to_i64",
    "view_of",
]

WORD = 8
"""Bytes in a word."""
U64_MAX = (1 << 64) - 1
"""The greatest unsigned number of 64 bits."""
SHOWN_WORDS = 64
"""Words to show of a payload, padding or damage, around the requested byte."""


def padding(nbytes: int) -> int:
    """Return the number of zero bytes (0 to 7) that pad ``nbytes`` to a word boundary."""
    return -nbytes % WORD


def pad8(data: bytes) -> bytes:
    """Return ``data`` padded with zero bytes to a word boundary."""
    return data + bytes(padding(len(data)))


def view_of(data: Any) -> memoryview:
    """Return a view of the bytes of any buffer."""
    view = memoryview(data)
    if view.format == "B" and view.ndim == 1:
        return view
    return view.cast("B") if view.nbytes else memoryview(b"")


def plain_numbers(enumeration: type[IntEnum]) -> Any:
    """Return the numbers of an enumeration without their type, as attributes by name.

    Numpy compares a column with one of them many times as fast as with a member.
    """
    return SimpleNamespace(**{member.name: int(member) for member in enumeration})


def to_i64(word: int) -> int:
    """Reinterpret an unsigned 64-bit word as two's complement."""
    return word - (1 << 64) if word >> 63 else word


@attrs.frozen
class Bits:
    """A field of a 64-bit word: bits ``low`` to ``high``, both included, bit 0 least significant.

    Writers must write zero to ``reserved`` fields; readers keep them.
    """

    name: str
    """The name of the field."""
    low: int
    """Its lowest bit."""
    high: int
    """Its highest bit, included."""
    doc: str = ""
    """Its meaning."""
    values: Mapping[int, str] = attrs.field(factory=dict, kw_only=True, hash=False)
    """Names of the values of an enumeration."""
    reserved: bool = attrs.field(default=False, kw_only=True)
    """Whether it must be zero when written."""
    limit: int = attrs.field(init=False, eq=False, repr=False)
    """The greatest value; also the mask of the value after shifting."""

    @limit.default
    def _limit(self) -> int:
        return (1 << self.width) - 1

    @property
    def width(self) -> int:
        """Bits in the field."""
        return self.high - self.low + 1

    @property
    def mask(self) -> int:
        """The mask of the field in the word."""
        return self.limit << self.low

    @overload
    def get(self, word: int) -> int: ...
    @overload
    def get(self, word: NDArray[np.uint64]) -> NDArray[np.uint64]: ...
    @overload
    def get(self, word: NDArray[np.int64]) -> NDArray[np.int64]: ...
    def get(self, word: Any) -> Any:
        """Extract the field from an int, or from each element of an array (same shape and dtype).

        Arrays are uint64, or int64 for fields of fewer than 64 bits.
        """
        if isinstance(word, int):
            return (word >> self.low) & self.limit
        number = word.dtype.type
        return (word >> number(self.low)) & number(self.limit)

    def put(self, value: int) -> int:
        """Shift ``value`` into place for a bitwise or. Raises ValueError if it does not fit."""
        if not 0 <= value <= self.limit:
            msg = f"{self.name} is {value}, but {self.width} bits hold 0 to {self.limit}"
            raise ValueError(msg)
        return value << self.low


LOW_HALF = Bits("low half", 0, 31)
HIGH_HALF = Bits("high half", 32, 63)


@attrs.frozen
class FieldView:
    """One field of one word, as `fxf explain FILE@OFFSET` shows it."""

    offset: int
    """Byte offset of the word in the file."""
    low: int
    """Lowest bit in the word."""
    high: int
    """Highest bit, included."""
    name: str
    """The name of the field."""
    value: int
    """Its value, unsigned."""
    meaning: str
    """The meaning of the value, in words; may be empty."""
    section: str
    """The section of the format's document that declares it."""


@attrs.frozen
class WordLayout:
    """The fields of one word and the section of the document that declares them."""

    name: str
    """The name of the word."""
    section: str
    """The section of the format's document that declares it."""
    fields: tuple[Bits, ...]
    """Its fields, which do not overlap."""

    def __attrs_post_init__(self) -> None:
        declared_bits = 0
        for field in self.fields:
            if declared_bits & field.mask:
                msg = f"{self.name}: {field.name} overlaps an earlier field"
                raise ValueError(msg)
            declared_bits |= field.mask

    @property
    def reserved_mask(self) -> int:
        """Bits that are in no field or in a reserved one, and must be zero when written."""
        named_bits = 0
        for field in self.fields:
            if not field.reserved:
                named_bits |= field.mask
        return U64_MAX & ~named_bits

    def pack(self, **values: int) -> int:
        """Return the word with these fields; other fields are zero. Raises ValueError."""
        word = 0
        for field in self.fields:
            if field.name in values:
                word |= field.put(values.pop(field.name))
        if values:
            msg = f"{self.name} has no field {', '.join(sorted(values))}"
            raise ValueError(msg)
        return word

    def explain(self, word: int, offset: int) -> list[FieldView]:
        """Return the fields of the word at byte ``offset``, and any nonzero reserved bits."""
        views = [
            FieldView(
                offset,
                field.low,
                field.high,
                field.name,
                field.get(word),
                field.values.get(field.get(word), field.doc),
                self.section,
            )
            for field in self.fields
        ]
        stray_bits = word & self.reserved_mask
        for field in self.fields:
            if field.reserved:  # it is shown by its own name
                stray_bits &= ~field.mask
        if stray_bits:
            lowest_bit = stray_bits & -stray_bits
            low = lowest_bit.bit_length() - 1
            high = stray_bits.bit_length() - 1
            value = stray_bits >> low
            views.append(
                FieldView(offset, low, high, "reserved", value, "should be zero", self.section)
            )
        return sorted(views, key=lambda view: view.low)


def explain_stretch(
    data: memoryview,
    start: int,
    end: int,
    name: str,
    section: str,
    *,
    wanted: int,
    meaning: str | None = None,
    order: Literal["big", "little"] = "little",
) -> Iterator[FieldView]:
    """Yield bytes ``start`` to ``end``, which have no fields, word by word; the last may be short.

    Without a ``meaning``, each word shows its bytes; with one, the first word shows it, and all
    show their bytes as hex and ASCII. A run of equal words is collapsed into one field after the
    first, except the word of byte ``wanted``. Of a long stretch only the words around that byte
    are shown; fields before and after them count the others.
    """
    first_shown, last_shown = _shown_part(start, end, wanted)

    def counted(part_start: int, part_end: int, what: str, high: int = 63) -> FieldView:
        count = -(-(part_end - part_start) // WORD)
        words = "1 word" if count == 1 else f"{count} words"
        return FieldView(part_start, 0, high, name, count, f"{words}, {what}", section)

    if start < first_shown:
        yield counted(start, first_shown, "not listed")
    offset = first_shown
    while offset < last_shown:
        word = data[offset : min(offset + WORD, end)].tobytes()
        if meaning is None:
            word_meaning = repr(word)[1:]  # without the b of a bytes literal
        elif offset == first_shown:
            word_meaning = f"{meaning}: {hex_and_ascii(word)}"
        else:
            word_meaning = hex_and_ascii(word)
        value = int.from_bytes(word, order)
        yield FieldView(offset, 0, 8 * len(word) - 1, name, value, word_meaning, section)
        offset += WORD
        # The run of equal words ends before the wanted word, which is shown by itself.
        run_end = offset
        while run_end + WORD <= last_shown and data[run_end : run_end + WORD] == word:
            if run_end <= wanted < run_end + WORD:
                break
            run_end += WORD
        if run_end > offset + WORD:  # one equal word is shown as it is
            yield counted(offset, run_end, "the same", 8 * (run_end - offset) - 1)
            offset = run_end
    if last_shown < end:
        yield counted(last_shown, end, "not listed")


def _shown_part(start: int, end: int, wanted: int) -> tuple[int, int]:
    """Return the part of a stretch to show: all, or ``SHOWN_WORDS`` around byte ``wanted``."""
    shown_bytes = SHOWN_WORDS * WORD
    if end - start <= shown_bytes:
        return start, end
    first_shown = start
    if start <= wanted < end:
        wanted_word = wanted - wanted % WORD
        first_shown = max(start, wanted_word - shown_bytes // 2)
    return first_shown, min(end, first_shown + shown_bytes)


def hex_and_ascii(data: bytes) -> str:
    """Format bytes as in a hex dump: ``68 69 0a  |hi.|``."""
    letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)
    return f"{data.hex(' ')}  |{letters}|"
