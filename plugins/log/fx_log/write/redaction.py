"""Redaction: removes private data from records.

Values are selected by the name of their key, parts of texts by a pattern. They are replaced by
``<redacted>``, or by 0 where only a number fits. Bytes that cannot be decoded might contain the
same data, so damaged stretches, arguments of unknown types and non-zero padding are removed. All of
it is counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from fx_log import format as wire
from fx_log import rules
from fx_log.format import Argument, Attribution, LegacyPacket, LogRecord, StreamHeader
from fx_log.read.entries import Entry
from fx_log.read.records import Damaged, LogFileRecord, Padding, RingEntry, from_json
from fxframework.errors import WriteRefusedError
from fxframework.kit.patterns import BoundedPattern

MASK: Final = "<redacted>"
"""The replacement of a redacted value."""
_SYNONYMS: Final[Mapping[str, str]] = {
    wire.MONIKER: wire.MANIFEST_MONIKER,
    wire.URL: wire.MANIFEST_URL,
    wire.ROLLED_OUT: wire.CONTROL_ROLLED_OUT,
}
"""Names of attribution arguments, mapped to those of control records."""
_Mask = Callable[[str, str], str]


class Redactor:
    """Removes the values of ``keys`` and the matches of ``patterns`` from records.

    The value of a key, of any type, becomes the text ``<redacted>``; so does every match of a
    regular expression in a message, a string value, a file, a tag, a moniker or a url. Names of
    keys, numbers and times do not change. ``message``, ``tag``, ``file``, ``pid`` and so on are
    keys like any other; ``moniker`` and ``url`` apply to every form of attribution. In a packet,
    which has numbers only, ``pid``, ``tid`` and ``dropped_logs`` become 0, and so do counts of logs
    rolled out. ``counts`` has the number of changes by name.

    Raises UsageError for an invalid regular expression, LimitError for one that takes too long.
    """

    def __init__(
        self, keys: Iterable[str] = (), patterns: Iterable[str | re.Pattern[str]] = ()
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._keys = {_SYNONYMS.get(key, key): key for key in keys}
        self._met: set[str] = set()
        self._patterns = [BoundedPattern(pattern, MASK) for pattern in patterns]

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Redactor | None:
        """Return the redactor for the options ``redact_keys`` and ``redact_pattern``, or None."""
        listed_keys = str(options.get("redact_keys") or "").split(",")
        keys = list(filter(None, map(str.strip, listed_keys)))
        patterns = list(filter(None, [str(options.get("redact_pattern") or "")]))
        return cls(keys, patterns) if keys or patterns else None

    @property
    def absent(self) -> list[str]:
        """The keys to be redacted that no record has had so far."""
        return [key for name, key in self._keys.items() if name not in self._met]

    def redact(self, record: LogFileRecord) -> LogFileRecord | None:
        """Return the redacted record; None if nothing of it can be kept."""
        if isinstance(record, Damaged):
            self.counts["damaged stretches left out"] += 1
            if record.code == rules.CONTAINER_HEADER.code:
                return StreamHeader()
            if record.code == rules.STALE_BYTES.code:  # the unused space of a ring keeps its size
                return Padding(nbytes=record.nbytes)
            return None
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
                rolled_out=self._number(record.rolled_out, wire.CONTROL_ROLLED_OUT),
            )
        return record

    def entry(self, entry: Entry) -> Entry:
        """Return a redacted entry, before it is converted to another form."""
        return attrs.evolve(
            entry,
            pid=self._optional(entry.pid, "pid"),
            tid=self._optional(entry.tid, "tid"),
            line=self._optional(entry.line, "line"),
            verbosity=self._optional(entry.verbosity, "verbosity"),
            dropped=self._number(entry.dropped, *wire.LOSSES),
            rolled_out=self._number(entry.rolled_out, wire.CONTROL_ROLLED_OUT),
            tags=[self._value("tag", tag) for tag in entry.tags],
            component=self._optional_value("moniker", entry.component),
            url=self._optional_value("url", entry.url),
            message=self._optional_value("message", entry.message),
            file=self._optional_value("file", entry.file),
            args=self._arguments(entry.args, self._value),
        )

    def text(self, text: str) -> str:
        """Return a text without the matches of the patterns."""
        for pattern in self._patterns:
            text, count = pattern.subn(text)
            if count:
                self.counts["matches"] += count
        return text

    def _entry(self, entry: RingEntry) -> RingEntry | None:
        if entry.raw is not None or entry.payload:
            self.counts["entries with odd bytes, now without"] += 1
        if entry.log is None:
            return None
        log = self.redact(entry.log)
        assert isinstance(log, LogRecord | None)  # noqa: S101 (the class does not change)
        return None if log is None else attrs.evolve(entry, log=log, payload=b"", raw=None)

    def _fitting(
        self, record: Any, change: Callable[[Any, _Mask], LogFileRecord]
    ) -> LogFileRecord | None:
        """Return the changed record, with whole texts masked if it would become too large."""
        counts_so_far = self.counts.copy()
        for mask in (self._value, self._whole):
            self.counts = counts_so_far.copy()
            redacted = change(record, mask)
            try:
                redacted.pack()
            except WriteRefusedError:
                continue
            return redacted
        self.counts = counts_so_far
        self.counts["records left out, which masks make too large"] += 1
        return None

    def _log(self, record: LogRecord, mask: _Mask) -> LogRecord:
        args = self._arguments(record.args, mask, control=record.control)
        return attrs.evolve(record, args=tuple(args), suffix=None)

    def _arguments(
        self, args: Iterable[Argument], mask: _Mask, *, control: bool = False
    ) -> list[Argument]:
        """Return redacted arguments; a count of logs rolled out stays a number."""
        redacted = []
        for argument in args:
            name = argument.name
            if isinstance(argument.value, bytes):
                self.counts["arguments not understood, left out"] += 1
            elif argument.type == "string":
                redacted.append(attrs.evolve(argument, value=mask(name, str(argument.value))))
            elif not self._named(name):
                redacted.append(argument)
            else:
                self.counts["values"] += 1
                counts = name == wire.ROLLED_OUT or (control and name == wire.CONTROL_ROLLED_OUT)
                if counts and argument.type == "uint64":
                    redacted.append(attrs.evolve(argument, value=0))
                else:
                    redacted.append(Argument(name=name, type="string", value=MASK))
        return redacted

    def _packet(self, packet: LegacyPacket, mask: _Mask) -> LegacyPacket:
        return attrs.evolve(
            packet,
            pid=self._number(packet.pid, "pid"),
            tid=self._number(packet.tid, "tid"),
            dropped_logs=self._number(packet.dropped_logs, *wire.LOSSES),
            tags=tuple(mask("tag", tag) for tag in packet.tags),
            message=mask("message", packet.message),
        )

    def _named(self, *names: str) -> bool:
        """Return whether the value of a key with these names is to be redacted."""
        if not self._keys:
            return False
        matching_keys = {_SYNONYMS.get(name, name) for name in names} & self._keys.keys()
        self._met |= matching_keys
        return bool(matching_keys)

    def _number(self, value: int, *names: str) -> int:
        """Return a number, or 0 if it is redacted, where no text can replace it."""
        if not self._named(*names):
            return value
        self.counts["values"] += bool(value)
        return 0

    def _optional(self, value: int | None, name: str) -> int | None:
        """Return a number, or None if it is redacted."""
        if value is None or not self._named(name):
            return value
        self.counts["values"] += 1
        return None

    def _value(self, name: str, text: str) -> str:
        """Return the redacted text of a key."""
        if self._named(name):
            self.counts["values"] += 1
            return MASK
        return self.text(text)

    def _optional_value(self, name: str, text: str | None) -> str | None:
        """Return the redacted text of a key; None for none."""
        if text is None:
            return None
        return self._value(name, text)

    def _whole(self, name: str, text: str) -> str:
        """Return the text of a key, or the mask if any part of it is redacted."""
        return text if self._value(name, text) == text else MASK


def redact(
    records: Iterable[LogFileRecord | Mapping[str, Any]],
    *,
    keys: Iterable[str] = (),
    patterns: Iterable[str | re.Pattern[str]] = (),
    counts: Counter[str] | None = None,
) -> Iterator[LogFileRecord]:
    """Yield redacted records; see ``Redactor``. ``counts`` receives the number of changes."""
    redactor = Redactor(keys, patterns)
    try:
        for record in records:
            if isinstance(record, Mapping):
                record = from_json(record)
            redacted = redactor.redact(record)
            if redacted is not None:
                yield redacted
    finally:
        if counts is not None:
            counts.update(redactor.counts)
