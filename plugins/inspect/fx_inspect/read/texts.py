"""Texts: the bytes of names, strings and buffers, some of them in chains of extents.

They stay where they are in the file, as places and lengths, until they are asked for. Those that
the tree uses as names and in slots get codes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.format import TYPES
from fx_inspect.read.blocks import Gathered, Noted, Run
from fx_inspect.read.chains import Extents, bounds_of, end_of_part, follow
from fxframework.io import arena
from fxframework.kernels.arrays import I32, I64, U8, Bools
from fxframework.kernels.pools import codes_of
from fxframework.kernels.sorting import joined_ranges
from fxframework.kernels.stretches import not_utf8
from fxframework.model.strings import StringPool, TextColumn

IS_TEXT = np.zeros(256, bool)
IS_TEXT[[TYPES.NAME, TYPES.STRING_REFERENCE, TYPES.BUFFER_VALUE]] = True
"""The types of blocks that have a text."""
TOGETHER = 1 << 20
"""Bytes of texts that are copied together; one text may be longer."""
AT_ONCE = 1 << 16
"""Texts that get codes together, at most."""


class GatheredTexts:
    """The texts of run after run, before their chains are followed.

    Texts are numbered in the order of the file. Those with a next extent are listed besides.
    """

    def __init__(self, data: U8) -> None:
        self.data = data
        self.count = 0
        self.columns = Gathered(units=np.int32, types=np.uint8, lengths=np.int64, claims=np.int32)
        self.chained = Gathered(texts=np.int64, first=np.int32, wanted=np.int64, is_text=bool)
        self.not_utf8: list[I64] = []

    def add(self, run: Run) -> None:
        """Take the texts of a run."""
        is_text = IS_TEXT[run.types]
        rows = np.flatnonzero(is_text)
        if not rows.size:
            return
        place_of_row = np.cumsum(is_text) - 1
        """The place of each text among those of the run, by row."""
        units = run.units[rows]
        lengths = np.zeros(rows.size, np.int64)
        claims = np.zeros(rows.size, np.int64)
        first_extents = np.zeros(rows.size, np.int64)
        bytes_in_chains = np.zeros(rows.size, np.int64)
        is_bytes = np.zeros(rows.size, bool)
        for type, columns in run.columns.items():
            if not IS_TEXT[type]:
                continue
            text_places = place_of_row[columns.rows]
            if type == TYPES.BUFFER_VALUE:
                in_extents = columns["format"] < wire.BUFFER_STRING_REFERENCE
                first_extents[text_places] = columns["extent"] * in_extents
                bytes_in_chains[text_places] = columns["total_length"] * in_extents
                is_bytes[text_places] = columns["format"] == wire.BUFFER_BYTES
                continue
            room = columns.sizes - wire.PAYLOAD_AT[type]
            if type == TYPES.NAME:
                stated_lengths = columns["length"]
                # A name that says more than there is has a length below 0, which tells how much.
                is_beyond = stated_lengths > room
                lengths[text_places] = np.where(is_beyond, ~stated_lengths, stated_lengths)
            else:
                stated_lengths = columns["total_length"]
                lengths[text_places] = np.minimum(stated_lengths, room)
                first_extents[text_places] = columns["next_extent"]
                bytes_in_chains[text_places] = stated_lengths - lengths[text_places]
                claims[text_places] = columns["reference_count"]
            is_in_one_block = bytes_in_chains[text_places] == 0
            is_in_one_block &= lengths[text_places] > 0
            in_one_block = text_places[is_in_one_block]
            begins = wire.UNIT * units[in_one_block]
            begins += wire.PAYLOAD_AT[type]
            wrong_texts = in_one_block[not_utf8(self.data, begins, lengths[in_one_block])]
            wrong_texts = wrong_texts[units[wrong_texts] > 0]
            self.not_utf8.append(self.count + wrong_texts)
        if not units[0]:
            # Index 0 has no chain, whatever its block is.
            first_extents[0] = 0
            bytes_in_chains[0] = 0
        types = run.types[rows]
        self.columns.add(units=units, types=types, lengths=lengths, claims=claims)
        with_chain = np.flatnonzero((first_extents != 0) | (bytes_in_chains > 0))
        self.chained.add(
            texts=self.count + with_chain,
            first=first_extents[with_chain],
            wanted=bytes_in_chains[with_chain],
            is_text=~is_bytes[with_chain],
        )
        self.count += rows.size


class Texts:
    """The texts of a file by number, in the order of the file.

    ``lengths`` has the bytes that are kept of each; below 0, it is ``~`` the length that a name
    states and its block does not hold. The last row of all columns is that of the text -1, which
    stands for none.
    """

    def __init__(self, gathered: GatheredTexts, max_string: int) -> None:
        self.data = gathered.data
        self.count = gathered.count
        none = np.zeros(1, np.int64)
        gathered.columns.add(units=none, types=none, lengths=~none, claims=none)
        self.units: I32 = gathered.columns.joined("units")
        self.types: U8 = gathered.columns.joined("types")
        self.lengths: I64 = gathered.columns.joined("lengths")
        self.claims: I32 = gathered.columns.joined("claims")
        """How many uses a STRING_REFERENCE says that it has."""
        self.codes: I32 = np.full(self.count + 1, -1, np.int32)
        """The code of each name and string; -1 for one without uses."""
        self.chained: I64 = gathered.chained.joined("texts")
        """The texts that name an extent, in order."""
        self.max_string = max_string or int(np.iinfo(np.int64).max)
        self.inline = self.lengths[self.chained]
        """The bytes of each of them that are in its own block."""
        self.first: I32 = gathered.chained.joined("first")
        self._wanted = gathered.chained.joined("wanted")
        self._is_text = gathered.chained.joined("is_text")
        self._not_utf8 = gathered.not_utf8

    def settle(self, extents: Extents, first_extents: I32, noted: Noted) -> None:
        """Follow all chains, and report findings about texts.

        ``first`` has the number of the first extent of each chain, or their count.
        """
        self.extents = extents
        units = self.first.astype(np.int64)
        chains = follow(extents, units, first_extents, self._wanted, self.data.size)
        self.chains = chains
        chained = self.chained
        chain_bytes = chains.given
        self.lengths[chained] += chain_bytes

        def note(rule: Any, texts: I64, values: Any) -> None:
            noted.add(rule, self.units[texts], values)

        broken_chains = np.flatnonzero(chains.faults)
        goes_on = (int(rules.CHAIN_WITHOUT_EXTENT), int(rules.CHAIN_CYCLE))
        missing_bytes = self._wanted[broken_chains] - chain_bytes[broken_chains]
        values = np.where(
            np.isin(chains.faults[broken_chains], goes_on),
            chains.goes_on[broken_chains],
            missing_bytes,
        )
        note(chains.faults[broken_chains], chained[broken_chains], values)
        is_whole = chains.faults == 0
        joined_texts = chained[is_whole & self._is_text & (chain_bytes > 0)]
        for some_texts, texts in self.parts(joined_texts, self.lengths[joined_texts]):
            starts = texts.offsets[:-1]
            self._not_utf8.append(some_texts[not_utf8(texts.data, starts, np.diff(texts.offsets))])
        note(rules.NOT_UTF8, np.sort(np.concatenate([chained[:0], *self._not_utf8])), 0)
        too_long = np.flatnonzero(is_whole & (chains.goes_on != 0))
        note(rules.CHAIN_TOO_LONG, chained[too_long], chains.goes_on[too_long])
        is_over = self.lengths > self.max_string
        over_limit = np.flatnonzero(is_over & self._has_limit())
        note(rules.STRING_OVER_LIMIT, over_limit, self.lengths[over_limit])
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
        is_name = self.types[texts] == TYPES.NAME
        name_at = wire.PAYLOAD_AT[TYPES.NAME]
        string_at = wire.PAYLOAD_AT[TYPES.STRING_REFERENCE]
        begins: I64 = wire.UNIT * self.units[texts].astype(np.int64)
        return begins + np.where(is_name, name_at, string_at)

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
