"""docs/native.md: its commands run, its tests do what the page says, and it names every call."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fx_emulator.native.zircon import ZIRCON

from .building import EXAMPLES, compiler

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "native.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the examples."""
    shutil.copytree(EXAMPLES, tmp_path / "examples" / "native")
    return tmp_path


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command, comments=True)
    if words[0] == "gcc":
        words[0] = compiler("gcc")
    elif words[0] == "python":
        words[0] = sys.executable
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def test_the_commands_of_the_page(folder: Path) -> None:
    """Takes seconds: the page compiles its programs."""
    build, test, build_inspect = [
        line[2:] for block in blocks("console") for line in block.splitlines()
    ]
    done = run(build, folder)
    assert done.returncode == 0, done.stderr
    done = run(test, folder)
    assert done.returncode == 1, done.stdout + done.stderr
    for line in blocks("text")[0].splitlines():
        assert line.strip() in done.stdout, line
    # The two stores swapped.
    file = folder / "examples" / "native" / "log.c"
    source = file.read_text()
    assert source == blocks("c")[0]
    assert (file.parent / "test_log.py").read_text() == blocks("python")[0]
    first, second = "  log[0] = count + 1;\n", "  log[1 + count] = value;\n"
    assert first + second in source
    file.write_text(source.replace(first + second, second + first))
    assert run(build, folder).returncode == 0
    done = run(test, folder)
    assert done.returncode == 0, done.stdout
    done = run(build_inspect, folder)
    assert done.returncode == 0, done.stderr
    (folder / "explore.py").write_text(blocks("python")[1])
    done = run("python explore.py", folder)
    assert done.returncode == 0, done.stderr
    assert "all sound" in done.stdout


def test_the_examples_run(tmp_path: Path) -> None:
    """Takes seconds: the examples of the page are compiled and explored."""
    for path in EXAMPLES.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    text = (tmp_path / "test_writers.py").read_text()
    commands = [line for line in text.splitlines()[2:5] if line]
    assert len(commands) == 3
    for command in commands:
        command = command.replace("pytest ", "python -m pytest -q ")
        done = run(command, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_names_every_call() -> None:
    missing = [name for name in ZIRCON if f"`{name}`" not in PAGE]
    assert not missing
