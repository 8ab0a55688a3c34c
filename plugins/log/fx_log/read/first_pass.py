"""The first pass over a file: runs its scan, whole or in chunks, and counts what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_log import rules
from fx_log.format import KINDS, RING_PAGE, STREAM_HEADER, StreamHeader
from fx_log.read.framing import LogFramer, PacketFramer, RingFramer
from fx_log.read.packets import PacketScan
from fx_log.read.ring import Ring
from fx_log.read.rows import Totals
from fx_log.read.scan import LogScan
from fx_log.read.tables import LEVEL_NAMES, WELL_KNOWN
from fx_log.rules import RULES
from fx_log.severity import LEVELS, Level
from fxframework.errors import Rule
from fxframework.io.limits import Limits
from fxframework.io.words import WORD
from fxframework.kernels.buffers import view
from fxframework.kernels.notes import Notes
from fxframework.kernels.rows import Rows
from fxframework.kit.scanned import FirstPass, Timeline, sketch
from fxframework.model.strings import StringPool

__all__ = ["Chunk", "ScanPass", "enter_known", "framed", "pass_over", "words_of"]

U8 = NDArray[np.uint8]
Columns = dict[str, NDArray[Any]]
WINDOW: Final = 1 << 25
"""Bytes after which the pages of the file are released."""
BEGINNING: Final = 1 << 20
"""Bytes read before the number of rows of the whole file is estimated."""
CHUNK: Final = 1 << 23
"""Bytes of the file after which a chunk ends, whatever its number of rows."""
ROOM: Final = 64
"""Initial room of a table, in rows."""
ENDLESS: Final = (1 << 63) - 1
LEVEL_OF: Final = np.array(LEVELS, np.uint8)
NOTHING: Final = memoryview(bytes(8)).cast("q")
ABOUT_NAMES: Final = (
    rules.WELL_KNOWN_OF_OTHER_TYPE,
    rules.WELL_KNOWN_TWICE,
    rules.ATTRIBUTION_NOT_LAST,
)
"""Rules whose findings show the name of an argument."""


@attrs.frozen
class Chunk:
    """Raw rows of consecutive records, by the names of the columns in ``rows.py``."""

    logs: Columns
    rare: Columns
    args: Columns
    tags: Columns
    positional: Columns
    data: U8
    """The bytes that contain the messages."""
    pool: StringPool
    first: Mapping[str, int]
    """Number of the chunk's first row, by table."""
    types_seen: int
    """The types of arguments so far, a bit each."""


