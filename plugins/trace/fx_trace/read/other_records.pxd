cimport cython
from libc.stdint cimport int64_t

from fx_trace.read.fields cimport FieldReader

cdef class OtherRecords(FieldReader):
    @cython.final
    cdef int metadata(self, int64_t word) except -1 nogil
    @cython.final
    cdef int provider_event(self, int64_t number, int64_t event) except -1 nogil
    @cython.final
    cdef int initialization(self, int64_t word) except -1 nogil
    @cython.final
    cdef int string_record(self, int64_t word) except -1 nogil
    @cython.final
    cdef int thread_record(self, int64_t word) except -1 nogil
    @cython.final
    cdef int scheduling(self, int64_t word) except -1 nogil
    @cython.final
    cdef int64_t legacy_switch(self, int64_t word) except? -9 nogil
    @cython.final
    cdef int64_t switch(self, int64_t word, int64_t kind) except? -9 nogil
    @cython.final
    cdef int state(self, int64_t row, int64_t state, int64_t may_run) except -1 nogil
    @cython.final
    cdef int log(self, int64_t word) except -1 nogil
    @cython.final
    cdef int blob(self, int64_t word) except -1 nogil
    @cython.final
    cdef int add_blob(self, int64_t kind, int64_t name, int64_t start,
                      int64_t length) except -1 nogil
    @cython.final
    cdef int userspace_object(self, int64_t word) except -1 nogil
    @cython.final
    cdef int kernel_object(self, int64_t word) except -1 nogil
    @cython.final
    cdef int add_object(self, int64_t kind, int64_t type, int64_t pid, int64_t name) except -1 nogil
    @cython.final
    cdef int profiler_record(self, int64_t word) except -1 nogil
    @cython.final
    cdef int profiler_row(self, int64_t row, int64_t kind, int64_t word, int64_t at) except -1 nogil
    @cython.final
    cdef int large(self, int64_t word) except -1 nogil
