from typing import Any

from fx_trace.read.framing import RecordBounds
from fx_trace.read.providers import Providers
from fx_trace.read.rows import (
    ArgRows,
    BlobRows,
    CounterRows,
    EventRows,
    LogRows,
    NoteRows,
    ObjectRows,
    ProfilerRows,
    SchedRows,
)
from fxframework.kernels.pools import Pool, Utf8
from fxframework.kernels.rows import Notes

class FieldReader:
    words: memoryview[int]
    streams: memoryview[int]
    total: int
    pool: Pool
    notes: Notes
    utf8: Utf8
    bounds: RecordBounds
    providers: Providers
    events: EventRows
    args: ArgRows
    sched: SchedRows
    logs: LogRows
    blobs: BlobRows
    objects: ObjectRows
    profiler: ProfilerRows
    counters: CounterRows
    annotations: NoteRows
    max_string: int
    record: int
    sched_rows: int
    log_rows: int
    blob_rows: int
    object_rows: int
    profiler_rows: int
    large_ticks: bool
    start: int
    end: int
    at: int
    need: int
    thread: int
    name: int
    def __init__(self, words: Any, streams: Any, data: Any, pool: Pool, notes: Notes) -> None: ...
