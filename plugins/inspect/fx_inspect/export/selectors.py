"""The exporter `selectors`: the selectors of a capture, one a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from fx_inspect.export.base import LINKS, TreeExport
from fx_inspect.export.presentation import escape
from fx_inspect.read.entries import entries
from fxframework.model.capture import Capture

__all__ = ["SelectorExport", "printable"]

_CHARACTERS: Final = re.compile(r"\\?(.)", re.DOTALL)
"""Each character of a selector, with the backslash before it if it has one."""


def printable(selector: str) -> str:
    """A selector on one line: characters that are not printable become escapes."""
    if selector.isprintable():
        return selector
    return _CHARACTERS.sub(
        lambda found: found[0] if found[1].isprintable() else escape(found[1]), selector
    )


class SelectorExport(TreeExport):
    """Writes the selector of each property, and of each node that has nothing, a line each."""

    def _pieces(self, capture: Capture) -> Iterator[str]:
        """Each in the order of the tree; those that are the same once."""
        seen: set[str] = set()
        empty = None
        for path, kind, _, _ in entries(capture):
            if kind.endswith(" link"):
                self._dropped[LINKS] += 1
                continue
            if empty is not None and not path.startswith((f"{empty}/", f"{empty}:")):
                yield self._once(empty, seen)
            empty = path if kind == "node" else None
            if empty is None:
                yield self._once(path, seen)
        if empty is not None:
            yield self._once(empty, seen)

    @staticmethod
    def _once(selector: str, seen: set[str]) -> str:
        if selector in seen:
            return ""
        seen.add(selector)
        return f"{printable(selector)}\n"
