"""Contracts: test classes to subclass, for readers, writers, exporters, steps and devices.

    class TestMyReader(ReaderContract):
        plugin = "fx_mine.plugin"
        format = "mine"

        def samples(self):
            yield Sample("empty.mine", MAGIC)
            yield Sample("three.mine", Path("three.mine").read_bytes())

They are independent of formats, and need only the plugin's module, not an installed plugin.
"""

from __future__ import annotations

from fxframework.testing.contracts.base import Contract, open_bytes
from fxframework.testing.contracts.device import DeviceContract
from fxframework.testing.contracts.expectation import Expected, Sample, check_capture, check_golden
from fxframework.testing.contracts.exporter import ExporterContract
from fxframework.testing.contracts.reader import FOREIGN, ReaderContract
from fxframework.testing.contracts.step import StepContract
from fxframework.testing.contracts.writer import WriterContract

__all__ = [
    "FOREIGN",
    "Contract",
    "DeviceContract",
    "Expected",
    "ExporterContract",
    "ReaderContract",
    "Sample",
    "StepContract",
    "WriterContract",
    "check_capture",
    "check_golden",
    "open_bytes",
]
