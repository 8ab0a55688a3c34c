cimport cython
from fxframework.kernels cimport c_ops as ops
from libc.stdint cimport int64_t

cdef unsigned long long LOW64, MOST64
cdef int ENTRY, DIRECT
cdef int KIND_AT, KIND_BYTES, KIND_SHIFT, KIND_MASK, SUB_AT, SUB_BYTES, SUB_SHIFT, SUB_MASK
cdef int SIZE_AT, SIZE_BYTES, SIZE_SHIFT, SIZE_MASK, UNIT, PLUS, FIXED, HEAD, MOST, ALIGN, PADDED
cdef int MARK_KIND, MARK_AT, MARK_BYTES, MARK_VALUE, OTHER, BEGIN

@cython.final
cdef class Framing:
    cdef const unsigned char[::1] data
    cdef const long long[::1] words
    cdef const long long[::1] numbers
    cdef const long long[::1] kinds
    cdef int[::1] direct
    cdef readonly long long total, entries, kind
    cdef public long long size, big

    @cython.locals(value=cython.ulonglong, index=cython.longlong, octet=cython.ulonglong)
    cdef long long load(self, long long at, long long nbytes, long long big) noexcept nogil
    @cython.locals(value=cython.longlong)
    cdef long long half(self, long long at) noexcept nogil
    cdef long long wrapped(self, unsigned long long value) noexcept nogil
    @cython.locals(
        rest=cython.longlong, big=cython.longlong, kind=cython.longlong, entry=cython.longlong,
        size=cython.longlong,
    )
    cpdef int64_t frame(self, long long at) noexcept nogil
    @cython.locals(number=cython.longlong, second=cython.longlong, wanted=cython.longlong)
    cdef long long entry(self, long long at, long long kind, long long big) noexcept nogil
    @cython.locals(place=cython.longlong)
    cdef long long order(self, long long at) noexcept nogil
    cdef long long not_framed(self, long long at, long long why) noexcept nogil
    @cython.locals(end=cython.longlong)
    cdef bint padded(self, long long at) noexcept nogil
    @cython.locals(big=cython.longlong, unit=cython.longlong, begin=cython.longlong, after=cython.longlong)
    cpdef int64_t find(self, long long at) noexcept nogil
