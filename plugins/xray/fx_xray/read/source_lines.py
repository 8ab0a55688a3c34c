"""Lines of the source by address: from the DWARF line tables of a program."""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

UNPACKED: Final = 64
"""Times the size of the file that its sections of debug information may say to unpack to."""


class Stream:
    """The bytes of a source as pyelftools reads them; reading past the end gives fewer."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._data = data
        self._at = 0

    def read(self, nbytes: int = -1) -> bytes:
        """Return the next bytes."""
        stop = self._data.size if nbytes < 0 else self._at + nbytes
        data = self._data[self._at : stop].tobytes()
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place, counted from the start (0), from here (1) or from the end (2)."""
        self._at = max(0, offset + (0, self._at, self._data.size)[whence])
        return self._at

    def tell(self) -> int:
        """Return the place."""
        return self._at


class _Row(NamedTuple):
    address: int
    file: int
    line: int
    column: int
    end: bool
    """Whether a run of addresses ends before it."""


class SourceLines:
    """Looks up addresses, a compilation unit at a time.

    What pyelftools cannot read has no lines; there is never an exception.
    """

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._dwarf: Any = None
        self._starts: list[int] = []
        self._ranges: list[tuple[int, int, Any]] = []
        self._rows: dict[int, tuple[Any, list[int], list[_Row]]] = {}
        try:
            self._dwarf = _dwarf_of(data)
            if self._dwarf is not None:
                ranges = _unit_ranges(self._dwarf)
                self._ranges = sorted(ranges, key=lambda unit_range: unit_range[:2])
                self._starts = [start for start, _, _ in self._ranges]
        except Exception:  # noqa: BLE001 (pyelftools raises what it likes)
            self._dwarf = None

    def at(self, address: int, stop: int) -> str | None:
        """file:line:column of the function from an address on, as llvm-xray's account shows it.

        The file is without its folder. Where the compiler gave the first instruction to no line
        (llvm-xray shows 0), the next one stands for it that is of the same file and before
        ``stop``, where the function ends. None where nothing is known.
        """
        if self._dwarf is None:
            return None
        try:
            return self._at(address, stop)
        except Exception:  # noqa: BLE001 (pyelftools raises what it likes)
            return None

    def _at(self, address: int, stop: int) -> str | None:
        place = bisect_right(self._starts, address) - 1
        if place < 0 or address >= self._ranges[place][1]:
            return None
        unit = self._ranges[place][2]
        if unit.cu_offset not in self._rows:
            self._rows[unit.cu_offset] = self._table(unit)
        program, starts, rows = self._rows[unit.cu_offset]
        row = bisect_right(starts, address) - 1
        if row < 0 or rows[row].end:
            return None
        chosen = rows[row]
        # Code that the compiler made itself has line 0.
        while not chosen.line and row + 1 < len(rows) and rows[row + 1].address < stop:
            row += 1
            if rows[row].line and rows[row].file == chosen.file:
                chosen = rows[row]
        name = _file_name(program, chosen.file)
        return f"{name}:{chosen.line}:{chosen.column}" if name else None

    def _table(self, unit: Any) -> tuple[Any, list[int], list[_Row]]:
        """Return the line table of a unit, by address."""
        program = self._dwarf.line_program_for_CU(unit)
        rows = []
        for entry in program.get_entries() if program is not None else ():
            state = entry.state
            if state is not None:
                rows.append(
                    _Row(state.address, state.file, state.line, state.column, state.end_sequence)
                )
        # Where one run ends and another begins, the beginning comes last.
        rows.sort(key=lambda row: (row.address, not row.end))
        return program, [row.address for row in rows], rows


def _dwarf_of(data: NDArray[np.uint8]) -> Any:
    """Return the debug information of a program; None where there is none."""
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(Stream(data))
    if not elf.has_dwarf_info(strict=True):
        return None
    claimed = 0
    for section in elf.iter_sections():
        if section.name.startswith((".debug", ".zdebug")):
            if section["sh_type"] == "SHT_NOBITS":
                return None
            claimed += section.data_size
    if claimed > UNPACKED * data.size:
        return None
    return elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)


def _unit_ranges(dwarf: Any) -> list[tuple[int, int, Any]]:
    """Return where the code of each compilation unit is: first address, address behind it, unit."""
    unit_ranges = []
    lists = dwarf.range_lists()
    for unit in dwarf.iter_CUs():
        top = unit.get_top_DIE()
        attributes = top.attributes
        low = 0
        if "DW_AT_low_pc" in attributes:
            low = attributes["DW_AT_low_pc"].value
        if "DW_AT_ranges" in attributes and lists is not None:
            # Ranges count from the unit's own begin, until an entry says another base.
            base = low
            ranges = lists.get_range_list_at_offset(attributes["DW_AT_ranges"].value, unit)
            for entry in ranges:
                if hasattr(entry, "base_address"):
                    base = entry.base_address
                    continue
                start = entry.begin_offset
                stop = entry.end_offset
                if not getattr(entry, "is_absolute", False):
                    start = start + base
                    stop = stop + base
                unit_ranges.append((start, stop, unit))
        elif "DW_AT_high_pc" in attributes:
            high = attributes["DW_AT_high_pc"]
            stop = high.value
            if high.form != "DW_FORM_addr":  # a size
                stop += low
            unit_ranges.append((low, stop, unit))
    return [unit_range for unit_range in unit_ranges if unit_range[0] < unit_range[1]]


def _file_name(program: Any, file: int) -> str | None:
    """Return the name of a file of a line table, without its folder."""
    header = program.header
    index = file if header.version >= 5 else file - 1
    files = header.file_entry
    if not 0 <= index < len(files):
        return None
    name = files[index].name
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
    return posixpath.basename(text.replace("\\", "/")) or None
