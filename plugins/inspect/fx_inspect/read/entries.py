"""Entries: the contents of a capture by path, used to compare snapshots; and as plain values."""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fx_inspect.format import ARRAY_FORMATS
from fx_inspect.read.histograms import Histogram
from fx_inspect.read.tables import TYPES
from fx_inspect.read.walk import ARRAY_TYPES, ARRAYS, EXPANDED, Slots, Values, texts_of, walk
from fxframework.errors import UsageError, did_you_mean
from fxframework.kit.json_fields import CANONICAL_NAN, bits_of, special_double
from fxframework.kit.memo import Memo, strings_of
from fxframework.model.capture import Capture, Entry
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

SPECIAL: Final = "\\/:* \t"
"""Characters that are escaped by a backslash in a selector."""
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
DEEPEST: Final = 200
SHOWN: Final = 8
LONGEST_NAME: Final = 256
LONGEST_PATH: Final = 1 << 10
"""Longest name, and path of a node, shown in full, in bytes."""
LONGEST_TEXT: Final = 1 << 10
"""Longest string of an array shown in full, in bytes."""
NAME_SHOWN: Final = 64
"""Characters shown of a longer name; SHOWN is the number of names of a longer path."""
MOST_SUGGESTED: Final = 1000
"""Properties whose selectors may be suggested; comparing many more takes seconds."""
LONG: Final = 256
"""Length in bytes from which equal strings share one object."""


def escaped(name: str) -> str:
    """Return a name in the form of selectors: with a backslash before each special character."""
    if any(character in name for character in SPECIAL):
        return "".join(f"\\{mark}" if mark in SPECIAL else mark for mark in name)
    return name


def unescaped(name: str) -> str:
    """Return the name that a name in a selector stands for."""
    return _ESCAPE.sub(r"\1", name) if "\\" in name else name


class Value(NamedTuple):
    """A property: code of the name, type, value in the form of plain JSON, and offset."""

    name: int
    type: str
    value: Any
    offset: int


def exact(pool: StringPool, *, distinct: bool) -> Callable[[Table, Slots], list[Value]]:
    """Return the function that converts a batch of properties to Values (as ``entries``)."""
    texts = _texts(pool, _bounded_text, distinct=distinct)
    shared_texts: dict[bytes, Any] = {}

    def number(value: float) -> Any:
        special = special_double(value)
        if distinct and special == "NaN" and (bits := bits_of(value)) != CANONICAL_NAN:
            special = f"NaN 0x{bits:016x}"
        return special or value

    def string(data: bytes) -> Any:
        if len(data) < LONG:
            return text(data)
        # Many properties may share a long string; their entries share it too.
        if data not in shared_texts:
            shared_texts[data] = text(data)
        return shared_texts[data]

    def text(data: bytes) -> Any:
        try:
            return data.decode()
        except UnicodeDecodeError:
            return {"bytes_hex": data.hex()}

    def numbers(slots: Sequence[int | float]) -> Any:
        # The sum is finite only if every slot is.
        if math.isfinite(sum(slots)):
            return list(slots)
        return [number(slot) for slot in slots]

    values: Values[Any] = Values(
        double=number,
        string=string,
        data=lambda data: data.hex(),
        array=lambda _type, slots, _format: numbers(slots),
        strings=lambda codes: [texts[code] for code in codes],
    )

    def render(batch: Table, slots: Slots) -> list[Value]:
        rows = batch.tuples("name", "type", "inspect_format", "offset")
        return [
            Value(name, _type_name(type, format), value, offset)
            for (name, type, format, offset), value in zip(
                rows, values.of(batch, slots), strict=True
            )
        ]

    return render


@functools.cache
def _type_name(number: int, format: int) -> str:
    """Return the name of a type; for a histogram ``int_linear_histogram`` and so on."""
    if number in ARRAYS and format:
        return f"{ARRAY_TYPES[number]}_{ARRAY_FORMATS.get(format, format)}_histogram"
    return TYPES.get(number, str(number))


def entries(capture: Capture, *, distinct: bool = False) -> Iterator[Entry]:
    """Yield the nodes, properties and links of a capture, by path (``Capture.entries``).

    A path is a selector, ``root/a`` or ``root/a:property``. A name of more than ``LONGEST_NAME``
    bytes, and a path of more than ``LONGEST_PATH`` bytes or ``DEEPEST`` names, contain a digest in
    place of the omitted part. ``distinct``: whether texts that are not UTF-8 have a digest of their
    bytes too, and a NaN that is not the usual one its bits, so that different ones differ.
    """
    names = _texts(capture.strings, _bounded, distinct=distinct)
    texts = _texts(capture.strings, str, distinct=distinct)
    paths = _PathBuilder()
    for node in walk(capture, exact(capture.strings, distinct=distinct)):
        path = paths.path(node.depth, names[node.name])
        yield Entry(path, "node", None, node.offset)
        for name, kind, value, offset in node.properties:
            yield Entry(f"{path}:{names[name]}", kind, value, offset)
        for link in node.links:
            if link.state != EXPANDED:
                kind = f"{link.disposition} link"
                content = texts[link.content]
                path_of_link = f"{path}:{names[link.name]}"
                yield Entry(path_of_link, kind, content, link.offset)


