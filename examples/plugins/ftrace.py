"""Linux ftrace text, of `trace`, `trace-cmd report` and `perf script`: a record for each line."""

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from fxframework import plugin as fx

# Possessive (`++`), so that a line that is not an event takes time in proportion to its length.
EVENT = re.compile(
    rb" *+(?P<task>\S.{0,47}?)(?:-| ++(?:\d{1,9}/)?)(?P<tid>\d{1,9}) ++(?:\([ \d-]++\) ++)?"
    rb"\[(?P<cpu>\d{1,5})\] ++(?:[^\s:]{4,6} ++)?(?P<seconds>\d{1,9})\.(?P<decimals>\d{6,9}): ++"
    rb"(?P<event>[\w.-]++(?::[\w.-]++)*+): ?(?P<fields>.*)"
)
COMMENT = re.compile(rb"\s*+(?:#|$)")
UNKNOWN = fx.Rule(
    "FTR0101", fx.Severity.DATA_LOSS, "neither an event nor a comment", "ftrace, Output format",
    "A line is a task, a thread, a CPU, a time, an event and its fields.", ours="It is `damaged`.",
)  # fmt: skip
RULES = fx.Catalogue([UNKNOWN])
SAMPLE = b"shop-8 [001] ..... 1.000070: tracing_mark_write: B|7|order 12\n"
COLUMNS = (
    fx.Column("ftrace_task", "code", "the task that ran"),
    fx.Column("ftrace_tid", "u8", "its thread"),
    fx.Column("ftrace_cpu", "u4", "the CPU that it ran on"),
    fx.Column("ftrace_fields", "code", "what is behind the event's name"),
)


class Ftrace(fx.PieceCapture):
    """A text of ftrace: each event is an instant."""

    format = "ftrace"
    rules = RULES
    schemas: ClassVar = {"instants": fx.STANDARD_TABLES["instants"].extended(*COLUMNS)}
    timed_records = True

    def pieces(self) -> Iterator[fx.Piece]:
        """Yield a piece for each line, with its end."""
        text = self.source.read(0, self.source.size)
        cursor = 0
        while cursor < len(text):
            end = text.find(b"\n", cursor) + 1 or len(text)
            yield piece_of(text[cursor:end], cursor)
            cursor = end

    def rows(self, piece: fx.Piece) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the row of an event."""
        if piece.record == "event":
            columns = {f"ftrace_{name}": value for name, value in piece.fields.items()}
            yield "instants", {"name": columns.pop("ftrace_event"), "scope": 2, **columns}


def piece_of(line: bytes, offset: int) -> fx.Piece:
    """Return a line as an event, a comment, or damage."""
    event = EVENT.match(line)
    if event is None and COMMENT.match(line):
        return fx.Piece("comment", offset, line)
    if event is None:
        return fx.Piece("damaged", offset, line, rule=UNKNOWN)
    texts = {key: part.decode(errors="backslashreplace") for key, part in event.groupdict().items()}
    nanoseconds = int(texts.pop("decimals").ljust(9, "0"))
    ns = 10**9 * int(texts.pop("seconds")) + nanoseconds
    numbers = {"tid": int(texts["tid"]), "cpu": int(texts["cpu"])}
    return fx.Piece("event", offset, line, {**texts, **numbers}, ns=ns)


def sniff(probe: fx.Probe) -> fx.Confidence:
    """Return CERTAIN for the header of ftrace, and where the first line is an event."""
    is_ftrace = probe.head.startswith(b"# tracer: ") or EVENT.match(probe.head)
    return fx.Confidence.CERTAIN if is_ftrace else fx.Confidence.NONE


@fx.hookimpl
def fx_readers() -> list[fx.Reader]:
    """Return the reader."""
    return [fx.Reader(
        format="ftrace", open=Ftrace, sniff=sniff, rules=lambda: RULES,
        sample=lambda nbytes: SAMPLE * (nbytes // len(SAMPLE) + 1),
    )]  # fmt: skip
