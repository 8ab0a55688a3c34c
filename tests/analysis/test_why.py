"""`fxf why`: where the time of slow calls went."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxframework as fxf
from fx_trace.write.archive import Archive
from fx_trace.write.writer import TraceWriter
from fxframework.analysis.scheduling import waits_of
from fxframework.analysis.why import MOST_STEPS, Call, Flow, Line, Part, Step, Why, why
from fxframework.errors import BadTypeError, ExitCode, UsageError
from fxframework.kit.arguments import Koid
from fxframework.testing.cli import run_cli

from ..cases import cases

EXAMPLES = Path(__file__).parents[2] / "examples"
A, B, C = (1, 11), (1, 12), (2, 21)
NAMES = {A: "app/main", B: "app/helper", C: "disk/worker"}
NOBODY = 0
NEW, RUNNING, BLOCKED = 0, 1, 3


class Machine:
    """Writes a trace, ticks of a nanosecond, with switches and wakeups in few words."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Self:
        self._archive = Archive(self.path, force=True)
        self.writer: TraceWriter = self._archive.provider(1, ticks_per_second=10**9)
        self.writer.process(1, "app")
        self.writer.process(2, "disk")
        for (pid, tid), name in NAMES.items():
            self.writer.thread(pid, tid, name.partition("/")[2])
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()

    def switch(
        self, ns: int, out: int | tuple[int, int], to: int | tuple[int, int], *,
        state: int = BLOCKED, cpu: int = 0,
    ) -> None:  # fmt: skip
        """Switch from one thread to another; 0 is the idle one."""
        out_tid, in_tid = (thread if isinstance(thread, int) else thread[1] for thread in (out, to))
        self.writer.context_switch(
            cpu=cpu, ticks=ns, outgoing_tid=out_tid, outgoing_state=state, incoming_tid=in_tid,
            incoming_priority=16, outgoing_priority=16,
        )  # fmt: skip

    def wake(
        self, ns: int, thread: tuple[int, int], *, by: tuple[int, int] | None = None, cpu: int = 0
    ) -> None:
        """Wake a thread; ``by`` is the waker, if an argument names it."""
        args = {} if by is None else {"waker": Koid(by[1])}
        self.writer.wakeup(cpu=cpu, tid=thread[1], ticks=ns, args=args)

    def slice(self, name: str, start: int, end: int, thread: tuple[int, int] = A) -> None:
        """Write a slice."""
        self.writer.duration_complete("test", name, start, end, thread=thread)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with Machine(tmp_path / "made.fxt") as made:
        yield made


def explained(machine: Machine, name: str = "call", **options: Any) -> Why:
    machine.__exit__()
    with fxf.open(machine.path) as capture:
        found = why(capture, name, **options)
    for call in (*found.slowest, found.typical):
        assert call is None or sum(part.ns for part in call.parts) == call.dur_ns
    return found


def times(found: Why) -> dict[tuple[str, str | None], int]:
    """Return the nanoseconds of the slowest call by state and slice."""
    spent: Counter[tuple[str, str | None]] = Counter()
    for part in found.slowest[0].parts:
        spent[part.state, part.slice] += part.ns
    return dict(spent)


def test_without_scheduling_time_is_split_by_slices_alone(machine: Machine) -> None:
    machine.slice("call", 100, 200)
    machine.slice("parse", 110, 150)
    machine.slice("lex", 120, 130)
    machine.slice("parse", 160, 170)
    found = explained(machine)
    assert not found.has_scheduling
    assert times(found) == {
        ("elapsed", None): 50, ("elapsed", "parse"): 40, ("elapsed", "lex"): 10
    }  # fmt: skip
    assert [part.ns for part in found.slowest[0].parts] == [50, 40, 10]
    assert (found.count, found.typical) == (1, None)


