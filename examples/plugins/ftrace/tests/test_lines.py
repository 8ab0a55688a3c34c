"""Each form of a line, each kind of row, and lines that nobody meant."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import pytest

from fx_ftrace import plugin
from fx_ftrace.read.lines import fields, parsed
from fxframework.host import Host
from fxframework.model.capture import Capture

FILES = Path(__file__).parent / "files"
FORMS = {
    "trace": b"       bash-1977  [000] .... 17284.993652: sys_close <-do_syscall",
    "trace, flags of six": b"  kworker/0:1-9       [003] dNh2.. 1.000002: irq_noise: a=1 b=0x10",
    "trace with tgid": b"   Web Content-31    (  7) [001] d... 2.5000015: sched_waking: comm=a b pid=3",  # noqa: E501
    "trace, tgid unknown": b"  <...>-12  (-----) [002] .... 2.000001: e:",
    "trace without flags": b"  a-b-12  [02]  1477.606694: simple: x=-1",
    "latency": b"  ps-6143    2d..1  259us+: trace_hardirqs_on <-_raw_spin_unlock",
    "latency with seconds": b"  <idle>-0       3d.h4  12.000345: timer_start: timer=0xff",
    "trace-cmd": b"          <idle>-0     [001] 41.504455123: sched_wakeup:         sh:4231 [120] CPU:000",  # noqa: E501
    "perf": b"      my prog  4807 [000] 11968.376663: sched:sched_stat_runtime: runtime=49870 [ns]",
    "perf with pid/tid": b"a 10/12 [001] 5.123456789:  irq:softirq_raise: vec=9 [action=RCU]",
    "perf of a clock": b"  sleep  4694 11966.993296:     250000 cpu-clock:  ffffffff815d2cb4 vma+0x44",  # noqa: E501
}
EXPECTED = {  # comm, tid, tgid, cpu, ns, system, name
    "trace": (b"bash", 1977, None, 0, 17284_993652_000, None, b"sys_close"),
    "trace, flags of six": (b"kworker/0:1", 9, None, 3, 1_000_002_000, None, b"irq_noise"),
    "trace with tgid": None,
    "trace, tgid unknown": (b"<...>", 12, None, 2, 2_000_001_000, None, b"e"),
    "trace without flags": (b"a-b", 12, None, 2, 1477_606694_000, None, b"simple"),
    "latency": (b"ps", 6143, None, 2, 259_000, None, b"trace_hardirqs_on"),
    "latency with seconds": (b"<idle>", 0, None, 3, 12_000_345_000, None, b"timer_start"),
    "trace-cmd": (b"<idle>", 0, None, 1, 41_504_455_123, None, b"sched_wakeup"),
    "perf": (b"my prog", 4807, None, 0, 11968_376663_000, b"sched", b"sched_stat_runtime"),
    "perf with pid/tid": (b"a", 12, 10, 1, 5_123_456_789, b"irq", b"softirq_raise"),
    "perf of a clock": (b"sleep", 4694, None, 0, 11966_993296_000, None, b"cpu-clock"),
}
TRACE = b"""# tracer: nop
##### CPU 1 buffer started ####
  <idle>-0     (-----) [001] d.h1. 1.000000: irq_handler_entry: irq=29 name=eth0
  <idle>-0     (-----) [001] ..s1. 1.000010: softirq_entry: vec=3 [action=NET_RX]
  <idle>-0     (-----) [001] ..s1. 1.000030: softirq_exit: vec=3 [action=NET_RX]
  <idle>-0     (-----) [001] d.h1. 1.000040: irq_handler_exit: irq=29 ret=handled
  <idle>-0     (-----) [001] d.... 1.000050: sched_wakeup: comm=shop pid=8 prio=120 target_cpu=001
  <idle>-0     (-----) [001] d.... 1.000060: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=shop x next_pid=8 next_prio=120
    shop x-8     (    7) [001] ..... 1.000070: sys_enter_read: fd=0x3
    shop x-8     (    7) [001] ..... 1.000075: tracing_mark_write: B|7|order 12
    shop x-8     (    7) [001] ..... 1.000076: tracing_mark_write: C|7|queue|-3
    shop x-8     (    7) [001] ..... 1.000077: tracing_mark_write: E|7
    shop x-8     (    7) [001] ..... 1.000080: sys_exit_read: ret=18446744073709551615
    shop x-8     (    7) [001] ..... 1.000090: cpu_frequency: state=1800000 cpu_id=1
CPU:1 [LOST 12 EVENTS]
    shop x-8     (    7) [001] d.... 1.000095: sched_switch: shop x:8 [120] S ==> swapper/1:0 [120]
    shop x-8     (    7) [001] ..... 1.000099: softirq_exit: vec=1 [action=TIMER]
