"""Comparison of two captures of one format.

Records are compared by contents, independently of offset and encoding; states by their entries.
Memory is bounded: about twenty bytes per record or forty per entry of a state. What two runs did
differently is the matter of ``analysis.comparison``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.errors import UsageError
from fxframework.kernels.digests import LineDigests
from fxframework.model.capture import Capture, Entry, Window, under_views

__all__ = [
    "COMPARISONS",
    "Difference",
    "EntryDifference",
    "RecordDifference",
    "ShownRecord",
    "compare",
]

COMPARISONS = ("record", "entry")
PIECE = 1 << 20
"""Records, or bytes, compared at a time."""

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
I32 = NDArray[np.int32]


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
        return (self.records is None or self.records.same) and (
            self.entries is None or self.entries.same
        )


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
    pair = a, b
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


@attrs.frozen
class _Compared:
    """The compared records of a capture, each with a digest of its contents."""

    digests: U64
    """Shape (records,)."""
    kinds: I32
    """Indexes of ``names``, shape (records,)."""
    names: Sequence[str]
    lines: I64
    """Numbers of their lines of JSON, shape (records,)."""
    chunks: I64
    """Number of the first line of each chunk of ``records_json``, and of all lines at the end."""


def _compare_records(pair: tuple[Capture, Capture], show: int) -> RecordDifference:
    sides = tuple(_compared(capture) for capture in pair)
    a, b = (side.digests for side in sides)
    counts = a.size, b.size
    totals = int(sides[0].chunks[-1]), int(sides[1].chunks[-1])
    start = _common_prefix(a, b)
    if start == a.size == b.size:
        return RecordDifference(counts, ({}, {}), ((), ()), False, None, totals)
    stop = min(_common_prefix(a[::-1], b[::-1]), min(counts) - start)
    only = [start + each for each in _surplus(a[start : a.size - stop], b[start : b.size - stop])]
    shown = [
        _records_at(capture, side, [*where[:show].tolist(), start])
        for capture, side, where in zip(pair, sides, only, strict=True)
    ]
    return RecordDifference(
        counts,
        (_counts(sides[0], only[0]), _counts(sides[1], only[1])),
        (tuple(filter(None, shown[0][:-1])), tuple(filter(None, shown[1][:-1]))),
        reordered=not (only[0].size or only[1].size),
        first=(shown[0][-1], shown[1][-1]),
        all_counts=totals,
    )


def _counts(side: _Compared, where: I64) -> Mapping[str, int]:
    """Return the numbers of the records at these positions by kind, the greatest first."""
    kinds, first, counts = np.unique(side.kinds[where], return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))
    return {side.names[kinds[at]]: int(counts[at]) for at in order.tolist()}


def _compared(capture: Capture) -> _Compared:
    """Digest the contents of each record, except of those that only support others."""
    whole = under_views(capture)
    names = _Names()
    kernel = LineDigests()
    digests, kinds, lines = [np.zeros(0, np.uint64)], [np.zeros(0, np.int32)], []
    chunks = [0]
    nbytes = 0
    for chunk in capture.records_json():
        nbytes += len(chunk)
        capture.request.budget.check_output(
            nbytes, path=capture.source.name, what="text of the records to compare"
        )
        digest, kind = _digested(kernel, chunk, names)
        keep = np.flatnonzero(~np.isin(kind, names.numbers(whole.support_records)))
        digests.append(digest[keep])
        kinds.append(kind[keep])
        lines.append(keep + chunks[-1])
        chunks.append(chunks[-1] + digest.size)
    return _Compared(
        np.concatenate(digests), np.concatenate(kinds), names.names,
        np.concatenate([np.zeros(0, np.int64), *lines]), np.array(chunks),
    )  # fmt: skip


class _Names:
    """The kinds of the records of a capture, numbered."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._of_kernel: dict[int, int] = {}

    def number(self, name: str) -> int:
        """Return the number of a kind."""
        number = self._numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def numbers(self, names: Collection[str]) -> Sequence[int]:
        """Return the numbers of some kinds, as far as they occurred."""
        return [self._numbers[name] for name in names if name in self._numbers]

    def of_kernel(self, kinds: I32, line: Callable[[int], bytes]) -> I32:
        """Return the numbers for those of the kernel; ``line`` gives the line of a row."""
        present = np.bincount(kinds + 1)[1:]
        table = np.full(present.size + 1, -1, np.int32)
        for kind in np.flatnonzero(present).tolist():
            if kind not in self._of_kernel:
                row = int(np.argmax(kinds == kind))
                self._of_kernel[kind] = self.number(_loaded(line(row))["record"])
            table[kind] = self._of_kernel[kind]
        return table[kinds]  # the last one is that of -1


