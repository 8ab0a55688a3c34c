"""The call graph of a capture in the language of Graphviz."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from fxframework.analysis.figures import check_figure
from fxframework.analysis.graph import call_graph, dot
from fxframework.errors import WriteRefusedError
from fxframework.exporters.stacks import ASYNCHRONOUS, UNFINISHED, left_out, no_calls
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.registry import ExportSession

__all__ = ["SHOWN", "open_export"]

SHOWN = ("edge_label", "vertex_label", "edge_color", "vertex_color")
"""Options that say which figure is shown there."""


def open_export(sink: Sink, options: Mapping[str, Any]) -> ExportSession:
    """The exporter `dot`. Raises UsageError for an unknown figure."""
    figures = {name: check_figure(options[name], f"-o {name}") for name in SHOWN}
    return _DotExport(sink, options["by"], figures)


class _DotExport:
    """Writes the graph of one capture."""

    def __init__(self, sink: Sink, by: str, figures: Mapping[str, str]) -> None:
        self._sink = sink
        self._by = by
        self._figures = figures
        self._dropped: Counter[str] = Counter()
        self._used = False

    def write(self, capture: Capture) -> None:
        """Write the graph of a capture.

        Raises WriteRefusedError for a second one, and where there are no calls.
        """
        if self._used:
            raise WriteRefusedError(
                "a graph is that of one capture", remedy="convert the inputs one by one"
            )
        self._used = True
        self._dropped += left_out(capture)
        graph = call_graph(capture, by=self._by)
        if not graph.nodes:
            raise no_calls(capture)
        unfinished = sum(node.spread.unfinished for node in graph.nodes.values())
        for name, count in ((ASYNCHRONOUS, graph.asynchronous), (UNFINISHED, unfinished)):
            if count:
                self._dropped[name] += count
        for line in dot(graph, **self._figures):
            self._sink.write(line.encode("utf-8", "replace") + b"\n")

    def close(self) -> Mapping[str, int]:
        """What has no place in a graph, by name, with counts."""
        return dict(self._dropped)
