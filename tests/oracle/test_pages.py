"""Pages and pictures in a browser: at every width all labels fit, and nothing overlaps."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fx_trace.write.archive import Archive
from fxframework.replay.runner import replay
from fxframework.testing.cli import run_cli

from .browser import Browser

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "examples" / "scenarios"
BOOT = SCENARIOS / "boot.golden" / "boot.fxt"
LOGS = SCENARIOS / "logs.golden" / "logs.fxlog"
CALLS = ROOT / "examples" / "xray" / "spellcheck.xray"
MAGIC = ROOT / "examples" / "magic_trace_sample.fxt.gz"
WIDTHS = (360, 800, 1900)

RECORDER = """
window.texts = []; window.rects = [];
for (const [name, kept] of [["fillText", texts], ["fillRect", rects]]) {
  const draw = CanvasRenderingContext2D.prototype[name];
  CanvasRenderingContext2D.prototype[name] = function (...given) {
    const size = name === "fillText" ? this.measureText(given[0]).width : 0;
    kept.push([this.canvas, this.canvas.clientWidth, size, ...given]);
    return draw.apply(this, given);
  };
}
window.recorded = (kept, where) => kept.filter(([canvas]) => canvas.matches(where))
  .map(([canvas, ...rest]) => [[...document.querySelectorAll("canvas")].indexOf(canvas), ...rest]);
