"""Timeline: alignment of several captures to one clock."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.errors import UsageError, WriteRefusedError, did_you_mean, readable_name
from fxframework.model.capture import Capture, Summary, View
from fxframework.model.clock import NS_MAX, NS_MIN, NS_PER_SECOND
from fxframework.model.table import Table

__all__ = [
    "AlignedCapture",
    "Alignment",
    "Line",
    "align",
    "aligned",
    "before_zero",
    "later",
    "parse_alignments",
    "spare",
]

I64 = NDArray[np.int64]
CLOCKS = ("utc", "boot", "monotonic")
"""Clocks used to align captures, the most reliable first."""
HOW = "give offset=NS, or FROM=TO, or two pairs FROM=TO,FROM=TO in nanoseconds, or tsc"


@attrs.frozen
class Line:
    """A linear map between clocks: ``to = floor((from - origin) * rate) + start``, exact."""

    start: int = 0
    """The time on the second clock at ``origin``, in nanoseconds."""
    origin: int = 0
    """The time on the first clock, in nanoseconds."""
    rate: Fraction = Fraction(1)
    """Nanoseconds of the second clock per nanosecond of the first."""

    @classmethod
    def through(cls, first: tuple[int, int], second: tuple[int, int]) -> Line:
        """Return the line through two pairs of times (ns). Raises UsageError if there is none."""
        (a, b), (c, d) = sorted((first, second))
        if a == c or d <= b:
            raise UsageError(
                f"no clock goes from {a} to {b} and from {c} to {d}",
                remedy="give two different moments, the later of which is later on both clocks",
            )
        return cls(b, a, Fraction(d - b, c - a))

    @property
    def is_identity(self) -> bool:
        """Whether it maps every time to itself."""
        return self.rate == 1 and self.start == self.origin

    def at(self, ns: int) -> int:
        """Map one time (ns)."""
        return (ns - self.origin) * self.rate.numerator // self.rate.denominator + self.start

    def times(self, ns: I64) -> tuple[I64, int]:
        """Map times, int64 of shape (n,); also return how many were clamped to fit int64."""
        if self.is_identity or not ns.size:
            return ns, 0
        if self.rate == 1:
            shift = self.start - self.origin
            low, high = int(ns.min()) + shift, int(ns.max()) + shift
            if low >= NS_MIN and high <= NS_MAX and NS_MIN <= shift <= NS_MAX:
                return ns + shift, 0
        exact = [self.at(each) for each in ns.tolist()]
        lost = sum(not NS_MIN <= each <= NS_MAX for each in exact)
        return np.array([min(max(each, NS_MIN), NS_MAX) for each in exact], np.int64), lost


@attrs.frozen(kw_only=True)
class Alignment:
    """How the clock of one capture maps to the timeline's."""

    name: str
    """The name of the capture."""
    line: Line
    """Maps the capture's clock to the timeline's."""
    reason: str
    """Why this line was chosen, in words."""
    assumed: bool = False
    """Whether the line is a guess that neither the captures nor the user confirm."""


class AlignedCapture(View):
    """A capture with its times mapped to a timeline. Raw ticks are unchanged."""

    def __init__(self, whole: Capture, alignment: Alignment) -> None:
        super().__init__(whole)
        self.alignment = alignment

    @property
    def utc_offset_ns(self) -> int | None:
        """Nanoseconds since the Unix epoch at time 0 of the timeline."""
        return self.clocks.get("utc")

    @property
    def clocks(self) -> Mapping[str, int]:
        """The clocks of the whole capture, at time 0 of the timeline."""
        shift = self.alignment.line.start - self.alignment.line.origin
        return {name: ns - shift for name, ns in self.whole.clocks.items()}

    def records(self) -> Any:
        """Return the records of the whole capture, with their original times."""
        records: Any = self.whole.records()
        return records

    def row_counts(self) -> Mapping[str, int]:
        """As in the whole capture."""
        return self.whole.row_counts()

    def summary(self) -> Summary:
        """Return the summary of the whole capture, with its times mapped."""
        summary = self.whole.summary()
        line = self.alignment.line
        start, end = (
            None if time is None else line.at(time) for time in (summary.start_ns, summary.end_ns)
        )
        return attrs.evolve(summary, start_ns=start, end_ns=end)

    def _part(self, table: Table) -> Table:
        line = self.alignment.line
        if line.is_identity or "ts" not in table.columns:
            return table
        moved = {"ts": line.times(table.array("ts"))[0]}
        if "dur" in table.columns and line.rate != 1:
            moved["dur"] = _durations(line, table.array("ts"), table.array("dur"))
        return table.replaced(**moved)


