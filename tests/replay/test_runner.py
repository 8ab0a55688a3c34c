"""Scenarios run: steps in order, failures told and not raised, outputs and reports the same."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from fxframework import hookimpl
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.host import Host
from fxframework.kit.steps import Outcome, Run, parameter
from fxframework.registry import DeviceKind, StepKind
from fxframework.replay import Report, StepReport, junit, parse, replay
from fxframework.replay.golden import difference

from ..cases import cases

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = sorted((ROOT / "examples" / "scenarios").glob("*.toml"))


@attrs.frozen
class Words:
    """Parameters of the steps below."""

    says: str = parameter("", help="a word")
    output: str = parameter("", help="an output", makes="output")


class Plugin:
    """Steps that do what a test asks for, and a note of everything that was told."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.closed: list[str] = []

    def run(self, given: Words, run: Run) -> Any:
        match given.says:
            case "fail":
                return Outcome.failed("it does not hold", wanted=1)
            case "skip":
                return Outcome.skipped("nothing to do")
            case "raise":
                raise ValueError("a bug")
            case "refuse":
                raise UsageError("no", remedy="do something else")
            case "nonsense":
                return 3
            case "not plain":
                return Outcome.ok(number=1 << 64)
            case "odd status":
                return Outcome("great")  # type: ignore[arg-type]
            case "odd message":
                return Outcome.ok(5)  # type: ignore[arg-type]
            case "nothing":
                return None
        run.put(given.output, str(run.rng("x").random()).encode())
        return Outcome.ok("done", number=7)

    @hookimpl
    def fx_step_kinds(self) -> list[StepKind]:
        return [StepKind(name="my.do", title="", parameters=lambda: Words, run=self.run)]

    @hookimpl
    def fx_devices(self) -> list[DeviceKind]:
        plugin = self

        class Box:
            def __init__(self, name: str) -> None:
                self.name = name

            def close(self) -> None:
                plugin.closed.append(self.name)

        def broken(given: Words, run: Run, name: str) -> Any:
            raise OSError("no such thing")

        return [
            DeviceKind(name="box", title="", open=lambda given, run, name: Box(name)),
            DeviceKind(name="broken", title="", open=broken),
        ]

    @hookimpl
    def fx_step_finished(self, step: StepReport) -> None:
        self.seen.append((step.index, step.status))

    @hookimpl
    def fx_replay_finished(self, report: Report) -> None:
        self.seen.append(report)


@pytest.fixture
def plugin() -> Plugin:
    return Plugin()


@pytest.fixture
def mine(plugin: Plugin) -> Host:
    host = Host(discover=False)
    host.register(plugin, name="mine", distribution="mine")
    return host


def steps(*words: str) -> str:
    return '[scenario]\nname = "mine"\nseed = 4\n' + "".join(
        f'[[step]]\ndo = "my.do"\nsays = "{word}"\noutput = "{number}.txt"\n'
        for number, word in enumerate(words)
    )


def ran(host: Host, *words: str, **options: Any) -> Report:
    return replay(parse(steps(*words), host), host=host, **options)


# --- Steps ---------------------------------------------------------------------------------------


def test_what_fails_an_expectation_lets_the_others_be_held(mine: Host, plugin: Plugin) -> None:
    report = ran(mine, "fail", "skip", "nothing", "work")
    assert [step.status for step in report.steps] == ["failed", "skipped", "ok", "ok"]
    assert not report.ok
    assert report.failures == (report.steps[0],)
    assert report.steps[0].facts == {"wanted": 1}
    assert list(report.outputs) == ["3.txt"]
    assert plugin.seen == [(0, "failed"), (1, "skipped"), (2, "ok"), (3, "ok"), report]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("raise", "ValueError: a bug"),
        ("refuse", "no; do something else"),
        ("nonsense", "TypeError: the step returned 3, not an Outcome"),
        (
            "odd status",
            "TypeError: the status of the outcome is 'great', not ok, failed or skipped",
        ),
        ("odd message", "TypeError: the message of the outcome is 5, not a string"),
        (
            "not plain",
            "TypeError: the facts of the step are not JSON: Integer exceeds 64-bit range",
        ),
    ],
)
def test_what_raises_ends_the_scenario_and_is_told(mine: Host, word: str, message: str) -> None:
    report = ran(mine, word, "work")
    assert [step.status for step in report.steps] == ["failed", "skipped"]
    assert report.steps[0].message == message
    assert report.steps[0].error is not None
    assert report.steps[1].message == "step[0] failed"


def test_devices_are_closed_whatever_happens(mine: Host, plugin: Plugin) -> None:
    devices = '[device.a]\nkind = "box"\n[device.b]\nkind = "box"\n'
    scenario = parse(steps("raise") + devices, mine)
    assert not replay(scenario, host=mine).ok
    assert plugin.closed == ["b", "a"]


