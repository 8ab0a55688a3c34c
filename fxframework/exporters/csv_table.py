"""One table as comma-separated values, as RFC 4180 has them, in UTF-8.

Codes are resolved to strings and numbers of an enumeration to their names. A null is an empty
field, an empty string a quoted one (``""``). Integers are exact; a double is the shortest text
that reads back as the same double, or ``NaN``, ``Infinity``, ``-Infinity``. What is not UTF-8
becomes U+FFFD, which is counted. A pair (`blobs.data`) makes two fields.

Rows that name a thread also get its pid and tid and the names of process and thread; rows that
have arguments get them as one JSON object, in the order of the capture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fxframework.errors import UsageError, WriteRefusedError
from fxframework.exporters.rows import Arguments, json_double, pieces
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.schema import TABLE_CODES
from fxframework.model.strings import TextColumn
from fxframework.model.table import Table
from fxframework.registry import ExportSession

__all__ = ["PREFERRED", "open_export"]

PREFERRED = (
    "slices",
    "logs",
    "properties",
    "instants",
    "counters",
    "flows",
    "sched",
    "blobs",
    "nodes",
    "threads",
    "processes",
)
"""The first of these that has rows is exported where no table is asked for."""
NOT_UTF8 = "strings that are not UTF-8, in part"
FORMULA = "=+-@\t\r"
"""What a spreadsheet takes for the beginning of a formula; some skip what separates words."""
THREAD_COLUMNS = {"thread": "", "prev": "prev_", "next": "next_"}
"""Columns that hold an id of `threads`, and what the columns that they get begin with."""

Cells = list[str]


def open_export(sink: Sink, options: Mapping[str, Any]) -> ExportSession:
    """The exporter `csv`. Raises UsageError for an invalid delimiter."""
    delimiter = "\t" if options["delimiter"] == "tab" else options["delimiter"]
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise UsageError(
            f"{delimiter!r} cannot separate fields",
            remedy="-o delimiter takes one character, or `tab`",
        )
    return _CsvExport(sink, delimiter, options)


class _CsvExport:
    """Writes one table of one capture."""

    def __init__(self, sink: Sink, delimiter: str, options: Mapping[str, Any]) -> None:
        self._sink = sink
        self._delimiter = delimiter
        self._options = options
        self._dropped: Counter[str] = Counter()
        self._used = False

    def write(self, capture: Capture) -> None:
        """Write one table of a capture.

        Raises WriteRefusedError for a second capture, and where there are no rows; UsageError for
        a table that the capture does not have.
        """
        if self._used:
            raise WriteRefusedError(
                "a CSV file holds one table of one capture", remedy="convert the inputs one by one"
            )
        self._used = True
        counts = capture.row_counts()
        name = self._options["table"] or _main_table(capture, counts)
        cells = _CellMaker(capture, self._delimiter, neutral=self._options["spreadsheet"])
        makers = [_own(cells)]
        if self._options["threads"] and "threads" in capture.schemas:
            makers.append(_ThreadColumns(capture, cells))
        if self._options["args"] and "args" in capture.schemas and name in TABLE_CODES:
            makers.append(_ArgsColumn(capture, name, cells))
        rows = 0
        for batch in capture.batches(name):
            columns: dict[str, Cells] = {}
            for make in makers:
                columns.update(make(batch, columns.keys()))
            if not rows and len(batch):
                self._lines([columns.keys()])
            self._lines(zip(*columns.values(), strict=True))
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

    def _lines(self, rows: Iterable[Iterable[str]]) -> None:
        for some in pieces(self._delimiter.join(row) + "\r\n" for row in rows):
            self._sink.write(some)

    def close(self) -> Mapping[str, int]:
        """The tables that were left out, with their rows, and the strings that changed."""
        return dict(self._dropped)


def _main_table(capture: Capture, counts: Mapping[str, int]) -> str:
    names = [name for name in (*PREFERRED, *counts) if counts.get(name)]
    if not names:
        raise WriteRefusedError(
            "no table has any rows", path=capture.name, remedy="`fxf info` shows what there is"
        )
    return names[0]


# --- Cells -------------------------------------------------------------------------------------


class _CellMaker:
    """Makes fields of columns; each pooled string is quoted once."""

    def __init__(self, capture: Capture, delimiter: str, *, neutral: bool) -> None:
        self._pool = capture.strings
        self._neutral = neutral
        self._special = f'{delimiter}"\r\n'
        self._by_code: dict[int, str] = {-1: ""}
        self.not_utf8 = 0

    def quoted(self, text: str) -> str:
        if not text:
            return '""'
        if self._neutral and text[0] in FORMULA:
            text = "'" + text
        if any(character in text for character in self._special):
            return '"' + text.replace('"', '""') + '"'
        return text

    def decoded(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError:
            self.not_utf8 += 1
            return data.decode("utf-8", "replace")

    def of_code(self, code: int) -> str:
        cell = self._by_code.get(code)
        if cell is None:
            cell = self._by_code[code] = self.quoted(self.decoded(self._pool.bytes_of(code)))
        return cell

    def column(self, table: Table, name: str) -> dict[str, Cells]:
        """A column as one field a row, or as two."""
        column = table[name]
        kind = table.schema.column(name)
        if isinstance(column, TextColumn):
            texts = (column.bytes_of(row) for row in range(len(column)))
            return {name: [self.quoted(self.decoded(text)) for text in texts]}
        if kind.kind == "code":
            return {name: [self.of_code(code) for code in column.tolist()]}
        if column.ndim > 1:
            return {
                f"{name}_offset": [str(value) for value in column[:, 0].tolist()],
                f"{name}_length": [str(value) for value in column[:, 1].tolist()],
            }
        if column.dtype.kind == "f":
            return {name: [json_double(value).strip('"') for value in column.tolist()]}
        if column.dtype.kind == "b":
            return {name: ["true" if value else "false" for value in column.tolist()]}
        if kind.values:
            names = {value: self.quoted(text) for value, text in kind.values.items()}
            return {name: [names.get(value) or str(value) for value in column.tolist()]}
        return {name: [str(value) for value in column.tolist()]}


Maker = Callable[[Table, Iterable[str]], dict[str, Cells]]


def _own(cells: _CellMaker) -> Maker:
    """The table's own columns."""

    def make(batch: Table, _present: Iterable[str]) -> dict[str, Cells]:
        made: dict[str, Cells] = {}
        for name in batch.columns:
            made.update(cells.column(batch, name))
        return made

    return make


