"""The toolkit for plugins: bases and helpers of readers, writers, exporters, steps and devices.

What is exported here is for everybody's plugins. Other names of the modules are shared by the
framework and the plugins that come with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fxframework.kit.lazy import lazy_names

if TYPE_CHECKING:
    from fxframework.kit.difference import (
        Difference,
        EntryDifference,
        RecordDifference,
        ShownRecord,
        compare,
    )
    from fxframework.kit.explain import Explainer, check_offset
    from fxframework.kit.export import Export
    from fxframework.kit.gather import Gathered
    from fxframework.kit.json_fields import JsonFields, show_double, show_text
    from fxframework.kit.lossless import (
        DamagedRecord,
        LosslessRecord,
        RecordRewriter,
        record_of_json,
    )
    from fxframework.kit.omitted import omitted_columns, omitted_values
    from fxframework.kit.pieces import Piece, PieceCapture, Row
    from fxframework.kit.salvage import Loss, salvage_records
    from fxframework.kit.scanned import (
        Batch,
        Columns,
        FirstPass,
        Note,
        Notes,
        ScannedCapture,
        Timeline,
        sketch,
        value_columns,
    )
    from fxframework.kit.steps import Duration, Image, Outcome, Run, parameter
    from fxframework.kit.workload import (
        ActionContext,
        Argument,
        ArgumentType,
        CommonAction,
        GiveWay,
        Loop,
        Migrate,
        Signal,
        Sleep,
        ThreadParameters,
        Wait,
        Work,
        replay,
        start,
    )

__all__ = [
    "ActionContext",
    "Argument",
    "ArgumentType",
    "Batch",
    "Columns",
    "CommonAction",
    "DamagedRecord",
    "Difference",
    "Duration",
    "EntryDifference",
    "Explainer",
    "Export",
    "FirstPass",
    "Gathered",
    "GiveWay",
    "Image",
    "JsonFields",
    "Loop",
    "Loss",
    "LosslessRecord",
    "Migrate",
    "Note",
    "Notes",
    "Outcome",
    "Piece",
    "PieceCapture",
    "RecordDifference",
    "RecordRewriter",
    "Row",
    "Run",
    "ScannedCapture",
    "ShownRecord",
    "Signal",
    "Sleep",
    "ThreadParameters",
    "Timeline",
    "Wait",
    "Work",
    "check_offset",
    "compare",
    "omitted_columns",
    "omitted_values",
    "parameter",
    "record_of_json",
    "replay",
    "salvage_records",
    "show_double",
    "show_text",
    "sketch",
    "start",
    "value_columns",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fxframework.kit.difference": "Difference EntryDifference RecordDifference ShownRecord "
        "compare",
        "fxframework.kit.explain": "Explainer check_offset",
        "fxframework.kit.export": "Export",
        "fxframework.kit.gather": "Gathered",
        "fxframework.kit.json_fields": "JsonFields show_double show_text",
        "fxframework.kit.lossless": "DamagedRecord LosslessRecord RecordRewriter record_of_json",
        "fxframework.kit.omitted": "omitted_columns omitted_values",
        "fxframework.kit.pieces": "Piece PieceCapture Row",
        "fxframework.kit.salvage": "Loss salvage_records",
        "fxframework.kit.scanned": "Columns FirstPass Note Notes ScannedCapture Batch Timeline "
        "sketch value_columns",
        "fxframework.kit.steps": "Duration Image Outcome Run parameter",
        "fxframework.kit.workload": "ActionContext Argument ArgumentType CommonAction GiveWay Loop "
        "Migrate Signal Sleep ThreadParameters Wait Work replay start",
    },
)
