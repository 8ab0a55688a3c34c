"""The exporter `csv`: one table as comma-separated values (RFC 4180) in UTF-8.

Codes become strings and values of an enumeration their names. A null is an empty field, an empty
string a quoted one (``""``). Integers are exact; a double is the shortest text that reads back as
the same double, or ``NaN``, ``Infinity``, ``-Infinity``. Bytes that are not UTF-8 become U+FFFD and
are counted. A pair (`blobs.data`) becomes two fields.

Rows with a thread also get its pid, tid, process name and thread name; rows with arguments get
them as one JSON object, in the order of the capture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.errors import UsageError, WriteRefusedError
from fxframework.exporters.main_table import main_table
from fxframework.exporters.rows import BITS, INTEGERS, ArgumentStream, json_double
from fxframework.io.sink import Sink
from fxframework.kernels.cells import Cells
from fxframework.kit.export import Export
from fxframework.model.capture import Capture
from fxframework.model.schema import TABLE_CODES, THREAD_COLUMNS
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table

__all__ = ["CsvExport"]

NOT_UTF8 = "strings that are not UTF-8, in part"
I64 = NDArray[np.int64]
ASCII = 0x7F
CONTINUED = 0x80
"""Bits 6 and 7 of a UTF-8 continuation byte."""
FORMULA = "=+-@\t\r"
"""Characters that start a formula in spreadsheets; some skip leading tabs and line ends."""
PIECE = 1 << 20
"""Bytes written at a time."""
LEAST_ALIKE, MOST_ALIKE = 1e-4, 1e16
"""In this range of magnitudes, orjson and Python format doubles identically."""

Objects = tuple[I64, I64, I64, NDArray[np.uint8], I64]
Column = tuple[str, I64]
"""The kind of a column (``fxframework.kernels.cells``), and its values."""


class CsvExport(Export):
    """Writes one table of one capture. Raises UsageError for an invalid delimiter."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        given = options["delimiter"]
        self._delimiter = "\t" if given == "tab" else given
        if len(self._delimiter) != 1 or self._delimiter in '"\r\n':
            raise UsageError(
                f"{given!r} cannot separate fields",
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
        cells = _CellMaker(capture, self._delimiter, neutral=self._options["spreadsheet"])
        makers = [_own_columns(cells)]
        if self._options["threads"] and "threads" in capture.schemas:
            makers.append(_ThreadColumns(capture, cells))
        batches = capture.batches(name)
        if self._options["args"] and "args" in capture.schemas and name in TABLE_CODES:
            args = _ArgsColumn(capture, name, cells)
            makers.append(args)
            batches = args.parts(batches)
        lines = Cells(
            self._delimiter.encode(),
            special=self._delimiter.encode()[:1] + b'"\r\n',
            formulas=FORMULA.encode() if self._options["spreadsheet"] else b"",
            most=PIECE,
        )
        rows = 0
        for batch in batches:
            columns: dict[str, Column] = {}
            for make in makers:
                columns.update(make(batch, columns.keys()))
            if not rows and len(batch):
                self._sink.write((self._delimiter.join(columns) + "\r\n").encode())
            values = np.empty((len(columns), len(batch)), np.int64)
            for at, (_, column) in enumerate(columns.values()):
                values[at] = column
            kinds = "".join(kind for kind, _ in columns.values())
            lines.load(kinds, values, cells.pooled(), cells.texts())
            lines.load_objects(*cells.objects)
            more = len(batch)
            while more:
                more = lines.run()
                self._sink.write(lines.out.take())
            rows += len(batch)
        if not rows:
            raise WriteRefusedError(
                f"the table {name!r} has no rows", path=capture.name, remedy="choose another one"
            )
        if cells.not_utf8:
            self._dropped[NOT_UTF8] += cells.not_utf8
        for table, count in counts.items():
            used = {name, "threads", "processes"} if self._options["threads"] else {name}
            if count and table not in used and not (table == "args" and self._options["args"]):
                self._dropped[f"rows of {table}"] += count

    def close(self) -> Mapping[str, int]:
        """Return the counts of omitted rows by table, and of changed strings."""
        return dict(self._dropped)


# --- Cells -------------------------------------------------------------------------------------


class _TextBuffer:
    """A growing buffer of texts, with the bounds between them."""

    def __init__(self) -> None:
        self._data = np.empty(1 << 12, np.uint8)
        self._bounds = np.zeros(1 << 8, np.int64)
        self._count = 0

    def add(self, data: bytes) -> int:
        """Add a text; return its number."""
        start = int(self._bounds[self._count])
        end = start + len(data)
        if end > self._data.size:
            self._data = np.resize(self._data, 2 * end)
        if self._count + 2 > self._bounds.size:
            self._bounds = np.resize(self._bounds, 2 * self._bounds.size)
        self._data[start:end] = np.frombuffer(data, np.uint8)
        self._count += 1
        self._bounds[self._count] = end
        return self._count - 1

    def arrays(self) -> tuple[NDArray[np.uint8], I64]:
        """Return the bytes of all texts, and their bounds (one more than texts)."""
        return self._data, self._bounds[: self._count + 1]


class _ByCode:
    """Numbers of texts made from the strings of a pool, by code; each text is made once."""

    def __init__(
        self,
        pool: StringPool,
        add: Callable[[str], int],
        make: Callable[[bytes], str],
        *,
        null: int,
    ) -> None:
        self._pool = pool
        self._add = add
        self._make = make
        # Index 0 is null, index code + 1 a string; -1 if its text is not made yet.
        self._places = np.full(1, null, np.int64)

    def numbers(self, codes: NDArray[Any]) -> I64:
        """Return the numbers of the texts of these codes, in the same shape."""
        if self._places.size <= len(self._pool):
            more = np.full(2 * len(self._pool) + 2 - self._places.size, -1, np.int64)
            self._places = np.append(self._places, more)
        wanted = codes.astype(np.int64) + 1
        places = self._places[wanted]
        missing = np.unique(wanted[places < 0])
        if not missing.size:
            return places
        for place in missing.tolist():
            self._places[place] = self._add(self._make(self._pool.bytes_of(place - 1)))
        return self._places[wanted]


class _CellMaker:
    """Converts columns to fields; each pooled string is quoted once."""

    def __init__(self, capture: Capture, delimiter: str, *, neutral: bool) -> None:
        self._pool = capture.strings
        self._neutral = neutral
        self._special = f'{delimiter}"\r\n'
        self._made = _TextBuffer()
        self._words: dict[str, int] = {}
        self._fields = _ByCode(self._pool, self.add, self._field, null=self.word(""))
        nothing = np.zeros(1, np.int64)
        self.objects: Objects = nothing, nothing, nothing, np.zeros(1, np.uint8), nothing
        """The data of a column of kind "a" (``Cells.load_objects``)."""
        self._parts: list[tuple[NDArray[np.uint8], I64]] = []
        self.not_utf8 = 0

    def pooled(self) -> tuple[NDArray[np.uint8], I64]:
        """Return the texts that columns of kind "p" refer to."""
        return self._made.arrays()

    def texts(self) -> tuple[NDArray[np.uint8], I64]:
        """Return the texts of the rows made since the last call, and forget them."""
        parts, self._parts = self._parts, []
        starts = np.cumsum([0, *(letters.size for letters, _ in parts)])
        if not parts:
            return np.zeros(1, np.uint8), np.zeros(1, np.int64)
        return (
            np.concatenate([letters for letters, _ in parts]),
            np.concatenate([bounds + at for (_, bounds), at in zip(parts, starts, strict=False)]),
        )

    def word(self, text: str) -> int:
        """Return the number of a text, which is stored once, without quoting."""
        number = self._words.get(text)
        if number is None:
            number = self._words[text] = self._made.add(text.encode())
        return number

    def add(self, text: str) -> int:
        """Store a text; return its number."""
        return self._made.add(text.encode())

    def quoted(self, text: str) -> str:
        """Quote a text as a field."""
        if not text:
            return '""'
        if self._neutral and text[0] in FORMULA:
            text = "'" + text
        if any(character in text for character in self._special):
            return '"' + text.replace('"', '""') + '"'
        return text

    def decoded(self, data: bytes) -> str:
        """Decode bytes; count those that are not UTF-8."""
        try:
            return data.decode()
        except UnicodeDecodeError:
            self.not_utf8 += 1
            return data.decode("utf-8", "replace")

    def codes(self, codes: NDArray[Any]) -> Column:
        """Return the fields of codes of the pool."""
        return "p", self._fields.numbers(codes)

    def _field(self, data: bytes) -> str:
        return self.quoted(self.decoded(data))

    def lines(self, letters: NDArray[np.uint8], bounds: I64, kind: str) -> Column:
        """Return the fields of texts, given by their bytes and bounds."""
        first = sum(bounds.size for _, bounds in self._parts)
        self._parts.append((letters, bounds))
        return kind, np.arange(first, first + bounds.size - 1)

    def strings(self, texts: Sequence[str], kind: str) -> Column:
        """Return the fields of a list of texts."""
        data = [text.encode("utf-8", "replace") for text in texts]
        bounds = np.zeros(len(data) + 1, np.int64)
        np.cumsum([len(each) for each in data], out=bounds[1:])
        return self.lines(np.frombuffer(b"".join(data), np.uint8), bounds, kind)

    def doubles(self, column: NDArray[np.float64], quote: str) -> Column:
        """Return the fields of doubles; ``quote`` surrounds those that are not finite."""
        size = np.abs(column)
        # orjson formats these identically to Python, but all at once.
        alike = (size == 0) | ((size >= LEAST_ALIKE) & (size < MOST_ALIKE))
        found = orjson.dumps(np.where(alike, column, 0.0), option=orjson.OPT_SERIALIZE_NUMPY)
        text = np.frombuffer(found, np.uint8)[1:-1]
        commas = np.flatnonzero(text == ord(","))
        bounds = np.zeros(column.size + 1, np.int64)
        bounds[1:-1] = commas - np.arange(commas.size)
        bounds[-1] = text.size - commas.size
        kind, numbers = self.lines(text[text != ord(",")], bounds, "v")
        if not alike.all():
            others = [json_double(value) for value in column[~alike].tolist()]
            numbers[~alike] = self.strings([text.replace('"', quote) for text in others], "v")[1]
        return kind, numbers

    def text_column(self, column: TextColumn) -> Column:
        """Return the fields of a text column; invalid UTF-8 is replaced."""
        bounds = column.offsets - column.offsets[0]
        letters = column.data[int(column.offsets[0]) : int(column.offsets[-1])]
        if letters.size and int(letters.max()) > ASCII:
            starts = bounds[:-1][bounds[:-1] < bounds[1:]]
            try:
                letters.tobytes().decode()
                whole = not (letters[starts] & 0xC0 == CONTINUED).any()
            except UnicodeDecodeError:
                whole = False
            if not whole:
                rows = range(len(column))
                return self.strings([self.decoded(column.bytes_of(row)) for row in rows], "t")
        return self.lines(letters, bounds, "t")

    def column(self, table: Table, name: str) -> dict[str, Column]:
        """Return the one or two fields of a column, by name."""
        column = table[name]
        kind = table.schema.column(name)
        if isinstance(column, TextColumn):
            return {name: self.text_column(column)}
        if kind.kind == "code":
            return {name: self.codes(column)}
        if column.ndim > 1:
            return {
                f"{name}_offset": _numbers(column[:, 0]),
                f"{name}_length": _numbers(column[:, 1]),
            }
        if column.dtype.kind == "f":
            return {name: self.doubles(column, "")}
        if column.dtype.kind == "b":
            words = np.array([self.word("false"), self.word("true")])
            return {name: ("p", words[column.astype(np.int64)])}
        if kind.values:
            values, places = np.unique(column, return_inverse=True)
            words = np.array(
                [self.word(self.named(kind.values, value)) for value in values.tolist()], np.int64
            )
            return {name: ("p", words[places])}
        return {name: _numbers(column)}

    def named(self, names: Mapping[int, str], value: int) -> str:
        """Return a value of an enumeration as a field: its name, or the number."""
        name = names.get(value)
        return self.quoted(name) if name else str(value)


def _numbers(column: NDArray[Any]) -> Column:
    return ("n", column.view(np.int64)) if column.dtype == np.uint64 else ("s", column)


Maker = Callable[[Table, Iterable[str]], dict[str, Column]]


def _own_columns(cells: _CellMaker) -> Maker:
    """Return a function that makes the table's own columns."""

    def make(batch: Table, _present: Iterable[str]) -> dict[str, Column]:
        made: dict[str, Column] = {}
        for name in batch.columns:
            made.update(cells.column(batch, name))
        return made

    return make


# --- Threads -----------------------------------------------------------------------------------


class _ThreadColumns:
    """Adds pid, tid, process name and thread name for each column that holds a thread."""

    def __init__(self, capture: Capture, cells: _CellMaker) -> None:
        self._cells = cells
        table = capture.table("threads")
        order = np.argsort(table.array("id"), kind="stable")
        self._ids = table.array("id")[order].astype(np.int64)
        self._koids = [table.array(name)[order] for name in ("pid", "tid")]
        names = table.array("name")[order]
        processes = np.full(names.size, -1, np.int64)
        if "processes" in capture.schemas:
            known = capture.table("processes")
            place = np.argsort(known.array("pid"), kind="stable")
            pids, codes = known.array("pid")[place], known.array("name")[place]
            if pids.size:
                found = np.searchsorted(pids, self._koids[0], "right") - 1
                has = (found >= 0) & (pids[found] == self._koids[0])
                processes[has] = codes[found[has]]
        self._names = [processes, names]
        # The numbers of the fields of each thread; -1 if not made yet.
        self._made = np.full((4, self._ids.size + 1), -1, np.int64)
        self._made[:, -1] = cells.word("")

    def __call__(self, batch: Table, present: Iterable[str]) -> dict[str, Column]:
        taken = set(present)
        made: dict[str, Column] = {}
        for column, prefix in THREAD_COLUMNS.items():
            if column not in batch:
                continue
            rows = self._rows(batch.array(column).astype(np.int64))
            self._make(np.unique(rows))
            for place, name in enumerate(("pid", "tid", "process_name", "thread_name")):
                if prefix + name not in taken:
                    made[prefix + name] = "p", self._made[place][rows]
        return made

    def _rows(self, numbers: I64) -> I64:
        """Return the row of each thread; one past the last for an unknown thread."""
        if not self._ids.size:
            return np.zeros(numbers.size, np.int64)
        rows = np.minimum(np.searchsorted(self._ids, numbers), self._ids.size - 1)
        return np.where(self._ids[rows] == numbers, rows, self._ids.size)

    def _make(self, rows: I64) -> None:
        """Make the missing fields of threads."""
        new = rows[self._made[0][rows] < 0]
        for place, koids in enumerate(self._koids):
            self._made[place][new] = [self._cells.add(str(koid)) for koid in koids[new].tolist()]
        for place, names in enumerate(self._names, 2):
            self._made[place][new] = self._cells.codes(names[new])[1]


# --- Arguments ---------------------------------------------------------------------------------


class _ArgsColumn:
    """Adds the arguments of each row as a JSON object."""

    def __init__(self, capture: Capture, table: str, cells: _CellMaker) -> None:
        self._args = ArgumentStream(capture, table)
        self._cells = cells
        pool, null = capture.strings, cells.add('""""')
        self._names = _ByCode(pool, cells.add, lambda data: f"{self._json(data)}:", null=null)
        self._texts = _ByCode(pool, cells.add, self._json, null=null)
        self._bytes = _ByCode(pool, cells.add, lambda data: f'""{data.hex()}""', null=null)

    def _json(self, data: bytes) -> str:
        """Return a JSON string escaped for a quoted field."""
        return orjson.dumps(self._cells.decoded(data)).decode().replace('"', '""')

    def parts(self, batches: Iterable[Table]) -> Iterator[Table]:
        """Batches in parts that do not have too many arguments, each then the next to be made."""
        for batch in batches:
            if not self._args.count:
                yield batch
                continue
            for some, found in self._args.pieces(batch.array("row")):
                self._found = found
                yield batch.select(some)

    def __call__(self, _batch: Table, present: Iterable[str]) -> dict[str, Column]:
        if not self._args.count or "args" in present:
            return {}
        starts, stops, columns = self._found
        count = columns["type"].size
        kinds = np.full(count, ord("p"), np.uint8)
        values = np.full(count, self._cells.word("null"), np.int64)
        texts = columns["str"] >= 0
        strings = self._args.are(columns, "string")
        for which, numbers in ((strings, self._texts), (~strings, self._bytes)):
            rows = texts & which
            values[rows] = numbers.numbers(columns["str"][rows])
        for names, letter, column in ((INTEGERS, "s", "int"), (BITS, "n", "uint")):
            rows = self._args.are(columns, *names) & ~texts
            kinds[rows] = ord(letter)
            values[rows] = columns[column][rows].view(np.int64)
        rows = self._args.are(columns, "bool") & ~texts
        words = np.array([self._cells.word("false"), self._cells.word("true")])
        values[rows] = words[(columns["int"][rows] != 0).astype(np.int64)]
        rows = self._args.are(columns, "double") & ~texts
        if rows.any():
            kinds[rows] = ord("v")
            values[rows] = self._cells.doubles(columns["float"][rows], '""')[1]
        self._cells.objects = starts, stops, self._names.numbers(columns["name"]), kinds, values
        return {"args": ("a", np.arange(starts.size))}
