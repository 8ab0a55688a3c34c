"""Fields: some bits of a word, as a format declares them (``fxframework.io.words.Bits``)."""

from libc.stdint cimport int64_t

cdef struct Field:
    int64_t low     # the lowest bit
    int64_t limit   # the greatest value


cdef inline Field field(declared):
    """Return a declared field."""
    return Field(declared.low, declared.limit)


cdef inline int64_t get(Field bits, int64_t word) noexcept nogil:
    """Return the value that a word has in a field."""
    return word >> bits.low & bits.limit


cdef inline int64_t put(Field bits, int64_t value) noexcept nogil:
    """Return a value, which is not checked, at the place of a field."""
    return value << bits.low
