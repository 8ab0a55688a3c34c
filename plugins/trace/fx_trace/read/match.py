"""The match: which begin an end closes, what encloses a slice or a point of a flow, how deep it is.

``fxframework.kernels.nesting`` nests; here is what nests in what: durations and flows by thread,
asynchronous slices by operation and id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.meaning import IS_ROW_OF, E, are_rows_of, counts_of
from fx_trace.read.blocks import Pairs
from fx_trace.read.steps_back import StepsBack
from fxframework.errors import Rule
from fxframework.io import arena
from fxframework.io.spill import Spill
from fxframework.kernels.arrays import I64, Bools
from fxframework.kernels.buffers import gathered
from fxframework.kernels.nesting import ANY_NAME, BEGIN, END, OTHER, SPAN, Nesting
from fxframework.kernels.pools import PairMap
from fxframework.kernels.sorting import begins_of_runs, stable_order
from fxframework.model.strings import StringPool
from fxframework.wire.findings import Findings, FoundAt

KINDS: Final = 256
"""More than there are types of events."""
WHAT: Final = np.full(KINDS, OTHER, np.uint8)
"""What an event is to the nesting, by its type."""
WHAT[[E.DURATION_BEGIN, E.ASYNC_BEGIN]] = BEGIN
WHAT[[E.DURATION_END, E.ASYNC_END]] = END
WHAT[E.DURATION_COMPLETE] = SPAN
IS_OPERATION: Final = np.zeros(KINDS, np.bool_)
"""By type of event, whether it begins or ends an asynchronous slice."""
IS_OPERATION[[E.ASYNC_BEGIN, E.ASYNC_END]] = True
IS_ON_THREAD: Final = IS_ROW_OF["slices"] | IS_ROW_OF["ends"] | IS_ROW_OF["flows"]
"""By type of event, whether it nests among those of its thread."""
IS_ON_THREAD[IS_OPERATION] = False
TABLE_OF_SPANS: Final = {
    "end": "slices", "parent": "slices", "depth": "slices", "ends": "ends", "flows": "flows",
}  # fmt: skip
"""Results of matching, and what has a value of them each."""
BLOCK: Final = 1 << 17
"""Rows that are looked at together."""
NO_NAME: Final = 0
"""The code of a text that an event does not have."""
PAIRED_BITS: Final = 32
PAIRED: Final = 1 << PAIRED_BITS
"""The factor of the first of two numbers that are one: the second is less."""


class Events:
    """Events in the order in which they are matched.

    Columns are those of raw rows (``meaning.COLUMNS``). ``index`` has the places of the events in
    them; None means all. ``known`` are columns of the events themselves, ``row`` among them: the
    row of a slice or of a point of a flow, and the number of an end.
    """

    def __init__(
        self,
        columns: Mapping[str, NDArray[Any]],
        index: I64 | None,
        known: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        self.columns = columns
        self.index = index
        self.known = dict(known or {})
        self.picks: I64 | None = None
        """Of events that were ``picked``, their places among the others; None: these are all."""

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.known:
            column = self.columns[name]
            if self.index is not None:
                column = gathered(column, self.index)
            self.known[name] = column
        return self.known[name]

    def at(self, name: str, places: I64) -> NDArray[Any]:
        """Return the values of a column at some places among the events."""
        if name in self.known:
            return self.known[name][places]
        if self.index is not None:
            places = self.index[places]
        return self.columns[name][places]

    def picked(self, places: I64) -> Events:
        """Return the events at some places."""
        index = places if self.index is None else self.index[places]
        known = {name: column[places] for name, column in self.known.items()}
        picked_events = Events(self.columns, index, known)
        picked_events.picks = places
        return picked_events

    def place(self, places: Any) -> Any:
        """Return the places of some of these events among those that they were picked from."""
        return places if self.picks is None else self.picks[places]


class Spans:
    """What matching finds, in memory or, once they are long, in files.

    By row of `slices`: ``end`` (in ns, or ``format.OPEN_END`` or ``INVALID_END``), ``parent`` and
    ``depth``; by number of an end event: ``ends``, the slice that it closes; by row of `flows`:
    ``flows``, the slice around the point. -1 means none.
    """

    end: I64
    parent: I64
    depth: NDArray[np.int32]
    ends: I64
    flows: I64

    def __init__(self, *, in_memory: bool) -> None:
        self._columns = {
            name: Spill(np.int32 if name == "depth" else np.int64, in_memory=in_memory)
            for name in TABLE_OF_SPANS
        }
        for name, column in self._columns.items():
            setattr(self, name, column.array)

    def begin(
        self,
        columns: Mapping[str, NDArray[Any]],
        first: Mapping[str, int],
        room: Callable[[int], int] = int,
    ) -> None:
        """Make room for events with rows from ``first`` on, as they are if nothing encloses them.

        ``room`` says for how many rows there should be room if so many are needed now.
        """
        kind = columns["kind"]
        counts = counts_of(kind)
        rows: dict[str, slice] = {}
        for name, table in TABLE_OF_SPANS.items():
            count = int(counts[IS_ROW_OF[table]].sum())
            stop = first[table] + count
            rows[name] = slice(first[table], stop)
            column = self._columns[name]
            if column.array.size < stop:
                setattr(self, name, column.grow(room(stop)))
        self.parent[rows["parent"]] = -1
        self.depth[rows["depth"]] = 0
        self.ends[rows["ends"]] = -1
        self.flows[rows["flows"]] = -1
        ends = self.end[rows["end"]]
        if counts[E.DURATION_COMPLETE] < kind.size:
            ends[:] = wire.OPEN_END
        if counts[E.DURATION_COMPLETE]:
            # Of a slice that ends before it begins, the end is not one.
            finish = known_ends(columns["finish"])
            is_reversed = finish < columns["time"]
            if is_reversed.any():
                finish = np.where(is_reversed, wire.INVALID_END, finish)
            if counts[E.DURATION_COMPLETE] == kind.size:
                ends[:] = finish
            else:
                is_complete = kind == E.DURATION_COMPLETE
                is_slice = are_rows_of("slices", kind)
                ends[is_complete[is_slice]] = finish[is_complete]

    def open_rows(self, slices: int, most: int) -> I64:
        """Return the first ``most`` rows of slices that were never closed."""
        rows_left = most
        parts = [np.zeros(0, np.int64)]
        for first in range(0, slices, BLOCK):
            if not rows_left:
                break
            ends = self.end[first : min(first + BLOCK, slices)]
            rows = np.flatnonzero(ends == wire.OPEN_END)[:rows_left]
            parts.append(rows + first)
            rows_left -= rows.size
            self.release()
        return np.concatenate(parts)

    def release(self) -> None:
        """Release what is in files from memory."""
        for column in self._columns.values():
            column.release()


def known_ends(finish: I64) -> I64:
    """Return the ends of complete events: the last time there is would mean that one is open."""
    if finish.max(initial=0) < wire.OPEN_END:
        return finish
    return np.minimum(finish, wire.OPEN_END - 1)


def durations(times: I64, ends: I64) -> I64:
    """Return the lengths of slices in ns: -1 where a slice was never closed.

    One that ends before it begins has no length, 0. One that does not fit 63 bits is the greatest
    that does.
    """
    lengths: I64 = arena.empty(times.size, np.int64)
    np.subtract(ends, times, out=lengths)
    lengths[lengths < 0] = wire.OPEN_END  # the difference has wrapped
    lengths[ends == wire.INVALID_END] = 0
    lengths[ends == wire.OPEN_END] = -1
    return lengths


class Ids:
    """The ids of flows or of asynchronous events, and which kinds of events there are of each."""

    def __init__(self) -> None:
        self._numbers = PairMap()
        self._offsets = Spill(np.int64, in_memory=True)
        """Of the first event of each id."""
        self._is_begun = Spill(np.bool_, in_memory=True)
        self._is_ended = Spill(np.bool_, in_memory=True)

    def add(self, ids: I64, offsets: I64, is_begin: Bools, is_end: Bools) -> None:
        """Take in events by their ids, all of shape (events,)."""
        count = self._numbers.count
        numbers = self._numbers.enter(ids)
        total = self._numbers.count
        begun = self._is_begun.grow(total)
        ended = self._is_ended.grow(total)
        begun[count:total] = False
        ended[count:total] = False
        begun[numbers[is_begin]] = True
        ended[numbers[is_end]] = True
        # From the last event of an id to the first, which then holds.
        of_new_ids = np.flatnonzero(numbers >= count)[::-1]
        self._offsets.grow(total)[numbers[of_new_ids]] = offsets[of_new_ids]

    def first_offsets(self, *, begun: bool, ended: bool = False) -> I64:
        """Return the offsets of the first events of ids which were begun or not, and not ended.

        Where none was begun, it does not matter which were ended.
        """
        count = self._numbers.count
        is_wanted = self._is_begun.array[:count] == begun
        if begun:
            is_wanted = is_wanted & (self._is_ended.array[:count] == ended)
        return np.sort(self._offsets.array[:count][is_wanted])


class Match:
    """Nests the slices of events that ``take`` gives it, in file order or in order of time.

    An end closes the innermost slice that a begin opened; ``by_name``, the innermost one of its
    name, and what was begun inside is never closed. Asynchronous slices are matched by process,
    name and id; ``by_id``, by the id alone. ``unnamed`` are the codes of the
    texts of strings that nobody registered, which may be any name. ``unclosed`` counts slices that
    no event has ended.
    """

    def __init__(
        self,
        findings: Findings,
        max_depth: int,
        *,
        by_name: bool,
        in_order: bool,
        by_id: bool = False,
    ) -> None:
        self.findings = findings
        self.unclosed = 0
        self.unnamed = np.zeros(0, np.int64)
        self.flows = Ids()
        self.operations = Ids()
        self._max_depth = max_depth
        self._by_name = by_name
        self._by_id = by_id
        self._in_order = in_order
        self._on_threads = Nesting(0, values=1, any_name=True)
        self._steps_back = StepsBack() if in_order else None
        self._of_operations = Nesting(0, any_name=True)
        self._operations = Pairs()
        self._operation_ids = Pairs()
        self._operation_numbers = PairMap()
        self._last_operation = wire.INVALID_END
        """The time of the last event that began or ended an asynchronous slice."""

    def take(self, events: Events, spans: Spans, pids: I64) -> int:
        """Match events, and put what is found into ``spans``, at their rows.

        ``pids`` are the processes of threads. If events are in file order, return the first that
        steps back in time: then what is found from it on is void. -1 if there is none.
        """
        kind = events["kind"]
        counts = counts_of(kind)
        if counts[E.ASYNC_BEGIN : E.FLOW_END + 1].any():
            self._add_ids(events)
        begin_count = counts[E.DURATION_BEGIN] + counts[E.ASYNC_BEGIN]
        self.unclosed += int(begin_count)
        findings: list[FoundAt] = []
        steps_back: list[int] = []
        for has_kind, take_kinds in (
            (IS_OPERATION, self._take_operations),
            (IS_ON_THREAD, self._take_on_threads),
        ):
            count = int(counts[has_kind].sum())
            if not count:
                continue
            picked_events = events
            if count < kind.size:
                picked_events = events.picked(np.flatnonzero(has_kind[kind]))
            first_back, picked_findings = take_kinds(picked_events, spans, pids)
            if first_back >= 0:
                steps_back.append(int(picked_events.place(first_back)))
            # Findings of both kinds are listed in the order of all events.
            findings += [
                finding._replace(events=picked_events.place(finding.events))
                for finding in picked_findings
            ]
        self.findings.add_found(findings)
        return min(steps_back, default=-1)

    def _add_ids(self, events: Events) -> None:
        """Take in which ids events have; an asynchronous end alone does not count."""
        kind = events["kind"]
        is_flow = are_rows_of("flows", kind)
        is_operation = (kind == E.ASYNC_BEGIN) | (kind == E.ASYNC_INSTANT)
        for ids, is_of_kind in ((self.flows, is_flow), (self.operations, is_operation)):
            places = np.flatnonzero(is_of_kind)
            kinds = kind[places]
            is_begin = (kinds == E.FLOW_BEGIN) | (kinds == E.ASYNC_BEGIN)
            offsets = events.at("offset", places)
            ids.add(events.at("word", places), offsets, is_begin, kinds == E.FLOW_END)

    def _take_operations(
        self, events: Events, spans: Spans, pids: I64
    ) -> tuple[int, list[FoundAt]]:
        """Match what begins and ends asynchronous slices: those of an operation and an id nest."""
        times = events["time"]
        steps_back = -1
        if self._in_order:
            earlier = np.append(self._last_operation, times[:-1])
            is_back = np.flatnonzero(times < earlier)
            steps_back = int(is_back[0]) if is_back.size else -1
            self._last_operation = int(times[-1])
        operations: I64 = np.zeros(times.size, np.int64)
        if not self._by_id:
            # An operation is a name within a process.
            processes = pids[events["thread"]]
            operations = self._operations.enter(processes, events["name"].astype(np.int64))
        keys = self._operation_ids.enter(operations, np.ascontiguousarray(events["word"]))
        numbers = self._operation_numbers.enter(keys).astype(np.int32)
        nesting = self._of_operations
        nesting.make_threads(self._operation_numbers.count)
        what = WHAT.take(events["kind"])
        nesting.nest(what, numbers, any_names(numbers.size), rows=events["row"])
        ends = self._put(nesting, events, spans, slices_inside(nesting, events))
        unmatched = ends[nesting.closes[ends] < 0]
        nesting.release()
        return steps_back, [found_at(events, rules.ASYNC_END_WITHOUT_BEGIN, unmatched)]

    def _take_on_threads(
        self, events: Events, spans: Spans, pids: I64
    ) -> tuple[int, list[FoundAt]]:
        """Match durations, and points of flows, which are in the durations of their thread."""
        kind = events["kind"]
        is_end = kind == E.DURATION_END
        is_span = kind == E.DURATION_COMPLETE
        what = WHAT.take(kind)
        texts = None
        names = any_names(kind.size)
        if is_end.any() or (kind == E.DURATION_BEGIN).any():
            # Both codes as one number: nearly always, those of an end are those of its begin.
            # Of Chrome JSON, what there is not has the code -1.
            texts = np.maximum(events["category"], NO_NAME).astype(np.int64)
            texts <<= PAIRED_BITS
            texts += np.maximum(events["name"], NO_NAME)
            if self._by_name:
                names = self._names_to_match(events["name"], is_end)
        finish = known_ends(events["finish"]) if is_span.any() else None
        if self._steps_back is not None:
            columns = (what, events["thread"], events["time"], finish)
            first_back = self._steps_back.first(*columns, pids.size)
            if first_back >= 0:
                return first_back, []
        nesting = self._on_threads
        nesting.make_threads(pids.size)
        values = None if texts is None else texts[:, None]
        nesting.nest(what, events["thread"], names, values, events["time"], finish, events["row"])
        findings: list[FoundAt] = []
        inside = slices_inside(nesting, events)
        if finish is not None:
            # Of a slice that was begun, the end is not known yet: it does not end before another.
            spans_inside = inside if is_span.all() else inside[is_span[inside]]
            end_around = spans.end[nesting.parents[spans_inside]]
            crossing = spans_inside[finish[spans_inside] > end_around]
            findings.append(found_at(events, rules.ENDS_AFTER_PARENT, crossing))
        ends = self._put(nesting, events, spans, inside)
        if nesting.depths.max() > self._max_depth:
            deep = inside[nesting.depths[inside] > self._max_depth]
            findings.append(found_at(events, rules.TOO_DEEP, deep))
        if finish is not None:
            is_reversed = is_span & (finish < events["time"])
            findings.append(found_at(events, rules.ENDS_BEFORE_BEGIN, np.flatnonzero(is_reversed)))
        if texts is not None:
            is_closed = nesting.closes[ends] >= 0
            findings.append(found_at(events, rules.END_WITHOUT_BEGIN, ends[~is_closed]))
            closing = ends[is_closed]
            begin_texts = nesting.values[closing, 0]
            findings.append(self._other_texts(events, closing, texts[closing], begin_texts))
        nesting.release()
        return -1, findings

    def _names_to_match(self, names: NDArray[np.int32], is_end: Bools) -> NDArray[np.uint32]:
        """Return the names by which ends close slices; those that say nothing match all."""
        is_any = is_end & (names == NO_NAME)
        if self.unnamed.size:
            is_any |= np.isin(names, self.unnamed)
        return np.where(is_any, np.uint32(ANY_NAME), names.view(np.uint32))

    def _put(self, nesting: Nesting, events: Events, spans: Spans, inside: I64) -> I64:
        """Put what was found into the rows of events; return the places of the ends among them.

        ``inside`` are those of slices in others.
        """
        kind = events["kind"]
        row = events["row"]
        self._put_slices(nesting, events, spans, inside)
        ends = np.flatnonzero(are_rows_of("ends", kind))
        closes = nesting.closes[ends]
        spans.ends[self._in_row(row[ends])] = closes
        is_closed = closes >= 0
        times = events["time"][ends[is_closed]]
        spans.end[closes[is_closed]] = times
        # The last time there is looks like that of a slice without an end.
        self.unclosed -= int(np.count_nonzero(times != wire.OPEN_END))
        if spans.flows.size:
            flows = np.flatnonzero(are_rows_of("flows", kind))
            spans.flows[row[flows]] = nesting.parents[flows]
        return ends

    def _put_slices(self, nesting: Nesting, events: Events, spans: Spans, inside: I64) -> None:
        """Put parents and depths of slices into their rows; ``inside`` are those that have some."""
        row = events["row"]
        if self._in_order and inside.size:
            slices: Any = np.flatnonzero(are_rows_of("slices", events["kind"]))
            rows = self._in_row(row[slices])
            if isinstance(rows, slice):
                if slices.size == row.size:
                    slices = slice(None)
                spans.parent[rows] = nesting.parents[slices]
                depth = spans.depth[rows]
                np.minimum(nesting.depths[slices], self._max_depth, out=depth, casting="unsafe")
                return
        rows_inside = row[inside]
        spans.parent[rows_inside] = nesting.parents[inside]
        spans.depth[rows_inside] = np.minimum(nesting.depths[inside], self._max_depth)

    def _in_row(self, rows: I64) -> Any:
        """Return rows of events as a slice, if they follow one another, which takes less time."""
        # In the order of the file rows ascend.
        if not self._in_order or not rows.size:
            return rows
        first_row = int(rows[0])
        end_row = first_row + rows.size
        return slice(first_row, end_row) if rows[-1] == end_row - 1 else rows

    def _other_texts(self, events: Events, ends: I64, texts: I64, begin_texts: I64) -> FoundAt:
        """Report ends with another name than their begin, or else with another category.

        An end without a text says nothing, nor does the text of a string that nobody registered.
        """
        differing = np.flatnonzero(texts != begin_texts)
        ends = ends[differing]
        texts = texts[differing]
        begin_texts = begin_texts[differing]
        is_known = np.ones(differing.size, np.bool_)
        values = np.full(differing.size, -1)
        # Categories first: where both differ, the names are reported.
        pairs = zip(np.divmod(texts, PAIRED), np.divmod(begin_texts, PAIRED), strict=True)
        for what, (codes, begin_codes) in zip((wire.OF_CATEGORIES, 0), pairs, strict=True):
            is_other = (codes != begin_codes) & (codes != NO_NAME)
            if self.unnamed.size:
                is_unnamed = np.isin(codes, self.unnamed) | np.isin(begin_codes, self.unnamed)
                is_known = ~is_unnamed
            reported = np.flatnonzero(is_other & is_known)
            values[reported] = what + codes[reported] * wire.END_CODE + begin_codes[reported]
        is_reported = values >= 0
        return found_at(events, rules.ENDS_BY_ANOTHER_NAME, ends[is_reported], values[is_reported])


def other_text_detail(value: int, strings: StringPool) -> str:
    """Return what a finding says about an end with another text than its begin, by its value."""
    end_code, begin_code = divmod(value % wire.OF_CATEGORIES, wire.END_CODE)
    is_category = value >= wire.OF_CATEGORIES
    return rules.another_name_detail(strings[end_code], strings[begin_code], is_category)


def slices_inside(nesting: Nesting, events: Events) -> I64:
    """Return the places of slices that were found to be in others."""
    is_inside = nesting.parents >= 0
    is_inside &= are_rows_of("slices", events["kind"])
    return np.flatnonzero(is_inside)


def any_names(count: int) -> NDArray[np.uint32]:
    """Return names with which each end closes the innermost slice."""
    return np.full(count, ANY_NAME, np.uint32)


def found_at(events: Events, rule: Rule, places: I64, values: I64 | int = 0) -> FoundAt:
    """Return findings about some events."""
    return FoundAt(int(rule), places, events.at("offset", places), values)


def longest_first(order: I64, times: I64, columns: Mapping[str, NDArray[Any]]) -> None:
    """Put the complete events of a thread that begin at one time longest first, in place.

    ``order`` are events by time, ``times`` their times, both of shape (events,). They stay in the
    places that complete events of that thread had; equally long ones keep their order.
    """
    places = tied_places(order, times, columns["kind"])
    if not places.size:
        return
    events = gathered(order, places)
    # One number for a moment on a thread: neither fills 31 bits.
    begins = begins_of_runs(gathered(times, places))
    group: I64 = np.cumsum(begins, dtype=np.int64)
    group *= PAIRED
    group += gathered(columns["thread"], events)
    ends = gathered(columns["finish"], events)
    is_same_group = group[1:] == group[:-1]
    is_longer = is_same_group & (ends[1:] > ends[:-1])
    if not is_longer.any() and bool((group[1:] >= group[:-1]).all()):
        return
    # Of a greater end the complement is less, however great it is.
    np.invert(ends, out=ends)
    events = ordered(events, ends, group)
    order[ordered(places, group)] = events


def tied_places(order: I64, times: I64, kinds: NDArray[np.uint8]) -> I64:
    """Return the places in ``order`` of complete events that begin when another event does."""
    is_same = times[1:] == times[:-1]
    if not is_same.any():
        return np.zeros(0, np.int64)
    is_tied = np.append(is_same, False)
    is_tied[1:] |= is_same
    places = np.flatnonzero(is_tied)
    is_complete = gathered(kinds, gathered(order, places)) == E.DURATION_COMPLETE
    return places if is_complete.all() else places[is_complete]


def ordered(values: I64, *keys: I64) -> I64:
    """Return values in the stable order by the last key, then by the one before it, and so on."""
    order: I64 | None = None
    for key in keys:
        by_key = stable_order(key if order is None else gathered(key, order))
        if by_key is not None:
            order = by_key if order is None else gathered(order, by_key)
    return values if order is None else gathered(values, order)
