cimport cython
from fx_trace.read.record_bounds cimport RecordBounds
from fx_trace.write.registrations cimport Registrations
from fxframework.kernels.kernel cimport Kernel

cdef int ARG_NAME_AT, ARG_STRING, ARG_VALUE_AT, METADATA_KIND_AT, PROVIDER_ID_AT, PROVIDER_INFO
cdef int PROVIDER_NAME_LENGTH_AT, PROVIDER_SECTION, RECORD_METADATA, RECORD_STRING, RECORD_THREAD
cdef int SIZE_AT, STRING_INDEX_AT, STRING_LENGTH_AT, THREAD_INDEX_AT
cdef int FIELD_WIDTH, FORM_WIDTH, FORM_WORDS, KOIDS, NARGS_AT, STRING, TAIL
cdef long long INLINE, LOW32


cdef class SoundRecords(Kernel):
    cdef const long long[::1] words
    cdef RecordBounds records
    cdef readonly Registrations registrations
    cdef public long long max_record, pos, count
    cdef long long total


    @cython.locals(word=cython.longlong, kind=cython.longlong, size=cython.longlong, form=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(kind=cython.longlong, form=cython.longlong)
    cdef long long form_of(self, long long at, long long end) noexcept nogil
    @cython.final
    @cython.locals(
        word=cython.longlong, row=cython.longlong, end=cython.longlong, field=cython.longlong,
        kind=cython.longlong, value=cython.longlong, count=cython.longlong,
    )
    cdef bint is_resolved(self, long long at, long long form) noexcept nogil
    @cython.final
    cdef bint has_string(self, long long ref) noexcept nogil
    @cython.final
    @cython.locals(
        word=cython.longlong, kind=cython.longlong, end=cython.longlong, index=cython.longlong,
        words=cython.longlong,
    )
    cdef int enter(self, long long at) except -1 nogil
