"""Exporters of Inspect: the tree as iquery prints it, its JSON, ours, and a series of snapshots."""

from __future__ import annotations

import abc
import base64
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

import orjson

from fx_inspect.export.presentation import (
    ARRAYS,
    EXPANDED,
    NOT_UTF8,
    Link,
    Names,
    Placed,
    Slots,
    Values,
    decoded,
    entries,
    generation,
    nothing_to_write,
    quoted,
    rust_double,
    special_double,
    unescaped,
    walk,
)
from fx_inspect.read.histograms import RANGES, Bound, Histogram
from fx_inspect.read.tables import BYTES, DOUBLE, FORMATS, STRING, STRING_ARRAY, TYPES
from fxframework.errors import WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.kit.json_fields import CANONICAL_NAN, bits_of
from fxframework.model.capture import Capture
from fxframework.model.table import Table
from fxframework.registry import ExportSession

__all__ = ["open_json", "open_selectors", "open_series", "open_tree", "open_tree_json"]

PIECES: Final = 1 << 12
"""Pieces of text that are gathered before they are written."""
LINKS: Final = "links that are not expanded"
SAME_NAME: Final = "properties and children of a name that another of the same node has"
SPECIAL: Final = "doubles that JSON does not have (NaN, infinity)"
ROUNDED: Final = "digits of doubles, behind the sixth"
DEEP: Final = "indentation of nodes, beyond a depth of 500"
PAYLOADS: Final = "bits of NaN"
UNORDERED: Final = "snapshots older than the one before, by generation"


def open_tree(sink: Sink, options: Mapping[str, Any]) -> ExportSession:
    """The exporters `tree` and `text`."""
    if options.get("selectors"):
        return open_selectors(sink, options)
    return _TreeExport(sink, options)


def open_json(sink: Sink, options: Mapping[str, Any]) -> ExportSession:
    """The exporter `json`."""
    return _JsonExport(sink, options)


def open_tree_json(sink: Sink, options: Mapping[str, Any]) -> ExportSession:
    """The exporter `tree-json`."""
    return _TreeJsonExport(sink, options)


def open_series(sink: Sink, options: Mapping[str, Any]) -> ExportSession:
    """The exporter `series`."""
    return _SeriesExport(sink, options)


def open_selectors(sink: Sink, options: Mapping[str, Any]) -> ExportSession:
    """The exporter `selectors`."""
    del options
    return _SelectorExport(sink)


class _Export(abc.ABC):
    """Writes the pieces that are made of each capture."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._dropped: Counter[str] = Counter()

    def write(self, capture: Capture) -> None:
        """Write one capture. Raises WriteRefusedError where it has no nodes."""
        some: list[str] = []
        for piece in self._pieces(capture):
            some.append(piece)
            if len(some) >= PIECES:
                self._sink.write("".join(some).encode())
                some.clear()
        self._sink.write("".join(some).encode())

    def close(self) -> Mapping[str, int]:
        """What was left out, by name."""
        return {what: count for what, count in self._dropped.items() if count > 0}

    @abc.abstractmethod
    def _pieces(self, capture: Capture) -> Iterator[str]: ...

    def _count_links(self, links: Sequence[Link], states: Mapping[int, str]) -> None:
        self._dropped[LINKS] += sum(states[link.state] != EXPANDED for link in links)


def _named(capture: Capture, options: Mapping[str, Any]) -> tuple[str, str]:
    """The moniker of a capture, and the name of its tree: its file's, unless they are given."""
    name = PurePath(capture.source.suffix_name).name
    return options["moniker"] or name.partition(".")[0] or name, options["name"] or name


# --- Text ----------------------------------------------------------------------------------------

INDENT: Final = "  "
MARGIN: Final = "\0"
"""Stands for the indentation of a property; no text that is shown holds it."""
DEEPEST: Final = 500
BROKEN: Final = 100
"""Bytes of a list of strings from which on each has a line of its own."""
ROW: Final = 16
"""Bytes of a line of a hex dump."""


def plain(text: str) -> str:
    """The text as it is, or with escapes where it would break the line or hide in it."""
    if not text or text.isprintable():
        return text
    return "".join(each if each.isprintable() else _debug(each) for each in text)


