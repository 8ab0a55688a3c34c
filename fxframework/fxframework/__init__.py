"""fxframework: read, write, check and convert Fuchsia and LLVM telemetry.

``fxframework.open(path)`` returns a Capture, which has records, tables and diagnostics. Modules are
imported on first use.
"""

from __future__ import annotations

from fxframework.kit.lazy import lazy_names

TYPE_CHECKING = False  # imports nothing: until `fxf` handles Ctrl-C, it must not take time
if TYPE_CHECKING:
    from fxframework.conversion import ConversionReport, SalvageReport
    from fxframework.dataset.batch import BatchReport, batch
    from fxframework.errors import FxError, Severity
    from fxframework.hookspecs import hookimpl
    from fxframework.host import Host, open
    from fxframework.io.limits import Limits
    from fxframework.model.capture import Capture, Summary
    from fxframework.model.clock import Clock
    from fxframework.model.diagnostics import Diagnostic
    from fxframework.model.selection import Selection
    from fxframework.model.table import Table
    from fxframework.registry import Confidence, Exporter, Option, Probe, Reader, Writer
    from fxframework.verbs import compare, convert, diff, salvage, split, sql, verify, why

__version__ = "0.1.0"

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
    "Probe",
    "Reader",
    "SalvageReport",
    "Selection",
    "Severity",
    "Summary",
    "Table",
    "Writer",
    "__version__",
    "batch",
    "compare",
    "convert",
    "diff",
    "hookimpl",
    "open",
    "salvage",
    "split",
    "sql",
    "verify",
    "why",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fxframework.conversion": "ConversionReport SalvageReport",
        "fxframework.dataset.batch": "BatchReport batch",
        "fxframework.errors": "FxError Severity",
        "fxframework.hookspecs": "hookimpl",
        "fxframework.host": "Host open",
        "fxframework.io.limits": "Limits",
        "fxframework.model.capture": "Capture Summary",
        "fxframework.model.clock": "Clock",
        "fxframework.model.diagnostics": "Diagnostic",
        "fxframework.model.selection": "Selection",
        "fxframework.model.table": "Table",
        "fxframework.registry": "Confidence Exporter Option Probe Reader Writer",
        "fxframework.verbs": "compare convert diff salvage split sql verify why",
    },
)
