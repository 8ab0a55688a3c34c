"""The exporter `blobs`: the bytes of all blobs with one name, concatenated in file order."""

from __future__ import annotations

import numpy as np

from fxframework.errors import WriteRefusedError
from fxframework.kit.export import Export
from fxframework.model.capture import Capture


class BlobExport(Export):
    """Writes payloads one after another, without separators.

    The option ``name`` selects the blobs; None if all have the same name.
    """

    def write(self, capture: Capture) -> None:
        """Write the blobs of a capture.

        Raises WriteRefusedError if no blob has that name, or, without a name, if there are several.
        """
        wanted = self._wanted(capture)
        for batch in capture.batches("blobs"):
            mine = batch.array("name") == wanted
            self._dropped["blobs of other names"] += int(np.count_nonzero(~mine))
            for start, length in batch.array("data")[mine].tolist():
                self._sink.write(bytes(capture.source.read(start, length)))

    def _wanted(self, capture: Capture) -> int:
        """Return the code of the name."""
        codes: set[int] = set()
        for batch in capture.batches("blobs"):
            codes.update(np.unique(batch.array("name")).tolist())
        names = {capture.strings[code]: code for code in sorted(codes)}
        name = self._options.get("name")
        if name in names:
            return names[name]
        if len(names) == 1 and name is None:
            return next(iter(names.values()))
        first_names = list(names)[:8]
        listed = ", ".join(map(repr, first_names))
        if not names:
            what = "the trace has no blobs"
        elif name is not None:
            what = f"the trace has no blobs named {name!r}; it has {listed}"
        else:
            what = f"the trace has blobs of several names: {listed}"
        raise WriteRefusedError(
            what, path=capture.name, remedy="choose the blobs of one name with -o name=NAME"
        )
