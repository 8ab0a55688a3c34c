cimport cython
from fxframework.kernels.kernel cimport Kernel

cdef unsigned long long LOW64
cdef int UNKNOWN
cdef int BELOW
cdef long long STRETCH

cpdef void mark_numbers(
    const long long[::1] values, long long low, unsigned char[::1] seen
) noexcept
cpdef void look_up(
    const long long[::1] values, long long low, const int[::1] table, int[::1] out
) noexcept
@cython.locals(above=cython.longlong, caller=cython.longlong)
cpdef void pair_up(
    const int[::1] function, const long long[::1] parent, long long functions, long long[::1] out
) noexcept
@cython.locals(
    start=cython.longlong, at=cython.longlong, hop=cython.longlong, steps=cython.longlong,
    following=cython.longlong,
)
cpdef void nearest_chosen(
    const long long[::1] rows, const long long[::1] parent, const long long[::1] place,
    long long[::1] up, long long[::1] out,
) noexcept
@cython.locals(number=cython.longlong, value=cython.longlong, above=cython.longlong)
cpdef void account(
    const int[::1] group, const long long[::1] parent, const long long[::1] length,
    const unsigned char[::1] chosen, const unsigned char[::1] summed, long long[::1] counts,
    long long[::1] opened, long long[::1] totals, long long[::1] nested,
) noexcept
@cython.locals(number=cython.longlong, value=cython.longlong, at=cython.longlong)
cpdef void sort_out(
    const int[::1] group, const long long[::1] length, const unsigned char[::1] chosen,
    long long[::1] following, long long[::1] out,
) noexcept
@cython.locals(row=cython.longlong, above=cython.longlong)
cpdef void link_children(
    const long long[::1] parent, long long[::1] first, long long[::1] beside
) noexcept
@cython.locals(
    above=cython.longlong, at=cython.longlong, outermost=cython.longlong, left=cython.bint
)
cpdef void find_recursion(
    const int[::1] function, const long long[::1] parent, const long long[::1] first,
    const long long[::1] beside, long long[::1] active, unsigned char[::1] inner,
    unsigned char[::1] recursive,
) noexcept
cpdef void measure_depths(const int[::1] parents, int[::1] depth) noexcept
@cython.locals(above=cython.int)
cpdef void add_to_roots(
    const int[::1] parents, const long long[::1] values, int[::1] root, long long[::1] sums
) noexcept

cdef class TreeBuilder(Kernel):
    cdef const int[::1] function
    cdef const long long[::1] parent
    cdef const long long[::1] length
    cdef const int[::1] thread
    cdef const int[::1] roots
    cdef long long first_row
    cdef readonly long long row
    cdef long long stop
    cdef int[::1] node_of
    cdef unsigned long long first
    cdef unsigned long long second
    cdef readonly long long used
    cdef long long room
    cdef long long mask
    cdef int[::1] slots
    cdef readonly int[::1] parents
    cdef readonly int[::1] functions
    cdef readonly long long[::1] counts
    cdef readonly long long[::1] opened
    cdef readonly long long[::1] totals
    cdef readonly long long[::1] loose
    cdef long long deepest
    cdef readonly long long deep
    cdef int[::1] levels

    @cython.locals(end=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(at=cython.longlong, above=cython.longlong)
    cdef long long outermost(self, long long row) noexcept nogil
    @cython.final
    @cython.locals(
        above=cython.longlong, within=cython.bint, upper=cython.int, node=cython.int,
        deep=cython.bint,
        waiting=cython.longlong, value=cython.longlong,
    )
    cdef int enter(self, long long at, long long row) except -1 nogil
    @cython.final
    @cython.locals(mixed=cython.ulonglong, place=cython.longlong, node=cython.int)
    cdef long long slot(self, int upper, int number) noexcept nogil
    @cython.final
    @cython.locals(place=cython.longlong, node=cython.int)
    cdef int node(self, int upper, int number) except -1 nogil
    cdef int grow(self) except -1 with gil
