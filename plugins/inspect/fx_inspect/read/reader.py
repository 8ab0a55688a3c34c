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
from numpy.typing import NDArray

from fx_inspect import layout
from fx_inspect.read import scan as k
from fx_inspect.read import tables
from fx_inspect.read.columns import Decoder
from fx_inspect.rules import RULES
from fxframework.errors import LimitError, UsageError
from fxframework.io import arena
from fxframework.io.source import Source
from fxframework.io.words import U64_MAX
from fxframework.model.capture import Capture, Entry, OpenRequest, Record, Summary
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.schema import TableSchema
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table

if TYPE_CHECKING:
    from fx_inspect.read.links import Joined

__all__ = ["InspectCapture", "Tree", "open_inspect", "paths"]

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Columns = dict[str, Any]
TEXT_AT_ONCE = 64 << 20
"""Bytes of values in a batch, however many rows that is."""
COST = 10
"""Bytes of values that a byte of the file may make in a whole table, where values share strings."""
LONGEST_PATH = 1 << 12
PATHS = 1
SPARE_PATHS = 1 << 18
"""Bytes of the longest path, and of all: so many a byte of the file, and so many more."""
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
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        "nodes": tables.NODES,
        "properties": tables.PROPERTIES,
        "inspect_slots": tables.INSPECT_SLOTS,
        "inspect_links": tables.INSPECT_LINKS,
    }

    def __init__(self, source: Source, request: OpenRequest) -> None:
        _check_links(request.options, source.name)
        diagnostics = request.diagnostics(RULES, source)
        super().__init__(source, request, diagnostics)
        if not source.size:
            diagnostics.add("FXF0102", offset=0)
        self._read: Decoder | None = None
        self._trees: Tree | Joined | None = None
        self._tables: dict[str, Table] = {}

    # --- Records ---------------------------------------------------------------------------------

    def records(self) -> Iterator[Record]:
        """Every block, as ``fx_inspect.read.records`` decodes them one at a time."""
        from fx_inspect.read.records import RecordDecoder

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

    def _tree(self) -> Tree | Joined:
        if self._trees is None:
            tree = Tree(self._decoder(), self.request.limits.max_memory)
            self._trees = tree
            links = tree.rows_of_links
            if links.size and self.request.options.get("links"):
                from fx_inspect.read.links import followed

                self._trees = followed(self, tree)
            elif links.size:
                first = layout.UNIT * int(tree.links.unit.min())
                self.diagnostics.add("FXI0605", f"there are {links.size}", offset=first)
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
        from fx_inspect.export.presentation import entries

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


