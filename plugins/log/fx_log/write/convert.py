"""Conversion of records between the generations of logs, with counts of what each cannot hold.

Legacy packets become structured records; rows of any capture become packets, or records.
Attribution moves between manifests, the records themselves, and nothing. Each function counts what
the target cannot hold in a ``Counter`` of the caller, by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from fx_log import format as wire
from fx_log import tables
from fx_log.export.presentation import SIGNED, UNSIGNED, Forms, Head, shown_values, walk
from fx_log.format import ArgType, Argument, Attribution, LegacyPacket, LogRecord
from fx_log.read.entries import (
    Entry,
    attribution_of,
    component_of,
    has_type,
    rolled_out_of,
    split_attribution,
)
from fx_log.read.records import Damaged, LogFileRecord, Padding, RingEntry
from fx_log.severity import Level, legacy_level
from fx_log.write.arguments import MAX_VALUE_WORDS, argument_bytes, folded, octets, record_bytes
from fx_log.write.sinks import MAX_DROPPED, fitted, verbose_severity
from fx_log.write.writer import fitted_arguments
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.kit.memo import Memo, strings_of

if TYPE_CHECKING:
    from fx_log.write.redaction import Redactor
    from fxframework.model.capture import Capture
    from fxframework.model.table import Table

Lost = Counter[str]
"""Counts of what could not be converted, by name."""
ATTRIBUTIONS: Final = ("keep", "manifest", "in_record", "none")
"""Places of attribution; ``keep`` does not move it."""
SEVERITIES: Final = "severities beyond a byte"
TAGS: Final = "tags of entries"
NAMES_WITH_A_MEANING: Final = {**wire.WELL_KNOWN, **wire.ATTRIBUTION}
"""Names and the types in which they mean something, so that a key of both gets another name."""
INT64, UINT64, STRING = map(int, (ArgType.INT64, ArgType.UINT64, ArgType.STRING))
TYPE_NAMES: Final[dict[int, str]] = {
    **dict.fromkeys(SIGNED, "int64"), **dict.fromkeys(UNSIGNED, "uint64"), **wire.ARG_NAMES,
}  # fmt: skip
"""Types of arguments of any format, as logs have them."""
GIVEN: Final = Head._fields.index("given")
BEHIND: Final = "entries with bytes behind their records"
NO_LOG: Final = "entries that hold no log"
"""Losses of rings' entries."""
NOT_LOGS: Final[dict[type, str]] = {
    Damaged: "damaged stretches", RingEntry: NO_LOG, Padding: "padding",
    Attribution: "attributions",
}  # fmt: skip
"""Records that are not logs, and whose loss is counted; that of a header is none."""

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
    _count_lost(entry, lost, fold=fold)
    message = entry.message or ""
    if fold:
        keys = [(argument.name, argument.value) for argument in entry.args]
        message = folded(message, entry.file, entry.line, keys)
        if redactor is not None:  # patterns also match numbers that became text
            message = redactor.text(message)
    whole_packet = LegacyPacket(
        pid=entry.pid or 0,
        tid=entry.tid or 0,
        timestamp=entry.ts,
        severity=entry.severity,
        dropped_logs=min(entry.dropped, MAX_DROPPED),
        tags=tuple(entry.tags),
        message=message,
    )
    packet = fitted(whole_packet)
    if packet is not whole_packet:
        lost["tags, in part or left out"] += sum(tag not in packet.tags for tag in entry.tags)
        lost["messages, in part"] += packet.message != message
    return packet


def _count_lost(entry: Entry, lost: Lost, *, fold: bool) -> None:
    """Count what of an entry is not in the fields of a packet."""
    where = "put into messages" if fold else "left out"
    if entry.component is not None and entry.component != wire.UNKNOWN_COMPONENT:
        lost["components"] += 1
    if entry.url:
        lost["urls"] += 1
    if entry.rolled_out:
        lost["counts of logs rolled out"] += 1
    if entry.verbosity:
        lost["verbosities"] += 1
    if entry.dropped > MAX_DROPPED:
        lost["counts of dropped logs, in part"] += 1
    if entry.file is not None:
        lost[f"files and lines ({where})"] += 1
    elif entry.line is not None:
        lost["lines without a file"] += 1
    if entry.args:
        lost[f"keys ({where})"] += len(entry.args)


