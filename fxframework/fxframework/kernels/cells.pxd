cimport cython
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.output cimport Output

cdef int SIGNED, NATURAL, POOLED, VERBATIM, OBJECT, TEXT, SEPARATOR, ROW_END, QUOTE, APOSTROPHE, SPECIAL
cdef int FORMULA, MORE, END, OPEN, CLOSE, COMMA

cdef class Cells(Kernel):
    cdef readonly Output out
    cdef const unsigned char[::1] marks, kinds, pool, texts, member_kinds
    cdef const long long[::1] values, pool_bounds, text_bounds, starts, stops
    cdef const long long[::1] names, members
    cdef long long most, columns
    cdef public long long row
    cdef readonly long long rows

    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(column=cython.longlong, value=cython.longlong, kind=cython.int)
    cdef int write_row(self, long long row) except -1 nogil
    @cython.final
    cdef int cell(self, int kind, long long value) except -1 nogil
    @cython.final
    @cython.locals(at=cython.longlong, name=cython.longlong)
    cdef int json(self, long long first, long long stop) except -1 nogil
    @cython.final
    @cython.locals(used=cython.longlong)
    cdef int copy(self, long long start, long long end) except -1 nogil
    @cython.final
    @cython.locals(used=cython.longlong)
    cdef int verbatim(self, long long start, long long end) except -1 nogil
    @cython.final
    @cython.locals(
        used=cython.longlong, at=cython.longlong, byte=cython.int, formula=cython.bint,
        quoted=cython.bint,
    )
    cdef int text(self, long long start, long long end) except -1 nogil
