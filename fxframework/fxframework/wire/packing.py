"""Packing: record JSON back to bytes, thousands of records at a time, by their declaration.

Objects with the same keys become columns (``groups.py``), and columns bytes. What a number refers
to depends on the records before. So references are looked up in the order of the records, up to
each record that declares something, which the encoder of the format gets, as it gets odd ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from fxframework.kernels.arrays import I64, U8, Bools
from fxframework.kit.lossless import UnfitError
from fxframework.wire.cursor import RefusalError
from fxframework.wire.fields import Bits, Field, Number
from fxframework.wire.groups import Group, Grouping, References, Resolve
from fxframework.wire.json_columns import Numbers, store
from fxframework.wire.json_shapes import LARGEST, MOST_SHAPES, Kinds, values_of
from fxframework.wire.many import FileNumbers
from fxframework.wire.one import OF_ANOTHER_KIND
from fxframework.wire.records import Layout
from fxframework.wire.rules import DOES_NOT_FIT
from fxframework.wire.state import State

Part = tuple[int, int]
"""Place and bytes of a word in a record."""
WORD = 8
"""Bytes behind the last record, so that even a file of one byte is long enough for ``store``."""
MOST_REFERENCES = 1 << 16
"""Numbers of references that are remembered; all are forgotten beyond."""


class Packer:
    """Packs the records of a format, given as JSON, block by block.

    ``layout_of`` returns the fields for an object of record JSON, None if only the encoder can
    write it. It may depend on the values of ``selectors``. The records ``in_turn`` declare
    something that ``resolve(field, shown, number)`` looks up: it returns the number to write for
    what a field shows, given the number in ``refs`` (or None, if texts may be ``declared`` without
    one), and raises LookupError or RefusalError if that does not hold. ``barriers`` are records
    that decide how all later ones are written. ``framed`` are the bytes of a number before each
    record, its size in bytes.
    """

    def __init__(
        self,
        layout_of: Callable[[Mapping[str, Any]], Layout | None],
        state: State,
        *,
        selectors: Sequence[str] = (),
        in_turn: Collection[str] = (),
        barriers: Collection[str] = (),
        resolve: Resolve | None = None,
        declared: bool = False,
        framed: int = 0,
    ) -> None:
        self._state = state
        self._resolve = resolve
        self._grouping = Grouping(state, refers=resolve is not None, declared=declared)
        self._framed = framed
        self._in_turn = frozenset(in_turn)
        self._barriers = frozenset(barriers)
        self._records = Kinds(("record", *selectors), layout_of, state)
        self._known: defaultdict[Field, dict[Hashable, int]] = defaultdict(dict)

    def pack(self, records: Sequence[Any], single: Callable[[int], bytes]) -> tuple[U8, I64]:
        """Return the bytes of records, given as JSON, and where those of each record end.

        ``single(row)`` returns the bytes of a record that columns cannot hold; it is asked in order
        of the records. Raises UnfitError where columns turn out not to be right.
        """
        odd = np.zeros(len(records), np.bool_)
        turns = self._turns(records)
        odd[turns] = True
        sizes = np.zeros(len(records), np.int64)
        groups = []
        every_row = np.arange(len(records))
        for rows, group in self._grouping.groups(self._records, records, every_row, odd):
            try:
                sizes[rows] = group.measure()
            except UnfitError:
                self._records.forget(group.shape)
                odd[rows] = True
                continue
            odd[rows[group.odd | (sizes[rows] > LARGEST)]] = True
            groups.append((rows, group))
        references = [reference for _, group in groups for reference in group.all_references()]
        encoded = self._in_order(references, turns, odd, single)
        if references:
            # The numbers are known now. What they make odd can no longer be encoded in its turn.
            for rows, group in groups:
                sizes[rows] = group.measure()
                if not odd[rows[group.odd]].all():
                    raise UnfitError
        return self._joined(groups, encoded, sizes)

    def _turns(self, records: Sequence[Any]) -> list[int]:
        """Return the rows of records that are encoded in their turn; all if one is a barrier.

        A barrier changes what shapes columns can write, so that all shapes are forgotten.
        """
        names = _names_of(records) if self._in_turn or self._barriers else []
        has_barrier = not self._barriers.isdisjoint(names)
        for kinds in (self._records, *self._grouping.kinds.values()):
            kinds.trim(-1 if has_barrier else MOST_SHAPES)
        if has_barrier:
            return list(range(len(names)))
        return [row for row, name in enumerate(names) if name in self._in_turn]

    def _in_order(
        self,
        references: Sequence[References],
        turns: Sequence[int],
        odd: Bools,
        single: Callable[[int], bytes],
    ) -> dict[int, bytes]:
        """Look up the references, and encode odd records, in order of the records.

        Return the bytes of the odd records by row. The records between two ``turns`` refer to the
        same declarations: their references are looked up together, then what is odd among them is
        encoded, last the record whose turn it is, which declares something.
        """
        encoded: dict[int, bytes] = {}
        ends = [*turns, odd.size] if references else [odd.size]
        # Of each reference, where in its records each stretch ends.
        stops = [np.searchsorted(reference.ordinals, ends).tolist() for reference in references]
        begins = [0] * len(references)
        start = 0
        for number, end in enumerate(ends):
            for index, reference in enumerate(references):
                rows = slice(begins[index], stops[index][number])
                begins[index] = rows.stop
                if rows.start < rows.stop and self._resolve is not None:
                    known = self._known[reference.field]
                    odd[reference.resolve(rows, known, self._resolve)] = True
            for row in (start + np.flatnonzero(odd[start : end + 1])).tolist():
                encoded[row] = single(row)
            if end < odd.size or sum(map(len, self._known.values())) > MOST_REFERENCES:
                self._known.clear()
            start = end + 1
        return encoded

    def _joined(
        self, groups: Sequence[tuple[I64, Group]], encoded: Mapping[int, bytes], sizes: I64
    ) -> tuple[U8, I64]:
        """Return the bytes of all records in order, those ``encoded`` in place of their columns."""
        column_sizes = sizes + self._framed
        written_sizes = column_sizes.copy()
        for row, data in encoded.items():
            written_sizes[row] = len(data)
        ends = np.cumsum(written_sizes)
        begins = ends - written_sizes
        total = int(ends[-1]) if ends.size else 0
        # Groups write all of their records. Those that the encoder wrote are put behind all others,
        # and cut off.
        replaced = np.array(sorted(encoded), np.int64)
        replaced_sizes = column_sizes[replaced]
        begins[replaced] = total + np.cumsum(replaced_sizes) - replaced_sizes
        out = np.zeros(total + int(replaced_sizes.sum()) + WORD, np.uint8)
        for rows, group in groups:
            group.put(out, begins[rows] + self._framed)
            if self._framed:
                store(out, begins[rows], sizes[rows], self._framed, big=self._state.big)
        for row, data in encoded.items():
            end = int(ends[row])
            out[end - len(data) : end] = np.frombuffer(data, np.uint8)
        return out[:total], ends


def _names_of(records: Sequence[Any]) -> list[str]:
    """Return the kinds of records; "" where they say none."""
    objects: Sequence[Any] = records
    if set(map(type, records)) != {dict}:
        objects = [record if type(record) is dict else {} for record in records]
    names = list(values_of(objects, "record"))
    if set(map(type, names)) != {str}:
        names = [name if type(name) is str else "" for name in names]
    return names


def put_numbers(
    out: U8, places: I64, layout: Layout, numbers: Mapping[str, Numbers], state: State
) -> None:
    """Write the numbers of records of one class, which begin at these places of ``out``.

    ``numbers`` has a number for all of them, or one for each, by the names of the fields. Fields
    without one are 0, but for the kind. Only fields whose place is the same in every record are
    written; numbers are cut to the bits of their field. Raises RefusalError if a record would be
    read as one of another kind.
    """
    kinds = dict(zip(layout.family.kinds, layout.kind, strict=False))
    words: dict[Part, Numbers] = {}
    for field, place in layout.places.items():
        if not isinstance(field, Number):
            continue
        number = kinds.get(field, numbers.get(field.name, 0))
        if isinstance(field, Bits):
            number = (np.asarray(number, np.int64) & place.mask) << place.shift_in(state.mirrored)
        part = place.offset, place.nbytes
        words[part] = words[part] | number if part in words else number
    for (offset, nbytes), word in words.items():
        store(out, places + offset, word, nbytes, big=state.big)
    if layout.word and state.big and not state.mirrored:
        # The first byte, which says the kind, has other bits of the word, too.
        for field, number in kinds.items():
            place = layout.family.places[field]
            word = FileNumbers(out).integers(places + place.offset, place.nbytes, big=True)
            if (word >> place.shift_in(False) & place.mask != number).any():
                raise RefusalError(DOES_NOT_FIT, OF_ANOTHER_KIND)