def _debug(character: str) -> str:
    """A character as Rust's Debug escapes it."""
    short = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"}
    return short.get(character) or f"\\u{{{ord(character):x}}}"


def debugged(text: str) -> str:
    """The text as Rust's Debug has it, in quotes."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain(inner)}"'


def _hex_rows(data: bytes) -> str:
    """Bytes as lines of a hex dump."""
    rows = []
    for at in range(0, len(data), ROW):
        piece = data[at : at + ROW]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        rows.append(f"{at:08x}\t{piece.hex(' '):<{3 * ROW - 1}} \t{letters}\n")
    return "".join(rows).strip()


def _bound(type: str) -> Callable[[Bound], str]:
    """How bounds of buckets are shown."""
    if type == "double":
        return lambda value: rust_double(float(value))
    least, most = RANGES[type]
    edges = {most: "<max>"} | ({least: "<min>"} if least else {})
    return lambda value: edges.get(value) or str(value)


class _TreeExport(_Export):
    """Writes the lines that iquery prints."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink)
        self._options = options

    def _pieces(self, capture: Capture) -> Iterator[str]:
        """The metadata, and then a line for each node and property."""
        yield self._head(capture)
        names: Names[str] = Names(capture.strings, plain, self._dropped)
        states: Names[str] = Names(capture.strings, str)
        root = True
        for node in walk(capture, self._render(capture, names)):
            if root:
                yield "  payload:\n"
                root = False
            if node.depth > DEEPEST:
                self._dropped[DEEP] += 1
            indent = INDENT * (min(node.depth, DEEPEST) + 2)
            yield f"{indent}{names[node.name]}:\n"
            for before, behind in node.properties:
                shown = behind.replace(MARGIN, indent + INDENT) if MARGIN in behind else behind
                yield f"{indent}{INDENT}{before}{shown}\n"
            if node.links:
                self._count_links(node.links, states)
        if root:
            yield "  payload: null\n"

    def _head(self, capture: Capture) -> str:
        moniker, name = _named(capture, self._options)
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

    def _render(
        self, capture: Capture, names: Names[str]
    ) -> Callable[[Table, Slots], list[tuple[str, str]]]:
        """What makes of each property what stands before its value, and the value.

        In the value, MARGIN stands for the indentation of the property.
        """
        texts: Names[str] = Names(capture.strings, str, self._dropped)
        values: Values[str] = Values(
            integer=lambda value: f" = {value}",
            double=self._double,
            truth=lambda value: " = true" if value else " = false",
            string=lambda data: f" = {plain(decoded(data, self._dropped))}",
            data=lambda data: f" = Binary:\n{_hex_rows(data)}",
            array=_array,
            histogram=_histogram,
            strings=lambda codes: _strings([texts[code] for code in codes]),
        )

        def render(batch: Table, slots: Slots) -> list[tuple[str, str]]:
            codes = batch.array("name").tolist()
            shown = values.of(batch, slots)
            return [(names[code], value) for code, value in zip(codes, shown, strict=True)]

        return render

    def _double(self, value: float) -> str:
        if special_double(value):
            return f" = {rust_double(value)}"
        shown = f"{value:.6f}"
        self._dropped[ROUNDED] += float(shown) != value
        return f" = {shown}"


def _array(type: str, slots: Sequence[Bound], _format: int) -> str:
    if type == "double":
        return f" = [{', '.join(map(rust_double, slots))}]"
    return f" = {list(slots)}"


def _histogram(one: Histogram) -> str:
    show = _bound(one.type)
    count: Callable[[Any], str] = rust_double if one.type == "double" else str
    buckets = ", ".join(
        f"[{show(least)},{show(most)})={count(value)}"
        for (least, most), value in zip(one.bounds(), one.counts, strict=True)
        if value > 0
    )
    lines = [f"type = {one.kind}", f"size = {one.size}", f"buckets = [{buckets}]"]
    return "".join([":", *(f"\n{MARGIN}{INDENT}{line}" for line in lines)])


def _strings(texts: Sequence[str]) -> str:
    if 2 + sum(len(text.encode()) + 2 for text in texts) < BROKEN:
        return f" = [{', '.join(map(debugged, texts))}]"
    lines = "".join(f'\n{MARGIN}{INDENT}"{plain(text)}",' for text in texts)
    return f" = [{lines}\n{MARGIN}]"


