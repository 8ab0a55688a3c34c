"""Trees as plain values, and a value by its selector."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fx_inspect import Inspector
from fx_inspect.read.capture import InspectCapture
from fxframework.errors import UsageError

from ...cases import cases


def opened(inspector: Inspector, **options: Any) -> InspectCapture:
    image = inspector.copy()
    assert image is not None
    capture = fxf.open(image, format="inspect", **options)
    assert isinstance(capture, InspectCapture)
    return capture


def full() -> Inspector:
    inspector = Inspector()
    root = inspector.root
    values = root.create_child("values")
    values.create_int("int", -(1 << 63))
    values.create_uint("uint", (1 << 64) - 1)
    values.create_double("double", 0.5)
    values.create_bool("bool", True)
    values.create_string("string", "é\n")
    values.create_bytes("bytes", b"\0\xff")
    arrays = values.create_child("arrays")
    arrays.create_int_array("ints", [1, -2])
    arrays.create_string_array("strings", ["a", ""])
    arrays.create_uint_exponential_histogram("ladder", 1, 2, 3, 2).insert(2)
    root.create_child("empty")
    root.create_int("values", 7)
    return inspector


def test_every_type_has_a_plain_value() -> None:
    assert opened(full()).tree() == {
        "values": 7,
        "values#2": {
            "int": -(1 << 63),
            "uint": (1 << 64) - 1,
            "double": 0.5,
            "bool": True,
            "string": "é\n",
            "bytes": b"\0\xff",
            "arrays": {
                "ints": [1, -2],
                "strings": ["a", ""],
                "ladder": {"floor": 1, "step": 2, "multiplier": 3, "counts": [0, 1, 0, 0]},
            },
        },
        "empty": {},
    }


def test_a_tree_of_nothing() -> None:
    assert opened(Inspector()).tree() == {}


def test_a_value_by_its_selector() -> None:
    capture = opened(full())
    assert capture.value("root/values:double") == 0.5
    assert capture.value("root/values/arrays:ints") == [1, -2]
    assert capture.value("root/*:bool") is True


@cases(
    ("selector", "message"),
    [
        ("root/values:none", "selects no properties"),
        ("root/values:*", "selects 6 properties"),
        ("root/values", "properties, not one"),
        ("root/values:doubel", "did you mean 'root/values:double'"),
        ("", "selector"),
    ],
)
def test_a_selector_of_several_values_or_none_is_refused(selector: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        opened(full()).value(selector)


def test_a_name_that_occurs_again_is_only_in_the_tree() -> None:
    inspector = Inspector()
    inspector.root.create_uint("a", 1)
    inspector.root.create_uint("a", 2)
    capture = opened(inspector)
    assert capture.tree() == {"a": 1, "a#2": 2}
    with pytest.raises(UsageError, match="selects 2 properties") as caught:
        capture.value("root:a")
    assert "`tree()` has all of them" in str(caught.value.remedy)


def test_trees_of_links_are_in_their_places(tmp_path: Path) -> None:
    def sockets() -> Inspector:
        tree = Inspector()
        tree.root.create_uint("open", 3)
        return tree

    inspector = Inspector()
    inspector.root.create_lazy_child("sockets", sockets)
    for content, tree in inspector.trees().items():
        image = tree.copy()
        assert image is not None
        (tmp_path / content).write_bytes(image)
    assert opened(inspector).tree() == {}
    assert opened(inspector, links=str(tmp_path)).tree() == {"sockets": {"open": 3}}


def test_a_deep_tree() -> None:
    inspector = Inspector()
    node = inspector.root
    for _ in range(2000):
        node = node.create_child("n")
    node.create_int("leaf", 1)
    found = opened(inspector).tree()
    for _ in range(2000):
        found = found["n"]
    assert found == {"leaf": 1}
