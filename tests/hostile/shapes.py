"""Hostile captures: of each format, files that are as awkward for their size as they can be.

A shape makes a file of about so many bytes. They are what naive readers take quadratic time, or
many times the file's memory, for: depth without end, chains that many share, everything distinct,
nothing that can be read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.arrays import U64

__all__ = ["SHAPES", "Shape"]

Shape = Callable[[int], bytes]
SHAPES: dict[str, tuple[str, Shape]] = {}
"""The format that reads it, and what makes it, by ``format-shape``."""


def shape(format: str) -> Callable[[Shape], Shape]:
    """Enter a shape of a format."""

    def enter(make: Shape) -> Shape:
        SHAPES[f"{format}-{make.__name__.rstrip('_').replace('_', '-')}"] = format, make
        return make

    return enter


def _rows(count: int, *columns: int | U64) -> bytes:
    """``count`` rows of words, each column one word or one for each row."""
    rows = np.empty((count, len(columns)), np.uint64)
    for at, column in enumerate(columns):
        rows[:, at] = column
    return rows.astype("<u8").tobytes()


def _numbers(count: int) -> U64:
    return np.arange(count, dtype=np.uint64)


def _eights(count: int) -> U64:
    """Eight letters for each number."""
    return np.frombuffer(b"".join(b"%08d" % at for at in range(count)), "<u8").astype(np.uint64)


def _u64(value: NDArray[np.uint64] | int) -> U64:
    return np.asarray(value, np.uint64)


# --- any format ----------------------------------------------------------------------------------


def zeros(nbytes: int) -> bytes:
    """Nothing but zeros."""
    return bytes(nbytes)


def ones(nbytes: int) -> bytes:
    """Nothing but bits that are set."""
    return b"\xff" * nbytes


def noise(nbytes: int) -> bytes:
    """Any bytes."""
    return np.random.default_rng(1).integers(0, 256, nbytes, dtype=np.uint8).tobytes()


for _format in (
    "trace", "trace-buffer", "log", "log-legacy-stream", "log-ring", "inspect", "xray",
    "xray-basic", "xray-profile", "llvm-yaml", "records", "chrome-json",
):  # fmt: skip
    for _make in (zeros, ones, noise):
        SHAPES[f"{_format}-{_make.__name__}"] = _format, _make
SHAPES["log-legacy-zeros"] = "log-legacy", zeros


# --- traces --------------------------------------------------------------------------------------

MAGIC = struct.pack("<Q", 0x0016547846040010)


def _string(index: int, text: bytes) -> bytes:
    words = (len(text) + 7) // 8
    header = 2 | (1 + words) << 4 | index << 16 | len(text) << 32
    return struct.pack("<Q", header) + text.ljust(8 * words, b"\0")


PREAMBLE = MAGIC + _string(1, b"a") + struct.pack("<QQQ", 3 | 3 << 4 | 1 << 16, 1, 2)
EVENT = 4 | 1 << 24 | 1 << 32 | 1 << 48


@shape("trace")
def magic(nbytes: int) -> bytes:
    """The first record, again and again."""
    return MAGIC * (nbytes // 8)


@shape("trace")
def instants(nbytes: int) -> bytes:
    """The shortest events."""
    count = nbytes // 16
    return PREAMBLE + _rows(count, EVENT | 2 << 4, _numbers(count))


@shape("trace")
def begins(nbytes: int) -> bytes:
    """Slices inside each other that never end."""
    count = nbytes // 16
    return PREAMBLE + _rows(count, EVENT | 2 << 4 | 2 << 16, _numbers(count))


@shape("trace")
def begins_backwards(nbytes: int) -> bytes:
    """The same, from the last to the first."""
    count = nbytes // 16
    return PREAMBLE + _rows(count, EVENT | 2 << 4 | 2 << 16, _numbers(count)[::-1])


@shape("trace")
def equal_starts(nbytes: int) -> bytes:
    """Complete slices that all start at one time, each longer than the one before."""
    count = nbytes // 24
    return PREAMBLE + _rows(count, EVENT | 3 << 4 | 4 << 16, 0, _numbers(count))


@shape("trace")
def asynchronous(nbytes: int) -> bytes:
    """Asynchronous slices that never end, each with an id of its own."""
    count = nbytes // 24
    return PREAMBLE + _rows(count, EVENT | 3 << 4 | 5 << 16, *(_numbers(count),) * 2)


@shape("trace")
def threads(nbytes: int) -> bytes:
    """Every event on a thread of its own."""
    count = nbytes // 32
    number = _numbers(count)
    header = 4 | 4 << 4 | 1 << 32 | 1 << 48
    return PREAMBLE + _rows(count, header, number, number // 4 + 1, number + 10)


@shape("trace")
def strings(nbytes: int) -> bytes:
    """Every event with a name of its own."""
    count = nbytes // 24
    header = 4 | 3 << 4 | 1 << 24 | 1 << 32 | 0x8008 << 48
    return PREAMBLE + _rows(count, header, _numbers(count), _eights(count))


@shape("trace")
def threads_in_turn(nbytes: int) -> bytes:
    """Slices that never end, each on a thread that is registered in place of the one before."""
    count = nbytes // 40
    number = _numbers(count)
    thread, event = 3 | 3 << 4 | 1 << 16, EVENT | 2 << 4 | 2 << 16
    return PREAMBLE + _rows(count, thread, number + 5, number + 9, event, number)


@shape("trace")
def flows(nbytes: int) -> bytes:
    """Flows that begin in slices inside each other that never end."""
    count = nbytes // 40
    number = _numbers(count)
    flow = EVENT | 3 << 4 | 8 << 16
    begin = EVENT | 2 << 4 | 2 << 16
    return PREAMBLE + _rows(count, begin, number * 2, flow, number * 2 + 1, number % 5)


@shape("trace")
def complete_inside_out(nbytes: int) -> bytes:
    """Complete slices of three lengths, in turn, that start at two times."""
    count = nbytes // 24
    number = _numbers(count)
    return PREAMBLE + _rows(count, EVENT | 3 << 4 | 4 << 16, number % 2, number % 3)


@shape("trace")
def objects(nbytes: int) -> bytes:
    """Processes that nothing else mentions."""
    count = nbytes // 16
    return PREAMBLE + _rows(count, 7 | 2 << 4 | 1 << 16 | 1 << 24, _numbers(count) + 5)


@shape("trace")
def providers(nbytes: int) -> bytes:
    """Nothing but providers."""
    count = nbytes // 16
    header = np.uint64(2 << 4 | 1 << 16 | 8 << 52) | _numbers(count) << np.uint64(20)
    return MAGIC + _rows(count, header, _eights(count))


@shape("trace")
def clocks(nbytes: int) -> bytes:
    """Nothing but rates of the clock, each another one."""
    count = nbytes // 16
    return MAGIC + _rows(count, 1 | 2 << 4, _numbers(count) + 1)


@shape("trace")
def sizes_of_zero(nbytes: int) -> bytes:
    """Records that say they have no words."""
    return MAGIC + _rows(nbytes // 8, 4 | 1 << 24)


@shape("trace")
def bad_arguments(nbytes: int) -> bytes:
    """Events with an argument of no words."""
    count = nbytes // 24
    return PREAMBLE + _rows(count, EVENT | 3 << 4 | 1 << 20, _numbers(count), 3)


@shape("trace")
def unknown_references(nbytes: int) -> bytes:
    """Events on threads, and with names, that nothing registers."""
    count = nbytes // 16
    number = _numbers(count)
    header = (
        np.uint64(4 | 2 << 4 | 77 << 48)
        | (number % np.uint64(250) + np.uint64(1)) << np.uint64(24)
        | (number % np.uint64(30000) + np.uint64(1)) << np.uint64(32)
    )
    return PREAMBLE + _rows(count, header, number)


@shape("trace")
def shared_string(nbytes: int) -> bytes:
    """Events that all have one name, of half of the file, at most of 32,000 letters."""
    letters = min(nbytes // 2, 32_000)
    count = (nbytes - letters) // 16
    event = (EVENT & ~(0xFFFF << 48)) | 2 << 4 | 2 << 48
    return PREAMBLE + _string(2, b"A" * letters) + _rows(count, event, _numbers(count))


@shape("trace")
def off_alignment(nbytes: int) -> bytes:
    """Three events and a byte, again and again."""
    events = _rows(3, EVENT | 2 << 4, _numbers(3))
    return PREAMBLE + (events + b"x") * (nbytes // (len(events) + 1))


@shape("trace")
def records_in_blobs(nbytes: int) -> bytes:
    """Blobs of events that are off the alignment, each between others and what is no record."""
    events = _rows(3, EVENT | 2 << 4, _numbers(3))
    inside = b"abc" + 600 * events + b"defgh"
    blob = struct.pack(
        "<Q", 5 | (1 + len(inside) // 8) << 4 | 1 << 16 | len(inside) << 32 | 1 << 56
    )
    part = events + blob + inside + b"\xff" * 8
    return PREAMBLE + part * max(1, nbytes // len(part))


# --- logs ----------------------------------------------------------------------------------------

RECORD = 9 | 0x30 << 56


@shape("log")
def shortest(nbytes: int) -> bytes:
    """Records without arguments."""
    count = nbytes // 16
    return _rows(count, RECORD | 2 << 4, _numbers(count))


@shape("log")
def bad_argument(nbytes: int) -> bytes:
    """Records whose argument is longer than they are."""
    count = nbytes // 24
    return _rows(count, RECORD | 3 << 4, _numbers(count), 6 | 9 << 4 | 0x8003 << 16)


@shape("log")
def null_arguments(nbytes: int) -> bytes:
    """Records of 4,093 arguments of one word."""
    record = np.full(4095, 1 << 4, np.uint64)
    record[:2] = RECORD | 4095 << 4, 0
    return record.tobytes() * max(nbytes // record.nbytes, 1)


@shape("log")
def components(nbytes: int) -> bytes:
    """Nothing but components, each with a name of its own."""
    count = nbytes // 64
    header = np.uint64(9 | 8 << 4 | 1 << 47) | _numbers(count) << np.uint64(16)
    name = 6 | 3 << 4 | 0x8008 << 32
    moniker, url = (int.from_bytes(text, "little") for text in (b"moniker", b"url"))
    return _rows(
        count, header, 0, name | 0x8007 << 16, moniker, _eights(count),
        name | 0x8003 << 16, url, _eights(count),
    )  # fmt: skip


@shape("log")
def off_alignment_(nbytes: int) -> bytes:
    """Three records and a byte, again and again."""
    records = _rows(3, RECORD | 4 << 4, 0, 3 | 2 << 4 | 0x8000 << 16, 0)
    return (records + b"x") * (nbytes // (len(records) + 1))


CONTAINER = b"\x89FXLLOG\n" + struct.pack("<II", 1, 0)


@shape("log-legacy-stream")
def packets(nbytes: int) -> bytes:
    """The shortest packets."""
    packet = struct.pack("<QQqiI", 1, 2, 3, 0x30, 0) + b"\0\0"
    return CONTAINER + (struct.pack("<I", len(packet)) + packet) * (nbytes // 38)


@shape("log-legacy-stream")
def packets_of_a_byte(nbytes: int) -> bytes:
    """Packets that are too short."""
    return CONTAINER + (struct.pack("<I", 1) + b"x") * (nbytes // 5)


def _ring(entry: bytes, nbytes: int) -> bytes:
    room = 1 << max(nbytes - 1, 4096).bit_length()
    used = entry * (room // len(entry))
    return struct.pack("<QQ", len(used), 0).ljust(4096, b"\0") + used.ljust(room, b"\0")


@shape("log-ring")
def entries(nbytes: int) -> bytes:
    """Entries of the shortest records."""
    return _ring(struct.pack("<QQ", 1, 16) + _rows(1, RECORD | 2 << 4, 1), nbytes)


@shape("log-ring")
def empty_entries(nbytes: int) -> bytes:
    """Entries that hold nothing."""
    return _ring(struct.pack("<QQ", 1, 0), nbytes)


# --- Inspect -------------------------------------------------------------------------------------


def _vmo(body: bytes) -> bytes:
    """Blocks behind a header and a name of one letter, which is block 2."""
    size = 48 + len(body)
    magic = 1 | 2 << 8 | 2 << 16 | int.from_bytes(b"INSP", "little") << 32
    header = struct.pack("<QQII", magic, 2, size, 0).ljust(32, b"\0")
    return header + struct.pack("<Q", 9 << 8 | 1 << 16) + b"a".ljust(8, b"\0") + body


NAMED = 2 << 40
FIRST = 3
"""The first block of a body."""


def _chain(count: int, start: int) -> bytes:
    """Extents of eight bytes, each followed by the next block."""
    letters = int.from_bytes(b"A" * 8, "little")
    following = _numbers(count) + np.uint64(start + 1)
    following[-1:] = 0
    return _rows(count, np.uint64(8 << 8) | following << np.uint64(16), letters)


@shape("inspect")
def integers(nbytes: int) -> bytes:
    """Numbers under the root."""
    count = nbytes // 16
    return _vmo(_rows(count, 4 << 8 | NAMED, _numbers(count)))


@shape("inspect")
def nested(nbytes: int) -> bytes:
    """Nodes, each inside the one before."""
    count = nbytes // 16
    parent = _numbers(count) + np.uint64(FIRST - 1)
    parent[:1] = 0
    return _vmo(_rows(count, np.uint64(3 << 8 | NAMED) | parent << np.uint64(16), 1))


@shape("inspect")
def cycle(nbytes: int) -> bytes:
    """Nodes, each inside the next, and the last one inside the first."""
    count = nbytes // 16
    parent = (_numbers(count) + np.uint64(1)) % np.uint64(count) + np.uint64(FIRST)
    return _vmo(_rows(count, np.uint64(3 << 8 | NAMED) | parent << np.uint64(16), 1))


@shape("inspect")
def shared_chain(nbytes: int) -> bytes:
    """Buffers that all are one chain of extents, half of the file."""
    count = max(nbytes // 32, 1)
    value = struct.pack("<QQ", 7 << 8 | NAMED, 8 * count | FIRST << 32)
    return _vmo(_chain(count, FIRST) + value * count)


@shape("inspect")
def chain_heads(nbytes: int) -> bytes:
    """Buffers that begin at each extent of one chain, and claim all of it."""
    count = max(nbytes // 32, 1)
    slot = np.uint64(8 * count) | (_numbers(count) + np.uint64(FIRST)) << np.uint64(32)
    return _vmo(_chain(count, FIRST) + _rows(count, 7 << 8 | NAMED, slot))


@shape("inspect")
def shared_text(nbytes: int) -> bytes:
    """Strings that all are one reference to a long text."""
    count = max(nbytes // 32, 1)
    reference = struct.pack("<QI", 14 << 8 | (FIRST + 1) << 16, 8 * count + 4) + b"BBBB"
    value = struct.pack("<QQ", 7 << 8 | NAMED, FIRST << 32 | 2 << 60)
    return _vmo(reference + _chain(count, FIRST + 1) + value * count)


@shape("inspect")
def shared_array_text(nbytes: int) -> bytes:
    """Arrays of which every string is one reference to a long text; the first is too short."""
    count = max(nbytes // 32, 1)
    reference = struct.pack("<QI", 14 << 8 | (FIRST + 1) << 16, 8 * count + 4) + b"BBBB"
    array = struct.pack("<QQ", 7 | 11 << 8 | NAMED, 14 | 255 << 8) + struct.pack("<I", FIRST) * 508
    return _vmo(reference + _chain(count, FIRST + 1) + array * max(nbytes // 4096, 1))


@shape("inspect")
def links(nbytes: int) -> bytes:
    """Links to trees that nobody has."""
    return _vmo(struct.pack("<QQ", 12 << 8 | NAMED, 2) * (nbytes // 16))


# --- XRay ----------------------------------------------------------------------------------------


def _log(version: int = 5, kind: int = 1, argument: int = 16384) -> bytes:
    return struct.pack("<HHIQQQ", version, kind, 3, 1_000_000_000, argument, 0)


def _meta(kind: int, payload: bytes) -> bytes:
    return bytes([kind << 1 | 1]) + payload.ljust(15, b"\0")


def _buffer(body: bytes, thread: int = 1) -> bytes:
    head = _meta(0, struct.pack("<i", thread)) + _meta(4, struct.pack("<qi", 1, 1))
    head += _meta(9, struct.pack("<i", 7)) + _meta(2, struct.pack("<HQ", 1, 1000))
    return _meta(7, struct.pack("<Q", len(head) + len(body))) + head + body


def _calls(kinds: U64 | int, functions: U64 | int, count: int) -> bytes:
    word = _u64(functions) << np.uint64(4) | _u64(kinds) << np.uint64(1)
    return _rows(count, word | np.uint64(1 << 32))


@shape("xray")
def calls(nbytes: int) -> bytes:
    """Calls of one function."""
    count = nbytes // 8
    return _log() + _buffer(_calls(_numbers(count) & np.uint64(1), 1, count))


@shape("xray")
def enters(nbytes: int) -> bytes:
    """Calls inside each other that never end."""
    return _log() + _buffer(_calls(0, 1, nbytes // 8))


@shape("xray")
def exits(nbytes: int) -> bytes:
    """Ends of calls that never began."""
    return _log() + _buffer(_calls(1, 1, nbytes // 8))


@shape("xray")
def functions(nbytes: int) -> bytes:
    """Calls of as many functions."""
    count = nbytes // 8
    number = _numbers(count)
    calls = _calls(number & np.uint64(1), number // np.uint64(2) + np.uint64(1), count)
    return _log() + _buffer(calls)


@shape("xray")
def enters_of_functions(nbytes: int) -> bytes:
    """Calls of as many functions inside each other, which end in the order they began in."""
    count = nbytes // 16
    number = _numbers(count) + np.uint64(1)
    return _log() + _buffer(_calls(0, number, count) + _calls(1, number, count))


@shape("xray")
def bad_kinds(nbytes: int) -> bytes:
    """Records of a kind that there is not."""
    return _log() + _buffer(_calls(7, 1, nbytes // 8))


@shape("xray")
def bad_metadata(nbytes: int) -> bytes:
    """Metadata of a kind that there is not."""
    return _log() + _buffer(_meta(77, b"") * (nbytes // 16))


@shape("xray")
def buffers(nbytes: int) -> bytes:
    """Buffers of one call each, on as many threads."""
    pair = _calls(_numbers(2), 1, 2)
    return _log() + b"".join(_buffer(pair, thread + 1) for thread in range(nbytes // 96))


@shape("xray")
def empty_buffers(nbytes: int) -> bytes:
    """Buffers of no bytes."""
    return _log() + _meta(7, b"") * (nbytes // 16)


@shape("xray")
def custom_events(nbytes: int) -> bytes:
    """Custom events of no bytes."""
    return _log() + _buffer(_meta(5, struct.pack("<ii", 0, 1)) * (nbytes // 16))


@shape("xray")
def version_1_zeros(nbytes: int) -> bytes:
    """A header of version 1, and zeros."""
    return _log(1) + bytes(nbytes)


def _basic(kinds: U64 | int, functions: U64 | int, threads: U64 | int, count: int) -> bytes:
    head = _u64(kinds) << np.uint64(24) | _u64(functions) << np.uint64(32)
    who = _u64(threads) | np.uint64(2 << 32)
    return _log(3, 0, 0) + _rows(count, head, _numbers(count) + np.uint64(1), who, 0)


@shape("xray-basic")
def basic_enters(nbytes: int) -> bytes:
    """Calls inside each other that never end."""
    return _basic(0, 5, 1, nbytes // 32)


@shape("xray-basic")
def basic_exits(nbytes: int) -> bytes:
    """Ends of calls that never began."""
    return _basic(1, 5, 1, nbytes // 32)


@shape("xray-basic")
def basic_threads(nbytes: int) -> bytes:
    """Calls of as many functions, on as many threads."""
    count = nbytes // 32
    return _basic(0, *(_numbers(count) + np.uint64(1),) * 2, count)


PROFILE = struct.pack("<QQQQ", 0x7872617970726F66, 0x20180424, 1, 2)


def _profile(paths: bytes) -> bytes:
    return PROFILE + struct.pack("<IIQ", 16 + len(paths), 0, 1) + paths


@shape("xray-profile")
def profile_paths(nbytes: int) -> bytes:
    """As many paths of one function as fit, each of another one."""
    count = nbytes // 24
    functions = (_numbers(count) + np.uint64(1)) & np.uint64(0xFFFFFFFF)
    return _profile(_rows(count, functions, 1, 1))


@shape("xray-profile")
def profile_deep(nbytes: int) -> bytes:
    """One path of as many functions."""
    return _profile(struct.pack("<I", 1) * (nbytes // 4 - 10) + struct.pack("<IQQ", 0, 1, 1))


@shape("xray-profile")
def profile_empty_blocks(nbytes: int) -> bytes:
    """Blocks without paths, of as many threads."""
    count = nbytes // 16
    return PROFILE + _rows(count, 16, _numbers(count))


# --- texts ---------------------------------------------------------------------------------------


@shape("chrome-json")
def chrome_begins(nbytes: int) -> bytes:
    """Slices inside each other that never end."""
    return b"[" + b'{"ph":"B","ts":1,"name":"a"},' * (nbytes // 29)


@shape("chrome-json")
def chrome_deep(nbytes: int) -> bytes:
    """Arrays inside each other."""
    return b'[{"ph":"i","ts":1,"args":{"a":' + b"[" * nbytes


@shape("chrome-json")
def chrome_quotes(nbytes: int) -> bytes:
    """Events that do not end, each with another behind it."""
    return b"[" + b'{"a":"},{"' * (nbytes // 10)


@shape("chrome-json")
def chrome_long_string(nbytes: int) -> bytes:
    """A name that fills the file."""
    return b'[{"ph":"i","ts":1,"name":"' + b"a" * nbytes + b'"}]'


@shape("chrome-json")
def chrome_odd(nbytes: int) -> bytes:
    """Events that orjson refuses, with times that are texts."""
    return b"[" + b'{"ph":"X","ts":"1.5","dur":NaN,"tid":[]},' * (nbytes // 41)


YAML = (
    b"---\nheader:\n  version: 1\n  type: 0\n  constant-tsc: true\n  nonstop-tsc: true\n"
    b"  cycle-frequency: 1000000000\nrecords:\n"
)
CALL = (
    b"  - { type: 0, func-id: 1, function: %s, cpu: 1, thread: 1, process: 1, "
    b"kind: function-enter, tsc: 1, data: '' }\n"
)


@shape("llvm-yaml")
def yaml_enters(nbytes: int) -> bytes:
    """Calls inside each other that never end."""
    return YAML + CALL % b"a" * (nbytes // 100) + b"...\n"


@shape("llvm-yaml")
def yaml_long_name(nbytes: int) -> bytes:
    """One function with a long name."""
    return YAML + CALL % (b'"' + b"a" * nbytes + b'"') + b"...\n"


@shape("llvm-yaml")
def yaml_deep(nbytes: int) -> bytes:
    """Lists inside each other."""
    return YAML + b"  - " + b"[" * nbytes


@shape("llvm-yaml")
def yaml_bad_items(nbytes: int) -> bytes:
    """Items that are no records."""
    return YAML + b"  - no record at all\n" * (nbytes // 21)


@shape("llvm-yaml")
def yaml_endless_strings(nbytes: int) -> bytes:
    """Records, each with a string that does not end."""
    return YAML + b'  - {"\\"}\n' * (nbytes // 11)


HEADER = b'{"fxframework":"records","version":1,"format":"trace"}\n'


@shape("records")
def empty_objects(nbytes: int) -> bytes:
    """Lines that say nothing."""
    return HEADER + b"{}\n" * (nbytes // 3)


@shape("records")
def long_string(nbytes: int) -> bytes:
    """One record with a long string."""
    return HEADER + b'{"record":"string","index":1,"value":"' + b"a" * nbytes + b'"}\n'


@shape("records")
def deep_json(nbytes: int) -> bytes:
    """Lists inside each other."""
    return HEADER + b"[" * nbytes


@shape("records")
def claims(nbytes: int) -> bytes:
    """Lines that claim gigabytes of padding."""
    return HEADER + b'{"record":"padding","offset":0,"nbytes":4000000000}\n' * (nbytes // 52)
