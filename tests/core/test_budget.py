"""What work may take: time, memory and output, of every command and of captures in Python."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import fxframework as fxf
from fxframework.cli.guard import Guard
from fxframework.cli.render import Screen
from fxframework.errors import LimitError, UsageError
from fxframework.host import default_host
from fxframework.io.budget import WORKING, Budget
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.model.capture import Capture
from fxframework.testing.cli import run_cli

from ..cases import cases

FORMATS = ("trace", "log", "xray", "inspect")


@pytest.fixture(params=FORMATS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    reader = default_host().reader(request.param)
    made = tmp_path / f"in{reader.suffixes[0]}"
    assert reader.sample is not None
    made.write_bytes(reader.sample(200_000))
    return made


def batches(capture: Capture) -> None:
    for name in capture.schemas:
        for _ in capture.batches(name, 1000):
            pass


def records(capture: Capture) -> None:
    for _ in capture.checked_records():
        pass


def tables(capture: Capture) -> None:
    for name in capture.schemas:
        capture.table(name)


def lines(capture: Capture) -> None:
    for _ in capture.records_json():
        pass


@cases(
    "work",
    [batches, records, tables, lines, Capture.scan, Capture.summary],
    ids=lambda work: work.__name__,
)
def test_captures_stop_at_max_time(path: Path, work: Callable[[Capture], None]) -> None:
    with fxf.open(path, max_time=1e-9) as capture:
        with pytest.raises(LimitError, match="max_time") as raised:
            work(capture)
        assert "--max-time" in raised.value.remedy
    with fxf.open(path, max_time=600) as capture:
        work(capture)


def test_a_long_pass_is_stopped_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    made = default_host().reader("trace").sample
    assert made is not None
    monkeypatch.setattr("fxframework.wire.blocks.BLOCK_BYTES", 8000)
    monkeypatch.setattr("fxframework.wire.blocks.RELEASED", 4000)
    seen: list[int] = []
    passed = Source.passed

    def counted(self: Source, start: int, stop: int) -> None:
        seen.append(stop)
        self.budget = Budget(Limits(max_time=1e-9))
        passed(self, start, stop)

    monkeypatch.setattr(Source, "passed", counted)
    capture = fxf.open(made(100_000), format="trace", max_time=600)
    with capture, pytest.raises(LimitError, match="max_time"):
        capture.scan()
    assert seen == [8_008]  # behind the first record that goes on beyond the block


@cases("suffix", ["csv", "jsonl", "txt"])
def test_conversions_stop_at_max_output(path: Path, suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"out.{suffix}"
    with pytest.raises(LimitError, match="max_output"):
        fxf.convert(path, out, max_output=1000)
    assert not out.exists()
    done = run_cli("convert", path, out, "--max-output", "1k")
    assert done.exit_code == 1
    assert "--max-output" in done.stderr
    assert not out.exists()
    assert fxf.convert(path, out, max_output="20MiB").nbytes > 1000


def test_memory_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    held = 10 << 20
    monkeypatch.setattr("fxframework.io.budget.memory_in_use", lambda: held)
    budget = Budget(Limits(max_memory=1 << 20))
    budget.check()
    held += WORKING
    budget.check()
    held += 2 << 20
    budget._next_measurement = 0
    with pytest.raises(LimitError, match=r"more than 1 MB of memory \(max_memory\)"):
        budget.check()
    by_default = Budget(Limits(), size=10**6)
    assert not by_default.memory
    by_default.memory_factor = 16
    assert by_default.memory == 16 * 10**6 + (2 << 30)


def test_shared_strings_meet_the_default_output_limit() -> None:
    limits = Budget(Limits(), size=1_600_000)
    assert limits.most_output == 256 * 1_600_000 + (256 << 20)
    with pytest.raises(LimitError, match="for an input of 2 MB") as raised:
        limits.check_output(6_500_000_000)
    assert "parquet" in raised.value.remedy
    assert Budget(Limits(max_output=0), size=1).most_output == 0


def test_a_command_is_interrupted_wherever_it_is() -> None:
    budget = Budget(Limits(max_time=0.1))
    until = time.monotonic() + 20

    def work() -> None:
        with Guard(budget, Screen(), owns_process=False):
            while time.monotonic() < until:
                sum(range(1000))

    with pytest.raises(LimitError, match="max_time"):
        work()
    assert time.monotonic() < until - 5


def test_an_interrupt_in_a_destructor_is_repeated() -> None:
    """Python drops what a destructor raises: without a word, and the command is still ended."""
    budget = Budget(Limits(max_time=0.1))
    until = time.monotonic() + 20
    interrupted = []

    class Slow:
        def __del__(self) -> None:
            try:
                while time.monotonic() < until:
                    sum(range(1000))
            except KeyboardInterrupt:
                interrupted.append(True)
                raise

    def work() -> None:
        with Guard(budget, Screen(), owns_process=False):
            Slow()
            while time.monotonic() < until:
                sum(range(1000))

    with pytest.raises(LimitError, match="max_time"):
        work()
    assert interrupted
    assert time.monotonic() < until - 5


@cases("command", ["plugins", "doctor"])
def test_commands_without_captures_have_the_limits_too(command: str) -> None:
    done = run_cli(command, "--max-output", "10")
    assert done.exit_code == 1
    assert "max_output" in done.stderr


@cases("value", ["-1", "x", "1Q"])
def test_invalid_limits_are_refused(value: str) -> None:
    assert run_cli("plugins", "--max-output", value).exit_code == 2
    with pytest.raises(UsageError):
        fxf.open(b"", format="trace", max_output=value)
