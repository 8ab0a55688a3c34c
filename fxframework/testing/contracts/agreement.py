"""Agreement: what records, rows, findings and the summary of one capture say of each other.

Nothing here knows a format. Each function raises AssertionError, whose first line names the fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.model.capture import Capture, Record
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.schema import SLICE_KINDS, TABLE_CODES
from fxframework.model.table import Table

__all__ = [
    "AGREEMENTS",
    "check_arguments",
    "check_enumerations",
    "check_finding_places",
    "check_names",
    "check_nesting",
    "check_people",
    "check_record_times",
    "check_row_offsets",
    "check_summary",
]

NAMED = ("slices", "instants", "counters", "flows", "args", "nodes", "properties")
"""Tables whose rows must have a name."""
DETAILS = ("args", "blobs")
"""Tables whose rows may come from a part of a record."""
ASYNC = next(number for number, name in SLICE_KINDS.items() if name == "async")
NOT_GIVEN = 255
"""What a byte of an enumeration holds where the format does not say."""
OWN_TABLES = 128
"""Codes of tables from here on are the plugin's own."""
I64 = NDArray[np.int64]


def _standard(capture: Capture, name: str) -> Table | None:
    """A table; None where the capture does not fill it."""
    return capture.table(name) if name in capture.schemas else None


def _event_tables(capture: Capture) -> Iterator[Table]:
    """The tables whose rows have a time and a place."""
    for name in capture.schemas:
        table = capture.table(name)
        if "ts" in table and "offset" in table and len(table):
            yield table


def check_row_offsets(capture: Capture, records: Sequence[Record]) -> None:
    """The ``offset`` of each row is that of a record; of a detail of a row, it lies in one."""
    begins = np.array(sorted(record.offset for record in records), np.int64)
    for name in capture.schemas:
        table = capture.table(name)
        if "offset" not in table or not len(table):
            continue
        offsets = table.array("offset")
        if name in DETAILS or table.schema.parent_table is not None:
            size = capture.source.size
            wrong = np.flatnonzero((offsets < 0) | (offsets >= max(size, 1)))
        else:
            wrong = np.flatnonzero(~np.isin(offsets, begins))
        if wrong.size:
            row = int(wrong[0])
            raise AssertionError(
                f"row offset: {name} row {row} says offset {offsets[row]}, where no record begins"
            )


def check_record_times(capture: Capture, records: Sequence[Record]) -> None:
    """The ``ns`` of a record is the ``ts`` of the rows that come from it."""
    times = {r.offset: ns for r in records if (ns := getattr(r, "ns", None)) is not None}
    for offset, ns in times.items():
        if isinstance(ns, bool) or not isinstance(ns, int | np.integer):
            raise AssertionError(f"ns of the record at byte {offset} is {ns!r}, not an integer")
    begins = {record.offset for record in records}
    for table in _event_tables(capture):
        offsets, ts = table.array("offset").tolist(), table.array("ts").tolist()
        for row, (offset, found) in enumerate(zip(offsets, ts, strict=True)):
            if offset not in begins:
                continue  # which is another fault
            if times.get(offset, found) != found:
                raise AssertionError(
                    f"record time: the record at byte {offset} has ns {times[offset]}, its row "
                    f"{row} in {table.name} has ts {found}"
                )
            if capture.timed_records and offset not in times and NS_MIN < found < NS_MAX:
                raise AssertionError(
                    f"record time: {table.name} row {row} has ts {found}, but its record at byte "
                    f"{offset} has no ns, although timed_records says that all have"
                )


def check_finding_places(capture: Capture, records: Sequence[Record]) -> None:
    """The record of a finding exists, and its offset lies in that record."""
    places = sorted((record.offset, record.nbytes) for record in records)
    for found in capture.diagnostics:
        if found.record is None:
            continue
        if not 0 <= found.record < max(len(records), 1):
            raise AssertionError(
                f"finding's record: {found.code} is of record {found.record}, but there are "
                f"{len(records)} records"
            )
        if found.offset is None or not places:
            continue
        record = records[found.record]
        # The end of a record that is cut off is where its rest is missing.
        if not record.offset <= found.offset <= record.offset + record.nbytes:
            raise AssertionError(
                f"finding's place: {found.code} is at byte {found.offset} of record "
                f"{found.record}, which is bytes {record.offset} to "
                f"{record.offset + record.nbytes}"
            )


