"""The exporter `otlp-traces`: slices as OpenTelemetry spans, flows as links, in OTLP/JSON.

To bound memory, each batch of slices writes its own resource for each process.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.spans import WITHOUT_SLICE, Spans, links
from fxframework.exporters.rows import ArgumentStream, Task, tasks
from fxframework.exporters.stacks import UNFINISHED
from fxframework.io.sink import Sink
from fxframework.kernels.parts import HEX, HEX16, MEMBERS, MEMBERS_END, NATURAL, TEXT
from fxframework.kernels.templates import Cell, Templates, signed
from fxframework.kit import otlp
from fxframework.kit.export import Export, empty_refusal, quoted
from fxframework.kit.row_texts import (
    BLOB,
    BOOL,
    DOUBLE,
    INT32,
    INT64,
    KOID,
    NULL,
    POINTER,
    STRING,
    UINT32,
    UINT64,
    ArgumentTexts,
    Form,
    Numbered,
    repeated,
    value_forms,
    where,
)
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.table import Table

__all__ = ["TraceExport"]

I64 = NDArray[np.int64]
Bounds = tuple[I64, I64]
NOBODY = Task(0, 0, None, None)
OWN_KEYS = frozenset({"thread.id", "thread.name", "fuchsia.category", "fuchsia.unfinished"})
"""Keys that this exporter writes; arguments of these names get a number appended."""
UNNAMED = "fuchsia.unnamed"
"""Key for arguments with an empty name, which attributes cannot have."""
NO_OFFSET = "wall times: the offset from UTC is not known (-o utc_offset_ns=NS)"
EARLY = "times before 1970"
INTERNAL = 1
"""Kind of all spans: not known to be a side of a request."""


IS_UNFINISHED = otlp.member("fuchsia.unfinished", '{"boolValue":true}')
KEPT = 64 << 20
"""Most bytes of texts kept from one batch to the next."""
LARGE = 11
"""The form of unsigned numbers above 2^63-1, which OTLP has as texts."""
SIGNED_TYPES = (INT32, INT64)
UNSIGNED_TYPES = (UINT32, UINT64, KOID)
RESOURCES = b'{"resourceSpans":['
END_OF_RESOURCE = "\n]}]}"


class _Attributes:
    """Converts the arguments of slices to attributes, as members of templates."""

    def __init__(self, capture: Capture, templates: Templates) -> None:
        self._templates = templates
        self._pool = pool = capture.strings
        self._args = ArgumentStream(capture, "slices") if "args" in capture.schemas else None
        self._keys = Numbered(templates, self._key)

        def blob(code: int) -> str:
            return f'"{base64.b64encode(pool.bytes_of(code)).decode()}"'

        values = value_forms(templates, string=lambda code: quoted(pool[code]), blob=blob)

        def typed(kind: int, name: str, quote: str = "") -> Form:
            return Form(values[kind].value, f'{{"{name}":{quote}', f"{quote}}}}}")

        forms = {kind: typed(kind, "intValue", '"') for kind in (*SIGNED_TYPES, *UNSIGNED_TYPES)}
        forms |= {
            NULL: Form(lambda _args, _rows: b"{}}"),
            DOUBLE: typed(DOUBLE, "doubleValue"),
            STRING: typed(STRING, "stringValue"),
            POINTER: Form(
                lambda args, rows: (HEX, args["uint"][rows]), '{"stringValue":"0x', '"}}'
            ),
            BOOL: typed(BOOL, "boolValue"),
            BLOB: typed(BLOB, "bytesValue"),
            LARGE: typed(UINT64, "stringValue", '"'),
        }
        self._texts = ArgumentTexts(templates, lambda code: _opened(self._key(code)), forms)

    def _key(self, code: int, times: int = 1) -> str:
        """Return the key for a name, numbered if it is repeated or a key of this exporter."""
        key = self._pool.text(code) or UNNAMED
        times += key in OWN_KEYS
        return f"{key}#{times}" if times > 1 else key

    def of(self, rows: I64) -> tuple[I64, I64, list[I64]]:
        """Return for each row the bounds of its attributes, and the columns of all."""
        if self._args is None:
            none = np.zeros(rows.size, np.int64)
            return none, none, list(np.zeros((4, 0), np.int64))
        starts, stops, args = self._args.of(rows)
        kinds = self._args.kinds(args)
        kinds[np.isin(kinds, UNSIGNED_TYPES) & (args["uint"] > NS_MAX)] = LARGE
        columns = self._texts.of(args, kinds)
        for row, times in repeated(args["parent"], self._keys(args["name"])[1]):
            text = _opened(self._key(int(args["name"][row]), times))
            before = self._texts.forms[int(kinds[row])].before
            columns[0][row] = self._templates.text(f"{text}{before}".encode())
        return starts, stops, columns


class TraceExport(Export):
    """Writes the slices of all captures as one TracesData object."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._between = RESOURCES

    def write(self, capture: Capture) -> None:
        """Write the spans of a capture. Raises WriteRefusedError if it has no slices."""
        spans = Spans.of(capture)
        if not len(spans):
            raise empty_refusal(capture, "there are no slices")
        offset = self._options["utc_offset_ns"] or capture.utc_offset_ns
        if offset is None:
            self._dropped[NO_OFFSET] += len(spans)
        writer = _Spans(capture, spans, offset or 0, self._dropped)
        for batch in filter(len, capture.batches("slices")):
            self._sink.write(self._between)
            for piece in writer.of(batch):
                self._sink.write(piece)
            self._sink.write(END_OF_RESOURCE.encode())
            self._between = b",\n"
        self._drop_rows(
            capture.row_counts(), but={"slices", "args", "flows", "threads", "processes"}
        )
        self._drop_arguments(capture, "flows")

    def close(self) -> Mapping[str, int]:
        """End the object; return the counts of what could not be written, by name."""
        self._sink.write((self._between if self._between == RESOURCES else b"") + b"]}\n")
        return super().close()


