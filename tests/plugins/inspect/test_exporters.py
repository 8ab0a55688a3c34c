"""Exporters of Inspect, of captures made by hand: what iquery and ffx print, and our own forms."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx_inspect.export.base import LINKS
from fx_inspect.export.json import SAME_NAME, SPECIAL
from fx_inspect.export.series import UNORDERED, split_property
from fx_inspect.export.tree import ROUNDED
from fx_inspect.read.entries import entries, escaped
from fxframework.errors import WriteRefusedError
from fxframework.kit.export import NOT_UTF8
from fxframework.kit.shown import rust_double

from ...cases import cases
from .handmade import export, hand_made

FOLDER = Path(__file__).parents[2] / "conformance" / "inspect"
OUTPUTS = json.loads((FOLDER / "outputs.json").read_text("utf-8"))
FILES = json.loads((FOLDER / "files.json").read_text("utf-8"))
TREES = [
    pytest.param(expected["tree"], id=f"{case['name']}-{who}")
    for case in FILES
    for who, expected in case["expected"].items()
    # Our form of a whole histogram is the one that Rust's tree has.
    if "tree" in expected and (case["name"], who) != ("img_arrays_histograms", "cpp")
]
STEPS = pytest.mark.parametrize("step", [1, 3, 1 << 16])


def node(name: str | bytes = "root", *properties: Any, children: Any = ()) -> dict[str, Any]:
    return {"name": name, "properties": list(properties), "children": list(children)}


def prop(kind: str, value: Any, name: str | bytes = "p", **more: Any) -> dict[str, Any]:
    return {"name": name, kind: value, **more}


def lines(tree: dict[str, Any], **options: Any) -> list[str]:
    """What `tree` prints of the root's properties, without the indentation of the root."""
    text, _ = export("tree", hand_made(tree), **options)
    head, _, body = text.partition("    root:\n")
    assert head.endswith("  payload:\n")
    found: list[str] = body.splitlines()
    return found


def payload(tree: dict[str, Any]) -> Any:
    text, _ = export("json", hand_made(tree))
    return json.loads(text)[0]["payload"]


# --- tree-json -----------------------------------------------------------------------------------


@cases("tree", TREES)
@STEPS
def test_tree_json_is_the_tree_of_the_vectors(tree: dict[str, Any], step: int) -> None:
    text, _ = export("tree-json", hand_made(tree, step=step))
    assert json.loads(text) == tree


def test_tree_json_keeps_numbers_exact() -> None:
    tree = node(
        "root",
        prop("int", -(2**63)),
        prop("uint", 2**64 - 1),
        prop("double", 5e-324),
        prop("double", -0.0),
        prop("int_array", [2**63 - 1, -(2**63)]),
        prop("uint_array", [2**64 - 1]),
        prop("double_array", [0.1, 1e308]),
    )
    text, dropped = export("tree-json", hand_made(tree))
    assert json.loads(text) == tree
    assert '"double":-0.0' in text
    assert dropped == {}


def test_doubles_that_json_does_not_have_are_named() -> None:
    tree = node("root", prop("double", math.nan), prop("double_array", [math.inf, -math.inf]))
    text, dropped = export("tree-json", hand_made(tree))
    values = [next(iter(set(each.items()) - {("name", "p")}))[1:] for each in
              [{k: json.dumps(v) for k, v in p.items() if k != "name"}
               for p in json.loads(text)["properties"]]]  # fmt: skip
    assert values == [('"NaN"',), ('["Infinity", "-Infinity"]',)]
    assert dropped == {}


def test_what_is_not_utf8_is_counted_or_kept_beside() -> None:
    tree = node("root", prop("string", b"\xfeab"), prop("int", 1, b"\xff"))
    text, dropped = export("tree-json", hand_made(tree))
    assert json.loads(text)["properties"] == [
        {"name": "p", "string": "\ufffdab"},
        {"name": "\ufffd", "int": 1},
    ]
    assert dropped == {NOT_UTF8: 2}
    text, dropped = export("tree-json", hand_made(tree), lossless=True)
    assert json.loads(text)["properties"] == [
        {"name": "p", "string": "\ufffdab", "string_bytes_hex": "fe6162"},
        {"name": "\ufffd", "name_bytes_hex": "ff", "int": 1},
    ]
    assert dropped == {}


def test_links_that_were_followed_are_not_links_any_more() -> None:
    links = [
        {"name": "l", "content": "l-0", "disposition": "child", "state": "expanded"},
        {"name": "m", "content": "m-1", "disposition": "inline", "state": "not found"},
    ]
    text, _ = export("tree-json", hand_made({**node(), "links": links}))
    shown = [{"name": "m", "content": "m-1", "disposition": "inline"}]
    assert json.loads(text)["links"] == shown


