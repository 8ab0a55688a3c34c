"""Redaction: records without what is not to be passed on.

Whole values by the name of their key, and parts of texts by a pattern, are replaced by
``<redacted>``. Bytes that were not understood might hold the same: damaged stretches, arguments of
unknown types and odd padding are left out. All of it is counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from fx_log.records import (
    Argument,
    Attribution,
    Damaged,
    LegacyPacket,
    LogFileRecord,
    LogRecord,
    Padding,
    RingEntry,
    from_json,
)
from fxframework.errors import UsageError, WriteRefusedError

__all__ = ["MASK", "Redactor", "redact"]

MASK: Final = "<redacted>"
"""What stands where something was."""
UNUSED: Final = "FXL0808"
"""The finding of bytes in a ring's unused space, whose place must stay."""


class Redactor:
    """Takes out of records what ``keys`` name and what ``patterns`` find.

    A key's value, of whatever type, becomes the text ``<redacted>``, and so does every match of a
    regular expression in a message, the text of a key, a file, a tag, a moniker or a url. Names
    of keys, numbers and times stay as they are. ``message``, ``tag``, ``file``, ``pid`` and so on
    are keys like any other. ``counts`` says what was done, by name.

    Raises UsageError for a pattern that is no regular expression.
    """

    def __init__(
        self, keys: Iterable[str] = (), patterns: Iterable[str | re.Pattern[str]] = ()
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._keys = frozenset(keys)
        try:
            self._patterns = [re.compile(pattern) for pattern in patterns]
        except re.error as error:
            raise UsageError(
                f"no regular expression: {error}", remedy="write it as Python's re does"
            ) from None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Redactor | None:
        """The redactor that a writer's options ask for, ``redact_keys`` and ``redact_pattern``."""
        keys = [key for key in str(options.get("redact_keys") or "").split(",") if key]
        pattern = str(options.get("redact_pattern") or "")
        return cls(keys, [pattern] if pattern else []) if keys or pattern else None

    def redact(self, record: LogFileRecord) -> LogFileRecord | None:
        """The record as it may be passed on; None where nothing of it may."""
        if isinstance(record, Damaged):
            self.counts["damaged stretches left out"] += 1
            return Padding(nbytes=record.nbytes) if record.code == UNUSED else None
        if isinstance(record, RingEntry):
            return self._entry(record)
        if isinstance(record, Padding):
            return record
        if record.raw is not None:
            self.counts["records with odd bytes, now without"] += 1
            record = attrs.evolve(record, raw=None)
        if isinstance(record, LogRecord):
            return self._fitting(record, self._log)
        if isinstance(record, LegacyPacket):
            return self._fitting(record, self._packet)
        if isinstance(record, Attribution):
            return attrs.evolve(
                record,
                moniker=self._value("moniker", record.moniker),
                url=self._value("url", record.url),
            )
        return record

    def _entry(self, entry: RingEntry) -> RingEntry | None:
        if entry.raw is not None or entry.payload:
            self.counts["entries with odd bytes, now without"] += 1
        if entry.log is None:
            return None
        log = self.redact(entry.log)
        assert isinstance(log, LogRecord | None)  # noqa: S101 (as it was)
        return None if log is None else attrs.evolve(entry, log=log, payload=b"", raw=None)

    def _fitting(
        self, record: Any, change: Callable[[Any, Callable[[str, str], str]], LogFileRecord]
    ) -> LogFileRecord | None:
        """The changed record: with whole texts masked where the masks would make it too large."""
        before = self.counts.copy()
        for mask in (self._value, self._whole):
            self.counts = before.copy()
            made = change(record, mask)
            try:
                made.pack()
            except WriteRefusedError:
                continue
            return made
        self.counts = before
        self.counts["records left out, which masks make too large"] += 1
        return None

    def _log(self, record: LogRecord, mask: Callable[[str, str], str]) -> LogRecord:
        args = []
        for argument in record.args:
            if isinstance(argument.value, bytes):
                self.counts["arguments not understood, left out"] += 1
            elif argument.type == "string":
                args.append(attrs.evolve(argument, value=mask(argument.name, str(argument.value))))
            elif argument.name in self._keys:
                self.counts["values"] += 1
                args.append(Argument(name=argument.name, type="string", value=MASK))
            else:
                args.append(argument)
        return attrs.evolve(record, args=tuple(args), suffix=None)

    @staticmethod
    def _packet(packet: LegacyPacket, mask: Callable[[str, str], str]) -> LegacyPacket:
        return attrs.evolve(
            packet,
            tags=tuple(mask("tag", tag) for tag in packet.tags),
            message=mask("message", packet.message),
        )

    def _value(self, name: str, text: str) -> str:
        """The text of a key without what is not passed on."""
        if name in self._keys:
            self.counts["values"] += 1
            return MASK
        for pattern in self._patterns:
            text, count = pattern.subn(MASK, text)
            if count:
                self.counts["matches"] += count
        return text

    def _whole(self, name: str, text: str) -> str:
        """The text of a key, or the mask where anything of it is not passed on."""
        return text if self._value(name, text) == text else MASK


def redact(
    records: Iterable[LogFileRecord | Mapping[str, Any]],
    *,
    keys: Iterable[str] = (),
    patterns: Iterable[str | re.Pattern[str]] = (),
    counts: Counter[str] | None = None,
) -> Iterator[LogFileRecord]:
    """Records as they may be passed on; see ``Redactor``. ``counts`` gets what was done."""
    redactor = Redactor(keys, patterns)
    try:
        for given in records:
            record = from_json(given) if isinstance(given, Mapping) else given
            kept = redactor.redact(record)
            if kept is not None:
                yield kept
    finally:
        if counts is not None:
            counts.update(redactor.counts)
