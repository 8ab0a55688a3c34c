"""The tutorials of plugins, followed literally in an environment of their own.

All four kinds share it: their templates are rendered, installed with one pip and tested with one
pytest as they are, and again as the tutorials change them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from fxframework.templates.repository import KINDS

from ..install.environments import quick_compiler
from ..properties import FEW
from .commands import blocks, steps

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "format": "docs/plugins/format.md",
    "exporter": "docs/plugins/exporter.md",
    "step": "docs/plugins/step.md",
    "device": "docs/plugins/device.md",
}
DIFF = re.compile(r"^```diff\n(?P<diff>.*?)^```$", re.MULTILINE | re.DOTALL)
NEW = re.compile(r"^\$ (fxf new-plugin (?P<kind>\w+) (?P<name>\w+))$", re.MULTILINE)
TESTED = re.compile(r"^python -m pytest -q (fx-\w+)$")
"""Run for all tutorials together."""
LONG = "(memory or time_follows or another_process or many_records)"
"""Tests of contracts that take long however few examples they try."""
FOLLOW = """
import sys
sys.path.insert(0, sys.argv[1])
import commands
wrong = commands.follow(sys.stdin.read(), sys.argv[2], python=False)
print("\\n".join(wrong))
sys.exit(bool(wrong))
"""


@attrs.frozen
class Workshop:
    """A folder with an environment, in which tutorials are followed."""

    folder: Path

    @property
    def environment(self) -> Path:
        return self.folder / ".venv"

    def run(self, *arguments: str | Path, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run the environment's Python in the folder."""
        environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
        environ.pop("PYTHONPATH", None)
        environ |= {"PYTHONPATH": str(self.environment), "PYTHONWARNINGS": "ignore"}
        environ |= quick_compiler(self.environment)
        python = self.environment / "bin" / "python"
        return subprocess.run([python, *arguments], input=text, cwd=self.folder, env=environ,
                              capture_output=True, text=True, check=False)  # fmt: skip

    def follow(self, text: str, page: str) -> str:
        """Run commands; gives what went otherwise than printed."""
        done = self.run("-c", FOLLOW, ROOT / "tests" / "docs", page, text=text)
        return "" if done.returncode == 0 else done.stdout + done.stderr

    def tests(self, *folders: str, chosen: str = "") -> str:
        """Run their tests as one; gives what failed, the empty string where nothing did."""
        done = self.run("-m", "pytest", "-q", "-x", "-p", "few", "-p", "no:cacheprovider",
                        "-c", os.devnull, "--import-mode=importlib", "-k", chosen,
                        *(f"{folder}/tests" for folder in folders))  # fmt: skip
        return "" if done.returncode == 0 else done.stdout + done.stderr


def apply(diff: str, folder: Path) -> None:
    """Change a file as a unified diff says. AssertionError where it has no such lines."""
    head, *hunks = re.split(r"^@@.*@@.*\n", diff, flags=re.MULTILINE)
    path = folder / head.splitlines()[1].removeprefix("+++ ")
    text = path.read_text("utf-8")
    for hunk in hunks:
        lines = hunk.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] in " -")
        after = "".join(line[1:] for line in lines if line[0] in " +")
        assert text.count(before) == 1, f"{path.name} has no such lines:\n{before}"
        text = text.replace(before, after)
    path.write_text(text, "utf-8")


def parts(page: str) -> Iterator[tuple[str, str]]:
    """The blocks of a page in order: ``diff`` and what it says, ``console`` and its commands."""
    text = (ROOT / page).read_text("utf-8")
    last = 0
    for found in DIFF.finditer(text):
        yield "console", text[last : found.start()]
        yield "diff", found["diff"]
        last = found.end()
    yield "console", text[last:]


