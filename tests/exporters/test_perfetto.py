"""Perfetto traces: the bytes of protobuf, and slices that nest on tracks."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fxframework.exporters.perfetto import wire
from fxframework.exporters.perfetto.ids import Ids
from fxframework.exporters.perfetto.wire import Messages
from fxframework.kernels.nesting import NEVER_ENDS, Lanes

U64 = st.integers(0, (1 << 64) - 1)


def fields(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a message, read one byte at a time."""
    at = 0
    found: list[tuple[int, Any]] = []

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == wire.VARINT:
            found.append((key >> 3, varint()))
            continue
        size = 8 if key & 7 == wire.FIXED64 else varint()
        found.append((key >> 3, data[at : at + size]))
        at += size
    assert at == len(data)
    return found


@given(st.lists(st.tuples(U64, U64, st.booleans(), st.binary(max_size=5)), max_size=20))
def test_batches_are_the_messages_one_by_one(rows: list[tuple[int, int, bool, bytes]]) -> None:
    first = np.array([row[0] for row in rows], np.uint64)
    second = np.array([row[1] for row in rows], np.uint64)
    shown = np.array([row[2] for row in rows], np.bool_)
    tails = [row[3] for row in rows]
    sizes = np.array([len(tail) for tail in tails], np.int64)
    inner = Messages(len(rows)).varints(1, first).fixed64(2, second, shown)
    outer = Messages(len(rows)).constant(wire.integer(7, 1)).embed(9, inner, sizes)
    data = wire.interleave(
        [(outer.data(), outer.lengths), (np.frombuffer(b"".join(tails), np.uint8), sizes)]
    ).tobytes()
    wanted = b"".join(
        wire.integer(7, 1)
        + wire.message(
            9,
            wire.integer(1, one)
            + (wire.varint(2 << 3 | wire.FIXED64) + two.to_bytes(8, "little") if there else b"")
            + tail,
        )
        for one, two, there, tail in rows
    )
    assert data == wanted
    assert fields(wire.integer(3, 5) + wire.string(4, "é")) == [(3, 5), (4, "é".encode())]


SLICES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(-1, 6)), max_size=40)
Event = tuple[int, int, int, int]
"""Place of the slice that begins, -1 for an end; time, track and lane of it."""


def nested(
    rows: list[tuple[int, int, int]], at_once: int = 1 << 15
) -> tuple[list[Event], int, list[int]]:
    """What the kernel makes of (track, start, length), -1 for never closed; the end of each."""
    track, start, length = (np.array([row[n] for row in rows], np.int64) for n in range(3))
    end = np.where(length < 0, NEVER_ENDS, start + length)
    order = np.lexsort((-end, start))
    columns = [each[order] for each in (track, start, end, np.zeros(len(rows), np.int64))]
    found: list[Event] = []
    kernel = Lanes()

    def note(slices: Any, times: Any, lanes: Any, first: int) -> None:
        places = np.where(slices < 0, slices, slices + first)
        events = (places, times, *kernel.places_from(0)[:, lanes])
        found.extend(zip(*(each.tolist() for each in events), strict=True))

    for first in range(0, len(rows), at_once):
        note(*kernel.nest(*(column[first : first + at_once] for column in columns)), first)
        if first + at_once < len(rows):
            note(*kernel.ends_before(int(columns[1][first + at_once])), 0)
    note(*kernel.ends_before(NEVER_ENDS), 0)
    assert kernel.open_count == len(
        {event[2:] for event in found if _never_ends(event, columns[2])}
    )
    return found, kernel.cut, columns[2].tolist()


def _never_ends(event: Event, end: Any) -> bool:
    return event[0] >= 0 and bool(end[event[0]] == NEVER_ENDS)


@given(SLICES)
def test_events_of_a_lane_nest_and_lose_no_slice(rows: list[tuple[int, int, int]]) -> None:
    events, cut, end = nested(rows)
    stacks: dict[tuple[int, int], list[int]] = {}
    times: dict[tuple[int, int], int] = {}
    begun = []
    for place, when, *lane in events:
        key = lane[0], lane[1]
        assert when >= times.get(key, when), "a track goes on in time"
        times[key] = when
        stack = stacks.setdefault(key, [])
        if place >= 0:
            begun.append(place)
            assert not stack or end[stack[-1]] >= end[place]
            stack.append(place)
        else:
            assert end[stack.pop()] == when
    assert sorted(begun) == list(range(len(rows)))
    assert cut == 0
    assert all(end[place] == NEVER_ENDS for stack in stacks.values() for place in stack)


