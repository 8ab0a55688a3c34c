"""What a plugin registers must be what it should be, and its code cannot end or spoil a run."""

# ruff: noqa: E501 (a table)

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest
import toy

from fxframework import hookimpl
from fxframework.admission import unmet_requirement
from fxframework.errors import NoReaderError
from fxframework.exporters import plugin as exporters
from fxframework.host import Host
from fxframework.registry import DeviceKind, Exporter, Option, Reader, StepKind, Writer
from fxframework.testing.cli import run_cli

from ..cases import cases

READER = {"format": "brk", "open": print}
WRITER = {"format": "brk", "open": print}
EXPORTER = {"name": "lines", "accepts": frozenset({"logs"}), "open": print}
STEP = {"name": "brk.do", "title": "Do.", "parameters": dict, "run": print}
DEVICE = {"name": "brk", "title": "It.", "open": print}
OPTION = {"name": "size", "type": int, "default": 0, "help": "how large"}


def plugin(**hooks: Any) -> ModuleType:
    module = ModuleType("brk_plugin")
    for name, value in hooks.items():
        setattr(module, name, hookimpl(value) if callable(value) else value)
    return module


@cases(
    ("kind", "fields", "message"),
    [
        (Reader, {**READER, "suffixes": ".brk"}, "suffixes is the string '.brk'; write the tuple ('.brk',)"),
        (Reader, {**READER, "suffixes": ("brk",)}, "suffix 'brk' is not a string such as '.abc'"),
        (Reader, {**READER, "suffixes": None}, "suffixes is None, not a tuple of strings"),
        (Reader, {**READER, "format": "Brk 1"}, "format is 'Brk 1', which does not match"),
        (Reader, {**READER, "format": 7}, "format is 7"),
        (Reader, {**READER, "magic": "BRK"}, "magic is 'BRK', not bytes"),
        (Reader, {**READER, "open": "brk:open"}, "open is 'brk:open', not a function"),
        (Reader, {**READER, "rules": {}}, "rules is {}, not a function"),
        (Reader, {**READER, "sniff": None}, "sniff is None, not a function"),
        (Reader, {**READER, "title": b"Brk"}, "title is b'Brk', not a string"),
        (Reader, {**READER, "options": Option(**OPTION)}, "not a tuple of Option"),
        (Reader, {**READER, "options": ("size",)}, "options contains 'size', not an Option"),
        (Reader, {**READER, "options": (Option(**OPTION),) * 2}, "option size is declared twice"),
        (Reader, {**READER, "options": (Option(**{**OPTION, "default": "0"}),)}, "has the default '0', which is not int"),
        (Reader, {**READER, "options": (Option(**{**OPTION, "type": list}),)}, "option size is of type"),
        (Reader, {**READER, "options": (Option(**{**OPTION, "help": ""}),)}, "option size has no help text"),
        (Reader, {**READER, "options": (Option(**OPTION, flags="-s"),)}, "write the tuple ('-s',)"),
        (Writer, {**WRITER, "accepts": ["logs"]}, "accepts is ['logs'], not a frozenset of names"),
        (Writer, {**WRITER, "extract": True}, "extract is True, not a function"),
        (Exporter, {**EXPORTER, "accepts": ["logs"]}, "accepts is ['logs'], not a frozenset"),
        (Exporter, {**EXPORTER, "accepts": frozenset({1})}, "whose members are not all strings"),
        (StepKind, {**STEP, "name": "do"}, "name is 'do', which does not match"),
        (StepKind, {**STEP, "parameters": "P"}, "parameters is 'P', not a function"),
        (StepKind, {**STEP, "replays": "brk"}, "replays is 'brk', not a frozenset of names"),
        (DeviceKind, {**DEVICE, "open": None}, "open is None, not a function"),
    ],
)  # fmt: skip
def test_a_wrong_descriptor_is_left_out(kind: type, fields: dict[str, Any], message: str) -> None:
    hooks = {
        Reader: "fx_readers", Writer: "fx_writers", Exporter: "fx_exporters",
        StepKind: "fx_step_kinds", DeviceKind: "fx_devices",
    }  # fmt: skip
    host = Host(discover=False)
    others = {"fx_cli": lambda cli: None}
    known = host.register(plugin(**{hooks[kind]: lambda: [kind(**fields)]}, **others), name="brk")
    assert known.status == "partial"
    assert not any(known.registers.values())
    assert len(host.failures) == 1
    assert message in host.failures[0].error
    assert "is left out" in host.failures[0].error


def test_all_that_is_wrong_is_said_at_once() -> None:
    host = Host(discover=False)
    wrong = Reader(format="B", open=None, suffixes=".b", magic="B")
    host.register(plugin(fx_readers=lambda: [wrong, toy.READER]), name="brk")
    assert host.failures[0].error.count(";") == 4
    assert set(host.readers) == {"toy"}


def test_a_hook_may_return_one_descriptor() -> None:
    host = Host(discover=False)
    host.register(plugin(fx_readers=lambda: toy.READER), name="one")
    assert (host.failures, set(host.readers)) == ((), {"toy"})


@cases("verdict", [True, False, 2, None, "certain"])
def test_a_sniffer_that_gives_no_confidence_is_listed(verdict: Any) -> None:
    host = Host(discover=False)
    reader = attrs.evolve(toy.READER, sniff=lambda _: verdict)
    host.register(plugin(fx_readers=lambda: reader), name="odd")
    with pytest.raises(NoReaderError):
        host.open(toy.SAMPLE)
    assert f"it returned {verdict!r}, not a Confidence" in host.failures[0].error


