"""What an author says of a sample is compared, and a difference is named."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "core"))

import toy

from fxframework.testing import Expected, Sample, check_capture, check_golden, open_bytes
from fxframework.testing.cli import run_cli

from ..cases import cases

GOOD = Expected(
    records=4,
    kinds={"magic": 1, "mark": 2, "span": 1},
    rows={"slices": 1, "instants": 2},
    values={"slices": [{"name": "two", "ts": 2_000, "dur": 500, "kind": "begin_end"}]},
    findings=[],
    start_ns=1_000,
    end_ns=5_000,
)


def check(expected: Expected) -> None:
    with open_bytes(toy.READER, toy.SAMPLE) as capture:
        check_capture(capture, Sample("x.toy", toy.SAMPLE, expected=expected))


def test_what_is_expected_holds() -> None:
    check(GOOD)
    check(Expected())


@cases(
    ("field", "value", "message"),
    [
        ("records", 5, "records: x.toy has 4, not 5"),
        ("kinds", {"mark": 3}, "kinds: x.toy has"),
        ("rows", {"slices": 2}, "rows: x.toy has 1 rows of slices, not 2"),
        ("rows", {"sched": 0}, "tables: x.toy has no table sched"),
        ("values", {"slices": [{}, {}]}, "rows: x.toy has 1 rows of slices, not 2 or more"),
        ("values", {"slices": [{"ts": 2}]}, "a wrong unit"),
        ("values", {"slices": [{"ts": 2_000_000}]}, "µs for ns"),
        ("values", {"slices": [{"name": "three"}]}, "name is 'two', not 'three'"),
        ("values", {"slices": [{"colour": 1}]}, "has no column colour"),
        ("findings", ["TOY0001"], "findings: x.toy has [], not ['TOY0001']"),
        ("start_ns", 1, "start_ns: x.toy has 1000, not 1 (1,000 times too large"),
        ("end_ns", 6_000, "end_ns: x.toy has 5000, not 6000"),
    ],
)
def test_what_differs_is_named(field: str, value: Any, message: str) -> None:
    with pytest.raises(AssertionError) as failed:
        check(attrs.evolve(GOOD, **{field: value}))
    assert message in str(failed.value).partition("\n")[0]


def test_golden_files(tmp_path: Path) -> None:
    path = tmp_path / "golden" / "x.toy.json"
    with open_bytes(toy.READER, toy.SAMPLE) as capture:
        with pytest.raises(AssertionError, match="there is no file"):
            check_golden(capture, path, update=False)
        check_golden(capture, path, update=True)
        check_golden(capture, path, update=False)
        golden = json.loads(path.read_text("utf-8"))
        golden["tables"]["slices"]["rows"][0]["ts"] = 2
        path.write_text(json.dumps(golden), "utf-8")
        with pytest.raises(AssertionError, match=r"tables\.slices\.rows\[0\]\.ts is 2000, not 2 "):
            check_golden(capture, path, update=False)


def test_check_runs_the_contracts_of_a_plugin() -> None:
    done = run_cli("plugins", "--check", "replay")
    assert done.exit_code == 0
    assert "step capture.decode: " in done.text
    assert done.text.rstrip().endswith("tests passed")
    shown = run_cli("plugins", "--check", "replay", "--json").json()
    assert shown["ok"]
    assert {test["status"] for test in shown["tests"]} == {"ok", "skipped"}
    unknown = run_cli("plugins", "--check", "repaly")
    assert unknown.exit_code == 2
    assert "did you mean 'replay'?" in unknown.stderr
