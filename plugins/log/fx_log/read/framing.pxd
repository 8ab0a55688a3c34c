cimport cython
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.notes cimport Notes

cdef int LOG, ATTRIBUTION, PADDING, DAMAGED, RING_ENTRY, KIND_COUNT
cdef int NOT_A_RECORD, RECORD_TOO_SMALL, RECORD_TRUNCATED, ODD_BYTES, TIME_TRUNCATED, ZERO_WORDS
cdef int OVER_MAX_RECORD, SUFFIX_TRUNCATED, PACKET_TRUNCATED
cdef int ENTRY_TOO_SMALL, ENTRY_TOO_LONG, ENTRY_WITHOUT_RECORD, ENTRY_TRAILING_BYTES
cdef int ENTRY_PADDING_NOT_ZERO
cdef int CHAIN, STRING, INLINE, MAX_STRING, ARGUMENT_TYPES, NUMBER_TYPES
cdef int RECORD_TYPE, MIN_WORDS, SOUND_RUN, ENTRY_HEADER_WORDS, MAX_ENTRY_WORDS, NOWHERE
cdef long long LOW32, LATEST

cdef class Framer:
    cdef Notes notes
    cdef readonly long long[::1] kinds
    cdef public long long pos
    cdef public long long record
    cdef readonly long long start, size, offset, index, tag, suffix, end
    cdef long long base, wrap, capacity

    cdef int advance(self) except -1 nogil
    cdef long long place(self, long long word) noexcept nogil
    cdef int damage(self, long long code, long long offset, long long value) except -1 nogil

cdef class LogFramer(Framer):
    cdef const long long[::1] words
    cdef long long total, nbytes, max_record
    cdef bint suffixed

    @cython.locals(at=cython.longlong, word=cython.longlong, size=cython.longlong, fault=cython.int)
    cdef int advance(self) except -1 nogil
    @cython.final
    @cython.locals(until=cython.longlong)
    cdef int padding(self, long long at) except -1 nogil
    @cython.final
    cdef int fault(self, long long word, long long size, long long left) noexcept nogil
    @cython.final
    @cython.locals(at=cython.longlong, word=cython.longlong, body=cython.longlong)
    cdef int attribution(self) except -1 nogil
    @cython.final
    @cython.locals(word=cython.longlong, size=cython.longlong)
    cdef bint plausible(self, long long at) noexcept nogil
    @cython.final
    @cython.locals(
        end=cython.longlong, at=cython.longlong, count=cython.int, word=cython.longlong,
        size=cython.longlong,
    )
    cdef bint chained(self, long long start) noexcept nogil
    @cython.final
    @cython.locals(kind=cython.int, ref=cython.int, value=cython.int, words=cython.longlong)
    cdef long long argument_words(self, long long word) noexcept nogil
    @cython.final
    @cython.locals(begin=cython.longlong, at=cython.longlong, good=cython.int)
    cdef long long sound_after(self, long long start) noexcept nogil

cdef class RingFramer(Framer):
    cdef const long long[::1] words
    cdef long long total

    @cython.locals(
        at=cython.longlong, offset=cython.longlong, left=cython.longlong, length=cython.longlong,
        size=cython.longlong, short=cython.bint)
    cdef int advance(self) except -1 nogil
    @cython.final
    @cython.locals(start=cython.longlong, words=cython.longlong, found=cython.bint)
    cdef int entry(
        self, long long at, long long size, long long length, long long offset
    ) except -1 nogil

cdef class PacketFramer(Framer):
    cdef const unsigned char[::1] data
    cdef long long total
    cdef bint single

    @cython.locals(at=cython.longlong, start=cython.longlong, size=cython.longlong)
    cdef int advance(self) except -1 nogil
    @cython.final
    @cython.locals(a=cython.longlong, b=cython.longlong, c=cython.longlong, d=cython.longlong)
    cdef long long length(self, long long at) noexcept nogil

cdef class FrameList(Kernel):
    cdef Framer framer
    cdef long long most
    cdef readonly long long rows
    cdef readonly long long[::1] begins, ends, tags, starts
    cdef readonly unsigned char[::1] suffixed

    @cython.locals(rows=cython.longlong)
    cdef long long step(self) except? -1 nogil
