from collections.abc import Sequence

from fx_inspect.read.scan import Scan

PLACES: int

class SlotColumns:
    scan: Scan
    words: memoryview[int]
    units: memoryview[int]
    types: memoryview[int]
    starts: memoryview[int]
    code: memoryview[int]
    row: int
    wanted: int
    first: int
    stop: int
    values: memoryview[int]
    numbers: memoryview[int]
    offsets: memoryview[int]
    def __init__(
        self,
        scan: Scan,
        words: memoryview,
        rows: Sequence[memoryview],
        code: memoryview,
        row: int,
        wanted: int,
        bounds: tuple[int, int],
    ) -> None: ...
    def run(self) -> int: ...
