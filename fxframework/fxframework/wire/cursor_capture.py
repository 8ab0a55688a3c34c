"""Captures of formats that a cursor reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from fxframework.errors import PluginError
from fxframework.io.source import Source
from fxframework.io.words import view_of
from fxframework.kit.pieces import Piece, PieceCapture, Row
from fxframework.model.capture import OpenRequest
from fxframework.model.schema import STANDARD_TABLES
from fxframework.wire.cursor import ShortError
from fxframework.wire.reading import (
    BAD_MAGIC,
    CUT_OFF,
    NO_RECORD,
    CursorFormat,
    RecordCursor,
)
from fxframework.wire.state import State

__all__ = ["CursorCapture", "open_capture"]

CHECKED = 1 << 10
"""Places tried between two checks of the budget."""
Found = tuple[str, Any, int]
"""Kind and fields of a record, and the offset of its end."""


class CursorCapture(PieceCapture):
    """A file whose records a function reads."""

    read_by: ClassVar[CursorFormat]

    def pieces(self) -> Iterator[Piece]:
        """Yield the magic, the records, and the stretches that hold none."""
        data, magic = view_of(self.source.data), self.read_by.magic
        at = 0
        if magic and len(data):
            raw = bytes(data[: len(magic)])
            number = None if raw == magic else CUT_OFF if magic.startswith(raw) else BAD_MAGIC
            yield self._piece("header", 0, raw) if number is None else self._lost(0, raw, number)
            at = len(raw)
        while at < len(data):
            found = self._read(data, at)
            if isinstance(found, int):
                end = self._next(data, at + 1)
                yield self._lost(at, bytes(data[at:end]), found)
                at = end
            else:
                kind, fields, end = found
                yield self._piece(kind, at, bytes(data[at:end]), fields)
                at = end

    def _read(self, data: memoryview, at: int) -> Found | int:
        """Return the record at a place, or the number of the rule that it breaks."""
        cursor = RecordCursor(data, at, State())
        try:
            found = self.read_by.read(cursor)
        except ShortError:
            return CUT_OFF
        if found is None:
            return NO_RECORD
        if not at < cursor.at <= len(data):
            raise PluginError(
                f"the function that reads records of {self.format} returned a record without bytes",
                remedy="return None where there is no record",
            )
        kind, fields = found
        return kind, fields, cursor.at

    def _next(self, data: memoryview, start: int) -> int:
        """Return the first place from ``start`` where a record fits that another one follows."""
        for at in range(start, len(data)):
            if not at % CHECKED:
                self.check_budget()
            found = self._read(data, at)
            if not isinstance(found, int):
                end = found[2]
                if end == len(data) or self._read(data, end) != NO_RECORD:
                    return at
        return len(data)

    def _piece(self, kind: str, at: int, raw: bytes, fields: Any = None) -> Piece:
        fields = dict(fields or {})
        _, columns = self.read_by.rows.get(kind, ("", {}))
        time = columns.get("ts")
        ns = fields.get(time) if isinstance(time, str) else time
        if kind != "header":
            fields["raw"] = raw.hex()
        return Piece(kind, at, raw, fields, ns=ns)

    def _lost(self, at: int, raw: bytes, number: int) -> Piece:
        rule = self.rules.numbered(number)
        return Piece("damaged", at, raw, {"code": rule.code}, rule=rule, value=len(raw))

    def rows(self, piece: Piece) -> Iterable[Row]:
        """Return the row of a record."""
        if piece.record in self.read_by.rows:
            table, columns = self.read_by.rows[piece.record]
            values = {
                column: piece.fields[given] if isinstance(given, str) else given
                for column, given in columns.items()
            }
            yield table, values

    def resume(self) -> tuple[int, bytes] | None:
        """Return the end of the last record, and the magic."""
        end, magic = 0, self.read_by.magic
        for piece in self.pieces():
            if piece.rule is None:
                end = piece.offset + piece.nbytes
            elif not piece.offset and magic:
                return 0, b""
        return end, magic if end else b""


def open_capture(format: CursorFormat, source: Source, request: OpenRequest) -> CursorCapture:
    """Open a file of a format."""
    tables = dict.fromkeys(table for table, _ in format.rows.values())
    made: type[CursorCapture] = type(
        "CursorCaptureOf" + format.name.title().replace("-", ""),
        (CursorCapture,),
        {
            "__doc__": f"A capture of the format {format.name}.",
            "read_by": format,
            "format": format.name,
            "rules": format.rules,
            "schemas": {name: STANDARD_TABLES[name] for name in tables},
            "row_table": next(iter(tables)) if len(tables) == 1 else None,
            "timed_records": all("ts" in columns for _, columns in format.rows.values()),
        },
    )
    return made(source, request)
