"""The report: one page that needs no network, holds what captures do, and runs none of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxframework as fxf
from fxframework.exporters import report
from fxframework.io.sink import Sink
from fxframework.model.schema import LOG_LEVELS

from ..cases import cases

CONFORMANCE = Path(__file__).parents[1] / "conformance"
TRACE = CONFORMANCE / "trace" / "files" / "magic_trace_sample.fxt"
SAMPLES = [
    TRACE,
    *sorted(CONFORMANCE.rglob("*.xray"))[:3],
    *sorted(CONFORMANCE.rglob("*.fxlog"))[:2],
    *sorted(CONFORMANCE.rglob("*.inspect"))[:1],
]
HOSTILE = '</script><img src=x onerror="console.error(1)">\x1b[31m\u202e'


def page_of(*captures: Any) -> str:
    sink = Sink.memory()
    session = report.HtmlExport(sink, {"title": ""})
    for each in captures:
        session.write(each)
    session.close()
    return sink.getvalue().decode()


def data_of(page: str) -> Any:
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert text is not None
    return json.loads(text[1])


def test_severities_between_two_levels_are_of_the_higher_one_as_their_names_say() -> None:
    severities = (0, 0x10, 0x11, 0x2F, 0x30, 0x31, 0x50, 0x60, 0xFF)
    data = b"".join(
        struct.pack("<QQ", 0x29 | severity << 56, number)
        for number, severity in enumerate(severities)
    )
    with fxf.open(data, format="log") as capture:
        (logs,) = data_of(page_of(capture))["logs"]
    names = ["TRACE", "TRACE", "DEBUG", "INFO", "INFO", "WARN", "ERROR", "FATAL", "FATAL"]
    assert logs["severity"] == names
    assert logs["level"] == [[*LOG_LEVELS].index(name) + 1 for name in names]


@cases("sample", SAMPLES, ids=lambda path: path.name)
def test_a_report_holds_what_the_capture_does(sample: Path) -> None:
    with fxf.open(sample) as capture:
        page = page_of(capture)
        data = data_of(page)
        assert [each["records"] for each in data["captures"]] == [capture.summary().records]
        if "slices" in capture.schemas:
            assert sum(t["total"] for t in data["tracks"]) == len(capture.table("slices"))
            names = {name for track in data["tracks"] for name in track["name"]}
            wanted = {str(name or "") for name in capture.table("slices").texts("name")}
            assert {data["names"][name] for name in names} == wanted
        if "logs" in capture.schemas:
            assert sum(logs["total"] for logs in data["logs"]) == len(capture.table("logs"))
        assert data["captures"][0]["counts"] == dict(capture.diagnostics.counts)


def test_nothing_comes_from_elsewhere() -> None:
    with fxf.open(TRACE) as capture:
        page = page_of(capture)
    code = page.replace(page[page.index('id="data">') : page.index("</script>")], "")
    assert not re.search(r"(src|href)=|https?://|url\(|@import|fetch\(|XMLHttp|import\(", code)
    assert "default-src 'none'" in code


def test_names_of_a_capture_are_text(tmp_path: Path) -> None:
    page = page_of(_hostile(tmp_path))
    assert page.count("</script>") == 2
    assert data_of(page)["names"][:1] == [HOSTILE]


def _hostile(folder: Path) -> Any:
    from fx_trace.write.archive import Archive

    with Archive(folder / "hostile.fxt") as archive:
        app = archive.provider(1, HOSTILE)
        with app.slice(HOSTILE, HOSTILE, {HOSTILE: HOSTILE}):
            app.counter("c", HOSTILE, {HOSTILE: 1})
    return fxf.open(folder / "hostile.fxt")


def test_what_is_too_much_is_summed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(report.MOST, "slices", 100)
    with fxf.open(TRACE) as capture:
        data = data_of(page_of(capture))
        (track,) = data["tracks"]
        assert len(track["start"]) == 100
        length = np.sort(capture.table("slices").array("dur"))
        assert min(track["dur"]) >= length[-101]
        assert track["total"] == length.size
        assert max(track["busy"]["share"]) <= 100
        assert max(track["busy"]["share"]) > 0


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Two threads on two CPUs, one of which sends the other a flow and is idle meanwhile."""
    from fx_trace.write.archive import Archive

    path = tmp_path / "machine.fxt"
    with Archive(path) as archive:
        app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
        main, helper, idle = (1, 10), (1, 11), (0, 0)
        app.process(1, "app")
        app.thread(*main, "main")
        app.duration_complete("c", "call", 100, 200, thread=main)
        app.duration_complete("c", "help", 130, 180, thread=helper)
        app.flow_begin("c", "ask", 7, timestamp=120, thread=main)
        app.flow_end("c", "ask", 7, timestamp=150, thread=helper)
        for ns, cpu, left, entered in (
            (90, 0, idle, main), (125, 0, main, idle),
            (140, 1, idle, helper), (190, 1, helper, idle),
        ):  # fmt: skip
            app.context_switch(cpu=cpu, outgoing_tid=left[1], incoming_tid=entered[1], ticks=ns)
        app.wakeup(cpu=1, tid=11, ticks=130)
        app.wakeup(cpu=0, tid=10, ticks=195)
    return path


