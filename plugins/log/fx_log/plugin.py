"""Hook implementations of the log formats. Cheap to import: everything else loads at first use."""

from __future__ import annotations

from collections.abc import Iterable

from fxframework import hookimpl
from fxframework.errors import Catalogue
from fxframework.registry import (
    Confidence,
    Exporter,
    Option,
    Probe,
    Reader,
    StepKind,
    Writer,
    exporters_of,
    lazy,
    nondeterministic,
    step_kinds,
)

SUFFIXES = (".fxlog",)
RING_SUFFIXES = (".fxring",)
STREAM_SUFFIXES = (".fxllog",)
FORMATS = ("log", "log-legacy", "log-legacy-stream", "log-ring")

# --- Recognising -------------------------------------------------------------------------

NEAR = 1024
"""Bytes at the beginning that are searched for a record's header in a file with the suffix."""
ENOUGH = 3
"""Number of sound records that identify a file as logs, which have no magic number."""
RECORD_TYPE = 9
"""The type of log records, in the lower half of their first byte (``format.RECORD_TYPE``)."""
MOST_SEVERE = 0x7F
"""The greatest severity of records in a file that nothing else tells to be logs."""
SOME = 64
"""Bytes behind a ring's head and tail that are looked at first, without the declared format."""


def sniff(probe: Probe) -> Confidence:
    """Return LIKELY for three sound records in a row, or for fewer that end at the end of the file.

    POSSIBLE for a file with the suffix that is empty, or whose first words contain the header of a
    record. Never CERTAIN: logs have no magic number, and traces have records of type 9 too, with
    severity byte 0.
    """
    is_named = probe.has_suffix(SUFFIXES)
    if not probe.size:
        return Confidence.POSSIBLE if is_named else Confidence.NONE
    # Other files are refused without the declared format: the first byte has the record type.
    if not is_named and probe.head[0] % 16 != RECORD_TYPE:
        return Confidence.NONE
    offset = 0
    for _ in range(ENOUGH):
        nbytes = _sound_record_size(probe, offset)
        offset += nbytes
        if not nbytes or offset == probe.size:
            break
    if nbytes:
        return Confidence.LIKELY
    if is_named:
        near = range(0, min(len(probe.head), NEAR), 8)
        if any(_record_size(probe, offset) for offset in near):
            return Confidence.POSSIBLE
    return Confidence.NONE


def _record_size(probe: Probe, offset: int) -> int:
    """Return the bytes of the record that may begin at a byte, by its type and size; 0 if none."""
    from fx_log.format import LogRecord

    layout = LogRecord.layout
    nbytes = 8 * layout.place("_size_words").get(probe.head, offset)
    is_record = layout.place("_type").get(probe.head, offset) == RECORD_TYPE
    return nbytes if is_record and 16 <= nbytes <= probe.size - offset else 0


def _sound_record_size(probe: Probe, offset: int) -> int:
    """Return the bytes of the sound record at a byte; 0 if there is none that fits the file.

    The arguments must fit too, as far as the bytes at hand contain them.
    """
    from fx_log import format as wire

    head = memoryview(probe.head)
    layout = wire.LogRecord.layout
    nbytes = _record_size(probe, offset)
    has_fields = nbytes and offset + layout.least <= len(head)
    if not has_fields or layout.place("_reserved").get(head, offset):
        return 0
    end = min(offset + nbytes, len(head))
    record, _ = wire.LogRecord.unpack(head, offset, end, wire.STATE)
    types = [argument.type for argument in record.args]
    if end < offset + nbytes:  # the last argument may go on behind these bytes
        types = types[:-1]
    is_sound = set(types).issubset(wire.ARG_NAMES.values())
    return nbytes if is_sound and 1 <= record.severity <= MOST_SEVERE else 0


