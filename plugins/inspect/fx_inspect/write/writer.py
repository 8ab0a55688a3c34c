"""Writer: the tree of a program as an Inspect VMO, changed one call at a time; and blocks as bytes.

A program holds an ``Inspector``; its ``root`` has nodes and properties, which are made, set and
deleted. Every change is in the memory when the call returns; a reader that looks meanwhile finds
an odd generation. ``open_writer`` puts blocks that were read, or their JSON, back into bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import attrs

from fx_inspect import layout as wire
from fx_inspect.write.heap import Growth
from fx_inspect.write.links import Lazy
from fx_inspect.write.nodes import Node
from fx_inspect.write.state import State, refused, uint64
from fxframework.io.memory import BytesMemory
from fxframework.io.sink import Sink
from fxframework.io.words import WORD
from fxframework.kit.lossless import RecordRewriter
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.target import Memory

__all__ = ["STATS_NODE", "Inspector", "Stats", "Transaction", "open_writer"]

STATS_NODE = "fuchsia.inspect.Stats"
BUFFER = 1 << 20
"""Bytes gathered before they go to the sink."""
_WORD = struct.Struct("<Q")


@attrs.frozen
class Stats:
    """What a writer did so far, and how much room there is."""

    current_size: int
    """Bytes of the VMO."""
    maximum_size: int
    """Bytes that it may grow to."""
    total_dynamic_children: int
    """Links that are in the tree."""
    allocated_blocks: int
    """Blocks allocated, those freed since included."""
    deallocated_blocks: int
    failed_allocations: int
    """Blocks for which there was no room."""


class Transaction:
    """A period in which several things change at once: ``with inspector.transaction():``."""

    def __init__(self, inspector: Inspector) -> None:
        self._inspector = inspector

    def __enter__(self) -> None:
        self._inspector.begin_transaction()

    def __exit__(self, *_: object) -> None:
        self._inspector.end_transaction()


class Inspector:
    """A tree in a VMO: what a program tells of itself.

    ``memory`` is any target memory: it begins with one page, and grows a page at a time up to
    ``max_size`` bytes (rounded up to pages; what the memory has, or else 256 KiB) as long as the
    memory grows. Without one, it is a memory of this process. ``version`` 2 has shared strings and
    a header with the size; 1 names and strings of their own; 0 the layout of 2019, without bools
    and arrays of strings. ``growth="double"`` grows as the C++ writer does; version 0 always does.

    Each call that changes something is one period with an odd generation, or part of the
    transaction that is open. Several threads may call. Raises WriteRefusedError FXI0404 for another
    version and FXI0414 for more than 128 MiB.
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
            raise refused(404, f"unknown version {version!r}: use 0, 1 or 2")
        if growth not in {"step", "double"}:
            raise refused(403, f'unknown growth {growth!r}: use "step" or "double"')
        has = 0 if memory is None else memory.size - memory.size % wire.PAGE
        size = max(has, wire.DEFAULT_VMO) if max_size is None else uint64(max_size, "a size")
        size = max(size + -size % wire.PAGE, wire.MIN_VMO)
        if max_size is None:
            size = min(size, wire.MAX_VMO)
        if size > wire.MAX_VMO:
            raise refused(414, f"a VMO of {size} bytes is too large: at most {wire.MAX_VMO}")
        if memory is None:
            memory = BytesMemory(wire.PAGE)
        self.memory: Memory = memory
        """Where it is."""
        self.version = version
        self._state = State(
            memory,
            version=version,
            max_size=size,
            growth="double" if version == 0 else growth,
        )
        self.root = Node(self._state)
        """The node that all others are below."""

    def __repr__(self) -> str:
        return f"<Inspector: version {self.version}, {self.size} bytes>"

    @property
    def size(self) -> int:
        """Bytes of the VMO."""
        return self._state.heap.size

    @property
    def generation(self) -> int:
        """How often something began or ended; odd while something changes."""
        return self._state.generation

    def transaction(self) -> Transaction:
        """``with inspector.transaction():`` all that is done within is one change to readers.

        They may be nested. What another thread does meanwhile is part of it.
        """
        return Transaction(self)

    def begin_transaction(self) -> None:
        """Begin a transaction, or one within it."""
        with self._state.lock:
            self._state.begin()

    def end_transaction(self) -> None:
        """End the transaction that began last. Raises WriteRefusedError (FXI0413) for none."""
        with self._state.lock:
            if not self._state.depth:
                raise refused(413, "no transaction is open")
            self._state.end()

    def copy(self) -> bytes | None:
        """The VMO as it is, up to its size; None while a transaction is open."""
        state = self._state
        with state.lock:
            return None if state.depth else self.memory.read(0, self.size)

    def freeze(self) -> bytes | None:
        """A copy that says that it does not change any more; None while a transaction is open.

        The generation is odd meanwhile only in the copy's stead: readers of the VMO notice nothing.
        """
        data = self.copy()
        if data is None:
            return None
        at = wire.GENERATION_AT
        return data[:at] + _WORD.pack(wire.FROZEN_GENERATION) + data[at + WORD :]

    def trees(self) -> dict[str, Inspector]:
        """The trees of all links, by what the links say; each may have links itself.

        Calls what was given for each, in the order in which the links were made, outside any
        period.
        """
        with self._state.lock:
            links = dict(self._state.links)
        return {content: callback() for content, callback in links.items()}

    def stats(self) -> Stats:
        """What was done so far, and how much room there is."""
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
        """A node ``fuchsia.inspect.Stats`` below the root, with the stats as they are now."""
        node = self.root.create_child(STATS_NODE)
        _record(node, self)
        return node

    def record_lazy_stats(self) -> Lazy:
        """The same as a link: the stats are those of the moment in which somebody reads it."""

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


# --- Blocks that are there already ---------------------------------------------------------------


def open_writer(
    sink: Sink,
    options: Mapping[str, Any],  # noqa: ARG001 (it has none)
    diagnostics: Diagnostics,  # noqa: ARG001 (findings are the reader's; this one refuses)
) -> RecordRewriter:
    """A writer of blocks, as they were read."""
    from fx_inspect.write.encoder import RecordEncoder

    return RecordRewriter(sink, RecordEncoder())
