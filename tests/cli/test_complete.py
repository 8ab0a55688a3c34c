"""Completion in a shell: what is offered for each kind of word."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from fxframework.cli.app import HELP, Fxf
from fxframework.cli.render import Screen
from fxframework.cli.session import Session
from fxframework.host import default_host
from fxframework.testing.cli import run_cli

from ..cases import cases

ROOT = Path(__file__).resolve().parents[2]


def offered(*words: str, typed: str = "") -> list[tuple[str, str]]:
    session = Session(Screen(), default_host())
    group = Fxf(name="fxf", help=HELP)
    shell = ShellComplete(group, {"obj": session}, "fxf", "_FXF_COMPLETE")
    return [(item.type, item.value) for item in shell.get_completions(list(words), typed)]


FILE_WORDS = (
    ("info",), ("cat",), ("convert",), ("convert", "a.fxt"), ("verify",), ("diff",), ("diff", "a"),
    ("salvage",), ("salvage", "a"), ("account",), ("stack",), ("graph",), ("compare", "a"),
    ("watch",), ("replay",), ("record",),
)  # fmt: skip


@cases("words", FILE_WORDS, ids=" ".join)
def test_files(words: tuple[str, ...]) -> None:
    assert offered(*words, typed="bo") == [("file", "bo")]


def test_commands_and_files_of_the_default_command() -> None:
    assert ("plain", "verify") in offered(typed="ver")
    assert offered(typed="boot.f") == [("file", "boot.f")]


def test_names() -> None:
    host = default_host()
    targets = {exporter.name for exporter in host.exporters} | set(host.writers)
    assert {value for _, value in offered("convert", "-t")} == targets
    assert {value for _, value in offered("info", "-f")} == set(host.readers)
    assert offered("convert", "-t", typed="spee") == [("plain", "speedscope")]
    options = {value for _, value in offered("convert", "-o")}
    assert {"max_findings=", "utc_offset_ns=", "table="} <= options
    assert offered("convert", "-o", typed="max_find") == [("plain", "max_findings=")]


def test_codes() -> None:
    codes = {rule.code for rule, _ in default_host().rules()}
    found = {value for _, value in offered("explain", typed="FXT")}
    assert found == {code for code in codes if code.startswith("FXT")}
    assert offered("explain", typed="./b") == [("file", "./b")]


def test_every_shell_of_the_page_has_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    for shell in ("zsh", "fish"):
        assert f"_FXF_COMPLETE={shell}_source fxf" in page
        monkeypatch.setenv("_FXF_COMPLETE", f"{shell}_source")
        assert "_FXF_COMPLETE" in run_cli().text
