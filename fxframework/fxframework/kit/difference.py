"""Comparison of two captures of one format.

Records are compared by contents, independently of offset and encoding; states by their entries.
Memory is bounded: about twenty bytes per record or forty per entry of a state. What two runs did
differently is the matter of ``analysis.comparison``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.errors import UsageError
from fxframework.kernels.arrays import I32, I64, U64
from fxframework.model.capture import Capture, Entry, Window, under_views

COMPARISONS = ("record", "entry")
PIECE = 1 << 20
"""Records, or bytes, compared at a time."""


@attrs.frozen
class ShownRecord:
    """A record to show in a difference."""

    offset: int
    """Byte offset in the (unpacked) file."""
    kind: str
    """Its kind, as in JSON."""
    said: Mapping[str, Any]
    """Its JSON without offset, size, indexes and raw bytes."""


@attrs.frozen
class RecordDifference:
    """Records that only one of two captures has. Pairs are for A and B."""

    counts: tuple[int, int]
    """Compared records: all but those that only support others, such as registrations."""
    only: tuple[Mapping[str, int], Mapping[str, int]]
    """Number of records that only this capture has, by kind."""
    shown: tuple[tuple[ShownRecord, ...], tuple[ShownRecord, ...]]
    """The first of them."""
    reordered: bool
    """Whether both have the same records in a different order."""
    first: tuple[ShownRecord | None, ShownRecord | None] | None
    """The first unequal records, None where a capture has ended; None if all are equal."""
    all_counts: tuple[int, int] | None = None
    """All records, as the captures' summaries count them; None: those that were compared."""

    @property
    def totals(self) -> tuple[int, int]:
        """The numbers of all records, compared or not."""
        return self.counts if self.all_counts is None else self.all_counts

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
class Difference:
    """The result of a comparison."""

    identical: bool
    """Whether the bytes are identical, in which case nothing else was compared."""
    records: RecordDifference | None = None
    """None if records were not compared."""
    entries: EntryDifference | None = None
    """None if the captures are not states, or entries were not compared."""

    @property
    def same(self) -> bool:
        """Whether the comparison found no difference."""
        if self.records is not None and not self.records.same:
            return False
        return self.entries is None or self.entries.same


def compare(
    a: Capture, b: Capture, *, by: Collection[str] = COMPARISONS, show: int = 10
) -> Difference:
    """Compare two captures of one format.

    ``by`` selects what to compare: ``record``, ``entry`` or both; if both are given, captures that
    have entries are compared by entries and not by records. ``show`` is the number of records or
    entries to show for each side. Raises UsageError for captures of two formats, and for ``entry``
    alone if the captures have no entries.
    """
    if a.format != b.format:
        raise UsageError(
            f"{a.name} has the format {a.format}, and {b.name} the format {b.format}",
            remedy="compare captures of one format",
        )
    if _identical(a, b):
        return Difference(True)
    pair = (a, b)
    if "entry" in by:
        entries = _compare_entries(pair, show)
        if entries is not None:
            return Difference(False, entries=entries)
    if "record" in by:
        return Difference(False, records=_compare_records(pair, show))
    raise UsageError(
        f"{a.format} captures are sequences of records, and have no entries",
        remedy="compare by record",
    )


def _identical(a: Capture, b: Capture) -> bool:
    """Return whether both are the same bytes, read with the same options and limits."""
    if isinstance(a, Window) or isinstance(b, Window):
        return False
    if a.source.size != b.source.size or a.request.options != b.request.options:
        return False
    if a.request.limits != b.request.limits or a.source.faults or b.source.faults:
        return False
    offsets = range(0, a.source.size, PIECE)
    pieces = ((a.source.read(offset, PIECE), b.source.read(offset, PIECE)) for offset in offsets)
    return all(piece_a == piece_b for piece_a, piece_b in pieces)


# --- By record -----------------------------------------------------------------------------------


@attrs.frozen
class _Side:
    """The compared records of a capture, each with a digest of its contents."""

    capture: Capture
    digests: U64
    """Shape (records,)."""
    kinds: I32
    """Indexes of ``names``, shape (records,)."""
    names: Sequence[str]
    """The kinds of records."""
    lines: I64
    """Numbers of their lines of JSON, shape (records,)."""
    chunk_starts: I64
    """Number of the first line of each chunk of ``records_json``; at the end, of all lines."""


