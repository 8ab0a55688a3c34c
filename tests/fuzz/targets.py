"""What is fuzzed: for each target what runs on bytes, its seeds, and where its records begin.

A target named after a reader (``trace``, ``log-ring``, …) or an import (``records``, ``instr-map``)
takes one of the views (``target.VIEWS``) of an input. The others run compiled kernels on bytes, and
nothing else: they are for speed. Anything but a result or an FxError is a bug.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import random
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from fxframework.errors import FxError
from fxframework.io.limits import Limits
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.kernels.pools import Pool, codes_of
from fxframework.model.selection import Selection
from fxframework.model.strings import StringPool
from fxframework.verbs import convert

try:
    from .target import VIEWS, host, try_view
except ImportError:  # it runs as a script
    from target import VIEWS, host, try_view  # type: ignore[no-redef]

__all__ = ["TARGETS", "Target", "found", "mutated"]

CONFORMANCE = Path(__file__).parents[1] / "conformance"
SHAPES = Path(__file__).parents[1] / "bench" / "shapes"
FOUND = Path(__file__).with_name("found")
"""Inputs on which something failed once, in a folder a target."""
LARGEST = 4096
"""Bytes of a seed; larger captures are cut off there."""
BOUND = Limits(max_findings=8, max_unpacked=1 << 20)
WORDS = (0, 1, 0x7F, 0x80, 0xFF, 0xFFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
         1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip
NOT_CAPTURES = {".json", ".py", ".md", ".txt", ".yaml", ".csv", ".cpp", ".h", ".dot"}
Run = Callable[[bytes], None]


class Target(NamedTuple):
    """One thing to fuzz."""

    run: Run
    family: str
    """The folder of its seeds, and the plugin that makes samples of ``formats``."""
    formats: tuple[str, ...]
    split: Callable[[bytes], list[bytes]] | None
    """Cuts an input into its records."""
    sound: int = 0
    """Bytes at the beginning of a record that say its kind and size."""

    def seeds(self) -> list[bytes]:
        """Real captures, and samples of every shape."""
        made = _SEEDS.get(self.family)
        return made() if made is not None else _captures(self.family, self.formats)


def found(name: str) -> list[Path]:
    """Files with inputs on which a target failed once."""
    return sorted((FOUND / name).glob("*"))


# --- Seeds ----------------------------------------------------------------------------------------


def _module(name: str, path: Path) -> Any:
    """A module of another folder of tests."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    made = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def _captures(family: str, formats: tuple[str, ...]) -> list[bytes]:
    """Real captures of a family, cut off, and typical ones of each format."""
    captures = [
        path.read_bytes()[:LARGEST]
        for path in sorted((CONFORMANCE / family).rglob("*"))
        if path.is_file() and path.suffix not in NOT_CAPTURES
    ]
    captures += _vectors(formats) if family == "log" else []
    for format in formats:
        reader = host().reader(format)
        if reader.sample is not None:
            captures.append(reader.sample(LARGEST)[:LARGEST])
        if (path := SHAPES / f"{format}.py").exists():
            shapes = _module(f"fuzzed_shapes_{format}", path).shapes()
            captures += [make(1024)[:LARGEST] for make in shapes.values()]
    return [seed for seed in captures if seed]


def _vectors(formats: tuple[str, ...]) -> list[bytes]:
    """Logs out of the conformance vectors, and what they become in other containers."""
    vectors = []
    names = {"log": ("records", "streams"), "log-legacy": ("legacy",)}
    for format in formats:
        for name in names.get(format, ()):
            cases = orjson.loads((CONFORMANCE / "log" / f"{name}.json").read_bytes())
            vectors += [bytes.fromhex(case["hex"]) for case in cases if "hex" in case]
    sample = host().reader("log").sample
    assert sample is not None
    if "log-ring" in formats:
        vectors += [_ring(sample(300), 0), _ring(sample(1500), 4000)]
    if "log-legacy-stream" in formats:
        with tempfile.TemporaryDirectory() as folder:
            for nbytes in (300, 1500):
                out = Path(folder, f"{nbytes}")
                convert(sample(nbytes), out, to="log-legacy-stream")
                vectors.append(out.read_bytes())
    return vectors


