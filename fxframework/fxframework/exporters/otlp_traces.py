"""The exporter `otlp-traces`: slices as OpenTelemetry spans, flows as links, in OTLP/JSON.

To bound memory, each batch of slices writes its own resource for each process.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.analysis.spans import Spans, links
from fxframework.errors import WriteRefusedError
from fxframework.exporters.rows import BITS, INTEGERS, Arguments, Task, tasks
from fxframework.exporters.stacks import UNFINISHED
from fxframework.io.sink import Sink
from fxframework.kit import otlp
from fxframework.kit.export import Export
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX
from fxframework.model.table import Table

__all__ = ["TraceExport"]

NOBODY = Task(0, 0, None, None)
OWN_KEYS = frozenset({"thread.id", "thread.name", "fuchsia.category", "fuchsia.unfinished"})
"""Keys that this exporter writes; arguments of these names get a number appended."""
UNNAMED = "fuchsia.unnamed"
"""Key for arguments with an empty name, which attributes cannot have."""
NO_OFFSET = "wall times: the offset from UTC is not known (-o utc_offset_ns=NS)"
EARLY = "times before 1970"
INTERNAL = 1
"""Kind of all spans: not known to be a side of a request."""


class _Attributes(Arguments):
    """Converts the arguments of slices to attributes."""

    def of_span(self, places: range) -> str:
        """Return attributes as JSON, each preceded by a comma; repeated names are numbered."""
        taken: Counter[str] = Counter()
        parts = []
        for name, value in self.members(places):
            key = orjson.loads(name) or UNNAMED
            taken[key] += 1
            if taken[key] > 1 or key in OWN_KEYS:
                key = f"{key}#{taken[key] + (key in OWN_KEYS)}"
            parts.append(otlp.member(orjson.dumps(key)[1:-1].decode(), value))
        return "".join(parts)

    def _value(self, at: int) -> str:
        columns = self._columns
        kind = self._types.get(int(columns["type"][at]), "")
        code = int(columns["str"][at])
        if code >= 0:
            data = self._bytes(code)
            return otlp.string(self._decode(data)) if kind == "string" else otlp.data(data)
        if kind == "pointer":
            return otlp.string(f"0x{int(columns['uint'][at]):x}")
        if kind in INTEGERS:
            return otlp.integer(int(columns["int"][at]))
        if kind in BITS:
            return otlp.integer(int(columns["uint"][at]))
        if kind == "bool":
            return f'{{"boolValue":{"true" if columns["int"][at] else "false"}}}'
        return otlp.double(float(columns["float"][at])) if kind == "double" else "{}"


class TraceExport(Export):
    """Writes the slices of all captures as one TracesData object."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._between = '{"resourceSpans":['

    def write(self, capture: Capture) -> None:
        """Write the spans of a capture. Raises WriteRefusedError if it has no slices."""
        spans = Spans.of(capture)
        if not len(spans):
            raise WriteRefusedError(
                "there are no slices", path=capture.name, remedy="`fxf info` shows what there is"
            )
        offset = self._options["utc_offset_ns"] or capture.utc_offset_ns
        if offset is None:
            self._dropped[NO_OFFSET] += len(spans)
        writer = _Spans(capture, spans, offset or 0, self._dropped)
        for batch in capture.batches("slices"):
            for process, lines in writer.of(batch).items():
                self._resource(process, lines)
        for name, rows in capture.row_counts().items():
            if rows and name not in {"slices", "args", "flows", "threads", "processes"}:
                self._dropped[f"rows of {name}"] += rows

    def _resource(self, process: tuple[int, str | None], lines: Iterable[str]) -> None:
        pid, name = process
        attributes = otlp.member("service.name", otlp.string(name or otlp.NO_SERVICE))
        if pid:
            attributes += otlp.member("process.pid", otlp.integer(pid))
        self._sink.write(
            f'{self._between}{{"resource":{{"attributes":[{attributes[1:]}]}},"scopeSpans":'
            f'[{{"scope":{{"name":"{otlp.SCOPE}"}},"spans":[\n'.encode()
        )
        self._sink.write(",\n".join(lines).encode("utf-8", "replace") + b"\n]}]}")
        self._between = ",\n"

    def close(self) -> Mapping[str, int]:
        """End the object; return the counts of what could not be written, by name."""
        self._sink.write(f"{self._between if self._between[0] == '{' else ''}]}}\n".encode())
        return super().close()


class _Spans:
    """Converts the slices of a capture to spans."""

    def __init__(self, capture: Capture, spans: Spans, offset: int, dropped: Counter[str]) -> None:
        self._spans = spans
        self._offset = offset
        self._dropped = dropped
        self._tasks = tasks(capture)
        self._arguments = _Attributes(capture, "slices")
        self._links: dict[int, list[int]] = defaultdict(list)
        if "flows" in capture.schemas:
            for source, target in zip(*links(capture.table("flows"), spans), strict=True):
                self._links[int(target)].append(int(source))

    def of(self, batch: Table) -> dict[tuple[int, str | None], list[str]]:
        """Return the spans of a batch as JSON, by id and name of their process."""
        spans = self._spans
        found: dict[tuple[int, str | None], list[str]] = defaultdict(list)
        rows = batch.array("row")
        places = spans.places(rows)
        threads = [self._tasks.get(each, NOBODY) for each in batch.array("thread").tolist()]
        columns = (
            places.tolist(),
            threads,
            batch.texts("name"),
            batch.texts("category"),
            self._times(spans.start[places]),
            self._times(spans.end[places]),
            batch.array("dur").tolist(),
            self._arguments.of(rows),
        )
        for place, who, name, category, start, end, length, args in zip(*columns, strict=True):
            own = self._arguments.of_span(args)
            own += otlp.member("thread.id", otlp.integer(who.tid)) if who.tid else ""
            own += otlp.member("thread.name", otlp.string(who.thread)) if who.thread else ""
            own += otlp.member("fuchsia.category", otlp.string(category)) if category else ""
            if length < 0:
                own += otlp.member("fuchsia.unfinished", '{"boolValue":true}')
                self._dropped[UNFINISHED] += 1
            title = orjson.dumps((name or "").encode("utf-8", "replace").decode()).decode()
            found[who.pid, who.process].append(
                f'{{{self._identity(place)},"name":{title},"kind":{INTERNAL},'
                f'"startTimeUnixNano":"{start}","endTimeUnixNano":"{end}"'
                f"{_listed('attributes', own)}{_listed('links', self._linked(place))}}}"
            )
        return found

    def _identity(self, place: int) -> str:
        trace, span = self._spans.ids(place)
        above = int(self._spans.parent[place])
        parent = f',"parentSpanId":"{self._spans.ids(above)[1]}"' if above >= 0 else ""
        return f'"traceId":"{trace}","spanId":"{span}"{parent}'

    def _linked(self, place: int) -> str:
        """Return links to the spans whose flows end in this one, each preceded by a comma."""
        pairs = (self._spans.ids(source) for source in self._links.get(place, ()))
        return "".join(f',{{"traceId":"{trace}","spanId":"{span}"}}' for trace, span in pairs)

    def _times(self, ns: NDArray[np.int64]) -> Iterator[int]:
        for each in ns.tolist():
            moment = each + self._offset
            if moment < 0:
                self._dropped[EARLY] += 1
            yield min(max(moment, 0), NS_MAX)


def _listed(name: str, items: str) -> str:
    """Return a JSON member with a list of items; the empty string if there are none."""
    return f',"{name}":[{items[1:]}]' if items else ""
