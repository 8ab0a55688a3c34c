"""Arguments of the wrong type are errors that name the argument."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxframework as fxf
from fxframework.errors import BadTypeError
from fxframework.model.capture import Capture
from fxframework.model.selection import Selection
from fxframework.replay import replay

from ..cases import cases
from ..samples import samples

FORMAT, DATA = samples()["boot.fxt"]
WRONG: dict[str, Callable[[Any], Any]] = {
    "open, format=3": lambda _: fxf.open(DATA, format=3),
    "open, format=b''": lambda _: fxf.open(DATA, format=b"trace"),
    "open, strict='yes'": lambda _: fxf.open(DATA, strict="yes"),
    "open, strict=1": lambda _: fxf.open(DATA, strict=1),
    "table(None)": lambda capture: capture.table(None),
    "table(['slices'])": lambda capture: capture.table(["slices"]),
    "batches(3)": lambda capture: capture.batches(3),
    "batches of 'x' rows": lambda capture: capture.batches("slices", "x"),
    "frame(None)": lambda capture: capture.frame(None),
    "select(None)": lambda capture: capture.select(None),
    "select({})": lambda capture: capture.select({}),
    "between('a', 'b')": lambda capture: capture.between("a", "b"),
    "between(1.5, None)": lambda capture: capture.between(1.5, None),
    "column None": lambda capture: capture.table("slices")[None],
    "columns": lambda capture: capture.table("slices")[["ts", "dur"]],
    "rows None": lambda capture: capture.table("slices").select(None),
    "rows of a list": lambda capture: capture.table("slices").select([1]),
    "export, to=3": lambda capture: capture.export("x.csv", to=3),
    "convert, select='x'": lambda capture: fxf.convert(capture, "x.csv", select="x"),
    "convert, align=3": lambda capture: fxf.convert(capture, "x.csv", align=3),
    "convert, force='no'": lambda capture: fxf.convert(capture, "x.csv", force="no"),
    "convert of None": lambda _: fxf.convert(None, "x.csv"),
    "diff, show='x'": lambda capture: fxf.diff(capture, capture, show="x"),
    "compare, by=3": lambda capture: fxf.compare(capture, capture, by=3),
    "compare, threshold='x'": lambda capture: fxf.compare(capture, capture, threshold="x"),
    "compare with 3": lambda capture: fxf.compare(capture, 3),
    "sql of 3": lambda _: fxf.sql(3, "SELECT 1"),
    "sql, query 3": lambda capture: fxf.sql(capture, 3),
    "replay, seed='x'": lambda _: replay("x.toml", seed="x"),
}
VALUES: dict[str, tuple[Any, ...]] = {
    "start_ns": ("a", 3.5, b"x"),
    "stop_ns": ("a", [None]),
    **dict.fromkeys(
        ("threads", "processes", "categories", "functions", "tags", "exclude_tags", "components",
         "filters", "excludes"),
        (3.5, None, b"x", [None], 5),
    ),
    **dict.fromkeys(("pids", "tids"), ("a", 3.5, None, b"x", [None])),
    **dict.fromkeys(("kernel", "case_sensitive"), ("a", None, 1)),
    "min_severity": (3.5, b"x", [None]),
}  # fmt: skip


@pytest.fixture(scope="module")
def capture() -> Capture:
    return fxf.open(DATA, format=FORMAT)


@cases("call", list(WRONG))
def test_calls(call: str, capture: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.toml").write_text('[scenario]\nname = "x"\n[[step]]\ndo = "target.run"\n')
    with pytest.raises(BadTypeError) as caught:
        WRONG[call](capture)
    assert " must be " in caught.value.message
    assert isinstance(caught.value, TypeError)
    assert not (tmp_path / "x.csv").exists()


@cases(("name", "value"), [(name, value) for name, values in VALUES.items() for value in values])
def test_criteria(name: str, value: Any) -> None:
    with pytest.raises(BadTypeError):
        Selection(**{name: value})


def test_integers_of_numpy_are_integers(capture: Capture) -> None:
    part = capture.between(np.int64(0), np.int64(10**12))
    assert len(part.table("slices")) == sum(len(b) for b in part.batches("slices", np.int32(7)))
    assert Selection(pids=np.uint64(5)).pids == (5,)
