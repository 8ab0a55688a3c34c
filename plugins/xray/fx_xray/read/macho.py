"""Mach-O: the instrumentation maps of programs and libraries of macOS, for x86_64 and arm64.

The map is the section `xray_instr_map` of `__DATA`. Entries of version 2 are relative to where they
are, so that nothing of them is left to the dynamic linker (chained fixups); older ones are
addresses, which are refused where the linker left them as fixups.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

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
from fxframework.errors import UnreadableError

__all__ = ["read_macho"]

U1 = NDArray[np.uint8]
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
SEGMENT: Final = struct.Struct("<2I16s4Q4I")
SECTION_HEADER: Final = struct.Struct("<16s16s2Q8I")
SYMTAB: Final = struct.Struct("<6I")
LC_SYMTAB: Final = 0x2
LC_SEGMENT_64: Final = 0x19
LC_CHAINED_FIXUPS: Final = 0x80000034
MH_OBJECT: Final = 1
MACHINES: Final = {0x01000007: "x86_64", 0x0100000C: "arm64"}
SYMBOL: Final = np.dtype(
    [("name", "<u4"), ("type", "u1"), ("section", "u1"), ("desc", "<u2"), ("value", "<u8")]
)
STAB: Final = 0xE0
"""Bits of a symbol's type that only debug symbols have."""
TYPE: Final = 0x0E
"""Bits of a symbol's type that are its kind."""
IN_SECTION: Final = 0x0E
"""The kind of symbols that are defined in a section."""
INSTRUCTIONS: Final = 0x80000400
"""Flags of a section, of which code has one at least."""


class Section(NamedTuple):
    """A section of an image."""

    name: bytes
    address: int
    size: int
    offset: int
    """In the slice."""
    has_code: bool


def read_macho(data: U1, path: str) -> InstrumentationMap:
    """Return the map of an image, or of the slices of a file, if they number functions alike.

    Raises UnreadableError if there is none.
    """
    slice_entry = FAT.get(data[:4].tobytes())
    if slice_entry is None:
        return MachO(data, 0, path).read()
    slice_count = int.from_bytes(data[4:FAT_HEADER].tobytes(), "big")
    table_bytes = slice_count * slice_entry.size
    table = data[FAT_HEADER : FAT_HEADER + table_bytes].tobytes()
    if not 0 < slice_count <= MOST_SLICES or len(table) < table_bytes:
        raise unreadable(f"its {slice_count} slices do not fit", path)
    maps = []
    for machine, _, offset, size, *_ in slice_entry.iter_unpack(table):
        if machine in MACHINES:
            maps.append(MachO(data[offset : offset + size], offset, path).read())
    if not maps:
        raise unreadable("none of its slices is of x86_64 or arm64", path)
    # A log has ids of functions and not the machine. Which slice ran is not known, and does not
    # matter as long as an id has one name in all of them.
    names_of_slices = [names_by_id(slice_map) for slice_map in maps]
    if any(names != names_of_slices[0] for names in names_of_slices):
        raise UnreadableError(
            "its slices number functions differently",
            path=path,
            remedy=f"give one of them: `lipo -thin arm64 {path} -output FILE`",
        )
    return maps[0]


def names_by_id(slice_map: InstrumentationMap) -> list[str | None]:
    """Return the names of the functions of a map, in the order of their ids."""
    functions = slice_map.functions
    return [functions.name(id) for id in functions.ids]


