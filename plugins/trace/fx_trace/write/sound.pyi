from typing import Any

from fx_trace.read.framing import RecordBounds
from fx_trace.write.registrations import Registrations
from fxframework.kernels.alignment import Judge

class SoundRecords:
    words: memoryview[int]
    records: RecordBounds
    registrations: Registrations
    max_record: int
    switches: bool
    pos: int
    until: int
    stopped: bool
    count: int
    total: int
    def __init__(self, words: Any) -> None: ...
    def run(self) -> int: ...
    def limit(self, end: int) -> None: ...
    def register(self, at: int) -> None: ...

class TraceJudge(Judge):
    bounds: RecordBounds
    def __init__(self) -> None: ...
