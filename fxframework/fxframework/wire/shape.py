"""Shape: what a layout knows of its fields, and what follows from that alone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fxframework.wire.choices import Choice
from fxframework.wire.expressions import Expression
from fxframework.wire.families import OTHER, Family, Fields
from fxframework.wire.fields import Field, Mark, Number

__all__ = ["Shape", "is_reference"]


def is_reference(field: Field) -> bool:
    """Return whether a field shows an entry of a table."""
    if field.index is not None:
        return True
    return isinstance(field, Number) and field.refers is not None


class Shape:
    """The fields of a class, in the order of the file, as ``records.Layout`` finds them."""

    cls: Any
    family: Family
    fields: Fields
    kind: tuple[int, ...]
    public: Fields
    shown: Fields
    sets: dict[Any, Expression]
    clears: tuple[Any, ...]
    section: str
    size: int
    tail: int
    most: int
    word: int
    rest: Field | None
    measured: dict[Number, None]
    words: dict[Field, tuple[int, int]]
    word_of: dict[Field, Field]
    implied: dict[Field, list[tuple[str, Field, int, int]]]
    stated: dict[Field, Expression]
    choice_of: dict[Field, Choice]
    mark: Mark | None
    shows_type: bool
    keys: tuple[str, ...]
    derives: Callable[[Field], bool]
    is_reserved: Callable[[Field], bool]

    @functools.cached_property
    def fixed(self) -> int:
        """The size of all records of the class; 0 if sizes differ."""
        return self.size or self.family.nbytes

    @functools.cached_property
    def align(self) -> int:
        """The unit of the sizes of records."""
        unit = self.family.unit if self.family.size is not None else 1
        return max(unit, self.family.align)

    @functools.cached_property
    def reserved_fields(self) -> frozenset[Field]:
        """The numbers for which ``is_reserved`` holds."""
        numbers = (field for field in self.fields if isinstance(field, Number))
        return frozenset(filter(self.is_reserved, numbers))

    @functools.cached_property
    def constants(self) -> dict[Field, int]:
        """The numbers that all records of the class have."""
        constants: dict[Field, int] = dict.fromkeys(self.reserved_fields, 0)
        if self.kind != (OTHER,):
            # A kind may have one number where the family has two.
            constants |= zip(self.family.kinds, self.kind, strict=False)
        if self.mark is not None:
            constants[self.mark] = self.mark.number
        return constants

    @functools.cached_property
    def referring(self) -> list[Field]:
        """The fields that refer to tables, and choices of which some do."""
        referring: list[Field] = []
        for field in self.fields:
            fields_of_kinds = field.fields if isinstance(field, Choice) else (field,)
            if any(map(is_reference, fields_of_kinds)):
                referring.append(field)
        return referring

    @functools.cached_property
    def is_sized(self) -> bool:
        """Whether the size of an object is known before its fields are read."""
        return bool(self.fixed) or self.family.size is not None
