"""Agreement: consistency checks between records, rows, findings and summary of a capture.

The checks are independent of formats. They raise AssertionError, whose first line names the fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.model.capture import Capture, Record
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.schema import ASYNC, TABLE_CODES
from fxframework.model.table import Table

NAMED = ("slices", "instants", "counters", "flows", "args", "nodes", "properties")
"""Tables whose rows must have a name."""
DETAILS = ("args", "blobs")
"""Tables whose rows may come from a part of a record."""
REFERENCES = {
    "thread": ("threads", "id"), "prev": ("threads", "id"), "next": ("threads", "id"),
    "slices.parent": ("slices", "row"), "flows.slice": ("slices", "row"),
    "nodes.parent": ("nodes", "id"), "properties.node": ("nodes", "id"),
}  # fmt: skip
"""The table and its column that a column refers to; -1 refers to nothing."""
NOT_GIVEN = 255
"""The value of an enumeration column if the format does not specify it."""
OWN_TABLES = 128
"""The first code of a plugin's own tables."""
Records = Sequence[Record]


def _filled(capture: Capture, name: str) -> Table | None:
    """Return a table; None if it is empty or the capture does not have it."""
    table = capture.table(name) if name in capture.schemas else ()
    return table if isinstance(table, Table) and len(table) else None


def _first(wrong: NDArray[np.bool_]) -> int | None:
    """Return the first row that is marked; None if there is none."""
    rows = np.flatnonzero(wrong)
    return int(rows[0]) if rows.size else None


def _event_tables(capture: Capture) -> Iterator[Table]:
    """Yield the nonempty tables whose rows have a time and an offset."""
    for name in capture.schemas:
        table = capture.table(name)
        if "ts" in table and "offset" in table and len(table):
            yield table


def check_row_offsets(capture: Capture, records: Records) -> None:
    """Check that the ``offset`` of each row is that of a record, or in the file for details."""
    begins = np.array(sorted(record.offset for record in records), np.int64)
    for name in capture.schemas:
        table = capture.table(name)
        if "offset" not in table or not len(table):
            continue
        offsets = table.array("offset")
        if name in DETAILS or table.schema.parent_table is not None:
            row = _first((offsets < 0) | (offsets >= max(capture.source.size, 1)))
        else:
            row = _first(~np.isin(offsets, begins))
        assert row is None, (
            f"row offset: {name} row {row} says offset {offsets[row]}, where no record begins"
        )


def check_record_times(capture: Capture, records: Records) -> None:
    """Check that the ``ns`` of a record is the ``ts`` of its rows."""
    times = {r.offset: ns for r in records if (ns := getattr(r, "ns", None)) is not None}
    for offset, ns in times.items():
        whole = isinstance(ns, int | np.integer) and not isinstance(ns, bool)
        assert whole, f"ns of the record at byte {offset} is {ns!r}, not an integer"
    begins = {record.offset for record in records}
    for table in _event_tables(capture):
        offsets, ts = table.array("offset").tolist(), table.array("ts").tolist()
        for row, (offset, found) in enumerate(zip(offsets, ts, strict=True)):
            if offset not in begins:
                continue  # reported by another check
            assert times.get(offset, found) == found, (
                f"record time: the record at byte {offset} has ns {times[offset]}, its row "
                f"{row} in {table.name} has ts {found}"
            )
            untimed = capture.timed_records and offset not in times
            assert not (untimed and NS_MIN < found < NS_MAX), (
                f"record time: {table.name} row {row} has ts {found}, but its record at byte "
                f"{offset} has no ns, although timed_records says that all have"
            )


def check_finding_places(capture: Capture, records: Records) -> None:
    """Check that the record of a finding exists and contains its offset."""
    for found in capture.diagnostics:
        if found.record is None:
            continue
        assert 0 <= found.record < max(len(records), 1), (
            f"finding's record: {found.code} is of record {found.record}, but there are "
            f"{len(records)} records"
        )
        if found.offset is None or not records:
            continue
        record = records[found.record]
        # A finding about a truncated record may be at its end.
        end = record.offset + record.nbytes
        assert record.offset <= found.offset <= end, (
            f"finding's place: {found.code} is at byte {found.offset} of record {found.record}, "
            f"which is bytes {record.offset} to {end}"
        )


