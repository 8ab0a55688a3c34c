"""Captures whose slices are what a test says, and what comes of them by plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import attrs
from hypothesis import strategies as st

from fxframework.errors import Catalogue
from fxframework.io.source import Source
from fxframework.model.capture import CallColumns, Capture, OpenRequest, Record, Summary
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.schema import STANDARD_TABLES, Column, TableSchema
from fxframework.model.table import Table

NUMBERED = STANDARD_TABLES["slices"].extended(
    Column("toy_function", "u4", "which"), Column("toy_ticks", "i8", "length"),
    Column("toy_end", "u1", "how it ended"),
)  # fmt: skip
FUNCTIONS = TableSchema(
    "toy_functions",
    "a function",
    (Column("id", "u4", "id"), Column("name", "code", "name"), Column("source", "code", "where")),
)


@attrs.frozen
class Call:
    """One slice."""

    name: str
    start: int = 0
    dur: int = 1
    parent: int = -1
    thread: int = 0
    depth: int = 0
    kind: int = 3


class Given(Capture):
    """A capture of these calls; the ids of functions are 10, 20, … in order of their names."""

    format = "given"
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        name: STANDARD_TABLES[name] for name in ("processes", "threads", "slices", "instants")
    }

    def __init__(self, calls: Sequence[Call], instants: Sequence[tuple[str, str]] = ()) -> None:
        diagnostics = Diagnostics(Catalogue([]), limit=10)
        super().__init__(Source.open(b""), OpenRequest(), diagnostics)
        self.given = list(calls)
        self.instants = list(instants)

    def records(self) -> Iterator[Record]:
        return iter(())

    def scan(self) -> None:
        pass

    def summary(self) -> Summary:
        return Summary(records=len(self.given), kinds={"call": len(self.given)}, start_ns=0,
                       end_ns=1, facts={})  # fmt: skip

    def _columns(self, name: str) -> dict[str, Any]:
        if name == "slices":
            fields = ("name", "dur", "parent", "thread", "depth", "kind")
            columns = {field: [getattr(call, field) for call in self.given] for field in fields}
            return {**columns, "ts": [call.start for call in self.given]}
        if name == "instants":
            return {"category": [category for category, _ in self.instants],
                    "name": [name for _, name in self.instants]}  # fmt: skip
        if name == "threads":
            ids = sorted({call.thread for call in self.given if call.thread >= 0})
            return {"id": ids, "pid": [7] * len(ids), "tid": [100 + one for one in ids],
                    "name": ["main" if one == 0 else None for one in ids]}  # fmt: skip
        return {}

    def _table(self, name: str) -> Table:
        return Table.of(self.schemas[name], self.strings, **self._columns(name))

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        whole = self._table(name)
        return (whole.select(slice(at, at + rows)) for at in range(0, len(whole), rows))


class Numbered(Given):
    """The same with numbered functions, and lengths of three ticks a nanosecond."""

    schemas: ClassVar[Mapping[str, TableSchema]] = {
        **Given.schemas, "slices": NUMBERED, "toy_functions": FUNCTIONS
    }  # fmt: skip
    calls = CallColumns(
        function="toy_function", ticks="toy_ticks", ended="toy_end", functions="toy_functions"
    )
    ticks_per_second = 3_000_000_000

    def _columns(self, name: str) -> dict[str, Any]:
        names = sorted({call.name for call in self.given})
        if name == "toy_functions":
            return {"id": [10 * (at + 1) for at in range(len(names))], "name": names,
                    "source": [f"{one}.c:3:1" for one in names]}  # fmt: skip
        columns = super()._columns(name)
        if name == "slices":
            columns["toy_function"] = [10 * (names.index(call.name) + 1) for call in self.given]
            columns["toy_ticks"] = [3 * one.dur if one.dur >= 0 else -1 for one in self.given]
        return columns


@st.composite
def nested_calls(draw: st.DrawFn) -> list[Call]:
    """Calls that nest, on up to three threads, some of them never closed; rows in any order."""
    drawn: list[Call] = []
    for thread in range(draw(st.integers(1, 3))):
        stack: list[tuple[str, int, int]] = []
        parents: list[int] = []
        places: list[int] = []
        now = 0
        for action in draw(st.lists(st.integers(0, 5), max_size=30)):
            now += draw(st.integers(0, 9))
            if action < 3:
                drawn.append(Call("", now, -1, places[-1] if places else -1, thread, len(places)))
                stack.append(("fgh"[action], now, len(drawn) - 1))
                places.append(len(drawn) - 1)
                parents.append(places[-1])
                drawn[-1] = attrs.evolve(drawn[-1], name="fgh"[action])
            elif stack:
                _, start, place = stack.pop()
                places.pop()
                drawn[place] = attrs.evolve(drawn[place], dur=now - start)
    order = draw(st.permutations(range(len(drawn))))
    place_of = {old: new for new, old in enumerate(order)}
    return [attrs.evolve(drawn[old], parent=place_of.get(drawn[old].parent, -1)) for old in order]


def path_of(calls: Sequence[Call], place: int) -> tuple[str, ...]:
    """The names of the calls around one, and its own."""
    names: list[str] = []
    while place >= 0:
        names.append(calls[place].name)
        place = calls[place].parent
    return tuple(reversed(names))


def own_time(calls: Sequence[Call], place: int) -> int:
    """The time of an ended call without that of ended calls right within it."""
    within = sum(one.dur for one in calls if one.parent == place and one.dur >= 0)
    return max(calls[place].dur, 0) - within if calls[place].dur >= 0 else 0
