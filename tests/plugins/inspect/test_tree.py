"""The plain tree: every file gives what is sound of it, and a finding for what is not."""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Any

from fx_inspect.read.capture import InspectCapture
from fx_inspect.rules import RULES
from fxframework.errors import Severity
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest

from ...cases import cases
from .trees import FILES, HEADER, Vmo, codes, every_type, image, read, shown, vectors

LEGACY = {vector["name"]: vector for vector in vectors("legacy_v0")}
EXPECTED = {
    "cpp_InvalidNameParsing": {"FXI0201"},
    "cpp_NameDoesNotFit": {"FXI0203"},
    "val_generation_odd": {"FXI0005"},
    "val_type_0xb0": {"FXI0101"},
    "val_array_entry_type_0": {"FXI0211"},
    "val_array_linear_empty": {"FXI0213"},
    "val_array_format3": {"FXI0213"},
    "val_array_of_arrays": {"FXI0211"},
    "snap_invalid_type": {"FXI0001", "FXI0101"},
    "snap_invalid_order_and_type": {"FXI0001", "FXI0012"},
    "snap_pending_write": {"FXI0005"},
    "snap_few_bytes_16": {"FXI0001"},
    "snap_few_bytes_5": {"FXI0001", "FXI0013"},
    "snap_scan_three_blocks": {"FXI0201"},
    "drv_self_parent_node": {"FXI0222"},
    "drv_two_node_cycle": {"FXI0222"},
    "drv_string_ref_bad_utf8": {"FXI0204"},
    "drv_name_bad_utf8": {"FXI0204"},
    "drv_array_slots_255_in_order2": {"FXI0212"},
    "drv_linear_histogram_4_slots": {"FXI0214"},
    "drv_unknown_link_disposition": {"FXI0217"},
    "drv_truncated_last_block": {"FXI0008", "FXI0011"},
    "drv_zero_size_in_header": {"FXI0007"},
    "drv_version_3": {"FXI0003"},
    "drv_block_order_12": {"FXI0012"},
}
"""Findings of WARNING or worse that each file has; one that is not here has none."""


def serious(data: bytes) -> set[str]:
    """Codes of WARNING or worse."""
    return {found.code for found in read(data)[1] if found.severity >= Severity.WARNING}


def wanted(vector: dict[str, Any]) -> dict[str, Any] | None:
    """The tree that a reference reader gives: that of C++ where Rust has none, or reads too far."""
    outcomes = vector["expected"]
    rust, cpp = outcomes["rust"], outcomes["cpp"]
    if vector["name"] == "cpp_NameDoesNotFit":
        rust = cpp
    tree = rust["tree"] if rust["ok"] else cpp.get("tree")
    assert tree is None or isinstance(tree, dict)
    return tree


@cases("name", FILES)
def test_a_file_gives_its_tree_and_a_finding_where_it_departs(name: str) -> None:
    vector = FILES[name]
    data = image(vector)
    tree, _ = read(data)
    expected = deepcopy(wanted(vector)) or {"name": "root", "properties": [], "children": []}
    if name == "drv_name_bad_utf8":
        expected["properties"][0]["name"] = "\ufffdab"
    assert shown(tree) == expected
    assert serious(data) == EXPECTED.get(name, set())
    assert bool(serious(data)) == (vector["negative"] or name == "snap_scan_three_blocks")


def test_version_0_gives_its_tree() -> None:
    data = image(LEGACY["legacy_small_tree"])
    assert shown(read(data)[0]) == LEGACY["legacy_small_tree"]["expected"]["tree"]
    assert not serious(data)
    assert not serious(image(LEGACY["legacy_header_v0"]))


