from fx_inspect.read.scan import Scan
from fxframework.kernels.pools import Pool
from fxframework.kernels.rows import Notes

class TextCopy:
    words: memoryview[int]
    data: memoryview[int]
    scan: Scan
    out: memoryview[int]
    def __init__(self, scan: Scan, words: memoryview, data: memoryview) -> None: ...
    def to(self, out: memoryview) -> None: ...

class Texts:
    words: memoryview[int]
    scan: Scan
    notes: Notes
    max_string: int
    length: memoryview[int]
    buffer: memoryview[int]
    owner: memoryview[int]
    twice: memoryview[int]
    copy: TextCopy
    left: int
    rest: int
    fault: int
    def __init__(
        self, scan: Scan, words: memoryview, data: memoryview, max_string: int, notes: Notes
    ) -> None: ...
    def run(self) -> int: ...

class Interning:
    scan: Scan
    copy: TextCopy
    length: memoryview[int]
    uses: memoryview[int]
    pool: Pool
    code: memoryview[int]
    def __init__(
        self,
        scan: Scan,
        copy: TextCopy,
        length: memoryview,
        uses: memoryview,
        longest: int,
        pool: Pool,
    ) -> None: ...
    def run(self) -> int: ...

class TextColumnFill:
    copy: TextCopy
    source: memoryview[int]
    offsets: memoryview[int]
    rows: int
    def __init__(
        self, copy: TextCopy, source: memoryview, offsets: memoryview, out: memoryview
    ) -> None: ...
    def run(self) -> int: ...
