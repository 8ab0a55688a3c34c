"""The exporter `otlp`: logs as OpenTelemetry's LogsData in its JSON form.

Each chunk of logs has a resource for each of its components; chunks bound the memory. Within a
resource, logs keep their order. The output does not depend on a reader's batches. A log written
within a slice of the same capture, or of an earlier one, has the ids of that span.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from fx_log.export.presentation import (
    NO_LOGS,
    NO_OFFSET,
    Batch,
    Forms,
    Head,
    Texts,
    leaf,
    left_out,
    process_names,
    shown_values,
    unquoted,
    utc_offset,
    walk,
)
from fx_log.severity import LEVELS, otel_number
from fxframework.analysis.spans import Spans
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.io.words import U64_MAX
from fxframework.kit.export import Export, empty_refusal
from fxframework.kit.memo import Memo
from fxframework.kit.otlp import NO_SERVICE, SCOPE, data, double, integer, member, string
from fxframework.model.capture import Capture
from fxframework.model.table import Table

Attribute = tuple[str, str]
"""Key and AnyValue of an attribute, as JSON."""
CHUNK: Final = 1 << 13
"""Most logs of a chunk."""
CHUNK_SIZE: Final = 1 << 23
"""Characters of logs after which a chunk ends."""
UNNAMED: Final = "fuchsia.unnamed"
"""Key of an argument with an empty name, which attributes cannot have."""
BOOT_TIME: Final = "fuchsia.boot_time_ns"
VERBOSITY: Final = "verbosity"
OWN_KEYS: Final = frozenset(
    {
        "process.pid",
        "thread.id",
        "code.file.path",
        "code.line.number",
        "fuchsia.tags",
        "fuchsia.severity.raw",
        "fuchsia.dropped",
        "fuchsia.rolled_out",
        BOOT_TIME,
        VERBOSITY,
    }
)
"""Keys of this exporter; a log's own key of the same name gets a number."""


class OtlpExport(Export):
    """Writes one LogsData object with the logs of all captures.

    Raises UsageError for an invalid time.
    """

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._observed = options["observed_ns"] or time.time_ns()
        if not 0 < self._observed <= U64_MAX:
            raise UsageError(
                f"invalid observed_ns {self._observed}: must be nanoseconds since 1970, from 1 to "
                "2^64-1",
                remedy="0 is the time of the export",
            )
        self._comma = '{"resourceLogs":['
        self._slices: list[_SliceIndex] = []
        """Slices of the captures so far."""
        self._logs = 0
        self._refusal: WriteRefusedError | None = None
        self._waiting: dict[str, list[str]] = {}
        """Records by the JSON of their resource."""
        self._count = 0
        self._size = 0

    def write(self, capture: Capture) -> None:
        """Add the logs of one capture.

        Raises WriteRefusedError if there are none, UsageError for an invalid offset.
        """
        if "slices" in capture.schemas and len(capture.table("slices")):
            self._slices.append(_SliceIndex(capture))
        offset = utc_offset(self._options, capture)
        records = _Records(capture, offset, self._observed, self._dropped)
        logs = 0
        for batch in walk(capture, records.attributes, self._dropped):
            logs += len(batch)
            for resource, record in records.of(batch, _identities(self._slices, batch)):
                self._waiting.setdefault(resource, []).append(record)
                self._count += 1
                self._size += len(record)
                if self._count == CHUNK or self._size >= CHUNK_SIZE:
                    self._flush()
        self._logs += logs
        self._refusal = empty_refusal(capture, NO_LOGS)
        if not logs and not self._slices:
            raise empty_refusal(capture, NO_LOGS)
        if records.offset is None:
            self._dropped[NO_OFFSET] += logs
        self._dropped += left_out(capture)

    def close(self) -> Mapping[str, int]:
        """Finish the object. Return the counts of what was left out, by name.

        Raises WriteRefusedError if the captures had only slices.
        """
        # Cleared, because the exception keeps its frames, and they keep this object.
        refusal = self._refusal
        self._refusal = None
        if refusal is not None and not self._logs:
            raise refusal
        self._flush()
        if not self._logs:
            self._sink.write(self._comma.encode())
        self._sink.write(b"]}\n")
        return super().close()

    def _flush(self) -> None:
        for resource, records in self._waiting.items():
            scope = f'"scopeLogs":[{{"scope":{{"name":"{SCOPE}"}},"logRecords":[\n'
            lines = ",\n".join(records)
            entry = f'{self._comma}{{"resource":{resource},{scope}{lines}\n]}}]}}'
            self._sink.write(entry.encode())
            self._comma = ",\n"
        self._waiting.clear()
        self._count = 0
        self._size = 0


