cimport cython
from fx_xray.read.scan cimport Bytes
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.output cimport Output

cdef int END, FULL, NOT_PLAIN, NBYTES, KIND, FUNCTION_ID, DELTA, TSC, CPU, THREAD, PROCESS, VALUE, SECONDS
cdef int MICROS, BYTES, TYPE_OF_EVENT, PADDING_HEX, DATA_HEX, RAW, END_OF_HEX, END_OF_RECORD, RECORD
cdef int FUNCTION_BYTES, METADATA_BYTES, ARGUMENT_TYPE, OF_EXTENTS, OF_CPU, OF_DELTA, LITTLE, BIG, BIG_LSB
cdef int NOTHING, BUFFER_EXTENTS, CALL_ARGUMENT, CUSTOM_EVENT, ENTER_ARG, FUNCTION, NEW_BUFFER, NEW_CPU
cdef int PID, TSC_WRAP, TYPED_EVENT, WALL_TIME, HEADER_BYTES, BASIC_BYTES
cdef long long LOW28
cdef unsigned long long FAR, LOW64


cdef class Lines(Kernel):
    cdef Bytes bytes
    cdef const unsigned char[::1] data
    cdef readonly Output out
    cdef long long size, most
    cdef public long long pos

    @cython.locals(before=cython.longlong, nbytes=cython.longlong)
    cdef long long step(self) except? -1 nogil
    cdef long long record(self, long long at) except? -1 nogil
    @cython.final
    cdef int begin(self, int kind, long long at, long long nbytes) except -1 nogil
    @cython.final
    cdef int member(self, int name, long long value) except -1 nogil
    @cython.final
    cdef int natural(self, int name, unsigned long long value) except -1 nogil
    @cython.final
    cdef int octets(self, int name, long long start, long long end) except -1 nogil
    @cython.final
    cdef bint zero(self, long long start, long long end) noexcept nogil
    @cython.final
    cdef int padding(self, long long start, long long end) except -1 nogil


cdef class BasicLines(Lines):
    @cython.locals(type=cython.int, kind=cython.int)
    cdef long long record(self, long long at) except? -1 nogil
    @cython.final
    cdef long long argument(self, long long at) except? -1 nogil


cdef class FdrLines(Lines):
    cdef int version, order
    cdef long long max_record
    cdef public long long limit
    cdef public unsigned long long base
    cdef public int cpu, thread, process
    cdef public bint trusted, bounded, by_extents, open, settled
    cdef public bint has_base, has_cpu, has_thread, has_process

    @cython.locals(first=cython.int, kind=cython.int)
    cdef long long record(self, long long at) except? -1 nogil
    @cython.final
    cdef int kind(self, int first) noexcept nogil
    @cython.final
    cdef int open_buffer(self) noexcept nogil
    @cython.final
    @cython.locals(left=cython.longlong, nbytes=cython.longlong)
    cdef long long extents(self, long long at) except? -1 nogil
    @cython.final
    @cython.locals(value=cython.int)
    cdef long long preamble(self, long long at, int kind) except? -1 nogil
    @cython.final
    @cython.locals(thread=cython.longlong)
    cdef int place(self) except -1 nogil
    @cython.final
    cdef int when(self) except -1 nogil
    @cython.final
    @cython.locals(word=cython.longlong, kind=cython.int, delta=cython.longlong)
    cdef long long function(self, long long at) except? -1 nogil
    @cython.final
    cdef long long argument(self, long long at) except? -1 nogil
    @cython.final
    @cython.locals(start=cython.longlong, tsc=cython.ulonglong, far=cython.ulonglong)
    cdef long long clock(self, long long at, int kind) except? -1 nogil
    @cython.final
    @cython.locals(
        size=cython.longlong, start=cython.longlong, fields=cython.longlong, delta=cython.longlong,
        cpu=cython.int,
    )
    cdef long long event(self, long long at, int kind) except? -1 nogil
