"""Mach-O: the instrumentation maps of programs and libraries of macOS, for x86_64 and arm64.

The map is the section `xray_instr_map` of `__DATA`. Entries of version 2 are relative to where they
are, so that nothing of them is left to the dynamic linker (chained fixups); older ones are
addresses, which are refused where the linker left them as fixups.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fx_xray.read.instr_map import (
    ENTRIES,
    FAULTS,
    RELATIVE_VERSION,
    REMEDY,
    SECTION,
    Fault,
    InstrumentationMap,
    ProgramFunctions,
    SledKind,
    Sleds,
    SymbolTable,
    is_other_function,
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
LC_SYMTAB, LC_SEGMENT_64, LC_CHAINED_FIXUPS = 0x2, 0x19, 0x80000034
MH_OBJECT: Final = 1
MACHINES: Final = {0x01000007: "x86_64", 0x0100000C: "arm64"}
SYMBOL: Final = np.dtype(
    [("name", "<u4"), ("type", "u1"), ("section", "u1"), ("desc", "<u2"), ("value", "<u8")]
)
STAB, TYPE, IN_SECTION = 0xE0, 0x0E, 0x0E
"""Of a symbol's type: the bits of debug symbols, those of its kind, and defined in a section."""
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
    entry = FAT.get(data[:4].tobytes())
    if entry is None:
        return MachO(data, 0, path).read()
    count = int.from_bytes(data[4:FAT_HEADER].tobytes(), "big")
    table = data[FAT_HEADER : FAT_HEADER + count * entry.size].tobytes()
    if not 0 < count <= MOST_SLICES or len(table) < count * entry.size:
        raise unreadable(f"its {count} slices do not fit", path)
    maps = []
    for machine, _, offset, size, *_ in entry.iter_unpack(table):
        if machine in MACHINES:
            maps.append(MachO(data[offset : offset + size], offset, path).read())
    if not maps:
        raise unreadable("none of its slices is of x86_64 or arm64", path)
    names = [[each.functions.name(id) for id in each.functions.ids] for each in maps]
    if any(other != names[0] for other in names[1:]):
        raise UnreadableError(
            "its slices number functions differently",
            path=path,
            remedy=f"give one of them: `lipo -thin arm64 {path} -output FILE`",
        )
    return maps[0]


def unreadable(problem: str, path: str) -> UnreadableError:
    """Return the error for a file whose structure is invalid, or which has no map."""
    return UnreadableError(problem, path=path, remedy=REMEDY)


