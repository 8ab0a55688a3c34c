"""``fxf bench``: measures the speed of decoding as a ratio to copying the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import click

from fxframework.cli import complete
from fxframework.cli.bench_compare import load_run, show_comparison
from fxframework.cli.measures import measure
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.cli.text import amount, printable
from fxframework.errors import ExitCode, UsageError
from fxframework.io.pending import scratch_folder

Measured = tuple[dict[str, Any], Callable[[], None]]
"""A run as a JSON document, and a function that prints it."""
SIZE, RUNS = 16, 3
"""Default size of a sample in megabytes, and default number of runs."""
HEADER = ("CAPTURE", "MB", "COPY", "TABLES", "/COPY", "RECORDS/S", "JSON/S", "MEMORY", "BATCHES")


def _sizes(_ctx: click.Context, _param: click.Parameter, text: str | None) -> tuple[int, ...]:
    """Parse two or more sizes in megabytes and sort them. Raises UsageError."""
    try:
        sizes = tuple(sorted({int(each) for each in (text or "").split(",") if each.strip()}))
    except ValueError:
        sizes = (0,)
    if text is not None and (len(sizes) < 2 or sizes[0] < 1):
        raise UsageError(
            f"invalid sizes {text!r}", remedy="give two or more megabytes: --growth 1,10,100"
        )
    return sizes


@_command(
    name="bench", guard=False, short_help="Measure decoding, relative to copying the same bytes."
)
@click.argument("files", nargs=-1, metavar="[FILE...]", shell_complete=complete.files)
@click.option("--size", type=click.IntRange(1), default=SIZE, metavar="MB",
              help=f"Size of the samples made if no FILE is given. Default: {SIZE}.")  # fmt: skip
@click.option("--runs", type=click.IntRange(1, 100), default=RUNS, metavar="N",
              help=f"Runs; the best counts. Default: {RUNS}.")  # fmt: skip
@click.option("--shapes", is_flag=True,
              help="Measure unusual shapes: disorder, damage, distinct names.")  # fmt: skip
@click.option("--stages", is_flag=True,
              help="Measure each stage: reading, verifying, every conversion.")  # fmt: skip
@click.option("--growth", metavar="MB,MB,...", callback=_sizes,
              help="Measure samples of these sizes, and fit the growth of time.")  # fmt: skip
@click.option("--compare", metavar="RUN.json",
              help="Print how the results differ from a run saved with --json.")  # fmt: skip
def command(
    session: Session,
    files: tuple[str, ...],
    size: int,
    runs: int,
    growth: tuple[int, ...],
    compare: str | None,
    *,
    shapes: bool,
    stages: bool,
) -> ExitCode:
    """Measure decoding, relative to copying the same bytes.

    Every column of the tables is made. Without FILE, each format that has a sample is measured on
    it. Compare ratios, not seconds: a ratio is of one run on one machine.
    """
    if sum((shapes, stages, bool(growth))) > 1 or (files and (shapes or stages or growth)):
        raise UsageError(
            "--shapes, --stages, --growth and FILE exclude each other", remedy="run them in turn"
        )
    if compare is not None:
        load_run(compare)  # report an invalid file before minutes of measuring
    if shapes:
        run, show = _shapes(session, size, runs)
    elif stages:
        run, show = _stages(session, size, runs)
    elif growth:
        run, show = _growth(session, growth, runs)
    else:
        run, show = _captures(session, files, size, runs)
    if session.settings.json:
        session.screen.json("bench", run)
        return ExitCode.OK
    show()
    if compare is not None:
        show_comparison(session, run, compare)
    return ExitCode.OK


def _shapes(session: Session, size: int, runs: int) -> Measured:
    from fxframework.cli.bench_shapes import bench_shapes

    # Results are printed as they are measured: the run takes minutes.
    return {"shapes": bench_shapes(session, size=size, runs=runs)}, lambda: None


def _stages(session: Session, size: int, runs: int) -> Measured:
    from fxframework.cli.bench_stages import bench_stages, show_stages

    figures = bench_stages(session, size=size, runs=runs)
    return {"stages": list(map(attrs.asdict, figures))}, lambda: show_stages(session, figures)


def _growth(session: Session, sizes: tuple[int, ...], runs: int) -> Measured:
    from fxframework.cli.bench_growth import bench_growth, show_growth

    figures = bench_growth(session, sizes=sizes, runs=runs)
    return {"growth": list(map(attrs.asdict, figures))}, lambda: show_growth(session, figures)


def _captures(session: Session, files: tuple[str, ...], size: int, runs: int) -> Measured:
    screen = session.screen
    shown: list[dict[str, Any]] = []
    with scratch_folder("bench") as folder:
        jobs = [session.named(text) for text in files] or _samples(session, folder, size)
        if not jobs:
            raise UsageError("no format here makes samples", remedy="name a FILE to measure")
        for number, (format, path) in enumerate(jobs, 1):
            label = path if files else f"a sample of {format}"
            with screen.working(f"measuring {label}, {number} of {len(jobs)}"):
                measures = measure(session.host, path, format=format, runs=runs)
            with session.host.open(path, format=format) as capture:
                facts = {"path": path, "format": capture.format, "size": capture.source.size}
            shown.append({**facts, "measures": [attrs.asdict(each) for each in measures]})

    def show() -> None:
        rows = [HEADER, *(_row(one, named=bool(files)) for one in shown)]
        screen.table(rows, [False, *[True] * (len(HEADER) - 1)])
        screen.print(
            f"best of {amount(runs, 'run')}; tables: every column, as a multiple of copying the "
            "bytes; memory: the peak of a process, as a multiple of the file"
        )

    return {"captures": shown}, show


def _samples(session: Session, folder: Path, size: int) -> list[tuple[str | None, str]]:
    """Make a sample of each format that can, or of the format that -f names."""
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
    """Return a capture's figures as cells of a row below ``HEADER``."""
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
