"""One pass of a scan over a file, whole or in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_log.format import KINDS
from fx_log.read.columns import Totals
from fx_log.read.framing import Framer, LogFramer, PacketFramer, RingFramer
from fx_log.read.packets import PacketScan
from fx_log.read.scan import LogScan
from fx_log.rules import RULES
from fx_log.severity import LEVELS, Level
from fxframework.errors import Rule
from fxframework.io.limits import Limits
from fxframework.kernels.buffers import view
from fxframework.kernels.notes import Notes
from fxframework.kernels.rows import Rows
from fxframework.kit.scanned import FirstPass, Timeline, sketch
from fxframework.model.strings import StringPool

__all__ = [
    "Chunk",
    "ScanPass",
    "log_framer",
    "read_logs",
    "read_packets",
    "read_ring",
]

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


@attrs.frozen
class Chunk:
    """Raw rows of consecutive records, by the names of the columns in ``columns.py``."""

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

    def __init__(self, scan: LogScan | PacketScan, data: U8, pool: StringPool, unit: int) -> None:
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


def _words(data: U8) -> memoryview:
    return view(data[: data.size // 8 * 8].view("<i8"), np.int64)


def log_framer(
    data: U8, limits: Limits, options: Mapping[str, Any], notes: Notes | None = None
) -> LogFramer:
    """Return the framer of a file of structured records."""
    most = min(limits.max_record, ENDLESS)
    suffixed = bool(options.get("suffix"))
    return LogFramer(_words(data), data.size, notes or Notes(RULES.numbers, 1), most, suffixed)


def _scan(
    framer: Framer, data: U8, strings: StringPool, options: Mapping[str, Any], *, in_entries: bool
) -> ScanPass:
    """Return a reading of the structured records that a framer finds in ``data``."""
    pool = strings.pool
    octets = view(data, np.uint8)
    scan = LogScan(framer, octets, _words(data), pool, framer.notes, Totals(pool.count))
    scan.configure(
        printf=bool(options.get("printf")),
        limits=bool(options.get("fidl_limits")),
        era_2022=options.get("severity_era") == "2022",
        in_entries=in_entries,
    )
    return ScanPass(scan, data, strings, 8)


def read_logs(
    data: U8, strings: StringPool, limits: Limits, options: Mapping[str, Any]
) -> ScanPass:
    """Return a reading of a file of structured records."""
    framer = log_framer(data, limits, options, Notes(RULES.numbers, limits.max_findings))
    return _scan(framer, data, strings, options, in_entries=False)


def read_ring(
    image: U8,
    stretch: tuple[int, int, int],
    strings: StringPool,
    limits: Limits,
    options: Mapping[str, Any],
) -> ScanPass:
    """Return a reading of a ring's image.

    ``stretch`` holds the byte of the image where the ring begins, the byte of the ring where the
    oldest entry begins, and the bytes from there to the head.
    """
    page, start, used = stretch
    ring = image[page:]
    line = ring[start : start + used]
    if line.size < used:  # copy the used part of a ring that wraps
        line = np.concatenate((line, ring[: used - line.size]))
    notes = Notes(RULES.numbers, limits.max_findings)
    wrap = (ring.size - start) // 8
    framer = RingFramer(_words(line), notes, page + start, wrap, ring.size)
    return _scan(framer, line, strings, options, in_entries=True)


def read_packets(
    data: U8, start: int, strings: StringPool, limits: Limits, options: Mapping[str, Any]
) -> ScanPass:
    """Return a reading of a container's packets from byte ``start``, or (-1) of one packet."""
    octets = view(data, np.uint8)
    framer = PacketFramer(octets, Notes(RULES.numbers, limits.max_findings), start)
    pool = strings.pool
    scan = PacketScan(framer, octets, pool, framer.notes, Totals(pool.count))
    scan.configure(era_2022=options.get("severity_era") == "2022")
    return ScanPass(scan, data, strings, 1)
