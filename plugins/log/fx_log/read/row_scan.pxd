cimport cython
from fx_log.read.columns cimport LogColumns, RareColumns, TagColumns, Totals
from fx_log.read.framing cimport Framer
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.notes cimport Notes
from fxframework.kernels.pools cimport Pool
from fxframework.kernels.utf8 cimport Utf8

cdef long long LATEST

cdef class RowScan(Kernel):
    cdef Framer framer
    cdef Utf8 utf8
    cdef readonly Pool pool
    cdef Notes notes
    cdef Totals totals
    cdef readonly LogColumns logs
    cdef readonly RareColumns rare
    cdef readonly TagColumns tags
    cdef public long long until, most
    cdef readonly bint done
    cdef bint era_2022
    cdef long long[::1] scratch
    cdef unsigned char[::1] letters

    @cython.final
    cdef int rarity(self, long long row, int column, long long value) except -1 nogil
    @cython.final
    cdef int tag_row(self, long long name, long long offset) except -1 nogil