def test_every_type_has_its_value() -> None:
    data = every_type()
    assert not serious(data)
    tree, _ = read(data)
    (child,) = tree.root.children
    values = {each.name: (each.type, each.value, each.format) for each in child.properties}
    assert values == {
        "int_valu": ("int", -7, None),
        "uint_val": ("uint", 1 << 63, None),
        "double_v": ("double", 0.5, None),
        "bool_val": ("bool", True, None),
        "b0": ("string", "utf-8", "utf8"),
        "b1": ("bytes", b"\0\1\2\3", "bytes"),
        "b2": ("string", "shared", "string_reference"),
        "numbers": ("uint_array", (0, 1, 2, 3, 4), "linear"),
        "shared": (
            "string_array",
            ("shared", "", bytes(range(65, 85)).decode() + "0123456789abcdef"),
            "flat",
        ),
    }
    (link,) = tree.root.links
    assert (link.name, link.content, link.disposition) == ("shared", "link-0", "inline")
    assert [each.name for each in tree.root.properties] == ["doubles"]


# --- Faults, one at a time -----------------------------------------------------------------------


def with_extents(*lengths: int, total: int, format: int = 1) -> tuple[Vmo, list[int], int]:
    """A buffer in extents of so many bytes; gives the indexes of the extents and of the buffer."""
    vmo = Vmo()
    name = vmo.name("b")
    value = vmo.add(
        "BUFFER_VALUE", parent=0, name=name, total_length=total, extent=0, format=format
    )
    extents = [
        vmo.add("EXTENT", next_extent=0, payload=bytes([number] * length).ljust(8, b"\0"))
        for number, length in enumerate(lengths, 97)
    ]
    chain = [value, *extents]
    for before, after in zip(chain, extents, strict=False):
        vmo.retarget(before, "extent" if before == value else "next_extent", after)
    return vmo, extents, value


def test_extents_are_joined() -> None:
    vmo, _, _ = with_extents(8, 8, 3, total=19)
    assert read(vmo.data)[0].root.properties[0].value == b"a" * 8 + b"b" * 8 + b"c" * 3
    assert codes(vmo.data) == []


@cases(
    ("next_extent", "code", "length"),
    [(0, "FXI0207", 8), (1000, "FXI0205", 8), (1, "FXI0205", 8)],
)
def test_a_broken_chain_cuts_the_value(next_extent: int, code: str, length: int) -> None:
    vmo, extents, value = with_extents(8, 8, total=16)
    vmo.retarget(extents[0], "next_extent", next_extent)
    assert read(vmo.data)[0].root.properties[0].value == b"a" * length
    assert codes(vmo.data) == [(code, value), ("FXI0306", extents[1])]


@cases("target", [1, 1000, "first"])
def test_a_chain_may_not_go_on_behind_the_text(target: int | str) -> None:
    vmo, extents, value = with_extents(8, 8, total=16)
    vmo.retarget(extents[1], "next_extent", extents[0] if target == "first" else target)
    assert read(vmo.data)[0].root.properties[0].value == b"a" * 8 + b"b" * 8
    assert codes(vmo.data) == [("FXI0227", value)]


def test_a_string_without_extents_has_no_next_index() -> None:
    vmo = Vmo()
    text = vmo.text(b"short", count=1)
    vmo.add("INT_VALUE", parent=0, name=text, value=1)
    vmo.retarget(text, "next_extent", text)
    assert codes(vmo.data) == [("FXI0227", text)]


@cases(("after", "fine"), [("next", True), ("larger", False), ("value", False), (1000, False)])
def test_free_lists_go_on_with_free_blocks_of_their_order(after: str | int, fine: bool) -> None:
    vmo = Vmo()
    places = {"value": vmo.integer("a", 1)}
    first = vmo.add("FREE", next_free=0)
    places["next"] = vmo.add("FREE", next_free=0)
    places["larger"] = vmo.add("FREE", 1, next_free=0)
    vmo.retarget(first, "next_free", places[after] if isinstance(after, str) else after)
    assert codes(vmo.data) == ([] if fine else [("FXI0307", first)])


