"""The public test kit. Needs pytest; contracts and strategies need hypothesis as well.

Subclass ``ReaderContract``, ``WriterContract``, ``ExporterContract``, ``StepContract`` or
``DeviceContract`` in your test module and provide samples; pytest then collects the tests that
every bundled plugin passes. ``checkup`` runs them without pytest, as does `fxf plugins --check`.
``strategies`` generates damaged and random inputs for your own tests. ``crashtest`` simulates a
crash after every store of your writer; ``pytest_plugin`` provides it as a fixture, together with
an emulated target and the replay of scenarios.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fxframework.testing.contracts import (
        FOREIGN,
        Contract,
        DeviceContract,
        Expected,
        ExporterContract,
        ReaderContract,
        Sample,
        StepContract,
        WriterContract,
        check_capture,
        check_golden,
        open_bytes,
    )
    from fxframework.testing.crashtest import CrashReport, RecordedMemory
    from fxframework.testing.readback import ReadsBack, reads_back

# Every run of pytest imports this package because of its plugin, so imports are lazy.
_MODULES = {
    "FOREIGN": "contracts",
    "Contract": "contracts",
    "CrashReport": "crashtest",
    "DeviceContract": "contracts",
    "Expected": "contracts",
    "ExporterContract": "contracts",
    "ReaderContract": "contracts",
    "ReadsBack": "readback",
    "RecordedMemory": "crashtest",
    "Sample": "contracts",
    "StepContract": "contracts",
    "WriterContract": "contracts",
    "check_capture": "contracts",
    "check_golden": "contracts",
    "open_bytes": "contracts",
    "reads_back": "readback",
}

__all__ = [
    "FOREIGN",
    "Contract",
    "CrashReport",
    "DeviceContract",
    "Expected",
    "ExporterContract",
    "ReaderContract",
    "ReadsBack",
    "RecordedMemory",
    "Sample",
    "StepContract",
    "WriterContract",
    "check_capture",
    "check_golden",
    "open_bytes",
    "reads_back",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
