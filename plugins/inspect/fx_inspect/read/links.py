"""Follows links: reads the trees that links name, and joins them to the tree with the links.

A tree is found by a link's content: in a mapping, or as a file of that name in a folder. The tree
of a ``child`` link becomes a child with the link's name, after the node's own children; the
contents of an ``inline`` link follow those of its node. Links with the same content lead to the
same tree; a tree is never joined to itself.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_inspect import rules
from fx_inspect.format import CHILD, INLINE
from fx_inspect.read import tables
from fx_inspect.read.batches import TreeRows
from fx_inspect.read.tree import TreeOrder, paths_of, tree_order
from fx_inspect.read.vmo import Vmo
from fxframework.errors import FxError, Severity
from fxframework.io.source import Source
from fxframework.kernels.arrays import I32, I64
from fxframework.kernels.sorting import joined_ranges
from fxframework.kit.scanned import listed_notes
from fxframework.model.capture import Capture, OpenRequest
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.strings import TextColumn
from fxframework.model.table import ColumnData, Table

SUFFIXES = ("", ".inspect", ".vmo")
MOST_ROWS = 1 << 22
MOST_TIMES = 16
"""Most rows that links may add: this number, or this multiple of the tree's own rows."""
NOT_EXPANDED = "not expanded"
EXPANDED = "expanded"
_FINDINGS = {
    "not found": rules.LINK_NOT_FOUND,
    "not readable": rules.LINK_UNREADABLE,
    "cycle": rules.LINK_CYCLE,
    "too deep": rules.LINKS_TOO_DEEP,
}
_ORIGIN = ("offset", "inspect_block")
"""Columns with the origin of a row; for rows of a linked tree, that of the link."""


@attrs.frozen
class _JoinedTree:
    """A tree, and the place where it is joined."""

    tables: Mapping[str, Table]
    numbers: I32
    """Number of each of its nodes among all nodes."""
    first: int
    """Its first own node: 1 if its root is the node with the link."""
    contents: tuple[str, ...]
    """Contents of the links on the way to it."""
    origin: Mapping[str, int] | None
    """``_ORIGIN`` of the capture's link that led to it; None for the capture's own tree."""
    states: I32
    """Codes of the states of its links."""


class JoinedRows:
    """The rows of several trees as one tree, in memory."""

    def __init__(self, columns: Mapping[str, Mapping[str, ColumnData]]) -> None:
        self._columns = columns

    def count(self, name: str) -> int:
        """Return the number of rows of a table."""
        return len(next(iter(self._columns[name].values())))

    def stop(self, name: str, at: int, stop: int) -> int:  # noqa: ARG002 (the interface of TreeRows)
        """Return the end of a batch from row ``at`` to ``stop``."""
        return stop

    def rows(self, name: str, at: int, stop: int) -> tuple[int, dict[str, Any]]:
        """Return the number of rows from ``at`` to ``stop``, and their columns except `row`."""
        return stop - at, {key: each[at:stop] for key, each in self._columns[name].items()}


def join_linked_trees(tree: TreeRows, request: OpenRequest, diagnostics: Diagnostics) -> JoinedRows:
    """Return the rows of a tree and of the trees that its links name.

    A link whose tree is missing or unreadable is reported and stays a link.
    """
    return _Follower(tree, request, diagnostics).joined()


