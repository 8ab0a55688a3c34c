"""Values: the nodes, properties and links of a VMO, and the nodes that they belong to.

They are rows in the order of the file, tombstones too. What is wrong with one drops it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.format import TYPES
from fx_inspect.read import tables
from fx_inspect.read.blocks import Blocks, Gathered, Noted, Run, at_rows
from fx_inspect.read.chains import bounds_of, end_of_part
from fx_inspect.read.texts import Texts
from fxframework.errors import Rule
from fxframework.kernels.arrays import I32, I64, U8, Bools
from fxframework.kernels.buffers import gathered

U32 = NDArray[np.uint32]
NO_NODE: Final = -1
NOTHING: Final = -1
BLOCK_TYPES: Final = np.uint32(16)
NO_BLOCK: Final = BLOCK_TYPES - 1
"""In place of the type of a block, where none begins; the types of blocks are below it."""
ROWS: Final = 1 << 16
"""Rows, or slots of arrays, that are looked at together."""
INDEX_BYTES: Final = wire.SLOT_BYTES[TYPES.STRING_REFERENCE]
"""Bytes of a slot that refers to a string."""
VALUES: Final = (
    TYPES.NODE_VALUE, TYPES.TOMBSTONE, TYPES.INT_VALUE, TYPES.UINT_VALUE, TYPES.DOUBLE_VALUE,
    TYPES.BOOL_VALUE, TYPES.BUFFER_VALUE, TYPES.ARRAY_VALUE, TYPES.LINK_VALUE,
)  # fmt: skip
"""The types of values, which all have parent and name in their first word."""
KINDS: Final = np.zeros(256, np.uint8)
"""The type of property, by the type of block; 0 for other types, and those of several."""
KINDS[TYPES.INT_VALUE] = tables.INT
KINDS[TYPES.UINT_VALUE] = tables.UINT
KINDS[TYPES.DOUBLE_VALUE] = tables.DOUBLE
KINDS[TYPES.BOOL_VALUE] = tables.BOOL
ARRAYS: Final = np.zeros(16, np.uint8)
"""The type of property of an array, by the type of its slots; 0 for an unknown one."""
ARRAYS[TYPES.INT_VALUE] = tables.INT_ARRAY
ARRAYS[TYPES.UINT_VALUE] = tables.UINT_ARRAY
ARRAYS[TYPES.DOUBLE_VALUE] = tables.DOUBLE_ARRAY
ARRAYS[TYPES.STRING_REFERENCE] = tables.STRING_ARRAY
IS_VALUE: Final = np.isin(np.arange(256), VALUES)


class Places:
    """The type of the block that begins at each unit, and its number among those of its kind."""

    def __init__(self, units: int) -> None:
        self.units = units
        self._blocks = np.full(units + 1, NO_BLOCK, np.uint32)
        """The number and the type of each; the last element is for all units beyond the file."""

    def enter(self, units: I64, types: U8, numbers: U32) -> None:
        """Enter records."""
        self._blocks[units] = numbers * BLOCK_TYPES + np.minimum(types, NO_BLOCK)

    def at(self, units: NDArray[Any]) -> tuple[U32, I32]:
        """Return the types and the numbers of the blocks at units, which may be beyond the file.

        The type of no block is ``NO_BLOCK``. Only blocks of some types have numbers.
        """
        blocks = self._blocks.take(units, mode="clip")
        types: U32 = blocks & NO_BLOCK
        return types, (blocks // BLOCK_TYPES).view(np.int32)

    def extents_at(self, units: I32, none: int) -> I32:
        """Return the numbers of the extents at units, ``none`` where there is no extent."""
        types, numbers = self.at(units)
        return np.where((types == TYPES.EXTENT) & (units > 0), numbers, np.int32(none))

    def texts_at(self, units: NDArray[Any]) -> I32:
        """Return the texts of the names and strings at units; -1 for other blocks, and for none."""
        types, numbers = self.at(units)
        is_text = (types == TYPES.NAME) | (types == TYPES.STRING_REFERENCE)
        return np.where(is_text, numbers, NOTHING)

    def strings_of_units(self) -> I32:
        """Return the texts of the STRING_REFERENCEs at all units, and at none behind the last one.

        It is -1 for other blocks, as at unit 0.
        """
        types, numbers = self.at(np.arange(self.units + 1))
        strings = np.where(types == TYPES.STRING_REFERENCE, numbers, NOTHING)
        strings[0] = NOTHING
        return strings


class Values:
    """The values of a file, in its order: gathered by ``add``, and looked up by ``settle``.

    ``units`` and ``types`` are those of their blocks. ``names`` are texts, -1 for a value that was
    dropped. Properties have a type (``kinds``, 0 for other values, and dropped ones), a
    format (``formats``), a number, which for strings and bytes is the text (``bits``), and the
    bytes of the text, or the slots (``lengths``). ``nodes`` is the node that each value belongs to,
    ``NO_NODE`` for none: node 0 is the root, and ``node_rows`` has the value that each is. The last
    row of all columns stands for no value, as the root is none.

    ``uses`` counts what refers to each text in the tree, ``references`` whatever does. The values
    that name a node, and a tombstone, as their parent are counted in ``node_children`` and
    ``deleted_children``.
    """

    def __init__(self, blocks: Blocks, places: Places) -> None:
        self._places = places
        self._numbers = blocks.numbers
        self._classes = blocks.classes
        self._columns = Gathered(
            blocks,
            units=np.int32,
            types=np.uint8,
            kinds=np.uint8,
            parents=np.int32,
            names=np.int32,
            words=np.int64,
        )

    def add(self, run: Run) -> None:
        """Take the values of a run: indexes as they are in the file."""
        is_value = IS_VALUE.take(run.type_numbers)
        if not run.first:
            is_value[0] = False  # index 0 is the root, whatever its block is
        rows = np.flatnonzero(is_value)
        types = at_rows(run.type_numbers, rows)
        parents, names = run.fields(TYPES.NODE_VALUE, ("parent", "name"), rows)
        self._columns.add(
            units=at_rows(run.units, rows),
            types=types,
            kinds=KINDS.take(types),
            parents=parents,
            names=names,
            words=at_rows(run.words[1], rows),
        )

    def settle(self, texts: Texts, noted: Noted) -> None:
        """Find names, and what properties and links refer to; report what is wrong."""
        self._texts = texts
        self._noted = noted
        columns = self._columns
        self.count = columns.count
        none = np.zeros(1, np.int64)
        columns.add(units=none, types=none, kinds=none, parents=none, names=~none, words=none)
        self.units: I32 = columns.joined("units")
        self.types: U8 = columns.joined("types")
        self.parents: I32 = columns.joined("parents")
        """The unit of the parent of each."""
        self.names: I32 = columns.joined("names")
        self.bits: I64 = columns.joined("words")
        truths = self._rows_of(TYPES.BOOL_VALUE)
        self.bits[truths] = self.bits[truths] != 0
        self.kinds: U8 = columns.joined("kinds")
        self.formats = np.zeros(self.units.size, np.uint8)
        self.lengths = np.zeros(self.units.size, np.uint32)
        self.uses = np.zeros(texts.count, np.int64)
        self.references = np.zeros(texts.count, np.int64)
        is_elsewhere = (texts.types == TYPES.NAME) | (texts.units > 0)
        self._is_name: Bools = (texts.lengths >= 0) & is_elsewhere
        """By text, whether it can be a name: a string at index 0 cannot, and the text -1."""
        self._look_up_names()
        self._read_buffers()
        self._read_arrays()
        self._read_links()
        for some_rows in parts_of(self.count):
            names = self.names[some_rows]
            is_named = names >= 0
            np.add.at(self.uses, names[is_named], 1)
            self.kinds[some_rows] *= is_named

    def _note(self, rule: Rule | I64, rows: Any, values: Any) -> None:
        """Report a finding about values; ``rule`` may be a column of numbers."""
        rows = self._noted.left_of(rule, rows)
        self._noted.add(rule, self.units[rows], values[: rows.size])

    def _drop(self, rule: Rule | I64, rows: Any, values: Any) -> None:
        """Drop values, with a finding about each."""
        self._note(rule, rows, values)
        self.names[rows] = -1

    def _rows_of(self, type: int) -> I32:
        """Return the values of a type."""
        rows = [np.zeros(0, np.int32)]
        is_of_type = self.types == type
        if is_of_type.any():  # most trees have not all types
            for some_rows in parts_of(self.count):
                places = np.flatnonzero(is_of_type[some_rows])
                rows.append((some_rows.start + places).astype(np.int32))
        return np.concatenate(rows)

    def _fields(self, type: int, names: Sequence[str], rows: I32) -> list[I64]:
        """Return fields of values of one type, which are in the second word."""
        layout = self._classes[type].layout
        words = self.bits[rows]
        return [layout.place(name).of(words) for name in names]

    # --- Names ------------------------------------------------------------------------------------

    def _look_up_names(self) -> None:
        """Find the text that is the name of each value."""
        self.tombstone_rows = self._rows_of(TYPES.TOMBSTONE)
        self._noted.add_rows(rules.DELETED_WITH_VALUES, self.tombstone_rows, self.units, self.bits)
        for some_rows in parts_of(self.count):
            targets = self.names[some_rows]
            texts = self._named(targets)
            is_deleted = self.types[some_rows] == TYPES.TOMBSTONE
            nameless = np.flatnonzero((texts < 0) & ~is_deleted)
            if nameless.size:
                self._note_names(some_rows.start + nameless, targets[nameless])
            texts[is_deleted] = NOTHING
            self.names[some_rows] = texts

    def _named(self, targets: NDArray[Any]) -> I32:
        """Return the texts that are the names at units; -1 where there is none.

        Whatever text is there counts as referred to.
        """
        texts = self._places.texts_at(targets)
        np.add.at(self.references, texts[texts >= 0], 1)
        return np.where(self._is_name.take(texts), texts, NOTHING)

    def _note_names(self, rows: I64, targets: I32) -> None:
        """Report why values have no name."""
        types, _ = self._places.at(targets)
        lengths = self._texts.lengths[self._places.texts_at(targets)]
        is_without_block = types == NO_BLOCK
        is_past = (types == TYPES.NAME) & (lengths < 0)
        is_other = ~(is_without_block | is_past)
        self._note(rules.NAME_WITHOUT_BLOCK, rows[is_without_block], targets[is_without_block])
        self._note(rules.NAME_PAST_ITS_BLOCK, rows[is_past], ~lengths[is_past])
        self._note(rules.NAME_OF_ANOTHER_TYPE, rows[is_other], targets[is_other])

    def _strings(self, targets: Any) -> I32:
        """Return the STRING_REFERENCEs at units; -1 where there is none, as at unit 0.

        Whatever text is there counts as referred to.
        """
        texts = self._places.texts_at(targets)
        np.add.at(self.references, texts[texts >= 0], 1)
        is_string = (self._texts.types[texts] == TYPES.STRING_REFERENCE) & (targets > 0)
        return np.where(is_string, texts, NOTHING)

    # --- Properties -------------------------------------------------------------------------------

    def _read_buffers(self) -> None:
        """Read strings and bytes."""
        rows = self._rows_of(TYPES.BUFFER_VALUE)
        formats, targets = self._fields(TYPES.BUFFER_VALUE, ("format", "extent"), rows)
        _, texts = self._places.at(self.units[rows])
        in_string = np.flatnonzero(formats == wire.BUFFER_STRING_REFERENCE)
        texts[in_string] = self._strings(targets[in_string])
        is_named = self.names[rows] >= 0
        of_unknown_format = np.flatnonzero(is_named & (formats > wire.BUFFER_STRING_REFERENCE))
        without_text = np.flatnonzero(is_named & (texts < 0))
        self._drop(rules.UNKNOWN_FORMAT, rows[of_unknown_format], formats[of_unknown_format])
        self._drop(rules.NO_STRING, rows[without_text], targets[without_text])
        self.kinds[rows] = np.where(formats == wire.BUFFER_BYTES, tables.BYTES, tables.STRING)
        self.formats[rows] = formats
        self.bits[rows] = texts
        self.lengths[rows] = self._texts.lengths[texts]

    def _read_arrays(self) -> None:
        """Read arrays, which may be histograms."""
        rows = self._rows_of(TYPES.ARRAY_VALUE)
        names = ("entry_type", "format", "count")
        entries, formats, counts = self._fields(TYPES.ARRAY_VALUE, names, rows)
        starts = wire.UNIT * self.units[rows].astype(np.int64)
        [orders] = self._numbers.of_records(
            self._classes[TYPES.ARRAY_VALUE].layout, ["order"], starts, big=False
        )
        room = wire.ORDER_SIZE(orders) - wire.SLOTS_AT
        of_strings = entries == TYPES.STRING_REFERENCE
        has_entries = ARRAYS[entries] > 0
        bytes_of_slot = np.where(of_strings, 4, 8)
        too_many = has_entries & (counts > room // bytes_of_slot)
        is_histogram = formats != wire.ARRAY_FLAT
        is_empty = has_entries & ~too_many & is_histogram & (counts == 0)
        is_named = self.names[rows] >= 0
        numbers = np.select(
            [~has_entries, too_many, is_empty],
            [int(rules.UNKNOWN_ENTRIES), int(rules.TOO_MANY_SLOTS), int(rules.EMPTY_HISTOGRAM)],
        )
        wrong_arrays = np.flatnonzero(is_named & (numbers > 0))
        self._drop(
            numbers[wrong_arrays],
            rows[wrong_arrays],
            np.where(has_entries, counts, entries)[wrong_arrays],
        )
        slots_of_strings = np.where(of_strings & ~too_many, counts, 0)
        self._look_up_slots(rows, slots_of_strings)
        is_left = self.names[rows] >= 0
        is_odd = (formats > wire.ARRAY_EXPONENTIAL) | (of_strings & is_histogram)
        has_few_slots = (formats == wire.ARRAY_LINEAR) & (counts < wire.LINEAR_SLOTS)
        has_few_slots |= (formats == wire.ARRAY_EXPONENTIAL) & (counts < wire.EXPONENTIAL_SLOTS)
        of_unknown_format = np.flatnonzero(is_left & is_odd)
        short_arrays = np.flatnonzero(is_left & has_few_slots & ~is_odd)
        self._note(rules.UNKNOWN_ARRAY_FORMAT, rows[of_unknown_format], formats[of_unknown_format])
        self._note(rules.FEW_SLOTS, rows[short_arrays], counts[short_arrays])
        self.kinds[rows] = ARRAYS[entries]
        self.formats[rows] = np.where(is_odd, wire.ARRAY_FLAT, formats)
        self.lengths[rows] = counts

    def _look_up_slots(self, rows: I32, counts: I64) -> None:
        """Count what the slots of arrays of strings refer to, and report those of nothing."""
        if not counts.any():
            return
        is_named = self.names[rows] >= 0
        uses_of_units = self._uses_of_units(rows[is_named], counts[is_named])
        strings = self._places.strings_of_units()
        referring_units = np.flatnonzero(uses_of_units)
        texts = strings[referring_units]
        is_string = texts >= 0
        uses_of_strings = uses_of_units[referring_units]
        self.uses[texts[is_string]] += uses_of_strings[is_string]
        if not is_string[referring_units > 0].all():
            self._note_slots(rows[is_named], counts[is_named], strings)
        is_nameless = ~is_named
        uses_of_units += self._uses_of_units(rows[is_nameless], counts[is_nameless])
        referred_units = np.flatnonzero(uses_of_units)
        texts = self._places.texts_at(referred_units)
        is_text = texts >= 0
        self.references[texts[is_text]] += uses_of_units[referred_units[is_text]]

    def _uses_of_units(self, rows: I32, counts: I64) -> I64:
        """Return how many slots refer to each unit; all beyond the file count as the last one."""
        uses_of_units = np.zeros(self._places.units + 1, np.int64)
        for _, targets, _ in self._slots(rows, counts):
            places = np.minimum(targets, self._places.units)
            places = places.astype(np.intp)
            np.add.at(uses_of_units, places, 1)
        return uses_of_units

    def _note_slots(self, rows: I32, counts: I64, strings: I32) -> None:
        """Report of each array the first slot that refers to something, but to no string."""
        for arrays, targets, first_slots in self._slots(rows, counts):
            is_string = strings.take(targets, mode="clip") >= 0
            wrong_slots = np.flatnonzero(~is_string & (targets != 0))
            owners = np.searchsorted(first_slots, wrong_slots, "right") - 1
            owners, nearest = np.unique(owners, return_index=True)
            slots = wrong_slots[nearest] - first_slots[owners]
            self._note(rules.SLOT_WITHOUT_STRING, arrays[owners], slots)

    def _slots(self, rows: I32, counts: I64) -> Iterator[tuple[I32, NDArray[Any], I64]]:
        """Yield arrays, the units in their slots, and the first slot of each among these."""
        slot_bounds = bounds_of(counts)
        start = 0
        while start < rows.size:
            stop = end_of_part(slot_bounds, start, ROWS)
            arrays = rows[start:stop]
            begins = wire.UNIT * self.units[arrays].astype(np.int64) + wire.SLOTS_AT
            targets = self._numbers.listed(begins, counts[start:stop], INDEX_BYTES, big=False)
            first_slots = slot_bounds[start:stop] - slot_bounds[start]
            yield arrays, targets, first_slots
            start = stop

    # --- Links ------------------------------------------------------------------------------------

    def _read_links(self) -> None:
        """Read links."""
        rows = self._rows_of(TYPES.LINK_VALUE)
        targets, dispositions = self._fields(TYPES.LINK_VALUE, ("content", "disposition"), rows)
        contents = self._named(targets)
        is_named = self.names[rows] >= 0
        without_content = np.flatnonzero(is_named & (contents < 0))
        self._drop(rules.NO_CONTENT, rows[without_content], targets[without_content])
        sound_links = np.flatnonzero(is_named & (contents >= 0))
        odd_links = sound_links[dispositions[sound_links] > wire.INLINE]
        self._note(rules.UNKNOWN_DISPOSITION, rows[odd_links], dispositions[odd_links])
        np.add.at(self.uses, contents[sound_links], 1)
        self.link_rows: I32 = rows[sound_links]
        self.link_contents: I32 = contents[sound_links]
        self.link_dispositions: U8 = dispositions[sound_links].astype(np.uint8)

    # --- Nodes ------------------------------------------------------------------------------------

    def attach(self) -> tuple[I64, I64, I64]:
        """Find the nodes that values belong to.

        Return the nodes, the properties and the links whose parent is none.
        """
        self.node_rows = np.append(np.int32(-1), self._rows_of(TYPES.NODE_VALUE))
        is_named_node = gathered(self.names, self.node_rows) >= 0
        is_named_node[0] = True
        dropped_nodes = np.flatnonzero(~is_named_node)
        self.nodes = np.full(self.units.size, NO_NODE, np.int32)
        orphans: list[I64] = [np.zeros(0, np.int64)]
        self.node_children = np.zeros(self.node_rows.size, np.int64)
        self.deleted_children = np.zeros(self.tombstone_rows.size, np.int64)
        for some_rows in parts_of(self.count):
            parents = self.parents[some_rows]
            types, numbers = self._places.at(parents)
            is_root = parents == 0
            is_node = (types == TYPES.NODE_VALUE) & ~is_root
            is_deleted = (types == TYPES.TOMBSTONE) & ~is_root
            np.add.at(self.node_children, numbers[is_node], 1)
            np.add.at(self.deleted_children, numbers[is_deleted], 1)
            nodes = np.where(is_node, numbers, NO_NODE)
            if dropped_nodes.size:
                nodes[~is_named_node.take(nodes)] = NO_NODE
            nodes[is_root] = 0
            is_dropped = self.names[some_rows] < 0
            nodes[is_dropped] = NO_NODE
            self.nodes[some_rows] = nodes
            is_lost = ~(is_root | is_node | is_deleted | is_dropped)
            orphans.append(some_rows.start + np.flatnonzero(is_lost))
        lost_values = np.concatenate(orphans)
        is_node = self.types[lost_values] == TYPES.NODE_VALUE
        is_property = self.kinds[lost_values] > 0
        is_link = ~(is_node | is_property)
        return lost_values[is_node], lost_values[is_property], lost_values[is_link]

    def node_parents(self) -> I32:
        """Return the node that each node belongs to."""
        parents = gathered(self.nodes, self.node_rows)
        parents[0] = NO_NODE
        return parents

    def forget(self) -> None:
        """Drop what only finding nodes, and comparing counts, needs."""
        del self.parents, self.nodes, self.node_children, self.deleted_children


def parts_of(count: int) -> Iterator[slice]:
    """Yield slices of so many rows, ``ROWS`` at a time."""
    for start in range(0, count, ROWS):
        yield slice(start, min(start + ROWS, count))
