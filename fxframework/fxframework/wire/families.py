"""Families: what the records of a format, or the items of a list, have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from fxframework.errors import PluginError
from fxframework.wire.cursor import RefusalError, order_of
from fxframework.wire.expressions import condition_text, wrapped
from fxframework.wire.fields import Field, Number
from fxframework.wire.rules import DOES_NOT_FIT
from fxframework.wire.state import State

if TYPE_CHECKING:
    import numpy as np

    from fxframework.kernels.arrays import I64, U8
else:
    from fxframework.kit.lazy import numpy as np

# A layout is a ``fxframework.wire.records.Layout``.

OTHER = -1
"""The kind of the class for all numbers that no other class of a family has."""
WORD = 8
LARGEST_CLAIM = 1 << 40
"""More than this, in units, is as much as this."""
LARGEST_POWER = 31
"""Sizes that are powers of two are ``unit << 31`` at most; a greater number says no more."""


def declaration_error(owner: type, field: Field | None, reason: str) -> PluginError:
    """Return the error for a declaration that contradicts itself."""
    place = owner.__qualname__
    if field is not None:
        place = f"{place}.{field.name}"
    return PluginError(f"{place}: {reason}", remedy="correct the declaration of the format")


def begin_alike(kind: Sequence[int], other_kind: Sequence[int]) -> bool:
    """Return whether kinds agree in the numbers that both have; the second one may be unused."""
    return all(number == other for number, other in zip(kind, other_kind, strict=False))


class Fields(tuple[Field, ...]):
    """Fields, found by identity: ``==`` of fields makes a condition."""

    __slots__ = ()

    def __contains__(self, wanted: object) -> bool:
        return any(field is wanted for field in self)


@attrs.frozen
class Place:
    """Where an integer lies from the start of a record: a word, and bits of it."""

    offset: int
    nbytes: int
    shift: int
    mask: int
    nbits: int = 0
    """Bits of the field; 0 of an integer that is all of its word."""

    @property
    def end(self) -> int:
        """The byte behind the word."""
        return self.offset + self.nbytes

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """Place, bytes, shift and mask, as the loops have them (``kernels.frames``)."""
        return self.offset, self.nbytes, self.shift, wrapped(self.mask)

    def get(
        self, data: bytes | memoryview, at: int, big: bool = False, mirrored: bool = False
    ) -> int:
        """Return the integer of the record at byte ``at``, which has these bytes."""
        at += self.offset
        word = int.from_bytes(data[at : at + self.nbytes], order_of(big))
        return word >> self.shift_in(mirrored) & self.mask

    def of(self, word: Any) -> Any:
        """Return the integer in a word that was read: an int, or int64 of any shape."""
        return word >> self.shift & self.mask

    def put(self, word: int, number: int) -> int:
        """Return the word with another integer in it. Raises ValueError if that does not fit."""
        if not 0 <= number <= self.mask:
            message = f"{number} is not 0 to {self.mask}"
            raise ValueError(message)
        return word & ~(self.mask << self.shift) | number << self.shift

    def get_many(self, many: Any) -> I64:
        """Return the integers of many parts (a ``Many``), which have these bytes."""
        word: I64 = many.reading.numbers.integers(
            many.start + self.offset, self.nbytes, big=many.big
        )
        if self.shift:
            word >>= self.shift
        if self.mask >= (1 << 63):
            return word
        return word & self.mask

    def put_many(self, data: U8, starts: I64, numbers: I64) -> None:
        """Write integers into records of a little-endian format that begin at these bytes."""
        if not starts.size:
            return
        sign = "i" if self.nbytes == 8 else "u"
        # A word at each byte of the data, whatever it is aligned to: they overlap.
        count = data.size - self.nbytes + 1
        words = np.ndarray((count,), f"<{sign}{self.nbytes}", data, 0, (1,))
        places = starts + self.offset
        other_bits = words[places].astype(np.int64) & wrapped(~(self.mask << self.shift))
        words[places] = other_bits | numbers << self.shift

    def shift_in(self, mirrored: bool) -> int:
        """Return how many bits of the word are below it."""
        if mirrored and self.nbits:
            return 8 * self.nbytes - self.nbits - self.shift
        return self.shift


@attrs.frozen
class Resume:
    """Where reading goes on after damage, as a family declares it (``wire.resume``)."""

    likely: Mapping[str, range]
    """What numbers of a record's head are likely to be."""
    alone: bool
    """Whether a record is believed that its items fill, whatever follows it."""
    holds: Any
    """The class of the items; None for those of the list that the record has left."""
    most: int
    """The most items that are looked at to see whether they fill the record."""