def test_running_and_what_held_the_cpu(machine: Machine) -> None:
    machine.slice("call", 100, 200)
    machine.slice("inner", 150, 200)
    machine.switch(50, NOBODY, A)
    machine.switch(120, A, B, state=RUNNING)  # preempted by B, then by C, both on CPU 0
    machine.switch(140, B, C, state=RUNNING)
    machine.switch(160, C, A, state=RUNNING)
    found = explained(machine)
    assert set(found.slowest[0].parts) == {
        Part("running", None),
        Part("running", "inner"),
        Part("runnable", None, NAMES[B], cpu=0),
        Part("runnable", None, NAMES[C], cpu=0),
        Part("runnable", "inner", NAMES[C], cpu=0),
    }
    assert times(found) == {
        ("running", None): 20, ("running", "inner"): 40,
        ("runnable", None): 30, ("runnable", "inner"): 10,
    }  # fmt: skip


def test_a_wait_names_the_waker_of_the_argument_and_what_it_waited_for(machine: Machine) -> None:
    machine.slice("call", 100, 200)
    machine.slice("commit", 110, 190, thread=B)
    machine.slice("write", 120, 180, thread=C)
    machine.switch(90, NOBODY, A)
    machine.switch(90, NOBODY, B, cpu=1)
    machine.switch(90, NOBODY, C, cpu=2)
    machine.switch(110, A, NOBODY)
    machine.switch(130, B, NOBODY, cpu=1)
    machine.wake(170, B, by=C, cpu=1)
    machine.switch(175, NOBODY, B, cpu=1)
    machine.wake(190, A, by=B)
    machine.switch(190, NOBODY, A)
    found = explained(machine)
    wait, run = found.slowest[0].parts
    assert (wait, wait.ns) == (Part("blocked", None, NAMES[B], "commit"), 80)
    assert (run, run.ns) == (Part("running", None), 20)
    assert wait.steps == (
        Step(NAMES[B], "commit", "running", 15),
        Step(NAMES[B], "commit", "runnable", 5, cpu=1, holder="idle"),
        Step(NAMES[B], "commit", "blocked", 40, NAMES[C]),
        Step(NAMES[C], "write", "running", 60),
    )


def test_a_waker_that_could_not_run_names_what_held_its_cpu(machine: Machine) -> None:
    """B is woken at 120, and runs from 160 on: before, and once more in between, C has the CPU."""
    machine.slice("call", 100, 200)
    machine.slice("query", 160, 190, thread=B)
    machine.switch(90, NOBODY, A)
    machine.switch(90, NOBODY, B, cpu=1)
    machine.switch(100, B, C, cpu=1)
    machine.switch(110, A, NOBODY)
    machine.wake(120, B, by=A, cpu=1)
    machine.switch(160, C, B, cpu=1, state=RUNNING)
    machine.switch(165, B, C, cpu=1, state=RUNNING)
    machine.switch(175, C, B, cpu=1, state=RUNNING)
    machine.wake(190, A, by=B)
    machine.switch(190, NOBODY, A)
    wait = explained(machine).slowest[0].parts[0]
    assert wait.steps == (
        Step(NAMES[B], "query", "running", 20),
        Step(NAMES[B], None, "runnable", 40, cpu=1, holder=NAMES[C]),
        Step(NAMES[B], "query", "runnable", 10, cpu=1, holder=NAMES[C]),
        Step(NAMES[B], None, "blocked", 10, NAMES[A]),
        Step(NAMES[A], "call", "running", 10),
    )
    text = run_cli("why", machine.path, "call").text
    assert f"40 ns {NAMES[B]} was runnable, CPU 1 was held by {NAMES[C]}" in text


def test_a_waker_is_inferred_from_the_cpu_of_the_wakeup(machine: Machine) -> None:
    machine.slice("call", 100, 200)
    machine.switch(90, NOBODY, A)
    machine.switch(95, NOBODY, B, cpu=1)
    machine.switch(110, A, NOBODY)
    machine.wake(150, A, cpu=1)
    machine.switch(150, NOBODY, A)
    machine.switch(160, A, NOBODY)
    machine.wake(170, A)  # on a CPU that has nothing to do: a timer
    machine.switch(170, NOBODY, A)
    parts = {part.ns: part for part in explained(machine).slowest[0].parts}
    assert parts[40] == Part("blocked", None, NAMES[B], is_inferred=True)
    assert parts[10] == Part("blocked", None, "idle", is_inferred=True)
    assert parts[10].steps == ()


