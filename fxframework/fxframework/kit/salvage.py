"""Salvage: separates the sound records of a damaged capture from its losses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import attrs

from fxframework.findings import singular
from fxframework.model.capture import kind_of

if TYPE_CHECKING:
    from fxframework.model.capture import Capture, Record

UNSOUND = frozenset({"damaged", "padding"})
"""Kinds of records, as named in JSON, that are not sound."""


@attrs.frozen
class Loss:
    """A stretch of a capture that could not be written unchanged."""

    offset: int
    """Byte offset in the (unpacked) file."""
    nbytes: int
    """Its size."""
    what: str
    """The kind of record, as record JSON names it."""
    message: str = attrs.field(converter=singular)
    """What is wrong with it, and what was done about it."""
    code: str = ""
    """The code of the finding about it, or the empty string."""
    part: bool = False
    """Whether it is part of a record, which is written without it."""


def salvage_records(capture: Capture, write: Callable[[Any], None]) -> Iterator[Loss]:
    """Pass every sound record of a capture to ``write``; yield each damaged stretch.

    Exceptions of ``write`` propagate.
    """
    for record in capture.checked_records():
        if kind_of(record) in UNSOUND:
            yield lost(record)
        else:
            write(record)


def lost(record: Record) -> Loss:
    """Return the loss for a damaged stretch."""
    shown = record.to_json()
    what = shown["record"]
    return Loss(
        record.offset,
        record.nbytes,
        what,
        f"{record.nbytes} bytes are not a record; left out",
        shown.get("code", ""),
    )
