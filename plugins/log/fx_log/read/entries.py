"""Entries: the meaning of log records, such as well-known arguments and the component that logged.

Conversion, redaction and merging use it for one record at a time. Tables do not come from here: the
scans compute the same in bulk, and tests compare the two.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from fx_log import format as wire
from fx_log.format import Argument
from fx_log.read.records import LegacyPacket, LogFileRecord, LogRecord, RingEntry
from fx_log.severity import LEVELS, Level, legacy_level
from fxframework.io.words import U64_MAX

__all__ = [
    "Entry",
    "Meaning",
    "component_of",
    "render_printf",
    "rolled_out_of",
    "split_attribution",
]

MAX_LINE = (1 << 32) - 1
"""Greatest line that the column of `logs` holds."""


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


def has_type(argument: Argument, types: Mapping[str, wire.ArgType]) -> bool:
    """Return whether an argument has the type that belongs to its name; False for other names."""
    number = types.get(argument.name)
    return number is not None and wire.ARG_NAMES[number] == argument.type


def split_attribution(
    args: Sequence[Argument],
) -> tuple[Sequence[Argument], Mapping[str, Argument]]:
    """Split off the attribution that the archivist appended to the arguments of a log.

    Attribution arguments are taken from the end; of two with one name the last one counts.
    """
    stop = len(args)
    appended: dict[str, Argument] = {}
    while stop and has_type(args[stop - 1], wire.ATTRIBUTION):
        stop -= 1
        appended.setdefault(args[stop].name, args[stop])
    return args[:stop], appended


def last_value(args: Iterable[Argument], name: str, type: str) -> Any:
    """Return the value of the last argument of a name and a type; None if there is none."""
    value = None
    for argument in args:
        if argument.name == name and argument.type == type:
            value = argument.value
    return value


def rolled_out_of(record: LogRecord) -> int | None:
    """Return the count of lost logs of a control record; None for a manifest."""
    count: int | None = last_value(record.args, wire.CONTROL_ROLLED_OUT, "uint64")
    return count


def component_of(record: LogRecord) -> tuple[str, str] | None:
    """Return moniker and url of a manifest; None if it lacks one."""
    moniker = last_value(record.args, wire.MANIFEST_MONIKER, "string")
    url = last_value(record.args, wire.MANIFEST_URL, "string")
    return None if moniker is None or url is None else (moniker, url)


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
        if record.control and rolled_out_of(record) is None:
            component = component_of(record)
            if component is not None:
                self.manifests[record.tag_bits & wire.COMPONENT] = component
            return None
        args, appended = split_attribution(record.args)
        entry = Entry(
            ts=record.timestamp,
            severity=record.severity,
            severity_name=LEVELS[record.severity].name,
            tag=tag,
        )
        self._attribute(entry, record, appended)
        values = self._project(entry, args, record)
        if values is not None and entry.message is not None:
            rendered = render_printf(_encoded(entry.message), values)
            entry.message = rendered.decode(errors="surrogateescape")
        if self.is_2022 and entry.verbosity is not None:
            entry.severity = Level.DEBUG
            entry.severity_name = Level.DEBUG.name
        return entry

    # --- attribution ---

    def _attribute(self, entry: Entry, record: LogRecord, appended: Mapping[str, Argument]) -> None:
        """Set component and URL of an entry, from the record, its suffix, or a manifest."""
        suffix = record.suffix
        if suffix is not None:
            entry.component = suffix.moniker
            entry.url = suffix.url
            entry.rolled_out = suffix.rolled_out
        values: dict[str, Any] = {name: argument.value for name, argument in appended.items()}
        entry.component = values.get(wire.MONIKER, entry.component)
        entry.url = values.get(wire.URL, entry.url)
        entry.rolled_out = values.get(wire.ROLLED_OUT, entry.rolled_out)
        if entry.component is not None:
            return
        # Entries of a ring have tags that need no manifest; other tags stand for a component.
        tag = entry.tag & wire.COMPONENT
        component = self.manifests.get(tag)
        if component is None and (record.control or (tag and self.form == "log")):
            component = wire.UNKNOWN_COMPONENT, ""
        if component is not None:
            entry.component, url = component
            if entry.url is None:
                entry.url = url

    # --- arguments ---

    def _project(
        self, entry: Entry, args: Sequence[Argument], record: LogRecord
    ) -> list[Any] | None:
        """Put the well-known arguments into their fields, others into ``args``.

        Return the values of a structured printf, or None.
        """
        printf_values: list[Any] | None = None
        # A printf of 2022 is a marker, anything with a name, and values without one; these end
        # with the next argument that has a name.
        is_open = False
        for argument in args:
            name = argument.name
            if argument.type == wire.DAMAGED:
                continue
            if self.printf and printf_values is None and _is_marker(argument):
                printf_values = []
                is_open = True
                continue
            if is_open and printf_values is not None and not name:
                printf_values.append(argument.value)
                continue
            if printf_values:
                is_open = False
            is_count = name == wire.CONTROL_ROLLED_OUT and argument.type == "uint64"
            if record.control and is_count:
                entry.rolled_out = argument.value
            elif _is_well_known(argument):
                _place(entry, name, argument.value)
            else:
                entry.args.append(argument)
        return printf_values


def _is_marker(argument: Argument) -> bool:
    """Return whether an argument begins a structured printf."""
    return argument.name == wire.PRINTF and argument.type == "uint64" and argument.value == 0


def _is_well_known(argument: Argument) -> bool:
    """Return whether a value belongs into the field that has the argument's name."""
    if argument.name == "line" and argument.type == "uint64" and argument.value > MAX_LINE:
        return False
    return has_type(argument, wire.WELL_KNOWN)