def check_summary(capture: Capture, records: Sequence[Record]) -> None:
    """Start, end and rows of the summary are those of the tables.

    A record that has a time and no row, such as the end of a slice whose beginning is lost, counts
    as well.
    """
    summary = capture.summary()
    for name, count in summary.rows.items():
        if name not in capture.schemas:
            raise AssertionError(
                f"summary's rows: it counts rows of {name!r}, which is not a table"
            )
        there = len(capture.table(name))
        if count != there:
            raise AssertionError(f"summary's rows: it counts {count} of {name}, there are {there}")
    if summary.rows:
        left_out = [n for n in capture.schemas if n not in summary.rows and len(capture.table(n))]
        if left_out:
            raise AssertionError(f"summary's rows: it leaves out {', '.join(left_out)}")
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
    if summary.start_ns is None or summary.end_ns is None:
        raise AssertionError("summary's times: it has none, although rows have a ts")
    if summary.start_ns not in {min(firsts), min([*firsts, *own])}:
        raise AssertionError(
            f"summary's start is {summary.start_ns}, the least ts of all rows is {min(firsts)}"
        )
    if not max(lasts) <= summary.end_ns <= max([*ends, *own]):
        raise AssertionError(
            f"summary's end is {summary.end_ns}, the last row begins at {max(lasts)} and the last "
            f"slice ends at {max(ends)}"
        )


def check_nesting(capture: Capture) -> None:
    """The depth of a slice is its parent's and one more; parents enclose it, on its thread.

    Times are compared where the capture has no findings: a clock that goes back is one.
    """
    slices = _standard(capture, "slices")
    if slices is None or not len(slices):
        return
    ts, dur = slices.array("ts"), slices.array("dur")
    parent, depth = slices.array("parent"), slices.array("depth")
    inner = np.flatnonzero(parent >= 0)
    outer = parent[inner]
    deeper = depth[outer] + 1
    limit = capture.request.limits.max_depth or np.iinfo(np.int32).max
    wrong = inner[(depth[inner] != deeper) & (depth[inner] < limit)]
    if wrong.size:
        row = int(wrong[0])
        raise AssertionError(
            f"depth: slice {row} is at depth {depth[row]}, its parent {parent[row]} at "
            f"{depth[parent[row]]}"
        )
    loose = np.flatnonzero((parent < 0) & (depth != 0))
    if loose.size:
        raise AssertionError(
            f"depth: slice {loose[0]} is at depth {depth[loose[0]]}, and has no parent"
        )
    if len(capture.diagnostics):
        return  # of what a finding is about, times need not fit
    begin = ts[outer] <= ts[inner]
    open_ended = (dur[outer] < 0) | (dur[inner] < 0)
    end = ts[inner] + dur[inner] <= ts[outer] + dur[outer]
    for fits, what in ((begin, "begins before"), (end | open_ended, "ends after")):
        wrong = inner[~fits]
        if wrong.size:
            row = int(wrong[0])
            raise AssertionError(
                f"nesting: slice {row} {what} its parent {parent[row]}: {_span(slices, row)} in "
                f"{_span(slices, int(parent[row]))}"
            )
    thread, kind = slices.array("thread"), slices.array("kind")
    other = inner[(thread[inner] != thread[outer]) & (kind[inner] != ASYNC)]
    if other.size:
        row = int(other[0])
        raise AssertionError(
            f"nesting: slice {row} is on thread {thread[row]}, its parent {parent[row]} on "
            f"{thread[parent[row]]}"
        )


def _span(slices: Table, row: int) -> str:
    ts, dur = int(slices.array("ts")[row]), int(slices.array("dur")[row])
    return f"{ts} to {ts + dur if dur >= 0 else 'the end'}"


def check_arguments(capture: Capture) -> None:
    """``int`` and ``uint`` of an argument are the same 64 bits; it belongs to a row."""
    args = _standard(capture, "args")
    if args is None or not len(args):
        return
    signed, unsigned = args.array("int"), args.array("uint")
    wrong = np.flatnonzero(signed.view(np.uint64) != unsigned)
    if wrong.size:
        row = int(wrong[0])
        raise AssertionError(
            f"int and uint of args row {row} are {signed[row]} and {unsigned[row]}: not the same "
            "64 bits"
        )
    codes, owners = args.array("table"), args.array("parent")
    names = {code: name for name, code in TABLE_CODES.items()}
    for code in np.unique(codes).tolist():
        name = names.get(code)
        if name is None and code >= OWN_TABLES:
            continue
        if name is None:
            raise AssertionError(f"args: the table {code} of a row is none of the standard tables")
        if name not in capture.schemas and bool((owners[codes == code] >= 0).any()):
            raise AssertionError(f"args: rows belong to {name}, which the capture does not fill")
        if name in capture.schemas:
            _check_owners(capture.table(name), args, codes == code)


