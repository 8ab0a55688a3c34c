"""Exporters that are generators: ``exporter`` makes a descriptor of a function over batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fxframework.errors import PluginError, WriteRefusedError
from fxframework.registry import EVERY_CAPTURE, Exporter

if TYPE_CHECKING:
    from fxframework.io.sink import Sink
    from fxframework.model.capture import Capture
    from fxframework.model.table import Table

Batches = Callable[..., Iterable[str | bytes]]
LOCATING = frozenset({"row", "offset"})
"""Columns that only say where a row is."""
REMEDY = "its author lets it yield texts or bytes for what it takes: `for batch in batches: …`"


def exporter(
    name: str, *, accepts: Iterable[str], writes: Iterable[str] = (), **fields: Any
) -> Callable[[Batches], Exporter]:
    r"""Return a decorator that makes an exporter of a generator.

    ``function(batches, options)`` gets the batches (``Table``) of the tables in ``accepts``, one
    table after another, and yields texts, written as UTF-8, or bytes. ``writes`` names the columns
    that it writes; values of others are counted as left out. A capture without rows is refused,
    and nothing of it written, not even a header that is yielded before the first batch is taken;
    several captures are written one after the other. ``fields`` are those of ``Exporter``, such as
    ``suffixes`` and ``options``. ::

        @exporter("names", accepts={"instants"}, writes={"name"})
        def names(batches, options):
            for batch in batches:
                yield "".join(f"{name}\n" for name in batch.texts("name"))

    Register it as any exporter: ``fx_exporters`` returns ``names``. Raises PluginError if
    ``accepts`` or ``writes`` is one string.
    """
    if isinstance(accepts, str) or isinstance(writes, str):
        raise PluginError(
            f"exporter {name!r}: accepts and writes are sets of names, not one string",
            remedy='write accepts={"instants"}; a class may accept the captures of one format',
        )
    tables = frozenset(accepts)
    columns = frozenset(writes)

    def decorate(function: Batches) -> Exporter:
        def open_(sink: Sink, options: Mapping[str, Any]) -> Generated:
            """Open a session."""
            return Generated(name, function, tables, columns | LOCATING, sink, options)

        return Exporter(name=name, accepts=tables, open=open_, writes=columns, **fields)

    return decorate


class YieldError(PluginError, TypeError):
    """A function is not a generator as an exporter needs one."""

    def __init__(self, exporter: str, reason: str) -> None:
        super().__init__(f"exporter {exporter!r}: {reason}", remedy=REMEDY)


class Generated:
    """A session of an exporter that is a generator."""

    def __init__(
        self,
        name: str,
        function: Batches,
        tables: frozenset[str],
        written: frozenset[str],
        sink: Sink,
        options: Mapping[str, Any],
    ) -> None:
        self._name = name
        self._function = function
        self._tables = tables
        self._written = written
        self._sink = sink
        self._options = options
        self._dropped: Counter[str] = Counter()
        """Values left out, by table and column."""
        self._rows = 0
        """Rows of the current capture that the generator has taken."""

    def write(self, capture: Capture) -> None:
        """Write what the generator yields.

        Raises WriteRefusedError for a capture without rows in the tables, and YieldError for a
        generator that does not take them, or yields something else.
        """
        self._rows = 0
        held: list[bytes] = []  # a header is written with the first row, and not without one
        for chunk in self._chunks(capture):
            held.append(chunk)
            if self._rows or self._tables == EVERY_CAPTURE:
                self._sink.write(b"".join(held))
                held.clear()
        if not self._rows and self._tables != EVERY_CAPTURE:
            if any(len(batch) for batch in self._batches(capture)):
                raise YieldError(self._name, "the function takes no batches, though there are rows")
            raise WriteRefusedError(
                f"no rows in {', '.join(sorted(self._tables))}",
                path=capture.name,
                remedy="`fxf info` lists its tables",
            )
        self._sink.write(b"".join(held))

    def _chunks(self, capture: Capture) -> Iterator[bytes]:
        """Yield the bytes of what the generator yields. Raises YieldError for anything else."""
        try:
            chunks = self._function(self._batches(capture), self._options)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            raise YieldError(self._name, f"it is called with two arguments, but {error}") from error
        if not isinstance(chunks, Iterable):
            raise YieldError(self._name, f"the function returns {chunks!r}, and yields nothing")
        for chunk in chunks:
            if not isinstance(chunk, str | bytes | bytearray | memoryview):
                raise YieldError(
                    self._name, f"the generator yields {chunk!r}, not a string or bytes"
                )
            if not isinstance(chunk, str):
                yield bytes(chunk)
                continue
            try:
                yield chunk.encode(errors="surrogateescape")
            except UnicodeEncodeError as error:
                raise YieldError(self._name, f"the generator yields no Unicode: {error}") from error

    def _batches(self, capture: Capture) -> Iterator[Table]:
        """Yield the batches for the generator; count their rows, and the values it leaves out."""
        from fxframework.kit.omitted import omitted_values

        for table in (name for name in capture.tables if name in self._tables):
            for batch in capture.batches(table):
                self._rows += len(batch)
                for column in batch.columns:
                    if column not in self._written:
                        self._dropped[f"{table}.{column}"] += omitted_values(batch, column)
                yield batch

    def close(self) -> Mapping[str, int]:
        """Return the counts of values that were left out, by table and column."""
        return +self._dropped  # without the zeros
