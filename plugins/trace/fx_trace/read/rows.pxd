cimport cython

from fxframework.kernels.rows cimport Rows


@cython.final
cdef class EventRows(Rows):
    cdef public unsigned char[::1] kind
    cdef public int[::1] thread, category, name
    cdef public long long[::1] offset, ticks, word


@cython.final
cdef class ArgRows(Rows):
    cdef public unsigned char[::1] table, type
    cdef public int[::1] name
    cdef public long long[::1] parent, offset, value


@cython.final
cdef class SchedRows(Rows):
    cdef public unsigned char[::1] kind, state
    cdef public int[::1] cpu, prev_priority, next_priority
    cdef public long long[::1] offset, ticks, prev, next


@cython.final
cdef class LogRows(Rows):
    cdef public int[::1] thread
    cdef public long long[::1] offset, ticks, start, length


@cython.final
cdef class BlobRows(Rows):
    cdef public unsigned char[::1] type
    cdef public int[::1] name
    cdef public long long[::1] offset, start, length


@cython.final
cdef class ObjectRows(Rows):
    cdef public unsigned char[::1] kind, type
    cdef public int[::1] name
    cdef public long long[::1] offset, value, pid


@cython.final
cdef class ProfilerRows(Rows):
    cdef public unsigned char[::1] kind
    cdef public int[::1] thread, module, name, build_id, flags
    cdef public long long[::1] offset, ticks, pid, address, size, vaddr, start, length


@cython.final
cdef class CounterRows(Rows):
    cdef public long long[::1] event, arg


@cython.final
cdef class NoteRows(Rows):
    cdef public long long[::1] arg, name


@cython.final
cdef class ThreadRows(Rows):
    cdef public long long[::1] pid, tid, offset, gone


@cython.final
cdef class ProviderRows(Rows):
    cdef public long long[::1] number, name, epoch, clock, hertz, base, wall, introduced, rate, full, offset


@cython.final
cdef class ClockRows(Rows):
    cdef public long long[::1] rate, base, wall


@cython.final
cdef class SegmentRows(Rows):
    cdef public long long[::1] clock, events, sched, logs, profiler


@cython.final
cdef class LinkRows(Rows):
    cdef public long long[::1] owner, needed


@cython.final
cdef class LargeRows(Rows):
    cdef public long long[::1] word, start, nbytes
