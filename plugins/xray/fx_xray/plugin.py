"""Hook implementations of the XRay formats. Light: what reads and writes loads when it is used."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

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
from fxframework.wire.plugins import reader, writer

if TYPE_CHECKING:
    import click

    from fx_xray.format import FileHeader

FORMATS = ("xray", "xray-basic", "llvm-yaml")
SUFFIXES = (".xray",)
YAML_SUFFIXES = (".yaml", ".yml")
PROFILE = "fx_xray.read.profile:FORMAT"
PROFILE_TITLE = "LLVM XRay profile: time by paths of calls"
PROFILE_SUFFIXES = (".xrayprof",)
PROFILE_MAGIC = b"forpyarx\x24\x04\x18\x20\0\0\0\0"
"""The magic and the version."""

# --- Recognising -------------------------------------------------------------------------

NEWEST = 5
"""The greatest version of a header."""


def sniff(probe: Probe) -> Confidence:
    """LIKELY for a header of the flight data recorder with a plausible first record, or alone.

    POSSIBLE for such a header, or for an empty or short file, of that name. Never CERTAIN: the
    format has no magic number.
    """
    if not _may_begin(probe):
        return _by_name(probe)
    from fx_xray import format as wire

    header = _header(probe, wire.FDR_FORM)
    if header is None:
        return _named(probe)
    if probe.size == wire.HEADER_BYTES:
        return Confidence.LIKELY
    kinds = [wire.MetadataKind.NEW_BUFFER]
    if header.version >= wire.EXTENTS_VERSION:
        kinds.append(wire.MetadataKind.BUFFER_EXTENTS)
    dialect = wire.Dialect(byte_order=header.byte_order)
    if probe.head[wire.HEADER_BYTES] in map(dialect.first_byte, kinds):
        return Confidence.LIKELY
    return _by_name(probe)


def sniff_basic(probe: Probe) -> Confidence:
    """LIKELY for a header of basic mode with a plausible first record, or alone; else as above."""
    if not _may_begin(probe):
        return Confidence.NONE
    from fx_xray import format as wire

    header = _header(probe, wire.BASIC_FORM)
    if header is None:
        return Confidence.NONE
    if probe.size == wire.HEADER_BYTES:
        if probe.has_suffix(SUFFIXES):
            return Confidence.LIKELY
        # A header alone says little: a counter's frequency is what other files do not have there.
        has_frequency = header.cycle_frequency in wire.FREQUENCIES
        return Confidence.POSSIBLE if has_frequency else Confidence.NONE
    has_size_of_records = not probe.size % wire.BASIC_BYTES
    first_record = probe.head[wire.HEADER_BYTES :][: wire.BASIC_BYTES]
    is_call = _is_basic_call(first_record, big=header.byte_order != "little")
    if is_call and (has_size_of_records or probe.has_suffix(SUFFIXES)):
        return Confidence.LIKELY
    return _by_name(probe)


def _is_basic_call(record: bytes, *, big: bool) -> bool:
    """Return whether the bytes are a plausible record of a call in basic mode."""
    from fx_xray import format as wire

    if len(record) < wire.BASIC_BYTES:
        return False

    def value(name: str) -> int:
        return wire.BasicFunction.layout.place(name).get(record, 0, big)

    return (
        value("_type") == wire.BASIC_FUNCTION
        and value("kind") <= max(wire.FunctionKind)
        and 0 < value("function_id") <= wire.MAX_BASIC_FUNCTION
    )


def _by_name(probe: Probe) -> Confidence:
    """POSSIBLE for a file with a suffix of traces."""
    return Confidence.POSSIBLE if probe.has_suffix(SUFFIXES) else Confidence.NONE


def _may_begin(probe: Probe) -> bool:
    """Return whether a header can begin here, without the declared format.

    Version and type are small numbers of 16 bits, in either byte order.
    """
    return len(probe.head) >= 4 and max(probe.head[:4]) <= NEWEST


def _header(probe: Probe, form: str) -> FileHeader | None:
    """Return the header of a trace of a format; None where there is none of a defined version."""
    from fx_xray.format import Dialect
    from fx_xray.read.header import read_header

    header = read_header(probe.head, form)
    dialect = Dialect(form)
    if header is None or header.version not in dialect.versions or header.type != dialect.type:
        return None
    return header


def _named(probe: Probe) -> Confidence:
    """POSSIBLE for a file of that name which is not a trace of basic mode either."""
    from fx_xray.format import BASIC_FORM

    if not probe.has_suffix(SUFFIXES) or _header(probe, BASIC_FORM):
        return Confidence.NONE
    return Confidence.POSSIBLE


def sniff_yaml(probe: Probe) -> Confidence:
    """CERTAIN for a header of YAML with all that llvm-xray writes, LIKELY for the most of it."""
    if not probe.head.lstrip().startswith((b"---", b"header:")):
        return Confidence.NONE
    keys = (b"header:", b"constant-tsc:", b"nonstop-tsc:", b"cycle-frequency:", b"records:")
    present_keys = sum(key in probe.head for key in keys)
    if present_keys == len(keys):
        return Confidence.CERTAIN
    return Confidence.LIKELY if present_keys > 2 else Confidence.NONE


# --- Options -----------------------------------------------------------------------------

SYMBOLS = (
    Option(
        "instr_map",
        "",
        "source of function names: the instrumented program, or its map as YAML of llvm-xray or "
        "as CSV; for shared libraries by number: main,1=lib.so",
        flags=("-m", "--instr-map"),
    ),
    Option("demangle", True, "demangle the names of functions"),
)
FREQUENCY = Option("cycle_frequency", 0, "ticks per second; 0: as in the header", portable=True)
PROFILE_FREQUENCY = Option(
    "cycle_frequency", 0, "ticks per second, which the file does not say; 0: not known",
    portable=True,
)  # fmt: skip
BYTE_ORDER = Option(
    "byte_order",
    "",
    "byte order: little, big (as big-endian machines write) or big-lsb (big-endian, bit fields "
    "from the least significant bit); default: detected",
    portable=True,
)
RECORDING = (
    Option("version", 0, "version of the output: 1 to 5; 0: that of the trace, else 5"),
    Option(
        "buffer_size",
        0,
        "bytes of a thread's buffer in the output; 0: as in the trace, else 16384",
    ),
)
BASIC_VERSION = Option("version", 0, "version of the output: 1 to 3; 0: that of the trace, else 3")
NAMES = Option(
    "names",
    "",
    "CSV file for the names of functions, which the format cannot hold; -o instr_map reads it",
)
WRITTEN_ORDER = Option(
    "write_byte_order",
    "",
    "byte order of the output: little, big or big-lsb; default: as in the header, else little",
    portable=True,
)
YAML_VERSION = Option(
    "header_version",
    "keep",
    "version in the header: that of the log (keep), or 1, the only one that llvm-xray reads back",
    choices=("keep", "1"),
)
TEXT_OPTIONS = (
    Option(
        "time",
        "clock",
        "show times in seconds of the trace's clock (clock), in seconds since the first event "
        "(first), or in ticks (ticks)",
        choices=("clock", "first", "ticks"),
    ),
    Option(
        "metadata",
        False,
        "also show records that are not events, each beside its event",
    ),
    SHORTEN,
)
JSON_OPTIONS = (
    Option(
        "strings",
        False,
        "write all numbers as strings, as llvm-xray does; Perfetto takes ids that are strings for"
        " names",
    ),
    Option("events", True, "with strings=no, also write arguments, custom events and typed events"),
    SHORTEN,
)
YAML_OPTIONS = (
    YAML_VERSION,
    Option(
        "sort",
        True,
        "sort all records by time; no: keep the records of a thread in file order, even if their "
        "times decrease",
    ),
)


def _rules() -> Catalogue:
    from fx_xray.rules import RULES

    return RULES


# --- Hooks -------------------------------------------------------------------------------


def _profile_rules() -> Catalogue:
    """Return the rules of profiles."""
    from fx_xray.profile import FORMAT

    return FORMAT.rules


@hookimpl
def fx_readers() -> Iterable[Reader]:
    """Traces of the flight data recorder and of basic mode, and llvm-xray's YAML."""
    trace_options = (*SYMBOLS, FREQUENCY, BYTE_ORDER)
    trace_reader = partial(Reader, suffixes=SUFFIXES, options=trace_options, rules=_rules)
    return [
        trace_reader(
            format="xray",
            title="LLVM XRay trace, flight data recorder",
            sniff=sniff,
            open=lazy("fx_xray.read.capture:FdrCapture"),
            explain=lazy("fx_xray.read.explain:explain_fdr"),
            sample=lazy("fx_xray.sample:sample"),
        ),
        trace_reader(
            format="xray-basic",
            title="LLVM XRay trace, basic mode",
            sniff=sniff_basic,
            open=lazy("fx_xray.read.capture:BasicCapture"),
            explain=lazy("fx_xray.read.explain:explain_basic"),
        ),
        Reader(
            format="llvm-yaml",
            title="LLVM XRay trace as YAML of llvm-xray",
            suffixes=YAML_SUFFIXES,
            sniff=sniff_yaml,
            open=lazy("fx_xray.read.yaml_log:YamlCapture"),
            options=(*SYMBOLS, FREQUENCY),
            rules=_rules,
        ),
        reader(
            "xray-profile",
            PROFILE,
            title=PROFILE_TITLE,
            suffixes=PROFILE_SUFFIXES,
            magic=PROFILE_MAGIC,
            options=(*SYMBOLS, PROFILE_FREQUENCY),
            rules=_profile_rules,  # without what reading needs
        ),
    ]


