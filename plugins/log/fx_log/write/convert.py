"""Conversion of records between the generations of logs, with counts of what each cannot hold.

Legacy packets become structured records and the reverse. Attribution moves between manifests, the
records themselves, and nothing. Each function counts what the target cannot hold in a ``Counter``
of the caller, by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from fx_log import format as wire
from fx_log.format import Argument
from fx_log.read.entries import Entry, Meaning, split_attribution
from fx_log.read.records import (
    Attribution,
    Damaged,
    LegacyPacket,
    LogFileRecord,
    LogRecord,
    Padding,
    RingEntry,
    RingHeader,
    StreamHeader,
)
from fx_log.severity import Level, legacy_level
from fx_log.write.arguments import folded
from fx_log.write.sinks import MAX_DROPPED, fitted, verbose_severity
from fxframework.errors import UsageError, WriteRefusedError

if TYPE_CHECKING:
    from fx_log.write.redaction import Redactor

__all__ = [
    "ATTRIBUTIONS",
    "AttributionConverter",
    "component_of",
    "convert_attribution",
    "legacy",
    "only_rolled_out",
    "rolled_out_of",
    "structured",
    "tag_of_entry",
    "to_legacy",
    "to_structured",
]

Lost = Counter[str]
"""Counts of what could not be converted, by name."""
ATTRIBUTIONS: Final = ("keep", "manifest", "in_record", "none")
"""Places of attribution; ``keep`` does not move it."""
SEVERITIES: Final = "severities beyond a byte"
TAGS: Final = "tags of entries"
BEHIND: Final = "entries with bytes behind their records"
NO_LOG: Final = "entries that hold no log"
"""Losses of rings' entries."""

# --- Legacy packets and structured records --------------------------------------------------------


def to_structured(packet: LegacyPacket, lost: Lost, *, era: str = "current") -> LogRecord:
    """Return a packet as a structured record: pid, tid, num_dropped, message, and tags.

    The arguments are in the order of the Rust writer.

    The severity is clamped to a byte. In the era "2022" it is converted as readers of that time
    did, and a verbosity becomes a severity below INFO, as current writers have it.
    """
    severity = packet.raw_severity
    if era == "2022":
        severity, verbosity = legacy_level(packet.severity)
        if verbosity:
            severity = verbose_severity(verbosity)
    elif severity != packet.severity:
        lost[SEVERITIES] += 1
    args = [
        Argument(name="pid", type="uint64", value=packet.pid),
        Argument(name="tid", type="uint64", value=packet.tid),
    ]
    if packet.dropped_logs:
        args.append(Argument(name="num_dropped", type="uint64", value=packet.dropped_logs))
    args.append(Argument(name="message", type="string", value=packet.message))
    args += [Argument(name="tag", type="string", value=tag) for tag in packet.tags]
    return LogRecord(timestamp=packet.timestamp, severity=severity, args=tuple(args))


def to_legacy(
    entry: Entry, lost: Lost, *, fold: bool = True, redactor: Redactor | None = None
) -> LegacyPacket:
    """Return an entry as a legacy packet.

    A packet cannot hold file, line and keys. They go into the message, as ``[file(line)] message
    key=value``, or are dropped without ``fold``; both are counted. So are attribution, truncated
    messages and tags, and tags beyond the fifth. Text that ``redactor`` removes does not get into
    the message.
    """
    if redactor is not None:
        entry = redactor.entry(entry)
    if entry.component is not None and entry.component != wire.UNKNOWN_COMPONENT:
        lost["components"] += 1
    elif entry.tag & ~wire.CONTROL:
        lost["ids of components that nothing names"] += 1
    if entry.url:
        lost["urls"] += 1
    if entry.rolled_out:
        lost["counts of logs rolled out"] += 1
    if entry.verbosity:
        lost["verbosities"] += 1
    if entry.dropped > MAX_DROPPED:
        lost["counts of dropped logs, in part"] += 1
    message = entry.message or ""
    where = "put into messages" if fold else "left out"
    if entry.file is not None:
        lost[f"files and lines ({where})"] += 1
    elif entry.line is not None:
        lost["lines without a file"] += 1
    if entry.args:
        lost[f"keys ({where})"] += len(entry.args)
    if fold:
        keys = [(argument.name, argument.value) for argument in entry.args]
        message = folded(message, entry.file, entry.line, keys)
        if redactor is not None:  # patterns also match numbers that became text
            message = redactor.text(message)
    whole = LegacyPacket(
        pid=entry.pid or 0,
        tid=entry.tid or 0,
        timestamp=entry.ts,
        severity=entry.severity,
        dropped_logs=min(entry.dropped, MAX_DROPPED),
        tags=tuple(entry.tags),
        message=message,
    )
    packet = fitted(whole)
    if packet is not whole:
        lost["tags, in part or left out"] += sum(tag not in packet.tags for tag in whole.tags)
        lost["messages, in part"] += packet.message != whole.message
    return packet


