"""Timeline: alignment of several captures to one clock."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fractions import Fraction

import attrs
import numpy as np

from fxframework.errors import UsageError, WriteRefusedError, did_you_mean, readable_name
from fxframework.kernels.arrays import I64
from fxframework.model.capture import Capture, SameRows, Summary, View
from fxframework.model.clock import NS_MAX, NS_MIN, NS_PER_SECOND, ends_of
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

CLOCKS = ("utc", "boot", "monotonic")
"""Clocks used to align captures, the most reliable first."""
HOW_TO_ALIGN = "give offset=NS, or FROM=TO, or two pairs FROM=TO,FROM=TO in nanoseconds, or tsc"


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
        (from_1, to_1), (from_2, to_2) = sorted((first, second))
        if from_1 == from_2 or to_2 <= to_1:
            raise UsageError(
                f"no clock goes from {from_1} to {to_1} and from {from_2} to {to_2}",
                remedy="give two different moments, the later of which is later on both clocks",
            )
        return cls(to_1, from_1, Fraction(to_2 - to_1, from_2 - from_1))

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
            first = int(ns.min()) + shift
            last = int(ns.max()) + shift
            if first >= NS_MIN and last <= NS_MAX and NS_MIN <= shift <= NS_MAX:
                return ns + shift, 0
        # Python's integers: a product of a time and a rate need not fit int64.
        exact_times = [self.at(time) for time in ns.tolist()]
        lost = sum(not NS_MIN <= time <= NS_MAX for time in exact_times)
        clamped = [min(max(time, NS_MIN), NS_MAX) for time in exact_times]
        return np.array(clamped, np.int64), lost


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


class AlignedCapture(SameRows):
    """A capture with its times mapped to a timeline. Raw ticks and records are unchanged."""

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

    def summary(self) -> Summary:
        """Return the summary of the whole capture, with its times mapped."""
        summary = self.whole.summary()
        line = self.alignment.line
        start = summary.start_ns
        if start is not None:
            start = line.at(start)
        end = summary.end_ns
        if end is not None:
            end = line.at(end)
        return attrs.evolve(summary, start_ns=start, end_ns=end)

    def _part(self, table: Table) -> Table:
        line = self.alignment.line
        if line.is_identity or "ts" not in table.columns:
            return table
        ts = table.array("ts")
        times, _ = line.times(ts)
        if "dur" not in table.columns or line.rate == 1:
            return table.replaced(ts=times)
        return table.replaced(ts=times, dur=_mapped_lengths(line, ts, table.array("dur")))


def _mapped_lengths(line: Line, ts: I64, lengths: I64) -> I64:
    """Map lengths to the timeline; -1 (never closed) is kept."""
    # By both ends, so that what ended together, or when another began, still does.
    starts, _ = line.times(ts)
    ends, _ = line.times(ends_of(ts, lengths))
    return np.where(lengths < 0, lengths, ends - starts)


def parse_alignments(texts: Sequence[str]) -> dict[str, Line | str]:
    """Parse texts ``NAME:HOW`` of ``--align``: a line, or the name of a clock (``tsc``), by name.

    HOW is ``offset=NS``, one pair ``FROM=TO`` or two, separated by a comma, or ``tsc``. Raises
    UsageError for anything else.
    """
    alignments: dict[str, Line | str] = {}
    for text in texts:
        name, colon, how = text.rpartition(":")
        if not colon or not name:
            raise UsageError(f"{text!r} does not name a capture", remedy="--align NAME:offset=NS")
        alignments[name] = _parse_how(text, how)
    return alignments


def _parse_how(text: str, how: str) -> Line | str:
    """Parse HOW; ``text`` is the whole, for messages."""
    if how == "tsc":
        return how
    try:
        if how.startswith("offset="):
            return Line(int(how.removeprefix("offset=")))
        pairs: list[tuple[int, int]] = []
        for pair in how.split(","):
            from_ns, to_ns = pair.split("=")
            pairs.append((int(from_ns), int(to_ns)))
    except ValueError:
        pairs = []
    if len(pairs) == 1:
        origin, start = pairs[0]
        return Line(start, origin)
    if len(pairs) == 2:
        return Line.through(*pairs)
    raise UsageError(f"{text!r} is not an alignment", remedy=HOW_TO_ALIGN)


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
    requested = _by_position(captures, dict(given or {}))
    first = captures[0]
    alignments = []
    for position, capture in enumerate(captures):
        is_first = position == 0
        alignments.append(_alignment(first, capture, requested.get(position), is_first=is_first))
        if not is_first:  # the first one's clocks are needed for the others
            spare(captures, capture)
    return alignments


def spare(captures: Sequence[Capture], capture: Capture) -> None:
    """Trim one of several captures if together they are large."""
    if len(captures) > 1 and sum(other.source.size for other in captures) > LARGE:
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
    starts = []
    ends = []
    for name, schema in capture.schemas.items():
        if not any(column.name == "ts" for column in schema.columns):
            continue
        for batch in capture.batches(name):
            if len(batch):
                ts = batch.array("ts")
                starts.append(int(ts.min()))
                ends.append(int(ts.max()))
    first = min(starts, default=0)
    last = max(ends, default=0)
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


def _by_position(
    captures: Sequence[Capture], given: dict[str, Line | str]
) -> dict[int, Line | str]:
    """Return the alignments that are given by name, by the position of the capture."""
    names = [capture.name for capture in captures]
    short_names = [_short(name) for name in names]
    alignments: dict[int, Line | str] = {}
    for given_name, how in given.items():
        given_name = readable_name(given_name)
        positions = [
            position
            for position, (name, short_name) in enumerate(zip(names, short_names, strict=True))
            if given_name in {name, short_name}
        ]
        if len(positions) != 1:
            problem = "names several captures" if positions else "names no capture"
            raise UsageError(
                f"--align {given_name!r} {problem}{did_you_mean(given_name, short_names)}",
                remedy=f"the captures are {', '.join(names)}",
            )
        alignments[positions[0]] = how
    return alignments


def _short(name: str) -> str:
    """Return the last part of a path or an address."""
    if os.name == "nt":
        name = name.replace("\\", "/")
    return name.rpartition("/")[2]


def _alignment(
    first: Capture, capture: Capture, requested: Line | str | None, *, is_first: bool
) -> Alignment:
    name = capture.name
    if isinstance(requested, Line):
        return Alignment(name=name, line=requested, reason="as --align says")
    if requested == "tsc":
        return Alignment(name=name, line=_from_tsc(first, capture), reason="one TSC, by --align")
    if is_first:
        return Alignment(name=name, line=Line(), reason="the clock of the timeline")
    timeline_clocks = first.clocks
    clocks = capture.clocks
    # A clock reads c at time 0 of the capture and t at time 0 of the timeline: c - t between them.
    for clock in CLOCKS:
        if clock in timeline_clocks and clock in clocks:
            line = Line(clocks[clock] - timeline_clocks[clock])
            return Alignment(name=name, line=line, reason=f"both know the {clock} clock")
    for timeline_clock, clock in (("boot", "monotonic"), ("monotonic", "boot")):
        if timeline_clock in timeline_clocks and clock in clocks:
            line = Line(clocks[clock] - timeline_clocks[timeline_clock])
            reason = (
                f"its {clock} clock taken as the {timeline_clock} clock: right unless it was "
                "suspended"
            )
            return Alignment(name=name, line=line, reason=reason)
    has_clocks = "it has no known clock"
    if clocks:
        has_clocks = f"it has the clocks {', '.join(clocks)}"
    return Alignment(
        name=name,
        line=Line(),
        reason=f"{has_clocks}, and shares none with the first capture; its times are not changed",
        assumed=True,
    )


def _from_tsc(first: Capture, capture: Capture) -> Line:
    """Return the line between the nanoseconds of two captures whose ticks are of the same TSC."""
    timeline_ticks, timeline_rate = _tick_rate(first)
    ticks, rate = _tick_rate(capture)
    # A moment of the capture is at `ticks + ns * rate / 1e9` ticks of the counter, which the
    # timeline takes for `(ticks - timeline_ticks) * 1e9 / timeline_rate` ns.
    start = (ticks - timeline_ticks) * NS_PER_SECOND // timeline_rate
    return Line(start, 0, Fraction(rate, timeline_rate))


def _tick_rate(capture: Capture) -> tuple[int, int]:
    """Return the ticks at time 0 and per second. Raises UsageError if they are unknown."""
    tick_rate = capture.tick_rate
    if not tick_rate:
        raise UsageError(
            "its ticks have no known rate, so they cannot be one TSC with others",
            path=capture.name,
            remedy="relate it by --align NAME:FROM=TO",
        )
    return tick_rate
