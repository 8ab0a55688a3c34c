"""Typical Inspect VMOs of any size, for benchmarks."""

from __future__ import annotations

import struct
from functools import cache

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_inspect.format import (
    ARRAY_EXPONENTIAL,
    ARRAY_FORMAT,
    BUFFER_EXTENT,
    BUFFER_FORMAT,
    BUFFER_STRING_REFERENCE,
    HEADS,
    SLOT_COUNT,
    TYPE,
    BlockType,
)
from fxframework.wire.sample import decimal_text

__all__ = ["NODES", "PROPERTIES", "SCENARIO", "sample"]

GROUP = 4096
"""Bytes of a group: nodes with their properties, names, strings and arrays."""
UNITS = GROUP // 16
NODES = 3
"""Nodes of a group. The first is a child of an earlier group's node, the others of the first."""
PROPERTIES = 10
"""Properties of a node."""
FAN = 16
"""Groups whose first nodes have the same parent."""
MOST_GROUPS = 1 << 16
"""Groups within reach of 24-bit indexes."""
DIGITS = 7
NAMES = (
    b"requests", b"errors", b"bytes_in", b"bytes_out", b"load", b"connected", b"state", b"url",
    b"latency_us", b"samples",
)  # fmt: skip
STATE = b"waiting for the peer"
URL = b"fuchsia-pkg://fuchsia.com/n-0000000#meta/netstack.cm"
HEAD = HEADS["new"]
NODE = BlockType.NODE_VALUE
INT = BlockType.INT_VALUE
UINT = BlockType.UINT_VALUE
DOUBLE = BlockType.DOUBLE_VALUE
BUFFER = BlockType.BUFFER_VALUE
ARRAY = BlockType.ARRAY_VALUE
BOOL = BlockType.BOOL_VALUE
STRING = BlockType.STRING_REFERENCE
STRING_FORMAT = BUFFER_FORMAT.put(BUFFER_STRING_REFERENCE)
BUCKETS = 40
LATENCIES = 30


