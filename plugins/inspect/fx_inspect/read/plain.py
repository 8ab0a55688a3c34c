"""Plain: a tree as Python's own dicts, lists, numbers and strings."""

from __future__ import annotations

from typing import Any

from fx_inspect.read.walk import EXPANDED, Values, texts_of, walk
from fxframework.model.capture import Capture

__all__ = ["plain_tree"]


def plain_tree(capture: Capture) -> dict[str, Any]:
    """Return the nodes of a capture as dicts of their properties and children (``Capture.tree``).

    Values are int, float, bool, str, bytes and lists of them. A histogram is a dict of its
    parameters and of all ``counts``, from underflow to overflow; a link that was not followed is a
    dict of its ``link`` and ``disposition``. Of several equal names in one node, the second is
    ``name (2)``. Bytes that are not UTF-8 become U+FFFD in names and strings.
    """
    texts = texts_of(capture.strings, str)
    values: Values[Any] = Values(
        integer=int,
        double=float,
        truth=bool,
        string=lambda data: data.decode("utf-8", "replace"),
        data=bytes,
        array=lambda _type, slots, _format: list(slots),
        histogram=lambda one: {**one.parameters(), "counts": list(one.counts)},
        strings=lambda codes: [texts[code] for code in codes],
    )
    top = _Node()
    open_nodes = [top]
    for node in walk(capture, values.named):
        del open_nodes[node.depth + 1 :]
        made = _Node()
        open_nodes[-1].put(texts[node.name], made.values)
        open_nodes.append(made)
        for name, value in node.properties:
            made.put(texts[name], value)
        for link in node.links:
            if link.state != EXPANDED:
                shown = {"link": texts[link.content], "disposition": link.disposition}
                made.put(texts[link.name], shown)
    return top.values


class _Node:
    """The values of a node by name, and how often each name occurred."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._times: dict[str, int] = {}

    def put(self, name: str, value: Any) -> None:
        """Add a value under its name, or ``name (2)`` and so on where that is taken."""
        key = name
        while key in self.values:
            self._times[name] = self._times.get(name, 1) + 1
            key = f"{name} ({self._times[name]})"
        self.values[key] = value
