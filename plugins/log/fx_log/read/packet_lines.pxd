cimport cython
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.output cimport Output
from fxframework.kernels.utf8 cimport Utf8

cdef int RECORD_OFFSET, NBYTES, PID_TEXT, TID_TEXT, TIMESTAMP, SEVERITY, RAW_SEVERITY, DROPPED, TAGS, COMMA
cdef int MESSAGE_TEXT, RAW, END_OF_RAW, END_OF_RECORD, LENGTH, FIRST, MOST_SEVERE
cdef int END, FULL, NOT_PLAIN, SMALLEST_PACKET, LARGEST_PACKET, MOST_TAGS, TAG_BYTES
cdef int PACKET_TID, PACKET_TIME, PACKET_SEVERITY, PACKET_DROPPED, PACKET_TAGS
cdef long long LOW32

cdef class PacketLines(Kernel):
    cdef const unsigned char[::1] data
    cdef Utf8 utf8
    cdef readonly Output out
    cdef long long total, most
    cdef public long long pos

    @cython.locals(before=cython.longlong, end=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(value=cython.longlong, place=cython.int)
    cdef long long number(self, long long at, int nbytes) noexcept nogil
    @cython.final
    @cython.locals(
        start=cython.longlong, size=cython.longlong, end=cython.longlong, message=cython.longlong,
        stop=cython.longlong,
    )
    cdef long long record(self, long long at) except? -1 nogil
    @cython.final
    @cython.locals(severity=cython.longlong)
    cdef int head(self, long long start) except -1 nogil
    @cython.final
    @cython.locals(size=cython.longlong, count=cython.int)
    cdef long long tags(self, long long at, long long end) except? -1 nogil
