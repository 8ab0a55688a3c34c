"""What ``python -m tests.bench`` measures: unusual shapes, stages, growth."""

from __future__ import annotations

import importlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from fxframework.conversion import plan
from fxframework.errors import FxError
from fxframework.host import Host
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.capture import Capture, OpenRequest
from fxframework.registry import Reader
from fxframework.targets import target_name, targets_for

from .measures import TABLES, peak_memory, touch
from .yardsticks import YARDSTICKS

FAMILIES = ("inspect", "log", "trace", "xray")
"""Formats that have shapes of their own, each in a module of ``shapes``."""
RECORDS_OF = 1 << 16
"""Bytes of a sample in which records are counted, to estimate their size."""
SMALL = 10_000
"""Bytes of a sample made only to find its possible targets."""
COPIES = 5
"""Number of copies, of which the fastest counts."""
PATIENCE = 10.0
"""Sizes for which a stage is expected to take more seconds than this are skipped."""

Shape = Callable[[int], bytes]


class Row(NamedTuple):
    """Figures of one case of a format, by name; those that begin with "/" are ratios."""

    format: str
    case: str
    figures: dict[str, float]


# --- Unusual shapes -------------------------------------------------------------------------------


def own_shapes(format: str) -> Mapping[str, Shape]:
    """The unusual shapes of a format, by name: they make files of about so many bytes."""
    if format not in FAMILIES:
        return {}
    module = importlib.import_module(f"{__package__}.shapes.{format}")
    shapes: Mapping[str, Shape] = module.shapes()
    return shapes


def damaged(data: bytes, every: int) -> bytes:
    """The bytes with every ``every``-th one inverted, except the first."""
    out = np.frombuffer(data, np.uint8).copy()
    out[every::every] ^= 0xFF
    return out.tobytes()


def shapes_of(reader: Reader) -> dict[str, Shape]:
    """Unusual shapes by name: of every format that has a sample, and of this one."""
    found: dict[str, Shape] = {}
    if (sample := reader.sample) is not None:
        found["typical"] = sample
        found["every 100th record damaged"] = lambda size: _damaged(reader, sample(size), 100)
        found["every record damaged"] = lambda size: _damaged(reader, sample(size), 1)
        found["all zero"] = bytes
    return {**found, **own_shapes(reader.format)}


