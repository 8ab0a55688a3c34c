"""The exporter `text`: one line for each log, as ffx prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import numpy as np
import orjson

from fx_log.export import text_lines
from fx_log.export.lines import VERBOSITY, LineExport, Member
from fx_log.export.presentation import (
    I64,
    NO_OFFSET,
    PIECE,
    Batch,
    Forms,
    Head,
    Texts,
    in_pieces,
    leaf,
    rust_double,
    shown_values,
    utc_offset,
    walk_columns,
    wall_moments,
    wall_seconds,
)
from fx_log.export.text_lines import TEXTS, TextLines
from fx_log.severity import LEVELS, Level
from fxframework.io.sink import Sink
from fxframework.kernels import native
from fxframework.kernels.output import Output
from fxframework.kit.memo import Memo
from fxframework.model.capture import Capture
from fxframework.model.table import Table

__all__ = ["TextExport"]

CLOCKS: Final = ("boot", "monotonic")
CUT: Final = "ends of messages, behind a NUL"
NO_MESSAGE: Final = "<missing message>"
MONIKER: Final = 1000
"""Most characters of a moniker in a line: one long moniker may appear in all logs."""
LONG_MONIKERS: Final = f"ends of monikers of more than {MONIKER} characters"
BULK: Final = native.is_compiled(text_lines.__name__)
"""Whether to write plain rows with the kernel, which is slower when it is not compiled."""
STRETCH: Final = 1 << 10
"""Most rows written one by one before the kernel is tried again."""
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
    if not text or text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else _escaped(character)
        for character in orjson.dumps(text).decode()
    )


def _escaped(character: str) -> str:
    """Return a character as a JSON escape."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