@cases(
    ("requirement", "unmet"),
    [
        ("fxframework>=9.0", ">=9.0"), ("fxframework<0.1", "<0.1"), ("fxframework (>=9)", ">=9"),
        ("FxFramework[view]==1.*", "==1.*"), ("fxframework>=0.1,<0.2", ""), ("fxframework", ""),
        ("fxframework~=0.1", ""), ("fxframework~=0.0.9", "~=0.0.9"), ("fxframework==0.1", ""),
        ("fxframework!=0.1.0", "!=0.1.0"), ("fxframework!=0.1.*", "!=0.1.*"), ("other>=9", ""),
        ("fxframework>=9; extra == 'x'", ""), ("fxframework @ file:///x", ""), ("-", ""),
        ("fxframework>0.1", ">0.1"), ("fxframework<=0.1.0.0", ""), ("fxframework==0.1.dev3", ""),
    ],
)  # fmt: skip
def test_a_plugin_for_another_fxframework_is_listed(requirement: str, unmet: str) -> None:
    name = "fxframework" + unmet if unmet else ""
    assert unmet_requirement([requirement], "fxframework", "0.1.0") == name


def test_what_the_metadata_of_a_plugin_require_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "fx_future-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: fx-future\nVersion: 1\nRequires-Dist: fxframework>=9.0\n"
    )
    (folder / "entry_points.txt").write_text("[fxframework]\nfuture = fx_future\n")
    (tmp_path / "fx_future.py").write_text(
        "from fxframework import hookimpl\n@hookimpl\ndef fx_readers(): return []\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    (failure,) = Host().failures
    assert failure.plugin == "future"
    assert failure.error.startswith("fx-future requires fxframework>=9.0, and this is ")


def test_doctor_sees_commands_that_fail() -> None:
    def fails(cli: Any) -> None:
        raise ValueError("no such group")

    host = Host(discover=False)
    host.register(toy, name="toy")
    assert "fx_cli failed" not in run_cli("doctor", host=host).text
    host.register(plugin(fx_cli=fails), name="brk")
    done = run_cli("doctor", host=host)
    assert done.exit_code == 1
    assert "fx_cli failed: ValueError: no such group" in done.text


# --- Its code ----------------------------------------------------------------------------------

SPOILER = '''
"""A plugin that spoils runs."""
import sys
from fxframework import hookimpl
from fxframework.registry import Confidence, Reader
import toy

class Capture(toy.ToyCapture):
    """A toy."""
    format = "spoiler"

    def records(self):
        {records}
        yield from super().records()

def sniff(probe):
    {sniff}
    return Confidence.CERTAIN if probe.head[:3] == b"TOY" else Confidence.NONE

def opened(source, request):
    {opened}
    return Capture(source, request)

@hookimpl
def fx_readers():
    {hook}
    return [Reader(format="spoiler", open=opened, sniff=sniff)]
'''


@pytest.fixture
def spoiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs `fxf` with a plugin that does something in one place."""
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "x.spoiler"
    file.write_bytes(toy.SAMPLE)

    def run(*arguments: str, **places: str) -> Any:
        name = f"spoiler{abs(hash(tuple(places.items())))}"
        filled = dict.fromkeys(("records", "sniff", "opened", "hook"), "pass") | places
        (tmp_path / f"{name}.py").write_text(SPOILER.format(**filled))
        host = Host(discover=False)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", sys.stdout)
            host.register(__import__(name), name="spoiler", distribution="spoil")
        host.register(exporters, name="exporters", distribution="fxframework")
        return run_cli(*arguments, str(file), host=host)

    return run


@pytest.mark.parametrize("place", ["records", "sniff", "opened", "hook"])
def test_what_a_plugin_prints_is_not_in_the_output(spoiled: Any, place: str) -> None:
    clean = spoiled("cat", "--records")
    done = spoiled("cat", "--records", **{place: "print('noise')"})
    assert done.exit_code == clean.exit_code == 0
    assert done.stdout == clean.stdout
    assert b"noise" not in done.stdout
    if place == "records":
        assert "noise" in done.stderr
        assert "FXF0009" in done.stderr
        assert "plugin spoiler printed" in done.stderr


@cases("what", ["sys.exit(0)", "sys.exit('bye')", "raise KeyboardInterrupt",
                                  "raise SystemExit"])  # fmt: skip
@cases("place", ["records", "opened"])
def test_a_plugin_cannot_end_the_run(spoiled: Any, place: str, what: str) -> None:
    done = spoiled("cat", "--records", **{place: what})
    assert done.exit_code == 1, done.stderr
    assert "FXF0009" in done.stderr
    assert "raised by the plugin spoiler (spoil)" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("what", ["sys.exit(0)", "raise KeyboardInterrupt"])
def test_a_sniffer_that_ends_the_program_counts_as_none(spoiled: Any, what: str) -> None:
    done = spoiled("info", sniff=what)
    assert done.exit_code == 4
    assert "the sniffer of spoiler failed" in done.stderr


def test_the_user_can_interrupt_a_plugin(spoiled: Any) -> None:
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    before = signal.getsignal(signal.SIGINT)
    done = spoiled("cat", "--records", records=kill)
    assert done.exit_code == 130
    assert signal.getsignal(signal.SIGINT) is before