def check_summary(capture: Capture, records: Records) -> None:
    """Check that start, end and rows of the summary are those of the tables.

    Times of records without a row, such as the end of a slice whose beginning is lost, also count.
    """
    summary = capture.summary()
    for name, count in summary.rows.items():
        assert name in capture.schemas, (
            f"summary's rows: it counts rows of {name!r}, which is not a table"
        )
        there = len(capture.table(name))
        assert count == there, f"summary's rows: it counts {count} of {name}, there are {there}"
    if summary.rows:
        left_out = [n for n in capture.schemas if n not in summary.rows and len(capture.table(n))]
        assert not left_out, f"summary's rows: it leaves out {', '.join(left_out)}"
    firsts, lasts, ends = [], [], []
    for table in _event_tables(capture):
        ts = table.array("ts")
        firsts.append(int(ts.min()))
        lasts.append(int(ts.max()))
        longest = ts + np.maximum(table.array("dur"), 0) if "dur" in table else ts
        ends.append(int(longest.max()))
    if not firsts:
        return
    own = [int(ns) for record in records if (ns := getattr(record, "ns", None)) is not None]
    start, end = summary.start_ns, summary.end_ns
    assert start is not None and end is not None, (  # noqa: PT018 (one fault)
        "summary's times: it has none, although rows have a ts"
    )
    assert start in {min(firsts), min([*firsts, *own])}, (
        f"summary's start is {start}, the least ts of all rows is {min(firsts)}"
    )
    assert max(lasts) <= end <= max([*ends, *own]), (
        f"summary's end is {end}, the last row begins at {max(lasts)} and the last slice ends at "
        f"{max(ends)}"
    )


def check_references(capture: Capture, _records: Records) -> None:
    """Check that what rows refer to, such as threads and enclosing slices, exists."""
    for name, schema in capture.schemas.items():
        table = capture.table(name)
        for column in schema.columns:
            of = REFERENCES.get(column.name) or REFERENCES.get(f"{name}.{column.name}")
            if of is None or of[0] not in (*capture.schemas, "threads"):
                continue
            there = capture.table(of[0]).array(of[1]) if of[0] in capture.schemas else ()
            row = _first(~np.isin(table.array(column.name), [-1, *there]))
            assert row is None, (
                f"{name}.{column.name}: row {row} refers to {table.array(column.name)[row]}, which "
                f"is not in the table {of[0]}"
            )


def check_nesting(capture: Capture, _records: Records) -> None:
    """Check that a slice is one deeper than its parent, which encloses it on the same thread.

    Times are compared only if the capture has no findings, such as a clock that goes back.
    """
    slices = _filled(capture, "slices")
    if slices is None:
        return
    ts, dur = slices.array("ts"), slices.array("dur")
    parent, depth = slices.array("parent"), slices.array("depth")
    nested = parent >= 0
    if (row := _first(parent >= len(slices))) is not None:
        raise AssertionError(f"nesting: slice {row} has parent {parent[row]} of {len(slices)}")
    limit = capture.request.limits.max_depth or np.iinfo(np.int32).max
    row = _first(nested & (depth != depth[parent] + 1) & (depth < limit))
    assert row is None, (
        f"depth: slice {row} is at depth {depth[row]}, its parent {parent[row]} at "
        f"{depth[parent[row]]}"
    )
    row = _first(~nested & (depth != 0))
    assert row is None, f"depth: slice {row} is at depth {depth[row]}, and has no parent"
    row = _first(dur < -1)
    assert row is None, f"dur of slice {row} is {dur[row]}, below -1"
    if len(capture.diagnostics):
        return  # with findings, times may be inconsistent
    closed = (dur[parent] >= 0) & (dur >= 0)
    for wrong, what in (
        (ts[parent] > ts, "begins before"),
        (closed & (ts + dur > ts[parent] + dur[parent]), "ends after"),
    ):
        row = _first(nested & wrong)
        assert row is None, (
            f"nesting: slice {row} {what} its parent {parent[row]}: {_span(slices, row)} in "
            f"{_span(slices, parent[row])}"
        )
    thread, kind = slices.array("thread"), slices.array("kind")
    row = _first(nested & (thread != thread[parent]) & (kind != ASYNC))
    assert row is None, (
        f"nesting: slice {row} is on thread {thread[row]}, its parent {parent[row]} on "
        f"{thread[parent[row]]}"
    )


def _span(slices: Table, row: Any) -> str:
    ts, dur = int(slices.array("ts")[row]), int(slices.array("dur")[row])
    return f"{ts} to {ts + dur if dur >= 0 else 'the end'}"


