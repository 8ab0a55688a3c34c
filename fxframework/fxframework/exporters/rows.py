"""Rows: the threads and the arguments that rows of tables refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.columns import Columns, joined, picked
from fxframework.kernels.templates import Templates
from fxframework.kit.export import quoted
from fxframework.kit.row_texts import (
    ArgumentTexts,
    stretches,
    string_bytes,
    string_lengths,
    value_forms,
)
from fxframework.model.capture import Capture
from fxframework.model.schema import ARG_TYPES, TABLE_CODES, ArgType
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

Bounds = tuple[NDArray[np.int64], NDArray[np.int64]]
KEPT = 16 << 20
"""Most bytes of texts kept from one part of a table to the next."""
STRING_BYTES = 8 << 20
"""Most bytes of strings of the rows of a part, except a single row."""


class RowArgs(NamedTuple):
    """Arguments of consecutive rows: begin and end for each row, and their columns."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    columns: dict[str, NDArray[Any]]


def json_arguments(
    templates: Templates, pool: StringPool, name: Callable[[str], str]
) -> ArgumentTexts:
    """Return the texts of arguments with values as JSON; ``name`` shows a name given as JSON."""
    forms = value_forms(
        templates,
        string=lambda code: quoted(pool.text(code)),
        blob=lambda code: f'"{pool.bytes_of(code).hex()}"',
    )
    return ArgumentTexts(templates, lambda code: name(quoted(pool.text(code))), forms)


class ArgumentMembers:
    """The arguments of the rows of a table as members of templates; none without a table."""

    def __init__(self, capture: Capture, table: str | None, texts: ArgumentTexts) -> None:
        self._stream: ArgumentStream | None = None
        if table is not None and table in TABLE_CODES and "args" in capture.schemas:
            self._stream = ArgumentStream(capture, table)
        self._texts = texts
        self.count = self._stream.count if self._stream else 0
        """Total number of arguments."""

    def parts(self, batches: Iterable[Table]) -> Iterator[tuple[Table, Bounds]]:
        """Yield batches, in parts of few arguments and bytes of strings, with bounds of members.

        The templates hold the members of a part, and have forgotten what was written before.
        """
        templates = self._texts.templates
        for batch in batches:
            for rows, args in self._args(batch):
                chosen_rows = batch.select(rows)
                for chosen_piece in stretches(_string_sizes(chosen_rows, args), STRING_BYTES):
                    templates.forget(KEPT)
                    starts = args.starts[chosen_piece]
                    stops = args.stops[chosen_piece]
                    # Number the members from the first of this piece on.
                    first_argument = starts[0]
                    if self._stream is not None and args.columns:
                        columns = picked(args.columns, slice(first_argument, stops[-1]))
                        kinds = self._stream.kinds(columns)
                        templates.hold(*self._texts.of(columns, kinds))
                    yield (
                        chosen_rows.select(chosen_piece),
                        (starts - first_argument, stops - first_argument),
                    )

    def _args(self, batch: Table) -> Iterator[tuple[slice, RowArgs]]:
        """Yield slices of the rows with their arguments."""
        if self._stream is None or not self.count:
            no_bounds = np.zeros(len(batch), np.int64)
            yield slice(None), RowArgs(no_bounds, no_bounds, {})
        else:
            yield from self._stream.pieces(batch.array("row"))


def _string_sizes(table: Table, args: RowArgs) -> NDArray[np.int64]:
    """Return the bytes of the strings of each row, and of those of its arguments."""
    nbytes = string_bytes(table)
    if args.columns:
        lengths = string_lengths(table.pool)
        name_lengths = lengths[args.columns["name"]]
        argument_bytes = name_lengths + lengths[args.columns["str"]]
        bytes_before = np.append(0, np.cumsum(argument_bytes))
        nbytes += bytes_before[args.stops] - bytes_before[args.starts]
    return nbytes


COLUMN_TYPES = {
    "parent": np.int64,
    "name": np.int32,
    "type": np.uint8,
    "int": np.int64,
    "uint": np.uint64,
    "float": np.float64,
    "str": np.int32,
}
"""Columns of `args` that are read."""


