"""The writer: the tree of a program as an Inspect VMO, changed one call at a time; blocks as bytes.

A program holds an ``Inspector``; its ``root`` has nodes and properties, which are created, set and
deleted. Every change is in the memory when the call returns; a reader during a change finds an odd
generation. ``open_writer`` writes blocks that were read, or their JSON, as bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import attrs

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.write.heap import Growth
from fx_inspect.write.nodes import Node
from fx_inspect.write.state import State, uint64
from fx_inspect.write.values import Lazy
from fxframework.errors import refusal
from fxframework.io.memory import BytesMemory
from fxframework.io.sink import Sink
from fxframework.io.words import WORD
from fxframework.kit.lossless import RecordRewriter
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.target import Memory

STATS_NODE = "fuchsia.inspect.Stats"
BUFFER = 1 << 20
"""Bytes buffered before they go to the sink."""
_WORD = struct.Struct("<Q")


@attrs.frozen
class Stats:
    """Statistics of a writer and its heap."""

    current_size: int
    """Bytes of the VMO."""
    maximum_size: int
    """Most bytes of the VMO."""
    total_dynamic_children: int
    """Links in the tree."""
    allocated_blocks: int
    """Blocks allocated, including freed ones."""
    deallocated_blocks: int
    failed_allocations: int
    """Allocations without room."""


class Transaction:
    """Several changes that readers see at once: ``with inspector.transaction():``."""

    def __init__(self, inspector: Inspector) -> None:
        self._inspector = inspector

    def __enter__(self) -> None:
        self._inspector.begin_transaction()

    def __exit__(self, *_: object) -> None:
        self._inspector.end_transaction()


class Inspector:
    """A tree in a VMO, with the state that a program publishes.

    ``memory`` is any target memory. The VMO starts with one page, and grows a page at a time up to
    ``max_size`` bytes (rounded up to pages; by default the size of the memory, but at least 256
    KiB) as long as the memory grows. Without ``memory``, the VMO is in this process. ``version`` 2
    has shared strings and a header with the size; 1 has names and strings of each value; 0 has the
    layout of 2019, without bools and arrays of strings. ``growth="double"`` grows as the C++ writer
    does; version 0 always does.

    Each call that changes something is one period with an odd generation, or part of the open
    transaction. Several threads may call. Raises WriteRefusedError OUT_OF_RANGE for another version
    and INVALID_VMO_SIZE for more than 128 MiB.
    """

    def __init__(
        self,
        memory: Memory | None = None,
        *,
        version: int = 2,
        max_size: int | None = None,
        growth: Growth = "step",
    ) -> None:
        if version not in {0, 1, 2}:
            raise refusal(rules.OUT_OF_RANGE, f"unknown version {version!r}: use 0, 1 or 2")
        if growth not in {"step", "double"}:
            raise refusal(rules.WRONG_TYPE, f'unknown growth {growth!r}: use "step" or "double"')
        size = wire.DEFAULT_VMO
        if max_size is not None:
            size = uint64(max_size, "a size")
        elif memory is not None:
            size = max(size, memory.size - memory.size % wire.PAGE)
        size = max(size + -size % wire.PAGE, wire.MIN_VMO)
        if max_size is None:
            size = min(size, wire.MAX_VMO)
        if size > wire.MAX_VMO:
            raise refusal(
                rules.INVALID_VMO_SIZE,
                f"a VMO of {size} bytes is too large: at most {wire.MAX_VMO}",
            )
        if memory is None:
            memory = BytesMemory(wire.PAGE)
        self.memory: Memory = memory
        """The memory of the VMO."""
        self.version = version
        self._state = State(
            memory,
            version=version,
            max_size=size,
            growth="double" if version == 0 else growth,
        )
        self.root = Node(self._state)
        """The root node."""

    def __repr__(self) -> str:
        return f"<Inspector: version {self.version}, {self.size} bytes>"

    @property
    def size(self) -> int:
        """Bytes of the VMO."""
        return self._state.heap.size

    @property
    def generation(self) -> int:
        """Number of period starts and ends so far; odd during a change."""
        return self._state.generation

    def transaction(self) -> Transaction:
        """Return a context manager that makes all changes within it one change for readers.

        Transactions may be nested. Changes by other threads meanwhile belong to it.
        """
        return Transaction(self)

    def begin_transaction(self) -> None:
        """Begin a transaction, perhaps within another one."""
        with self._state.lock:
            self._state.begin()

    def end_transaction(self) -> None:
        """End the innermost transaction.

        Raises WriteRefusedError (TRANSACTION_STATE) if none is open.
        """
        with self._state.lock:
            if not self._state.depth:
                raise refusal(rules.TRANSACTION_STATE, "no transaction is open")
            self._state.end()

    def copy(self) -> bytes | None:
        """Return the VMO up to its size; None while a transaction is open."""
        state = self._state
        with state.lock:
            return None if state.depth else self.memory.read(0, self.size)

    def freeze(self) -> bytes | None:
        """Return a copy marked as no longer changing; None while a transaction is open.

        Only the copy has the frozen generation: readers of the VMO notice nothing.
        """
        data = self.copy()
        if data is None:
            return None
        at = wire.GENERATION_AT
        return data[:at] + _WORD.pack(wire.FROZEN_GENERATION) + data[at + WORD :]

    def trees(self) -> dict[str, Inspector]:
        """Return the trees of all links, by content; each may have links itself.

        Calls the callback of each link, in the order of creation, outside any period.
        """
        with self._state.lock:
            links = dict(self._state.links)
        return {content: callback() for content, callback in links.items()}

    def stats(self) -> Stats:
        """Return statistics of the writer and its heap."""
        heap = self._state.heap
        return Stats(
            current_size=heap.size,
            maximum_size=heap.max_size,
            total_dynamic_children=len(self._state.links),
            allocated_blocks=heap.allocated,
            deallocated_blocks=heap.freed,
            failed_allocations=heap.failed,
        )

    def record_stats(self) -> Node:
        """Create a node ``fuchsia.inspect.Stats`` below the root, with the current statistics."""
        node = self.root.create_child(STATS_NODE)
        _record(node, self)
        return node

    def record_lazy_stats(self) -> Lazy:
        """Create a link to the statistics, which are computed when it is read."""

        def tree() -> Inspector:
            inspector = Inspector()
            _record(inspector.root, self)
            return inspector

        return self.root.create_lazy_child(STATS_NODE, tree)


def _record(node: Node, inspector: Inspector) -> None:
    stats = attrs.asdict(inspector.stats())
    with Transaction(inspector):
        for name, value in stats.items():
            node.create_uint(name, value)


# --- Existing blocks -----------------------------------------------------------------------------


def open_writer(
    sink: Sink,
    options: Mapping[str, Any],  # noqa: ARG001 (no options)
    diagnostics: Diagnostics,  # noqa: ARG001 (this writer raises errors instead)
) -> RecordRewriter:
    """Open a writer of blocks."""
    from fx_inspect.write.encoder import RecordEncoder

    return RecordRewriter(sink, RecordEncoder())