def sniff_ring(probe: Probe) -> Confidence:
    """Return LIKELY for a valid first page, and a log record in the oldest entry if it is in reach.

    The first page must hold a valid head and tail and zeros, and the ring must have a legal size.
    POSSIBLE for at least a page with the suffix.
    """
    is_named = probe.has_suffix(RING_SUFFIXES)
    if not is_named and any(probe.head[16 : 16 + SOME]):
        return Confidence.NONE
    if _holds_log(probe):
        return Confidence.LIKELY
    from fx_log.format import RING_PAGE

    has_page = probe.size >= RING_PAGE
    return Confidence.POSSIBLE if is_named and (has_page or not probe.size) else Confidence.NONE


def _holds_log(probe: Probe) -> bool:
    """Return whether the first page is that of a ring whose oldest entry has a log record."""
    from fx_log import format as wire

    capacity = probe.size - wire.RING_PAGE
    if len(probe.head) < wire.RING_PAGE or capacity < wire.RING_MINIMUM:
        return False
    page = memoryview(probe.head)[: wire.RING_PAGE]
    header, _ = wire.RingHeader.unpack(page, 0, len(page), wire.STATE)
    used = header.head - header.tail
    if header.raw is not None or capacity % wire.RING_PAGE or not header.sound(capacity):
        return False
    entry = wire.RING_PAGE + header.tail % capacity
    record = entry + wire.RING_ENTRY
    if not used or len(probe.head) < record + 8:
        return False
    length = wire.RingFrame.layout.place("_length").get(probe.head, entry)
    type_of_record = wire.LogRecord.layout.place("_type").get(probe.head, record)
    return length <= used - wire.RING_ENTRY and type_of_record == RECORD_TYPE


def sniff_packet(probe: Probe) -> Confidence:
    """Return POSSIBLE for a file that is one packet: plausible severity, tags, final zero byte.

    A packet has no signature.
    """
    head = probe.head
    if len(head) != probe.size or not head or head[-1]:
        return Confidence.NONE
    from fx_log import format as wire

    if not wire.MIN_PACKET < len(head) <= wire.MAX_PACKET:
        return Confidence.NONE
    packet = wire.LegacyPacket.decoded(head, wire.STATE)
    if packet is None or not any(head[:24]):
        return Confidence.NONE
    is_plausible = packet.severity in wire.LEGACY_SEVERITIES
    return Confidence.POSSIBLE if is_plausible else Confidence.NONE


def sniff_stream(probe: Probe) -> Confidence:
    """Return CERTAIN for magic and version of the project's container, LIKELY for its magic.

    An empty file with the suffix is POSSIBLE.
    """
    if not probe.size and probe.has_suffix(STREAM_SUFFIXES):
        return Confidence.POSSIBLE
    if probe.head[:1].isascii():
        return Confidence.NONE
    from fx_log import format as wire

    if not probe.head.startswith(wire.STREAM_MAGIC):
        return Confidence.NONE
    header = wire.StreamHeader().pack()
    return Confidence.CERTAIN if probe.head.startswith(header) else Confidence.LIKELY


# --- Options -----------------------------------------------------------------------------

UTC_OFFSET = Option(
    "utc_offset_ns",
    0,
    "nanoseconds from the Unix epoch to time 0 of the clock; 0: as the capture says, if it does",
    portable=True,
)
CLOCKS = (
    Option(
        "clock",
        "",
        "clock of the times, which the bytes do not name: boot or monotonic",
        choices=("", "boot", "monotonic"),
        portable=True,
    ),
    UTC_OFFSET,
)
ERA = Option(
    "severity_era",
    "current",
    "meaning of severities: current, or 2022, when packets had -10 to 3",
    choices=("current", "2022"),
    portable=True,
)
STRUCTURED = (
    ERA,
    Option("printf", False, "insert the values of a structured printf (2022) into its message"),
    Option(
        "fidl_limits",
        False,
        "report records that exceed the FIDL record type: 15 arguments, names of 256 bytes",
    ),
)
SUFFIX = Option(
    "suffix", False, "each record is followed by its moniker and URL, as written in 2025"
)


