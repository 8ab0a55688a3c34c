"""Entries: the meaning of log records, such as well-known arguments and the component that logged.

Conversion, redaction and merging use it for one record at a time. Tables do not come from here: the
scans compute the same in bulk, and tests compare the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from fx_log import format as wire
from fx_log.format import Argument
from fx_log.read.records import LegacyPacket, LogFileRecord, LogRecord, RingEntry
from fx_log.severity import LEVELS, Level, legacy_level
from fxframework.io.words import U64_MAX

__all__ = ["Entry", "Meaning", "render_printf", "split_attribution"]

_ATTRIBUTION = {wire.MONIKER: "string", wire.URL: "string", wire.ROLLED_OUT: "uint64"}
_TYPES = {name: type.name.lower() for name, type in wire.WELL_KNOWN.items()}
MAX_LINE = (1 << 32) - 1
"""Greatest line that the column of `logs` holds."""
_DROPPED = ("num_dropped", "dropped_logs")


@attrs.define(kw_only=True)
class Entry:
    """A row of `logs`, with its `args` and `log_tags`; None for values that are not given."""

    ts: int
    severity: int
    """The severity byte; for a legacy packet, converted as the era defines."""
    severity_name: str
    tag: int = 0
    """The record's tag bits; for a ring, the entry's whole tag."""
    pid: int | None = None
    tid: int | None = None
    tags: list[str] = attrs.field(factory=list)
    component: str | None = None
    url: str | None = None
    message: str | None = None
    file: str | None = None
    line: int | None = None
    dropped: int = 0
    rolled_out: int = 0
    verbosity: int | None = None
    args: list[Argument] = attrs.field(factory=list)
    """All other arguments, in order, except damaged ones."""


def split_attribution(
    args: Sequence[Argument],
) -> tuple[Sequence[Argument], Mapping[str, Argument]]:
    """Split off the attribution that the archivist appended to the arguments of a log.

    Attribution arguments are taken from the end; of two with one name the last one counts.
    """
    stop = len(args)
    found: dict[str, Argument] = {}
    while stop and _ATTRIBUTION.get(args[stop - 1].name) == args[stop - 1].type:
        stop -= 1
        found.setdefault(args[stop].name, args[stop])
    return args[:stop], found


class Meaning:
    """Derives the entries of a file's records, in order.

    Keeps the manifests so far. ``options`` are the reader's: ``severity_era`` and ``printf``.
    """

    def __init__(self, form: str, options: Mapping[str, Any]) -> None:
        self.form = form
        self.is_2022 = options.get("severity_era") == "2022"
        self.printf = bool(options.get("printf"))
        self.manifests: dict[int, tuple[str, str]] = {}

    def entry(self, record: LogFileRecord) -> Entry | None:
        """Return the entry of a record; None if it has no row in `logs`."""
        if isinstance(record, LegacyPacket):
            return self._legacy(record)
        if isinstance(record, LogRecord):
            return self._log(record, record.tag_bits)
        if isinstance(record, RingEntry) and record.log is not None:
            return self._log(record.log, record.tag)
        return None

    def _legacy(self, packet: LegacyPacket) -> Entry:
        severity = packet.raw_severity
        verbosity = 0
        if self.is_2022:
            severity, verbosity = legacy_level(packet.severity)
        return Entry(
            ts=packet.timestamp,
            severity=severity,
            severity_name=LEVELS[severity].name,
            pid=packet.pid,
            tid=packet.tid,
            tags=list(packet.tags),
            message=packet.message,
            dropped=packet.dropped_logs,
            verbosity=verbosity or None,
        )

    def _log(self, record: LogRecord, tag: int) -> Entry | None:
        if record.control and not self._loses(record):
            self._manifest(record)
            return None
        args, appended = split_attribution(record.args)
        entry = Entry(
            ts=record.timestamp,
            severity=record.severity,
            severity_name=LEVELS[record.severity].name,
            tag=tag,
        )
        self._attribute(entry, record, appended)
        positional = self._project(entry, args, record)
        if positional is not None and entry.message is not None:
            rendered = render_printf(_encoded(entry.message), [a.value for a in positional])
            entry.message = rendered.decode(errors="surrogateescape")
        if self.is_2022 and entry.verbosity is not None:
            entry.severity = Level.DEBUG
            entry.severity_name = Level.DEBUG.name
        return entry

    # --- attribution ---

    @staticmethod
    def _loses(record: LogRecord) -> bool:
        """Return whether a control record gives a count of lost logs."""
        return any(_is(argument, wire.CONTROL_ROLLED_OUT, "uint64") for argument in record.args)

    def _manifest(self, record: LogRecord) -> None:
        found = {
            argument.name: str(argument.value)
            for argument in record.args
            if argument.type == "string"
        }
        if wire.MANIFEST_MONIKER in found and wire.MANIFEST_URL in found:
            tag = record.tag_bits & wire.COMPONENT
            self.manifests[tag] = found[wire.MANIFEST_MONIKER], found[wire.MANIFEST_URL]

    def _attribute(self, entry: Entry, record: LogRecord, appended: Mapping[str, Argument]) -> None:
        """Set component and URL of an entry, from the record, its suffix, or a manifest."""
        suffix = record.suffix
        if suffix is not None:
            entry.component = suffix.moniker
            entry.url = suffix.url
            entry.rolled_out = suffix.rolled_out
        if wire.MONIKER in appended:
            entry.component = str(appended[wire.MONIKER].value)
        if wire.URL in appended:
            entry.url = str(appended[wire.URL].value)
        if wire.ROLLED_OUT in appended:
            value = appended[wire.ROLLED_OUT].value
            assert isinstance(value, int)  # noqa: S101 (follows from the type)
            entry.rolled_out = value
        if entry.component is not None:
            return
        tag = entry.tag & wire.COMPONENT
        named = self.manifests.get(tag)
        if named is not None:
            entry.component = named[0]
            entry.url = named[1] if entry.url is None else entry.url
        elif record.control or (tag and self.form == "log"):
            entry.component = wire.UNKNOWN_COMPONENT
            entry.url = "" if entry.url is None else entry.url

    # --- arguments ---

    def _project(
        self, entry: Entry, args: Sequence[Argument], record: LogRecord
    ) -> list[Argument] | None:
        """Put the well-known arguments into their fields.

        Return those of a structured printf, or None.
        """
        positional: list[Argument] | None = None
        open_printf = False
        for argument in args:
            name = argument.name
            if argument.type == "damaged":
                continue
            if self.printf and positional is None and _is(argument, wire.PRINTF, "uint64"):
                if argument.value == 0:
                    positional = []
                    open_printf = True
                    continue
            elif open_printf and not name and positional is not None:
                positional.append(argument)
                continue
            if positional:
                open_printf = False
            if record.control and _is(argument, wire.CONTROL_ROLLED_OUT, "uint64"):
                assert isinstance(argument.value, int)  # noqa: S101 (follows from the type)
                entry.rolled_out = argument.value
            elif argument.type == _TYPES.get(name) and not (
                name == "line" and int(argument.value) > MAX_LINE
            ):
                self._place(entry, name, argument.value)
            else:
                entry.args.append(argument)
        return positional

    @staticmethod
    def _place(entry: Entry, name: str, value: Any) -> None:
        if name == "tag":
            entry.tags.append(value)
        elif name in _DROPPED:
            entry.dropped = value or entry.dropped
        else:
            setattr(entry, name, value)


def _is(argument: Argument, name: str, type: str) -> bool:
    return argument.name == name and argument.type == type


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


# --- Structured printf of 2022 -------------------------------------------------------------

_CONVERSION = re.compile(
    rb"%(?:%|(?P<flags>[-+ #0]*)(?P<width>\d{0,3})(?:\.(?P<precision>\d{0,3}))?"
    rb"(?:hh|h|ll|l|j|z|t|L)?(?P<kind>[diouxXeEfFgGaAcspn]))"
)


def render_printf(format: bytes, values: Sequence[Any]) -> bytes:
    """Render a structured printf: each conversion takes the next value.

    A conversion without a value, or with an unsuitable one, remains as text; values left over are
    appended, separated by spaces. Never raises.
    """
    left = list(values)

    def replaced(found: re.Match[bytes]) -> bytes:
        if found[0] == b"%%":
            return b"%"
        if not left:
            return found[0]
        shown = _converted(found, left[0])
        if shown is None:
            return found[0]
        left.pop(0)
        return shown

    text = _CONVERSION.sub(replaced, format)
    return b" ".join([text, *(_plain(value) for value in left)]) if left else text


def _plain(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if value is None:
        return b"null"
    return value if isinstance(value, bytes) else _encoded(str(value))


def _converted(found: re.Match[bytes], value: Any) -> bytes | None:
    kind = found["kind"].decode()
    width = int(found["width"] or b"0")
    flags = found["flags"].decode()
    precision = found["precision"]
    convert: Callable[[str], bytes] | None = None
    if kind in "diu" and isinstance(value, int):
        convert = lambda spec: (f"%{spec}d" % value).encode()  # noqa: E731 (C's own)
    elif kind in "oxX" and isinstance(value, int):
        number = value & U64_MAX
        convert = lambda spec: (f"%{spec}{kind}" % number).encode()  # noqa: E731
    elif kind in "eEfFgG" and isinstance(value, int | float):
        convert = lambda spec: (f"%{spec}{kind}" % value).encode()  # noqa: E731
    if convert is not None:
        point = "" if precision is None else "." + precision.decode()
        return convert(f"{flags}{width or ''}{point}")
    if kind == "p" and isinstance(value, int):
        data = f"{value & U64_MAX:#x}".encode()
    elif kind == "c" and isinstance(value, int) and 0 <= value < 256:
        data = bytes([value])
    elif kind == "s":
        data = _plain(value)
        data = data if precision is None else data[: int(precision or b"0")]
    else:
        return None
    return data.ljust(width) if "-" in flags else data.rjust(width)
