"""The exporter `blobs`: the bytes of all blobs of one name, joined in the order of the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fxframework.errors import WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.registry import ExportSession

__all__ = ["open_blobs"]


def open_blobs(sink: Sink, options: Mapping[str, Any]) -> ExportSession:
    """Open the exporter `blobs`; ``options["name"]`` says which ones, empty for the only ones."""
    return _BlobExport(sink, str(options.get("name", "")))


class _BlobExport:
    """Writes payloads one behind the other, with nothing between them."""

    def __init__(self, sink: Sink, name: str) -> None:
        self._sink = sink
        self._name = name
        self._left_out = 0

    def write(self, capture: Capture) -> None:
        """Write the blobs of a capture.

        Raises WriteRefusedError where it has none of that name, or blobs of several names.
        """
        wanted = self._wanted(capture)
        for batch in capture.batches("blobs"):
            mine = batch.array("name") == wanted
            self._left_out += int(np.count_nonzero(~mine))
            for start, length in batch.array("data")[mine].tolist():
                self._sink.write(bytes(capture.source.read(start, length)))

    def _wanted(self, capture: Capture) -> int:
        """Code of the name."""
        codes: set[int] = set()
        for batch in capture.batches("blobs"):
            codes.update(np.unique(batch.array("name")).tolist())
        names = {capture.strings[code]: code for code in sorted(codes)}
        if self._name in names:
            return names[self._name]
        if len(names) == 1 and not self._name:
            return next(iter(names.values()))
        listed = ", ".join(repr(name) for name in list(names)[:8])
        if not names:
            what = "the trace has no blobs"
        elif self._name:
            what = f"the trace has no blobs named {self._name!r}; it has {listed}"
        else:
            what = f"the trace has blobs of several names: {listed}"
        raise WriteRefusedError(
            what, path=capture.name, remedy="choose the blobs of one name with -o name=NAME"
        )

    def close(self) -> Mapping[str, int]:
        """The blobs of other names."""
        return {"blobs of other names": self._left_out} if self._left_out else {}
