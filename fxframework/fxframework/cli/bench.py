"""``fxf bench``: measures the speed of decoding as a ratio to copying the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import click

from fxframework.cli import complete
from fxframework.cli.measures import measure
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.cli.text import amount, printable
from fxframework.errors import ExitCode, UsageError
from fxframework.io.pending import scratch_folder

SIZE, RUNS = 16, 3
"""Default size of a sample in megabytes, and default number of runs."""
HEADER = ("CAPTURE", "MB", "COPY", "TABLES", "/COPY", "RECORDS/S", "JSON/S", "MEMORY", "BATCHES")


@_command(
    name="bench", guard=False, short_help="Measure decoding, relative to copying the same bytes."
)
@click.argument("files", nargs=-1, metavar="[FILE...]", shell_complete=complete.files)
@click.option("--size", type=click.IntRange(1), default=SIZE, metavar="MB",
              help=f"Size of the samples made if no FILE is given. Default: {SIZE}.")  # fmt: skip
@click.option("--runs", type=click.IntRange(1, 100), default=RUNS, metavar="N",
              help=f"Runs; the best counts. Default: {RUNS}.")  # fmt: skip
def command(session: Session, files: tuple[str, ...], size: int, runs: int) -> ExitCode:
    """Measure decoding, relative to copying the same bytes.

    Every column of the tables is made. Without FILE, each format that has a sample is measured on
    it. Compare ratios, not seconds: a ratio is of one run on one machine.
    """
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
    if session.settings.json:
        screen.json("bench", {"captures": shown})
        return ExitCode.OK
    rows = [HEADER, *(_row(one, named=bool(files)) for one in shown)]
    screen.table(rows, [False, *[True] * (len(HEADER) - 1)])
    screen.print(
        f"best of {amount(runs, 'run')}; tables: every column, as a multiple of copying the "
        "bytes; memory: the peak of a process, as a multiple of the file"
    )
    return ExitCode.OK


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
