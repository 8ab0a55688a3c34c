"""What users rely on in the tables of Inspect VMOs, told from blocks made by hand."""

from __future__ import annotations

import itertools
import random
import struct
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fx_inspect.format import ARRAY_EXPONENTIAL, FROZEN_GENERATION, UNIT
from fx_inspect.read.capture import InspectCapture
from fx_inspect.sample import NODES, PROPERTIES, sample
from fxframework.errors import LimitError, StrictError, UsageError
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.model.strings import TextColumn

from ...cases import cases
from . import trees
from .trees import FILES, HEADER, image

Row = dict[str, Any]


class Vmo(trees.Vmo):
    """A VMO whose names have blocks as large as they need."""

    def name(self, text: str, order: int = 0) -> int:
        """Append a NAME."""
        while len(text.encode()) > (UNIT << order) - 8:
            order += 1
        return super().name(text, order)


def opened(data: bytes | bytearray, **options: Any) -> InspectCapture:
    return InspectCapture(Source.open(bytes(data)), OpenRequest(options=options))


def rows(capture: InspectCapture, name: str = "properties") -> list[Row]:
    """The rows of a table, values as tasks read them."""
    table = capture.table(name)
    shown = [table.plain(column) for column in table.columns]
    return [dict(zip(table.columns, row, strict=True)) for row in zip(*shown, strict=True)]


def codes(capture: InspectCapture) -> list[str]:
    capture.scan()
    return sorted(capture.diagnostics.counts)


def paths(capture: InspectCapture) -> list[str | None]:
    return capture.table("nodes").texts("path")


# --- Nodes ---------------------------------------------------------------------------------------


def test_a_node_comes_before_its_children_and_these_in_the_order_of_their_blocks() -> None:
    vmo = Vmo()
    a = vmo.node("a")
    vmo.node("b")
    vmo.node("first", a)
    vmo.node("second", a)
    vmo.node("a")
    found = rows(opened(vmo.data), "nodes")
    assert [(row["id"], row["parent"], row["name"], row["path"]) for row in found] == [
        (0, -1, "root", "root"),
        (1, 0, "a", "root/a"),
        (2, 1, "first", "root/a/first"),
        (3, 1, "second", "root/a/second"),
        (4, 0, "b", "root/b"),
        (5, 0, "a", "root/a"),
    ]
    assert [row["inspect_block"] for row in found[:2]] == [0, a]
    assert [row["offset"] for row in found[:2]] == [0, UNIT * a]


def test_a_child_may_stand_before_its_parent() -> None:
    vmo = Vmo()
    child = vmo.node("child", 4)
    assert (child, vmo.node("parent")) == (2, 4)
    vmo.integer("value", 3, child)
    capture = opened(vmo.data)
    assert paths(capture) == ["root", "root/parent", "root/parent/child"]
    assert [row["node"] for row in rows(capture)] == [2]


def test_a_deep_tree_is_read_and_its_longest_paths_are_left_out() -> None:
    vmo = Vmo()
    name = vmo.name("a" * 8)
    parent = 0
    for _ in range(3000):
        parent = vmo.add("NODE_VALUE", parent=parent, name=name, reference_count=1)
    capture = opened(vmo.data)
    nodes = capture.table("nodes")
    assert nodes.array("parent").tolist() == list(range(-1, 3000))
    found = nodes.array("path")
    assert found[0] >= 0
    assert nodes.texts("path")[2] == "root/aaaaaaaa/aaaaaaaa"
    assert found[-1] == -1
    assert (np.diff((found < 0).astype(int)) >= 0).all()
    assert sum(map(len, capture.strings)) < 2 * len(vmo.data) + (1 << 18)


