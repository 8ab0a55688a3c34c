"""Functions that a compiler inlined at an address, from DWARF."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import attrs

_LIBRARIES = re.compile(
    r"^/(usr|opt|rustc|nix/store)/|/(rustlib|\.rustup|\.cargo/registry|lib/gcc|lib/llvm[^/]*)/"
)
"""Paths of files that come with compilers and libraries."""
_RUST = re.compile(r"_R|_ZN.*17h[0-9a-f]{16}E")
"""Mangled names of Rust, new and old."""
_MOST_LINKS = 4
"""Entries to follow from an inlined call to its function; damaged DWARF may have a circle."""


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
    program_header = program.header
    working_folder = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
    home = _text(working_folder.value) if working_folder is not None else ""
    folders = [_text(folder_path) for folder_path in program_header["include_directory"]]
    # Before version 5, folder 0 is not listed, and files are numbered from 1.
    is_complete = program_header["version"] >= 5
    if not is_complete:
        folders.insert(0, home)
    paths = []
    for file_entry in program_header["file_entry"]:
        folder_path = folders[file_entry.dir_index] if file_entry.dir_index < len(folders) else ""
        paths.append(_joined(home, folder_path, _text(file_entry.name)))
    if not is_complete:
        paths.insert(0, "")
    return paths


def _joined(*parts: str) -> str:
    """Return a path of the parts from the last absolute one on."""
    used_parts: list[str] = []
    for part in parts:
        if part.startswith("/"):
            used_parts.clear()
        if part:
            used_parts.append(part)
    return "/".join(used_parts)


def _text(name: bytes | str) -> str:
    if isinstance(name, bytes):
        return name.decode(errors="replace")
    return name


@attrs.frozen
class _CallRange:
    """Code of an inlined call."""

    begin: int
    end: int
    depth: int
    """Nesting in the unit: a call within another one is deeper."""
    call: Inlined


class Inlines:
    """The inlined calls of a file; a unit is decoded when an address of it is asked for.

    ``bias`` is the distance of addresses in memory from those in DWARF.
    """

    def __init__(self, dwarf: Any, bias: int) -> None:
        self._dwarf = dwarf
        self._bias = bias
        self._units = [(unit, list(self._ranges(unit.get_top_DIE()))) for unit in dwarf.iter_CUs()]
        self._calls: dict[int, list[_CallRange]] = {}
        """The calls of each decoded unit, by its offset."""

    def at(self, address: int) -> list[Inlined]:
        """Return the inlined calls at an address, innermost first."""
        address -= self._bias
        for unit, ranges in self._units:
            if any(begin <= address < end for begin, end in ranges):
                nested_calls = [
                    call for call in self._calls_of(unit) if call.begin <= address < call.end
                ]
                nested_calls.sort(key=lambda call: call.depth, reverse=True)
                return [call.call for call in nested_calls]
        return []

    def _calls_of(self, unit: Any) -> list[_CallRange]:
        """Return the inlined calls of a unit, which is decoded at first use."""
        if unit.cu_offset not in self._calls:
            self._calls[unit.cu_offset] = list(self._decode(unit))
        return self._calls[unit.cu_offset]

    def _decode(self, unit: Any) -> Iterator[_CallRange]:
        line_program = self._dwarf.line_program_for_CU(unit)
        paths = source_files(unit, line_program) if line_program is not None else []
        entries_left = [(unit.get_top_DIE(), 0)]
        while entries_left:
            debug_entry, depth = entries_left.pop()
            entries_left += [(child, depth + 1) for child in debug_entry.iter_children()]
            if debug_entry.tag != "DW_TAG_inlined_subroutine":
                continue
            file_number = _value(debug_entry, "DW_AT_call_file")
            path = paths[file_number] if file_number < len(paths) else ""
            call = Inlined(_name(debug_entry), path, _value(debug_entry, "DW_AT_call_line"))
            for begin, end in self._ranges(debug_entry):
                yield _CallRange(begin, end, depth, call)

    def _ranges(self, debug_entry: Any) -> Iterator[tuple[int, int]]:
        """Yield begin and end of the code of an entry."""
        attributes = debug_entry.attributes
        if "DW_AT_ranges" in attributes:
            yield from self._range_list(debug_entry, attributes["DW_AT_ranges"])
        elif "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
            low_pc = attributes["DW_AT_low_pc"].value
            high_pc = attributes["DW_AT_high_pc"]
            # The end is an address, or a size.
            if high_pc.form == "DW_FORM_addr":
                yield low_pc, high_pc.value
            else:
                yield low_pc, low_pc + high_pc.value

    def _range_list(self, debug_entry: Any, ranges: Any) -> Iterator[tuple[int, int]]:
        unit = debug_entry.cu
        base_address = _value(unit.get_top_DIE(), "DW_AT_low_pc")
        range_lists = self._dwarf.range_lists()
        for range_item in range_lists.get_range_list_at_offset(ranges.value, unit):
            if hasattr(range_item, "base_address"):
                base_address = range_item.base_address
            elif getattr(range_item, "is_absolute", False):
                yield range_item.begin_offset, range_item.end_offset
            else:
                yield base_address + range_item.begin_offset, base_address + range_item.end_offset


def _value(entry: Any, name: str) -> int:
    """Return a number among the attributes of an entry, 0 if it is missing."""
    attribute = entry.attributes.get(name)
    value: int = attribute.value if attribute is not None else 0
    return value


def _name(debug_entry: Any) -> str:
    """Return the name of an inlined function, from the entry that it refers to."""
    for _ in range(_MOST_LINKS):
        attributes = debug_entry.attributes
        if "DW_AT_linkage_name" in attributes:
            return readable(_text(attributes["DW_AT_linkage_name"].value))
        if "DW_AT_abstract_origin" in attributes:
            debug_entry = debug_entry.get_DIE_from_attribute("DW_AT_abstract_origin")
        elif "DW_AT_specification" in attributes:
            debug_entry = debug_entry.get_DIE_from_attribute("DW_AT_specification")
        else:
            break
    # Without a mangled name: the names of the function and of what is around it.
    scope_names = []
    while (
        debug_entry is not None
        and "DW_AT_name" in debug_entry.attributes
        and not debug_entry.tag.endswith("unit")
    ):
        scope_names.append(_text(debug_entry.attributes["DW_AT_name"].value))
        debug_entry = debug_entry.get_parent()
    return "::".join(reversed(scope_names))
