"""Agreement: consistency checks between records, rows, findings and summary of a capture.

The checks are independent of formats. They raise AssertionError, whose first line names the fault.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.model.capture import Capture, Record, Summary, kind_of
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.schema import ASYNC, COMPLETE, TABLE_CODES
from fxframework.model.table import Table
from fxframework.testing.contracts.checks import through_json

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
UNIQUE = (("threads", ("id",)), ("threads", ("pid", "tid")), ("processes", ("pid",)))
"""Tables and the columns that identify a row."""
NOT_GIVEN = 255
"""The value of an enumeration column if the format does not specify it."""
OWN_TABLES = 128
"""The first code of a plugin's own tables."""
Records = Sequence[Record]


def check_agreement(capture: Capture) -> None:
    """Check that records, rows, findings and summary of a capture agree."""
    capture.scan()
    records = list(capture.records())
    check_row_offsets(capture, records)
    check_record_times(capture, records)
    check_finding_places(capture, records)
    check_summary(capture.summary(), capture, records)
    for check in (
        check_references, check_nesting, check_arguments, check_names, check_enumerations,
        check_threads,
    ):  # fmt: skip
        check(capture)


def _tables(capture: Capture, *names: str) -> Iterator[Table]:
    """Yield the tables of a capture that have rows: all, or those of some names."""
    for name in capture.schemas:
        if not names or name in names:
            table = capture.table(name)
            if len(table):
                yield table


def event_tables(capture: Capture) -> Iterator[Table]:
    """Yield the tables whose rows have a time and an offset, if they have rows."""
    return (table for table in _tables(capture) if "ts" in table and "offset" in table)


def _refuse(wrong: NDArray[np.bool_], fault: str, **shown: Any) -> None:
    """Check that no row is marked; ``fault`` is filled in with the first one, and its ``shown``."""
    rows = np.flatnonzero(wrong)
    if rows.size:
        first_row = rows[0]
        values = {}
        for name, column in shown.items():
            values[name] = column[first_row] if np.ndim(column) else column
        raise AssertionError(fault.format(row=rows[0], **values))


def check_row_offsets(capture: Capture, records: Records) -> None:
    """Check that the ``offset`` of each row is that of a record, or in the file for details."""
    begins = [record.offset for record in records]
    for table in _tables(capture):
        if "offset" not in table:
            continue
        offsets = table.array("offset")
        if table.name in DETAILS or table.schema.parent_table is not None:
            size = max(capture.source.size, 1)
            wrong = (offsets < 0) | (offsets >= size)
        else:
            wrong = ~np.isin(offsets, begins)
        fault = "row offset: {table} row {row} says offset {offset}, where no record begins"
        _refuse(wrong, fault, table=table.name, offset=offsets)


def check_record_times(capture: Capture, records: Records) -> None:
    """Check that the ``ns`` of a record is the ``ts`` of its rows."""
    times = {record.offset: getattr(record, "ns", None) for record in records}
    for offset, ns in times.items():
        is_bool = isinstance(ns, bool)
        is_integer = isinstance(ns, int | np.integer) and not is_bool
        assert ns is None or is_integer, (
            f"ns of the record at byte {offset} is {ns!r}, not an integer"
        )
    for table in event_tables(capture):
        for row, (offset, row_ns) in enumerate(table.tuples("offset", "ts")):
            ns = times.get(offset, row_ns)  # where no record begins, another check says so
            row_text = (
                f"record time: {table.name} row {row} has ts {row_ns}, its record at byte {offset}"
            )
            assert ns in {None, row_ns}, f"{row_text} has ns {ns}"
            is_untimed = capture.timed_records and ns is None and NS_MIN < row_ns < NS_MAX
            assert not is_untimed, (
                f"{row_text} has no ns, although timed_records says that all have"
            )


def check_finding_places(capture: Capture, records: Records) -> None:
    """Check that the record of a finding exists and contains its offset."""
    for finding in capture.diagnostics:
        if finding.record is None:
            continue
        is_record = 0 <= finding.record < max(len(records), 1)
        assert is_record, (
            f"finding's record: {finding.code} is of record {finding.record}, but there are "
            f"{len(records)} records"
        )
        if finding.offset is None or not records:
            continue
        record = records[finding.record]
        # A finding about a truncated record may be at its end.
        end = record.offset + record.nbytes
        is_inside = record.offset <= finding.offset <= end
        assert is_inside, (
            f"finding's place: {finding.code} is at byte {finding.offset} of record "
            f"{finding.record}, which is bytes {record.offset} to {end}"
        )


