"""Object files: ELF64 x86-64, relocatable, shared or static, as segments, symbols and relocations.

Files are decoded by pyelftools; ``machine`` maps them.
"""

from __future__ import annotations

import io
import itertools
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection, RelrRelocationSection
from elftools.elf.sections import SymbolTableSection

from fx_emulator.native.errors import LoadError
from fx_emulator.native.space import READ, RUN, WRITE, round_up

RELR = -8
"""Type of a relative relocation whose addend is stored in its place."""

# Flags of sections.
_WRITABLE = 0x1
_ALLOCATED = 0x2
_EXECUTABLE = 0x4
_THREAD_LOCAL = 0x400
# Flags of segments.
_SEGMENT_RUN = 1
_SEGMENT_WRITE = 2
_SEGMENT_READ = 4
# Offsets of addresses in a section header and in a symbol.
_SECTION_ADDRESS = 16
_SYMBOL_VALUE = 8
_LARGEST_SEGMENT = 1 << 32
_LARGEST_SECTION = 1 << 30
_LINKED_INITIALISERS = (".preinit_array", ".init_array")
_INITIALISERS = (*_LINKED_INITIALISERS, ".ctors")
"""Sections of pointers to initialisers; what a linker makes of ``.ctors`` is called otherwise."""
_DEBUG_SIZES = {1: 8, 2: 4, 10: 4, 11: 4, 17: 8, 21: 4, 24: 8}
"""Size in bytes of each relocation type of DWARF sections."""
_RELATIVE_TYPES = {2, 24}
_KINDS = {"ET_REL": "relocatable", "ET_EXEC": "executable", "ET_DYN": "shared"}


@attrs.define
class Symbol:
    """A symbol of an object file, at its final address."""

    name: str
    address: int
    size: int
    kind: str
    """``func``, ``object``, ``tls``, ``ifunc``, ``section`` or ``none``."""
    defined: bool
    weak: bool = False
    local: bool = False


@attrs.frozen
class Relocation:
    """A place that the linker fills in."""

    place: int
    """Guest address."""
    type: int
    symbol: Symbol | None
    addend: int


@attrs.frozen
class Chunk:
    """Contiguous bytes with the same permissions."""

    start: int
    size: int
    data: bytes
    permissions: int
    name: str


@attrs.define
class ObjectFile:
    """The contents of an object file, at its final address."""

    path: Path
    kind: str
    """``relocatable``, ``shared`` or ``executable``."""
    base: int
    entry: int
    chunks: list[Chunk]
    symbols: dict[str, Symbol]
    """Defined symbols by name; a global one hides a local one."""
    functions: list[Symbol]
    """All functions, by address."""
    relocations: list[Relocation]
    undefined: dict[str, Symbol]
    tls: bytes
    """Initial image of thread-local variables."""
    tls_size: int
    tls_align: int
    initialisers: list[int]
    """Addresses of pointers to the initialiser functions, in order."""
    headers: int
    """Address of the program headers in memory; 0 if they are not loaded."""
    header_count: int
    debug: Any
    """The file as pyelftools reads it; a relocatable one with symbols at their addresses."""


