"""Lossless records: what the records of formats have in common that are objects of fields.

A format makes its own base of it, which says how a record without bytes of its own is refused.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, TypeVar

import attrs

from fxframework.errors import PluginError, WriteRefusedError, did_you_mean
from fxframework.io.sink import Sink
from fxframework.kit.json_fields import JsonFields

__all__ = ["DamagedRecord", "LosslessRecord", "RecordRewriter", "record_of_json"]

PADDING = "padding"
BUFFER = 1 << 20
"""Bytes that are held back until they are written."""


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
    def parse(cls, form: JsonFields) -> dict[str, Any]:  # noqa: ARG003 (kinds with fields ask it)
        """The fields, from JSON."""
        return {}

    def pack(self) -> bytes:
        """The bytes that the fields give; ``raw`` is not used.

        Raises WriteRefusedError where the format cannot hold a value.
        """
        raise PluginError(f"{type(self).__module__}.{type(self).__qualname__} does not define pack")


@attrs.define(kw_only=True)
class DamagedRecord(LosslessRecord):
    """Bytes in which no sound record was found; ``raw``, all of them, may be a view of the file."""

    record: ClassVar[str] = "damaged"

    code: str
    """The finding that says why."""

    def show(self, out: dict[str, Any]) -> None:
        """Put the code into JSON."""
        out["code"] = self.code

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """The code; ``raw`` must be there."""
        form.need("raw")
        return {"code": form.text("code")}


R = TypeVar("R", bound=LosslessRecord)


def record_of_json(
    given: Any,
    kinds: Mapping[str, type[R]],
    where: str,
    refuse: Callable[[str, str], WriteRefusedError],
) -> R:
    """The record that a JSON object of CONTRACTS §3 says, of one of the kinds, by their names.

    ``offset`` and ``nbytes`` are kept as places, where they are numbers; padding has its length
    from ``nbytes``. ``where`` says in messages what has no other records. Raises what ``refuse``
    gives of a number and a message: 0401 for no such record, 0402 for a field that is missing or
    unknown, 0403 and 0404 for a value of the wrong kind or size.
    """
    if not isinstance(given, Mapping):
        raise refuse("0401", f"a record is an object, not {reprlib.repr(given)}")
    name = given.get("record")
    if not isinstance(name, str) or name not in kinds:
        hint = did_you_mean(name, kinds) if isinstance(name, str) else ""
        raise refuse("0401", f"{where} has no record {reprlib.repr(name)}{hint}")
    form = JsonFields(name, given, refuse)
    form.used |= {"record", "offset", "nbytes"}
    if name == PADDING:
        form.number("nbytes")
    values = kinds[name].parse(form)
    raw = form.octets("raw") if "raw" in form else None
    form.finish()
    places = {key: given[key] for key in ("offset", "nbytes") if type(given.get(key)) is int}
    return kinds[name](raw=raw, **places, **values)


class Encoder(Protocol):
    """What makes bytes of a format's records."""

    def encode(self, record: Any) -> bytes:
        """The bytes of a record, or of its JSON."""
        ...

    def close(self) -> bytes:
        """What was held back."""
        ...


class RecordRewriter:
    """Puts one record after the other into a sink (``fxframework.registry.RecordWriter``)."""

    def __init__(self, sink: Sink, encoder: Encoder) -> None:
        self.encoder = encoder
        self._sink = sink
        self._buffer = bytearray()

    def write(self, record: Any) -> None:
        """Write a record: one of the format's own, or its JSON.

        Raises WriteRefusedError, nothing of it written, where the format cannot hold it.
        """
        self.put(self.encoder.encode(record))

    def put(self, data: bytes) -> None:
        """Write bytes of a record."""
        self._buffer += data
        if len(self._buffer) >= BUFFER:
            self._flush()

    def close(self) -> None:
        """Put what is held back into the sink, which stays open."""
        self._buffer += self.encoder.close()
        self._flush()

    def _flush(self) -> None:
        self._sink.write(self._buffer)
        self._buffer = bytearray()
