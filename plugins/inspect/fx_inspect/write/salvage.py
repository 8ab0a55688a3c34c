"""Salvage of Inspect: rebuilds the sound part of a tree as a sound VMO.

Blocks refer to each other, so leaving out damaged ones is not enough: the writer builds the tree
again. Free space, tombstones and unreferenced blocks are dropped, and blocks move; the version
stays the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from fx_inspect import rules
from fx_inspect.format import DAMAGED, MAX_VMO, UNKNOWN_BLOCK, is_legacy, version_of
from fx_inspect.read import tables
from fx_inspect.read.blocks import Blocks
from fx_inspect.read.decoder import Objects
from fx_inspect.read.histograms import EXPONENTIAL, LINEAR, Histogram
from fx_inspect.read.records import InspectRecord
from fx_inspect.read.walk import EXPANDED, Link, Slots, Values, walk
from fx_inspect.rules import RULES
from fx_inspect.write.arrays import (
    MOST_NUMBERS,
    DoubleArray,
    IntArray,
    NumberArray,
    UintArray,
    checked_slots,
)
from fx_inspect.write.nodes import Node
from fx_inspect.write.values import Lazy
from fx_inspect.write.writer import Inspector
from fxframework.errors import Severity, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.kit.export import decoded
from fxframework.kit.lossless import DamagedRecord
from fxframework.kit.memo import Memo, strings_of
from fxframework.kit.salvage import Loss, lost
from fxframework.model.capture import Capture
from fxframework.model.table import Table

NOT_UTF8 = "not valid UTF-8; U+FFFD replaces the invalid bytes"
NUMBERS: Mapping[int, type[NumberArray[Any]]] = {
    tables.INT_ARRAY: IntArray,
    tables.UINT_ARRAY: UintArray,
    tables.DOUBLE_ARRAY: DoubleArray,
}
"""Classes of arrays by their kind."""
DISPOSITIONS = {"child": 0, "inline": 1}


class _Text(NamedTuple):
    """The text of some bytes."""

    text: str
    sound: bool
    """Whether the bytes are UTF-8."""


_Texts = Mapping[bytes, _Text]
Found = tuple[bytes, int, int, Any]
"""A property: its name, its type, its offset, and its value."""


def salvage(capture: Capture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
    """Write the sound part of a tree. Yield each loss (``registry.Writer``).

    Data that was changed but kept is a loss of 0 bytes. A sound file is copied unchanged.
    """
    del options
    capture.scan()
    worst = capture.diagnostics.worst
    if not capture.source.size or worst is None or worst < Severity.WARNING:
        for file_piece in capture.source.pieces():
            sink.write(file_piece)
        return
    # First what the reader left out, then what the writer leaves out. If neither left out
    # anything, only departures from the format are lost: these are the findings.
    losses = 0
    for loss in _found(capture):
        losses += 1
        yield loss
    inspector = Inspector(version=_version(capture), max_size=MAX_VMO, growth="double")
    with inspector.transaction():
        for loss in _rebuilt(capture, inspector.root):
            losses += 1
            yield loss
    failed = inspector.stats().failed_allocations
    if failed:
        losses += 1
        message = f"{failed} blocks do not fit into a VMO of {MAX_VMO} bytes"
        yield Loss(0, 0, "block", message, rules.VMO_FULL.code)
    for finding in capture.diagnostics.sorted() if not losses else ():
        if finding.severity >= Severity.WARNING:
            message = f"written again without what departs from the format: {finding.message}"
            yield Loss(finding.offset or 0, 0, "block", message, finding.code)
    sink.write(inspector.copy() or b"")


def _version(capture: Capture) -> int:
    """Return the version to write: that of the capture, or 2 for an unknown one."""
    head = capture.source.read(0, 4)
    if is_legacy(head):
        return 0
    return 1 if version_of(head) == 1 else 2


def _found(capture: Capture) -> Iterator[Loss]:
    """Yield the losses of the reader: what is not a block of the format, and findings."""
    stretches: list[tuple[int, int]] = []
    for record in _left_out(capture):
        if isinstance(record, DamagedRecord):
            stretches.append((record.offset, record.offset + record.nbytes))
            yield lost(record)
        else:
            message = f"{record.nbytes} bytes are a block of unknown type; left out"
            code = rules.UNKNOWN_TYPE.code
            yield Loss(record.offset, record.nbytes, record.record, message, code)
    capture.scan()
    for finding in capture.diagnostics.sorted():
        if finding.severity < Severity.DATA_LOSS or finding.code not in RULES:
            continue
        offset = finding.offset or 0
        # Records, and so the stretches, are in the order of the file.
        stretches_before = bisect_right(stretches, offset, key=itemgetter(0))
        if not stretches_before or offset >= stretches[stretches_before - 1][1]:
            yield Loss(offset, 0, "block", finding.message, finding.code)


def _left_out(capture: Capture) -> Iterator[InspectRecord]:
    """Yield the damaged stretches and the blocks of unknown types, in the order of the file."""
    for run in Blocks(capture.source.data, capture.request.limits).runs():
        rows = np.flatnonzero((run.types == DAMAGED) | (run.types == UNKNOWN_BLOCK))
        objects = Objects(run) if rows.size else None
        for row in rows.tolist():
            assert objects is not None  # noqa: S101 (made where there are rows)
            yield objects.record(row)


def _rebuilt(capture: Capture, root: Node) -> Iterator[Loss]:
    """Build the tree again below ``root``. Yield the losses."""
    strings = strings_of(capture.strings)
    texts = Memo(_text_of, 0)
    nodes: list[Node | None] = []
    for placed in walk(capture, _render(strings)):
        del nodes[placed.depth :]
        parent = nodes[-1] if nodes else None
        # Below a node that could not be written, there is nothing to write to.
        if not nodes:
            nodes.append(root)
        elif parent is None:
            nodes.append(None)
        else:
            name = strings[placed.name]
            losses, child = _created(texts, parent.create_child, name, placed.offset, "node")
            yield from losses
            nodes.append(child)
        node = nodes[-1]
        if node is None:
            continue
        for name, kind, offset, value in placed.properties:
            creator = _maker(texts, node, kind, value)
            losses, _ = _created(texts, creator, name, offset, "property")
            yield from losses
            property_name = texts[name].text
            strings_of_value: Sequence[bytes] = ()
            if kind == tables.STRING:
                strings_of_value = [value]
            elif kind == tables.STRING_ARRAY:
                strings_of_value = value
            if not all(texts[string].sound for string in strings_of_value):
                yield Loss(offset, 0, "property", f"value of {property_name}: {NOT_UTF8}")
            elif kind in NUMBERS and value[2]:
                message = f"{property_name} has too few slots for a histogram; kept as an array"
                yield Loss(offset, 0, "property", message, rules.FEW_SLOTS.code)
        for link in placed.links:
            if link.state != EXPANDED:
                yield from _linked(strings, texts, node, link)


def _created(
    texts: _Texts, make: Callable[[str], Any], name: bytes, offset: int, kind: str
) -> tuple[list[Loss], Any]:
    """Create a value by its name. Return the losses, and the value or None."""
    losses = []
    value_name, is_sound = texts[name]
    if not is_sound:
        losses.append(Loss(offset, 0, kind, f"name {value_name}: {NOT_UTF8}"))
    try:
        return losses, make(value_name)
    except WriteRefusedError as error:
        message = f"{value_name} cannot be written: {error.message}"
        return [Loss(offset, 0, kind, message, error.code)], None


def _maker(texts: _Texts, node: Node, kind: int, value: Any) -> Callable[[str], Any]:
    """Return the function that creates a property with a name."""
    if kind in NUMBERS:
        slots, format, _ = value

        def make(name: str) -> Any:
            # Created directly, because the parameters may be invalid for the histogram classes.
            cls = NUMBERS[kind]
            checked_slots(slots, MOST_NUMBERS)
            array = cls(node._state, node, len(slots), format)  # noqa: SLF001
            array._make(name, slots)
            return array

        return make
    if kind == tables.STRING_ARRAY:
        items = [texts[item].text for item in value]
        return lambda name: node.create_string_array(name, items)
    if kind == tables.STRING:
        return lambda name: node.create_string(name, texts[value].text)
    creators: Mapping[int, Callable[[str, Any], Any]] = {
        tables.INT: node.create_int,
        tables.UINT: node.create_uint,
        tables.DOUBLE: node.create_double,
        tables.BOOL: node.create_bool,
        tables.BYTES: node.create_bytes,
    }
    return lambda name: creators[kind](name, value)


def _linked(strings: Mapping[int, bytes], texts: _Texts, node: Node, link: Link) -> Iterator[Loss]:
    """Create a link again, with the same content. Yield the losses."""
    name = strings[link.name]
    content = strings[link.content]
    if link.disposition not in DISPOSITIONS:
        yield Loss(
            link.offset, 0, "link", f"{texts[name].text} has an unknown disposition; left out"
        )
        return

    def make(name: str) -> Any:
        # The same content, so that its file is still found.
        new_link = Lazy(node._state, node, Inspector, texts[content].text)  # noqa: SLF001
        new_link._make(name, DISPOSITIONS[link.disposition])
        return new_link

    losses, _ = _created(texts, make, name, link.offset, "link")
    yield from losses


def _render(strings: Mapping[int, bytes]) -> Callable[[Table, Slots], list[Found]]:
    """Return the function that converts properties to the values needed to create them again."""

    def histogram(value: Histogram) -> Any:
        format = LINEAR if value.multiplier is None else EXPONENTIAL
        return value.slots(), format, False

    values: Values[Any] = Values(
        array=lambda _type, slots, format: (slots, 0, format != 0),
        histogram=histogram,
        strings=lambda codes: [strings[code] for code in codes],
    )

    def render(batch: Table, slots: Slots) -> list[Found]:
        rows = batch.tuples("name", "type", "offset")
        return [
            (strings[name], type, offset, value)
            for (name, type, offset), value in zip(rows, values.of(batch, slots), strict=True)
        ]

    return render


def _text_of(data: bytes) -> _Text:
    dropped: Counter[str] = Counter()
    text = decoded(data, dropped)
    return _Text(text, not dropped)