# --- Numbers in JSON -----------------------------------------------------------------------------


def numbers(values: Sequence[Bound]) -> str:
    """An array of numbers as JSON; the empty text where one of them is a double JSON lacks."""
    shown = orjson.dumps(values).decode()
    return "" if "null" in shown else shown


# --- JSON of iquery and ffx ----------------------------------------------------------------------

LARGEST: Final = "1.7976931348623157e308"


class _JsonExport(_Export):
    """Writes an array of objects, one for each capture, as `ffx inspect show` gives it."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink)
        self._options = options
        self._begun = False

    def write(self, capture: Capture) -> None:
        """Write one capture."""
        self._sink.write(b",\n" if self._begun else b"[")
        self._begun = True
        super().write(capture)

    def close(self) -> Mapping[str, int]:
        """End the array; gives what was left out, by name."""
        self._sink.write(b"]\n" if self._begun else b"[]\n")
        return super().close()

    def _pieces(self, capture: Capture) -> Iterator[str]:
        """The metadata, and the tree."""
        moniker, name = _named(capture, self._options)
        metadata: dict[str, Any] = {
            "name": name,
            "component_url": self._options["component_url"],
            "timestamp": self._options["timestamp"],
        }
        if self._options["escrowed"]:
            metadata["escrowed"] = True
        yield (
            f'{{"data_source":"Inspect","metadata":{orjson.dumps(metadata).decode()},'
            f'"moniker":{quoted(moniker)},"payload":'
        )
        names: Names[str] = Names(capture.strings, quoted, self._dropped)
        states: Names[str] = Names(capture.strings, str)
        depth = -1
        inside: list[set[int]] = []
        for node in walk(capture, self._render(names)):
            closing = "}" * (depth - node.depth + 1)
            keys = [key for key, _ in node.properties]
            self._count_same(inside, node, keys)
            members = ",".join([f"{names[key]}:{value}" for key, value in node.properties])
            # Behind a sibling or a property comes a comma, behind an opened node none.
            comma = "," if closing or (depth >= 0 and self._filled) else ""
            self._filled = bool(members)
            yield f"{closing}{comma}{'' if depth >= 0 else '{'}{names[node.name]}:{{{members}"
            depth = node.depth
            if node.links:
                self._count_links(node.links, states)
        yield f'{"}" * (depth + 2)},"version":1}}' if depth >= 0 else 'null,"version":1}'

    _filled = False

    def _count_same(self, inside: list[set[int]], node: Placed[Any], keys: list[int]) -> None:
        """Count members of an object that have the name of another."""
        del inside[node.depth :]
        if inside:
            self._dropped[SAME_NAME] += node.name in inside[-1]
            inside[-1].add(node.name)
        mine = set(keys)
        self._dropped[SAME_NAME] += len(keys) - len(mine)
        inside.append(mine)

    def _render(self, names: Names[str]) -> Callable[[Table, Slots], list[tuple[int, str]]]:
        values: Values[str] = Values(
            integer=str,
            double=self._double,
            truth=lambda value: "true" if value else "false",
            string=lambda data: quoted(decoded(data, self._dropped)),
            data=lambda data: f'"b64:{base64.b64encode(data).decode()}"',
            array=lambda _type, slots, _format: self._numbers(slots),
            histogram=self._histogram,
            strings=lambda codes: f"[{','.join([names[code] for code in codes])}]",
        )

        def render(batch: Table, slots: Slots) -> list[tuple[int, str]]:
            codes = batch.array("name").tolist()
            return list(zip(codes, values.of(batch, slots), strict=True))

        return render

    def _double(self, value: float) -> str:
        special = special_double(value)
        if special:
            self._dropped[SPECIAL] += 1
            return f"-{LARGEST}" if special == "-Infinity" else LARGEST
        return repr(value)

    def _number(self, value: Bound) -> str:
        return self._double(value) if isinstance(value, float) else str(value)

    def _numbers(self, values: Sequence[Bound]) -> str:
        return numbers(values) or f"[{','.join(map(self._number, values))}]"

    def _histogram(self, one: Histogram) -> str:
        members = []
        for name, value in one.condensed().items():
            if isinstance(value, list):
                members.append(f'"{name}":{self._numbers(value)}')
            else:
                members.append(f'"{name}":{self._number(value)}')
        return f"{{{','.join(members)}}}"


# --- Our JSON, exact -----------------------------------------------------------------------------


class _Members(dict[int, str]):
    """The strings of a capture's pool as the member ``key`` of a JSON object, by code."""

    def __init__(self, show: Callable[[str, bytes], str], capture: Capture, key: str) -> None:
        super().__init__()
        self._show = show
        self._pool = capture.strings
        self._key = key

    def __missing__(self, code: int) -> str:
        data = self._pool.bytes_of(code) if code >= 0 else b""
        value = self[code] = self._show(self._key, data)
        return value


