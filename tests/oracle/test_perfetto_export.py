"""FXT made into a Perfetto trace loads in Perfetto as the FXT itself does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings

import fxframework as fxf
from fxframework.exporters.perfetto.export import open_export
from fxframework.io.sink import Sink
from fxframework.model.schema import ARG_TYPES

from . import compare
from .captures import captures
from .perfetto import Perfetto

CONFORMANCE = Path(__file__).parents[1] / "conformance"
FILES = CONFORMANCE / "trace" / "files"
XRAY = sorted((CONFORMANCE / "xray").rglob("*.xray"))
BAD = "select name, value from stats where value != 0 and severity in ('error', 'data_loss')"
TRACK_TYPES = {"thread_track_event": "thread_execution"}


def exported(*inputs: bytes | Path, format: str | None = None) -> bytes:
    sink = Sink.memory()
    session = open_export(sink, {})
    for each in inputs:
        with fxf.open(each, format=format) as capture:
            session.write(capture)
    session.close()
    return sink.getvalue()


def seen(perfetto: Perfetto, trace: bytes, blobs: AbstractSet[str]) -> compare.View:
    """What Perfetto shows, with the differences that are meant taken out.

    Arguments of track events are called ``debug.NAME``, with underscores for dots; a blob has its
    bytes and not the text ``unknown``; unsigned numbers are shown as such; a thread switched
    out in a state that Fuchsia does not define is runnable; CPUs that idle run a thread 0, which
    FXT has no row for.
    """
    view = compare.theirs(perfetto(trace))
    for name in ("slices", "async"):
        view[name] = Counter(
            {(*key[:-1], _args(key[-1], blobs)): count for key, count in view[name].items()}
        )
    sched = Counter[Any]()
    for (*key, state), count in view["sched"].items():
        if key[3]:
            sched[*key, state or "R"] += count
    view["sched"] = sched
    view["threads"].pop((0, "swapper"), None)
    return view


def _args(args: Any, blobs: AbstractSet[str]) -> Any:
    names = (
        (key.removeprefix("debug.").replace(".", "_"), {"uint": "int"}.get(kind, kind), value)
        for key, kind, value in args
        if key.removeprefix("debug.") not in blobs
    )
    return tuple(sorted(names, key=repr))


def blobs_of(trace: bytes) -> set[str]:
    """Names of arguments that are blobs somewhere."""
    with fxf.open(trace, format="trace") as capture:
        args = capture.table("args")
        kinds = args.array("type").tolist()
        return {
            form
            for name, kind in zip(args.texts("name"), kinds, strict=True)
            if ARG_TYPES[kind] == "blob"
            for form in (str(name), str(name).replace(".", "_"))
        }


def same(perfetto: Perfetto, trace: bytes) -> None:
    blobs = blobs_of(trace)
    direct, ours = (
        seen(perfetto, each, blobs) for each in (trace, exported(trace, format="trace"))
    )
    for name, rows in direct.items():
        if name != "wakeups":  # of FXT they are of the state W, of ftrace of R: not in one table
            assert ours[name] == rows, name


def test_the_magic_trace_is_the_same(perfetto: Perfetto) -> None:
    same(perfetto, (FILES / "magic_trace_sample.fxt").read_bytes())


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(captures())
def test_generated_captures_are_the_same(perfetto: Perfetto, trace: bytes) -> None:
    same(perfetto, trace)