def _place(entry: Entry, name: str, value: Any) -> None:
    """Put the value of a well-known argument into its field."""
    if name == "tag":
        entry.tags.append(value)
    elif name in wire.LOSSES:
        entry.dropped = value or entry.dropped
    else:
        setattr(entry, name, value)


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
    values_left = deque(values)

    def replaced(conversion: re.Match[bytes]) -> bytes:
        if conversion[0] == b"%%":
            return b"%"
        if not values_left:
            return conversion[0]
        text = _converted(conversion, values_left[0])
        if text is None:
            return conversion[0]
        values_left.popleft()
        return text

    text = _CONVERSION.sub(replaced, format)
    return b" ".join([text, *map(_plain, values_left)])


def _plain(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if value is None:
        return b"null"
    return value if isinstance(value, bytes) else _encoded(str(value))


def _converted(conversion: re.Match[bytes], value: Any) -> bytes | None:
    """Return a value as C shows it by a conversion; None if it is not of that kind."""
    kind = conversion["kind"].decode()
    flags = conversion["flags"].decode()
    width = int(conversion["width"] or b"0")
    precision = conversion["precision"]
    if kind in "diuoxX" and isinstance(value, int):
        number: float = value & U64_MAX if kind in "oxX" else value
    elif kind in "eEfFgG" and isinstance(value, int | float):
        number = value
    elif kind == "p" and isinstance(value, int):
        return _padded(f"{value & U64_MAX:#x}".encode(), flags, width)
    elif kind == "c" and isinstance(value, int) and 0 <= value < 256:
        return _padded(bytes([value]), flags, width)
    elif kind == "s":
        data = _plain(value)
        if precision is not None:
            data = data[: int(precision or b"0")]
        return _padded(data, flags, width)
    else:
        return None
    point = "" if precision is None else f".{precision.decode()}"
    # Python's own operator: its flags, widths and precisions are those of C.
    return (f"%{flags}{width or ''}{point}{kind}" % number).encode()


def _padded(data: bytes, flags: str, width: int) -> bytes:
    return data.ljust(width) if "-" in flags else data.rjust(width)
