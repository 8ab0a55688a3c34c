"""The exporter `dot`: the call graph of a capture in the language of Graphviz."""

from __future__ import annotations

from fxframework.analysis.graph import call_graph, dot
from fxframework.exporters.stacks import ASYNCHRONOUS, UNFINISHED, left_out, no_calls
from fxframework.kit.export import Export
from fxframework.model.capture import Capture

SHOWN = ("edge_label", "vertex_label", "edge_color", "vertex_color")
"""Options that select the figure to show."""


class DotExport(Export):
    """Writes the graph of one capture."""

    def write(self, capture: Capture) -> None:
        """Write the graph of a capture.

        Raises WriteRefusedError for a second capture, and for one without calls.
        """
        self._only_one_capture("a graph shows one capture")
        self._dropped += left_out(capture)
        graph = call_graph(capture, by=self._options["by"])
        if not graph.nodes:
            raise no_calls(capture)
        unfinished = int(graph.nodes.spreads.column("unfinished").sum())
        self._dropped.update({ASYNCHRONOUS: graph.asynchronous, UNFINISHED: unfinished})
        for line in dot(graph, **{name: self._options[name] for name in SHOWN}):
            self._sink.write(line.encode("utf-8", "replace") + b"\n")
