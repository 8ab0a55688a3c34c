"""ELF: the instrumentation maps of programs and libraries, also before they are linked.

pyelftools reads the headers; tables of entries, relocations and symbols are arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

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
from fxframework.kernels.arrays import U8

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
SYMBOL_TABLES: Final = ("SHT_SYMTAB", "SHT_DYNSYM")
FUNCTION_TYPES: Final = (2, 10)
"""Of symbols: functions, and those that are resolved at run time."""


def read_elf(data: U8, path: str) -> InstrumentationMap:
    """Return the map of a program. Raises UnreadableError if it is invalid, or has none."""
    return _Elf(data, path).read()


class _Elf:
    """Reads the map of a program."""

    def __init__(self, data: U8, path: str) -> None:
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
        self._sections = self._numbered(elf)
        sections = self._sections.items()
        maps = {number: section for number, section in sections if section.name == SECTION}
        if not maps:
            problem = "the program has no instrumentation map: no section xray_instr_map"
            raise unreadable(problem, self._path)
        found = ProgramMap(self._path)
        for number, section in maps.items():
            rows = self._rows(section, ENTRIES[self._bits])
            targets = self._targets(number, rows)
            found.add(rows, targets, section["sh_offset"], section["sh_size"])
        return found.finished(self.symbols, self.lines)

    def _numbered(self, elf: Any) -> dict[int, Any]:
        """Return the sections that make sense, by number, as pyelftools has them."""
        number = elf.num_sections()
        size = elf["e_shentsize"]
        if size < LEAST_SECTION[self._bits] or number * size > self._data.size:
            raise unreadable(f"its {number} section headers do not fit", self._path)
        sections = {}
        for index in range(number):
            with suppress(Exception):  # pyelftools; the other sections may be sound
                sections[index] = elf.get_section(index)
        return sections

    def _bytes(self, section: Any) -> U8:
        """Return what of a section is in the file."""
        if section["sh_type"] == "SHT_NOBITS":
            return self._data[:0]
        start = section["sh_offset"]
        return self._data[start : start + section["sh_size"]]

    def _rows(self, section: Any, fields: Any) -> NDArray[Any]:
        """Return a section as a table of entries; what is left over at its end is not looked at."""
        return whole_rows(self._bytes(section), fields, self._order)

    def _targets(self, number: int, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the addresses of sleds and functions, and the sections of the functions.

        ``number`` is that of the section of the map.
        """
        address = self._sections[number]["sh_addr"]
        sections = np.zeros(rows.size, np.int64)
        targets: list[NDArray[Any]] = []
        mask = (1 << self._bits) - 1
        for field, addresses in zip(
            ("address", "function"), targets_of(rows, address, self._bits), strict=True
        ):
            offset = rows.dtype.fields[field][1]  # type: ignore[index]  # it has fields
            for row, (target, place) in self._relocated(number, rows, field, offset).items():
                # In a linked program those of version 2 are right as they are.
                if self._relocatable or rows["version"][row] < RELATIVE_VERSION:
                    addresses[row] = target & mask
                    sections[row] = place
            targets.append(addresses)
        return [*targets, sections]

    def _relocated(
        self, number: int, rows: NDArray[Any], field: str, at: int
    ) -> Mapping[int, tuple[int, int]]:
        """What relocations put into a field: by row, the target and the section that it is in."""
        found: dict[int, tuple[int, int]] = {}
        start = 0 if self._relocatable else self._sections[number]["sh_addr"]
        for table in self._sections.values():
            if table["sh_type"] not in ("SHT_RELA", "SHT_REL"):
                continue
            if self._relocatable and table["sh_info"] != number:
                continue
            added = table["sh_type"] == "SHT_RELA"
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

    def _symbols_of(self, table: Any) -> NDArray[Any]:
        """Return the symbols that relocations refer to."""
        section = self._sections.get(table["sh_link"])
        if section is not None and section["sh_type"] in SYMBOL_TABLES:
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
        for type in SYMBOL_TABLES:
            for section in self._sections.values():
                if section["sh_type"] != type:
                    continue
                rows = self._rows(section, SYMBOLS[self._bits])
                names = self._sections.get(section["sh_link"])
                functions = np.isin(rows["info"] & TYPE_BITS, FUNCTION_TYPES)
                functions &= rows["section"] != 0
                if names is not None and functions.any():
                    return self._table(rows[functions], self._bytes(names))
        return self._table(np.zeros(0, np.dtype(SYMBOLS[self._bits])), self._data[:0])

    def _table(self, rows: NDArray[Any], names: U8) -> SymbolTable:
        value = rows["value"].astype(np.uint64)
        if self._machine == "EM_ARM":
            value &= ~np.uint64(1)
        place = rows["section"].astype(np.int64) * self._relocatable
        return SymbolTable.of(place, value, rows["size"], rows["name"], names)

    def lines(self) -> SourceLines | None:
        """Return the lines of the source, where the program has them."""
        # Addresses of objects that are not linked are not unique.
        return None if self._relocatable else SourceLines(self._data)