def without_what_is_done(text: str) -> str:
    """Commands of a page but those that the fixtures run for all pages together."""
    kept = []
    for block in blocks(text):
        chunks = re.split(r"^(?=\$ )", block.code, flags=re.MULTILINE)
        chunks = [chunk for chunk in chunks if not is_done(chunk)]
        if block.language == "console" and any(chunks):
            kept.append(f"```console\n{''.join(chunks)}```\n")
    return "".join(kept)


def is_done(chunk: str) -> bool:
    command = chunk.partition("\n")[0].removeprefix("$ ")
    return command.startswith(("fxf new-plugin ", "python -m pip install ")) or bool(
        TESTED.match(command)
    )


def began() -> list[re.Match[str]]:
    """The command with which each page begins."""
    found = [NEW.search((ROOT / page).read_text("utf-8")) for page in PAGES.values()]
    assert [each and each["kind"] for each in found] == list(PAGES) == list(KINDS)
    return [each for each in found if each]


def prepared(folder: Path) -> Workshop:
    """An environment that has what this one has, and the plugins as their tutorials begin."""
    pytest.importorskip("setuptools", "70.1")  # which makes wheels by itself
    workshop = Workshop(folder)
    venv.create(workshop.environment, with_pip=False, symlinks=True)
    (site,) = (workshop.environment / "lib").glob("python*/site-packages")
    ours = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    (site / "ours.pth").write_text(f"import site; list(map(site.addsitedir, {ours!r}))\n")
    (workshop.environment / "few.py").write_text(FEW)
    wrong = workshop.follow("".join(f"```console\n$ {new[1]}\n```\n" for new in began()), "new")
    assert not wrong, wrong
    done = workshop.run("-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation",
                        "--no-index", "--disable-pip-version-check",
                        *(f"--editable=./fx-{new['name']}" for new in began()))  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return workshop


def followed(workshop: Workshop, page: str) -> str:
    """Follow a page; gives what went otherwise than printed."""
    wrong = []
    for kind, text in parts(page):
        if kind == "diff":
            apply(text, workshop.folder)
        elif commands := without_what_is_done(text):
            wrong.append(workshop.follow(commands, page))
    return "\n".join(filter(None, wrong))


@pytest.mark.slow
def test_the_tutorials_can_be_followed_literally(tmp_path: Path) -> None:
    """One test, so that one environment is made, whichever workers there are."""
    workshop = prepared(tmp_path)
    folders = [f"fx-{new['name']}" for new in began()]
    listed = workshop.run("-m", "fxframework", "plugins").stdout
    for folder in folders:
        assert re.search(rf"{folder} 0\.1\.0 +loaded ", listed), listed
    wrong = workshop.tests(*folders)
    assert not wrong, wrong
    found = {page: followed(workshop, page) for page in PAGES.values()}
    assert not any(found.values()), "\n".join(found.values())
    changed = [
        folder for folder, page in zip(folders, PAGES.values(), strict=True)
        if any(kind == "diff" for kind, _ in parts(page))
    ]  # fmt: skip
    assert len(changed) >= 4
    wrong = workshop.tests(*changed, chosen=f"not {LONG}")
    assert not wrong, wrong


def test_tutorials_install_and_test_what_they_write() -> None:
    """The commands that the fixtures run for all pages together are those of the pages."""
    for page, new in zip(PAGES.values(), began(), strict=True):
        text = (ROOT / page).read_text("utf-8")
        commands = [step.command for block in blocks(text) for step in steps(block)]
        place = f"fx-{new['name']}"
        assert f"python -m pip install -e '{place}[test]'" in commands
        assert f"python -m pytest -q {place}" in commands
        assert f"```diff\n--- {place}/" in text


def test_a_diff_is_applied_or_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\nthree\n")
    diff = "--- a.py\n+++ a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    apply(diff, tmp_path)
    assert (tmp_path / "a.py").read_text() == "one\n2\nthree\n"
    with pytest.raises(AssertionError, match="no such lines"):
        apply(diff, tmp_path)
