"""Writer: the records of a trace of JSON, a call at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fx_chrome_json.layout import KINDS, STRUCTURE
from fx_chrome_json.rules import RULES
from fxframework.io.sink import Sink
from fxframework.model.diagnostics import Diagnostics

__all__ = ["RecordsWriter"]

_KINDS = frozenset((*KINDS.values(), *STRUCTURE))


class RecordsWriter:
    """Writes the text, or the bytes, of each record."""

    def __init__(self, sink: Sink, options: Mapping[str, Any], diagnostics: Diagnostics) -> None:
        del options, diagnostics
        self._sink = sink

    def write(self, record: Any) -> None:
        """Write a record, or its JSON. Raises WriteRefusedError (CHJ0301), nothing written."""
        shown = record if isinstance(record, Mapping) else record.to_json()
        kind, text, raw = (shown.get(key) for key in ("record", "text", "raw"))
        if kind not in _KINDS or isinstance(text, str) == isinstance(raw, str):
            raise RULES.refusal("CHJ0301", f"a record of kind {kind!r} needs a text, or raw bytes")
        try:
            data = text.encode() if isinstance(text, str) else bytes.fromhex(str(raw))
        except ValueError as error:
            raise RULES.refusal("CHJ0301", f"the record has no valid bytes: {error}") from error
        self._sink.write(data)

    def close(self) -> None:
        """Nothing is held back."""