def _ring(log: bytes, tail: int) -> bytes:
    """The image of a ring of one page, in which each record of a log is an entry."""
    page = 4096
    entries = [
        (7).to_bytes(8, "little") + len(r).to_bytes(8, "little") + r for r in split_words(log)
    ]
    line = b"".join(entries)[:page]
    head = (tail + len(line)).to_bytes(8, "little") + tail.to_bytes(8, "little")
    ring = (line + bytes(page - len(line))) * 2
    return head + bytes(page - 16) + ring[page - tail : 2 * page - tail]


def _record_files() -> list[bytes]:
    """Record JSON of a small capture of every format."""
    files = []
    for format in host().readers:
        reader = host().reader(format)
        if reader.sample is None:
            continue
        sink = Sink.memory()
        with host().open(reader.sample(600), format=format) as capture:
            exporter = host().exporter("records", format=format, tables=capture.tables)
            session = exporter.open(sink, {})
            session.write(capture)
            session.close()
        files.append(sink.getvalue()[: 2 * LARGEST])
    return files


def _texts(*patterns: str) -> list[bytes]:
    return [
        path.read_bytes()[: 4 * LARGEST]
        for pattern in patterns
        for path in sorted((CONFORMANCE / "xray").rglob(pattern))
    ]


def _programs() -> list[bytes]:
    """Small programs with a map of each kind, and a table of names."""
    path = CONFORMANCE.parent / "plugins" / "xray" / "programs.py"
    made = _module("fuzzed_programs", path)
    sleds = [made.Sled(0x2000 + 16 * place, 0x2000, place & 1) for place in range(4)]
    symbols = [made.Symbol(0x2000, 64, "_Z4workv"), made.Symbol(0x2040, 8, "main")]
    every: list[dict[str, Any]] = [
        {},
        {"bits": 32},
        {"order": ">"},
        {"dynamic_symbols": True, "moved": True},
    ]
    out = [made.Program(maps=[sleds], symbols=symbols, **each).pack() for each in every]
    return [*out, b"function_id,linkage_name,name\n1,_Z4workv,work()\n2,main,main\n"]


_SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "records": _record_files,
    "strings": lambda: ["häß\u2028\U0001f600".encode() * 9, bytes(range(256))],
    "llvm-yaml": lambda: _texts("*.yaml"),
    "instr-map": lambda: [*_texts("instr_map/*.yaml"), *_programs()],
}

# --- Where records begin --------------------------------------------------------------------------


def split_words(data: bytes) -> list[bytes]:
    """Records whose header has their size in words in 12 bits from bit 4 on: traces and logs."""
    out, at = [], 0
    while at < len(data):
        size = 8 * max(1, int.from_bytes(data[at : at + 2], "little") >> 4)
        out.append(data[at : at + size])
        at += size
    return out


def split_blocks(data: bytes) -> list[bytes]:
    """Blocks of 16 bytes times two to the power of their order: Inspect."""
    out, at = [], 0
    while at < len(data):
        size = 16 << min(data[at] & 15, 7)
        out.append(data[at : at + size])
        at += size
    return out


def split_calls(data: bytes) -> list[bytes]:
    """The header of 32 bytes, then metadata of 16 bytes and functions of 8: XRay."""
    out, at = [data[:32]], 32
    while at < len(data):
        size = 16 if data[at] & 1 else 8
        out.append(data[at : at + size])
        at += size
    return out


def split_rows(data: bytes) -> list[bytes]:
    """The header of 32 bytes, then records of 32: XRay's basic mode."""
    return [data[at : at + 32] for at in range(0, len(data), 32)]


def split_ring(data: bytes) -> list[bytes]:
    """The page of head and tail, then words: a ring."""
    rest = data[4096:]
    return [data[:16], data[16:4096], *(rest[at : at + 16] for at in range(0, len(rest), 16))]


def split_lines(data: bytes) -> list[bytes]:
    """Lines: record JSON, YAML, CSV."""
    return data.splitlines(keepends=True)


# --- Whole readers and imports --------------------------------------------------------------------