def only_rolled_out(entry: Entry) -> bool:
    """Return whether an entry is only a count of logs rolled out, as control records are."""
    fields = (entry.pid, entry.tid, entry.message, entry.line, entry.file)
    has_fields = any(value is not None for value in fields)
    return bool(entry.rolled_out) and not (has_fields or entry.args or entry.tags)


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
        elif type(record) in NOT_LOGS:
            lost[NOT_LOGS[type(record)]] += 1


def _of_ring(log: LogRecord, tag: int, lost: Lost) -> LogRecord:
    """Return the record of a ring's entry as a record of a file."""
    if log.control and rolled_out_of(log) is None:
        return log
    tag_bits = 0
    if tag < wire.CONTROL:
        tag_bits = tag
    else:
        lost[TAGS] += 1
    if log.control:
        tag_bits |= wire.CONTROL
    if tag_bits == log.tag_bits:
        return log
    return log.edited(tag_bits=tag_bits)


def legacy(
    capture: Capture, lost: Lost, *, fold: bool = True, redactor: Redactor | None = None
) -> Iterator[LegacyPacket]:
    """Yield the rows of `logs` of a capture of any format as legacy packets (``to_legacy``)."""
    for entry in entries(capture, lost):
        if only_rolled_out(entry):
            lost["counts of logs rolled out"] += 1
        else:
            yield to_legacy(entry, lost, fold=fold, redactor=redactor)


def entries(capture: Capture, lost: Lost) -> Iterator[Entry]:
    """Yield the rows of `logs` of a capture of any format, with their tags and arguments."""
    bytes_of = strings_of(capture.strings)
    texts: Memo[int, str] = Memo(lambda code: decoded(bytes_of[code]), 0)
    forms: Forms[Any] = Forms(
        string=texts, integer=int, double=float, data=bytes, true=True, false=False, null=None
    )

    def arguments(args: Table) -> list[Argument]:
        """Return the arguments in rows of `args`."""
        rows = args.tuples("name", "type")
        return [
            Argument(name=texts[name], type=TYPE_NAMES.get(kind, kind), value=value)
            for (name, kind), value in zip(rows, shown_values(args, forms), strict=True)
        ]

    def fields_of(key: tuple[Any, ...]) -> dict[str, Any]:
        """Return the fields that logs with the same head have in common."""
        head = Head.of(key)
        codes = {"component": head.component, "url": head.url, "file": head.file}
        return {
            "severity": head.severity if head.level >= 0 else int(Level.INFO),
            "pid": head.pid,
            "tid": head.tid,
            "line": head.line,
            "tags": tuple(map(decoded, head.tags)),
            **{name: texts[code] for name, code in codes.items() if code >= 0},
        }

    fields = Memo(fields_of)
    for batch in walk(capture, arguments, lost):
        rows = batch.rows(batch.ts.tolist(), batch.messages.raw())
        for ts, head, message, args, dropped, rolled_out, verbosity in rows:
            entry = Entry(ts=ts, dropped=dropped, rolled_out=rolled_out, args=args, **fields[head])
            if head[GIVEN] & tables.GIVEN_MESSAGE:
                entry.message = decoded(message)
            if verbosity:
                entry.verbosity = verbosity
            yield entry


# --- Attribution ----------------------------------------------------------------------------------


