"""Extracts parts of traces in their own format: the selected calls, with their original times.

Which events belong to a part, ``fx_xray.read.views`` says (``chosen_events``). ``packer`` writes
them into new buffers, each with the thread, process, time and CPU that a reader needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import attrs
import numpy as np

from fx_xray import format as wire
from fx_xray import rules
from fx_xray.format import LATEST, FileHeader
from fx_xray.read.events import picked
from fx_xray.read.header import asked_order
from fx_xray.read.views import chosen_events, whole_of
from fx_xray.write.merge import MOST_PADDED, WRITTEN_ORDER, checked_size, checked_version
from fx_xray.write.packer import Lost, packer_of
from fxframework.errors import Severity, UsageError, refusal
from fxframework.io.sink import Sink
from fxframework.io.words import U64_MAX
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.diagnostics import Diagnostic
from fxframework.model.selection import Omitted, Selection
from fxframework.wire.expressions import wrapped
from fxframework.wire.state import State

REPAIRED: Final = (0, 1, 2, 4)
"""Hundreds of the numbers of rules about the file, its records and their order."""
NAMES_REFUSED: Final = "names are for captures of other formats"
KEPT: Final = (rules.NO_FREQUENCY, rules.EMPTY_EVENT, rules.BASIC_TAIL_EXIT)
"""Findings that a rewritten trace still has."""


def extract(
    capture: Capture, selection: Selection, sink: Sink, options: Mapping[str, Any]
) -> Mapping[str, int]:
    """Write the selected calls and events (``fxframework.registry.Writer``).

    A call that overlaps the stretch of time is kept whole, with its arguments; calls without an
    entry or exit stay so. Time stamps, CPUs, kinds and the header are kept, except for ``version``
    and ``buffer_size`` in the options. Buffers are rebuilt if not everything was selected. Returns
    the rows left out, by table (an ``Omitted``, whose ``dropped`` counts what the version cannot
    hold).
    """
    check_names(options)
    header = whole_of(capture).header
    if header is None:
        raise refusal(rules.NO_SUCH_NAME, "a trace without a file header")
    view = capture.select(selection)
    left_out = Counter(
        {
            name: capture.row_counts()[name] - sum(len(batch) for batch in view.batches(name))
            for name in ("slices", "instants")
        }
    )
    kinds = capture.summary().kinds
    left_out["damaged stretches"] = kinds.get("damaged", 0) + kinds.get("unknown", 0)
    if not +left_out and _is_fit(capture, header, options):
        copy(capture, sink)
        return Omitted({}, {})
    return Omitted(+left_out, pack(view, header, sink, options))


def check_names(options: Mapping[str, Any]) -> None:
    """Check that no names are asked for. Raises UsageError."""
    if options.get("names"):
        raise UsageError(NAMES_REFUSED, remedy="leave it out: the functions keep their numbers")


def findings_to_repair(capture: Capture) -> list[Diagnostic]:
    """Return the findings of a trace that rewriting repairs."""
    capture.scan()
    findings = capture.diagnostics.sorted()
    return [finding for finding in findings if _is_repaired(finding)]


def _is_repaired(finding: Diagnostic) -> bool:
    """Return whether a rewritten trace has not got a finding any more."""
    rule = rules.RULES.get(finding.code)
    if rule is None or rule in KEPT or finding.severity < Severity.WARNING:
        return False  # without a rule, it is one of the framework's
    return rule // 100 in REPAIRED or rule == rules.TIME_OVERFLOW


def _is_fit(capture: Capture, header: FileHeader, options: Mapping[str, Any]) -> bool:
    """Return whether a trace matches the options and needs no repair."""
    version = int(options.get("version") or 0)
    buffer_size = int(options.get("buffer_size") or 0)
    if version not in {0, header.version} or buffer_size not in {0, header.buffer_size}:
        return False
    if asked_order(options, WRITTEN_ORDER) not in {"", header.byte_order}:
        return False
    return not findings_to_repair(capture)


def copy(capture: Capture, sink: Sink) -> None:
    """Write a trace as it is."""
    for piece in capture.source.pieces():
        sink.write(piece)


def pack(
    view: Capture,
    given: FileHeader,
    sink: Sink,
    options: Mapping[str, Any],
    timeless: list[Lost] | None = None,
    left_out: list[tuple[Lost, str]] | None = None,
) -> Counter[str]:
    """Write the events of a view of a trace after its header. Return the counts of losses.

    With a list ``timeless``, events whose times nanoseconds cannot hold are put there instead.
    Into ``left_out`` go those that the version cannot hold, with the name of the loss.
    """
    whole = whole_of(view)
    form = whole.format
    head = whole.source.read(0, wire.HEADER_BYTES)
    size = given.buffer_size
    dialect = wire.Dialect(form, given.version)
    version = checked_version(form, int(options.get("version") or 0) or dialect.defined)
    size_asked = int(options.get("buffer_size") or 0)
    dropped: Counter[str] = Counter()
    # Version 1 fills buffers up to their size: one that is not plausible is replaced.
    if size_asked and not dialect.basic:
        size = checked_size(form, version, size_asked)
    elif (
        version < wire.EXTENTS_VERSION
        and not dialect.basic
        and not wire.SMALLEST_BUFFER <= size <= MOST_PADDED
    ):
        size = wire.BUFFER_BYTES
        dropped["sizes of buffers"] += 1
    header = attrs.evolve(
        given, version=version, type=dialect.type, buffer_size=size, byte_order="little"
    )
    header.raw = _with_garbage(header, head, wire.header_state(given.byte_order))
    order = asked_order(options, WRITTEN_ORDER)
    packer = packer_of(form, sink, header, byte_order=order, left_out=left_out)
    packer.add_koids(*whole.event_threads())
    # The first time beyond int64 nanoseconds.
    beyond = -(-LATEST * (whole.frequency or NS_PER_SECOND) // NS_PER_SECOND)
    for events in chosen_events(view):
        if timeless is not None and beyond <= U64_MAX:
            late = events.tsc >= np.uint64(beyond)
            if late.any():
                timeless.append(picked(events, late))
                events = picked(events, ~late)
        packer.write(events, whole.payloads)
    return dropped + packer.close()


def _with_garbage(header: FileHeader, head: bytes, state: State) -> bytes:
    """Return the bytes of a header with those bits of another one that have no meaning."""
    data = np.array(bytearray(header.pack()))
    start = np.zeros(1, np.int64)
    for field, place in FileHeader.layout.places.items():
        if not field.public:
            number = wrapped(place.get(memoryview(head), 0, state.big, state.mirrored))
            place.put_many(data, start, np.array([number]))
    return data.tobytes()