def _choice(data: bytes, count: int) -> int:
    """A number below ``count`` that depends on the bytes alone."""
    return zlib.crc32(data) % count


def _reader(format: str, *variants: dict[str, object]) -> Run:
    """What takes one view of bytes as a format, with the options of one of these variants."""
    options = variants or ({},)

    def run(data: bytes) -> None:
        choice = _choice(data, len(VIEWS) * len(options))
        try_view(data, format, choice // len(options), **options[choice % len(options)])

    return run


def _records(data: bytes) -> None:
    """Open a file of records, and take what it says."""
    try:
        with host().open(b'{"fxf":' + data if data[:1] != b"{" else data) as capture:
            capture.summary()
            for name in capture.tables:
                table = capture.table(name)
                for column in table.columns:
                    len(table[column])
            for _ in capture.records():
                pass
    except FxError:
        pass


@functools.cache
def _place() -> Path:
    """A file in memory, where there is one: the reader of maps takes a path."""
    shared = Path("/dev/shm")
    folder = shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())
    return folder / f"fxf-fuzzed-map-{os.getpid()}"


def _instr_map(data: bytes) -> None:
    """Read an instrumentation map, and every name in it."""
    from fx_xray.read.instr_map import read_map

    _place().write_bytes(data)
    try:
        found = read_map(str(_place()))
        b"".join(found.to_yaml())
        b"".join(found.to_csv())
    except FxError:
        pass
    finally:
        _place().unlink()


# --- Kernels --------------------------------------------------------------------------------------


