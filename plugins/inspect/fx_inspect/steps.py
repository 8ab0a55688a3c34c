"""Steps of scenarios: trees in VMOs of the target, changed by steps or by threads.

A value is named by its path, ``"a/b"``. The VMO of a device gets its Inspector at the first step
that uses it, or by ``inspect.start``, which sets its options.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import attrs

from fx_inspect.format import MAX_VERSION, MAX_VMO
from fx_inspect.read.snapshot import Snapshot
from fx_inspect.write.arrays import StringArray
from fx_inspect.write.nodes import Node
from fx_inspect.write.values import StringProperty
from fx_inspect.write.writer import Inspector
from fxframework.errors import UnreadableError, UsageError, did_you_mean
from fxframework.kit import workload
from fxframework.kit.steps import Outcome, Run, parameter, table_schema
from fxframework.kit.workload import BODY, Activity, CommonAction

KINDS = (
    "node", "int", "uint", "double", "bool", "string", "bytes",
    "int_array", "uint_array", "double_array", "string_array",
    "int_linear_histogram", "uint_linear_histogram", "double_linear_histogram",
    "int_exponential_histogram", "uint_exponential_histogram", "double_exponential_histogram",
)  # fmt: skip
"""Kinds of values; a node has a method ``create_KIND`` for each but the node."""
LINKS = ("child", "inline")

_DEVICE = "the VMO"
_PATH = 'path of the value, such as "net/packets"'
_NEW = "path of the new value; what it is below must be there"
_VALUE = "its value; of an array a list, of bytes { hex = … }, of a histogram the list of floor, "
_VALUE += "step (and multiplier) and number of buckets"
_KIND = "its kind; where it is not given, the value tells, and without a value it is a node"
_SLOT = "slot of an array"
_LINK = "the device whose tree it links to"
_HOW = "what the linked tree becomes: a child, or inline in the node above"


@attrs.frozen
class Content:
    """A TOML value: a number, text or bool, a list, or ``{ hex = "00ff" }``."""

    value: Any

    @classmethod
    def from_toml(cls, value: Any) -> Self:
        """Return the content of a TOML value. Raises ValueError for an unsupported value."""
        if isinstance(value, dict) and set(value) == {"hex"} and isinstance(value["hex"], str):
            return cls(bytes.fromhex(value["hex"]))
        if isinstance(value, list) and all(isinstance(item, int | float | str) for item in value):
            return cls(value)
        if isinstance(value, bool | int | float | str):
            return cls(value)
        raise ValueError(f"is {value!r}: must be a value, a list of values, or {{ hex = … }}")

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON schema, for `fxf replay --schema`."""
        single = {"type": ["boolean", "number", "string"]}
        table = table_schema({"hex": {"type": "string"}}, "hex")
        return {"anyOf": [single, {"type": "array", "items": single}, table]}

    def kind(self) -> str:
        """Return the kind of the value."""
        value = self.value
        if isinstance(value, list):
            inner = Content(value[0]).kind() if value else "int"
            return f"{inner}_array"
        kinds = {bool: "bool", int: "int", float: "double", str: "string", bytes: "bytes"}
        return kinds[type(value)]


# --- The tree of a device ------------------------------------------------------------------------


