"""Families: what the records of a format, or the items of a list, have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from fxframework.errors import PluginError
from fxframework.wire.cursor import RefusalError, order_of
from fxframework.wire.expressions import condition_text, wrapped
from fxframework.wire.fields import Field, Number
from fxframework.wire.state import State

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from fxframework.kit.lazy import numpy as np

__all__ = ["OTHER", "Family", "Fields", "Place", "Resume", "declaration_error"]

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
    place = owner.__qualname__ if field is None else f"{owner.__qualname__}.{field.name}"
    return PluginError(f"{place}: {reason}", remedy="correct the declaration of the format")


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

    def get(
        self, data: bytes | memoryview, at: int, big: bool = False, mirrored: bool = False
    ) -> int:
        """Return the integer of the record at byte ``at``, which has these bytes."""
        at += self.offset
        word = int.from_bytes(data[at : at + self.nbytes], order_of(big))
        return word >> self.shift_in(mirrored) & self.mask

    def get_many(self, c: Any) -> NDArray[np.int64]:
        """Return the integers of many parts (a ``Many``), which have these bytes."""
        word: NDArray[np.int64] = c.reading.numbers.integers(
            c.start + self.offset, self.nbytes, big=c.big
        )
        if self.shift:
            word >>= self.shift
        return word if self.mask >= (1 << 63) else word & self.mask

    def put_many(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> None:
        """Write integers into records of a little-endian format that begin at these bytes."""
        if not starts.size:
            return
        sign = "i" if self.nbytes == 8 else "u"
        count = data.size - self.nbytes + 1
        words = np.ndarray((count,), f"<{sign}{self.nbytes}", data, 0, (1,))
        places = starts + self.offset
        others = words[places].astype(np.int64) & wrapped(~(self.mask << self.shift))
        words[places] = others | numbers << self.shift

    def shift_in(self, mirrored: bool) -> int:
        """Return how many bits of the word are below it."""
        return 8 * self.nbytes - self.nbits - self.shift if mirrored and self.nbits else self.shift


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
        """The format's own rules, by the numbers of those that they take the place of."""
        self.resume: Resume | None = options.get("resume")
        """Where reading goes on after damage; by default where two records fit."""
        self.name: str = options.get("name", "")
        """The name of its records, if they have one name."""
        self.section: str = options.get("section", "")
        """The section of the format's document."""
        self.kinds: list[Number] = []
        self.size: Number | None = None
        self.unit, self.plus = 1, 0
        self.power = False
        """Whether sizes are ``unit << number``."""
        self.places: dict[Field, Place] = {}
        self.head = 0
        """Bytes up to the end of the last kind or size field."""
        self.members: list[Any] = []
        self.versioned = False
        """Whether the state chooses among its classes."""
        self.other: Any = None

    def take_fields(self, layout: Any) -> None:
        """Find the kind and the size among the fields of the base class."""
        self.places = layout.places()
        for field in layout.fields:
            if field.role and field not in self.places:
                raise declaration_error(self.base, field, "has no fixed place")
            if not isinstance(field, Number) or not field.role:
                continue
            place = self.places[field]
            self.head = max(self.head, place.offset + place.nbytes)
            if field.role == "kind":
                self.kinds.append(field)
            else:
                if self.size is not None or self.nbytes:
                    raise declaration_error(self.base, field, "is a second size of the records")
                self.size = field
                self.unit, self.plus = field.size_unit, field.size_plus
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
                raise declaration_error(cls, field, f"kind {number} does not fit its field")
        for other in self.members:
            same = all(a == b for a, b in zip(layout.kind, other.layout.kind, strict=False))
            if same and layout.when is None and other.layout.when is None:
                raise declaration_error(
                    cls, None, f"has the kind {layout.kind} of {other.__qualname__}"
                )
            if same and layout.most != other.layout.most:
                most = other.layout.most
                raise declaration_error(cls, None, f"says not the most={most} of its kind")
        self.members.append(cls)
        self.versioned |= layout.when is not None

    def choose(self, numbers: list[int], known: Mapping[Any, int]) -> Any:
        """Return the class for the numbers of a kind; None if there is none."""
        for cls in self.members:
            layout = cls.layout
            if any(a != b for a, b in zip(layout.kind, numbers, strict=False)):
                continue
            if layout.fits(known):
                return cls
        return self.other

    def choose_many(self, c: Any) -> Iterator[tuple[Any, NDArray[np.int64]]]:
        """Yield each class with the rows of ``c`` (a ``Many``) that are of it; None for none."""
        numbers = [self.places[field].get_many(c) for field in self.kinds]
        left = np.ones(c.start.size, bool)
        for cls in self.members:
            mine = left.copy()
            for kind, column in zip(cls.layout.kind, numbers, strict=False):
                mine &= column == wrapped(kind)
            if cls.layout.when is not None:
                mine &= ~c.fails(cls.layout.when)
            if mine.any():
                left &= ~mine
                yield cls, np.flatnonzero(mine)
        if left.any():
            yield self.other, np.flatnonzero(left)

    def sizes_of_many(self, c: Any) -> NDArray[np.int64]:
        """Return the sizes that parts claim; one that is far too large is -1."""
        assert self.size is not None  # noqa: S101 (asked only then)
        claimed = self.places[self.size].get_many(c)
        most = LARGEST_POWER if self.power else c.reading.data.size
        fits = (claimed >= 0) & (claimed <= most)
        if self.power:
            return np.where(fits, self.unit << (claimed & LARGEST_POWER), -1)
        return np.where(fits, claimed * self.unit + self.plus, -1)

    def needed_of_many(self, c: Any) -> NDArray[np.int64]:
        """Return the bytes that parts of a stated size go up to, which do not fit."""
        assert self.size is not None  # noqa: S101 (asked only then)
        claimed = self.places[self.size].get_many(c)
        if self.power:
            sizes = self.unit << np.clip(claimed, 0, LARGEST_POWER)
        else:
            sizes = np.clip(claimed, 0, LARGEST_CLAIM) * self.unit + self.plus
        needed: NDArray[np.int64] = c.start + np.maximum(sizes, self.head)
        return needed

    def check(self, cls: Any, data: memoryview, state: State | None, big: bool) -> None:
        """Raise RefusalError if bytes of a class would be read as those of another one."""
        if state is None or not (self.versioned or cls is self.other):
            return
        found = self.choose(self.numbers(data, 0, big, state.mirrored), state.registers)
        if found is cls:
            return
        name = "unknown" if found is None else found.record
        why, remedy = f"it would be read as {name!r}", f"write {name!r} here"
        if cls.layout.when is not None:
            why += f", because {condition_text(cls.layout.when, state.registers)}"
            remedy = f"write what makes {cls.layout.when!r} true before it"
        raise RefusalError(404, why, remedy)

    def numbers(self, data: memoryview, at: int, big: bool, mirrored: bool = False) -> list[int]:
        """Return the numbers of the kind of the record at a place."""
        return [self.places[field].get(data, at, big, mirrored) for field in self.kinds]

    def units_of(self, size: int, most: int) -> int:
        """Return what the size field says of so many bytes. Raises RefusalError if it cannot."""
        assert self.size is not None  # noqa: S101 (asked only then)
        value, rest = divmod(size - self.plus, self.unit)
        least, greatest = self.size.range
        if rest or not least <= value <= greatest or 0 < most < size:
            raise self.size.refused(404, f"the record would have {size} bytes, too many")
        return value

    def smallest_power(self, nbytes: int) -> int:
        """Return the number of the smallest size, a power of two, of so many bytes or more."""
        return (-(-max(nbytes, 1) // self.unit) - 1).bit_length()

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
