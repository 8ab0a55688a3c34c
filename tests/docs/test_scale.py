"""The table of docs/batch.md is what docs/scale.py computes."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from ..cases import cases

DOCS = Path(__file__).parents[2] / "docs"


def test_the_scale_plan_is_what_the_simulation_says(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(DOCS / "scale.py"))["main"]()
    table = capsys.readouterr().out
    assert table.count("\n") == 22
    assert table in (DOCS / "batch.md").read_text("utf-8")


@cases("workers", [1, 2, 100])
def test_workers_that_wait_for_nothing_add_up(workers: int) -> None:
    scale = runpy.run_path(str(DOCS / "scale.py"))
    kind = scale["Kind"]("some", 0.001, 1.0, 1)
    store = scale["Store"]("fast", 0.0, 1e9, 1e9)
    assert scale["rate"](kind, store, workers) == pytest.approx(workers, rel=0.06)
    assert scale["limit"](kind, store, workers) == "the workers' CPUs"
    assert scale["limit"](kind, store, 10_000) == "the scheduler"
