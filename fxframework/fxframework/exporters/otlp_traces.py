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
from fxframework.exporters.columns import first_of_runs, starts_of
from fxframework.exporters.rows import ArgumentStream
from fxframework.exporters.stacks import UNFINISHED
from fxframework.io.sink import Sink
from fxframework.kernels.arrays import I64, Bools
from fxframework.kernels.parts import HEX, HEX16, MEMBERS, MEMBERS_END, NATURAL, TEXT
from fxframework.kernels.templates import Cell, Templates, signed
from fxframework.kit import otlp
from fxframework.kit.export import Export, empty_refusal, quoted
from fxframework.kit.row_texts import ArgumentTexts, Form, Numbered, repeated, value_forms, where
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.schema import ArgType
from fxframework.model.table import Table
from fxframework.model.tasks import NOBODY, tasks

Bounds = tuple[I64, I64]
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
SIGNED_TYPES = (ArgType.INT32, ArgType.INT64)
UNSIGNED_TYPES = (ArgType.UINT32, ArgType.UINT64, ArgType.KOID)
RESOURCES = b'{"resourceSpans":['
END_OF_RESOURCE = "\n]}]}"


class _Attributes:
    """Converts the arguments of slices to attributes, as members of templates."""

    def __init__(self, capture: Capture, templates: Templates) -> None:
        pool = capture.strings
        self._templates = templates
        self._pool = pool
        self._args = ArgumentStream(capture, "slices") if "args" in capture.schemas else None
        self._keys = Numbered(templates, self._key)

        def blob(code: int) -> str:
            return f'"{base64.b64encode(pool.bytes_of(code)).decode()}"'

        values = value_forms(templates, string=lambda code: quoted(pool[code]), blob=blob)

        def typed(kind: int, name: str, quote: str = "") -> Form:
            return Form(values[kind].value, f'{{"{name}":{quote}', f"{quote}}}}}")

        forms: dict[int, Form] = {
            kind: typed(kind, "intValue", '"') for kind in (*SIGNED_TYPES, *UNSIGNED_TYPES)
        }
        forms |= {
            ArgType.NULL: Form(lambda _args, _rows: b"{}}"),
            ArgType.DOUBLE: typed(ArgType.DOUBLE, "doubleValue"),
            ArgType.STRING: typed(ArgType.STRING, "stringValue"),
            ArgType.POINTER: Form(
                lambda args, rows: (HEX, args["uint"][rows]), '{"stringValue":"0x', '"}}'
            ),
            ArgType.BOOL: typed(ArgType.BOOL, "boolValue"),
            ArgType.BLOB: typed(ArgType.BLOB, "bytesValue"),
            LARGE: typed(ArgType.UINT64, "stringValue", '"'),
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
            no_bounds = np.zeros(rows.size, np.int64)
            return no_bounds, no_bounds, list(np.zeros((4, 0), np.int64))
        starts, stops, args = self._args.of(rows)
        kinds = self._args.kinds(args)
        is_large = np.isin(kinds, UNSIGNED_TYPES) & (args["uint"] > NS_MAX)
        kinds[is_large] = LARGE
        columns = self._texts.of(args, kinds)
        # Keys must differ within a span: replace what is before the value of each repeated one.
        _, key_numbers = self._keys(args["name"])
        for row, times in repeated(args["parent"], key_numbers):
            name = int(args["name"][row])
            opening = _opened(self._key(name, times))
            before_value = self._texts.forms[int(kinds[row])].before
            text_before = f"{opening}{before_value}".encode()
            columns[0][row] = self._templates.text(text_before)
        return starts, stops, columns


class TraceExport(Export):
    """Writes the slices of all captures as one TracesData object."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._between = RESOURCES
        """What is before the next resource."""

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
        if self._between == RESOURCES:  # nothing was written
            self._sink.write(RESOURCES)
        self._sink.write(b"]}\n")
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
        self._own_attributes = {
            "thread": _OptionalMember(self._templates, self._thread),
            "category": _OptionalMember(self._templates, category),
        }
        """Members of attributes by the column that they are for."""
        self._link_sources = np.zeros(0, np.int64)
        self._link_targets = np.zeros(0, np.int64)
        """Places of spans, ascending; the sources are in the same order."""
        if "flows" in capture.schemas:
            source, target, lost = links(capture.table("flows"), spans)
            dropped[WITHOUT_SLICE] += lost
            order = np.argsort(target, kind="stable")
            self._link_sources = source[order]
            self._link_targets = target[order]

    def of(self, batch: Table) -> Iterator[bytes]:
        """Yield the spans of a batch as JSON, process by process, in pieces."""
        templates = self._templates
        spans = self._spans
        templates.forget(KEPT)
        starts, stops, attributes = self._attributes.of(batch.array("row"))
        order, leads = self._by_process(batch.array("thread"))
        batch = batch.select(order)
        starts = starts[order]
        stops = stops[order]
        places = spans.places(batch.array("row"))
        # The templates hold three kinds of members: attributes, parents, and links.
        parents, linked, relations = self._relations(places, attributes[0].size)
        templates.hold(*np.concatenate((attributes, relations), axis=1))
        unfinished = batch.array("dur") < 0
        self._dropped[UNFINISHED] += int(np.count_nonzero(unfinished))
        own_attributes, has_attributes = self._own(batch, starts < stops, unfinished)
        has_links = linked[0] < linked[1]
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
            where(templates, has_attributes, ',"attributes":['),
            (MEMBERS, starts),
            (MEMBERS_END, stops),
            *own_attributes,
            where(templates, has_attributes, "]"),
            where(templates, has_links, ',"links":['),
            (MEMBERS, linked[0]),
            (MEMBERS_END, linked[1]),
            where(templates, has_links, "]"),
            b"}",
        )

    def _own(
        self, batch: Table, has_arguments: Bools, unfinished: Bools
    ) -> tuple[list[Cell], Bools]:
        """Return the attributes that are not arguments, and which spans have any attributes.

        ``has_arguments`` says which spans have attributes before these.
        """
        has_attributes = has_arguments
        cells: list[Cell] = []
        for column, member in self._own_attributes.items():
            cell, is_present = member.of(batch.array(column), has_attributes)
            cells.append(cell)
            has_attributes = has_attributes | is_present
        _, first_text = where(self._templates, unfinished, IS_UNFINISHED[1:])
        _, further = where(self._templates, unfinished, IS_UNFINISHED)
        cells.append((TEXT, np.where(has_attributes, further, first_text)))
        return cells, has_attributes | unfinished

    def _thread(self, thread: int) -> str:
        """Return the attributes of a thread, each preceded by a comma."""
        task = self._tasks.get(thread, NOBODY)
        attributes = ""
        if task.tid:
            attributes += otlp.member("thread.id", otlp.integer(task.tid))
        if task.thread:
            attributes += otlp.member("thread.name", otlp.string(task.thread))
        return attributes

    def _by_process(self, threads: NDArray[np.int32]) -> tuple[I64, I64]:
        """Return the order of rows by process, and what is before each row in that order.

        Processes are in the order of their first rows.
        """
        distinct_threads, first_rows, thread_of_row = np.unique(
            threads, return_index=True, return_inverse=True
        )
        rank_of_process: dict[tuple[int, str | None], int] = {}
        rank_of_thread = np.zeros(distinct_threads.size, np.int64)
        for thread in np.argsort(first_rows).tolist():
            task = self._tasks.get(int(distinct_threads[thread]), NOBODY)
            process = (task.pid, task.process)
            rank_of_thread[thread] = rank_of_process.setdefault(process, len(rank_of_process))
        rank_of_row = rank_of_thread[thread_of_row]
        order = np.argsort(rank_of_row, kind="stable")
        leads = np.full(order.size, self._templates.text(b",\n"))
        ranks = rank_of_row[order]
        first_of_process = first_of_runs(ranks)
        resources = [_resource(*process) for process in rank_of_process]
        resources[1:] = [f"{END_OF_RESOURCE},\n{resource}" for resource in resources[1:]]
        encoded = [text.encode() for text in resources]
        leads[first_of_process] = self._templates.texts(encoded)
        return order, leads

    def _relations(self, places: I64, first_member: int) -> tuple[Bounds, Bounds, list[I64]]:
        """Return for each span the bounds of its parent and of its links, and columns of members.

        ``first_member`` is the number of the first one. Parents come first, then links; a link is
        two members, of a trace id and a span id.
        """
        spans = self._spans
        text = self._templates.text
        parent_places = spans.parent[places]
        has_parent = parent_places >= 0
        parents = spans.span[parent_places[has_parent]]
        parent_stops = first_member + np.cumsum(has_parent)
        parent_starts = parent_stops - has_parent
        begin = np.searchsorted(self._link_targets, places, "left")
        end = np.searchsorted(self._link_targets, places, "right")
        link_counts = end - begin
        # The links of each place one after another: begin, begin + 1, …, end - 1.
        links_before = starts_of(link_counts)
        chosen = np.arange(link_counts.sum())
        chosen += np.repeat(begin - links_before, link_counts)
        sources = self._link_sources[chosen]
        link_pairs = np.stack((spans.trace[sources], spans.span[sources]), axis=1)
        link_ids = link_pairs.reshape(-1)
        before_ids = [text(f'{{"traceId":"{spans.prefix}'.encode()), text(b'"spanId":"')]
        behind_ids = [text(b'"'), text(b'"}')]
        before_parents = np.full(parents.size, text(b',"parentSpanId":"'))
        behind_parents = np.full(parents.size, text(b'"'))
        columns = [
            np.append(before_parents, np.tile(before_ids, sources.size)),
            np.full(parents.size + link_ids.size, HEX16),
            signed(np.append(parents, link_ids)),
            np.append(behind_parents, np.tile(behind_ids, sources.size)),
        ]
        link_starts = first_member + parents.size + 2 * links_before
        link_stops = link_starts + 2 * link_counts
        return (parent_starts, parent_stops), (link_starts, link_stops), columns

    def _times(self, ns: I64) -> I64:
        """Return the times since 1970, and count those before."""
        earliest = int(ns.min()) + self._offset
        latest = int(ns.max()) + self._offset
        if all(NS_MIN <= number <= NS_MAX for number in (self._offset, earliest, latest)):
            moments = ns + self._offset
        else:
            moments = ns.astype(object) + self._offset  # Python's integers do not overflow
        is_early = moments < 0
        self._dropped[EARLY] += int(np.count_nonzero(is_early))
        clipped: I64 = np.clip(moments, 0, NS_MAX).astype(np.int64)
        return clipped


class _OptionalMember:
    """A member of an array for numbers that have one; ``make`` returns it after a comma."""

    def __init__(self, templates: Templates, make: Callable[[int], str]) -> None:
        self._templates = templates
        self._first = Numbered(templates, lambda number: make(number)[1:])
        self._further = Numbered(templates, make)

    def of(self, numbers: NDArray[Any], has_members: Bools) -> tuple[Cell, Bools]:
        """Return the members of rows, and which rows have one.

        It is without the comma where ``has_members`` says that it is the first of the array.
        """
        _, first = self._first(numbers)
        _, further = self._further(numbers)
        return (TEXT, np.where(has_members, further, first)), first != self._templates.text(b"")


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
