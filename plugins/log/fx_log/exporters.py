"""Exporters of the log formats: lines as ffx prints them, and JSON as it does for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import numpy as np
import orjson

from fx_log.layout import UNKNOWN_COMPONENT, ArgType
from fx_log.presentation import (
    BYTES,
    I64,
    Batch,
    Head,
    Made,
    Texts,
    choice,
    leaf,
    left_out,
    nothing_to_write,
    rust_double,
    special_double,
    utc_offset,
    values,
    walk,
    wall_seconds,
)
from fx_log.severity import LEVELS, Level
from fx_log.tables import GIVEN_LINE, GIVEN_MESSAGE, GIVEN_PID, GIVEN_TID
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.table import Table
from fxframework.registry import ExportSession

__all__ = ["open_json", "open_text"]

Member = tuple[str, str]
"""Name and value of an argument, as they come out."""
Members = Sequence[Member]
VERBOSITY: Final = "verbosity"
"""The key that shows what writers of 2022 gave apart from the severity."""
CLOCKS: Final = ("boot", "monotonic")
WALLS: Final = {"utc": "utc", "local": "local"}
TIMES: Final = (*CLOCKS, *WALLS, "wall")
TIME_ZONES: Final = tuple(WALLS)
NO_OFFSET: Final = "wall times: the offset from UTC is not known (-o utc_offset_ns=NS)"
CUT: Final = "ends of messages, behind a NUL"
NO_MESSAGE: Final = "<missing message>"
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


def open_text(sink: Sink, options: Mapping[str, Any]) -> ExportSession:
    """The exporter `text`. Raises UsageError for an option that is none of its words."""
    return _TextExport(sink, options)


def open_json(sink: Sink, options: Mapping[str, Any]) -> ExportSession:
    """The exporter `json`. Raises UsageError for an option that is none of its words."""
    return _JsonExport(sink, options)


class _LineExport:
    """Writes a line for each log, of one capture after another."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._dropped: Counter[str] = Counter()
        self._texts = Texts(self._dropped)

    def write(self, capture: Capture) -> None:
        """Write the logs of one capture.

        Raises WriteRefusedError where there are none.
        """
        render, lines = self._lines(capture)
        written = False
        for batch in walk(capture, render, self._dropped):
            self._sink.write("\n".join([*lines(batch), ""]).encode())
            written = True
        if not written:
            raise nothing_to_write(capture)
        self._dropped += left_out(capture)

    def close(self) -> Mapping[str, int]:
        """What was left out, by name."""
        return {what: count for what, count in self._dropped.items() if count > 0}

    def _lines(
        self, capture: Capture
    ) -> tuple[Callable[[Table], Sequence[Member]], Callable[[Batch[Member]], list[str]]]:
        """What makes members of arguments, and lines of logs."""
        raise NotImplementedError


# --- Text ----------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """The text as it is, or as a JSON string where it would break the line or hide in it."""
    if not text or text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else _escaped(character)
        for character in orjson.dumps(text).decode()
    )


def _escaped(character: str) -> str:
    """A character as JSON has it in plain ASCII."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


class _TextExport(_LineExport):
    """Writes the lines that `ffx log` prints."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink)
        self._options = options
        time = choice(options, "time", TIMES)
        self._zone = WALLS.get(time, choice(options, "tz", TIME_ZONES))
        self._on_wall = time not in CLOCKS
        self._colour = bool(options["color"])

    def _lines(
        self, capture: Capture
    ) -> tuple[Callable[[Table], Sequence[Member]], Callable[[Batch[Member]], list[str]]]:
        pool = capture.strings
        names = self._texts.pooled(pool, plain)
        heads: Made[tuple[Any, ...], str] = Made(_HeadText(self._options, names, self._texts))
        times = self._times(capture)

        def render(args: Table) -> list[Member]:
            return [
                (names[name], _shown(kind, value, names, args))
                for name, kind, value in values(args)
            ]

        def lines(batch: Batch[Member]) -> list[str]:
            out = []
            for time, head, message, args, dropped, rolled_out, verbosity in zip(
                times(batch.ts),
                [heads[head] for head in batch.heads],
                batch.messages.shown(self._message, self._texts),
                batch.args,
                batch.dropped,
                batch.rolled_out,
                batch.verbosity,
                strict=True,
            ):
                line = f"{time}{head}{message}"
                if args or verbosity:
                    line += _keys(args, verbosity)
                if dropped:
                    line += self._lost(f" [dropped={dropped}]")
                if rolled_out:
                    line += self._lost(f" [rolled={rolled_out}]")
                out.append(line)
            return self._coloured(batch, out) if self._colour else out

        return render, lines

    def _message(self, message: str) -> str:
        shown, nul, rest = message.partition("\0")
        if nul and rest:
            self._dropped[CUT] += 1
        return plain(shown)

    def _lost(self, text: str) -> str:
        return f"{RESET}{LOST}{text}" if self._colour else text

    def _coloured(self, batch: Batch[Member], lines: list[str]) -> list[str]:
        out = []
        for head, line in zip(batch.heads, lines, strict=True):
            colour = COLOURS[LEVELS[head[0]]]
            ended = f"{line}{RESET}" if colour or line.count(RESET) else line
            out.append(colour + ended)
        return out

    def _times(self, capture: Capture) -> Callable[[I64], list[str]]:
        """What shows times, in brackets."""
        if not self._on_wall:
            return _seconds
        offset = utc_offset(self._options, capture)
        if offset is None:  # ffx falls back on boot time too

            def unknown(ts: I64) -> list[str]:
                self._dropped[NO_OFFSET] += ts.size
                return _seconds(ts)

            return unknown
        moments: Made[int, str] = Made(wall_seconds(self._zone))

        def shown(ts: I64) -> list[str]:
            out = []
            for ns in ts.tolist():
                seconds, rest = divmod(ns + offset, 1_000_000_000)
                out.append(f"[{moments[seconds]}.{rest // 1_000_000:03d}]")
            return out

        return shown


