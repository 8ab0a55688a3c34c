"""Traces for the tests, put together record by record."""

from __future__ import annotations

from typing import Any

from fx_xray import format as fx
from fx_xray.format import FDR_VERSIONS
from fx_xray.write import encoder
from fxframework.errors import WriteRefusedError

TSC = 2_000_000_000_000
"""Where the clocks of these traces begin."""
ORDERS = ("little", "big", "big-lsb")


def header(version: int = 5, *, basic: bool = False, byte_order: str = "little",
           **more: Any) -> bytes:  # fmt: skip
    """The header of a file."""
    values = {"cycle_frequency": 2_500_000_000, "buffer_size": 16384, "type": 0 if basic else 1}
    return fx.FileHeader(version=version, byte_order=byte_order, **{**values, **more}).pack()


def call(function_id: int = 1, kind: str = "enter", delta: int = 100) -> fx.Function:
    """A function record."""
    return fx.Function(kind=kind, function_id=function_id, delta=delta)


def event(data: bytes = b"hello", version: int = 5, *, event_type: int | None = None,
          delta: int = 50, tsc: int = TSC, cpu: int | None = None) -> fx.XrayRecord:  # fmt: skip
    """A custom event, or a typed one."""
    values: dict[str, Any] = {"data": data}
    if version in range(5):
        values["tsc"] = tsc
        if version == 4 and event_type is None:
            values["cpu"] = cpu or 0
    else:
        values["delta"] = delta
    return event_of(version, event_type, **values)


def event_of(version: int, event_type: int | None, **values: Any) -> fx.XrayRecord:
    """A custom event, or a typed one, of the class that a version has."""
    kind = fx.MetadataKind.CUSTOM_EVENT
    if event_type is not None:
        kind, values["event_type"] = fx.MetadataKind.TYPED_EVENT, event_type
    cls: Any = fx.class_of(kind, fx.Dialect(version=version).state().registers)
    made: fx.XrayRecord = cls(**values)
    return made


def packed(*records: fx.XrayRecord | bytes, version: int = 5, byte_order: str = "little") -> bytes:
    """The bytes of records, one behind the other."""
    dialect = fx.Dialect(version=version, byte_order=byte_order)
    return b"".join(
        each if isinstance(each, bytes) else encoder.packed(each, dialect) for each in records
    )


def preamble(version: int = 5, *, thread: int = 7, process: int = 9, seconds: int = 3,
             micros: int = 14, cpu: int = 2, tsc: int = TSC) -> list[fx.XrayRecord]:  # fmt: skip
    """What a buffer begins with."""
    records: list[fx.XrayRecord] = [
        fx.NewBuffer(thread=thread),
        fx.WallTime(seconds=seconds, micros=micros),
    ]
    if version >= 3:
        records.append(fx.Pid(process=process))
    return [*records, fx.NewCpu(cpu=cpu, tsc=tsc)]


def buffer(*records: fx.XrayRecord | bytes, version: int = 5, byte_order: str = "little",
           page: int = 0, short: int = 0, **more: Any) -> bytes:  # fmt: skip
    """A buffer with its preamble: bounded by extents, in version 1 padded to ``page`` bytes.

    Extents say ``short`` bytes less than there are.
    """
    given = [*preamble(version, **more), *records]
    if version < 2:
        data = packed(*given, fx.EndOfBuffer(), version=version, byte_order=byte_order)
        return data.ljust(page, b"\0")
    data = packed(*given, version=version, byte_order=byte_order)
    extents = fx.BufferExtents(bytes=len(data) - short)
    return packed(extents, version=version, byte_order=byte_order) + data


def trace(version: int = 5, byte_order: str = "little") -> bytes:
    """A trace of two buffers with every kind of record that a version has."""
    body: list[fx.XrayRecord] = [
        call(1),
        call(2, "enter" if version < 4 else "enter_arg", 5),
        fx.CallArgument(value=(1 << 64) - 3, padding=b"\xaa" * 7),
        fx.CallArgument(value=42),
        event(b"custom", version, tsc=TSC + 120, cpu=3, delta=-2),
    ]
    if version >= 3:
        body.append(event(b"\xfftyped", version, event_type=77, tsc=TSC + 130, delta=9))
    body += [
        call(2, "exit", 1),
        fx.TscWrap(tsc=TSC + (1 << 33)),
        call(3, "tail_exit", 0),
        fx.NewCpu(cpu=65535, tsc=TSC + (1 << 34)),
        call((1 << 20) - 1, "exit", (1 << 32) - 1),
    ]
    head = header(version, byte_order=byte_order, buffer_size=512)
    first = buffer(*body, version=version, byte_order=byte_order, page=512)
    second = buffer(
        call(9), version=version, byte_order=byte_order, page=512, thread=-8, cpu=1, tsc=5
    )
    return head + first + second


def basic(version: int = 3, byte_order: str = "little") -> bytes:
    """A trace of basic mode."""
    dialect = fx.Dialect("xray-basic", version, byte_order)
    process = 9 if version > 2 else 0x7FEC
    common: dict[str, Any] = {"function_id": 4, "thread": 7, "process": process}
    records = [
        fx.BasicFunction(kind="enter", cpu=1, tsc=TSC, **common),
        fx.BasicFunction(kind="enter_arg", cpu=255, tsc=TSC + 5, **common),
        fx.BasicArgument(value=(1 << 64) - 1, padding=bytes(range(10)), **common),
        fx.BasicFunction(kind="exit", cpu=1, tsc=TSC + 7, padding=b"\xaa" * 8, **common),
        fx.BasicFunction(kind="exit", cpu=1, tsc=TSC + 9, **common),
    ]
    head = header(version, basic=True, byte_order=byte_order)
    return head + b"".join(encoder.packed(record, dialect) for record in records)


WHOLE = {
    **{f"fdr{version}-{order}": ("xray", trace(version, order))
       for version in FDR_VERSIONS for order in ORDERS},
    **{f"basic{version}-{order}": ("xray-basic", basic(version, order))
       for version in (1, 2, 3) for order in ("little", "big")},
}  # fmt: skip
"""By name, form and bytes of a trace of each version in each byte order."""


def refused(record: fx.XrayRecord, **dialect: Any) -> str:
    """The code with which a record is refused."""
    try:
        encoder.packed(record, fx.Dialect(**dialect))
    except WriteRefusedError as error:
        return error.code or ""
    return ""


def deep(depth: int = 200) -> bytes:
    """Calls deeper than are looked through one by one, some of which nobody leaves."""
    down = [call(id) for id in range(1, depth)]
    up = [call(id, "exit") for id in range(depth, 0, -3)]
    return header() + buffer(*down, *up, call(70_000), call(1 << 27, "tail_exit"))


def crowd(count: int = 12) -> bytes:
    """More threads than are looked through one by one."""
    return header() + b"".join(
        buffer(*([call(2), call(2, "exit")] * (thread + 1)), thread=thread, tsc=TSC + 31 * thread)
        for thread in range(count)
    )


def cut() -> bytes:
    """A NewCPUId of which the recorder overwrote the second half."""
    moved = packed(fx.NewCpu(cpu=3, tsc=TSC + 5000))[:8]
    return header() + buffer(call(1), moved, call(1, "exit"), call(2), call(2, "exit"))


RARE = {
    "deep": deep(),
    "crowd": crowd(),
    "cut": cut(),
    "late": header(cycle_frequency=3) + buffer(call(1), call(1, "exit"), tsc=1 << 63),
}
"""Traces of the flight data recorder that seldom are."""