def test_what_is_in_no_tree_is_reported_and_no_row() -> None:
    vmo = Vmo()
    kept = vmo.node("kept")
    vmo.node("orphan", 0xFFFF)
    name = vmo.name("cycle")
    here = len(vmo.data) // UNIT
    vmo.add("NODE_VALUE", parent=here + 1, name=name, reference_count=1)
    vmo.add("NODE_VALUE", parent=here, name=name, reference_count=1)
    vmo.integer("below a cycle", 1, here)
    capture = opened(vmo.data)
    assert [row["inspect_block"] for row in rows(capture, "nodes")] == [0, kept]
    assert rows(capture) == []
    places = {(found.code, found.offset) for found in capture.diagnostics}
    assert ("FXI0222", UNIT * here) in places
    assert "FXI0221" in {code for code, _ in places}


# --- Properties ----------------------------------------------------------------------------------


def test_each_type_has_its_column() -> None:
    vmo = Vmo()
    name = vmo.text(b"p", count=6)
    shared = vmo.text(b"shared", count=1)
    extent = vmo.add("EXTENT", order=1, next_extent=0, payload=b"\0\1\2\xff" + bytes(20))
    common = {"parent": 0, "name": name}
    vmo.add("INT_VALUE", **common, value=-9)
    vmo.add("UINT_VALUE", **common, value=(1 << 64) - 1)
    vmo.add("DOUBLE_VALUE", **common, value=-3.5)
    vmo.add("BOOL_VALUE", **common, value=True)
    vmo.add("BUFFER_VALUE", **common, total_length=0, extent=shared, format=2)
    vmo.add("BUFFER_VALUE", **common, total_length=4, extent=extent, format=1)
    capture = opened(vmo.data)
    found = [
        (row["type"], row["int"], row["uint"], row["float"], row["inspect_format"])
        for row in rows(capture)
    ]
    assert found == [
        ("int", -9, 0, 0.0, 0),
        ("uint", 0, (1 << 64) - 1, 0.0, 0),
        ("double", 0, 0, -3.5, 0),
        ("bool", 1, 0, 0.0, 0),
        ("string", 0, 0, 0.0, 2),
        ("bytes", 0, 0, 0.0, 1),
    ]
    text = capture.table("properties")["text"]
    assert isinstance(text, TextColumn)
    assert [text.bytes_of(row) for row in range(4, 6)] == [b"shared", b"\0\1\2\xff"]
    assert set(capture.diagnostics.counts) == {"FXI0225"}


def test_a_string_goes_on_in_extents() -> None:
    capture = opened(image(FILES["img_long_string_ref"]))
    (row,) = rows(capture)
    assert (len(row["text"]), row["text"][:9], row["text"][-7:]) == (2800, "abcdefgab", "abcdefg")


def test_slots_follow_each_other_as_their_arrays_do() -> None:
    capture = opened(image(FILES["img_arrays_histograms"]))
    properties, slots = rows(capture), rows(capture, "inspect_slots")
    arrays = {row["name"]: row["array"] for row in properties}
    assert [(row["name"], row["type"], row["inspect_format"]) for row in properties] == [
        ("d", "double_array", 0),
        ("sl", "string_array", 0),
        ("lin", "int_array", 1),
        ("exp", "uint_array", ARRAY_EXPONENTIAL),
    ]

    def of(name: str, column: str) -> list[Any]:
        first, count = arrays[name]
        assert {row["parent"] for row in slots[first : first + count]} == {list(arrays).index(name)}
        assert [row["slot"] for row in slots[first : first + count]] == list(range(count))
        return [row[column] for row in slots[first : first + count]]

    assert of("d", "float") == [-1.2, 2.3, 3.4, 4.5, -5.6]
    assert of("sl", "str") == ["", "one", "two", "one"]
    assert of("lin", "int") == [1, 2, 1, 1, 1, 1, 1]
    assert of("exp", "uint") == [1, 1, 2, 0, 1, 1, 2, 0, 0, 0]


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    vmo = Vmo()
    name = vmo.text(b"n\xff")
    vmo.add("INT_VALUE", parent=0, name=name, value=1)
    capture = opened(vmo.data)
    (code,) = capture.table("properties").array("name").tolist()
    assert capture.strings.bytes_of(code) == b"n\xff"
    assert codes(capture) == ["FXI0204"]