def open_object(path: str | Path, base: int) -> ObjectFile:
    """Read an object file to be loaded at ``base`` (a static executable has its own address).

    Raises LoadError for a file that is missing, not ELF64 x86-64 little-endian, damaged, or
    dynamically linked with an interpreter.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LoadError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        return _open(path, data, base)
    except LoadError:
        raise
    except (ELFError, ValueError, LookupError, AttributeError, TypeError, struct.error) as error:
        what = str(error) or type(error).__name__
        raise LoadError(f"{path}: damaged ELF file: {what}; build it again") from None
    except (AssertionError, UnicodeDecodeError, OverflowError, MemoryError) as error:
        what = type(error).__name__
        raise LoadError(f"{path}: damaged ELF file ({what}); build it again") from None


def _open(path: Path, data: bytes, base: int) -> ObjectFile:
    if data[:4] != b"\x7fELF":
        hint = "; link an archive first: gcc -shared" if data[:7] == b"!<arch>" else ""
        raise LoadError(f"{path}: not an ELF file{hint}")
    file = ELFFile(io.BytesIO(data))
    kind = _kind(path, file)
    loaded = _Loaded()
    # The addresses of an executable are final, those of a library relative to its base; a
    # relocatable file has none before its sections are laid out.
    bias = base if kind == "shared" else 0
    if kind == "relocatable":
        file = _placed(path, file, bytearray(data), base, loaded)
    else:
        _add_segments(path, file, bias, loaded)
    tables = {
        number: [_symbol(symbol, bias) for symbol in section.iter_symbols()]
        for number, section in enumerate(file.iter_sections())
        if isinstance(section, SymbolTableSection)
    }
    relocations = list(_relocations(file, tables, bias))
    return ObjectFile(
        path=path,
        kind=kind,
        base=0 if kind == "executable" else base,
        entry=bias + file["e_entry"] if file["e_entry"] else 0,
        relocations=relocations,
        initialisers=list(_initialisers(file, kind, bias)),
        header_count=file["e_phnum"],
        debug=file,
        **attrs.asdict(loaded, recurse=False),
        **_named(itertools.chain.from_iterable(tables.values()), relocations),
    )


def _kind(path: Path, file: Any) -> str:
    """Return the kind of a file. Raises LoadError for one that the target cannot run."""
    machine_type = file["e_machine"]
    if file.elfclass != 64 or not file.little_endian or machine_type != "EM_X86_64":
        order = "little" if file.little_endian else "big"
        raise LoadError(
            f"{path}: made for {machine_type} ({file.elfclass} bits, {order}-endian); "
            "the emulated CPU is x86-64: build with -m64, or --target=x86_64"
        )
    kind = _KINDS.get(file["e_type"])
    if kind is None:
        raise LoadError(f"{path}: ELF type {file['e_type']}; load an object, library or executable")
    segment_types = [segment["p_type"] for segment in file.iter_segments()]
    if "PT_INTERP" in segment_types and kind != "relocatable":
        raise LoadError(
            f"{path}: needs a dynamic loader; link it with -static, or make a library with -shared"
        )
    return kind


@attrs.define
class _Loaded:
    """What of a file is in memory."""

    chunks: list[Chunk] = attrs.field(factory=list)
    tls: bytes = b""
    tls_size: int = 0
    tls_align: int = 1
    headers: int = 0


# --- Symbols and relocations -------------------------------------------------------------------


_TYPES = {
    "STT_FUNC": "func",
    "STT_OBJECT": "object",
    "STT_COMMON": "object",
    "STT_TLS": "tls",
    "STT_SECTION": "section",
    "STT_LOOS": "ifunc",
    "STT_GNU_IFUNC": "ifunc",
    "10": "ifunc",
}
"""Kinds of symbols, by pyelftools' names of their types, which differ from version to version."""


def _symbol(symbol: Any, bias: int) -> Symbol:
    """Return a symbol of pyelftools as ours."""
    symbol_info = symbol["st_info"]
    section_number = symbol["st_shndx"]
    kind = _TYPES.get(str(symbol_info["type"]), "none")
    address = symbol["st_value"]
    if kind != "tls" and section_number != "SHN_ABS":
        address += bias
    return Symbol(
        name=symbol.name,
        address=address,
        size=symbol["st_size"],
        kind=kind,
        defined=section_number != "SHN_UNDEF",
        weak=symbol_info["bind"] == "STB_WEAK",
        local=symbol_info["bind"] == "STB_LOCAL",
    )


def _named(every_symbol: Iterable[Symbol], relocations: list[Relocation]) -> dict[str, Any]:
    """Return the symbols of an ObjectFile by field name; undefined ones only if they are used."""
    symbols: dict[str, Symbol] = {}
    functions: list[Symbol] = []
    undefined: dict[str, Symbol] = {}
    used_names = {entry.symbol.name for entry in relocations if entry.symbol is not None}
    for symbol in every_symbol:
        if not symbol.name:
            continue
        if not symbol.defined:
            if symbol.name in used_names:
                undefined.setdefault(symbol.name, symbol)
            continue
        # Files of one program may have local symbols of one name; a global one is unique.
        same_name = symbols.get(symbol.name)
        if same_name is None or (same_name.local and not symbol.local):
            symbols[symbol.name] = symbol
        # Functions in assembly often have no type.
        if symbol.kind in {"func", "ifunc"} or (symbol.kind == "none" and symbol.address):
            functions.append(symbol)
    return {"symbols": symbols, "functions": functions, "undefined": undefined}


