cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from fx_inspect.read.scan cimport Scan
from fxframework.kernels.rows cimport Notes
from fxframework.kernels.pools cimport Utf8

@cython.final
cdef class TextCopy:
    cdef public const int64_t[::1] words
    cdef public const uint8_t[::1] data
    cdef public Scan scan
    cdef public uint8_t[::1] out

    cdef int text(self, int64_t unit, int64_t nbytes, int64_t at) except -1 nogil
    cdef int64_t bytes(self, int64_t begin, int64_t size, int64_t at) noexcept nogil


@cython.final
cdef class Texts:
    cdef public const int64_t[::1] words
    cdef public Scan scan
    cdef public Notes notes
    cdef readonly int64_t max_string
    cdef readonly int64_t[::1] length
    cdef public int64_t[::1] buffer
    cdef readonly int32_t[::1] owner
    cdef readonly uint8_t[::1] twice
    cdef public TextCopy copy
    cdef Utf8 in_file, in_scratch
    cdef public int64_t left
    cdef readonly int64_t rest, fault

    cdef int64_t step(self) except? -9 nogil
    cdef int name(self, int64_t record, int64_t unit) except -1 nogil
    cdef int string(self, int64_t record, int64_t unit) except -1 nogil
    cdef int value(self, int64_t record, int64_t unit) except -1 nogil
    cdef int64_t chained(self, int64_t record, int64_t unit, int64_t inline, int64_t first,
                         int64_t total, bint is_text) except? -9 nogil
    cdef int check(self, int64_t record, int64_t unit, int64_t nbytes,
                   int64_t inline) except -1 nogil
    cdef int64_t bounded(self, int64_t record, int64_t unit, int64_t nbytes) except? -9 nogil
    cdef int64_t follow(self, int64_t record, int64_t unit, int64_t wanted) noexcept nogil
