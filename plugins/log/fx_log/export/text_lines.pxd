cimport cython
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.output cimport Output

cdef int OPEN, CLOSE, BETWEEN, NEWLINE, COMMA, BEFORE_LINE, AFTER_LINE, DROPPED, ROLLED_OUT_TEXT, BLANK
cdef int EQUALS, TRUE, FALSE, NULL_TEXT, NO_MESSAGE, AFTER_FILE, POINT, FIRST_LEVEL
cdef int GIVEN_MESSAGE, GIVEN_PID, GIVEN_TID, GIVEN_LINE, NULL, DOUBLE, STRING, BOOL
cdef int SIGNED_TYPES, END, FULL, NOT_PLAIN, SHOWN_ARGUMENTS, LONGEST_MONIKER, FIRST_PRINTABLE
cdef int LAST_PRINTABLE, SLASH, SECOND_DIGITS, MICRO_DIGITS

cdef class TextLines(Kernel):
    cdef readonly Output out
    cdef bint metadata, full, show_tags, show_file
    cdef long long most
    cdef const unsigned char[::1] level_of
    cdef long long[::1] order
    cdef public long long row
    cdef readonly long long rows
    cdef long long moniker_at, moniker_bytes
    cdef const unsigned char[::1] letters, message, severity, given, odd, arg_types
    cdef const long long[::1] starts, lengths, ts, pid, tid, line, dropped, rolled_out, offsets
    cdef const long long[::1] tag_starts, tag_stops, arg_starts, arg_stops, arg_integers
    cdef const int[::1] component, file, tag_names, arg_names, arg_strings
    cdef const double[::1] arg_doubles

    @cython.locals(before=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(given=cython.int)
    cdef int write_row(self, long long row) except -1 nogil
    @cython.final
    @cython.locals(micros=cython.longlong, seconds=cython.longlong)
    cdef int time(self, long long ns) except -1 nogil
    @cython.final
    @cython.locals(used=cython.longlong, at=cython.longlong, byte=cython.int)
    cdef int octets(self, bint pooled, long long start, long long end) except -1 nogil
    @cython.final
    @cython.locals(start=cython.longlong)
    cdef int text(self, long long code) except -1 nogil
    @cython.final
    @cython.locals(start=cython.longlong, end=cython.longlong, at=cython.longlong)
    cdef int moniker(self, long long code) except -1 nogil
    @cython.final
    @cython.locals(start=cython.longlong, index=cython.longlong)
    cdef bint is_moniker(self, long long code) noexcept nogil
    @cython.final
    @cython.locals(written=cython.bint, at=cython.longlong, code=cython.longlong)
    cdef int tags(self, long long row) except -1 nogil
    @cython.final
    @cython.locals(
        count=cython.longlong, number=cython.longlong, place=cython.longlong, at=cython.longlong
    )
    cdef int arguments(self, long long first, long long stop) except -1 nogil
    @cython.final
    @cython.locals(
        one=cython.longlong, other=cython.longlong, start=cython.longlong, second=cython.longlong,
        index=cython.longlong,
    )
    cdef bint comes_before(self, long long left, long long right) noexcept nogil
    @cython.final
    @cython.locals(kind=cython.int)
    cdef int value(self, long long at) except -1 nogil
    @cython.final
    cdef int real(self, double value) except -1 with gil
