"""The rewriter: writes records that were read, or their JSON, in their format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from fx_log import rules
from fx_log.plugin import FORMATS
from fx_log.read.records import Damaged, LogFileRecord, StreamHeader, from_json
from fx_log.write.convert import AttributionConverter
from fx_log.write.encoder import RecordEncoder
from fx_log.write.redaction import Redactor
from fxframework.errors import Rule, Severity
from fxframework.io.sink import Sink
from fxframework.kit.lossless import RecordRewriter
from fxframework.model.diagnostics import Diagnostics
from fxframework.wire.packing import Packer

__all__ = [
    "LogRewriter",
    "is_plain",
    "open_any_writer",
    "open_legacy_writer",
    "open_ring_writer",
    "open_stream_writer",
    "open_writer",
]


class LogRewriter(RecordRewriter):
    """Writes records to a sink, one after another.

    ``attribution`` moves the attribution (``fx_log.write.convert``), ``redactor`` removes private
    data (``fx_log.write.redaction``). A container of packets without a header record gets one.
    """

    encoder: RecordEncoder

    def __init__(
        self,
        sink: Sink,
        form: str,
        diagnostics: Diagnostics,
        *,
        attribution: AttributionConverter | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        super().__init__(sink, RecordEncoder(form))
        self._form = form
        self._diagnostics = diagnostics
        self._headless = form == "log-legacy-stream"
        self._attribution = attribution
        self._redactor = redactor

    @property
    def lost(self) -> Mapping[str, int]:
        """Counts of attribution that could not be kept."""
        return {} if self._attribution is None else self._attribution.lost

    @property
    def redacted(self) -> Mapping[str, int]:
        """Counts of redactions."""
        return {} if self._redactor is None else self._redactor.counts

    def write(self, record: LogFileRecord | Mapping[str, Any]) -> None:
        """Write a record, or none of it: WriteRefusedError."""
        if isinstance(record, Mapping):
            record = from_json(record)
        self._put([record] if self._attribution is None else self._attribution.feed(record))

    def packer(self) -> Packer | None:
        """Return what packs many records; None if they are changed, or placed at the end."""
        changed = self._attribution is not None or self._redactor is not None
        return None if changed or self._headless else self.encoder.packer()

    def close(self) -> None:
        """Write held-back records to the sink, which stays open, and report what was left out."""
        if self._attribution is not None:
            self._put(self._attribution.finish())
        super().close()
        for what, count in self.redacted.items():
            self._report(rules.REDACTED, f"{count} {what}", count)
        for key in () if self._redactor is None else self._redactor.absent:
            self._report(rules.KEY_NOT_THERE, key)
        asked = self._attribution is not None and self._attribution.to == "none"
        for what, count in self.lost.items():
            self._report(
                rules.NO_ROOM_FOR_ATTRIBUTION,
                f"{count} {what}",
                count,
                Severity.WARNING if asked else None,
            )

    def _report(
        self, rule: Rule, what: str, times: int = 1, severity: Severity | None = None
    ) -> None:
        if times:
            self._diagnostics.add(rule, value=what, times=times, severity=severity)

    def _put(self, records: Iterable[LogFileRecord]) -> None:
        for record in records:
            kept = record if self._redactor is None else self._redactor.redact(record)
            if kept is None:
                continue
            data = self.encoder.encode(kept)
            if self._headless:
                self._headless = False
                if not isinstance(kept, StreamHeader | Damaged):
                    self.put(StreamHeader().pack())
            self.put(data)


def open_any_writer(
    format: str, sink: Sink, options: Mapping[str, Any], diagnostics: Diagnostics
) -> LogRewriter:
    """Open the writer of a log format; that of a ring assembles its image at the end.

    ``redact_keys`` and ``redact_pattern`` select the data to remove; for structured records,
    ``attribution`` the place of attribution (keep, manifest, in_record, none). Raises UsageError
    for an invalid value.
    """
    to = options.get("attribution") or "keep"
    return LogRewriter(
        sink,
        format,
        diagnostics,
        attribution=None if to == "keep" else AttributionConverter(to),
        redactor=Redactor.of(options),
    )


open_writer, open_legacy_writer, open_stream_writer, open_ring_writer = (
    partial(open_any_writer, form) for form in FORMATS
)


def is_plain(options: Mapping[str, Any]) -> bool:
    """Return whether a writer's options leave records as they are."""
    return all(value in {"keep", "", True} for value in options.values())
