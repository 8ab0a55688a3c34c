"""The first pass over a file: reads its blocks, keeps their rows or not, and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_log import rules
from fx_log.format import KINDS, RING_PAGE, STREAM_HEADER, StreamHeader
from fx_log.meaning import Arguments, LogRows, Meaning
from fx_log.read.blocks import BlockReader, LogBlocks, PacketBlocks
from fx_log.read.frames import FramedFile
from fx_log.read.ring import Ring
from fx_log.rules import RULES
from fx_log.severity import LEVELS, Level
from fx_log.tables import LEVEL_NAMES, WELL_KNOWN
from fxframework.errors import Rule
from fxframework.io import arena
from fxframework.io.limits import Limits
from fxframework.kit.scanned import FINDING_FIELDS, FirstPass, Timeline, sketch
from fxframework.model.strings import StringPool
from fxframework.wire.findings import Findings

__all__ = ["Chunk", "LogPass", "enter_known", "pass_over"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
WINDOW: Final = 1 << 25
"""Bytes after which the pages of the file are released."""
TABLES: Final = ("logs", "args", "log_tags")
HALF: Final = 1 << 32
LEVEL_OF: Final = np.array(LEVELS, np.uint8)
ABOUT_NAMES: Final = (
    rules.WELL_KNOWN_OF_OTHER_TYPE,
    rules.WELL_KNOWN_TWICE,
    rules.ATTRIBUTION_NOT_LAST,
)
"""Rules whose findings show the name of an argument."""


@attrs.frozen
class Chunk:
    """Rows of consecutive records."""

    rows: LogRows
    data: U8
    """The bytes that contain the messages."""
    pool: StringPool
    first: Mapping[str, int]
    """Number of the chunk's first row, by table."""


@attrs.define
class Totals:
    """Counts of the logs of a file, to which those of a block are added."""

    logs: int = 0
    first_ns: int | None = None
    final_ns: int | None = None
    """The earliest and the latest time."""
    dropped: int = 0
    rolled_out: int = 0
    severities: I64 = attrs.field(factory=lambda: np.zeros(256, np.int64))
    by_component: I64 = attrs.field(factory=lambda: np.zeros(0, np.int64))
    by_tag: I64 = attrs.field(factory=lambda: np.zeros(0, np.int64))
    """Numbers of logs by code of a component, and of a tag."""
    rows: dict[str, int] = attrs.field(factory=lambda: dict.fromkeys(TABLES, 0))

    def add(self, rows: LogRows) -> None:
        """Add the logs of a block."""
        columns = rows.logs
        ts = columns["ts"]
        for name, count in zip(TABLES, counts_of(rows), strict=True):
            self.rows[name] += count
        self.logs += ts.size
        if not ts.size:
            return
        earliest, latest = int(ts.min()), int(ts.max())
        self.first_ns = earliest if self.first_ns is None else min(self.first_ns, earliest)
        self.final_ns = latest if self.final_ns is None else max(self.final_ns, latest)
        self.dropped += exact_sum(columns["dropped"])
        self.rolled_out += exact_sum(columns["log_rolled_out"])
        self.severities += np.bincount(columns["severity"], minlength=256)
        component = columns["component"]
        self.by_component = added(self.by_component, np.bincount(component[component >= 0]))
        self.by_tag = added(self.by_tag, np.bincount(rows.tags.name))


def counts_of(rows: LogRows) -> tuple[int, int, int]:
    """Return the rows of each of ``TABLES``."""
    return rows.logs["ts"].size, rows.args.record.size, rows.tags.record.size


def exact_sum(numbers: I64) -> int:
    """Return the sum of numbers that have no sign, each of which may take all 64 bits."""
    if not numbers.any():
        return 0
    high, low = np.divmod(numbers.view(np.uint64), np.uint64(HALF))
    return int(low.sum()) + int(high.sum()) * HALF


