"""Hypothesis strategies for files of logs, sound and not.

They build bytes from the numbers of the notes alone, so that what reads them is tested against the
layout and not against its own counterpart:

- ``log_files()``: structured records one after another, some of them odd; ``suffixed=True`` puts
  the attribution of 2025 behind each;
- ``ring_images()``: rings, most of them sound, wrapped or not;
- ``packets()`` and ``packet_files()``: legacy packets, alone and in our container;
- ``damaged(files)``: the same, cut, flipped, overwritten, spliced.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from fxframework.io.words import U64_MAX, pad8

Draw = Callable[[st.SearchStrategy[Any]], Any]

NULL, INT64, UINT64, DOUBLE, STRING, BOOL = 0, 3, 4, 5, 6, 9
WELL_KNOWN = {
    "pid": UINT64, "tid": UINT64, "tag": STRING, "num_dropped": UINT64, "dropped_logs": UINT64,
    "message": STRING, "file": STRING, "line": UINT64, "verbosity": INT64, "rolled_out": UINT64,
    "moniker": STRING, "url": STRING, "printf": UINT64, "$__moniker": STRING, "$__url": STRING,
    "$__rolled_out": UINT64,
}  # fmt: skip
CONTROL = 1 << 31
PAGE = 4096

rarely = st.sampled_from([False] * 11 + [True])
seldom = st.sampled_from([False] * 5 + [True])
numbers = st.one_of(
    st.integers(0, 3),
    st.integers(0, U64_MAX),
    st.sampled_from([1 << 32, (1 << 32) - 1, 1 << 63, U64_MAX, 0x7FF0 << 48 | 1]),
)
texts = st.one_of(
    st.sampled_from(
        [b"", b"a", b"a,b", b"klog", b"core/a", b"eight by", b"more than eight", b"%d of %s, %%"]
    ),
    st.text(max_size=9).map(str.encode),
    st.sampled_from(
        [b"\xff", b"caf\xe9", b"ab\xed\xa0\x80", b"nul\0", b"\xef\xbf\xbd", b"\xf4\x90"]
    ),
    st.binary(max_size=20),
)
names = st.one_of(
    st.sampled_from(sorted(WELL_KNOWN)).map(str.encode),
    st.sampled_from(sorted(WELL_KNOWN)).map(str.encode),
    st.sampled_from([b"", b"", b"key", b"another key", b"pid\0", b"messages", b"x" * 257]),
    texts,
)
idents = st.sampled_from([0, 0, 1, 1, 2, 7, 0x7FFFFFFF])
severities = st.sampled_from([0x10, 0x20, 0x30, 0x30, 0x40, 0x50, 0x60, 0x2F, 0x11, 0, 0x7F, 0xFF])
times = st.one_of(st.integers(0, 20), st.sampled_from([-(1 << 63), -1, (1 << 63) - 1]))


class Hand:
    """Draws the parts of a record; ``odd`` is whether they may depart from the layout."""

    def __init__(self, draw: Draw, *, odd: bool) -> None:
        self.draw = draw
        self.odd = odd

    def oddly(self) -> bool:
        """Whether this one shall be odd."""
        return self.odd and bool(self.draw(rarely))

    def string(self, data: bytes) -> tuple[int, bytes]:
        """A string reference, and what stands inline for it."""
        if self.oddly():
            return int(self.draw(st.sampled_from([1, 0x7FFF, 0x8000, 0xFFFF, 0x8040]))), b""
        if not data:
            return 0, b""
        pad = -len(data) % 8
        fill = self.draw(st.binary(min_size=pad, max_size=pad)) if self.oddly() else bytes(pad)
        return 0x8000 | len(data), data + fill

    def argument(self, name: bytes, type: int) -> bytes:
        """An argument of any value."""
        ref, body = self.string(name)
        header = ref << 16
        if type == STRING:
            value, inline = self.string(self.draw(texts))
            header |= value << 32
            body += inline
        elif type in (INT64, UINT64, DOUBLE):
            body += int(self.draw(numbers)).to_bytes(8, "little")
        elif type == BOOL:
            header |= int(self.draw(st.integers(0, 1))) << 32
        elif type != NULL:
            body += self.draw(st.sampled_from([b"", b"8 bytes.", bytes(16)]))
        size = 1 + len(body) // 8
        if self.oddly():
            size = int(self.draw(st.sampled_from([0, 1, size + 1, 4095])))
        if self.oddly():
            body = body[:-8]
        if self.oddly():
            header |= int(self.draw(st.sampled_from([1 << 63, 1 << 48, 1 << 40, 1 << 33])))
        return (header | type | size << 4).to_bytes(8, "little") + body

    def arguments(self) -> bytes:
        """Some arguments, with attribution at the end now and then."""
        out = []
        for _ in range(int(self.draw(st.sampled_from([0, 1, 2, 3, 5, 17 if self.odd else 4])))):
            name = self.draw(names)
            type = WELL_KNOWN.get(name.decode("latin-1"))
            if type is None or self.draw(seldom):
                type = int(self.draw(st.sampled_from([0, 3, 4, 5, 6, 9, *([1, 7, 12] * self.odd)])))
            out.append(self.argument(name, type))
        if self.draw(seldom):
            chosen = st.lists(st.sampled_from(sorted(WELL_KNOWN)[:3]), min_size=1, max_size=4)
            out += [self.argument(name.encode(), WELL_KNOWN[name]) for name in self.draw(chosen)]
        if self.draw(seldom):
            printf = pad8(b"printf") + bytes(8)
            out.insert(
                int(self.draw(st.integers(0, 1))),
                (UINT64 | 3 << 4 | (0x8000 | 6) << 16).to_bytes(8, "little") + printf,
            )
        return b"".join(out)

    def record(self) -> bytes:
        """A record: a log, or now and then one that says whose they are."""
        tag = int(self.draw(idents))
        if self.draw(seldom):
            tag |= CONTROL
            body = self.argument(b"moniker", STRING) + self.argument(b"url", STRING)
            body = self.draw(st.sampled_from([body, self.argument(b"rolled_out", UINT64), b""]))
            if self.draw(seldom):
                body += self.arguments()
        else:
            body = self.arguments()
        size = 2 + len(body) // 8
        header = 9 | size << 4 | tag << 16 | int(self.draw(severities)) << 56
        if self.oddly():
            header |= 1 << 48
        return struct.pack("<Qq", header, self.draw(times)) + body

    def suffix(self) -> bytes:
        """What is said of whoever wrote the record before it."""
        moniker, url = self.draw(texts), self.draw(texts)
        lengths = struct.pack("<IIQ", len(moniker), len(url), self.draw(numbers))
        return lengths + pad8(moniker) + pad8(url)


@st.composite
def log_files(draw: Draw, *, suffixed: bool = False) -> bytes:
    """Structured records, some of them odd, with zero words between them now and then."""
    hand = Hand(draw, odd=draw(st.booleans()))
    out = []
    for _ in range(draw(st.integers(0, 6))):
        out.append(hand.record())
        if suffixed:
            out.append(hand.suffix())
        if hand.oddly():
            out.append(bytes(8 * draw(st.integers(1, 3))))
    return b"".join(out)


@st.composite
def ring_images(draw: Draw) -> bytes:
    """A ring of a page or more: entries from anywhere on, and what is unused."""
    hand = Hand(draw, odd=draw(st.booleans()))
    entries = []
    for _ in range(draw(st.integers(0, 5))):
        payload = hand.record()
        if hand.oddly():
            payload = draw(st.sampled_from([b"", payload + b"more", payload[:-8], b"\x29" * 9]))
        tag = draw(idents) | draw(st.sampled_from([0, 0, 1 << 40, CONTROL]))
        entry = pad8(struct.pack("<QQ", tag, len(payload)) + payload)
        if hand.oddly():
            entry = entry[:-1] + b"\1"
        entries.append(entry)
    used = b"".join(entries)
    capacity = max(PAGE, -(-len(used) // PAGE) * PAGE)
    if draw(rarely):
        used = used.ljust(capacity, b"\0")
    line = used + (b"\1" if hand.oddly() else b"\0") * (capacity - len(used))
    start = draw(st.sampled_from([0, 8, capacity - 8, capacity - 64, capacity // 2]))
    tail = capacity * draw(st.integers(0, 3)) + start
    head = tail + len(used)
    if hand.oddly():
        head += draw(st.sampled_from([-8, 8, 1, 1 << 40]))
    header = struct.pack("<QQ", head & U64_MAX, tail).ljust(PAGE, b"\0")
    return header + line[capacity - start :] + line[: capacity - start]


@st.composite
def packets(draw: Draw) -> bytes:
    """A legacy packet, seldom an odd one."""
    hand = Hand(draw, odd=draw(st.booleans()))
    severity = draw(st.sampled_from([0x30, 0x30, 0x40, 0, -10, -3, -2, 3, 0x2F, 0x100, -(1 << 31)]))
    dropped = draw(st.sampled_from([0, 0, 1, (1 << 32) - 1]))
    out = struct.pack("<QQqiI", draw(numbers), draw(numbers), draw(times), severity, dropped)
    for tag in draw(st.lists(texts, max_size=6 if hand.odd else 4)):
        if tag:
            out += bytes([64 if hand.oddly() else len(tag)]) + tag
    message = draw(texts).replace(b"\0", b"")
    out += b"\0" + message + b"\0"
    if hand.oddly():
        out = draw(st.sampled_from([out[:-1], out + b"\1\0", out[:32] + b"\1\0", out[:20], b""]))
    return out


@st.composite
def packet_files(draw: Draw) -> bytes:
    """Our container with some packets."""
    header = b"\x89FXLLOG\n" + struct.pack("<II", 1, 0)
    if draw(rarely):
        header = draw(st.sampled_from([header[:9], header[:12] + b"\1\0\0\0", b"\0" * 16]))
    found = draw(st.lists(packets(), max_size=5))
    return header + b"".join(struct.pack("<I", len(each)) + each for each in found)


@st.composite
def damaged(draw: Draw, files: st.SearchStrategy[bytes]) -> bytes:
    """A file with something wrong: cut, flipped, overwritten, spliced."""
    data = bytearray(draw(files))
    for _ in range(draw(st.integers(1, 4))):
        if not data:
            return bytes(data)
        at = draw(st.integers(0, len(data) - 1))
        how = draw(st.sampled_from(["cut", "flip", "word", "insert", "remove"]))
        if how == "cut":
            del data[at:]
        elif how == "flip":
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif how == "word":
            at -= at % 8
            data[at : at + 8] = draw(numbers).to_bytes(8, "little")
        elif how == "insert":
            data[at:at] = draw(st.binary(min_size=1, max_size=16))
        else:
            del data[at : at + draw(st.sampled_from([1, 8, 16]))]
    return bytes(data)
