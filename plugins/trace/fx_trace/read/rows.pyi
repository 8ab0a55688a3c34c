from fxframework.kernels.rows import Rows

class EventRows(Rows):
    kind: memoryview[int]
    thread: memoryview[int]
    category: memoryview[int]
    name: memoryview[int]
    offset: memoryview[int]
    ticks: memoryview[int]
    word: memoryview[int]

class ArgRows(Rows):
    table: memoryview[int]
    type: memoryview[int]
    name: memoryview[int]
    parent: memoryview[int]
    offset: memoryview[int]
    value: memoryview[int]

class SchedRows(Rows):
    kind: memoryview[int]
    state: memoryview[int]
    cpu: memoryview[int]
    prev_priority: memoryview[int]
    next_priority: memoryview[int]
    offset: memoryview[int]
    ticks: memoryview[int]
    prev: memoryview[int]
    next: memoryview[int]

class LogRows(Rows):
    thread: memoryview[int]
    offset: memoryview[int]
    ticks: memoryview[int]
    start: memoryview[int]
    length: memoryview[int]

class BlobRows(Rows):
    type: memoryview[int]
    name: memoryview[int]
    offset: memoryview[int]
    start: memoryview[int]
    length: memoryview[int]

class ObjectRows(Rows):
    kind: memoryview[int]
    type: memoryview[int]
    name: memoryview[int]
    offset: memoryview[int]
    value: memoryview[int]
    pid: memoryview[int]

class ProfilerRows(Rows):
    kind: memoryview[int]
    thread: memoryview[int]
    module: memoryview[int]
    name: memoryview[int]
    build_id: memoryview[int]
    flags: memoryview[int]
    offset: memoryview[int]
    ticks: memoryview[int]
    pid: memoryview[int]
    address: memoryview[int]
    size: memoryview[int]
    vaddr: memoryview[int]
    start: memoryview[int]
    length: memoryview[int]

class CounterRows(Rows):
    event: memoryview[int]
    arg: memoryview[int]

class NoteRows(Rows):
    arg: memoryview[int]
    name: memoryview[int]

class ThreadRows(Rows):
    pid: memoryview[int]
    tid: memoryview[int]
    offset: memoryview[int]
    gone: memoryview[int]

class ProviderRows(Rows):
    number: memoryview[int]
    name: memoryview[int]
    epoch: memoryview[int]
    clock: memoryview[int]
    hertz: memoryview[int]
    base: memoryview[int]
    wall: memoryview[int]
    introduced: memoryview[int]
    rate: memoryview[int]
    full: memoryview[int]
    offset: memoryview[int]

class ClockRows(Rows):
    rate: memoryview[int]
    base: memoryview[int]
    wall: memoryview[int]

class SegmentRows(Rows):
    clock: memoryview[int]
    events: memoryview[int]
    sched: memoryview[int]
    logs: memoryview[int]
    profiler: memoryview[int]
