"""What the author of a plugin imports: hooks, declared formats, descriptors, rules, helpers.

Modules are imported on first use, so that ``from fxframework.plugin import hookimpl`` is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fxframework import wire
from fxframework.kit.lazy import lazy_names

if TYPE_CHECKING:
    from fxframework.batch_exporter import exporter
    from fxframework.errors import FxError, UsageError, WriteRefusedError, refusal
    from fxframework.findings import Catalogue, Rule, Severity
    from fxframework.hookspecs import hookimpl
    from fxframework.kit.export import Export
    from fxframework.kit.gather import Gathered
    from fxframework.kit.omitted import omitted_values
    from fxframework.kit.pieces import Piece, PieceCapture
    from fxframework.model.capture import Capture
    from fxframework.model.schema import STANDARD_TABLES, Column
    from fxframework.model.table import Table
    from fxframework.registry import (
        Confidence,
        DeviceKind,
        Exporter,
        Option,
        Probe,
        Reader,
        StepKind,
        Writer,
        lazy,
        lazy_type,
    )

__all__ = [
    "STANDARD_TABLES", "Capture", "Catalogue", "Column", "Confidence", "DeviceKind", "Export",
    "Exporter", "FxError", "Gathered", "Option", "Piece", "PieceCapture", "Probe", "Reader", "Rule",
    "Severity", "StepKind", "Table", "UsageError", "WriteRefusedError", "Writer", "exporter",
    "hookimpl", "lazy", "lazy_type", "omitted_values", "refusal", "wire",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fxframework.batch_exporter": "exporter",
        "fxframework.errors": "FxError UsageError WriteRefusedError refusal",
        "fxframework.findings": "Catalogue Rule Severity",
        "fxframework.hookspecs": "hookimpl",
        "fxframework.kit.export": "Export",
        "fxframework.kit.gather": "Gathered",
        "fxframework.kit.omitted": "omitted_values",
        "fxframework.kit.pieces": "Piece PieceCapture",
        "fxframework.model.capture": "Capture",
        "fxframework.model.schema": "STANDARD_TABLES Column",
        "fxframework.model.table": "Table",
        "fxframework.registry": "Confidence DeviceKind Exporter Option Probe Reader StepKind "
        "Writer lazy lazy_type",
    },
)
