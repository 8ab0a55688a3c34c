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
NO_STACKS = -1

cdef enum:
    BEGINS, ENDS, OTHERS, SPANS

cdef enum:
    # Columns of ``Nesting.unwound``, followed by the slice's values.
    EVENT, ROW, NAME, STACK, FIRST_VALUE

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
cdef int64_t ANY = ANY_NAME


cdef class Nesting:
    """The open slices of each thread, from one batch of events to the next.

    After ``nest`` there are, of each event, int64 of shape (events,): ``parents`` (the row of the
    slice around it; -1: none), ``depths`` (how many are around it), ``closes`` (the row of the
    slice that an end closes, else -1) and ``stacks`` (of the slice that an event begins or closes,
    else -1); int64 ``values`` of shape (events, values), those that the slice which an end closes
    had when it began, else 0; and ``crosses``, whether a SPAN ends after the slice around it.
    ``unwound``, int64 of shape (slices, 4 + values), has the slices that an end closes beside its
    own, the innermost first: the event, and row, name, stack and values of the slice.

    A slice's row is its number among all slices, or what ``nest`` is given. Stacks are numbered:
    ``stack_names`` are the names on top, ``stack_parents`` the stacks below them. Inside of
    ``deepest`` slices (0: no limit; NO_STACKS) a slice has the stack around it.

    If ``any_name``, an end of the name ANY_NAME closes the innermost slice of whatever name, and a
    slice of that name is closed by any end. If ``ordered``, the times of a thread must not step
    back, and of SPANs that begin together the longest must come first.
    """

    # Bounds of nodes and threads are not checked where slices are opened and closed: nodes are
    # numbered here, within the room that was made, and threads are checked by ``nest``.
    #
    # Open slices by node; ``node_below`` is the one below it on its thread, or of a free node the
    # next one that is free. Of slices that never end there may be millions, so columns are empty as
    # long as they would tell nothing: ``node_row`` while each row is the number of its node,
    # ``node_name`` while all names are ANY_NAME, ``node_until`` while all slices need an end.
    cdef int64_t[::1] node_row, node_until
    cdef uint32_t[::1] node_name
    cdef int32_t[::1] node_below, node_stack
    cdef int64_t[:, ::1] node_values
    cdef int64_t[:, ::1] inner
    # By thread: the innermost open slice, how many are open, how many of those need an end, and how
    # many of those have the name ANY_NAME; the one at the depth DEEP.
    cdef int32_t[::1] top, depth, unended, unnamed, shallow
    # By thread, if ``ordered``: the time of its last event, and the end of the last slice that
    # began then.
    cdef int64_t[::1] last_time, last_end
    cdef int64_t[::1] top_names, lower_stacks
    cdef PairMap deep       # how many deep open slices need an end, by thread and name
    cdef PairMap numbers
    cdef int64_t free, used, deepest, stack_count, inner_count, width
    cdef bint any_name, ordered, has_stacks
    cdef readonly int64_t threads, rows
    cdef readonly object parents, depths, closes, values, stacks, crosses

    def __init__(self, int64_t threads, int64_t deepest=NO_STACKS, *, int64_t values=0,
                 bint any_name=False, bint ordered=False):
        # Most threads have a slice that is open: these need not be moved again and again.
        cdef int64_t room = max(64, threads)
        self.width = values
        self.deepest = deepest
        self.has_stacks = deepest != NO_STACKS
        self.node_row = self.node_until = np.empty(0, np.int64)
        self.node_name = np.empty(0, np.uint32)
        self.node_below = np.empty(room, np.int32)
        self.node_stack = np.empty(room if self.has_stacks else 0, np.int32)
        self.node_values = np.empty((room, values), np.int64)
        self.inner = np.empty((64, FIRST_VALUE + values), np.int64)
        self.top = self.depth = self.unended = self.unnamed = np.empty(0, np.int32)
        self.shallow = np.empty(0, np.int32)
        self.last_time = self.last_end = np.empty(0, np.int64)
        self.top_names = np.empty(64, np.int64)
        self.lower_stacks = np.empty(64, np.int64)
        self.deep = PairMap()
        self.numbers = PairMap(64)
        self.free = -1
        self.used = self.stack_count = self.inner_count = self.rows = self.threads = 0
        self.any_name = any_name
        self.ordered = ordered
        self.make_threads(threads)

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

    def make_threads(self, int64_t threads):
        """Have at least so many threads from now on."""
        cdef int64_t size = self.top.shape[0]
        if threads > size:
            # Twice as many, so that threads which come one by one are not moved each time.
            size = max(threads, 2 * size)
            self.top = lengthened(self.top, size, -1)
            self.depth = lengthened(self.depth, size, 0)
            self.unended = lengthened(self.unended, size, 0)
            self.unnamed = lengthened(self.unnamed, size, 0)
            if self.shallow.shape[0]:
                self.shallow = lengthened(self.shallow, size, -1)
            if self.ordered:
                self.last_time = lengthened(self.last_time, size, EARLIEST)
                self.last_end = lengthened(self.last_end, size, LATEST)
        self.threads = max(self.threads, threads)

    def open_values(self):
        """Return the values of all slices that are open, int64 of shape (slices, values)."""
        cdef int64_t count = 0, thread, node
        nodes = np.empty(np.sum(self.depth), np.int64)
        cdef int64_t[::1] node_of = nodes
        for thread in range(self.threads):
            node = self.top[thread]
            while node >= 0:
                node_of[count] = node
                count += 1
                node = self.node_below[node]
        return np.asarray(self.node_values)[nodes]

    @cython.boundscheck(False)  # of events, as all columns have one length, which is checked
    def nest(self, const uint8_t[::1] what, const int32_t[::1] threads,
             const uint32_t[::1] names, values=None, times=None, ends=None, rows=None):
        """Nest a batch of events, those of each thread in their order; return where it stopped.

        ``what`` is BEGIN, END, SPAN (a slice whose end is known) or OTHER. ``values``, int64 of
        shape (events, values), are kept until a slice is closed. ``times`` and ``ends`` (of SPANs)
        are needed where there are SPANs or slices are ``ordered``; ``rows`` are those of slices.
        All others have the shape (events,), and are int64 but for the first three.

        The result is the first event that steps back in time if ``ordered``: then the events from
        it on were not nested, and are not to be. It is -1 if there is none.

        A SPAN closes before the first slice that begins when it ends or later, and before the first
        other event that is later. One that ends before it begins encloses nothing.
        """
        cdef int64_t count = what.shape[0], event, stop = -1
        empty = np.empty(0, np.int64)
        if values is None:
            values = np.empty((count, self.width), np.int64)
        cdef const int64_t[:, ::1] value = values
        cdef const int64_t[::1] time = empty if times is None else times
        cdef const int64_t[::1] until = empty if ends is None else ends
        cdef const int64_t[::1] row = empty if rows is None else rows
        if not threads.shape[0] == names.shape[0] == value.shape[0] == count:
            raise ValueError("columns of events of different lengths")
        if value.shape[1] != self.width:
            raise ValueError(f"{value.shape[1]} values of each slice, not {self.width}")
        for column in (times, ends, rows):
            if column is not None and len(column) != count:
                raise ValueError("columns of events of different lengths")
        if self.ordered and times is None or ends is not None and times is None:
            raise ValueError("no times")
        if count and not 0 <= np.min(threads) <= np.max(threads) < self.threads:
            raise IndexError(f"threads up to {np.max(threads)} of {self.threads}")
        if ends is None and (np.asarray(what) == SPAN).any():
            raise ValueError("spans without ends")
        if ends is not None and not self.node_until.shape[0]:
            self.node_until = np.full(self.node_below.shape[0], LATEST, np.int64)
        if not self.node_name.shape[0] and (np.asarray(names) != ANY_NAME).any():
            self.node_name = np.full(self.node_below.shape[0], ANY_NAME, np.uint32)
        self.parents, self.depths, self.closes = np.empty((3, count), np.int64)
        self.values = np.zeros((count, self.width), np.int64)
        self.stacks = np.broadcast_to(np.int64(-1), count)
        if self.has_stacks:
            self.stacks = np.full(count, -1, np.int64)
        self.crosses = np.zeros(count, np.bool_)
        cdef int64_t[::1] parent = self.parents, depth = self.depths, closed = self.closes
        cdef int64_t[::1] stack = self.stacks if self.has_stacks else empty
        cdef int64_t[:, ::1] closed_value = self.values
        cdef uint8_t[::1] cross = self.crosses.view(np.uint8)
        cdef bint has_ends = self.node_until.shape[0] > 0, has_rows = row.shape[0] > 0
        cdef int64_t thread, node, end, slice_row, number
        self.inner_count = 0
        with nogil:
            for event in range(count):
                thread = threads[event]
                end = until[event] if what[event] == SPANS else LATEST
                if self.ordered and self.steps_back(thread, what[event], time[event], end):
                    stop = event
                    break
                if has_ends and what[event] != ENDS:
                    self.close_past(thread, time[event], what[event] == OTHERS)
                closed[event] = -1
                node = -1
                if what[event] == ENDS:
                    node = self.close(event, thread, names[event])
                    if node >= 0:
                        closed[event] = self.row_of(node)
                        for number in range(self.width):
                            closed_value[event, number] = self.node_values[node, number]
                elif what[event] == SPANS and self.top[thread] >= 0:
                    cross[event] = end > self.node_until[self.top[thread]]
                parent[event] = self.row_above(thread)
                depth[event] = self.depth[thread]
                if what[event] == BEGINS or what[event] == SPANS:
                    slice_row = row[event] if has_rows else self.rows
                    self.rows += 1
                    if what[event] == BEGINS or end >= time[event]:
                        node = self.push(thread, names[event], end)
                        if self.node_row.shape[0] == 0 and node != slice_row:
                            self.make_rows()
                        if self.node_row.shape[0]:
                            self.node_row[node] = slice_row
                        for number in range(self.width):
                            self.node_values[node, number] = value[event, number]
                if self.has_stacks and node >= 0:
                    stack[event] = self.node_stack[node]
        return stop

    def release(self):
        """Forget what the last batch made, which has as many numbers as it has events."""
        self.parents = self.depths = self.closes = self.stacks = self.values = self.crosses = None
        self.inner_count = 0
        if self.inner.shape[0] > FEW:
            self.inner = np.empty((64, FIRST_VALUE + self.width), np.int64)

    @cython.boundscheck(False)
    cdef bint steps_back(self, int64_t thread, int64_t what, int64_t now, int64_t end) noexcept nogil:
        """Return whether an event cannot be nested behind the others of its thread."""
        if now > self.last_time[thread]:
            self.last_time[thread] = now
            self.last_end[thread] = LATEST
        elif now < self.last_time[thread] or what == SPANS and end > self.last_end[thread]:
            return True
        if what == BEGINS or what == SPANS:
            self.last_end[thread] = end
        return False

    @cython.boundscheck(False)
    cdef int64_t row_above(self, int64_t thread) noexcept nogil:
        """Return the row of the innermost open slice of a thread; -1 if there is none."""
        cdef int64_t node = self.top[thread]
        return self.row_of(node) if node >= 0 else -1

    @cython.boundscheck(False)
    cdef int64_t row_of(self, int64_t node) noexcept nogil:
        """Return the row of an open slice."""
        return self.node_row[node] if self.node_row.shape[0] else node

    @cython.boundscheck(False)
    cdef int64_t name_of(self, int64_t node) noexcept nogil:
        """Return the name of an open slice."""
        return self.node_name[node] if self.node_name.shape[0] else ANY

    @cython.boundscheck(False)
    cdef bint has_end(self, int64_t node) noexcept nogil:
        """Return whether it was known when a slice began when it ends."""
        return self.node_until.shape[0] > 0 and self.node_until[node] != LATEST

    @cython.boundscheck(False)
    cdef int close_past(self, int64_t thread, int64_t now, bint inclusive) except -1 nogil:
        """Close the slices that end before a time, or then if not ``inclusive``."""
        cdef int64_t node = self.top[thread], until
        while node >= 0:
            until = self.node_until[node]
            if until == LATEST or until > now or until == now and inclusive:
                break
            self.pop(thread)
            node = self.top[thread]
        return 0

    @cython.boundscheck(False)
    cdef int64_t push(self, int64_t thread, int64_t name, int64_t end) except -1 nogil:
        """Open a slice; return its node. It needs an end event if its end is LATEST."""
        cdef int64_t node = self.free, above = self.top[thread], depth = self.depth[thread]
        if node >= 0:
            self.free = self.node_below[node]
        else:
            node = self.used
            self.used += 1
            if node == self.node_below.shape[0]:
                self.make_room()
        if self.has_stacks:
            self.node_stack[node] = <int32_t>self.stack_above(above, depth, name)
        if self.node_name.shape[0]:
            self.node_name[node] = <uint32_t>name
        self.node_below[node] = <int32_t>above
        if self.node_until.shape[0]:
            self.node_until[node] = end
        if depth >= DEEP:
            if not self.shallow.shape[0]:
                self.make_shallow()
            if depth == DEEP:
                self.shallow[thread] = <int32_t>above
        if end == LATEST:
            self.unended[thread] += 1
            self.count_name(thread, depth, name, 1)
        self.top[thread] = <int32_t>node
        self.depth[thread] = <int32_t>depth + 1
        return node

    cdef int count_name(self, int64_t thread, int64_t depth, int64_t name,
                        int64_t change) except -1 nogil:
        """Count a name among those of the open slices that need an end, where that is needed."""
        if self.any_name and name == ANY:
            self.unnamed[thread] += <int32_t>change
        elif depth >= DEEP:
            self.deep.put(thread, name, max(self.deep.get(thread, name), 0) + change)
        return 0

    cdef int64_t stack_above(self, int64_t above, int64_t depth, int64_t name) except -2 nogil:
        """Return the stack of a name above an open slice; deep down, the one of that slice."""
        cdef int64_t below = self.node_stack[above] if above >= 0 else -1
        if self.deepest != 0 and depth > self.deepest:
            return below
        cdef int64_t stack = self.numbers.number(below + 1, name)
        if stack == self.stack_count:
            if stack == self.top_names.shape[0]:
                self.make_stack_room()
            self.top_names[stack] = name
            self.lower_stacks[stack] = below
            self.stack_count += 1
        return stack

    cdef int make_stack_room(self) except -1 with gil:
        """Make room for twice as many stacks."""
        self.top_names = np.resize(self.top_names, 2 * self.stack_count)
        self.lower_stacks = np.resize(self.lower_stacks, 2 * self.stack_count)
        return 0

    cdef int make_shallow(self) except -1 with gil:
        """Have a place for the slice at the depth DEEP of each thread."""
        self.shallow = np.full(self.top.shape[0], -1, np.int32)
        return 0

    cdef int make_room(self) except -1 with gil:
        """Make room for twice as many nodes; what is not used of it takes no memory."""
        cdef int64_t size = 2 * self.used + 64
        if size > 0x7FFFFFFF:
            raise MemoryError("more open slices than can be numbered")
        if self.node_row.shape[0]:
            self.node_row = enlarged(self.node_row, size)
        if self.node_until.shape[0]:
            self.node_until = enlarged(self.node_until, size)
        if self.node_name.shape[0]:
            self.node_name = enlarged(self.node_name, size)
        self.node_below = enlarged(self.node_below, size)
        if self.has_stacks:
            self.node_stack = enlarged(self.node_stack, size)
        if self.width:
            values = grown(np.asarray(self.node_values).reshape(-1), size * self.width,
                           (self.used - 1) * self.width)
            self.node_values = np.asarray(values).reshape(size, self.width)
        else:
            self.node_values = np.empty((size, 0), np.int64)
        return 0

    cdef int make_rows(self) except -1 with gil:
        """Have a column of rows: they are the numbers of nodes up to here."""
        self.node_row = np.arange(self.node_below.shape[0])
        return 0

    cdef int make_inner_room(self, int64_t least) except -1 with gil:
        """Make room for slices that end with others, a quarter more: millions may do so at once."""
        inner = np.empty((least + self.inner_count // 4, FIRST_VALUE + self.width), np.int64)
        inner[: self.inner_count] = self.unwound
        self.inner = inner
        return 0

    @cython.boundscheck(False)
    cdef int64_t pop(self, int64_t thread) except -1 nogil:
        """Close the innermost slice of a thread; return its node, which stays until ``push``."""
        cdef int64_t node = self.top[thread], depth = self.depth[thread] - 1
        self.top[thread] = self.node_below[node]
        self.depth[thread] = <int32_t>depth
        if not self.has_end(node):
            self.unended[thread] -= 1
            self.count_name(thread, depth, self.name_of(node), -1)
        self.node_below[node] = <int32_t>self.free
        self.free = node
        return node

    @cython.boundscheck(False)
    cdef int64_t find(self, int64_t thread, int64_t name) except -2 nogil:
        """Return the innermost open slice that an end of a name closes; -1 if there is none.

        It does not go down many slices in vain: an end that closes none may come again and again.
        """
        cdef int64_t node = self.top[thread]
        cdef bint closes_any = self.any_name and name == ANY
        if not self.unended[thread]:
            return -1
        if self.depth[thread] > DEEP and not closes_any and not self.unnamed[thread]:
            if self.deep.get(thread, name) <= 0:
                node = self.shallow[thread]
        while node >= 0:
            if not self.has_end(node):
                if closes_any or self.name_of(node) == name:
                    return node
                if self.any_name and self.name_of(node) == ANY:
                    return node
            node = self.node_below[node]
        return -1

    cdef int64_t close(self, int64_t event, int64_t thread, int64_t name) except -2 nogil:
        """Close the slice that an end closes, and those inside; return its node, -1 for none."""
        cdef int64_t wanted = self.find(thread, name), node, number, inside = 0
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
            if self.has_end(node):  # it has that end, which the caller knows
                continue
            self.inner[self.inner_count, EVENT] = event
            self.inner[self.inner_count, ROW] = self.row_of(node)
            self.inner[self.inner_count, NAME] = self.name_of(node)
            self.inner[self.inner_count, STACK] = -1
            if self.has_stacks:
                self.inner[self.inner_count, STACK] = self.node_stack[node]
            for number in range(self.width):
                self.inner[self.inner_count, FIRST_VALUE + number] = self.node_values[node, number]
            self.inner_count += 1
        return self.pop(thread)


cdef object lengthened(column, int64_t size, int64_t value):
    """Return a copy of a column with more places, which have one value."""
    after = np.full(size, value, np.asarray(column).dtype)
    after[: len(column)] = column
    return after


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


def begins_and_ends(const int64_t[::1] order, const int32_t[::1] threads,
                    const int64_t[::1] parents, int64_t count):
    """Return the begins and ends of the slices of ``count`` threads: rows, of an end ``~row``.

    ``order`` has the rows by time, what encloses others first; the rest is by row, a parent of -1
    is none. A slice ends before the next one of its thread that is not in it, or behind all others:
    those of thread 0 last. int64 of shape (begins and ends,).
    """
    cdef int64_t slices = order.shape[0], used = 0, place, row, thread, node
    if not threads.shape[0] == parents.shape[0] == slices:
        raise ValueError("columns of slices of different lengths")
    if slices and not (0 <= np.min(order) and np.max(order) < slices
                       and 0 <= np.min(threads) and np.max(threads) < count):
        raise IndexError("rows or threads that there are not")
    events = np.empty(2 * slices, np.int64)
    cdef int64_t[::1] event = events
    cdef int64_t[::1] top = np.full(count, -1, np.int64), below = np.empty(slices, np.int64)
    for place in range(slices + count):
        if place < slices:
            row = order[place]
            thread = threads[row]
        else:  # no slice is left: those that are open end
            row = -1
            thread = (place - slices + 1) % count
        node = top[thread]
        while node >= 0 and (row < 0 or node != parents[row]):
            event[used] = ~node
            used += 1
            node = below[node]
        if row >= 0:
            below[row], top[thread] = node, row
            event[used] = row
            used += 1
    return events[:used]


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
