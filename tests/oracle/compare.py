"""Perfetto's tables and ours as comparable values.

Both sides become multisets of tuples, so that a difference names itself. Ours need nothing but a
capture: the standard tables, as `fxframework.open` gives them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from fxframework.model.capture import Capture
from fxframework.model.schema import ARG_TYPES, TABLE_CODES
from fxframework.model.table import Table

from .perfetto import LoadedTrace, Row

View = dict[str, Counter[Any]]
"""Multisets by what they hold."""

NOT_GIVEN = -1
INT32_MIN = -(1 << 31)
ASYNC, ASYNC_SCOPE = 2, 255
STATES = {0: "R", 1: "R", 2: "T", 3: "S", 4: "Z", 5: "X"}

QUERIES = {
    "slices": """
        select s.id, s.ts, s.dur, s.name, s.category, s.depth, s.parent_id, s.arg_set_id,
               t.tid, p.pid, tr.type
        from slice s join track tr on tr.id = s.track_id
        left join thread_track tt on tt.id = s.track_id
        left join thread t using (utid) left join process p using (upid)""",
    "args": "select arg_set_id, key, value_type, int_value, real_value, string_value from args",
    "counters": """
        select c.ts, c.value, ct.name, p.pid
        from counter c join process_counter_track ct on ct.id = c.track_id
        join process p using (upid)""",
    "flows": "select slice_out, slice_in from flow",
    "sched": """
        select ts, dur, cpu, end_state, priority, t.tid
        from sched_slice join thread t using (utid)""",
    "wakeups": """
        select ts, cpu, t.tid from thread_state join thread t using (utid) where state = 'W'""",
    "processes": "select pid, name from process where name is not null",
    "threads": "select tid, name from thread where name is not null",
}


def signed(value: int) -> int:
    """64 bits as Perfetto shows them."""
    return value - (1 << 64) if value >> 63 else value


# --- Perfetto's side -----------------------------------------------------------------------------


def theirs(trace: LoadedTrace) -> View:
    """What Perfetto makes of a trace."""
    rows = trace.queries(QUERIES)
    args: dict[int, list[Any]] = defaultdict(list)
    for row in rows["args"]:
        kind = row["value_type"]
        value = row[{"string": "string_value", "real": "real_value"}.get(kind, "int_value")]
        if kind == "real":  # an infinity is a text in JSON
            value = repr(float(value))
        args[row["arg_set_id"]].append((row["key"], kind, value))
    by_id = {row["id"]: row for row in rows["slices"]}
    view: View = {
        "slices": Counter(),
        "nesting": Counter(),
        "async": Counter(),
        "flows": Counter(),
    }
    for row in rows["slices"]:
        shown = sorted(args.get(row["arg_set_id"], []), key=repr)
        what = (row["ts"], row["dur"], row["name"], row["category"] or "", tuple(shown))
        if row["type"] == "thread_execution":
            view["slices"][row["pid"], row["tid"], *what] += 1
            if not _is_instant(row):
                view["nesting"][path(row, by_id)] += 1
        else:
            view["async"][what] += 1
    for row in rows["flows"]:
        ends = (by_id[row["slice_out"]], by_id[row["slice_in"]])
        view["flows"][tuple((end["ts"], end["name"]) for end in ends)] += 1
    view["counters"] = Counter(
        (row["pid"], row["name"], row["ts"], float(row["value"])) for row in rows["counters"]
    )
    view["sched"] = Counter(
        (row["cpu"], row["ts"], row["dur"], row["tid"], row["priority"], row["end_state"])
        for row in rows["sched"]
    )
    view["wakeups"] = Counter((row["ts"], row["cpu"], row["tid"]) for row in rows["wakeups"])
    view["processes"] = Counter((row["pid"], row["name"]) for row in rows["processes"])
    view["threads"] = Counter((row["tid"], row["name"]) for row in rows["threads"])
    return view


def _is_instant(row: Row) -> bool:
    """Perfetto keeps instants as slices of no length; the generated ones are named so."""
    return row["dur"] == 0 and row["name"].startswith("instant")


def path(row: Row | None, rows: Mapping[int, Row], parent: str = "parent_id") -> tuple[Any, ...]:
    """A slice and those that enclose it, which are as many as its depth says."""
    found = []
    depth = row["depth"] if row else 0
    while row is not None:
        found.append((row["ts"], row["name"]))
        row = rows.get(row[parent])
    assert depth == len(found) - 1
    return tuple(found)


# --- Our side ------------------------------------------------------------------------------------


def ours(capture: Capture) -> View:
    """What we make of a trace, in Perfetto's words."""
    threads = capture.table("threads")
    tasks = dict(
        zip(
            threads.array("id").tolist(),
            zip(threads.array("pid").tolist(), threads.array("tid").tolist(), strict=True),
            strict=True,
        )
    )
    slices = _rows(capture.table("slices"))
    args = _args(capture.table("args"), {row["row"]: row["offset"] for row in slices})
    by_row = {row["row"]: row for row in slices}
    view: View = {"slices": Counter(), "nesting": Counter(), "async": Counter()}
    for table, rows in (("slices", slices), ("instants", _rows(capture.table("instants")))):
        for row in rows:
            shown = sorted(args.get((table, row["row"]), []), key=repr)
            length = row.get("dur", 0)
            what = (row["ts"], length, row["name"], row["category"], tuple(shown))
            if row.get("kind") == ASYNC or row.get("scope") == ASYNC_SCOPE:
                view["async"][what] += 1
                continue
            view["slices"][*tasks[row["thread"]], *what] += 1
            if table == "slices":
                view["nesting"][path(row, by_row, "parent")] += 1
    view["flows"] = Counter(_arrows(_rows(capture.table("flows")), by_row))
    view["counters"] = Counter(
        (
            tasks[row["thread"]][0],
            f"{row['name']}:{row['series']}:{row['id']}",
            row["ts"],
            row["value"],
        )
        for row in _rows(capture.table("counters"))
    )
    sched = _rows(capture.table("sched"))
    view["sched"] = Counter(_running(sched, tasks))
    view["wakeups"] = Counter(
        (row["ts"], row["cpu"], tasks[row["next"]][1]) for row in sched if row["kind"] == 2
    )
    view["processes"] = Counter(
        (row["pid"], row["name"])
        for row in _rows(capture.table("processes"))
        if row["name"] is not None
    )
    # A thread without a process in one record and with one in another is two to Perfetto.
    view["threads"] = Counter(
        {(row["tid"], row["name"]) for row in _rows(threads) if row["name"] is not None}
    )
    return view


