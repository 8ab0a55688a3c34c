"""`fxf compare --out x.dot` against llvm-xray's graph-diff: the same edges and changes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import fxframework as fxf
from fxframework.testing.cli import run_cli

from .xray_tool import llvm_xray

LOG = Path(__file__).resolve().parents[2] / "examples" / "xray" / "spellcheck.xray"
THEIRS = re.compile(r'tooltip="(\S+) -> (\S+)" label="([^"]*)"')
OURS = re.compile(r'F(\d+) -> F(\d+) \[label="([^"]*)"')
NODES = re.compile(r'F(\d+) \[label="\{(\d+)\|')


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    """A log, and the same one on a clock that is one and a half times as fast."""
    before, after = tmp_path / "a.yaml", tmp_path / "b.yaml"
    fxf.convert(LOG, before, header_version="1")
    text = before.read_text()
    first = min(int(tsc) for tsc in re.findall(r"tsc: (\d+)", text))
    after.write_text(
        re.sub(r"tsc: (\d+)", lambda tsc: f"tsc: {first + (int(tsc[1]) - first) * 3 // 2}", text)
    )
    return before, after


@pytest.mark.parametrize("figure", ["sum", "count", "max"])
def test_edges_and_changes(logs: tuple[Path, Path], tmp_path: Path, figure: str) -> None:
    command = [llvm_xray(), "graph-diff", *map(str, logs), "-e", figure]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    theirs = {
        (caller.removeprefix("#").replace("F0", ""), callee.removeprefix("#")): float(label[:-1])
        for caller, callee, label in THEIRS.findall(done.stdout)
    }
    out = tmp_path / "x.dot"
    run_cli("compare", *logs, "--out", out, "-e", figure)
    text = out.read_text()
    names = {"0": "", **dict(NODES.findall(text))}
    ours = {
        (names[caller], names[callee]): float(label[:-1])
        for caller, callee, label in OURS.findall(text)
    }
    assert len(ours) == 5
    assert ours == theirs