nothing of the kind
"""  # noqa: E501


@pytest.mark.parametrize("form", [form for form in FORMS if EXPECTED[form]])
def test_forms(form: str) -> None:
    event = parsed(FORMS[form])
    assert event is not None
    found = (event.comm, event.tid, event.tgid, event.cpu, event.ns, event.system, event.name)
    assert found == EXPECTED[form]


def test_a_time_has_six_or_nine_digits() -> None:
    assert parsed(FORMS["trace with tgid"]) is None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"vec=9 [action=RCU]", [(b"vec", 9), (b"action", b"RCU")]),
        (b"comm=Web Content pid=-1 a=0xff", [(b"comm", b"Web Content"), (b"pid", -1), (b"a", 255)]),
        (b"hello = world", [(b"text", b"hello = world")]),
        (b"a= b=1", [(b"a", b""), (b"b", 1)]),
        (b"", []),
    ],
)
def test_fields(body: bytes, expected: list[Any]) -> None:
    assert list(fields(body)) == expected


def opened(data: bytes | Path) -> Capture:
    host = Host(discover=False)
    host.register(plugin, name="ftrace")
    return host.open(data)


def rows(capture: Capture, table: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(row, name) for name in columns) for row in capture.table(table)]


def test_tables() -> None:
    with opened(TRACE) as capture:
        threads = {row.id: (row.pid, row.tid, row.name) for row in capture.table("threads")}
        slices = rows(capture, "slices", "name", "ts", "dur", "depth", "thread")
        assert [(*each[:4], threads[each[4]][2]) for each in slices] == [
            ("eth0", 1_000_000_000, 40_000, 0, "CPU 1 irq"),
            ("NET_RX", 1_000_010_000, 20_000, 0, "CPU 1 softirq"),
            ("sys_read", 1_000_070_000, 10_000, 0, "shop x"),
            ("order 12", 1_000_075_000, 2_000, 1, "shop x"),
        ]
        assert (7, 8, "shop x") in threads.values()
        sched = rows(capture, "sched", "kind", "ts", "cpu", "prev", "next", "prev_state")
        assert [(*each[:3], *(threads.get(id, (0, None))[1] for id in each[3:5]), each[5])
                for each in sched] == [
            (2, 1_000_050_000, 1, None, 8, 0),
            (1, 1_000_060_000, 1, 0, 8, 1),
            (1, 1_000_095_000, 1, 8, 0, 3),
        ]  # fmt: skip
        assert rows(capture, "counters", "name", "series", "value_int") == [("queue", "value", -3)]
        assert rows(capture, "instants", "name") == [("cpu_frequency",), ("softirq_exit",)]
        args = [(row.name, row.int, row.str) for row in capture.table("args") if row.table == 3]
        assert args == [("state", 1_800_000, None), ("cpu_id", 1, None), ("vec", 1, None),
                        ("action", 0, "TIMER")]  # fmt: skip
        found = {each.code: each for each in capture.diagnostics}
        assert found["FTR0101"].message.endswith("12 events of CPU 1")
        assert found["FTR0101"].offset == TRACE.index(b"CPU:1")
        assert {"FTR0101", "FTR0102", "FTR0201"} == found.keys()
        kinds = capture.summary().kinds
        assert (kinds["comment"], kinds["lost"], kinds["unknown"]) == (2, 1, 1)


def test_what_perf_recorded() -> None:
    """Of a real machine: every line is an event, switches follow each other on their CPU."""
    text = (FILES / "perf-script.ftrace").read_bytes()
    with opened(text) as capture:
        assert capture.summary().kinds == {"event": text.count(b"\n")}
        sched = [row for row in capture.table("sched") if row.kind == 1]
        assert len(sched) == text.count(b"sched_switch:")
        for cpu in (0, 1):
            here = [row for row in sched if row.cpu == cpu]
            assert all(a.next == b.prev for a, b in itertools.pairwise(here))
        ended = text.count(b"softirq_exit") + text.count(b"irq_handler_exit")
        assert sum(row.dur >= 0 for row in capture.table("slices")) == ended


@pytest.mark.parametrize(
    "piece",
    [
        b" ",
        b"-",
        b"a-1 ",
        b"-1",
        b"a-1 [0] ",
        b"a=",
        b"[a=",
        b"1",
        b"a 1 ",
        b"\xff",
        b"CPU:1 [LOST ",
    ],
)
def test_any_line_takes_time_in_proportion(piece: bytes) -> None:
    data = TRACE + piece * (200_000 // len(piece)) + b"\n"
    data += b"a-1 [000] 1.000000: e: " + piece * (200_000 // len(piece))
    start = time.process_time()
    with opened(data) as capture:
        capture.summary()
        capture.table("args")
    assert time.process_time() - start < 30  # quadratic, it would take minutes
