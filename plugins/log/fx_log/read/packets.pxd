cimport cython
from fx_log.read.columns cimport Totals
from fx_log.read.framing cimport Framer
from fx_log.read.row_scan cimport RowScan
from fxframework.kernels.notes cimport Notes
from fxframework.kernels.pools cimport Pool

cdef int DAMAGED, PACKET, TIME_DECREASES, LOGS_LOST, PACKET_TOO_SHORT, PACKET_NOT_TERMINATED
cdef int MANY_TAGS, LONG_TAG, PAST_THE_END, SEVERITY_OF_ERAS, TRAILING_BYTES, PACKET_NOT_UTF8
cdef int OVER_A_DATAGRAM, PACKET_TID, PACKET_TIME, PACKET_SEVERITY, PACKET_DROPPED, PACKET_TAGS, SMALLEST_PACKET, LARGEST_PACKET, MOST_TAGS
cdef int TAG_BYTES, TRACE_LEVEL, DEBUG_LEVEL, INFO_LEVEL, FATAL_LEVEL, LEVEL_STEP, GIVEN
cdef int RARE_DROPPED, RARE_VERBOSITY, NO_STRING
cdef long long LOW32, LATEST

cdef class PacketScan(RowScan):
    cdef const unsigned char[::1] data
    cdef long long severity, verbosity
    cdef bint sound

    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(value=cython.longlong, place=cython.int)
    cdef long long number(self, long long at, int nbytes) noexcept nogil
    @cython.final
    @cython.locals(at=cython.longlong, tags=cython.int, size=cython.int)
    cdef int fault(self, long long start, long long end) noexcept nogil
    @cython.final
    @cython.locals(
        fault=cython.int, row=cython.longlong,
        first=cython.longlong, at=cython.longlong, message=cython.longlong, stop=cython.longlong,
        ns=cython.longlong, before=cython.longlong, dropped=cython.longlong)
    cdef int packet(self, long long start, long long end) except -1 nogil
    @cython.final
    cdef int check(
        self, long long severity, long long message, long long stop, long long end
    ) except -1 nogil
    @cython.final
    cdef int take_severity(self, long long severity) noexcept nogil
    @cython.final
    @cython.locals(nbytes=cython.int, place=cython.int, name=cython.longlong)
    cdef long long tag(self, long long at) except -1 nogil
    @cython.final
    @cython.locals(
        total=cython.longlong, row=cython.longlong, at=cython.longlong,
        place=cython.int)
    cdef long long joined(self, long long first) except? -1 nogil