class Family:
    """What the records of a format, or the items of a list, have in common."""

    def __init__(self, base: type, options: Mapping[str, Any]) -> None:
        self.base = base
        self.nbytes: int = options.get("size", 0)
        """The size of every record; 0 if sizes differ."""
        self.word: int = options.get("word", WORD)
        """Bytes of the words of bits, where a field does not say it."""
        self.align: int = options.get("align", 1)
        """Records are padded to a multiple of it; the padding is part of the record."""
        self.pad: int = options.get("pad", 1)
        """Parts are followed by padding to a multiple of it, which is not part of them."""
        self.padding: bool = options.get("padding", False)
        """Whether zero bytes may lie between records."""
        self.most: int = options.get("most", 0)
        """The greatest size of a record; 0 for none."""
        self.rules: Mapping[int, int] = options.get("rules", {})
        """The format's own rules, by the numbers of the common ones that they replace."""
        self.resume: Resume | None = options.get("resume")
        """Where reading goes on after damage; by default where two records fit."""
        self.name: str = options.get("name", "")
        """The name of its records, if they have one name."""
        self.section: str = options.get("section", "")
        """The section of the format's document."""
        self.kinds: list[Number] = []
        """The fields that tell the kind."""
        self.size: Number | None = None
        """The field that tells the size: ``number * unit + plus`` bytes."""
        self.unit = 1
        self.plus = 0
        self.power = False
        """Whether sizes are ``unit << number`` instead."""
        self.places: dict[Field, Place] = {}
        """Where fields of the base class are that have a fixed place."""
        self.head = 0
        """Bytes up to the end of the last kind or size field."""
        self.members: list[Any] = []
        """The classes of the kinds."""
        self.versioned = False
        """Whether registers choose among its classes (``when``)."""
        self.other: Any = None
        """The class of all other kinds, if there is one."""

    @property
    def classes(self) -> list[Any]:
        """The classes of the kinds, and that of all others."""
        if self.other is None:
            return list(self.members)
        return [*self.members, self.other]

    def take_fields(self, layout: Any) -> None:
        """Find the kind and the size among the fields of the base class."""
        self.places = layout.places
        for field in layout.fields:
            if field.role and field not in self.places:
                raise declaration_error(self.base, field, "has no fixed place")
            if not isinstance(field, Number) or not field.role:
                continue
            # The framing reads kind and size of a record before anything else of it.
            place = self.places[field]
            self.head = max(self.head, place.offset + place.nbytes)
            if field.role == "kind":
                self.kinds.append(field)
            else:
                if self.size is not None or self.nbytes:
                    raise declaration_error(self.base, field, "is a second size of the records")
                self.size = field
                self.unit = field.size_unit
                self.plus = field.size_plus
                self.power = field.size_power
                if self.power and not field.public:
                    raise declaration_error(
                        self.base, field, "is a size that is a power of two, so it must be public"
                    )

    def add(self, cls: Any) -> None:
        """Add a class for a kind."""
        layout = cls.layout
        if layout.kind == (OTHER,):
            self.other = cls
            return
        if len(layout.kind) > len(self.kinds):
            raise declaration_error(
                cls, None, f"has {len(layout.kind)} kinds, the records {len(self.kinds)}"
            )
        for number, field in zip(layout.kind, self.kinds, strict=False):
            least, most = field.range
            if not least <= number <= most:
                reason = f"kind {number} does not fit its field"
                if len(layout.kind) > 1:
                    reason += "; two numbers are in the order of their fields"
                raise declaration_error(cls, field, reason)
        for member in self.members:
            if not begin_alike(layout.kind, member.layout.kind):
                continue
            if layout.when is None and member.layout.when is None:
                raise declaration_error(
                    cls, None, f"has the kind {layout.kind} of {member.__qualname__}"
                )
            # The framing bounds records by their kind alone, before registers are known.
            if layout.most != member.layout.most:
                raise declaration_error(
                    cls, None, f"says not the most={member.layout.most} of its kind"
                )
        self.members.append(cls)
        self.versioned |= layout.when is not None

    def choose(self, numbers: list[int], known: Mapping[Any, int]) -> Any:
        """Return the class for the numbers of a kind; None if there is none."""
        for cls in self.members:
            layout = cls.layout
            if any(kind != number for kind, number in zip(layout.kind, numbers, strict=False)):
                continue
            if layout.fits(known):
                return cls
        return self.other

    def choose_many(self, many: Any) -> Iterator[tuple[Any, I64]]:
        """Yield each class with the rows of ``many`` that are of it; None with those of none."""
        numbers = [self.places[field].get_many(many) for field in self.kinds]
        unassigned = np.ones(many.start.size, bool)
        for cls in self.members:
            # The first class that fits, as in ``choose``.
            is_member = unassigned.copy()
            for kind, column in zip(cls.layout.kind, numbers, strict=False):
                is_member &= column == wrapped(kind)
            if cls.layout.when is not None:
                is_member &= ~many.fails(cls.layout.when)
            if is_member.any():
                unassigned &= ~is_member
                yield cls, np.flatnonzero(is_member)
        if unassigned.any():
            yield self.other, np.flatnonzero(unassigned)

    def needed_of_many(self, many: Any) -> I64:
        """Return the bytes that parts of a stated size go up to, which do not fit."""
        assert self.size is not None  # noqa: S101 (asked only then)
        claimed = self.places[self.size].get_many(many)
        if self.power:
            sizes = self.unit << np.clip(claimed, 0, LARGEST_POWER)
        else:
            sizes = np.clip(claimed, 0, LARGEST_CLAIM) * self.unit + self.plus
        needed: I64 = many.start + np.maximum(sizes, self.head)
        return needed

    def check(self, cls: Any, data: memoryview, state: State | None, big: bool) -> None:
        """Raise RefusalError if bytes of a class would be read as those of another one."""
        if state is None or not (self.versioned or cls is self.other):
            return
        class_read = self.choose(self.numbers(data, 0, big, state.mirrored), state.registers)
        if class_read is cls:
            return
        name = "unknown" if class_read is None else class_read.record
        message = f"it would be read as {name!r}"
        remedy = f"write {name!r} here"
        if cls.layout.when is not None:
            message += f", because {condition_text(cls.layout.when, state.registers)}"
            remedy = f"write what makes {cls.layout.when!r} true before it"
        raise RefusalError(DOES_NOT_FIT, message, remedy)

    def numbers(self, data: memoryview, at: int, big: bool, mirrored: bool = False) -> list[int]:
        """Return the numbers of the kind of the record at a place."""
        return [self.places[field].get(data, at, big, mirrored) for field in self.kinds]

    def units_of(self, size: int, most: int) -> int:
        """Return what the size field says of so many bytes. Raises RefusalError if it cannot."""
        assert self.size is not None  # noqa: S101 (asked only then)
        number, remainder = divmod(size - self.plus, self.unit)
        least, greatest = self.size.range
        if remainder or not least <= number <= greatest or 0 < most < size:
            raise self.size.refused(DOES_NOT_FIT, f"the record would have {size} bytes, too many")
        return number

    def smallest_power(self, nbytes: int) -> int:
        """Return the number of the smallest size, a power of two, of so many bytes or more."""
        units = -(-max(nbytes, 1) // self.unit)  # rounded up
        return (units - 1).bit_length()  # 1 unit: 0, 2: 1, 3 and 4: 2, 5 to 8: 3

    def size_at(self, data: memoryview, at: int, big: bool, mirrored: bool = False) -> int:
        """Return the size that the record at a place claims; 0 if its fields imply it."""
        if self.size is None:
            return self.nbytes
        number = self.places[self.size].get(data, at, big, mirrored)
        return self.size_of(number)

    def size_of(self, number: int) -> int:
        """Return the size that a number of the size field says."""
        if self.power:
            return self.unit << min(number, LARGEST_POWER)
        return number * self.unit + self.plus