@hookimpl
def fx_writers() -> Iterable[Writer]:
    """Traces of the flight data recorder and of basic mode."""
    trace_writer = partial(
        Writer,
        suffixes=SUFFIXES,
        lossless=True,
        accepts=frozenset({"slices"}),
        extract=lazy("fx_xray.write.extract:extract"),
        salvage=lazy("fx_xray.write.salvage:salvage"),
    )
    return [
        trace_writer(
            format="xray",
            title="LLVM XRay trace, flight data recorder",
            open=lazy("fx_xray.write.rewriter:open_writer"),
            exempt={
                "many_records_come_back": "a buffer has room for its own records only",
                "memory_does_not_grow_with_what_was_written": "a buffer is put together first",
                "wrong_values_are_refused_or_take_effect": "threads are those of the buffers",
            },
            options=(*RECORDING, WRITTEN_ORDER, NAMES),
            merge=lazy("fx_xray.write.merge:open_merge"),
        ),
        trace_writer(
            format="xray-basic",
            title="LLVM XRay trace, basic mode",
            open=lazy("fx_xray.write.rewriter:open_basic_writer"),
            options=(BASIC_VERSION, WRITTEN_ORDER, NAMES),
            merge=lazy("fx_xray.write.merge:open_merge_basic"),
        ),
        writer(
            "xray-profile",
            PROFILE,
            title=PROFILE_TITLE,
            suffixes=PROFILE_SUFFIXES,
            extract=None,  # paths are sums of the whole file
            salvaged_by="fx_xray.read.profile:WholePaths",
            merge=None,
            accepts=frozenset(),
        ),
    ]


