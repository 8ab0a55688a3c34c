"""Sound XRay logs that hypothesis makes, byte by byte, for llvm-xray and us to read alike."""

from __future__ import annotations

import struct
from typing import Final

import attrs
from hypothesis import strategies as st

FDR_VERSIONS: Final = range(1, 6)
BASIC_VERSIONS: Final = range(1, 4)
FREQUENCIES: Final = (1_000_000_000, 2_596_120_000, 24_000_000, 3)
ENTER, EXIT, TAIL_EXIT, ENTER_ARG = range(4)
EXTENTS, PIDS, EVENT_CPUS, DELTAS = 2, 3, 4, 5
"""The versions from which on there are extents, process ids, CPUs of events, and deltas of them."""
U64: Final = (1 << 64) - 1
FULL: Final = 1000
"""More bytes than a body has."""
FUNCTIONS = st.integers(1, 6) | st.sampled_from([(1 << 24) - 1, (1 << 28) - 1])
TEXTS = st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1, max_size=9).map(
    str.encode
)
"""Payloads that llvm-xray's YAML shows as they are."""
DELTAS_OF_CALLS = st.integers(0, 2000) | st.sampled_from([1 << 31, (1 << 32) - 1])


def header(version: int, mode: int, frequency: int, buffer_size: int = 0) -> bytes:
    """The 32 bytes before all records; the counter is constant and nonstop."""
    return struct.pack("<HHIQQQ", version, mode, 3, frequency, buffer_size, 0)


def metadata(kind: int, fields: str = "", *values: int) -> bytes:
    """A metadata record."""
    return (bytes([kind << 1 | 1]) + struct.pack(f"<{fields}", *values)).ljust(16, b"\0")


def function(kind: int, id: int, delta: int) -> bytes:
    """A function record of the flight data recorder."""
    return struct.pack("<II", id << 4 | kind << 1, delta)


@attrs.define
class Body:
    """A buffer under way."""

    version: int
    tsc: int
    parts: list[bytes] = attrs.field(factory=list)
    open: list[int] = attrs.field(factory=list)
    """Functions that the thread is in."""

    def event(self, data: bytes, ahead: int, cpu: int) -> None:
        """A custom event, so many ticks behind the record before."""
        if self.version >= DELTAS:
            self.tsc += ahead
            record = metadata(5, "ii", len(data), ahead)
        elif self.version == EVENT_CPUS:
            record = metadata(5, "iQH", len(data), self.tsc + ahead, cpu)
        else:
            record = metadata(5, "iQ", len(data), self.tsc + ahead)
        self.parts.append(record + data)

    def typed_event(self, type: int, data: bytes, ahead: int) -> None:
        """A typed event, of version 5."""
        self.tsc += ahead
        self.parts.append(metadata(8, "iiH", len(data), ahead, type) + data)


@st.composite
def bodies(draw: st.DrawFn, version: int, tsc: int, *, calls_alone: bool = False) -> Body:
    """Records of one buffer behind its NewCPUId: mostly nested calls, some that are not."""
    body = Body(version, tsc)
    steps = ["enter"] * 4 + ["leave"] * 4
    if not calls_alone:
        steps += ["exit", "cpu", "wrap", "event", "typed"]
    for _ in range(draw(st.integers(0, 14))):
        step = draw(st.sampled_from(steps))
        delta = draw(DELTAS_OF_CALLS)
        if step == "enter":
            _enter(draw, body, delta)
        elif step in {"leave", "exit"} and (body.open or step == "exit"):
            id = body.open.pop() if step == "leave" else draw(FUNCTIONS)
            body.parts.append(function(draw(st.sampled_from([EXIT, EXIT, TAIL_EXIT])), id, delta))
            body.tsc += delta
        elif step == "cpu":
            body.tsc += delta
            body.parts.append(metadata(2, "HQ", draw(st.integers(0, 0xFFFF)), body.tsc))
        elif step == "wrap":
            body.tsc += delta
            body.parts.append(metadata(3, "Q", body.tsc))
        elif step == "event":
            body.event(draw(TEXTS), delta & 0x7FFFFFFF, draw(st.integers(0, 200)))
        elif step == "typed" and version >= DELTAS:
            body.typed_event(draw(st.integers(0, 0xFFFF)), draw(TEXTS), delta & 0x7FFFFFFF)
    return body