def added(counts: I64, more: I64) -> I64:
    """Return the sums of two arrays of counts, of which one may be longer."""
    total = np.zeros(max(counts.size, more.size), np.int64)
    total[: counts.size] = counts
    total[: more.size] += more
    return total


def joined(blocks: list[LogRows]) -> LogRows:
    """Return the rows of several blocks as one; the blocks lose theirs, to save memory."""
    first_log = np.cumsum([0, *(block.logs["ts"].size for block in blocks)])[:-1]
    names = list(blocks[0].logs)
    logs = {name: concatenated([block.logs.pop(name) for block in blocks]) for name in names}

    def together(parts: list[Arguments]) -> Arguments:
        records = [part.record + first for part, first in zip(parts, first_log, strict=True)]
        return Arguments(
            concatenated(records),
            *(
                concatenated([getattr(part, name) for part in parts])
                for name in ("offset", "type", "name", "value", "nbytes")
            ),
        )

    return LogRows(
        logs,
        together([block.args for block in blocks]),
        together([block.tags for block in blocks]),
        together([block.printf for block in blocks]),
    )


def concatenated(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays as one; those that are one value all through stay so."""
    values = {part[0] for part in parts if part.size and not any(part.strides)}
    is_steady = all(not part.size or not any(part.strides) for part in parts)
    if is_steady and len(values) == 1:
        return np.broadcast_to(values.pop(), sum(part.size for part in parts))
    whole = arena.empty(sum(part.size for part in parts), parts[0].dtype)
    return np.concatenate(parts, out=whole)


class LogPass(FirstPass[Chunk]):
    """Reads a file once from its beginning."""

    def __init__(
        self,
        reader: BlockReader,
        strings: StringPool,
        ring: Ring | None,
        most_listed: int,
    ) -> None:
        self.ring = ring
        self.reader = reader
        self.framer = reader.framer
        self.strings = strings
        self.totals = Totals()
        self.findings = Findings(most_listed, RULES.numbers)

    @property
    def position(self) -> int:
        """Bytes that are done with."""
        return self.reader.file.position

    def blocks(self) -> Iterator[tuple[LogRows, I64]]:
        """Yield the rows of each block of the rest of the file, and its findings."""
        yield from self.reader.blocks()
        self.finish()
        notes = self.framer.notes
        if notes.used:
            nothing = self.reader.no_rows()
            yield nothing, np.array(notes.findings).reshape(-1, FINDING_FIELDS)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rest of the file in chunks, each a block."""
        for rows, findings in self.blocks():
            first = dict(self.totals.rows)
            self.totals.add(rows)
            self.findings.add(findings)
            yield Chunk(rows, self.reader.data, self.strings, first)

    def keep(self, release: Callable[[int, int], None]) -> None:
        """Read everything into ``whole``; ``release(start, stop)`` gets the bytes read so far."""
        released = 0
        blocks = []
        for chunk in self.chunks():
            blocks.append(chunk.rows)
            if self.position - released > WINDOW:
                release(released, self.position)
                released = self.position
        release(released, self.reader.data.size)
        rows = joined(blocks or [self.reader.no_rows()])
        self.whole = Chunk(rows, self.reader.data, self.strings, dict.fromkeys(TABLES, 0))

    # --- Counts -----------------------------------------------------------------------------------

    def count(self, kind: str, records: int = 1) -> None:
        """Count records that the framer does not see."""
        self.reader.kinds[kind] += 1
        self.framer.record += records

    def note(self, rule: Rule, offset: int, value: int = 0) -> None:
        """Report a finding about the next record."""
        self.framer.notes.add(rule, offset, self.framer.record, value)

    def stream_header(self, head: bytes) -> None:
        """Count the header of a container of packets."""
        sound = StreamHeader.begins(head)
        if not sound:
            self.note(rules.CONTAINER_HEADER, 0)
        elif any(head[12:]):
            self.note(rules.RESERVED_BITS, 0)
        self.count("stream_header" if sound else "damaged")

    def ring_header(self, ring: Ring) -> None:
        """Count the header of a ring, and the ring of an invalid one."""
        for rule, value in ring.problems():
            self.note(rule, 0, value)
        if ring.page.size == RING_PAGE:
            self.count("ring_header")
        if ring.used < 0 and (ring.capacity or 0 < ring.page.size < RING_PAGE):
            self.count("damaged")

    def finish(self) -> None:
        """Count the space of a ring between head and tail as one more record."""
        ring = self.ring
        if ring is None or not 0 <= ring.used < ring.capacity:
            return
        unused = ring.capacity - ring.used
        stale = ring.line(ring.used, ring.capacity).any()
        if stale:
            self.note(rules.STALE_BYTES, ring.place(ring.used), unused)
        self.count("damaged" if stale else "padding")

    def shown(self, rule: Rule, value: int) -> object:
        """Return what a finding shows of its value."""
        if rule == rules.NOT_UTF8:
            return self.strings.bytes_of(value) if value else None
        if rule in ABOUT_NAMES:
            return self.strings[value]
        return value if self.ring is None else self.ring.shown(rule, value)

    @property
    def notes(self) -> tuple[Findings]:
        """The findings of the pass."""
        return (self.findings,)

    @property
    def records(self) -> int:
        """Number of records in the file."""
        return int(self.framer.record)

    @property
    def kinds(self) -> dict[str, int]:
        """Number of records of each kind."""
        kinds = self.reader.kinds
        return {name: kinds[name] for name in KINDS if kinds[name]}

    @property
    def rows(self) -> dict[str, int]:
        """Number of rows of each table."""
        return self.totals.rows

    @property
    def range(self) -> tuple[int | None, int | None]:
        """The times of the first and last log, in ns; None without logs."""
        return self.totals.first_ns, self.totals.final_ns

    @property
    def timeline(self) -> Timeline:
        """Number of logs per stretch of time, for each severity."""
        first, last = self.range
        if self.whole is None or first is None or last is None:
            return ()
        logs = self.whole.rows.logs
        labels = [(int(level), level.name) for level in reversed(Level)]
        return sketch(logs["ts"], LEVEL_OF[logs["severity"]], (first, last), labels)

    @property
    def levels(self) -> dict[str, int]:
        """Number of logs by severity name, the most severe first."""
        found: dict[str, int] = {}
        severities = self.totals.severities
        for severity in np.flatnonzero(severities)[::-1].tolist():
            name = LEVELS[severity].name
            found[name] = found.get(name, 0) + int(severities[severity])
        return found


# --- Readings of each format ----------------------------------------------------------------------


def enter_known(strings: StringPool) -> None:
    """Begin a pool with the strings that scans know by code."""
    for text in (*WELL_KNOWN, *LEVEL_NAMES):
        strings.pool.enter(text)


def pass_over(
    form: str, data: U8, strings: StringPool, limits: Limits, options: Mapping[str, Any]
) -> LogPass:
    """Return a pass over a file of a format; what is before the first record is in it already."""
    file = FramedFile(form, data, limits, options)
    ring = file.ring
    meaning = Meaning(
        strings,
        in_entries=ring is not None,
        era_2022=options.get("severity_era") == "2022",
        with_printf=bool(options.get("printf")),
    )
    reader: BlockReader
    if form in ("log-legacy", "log-legacy-stream"):
        reader = PacketBlocks(file, strings, meaning)
        scanned = LogPass(reader, strings, None, limits.max_findings)
        if form == "log-legacy-stream" and data.size:
            scanned.stream_header(data[:STREAM_HEADER].tobytes())
        return scanned
    with_limits = bool(options.get("fidl_limits"))
    reader = LogBlocks(file, strings, meaning, with_limits=with_limits)
    scanned = LogPass(reader, strings, ring, limits.max_findings)
    if ring is not None:
        scanned.ring_header(ring)
    return scanned
