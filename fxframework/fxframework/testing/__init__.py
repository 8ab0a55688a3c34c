"""The public test kit. Needs pytest; contracts and strategies need hypothesis as well.

Subclass ``ReaderContract``, ``WriterContract``, ``ExporterContract``, ``StepContract`` or
``DeviceContract`` in your test module and provide samples; pytest then collects the tests that
every bundled plugin passes. ``checkup`` runs them without pytest, as does `fxf plugins --check`.
``strategies`` generates damaged and random inputs for your own tests. ``crashtest`` simulates a
crash after every store of your writer; ``pytest_plugin`` provides it as a fixture, together with
an emulated target and the replay of scenarios.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fxframework.kit.lazy import lazy_names

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

# Every run of pytest imports this package because of its plugin.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fxframework.testing.contracts": "FOREIGN Contract DeviceContract Expected "
        "ExporterContract ReaderContract Sample StepContract WriterContract check_capture "
        "check_golden open_bytes",
        "fxframework.testing.crashtest": "CrashReport RecordedMemory",
        "fxframework.testing.readback": "ReadsBack reads_back",
    },
)
