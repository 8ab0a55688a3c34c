"""The match: which begin an end closes, what encloses a slice, and how deep it is.

It adds no rows: those of events come from ``scan.py``, and ``batches.py`` picks the slices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from fx_trace.format import (
    END_CODE_BITS,
    EVENT_ASYNC_BEGIN,
    EVENT_ASYNC_END,
    EVENT_ASYNC_INSTANT,
    EVENT_DURATION_BEGIN,
    EVENT_DURATION_COMPLETE,
    EVENT_DURATION_END,
    EVENT_FLOW_BEGIN,
    INVALID_END,
    LINK_BITS,
    OF_CATEGORIES,
    OPEN_END,
)
from fx_trace.rules import (
    ASYNC_END_WITHOUT_BEGIN,
    END_WITHOUT_BEGIN,
    ENDS_AFTER_PARENT,
    ENDS_BEFORE_BEGIN,
    ENDS_BY_ANOTHER_NAME,
    TOO_DEEP,
)
from fxframework.kernels.annotations import (
    Array,
    Bytes,
    Column,
    Fallible,
    View,
    flag,
    i32,
    i64,
    inline,
    status,
    with_gil,
)
from fxframework.kernels.buffers import full, room
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.maps import PairMap
from fxframework.kernels.notes import Notes
from fxframework.kernels.rows import Rows

__all__ = ["Durations", "Match"]

ONE = 1
ANY_NAME = -1
"""Stands for the names of begins that nobody knows."""


class PassingRows(Rows):
    """Rows that do not stay for long, of which there may be many."""

    @with_gil
    def widen(self) -> status:
        """Increase the room to four times as much; what is not used of it takes no memory."""
        self.resize(4 * self.room)
        return 0


@final
class OpenBegins(PassingRows):
    """Name and category of each duration begin that is open; ``below``: the one that encloses it.

    What is closed makes room for the next.
    """

    name: Column[i32]
    category: Column[i32]
    below: Column[i64]
    free: i64

    def __init__(self) -> None:
        super().__init__(64)
        self.free = -1

    @inline
    def push(self, top: i64, name: i64, category: i64) -> Fallible[i64]:
        """Open one inside ``top``; return its number."""
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

    @inline
    def pop(self, top: i64) -> i64:
        """Close the innermost one; return the one that encloses it."""
        below = self.below[top]
        self.below[top] = self.free
        self.free = top
        return below


class Match(Kernel):
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

    notes: Notes
    max_depth: i64
    by_name: flag
    count: i64
    slice_row: i64
    end_row: i64
    flow_row: i64
    last_async: i64
    unclosed: i64
    natural: flag
    numbered: flag
    kind: Bytes
    thread: View[i32]
    time: View[i64]
    finish: View[i64]
    order: View[i64]
    name: View[i32]
    category: View[i32]
    offset: View[i64]
    word: View[i64]
    refs: View[i64]
    pids: View[i64]
    end: Array[i64]
    parent: Array[i64]
    ends: Array[i64]
    flows: Array[i64]
    depth: Array[i32]
    threads: i64
    top: Array[i64]
    open_slices: Array[i64]
    last: Array[i64]
    last_end: Array[i64]
    innermost: Array[i64]
    begins: OpenBegins
    operations: PairMap
    open_async: PairMap
    open_names: PairMap
    unnamed: PairMap
    links: PairMap

    def __init__(self, notes: Notes, max_depth: int, unnamed: PairMap, *, by_name: bool) -> None:
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

    def take(
        self, columns: Mapping[str, Any], pids: Any, order: Any = None, refs: Any = None
    ) -> None:
        """Set the events that ``run`` matches, by columns of ``EventRows``, `time` and `finish`.

        ``order`` (int64), if given, are their places in order of time, in which `kind`, `thread`,
        `time` and `finish` already are. ``refs`` (int64), if given, are the rows and ordinals of
        these events; without, they are numbered as they come.
        """
        self.natural = order is None
        self.numbered = refs is not None
        self.order = room(0, "i8") if order is None else memoryview(order)
        self.refs = room(0, "i8") if refs is None else memoryview(refs)
        self.count = len(columns["time"])
        self.kind = memoryview(columns["kind"])
        self.thread = memoryview(columns["thread"])
        self.time = memoryview(columns["time"])
        self.finish = memoryview(columns["finish"])
        self.name = memoryview(columns["name"])
        self.category = memoryview(columns["category"])
        self.offset = memoryview(columns["offset"])
        self.word = memoryview(columns["word"])
        self.pids = memoryview(pids)

    def make_room(self, threads: int, spans: Mapping[str, Any]) -> None:
        """Take arrays that are long enough for all slices, ends, flows and threads so far."""
        self.end = memoryview(spans["end"])
        self.parent = memoryview(spans["parent"])
        self.depth = memoryview(spans["depth"])
        self.ends = memoryview(spans["ends"])
        self.flows = memoryview(spans["flows"])
        if threads > len(self.top):
            size = max(threads, 2 * len(self.top))
            used = self.threads
            for name, value in (
                ("top", -1),
                ("open_slices", 0),
                ("last", INVALID_END),
                ("last_end", OPEN_END),
                ("innermost", -1),
            ):
                longer = full(size, "i8", value)
                longer[:used] = getattr(self, name)[:used]
                setattr(self, name, longer)
        self.threads = threads

    def step(self) -> Fallible[i64]:
        """Match the events; see the class.

        Arrays are local, and so is what is open on a thread as long as events on it begin and end
        durations: C reaches that in fewer steps.
        """
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

    def operation(self, index: i64, kind: i64) -> status:
        """Match an event of an operation or a flow. Return 0 if it steps back in time."""
        if kind > EVENT_ASYNC_END:
            fine = self.enclose_flow(index)
            self.link(EVENT_FLOW_BEGIN, kind, index)
            return fine
        if kind != EVENT_ASYNC_END:
            self.link(EVENT_ASYNC_BEGIN, kind, index)
        return kind == EVENT_ASYNC_INSTANT or self.match_async(index, kind)

    @inline
    def leave(
        self, thread: i64, last: i64, last_end: i64, top: i64, deep: i64, innermost: i64
    ) -> status:
        """Keep what is open on a thread, and when its last event was."""
        self.last[thread] = last
        self.last_end[thread] = last_end
        self.top[thread] = top
        self.open_slices[thread] = deep
        self.innermost[thread] = innermost
        return 0

    def close(self, thread: i64, begin: i64, index: i64) -> Fallible[i64]:
        """Close a begin by an end event; return the begin that encloses it."""
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

    def note_texts(self, index: i64, end: i64, begin: i64, what: i64) -> status:
        """Report that an end has another text than its begin, with the codes of both."""
        if self.notes.totals[ENDS_BY_ANOTHER_NAME] >= self.notes.limit:
            return self.note(ENDS_BY_ANOTHER_NAME, index)
        value = what | end << END_CODE_BITS | begin
        self.notes.add(ENDS_BY_ANOTHER_NAME, self.offset[self.place(index)], -1, value)
        return 0

    def forget(self, thread: i64, begin: i64) -> Fallible[i64]:
        """Take a begin from those that are open; return the begin that encloses it."""
        if self.by_name:
            self.count_name(thread, self.begins.name[begin], -1)
        return self.begins.pop(begin)

    def count_name(self, thread: i64, name: i64, change: i64) -> status:
        """Change the number of open begins of a name on a thread."""
        key = ANY_NAME if self.unnamed.get(name, 0) >= 0 else name
        return self.open_names.put(thread, key, max(self.open_names.get(thread, key), 0) + change)

    def begun_inside(self, thread: i64, innermost: i64, index: i64) -> i64:
        """Return how many open begins are inside of the one that an end closes by its name.

        -1 if there is none of this name. An end without a name, or with one that nobody knows,
        closes the innermost begin; a begin with a name that nobody knows is closed by any end.
        """
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

    @inline
    def place(self, index: i64) -> i64:
        """Return where the columns have the event that is being matched."""
        return index if self.natural else self.order[index]

    @inline
    def ref(self, index: i64, number: i64) -> i64:
        """Return the row or ordinal of an event; ``number`` counts those of its kind."""
        return self.refs[index] if self.numbered else number

    def note(self, code: i64, index: i64) -> status:
        """Report a finding about an event."""
        if self.notes.totals[code] < self.notes.limit:
            self.notes.add(code, self.offset[self.place(index)], -1, 0)
        else:  # counted, without a call
            self.notes.totals[code] += 1
        return 0

    def link(self, first: i64, kind: i64, index: i64) -> status:
        """Note that an event of a kind has this id; ``first`` is the kind of what must begin it."""
        number = self.word[self.place(index)]
        found = self.links.get(first, number)
        if found < 0:
            found = self.offset[self.place(index)] << LINK_BITS
        return self.links.put(first, number, found | ONE << (kind - first))

    def differs(self, end: i64, begin: i64) -> flag:
        """Return whether an end contradicts its begin: no text (code 0) says nothing."""
        return end != 0 and self.unnamed.get(end, 0) < 0 and self.unnamed.get(begin, 0) < 0

    @inline
    def advance(self, thread: i64, now: i64) -> flag:
        """Go on in time on a thread; False where that steps back."""
        if now < self.last[thread]:
            return False
        if now > self.last[thread]:
            self.last[thread] = now
            self.last_end[thread] = OPEN_END
        return True

    def enclose_flow(self, index: i64) -> status:
        """Give a point of a flow to the slice around it. Return 0 if it steps back in time."""
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

    def match_async(self, index: i64, kind: i64) -> status:
        """Begin or end an asynchronous slice. Return 0 if it steps back in time."""
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


class Placing(Kernel):
    """Puts results of slices from ``first`` to ``stop``, in order of time, at their rows.

    ``found`` and ``spans`` have `end`, `parent` and `depth`, by place in that order and by row.
    Slices that nothing encloses are left as they are there.
    """

    rows: View[i64]
    first: i64
    stop: i64
    found_end: View[i64]
    found_parent: View[i64]
    found_depth: View[i32]
    end: Array[i64]
    parent: Array[i64]
    depth: Array[i32]

    def __init__(
        self, rows: Any, first: int, stop: int, found: Mapping[str, Any], spans: Mapping[str, Any]
    ) -> None:
        self.rows = memoryview(rows)
        self.first = first
        self.stop = stop
        self.found_end = memoryview(found["end"])
        self.found_parent = memoryview(found["parent"])
        self.found_depth = memoryview(found["depth"])
        self.end = memoryview(spans["end"])
        self.parent = memoryview(spans["parent"])
        self.depth = memoryview(spans["depth"])

    def step(self) -> Fallible[i64]:
        """Put them in place."""
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


@final
class TiedRows(PassingRows):
    """Complete events that begin when others do, in order of time."""

    place: Column[i64]
    group: Column[i64]
    end: Column[i64]


class Tied(Kernel):
    """Puts complete events of a thread that begin at one time longest first, where that is easy.

    ``order`` and ``times``, in that order, are int64 of shape (events,). Those of one time and
    thread that are longest last are turned around. Of what is in another order, or between other
    events, ``found`` has the places in the order, a number for each time and thread, and the ends.
    """

    order: Array[i64]
    times: View[i64]
    kinds: Bytes
    threads: View[i32]
    ends_of: View[i64]
    found: TiedRows

    def __init__(self, order: Any, times: Any, columns: Mapping[str, Any]) -> None:
        self.order = memoryview(order)
        self.times = memoryview(times)
        self.kinds = memoryview(columns["kind"])
        self.threads = memoryview(columns["thread"])
        self.ends_of = memoryview(columns["finish"])
        self.found = TiedRows()

    def step(self) -> Fallible[i64]:
        """Find them, one time after the other."""
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

    def turned(self, first: i64, after: i64) -> flag:
        """Return whether events are longest first now, as all of one thread that were reversed."""
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

    def add(self, row: i64, after: i64, group: i64) -> Fallible[i64]:
        """Take in the complete events of one time; return the number that is next."""
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


class Durations(Kernel):
    """Lengths of slices in ns: ``end`` less ``time``, -1 where a slice was never closed.

    A slice that ends before it begins has no length, 0. One that does not fit 63 bits is the
    greatest that does.
    """

    time: View[i64]
    end: View[i64]
    out: Array[i64]
    count: i64

    def __init__(self, time: Any, end: Any, out: Any) -> None:
        self.time = memoryview(time)
        self.end = memoryview(end)
        self.out = memoryview(out)
        self.count = len(self.out)

    def step(self) -> Fallible[i64]:
        """Fill ``out``."""
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