def _seconds(ts: I64) -> list[str]:
    """Times in seconds, to the microsecond; before the clock began there is only 0."""
    seconds, micros = np.divmod(np.maximum(ts, 0) // 1000, 1_000_000)
    return [
        f"[{second:05d}.{micro:06d}]"
        for second, micro in zip(seconds.tolist(), micros.tolist(), strict=True)
    ]


def _keys(args: Members, verbosity: int) -> str:
    """`` name=value`` of each argument, in order of the names."""
    if verbosity:
        args = [(VERBOSITY, str(verbosity)), *args]
    if len(args) > 1:
        args = sorted(args, key=itemgetter(0))
    return "".join([f" {name}={value}" for name, value in args])


def _shown(kind: int, value: Any, texts: Mapping[int, str], args: Table) -> str:
    """A value as ffx shows it; bytes as hex in brackets."""
    if kind == ArgType.STRING:
        return texts[value]
    if kind == ArgType.DOUBLE:
        return rust_double(value)
    if kind == ArgType.BOOL:
        return "true" if value else "false"
    if kind == ArgType.NULL:
        return "null"
    if kind == BYTES:
        return f"[{_hex(value, args)}]"
    return str(value)


def _hex(code: int, args: Table) -> str:
    return args.pool.bytes_of(code).hex() if code >= 0 else ""


class _HeadText:
    """Makes what stands between the time of a line and its message."""

    def __init__(self, options: Mapping[str, Any], names: Mapping[int, str], texts: Texts) -> None:
        self._metadata = bool(options["show_metadata"])
        self._full = bool(options["show_full_moniker"])
        self._show_tags = bool(options["show_tags"])
        self._file = bool(options["show_file"])
        self._names = names
        self._tags = texts.tags(plain)

    def __call__(self, key: tuple[Any, ...]) -> str:
        head = Head(*key)
        parts = []
        if self._metadata:
            pid = head.pid if head.given & GIVEN_PID else ""
            tid = head.tid if head.given & GIVEN_TID else ""
            parts.append(f"[{pid}][{tid}]")
        moniker = self._names[head.component]
        moniker = moniker if self._full else leaf(moniker)
        parts.append(f"[{moniker}]")
        if self._show_tags:
            tags = [self._tags[tag] for tag in head.tags]
            others = [tag for tag in tags if tag != moniker]
            if others:
                parts.append(f"[{','.join(others)}]")
        parts.append(f" {LEVELS[head.severity].name}: ")
        if self._file and head.file >= 0:
            line = f"({head.line})" if head.given & GIVEN_LINE else ""
            parts.append(f"[{self._names[head.file]}{line}] ")
        if not head.given & GIVEN_MESSAGE:
            parts.append(NO_MESSAGE)
        return "".join(parts)


# --- JSON ----------------------------------------------------------------------------------------

SAME_NAME: Final = "arguments of a name that another of the same log has"


def quoted(text: str) -> str:
    """The text as a JSON string."""
    return orjson.dumps(text).decode()


def unquoted(text: str) -> str:
    """What stands between the quotes of the text as a JSON string."""
    return quoted(text)[1:-1]


class _JsonExport(_LineExport):
    """Writes a LogsData object for each log, as `ffx log --machine json` does."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink)
        wrap = bool(options["wrap"])
        self._before = '{"data":{"TargetLog":' if wrap else ""
        self._after = "}}" if wrap else ""
        self._names_of_specials = choice(options, "non_finite", ("strings", "null")) == "strings"

    def _lines(
        self, capture: Capture
    ) -> tuple[Callable[[Table], Sequence[Member]], Callable[[Batch[Member]], list[str]]]:
        strings = self._texts.pooled(capture.strings, quoted)
        heads: Made[tuple[Any, ...], tuple[str, str, bool]] = Made(
            _HeadJson(strings, self._texts, self._before)
        )
        after = f'}},"version":1}}{self._after}'

        def render(args: Table) -> list[Member]:
            return [
                (strings[name], self._value(kind, value, strings, args))
                for name, kind, value in values(args)
            ]

        def lines(batch: Batch[Member]) -> list[str]:
            out = []
            for ns, (
                metadata,
                payload,
                given,
            ), message, args, dropped, rolled_out, verbosity in zip(
                batch.ts.tolist(),
                [heads[head] for head in batch.heads],
                batch.messages.shown(unquoted, self._texts, special='"\\'),
                batch.args,
                batch.dropped,
                batch.rolled_out,
                batch.verbosity,
                strict=True,
            ):
                errors = _errors(dropped, rolled_out) if dropped or rolled_out else ""
                keys = self._keys(args, verbosity) if args or verbosity else ""
                shown = f'{{"value":"{message}"}}' if given else "{}"
                out.append(f'{metadata}{ns}{errors}{payload}{keys}"message":{shown}}}{after}')
            return out

        return render, lines

    def _value(self, kind: int, value: Any, strings: Mapping[int, str], args: Table) -> str:
        if kind == ArgType.STRING:
            return strings[value]
        if kind == ArgType.DOUBLE:
            special = special_double(value)
            if special:
                return f'"{special}"' if self._names_of_specials else "null"
            return repr(value)
        if kind == ArgType.BOOL:
            return "true" if value else "false"
        if kind == ArgType.NULL:
            return "null"
        if kind == BYTES:
            return f'"{_hex(value, args)}"'
        return str(value)

    def _keys(self, args: Members, verbosity: int) -> str:
        """``"keys":{…},`` in order of the names; of one name the first."""
        if verbosity:
            args = [(f'"{VERBOSITY}"', str(verbosity)), *args]
        if len(args) > 1:
            members = dict(reversed(args))
            self._dropped[SAME_NAME] += len(args) - len(members)
            # Of the texts, not of their JSON: an escape begins with a late character.
            args = sorted(members.items(), key=lambda member: orjson.loads(member[0]))
        return '"keys":{' + ",".join([f"{name}:{value}" for name, value in args]) + "},"


def _errors(dropped: int, rolled_out: int) -> str:
    counts = (("dropped_logs", dropped), ("rolled_out_logs", rolled_out))
    errors = [f'{{"{name}":{{"count":{count}}}}}' for name, count in counts if count]
    return f',"errors":[{",".join(errors)}]'


class _HeadJson:
    """Makes what stands before the time, what behind it, and whether there is a message."""

    def __init__(self, strings: Mapping[int, str], texts: Texts, before: str) -> None:
        self._strings = strings
        self._tags = texts.tags(quoted)
        self._before = before

    def __call__(self, key: tuple[Any, ...]) -> tuple[str, str, bool]:
        head = Head(*key)
        level = LEVELS[head.severity]
        members = [f'"severity":"{level.name}"']
        if head.severity != level:
            members.append(f'"raw_severity":{head.severity}')
        if head.url >= 0:
            members.append(f'"component_url":{self._strings[head.url]}')
        tags = ",".join(self._tags[tag] for tag in head.tags)
        members.append(f'"tags":[{tags}]')
        if head.given & GIVEN_PID:
            members.append(f'"pid":{head.pid}')
        if head.given & GIVEN_TID:
            members.append(f'"tid":{head.tid}')
        if head.file >= 0:
            members.append(f'"file":{self._strings[head.file]}')
        if head.given & GIVEN_LINE:
            members.append(f'"line":{head.line}')
        # Those who read this require a moniker.
        moniker = quoted(UNKNOWN_COMPONENT) if head.component < 0 else self._strings[head.component]
        metadata = (
            f'{self._before}{{"data_source":"Logs","metadata":{{{",".join(members)},"timestamp":'
        )
        payload = f'}},"moniker":{moniker},"payload":{{"root":{{'
        return metadata, payload, bool(head.given & GIVEN_MESSAGE)