def test_circles_and_long_chains_end(tmp_path: Path) -> None:
    with Machine(tmp_path / "circle.fxt") as machine:
        machine.slice("call", 100, 1000)
        machine.switch(90, NOBODY, A)
        machine.switch(110, A, NOBODY)
        for ns in range(200, 900, 100):  # B and C wake each other
            machine.wake(ns, B, by=C)
            machine.switch(ns + 10, NOBODY, B, cpu=1)
            machine.switch(ns + 40, B, NOBODY, cpu=1)
            machine.wake(ns + 50, C, by=B)
            machine.switch(ns + 60, NOBODY, C, cpu=2)
            machine.switch(ns + 90, C, NOBODY, cpu=2)
        machine.wake(950, A, by=C)
        machine.switch(950, NOBODY, A)
        steps = explained(machine).slowest[0].parts[0].steps
    assert [(step.thread, step.state) for step in steps][-1] == (NAMES[B], "blocked")
    assert [step.state for step in steps] == 2 * ["running", "runnable", "blocked"]
    with Machine(tmp_path / "long.fxt") as machine:
        machine.slice("call", 0, 1000)
        machine.switch(0, NOBODY, A)
        machine.switch(1, A, NOBODY)
        others = [(3, 100 + number) for number in range(40)]
        for number, thread in enumerate(others):  # each waits for the one before it
            machine.switch(2, NOBODY, thread, cpu=number + 1)
            machine.switch(3, thread, NOBODY, cpu=number + 1)
        for number, (thread, after) in enumerate(zip(others, [*others[1:], A], strict=True)):
            machine.switch(10 + 10 * number, NOBODY, thread, cpu=number + 1)
            machine.wake(18 + 10 * number, after, by=thread)
        machine.switch(900, NOBODY, A)
        parts = {part.state: part for part in explained(machine).slowest[0].parts}
    assert len(parts["blocked"].steps) == MOST_STEPS


def test_a_name_outside_of_the_selected_part(machine: Machine) -> None:
    machine.slice("call", 100, 200)
    machine.slice("other", 100, 200, thread=B)
    machine.__exit__()
    result = run_cli("why", machine.path, "call", "--thread", NAMES[B].partition("/")[2])
    assert result.exit_code == ExitCode.USAGE
    assert "no slice in the selected part is called 'call'" in result.stderr


def test_before_the_first_switch_nothing_is_known(machine: Machine) -> None:
    machine.slice("call", 100, 200)
    machine.switch(150, A, NOBODY)
    machine.switch(180, NOBODY, A)
    assert times(explained(machine)) == {
        ("unaccounted", None): 50, ("blocked", None): 30, ("running", None): 20
    }  # fmt: skip


def test_another_threads_scheduling_does_not_count(machine: Machine) -> None:
    machine.slice("call", 100, 200)
    machine.switch(150, B, C)
    found = explained(machine)
    assert found.has_scheduling
    assert not found.slowest[0].has_states
    assert times(found) == {("elapsed", None): 100}


def test_waits_within_names_count_what_was_preempted(machine: Machine) -> None:
    machine.slice("call", 100, 200)
    machine.switch(100, NOBODY, A)
    machine.switch(120, A, B, state=RUNNING)
    machine.switch(150, B, A, state=RUNNING)
    machine.switch(150, A, NOBODY)
    machine.__exit__()
    with fxf.open(machine.path) as capture:
        waits = waits_of(capture)
    assert waits == {
        (b"call", "running"): 20, (b"call", "runnable"): 30, (b"call", "blocked"): 50
    }  # fmt: skip


def test_changes_of_one_time_keep_their_order(machine: Machine) -> None:
    machine.slice("call", 100, 200)
    machine.switch(100, NOBODY, A)
    machine.switch(120, A, NOBODY)  # on and off in one tick
    machine.wake(150, A)
    machine.switch(150, NOBODY, A)
    machine.switch(150, A, NOBODY)
    machine.wake(180, A)
    machine.switch(180, NOBODY, A)
    machine.wake(190, A)  # it runs already
    assert times(explained(machine)) == {("running", None): 40, ("blocked", None): 60}


