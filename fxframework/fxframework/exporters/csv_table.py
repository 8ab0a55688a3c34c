"""The exporter `csv`: one table as comma-separated values (RFC 4180) in UTF-8.

Codes become strings and values of an enumeration their names. A null is an empty field, an empty
string a quoted one (``""``). Integers are exact; a double is the shortest text that reads back as
the same double, or ``NaN``, ``Infinity``, ``-Infinity``. Bytes that are not UTF-8 become U+FFFD and
are counted. A pair (`blobs.data`) becomes two fields.

Rows with a thread also get its pid, tid, process name and thread name; rows with arguments get
them as one JSON object, in the order of the capture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.errors import UsageError, WriteRefusedError
from fxframework.exporters.main_table import main_table
from fxframework.exporters.rows import ArgumentMembers
from fxframework.io.sink import Sink
from fxframework.kernels.arrays import I64
from fxframework.kernels.parts import MEMBERS, MEMBERS_END, NATURAL, QUOTED, SIGNED, TEXT
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.export import Export, decoded
from fxframework.kit.json_fields import special_double
from fxframework.kit.row_texts import (
    ArgumentTexts,
    Numbered,
    column_of,
    doubles,
    json_double,
    value_forms,
)
from fxframework.kit.shown import in_quotes
from fxframework.model.capture import Capture
from fxframework.model.schema import THREAD_COLUMNS, Column
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table
from fxframework.model.threads import Threads

ASCII = 0x7F
THREAD_FIELDS = ("pid", "tid", "process_name", "thread_name")
CONTINUATION_MASK = 0xC0
CONTINUED = 0x80
"""The bits of the mask in a UTF-8 continuation byte."""
FORMULA = "=+-@\t\r"
"""Characters that start a formula in spreadsheets; some skip leading tabs and line ends."""

Parts = tuple[Cell, ...]
"""The parts of a template for a column."""


class CsvExport(Export):
    """Writes one table of one capture. Raises UsageError for an invalid delimiter."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        delimiter = options["delimiter"]
        self._delimiter = "\t" if delimiter == "tab" else delimiter
        if len(self._delimiter) != 1 or self._delimiter in '"\r\n':
            raise UsageError(
                f"{delimiter!r} cannot separate fields",
                remedy="-o delimiter takes one character, or `tab`",
            )

    def write(self, capture: Capture) -> None:
        """Write one table of a capture.

        Raises WriteRefusedError for a second capture, and for a table without rows; UsageError for
        a table that the capture does not have.
        """
        self._only_one_capture("a CSV file holds one table of one capture")
        counts = capture.row_counts()
        name = self._options["table"] or main_table(capture, counts)
        has_threads = self._options["threads"]
        has_args = self._options["args"]
        cells = _CellMaker(capture, self._delimiter, neutral=self._options["spreadsheet"])
        threads = None
        if has_threads and "threads" in capture.schemas:
            threads = _ThreadColumns(capture, cells)
        texts = _argument_texts(cells, capture.strings)
        args = ArgumentMembers(capture, name if has_args else None, texts)
        rows_written = 0
        for batch, (starts, stops) in args.parts(capture.batches(name)):
            columns = cells.columns(batch)
            # A column of the table goes before an added one of the same name.
            if threads is not None:
                for added_column, field in threads.of(batch):
                    columns.setdefault(added_column, (field,))
            if args.count:
                columns.setdefault("args", ((MEMBERS, starts), (MEMBERS_END, stops)))
            if not rows_written and len(batch):
                heading = self._delimiter.join(columns) + "\r\n"
                self._sink.write(heading.encode())
            parts: list[Cell] = []
            for fields in columns.values():
                parts += [self._delimiter.encode(), *fields]
            for piece in cells.templates.pieces(len(batch), *parts[1:], b"\r\n"):
                self._sink.write(piece)
            rows_written += len(batch)
        if not rows_written:
            raise WriteRefusedError(
                f"the table {name!r} has no rows", path=capture.name, remedy="choose another one"
            )
        self._dropped += cells.dropped
        tables_written = {name}
        if has_threads:
            tables_written |= {"threads", "processes"}
        if has_args:
            tables_written.add("args")
        self._drop_rows(counts, but=tables_written)


# --- Cells -------------------------------------------------------------------------------------


