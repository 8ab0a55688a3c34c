"""Comparison of two captures of one format.

Records are compared by contents, independently of offset and encoding; states by their entries;
tables by the names in them. Memory is bounded: about twenty bytes per record or forty per entry of
a state, plus the names.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.errors import UsageError
from fxframework.model.capture import Capture, Entry, Window
from fxframework.model.table import Table

__all__ = [
    "COMPARISONS",
    "Difference",
    "EntryDifference",
    "NameDifference",
    "Person",
    "PersonDifference",
    "RecordDifference",
    "ShownRecord",
    "Stats",
    "compare",
]

COMPARISONS = ("record", "entry", "name")
KEYS: Mapping[str, tuple[str, ...]] = {
    "slices": ("category", "name"),
    "instants": ("category", "name"),
    "counters": ("category", "name", "series"),
    "flows": ("category", "name"),
    "logs": ("component", "severity_name"),
    "sched": ("kind", "cpu"),
}
"""The tables compared by name, with the columns whose values name a row."""
PEOPLE = {"processes": ("pid",), "threads": ("pid", "tid")}
"""The tables of processes and threads, with the columns of their ids."""
PIECE = 1 << 20
"""Records, or bytes, compared at a time."""

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Key = tuple[bytes | int | None, ...]

# What the bulk path strips: the offset, size and indexes of a record. Quotes within a JSON string
# are escaped, so these patterns cannot match inside one.
_HEAD = b'{"record":"'
_PLACE = re.compile(rb',"offset":\d+,"nbytes":\d+')
_REFS = re.compile(rb',"refs":\{[^{}]*\}')
_UNSTRIPPED = (b'"raw":', b'"offset":', b'"nbytes":', b'"refs":')


@attrs.frozen
class ShownRecord:
    """A record to show in a difference."""

    offset: int
    kind: str
    said: Mapping[str, Any]
    """Its JSON without offset, size, indexes and raw bytes."""


@attrs.frozen
class RecordDifference:
    """Records that only one of two captures has. Pairs are for A and B."""

    counts: tuple[int, int]
    """Compared records; records that only support others are not counted."""
    only: tuple[Mapping[str, int], Mapping[str, int]]
    """Number of records that only this capture has, by kind."""
    shown: tuple[tuple[ShownRecord, ...], tuple[ShownRecord, ...]]
    """The first of them."""
    reordered: bool
    """Whether both have the same records in a different order."""
    first: tuple[ShownRecord | None, ShownRecord | None] | None
    """The first unequal records, None where a capture has ended; None if all are equal."""

    @property
    def same(self) -> bool:
        """Whether both have the same records in the same order."""
        return self.first is None


@attrs.frozen
class EntryDifference:
    """Entries that differ between two states. Pairs are for A and B."""

    counts: tuple[int, int]
    """Compared entries."""
    only: tuple[int, int]
    """Number of entries that only this capture has."""
    changed: int
    """Number of entries that both have, with different types or values."""
    shown: tuple[tuple[Entry, ...], tuple[Entry, ...]]
    """The first entries that only one has."""
    changes: tuple[tuple[Entry, Entry], ...]
    """The first changed entries."""

    @property
    def same(self) -> bool:
        """Whether both states are the same."""
        return not (self.changed or any(self.only))


@attrs.frozen
class Stats:
    """Statistics of the rows of one name."""

    count: int
    total_ns: int | None = None
    """For slices, the sum of their lengths; slices never closed are excluded."""
    unclosed: int = 0
    """For slices, the number never closed."""
    least: float | None = None
    """For counters, the least value; NaN is ignored."""
    most: float | None = None
    last: float | None = None
    """For counters, the latest value; None if it is NaN."""

    @property
    def mean_ns(self) -> float | None:
        """For slices, their mean length."""
        closed = self.count - self.unclosed
        return None if self.total_ns is None or not closed else self.total_ns / closed


@attrs.frozen
class NameDifference:
    """A name in a table whose counts, lengths or values differ between the captures."""

    table: str
    key: Mapping[str, str | None]
    """The columns that name the rows, and their values."""
    a: Stats | None
    """None if A has no such row."""
    b: Stats | None

    @property
    def change(self) -> tuple[float, ...]:
        """Amount of change, for sorting: of total length, count and latest value."""
        a, b = self.a or Stats(0), self.b or Stats(0)
        return (
            abs((b.total_ns or 0) - (a.total_ns or 0)),
            abs(b.count - a.count),
            _distance(a.last, b.last),
        )

    @property
    def ratio(self) -> float | None:
        """Ratio B to A of total lengths if known, else of counts; None if either has no rows."""
        if self.a is None or self.b is None:
            return None
        if self.a.total_ns and self.b.total_ns is not None:
            return self.b.total_ns / self.a.total_ns
        return self.b.count / self.a.count


def _distance(a: float | None, b: float | None) -> float:
    change = abs((b or 0.0) - (a or 0.0))
    return change if math.isfinite(change) else math.inf


@attrs.frozen
class Person:
    """A process, or a thread if it has a tid."""

    pid: int
    tid: int | None
    name: str | None


@attrs.frozen
class PersonDifference:
    """Processes or threads that only one of two captures mentions. Pairs are for A and B."""

    table: str
    only: tuple[tuple[Person, ...], tuple[Person, ...]]


@attrs.frozen
class Difference:
    """The result of a comparison."""

    identical: bool
    """Whether the bytes are identical, in which case nothing else was compared."""
    records: RecordDifference | None = None
    """None if records were not compared."""
    entries: EntryDifference | None = None
    """None if the captures are not states, or entries were not compared."""
    names: Mapping[str, tuple[NameDifference, ...]] = attrs.field(factory=dict)
    """Names that differ, by table, the greatest change first; contains every compared table."""
    people: tuple[PersonDifference, ...] = ()

    @property
    def same(self) -> bool:
        """Whether the comparison found no difference."""
        return (
            (self.records is None or self.records.same)
            and (self.entries is None or self.entries.same)
            and not any(self.names.values())
            and not any(any(each.only) for each in self.people)
        )


def compare(
    a: Capture, b: Capture, *, by: Collection[str] = COMPARISONS, show: int = 10
) -> Difference:
    """Compare two captures of one format.

    ``by`` selects what to compare: ``record``, ``entry``, ``name`` or several of them; if both
    are given, captures that have entries are compared by entries and not by records. ``show`` is
    the number of records or entries to show for each side. Raises UsageError for captures of two
    formats, and for ``entry`` alone if the captures have no entries.
    """
    if a.format != b.format:
        raise UsageError(
            f"{a.name} has the format {a.format}, and {b.name} the format {b.format}",
            remedy="compare captures of one format",
        )
    if _identical(a, b):
        return Difference(True)
    pair = a, b
    shared = [name for name in a.schemas if name in b.schemas and "name" in by]
    entries = _compare_entries(pair, show) if "entry" in by else None
    if entries is None and set(by) == {"entry"}:
        raise UsageError(
            f"{a.format} captures are sequences of records, and have no entries",
            remedy="compare by record",
        )
    return Difference(
        False,
        _compare_records(pair, show) if "record" in by and entries is None else None,
        entries,
        {name: _compare_names(pair, name) for name in KEYS if name in shared},
        tuple(_compare_people(pair, name) for name in PEOPLE if name in shared),
    )


def _identical(a: Capture, b: Capture) -> bool:
    """Return whether both are the same bytes, read with the same options and limits."""
    if isinstance(a, Window) or isinstance(b, Window):
        return False
    if a.source.size != b.source.size or a.request.options != b.request.options:
        return False
    if a.request.limits != b.request.limits or a.source.faults or b.source.faults:
        return False
    return all(
        a.source.read(at, PIECE) == b.source.read(at, PIECE)
        for at in range(0, a.source.size, PIECE)
    )


# --- By record -----------------------------------------------------------------------------------


def _compare_records(pair: tuple[Capture, Capture], show: int) -> RecordDifference:
    supports = tuple(_support(capture) for capture in pair)
    a, b = (_digests(capture, each) for capture, each in zip(pair, supports, strict=True))
    counts = a.size, b.size
    start = _common_prefix(a, b)
    if start == a.size == b.size:
        return RecordDifference(counts, ({}, {}), ((), ()), reordered=False, first=None)
    stop = min(_common_prefix(a[::-1], b[::-1]), min(counts) - start)
    only = _surplus(a[start : a.size - stop], b[start : b.size - stop])
    made = [
        _read_records(capture, support, start, where + start, show)
        for capture, support, where in zip(pair, supports, only, strict=True)
    ]
    return RecordDifference(
        counts,
        (made[0][0], made[1][0]),
        (made[0][1], made[1][1]),
        reordered=not (only[0].size or only[1].size),
        first=(made[0][2], made[1][2]),
    )


def _support(capture: Capture) -> frozenset[bytes]:
    """Return the kinds of records, as named in JSON, that only support others."""
    whole = capture.whole if isinstance(capture, Window) else capture
    return frozenset(kind.encode() for kind in whole.support_records)


def _digests(capture: Capture, support: Collection[bytes]) -> U64:
    """Return a 64-bit digest of the contents of each record, except those of ``support``."""
    parts = [np.zeros(0, np.uint64)]
    nbytes = 0
    for chunk in capture.records_json():
        nbytes += len(chunk)
        capture.request.budget.check_output(
            nbytes, path=capture.source.name, what="text of the records to compare"
        )
        made = bytearray()
        text = _REFS.sub(b"", _PLACE.sub(b"", chunk))
        marks = [mark for mark in _UNSTRIPPED if mark in text]
        for line in text.split(b"\n"):
            if line and _kind_of(line) not in support:
                if not line.startswith(_HEAD) or any(mark in line for mark in marks):
                    line = _dumped(_contents(line))
                made += hashlib.blake2b(line, digest_size=8).digest()
        parts.append(np.frombuffer(bytes(made), np.uint64))
    return np.concatenate(parts)


def _kind_of(line: bytes) -> bytes:
    """Return the kind of the record in a line of JSON."""
    if line.startswith(_HEAD):
        return line[len(_HEAD) : line.index(b'"', len(_HEAD))]
    return str(_loaded(line).get("record")).encode()


def _loaded(line: bytes) -> dict[str, Any]:
    import orjson

    shown: dict[str, Any] = orjson.loads(line)
    return shown


def _dumped(said: Any) -> bytes:
    import orjson

    return orjson.dumps(said)


def _contents(line: bytes) -> dict[str, Any]:
    """Return the contents of the record in a line: all but offset, size, indexes and raw bytes.

    If there is nothing else but integers, the raw bytes are the contents.
    """
    shown = _loaded(line)
    raw = shown.pop("raw", None)
    said = _without_places(shown)
    said = {"record": said.pop("record", None), **said}
    rest = (value for key, value in said.items() if key not in {"record", "code"})
    if raw is not None and all(isinstance(value, int) for value in rest):
        said["raw"] = raw
    return said


def _without_places(value: Any) -> Any:
    """Return a value with indexes and places removed at all levels."""
    if isinstance(value, list):
        return [_without_places(each) for each in value]
    if not isinstance(value, dict):
        return value
    place = {"offset", "nbytes"} if value.keys() >= {"offset", "nbytes"} else set[str]()
    return {
        key: _without_places(each) for key, each in value.items() if key not in {"refs", *place}
    }


def _common_prefix(a: U64, b: U64) -> int:
    """Return the length of the common prefix."""
    least = min(a.size, b.size)
    for at in range(0, least, PIECE):
        stop = min(at + PIECE, least)
        unlike = np.flatnonzero(a[at:stop] != b[at:stop])
        if unlike.size:
            return at + int(unlike[0])
    return least


def _surplus(a: U64, b: U64) -> tuple[I64, I64]:
    """Return for each side the positions of the last occurrences that the other side lacks."""
    orders = [np.argsort(each, kind="stable") for each in (a, b)]
    a, b = a[orders[0]], b[orders[1]]
    found = []
    for mine, theirs, order in ((a, b, orders[0]), (b, a, orders[1])):
        parts = [np.zeros(0, np.int64)]
        for at in range(0, mine.size, PIECE):
            piece = mine[at : at + PIECE]
            number = np.arange(at, at + piece.size) - np.searchsorted(mine, piece)
            available = np.searchsorted(theirs, piece, "right") - np.searchsorted(theirs, piece)
            parts.append(order[at : at + PIECE][number >= available])
        found.append(np.sort(np.concatenate(parts)))
    return found[0], found[1]


def _read_records(
    capture: Capture, support: Collection[bytes], first: int, where: I64, show: int
) -> tuple[Mapping[str, int], tuple[ShownRecord, ...], ShownRecord | None]:
    """Read the records at the positions ``where``, and the one at ``first``.

    Returns the counts by kind, the first ``show`` records, and the record at ``first``. Positions
    do not count the kinds in ``support``.
    """
    last = max(first, int(where[-1]) if where.size else 0)
    wanted = bytearray(last + 1)
    np.frombuffer(wanted, np.uint8)[where] = 1
    kinds: Counter[str] = Counter()
    shown: list[ShownRecord] = []
    one = None
    at = 0
    for chunk in capture.records_json():
        for line in chunk.split(b"\n"):
            if not line:
                continue
            kind = _kind_of(line)
            if kind in support:
                continue
            if at == first:
                one = _shown(line)
            if wanted[at]:
                kinds[kind.decode()] += 1
                if len(shown) < show:
                    shown.append(_shown(line))
            at += 1
            if at > last:
                return dict(kinds.most_common()), tuple(shown), one
    return dict(kinds.most_common()), tuple(shown), one


def _shown(line: bytes) -> ShownRecord:
    said = _contents(line)
    return ShownRecord(int(_loaded(line).get("offset", 0)), str(said["record"]), said)


# --- By entry ------------------------------------------------------------------------------------

_REPEATED = 0x9E3779B97F4A7C15
"""Added to the digest once per earlier entry of the same name, so that digests are unique."""


def _compare_entries(pair: tuple[Capture, Capture], show: int) -> EntryDifference | None:
    digests = [_entry_digests(capture) for capture in pair]
    if digests[0] is None or digests[1] is None:
        return None
    (names_a, said_a), (names_b, said_b) = digests[0], digests[1]
    _, at_a, at_b = np.intersect1d(names_a, names_b, assume_unique=True, return_indices=True)
    unlike = said_a[at_a] != said_b[at_b]
    order = np.argsort(at_b[unlike])
    changed = at_a[unlike][order], at_b[unlike][order]
    rest = tuple(
        np.setdiff1d(np.arange(names.size), common, assume_unique=True)
        for names, common in ((names_a, at_a), (names_b, at_b))
    )
    picked = [
        _entries_at(capture, np.concatenate((change[:show], only[:show])))
        for capture, change, only in zip(pair, changed, rest, strict=True)
    ]
    return EntryDifference(
        counts=(names_a.size, names_b.size),
        only=(rest[0].size, rest[1].size),
        changed=int(order.size),
        shown=(
            tuple(picked[0][at] for at in rest[0][:show].tolist()),
            tuple(picked[1][at] for at in rest[1][:show].tolist()),
        ),
        changes=tuple(
            (picked[0][one], picked[1][other])
            for one, other in zip(
                changed[0][:show].tolist(), changed[1][:show].tolist(), strict=True
            )
        ),
    )


def _entry_digests(capture: Capture) -> tuple[U64, U64] | None:
    """Return for each entry a unique 64-bit digest of its name, and one of its type and value."""
    found = capture.entries()
    if found is None:
        return None
    names, said = bytearray(), bytearray()
    for path, kind, value, _ in found:
        names += hashlib.blake2b(path.encode(), digest_size=8).digest()
        said += hashlib.blake2b(_dumped([kind, value]), digest_size=8).digest()
    digests = np.frombuffer(bytes(names), np.uint64)
    # Pair repeated names by order: first with first, second with second, and so on.
    order = np.argsort(digests, kind="stable")
    ordered = digests[order]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: ordered.size])
    lengths = np.diff(np.append(begins, ordered.size))
    number = np.arange(ordered.size) - np.repeat(begins, lengths)
    apart = np.empty_like(digests)
    apart[order] = ordered + number.astype(np.uint64) * np.uint64(_REPEATED)
    return apart, np.frombuffer(bytes(said), np.uint64)


def _entries_at(capture: Capture, where: I64) -> dict[int, Entry]:
    """Return the entries with these numbers."""
    wanted = set(where.tolist())
    found: dict[int, Entry] = {}
    for at, entry in enumerate(capture.entries() or ()):
        if len(found) == len(wanted):
            break
        if at in wanted:
            found[at] = entry
    return found


# --- By name -------------------------------------------------------------------------------------


@attrs.define
class _Tally:
    """Running statistics of the rows of one name."""

    count: int = 0
    total: int = 0
    unclosed: int = 0
    least: float = math.inf
    most: float = -math.inf
    last: float = math.nan
    last_ts: int = -(1 << 63)


def _compare_names(pair: tuple[Capture, Capture], table: str) -> tuple[NameDifference, ...]:
    a, b = (_tallied(capture, table) for capture in pair)
    schema = pair[0].schemas[table]
    columns = [schema.column(name) for name in KEYS[table]]
    found = [
        NameDifference(
            table,
            {
                column.name: _label(value, column.values)
                for column, value in zip(columns, key, strict=True)
            },
            a.get(key),
            b.get(key),
        )
        for key in a.keys() | b.keys()
        if a.get(key) != b.get(key)
    ]
    found.sort(key=lambda one: [str(value or "") for value in one.key.values()])
    found.sort(key=lambda one: one.change, reverse=True)
    return tuple(found)


def _label(value: bytes | int | None, names: Mapping[int, str]) -> str | None:
    """Return a key value as text: a string, or the name of an enumerated number."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return None if value is None else names.get(value, str(value))


