cimport cython

cdef int BEGIN, DROPPED, ROLLED_OUT, VERBOSITY
cdef long long LOW32, LATEST, EARLIEST

@cython.final
cdef class LogColumns:
    cdef readonly long long rows, first, room
    cdef readonly long long[::1] offset, ns, start, pid, tid, tag
    cdef readonly unsigned int[::1] length, line
    cdef readonly int[::1] tags, component, url, file
    cdef readonly unsigned char[::1] severity, given

    cdef int grow(self) except -1 with gil
    cpdef int resize(self, long long rows) except -1 with gil

@cython.final
cdef class RareColumns:
    cdef readonly long long rows, first, room
    cdef readonly long long[::1] row, value
    cdef readonly unsigned char[::1] column

    cdef int grow(self) except -1 with gil
    cpdef int resize(self, long long rows) except -1 with gil

@cython.final
cdef class ArgColumns:
    cdef readonly long long rows, first, room
    cdef readonly long long[::1] offset, parent, value
    cdef readonly int[::1] name
    cdef readonly unsigned char[::1] type

    cdef int grow(self) except -1 with gil
    cpdef int resize(self, long long rows) except -1 with gil

@cython.final
cdef class TagColumns:
    cdef readonly long long rows, first, room
    cdef readonly long long[::1] offset, parent
    cdef readonly int[::1] name

    cdef int grow(self) except -1 with gil
    cpdef int resize(self, long long rows) except -1 with gil

@cython.final
cdef class PositionalColumns:
    cdef readonly long long rows, first, room
    cdef readonly long long[::1] parent, value
    cdef readonly unsigned char[::1] type

    cdef int grow(self) except -1 with gil
    cpdef int resize(self, long long rows) except -1 with gil

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