class _Records:
    """Converts the rows of a capture to log records, each with its resource."""

    def __init__(
        self, capture: Capture, offset: int | None, observed: int, dropped: Counter[str]
    ) -> None:
        texts = Texts(capture.strings, dropped)
        self._texts = texts
        self.offset = offset
        self._between = f'","observedTimeUnixNano":"{observed}"'
        self._names = texts.pooled(_key)
        self._forms = Forms(
            string=texts.pooled(string),
            integer=integer,
            double=double,
            data=data,
            true='{"boolValue":true}',
            false='{"boolValue":false}',
            null="{}",
        )
        processes = process_names(capture)
        self._heads: Memo[tuple[Any, ...], tuple[str, str, str, bool]] = Memo(
            _HeadJson(texts, processes)
        )

    def attributes(self, args: Table) -> list[Attribute]:
        """Return the attributes of arguments."""
        keys = [self._names[code] for code in args.array("name").tolist()]
        return list(zip(keys, shown_values(args, self._forms), strict=True))

    def of(self, batch: Batch[Attribute], spans: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield resource and record of each row; ``spans`` has each span's identifying members."""
        messages = batch.messages.shown(unquoted, self._texts, special='"\\')
        for row, span in zip(batch.rows(batch.ts.tolist(), messages), spans, strict=True):
            ns, head_key, message, args, dropped_logs, rolled, verbosity = row
            resource, level, own_attributes, has_message = self._heads[head_key]
            moment = 0  # an unknown time
            if self.offset is not None and 0 < ns + self.offset <= U64_MAX:
                moment = ns + self.offset
            else:
                own_attributes += member(BOOT_TIME, integer(ns))
            if dropped_logs:
                own_attributes += member("fuchsia.dropped", integer(dropped_logs))
            if rolled:
                own_attributes += member("fuchsia.rolled_out", integer(rolled))
            if verbosity:
                own_attributes += member(VERBOSITY, integer(verbosity))
            if args:
                if len(args) > 1:
                    args = _distinct(args)
                attributes = [f',{{"key":"{name}","value":{value}}}' for name, value in args]
                own_attributes += "".join(attributes)
            log_record = f'{{"timeUnixNano":"{moment}{self._between}{level}'
            if has_message:
                log_record += f',"body":{{"stringValue":"{message}"}}'
            if own_attributes:
                log_record += f',"attributes":[{own_attributes[1:]}]'
            yield resource, f"{log_record}{span}}}"


class _SliceIndex:
    """The slices of a capture, to find the one in which a log was written."""

    def __init__(self, capture: Capture) -> None:
        self.spans = Spans.of(capture)
        self.threads: dict[tuple[int | None, int | None], int] = {}
        """Thread ids by pid and tid."""
        if "threads" in capture.schemas:
            threads = capture.table("threads")
            pids = threads.array("pid").tolist()
            tids = threads.array("tid").tolist()
            pairs = zip(pids, tids, strict=True)
            self.threads = dict(zip(pairs, threads.array("id").tolist(), strict=True))


def _identities(slices: Sequence[_SliceIndex], batch: Batch[Attribute]) -> list[str]:
    """Return the members that identify the span of each log, found by thread and time.

    If slices of several captures enclose a log, the first capture counts.
    """
    members = [""] * len(batch)
    if not slices:
        return members
    heads = [Head.of(key) for key in batch.heads]
    pids_and_tids = [(head.pid, head.tid) for head in heads]
    for index in slices:
        thread_ids = [index.threads.get(pair, -1) for pair in pids_and_tids]
        threads = np.array(thread_ids, np.int32)
        places = index.spans.enclosing(threads, batch.ts)
        for row in np.flatnonzero(places >= 0).tolist():
            if not members[row]:
                trace, span = index.spans.ids(int(places[row]))
                members[row] = f',"traceId":"{trace}","spanId":"{span}"'
    return members


class _HeadJson:
    """Renders a head: its resource, severity and attributes, and whether it has a message."""

    def __init__(self, texts: Texts, processes: Mapping[int, int]) -> None:
        self._processes = processes
        self._plain = texts.pooled(str)
        self._strings = texts.pooled(string)
        self._tags = texts.tags(string)

    def __call__(self, key: tuple[Any, ...]) -> tuple[str, str, str, bool]:
        head = Head.of(key)
        own_attributes = ""
        if head.pid is not None:
            own_attributes += member("process.pid", integer(head.pid))
        if head.tid is not None:
            own_attributes += member("thread.id", integer(head.tid))
        if head.file >= 0:
            own_attributes += member("code.file.path", self._strings[head.file])
        if head.line is not None:
            own_attributes += member("code.line.number", integer(head.line))
        if head.tags:
            tags = ",".join(self._tags[tag] for tag in head.tags)
            own_attributes += member("fuchsia.tags", f'{{"arrayValue":{{"values":[{tags}]}}}}')
        severity = ""
        if head.level >= 0:
            level = LEVELS[head.severity]
            number = otel_number(head.severity)
            severity = f',"severityNumber":{number},"severityText":"{level.name}"'
            if head.severity != level:
                own_attributes += member("fuchsia.severity.raw", integer(head.severity))
        return self._resource(head), severity, own_attributes, head.has_message

    def _resource(self, head: Head) -> str:
        service = leaf(self._plain[head.component])
        if not service and head.pid is not None:
            service = self._plain[self._processes.get(head.pid, -1)]
        service = service or NO_SERVICE
        attributes = member("service.name", string(service))
        if head.component >= 0:
            attributes += member("fuchsia.moniker", self._strings[head.component])
        if head.url >= 0:
            attributes += member("fuchsia.component_url", self._strings[head.url])
        return f'{{"attributes":[{attributes[1:]}]}}'


def _distinct(attributes: Sequence[Attribute]) -> Sequence[Attribute]:
    """Return attributes with unique names: repeated ones get ``#2``, ``#3`` and so on."""
    names = {name for name, _ in attributes}
    if len(names) == len(attributes):
        return attributes
    next_number: dict[str, int] = {}
    distinct = []
    for name, value in attributes:
        if name not in next_number:
            next_number[name] = 2
            distinct.append((name, value))
            continue
        while (numbered_name := f"{name}#{next_number[name]}") in names:
            next_number[name] += 1
        names.add(numbered_name)
        distinct.append((numbered_name, value))
    return distinct


def _key(name: str) -> str:
    """Return the key of an argument's name, as a JSON string without quotes."""
    return f"{name}#2" if name in OWN_KEYS else unquoted(name or UNNAMED)