def test_tree_json_holds_one_tree() -> None:
    with pytest.raises(WriteRefusedError, match="one tree"):
        export("tree-json", hand_made(node()), hand_made(node()))


def test_no_nodes_are_nothing_to_write() -> None:
    capture = hand_made(node())
    capture.made["nodes"] = capture.made["nodes"].select(slice(0, 0))
    with pytest.raises(WriteRefusedError, match="no nodes"):
        export("tree-json", capture)


def test_deep_trees() -> None:
    depth = 3000
    tree = node("leaf", prop("int", 1))
    for _ in range(depth):
        tree = node("n", children=[tree])
    tree["name"] = "root"
    for name in ("tree-json", "json"):
        text, _ = export(name, hand_made(tree, step=100))
        assert text.count('"n"') == depth - 1
        assert text.count("{") == text.count("}")
    text, dropped = export("tree", hand_made(tree))
    assert max(map(len, text.splitlines())) < 2000
    assert list(dropped) == ["indentation of nodes, beyond a depth of 500"]
    paths = [entry.path for entry in entries(hand_made(tree))]
    assert len(set(paths)) == len(paths) == depth + 2
    assert max(map(len, paths)) < 1000


# --- JSON of iquery and ffx ----------------------------------------------------------------------

HEALTH = node(
    "root",
    children=[
        node(
            "fuchsia.inspect.Health",
            prop("int", 1, "start_timestamp_nanos"),
            prop("string", "OK", "status"),
        )
    ],
)


def test_json_is_that_of_iquery() -> None:
    expected = OUTPUTS["json_one"]
    text, dropped = export(
        "json",
        hand_made(HEALTH),
        moniker=expected["moniker"],
        **expected["metadata"],
    )
    assert json.loads(text) == [expected]
    assert dropped == {}


def test_json_of_several_captures_is_one_array() -> None:
    text, _ = export("json", hand_made(HEALTH, name="a.inspect"), hand_made(node(), name="b.vmo"))
    found = [(each["moniker"], each["metadata"]["name"]) for each in json.loads(text)]
    assert found == [("a", "a.inspect"), ("b", "b.vmo")]
    assert json.loads(export("json")[0]) == []


def test_doubles_in_json() -> None:
    tree = node(
        "root",
        prop("double", math.inf, "inf"),
        prop("double", -math.inf, "neg_inf"),
        prop("double", math.nan, "nan"),
    )
    assert payload(tree) == json.loads(OUTPUTS["doubles_json"])
    _, dropped = export("json", hand_made(tree))
    assert dropped == {SPECIAL: 3}


def test_values_in_json() -> None:
    histogram = {"floor": 0, "step": 2, "size": 3, "counts": [0, 1, 0]}
    tree = node(
        "root",
        prop("bytes_hex", "05f1ab", "bytes"),
        prop("uint", 2**64 - 1, "big"),
        prop("bool", False, "no"),
        prop("string", 'a"\n', "text"),
        prop("string_list", ["", "x"], "list"),
        prop("int_linear_histogram", histogram, "linear"),
        prop("uint_array", [1, 2], "short", display="linear"),
        children=[node("child")],
    )
    assert payload(tree) == {
        "root": {
            "bytes": "b64:BfGr",
            "big": 2**64 - 1,
            "no": False,
            "text": 'a"\n',
            "list": ["", "x"],
            "linear": {"size": 3, "floor": 0, "step": 2, "counts": [1], "indexes": [1]},
            "short": [1, 2],
            "child": {},
        }
    }


def test_names_that_occur_twice_are_kept_and_counted() -> None:
    tree = node(
        "root", prop("int", 1, "a"), prop("int", 2, "a"), children=[node("a"), node("b"), node("b")]
    )
    text, dropped = export("json", hand_made(tree))
    pairs = json.loads(text, object_pairs_hook=list)
    root = dict(dict(pairs[0])["payload"])["root"]
    assert root == [("a", 1), ("a", 2), ("a", []), ("b", []), ("b", [])]
    assert dropped == {SAME_NAME: 3}


def test_payload_is_null_where_there_is_no_node() -> None:
    capture = hand_made(node())
    capture.made["nodes"] = capture.made["nodes"].select(slice(0, 0))
    assert json.loads(export("json", capture)[0])[0]["payload"] is None