def sample(nbytes: int) -> bytes:
    """Return about ``nbytes`` of a VMO of version 2: 3 nodes of 10 properties in every 4096 bytes.

    Each node has four integers, a double, a bool, two strings (one of them shared by all nodes), an
    exponential histogram and an array of doubles. Names of properties are shared, names of nodes
    are unique.
    """
    groups = min(max(1, round(nbytes / GROUP) - 1), MOST_GROUPS - 1)
    shape = _group()
    words = np.tile(shape.words, (groups, 1))
    number = np.arange(groups, dtype=np.uint64)
    base = (number + 1) * UNITS
    words += base[:, None] * shape.weights
    # The first node of a group is a child of another group's, the very first of the root.
    parents = (number[1:] - 1) // FAN
    first = shape.nodes[0]
    words[1:, first] += ((parents + 1) * UNITS + first // 2) << np.uint64(HEAD.first.low)
    children = np.bincount(parents.astype(np.int64), minlength=groups).astype(np.uint64)
    words[:, first + 1] += children + (NODES - 1)
    for node in range(NODES):
        numbers = number * NODES + node
        # In both texts the digits are within one word.
        digits = decimal_text(numbers, DIGITS)
        words[:, shape.names[node] + 2] = digits << np.uint64(8) | np.uint64(ord("-"))
        words[:, shape.urls[node] + 5] = digits | np.uint64(
            int.from_bytes(b"#", "big") << 8 * DIGITS
        )
        for value in range(4):
            words[:, shape.numbers[node] + 2 * value + 1] = numbers * (value + 3) % 1_000_003
    head = _head(groups * NODES, GROUP * (groups + 1))
    return head + words.tobytes()


@attrs.frozen
class _Shape:
    """A group as words, and the positions of its variable words."""

    words: NDArray[np.uint64]
    weights: NDArray[np.uint64]
    """The amount that an index of 1 adds to each word."""
    nodes: tuple[int, ...]
    names: tuple[int, ...]
    urls: tuple[int, ...]
    numbers: tuple[int, ...]
    """The first of four integers of each node."""


def _string(text: bytes, order: int, references: int) -> bytes:
    head = order | TYPE.put(STRING) | HEAD.second.put(references)
    return (struct.pack("<QI", head, len(text)) + text).ljust(16 << order, b"\0")


def _free(order: int) -> bytes:
    return order.to_bytes(8, "little").ljust(16 << order, b"\0")


@cache
def _shared() -> dict[bytes, int]:
    """Return the units of the shared strings, of 32 bytes each (the last one 64)."""
    return {text: 2 + 2 * at for at, text in enumerate((*NAMES, STATE))}


def _head(nodes: int, size: int) -> bytes:
    """Return the first group: the header, the shared strings, free blocks."""
    header = struct.pack("<HH4sQQQ", 0x0201, 2, b"INSP", 2 * nodes, size, 0)
    out = header + b"".join(_string(text, 1, nodes) for text in (*NAMES, STATE))
    while len(out) < GROUP:
        order = (len(out) & -len(out)).bit_length() - 5
        out += _free(min(order, 7))
    return out


@cache
def _group() -> _Shape:
    """Return one group, with all indexes as if it began at index 0."""
    words = np.zeros(GROUP // 8, np.uint64)
    weights = np.zeros(GROUP // 8, np.uint64)
    shared = _shared()
    at = 0

    def put(data: bytes, *, parent: bool = False, name: bool = False, content: bool = False) -> int:
        nonlocal at
        word = at
        words[word : word + len(data) // 8] = np.frombuffer(data, "<u8")
        weights[word] = HEAD.first.put(parent) + HEAD.second.put(name)
        weights[word + 1] = BUFFER_EXTENT.put(content)
        at += len(data) // 8
        return word

    # Large blocks first, so that each is where a buddy allocator may place it.
    tail = 2 * (NODES * (512 + 256 + 256) // 16)
    nodes = tuple(tail + 2 * (2 * NODES + node) for node in range(NODES))
    names = tuple(tail + 4 * node for node in range(NODES))
    urls = tuple(2 * NODES * (512 + 256) // 16 + 32 * node for node in range(NODES))

    def value(kind: int, node: int, name: int, payload: int, order: int = 0) -> bytes:
        head = order | TYPE.put(kind) | HEAD.first.put(nodes[node] // 2)
        head |= HEAD.second.put(shared[NAMES[name]])
        return struct.pack("<QQ", head, payload)

    for node in range(NODES):
        slots = [0, 10, 2, *(17 * bucket % 13 for bucket in range(BUCKETS + 2))]
        payload = UINT | ARRAY_FORMAT.put(ARRAY_EXPONENTIAL) | SLOT_COUNT.put(len(slots))
        data = value(ARRAY, node, 8, payload, 5) + struct.pack(f"<{len(slots)}Q", *slots)
        put(data.ljust(512, b"\0"), parent=True)
    for node in range(NODES):
        doubles = [0.25 * place for place in range(LATENCIES)]
        payload = DOUBLE | SLOT_COUNT.put(len(doubles))
        data = value(ARRAY, node, 9, payload, 4) + struct.pack(f"<{len(doubles)}d", *doubles)
        put(data.ljust(256, b"\0"), parent=True)
    for _ in range(NODES):
        put(_string(URL.ljust(200, b"."), 4, 1))
    for _ in range(NODES):
        put(_string(b"node-0000000", 1, 1))
    for node in range(NODES):
        above = 0 if node == 0 else nodes[0] // 2
        head = TYPE.put(NODE) | HEAD.first.put(above) | HEAD.second.put(names[node] // 2)
        put(struct.pack("<QQ", head, PROPERTIES), parent=node > 0, name=True)
    numbers = []
    for node in range(NODES):
        numbers.append(at)
        for name, kind in enumerate((INT, INT, UINT, UINT)):
            put(value(kind, node, name, 0), parent=True)
        bits = int.from_bytes(struct.pack("<d", 0.5 + node), "little")
        put(value(DOUBLE, node, 4, bits), parent=True)
        put(value(BOOL, node, 5, node % 2), parent=True)
        put(value(BUFFER, node, 6, STRING_FORMAT | BUFFER_EXTENT.put(shared[STATE])), parent=True)
        put(
            value(BUFFER, node, 7, STRING_FORMAT | BUFFER_EXTENT.put(urls[node] // 2)),
            parent=True,
            content=True,
        )
    while at < GROUP // 8:
        order = (at & -at).bit_length() - 2
        while (16 << order) > GROUP - 8 * at:
            order -= 1
        put(_free(order))
    return _Shape(words, weights, nodes, names, urls, tuple(numbers))


SCENARIO = """
scenario = { name = "inspect" }
target = { cpus = 1 }
device.tree = { kind = "vmo", size = 4096 }
device.sockets = { kind = "vmo", size = 4096 }
step = [
  { do = "inspect.start", device = "tree" },
  { do = "inspect.begin", device = "tree" },
  { do = "inspect.create", device = "tree", path = "state", value = "starting" },
  { do = "inspect.create", device = "tree", path = "interfaces" },
  { do = "inspect.create", device = "tree", path = "sent", kind = "uint", value = 0 },
  { do = "inspect.create", device = "tree", path = "times", kind = "int_linear_histogram", value = [
    0, 10, 4,
  ] },
  { do = "inspect.end", device = "tree" },
  { do = "inspect.create", device = "tree", path = "sockets", link = "sockets" },
  { do = "inspect.set", device = "tree", path = "state", value = "running" },
  { do = "inspect.add", device = "tree", path = "sent", by = 2 },
  { do = "inspect.insert", device = "tree", path = "times", value = 12 },
  { do = "inspect.move", device = "tree", path = "sent", to = "interfaces" },
  { do = "inspect.delete", device = "tree", path = "state" },
  { do = "inspect.snapshot", device = "tree", as = "tree.inspect" },
  { do = "inspect.freeze", device = "tree", as = "frozen.inspect" },
  { do = "inspect.trees", device = "tree", as = "trees" },
  { do = "inspect.thread", device = "tree", process = "netstack", thread = "main", script = [
    { sleep = "1ms" },
    { add = "interfaces/sent", by = 1 },
  ] },
  { do = "target.run" },
]
"""
"""A scenario with the steps of Inspect, which `fxf plugins --check` runs."""
