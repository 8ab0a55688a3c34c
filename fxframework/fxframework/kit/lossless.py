"""Lossless records: the base class of the formats' records, and the writer of edited records."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, cast

import attrs

from fxframework.errors import PluginError, Refusals, Rule, WriteRefusedError, did_you_mean, refusal
from fxframework.io.sink import Sink
from fxframework.kit.json_fields import JsonFields

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PADDING = "padding"
"""The kind of a padding record."""
BUFFER = 1 << 20
"""Bytes buffered before they are written."""


@attrs.define(kw_only=True, getstate_setstate=False)
class LosslessRecord:
    """A record of a file. Records are equal if their fields and ``raw`` are; offsets are ignored.

    ``raw`` holds the bytes of the record if its fields alone would not encode to the same bytes;
    otherwise it is None.
    """

    record: ClassVar[str] = ""
    """The kind of record, as in JSON."""

    offset: int = attrs.field(default=0, eq=False)
    """Byte offset in the (unpacked) file."""
    nbytes: int = attrs.field(default=0, eq=False)
    """Size in bytes."""
    raw: bytes | memoryview | None = None
    """Its bytes, if the fields would encode to others."""

    def __reduce_ex__(self, protocol: Any) -> str | tuple[Any, ...]:
        """Return the record as ``pickle`` and ``copy`` take it: a view of the file as its bytes."""
        if isinstance(self.raw, memoryview):
            self.raw = bytes(self.raw)
        return super().__reduce_ex__(protocol)

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into a JSON object."""

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON (docs/records.md), ready for ``json.dumps``."""
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
    def parse(cls, form: JsonFields) -> dict[str, Any]:  # noqa: ARG003 (kinds with fields use it)
        """Return the fields as keyword arguments, from JSON."""
        return {}

    def edited(self, **changes: Any) -> Self:
        """Return a copy with other fields, and without ``raw``."""
        return attrs.evolve(self, raw=None, **changes)

    def pack(self) -> bytes:
        """Encode the fields; ``raw`` is not used.

        Raises WriteRefusedError for a value that the format cannot represent.
        """
        raise PluginError(f"{type(self).__module__}.{type(self).__qualname__} does not define pack")


def without_raw(name: str, rule: Rule) -> WriteRefusedError:
    """Return the error for a record, by its name, that is only written as it was read."""
    return refusal(rule, f"{name}: can only be written from its raw bytes")


@attrs.define(kw_only=True, slots=False)  # so that it can be combined with a format's base class
class DamagedRecord(LosslessRecord):
    """Bytes that hold no valid record. ``raw`` is all of them, and may be a view of the file."""

    record: ClassVar[str] = "damaged"

    code: str
    """The code of the finding about them."""

    def show(self, out: dict[str, Any]) -> None:
        """Put the code into a JSON object."""
        out["code"] = self.code

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the code as a keyword argument; ``raw`` is required."""
        form.need("raw")
        return {"code": form.text("code")}


