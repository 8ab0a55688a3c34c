"""Formats read by a cursor: for records that cannot be declared, a function that reads one."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from fxframework.errors import Catalogue, PluginError, Rule, Severity, did_you_mean
from fxframework.registry import Reader, lazy
from fxframework.wire.cursor import Cursor
from fxframework.wire.rules import READING

if TYPE_CHECKING:
    from fxframework.io.source import Source
    from fxframework.model.capture import Capture, OpenRequest
    from fxframework.wire.state import State

__all__ = ["CursorFormat", "RecordCursor", "by_cursor"]

_open_capture = lazy("fxframework.wire.cursor_capture:open_capture")
BAD_MAGIC, CUT_OFF, NO_RECORD = 101, 102, 109
Fields = Mapping[str, Any]
Read = Callable[["RecordCursor"], "tuple[str, Fields] | None"]


class RecordCursor(Cursor):
    """Reads one record of a file. Every read is checked: a short one makes the record cut off."""

    def __init__(self, data: memoryview, at: int, state: State) -> None:
        super().__init__(data, at, len(data), state)
        self.begin()

    def peek(self, nbytes: int) -> bytes:
        """Return the next bytes without going behind them."""
        at = self.at
        found = self.take(nbytes)
        self.at = at
        return bytes(found)

    def fields(self, layout: str) -> tuple[Any, ...]:
        """Return the next fields, whose layout is that of the module ``struct``, as ``<qB``."""
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def bytes(self, nbytes: int) -> bytes:
        """Return a copy of the next bytes; ``take`` returns a view of them."""
        return bytes(self.take(nbytes))

    def rest(self) -> memoryview:
        """Return all bytes up to the end of the file."""
        return self.take(self.limit - self.at)


@attrs.frozen(kw_only=True)
class CursorFormat:
    """A format whose records a function reads."""

    name: str
    """The name of the format."""
    read: Read
    """Reads one record."""
    magic: bytes
    """What a file begins with; may be empty."""
    rows: Mapping[str, tuple[str, Fields]]
    """The table of each kind of record, and a field or a constant for each column."""
    rules: Catalogue
    """The findings."""


def by_cursor(
    name: str,
    title: str,
    read: Read,
    *,
    codes: str,
    magic: bytes = b"",
    rows: Mapping[str, tuple[str, Fields]] | None = None,
    **options: Any,
) -> Reader:
    """Return the reader of a format whose records ``read(cursor)`` reads, one at a time.

    The function returns the kind of the record and its fields as JSON values, and leaves the cursor
    behind it; None if there is no record. A read beyond the end is the finding 0102, no record
    0109 of the prefix ``codes``; reading goes on at the next byte from which a record fits that
    another one, or the end, follows. ``rows`` gives the table of a kind, and for each column the
    name of a field, or a constant that is not a string. ``options`` are those of ``Reader``.
    Raises PluginError for a table or a column that there is not.
    """
    from fxframework.model.schema import STANDARD_TABLES

    for kind, (table, columns) in (rows or {}).items():
        if table not in STANDARD_TABLES:
            raise PluginError(
                f"{name}, {kind}: no table {table!r}{did_you_mean(table, STANDARD_TABLES)}"
            )
        known = [column.name for column in STANDARD_TABLES[table].all_columns]
        for column in columns:
            if column not in known:
                raise PluginError(
                    f"{name}, {kind}: no column {column!r} in {table}{did_you_mean(column, known)}"
                )
    found = [
        Rule(f"{codes}{number:04}", severity, what, title, rule, detail=detail, ours=ours)
        for number, severity, what, rule, detail, ours in READING
        if number in (BAD_MAGIC, CUT_OFF)
    ]
    no_record = Rule(
        f"{codes}{NO_RECORD:04}", Severity.DATA_LOSS, "bytes that are not a record", title,
        "Records follow one another.", detail="{value} bytes", ours=found[0].ours,
    )  # fmt: skip
    format = CursorFormat(
        name=name,
        read=read,
        magic=magic,
        rows=dict(rows or {}),
        rules=Catalogue([*found, no_record]),
    )

    def open_(source: Source, request: OpenRequest) -> Capture:
        """Open a file of the format."""
        made: Capture = _open_capture(format, source, request)
        return made

    return Reader(
        format=name, title=title, open=open_, magic=magic, rules=lambda: format.rules, **options
    )
