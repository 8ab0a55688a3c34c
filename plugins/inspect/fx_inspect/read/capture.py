"""Capture: opens a VMO. Records come from ``decoder.py``, tables from ``batches.py``.

``fxframework.kit.scanned`` contains the parts common to all readers. Columns are made at first use.
If links are followed, their trees are read in the same way and joined (``links.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.read import tables
from fx_inspect.read.batches import TreeRows
from fx_inspect.read.first_pass import RawColumns
from fx_inspect.read.links import JoinedRows, join_linked_trees
from fx_inspect.rules import RULES
from fxframework.errors import UsageError
from fxframework.io.source import RELEASED, Source
from fxframework.kernels.rows import Notes
from fxframework.kit.scanned import Batch, FirstPass, ScannedCapture
from fxframework.model.capture import Capture, Entry, OpenRequest, Record
from fxframework.model.schema import TableSchema
from fxframework.model.table import Table

__all__ = ["InspectCapture"]

LISTED = 10
"""Most names in a summary."""
LONGEST_LISTED = 256
"""Most bytes of such a name."""
STATISTICS = b"fuchsia.inspect.Stats"
"""The node with a component's statistics of its VMO."""
FAILURES = "failed_allocations"


def _check_links(options: Mapping[str, Any], path: str) -> None:
    """Check the options for links. Raises UsageError for a missing folder or negative depth."""
    folder, depth = options.get("links"), options.get("link_depth", 0)
    if isinstance(folder, str) and folder and not Path(folder).is_dir():
        there = Path(folder).exists()
        raise UsageError(
            f"links={folder!r} is {'not a folder' if there else 'a folder that does not exist'}",
            path=path,
            remedy="give the folder with the trees that links name",
        )
    if depth < 0:
        raise UsageError(
            f"link_depth={depth} is negative",
            path=path,
            remedy="give the number of links to follow one after another, 0 or more",
        )


class InspectPass(FirstPass[TreeRows | JoinedRows]):
    """One VMO, read once."""

    def __init__(self, raw: RawColumns, max_memory: int) -> None:
        self.raw = raw
        self.tree = TreeRows(raw, max_memory)
        self.whole: TreeRows | JoinedRows = self.tree

    @property
    def notes(self) -> Sequence[Notes]:
        """The findings of the kernels."""
        return (self.raw.notes,)

    @property
    def records(self) -> int:
        """Number of blocks and of stretches between them."""
        return int(self.raw.scan.count)

    @property
    def kinds(self) -> dict[str, int]:
        """Number of records of each kind."""
        return self.raw.record_kinds()

    @property
    def rows(self) -> dict[str, int]:
        """Number of rows of each table."""
        return {name: self.whole.count(name) for name in tables.SCHEMAS}