def test_a_chain_that_is_a_ring_ends() -> None:
    vmo, extents, value = with_extents(8, 8, total=(1 << 32) - 1)
    vmo.retarget(extents[1], "next_extent", extents[0])
    assert read(vmo.data)[0].root.properties[0].value == b"a" * 8 + b"b" * 8
    assert codes(vmo.data) == [("FXI0206", value)]


def test_shared_extents_are_read_until_the_file_is_used_up() -> None:
    vmo, extents, _ = with_extents(*[8] * 8, total=64)
    for number in range(8):
        name = vmo.name(f"s{number}")
        vmo.add(
            "BUFFER_VALUE",
            parent=0,
            name=name,
            total_length=64,
            extent=extents[0],
            format=1,
        )
    size = len(vmo.data)
    values = [each.value for each in read(vmo.data)[0].root.properties]
    assert sum(len(value) for value in values if isinstance(value, bytes)) == size
    assert values[1] == values[0]
    found = codes(vmo.data)
    assert [index for code, index in found if code == "FXI0303"] == extents
    assert "FXI0208" in dict(found)


def test_strings_go_on_in_extents() -> None:
    vmo = Vmo()
    extent = vmo.add("EXTENT", next_extent=0, payload=b"efghijkl")
    name = vmo.text(b"abcdefgh", order=0, next_extent=extent, count=2)
    value = vmo.add("BUFFER_VALUE", parent=0, name=name, total_length=0, extent=name, format=2)
    # Of order 0 there are four bytes inline, the others are in the extent.
    found = read(vmo.data)[0].root.properties[0]
    assert (found.name, found.value) == ("abcdefgh", "abcdefgh")
    assert codes(vmo.data) == []
    vmo.retarget(value, "extent", extent)
    assert codes(vmo.data) == [("FXI0210", value), ("FXI0305", name)]


def array(entry: int = 4, format: int = 0, count: int = 2, **more: Any) -> bytes:
    vmo = Vmo()
    name = vmo.name("a")
    index = vmo.add(
        "ARRAY_VALUE", 1, parent=0, name=name, entry_type=4, format=0, count=2, slots=(1, 2)
    )
    vmo.put(index, 1, entry | format << 4 | count << 8)
    for word, value in more.items():
        vmo.put(index + 1, int(word[1:]), value)
    return bytes(vmo.data)


@cases(
    ("data", "code", "value"),
    [
        (array(entry=7), "FXI0211", None),
        (array(count=3), "FXI0212", None),
        (array(entry=14, count=5), "FXI0212", None),
        (array(format=1, count=0), "FXI0213", None),
        (array(format=2), "FXI0214", (1, 2)),
        (array(format=9), "FXI0215", (1, 2)),
        (array(entry=14, format=1, w0=0), "FXI0215", ("", "")),
        (array(entry=14, w0=78 << 32 | 77), "FXI0216", ("", "")),
    ],
)
def test_a_faulty_array_is_dropped_or_kept_as_it_is(
    data: bytes, code: str, value: tuple[Any, ...] | None
) -> None:
    properties = read(data)[0].root.properties
    assert [each.value for each in properties] == ([] if value is None else [value])
    assert codes(data) == [(code, 2)]


def test_an_empty_flat_array_is_kept() -> None:
    data = array(count=0)
    assert read(data)[0].root.properties[0].value == ()
    assert codes(data) == []


def test_values_without_a_name_are_dropped() -> None:
    vmo = Vmo()
    node = vmo.node("node", values=1)
    inner = vmo.integer("inner", 1, parent=node)
    assert codes(vmo.data) == []
    for name, code in ((0, "FXI0202"), (node, "FXI0202"), (4000, "FXI0201")):
        broken = Vmo()
        broken.data[:] = vmo.data
        broken.retarget(node, "name", name)
        tree, _ = read(broken.data)
        assert tree.root.children == []
        assert codes(broken.data) == [(code, node), ("FXI0306", node - 1)]
        # What is below the node goes with it, and is not reported once more.
        assert inner not in dict(codes(broken.data)).values()