def check_arguments(capture: Capture, _records: Records) -> None:
    """Check that ``int`` and ``uint`` of an argument are the same 64 bits, and check its row."""
    args = _filled(capture, "args")
    if args is None:
        return
    signed, unsigned = args.array("int"), args.array("uint")
    row = _first(signed.view(np.uint64) != unsigned)
    assert row is None, (
        f"int and uint of args row {row} are {signed[row]} and {unsigned[row]}: not the same 64 "
        "bits"
    )
    codes, owners = args.array("table"), args.array("parent")
    names = {code: name for name, code in TABLE_CODES.items()}
    for code in np.unique(codes).tolist():
        name = names.get(code)
        if name is None:
            assert code >= OWN_TABLES, (
                f"args: the table {code} of a row is none of the standard tables"
            )
        elif name in capture.schemas:
            _check_owners(capture.table(name), args, codes == code)
        else:
            assert not (owners[codes == code] >= 0).any(), (
                f"args: rows belong to {name}, which the capture does not fill"
            )


def _check_owners(owners: Table, args: Table, mine: NDArray[np.bool_]) -> None:
    """Check that an argument from a record with rows belongs to a row of that record."""
    parents, offsets = args.array("parent")[mine], args.array("offset")[mine]
    rows = owners.array("row")
    there = offsets[parents >= 0]
    parents = parents[parents >= 0]
    row = _first(parents >= len(rows))
    assert row is None, (
        f"args: an argument belongs to row {parents[row]} of {owners.name}, there are {len(rows)}"
    )
    if not parents.size:
        return
    own = owners.array("offset")
    # If the record of an argument has rows in this table, the argument must belong to one of them.
    row = _first(np.isin(there, own) & (own[parents] != there))
    assert row is None, (
        f"args: an argument of the record at byte {there[row]} belongs to row {parents[row]} of "
        f"{owners.name}, which is of the record at byte {own[parents[row]]}"
    )


def check_names(capture: Capture, _records: Records) -> None:
    """Check that rows have names, and that these are not the ``repr`` of bytes.

    Names may be missing in a capture with findings.
    """
    for name in capture.schemas:
        table = capture.table(name)
        if name in NAMED and not len(capture.diagnostics):
            row = _first(table.array("name") < 0)
            assert row is None, f"null name: {name} row {row} has no name"
        for column in table.schema.all_columns:
            if column.kind != "code":
                continue
            for code in np.unique(table.array(column.name)).tolist():
                text = table.pool.bytes_of(code) if 0 <= code < len(table.pool) else b""
                assert not re.fullmatch(rb"b(['\"]).*\1", text), (
                    f"name: {name}.{column.name} has {text.decode()!r}, which Python shows of "
                    "bytes; intern the bytes themselves"
                )


def check_enumerations(capture: Capture, _records: Records) -> None:
    """Check that enumeration columns contain only named values."""
    for name in capture.schemas:
        table = capture.table(name)
        for column in table.schema.all_columns:
            if not column.values or not len(table):
                continue
            found = np.unique(table.array(column.name)).tolist()
            odd = sorted(set(found) - {*column.values, NOT_GIVEN})
            if (name, column.name) == ("args", "table"):
                odd = [code for code in odd if code < OWN_TABLES]
            assert not odd, (
                f"enumeration: {name}.{column.name} has {odd[0]}, which names none of "
                f"{', '.join(column.values.values())}"
            )
    if (counters := _filled(capture, "counters")) is not None:
        exact, value = counters.array("value_int"), counters.array("value")
        differ = (exact != value) & (exact.view(np.uint64) != value)
        row = _first(counters.array("is_int") & differ)
        assert row is None, (
            f"counters row {row}: value is {value[row]}, the exact value_int {exact[row]}"
        )


def check_threads(capture: Capture, _records: Records) -> None:
    """Check that threads and processes are unique, except threads with unknown ids (0/0)."""
    if (threads := _filled(capture, "threads")) is not None:
        _check_once("threads", [threads.array("id")], "id")
        known = (threads.array("pid") != 0) | (threads.array("tid") != 0)
        tasks = [threads.array(name)[known] for name in ("pid", "tid")]
        _check_once("threads", tasks, "pid and tid")
    if (processes := _filled(capture, "processes")) is not None:
        _check_once("processes", [processes.array("pid")], "pid")


def _check_once(table: str, columns: Sequence[NDArray[Any]], what: str) -> None:
    each = list(zip(*(column.tolist() for column in columns), strict=True))
    twice = next((one for n, one in enumerate(each) if one in set(each[:n])), None)
    assert twice is None, f"{table}: two rows have the {what} {'/'.join(map(str, twice or ()))}"