def _texts(pool: StringPool, make: Callable[[str], str], *, distinct: bool) -> Mapping[int, str]:
    """Return the results of ``make`` for the strings of a pool, by code (see ``entries``)."""
    strings = strings_of(pool)
    text_of_code = texts_of(pool, make)
    if not distinct:
        return text_of_code

    def text(code: int) -> str:
        data = strings[code]
        try:
            data.decode()
        except UnicodeDecodeError:
            return f"{text_of_code[code]}…{_digest(data).hex()}…"
        return text_of_code[code]

    return Memo(text, 0)


def _bounded(name: str) -> str:
    """Return a name in the form of paths, of bounded length."""
    data = name.encode()
    if len(data) <= LONGEST_NAME:
        return escaped(name)
    return f"{escaped(name[:NAME_SHOWN])}…{_digest(data).hex()}…"


def _bounded_text(text: str) -> str:
    """Return a string of an array; of a long one, its beginning and a digest."""
    data = text.encode()
    if len(data) <= LONGEST_TEXT:
        return text
    return f"{text[:NAME_SHOWN]}…{_digest(data).hex()}… ({len(data)} bytes)"


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=8).digest()


class _PathBuilder:
    """Builds paths of bounded length from the names of nodes in the order of the tree."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._lengths: list[int] = []
        self._digests: list[bytes] = []

    def path(self, depth: int, name: str) -> str:
        """Return the path of the next node, given its depth and name."""
        del self._names[depth:], self._lengths[depth:], self._digests[depth:]
        self._names.append(name)
        digest = b""
        length = len(name) + 1
        if self._digests:
            digest = self._digests[-1]
            length += self._lengths[-1]
        self._lengths.append(length)
        self._digests.append(_digest(digest + name.encode() + b"/"))
        if depth <= DEEPEST and length <= LONGEST_PATH:
            return "/".join(self._names)
        first_names = "/".join(self._names[: min(SHOWN, depth)])
        return f"{first_names}/…{digest.hex()}…/{name}"


# --- Plain values --------------------------------------------------------------------------------


def text_or_bytes(data: bytes) -> str | bytes:
    """Return a string; its bytes if they are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def plain_histogram(found: Histogram) -> dict[str, Any]:
    """Return a histogram as its parameters and counts, from underflow to overflow."""
    multiplier = {} if found.multiplier is None else {"multiplier": found.multiplier}
    return {"floor": found.floor, "step": found.step, **multiplier, "counts": list(found.counts)}


def plain_values(capture: Capture) -> Any:
    """Return the function that ``walk`` renders properties with: names with plain values."""
    strings = strings_of(capture.strings)
    values: Values[Any] = Values(
        string=text_or_bytes,
        array=lambda _type, slots, _format: list(slots),
        strings=lambda codes: [text_or_bytes(strings[code]) for code in codes],
        histogram=plain_histogram,
    )
    return values.named


def add_member(node: dict[str, Any], name: bytes, value: Any) -> None:
    """Add a member; a name that occurs again gets ``#2`` and so on behind it."""
    text = name.decode("utf-8", "replace")
    key = text
    number = 1
    while key in node:
        number += 1
        key = f"{text}#{number}"
    node[key] = value


def plain_tree(capture: Capture) -> dict[str, Any]:
    """Return what the root of a tree has, by name (``InspectCapture.tree``)."""
    strings = strings_of(capture.strings)
    root: dict[str, Any] = {}
    open_nodes: list[dict[str, Any]] = []
    for node in walk(capture, plain_values(capture)):
        members: dict[str, Any] = {} if node.depth else root
        del open_nodes[node.depth :]
        if open_nodes:
            add_member(open_nodes[-1], strings[node.name], members)
        for name, value in node.properties:
            add_member(members, strings[name], value)
        open_nodes.append(members)
    return root


def plain_value(capture: Capture, selector: str) -> Any:
    """Return the value of the only property that a selector selects (``InspectCapture.value``).

    Raises UsageError if it selects none, or several.
    """
    chosen = capture.choose([selector])
    nodes = walk(chosen, plain_values(capture))
    values = [value for node in nodes for _, value in node.properties]
    if len(values) == 1:
        return values[0]
    suggestion = ""
    remedy = "`tree()` has all of them; a name that occurs again in a node has `#2` behind it"
    if not values:
        paths = (entry.path for entry in entries(capture) if entry.value is not None)
        suggestion = did_you_mean(selector, itertools.islice(paths, MOST_SUGGESTED))
        remedy = "`fxf selectors FILE` lists the selectors of all properties"
    message = f"{selector!r} selects {len(values) or 'no'} properties, not one{suggestion}"
    raise UsageError(message, path=capture.name, remedy=remedy)
