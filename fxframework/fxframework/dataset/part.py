"""Part: writes a capture as Parquet files, one per table, in bounded memory."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from fxframework.conversion import require_readable
from fxframework.dataset.inputs import Item
from fxframework.dataset.manifest import FAILED, LOSSES, OK, SKIPPED, Entry, Fault
from fxframework.dataset.store import Store
from fxframework.errors import FxError, NotACaptureError, Severity, readable_name, unexpected
from fxframework.host import limits_of
from fxframework.io.budget import MEMORY_FACTOR, Budget
from fxframework.io.remote import is_address
from fxframework.io.special import refuse_special

if TYPE_CHECKING:
    import pyarrow as pa

    from fxframework.host import Host
    from fxframework.io.sink import Sink
    from fxframework.model.capture import Capture
    from fxframework.model.table import Table

COLUMNS = ("capture", "capture_file", "capture_host")
"""Columns before each table's own: the capture's id, its file and its host."""
WHOLE_BYTES = 32 << 20
"""Captures of up to this many bytes are decoded at once, larger ones in batches."""
ROWS = 1 << 18
"""Rows of a batch, and of a row group."""


@attrs.frozen(kw_only=True)
class Recipe:
    """Settings of the conversion, the same for all captures of a dataset."""

    out: str
    folder: str = ""
    """The folder to which relative names of captures refer, on every worker."""
    format: str | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict)
    """Options of readers, and limits; each capture uses those that its reader has."""


def convert_items(recipe: Recipe, items: tuple[Item, ...]) -> list[Entry]:
    """Convert captures one after the other. Errors of captures are in the entries."""
    return [_convert(recipe, item) for item in items]


def _convert(recipe: Recipe, item: Item) -> Entry:
    from fxframework.host import default_host

    host = default_host()
    store = Store.at(recipe.out)
    start_time = time.perf_counter()
    if item.skipped_at_once:
        return Entry.of(item, SKIPPED)
    try:
        entry = _converted(recipe, item, host, store)
    except NotACaptureError as error:
        if not item.named:
            return Entry.of(item, SKIPPED)
        entry = Entry.of(item, FAILED, error=_fault(error, host))
    except Exception as error:  # noqa: BLE001 (a capture that fails is reported, not fatal)
        entry = Entry.of(item, FAILED, error=_fault(error, host))
    seconds = round(time.perf_counter() - start_time, 6)
    entry = attrs.evolve(entry, seconds=seconds)
    store.finish(entry)
    return entry


def _fault(error: Exception, host: Host) -> Fault:
    """Convert an exception to a Fault of the manifest."""
    if not isinstance(error, FxError):
        # No plugin is to blame for a lack of memory or an error of the system.
        is_of_system = isinstance(error, MemoryError | OSError)
        blamed = None if is_of_system else host.blame(error)
        error = blamed or unexpected(error)
    return Fault(code=error.code, message=error.message, remedy=error.remedy)


def _converted(recipe: Recipe, item: Item, host: Host, store: Store) -> Entry:
    """Write the files of a capture, all or none. Raises the errors of reading and writing."""
    if item.special:
        refuse_special(item.file, "a batch")
    with _opened(recipe, item, host) as capture, contextlib.ExitStack() as sinks:
        require_readable(capture)
        budget = capture.request.budget
        rows: dict[str, int] = {}
        files = []
        for table in capture.tables:
            file = _TableFile(store, item, table, sinks, budget)
            for part in _parts(capture, table, recipe):
                file.write(part)
            file.close()
            files.append(file)
            rows[table] = file.rows
            budget.check_output(sum(file.written for file in files))
        # Only now: a capture that fails leaves no file of an earlier table.
        store.commit(file.sink for file in files if file.sink is not None)
        worst = capture.diagnostics.worst
        has_losses = worst is not None and worst >= Severity.DATA_LOSS
        return Entry.of(
            item,
            LOSSES if has_losses else OK,
            format=capture.format,
            rows=rows,
            findings=dict(sorted(capture.diagnostics.counts.items())),
            written=sum(file.written for file in files),
        )


def _opened(recipe: Recipe, item: Item, host: Host) -> Capture:
    name = item.file
    if not is_address(name):
        name = str(Path(recipe.folder) / name)
    budget = Budget(limits_of(recipe.options))
    budget.memory_factor = MEMORY_FACTOR
    return host.open(name, format=recipe.format, options=recipe.options, others=True, budget=budget)


def _parts(capture: Capture, table: str, recipe: Recipe) -> Iterator[Table]:
    """Yield the rows of a table: at once if the capture is small, else in batches."""
    if capture.source.size <= WHOLE_BYTES and not recipe.options.get("max_memory"):
        return iter([capture.table(table)])
    return capture.batches(table, ROWS)


class _TableFile:
    """The Parquet file of a table of a capture, created with the first rows."""

    def __init__(
        self, store: Store, item: Item, table: str, sinks: contextlib.ExitStack, budget: Budget
    ) -> None:
        self.rows = 0
        self.written = 0
        self._store = store
        self._item = item
        self._table = table
        self._sinks = sinks
        self._budget = budget
        self._writer: Any = None
        self.sink: Sink | None = None

    def write(self, part: Table) -> None:
        """Append rows."""
        if not len(part):
            return
        from fxframework.exporters.columnar import parquet_writer

        table = _with_capture(part.to_arrow().select(part.columns), self._item)
        if self._writer is None:
            name = self._store.parquet(self._table, self._item.capture)
            self.sink = self._sinks.enter_context(self._store.sink(name))
            self.sink.budget = self._budget
            self._writer = parquet_writer(self.sink, table.schema, plain=True)
        self._writer.write_table(table.cast(self._writer.schema), row_group_size=ROWS)
        self.rows += len(part)

    def close(self) -> None:
        """Complete the file; it gets its name when all files of the capture are complete."""
        if self._writer is not None and self.sink is not None:
            self._writer.close()
            self.written = self.sink.written


def _with_capture(table: pa.Table, item: Item) -> pa.Table:
    """Return a table with the columns of its capture in front, and uniform string types."""
    import numpy as np
    import pyarrow as pa

    # Each is a dictionary of one value, of which every row has index 0.
    indices = pa.array(np.zeros(table.num_rows, np.int32))
    columns = [
        pa.DictionaryArray.from_arrays(indices, pa.array([value]))
        for value in (item.capture, readable_name(item.file), readable_name(item.host))
    ]
    columns += [_plain(column) for column in table.columns]
    return pa.table(columns, names=[*COLUMNS, *table.column_names])


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a dictionary of strings to the type that all files share."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return column.cast(pa.dictionary(pa.int32(), pa.string()))
    return column