def check_summary(summary: Summary, capture: Capture, records: Records) -> None:
    """Check that a summary has the records, and the start, end and rows of the tables.

    Times of records without a row, such as the end of a slice whose beginning is lost, also count.
    """
    counts_by_records = Counter(_family(kind_of(record)) for record in records)
    counts_by_summary: Counter[str] = Counter()
    for kind, count in summary.kinds.items():
        counts_by_summary[_family(kind)] += count
    counts_agree = summary.records == len(records) and counts_by_summary == counts_by_records
    assert counts_agree, (
        f"summary: it counts kinds {dict(summary.kinds)}, {summary.records} in all; there are "
        f"{dict(counts_by_records)}, {len(records)} in all"
    )
    through_json(dict(summary.facts), "summary: its facts")
    lengths = {len(cells) for _, cells in summary.timeline}
    assert len(lengths) <= 1, f"summary's timeline: its rows are of the lengths {lengths}"
    row_counts = {name: len(capture.table(name)) for name in capture.schemas}
    if summary.rows:
        for name in {**summary.rows, **row_counts}:
            rows = summary.rows.get(name, 0)
            actual_count = row_counts.get(name, "no such table")
            assert rows == actual_count, (
                f"summary's rows: it counts {rows} of {name}, there are {actual_count}"
            )
    _check_summary_times(summary, capture, records)


def _check_summary_times(summary: Summary, capture: Capture, records: Records) -> None:
    first_times = []
    last_times = []
    end_times = []
    for table in event_tables(capture):
        ts = table.array("ts")
        ends = ts
        if "dur" in table:
            ends = ts + np.maximum(table.array("dur"), 0)
        first_times.append(int(ts.min()))
        last_times.append(int(ts.max()))
        end_times.append(int(ends.max()))
    if not first_times:
        return
    times_or_none = (getattr(record, "ns", None) for record in records)
    record_times = [int(ns) for ns in times_or_none if ns is not None]
    start = summary.start_ns
    end = summary.end_ns
    assert start is not None and end is not None, (  # noqa: PT018 (one fault)
        "summary's times: it has none, although rows have a ts"
    )
    earliest = min([*first_times, *record_times])
    assert start in {min(first_times), earliest}, (
        f"summary's start is {start}, the least ts of all rows is {min(first_times)}"
    )
    latest = max([*end_times, *record_times])
    assert max(last_times) <= end <= latest, (
        f"summary's end is {end}, the last row begins at {max(last_times)} and the last slice "
        f"ends at {max(end_times)}"
    )


def _family(kind: str) -> str:
    """Return the name of a record, which a kind may extend, as in ``event instant``."""
    return kind.partition(" ")[0]


def check_references(capture: Capture) -> None:
    """Check that what rows refer to, such as threads and enclosing slices, exists."""
    for table in _tables(capture):
        for column in table.schema.columns:
            place = f"{table.name}.{column.name}"
            target = REFERENCES.get(column.name) or REFERENCES.get(place)
            if target is None:
                continue
            target_table, target_column = target
            has_table = target_table in capture.schemas
            # Without a table of threads, no row may refer to one.
            if not has_table and target_table != "threads":
                continue
            targets = capture.table(target_table).array(target_column) if has_table else ()
            references = table.array(column.name)
            is_dangling = ~np.isin(references, [-1, *targets])
            fault = "{place}: row {row} refers to {given}, which is not in the table {of}"
            _refuse(is_dangling, fault, place=place, given=references, of=target_table)


def check_nesting(capture: Capture) -> None:
    """Check that a slice is one deeper than its parent, which encloses it on the same thread.

    Times are compared only if the capture has no findings, such as a clock that goes back.
    """
    for slices in _tables(capture, "slices"):
        ts = slices.array("ts")
        dur = slices.array("dur")
        parent = slices.array("parent")
        depth = slices.array("depth")
        thread = slices.array("thread")
        kind = slices.array("kind")
        nested = parent >= 0
        count = len(slices)
        fault = "nesting: slice {row} has parent {parent} of {count}"
        _refuse(parent >= count, fault, parent=parent, count=count)
        parent_depth = depth[parent]
        limit = capture.request.limits.max_depth or np.iinfo(np.int32).max
        depth_values = {"depth": depth, "parent": parent, "above": parent_depth}
        fault = "depth: slice {row} is at depth {depth}, its parent {parent} at {above}"
        is_wrong_depth = (depth != parent_depth + 1) & (depth < limit)
        _refuse(nested & is_wrong_depth, fault, **depth_values)
        fault = "depth: slice {row} is at depth {depth}, and has no parent"
        _refuse(~nested & (depth != 0), fault, **depth_values)
        _refuse(dur < -1, "dur of slice {row} is {dur}, below -1", dur=dur)
        fault = "dur of slice {row} is -1: never closed, but a complete event has an end"
        _refuse((dur == -1) & (kind == COMPLETE), fault)
        if len(capture.diagnostics):
            return  # with findings, times may be inconsistent
        times = {"parent": parent, "ts": ts, "dur": dur, "its": ts[parent], "long": dur[parent]}
        fault = (
            "nesting: slice {row} {what} its parent {parent}: {ts} ns + {dur} in {its} ns + {long}"
        )
        begins_early = ts[parent] > ts
        _refuse(nested & begins_early, fault, what="begins before", **times)
        both_end = (dur[parent] >= 0) & (dur >= 0)
        parent_end = ts[parent] + dur[parent]
        ends_late = both_end & (ts + dur > parent_end)
        _refuse(nested & ends_late, fault, what="ends after", **times)
        is_sync = kind != ASYNC
        is_on_other_thread = nested & is_sync & (thread != thread[parent])
        fault = "nesting: slice {row} is on thread {own}, its parent {parent} on {its}"
        _refuse(is_on_other_thread, fault, parent=parent, own=thread, its=thread[parent])


