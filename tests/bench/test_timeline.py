"""How fast captures go to the tools of others: ratios within one run. Never a failure on time.

Times are those of the processor, of whole processes, so that what else runs matters less.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fx_trace.sample import BYTES_PER_EVENT, sample
from fxframework.exporters.columnar import write_parquet
from fxframework.io.sink import Sink

from ..oracle.perfetto import Perfetto, why_not
from .measures import peak_of
from .yardstick import MEGABYTES, Say

SLICES = MEGABYTES * 1_000_000 // BYTES_PER_EVENT
QUERY = "select name, sum(dur) from slices group by name"
BUILT = 50_000
"""Slices that Perfetto's own builder writes."""
MERGED = MEGABYTES * 5 // 8
"""Megabytes of each of four captures."""
DECODE = """
import sys, fxframework
with fxframework.open(sys.argv[1]) as capture:
    table = capture.table("slices")
    table.array("name"), table.array("dur")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("timeline")


@pytest.fixture(scope="module")
def big(folder: Path) -> Path:
    path = folder / "big.fxt"
    path.write_bytes(sample(MEGABYTES * 1_000_000))
    return path


def taken(run: Callable[[], Any], who: int = resource.RUSAGE_SELF) -> float:
    """The least seconds of the processor of two runs."""
    found = []
    for _ in range(2):
        before = resource.getrusage(who)
        run()
        after = resource.getrusage(who)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def process(*words: object) -> float:
    """Seconds of the processor of an interpreter."""
    command = [sys.executable, *map(str, words)]
    return taken(
        lambda: subprocess.run(command, check=True, capture_output=True), resource.RUSAGE_CHILDREN
    )


def converted(big: Path, out: str) -> float:
    return process("-m", "fxframework", "convert", big, big.with_name(out), "--force", "-q")


def test_pftrace_against_the_builder_of_perfetto(big: Path, say: Say) -> None:
    builder = pytest.importorskip("perfetto.trace_builder.proto_builder")
    packets = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    ours = SLICES / converted(big, "out.pftrace")

    def build() -> None:
        trace = builder.TraceProtoBuilder()
        for number in range(BUILT):
            for kind in (packets.TrackEvent.TYPE_SLICE_BEGIN, packets.TrackEvent.TYPE_SLICE_END):
                packet = trace.add_packet()
                packet.timestamp, packet.trusted_packet_sequence_id = number, 1
                packet.track_event.type, packet.track_event.track_uuid = kind, 7
                if kind == packets.TrackEvent.TYPE_SLICE_BEGIN:
                    packet.track_event.name_iid = number % 50 + 1
                    packet.track_event.category_iids.append(1)
                    argument = packet.track_event.debug_annotations.add()
                    argument.name_iid, argument.int_value = 1, number
        trace.serialize()

    theirs = BUILT / taken(build)
    say(
        f".pftrace: {ours / 1e6:.2f} M slices/s, whole process; perfetto's builder: "
        f"{theirs / 1e6:.2f} M/s: {ours / theirs:.1f} x"
    )


def test_parquet_against_pyarrow(big: Path, folder: Path, say: Say) -> None:
    from pyarrow import parquet

    whole = converted(big, "out.parquet")
    with fxf.open(big) as capture:
        table = capture.table("slices").to_arrow()

    def ours() -> None:
        with Sink.open(folder / "ours.parquet", force=True) as sink:
            write_parquet(table.to_reader(), sink)

    mine = taken(ours)
    for name, options in (("as ours", {"compression": "zstd", "compression_level": 1}),
                          ("by default", {})):  # fmt: skip
        theirs = taken(lambda o=options: parquet.write_table(table, folder / "pa.parquet", **o))
        say(f"parquet: {mine:.2f} s, {100 * theirs / mine:.0f} % of the speed of pyarrow {name}")
    say(f"parquet: {whole:.2f} s, whole process")


def test_sql_against_decoding_and_perfetto(big: Path, say: Say) -> None:
    ours = process("-m", "fxframework", "sql", big, QUERY)
    decoding = process("-c", DECODE, big)
    say(f"sql: {ours:.2f} s, decoding its columns {decoding:.2f} s: {ours - decoding:+.2f} s")
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)

    def ask() -> None:
        oracle = Perfetto()
        oracle(big).query("select name, sum(dur) from slice group by name")
        oracle.close()

    theirs = taken(ask, resource.RUSAGE_CHILDREN)
    say(f"sql: {ours:.2f} s, Perfetto (wasm) {theirs:.2f} s: {theirs / ours:.0f} x")


def test_html(big: Path, say: Say) -> None:
    seconds = converted(big, "out.html")
    size = big.with_name("out.html").stat().st_size
    say(f"html: {seconds:.2f} s, {size / 1e6:.2f} MB")
    assert size < 10_000_000


@pytest.mark.parametrize("out", ["out.fxt", "out.pftrace"])
def test_memory_of_a_merge(folder: Path, out: str, say: Say) -> None:
    inputs = [folder / f"{number}.fxt" for number in range(4)]
    for path in inputs:
        if not path.exists():
            path.write_bytes(sample(MERGED * 1_000_000))
    code = "import sys; from fxframework.cli import main; assert main(sys.argv[1:]) == 0\n"
    peaks = {
        count: peak_of(
            code, "convert", *map(str, inputs[:count]), str(folder / out), "--force", "-q"
        )
        for count in (1, 2, 4)
    }
    (folder / out).unlink()
    say(
        f"merging into {out}: "
        + ", ".join(f"{n} x {MERGED} MB: {peak / 1e6:,.0f} MB" for n, peak in peaks.items())
        + f"; {peaks[4] / (MERGED * 1e6):.1f} x the largest"
    )