names = st.text(max_size=3)
values = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(lambda value: ("int", value)),
    st.integers(0, 2**64 - 1).map(lambda value: ("uint", value)),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: ("double", value)),
    st.booleans().map(lambda value: ("bool", value)),
    st.text().map(lambda value: ("string", value)),
    st.binary().map(lambda value: ("bytes_hex", value.hex())),
    st.lists(st.integers(-9, 9), max_size=4).map(lambda value: ("int_array", value)),
    st.lists(st.text(max_size=3), max_size=4).map(lambda value: ("string_list", value)),
)
properties = st.lists(
    st.builds(lambda name, value: prop(value[0], value[1], name), names, values), max_size=4
)
trees = st.recursive(
    st.builds(lambda name, some: node(name, *some), names, properties),
    lambda children: st.builds(
        lambda name, some, below: node(name, *some, children=below),
        names,
        properties,
        st.lists(children, max_size=3),
    ),
    max_leaves=8,
)


@given(trees, st.integers(1, 5))
def test_any_tree_comes_out_whole(tree: dict[str, Any], step: int) -> None:
    text, dropped = export("tree-json", hand_made(tree, step=step))
    assert json.loads(text) == tree
    assert dropped == {}
    text, _ = export("json", hand_made(tree, step=step))
    assert dict(json.loads(text, object_pairs_hook=list)[0])["payload"] == [
        (tree["name"], _pairs(tree))
    ]
    text, _ = export("tree", hand_made(tree, step=step))
    assert "\0" not in text


def _pairs(tree: dict[str, Any]) -> list[tuple[str, Any]]:
    import base64

    def value(each: dict[str, Any]) -> Any:
        if "bytes_hex" in each:
            return "b64:" + base64.b64encode(bytes.fromhex(each["bytes_hex"])).decode()
        return next(value for key, value in each.items() if key != "name")

    own = [(each["name"], value(each)) for each in tree["properties"]]
    return own + [(child["name"], _pairs(child)) for child in tree["children"]]


# --- Text ----------------------------------------------------------------------------------------


def test_text_is_that_of_iquery() -> None:
    tree = node("root", prop("string", "rocks", "iquery"), children=HEALTH["children"])
    text, dropped = export(
        "tree",
        hand_made(tree),
        moniker="realm_builder:CHILD_NAME/basic-3",
        **{**OUTPUTS["json_one"]["metadata"], "timestamp": 1},
    )
    expected = OUTPUTS["text_one"].replace("timestamp = TIMESTAMP", "timestamp = 1")
    assert text == expected.replace("nanos = TIMESTAMP", "nanos = 1")
    assert dropped == {}


def test_text_of_an_escrowed_tree() -> None:
    capture = hand_made(node())
    capture.made["nodes"] = capture.made["nodes"].select(slice(0, 0))
    metadata = {"name": "root", "component_url": "test-url", "timestamp": 123456}
    text, _ = export("tree", capture, moniker="a/b/c/d", escrowed=True, **metadata)
    assert text == OUTPUTS["text_escrowed"]


def test_lists_of_strings_break_where_they_are_long() -> None:
    assert lines(node("root", prop("string_list", ["short", "array"], "short_array"))) == [
        OUTPUTS["text_string_list_short"].splitlines()[1]
    ]
    assert lines(node("root", prop("string_list", ["12345678"] * 13, "long_array"))) == [
        "      long_array = [",
        *['        "12345678",'] * 13,
        "      ]",
    ]
    assert len(lines(node("root", prop("string_list", ["x" * 95])))) == 1
    assert len(lines(node("root", prop("string_list", ["x" * 96])))) == 3


@cases(
    ("value", "shown"),
    [
        (("int", -5), "p = -5"),
        (("uint", 2**64 - 1), "p = 18446744073709551615"),
        (("bool", True), "p = true"),
        (("double", 0.25), "p = 0.250000"),
        (("double", math.nan), "p = NaN"),
        (("double", -math.inf), "p = -inf"),
        (("string", "a  b"), "p = a  b"),
        (("string", ""), "p = "),
        (("string", "a\nroot:\x1b[2J"), "p = a\\nroot:\\u{1b}[2J"),
        (("string", "grün ✓"), "p = grün ✓"),
        (("string_list", ['say "\\"', "\t"]), 'p = ["say \\"\\\\\\"", "\\t"]'),
        (("double_array", [1.0, 2.5, 1e21, -0.0]), "p = [1, 2.5, 1000000000000000000000, -0]"),
        (("int_array", []), "p = []"),
    ],
)
def test_values_in_text(value: tuple[str, Any], shown: str) -> None:
    assert lines(node("root", prop(*value))) == [f"      {shown}"]


def test_bytes_in_text_are_a_hex_dump() -> None:
    data = bytes(range(0x30, 0x41)) + b"\0"
    assert lines(node("root", prop("bytes_hex", data.hex()))) == [
        "      p = Binary:",
        "00000000\t30 31 32 33 34 35 36 37 38 39 3a 3b 3c 3d 3e 3f \t0123456789:;<=>?",
        "00000010\t40 00                                           \t@.",
    ]