class _CellMaker:
    """Converts columns to parts of a template; each pooled string is quoted once."""

    def __init__(self, capture: Capture, delimiter: str, *, neutral: bool) -> None:
        self._neutral = neutral
        self._special = f'{delimiter}"\r\n'
        self.templates = Templates(
            b'"{', b",", b'}"',
            special=delimiter.encode()[:1] + b'"\r\n',
            formulas=FORMULA.encode() if neutral else b"",
        )  # fmt: skip
        self._pool = capture.strings
        self.codes = Numbered(self.templates, self._field, shared=False)
        """Returns the fields of codes of the pool."""
        self.dropped: Counter[str] = Counter()

    def quoted(self, text: str) -> str:
        """Quote a text as a field."""
        if not text:
            return '""'
        if self._neutral and text[0] in FORMULA:
            text = "'" + text
        if any(character in text for character in self._special):
            return in_quotes(text)
        return text

    def decoded(self, data: bytes) -> str:
        """Decode bytes; count those that are not UTF-8."""
        return decoded(data, self.dropped)

    def _field(self, code: int) -> str:
        if code < 0:  # null
            return ""
        return self.quoted(self.decoded(self._pool.bytes_of(code)))

    def text_column(self, column: TextColumn) -> Cell:
        """Return the fields of a text column; invalid UTF-8 is replaced."""
        first = int(column.offsets[0])
        bounds = column.offsets - first
        end = int(column.offsets[-1])
        letters = column.data[first:end]
        if not _is_valid(letters, bounds):
            decoded_texts = (self.decoded(column.bytes_of(row)) for row in range(len(column)))
            texts = [text.encode() for text in decoded_texts]
            return QUOTED, column_of(self.templates, texts)
        return QUOTED, self.templates.column(letters, bounds)

    def columns(self, table: Table) -> dict[str, Parts]:
        """Return the fields of a table by name; a pair makes two."""
        fields: dict[str, Parts] = {}
        for name in table.columns:
            column = table[name]
            if not isinstance(column, TextColumn) and column.ndim > 1:
                fields[f"{name}_offset"] = (_numbers(column[:, 0]),)
                fields[f"{name}_length"] = (_numbers(column[:, 1]),)
            else:
                cell = self._cell(column, table.schema.column(name))
                fields[name] = (cell,)
        return fields

    def _cell(self, column: Any, kind: Column) -> Cell:
        if isinstance(column, TextColumn):
            return self.text_column(column)
        if kind.kind == "code":
            return self.codes(column)
        if column.dtype.kind == "f":
            return doubles(self.templates, column, _double)
        if column.dtype.kind == "b":
            return self.words(column.astype(np.int64), ("false", "true"))
        if kind.values:
            values, indices = np.unique(column, return_inverse=True)
            names = [self.named(kind.values, value) for value in values.tolist()]
            return self.words(indices, names)
        return _numbers(column)

    def words(self, indices: NDArray[Any], words: Sequence[str]) -> Cell:
        """Return the fields of indices of words."""
        numbers = [self.templates.text(word.encode()) for word in words]
        return TEXT, np.array(numbers, np.int64)[indices]

    def named(self, names: Mapping[int, str], value: int) -> str:
        """Return a value of an enumeration as a field: its name, or the number."""
        name = names.get(value)
        return self.quoted(name) if name else str(value)


def _is_valid(letters: NDArray[np.uint8], bounds: I64) -> bool:
    """Return whether all texts, given by their bytes and bounds, are valid UTF-8."""
    if not letters.size or int(letters.max()) <= ASCII:
        return True
    try:
        letters.tobytes().decode()
    except UnicodeDecodeError:
        return False
    # All bytes together are valid; so is each text, if none starts within a character.
    is_empty = bounds[:-1] == bounds[1:]
    starts = bounds[:-1][~is_empty]
    is_continued = letters[starts] & CONTINUATION_MASK == CONTINUED
    return not bool(is_continued.any())


def _double(value: float) -> str:
    return special_double(value) or repr(value)


def _numbers(column: NDArray[Any]) -> Cell:
    return (NATURAL if column.dtype == np.uint64 else SIGNED), column


# --- Threads -----------------------------------------------------------------------------------


class _ThreadColumns:
    """Adds pid, tid, process name and thread name for each column that holds a thread."""

    def __init__(self, capture: Capture, cells: _CellMaker) -> None:
        self._cells = cells
        threads = Threads(capture.schemas, capture.table)
        self._threads = threads
        # The last names are those of no thread, whose row is -1.
        self._names = [np.append(codes, -1) for codes in (threads.process_names, threads.names)]
        self._koid_fields = [self._by_row(koids) for koids in (threads.pids, threads.tids)]

    def _by_row(self, koids: NDArray[Any]) -> Numbered:
        """Return the fields of koids by row of the thread; empty for no thread, whose row is -1."""
        return Numbered(
            self._cells.templates, lambda row: "" if row < 0 else str(koids[row]), shared=False
        )

    def of(self, batch: Table) -> Iterator[tuple[str, Cell]]:
        """Yield the names and fields for the rows of a batch."""
        for column, prefix in THREAD_COLUMNS.items():
            if column not in batch:
                continue
            rows = self._threads.rows(batch.array(column))
            fields: list[Cell] = [fields(rows) for fields in self._koid_fields]
            fields += [self._cells.codes(names[rows]) for names in self._names]
            for name, field in zip(THREAD_FIELDS, fields, strict=True):
                yield prefix + name, field


# --- Arguments ---------------------------------------------------------------------------------


def _argument_texts(cells: _CellMaker, pool: StringPool) -> ArgumentTexts:
    """Return the texts of arguments, as members of a JSON object within a quoted field."""

    def string(code: int) -> str:
        text = cells.decoded(pool.bytes_of(code)) if code >= 0 else ""
        return _in_quotes(orjson.dumps(text).decode())

    forms = value_forms(
        cells.templates,
        string=string,
        blob=lambda code: f'""{pool.bytes_of(code).hex()}""',
        double=lambda value: _in_quotes(json_double(value)),
        shared=False,
    )
    return ArgumentTexts(cells.templates, lambda code: f"{string(code)}:", forms, shared=False)


def _in_quotes(text: str) -> str:
    """Return a text as it is within a quoted field."""
    return text.replace('"', '""')