window.brokenWords = () => {
  const broken = [];
  for (const cell of document.querySelectorAll("th, td")) {
    const text = cell.firstChild, range = document.createRange();
    for (const word of text ? text.data.matchAll(/\\S{1,31}(?!\\S)/g) : []) {
      range.setStart(text, word.index); range.setEnd(text, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
      if (lines.size > 1 && !cell.classList.contains("long")) broken.push(word[0]);
    }
  }
  return broken;
};
"""


def deep(folder: Path) -> Path:
    """Calls of 65 levels on five threads, with names of one word and of many."""
    path = folder / "deep.fxt"
    with Archive(path) as archive:
        app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
        for tid in range(2, 7):
            for level in range(65):
                name = f"a_function_with_a_long_name_{level}" + "::inner" * (level == 9) * 20
                app.duration_complete(
                    "c", name, 10**9 + level * 1000, 10**9 + 10**6 - level * 1000, thread=(1, tid)
                )
    return path


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    of: dict[str, list[Any]] = {
        "several": [BOOT, LOGS, CALLS], "calls": [CALLS], "magic": [MAGIC], "deep": [deep(folder)]
    }  # fmt: skip
    for name, inputs in of.items():
        fxf.convert(inputs, folder / f"{name}.html")
    for name in ("calls", "magic", "deep"):
        fxf.convert(of[name], folder / f"{name}.svg")
    shop = replay(SCENARIOS / "checkout.toml", folder / "shop")
    assert shop.ok
    (folder / "shop" / "checkout.html").rename(folder / "checkout.html")
    text = (SCENARIOS / "checkout.toml").read_text().replace("2500us", "300us")
    for path in SCENARIOS.glob("checkout.*"):
        if path.is_file():
            shutil.copy(path, folder / path.name)
    (folder / "checkout.toml").write_text(text)
    replay(folder / "checkout.toml", folder / "pool")
    done = run_cli(
        "compare", folder / "shop", "--with", folder / "pool", "--out", folder / "runs.html"
    )  # fmt: skip
    assert not done.stderr.count("error")
    shown = run_cli("why", folder / "shop" / "checkout.fxt", "order", "--html", folder / "why.html")
    assert not shown.stderr.count("error")
    return {path.name: path for path in folder.iterdir()}


@pytest.fixture
def at_width(browser: Browser) -> Iterator[Any]:
    added = browser.call("Page.addScriptToEvaluateOnNewDocument", source=RECORDER)

    def open_at(page: Path, width: int) -> Browser:
        browser.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=800, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        browser.open("about:blank")
        browser.until("location.href === 'about:blank'")
        browser.open(page.as_uri())
        browser.until("location.href !== 'about:blank' && document.readyState === 'complete'")
        return browser

    yield open_at
    browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])
    browser.call("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["several", "calls", "magic", "deep"])
def test_a_page_fits(name: str, width: int, pages: dict[str, Path], at_width: Any) -> None:
    browser = at_width(pages[f"{name}.html"], width)
    assert not browser.errors()
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    # Labels of the axis, which are all in its first 20 pixels, end in the picture and are apart.
    axis = [
        (x, x + size, wide)
        for _, wide, size, _, x, y in browser.evaluate("recorded(texts, '#timeline')")
        if y == 10
    ]
    assert len(axis) >= 2
    assert all(end <= wide for _, end, wide in axis)
    assert all(end < start for (_, end, _), (start, _, _) in itertools.pairwise(axis))
    assert browser.evaluate("brokenWords()") == []
    # The timeline leaves room for the rest, however deep threads are.
    assert browser.evaluate("document.getElementById('timeline').clientHeight") < 2_300
    # No frame is painted over another one.
    levels: dict[tuple[int, float], list[tuple[float, float]]] = {}
    for canvas, _, _, x, y, w, _ in browser.evaluate("recorded(rects, '#flames canvas, #flame')"):
        levels.setdefault((canvas, y), []).append((x, x + w))
    assert levels
    for places in levels.values():
        for (_, end), (start, _) in itertools.pairwise(sorted(places)):
            assert end <= start + 0.01


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_of_reasons_fits(width: int, pages: dict[str, Path], at_width: Any) -> None:
    browser = at_width(pages["why.html"], width)
    assert not browser.errors()
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    strips = browser.evaluate(
        "[...document.querySelectorAll('.strip')].map((strip) => "
        "[...strip.children].reduce((sum, part) => sum + part.offsetWidth, 0))"
    )
    assert len(strips) == 2
    assert strips[0] > 3 * strips[1]  # the slowest took four times as long
    assert browser.evaluate("brokenWords()") == []


def test_each_capture_of_a_page_has_a_flame_graph(pages: dict[str, Path], at_width: Any) -> None:
    browser = at_width(pages["several.html"], 1200)
    heads = browser.evaluate("[...document.querySelectorAll('#flames h3')].map(h => h.innerText)")
    assert heads == [str(BOOT), str(CALLS)]
    roots = [
        (canvas, x, w)
        for canvas, wide, _, x, y, w, _ in browser.evaluate("recorded(rects, '#flames canvas')")
        if y == 0
    ]
    assert [x for _, x, _ in roots] == [0, 0]
    assert len({canvas for canvas, *_ in roots}) == 2  # each fills its own picture
    assert all(w > 1_100 for *_, w in roots)


def test_threads_of_many_levels_are_folded(pages: dict[str, Path], at_width: Any) -> None:
    browser = at_width(pages["deep.html"], 1200)
    tall = "document.getElementById('timeline').clientHeight"
    folded = browser.evaluate(tall)
    heads = browser.evaluate("recorded(texts, '#timeline').map(each => each[3])")
    assert sum("more levels: click" in head for head in heads) == 5
    browser.evaluate("document.getElementById('fold').click()")
    unfolded = browser.evaluate(tall)
    assert unfolded > 5 * 64 * 15
    browser.evaluate("document.getElementById('fold').click()")
    assert browser.evaluate(tall) == folded
    # A click on the name of one thread unfolds it alone; so does dragging nothing.
    browser.evaluate(
        "window.at = document.getElementById('timeline').getBoundingClientRect(); "
        "window.scrollTo(0, 0)"
    )
    x, y = browser.evaluate("[at.left + 20, at.top + 20 + 6 + 8]")
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    assert folded < browser.evaluate(tall) < unfolded
    assert not browser.errors()


def test_a_page_says_when_it_begins(pages: dict[str, Path], at_width: Any) -> None:
    subtitle = "document.getElementById('subtitle').innerText"
    assert "time 0 is 13,562.555403689 s on the clock of the capture" in at_width(
        pages["calls.html"], 800
    ).evaluate(subtitle)
    assert "time 0 is 2022-04-20 01:45:13.989693816 UTC" in at_width(
        pages["magic.html"], 800
    ).evaluate(subtitle)
    first = "document.querySelector('#slowest td.n').innerText"
    assert at_width(pages["calls.html"], 800).evaluate(first) == "0 ns"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["calls", "magic", "deep"])
def test_a_flame_graph_fills_the_window(
    name: str, width: int, pages: dict[str, Path], at_width: Any
) -> None:
    browser = at_width(pages[f"{name}.svg"], width)

    def fills() -> None:
        boxes = browser.evaluate(
            "[...document.querySelectorAll('g.f rect')].map(r => r.getBoundingClientRect())"
            ".filter(b => b.width).map(b => [b.left, b.right])"
        )
        # A scroll bar may take some pixels.
        room = browser.evaluate("document.documentElement.getBoundingClientRect().width")
        assert room >= browser.evaluate("innerWidth") - 20
        assert min(left for left, _ in boxes) == pytest.approx(0, abs=1)
        assert max(right for _, right in boxes) == pytest.approx(room, abs=1)
        for text in ("title", "find", "matched"):
            box = f"document.getElementById('{text}').getBoundingClientRect()"
            assert browser.evaluate(f"{box}.left") >= 0
            assert browser.evaluate(f"{box}.right") <= room
        overlap = "document.getElementById('title').getBoundingClientRect().right"
        assert browser.evaluate(overlap) < browser.evaluate(
            "document.getElementById('find').getBoundingClientRect().left"
        )

    fills()
    assert browser.evaluate(
        "document.querySelector('g.f rect').getBoundingClientRect().height"
    ) == (pytest.approx(16, abs=0.5))  # text keeps its size
    browser.evaluate(
        "frames.find(f => f.width > 0 && f.y > 60).group.dispatchEvent(new Event('click'))"
    )
    fills()
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        width=700, height=800, deviceScaleFactor=1, mobile=False,
    )  # fmt: skip
    browser.until("innerWidth === 700")
    browser.evaluate("new Promise(requestAnimationFrame)")
    browser.until("Math.abs(WIDTH - document.documentElement.getBoundingClientRect().width) < 1")
    fills()
    assert not browser.errors()


def test_only_what_failed_is_red_and_logs_have_their_texts(
    pages: dict[str, Path], at_width: Any
) -> None:
    """Of six orders, the fourth is the one in which the shop logged an error."""
    browser = at_width(pages["checkout.html"], 1400)
    assert not browser.errors()
    assert browser.evaluate("failed.map((rows) => rows.size)") == [1, 0, 0, 0, 0]
    hues = browser.evaluate("data.names.map((_, n) => Number(colour(n).match(/[\\d.]+/)[0]))")
    assert all(40 <= hue < 320 for hue in hues)
    texts = browser.evaluate("recorded(texts, '#timeline')")
    shown = {text for _, _, _, text, _, _ in texts}
    assert {"the shop is open", "order 3 failed: no connection", "the backup is complete"} <= shown
    # No text lies over another one.
    lines: dict[float, list[tuple[float, float]]] = {}
    for _, _, size, text, x, y in texts:
        if text in {"the shop is open", "order 3 failed: no connection", "the backup is complete",
                    "the backup takes a connection"}:  # fmt: skip
            lines.setdefault(y, []).append((x, x + size))
    for places in lines.values():
        for (_, end), (start, _) in itertools.pairwise(sorted(places)):
            assert end <= start


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_a_comparison_fits_and_has_axes(width: int, pages: dict[str, Path], at_width: Any) -> None:
    browser = at_width(pages["runs.html"], width)
    assert not browser.errors()
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    wide = "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"
    if width >= 800:
        assert max(browser.evaluate(wide)) <= 0  # no table is cut
    assert browser.evaluate("document.querySelectorAll('#shapes .axis span').length") % 4 == 0
    assert browser.evaluate("document.querySelectorAll('#shapes .axis').length") >= 1
    axis = [
        (x, x + size)
        for _, _, size, _, x, y in browser.evaluate("recorded(texts, '#timelines')")
        if y == 10
    ]
    assert len(axis) >= 2
    assert all(end < start for (_, end), (start, _) in itertools.pairwise(axis))
    tracks = "data.timelines.map((side) => side.tracks.map((name) => name.split(' (')[0]))"
    before, after = browser.evaluate(tracks)
    assert before == after
    page = browser.evaluate("document.body.innerText")
    assert "e+0" not in page


@pytest.mark.parametrize("name", ["checkout.html", "runs.html"])
def test_pages_have_one_dark_mode(name: str, pages: dict[str, Path], at_width: Any) -> None:
    browser = at_width(pages[name], 1200)
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.call("Emulation.setEmulatedMedia", features=dark)
    try:
        assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == (
            "rgb(20, 24, 29)"
        )
    finally:
        browser.call("Emulation.setEmulatedMedia", features=[])


@pytest.mark.parametrize(("name", "timeline"), [("several", "timeline"), ("runs", "timelines")])
def test_pictures_zoom(name: str, timeline: str, pages: dict[str, Path], at_width: Any) -> None:
    browser = at_width(pages[f"{name}.html"], 1200)
    canvas = f"document.getElementById('{timeline}')"
    whole = browser.evaluate("[view.from, view.to]")
    browser.evaluate(f"{canvas}.dispatchEvent(new WheelEvent('wheel', {{deltaY: -300}}))")
    start, stop = browser.evaluate("[view.from, view.to]")
    assert whole[0] <= start < stop < whole[1]
    browser.evaluate(f"{canvas}.dispatchEvent(new MouseEvent('dblclick'))")
    assert browser.evaluate("[view.from, view.to]") == whole
    flame = "document.querySelector('#flame, #flames canvas')"
    browser.evaluate(f"rects.length = 0; {flame}.dispatchEvent(new MouseEvent('click'))")
    assert browser.evaluate("recorded(rects, '#flame, #flames canvas')")  # drawn again
    assert not browser.errors()