def test_histograms_in_text() -> None:
    shape = {"floor": 1, "initial_step": 1, "step_multiplier": 2}
    tree = node(
        "root",
        prop("int_linear_histogram", {"floor": 0, "step": 2, "size": 4, "counts": [1, 0, 3, 4]}),
        prop("uint_exponential_histogram", {**shape, "size": 4, "counts": [5, 0, 1, 2]}, "q"),
        prop("double_linear_histogram",
             {"floor": 0.5, "step": 0.5, "size": 3, "counts": [1.0, 2.5, 0.0]}, "r"),
    )  # fmt: skip
    assert lines(tree) == [
        "      p:",
        "        type = linear",
        "        size = 4",
        "        buckets = [[<min>,0)=1, [2,4)=3, [4,<max>)=4]",
        "      q:",
        "        type = exponential",
        "        size = 4",
        "        buckets = [[0,1)=5, [2,3)=1, [3,<max>)=2]",
        "      r:",
        "        type = linear",
        "        size = 3",
        "        buckets = [[-inf,0.5)=1, [0.5,1)=2.5]",
    ]


def test_what_text_has_no_place_for_is_counted() -> None:
    links = [{"name": "l", "content": "l-0", "disposition": "child"}]
    tree = {**node("root", prop("double", 1e-7), prop("string", b"\xff")), "links": links}
    _, dropped = export("tree", hand_made(tree))
    assert dropped == {LINKS: 1, ROUNDED: 1, NOT_UTF8: 1}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_as_rust_prints_them(value: float) -> None:
    shown = rust_double(value)
    assert float(shown) == value
    assert "e" not in shown
    assert not shown.endswith(".0")


# --- Series --------------------------------------------------------------------------------------


def rows(*captures: Any, **options: Any) -> tuple[list[dict[str, str]], dict[str, int]]:
    text, dropped = export("series", *captures, **options)
    return list(csv.DictReader(io.StringIO(text, newline=""))), dropped


def test_a_series_has_what_changes() -> None:
    first = node("root", prop("int", 1, "a"), prop("string", "x,y", "b:c"), prop("int", 5, "gone"))
    second = node("root", prop("int", 2, "a"), prop("string", "x,y", "b:c"), prop("uint", 7, "d"))
    captures = [
        hand_made(first, name="1.vmo", generation=2),
        hand_made(second, name="2.vmo", generation=6),
        hand_made(second, name="3.vmo", generation=8),
    ]
    found, dropped = rows(*captures)
    assert list(found[0]) == [
        "snapshot", "file", "generation", "change", "path", "name", "type", "value"
    ]  # fmt: skip
    assert [tuple(row.values()) for row in found] == [
        ("0", "1.vmo", "2", "first", "root", "a", "int", "1"),
        ("0", "1.vmo", "2", "first", "root", "b:c", "string", "x,y"),
        ("0", "1.vmo", "2", "first", "root", "gone", "int", "5"),
        ("1", "2.vmo", "6", "changed", "root", "a", "int", "2"),
        ("1", "2.vmo", "6", "added", "root", "d", "uint", "7"),
        ("1", "2.vmo", "6", "removed", "root", "gone", "int", ""),
    ]
    assert dropped == {}
    found, _ = rows(*captures, all=True)
    assert [row["change"] for row in found if row["snapshot"] == "2"] == ["same"] * 3


def test_a_series_tells_snapshots_that_go_back_in_time() -> None:
    _, dropped = rows(hand_made(node(), generation=8), hand_made(node(), generation=4))
    assert dropped == {UNORDERED: 1}


def test_properties_of_one_name_are_told_apart_by_their_order() -> None:
    first = node("root", prop("int", 1, "a"), prop("int", 2, "a"))
    second = node("root", prop("int", 1, "a"), prop("int", 3, "a"))
    found, _ = rows(hand_made(first), hand_made(second))
    assert [row["value"] for row in found] == ["1", "2", "3"]


@given(st.text(), st.text())
def test_the_path_of_a_property_comes_apart(node_name: str, name: str) -> None:
    path = f"root/{escaped(node_name)}"
    assert split_property(f"{path}:{escaped(name)}") == (path, name)


# --- Selectors -----------------------------------------------------------------------------------


def test_selectors_are_listed_once_each() -> None:
    tree = node(
        "root",
        prop("int", 1, "a"),
        prop("int", 1, "a"),
        children=[
            node("x y", prop("int", 1, "b:c")),
            node("empty"),
            node("n", children=[node("m")]),
        ],
    )
    text, _ = export("selectors", hand_made(tree))
    assert text.splitlines() == ["root:a", "root/x\\ y:b\\:c", "root/empty", "root/n/m"]
