cimport cython
from fx_inspect.read cimport c_codes as codes
from fx_inspect.read.scan cimport Scan
from fxframework.kernels.kernel cimport Kernel

cdef long long LOW32

cdef class PropertyPlaces(Kernel):
    cdef const int[::1] rows
    cdef const unsigned char[::1] type
    cdef const unsigned int[::1] length
    cdef long long count
    cdef readonly unsigned char[::1] types
    cdef readonly long long[::1] first_slot
    cdef readonly long long[::1] first_text

    @cython.locals(
        slots=cython.longlong, nbytes=cython.longlong, row=cython.longlong, at=cython.longlong,
        type=cython.int,
    )
    cdef long long step(self) except? -1 nogil

cdef class SlotRanges(Kernel):
    cdef const long long[::1] starts
    cdef const unsigned char[::1] types
    cdef long long count
    cdef readonly long long[::1] values

    @cython.locals(row=cython.longlong, start=cython.longlong)
    cdef long long step(self) except? -1 nogil

cdef class SlotValues(Kernel):
    cdef const long long[::1] words
    cdef const int[::1] units
    cdef const unsigned char[::1] types
    cdef const long long[::1] starts
    cdef int wanted
    cdef long long rows, first, stop
    cdef readonly long long[::1] values

    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(
        start=cython.longlong, at=cython.longlong, end=cython.longlong, size=cython.longlong,
        to=cython.longlong, index=cython.longlong, begin=cython.longlong,
    )
    cdef int array(self, long long row) noexcept nogil

cdef class SlotStrings(Kernel):
    cdef Scan scan
    cdef const long long[::1] words
    cdef const int[::1] units
    cdef const unsigned char[::1] types
    cdef const long long[::1] starts
    cdef const int[::1] code
    cdef long long rows, first, stop
    cdef readonly int[::1] values

    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(unit=cython.longlong)
    cdef long long string(self, long long begin, long long slot) noexcept nogil

cdef class SlotPlaces(Kernel):
    cdef const int[::1] units
    cdef const long long[::1] starts
    cdef long long rows, row, first, stop
    cdef readonly long long[::1] parent
    cdef readonly int[::1] slot
    cdef readonly long long[::1] offset

    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(
        at=cython.longlong, slot=cython.longlong, size=cython.longlong, to=cython.longlong,
        number=cython.longlong, index=cython.longlong,
    )
    cdef int array(self, long long row) noexcept nogil
