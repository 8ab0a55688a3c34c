"""Capture: opens log files. Records come from ``decoder.py``, tables from ``batches.py``.

``fxframework.kit.scanned`` contains the parts common to all readers. Columns are made at first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fx_log import format as wire
from fx_log import rules
from fx_log.read.batches import batch_of
from fx_log.read.first_pass import Chunk, LogPass, enter_known, pass_over
from fx_log.read.frames import FramedFile, Frames
from fx_log.read.ring import Ring
from fx_log.rules import RULES
from fx_log.tables import LOG_TAGS, LOGS
from fxframework.io.source import Source
from fxframework.io.words import view_of
from fxframework.kit.scanned import Batch, Note, ScannedCapture
from fxframework.model.capture import OpenRequest, Record
from fxframework.model.schema import STANDARD_TABLES, TableSchema

__all__ = [
    "LegacyCapture",
    "LogCapture",
    "RingCapture",
    "StreamCapture",
]

I64 = NDArray[np.int64]
LISTED = 1000
"""Most components and tags in a summary."""


class LogCapture(ScannedCapture[LogPass, Chunk]):
    """A capture of structured records."""

    format = "log"
    rules = RULES
    memory_factor = 6  # of typical logs, one or two
    timed_records = True
    row_table = "logs"
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        "logs": LOGS,
        "args": STANDARD_TABLES["args"],
        "log_tags": LOG_TAGS,
    }

    def __init__(self, source: Source, request: OpenRequest) -> None:
        super().__init__(source, request)
        enter_known(self.strings)

    @property
    def utc_offset_ns(self) -> int | None:
        """Epoch minus the capture's clock, from the option of that name; None if unknown."""
        return self.request.options.get("utc_offset_ns") or None

    @property
    def clocks(self) -> Mapping[str, int]:
        """The stated clock (default: boot), and the time of day if its offset is known."""
        return {**super().clocks, str(self.request.options.get("clock") or "boot"): 0}

    # --- Records ---------------------------------------------------------------------------------

    def records(self) -> Iterator[Record]:
        """Return every record, decoded one at a time by ``fx_log.read.decoder``."""
        from fx_log.read.decoder import RecordDecoder

        decoder = RecordDecoder(
            self.format,
            diagnostics=self.record_diagnostics,
            limits=self.request.limits,
            options=self.request.options,
        )
        return decoder.records(self.source.data)

    def records_json(self) -> Iterator[bytes]:
        """Return the same records as JSON lines.

        They are written many at a time (``lines``).
        """
        from fx_log.read.decoder import RecordDecoder
        from fx_log.read.lines import LineWriter

        self.first_pass(whole=False)  # it reports the findings
        limits, options = self.request.limits, self.request.options
        decoder = RecordDecoder(self.format, limits=limits, options=options)
        released = 0
        for end, lines in LineWriter(decoder.read(view_of(self.source.data))).lines():
            self.check_budget()
            if lines:
                yield lines
            self._release(released, end)
            released = end

    def resume(self) -> tuple[int, bytes] | None:
        """Return the offset after the last whole record, and the control records before it.

        With suffixes, a record is whole only if its suffix is complete.
        """
        # Of equal control records, the last one is enough.
        controls: dict[bytes, None] = {}
        end = 0
        for frames in self.frames():
            sound = frames.sound()
            if self.request.options.get("suffix") and (sound.suffix[-1:] < 0).any():
                sound = sound.take(slice(-1))
            for row in sound.take(np.flatnonzero(sound.tag & wire.CONTROL)).rows():
                record = self.source.read(row.begin, row.end - row.begin)
                controls.pop(record, None)
                controls[record] = None
            end = int(sound.end[-1]) if sound.end.size else end
        return end, b"".join(controls)

    def framed(self, *, splits: bool = False) -> FramedFile:
        """Return where records are (``FramedFile``)."""
        limits, options = self.request.limits, self.request.options
        return FramedFile(self.format, self.source.data, limits, options, splits=splits)

    def frames(self) -> Iterator[Frames]:
        """Yield all stretches, thousands at a time."""
        return self.framed().blocks()

    # --- The pass over the whole file -------------------------------------------------------------

    def _run_pass(self, *, whole: bool) -> LogPass:
        scanned = self._scan_pass()
        if whole:
            scanned.keep(self._release)
        else:
            for _ in self._chunks(scanned):
                pass
        return scanned

    def _parts(self, passed: LogPass) -> Iterator[Chunk]:  # noqa: ARG002 (the interface of FirstPass)
        return self._chunks(self._scan_pass())

    def _scan_pass(self) -> LogPass:
        """Return a pass from the beginning of the file, with the capture's string pool."""
        limits, options = self.request.limits, self.request.options
        self._last = pass_over(self.format, self.source.data, self.strings, limits, options)
        return self._last

    def _release(self, start: int, stop: int) -> None:
        self.source.passed(start, stop)

    def _chunks(self, scanned: LogPass) -> Iterator[Chunk]:
        released = 0
        for chunk in scanned.chunks():
            yield chunk
            self._release(released, scanned.position)
            released = scanned.position

    def _value(self, note: Note) -> object:
        return self._last.shown(note.rule, note.value)

    def _batch(self, name: str, passed: LogPass, part: Chunk) -> Batch:  # noqa: ARG002
        return batch_of(name, part)

    def _facts(self, passed: LogPass) -> dict[str, Any]:
        totals = passed.totals
        clock = self.request.options.get("clock")
        offset = self.utc_offset_ns
        components = self._most(totals.by_component, "component")
        tags = self._most(totals.by_tag, "tag")
        return {
            "clock": f"{clock} (stated)" if clock else self._unstated_clock,
            "utc_offset": "not known" if offset is None else offset,
            "severities": passed.levels,
            "components": components,
            "tags": tags,
            "dropped": totals.dropped,
            "rolled_out": totals.rolled_out,
            "out_of_order": int(passed.findings.totals[int(rules.TIME_DECREASES)]),
        }

    _unstated_clock = "not stated: boot today, monotonic in older captures"

    def _most(self, counts: I64, label: str) -> list[dict[str, Any]]:
        """Return the strings with the most logs, and their counts, in descending order."""
        codes = np.flatnonzero(counts)
        codes = codes[np.argsort(-counts[codes], kind="stable")][:LISTED]
        return [
            {label: self.strings.bytes_of(code).decode("utf-8", "replace"), "logs": count}
            for code, count in zip(codes.tolist(), counts[codes].tolist(), strict=True)
        ]


