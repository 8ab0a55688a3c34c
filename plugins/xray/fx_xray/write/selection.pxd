cimport cython
from fx_xray.read.match cimport OpenCalls
from fx_xray.read.timeline cimport EventBuffer
from fxframework.kernels.kernel cimport Kernel

cdef int ARGUMENT, ENTER, ENTER_ARG, EXIT, TAIL_EXIT


cdef class Selection(Kernel):
    cdef const unsigned char[::1] slices, instants
    cdef long long last_slice, last_instant, slice, instant
    cdef OpenCalls open
    cdef unsigned char[::1] kept_call, keep
    cdef EventBuffer events
    cdef readonly long long kept

    @cython.locals(index=cython.longlong, kept=cython.int)
    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(thread=cython.longlong, kept=cython.int)
    cdef int belongs(self, long long index, int kind) except -1 nogil
    @cython.final
    @cython.locals(kept=cython.int)
    cdef int next_instant(self) noexcept nogil
    @cython.final
    @cython.locals(node=cython.longlong, row=cython.longlong)
    cdef int leave(self, long long thread, long long function) except -1 nogil
