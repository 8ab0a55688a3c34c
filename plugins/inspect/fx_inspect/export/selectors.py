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
"""Matches each character of a selector, with its backslash if it has one."""


def printable(selector: str) -> str:
    """Return a selector on one line, with escapes for unprintable characters."""
    if selector.isprintable():
        return selector
    return _CHARACTERS.sub(
        lambda found: found[0] if found[1].isprintable() else escape(found[1]), selector
    )


class SelectorExport(TreeExport):
    """Writes the selectors of all properties and of all empty nodes, one a line."""

    def _pieces(self, capture: Capture) -> Iterator[str]:
        """Yield the selectors in the order of the tree, without repeats."""
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
