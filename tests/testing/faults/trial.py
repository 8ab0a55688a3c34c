"""Trial: a copy of pulse, broken in one place, and what the contracts say of it."""

from __future__ import annotations

import importlib
import itertools
import json
import shutil
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from faults import Fault

from fxframework.testing import (
    Contract,
    DeviceContract,
    ExporterContract,
    ReaderContract,
    Sample,
    StepContract,
    WriterContract,
)
from fxframework.testing.checkup import Result, run_contract
from fxframework.testing.contracts import Expected

PULSE = Path(__file__).parent / "pulse"
CAUGHT_BY: Mapping[str, str] = json.loads((PULSE.parent / "caught_by.json").read_text("utf-8"))
"""The test that notices each fault, so that it is tried first."""


def packed(kind: int, layout: str, *values: int, tail: bytes = b"") -> bytes:
    """A record."""
    body = struct.pack(layout, *values) + tail
    return bytes((kind, 2 + len(body))) + body


def text(id: int, data: bytes) -> bytes:
    return packed(1, "<H", id, tail=data)


def thread(id: int, pid: int, tid: int, name: int) -> bytes:
    return packed(2, "<HIIH", id, pid, tid, name)


def begin(id: int, name: int, time: int) -> bytes:
    return packed(3, "<HHq", id, name, time)


def end(id: int, time: int) -> bytes:
    return packed(4, "<Hq", id, time)


def mark(id: int, name: int, time: int, value: int) -> bytes:
    return packed(5, "<HHqq", id, name, time, value)


def count(id: int, name: int, time: int, value: int) -> bytes:
    return packed(6, "<HHqq", id, name, time, value)


EVENTS = b"".join(
    [
        b"PULSE001",
        text(1, b"load"), text(2, b"parse"), text(3, b"caf\xc3\xa9"),
        thread(1, 7, 9, 3), thread(2, 7, 10, 1),
        begin(1, 1, 1500), begin(1, 2, 1600), mark(1, 3, 1650, -5), end(1, 1700),
        begin(2, 2, 1710), count(1, 1, 1720, 40),
        begin(1, 3, 1730), end(1, 1740), end(1, 1800), mark(2, 1, 1810, 1 << 40),
        thread(3, 7, 9, 3), end(2, 1900), count(2, 1, 2000, -1),
    ]
)  # fmt: skip
EXPECTED = Expected(
    rows={"threads": 2, "slices": 4, "instants": 2, "counters": 2, "args": 2},
    values={
        "slices": [
            {"ts": 1_500_000, "dur": 300_000, "name": "load", "thread": "7/9"},
            {"ts": 1_600_000, "dur": 100_000, "name": "parse", "parent": 0},
        ],
        "instants": [{"ts": 1_650_000, "name": "café", "ticks": 1650}],
        "counters": [{"name": "load", "series": "value", "value_int": 40}],
        "args": [{"table": "instants", "parent": 0, "name": "value", "int": -5}],
        "threads": [{"pid": 7, "tid": 9, "name": "café"}],
    },
    findings=[],
    start_ns=1_500_000,
)
DAMAGED = EVENTS + b"\x09\x04ab" + mark(1, 1, 2100, 3) + b"\x05\xff"

LOSSES = ["PUL0002", "PUL0001"]


def samples(_self: Any) -> Iterable[Sample]:
    yield Sample("events.pulse", EVENTS, expected=EXPECTED)
    yield Sample("damaged.pulse", DAMAGED, sound=False, expected=Expected(findings=LOSSES))