def _enter(draw: st.DrawFn, body: Body, delta: int) -> None:
    """Enter a function, with arguments or without."""
    id = draw(FUNCTIONS)
    arguments = draw(st.just([]) | st.lists(st.integers(0, U64), max_size=2))
    # Up to version 3 the kind does not tell of arguments.
    kind = ENTER_ARG if arguments and body.version > PIDS else ENTER
    body.parts.append(function(kind, id, delta))
    body.parts += [metadata(6, "Q", value) for value in arguments]
    body.tsc += delta
    body.open.append(id)


@st.composite
def fdr_logs(draw: st.DrawFn, version: int | None = None) -> bytes:
    """A sound log of the flight data recorder, of several threads and buffers.

    Wall times differ and agree in their order of seconds and microseconds, so that llvm-xray puts
    buffers in order as well. In version 1 an event fills them up: llvm-xray does not skip padding.
    """
    if version is None:
        version = draw(st.sampled_from(FDR_VERSIONS))
    tsc = draw(st.integers(0, 1 << 50))
    buffers = []
    for number in range(draw(st.integers(1, 4))):
        thread, process = draw(st.integers(1, 3)), draw(st.integers(1, 2))
        preamble = metadata(0, "i", thread) + metadata(4, "qi", 10 + number, 1000 * number)
        if version >= PIDS:
            preamble += metadata(9, "i", process)
        cpu = draw(st.integers(0, 40))
        body = draw(bodies(version, tsc))
        if version < EXTENTS:
            body.event(b"f" * (FULL - sum(map(len, body.parts))), 0, 0)
        buffers.append(preamble + metadata(2, "HQ", cpu, tsc) + b"".join(body.parts))
        tsc = body.tsc + draw(st.integers(1, 1000))
    frequency = draw(st.sampled_from(FREQUENCIES))
    return laid_out(version, frequency, draw(st.permutations(buffers)))


@st.composite
def single_logs(draw: st.DrawFn) -> bytes:
    """A log of one thread, one buffer and nested calls: of such, llvm-xray's account is right."""
    tsc = draw(st.integers(0, 1 << 40))
    body = draw(bodies(FDR_VERSIONS[-1], tsc, calls_alone=True))
    return one_buffer(draw(st.sampled_from(FREQUENCIES)), tsc, b"".join(body.parts))


def single_log(frequency: int, tsc: int, calls: list[tuple[int, int, int]]) -> bytes:
    """The same of these calls: function, kind, and ticks since the one before."""
    return one_buffer(frequency, tsc, b"".join(function(kind, id, d) for id, kind, d in calls))


def one_buffer(frequency: int, tsc: int, body: bytes) -> bytes:
    """A log of one thread and one buffer."""
    preamble = metadata(0, "i", 7) + metadata(4, "qi", 1, 2) + metadata(9, "i", 5)
    buffer = preamble + metadata(2, "HQ", 1, tsc) + body
    return laid_out(FDR_VERSIONS[-1], frequency, [buffer])


def laid_out(version: int, frequency: int, buffers: list[bytes]) -> bytes:
    """A file of buffers, as the version puts them there."""
    if version >= EXTENTS:
        parts = [metadata(7, "Q", len(buffer)) + buffer for buffer in buffers]
        return header(version, 1, frequency, 16384) + b"".join(parts)
    parts = [buffer + metadata(1) for buffer in buffers]
    return header(version, 1, frequency, len(parts[0])) + b"".join(parts)


@st.composite
def basic_logs(draw: st.DrawFn, version: int | None = None) -> bytes:
    """A sound log of basic mode, of one record or more."""
    if version is None:
        version = draw(st.sampled_from(BASIC_VERSIONS))
    last = EXIT if version == 1 else TAIL_EXIT
    tsc = draw(st.integers(0, 1 << 50))
    parts = [header(version, 0, draw(st.sampled_from(FREQUENCIES)))]
    for _ in range(draw(st.integers(1, 12))):
        thread, process = draw(st.integers(1, 3)), draw(st.integers(1, 2))
        id = draw(st.integers(1, 6) | st.just((1 << 31) - 1))
        tsc += draw(st.integers(0, 1000))
        value = draw(st.none() | st.integers(0, U64))
        kind = draw(st.integers(0, last)) if value is None else ENTER_ARG
        cpu = draw(st.integers(0, 255))
        parts.append(struct.pack("<HBBiQIIQ", 0, cpu, kind, id, tsc, thread, process, 0))
        if value is not None:
            parts.append(struct.pack("<HHiIIQQ", 1, 0, id, thread, process, value, 0))
    return b"".join(parts)
