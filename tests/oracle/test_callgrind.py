"""callgrind_annotate reads what `callgrind` writes, and says the same as `account`."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import fxframework as fxf
from fxframework.analysis.account import account

from ..programs import missing

XRAY = Path(__file__).parents[2] / "examples" / "xray"
LINE = re.compile(r"\s*(?P<ns>[\d,]+) \([\d. ]+%\)  (?P<file>[^:]+):(?P<name>.+)")


def annotated(profile: Path, *arguments: str) -> dict[str, int]:
    """Nanoseconds by function, as callgrind_annotate shows them."""
    program = shutil.which("callgrind_annotate")
    if program is None:
        missing("callgrind_annotate, of the package valgrind, is not installed")
    done = subprocess.run(
        [program, "--threshold=100", *arguments, profile],
        capture_output=True,
        check=True,
        text=True,
    )
    found = [LINE.fullmatch(line) for line in done.stdout.splitlines()]
    return {line["name"]: int(line["ns"].replace(",", "")) for line in found if line is not None}


def test_functions_have_the_times_of_account(tmp_path: Path) -> None:
    options = {"instr_map": str(XRAY / "spellcheck.csv")}
    profile = tmp_path / "a.callgrind"
    with fxf.open(XRAY / "spellcheck.xray", **options) as capture:
        capture.export(profile)
        found = account(capture)
    per_ns = found.per_second / 1e9
    own, inclusive = annotated(profile), annotated(profile, "--inclusive=yes")
    for entry in found.entries:
        # Each stack is rounded down to nanoseconds.
        assert abs(own[entry.function.name] - entry.spread.own / per_ns) < 9
        assert abs(inclusive[entry.function.name] - entry.spread.sum / per_ns) < 9