def _damaged(reader: Reader, data: bytes, every: int) -> bytes:
    """Invert a byte in about one of every ``every`` records of a file."""
    head = data[:RECORDS_OF]
    records = reader.open(Source.open(head), OpenRequest()).summary().records
    return damaged(data, max(1, every * len(head) // max(records, 1)))


def shapes(host: Host, readers: Sequence[Reader], size: int, runs: int) -> Iterator[Row]:
    """Measure all tables of unusual captures against a copy, and memory against the size."""
    for reader in readers:
        for name, make in shapes_of(reader).items():
            with TemporaryDirectory() as folder:
                path = Path(folder, f"shape{reader.suffixes[0]}")
                path.write_bytes(make(size))
                yield Row(reader.format, name, shape_figures(host, path, reader.format, runs))


def shape_figures(host: Host, path: Path, format: str, runs: int) -> dict[str, float]:
    """The figures of one file: times of copies and decodings, which take turns."""
    data = np.fromfile(path, np.uint8)
    room = np.zeros_like(data)
    with host.open(str(path), format=format) as capture:
        summary = capture.summary()
        findings = sum(capture.diagnostics.counts.values())
    tables = tuple(name for name in TABLES if summary.rows.get(name))

    def decode() -> None:
        with host.open(str(path), format=format) as capture:
            touch(capture, tables)

    copies, times = [], []
    for _ in range(runs):
        copies.append(least_spent(lambda: np.copyto(room, data), COPIES))
        times.append(least_spent(decode, 1))
    copy, made = (Spent(*map(min, zip(*each, strict=True))) for each in (copies, times))
    peak = peak_memory(str(path), format, tables, "whole")
    return {
        "/copy": made.cpu / copy.cpu,
        "/copy by the clock": made.wall / copy.wall,
        "/size": peak / data.size,
        "records/s": summary.records / made.cpu,
        "findings": findings,
    }


# --- Stages ---------------------------------------------------------------------------------------


def _batched(capture: Capture) -> None:
    for name in capture.schemas:
        for batch in capture.batches(name):
            for column in batch.columns:
                len(batch[column])


READING: dict[str, Callable[[Capture], object]] = {
    "info": lambda capture: capture.summary(),
    "verify": lambda capture: capture.scan(),
    "tables": lambda capture: touch(capture, tuple(t for t in TABLES if t in capture.tables)),
    "batches": _batched,
    "record JSON": lambda capture: deque(capture.records_json(), maxlen=0),
}
"""Stages of reading, by name."""


class Spent(NamedTuple):
    """Seconds: of CPU time, which other programs hardly affect, and by the clock on the wall."""

    cpu: float
    wall: float


def least_spent(run: Callable[[], Any], runs: int) -> Spent:
    """The least times of some runs."""

    def once() -> Spent:
        begin, at = time.process_time(), time.perf_counter()
        run()
        return Spent(time.process_time() - begin, time.perf_counter() - at)

    return Spent(*map(min, zip(*(once() for _ in range(runs)), strict=True)))


def least(run: Callable[[], Any], runs: int) -> float:
    """The least CPU time of some runs."""
    return least_spent(run, runs).cpu


def read_seconds(host: Host, path: Path, format: str, stage: str, runs: int) -> float:
    """The least CPU seconds of a stage of reading."""

    def read() -> None:
        with host.open(str(path), format=format) as capture:
            READING[stage](capture)

    return least(read, runs)


def write_sample(host: Host, reader: Reader, nbytes: int, path: Path) -> bool:
    """Write a sample, or that of another format converted; False if there is none."""
    if reader.sample is not None:
        path.write_bytes(reader.sample(nbytes))
        return True
    options = {"max_output": 0}
    for donor in host.readers.values():
        if donor.sample is None:
            continue
        with host.open(donor.sample(SMALL), format=donor.format) as capture:
            if reader.format not in map(target_name, targets_for(host, capture)):
                continue
        with (
            host.open(donor.sample(nbytes), format=donor.format, options=options) as capture,
            host.sink(path, force=True) as sink,
        ):
            plan(host, [capture], str(path), to=reader.format).run(sink)
        return True
    return False


def samples(host: Host, readers: Sequence[Reader], size: int) -> Iterator[tuple[str, Path]]:
    """The formats, each with a sample of it, which is removed afterwards."""
    for reader in readers:
        with TemporaryDirectory() as folder:
            path = Path(folder, f"sample{next(iter(reader.suffixes), '')}")
            if write_sample(host, reader, size, path):
                yield reader.format, path


def stages(host: Host, readers: Sequence[Reader], size: int, runs: int) -> Iterator[Row]:
    """Measure the CPU time of reading, of each conversion, and of other programs."""
    for format, path in samples(host, readers, size):
        data = np.fromfile(path, np.uint8)
        memory = np.zeros_like(data)
        copy = least(lambda memory=memory, data=data: np.copyto(memory, data), COPIES)  # type: ignore[misc]
        with host.open(str(path), format=format) as capture:
            records = capture.summary().records
        seconds = {stage: read_seconds(host, path, format, stage, runs) for stage in READING}
        written: dict[str, int] = {}
        for stage, spent, count in _conversions(host, path, format, runs):
            seconds[stage], written[stage] = spent, count
        for name, yardstick in YARDSTICKS.get(format, {}).items():
            if (theirs := yardstick(path)) is not None:
                seconds[name] = theirs
        for stage, spent in {"copy": copy, **seconds}.items():
            figures = {"ms": 1e3 * spent, "/copy": spent / copy, "MB/s": data.size / spent / 1e6,
                       "records/s": records / spent}  # fmt: skip
            if stage in written:
                figures["/size"] = written[stage] / data.size
            yield Row(format, stage, figures)


def _conversions(
    host: Host, path: Path, format: str, runs: int
) -> Iterator[tuple[str, float, int]]:
    """CPU seconds and bytes of output of everything that a file can become."""
    with host.open(str(path), format=format) as capture:
        targets = dict.fromkeys(target_name(target) for target in targets_for(host, capture))
    for target in targets:
        written = 0

        def convert(to: str = target) -> None:
            nonlocal written
            sink = Sink.nowhere()
            with host.open(str(path), format=format, options={"max_output": 0}) as capture:
                plan(host, [capture], "-", to=to).run(sink)
            written = sink.written

        try:
            yield f"to {target}", least(convert, runs), written
        except FxError as error:
            print(f"{format} to {target} is left out: {error.message}")


# --- Growth ---------------------------------------------------------------------------------------


def fitted_exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The slope of the least-squares line through the logarithms; 1 means proportional."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def growth(host: Host, readers: Sequence[Reader], sizes: Sequence[int], runs: int) -> Iterator[Row]:
    """Measure the CPU time of reading at several sizes, and fit the exponent of its growth."""
    for reader in readers:
        taken: dict[str, dict[int, float]] = {stage: {} for stage in READING}
        for size in sizes:
            for format, path in samples(host, [reader], size):
                nbytes = path.stat().st_size
                for stage, before in taken.items():
                    if before and nbytes / max(before) * before[max(before)] > PATIENCE:
                        continue
                    before[nbytes] = read_seconds(host, path, format, stage, runs)
        for stage, by_size in taken.items():
            if len(by_size) > 1:
                figures = {f"s at {nbytes / 1e6:,.1f} MB": each for nbytes, each in by_size.items()}
                exponent = fitted_exponent(list(by_size), list(by_size.values()))
                yield Row(reader.format, stage, {**figures, "/exponent": exponent})
