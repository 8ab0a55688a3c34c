"""Chrome JSON as FXT, or as JSON again, shows the same slices, counters and flows in Perfetto."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fx_trace.write.archive import Archive

from ..cases import cases
from . import compare
from .perfetto import Perfetto
from .xray_tool import llvm_xray

COMPARED = ("slices", "nesting", "counters", "flows", "async")
XRAY = Path(__file__).parents[2] / "examples" / "xray" / "spellcheck.xray"


def event(ph: str, ts: float, tid: int = 2, **more: Any) -> dict[str, Any]:
    return {"ph": ph, "ts": ts, "pid": 1, "tid": tid, **more}


def flow(ph: str, ts: float, id: int, tid: int = 2, **more: Any) -> dict[str, Any]:
    return event(ph, ts, tid, id=id, cat="f", name="flow", **more)


PHASES = [
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "shop"}},
    {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "orders"}},
    event("X", 10, dur=90.5, name="order", cat="a,b", args={"paid": True, "l": "é"}),
    event("B", 20.0005, name="charge", cat="pay", args={"cents": -(2**40), "rate": 0.5}),
    flow("s", 21, 1),
    event("C", 22, name="queue", args={"long": 3, "short": 0.25}),
    event("E", 30.5, args={"result": -1}),
    # Equal times: the longest comes first.
    event("X", 40, dur=1, name="inner"),
    event("X", 40, dur=2, name="outer"),
    flow("t", 105, 1, tid=3),
    event("X", 104, 3, dur=5, name="ship", cat="b"),
    # Binds to the slice that begins next.
    flow("f", 110, 1, tid=4),
    event("X", 111, 4, dur=1, name="deliver"),
    flow("f", 111.5, 2, tid=4, bp="e"),
    flow("s", 106, 2, tid=3),
    event("b", 140, name="request", cat="net", id="0x1f"),
    event("b", 141, name="request", cat="other", id="0x1f"),
    event("e", 145, name="request", cat="net", id="0x1f", args={"status": 200}),
    event("e", 146, name="request", cat="other", id="0x1f"),
    event("B", 1e6 + 0.001, name="open"),
]


def of_phases(folder: Path) -> bytes:
    del folder
    return json.dumps({"traceEvents": PHASES}, ensure_ascii=False).encode()


def of_viztracer(tmp_path: Path) -> bytes:
    viztracer = pytest.importorskip("viztracer")
    path = tmp_path / "viztracer.json"
    script = (
        "import threading\n"
        "from viztracer import VizTracer\n"
        "from viztracer.vizcounter import VizCounter\n"
        f"tracer = VizTracer(output_file={str(path)!r}, verbose=0)\n"
        "def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
        "tracer.start()\n"
        "counter = VizCounter(tracer, 'queue')\n"
        "counter.a = 1\n"
        "threads = [threading.Thread(target=fib, args=(9,)) for _ in range(2)]\n"
        "[thread.start() for thread in threads]\n"
        "counter.b = 2.5\n"
        "[thread.join() for thread in threads]\n"
        "tracer.stop()\n"
        "tracer.save()\n"
    )
    import sys

    del viztracer
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    return path.read_bytes()


def of_llvm_xray(tmp_path: Path) -> bytes:
    path = tmp_path / "xray.json"
    command = [llvm_xray(), "convert", "-f", "trace_event", str(XRAY), "-o", str(path)]
    subprocess.run(command, check=True, timeout=60)
    return path.read_bytes()


def of_our_exporter(tmp_path: Path) -> bytes:
    path = tmp_path / "ours.fxt"
    with Archive(path) as archive:
        app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
        app.process(1, "shop")
        first, second = app.thread(1, 2, "orders"), app.thread(1, 3, "ships")
        for at in range(0, 50_000, 5_000):
            args = {"n": at, "x": 0.5, "s": "é"}
            app.duration_begin("shop", "order", args, timestamp=at, thread=first)
            app.flow_begin("shop", "to", at, timestamp=at + 10, thread=first)
            values = {"a": at, "b": 0.25}
            app.counter("shop", "queue", values, timestamp=at + 20, thread=first)
            app.duration_complete("shop", "ship", at + 50, at + 900, thread=second)
            app.flow_end("shop", "to", at, timestamp=at + 100, thread=second)
            app.async_begin("shop", "wait", at, timestamp=at + 200, thread=first)
            app.async_end("shop", "wait", at, timestamp=at + 1_200, thread=first)
            app.duration_end("shop", "order", {"done": True}, timestamp=at + 2_000, thread=first)
    fxf.convert(path, tmp_path / "ours.json")
    return (tmp_path / "ours.json").read_bytes()


MAKERS = {
    "phases": of_phases,
    "viztracer": of_viztracer,
    "llvm-xray": of_llvm_xray,
    "ours": of_our_exporter,
}


@cases("made", MAKERS)
def test_outputs_show_what_the_json_shows(perfetto: Perfetto, tmp_path: Path, made: str) -> None:
    data = MAKERS[made](tmp_path)
    path = tmp_path / "in.json"
    path.write_bytes(data)
    with fxf.open(path) as capture:
        assert capture.format == "chrome-json"
        fxf.convert(capture, tmp_path / "out.fxt")
        fxf.convert(capture, tmp_path / "out.json")
    there = seen(perfetto, path)
    for output in ("out.fxt", "out.json"):
        here = seen(perfetto, tmp_path / output)
        for name in COMPARED:
            assert here[name] == there[name], (output, name)
    assert there["slices"]
    if made in {"phases", "viztracer", "ours"}:
        assert there["counters"]
    if made in {"phases", "ours"}:
        assert there["flows"]


def seen(perfetto: Perfetto, path: Path) -> compare.View:
    """What Perfetto shows, without the differences between how the formats name things.

    Arguments of JSON are called ``args.NAME``; counters of JSON ``NAME SERIES``, of FXT
    ``NAME:SERIES:ID``. A pid that is a text is the name of a process with a number of its own.
    """
    trace = perfetto(path)
    assert not trace.stats()
    view = compare.theirs(trace)
    texts = {number: int(name) for number, name in view["processes"] if name.isdecimal()}
    tids = {number: int(name) for number, name in view["threads"] if name.isdecimal()}
    view["slices"] = Counter(
        {
            (texts.get(pid, pid), tids.get(tid, tid), *what[:-1], _args(what[-1])): count
            for (pid, tid, *what), count in view["slices"].items()
        }
    )
    view["async"] = Counter(
        {(*what[:-1], _args(what[-1])): count for what, count in view["async"].items()}
    )
    view["counters"] = Counter(
        {
            (pid, " ".join(name.split(":")[:2]), *rest): count
            for (pid, name, *rest), count in view["counters"].items()
        }
    )
    return view


def _args(args: Any) -> Any:
    return tuple(sorted((key.removeprefix("args."), kind, value) for key, kind, value in args))