def _compare_records(pair: tuple[Capture, Capture], show: int) -> RecordDifference:
    """Compare records between the first and the last ones that are equal in both captures."""
    side_a = _digested_side(pair[0])
    side_b = _digested_side(pair[1])
    a = side_a.digests
    b = side_b.digests
    counts = (a.size, b.size)
    all_counts = (int(side_a.chunk_starts[-1]), int(side_b.chunk_starts[-1]))
    prefix = _common_prefix(a, b)
    if prefix == a.size == b.size:
        return RecordDifference(
            counts,
            only=({}, {}),
            shown=((), ()),
            reordered=False,
            first=None,
            all_counts=all_counts,
        )
    suffix = _common_prefix(a[::-1], b[::-1])
    # Of AA and AAA, the common prefix and suffix overlap in the shorter one.
    suffix = min(suffix, min(counts) - prefix)
    middle_a = a[prefix : a.size - suffix]
    middle_b = b[prefix : b.size - suffix]
    only_a, only_b = _surplus(middle_a, middle_b)
    only_a += prefix
    only_b += prefix
    shown_a, first_a = _records_to_show(side_a, only_a[:show], prefix)
    shown_b, first_b = _records_to_show(side_b, only_b[:show], prefix)
    return RecordDifference(
        counts,
        only=(_counts(side_a, only_a), _counts(side_b, only_b)),
        shown=(shown_a, shown_b),
        reordered=not (only_a.size or only_b.size),
        first=(first_a, first_b),
        all_counts=all_counts,
    )


def _counts(side: _Side, positions: I64) -> Mapping[str, int]:
    """Return the numbers of the records at these positions by kind, the greatest first."""
    kinds, first_positions, counts = np.unique(
        side.kinds[positions], return_index=True, return_counts=True
    )
    order = np.lexsort((first_positions, -counts))
    return {side.names[kinds[index]]: int(counts[index]) for index in order.tolist()}


def _digested_side(capture: Capture) -> _Side:
    """Digest the contents of each record, except of those that only support others."""
    whole = under_views(capture)
    number_of_kind: dict[str, int] = {}
    digest_parts = [np.zeros(0, np.uint64)]
    kind_parts = [np.zeros(0, np.int32)]
    line_parts = [np.zeros(0, np.int64)]
    chunk_starts = [0]
    nbytes = 0
    for chunk in capture.records_json():
        nbytes += len(chunk)
        capture.request.budget.check_output(
            nbytes, path=capture.source.name, what="text of the records to compare"
        )
        digests, kinds = _digested(chunk, number_of_kind)
        supporting = [number_of_kind.get(kind, -1) for kind in whole.support_records]
        is_compared = ~np.isin(kinds, supporting)
        compared_lines = np.flatnonzero(is_compared)
        digest_parts.append(digests[compared_lines])
        kind_parts.append(kinds[compared_lines])
        line_parts.append(compared_lines + chunk_starts[-1])
        chunk_starts.append(chunk_starts[-1] + digests.size)
    return _Side(
        capture=capture,
        digests=np.concatenate(digest_parts),
        kinds=np.concatenate(kind_parts),
        names=list(number_of_kind),
        lines=np.concatenate(line_parts),
        chunk_starts=np.array(chunk_starts),
    )


# What says where a record is. An unescaped quote behind a comma begins a key or a value, so these
# match no part of a string.
_REFS = re.compile(rb',"refs":\{(?:"\w+":[\d,\[\]]+)*\}(?=[,}])')
_PLACE = re.compile(rb',"offset":\d+,"nbytes":\d+(?=[,}])')
_HEAD = b'{"record":"'
_UNUSUAL = (b'"refs":', b'"nbytes":', b'"raw":', b'": ', b'{"record":"\\')
"""What a line without places has if it has to be parsed."""


def _digested(chunk: bytes, number_of_kind: dict[str, int]) -> tuple[U64, I32]:
    """Return the digest and the kind of each line of a chunk; new kinds get the next numbers."""
    chunk = _PLACE.sub(b"", _REFS.sub(b"", chunk))
    lines = [line for line in chunk.split(b"\n") if line]
    may_be_unusual = any(mark in chunk for mark in _UNUSUAL)
    kinds = np.empty(len(lines), np.int32)
    for number, line in enumerate(lines):
        is_unusual = may_be_unusual and any(mark in line for mark in _UNUSUAL)
        if is_unusual or not line.startswith(_HEAD):
            contents = _contents(line)
            lines[number] = orjson.dumps(contents)
            kind = str(contents["record"])
        else:  # hashed as it is
            kind = line[len(_HEAD) : line.find(b'"', len(_HEAD))].decode()
        kinds[number] = number_of_kind.setdefault(kind, len(number_of_kind))
    digests = np.fromiter(map(hash, lines), np.int64, len(lines))
    return digests.view(np.uint64), kinds


