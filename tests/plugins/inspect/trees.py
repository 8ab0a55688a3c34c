"""What the tests of Inspect share: vectors, files made of blocks, and trees as plain objects."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from fx_inspect import format as wire
from fx_inspect.format import Block, BlockType
from fx_inspect.read.decoder import RecordDecoder
from fx_inspect.rules import RULES
from fxframework.model.diagnostics import Diagnostic, Diagnostics

from . import tree as fx

CONFORMANCE = Path(__file__).parents[2] / "conformance" / "inspect"
HEADER = bytes.fromhex("00020200494e5350") + bytes(8)
"""Of version 2, order 0, without a size."""


def vectors(name: str) -> list[dict[str, Any]]:
    """The entries of a file of vectors."""
    found: list[dict[str, Any]] = json.loads((CONFORMANCE / f"{name}.json").read_text())
    return found


def image(vector: dict[str, Any]) -> bytes:
    """The bytes of a vector."""
    data = bytes.fromhex(vector["hex"])
    return data.ljust(vector.get("zero_pad_to", 0), b"\0")


FILES = {vector["name"]: vector for vector in vectors("files")}


def block(type: str, order: int = 0, layout: str = "new", **fields: Any) -> Block:
    """A block of a type."""
    made: Block = wire.BLOCKS[layout][BlockType[type]](order=order, **fields)
    return made


class Vmo:
    """A VMO put together of blocks, one behind the other."""

    def __init__(self, header: bytes = HEADER, layout: str = "new") -> None:
        self.data = bytearray(header)
        self.layout = layout

    def add(self, type: str, order: int = 0, **fields: Any) -> int:
        """Append a block; gives its index."""
        index = len(self.data) // wire.UNIT
        self.data += block(type, order, self.layout, **fields).pack()
        return index

    def name(self, text: str, order: int = 0) -> int:
        """Append a NAME."""
        length = len(text.encode(errors="surrogateescape"))
        return self.add("NAME", order, length=length, name=text)

    def text(self, data: bytes, order: int = 1, count: int = 1, **more: Any) -> int:
        """Append a STRING_REFERENCE, whose text is inline unless ``more`` says otherwise."""
        fields = {"next_extent": 0, "total_length": len(data)} | more
        inline = data[: fx.capacity(BlockType.STRING_REFERENCE, order)]
        return self.add("STRING_REFERENCE", order, inline=inline, reference_count=count, **fields)

    def node(self, name: str, parent: int = 0, values: int = 0) -> int:
        """Append a node with a NAME before it."""
        text = self.name(name)
        return self.add("NODE_VALUE", parent=parent, name=text, reference_count=values)

    def integer(self, name: str, value: int, parent: int = 0) -> int:
        """Append an int property with a NAME before it."""
        text = self.name(name)
        return self.add("INT_VALUE", parent=parent, name=text, value=value)

    def put(self, index: int, word: int, value: int) -> None:
        """Replace one of the two words of a block."""
        struct.pack_into("<Q", self.data, index * wire.UNIT + 8 * word, value)

    def word(self, index: int, word: int) -> int:
        """One of the two words of a block."""
        found: int = struct.unpack_from("<Q", self.data, index * wire.UNIT + 8 * word)[0]
        return found

    def retarget(self, index: int, field: str, value: int) -> None:
        """Change one field of a block, to whatever fits its bits."""
        (head,) = struct.unpack_from("<Q", self.data, index * wire.UNIT)
        type = (wire.TYPE if self.layout == "new" else wire.TYPE_V0).get(head)
        place = wire.BLOCKS[self.layout][type].layout.place(field)
        number = place.offset // 8
        word = self.word(index, number) & ~(place.mask << place.shift)
        self.put(index, number, word | (value & place.mask) << place.shift)


def read(data: bytes) -> tuple[fx.Tree, list[Diagnostic]]:
    """The tree of a file, and all that is found in it."""
    diagnostics = Diagnostics(RULES, limit=0)
    tree = fx.read(bytes(data), diagnostics)
    return tree, list(diagnostics)


def codes(data: bytes) -> list[tuple[str, int]]:
    """Code and block of each finding, in the order of their codes."""
    return sorted((found.code, (found.offset or 0) // wire.UNIT) for found in read(data)[1])


def shown(tree: fx.Tree) -> dict[str, Any]:
    """The tree as the vectors have it."""
    made: dict[int, dict[str, Any]] = {}
    nodes = [node for node, _ in tree.walk()]
    for node in reversed(nodes):
        one: dict[str, Any] = {
            "name": _plain(node.name),
            "properties": [_property(each) for each in node.properties],
            "children": [made[id(child)] for child in node.children],
        }
        if node.links:
            one["links"] = [
                {"name": link.name, "content": link.content, "disposition": link.disposition}
                for link in node.links
            ]
        made[id(node)] = one
    return made[id(tree.root)]


def _plain(text: str) -> str:
    return text.encode(errors="surrogateescape").decode(errors="replace")


def _property(given: fx.Property) -> dict[str, Any]:
    value: Any = given.value
    out: dict[str, Any] = {"name": _plain(given.name)}
    if given.type == "bytes":
        return out | {"bytes_hex": value.hex()}
    if given.type == "string":
        return out | {"string": _plain(value)}
    if not given.type.endswith("_array"):
        return out | {given.type: value}
    if given.type == "string_array":
        return out | {"string_list": [_plain(each) for each in value]}
    if given.format == "flat":
        return out | {given.type: list(value)}
    kind = given.type.removesuffix("_array")
    parameters = ("floor", "step") if given.format == "linear" else (
        "floor", "initial_step", "step_multiplier"
    )  # fmt: skip
    if len(value) < len(parameters) + 3:
        return out | {given.type: list(value), "display": given.format}
    counts = value[len(parameters) :]
    histogram = dict(zip(parameters, value, strict=False))
    histogram |= {"size": len(counts), "counts": list(counts)}
    return out | {f"{kind}_{given.format}_histogram": histogram}


def every_type() -> bytes:
    """A file with a block of every type, and values of every kind."""
    vmo = Vmo(bytes.fromhex("01020200494e5350") + bytes(8) + struct.pack("<I12x", 4096))
    child = vmo.node("child", values=9)
    for type, value in (
        ("INT_VALUE", -7),
        ("UINT_VALUE", 1 << 63),
        ("DOUBLE_VALUE", 0.5),
        ("BOOL_VALUE", True),
    ):
        vmo.add(type, parent=child, name=vmo.name(type[:8].lower()), value=value)
    shared = vmo.text(b"shared", count=4)
    extent = vmo.add("EXTENT", 1, next_extent=0, payload=b"0123456789abcdef".ljust(24, b"\0"))
    long = vmo.text(bytes(range(65, 65 + 36)), next_extent=extent, count=1)
    first = vmo.add("EXTENT", next_extent=0, payload=b"utf-8\0\0\0")
    second = vmo.add("EXTENT", next_extent=0, payload=b"\0\1\2\3\0\0\0\0")
    buffers = ((first, 5, 0), (second, 4, 1), (shared, 0, 2))
    for number, (at, length, format) in enumerate(buffers):
        vmo.add(
            "BUFFER_VALUE",
            parent=child,
            name=vmo.name(f"b{number}"),
            total_length=length,
            extent=at,
            format=format,
        )
    vmo.add(
        "ARRAY_VALUE",
        2,
        parent=child,
        name=vmo.name("numbers"),
        entry_type=5,
        format=1,
        count=5,
        slots=(0, 1, 2, 3, 4),
    )
    vmo.add(
        "ARRAY_VALUE",
        1,
        parent=child,
        name=shared,
        entry_type=14,
        format=0,
        count=3,
        slot_indexes=(shared, 0, long),
    )
    vmo.add(
        "ARRAY_VALUE",
        2,
        parent=0,
        name=vmo.name("doubles"),
        entry_type=6,
        format=0,
        count=4,
        slots=(0.5, float("nan"), float("-inf"), -0.0),
    )
    vmo.add("LINK_VALUE", parent=0, name=shared, content=vmo.name("link-0"), disposition=1)
    gone = vmo.add("TOMBSTONE", parent=0, name=0, reference_count=1)
    vmo.add("INT_VALUE", parent=gone, name=vmo.name("hidden"), value=1)
    vmo.add("RESERVED", 1)
    vmo.add("FREE", 2, next_free=0)
    return bytes(vmo.data).ljust(4096, b"\0")


def sized(data: bytes) -> bytes:
    """The file cut to whole units, with its size in its header."""
    whole = len(data) // wire.UNIT * wire.UNIT
    return data[:16] + whole.to_bytes(4, "little") + data[20:whole]


def records_of(data: bytes) -> list[Any]:
    """All records of a file."""
    return list(RecordDecoder().records(data))
