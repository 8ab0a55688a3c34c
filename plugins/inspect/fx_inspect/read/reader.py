"""The reader: bytes of a VMO to a Capture. Records come from ``records.py``, tables from kernels.

One pass over the file gives its raw columns, its findings and what the summary says; each column
of a table is made when it is first asked for. Where links are followed, the trees that they lead
to are read the same way, and joined to this one (``linking.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fx_inspect import layout
from fx_inspect.read import scan as k
from fx_inspect.read import tables
from fx_inspect.read.columns import Decoder
from fx_inspect.read.rows import TreeRows
from fx_inspect.rules import RULES
from fxframework.errors import UsageError
from fxframework.io.source import Source
from fxframework.io.words import U64_MAX
from fxframework.model.capture import Capture, Entry, OpenRequest, Record, Summary
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.schema import TableSchema
from fxframework.model.table import Table

if TYPE_CHECKING:
    from fx_inspect.read.links import JoinedRows

__all__ = ["InspectCapture", "open_inspect"]

Columns = dict[str, Any]
LISTED = 10
"""Names that a summary lists."""
STATISTICS = b"fuchsia.inspect.Stats"
"""The node in which a component says how its VMO is doing."""
FAILURES = "failed_allocations"


def open_inspect(source: Source, request: OpenRequest) -> InspectCapture:
    """Open a VMO. Nothing is read yet."""
    return InspectCapture(source, request)


def _check_links(options: Mapping[str, Any], path: str) -> None:
    """Refuse what no link could be followed with."""
    folder, depth = options.get("links"), options.get("link_depth", 0)
    if isinstance(folder, str) and folder and not Path(folder).is_dir():
        raise UsageError(
            f"links is {folder!r}, which is no folder",
            path=path,
            remedy="name the folder with the trees that links lead to",
        )
    if depth < 0:
        raise UsageError(
            f"link_depth is {depth}",
            path=path,
            remedy="give how many links are followed one after another, 0 or more",
        )


class InspectCapture(Capture):
    """One VMO, or a copy of one (documents 000 and 001)."""

    format = "inspect"
    schemas: ClassVar[Mapping[str, TableSchema]] = tables.SCHEMAS

    def __init__(self, source: Source, request: OpenRequest) -> None:
        _check_links(request.options, source.name)
        diagnostics = request.diagnostics(RULES, source)
        super().__init__(source, request, diagnostics)
        if not source.size:
            diagnostics.add("FXF0102", offset=0)
        self._read: Decoder | None = None
        self._trees: TreeRows | JoinedRows | None = None
        self._tables: dict[str, Table] = {}

    # --- Records ---------------------------------------------------------------------------------

    def records(self) -> Iterator[Record]:
        """Every block, as ``fx_inspect.read.records`` decodes them one at a time."""
        from fx_inspect.read.decoder import RecordDecoder

        # Findings are reported once: by the tables' pass where it has run, else from here.
        fresh = not self.diagnostics.has_any(RULES)
        decoder = RecordDecoder(
            diagnostics=self.diagnostics if fresh else None,
            limits=self.request.limits,
            options=self.request.options,
        )
        return decoder.records(self.source.data)

    # --- The pass over the whole file -------------------------------------------------------------

    def scan(self) -> None:
        """Read all of it, so that ``diagnostics`` is complete."""
        self._tree()

    def _decoder(self) -> Decoder:
        if self._read is None:
            self._read = Decoder(self.source.data, self.strings, self.request.limits)
            # What `records()` found so far is found again.
            self.diagnostics.forget(RULES)
            report(self._read, self.diagnostics)
        return self._read

    def _tree(self) -> TreeRows | JoinedRows:
        if self._trees is None:
            tree = TreeRows(self._decoder(), self.request.limits.max_memory)
            self._trees = tree
            links = tree.rows_of_links
            if links.size and self.request.options.get("links"):
                from fx_inspect.read.links import join_linked_trees

                self._trees = join_linked_trees(tree, self.request, self.diagnostics)
            elif links.size:
                first = layout.UNIT * int(tree.links.unit.min())
                self.diagnostics.add("FXI0605", f"{links.size} links", offset=first)
        return self._trees

    def _table(self, name: str) -> Table:
        table = self._tables.get(name)
        if table is None:
            tree = self._tree()
            table = self._tables[name] = self._made(name, *tree.rows(name, 0, tree.count(name)), 0)
        return table

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        tree = self._tree()
        count, at = tree.count(name), 0
        while at < count:
            stop = tree.stop(name, at, min(at + rows, count))
            yield self._made(name, *tree.rows(name, at, stop), at)
            at = stop

    def _made(self, name: str, rows: int, columns: Columns, first: int) -> Table:
        columns["row"] = lambda: np.arange(first, first + rows, dtype=np.int64)
        return Table(self.schemas[name], rows, columns, self.strings)

    def choose(self, selectors: Sequence[str]) -> Capture:
        """The same capture with what any of these selectors chooses (notes §3.2).

        Raises UsageError for a selector that is none.
        """
        from fx_inspect.read.selectors import choose

        return choose(self, selectors)

    def entries(self) -> Iterator[Entry]:
        """Nodes, properties and links by their paths: what two VMOs are compared by."""
        from fx_inspect.read.entries import entries

        return entries(self)

    # --- Summary ----------------------------------------------------------------------------------

    def summary(self) -> Summary:
        """What the VMO is, how its heap is used, and how many rows the tables have."""
        decoder, tree = self._decoder(), self._tree()
        return Summary(
            records=int(decoder.scalars[k.N_BLOCKS]),
            kinds=decoder.record_kinds(),
            start_ns=None,
            end_ns=None,
            facts=self._facts(decoder),
            rows={name: tree.count(name) for name in self.schemas},
        )

    def _facts(self, decoder: Decoder) -> dict[str, Any]:
        header = decoder.header()
        facts: dict[str, Any] = {"layout": "version 0" if decoder.legacy else "versions 1 and 2"}
        if header is not None:
            facts |= header
        facts |= decoder.heap()
        facts["names"] = self._names(decoder)
        facts |= self._statistics()
        return facts

    def _names(self, decoder: Decoder) -> list[dict[str, Any]]:
        """The longest strings that names, contents of links and slots refer to."""
        strings = decoder.strings
        pooled = np.flatnonzero(strings.uses)
        longest = pooled[np.argsort(-strings.length[pooled], kind="stable")][:LISTED]
        return [
            {
                "name": self.strings.bytes_of(code).decode("utf-8", "replace"),
                "nbytes": nbytes,
                "uses": uses,
            }
            for code, nbytes, uses in zip(
                strings.code[longest].tolist(),
                strings.length[longest].tolist(),
                strings.uses[longest].tolist(),
                strict=True,
            )
        ]

    def _statistics(self) -> dict[str, Any]:
        """What the component itself says of its VMO, where it does (notes §2, Full VMO)."""
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


def report(decoder: Decoder, diagnostics: Diagnostics) -> None:
    """Turn what the kernels noted into diagnostics."""
    notes = decoder.notes
    fields = k.FINDING_FIELDS
    listed = notes.findings[: fields * int(notes.counts[0])].reshape(-1, fields).tolist()
    shown: dict[int, int] = {}
    for number, offset, record, value in listed:
        shown[number] = shown.get(number, 0) + 1
        message = _MESSAGES.get(number, "").format(value=value, word=value & U64_MAX)
        code = f"FXI{number:04}"
        if message:
            message = f"{RULES[code].title}: {message}"
        diagnostics.add(code, message, offset=offset, record=None if record < 0 else record)
    for number in np.flatnonzero(notes.counts[2:]).tolist():
        count = int(notes.counts[number + 2])
        if count > shown.get(number, 0):
            # The limit leaves them out of the list; they count all the same.
            diagnostics.add(f"FXI{number:04}", times=count - shown.get(number, 0))


_MESSAGES = {
    2: "0x{word:08x}",
    3: "version {value}",
    7: "{value} bytes",
    8: "it says {value} bytes",
    9: "it says {value} bytes",
    10: "order {value}",
    11: "order {value}",
    12: "order {value}",
    13: "{value} bytes",
    14: "{value} bytes",
    101: "type {value}",
    103: "0x{word:x}",
    201: "index {value}",
    202: "index {value}",
    203: "{value} bytes",
    205: "index {value}",
    206: "index {value}",
    207: "{value} bytes are missing",
    208: "{value} bytes are left out",
    209: "format {value}",
    210: "index {value}",
    211: "type {value}",
    212: "{value} slots",
    214: "{value} slots",
    215: "format {value}",
    216: "index {value}",
    217: "disposition {value}",
    218: "index {value}",
    221: "its parent is {value}",
    226: "{value} bytes",
    301: "0x{word:016x}",
    304: "it says {value}",
    305: "it says {value}",
}