def _exact(data: bytes, type: str) -> Any:
    """The bytes as an array of their own: a sanitizer sees every byte behind it."""
    size = np.dtype(type).itemsize
    return np.frombuffer(data[: len(data) // size * size], type).copy()


def trace_kernels(data: bytes) -> None:
    """Read the rows of all records; for one input in 32 all tables."""
    from fx_trace.read.frames import TraceFile
    from fx_trace.read.rows import RowReader

    if _choice(data, 32) == 0:
        _scanned(_named("trace"), data)
        return
    source = Source.open(_exact(data, "<i8").tobytes())
    limits = Limits(max_findings=8)
    file = TraceFile.archive(source, big_endian=False, limits=limits)
    for _ in RowReader(file, limits, StringPool()).chunks():
        pass


def trace_bounds(data: bytes) -> None:
    """Look for records as readers do that begin somewhere in a file."""
    from fx_trace.read.frames import TraceFile, TraceFrames, sizes_end

    octets = _exact(data, "<i8").view(np.uint8)
    source = Source(octets, name="bytes")
    for big_endian, splits in ((False, False), (False, True), (True, True)):
        file = TraceFile.archive(source, big_endian=big_endian, limits=Limits())
        file.splits = splits
        file.metadata_in(0, octets.size)
        frames = TraceFrames(file)
        while octets.size and frames.listed_end < octets.size:
            frames.list_more()
    sizes_end(octets, 0, octets.size)


def log_kernels(data: bytes) -> None:
    """Scan as a file of records, a packet, a file of packets or a ring."""
    from fx_log.format import RING_PAGE
    from fx_log.read.blocks import enter_known, reader_of
    from fx_log.read.frames import framed_file

    way = _choice(data, 8)
    octets = _exact(data, "u1")
    whole = octets[: octets.size // 8 * 8]
    form = {1: "log-legacy", 2: "log-legacy-stream", 3: "log-ring"}.get(way, "log")
    if way == 3 and whole.size >= 16:
        start = int(octets[0]) * 8 % whole.size
        used = min(int(octets[1]) * 8 + 8, whole.size)
        page = np.zeros(RING_PAGE, np.uint8)
        page[:16] = np.array([start + used, start], "<u8").view("u1")
        octets = np.concatenate((page, whole))
    options = {"printf": way & 1, "fidl_limits": way & 1, "suffix": way == 7}
    strings = StringPool()
    enter_known(strings)
    file = framed_file(form, octets, BOUND, options)
    for _ in reader_of(file, strings, BOUND, options).blocks():
        pass


def log_lines(data: bytes) -> None:
    """Write record JSON as of a file of records, of packets, or of a ring's entries."""
    from fx_log.format import RING_PAGE, RingHeader, StreamHeader
    from fx_log.read.blocks import enter_known, reader_of
    from fx_log.read.frames import framed_file
    from fx_log.read.lines import LineWriter

    whole = data[: len(data) // 8 * 8]
    # What surrounds the data lets all of it be read.
    page = RingHeader(head=len(whole), tail=0).pack()
    assert len(page) == RING_PAGE
    files = {
        "log": data,
        "log-ring": page + whole,
        "log-legacy": data,
        "log-legacy-stream": StreamHeader().pack() + data,
    }
    for form, file in files.items():
        octets = _exact(file, "u1")
        for options in ({}, {"suffix": True}) if form == "log" else ({},):
            strings = StringPool()
            enter_known(strings)
            framed = framed_file(form, octets, BOUND, options)
            reader = reader_of(framed, strings, BOUND, options)
            for _ in LineWriter(reader).lines():
                pass


def nesting(data: bytes) -> None:
    """Nest events of Chrome JSON, in pieces, and compare the order with that of lists."""
    from fx_trace.export.nesting import ALONE, ENDLESS, ON_THREAD, SLICE, Nesting
    from fxframework.kit.in_time import Events

    count = len(data) // 6
    what, threads, parents, rows, until, sizes = _exact(data[: 6 * count], "u1").reshape(6, count)
    what = np.array([SLICE, ON_THREAD, ALONE])[what % 3]
    places = np.array(
        [what, threads % 5, parents % 9 - 1.0, rows % 9 - 1.0, until, sizes // 2], np.int64
    )
    places[4, until > 250] = ENDLESS
    ends = np.cumsum(sizes.astype(np.int64) + 1)
    letters = np.resize(np.frombuffer(b"0123456789", np.uint8), int(ends[-1]) if count else 1)
    times = np.arange(count)
    kernel = Nesting(5, comma=False)
    events = Events(times, letters, ends - sizes, sizes.astype(np.int64), places)
    halves = (slice(0, count // 2), slice(count // 2, count))
    written = [kernel.texts(events.take(half)).tobytes() for half in halves]
    written += [ends.tobytes() for ends in kernel.rest()]

    expected: list[bytes] = []
    stacks: list[list[tuple[int, int, bytes]]] = [[] for _ in range(5)]
    for at, (kind, thread, parent, row, end, tail) in enumerate(places.T.tolist()):
        text = letters[ends[at] - sizes[at] : ends[at]].tobytes()
        stack = stacks[thread]
        if kind == SLICE:
            while stack and stack[-1][0] != parent:
                expected.append(stack.pop()[2])
            expected.append(text[: len(text) - tail])
            stack.append((row, end, text[len(text) - tail :]))
            continue
        if kind == ON_THREAD and row >= 0 and any(each[0] == row for each in stack):
            while stack[-1][0] != row:
                expected.append(stack.pop()[2])
        elif kind == ON_THREAD:
            while stack and stack[-1][1] != ENDLESS and stack[-1][1] <= at:
                expected.append(stack.pop()[2])
        expected.append(text)
    expected += [text for stack in (*stacks[1:], stacks[0]) for *_, text in reversed(stack)]
    assert b"".join(written).replace(b",\n", b"") == b"".join(expected)


def strings(data: bytes) -> None:
    """Check UTF-8, and enter strings of changing lengths into a pool."""
    from fxframework.kernels.stretches import not_utf8

    octets = _exact(data, "u1")
    starts, sizes = [0], [octets.size]
    at = 0
    while at < octets.size:
        starts.append(at)
        sizes.append(min(int(octets[at]), octets.size - at))
        at += 1 + sizes[-1]
    pool = Pool()
    codes = codes_of(pool, octets, np.array(starts), np.array(sizes))
    for start, size, code in zip(starts, sizes, codes.tolist(), strict=True):
        assert pool.bytes_of(code) == data[start : start + size]
        assert pool.look_up(data[start : start + size]) == code
    wrong = not_utf8(octets, np.array(starts), np.array(sizes))
    for start, size, is_wrong in zip(starts, sizes, wrong.tolist(), strict=True):
        assert is_wrong != _is_utf8(data[start : start + size])


def csv_cells(data: bytes) -> None:
    """Write rows of every kind of cell in small pieces, and compare them with the plain rules."""
    from fxframework.kernels import parts
    from fxframework.kernels.templates import Templates

    numbers = _exact(data, "<i8")
    if not numbers.size:
        return
    special, formulas = (b',"\r\n', b"=+-@\t\r") if _choice(data, 2) else (b';"', b"")
    separator = special[:1] * (1 + _choice(data, 3))
    texts = [data[at : at + data[at] % 19] for at in range(0, len(data), 7)]
    bounds = np.cumsum([0, *map(len, texts)])
    letters = np.frombuffer(b"".join(texts) or b"x", np.uint8).copy()
    codes = (numbers % np.int64(len(texts))).astype(np.int64)
    kinds = np.frombuffer(b"snpvt", np.uint8)[np.abs(codes) % 5]
    templates = Templates(b'"{', b",", b'}"', special=special, formulas=formulas)
    pooled = templates.texts(texts)
    half = len(texts) // 2  # two columns of texts
    first = templates.column(letters[: bounds[half]], bounds[: half + 1])
    rest = templates.column(letters[bounds[half] :], bounds[half:] - bounds[half])
    held = np.append(first, rest)
    part_of = {
        "s": (parts.SIGNED, numbers),
        "n": (parts.NATURAL, numbers),
        "p": (parts.TEXT, pooled[codes]),
        "v": (parts.COPIED, held[codes]),
        "t": (parts.QUOTED, held[codes]),
    }
    part_kinds, members = np.zeros((2, numbers.size), np.int64)
    for letter, (part, values) in part_of.items():
        part_kinds[kinds == ord(letter)] = part
        members[kinds == ord(letter)] = values[kinds == ord(letter)]
    empty = np.full(numbers.size, templates.text(b""))
    templates.hold(pooled[codes], part_kinds, members, empty)
    starts = np.arange(numbers.size, dtype=np.int64)
    stops = np.minimum(starts + codes % 4, numbers.size)
    row = [cell for part in part_of.values() for cell in (part, separator)]
    row += [(parts.MEMBERS, starts), (parts.MEMBERS_END, stops), b"\r\n"]
    written = b"".join(templates.pieces(numbers.size, *row, most=1 + data[0]))
    members = np.where(np.isin(kinds, [ord("s"), ord("n")]), numbers, codes)

    def text(value: bytes) -> bytes:
        sign = b"'" if value[:1] and value[0] in formulas else b""
        quote = b'"' if not value or set(value) & set(special) else b""
        return quote + sign + value.replace(b'"', b'""') + quote

    def cell(kind: str, value: int) -> bytes:
        if kind in "sn":
            return b"%d" % (value % (1 << 64) if kind == "n" else value)
        return texts[value] if kind in "pv" else text(texts[value])

    def thing(at: int) -> bytes:
        found = b",".join(
            texts[codes[i]] + cell(chr(kinds[i]), int(members[i]))
            for i in range(at, int(stops[at]))
        )
        return b'"{' + found + b'}"' if stops[at] > at else b""

    columns = (numbers, numbers, codes, codes, codes)
    rows = (
        (*(cell(kind, int(column[at])) for kind, column in zip("snpvt", columns, strict=True)),
         thing(at))
        for at in range(numbers.size)
    )  # fmt: skip
    assert written == b"".join(separator.join(row) + b"\r\n" for row in rows)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def inspect_kernels(data: bytes) -> None:
    """All that reads a VMO; for one input in eight all tables."""
    from fx_inspect.read.blocks import Blocks
    from fx_inspect.read.lines import LineWriter
    from fx_inspect.read.vmo import Vmo

    if _choice(data, 8) == 0:
        _scanned(_named("inspect"), data)
        return
    octets = _exact(data, "u1")
    Vmo(octets, StringPool(), BOUND)
    for _ in LineWriter(Blocks(octets, BOUND), None).lines():
        pass


def xray_kernels(data: bytes) -> None:
    """Lines, scan and timeline; for one input in two the matching of calls."""
    from fx_xray.format import FileHeader
    from fx_xray.read.decoder import RecordDecoder
    from fx_xray.read.header import read_header
    from fx_xray.read.lines import lines_of
    from fx_xray.read.log import BasicLog, FdrLog
    from fx_xray.read.match import Matcher
    from fxframework.io.source import Source

    octets = _exact(data, "u1")
    if octets.size < 32:
        return
    way = _choice(data, 16)
    order = ("little", "big", "big-lsb", "little")[way & 3]
    version = int(octets[0])
    basic = not (octets[2] or way & 8)
    form = "xray-basic" if basic else "xray"
    decoder = RecordDecoder(form, limits=BOUND, options={"byte_order": order})
    source = Source.open(bytes(octets))
    header = read_header(octets, form, order)
    if header is not None:
        for _ in lines_of(decoder, source, header):
            pass
    defined = FileHeader(
        version=1 + version % (3 if basic else 5),
        buffer_size=int(octets[16]) << 4,
        byte_order=order,
    )
    log = (BasicLog if basic else FdrLog)(source, defined, BOUND)
    if way & 4:
        Matcher(log, BOUND).all_rows()
    else:
        for _ in log.chunks():
            pass


def trace_lines(data: bytes) -> None:
    """Write record JSON, plain events by their kernel, and compare it with that of each record."""
    with contextlib.suppress(FxError), _opened("trace", data) as capture:
        lines = b"".join(capture.records_json()).splitlines()
    with contextlib.suppress(FxError), _opened("trace", data) as capture:
        assert lines == [orjson.dumps(record.to_json()) for record in capture.records()]


def log_text(data: bytes) -> None:
    """Write the lines of a log."""
    with contextlib.suppress(FxError), _opened("log", data) as capture:
        _exported("text", capture)


def _writing(*formats: str) -> Run:
    """What writes a part of a capture, all of it, or what its calls and slices come to."""
    shown = ("perfetto", "folded", "dot", "html")

    def run(data: bytes) -> None:
        chance = random.Random(zlib.crc32(data))
        format = chance.choice(formats)
        writer = host().writer(format)
        with contextlib.suppress(FxError), _opened(format, data) as capture:
            way = chance.randrange(3)
            if way == 0 and writer.extract is not None:
                first, last = sorted(chance.randrange(1 << 40) for _ in range(2))
                everything = capture.table("slices").texts("name") or ["a"]
                selection = chance.choice(
                    (
                        Selection(start_ns=first, stop_ns=last),
                        Selection(functions=(chance.choice(everything),)),
                    )
                )
                writer.extract(capture, selection, Sink.memory(), _defaults(writer))
            elif way == 1 and writer.merge is not None:
                session = writer.merge(Sink.memory(), _defaults(writer))
                session.write(capture)
                session.close()
            else:
                _exported(chance.choice(shown), capture)

    return run


def _opened(format: str, data: bytes) -> Any:
    """The capture that bytes are, taken as a format."""
    from fxframework.io.source import Source
    from fxframework.model.capture import OpenRequest

    reader = host().reader(format)
    request = OpenRequest(limits=BOUND, options=_defaults(reader))
    return reader.open(Source.open(data, limits=BOUND), request)


def _defaults(whose: Any) -> dict[str, Any]:
    from fxframework.registry import parse_options

    return parse_options({}, whose.options, whose="it")


def _exported(name: str, capture: Any) -> None:
    exporter = host().exporter(name, format=capture.format, tables=capture.tables)
    session = exporter.open(Sink.memory(), _defaults(exporter))
    session.write(capture)
    session.close()


def numbers(data: bytes) -> None:
    """Sort, and map, any numbers, as numpy and a dictionary do."""
    from fxframework.kernels.pools import PairMap
    from fxframework.kernels.sorting import stable_order

    keys = _exact(data, "<i8")
    order = stable_order(keys)
    assert (
        (np.arange(keys.size) if order is None else order) == np.argsort(keys, kind="stable")
    ).all()
    pairs, numbering = PairMap(), PairMap()
    known: dict[tuple[int, int], int] = {}
    for first, second in zip(keys.tolist(), keys[::-1].tolist(), strict=True):
        assert pairs.number(first, second) == known.setdefault((first, second), len(known))
    assert all(pairs.get(*pair) == value for pair, value in known.items())
    dense: dict[int, int] = {}
    assert numbering.enter(keys).tolist() == [
        dense.setdefault(key, len(dense)) for key in keys.tolist()
    ]
    assert (numbering.find(keys) == numbering.enter(keys)).all()
    assert numbering.count == len(dense)


@functools.cache
def _named(format: str) -> Run:
    """What makes every column of every table of a format."""
    from fxframework.io.source import Source
    from fxframework.model.capture import OpenRequest
    from fxframework.registry import parse_options

    reader = host().reader(format)
    request = OpenRequest(limits=BOUND, options=parse_options({}, reader.options, whose=format))

    def run(data: bytes) -> None:
        with reader.open(Source.open(data, limits=BOUND), request) as capture:
            for name in capture.schemas:
                table = capture.table(name)
                for column in table.columns:
                    len(table[column])

    return run


def _scanned(run: Run, data: bytes) -> None:
    with contextlib.suppress(FxError):
        run(data)


# --- All of them ----------------------------------------------------------------------------------

PRINTF: tuple[dict[str, object], ...] = ({}, {"printf": True, "fidl_limits": True})
LOG_VARIANTS: tuple[dict[str, object], ...] = (*PRINTF, {"suffix": True})
ORDERS: tuple[dict[str, object], ...] = tuple(
    {"byte_order": order} for order in ("", "", "little", "big", "big-lsb")
)
LOGS = ("log", "log-legacy", "log-legacy-stream", "log-ring")
XRAYS = ("xray", "xray-basic")

TARGETS: dict[str, Target] = {
    "trace": Target(_reader("trace"), "trace", ("trace",), split_words, 2),
    "trace-buffer": Target(_reader("trace-buffer"), "trace", ("trace-buffer",), split_words, 2),
    "log": Target(_reader("log", *LOG_VARIANTS), "log", ("log",), split_words, 2),
    "log-legacy": Target(_reader("log-legacy"), "log", ("log-legacy",), None),
    "log-legacy-stream": Target(_reader("log-legacy-stream"), "log", LOGS[2:3], None),
    "log-ring": Target(_reader("log-ring", *PRINTF), "log", ("log-ring",), split_ring),
    "inspect": Target(_reader("inspect"), "inspect", ("inspect",), split_blocks, 2),
    "xray": Target(_reader("xray", *ORDERS), "xray", ("xray",), split_calls, 1),
    "xray-basic": Target(_reader("xray-basic", *ORDERS), "xray", ("xray-basic",), split_rows, 4),
    "xray-profile": Target(_reader("xray-profile"), "xray", ("xray-profile",), None),
    "llvm-yaml": Target(_reader("llvm-yaml"), "llvm-yaml", (), split_lines, 2),
    "records": Target(_records, "records", (), split_lines, 0),
    "instr-map": Target(_instr_map, "instr-map", (), split_lines, 0),
    "trace-kernels": Target(trace_kernels, "trace", ("trace",), split_words, 2),
    "trace-bounds": Target(trace_bounds, "trace", ("trace",), split_words, 2),
    "trace-lines": Target(trace_lines, "trace", ("trace",), split_words, 2),
    "trace-writing": Target(_writing("trace"), "trace", ("trace",), split_words, 2),
    "xray-writing": Target(_writing(*XRAYS), "xray", XRAYS, split_calls, 1),
    "log-text": Target(log_text, "log", ("log",), split_words, 2),
    "numbers": Target(numbers, "strings", (), None),
    "log-lines": Target(log_lines, "log", ("log",), split_words, 2),
    "strings": Target(strings, "strings", (), None),
    "nesting": Target(nesting, "strings", (), None),
    "cells": Target(csv_cells, "strings", (), None),
    "log-kernels": Target(log_kernels, "log", LOGS, split_words, 2),
    "inspect-kernels": Target(inspect_kernels, "inspect", ("inspect",), split_blocks, 2),
    "xray-kernels": Target(xray_kernels, "xray", XRAYS, split_calls, 1),
}

# --- Mutations that know records ------------------------------------------------------------------


def mutated(chance: random.Random, data: bytes, target: Target) -> bytes:
    """The bytes with one to six mistakes, most of which leave records what they are."""
    if target.split is None or chance.random() < 0.2:
        return _damaged(chance, data)
    records = target.split(data)
    if target.split is split_lines and target.family == "records":
        return _changed_json(chance, records)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        if not records:
            break
        at = chance.randrange(len(records))
        match chance.randrange(6):
            case 0:
                del records[at]
            case 1:
                records.insert(chance.randrange(len(records)), records[at])
            case 2:
                other = chance.randrange(len(records))
                records[at], records[other] = records[other], records[at]
            case _:
                records[at] = _changed(chance, records[at], target.sound)
    return b"".join(records)


def _changed(chance: random.Random, record: bytes, sound: int) -> bytes:
    """A record of the same kind and size, with another value in one place."""
    if len(record) <= sound:
        return record
    out = bytearray(record)
    at = chance.randrange(sound, len(out))
    match chance.randrange(4):
        case 0:
            out[at] ^= 1 << chance.randrange(8)
        case 1:
            out[at] = chance.randrange(256)
        case 2:
            width = chance.choice((2, 4, 8))
            at = max(sound, at - at % width)
            value = chance.choice(WORDS).to_bytes(8, "little")
            out[at : at + width] = value[: min(width, len(out) - at)]
        case _:
            other = chance.randrange(sound, len(out))
            out[at], out[other] = out[other], out[at]
    return bytes(out)


def _damaged(chance: random.Random, data: bytes) -> bytes:
    """The bytes after something bad that knows nothing of records."""
    out = bytearray(data or b"\0")
    at = chance.randrange(len(out))
    word = at & ~7
    match chance.randrange(6):
        case 0:
            out[at] = chance.randrange(256)
        case 1:
            out[word : word + 8] = chance.choice(WORDS).to_bytes(8, "little")
        case 2:
            del out[at:]
        case 3:
            del out[word : word + 8 * chance.randrange(1, 9)]
        case 4:
            out[word:word] = out[word : word + 8 * chance.randrange(1, 33)]
        case _:
            out[at:at] = chance.randbytes(chance.randrange(1, 17))
    return bytes(out)


ODD: tuple[object, ...] = (
    None, True, 0, -1, 1, 2**31, 2**32, 2**63 - 1, -(2**63), 2**64 - 1, 2**64, 1e308, 0.5, "", "x",
    "\0", "\ud7ff\u2028", "/dev/zero", "AAAA", "0x7f", [], {}, [[]], {"type": "int32"},
)  # fmt: skip


def _changed_json(chance: random.Random, lines: list[bytes]) -> bytes:
    """A file of records in which fields have other values, are gone, or stand elsewhere."""
    if not lines:
        return b"{}"
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(lines))
        match chance.randrange(8):
            case 0:
                lines.insert(chance.randrange(len(lines) + 1), lines[at])
                continue
            case 1 if len(lines) > 1:
                del lines[at]
                continue
        try:
            record = orjson.loads(lines[at])
        except ValueError:
            continue
        places = list(_places(record))
        if places:
            inside, key = chance.choice(places)
            if chance.randrange(6) == 0:
                del inside[key]
            elif chance.randrange(3) == 0:
                donor, name = chance.choice(places)
                inside[key] = donor.get(name) if isinstance(donor, dict) else donor[name]
            else:
                inside[key] = chance.choice(ODD)
            try:
                lines[at] = orjson.dumps(record) + b"\n"
            except (TypeError, orjson.JSONEncodeError):
                continue  # a number that is too large, or a value inside itself
    return b"".join(lines)


def _places(value: object) -> Iterator[tuple[Any, Any]]:
    """Every field and item inside a JSON value: what holds it, and its name or index."""
    if isinstance(value, dict):
        for key in value:
            yield value, key
            yield from _places(value[key])
    elif isinstance(value, list):
        for index in range(len(value)):
            yield value, index
            yield from _places(value[index])