class Tree:
    """The Inspector of a device, and its values by path."""

    def __init__(self, inspector: Inspector) -> None:
        self.inspector = inspector
        self.values: dict[str, Any] = {"": inspector.root}

    @property
    def failed(self) -> int:
        """Blocks for which there was no room so far."""
        return self.inspector.stats().failed_allocations

    def create(
        self,
        path: str,
        kind: str,
        content: Any,
        *,
        link: Inspector | None = None,
        disposition: str = "child",
    ) -> None:
        """Create a value."""
        parent_path, _, name = path.rpartition("/")
        node = self.value(parent_path)
        if path in self.values:
            raise UsageError(f"{path!r} exists already", remedy="delete it first")
        if not isinstance(node, Node):
            raise UsageError(f"{parent_path!r} is not a node")
        if link is not None:
            inline = disposition == "inline"
            make = node.create_lazy_values if inline else node.create_lazy_child
            self.values[path] = make(name, lambda: link)
        elif kind == "node":
            self.values[path] = node.create_child(name)
        else:
            arguments = content if "histogram" in kind else [content]
            if content is None or not isinstance(arguments, list):
                raise UsageError(f"{path!r}: a value is needed for a {kind}")
            try:
                self.values[path] = getattr(node, f"create_{kind}")(name, *arguments)
            except TypeError:
                raise UsageError(
                    f"{path!r}: {arguments!r} is not a value of a {kind}", remedy=_VALUE
                ) from None

    def value(self, path: str) -> Any:
        """Return the value of a path. Raises UsageError for an unknown path."""
        try:
            return self.values[path]
        except KeyError:
            paths = list(filter(None, self.values))
            raise UsageError(
                f"no value {path!r}{did_you_mean(path, paths)}",
                remedy="make it with inspect.create",
            ) from None

    def call(self, path: str, method: str, *given: Any) -> None:
        """Call a method of a value. Raises UsageError if the value does not have it."""
        value = self.value(path)
        bound_method = getattr(value, method, None)
        if bound_method is None:
            raise UsageError(f"{path!r} is a {type(value).__name__}, which has no {method}")
        try:
            bound_method(*given)
        except TypeError:
            raise UsageError(
                f"{path!r} is a {type(value).__name__}: {method} needs other arguments",
                remedy="give a slot for arrays only",
            ) from None

    def add(self, path: str, by: float, slot: int | None) -> None:
        """Add to a number, or subtract from it."""
        if by < 0:
            self.call(path, "subtract", *_slot(slot), -by)
        else:
            self.call(path, "add", *_slot(slot), by)

    def delete(self, path: str) -> None:
        """Delete a value, and forget the paths below it, which become invisible."""
        if not path:
            raise UsageError("the root cannot be deleted", remedy="delete what is below it")
        self.call(path, "delete")
        for deeper_path in [known for known in self.values if known.startswith(f"{path}/")]:
            del self.values[deeper_path]
        del self.values[path]

    def move(self, path: str, to: str) -> None:
        """Move a value, and all below it, to another node."""
        value = self.value(path)
        node = self.value(to)
        name = path.rpartition("/")[2]
        new = f"{to}/{name}" if to else name
        if new in self.values:
            raise UsageError(f"{new!r} exists already", remedy="delete it first")
        if not isinstance(node, Node):
            raise UsageError(f"{to!r} is not a node")
        value.reparent(node)
        for old_path in list(self.values):
            if f"{old_path}/".startswith(f"{path}/"):
                new_path = new + old_path[len(path) :]
                self.values[new_path] = self.values.pop(old_path)


def _slot(slot: int | None) -> list[int]:
    """Return a slot as an argument, of which values without slots have none."""
    return [] if slot is None else [slot]


def tree_of(run: Run, device: str) -> Tree:
    """Return the tree of a device, created at first use."""
    return run.shared((Tree, device), lambda: Tree(Inspector(run.device(device))))


# --- Actions of a thread -------------------------------------------------------------------------


ActionContext = workload.ActionContext[Tree]


def _content(stage: ActionContext, content: Content, *, texts: bool) -> Any:
    """Return a value in the current round; ``"{i}"`` alone is a number, or one of ``texts``."""
    value = content.value
    if not texts:
        return stage.value(value)
    if isinstance(value, list):
        return [_content(stage, Content(item), texts=True) for item in value]
    return stage.text(value) if isinstance(value, str) else value


@attrs.frozen
class Create:
    """Create a value."""

    create: str = parameter(help=_NEW)
    value: Content | None = parameter(None, help=_VALUE)
    kind: str = parameter("", help=_KIND, choices=("", *KINDS))

    def do(self, stage: ActionContext) -> None:
        """Create the value."""
        texts = self.kind in {"string", "string_array"}
        content = None
        if self.value is not None:
            content = Content(_content(stage, self.value, texts=texts))
        _create(stage.writer, stage.text(self.create), self.kind, content)


@attrs.frozen
class Set:
    """Set a value."""

    set: str = parameter(help=_PATH)
    value: Content = parameter(help="what to")
    slot: int | None = parameter(None, help=_SLOT, least=0)

    def do(self, stage: ActionContext) -> None:
        """Set the value."""
        path = stage.text(self.set)
        texts = isinstance(stage.writer.value(path), StringProperty | StringArray)
        value = _content(stage, self.value, texts=texts)
        stage.writer.call(path, "set", *_slot(self.slot), value)


