"""Hook implementations of the trace format. Light: what reads and writes loads when it is used."""

from __future__ import annotations

from collections.abc import Iterable

from fxframework import hookimpl
from fxframework.errors import Catalogue
from fxframework.registry import (
    SHORTEN,
    Confidence,
    Exporter,
    Option,
    Probe,
    Reader,
    StepKind,
    Writer,
    exporters_of,
    lazy,
    step_kinds,
)

SUFFIXES = (".fxt", ".fxt.gz")
BUFFER_SUFFIXES = (".tbuf",)
CHROME_SUFFIXES = (".trace.json", ".trace.json.gz")
"""Not `.json`, which says nothing: in a folder, other files of that name are left out."""
CHROME_BEGINS = b"\xef\xbb\xbf \t\r\n"
"""What may be before the first bracket of JSON."""
FORMATS = ("trace", "trace-buffer")
"""Formats whose captures have the tables of a trace."""
EVENTS = frozenset({"slices", "instants", "counters", "flows", "sched", "logs"})
"""Tables whose rows have a time."""
MATCH = Option(
    "match",
    "innermost",
    "which open duration an end closes: the innermost of its thread, or of these the one of its "
    "name",
    choices=("innermost", "name"),
)


def sniff(probe: Probe) -> Confidence:
    """CERTAIN for the magic number record with a record behind it, in either byte order.

    POSSIBLE for a file of that name that is empty or begins with a sound record; the magic alone,
    followed by something that is not a record, is LIKELY.
    """
    from fx_trace.kinds import MAGIC_BYTES, MAGIC_BYTES_BIG_ENDIAN  # other files need no records

    magic = probe.head[:8]
    if magic in {MAGIC_BYTES, MAGIC_BYTES_BIG_ENDIAN}:
        following = probe.head[8:16]
        if len(following) < 8 or _frames(following, big_endian=magic != MAGIC_BYTES):
            return Confidence.CERTAIN
        return Confidence.LIKELY
    if not probe.has_suffix(SUFFIXES):
        return Confidence.NONE
    if not probe.size or (len(magic) == 8 and any(magic) and _frames(magic, probe.size)):
        return Confidence.POSSIBLE
    return Confidence.NONE


def sniff_buffer(probe: Probe) -> Confidence:
    """CERTAIN for the magic of a trace buffer with a consistent header of the file's size.

    The magic alone is LIKELY; an empty file of that name is POSSIBLE.
    """
    from fx_trace.kinds import BUFFER_HEADER_BYTES, BUFFER_MAGIC_BYTES

    if not probe.size and probe.has_suffix(BUFFER_SUFFIXES):
        return Confidence.POSSIBLE
    if not probe.head.startswith(BUFFER_MAGIC_BYTES):
        return Confidence.NONE
    if len(probe.head) < BUFFER_HEADER_BYTES:
        return Confidence.LIKELY
    from fx_trace.read.buffer import BufferHeader  # loads what will read the file in any case

    faults = BufferHeader.of(probe.head).check(probe.size)
    return Confidence.LIKELY if faults else Confidence.CERTAIN


def _frames(header: bytes, available: int | None = None, *, big_endian: bool = False) -> bool:
    """Return whether 8 bytes are padding or the header of a record that fits."""
    from fx_trace.format import MINIMUM_WORDS
    from fx_trace.kinds import RecordType
    from fx_trace.records import TYPE, claimed_bytes

    if not any(header):
        return True
    kind = TYPE.get(header, 0, big_endian)
    if kind not in MINIMUM_WORDS:
        return False
    nbytes = claimed_bytes(header, big_endian=big_endian)
    if nbytes < 8 * MINIMUM_WORDS[RecordType(kind)]:
        return False
    return available is None or nbytes <= available


def sniff_chrome(probe: Probe) -> Confidence:
    """Return CERTAIN for Chrome JSON, an object or an array."""
    from fx_trace.chrome.sniff import sniff

    first_letter = probe.head.lstrip(CHROME_BEGINS)[:1]
    return sniff(probe) if first_letter in {b"[", b"{"} else Confidence.NONE


def _chrome_rules() -> Catalogue:
    from fx_trace.chrome.rules import RULES

    return RULES


def _rules() -> Catalogue:
    from fx_trace.rules import RULES

    return RULES


