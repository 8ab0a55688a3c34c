"""Models of Fuchsia's Rust and C++ readers of Inspect: their behaviour, by finding.

`ffx inspect` and `iquery` show the result of the Rust reader. Both readers examine the same values
as this project, so that each finding has a row in the table of each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from fx_inspect import layout, rules
from fx_inspect.layout import BlockType
from fxframework.io.source import Source
from fxframework.model.capture import Capture
from fxframework.model.diagnostics import Diagnostic
from fxframework.model.prediction import Effect, Prediction, Quirk

__all__ = ["CPP", "RUST", "cpp_quirks", "predict_cpp", "predict_rust", "rust_quirks"]

R, D, M = Effect.REFUSES, Effect.DROPS, Effect.MISREADS


@attrs.frozen
class Row:
    """A quirk, and the codes of the findings that cause it."""

    quirk: Quirk
    codes: frozenset[str]


def _row(key: str, effect: Effect, codes: str, title: str, message: str | None = None) -> Row:
    numbers = frozenset(f"FXI{number}" for number in codes.split())
    return Row(Quirk(key=key, effect=effect, title=title, message=message), numbers)


RUST: Final = (
    _row("header", R, "0001 0002 0003", "a file without a header, of another magic, or of an "
         "unknown version, is refused", "MissingHeaderOrLocked"),
    _row("version-0", R, "", "a file in the layout of version 0 is refused",
         "MissingHeaderOrLocked"),
    _row("locked", R, "0005", "a file that was copied during a change is refused",
         "MissingHeaderOrLocked"),
    _row("block-type", R, "0101", "a file with a block of an unknown type is refused",
         "InvalidBlockTypeNumber"),
    _row("name", R, "0201 0202", "a file with a value whose name is not a string is refused",
         "ParseName"),
    _row("name-utf8", R, "", "a file with a NAME that is not UTF-8 is refused", "ParseName"),
    _row("extent", R, "", "a file with a chain of extents that leads out of it is refused",
         "GetBlock"),
    _row("format", R, "0209 0217", "a file with a buffer of an unknown format, or a link of an "
         "unknown disposition, is refused", "InvalidFlags"),
    _row("reference", R, "0210 0216 0218", "a file with a string, slot or link that does not lead "
         "to a string is refused"),
    _row("array-type", R, "0211", "a file with an array of an invalid entry type is refused",
         "InvalidArrayType"),
    _row("slots", R, "0212", "a file with an array of more slots than its block has is refused",
         "AttemptedToReadTooManyArraySlots"),
    _row("histogram", R, "0213 0214", "a file with a histogram of too few slots is refused",
         "MissingHistogramElements"),
    _row("array-format", R, "0215", "an array of an unknown format makes it panic", "panic"),
    _row("scan", D, "0008 0011 0012 0013", "blocks behind one that is too large are not read"),
    _row("orphan", D, "0221 0222", "values that no node leads to are left out"),
    _row("utf8", M, "0204", "bytes of a string that are not UTF-8 become U+FFFD"),
    _row("name-overrun", M, "0203", "a name that is longer than its block has the bytes behind it"),
    _row("not-extent", M, "0205", "a block of another type in a chain is read as an extent"),
    _row("ring", M, "0206", "a chain of extents that is a ring is repeated up to the declared "
         "length"),
    _row("short-chain", M, "0207", "a value whose chain ends early is filled with zero bytes"),
)  # fmt: skip
CPP: Final = (
    _row("header", R, "0002 0003", "a file of another magic, or of an unknown version, is refused",
         "ZX_ERR_INTERNAL"),
    _row("no-header", R, "", "a file of less than 16 bytes, or with another magic, is refused"),
    _row("empty", D, "0001", "a file whose first block is not a header is an empty tree"),
    _row("version-0", D, "", "a file in the layout of version 0 is an empty tree"),
    _row("value", D, "0201 0202 0203 0209 0210 0211 0212 0213 0218", "a value with an invalid "
         "name, format, type or reference is left out"),
    _row("block-type", D, "0101", "a block of an unknown type is left out"),
    _row("cut", D, "0205 0206 0207", "a value whose chain of extents ends early is cut"),
    _row("scan", D, "0008 0011 0012 0013", "blocks behind one that is too large are not read"),
    _row("orphan", D, "0221 0222", "values that no node leads to are left out"),
    _row("histogram", M, "0214 0215", "a histogram of too few slots, or an array of an unknown "
         "format, is shown as it is"),
    _row("slot", M, "0216", "a slot without a string is empty"),
    _row("disposition", M, "0217", "a link of an unknown disposition is kept, and invalid"),
    _row("locked", M, "0005", "a file that was copied during a change is read as it is"),
)  # fmt: skip
MINIMUM: Final = layout.UNIT
"""Fewest bytes of a header."""
EXTENTS: Final = 1 << 20
"""Most steps along a chain of extents."""


def rust_quirks() -> tuple[Quirk, ...]:
    """Return the table of the Rust reader."""
    return tuple(row.quirk for row in RUST)


def cpp_quirks() -> tuple[Quirk, ...]:
    """Return the table of the C++ reader."""
    return tuple(row.quirk for row in CPP)


def predict_rust(capture: Capture, found: Prediction) -> None:
    """Add the predicted effects of the Rust reader on a VMO."""
    source = capture.source
    if layout.is_legacy(source.read(0, 2)):
        found.add("version-0", 0)
    elif source.size < MINIMUM:
        found.add("header", 0)
    choices = {
        rules.NOT_UTF8.code: _text,
        rules.CHAIN_WITHOUT_EXTENT.code: _extent,
        rules.EMPTY_HISTOGRAM.code: _slots,
    }
    _predict(capture, found, RUST, choices)


def predict_cpp(capture: Capture, found: Prediction) -> None:
    """Add the predicted effects of the C++ reader on a VMO."""
    source = capture.source
    if layout.is_legacy(source.read(0, 2)):
        found.add("version-0", 0)
    elif source.size < MINIMUM or source.read(4, 4) != layout.MAGIC:
        found.add("no-header", 0)
    _predict(capture, found, CPP, {})


Choice = Callable[[Source, int], str]


def _predict(
    capture: Capture, found: Prediction, table: tuple[Row, ...], special: Mapping[str, Choice]
) -> None:
    """Add the quirk of each finding; unlisted ones count at the last listed one of their code."""
    capture.scan()
    keys = {code: row.quirk.key for row in table for code in row.codes}
    findings: dict[str, list[Diagnostic]] = {}
    for finding in capture.diagnostics.sorted():
        findings.setdefault(finding.code, []).append(finding)
    for code, count in capture.diagnostics.counts.items():
        if code not in keys or code not in findings:
            continue
        for finding in findings[code]:
            offset = finding.offset or 0
            key = special[code](capture.source, offset) if code in special else keys[code]
            found.add(key, offset, finding.record, finding.message)
        hidden = count - len(findings[code])
        if hidden > 0:
            last = findings[code][-1]
            found.add(keys[code], last.offset or 0, last.record, times=hidden)
    found.records = capture.summary().records


def _header(source: Source, offset: int) -> tuple[int, int]:
    """Return the type of a block, and its first word."""
    word = int.from_bytes(source.read(offset, 8), "little")
    return word >> 8 & 0xFF, word


def _text(source: Source, offset: int) -> str:
    """Return the quirk of a NAME, or of another string."""
    return "name-utf8" if _header(source, offset)[0] == BlockType.NAME else "utf8"


def _slots(source: Source, offset: int) -> str:
    """Return the quirk of a histogram without slots, or of an array of an unknown format."""
    known = source.read(offset + 8, 1)[0] >> 4 <= layout.ARRAY_EXPONENTIAL
    return "histogram" if known else "array-format"


def _extent(source: Source, offset: int) -> str:
    """Return the quirk of a chain: whether it leads out of the file, or to another block."""
    kind, word = _header(source, offset)
    if kind == BlockType.STRING_REFERENCE:
        index = word >> 16 & 0xFFFFFF
    else:
        index = int.from_bytes(source.read(offset + 8, 8), "little") >> 32 & 0xFFFFFFF
    for _ in range(EXTENTS):
        at = index * layout.UNIT
        if at + layout.UNIT > source.size:
            return "extent"
        kind, word = _header(source, at)
        if kind != BlockType.EXTENT:
            break
        index = word >> 16 & 0xFFFFFF
    return "not-extent"