class InspectCapture(ScannedCapture[InspectPass, TreeRows | JoinedRows]):
    """A capture of one VMO, or of a copy of one."""

    format = "inspect"
    rules = RULES
    schemas: ClassVar[Mapping[str, TableSchema]] = tables.SCHEMAS

    def __init__(self, source: Source, request: OpenRequest) -> None:
        _check_links(request.options, source.name)
        super().__init__(source, request)

    def records(self) -> Iterator[Record]:
        """Return every block, decoded one at a time by ``fx_inspect.read.decoder``."""
        from fx_inspect.read.decoder import RecordDecoder

        return RecordDecoder(
            diagnostics=self.record_diagnostics, limits=self.request.limits
        ).records(self.source.data)

    def records_json(self) -> Iterator[bytes]:
        """Return the same records as JSON lines, written many at a time (``lines``)."""
        from fx_inspect.read.decoder import RecordDecoder
        from fx_inspect.read.lines import LineWriter

        decoder = RecordDecoder(diagnostics=self.record_diagnostics, limits=self.request.limits)
        released = 0
        for end, lines in LineWriter(decoder.begin(self.source.data)).lines():
            self.check_budget()
            yield lines
            if end - released >= RELEASED:
                self.source.passed(released, end)
                released = end

    # --- The pass over the whole file -------------------------------------------------------------

    def _run_pass(self, *, whole: bool) -> InspectPass:  # noqa: ARG002 (a tree is always whole)
        limits = self.request.limits

        def reached(position: int) -> None:
            self.source.passed(0, 0, position)

        raw = RawColumns(self.source.data, self.strings, limits, reached)
        return InspectPass(raw, limits.max_memory)

    def _report(self, passed: InspectPass) -> None:
        super()._report(passed)
        tree = passed.tree
        if tree.rows_of_links.size and self.request.options.get("links"):
            passed.whole = join_linked_trees(tree, self.request, self.diagnostics)
        elif tree.rows_of_links.size:
            first = wire.UNIT * int(passed.raw.link_units(tree.rows_of_links).min())
            self.diagnostics.add(rules.LINKS_NOT_FOLLOWED, first, value=tree.rows_of_links.size)

    def _parts(self, passed: InspectPass) -> Iterator[TreeRows | JoinedRows]:
        yield passed.whole

    def _batch(self, name: str, passed: InspectPass, part: TreeRows | JoinedRows) -> Batch:
        del passed
        return Batch(0, *part.rows(name, 0, part.count(name)))

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        tree = self.first_pass().whole
        count, at = tree.count(name), 0
        while at < count:
            stop = tree.stop(name, at, min(at + rows, count))
            yield self._table_of(name, Batch(at, *tree.rows(name, at, stop)))
            at = stop

    # --- Selectors, entries and facts -------------------------------------------------------------

    def choose(self, selectors: Sequence[str]) -> Capture:
        """Return the parts of the capture that any of these selectors selects.

        Raises UsageError for an invalid selector.
        """
        from fx_inspect.read.selectors import choose

        return choose(self, selectors)

    def entries(self) -> Iterator[Entry]:
        """Yield nodes, properties and links by path, for the comparison of two VMOs."""
        from fx_inspect.read.entries import entries

        return entries(self, distinct=True)

    def _facts(self, passed: InspectPass) -> dict[str, Any]:
        raw = passed.raw
        header = raw.header()
        facts: dict[str, Any] = {"layout": "version 0" if raw.legacy else "versions 1 and 2"}
        if header is not None:
            facts |= header
        facts |= raw.heap()
        facts["names"] = self._names(raw)
        facts |= self._statistics()
        return facts

    def _names(self, raw: RawColumns) -> list[dict[str, Any]]:
        """Return the longest strings among names, contents of links, and slots."""
        pooled = np.flatnonzero(raw.uses)
        longest = pooled[np.argsort(-raw.string_lengths[pooled], kind="stable")][:LISTED]
        return [
            {"name": self._listed(code), "nbytes": nbytes, "uses": uses}
            for code, nbytes, uses in zip(
                raw.string_codes[longest].tolist(),
                raw.string_lengths[longest].tolist(),
                raw.uses[longest].tolist(),
                strict=True,
            )
        ]

    def _listed(self, code: int) -> str:
        data = self.strings.bytes_of(code)
        shown = data[:LONGEST_LISTED].decode("utf-8", "replace")
        return shown if len(data) <= LONGEST_LISTED else f"{shown}…"

    def _statistics(self) -> dict[str, Any]:
        """Return the component's own statistics of its VMO, if it has some."""
        code = self.strings.code(STATISTICS)
        if code < 0:
            return {}
        nodes = self.table("nodes")
        chosen = np.flatnonzero((nodes.array("name") == code) & (nodes.array("parent") == 0))
        if not chosen.size:
            return {}
        properties = self.table("properties")
        node = nodes.array("id")[chosen[0]]
        rows = np.flatnonzero(properties.array("node") == node)
        found: dict[str, int] = {}
        for row in rows.tolist():
            type = int(properties.array("type")[row])
            if type in (tables.INT, tables.UINT):
                column = properties.array("int" if type == tables.INT else "uint")
                name = self.strings.bytes_of(int(properties.array("name")[row]))
                found[name.decode("utf-8", "replace")] = int(column[row])
        facts: dict[str, Any] = {"statistics": found}
        if FAILURES in found:
            facts["allocation_failures"] = found[FAILURES]
        return facts
