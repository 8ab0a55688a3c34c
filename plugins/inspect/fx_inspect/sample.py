"""Typical Inspect VMOs of any size, for benchmarks."""

from __future__ import annotations

import struct
from functools import cache

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
# Large blocks come first, so that each is where a buddy allocator may place it: for each node a
# histogram of 512 bytes, an array and a URL of 256 each; then the names, of 32 bytes; then the
# nodes, and the eight small values of each. All places are in words.
URL_PLACES = [NODES * (512 + 256) // 8 + 256 // 8 * node for node in range(NODES)]
NAME_PLACES = [NODES * (512 + 2 * 256) // 8 + 32 // 8 * node for node in range(NODES)]
NODE_PLACES = [NODES * (512 + 2 * 256 + 32) // 8 + 2 * node for node in range(NODES)]
NUMBER_PLACES = [NODE_PLACES[-1] + 2 + 16 * node for node in range(NODES)]
"""Where the first of four integers of each node is."""


def sample(nbytes: int) -> bytes:
    """Return about ``nbytes`` of a VMO of version 2: 3 nodes of 10 properties in every 4096 bytes.

    Each node has four integers, a double, a bool, two strings (one of them shared by all nodes), an
    exponential histogram and an array of doubles. Names of properties are shared, names of nodes
    are unique.
    """
    groups_for_size = round(nbytes / GROUP) - 1
    groups = min(max(1, groups_for_size), MOST_GROUPS - 1)
    group = _group(0)
    words = np.tile(group, (groups, 1))
    number = np.arange(groups, dtype=np.uint64)
    base = (number + 1) * UNITS
    # What an index of 1 adds to each word.
    words += base[:, None] * (_group(1) - group)
    # The first node of a group is a child of another group's, the very first of the root.
    parents = (number[1:] - 1) // FAN
    first_node = NODE_PLACES[0]
    parent_index = (parents + 1) * UNITS + first_node // 2
    words[1:, first_node] += parent_index << np.uint64(HEAD.first.low)
    children = np.bincount(parents.astype(np.int64), minlength=groups)
    words[:, first_node + 1] += children.astype(np.uint64) + (NODES - 1)
    dash_before = np.uint64(ord("-"))
    hash_behind = np.uint64(ord("#") << 8 * DIGITS)
    for node in range(NODES):
        node_number = number * NODES + node
        # In both texts the digits are within one word.
        digits = decimal_text(node_number, DIGITS)
        words[:, NAME_PLACES[node] + 2] = digits << np.uint64(8) | dash_before
        words[:, URL_PLACES[node] + 5] = digits | hash_behind
        for value in range(4):
            payload = NUMBER_PLACES[node] + 2 * value + 1
            words[:, payload] = node_number * (value + 3) % 1_000_003
    head = _head(groups * NODES, GROUP * (groups + 1))
    return head + words.tobytes()


def _string(text: bytes, order: int, references: int) -> bytes:
    head = order | TYPE.put(STRING) | HEAD.second.put(references)
    block = struct.pack("<QI", head, len(text)) + text
    return block.ljust(16 << order, b"\0")


def _free(order: int) -> bytes:
    return order.to_bytes(8, "little").ljust(16 << order, b"\0")


@cache
def _shared() -> dict[bytes, int]:
    """Return the units of the shared strings, of 32 bytes each (the last one 64)."""
    texts = (*NAMES, STATE)
    return {text: 2 + 2 * number for number, text in enumerate(texts)}


def _head(nodes: int, size: int) -> bytes:
    """Return the first group: the header, the shared strings, free blocks."""
    header = struct.pack("<HH4sQQQ", 0x0201, 2, b"INSP", 2 * nodes, size, 0)
    out = header + b"".join(_string(text, 1, nodes) for text in _shared())
    while len(out) < GROUP:
        out += _free(min(_order_at(len(out)), 7))
    return out


def _order_at(offset: int) -> int:
    """Return the order of the largest block that a buddy allocator may place at an offset."""
    alignment = offset & -offset
    return alignment.bit_length() - 5


@cache
def _group(base: int) -> NDArray[np.uint64]:
    """Return one group as words, with all indexes as if it began at index ``base``."""
    shared = _shared()
    nodes = [base + place // 2 for place in NODE_PLACES]

    def value(kind: int, node: int, name: int, payload: int, order: int = 0) -> bytes:
        head = order | TYPE.put(kind) | HEAD.first.put(nodes[node])
        head |= HEAD.second.put(shared[NAMES[name]])
        return struct.pack("<QQ", head, payload)

    slots = [0, 10, 2, *(17 * bucket % 13 for bucket in range(BUCKETS + 2))]
    histogram = struct.pack(f"<{len(slots)}Q", *slots)
    histogram_payload = UINT | ARRAY_FORMAT.put(ARRAY_EXPONENTIAL) | SLOT_COUNT.put(len(slots))
    doubles = [0.25 * place for place in range(LATENCIES)]
    array = struct.pack(f"<{len(doubles)}d", *doubles)
    array_payload = DOUBLE | SLOT_COUNT.put(len(doubles))
    every_node = range(NODES)
    blocks = [
        (value(ARRAY, node, 8, histogram_payload, 5) + histogram).ljust(512, b"\0")
        for node in every_node
    ]
    blocks += [
        (value(ARRAY, node, 9, array_payload, 4) + array).ljust(256, b"\0") for node in every_node
    ]
    blocks += [_string(URL.ljust(200, b"."), 4, 1)] * NODES
    blocks += [_string(b"node-0000000", 1, 1)] * NODES
    for node in every_node:
        head = TYPE.put(NODE) | HEAD.first.put(nodes[0] if node else 0)
        head |= HEAD.second.put(base + NAME_PLACES[node] // 2)
        blocks.append(struct.pack("<QQ", head, PROPERTIES))
    for node in every_node:
        blocks += [value(kind, node, name, 0) for name, kind in enumerate((INT, INT, UINT, UINT))]
        bits = int.from_bytes(struct.pack("<d", 0.5 + node), "little")
        blocks.append(value(DOUBLE, node, 4, bits))
        blocks.append(value(BOOL, node, 5, node % 2))
        state = STRING_FORMAT | BUFFER_EXTENT.put(shared[STATE])
        blocks.append(value(BUFFER, node, 6, state))
        url = STRING_FORMAT | BUFFER_EXTENT.put(base + URL_PLACES[node] // 2)
        blocks.append(value(BUFFER, node, 7, url))
    data = b"".join(blocks)
    while len(data) < GROUP:
        order = _order_at(len(data))
        while (16 << order) > GROUP - len(data):
            order -= 1
        data += _free(order)
    return np.frombuffer(data, "<u8").astype(np.uint64)


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