class _Spans:
    """Converts the slices of a capture to spans."""

    def __init__(self, capture: Capture, spans: Spans, offset: int, dropped: Counter[str]) -> None:
        self._spans = spans
        self._offset = offset
        self._dropped = dropped
        self._templates = Templates(b"", b",", b"")
        self._attributes = _Attributes(capture, self._templates)
        self._tasks = tasks(capture)
        pool = capture.strings

        def category(code: int) -> str:
            text = pool.text(code)
            return otlp.member("fuchsia.category", otlp.string(text)) if text else ""

        self._names = Numbered(self._templates, lambda code: quoted(pool.text(code)))
        self._items = [self._with_and_without_comma(each) for each in (self._thread, category)]
        self._links: Bounds = np.zeros(0, np.int64), np.zeros(0, np.int64)
        """Sources and targets of links, by target."""
        if "flows" in capture.schemas:
            source, target, lost = links(capture.table("flows"), spans)
            dropped[WITHOUT_SLICE] += lost
            order = np.argsort(target, kind="stable")
            self._links = source[order], target[order]

    def of(self, batch: Table) -> Iterator[bytes]:
        """Yield the spans of a batch as JSON, process by process, in pieces."""
        templates, spans = self._templates, self._spans
        templates.forget(KEPT)
        starts, stops, attributes = self._attributes.of(batch.array("row"))
        order, leads = self._by_process(batch.array("thread"))
        batch, starts, stops = batch.select(order), starts[order], stops[order]
        places = spans.places(batch.array("row"))
        parents, linked, more = self._relations(places, attributes[0].size)
        templates.hold(*np.concatenate((attributes, more), axis=1))
        unfinished = batch.array("dur") < 0
        self._dropped[UNFINISHED] += int(np.count_nonzero(unfinished))
        some = starts < stops
        items: list[Cell] = []
        for numbered, column in zip(self._items, ("thread", "category"), strict=True):
            first, later = (each(batch.array(column))[1] for each in numbered)
            items.append((TEXT, np.where(some, later, first)))
            some = some | (first != templates.text(b""))
        first, later = (
            where(templates, unfinished, text)[1] for text in (IS_UNFINISHED[1:], IS_UNFINISHED)
        )
        items.append((TEXT, np.where(some, later, first)))
        some = some | unfinished
        linking = linked[0] < linked[1]
        yield from templates.pieces(
            len(batch),
            (TEXT, leads),
            b'{"traceId":"' + spans.prefix.encode(),
            (HEX16, spans.trace[places]),
            b'","spanId":"',
            (HEX16, spans.span[places]),
            b'"',
            (MEMBERS, parents[0]),
            (MEMBERS_END, parents[1]),
            b',"name":',
            self._names(batch.array("name")),
            f',"kind":{INTERNAL},"startTimeUnixNano":"'.encode(),
            (NATURAL, self._times(spans.start[places])),
            b'","endTimeUnixNano":"',
            (NATURAL, self._times(spans.end[places])),
            b'"',
            where(templates, some, ',"attributes":['),
            (MEMBERS, starts),
            (MEMBERS_END, stops),
            *items,
            where(templates, some, "]"),
            where(templates, linking, ',"links":['),
            (MEMBERS, linked[0]),
            (MEMBERS_END, linked[1]),
            where(templates, linking, "]"),
            b"}",
        )

    def _with_and_without_comma(self, make: Callable[[int], str]) -> tuple[Numbered, Numbered]:
        return (
            Numbered(self._templates, lambda code: make(code)[1:]),
            Numbered(self._templates, make),
        )

    def _thread(self, thread: int) -> str:
        """Return the attributes of a thread, each preceded by a comma."""
        who = self._tasks.get(thread, NOBODY)
        own = otlp.member("thread.id", otlp.integer(who.tid)) if who.tid else ""
        return own + (otlp.member("thread.name", otlp.string(who.thread)) if who.thread else "")

    def _by_process(self, threads: NDArray[np.int32]) -> tuple[I64, I64]:
        """Return the order of rows by process, and what is before each row in that order.

        Processes are in the order of their first rows.
        """
        different, first, place = np.unique(threads, return_index=True, return_inverse=True)
        ranks: dict[tuple[int, str | None], int] = {}
        rank_of = np.zeros(different.size, np.int64)
        for at in np.argsort(first).tolist():
            who = self._tasks.get(int(different[at]), NOBODY)
            rank_of[at] = ranks.setdefault((who.pid, who.process), len(ranks))
        rank = rank_of[place]
        order = np.argsort(rank, kind="stable")
        leads = np.full(order.size, self._templates.text(b",\n"))
        begins = np.flatnonzero(np.diff(rank[order], prepend=-1))
        texts = [
            (f"{END_OF_RESOURCE},\n" if at else "") + _resource(*process)
            for at, process in enumerate(ranks)
        ]
        leads[begins] = self._templates.texts([text.encode() for text in texts])
        return order, leads

    def _relations(self, places: I64, first: int) -> tuple[Bounds, Bounds, list[I64]]:
        """Return for each span the bounds of its parent and of its links, and columns of members.

        ``first`` is the number of the first member. A link is two of them.
        """
        spans, text = self._spans, self._templates.text
        above = spans.parent[places]
        parents = spans.span[above[above >= 0]]
        stops = first + np.cumsum(above >= 0)
        sources, targets = self._links
        begin, end = (np.searchsorted(targets, places, side) for side in ("left", "right"))
        count = end - begin
        chosen = np.repeat(begin - np.cumsum(count) + count, count) + np.arange(count.sum())
        sources = sources[chosen]
        ids = np.stack((spans.trace[sources], spans.span[sources]), axis=1).reshape(-1)
        heads = f'{{"traceId":"{spans.prefix}', '"spanId":"'
        befores = np.full(parents.size, text(b',"parentSpanId":"'))
        behinds = np.full(parents.size, text(b'"'))
        columns = [
            np.append(befores, np.tile([text(each.encode()) for each in heads], sources.size)),
            np.full(parents.size + ids.size, HEX16),
            signed(np.append(parents, ids)),
            np.append(behinds, np.tile([text(b'"'), text(b'"}')], sources.size)),
        ]
        behind = first + parents.size + 2 * np.cumsum(count)
        return (stops - (above >= 0), stops), (behind - 2 * count, behind), columns

    def _times(self, ns: I64) -> I64:
        """Return the times since 1970, and count those before."""
        edges = int(ns.min()) + self._offset, int(ns.max()) + self._offset
        fits = edges[0] >= NS_MIN and edges[1] <= NS_MAX
        moments = (ns if fits else ns.astype(object)) + self._offset
        self._dropped[EARLY] += int(np.count_nonzero(moments < 0))
        shown: I64 = np.clip(moments, 0, NS_MAX).astype(np.int64)
        return shown


def _resource(pid: int, name: str | None) -> str:
    """Return the beginning of a resource, up to its first span."""
    attributes = otlp.member("service.name", otlp.string(name or otlp.NO_SERVICE))
    if pid:
        attributes += otlp.member("process.pid", otlp.integer(pid))
    return (
        f'{{"resource":{{"attributes":[{attributes[1:]}]}},"scopeSpans":'
        f'[{{"scope":{{"name":"{otlp.SCOPE}"}},"spans":[\n'
    )


def _opened(key: str) -> str:
    """Return an attribute up to its value."""
    return f'{{"key":{quoted(key)},"value":'
