"""Replay: runs scenarios on emulated devices.

``replay(path)`` runs a scenario and returns its ``Report``. Modules are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fxframework.replay.report import Report, StepReport, junit
    from fxframework.replay.runner import replay
    from fxframework.replay.scenario import Scenario, ScenarioError, json_schema, load, parse

_MODULES = {
    "Report": "report",
    "Scenario": "scenario",
    "ScenarioError": "scenario",
    "StepReport": "report",
    "json_schema": "scenario",
    "junit": "report",
    "load": "scenario",
    "parse": "scenario",
    "replay": "runner",
}

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


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
