"""`capture.tree()` holds what `tree-json` does, as values of Python."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fx_inspect import Inspector
from fxframework.errors import UsageError
from fxframework.io.sink import Sink

from .trees import FILES, image

ROOT = Path(__file__).resolve().parents[3]
SCENARIO = sorted((ROOT / "examples" / "scenarios" / "inspect.golden").glob("*.inspect"))
IMAGES = {name: image(vector) for name, vector in FILES.items()} | {
    path.name: path.read_bytes() for path in SCENARIO
}


def plain_of(node: dict[str, Any]) -> dict[str, Any]:
    """A node of tree-json as plain values."""
    made: dict[str, Any] = {}

    def put(name: str, value: Any) -> None:
        key, number = name, 1
        while key in made:
            number += 1
            key = f"{name} ({number})"
        made[key] = value

    for one in node["properties"]:
        kind, value = next((k, v) for k, v in one.items() if k != "name")
        if kind == "bytes_hex":
            value = bytes.fromhex(value)
        elif isinstance(value, dict):
            value = {key: each for key, each in value.items() if key != "size"}
            if "indexes" in value:
                counts = [0] * one[kind]["size"]
                for at, count in zip(value.pop("indexes"), value["counts"], strict=True):
                    counts[at] = count
                value["counts"] = counts
        put(one["name"], value)
    for link in node.get("links", ()):
        put(link["name"], {"link": link["content"], "disposition": link["disposition"]})
    for child in node["children"]:
        put(child["name"], plain_of(child))
    return made


def text_of(value: Any) -> str:
    """A value as text in which NaN is equal to itself; -0.0 and types count."""
    return repr(value).replace("'NaN'", "nan").replace("'Infinity'", "inf").replace(
        "'-Infinity'", "-inf"
    )  # fmt: skip


@pytest.mark.parametrize("name", IMAGES)
def test_a_tree_holds_what_tree_json_does(name: str) -> None:
    with fxf.open(IMAGES[name], format="inspect") as capture:
        tree = capture.tree()
        sink = Sink.memory()
        try:
            exporter = capture.request.host.exporter(
                "tree-json", format="inspect", tables=capture.tables
            )
            session = exporter.open(
                sink, {option.name: option.default for option in exporter.options}
            )
            session.write(capture)
            session.close()
        except fxf.FxError:
            assert tree in ({}, {"root": {}})  # there is nothing to write
            return
    document = json.loads(sink.getvalue())
    assert text_of(tree) == text_of({document["name"]: plain_of(document)})


def test_values_are_those_of_python() -> None:
    inspector = Inspector()
    node = inspector.root.create_child("a")
    node.create_int("int", -(1 << 63))
    node.create_uint("uint", (1 << 64) - 1)
    node.create_double("nan", math.nan)
    node.create_bool("bool", False)
    node.create_string("text", "Grüße")
    node.create_bytes("bytes", b"\xff\0")
    node.create_double_array("doubles", [0.5, -math.inf])
    node.create_string_array("texts", ["x", ""])
    node.create_int_linear_histogram("histogram", 0, 10, 2).insert_multiple(25, 3)
    node.create_child("twice").create_bool("first", True)
    node.create_child("twice")
    node.create_uint("twice", 1)
    with fxf.open(inspector.copy()) as capture:
        tree = capture.tree()["root"]["a"]
        assert math.isnan(tree.pop("nan"))
        assert tree == {
            "int": -(1 << 63), "uint": (1 << 64) - 1, "bool": False, "text": "Grüße",
            "bytes": b"\xff\0", "doubles": [0.5, -math.inf], "texts": ["x", ""],
            "histogram": {"floor": 0, "step": 10, "counts": [0, 0, 0, 3]}, "twice": 1,
            "twice (2)": {"first": True}, "twice (3)": {},
        }  # fmt: skip
        assert type(tree["bool"]) is bool
        chosen = capture.choose(["root/a:text"])
        assert chosen.tree() == {"root": {"a": {"text": "Grüße"}}}


def test_other_captures_hold_no_tree() -> None:
    with (
        fxf.open(ROOT / "examples" / "scenarios" / "boot.golden" / "boot.fxt") as capture,
        pytest.raises(UsageError, match="trace captures hold no tree"),
    ):
        capture.tree()