@hookimpl
def fx_exporters() -> Iterable[Exporter]:
    """Text, trace_event and YAML of the XRay formats."""
    exporters = partial(exporters_of, FORMATS)
    return [
        *exporters(
            name="text",
            title="one line per event, indented by its depth",
            suffixes=(".txt",),
            open=lazy("fx_xray.export.text:TextExport"),
            options=TEXT_OPTIONS,
        ),
        *exporters(
            name="json",
            title="trace_event, as `llvm-xray convert -f trace_event` gives it",
            suffixes=(".json",),
            open=lazy("fx_xray.export.trace_event:JsonExport"),
            options=JSON_OPTIONS,
        ),
        *exporters(
            name="llvm-yaml",
            title="YAML, as `llvm-xray convert -f yaml` writes and reads it",
            suffixes=(".yaml",),
            open=lazy("fx_xray.export.llvm_yaml:YamlExport"),
            options=YAML_OPTIONS,
        ),
    ]


@hookimpl
def fx_step_kinds() -> Iterable[StepKind]:
    """The flight recorder of the emulated target, threads that it records, replays of traces."""
    titles = {
        "xray.start": "Start recording calls in a memory.",
        "xray.thread": "Start a thread whose calls are recorded.",
        "xray.log": "Save what a recorder's memory holds as a trace.",
        "xray.replay": "Replay the records of a trace at their own times.",
    }
    replays = {"xray", "xray-basic"}
    return step_kinds("fx_xray.steps", titles, sample="fx_xray.sample:SCENARIO", replays=replays)


@hookimpl
def fx_cli(cli: click.Group) -> None:
    """Commands of XRay."""
    from fx_xray.cli import add_commands

    add_commands(cli)