@attrs.frozen
class Add:
    """Add to a number."""

    add: str = parameter(help=_PATH)
    by: int | float | str = parameter(1, help="how much; less than 0 subtracts")
    slot: int | None = parameter(None, help=_SLOT, least=0)

    def do(self, stage: ActionContext) -> None:
        """Add to the number."""
        amount = stage.number(self.by)
        stage.writer.add(stage.text(self.add), amount, self.slot)


@attrs.frozen
class Insert:
    """Count a value in a histogram."""

    insert: str = parameter(help=_PATH)
    value: int | float | str = parameter(help="the value")
    count: int = parameter(1, help="how often", least=0)

    def do(self, stage: ActionContext) -> None:
        """Count the value."""
        path = stage.text(self.insert)
        value = stage.number(self.value)
        stage.writer.call(path, "insert_multiple", value, self.count)


@attrs.frozen
class Delete:
    """Delete a value."""

    delete: str = parameter(help=_PATH)

    def do(self, stage: ActionContext) -> None:
        """Delete the value."""
        stage.writer.delete(stage.text(self.delete))


@attrs.frozen
class Move:
    """Move a value to another node."""

    move: str = parameter(help=_PATH)
    to: str = parameter(help="path of the node; the empty one is the root")

    def do(self, stage: ActionContext) -> None:
        """Move the value."""
        path = stage.text(self.move)
        stage.writer.move(path, stage.text(self.to))


@attrs.frozen
class InTransaction:
    """Make several changes that readers see at once."""

    transaction: list[Action] = parameter(help="what is done within it")

    def do(self, stage: ActionContext) -> Activity:
        """Do the actions."""
        with stage.writer.inspector.transaction():
            yield from stage.all(self.transaction)


@attrs.frozen
class Loop(workload.Loop):
    """Repeat actions."""

    body: list[Action] = parameter(help=BODY)


Action = Create | Set | Add | Insert | Delete | Move | InTransaction | CommonAction | Loop


@attrs.frozen
class InspectThread(workload.ThreadParameters):
    """Start a thread that changes a tree."""

    device: str = parameter(help=_DEVICE, refers="device:vmo")
    script: list[Action] = parameter(help="what it does")

    def do(self, run: Run) -> Outcome:
        """Start the thread; it runs when time passes."""
        tree = tree_of(run, self.device)
        thread = workload.start(self, run, self.device, tree, self.script)
        pid, tid = thread.ids
        return Outcome.ok(pid=pid, tid=tid)


# --- Steps ---------------------------------------------------------------------------------------


@attrs.frozen
class _OfDevice:
    device: str = parameter(help=_DEVICE, refers="device:vmo")

    def _changed(self, run: Run, path: str, change: Callable[[Tree], None]) -> Outcome:
        """Change a value; say where the VMO has no room, so that the value is not there."""
        tree = tree_of(run, self.device)
        failed_before = tree.failed
        change(tree)
        failed = tree.failed - failed_before
        value = tree.values.get(path)
        if value is not None and not value.exists:
            message = "no effect: the VMO had no room for this value"
            return Outcome.ok(message, failed_allocations=failed, exists=False)
        if failed:
            message = f"the VMO had no room for {failed} blocks of the value"
            return Outcome.ok(message, failed_allocations=failed)
        return Outcome.ok()


@attrs.frozen
class _OfValue(_OfDevice):
    path: str = parameter(help=_PATH)

    def do(self, run: Run) -> Outcome:
        """Change the value."""
        return self._changed(run, self.path, self.change)

    def change(self, tree: Tree) -> None:
        """Change the value in a tree."""
        raise NotImplementedError


@attrs.frozen
class InspectStart(_OfDevice):
    """Begin the tree of a VMO."""

    version: int = parameter(2, help="of the format: 0, 1 or 2", least=0, most=MAX_VERSION)
    max_size: int | None = parameter(
        None, help="bytes that it may grow to, where the VMO does", least=0, most=MAX_VMO
    )
    growth: str = parameter("step", help="how it grows", choices=("step", "double"))

    def do(self, run: Run) -> Outcome:
        """Begin a tree, before any other step uses the device."""
        options: Mapping[str, Any] = {
            "version": self.version,
            "max_size": self.max_size,
            "growth": self.growth,
        }
        device = run.device(self.device)
        run.begin(
            (Tree, self.device),
            lambda: Tree(Inspector(device, **options)),
            f"{self.device!r} has a tree",
        )
        return Outcome.ok()