def _rows(table: Table) -> list[Row]:
    columns = {
        column.name: table.texts(column.name)
        if column.kind in {"code", "text"}
        else table.array(column.name).tolist()
        for column in table.schema.all_columns
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _args(table: Table, begins: Mapping[int, int]) -> dict[tuple[str, int], list[Any]]:
    """Arguments by their owner; of several with one name the last (divergence `arg-repeated`).

    Those of a slice's end come last, wherever it stands in the file: Perfetto takes events by
    time. ``begins`` has the offset at which a slice begins.
    """
    names = {code: name for name, code in TABLE_CODES.items()}

    def is_of_end(row: Row) -> bool:
        at = row["offset"]
        return names.get(row["table"]) == "slices" and begins.get(row["parent"], at) != at

    out: dict[tuple[str, int], dict[str, Any]] = defaultdict(dict)
    for row in sorted(_rows(table), key=is_of_end):
        owner = names.get(row["table"])
        if owner is None or row["parent"] < 0:
            continue
        out[owner, row["parent"]][row["name"]] = (row["name"], *_argument(row))
    return {owner: list(args.values()) for owner, args in out.items()}


def _argument(row: Row) -> tuple[str, Any]:
    kind = ARG_TYPES[row["type"]]
    if kind in {"int32", "uint32", "int64", "uint64", "koid"}:
        return "int", row["int"]
    if kind == "pointer":
        return "pointer", row["int"]
    if kind == "bool":
        return "bool", row["int"]
    if kind == "double":
        return "real", repr(row["float"])
    return "string", {"null": "null", "blob": "unknown"}.get(kind, row["str"])


def _arrows(flows: Iterable[Row], by_row: Mapping[int, Row]) -> Iterable[Any]:
    """Pairs of slices that a flow leads between, in order of the slices."""
    last: dict[int, Row] = {}
    for row in sorted(flows, key=lambda row: row["ts"]):
        here = by_row.get(row["slice"])
        if here is None:
            continue
        number = row["id"]
        before = last.get(number)
        if row["phase"] == 0:
            last.setdefault(number, here)
            continue
        if before is None:
            continue
        first, second = sorted((before, here), key=lambda end: end["ts"])
        yield (first["ts"], first["name"]), (second["ts"], second["name"])
        last[number] = here
        if row["phase"] == 2:
            del last[number]


def _running(sched: Iterable[Row], tasks: Mapping[int, tuple[int, int]]) -> Iterable[Any]:
    """What ran where: from a switch to the next one on the same processor."""
    on_cpu: dict[int, Row] = {}
    switches = [row for row in sched if row["kind"] != 2]
    for row in sorted(switches, key=lambda row: row["ts"]):
        before = on_cpu.pop(row["cpu"], None)
        if before is not None:
            yield _ran(before, row, tasks)
        if not _is_idle(row, tasks):
            on_cpu[row["cpu"]] = row
    for row in on_cpu.values():
        yield _ran(row, None, tasks)


def _is_idle(row: Row, tasks: Mapping[int, tuple[int, int]]) -> bool:
    if row["kind"] == 0:
        return tasks[row["next"]][0] == 0 and row["next_priority"] == 0
    return bool(row["next_priority"] == INT32_MIN)


def _ran(row: Row, after: Row | None, tasks: Mapping[int, tuple[int, int]]) -> Any:
    length = -1 if after is None else after["ts"] - row["ts"]
    state = None if after is None else STATES.get(after["prev_state"])
    priority = 0 if row["next_priority"] == NOT_GIVEN else row["next_priority"]
    return row["cpu"], row["ts"], length, tasks[row["next"]][1], priority, state


# --- Differences ---------------------------------------------------------------------------------


def differences(left: View, right: View) -> dict[str, tuple[list[Any], list[Any]]]:
    """Per multiset, what only Perfetto has and what only we have."""
    return {
        what: (
            list((left[what] - right[what]).elements()),
            list((right[what] - left[what]).elements()),
        )
        for what in left
        if left[what] != right[what]
    }
