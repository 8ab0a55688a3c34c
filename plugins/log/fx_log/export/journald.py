"""The exporter `journald`: logs in systemd's journal export format.

Fields are bytes, so the contents of logs do not change; a value that is not plain text is written
in the binary form, with its length.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fx_log.export.lines import LineExport, Lines
from fx_log.export.presentation import (
    NO_OFFSET,
    Batch,
    Forms,
    Head,
    Messages,
    shown_values,
    utc_offset,
)
from fx_log.severity import LEVELS, SYSLOG
from fxframework.errors import UsageError
from fxframework.io.sink import Sink
from fxframework.kit.json_fields import special_double
from fxframework.kit.memo import Memo, strings_of
from fxframework.model.capture import Capture
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

BOOT_ID: Final = hashlib.sha256(b"fxframework journald").hexdigest()[:32]
"""The default boot id, a constant."""
LATEST: Final = (1 << 55) - 1
"""Greatest time of the journal, in microseconds; the least real time is 1."""
FIELD_NAME: Final = 64
"""Longest name of a field, in bytes."""
FIELDS: Final = 1000
"""Most fields of an entry; importers refuse the whole file for more than 1024."""
ROW_FIELDS: Final = 9
"""Most fields of an entry besides those of its head and arguments."""
HEAD_FIELDS: Final = 900
"""Most fields written for a row and its head, which may have many tags."""
KEY: Final = "KEY_"
"""Prefix for a log's key whose field name would be reserved or invalid without it."""
OWN_FIELDS: Final = frozenset(
    {
        "MESSAGE",
        "MESSAGE_ID",
        "PRIORITY",
        "SYSLOG_IDENTIFIER",
        "SYSLOG_PID",
        "TID",
        "CODE_FILE",
        "CODE_LINE",
        "VERBOSITY",
    }
)
OWN_PREFIX: Final = "FUCHSIA_"
CLAMPED: Final = "times that the journal cannot hold"
TOO_MANY: Final = "tags and arguments of logs of more than 1000 fields"
_CONTROL: Final = re.compile(rb"[\x00-\x1f\x7f]")
_BOOT_ID: Final = re.compile(r"[0-9a-f]{32}")


class JournaldExport(LineExport):
    """Writes an entry for each log, capture by capture.

    Raises UsageError for an invalid boot id, host name, or offset of a capture.
    """

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        boot_id = options["boot_id"].replace("-", "").lower() or BOOT_ID
        if not _BOOT_ID.fullmatch(boot_id) or not int(boot_id, 16):
            raise UsageError(
                f"invalid boot_id {options['boot_id']!r}",
                remedy="give 32 hex digits, not all of them zero, as in _BOOT_ID",
            )
        host = options["hostname"]
        if not host.isprintable():
            raise UsageError(f"invalid hostname {host!r}", remedy="give one line of printable text")
        self._origin = f"_BOOT_ID={boot_id}\n".encode()
        if host:
            self._origin += f"_HOSTNAME={host}\n".encode()
        self._fields = _FieldNames()

    def _lines(self, capture: Capture) -> Lines:
        offset = utc_offset(self._options, capture)
        return _Entries(capture.strings, self._fields, self._dropped, offset, self._origin)


class _FieldNames:
    """Unique names of fields for keys, across all captures."""

    def __init__(self) -> None:
        self._fields: dict[bytes, bytes] = {}
        self._taken: set[str] = set()
        self._again: Counter[str] = Counter()

    def of(self, key: bytes) -> bytes:
        """Return the field of a key: its capitals and digits, with underscores for all else."""
        field = self._fields.get(key)
        if field is None:
            field = self._new(key).encode()
            self._fields[key] = field
        return field

    def _new(self, key: bytes) -> str:
        text = key.decode("utf-8", "replace").upper()
        name = re.sub("[^A-Z0-9_]", "_", text).lstrip("_")
        if not name or name[0].isdigit() or name in OWN_FIELDS or name.startswith(OWN_PREFIX):
            name = KEY + name
        name = name[:FIELD_NAME]
        field = name
        while field in self._taken:
            self._again[name] += 1
            ending = f"_{self._again[name] + 1}"
            field = name[: FIELD_NAME - len(ending)] + ending
        self._taken.add(field)
        return field


