"""The contracts notice small mistakes of plugins, and say in their first line which."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import trial
from faults import FAULTS, Fault

from fxframework.testing.checkup import run_contract
from fxframework.testing.contracts import repetition

DOCS = Path(__file__).parents[3] / "docs" / "plugin-contracts.md"
CAUGHT = [fault for fault in FAULTS if not fault.missed]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some faults write files of their own: not beside the sources."""
    monkeypatch.chdir(tmp_path)


def copy_of(fault: Fault, folder: Path) -> str:
    package = f"pulse_{FAULTS.index(fault)}"
    trial.install(package, folder, {fault.file: (fault.old, fault.new)})
    return package


@pytest.mark.parametrize("fault", CAUGHT, ids=lambda fault: f"{fault.of}: {fault.what}")
def test_fault_is_caught(fault: Fault, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults of time and memory take seconds each: only large captures show them."""
    if fault.by == "test_memory_in_batches_is_bounded":
        # What a whole table takes shows in files of 64 KB, too.
        monkeypatch.setattr(repetition, "STREAMED", repetition.STREAMED[:3])
    first = next(trial.judge(copy_of(fault, folder), fault), None)
    assert first is not None, f"no test of the contract notices: {fault.what}"
    assert re.search(fault.says, first.fault), f"{first.test} says {first.fault}"


@pytest.mark.parametrize("noun", ["reader", "writer", "exporter", "step", "keeping step", "device"])
def test_without_a_fault_all_contracts_hold(noun: str, folder: Path) -> None:
    if not (folder / "pulse_sound").exists():
        trial.install("pulse_sound", folder, {})
    contract = trial.contracts("pulse_sound")[noun]
    contract.hang = 60.0
    results = list(run_contract(contract))
    assert not [f"{one.test}: {one.fault}" for one in results if one.status == "failed"]
    assert sum(one.status == "ok" for one in results) >= 15


def test_the_table_is_long_and_its_gaps_are_told() -> None:
    assert len(FAULTS) >= 60
    assert len(CAUGHT) >= 52
    text = " ".join(DOCS.read_text("utf-8").split())
    for fault in FAULTS:
        if fault.missed:
            assert fault.what in text, f"the docs do not list: {fault.what}"
    assert {fault.of for fault in CAUGHT} >= {"reader", "writer", "exporter", "step", "device"}
