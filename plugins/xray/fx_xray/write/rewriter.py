"""Rewriter: writes records that were read, or their JSON; programs have recorders.

Records are written unchanged: the file header gives version and byte order, extents give the size
of buffers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from fx_xray.format import FORMS
from fx_xray.write.encoder import RecordEncoder
from fxframework.errors import UsageError
from fxframework.io.sink import Sink
from fxframework.kit.lossless import RecordRewriter
from fxframework.model.diagnostics import Diagnostics


def open_any_writer(
    form: str,
    sink: Sink,
    options: Mapping[str, Any],
    diagnostics: Diagnostics,  # noqa: ARG001 (this writer raises errors instead)
) -> RecordRewriter:
    """Open a writer of the records of a format.

    The option ``write_byte_order`` replaces the byte order of the header. Raises UsageError for an
    unknown one, and for options that do not apply to records.
    """
    for name in ("version", "buffer_size", "names"):
        if options.get(name):
            raise UsageError(
                f"{name} does not apply where records are written unchanged",
                remedy="rewrite the trace: `fxf convert IN OUT --since 0`"
                if name != "names"
                else "it applies to captures of other formats",
            )
    order = str(options.get("write_byte_order") or "")
    return RecordRewriter(sink, RecordEncoder(form, byte_order=order))


open_writer, open_basic_writer = (partial(open_any_writer, form) for form in FORMS)
