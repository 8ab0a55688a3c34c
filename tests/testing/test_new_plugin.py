"""`fxf new-plugin`: names, files, refusals. tests/docs installs what it writes, and runs it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fxframework import Host, hookimpl
from fxframework.errors import ExitCode, OutputError, UsageError, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.registry import Exporter
from fxframework.templates import repository
from fxframework.templates.repository import KINDS, SMALL, Name, render, write
from fxframework.testing.checkup import checkup
from fxframework.testing.cli import run_cli

from ..cases import cases
from ..properties import FEW

NAMES = ("beats", "heart-beats", "x", "a" * repository.MOST)


@cases(
    ("text", "slug", "package"),
    [
        ("beats", "beats", "fx_beats"),
        ("Beats", "beats", "fx_beats"),
        ("fx-beats", "beats", "fx_beats"),
        ("fx_beats", "beats", "fx_beats"),
        ("heart_beats", "heart-beats", "fx_heart_beats"),
        ("heart.-_beats", "heart-beats", "fx_heart_beats"),
        ("class", "class", "fx_class"),
        ("b2", "b2", "fx_b2"),
    ],
)
def test_names_are_normalized(text: str, slug: str, package: str) -> None:
    name = Name.parse(text)
    assert (name.slug, name.package, name.distribution) == (slug, package, f"fx-{slug}")


@cases(
    "text",
    ["", "-", "2b", "beats-", "-beats", "fx-", "b/c", "../b", "b c", "bé", "$b", "b\n",
     "a" * (repository.MOST + 1)],
)  # fmt: skip
def test_invalid_names_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name") as refused:
        Name.parse(text)
    assert "letter" in refused.value.remedy


@cases("name", NAMES)
@cases("kind", KINDS)
def test_files_are_whole(kind: str, name: str) -> None:
    named = Name.parse(name)
    files = render(kind, named)
    assert {".gitignore", ".github/workflows/ci.yml", "LICENSE", "README.md", "pyproject.toml",
            f"{named.package}/plugin.py", "tests/test_contracts.py"} <= files.keys()  # fmt: skip
    project = tomllib.loads(files["pyproject.toml"])["project"]
    assert project["name"] == named.distribution
    assert project["entry-points"]["fxframework"] == {named.slug: f"{named.package}.plugin"}
    for path, text in files.items():
        assert text.endswith("\n"), path
        assert not path.startswith("/")
        if path.endswith(".py"):
            assert ast.get_docstring(ast.parse(text, path)), path
            longest = max(map(len, text.splitlines()))
            assert longest <= 100 or len(named.slug) > 12, path
    for path in files:
        if path.startswith(f"{named.package}/") and path.endswith(".py") and "/" in path[:-3]:
            folder = path.rpartition("/")[0]
            assert f"{folder}/__init__.py" in files, folder


@cases("name", NAMES)
def test_a_small_format_is_a_module_and_its_test(name: str) -> None:
    named = Name.parse(name)
    module = named.words["prefix"]
    files = render("format", named, small=True)
    assert files.keys() == {f"{module}.py", f"test_{module}.py"}
    for path, text in files.items():
        assert ast.get_docstring(ast.parse(text, path)), path


def test_a_small_format_passes_its_test(tmp_path: Path) -> None:
    """Takes seconds: what a newcomer does first, with pytest and with `plugins --check`."""
    done = run_cli("new-plugin", "format", "drums", "--small", "--into", tmp_path)
    assert done.exit_code == ExitCode.OK
    folder = tmp_path / "drums"
    assert {path.name for path in folder.iterdir()} == {"drums.py", "test_drums.py"}
    assert f"fxf --plugin {folder / 'drums.py'} plugins --check drums" in done.stderr
    (tmp_path / "few.py").write_text(FEW)
    # The command below runs all of the contract.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "few", "-p", "no:cacheprovider",
               "-k", "not Contract or records or tables", folder]  # fmt: skip
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    tested = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert tested.returncode == 0, tested.stdout
    checked = run_cli("--plugin", folder / "drums.py", "plugins", "--check", "drums")
    assert checked.exit_code == ExitCode.OK, checked.text


@cases("kind", sorted(KINDS.keys() - SMALL.keys()))
def test_other_kinds_are_not_small(kind: str, tmp_path: Path) -> None:
    done = run_cli("new-plugin", kind, "drums", "--small", "--into", tmp_path)
    assert done.exit_code == ExitCode.USAGE
    assert "no small template" in done.stderr
    assert not list(tmp_path.iterdir())


def test_two_names_share_nothing() -> None:
    """Plugins of two names can be installed beside each other: codes, suffixes, magic differ."""
    one, other = render("format", Name.parse("beats")), render("format", Name.parse("pulse"))
    for path in one.keys() & other.keys():
        if path.endswith(("plugin.py", "rules.py", "layout.py")):
            assert one[path] != other[path], path


@cases("kind", KINDS)
def test_the_command_writes_what_it_lists(kind: str, tmp_path: Path) -> None:
    done = run_cli("new-plugin", kind, "Heart_Beats", "--into", tmp_path)
    assert done.exit_code == ExitCode.OK, done.stderr
    target = tmp_path / "fx-heart-beats"
    listed = [Path(line) for line in done.text.splitlines()]
    assert listed == sorted(path for path in target.rglob("*") if path.is_file())
    assert f"pip install -e '{target}[test]'" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [target.name], "nothing else is left"


def test_the_command_answers_in_json(tmp_path: Path) -> None:
    told = run_cli("new-plugin", "exporter", "beats", "--into", tmp_path, "--json").json()
    assert (told["kind"], told["distribution"]) == ("exporter", "fx-beats")
    assert all((tmp_path / "fx-beats" / path).is_file() for path in told["files"])


@cases("name", ["trace", "fx-log", "log-ring", "csv", "replay"])
def test_names_of_ours_are_refused(name: str, tmp_path: Path) -> None:
    done = run_cli("new-plugin", "format", name, "--into", tmp_path)
    assert done.exit_code == ExitCode.USAGE
    assert "is the name of a plugin, format or exporter" in done.stderr
    assert not list(tmp_path.iterdir())


@cases(
    ("arguments", "status"),
    [
        (("new-plugin", "reader", "beats"), ExitCode.USAGE),
        (("new-plugin", "format"), ExitCode.USAGE),
        (("new-plugin", "format", "2b"), ExitCode.USAGE),
        (("new-plugin", "format", "beats", "--into", "gone"), ExitCode.FAILED),
        (("new-plugin", "format", "beats", "--since", "1s"), ExitCode.USAGE),
    ],
)
def test_the_command_refuses(
    arguments: tuple[str, ...], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_cli(*arguments)
    assert done.exit_code == status, done.stderr
    assert done.stderr
    assert not list(tmp_path.iterdir())


@cases("make", ["mkdir", "touch", "symlink"])
def test_nothing_is_overwritten(make: str, tmp_path: Path) -> None:
    target = tmp_path / "fx-beats"
    if make == "symlink":
        target.symlink_to(tmp_path / "nowhere")
    else:
        getattr(target, make)()
    with pytest.raises(WriteRefusedError, match="already exists"):
        write({"a": "b\n"}, target)
    assert list(tmp_path.iterdir()) == [target]


def test_it_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """The last file cannot be written: a folder of its name is needed for the first."""
    with pytest.raises(OutputError, match="cannot write"):
        write({"a/b": "first\n", "a": "second\n"}, tmp_path / "fx-beats")
    assert not list(tmp_path.iterdir())


def test_an_exporter_of_what_no_sample_has_is_not_at_fault() -> None:
    """`fxf plugins --check` of an exporter of counters, of which no installed reader makes any."""

    class Plugin:
        """Exports nothing that is there."""

        @hookimpl
        def fx_exporters(self) -> list[Exporter]:
            return [Exporter(name="none", accepts=frozenset({"blobs"}), open=_open_nothing)]

    host = Host(environ={"FXF_PLUGINS": "log"})
    host.register(Plugin(), name="nothing")
    results = list(checkup(host, "nothing", examples=1))
    skipped = [each for each in results if each.status == "skipped"]
    assert not [each for each in results if each.status == "failed" and "empty" in each.test]
    assert any("with blobs: nothing to try" in each.message for each in skipped)


def _open_nothing(sink: Sink, options: Mapping[str, Any]) -> Any:
    raise UsageError("nothing is exported")