def test_extents_that_strings_share_give_no_more_than_the_file_has() -> None:
    vmo = Vmo()
    extents = [
        vmo.add("EXTENT", order=3, next_extent=0, payload=bytes([65 + number]) * 120)
        for number in range(4)
    ]
    for before, after in itertools.pairwise(extents):
        vmo.retarget(before, "next_extent", after)
    name = vmo.name("n")
    for _ in range(40):
        vmo.add(
            "BUFFER_VALUE", parent=0, name=name, total_length=480, extent=extents[0], format=0
        )  # fmt: skip
    capture = opened(vmo.data)
    text = capture.table("properties")["text"]
    assert isinstance(text, TextColumn)
    assert text.data.size == len(vmo.data)
    assert text.bytes_of(0) == b"A" * 120 + b"B" * 120 + b"C" * 120 + b"D" * 120
    assert text.bytes_of(39) == b""
    assert {"FXI0208", "FXI0303"} < set(codes(capture))


# --- Links ---------------------------------------------------------------------------------------


def linking(*links: tuple[str, str, int], value: int = 0) -> bytes:
    """A VMO with an int property, and links of these names, contents and dispositions."""
    vmo = Vmo()
    vmo.integer("own", value)
    for name, content, disposition in links:
        vmo.add(
            "LINK_VALUE", parent=0, name=vmo.name(name), content=vmo.name(content),
            disposition=disposition,
        )  # fmt: skip
    return bytes(vmo.data)


def linked(data: bytes, links: Mapping[str, Any] | str, **options: Any) -> InspectCapture:
    return opened(data, links=links, link_depth=options.pop("link_depth", 16), **options)


def test_a_link_that_is_not_followed_is_a_row_and_is_said_once() -> None:
    capture = opened(linking(("lazy", "lazy-0", 0), ("values", "values-1", 1)))
    assert [
        (row["node"], row["name"], row["content"], row["disposition"], row["state"])
        for row in rows(capture, "inspect_links")
    ] == [
        (0, "lazy", "lazy-0", "child", "not expanded"),
        (0, "values", "values-1", "inline", "not expanded"),
    ]
    assert rows(capture, "nodes")[0]["links"] == 2
    assert capture.diagnostics.counts == {"FXI0605": 1}


def test_what_links_lead_to_is_joined_as_they_say() -> None:
    main = linking(("lazy", "a-0", 0), ("more", "b-1", 1), value=1)
    deeper = linking(("under", "c-2", 0), value=2)
    capture = linked(
        main, {"a-0": deeper, "b-1": linking(value=3), "c-2": linking(value=4), "x": b""}
    )
    assert paths(capture) == ["root", "root/lazy", "root/lazy/under"]
    found = [(row["node"], row["name"], row["int"]) for row in rows(capture)]
    assert found == [(0, "own", 1), (0, "own", 3), (1, "own", 2), (2, "own", 4)]
    links = rows(capture, "inspect_links")
    assert [(row["node"], row["name"], row["state"]) for row in links] == [
        (0, "lazy", "expanded"), (0, "more", "expanded"), (1, "under", "expanded"),
    ]  # fmt: skip
    assert [row["links"] for row in rows(capture, "nodes")] == [2, 1, 0]
    # What a link brought stands where the link does.
    assert [row["offset"] for row in rows(capture, "nodes")][1:] == [links[0]["offset"]] * 2
    assert not len(capture.diagnostics)


