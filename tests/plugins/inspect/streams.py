"""Hypothesis strategies for Inspect VMOs, sound and not.

They build bytes from the numbers of the notes alone, so that what reads them is tested against the
layout and not against its own counterpart:

- ``vmos()``: VMOs of both layouts, whose blocks refer to each other as they should for the most
  part, and now and then not;
- ``damaged(files)``: the same, cut, flipped, overwritten, spliced.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from fxframework.io.words import U64_MAX

Draw = Callable[[st.SearchStrategy[Any]], Any]

(
    FREE, RESERVED, HEADER, NODE, INT, UINT, DOUBLE, BUFFER, EXTENT, NAME, TOMBSTONE, ARRAY, LINK,
    BOOL, STRING,
) = range(15)  # fmt: skip
FROZEN = U64_MAX - 1

rarely = st.sampled_from([False] * 11 + [True])
numbers = st.one_of(
    st.integers(0, 3),
    st.integers(0, U64_MAX),
    st.sampled_from([1 << 63, U64_MAX, 0x7FF0 << 48 | 1, 0x7FF8 << 48, 1 << 32]),
)
texts = st.one_of(
    st.sampled_from(
        [b"", b"a", b"b", b"root", b"a/b", b"four", b"of 20 bytes, or more", b"x" * 90]
    ),
    st.text(max_size=9).map(str.encode),
    st.sampled_from([b"\xff", b"caf\xe9", b"ab\xed\xa0\x80", b"nul\0", b"\xf4\x90"]),
    st.binary(max_size=70),
)
types = st.sampled_from(
    [
        FREE, NODE, NODE, NODE, INT, UINT, DOUBLE, BUFFER, BUFFER, EXTENT, EXTENT, NAME, NAME,
        TOMBSTONE, ARRAY, ARRAY, LINK, BOOL, STRING, STRING, STRING,
    ]
)  # fmt: skip
odd_types = st.sampled_from([RESERVED, HEADER, 13, 14, 15, 0x7F, 0xFF])
ORDERS = {EXTENT: [0, 1, 2, 3], NAME: [0, 1, 2], ARRAY: [0, 1, 2, 3, 4], STRING: [0, 1, 2]}


class Hand:
    """Draws the blocks of a VMO; ``odd`` is whether they may depart from the layout."""

    def __init__(self, draw: Draw, *, odd: bool, legacy: bool) -> None:
        self.draw = draw
        self.odd = odd
        self.legacy = legacy
        self.at: dict[int, list[int]] = {}
        """Indexes of the blocks of each type."""
        self.end = 0

    def oddly(self) -> bool:
        """Whether this one shall be odd."""
        return self.odd and bool(self.draw(rarely))

    def index(self, *wanted: int, none: bool = False) -> int:
        """The index of a block of one of these types, where there is one."""
        if self.oddly():
            return int(self.draw(st.sampled_from([0, 1, 3, self.end, self.end - 1, 0xFFFFF])))
        if self.oddly():
            wanted = tuple(self.at)
        found = [at for type in wanted for at in self.at.get(type, ())]
        if none:
            found.append(0)
        return int(self.draw(st.sampled_from(found))) if found else 0

    def name(self) -> int:
        """The index of a name."""
        return self.index(NAME, STRING)

    def head(self, type: int, order: int, first: int = 0, second: int = 0) -> int:
        """The first word of a block, of its two indexes."""
        if self.legacy:
            return (order | type << 4 | first << 8 | second << 36) & U64_MAX
        return (order | type << 8 | first << 16 | second << 40) & U64_MAX

    def length(self, size: int) -> int:
        """The length of ``size`` bytes, or another one."""
        return (
            int(self.draw(st.sampled_from([0, size + 1, size + 40, 4095])))
            if self.oddly()
            else size
        )

    def block(self, type: int, order: int) -> bytes:
        """A block."""
        size = 16 << order
        draw = self.draw
        if type == FREE:
            rest = draw(st.binary(max_size=8))
            out = struct.pack("<Q", self.head(FREE, order, self.index(FREE, none=True))) + rest
        elif type == EXTENT:
            following = self.index(EXTENT, none=True)
            payload = draw(st.sampled_from([b"x" * size, b"\xc3\xa9" * size, b"\xff" * size]))
            out = struct.pack("<Q", self.head(EXTENT, order, following)) + payload
        elif type == NAME:
            text = draw(texts)[: size - 8]
            out = struct.pack("<Q", self.head(NAME, order, self.length(len(text)))) + text
        elif type == STRING:
            text = draw(texts)[: size - 12]
            following = self.index(EXTENT, none=True)
            total = self.length(len(text))
            if following and draw(st.booleans()):
                text = text.ljust(size - 12, b".")
                total = len(text) + draw(st.sampled_from([1, 8, 25, 100]))
            references = draw(st.integers(0, 3))
            word = self.head(STRING, order, following, references)
            out = struct.pack("<QI", word, total) + text
        elif type == HEADER:
            out = struct.pack("<QQ", draw(numbers), draw(numbers))
            out = bytes([order | 2 << 4, 0] if self.legacy else [order, 2]) + out[2:]
        elif type <= RESERVED or type >= 15 or (self.legacy and type >= BOOL):
            word = self.head(type, order, draw(st.sampled_from([0, 0, 1])))
            out = struct.pack("<QQ", word, draw(numbers))
        else:
            parent = self.index(NODE, NODE, TOMBSTONE, none=True)
            word = self.head(type, order, parent, self.name())
            out = struct.pack("<Q", word) + self.payload(type, size)
        if self.oddly():
            bit = 1 << draw(st.sampled_from([4, 5, 7, 40, 62, 63, 90, 120, 127]))
            out = out.ljust(16, b"\0")
            out = (int.from_bytes(out[:16], "little") ^ bit).to_bytes(16, "little") + out[16:]
        whole: bytes = out[:size].ljust(size, b"\0")
        return whole

    def payload(self, type: int, size: int) -> bytes:
        """What stands behind the first word of a value."""
        draw = self.draw
        if type in (NODE, TOMBSTONE):
            return struct.pack("<Q", draw(st.integers(0, 4)))
        if type == BOOL:
            return struct.pack("<Q", draw(st.sampled_from([0, 1, 1, 2, 1 << 63])))
        if type == LINK:
            disposition = draw(st.sampled_from([0, 1, 1, 2 if self.odd else 0]))
            return struct.pack("<Q", self.name() & 0xFFFFF | disposition << 60)
        if type == BUFFER:
            format = draw(st.sampled_from([0, 1, 2, 2, 7 if self.odd else 2]))
            if format == 2:
                target = self.index(STRING) & 0xFFFFFFF
                return struct.pack("<Q", target << 32 | format << 60)
            total = draw(st.sampled_from([0, 3, 8, 20, 60, 120, 1 << 31 if self.odd else 5]))
            target = self.index(EXTENT, none=True) & 0xFFFFFFF
            return struct.pack("<Q", total | target << 32 | format << 60)
        if type == ARRAY:
            entry = draw(st.sampled_from([INT, UINT, DOUBLE, STRING, ARRAY if self.odd else INT]))
            format = draw(st.sampled_from([0, 0, 1, 2, 3 if self.odd else 0]))
            room = (size - 16) // (4 if entry == STRING else 8)
            least = (0, 5, 6, 0)[format]
            count = draw(st.integers(min(least, room, 255), min(room, 255)))
            if self.oddly():
                count = draw(st.integers(0, 255))
            if entry == STRING:
                chosen = [self.index(STRING, none=True) for _ in range(min(count, room))]
                slots = struct.pack(f"<{len(chosen)}I", *chosen)
            else:
                slots = b"".join(
                    struct.pack("<Q", draw(numbers)) for _ in range(min(count, room, 7))
                )
            return struct.pack("<Q", entry | format << 4 | count << 8) + slots
        return struct.pack("<Q", draw(numbers))

    def header(self, order: int, size: int) -> bytes:
        """A header of a VMO of so many bytes."""
        draw = self.draw
        generation = draw(st.sampled_from([0, 2, 14, FROZEN, 7 if self.odd else 4]))
        if self.oddly():
            size += draw(st.sampled_from([16, -16, 1, 1 << 31, -size]))
        version = 0 if self.legacy else draw(st.sampled_from([1, 2, 2, 2, 0, 3 if self.odd else 1]))
        magic = draw(st.sampled_from([b"PSNI", b"INSQ"])) if self.oddly() else b"INSP"
        word = self.head(HEADER, order, version) & 0xFFFFFFFF
        out = struct.pack("<I4sQ", word, magic, generation)
        return (out + size.to_bytes(8, "little", signed=size < 0))[: 16 << order].ljust(
            16 << order, b"\0"
        )


@st.composite
def vmos(draw: Draw, *, odd: bool | None = None) -> bytes:
    """A VMO of either layout, half of them odd."""
    hand = Hand(draw, odd=draw(st.booleans()) if odd is None else odd, legacy=draw(rarely))
    start = draw(st.sampled_from([0, 1, 1]))
    planned = []
    at = 1 << start
    for _ in range(draw(st.integers(0, 24))):
        type = draw(odd_types) if hand.oddly() else draw(types)
        if hand.legacy and type > LINK:
            type = NAME
        order = draw(st.sampled_from(ORDERS.get(type, [0, 0, 0, 1])))
        planned.append((type, order))
        hand.at.setdefault(type, []).append(at)
        at += 1 << order
    hand.end = at
    out = b"".join(hand.block(type, order) for type, order in planned)
    if hand.oddly():
        out += draw(st.sampled_from([b"\7" + bytes(15), bytes(7), b"\x0c" * 32, bytes(48)]))
    elif draw(st.booleans()):
        out += bytes(16 * draw(st.integers(1, 9)))
    return hand.header(start, (16 << start) + len(out)) + out


@st.composite
def damaged(draw: Draw, files: st.SearchStrategy[bytes]) -> bytes:
    """A file with something wrong: cut, flipped, overwritten, spliced."""
    data = bytearray(draw(files))
    for _ in range(draw(st.integers(1, 4))):
        if not data:
            return bytes(data)
        at = draw(st.integers(0, len(data) - 1))
        how = draw(st.sampled_from(["cut", "flip", "flip", "word", "insert", "remove", "copy"]))
        if how == "cut":
            del data[at:]
        elif how == "flip":
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif how == "word":
            at -= at % 8
            data[at : at + 8] = draw(numbers).to_bytes(8, "little")
        elif how == "insert":
            data[at:at] = draw(st.binary(min_size=1, max_size=16))
        elif how == "copy":
            other = 16 * draw(st.integers(0, len(data) // 16))
            at -= at % 16
            data[at : at + 16] = data[other : other + 16]
        else:
            del data[at : at + draw(st.sampled_from([1, 8, 16]))]
    return bytes(data)
