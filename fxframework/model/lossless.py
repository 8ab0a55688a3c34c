"""Lossless records: what the records of formats have in common that are objects of fields.

A format makes its own base of it, which says how a record without bytes of its own is refused.
"""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from fxframework.model.forms import Form

__all__ = ["LosslessRecord"]


@attrs.define(kw_only=True)
class LosslessRecord:
    """Anything that a file holds. Two are equal where they say the same, wherever.

    ``raw`` is the whole record as it stands in the file, where its fields alone would not give
    the same bytes.
    """

    record: ClassVar[str] = ""
    """The kind of record, as JSON has it."""

    offset: int = attrs.field(default=0, eq=False)
    """Byte offset in the (unpacked) file."""
    nbytes: int = attrs.field(default=0, eq=False)
    """Bytes that it takes in the file."""
    raw: bytes | memoryview | None = None

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""

    def to_json(self) -> dict[str, Any]:
        """The record as CONTRACTS §3 shows it, ready for ``json.dumps``."""
        out: dict[str, Any] = {
            "record": self.record,
            "offset": self.offset,
            "nbytes": self.nbytes,
        }
        self.show(out)
        if self.raw is not None:
            out["raw"] = self.raw.hex()
        return out

    @classmethod
    def parse(cls, form: Form) -> dict[str, Any]:  # noqa: ARG003 (kinds with fields ask it)
        """The fields, from JSON."""
        return {}

    def pack(self) -> bytes:
        """The bytes that the fields give; ``raw`` is not used.

        Raises WriteRefusedError where the format cannot hold a value.
        """
        raise NotImplementedError
