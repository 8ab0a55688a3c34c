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
from numpy.typing import NDArray

from fxframework.kit.lossless import UnfitError
from fxframework.wire.cursor import RefusalError
from fxframework.wire.drafts import OF_ANOTHER_KIND
from fxframework.wire.fields import Bits, Field, Number
from fxframework.wire.groups import (
    LARGEST,
    MOST_SHAPES,
    Group,
    Grouping,
    Kinds,
    References,
    Resolve,
    values_of,
)
from fxframework.wire.json_columns import Numbers, store
from fxframework.wire.many import FileNumbers
from fxframework.wire.records import Layout
from fxframework.wire.state import State

__all__ = ["Packer", "put_numbers"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Part = tuple[int, int]
"""Place and bytes of a word in a record."""
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
        names = _names_of(records)
        are_barred = not self._barriers.isdisjoint(names)
        for kinds in (self._records, *self._grouping.kinds.values()):
            kinds.trim(-1 if are_barred else MOST_SHAPES)
        turns = [
            row for row, name in enumerate(names) if are_barred or name in self._in_turn
        ] if are_barred or self._in_turn else []  # fmt: skip
        odd[turns] = True
        sizes = np.zeros(len(records), np.int64)
        groups = []
        for rows, group in self._grouping.groups(
            self._records, records, np.arange(len(records)), odd
        ):
            try:
                sizes[rows] = group.measure()
            except UnfitError:
                self._records.forget(group.shape)
                odd[rows] = True
                continue
            odd[rows[group.odd | (sizes[rows] > LARGEST)]] = True
            groups.append((rows, group))
        references = [each for _, group in groups for each in group.all_references()]
        alone = self._in_order(references, turns, odd, single)
        if references:
            for rows, group in groups:
                sizes[rows] = group.measure()
                if not odd[rows[group.odd]].all():
                    raise UnfitError
        return self._joined(groups, alone, sizes)

    def _in_order(
        self,
        references: Sequence[References],
        turns: Sequence[int],
        odd: Mask,
        single: Callable[[int], bytes],
    ) -> dict[int, bytes]:
        """Look up the references, and encode odd records, in order of the records."""
        alone: dict[int, bytes] = {}
        ends = [*turns, odd.size] if references else [odd.size]
        stops = [np.searchsorted(each.ordinals, ends).tolist() for each in references]
        begins = [0] * len(references)
        start = 0
        for number, end in enumerate(ends):
            for index, reference in enumerate(references):
                part = slice(begins[index], stops[index][number])
                begins[index] = part.stop
                if part.start < part.stop and self._resolve is not None:
                    known = self._known[reference.field]
                    odd[reference.resolve(part, known, self._resolve)] = True
            for row in (start + np.flatnonzero(odd[start : end + 1])).tolist():
                alone[row] = single(row)
            if end < odd.size or sum(map(len, self._known.values())) > MOST_REFERENCES:
                self._known.clear()
            start = end + 1
        return alone

    def _joined(
        self, groups: Sequence[tuple[I64, Group]], alone: Mapping[int, bytes], sizes: I64
    ) -> tuple[U8, I64]:
        """Return the bytes of all records in order, those ``alone`` in place of their columns."""
        columns = sizes + self._framed
        spans = columns.copy()
        for row, data in alone.items():
            spans[row] = len(data)
        ends = np.cumsum(spans)
        begins = ends - spans
        total = int(ends[-1]) if ends.size else 0
        # What columns make of records that are encoded alone lies behind all others: it is cut off.
        replaced = np.array(sorted(alone), np.int64)
        begins[replaced] = total + np.cumsum(columns[replaced]) - columns[replaced]
        out = np.zeros(total + int(columns[replaced].sum()) + 8, np.uint8)
        for rows, group in groups:
            group.put(out, begins[rows] + self._framed)
            if self._framed:
                store(out, begins[rows], sizes[rows], self._framed, big=self._state.big)
        for row, data in alone.items():
            end = int(ends[row])
            out[end - len(data) : end] = np.frombuffer(data, np.uint8)
        return out[:total], ends


def _names_of(records: Sequence[Any]) -> list[str]:
    """Return the kinds of records; none where they say none."""
    whole: Sequence[Any] = records
    if set(map(type, records)) != {dict}:
        whole = [each if type(each) is dict else {} for each in records]
    names = list(values_of(whole, "record"))
    if set(map(type, names)) != {str}:
        names = [each if type(each) is str else "" for each in names]
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
    for field, place in layout.places().items():
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
                raise RefusalError(404, OF_ANOTHER_KIND)