def test_arrays_of_joined_trees_keep_their_slots() -> None:
    arrays = image(FILES["img_arrays_histograms"])
    capture = linked(linking(("x", "x-0", 1), ("y", "y-1", 0)), {"x-0": arrays, "y-1": arrays})
    slots = rows(capture, "inspect_slots")
    values = [
        [slot["float"] or slot["str"] or slot["int"] or slot["uint"] or 0 for slot in slots[at:end]]
        for at, end in ((row["array"][0], sum(row["array"])) for row in rows(capture))
    ]
    once = [
        [-1.2, 2.3, 3.4, 4.5, -5.6], [0, "one", "two", "one"], [1, 2, 1, 1, 1, 1, 1],
        [1, 1, 2, 0, 1, 1, 2, 0, 0, 0],
    ]  # fmt: skip
    assert values == [[], *once, *once]
    assert [row["parent"] for row in slots] == sorted(row["parent"] for row in slots)
    batched = [row for batch in capture.batches("inspect_slots", 3) for row in batch.array("slot")]
    assert batched == [row["slot"] for row in slots]


@cases(
    ("links", "depth", "state", "code"),
    [
        ({}, 16, "not found", "FXI0601"),
        ({"a-0": b"no VMO at all, of that many bytes"}, 16, "not readable", "FXI0602"),
        ({"a-0": b""}, 16, "not readable", "FXI0602"),
        ({"a-0": HEADER}, 0, "too deep", "FXI0604"),
    ],
)
def test_a_link_that_leads_nowhere_stays(
    links: dict[str, bytes], depth: int, state: str, code: str
) -> None:
    capture = linked(linking(("lazy", "a-0", 0)), links | {"z": b""}, link_depth=depth)
    (link,) = rows(capture, "inspect_links")
    assert link["state"] == state
    assert [(found.code, found.offset) for found in capture.diagnostics] == [(code, link["offset"])]
    assert paths(capture) == ["root"]


def test_losses_in_the_tree_of_a_link_are_reported_at_the_link() -> None:
    damaged = linking(("under", "b-1", 1), value=2) + b"cut"
    odd = b"".join((HEADER[:8], struct.pack("<Q", 1), HEADER[16:]))
    main = linking(("lazy", "a-0", 0), ("more", "a-0", 1), ("odd", "c-2", 0))
    capture = linked(main, {"a-0": damaged, "b-1": linking(value=3), "c-2": odd})
    assert [row["int"] for row in rows(capture)] == [0, 2, 3, 2, 3]
    links = rows(capture, "inspect_links")
    assert {row["state"] for row in links} == {"expanded"}
    assert [(found.code, found.offset) for found in capture.diagnostics] == [
        ("FXI0606", row["offset"]) for row in links[:2]
    ]  # a copy during a change is a warning of its own file


@cases(
    ("options", "match"),
    [
        ({"links": "no/such/folder"}, "'no/such/folder' is a folder that does not exist"),
        ({"links": __file__}, "is not a folder"),
        ({"link_depth": -1}, "link_depth=-1 is negative"),
    ],
)
def test_links_that_could_not_be_followed_at_all_are_refused(
    options: dict[str, Any], match: str
) -> None:
    with pytest.raises(UsageError, match=match):
        opened(linking(("lazy", "a-0", 0)), **options)


def test_links_in_a_circle_end() -> None:
    circle = linking(("again", "a-0", 0), ("twice", "a-0", 1))
    capture = linked(linking(("lazy", "a-0", 0)), {"a-0": circle})
    assert paths(capture) == ["root", "root/lazy"]
    states = [row["state"] for row in rows(capture, "inspect_links")]
    assert states == ["expanded", "cycle", "cycle"]
    assert capture.diagnostics.counts == {"FXI0603": 2}


def test_links_that_multiply_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fx_inspect.read.links.MOST_ROWS", 500)
    ten = [(f"l{number}", "", 0) for number in range(10)]
    trees = {
        f"t-{depth}": linking(*((name, f"t-{depth + 1}", way) for name, _, way in ten))
        for depth in range(8)
    }
    capture = linked(linking(("lazy", "t-0", 0)), trees)
    assert len(capture.table("nodes")) < 500
    assert set(capture.diagnostics.counts) == {"FXI0604"}