def _digested(kernel: LineDigests, chunk: bytes, names: _Names) -> tuple[U64, I32]:
    """Return the digest and the kind of each line of a chunk."""
    if not chunk.endswith(b"\n"):
        chunk += b"\n"
    kernel.read_from(chunk)
    kernel.run()
    rows = kernel.lines.taken()
    digest, starts = rows["digest"], rows["start"]

    def line(row: int) -> bytes:
        start = int(starts[row])
        return chunk[start : chunk.index(b"\n", start)]

    kind = names.of_kernel(rows["kind"], line)
    for row in np.flatnonzero(kind < 0).tolist():
        said = _contents(line(row))
        kind[row] = names.number(str(said["record"]))
        digest[row] = _digest_alone(_dumped(said))
    return digest, kind


def _digest_alone(contents: bytes) -> int:
    """Return the digest of a record whose contents alone are given."""
    kernel = LineDigests()
    kernel.read_from(contents + b"\n")
    kernel.run()
    rows = kernel.lines.filled()
    if rows["kind"][0] >= 0:
        return int(rows["digest"][0])
    return int.from_bytes(hashlib.blake2b(contents, digest_size=8).digest())


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
    places = _unlike(a, b)
    pair = [each[at] for each, at in zip((a, b), places, strict=True)]
    orders = [np.argsort(each, kind="stable") for each in pair]
    a, b = (each[order] for each, order in zip(pair, orders, strict=True))
    found = []
    for mine, theirs, order, at in ((a, b, orders[0], places[0]), (b, a, orders[1], places[1])):
        number = np.arange(mine.size) - np.searchsorted(mine, mine)
        available = np.searchsorted(theirs, mine, "right") - np.searchsorted(theirs, mine)
        found.append(np.sort(at[order[number >= available]]))
    return found[0], found[1]


def _unlike(a: U64, b: U64) -> tuple[I64, I64]:
    """Return the positions of the digests of each side that may not all be on the other side.

    Those with the same low bits are all on both sides if their sums are the same, as surely as two
    digests differ.
    """
    buckets = 1 << max(8, max(a.size, b.size).bit_length() - 2)
    low = np.uint64(buckets - 1)
    sums = np.zeros(buckets, np.uint64)
    for side, mix in ((a, np.add), (b, np.subtract)):
        for at in range(0, side.size, PIECE):
            piece = side[at : at + PIECE]
            mix.at(sums, (piece & low).astype(np.int64), piece)
    unlike = sums != 0
    return np.flatnonzero(unlike[a & low]), np.flatnonzero(unlike[b & low])


def _records_at(
    capture: Capture, side: _Compared, where: Sequence[int]
) -> list[ShownRecord | None]:
    """Return the compared records at these positions; None for one after the last."""
    inside = [at for at in where if at < side.lines.size]
    wanted = side.lines[np.unique(np.array(inside, np.int64))]
    found: dict[int, ShownRecord] = {}
    last = int(wanted[-1]) if wanted.size else -1
    pieces = capture.records_json() if wanted.size else ()
    for first, stop, chunk in zip(side.chunks[:-1], side.chunks[1:], pieces, strict=False):
        numbers = wanted[np.searchsorted(wanted, first) : np.searchsorted(wanted, stop)]
        if numbers.size:
            lines = [line for line in chunk.split(b"\n") if line]
            for number in numbers.tolist():
                found[number] = _shown(lines[number - first])
        if stop > last:
            break
    return [found[int(side.lines[at])] if at in inside else None for at in where]


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
