"""Entries: the meaning of log records, such as well-known arguments and the component that logged.

Conversion and redaction use it for one record at a time; it comes from ``fx_log.meaning``, as the
rows of tables do.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_log import format as wire
from fx_log import tables
from fx_log.format import ArgType, Argument
from fx_log.meaning import DAMAGED_TYPE, NO_MEANING, Arguments, Logs
from fx_log.read.blocks import enter_known, meaning_of
from fx_log.read.records import LogFileRecord, LogRecord, RingEntry
from fx_log.severity import LEVELS
from fxframework.errors import Rule
from fxframework.io.words import U64_MAX
from fxframework.model.strings import StringPool
from fxframework.wire.expressions import wrapped

__all__ = [
    "Entry",
    "EntryReader",
    "attribution_of",
    "component_of",
    "has_type",
    "render_printf",
    "rolled_out_of",
    "split_attribution",
]

TYPE_NUMBERS: Final = {
    **{name: number for number, name in wire.ARG_NAMES.items()}, wire.DAMAGED: DAMAGED_TYPE,
}  # fmt: skip
"""Numbers of the types of arguments, by name."""
TEXT_FIELDS: Final = ("component", "log_url", "file")
"""Columns of `logs` that are codes of texts."""


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


def attribution_of(moniker: str, url: str, rolled_out: int) -> list[Argument]:
    """Return the arguments that say who logged, as the archivist appends them."""
    arguments = [
        Argument(name=wire.MONIKER, type="string", value=moniker),
        Argument(name=wire.URL, type="string", value=url),
    ]
    if rolled_out:
        arguments.append(Argument(name=wire.ROLLED_OUT, type="uint64", value=rolled_out))
    return arguments


def attributed_arguments(record: LogRecord) -> Sequence[Argument]:
    """Return the arguments of a record, with its suffix before what it appends itself."""
    suffix = record.suffix
    if suffix is None:
        return record.args
    args, appended = split_attribution(record.args)
    own = attribution_of(suffix.moniker, suffix.url, suffix.rolled_out)
    return [*args, *own, *appended.values()]


class EntryReader:
    """Derives the entries of a file's records, in order, from what their columns mean.

    ``options`` are the reader's: ``severity_era`` and ``printf``.
    """

    def __init__(self, options: Mapping[str, Any], *, in_ring: bool) -> None:
        self.strings = StringPool()
        enter_known(self.strings)
        self.meaning = meaning_of(self.strings, options, in_entries=in_ring)

    def of(self, records: Sequence[LogFileRecord]) -> list[Entry | None]:
        """Return the entry of each structured record, or entry of a ring.

        None stands for other records, and for control records without a row in `logs`.
        """
        entries: list[Entry | None] = [None] * len(records)
        # The index of each log among the records, the log itself, and its tag.
        logs: list[tuple[int, LogRecord, int]] = []
        for index, record in enumerate(records):
            if isinstance(record, LogRecord):
                logs.append((index, record, record.tag_bits))
            elif isinstance(record, RingEntry) and record.log is not None:
                logs.append((index, record.log, record.tag))
        if not logs:
            return entries
        args = [attributed_arguments(log) for _, log, _ in logs]
        arguments = list(itertools.chain.from_iterable(args))
        # In columns, the offset of a record or an argument is its index; so is that of a message.
        numbers = np.array([numbers_of(*log) for log in logs], np.int64)
        record_of_argument = np.repeat(np.arange(len(logs)), list(map(len, args)))
        argument_columns = self._columns(record_of_argument, arguments)
        rows = self.meaning.of_records(Logs(*numbers.T), argument_columns, not_reported)
        columns = {name: column.tolist() for name, column in rows.logs.items()}
        child_tables = (rows.args, rows.tags, rows.printf)
        parts = [lists_of(child_table, arguments) for child_table in child_tables]
        for row, index in enumerate(columns["offset"]):
            fields = {name: column[row] for name, column in columns.items()}
            keys, tags, inserted = (part.get(row, []) for part in parts)
            message = None
            if fields["log_given"] & tables.GIVEN_MESSAGE:
                message = arguments[fields["message_start"]].value
                if fields["log_given"] & tables.IS_PRINTF:
                    values = [argument.value for argument in inserted]
                    rendered = render_printf(_encoded(message), values)
                    message = rendered.decode(errors="surrogateescape")
            entry = self._entry(fields, message)
            entry.tags = [argument.value for argument in tags]
            entry.args = keys
            entries[index] = entry
        return entries

    def _entry(self, fields: Mapping[str, int], message: str | None) -> Entry:
        """Return the entry of a row of `logs`, without its tags and arguments."""
        given_bits = fields["log_given"]
        component, url, file = (self._text(fields[name]) for name in TEXT_FIELDS)
        return Entry(
            ts=fields["ts"],
            severity=fields["severity"],
            severity_name=LEVELS[fields["severity"]].name,
            tag=fields["log_tag"] & U64_MAX,
            pid=fields["pid"] & U64_MAX if given_bits & tables.GIVEN_PID else None,
            tid=fields["tid"] & U64_MAX if given_bits & tables.GIVEN_TID else None,
            component=component,
            url=url,
            message=message,
            file=file,
            line=fields["line"] if given_bits & tables.GIVEN_LINE else None,
            dropped=fields["dropped"] & U64_MAX,
            rolled_out=fields["log_rolled_out"] & U64_MAX,
            verbosity=fields["log_verbosity"] or None,
        )

    def _columns(self, record: NDArray[np.int64], arguments: Sequence[Argument]) -> Arguments:
        """Return arguments as columns; texts have codes where their name has a meaning."""
        rows: list[tuple[int, int, int]] = []
        for index, argument in enumerate(arguments):
            name = tables.CODES.get(argument.name, NO_MEANING)
            kind = TYPE_NUMBERS.get(argument.type, argument.type)
            value = 0
            if kind == ArgType.STRING and name == tables.MESSAGE:
                value = index
            elif kind == ArgType.STRING and name < NO_MEANING:
                value = self.strings.intern(_encoded(argument.value))
            elif isinstance(argument.value, int):
                value = wrapped(argument.value)
            rows.append((name, kind, value))
        names, kinds, values = np.array(rows, np.int64).reshape(-1, 3).T
        every_index = np.arange(len(arguments))
        return Arguments(
            record, every_index, kinds.astype(np.uint8), names.astype(np.int32), values, every_index
        )

    def _text(self, code: int) -> str | None:
        if code < 0:
            return None
        return self.strings.bytes_of(code).decode(errors="surrogateescape")


def numbers_of(index: int, log: LogRecord, tag: int) -> tuple[int, ...]:
    """Return what the columns of ``Logs`` have of the record with this index."""
    return (
        index,
        index,
        wrapped(log.tag_bits),
        log.severity,
        wrapped(log.timestamp),
        wrapped(tag),
    )


def lists_of(rows: Arguments, arguments: Sequence[Argument]) -> dict[int, list[Argument]]:
    """Return arguments by their row of `logs`; the offset of each is its index."""
    by_row: dict[int, list[Argument]] = {}
    for row, index in zip(rows.record.tolist(), rows.offset.tolist(), strict=True):
        by_row.setdefault(row, []).append(arguments[index])
    return by_row


def not_reported(rule: Rule, rows: Any, record: Any, offset: Any, value: Any = None) -> None:
    """Report nothing: what is wrong with records is found where they are read."""


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