def only_rolled_out(entry: Entry) -> bool:
    """Return whether an entry is only a count of logs rolled out, as control records are."""
    given = (entry.pid, entry.tid, entry.message, entry.line, entry.file)
    return bool(entry.rolled_out) and not (
        any(each is not None for each in given) or entry.args or entry.tags
    )


def structured(
    records: Iterable[LogFileRecord], lost: Lost, *, era: str = "current"
) -> Iterator[LogRecord]:
    """Yield the logs of any format as structured records; count anything else as lost.

    Structured records pass unchanged. An entry of a ring yields its record with the entry's tag,
    which takes precedence; manifests keep their own.
    """
    for record in records:
        if isinstance(record, LegacyPacket):
            yield to_structured(record, lost, era=era)
        elif isinstance(record, LogRecord):
            yield record
        elif isinstance(record, RingEntry) and record.log is not None:
            if record.payload:
                lost[BEHIND] += 1
            yield _of_ring(record.log, record.tag, lost)
        else:
            _leave(record, lost)


def _of_ring(log: LogRecord, tag: int, lost: Lost) -> LogRecord:
    """Return the record of a ring's entry as a record of a file."""
    bits = log.tag_bits
    if not log.control:
        bits = tag_of_entry(tag, lost)
    elif rolled_out_of(log) is not None:
        bits = wire.CONTROL | tag_of_entry(tag, lost)
    return log if bits == log.tag_bits else log.edited(tag_bits=bits)


def tag_of_entry(tag: int, lost: Lost) -> int:
    """Return the tag for a record of a ring's entry; 0, counted as lost, beyond 31 bits."""
    if tag < wire.CONTROL:
        return tag
    lost[TAGS] += 1
    return 0


