"""Random operations on an Inspector, against a model of plain objects, in all three versions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fx_inspect.write.nodes import Node
from fx_inspect.write.values import Value
from fx_inspect.write.writer import Inspector

from .heaps import free_list, heads
from .trees import read, shown

I64, U64 = st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, (1 << 64) - 1)
DOUBLES = st.floats(allow_nan=False)
NAMES = st.sampled_from(["a", "b", "node", "größe", "", "x" * 21, "n" * 300]) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=12
)
TEXTS = NAMES | st.sampled_from(["t" * 3000, "long" * 1500])
BYTES = st.binary(max_size=40) | st.sampled_from([bytes(2040), bytes(range(256)) * 20])
LEAST = {"int": -(1 << 63), "uint": 0, "double": float("-inf")}
MOST = {"int": (1 << 63) - 1, "uint": (1 << 64) - 1, "double": float("inf")}
NUMBERS = {"int": I64, "uint": U64, "double": DOUBLES}
TOLD = {"FXI0223", "FXI0224", "FXI0225"}
"""Tombstones and names that siblings share: what a writer may leave."""


class Model:
    """A value as it should be."""

    def __init__(self, kind: str, name: str, value: Any, parent: Model | None, real: Any) -> None:
        self.kind = kind
        self.name = name
        self.value = value
        self.parent = parent
        self.real = real
        self.children: list[Model] = []
        self.deleted = False

    @property
    def there(self) -> bool:
        """Whether something can be made below it: a deleted node is there while it has children."""
        return not self.deleted or bool(self.children)

    def shown(self) -> dict[str, Any]:
        """A node as the vectors have it, in an order of its own."""
        made: dict[str, Any] = {"name": self.name, "properties": [], "children": []}
        for child in self.children:
            if child.kind == "node":
                if not child.deleted:
                    made["children"].append(child.shown())
            elif child.kind == "link":
                made.setdefault("links", []).append({"name": child.name, **child.value})
            else:
                made["properties"].append({"name": child.name, child.kind: child.value})
        return sorted_tree(made)


def sorted_tree(node: dict[str, Any]) -> dict[str, Any]:
    """Siblings stand in the order of their blocks, which is not the model's business."""
    ordered = dict(node)
    for key in ("properties", "children", "links"):
        if key in node:
            each = map(sorted_tree, node[key]) if key == "children" else node[key]
            ordered[key] = sorted(each, key=repr)
    return ordered


def check_clean(data: bytes) -> dict[str, Any]:
    """The tree of a VMO in which the strict reader finds nothing to say."""
    tree, findings = read(data)
    assert [each for each in findings if each.code not in TOLD] == []
    return shown(tree)


