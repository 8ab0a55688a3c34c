"""Base for modules that explain the bytes of a record field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from fxframework.errors import Rule, UsageError
from fxframework.io.source import Source
from fxframework.io.words import WORD, FieldView, explain_stretch, view_of
from fxframework.kit.shown import amount


def check_offset(source: Source, offset: int) -> None:
    """Raise UsageError if the offset is outside of the source."""
    if not 0 <= offset < source.size:
        size = amount(source.size, "byte")
        if source.unpacked:
            size += " unpacked"
        remedy = ""
        if source.size:
            remedy = f"give an offset from 0 to {source.size - 1}"
        raise UsageError(
            f"there is no byte {offset}: the file has {size}", path=source.name, remedy=remedy
        )


class Explainer:
    """Explains the bytes of a record; each format derives a class that knows its records.

    ``data`` is the whole file, ``wanted`` the offset to explain, ``order`` the byte order.
    """

    def __init__(
        self, data: Any, wanted: int, *, order: Literal["big", "little"] = "little"
    ) -> None:
        self.data = view_of(data)
        self.wanted = wanted
        self.order: Literal["big", "little"] = order

    def number(self, at: int, nbytes: int = WORD) -> int:
        """Return the unsigned number in the ``nbytes`` bytes from ``at``."""
        return int.from_bytes(self.data[at : at + nbytes], self.order)

    def stretch(
        self, at: int, end: int, name: str, section: str, meaning: str | None = None
    ) -> Iterator[FieldView]:
        """Yield a view per word of bytes without fields; ``meaning`` defaults to the bytes."""
        return explain_stretch(
            self.data,
            at,
            end,
            name,
            section,
            wanted=self.wanted,
            meaning=meaning,
            order=self.order,
        )

    def damaged(self, at: int, end: int, rule: Rule) -> Iterator[FieldView]:
        """Yield views of bytes that hold no valid record, with the rule they violate."""
        return self.stretch(at, end, "damaged", rule.section, rule.title)
