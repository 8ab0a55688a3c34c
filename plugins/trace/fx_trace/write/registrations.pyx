# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""Registrations: the records that registered the strings and threads in force, for walks."""

cimport cython
from libc.stdint cimport int64_t

from fxframework.kernels.pools cimport PairMap

from fx_trace import format as wire
from fxframework.kernels.buffers import full

cdef int64_t PROVIDER_INFO = wire.PROVIDER_INFO

__all__ = ["Registrations"]

cdef enum:
    # An entry of a cache is its generation << 40 | the word at which the record begins.
    GENERATION_AT = 40
cdef int64_t WORD_MASK = 0xFFFFFFFFFFLL

cdef enum:
    # State of a provider id in ``providers``.
    EPOCH_OF = 0
    INTRODUCED = 1
STRINGS = 1 << 15
THREADS = 1 << 8


@cython.final
cdef class Registrations:
    """Where each index was registered, by provider: the word at which the record begins.

    A provider's own registrations count first, then those of provider 0. A provider that is
    introduced once more begins with empty tables (an epoch). Words from ``made`` on are those of
    records that salvage put in for a provider: what provider 0 registered counts before them.
    """

    def __init__(self, made):
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

    cdef int64_t lookup(self, PairMap table, int64_t index) noexcept nogil:
        """Return where an index was registered, by the provider itself or else by provider 0.

        Or -1.
        """
        cdef int64_t at, found
        at = table.get(self.epoch, index)
        if at < 0 or at >= self.made:
            found = table.get(self.providers.get(0, EPOCH_OF), index)
            if at < 0 or 0 <= found < self.made:
                at = found
        return at

    cpdef int64_t string(self, int64_t index) noexcept nogil:
        """Return where the string of an index from 1 to 32,767 was registered; or -1."""
        cdef int64_t entry
        entry = self.string_at[index]
        if entry >> GENERATION_AT == self.generation:
            return entry & WORD_MASK
        return self.lookup(self.strings, index)

    cpdef int64_t thread(self, int64_t index) noexcept nogil:
        """Return where the thread of an index from 1 to 255 was registered; or -1."""
        cdef int64_t entry
        entry = self.thread_at[index]
        if entry >> GENERATION_AT == self.generation:
            return entry & WORD_MASK
        return self.lookup(self.threads, index)

    cdef bint is_hidden(self, PairMap table, int64_t index) noexcept nogil:
        """Return whether a record put in hides what provider 0 registered at an index since."""
        cdef int64_t at
        at = table.get(self.epoch, index)
        return at >= self.made and self.lookup(table, index) < self.made

    cpdef bint has_string(self, int64_t index) noexcept nogil:
        """Return whether a string is registered, and in what is written too."""
        if self.string_at[index] >> GENERATION_AT == self.generation:
            return True
        return self.lookup(self.strings, index) >= 0 and not self.is_hidden(self.strings, index)

    cpdef bint has_thread(self, int64_t index) noexcept nogil:
        """Return whether a thread is registered, and in what is written too."""
        if self.thread_at[index] >> GENERATION_AT == self.generation:
            return True
        return self.lookup(self.threads, index) >= 0 and not self.is_hidden(self.threads, index)

    cpdef int register_string(self, int64_t index, int64_t at) except -1 nogil:
        """Register a string by the record at word ``at``."""
        self.strings.put(self.epoch, index, at)
        if at < self.made:
            self.string_at[index] = (self.generation << GENERATION_AT) | at
        return 0

    cpdef int register_thread(self, int64_t index, int64_t at) except -1 nogil:
        """Register a thread by the record at word ``at``."""
        self.threads.put(self.epoch, index, at)
        if at < self.made:
            self.thread_at[index] = (self.generation << GENERATION_AT) | at
        return 0

    cpdef bint switch(self, int64_t kind, int64_t number) except? -1 nogil:
        """Switch to the tables of a provider; return whether its id is new."""
        cdef int64_t epoch, known, again
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
