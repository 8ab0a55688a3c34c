"""What a fuzzer runs: every view of a trace over some bytes."""

from __future__ import annotations

from fx_trace.explain import explain
from fx_trace.reader import open_trace
from fxframework.errors import FxError
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest

LIMITS = Limits(max_unpacked=1 << 20)


def try_trace(data: bytes) -> None:
    """Read the bytes in every way there is; anything but a result or an FxError is a bug."""
    try:
        capture = open_trace(Source.open(data, limits=LIMITS), OpenRequest(limits=LIMITS))
    except FxError:
        return
    size = capture.source.size
    assert sum(record.nbytes for record in capture.records()) == size
    lines = b"".join(capture.records_json()).splitlines()
    summary = capture.summary()
    assert summary.records == len(lines)
    for name in capture.tables:
        whole = capture.table(name)
        for column in whole:
            assert len(whole[column]) == len(whole)
    for finding in capture.diagnostics:
        assert finding.offset is None or 0 <= finding.offset <= size
    streamed = open_trace(capture.source, OpenRequest(limits=LIMITS))
    for name in streamed.tables:
        assert sum(map(len, streamed.batches(name, 3))) == len(capture.table(name)), name
    if size:
        explain(capture.source, size // 2)