def test_trees_are_found_in_a_folder_and_nowhere_else(tmp_path: Path) -> None:
    folder = tmp_path / "trees"
    folder.mkdir()
    (folder / "a-0.inspect").write_bytes(linking(value=5))
    (folder / "b-1").write_bytes(linking(value=6))
    (tmp_path / "secret").write_bytes(linking(value=7))
    wanted = ("a-0", "b-1", "../secret", str(tmp_path / "secret"), "..", ".")
    capture = linked(linking(*((name, name, 1) for name in wanted)), str(folder))
    assert [row["int"] for row in rows(capture)] == [0, 5, 6]
    states = [row["state"] for row in rows(capture, "inspect_links")]
    assert states == ["expanded", "expanded", *["not found"] * 4]


# --- Headers, heaps, summaries -------------------------------------------------------------------


def test_a_locked_vmo_is_read_and_reported_and_a_frozen_one_is_fine() -> None:
    locked = opened(image(FILES["val_generation_odd"]))
    assert paths(locked) == ["root", "root/node"]
    assert codes(locked) == ["FXI0005"]
    assert locked.summary().facts["locked"] is True
    frozen = opened(image(FILES["drv_frozen_offline"]))
    assert frozen.summary().facts["frozen"] is True
    assert frozen.summary().facts["generation"] == FROZEN_GENERATION
    assert "FXI0006" in codes(frozen)
    assert "FXI0005" not in codes(frozen)


def test_the_summary_says_how_the_heap_is_used() -> None:
    data = sample(1 << 14)
    capture = opened(data)
    summary = capture.summary()
    facts = summary.facts
    groups = len(data) // 4096 - 1
    assert summary.kinds == {"block": summary.records}
    assert summary.rows["nodes"] == 1 + groups * NODES
    assert summary.rows["properties"] == groups * NODES * PROPERTIES
    assert facts["version"] == 2
    assert facts["vmo_size"] == len(data) == facts["bytes_used"] + facts["bytes_free"]
    assert facts["blocks_by_type"]["NODE_VALUE"] == groups * NODES
    assert sum(facts["blocks_by_order"].values()) == summary.records
    by_order = facts["free_blocks_by_order"]
    assert (
        sum(count * (16 << int(order)) for order, count in by_order.items()) == facts["bytes_free"]
    )
    assert facts["largest_free_block"] == 2048
    assert facts["fragmentation_percent"] == round(100 * (1 - 2048 / facts["bytes_free"]), 1)
    assert facts["names"][0] == {"name": "node-0000000", "nbytes": 12, "uses": 1}


def test_what_a_component_says_of_its_vmo_is_in_the_summary() -> None:
    vmo = Vmo()
    statistics = vmo.node("fuchsia.inspect.Stats")
    vmo.integer("failed_allocations", 3, statistics)
    vmo.integer("current_size", 4096, statistics)
    facts = opened(vmo.data).summary().facts
    assert facts["allocation_failures"] == 3
    assert facts["statistics"] == {"failed_allocations": 3, "current_size": 4096}


def test_damage_is_counted_and_what_is_sound_is_read() -> None:
    data = image(FILES["drv_truncated_last_block"])
    capture = opened(data)
    assert paths(capture) == ["root", "root/ok"]
    assert capture.summary().kinds["damaged"] == 1
    assert capture.summary().facts["bytes_damaged"] == 16
    assert {"FXI0008", "FXI0011"} <= set(codes(capture))


# --- Selectors and comparing ---------------------------------------------------------------------


