"""Merges several captures of any format into one trace archive.

Each capture becomes a provider. A trace keeps its records, with free provider ids; the tables of
any other capture are encoded (``fx_trace.write.bulk``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.read.capture import TraceCapture
from fx_trace.read.image import BufferCapture
from fx_trace.records import ProviderInfo
from fx_trace.write.bulk import NAMES, TABLES, Bulk
from fx_trace.write.extract import ProviderIds, join
from fx_trace.write.selected import KEEP
from fxframework.errors import UsageError, refusal
from fxframework.io.sink import Sink
from fxframework.kit.omitted import omitted_columns
from fxframework.model.capture import Capture, Window
from fxframework.model.selection import Selection

_BESIDE = ("args", "blobs", "diagnostics")
MAX_NAME = 255
"""Longest name of a provider, in bytes."""


class Merger:
    """Writes captures into one archive (``fxframework.registry.ExportSession``)."""

    def __init__(
        self,
        sink: Sink,
        *,
        logs_as_instants: bool = False,
        open_slices: str = KEEP,
        only_big_endian: bool = False,
    ) -> None:
        self._sink = sink
        self._only_big_endian = only_big_endian
        self._open_slices = open_slices
        self._logs_as_instants = logs_as_instants
        self._providers = ProviderIds()
        self._dropped: Counter[str] = Counter()
        self._big_endian: bool | None = None

    def write(self, capture: Capture) -> None:
        """Add a capture.

        Raises WriteRefusedError (MIXED_BYTE_ORDERS) for traces of different byte orders.
        """
        whole_capture = capture
        selection = Selection()
        if isinstance(capture, Window):
            whole_capture = capture.whole
            selection = capture.selection
        if isinstance(whole_capture, BufferCapture):
            with whole_capture.as_archive() as archive:
                self._begin(big_endian=False)
                self._join(archive, selection, _name_of(whole_capture))
        elif isinstance(whole_capture, TraceCapture):
            self._begin(big_endian=whole_capture.big_endian)
            self._join(whole_capture, selection, _name_of(whole_capture))
        else:
            self._begin(big_endian=False)
            self._write_tables(capture)

    def close(self) -> Mapping[str, int]:
        """Return the counts of what could not be written, by name."""
        if self._big_endian is None:
            self._begin(big_endian=False)
        return self._dropped

    def _begin(self, *, big_endian: bool) -> None:
        if self._big_endian is None:
            if self._only_big_endian and not big_endian:
                raise _does_not_apply("big_endian")
            self._big_endian = big_endian
            self._sink.write(wire.MAGIC_BYTES_BIG_ENDIAN if big_endian else wire.MAGIC_BYTES)
        elif self._big_endian != big_endian:
            raise refusal(
                rules.MIXED_BYTE_ORDERS, "one capture is little-endian, another big-endian"
            )

    def _join(self, capture: TraceCapture, selection: Selection, name: str) -> None:
        left_out = join(
            capture,
            selection,
            self._sink,
            providers=self._providers,
            name=name,
            how=self._open_slices,
        )
        for reason in ("padding", "damaged stretches"):
            if reason in left_out:
                self._dropped[reason] += left_out[reason]

    def _write_tables(self, capture: Capture) -> None:
        tables = {
            name: capture.table(name)
            for name in (*TABLES, *NAMES, "args", "blobs")
            if name in capture.tables
        }
        bulk = Bulk(
            tables,
            capture.strings,
            source=capture.source.data,
            logs_as_instants=self._logs_as_instants,
        )
        provider = self._providers.free()
        self._sink.write(ProviderInfo(id=provider, name=_name_of(capture)).pack())
        for block in bulk.blocks():
            self._sink.write(block)
        self._dropped.update(bulk.dropped)
        self._dropped += omitted_columns(capture, tables)
        for name in capture.tables:
            if name in tables or name in _BESIDE:
                continue
            rows = len(capture.table(name))
            if rows:
                self._dropped[f"rows of {name}"] = rows


def open_merge(sink: Sink, options: Mapping[str, Any]) -> Merger:
    """Open a session that merges captures.

    With ``logs_as_instants``, logs of other formats become instant events with all their fields.
    ``open_slices`` applies to parts of traces; ``big_endian`` says what traces are already. Raises
    UsageError for options that do not apply.
    """
    if options.get("perfetto_safe"):
        raise _does_not_apply("perfetto_safe")
    return Merger(
        sink,
        logs_as_instants=bool(options.get("logs_as_instants", False)),
        open_slices=options.get("open_slices", KEEP),
        only_big_endian=bool(options.get("big_endian", False)),
    )


def _does_not_apply(option: str) -> UsageError:
    return UsageError(
        f"{option} does not apply to a merge",
        remedy="merge the captures first, then convert the archive",
    )


def _name_of(capture: Capture) -> str:
    name = PurePath(capture.name).name or "capture"
    return name.encode()[:MAX_NAME].decode(errors="ignore")
