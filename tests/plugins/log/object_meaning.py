"""The meaning of records one by one, held against that of columns (``fx_log.meaning``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from fx_log import format as wire
from fx_log.format import Argument, LegacyPacket, LogRecord
from fx_log.read import entries
from fx_log.read.entries import (
    component_of,
    has_type,
    render_printf,
    rolled_out_of,
    split_attribution,
)
from fx_log.read.records import LogFileRecord, RingEntry
from fx_log.severity import LEVELS, Level, legacy_level

MAX_LINE = (1 << 32) - 1


@attrs.define(kw_only=True)
class Entry(entries.Entry):
    """A row of `logs`, with what packets have no place for."""

    tags: list[str] = attrs.field(factory=list)
    args: list[Argument] = attrs.field(factory=list)
    tag: int = 0
    """The record's tag bits; for a ring, the entry's whole tag."""

    @property
    def severity_name(self) -> str:
        return LEVELS[self.severity].name


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
            tag=tag,
        )
        self._attribute(entry, record, appended)
        values = self._project(entry, args, record)
        if values is not None and entry.message is not None:
            rendered = render_printf(entry.message.encode(errors="surrogateescape"), values)
            entry.message = rendered.decode(errors="surrogateescape")
        if self.is_2022 and entry.verbosity is not None:
            entry.severity = Level.DEBUG
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