# --- Threads -----------------------------------------------------------------------------------


class _ThreadColumns:
    """pid, tid, and the names of process and thread, beside each column that holds a thread."""

    def __init__(self, capture: Capture, cells: _CellMaker) -> None:
        processes: dict[int, str] = {}
        if "processes" in capture.schemas:
            table = capture.table("processes")
            codes = table.array("name").tolist()
            for pid, code in zip(table.array("pid").tolist(), codes, strict=True):
                processes[pid] = cells.of_code(code)
        table = capture.table("threads")
        columns = (table.array(name).tolist() for name in ("id", "pid", "tid", "name"))
        self._threads = {
            number: (str(pid), str(tid), processes.get(pid, ""), cells.of_code(name))
            for number, pid, tid, name in zip(*columns, strict=True)
        }

    def __call__(self, batch: Table, present: Iterable[str]) -> dict[str, Cells]:
        taken = set(present)
        made: dict[str, Cells] = {}
        nobody = ("", "", "", "")
        for column, prefix in THREAD_COLUMNS.items():
            if column not in batch:
                continue
            people = [self._threads.get(number, nobody) for number in batch.array(column).tolist()]
            for place, name in enumerate(("pid", "tid", "process_name", "thread_name")):
                if prefix + name not in taken:
                    made[prefix + name] = [person[place] for person in people]
        return made


# --- Arguments ---------------------------------------------------------------------------------


class _ArgsColumn:
    """The arguments of each row as a JSON object."""

    def __init__(self, capture: Capture, table: str, cells: _CellMaker) -> None:
        self._args = Arguments(capture, table, cells.decoded)
        self._cells = cells

    def __call__(self, batch: Table, present: Iterable[str]) -> dict[str, Cells]:
        if not len(self._args) or "args" in present:
            return {}
        return {"args": [self._object(places) for places in self._args.of(batch.array("row"))]}

    def _object(self, places: range) -> str:
        if not places:
            return ""
        members = (f"{name}:{value}" for name, value in self._args.members(places))
        return self._cells.quoted("{" + ",".join(members) + "}")
