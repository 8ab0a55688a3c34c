cimport cython
from fx_xray.read.scan cimport Bytes
from fx_xray.read.timeline cimport Stretches
from fxframework.kernels.kernel cimport Kernel

cdef int BIG, BUFFER_EXTENTS, CALL_ARGUMENT, CUSTOM_EVENT, NEW_BUFFER, NEW_CPU, PID, TSC_WRAP
cdef int TYPED_EVENT, WALL_TIME


cdef class Normalise(Kernel):
    cdef Bytes bytes
    cdef const unsigned char[::1] data
    cdef unsigned char[::1] out
    cdef Stretches stretches
    cdef int version, order
    cdef long long count

    @cython.locals(row=cython.longlong, at=cython.longlong, first=cython.int)
    cdef long long step(self) except? -1 nogil
    @cython.locals(index=cython.longlong)
    @cython.final
    cdef void reverse(self, long long at, int nbytes) noexcept nogil
    @cython.locals(word=cython.longlong, index=cython.longlong)
    @cython.final
    cdef long long function(self, long long at) noexcept nogil
    cdef long long metadata(self, long long at, int kind) noexcept nogil