def test_links_say_what_they_lead_to() -> None:
    vmo = Vmo()
    content = vmo.text(b"other-0", count=1)
    name = vmo.name("link")
    link = vmo.add("LINK_VALUE", parent=0, name=name, content=content, disposition=0)
    found = read(vmo.data)[0].root.links[0]
    assert (found.content, found.disposition, found.block) == ("other-0", "child", link)
    vmo.retarget(link, "disposition", 5)
    assert read(vmo.data)[0].root.links[0].disposition == "?"
    vmo.retarget(link, "content", link)
    assert read(vmo.data)[0].root.links == []
    assert codes(vmo.data) == [("FXI0218", link), ("FXI0306", content)]


@cases("order", [0, 1])
def test_buffers_of_unknown_formats_are_dropped(order: int) -> None:
    vmo = Vmo()
    name = vmo.name("b")
    value = vmo.add("BUFFER_VALUE", order, parent=0, name=name, total_length=0, extent=0, format=3)
    assert read(vmo.data)[0].root.properties == []
    assert codes(vmo.data) == [("FXI0209", value)]


# --- The tree ------------------------------------------------------------------------------------


def test_orphans_are_reported_once_with_all_below_them() -> None:
    vmo = Vmo()
    free = vmo.add("FREE", next_free=0)
    vmo.retarget(free, "next_free", 1)
    lost = vmo.node("lost", parent=free, values=1)
    vmo.integer("inner", 1, parent=lost)
    nowhere = vmo.integer("nowhere", 1, parent=12345)
    number = vmo.integer("number", 1)
    below = vmo.integer("below", 1, parent=number)
    tree, _ = read(vmo.data)
    assert [each.name for each in tree.root.properties] == ["number"]
    assert codes(vmo.data) == [("FXI0221", lost), ("FXI0221", nowhere), ("FXI0221", below)]


def test_cycles_are_reported_once() -> None:
    vmo = Vmo()
    nodes = [vmo.node(f"n{number}", values=1) for number in range(5)]
    for node, parent in zip(nodes, (1, 2, 0, 0, 4), strict=True):
        vmo.retarget(node, "parent", nodes[parent])
    vmo.retarget(nodes[0], "reference_count", 2)
    vmo.retarget(nodes[3], "reference_count", 0)
    # 0 -> 1 -> 2 -> 0 is a cycle, 3 hangs below it, 4 is its own parent.
    tree, _ = read(vmo.data)
    assert tree.root.children == []
    assert codes(vmo.data) == [("FXI0222", nodes[0]), ("FXI0222", nodes[4])]


def test_tombstones_hide_what_is_below_them() -> None:
    vmo = Vmo()
    gone = vmo.node("gone", values=1)
    vmo.node("inner", parent=gone)
    vmo.data[gone * 16 + 1] = 10
    tree, _ = read(vmo.data)
    assert tree.root.children == []
    assert codes(vmo.data) == [("FXI0223", gone)]


def test_duplicates_are_kept_and_told() -> None:
    vmo = Vmo()
    vmo.node("a")
    again = vmo.node("a")
    vmo.integer("a", 1)
    twice = vmo.integer("a", 2)
    tree, _ = read(vmo.data)
    assert [each.name for each in tree.root.children] == ["a", "a"]
    assert [each.value for each in tree.root.properties] == [1, 2]
    assert codes(vmo.data) == [("FXI0224", again), ("FXI0225", twice)]


def test_a_tree_may_be_deep() -> None:
    vmo = Vmo()
    parent, depth = 0, 4_000
    for number in range(depth):
        parent = vmo.node("n", parent, values=int(number + 1 < depth))
    tree, found = read(vmo.data)
    assert max(depth for _, depth in tree.walk()) == depth
    assert found == []