def test_the_slowest_come_first_and_the_typical_one_is_the_lower_median(machine: Machine) -> None:
    lengths = [30, 10, 50, 20, 40, 60]
    for number, length in enumerate(lengths):
        machine.slice("call", 1000 * number, 1000 * number + length)
    machine.writer.duration_begin("test", "call", timestamp=9000, thread=B)
    found = explained(machine, top=3)
    assert [call.dur_ns for call in found.slowest] == [60, 50, 40]
    assert (found.count, found.unfinished) == (6, 1)
    assert found.typical is not None
    assert found.typical.dur_ns == 30


def test_flows_and_log_lines(machine: Machine) -> None:
    writer = machine.writer
    writer.duration_begin("test", "send", timestamp=100, thread=B)
    writer.flow_begin("test", "request", 7, timestamp=110, thread=B)
    writer.duration_end("test", "send", timestamp=120, thread=B)
    writer.duration_begin("test", "call", timestamp=200, thread=A)
    writer.flow_step("test", "request", 7, timestamp=205, thread=A)
    writer.flow_end("test", "request", 7, timestamp=208, thread=A)  # of its own thread
    writer.log("working", thread=A, timestamp=210)
    writer.log("elsewhere", thread=B, timestamp=211)
    writer.duration_end("test", "call", timestamp=220, thread=A)
    writer.log("done", thread=A, timestamp=220)
    (call,) = explained(machine).slowest
    assert [(flow.thread, flow.slice) for flow in call.flows] == [(NAMES[B], "send")]
    assert (call.flows[0].sent_ns, call.flows[0].arrived_ns) == (110, 205)
    assert [line.message for line in call.lines] == ["working"]
    assert call.line_count == 1


def test_names_that_do_not_occur_or_never_end(machine: Machine) -> None:
    machine.slice("request", 0, 10)
    machine.writer.duration_begin("test", "open", timestamp=20, thread=A)
    machine.__exit__()
    with fxf.open(machine.path) as capture:
        with pytest.raises(UsageError, match="did you mean 'request'") as wrong:
            why(capture, "requets")
        assert "request" in str(wrong.value.remedy)
        with pytest.raises(UsageError, match="none of the 1 calls of 'open' ended"):
            why(capture, "open")
        with pytest.raises(UsageError, match="at least 1"):
            why(capture, "request", top=0)
        with pytest.raises(BadTypeError):
            why(capture, 3)  # type: ignore[arg-type]
    logs = EXAMPLES / "scenarios" / "logs.golden" / "logs.fxlog"
    with fxf.open(logs) as capture, pytest.raises(UsageError, match="no slices"):
        why(capture, "x")


def test_a_part_of_a_capture_chooses_calls_and_all_of_it_explains(machine: Machine) -> None:
    for thread in (A, B):
        machine.slice("call", 100, 200 if thread == A else 150, thread=thread)
    machine.switch(110, A, B)
    machine.wake(150, A)
    machine.switch(150, B, A)
    machine.__exit__()
    with fxf.open(machine.path) as capture:
        part = capture.select(fxf.Selection(threads=("helper",)))
        found = why(part, "call")
    assert [call.thread for call in found.slowest] == [NAMES[B]]
    assert found.has_scheduling


def test_calls_of_xray_and_asynchronous_slices() -> None:
    with fxf.open(EXAMPLES / "xray" / "spellcheck.xray") as capture:
        name = capture.table("slices").texts("name")[0]
        found = why(capture, name)
        assert not found.has_scheduling
        assert sum(part.ns for part in found.slowest[0].parts) == found.slowest[0].dur_ns
    with fxf.open(EXAMPLES / "scenarios" / "boot.golden" / "boot.fxt") as capture:
        slices = capture.table("slices")
        is_async = np.flatnonzero((slices.array("kind") == 2) & (slices.array("dur") > 0))
        name = slices.texts("name")[is_async[0]]
        (call,) = why(capture, name).slowest
        assert sum(part.ns for part in call.parts) == call.dur_ns