Component = tuple[str, str]
"""Moniker and url."""


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
        self._waiting_log: LogRecord | None = None
        """A log held back until it is known whether a suffix follows."""
        self._components: dict[int, Component] = {}
        """Components by tag in the input."""
        self._new_tags: dict[Component, int] = {}
        """Tags that this converter assigned, by component."""
        self._owners: dict[int, Component] = {}
        """The same the other way round."""
        self._next_tag = wire.CONTROL - 1
        """They are assigned from the greatest down, since the system counts up."""
        self._rolled_out: Counter[Component] = Counter()
        """Counts of logs rolled out that the component's next log will carry."""

    def feed(self, record: LogFileRecord) -> list[LogFileRecord]:
        """Convert a record. Return the records that can be written now."""
        if isinstance(record, Attribution):
            if self._waiting_log is None:
                self.lost["attributions of no log"] += 1
            return self._release_log(record)
        records = self._release_log(None)
        if not isinstance(record, LogRecord):
            records.append(record)
        elif record.control:
            records += self._control(record)
        else:
            self._waiting_log = record
        return records

    def finish(self) -> list[LogFileRecord]:
        """Return the records that are still held back."""
        records = self._release_log(None)
        self.lost["counts of logs rolled out"] += len(self._rolled_out)
        self._rolled_out.clear()
        self.lost += Counter()  # removes counts of 0
        return records

    def _release_log(self, suffix: Attribution | None) -> list[LogFileRecord]:
        """Return what becomes of the log held back, if there is one, with the suffix behind it."""
        log = self._waiting_log
        self._waiting_log = None
        if log is None:
            return []
        return self._log(log, suffix)

    def _control(self, record: LogRecord) -> list[LogFileRecord]:
        tag = record.tag_bits & wire.COMPONENT
        rolled_out = rolled_out_of(record)
        if rolled_out is None:
            self._take_manifest(tag, component_of(record))
            return [record] if self.to == "manifest" else []
        if self.to == "manifest":
            return [record]
        component = self._components.get(tag)
        if self.to == "in_record" and component is not None:
            self._rolled_out[component] += rolled_out
            return []
        if tag or component is not None:
            self.lost["components"] += 1
        return [record.edited(tag_bits=wire.CONTROL)]

    def _take_manifest(self, tag: int, component: Component | None) -> None:
        """Remember the component that a manifest names, None for one that names none."""
        if component is None:
            if self.to != "manifest":
                self.lost["control records"] += 1
            return
        self._components[tag] = component
        # The input uses this tag: a component that was given it gets another one.
        owner = self._owners.pop(tag, None)
        if owner is not None:
            del self._new_tags[owner]

    def _log(self, record: LogRecord, suffix: Attribution | None) -> list[LogFileRecord]:
        args, appended = split_attribution(record.args)
        values: dict[str, Any] = {name: argument.value for name, argument in appended.items()}
        rolled_out: int = values.get(wire.ROLLED_OUT, 0)
        named_by_tag = self._components.get(record.tag_bits)
        component: Component | None = None
        # The record's own arguments come before its suffix, and that before a manifest.
        if wire.MONIKER in values:
            component = values[wire.MONIKER], values.get(wire.URL, "")
            if suffix is not None:
                self.lost["attributions of logs that have one"] += 1
        elif suffix is not None:
            component = suffix.moniker, suffix.url
            rolled_out = suffix.rolled_out or rolled_out
        elif appended and self.to == "in_record" and named_by_tag is not None:
            component = named_by_tag[0], values.get(wire.URL, named_by_tag[1])
        elif appended and self.to != "none":
            self.lost["attributions without a moniker (kept as they are)"] += 1
            return [record]
        if self.to == "none":
            if appended or suffix is not None or record.tag_bits:
                self.lost["components"] += 1
            return self._bare(record, args, rolled_out)
        if self.to == "manifest":
            if component is None:
                return [record]
            return self._by_tag(record, args, component, rolled_out)
        if component is None:
            component = named_by_tag
        if component is None:
            return [record]
        if wire.MONIKER in values:
            count = self._rolled_out.pop(component, 0)
            if not count:
                return [record]
        else:
            # A log with another url is of the component that its tag stands for, too.
            owners = {component, named_by_tag or component}
            count = sum(self._rolled_out.pop(owner, 0) for owner in owners)
        return self._in_record(record, args, component, rolled_out + count)

    def _bare(
        self, record: LogRecord, args: Sequence[Argument], rolled_out: int
    ) -> list[LogFileRecord]:
        """Return a log without attribution, behind a count of logs rolled out."""
        records: list[LogFileRecord] = []
        if rolled_out:
            records.append(rolled_out_record(0, rolled_out, record.timestamp))
        if len(args) < len(record.args) or record.tag_bits:
            record = record.edited(args=tuple(args), tag_bits=0)
        return [*records, record]

    def _by_tag(
        self, record: LogRecord, args: Sequence[Argument], component: Component, rolled_out: int
    ) -> list[LogFileRecord]:
        """Return a log with the tag of its component, behind a manifest if that is new."""
        records: list[LogFileRecord] = []
        tag = self._new_tags.get(component)
        if tag is None:
            tag = self._free_tag()
            self._new_tags[component] = tag
            self._owners[tag] = component
            records.append(manifest_record(tag, *component))
        if rolled_out:
            records.append(rolled_out_record(tag, rolled_out, record.timestamp))
        records.append(record.edited(args=tuple(args), tag_bits=tag))
        return records

    def _free_tag(self) -> int:
        """Return a tag that no component has."""
        while self._next_tag in self._components or self._next_tag in self._owners:
            self._next_tag -= 1
        return self._next_tag

    def _in_record(
        self, record: LogRecord, args: Sequence[Argument], component: Component, rolled_out: int
    ) -> list[LogFileRecord]:
        """Return a log that ends with its component."""
        appended = attribution_of(*component, rolled_out)
        attributed = record.edited(args=(*args, *appended), tag_bits=0)
        try:
            attributed.pack()
        except WriteRefusedError:
            self.lost["attributions of logs that have no room for them"] += 1
            return self._bare(record, args, rolled_out)
        return [attributed]


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
    return control_record(
        tag,
        0,
        Argument(name=wire.MANIFEST_MONIKER, type="string", value=moniker),
        Argument(name=wire.MANIFEST_URL, type="string", value=url),
    )


