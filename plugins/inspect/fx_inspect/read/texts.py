"""Texts: the bytes of names, strings and buffers, some of them in chains of extents.

They stay where they are in the file, as places and lengths, until they are asked for. Those that
the tree uses as names and in slots get codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.format import TYPES
from fx_inspect.read.blocks import TEXTS, Blocks, Gathered, Noted, Run, at_rows
from fx_inspect.read.chains import Extents, bounds_of, end_of_part, follow
from fxframework.io import arena
from fxframework.kernels.arrays import I32, I64, U8, Bools
from fxframework.kernels.pools import codes_of
from fxframework.kernels.sorting import joined_ranges
from fxframework.kernels.stretches import not_utf8
from fxframework.model.strings import StringPool, TextColumn

PAYLOADS = np.zeros(256, np.int64)
"""Where in its block the text of a name or a string begins, by type."""
for _type in (TYPES.NAME, TYPES.STRING_REFERENCE):
    PAYLOADS[_type] = wire.PAYLOAD_AT[_type]
TOGETHER = 1 << 20
"""Bytes of texts that are copied together; one text may be longer."""
AT_ONCE = 1 << 16
"""Texts that get codes together, at most."""


class Texts:
    """The texts of a file by number, in its order: gathered run by run, then followed (``settle``).

    ``lengths`` has the bytes that are kept of each; below 0, it is ``~`` the length that a name
    states and its block does not hold. The last row of all columns is that of the text -1, which
    stands for none. Those with a next extent are listed besides.
    """

    def __init__(self, blocks: Blocks, max_string: int) -> None:
        self.data = blocks.data
        self.count = 0
        self.max_string = max_string or int(np.iinfo(np.int64).max)
        self._columns = Gathered(
            blocks, units=np.int32, types=np.uint8, lengths=np.int64, claims=np.int32
        )
        self._chained = Gathered(
            blocks, texts=np.int64, first=np.int32, wanted=np.int64, is_text=bool
        )
        self._not_utf8: list[I64] = []

    def add(self, run: Run) -> None:
        """Take the texts of a run."""
        rows = run.texts
        if not rows.size:
            return
        units = at_rows(run.units, rows)
        types = at_rows(run.types, rows)
        payloads = PAYLOADS.take(at_rows(run.type_numbers, rows))
        room = run.sizes(rows) - payloads
        lengths, claims, first_extents, bytes_in_chains = np.zeros((4, rows.size), np.int64)
        is_bytes = np.zeros(rows.size, bool)
        for type in TEXTS:
            places: Any = np.flatnonzero(types == type)
            if not places.size:
                continue
            if places.size == rows.size:
                places = slice(None)  # of which numpy takes all, several times as fast
            text_rows = rows[places]
            if type == TYPES.NAME:
                [stated_lengths] = run.fields(type, ["length"], text_rows)
                # A name that says more than there is has a length below 0, which tells how much.
                is_beyond = stated_lengths > room[places]
                lengths[places] = np.where(is_beyond, ~stated_lengths, stated_lengths)
            elif type == TYPES.STRING_REFERENCE:
                names = ("next_extent", "reference_count", "total_length")
                following, references, stated_lengths = run.fields(type, names, text_rows)
                lengths[places] = np.minimum(stated_lengths, room[places])
                first_extents[places] = following
                bytes_in_chains[places] = stated_lengths - lengths[places]
                claims[places] = references
            else:
                names = ("format", "extent", "total_length")
                formats, extents, stated_lengths = run.fields(type, names, text_rows)
                in_extents = formats < wire.BUFFER_STRING_REFERENCE
                first_extents[places] = extents * in_extents
                bytes_in_chains[places] = stated_lengths * in_extents
                is_bytes[places] = formats == wire.BUFFER_BYTES
        bytes_here = lengths * (bytes_in_chains == 0)  # of texts that are in one block
        begins = wire.UNIT * units + payloads
        wrong_texts = np.flatnonzero(not_utf8(self.data, begins, np.maximum(bytes_here, 0)))
        self._not_utf8.append(self.count + wrong_texts[units[wrong_texts] > 0])
        if not units[0]:
            # Index 0 has no chain, whatever its block is.
            first_extents[0] = 0
            bytes_in_chains[0] = 0
        with_chain = np.flatnonzero((first_extents != 0) | (bytes_in_chains > 0))
        self._chained.add(
            texts=self.count + with_chain,
            first=first_extents[with_chain],
            wanted=bytes_in_chains[with_chain],
            is_text=~is_bytes[with_chain],
        )
        self._columns.add(units=units, types=types, lengths=lengths, claims=claims)
        self.count += rows.size

    def settle(self, extents: Extents, extents_at: Callable[[I32, int], I32], noted: Noted) -> None:
        """Follow all chains, and report findings about texts."""
        columns = self._columns
        none = np.zeros(1, np.int64)
        columns.add(units=none, types=none, lengths=~none, claims=none)
        self.units: I32 = columns.joined("units")
        self.types: U8 = columns.joined("types")
        self.lengths: I64 = columns.joined("lengths")
        self.claims: I32 = columns.joined("claims")
        """How many uses a STRING_REFERENCE says that it has."""
        self.codes: I32 = np.full(self.count + 1, -1, np.int32)
        """The code of each name and string; -1 for one without uses."""
        self.chained: I64 = self._chained.joined("texts")
        """The texts that name an extent, in order."""
        self.inline = self.lengths[self.chained]
        """The bytes of each of them that are in its own block."""
        self.extents = extents
        first: I32 = self._chained.joined("first")
        wanted = self._chained.joined("wanted")
        is_text = self._chained.joined("is_text")
        first_extents = extents_at(first, extents.count)
        first_units = first.astype(np.int64)
        self.chains = follow(extents, first_units, first_extents, wanted, self.data.size)
        self.lengths[self.chained] += self.chains.given
        self._note_wrong(wanted, is_text, noted)

    def _note_wrong(self, wanted: I64, is_text: Bools, noted: Noted) -> None:
        """Note what is wrong with chains and texts; cut those that are over the limit."""
        chains = self.chains
        chained = self.chained
        chain_bytes = chains.given
        broken_chains = np.flatnonzero(chains.faults)
        goes_on = (int(rules.CHAIN_WITHOUT_EXTENT), int(rules.CHAIN_CYCLE))
        missing_bytes = wanted[broken_chains] - chain_bytes[broken_chains]
        values = np.where(
            np.isin(chains.faults[broken_chains], goes_on),
            chains.goes_on[broken_chains],
            missing_bytes,
        )
        broken_texts = chained[broken_chains]
        noted.add(chains.faults[broken_chains], self.units[broken_texts], values)
        is_whole = chains.faults == 0
        joined_texts = chained[is_whole & is_text & (chain_bytes > 0)]
        for some_texts, texts in self.parts(joined_texts, self.lengths[joined_texts]):
            starts = texts.offsets[:-1]
            self._not_utf8.append(some_texts[not_utf8(texts.data, starts, np.diff(texts.offsets))])
        wrong_texts = np.sort(np.concatenate([chained[:0], *self._not_utf8]))
        noted.add_rows(rules.NOT_UTF8, wrong_texts, self.units, 0)
        too_long = np.flatnonzero(is_whole & (chains.goes_on != 0))
        units_of_chains = self.units[chained]
        noted.add_rows(rules.CHAIN_TOO_LONG, too_long, units_of_chains, chains.goes_on)
        is_over = self.lengths > self.max_string
        over_limit = np.flatnonzero(is_over & self._has_limit())
        noted.add_rows(rules.STRING_OVER_LIMIT, over_limit, self.units, self.lengths)
        self.lengths[over_limit] = self.max_string

    def _has_limit(self) -> Bools:
        """Return which texts the limit applies to: not to a string at index 0."""
        is_name = self.types == TYPES.NAME
        has_limit: Bools = is_name | (self.units > 0)
        return has_limit

    def visited(self) -> I64:
        """Return how many chains each extent is in."""
        return np.bincount(self.chains.visits, minlength=self.extents.count)

    # --- Bytes ------------------------------------------------------------------------------------

    def begins(self, texts: NDArray[Any]) -> I64:
        """Return where the bytes of texts begin in their own blocks."""
        begins: I64 = wire.UNIT * self.units.take(texts).astype(np.int64)
        begins += PAYLOADS.take(self.types.take(texts))
        return begins

    def column(self, texts: NDArray[Any], lengths: I64) -> TextColumn:
        """Return the first bytes of texts, as many as ``lengths`` says."""
        offsets = bounds_of(lengths)
        data: U8 = arena.empty(int(offsets[-1]), np.uint8)
        start = 0
        while start < lengths.size:
            stop = end_of_part(offsets, start, TOGETHER)
            piece_starts, piece_lengths = self.stretches(texts[start:stop], lengths[start:stop])
            bytes_of_texts = TextColumn.gather(self.data, piece_starts, piece_lengths).data
            data[offsets[start] : offsets[stop]] = bytes_of_texts
            start = stop
        return TextColumn(offsets, data)

    def stretches(self, texts: NDArray[Any], lengths: I64) -> tuple[I64, I64]:
        """Return where the first bytes of texts are: places and lengths, text by text."""
        begins = self.begins(texts)
        if not self.chained.size:
            return begins, lengths
        places = np.searchsorted(self.chained, texts)
        chain_numbers = np.minimum(places, self.chained.size - 1)
        is_chained = self.chained[chain_numbers] == texts
        bounds = self.chains.bounds
        extents_of_chains = bounds[chain_numbers + 1] - bounds[chain_numbers]
        in_chain = np.where(is_chained, extents_of_chains, 0)
        inline_of_chains = np.minimum(self.inline[chain_numbers], lengths)
        inline_lengths = np.where(is_chained, inline_of_chains, lengths)
        piece_bounds = bounds_of(1 + in_chain)
        own_pieces = piece_bounds[:-1]
        starts, piece_lengths = np.empty((2, int(piece_bounds[-1])), np.int64)
        starts[own_pieces] = begins
        piece_lengths[own_pieces] = inline_lengths
        is_extent = np.ones(starts.size, bool)
        is_extent[own_pieces] = False
        extents = self.chains.visits[joined_ranges(bounds[chain_numbers], in_chain)]
        capacities = self.extents.capacities[extents].astype(np.int64)
        capacity_before = bounds_of(capacities)
        first_extents = bounds_of(in_chain)[:-1]
        chain_ends = lengths - inline_lengths + capacity_before[first_extents]
        bytes_left = np.repeat(chain_ends, in_chain) - capacity_before[:-1]
        starts[is_extent] = wire.UNIT * self.extents.units[extents].astype(np.int64) + PAYLOAD
        piece_lengths[is_extent] = np.clip(bytes_left, 0, capacities)
        return starts, piece_lengths

    def parts(self, texts: I64, lengths: I64) -> Iterator[tuple[I64, TextColumn]]:
        """Yield texts with their bytes, some ``TOGETHER`` at a time."""
        bounds = bounds_of(lengths)
        start = 0
        while start < texts.size:
            stop = min(end_of_part(bounds, start, TOGETHER), start + AT_ONCE)
            yield texts[start:stop], self.column(texts[start:stop], lengths[start:stop])
            start = stop

    def enter(self, uses: NDArray[Any], pool: StringPool) -> None:
        """Give codes of a pool to the texts that have uses, in the order of the file."""
        used = np.flatnonzero(uses)
        if not self.chained.size:
            lengths = self.lengths[used]
            with pool.lock:
                begins = self.begins(used)
                self.codes[used] = codes_of(pool.pool, self.data, begins, lengths)
            return
        for some_texts, texts in self.parts(used, self.lengths[used]):
            with pool.lock:
                starts = texts.offsets[:-1]
                lengths = np.diff(texts.offsets)
                self.codes[some_texts] = codes_of(pool.pool, texts.data, starts, lengths)


PAYLOAD = wire.PAYLOAD_AT[TYPES.EXTENT]
