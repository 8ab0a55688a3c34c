# cython: boundscheck=True, wraparound=False, show_performance_hints=False
"""Nesting: which end closes which slice, what encloses a slice, how deep it is; and the inverse.

Slices of a thread nest: an end closes the innermost open slice of its name, and with it those
inside of that one.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from fxframework.kernels.pools cimport PairMap

import numpy as np

from fxframework.kernels.buffers import grown

BEGIN, END, OTHER = range(3)
NO_STACKS = -1

cdef enum:
    BEGINS, ENDS, OTHERS

cdef enum:
    # Columns of ``Nesting.unwound``.
    AT, ROW, NAME, TIME, PLACE, STACK, MARK, COLUMNS

cdef enum:
    # Slices this deep are counted by name, so that it is known without going down the stack whether
    # one of a name is open.
    DEEP = 64

cdef enum:
    # Slices that ended with others, for which the room is kept from batch to batch.
    FEW = 4096

cdef enum:
    # The most lanes of a track; it has more where slices cross in many ways.
    MOST_LANES = 32

NEVER_ENDS = 0x7FFFFFFFFFFFFFFF
cdef int64_t LATEST = NEVER_ENDS
cdef int64_t EARLIEST = -LATEST - 1


cdef class Nesting:
    """The open slices of each thread, from one batch of events to the next.

    After ``nest`` there are, of each event, int64 of shape (events,): ``parents`` (the row of the
    slice around it; -1: none), ``depths`` (how many are around it), ``closes`` (the row of the
    slice that an end closes, else -1), ``times`` and ``stacks`` of the slice that an event begins
    or closes (0 and -1 for others), and uint8 ``marks`` of that slice. A slice's row is its number
    among all begins. ``unwound``, int64 of shape (slices, 7), has the slices that an end closes
    beside its own, the innermost first: the event, and row, name, time, place, stack and mark.

    Stacks are numbered: ``stack_names`` are the names on top, ``stack_parents`` the stacks below
    them. Inside of ``deepest`` slices (0: no limit; NO_STACKS) a slice has the stack around it.
    """

    # Open slices by node; ``node_below`` is the one below it on its thread, or of a free node the
    # next one that is free.
    cdef int64_t[::1] node_row, node_time, node_place
    cdef uint32_t[::1] node_name
    cdef int32_t[::1] node_below, node_stack
    cdef uint8_t[::1] node_mark
    cdef int64_t[:, ::1] inner
    cdef int64_t[::1] top, depth, shallow
    cdef int64_t[::1] top_names, lower_stacks
    cdef PairMap deep       # how many deep slices are open by thread and name
    cdef PairMap numbers
    cdef int64_t free, used, deepest, stack_count, inner_count
    cdef readonly int64_t rows
    cdef readonly object parents, depths, closes, times, stacks, marks

    def __init__(self, int64_t threads, int64_t deepest=NO_STACKS):
        # Most threads have a slice that is open: these need not be moved again and again.
        cdef int64_t room = max(64, threads)
        self.node_row, self.node_time, self.node_place = np.empty((3, room), np.int64)
        self.node_name = np.empty(room, np.uint32)
        self.node_below, self.node_stack = np.empty((2, room), np.int32)
        self.node_mark = np.empty(room, np.uint8)
        self.inner = np.empty((64, COLUMNS), np.int64)
        self.top = np.full(threads, -1, np.int64)
        self.depth = np.zeros(threads, np.int64)
        self.shallow = np.empty(0, np.int64)
        self.top_names = np.empty(64, np.int64)
        self.lower_stacks = np.empty(64, np.int64)
        self.deep = PairMap()
        self.numbers = PairMap(64)
        self.free = -1
        self.used = self.stack_count = self.inner_count = self.rows = 0
        self.deepest = deepest

    @property
    def unwound(self):
        """Slices that ended with one around them, of the last batch."""
        return np.asarray(self.inner)[: self.inner_count]

    @property
    def stack_names(self):
        """The name on top of each stack, int64 of shape (stacks,)."""
        return np.asarray(self.top_names)[: self.stack_count]

    @property
    def stack_parents(self):
        """The stack below each stack, -1 for none, int64 of shape (stacks,)."""
        return np.asarray(self.lower_stacks)[: self.stack_count]

    def open_places(self):
        """Return the places of all slices that are open, int64 of shape (slices,)."""
        out = np.empty(np.sum(self.depth), np.int64)
        cdef int64_t[::1] places = out
        cdef int64_t count = 0, thread, node
        for thread in range(self.top.shape[0]):
            node = self.top[thread]
            while node >= 0:
                places[count] = self.node_place[node]
                count += 1
                node = self.node_below[node]
        return out

    def nest(self, const uint8_t[::1] what, const int32_t[::1] threads,
             const uint32_t[::1] names, const int64_t[::1] times, const int64_t[::1] places,
             const uint8_t[::1] marks):
        """Nest a batch of events, those of each thread in their order.

        ``what`` is BEGIN, END or OTHER; the thread, name, time, place and mark of each begin are
        kept until it is closed. All have the shape (events,).
        """
        cdef int64_t count = what.shape[0], event, thread, node
        if not (threads.shape[0] == names.shape[0] == times.shape[0] == places.shape[0]
                == marks.shape[0] == count):
            raise ValueError("columns of events of different lengths")
        self.parents, self.depths = np.empty((2, count), np.int64)
        self.closes, self.stacks = np.full((2, count), -1, np.int64)
        self.times, self.marks = np.zeros(count, np.int64), np.zeros(count, np.uint8)
        cdef int64_t[::1] parent = self.parents, depth = self.depths, closed = self.closes
        cdef int64_t[::1] stack = self.stacks, time = self.times
        cdef uint8_t[::1] mark = self.marks
        self.inner_count = 0
        for event in range(count):
            thread = threads[event]
            if not 0 <= thread < self.top.shape[0]:
                raise IndexError(f"thread {thread} of {self.top.shape[0]}")
            if what[event] == BEGINS:
                parent[event] = self.row_above(thread)
                depth[event] = self.depth[thread]
                node = self.push(thread, names[event], marks[event] != 0)
                self.node_time[node] = times[event]
                self.node_place[node] = places[event]
            elif what[event] == ENDS:
                node = self.close(event, thread, names[event])
                parent[event] = self.row_above(thread)
                depth[event] = self.depth[thread]
                if node < 0:
                    continue
                closed[event] = self.node_row[node]
            else:
                parent[event] = self.row_above(thread)
                depth[event] = self.depth[thread]
                continue
            time[event] = self.node_time[node]
            stack[event] = self.node_stack[node]
            mark[event] = self.node_mark[node]

    def release(self):
        """Forget what the last batch made, which has as many numbers as it has events."""
        self.parents = self.depths = self.closes = self.stacks = self.times = self.marks = None
        self.inner_count = 0
        if self.inner.shape[0] > FEW:
            self.inner = np.empty((64, COLUMNS), np.int64)

    cdef int64_t row_above(self, int64_t thread) except -2:
        """Return the row of the innermost open slice of a thread; -1 if there is none."""
        cdef int64_t node = self.top[thread]
        return self.node_row[node] if node >= 0 else -1

    cdef int64_t push(self, int64_t thread, int64_t name, bint mark) except -1:
        """Open a slice; return its node."""
        cdef int64_t node = self.free, above = self.top[thread], depth = self.depth[thread]
        cdef int64_t stack = -1
        if node >= 0:
            self.free = self.node_below[node]
        else:
            node = self.used
            self.used += 1
            if node == self.node_row.shape[0]:
                self.make_room()
        if above >= 0:
            stack = self.node_stack[above]
        if self.deepest == 0 or depth <= self.deepest:
            stack = self.stack_of(stack, name)
        self.node_row[node] = self.rows
        self.node_name[node] = <uint32_t>name
        self.node_stack[node] = <int32_t>stack
        self.node_mark[node] = mark
        self.node_below[node] = <int32_t>above
        if depth >= DEEP:
            if not self.shallow.shape[0]:
                self.shallow = np.full(self.top.shape[0], -1, np.int64)
            if depth == DEEP:
                self.shallow[thread] = above
            self.deep.put(thread, name, max(self.deep.get(thread, name), 0) + 1)
        self.top[thread] = node
        self.depth[thread] = depth + 1
        self.rows += 1
        return node

    cdef int64_t stack_of(self, int64_t below, int64_t name) except -1:
        """Return the number of the stack of a name above another stack."""
        cdef int64_t stack = self.numbers.number(below + 1, name), room
        if stack == self.stack_count:
            room = self.top_names.shape[0]
            if stack == room:
                self.top_names = np.resize(self.top_names, 2 * room)
                self.lower_stacks = np.resize(self.lower_stacks, 2 * room)
            self.top_names[stack] = name
            self.lower_stacks[stack] = below
            self.stack_count += 1
        return stack

    cdef int make_room(self) except -1:
        """Make room for a quarter more of nodes: of slices that never end there may be millions."""
        cdef int64_t size = self.used + self.used // 4 + 64
        if size > 0x7FFFFFFF:
            raise MemoryError("more open slices than can be numbered")
        self.node_row = enlarged(self.node_row, size)
        self.node_time = enlarged(self.node_time, size)
        self.node_place = enlarged(self.node_place, size)
        self.node_name = enlarged(self.node_name, size)
        self.node_below = enlarged(self.node_below, size)
        self.node_stack = enlarged(self.node_stack, size)
        self.node_mark = enlarged(self.node_mark, size)
        return 0

    cdef int make_inner_room(self, int64_t least) except -1:
        """Make room for slices that end with others, a quarter more: millions may do so at once."""
        inner = np.empty((least + self.inner_count // 4, COLUMNS), np.int64)
        inner[: self.inner_count] = self.unwound
        self.inner = inner
        return 0

    cdef int64_t pop(self, int64_t thread) except -1:
        """Close the innermost slice of a thread; return its node, which stays until ``push``."""
        cdef int64_t node = self.top[thread], depth = self.depth[thread] - 1, name
        self.top[thread] = self.node_below[node]
        self.depth[thread] = depth
        if depth >= DEEP:
            name = self.node_name[node]
            self.deep.put(thread, name, self.deep.get(thread, name) - 1)
        self.node_below[node] = <int32_t>self.free
        self.free = node
        return node

    cdef int64_t close(self, int64_t event, int64_t thread, int64_t name) except -2:
        """Close the innermost slice of a name, and those inside; return its node, -1 for none."""
        cdef int64_t wanted = self.top[thread], node, inside = 0
        if self.depth[thread] > DEEP and self.deep.get(thread, name) <= 0:
            wanted = self.shallow[thread]
        while wanted >= 0 and self.node_name[wanted] != name:
            wanted = self.node_below[wanted]
        if wanted < 0:
            return -1
        node = self.top[thread]
        while node != wanted:
            inside += 1
            node = self.node_below[node]
        if self.inner_count + inside > self.inner.shape[0]:
            self.make_inner_room(self.inner_count + inside)
        while self.top[thread] != wanted:
            node = self.pop(thread)
            self.inner[self.inner_count, AT] = event
            self.inner[self.inner_count, ROW] = self.node_row[node]
            self.inner[self.inner_count, NAME] = self.node_name[node]
            self.inner[self.inner_count, TIME] = self.node_time[node]
            self.inner[self.inner_count, PLACE] = self.node_place[node]
            self.inner[self.inner_count, STACK] = self.node_stack[node]
            self.inner[self.inner_count, MARK] = self.node_mark[node]
            self.inner_count += 1
        return self.pop(thread)


cdef object enlarged(column, int64_t size):
    """Return a copy of a column with room for more."""
    return grown(column, size, len(column))


def unfolded(const int64_t[::1] order, const int64_t[::1] threads, const int64_t[::1] times,
             const int64_t[::1] lengths, const int64_t[::1] depths, int64_t count):
    """Return begins and ends of the slices of ``count`` threads, and how many ends were cut.

    ``order`` has the rows by time, what encloses others first; the rest is by row, a length of -1
    is that of a slice without an end. The result is rows (of an end ``~row``) and times, int64 of
    shape (begins and ends,), those of each thread in order: an end is cut that lies behind the one
    of the slice around it.
    """
    cdef int64_t slices = order.shape[0], used = 0, cut = 0, place, row, thread, node, begin, end
    cdef int64_t until
    if not (threads.shape[0] == times.shape[0] == lengths.shape[0] == depths.shape[0] == slices):
        raise ValueError("columns of slices of different lengths")
    if slices and not (0 <= np.min(order) and np.max(order) < slices
                       and 0 <= np.min(threads) and np.max(threads) < count):
        raise IndexError("rows or threads that there are not")
    rows, moments = np.empty((2, 2 * slices), np.int64)
    cdef int64_t[::1] row_of = rows, time_of = moments
    cdef int64_t[::1] top = np.full(count, -1, np.int64)
    cdef int64_t[::1] latest = np.full(count, EARLIEST, np.int64)
    cdef int64_t[::1] below = np.empty(slices, np.int64), ends = np.empty(slices, np.int64)
    for place in range(slices + count):
        if place < slices:
            row = order[place]
            thread = threads[row]
            begin = max(times[row], latest[thread])
        else:  # no slice is left: those that are open end
            row = -1
            thread = place - slices
            begin = LATEST
        node = top[thread]
        while node >= 0 and (row < 0 or depths[node] >= depths[row]):
            if lengths[node] >= 0:
                if ends[node] > begin:
                    ends[node] = begin
                    cut += 1
                # One that encloses slices which begin behind its end lasts as long as they do.
                latest[thread] = max(latest[thread], ends[node])
                row_of[used], time_of[used] = ~node, latest[thread]
                used += 1
            node = below[node]
        if row < 0:
            continue
        end = ends[node] if node >= 0 else LATEST
        if lengths[row] >= 0:
            until = times[row]
            until = LATEST if until > 0 and lengths[row] > LATEST - until else until + lengths[row]
            until = max(until, begin)
            if until > end:
                cut += 1
            else:
                end = until
        ends[row], below[row] = end, node
        top[thread], latest[thread] = row, begin
        row_of[used], time_of[used] = row, begin
        used += 1
    return rows[:used], moments[:used], cut


cdef class Lanes:
    """Slices that share tracks, each on the first lane of its track where it nests.

    A track has at most ``MOST_LANES`` lanes; if a slice nests on none, it is cut to fit on the
    first. ``tracks`` and ``levels`` (int64, shape (lanes,)) are the track of each lane, and how
    many lanes its track had before; ``open_count`` and ``cut`` count the slices that have not
    ended yet, and those that were cut.
    """

    cdef int64_t[::1] first_lane                             # of each track; -1: none yet
    cdef int64_t[::1] track_of, level_of, next_lane, top     # of each lane
    cdef int64_t[::1] end, depth, below                      # of each open slice
    cdef int64_t[::1] slices, times, lanes                   # of each begin or end
    cdef int64_t used, free, count
    cdef readonly int64_t lane_count, open_count, cut

    def __init__(self):
        self.first_lane = self.track_of = self.level_of = self.next_lane = self.top = np.empty(
            0, np.int64)
        self.end = self.depth = self.below = np.empty(0, np.int64)
        self.used = self.count = self.lane_count = self.open_count = self.cut = 0
        self.free = -1

    @property
    def tracks(self):
        """The track of each lane."""
        return np.asarray(self.track_of)[: self.lane_count]

    @property
    def levels(self):
        """The number of each lane within its track."""
        return np.asarray(self.level_of)[: self.lane_count]

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
                if self.top[lane] < 0 or self.end[self.top[lane]] >= end[slice]:
                    break
                last, lane = lane, self.next_lane[lane]
                level += 1
            if lane < 0 and level < MOST_LANES:
                lane = self.lane_count
                self.lane_count += 1
                self.track_of[lane], self.level_of[lane] = track[slice], level
                self.next_lane[lane] = self.top[lane] = -1
                if last >= 0:
                    self.next_lane[last] = lane
                else:
                    self.first_lane[track[slice]] = lane
            if lane >= 0:
                self.open(lane, end[slice], depth[slice])
            else:
                lane = self.first_lane[track[slice]]
                self.open(lane, self.end[self.top[lane]], depth[slice])
                self.cut += 1
            self.note(slice, start[slice], lane)
        return self.events()

    def ends_before(self, int64_t limit):
        """Return the ends before a time as ``nest`` does, if no later slice begins before it."""
        cdef int64_t lane
        self.make_room(0, 0)
        for lane in range(self.lane_count):
            while self.top[lane] >= 0 and self.end[self.top[lane]] < limit:
                self.close(lane)
        return self.events()

    cdef int make_room(self, int64_t slices, int64_t tracks) except -1:
        """Make room for slices, each of which may need a lane, and for their begins and ends."""
        cdef int64_t known = self.first_lane.shape[0], size
        if tracks > known:
            self.first_lane = enlarged(self.first_lane, tracks + tracks // 2)
            self.first_lane[known:] = -1
        size = self.lane_count + slices
        if size > self.track_of.shape[0]:
            size += size // 2
            self.track_of = enlarged(self.track_of, size)
            self.level_of = enlarged(self.level_of, size)
            self.next_lane = enlarged(self.next_lane, size)
            self.top = enlarged(self.top, size)
        size = self.used + slices
        if size > self.end.shape[0]:
            size += size // 2
            self.end = enlarged(self.end, size)
            self.depth = enlarged(self.depth, size)
            self.below = enlarged(self.below, size)
        self.slices, self.times, self.lanes = np.empty((3, 2 * slices + self.open_count), np.int64)
        self.count = 0
        return 0

    cdef object events(self):
        """Return what was noted since ``make_room``."""
        cdef int64_t count = self.count
        found = (np.asarray(self.slices)[:count], np.asarray(self.times)[:count],
                 np.asarray(self.lanes)[:count])
        self.slices = self.times = self.lanes = np.empty(0, np.int64)
        return found

    cdef int note(self, int64_t slice, int64_t time, int64_t lane) except -1:
        """Note a begin or an end."""
        self.slices[self.count], self.times[self.count] = slice, time
        self.lanes[self.count] = lane
        self.count += 1
        return 0

    cdef int open(self, int64_t lane, int64_t end, int64_t depth) except -1:
        """Put a slice on top of a lane."""
        cdef int64_t top = self.top[lane], node = self.free
        # Slices around one that never ends do not end either, so one of them is enough.
        if end == LATEST and top >= 0:
            return 0
        if node >= 0:
            self.free = self.below[node]
        else:
            node = self.used
            self.used += 1
        self.end[node], self.depth[node], self.below[node] = end, depth, top
        self.top[lane] = node
        self.open_count += 1
        return 0

    cdef int close_before(self, int64_t lane, int64_t start, int64_t end, int64_t depth) except -1:
        """End the slices of a lane that are over when another one begins."""
        cdef int64_t top = self.top[lane], over
        while top >= 0:
            over = self.end[top]
            if over > start:
                break
            # One without a length may be the innermost of a slice that ends where it begins.
            if over == start and self.depth[top] < depth and end <= over:
                break
            self.close(lane)
            top = self.top[lane]
        return 0

    cdef int close(self, int64_t lane) except -1:
        """End the innermost slice of a lane."""
        cdef int64_t top = self.top[lane]
        self.note(-1, self.end[top], lane)
        self.top[lane] = self.below[top]
        self.below[top] = self.free
        self.free = top
        self.open_count -= 1
        return 0


cdef class OpenSlices:
    """The open slices of each thread, where events say which slice they are in.

    An open slice has a number, which another one may get once it has ended.
    """

    # ``below`` is the slice below one on its thread; ``same`` the next one of the same place in
    # ``index``, by which slices are found by row.
    cdef int64_t[::1] top                                             # of each thread
    cdef int64_t[::1] row, thread, until, below, same                 # of each open slice
    cdef int64_t[::1] index, order
    cdef int64_t used, free, freed, first_freed, count, open_count

    def __init__(self, int64_t threads):
        self.top = np.full(threads, -1, np.int64)
        self.row = self.thread = self.until = self.below = self.same = np.empty(0, np.int64)
        self.index = np.full(1, -1, np.int64)
        self.used = self.count = self.open_count = 0
        self.free = self.freed = self.first_freed = -1

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
        cdef int64_t count = what.shape[0], event, top, around
        cdef int64_t begun = np.count_nonzero(np.asarray(what) == BEGINS)
        self.make_room(begun)
        self.order, self.count = np.empty(count + self.open_count + begun, np.int64), 0
        numbers = np.empty(begun, np.int64)
        cdef int64_t[::1] number = numbers
        begun = 0
        for event in range(count):
            if what[event] == BEGINS:
                top = self.top[thread[event]]
                while top >= 0 and self.row[top] != parent[event]:
                    top = self.end(top)
                number[begun] = self.begin(thread[event], row[event], until[event])
                begun += 1
            elif what[event] == OTHERS:
                around = self.find(thread[event], row[event])
                top = self.top[thread[event]]
                while top >= 0 and top != around:
                    if around < 0 and (self.until[top] == EARLIEST or self.until[top] > times[event]):
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
                top = self.below[top]
        return out

    cdef int make_room(self, int64_t slices) except -1:
        """Make room for more slices, and for an index of them that is half empty."""
        cdef int64_t size = self.used + slices, node, place
        # Numbers of slices that ended are free from here on: in between they are those of ends.
        if self.freed >= 0:
            self.below[self.first_freed], self.free = self.free, self.freed
            self.freed = -1
        if size > self.row.shape[0]:
            size += size // 2
            self.row, self.thread = enlarged(self.row, size), enlarged(self.thread, size)
            self.until, self.below = enlarged(self.until, size), enlarged(self.below, size)
            self.same = enlarged(self.same, size)
            self.index = np.full(1 << (2 * size).bit_length(), -1, np.int64)
            for place in range(self.top.shape[0]):
                node = self.top[place]
                while node >= 0:
                    self.enter(node)
                    node = self.below[node]
        return 0

    cdef int enter(self, int64_t node) except -1:
        """Enter an open slice into the index."""
        cdef int64_t place = self.row[node] & (self.index.shape[0] - 1)
        self.same[node] = self.index[place]
        self.index[place] = node
        return 0

    cdef int64_t find(self, int64_t thread, int64_t row) except -2:
        """Return the open slice of a row on a thread; -1 if there is none."""
        if row < 0:
            return -1
        cdef int64_t node = self.index[row & (self.index.shape[0] - 1)]
        while node >= 0 and not (self.row[node] == row and self.thread[node] == thread):
            node = self.same[node]
        return node

    cdef int64_t begin(self, int64_t thread, int64_t row, int64_t until) except -1:
        """Put a slice on the others of its thread; return its number."""
        cdef int64_t node = self.free
        if node >= 0:
            self.free = self.below[node]
        else:
            node = self.used
            self.used += 1
        self.row[node], self.thread[node], self.until[node] = row, thread, until
        self.below[node], self.top[thread] = self.top[thread], node
        self.open_count += 1
        self.enter(node)
        return node

    cdef int64_t end(self, int64_t node) except -2:
        """End the innermost slice of its thread; return the one below it."""
        cdef int64_t place = self.row[node] & (self.index.shape[0] - 1), other
        cdef int64_t below = self.below[node]
        if self.index[place] == node:
            self.index[place] = self.same[node]
        else:
            other = self.index[place]
            while self.same[other] != node:
                other = self.same[other]
            self.same[other] = self.same[node]
        self.order[self.count] = ~node
        self.count += 1
        self.top[self.thread[node]] = below
        if self.freed < 0:
            self.first_freed = node
        self.below[node], self.freed = self.freed, node
        self.open_count -= 1
        return below