def _contents(line: bytes) -> dict[str, Any]:
    """Return the contents of the record in a line: all but offset, size, indexes and raw bytes.

    If there is nothing else but integers, the raw bytes are the contents.
    """
    record: dict[str, Any] = orjson.loads(line)
    raw = record.pop("raw", None)
    fields = _without_places(record)
    contents = {"record": fields.pop("record", None), **fields}
    values = (value for key, value in fields.items() if key != "code")
    if raw is not None and all(isinstance(value, int) for value in values):
        contents["raw"] = raw
    return contents


def _without_places(value: Any) -> Any:
    """Return a value with indexes and places removed at all levels."""
    if isinstance(value, list):
        return [_without_places(element) for element in value]
    if not isinstance(value, dict):
        return value
    left_out = {"refs"}
    # An argument may have one of these names; both together are a place.
    if value.keys() >= {"offset", "nbytes"}:
        left_out |= {"offset", "nbytes"}
    return {key: _without_places(field) for key, field in value.items() if key not in left_out}


def _common_prefix(a: U64, b: U64) -> int:
    """Return the length of the common prefix."""
    shorter_size = min(a.size, b.size)
    is_unequal = a[:shorter_size] != b[:shorter_size]
    return int(is_unequal.argmax()) if is_unequal.any() else shorter_size


def _surplus(a: U64, b: U64) -> tuple[I64, I64]:
    """Return for each side the positions of the last occurrences that the other side lacks."""
    # Most digests are on both sides; only the others have to be sorted.
    positions_a, positions_b = _perhaps_surplus(a, b)
    candidates_a = a[positions_a]
    candidates_b = b[positions_b]
    order_a = np.argsort(candidates_a, kind="stable")
    order_b = np.argsort(candidates_b, kind="stable")
    sorted_a = candidates_a[order_a]
    sorted_b = candidates_b[order_b]
    surplus_a = positions_a[order_a[_is_surplus(sorted_a, sorted_b)]]
    surplus_b = positions_b[order_b[_is_surplus(sorted_b, sorted_a)]]
    return np.sort(surplus_a), np.sort(surplus_b)


def _is_surplus(digests: U64, other_digests: U64) -> NDArray[np.bool_]:
    """Return which of the digests occur more often than on the other side; both are sorted.

    If a digest occurs three times here and once there, the second and the third are surplus.
    """
    earlier_equal = np.arange(digests.size) - np.searchsorted(digests, digests)
    first_there = np.searchsorted(other_digests, digests)
    end_there = np.searchsorted(other_digests, digests, "right")
    is_surplus: NDArray[np.bool_] = earlier_equal >= end_there - first_there
    return is_surplus


def _perhaps_surplus(a: U64, b: U64) -> tuple[I64, I64]:
    """Return the positions of the digests of each side that may be missing on the other side.

    Digests are put into buckets by their low bits. If those of a bucket have the same sum on both
    sides, they are the same, as surely as records with the same digest are.
    """
    bucket_count = 1 << max(8, max(a.size, b.size).bit_length() - 2)
    low_bits = np.uint64(bucket_count - 1)
    differences = np.zeros(bucket_count, np.uint64)  # sum of a minus sum of b, modulo 2^64
    for digests, accumulate in ((a, np.add), (b, np.subtract)):
        for start in range(0, digests.size, PIECE):
            piece = digests[start : start + PIECE]
            buckets = (piece & low_bits).astype(np.int64)
            accumulate.at(differences, buckets, piece)
    is_unequal = differences != 0
    candidates_a = np.flatnonzero(is_unequal[a & low_bits])
    candidates_b = np.flatnonzero(is_unequal[b & low_bits])
    return candidates_a, candidates_b


def _records_to_show(
    side: _Side, positions: I64, first_unequal: int
) -> tuple[tuple[ShownRecord, ...], ShownRecord | None]:
    """Return the records at some positions, and the one at ``first_unequal``.

    The latter is None if the capture ends before it.
    """
    all_positions = np.append(positions, first_unequal)
    all_positions = np.unique(all_positions[all_positions < side.lines.size])
    records = dict(zip(all_positions.tolist(), _records_at(side, all_positions), strict=True))
    shown_records = tuple(records[position] for position in positions.tolist())
    return shown_records, records.get(first_unequal)


