"""A base class for simple readers, which only split the file into pieces.

It suits formats that are read in Python. Each table takes a pass over the file, and batches are
slices of whole tables.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from fxframework.errors import BadCallError, Rule, did_you_mean
from fxframework.model.capture import Capture
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.table import Table, null_of

Row = tuple[str, Mapping[str, Any]]
"""The name of a table, and the values of one row by column."""


@attrs.frozen
class Piece:
    """A record: a stretch of the file."""

    record: str
    """Its kind, as in its JSON; ``damaged`` if it cannot be read."""
    offset: int
    """Byte offset in the file."""
    raw: bytes = attrs.field(repr=False)
    """Its bytes."""
    fields: Mapping[str, Any] = attrs.field(factory=dict)
    """Its fields, as JSON values."""
    ns: int | None = attrs.field(default=None, kw_only=True)
    """Its time in nanoseconds, if it has one."""
    rule: Rule | None = attrs.field(default=None, kw_only=True)
    """The rule of the finding about it, if there is one."""
    value: object = attrs.field(default=None, kw_only=True)
    """The value in the finding's message."""

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return len(self.raw)

    def to_json(self) -> dict[str, Any]:
        """Return kind, place and fields, and its bytes in hex if there is a finding about it."""
        out = {"record": self.record, "offset": self.offset, "nbytes": self.nbytes, **self.fields}
        if self.rule is not None:
            out["raw"] = self.raw.hex()
        return out


def reported(pieces: Iterable[Piece], findings: Diagnostics | None) -> Iterator[Piece]:
    """Yield all pieces of a file, and report their findings unless None."""
    for index, piece in enumerate(pieces):
        if piece.rule is not None and findings is not None:
            findings.add(piece.rule, piece.offset, index, piece.value)
        yield piece


class PieceCapture(Capture):
    """A capture made of pieces: override ``pieces()``, and ``rows()`` if the format has tables."""

    @abc.abstractmethod
    def pieces(self) -> Iterator[Piece]:
        """Yield all pieces of the file in order, without gap or overlap."""

    def rows(self, piece: Piece) -> Iterable[Row]:  # noqa: ARG002 (for overrides)
        """Return the rows that come from a piece; by default none.

        Columns that a row leaves out are null, zero or empty in it; ``offset``, ``row`` and ``ts``
        are then those of the piece.
        """
        return ()

    def records(self) -> Iterator[Piece]:
        """Yield the pieces and report their findings, once."""
        yield from reported(self.pieces(), self.record_diagnostics)

    def _table(self, name: str) -> Table:
        schema = self.schemas[name]
        rows = self._rows_of_table(name)
        fillers = {column.name: null_of(column) for column in schema.all_columns}
        columns: dict[str, Any] = {}
        for key in dict.fromkeys(key for row in rows for key in row):
            columns[key] = [row.get(key, fillers.get(key)) for row in rows]
        for column in schema.all_columns:
            # numpy would make doubles of integers above and below 2^63. What does not fit is
            # refused by `Table.of`.
            if column.name in columns and column.kind == "u8":
                with contextlib.suppress(OverflowError, TypeError, ValueError):
                    columns[column.name] = np.array(columns[column.name], np.uint64)
        if rows:
            columns.setdefault("row", np.arange(len(rows)))
        return Table.of(schema, self.strings, **columns)

    def _rows_of_table(self, name: str) -> list[dict[str, Any]]:
        """Return the values of each row of a table, from a pass over all pieces."""
        has_times = any(column.name == "ts" for column in self.schemas[name].columns)
        table_rows: list[dict[str, Any]] = []
        for piece in self.records():  # which reports their findings
            piece_values: dict[str, Any] = {"offset": piece.offset}
            if has_times:
                piece_values["ts"] = piece.ns
            for table, values in self.rows(piece):
                if table == name:
                    table_rows.append({**piece_values, **values})
                elif table not in self.schemas:
                    suggestion = did_you_mean(table, self.schemas)
                    raise BadCallError(
                        f"rows() gives a row of table {table!r}, which is not in schemas"
                        f"{suggestion}",
                        remedy=f"schemas has {', '.join(self.schemas)}",
                    )
        return table_rows