class MachO:
    """Reads the map of one image; ``base`` is the offset of its slice in the file."""

    def __init__(self, data: U1, base: int, path: str) -> None:
        self._data = data
        self._base = base
        self._path = path
        self._faults: list[Fault] = []
        self._sections: list[Section] = []
        self._symtab: tuple[int, ...] = (0, 0, 0, 0)
        self._has_fixups = False

    def read(self) -> InstrumentationMap:
        """Return the map. Raises UnreadableError if there is none."""
        head = self._data[: HEADER.size].tobytes()
        if head[:4] != MAGIC or len(head) < HEADER.size:
            raise unreadable("it is not a Mach-O image of 64 bits, little-endian", self._path)
        _, machine, _, file_type, count, nbytes, _, _ = HEADER.unpack(head)
        if machine not in MACHINES:
            raise unreadable(f"its machine {machine:#x} is not x86_64 or arm64", self._path)
        if file_type == MH_OBJECT:
            raise UnreadableError(
                "it is an object that is not linked, whose map has no addresses yet",
                path=self._path,
                remedy="give the program or the library that it was linked into",
            )
        for command, body in self._commands(count, nbytes):
            self._take(command, body)
        maps = [each for each in self._sections if each.name == SECTION.encode()]
        if not maps:
            raise unreadable("the image has no section __DATA,xray_instr_map", self._path)
        parts = [self._entries(section) for section in maps]
        address, function, kind, always, version = map(np.concatenate, zip(*parts, strict=True))
        new = is_other_function(function)
        sleds = Sleds(np.cumsum(new).astype(np.int64), address, function, kind, always, version)
        functions = ProgramFunctions(self, function[new], np.zeros(int(new.sum()), np.int64))
        return InstrumentationMap(self._path, functions, sleds, tuple(self._faults))

    def _commands(self, count: int, nbytes: int) -> Iterator[tuple[int, bytes]]:
        """Yield the number and the bytes of each load command."""
        commands = self._data[HEADER.size : HEADER.size + nbytes].tobytes()
        at = 0
        for _ in range(count):
            if len(commands) - at < COMMAND.size:
                raise unreadable("its load commands are cut off", self._path)
            command, size = COMMAND.unpack_from(commands, at)
            if not COMMAND.size <= size <= len(commands) - at:
                raise unreadable(f"a load command of {size} bytes does not fit", self._path)
            yield command, commands[at : at + size]
            at += size

    def _take(self, command: int, body: bytes) -> None:
        """Take what a load command says of sections and symbols."""
        self._has_fixups |= command == LC_CHAINED_FIXUPS
        if command == LC_SYMTAB and len(body) >= SYMTAB.size:
            self._symtab = SYMTAB.unpack_from(body)[2:]
        if command != LC_SEGMENT_64 or len(body) < SEGMENT.size:
            return
        headers = body[SEGMENT.size :]
        whole = len(headers) // SECTION_HEADER.size * SECTION_HEADER.size
        for name, _, address, size, offset, *more in SECTION_HEADER.iter_unpack(headers[:whole]):
            has_code = bool(more[3] & INSTRUCTIONS)
            self._sections.append(Section(name.rstrip(b"\0"), address, size, offset, has_code))

    def _fault(self, offset: int, message: str) -> None:
        if len(self._faults) < FAULTS:
            self._faults.append(Fault(self._path, self._base + offset, message))

    def _entries(self, section: Section) -> tuple[NDArray[Any], ...]:
        """Addresses of sleds and functions, kinds, flags and versions, of the entries of a map."""
        entry = np.dtype(ENTRIES[64]).newbyteorder("<")
        data = self._data[section.offset : section.offset + section.size]
        rows = data[: data.size // entry.itemsize * entry.itemsize].view(entry)
        if rows.nbytes < section.size:
            behind = section.offset + rows.nbytes
            left = section.size - rows.nbytes
            self._fault(behind, f"{left} bytes are left over behind {rows.size} entries")
        relative = rows["version"] >= RELATIVE_VERSION
        if self._has_fixups and not relative.all():
            raise unreadable("its map has addresses as chained fixups, not relative", self._path)
        places = np.arange(rows.size, dtype=np.uint64) * np.uint64(entry.itemsize)
        places += np.uint64(section.address)
        fields = []
        for offset, name in ((0, "address"), (8, "function")):
            base = places + np.uint64(offset)
            fields.append(np.where(relative, rows[name] + base, rows[name]))
        known = rows["kind"] <= max(SledKind)
        for row in np.flatnonzero(~known).tolist():
            self._fault(
                section.offset + row * entry.itemsize, f"a sled of kind {rows['kind'][row]}"
            )
        columns = (*fields, rows["kind"], rows["always"] != 0, rows["version"])
        return tuple(column[known] for column in columns)

    def symbols(self) -> SymbolTable:
        """Return the symbols of functions, which have no sizes, without their first underscore."""
        place, count, names_at, names_nbytes = self._symtab
        data = self._data[place : place + count * SYMBOL.itemsize]
        rows = data[: data.size // SYMBOL.itemsize * SYMBOL.itemsize].view(SYMBOL)
        has_code = np.zeros(256, np.bool_)
        # Sections are counted from 1 through all segments, and a symbol has 8 bits for the number.
        numbered = self._sections[:255]
        has_code[1 : len(numbered) + 1] = [each.has_code for each in numbered]
        is_function = (rows["type"] & STAB == 0) & (rows["type"] & TYPE == IN_SECTION)
        rows = rows[is_function & has_code[rows["section"]]]
        names = self._data[names_at : names_at + names_nbytes]
        starts = rows["name"].astype(np.int64)
        inside = np.flatnonzero(starts < names.size)
        starts[inside] += names[starts[inside]] == ord("_")
        order = np.argsort(rows["value"], kind="stable")
        nothing = np.zeros(rows.size, np.int64)
        return SymbolTable(
            nothing, rows["value"][order].astype(np.uint64), nothing.view(np.uint64), starts[order],
            names,
        )  # fmt: skip

    def lines(self) -> None:
        """Return nothing: the debug information of an image is in a file beside it."""