class _Follower:
    def __init__(self, tree: TreeRows, request: OpenRequest, diagnostics: Diagnostics) -> None:
        self.nbytes = tree.vmo.nbytes
        self.strings = tree.vmo.pool
        self.diagnostics = diagnostics
        self.limits = request.limits
        self.links = request.options["links"]
        self.depth = int(request.options.get("link_depth", 16))
        self.known: dict[str, Mapping[str, Table] | str] = {}
        """The tables of a tree, or the state of the link, by content."""
        self.damaged: set[str] = set()
        """Contents of the links to trees of which data was lost."""
        own = self._tables(tree)
        rows = sum(map(len, own.values()))
        self.room = max(MOST_ROWS, MOST_TIMES * rows)
        nodes = len(own["nodes"])
        self.parts = [
            _JoinedTree(own, np.arange(nodes, dtype=np.int32), 0, (), None, self._states(own))
        ]
        self.parents = [own["nodes"].array("parent")]
        self.names = [own["nodes"].array("name")]
        self.count = nodes
        waiting = deque(self.parts)
        while waiting:
            waiting.extend(self._follow(waiting.popleft()))

    def _tables(self, tree: TreeRows) -> dict[str, Table]:
        tables_by_name = {}
        for name, schema in tables.SCHEMAS.items():
            rows, columns = tree.rows(name, 0, tree.count(name))
            columns["row"] = np.arange(rows)
            tables_by_name[name] = Table(schema, rows, columns, self.strings)
        return tables_by_name

    def _states(self, own: Mapping[str, Table]) -> I32:
        code = self.strings.intern(NOT_EXPANDED.encode())
        return np.full(len(own["inspect_links"]), code, np.int32)

    # --- Following --------------------------------------------------------------------------------

    def _follow(self, tree: _JoinedTree) -> list[_JoinedTree]:
        """Follow the links of a part. Return the parts that they lead to."""
        table = tree.tables["inspect_links"]
        rows = table.tuples("node", "name", "content", "disposition", *_ORIGIN)
        linked_trees = []
        for row, (node, name, content, disposition, offset, block) in enumerate(rows):
            if disposition > INLINE:
                continue
            origin = tree.origin or {"offset": offset, "inspect_block": block}
            wanted = self.strings.bytes_of(content).decode(errors="surrogateescape")
            reached = self._reached(wanted, tree.contents)
            if isinstance(reached, str):
                state = reached
                self.diagnostics.add(_FINDINGS[state], origin["offset"], value=wanted)
            else:
                state = EXPANDED
                if wanted in self.damaged:
                    self.diagnostics.add(rules.LINKED_TREE_DAMAGED, origin["offset"], value=wanted)
                node_above = int(tree.numbers[node])
                child_name = name if disposition == CHILD else None
                contents = (*tree.contents, wanted)
                linked_tree = self._enter(reached, node_above, child_name, contents, origin)
                linked_trees.append(linked_tree)
            tree.states[row] = self.strings.intern(state.encode())
        self.parts += linked_trees
        return linked_trees

    def _enter(
        self,
        own: Mapping[str, Table],
        node_above: int,
        name: int | None,
        contents: tuple[str, ...],
        origin: Mapping[str, int],
    ) -> _JoinedTree:
        """Number the nodes of a tree below node ``above``, or as that node if there is no name."""
        nodes = own["nodes"]
        first_node = 0 if name is not None else 1
        numbers = np.arange(len(nodes), dtype=np.int32) + np.int32(self.count - first_node)
        names = nodes.array("name").copy()
        if name is None:
            numbers[0] = node_above
        else:
            names[0] = name
        parents = numbers[nodes.array("parent")]
        parents[0] = node_above
        self.parents.append(parents[first_node:])
        self.names.append(names[first_node:])
        self.count += len(nodes) - first_node
        return _JoinedTree(own, numbers, first_node, contents, origin, self._states(own))

    def _reached(self, wanted: str, contents: tuple[str, ...]) -> Mapping[str, Table] | str:
        """Return the tables of the tree that a link leads to, or the state of the link."""
        if wanted in contents:
            return "cycle"
        if len(contents) >= self.depth:
            return "too deep"
        if wanted not in self.known:
            self.known[wanted] = self._read(wanted)
        reached = self.known[wanted]
        if not isinstance(reached, str):
            rows = sum(map(len, reached.values()))
            if rows > self.room:
                return "too deep"
            self.room -= rows
        return reached

    def _read(self, wanted: str) -> Mapping[str, Table] | str:
        link_source = self._given(wanted)
        if link_source is None:
            return "not found"
        try:
            source = (
                link_source.source if isinstance(link_source, Capture) else Source.open(link_source)
            )
            vmo = Vmo(source.data, self.strings, self.limits)
            linked_tables = self._tables(TreeRows(vmo, self.limits.max_memory))
            source.check()
        except FxError:
            return "not readable"
        if not source.size or vmo.header is None:
            return "not readable"
        notes = listed_notes(vmo.findings, rules.RULES)
        if any(note.rule.severity >= Severity.DATA_LOSS for note in notes):
            self.damaged.add(wanted)
        return linked_tables

    def _given(self, wanted: str) -> Any:
        """Return the source of that name: bytes, a path or a capture; None if there is none."""
        if isinstance(self.links, Mapping):
            return self.links.get(wanted)
        # The contents of a file must not lead out of the folder.
        if wanted in ("", ".", "..") or "\0" in wanted or os.path.basename(wanted) != wanted:  # noqa: PTH119
            return None
        if "\\" in wanted or ":" in wanted:
            return None
        for suffix in SUFFIXES:
            path = Path(self.links) / f"{wanted}{suffix}"
            try:
                if path.is_file():
                    return path
            except OSError:  # a name that the file system does not allow
                return None
        return None

    # --- Joining ----------------------------------------------------------------------------------

    def joined(self) -> JoinedRows:
        """Return all parts as one tree."""
        order = tree_order(np.concatenate(self.parents))
        columns: dict[str, dict[str, ColumnData]] = {}
        owned = {name: self._owned(name, order) for name in ("properties", "inspect_links")}
        link_rows, link_owners = owned["inspect_links"]
        columns["nodes"] = self._nodes(order, link_owners)
        for name, (rows, owners) in owned.items():
            columns[name] = {
                key: self._column(name, key, rows) for key in self._keys(name) if key != "node"
            }
            columns[name]["node"] = owners
        states = np.concatenate([part.states for part in self.parts])
        columns["inspect_links"]["state"] = states[link_rows]
        self._slots(columns, owned["properties"][0])
        return JoinedRows(columns)

    def _keys(self, name: str) -> list[str]:
        return [
            key
            for key in self.parts[0].tables[name].columns
            if key not in ("row", "array", "state")
        ]

    def _owned(self, name: str, order: TreeOrder) -> tuple[I64, I32]:
        """Return the rows of all parts in the order of the tree, and the node of each."""
        owners = [part.numbers[part.tables[name].array("node")] for part in self.parts]
        return order.arranged(np.concatenate(owners))

    def _column(self, name: str, key: str, rows: NDArray[Any]) -> ColumnData:
        """Return some rows of a column of all parts, which follow one another."""
        columns: list[Any] = []
        for tree in self.parts:
            column: Any = tree.tables[name][key]
            if name == "nodes":
                column = column[tree.first :]
            if tree.origin is not None and key in _ORIGIN:
                origin = tree.origin[key]
                column = np.full(len(column), origin, column.dtype)
            columns.append(column)
        if isinstance(columns[0], TextColumn):
            return TextColumn.joined(columns).take(rows)
        arranged: NDArray[Any] = np.concatenate(columns)[rows]
        return arranged

    def _nodes(self, order: TreeOrder, link_owners: I32) -> dict[str, ColumnData]:
        numbers = order.nodes
        names = np.concatenate(self.names)[numbers]
        return {
            "offset": self._column("nodes", "offset", numbers),
            "id": np.arange(numbers.size, dtype=np.int32),
            "parent": order.parents,
            "name": names,
            "path": paths_of(self.strings, names, order, self.nbytes),
            "links": np.bincount(link_owners, minlength=numbers.size).astype(np.int32),
            "inspect_block": self._column("nodes", "inspect_block", numbers),
        }

    def _slots(self, columns: dict[str, dict[str, ColumnData]], rows: I64) -> None:
        """Order slots by their properties, and store their positions in these."""
        counts = np.concatenate(
            [part.tables["properties"].array("array")[:, 1] for part in self.parts]
        )
        first_slots = np.cumsum(counts) - counts
        counts = counts[rows]
        first_slots = first_slots[rows]
        starts = np.cumsum(counts) - counts
        order = joined_ranges(first_slots, counts)
        slots = {
            key: self._column("inspect_slots", key, order) for key in self._keys("inspect_slots")
        }
        slots["parent"] = np.repeat(np.arange(rows.size), counts)
        columns["inspect_slots"] = slots
        arrays = np.asarray(columns["properties"]["type"]) >= tables.INT_ARRAY
        first_of_arrays = starts * arrays
        columns["properties"]["array"] = np.stack((first_of_arrays, counts), axis=1)