class Tree:
    """The rows of the tables of one VMO, made of its raw columns a stretch at a time."""

    def __init__(self, decoder: Decoder, max_memory: int) -> None:
        self.decoder = decoder
        self.order = decoder.order
        self.values = decoder.values
        self.links = decoder.links
        self.rows_of_values = decoder.value_rows
        self.rows_of_links = decoder.link_rows
        self.text_bound = max_memory or max(COST * decoder.nbytes, TEXT_AT_ONCE)
        types = self.values.type[self.rows_of_values]
        lengths = self.values.length[self.rows_of_values].astype(np.int64)
        arrays = types >= tables.INT_ARRAY
        self.first_slot = _sums(lengths * arrays)
        """First slot of each property; of what is no array, that of the next one."""
        self.first_text = _sums(lengths * ~arrays)
        """First byte of each property's value among those of all."""
        self._paths: I32 | None = None

    def count(self, name: str) -> int:
        """Rows of a table."""
        if name == "nodes":
            # No bytes have no root either.
            return int(self.order.nodes.size) if self.decoder.nbytes else 0
        if name == "properties":
            return int(self.rows_of_values.size)
        return int(self.first_slot[-1]) if name == "inspect_slots" else int(self.rows_of_links.size)

    def stop(self, name: str, at: int, stop: int) -> int:
        """Where a batch from row ``at`` to ``stop`` ends, so that its values are not too many."""
        if name != "properties":
            return stop
        fitting = np.searchsorted(self.first_text, self.first_text[at] + TEXT_AT_ONCE, "right") - 1
        return min(stop, max(at + 1, int(fitting)))

    def rows(self, name: str, at: int, stop: int) -> tuple[int, Columns]:
        """The rows from ``at`` to ``stop`` of a table: how many, and their columns but `row`."""
        make = {
            "nodes": self._nodes,
            "properties": self._properties,
            "inspect_slots": self._slots,
            "inspect_links": self._links,
        }[name]
        return stop - at, make(at, stop)

    def _nodes(self, at: int, stop: int) -> Columns:
        raw, order = self.decoder.nodes, self.order
        nodes = order.nodes[at:stop]
        parents = raw.parent[nodes]

        def links() -> I32:
            owners = order.place[self.links.node[self.rows_of_links]]
            return np.bincount(owners, minlength=order.nodes.size)[at:stop].astype(np.int32)

        return {
            "offset": lambda: layout.UNIT * raw.unit[nodes].astype(np.int64),
            "id": lambda: np.arange(at, stop, dtype=np.int32),
            "parent": lambda: np.where(parents < 0, -1, order.place[parents]).astype(np.int32),
            "name": lambda: self.node_names()[at:stop],
            "path": lambda: self.paths()[at:stop],
            "links": links,
            "inspect_block": lambda: raw.unit[nodes].view(np.uint32),
        }

    def node_names(self) -> I32:
        """Codes of the names of all nodes, by id."""
        nodes = self.order.nodes
        names = np.empty(nodes.size, np.int32)
        names[:1] = self.decoder.pool.intern(b"root")
        names[1:] = self.decoder.strings.code[self.decoder.nodes.name[nodes[1:]]]
        return names

    def paths(self) -> I32:
        """Codes of the paths of all nodes, by id."""
        if self._paths is None:
            parents = self.order.place[self.decoder.nodes.parent[self.order.nodes]]
            parents[:1] = -1
            self._paths = paths(self.decoder.pool, self.decoder.nbytes, self.node_names(), parents)
        return self._paths

    def _properties(self, at: int, stop: int) -> Columns:
        values, decoder = self.values, self.decoder
        rows = self.rows_of_values[at:stop]
        types = values.type[rows]

        def numbers(*wanted: int) -> I64:
            bits = sum(1 << type for type in wanted)
            if not int(decoder.scalars[k.SEEN_TYPES]) & bits:
                return np.broadcast_to(np.int64(0), rows.size)
            out = arena.empty(rows.size, np.int64)
            k.pick.for_size(decoder.nbytes)(values.value, values.type, rows, bits, out)
            return out

        def arrays() -> I64:
            out = np.empty((rows.size, 2), np.int64)
            out[:, 0] = self.first_slot[at:stop]
            out[:, 1] = np.diff(self.first_slot[at : stop + 1])
            out[types < tables.INT_ARRAY, 0] = 0
            return out

        def text() -> TextColumn:
            offsets = self.first_text[at : stop + 1] - self.first_text[at]
            total = int(offsets[-1])
            if total > self.text_bound:
                raise LimitError(
                    f"the values of {rows.size} properties, many of which share a string, take "
                    f"{total} bytes together",
                    remedy="take the table in batches, or raise it with -o max_memory=BYTES",
                )
            data = arena.empty(total, np.uint8)
            k.copy_texts.for_size(max(total, decoder.nbytes))(
                decoder.words, decoder.data, decoder.lay, values.source[rows], offsets, data
            )
            return TextColumn(offsets, data)

        return {
            "offset": lambda: layout.UNIT * values.unit[rows].astype(np.int64),
            "node": lambda: self.order.place[values.node[rows]],
            "name": lambda: decoder.strings.code[values.name[rows]],
            "type": types,
            "int": lambda: numbers(tables.INT, tables.BOOL),
            "uint": lambda: numbers(tables.UINT).view(np.uint64),
            "float": lambda: numbers(tables.DOUBLE).view(np.float64),
            "text": text,
            "array": arrays,
            "inspect_block": lambda: values.unit[rows].view(np.uint32),
            "inspect_format": lambda: values.format[rows],
        }

    def _slots(self, at: int, stop: int) -> Columns:
        decoder, values = self.decoder, self.values
        first = int(np.searchsorted(self.first_slot, at, "right")) - 1
        last = int(np.searchsorted(self.first_slot, stop, "left"))
        rows = self.rows_of_values[first:last]
        starts = self.first_slot[first : last + 1]
        types, units = values.type[rows], values.unit[rows]
        made: list[NDArray[Any]] = []

        def places() -> list[NDArray[Any]]:
            if not made:
                made.extend((arena.empty(stop - at, np.int64), arena.empty(stop - at, np.int32)))
                k.slot_places.for_size(decoder.nbytes)(starts, first, at, stop, *made)
            return made

        def offsets() -> I64:
            out = arena.empty(stop - at, np.int64)
            k.slot_offsets.for_size(decoder.nbytes)(units, starts, at, stop, out)
            return out

        def numbers(wanted: int) -> I64:
            if not decoder.scalars[k.SEEN_TYPES] >> wanted & 1:
                return np.broadcast_to(np.int64(0), stop - at)
            out = arena.empty(stop - at, np.int64)
            k.slot_numbers.for_size(decoder.nbytes)(
                decoder.words, units, types, starts, wanted, at, out
            )
            return out

        def codes() -> I32:
            if not decoder.scalars[k.SEEN_TYPES] >> tables.STRING_ARRAY & 1:
                return np.broadcast_to(np.int32(-1), stop - at)
            out = arena.empty(stop - at, np.int32)
            k.slot_codes.for_size(decoder.nbytes)(
                decoder.words, units, types, starts, at, decoder.kinds, decoder.strings.code, out
            )  # fmt: skip
            return out

        return {
            "offset": offsets,
            "parent": lambda: places()[0],
            "slot": lambda: places()[1],
            "int": lambda: numbers(tables.INT_ARRAY),
            "uint": lambda: numbers(tables.UINT_ARRAY).view(np.uint64),
            "float": lambda: numbers(tables.DOUBLE_ARRAY).view(np.float64),
            "str": codes,
        }

    def _links(self, at: int, stop: int) -> Columns:
        links, strings = self.links, self.decoder.strings
        rows = self.rows_of_links[at:stop]
        state = self.decoder.pool.intern(b"not expanded")
        return {
            "offset": lambda: layout.UNIT * links.unit[rows].astype(np.int64),
            "node": lambda: self.order.place[links.node[rows]],
            "name": lambda: strings.code[links.name[rows]],
            "content": lambda: strings.code[links.content[rows]],
            "disposition": lambda: links.disposition[rows],
            "inspect_block": lambda: links.unit[rows].view(np.uint32),
            "state": lambda: np.broadcast_to(np.int32(state), rows.size),
        }


def _sums(sizes: I64) -> I64:
    """Sums of the sizes before each, and of all."""
    out = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out


def paths(pool: StringPool, size: int, names: I32, parents: I32) -> I32:
    """Codes of the paths of nodes in the order of the tree; -1 where they take too much room.

    ``names`` are codes, ``parents`` ids; ``size`` is that of the file.
    """
    lengths = arena.empty(names.size, np.int64)
    budget = PATHS * size + SPARE_PATHS
    measure = k.measure_paths.for_size(size)
    words = int(measure(names, parents, pool.arrays, LONGEST_PATH, budget, lengths))
    arrays = pool.reserve(int((lengths >= 0).sum()), words)
    scratch = np.zeros(LONGEST_PATH // 8 + 2, np.int64)
    out = arena.empty(names.size, np.int32)
    k.name_paths.for_size(size)(
        names, parents, lengths, arrays, scratch, scratch.view(np.uint8),
        arrays.words.view(np.uint8), out,
    )  # fmt: skip
    return out
