"""The exporters `tree`, `text` and `selectors`: the tree as iquery prints it, and its selectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from fx_inspect.export.base import LINKS, TreeExport, names_of
from fx_inspect.export.presentation import (
    LongTexts,
    Shown,
    Texts,
    debugged,
    escape,
    json_truth,
    plain,
)
from fx_inspect.read.entries import entries
from fx_inspect.read.histograms import RANGES, Bound, Histogram
from fx_inspect.read.walk import Slots, Values, walk
from fxframework.io.sink import Sink
from fxframework.kit.json_fields import special_double
from fxframework.kit.memo import strings_of
from fxframework.kit.shown import rust_double
from fxframework.model.capture import Capture
from fxframework.model.table import Table
from fxframework.registry import ExportSession

ROUNDED: Final = "digits of doubles, behind the sixth"
NAMELESS: Final = "entries with an empty name, which selectors cannot have"
DEEP: Final = "indentation of nodes, beyond a depth of 500"
INDENT: Final = "  "
MARGIN: Final = "\0"
"""Placeholder for the indentation of a property, which no rendered text contains."""
DEEPEST: Final = 500
BROKEN: Final = 100
"""Length in bytes from which a list of strings takes one line per string."""
ROW: Final = 16
"""Bytes per line of a hex dump."""


def _hex_rows(data: bytes) -> str:
    """Return the lines of a hex dump."""
    rows = []
    for start in range(0, len(data), ROW):
        row_bytes = data[start : start + ROW]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row_bytes)
        rows.append(f"{start:08x}\t{row_bytes.hex(' '):<{3 * ROW - 1}} \t{letters}\n")
    return "".join(rows).strip()


def _bound(type: str) -> Callable[[Bound], str]:
    """Return the function that formats bounds of buckets."""
    if type == "double":
        return lambda value: rust_double(float(value))
    least, greatest = RANGES[type]
    edges = {greatest: "<max>"}
    if least:  # 0 is shown as 0
        edges[least] = "<min>"
    return lambda value: edges.get(value) or str(value)


def open_tree(sink: Sink, options: Mapping[str, Any]) -> ExportSession:
    """Open a session of the exporters `tree` and `text`."""
    if options.get("selectors"):
        return SelectorExport(sink, options)
    return TreeTextExport(sink, options)


class TreeTextExport(TreeExport):
    """Writes the lines that iquery prints."""

    def _pieces(self, capture: Capture) -> Iterator[str]:
        """Yield the metadata, then a line for each node and property."""
        yield self._head(capture)
        long = self._long_texts(capture, 4)
        strings = strings_of(capture.strings)
        names = Texts(strings, lambda data: plain(long.of(data)))
        texts = Texts(strings, long.of)
        is_root = True
        for node in walk(capture, self._render(long)):
            if is_root:
                yield "  payload:\n"
                is_root = False
            if node.depth > DEEPEST:
                self._dropped[DEEP] += 1
            indent = INDENT * (min(node.depth, DEEPEST) + 2)
            yield f"{indent}{names[node.name]}:\n"
            for code, value in node.properties:
                if isinstance(value, str):
                    value_text = value
                else:
                    value_text = _strings([texts[slot] for slot in value])
                if MARGIN in value_text:
                    value_text = value_text.replace(MARGIN, indent + INDENT)
                yield f"{indent}{INDENT}{names[code]}{value_text}\n"
            for link in node.links:
                self._count_link(link)
        if is_root:
            yield "  payload: null\n"

    def _head(self, capture: Capture) -> str:
        moniker, name = names_of(capture, self._options)
        lines = [
            f"{plain(moniker)}:",
            "  metadata:",
            f"    name = {plain(name)}",
            f"    component_url = {plain(self._options['component_url']) or 'null'}",
            f"    timestamp = {self._options['timestamp']}",
        ]
        if self._options["escrowed"]:
            lines.append("    escrowed = true")
        return "\n".join([*lines, ""])

    def _render(self, long: LongTexts) -> Callable[[Table, Slots], list[tuple[int, Shown]]]:
        """Return the function that renders properties, each as its name's code and its value.

        Strings of an array stay codes. MARGIN stands for the indentation of the property.
        """
        values: Values[Shown] = Values(
            integer=lambda value: f" = {value}",
            double=self._double,
            truth=lambda value: f" = {json_truth(value)}",
            string=lambda data: f" = {plain(long.of(data))}",
            data=lambda data: f" = Binary:\n{_hex_rows(data)}",
            array=_array,
            histogram=_histogram,
            strings=lambda codes: codes,
        )
        return values.named

    def _double(self, value: float) -> str:
        if special_double(value):
            return f" = {rust_double(value)}"
        rounded = f"{value:.6f}"
        self._dropped[ROUNDED] += float(rounded) != value
        return f" = {rounded}"


def _array(type: str, slots: Sequence[Bound], _format: int) -> str:
    if type == "double":
        return f" = [{', '.join(map(rust_double, slots))}]"
    return f" = {list(slots)}"


def _histogram(histogram: Histogram) -> str:
    show = _bound(histogram.type)
    show_count: Callable[[Any], str] = str
    if histogram.type == "double":
        show_count = rust_double
    buckets = []
    for (least, greatest), count in zip(histogram.bounds(), histogram.counts, strict=True):
        if count > 0:
            buckets.append(f"[{show(least)},{show(greatest)})={show_count(count)}")
    members = {"type": histogram.kind, "size": histogram.size, "buckets": f"[{', '.join(buckets)}]"}
    lines = [f"\n{MARGIN}{INDENT}{name} = {value}" for name, value in members.items()]
    return ":" + "".join(lines)


def _strings(texts: Sequence[str]) -> str:
    if 2 + sum(len(text.encode()) + 2 for text in texts) < BROKEN:
        return f" = [{', '.join(map(debugged, texts))}]"
    lines = "".join(f'\n{MARGIN}{INDENT}"{plain(text)}",' for text in texts)
    return f" = [{lines}\n{MARGIN}]"


_CHARACTERS: Final = re.compile(r"\\?(.)", re.DOTALL)
"""Matches each character of a selector, with its backslash if it has one."""
_NAMES: Final = re.compile(r"(?:[^\\/:]|\\.)+(?:[/:](?:[^\\/:]|\\.)+)*", re.DOTALL)
"""Matches a selector of names that are not empty."""


def printable(selector: str) -> str:
    """Return a selector on one line, with escapes for unprintable characters."""
    if selector.isprintable():
        return selector

    def shown(match: re.Match[str]) -> str:
        character = match[1]
        return match[0] if character.isprintable() else escape(character)

    return _CHARACTERS.sub(shown, selector)


class SelectorExport(TreeExport):
    """Writes the selectors of all properties and of all empty nodes, one a line."""

    def _pieces(self, capture: Capture) -> Iterator[str]:
        """Yield the selectors in the order of the tree, without repeats."""
        written: set[str] = set()
        empty_node = None
        for path, kind, _, _ in entries(capture):
            if kind.endswith(" link"):
                self._dropped[LINKS] += 1
                continue
            # A node without a child or a property behind it is empty.
            if empty_node is not None and not path.startswith((f"{empty_node}/", f"{empty_node}:")):
                yield self._once(empty_node, written)
            empty_node = None
            if kind == "node":
                empty_node = path
            else:
                yield self._once(path, written)
        if empty_node is not None:
            yield self._once(empty_node, written)

    def _once(self, selector: str, written: set[str]) -> str:
        if selector in written:
            return ""
        if not _NAMES.fullmatch(selector):
            self._dropped[NAMELESS] += 1
            return ""
        written.add(selector)
        return f"{printable(selector)}\n"
