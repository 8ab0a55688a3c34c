"""Salvage of traces: a sound one is copied, any other is written again from its events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fx_xray import format as wire
from fx_xray import rules
from fx_xray.format import ARGUMENT
from fx_xray.read.header import asked_order
from fx_xray.read.views import whole_of
from fx_xray.write.extract import check_names, copy, findings_to_repair, pack
from fx_xray.write.merge import WRITTEN_ORDER
from fx_xray.write.packer import LEFT_OUT, Lost
from fxframework.io.sink import Sink
from fxframework.kit.salvage import Loss, lost
from fxframework.model.capture import Capture


def salvage(capture: Capture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
    """Write all sound records. Yield each loss (``fxframework.registry.Writer``).

    A sound trace is copied. Any other is rewritten from its events, so that extents, preambles and
    times are right; a repair is a loss of 0 bytes.
    """
    check_names(options)
    header = whole_of(capture).header
    findings = findings_to_repair(capture)
    if not findings and (
        header is None or asked_order(options, WRITTEN_ORDER) in {"", header.byte_order}
    ):
        copy(capture, sink)
        return
    if header is None:
        yield from map(lost, capture.checked_records())
        return
    # A stretch that is lost says what its finding does; times, and arguments of other calls, are
    # reported event by event.
    codes_shown = {rules.TIME_OVERFLOW.code, rules.BASIC_ORPHAN.code}
    for start, stop, number in whole_of(capture).log.losses.T.tolist():
        rule = rules.RULES.numbered(number)
        codes_shown.add(rule.code)
        record_kind = "damaged"
        if rule == rules.UNKNOWN_METADATA:
            record_kind = "unknown"
        message = f"{stop - start} bytes are not a record; left out"
        yield Loss(start, stop - start, record_kind, message, rule.code)
    for finding in findings:
        if finding.code not in codes_shown:
            message = f"{finding.message}; repaired"
            yield Loss(finding.offset or 0, 0, "finding", message, finding.code)
    timeless: list[Lost] = []
    left_out: list[tuple[Lost, str]] = []
    dropped = pack(capture, header, sink, options, timeless, left_out)
    for loss_name, count in dropped.items():
        if loss_name not in LEFT_OUT:
            yield Loss(0, 0, "event", f"{count} {loss_name}: changed")
    for events, why in left_out:
        yield from _lost_events(events, capture.format, f"that the output cannot hold: {why}")
    for events in timeless:
        why = "at a time that nanoseconds cannot hold"
        yield from _lost_events(events, capture.format, why, rules.TIME_OVERFLOW.code)


def _lost_events(events: Lost, form: str, why: str, code: str = "") -> Iterator[Loss]:
    """Yield a loss for each of some events that are left out."""
    for kind, offset, size in zip(
        events.kind.tolist(), events.offset.tolist(), events.size.tolist(), strict=True
    ):
        nbytes = wire.METADATA_BYTES + max(size, 0)
        record_kind = "event"
        if kind == ARGUMENT:
            record_kind = "call_argument"
        elif kind < ARGUMENT:
            record_kind = "function"
            nbytes = wire.FUNCTION_BYTES
        if form == wire.BASIC_FORM:
            nbytes = wire.BASIC_BYTES
        yield Loss(offset, nbytes, record_kind, f"{nbytes} bytes {why}; left out", code)