def _records_at(side: _Side, positions: I64) -> list[ShownRecord]:
    """Return the records at these positions, which are ascending."""
    lines_wanted = side.lines[positions]
    records: list[ShownRecord] = []
    # The JSON of all records is made again, but only until the last one that is wanted.
    chunks = side.capture.records_json() if lines_wanted.size else ()
    bounds = zip(side.chunk_starts[:-1], side.chunk_starts[1:], strict=True)
    for (start, stop), chunk in zip(bounds, chunks, strict=False):
        first, end = np.searchsorted(lines_wanted, (start, stop))
        if first < end:
            lines = [line for line in chunk.split(b"\n") if line]
            lines_of_chunk = (lines_wanted[first:end] - start).tolist()
            records += [_shown(lines[number]) for number in lines_of_chunk]
        if len(records) == lines_wanted.size:
            break
    return records


def _shown(line: bytes) -> ShownRecord:
    contents = _contents(line)
    offset = int(orjson.loads(line).get("offset", 0))
    return ShownRecord(offset, str(contents["record"]), contents)


# --- By entry ------------------------------------------------------------------------------------

_REPEATED = 0x9E3779B97F4A7C15
"""Added to the digest once per earlier entry of the same name, so that digests are unique."""


def _compare_entries(pair: tuple[Capture, Capture], show: int) -> EntryDifference | None:
    """Compare the entries of two captures; return None if they have none."""
    digests_a = _entry_digests(pair[0])
    digests_b = _entry_digests(pair[1])
    if digests_a is None or digests_b is None:
        return None
    names_a, contents_a = digests_a
    names_b, contents_b = digests_b
    _, common_a, common_b = np.intersect1d(
        names_a, names_b, assume_unique=True, return_indices=True
    )
    is_changed = contents_a[common_a] != contents_b[common_b]
    order = np.argsort(common_b[is_changed])
    changed_a = common_a[is_changed][order]
    changed_b = common_b[is_changed][order]
    only_a = np.setdiff1d(np.arange(names_a.size), common_a, assume_unique=True)
    only_b = np.setdiff1d(np.arange(names_b.size), common_b, assume_unique=True)
    shown_a, changes_a = _entries_to_show(pair[0], only_a[:show], changed_a[:show])
    shown_b, changes_b = _entries_to_show(pair[1], only_b[:show], changed_b[:show])
    return EntryDifference(
        counts=(names_a.size, names_b.size),
        only=(only_a.size, only_b.size),
        changed=int(order.size),
        shown=(shown_a, shown_b),
        changes=tuple(zip(changes_a, changes_b, strict=True)),
    )


def _entry_digests(capture: Capture) -> tuple[U64, U64] | None:
    """Return for each entry a unique 64-bit digest of its name, and one of its type and value."""
    entries = capture.entries()
    if entries is None:
        return None
    name_bytes = bytearray()
    content_bytes = bytearray()
    for path, kind, value, _ in entries:
        name_bytes += hashlib.blake2b(path.encode(), digest_size=8).digest()
        content_bytes += hashlib.blake2b(orjson.dumps([kind, value]), digest_size=8).digest()
    digests = np.frombuffer(bytes(name_bytes), np.uint64)
    # Pair repeated names by order: first with first, second with second, and so on.
    order = np.argsort(digests, kind="stable")
    sorted_digests = digests[order]
    earlier_equal = np.arange(digests.size) - np.searchsorted(sorted_digests, sorted_digests)
    unique_digests = np.empty_like(digests)
    increments = earlier_equal.astype(np.uint64) * np.uint64(_REPEATED)
    unique_digests[order] = sorted_digests + increments
    return unique_digests, np.frombuffer(bytes(content_bytes), np.uint64)


def _entries_to_show(
    capture: Capture, only: I64, changed: I64
) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """Return the entries with these two lists of numbers, from one pass over the capture."""
    wanted_numbers = {*only.tolist(), *changed.tolist()}
    entries: dict[int, Entry] = {}
    for number, entry in enumerate(capture.entries() or ()):
        if len(entries) == len(wanted_numbers):
            break
        if number in wanted_numbers:
            entries[number] = entry
    only_entries = tuple(entries[number] for number in only.tolist())
    changed_entries = tuple(entries[number] for number in changed.tolist())
    return only_entries, changed_entries