def _durations(line: Line, start: I64, length: I64) -> I64:
    """Map lengths to the timeline; -1 (never closed) is kept."""
    ends, _ = line.times(start + np.maximum(length, 0))
    moved: I64 = ends - line.times(start)[0]
    return np.where(length < 0, length, moved)


def parse_alignments(texts: Sequence[str]) -> dict[str, Line | str]:
    """Parse texts ``NAME:HOW`` of ``--align``: a line, or the name of a clock (``tsc``), by name.

    HOW is ``offset=NS``, one pair ``FROM=TO`` or two, separated by a comma, or ``tsc``. Raises
    UsageError for anything else.
    """
    found: dict[str, Line | str] = {}
    for text in texts:
        name, colon, how = text.rpartition(":")
        if not colon or not name:
            raise UsageError(f"{text!r} does not name a capture", remedy="--align NAME:offset=NS")
        found[name] = _parsed(text, how)
    return found


def _parsed(text: str, how: str) -> Line | str:
    if how == "tsc":
        return how
    try:
        if how.startswith("offset="):
            return Line(int(how.removeprefix("offset=")))
        pairs = [(int(a), int(b)) for a, b in (pair.split("=") for pair in how.split(","))]
    except ValueError:
        pairs = []
    if len(pairs) == 1:
        return Line(pairs[0][1], pairs[0][0])
    if len(pairs) == 2:
        return Line.through(*pairs)
    raise UsageError(f"{text!r} is not an alignment", remedy=HOW)


LARGE = 1 << 26
"""Above this total size in bytes, captures are trimmed after each pass to save memory."""


def align(
    captures: Sequence[Capture], given: Mapping[str, Line | str] | None = None
) -> list[Alignment]:
    """Align captures to the clock of the first one.

    An alignment in ``given`` (by the capture's name, or the last part of it) has precedence over
    a clock that both captures know (``Capture.clocks``). Without either, a capture keeps its own
    times, and its alignment is ``assumed``.

    Large captures are trimmed after they are read. Raises UsageError if a name in ``given``
    matches none of the captures, or several.
    """
    asked = _asked(captures, dict(given or {}))
    first = captures[0]
    found = []
    for number, capture in enumerate(captures):
        found.append(_alignment(first, capture, asked.get(number), is_first=number == 0))
        if number:
            spare(captures, capture)
    return found


def spare(captures: Sequence[Capture], capture: Capture) -> None:
    """Trim one of several captures if together they are large."""
    if len(captures) > 1 and sum(each.source.size for each in captures) > LARGE:
        capture.trim()


def aligned(capture: Capture, alignment: Alignment) -> Capture:
    """Return a view of a capture on the timeline's clock; the capture itself if no time changes."""
    return capture if alignment.line.is_identity else AlignedCapture(capture, alignment)


