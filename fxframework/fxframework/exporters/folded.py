"""The exporter `folded`: a line per stack, ``thread;caller;callee NUMBER``, for flamegraph.pl.

The number is the last call's own time: flamegraph.pl adds the times of its callees. (llvm-xray
writes times that include callees, which are then counted twice.)
"""

from __future__ import annotations

import numpy as np

from fxframework.exporters.stacks import ON_ONE_LINE, stacks_of
from fxframework.kernels.buffers import view
from fxframework.kit.export import Export
from fxframework.model.capture import Capture

_SPECIAL = ON_ONE_LINE | {ord(";"): ":"}
"""Replacements for separators and for all characters that may end a line."""
CHUNK = 1 << 16
"""Characters written at a time."""


class FoldedExport(Export):
    """Writes the stacks of captures one by one."""

    def write(self, capture: Capture) -> None:
        """Write the stacks of a capture. Raises WriteRefusedError if it has no calls."""
        tree = stacks_of(capture, self._options, self._dropped)
        weight = self._options["weight"]
        numbers = tree.count if weight == "count" else tree.own
        if weight == "ns":
            numbers = tree.in_ns(numbers)
        values = view(numbers, np.int64)
        # Without threads, all have one root, which is not written.
        first_level = 0 if self._options["thread"] else 1
        path: list[str] = []
        lines: list[str] = []
        letters = 0
        for node, depth in tree.walk():
            del path[depth:]
            path.append(tree.name(node).translate(_SPECIAL) or "(no name)")
            if depth and values[node]:
                line = f"{';'.join(path[first_level:])} {values[node]}\n"
                lines.append(line)
                letters += len(line)
                if letters > CHUNK:
                    self._sink.write("".join(lines).encode("utf-8", "replace"))
                    lines.clear()
                    letters = 0
        self._sink.write("".join(lines).encode("utf-8", "replace"))