# --- What the validator looks at -----------------------------------------------------------------


def test_double_use_and_counts() -> None:
    vmo = Vmo()
    name = vmo.name("a")
    vmo.add("INT_VALUE", parent=0, name=name, value=1)
    node = vmo.add("NODE_VALUE", parent=0, name=name, reference_count=3)
    text = vmo.text(b"t", count=2)
    vmo.add("INT_VALUE", parent=node, name=text, value=1)
    unused = vmo.text(b"u", count=1)
    extent = vmo.add("EXTENT", next_extent=0, payload=bytes(8))
    assert codes(vmo.data) == [
        ("FXI0302", name),
        ("FXI0304", node),
        ("FXI0305", text),
        ("FXI0306", unused),
        ("FXI0306", extent),
    ]


def test_reserved_bits_are_told() -> None:
    vmo = Vmo()
    extent = vmo.add("EXTENT", next_extent=0, payload=b"x" * 8)
    name = vmo.name("b")
    value = vmo.add("BUFFER_VALUE", parent=0, name=name, total_length=8, extent=extent, format=0)
    vmo.put(extent, 0, vmo.word(extent, 0) | 1 << 63)
    vmo.put(name, 0, vmo.word(name, 0) | 1 << 28)
    vmo.put(value, 0, vmo.word(value, 0) | 1 << 4)
    assert codes(vmo.data) == [("FXI0301", extent), ("FXI0301", name), ("FXI0301", value)]


def test_findings_say_what_is_wrong() -> None:
    """The count, the type, the length and the index, not the words that have them."""
    vmo, extents, _ = with_extents(8, 8, total=40)
    vmo.retarget(extents[1], "next_extent", extents[1])
    long = vmo.name("name")
    vmo.retarget(long, "length", 500)
    vmo.add("INT_VALUE", parent=0, name=long, value=1)
    content = vmo.name("c")
    link = vmo.add("LINK_VALUE", parent=0, name=vmo.name("l"), content=content, disposition=0)
    vmo.put(link, 1, vmo.word(link, 1) | 1 << 30)
    found = {}
    for data in (vmo.data, array(entry=7), array(count=3)):
        with InspectCapture(Source.open(bytes(data)), OpenRequest()) as capture:
            capture.scan()
            found |= {each.code: each.message for each in capture.diagnostics}
    assert found["FXI0203"].endswith(": 500 bytes")
    assert found["FXI0206"].endswith(f"index {extents[1]}")
    assert found["FXI0211"].endswith("type 7")
    assert found["FXI0212"].endswith(": 3 slots")
    assert found["FXI0301"].endswith(f"0x{vmo.word(link, 1):016x}")


# --- Hostile bytes -------------------------------------------------------------------------------


@cases("name", ["img_all_scalars", "img_arrays_histograms"])
def test_truncations_give_what_is_left(name: str) -> None:
    whole = image(FILES[name])
    data = whole.rstrip(b"\0")
    for length in (*range(0, 600, 5), *range(600, len(data), 97)):
        tree, found = read(data[:length])
        assert tree.root.name == "root"
        assert not length or found


def test_flipped_bits_never_raise() -> None:
    randomly = random.Random(7)
    data = bytearray(every_type().rstrip(b"\0"))
    for _ in range(120):
        places = [randomly.randrange(8 * len(data)) for _ in range(randomly.randint(1, 4))]
        for place in places:
            data[place // 8] ^= 1 << place % 8
        tree, found = read(bytes(data))
        assert len(list(tree.walk())) <= len(data) // 16
        assert all(each.code in RULES for each in found)
        for place in places:
            data[place // 8] ^= 1 << place % 8


def test_nothing_is_read_from_nothing() -> None:
    assert shown(read(b"")[0]) == {"name": "root", "properties": [], "children": []}
    assert codes(HEADER) == []
