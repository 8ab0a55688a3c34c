"""The public test kit. Needs pytest; contracts and strategies need hypothesis as well.

Subclass ``ReaderContract``, ``WriterContract``, ``ExporterContract``, ``StepContract`` or
``DeviceContract`` in a test module of yours, give samples, and pytest collects the tests that
every bundled plugin passes too. ``checkup`` runs them without pytest, as `fxf plugins --check`
does. ``strategies`` makes the damaged and made-up inputs that they use, for tests of your own.
``crashtest`` crashes your writer after every single store; ``pytest_plugin`` has it as a fixture,
with an emulated target and the replaying of scenarios beside it.
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

# Every run of pytest imports this package, for the plugin's sake: nothing else loads with it.
_HOMES = {
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
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
