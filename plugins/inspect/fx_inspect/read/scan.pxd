cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from fxframework.kernels.rows cimport Notes

@cython.final
cdef class Scan:
    cdef public const int64_t[::1] words, reserved
    cdef public Notes notes
    cdef public int64_t nbytes, units
    cdef readonly bint places
    cdef public int64_t at, most
    cdef int64_t index_at, index_mask
    cdef public int64_t name_at, type_at
    cdef int64_t type_mask
    cdef public int64_t types
    cdef int64_t max_version
    cdef public int64_t max_record
    cdef readonly int32_t[::1] unit
    cdef public uint8_t[::1] type, order
    cdef readonly uint8_t[::1] starts
    cdef public int32_t[::1] numbers
    cdef readonly uint8_t[::1] follow
    cdef readonly int64_t[::1] tally
    cdef public int64_t count, nodes, values, extents, strings
    cdef readonly int64_t buffers
    cdef public int64_t links
    cdef readonly int64_t damaged_bytes, unknown_bytes, padding_bytes
    cdef int64_t resumed

    cdef int64_t step(self) except? -9 nogil
    cdef int64_t following(self) except? -9 nogil
    cdef int64_t record(self, int64_t unit) except? -9 nogil
    cdef int block(self, int64_t unit, int64_t type, int64_t order) except -1 nogil
    cdef int64_t damaged(self, int64_t unit, int64_t end) except? -9 nogil
    cdef int64_t enter(self, int64_t unit, int64_t type, int64_t order,
                       int64_t end) except? -9 nogil
    cdef int free_lists(self) except -1 nogil
    cdef bint free(self, int64_t unit, int64_t order) noexcept nogil
    cdef int64_t fits(self, int64_t unit) noexcept nogil
    cdef int64_t resume(self, int64_t unit) except? -9 nogil
    cdef int find_runs(self) except -1 nogil
    cdef int make_runs(self) except -1 with gil
    cdef int header(self) except -1 nogil