def test_a_device_that_cannot_be_opened(mine: Host, plugin: Plugin) -> None:
    devices = '[device.a]\nkind = "box"\n[device.b]\nkind = "broken"\n'
    report = replay(parse(steps("work") + devices, mine), host=mine)
    assert not report.ok
    assert [step.name for step in report.steps] == ["device.b", "step[0] my.do"]
    assert report.steps[0].message == "OSError: no such thing"
    assert report.steps[1].message == "device.b could not be opened"
    assert plugin.closed == ["a"]


# --- Seeds and outputs ---------------------------------------------------------------------------


def test_chance_follows_from_the_seed_alone(mine: Host) -> None:
    assert ran(mine, "work").outputs == ran(mine, "work").outputs
    assert ran(mine, "work", seed=4).own_seed
    other = ran(mine, "work", seed=5)
    assert not other.own_seed
    assert other.outputs != ran(mine, "work").outputs


def test_outputs_and_the_report_are_left_in_the_folder(mine: Host, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    report = ran(mine, "work", "fail", out=out)
    assert (out / "0.txt").read_bytes() == report.outputs["0.txt"]
    assert orjson.loads((out / "report.json").read_bytes()) == report.to_json(timing=False)
    before = (out / "report.json").read_bytes()
    with pytest.raises(WriteRefusedError, match="is not empty"):
        ran(mine, "work", out=out)
    ran(mine, "work", "fail", out=out, force=True)
    assert (out / "report.json").read_bytes() == before


def test_a_folder_that_is_none(mine: Host, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(WriteRefusedError, match="not a folder"):
        ran(mine, "work", out=file, force=True)
    with pytest.raises(WriteRefusedError, match="cannot write"):
        ran(mine, "work", out=file / "below")


def test_an_output_of_a_step_cannot_leave_the_folder() -> None:
    run = Run(name="x", host=None, seed=0)
    with pytest.raises(UsageError, match="within"):
        run.put("../x", b"")


@cases("noun", ["device", "capture", "output"])
def test_what_is_not_there_is_told_with_what_is(noun: str) -> None:
    run = Run(name="x", host=None, seed=0)
    getattr(run, f"{noun}s")["trace"] = b""
    assert getattr(run, noun)("trace") == b""
    with pytest.raises(UsageError, match=f"no {noun} 'trce'; did you mean 'trace'"):
        getattr(run, noun)("trce")


def test_steps_share_what_they_make_once() -> None:
    run = Run(name="x", host=None, seed=0)
    first: list[int] = run.shared("key", list)
    assert run.shared("key", list) is first
    assert run.shared("other", list) is not first


# --- Reports -------------------------------------------------------------------------------------


@pytest.fixture
def report(mine: Host) -> Report:
    return ran(mine, "work", "fail", "skip", "raise", "work")


def test_a_report_for_people(report: Report) -> None:
    assert report.to_text(timing=False) == (
        "mine (seed 4): FAILED (2 of 5 steps)\n"
        "  step[0] my.do  ok: done\n"
        "  step[1] my.do  FAILED: it does not hold\n"
        "  step[2] my.do  skipped: nothing to do\n"
        "  step[3] my.do  FAILED: ValueError: a bug\n"
        "  step[4] my.do  skipped: step[3] failed\n"
    )
    brief = report.to_text(timing=False, verbose=False)
    assert "step[0]" not in brief
    assert "step[1]" in brief
    assert " s\n" in report.to_text()


def test_a_report_for_programs(report: Report) -> None:
    found = report.to_json()
    assert (found["fxframework"], found["version"], found["ok"]) == ("replay", 1, False)
    assert found["seconds"] >= 0
    assert found["steps"][0]["facts"] == {"number": 7}
    assert found["outputs"]["0.txt"]["bytes"] == len(report.outputs["0.txt"])
    assert len(found["outputs"]["0.txt"]["sha256"]) == 64
    orjson.dumps(found)
    bare = report.to_json(timing=False)
    assert "seconds" not in bare
    assert all("seconds" not in step for step in bare["steps"])


def test_a_report_for_ci(report: Report) -> None:
    strange = StepReport(index=0, do="x", status="failed", message="\x00 <&> \ud800 \x1b é\nmore")
    other = Report(scenario="o", file="", seed=0, own_seed=True, steps=(strange,))
    root = ET.fromstring(junit([report, other]).partition("\n")[2])
    first, second = root
    assert (first.get("name"), first.get("tests")) == ("mine", "5")
    assert (first.get("failures"), first.get("skipped")) == ("2", "2")
    assert [case.get("name") for case in first][:2] == ["step[0] my.do", "step[1] my.do"]
    failure = first[1].find("failure")
    assert failure is not None
    assert failure.text == "it does not hold"
    strange_one = second[0].find("failure")
    assert strange_one is not None
    assert strange_one.text == "\\x00 <&> \\xd800 \\x1b é\nmore"
    assert "time=" not in junit([report], timing=False)


# --- Golden files --------------------------------------------------------------------------------

GOLDEN = """
[device.app]
kind = "trace_provider"
[[step]]
do = "target.snapshot"
device = "app"
as = "a.tbuf"
[[step]]
do = "golden.compare"
output = "a.tbuf"
"""


def test_golden_files_are_written_and_compared(run: Callable[..., Report], tmp_path: Path) -> None:
    report = run(GOLDEN)
    assert report.failures[0].message.startswith("there is no golden file test.golden/a.tbuf")
    report = run(GOLDEN, update_golden=True)
    assert report.ok
    assert report.goldens == {"a.tbuf": "test.golden/a.tbuf"}
    assert run(GOLDEN).ok
    assert run(GOLDEN, update_golden=True).goldens == {}
    golden = tmp_path / "test.golden" / "a.tbuf"
    data = bytearray(golden.read_bytes())
    data[1234] ^= 1
    golden.write_bytes(data)
    message = run(GOLDEN).failures[0].message
    assert "from byte 1,234 on" in message
    report = run(GOLDEN, seed=9)
    assert report.ok
    assert report.steps[-1].status == "skipped"
    with pytest.raises(UsageError, match="own seed"):
        run(GOLDEN, seed=9, update_golden=True)
    elsewhere = GOLDEN + 'golden = "other.bin"\n'
    assert run(elsewhere, update_golden=True).goldens == {"a.tbuf": "other.bin"}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_a_golden_file_that_is_a_pipe_is_refused(
    run: Callable[..., Report], tmp_path: Path, *, named: bool, update: bool
) -> None:
    """Nobody writes to it, so that reading would wait forever."""
    golden = tmp_path / ("other.bin" if named else "test.golden/a.tbuf")
    golden.parent.mkdir(exist_ok=True)
    os.mkfifo(golden)
    text = GOLDEN + ('golden = "other.bin"\n' if named else "")
    report = run(text, update_golden=update)
    assert "cannot read a pipe" in report.failures[0].message


def test_a_scenario_in_no_file_names_its_golden_files(host: Host) -> None:
    report = replay(parse('[scenario]\nname = "x"\n' + GOLDEN, host), host=host)
    assert "no folder of golden files" in report.failures[0].message


@cases(
    ("wanted", "found", "told"),
    [
        (b"a\nb\nc\n", b"a\nX\nc\n", "from line 2 on (byte 2): it was 'b', it is 'X'"),
        (b"a\n", b"a\nb\n", "from line 2 on (byte 2): it was '', it is 'b'"),
        (b"a", b"a\nb", "from line 1 on (byte 1): it was 'a', it is 'a'"),
        (b"\xff\x00", b"\xff\x01", "from byte 1 on; at 0 it was ff 00, it is ff 01"),
        (b"\xff" * 9, b"\xff" * 8, "8 on, 9 bytes are 8; at 8 it was ff, it is the end"),
    ],
)
def test_where_outputs_differ(wanted: bytes, found: bytes, told: str) -> None:
    assert told in difference(wanted, found)


# --- The scenarios of this repository ------------------------------------------------------------


@cases("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_holds_and_does_the_same_again(
    path: Path, host: Host, tmp_path: Path
) -> None:
    report = replay(path, tmp_path / "a", host=host)
    assert report.ok, report.to_text()
    again = replay(path, tmp_path / "b", host=host)
    assert again.outputs == report.outputs
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


@cases("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_holds_with_other_seeds(path: Path, host: Host) -> None:
    for seed in range(3):
        report = replay(path, host=host, seed=seed)
        assert report.ok, report.to_text()


def test_another_seed_gives_another_capture(host: Host) -> None:
    boot = ROOT / "examples" / "scenarios" / "boot.toml"
    found = {replay(boot, host=host, seed=seed).outputs["boot.fxt"] for seed in range(4)}
    assert len(found) == 4


@pytest.mark.slow
def test_processes_and_hash_seeds_make_no_difference(tmp_path: Path) -> None:
    code = (
        "import sys, hashlib\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from bundled import bundled\n"
        "from fxframework.replay import replay\n"
        "report = replay(sys.argv[2], host=bundled())\n"
        "print(hashlib.sha256(b''.join(report.outputs.values())).hexdigest())\n"
    )
    boot = ROOT / "examples" / "scenarios" / "boot.toml"
    found = set()
    for seed in ("0", "1", "random"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(Path(__file__).parent), str(boot)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        found.add(done.stdout)
    assert len(found) == 1


def test_golden_files_are_small() -> None:
    files = [*(ROOT / "examples" / "scenarios").rglob("*.*")]
    assert sum(path.stat().st_size for path in files if path.is_file()) < 200_000
