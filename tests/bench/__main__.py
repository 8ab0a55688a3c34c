"""``python -m tests.bench shapes|stages|growth``, in a clone: what must not become slow."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from fxframework.host import default_host

from .measuring import Row, growth, shapes, stages

NOTABLE = 1.25
"""Ratios that changed by at least this factor are marked; smaller changes are noise."""
MEGABYTE = 1_000_000


def line(row: Row) -> str:
    """A row as a line of text."""
    cells = "".join(f"  {value:12,.2f} {name}" for name, value in row.figures.items())
    return f"{row.format:18} {row.case:28}{cells}"


def changes(before: Iterable[Row], now: Iterable[Row]) -> list[tuple[float, str]]:
    """How the ratios of two runs differ, the greatest change first: factor and line."""

    def ratios(rows: Iterable[Row]) -> dict[tuple[str, str, str], float]:
        return {(row.format, row.case, name): value for row in rows
                for name, value in row.figures.items() if name[0] == "/" and value > 0}  # fmt: skip

    old = ratios(before)
    found = []
    for (format, case, name), value in ratios(now).items():
        if was := old.get((format, case, name)):
            text = f"{format:18} {case:28} {name:10} {was:12,.2f} {value:12,.2f}"
            found.append((value / was, text))
    return sorted(found, key=lambda each: -abs(math.log(each[0])))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the arguments say, and print it as it is measured."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("what", choices=("shapes", "stages", "growth"))
    parser.add_argument("-f", "--format", help="this format only")
    parser.add_argument("--size", default="16", metavar="MB[,MB...]",
                        help="megabytes of the samples; for growth, two or more")  # fmt: skip
    parser.add_argument("--runs", type=int, default=3, help="the best of these counts")
    parser.add_argument("--save", metavar="RUN.json", help="save the figures")
    parser.add_argument("--compare", metavar="RUN.json", help="compare with saved figures")
    given = parser.parse_args(arguments)
    sizes = [int(float(each) * MEGABYTE) for each in given.size.split(",")]
    if (given.what == "growth") != (len(sizes) > 1):
        parser.error("growth takes two or more sizes: --size 1,10,100; the others take one")
    before = [Row(*row) for row in json.loads(Path(given.compare).read_text())
              ] if given.compare else []  # fmt: skip
    host = default_host()
    readers = [r for r in host.readers.values() if given.format in {None, r.format}]
    rows = []
    for row in (
        growth(host, readers, sizes, given.runs) if given.what == "growth"
        else {"shapes": shapes, "stages": stages}[given.what](host, readers, sizes[0], given.runs)
    ):  # fmt: skip
        print(line(row), flush=True)
        rows.append(row)
    if given.save:
        Path(given.save).write_text(json.dumps(rows))
    for factor, text in changes(before, rows):
        mark = "" if 1 / NOTABLE < factor < NOTABLE else " *"
        print(f"{text}  {factor:.2f} x{mark}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
