DROPPED: tuple[str, ...]
LEFT_OUT: tuple[str, ...]

class EventColumns:
    kind: memoryview[int]
    payloads: memoryview[int]
    function: memoryview[int]
    tsc: memoryview[int]
    value: memoryview[int]
    cpu: memoryview[int]
    thread: memoryview[int]
    size: memoryview[int]
    left_out: memoryview[int]
    def __init__(
        self,
        kind: memoryview,
        function: memoryview,
        tsc: memoryview,
        cpu: memoryview,
        thread: memoryview,
        value: memoryview,
        size: memoryview,
        payloads: memoryview,
        left_out: memoryview,
    ) -> None: ...

class ThreadBuffers:
    start: memoryview[int]
    room: memoryview[int]
    fill: memoryview[int]
    base: memoryview[int]
    cpu: memoryview[int]
    call: memoryview[int]
    wall: memoryview[int]
    rank: memoryview[int]
    def __init__(self, processes: memoryview, numbers: memoryview) -> None: ...

class FdrPack:
    version: int
    size: int
    buffers: ThreadBuffers
    events: EventColumns
    arena: memoryview[int]
    out: memoryview[int]
    words: memoryview[int]
    places: memoryview[int]
    walls: memoryview[int]
    counts: memoryview[int]
    row: int
    written: int
    made: int
    needed: int
    thread: int
    def __init__(
        self, *, version: int, size: int, limit: int, head: int, preamble: int, wrap: int
    ) -> None: ...
    def run(self) -> int: ...
    def end_thread(self, thread: int) -> int: ...

class BasicPack:
    version: int
    out: memoryview[int]
    processes: memoryview[int]
    numbers: memoryview[int]
    events: EventColumns
    counts: memoryview[int]
    row: int
    written: int
    def __init__(self, out: memoryview, *, version: int) -> None: ...
    def run(self) -> int: ...
