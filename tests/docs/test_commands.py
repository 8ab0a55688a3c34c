"""Every fenced command of the README and of docs/ runs as printed, on a core install.

The README is followed in a clone's own folder, each command in a shell. The pages of docs/ are
followed in one folder, that of `docs/captures.md`, commands and programs in order; a page that
needs an extra says so before the command that does, and is followed with every extra, too.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from fxframework.errors import install_line

from ..install.environments import PROJECT, Environment, Here
from .commands import INSTALL, Block, Step, blocks, follow, looped, matches, steps
from .test_tutorials import PAGES as TUTORIALS

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = ROOT / "docs" / "captures.md"
README = (ROOT / "README.md").read_text("utf-8").partition("<!-- the test command -->")[0]
ELSEWHERE = {
    "docs/captures.md": "a fixture follows it",
    "docs/fuzzing.md": "it needs a clang with libFuzzer, and Atheris",
    "docs/native.md": "tests/emulator/native runs its examples",
    "docs/plugin-contracts.md": "its command checks the plugin of docs/plugins/by-hand.md",
    "docs/plugins/by-hand.md": "test_docs makes its plugin",
    "docs/plugins/module.md": "test_modules writes its modules",
    "docs/plugins/hooks.md": "its Python is signatures",
    "docs/plugins/worked.md": "its commands read files of other programs",
    **dict.fromkeys(TUTORIALS.values(), "test_tutorials follows it"),
}
EXTRAS = sorted(PROJECT["project"]["optional-dependencies"].keys() - {"all"})
EXTRA = re.compile(r"extra `(\w+)`")
NO_MODULE = re.compile(r"No module named '(\w+)'")
SERVES = "fxf view "
"""A command that opens a browser, and ends when it is closed."""


def pages() -> Iterator[str]:
    """Pages of docs/ with commands or programs, but those of ``ELSEWHERE``, and the reference."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        name = path.relative_to(ROOT).as_posix()
        followed = name not in ELSEWHERE and path.parent.name != "reference"
        if followed and any(blocks(path.read_text("utf-8"))):
            yield name


def says_so(before: str, shown: str) -> bool:
    """Whether a page names the extra that a command or a program misses, before it does."""
    missed = set()
    module = NO_MODULE.search(shown)
    if module and f"`pip install {module[1]}`" in before:  # what only a test needs is no extra
        return True
    for extra in EXTRAS:
        packages = install_line(extra, "").partition(" install ")[2]
        if packages in shown or (module and re.search(rf"\b{module[1]}\b", packages)):
            missed.add(extra)
    return bool(missed & set(EXTRA.findall(before)))


def ask(environment: Environment, folder: Path, step: Step) -> tuple[int, str]:
    """Run a command of a page in a folder."""
    turns = looped(step.command)
    if isinstance(environment, Here) and step.command.startswith(SERVES):
        return step.status, ""
    if turns is None:
        all_done = [environment.shell(step.command, folder)]
    else:
        all_done = environment.fxf_many(turns, folder)
    shown = "".join(done.stderr + done.stdout for done in all_done)
    return max(done.status for done in all_done), shown


def test_the_readme_can_be_followed_literally(core: Environment) -> None:
    """In a clone's own folder, whose `fxframework` must not hide the one that is installed."""
    clone = core.folder.parent

    def run(step: Step) -> tuple[int, str]:
        command = INSTALL.sub("", step.command)
        return ask(core, clone, Step(command, step.expected, step.status))

    def python(block: Block) -> str:
        """Run a block as a file and with -c, which look for modules in this folder first."""
        (clone / "block.py").write_text(block.code)
        before = set(clone.iterdir())
        shown = []
        for command in ("python block.py", f"python -c {shlex.quote(block.code)}"):
            for made in set(clone.iterdir()) - before:
                made.unlink()
            done = core.shell(command, clone)
            shown.append(done.stderr if done.status else "")
        return "".join(shown)

    wrong = follow(README, "README.md", run=run, python=python)
    assert not wrong, "\n".join(wrong)
    assert (clone / "again.fxt").read_bytes() == (clone / "boot.fxt").read_bytes()


@pytest.fixture(scope="session")
def captures(core: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the commands of `docs/captures.md` have run."""
    folder = tmp_path_factory.mktemp("captures")
    shutil.copytree(ROOT / "examples", folder / "examples")
    text = CAPTURES.read_text("utf-8")
    wrong = follow(text, "docs/captures.md", run=partial(ask, core, folder))
    assert not wrong, "\n".join(wrong)
    return folder


@pytest.fixture(scope="session")
def one_folder(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the commands and programs of all pages run, as a reader's would."""
    folder = tmp_path_factory.mktemp("pages") / "folder"
    shutil.copytree(captures, folder)
    return folder


@pytest.mark.timeout(120)
@pytest.mark.parametrize("page", list(pages()))
def test_the_commands_of_a_page(
    page: str,
    core: Environment,
    here: Environment,
    captures: Path,
    one_folder: Path,
    tmp_path: Path,
) -> None:
    text = (ROOT / page).read_text("utf-8")

    def python(block: Block) -> str:
        done = core.exec(block.code, one_folder)
        return done.stderr if done.status else ""

    run = partial(ask, core, one_folder)
    wrong = follow(text, page, run=run, python=python, needs=says_so)
    assert not wrong, "\n".join(wrong)
    if EXTRA.search(text):
        # test_docs runs the programs with every extra.
        folder = tmp_path / "here"
        shutil.copytree(captures, folder)
        wrong = follow(text, page, run=partial(ask, here, folder))
        assert not wrong, "\n".join(wrong)


def test_pages_that_are_followed_elsewhere_are_there() -> None:
    for page in ELSEWHERE:
        assert (ROOT / page).is_file()


def test_what_is_printed_is_compared() -> None:
    assert matches("a\n…\nz 1 …\n", "a\nb\nc\nz 1 2 3\n")
    assert matches("ok in 0.36 s\n", "ok in 0.12 s\n")
    assert not matches("a\n", "b\n")
    assert not matches("a\n", "a\nb\n")
    block = Block("console", "$ fxf x  # exit status 3\nout\n$ fxf y\n", 1)
    assert [(s.command, s.expected, s.status) for s in steps(block)] == [
        ("fxf x", "out\n", 3), ("fxf y", None, 0),
    ]  # fmt: skip
