"""The commands of the examples run, as they stand there."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from fxframework.testing.cli import run_cli

XRAY = Path(__file__).resolve().parents[2] / "examples" / "xray"
COMMAND = re.compile(r"^\$ fxf (?P<arguments>.*)$", re.MULTILINE)


def page() -> str:
    return (XRAY / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example, in which commands run."""
    copy = tmp_path / "xray"
    shutil.copytree(XRAY, copy)
    monkeypatch.chdir(copy)
    return copy


def test_the_commands_of_the_xray_example(folder: Path) -> None:
    commands = [shlex.split(found["arguments"]) for found in COMMAND.finditer(page())]
    assert len(commands) >= 10
    shown = {}
    for arguments in commands:
        done = run_cli(*arguments)
        assert done.exit_code == 0, (arguments, done.stderr)
        shown[arguments[0]] = done.text
    assert (folder / "again.xray").read_bytes() == (folder / "spellcheck.xray").read_bytes()
    assert "distance(char const*, char const*, int)" in shown["account"]
    assert "procesor: processor" in shown["cat"]
    assert "suggest(char const*)" in shown["stack"]


def test_the_xray_example_says_what_it_holds() -> None:
    (capture,) = run_cli("info", "--json", XRAY / "spellcheck.xray").json()["captures"]
    assert f"{capture['kinds']['function']} entries and exits on three threads" in page()
    assert f"{capture['size']:,} bytes" in page()
    assert capture["tables"]["threads"] == 3