REDACTION = (
    Option(
        "redact_keys",
        "",
        "keys, separated by commas, whose values become <redacted>; message, tag, file and the "
        "like are keys too",
    ),
    Option("redact_pattern", "", "regular expression; its matches in strings become <redacted>"),
)
ATTRIBUTION = Option(
    "attribution",
    "keep",
    "where records name their component: manifest (control records), in_record ($__moniker, "
    "$__url), none, or keep (unchanged; manifest for other formats)",
)
FOLD = Option(
    "fold",
    True,
    "for logs of other formats, append file, line and keys, which packets cannot hold, to the "
    "message",
)
TEXT_OPTIONS = (
    Option("show_metadata", True, "show pid and tid"),
    Option("show_full_moniker", True, "show full monikers, not only their last segments"),
    Option("show_tags", True, "show tags"),
    Option("show_file", True, "show source file and line"),
    Option(
        "time",
        "boot",
        "show times on the capture's clock (boot or monotonic), in UTC (utc), in local time "
        "(local), or in the zone of tz (wall)",
        choices=("boot", "monotonic", "utc", "local", "wall"),
    ),
    Option("tz", "utc", "time zone of time=wall: utc or local", choices=("utc", "local")),
    UTC_OFFSET,
    Option("color", False, "color lines by severity, as ffx does"),
)
JSON_OPTIONS = (
    Option("wrap", True, "wrap each LogsData object as `ffx log --machine json` does"),
    Option(
        "non_finite",
        "strings",
        "how to write doubles that JSON lacks: strings (NaN, Infinity, -Infinity) or null",
        choices=("strings", "null"),
    ),
)
OTLP_OPTIONS = (
    UTC_OFFSET,
    Option("observed_ns", 0, "observedTimeUnixNano of all logs; 0: the time of the export"),
)
JOURNALD_OPTIONS = (
    UTC_OFFSET,
    Option("hostname", "", "_HOSTNAME of all entries; default: none"),
    Option(
        "boot_id",
        "",
        "_BOOT_ID of all entries, 32 hex digits; default: a fixed one",
    ),
)


def _rules() -> Catalogue:
    from fx_log.rules import RULES

    return RULES


# --- Hooks -------------------------------------------------------------------------------


@hookimpl
def fx_readers() -> Iterable[Reader]:
    """Structured records, rings of them, and legacy packets, bare or in a container."""
    return [
        Reader(
            format="log",
            title="Fuchsia structured log records",
            suffixes=SUFFIXES,
            sniff=sniff,
            open=lazy("fx_log.read.capture:LogCapture"),
            options=(*CLOCKS, *STRUCTURED, SUFFIX),
            rules=_rules,
            explain=lazy("fx_log.read.frames:explain_log"),
            sample=lazy("fx_log.sample:sample"),
        ),
        Reader(
            format="log-legacy",
            title="Fuchsia legacy log packet",
            suffixes=(),
            sniff=sniff_packet,
            open=lazy("fx_log.read.capture:LegacyCapture"),
            options=(*CLOCKS, ERA),
            rules=_rules,
            explain=lazy("fx_log.read.frames:explain_legacy"),
        ),
        Reader(
            format="log-legacy-stream",
            title="Fuchsia legacy log packets",
            suffixes=STREAM_SUFFIXES,
            sniff=sniff_stream,
            open=lazy("fx_log.read.capture:StreamCapture"),
            options=(*CLOCKS, ERA),
            rules=_rules,
            explain=lazy("fx_log.read.frames:explain_stream"),
        ),
        Reader(
            format="log-ring",
            title="Fuchsia log ring image",
            suffixes=RING_SUFFIXES,
            sniff=sniff_ring,
            open=lazy("fx_log.read.capture:RingCapture"),
            options=(*CLOCKS, *STRUCTURED),
            rules=_rules,
            explain=lazy("fx_log.read.frames:explain_ring"),
        ),
    ]


