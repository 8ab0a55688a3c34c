"""Registrations: the records that registered the strings and threads in force, for walks."""

from __future__ import annotations

from typing import final

from fx_trace.format import (
    PROVIDER_INFO,
)
from fxframework.kernels.annotations import Array, Fallible, flag, i64, public, status
from fxframework.kernels.buffers import full
from fxframework.kernels.maps import PairMap

__all__ = ["Registrations"]

GENERATION_AT = 40
"""An entry of a cache is its generation << 40 | the word at which the record begins."""
WORD_MASK = 0xFFFFFFFFFF
EPOCH_OF, INTRODUCED = 0, 1
"""State of a provider id in ``providers``."""
STRINGS = 1 << 15
THREADS = 1 << 8


@final
class Registrations:
    """Where each index was registered, by provider: the word at which the record begins.

    A provider's own registrations count first, then those of provider 0. A provider that is
    introduced once more begins with empty tables (an epoch). Words from ``made`` on are those of
    records that salvage put in for a provider: what provider 0 registered counts before them.
    """

    strings: PairMap
    threads: PairMap
    providers: PairMap
    string_at: Array[i64]
    thread_at: Array[i64]
    made: i64
    epoch: i64
    epochs: i64
    generation: i64

    def __init__(self, made: int) -> None:
        self.made = made
        self.strings = PairMap(64)
        self.string_at = full(STRINGS, "i8", -1)
        self.threads = PairMap(64)
        self.thread_at = full(THREADS, "i8", -1)
        self.providers = PairMap(16)
        self.epoch = 0
        self.epochs = 0
        self.generation = 0
        self.providers.put(0, EPOCH_OF, 0)

    def lookup(self, table: PairMap, index: i64) -> i64:
        """Return where an index was registered, by the provider itself or else by provider 0.

        Or -1.
        """
        at = table.get(self.epoch, index)
        if at < 0 or at >= self.made:
            found = table.get(self.providers.get(0, EPOCH_OF), index)
            if at < 0 or 0 <= found < self.made:
                at = found
        return at

    @public
    def string(self, index: i64) -> i64:
        """Return where the string of an index from 1 to 32,767 was registered; or -1."""
        entry = self.string_at[index]
        if entry >> GENERATION_AT == self.generation:
            return entry & WORD_MASK
        return self.lookup(self.strings, index)

    @public
    def thread(self, index: i64) -> i64:
        """Return where the thread of an index from 1 to 255 was registered; or -1."""
        entry = self.thread_at[index]
        if entry >> GENERATION_AT == self.generation:
            return entry & WORD_MASK
        return self.lookup(self.threads, index)

    def is_hidden(self, table: PairMap, index: i64) -> flag:
        """Return whether a record put in hides what provider 0 registered at an index since."""
        at = table.get(self.epoch, index)
        return at >= self.made and self.lookup(table, index) < self.made

    @public
    def has_string(self, index: i64) -> flag:
        """Return whether a string is registered, and in what is written too."""
        if self.string_at[index] >> GENERATION_AT == self.generation:
            return True
        return self.lookup(self.strings, index) >= 0 and not self.is_hidden(self.strings, index)

    @public
    def has_thread(self, index: i64) -> flag:
        """Return whether a thread is registered, and in what is written too."""
        if self.thread_at[index] >> GENERATION_AT == self.generation:
            return True
        return self.lookup(self.threads, index) >= 0 and not self.is_hidden(self.threads, index)

    @public
    def register_string(self, index: i64, at: i64) -> status:
        """Register a string by the record at word ``at``."""
        self.strings.put(self.epoch, index, at)
        if at < self.made:
            self.string_at[index] = (self.generation << GENERATION_AT) | at
        return 0

    @public
    def register_thread(self, index: i64, at: i64) -> status:
        """Register a thread by the record at word ``at``."""
        self.threads.put(self.epoch, index, at)
        if at < self.made:
            self.thread_at[index] = (self.generation << GENERATION_AT) | at
        return 0

    @public
    def switch(self, kind: i64, number: i64) -> Fallible[flag]:
        """Switch to the tables of a provider; return whether its id is new."""
        epoch = self.providers.get(number, EPOCH_OF)
        known = epoch >= 0
        again = kind == PROVIDER_INFO and self.providers.get(number, INTRODUCED) > 0
        if not known or again:
            self.epochs += 1
            epoch = self.epochs
            self.providers.put(number, EPOCH_OF, epoch)
        if kind == PROVIDER_INFO:
            self.providers.put(number, INTRODUCED, 1)
        self.epoch = epoch
        self.generation += 1
        return not known
