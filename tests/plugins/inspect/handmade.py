"""Captures made by hand, of trees as `tree-json` has them: what exporters are given."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from fx_inspect import plugin
from fx_inspect.read import tables
from fx_inspect.read.entries import entries
from fx_inspect.read.selectors import choose
from fxframework.errors import Catalogue
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.capture import Capture, Entry, OpenRequest, Record, Summary
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.schema import TableSchema
from fxframework.model.table import Table
from fxframework.registry import ExportSession

OPTIONS = {
    "moniker": "",
    "name": "",
    "component_url": "",
    "timestamp": 0,
    "escrowed": False,
    "lossless": False,
    "selectors": False,
    "all": False,
}
TYPES = {name: number for number, name in tables.TYPES.items()}
PLACES = {"child": 0, "inline": 1, "?": 9}


class HandMade(Capture):
    """A capture of given tables."""

    format = "inspect"
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        "nodes": tables.NODES,
        "properties": tables.PROPERTIES,
        "inspect_slots": tables.INSPECT_SLOTS,
        "inspect_links": tables.INSPECT_LINKS,
    }

    def __init__(self, name: str, generation: int) -> None:
        source = Source.open(struct.pack("<8sQ", b"\x01\x02\x02\x00INSP", generation))
        source.name = name
        super().__init__(source, OpenRequest(), Diagnostics(Catalogue([])))
        self.made: dict[str, Table] = {}
        self.step = 1 << 16

    def records(self) -> Iterator[Record]:
        return iter(())

    def summary(self) -> Summary:
        return Summary(records=1, kinds={"block": 1}, start_ns=None, end_ns=None, facts={})

    def scan(self) -> None:
        """Nothing is to be found."""

    def choose(self, selectors: Sequence[str]) -> Capture:
        return choose(self, selectors)

    def entries(self) -> Iterator[Entry]:
        return entries(self)

    def _table(self, name: str) -> Table:
        return self.made[name]

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        table = self.made[name]
        rows = min(rows, self.step)
        return (table.select(slice(at, at + rows)) for at in range(0, len(table), rows))


def hand_made(
    tree: Mapping[str, Any], *, name: str = "x.inspect", generation: int = 2, step: int = 1 << 16
) -> HandMade:
    """A capture of a tree; ``step`` is the most rows of a batch."""
    rows: dict[str, list[dict[str, Any]]] = {table: [] for table in HandMade.schemas}
    work: list[tuple[Mapping[str, Any], int, str]] = [(tree, -1, "")]
    while work:
        node, parent, above = work.pop()
        number = len(rows["nodes"])
        path = f"{above}{_text(node['name'])}"
        rows["nodes"].append(
            {"id": number, "parent": parent, "name": node["name"], "path": path,
             "offset": 16 * number}
        )  # fmt: skip
        for each in node.get("properties", ()):
            _add_property(rows, number, each)
        for each in node.get("links", ()):
            rows["inspect_links"].append(
                {
                    "node": number,
                    "name": each["name"],
                    "content": each["content"],
                    "disposition": PLACES[each["disposition"]],
                    "state": each.get("state", "not expanded"),
                }
            )
        work += [(child, number, f"{path}/") for child in reversed(node.get("children", ()))]
    capture = HandMade(name, generation)
    capture.step = step
    for table, schema in HandMade.schemas.items():
        columns: dict[str, list[Any]] = {
            column: [row.get(column) for row in rows[table]]
            for column in {key for row in rows[table] for key in row}
        }
        for column, values in columns.items():
            kind = schema.column(column).kind
            filler: Any = b"" if kind == "text" else (0, 0) if kind == "array" else 0
            columns[column] = [
                filler if value is None and kind != "code" else value for value in values
            ]
        capture.made[table] = Table.of(schema, capture.strings, **columns)
    return capture


def _text(name: str | bytes) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


def _add_property(
    rows: dict[str, list[dict[str, Any]]], node: int, given: Mapping[str, Any]
) -> None:
    properties, slots = rows["properties"], rows["inspect_slots"]
    ((key, value),) = ((k, v) for k, v in given.items() if k not in {"name", "display"})
    row: dict[str, Any] = {"node": node, "name": given["name"], "offset": 16 * len(properties)}
    properties.append(row)
    kind, format = key, 0
    if key.endswith("_histogram"):
        kind, shape, _ = key.split("_")
        format = {"linear": 1, "exponential": 2}[shape]
        before = ["floor", "step"] if format == 1 else ["floor", "initial_step", "step_multiplier"]
        value = [*(value[name] for name in before), *value["counts"]]
        kind += "_array"
    elif "display" in given:
        format = {"flat": 0, "linear": 1, "exponential": 2}[given["display"]]
    kind = {"bytes_hex": "bytes", "string_list": "string_array"}.get(kind, kind)
    row |= {"type": TYPES[kind], "inspect_format": format}
    if kind == "bytes":
        row["text"] = bytes.fromhex(value)
    elif kind == "string":
        row["text"] = value
    elif kind.endswith("_array"):
        row["array"] = (len(slots), len(value))
        column = {"int": "int", "uint": "uint", "double": "float", "string": "str"}[kind[:-6]]
        slots += [
            {"parent": len(properties) - 1, "slot": at, column: each}
            for at, each in enumerate(value)
        ]
    else:
        row[{"double": "float", "bool": "int"}.get(kind, kind)] = value


def export(exporter: str, /, *captures: Capture, **options: Any) -> tuple[str, dict[str, int]]:
    """What an exporter makes of captures, and what it had no place for."""
    [found] = [each for each in plugin.fx_exporters() if each.name == exporter]
    sink = Sink.memory()
    session: ExportSession = found.open(sink, {**OPTIONS, **options})
    for capture in captures:
        session.write(capture)
    dropped = dict(session.close())
    return sink.getvalue().decode(), dropped