class ScanPass(FirstPass[Chunk]):
    """Reads a file once from its beginning. ``unit`` is the bytes per position of the framer."""

    def __init__(
        self,
        scan: LogScan | PacketScan,
        data: U8,
        pool: StringPool,
        unit: int,
        ring: Ring | None = None,
    ) -> None:
        self.ring = ring
        self.scan = scan
        self.framer = scan.framer
        self.totals = scan.totals
        self.data = data
        self.pool = pool
        self._unit = unit

    @property
    def position(self) -> int:
        """Bytes that are done with."""
        return min(self._unit * self.framer.pos, self.data.size)

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Yield the rest of the file in chunks of up to about ``rows`` rows per table."""
        while not self.scan.done:
            self.scan.most = rows
            self.scan.until = self.framer.pos + CHUNK // self._unit
            self._run()
            yield self._take(ROOM)
        self.finish()

    def keep(self, release: Callable[[int, int], None]) -> None:
        """Read everything into ``whole``; ``release(start, stop)`` gets the bytes read so far."""
        released = 0
        until = BEGINNING
        while not self.scan.done:
            self.scan.until = until // self._unit
            self._run()
            position = self.position
            if until == BEGINNING and not self.scan.done:
                self._estimate(position)
            release(released, position)
            released = position
            until = position + WINDOW
        release(released, self.data.size)
        self.whole = self._take(ROOM)
        self.finish()

    def _run(self) -> None:
        self.scan.run()
        # The pool outlives the file, so it must not keep a view of it.
        self.scan.pool.read_from(NOTHING)

    def _estimate(self, position: int) -> None:
        """Reserve room for a rest that is as dense as the beginning."""
        scale = 1.05 * self.data.size / max(position, 1)
        for columns in (self.scan.logs, self.scan.tags, self.scan.args):
            rows = int(scale * columns.rows)
            if rows > columns.room:
                columns.resize(rows)

    def _take(self, room: int) -> Chunk:
        """Return the rows filled since the last call."""
        return Chunk(
            first={name: int(columns.first) for name, columns in self._tables().items()},
            logs=self.scan.logs.taken(room),
            rare=self.scan.rare.taken(room),
            args=self.scan.args.taken(room),
            tags=self.scan.tags.taken(room),
            positional=self.scan.positional.taken(room),
            types_seen=int(self.totals.types_seen),
            data=self.data,
            pool=self.pool,
        )

    def _tables(self) -> dict[str, Rows]:
        return {"logs": self.scan.logs, "args": self.scan.args, "log_tags": self.scan.tags}

    # --- Counts -----------------------------------------------------------------------------------

    def count(self, kind: str, records: int = 1) -> None:
        """Count records that the framer does not see."""
        self.framer.kinds[KINDS.index(kind)] += 1
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
            return self.pool.bytes_of(value) if value else None
        if rule in ABOUT_NAMES:
            return self.pool[value]
        return value if self.ring is None else self.ring.shown(rule, value)

    @property
    def notes(self) -> tuple[Notes]:
        """The notes of the scan."""
        return (self.framer.notes,)

    @property
    def records(self) -> int:
        """Number of records in the file."""
        return int(self.framer.record)

    @property
    def kinds(self) -> dict[str, int]:
        """Number of records of each kind."""
        counted = zip(KINDS, np.asarray(self.framer.kinds).tolist(), strict=True)
        return {name: count for name, count in counted if count}

    @property
    def rows(self) -> dict[str, int]:
        """Number of rows of each table."""
        return {name: int(table.first + table.rows) for name, table in self._tables().items()}

    @property
    def range(self) -> tuple[int | None, int | None]:
        """The times of the first and last log, in ns; None without logs."""
        if not self.totals.logs:
            return None, None
        return int(self.totals.first_ns), int(self.totals.final_ns)

    @property
    def timeline(self) -> Timeline:
        """Number of logs per stretch of time, for each severity."""
        first, last = self.range
        if self.whole is None or first is None or last is None:
            return ()
        logs = self.whole.logs
        labels = [(int(level), level.name) for level in reversed(Level)]
        return sketch(logs["ns"], LEVEL_OF[logs["severity"]], (first, last), labels)

    @property
    def levels(self) -> dict[str, int]:
        """Number of logs by severity name, the most severe first."""
        found: dict[str, int] = {}
        severities = np.asarray(self.totals.severities)
        for severity in np.flatnonzero(severities)[::-1].tolist():
            name = LEVELS[severity].name
            found[name] = found.get(name, 0) + int(severities[severity])
        return found


# --- Readings of each format ----------------------------------------------------------------------


def enter_known(strings: StringPool) -> None:
    """Begin a pool with the strings that scans know by code."""
    for text in (*WELL_KNOWN, *LEVEL_NAMES):
        strings.pool.enter(text)


def words_of(data: U8) -> memoryview:
    """Return the whole words of some bytes, for kernels."""
    return view(data[: data.size // WORD * WORD].view("<i8"), np.int64)


def framed(
    form: str, data: U8, limits: Limits, options: Mapping[str, Any], notes: Notes
) -> tuple[LogFramer | RingFramer | PacketFramer, U8, Ring | None]:
    """Return the framer of a file, the bytes that it frames, and the ring, if the file is one."""
    if form == "log":
        most = min(limits.max_record, ENDLESS)
        suffixed = bool(options.get("suffix"))
        return LogFramer(words_of(data), data.size, notes, most, suffixed), data, None
    if form == "log-ring":
        ring = Ring(data)
        line = ring.line(0, max(0, ring.used))
        wrap = (ring.capacity - ring.start) // WORD
        framer = RingFramer(words_of(line), notes, ring.place(0), wrap, ring.capacity)
        return framer, line, ring
    start = -1 if form == "log-legacy" else STREAM_HEADER
    return PacketFramer(view(data, np.uint8), notes, start), data, None


def pass_over(
    form: str, data: U8, strings: StringPool, limits: Limits, options: Mapping[str, Any]
) -> ScanPass:
    """Return a pass over a file of a format; what is before the first record is in it already."""
    notes = Notes(RULES.numbers, limits.max_findings)
    framer, line, ring = framed(form, data, limits, options, notes)
    pool, octets = strings.pool, view(line, np.uint8)
    totals = Totals(pool.count)
    era_2022 = options.get("severity_era") == "2022"
    if isinstance(framer, PacketFramer):
        packets = PacketScan(framer, octets, pool, notes, totals)
        packets.configure(era_2022=era_2022)
        scanned = ScanPass(packets, line, strings, 1)
        if form == "log-legacy-stream" and data.size:
            scanned.stream_header(data[:STREAM_HEADER].tobytes())
        return scanned
    logs = LogScan(framer, octets, words_of(line), pool, notes, totals)
    logs.configure(
        printf=bool(options.get("printf")),
        limits=bool(options.get("fidl_limits")),
        era_2022=era_2022,
        in_entries=ring is not None,
    )
    scanned = ScanPass(logs, line, strings, WORD, ring)
    if ring is not None:
        scanned.ring_header(ring)
    return scanned
