"""Explain: what the modules of formats share that show the bytes of a record, field by field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeVar

from fxframework.errors import Rule, UsageError
from fxframework.io.source import Source
from fxframework.io.words import WORD, FieldView, explain_stretch, view_of
from fxframework.model.capture import Record

__all__ = ["Explainer", "check_offset", "record_at"]

R = TypeVar("R", bound=Record)


def check_offset(source: Source, offset: int) -> None:
    """Raise UsageError where the source has no byte at the offset."""
    if not 0 <= offset < source.size:
        raise UsageError(
            f"there is no byte {offset}: the file has {source.size} bytes",
            path=source.name,
            remedy=f"give an offset from 0 to {source.size - 1}" if source.size else "",
        )


def record_at(records: Iterable[R], offset: int) -> R:
    """The first of records in file order that reaches beyond byte ``offset``."""
    return next(record for record in records if record.offset + record.nbytes > offset)


class Explainer:
    """Explains the bytes of one record. A format's own knows its kinds of records.

    ``data`` is the whole file, ``wanted`` the byte that was asked for, ``order`` the byte order.
    """

    def __init__(
        self, data: Any, wanted: int, *, order: Literal["big", "little"] = "little"
    ) -> None:
        self.data = view_of(data)
        self.wanted = wanted
        self.order: Literal["big", "little"] = order

    def number(self, at: int, nbytes: int = WORD) -> int:
        """The unsigned number in the ``nbytes`` bytes from ``at``."""
        return int.from_bytes(self.data[at : at + nbytes], self.order)

    def stretch(
        self, at: int, end: int, name: str, section: str, meaning: str | None = None
    ) -> Iterator[FieldView]:
        """Bytes without fields, a word at a time; without a ``meaning`` each shows its bytes."""
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
        """Bytes in which no sound record was found, by the rule that says why."""
        return self.stretch(at, end, "damaged", rule.section, rule.title)
