"""What `fxf verify --as ffx` predicts of logs is what the reference parser's vectors say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fxframework.model.prediction import Effect, Prediction

VECTORS = Path(__file__).parents[2] / "conformance" / "log"
RECORDS = {one["name"]: one for one in json.loads((VECTORS / "records.json").read_text())}
STREAMS = {one["name"]: one for one in json.loads((VECTORS / "streams.json").read_text())}
OF_A_STREAM = {"InvalidHeader": "cut"}
"""What the parser of one record calls the end of a stream."""


def foretold(data: bytes) -> Prediction:
    return fxf.predict(data, "ffx", format="log")


def stop(found: Prediction) -> tuple[str, str] | None:
    """The key and the reference's name of what ends the stream."""
    for loss in found.losses:
        if loss.quirk.effect is Effect.STOPS:
            return loss.quirk.key, loss.places[0].detail
    return None


@pytest.mark.parametrize("name", RECORDS)
def test_every_record(name: str) -> None:
    """Each parses or not, and what does not is called what the reference calls it."""
    vector: dict[str, Any] = RECORDS[name]
    data = bytes.fromhex(vector["hex"])
    expected = vector["expected"]
    found = stop(foretold(data))
    if expected["ok"]:
        assert found is None or (found[0] == "cut" and expected["remaining"])
    elif data:
        assert found is not None
        key, said = found
        # A stream is framed before its records are parsed.
        assert said == expected["error"] or key in {"cut", "size-zero"}


@pytest.mark.parametrize("name", [name for name in STREAMS if name.startswith("fxt_stream")])
def test_every_stream(name: str) -> None:
    vector = STREAMS[name]
    found = foretold(bytes.fromhex(vector["hex"]))
    if "expected_error" in vector:
        assert stop(found) == ("cut", vector["expected_error"])
        return
    assert stop(found) is None
    unknown = sum(moniker == "UNKNOWN" for moniker, _ in vector["expected"])
    assert found.count("unknown-tag") == unknown
    assert found.count("manifest") == ("partial" in name)


def test_what_comes_before_the_end_is_kept() -> None:
    sound = bytes.fromhex(RECORDS["validator_string"]["hex"])
    found = foretold(sound * 3 + bytes(8) + sound)
    assert found.records == 3
    assert found.refused is None
    assert stop(found) == ("size-zero", "Invalid record size in header")
    assert found.losses[0].places[0].offset == 3 * len(sound)