@hookimpl
def fx_writers() -> Iterable[Writer]:
    """Structured records, rings of them, and legacy packets, bare or in a container."""
    return [
        Writer(
            format="log",
            title="Fuchsia structured log records",
            suffixes=SUFFIXES,
            open=lazy("fx_log.write.rewriter:open_writer"),
            lossless=True,
            exempt={
                "extract_of_nothing_is_readable": "a log without records is a file of no bytes",
            },
            options=(ATTRIBUTION, *REDACTION),
            accepts=frozenset({"logs"}),
            merge=lazy("fx_log.write.copying:open_merge"),
            extract=lazy("fx_log.write.copying:extract"),
            salvage=lazy("fx_log.write.copying:salvage"),
        ),
        Writer(
            format="log-legacy",
            title="Fuchsia legacy log packet",
            suffixes=(),
            open=lazy("fx_log.write.rewriter:open_legacy_writer"),
            lossless=True,
            extract=lazy("fx_log.write.copying:extract"),
            options=REDACTION,
        ),
        Writer(
            format="log-legacy-stream",
            title="Fuchsia legacy log packets",
            suffixes=STREAM_SUFFIXES,
            open=lazy("fx_log.write.rewriter:open_stream_writer"),
            lossless=True,
            options=(FOLD, *REDACTION),
            accepts=frozenset({"logs"}),
            merge=lazy("fx_log.write.copying:open_stream_merge"),
            extract=lazy("fx_log.write.copying:extract"),
            salvage=lazy("fx_log.write.copying:salvage"),
        ),
        Writer(
            format="log-ring",
            title="Fuchsia log ring image",
            suffixes=RING_SUFFIXES,
            open=lazy("fx_log.write.rewriter:open_ring_writer"),
            lossless=True,
            extract=lazy("fx_log.write.copying:extract"),
            salvage=lazy("fx_log.write.copying:salvage"),
            options=REDACTION,
        ),
    ]


@hookimpl
def fx_exporters() -> Iterable[Exporter]:
    """Text and LogsData of the log formats; OTLP and journal export of every capture with logs."""
    return [
        *exporters_of(
            FORMATS,
            name="text",
            title="one line per log, as ffx prints it",
            rows=frozenset({"logs"}),
            suffixes=(".txt",),
            open=lazy("fx_log.export.text:TextExport"),
            options=TEXT_OPTIONS,
        ),
        *exporters_of(
            FORMATS,
            name="json",
            title="LogsData, as `ffx log --machine json` prints it",
            rows=frozenset({"logs"}),
            suffixes=(".json",),
            open=lazy("fx_log.export.json_text:JsonExport"),
            options=JSON_OPTIONS,
        ),
        Exporter(
            name="otlp",
            title="OpenTelemetry logs, as OTLP/JSON",
            accepts=frozenset({"logs"}),
            suffixes=(".otlp.json",),
            open=lazy("fx_log.export.otlp:OtlpExport"),
            exempt=nondeterministic("the time of the export is in it"),
            options=OTLP_OPTIONS,
        ),
        Exporter(
            name="journald",
            title="systemd's journal export format",
            accepts=frozenset({"logs"}),
            suffixes=(".export",),
            open=lazy("fx_log.export.journald:JournaldExport"),
            options=JOURNALD_OPTIONS,
            binary=True,
        ),
    ]


@hookimpl
def fx_step_kinds() -> Iterable[StepKind]:
    """Steps for threads that log, for manifests, and for replay."""
    titles = {
        "log.thread": "Start a thread that logs what it does.",
        "log.manifest": "Name the component whose records have a tag.",
        "log.replay": "Write the records of a log again, at their own times.",
    }
    return step_kinds("fx_log.steps", titles, sample="fx_log.sample:SCENARIO", replays={"log"})
