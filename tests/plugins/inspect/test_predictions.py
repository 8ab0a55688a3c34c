"""What `fxf verify --as ffx|cpp` predicts of Inspect is what the vectors say of both readers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fxframework.model.prediction import Prediction

VECTORS = {
    one["name"]: one
    for one in json.loads(
        (Path(__file__).parents[2] / "conformance" / "inspect" / "files.json").read_text("utf-8")
    )
}
ERRORS = {"panic(unknown array format)": "panic"}
"""The vectors' own words."""


def image(vector: dict[str, Any]) -> bytes:
    data = bytes.fromhex(vector["hex"])
    return data.ljust(vector.get("zero_pad_to", 0), b"\0")


def foretold(vector: dict[str, Any], reader: str) -> Prediction:
    return fxf.predict(image(vector), reader, format="inspect")


def values(tree: dict[str, Any]) -> int:
    """Nodes and properties of a tree."""
    return len(tree["properties"]) + sum(1 + values(child) for child in tree["children"])


@pytest.mark.parametrize("name", VECTORS)
def test_what_rust_refuses(name: str) -> None:
    expected = VECTORS[name]["expected"]["rust"]
    found = foretold(VECTORS[name], "ffx")
    assert (found.refused is None) == expected["ok"]
    if found.refused is not None:
        error = expected["error"].rpartition(".")[2]
        messages = {loss.quirk.message for loss in found.losses}
        assert ERRORS.get(expected["error"], error) in messages


@pytest.mark.parametrize("name", VECTORS)
def test_what_cpp_refuses_and_drops(name: str) -> None:
    expected = VECTORS[name]["expected"]
    found = foretold(VECTORS[name], "cpp")
    assert (found.refused is None) == expected["cpp"]["ok"]
    if expected["cpp"]["ok"] and expected["rust"]["ok"]:
        fewer = values(expected["cpp"]["tree"]) < values(expected["rust"]["tree"])
        assert not fewer or any(loss.quirk.effect.value == "drops" for loss in found.losses)
