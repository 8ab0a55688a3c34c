"""Replay: runs scenarios on emulated devices.

``replay(path)`` runs a scenario and returns its ``Report``. Modules are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fxframework.kit.lazy import lazy_names

if TYPE_CHECKING:
    from fxframework.replay.report import Report, StepReport, junit
    from fxframework.replay.runner import replay
    from fxframework.replay.scenario import Scenario, ScenarioError, json_schema, load, parse

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
        "fxframework.replay.scenario": "Scenario ScenarioError json_schema load parse",
    },
)
