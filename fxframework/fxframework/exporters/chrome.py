"""The exporter `json` for slices, instants and counters: Chrome's Trace Event Format.

A closed slice becomes a complete event (``X``), a slice that never ended a begin (``B``), an
asynchronous slice a pair ``b`` and ``e``. Times are microseconds with three decimals, which is
exact. Formats with their own JSON have their own exporter, which takes precedence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from fxframework.errors import WriteRefusedError
from fxframework.exporters.rows import Arguments, tasks
from fxframework.io.sink import Sink
from fxframework.kit.export import Export
from fxframework.model.capture import Capture
from fxframework.model.schema import STANDARD_TABLES
from fxframework.model.table import Table

__all__ = ["TABLES", "ChromeExport"]

TABLES = frozenset({"slices", "instants", "counters"})
"""Tables whose rows become events."""
SCOPES = {"thread": "t", "process": "p", "global": "g"}


class ChromeExport(Export):
    """Writes the events of all captures as one document."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._between = b'{"displayTimeUnit":"ns","traceEvents":[\n'

    def write(self, capture: Capture) -> None:
        """Write a capture's events. Raises WriteRefusedError if it has none."""
        events = 0
        who = {number: (one.pid, one.tid) for number, one in tasks(capture).items()}
        for name in ("slices", "instants", "counters"):
            if name in capture.schemas:
                arguments = Arguments(capture, name)
                for batch in capture.batches(name):
                    events += self._lines(_EVENTS[name](_heads(who, batch), batch,
                                                        _args(arguments, batch)))  # fmt: skip
        if not events:
            raise WriteRefusedError(
                "it has no slices, instants or counters",
                path=capture.name,
                remedy="`fxf info` shows what there is",
            )
        self._lines(_names(capture))
        for name, rows in capture.row_counts().items():
            if rows and name not in {*TABLES, "args", "threads", "processes"}:
                self._dropped[f"rows of {name}"] += rows
            for column in _unknown(capture, name) if rows and name in TABLES else ():
                self._dropped[f"values of {name}.{column}"] += rows

    def _lines(self, events: Iterable[str]) -> int:
        lines = list(events)
        if lines:
            self._sink.write(self._between + ",\n".join(lines).encode("utf-8", "replace"))
            self._between = b",\n"
        return len(lines)

    def close(self) -> Mapping[str, int]:
        """End the document; return the counts of what could not be written, by name."""
        if not self._between.startswith(b"{"):
            self._sink.write(b"\n]}\n")
        return super().close()


def _heads(who: Mapping[int, tuple[int, int]], table: Table) -> Iterator[str]:
    """Yield the members common to all events, without the closing brace."""
    count = len(table)
    threads = table.array("thread").tolist() if "thread" in table else [-1] * count
    categories = table.texts("category") if "category" in table else [None] * count
    for ts, thread, category, name in zip(
        table.array("ts").tolist(), threads, categories, table.texts("name"), strict=True
    ):
        pid, tid = who.get(thread, (0, 0))
        cat = f'"cat":{_json(category)},' if category else ""
        yield f'{{{cat}"name":{_json(name or "")},"ts":{_us(ts)},"pid":{pid},"tid":{tid}'


def _unknown(capture: Capture, table: str) -> list[str]:
    """Return the columns that the format added to a standard table."""
    known = {column.name for column in STANDARD_TABLES[table].all_columns}
    return [c.name for c in capture.schemas[table].all_columns if c.name not in known]


def _json(text: str) -> str:
    return orjson.dumps(text.encode("utf-8", "replace").decode()).decode()


def _us(ns: int) -> str:
    """Format nanoseconds as exact microseconds."""
    whole, rest = divmod(abs(ns), 1000)
    return f"{'-' if ns < 0 else ''}{whole}.{rest:03d}"


def _args(arguments: Arguments, table: Table) -> Iterator[str]:
    """Yield the arguments of each row as a JSON object."""
    for places in arguments.of(table.array("row")):
        members = ",".join(f"{name}:{value}" for name, value in arguments.members(places))
        yield f"{{{members}}}"


def _slices(heads: Iterator[str], table: Table, args: Iterator[str]) -> Iterator[str]:
    kinds = table.plain("kind") if "kind" in table else ["begin_end"] * len(table)
    ids = table.array("id").tolist() if "id" in table else [0] * len(table)
    rows = zip(heads, table.array("ts").tolist(), table.array("dur").tolist(), kinds, ids, args,
               strict=True)  # fmt: skip
    for head, ts, dur, kind, number, arg in rows:
        if kind == "async":
            yield f'{head},"ph":"b","id":"0x{number:x}","args":{arg}}}'
            if dur >= 0:
                # Repeat the members, with the time of the end.
                end = head.replace(f'"ts":{_us(ts)},', f'"ts":{_us(ts + dur)},', 1)
                yield f'{end},"ph":"e","id":"0x{number:x}"}}'
        elif dur < 0:
            yield f'{head},"ph":"B","args":{arg}}}'
        else:
            yield f'{head},"ph":"X","dur":{_us(dur)},"args":{arg}}}'


def _instants(heads: Iterator[str], table: Table, args: Iterator[str]) -> Iterator[str]:
    scopes = table.plain("scope") if "scope" in table else ["thread"] * len(table)
    for head, scope, arg in zip(heads, scopes, args, strict=True):
        yield f'{head},"ph":"i","s":"{SCOPES.get(scope, "t")}","args":{arg}}}'


def _counters(heads: Iterator[str], table: Table, args: Iterator[str]) -> Iterator[str]:
    del args  # the series are the arguments
    values = table.array("value").tolist()
    exact = table.array("value_int").tolist() if "value_int" in table else values
    whole = table.array("is_int").tolist() if "is_int" in table else [False] * len(table)
    series = table.texts("series") if "series" in table else ["value"] * len(table)
    for head, name, value, integer, is_int in zip(heads, series, values, exact, whole, strict=True):
        shown = str(integer) if is_int else orjson.dumps(value).decode()
        yield f'{head},"ph":"C","args":{{{_json(name or "value")}:{shown}}}}}'


_EVENTS = {"slices": _slices, "instants": _instants, "counters": _counters}


def _names(capture: Capture) -> Iterator[str]:
    """Yield the names of processes and threads as metadata events."""
    named: set[int] = set()
    for who in tasks(capture).values():
        if who.process is not None and who.pid not in named:
            named.add(who.pid)
            yield (
                f'{{"name":"process_name","ph":"M","pid":{who.pid},'
                f'"args":{{"name":{_json(who.process)}}}}}'
            )
        if who.thread is not None:
            yield (
                f'{{"name":"thread_name","ph":"M","pid":{who.pid},"tid":{who.tid},'
                f'"args":{{"name":{_json(who.thread)}}}}}'
            )
