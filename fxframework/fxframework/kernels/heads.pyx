# distutils: extra_compile_args = -O2
# cython: boundscheck=True, show_performance_hints=False
"""Heads: where records begin whose first byte tells their size, within limits that records set.

A limit is where the stretch at hand ends: the file, a buffer, a page. A record that bounds what
follows says how many bytes come behind it; within a stretch, it is the first one.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

import numpy as np

FULL, AT_LIMIT, ACROSS, ASKS, UNSOUND = range(5)

cdef enum:
    # Why ``read`` stopped: the numbers above.
    IS_FULL, IS_AT_LIMIT, IS_ACROSS, IS_ASKING, IS_UNSOUND

cdef enum:
    # Numbers of each byte in ``heads``.
    SIZE, CODE, COUNT_AT, BAD_AT, BAD_MASK, BAD_CODE, STOPS, RUNS, HEAD


cdef class Heads:
    """Finds records one after another; those of a kind that ``RUNS`` are one row together.

    ``heads`` (int64 of shape (256, 8)) says of each first byte: how many bytes a record has; the
    code of its kind; where its signed number of four bytes lies that counts more of them (0: none);
    in which byte which bits say that it is invalid, and the code that it has then; whether ``read``
    stops before it; whether records that follow each other are one row. ``bound`` is the first byte
    of records that bound what follows (-1: none), by a number of eight bytes at ``bound_at``.

    The rows of ``read`` and ``walk`` are ``places``, ``ends``, ``counts`` (int64; the records of
    each) and ``codes`` (uint8). A caller sets ``at``, ``limit`` (up to it records are read),
    ``reach`` (up to it those that are counted may end) and ``unsound``, how many invalid ones came
    before in a row.
    """

    cdef const uint8_t[::1] data
    cdef const int64_t[:, ::1] heads
    cdef int64_t[::1] place, end, count
    cdef int32_t[::1] stretch_of
    cdef uint8_t[::1] code
    cdef readonly object places, ends, counts, codes, stretches
    cdef public int64_t at, limit, reach, unsound, bound, bound_at
    cdef int64_t total
    cdef int big

    def __init__(self, data, heads, int64_t room, int big):
        self.data, self.heads, self.big = data, heads, big
        self.total = self.data.shape[0]
        if self.heads.shape[0] != 256 or self.heads.shape[1] != HEAD:
            raise ValueError("heads need a row for each byte")
        numbers = np.asarray(heads)
        if (numbers[:, SIZE] < numbers[:, BAD_AT] + 1).any() or (
                numbers[:, SIZE] < numbers[:, COUNT_AT] + 4).any():
            raise ValueError("a number lies outside of its record's head")
        self.places, self.ends, self.counts = np.empty((3, room), np.int64)
        self.codes, self.stretches = np.empty(room, np.uint8), np.empty(room, np.int32)
        self.place, self.end, self.count = self.places, self.ends, self.counts
        self.code, self.stretch_of = self.codes, self.stretches
        self.at = self.unsound = 0
        self.limit = self.reach = self.total
        self.bound = -1
        self.bound_at = 0

    cdef int64_t number(self, int64_t at, int64_t nbytes) noexcept nogil:
        """Return a signed number; the caller has compared its end with that of the data."""
        cdef uint64_t value = 0
        cdef int64_t index
        cdef const uint8_t* octets = &self.data[at]
        for index in range(nbytes):
            if self.big:
                value = value << 8 | octets[index]
            else:
                value |= <uint64_t>octets[index] << 8 * index
        if nbytes == 4:
            return <int32_t>value
        return <int64_t>value

    cpdef int64_t end_of_bound(self, int64_t at):
        """Return where the stretch ends that the record at a byte bounds; -1 if none does so."""
        cdef int64_t left, nbytes
        if at < 0 or at >= self.total or self.data[at] != self.bound:
            return -1
        left = self.total - at - self.heads[self.bound, SIZE]
        if left < 0:
            return -1
        nbytes = self.number(at + self.bound_at, 8)
        if nbytes < 0 or nbytes > left:
            return -1
        return self.total - left + nbytes

    cdef int64_t run_end(self, int64_t at, int64_t stop, int64_t byte, int64_t most) noexcept:
        """Return where records like the one at ``at`` end, of which ``most`` are wanted at most."""
        cdef int64_t size = self.heads[byte, SIZE], code = self.heads[byte, CODE], next
        # The next byte is nearly always that of such a record, too, and has its own check.
        stop = min(stop, at + most * size)
        next = at + size
        while next <= stop - size:
            byte = self.data[next]
            if self.heads[byte, CODE] != code or not self.heads[byte, RUNS]:
                break
            if self.data[next + self.heads[byte, BAD_AT]] & self.heads[byte, BAD_MASK]:
                break
            next += size
        return next

    def read(self, int64_t most, int64_t run):
        """Read up to ``most`` records; return rows, records, and why it stopped.

        That is: FULL, AT_LIMIT (no record follows that bounds the next stretch), ACROSS (a record
        would end behind the limit), ASKS (one whose end only the caller can tell) or UNSOUND
        (behind the ``run``-th invalid record in a row).
        """
        cdef int64_t rows = 0, records = 0, at = self.at, end, count, byte, code
        cdef int why = IS_FULL
        cdef int64_t room = self.place.shape[0]
        while records < most and rows < room:
            if at >= self.limit:
                end = self.end_of_bound(at)
                if end < 0:
                    why = IS_AT_LIMIT
                    break
                self.limit = self.reach = end
                byte = self.bound
                end = at + self.heads[byte, SIZE]
                self.unsound = 0
                count, code = 1, self.heads[byte, CODE]
            else:
                byte = self.data[at]
                end = at + self.heads[byte, SIZE]
                if end > self.limit:
                    why = IS_ACROSS
                    break
                if byte == self.bound or self.heads[byte, STOPS]:
                    why = IS_ASKING
                    break
                count, code = 1, self.heads[byte, CODE]
                if self.heads[byte, COUNT_AT]:
                    count = self.number(at + self.heads[byte, COUNT_AT], 4)
                    if count < 0 or count > self.limit - end or count > self.reach - end:
                        why = IS_ASKING
                        break
                    end += count
                    count = 1
                if self.data[at + self.heads[byte, BAD_AT]] & self.heads[byte, BAD_MASK]:
                    code = self.heads[byte, BAD_CODE]
                    self.unsound += 1
                else:
                    self.unsound = 0
                    if self.heads[byte, RUNS]:
                        end = self.run_end(at, self.limit, byte, most - records)
                        count = (end - at) // self.heads[byte, SIZE]
            self.place[rows], self.end[rows], self.count[rows] = at, end, count
            self.code[rows] = <uint8_t>code
            rows += 1
            records += count
            at = end
            if self.unsound >= run:
                why = IS_UNSOUND
                break
        self.at = at
        return rows, records, why

    def walk(self, const int64_t[::1] starts, const int64_t[::1] stops,
             const int64_t[::1] ends, int64_t[::1] ats, int64_t[::1] nexts,
             const int64_t[::1] lanes, int64_t most, int64_t total):
        """Read up to ``most`` records of each of some lanes; return how many rows these are.

        A lane is what reads stretches one after another, all of them sound: it goes on at a byte
        (``ats``) of a stretch (``nexts``), up to before its last stretch (``ends``); all are by
        lane. ``stretches`` (int32) has the stretch of each row; behind ``total`` records, or where
        the rows are full, the lanes that are left have none.
        """
        cdef int64_t rows = 0, records, at, stretch, end, stop, count, byte, lane, number
        cdef int64_t room = self.place.shape[0]
        if starts.shape[0] != stops.shape[0] or np.max(stops, initial=0) > self.total:
            raise ValueError("stretches outside of the data")
        if np.max(ends, initial=0) > starts.shape[0] or np.min(nexts, initial=0) < 0:
            raise ValueError("lanes outside of the stretches")
        for number in range(lanes.shape[0]):
            lane = lanes[number]
            at, stretch, records = ats[lane], nexts[lane], 0
            while records < most and rows < room and stretch < ends[lane]:
                stop = stops[stretch]
                at = max(at, starts[stretch])
                if at >= stop:
                    stretch += 1
                    at = 0
                    continue
                byte = self.data[at]
                end = at + self.heads[byte, SIZE]
                count = 1
                if end <= self.total and self.heads[byte, COUNT_AT]:
                    end += self.number(at + self.heads[byte, COUNT_AT], 4)
                if end <= at or end > self.total:
                    raise ValueError("a stretch is not sound")
                if self.heads[byte, RUNS]:
                    end = self.run_end(at, stop, byte, most - records)
                    count = (end - at) // self.heads[byte, SIZE]
                self.place[rows], self.end[rows], self.count[rows] = at, end, count
                self.code[rows] = <uint8_t>self.heads[byte, CODE]
                self.stretch_of[rows] = <int32_t>stretch
                rows += 1
                records += count
                at = end
                if at >= stop:
                    stretch += 1
                    at = 0
            ats[lane], nexts[lane] = at, stretch
            total -= records
            if rows == room or total <= 0:
                break
        return rows