def legacy(
    records: Iterable[LogFileRecord],
    lost: Lost,
    *,
    fold: bool = True,
    redactor: Redactor | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[LogFileRecord]:
    """Yield the logs of any format as a container of legacy packets: its header, then packets.

    Packets pass unchanged, except for redaction; other records pass through ``to_legacy``.
    ``options`` are the reader's.
    """
    yield StreamHeader()
    meaning: Meaning | None = None
    for record in records:
        if isinstance(record, StreamHeader):
            continue
        if isinstance(record, LegacyPacket):
            kept = record if redactor is None else redactor.redact(record)
            if kept is not None:
                yield kept
            continue
        if meaning is None:
            meaning = Meaning("log-ring" if isinstance(record, RingHeader) else "log", options)
        entry = meaning.entry(record)
        if entry is None:
            _leave(record, lost)
        elif only_rolled_out(entry):
            lost["counts of logs rolled out"] += 1
        else:
            if isinstance(record, RingEntry) and record.payload:
                lost[BEHIND] += 1
            yield to_legacy(entry, lost, fold=fold, redactor=redactor)


def _leave(record: LogFileRecord, lost: Lost) -> None:
    """Count a record that is not a log, if leaving it out loses something."""
    if isinstance(record, Damaged):
        lost["damaged stretches"] += 1
    elif isinstance(record, RingEntry) and record.log is None:
        lost[NO_LOG] += 1
    elif isinstance(record, Padding):
        lost["padding"] += 1
    elif isinstance(record, Attribution):
        lost["attributions"] += 1


# --- Attribution ----------------------------------------------------------------------------------


class AttributionConverter:
    """Moves the attribution of a file's records, one record at a time.

    ``to`` is ``manifest`` (control records name the tags of logs), ``in_record`` (each log ends
    with moniker and url) or ``none``. The input may have any of the three generations, including
    the suffix of 2025. All other records pass byte for byte.

    Counts of logs rolled out move with the attribution: they become control records, an argument of
    the component's next log, or control records without a component. Attribution without a moniker
    is not moved. ``lost`` counts what could not be kept.
    """

    def __init__(self, to: str, lost: Lost | None = None) -> None:
        if to not in ATTRIBUTIONS[1:]:
            raise UsageError(
                f"invalid attribution {to!r}",
                remedy=f"use one of {', '.join(ATTRIBUTIONS)}",
            )
        self.to = to
        self.lost: Lost = Counter() if lost is None else lost
        self._held: LogRecord | None = None
        """A log held back until it is known whether a suffix follows."""
        self._named: dict[int, tuple[str, str]] = {}
        """Components by tag in the input."""
        self._tags: dict[tuple[str, str], int] = {}
        """Tags that this converter assigned, by component."""
        self._taken: dict[int, tuple[str, str]] = {}
        self._free = wire.CONTROL - 1
        self._rolled_out: dict[tuple[str, str], int] = {}
        """Counts of logs rolled out that the component's next log will carry."""

    def feed(self, record: LogFileRecord) -> list[LogFileRecord]:
        """Convert a record. Return the records that can be written now."""
        held, self._held = self._held, None
        if isinstance(record, Attribution):
            if held is None:
                self.lost["attributions of no log"] += 1
                return []
            return self._log(held, record)
        out = [] if held is None else self._log(held, None)
        if not isinstance(record, LogRecord):
            out.append(record)
        elif record.control:
            out += self._control(record)
        else:
            self._held = record
        return out

    def finish(self) -> list[LogFileRecord]:
        """Return the records that are still held back."""
        held, self._held = self._held, None
        out = [] if held is None else self._log(held, None)
        self.lost["counts of logs rolled out"] += len(self._rolled_out)
        self._rolled_out = {}
        self.lost += Counter()  # removes counts of 0
        return out

    def _control(self, record: LogRecord) -> list[LogFileRecord]:
        tag = record.tag_bits & wire.COMPONENT
        rolled_out, component = rolled_out_of(record), component_of(record)
        if rolled_out is None and component is not None:
            self._named[tag] = component
            mine = self._taken.pop(tag, None)
            if mine is not None:  # the input uses this tag: assign another to our component
                del self._tags[mine]
        if self.to == "manifest":
            return [record]
        if rolled_out is None:
            if component is None:
                self.lost["control records"] += 1
            return []
        if self.to == "in_record" and tag in self._named:
            who = self._named[tag]
            self._rolled_out[who] = self._rolled_out.get(who, 0) + rolled_out
            return []
        if tag or tag in self._named:
            self.lost["components"] += 1
        return [record.edited(tag_bits=wire.CONTROL)]

    def _log(self, record: LogRecord, suffix: Attribution | None) -> list[LogFileRecord]:
        args, appended = split_attribution(record.args)
        own = appended.get(wire.MONIKER)
        url = appended.get(wire.URL)
        count = appended.get(wire.ROLLED_OUT)
        rolled_out: Any = 0 if count is None else count.value
        who: tuple[str, str] | None = None
        if own is not None:
            who = str(own.value), "" if url is None else str(url.value)
            if suffix is not None:
                self.lost["attributions of logs that have one"] += 1
        elif suffix is not None:
            who, rolled_out = (suffix.moniker, suffix.url), suffix.rolled_out or rolled_out
        elif appended and self.to == "in_record" and record.tag_bits in self._named:
            moniker, named_url = self._named[record.tag_bits]
            who = moniker, named_url if url is None else str(url.value)
        elif appended and self.to != "none":
            self.lost["attributions without a moniker (kept as they are)"] += 1
            return [record]
        if self.to == "none":
            if appended or suffix is not None or record.tag_bits:
                self.lost["components"] += 1
            return self._bare(record, args, rolled_out)
        if self.to == "manifest":
            return [record] if who is None else self._by_tag(record, args, who, rolled_out)
        return self._in_record(record, args, who, rolled_out, has_own=own is not None)

    def _bare(
        self, record: LogRecord, args: Sequence[Argument], rolled_out: int
    ) -> list[LogFileRecord]:
        out: list[LogFileRecord] = []
        if rolled_out:
            out.append(rolled_out_record(0, rolled_out, record.timestamp))
        if len(args) == len(record.args) and not record.tag_bits:
            return [*out, record]
        return [*out, record.edited(args=tuple(args), tag_bits=0)]

    def _by_tag(
        self, record: LogRecord, args: Sequence[Argument], who: tuple[str, str], rolled_out: int
    ) -> list[LogFileRecord]:
        out: list[LogFileRecord] = []
        tag = self._tags.get(who)
        if tag is None:
            tag = self._tags[who] = self._give(who)
            out.append(manifest_record(tag, *who))
        if rolled_out:
            out.append(rolled_out_record(tag, rolled_out, record.timestamp))
        out.append(record.edited(args=tuple(args), tag_bits=tag))
        return out

    def _give(self, who: tuple[str, str]) -> int:
        """Assign a tag to a component, from the greatest down, since the system counts up."""
        while self._free in self._named or self._free in self._taken:
            self._free -= 1
        self._taken[self._free] = who
        return self._free

    def _in_record(
        self,
        record: LogRecord,
        args: Sequence[Argument],
        who: tuple[str, str] | None,
        rolled_out: int,
        *,
        has_own: bool,
    ) -> list[LogFileRecord]:
        named = self._named.get(record.tag_bits)
        if who is None:
            who = named
        if who is None:
            return [record]
        before = self._rolled_out.pop(who, 0)
        if named is not None and not has_own:  # a log with another url is still of the component
            before += self._rolled_out.pop(named, 0)
        if has_own and not before:
            return [record]
        rolled_out += before
        tail = [
            Argument(name=wire.MONIKER, type="string", value=who[0]),
            Argument(name=wire.URL, type="string", value=who[1]),
        ]
        if rolled_out:
            tail.append(Argument(name=wire.ROLLED_OUT, type="uint64", value=rolled_out))
        made = record.edited(args=(*args, *tail), tag_bits=0)
        try:
            made.pack()
        except WriteRefusedError:
            self.lost["attributions of logs that have no room for them"] += 1
            return self._bare(record, args, rolled_out)
        return [made]


def convert_attribution(
    records: Iterable[LogFileRecord], to: str, lost: Lost | None = None
) -> Iterator[LogFileRecord]:
    """Yield the records of a ``log`` file with moved attribution; see ``AttributionConverter``."""
    converter = AttributionConverter(to, lost)
    for record in records:
        yield from converter.feed(record)
    yield from converter.finish()


def manifest_record(tag: int, moniker: str, url: str) -> LogRecord:
    """Return the control record that names the component of a tag."""
    return LogRecord(
        timestamp=0,
        severity=Level.INFO,
        tag_bits=wire.CONTROL | tag,
        args=(
            Argument(name=wire.MANIFEST_MONIKER, type="string", value=moniker),
            Argument(name=wire.MANIFEST_URL, type="string", value=url),
        ),
    )


def rolled_out_record(tag: int, count: int, time: int) -> LogRecord:
    """Return the control record with the count of a component's lost logs."""
    return LogRecord(
        timestamp=time,
        severity=Level.INFO,
        tag_bits=wire.CONTROL | tag,
        args=(Argument(name=wire.CONTROL_ROLLED_OUT, type="uint64", value=count),),
    )


def rolled_out_of(record: LogRecord) -> int | None:
    """Return the count of lost logs of a control record; None for a manifest."""
    count: int | None = _last(record.args, wire.CONTROL_ROLLED_OUT, "uint64")
    return count


def component_of(record: LogRecord) -> tuple[str, str] | None:
    """Return moniker and url of a manifest; None if it lacks one."""
    moniker = _last(record.args, wire.MANIFEST_MONIKER, "string")
    url = _last(record.args, wire.MANIFEST_URL, "string")
    return None if moniker is None or url is None else (moniker, url)


def _last(args: Iterable[Argument], name: str, type: str) -> Any:
    value = None
    for argument in args:
        if argument.name == name and argument.type == type:
            value = argument.value
    return value
