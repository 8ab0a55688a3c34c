"""Events made by chance, as the packers take them, and traces read back as columns."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np

from fx_xray.read.capture import BasicCapture, EventCapture, FdrCapture
from fx_xray.read.events import Events
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest

THREADS = 3
OPTIONS = {"instr_map": "", "demangle": True, "cycle_frequency": 0, "byte_order": ""}
STEPS = (-50, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 33)
"""Ticks around what a delta holds, and one that goes back."""


def opened(data: bytes, form: str = "xray", **options: Any) -> EventCapture:
    open_it = BasicCapture if form == "xray-basic" else FdrCapture
    return open_it(Source.open(data), OpenRequest(options={**OPTIONS, **options}))


def chance_events(seed: int, count: int = 200) -> tuple[Events, np.ndarray[Any, Any]]:
    """Events of three threads, with what a program does not do either; and their payloads."""
    chance = random.Random(seed)
    rows: list[list[int]] = []
    payloads = bytearray()
    times = [chance.randrange(1 << 40) for _ in range(THREADS)]
    cpus = [0] * THREADS
    for _ in range(count):
        kind = chance.choice((0, 0, 0, 1, 1, 2, 3, 4, 4, 5, 6))
        if kind == 4 and rows and rows[-1][0] <= 4:
            if rows[-1][0] == 0:
                rows[-1][0] = 3
            value = chance.getrandbits(64)
            rows.append([4, *rows[-1][1:5], value, 0])
            continue
        thread = chance.randrange(THREADS)
        if chance.random() < 0.05:
            cpus[thread] = chance.choice((0, 1, 2, 255, 300))
        step = chance.choice((0, 1, 100)) if chance.random() < 0.9 else chance.choice(STEPS)
        times[thread] += step
        function, value, size = chance.randrange(1, 1 << chance.choice((3, 16))), 0, 0
        if kind >= 5:
            size, value = chance.randrange(1, 40), len(payloads)
            payloads += bytes(chance.randrange(97, 120) for _ in range(size))
            function = 0 if kind == 5 else function & 0xFFFF
        kind = 0 if kind == 4 else kind
        rows.append([kind, function, times[thread], cpus[thread], thread, value, size])
    kinds, functions, tscs, cpu, threads, values, sizes = zip(*rows, strict=True)
    events = Events(
        kind=np.array(kinds, np.uint8),
        function=np.array(functions, np.uint32),
        tsc=np.array(tscs, np.uint64),
        cpu=np.array(cpu, np.uint16),
        thread=np.array(threads, np.int32),
        offset=np.zeros(len(rows), np.int64),
        value=np.array(values, np.uint64),
        size=np.array(sizes, np.int32),
    )
    return events, np.frombuffer(bytes(payloads), np.uint8)


def packed_events(
    events: Events,
    payloads: Any,
    version: int,
    *,
    basic: bool = False,
    size: int = 512,
    step: int = 0,
) -> tuple[bytes, dict[str, int]]:
    """The bytes of a trace of them, given ``step`` at once, and what had no place."""
    from fx_xray.format import FileHeader
    from fx_xray.write.packer import BasicPacker, RecorderPacker
    from fxframework.io.sink import Sink

    sink = Sink.memory()
    header = FileHeader(
        type=0 if basic else 1,
        version=version,
        cycle_frequency=1_000_000_000,
        buffer_size=0 if basic else size,
    )
    kind = BasicPacker if basic else RecorderPacker
    packer: Any = kind(sink, header)
    packer.add_threads(np.full(THREADS, 7), np.arange(THREADS) + 100)
    count = len(events.kind)
    for start in range(0, count, step or count):
        part = slice(start, start + (step or count))
        packer.write(Events(*(column[part] for column in events)), payloads)
    dropped = dict(packer.close())
    return sink.getvalue(), dropped


def by_thread(
    events: Iterable[Events], payloads: Any, tids: Any
) -> dict[int, list[tuple[Any, ...]]]:
    """What happened on each thread, by its number: kind, function, time, CPU, value."""
    found: dict[int, list[tuple[Any, ...]]] = {}
    for chunk in events:
        for kind, function, tsc, cpu, thread, _, value, size in zip(
            *(column.tolist() for column in chunk), strict=True
        ):
            data = bytes(payloads[value : value + size]) if kind >= 5 else value
            row = (kind, function, tsc, cpu, data)
            found.setdefault(int(tids[thread]), []).append(row)
    return found
