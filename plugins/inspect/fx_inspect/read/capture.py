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
from fx_inspect.read.blocks import Blocks
from fx_inspect.read.links import JoinedRows, join_linked_trees
from fx_inspect.read.vmo import Vmo
from fx_inspect.rules import RULES
from fxframework.errors import UsageError
from fxframework.io.source import RELEASED, Source
from fxframework.kit.scanned import Batch, FirstPass, Notes, ScannedCapture
from fxframework.model.capture import Capture, Entry, OpenRequest, Record
from fxframework.model.schema import TableSchema
from fxframework.model.table import Table

LISTED = 10
"""Most names in a summary."""
LONGEST_LISTED = 256
"""Most bytes of such a name."""
STATISTICS = b"fuchsia.inspect.Stats"
"""The node with a component's statistics of its VMO."""
FAILURES = "failed_allocations"


def _check_links(options: Mapping[str, Any], path: str) -> None:
    """Check the options for links. Raises UsageError for a missing folder or negative depth."""
    folder = options.get("links")
    depth = options.get("link_depth", 0)
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

    def __init__(self, vmo: Vmo, max_memory: int) -> None:
        self.vmo = vmo
        self.tree = TreeRows(vmo, max_memory)
        self.whole: TreeRows | JoinedRows = self.tree

    @property
    def notes(self) -> Sequence[Notes]:
        """What is wrong with the file."""
        return (self.vmo.findings,)

    @property
    def records(self) -> int:
        """Number of blocks and of stretches between them."""
        return self.vmo.count

    @property
    def kinds(self) -> dict[str, int]:
        """Number of records of each kind."""
        return self.vmo.record_kinds()

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
        from fx_inspect.read.lines import LineWriter

        blocks = Blocks(self.source.data, self.request.limits)
        released = 0
        for end, lines in LineWriter(blocks, self.record_diagnostics).lines():
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

        vmo = Vmo(self.source.data, self.strings, limits, reached)
        return InspectPass(vmo, limits.max_memory)

    def _report(self, passed: InspectPass) -> None:
        super()._report(passed)
        tree = passed.tree
        if tree.rows_of_links.size and self.request.options.get("links"):
            passed.whole = join_linked_trees(tree, self.request, self.diagnostics)
        elif tree.rows_of_links.size:
            units = tree.values.units[tree.rows_of_links]
            first = wire.UNIT * int(units.min())
            self.diagnostics.add(rules.LINKS_NOT_FOLLOWED, first, value=tree.rows_of_links.size)

    def _parts(self, passed: InspectPass) -> Iterator[TreeRows | JoinedRows]:
        yield passed.whole

    def _batch(self, name: str, passed: InspectPass, part: TreeRows | JoinedRows) -> Batch:
        del passed
        return Batch(0, *part.rows(name, 0, part.count(name)))

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        tree = self.first_pass().whole
        count = tree.count(name)
        start = 0
        while start < count:
            stop = tree.stop(name, start, min(start + rows, count))
            batch_rows, columns = tree.rows(name, start, stop)
            yield self._table_of(name, Batch(start, batch_rows, columns))
            start = stop

    # --- Selectors, entries and facts -------------------------------------------------------------

    def choose(self, selectors: Sequence[str]) -> Capture:
        """Return the parts of the capture that any of these selectors selects.

        Raises UsageError for an invalid selector.
        """
        from fx_inspect.read.selectors import choose

        return choose(self, selectors)

    def tree(self) -> dict[str, Any]:
        """Return the tree as plain values: what the root has, by name.

        A node is a dictionary, an array a list, a histogram a dictionary of its parameters and
        ``counts``. Strings that are not UTF-8 are bytes. A name that occurs again has ``#2`` and so
        on behind it.
        """
        from fx_inspect.read.entries import plain_tree

        return plain_tree(self)

    def value(self, selector: str) -> Any:
        """Return the plain value of the only property that a selector selects (``tree``).

        Raises UsageError for an invalid selector, and for one of no property or of several.
        """
        from fx_inspect.read.entries import plain_value

        return plain_value(self, selector)

    def entries(self) -> Iterator[Entry]:
        """Yield nodes, properties and links by path, for the comparison of two VMOs."""
        from fx_inspect.read.entries import entries

        return entries(self, distinct=True)

    def _facts(self, passed: InspectPass) -> dict[str, Any]:
        vmo = passed.vmo
        header = vmo.header_facts()
        facts: dict[str, Any] = {"layout": "version 0" if vmo.legacy else "versions 1 and 2"}
        if header is not None:
            facts |= header
        facts |= vmo.heap()
        facts["names"] = self._names(vmo)
        facts |= self._statistics()
        return facts

    def _names(self, vmo: Vmo) -> list[dict[str, Any]]:
        """Return the longest strings among names, contents of links, and slots."""
        uses = vmo.values.uses
        lengths = vmo.texts.lengths
        pooled = np.flatnonzero(uses)
        longest_first = np.argsort(-lengths[pooled], kind="stable")
        longest = pooled[longest_first[:LISTED]]
        columns = [column[longest] for column in (vmo.texts.codes, lengths, uses)]
        return [
            {"name": self._listed(code), "nbytes": nbytes, "uses": uses_of_name}
            for code, nbytes, uses_of_name in np.stack(columns, axis=1).tolist()
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
        is_below_root = nodes.array("parent") == 0
        chosen = np.flatnonzero(is_below_root & (nodes.array("name") == code))
        if not chosen.size:
            return {}
        properties = self.table("properties")
        is_of_node = properties.array("node") == nodes.array("id")[chosen[0]]
        statistics: dict[str, int] = {}
        rows = properties.select(is_of_node).tuples("name", "type", "int", "uint")
        for code, type, signed, unsigned in rows:
            if type in (tables.INT, tables.UINT):
                name = self.strings.bytes_of(code).decode("utf-8", "replace")
                statistics[name] = signed if type == tables.INT else unsigned
        facts: dict[str, Any] = {"statistics": statistics}
        if FAILURES in statistics:
            facts["allocation_failures"] = statistics[FAILURES]
        return facts
