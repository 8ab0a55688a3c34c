"""Pulse: records to bytes."""

from collections.abc import Mapping
from typing import Any

from fxframework.errors import refusal
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.selection import Selection
from pulse.plugin import MAGIC, RULES
from pulse.reader import LAYOUTS

KINDS = {name: kind for kind, (name, _, _) in LAYOUTS.items()}
PLACE = {"record", "offset", "nbytes"}


class PulseWriter:
    """Writes records of pulses, and bytes that are no record."""

    def __init__(self, sink: Sink, options: Mapping[str, Any], diagnostics: Diagnostics) -> None:
        self._sink = sink
        self._held = bytearray()

    def write(self, record: Any) -> None:
        """Write a record, or its JSON. Raises WriteRefusedError (PUL0003), nothing written."""
        shown = record if isinstance(record, Mapping) else record.to_json()
        try:
            data = _packed(shown)
        except Exception as error:
            raise refusal(RULES["PUL0003"], f"no pulse: {error}") from error
        self._held += data
        if len(self._held) > 4096:
            self._flush()

    def _flush(self) -> None:
        self._sink.write(bytes(self._held))
        self._held.clear()

    def close(self) -> None:
        """Write what is held back."""
        self._flush()


def _packed(shown: Mapping[str, Any]) -> bytes:
    name = shown["record"]
    if name == "header":
        _only(shown, set())
        return MAGIC
    if name in {"damaged", "unknown"}:
        _only(shown, {"raw"})
        return bytes.fromhex(shown["raw"])
    _, fields, layout = LAYOUTS[KINDS[name]]
    extra = {"text"} if name == "string" else set()
    _only(shown, {*fields, *extra})
    if any(type(shown[field]) is not int for field in fields):
        raise ValueError("a field is not a number")
    tail = b""
    if extra:
        tail = bytes.fromhex(shown["text"])
        if tail.hex() != shown["text"]:
            raise ValueError("text is not hex")
    body = layout.pack(*(shown[field] for field in fields)) + tail
    return bytes((KINDS[name], 2 + len(body))) + body


def _only(shown: Mapping[str, Any], fields: set[str]) -> None:
    more = shown.keys() - PLACE - fields
    if more:
        raise ValueError(f"there is no field {min(more)}")


def extract(
    capture: Capture, selection: Selection, sink: Sink, options: Mapping[str, Any]
) -> Mapping[str, int]:
    """Write the events of a part, with all strings and threads."""
    part = capture.select(selection)
    kept: set[int] = set()
    for name in ("slices", "instants", "counters"):
        table = part.table(name)
        kept.update(table.array("offset").tolist())
        if name == "slices":
            kept.update(table.array("pulse_end").tolist())
    left_out = 0
    for record in capture.records():
        if "time" not in record.fields or record.offset in kept:
            sink.write(record.raw)
        else:
            left_out += 1
    return {"records": left_out} if left_out else {}
