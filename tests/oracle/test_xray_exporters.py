"""What we make of XRay traces, the real llvm-xray reads, and Perfetto nests as our tables do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fx_xray import plugin
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.registry import parse_options
from fxframework.testing import open_bytes

from ..cases import cases
from .perfetto import Perfetto

TRACES = Path(__file__).parents[1] / "conformance" / "xray"
SINGLE = TRACES / "fdr5-single-clang19.xray"
READABLE = {
    path.stem: path
    for path in sorted(TRACES.rglob("*.xray"))
    if "damaged" not in path.parts and path.stat().st_size > 32
}
NAMES = ("llvm-xray", *(f"llvm-xray-{version}" for version in range(22, 13, -1)))


@pytest.fixture(scope="session")
def llvm_xray() -> str:
    """The program. Without it the tests skip; with FXF_REQUIRE_ORACLES set they fail."""
    for name in NAMES:
        found = shutil.which(name)
        if found is not None:
            return found
    reason = "the oracle of XRay needs llvm-xray (LLVM 14 to 22)"
    if os.environ.get("FXF_REQUIRE_ORACLES"):
        pytest.fail(reason)
    pytest.skip(reason)


def opened(trace: Path) -> Capture:
    data = trace.read_bytes()
    format = "xray" if data[2] else "xray-basic"
    reader = next(reader for reader in plugin.fx_readers() if reader.format == format)
    return open_bytes(reader, data)


def exported(name: str, trace: Path, **options: Any) -> bytes:
    sink = Sink.memory()
    with opened(trace) as capture:
        exporter = next(
            one
            for one in plugin.fx_exporters()
            if one.name == name and one.accepts == capture.format
        )
        session = exporter.open(sink, parse_options(options, exporter.options, whose=name))
        session.write(capture)
        session.close()
    return sink.getvalue()


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    return done.stdout.decode()


def plain(lines: Sequence[str]) -> list[str]:
    """Lines of YAML whose names and payloads stand as they do without quotes."""
    lines = [line.replace("\x7f", r"\x7F") for line in lines]
    return [re.sub(r"'([^' ]*(?: [^' ]+)*)'", r"\1", line) for line in lines]


@cases("trace", READABLE.values(), ids=READABLE)
def test_llvm_xray_reads_the_yaml_back(llvm_xray: str, trace: Path, tmp_path: Path) -> None:
    """It writes the same records again."""
    path = tmp_path / "log.yaml"
    written = exported("llvm-yaml", trace, header_version="1")
    path.write_bytes(written)
    again = run(llvm_xray, "convert", "-f", "yaml", "-o", "-", path)
    # Where it drops quotes that its own reader needs, only the quotes differ.
    assert plain(again.splitlines()) == plain(written.decode().splitlines())


def test_llvm_xray_accounts_for_the_yaml_as_for_the_trace(llvm_xray: str, tmp_path: Path) -> None:
    path = tmp_path / "log.yaml"
    path.write_bytes(exported("llvm-yaml", SINGLE, header_version="1"))
    ours, theirs = (run(llvm_xray, "account", "-f", "csv", log) for log in (path, SINGLE))
    assert ours == theirs
    assert len(ours.splitlines()) == 10


@cases(
    "trace", [path for path in READABLE.values() if path.stem.startswith(("fdr5", "basic3", "v"))],
    ids=lambda path: path.stem,
)  # fmt: skip
def test_json_in_strings_has_the_events_of_llvm_xray(llvm_xray: str, trace: Path) -> None:
    """Of traces that it reads, and in which each exit is of a call."""
    done = subprocess.run(
        [llvm_xray, "convert", "-f", "trace_event", "-o", "-", trace],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("llvm-xray refuses it")
    ours = json.loads(exported("json", trace, strings=True))
    theirs = json.loads(done.stdout)
    assert ours.keys() == theirs.keys()
    with opened(trace) as capture:
        capture.scan()
        matched = not {"FXX0301", "FXX0303", "FXX0304"} & capture.diagnostics.counts.keys()
    if not matched:
        return
    seen, wanted = (
        sorted(
            (e["name"], e["ph"], e["pid"], e["tid"], float(e["ts"])) for e in shown["traceEvents"]
        )
        for shown in (ours, theirs)
    )
    assert [event[:4] for event in seen] == [event[:4] for event in wanted]
    for mine, its in zip(seen, wanted, strict=True):
        # It counts in doubles, which hold 53 bits of an emulated clock's 61.
        assert mine[4] == pytest.approx(its[4], rel=2e-15, abs=0.00011)


def tables(trace: Path) -> Counter[tuple[Any, ...]]:
    """Calls as the tables have them: thread, name, depth, begin and length."""
    with opened(trace) as capture:
        slices, threads = capture.table("slices"), capture.table("threads")
        columns = [slices.array(name).tolist() for name in ("thread", "depth", "ts", "dur")]
        tids = dict(zip(threads.array("id").tolist(), threads.array("tid").tolist(), strict=True))
        return Counter(
            (tids[thread], name, depth, ts, dur)
            for name, thread, depth, ts, dur in zip(slices.texts("name"), *columns, strict=True)
        )


@cases("trace", READABLE.values(), ids=READABLE)
def test_perfetto_nests_calls_as_the_tables_do(perfetto: Perfetto, trace: Path) -> None:
    with opened(trace) as capture:
        capture.scan()
        if {"FXX0304", "FXX0305"} & capture.diagnostics.counts.keys():
            pytest.skip("times of its calls go back, or nanoseconds cannot hold them")
    expected = tables(trace)
    loaded = perfetto(exported("json", trace))
    rows = loaded.query(
        "select s.ts, s.dur, s.name, s.depth, t.tid from slice s "
        "join thread_track k on s.track_id = k.id join thread t using (utid) "
        "where s.category is null or s.category not in ('custom_event', 'typed_event')"
    )
    found = Counter((row["tid"], row["name"], row["depth"], row["ts"], row["dur"]) for row in rows)
    assert loaded.stats() == {}
    if max((ts for _, _, _, ts, _ in expected), default=0) >> 53:  # it takes times for doubles
        found, expected = (
            Counter(row[:3] for row in rows.elements()) for rows in (found, expected)
        )
    assert found == expected
