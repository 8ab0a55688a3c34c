"""What a fuzzer runs: every view of a capture, over any bytes."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import orjson

from fxframework.conversion import plan_salvage
from fxframework.errors import FxError, Severity, StrictError
from fxframework.host import Host
from fxframework.io.limits import Limits
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.capture import Capture, OpenRequest
from fxframework.registry import parse_options

__all__ = ["LIMITS", "VIEWS", "host", "try_format", "try_trace", "try_view"]

LIMITS = Limits(max_unpacked=1 << 20)
Opening = Callable[[], Capture]


@functools.cache
def host() -> Host:
    """The bundled plugins."""
    return Host(environ={"FXF_PLUGINS": "inspect,trace,log,xray,exporters"})


def try_trace(data: bytes) -> None:
    """Read the bytes as a trace, in every way there is."""
    try_format(data, "trace")


def try_format(data: bytes, format: str, **options: object) -> None:
    """Read the bytes as a format. Anything but a result or an FxError is a bug."""
    detected(data)
    try:
        source = Source.open(data, limits=LIMITS)
    except FxError:
        return  # gzip that unpacks to more than the limit
    reader = host().reader(format)
    given = parse_options(options, reader.options, whose=format)

    def opened(*, strict: bool = False) -> Capture:
        return reader.open(source, OpenRequest(limits=LIMITS, strict=strict, options=given))

    records = decoded(opened())
    whole = opened()
    tabulated(whole, records)
    streamed(opened(), whole)
    verified(whole, records)
    strictly(functools.partial(opened, strict=True), whole)
    exported(opened, source)
    salvaged(opened())
    assert reader.explain is not None
    for offset in {0, source.size // 2, source.size - 1}:
        if 0 <= offset < source.size:
            reader.explain(source, offset)


def detected(data: bytes) -> None:
    """Open the bytes as a user does, without naming a format."""
    try:
        with host().open(data) as capture:
            capture.summary()
    except FxError:
        pass  # no reader knows them, or their records file makes no sense


def decoded(capture: Capture) -> int:
    """Take all records, and the same in bulk; gives how many there are."""
    records = list(capture.records())
    assert sum(record.nbytes for record in records) == capture.source.size
    in_bulk = b"".join(capture.records_json()).splitlines()
    assert in_bulk == [orjson.dumps(record.to_json()) for record in records]
    return len(records)


def tabulated(capture: Capture, records: int) -> None:
    """Take every column of every whole table."""
    summary = capture.summary()
    assert summary.records == records
    for name in capture.tables:
        table = capture.table(name)
        assert name == "diagnostics" or summary.rows[name] == len(table), name
        for column in table.columns:
            assert len(table[column]) == len(table), (name, column)


def streamed(capture: Capture, whole: Capture) -> None:
    """Take the same in batches."""
    for name in capture.tables:
        batches = list(capture.batches(name, 3))
        assert all(0 < len(batch) <= 3 for batch in batches), name
        assert sum(map(len, batches)) == len(whole.table(name)), name


def verified(capture: Capture, records: int) -> None:
    """Look at the findings: each has a place in the input, and a rule."""
    for finding in capture.diagnostics:
        assert capture.diagnostics.rule(finding.code).section
        assert finding.offset is None or 0 <= finding.offset <= capture.source.size
        assert finding.record is None or 0 <= finding.record <= records


def strictly(opened: Opening, lenient: Capture) -> None:
    """Read strictly: it stops if, and only if, there is a loss."""
    worst = lenient.diagnostics.worst
    lossy = worst is not None and worst >= Severity.DATA_LOSS
    try:
        opened().scan()
    except StrictError:
        assert lossy
    else:
        assert not lossy


def exported(opened: Opening, source: Source) -> None:
    """Write it in every form; from record JSON the same bytes come back."""
    first = opened()
    for exporter in host().exporters_for(first.format, first.tables):
        name = exporter.name
        capture = opened()
        sink = Sink.memory()
        try:
            session = exporter.open(sink, parse_options({}, exporter.options, whose=name))
            session.write(capture)
            session.close()
        except FxError:
            assert name != "records"
            continue
        if name == "records":
            lines = sink.getvalue()
            assert lines.split(b"\n", 1)[1] == b"".join(opened().records_json())
            with host().open(lines) as again:
                assert again.source.read(0, again.source.size) == source.data.tobytes()


def salvaged(capture: Capture) -> None:
    """Write what is sound: that has no loss, and is salvaged to itself."""
    writer = host().writers.get(capture.format)
    if writer is None or not writer.suffixes:
        return
    out = f"sound{writer.suffixes[0]}"
    sink = Sink.memory()
    try:
        report = plan_salvage(host(), capture, out).run(sink)
    except FxError:
        return  # nothing in it is sound
    assert not report.remaining
    again = Sink.memory()
    sound = Source(np.frombuffer(sink.getvalue(), np.uint8), name=out)
    with host().read(sound, host().reader(capture.format), options=capture.request.options) as copy:
        plan_salvage(host(), copy, out).run(again)
    assert again.getvalue() == sink.getvalue()


# --- One view at a time: a fuzzer that counts executions tries many inputs rather than all views --


def try_view(data: bytes, format: str, view: int, **options: object) -> None:
    """Take one view (``VIEWS``) of the bytes as a format, by its number."""
    try:
        source = Source.open(data, limits=LIMITS)
    except FxError:
        return
    reader = host().reader(format)
    given = parse_options(options, reader.options, whose=format)

    def opened(*, strict: bool = False) -> Capture:
        return reader.open(source, OpenRequest(limits=LIMITS, strict=strict, options=given))

    VIEWS[view](opened, source)


def _as_records(opened: Opening, source: Source) -> None:
    decoded(opened())


def _as_tables(opened: Opening, source: Source) -> None:
    capture = opened()
    tabulated(capture, capture.summary().records)


def _as_batches(opened: Opening, source: Source) -> None:
    streamed(opened(), opened())


def _as_findings(opened: Opening, source: Source) -> None:
    capture = opened()
    verified(capture, capture.summary().records)


def _strictly(opened: Opening, source: Source) -> None:
    lenient = opened()
    lenient.scan()
    strictly(functools.partial(opened, strict=True), lenient)


def _explained(opened: Opening, source: Source) -> None:
    capture = opened()
    explain = host().reader(capture.format).explain
    if explain is None:
        return  # a text
    for offset in {0, source.size // 2, source.size - 1}:
        if 0 <= offset < source.size:
            explain(source, offset)


def _detected(opened: Opening, source: Source) -> None:
    detected(source.data.tobytes())


def _as_salvaged(opened: Opening, source: Source) -> None:
    salvaged(opened())


def _exported(opened: Opening, source: Source) -> None:
    """Write it in one of the forms."""
    first = opened()
    forms = host().exporters_for(first.format, first.tables)
    exporter = forms[source.size % len(forms)]
    given = parse_options({}, exporter.options, whose=exporter.name)
    try:
        session = exporter.open(Sink.memory(), given)
        session.write(first)
        session.close()
    except FxError:
        assert exporter.name != "records"


VIEWS: tuple[Callable[[Opening, Source], None], ...] = (
    _as_records,
    _as_tables,
    _as_batches,
    _as_findings,
    _strictly,
    _explained,
    _detected,
    _exported,
    _as_salvaged,
)
