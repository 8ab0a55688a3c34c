"""Foreign files: names what an input is that no reader recognizes, and what to do with it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

import attrs

from fxframework.registry import HEAD, Probe

UNPACK = "unpack it with `{}`, then name the files"
PACKET = 0x0A
"""Tag of a packet in a Perfetto trace: field 1, with a length."""
PACKETS = 3
"""Number of first packets that show that bytes are a Perfetto trace."""


@attrs.frozen
class Foreign:
    """What an input is: a noun with its article, and what to do."""

    what: str
    remedy: str = ""


@attrs.frozen
class _Kind:
    """A kind of foreign file, and a function that is true for the first bytes of one."""

    foreign: Foreign
    recognizes: Callable[[bytes], object]


def _magic(*magics: bytes, offset: int = 0) -> Callable[[bytes], object]:
    """Return a function that recognizes one of these byte strings at an offset."""
    return lambda head: head.startswith(magics, offset)


def _pattern(pattern: bytes) -> Callable[[bytes], object]:
    """Return a function that recognizes bytes that match somewhere."""
    return re.compile(pattern, re.DOTALL).search


def _is_perfetto(head: bytes) -> bool:
    """Return whether the first bytes are packets of a Perfetto trace."""
    offset = 0
    packets = 0
    while offset + 1 < len(head) and packets < PACKETS:
        if head[offset] != PACKET:
            return False
        length, payload_offset = _varint(head, offset + 1)
        offset = payload_offset + length
        packets += 1
        if not length:
            return False
        is_whole_file = len(head) < HEAD
        if packets == 1 and is_whole_file and offset > len(head):
            return False  # the file ends within its first packet
    return packets == PACKETS or (packets > 0 and offset >= len(head))


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return the number of 7 bits a byte at an offset, and the offset after it.

    The lowest bits come first; the highest bit of each byte but the last is set. Bytes after the
    tenth, and those beyond the end of the data, do not count.
    """
    number = 0
    shift = 0
    while offset < len(data) and shift < 64:
        byte = data[offset]
        number |= (byte & 0x7F) << shift
        shift += 7
        offset += 1
        if byte < 0x80:
            break
    return number, offset


def _is_text(head: bytes) -> bool:
    """Return whether bytes are the beginning of UTF-8 text without control characters."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return all(character >= " " or character in "\t\n\r\f\x1b" for character in text)


PERFETTO = Foreign(
    "a Perfetto trace",
    "open it at https://ui.perfetto.dev; Perfetto's `traceconv json` makes Chrome JSON of it, "
    "which fxf reads",
)
CHROME = Foreign("a trace as Chrome JSON", "-f chrome-json reads it")
_JSON = rb"^(?:\xef\xbb\xbf)?\s*[\[{]"
_CHROME = rb'.*(?:"traceEvents"\s*:|"ph"\s*:\s*"[A-Za-z]")'
# The first that recognizes a file counts; so general kinds, such as JSON and text, come last.
_KINDS = (
    _Kind(Foreign("a ZIP archive", UNPACK.format("unzip")), _magic(b"PK\3\4", b"PK\5\6")),
    _Kind(Foreign("a tar archive", UNPACK.format("tar xf")), _magic(b"ustar", offset=257)),
    _Kind(Foreign("a file compressed by bzip2", UNPACK.format("bunzip2")), _magic(b"BZh")),
    _Kind(Foreign("a file compressed by xz", UNPACK.format("unxz")), _magic(b"\xfd7zXZ\0")),
    _Kind(Foreign("a 7z archive", UNPACK.format("7z x")), _magic(b"7z\xbc\xaf'\x1c")),
    _Kind(
        Foreign(
            "an ELF file: a program, a library or a core dump",
            "`fxf instr-map` lists the functions of a program with XRay; to name those of its log, "
            "give the program with -m",
        ),
        _magic(b"\x7fELF"),
    ),
    _Kind(
        Foreign(
            "a recording of perf",
            "`perf script --ns > X.ftrace` makes text of it, which "
            "`fxf --plugin examples/plugins/ftrace.py` reads, in a clone of fxframework",
        ),
        _magic(b"PERFILE2"),
    ),
    _Kind(
        Foreign(
            "a recording of trace-cmd",
            "`trace-cmd report > X.ftrace` makes text of it, which "
            "`fxf --plugin examples/plugins/ftrace.py` reads, in a clone of fxframework",
        ),
        _magic(b"\x17\x08Dtracing"),
    ),
    _Kind(Foreign("a Parquet file", "`fxf sql` queries a dataset"), _magic(b"PAR1")),
    _Kind(Foreign("an Arrow file", "pyarrow, polars and duckdb read it"), _magic(b"ARROW1")),
    _Kind(Foreign("a SQLite database", "sqlite3 reads it"), _magic(b"SQLite format 3\0")),
    _Kind(Foreign("a duckdb database", "duckdb reads it"), _magic(b"DUCK", offset=8)),
    _Kind(Foreign("a PNG picture"), _magic(b"\x89PNG\r\n")),
    _Kind(Foreign("a PDF document"), _magic(b"%PDF-")),
    _Kind(
        Foreign(
            "Linux ftrace text",
            "`fxf --plugin examples/plugins/ftrace.py` reads it, in a clone of fxframework",
        ),
        _magic(b"# tracer: "),
    ),
    _Kind(
        Foreign("an HTML page", "open it in a browser"),
        _pattern(rb"^\s*(?i:<!doctype html|<html)"),
    ),
    _Kind(
        Foreign("an SVG picture", "open it in a browser"),
        _pattern(rb"^\s*(?:<\?xml[^>]*>\s*)?<svg"),
    ),
    _Kind(
        Foreign("a speedscope profile", "open it at https://www.speedscope.app"),
        _pattern(_JSON + rb'.*"https?://www\.speedscope\.app'),
    ),
    _Kind(
        Foreign(
            "records without the line that names their format",
            "`-f records -o format=trace` reads those of a trace",
        ),
        _pattern(rb'^\{"record":"'),
    ),
    _Kind(CHROME, _pattern(_JSON + _CHROME)),
    _Kind(
        Foreign("JSON of ffx or iquery", "fxf reads what it was made of: the VMO or the log"),
        _pattern(_JSON + rb'.*"data_source"\s*:'),
    ),
    _Kind(
        Foreign("JSON of OpenTelemetry", "OpenTelemetry's tools read it"),
        _pattern(_JSON + rb'.*"resource(?:Logs|Spans|Metrics)"\s*:'),
    ),
    _Kind(
        Foreign("a scenario", "`fxf replay` runs it"), _pattern(rb"(?:^|\n)\[scenario\]\s*(?:#|\n)")
    ),
    _Kind(PERFETTO, _is_perfetto),
    _Kind(Foreign("only zero bytes"), lambda head: not head.strip(b"\0")),
    _Kind(Foreign("JSON"), lambda head: re.match(_JSON, head) and _is_text(head)),
    _Kind(Foreign("text"), _is_text),
)


def foreign(probe: Probe) -> Foreign | None:
    """Return what the first bytes of an input are; None if that is unknown or there are none."""
    if not probe.head:
        return None
    return next((kind.foreign for kind in _KINDS if kind.recognizes(probe.head)), None)
