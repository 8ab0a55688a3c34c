"""Numbers in files are claims: each one, set as high as it goes, costs no memory and no time.

The fields are those that `fxf explain` shows, which has them from the layouts of the formats, in
captures that hold every kind of record; those of text formats are found by their keys.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from fxframework.errors import FxError
from fxframework.host import default_host
from fxframework.io.source import Source

from ..cases import cases
from ..fuzz.targets import CONFORMANCE, TARGETS
from ..plugins.inspect.trees import every_type

ROOM = 256 << 20
"""Bytes of address space that reading a file of a few kilobytes may take."""
PATIENCE = 20.0
"""Seconds of the processor that it may take: a claim that is believed takes minutes."""
LARGEST = 1 << 14
RECORDS = 60
"""Records of a file whose fields are looked at."""
BINARY = tuple(name for name, reader in default_host().readers.items() if reader.explain)
NOT_A_NUMBER = {"damaged", "padding", "payload", "data", "contents", "message", "inline", "content"}
CLAIM = re.compile(r"size|length|arg_count|^count$|words|tag_bytes")
"""Fields that say how many bytes, words, arguments or slots there are."""
SILENT = {
    ("xray", "buffer_size"),  # of no effect where buffers have extents
    ("xray-basic", "buffer_size"),  # of no effect in basic mode
}


class Field(NamedTuple):
    """Bits of a word of a file."""

    data: bytes
    name: str
    offset: int
    low: int
    high: int

    def set_to(self, value: int) -> bytes:
        """The file with another number there."""
        width = 8 if self.high > 31 else -(-(self.high + 1) // 8)
        word = int.from_bytes(self.data[self.offset : self.offset + width], "little")
        mask = (1 << self.high + 1) - (1 << self.low)
        changed = word & ~mask | value << self.low & mask
        return (
            self.data[: self.offset]
            + changed.to_bytes(width, "little")
            + self.data[self.offset + width :]
        )


def seeds(format: str) -> Iterator[bytes]:
    """Small captures of a format."""
    if format == "trace":
        for case in json.loads((CONFORMANCE / "trace" / "records.json").read_bytes()):
            yield bytes.fromhex(case["hex"])
    if format == "inspect":
        yield every_type()
    yield from sorted((seed for seed in TARGETS[format].seeds()), key=len)


@functools.cache
def fields(format: str) -> list[Field]:
    """Each field of each kind of record once."""
    reader = default_host().reader(format)
    assert reader.explain is not None
    found: dict[tuple[str, str], Field] = {}
    known_forms = set()
    for seed in seeds(format):
        data = seed[:LARGEST]
        with contextlib.suppress(FxError), default_host().open(data, format=format) as capture:
            for record, _ in zip(capture.records(), range(RECORDS), strict=False):
                # Records that differ in numbers alone have the same fields.
                form = re.sub(r"\d+", "0", json.dumps(record.to_json()))
                if record.offset < len(data) and form not in known_forms:
                    known_forms.add(form)
                    for each in reader.explain(Source.open(data), record.offset):
                        field = Field(data, each.name, each.offset, each.low, each.high)
                        found.setdefault((each.section, each.name), field)
    return [field for field in found.values() if field.name not in NOT_A_NUMBER]


@contextlib.contextmanager
def little_room() -> Iterator[None]:
    """Refuse the process more than so many bytes beyond what it has."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    room = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def findings(data: bytes, format: str) -> set[tuple[str, int]]:
    """What is found, and how often, when all of a file is read; in little room and time."""
    begin = time.process_time()
    with little_room():
        try:
            with default_host().open(data, format=format) as capture:
                for name in capture.tables:
                    table = capture.table(name)
                    for column in table.columns:
                        len(table[column])
                for _ in capture.records_json():
                    pass
                found = set(capture.diagnostics.counts.items())
        except FxError as error:
            found = {(error.code or type(error).__name__, 1)}
    assert time.process_time() - begin < PATIENCE
    return found


@pytest.mark.parametrize("format", BINARY)
def test_a_field_as_high_as_it_goes(format: str) -> None:
    """Takes seconds: each field of each kind of record, twice, in every table."""
    silent = []
    assert len(fields(format)) > 5
    before = {data: findings(data, format) for data in {field.data for field in fields(format)}}
    for field in fields(format):
        width = field.high - field.low + 1
        values = {(1 << width) - 1, 1 << min(width - 1, 32)}
        for value in sorted(values):
            after = findings(field.set_to(value), format)
            if value == max(values) and CLAIM.search(field.name) and not after - before[field.data]:
                silent.append(field.name)
    assert {(format, name) for name in silent} == {each for each in SILENT if each[0] == format}


NUMBER = re.compile(rb"(?P<key>[\w-]+)\"?: ?(?P<value>-?\d+)\b")
"""A number in JSON or YAML, with its key."""


@cases("format", ["records", "llvm-yaml"])
def test_a_number_as_high_as_it_goes(format: str) -> None:
    """Takes seconds: each key of each kind of record, three times."""
    seen: dict[tuple[bytes, bytes], tuple[bytes, re.Match[bytes]]] = {}
    for seed in sorted(TARGETS[format].seeds(), key=len):
        data = seed[:LARGEST]
        for found in NUMBER.finditer(data):
            # In records the key is that of a kind of record.
            line = data[data.rfind(b"\n", 0, found.start()) + 1 : found.start()]
            kind = line.partition(b",")[0] if format == "records" else b""
            seen.setdefault((kind, found["key"]), (data, found))
    assert len(seen) > 8
    for data, found in seen.values():
        for value in (1 << 32, (1 << 63) - 1, 1 << 64):
            start, end = found.span("value")
            findings(data[:start] + b"%d" % value + data[end:], format)
