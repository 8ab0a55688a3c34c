"""fxframework: read, write, check and convert Fuchsia and LLVM telemetry.

``fxframework.open(path)`` gives a Capture: records, tables, diagnostics. Nothing heavy is
imported until it is used.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from fxframework.hookspecs import hookimpl

if TYPE_CHECKING:
    from fxframework.conversion import ConversionReport, SalvageReport
    from fxframework.dataset.batch import BatchReport, batch
    from fxframework.errors import FxError, Severity
    from fxframework.host import Host, open
    from fxframework.io.limits import Limits
    from fxframework.model.capture import Capture, Summary
    from fxframework.model.clock import Clock
    from fxframework.model.diagnostics import Diagnostic
    from fxframework.model.prediction import Prediction
    from fxframework.model.selection import Selection
    from fxframework.model.table import Table
    from fxframework.registry import Confidence, Exporter, Option, Probe, Reader, Reference, Writer
    from fxframework.verbs import convert, diff, predict, salvage, sql, verify

__version__ = "0.1.0"

if os.environ.get("FXF_NATIVE"):
    # Before anything imports a kernel.
    from fxframework.kernels import native

    native.install(os.environ["FXF_NATIVE"])

_HOMES = {
    "BatchReport": "fxframework.dataset.batch",
    "Capture": "fxframework.model.capture",
    "Clock": "fxframework.model.clock",
    "Confidence": "fxframework.registry",
    "ConversionReport": "fxframework.conversion",
    "Diagnostic": "fxframework.model.diagnostics",
    "Exporter": "fxframework.registry",
    "FxError": "fxframework.errors",
    "Host": "fxframework.host",
    "Limits": "fxframework.io.limits",
    "Option": "fxframework.registry",
    "Prediction": "fxframework.model.prediction",
    "Probe": "fxframework.registry",
    "Reader": "fxframework.registry",
    "Reference": "fxframework.registry",
    "SalvageReport": "fxframework.conversion",
    "Selection": "fxframework.model.selection",
    "Severity": "fxframework.errors",
    "Summary": "fxframework.model.capture",
    "Table": "fxframework.model.table",
    "Writer": "fxframework.registry",
    "batch": "fxframework.dataset.batch",
    "convert": "fxframework.verbs",
    "diff": "fxframework.verbs",
    "open": "fxframework.host",
    "predict": "fxframework.verbs",
    "salvage": "fxframework.verbs",
    "sql": "fxframework.verbs",
    "verify": "fxframework.verbs",
}

__all__ = [
    "BatchReport",
    "Capture",
    "Clock",
    "Confidence",
    "ConversionReport",
    "Diagnostic",
    "Exporter",
    "FxError",
    "Host",
    "Limits",
    "Option",
    "Prediction",
    "Probe",
    "Reader",
    "Reference",
    "SalvageReport",
    "Selection",
    "Severity",
    "Summary",
    "Table",
    "Writer",
    "__version__",
    "batch",
    "convert",
    "diff",
    "hookimpl",
    "open",
    "predict",
    "salvage",
    "sql",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    msg = f"module 'fxframework' has no attribute {name!r}"
    raise AttributeError(msg)
