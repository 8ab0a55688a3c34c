"""The writer: values by themselves, against the reference's images, and what it refuses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fx_emulator.vmo import Vmo
from fx_inspect.format import DEFAULT_VMO, FROZEN_GENERATION, MAX_LINK_INDEX, MAX_REFERENCES
from fx_inspect.read.decoder import RecordDecoder
from fx_inspect.rules import RULES
from fx_inspect.write.writer import STATS_NODE, Inspector, open_writer
from fxframework.errors import WriteRefusedError
from fxframework.io.memory import BytesMemory
from fxframework.io.sink import Sink
from fxframework.model.diagnostics import Diagnostics

from ...cases import cases
from .trees import FILES, image, read, shown, vectors


def tree(inspector: Inspector) -> dict[str, Any]:
    data = inspector.copy()
    assert data is not None
    return shown(read(data)[0])


def properties(inspector: Inspector) -> dict[str, Any]:
    """The properties of the root: what they say, by their names."""
    found = {}
    for each in tree(inspector)["properties"]:
        name = each.pop("name")
        (found[name],) = each.values()
    return found


# --- The reference's images, byte for byte -------------------------------------------------------


def all_scalars(inspector: Inspector) -> None:
    child = inspector.root.create_child("child")
    child.create_int("int", -9)
    child.create_uint("uint", (1 << 64) - 1)
    child.create_double("double", -3.4)
    child.create_bool("bool", True)
    child.create_string("s", "hello")
    inspector.root.create_string("s2", "hello")
    child.create_bytes("b", bytes(range(20)))


def long_string(inspector: Inspector) -> None:
    inspector.root.create_string("big", "abcdefg" * 400)


def arrays_and_histograms(inspector: Inspector) -> None:
    child = inspector.root.create_child("child-1")
    with inspector.transaction():
        linear = child.create_int_linear_histogram("lin", 1, 2, 3)
        for value in (-1, 2, 3, 5, 8):
            linear.insert(value)
    with inspector.transaction():
        exponential = child.create_uint_exponential_histogram("exp", 1, 1, 2, 5)
        for value in (1, 2, 3, 4):
            exponential.insert(value)
    inspector.root.create_double_array("d", [-1.2, 2.3, 3.4, 4.5, -5.6])
    inspector.root.create_string_array("sl", ["", "one", "two", "one"])


def tombstone(inspector: Inspector) -> None:
    inspector.root.create_child("child1")
    gone = inspector.root.create_child("child2")
    gone.create_string("val", "test")
    gone.delete()


@cases(
    ("name", "write"),
    [
        ("img_all_scalars", all_scalars),
        ("img_long_string_ref", long_string),
        ("img_arrays_histograms", arrays_and_histograms),
        ("img_tombstone", tombstone),
    ],
)
def test_the_images_of_the_reference(name: str, write: Callable[[Inspector], None]) -> None:
    inspector = Inspector()
    write(inspector)
    assert inspector.copy() == image(FILES[name])


def test_a_name_that_is_larger_than_the_vmo_is_cut_where_the_reference_cuts_it() -> None:
    inspector = Inspector()
    made = inspector.root.create_int("x" * 524288, 3)
    assert made.exists
    (found,) = tree(inspector)["properties"]
    assert found == {"name": "x" * 259076, "int": 3}
    assert inspector.stats().failed_allocations == 1


# --- Numbers -------------------------------------------------------------------------------------


def test_integers_stop_at_their_ends_as_in_rust() -> None:
    inspector = Inspector()
    low = inspector.root.create_int("low", -(1 << 63) + 1)
    high = inspector.root.create_int("high", (1 << 63) - 2)
    none = inspector.root.create_uint("none", 3)
    most = inspector.root.create_uint("most", (1 << 64) - 3)
    double = inspector.root.create_double("double", 1.5)
    low.subtract(5)
    high.add(5)
    none.subtract(5)
    most.add(5)
    double.add(0.25)
    double.subtract(1)
    assert properties(inspector) == {
        "low": -(1 << 63),
        "high": (1 << 63) - 1,
        "none": 0,
        "most": (1 << 64) - 1,
        "double": 0.75,
    }


def test_numbers_of_numpy_are_numbers() -> None:
    inspector = Inspector()
    root = inspector.root
    root.create_int("i", 0).set(np.int32(-5))
    root.create_uint("u", np.uint64((1 << 64) - 1))
    root.create_double("d", np.float32(0.5))
    root.create_bool("b", np.True_)
    root.create_int_array("a", np.arange(3))
    assert properties(inspector) == {
        "i": -5, "u": (1 << 64) - 1, "d": 0.5, "b": True, "a": [0, 1, 2]
    }  # fmt: skip


def test_slots_that_are_not_there_ignore_it() -> None:
    inspector = Inspector()
    numbers = inspector.root.create_int_array("numbers", 3)
    texts = inspector.root.create_string_array("texts", 3)
    for index in (3, 4, 1000, 10000, (1 << 64) - 1):
        numbers.set(index, 1)
        numbers.add(index, 1)
        numbers.subtract(index, 1)
        texts.set(index, "no")
    numbers.set(2, 7)
    numbers.subtract(2, 9)
    assert properties(inspector) == {"numbers": [0, 0, -2], "texts": ["", "", ""]}
    assert len(numbers) == len(texts) == 3


# --- Histograms ----------------------------------------------------------------------------------


@cases("case", vectors("histograms")["inserts"], ids=lambda case: case["kind"])  # type: ignore[call-overload]
def test_histograms_count_as_the_reference_does(case: dict[str, Any]) -> None:
    inspector = Inspector()
    number, kind = case["kind"].split()
    names = ("floor", "step") if kind == "linear" else ("floor", "initial_step", "step_multiplier")
    parameters = [case[name] for name in names]
    make = getattr(inspector.root, f"create_{number}_{kind}_histogram")
    histogram = make("h", *parameters, case["buckets"])
    for value, count in case["inserts"]:
        histogram.insert_multiple(value, count)
    counts = properties(inspector)["h"]["counts"]
    if "slots" in case:
        assert parameters + counts == case["slots"]
    elif "counts" in case:
        assert counts == case["counts"]
    else:
        condensed = case["condensed"]
        expected = [0] * condensed["size"]
        for index, count in zip(condensed["indexes"], condensed["counts"], strict=True):
            expected[index] = count
        assert counts == expected


def test_each_value_goes_where_the_reference_puts_it() -> None:
    inspector = Inspector()
    histogram = inspector.root.create_int_exponential_histogram("h", 0, 2, 4, 4)
    for value in range(-200, 200):
        histogram.insert(value)
    assert properties(inspector)["h"]["counts"] == [200, 2, 6, 24, 96, 72]
    histogram.clear()
    found = properties(inspector)["h"]
    assert (found["floor"], found["initial_step"], found["counts"]) == (0, 2, [0] * 6)


def test_histograms_of_doubles() -> None:
    inspector = Inspector()
    histogram = inspector.root.create_double_linear_histogram("h", 0.1, 0.1, 3)
    for value in (float("-inf"), float("nan"), 0.1, 0.25, 0.3, 0.31, 5.0, float("inf")):
        histogram.insert(value)
    # 0.1 + 0.1 + 0.1 is more than 0.3, which the reference's additions tell it as well.
    assert properties(inspector)["h"]["counts"] == [2, 1, 2, 1, 2]


def test_a_histogram_that_does_not_rise_counts_as_the_reference_does() -> None:
    inspector = Inspector()
    flat = inspector.root.create_int_linear_histogram("flat", 5, 0, 2)
    falling = inspector.root.create_int_linear_histogram("falling", 5, -1, 2)
    for value in (4, 5, 6):
        flat.insert(value)
        falling.insert(value)
    assert properties(inspector)["flat"]["counts"] == [1, 0, 0, 2]
    assert properties(inspector)["falling"]["counts"] == [1, 0, 0, 2]


# --- Strings -------------------------------------------------------------------------------------


def test_strings_are_shared_and_counted() -> None:
    inspector = Inspector()
    strings = inspector._state.strings
    value = inspector.root.create_string("same", "same")
    array = inspector.root.create_string_array("array", ["same", "same", "other"])
    assert strings["same"].count == 4
    assert read(inspector.copy() or b"")[1] == []
    value.set("other")
    assert (strings["same"].count, strings["other"].count) == (3, 2)
    array.delete()
    assert (strings["same"].count, strings["other"].count) == (1, 1)
    value.delete()
    assert strings == {}


def test_setting_a_string_to_what_it_is_keeps_its_block() -> None:
    inspector = Inspector()
    value = inspector.root.create_string("s", "t" * 5000)
    before = inspector.stats()
    value.set("t" * 5000)
    assert inspector.stats() == before


@cases("version", [0, 1])
def test_names_of_old_versions_are_their_own(version: int) -> None:
    inspector = Inspector(version=version)
    inspector.root.create_int("same", 1)
    inspector.root.create_int("same", 2)
    inspector.root.create_string("text", "same")
    types = [record.type for record in RecordDecoder().records(inspector.copy() or b"")]  # type: ignore[attr-defined]
    assert types.count("NAME") == 3
    assert types.count("EXTENT") == 1
    assert "STRING_REFERENCE" not in types


# --- Deleting and moving -------------------------------------------------------------------------


def test_what_was_deleted_ignores_everything() -> None:
    inspector = Inspector()
    root = inspector.root
    values = [
        root.create_int("i", 1),
        root.create_string("s", "x"),
        root.create_bytes("b", b"x"),
        root.create_bool("t", True),
    ]
    array = root.create_int_array("a", 3)
    node = root.create_child("n")
    for value in (*values, array, node):
        value.delete()
        assert not value.exists
        assert (value.name, value.block) == ("", None)
    generation = inspector.generation
    for value, new in zip(values, (2, "y", b"y", False), strict=True):
        value.set(new)  # type: ignore[union-attr,arg-type]
        value.delete()
    values[0].add(1)  # type: ignore[union-attr]
    array.set(0, 1)
    array.clear()
    assert inspector.generation == generation
    assert not node.create_child("below").create_int("deeper", 1).exists
    assert tree(inspector) == {"name": "root", "properties": [], "children": []}


def test_a_deleted_node_with_children_is_a_tombstone_until_they_go() -> None:
    inspector = Inspector()
    node = inspector.root.create_child("node")
    first = node.create_int("first", 1)
    block = node.block
    node.delete()
    second = node.create_int("second", 2)
    assert second.exists
    assert tree(inspector)["children"] == []
    assert inspector.memory.load_u64(16 * (block or 0)) == 10 << 8
    first.delete()
    assert node.block == block
    second.delete()
    assert node.block is None
    assert not node.create_int("third", 3).exists


def test_reparenting_refuses_ancestors() -> None:
    inspector = Inspector()
    above = inspector.root.create_child("above")
    below = above.create_child("below")
    value = above.create_int("value", 1)
    for node, parent in ((above, below), (above, above), (inspector.root, below)):
        before = inspector.copy()
        with pytest.raises(WriteRefusedError) as caught:
            node.reparent(parent)
        assert caught.value.code == "FXI0412"
        assert node is not inspector.root or inspector.copy() == before
        assert tree(inspector)["children"][0]["name"] == "above"
    with pytest.raises(WriteRefusedError) as caught:
        value.reparent(Inspector().root)
    assert caught.value.code == "FXI0412"
    value.reparent(below)
    below.reparent(inspector.root)
    assert tree(inspector)["children"] == [
        {"name": "above", "properties": [], "children": []},
        {"name": "below", "properties": [{"name": "value", "int": 1}], "children": []},
    ]
    assert read(inspector.copy() or b"")[1] == []


# --- Links ---------------------------------------------------------------------------------------


def test_links_give_their_trees_when_they_are_asked_for() -> None:
    asked: list[str] = []

    def lazy(name: str) -> Callable[[], Inspector]:
        def give() -> Inspector:
            asked.append(name)
            inspector = Inspector()
            inspector.root.create_string("of", name)
            inspector.root.create_lazy_child("deeper", Inspector)
            return inspector

        return give

    inspector = Inspector()
    child = inspector.root.create_lazy_child("same", lazy("child"))
    values = inspector.root.create_lazy_values("same", lazy("values"))
    assert (child.content, values.content) == ("same-0", "same-1")
    assert tree(inspector)["links"] == [
        {"name": "same", "content": "same-0", "disposition": "child"},
        {"name": "same", "content": "same-1", "disposition": "inline"},
    ]
    assert asked == []
    trees = inspector.trees()
    assert asked == ["child", "values"]
    assert [properties(each) for each in trees.values()] == [{"of": "child"}, {"of": "values"}]
    assert list(trees["same-0"].trees()) == ["deeper-0"]
    child.delete()
    assert list(inspector.trees()) == ["same-1"]
    assert inspector.stats().total_dynamic_children == 1


# --- Periods -------------------------------------------------------------------------------------


def test_a_transaction_is_one_odd_period() -> None:
    inspector = Inspector()
    value = inspector.root.create_int("value", 0)
    assert inspector.generation == inspector.memory.load_u64(8) == 2
    with inspector.transaction():
        value.set(1)
        with inspector.transaction():
            inspector.root.create_child("child")
            assert inspector.copy() is None
        assert inspector.freeze() is None
        assert inspector.generation == inspector.memory.load_u64(8) == 3
    assert inspector.generation == inspector.memory.load_u64(8) == 4
    with pytest.raises(WriteRefusedError) as caught:
        inspector.end_transaction()
    assert caught.value.code == "FXI0413"


def test_an_exception_ends_the_transaction() -> None:
    inspector = Inspector()

    def work() -> None:
        with inspector.transaction():
            inspector.root.create_int("value", 1)
            raise KeyError

    with pytest.raises(KeyError):
        work()
    assert inspector.generation == 2


def test_the_generation_wraps_around() -> None:
    inspector = Inspector()
    value = inspector.root.create_int("value", 0)
    inspector._state.generation = (1 << 64) - 2
    inspector.memory.store_u64(8, (1 << 64) - 2)
    value.set(1)
    assert inspector.generation == inspector.memory.load_u64(8) == 0
    inspector._state.generation = (1 << 64) - 2
    value.add(1)
    assert inspector.generation == inspector.memory.load_u64(8) == 0


def test_a_frozen_copy_says_so_and_the_vmo_goes_on() -> None:
    inspector = Inspector()
    value = inspector.root.create_int("value", 5)
    frozen = inspector.freeze()
    assert frozen is not None
    assert int.from_bytes(frozen[8:16], "little") == FROZEN_GENERATION
    value.set(6)
    assert inspector.generation == 4
    assert shown(read(frozen)[0])["properties"] == [{"name": "value", "int": 5}]


def test_a_memory_that_fails_leaves_an_odd_generation() -> None:
    class Failing(BytesMemory):
        failing = False

        def store_u64(self, offset: int, value: int) -> None:
            if self.failing and offset != 8:
                raise OSError("lost")
            super().store_u64(offset, value)

    memory = Failing(4096)
    inspector = Inspector(memory)
    value = inspector.root.create_int("value", 5)
    memory.failing = True
    with pytest.raises(OSError, match="lost"):
        value.add(1)
    memory.failing = False
    value.add(1)
    assert memory.load_u64(8) & 1
    assert inspector.copy() is None


def test_several_threads_write() -> None:
    inspector = Inspector()
    counter = inspector.root.create_int("counter", 0)

    def work(number: int) -> None:
        node = inspector.root.create_child(f"thread {number}")
        for count in range(200):
            counter.add(1)
            node.create_string(f"{count % 7}", "shared").delete()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert properties(inspector) == {"counter": 800}
    assert inspector.generation == 2 * (1 + 4 + 4 * 200 * 3)
    assert read(inspector.copy() or b"")[1] == []


# --- Sizes and stats -----------------------------------------------------------------------------


def test_stats_are_those_of_the_reference() -> None:
    # What the reference's test of its stats counts after the same calls; its strings were in
    # extents then, as those of version 1 are.
    inspector = Inspector(version=1)
    inspector.record_lazy_stats()
    root = inspector.root
    root.create_lazy_child("foo", Inspector)
    for number in range(100):
        root.create_string(f"testing-{number}", "testing" * (number + 1))
    root.create_int("drop", 1).delete()
    stats = inspector.stats()
    assert (stats.current_size, stats.maximum_size) == (61440, DEFAULT_VMO)
    assert (stats.allocated_blocks, stats.deallocated_blocks) == (309, 2)
    for number in range(101, 220):
        root.create_string(f"testing-{number}", "testing" * (number + 1))
    stats = inspector.stats()
    assert (stats.current_size, stats.allocated_blocks) == (262144, 665)
    assert (stats.total_dynamic_children, stats.failed_allocations) == (2, 1)


def test_stats_are_recorded_on_request() -> None:
    inspector = Inspector(max_size=5000)
    inspector.record_lazy_stats()
    before = inspector.stats()
    assert (before.maximum_size, before.allocated_blocks) == (8192, 4)
    inspector.record_stats()
    (node,) = tree(inspector)["children"]
    assert node["name"] == STATS_NODE
    expected = {"current_size": 4096, "maximum_size": 8192, "total_dynamic_children": 1}
    assert {each["name"]: each["uint"] for each in node["properties"]}.items() >= expected.items()
    (lazy,) = inspector.trees().values()
    assert properties(lazy)["allocated_blocks"] == inspector.stats().allocated_blocks


@cases(("given", "maximum"), [(None, DEFAULT_VMO), (1, 4096), (4097, 8192), (128 << 20, 128 << 20)])
def test_sizes_are_rounded_up_to_pages(given: int | None, maximum: int) -> None:
    inspector = Inspector(max_size=given)
    assert (inspector.size, inspector.stats().maximum_size) == (4096, maximum)


def test_a_vmo_of_the_target_is_full_at_its_size() -> None:
    vmo = Vmo.create(8192)
    inspector = Inspector(vmo)
    big = inspector.root.create_bytes("big", bytes(100_000))
    assert big.exists
    assert inspector.size == 8192
    assert inspector.stats().failed_allocations == 1
    (found,) = tree(inspector)["properties"]
    assert 0 < len(found["bytes_hex"]) // 2 < 8192
    none = inspector.root.create_string("none", "y" * 3000)
    assert not none.exists
    none.set("z")
    assert read(vmo.read(0, 8192))[1] == []


def test_a_string_for_which_there_is_no_room_stays_as_it_was() -> None:
    inspector = Inspector(max_size=4096)
    value = inspector.root.create_string("value", "before")
    array = inspector.root.create_string_array("array", ["one"])
    inspector.root.create_bytes("rest", bytes(4000))
    while inspector.root.create_int("filler", 0).exists:
        pass
    value.set("after" * 100)
    array.set(0, "two" * 100)
    assert properties(inspector)["value"] == "before"
    assert properties(inspector)["array"] == ["one"]
    assert read(inspector.copy() or b"")[1][0].code == "FXI0225"


# --- What is refused -----------------------------------------------------------------------------


@cases(
    ("code", "call"),
    [
        ("FXI0403", lambda root: root.create_int("a", 1.5)),
        ("FXI0403", lambda root: root.create_int("a", True)),
        ("FXI0403", lambda root: root.create_int("a", "1")),
        ("FXI0403", lambda root: root.create_double("a", "1")),
        ("FXI0403", lambda root: root.create_bool("a", 1)),
        ("FXI0403", lambda root: root.create_string("a", b"1")),
        ("FXI0403", lambda root: root.create_bytes("a", "1")),
        ("FXI0403", lambda root: root.create_child(5)),
        ("FXI0403", lambda root: root.create_child("\ud800")),
        ("FXI0403", lambda root: root.create_int_array("a", "abc")),
        ("FXI0403", lambda root: root.create_int_array("a", [1, 2.5])),
        ("FXI0403", lambda root: root.create_lazy_child("a", None)),
        ("FXI0404", lambda root: root.create_int("a", 1 << 63)),
        ("FXI0404", lambda root: root.create_uint("a", -1)),
        ("FXI0404", lambda root: root.create_double("a", 10**400)),
        ("FXI0404", lambda root: root.create_int_array("a", [1 << 63])),
        ("FXI0404", lambda root: root.create_int_array("a", -1)),
        ("FXI0404", lambda root: root.create_int_linear_histogram("a", 0, 1, 0)),
        ("FXI0406", lambda root: root.create_int_array("a", 255)),
        ("FXI0406", lambda root: root.create_string_array("a", 256)),
        ("FXI0406", lambda root: root.create_int_linear_histogram("a", 0, 1, 251)),
        ("FXI0406", lambda root: root.create_int_exponential_histogram("a", 0, 1, 2, 250)),
    ],
)
def test_what_the_format_has_no_place_for_is_refused(
    code: str, call: Callable[[Any], object]
) -> None:
    inspector = Inspector()
    before = inspector.copy()
    with pytest.raises(WriteRefusedError) as caught:
        call(inspector.root)
    assert caught.value.code == code
    assert code in RULES
    assert inspector.copy() == before


@cases(
    ("code", "version", "call"),
    [
        ("FXI0410", 0, lambda root: root.create_bool("a", True)),
        ("FXI0410", 0, lambda root: root.create_string_array("a", 3)),
        ("FXI0410", 1, lambda root: root.create_string_array("a", 3)),
        ("FXI0405", 0, lambda root: root.create_int("n" * 2041, 1)),
        ("FXI0405", 1, lambda root: root.create_child("n" * 2041)),
        ("FXI0405", 1, lambda root: root.create_lazy_child("n" * 2040, Inspector)),
    ],
)
def test_what_old_versions_have_no_place_for_is_refused(
    code: str, version: int, call: Callable[[Any], object]
) -> None:
    inspector = Inspector(version=version)
    before = inspector.copy()
    with pytest.raises(WriteRefusedError) as caught:
        call(inspector.root)
    assert caught.value.code == code
    assert inspector.copy() == before
    assert inspector.root.create_int("n" * 2040, 1).exists


@cases(
    ("code", "options"),
    [
        ("FXI0404", {"version": 3}),
        ("FXI0403", {"growth": "triple"}),
        ("FXI0414", {"max_size": (128 << 20) + 1}),
        ("FXI0404", {"max_size": -1}),
    ],
)
def test_an_inspector_that_cannot_be_is_refused(code: str, options: dict[str, Any]) -> None:
    with pytest.raises(WriteRefusedError) as caught:
        Inspector(**options)
    assert caught.value.code == code


def test_a_link_whose_content_is_too_far_away_is_refused() -> None:
    inspector = Inspector(max_size=17 << 20)
    root = inspector.root
    filler = root.create_bytes("filler", bytes(17 << 20))
    for _ in range(2):
        inspector._state.free(filler._extents.pop())
    before = inspector.stats()
    with pytest.raises(WriteRefusedError) as caught:
        root.create_lazy_child("n" * 1100, Inspector)
    assert caught.value.code == "FXI0411"
    assert str(MAX_LINK_INDEX) in str(caught.value)
    assert not inspector.generation & 1
    after = inspector.stats()
    assert after.allocated_blocks - before.allocated_blocks == 3
    assert after.deallocated_blocks - before.deallocated_blocks == 3
    assert inspector.trees() == {}


def test_a_string_with_all_the_users_that_can_be_counted_is_refused() -> None:
    inspector = Inspector()
    inspector.root.create_int("name", 1)
    inspector._state.strings["name"].count = MAX_REFERENCES - 1
    with pytest.raises(WriteRefusedError) as caught:
        inspector.root.create_int("name", 2)
    assert caught.value.code == "FXI0404"


# --- Blocks that are there already ---------------------------------------------------------------


@cases("form", ["records", "json"])
def test_blocks_become_the_same_bytes(form: str) -> None:
    inspector = Inspector()
    all_scalars(inspector)
    data = inspector.copy() or b""
    out = Sink.memory()
    writer = open_writer(out, {}, Diagnostics(RULES))
    for record in RecordDecoder().records(data):
        writer.write(record if form == "records" else record.to_json())
    with pytest.raises(WriteRefusedError):
        writer.write({"record": "no such"})
    writer.close()
    assert out.getvalue() == data