def install(package: str, folder: Path, changes: Mapping[str, tuple[str, str]]) -> None:
    """Write a copy of pulse under another name, in which one text of each file is another."""
    target = folder / package
    shutil.copytree(PULSE, target, ignore=shutil.ignore_patterns("__pycache__"))
    for path in target.glob("*.py"):
        source = path.read_text("utf-8")
        if path.name in changes:
            old, new = changes[path.name]
            assert source.count(old) == 1, f"{old!r} is {source.count(old)} times in {path.name}"
            source = source.replace(old, new)
        # Imports and lazily named modules; not the names of formats, steps and devices.
        source = source.replace("from pulse.", f"from {package}.").replace(
            '"pulse.', f'"{package}.'
        )
        for kind in ("emit", "save", "{name}"):
            source = source.replace(f'"{package}.{kind}"', f'"pulse.{kind}"')
        source = source.replace(f'f"{package}.{{name}}"', 'f"pulse.{name}"')
        path.write_text(source, "utf-8")
    importlib.invalidate_caches()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def contracts(package: str) -> dict[str, type[Contract]]:
    """The contracts of a copy, by what they are of."""
    plugin = f"{package}.plugin"
    base: dict[str, Any] = {"plugin": plugin, "examples": 6, "samples": samples, "hang": 2.0}

    def refused(_self: Any) -> Iterator[tuple[dict[str, Any], str]]:
        yield {"record": "mark", "thread": 1, "name": 1, "time": 1 << 63, "value": 0}, "PUL0003"

    def records(_self: Any) -> Iterator[dict[str, Any]]:
        yield {"record": "header"}
        yield {"record": "string", "id": 1, "text": "61"}
        yield {"record": "mark", "thread": 1, "name": 1, "time": -7, "value": 3}

    def many(_self: Any) -> Iterator[dict[str, Any]]:
        yield {"record": "header"}
        yield from itertools.repeat({"record": "string", "id": 1, "text": "61" * 250})

    writer = {**base, "format": "pulse", "refused": refused, "records": records, "many": many}
    kinds: dict[str, tuple[type[Contract], dict[str, Any]]] = {
        "reader": (ReaderContract, {**base, "format": "pulse"}),
        "writer": (WriterContract, {**writer, "held": 1 << 18}),
        "exporter": (
            ExporterContract,
            {**base, "name": "lines", "format": "pulse", "check_output": check_lines},
        ),
        "step": (StepContract, {"plugin": plugin, "name": "pulse.emit"}),
        "keeping step": (StepContract, {"plugin": plugin, "name": "pulse.save"}),
        "device": (DeviceContract, {"plugin": plugin, "name": "pulse_ring"}),
    }
    return {noun: type(kind.__name__, (kind,), more) for noun, (kind, more) in kinds.items()}


def check_lines(_self: Any, output: bytes, capture: Any) -> None:
    """As an author would: one line for each event, in the order of the tables."""
    rows = sum(len(capture.table(name)) for name in ("slices", "instants"))
    lines = output.splitlines()
    assert lines[0] == b"time length name", f"the first line is {lines[0]!r}"
    events = [line for line in lines if line != b"time length name"]
    assert len(events) % max(rows, 1) == 0, f"{len(events)} lines of {rows} events"


PROCESSES = (
    "test_plugin_is_light_to_import",
    "test_another_process_reads_the_same",
    "test_another_process_exports_the_same",
)
"""Tests that start a process: tried for the faults that need one."""


def judge(package: str, fault: Fault) -> Iterator[Result]:
    """The failures of a copy: of the quick tests, and of the slow one that is for such a fault."""
    contract = contracts(package)[fault.of]
    contract.examples = fault.examples
    contract.hang = 30.0 if fault.by else contract.hang
    names = [name for name in dir(contract) if name.startswith("test_")]
    if fault.process:
        names = [name for name in PROCESSES if name in names]
    else:
        names = [name for name in names if name not in {*PROCESSES, *SLOW}]
        names += [fault.by] if fault.by else []
        # The test that caught it before comes first: nearly all of the time is the others'.
        before = CAUGHT_BY.get(f"{fault.of}: {fault.what}")
        names.sort(key=lambda name: name != before)
    for name in names:
        for result in run_contract(contract, only=[name]):
            if result.status == "failed":
                yield result


SLOW = {
    "test_any_bytes_are_survived", "test_bit_flips_are_survived",
    "test_memory_follows_the_input", "test_memory_in_batches_is_bounded",
    "test_time_follows_the_size", "test_sniff_never_raises", "test_many_records_come_back",
    "test_memory_does_not_grow_with_what_was_written", "test_damaged_captures_are_handled",
    "test_truncation_keeps_the_records_before_it",
    "test_wrong_values_are_refused_or_take_effect",
}  # fmt: skip