class _TreeJsonExport(_Export):
    """Writes the bare tree, with the types of properties (CONTRACTS §3)."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink)
        self._lossless = bool(options["lossless"])
        self._used = False

    def write(self, capture: Capture) -> None:
        """Write one capture. Raises WriteRefusedError for a second one."""
        if self._used:
            raise WriteRefusedError(
                "tree-json holds one tree", remedy="convert the inputs one by one"
            )
        self._used = True
        super().write(capture)

    def _pieces(self, capture: Capture) -> Iterator[str]:
        """A node's name and properties, its children, and then its links."""
        names = _Members(self._member, capture, "name")
        contents = _Members(self._member, capture, "content")
        states: Names[str] = Names(capture.strings, str)
        closing: list[str] = []
        for node in walk(capture, self._render(capture, names)):
            comma = ""
            while len(closing) > node.depth:
                yield closing.pop()
                comma = ","
            yield (
                f'{comma}{{{names[node.name]},"properties":[{",".join(node.properties)}],'
                '"children":['
            )
            left = [link for link in node.links if states[link.state] != EXPANDED]
            if not left:
                closing.append("]}")
                continue
            links = ",".join(
                [
                    f"{{{names[link.name]},{contents[link.content]},"
                    f'"disposition":"{link.disposition}"}}'
                    for link in left
                ]
            )
            closing.append(f'],"links":[{links}]}}')
        if not closing:
            raise nothing_to_write(capture)
        while closing:
            yield closing.pop()
        yield "\n"

    def _render(
        self, capture: Capture, names: Mapping[int, str]
    ) -> Callable[[Table, Slots], list[str]]:
        strings: Names[str] = Names(capture.strings, quoted, self._dropped)
        values: Values[str] = Values(
            integer=str,
            double=self._double,
            truth=lambda value: "true" if value else "false",
            string=self._string,
            data=lambda data: f'"{data.hex()}"',
            array=self._array,
            histogram=self._histogram,
            strings=lambda codes: f"[{','.join([strings[code] for code in codes])}]",
        )
        keys = {number: f',"{name}":' for number, name in TYPES.items()}
        # What these are is said by their values, which have their keys with them.
        keys |= dict.fromkeys((STRING, *ARRAYS), ",")
        keys |= {BYTES: ',"bytes_hex":', STRING_ARRAY: ',"string_list":', DOUBLE: ","}

        def render(batch: Table, slots: Slots) -> list[str]:
            codes = batch.array("name").tolist()
            types = batch.array("type").tolist()
            shown = values.of(batch, slots)
            return [
                f"{{{names[code]}{keys[number]}{value}}}"
                for code, number, value in zip(codes, types, shown, strict=True)
            ]

        return render

    def _member(self, key: str, data: bytes) -> str:
        """A string as a member, with its bytes beside it where they are not UTF-8."""
        try:
            return f'"{key}":{quoted(data.decode())}'
        except UnicodeDecodeError:
            shown = f'"{key}":{quoted(data.decode("utf-8", "replace"))}'
            if self._lossless:
                return f'{shown},"{key}_bytes_hex":"{data.hex()}"'
            self._dropped[NOT_UTF8] += 1
            return shown

    def _string(self, data: bytes) -> str:
        return self._member("string", data)

    def _double(self, value: float) -> str:
        special = special_double(value)
        if not special:
            return f'"double":{value!r}'
        shown = f'"double":"{special}"'
        bits = bits_of(value)
        if special != "NaN" or bits == CANONICAL_NAN:
            return shown
        if self._lossless:
            return f'{shown},"double_bits":"0x{bits:016x}"'
        self._dropped[PAYLOADS] += 1
        return shown

    def _number(self, value: Bound) -> str:
        if not isinstance(value, float):
            return str(value)
        special = special_double(value)
        if special == "NaN" and bits_of(value) != CANONICAL_NAN:
            self._dropped[PAYLOADS] += 1
        return f'"{special}"' if special else repr(value)

    def _numbers(self, values: Sequence[Bound]) -> str:
        return numbers(values) or f"[{','.join(map(self._number, values))}]"

    def _array(self, type: str, slots: Sequence[Bound], format: int) -> str:
        display = f',"display":"{FORMATS[format]}"' if format and format in FORMATS else ""
        return f'"{type}_array":{self._numbers(slots)}{display}'

    def _histogram(self, one: Histogram) -> str:
        members = [f'"{name}":{self._number(value)}' for name, value in one.parameters().items()]
        members += [f'"size":{one.size}', f'"counts":{self._numbers(one.counts)}']
        return f'"{one.type}_{one.kind}_histogram":{{{",".join(members)}}}'


