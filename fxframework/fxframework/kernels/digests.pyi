from fxframework.kernels.pools import PairMap
from fxframework.kernels.rows import Rows

class JsonText:
    def __init__(self) -> None: ...
    def read_from(self, data: bytes) -> None: ...

class LineRows(Rows):
    digest: memoryview[int]
    kind: memoryview[int]
    start: memoryview[int]

class LineDigests:
    lines: LineRows
    kinds: PairMap
    def __init__(self) -> None: ...
    def read_from(self, data: bytes) -> None: ...
    def run(self) -> int: ...
