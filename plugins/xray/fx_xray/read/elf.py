"""ELF: the instrumentation maps of programs and libraries, also before they are linked.

pyelftools reads the headers; tables of entries, relocations and symbols are arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fx_xray.format import LOW32
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
from fx_xray.read.source_lines import SourceLines, Stream
from fxframework.errors import UnreadableError

__all__ = ["read_elf"]

U1 = NDArray[np.uint8]
LEAST_SECTION: Final = {32: 40, 64: 64}
"""Bytes of a section's header, by the class of the file."""

SYMBOLS: Final = {
    64: [("name", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2"), ("value", "u8"),
         ("size", "u8")],
    32: [("name", "u4"), ("value", "u4"), ("size", "u4"), ("info", "u1"), ("other", "u1"),
         ("section", "u2")],
}  # fmt: skip
SYMBOL_32: Final = 8
SYMBOL_64: Final = 32
"""Of a relocation's info: the lowest bit of the number of its symbol."""
TYPE_BITS: Final = 0xF
"""Of a symbol's info: its type."""
FUNCTION_TYPES: Final = (2, 10)
"""Of symbols: functions, and those that are resolved at run time."""


def read_elf(data: U1, path: str) -> InstrumentationMap:
    """Return the map of a program. Raises UnreadableError if it is invalid, or has none."""
    return Elf(data, path).read()


class Section(NamedTuple):
    number: int
    name: str
    type: Any
    """As pyelftools names it; a number where it does not know it."""
    address: int
    offset: int
    size: int
    entry: int
    """Bytes of an entry, of a table."""
    link: int
    info: int


class Elf:
    """Reads the map of a program."""

    def __init__(self, data: U1, path: str) -> None:
        self._data = data
        self._path = path

    def read(self) -> InstrumentationMap:
        try:
            return self._read()
        except UnreadableError:
            raise
        except Exception as error:
            # pyelftools raises what it likes where bytes are invalid.
            problem = f"its ELF structure is invalid: {type(error).__name__}: {error}"
            raise unreadable(problem, self._path) from error

    def _read(self) -> InstrumentationMap:
        from elftools.elf.elffile import ELFFile

        elf = ELFFile(Stream(self._data))
        self._bits: int = elf.elfclass
        self._order = "<" if elf.little_endian else ">"
        self._machine = elf["e_machine"]
        self._relocatable = elf["e_type"] == "ET_REL"
        self._sections = self._listed(elf)
        maps = [each for each in self._sections if each.name == SECTION]
        if not maps:
            problem = "the program has no instrumentation map: no section xray_instr_map"
            raise unreadable(problem, self._path)
        found = ProgramMap(self._path)
        for section in maps:
            rows = self._rows(section, ENTRIES[self._bits])
            found.add(rows, self._targets(section, rows), section.offset, section.size)
        return found.finished(self)

    def _listed(self, elf: Any) -> list[Section]:
        """Return the sections that make sense."""
        number = elf.num_sections()
        size = elf["e_shentsize"]
        if size < LEAST_SECTION[self._bits] or number * size > self._data.size:
            raise unreadable(f"its {number} section headers do not fit", self._path)
        entries_found = []
        for index in range(number):
            try:
                section = elf.get_section(index)
                name = section.name
            except Exception:  # noqa: BLE001, S112 (pyelftools; the other sections may be sound)
                continue
            header = section.header
            entries_found.append(
                Section(
                    index, name, header["sh_type"], header["sh_addr"], header["sh_offset"],
                    header["sh_size"], header["sh_entsize"], header["sh_link"], header["sh_info"],
                )
            )  # fmt: skip
        return entries_found

    def _bytes(self, section: Section) -> U1:
        """Return what of a section is in the file."""
        if section.type == "SHT_NOBITS":
            return self._data[:0]
        return self._data[section.offset : section.offset + section.size]

    def _rows(self, section: Section, fields: Any) -> NDArray[Any]:
        """Return a section as a table of entries; what is left over at its end is not looked at."""
        return whole_rows(self._bytes(section), fields, self._order)

    def _targets(self, section: Section, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the addresses of sleds and functions, and the sections of the functions."""
        sections = np.zeros(rows.size, np.int64)
        targets: list[NDArray[Any]] = []
        mask = (1 << self._bits) - 1
        for field, addresses in zip(
            ("address", "function"), targets_of(rows, section.address, self._bits), strict=True
        ):
            offset = rows.dtype.fields[field][1]  # type: ignore[index]  # it has fields
            for row, (target, place) in self._relocated(section, rows, field, offset).items():
                # In a linked program those of version 2 are right as they are.
                if self._relocatable or rows["version"][row] < RELATIVE_VERSION:
                    addresses[row] = target & mask
                    sections[row] = place
            targets.append(addresses)
        return [*targets, sections]

    def _relocated(
        self, section: Section, rows: NDArray[Any], field: str, at: int
    ) -> Mapping[int, tuple[int, int]]:
        """What relocations put into a field: by row, the target and the section that it is in."""
        found: dict[int, tuple[int, int]] = {}
        start = 0 if self._relocatable else section.address
        for table in self._sections:
            if table.type not in ("SHT_RELA", "SHT_REL"):
                continue
            if self._relocatable and table.info != section.number:
                continue
            added = table.type == "SHT_RELA"
            width = self._bits // 8
            entry = [("offset", f"u{width}"), ("info", f"u{width}")]
            relocations = self._rows(table, [*entry, ("addend", f"i{width}")] if added else entry)
            # Modulo 2^64, so that what lies before the section lies far behind it.
            place = relocations["offset"].astype(np.uint64) - np.uint64(start)
            size = rows.dtype.itemsize
            chosen = (place < rows.nbytes) & (place % np.uint64(size) == at)
            symbols = self._symbols_of(table)
            for relocation, row in zip(
                relocations[chosen], (place[chosen] // np.uint64(size)).tolist(), strict=True
            ):
                value = int(relocation["addend"]) if added else int(rows[field][row])
                value, home = self._symbol(symbols, int(relocation["info"]), value)
                # Where several make up a difference, the first one is what it starts from.
                found.setdefault(row, (value, home))
        return found

    def _symbols_of(self, table: Section) -> NDArray[Any]:
        for section in self._sections:
            if section.number == table.link and section.type in ("SHT_SYMTAB", "SHT_DYNSYM"):
                return self._rows(section, SYMBOLS[self._bits])
        return np.zeros(0, np.dtype(SYMBOLS[self._bits]))

    def _symbol(self, symbols: NDArray[Any], info: int, addend: int) -> tuple[int, int]:
        """Return the place that a relocation means: an address, and the section of its symbol."""
        if self._bits == 32:
            index = info >> SYMBOL_32
        elif self._machine == "EM_MIPS" and self._order == "<":
            index = info & LOW32
        else:
            index = info >> SYMBOL_64
        if not 0 < index < symbols.size:
            return addend, 0
        symbol = symbols[index]
        home = int(symbol["section"]) if self._relocatable else 0
        return int(symbol["value"]) + addend, home

    def symbols(self) -> SymbolTable:
        """Return the symbols of functions: of .symtab, or else of .dynsym."""
        for type in ("SHT_SYMTAB", "SHT_DYNSYM"):
            for section in self._sections:
                if section.type != type:
                    continue
                rows = self._rows(section, SYMBOLS[self._bits])
                names = [each for each in self._sections if each.number == section.link]
                functions = np.isin(rows["info"] & TYPE_BITS, FUNCTION_TYPES)
                functions &= rows["section"] != 0
                if names and functions.any():
                    return self._table(rows[functions], self._bytes(names[0]))
        return self._table(np.zeros(0, np.dtype(SYMBOLS[self._bits])), self._data[:0])

    def _table(self, rows: NDArray[Any], names: U1) -> SymbolTable:
        value = rows["value"].astype(np.uint64)
        if self._machine == "EM_ARM":
            value &= ~np.uint64(1)
        size = rows["size"].astype(np.uint64)
        place = rows["section"].astype(np.int64) * self._relocatable
        order = np.lexsort((np.arange(rows.size), size, value, place))
        name_starts = rows["name"][order].astype(np.int64)
        return SymbolTable(place[order], value[order], size[order], name_starts, names)

    def lines(self) -> SourceLines | None:
        """Return the lines of the source, where the program has them."""
        # Addresses of objects that are not linked are not unique.
        return None if self._relocatable else SourceLines(self._data)