class Operations(RuleBasedStateMachine):
    version = 2

    @initialize(seed=st.integers(0, 3))
    def begin(self, seed: int) -> None:
        self.inspector = Inspector(version=self.version, max_size=8 << 20)
        self.first = self.inspector.copy()
        self.root = Model("node", "root", None, None, self.inspector.root)
        self.all: list[Model] = [self.root]
        self.open = 0
        self.generation = 0
        self.stack = ExitStack()

    # --- helpers ---

    def pick(self, data: st.DataObject, kinds: set[str] | None = None) -> Model | None:
        choices = [each for each in self.all if kinds is None or each.kind in kinds]
        return data.draw(st.sampled_from(choices)) if choices else None

    def add(self, data: st.DataObject, kind: str, value: Any, make: Callable[..., Value]) -> None:
        parent = data.draw(st.sampled_from([each for each in self.all if each.kind == "node"]))
        name = data.draw(NAMES)
        before = self.inspector.generation
        real = make(parent.real, name)
        assert real.exists is parent.there
        if parent.there:
            child = Model(kind, name, value, parent, real)
            parent.children.append(child)
            self.all.append(child)
        self.one_period(before)

    def one_period(self, before: int) -> None:
        """A call is one period, or part of the transaction that is open."""
        assert self.inspector.generation == before + (0 if self.open else 2)

    # --- making ---

    @rule(data=st.data())
    def create_node(self, data: st.DataObject) -> None:
        self.add(data, "node", None, Node.create_child)

    @rule(data=st.data(), kind=st.sampled_from(["int", "uint", "double"]))
    def create_number(self, data: st.DataObject, kind: str) -> None:
        value = data.draw(NUMBERS[kind])
        self.add(data, kind, value, lambda node, name: getattr(node, f"create_{kind}")(name, value))

    @rule(data=st.data(), value=st.booleans())
    def create_bool(self, data: st.DataObject, value: bool) -> None:
        if self.version:
            self.add(data, "bool", value, lambda node, name: node.create_bool(name, value))

    @rule(data=st.data(), value=TEXTS)
    def create_string(self, data: st.DataObject, value: str) -> None:
        self.add(data, "string", value, lambda node, name: node.create_string(name, value))

    @rule(data=st.data(), value=BYTES)
    def create_bytes(self, data: st.DataObject, value: bytes) -> None:
        self.add(data, "bytes_hex", value.hex(), lambda node, name: node.create_bytes(name, value))

    @rule(data=st.data(), kind=st.sampled_from(["int", "uint", "double"]))
    def create_array(self, data: st.DataObject, kind: str) -> None:
        values = data.draw(st.lists(NUMBERS[kind], min_size=1, max_size=20))
        self.add(
            data,
            f"{kind}_array",
            list(values),
            lambda node, name: getattr(node, f"create_{kind}_array")(name, values),
        )

    @rule(data=st.data(), texts=st.lists(NAMES, min_size=1, max_size=6))
    def create_string_array(self, data: st.DataObject, texts: list[str]) -> None:
        if self.version == 2:
            self.add(
                data,
                "string_list",
                list(texts),
                lambda node, name: node.create_string_array(name, texts),
            )

    @rule(data=st.data(), buckets=st.integers(1, 9))
    def create_histogram(self, data: st.DataObject, buckets: int) -> None:
        value = {"floor": -5, "step": 3, "size": buckets + 2, "counts": [0] * (buckets + 2)}
        self.add(
            data,
            "int_linear_histogram",
            value,
            lambda node, name: node.create_int_linear_histogram(name, -5, 3, buckets),
        )

    @rule(data=st.data(), inline=st.booleans())
    def create_link(self, data: st.DataObject, inline: bool) -> None:
        value = {"content": "", "disposition": "inline" if inline else "child"}
        make = Node.create_lazy_values if inline else Node.create_lazy_child
        made: list[Any] = []

        def create(node: Node, name: str) -> Value:
            made.append(make(node, name, Inspector))
            return made[0]

        self.add(data, "link", value, create)
        value["content"] = made[0].content

    # --- changing ---

    @rule(data=st.data())
    def set_value(self, data: st.DataObject) -> None:
        chosen = self.pick(data, {"int", "uint", "double", "bool", "string", "bytes_hex"})
        if chosen is None:
            return
        value: Any
        if chosen.kind == "bytes_hex":
            value = data.draw(BYTES)
        else:
            kinds = NUMBERS | {"bool": st.booleans(), "string": TEXTS}
            value = data.draw(kinds[chosen.kind])
        before = self.inspector.generation
        chosen.real.set(value)
        chosen.value = value.hex() if chosen.kind == "bytes_hex" else value
        self.one_period(before)

    @rule(data=st.data(), minus=st.booleans())
    def add_value(self, data: st.DataObject, minus: bool) -> None:
        chosen = self.pick(data, set(NUMBERS))
        if chosen is None:
            return
        kind = chosen.kind
        by = data.draw(NUMBERS[kind].filter(lambda value: abs(value) != float("inf")))
        getattr(chosen.real, "subtract" if minus else "add")(by)
        total = chosen.value - by if minus else chosen.value + by
        chosen.value = min(max(total, LEAST[kind]), MOST[kind])

    @rule(data=st.data(), slot=st.integers(0, 25) | st.sampled_from([1000, (1 << 64) - 1]))
    def set_slot(self, data: st.DataObject, slot: int) -> None:
        chosen = self.pick(data, {"int_array", "uint_array", "double_array", "string_list"})
        if chosen is None:
            return
        kind = chosen.kind.removesuffix("_array")
        value = data.draw(NUMBERS.get(kind, NAMES))
        chosen.real.set(slot, value)
        if slot < len(chosen.value):
            chosen.value[slot] = value

    @rule(data=st.data())
    def clear(self, data: st.DataObject) -> None:
        chosen = self.pick(data, {"int_array", "string_list", "int_linear_histogram"})
        if chosen is None:
            return
        chosen.real.clear()
        if chosen.kind == "int_linear_histogram":
            chosen.value["counts"] = [0] * chosen.value["size"]
        else:
            chosen.value[:] = [0 if chosen.kind == "int_array" else ""] * len(chosen.value)

    @rule(data=st.data(), value=st.integers(-40, 40), count=st.integers(0, 5))
    def insert(self, data: st.DataObject, value: int, count: int) -> None:
        chosen = self.pick(data, {"int_linear_histogram"})
        if chosen is None:
            return
        chosen.real.insert_multiple(value, count)
        counts = chosen.value["counts"]
        counts[min(max((value + 5) // 3 + 1, 0), len(counts) - 1)] += count

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        chosen = self.pick(data)
        if chosen is None or chosen is self.root:
            return
        before = self.inspector.generation
        again = chosen.deleted
        chosen.real.delete()
        assert not chosen.real.exists
        assert self.inspector.generation == before + (0 if self.open or again else 2)
        if again:
            return
        chosen.deleted = True
        # Of a node that has children the block stays, but is no child of its parent any more.
        self.leave(chosen)
        if not chosen.children:
            self.all.remove(chosen)

    def leave(self, child: Model) -> None:
        parent = child.parent
        if parent is not None and child in parent.children:
            parent.children.remove(child)
            if parent.deleted and not parent.children:
                self.all.remove(parent)

    @rule(data=st.data())
    def reparent(self, data: st.DataObject) -> None:
        chosen, parent = self.pick(data), self.pick(data, {"node"})
        if chosen is None or parent is None or chosen is self.root:
            return
        above: Model | None = parent
        while above is not None and above is not chosen:
            above = above.parent
        if above is chosen or chosen.deleted:
            return
        chosen.real.reparent(parent.real)
        if parent is not chosen.parent:
            self.leave(chosen)
            parent.children.append(chosen)
            chosen.parent = parent

    # --- transactions ---

    @rule(more=st.booleans())
    def transaction(self, more: bool) -> None:
        before = self.inspector.generation
        if more and self.open < 3:
            self.inspector.begin_transaction()
            self.open += 1
            assert self.inspector.generation == before + (self.open == 1)
        elif self.open:
            self.inspector.end_transaction()
            self.open -= 1
            assert self.inspector.generation == before + (not self.open)

    # --- what holds ---

    @invariant()
    def the_tree_is_the_model(self) -> None:
        if not hasattr(self, "inspector"):
            return
        assert (self.inspector.generation & 1) == bool(self.open)
        if self.open:
            assert self.inspector.copy() is None
            return
        data = self.inspector.copy()
        assert data is not None
        assert sorted_tree(check_clean(data)) == self.root.shown()

    def teardown(self) -> None:
        if not hasattr(self, "inspector"):
            return
        while self.open:
            self.inspector.end_transaction()
            self.open -= 1
        for each in self.all[1:]:
            each.real.delete()
        check_first_state(self.inspector)


def check_first_state(inspector: Inspector) -> None:
    """Nothing is allocated but the header, and all that was split is whole again."""
    heap = inspector._state.heap
    assert inspector._state.strings == {}
    assert heap.allocated - heap.freed == 1
    first = Inspector(version=inspector.version)._state.heap
    assert heads(heap)[:7] == heads(first)[:7]
    assert len(list(free_list(heap, 7))) == heap.size // 2048 - 1
    data = inspector.copy()
    assert data is not None
    assert check_clean(data) == {"name": "root", "properties": [], "children": []}


class OperationsOfVersion1(Operations):
    version = 1


class OperationsOfVersion0(Operations):
    version = 0


for machine in (Operations, OperationsOfVersion1, OperationsOfVersion0):
    machine.TestCase.settings = settings(stateful_step_count=35)

TestVersion2 = Operations.TestCase
TestVersion1 = OperationsOfVersion1.TestCase
TestVersion0 = OperationsOfVersion0.TestCase


@pytest.mark.parametrize("version", [0, 1, 2])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["node", "int", "string", "bytes", "array", "link", "delete", "set"]),
            st.integers(0, 1 << 16),
        ),
        max_size=80,
    )
)
def test_a_full_vmo_stays_sound(version: int, steps: list[tuple[str, int]]) -> None:
    inspector = Inspector(version=version, max_size=8192)
    nodes, values = [inspector.root], []
    for what, number in steps:
        parent = nodes[number % len(nodes)]
        name = f"{'n' * (number % 90)}{number}"
        if what == "node":
            nodes.append(parent.create_child(name))
        elif what == "int":
            values.append(parent.create_int(name, number))
        elif what == "string":
            values.append(parent.create_string(name, "s" * (number % 5000)))
        elif what == "bytes":
            values.append(parent.create_bytes(name, bytes(number % 5000)))
        elif what == "array":
            values.append(parent.create_uint_array(name, number % 254 + 1))
        elif what == "link":
            values.append(parent.create_lazy_child(name, Inspector))
        elif what == "delete" and values:
            values.pop(number % len(values)).delete()
        elif what == "set" and values:
            value = values[number % len(values)]
            if type(value).__name__ == "StringProperty":
                value.set("z" * (number % 5000))
            elif type(value).__name__ == "BytesProperty":
                value.set(bytes(number % 5000))
        data = inspector.copy()
        assert data is not None
        check_clean(data)
    for value in values + nodes[1:]:
        value.delete()
    check_first_state(inspector)