@hookimpl
def fx_readers() -> Iterable[Reader]:
    """The trace archive, and images of trace buffers."""
    return [
        Reader(
            format="trace",
            title="Fuchsia trace archive (FXT)",
            suffixes=SUFFIXES,
            sniff=sniff,
            open=lazy("fx_trace.read.capture:TraceCapture"),
            rules=_rules,
            explain=lazy("fx_trace.read.explain:explain"),
            sample=lazy("fx_trace.sample:sample"),
            options=(MATCH,),
        ),
        Reader(
            format="trace-buffer",
            title="Fuchsia trace buffer image",
            suffixes=BUFFER_SUFFIXES,
            sniff=sniff_buffer,
            open=lazy("fx_trace.read.image:BufferCapture"),
            rules=_rules,
            explain=lazy("fx_trace.read.explain:explain_buffer"),
            sample=lazy("fx_trace.sample:buffer_sample"),
            options=(MATCH,),
        ),
        Reader(
            format="chrome-json",
            title="Chrome JSON (Trace Event Format)",
            suffixes=CHROME_SUFFIXES,
            sniff=sniff_chrome,
            open=lazy("fx_trace.chrome.capture:ChromeCapture"),
            rules=_chrome_rules,
            sample=lazy("fx_trace.chrome.sniff:sample"),
        ),
    ]


@hookimpl
def fx_writers() -> Iterable[Writer]:
    """The trace archive, and images of trace buffers."""
    return [
        Writer(
            format="trace",
            title="Fuchsia trace archive (FXT)",
            suffixes=SUFFIXES,
            open=lazy("fx_trace.write.rewriter:open_writer"),
            lossless=True,
            exempt={
                "extract_of_everything_is_everything": "it leaves out threads without references",
            },
            salvage=lazy("fx_trace.write.salvage:salvage"),
            options=(
                Option("big_endian", False, "write words with the most significant byte first"),
                Option(
                    "perfetto_safe",
                    False,
                    "write large records as blob records, whose sizes Perfetto computes correctly",
                ),
                Option(
                    "logs_as_instants",
                    False,
                    "write logs of other formats as instant events with all their fields, which "
                    "Perfetto shows, instead of log records",
                ),
                Option(
                    "open_slices",
                    "keep",
                    "slices that reach beyond a range of time: keep, close at its bounds, or drop",
                    choices=("keep", "close", "drop"),
                ),
            ),
            accepts=EVENTS,
            merge=lazy("fx_trace.write.merge:open_merge"),
            extract=lazy("fx_trace.write.extract:extract"),
        ),
        Writer(
            format="trace-buffer",
            title="Fuchsia trace buffer image",
            suffixes=BUFFER_SUFFIXES,
            open=lazy("fx_trace.write.rewriter:open_buffer_writer"),
            lossless=True,
            exempt={
                "many_records_come_back": "an image has an end",
                "memory_does_not_grow_with_what_was_written": "an image is put together first",
            },
            salvage=lazy("fx_trace.write.salvage:salvage_image"),
            options=(
                Option(
                    "image_size",
                    0,
                    "bytes of a truncated image; 0: as in the header",
                    portable=True,
                ),
            ),
        ),
    ]


@hookimpl
def fx_exporters() -> Iterable[Exporter]:
    """Text for people, and Chrome JSON, of everything that has the tables of a trace."""
    return [
        *exporters_of(
            FORMATS,
            name="text",
            title="one line per record",
            rows=EVENTS,
            suffixes=(".txt",),
            open=lazy("fx_trace.export.text:TextExport"),
            options=(SHORTEN,),
        ),
        *exporters_of(
            FORMATS,
            name="json",
            title="Chrome JSON, as trace2json writes it",
            rows=EVENTS | {"trace_objects"},
            suffixes=(".json",),
            open=lazy("fx_trace.export.chrome_json:JsonExport"),
            options=(
                Option(
                    "sched",
                    "both",
                    "form of context switches: fuchsia (an object, as in trace2json), ftrace "
                    "(lines that Perfetto reads), or both",
                    choices=("both", "fuchsia", "ftrace"),
                ),
                SHORTEN,
            ),
        ),
        Exporter(
            name="blobs",
            title="the bytes of the blobs of one name, joined: Perfetto packets, for one",
            accepts="trace",
            rows=frozenset({"blobs"}),
            suffixes=(".blob",),
            binary=True,
            open=lazy("fx_trace.export.blobs:BlobExport"),
            options=(
                Option("name", None, "name of the blobs; optional if all have one name", type=str),
            ),
        ),
    ]


@hookimpl
def fx_step_kinds() -> Iterable[StepKind]:
    """What threads of the emulated target trace, and what is replayed on it."""
    titles = {
        "trace.thread": "Start a thread that traces what it does.",
        "trace.scheduling": "Trace context switches and wakeups, from here on.",
        "trace.replay": "Replay the records of a trace, at their own times.",
    }
    sample = "fx_trace.sample:SCENARIO"
    return step_kinds("fx_trace.steps", titles, sample=sample, replays={"trace"})