class _Entries:
    """Converts the rows of a capture to entries, each with the fields ``origin``."""

    def __init__(
        self,
        pool: StringPool,
        names: _FieldNames,
        dropped: Counter[str],
        offset: int | None,
        origin: bytes,
    ) -> None:
        self._dropped = dropped
        self._offset = offset
        self._origin = origin
        self._strings = strings_of(pool)
        self._names: Memo[int, bytes] = Memo(lambda code: names.of(self._strings[code]), 0)
        endings: Memo[int, bytes] = Memo(lambda code: _ending(self._strings[code]), 0)
        self._forms = Forms(
            string=endings,
            integer=lambda value: b"=%d\n" % value,
            double=_double,
            data=_ending,
            true=b"=true\n",
            false=b"=false\n",
            null=b"=null\n",
        )
        self._heads: Memo[tuple[Any, ...], tuple[bytes, int, bool]] = Memo(self._head)

    def arguments(self, args: Table) -> list[bytes]:
        """Return the fields of arguments."""
        names = [self._names[code] for code in args.array("name").tolist()]
        values = shown_values(args, self._forms)
        members = zip(names, values, strict=True)
        return [name + value for name, value in members]

    def of(self, batch: Batch[bytes]) -> Iterator[bytes]:
        """Yield the entry of each row."""
        offset = self._offset
        if offset is None:
            self._dropped[NO_OFFSET] += len(batch)
        for ns, head_key, message, args, dropped_logs, rolled_out, verbosity in batch.rows(
            batch.ts.tolist(), _messages(batch.messages)
        ):
            head_fields, count, has_message = self._heads[head_key]
            real_time = (ns + (offset or 0)) // 1000
            boot_time = ns // 1000
            if not (1 <= real_time <= LATEST and boot_time >= 0):
                # Before 1970, or before boot: FUCHSIA_BOOT_TIME_NS has the unclamped time.
                if offset is not None or boot_time < 0:
                    self._dropped[CLAMPED] += 1
                real_time = min(max(real_time, 1), LATEST)
                boot_time = max(boot_time, 0)
            entry = b"__REALTIME_TIMESTAMP=%d\n" % real_time
            entry += b"__MONOTONIC_TIMESTAMP=%d\n" % boot_time
            entry += self._origin + head_fields
            if has_message:
                entry += b"MESSAGE" + message
            entry += b"FUCHSIA_BOOT_TIME_NS=%d\n" % ns
            if dropped_logs:
                entry += b"FUCHSIA_DROPPED=%d\n" % dropped_logs
            if rolled_out:
                entry += b"FUCHSIA_ROLLED_OUT=%d\n" % rolled_out
            if verbosity:
                entry += b"VERBOSITY=%d\n" % verbosity
            if count + len(args) > FIELDS or count > HEAD_FIELDS:
                fields_left = FIELDS - min(count, HEAD_FIELDS)
                self._dropped[TOO_MANY] += max(count - HEAD_FIELDS, 0)
                self._dropped[TOO_MANY] += max(len(args) - fields_left, 0)
                args = args[:fields_left]
            yield b"%b%b\n" % (entry, b"".join(args))

    def _head(self, key: tuple[Any, ...]) -> tuple[bytes, int, bool]:
        """Return the fields of a head, the number of all fields, and whether there is a message.

        All fields are those of the head and of the row.
        """
        head = Head.of(key)
        moniker = self._strings[head.component]
        fields = []
        if head.level >= 0:
            level = LEVELS[head.severity]
            fields += [
                (b"PRIORITY", b"%d" % SYSLOG[level]),
                (b"FUCHSIA_SEVERITY", level.name.encode()),
            ]
            if head.severity != level:
                fields.append((b"FUCHSIA_SEVERITY_RAW", b"%d" % head.severity))
        identifier = moniker.rpartition(b"/")[2]
        if head.tags:
            identifier = head.tags[0]
        if identifier:
            fields.append((b"SYSLOG_IDENTIFIER", identifier))
        if head.pid is not None:
            fields.append((b"SYSLOG_PID", b"%d" % head.pid))
        if head.tid is not None:
            fields.append((b"TID", b"%d" % head.tid))
        if head.file >= 0:
            fields.append((b"CODE_FILE", self._strings[head.file]))
        if head.line is not None:
            fields.append((b"CODE_LINE", b"%d" % head.line))
        if head.component >= 0:
            fields.append((b"FUCHSIA_MONIKER", moniker))
        if head.url >= 0:
            fields.append((b"FUCHSIA_COMPONENT_URL", self._strings[head.url]))
        fields += [(b"FUCHSIA_TAG", tag) for tag in head.tags]
        # Importers refuse entries of too many fields: the last tags of a head are left out.
        written_fields = [_field(*field) for field in fields[: HEAD_FIELDS - ROW_FIELDS]]
        return b"".join(written_fields), len(fields) + ROW_FIELDS, head.has_message


def _field(name: bytes, value: bytes) -> bytes:
    return name + _ending(value)


def _ending(value: bytes) -> bytes:
    """Return the part after a field's name: "=" and a line, or length and bytes of other values."""
    if _CONTROL.search(value) is None and (value.isascii() or _is_text(value)):
        return b"=%b\n" % value
    return b"\n%b%b\n" % (len(value).to_bytes(8, "little"), value)


def _messages(messages: Messages) -> list[bytes]:
    """Return the part after the field's name for each message."""
    if messages.data.isascii() and _CONTROL.search(messages.data) is None:
        return [b"=%b\n" % message for message in messages.raw()]
    return list(map(_ending, messages.raw()))


def _double(value: float) -> bytes:
    return f"={special_double(value) or repr(value)}\n".encode()


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