def test_a_report_has_what_cpus_ran_the_states_of_threads_and_flows(machine: Path) -> None:
    with fxf.open(machine) as capture:
        data = data_of(page_of(capture))
    origin = 90
    cpus = [
        (cpu["label"], [data["names"][name] for name in cpu["name"]],
         [start + origin for start in cpu["start"]], cpu["dur"])
        for cpu in data["cpus"]
    ]  # fmt: skip
    assert cpus == [
        ("CPU 0", ["app / main"], [90], [35]), ("CPU 1", ["app / thread 11"], [140], [50])
    ]  # fmt: skip
    states = {track["label"]: track["states"] for track in data["tracks"]}
    assert states["thread 11"] == {"start": [40, 50, 100], "dur": [10, 50, 5], "state": [1, 0, 2]}
    assert states["main"] == {"start": [0, 35], "dur": [35, 70], "state": [0, 2]}
    (arrow,) = data["arrows"]
    labels = [track["label"] for track in data["tracks"]]
    assert arrow == [
        labels.index("main"), 0, 30, labels.index("thread 11"), 0, 60, data["names"].index("ask")
    ]  # fmt: skip


def test_what_is_shown_of_scheduling_is_limited(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("runs", "states"):
        monkeypatch.setitem(report.MOST, kind, 1)
    monkeypatch.setitem(report.MOST, "arrows", 0)
    sink = Sink.memory()
    session = report.HtmlExport(sink, {"title": ""})
    with fxf.open(machine) as capture:
        session.write(capture)
    dropped = session.close()
    data = data_of(sink.getvalue().decode())
    assert [len(cpu["start"]) for cpu in data["cpus"]] == [0, 1]
    assert not data["arrows"]
    assert (dropped["runs of CPUs"], dropped["states of threads"], dropped["arrows of flows"]) == (
        1, 4, 1
    )  # fmt: skip


def test_of_runs_and_states_that_are_equally_long_no_more_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fx_trace.write.archive import Archive

    path = tmp_path / "equal.fxt"
    with Archive(path) as archive:
        app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
        app.duration_complete("c", "call", 0, 60, thread=(1, 10))
        for ns in range(10, 60, 10):
            app.context_switch(cpu=0, outgoing_tid=ns % 20, incoming_tid=10 - ns % 20, ticks=ns)
    for kind in ("runs", "states"):
        monkeypatch.setitem(report.MOST, kind, 1)
    with fxf.open(path) as capture:
        data = data_of(page_of(capture))
    assert [cpu["start"] for cpu in data["cpus"]] == [[20]]
    assert [len(track["states"]["start"]) for track in data["tracks"]] == [1]


def test_a_part_has_the_flows_between_its_slices(machine: Path) -> None:
    with fxf.open(machine) as capture:
        without = capture.select(fxf.Selection(min_duration_ns=60))
        both = capture.select(fxf.Selection(start_ns=100))
        assert not data_of(page_of(without))["arrows"]
        assert len(data_of(page_of(both))["arrows"]) == 1


def test_sums_of_times_may_have_more_than_64_bits(tmp_path: Path) -> None:
    from fx_trace.write.archive import Archive

    with Archive(tmp_path / "long.fxt") as archive:
        app = archive.provider(1, "app")
        for start in range(3):
            app.duration_complete("c", "long", start, (1 << 63) - 1)
    with fxf.open(tmp_path / "long.fxt") as capture:
        (row,) = data_of(page_of(capture))["byname"]
        wanted = sum(capture.table("slices").array("dur").tolist())
    assert wanted > 1 << 64
    assert row[2] == pytest.approx(wanted)


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--enable-logging=stderr", "--window-size=1200,900",
)  # fmt: skip


@pytest.mark.oracle
def test_a_browser_draws_it_without_an_error(tmp_path: Path) -> None:
    if CHROMIUM is None:
        if os.environ.get("FXF_REQUIRE_ORACLES"):
            pytest.fail("Chromium is missing")
        pytest.skip("the browser test needs Chromium (Debian's package chromium)")
    with fxf.open(TRACE) as trace, fxf.open(SAMPLES[-2]) as other:
        page = tmp_path / "report.html"
        page.write_text(page_of(trace, other, _hostile(tmp_path)))
    picture = tmp_path / "report.png"
    done = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", f"--screenshot={picture}",
         page.as_uri()],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr
    assert picture.stat().st_size > 20_000
