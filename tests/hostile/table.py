"""Measures what hostile files cost each command, and writes the table of docs/hostile.md.

``python tests/hostile/table.py [--size MB] [--only TEXT] [--write]``: each shape and command in a
process of its own, whose time is counted as the system counts it, and its greatest memory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
PAGE = Path(__file__).resolve().parents[2] / "docs" / "hostile.md"
BEGIN, END = "<!-- measured: hostile -->\n", "<!-- end -->"
COMMANDS = ("info", "verify", "cat", "jsonl", "csv", "pftrace", "folded", "html")
"""Commands, and suffixes that files are converted to."""
MEMORY = (10, 250_000_000)
"""Bytes of memory for a byte of the file, and beside."""
TIME = (1.5, 2.0)
"""Seconds for a megabyte, and beside, beyond which a cell is marked."""
SUFFIXES = {"log-legacy": ".packet", "llvm-yaml": ".yaml", "records": ".jsonl"}


class Cost(NamedTuple):
    """What one run took."""

    seconds: float
    memory: int
    outcome: str
    """Empty where it went well; ``none`` where there was nothing to write, ``limit``, or a code."""

    def within(self, nbytes: int) -> bool:
        """Whether it kept the bounds."""
        return (
            self.memory <= MEMORY[0] * nbytes + MEMORY[1]
            and self.seconds <= TIME[0] * nbytes / 1e6 + TIME[1]
            and self.outcome in {"", "none", "limit"}
        )


def run(path: Path, format: str, command: str, folder: Path) -> Cost:
    """Run a command over a file."""
    out = folder / f"out.{command}"
    words = [command] if command in {"info", "verify", "cat"} else ["convert"]
    arguments = [*words, "-f", format, str(path)]
    arguments += [] if len(arguments) == 4 and command in words else [str(out), "--force"]
    with open(os.devnull, "wb") as null:  # noqa: PTH123
        process = subprocess.Popen(
            [sys.executable, "-m", "fxframework", *arguments], stdout=null, stderr=subprocess.PIPE
        )
        assert process.stderr is not None
        said = process.stderr.read(1 << 16).decode("utf-8", "replace")
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stderr.close()
    out.unlink(missing_ok=True)
    outcome = ""
    if process.returncode not in {0, 3}:
        code = said.partition("error[")[2].partition("]")[0]
        outcome = {"FXF0001": "none", "FXF0002": "none", "FXF0003": "limit"}.get(
            code, "none" if code == "FXF0005" else code or f"exit {process.returncode}"
        )
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit, outcome)


def made(shape: str, size: int, folder: Path) -> Path:
    """A file of a shape, made by another process.

    The memory of this one would count as that of the commands that it starts.
    """
    path = folder / f"in{SUFFIXES.get(shape.rpartition(':')[0], '.bin')}"
    code = (
        "import sys; from pathlib import Path; from shapes import SHAPES\n"
        "Path(sys.argv[3]).write_bytes(SHAPES[sys.argv[1]][1](int(sys.argv[2])))"
    )
    subprocess.run(
        [sys.executable, "-c", code, shape.rpartition(":")[2], str(size), str(path)],
        check=True,
        cwd=HERE,
    )
    return path


def shapes() -> list[str]:
    """``format:shape`` of every shape."""
    code = (
        "from shapes import SHAPES\n"
        "for name, (format, _) in SHAPES.items(): print(f'{format}:{name}')"
    )
    command = [sys.executable, "-c", code]
    listed = subprocess.run(command, check=True, cwd=HERE, capture_output=True)
    return listed.stdout.decode().split()


def row(shape: str, size: int) -> tuple[str, int]:
    """The row of a shape, and how many of its cells are outside of the bounds."""
    format, _, name = shape.rpartition(":")
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent)
        path = made(shape, size, folder)
        nbytes = path.stat().st_size
        cells = []
        outside = 0
        for command in COMMANDS:
            cost = run(path, format, command, folder)
            word = f" {cost.outcome}" if cost.outcome else ""
            cell = f"{cost.seconds:.1f} s {cost.memory / 1e6:.0f} MB{word}"
            bad = not cost.within(nbytes)
            outside += bad
            cells.append(f"**{cell}**" if bad else cell)
    return f"| {name} | {nbytes / 1e6:.1f} | {' | '.join(cells)} |", outside


def lines(size: int, only: str) -> Iterator[str]:
    """The table, line by line as it is measured."""
    yield f"| shape | MB | {' | '.join(COMMANDS)} |"
    yield f"| --- | ---: |{' ---: |' * len(COMMANDS)}"
    outside = 0
    wanted = [shape for shape in shapes() if only in shape]
    with ThreadPoolExecutor(2) as pool:
        for text, bad in pool.map(lambda shape: row(shape, size), wanted):
            outside += bad
            yield text
    yield ""
    yield f"{len(COMMANDS) * len(wanted)} runs, {outside} of them outside of the bounds."


def main() -> None:
    """Measure, print, and with ``--write`` put the table into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=5, help="megabytes of a file")
    parser.add_argument("--only", default="", help="shapes whose names contain this")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    given = parser.parse_args()
    found = []
    for line in lines(int(given.size * 1e6), given.only):
        print(line, flush=True)
        found.append(line)
    if given.write:
        head, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        _, _, tail = rest.partition(END)
        PAGE.write_text(f"{head}{BEGIN}\n" + "\n".join(found) + f"\n\n{END}{tail}", "utf-8")


if __name__ == "__main__":
    main()