def _check_owners(owners: Table, args: Table, mine: NDArray[np.bool_]) -> None:
    """An argument that comes from the record of a row belongs to a row of that record."""
    parents, offsets = args.array("parent")[mine], args.array("offset")[mine]
    rows = owners.array("row")
    there = offsets[parents >= 0]
    parents = parents[parents >= 0]
    if not len(rows) or not parents.size or parents.max() >= len(rows):
        return
    own = owners.array("offset")
    # Of a record that has a row of this table, the arguments belong to one of these.
    strayed = np.flatnonzero(np.isin(there, own) & (own[parents] != there))
    if strayed.size:
        first = int(strayed[0])
        raise AssertionError(
            f"args: an argument of the record at byte {there[first]} belongs to row "
            f"{parents[first]} of {owners.name}, which is of the record at byte "
            f"{own[parents[first]]}"
        )


def check_names(capture: Capture) -> None:
    """Rows have names, and these are text, not what Python shows of bytes.

    A row may be without a name in a capture that has findings.
    """
    for name in capture.schemas:
        table = capture.table(name)
        if name in NAMED and not len(capture.diagnostics):
            codes = table.array("name")
            wrong = np.flatnonzero(codes < 0)
            if wrong.size:
                raise AssertionError(f"null name: {name} row {wrong[0]} has no name")
        for column in table.schema.all_columns:
            if column.kind != "code":
                continue
            for code in np.unique(table.array(column.name)).tolist():
                text = table.pool.bytes_of(code) if 0 <= code < len(table.pool) else b""
                if re.fullmatch(rb"b(['\"]).*\1", text):
                    raise AssertionError(
                        f"name: {name}.{column.name} has {text.decode()!r}, which Python shows of "
                        "bytes; intern the bytes themselves"
                    )


def check_enumerations(capture: Capture) -> None:
    """A column of an enumeration holds numbers that it names."""
    for name in capture.schemas:
        table = capture.table(name)
        for column in table.schema.all_columns:
            if not column.values or not len(table):
                continue
            found = np.unique(table.array(column.name)).tolist()
            odd = sorted(set(found) - {*column.values, NOT_GIVEN})
            if (name, column.name) == ("args", "table"):
                odd = [code for code in odd if code < OWN_TABLES]
            if odd:
                raise AssertionError(
                    f"enumeration: {name}.{column.name} has {odd[0]}, which names none of "
                    f"{', '.join(column.values.values())}"
                )
    counters = _standard(capture, "counters")
    if counters is not None and len(counters):
        whole = counters.array("is_int")
        exact, value = counters.array("value_int"), counters.array("value")
        either = (exact.astype(np.float64) == value) | (
            exact.view(np.uint64).astype(np.float64) == value
        )
        wrong = np.flatnonzero(whole & ~either)
        if wrong.size:
            row = int(wrong[0])
            raise AssertionError(
                f"counters row {row}: value is {value[row]}, the exact value_int {exact[row]}"
            )


def check_people(capture: Capture) -> None:
    """Threads and processes are there once; those whose numbers are not known are 0/0."""
    threads = _standard(capture, "threads")
    if threads is not None and len(threads):
        _check_once("threads", [threads.array("id")], "id")
        known = (threads.array("pid") != 0) | (threads.array("tid") != 0)
        people = [threads.array(name)[known] for name in ("pid", "tid")]
        _check_once("threads", people, "pid and tid")
    processes = _standard(capture, "processes")
    if processes is not None and len(processes):
        _check_once("processes", [processes.array("pid")], "pid")


def _check_once(table: str, columns: Sequence[NDArray[Any]], what: str) -> None:
    each = list(zip(*(column.tolist() for column in columns), strict=True))
    twice = next((one for n, one in enumerate(each) if one in set(each[:n])), None)
    if twice is not None:
        shown = "/".join(map(str, twice))
        raise AssertionError(f"{table}: two rows have the {what} {shown}")


def _with_records(
    check: Callable[[Capture, Sequence[Record]], None],
) -> Callable[[Capture], None]:
    def run(capture: Capture) -> None:
        check(capture, list(capture.records()))

    return run


AGREEMENTS: dict[str, Callable[[Capture], None]] = {
    "row offsets": _with_records(check_row_offsets),
    "record times": _with_records(check_record_times),
    "finding places": _with_records(check_finding_places),
    "summary": _with_records(check_summary),
    "nesting": check_nesting,
    "arguments": check_arguments,
    "names": check_names,
    "enumerations": check_enumerations,
    "people": check_people,
}
"""All checks of a capture by what they are about."""
