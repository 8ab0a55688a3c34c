"""The header of a trace: its fields, its byte order, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fx_xray import format as wire
from fx_xray import rules
from fx_xray.format import BASIC_FORM, Dialect, FileHeader, MetadataKind
from fxframework.errors import Rule, UsageError, did_you_mean
from fxframework.io.words import view_of
from fxframework.model.diagnostics import Found

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Data = NDArray[np.uint8] | bytes | bytearray | memoryview


def asked_order(options: Mapping[str, Any] | None, name: str = "byte_order") -> str:
    """Return the byte order that options ask for by a name, empty where it is to be found out.

    A writer's option has another name than a reader's: both may be given at once. Raises UsageError
    for an order that is not defined.
    """
    order = str((options or {}).get(name) or "")
    if order and order not in wire.BYTE_ORDERS:
        raise UsageError(
            f"no byte order {order!r}{did_you_mean(order, wire.BYTE_ORDERS)}",
            remedy=f"give one of {', '.join(wire.BYTE_ORDERS)}",
        )
    return order


def asked_frequency(options: Mapping[str, Any] | None) -> int:
    """Return the ticks per second that options ask for, 0 where the header says it.

    Raises UsageError for a number that no header could have.
    """
    frequency = int((options or {}).get("cycle_frequency") or 0)
    if not 0 <= frequency < 1 << 64:
        raise UsageError(
            f"cycle_frequency is {frequency}",
            remedy="give ticks per second: a number of 64 bits, 0 for what the header says",
        )
    return frequency


def _found_order(view: memoryview, form: str) -> str:
    """Return the byte order of a file with a header, from what is in it."""
    versions = Dialect(form).versions

    def sound(byte_order: str) -> int:
        """Return how many of version, type and frequency make sense in an order."""
        header = _unpacked(view, byte_order)
        return (
            (header.version in versions)
            + (header.type in (wire.BASIC, wire.FDR))
            + (header.cycle_frequency in wire.FREQUENCIES)
        )

    if sound("big") <= sound("little"):
        return "little"
    if form == BASIC_FORM:
        return "big"
    big = Dialect(byte_order="big")
    begins = {big.first_byte(MetadataKind.NEW_BUFFER), big.first_byte(MetadataKind.BUFFER_EXTENTS)}
    first_byte = view[wire.HEADER_BYTES : wire.HEADER_BYTES + 1].tobytes()
    if first_byte and first_byte[0] in begins:
        return "big"
    return "big-lsb"


def read_header(data: Data, form: str, byte_order: str = "") -> FileHeader | None:
    """Return the header of a trace; None where the file is too short for one.

    ``byte_order`` is found out where it is empty. ``raw`` is there where the fields would not give
    the same bytes, as where a big-endian header has its flags where llvm-xray looks for them.
    """
    view = view_of(data)[: wire.HEADER_BYTES + 1]
    if len(view) < wire.HEADER_BYTES:
        return None
    chosen = byte_order or _found_order(view, form)
    if form == BASIC_FORM and chosen != "little":
        chosen = "big"
    header = _unpacked(view, chosen)
    if chosen == "big" and not (header.constant_tsc or header.nonstop_tsc):
        as_llvm_reads = _unpacked(view, "big-lsb")
        if as_llvm_reads.constant_tsc or as_llvm_reads.nonstop_tsc:
            header = as_llvm_reads
            header.raw = view[: wire.HEADER_BYTES].tobytes()
    header.byte_order = chosen
    return header


def _unpacked(view: memoryview, byte_order: str) -> FileHeader:
    return FileHeader.unpack(view, 0, wire.HEADER_BYTES, wire.header_state(byte_order))[0]


def header_findings(
    header: FileHeader, form: str, size: int, cycle_frequency: int = 0
) -> list[Found]:
    """Return the findings about a header.

    ``size`` is that of the file, ``cycle_frequency`` what counts instead of the header's.
    """
    findings = []

    def add(rule: Rule, field: str, *value: object) -> None:
        findings.append(Found(rule, FileHeader.layout.place(field).offset, *value))

    if header.version not in Dialect(form).versions:
        add(rules.UNKNOWN_VERSION, "version", header.version)
    if header.type != Dialect(form).type:
        add(rules.OTHER_MODE, "type", header.type)
    if not header.constant_tsc:
        add(rules.TSC_NOT_CONSTANT, "constant_tsc")
    if not header.nonstop_tsc:
        add(rules.TSC_MAY_STOP, "constant_tsc")
    if not (header.cycle_frequency or cycle_frequency):
        add(rules.NO_FREQUENCY, "cycle_frequency")
    if size == wire.HEADER_BYTES:
        findings.append(Found(rules.NO_RECORDS, 0))
    return findings
