cimport cython
from fx_inspect.read.scan cimport Scan
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.notes cimport Notes
from fxframework.kernels.pools cimport Pool

cdef int SAME_CHILDREN, SAME_PROPERTIES
cdef long long UNIT
cdef int SLASH

cdef class TreeOrder(Kernel):
    cdef const int[::1] parents
    cdef long long all
    cdef readonly int[::1] first, following, place, nodes
    cdef readonly long long count

    cdef long long step(self) except? -1 nogil

cdef class Arrangement(Kernel):
    cdef const int[::1] owners
    cdef const int[::1] place
    cdef long long given, numbers
    cdef int[::1] starts
    cdef readonly int[::1] rows
    cdef readonly long long count

    cdef long long step(self) except? -1 nogil

cdef class Duplicates(Kernel):
    cdef Scan scan
    cdef TreeOrder order
    cdef Notes notes
    cdef int[::1] seen
    cdef const int[::1] node_code
    cdef const int[::1] node_block
    cdef const int[::1] code
    cdef const int[::1] block
    cdef const int[::1] owner
    cdef const int[::1] rows
    cdef long long count

    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(finding=cython.int)
    cdef int look(self, long long code, int mark, long long record, bint is_property) except -1 nogil

cdef class Paths(Kernel):
    cdef const int[::1] names
    cdef const int[::1] parents
    cdef long long count, longest, left
    cdef Pool pool
    cdef readonly int[::1] code
    cdef long long[::1] words
    cdef unsigned char[::1] out

    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(
        nbytes=cython.longlong, above=cython.longlong, begin=cython.longlong, word=cython.longlong
    )
    cdef long long path(self, long long name, long long parent) except? -2 nogil
    @cython.final
    @cython.locals(begin=cython.longlong, index=cython.longlong, word=cython.longlong)
    cdef int put(self, long long code, long long nbytes, long long at) noexcept nogil
