class SplitNumbers:
    types: memoryview[int]
    values: memoryview[int]
    rows: memoryview[int]
    count: int
    out: memoryview[int]
    def __init__(
        self,
        types: memoryview,
        values: memoryview,
        wanted: int,
        otherwise: int,
        rows: memoryview | None = None,
    ) -> None: ...
    def run(self) -> int: ...

class SplitCodes:
    types: memoryview[int]
    values: memoryview[int]
    count: int
    out: memoryview[int]
    def __init__(
        self, types: memoryview, values: memoryview, wanted: int, otherwise: int
    ) -> None: ...
    def run(self) -> int: ...

class Taken:
    rows: memoryview[int]
    values: memoryview[int]
    count: int
    out: memoryview[int]
    def __init__(
        self, rows: memoryview, values: memoryview, through: memoryview | None = None
    ) -> None: ...
    def run(self) -> int: ...

class CopiedStretches:
    source: memoryview[int]
    starts: memoryview[int]
    offsets: memoryview[int]
    out: memoryview[int]
    size: int
    count: int
    def __init__(
        self, source: memoryview, starts: memoryview, offsets: memoryview, out: memoryview
    ) -> None: ...
    def run(self) -> int: ...
