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
from fxframework.exporters.html import export
from fxframework.io.sink import Sink
from fxframework.model.schema import LOG_LEVELS

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
    session = export.HtmlExport(sink, {"title": ""})
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


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
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
    monkeypatch.setitem(export.MOST, "slices", 100)
    with fxf.open(TRACE) as capture:
        data = data_of(page_of(capture))
        (track,) = data["tracks"]
        assert len(track["start"]) == 100
        length = np.sort(capture.table("slices").array("dur"))
        assert min(track["dur"]) >= length[-101]
        assert track["total"] == length.size
        assert max(track["busy"]["share"]) <= 100
        assert max(track["busy"]["share"]) > 0


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
