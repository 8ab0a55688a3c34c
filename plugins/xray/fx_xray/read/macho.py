"""Mach-O: the instrumentation maps of programs and libraries of macOS, for x86_64 and arm64.

The map is the section `xray_instr_map` of `__DATA`. Entries of version 2 are relative to where they
are, so that nothing of them is left to the dynamic linker (chained fixups); older ones are
addresses, which are refused where the linker left them as fixups. Images have no debug information:
it is in a file beside them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fx_xray.read.instr_map import (
    ENTRIES,
    RELATIVE_VERSION,
    SECTION,
    InstrumentationMap,
    ProgramMap,
    SymbolTable,
    targets_of,
    unreadable,
    whole_rows,
)
from fxframework.kernels.arrays import U8

MAGIC: Final = b"\xcf\xfa\xed\xfe"
FAT: Final = {
    b"\xca\xfe\xba\xbe": struct.Struct(">5I"),
    b"\xca\xfe\xba\xbf": struct.Struct(">2I2Q2I"),
}
"""The magics of files of several slices, and an entry of each: machine, subtype, place, size."""
FAT_HEADER: Final = 8
MOST_SLICES: Final = 32
"""More are a class file of Java, which has the same magic and a version there."""
HEADER: Final = struct.Struct("<8I")
COMMAND: Final = struct.Struct("<2I")
SEGMENT_BYTES: Final = 72
SYMTAB: Final = struct.Struct("<6I")
LC_SYMTAB: Final = 0x2
LC_SEGMENT_64: Final = 0x19
LC_CHAINED_FIXUPS: Final = 0x80000034
MH_OBJECT: Final = 1
MACHINES: Final = {0x01000007: "x86_64", 0x0100000C: "arm64"}
SECTIONS: Final = np.dtype(
    [("name", "S16"), ("segment", "S16"), ("address", "<u8"), ("size", "<u8"), ("offset", "<u4"),
     ("relocations", "<u4", 3), ("flags", "<u4"), ("reserved", "<u4", 3)]
)  # fmt: skip
SYMBOLS: Final = np.dtype(
    [("name", "<u4"), ("type", "u1"), ("section", "u1"), ("desc", "<u2"), ("value", "<u8")]
)
TYPE: Final = 0xEE
"""Bits of a symbol's type that are its kind, and those that only debug symbols have."""
IN_SECTION: Final = 0x0E
"""Of symbols that are defined in a section."""
INSTRUCTIONS: Final = 0x80000400
"""Flags of a section, of which code has one at least."""


def read_macho(data: U8, path: str) -> InstrumentationMap:
    """Return the map of an image, or of the slices of a file, if they number functions alike.

    Raises UnreadableError if there is none.
    """
    slice_entry = FAT.get(data[:4].tobytes())
    if slice_entry is None:
        return read_image(data, path)
    slice_count = int.from_bytes(data[4:FAT_HEADER].tobytes(), "big")
    table = data[FAT_HEADER:][: slice_count * slice_entry.size]
    if not 0 < slice_count <= MOST_SLICES or table.size < slice_count * slice_entry.size:
        raise unreadable(f"its {slice_count} slices do not fit", path)
    maps = []
    for machine, _, offset, size, *_ in slice_entry.iter_unpack(table.data):
        if machine in MACHINES:
            maps.append(read_image(data[offset : offset + size], path, offset))
    if not maps:
        raise unreadable("none of its slices is of x86_64 or arm64", path)
    # A log has ids of functions and not the machine. Which slice ran is not known, and does not
    # matter as long as an id has one name in all of them.
    names_of_slices = [[*map(part.functions.name, part.functions.ids)] for part in maps]
    if any(names != names_of_slices[0] for names in names_of_slices):
        remedy = f"give one of them: `lipo -thin arm64 {path} -output FILE`"
        raise unreadable("its slices number functions differently", path, remedy)
    return maps[0]


