"""What `fxf verify --as` predicts is what the real Perfetto counts, and the real llvm-xray says.

The damaged files are made from their numbers. FXF_PREDICTIONS says how many of each format are
compared; CI compares a few.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

import fxframework as fxf
from fx_trace.references.quirks import QUIRKS

from . import fxt, xray_tool
from .damaged import damaged_trace
from .damaged_xray import damaged_log
from .foretold import assert_foretold, predicted
from .perfetto import Perfetto

CONFORMANCE = Path(__file__).parents[1] / "conformance"
VECTORS = CONFORMANCE / "trace"
DAMAGED = int(os.environ.get("FXF_PREDICTIONS", "60"))
DAMAGED_LOGS = int(os.environ.get("FXF_PREDICTIONS", "40"))
BATCH = 20
"""Damaged files per test."""


# --- Perfetto ------------------------------------------------------------------------------------


def vectors() -> dict[str, bytes]:
    """Every vector: whole files, and single records behind a magic number."""
    found = {path.name: path.read_bytes() for path in sorted((VECTORS / "files").glob("*.fxt"))}
    for vector in json.loads((VECTORS / "records.json").read_text()):
        data = bytes.fromhex(vector["hex"])
        found[vector["name"]] = data if vector["complete_file"] else fxt.MAGIC + data
    return found


def test_every_vector(perfetto: Perfetto) -> None:
    for name, data in vectors().items():
        assert_foretold(perfetto(data), data, name)


@pytest.mark.parametrize("first", range(0, DAMAGED, BATCH))
def test_damaged_traces(first: int, perfetto: Perfetto) -> None:
    for number in range(first, min(first + BATCH, DAMAGED)):
        data = damaged_trace(number)
        assert_foretold(perfetto(data), data, number)


def test_damaged_traces_have_every_counter() -> None:
    """Those that are compared show all that the table counts, and what refuses a file."""
    every = [predicted(damaged_trace(number)) for number in range(DAMAGED)]
    seen = {name for one in every for name in one.counters}
    assert seen == {quirk.counter for quirk in QUIRKS if quirk.counter}
    assert {one.refused.quirk.key for one in every if one.refused} >= {"size-zero"}


# --- llvm-xray -----------------------------------------------------------------------------------

LINE = re.compile(rb"^<", re.MULTILINE)
"""Where `fdr-dump` begins a record; payloads may have line ends."""
HIDDEN = {"header", "no-records", "basic-size", "basic-record", "basic-argument"}
"""What llvm-xray refuses without its own message: it shows that of another attempt."""


def assert_llvm_foretold(path: Path) -> None:
    """The prediction says whether llvm-xray takes a log, what it reads of it, and what it says."""
    data = path.read_bytes()
    basic = data[2:4] == bytes(2)
    foretold = fxf.predict(path, "llvm-xray", format="xray-basic" if basic else "xray")
    events, records, said = read_by_llvm(path, basic=basic)
    refused = [loss for loss in foretold.losses if loss.quirk.effect.value == "refuses"]
    assert (events is None) == bool(refused), said
    if not basic and not foretold.count("header"):
        assert records == foretold.records
    reasons = [place.detail for loss in refused for place in loss.places]
    hidden = not said and foretold.count("terminal")  # `fdr-dump` does not look at every end
    if refused and not hidden and not HIDDEN.intersection(loss.quirk.key for loss in refused):
        assert any(reason in said for reason in reasons), (reasons, said)


def read_by_llvm(path: Path, *, basic: bool) -> tuple[bytes | None, int, str]:
    """The events of a log (None: refused), its records, and what llvm-xray says of them."""
    said = ""
    events: bytes | None = None
    try:
        events = xray_tool.ask("convert", "-f", "yaml", path)
    except xray_tool.RefusedError as error:
        said = str(error)
    if basic:
        return events, 0, said
    done = xray_tool.run("fdr-dump", path)
    records = len(LINE.findall(done.stdout))
    if done.returncode == 0 and events is None:  # the records are sound, but not their order
        done = xray_tool.run("fdr-dump", "--verify", path)
    return events, records, done.stderr.decode("utf-8", "replace")


@pytest.mark.parametrize("folder", ["", "damaged", "llvm", "llvmwriter"])
def test_every_xray_log(folder: str) -> None:
    for path in sorted((CONFORMANCE / "xray" / folder).glob("*.xray")):
        assert_llvm_foretold(path)


@pytest.mark.parametrize("first", range(0, DAMAGED_LOGS, BATCH))
def test_damaged_xray_logs(first: int, tmp_path: Path) -> None:
    for number in range(first, min(first + BATCH, DAMAGED_LOGS)):
        path = tmp_path / f"{number}.xray"
        path.write_bytes(damaged_log(number))
        assert_llvm_foretold(path)
