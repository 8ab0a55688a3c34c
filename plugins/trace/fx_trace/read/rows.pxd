cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from fxframework.kernels.rows cimport Rows

@cython.final
cdef class EventRows(Rows):
    cdef public uint8_t[::1] kind
    cdef public int32_t[::1] thread, category, name
    cdef public int64_t[::1] offset, ticks
    # ``word``: end ticks, counter id or correlation id; an instant's scope.
    cdef public int64_t[::1] word


@cython.final
cdef class ArgRows(Rows):
    cdef public uint8_t[::1] table, type
    cdef public int32_t[::1] name
    cdef public int64_t[::1] parent, offset, value


@cython.final
cdef class SchedRows(Rows):
    cdef public uint8_t[::1] kind, state
    cdef public int32_t[::1] cpu, prev_priority, next_priority
    cdef public int64_t[::1] offset, ticks, prev, next


@cython.final
cdef class LogRows(Rows):
    cdef public int32_t[::1] thread
    cdef public int64_t[::1] offset, ticks, start, length


@cython.final
cdef class BlobRows(Rows):
    cdef public uint8_t[::1] type
    cdef public int32_t[::1] name
    cdef public int64_t[::1] offset, start, length


@cython.final
cdef class ObjectRows(Rows):
    cdef public uint8_t[::1] kind, type
    cdef public int32_t[::1] name
    cdef public int64_t[::1] offset, value, pid


@cython.final
cdef class ProfilerRows(Rows):
    cdef public uint8_t[::1] kind
    cdef public int32_t[::1] thread, module, name, build_id, flags
    cdef public int64_t[::1] offset, ticks, pid, address, size, vaddr, start, length


@cython.final
cdef class CounterRows(Rows):
    cdef public int64_t[::1] event, arg


@cython.final
cdef class NoteRows(Rows):
    cdef public int64_t[::1] arg, name


@cython.final
cdef class ThreadRows(Rows):
    cdef public int64_t[::1] pid, tid, offset, gone


@cython.final
cdef class ProviderRows(Rows):
    cdef public int64_t[::1] number, name, epoch, clock, hertz, base, wall, introduced, rate, full
    cdef public int64_t[::1] offset


@cython.final
cdef class ClockRows(Rows):
    cdef public int64_t[::1] rate, base, wall


@cython.final
cdef class SegmentRows(Rows):
    cdef public int64_t[::1] clock, events, sched, logs, profiler
