def mark_numbers(values: memoryview[int], low: int, is_present: memoryview[int]) -> None: ...
def look_up(
    values: memoryview[int], low: int, table: memoryview[int], out: memoryview[int]
) -> None: ...
def pair_up(
    function: memoryview[int], parent: memoryview[int], functions: int, out: memoryview[int]
) -> None: ...
def nearest_chosen(
    rows: memoryview[int],
    parent: memoryview[int],
    place: memoryview[int],
    shortcut: memoryview[int],
    out: memoryview[int],
) -> None: ...
def account(
    group: memoryview[int],
    parent: memoryview[int],
    length: memoryview[int],
    chosen: memoryview[int],
    summed: memoryview[int],
    counts: memoryview[int],
    opened: memoryview[int],
    totals: memoryview[int],
    nested: memoryview[int],
) -> None: ...
def sort_out(
    group: memoryview[int],
    length: memoryview[int],
    chosen: memoryview[int],
    following: memoryview[int],
    out: memoryview[int],
) -> None: ...
def link_children(
    parent: memoryview[int], first_child: memoryview[int], next_sibling: memoryview[int]
) -> None: ...
def find_recursion(
    function: memoryview[int],
    parent: memoryview[int],
    first_child: memoryview[int],
    next_sibling: memoryview[int],
    active: memoryview[int],
    inner: memoryview[int],
    recursive: memoryview[int],
) -> None: ...

class TreeBuilder:
    function: memoryview[int]
    parent: memoryview[int]
    length: memoryview[int]
    thread: memoryview[int]
    roots: memoryview[int]
    row: int
    first: int
    parents: memoryview[int]
    functions: memoryview[int]
    counts: memoryview[int]
    opened: memoryview[int]
    totals: memoryview[int]
    loose: memoryview[int]
    deep: int
    def __init__(self, roots: memoryview, count: int, room: int, deepest: int) -> None: ...
    def load(
        self,
        function: memoryview,
        parent: memoryview,
        length: memoryview,
        thread: memoryview,
        node_of: memoryview,
        first_row: int,
    ) -> None: ...
    def run(self) -> int: ...

def measure_depths(parents: memoryview[int], depth: memoryview[int]) -> None: ...
def add_to_roots(
    parents: memoryview[int], values: memoryview[int], root: memoryview[int], sums: memoryview[int]
) -> None: ...
