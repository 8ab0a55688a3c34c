"""Golden files: comparison of outputs with reviewed copies."""

from __future__ import annotations

import os
from pathlib import Path

from fxframework.errors import UsageError
from fxframework.kit.shown import amount, cut
from fxframework.kit.steps import Outcome, Run

CONTEXT = 8
"""Bytes of binary outputs to show at a difference."""
SHOWN = 100
"""The most characters to show of a line."""


def compare(run: Run, output: str, golden: str = "") -> Outcome:
    """Compare an output with its golden file, or write the file if the run updates golden files.

    The default golden file has the output's name, in the golden folder beside the scenario.
    """
    data = run.output(output)
    if not run.own_seed:
        return Outcome.skipped("golden files apply only to the scenario's own seed")
    if golden:
        golden_path = run.file(golden)
    elif run.golden is not None:
        golden_path = run.file(os.path.relpath(run.golden / output, run.folder))
    else:
        raise UsageError(
            "the scenario is not in a file, so it has no folder of golden files",
            remedy="name the golden file with `golden`",
        )
    if run.update_golden:
        return _update(run, golden_path, output, data)
    golden_name = _name_in_reports(run, golden_path)
    try:
        expected = golden_path.read_bytes()
    except FileNotFoundError:
        return Outcome.failed(
            f"there is no golden file {golden_name}; `fxf replay --update-golden` writes it"
        )
    if data == expected:
        size = amount(len(data), "byte")
        return Outcome.ok(f"{size}, as in {golden_name}", bytes=len(data))
    return Outcome.failed(f"{output} is not {golden_name}: {difference(expected, data)}")


def _update(run: Run, golden_path: Path, output: str, data: bytes) -> Outcome:
    golden_name = _name_in_reports(run, golden_path)
    if golden_path.exists() and golden_path.read_bytes() == data:
        return Outcome.ok(f"{golden_name} is unchanged", bytes=len(data))
    golden_path.parent.mkdir(parents=True, exist_ok=True)
    golden_path.write_bytes(data)
    written_goldens: dict[str, str] = run.shared("golden.written", dict)
    written_goldens[output] = golden_name
    return Outcome.ok(f"wrote {golden_name}", bytes=len(data))


def _name_in_reports(run: Run, path: Path) -> str:
    """Return the name of the file in reports, the same on every machine."""
    if run.folder is not None and path.is_relative_to(run.folder):
        return path.relative_to(run.folder).as_posix()
    return path.name


def difference(expected: bytes, actual: bytes) -> str:
    """Describe the first difference of two outputs: a line of texts, or bytes."""
    offset = _first_difference(expected, actual)
    try:
        expected_lines = expected.decode().split("\n")
        actual_lines = actual.decode().split("\n")
    except UnicodeDecodeError:
        sizes = ""
        if len(expected) != len(actual):
            sizes = f", {len(expected):,} bytes are {len(actual):,}"
        start = offset // CONTEXT * CONTEXT
        was = _bytes_at(expected, start)
        now = _bytes_at(actual, start)
        return f"they differ from byte {offset:,} on{sizes}; at {start:,} it was {was}, it is {now}"
    index = expected[:offset].count(b"\n")
    was = _line(expected_lines, index)
    now = _line(actual_lines, index)
    return f"they differ from line {index + 1:,} on (byte {offset:,}): it was {was}, it is {now}"


def _first_difference(expected: bytes, actual: bytes) -> int:
    """Return the offset of the first byte that differs; the shorter one's size if none does."""
    for offset, (expected_byte, actual_byte) in enumerate(zip(expected, actual, strict=False)):
        if expected_byte != actual_byte:
            return offset
    return min(len(expected), len(actual))


def _bytes_at(data: bytes, start: int) -> str:
    """Return the bytes at an offset for a message."""
    return data[start : start + CONTEXT].hex(" ") or "the end"


def _line(lines: list[str], index: int) -> str:
    """Return a line for a message."""
    if index >= len(lines):
        return "the end"
    return repr(cut(lines[index], SHOWN))
