"""``fxf bench``: how fast captures are decoded, as ratios to copying the same bytes."""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.cli.text import amount
from fxframework.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from fxframework.host import Host
    from fxframework.model.capture import Capture

__all__ = ["Measure", "measure", "peak_memory", "touch"]

TABLES = ("slices", "args", "instants", "counters", "sched", "logs", "nodes", "properties")


@attrs.frozen
class Measure:
    """One figure of a benchmark."""

    name: str
    seconds: float | None
    ratio: float | None
    """Seconds, or bytes of memory, against the yardstick of the same run."""
    rate: str
    against: str


def touch(capture: Capture, tables: tuple[str, ...]) -> int:
    """Make every column of these tables; gives the rows."""
    rows = 0
    for name in tables:
        table = capture.table(name)
        rows += len(table)
        for column in table.columns:
            len(table[column])  # makes it; a text column is offsets and bytes
    return rows


def _best(runs: int, once: Callable[[], Any]) -> float:
    """The least seconds of some runs, after one that is not counted."""
    once()
    times = []
    for _ in range(runs):
        gc.collect()
        begin = time.perf_counter()
        once()
        times.append(time.perf_counter() - begin)
    return min(times)


def _copied(data: Any, runs: int) -> float:
    """Seconds that copying the bytes takes, into memory that is there already."""
    import numpy as np

    room = np.empty_like(data)
    return _best(runs, lambda: np.copyto(room, data))


def measure(host: Host, path: str, *, format: str | None, runs: int) -> list[Measure]:
    """Copy, tables, record JSON and memory, each the best of ``runs`` (memory: one run each)."""
    with host.open(path, format=format) as capture:
        data = capture.source.data
        size = capture.source.size
        copied = _copied(data, runs)
        del data
        summary = capture.summary()
        tables = tuple(name for name in TABLES if summary.rows.get(name))
        records = summary.records
        rows = 0

    def decode() -> None:
        nonlocal rows
        with host.open(path, format=format) as capture:
            rows = touch(capture, tables)

    def lines() -> None:

        with host.open(path, format=format) as capture:
            for _ in capture.records_json():
                pass

    tables_seconds = _best(runs, decode)
    out = [
        Measure("copy", copied, 1.0, f"{size / copied / 1e9:.1f} GB/s", "copy"),
        Measure(
            f"tables {', '.join(tables)}", tables_seconds, tables_seconds / copied,
            f"{rows / tables_seconds / 1e6:.1f} M rows/s, {records / tables_seconds / 1e6:.1f} "
            "M records/s", "copy",
        ),
    ]  # fmt: skip
    begin = time.perf_counter()
    lines()
    seconds = time.perf_counter() - begin
    rate = f"{records / seconds / 1e6:.2f} M records/s"
    out.append(Measure("record JSON", seconds, seconds / copied, rate, "copy"))
    for way in ("whole", "batches"):
        peak = peak_memory(path, format, tables, way)
        out.append(
            Measure(f"memory, {way}", None, peak / size, f"{peak / 2**20:.0f} MiB", "file size")
        )
    return out


_CHILD = """
import pathlib, resource, sys
import fxframework
path, format, tables, way = sys.argv[1:]
with fxframework.open(path, format=format or None) as capture:
    for name in tables.split(","):
        parts = [capture.table(name)] if way == "whole" else capture.batches(name)
        for part in parts:
            for column in part.columns:
                part[column]
status = pathlib.Path("/proc/self/status")
if status.exists():  # on Linux ru_maxrss begins with that of the process that started this one
    lines = status.read_text().splitlines()
    print(next(int(x.split()[1]) for x in lines if x.startswith("VmHWM:")) * 1024)
else:
    scale = 1 if sys.platform == "darwin" else 1024
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale)
"""


def peak_memory(path: str, format: str | None, tables: tuple[str, ...], way: str) -> int:
    """Peak resident bytes of a process of its own that reads these tables, interpreter included."""
    given = [path, format or "", ",".join(tables), way]
    done = subprocess.run(  # noqa: S603 (our own interpreter and our own words)
        [sys.executable, "-c", _CHILD, *given], check=True, capture_output=True, text=True
    )
    return int(done.stdout)


@_command(name="bench", short_help="Measure decoding against copying the same bytes.")
@click.argument("files", nargs=-1, metavar="[FILE...]")
@click.option("--size", type=int, default=160, metavar="MB",
              help="Size of the sample that is made where no file is given; 160.")  # fmt: skip
@click.option("--runs", type=click.IntRange(1, 100), default=5, metavar="N",
              help="Runs of which the best counts; 5.")  # fmt: skip
def command(session: Session, files: tuple[str, ...], size: int, runs: int) -> ExitCode:
    """Measure decoding against copying the same bytes.

    Every column of the tables is made. Without a FILE, each format that can make a typical sample
    is measured on one. Ratios are of one run on one machine: compare them, not seconds.
    """
    host = session.host
    shown = []
    with tempfile.TemporaryDirectory() as folder:
        jobs = [session.named(text) for text in files]
        if not jobs:
            wanted = session.settings.format
            for reader in host.readers.values():
                if reader.sample is not None and wanted in (None, reader.format):
                    made = Path(folder) / f"sample{reader.suffixes[0]}"
                    made.write_bytes(reader.sample(size * 1_000_000))
                    jobs.append((reader.format, str(made)))
        if not jobs:
            raise UsageError("no format here makes samples", remedy="name a FILE to measure")
        for format, path in jobs:
            with session.screen.working(f"measuring {path}"):
                measures = measure(host, path, format=format, runs=runs)
            with session.host.open(path, format=format) as capture:
                kind = capture.format
            each_measure = [attrs.asdict(each) for each in measures]
            shown.append({"path": path, "format": kind, "measures": each_measure})
            if not session.settings.json:
                session.screen.print(f"{path if files else f'{format} sample'}:")
                for each in measures:
                    seconds = "" if each.seconds is None else f"{1e3 * each.seconds:9.1f} ms"
                    session.screen.print(
                        f"  {each.name:24} {seconds:>12} {each.ratio:8.2f} x {each.against:10} "
                        f"{each.rate}"
                    )
    if session.settings.json:
        session.screen.json("bench", {"captures": shown})
    else:
        session.screen.print(f"best of {amount(runs, 'run')}; memory: peak of a whole process")
    return ExitCode.OK
