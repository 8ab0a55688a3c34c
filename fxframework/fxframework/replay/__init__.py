"""Replay: runs scenarios on emulated devices.

``replay(path)`` runs a scenario and returns its ``Report``. Modules are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fxframework.kit.lazy import lazy_names

if TYPE_CHECKING:
    from fxframework.replay.report import Report, StepReport, junit
    from fxframework.replay.runner import replay
    from fxframework.replay.scenario import Scenario, ScenarioError, load, parse
    from fxframework.replay.schema import json_schema

__all__ = [
    "Report",
    "Scenario",
    "ScenarioError",
    "StepReport",
    "json_schema",
    "junit",
    "load",
    "parse",
    "replay",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fxframework.replay.report": "Report StepReport junit",
        "fxframework.replay.runner": "replay",
        "fxframework.replay.scenario": "Scenario ScenarioError load parse",
        "fxframework.replay.schema": "json_schema",
    },
)
