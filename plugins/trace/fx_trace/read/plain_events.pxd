cimport cython
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.maps cimport PairMap
from fxframework.kernels.output cimport Output

cdef int RECORD, THREAD, CATEGORY, NAME, ARGS, COMMA, REFS, CATEGORY_REF, NAME_REF, END_OF_RECORD
cdef int ARG_DOUBLE, ARG_INT32, ARG_INT64, ARG_STRING, ARG_UINT32, END_OF_REFS, LITERALS
cdef int END, FULL, NOT_PLAIN, SHAPE, ARGUMENT, NARROW, WIDE
cdef long long LOW24, LOW32, THREADS, STRINGS, EXPONENT

cdef class PlainEvents(Kernel):
    cdef const long long[::1] words
    cdef const double[::1] doubles
    cdef readonly Output out
    cdef PairMap shape_of, argument_of
    cdef long long[::1] shapes, arguments
    cdef int[::1] threads, strings
    cdef public long long pos, whole, records, most

    @cython.locals(before=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(
        header=cython.longlong, shape=cython.longlong, end=cython.longlong, last=cython.longlong,
        place=cython.longlong, number=cython.longlong, count=cython.longlong,
        thread=cython.longlong, category=cython.longlong, name=cython.longlong,
    )
    cdef int event(self, long long at) except -1 nogil
    @cython.final
    @cython.locals(
        word=cython.longlong, kind=cython.longlong, which=cython.longlong, value=cython.longlong,
    )
    cdef long long argument(self, long long at, long long stop) except? -2 nogil