def _tallied(capture: Capture, table: str) -> dict[Key, Stats]:
    """Return statistics of the rows of a table, by their keys."""
    tallies: dict[tuple[int, ...], _Tally] = {}
    for batch in capture.batches(table):
        if len(batch):
            _tally(batch, table, tallies)
    columns = [capture.schemas[table].column(name) for name in KEYS[table]]

    def value(number: int, kind: str) -> bytes | int | None:
        if kind != "code":
            return number
        return capture.strings.bytes_of(number) if number >= 0 else None

    return {
        tuple(value(number, column.kind) for number, column in zip(key, columns, strict=True)): (
            _stats(tally, table)
        )
        for key, tally in tallies.items()
    }


def _stats(tally: _Tally, table: str) -> Stats:
    if table == "slices":
        return Stats(tally.count, tally.total, tally.unclosed)
    if table == "counters":
        last = None if math.isnan(tally.last) else tally.last
        return Stats(tally.count, None, 0, tally.least, tally.most, last)
    return Stats(tally.count)


def _tally(batch: Table, table: str, tallies: dict[tuple[int, ...], _Tally]) -> None:
    """Add the rows of a batch."""
    keys, group = _groups([batch.array(name) for name in KEYS[table]])
    size = len(keys)
    mine = [tallies.setdefault(key, _Tally()) for key in keys]
    for tally, count in zip(mine, np.bincount(group, minlength=size).tolist(), strict=True):
        tally.count += count
    if table == "slices":
        dur = batch.array("dur")
        closed = np.maximum(dur, 0)
        # Sums of 32-bit halves are exact as doubles: a batch has few enough rows.
        low = np.bincount(group, closed & 0xFFFFFFFF, size)
        high = np.bincount(group, closed >> 32, size)
        unclosed = np.bincount(group[dur < 0], minlength=size)
        for at, tally in enumerate(mine):
            tally.total += (int(high[at]) << 32) + int(low[at])
            tally.unclosed += int(unclosed[at])
    elif table == "counters":
        _tally_values(mine, group, batch.array("ts"), batch.array("value"))


