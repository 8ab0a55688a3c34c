"""``fxf bench``: how fast captures are decoded, as ratios to copying the same bytes."""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from fxframework.cli import complete
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.cli.text import aligned, amount, printable
from fxframework.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from fxframework.host import Host
    from fxframework.model.capture import Capture

__all__ = ["Measure", "best", "copied", "measure", "peak_memory", "touch"]

SIZE, RUNS = 16, 3
"""Megabytes of a sample, and runs, where nothing else is asked for."""
HEADER = ("CAPTURE", "MB", "COPY", "TABLES", "/COPY", "RECORDS/S", "JSON/S", "MEMORY", "BATCHES")
BUDGET = 2.0
"""Seconds that one figure of a capture may take, beside its first run."""
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


def best(runs: int, once: Callable[[], Any]) -> float:
    """The least seconds of some runs, after one that is not counted; fewer if they take long."""
    once()
    times: list[float] = []
    for _ in range(runs):
        if sum(times) > BUDGET:
            break
        gc.collect()
        begin = time.perf_counter()
        once()
        times.append(time.perf_counter() - begin)
    return min(times)


def copied(data: Any, runs: int) -> float:
    """Seconds that copying the bytes takes, into memory that is there already."""
    import numpy as np

    room = np.empty_like(data)
    return best(runs, lambda: np.copyto(room, data))


def measure(host: Host, path: str, *, format: str | None, runs: int) -> list[Measure]:
    """Copy, tables, record JSON and memory, each the best of ``runs`` (memory: one run each)."""
    with host.open(path, format=format) as capture:
        data = capture.source.data
        size = capture.source.size
        copy_seconds = copied(data, runs)
        del data
        summary = capture.summary()
        tables = tuple(name for name in TABLES if summary.rows.get(name))
        records = summary.records
        rows = 0

    def decode() -> None:
        nonlocal rows
        with host.open(path, format=format) as capture:
            rows = touch(capture, tables)

    tables_seconds = best(runs, decode)
    out = [
        Measure("copy", copy_seconds, 1.0, f"{size / copy_seconds / 1e9:.1f} GB/s", "copy"),
        Measure(
            f"tables {', '.join(tables)}", tables_seconds, tables_seconds / copy_seconds,
            f"{rows / tables_seconds / 1e6:.1f} M rows/s, {records / tables_seconds / 1e6:.1f} "
            "M records/s", "copy",
        ),
    ]  # fmt: skip
    pace = _lines_per_second(host, path, format)
    seconds = records / pace
    rate = f"{pace / 1e6:.2f} M records/s"
    out.append(Measure("record JSON", seconds, seconds / copy_seconds, rate, "copy"))
    for way in ("whole", "batches"):
        peak = peak_memory(path, format, tables, way)
        out.append(
            Measure(f"memory, {way}", None, peak / size, f"{peak / 2**20:.0f} MiB", "file size")
        )
    return out


def _lines_per_second(host: Host, path: str, format: str | None) -> float:
    """Lines of record JSON in a second, of the whole capture or of what the budget allows."""
    lines = 0
    begin = time.perf_counter()
    with host.open(path, format=format) as capture:
        for chunk in capture.records_json():
            lines += chunk.count(b"\n")
            if time.perf_counter() - begin > BUDGET:
                break
    return max(lines, 1) / (time.perf_counter() - begin)


_CHILD = """
import pathlib, sys
import fxframework
path, format, tables, way = sys.argv[1:]
with fxframework.open(path, format=format or None) as capture:
    for name in filter(None, tables.split(",")):
        parts = [capture.table(name)] if way == "whole" else capture.batches(name)
        for part in parts:
            for column in part.columns:
                part[column]
status = pathlib.Path("/proc/self/status")
if status.exists():  # on Linux ru_maxrss begins with that of the process that started this one
    lines = status.read_text().splitlines()
    print(next(int(x.split()[1]) for x in lines if x.startswith("VmHWM:")) * 1024)
else:
    try:
        import resource
    except ImportError:
        sys.exit("this system does not say how much memory a process had")
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
@click.argument("files", nargs=-1, metavar="[FILE...]", shell_complete=complete.files)
@click.option("--size", type=click.IntRange(1), default=SIZE, metavar="MB",
              help=f"Size of the samples that are made if no FILE is given; {SIZE}.")  # fmt: skip
@click.option("--runs", type=click.IntRange(1, 100), default=RUNS, metavar="N",
              help=f"Runs of which the best counts; {RUNS}.")  # fmt: skip
@click.option("--shapes", is_flag=True,
              help="Measure awkward shapes: disorder, damage, names all different.")  # fmt: skip
def command(
    session: Session, files: tuple[str, ...], size: int, runs: int, *, shapes: bool
) -> ExitCode:
    """Measure decoding against copying the same bytes.

    Every column of the tables is made. Without a FILE, each format that can make a typical sample
    is measured on one. Ratios are of one run on one machine: compare them, not seconds.
    """
    if shapes:
        from fxframework.cli.bench_shapes import bench_shapes

        return bench_shapes(session, size=size, runs=runs)
    screen = session.screen
    shown = []
    with tempfile.TemporaryDirectory() as folder:
        jobs = [session.named(text) for text in files] or _samples(session, Path(folder), size)
        if not jobs:
            raise UsageError("no format here makes samples", remedy="name a FILE to measure")
        for number, (format, path) in enumerate(jobs, 1):
            label = path if files else f"a sample of {format}"
            with screen.working(f"measuring {label}, {number} of {len(jobs)}"):
                measures = measure(session.host, path, format=format, runs=runs)
            with session.host.open(path, format=format) as capture:
                facts = {"path": path, "format": capture.format, "size": capture.source.size}
            shown.append({**facts, "measures": [attrs.asdict(each) for each in measures]})
    if session.settings.json:
        screen.json("bench", {"captures": shown})
        return ExitCode.OK
    rows = [HEADER, *(_row(one, named=bool(files)) for one in shown)]
    for at, line in enumerate(aligned(rows, [False, *[True] * (len(HEADER) - 1)])):
        screen.print(line if at else screen.paint(line, bold=True))
    screen.print(
        f"best of {amount(runs, 'run')}; tables: every column, as a multiple of copying the bytes; "
        "memory: the peak of a process, as a multiple of the file"
    )
    return ExitCode.OK


def _samples(session: Session, folder: Path, size: int) -> list[tuple[str | None, str]]:
    """A sample of each format that makes some, or of the one that -f names."""
    jobs: list[tuple[str | None, str]] = []
    wanted = session.settings.format
    for reader in session.host.readers.values():
        if reader.sample is not None and wanted in {None, reader.format}:
            made = folder / f"sample-{reader.format}{reader.suffixes[0]}"
            with session.screen.working(f"making a sample of {reader.format}"):
                made.write_bytes(reader.sample(size * 1_000_000))
            jobs.append((reader.format, str(made)))
    return jobs


def _row(one: Mapping[str, Any], *, named: bool) -> list[str]:
    """A capture's figures as cells below ``HEADER``."""
    copy, tables, lines, whole, batches = one["measures"]
    return [
        printable(one["path"]) if named else one["format"],
        f"{one['size'] / 1e6:,.1f}",
        f"{1e3 * copy['seconds']:,.1f} ms",
        f"{1e3 * tables['seconds']:,.1f} ms",
        f"{tables['ratio']:,.1f} x",
        tables["rate"].partition(", ")[2].removesuffix("ecords/s").replace(" r", ""),
        lines["rate"].removesuffix("records/s").rstrip(),
        f"{whole['ratio']:,.1f} x",
        f"{batches['ratio']:,.1f} x",
    ]
