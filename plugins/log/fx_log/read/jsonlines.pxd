cimport cython
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.output cimport Output
from fxframework.kernels.utf8 cimport Utf8

cdef int RECORD_OFFSET, NBYTES, TIMESTAMP, SEVERITY, TAG_BITS_TEXT, ARGS, NAME, NULL_VALUE, INT64_VALUE
cdef int UINT64_VALUE, DOUBLE_VALUE, STRING_VALUE, TRUE_VALUE, FALSE_VALUE, END_OF_ARGS, RAW
cdef int END_OF_RAW, END_OF_RECORD, COMMA, END_OF_ARGUMENT, EMPTY_TEXT, ENTRY_OFFSET
cdef int ENTRY_TAG, LENGTH, OF_ENTRY, ENTRY_HEADER_WORDS, MAX_ENTRY_WORDS
cdef int NULL, INT64, UINT64, DOUBLE, STRING, BOOL, END, FULL, NOT_PLAIN, RECORD_TYPE, MIN_WORDS
cdef int INLINE, MAX_STRING
cdef long long LOW32, EXPONENT

cdef class JsonLines(Kernel):
    cdef const long long[::1] words
    cdef const double[::1] doubles
    cdef Utf8 utf8
    cdef readonly Output out
    cdef long long total, max_record, most, end, base, wrap, capacity
    cdef public long long pos
    cdef bint raw

    @cython.locals(before=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(word=cython.longlong, size=cython.longlong)
    cdef int record(self, long long at) except -1 nogil
    @cython.final
    @cython.locals(word=cython.longlong, argument=cython.longlong)
    cdef int log(self, long long at, long long size) except -1 nogil
    @cython.final
    @cython.locals(
        word=cython.longlong, length=cython.longlong, start=cython.longlong, size=cython.longlong
    )
    cdef int entry(self, long long at) except -1 nogil
    @cython.final
    @cython.locals(
        word=cython.longlong, kind=cython.int, inner=cython.longlong, reserved=cython.int
    )
    cdef long long argument(self, long long at) except? -1 nogil
    @cython.final
    @cython.locals(word=cython.longlong)
    cdef int number(self, int kind, long long at) except -1 nogil
    @cython.final
    @cython.locals(nbytes=cython.longlong, end=cython.longlong)
    cdef long long text(self, long long start, long long ref) except? -1 nogil