def rolled_out_record(tag: int, count: int, time: int) -> LogRecord:
    """Return the control record with the count of a component's lost logs."""
    argument = Argument(name=wire.CONTROL_ROLLED_OUT, type="uint64", value=count)
    return control_record(tag, time, argument)


def control_record(tag: int, time: int, *args: Argument) -> LogRecord:
    """Return the control record of a component with some arguments."""
    tag_bits = wire.CONTROL | tag
    return LogRecord(timestamp=time, severity=Level.INFO, tag_bits=tag_bits, args=args)


# --- Rows of any format ---------------------------------------------------------------------------


def decoded(data: bytes) -> str:
    """Return the text of some bytes; what is not UTF-8 becomes surrogate escapes."""
    return data.decode(errors="surrogateescape")


class RowEncoder:
    """Encodes the rows of `logs` of any capture as structured records.

    Manifests name components. What does not fit is counted as lost.
    """

    def __init__(self, capture: Capture, lost: Lost) -> None:
        self._capture = capture
        self._lost = lost
        self._tags: dict[Component, int] = {}
        """Tags of components."""
        self._bytes: Memo[Any, bytes] = Memo(lambda argument: argument_bytes(*argument))
        """The bytes of arguments, many of which most logs have in common."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the records, each behind the manifest of its component if that is new."""
        for entry in entries(self._capture, self._lost):
            manifest, tag = self._named(entry)
            yield manifest + self._record(entry, tag)

    def _named(self, entry: Entry) -> tuple[bytes, int]:
        """Return a new manifest, or no bytes, and the tag of a component; 0 without one."""
        if entry.component is None:
            return b"", 0
        component = (entry.component, entry.url or "")
        if component in self._tags:
            return b"", self._tags[component]
        tag = len(self._tags) + 1
        try:
            manifest = manifest_record(tag, *component).pack()
        except WriteRefusedError:
            self._lost["components"] += 1
            return b"", 0
        self._tags[component] = tag
        return manifest, tag

    def _record(self, entry: Entry, tag: int) -> bytes:
        """Return the record of a row, with its arguments in the reference writer's order."""
        if entry.rolled_out:
            self._lost["counts of logs rolled out"] += 1
        fields = [
            ("pid", UINT64, entry.pid),
            ("tid", UINT64, entry.tid),
            ("num_dropped", UINT64, entry.dropped or None),
            ("file", STRING, entry.file),
            ("line", UINT64, entry.line),
            ("verbosity", INT64, entry.verbosity),
        ]
        given = [field for field in fields if field[2] is not None]
        tags = [("tag", STRING, text) for text in entry.tags]
        keys = list(filter(None, map(self._key, entry.args)))
        message = []
        if entry.message is not None:
            message.append(("message", STRING, octets("the message", entry.message)))
        try:
            arguments = [self._bytes[argument] for argument in given]
            arguments += [argument_bytes(*argument) for argument in (*message, *keys)]
            arguments += [self._bytes[argument] for argument in tags]
            body = b"".join(arguments)
            return record_bytes(entry.severity, entry.ts, body, tag_bits=tag)
        except WriteRefusedError:  # logs of other formats may be larger than a record
            body, left_out = fitted_arguments([*given, *message], keys, tags, MAX_VALUE_WORDS)
        self._lost["logs, in part"] += 1
        self._lost["keys"] += left_out
        return record_bytes(entry.severity, entry.ts, body, tag_bits=tag)

    def _key(self, argument: Argument) -> tuple[str, int, Any] | None:
        """Return name, type and value of a key; None if logs have no such values."""
        name = argument.name
        if isinstance(argument.value, bytes):
            self._lost["values that are bytes"] += 1
            return None
        if has_type(argument, NAMES_WITH_A_MEANING):
            self._lost["names of keys, which got an underscore"] += 1
            name += "_"
        return name, wire.ARG_TYPES[argument.type], argument.value
