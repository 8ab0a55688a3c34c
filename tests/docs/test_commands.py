"""Every fenced command of the README, of docs/ and of the examples runs as printed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .commands import Block, follow, matches, steps
from .test_tutorials import PAGES as TUTORIALS

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = ROOT / "docs" / "captures.md"
ELSEWHERE = {CAPTURES, *(ROOT / page for page in TUTORIALS.values())}
PAGES = sorted(
    path
    for path in (ROOT / "docs").rglob("*.md")
    if path not in ELSEWHERE and "```console" in path.read_text(encoding="utf-8")
)


def clone(folder: Path) -> None:
    """What a clone has that commands use."""
    shutil.copytree(ROOT / "examples", folder / "examples")


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the commands of `docs/captures.md` have run."""
    folder = tmp_path_factory.mktemp("captures")
    clone(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        wrong = follow(CAPTURES.read_text(encoding="utf-8"), "docs/captures.md")
    assert not wrong, "\n".join(wrong)
    return folder


def test_the_readme_can_be_followed_literally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    before = text.partition("<!-- the test command -->")[0]
    wrong = follow(before, "README.md")
    assert not wrong, "\n".join(wrong)
    assert (tmp_path / "again.fxt").read_bytes() == (tmp_path / "boot.fxt").read_bytes()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_commands_of_a_page(
    page: Path, captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "clone"
    shutil.copytree(captures, folder)
    monkeypatch.chdir(folder)
    text = page.read_text(encoding="utf-8")
    wrong = follow(text, str(page.relative_to(ROOT)), python=False)  # test_docs runs the Python
    assert not wrong, "\n".join(wrong)


def test_what_is_printed_is_compared() -> None:
    assert matches("a\n…\nz 1 …\n", "a\nb\nc\nz 1 2 3\n")
    assert matches("ok in 0.36 s\n", "ok in 0.12 s\n")
    assert not matches("a\n", "b\n")
    assert not matches("a\n", "a\nb\n")
    block = Block("console", "$ fxf x  # exit status 3\nout\n$ fxf y\n", 1)
    assert [(s.command, s.expected, s.status) for s in steps(block)] == [
        ("fxf x", "out\n", 3), ("fxf y", None, 0),
    ]  # fmt: skip