@attrs.frozen
class InspectCreate(_OfDevice):
    """Create a value."""

    path: str = parameter(help=_NEW)
    value: Content | None = parameter(None, help=_VALUE)
    kind: str = parameter("", help=_KIND, choices=("", *KINDS))
    link: str = parameter("", help=_LINK, refers="device:vmo")
    disposition: str = parameter("child", help=_HOW, choices=LINKS)

    def do(self, run: Run) -> Outcome:
        """Create the value."""

        def create(tree: Tree) -> None:
            if self.link:
                linked = tree_of(run, self.link).inspector
                tree.create(self.path, "", None, link=linked, disposition=self.disposition)
            else:
                _create(tree, self.path, self.kind, self.value)

        return self._changed(run, self.path, create)


def _create(tree: Tree, path: str, kind: str, content: Content | None) -> None:
    if content is None:
        tree.create(path, kind or "node", None)
    else:
        tree.create(path, kind or content.kind(), content.value)


@attrs.frozen
class InspectSet(_OfValue):
    """Set a value."""

    value: Content = parameter(help="what to")
    slot: int | None = parameter(None, help=_SLOT, least=0)

    def change(self, tree: Tree) -> None:
        """Set the value."""
        tree.call(self.path, "set", *_slot(self.slot), self.value.value)


@attrs.frozen
class InspectAdd(_OfValue):
    """Change a number."""

    by: int | float = parameter(1, help="how much; less than 0 subtracts")
    slot: int | None = parameter(None, help=_SLOT, least=0)

    def change(self, tree: Tree) -> None:
        """Add to the number."""
        tree.add(self.path, self.by, self.slot)


@attrs.frozen
class InspectInsert(_OfValue):
    """Count a value in a histogram."""

    value: int | float = parameter(help="the value")
    count: int = parameter(1, help="how often", least=0)

    def change(self, tree: Tree) -> None:
        """Count the value."""
        tree.call(self.path, "insert_multiple", self.value, self.count)


@attrs.frozen
class InspectDelete(_OfValue):
    """Delete a value."""

    def change(self, tree: Tree) -> None:
        """Delete the value."""
        tree.delete(self.path)


@attrs.frozen
class InspectMove(_OfValue):
    """Move a value to another node."""

    to: str = parameter(help="path of the node; the empty one is the root")

    def change(self, tree: Tree) -> None:
        """Move the value."""
        tree.move(self.path, self.to)


@attrs.frozen
class InspectBegin(_OfDevice):
    """Begin a transaction."""

    def do(self, run: Run) -> None:
        """Begin a transaction, perhaps within another one."""
        tree_of(run, self.device).inspector.begin_transaction()


@attrs.frozen
class InspectEnd(_OfDevice):
    """End a transaction."""

    def do(self, run: Run) -> None:
        """End the innermost transaction."""
        tree_of(run, self.device).inspector.end_transaction()


@attrs.frozen
class InspectSnapshot(_OfDevice):
    """Save a copy of a VMO as an output."""

    as_: str = parameter(help="the output", makes="output")

    def do(self, run: Run) -> Outcome:
        """Copy the VMO as a reader does; fails during a change."""
        try:
            snapshot = Snapshot.take(run.device(self.device), attempts=1)
        except UnreadableError as error:
            return Outcome.failed(str(error), code=error.code)
        run.put(self.as_, snapshot.data)
        return Outcome.ok(generation=snapshot.generation, bytes=len(snapshot.data))


@attrs.frozen
class InspectFreeze(InspectSnapshot):
    """Save a frozen copy of a VMO as an output."""

    def do(self, run: Run) -> Outcome:
        """Save a frozen copy; fails within a transaction."""
        frozen = tree_of(run, self.device).inspector.freeze()
        if frozen is None:
            return Outcome.failed("a transaction is open")
        run.put(self.as_, frozen)
        return Outcome.ok(bytes=len(frozen))


@attrs.frozen
class InspectTrees(_OfDevice):
    """Save the trees of links, each as an output named by the link's content."""

    as_: str = parameter(help="the folder of outputs", makes="output")

    def do(self, run: Run) -> Outcome:
        """Request all trees, and save them as FOLDER/CONTENT."""
        trees_saved = 0
        for content, inspector in tree_of(run, self.device).inspector.trees().items():
            snapshot = Snapshot.take(inspector.memory, attempts=1)
            run.put(f"{self.as_}/{content}", snapshot.data)
            trees_saved += 1
        return Outcome.ok(trees=trees_saved)
