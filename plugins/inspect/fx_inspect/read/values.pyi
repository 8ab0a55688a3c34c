from fx_inspect.read.scan import Scan
from fx_inspect.read.texts import Texts
from fxframework.kernels.rows import Notes

class Values:
    words: memoryview[int]
    scan: Scan
    notes: Notes
    string_length: memoryview[int]
    uses: memoryview[int]
    refs: memoryview[int]
    children: memoryview[int]
    seen: memoryview[int]
    nodes: int
    rows: int
    links: int
    node_parent: memoryview[int]
    node_name: memoryview[int]
    node_block: memoryview[int]
    name: memoryview[int]
    node: memoryview[int]
    block: memoryview[int]
    source: memoryview[int]
    type: memoryview[int]
    format: memoryview[int]
    bits: memoryview[int]
    length: memoryview[int]
    link_name: memoryview[int]
    link_node: memoryview[int]
    link_block: memoryview[int]
    link_content: memoryview[int]
    link_disposition: memoryview[int]
    seen_types: int
    parent: int
    named: int
    about: int
    fault: int
    def __init__(self, scan: Scan, texts: Texts, words: memoryview, notes: Notes) -> None: ...
    def run(self) -> int: ...

class Validator:
    words: memoryview[int]
    scan: Scan
    notes: Notes
    owner: memoryview[int]
    twice: memoryview[int]
    refs: memoryview[int]
    children: memoryview[int]
    def __init__(
        self, scan: Scan, texts: Texts, values: Values, words: memoryview, notes: Notes
    ) -> None: ...
    def run(self) -> int: ...
