"""The modules of docs/plugins/module.md, written to files, run as printed, and as short as told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fxframework.testing.contracts import repetition

from .commands import BLOCK, Block, follow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "plugins" / "module.md"
LINES = {"drums.py": 30, "names.py": 6, "ftrace.py": 80}
"""The most lines of code in each module: those that are neither empty nor docstrings."""
DOCSTRING = re.compile(r'^ *""".*"""$')


def modules() -> dict[str, str]:
    """The modules of the page by file name."""
    found = (each["code"] for each in BLOCK.finditer(PAGE.read_text("utf-8")))
    named = (re.match(r"# (\w+\.py)\n", code) for code in found)
    return {each[1]: each.string.removeprefix(each[0]) for each in named if each}


def test_they_are_as_short_as_the_page_says() -> None:
    assert modules().keys() == LINES.keys()
    for name, text in modules().items():
        code = [line for line in text.splitlines() if line and not DOCSTRING.match(line)]
        assert len(code) <= LINES[name], name


def test_the_text_format_is_the_example() -> None:
    text = (PAGE.parents[2] / "examples" / "plugins" / "ftrace.py").read_text("utf-8")
    assert modules()["ftrace.py"] == text
    assert text.count("\n") <= LINES["ftrace.py"]


@pytest.mark.timeout(300)
def test_they_run_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes seconds: the page runs the contracts of three plugins."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(repetition, "SLOW", 0.2)
    made = modules()

    def python(block: Block) -> str:
        name = block.code.partition("\n")[0].removeprefix("# ")
        Path(name).write_text(made[name])
        return ""

    wrong = follow(PAGE.read_text("utf-8"), "docs/plugins/module.md", python=python)
    assert not wrong, "\n".join(wrong)
