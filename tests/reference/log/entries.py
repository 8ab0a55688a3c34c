"""Entries: the meaning of log records, and what is wrong with it, as it was before the scan alone
found that; frozen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from tests.reference.log import layout as wire
from tests.reference.log.records import (
    Argument,
    Find,
    LegacyPacket,
    LogFileRecord,
    LogRecord,
    RingEntry,
)

from fx_log import rules
from fx_log.read.entries import render_printf
from fx_log.severity import LEVELS, Level, legacy_level

__all__ = ["Entry", "Meaning", "split_attribution"]

_ATTRIBUTION = {wire.MONIKER: "string", wire.URL: "string", wire.ROLLED_OUT: "uint64"}
_TYPES = {name: type.name.lower() for name, type in wire.WELL_KNOWN.items()}
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

    Keeps the manifests so far, and the tags already reported. ``options`` are the reader's:
    ``severity_era`` and ``printf``.
    """

    def __init__(self, form: str, options: Mapping[str, Any]) -> None:
        self.form = form
        self.is_2022 = options.get("severity_era") == "2022"
        self.printf = bool(options.get("printf"))
        self.manifests: dict[int, tuple[str, str]] = {}
        self._reported: set[int] = set()
        self._last: int | None = None

    def entry(self, record: LogFileRecord, find: Find) -> Entry | None:
        """Return the entry of a record; None if it has no row in `logs`."""
        entry = None
        if isinstance(record, LegacyPacket):
            entry = self._legacy(record)
        elif isinstance(record, LogRecord):
            entry = self._log(record, record.tag_bits, find)
        elif isinstance(record, RingEntry) and record.log is not None:
            entry = self._log(record.log, record.tag, find)
        if entry is not None:
            if self._last is not None and entry.ts < self._last:
                find(rules.TIME_DECREASES, record.offset, self._last)
            self._last = entry.ts
            if entry.dropped or entry.rolled_out:
                find(rules.LOGS_LOST, record.offset, entry.dropped or entry.rolled_out)
        return entry

    def _legacy(self, packet: LegacyPacket) -> Entry:
        severity, verbosity = packet.raw_severity, 0
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

    def _log(self, record: LogRecord, tag: int, find: Find) -> Entry | None:
        if record.control and not self._loses(record):
            self._manifest(record, find)
            return None
        args, appended = split_attribution(record.args)
        entry = Entry(
            ts=record.timestamp,
            severity=record.severity,
            severity_name=LEVELS[record.severity].name,
            tag=tag,
        )
        self._attribute(entry, record, appended, find)
        positional = self._project(entry, args, record, find)
        if positional is not None and entry.message is not None:
            rendered = render_printf(_encoded(entry.message), [a.value for a in positional])
            entry.message = rendered.decode(errors="surrogateescape")
        if self.is_2022 and entry.verbosity is not None:
            entry.severity, entry.severity_name = Level.DEBUG, Level.DEBUG.name
        return entry

    # --- attribution ---

    @staticmethod
    def _loses(record: LogRecord) -> bool:
        """Return whether a control record gives a count of lost logs."""
        return any(_is(argument, wire.CONTROL_ROLLED_OUT, "uint64") for argument in record.args)

    def _manifest(self, record: LogRecord, find: Find) -> None:
        found = {
            argument.name: str(argument.value)
            for argument in record.args
            if argument.type == "string"
        }
        if wire.MANIFEST_MONIKER in found and wire.MANIFEST_URL in found:
            tag = record.tag_bits & (wire.CONTROL - 1)
            self.manifests[tag] = found[wire.MANIFEST_MONIKER], found[wire.MANIFEST_URL]
            self._reported.discard(tag)
        else:
            find(rules.MANIFEST_INCOMPLETE, record.offset)

    def _attribute(
        self, entry: Entry, record: LogRecord, appended: Mapping[str, Argument], find: Find
    ) -> None:
        """Set component and URL of an entry, from the record, its suffix, or a manifest."""
        suffix = record.suffix
        if suffix is not None:
            entry.component, entry.url = suffix.moniker, suffix.url
            entry.rolled_out = suffix.rolled_out
        if wire.MONIKER in appended:
            entry.component = str(appended[wire.MONIKER].value)
        if wire.URL in appended:
            entry.url = str(appended[wire.URL].value)
        if wire.ROLLED_OUT in appended:
            value = appended[wire.ROLLED_OUT].value
            assert isinstance(value, int)
            entry.rolled_out = value
        if entry.component is not None:
            return
        tag = entry.tag & (wire.CONTROL - 1)
        named = self.manifests.get(tag)
        if named is not None:
            entry.component = named[0]
            entry.url = named[1] if entry.url is None else entry.url
        elif record.control or (tag and self.form == "log"):
            entry.component = wire.UNKNOWN_COMPONENT
            entry.url = "" if entry.url is None else entry.url
            if not record.control and tag not in self._reported:
                self._reported.add(tag)
                find(rules.TAG_NOT_NAMED, record.offset, tag)

    # --- arguments ---

    def _project(
        self, entry: Entry, args: Sequence[Argument], record: LogRecord, find: Find
    ) -> list[Argument] | None:
        """Put the well-known arguments into their fields.

        Return those of a structured printf, or None.
        """
        seen: set[str] = set()
        positional: list[Argument] | None = None
        open_printf = False
        for argument in args:
            name = argument.name
            if argument.type == "damaged":
                continue
            if self.printf and positional is None and _is(argument, wire.PRINTF, "uint64"):
                if argument.value == 0:
                    positional, open_printf = [], True
                    continue
            elif open_printf and not name and positional is not None:
                positional.append(argument)
                continue
            if positional:
                open_printf = False
            if record.control and _is(argument, wire.CONTROL_ROLLED_OUT, "uint64"):
                assert isinstance(argument.value, int)
                entry.rolled_out = argument.value
            elif name not in _TYPES:
                if name in _ATTRIBUTION:
                    find(rules.ATTRIBUTION_NOT_LAST, argument.offset, name)
                entry.args.append(argument)
            elif argument.type != _TYPES[name] or (
                name == "line" and argument.value > 0xFFFFFFFF  # type: ignore[operator]
            ):
                find(rules.WELL_KNOWN_OF_OTHER_TYPE, argument.offset, name)
                entry.args.append(argument)
            else:
                if name in seen:
                    find(rules.WELL_KNOWN_TWICE, argument.offset, name)
                if name != "tag" and name not in _DROPPED:
                    seen.add(name)
                self._place(entry, name, argument.value)
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
