"""fx_inspect keeps the contracts that every reader and writer keeps."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from fxframework.registry import Confidence
from fxframework.testing import ReaderContract, Sample, WriterContract

from .trees import FILES, every_type, image, sized, vectors

SOUND = ("val_int_property", "drv_v2_header_order0_no_size", "cpp_InterpretInlineStringReferences")
BROKEN = ("val_type_0xb0", "val_array_format3", "drv_truncated_last_block")


def _samples() -> Iterable[Sample]:
    # Their headers give no size, so that the zeros behind the blocks can be left out.
    for name in SOUND:
        data = bytes.fromhex(FILES[name]["hex"])
        yield Sample(f"{name}.inspect", data + bytes(16 + -len(data) % 16))
    yield Sample("legacy.vmo", image(vectors("legacy_v0")[1])[:160])
    yield Sample("every_type.inspect", sized(every_type().rstrip(b"\0") + bytes(64)))
    for name in BROKEN:
        yield Sample(f"{name}.inspect", bytes.fromhex(FILES[name]["hex"]), sound=False)
    yield Sample("empty.inspect", b"", confidence=Confidence.POSSIBLE, sound=False)


class TestReader(ReaderContract):
    plugin = "fx_inspect.plugin"
    format = "inspect"

    def samples(self) -> Iterable[Sample]:
        return _samples()


HEADER: dict[str, Any] = {
    "record": "block", "type": "HEADER", "order": 0, "magic": "INSP", "version": 2,
    "generation": 0, "vmo_size": None,
}  # fmt: skip
VALUE: dict[str, Any] = {"record": "block", "order": 0, "parent": 0, "name": 2}
INT = VALUE | {"type": "INT_VALUE", "value": -1}
NAME: dict[str, Any] = {"record": "block", "type": "NAME", "order": 0, "length": 1, "name": "n"}


class TestWriter(WriterContract):
    plugin = "fx_inspect.plugin"
    format = "inspect"
    derived = WriterContract.derived | {"index", "locked", "frozen", "capacity"}

    def samples(self) -> Iterable[Sample]:
        return _samples()

    def records(self) -> Iterable[Mapping[str, Any]]:
        yield HEADER
        yield INT
        yield NAME

    def refused(self) -> Iterable[tuple[Mapping[str, Any], str]]:
        yield INT | {"record": "blok"}, "FXI0401"
        yield INT | {"type": "INT"}, "FXI0401"
        yield VALUE | {"type": "INT_VALUE"}, "FXI0402"
        yield INT | {"colour": "red"}, "FXI0402"
        yield INT | {"value": "one"}, "FXI0403"
        yield INT | {"parent": 1 << 24}, "FXI0404"
        yield NAME | {"name": "x" * 9, "length": 9}, "FXI0405"
        yield NAME | {"length": 2}, "FXI0409"

    def many(self) -> Iterable[Mapping[str, Any]]:
        yield HEADER
        for number in itertools.count():
            yield INT | {"value": number}
            yield NAME | {"order": 7, "length": 2000, "name": "n" * 2000}