# --- Series: several snapshots of one VMO --------------------------------------------------------

COLUMNS: Final = ("snapshot", "file", "generation", "change", "path", "name", "type", "value")
GONE: Final = "removed"


class _SeriesExport:
    """Writes CSV rows: of the first snapshot all values, of each other what has changed."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        self._sink = sink
        self._all = bool(options["all"])
        self._dropped: Counter[str] = Counter()
        self._number = 0
        self._last: int | None = None
        self._known: dict[tuple[str, int], tuple[str, str]] = {}
        """The last type and value of each path, and of the same path once more, and so on."""

    def write(self, capture: Capture) -> None:
        """Write what a snapshot says that the one before did not."""
        if not self._number:
            self._sink.write((",".join(COLUMNS) + "\r\n").encode())
        count = generation(capture)
        self._dropped[UNORDERED] += self._last is not None and count < self._last
        self._last = count
        head = f"{self._number},{_cell(capture.name)},{count},"
        known, now = self._known, {}
        times: Counter[str] = Counter()
        lines: list[str] = []
        for path, kind, value, _offset in entries(capture):
            if kind == "node":
                continue
            key = (path, times[path])
            times[path] += 1
            now[key] = found = (kind, _csv_value(value))
            before = known.get(key)
            change = "first" if not self._number else "added" if before is None else "changed"
            if before != found:
                lines.append(head + _row(change, path, *found))
            elif self._all:
                lines.append(head + _row("same", path, *found))
            if len(lines) == PIECES:
                self._sink.write("".join(lines).encode())
                lines.clear()
        lines += [
            head + _row(GONE, key[0], kind, "")
            for key, (kind, _) in known.items()
            if key not in now
        ]
        self._sink.write("".join(lines).encode())
        self._known = now
        self._number += 1

    def close(self) -> Mapping[str, int]:
        """What may have gone wrong."""
        return {what: count for what, count in self._dropped.items() if count > 0}


def _row(change: str, path: str, kind: str, value: str) -> str:
    node, name = split_property(path)
    return f"{change},{_cell(node)},{_cell(name)},{kind},{value}\r\n"


def split_property(path: str) -> tuple[str, str]:
    """The path of a node and the name in it, of the path of a property."""
    at = len(path)
    while True:  # the last colon that no backslash stands before belongs to us
        at = path.rindex(":", 0, at)
        behind = len(path[:at]) - len(path[:at].rstrip("\\"))
        if behind % 2 == 0:
            return path[:at], unescaped(path[at + 1 :])


def _csv_value(value: Any) -> str:
    if isinstance(value, str):
        return _cell(value) or '""'
    if isinstance(value, float):
        return repr(value)
    return _cell(orjson.dumps(value).decode())


def _cell(text: str) -> str:
    """A field of CSV."""
    if any(character in text for character in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


# --- Selectors -----------------------------------------------------------------------------------


class _SelectorExport(_Export):
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
        return f"{plain(selector)}\n"