class MachO:
    """Reads the map of one image; ``base`` is the offset of its slice in the file."""

    def __init__(self, data: U1, base: int, path: str) -> None:
        self._data = data
        self._base = base
        self._path = path
        self._sections: list[Section] = []
        self._symtab: tuple[int, ...] = (0, 0, 0, 0)
        self._has_fixups = False

    def read(self) -> InstrumentationMap:
        """Return the map. Raises UnreadableError if there is none."""
        header = self._data[: HEADER.size].tobytes()
        if header[:4] != MAGIC or len(header) < HEADER.size:
            raise unreadable("it is not a Mach-O image of 64 bits, little-endian", self._path)
        _, machine, _, file_type, command_count, commands_size, _, _ = HEADER.unpack(header)
        if machine not in MACHINES:
            raise unreadable(f"its machine {machine:#x} is not x86_64 or arm64", self._path)
        if file_type == MH_OBJECT:
            raise UnreadableError(
                "it is an object that is not linked, whose map has no addresses yet",
                path=self._path,
                remedy="give the program or the library that it was linked into",
            )
        for command, body in self._commands(command_count, commands_size):
            self._take(command, body)
        map_sections = [section for section in self._sections if section.name == SECTION.encode()]
        if not map_sections:
            raise unreadable("the image has no section __DATA,xray_instr_map", self._path)
        found = ProgramMap(self._path, self._base)
        for section in map_sections:
            data = self._data[section.offset : section.offset + section.size]
            rows = whole_rows(data, ENTRIES[64])
            if self._has_fixups and (rows["version"] < RELATIVE_VERSION).any():
                raise unreadable(
                    "its map has addresses as chained fixups, not relative", self._path
                )
            sections = np.zeros(rows.size, np.int64)
            targets = (*targets_of(rows, section.address, 64), sections)
            found.add(rows, targets, section.offset, section.size)
        return found.finished(self)

    def _commands(self, count: int, nbytes: int) -> Iterator[tuple[int, bytes]]:
        """Yield the number and the bytes of each load command."""
        commands = self._data[HEADER.size : HEADER.size + nbytes].tobytes()
        offset = 0
        for _ in range(count):
            bytes_left = len(commands) - offset
            if bytes_left < COMMAND.size:
                raise unreadable("its load commands are cut off", self._path)
            command, size = COMMAND.unpack_from(commands, offset)
            # A size of 0 would give the same command again, up to 2**32 times.
            if not COMMAND.size <= size <= bytes_left:
                raise unreadable(f"a load command of {size} bytes does not fit", self._path)
            yield command, commands[offset : offset + size]
            offset += size

    def _take(self, command: int, body: bytes) -> None:
        """Take what a load command says of sections and symbols."""
        if command == LC_CHAINED_FIXUPS:
            self._has_fixups = True
        elif command == LC_SYMTAB and len(body) >= SYMTAB.size:
            # Where symbols are and how many, and where their names are and how many bytes.
            self._symtab = SYMTAB.unpack_from(body)[2:]
        elif command == LC_SEGMENT_64 and len(body) >= SEGMENT.size:
            headers = body[SEGMENT.size :]
            # The number of sections is not needed: their headers fill the command.
            whole_headers = len(headers) // SECTION_HEADER.size * SECTION_HEADER.size
            for name, _, address, size, offset, *fields in SECTION_HEADER.iter_unpack(
                headers[:whole_headers]
            ):
                # Of the fields behind the offset: alignment, relocations, their number, flags.
                has_code = bool(fields[3] & INSTRUCTIONS)
                self._sections.append(Section(name.rstrip(b"\0"), address, size, offset, has_code))

    def symbols(self) -> SymbolTable:
        """Return the symbols of functions, which have no sizes, without their first underscore."""
        symbols_start, count, names_start, names_size = self._symtab
        data = self._data[symbols_start : symbols_start + count * SYMBOL.itemsize]
        rows = whole_rows(data, SYMBOL)
        # Sections are counted from 1 through all segments, and a symbol has 8 bits for the number.
        has_code = np.zeros(256, np.bool_)
        numbered = self._sections[:255]
        has_code[1 : len(numbered) + 1] = [section.has_code for section in numbered]
        is_for_debuggers = rows["type"] & STAB != 0
        is_defined = ~is_for_debuggers & (rows["type"] & TYPE == IN_SECTION)
        rows = rows[is_defined & has_code[rows["section"]]]
        names = self._data[names_start : names_start + names_size]
        name_starts = rows["name"].astype(np.int64)
        # Compilers for macOS put an underscore before each name of C, and so of C++: __Z is _Z.
        inside = np.flatnonzero(name_starts < names.size)
        name_starts[inside] += names[name_starts[inside]] == ord("_")
        order = np.argsort(rows["value"], kind="stable")
        addresses = rows["value"][order].astype(np.uint64)
        places = np.zeros(rows.size, np.int64)
        sizes = np.zeros(rows.size, np.uint64)
        return SymbolTable(places, addresses, sizes, name_starts[order], names)

    def lines(self) -> None:
        """Return nothing: the debug information of an image is in a file beside it."""
