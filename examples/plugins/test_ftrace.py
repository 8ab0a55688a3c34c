"""ftrace.py keeps the contracts of readers, and reads what the kernel's tools print."""

from pathlib import Path

import pytest

import fxframework as fxf
from fxframework.testing.checkup import checkup

HOST = fxf.Host()
HOST.load(str(Path(__file__).with_name("ftrace.py")))
TEXT = b"""\
# tracer: nop
#           TASK-PID     TGID   CPU#  |||||  TIMESTAMP  FUNCTION
            shop-8     (    7) [001] .....    1.000070: tracing_mark_write: B|7|order 12
          <idle>-0     (-----) [001] d.h1.    1.000080: irq_handler_entry: irq=29 name=eth0
 fxf 10294/10649 [000] 13854.753509478:      irq:softirq_raise: vec=3 [action=NET_RX]
     migration/0    18 [003] 13854.694920:   sched:sched_waking: comm=perf pid=12479
"""


def test_the_contracts_hold() -> None:
    assert not HOST.failures
    failed = [result for result in checkup(HOST, "ftrace") if result.status == "failed"]
    assert not failed, "\n".join(f"{result.test}: {result.fault}" for result in failed)


def test_lines_of_each_tool_are_events() -> None:
    with HOST.open(TEXT) as capture:
        table = capture.table("instants")
        assert table.array("ts").tolist() == [
            1_000_070_000, 1_000_080_000, 13_854_753_509_478, 13_854_694_920_000,
        ]  # fmt: skip
        assert table.texts("ftrace_task") == ["shop", "<idle>", "fxf", "migration/0"]
        assert table.array("ftrace_tid").tolist() == [8, 0, 10649, 18]
        assert table.array("ftrace_cpu").tolist() == [1, 1, 0, 3]
        assert table.texts("name")[2:] == ["irq:softirq_raise", "sched:sched_waking"]
        assert table.texts("ftrace_fields")[0] == "B|7|order 12"
        assert not capture.diagnostics


def test_other_lines_are_findings() -> None:
    with HOST.open(TEXT + b"CPU:1 [LOST 12 EVENTS]\n" + TEXT) as capture:
        assert len(capture.table("instants")) == 8
        capture.scan()
        findings = [(finding.code, finding.offset) for finding in capture.diagnostics]
        assert findings == [("FTR0101", len(TEXT))]


def test_a_text_that_is_cut_off_is_read() -> None:
    for nbytes in range(0, len(TEXT), 7):
        with HOST.open(TEXT[:nbytes], format="ftrace") as capture:
            assert sum(record.nbytes for record in capture.records()) == nbytes


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", [b" ", b"a", b"a-1 ", b"1", b"a:", b"(1) ", b"\xff"])
def test_long_lines_take_time_in_proportion(piece: bytes) -> None:
    for start in (b"", b"a-1 [1] ", b"a-1 [1] ..... 1.000000: "):
        with HOST.open(start + piece * 200_000, format="ftrace") as capture:
            assert sum(1 for _ in capture.records()) == 1
