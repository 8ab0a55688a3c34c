"""Lossless records: the base of the record classes of formats, and how records are rewritten."""

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
"""Bytes that are buffered before they are written."""


@attrs.define(kw_only=True)
class LosslessRecord:
    """A record of a file. Two are equal if their fields and ``raw`` are; offsets do not count.

    ``raw`` holds the bytes of the record in the file, if its fields alone would not give the same
    bytes; else it is None.
    """

    record: ClassVar[str] = ""
    """The kind of record, as in JSON."""

    offset: int = attrs.field(default=0, eq=False)
    """Byte offset in the (unpacked) file."""
    nbytes: int = attrs.field(default=0, eq=False)
    """Bytes that it takes in the file."""
    raw: bytes | memoryview | None = None

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""

    def to_json(self) -> dict[str, Any]:
        """The record as JSON (docs/records.md), ready for ``json.dumps``."""
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


@attrs.define(kw_only=True, slots=False)  # so that it mixes with a format's own fields
class DamagedRecord(LosslessRecord):
    """Bytes without a sound record. ``raw`` is all of them, and may be a view of the file."""

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
    """The record that a JSON object describes, of one of the ``kinds``, which are by name.

    ``offset`` and ``nbytes`` are kept if they are integers; padding takes its length from
    ``nbytes``. Messages name the format as ``where``. Raises the error that ``refuse`` makes of a
    number and a message: 0401 for an unknown kind, 0402 for a field that is missing or unknown,
    0403 and 0404 for a value of the wrong type or out of range.
    """
    if not isinstance(given, Mapping):
        raise refuse("0401", f"a record must be a JSON object, not {reprlib.repr(given)}")
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
    """Encodes the records of a format."""

    def encode(self, record: Any) -> bytes:
        """The bytes of a record, or of its JSON."""

    def close(self) -> bytes:
        """The bytes that were buffered."""


class RecordRewriter:
    """Writes records into a sink (``fxframework.registry.RecordWriter``)."""

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
        """Write the buffered bytes into the sink, which stays open."""
        self._buffer += self.encoder.close()
        self._flush()

    def _flush(self) -> None:
        self._sink.write(self._buffer)
        self._buffer = bytearray()
