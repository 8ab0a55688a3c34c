# cython: boundscheck=True, wraparound=False, show_performance_hints=False
"""Nesting: which end closes which slice, what encloses a slice, how deep it is; and the inverse.

Slices of a thread nest: an end closes the innermost open slice of its name, and with it those
inside of that one. Slices whose end is known when they begin close by themselves.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from fxframework.kernels.pools cimport PairMap

import numpy as np

from fxframework.kernels.buffers import grown

BEGIN, END, OTHER, SPAN = range(4)
ANY_NAME = 0xFFFFFFFF

cdef enum:
    BEGINS, ENDS, OTHERS, SPANS
    # Columns of ``Nesting.unwound``, followed by the slice's values.
    EVENT = 0
    ROW, NAME, FIRST_VALUE
    # Columns of ``Nesting.thread``: the innermost open slice, how many are open, how many of those
    # need an end, and how many of those have the name ANY_NAME; the one at the depth DEEP.
    TOP = 0
    DEPTH, UNENDED, UNNAMED, SHALLOW, THREAD_NUMBERS
    # Columns of the nodes of ``Stacks``, behind BELOW: of slices on lanes, and of threads.
    BELOW = 0
    LANE_END, LANE_DEPTH, LANE_NODE
    THREAD = 1
    SLICE_ROW, UNTIL, SLICE_NODE
    # Columns of ``Lanes.lane``.
    LANE_TRACK = 0
    LEVEL, NEXT_LANE, LANE_NUMBERS
    # Slices this deep are counted by name, so that it is known without going down the stack whether
    # one of a name is open.
    DEEP = 64
    FEW = 4096          # slices that ended with others, for which the room is kept between batches
    MOST_LANES = 32     # of a track; it has more where slices cross in many ways

NEVER_ENDS = 0x7FFFFFFFFFFFFFFF
cdef int64_t LATEST = NEVER_ENDS
cdef int64_t EARLIEST = -LATEST - 1
cdef int64_t ANY = ANY_NAME


@cython.final
cdef class Nesting:
    """The open slices of each thread, from one batch of events to the next.

    After ``nest`` there are, of each event, int64 of shape (events,): ``parents`` (the row of the
    slice around it; -1: none), ``depths`` (how many are around it) and ``closes`` (the row of the
    slice that an end closes, else -1); and int64 ``values`` of shape (events, values), those that
    the slice which an end closes had when it began, else 0. ``unwound``, int64 of shape (slices,
    3 + values), has the slices that an end closes beside its own, the innermost first: the event,
    and row, name and values of the slice.

    A slice's row is its number among all slices, or what ``nest`` is given.

    If ``any_name``, an end of the name ANY_NAME closes the innermost slice of whatever name, and a
    slice of that name is closed by any end.
    """

    # Bounds of nodes and threads are not checked where slices are opened and closed: nodes are
    # numbered here, within the room that was made, and threads are checked by ``nest``.
    #
    # Open slices by node; ``node_below`` is the one below it on its thread, or of a free node the
    # next one that is free. Of slices that never end there may be millions, so columns are empty as
    # long as they would tell nothing: ``node_row`` while each row is the number of its node,
    # ``node_until`` while all slices need an end.
    cdef int64_t[::1] node_row, node_until
    cdef uint32_t[::1] node_name
    cdef int32_t[::1] node_below
    cdef int64_t[:, ::1] node_values
    cdef int64_t[:, ::1] inner
    cdef int32_t[:, ::1] thread
    cdef PairMap deep       # how many deep open slices need an end, by thread and name
    cdef int64_t free, used, inner_count, width
    cdef bint any_name
    cdef readonly int64_t threads, rows
    cdef readonly object parents, depths, closes, values

    def __init__(self, int64_t threads, *, int64_t values=0, bint any_name=False):
        # Most threads have a slice that is open: these need not be moved again and again.
        cdef int64_t room = max(64, threads)
        self.width = values
        self.node_row = self.node_until = np.empty(0, np.int64)
        self.node_name = np.empty(room, np.uint32)
        self.node_below = np.empty(room, np.int32)
        self.node_values = np.empty((room, values), np.int64)
        self.inner = np.empty((64, FIRST_VALUE + values), np.int64)
        self.thread = np.empty((0, THREAD_NUMBERS), np.int32)
        self.deep = PairMap()
        self.free = -1
        self.used = self.inner_count = self.rows = self.threads = 0
        self.any_name = any_name
        self.make_threads(threads)

    @property
    def unwound(self):
        """Slices that ended with one around them, of the last batch."""
        return np.asarray(self.inner)[: self.inner_count]

    def make_threads(self, int64_t threads):
        """Have at least so many threads from now on."""
        cdef int64_t known = self.thread.shape[0], size = max(threads, 2 * known)
        if threads > known:
            # Twice as many, so that threads which come one by one are not moved each time.
            thread = np.zeros((size, THREAD_NUMBERS), np.int32)
            thread[:, (TOP, SHALLOW)] = -1
            thread[:known] = self.thread
            self.thread = thread
        self.threads = max(self.threads, threads)

    def open_values(self):
        """Return the values of all slices that are open, int64 of shape (slices, values)."""
        cdef int64_t count = 0, thread, node
        nodes = np.empty(np.sum(self.thread[:, DEPTH]), np.int64)
        cdef int64_t[::1] node_of = nodes
        for thread in range(self.threads):
            node = self.thread[thread, TOP]
            while node >= 0:
                node_of[count] = node
                count += 1
                node = self.node_below[node]
        return np.asarray(self.node_values)[nodes]

    @cython.boundscheck(False)  # of events, as all columns have one length, which is checked
    def nest(self, const uint8_t[::1] what, const int32_t[::1] threads,
             const uint32_t[::1] names, values=None, times=None, ends=None, rows=None):
        """Nest a batch of events, those of each thread in their order.

        ``what`` is BEGIN, END, SPAN (a slice whose end is known) or OTHER. ``values``, int64 of
        shape (events, values), are kept until a slice is closed. ``times`` and ``ends`` (of SPANs)
        are needed where there are SPANs; ``rows`` are those of slices.
        All others have the shape (events,), and are int64 but for the first three.

        A SPAN closes before the first slice that begins when it ends or later, and before the first
        other event that is later. One that ends before it begins encloses nothing.
        """
        cdef int64_t count = what.shape[0], event
        empty = np.empty(0, np.int64)
        if values is None:
            values = np.empty((count, self.width), np.int64)
        cdef const int64_t[:, ::1] value = values
        cdef const int64_t[::1] time = empty if times is None else times
        cdef const int64_t[::1] until = empty if ends is None else ends
        cdef const int64_t[::1] row = empty if rows is None else rows
        columns = (threads, names, values, times, ends, rows)
        if {len(column) for column in columns if column is not None} != {count}:
            raise ValueError("columns of events of different lengths")
        if value.shape[1] != self.width:
            raise ValueError(f"{value.shape[1]} values of each slice, not {self.width}")
        if ends is not None and times is None:
            raise ValueError("no times")
        if count and not 0 <= np.min(threads) <= np.max(threads) < self.threads:
            raise IndexError(f"threads up to {np.max(threads)} of {self.threads}")
        if ends is None and (np.asarray(what) == SPAN).any():
            raise ValueError("spans without ends")
        if ends is not None and not self.node_until.shape[0]:
            self.node_until = np.full(self.node_below.shape[0], LATEST, np.int64)
        self.parents, self.depths, self.closes = np.empty((3, count), np.int64)
        self.values = np.zeros((count, self.width), np.int64)
        cdef int64_t[::1] parent = self.parents, depth = self.depths, closed = self.closes
        cdef int64_t[:, ::1] closed_value = self.values
        cdef bint has_ends = self.node_until.shape[0] > 0, has_rows = row.shape[0] > 0
        cdef int64_t kind, node, end, now = 0, slice_row, number
        self.inner_count = 0
        cdef int32_t* thread
        with nogil:
            for event in range(count):
                kind = what[event]
                thread = &self.thread[threads[event], 0]
                node = thread[TOP]
                if has_ends and kind != ENDS:
                    now = time[event]
                    while node >= 0 and (self.node_until[node] < now or (
                            self.node_until[node] == now and kind != OTHERS and now != LATEST)):
                        thread[TOP] = self.node_below[node]
                        thread[DEPTH] -= 1
                        self.node_below[node] = <int32_t>self.free
                        self.free = node
                        node = thread[TOP]
                closed[event] = -1
                if kind == ENDS:
                    node = self.close(event, threads[event], names[event])
                    if node >= 0:
                        closed[event] = self.row_of(node)
                        for number in range(self.width):
                            closed_value[event, number] = self.node_values[node, number]
                    node = thread[TOP]
                parent[event] = self.row_of(node) if node >= 0 else -1
                depth[event] = thread[DEPTH]
                if kind != BEGINS and kind != SPANS:
                    continue
                slice_row = row[event] if has_rows else self.rows
                end = until[event] if kind == SPANS else LATEST
                self.rows += 1
                if kind == SPANS and end < time[event]:
                    continue
                node = self.push(thread, threads[event], names[event], end)
                if self.node_row.shape[0] == 0 and node != slice_row:
                    with gil:  # up to here, rows are the numbers of nodes
                        self.node_row = np.arange(self.node_below.shape[0])
                if self.node_row.shape[0]:
                    self.node_row[node] = slice_row
                for number in range(self.width):
                    self.node_values[node, number] = value[event, number]

    def release(self):
        """Forget what the last batch made, which has as many numbers as it has events."""
        self.parents = self.depths = self.closes = self.values = None
        self.inner_count = 0
        if self.inner.shape[0] > FEW:
            self.inner = np.empty((64, FIRST_VALUE + self.width), np.int64)

    @cython.boundscheck(False)
    cdef inline int64_t row_of(self, int64_t node) noexcept nogil:
        """Return the row of an open slice."""
        return self.node_row[node] if self.node_row.shape[0] else node

    @cython.boundscheck(False)
    cdef inline bint has_end(self, int64_t node) noexcept nogil:
        """Return whether it was known when a slice began when it ends."""
        return self.node_until.shape[0] > 0 and self.node_until[node] != LATEST

    @cython.boundscheck(False)
    cdef inline int64_t push(
        self, int32_t* numbers, int64_t thread, int64_t name, int64_t end) except -1 nogil:
        """Open a slice; return its node. It needs an end event if its end is LATEST."""
        cdef int64_t node = self.free
        if node >= 0:
            self.free = self.node_below[node]
        else:
            node = self.used
            self.used += 1
            if node == self.node_below.shape[0]:
                self.make_room()
        self.node_name[node] = <uint32_t>name
        self.node_below[node] = numbers[TOP]
        if self.node_until.shape[0]:
            self.node_until[node] = end
        if numbers[DEPTH] == DEEP:
            numbers[SHALLOW] = numbers[TOP]
        if end == LATEST:
            numbers[UNENDED] += 1
            self.count_name(thread, numbers[DEPTH], name, 1)
        numbers[TOP] = <int32_t>node
        numbers[DEPTH] += 1
        return node

    cdef int count_name(self, int64_t thread, int64_t depth, int64_t name,
                        int64_t change) except -1 nogil:
        """Count a name among those of the open slices that need an end, where that is needed."""
        if self.any_name and name == ANY:
            self.thread[thread, UNNAMED] += <int32_t>change
        elif depth >= DEEP:
            self.deep.put(thread, name, max(self.deep.get(thread, name), 0) + change)
        return 0

    cdef int make_room(self) except -1 with gil:
        """Make room for more nodes; what is not used of it takes no memory."""
        if self.used > 1 << 30:
            raise MemoryError("more open slices than can be numbered")
        self.node_row = with_room(self.node_row, self.used)
        self.node_until = with_room(self.node_until, self.used)
        self.node_name = with_room(self.node_name, self.used)
        self.node_below = with_room(self.node_below, self.used)
        self.node_values = with_room(self.node_values, self.used)
        return 0

    @cython.boundscheck(False)
    cdef inline int64_t pop(self, int64_t thread) except -1 nogil:
        """Close the innermost slice of a thread; return its node, which stays until ``push``."""
        cdef int64_t node = self.thread[thread, TOP], depth = self.thread[thread, DEPTH] - 1
        self.thread[thread, TOP] = self.node_below[node]
        self.thread[thread, DEPTH] = <int32_t>depth
        if not self.has_end(node):
            self.thread[thread, UNENDED] -= 1
            self.count_name(thread, depth, self.node_name[node], -1)
        self.node_below[node] = <int32_t>self.free
        self.free = node
        return node

    @cython.boundscheck(False)
    cdef int64_t find(self, int64_t thread, int64_t name) except -2 nogil:
        """Return the innermost open slice that an end of a name closes; -1 if there is none.

        It does not go down many slices in vain: an end that closes none may come again and again.
        """
        cdef int64_t node = self.thread[thread, TOP]
        cdef bint closes_any = self.any_name and name == ANY
        if not self.thread[thread, UNENDED]:
            return -1
        if self.thread[thread, DEPTH] > DEEP and not closes_any and not self.thread[thread, UNNAMED]:
            if self.deep.get(thread, name) <= 0:
                node = self.thread[thread, SHALLOW]
        while node >= 0:
            if not self.has_end(node):
                if closes_any or self.node_name[node] == name:
                    return node
                if self.any_name and self.node_name[node] == ANY:
                    return node
            node = self.node_below[node]
        return -1

    cdef int64_t close(self, int64_t event, int64_t thread, int64_t name) except -2 nogil:
        """Close the slice that an end closes, and those inside; return its node, -1 for none."""
        cdef int64_t wanted = self.find(thread, name), node, number, inside = 0
        if wanted < 0:
            return -1
        node = self.thread[thread, TOP]
        while node != wanted:
            inside += 1
            node = self.node_below[node]
        if self.inner_count + inside > self.inner.shape[0]:
            with gil:  # millions may end with another one
                self.inner = with_room(self.inner, self.inner_count + inside)
        while self.thread[thread, TOP] != wanted:
            node = self.pop(thread)
            if self.has_end(node):  # it has that end, which the caller knows
                continue
            self.inner[self.inner_count, EVENT] = event
            self.inner[self.inner_count, ROW] = self.row_of(node)
            self.inner[self.inner_count, NAME] = self.node_name[node]
            for number in range(self.width):
                self.inner[self.inner_count, FIRST_VALUE + number] = self.node_values[node, number]
            self.inner_count += 1
        return self.pop(thread)


cdef object with_room(array, int64_t rows):
    """Return an array with at least so many rows, and twice as many as before if it is copied.

    An array without rows, which is not needed, stays so. What is not used takes no memory.
    """
    before = np.asarray(array)
    if rows <= len(before) or not len(before):
        return before
    rows = max(rows, 2 * len(before))
    after = grown(before.reshape(-1), before.size // len(before) * rows, before.size)
    return np.asarray(after).reshape(rows, *before.shape[1:])


def unfolded(const int64_t[::1] order, const int32_t[::1] threads, const int64_t[::1] around,
             int64_t count, times=None, lengths=None):
    """Return begins and ends of the slices of ``count`` threads, and how many ends were cut.

    ``order`` has the rows by time, what encloses others first; the rest is by row. ``around`` are
    the depths of slices; a length of -1 is that of a slice without an end. The result is rows (of
    an end ``~row``) and times, int64 of shape (begins and ends,), those of each thread in order: an
    end is cut that lies behind the one of the slice around it, or behind the begin of the next
    slice that is not in it.

    Without ``times`` there are none in the result, ``around`` are the rows of the slices around,
    and a slice ends before the next one that is not in it.
    """
    cdef int64_t slices = order.shape[0], used = 0, cut = 0, place, row, thread, node, begin, end
    cdef int64_t until
    cdef bint timed = times is not None
    empty = np.empty(0, np.int64)
    cdef const int64_t[::1] time = times if timed else empty, length = lengths if timed else empty
    if not (threads.shape[0] == around.shape[0] == slices
            and time.shape[0] == length.shape[0] == (slices if timed else 0)):
        raise ValueError("columns of slices of different lengths")
    if slices and not (0 <= np.min(order) and np.max(order) < slices
                       and 0 <= np.min(threads) and np.max(threads) < count):
        raise IndexError("rows or threads that there are not")
    rows, moments = np.empty(2 * slices, np.int64), np.empty(2 * slices if timed else 0, np.int64)
    cdef int64_t[::1] row_of = rows, time_of = moments
    cdef int64_t[::1] top = np.full(count, -1, np.int64), below = np.empty(slices, np.int64)
    cdef int64_t[::1] latest = np.full(count, EARLIEST, np.int64)
    cdef int64_t[::1] ends = np.empty(slices if timed else 0, np.int64)
    for place in range(slices + count):
        row = order[place] if place < slices else -1
        # Behind the last slice those that are open end.
        thread = threads[row] if row >= 0 else place - slices
        begin = max(time[row], latest[thread]) if timed and row >= 0 else LATEST
        node = top[thread]
        while node >= 0 and (
                row < 0 or (around[node] >= around[row] if timed else around[row] != node)):
            if timed and length[node] >= 0:
                if ends[node] > begin:
                    ends[node] = begin
                    cut += 1
                # One that encloses slices which begin behind its end lasts as long as they do.
                latest[thread] = max(latest[thread], ends[node])
                time_of[used] = latest[thread]
            if not timed or length[node] >= 0:
                row_of[used] = ~node
                used += 1
            node = below[node]
        if row < 0:
            continue
        below[row], top[thread], row_of[used] = node, row, row
        if timed:
            end = ends[node] if node >= 0 else LATEST
            if length[row] >= 0:
                until = time[row]
                until = LATEST if until > 0 and length[row] > LATEST - until else until + length[row]
                until = max(until, begin)
                cut += until > end
                end = min(until, end)
            ends[row], latest[thread], time_of[used] = end, begin, begin
        used += 1
    return rows[:used], moments[:used], cut


cdef class Stacks:
    """Stacks of open slices: of each, a node that has what is kept of it.

    ``node`` has the node below in its first column, BELOW; nodes of slices that ended are used
    again once they are free.
    """

    cdef int64_t[::1] top
    cdef int64_t[:, ::1] node
    cdef int64_t used, free
    cdef readonly int64_t open_count

    def __init__(self, int64_t stacks, int64_t width):
        self.top = np.full(stacks, -1, np.int64)
        self.node = np.empty((1, width), np.int64)
        self.used = self.open_count = 0
        self.free = -1

    cdef inline int64_t push(self, int64_t stack) except -1:
        """Open a slice on a stack; return its node, for which there has to be room."""
        cdef int64_t node = self.free
        if node >= 0:
            self.free = self.node[node, BELOW]
        else:
            node = self.used
            self.used += 1
        self.node[node, BELOW] = self.top[stack]
        self.top[stack] = node
        self.open_count += 1
        return node

    cdef inline int64_t pop(self, int64_t stack) except -1:
        """Close the innermost slice of a stack; return its node, which is not free yet."""
        cdef int64_t node = self.top[stack]
        self.top[stack] = self.node[node, BELOW]
        self.open_count -= 1
        return node

    cdef int set_free(self, int64_t node) except -1:
        """Let a node be used again."""
        self.node[node, BELOW] = self.free
        self.free = node
        return 0


cdef class Lanes(Stacks):
    """Slices that share tracks, each on the first lane of its track where it nests.

    A track has at most ``MOST_LANES`` lanes; if a slice nests on none, it is cut to fit on the
    first. The level of a lane is how many its track had before. ``open_count`` and ``cut`` count
    the slices that have not ended yet, and those that were cut.
    """

    cdef int64_t[::1] first_lane    # of each track; -1: none yet
    cdef int64_t[:, ::1] lane       # LANE_TRACK, LEVEL, NEXT_LANE
    cdef int64_t[:, ::1] event      # slices, times and lanes of begins and ends
    cdef int64_t count
    cdef readonly int64_t lane_count, cut

    def __init__(self):
        Stacks.__init__(self, 1, LANE_NODE)
        self.first_lane = np.full(1, -1, np.int64)
        self.lane = np.empty((1, LANE_NUMBERS), np.int64)
        self.lane_count = self.cut = 0

    def places_from(self, int64_t first):
        """Return track and level of the lanes from one on, int64 of shape (2, lanes)."""
        return np.asarray(self.lane)[first : self.lane_count, :NEXT_LANE].T

    def nest(self, const int64_t[::1] track, const int64_t[::1] start, const int64_t[::1] end,
             const int64_t[::1] depth):
        """Return the begins of slices, sorted by time, and the ends before them on their lanes.

        Of slices that begin together on a track the outer one comes first. An ``end`` of
        NEVER_ENDS gets no event. The result is slices (-1: an end), times and lanes, int64 of shape
        (events,); those of a lane are in order.
        """
        cdef int64_t count = track.shape[0], slice, lane, last, level
        self.make_room(count, np.max(track, initial=-1) + 1)
        for slice in range(count):
            lane, last, level = self.first_lane[track[slice]], -1, 0
            while lane >= 0:
                self.close_before(lane, start[slice], end[slice], depth[slice])
                if self.top[lane] < 0 or self.node[self.top[lane], LANE_END] >= end[slice]:
                    break
                last, lane = lane, self.lane[lane, NEXT_LANE]
                level += 1
            if lane < 0 and level < MOST_LANES:
                lane = self.add_lane(track[slice], level, last)
            if lane >= 0:
                self.open(lane, end[slice], depth[slice])
            else:
                lane = self.first_lane[track[slice]]
                self.open(lane, self.node[self.top[lane], LANE_END], depth[slice])
                self.cut += 1
            self.note(slice, start[slice], lane)
        return self.events()

    def ends_before(self, int64_t limit):
        """Return the ends before a time as ``nest`` does, if no later slice begins before it."""
        cdef int64_t lane
        self.make_room(0, 0)
        for lane in range(self.lane_count):
            while self.top[lane] >= 0 and self.node[self.top[lane], LANE_END] < limit:
                self.close(lane)
        return self.events()

    cdef int make_room(self, int64_t slices, int64_t tracks) except -1:
        """Make room for slices, each of which may need a lane, and for their begins and ends."""
        cdef int64_t known = self.first_lane.shape[0]
        self.first_lane = with_room(self.first_lane, tracks)
        self.first_lane[known:] = -1
        self.lane = with_room(self.lane, self.lane_count + slices)
        self.top = with_room(self.top, self.lane_count + slices)
        self.node = with_room(self.node, self.used + slices)
        self.event = np.empty((3, 2 * slices + self.open_count), np.int64)
        self.count = 0
        return 0

    cdef object events(self):
        """Return what was noted since ``make_room``."""
        found = tuple(np.asarray(self.event)[:, : self.count])
        self.event = np.empty((3, 0), np.int64)
        return found

    cdef int note(self, int64_t slice, int64_t time, int64_t lane) except -1:
        """Note a begin or an end."""
        self.event[0, self.count], self.event[1, self.count] = slice, time
        self.event[2, self.count] = lane
        self.count += 1
        return 0

    cdef int64_t add_lane(self, int64_t track, int64_t level, int64_t last) except -1:
        """Add a lane to a track, behind its ``last`` one, -1 for none; return it."""
        cdef int64_t lane = self.lane_count
        self.lane_count += 1
        self.lane[lane, LANE_TRACK], self.lane[lane, LEVEL] = track, level
        self.lane[lane, NEXT_LANE] = self.top[lane] = -1
        if last >= 0:
            self.lane[last, NEXT_LANE] = lane
        else:
            self.first_lane[track] = lane
        return lane

    cdef int open(self, int64_t lane, int64_t end, int64_t depth) except -1:
        """Put a slice on top of a lane."""
        cdef int64_t node
        # Slices around one that never ends do not end either, so one of them is enough.
        if end != LATEST or self.top[lane] < 0:
            node = self.push(lane)
            self.node[node, LANE_END], self.node[node, LANE_DEPTH] = end, depth
        return 0

    cdef int close_before(self, int64_t lane, int64_t start, int64_t end, int64_t depth) except -1:
        """End the slices of a lane that are over when another one begins."""
        cdef int64_t over
        while self.top[lane] >= 0:
            over = self.node[self.top[lane], LANE_END]
            if over > start:
                break
            # One without a length may be the innermost of a slice that ends where it begins.
            if over == start and self.node[self.top[lane], LANE_DEPTH] < depth and end <= over:
                break
            self.close(lane)
        return 0

    cdef int close(self, int64_t lane) except -1:
        """End the innermost slice of a lane."""
        self.note(-1, self.node[self.top[lane], LANE_END], lane)
        self.set_free(self.pop(lane))
        return 0


cdef class OpenSlices(Stacks):
    """The open slices of each thread, where events say which slice they are in.

    An open slice has a number, which another one may get once it has ended.
    """

    # Where the node of a slice is, by thread and row. Those that ended are in it, too, until there
    # are as many as open ones: the row of a node says whether it is still theirs.
    cdef PairMap index
    cdef int64_t[::1] order
    cdef int64_t count

    def __init__(self, int64_t threads):
        Stacks.__init__(self, threads, SLICE_NODE)
        self.index = PairMap()
        self.order = np.empty(0, np.int64)
        self.count = 0

    def settle(self, const int64_t[::1] what, const int64_t[::1] thread,
               const int64_t[::1] parent, const int64_t[::1] row, const int64_t[::1] until,
               const int64_t[::1] times):
        """Return events in order, and before each the slices that end there; and the new numbers.

        ``what`` is BEGIN, OTHER, or END for an event of no thread. A slice has its row, that of the
        slice around it, and when it ends. Other events have the row of the slice that they are in,
        or -1: then slices end that ended before its time. The result is the index of each event, and
        ``~number`` of each slice that ends; and the numbers of the slices that begin, both int64. A
        slice with the least ``until`` ends with the one around it.
        """
        cdef int64_t count = what.shape[0], event, around, top, end
        cdef int64_t begun = np.count_nonzero(np.asarray(what) == BEGINS)
        self.make_room(begun)
        self.order, self.count = np.empty(count + self.open_count + begun, np.int64), 0
        numbers = np.empty(begun, np.int64)
        cdef int64_t[::1] number = numbers
        begun = 0
        for event in range(count):
            if what[event] == BEGINS:
                top = self.top[thread[event]]
                while top >= 0 and self.node[top, SLICE_ROW] != parent[event]:
                    top = self.end(top)
                top = number[begun] = self.push(thread[event])
                self.node[top, THREAD], self.node[top, SLICE_ROW] = thread[event], row[event]
                self.node[top, UNTIL] = until[event]
                self.index.put(thread[event], row[event], top)
                begun += 1
            elif what[event] == OTHERS:
                around = self.find(thread[event], row[event])
                top = self.top[thread[event]]
                while top >= 0 and top != around:
                    end = self.node[top, UNTIL]
                    if around < 0 and (end == EARLIEST or end > times[event]):
                        break
                    top = self.end(top)
            self.order[self.count] = event
            self.count += 1
        return np.asarray(self.order)[: self.count], numbers

    def rest(self):
        """Return the numbers of all open slices, the inner ones first; those of thread 0 last."""
        cdef int64_t place, top, threads = self.top.shape[0], count = 0
        out = np.empty(self.open_count, np.int64)
        cdef int64_t[::1] numbers = out
        for place in range(1, threads + 1):
            top = self.top[place % threads]
            while top >= 0:
                numbers[count] = top
                count += 1
                top = self.node[top, BELOW]
        return out

    cdef int make_room(self, int64_t slices) except -1:
        """Make room for more slices."""
        cdef int64_t event, number
        # Numbers of slices that ended are free from here on: in between they are those of ends.
        for event in range(self.count):
            if self.order[event] < 0:
                self.set_free(~self.order[event])
        self.node = with_room(self.node, self.used + slices)
        if len(self.index) > 2 * self.open_count + FEW:
            self.index = PairMap(self.open_count)
            for number in self.rest():
                self.index.put(self.node[number, THREAD], self.node[number, SLICE_ROW], number)
        return 0

    cdef int64_t find(self, int64_t thread, int64_t row) except -2:
        """Return the open slice of a row on a thread; -1 if there is none."""
        cdef int64_t node = self.index.get(thread, row) if row >= 0 else -1
        if node >= 0 and self.node[node, THREAD] == thread and self.node[node, SLICE_ROW] == row:
            return node
        return -1

    cdef int64_t end(self, int64_t node) except -2:
        """End the innermost slice of its thread; return the one below it."""
        cdef int64_t thread = self.node[node, THREAD]
        self.pop(thread)
        self.node[node, SLICE_ROW] = -1
        self.order[self.count] = ~node
        self.count += 1
        return self.top[thread]
