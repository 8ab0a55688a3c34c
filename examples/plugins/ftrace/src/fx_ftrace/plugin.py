"""Linux ftrace text: what the package registers."""

from __future__ import annotations

from collections.abc import Iterable

from fx_ftrace.rules import RULES
from fxframework import hookimpl
from fxframework.registry import Confidence, Probe, Reader, lazy

FXFRAMEWORK_API = 2
"""The version of fxframework's plugin API that this is built for."""
LINES = 32
"""Lines at the beginning of a file that are looked at."""


def sniff(probe: Probe) -> Confidence:
    """CERTAIN for the header of ftrace, and where most of the first lines are events."""
    if probe.head.startswith(b"# tracer: "):
        return Confidence.CERTAIN
    from fx_ftrace.read.lines import COMMENT, parsed

    lines = [line for line in probe.head.split(b"\n")[:LINES] if line.strip()]
    other = [line for line in lines if not COMMENT.match(line)]
    events = sum(parsed(line) is not None for line in other)
    return Confidence.CERTAIN if 2 * events > len(other) else Confidence.NONE


@hookimpl
def fx_readers() -> Iterable[Reader]:
    """Text of ftrace, trace-cmd and perf."""
    return [
        Reader(
            format="ftrace",
            title="Linux ftrace text (trace, trace-cmd report, perf script)",
            suffixes=(".ftrace",),
            sniff=sniff,
            open=lazy("fx_ftrace.read.reader:FtraceCapture"),
            rules=lambda: RULES,
            sample=lazy("fx_ftrace.sample:sample"),
        )
    ]