def test_selectors_choose_rows() -> None:
    vmo = Vmo()
    a, b = vmo.node("a"), vmo.node("b")
    vmo.integer("x", 1, a)
    vmo.integer("x", 2, b)
    chosen = opened(vmo.data).choose(["root/a:x"])
    assert chosen.table("properties").array("int").tolist() == [1]
    with pytest.raises(UsageError):
        opened(vmo.data).choose(["root/**/x"])


def test_entries_say_the_same_wherever_blocks_stand() -> None:
    one, other = Vmo(), Vmo()
    one.integer("x", 1, one.node("a"))
    other.name("not used")
    other.integer("x", 1, other.node("a"))

    def stated(vmo: Vmo) -> list[tuple[Any, ...]]:
        return [tuple(entry)[:3] for entry in opened(vmo.data).entries()]

    assert stated(one) == stated(other)
    assert len(stated(one)) == 3


# --- Limits --------------------------------------------------------------------------------------


def limited(data: bytes, **limits: int) -> InspectCapture:
    return InspectCapture(Source.open(data), OpenRequest(limits=Limits(**limits)))


def test_findings_are_listed_up_to_a_limit_and_all_counted() -> None:
    vmo = Vmo()
    for _ in range(9):
        vmo.add("INT_VALUE", parent=0, name=0xFFFF, value=1)
    capture = limited(bytes(vmo.data), max_findings=2)
    capture.scan()
    assert len(capture.diagnostics) == 2
    assert capture.diagnostics.counts == {"FXI0201": 9}


def test_strict_reading_stops_at_the_first_loss() -> None:
    request = OpenRequest(strict=True)
    capture = InspectCapture(Source.open(image(FILES["cpp_InvalidNameParsing"])), request)
    with pytest.raises(StrictError) as caught:
        capture.table("nodes")
    assert (caught.value.code, caught.value.offset) == ("FXI0201", UNIT)


def test_a_string_that_many_values_share_is_not_written_out_at_once() -> None:
    vmo = Vmo()
    shared = vmo.text(b"x" * 2000, order=7)
    for _ in range(400):
        vmo.add("BUFFER_VALUE", parent=0, name=shared, total_length=0, extent=shared, format=2)
    capture = limited(bytes(vmo.data), max_memory=100_000)
    table = capture.table("properties")
    with pytest.raises(LimitError):
        table["text"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fx_inspect.read.batches.TEXT_AT_ONCE", 50_000)
        texts = [text for batch in capture.batches("properties") for text in batch.texts("text")]
    assert texts == ["x" * 2000] * 400


def hostile(case: str) -> bytes:
    """A file of a third of a megabyte that asks for more than there is."""
    if case == "deep":
        vmo = Vmo()
        name = vmo.name("a" * 8)
        node = (3 << 8 | name << 40).to_bytes(8, "little") + bytes(8)
        deep = np.tile(np.frombuffer(node, "<u8"), 20_000)
        deep[::2] += np.arange(name, name + 20_000, dtype=np.uint64) << np.uint64(16)
        deep[0] &= ~np.uint64(0xFFFFFF << 16)
        return bytes(vmo.data) + deep.tobytes()
    if case == "long":
        value = struct.pack("<QQ", 7 << 8 | 1 << 40, 0xFFFFFFFF | 2 << 32)
        extent = struct.pack("<QQ", 8 << 8 | 2 << 16, 0)
        return HEADER + value + extent + bytes(300_000)
    whole = bytearray(sample(300_000))
    chance = random.Random(case)
    if case == "cut":
        return bytes(whole[: chance.randrange(len(whole))])
    for _ in range(300):
        whole[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
    return bytes(whole)


@cases("case", ["cut", "flipped", "deep", "long"])
def test_hostile_files_take_memory_in_proportion(case: str) -> None:
    data = hostile(case)
    opened(sample(1 << 14)).table("properties")  # whatever is imported is imported now
    tracemalloc.start()
    try:
        capture = opened(data)
        for name in capture.schemas:
            table = capture.table(name)
            for column in table.columns:
                table[column]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * len(data)