class RingCapture(LogCapture):
    """A capture of an IOBuffer ring's image; rows and records are in reading order."""

    format = "log-ring"

    def __init__(self, source: Source, request: OpenRequest) -> None:
        super().__init__(source, request)
        self.ring = Ring(source.data)

    def resume(self) -> tuple[int, bytes] | None:
        """None: a ring does not grow."""
        return None

    def _release(self, start: int, stop: int) -> None:
        """Release nothing: the bytes read may be a copy."""


class LegacyCapture(LogCapture):
    """A capture of one legacy packet, which is the whole file."""

    format = "log-legacy"
    _unstated_clock = "not stated: monotonic"

    def resume(self) -> tuple[int, bytes] | None:
        """None: a packet does not grow."""
        return None


class StreamCapture(LegacyCapture):
    """A capture of a container of legacy packets."""

    format = "log-legacy-stream"

    def resume(self) -> tuple[int, bytes] | None:
        """Return the offset after the last whole packet, and the container's header.

        0 and no bytes while the header is incomplete.
        """
        if self.source.size < wire.STREAM_HEADER:
            return 0, b""
        end = wire.STREAM_HEADER
        for frames in self.frames():
            end = max([end, *frames.sound().end[-1:].tolist()])
        return end, self.source.read(0, wire.STREAM_HEADER)
