cimport cython
from fx_inspect.read cimport c_codes as codes
from fx_inspect.read.scan cimport Scan
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.notes cimport Notes
from fxframework.kernels.pools cimport Pool
from fxframework.kernels.utf8 cimport Utf8

cdef int CHAINS_OVER_THE_FILE, CHAIN_CYCLE, CHAIN_TOO_LONG, CHAIN_TOO_SHORT, CHAIN_WITHOUT_EXTENT
cdef int NOT_UTF8, STRING_OVER_LIMIT
cdef long long LOW32, LOW28, UNIT, STRING_AT, PAYLOAD_AT, BY_BYTE

cdef class TextCopy:
    cdef const long long[::1] words
    cdef const unsigned char[::1] data
    cdef Scan scan
    cdef unsigned char[::1] out

    @cython.final
    @cython.locals(
        header=cython.longlong, type=cython.int, begin=cython.longlong, size=cython.longlong,
        extent=cython.longlong,
    )
    cdef int text(self, long long unit, long long nbytes, long long at) except -1 nogil
    @cython.final
    @cython.locals(index=cython.longlong)
    cdef int bytes(self, long long begin, long long size, long long at) noexcept nogil

cdef class Texts(Kernel):
    cdef const long long[::1] words
    cdef Scan scan
    cdef Notes notes
    cdef long long max_string
    cdef readonly long long[::1] length
    cdef readonly long long[::1] buffer
    cdef readonly int[::1] owner
    cdef readonly unsigned char[::1] twice
    cdef readonly TextCopy copy
    cdef Utf8 in_file, in_scratch
    cdef long long left, rest
    cdef int fault

    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(nbytes=cython.longlong, number=cython.longlong)
    cdef int name(self, long long record, long long unit) except -1 nogil
    @cython.final
    @cython.locals(
        total=cython.longlong, inline=cython.longlong, number=cython.longlong,
        nbytes=cython.longlong, first=cython.longlong,
    )
    cdef int string(self, long long record, long long unit) except -1 nogil
    @cython.final
    @cython.locals(
        payload=cython.longlong, format=cython.longlong, total=cython.longlong,
        nbytes=cython.longlong,
    )
    cdef int value(self, long long record, long long unit) except -1 nogil
    @cython.final
    @cython.locals(begin=cython.longlong)
    cdef int check(
        self, long long record, long long unit, long long nbytes, long long inline
    ) except -1 nogil
    @cython.final
    cdef int ends(self, long long record, long long unit) except -1 nogil
    @cython.final
    cdef long long bounded(
        self, long long record, long long unit, long long nbytes
    ) except? -1 nogil
    @cython.final
    @cython.locals(
        given=cython.longlong, extent=cython.longlong, header=cython.longlong, part=cython.longlong
    )
    cdef long long follow(self, long long record, long long unit, long long wanted) noexcept nogil

cdef class Interning(Kernel):
    cdef Scan scan
    cdef TextCopy copy
    cdef const long long[::1] length
    cdef const int[::1] uses
    cdef Pool pool
    cdef readonly int[::1] code

    cdef long long step(self) except? -1 nogil

cdef class TextColumnFill(Kernel):
    cdef TextCopy copy
    cdef const int[::1] source
    cdef const long long[::1] offsets
    cdef long long rows

    cdef long long step(self) except? -1 nogil