class ArgumentStream:
    """The arguments of one table's rows, as columns, for requests in order of the rows.

    Arguments that are not in the order of their rows, such as those added by the end of a slice,
    are kept in memory; of the others, at most a batch.
    """

    def __init__(self, capture: Capture, table: str) -> None:
        self.count = 0
        """Total number of arguments."""
        self._types = np.full(256, ArgType.NULL)
        """The standard number of each type."""
        standard_numbers = {name: code for code, name in ARG_TYPES.items()}
        for code, name in capture.schemas["args"].column("type").values.items():
            self._types[code] = standard_numbers.get(name, ArgType.NULL)
        self._batches = _argument_batches(capture, table)
        self._parts: list[Columns] = []
        """Arguments read ahead."""
        self._last_parent = -1
        """The last row whose arguments were read; more of them may follow."""
        late_parts = []
        for _, late, size in _argument_batches(capture, table):
            self.count += size
            if late["parent"].size:
                late_parts.append(late)
        all_late = _joined(late_parts)
        self._late = picked(all_late, np.argsort(all_late["parent"], kind="stable"))

    def kinds(self, columns: Columns) -> NDArray[np.integer]:
        """Return the type of each argument by its value: what has a text is a string, or a blob."""
        types = self._types[columns["type"]]
        has_text = columns["str"] >= 0
        types_of_texts = np.where(types == ArgType.STRING, ArgType.STRING, ArgType.BLOB)
        is_text = (types == ArgType.STRING) | (types == ArgType.BLOB)
        types_of_numbers = np.where(is_text, ArgType.NULL, types)
        return np.where(has_text, types_of_texts, types_of_numbers)

    def pieces(self, rows: NDArray[np.int64]) -> Iterator[tuple[slice, RowArgs]]:
        """Yield the results of ``of`` for slices of the rows, in bounded memory.

        A slice has at most the arguments of a batch and of a row.
        """
        start = 0
        while start < rows.size:
            self._read_until(rows[start])
            stop = rows.size
            if self._last_parent > rows[start]:
                # The arguments of a batch's last row may continue in the next batch.
                stop = int(np.searchsorted(rows, self._last_parent))
            yield slice(start, stop), self.of(rows[start:stop])
            start = stop

    def of(self, rows: NDArray[np.int64]) -> RowArgs:
        """Return the arguments of rows, int64 of shape (n,), sorted and after earlier requests."""
        if not rows.size:
            return _args_of(rows, _joined([]))
        first_row = int(rows[0])
        last_row = int(rows[-1])
        self._read_until(last_row)
        ahead = _joined(self._parts)
        bounds = np.searchsorted(ahead["parent"], [first_row, last_row + 1])
        start, stop = bounds.tolist()
        self._parts = [picked(ahead, slice(stop, None))]
        columns = picked(ahead, slice(start, stop))
        bounds = np.searchsorted(self._late["parent"], [first_row, last_row + 1])
        start, stop = bounds.tolist()
        if stop > start:
            late_columns = picked(self._late, slice(start, stop))
            columns = _joined([columns, late_columns])
            columns = picked(columns, np.argsort(columns["parent"], kind="stable"))
        return _args_of(rows, columns)

    def _read_until(self, row: int) -> None:
        """Read all arguments of a row that are in order."""
        while self._last_parent <= row:
            batch = next(self._batches, None)
            if batch is None:
                break
            columns, _, _ = batch
            self._parts.append(columns)
            if columns["parent"].size:
                self._last_parent = int(columns["parent"][-1])


def _args_of(rows: NDArray[np.int64], columns: Columns) -> RowArgs:
    """Return the arguments of rows, given their columns in order of the rows."""
    starts = np.searchsorted(columns["parent"], rows, "left")
    stops = np.searchsorted(columns["parent"], rows, "right")
    return RowArgs(starts, stops, columns)


def _argument_batches(capture: Capture, table: str) -> Iterator[tuple[Columns, Columns, int]]:
    """Yield arguments of a table's rows: those in order of the rows, late ones, and the number."""
    last_parent = -1
    for batch in capture.batches("args"):
        of_table = batch.array("table") == TABLE_CODES[table]
        if not of_table.any():
            continue
        columns = {name: batch.array(name)[of_table] for name in COLUMN_TYPES}
        parents = columns["parent"]
        # Late arguments are those of a row before one that already had arguments.
        highest_parents = np.maximum.accumulate(np.append(last_parent, parents))
        is_late = parents < highest_parents[:-1]
        last_parent = int(highest_parents[-1])
        yield picked(columns, ~is_late), picked(columns, is_late), parents.size


def _joined(parts: list[Columns]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return {name: np.zeros(0, dtype) for name, dtype in COLUMN_TYPES.items()}
    return joined(parts, COLUMN_TYPES)
