"""Perfetto traces: the bytes of protobuf, and slices that nest on tracks."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fxframework.exporters.perfetto import wire
from fxframework.exporters.perfetto.nest import OPEN, Nesting
from fxframework.exporters.perfetto.wire import Messages
from fxframework.testing.kernels import plain_kernels

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


def nested(rows: list[tuple[int, int, int]]) -> tuple[Any, ...]:
    """What the kernel makes of (track, start, length), -1 for never closed."""
    from fxframework.exporters.perfetto.nest import Nesting as Kernel

    track, start, length = (np.array([row[n] for row in rows], np.int64) for n in range(3))
    end = np.where(length < 0, OPEN, start + length)
    depth = np.zeros(len(rows), np.int64)
    order = np.lexsort((-end, depth, start, track))
    columns = [np.ascontiguousarray(each[order]) for each in (track, start, end, depth)]
    kernel = Kernel(*columns)
    kernel.run()
    events = np.asarray(kernel.events)[: kernel.count].tolist()
    return events, np.asarray(kernel.lane).tolist(), kernel.cut, [c.tolist() for c in columns]


@given(SLICES)
def test_events_of_a_lane_nest_and_lose_no_slice(rows: list[tuple[int, int, int]]) -> None:
    events, lanes, cut, (track, start, end, _) = nested(rows)
    stacks: dict[tuple[int, int], list[int]] = {}
    times: dict[tuple[int, int], int] = {}
    begun = 0
    for event in events:
        place = event if event >= 0 else ~event
        key = track[place], lanes[place]
        when = start[place] if event >= 0 else end[place]
        assert when >= times.get(key, when), "a track goes on in time"
        times[key] = when
        stack = stacks.setdefault(key, [])
        if event >= 0:
            begun += 1
            assert not stack or end[stack[-1]] >= end[place]
            stack.append(place)
        else:
            assert stack.pop() == place
    assert begun == len(rows)
    assert cut == 0
    assert all(end[place] == OPEN for stack in stacks.values() for place in stack)


@given(SLICES)
def test_the_plain_body_does_the_same(rows: list[tuple[int, int, int]]) -> None:
    compiled = nested(rows)
    with plain_kernels():
        assert nested(rows) == compiled


def test_what_overlaps_everywhere_is_cut_short() -> None:
    count = 100
    track, depth = np.zeros(count, np.int64), np.zeros(count, np.int64)
    start = np.arange(count, dtype=np.int64)
    end = start + count
    kernel = Nesting(track, start, end, depth)
    kernel.run()
    assert kernel.cut == count - 32
    assert kernel.count == 2 * count
    assert np.asarray(kernel.lane).max() == 31
