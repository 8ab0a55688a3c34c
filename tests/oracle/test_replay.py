"""What the emulated target traces loads in Perfetto as what happened, without a complaint."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

import fxframework as fxf
from fxframework.host import Host
from fxframework.replay import replay

from . import compare
from .perfetto import LoadedTrace, Perfetto

SCENARIOS = Path(__file__).resolve().parents[2] / "examples" / "scenarios"


@pytest.fixture(scope="module", params=["own seed", 1, 2])
def archive(request: pytest.FixtureRequest) -> bytes:
    """The archive of boot.toml, of its own seed and of others."""
    seed = None if request.param == "own seed" else int(request.param)
    report = replay(SCENARIOS / "boot.toml", seed=seed, host=Host())
    assert report.ok, report.to_text()
    return report.outputs["boot.fxt"]


@pytest.fixture
def boot(perfetto: Perfetto, archive: bytes) -> LoadedTrace:
    return perfetto(archive)


def test_nothing_is_complained_of(boot: LoadedTrace) -> None:
    assert boot.stats() == {}


def test_it_is_seen_as_we_see_it(boot: LoadedTrace, archive: bytes) -> None:
    with fxf.open(archive, format="trace") as capture:
        theirs = compare.theirs(boot)
        for path in [path for path in theirs["nesting"] if path[0][1] == "booted"]:
            del theirs["nesting"][path]  # an instant, which to Perfetto is a slice
        assert compare.differences(theirs, compare.ours(capture)) == {}


def test_slices_counters_and_flows(boot: LoadedTrace) -> None:
    names = Counter(row["name"] for row in boot.query("select name from slice"))
    assert names == {
        "start": 1, "resolve": 4, "launch": 4, "bind": 4, "interrupt": 12, "frame": 24,
        "layout": 24, "draw": 24, "present": 24, "booted": 1,
    }  # fmt: skip
    tracks = boot.query(
        "select t.name, count(*) as n from counter c join counter_track t on c.track_id = t.id "
        "group by t.name"
    )
    assert {row["name"]: row["n"] for row in tracks} == {
        "components:resolved:0": 4, "components:pending:0": 4, "interrupts:taken:7": 4,
        "frames:presented:0": 24,
    }  # fmt: skip
    flows = boot.query(
        "select o.name as o, i.name as i, i.ts >= o.ts as forward from flow f "
        "join slice o on f.slice_out = o.id join slice i on f.slice_in = i.id"
    )
    ways = Counter((row["o"], row["i"], row["forward"]) for row in flows)
    assert ways == {("resolve", "bind", 1): 4, ("frame", "present", 1): 24}


def test_who_ran(boot: LoadedTrace, archive: bytes) -> None:
    threads = boot.query(
        "select p.name as process, t.name as thread from thread t join process p using (upid) "
        "where t.name is not null and p.name is not null"
    )
    assert {(row["process"], row["thread"]) for row in threads} == {
        ("component_manager", "main"), ("driver_host", "bind"), ("driver_host", "irq"),
        ("scenic", "render"), ("scenic", "display"),
    }  # fmt: skip
    rows = boot.query("select cpu, ts, dur from sched where dur > 0 order by cpu, ts")
    assert {row["cpu"] for row in rows} == {0, 1, 2, 3}
    for one, other in itertools.pairwise(rows):
        assert one["cpu"] != other["cpu"] or one["ts"] + one["dur"] <= other["ts"]
    pinned = boot.query(
        "select distinct s.cpu from sched s join thread t using (utid) where t.name = 'irq'"
    )
    assert pinned == [{"cpu": 3}]
