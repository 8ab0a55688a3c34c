"""Record writer: what a trace holds, record by record, as a file.

Records are written as they are: a file header says the version and the byte order, extents say
what a buffer holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fx_xray.write.encoder import RecordEncoder
from fxframework.errors import UsageError
from fxframework.io.sink import Sink
from fxframework.kit.lossless import RecordRewriter
from fxframework.model.diagnostics import Diagnostics

__all__ = ["open_basic_writer", "open_writer"]


def open_writer(
    sink: Sink,
    options: Mapping[str, Any],
    diagnostics: Diagnostics,  # noqa: ARG001 (records say all themselves)
) -> RecordRewriter:
    """A writer of the flight data recorder's records.

    Of the options, ``write_byte_order`` counts, where it is not empty, instead of what the header
    says.
    Raises UsageError for one that is not defined, and for options that are not for records.
    """
    return _open(sink, "xray", options)


def open_basic_writer(
    sink: Sink,
    options: Mapping[str, Any],
    diagnostics: Diagnostics,  # noqa: ARG001 (as above)
) -> RecordRewriter:
    """A writer of basic mode's records; its options are as those of ``open_writer``."""
    return _open(sink, "xray-basic", options)


def _open(sink: Sink, form: str, options: Mapping[str, Any]) -> RecordRewriter:
    for name in ("version", "buffer_size", "names"):
        if options.get(name):
            raise UsageError(
                f"{name} does not act where records are written as they are",
                remedy="write the trace again: `fxf convert IN OUT --since 0`"
                if name != "names"
                else "it is for captures of other formats",
            )
    order = str(options.get("write_byte_order") or "")
    return RecordRewriter(sink, RecordEncoder(form, byte_order=order))
