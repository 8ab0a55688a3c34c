"""Strategies: traces of every version and byte order, sound, damaged and arbitrary."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from fx_xray import format as fx
from fx_xray.write.encoder import packed as packed_in

from .traces import ORDERS, event_of, header, packed

TIMES = st.one_of(
    st.integers(1000, 5000),
    st.integers(0, (1 << 64) - 1),
    st.sampled_from([0, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 41, 3 << 40]),
)
DELTAS = st.one_of(st.integers(0, 50), st.integers(0, (1 << 32) - 1))
SIGNED = st.one_of(st.integers(-20, 50), st.integers(-(1 << 31), (1 << 31) - 1))
IDS = st.one_of(st.integers(1, 4), st.integers(0, (1 << 28) - 1).map(lambda id: id & ~(1 << 20)))
"""Without the bit that makes the record one of metadata where the byte order is big-lsb."""
CPUS = st.integers(0, 65535)
PAYLOADS = st.binary(max_size=9)


@st.composite
def bodies(draw: st.DrawFn, version: int) -> list[fx.XrayRecord | bytes]:
    """Records such as stand in a buffer, in any order."""
    kinds = ["function"] * 8 + ["argument", "new_cpu", "wrap", "custom", "typed", "cut", "odd"]
    out: list[fx.XrayRecord | bytes] = []
    for kind in draw(st.lists(st.sampled_from(kinds), max_size=14)):
        if kind == "function":
            name = draw(st.sampled_from(["enter", "exit", "exit", "tail_exit", "enter_arg"]))
            out.append(fx.Function(kind=name, function_id=draw(IDS), delta=draw(DELTAS)))
            if name == "enter_arg":
                out.append(fx.CallArgument(value=draw(TIMES)))
        elif kind == "argument":
            out.append(fx.CallArgument(value=draw(TIMES)))
        elif kind == "new_cpu":
            out.append(fx.NewCpu(cpu=draw(CPUS), tsc=draw(TIMES)))
        elif kind == "wrap":
            out.append(fx.TscWrap(tsc=draw(TIMES)))
        elif kind == "cut":
            half = packed(fx.NewCpu(cpu=draw(CPUS), tsc=draw(st.integers(1000, 5000))))[:8]
            if draw(st.booleans()):
                half = packed(fx.TscWrap(tsc=draw(st.integers(1000, 5000))))[:8]
            name = draw(st.sampled_from(["enter", "exit"]))
            rest = packed(fx.Function(kind=name, function_id=draw(IDS), delta=draw(DELTAS)))
            if draw(st.booleans()):
                rest = packed(fx.TscWrap(tsc=draw(TIMES)))
            out += [fx.NewCpu(cpu=1, tsc=1000), half + rest]
        elif kind == "odd":
            out.append(draw(st.binary(min_size=1, max_size=20)))
        else:
            out.append(event(draw, version, typed=kind == "typed"))
    return out


def event(draw: st.DrawFn, version: int, *, typed: bool) -> fx.XrayRecord:
    """A custom or typed event."""
    values: dict[str, Any] = {"data": draw(PAYLOADS)}
    if version < 5:
        values["tsc"] = draw(TIMES)
        if version == 4 and not typed:
            values["cpu"] = draw(CPUS)
    else:
        values["delta"] = draw(SIGNED)
    return event_of(version, draw(CPUS) if typed else None, **values)


@st.composite
def buffers(draw: st.DrawFn, version: int, order: str, page: int) -> bytes:
    """A buffer, mostly sound."""
    records: list[fx.XrayRecord | bytes] = [
        fx.NewBuffer(thread=draw(st.sampled_from([7, 8, -9, 70_000]))),
        fx.WallTime(
            seconds=draw(st.sampled_from([0, 1, 2, -1])), micros=draw(st.integers(0, 999_999))
        ),
    ]
    if version >= 3:
        records.append(fx.Pid(process=draw(st.sampled_from([1, 2]))))
    records.append(fx.NewCpu(cpu=draw(CPUS), tsc=draw(TIMES)))
    if draw(st.integers(0, 7)) == 0:  # some lack something
        del records[draw(st.integers(0, len(records) - 1))]
    if draw(st.integers(0, 15)) == 0:
        records.clear()
    records += draw(bodies(version))
    more = {"version": version, "byte_order": order}
    if version < 2:
        if draw(st.integers(0, 5)):
            records.append(fx.EndOfBuffer())
        data = packed(*records, **more)
        fill = draw(st.sampled_from([b"\0", b"\0", b"\1"]))
        return data + fill * (-len(data) % page) if page else data
    data = packed(*records, **more)
    lie = draw(st.sampled_from([0] * 9 + [-16, -5, 8, 1 << 40]))
    extents = fx.BufferExtents(bytes=max(len(data) + lie, 0))
    return packed(extents, **more) + data


@st.composite
def fdr_files(draw: st.DrawFn) -> bytes:
    """A trace of the flight data recorder."""
    version = draw(st.integers(1, 5))
    order = draw(st.sampled_from(["little", "little", *ORDERS]))
    page = draw(st.sampled_from([0, 64, 128, 256]))
    head = header(
        draw(st.sampled_from([version] * 9 + [0, 6])),
        byte_order=order,
        buffer_size=page,
        cycle_frequency=draw(st.sampled_from([0, 1, 1_000_000_000, 2_596_120_000, (1 << 64) - 1])),
    )
    count = draw(st.integers(0, 4))
    return head + b"".join(draw(buffers(version, order, page)) for _ in range(count))


@st.composite
def basic_files(draw: st.DrawFn) -> bytes:
    """A trace of basic mode."""
    version = draw(st.integers(1, 3))
    order = draw(st.sampled_from(["little", "little", "big"]))
    dialect = fx.Dialect("xray-basic", version, order)
    parts = [header(version, basic=True, byte_order=order)]
    for kind in draw(st.lists(st.sampled_from(["call"] * 6 + ["argument", "odd"]), max_size=16)):
        common: dict[str, Any] = {
            "function_id": draw(st.sampled_from([1, 2, 3, -1])),
            "thread": draw(st.sampled_from([5, 6])),
            "process": draw(st.sampled_from([1, 1, 2])),
        }
        if kind == "odd":
            parts.append(draw(st.binary(min_size=1, max_size=40)))
        elif kind == "argument":
            parts.append(packed_in(fx.BasicArgument(value=draw(TIMES), **common), dialect))
        else:
            name = draw(st.sampled_from(["enter", "exit", "tail_exit", "enter_arg"]))
            record = fx.BasicFunction(
                kind=name, cpu=draw(st.integers(0, 255)), tsc=draw(TIMES), **common
            )
            parts.append(packed_in(record, dialect))
            if name == "enter_arg" or draw(st.integers(0, 3)) == 0:
                parts.append(packed_in(fx.BasicArgument(value=draw(TIMES), **common), dialect))
    return b"".join(parts)


@st.composite
def damaged(draw: st.DrawFn, files: st.SearchStrategy[bytes]) -> bytes:
    """A trace with bytes changed, cut short, or with others behind its header."""
    data = bytearray(draw(files))
    how = draw(st.sampled_from(["flipped", "cut", "replaced"]))
    if how == "cut":
        return bytes(data[: draw(st.integers(0, len(data)))])
    if how == "replaced":
        return bytes(data[:32]) + draw(st.binary(max_size=200))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data) - 1))
        data[at] ^= 1 << draw(st.integers(0, 7))
    return bytes(data)