def _relocations(file: Any, tables: dict[int, list[Symbol]], bias: int) -> Iterator[Relocation]:
    """Yield the relocations of what is in memory, with their places there."""
    relocatable = file["e_type"] == "ET_REL"
    for section in file.iter_sections():
        if isinstance(section, RelrRelocationSection):
            for relocation_entry in section.iter_relocations():
                yield Relocation(bias + relocation_entry["r_offset"], RELR, None, 0)
        elif isinstance(section, RelocationSection):
            # A linked file has the addresses of places, a relocatable one offsets in a section.
            target_section = section
            target_start = bias
            if relocatable:
                target_section = file.get_section(section["sh_info"])
                target_start = target_section["sh_addr"]
            if target_section["sh_flags"] & (_ALLOCATED | _THREAD_LOCAL) != _ALLOCATED:
                continue
            symbols = tables.get(section["sh_link"], [])
            for relocation_entry in section.iter_relocations():
                symbol_number = relocation_entry["r_info_sym"]
                symbol = symbols[symbol_number] if symbol_number else None
                place = target_start + relocation_entry["r_offset"]
                yield Relocation(
                    place, relocation_entry["r_info_type"], symbol, relocation_entry["r_addend"]
                )


def _initialisers(file: Any, kind: str, bias: int) -> Iterator[int]:
    """Yield the addresses of pointers to initialisers, in order."""
    array_names = _INITIALISERS if kind == "relocatable" else _LINKED_INITIALISERS
    for array_name in array_names:
        for section in file.iter_sections():
            if section.name == array_name or section.name.startswith(f"{array_name}."):
                section_start = bias + section["sh_addr"]
                yield from range(section_start, section_start + section["sh_size"], 8)


# --- Linked files ------------------------------------------------------------------------------


def _add_segments(path: Path, file: Any, bias: int, loaded: _Loaded) -> None:
    """Add the segments of a linked file."""
    for segment in file.iter_segments():
        if segment["p_type"] == "PT_LOAD" and segment["p_memsz"]:
            memory_size = segment["p_memsz"]
            file_size = segment["p_filesz"]
            if memory_size > _LARGEST_SEGMENT or file_size > memory_size:
                raise LoadError(f"{path}: damaged ELF file: segment of {memory_size} bytes")
            segment_start = bias + segment["p_vaddr"]
            permissions = _permissions(segment["p_flags"])
            loaded.chunks.append(
                Chunk(segment_start, memory_size, segment.data(), permissions, "segment")
            )
            headers_offset = file["e_phoff"] - segment["p_offset"]
            if 0 <= headers_offset < file_size:
                loaded.headers = segment_start + headers_offset
        elif segment["p_type"] == "PT_TLS":
            loaded.tls = segment.data()
            loaded.tls_size = segment["p_memsz"]
            loaded.tls_align = max(1, segment["p_align"])
    if not loaded.chunks:
        raise LoadError(f"{path}: no segment to load; build it again")


def _permissions(flags: int) -> int:
    """Return the permissions of a segment; ELF numbers them in reverse."""
    permissions = 0
    if flags & _SEGMENT_READ:
        permissions |= READ
    if flags & _SEGMENT_WRITE:
        permissions |= WRITE
    if flags & _SEGMENT_RUN:
        permissions |= RUN
    return permissions


# --- Relocatable files -------------------------------------------------------------------------


def _placed(path: Path, file: Any, data: bytearray, base: int, loaded: _Loaded) -> Any:
    """Lay out the sections of a relocatable file, as a linker would.

    Returns the file with the addresses of its sections and symbols, and with DWARF relocated.
    """
    sections = list(file.iter_sections())
    places, end = _lay_out(path, sections, base, loaded)
    for section_number, section_address in places.items():
        section_header = file["e_shoff"] + section_number * file["e_shentsize"]
        struct.pack_into("<Q", data, section_header + _SECTION_ADDRESS, section_address)
    symbol_addresses: list[int] = []
    for section in sections:
        if section["sh_type"] == "SHT_SYMTAB":
            symbol_addresses = _place_symbols(section, places, end, data, loaded)
            break
    for section in sections:
        if isinstance(section, RelocationSection):
            target_section = sections[section["sh_info"]]
            if target_section.name.startswith((".debug_", ".eh_frame")):
                section_start = places.get(section["sh_info"], 0)
                _relocate_debug(section, target_section, section_start, symbol_addresses, data)
    return ELFFile(io.BytesIO(data))


