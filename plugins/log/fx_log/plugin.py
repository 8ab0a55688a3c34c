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
SOME = 64
"""Bytes behind a ring's head and tail that are looked at first, without the declared format."""


def sniff(probe: Probe) -> Confidence:
    """Return LIKELY for three sound records in a row, or for fewer that end at the end of the file.

    POSSIBLE for a file with the suffix that is empty, or whose first words contain the header of a
    record. Never CERTAIN: logs have no magic number, and traces have records of type 9 too, with
    severity byte 0.
    """
    named = probe.has_suffix(SUFFIXES)
    if not probe.size:
        return Confidence.POSSIBLE if named else Confidence.NONE
    # Other files are refused without the declared format: the first byte has the record type.
    if not named and probe.head[0] % 16 != RECORD_TYPE:
        return Confidence.NONE
    at = found = 0
    while found < ENOUGH:
        size = _sound_record_size(probe.head, at, probe.size)
        if not size:
            break
        found += 1
        at += size
        if at == probe.size:
            return Confidence.LIKELY
    if found == ENOUGH:
        return Confidence.LIKELY
    near = range(0, min(len(probe.head), NEAR), 8) if named else ()
    return Confidence.POSSIBLE if any(_is_header(probe, at) for at in near) else Confidence.NONE


def _is_header(probe: Probe, at: int) -> bool:
    """Return whether the word at byte ``at`` could be a record's header, by its type and size."""
    from fx_log import format as wire

    word = int.from_bytes(probe.head[at : at + 8], "little")
    nbytes = 8 * wire.SIZE.get(word)
    return wire.TYPE.get(word) == wire.RECORD_TYPE and 16 <= nbytes <= probe.size - at


def _sound_record_size(head: bytes, at: int, size: int) -> int:
    """Return the bytes of the sound record at byte ``at``; 0 if there is none that fits the file.

    The arguments must fit too, as far as ``head`` contains them.
    """
    from fx_log import format as wire

    word = int.from_bytes(head[at : at + 8], "little")
    nbytes = 8 * wire.SIZE.get(word)
    if (
        len(head) < at + 8
        or wire.TYPE.get(word) != wire.RECORD_TYPE
        or not 16 <= nbytes <= size - at
        or wire.RESERVED.get(word)
        or not 1 <= wire.HEADER_SEVERITY.get(word) <= 0x7F
    ):
        return 0
    argument, end = at + 16, at + nbytes
    while argument < end:
        if argument + 8 > len(head):
            break
        step = wire.argument_size(int.from_bytes(head[argument : argument + 8], "little"))
        if not step or argument + step > end:
            return 0
        argument += step
    return nbytes


def sniff_ring(probe: Probe) -> Confidence:
    """Return LIKELY for a valid first page, and a log record in the oldest entry if it is in reach.

    The first page must hold a valid head and tail and zeros, and the ring must have a legal size.
    POSSIBLE for at least a page with the suffix.
    """
    named = probe.has_suffix(RING_SUFFIXES)
    if not named and any(probe.head[16 : 16 + SOME]):
        return Confidence.NONE
    from fx_log import format as wire

    capacity = probe.size - wire.RING_PAGE
    head = int.from_bytes(probe.head[:8], "little")
    tail = int.from_bytes(probe.head[8:16], "little")
    sound = (
        capacity >= wire.RING_MINIMUM
        and not capacity % wire.RING_PAGE
        and not (head % 8 or tail % 8)
        and 0 <= head - tail <= capacity
        and not any(probe.head[16 : wire.RING_PAGE])
    )
    if sound and head > tail:
        entry = wire.RING_PAGE + tail % capacity
        words = probe.head[entry : entry + 24]
        length = int.from_bytes(words[8:16], "little")
        word = int.from_bytes(words[16:24], "little")
        complete = len(words) == 24
        fits = length <= head - tail - wire.RING_ENTRY
        if complete and fits and wire.TYPE.get(word) == wire.RECORD_TYPE:
            return Confidence.LIKELY
    has_page = probe.size >= wire.RING_PAGE
    return Confidence.POSSIBLE if named and (has_page or not probe.size) else Confidence.NONE


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
    if int.from_bytes(head[24:28], "little", signed=True) not in wire.LEGACY_SEVERITIES:
        return Confidence.NONE
    at, tags = wire.PACKET_HEADER, 0
    while at < len(head) and head[at]:
        if head[at] > wire.MAX_TAG_BYTES or tags == wire.MAX_TAGS:
            return Confidence.NONE
        at += 1 + head[at]
        tags += 1
    # The tags are followed by a text with a zero byte at its end, and no other zero byte.
    text = head[at + 1 : -1]
    if at + 1 >= len(head) or 0 in text or not any(head[:24]):
        return Confidence.NONE
    return Confidence.POSSIBLE


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
    version = int.from_bytes(probe.head[8:16].ljust(8, b"\0"), "little")
    sound = len(probe.head) >= wire.STREAM_HEADER and version == wire.STREAM_VERSION
    return Confidence.CERTAIN if sound else Confidence.LIKELY


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