@attrs.define(kw_only=True, getstate_setstate=False)
class UnknownRecord(LosslessRecord):
    """A record of a kind that the format does not define; ``raw`` is all of it."""

    record: ClassVar[str] = "unknown"

    type: int
    """The number of the kind."""

    def show(self, out: dict[str, Any]) -> None:
        """Put the number of the kind into a JSON object."""
        out["type"] = self.type

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the number of the kind as a keyword argument; ``raw`` is required."""
        form.need("raw")
        return {"type": form.number("type")}


@attrs.define(kw_only=True, getstate_setstate=False)
class PaddingRecord(LosslessRecord):
    """Bytes between records, which mean nothing; ``raw`` has them unless all are zero."""

    record: ClassVar[str] = PADDING


R = TypeVar("R", bound=LosslessRecord)


def record_of_json(
    given: Any,
    kinds: Mapping[str, Any],
    where: str,
    rules: Refusals,
    choose: Callable[[JsonFields, Any], type[R]] | None = None,
) -> R:
    """Return the record that a JSON object describes, of one of the ``kinds``, given by name.

    Each kind is a class, or what ``choose`` returns the class of.
    ``offset`` and ``nbytes`` are kept if they are integers; padding takes its length from
    ``nbytes``. Messages name the format as ``where``. Raises WriteRefusedError, by one of the
    ``rules``.
    """
    if not isinstance(given, Mapping):
        message = f"a record must be a JSON object, not {reprlib.repr(given)}"
        raise refusal(rules.name, message)
    name = given.get("record")
    if not isinstance(name, str) or name not in kinds:
        message = f"{where} has no record {reprlib.repr(name)}"
        if isinstance(name, str):
            message += did_you_mean(name, kinds)
        raise refusal(rules.name, message)
    form = JsonFields(name, given, rules)
    form.used |= {"record", "offset", "nbytes"}
    record_class: type[R] = kinds[name] if choose is None else choose(form, kinds[name])
    values = record_class.parse(form)
    if name == PADDING:
        values["nbytes"] = form.number("nbytes")
    values["raw"] = form.octets("raw") if "raw" in form else None
    form.finish()
    # Only notes of where the record was: they are not checked.
    for key in ("offset", "nbytes"):
        if type(given.get(key)) is int:
            values[key] = given[key]
    return record_class(**values)


def padding_of(nbytes: int, rule: Rule, unit: int = 1) -> bytes:
    """Return the bytes of a padding record. Raises WriteRefusedError for an impossible number."""
    if nbytes < 0 or nbytes % unit:
        requirement = f"must be a multiple of {unit}, at least 0"
        raise refusal(rule, f"padding: invalid nbytes {nbytes}: {requirement}")
    try:
        return bytes(nbytes)
    except (MemoryError, OverflowError):
        raise refusal(rule, f"padding: {nbytes} bytes do not fit into memory") from None


class Encoder(Protocol):
    """Encodes the records of a format."""

    def encode(self, record: Any) -> bytes:
        """Return the bytes of a record, given as an object or as JSON."""
        ...

    def close(self) -> bytes:
        """Return bytes that are only known at the end; by default none."""
        return b""


class UnfitError(Exception):
    """Records cannot be packed many at a time, and are to be encoded one by one."""


class BlockPacker(Protocol):
    """Packs many records at a time (``fxframework.wire.packing.Packer``)."""

    def pack(
        self, records: Sequence[Any], single: Callable[[int], bytes]
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the bytes of records, given as JSON, and where those of each record end.

        ``single(row)`` returns the bytes of a record that has to be encoded alone. Raises
        UnfitError if none of these bytes count.
        """
        ...


class RecordRewriter:
    """Writes records to a sink (``fxframework.registry.RecordWriter``)."""

    def __init__(self, sink: Sink, encoder: Encoder) -> None:
        self.encoder = encoder
        self._sink = sink
        self._buffer = bytearray()

    def write(self, record: Any) -> None:
        """Write a record, given as an object of the format or as JSON.

        Raises WriteRefusedError, and writes nothing, if the format cannot represent it.
        """
        self.put(self.encoder.encode(record))

    def packer(self) -> BlockPacker | None:
        """Return an object that packs further records many at a time; None to write one by one.

        It continues from the records written so far. The default asks the encoder, if it has
        ``packer``.
        """
        packer = getattr(self.encoder, "packer", None)
        return None if packer is None else cast("BlockPacker | None", packer())

    def put_records(
        self,
        data: memoryview,
        ends: NDArray[np.int64],  # noqa: ARG002 (others place records by them)
        records: Sequence[Any],  # noqa: ARG002 (likewise)
    ) -> None:
        """Write the bytes of ``records``, given as JSON; ``ends`` has where each ends in ``data``.

        The default writes them one after another.
        """
        self.put(data)

    def put(self, data: bytes | memoryview) -> None:
        """Write encoded bytes."""
        self._buffer += data
        if len(self._buffer) >= BUFFER:
            self._flush()

    def close(self) -> None:
        """Write the buffered bytes to the sink, which stays open."""
        self._buffer += self.encoder.close()
        self._flush()

    def _flush(self) -> None:
        self._sink.write(self._buffer)
        self._buffer = bytearray()
