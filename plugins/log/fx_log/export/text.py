"""The exporter `text`: one line for each log, as ffx prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, Final

from fx_log.export.lines import VERBOSITY, LineExport, Lines, Member, Members
from fx_log.export.presentation import (
    NO_OFFSET,
    Batch,
    Forms,
    Head,
    Texts,
    leaf,
    shown_values,
    utc_offset,
    wall_moments,
    wall_seconds,
)
from fx_log.severity import LEVELS, Level
from fxframework.kernels.arrays import I64
from fxframework.kit.memo import Memo
from fxframework.kit.row_texts import printable_json
from fxframework.kit.shown import rust_double
from fxframework.model.capture import Capture
from fxframework.model.table import Table

CLOCKS: Final = ("boot", "monotonic")
CUT: Final = "ends of messages, behind a NUL"
NO_MESSAGE: Final = "<missing message>"
MONIKER: Final = 1000
"""Most characters of a moniker in a line: one long moniker may appear in all logs."""
LONG_MONIKERS: Final = f"ends of monikers of more than {MONIKER} characters"
RESET: Final = "\x1b[0m"
LOST: Final = "\x1b[33m"
COLOURS: Final[Mapping[Level, str]] = {
    Level.TRACE: "\x1b[95m",
    Level.DEBUG: "\x1b[94m",
    Level.INFO: "",
    Level.WARN: "\x1b[33m",
    Level.ERROR: "\x1b[31m",
    Level.FATAL: "\x1b[97;41m",
}


def plain(text: str) -> str:
    """Return the text, or a JSON string of it if it has unprintable characters."""
    if text.isprintable():  # or empty
        return text
    return printable_json(text)


class TextExport(LineExport):
    """Writes the lines that `ffx log` prints."""

    def _lines(self, capture: Capture) -> Lines:
        return _Lines(capture, self._options, self._dropped)


class _Lines:
    """Renders logs as lines."""

    def __init__(self, capture: Capture, options: Mapping[str, Any], dropped: Counter[str]) -> None:
        self._dropped = dropped
        self._options = options
        self._colour = options["color"]
        time = options["time"]
        zone = time if time in ("utc", "local") else options["tz"]
        self._on_wall = time not in CLOCKS
        self._offset = utc_offset(options, capture) if self._on_wall else None
        self._seconds = Memo(wall_seconds(zone))
        self._texts = Texts(capture.strings, dropped)
        self._names = self._texts.pooled(plain)
        self._tags = self._texts.tags(plain)
        self._monikers: Memo[int, str] = Memo(self._moniker, 0)
        self._heads: Memo[tuple[Any, ...], tuple[str, str]] = Memo(self._head)
        self._forms = Forms(
            string=self._names,
            integer=str,
            double=rust_double,
            data=lambda data: f"[{data.hex()}]",
            true="true",
            false="false",
            null="null",
        )

    def arguments(self, args: Table) -> list[Member]:
        """Return arguments as lines show them, each with its name."""
        names = [self._names[code] for code in args.array("name").tolist()]
        names_and_values = zip(names, shown_values(args, self._forms), strict=True)
        return [(name, f" {name}={value}") for name, value in names_and_values]

    def _times(self, ts: I64) -> list[str]:
        """Return times as lines show them: those of day if the offset from UTC is known."""
        if self._offset is not None:
            whole_seconds, millis = wall_moments(ts, self._offset)
            moments = zip(whole_seconds.tolist(), millis.tolist(), strict=True)
            seconds = self._seconds
            return [f"{seconds[second]}.{milli:03d}" for second, milli in moments]
        if self._on_wall:  # ffx falls back to boot time too
            self._dropped[NO_OFFSET] += ts.size
        # At least five digits of seconds, and six of microseconds.
        micros = (ts.clip(0) // 1000).tolist()
        digits = [f"{micro:011d}" for micro in micros]
        return [f"{micro[:-6]}.{micro[-6:]}" for micro in digits]

    def of(self, batch: Batch[Member]) -> Iterator[str]:
        """Yield the line of each row."""
        messages = batch.messages.shown(self._message, self._texts)
        for time, head_key, message, args, dropped_logs, rolled_out, verbosity in batch.rows(
            self._times(batch.ts), messages
        ):
            colour, head = self._heads[head_key]
            if verbosity:
                args = [*args, (VERBOSITY, f" {VERBOSITY}={verbosity}")]
            losses = ""
            if dropped_logs or rolled_out:
                losses = self._losses(dropped_logs, rolled_out)
            reset = RESET if self._colour and (colour or losses) else ""
            yield f"{colour}[{time}]{head}{message}{joined(args)}{losses}{reset}\n"

    def _message(self, message: str) -> str:
        start, _, behind_nul = message.partition("\0")
        if behind_nul:
            self._dropped[CUT] += 1
        return plain(start)

    def _losses(self, dropped: int, rolled_out: int) -> str:
        """Return how many logs are missing before one."""
        colour = f"{RESET}{LOST}" if self._colour else ""
        counts = (("dropped", dropped), ("rolled", rolled_out))
        return "".join(f"{colour} [{word}={count}]" for word, count in counts if count)

    def _head(self, key: tuple[Any, ...]) -> tuple[str, str]:
        """Return the colour of lines with a head, and what they have between time and message."""
        head = Head.of(key)
        level = LEVELS[head.severity]
        head_texts: list[str] = []
        if self._options["show_metadata"]:
            for koid in (head.pid, head.tid):
                shown_koid = "" if koid is None else koid
                head_texts.append(f"[{shown_koid}]")
        moniker = self._monikers[head.component]
        head_texts.append(f"[{moniker}]")
        if self._options["show_tags"]:
            # The moniker is not shown twice.
            all_tags = [self._tags[code] for code in head.tags]
            tags = [tag for tag in all_tags if tag != moniker]
            if tags:
                head_texts.append(f"[{','.join(tags)}]")
        head_texts.append(f" {level.name}: ")
        if self._options["show_file"] and head.file >= 0:
            place = self._names[head.file]
            if head.line is not None:
                place += f"({head.line})"
            head_texts.append(f"[{place}] ")
        if not head.has_message:
            head_texts.append(NO_MESSAGE)
        line_colour = COLOURS[level] if self._colour else ""
        return line_colour, "".join(head_texts)

    def _moniker(self, code: int) -> str:
        """Return the moniker as lines show it, truncated if it is long."""
        moniker = self._names[code]
        if not self._options["show_full_moniker"]:
            moniker = leaf(moniker)
        if len(moniker) <= MONIKER:
            return moniker
        self._dropped[LONG_MONIKERS] += 1
        return f"{moniker[:MONIKER]}..."


def joined(args: Members) -> str:
    """Return the arguments of a line, sorted by name."""
    if len(args) == 1:
        return args[0][1]
    args = sorted(args, key=itemgetter(0))
    return "".join([shown for _, shown in args])
