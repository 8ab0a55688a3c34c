"""What the analysis of calls says of real traces is what llvm-xray says, where that is sound."""

from __future__ import annotations

import csv
import io
import re
import time
from pathlib import Path

import fxframework as fxf
from fx_xray import format as fx
from fxframework.analysis.account import account
from fxframework.analysis.graph import call_graph, dot
from fxframework.testing.cli import run_cli

from ...cases import cases
from .traces import buffer, call, header, packed

TRACES = Path(__file__).resolve().parents[2] / "conformance" / "xray"
SOUND = ("fdr5-single-clang19", "fdr5-deep-clang14", "fdr5-deep-clang16")
"""Traces of one thread and one buffer, which llvm-xray accounts rightly."""
GRAPHED = (*SOUND, "fdr5-mt-clang14", "fdr5-mt-clang16")
LINE = re.compile(r'(F\d+(?: -> F\d+)?) \[label="(?:\{.*\|)?([^|"{}]*)\}?" color="(#\w{6})"\];')


@cases("name", SOUND)
def test_an_account_has_the_figures_of_llvm_xray(name: str) -> None:
    result = run_cli("account", "--csv", TRACES / f"{name}.xray")
    ours = list(csv.DictReader(io.StringIO(result.text)))
    text = (TRACES / "expected" / name / "account-k-d.csv").read_text()
    theirs = list(csv.DictReader(io.StringIO(text)))
    figures = ("funcid", "count", "min", "median", "90%ile", "99%ile", "max", "sum")
    shown = [[row[figure] for figure in figures] for row in ours if row["count"] != "0"]
    assert shown == [[row[figure] for figure in figures] for row in theirs]


@cases("name", GRAPHED)
def test_a_graph_has_the_figures_and_the_colours_of_llvm_xray(name: str) -> None:
    with fxf.open(TRACES / f"{name}.xray") as capture:
        lines = "\n".join(dot(call_graph(capture), edge_color="max", vertex_color="99p"))
    expected = LINE.findall((TRACES / "expected" / name / "graph.dot").read_text())
    assert sorted(LINE.findall(lines)) == sorted(expected)
    assert len(expected) > 10


def test_recursive_calls_are_those_of_llvm_xray() -> None:
    counts = {}
    for name in ("fdr5-single-clang19", "fdr5-deep-clang16"):
        with fxf.open(TRACES / f"{name}.xray") as capture:
            found = account(capture, recursion="only").sorted("funcid")
            counts[name] = [(e.function.id, e.spread.count) for e in found if e.spread.count]
    # As `llvm-xray-19 account -k -d -recursive-calls-only` has them.
    assert counts == {
        "fdr5-single-clang19": [(1, 16)],
        "fdr5-deep-clang16": [(1, 41), (2, 4), (3, 4), (4, 4)],
    }


def test_the_sum_of_outermost_calls_is_no_longer_than_the_trace() -> None:
    with fxf.open(TRACES / "fdr5-deep-clang16.xray") as capture:
        outermost = account(capture, recursion="outermost").sorted("funcid")[0].spread.sum
        every = account(capture).sorted("funcid")[0].spread.sum
        ticks = capture.table("slices").array("ticks")
        assert outermost < every
        assert outermost <= int(ticks.max() - ticks.min()) + every // 41


def test_account_counts_the_exits_without_entries() -> None:
    with fxf.open(TRACES / "fdr5-bufstarved-clang16.xray") as capture:
        found = account(capture)
    assert {entry.function.id: entry.unmatched for entry in found.entries if entry.unmatched} == {
        9: 2
    }


@cases("suffix", ["folded", "pb.gz", "speedscope.json", "dot", "csv", "json"])
def test_lengths_beyond_64_bits_of_nanoseconds_are_exported(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "slow.xray"
    far = packed(fx.TscWrap(tsc=1 << 62))
    path.write_bytes(header(cycle_frequency=1) + buffer(call(1), far, call(1, "exit"), tsc=0))
    done = run_cli("convert", str(path), str(tmp_path / f"out.{suffix}"))
    assert done.exit_code in {0, 3}, done.stderr
    assert "FXF0000" not in done.stderr


@cases("verb", ["info", "verify", "account", "stack", "graph"])
def test_calls_that_never_end_take_no_more_than_others(tmp_path: Path, verb: str) -> None:
    path = tmp_path / "deep.xray"
    enter = call(1).pack()
    path.write_bytes(header() + buffer(enter * 300_000))
    begin = time.process_time()
    assert run_cli(verb, str(path)).exit_code in {0, 1, 3}
    # Quadratic, it would take hours.
    assert time.process_time() - begin < 30
