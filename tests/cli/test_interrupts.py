"""Ctrl-C ends a command with 130, whatever becomes of its KeyboardInterrupt on the way."""

from __future__ import annotations

import signal
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fxframework.cli import INTERRUPTED
from fxframework.cli.guard import Guard
from fxframework.errors import UnreadableError
from fxframework.testing.cli import run_cli

from ..cases import cases

pytestmark = pytest.mark.skipif(
    signal.getsignal(signal.SIGINT) is not signal.default_int_handler,
    reason="this process handles SIGINT in its own way",
)


class Thing:
    """Something to refer to weakly."""


def interrupted() -> None:
    """Be interrupted, as by Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


def replaced() -> None:
    """Replace the interrupt, as numpy does where it promotes the fields of arrays."""
    try:
        interrupted()
    except KeyboardInterrupt:
        raise TypeError("no common dtype") from None


def as_error() -> None:
    """Replace the interrupt by an error of the capture, which commands for many leave out."""
    try:
        interrupted()
    except KeyboardInterrupt:
        raise UnreadableError("it ended") from None


def swallowed() -> None:
    """Lose the interrupt altogether."""
    try:
        interrupted()
    except KeyboardInterrupt:
        return


def in_callback() -> None:
    """Have Python drop the interrupt, as it does in destructors and callbacks; then work on."""
    thing = Thing()
    reference = weakref.ref(thing, lambda _: interrupted())
    del thing
    assert reference() is None
    end = time.monotonic() + 20
    while time.monotonic() < end:
        time.sleep(0.01)
    raise AssertionError("the interrupt was ignored")


WAYS = [interrupted, replaced, as_error, swallowed, in_callback]


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from fx_trace.write.archive import Archive

    folder = tmp_path_factory.mktemp("captures")
    for number in range(5):
        with Archive(folder / f"{number}.fxt") as archive:
            app = archive.provider(1, "app")
            app.duration_complete("c", "n", 0, 10 + number)
    return folder


def once(way: Callable[[], None], function: Callable[..., Any]) -> tuple[Any, list[int]]:
    """Return a function that is interrupted in a way on its second call, and its calls."""
    calls: list[int] = []

    def work(*given: Any, **options: Any) -> Any:
        calls.append(len(calls))
        if len(calls) == 2:
            way()
        return function(*given, **options)

    return work, calls


@cases("way", WAYS)
def test_odd_ends(way: Any, captures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fxframework.analysis import oddity

    work, calls = once(way, oddity.figures_of)
    monkeypatch.setattr(oddity, "figures_of", work)
    done = run_cli("odd", captures)
    assert done.exit_code == INTERRUPTED
    assert "bug" not in done.stderr
    if way is not swallowed:
        assert len(calls) == 2


@cases("way", WAYS)
def test_compare_ends(way: Any, captures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fxframework.analysis.runs import Reader

    work, calls = once(way, Reader.read)
    monkeypatch.setattr(Reader, "read", work)
    done = run_cli("compare", captures, "--with", captures)
    assert done.exit_code == INTERRUPTED
    assert "bug" not in done.stderr
    if way is not swallowed:
        assert len(calls) == 2


@cases("way", WAYS)
def test_batch_ends(
    way: Any, captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    from fxframework.dataset import part

    work, calls = once(way, part._converted)
    monkeypatch.setattr("fxframework.dataset.batch.TASK_ITEMS", 1)
    monkeypatch.setattr(part, "_converted", work)
    done = run_cli("batch", captures, "--out", tmp_path / "out", "--jobs", "1")
    assert done.exit_code == INTERRUPTED
    assert "bug" not in done.stderr
    assert len(calls) < 5 or way is swallowed


def test_an_interrupt_while_the_guard_ends_is_not_lost(
    captures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, calls = Guard._stop, []

    def late(guard: Guard) -> None:
        if not calls:
            calls.append(1)
            interrupted()
        stop(guard)

    monkeypatch.setattr(Guard, "_stop", late)
    assert run_cli("info", captures / "0.fxt").exit_code == INTERRUPTED


def test_a_bug_is_a_bug_without_an_interrupt(
    captures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fxframework.analysis import oddity

    def fails(_capture: Any) -> None:
        raise TypeError("no common dtype")

    monkeypatch.setattr(oddity, "figures_of", fails)
    done = run_cli("odd", captures)
    assert done.exit_code == 1
    assert "bug in fxframework: TypeError" in done.stderr
