"""A plugin that raises, does not return, or returns nonsense: the user sees one message."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest

from fxframework import containment, hookimpl
from fxframework.errors import ExitCode
from fxframework.host import Host
from fxframework.io.source import Source
from fxframework.model.capture import Capture, OpenRequest
from fxframework.registry import Confidence, Reader
from fxframework.testing.cli import run_cli

FORMAT = "trace"
VIEWS = ("records_json", "scan", "summary", "batches", "table")
COMMANDS = {
    "info": (),
    "cat": (),
    "cat --records": (),
    "cat --table instants": (),
    "verify": (),
    "convert": ("out.csv",),
    "convert -t records": ("out.jsonl",),
}


def raises(*_: Any, **__: Any) -> Any:
    raise KeyError("the pen")


FAULTS: dict[str, Callable[..., Any]] = {
    "raises": raises,
    "gives a number": lambda *_, **__: 17,
    "gives nothing": lambda *_, **__: None,
}


def spoiled(view: str, fault: Callable[..., Any]) -> Callable[[Source, OpenRequest], Capture]:
    """A reader's ``open`` whose captures fail in one view."""
    real = Host().reader(FORMAT).open

    def opened(source: Source, request: OpenRequest) -> Capture:
        capture = real(source, request)
        capture.__class__ = type("Spoiled", (type(capture),), {view: fault})
        return capture

    return opened


def host_with(**changes: Any) -> Host:
    """A host whose only reader is a spoiled one of traces."""
    host = Host(environ={"FXF_PLUGINS": "exporters"})
    module = ModuleType("spoiled")
    reader = attrs.evolve(Host().reader(FORMAT), **changes)
    module.fx_readers = hookimpl(lambda: [reader])  # type: ignore[attr-defined]
    host.register(module, name="spoiled")
    assert not host.failures
    return host


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Host().reader(FORMAT).sample
    assert made is not None
    path = tmp_path_factory.mktemp("plugins") / "a.fxt"
    path.write_bytes(made(2000))
    return path


def check_contained(host: Host, path: Path, folder: Path) -> int:
    """Run every command; gives how many ended in a message."""
    failed = 0
    for command, out in COMMANDS.items():
        result = run_cli(*command.split(), path, *(folder / name for name in out), host=host)
        assert "Traceback" not in result.stderr
        if result.exit_code == ExitCode.OK:
            for each in folder.iterdir():
                each.unlink()
            continue
        failed += 1
        assert result.exit_code == ExitCode.FAILED, (command, result.stderr)
        assert result.stderr.count("error[") == 1
        assert result.stderr.startswith("error[FXF00"), (command, result.stderr)
        assert not list(folder.iterdir()), command
    return failed


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("view", VIEWS)
def test_a_capture_that_fails_ends_in_one_message(
    view: str, fault: str, path: Path, tmp_path: Path
) -> None:
    host = host_with(open=spoiled(view, FAULTS[fault]))
    failed = check_contained(host, path, tmp_path)
    assert failed or (view, fault) in {
        ("scan", "gives a number"), ("scan", "gives nothing"),  # nobody looks at it
    }  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_reader_that_fails_to_open_ends_in_one_message(
    fault: str, path: Path, tmp_path: Path
) -> None:
    host = host_with(open=FAULTS[fault])
    assert check_contained(host, path, tmp_path) == len(COMMANDS)
    if fault != "raises":
        result = run_cli("info", path, host=host)
        assert result.stderr.startswith("error[FXF0009]: trace of the plugin spoiled (")
        assert "not a Capture" in result.stderr


def test_a_reader_whose_open_takes_other_arguments_is_blamed(path: Path) -> None:
    result = run_cli("info", path, host=host_with(open=lambda source: source))
    assert result.exit_code == ExitCode.FAILED
    assert result.stderr.startswith("error[FXF0009]: trace of the plugin spoiled (")
    assert "a function is called with 2 arguments, but " in result.stderr


@pytest.mark.parametrize("fault", [*FAULTS, "hangs"])
def test_a_sniffer_that_fails_is_told_and_another_reader_is_found(
    fault: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()
    monkeypatch.setattr(containment, "PATIENCE", 0.2)
    host = Host()
    module = ModuleType("spoiled")
    sniff = FAULTS.get(fault, lambda _: goes_on.wait() and Confidence.CERTAIN)
    bad: Reader = attrs.evolve(host.reader(FORMAT), format="spoiled", sniff=sniff)
    module.fx_readers = hookimpl(lambda: [bad])  # type: ignore[attr-defined]
    host.register(module, name="spoiled")
    try:
        result = run_cli("info", path, host=host)
    finally:
        goes_on.set()
    assert result.exit_code == ExitCode.OK
    assert "Fuchsia trace archive" in result.text
    assert "the sniffer of spoiled failed" in result.stderr
    if fault == "hangs":
        assert "it did not return within 0.2 s" in result.stderr
