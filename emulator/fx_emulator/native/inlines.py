"""Functions that a compiler inlined at an address, from DWARF."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import attrs

__all__ = ["Inlined", "Inlines", "own_file", "readable", "source_files"]

_LIBRARIES = re.compile(
    r"^/(usr|opt|rustc|nix/store)/|/(rustlib|\.rustup|\.cargo/registry|lib/gcc|lib/llvm[^/]*)/"
)
"""Paths of files that come with compilers and libraries."""
_RUST = re.compile(r"_R|_ZN.*17h[0-9a-f]{16}E")
"""Mangled names of Rust, new and old."""


@attrs.frozen
class Inlined:
    """An inlined call: the function, and the position of the call in its caller."""

    function: str
    path: str
    line: int


def own_file(path: str) -> bool:
    """Return whether a source file is the user's own, not one of a compiler or library."""
    return _LIBRARIES.search(path) is None


def readable(name: str) -> str:
    """Demangle a C++ or Rust name; any other name is returned as it is."""
    if not name.startswith(("_Z", "_R")):
        return name
    import demangle

    return demangle.demangle(name, language="rust" if _RUST.match(name) else "itanium")


def source_files(unit: Any, program: Any) -> list[str]:
    """Return the paths of a unit's files, by the numbers that DWARF gives them."""
    header = program.header
    top = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
    home = _text(top.value) if top is not None else ""
    folders = [_text(each) for each in header["include_directory"]]
    named = header["version"] >= 5
    if not named:
        folders = [home, *folders]
    paths = []
    for each in header["file_entry"]:
        folder = folders[each.dir_index] if each.dir_index < len(folders) else ""
        name = _text(each.name)
        paths.append("/".join(_joined(home, folder, name)))
    return paths if named else ["", *paths]


def _joined(*parts: str) -> list[str]:
    """Return the parts of a path from the last absolute one on."""
    found: list[str] = []
    for part in parts:
        found = [part] if part.startswith("/") else [*found, part]
    return [part for part in found if part]


def _text(name: bytes | str) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else name


class Inlines:
    """The inlined calls of a file; a unit is decoded when an address of it is asked for.

    ``bias`` is the distance of addresses in memory from those in DWARF.
    """

    def __init__(self, dwarf: Any, bias: int) -> None:
        self._dwarf = dwarf
        self._bias = bias
        self._units = [(unit, list(self._ranges(unit.get_top_DIE()))) for unit in dwarf.iter_CUs()]
        self._calls: dict[int, list[tuple[int, int, int, Inlined]]] = {}

    def at(self, address: int) -> list[Inlined]:
        """Return the inlined calls at an address, innermost first."""
        address -= self._bias
        for unit, ranges in self._units:
            if any(begin <= address < end for begin, end in ranges):
                calls = self._calls.get(unit.cu_offset)
                if calls is None:
                    calls = self._calls[unit.cu_offset] = list(self._decode(unit))
                found = [each for each in calls if each[0] <= address < each[1]]
                return [each[3] for each in sorted(found, key=lambda each: -each[2])]
        return []

    def _decode(self, unit: Any) -> Iterator[tuple[int, int, int, Inlined]]:
        """Yield begin, end and depth of each inlined call of a unit."""
        program = self._dwarf.line_program_for_CU(unit)
        paths = source_files(unit, program) if program is not None else []
        todo = [(unit.get_top_DIE(), 0)]
        while todo:
            entry, depth = todo.pop()
            todo += [(child, depth + 1) for child in entry.iter_children()]
            if entry.tag != "DW_TAG_inlined_subroutine":
                continue
            given = entry.attributes
            number, line = (
                given[name].value if name in given else 0
                for name in ("DW_AT_call_file", "DW_AT_call_line")
            )
            path = paths[number] if number < len(paths) else ""
            call = Inlined(_name(entry), path, line)
            for begin, end in self._ranges(entry):
                yield begin, end, depth, call

    def _ranges(self, entry: Any) -> Iterator[tuple[int, int]]:
        """Yield begin and end of the code of an entry."""
        given = entry.attributes
        if "DW_AT_ranges" in given:
            yield from self._range_list(entry, given["DW_AT_ranges"])
        elif "DW_AT_low_pc" in given and "DW_AT_high_pc" in given:
            low, high = given["DW_AT_low_pc"].value, given["DW_AT_high_pc"]
            yield low, high.value + (0 if high.form == "DW_FORM_addr" else low)

    def _range_list(self, entry: Any, ranges: Any) -> Iterator[tuple[int, int]]:
        unit = entry.cu
        top = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
        base = top.value if top is not None else 0
        lists = self._dwarf.range_lists()
        for each in lists.get_range_list_at_offset(ranges.value, unit):
            if hasattr(each, "base_address"):
                base = each.base_address
            else:
                offset = 0 if getattr(each, "is_absolute", False) else base
                yield each.begin_offset + offset, each.end_offset + offset


def _name(entry: Any) -> str:
    """Return the name of an inlined function, from the entry that it refers to."""
    for _ in range(4):
        given = entry.attributes
        if "DW_AT_linkage_name" in given:
            return readable(_text(given["DW_AT_linkage_name"].value))
        link = next((n for n in ("DW_AT_abstract_origin", "DW_AT_specification") if n in given), "")
        if not link:
            break
        entry = entry.get_DIE_from_attribute(link)
    names = []
    while entry is not None and "DW_AT_name" in entry.attributes and not entry.tag.endswith("unit"):
        names.append(_text(entry.attributes["DW_AT_name"].value))
        entry = entry.get_parent()
    return "::".join(reversed(names))