def _place_symbols(
    table: Any, places: dict[int, int], end: int, data: bytearray, loaded: _Loaded
) -> list[int]:
    """Write the addresses of symbols into their table. Return them, by the symbol's number.

    Common symbols, which belong to no section, are laid out from ``end`` on.
    """
    addresses: list[int] = []
    common_end = end
    for symbol_number, symbol in enumerate(table.iter_symbols()):
        symbol_address = symbol["st_value"]
        section_number = symbol["st_shndx"]
        if section_number == "SHN_COMMON":
            # The value of such a symbol is its alignment.
            symbol_address = round_up(common_end, max(1, symbol_address))
            common_end = symbol_address + symbol["st_size"]
        else:
            symbol_address += places.get(section_number, 0)
        addresses.append(symbol_address)
        table_entry = table["sh_offset"] + symbol_number * table["sh_entsize"]
        struct.pack_into("<Q", data, table_entry + _SYMBOL_VALUE, symbol_address)
    if common_end > end:
        loaded.chunks.append(Chunk(end, common_end - end, b"", READ | WRITE, "common"))
    return addresses


def _lay_out(
    path: Path, sections: list[Any], base: int, loaded: _Loaded
) -> tuple[dict[int, int], int]:
    """Group the sections by permission, on separate pages.

    Returns the address of each section by number, and the end; the address of a section of
    thread-local variables is its offset in their image.
    """
    places: dict[int, int] = {}
    tls_image = bytearray()
    chunk_end = base
    for permissions in (READ | RUN, READ, READ | WRITE):
        chunk_start = round_up(chunk_end)
        chunk_bytes = bytearray()
        for section_number, section in enumerate(sections):
            if _section_permissions(section["sh_flags"]) != permissions:
                continue
            section_size = section["sh_size"]
            if section_size > _LARGEST_SECTION:
                raise LoadError(f"{path}: damaged ELF file: section of {section_size} bytes")
            align = max(1, section["sh_addralign"])
            if section["sh_flags"] & _THREAD_LOCAL:
                places[section_number] = _append(tls_image, section, align)
                loaded.tls_align = max(loaded.tls_align, align)
            else:
                places[section_number] = chunk_start + _append(chunk_bytes, section, align)
        if chunk_bytes:
            loaded.chunks.append(
                Chunk(chunk_start, len(chunk_bytes), bytes(chunk_bytes), permissions, "sections")
            )
        chunk_end = chunk_start + len(chunk_bytes)
    loaded.tls = bytes(tls_image)
    loaded.tls_size = len(tls_image)
    return places, round_up(chunk_end)


def _section_permissions(flags: int) -> int:
    """Return the permissions of a section; 0 if it is not in memory."""
    if not flags & _ALLOCATED:
        return 0
    if flags & _THREAD_LOCAL:
        return READ  # only an image, which each thread copies
    if flags & _EXECUTABLE:
        return READ | RUN
    if flags & _WRITABLE:
        return READ | WRITE
    return READ


def _append(data: bytearray, section: Any, align: int) -> int:
    """Append an aligned section. Return its offset."""
    data += bytes(-len(data) % align)
    offset = len(data)
    data += section.data()
    return offset


def _relocate_debug(
    section: Any, target: Any, start: int, addresses: list[int], data: bytearray
) -> None:
    """Apply the relocations of a section of DWARF, which begins at ``start``, in the file."""
    for relocation_entry in section.iter_relocations():
        relocation_type = relocation_entry["r_info_type"]
        value_size = _DEBUG_SIZES.get(relocation_type)
        section_offset = relocation_entry["r_offset"]
        if value_size is None or section_offset + value_size > target["sh_size"]:
            continue
        relocated_value = relocation_entry["r_addend"]
        symbol_number = relocation_entry["r_info_sym"]
        if symbol_number < len(addresses):
            relocated_value += addresses[symbol_number]
        if relocation_type in _RELATIVE_TYPES:
            relocated_value -= start + section_offset
        file_offset = target["sh_offset"] + section_offset
        data[file_offset : file_offset + value_size] = (
            relocated_value & (1 << 8 * value_size) - 1
        ).to_bytes(value_size, "little")