class TextExport(LineExport):
    """Writes the lines that `ffx log` prints."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        time = options["time"]
        self._zone = time if time in ("utc", "local") else options["tz"]
        self._on_wall = time not in CLOCKS
        self._colour = options["color"]

    def _pieces(self, capture: Capture) -> Iterator[bytes]:
        if BULK and "log_tags" in capture.schemas and not (self._on_wall or self._colour):
            return self._in_bulk(capture)
        return super()._pieces(capture)

    def _in_bulk(self, capture: Capture) -> Iterator[bytes]:
        """Yield all lines: plain rows by the kernel, stretches of other rows one by one."""
        render, shown = self._lines(capture)
        out = Output(TEXTS, memoryview(bytes(8)))
        for batch in walk_columns(capture, self._dropped):
            lines = TextLines(
                out,
                capture.strings.pool,
                batch.columns(),
                metadata=self._options["show_metadata"],
                full=self._options["show_full_moniker"],
                tags=self._options["show_tags"],
                file=self._options["show_file"],
                most=PIECE,
            )
            stretch, resumed = 1, -1
            while lines.row < lines.rows:
                lines.run()
                if out.used >= PIECE:
                    yield out.take()
                elif lines.row < lines.rows:
                    start = lines.row
                    stretch = min(2 * stretch, STRETCH) if start == resumed else 1
                    resumed = min(start + stretch, lines.rows)
                    rows = batch.rows(start, resumed, render)
                    for piece in in_pieces(shown(rows)):
                        out.put("\n".join([*piece, ""]).encode())
                        if out.used >= PIECE:
                            yield out.take()
                    lines.row = resumed
        if out.used:
            yield out.take()

    def _lines(
        self, capture: Capture
    ) -> tuple[Callable[[Table], Sequence[Member]], Callable[[Batch[Member]], Iterator[str]]]:
        texts = Texts(capture.strings, self._dropped)
        names = texts.pooled(plain)
        shown = _HeadText(self._options, names, texts, self._dropped)
        heads: Memo[tuple[Any, ...], str] = Memo(shown)
        times = self._times(capture)

        forms = Forms(
            string=names,
            integer=str,
            double=rust_double,
            data=lambda data: f"[{data.hex()}]",
            true="true",
            false="false",
            null="null",
        )

        def render(args: Table) -> list[Member]:
            keys = [names[code] for code in args.array("name").tolist()]
            shown = shown_values(args, forms)
            return [(key, f" {key}={value}") for key, value in zip(keys, shown, strict=True)]

        def lines(batch: Batch[Member]) -> Iterator[str]:
            for time, key, message, args, dropped, rolled_out, verbosity in batch.rows(
                times(batch.ts), batch.messages.shown(self._message, texts)
            ):
                head = heads[key]
                if verbosity:
                    args = [*args, (VERBOSITY, f" {VERBOSITY}={verbosity}")]
                if not args:
                    line = f"{time}{head}{message}"
                elif len(args) == 1:
                    line = f"{time}{head}{message}{args[0][1]}"
                else:
                    ordered = sorted(args, key=itemgetter(0))
                    line = f"{time}{head}{message}{''.join([shown for _, shown in ordered])}"
                if dropped:
                    line += self._lost(f" [dropped={dropped}]")
                if rolled_out:
                    line += self._lost(f" [rolled={rolled_out}]")
                yield self._coloured(key, line) if self._colour else line

        return render, lines

    def _message(self, message: str) -> str:
        shown, nul, rest = message.partition("\0")
        if nul and rest:
            self._dropped[CUT] += 1
        return plain(shown)

    def _lost(self, text: str) -> str:
        return f"{RESET}{LOST}{text}" if self._colour else text

    def _coloured(self, key: tuple[Any, ...], line: str) -> str:
        colour = COLOURS[LEVELS[key[0]]]
        return f"{colour}{line}{RESET}" if colour or RESET in line else line

    def _times(self, capture: Capture) -> Callable[[I64], list[str]]:
        """Return the function that formats times, in brackets."""
        if not self._on_wall:
            return _seconds
        offset = utc_offset(self._options, capture)
        if offset is None:  # ffx falls back to boot time too

            def unknown(ts: I64) -> list[str]:
                self._dropped[NO_OFFSET] += ts.size
                return _seconds(ts)

            return unknown
        moments: Memo[int, str] = Memo(wall_seconds(self._zone))

        def shown(ts: I64) -> list[str]:
            seconds, millis = wall_moments(ts, offset)
            return [
                f"[{moments[second]}.{milli:03d}]"
                for second, milli in zip(seconds, millis, strict=True)
            ]

        return shown


def _seconds(ts: I64) -> list[str]:
    """Return times in seconds with six decimals and at least five digits; negative ones as 0.

    All times whose seconds have the same number of digits are formatted at once.
    """
    micros = np.maximum(ts, 0) // 1000
    least, most = (max(int(edge) // 1_000_000, 10_000) for edge in (micros.min(), micros.max()))
    digits = len(str(most))
    if len(str(least)) < digits:
        long = micros >= 10 ** (digits + 5)
        out = np.empty(ts.size, object)
        out[long], out[~long] = _seconds(ts[long]), _seconds(ts[~long])
        return out.tolist()
    width = digits + len("[.000000]")
    letters = np.empty((ts.size, width), np.uint8)
    letters[:, [0, digits + 1, -1]] = np.frombuffer(b"[.]", np.uint8)
    for place in (*range(width - 2, digits + 1, -1), *range(digits, 0, -1)):
        micros, digit = np.divmod(micros, 10)
        letters[:, place] = digit + ord("0")
    whole = letters.tobytes().decode("ascii")
    return [whole[at : at + width] for at in range(0, len(whole), width)]


class _HeadText:
    """Renders the part of a line between its time and its message."""

    def __init__(
        self,
        options: Mapping[str, Any],
        names: Mapping[int, str],
        texts: Texts,
        dropped: Counter[str],
    ) -> None:
        self._monikers: Memo[int, str] = Memo(self._moniker, 0)
        self._dropped = dropped
        self._metadata = options["show_metadata"]
        self._full = options["show_full_moniker"]
        self._show_tags = options["show_tags"]
        self._file = options["show_file"]
        self._names = names
        self._tags = texts.tags(plain)

    def _moniker(self, code: int) -> str:
        """Return the moniker as lines show it, truncated if it is long."""
        moniker = self._names[code]
        moniker = moniker if self._full else leaf(moniker)
        if len(moniker) <= MONIKER:
            return moniker
        self._dropped[LONG_MONIKERS] += 1
        return f"{moniker[:MONIKER]}..."

    def __call__(self, key: tuple[Any, ...]) -> str:
        head = Head.of(key)
        parts = []
        if self._metadata:
            pid = "" if head.pid is None else head.pid
            tid = "" if head.tid is None else head.tid
            parts.append(f"[{pid}][{tid}]")
        moniker = self._monikers[head.component]
        parts.append(f"[{moniker}]")
        if self._show_tags:
            tags = [self._tags[tag] for tag in head.tags]
            others = [tag for tag in tags if tag != moniker]
            if others:
                parts.append(f"[{','.join(others)}]")
        parts.append(f" {LEVELS[head.severity].name}: ")
        if self._file and head.file >= 0:
            line = "" if head.line is None else f"({head.line})"
            parts.append(f"[{self._names[head.file]}{line}] ")
        if not head.has_message:
            parts.append(NO_MESSAGE)
        return "".join(parts)
