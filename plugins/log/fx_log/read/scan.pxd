cimport cython
from fx_log.read.columns cimport ArgColumns, PositionalColumns, Totals
from fx_log.read.framing cimport Framer
from fx_log.read.row_scan cimport RowScan
from fxframework.kernels.maps cimport PairMap
from fxframework.kernels.notes cimport Notes
from fxframework.kernels.pools cimport Pool
from fxframework.kernels.utf8 cimport Utf8

cdef int EMPTY, PID, TID, TAG, MESSAGE, FILE, LINE, NUM_DROPPED, DROPPED_LOGS, VERBOSITY
cdef int ROLLED_OUT, MONIKER, URL, PRINTF, OWN_MONIKER, OWN_URL, OWN_ROLLED_OUT, UNKNOWN
cdef int NO_STRING, NULL, INT64, UINT64, DOUBLE, STRING, BOOL, GIVEN_MESSAGE, GIVEN_PID
cdef int GIVEN_TID, GIVEN_LINE, HAS_VERBOSITY, IS_PRINTF, RARE_DROPPED, RARE_ROLLED_OUT
cdef int RARE_VERBOSITY, RESERVED_BITS, PADDING_NOT_ZERO, SIZE_DIFFERS, TAG_BITS
cdef int SEVERITY_NOT_A_LEVEL, NOT_UTF8, MESSAGE_NOT_UTF8, RESERVED_REFERENCE, NULL_ARGUMENT
cdef int TRACE_TYPE, UNKNOWN_TYPE, STRING_TRUNCATED, NUMBER_MISSING, UNKNOWN_SIZE
cdef int EMPTY_INLINE_STRING, EMPTY_NAME, WELL_KNOWN_OF_OTHER_TYPE, WELL_KNOWN_TWICE
cdef int TIME_DECREASES, TAG_NOT_NAMED, MANIFEST_INCOMPLETE, LOGS_LOST, ATTRIBUTION_NOT_LAST
cdef int MANY_ARGUMENTS, LONG_NAME, FIDL_ARGUMENTS, FIDL_NAME_BYTES, DEBUG_LEVEL, MOST_ARGUMENTS
cdef int COMPONENT_BITS, NOT_NAMED, INLINE, MAX_STRING
cdef long long COMPONENT_MASK, IDENT, LATEST, LOW24, LOW32, LOW56, NOT_ASCII, ONE, WORD_MESSAGE, WORD_PID, WORD_TAG, WORD_TID

cdef class LogScan(RowScan):
    cdef const long long[::1] words
    cdef readonly ArgColumns args
    cdef readonly PositionalColumns positional
    cdef PairMap components
    cdef bint with_printf, with_limits, in_entries
    cdef long long[::1] pending
    cdef long long pendings
    cdef long long last_ident, last_moniker, last_url
    # The record that is being decoded.
    cdef long long index, spot, end
    cdef int severity
    cdef bint control, odd, unpadded
    cdef long long pid, tid, file, line, verbosity, dropped, rolled_out, lost, moniker, url
    cdef long long message_at, message_bytes, messages, arguments, known
    cdef int given
    cdef long long tail
    cdef bint printing, printed
    # The argument that is being decoded.
    cdef long long here
    cdef int kind
    cdef long long name, name_bytes, value, value_at, value_bytes
    cdef int failed

    cdef long long step(self) except? -1 nogil

    @cython.final
    @cython.locals(
        start=cython.longlong, end=cython.longlong, word=cython.longlong, at=cython.longlong,
        first_arg=cython.longlong, first_tag=cython.longlong, first_positional=cython.longlong)
    cdef int record(self) except -1 nogil
    @cython.final
    cdef int clear(self) noexcept nogil
    @cython.final
    @cython.locals(bits=cython.longlong, severity=cython.int)
    cdef int header(self, long long word) except -1 nogil
    @cython.final
    @cython.locals(
        row=cython.longlong, given=cython.longlong,
        known=cython.longlong, severity=cython.int, line=cython.longlong)
    cdef int row(self, long long ns, long long tags) except -1 nogil
    @cython.final
    @cython.locals(dropped=cython.longlong, rolled_out=cython.longlong, lost=cython.longlong)
    cdef int rarities(self, long long row) except -1 nogil

    @cython.final
    @cython.locals(
        word=cython.longlong, kind=cython.int, size=cython.longlong, left=cython.longlong,
        shift=cython.int, inner=cython.longlong)
    cdef long long argument(self, long long at) except -1 nogil
    @cython.final
    @cython.locals(inner=cython.longlong, nbytes=cython.longlong)
    cdef long long read_name(self, long long at, long long ref) except -1 nogil
    @cython.final
    @cython.locals(first=cython.longlong)
    cdef long long name_code(self, long long start, long long nbytes) except -1 nogil
    @cython.final
    @cython.locals(code=cython.longlong)
    cdef long long text(self, long long start, long long nbytes) except -1 nogil
    @cython.final
    cdef int check_padding(self, long long end, long long nbytes) except -1 nogil
    @cython.final
    @cython.locals(kind=cython.int, size=cython.longlong)
    cdef long long read_value(self, long long word, long long at, long long inner) except -1 nogil
    @cython.final
    @cython.locals(nbytes=cython.longlong, inner=cython.longlong)
    cdef long long read_string(self, long long ref, long long start) except -1 nogil
    @cython.final
    @cython.locals(every=cython.longlong, at=cython.longlong, code=cython.int)
    cdef int check_message(self, long long start, long long end) except -1 nogil

    @cython.final
    @cython.locals(name=cython.longlong, attribution=cython.bint)
    cdef int meaning(self) except -1 nogil
    @cython.final
    cdef bint is_attribution(self) noexcept nogil
    @cython.final
    cdef int wanted_kind(self, long long name) noexcept nogil
    @cython.final
    @cython.locals(value=cython.longlong)
    cdef int well_known(self, long long name) except -1 nogil
    @cython.final
    @cython.locals(row=cython.longlong)
    cdef int key(self) except -1 nogil
    @cython.final
    cdef int positional_value(self) except -1 nogil
    @cython.final
    @cython.locals(row=cython.longlong)
    cdef int misplace(self) except -1 nogil
    @cython.final
    @cython.locals(at=cython.longlong)
    cdef int pend(self, long long code, long long offset, long long value) noexcept nogil
    @cython.final
    @cython.locals(number=cython.longlong, at=cython.longlong)
    cdef int report_pending(self) except -1 nogil

    @cython.final
    @cython.locals(
        moniker=cython.longlong, url=cython.longlong, row=cython.longlong, named=cython.longlong)
    cdef int manifest(self, long long word, long long first) except -1 nogil
    @cython.final
    @cython.locals(ident=cython.longlong)
    cdef int attribute(self, long long tag, long long suffix) except -1 nogil
    @cython.final
    @cython.locals(found=cython.longlong)
    cdef int look_up(self, long long ident) except -1 nogil
    @cython.final
    @cython.locals(word=cython.longlong, length=cython.longlong, url_at=cython.longlong)
    cdef int read_suffix(self, long long at) except -1 nogil
    @cython.final
    @cython.locals(row=cython.longlong, name=cython.int)
    cdef int read_tail(self) except -1 nogil
    @cython.final
    @cython.locals(
        count=cython.longlong, row=cython.longlong, total=cython.longlong, code=cython.longlong)
    cdef long long joined(self, long long first) except? -1 nogil
    @cython.final
    @cython.locals(start=cython.longlong, index=cython.longlong, word=cython.longlong)
    cdef long long spell(self, long long code, long long total) noexcept nogil
