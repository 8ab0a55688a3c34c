from typing import Any

from fx_trace.read.other_records import OtherRecords
from fxframework.kernels.pools import Pool
from fxframework.kernels.rows import Notes

class Scan(OtherRecords):
    limit: int
    most: int
    pos: int
    full: bool
    koids: bool
    counter_rows: int
    arg_rows: int
    end_args: int
    types_seen: int
    category: int
    ahead: memoryview[int]
    kinds: memoryview[int]
    bare: memoryview[int]
    incoming_weight: int
    outgoing_weight: int
    weight: int
    process_name: int
    def __init__(self, words: Any, streams: Any, data: Any, pool: Pool, notes: Notes) -> None: ...
    def run(self) -> int: ...
    def jump(self, pos: int, total: int) -> None: ...