def check_arguments(capture: Capture) -> None:
    """Check that ``int`` and ``uint`` of an argument are the same 64 bits, and check its row."""
    names = {code: name for name, code in TABLE_CODES.items()}
    for args in _tables(capture, "args"):
        signed = args.array("int")
        unsigned = args.array("uint")
        codes = args.array("table")
        fault = "int and uint of args row {row} are {int} and {uint}: not the same 64 bits"
        differs = signed.view(np.uint64) != unsigned
        _refuse(differs, fault, int=signed, uint=unsigned)
        for code in np.unique(codes).tolist():
            name = names.get(code, "")
            of_table = codes == code
            if name in capture.schemas:
                _check_owners(capture.table(name), args.select(of_table))
                continue
            fault = "args: the table {code} of row {row} is not a standard table"
            lacks_name = not name
            _refuse(of_table & lacks_name & (code < OWN_TABLES), fault, code=code)
            fault = "args: row {row} belongs to {name}, which the capture does not fill"
            _refuse(of_table & bool(name) & (args.array("parent") >= 0), fault, name=name)


def _check_owners(owners: Table, args: Table) -> None:
    """Check that an argument from a record with rows belongs to a row of that record."""
    owned = args.select(args.array("parent") >= 0)
    parents = owned.array("parent")
    offsets = owned.array("offset")
    values = {"parent": parents, "name": owners.name, "count": len(owners), "offset": offsets}
    fault = "args: an argument belongs to row {parent} of {name}, there are {count}"
    _refuse(parents >= len(owners), fault, **values)
    if parents.size:
        owner_offsets = owners.array("offset")
        # If the record of an argument has rows in this table, it must belong to one of them.
        fault = (
            "args: an argument of the record at byte {offset} belongs to row {parent} of {name}, "
            "which is of the record at byte {its}"
        )
        has_owner = np.isin(offsets, owner_offsets)
        wrong = has_owner & (owner_offsets[parents] != offsets)
        _refuse(wrong, fault, its=owner_offsets[parents], **values)


def check_names(capture: Capture) -> None:
    """Check that rows have names, and that these are not the ``repr`` of bytes.

    Names may be missing in a capture with findings.
    """
    for table in _tables(capture):
        if table.name in NAMED and not len(capture.diagnostics):
            fault = "null name: {table} row {row} has no name"
            _refuse(table.array("name") < 0, fault, table=table.name)
        for column in table.schema.all_columns:
            if column.kind != "code":
                continue
            for code in np.unique(table.array(column.name)).tolist():
                text = b""
                if 0 <= code < len(table.pool):
                    text = table.pool.bytes_of(code)
                is_shown_bytes = re.fullmatch(rb"b(['\"]).*\1", text)
                assert not is_shown_bytes, (
                    f"name: {table.name}.{column.name} has {text.decode()!r}, which Python shows "
                    "of bytes; intern the bytes themselves"
                )


def check_enumerations(capture: Capture) -> None:
    """Check that enumeration columns contain only named values."""
    for table in _tables(capture):
        for column in table.schema.all_columns:
            if column.values:
                place = f"{table.name}.{column.name}"
                values = table.array(column.name)
                is_unnamed = ~np.isin(values, [*column.values, NOT_GIVEN])
                if place == "args.table":
                    is_unnamed &= values < OWN_TABLES
                fault = "enumeration: {place} has {given}, which names none of {names}"
                names = ", ".join(column.values.values())
                _refuse(is_unnamed, fault, place=place, given=values, names=names)
    for counters in _tables(capture, "counters"):
        exact_value = counters.array("value_int")
        value = counters.array("value")
        differs_as_signed = exact_value != value
        differs = differs_as_signed & (exact_value.view(np.uint64) != value)
        fault = "counters row {row}: value is {value}, the exact value_int {exact}"
        _refuse(counters.array("is_int") & differs, fault, value=value, exact=exact_value)


def check_threads(capture: Capture) -> None:
    """Check that threads and processes are unique, except threads with unknown ids (0/0)."""
    for name, columns in UNIQUE:
        for table in _tables(capture, name):
            for key, count in Counter(table.tuples(*columns)).items():
                key_text = "/".join(map(str, key))
                is_unique = count == 1 or key == (0, 0)
                assert is_unique, (
                    f"{name}: {count} rows have the {' and '.join(columns)} {key_text}"
                )