def read_image(data: U8, path: str, base: int = 0) -> InstrumentationMap:
    """Return the map of an image, whose slice begins at byte ``base`` of the file.

    Raises UnreadableError if there is none.
    """
    header = data[: HEADER.size].tobytes()
    if header[:4] != MAGIC or len(header) < HEADER.size:
        raise unreadable("it is not a Mach-O image of 64 bits, little-endian", path)
    _, machine, _, file_type, count, nbytes, _, _ = HEADER.unpack(header)
    if machine not in MACHINES:
        raise unreadable(f"its machine {machine:#x} is not x86_64 or arm64", path)
    if file_type == MH_OBJECT:
        problem = "it is an object that is not linked, whose map has no addresses yet"
        raise unreadable(problem, path, "give the program or the library that it was linked into")
    has_fixups = False
    symtab: tuple[int, ...] = (0, 0, 0, 0)
    parts = [np.zeros(0, SECTIONS)]
    for command, body in commands_of(data[HEADER.size :][:nbytes], count, path):
        has_fixups |= command == LC_CHAINED_FIXUPS
        if command == LC_SYMTAB and body.size >= SYMTAB.size:
            symtab = SYMTAB.unpack_from(body.data)[2:]
        elif command == LC_SEGMENT_64:
            # The number of sections is not needed: their headers fill the command.
            parts.append(whole_rows(body[SEGMENT_BYTES:], SECTIONS))
    sections = np.concatenate(parts)
    maps = sections[sections["name"] == SECTION.encode()]
    if not maps.size:
        raise unreadable("the image has no section __DATA,xray_instr_map", path)
    found = ProgramMap(path, base)
    for address, size, offset in maps[["address", "size", "offset"]].tolist():
        rows = whole_rows(data[offset : offset + size], ENTRIES[64])
        if has_fixups and (rows["version"] < RELATIVE_VERSION).any():
            raise unreadable("its map has addresses as chained fixups, not relative", path)
        targets = (*targets_of(rows, address, 64), np.zeros(rows.size, np.int64))
        found.add(rows, targets, offset, size)
    return found.finished(partial(symbols_of, data, sections, *symtab))


def commands_of(commands: U8, count: int, path: str) -> Iterator[tuple[int, U8]]:
    """Yield the number and the bytes of each load command."""
    for _ in range(count):
        if commands.size < COMMAND.size:
            raise unreadable("its load commands are cut off", path)
        command, size = COMMAND.unpack_from(commands.data)
        # A size of 0 would give the same command again, up to 2**32 times.
        if not COMMAND.size <= size <= commands.size:
            raise unreadable(f"a load command of {size} bytes does not fit", path)
        yield command, commands[:size]
        commands = commands[size:]


def symbols_of(
    data: U8, sections: NDArray[Any], start: int, count: int, names_start: int, names_size: int
) -> SymbolTable:
    """Return the symbols of functions, which have no sizes, without their first underscore."""
    names = data[names_start : names_start + names_size]
    rows = whole_rows(data[start:][: count * SYMBOLS.itemsize], SYMBOLS)
    # Sections are counted from 1 through all segments, and a symbol has 8 bits for the number.
    has_code = np.zeros(256, np.bool_)
    flags = sections["flags"][:255]
    has_code[1 : flags.size + 1] = flags & INSTRUCTIONS != 0
    is_defined = rows["type"] & TYPE == IN_SECTION
    rows = rows[is_defined & has_code[rows["section"]]]
    name_starts = rows["name"].astype(np.int64)
    # Compilers for macOS put an underscore before each name of C, and so of C++: __Z is _Z.
    inside = np.flatnonzero(name_starts < names.size)
    name_starts[inside] += names[name_starts[inside]] == ord("_")
    nothing = np.zeros(rows.size, np.int64)
    return SymbolTable.of(nothing, rows["value"], nothing, name_starts, names)
