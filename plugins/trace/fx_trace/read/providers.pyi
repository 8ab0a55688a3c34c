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
from fxframework.kernels.maps import PairMap
from fxframework.kernels.notes import Notes
from fxframework.kernels.pools import Pool

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
