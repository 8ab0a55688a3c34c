from fx_trace.read.rows import (
    ClockRows,
    EventRows,
    LogRows,
    ProfilerRows,
    ProviderRows,
    SchedRows,
    SegmentRows,
    ThreadRows,
)
from fxframework.kernels.pools import PairMap, Pool
from fxframework.kernels.rows import Notes

class Providers:
    pool: Pool
    notes: Notes
    events: EventRows
    sched: SchedRows
    logs: LogRows
    profiler: ProfilerRows
    record: int
    generation: int
    current: int
    clock: int
    wall: int
    ready: bool
    strings: memoryview[int]
    fresh: memoryview[int]
    threads: memoryview[int]
    numbers: PairMap
    unnamed: PairMap
    known: ThreadRows
    table: ProviderRows
    clocks: ClockRows
    segments: SegmentRows
    def __init__(
        self,
        pool: Pool,
        notes: Notes,
        events: EventRows,
        sched: SchedRows,
        logs: LogRows,
        profiler: ProfilerRows,
    ) -> None: ...
    def go_on(self) -> int: ...
