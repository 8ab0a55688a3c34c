"""Linux ftrace text made into FXT loads in Perfetto as the text itself does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import fxframework as fxf
from fx_ftrace import plugin
from fxframework.host import Host

from . import compare
from .perfetto import Perfetto

SWITCHES = [
    (1, "swapper/1", 0, "R", "shop", 8, "1.000060"),
    (0, "swapper/0", 0, "R", "other one", 9, "1.000065"),
    (1, "shop", 8, "S", "ship", 10, "1.000095"),
    (0, "other one", 9, "R", "shop", 8, "1.000100"),
    (1, "ship", 10, "X", "swapper/1", 0, "1.000195"),
]
TEXT = """# tracer: nop
#
#           TASK-PID    TGID   CPU#  |||||    TIMESTAMP  FUNCTION
          <idle>-0     (-----) [001] d.h1. 1.000000: irq_handler_entry: irq=29 name=eth0
          <idle>-0     (-----) [001] d.h1. 1.000040: irq_handler_exit: irq=29 ret=handled
            shop-8     (    7) [001] ..... 1.000070: tracing_mark_write: B|7|order 12
            shop-8     (    7) [001] ..... 1.000072: tracing_mark_write: B|7|charge
            shop-8     (    7) [001] ..... 1.000076: tracing_mark_write: C|7|queue|-3
            shop-8     (    7) [001] ..... 1.000078: tracing_mark_write: E|7
            shop-8     (    7) [001] ..... 1.000079: tracing_mark_write: E|7
""" + "".join(
    f"{before}-{tid} (    7) [00{cpu}] d.... {at}: sched_switch: prev_comm={before} prev_pid={tid} "
    f"prev_prio=120 prev_state={state} ==> next_comm={after} next_pid={other} next_prio=110\n"
    for cpu, before, tid, state, after, other, at in SWITCHES
)


def test_the_fxt_shows_what_the_text_shows(perfetto: Perfetto, tmp_path: Path) -> None:
    path = tmp_path / "in.ftrace"
    path.write_text(TEXT)
    host = Host()
    host.register(plugin, name="ftrace")
    with host.open(path) as capture:
        fxf.convert(capture, tmp_path / "out.fxt")
    there, here = (compare.theirs(perfetto(each)) for each in (path, tmp_path / "out.fxt"))
    assert here["sched"] == there["sched"]
    assert len(there["sched"]) == len(SWITCHES)
    # The text's slices have no category, its counters no series; interrupts have tracks of CPUs.
    assert slices(here) - slices(there) == {(0, (1 << 31) + 1, 1_000_000, 40, "eth0"): 1}
    assert slices(there) <= slices(here)
    assert counters(here) == counters(there)
    assert len(slices(there)) == 2
    assert here["threads"].keys() >= {(8, "shop"), (9, "other one"), (10, "ship")}


def slices(view: compare.View) -> Counter[tuple[object, ...]]:
    """Slices in microseconds: Perfetto makes times of text by way of doubles, and cuts them."""
    return Counter(
        (pid, tid, round(ts / 1000), round(dur / 1000), name)
        for pid, tid, ts, dur, name, *_ in view["slices"]
    )


def counters(view: compare.View) -> Counter[tuple[object, ...]]:
    return Counter(
        (pid, name.split(":")[0], round(ts / 1000), value)
        for pid, name, ts, value in view["counters"]
    )