def _tally_values(mine: list[_Tally], group: I64, ts: I64, value: NDArray[np.float64]) -> None:
    least = np.full(len(mine), math.inf)
    most = np.full(len(mine), -math.inf)
    np.fmin.at(least, group, value)
    np.fmax.at(most, group, value)
    order = np.argsort(ts, kind="stable")
    latest = np.zeros(len(mine), np.int64)
    latest[group[order]] = order  # the last assignment wins
    for at, tally in enumerate(mine):
        tally.least = min(tally.least, float(least[at]))
        tally.most = max(tally.most, float(most[at]))
        row = int(latest[at])
        if int(ts[row]) >= tally.last_ts:
            tally.last, tally.last_ts = float(value[row]), int(ts[row])


def _groups(columns: list[NDArray[Any]]) -> tuple[list[tuple[int, ...]], I64]:
    """Return the distinct rows of integer columns, and for each row the index of its value."""
    group = np.zeros(columns[0].size, np.int64)
    for column in columns:
        values, inverse = np.unique(column, return_inverse=True)
        group = group * values.size + inverse
        group = np.unique(group, return_inverse=True)[1]
    first = np.unique(group, return_index=True)[1]
    rows = [column[first].tolist() for column in columns]
    return list(zip(*rows, strict=True)), group


# --- By process and thread -----------------------------------------------------------------------


def _compare_people(pair: tuple[Capture, Capture], table: str) -> PersonDifference:
    a, b = (_people(capture, table) for capture in pair)

    def ordered(people: set[Person]) -> tuple[Person, ...]:
        return tuple(sorted(people, key=lambda one: (one.pid, one.tid or 0, one.name or "")))

    return PersonDifference(table, (ordered(a - b), ordered(b - a)))


def _people(capture: Capture, table: str) -> set[Person]:
    found: set[Person] = set()
    for batch in capture.batches(table):
        pids = batch.array("pid").tolist()
        tids = batch.array("tid").tolist() if table == "threads" else [None] * len(batch)
        found.update(map(Person, pids, tids, batch.texts("name")))
    return found
