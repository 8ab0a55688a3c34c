from collections.abc import Sequence

from fx_inspect.read.scan import Scan
from fxframework.kernels.pools import Pool
from fxframework.kernels.rows import Notes

class TreeOrder:
    parents: memoryview[int]
    all: int
    first: memoryview[int]
    following: memoryview[int]
    place: memoryview[int]
    nodes: memoryview[int]
    count: int
    def __init__(self, parents: memoryview) -> None: ...
    def run(self) -> int: ...

class Arrangement:
    place: memoryview[int]
    given: int
    numbers: int
    starts: memoryview[int]
    rows: memoryview[int]
    count: int
    def __init__(self, owners: memoryview, order: TreeOrder) -> None: ...
    def run(self) -> int: ...

class Duplicates:
    scan: Scan
    order: TreeOrder
    notes: Notes
    seen: memoryview[int]
    node_block: memoryview[int]
    code: memoryview[int]
    block: memoryview[int]
    owner: memoryview[int]
    rows: memoryview[int]
    count: int
    def __init__(
        self,
        scan: Scan,
        order: TreeOrder,
        notes: Notes,
        strings: int,
        nodes: Sequence[memoryview],
        properties: Sequence[memoryview],
    ) -> None: ...
    def run(self) -> int: ...

class Paths:
    names: memoryview[int]
    parents: memoryview[int]
    count: int
    left: int
    pool: Pool
    code: memoryview[int]
    words: memoryview[int]
    out: memoryview[int]
    def __init__(
        self, names: memoryview, parents: memoryview, pool: Pool, longest: int, budget: int
    ) -> None: ...
    def run(self) -> int: ...
