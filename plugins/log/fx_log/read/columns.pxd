cimport cython
from fxframework.kernels.rows cimport Rows

cdef int DROPPED, ROLLED_OUT, VERBOSITY
cdef long long LOW32, LATEST, EARLIEST

@cython.final
cdef class LogColumns(Rows):
    cdef public long long[::1] offset, ns, start, pid, tid, tag
    cdef public unsigned int[::1] length, line
    cdef public int[::1] tags, component, url, file
    cdef public unsigned char[::1] severity, given

@cython.final
cdef class RareColumns(Rows):
    cdef public long long[::1] row, value
    cdef public unsigned char[::1] column

@cython.final
cdef class ArgColumns(Rows):
    cdef public long long[::1] offset, parent, value
    cdef public int[::1] name
    cdef public unsigned char[::1] type

@cython.final
cdef class TagColumns(Rows):
    cdef public long long[::1] offset, parent
    cdef public int[::1] name

@cython.final
cdef class PositionalColumns(Rows):
    cdef public long long[::1] parent, value
    cdef public unsigned char[::1] type

@cython.final
cdef class Totals:
    cdef readonly long long logs, first_ns, last_ns, final_ns
    cdef public long long types_seen
    cdef readonly long long dropped_low, dropped_high, rolled_low, rolled_high
    cdef readonly long long[::1] severities, by_component, by_tag
    cdef long long room

    cdef int count_component(self, long long code) except -1 nogil
    cdef int count_tag(self, long long code) except -1 nogil
    cdef int grow(self, long long code) except -1 with gil
    cdef int count_lost(self, long long dropped, long long rolled_out) noexcept nogil
    cdef int time(self, long long ns) noexcept nogil
