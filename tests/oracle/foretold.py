"""Foretold: a prediction of what Perfetto loses, held against what it counts."""

from __future__ import annotations

import attrs

import fxframework as fxf
from fxframework.model.prediction import Prediction

from .perfetto import LoadedTrace, PerfettoError

COUNTERS = "select name, value from stats where value != 0 and name not like '%_duration_ns'"
KIND = "select str_value as kind from metadata where name = 'trace_type'"
CRASH = "unreachable"
"""What the engine's crash is called."""


@attrs.frozen
class Outcome:
    """What Perfetto made of a trace: its counters, or what its error says."""

    counters: dict[str, int]
    error: str = ""
    kind: str = ""


def outcome_of(loaded: LoadedTrace) -> Outcome:
    """What Perfetto makes of a trace."""
    try:
        found = loaded.queries({"counters": COUNTERS, "kind": KIND})
    except PerfettoError as error:
        return Outcome({}, error=str(error))
    kind = found["kind"][0]["kind"] if found["kind"] else ""
    return Outcome({row["name"]: row["value"] for row in found["counters"]}, kind=kind)


def predicted(trace: bytes) -> Prediction:
    """What we say that Perfetto makes of it."""
    return fxf.predict(trace, "perfetto", format="trace")


def assert_foretold(loaded: LoadedTrace, trace: bytes, label: object = None) -> Prediction:
    """The prediction says which counters there are, or why Perfetto refuses the file."""
    foretold, outcome = predicted(trace), outcome_of(loaded)
    if foretold.refused is None:
        assert not outcome.error, label
        assert outcome.kind == "fuchsia", label
        if not foretold.count("packets"):
            assert foretold.counters == outcome.counters, label
    elif foretold.refused.quirk.key == "no-magic":
        assert outcome.error or outcome.kind != "fuchsia", label
    else:
        place = foretold.refused.places[0]
        assert (foretold.refused.quirk.message or place.detail or CRASH) in outcome.error, label
    return foretold
