# cython: boundscheck=False, wraparound=False, show_performance_hints=False
# Bounds are not checked: rows, ordinals and threads are counted by the reader, which makes room.
"""The match: which begin an end closes, what encloses a slice, and how deep it is.

It adds no rows: those of events come from ``rows.py``, and ``batches.py`` picks the slices.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from fxframework.kernels.pools cimport PairMap
from fxframework.kernels.rows cimport Loop, Notes, Rows

from fx_trace import format as wire
from fx_trace import rules
from fxframework.kernels.buffers import full, room

cdef int64_t END_CODE_BITS = wire.END_CODE_BITS, EVENT_ASYNC_BEGIN = wire.EVENT_ASYNC_BEGIN
cdef int64_t EVENT_ASYNC_END = wire.EVENT_ASYNC_END, EVENT_ASYNC_INSTANT = wire.EVENT_ASYNC_INSTANT
cdef int64_t EVENT_DURATION_BEGIN = wire.EVENT_DURATION_BEGIN
cdef int64_t EVENT_DURATION_COMPLETE = wire.EVENT_DURATION_COMPLETE
cdef int64_t EVENT_DURATION_END = wire.EVENT_DURATION_END, EVENT_FLOW_BEGIN = wire.EVENT_FLOW_BEGIN
cdef int64_t INVALID_END = wire.INVALID_END, LINK_BITS = wire.LINK_BITS
cdef int64_t OF_CATEGORIES = wire.OF_CATEGORIES, OPEN_END = wire.OPEN_END
cdef int64_t ASYNC_END_WITHOUT_BEGIN = rules.ASYNC_END_WITHOUT_BEGIN
cdef int64_t ENDS_AFTER_PARENT = rules.ENDS_AFTER_PARENT
cdef int64_t ENDS_BEFORE_BEGIN = rules.ENDS_BEFORE_BEGIN
cdef int64_t ENDS_BY_ANOTHER_NAME = rules.ENDS_BY_ANOTHER_NAME
cdef int64_t END_WITHOUT_BEGIN = rules.END_WITHOUT_BEGIN, TOO_DEEP = rules.TOO_DEEP

__all__ = ["Durations", "Match"]

cdef enum:
    ONE = 1
    ANY_NAME = -1  # Stands for the names of begins that nobody knows.


def longer(before, size, value):
    """Return an array of ``size`` numbers that begins with another; the rest is one value."""
    after = full(size, "i8", value)
    after[: len(before)] = before
    return after


cdef class PassingRows(Rows):
    """Rows that do not stay for long, of which there may be many."""

    @cython.final
    cdef int widen(self) except -1 with gil:
        """Increase the room to four times as much; what is not used of it takes no memory."""
        self.resize(4 * self.room)
        return 0


@cython.final
cdef class OpenBegins(PassingRows):
    """Name and category of each duration begin that is open; ``below``: the one that encloses it.

    What is closed makes room for the next.
    """

    cdef public int32_t[::1] name, category
    cdef public int64_t[::1] below
    cdef readonly int64_t free

    COLUMNS = ("name", "i4"), ("category", "i4"), ("below", "i8")

    def __init__(self):
        super().__init__(64)
        self.free = -1

    cdef inline int64_t push(self, int64_t top, int64_t name, int64_t category) except? -9 nogil:
        """Open one inside ``top``; return its number."""
        cdef int64_t number
        number = self.free
        if number >= 0:
            self.free = self.below[number]
        else:
            number = self.rows
            if number == self.room:
                self.widen()
            self.rows = number + 1
        self.name[number] = name
        self.category[number] = category
        self.below[number] = top
        return number

    cdef inline int64_t pop(self, int64_t top) noexcept nogil:
        """Close the innermost one; return the one that encloses it."""
        cdef int64_t below
        below = self.below[top]
        self.below[top] = self.free
        self.free = top
        return below


@cython.final
cdef class Match(Loop):
    """Nests the slices of events that ``take`` gives it, in file order or in order of time.

    Kinds, threads, times and ends are in the order of matching, other fields at ``place``.

    By slice row: ``end`` (ns), ``parent`` (a row, or -1) and ``depth``. By ordinal of an end
    event: ``ends``, the row of the slice it closes, or -1. By flow row: ``flows``, the row of the
    slice that encloses it, or -1. The open slices of a thread are the chain of parents from the
    innermost one, ``top``. The caller has made room in all of them. ``links`` has, for each id of
    asynchronous and flow events, which kinds of them there are. ``unclosed`` counts slices that no
    event has ended. ``unnamed`` has the codes of texts
    that stand for strings nobody knows.

    An end closes the innermost slice that a begin opened; ``by_name``, the innermost one of its
    name, and what was begun inside stays open. ``open_names`` counts the open begins by thread
    and name.

    ``run`` gives -1, or the index of the first event that steps back in time: then the events
    have to be taken in order of time, by a new ``Match``.
    """

    cdef readonly Notes notes
    cdef int64_t max_depth
    cdef bint by_name
    cdef public int64_t count
    cdef int64_t slice_row, end_row, flow_row, last_async
    cdef readonly int64_t unclosed
    cdef bint natural
    cdef bint numbered
    cdef readonly const uint8_t[::1] kind
    cdef readonly const int32_t[::1] thread
    cdef readonly const int64_t[::1] time
    cdef readonly const int64_t[::1] finish
    cdef const int64_t[::1] order
    cdef readonly const int32_t[::1] name
    cdef readonly const int32_t[::1] category
    cdef readonly const int64_t[::1] offset, word, refs, pids
    cdef public int64_t[::1] end, parent, ends, flows
    cdef public int32_t[::1] depth
    cdef readonly int64_t threads
    cdef int64_t[::1] top
    cdef int64_t[::1] open_slices, last, last_end, innermost
    cdef OpenBegins begins
    cdef PairMap operations, open_async, open_names
    cdef readonly PairMap unnamed
    cdef readonly PairMap links

    def __init__(self, notes, max_depth, unnamed, *, by_name):
        self.notes = notes
        self.max_depth = max_depth
        self.by_name = by_name
        self.count = 0
        self.natural = True
        self.numbered = False
        self.kind = room(0, "u1")
        self.thread = room(0, "i4")
        self.time = room(0, "i8")
        self.finish = room(0, "i8")
        self.order = room(0, "i8")
        self.name = room(0, "i4")
        self.category = room(0, "i4")
        self.offset = room(0, "i8")
        self.word = room(0, "i8")
        self.refs = room(0, "i8")
        self.pids = room(0, "i8")
        self.end = room(0, "i8")
        self.parent = room(0, "i8")
        self.depth = room(0, "i4")
        self.ends = room(0, "i8")
        self.flows = room(0, "i8")
        self.threads = 0
        self.top = room(0, "i8")
        self.open_slices = room(0, "i8")
        self.last = room(0, "i8")
        self.last_end = room(0, "i8")
        self.innermost = room(0, "i8")
        self.begins = OpenBegins()
        self.unnamed = unnamed
        self.operations = PairMap(16)
        self.open_async = PairMap(16)
        self.open_names = PairMap(16)
        self.slice_row = 0
        self.end_row = 0
        self.flow_row = 0
        self.last_async = INVALID_END
        self.unclosed = 0
        self.links = PairMap(16)

    def take(self, columns, pids, order=None, refs=None):
        """Set the events that ``run`` matches, by columns of ``EventRows``, `time` and `finish`.

        ``order`` (int64), if given, are their places in order of time, in which `kind`, `thread`,
        `time` and `finish` already are. ``refs`` (int64), if given, are the rows and ordinals of
        these events; without, they are numbered as they come.
        """
        self.natural = order is None
        self.numbered = refs is not None
        self.order = room(0, "i8") if order is None else order
        self.refs = room(0, "i8") if refs is None else refs
        self.count = len(columns["time"])
        self.kind = columns["kind"]
        self.thread = columns["thread"]
        self.time = columns["time"]
        self.finish = columns["finish"]
        self.name = columns["name"]
        self.category = columns["category"]
        self.offset = columns["offset"]
        self.word = columns["word"]
        self.pids = pids

    def make_room(self, threads, spans):
        """Take arrays that are long enough for all slices, ends, flows and threads so far."""
        self.end = spans["end"]
        self.parent = spans["parent"]
        self.depth = spans["depth"]
        self.ends = spans["ends"]
        self.flows = spans["flows"]
        if threads > self.top.shape[0]:
            size = max(threads, 2 * self.top.shape[0])
            self.top = longer(self.top, size, -1)
            self.open_slices = longer(self.open_slices, size, 0)
            self.last = longer(self.last, size, INVALID_END)
            self.last_end = longer(self.last_end, size, OPEN_END)
            self.innermost = longer(self.innermost, size, -1)
        self.threads = threads

    cdef int64_t step(self) except? -9 nogil:
        """Match the events; see the class.

        Arrays are local, and so is what is open on a thread as long as events on it begin and end
        durations: C reaches that in fewer steps.
        """
        cdef int64_t count, natural, numbered, slice_row, end_row, max_depth, index, thread, last
        cdef int64_t last_end, top, top_end, deep, innermost, inside, kind, now, end, row, at
        cdef const uint8_t[::1] kinds
        cdef const int32_t[::1] threads
        cdef const int64_t[::1] times, finish, refs
        cdef int64_t[::1] ends, parents
        cdef int32_t[::1] depths
        count = self.count
        natural = self.natural
        numbered = self.numbered
        kinds = self.kind
        threads = self.thread
        times = self.time
        finish = self.finish
        refs = self.refs
        ends = self.end
        parents = self.parent
        depths = self.depth
        slice_row = self.slice_row
        end_row = self.end_row
        max_depth = self.max_depth
        index = 0
        thread = -1
        last = 0
        last_end = 0
        top = -1
        top_end = 0
        deep = 0
        innermost = -1
        inside = 0
        while index < count:
            kind = kinds[index]
            if kind < EVENT_DURATION_BEGIN:
                index += 1
                continue
            if kind > EVENT_DURATION_COMPLETE:
                if thread >= 0:
                    self.leave(thread, last, last_end, top, deep, innermost)
                    thread = -1
                self.slice_row = slice_row
                self.end_row = end_row
                if not self.operation(index, kind):
                    return index
                slice_row = self.slice_row
                end_row = self.end_row
                index += 1
                continue
            if threads[index] != thread:
                if thread >= 0:
                    self.leave(thread, last, last_end, top, deep, innermost)
                thread = threads[index]
                last = self.last[thread]
                last_end = self.last_end[thread]
                top = self.top[thread]
                deep = self.open_slices[thread]
                innermost = self.innermost[thread]
                if top >= 0:
                    top_end = ends[top]
            now = times[index]
            end = OPEN_END
            if kind == EVENT_DURATION_COMPLETE:
                end = finish[index]
                if end == OPEN_END:
                    end = OPEN_END - 1
            if natural:
                if now <= last:
                    if now < last or (kind == EVENT_DURATION_COMPLETE and end > last_end):
                        break
                else:
                    last = now
                    last_end = OPEN_END
                if kind != EVENT_DURATION_END:
                    last_end = end
            if kind == EVENT_DURATION_END:
                row = refs[index] if numbered else end_row
                end_row += 1
                inside = 0 if innermost >= 0 else -1
                if self.by_name and innermost >= 0:
                    inside = self.begun_inside(thread, innermost, index)
                if inside < 0:
                    self.note(END_WITHOUT_BEGIN, index)
                    self.ends[row] = -1
                else:
                    while inside > 0:
                        # It is never closed: neither it nor what encloses it has the end's name.
                        while top_end != OPEN_END:
                            top = parents[top]
                            deep -= 1
                            top_end = ends[top]
                        top = parents[top]
                        deep -= 1
                        top_end = ends[top]
                        innermost = self.forget(thread, innermost)
                        inside -= 1
                    # What ended by itself, and complete events that go on beyond the end of what
                    # encloses them: those end there.
                    while top >= 0 and top_end != OPEN_END:
                        top = parents[top]
                        deep -= 1
                        if top >= 0:
                            top_end = ends[top]
                    self.ends[row] = top
                    ends[top] = now
                    if now != OPEN_END:
                        self.unclosed -= 1
                    top = parents[top]
                    deep -= 1
                    if top >= 0:
                        top_end = ends[top]
                    innermost = self.close(thread, innermost, index)
                index += 1
                continue
            row = refs[index] if numbered else slice_row
            slice_row += 1
            # What is open has no end, though the last time there is looks like that.
            while top >= 0 and top_end <= now and top_end != OPEN_END:
                top = parents[top]
                deep -= 1
                if top >= 0:
                    top_end = ends[top]
            if top >= 0 and kind == EVENT_DURATION_COMPLETE and end > top_end:
                self.note(ENDS_AFTER_PARENT, index)
            parents[row] = top
            depths[row] = deep
            if deep > max_depth:
                depths[row] = max_depth
                self.note(TOO_DEEP, index)
            if end < now:
                self.note(ENDS_BEFORE_BEGIN, index)
                ends[row] = INVALID_END
            else:
                ends[row] = end
                top = row
                top_end = end
                deep += 1
                if kind == EVENT_DURATION_BEGIN:
                    self.unclosed += 1
                    at = self.place(index)
                    innermost = self.begins.push(innermost, self.name[at], self.category[at])
                    if self.by_name:
                        self.count_name(thread, self.name[at], 1)
            index += 1
        if thread >= 0:
            self.leave(thread, last, last_end, top, deep, innermost)
        self.slice_row = slice_row
        self.end_row = end_row
        return index if index < count else -1

    cdef int operation(self, int64_t index, int64_t kind) except -1 nogil:
        """Match an event of an operation or a flow. Return 0 if it steps back in time."""
        cdef int64_t fine
        if kind > EVENT_ASYNC_END:
            fine = self.enclose_flow(index)
            self.link(EVENT_FLOW_BEGIN, kind, index)
            return fine
        if kind != EVENT_ASYNC_END:
            self.link(EVENT_ASYNC_BEGIN, kind, index)
        return kind == EVENT_ASYNC_INSTANT or self.match_async(index, kind)

    cdef inline int leave(self, int64_t thread, int64_t last, int64_t last_end, int64_t top,
                          int64_t deep, int64_t innermost) except -1 nogil:
        """Keep what is open on a thread, and when its last event was."""
        self.last[thread] = last
        self.last_end[thread] = last_end
        self.top[thread] = top
        self.open_slices[thread] = deep
        self.innermost[thread] = innermost
        return 0

    cdef int64_t close(self, int64_t thread, int64_t begin, int64_t index) except? -9 nogil:
        """Close a begin by an end event; return the begin that encloses it."""
        cdef int64_t at, name, category
        at = self.place(index)
        name = self.name[at]
        category = self.category[at]
        if name != self.begins.name[begin] and self.differs(name, self.begins.name[begin]):
            self.note_texts(index, name, self.begins.name[begin], 0)
        elif category != self.begins.category[begin] and self.differs(
            category, self.begins.category[begin]
        ):
            self.note_texts(index, category, self.begins.category[begin], OF_CATEGORIES)
        return self.forget(thread, begin)

    cdef int note_texts(self, int64_t index, int64_t end, int64_t begin,
                        int64_t what) except -1 nogil:
        """Report that an end has another text than its begin, with the codes of both."""
        cdef int64_t value
        if self.notes.totals[ENDS_BY_ANOTHER_NAME] >= self.notes.limit:
            return self.note(ENDS_BY_ANOTHER_NAME, index)
        value = what | end << END_CODE_BITS | begin
        self.notes.add(ENDS_BY_ANOTHER_NAME, self.offset[self.place(index)], -1, value)
        return 0

    cdef int64_t forget(self, int64_t thread, int64_t begin) except? -9 nogil:
        """Take a begin from those that are open; return the begin that encloses it."""
        if self.by_name:
            self.count_name(thread, self.begins.name[begin], -1)
        return self.begins.pop(begin)

    cdef int count_name(self, int64_t thread, int64_t name, int64_t change) except -1 nogil:
        """Change the number of open begins of a name on a thread."""
        cdef int64_t key
        key = ANY_NAME if self.unnamed.get(name, 0) >= 0 else name
        return self.open_names.put(thread, key, max(self.open_names.get(thread, key), 0) + change)

    cdef int64_t begun_inside(self, int64_t thread, int64_t innermost,
                              int64_t index) noexcept nogil:
        """Return how many open begins are inside of the one that an end closes by its name.

        -1 if there is none of this name. An end without a name, or with one that nobody knows,
        closes the innermost begin; a begin with a name that nobody knows is closed by any end.
        """
        cdef int64_t name, inside
        name = self.name[self.place(index)]
        if name == 0 or self.unnamed.get(name, 0) >= 0:
            return 0
        # Looked up first, so that ends of unknown names do not go through all that is open.
        if self.open_names.get(thread, name) <= 0 and self.open_names.get(thread, ANY_NAME) <= 0:
            return -1
        inside = 0
        while self.begins.name[innermost] != name and self.differs(
            name, self.begins.name[innermost]
        ):
            innermost = self.begins.below[innermost]
            inside += 1
        return inside

    cdef inline int64_t place(self, int64_t index) noexcept nogil:
        """Return where the columns have the event that is being matched."""
        return index if self.natural else self.order[index]

    cdef inline int64_t ref(self, int64_t index, int64_t number) noexcept nogil:
        """Return the row or ordinal of an event; ``number`` counts those of its kind."""
        return self.refs[index] if self.numbered else number

    cdef int note(self, int64_t code, int64_t index) except -1 nogil:
        """Report a finding about an event."""
        if self.notes.totals[code] < self.notes.limit:
            self.notes.add(code, self.offset[self.place(index)], -1, 0)
        else:  # counted, without a call
            self.notes.totals[code] += 1
        return 0

    cdef int link(self, int64_t first, int64_t kind, int64_t index) except -1 nogil:
        """Note that an event of a kind has this id; ``first`` is the kind of what must begin it."""
        cdef int64_t number, found
        number = self.word[self.place(index)]
        found = self.links.get(first, number)
        if found < 0:
            found = self.offset[self.place(index)] << LINK_BITS
        return self.links.put(first, number, found | <int64_t>ONE << (kind - first))

    cdef bint differs(self, int64_t end, int64_t begin) noexcept nogil:
        """Return whether an end contradicts its begin: no text (code 0) says nothing."""
        return end != 0 and self.unnamed.get(end, 0) < 0 and self.unnamed.get(begin, 0) < 0

    cdef inline bint advance(self, int64_t thread, int64_t now) noexcept nogil:
        """Go on in time on a thread; False where that steps back."""
        if now < self.last[thread]:
            return False
        if now > self.last[thread]:
            self.last[thread] = now
            self.last_end[thread] = OPEN_END
        return True

    cdef int enclose_flow(self, int64_t index) except -1 nogil:
        """Give a point of a flow to the slice around it. Return 0 if it steps back in time."""
        cdef int64_t now, thread, row, top, deep
        now = self.time[index]
        thread = self.thread[index]
        if self.natural and not self.advance(thread, now):
            return 0
        row = self.ref(index, self.flow_row)
        self.flow_row += 1
        top = self.top[thread]
        deep = self.open_slices[thread]
        while top >= 0 and self.end[top] < now:
            top = self.parent[top]
            deep -= 1
        self.top[thread] = top
        self.open_slices[thread] = deep
        self.flows[row] = top
        return 1

    cdef int match_async(self, int64_t index, int64_t kind) except -1 nogil:
        """Begin or end an asynchronous slice. Return 0 if it steps back in time."""
        cdef int64_t now, row, operation, number, outer
        now = self.time[index]
        if self.natural:
            if now < self.last_async:
                return 0
            self.last_async = now
        row = self.ref(index, self.slice_row if kind == EVENT_ASYNC_BEGIN else self.end_row)
        operation = self.operations.number(
            self.pids[self.thread[index]], self.name[self.place(index)]
        )
        number = self.word[self.place(index)]
        # 1 + the row of the innermost open slice of the operation; 0 none.
        outer = self.open_async.get(operation, number) - 1
        if kind == EVENT_ASYNC_BEGIN:
            self.slice_row += 1
            self.parent[row] = -1
            self.depth[row] = 0
            if outer >= 0:
                self.parent[row] = outer
                self.depth[row] = min(self.depth[outer] + 1, self.max_depth)
            self.end[row] = OPEN_END
            self.unclosed += 1
            self.open_async.put(operation, number, row + 1)
            return 1
        self.end_row += 1
        if outer < 0:
            self.note(ASYNC_END_WITHOUT_BEGIN, index)
            self.ends[row] = -1
            return 1
        self.ends[row] = outer
        self.end[outer] = now
        if now != OPEN_END:
            self.unclosed -= 1
        self.open_async.put(operation, number, self.parent[outer] + 1)
        return 1


@cython.final
cdef class Placing(Loop):
    """Puts results of slices from ``first`` to ``stop``, in order of time, at their rows.

    ``found`` and ``spans`` have `end`, `parent` and `depth`, by place in that order and by row.
    Slices that nothing encloses are left as they are there.
    """

    cdef readonly const int64_t[::1] rows
    cdef readonly int64_t first
    cdef readonly int64_t stop
    cdef const int64_t[::1] found_end, found_parent
    cdef const int32_t[::1] found_depth
    cdef public int64_t[::1] end, parent
    cdef public int32_t[::1] depth

    def __init__(self, rows, first, stop, found, spans):
        self.rows = rows
        self.first = first
        self.stop = stop
        self.found_end = found["end"]
        self.found_parent = found["parent"]
        self.found_depth = found["depth"]
        self.end = spans["end"]
        self.parent = spans["parent"]
        self.depth = spans["depth"]

    cdef int64_t step(self) except? -9 nogil:
        """Put them in place."""
        cdef int64_t place, parent, row
        place = self.first
        while place < self.stop:
            parent = self.found_parent[place]
            if parent >= 0 or self.found_end[place] == INVALID_END:
                row = self.rows[place]
                self.end[row] = self.found_end[place]
                self.parent[row] = self.rows[parent] if parent >= 0 else -1
                self.depth[row] = self.found_depth[place]
            place += 1
        return 0


@cython.final
cdef class TiedRows(PassingRows):
    """Complete events that begin when others do, in order of time."""

    cdef public int64_t[::1] place, group, end

    COLUMNS = ("place", "i8"), ("group", "i8"), ("end", "i8")


@cython.final
cdef class Tied(Loop):
    """Puts complete events of a thread that begin at one time longest first, where that is easy.

    ``order`` and ``times``, in that order, are int64 of shape (events,). Those of one time and
    thread that are longest last are turned around. Of what is in another order, or between other
    events, ``found`` has the places in the order, a number for each time and thread, and the ends.
    """

    cdef int64_t[::1] order
    cdef public const int64_t[::1] times
    cdef readonly const uint8_t[::1] kinds
    cdef readonly const int32_t[::1] threads
    cdef const int64_t[::1] ends_of
    cdef readonly TiedRows found

    def __init__(self, order, times, columns):
        self.order = order
        self.times = times
        self.kinds = columns["kind"]
        self.threads = columns["thread"]
        self.ends_of = columns["finish"]
        self.found = TiedRows()

    cdef int64_t step(self) except? -9 nogil:
        """Find them, one time after the other."""
        cdef const int64_t[::1] times
        cdef int64_t last, group, row, after
        times = self.times
        last = len(times) - 1
        group = 0
        row = 0
        while row < last:
            after = row + 1
            if times[after] == times[row]:
                while after <= last and times[after] == times[row]:
                    after += 1
                if not self.turned(row, after):
                    group = self.add(row, after, group)
            row = after
        return group

    cdef bint turned(self, int64_t first, int64_t after) noexcept nogil:
        """Return whether events are longest first now, as all of one thread that were reversed."""
        cdef int64_t at, thread, end, longer, place
        at = self.order[first]
        thread = self.threads[at]
        end = self.ends_of[at]
        longer = 0
        place = first
        while place < after:
            at = self.order[place]
            if self.kinds[at] != EVENT_DURATION_COMPLETE or self.threads[at] != thread:
                return False
            longer += self.ends_of[at] > end
            end = self.ends_of[at]
            place += 1
        if longer and longer < after - first - 1:
            return False
        while longer and first < after:
            after -= 1
            at = self.order[first]
            self.order[first] = self.order[after]
            self.order[after] = at
            first += 1
        return True

    cdef int64_t add(self, int64_t row, int64_t after, int64_t group) except? -9 nogil:
        """Take in the complete events of one time; return the number that is next."""
        cdef int64_t most, at, number
        most = group
        while row < after:
            at = self.order[row]
            if self.kinds[at] == EVENT_DURATION_COMPLETE:
                number = self.found.rows
                if number == self.found.room:
                    self.found.widen()
                self.found.place[number] = row
                self.found.group[number] = group + self.threads[at]
                self.found.end[number] = self.ends_of[at]
                self.found.rows = number + 1
                most = max(most, group + self.threads[at] + 1)
            row += 1
        return most


@cython.final
cdef class Durations(Loop):
    """Lengths of slices in ns: ``end`` less ``time``, -1 where a slice was never closed.

    A slice that ends before it begins has no length, 0. One that does not fit 63 bits is the
    greatest that does.
    """

    cdef public const int64_t[::1] end
    cdef readonly const int64_t[::1] time
    cdef int64_t[::1] out
    cdef public int64_t count

    def __init__(self, time, end, out):
        self.time = time
        self.end = end
        self.out = out
        self.count = len(self.out)

    cdef int64_t step(self) except? -9 nogil:
        """Fill ``out``."""
        cdef int64_t row, end, start
        row = 0
        while row < self.count:
            end = self.end[row]
            start = self.time[row]
            if end == OPEN_END:
                self.out[row] = -1
            elif end == INVALID_END:
                self.out[row] = 0
            elif start < 0 and end > OPEN_END + start:
                self.out[row] = OPEN_END
            else:
                self.out[row] = end - start
            row += 1
        return 0
