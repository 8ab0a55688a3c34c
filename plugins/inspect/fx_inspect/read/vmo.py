"""A VMO, read once: its blocks as columns, its tree, and all that is wrong with it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.format import TYPES
from fx_inspect.read.blocks import Blocks, Gathered, Noted, Run
from fx_inspect.read.chains import Extents
from fx_inspect.read.texts import Texts
from fx_inspect.read.tree import repeated, tree_order
from fx_inspect.read.values import Places, Values
from fx_inspect.rules import RULES
from fxframework.io.limits import Limits
from fxframework.kernels.arrays import I32, I64, U8
from fxframework.kernels.buffers import gathered
from fxframework.kernels.sorting import stable_order
from fxframework.model.strings import StringPool
from fxframework.wire.findings import Findings


class Vmo:
    """One VMO; its strings go to ``pool``.

    ``reached`` is called from time to time, with how many bytes' worth of work is done.
    """

    def __init__(
        self,
        data: U8,
        pool: StringPool,
        limits: Limits,
        reached: Callable[[int], object] = lambda _: None,
    ) -> None:
        self.data = data
        self.nbytes = int(data.size)
        self.pool = pool
        self.findings = Findings(limits.max_findings, RULES.numbers)
        self.header: Any = None
        """The block at index 0, if it is a header."""
        self.tally: I64 = np.zeros((256, 16), np.int64)
        """The number of records by type and order."""
        self.stretches: dict[int, int] = {}
        """Bytes that are damaged, padding, or in blocks of unknown types."""
        # The shares of the time, for a tree of small nodes.
        passed = (reached(share * self.nbytes // 100) for share in (40, 50, 75, 85, 100))
        self._gather(limits)
        next(passed)
        self._settle_texts()
        next(passed)
        self._settle_values()
        next(passed)
        self.texts.enter(self.values.uses, pool)
        next(passed)
        self._order()
        self._forget()
        next(passed)

    # --- Blocks -----------------------------------------------------------------------------------

    def _gather(self, limits: Limits) -> None:
        """Read all blocks, run by run."""
        blocks = Blocks(self.data, limits)
        self.numbers = blocks.numbers
        self._places = Places(blocks.units)
        self.texts = Texts(blocks, limits.max_string)
        self.values = Values(blocks, self._places)
        self._extents = Gathered(blocks, units=np.int32, following=np.int32, capacities=np.int32)
        self._records = Gathered(blocks, units=np.int32)
        self._free = Gathered(blocks, units=np.int64, following=np.int64, orders=np.int64)
        self._padding = Gathered(blocks, begins=np.int64, ends=np.int64)
        self._numbered = {TYPES.NODE_VALUE: 1, TYPES.TOMBSTONE: 0, TYPES.EXTENT: 0}
        self.legacy = blocks.layout == "v0"
        for run in blocks.runs():
            self.findings.add(run.findings)
            self._count(run)
            self._take(run)
            run.forget()
        self.units: I32 = self._records.joined("units")
        """Where each record begins."""
        self._follow_free()

    def _count(self, run: Run) -> None:
        """Count the records of a run, and the bytes of what is not a block of a known type."""
        self.tally += run.tally
        for type in (wire.UNKNOWN_BLOCK, wire.DAMAGED, wire.PADDING):
            if not run.tally[type].any():
                continue
            bounds = run.bounds()
            rows = np.flatnonzero(run.types == type)
            begins = bounds[rows]
            ends = bounds[rows + 1]
            self.stretches[type] = self.stretches.get(type, 0) + int((ends - begins).sum())
            if type == wire.PADDING:
                self._padding.add(begins=begins // wire.UNIT, ends=ends // wire.UNIT)
        if not run.first and run.types[0] == TYPES.HEADER:
            self.header = run.header

    def _take(self, run: Run) -> None:
        """Take the columns of a run."""
        self._records.add(units=run.units)
        self._number(run)
        self.values.add(run)
        self.texts.add(run)
        if TYPES.EXTENT in run.rows:
            rows = run.rows[TYPES.EXTENT]
            [following] = run.fields(TYPES.EXTENT, ["next_extent"], rows)
            self._extents.add(
                units=run.units[rows],
                following=following,
                capacities=run.sizes(rows) - wire.PAYLOAD_AT[TYPES.EXTENT],
            )
        if TYPES.FREE in run.rows:
            [following] = run.fields(TYPES.FREE, ["next_free"], run.rows[TYPES.FREE])
            is_linked = following > 0
            rows = run.rows[TYPES.FREE][is_linked]
            self._free.add(
                units=run.units[rows], following=following[is_linked], orders=run.orders[rows]
            )

    def _number(self, run: Run) -> None:
        """Number nodes from 1 (0 is the root), tombstones, extents, and texts.

        The number of a free block is its order.
        """
        numbers = run.orders.astype(np.uint32)
        for type, next_number in self._numbered.items():
            if type not in run.rows:
                continue
            rows = run.rows[type]
            if type != TYPES.EXTENT and not run.units[rows[0]]:
                rows = rows[1:]  # index 0 is the root, whatever its block is
            numbers[rows] = next_number + np.arange(rows.size)
            self._numbered[type] += rows.size
        numbers[run.texts] = self.texts.count + np.arange(run.texts.size)
        self._places.enter(run.units, run.types, numbers)

    def _follow_free(self) -> None:
        """Report free blocks whose list continues with a block that is not free, or larger."""
        units = self._free.joined("units")
        following = self._free.joined("following")
        orders = self._free.joined("orders")
        begins = self._padding.joined("begins")
        ends = self._padding.joined("ends")
        types, orders_there = self._places.at(following)
        is_free = (types == TYPES.FREE) & (orders_there == orders)
        if begins.size:
            # Padding is free units of the smallest order.
            nearest_padding = np.maximum(np.searchsorted(begins, following, "right") - 1, 0)
            is_inside = (following >= begins[nearest_padding]) & (following < ends[nearest_padding])
            is_free |= is_inside & (orders == 0)
        wrong_blocks = np.flatnonzero(~is_free & (units > 0))
        noted = self._noted()
        noted.add_rows(rules.FREE_LIST, wrong_blocks, units, following)
        self._report(noted)

    def _noted(self) -> Noted:
        """Return what collects findings about the file."""
        return Noted(self.units, self.findings)

    def _report(self, noted: Noted, *, as_added: bool = False) -> None:
        """Report findings, by record or in the order in which they were added."""
        self.findings.add(noted.as_added() if as_added else noted.in_order())

    # --- Texts and values -------------------------------------------------------------------------

    def _settle_texts(self) -> None:
        """Follow the chains of texts."""
        extents_at = self._places.extents_at
        following: I32 = self._extents.joined("following")
        extents = Extents(
            self._extents.joined("units"),
            following,
            self._extents.joined("capacities"),
            extents_at(following, self._numbered[TYPES.EXTENT]),
        )
        noted = self._noted()
        self.texts.settle(extents, extents_at, noted)
        self._report(noted)

    def _settle_values(self) -> None:
        """Look up names and parents, and compare what blocks say of each other."""
        noted = self._noted()
        values = self.values
        values.settle(self.texts, noted)
        self._report(noted)
        for orphans in values.attach():
            noted = self._noted()
            noted.add_rows(rules.ORPHAN, orphans, values.units, values.parents)
            self._report(noted)
        self.order = tree_order(values.node_parents())
        noted = self._noted()
        noted.add_rows(rules.CYCLE, values.node_rows[self.order.cycles], values.units, 0)
        self._report(noted, as_added=True)
        self._compare_counts()

    def _compare_counts(self) -> None:
        """Report what only the inspect validator looks at: counts, double use, unused blocks."""
        noted = self._noted()
        note = noted.add_rows
        values = self.values
        texts = self.texts
        for rows, counts in (
            (values.node_rows[1:], values.node_children[1:]),
            (values.tombstone_rows, values.deleted_children),
        ):
            is_wrong = gathered(values.bits, rows) != counts
            note(rules.NODE_COUNT, rows[is_wrong], values.units, values.bits)
        references = values.references
        is_name = texts.types[:-1] == TYPES.NAME
        is_string = texts.types[:-1] == TYPES.STRING_REFERENCE
        is_named = (is_name | is_string) & (texts.units[:-1] > 0)
        is_used = references > 0
        note(rules.NOT_USED, np.flatnonzero(is_named & ~is_used), texts.units, 0)
        used_twice = np.flatnonzero(is_named & is_name & (references > 1))
        note(rules.NAME_USED_TWICE, used_twice, texts.units, references)
        differs = is_used & (texts.claims[:-1] != references)
        of_other_count = np.flatnonzero(is_named & is_string & differs)
        note(rules.STRING_COUNT, of_other_count, texts.units, references)
        extents = texts.extents
        visited = texts.visited()
        is_elsewhere = extents.units > 0
        note(rules.NOT_USED, np.flatnonzero(is_elsewhere & (visited == 0)), extents.units, 0)
        used_twice = np.flatnonzero(is_elsewhere & (visited > 1))
        note(rules.EXTENT_USED_TWICE, used_twice, extents.units, 0)
        self._report(noted)

    # --- The tree ---------------------------------------------------------------------------------

    def _order(self) -> None:
        """Order what is in the tree, and report children and properties of one name."""
        values = self.values
        order = self.order
        properties = np.flatnonzero(values.kinds)
        in_order, self.value_owners = order.arranged(values.nodes[properties])
        self.value_rows: I32 = properties[in_order].astype(np.int32)
        """The values in the order of `properties`; ``value_owners`` are their nodes."""
        self.link_places, self.link_owners = order.arranged(values.nodes[values.link_rows])
        """The links in the order of `inspect_links`, and their nodes."""
        children = order.nodes[1:]
        # Children of one parent are in the same order in the tree and in the file.
        owners = order.parents[1:]
        by_parent = stable_order(owners)
        if by_parent is not None:
            owners = owners[by_parent]
            children = children[by_parent]
        self._note_repeated(rules.SAME_CHILDREN, owners, gathered(values.node_rows, children))
        self._note_repeated(rules.SAME_PROPERTIES, self.value_owners, self.value_rows)

    def _forget(self) -> None:
        """Drop what only finding the tree needs."""
        self.count = int(self.units.size)
        """The number of records."""
        self.values.forget()
        del self.units

    def _note_repeated(self, rule: Any, owners: I32, rows: NDArray[Any]) -> None:
        """Report the values that have a name again; their owners are in order."""
        codes = gathered(self.texts.codes, gathered(self.values.names, rows))
        left = self.findings.left_of(rule)
        repeated_rows, count = repeated(owners, codes, len(self.pool), left)
        self.findings.cut_off[rule] += count - repeated_rows.size
        noted = self._noted()
        noted.add_rows(rule, rows[repeated_rows], self.values.units, 0)
        self._report(noted, as_added=True)

    @functools.cached_property
    def slot_codes(self) -> I32:
        """The codes of what slots refer to, by unit; behind the last one, that of units beyond.

        A slot that refers to no string is the empty one, of code 0.
        """
        strings = self._places.strings_of_units()
        return np.where(strings < 0, 0, self.texts.codes[strings])

    def link_rows(self) -> I32:
        """Return the values that are links, in the order of `inspect_links`."""
        return self.values.link_rows[self.link_places]

    # --- Facts about the whole VMO ----------------------------------------------------------------

    def record_kinds(self) -> dict[str, int]:
        """Return the number of records of each kind, by the names of record JSON."""
        records = self.tally.sum(axis=1)
        other_kinds = {
            "unknown": wire.UNKNOWN_BLOCK,
            "padding": wire.PADDING,
            "damaged": wire.DAMAGED,
        }
        kinds = {"block": int(records[: wire.NEW_TYPES].sum())}
        kinds |= {name: int(records[type]) for name, type in other_kinds.items()}
        return {name: count for name, count in kinds.items() if count}

    def header_facts(self) -> dict[str, Any] | None:
        """Return the facts of the header; None without one."""
        if self.header is None:
            return None
        shown = self.header.to_json()
        facts = {name: shown[name] for name in ("version", "generation", "locked", "frozen")}
        size = self.header.vmo_size
        return {**facts, "vmo_size": "not given" if size is None else size}

    def heap(self) -> dict[str, Any]:
        """Return the use of the space: blocks by type and order, free space, and its fragmentation.

        Zeros that may or may not be blocks count as free.
        """
        tally = self.tally[: wire.NEW_TYPES]
        sizes = wire.UNIT * (1 << np.arange(16))
        free = tally[TYPES.FREE]
        free_bytes = int((free * sizes).sum())
        total_bytes = int((tally * sizes).sum())
        largest_free = int(sizes[free > 0].max(initial=0))
        # Free blocks of the highest order are unfragmented space, smaller ones are fragments.
        unfragmented_bytes = int(free[wire.MAX_ORDER :] @ sizes[wire.MAX_ORDER :])
        facts: dict[str, Any] = {
            "blocks_by_type": {
                wire.TYPE_NAMES[type]: int(count)
                for type, count in enumerate(tally.sum(axis=1).tolist())
                if count
            },
            "blocks_by_order": _by_order(tally.sum(axis=0)),
            "bytes_used": total_bytes - free_bytes,
            "bytes_free": free_bytes + self.stretches.get(wire.PADDING, 0),
            "free_blocks_by_order": _by_order(free),
            "largest_free_block": largest_free,
            "fragmentation_percent": round(100 * (1 - unfragmented_bytes / free_bytes), 1)
            if free_bytes
            else 0,
        }
        for name, type in (("bytes_damaged", wire.DAMAGED), ("bytes_unknown", wire.UNKNOWN_BLOCK)):
            if type in self.stretches:
                facts[name] = self.stretches[type]
        return facts


def _by_order(counts: I64) -> dict[str, int]:
    return {str(order): count for order, count in enumerate(counts.tolist()) if count}
