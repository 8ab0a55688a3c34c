from fxframework.kernels.rows import Notes

class Scan:
    words: memoryview[int]
    reserved: memoryview[int]
    notes: Notes
    nbytes: int
    units: int
    places: bool
    at: int
    most: int
    name_at: int
    type_at: int
    types: int
    max_record: int
    unit: memoryview[int]
    type: memoryview[int]
    order: memoryview[int]
    starts: memoryview[int]
    numbers: memoryview[int]
    follow: memoryview[int]
    tally: memoryview[int]
    count: int
    nodes: int
    values: int
    extents: int
    strings: int
    buffers: int
    links: int
    damaged_bytes: int
    unknown_bytes: int
    padding_bytes: int
    def __init__(
        self,
        words: memoryview,
        nbytes: int,
        layout: memoryview,
        max_record: int,
        notes: Notes,
        places: bool,
    ) -> None: ...
    def run(self) -> int: ...
