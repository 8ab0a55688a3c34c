"""Unusual shapes for ``fxf bench``: disorder, damage, distinct names; one line per shape."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from fxframework.cli.measures import TABLES, Measure, best, copied, peak_memory, touch
from fxframework.cli.session import Session
from fxframework.cli.text import amount
from fxframework.io.pending import scratch_folder

if TYPE_CHECKING:
    from fxframework.host import Host
    from fxframework.registry import Reader

__all__ = ["bench_shapes", "measure_shape", "shapes_of"]

PART = 1 << 16
"""Bytes of a sample in which records are counted, to estimate their size."""


def shapes_of(reader: Reader) -> dict[str, Callable[[int], bytes]]:
    """Return functions that make files of unusual shapes, by name: general and of the format."""
    found: dict[str, Callable[[int], bytes]] = {}
    if reader.sample is not None:
        found["typical"] = sample = reader.sample
        found["every 100th record damaged"] = lambda nbytes: _damaged(reader, sample(nbytes), 100)
        found["every record damaged"] = lambda nbytes: _damaged(reader, sample(nbytes), 1)
        found["all zero"] = bytes
    if reader.shapes is not None:
        found.update(reader.shapes())
    return found


def _damaged(reader: Reader, data: bytes, every: int) -> bytes:
    """Invert a byte in about one of every ``every`` records of a file."""
    from fxframework.io.source import Source
    from fxframework.kit.shapes import damaged
    from fxframework.model.capture import OpenRequest

    part = data[:PART]
    records = reader.open(Source.open(part), OpenRequest()).summary().records
    return damaged(data, max(1, every * len(part) // max(records, 1)))


def measure_shape(host: Host, path: str, *, format: str, runs: int) -> list[Measure]:
    """Measure time and memory of decoding a file, relative to a copy and to its size."""
    import numpy as np

    copy = copied(np.fromfile(path, np.uint8), runs)
    records = findings = 0
    tables: tuple[str, ...] = ()

    def decode() -> None:
        nonlocal records, findings, tables
        with host.open(path, format=format) as capture:
            summary = capture.summary()
            tables = tuple(name for name in TABLES if summary.rows.get(name))
            records, findings = summary.records, sum(capture.diagnostics.counts.values())
            touch(capture, tables)

    # With a single run there is no warm-up: a run may be slow.
    seconds = best(runs - 1, decode) if runs > 1 else _once(decode)
    size = Path(path).stat().st_size
    peak = peak_memory(path, format, tables, "whole")
    said = f"{records / seconds / 1e6:.1f} M records/s, {amount(findings, 'finding')}"
    return [
        Measure("tables", seconds, seconds / copy, said, "copy"),
        Measure("memory", None, peak / size, f"{peak / 2**20:.0f} MiB", "file size"),
    ]


def _once(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def bench_shapes(session: Session, *, size: int, runs: int) -> list[dict[str, Any]]:
    """Measure and print the shapes of every format, or of the selected one."""
    wanted = session.settings.format
    shown: list[dict[str, Any]] = []
    for reader in session.host.readers.values():
        if wanted not in {None, reader.format}:
            continue
        for name, make in shapes_of(reader).items():
            with scratch_folder("bench") as folder:
                path = folder / f"shape{reader.suffixes[0]}"
                path.write_bytes(make(size * 1_000_000))
                with session.screen.working(f"measuring {reader.format}, {name}"):
                    measures = measure_shape(
                        session.host, str(path), format=reader.format, runs=runs
                    )
            each_measure = [attrs.asdict(each) for each in measures]
            shown.append({"format": reader.format, "shape": name, "measures": each_measure})
            if not session.settings.json:
                tables, memory = measures
                session.screen.print(
                    f"{reader.format:14} {name:28} {tables.ratio:8.1f} x copy "
                    f"{memory.ratio:7.1f} x file size  {tables.rate}"
                )
    return shown