def before_zero(capture: Capture) -> int:
    """Return how far before time 0 a capture begins (ns); 0 if it does not.

    Raises WriteRefusedError if times that begin at 0 instead do not fit 63 bits.
    """
    bound = _lower_bound(capture)
    if bound is None or bound >= 0:
        return 0
    columns = [
        batch.array("ts")
        for name, schema in capture.schemas.items()
        if any(column.name == "ts" for column in schema.columns)
        for batch in capture.batches(name)
    ]
    first = min((int(ts.min()) for ts in columns if ts.size), default=0)
    last = max((int(ts.max()) for ts in columns if ts.size), default=0)
    if last - min(first, 0) > NS_MAX:
        raise WriteRefusedError(
            f"times from {first} ns to {last} ns do not fit 63 bits",
            path=capture.name,
            remedy="select a range of time with --since and --until",
        )
    return max(-first, 0)


def later(capture: Capture, shift: int) -> Capture:
    """Return a view of a capture whose times are later by ``shift`` ns; itself for 0."""
    reason = "the output begins at time 0"
    return aligned(capture, Alignment(name=capture.name, line=Line(shift), reason=reason))


def _lower_bound(capture: Capture) -> int | None:
    """Return a time that no row is before, or None if there are no times.

    The summary of a range of time cannot bound it: slices may begin before the range.
    """
    if isinstance(capture, AlignedCapture):
        bound = _lower_bound(capture.whole)
        return None if bound is None else capture.alignment.line.at(bound)
    if isinstance(capture, View):
        return _lower_bound(capture.whole)
    return capture.summary().start_ns


def _asked(captures: Sequence[Capture], given: dict[str, Line | str]) -> dict[int, Line | str]:
    names = [capture.name for capture in captures]
    found: dict[int, Line | str] = {}
    for name, how in given.items():
        name = readable_name(name)
        places = [place for place, known in enumerate(names) if name in {known, _short(known)}]
        if len(places) != 1:
            short = [_short(known) for known in names]
            trouble = "names several captures" if places else "names no capture"
            raise UsageError(
                f"--align {name!r} {trouble}{did_you_mean(name, short)}",
                remedy=f"the captures are {', '.join(names)}",
            )
        found[places[0]] = how
    return found


def _short(name: str) -> str:
    return (name.replace("\\", "/") if os.name == "nt" else name).rpartition("/")[2]


def _alignment(
    first: Capture, capture: Capture, asked: Line | str | None, *, is_first: bool
) -> Alignment:
    name = capture.name
    if isinstance(asked, Line):
        return Alignment(name=name, line=asked, reason="as --align says")
    if asked == "tsc":
        return Alignment(name=name, line=_from_tsc(first, capture), reason="one TSC, by --align")
    if is_first:
        return Alignment(name=name, line=Line(), reason="the clock of the timeline")
    base, own = first.clocks, capture.clocks
    for clock in CLOCKS:
        if clock in base and clock in own:
            line = Line(own[clock] - base[clock])
            return Alignment(name=name, line=line, reason=f"both know the {clock} clock")
    for one, another in (("boot", "monotonic"), ("monotonic", "boot")):
        if one in base and another in own:
            reason = f"its {another} clock taken as the {one} clock: right unless it was suspended"
            return Alignment(name=name, line=Line(own[another] - base[one]), reason=reason)
    shared = f"it has the clocks {', '.join(own)}" if own else "it has no known clock"
    return Alignment(
        name=name,
        line=Line(),
        reason=f"{shared}, and shares none with the first capture; its times are not changed",
        assumed=True,
    )


def _from_tsc(first: Capture, capture: Capture) -> Line:
    """Return the line between the nanoseconds of two captures whose ticks are of the same TSC."""
    rates = []
    for each in (first, capture):
        rate = each.tick_rate
        if not rate:
            raise UsageError(
                "its ticks have no known rate, so they cannot be one TSC with others",
                path=each.name,
                remedy="relate it by --align NAME:FROM=TO",
            )
        rates.append(rate)
    (base, base_rate), (own, own_rate) = rates
    # ticks = own + ns * own_rate / 1e9, and the timeline has (ticks - base) * 1e9 / base_rate.
    start = (own - base) * NS_PER_SECOND // base_rate
    return Line(start, 0, Fraction(own_rate, base_rate))