def by_lane(events: list[Event]) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Events of each lane, in order."""
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for place, when, track, level in events:
        found.setdefault((track, level), []).append((place, when))
    return found


@given(SLICES, st.integers(1, 9))
def test_slices_a_few_at_a_time_have_the_events_of_all_at_once(
    rows: list[tuple[int, int, int]], at_once: int
) -> None:
    expected, cut, _ = nested(rows)
    found, again, _ = nested(rows, at_once)
    assert by_lane(found) == by_lane(expected)
    assert again == cut


def test_what_overlaps_everywhere_is_cut_short() -> None:
    count = 100
    events, cut, _ = nested([(0, at, count) for at in range(count)])
    assert cut == count - 32
    assert len(events) == 2 * count
    assert max(level for *_, level in events) == 31


def test_slices_that_never_end_take_no_memory() -> None:
    kernel = Lanes()
    for at in range(3):
        start = np.arange(1000 * at, 1000 * (at + 1))
        slices, _, _ = kernel.nest(np.zeros(1000, int), start, np.full(1000, NEVER_ENDS), start)
        assert slices.tolist() == list(range(1000))
    assert (kernel.open_count, kernel.lane_count) == (1, 1)


# --- Ids of processes and threads ----------------------------------------------------------------

OWN = st.sampled_from([1, 2, 3, 4, 5, (1 << 31) - 1, (1 << 31) - 2, 1 << 31, 1 << 40, -7])
"""Ids of captures, as int64: some do not fit, some are those that are given instead."""
CALLS = st.lists(
    st.tuples(
        st.sampled_from(["processes", "threads", "tid 0", "loose", "tracked"]),
        st.lists(OWN, max_size=6),
    )
    | st.tuples(st.just("threads"), st.lists(st.tuples(OWN, OWN), max_size=6)),
    max_size=8,
)


@given(CALLS)
def test_ids_of_processes_and_threads_are_one_each(calls: list[tuple[str, list[Any]]]) -> None:
    ids = Ids()
    processes: dict[int, int] = {}
    threads: dict[tuple[int, int], int] = {}
    loose: dict[int, int] = {}
    described: list[int] = []

    def enter(pids: list[int]) -> None:
        for pid in pids:
            small, new = ids.process(pid)
            assert new == (pid not in processes)
            assert processes.setdefault(pid, small) == small

    for what, rows in calls:
        if what == "processes":
            enter(rows)
        elif what == "threads":
            pairs = [row if isinstance(row, tuple) else (row, row) for row in rows]
            enter([pid for pid, _ in pairs])
            for pid, tid in pairs:
                small, new = ids.thread(processes[pid], tid)
                assert new == ((pid, tid) not in threads)
                assert threads.setdefault((pid, tid), small) == small
                described += [small] * new
        elif what == "tid 0":
            enter(rows)
            found = [ids.thread_of_tid_0(processes[pid]) for pid in rows]
            described += found
            assert all(ids.renumbered()[small] == 0 for small in found)
        else:
            for tid in rows:
                small, new = ids.loose_thread(tid, is_tracked=what == "tracked")
                if small not in threads.values():
                    assert tid in loose or tid not in {own for _, own in threads}
                    assert loose.setdefault(tid, small) == small
                described += [small] * new
    assert len(set(described)) == len(described), "a track is described once"
    assert len(set(threads.values())) == len(threads)
    assert len(set(processes.values())) == len(processes)
    owners = {small: processes[pid] for (pid, _), small in threads.items()}
    assert all(owners.get(small, small) == small for small in processes.values()), "main threads"
    whose = [*processes.items(), *((own, small) for (_, own), small in threads.items())]
    for own, small in [*whose, *loose.items()]:
        assert 0 < small < 1 << 31
        assert own == small or ids.renumbered()[small] == own % (1 << 64)
    assert ids.changed_count == len(ids.renumbered())
