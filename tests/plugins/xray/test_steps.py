"""Threads whose calls are recorded, recorders, and traces driven anew do what they say."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fx_emulator.plugin
import fx_xray.plugin
from fx_xray.write.basic_recorder import BasicWriter
from fx_xray.write.flight_recorder import FdrWriter
from fxframework.exporters import plugin as exporters
from fxframework.host import Host
from fxframework.replay import Report, ScenarioError, replay
from fxframework.replay import plugin as steps

from ...cases import cases
from .recorded import Block, Counter, blocks_of

EXAMPLE = Path(__file__).parents[3] / "examples" / "scenarios" / "xray.toml"
CONFORMANCE = Path(__file__).parents[2] / "conformance" / "xray"
MEMORY = '[device.r]\nkind = "vmo"\nsize = 65_536\n'
TARGET = '[target]\nstart = "2s"\noffsets = [0, 1_000_000, 0, 0]\n'
Runner = Callable[..., Report]


@pytest.fixture(scope="module")
def host() -> Host:
    """Exporters, steps, the emulator and XRay."""
    host = Host(discover=False)
    for name, plugin in (
        ("exporters", exporters),
        ("replay", steps),
        ("xray", fx_xray.plugin),
        ("emulator", fx_emulator.plugin),
    ):
        host.register(plugin, name=name, distribution="fxframework")
    return host


@pytest.fixture
def run(host: Host, tmp_path: Path) -> Runner:
    """Runs steps, given as text, on a target with a memory."""

    def run(*parts: str, head: str = TARGET + MEMORY, **options: Any) -> Report:
        path = tmp_path / "test.toml"
        path.write_text('[scenario]\nname = "test"\nseed = 3\n' + head + "".join(parts))
        report = replay(path, host=host, **options)
        assert report.ok, report.to_text()
        return report

    return run


def step(do: str, text: str = "") -> str:
    return f'[[step]]\ndo = "{do}"\n{text}\n'


def start(text: str = "threshold_us = 0") -> str:
    return step("xray.start", f'recorder = "r"\n{text}')


def thread(*script: str, process: str = "p", extra: str = "cpu = 0") -> str:
    return step(
        "xray.thread",
        f'recorder = "r"\nprocess = "{process}"\nthread = "t"\n'
        f"script = [{', '.join(script)}]\n{extra}",
    )


RUN = step("target.run")
LOG = step("xray.log", 'recorder = "r"\nas = "a.xray"')


def blocks(report: Report) -> list[Block]:
    return blocks_of(report.outputs["a.xray"])


def calls(report: Report) -> list[str]:
    """Calls and events of all buffers, as short texts."""
    found = []
    for block in blocks(report):
        for name, what, *_ in block.items:
            if name != "metadata":
                told = what.decode() if isinstance(what, bytes) else what
                found.append(f"{name} {told}")
    return found


def test_a_script_is_recorded_as_it_says(run: Runner) -> None:
    report = run(
        start(),
        thread(
            "{ call = 1, body = ["
            '{ loop = 2, as = "i", body = [{ call = "2{i}", args = [7, "{i}"] }] },'
            "{ call = 3, tail = [{ call = 4 }] },"
            "{ enter = 5, args = [9] }, { enter = 6 }, { tail_exit = 6 }, { exit = 5 },"
            '{ custom_event = "e{n}" }, { custom_event = "00ff", hex = true },'
            '{ typed_event = 65535, data = "x" } ] }',
        ),
        RUN,
        LOG,
    )
    (block,) = blocks(report)
    pid, tid = report.steps[1].facts["pid"], report.steps[1].facts["tid"]
    assert (block.process, block.thread, block.wall) == (pid, tid, (2, 0))
    items = [(item[0], item[1], *item[4:]) for item in block.items if item[0] != "metadata"]
    assert items == [
        ("enter", 1),
        ("enter_arg", 20, 7, 0),
        ("exit", 20),
        ("enter_arg", 21, 7, 1),
        ("exit", 21),
        ("enter", 3),
        ("tail_exit", 3),
        ("enter", 4),
        ("exit", 4),
        ("enter_arg", 5, 9),
        ("enter", 6),
        ("tail_exit", 6),
        ("exit", 5),
        ("custom", b"e{n}"),
        ("custom", b"\x00\xff"),
        ("typed", b"x", 65535),
        ("exit", 1),
    ]


def test_times_and_cpus_are_those_of_the_cpu_that_the_thread_is_on(run: Runner) -> None:
    script = (
        "{ enter = 1 }",
        '{ run = "1ms" }',
        "{ exit = 1 }",
        "{ migrate = 1 }",
        "{ enter = 2 }",
        '{ sleep = "1s" }',
        "{ exit = 2 }",
    )
    (block,) = blocks(run(start(), thread(*script), RUN, LOG))
    assert block.raw[4:] == ["enter", "exit", "new_cpu", "enter", "wrap", "exit"]
    (_, _, first, on), (_, _, second, _), (_, _, third, after), (_, _, fourth, _) = [
        item for item in block.items if item[0] != "metadata"
    ]
    assert (on, after) == (0, 1)
    assert second - first == pytest.approx(2_596_120, abs=26)
    assert third - second == pytest.approx(1_000_000, abs=26)  # what that counter is ahead
    assert fourth - third == pytest.approx(2_596_120_000, abs=26)


def test_the_recorder_is_as_the_start_says(run: Runner) -> None:
    text = "version = 2\nbuffer_size = 256\nbuffers = 3\nthreshold_us = 100\ncircular = false"
    body = (
        '{ loop = 100, body = [{ call = 1, body = [{ run = "1us" }] }, { call = 2, args = [1] }] }'
    )
    report = run(start(text), thread(body), RUN, LOG)
    file = report.outputs["a.xray"]
    assert struct.unpack_from("<HHIQQ", file) == (2, 1, 3, 2_596_120_000, 256)
    assert report.steps[0].facts == {"buffers": 3}
    facts = report.steps[-1].facts
    assert facts["buffers"] == len(blocks(report)) == 3
    assert facts["dropped"] > 0
    assert set(calls(report)) == {"enter 2", "exit 2"}  # short calls of 1 are not kept
    kept = len(calls(report))
    assert calls(report) == ["enter 2", "exit 2"] * (kept // 2) + ["enter 2"] * (kept % 2)


def test_buffers_of_threads_that_ended_are_used_again(run: Runner) -> None:
    text = "buffer_size = 128\nbuffers = 1\nthreshold_us = 0"
    first = thread("{ call = 1 }")
    second = thread('{ sleep = "1ms" }', "{ call = 2 }", process="q")
    report = run(start(text), first, second, RUN, LOG)
    assert calls(report) == ["enter 2", "exit 2"]
    assert report.steps[-1].facts["dropped"] == 0


def test_without_a_start_the_recorder_is_as_compiler_rts(run: Runner) -> None:
    report = run(thread("{ call = 1 }", '{ call = 2, body = [{ run = "6us" }] }'), RUN, LOG)
    assert report.outputs["a.xray"][16:24] == (16384).to_bytes(8, "little")
    assert calls(report) == ["enter 2", "exit 2"]


@cases("stores", [0, 1, 7, 20, 33])
def test_a_program_that_crashes_leaves_a_log(run: Runner, stores: int) -> None:
    crash = step("fault.crash", f'device = "r"\nstores = {stores}')
    body = '{ loop = 100, as = "i", body = [{ call = "{i}" }, { custom_event = "odd{i}" }] }'
    crashed = step("target.run", "crashes = 1")
    report = run(start(), thread(body), crash, crashed, LOG)
    whole = run(start(), thread(body), RUN, LOG)
    assert calls(report) == calls(whole)[: len(calls(report))]
    assert bool(calls(report)) == (stores > 10)


def test_scenarios_that_make_no_sense_are_refused(run: Runner, host: Host) -> None:
    wrong = thread('{ custom_event = "xyz", hex = true }')
    with pytest.raises(ScenarioError):
        run(wrong)
    with pytest.raises(ScenarioError):
        run(step("xray.replay", f'capture = "{EXAMPLE}"'))
    with pytest.raises(ScenarioError, match="not a device of kind vmo"):
        run(start(), head=TARGET + '[device.r]\nkind = "log_socket"\n')
    for parts in ((start(), start()), (thread("{ exit = 1 }"), RUN)):
        with pytest.raises(AssertionError, match="FAILED"):
            run(*parts, head=TARGET + MEMORY)


# --- Traces, driven anew -------------------------------------------------------------------------


def trace(version: int) -> bytes:
    """Two threads whose buffers take turns, on CPUs whose counters differ."""
    counter = Counter()
    writer = FdrWriter(counter, version=version, buffer_size=256, threshold_us=0, clock=lambda: 0)
    threads = [writer.thread(tid) for tid in (7, 8)]
    for number in range(60):
        counter.tsc, counter.cpu = counter.tsc + 1000 - 2000 * (number % 7 == 0), number // 20
        thread = threads[number % 2]
        thread.enter(number, number)
        thread.custom_event(b"odd")
        thread.exit(number)
    return writer.log()


def basic() -> bytes:
    counter = Counter()
    writer = BasicWriter(counter, threshold_us=0)
    for number in range(40):
        counter.tsc += 1000
        with writer.thread(number % 2).call(number, number):
            counter.tsc += 5
    return writer.log()


def anew(run: Runner, tmp_path: Path, data: bytes, extra: str = 'as = "a.xray"') -> Report:
    (tmp_path / "in.xray").write_bytes(data)
    return run(
        start(), step("xray.replay", f'capture = "in.xray"\n{extra}'), LOG.replace("a.", "b.")
    )


@pytest.mark.parametrize("version", range(1, 6))
def test_a_trace_driven_anew_is_the_same(run: Runner, tmp_path: Path, version: int) -> None:
    data = trace(version)
    assert anew(run, tmp_path, data).outputs["a.xray"] == data


def test_a_trace_of_basic_mode_driven_anew_is_the_same(run: Runner, tmp_path: Path) -> None:
    assert anew(run, tmp_path, basic()).outputs["a.xray"] == basic()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-3],
        lambda data: data[:100] + b"\xfe" * 40 + data[100:],
        lambda data: data[:20],
        lambda data: b"",
        lambda data: data + b"\x07",
    ],
)
def test_so_is_a_damaged_one(run: Runner, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    for data in (damage(trace(5)), damage(basic())):
        assert anew(run, tmp_path, data).outputs["a.xray"] == data


SMALL = 16_384
CAPTURES = [path for path in sorted(CONFORMANCE.rglob("*.xray")) if path.stat().st_size <= SMALL]


def test_there_are_captures() -> None:
    assert len(CAPTURES) > 20


@cases("path", CAPTURES, ids=lambda path: path.stem)
def test_so_is_every_real_capture(run: Runner, path: Path) -> None:
    text = step("xray.replay", f'capture = "{path}"\nas = "a.xray"')
    report = run(text, head=TARGET, allow_outside=True)
    assert report.outputs["a.xray"] == path.read_bytes()


def test_records_are_stored_at_their_own_times(run: Runner, tmp_path: Path) -> None:
    counter = Counter(tsc=10**9)
    writer = FdrWriter(counter, threshold_us=0)
    with writer.thread(1).call(1):
        counter.tsc += 5 * 10**9
    (tmp_path / "in.xray").write_bytes(writer.log())
    again = step("xray.replay", 'capture = "in.xray"\nas = "copy.xray"')
    report = run(start(), again, thread("{ call = 1 }"), RUN, LOG)
    assert blocks(report)[0].wall == (7, 0)


@pytest.mark.parametrize("form", ["xray", "xray-basic"])
def test_a_trace_may_go_to_a_recorder(run: Runner, tmp_path: Path, form: str) -> None:
    data = basic() if form == "xray-basic" else trace(5)
    report = anew(run, tmp_path, data, 'recorder = "r"')
    facts = report.steps[1].facts
    found = [item for each in blocks_of(report.outputs["b.xray"]) for item in each.items]
    entered = [item for item in found if item[0] == "enter_arg"]
    assert sorted(item[1] for item in entered) == sorted(item[4] for item in entered)
    assert len(entered) == (40 if form == "xray-basic" else 60)
    assert facts["records"] == (80 if form == "xray-basic" else 180)
    assert not facts["dropped"]
    assert not facts["refused"]
    first = min(item[2] for item in entered)
    assert first == 2000 * 2_596_120_000 // 10**9 or form == "xray"


@pytest.mark.parametrize("form", ["xray", "xray-basic"])
def test_the_calls_of_a_thread_keep_their_order_where_its_counter_goes_back(
    run: Runner, tmp_path: Path, form: str
) -> None:
    counter = Counter(tsc=10**9)
    writer: Any = BasicWriter(counter, threshold_us=0)
    if form == "xray":
        walls = itertools.count()
        options: dict[str, Any] = {"buffer_size": 256, "clock": lambda: next(walls)}
        writer = FdrWriter(counter, threshold_us=0, **options)
    recorder = writer.thread(7)
    for number in range(1, 30):
        if number == 15:
            counter.tsc, counter.cpu = 1000, 1
        counter.tsc += 10
        with recorder.call(number):
            counter.tsc += 1
    report = anew(run, tmp_path, writer.log(), 'recorder = "r"')
    assert not report.steps[1].facts["refused"]
    found = [item for each in blocks_of(report.outputs["b.xray"]) for item in each.items]
    assert [item[1] for item in found if item[0] == "enter"] == list(range(1, 30))


def test_the_example_holds(host: Host) -> None:
    report = replay(EXAMPLE, host=host)
    assert report.ok, report.to_text()