# --- Against a model -----------------------------------------------------------------------------

END = 40


@given(data=st.data())
def test_every_nanosecond_has_the_state_that_a_model_gives_it(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    moments = sorted(data.draw(st.lists(st.integers(0, END), max_size=12)))
    path = tmp_path_factory.mktemp("model") / "model.fxt"
    state_at = ["unaccounted"] * END
    with Machine(path) as machine:
        machine.slice("call", 0, END)
        state = "unaccounted"
        for ns in moments:
            event = data.draw(st.sampled_from(("in", "out", "preempted", "wake", "other")))
            if event == "in":
                machine.switch(ns, NOBODY, A)
                state = "running"
            elif event == "wake":
                machine.wake(ns, A)
                state = "running" if state == "running" else "runnable"
            elif event == "other":
                machine.switch(ns, B, C, cpu=1)
            else:
                machine.switch(ns, A, NOBODY, state=BLOCKED if event == "out" else RUNNING)
                state = "blocked" if event == "out" else "runnable"
            state_at[ns:] = [state] * (END - ns)
        inner = sorted(data.draw(st.lists(st.integers(0, END), min_size=2, max_size=2)))
        machine.slice("inner", *inner)
        found = explained(machine)
    names = ["inner" if inner[0] <= ns < inner[1] else None for ns in range(END)]
    if not found.slowest[0].has_states:
        state_at = ["elapsed"] * END
    assert times(found) == dict(Counter(zip(state_at, names, strict=True)))


# --- The command ---------------------------------------------------------------------------------


@pytest.fixture
def written(machine: Machine) -> Callable[[], Path]:
    def write() -> Path:
        machine.slice("call", 100, 200)
        machine.slice("call", 1000, 1010)
        machine.slice("commit", 110, 190, thread=B)
        machine.switch(90, NOBODY, A)
        machine.switch(90, NOBODY, B, cpu=1)
        machine.switch(110, A, NOBODY)
        machine.wake(190, A, by=B)
        machine.switch(190, NOBODY, A)
        machine.__exit__()
        return machine.path

    return write


def test_the_command_prints_few_lines(written: Callable[[], Path]) -> None:
    result = run_cli("why", written(), "call")
    assert result.exit_code == ExitCode.OK
    assert result.text.splitlines() == [
        "call: 2 calls",
        "",
        "100 ns on app/main from 100 ns (@100); the typical call: 10 ns",
        "state     time  share  typical  where it went",
        "blocked  80 ns    80%        –  itself, woken by app/helper (in commit)",
        "                                  80 ns app/helper ran in commit",
        "running  20 ns    20%    10 ns  itself",
    ]


def test_the_command_gives_json(written: Callable[[], Path]) -> None:
    document = run_cli("why", "--json", written(), "call").json()
    assert (document["name"], document["count"], document["has_scheduling"]) == ("call", 2, True)
    (call,) = document["slowest"]
    assert [(part["state"], part["ns"]) for part in call["parts"]] == [
        ("blocked", 80), ("running", 20)
    ]  # fmt: skip
    assert call["parts"][0]["steps"][0]["thread"] == "app/helper"


def test_the_members_of_the_json_are_documented(written: Callable[[], Path]) -> None:
    document = run_cli("why", "--json", written(), "call").json()
    kinds = {"call": Call, "part": Part, "step": Step, "flow": Flow, "line": Line}
    members = {kind: [field.name for field in attrs.fields(of)] for kind, of in kinds.items()}
    members["document"] = list(document)
    text = (EXAMPLES.parent / "docs" / "analysis.md").read_text()
    for kind, names in members.items():
        (row,) = re.findall(rf"^\| {kind} \| (.*) \|$", text, re.MULTILINE)
        documented = re.findall(r"`(\w+)`", re.sub(r"\(in `slices`\)", "", row))
        assert sorted(documented) == sorted(names)


def test_the_command_says_that_there_is_no_scheduling() -> None:
    path = EXAMPLES / "xray" / "spellcheck.xray"
    result = run_cli("why", path, "check(long)", "-m", EXAMPLES / "xray" / "spellcheck.csv")
    assert result.exit_code == ExitCode.OK
    assert "no scheduling data: waiting cannot be told from running" in result.text
    assert run_cli("why", path, "2", "--function", "2").exit_code == ExitCode.OK
    assert run_cli("why", path, "2", "--exclude-function", "1").exit_code == ExitCode.OK
    assert run_cli("why", path, "2", "--exclude-function", "2").exit_code == ExitCode.USAGE
    assert run_cli("why", path, "no such name").exit_code == ExitCode.USAGE


def test_a_log_line_may_have_no_severity(machine: Machine, tmp_path: Path) -> None:
    machine.slice("call", 100, 200)
    machine.writer.log("<working>", thread=A, timestamp=150)
    machine.__exit__()
    page = tmp_path / "page.html"
    result = run_cli("why", machine.path, "call", "--html", page)
    assert result.exit_code == ExitCode.OK
    assert result.text.splitlines()[-1] == "log   150 ns: <working>"
    assert "150 ns: " in page.read_text()
    (line,) = run_cli("why", "--json", machine.path, "call").json()["slowest"][0]["lines"]
    assert line == {"ns": 150, "severity": None, "message": "<working>"}


@cases("name, typed", [("a\nb", "a\\nb"), ("a\\nb", "a\\nb"), ("%x", "\udcffx"), ("%x", "\ufffdx")])
def test_a_name_can_be_given_as_it_is_printed(tmp_path: Path, name: str, typed: str) -> None:
    with Machine(tmp_path / "made.fxt") as machine:
        machine.slice(name, 100, 200)
        machine.slice("", 300, 400)
    # A byte that is not UTF-8, which the writer refuses.
    machine.path.write_bytes(machine.path.read_bytes().replace(b"%x", b"\xffx"))
    assert run_cli("why", machine.path, typed).exit_code == ExitCode.OK
    assert run_cli("why", machine.path, "\udcfe").exit_code == ExitCode.USAGE


def test_the_time_of_a_call_selects_it(machine: Machine) -> None:
    for start in (13_562_600_123_456, 13_562_600_223_456):
        machine.slice("call", start, start + 1000)
    machine.__exit__()
    text = run_cli("why", machine.path, "call").text
    (moment,) = re.findall(r"from 13,562\.6 s \((@\d+)\)", text)
    again = run_cli("why", machine.path, "call", "--since", moment, "--json").json()
    assert f"@{again['slowest'][0]['start_ns']}" == moment


def test_of_a_name_that_may_have_been_lost_the_loss_is_said(machine: Machine) -> None:
    machine.slice("call", 100, 200)
    machine.__exit__()
    machine.path.write_bytes(machine.path.read_bytes()[:-8])
    result = run_cli("why", machine.path, "call")
    assert result.exit_code == ExitCode.USAGE
    assert "data was lost" in result.stderr
    assert "there are no slices at all" in result.stderr


def test_a_page_has_what_the_text_has(written: Callable[[], Path], tmp_path: Path) -> None:
    trace = written()
    page = tmp_path / "why.html"
    result = run_cli("why", trace, "call", "--html", page)
    assert f"note: wrote {page}: " in result.stderr
    text = page.read_text()
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert text.count("<script") == 2
    (call,) = data["calls"]
    assert sum(part["ns"] for part in call["parts"]) == call["ns"]
    for part in call["parts"]:
        for words in (part["state"], part["time"], *part["steps"]):
            assert words in " ".join(result.text.split())
    assert run_cli("why", trace, "call", "--html", page).exit_code != ExitCode.OK
    assert run_cli("why", trace, "call", "--html", page, "--force").exit_code == ExitCode.OK


def test_a_page_takes_any_name(tmp_path: Path) -> None:
    name = "</script><img src=x onerror=alert(1)>"
    trace = tmp_path / "a.fxt"
    with Archive(trace) as archive:
        archive.provider(1, "app").duration_complete("c", name, 1, 5, thread=(1, 2))
    page = tmp_path / "why.html"
    assert run_cli("why", trace, name, "--html", page).exit_code == ExitCode.OK
    assert "<img" not in page.read_text()
