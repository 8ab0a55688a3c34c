"""The oracle itself: what it answers, and what it does where it cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ..cases import cases
from . import journal, xray_tool
from .perfetto import Perfetto, PerfettoError, why_not

MAGIC = bytes.fromhex("1000044678541600")
SIZE_ZERO = bytes.fromhex("0000044678541600")


def test_it_answers_several_queries_and_several_traces(perfetto: Perfetto) -> None:
    first, second = perfetto(MAGIC), perfetto(MAGIC + MAGIC)
    answers = first.queries({"one": "select 1 as a, 'x' as b, null as c", "two": "select 0.5 as d"})
    assert answers == {"one": [{"a": 1, "b": "x", "c": None}], "two": [{"d": 0.5}]}
    assert second.query("select count(*) as n from slice") == [{"n": 0}]
    assert first.stats() == {}


def test_integers_are_exact(perfetto: Perfetto) -> None:
    rows = perfetto(MAGIC).query("select 9223372036854775807 as big, -1 as small")
    assert rows == [{"big": (1 << 63) - 1, "small": -1}]


def test_what_it_refuses_is_an_error_and_no_end(perfetto: Perfetto) -> None:
    with pytest.raises(PerfettoError, match="size 0"):
        perfetto(MAGIC + SIZE_ZERO).stats()
    with pytest.raises(PerfettoError, match="syntax error"):
        perfetto(MAGIC).query("selec")
    assert perfetto(MAGIC).query("select 1 as a") == [{"a": 1}]


def test_a_crash_is_an_error_and_the_next_trace_gets_a_new_engine(perfetto: Perfetto) -> None:
    """Takes seconds: an engine is started twice."""
    perfetto(MAGIC * 3).stats()
    assert perfetto._process is not None
    perfetto._process.kill()
    with pytest.raises(PerfettoError, match="stopped"):
        perfetto(MAGIC * 4).stats()
    assert perfetto(MAGIC * 4).stats() == {}


def test_without_node_there_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no `node`" in str(why_not())
    fake = tmp_path / "node"
    fake.write_text("#!/bin/sh\necho v18.19.0\n")
    fake.chmod(0o755)
    assert "v18.19.0" in str(why_not())


def pretend(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str) -> Path:
    """Put a program on the path, alone, that says one thing."""
    tool = folder / name
    tool.write_text(f"#!/bin/sh\necho '{said}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("FXF_REQUIRE_ORACLES", raising=False)
    return tool


@cases("find", [xray_tool.llvm_xray, xray_tool.clang_with_xray])
def test_tools_of_an_old_llvm_are_named_with_the_version_that_is_needed(
    find: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = str(pretend(tmp_path, monkeypatch, "tool", "Debian LLVM version 11.0.1"))
    monkeypatch.setattr(xray_tool, "find_llvm_xray", lambda: tool)
    monkeypatch.setattr(xray_tool, "find_clang", lambda: tool)
    with pytest.raises(pytest.skip.Exception, match=r"is of LLVM 11, .* need LLVM 14 or newer"):
        find()


def test_an_old_journal_is_named_with_the_version_that_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = pretend(tmp_path, monkeypatch, "journalctl", "systemd 247 (247.3-7)")
    monkeypatch.setattr(journal, "IMPORTERS", (str(tool),))
    assert journal.why_not() == (
        "the journal oracle needs systemd 252 or newer, and this is systemd 247"
    )


def test_names_are_compared_as_newer_llvms_spell_them() -> None:
    assert xray_tool.spelled("a<b<c> > >& > d") == "a<b<c>>>& > d"
