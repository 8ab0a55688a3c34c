"""Time and output grow no faster than the file, whatever is in it.

Every shape, at two sizes, goes through what the commands do. Output is counted; the time is the
process's own. A fit that fails is measured again, and the least times count, so that other work on
the machine decides nothing; one that fails still is measured at sizes four and sixteen times as
large, where what leaves the caches of the CPU leaves them at all sizes, and what grows with the
square is far off. `python tests/hostile/table.py` measures large files, and their memory.
"""

from __future__ import annotations

import contextlib
import gc
import io
import math
import time
from collections.abc import Callable, Sequence

import pytest

from fxframework.conversion import plan, plan_salvage
from fxframework.errors import FxError
from fxframework.host import default_host
from fxframework.io.packing import PACKINGS, Packing
from fxframework.io.sink import Sink
from fxframework.kit import scanned
from fxframework.model.capture import Capture
from fxframework.registry import parse_options

from ..cases import cases
from .shapes import SHAPES

BASES = (10_000, 40_000, 160_000)
"""Bytes of the smallest file; of the larger ones only where times of those before fit badly.

Noise of 10,000 or 40,000 bytes holds no record, so that salvage refuses it at once; eight times as
much holds some. From 160,000 bytes on all of it is searched.
"""
TIMES = (1, 8)
MOST = 1.1
"""Greatest exponent."""
TRIES = 15
"""Most measurements of a base: a slow phase of the machine may last for seconds."""
LEAST = 2e-3
"""Seconds below which a time says nothing."""


Work = Callable[[Capture], int]


def look(capture: Capture) -> int:
    """What `fxf info` and `fxf verify` do."""
    capture.summary()
    capture.scan()
    return len(capture.diagnostics.sorted())


def cat(capture: Capture) -> int:
    return export(capture, "text")


def records(capture: Capture) -> int:
    return export(capture, "records")


def table(capture: Capture) -> int:
    return export(capture, "csv")


def chrome_json(capture: Capture) -> int:
    return export(capture, "json")


def xray(capture: Capture) -> int:
    sink = Sink.nowhere()
    plan(default_host(), [capture], "out.xray", to="xray").run(sink)
    return sink.written


def salvage(capture: Capture) -> int:
    sink = Sink.nowhere()
    plan_salvage(default_host(), capture, f"out{SUFFIXES[capture.format]}").run(sink)
    return sink.written


def export(capture: Capture, name: str) -> int:
    exporter = default_host().exporter(name, format=capture.format, tables=capture.tables)
    sink = Sink.nowhere()
    sink.budget = capture.request.budget
    session = exporter.open(sink, parse_options({}, exporter.options, whose=name))
    session.write(capture)
    session.close()
    return sink.written


WORK = (look, cat, records, table)
SUFFIXES = {"trace": ".fxt", "log": ".fxlog", "inspect": ".inspect"}
OWN = {"trace": (chrome_json, xray, salvage), "log": (salvage,), "inspect": (salvage,)}
"""What formats do beside, in ways of their own."""


def measured(data: bytes, format: str, work: Work) -> tuple[float, int]:
    """Seconds of the process, and bytes of output."""
    # What many rows share may fill the output up to its limit, which is in proportion, too.
    options = {"max_output": 64 * len(data)}
    gc.disable()  # what other tests left would be looked through
    started = time.process_time()
    try:
        with default_host().open(data, format=format, options=options) as capture:
            nbytes = work(capture)
    except FxError:
        nbytes = 0
    finally:
        seconds = time.process_time() - started
        gc.enable()
    return seconds, nbytes


def exponent(values: list[float]) -> float:
    """The exponent of the power of the size that the values grow with."""
    return math.log(values[-1] / values[0], TIMES[-1] / TIMES[0])


def least_times(files: list[bytes], format: str, work: Work) -> list[float]:
    """Least seconds for each file, measured until they fit, or often enough."""
    best = [math.inf] * len(files)
    for _ in range(TRIES):
        for number, data in enumerate(files):
            seconds, nbytes = measured(data, format, work)
            best[number] = min(best[number], max(seconds, LEAST))
            assert nbytes <= 64 * len(data) + 1_000_000
        if exponent(best) <= MOST:
            break
    return best


def check(make: Callable[[int], bytes], format: str, work: Work) -> float:
    """Fail if time grows faster than the files of so many bytes; return seconds for a byte."""
    best = [math.inf]
    for base in BASES:
        files = [make(times * base) for times in TIMES]
        best = least_times(files, format, work)
        if exponent(best) <= MOST:
            return best[-1] / len(files[-1])
    raise AssertionError(f"{work.__name__}: {[f'{seconds:.4f}' for seconds in best]} s")


def in_one_capture(data: bytes, format: str, works: Sequence[Work]) -> list[tuple[float, int]]:
    """Seconds and bytes of output of each work, of which the first reads what all share.

    A work that fails takes no time: it is to be measured by itself.
    """
    results = []
    gc.disable()
    try:
        with default_host().open(data, format=format) as capture:
            for work in works:
                started = time.process_time()
                with contextlib.suppress(FxError):
                    nbytes = work(capture)
                    results.append((time.process_time() - started, nbytes))
                    continue
                results.append((0.0, 0))
    finally:
        gc.enable()
    return results


@pytest.mark.parametrize("name", SHAPES)
def test_growth(name: str) -> None:
    format, make = SHAPES[name]
    works = (*WORK, *OWN.get(format, ()))
    files = [make(times * BASES[0]) for times in TIMES]
    small, large = (in_one_capture(data, format, works) for data in files)
    for work, (small_seconds, _), (large_seconds, nbytes) in zip(works, small, large, strict=True):
        seconds = [max(small_seconds, LEAST), large_seconds]
        # What does not fit is measured by itself, as often as it takes.
        fits = large_seconds > 0 and exponent(seconds) <= MOST
        if not fits or nbytes > 64 * len(files[-1]):
            check(make, format, work)


@cases("packing", PACKINGS, ids=lambda packing: packing.name)
def test_members_of_a_few_bytes(packing: Packing) -> None:
    event = SHAPES["trace-instants"][1](16)
    packed = io.BytesIO()
    with packing.packer(packed) as file:
        file.write(event)
    member = packed.getvalue()
    seconds = check(lambda nbytes: member * (nbytes // 5), "trace", look)
    assert seconds < 3e-6  # for a byte; a look at what follows is 20 times that


@cases("packing", PACKINGS, ids=lambda packing: packing.name)
def test_a_bomb_is_read_part_by_part(packing: Packing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns take what the compressed file allows, not what it unpacks to; rows are the same."""
    monkeypatch.setattr(scanned, "PACKED_FLOOR", 0)
    events = SHAPES["trace-instants"][1](16)
    events += events[-16:] * 10_000
    packed = io.BytesIO()
    with packing.packer(packed) as file:
        file.write(events)
    with default_host().open(events) as plain, default_host().open(packed.getvalue()) as bomb:
        assert (plain.fits_memory, bomb.fits_memory) == (True, False)
        assert sum(map(len, bomb.batches("instants"))) == len(plain.table("instants")) == 10_001


def test_every_reader_has_shapes() -> None:
    assert {format for format, _ in SHAPES.values()} == set(default_host().readers)
