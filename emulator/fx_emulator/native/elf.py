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

__all__ = ["RELR", "Chunk", "ObjectFile", "Relocation", "Symbol", "open_object"]

RELR = -8
"""Type of a relative relocation whose addend is stored in its place."""

_ALLOC, _WRITE_FLAG, _EXEC, _TLS = 0x2, 0x1, 0x4, 0x400
_INITIALISERS = (".preinit_array", ".init_array", ".ctors")
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
    machine, kind = file["e_machine"], _KINDS.get(file["e_type"])
    if file.elfclass != 64 or not file.little_endian or machine != "EM_X86_64":
        order = "little" if file.little_endian else "big"
        raise LoadError(
            f"{path}: made for {machine} ({file.elfclass} bits, {order}-endian); "
            "the emulated CPU is x86-64: build with -m64, or --target=x86_64"
        )
    if kind is None:
        raise LoadError(f"{path}: ELF type {file['e_type']}; load an object, library or executable")
    segments = list(file.iter_segments())
    if any(segment["p_type"] == "PT_INTERP" for segment in segments) and kind != "relocatable":
        raise LoadError(
            f"{path}: needs a dynamic loader; link it with -static, or make a library with -shared"
        )
    loaded = _Loaded()
    bias = base if kind == "shared" else 0
    if kind == "relocatable":
        file = _placed(path, file, bytearray(data), base, loaded)
    else:
        _add_segments(path, file, bias, loaded)
    tables = {
        number: [_symbol(each, bias) for each in section.iter_symbols()]
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
}


def _symbol(each: Any, bias: int) -> Symbol:
    info = each["st_info"]
    where = each["st_shndx"]
    kind = _TYPES.get(str(info["type"]), "ifunc" if info["type"] == 10 else "none")
    fixed = kind == "tls" or where == "SHN_ABS"
    return Symbol(
        name=each.name,
        address=each["st_value"] + (0 if fixed else bias),
        size=each["st_size"],
        kind=kind,
        defined=where != "SHN_UNDEF",
        weak=info["bind"] == "STB_WEAK",
        local=info["bind"] == "STB_LOCAL",
    )


def _named(every: Iterable[Symbol], relocations: list[Relocation]) -> dict[str, Any]:
    """Return the symbols of an ObjectFile by field name; undefined ones only if they are used."""
    symbols: dict[str, Symbol] = {}
    functions: list[Symbol] = []
    undefined: dict[str, Symbol] = {}
    used = {each.symbol.name for each in relocations if each.symbol is not None}
    for symbol in every:
        if not symbol.name:
            continue
        if not symbol.defined:
            if symbol.name in used:
                undefined.setdefault(symbol.name, symbol)
            continue
        known = symbols.get(symbol.name)
        if known is None or (known.local and not symbol.local):
            symbols[symbol.name] = symbol
        if symbol.kind in {"func", "ifunc"} or (symbol.kind == "none" and symbol.address):
            functions.append(symbol)
    return {"symbols": symbols, "functions": functions, "undefined": undefined}


def _relocations(file: Any, tables: dict[int, list[Symbol]], bias: int) -> Iterator[Relocation]:
    """Yield the relocations of what is in memory, with their places there."""
    relocatable = file["e_type"] == "ET_REL"
    for section in file.iter_sections():
        if isinstance(section, RelrRelocationSection):
            for each in section.iter_relocations():
                yield Relocation(bias + each["r_offset"], RELR, None, 0)
        elif isinstance(section, RelocationSection):
            # A linked file has the addresses of places, a relocatable one offsets in a section.
            what = file.get_section(section["sh_info"]) if relocatable else section
            if what["sh_flags"] & (_ALLOC | _TLS) != _ALLOC:
                continue
            start = what["sh_addr"] if relocatable else bias
            symbols = tables.get(section["sh_link"], [])
            for each in section.iter_relocations():
                number = each["r_info_sym"]
                symbol = symbols[number] if number else None
                place = start + each["r_offset"]
                yield Relocation(place, each["r_info_type"], symbol, each["r_addend"])


def _initialisers(file: Any, kind: str, bias: int) -> Iterator[int]:
    """Yield the addresses of pointers to initialisers, in order."""
    for wanted in _INITIALISERS if kind == "relocatable" else _INITIALISERS[:2]:
        for section in file.iter_sections():
            if section.name == wanted or section.name.startswith(f"{wanted}."):
                start = bias + section["sh_addr"]
                yield from range(start, start + section["sh_size"], 8)


# --- Linked files ------------------------------------------------------------------------------


def _add_segments(path: Path, file: Any, bias: int, loaded: _Loaded) -> None:
    """Add the segments of a linked file."""
    for segment in file.iter_segments():
        if segment["p_type"] == "PT_LOAD" and segment["p_memsz"]:
            size, flags = segment["p_memsz"], segment["p_flags"]
            if size > 1 << 32 or segment["p_filesz"] > size:
                raise LoadError(f"{path}: damaged ELF file: segment of {size} bytes")
            start = bias + segment["p_vaddr"]
            # ELF numbers the permissions in reverse.
            permissions = sum(to for flag, to in ((4, READ), (2, WRITE), (1, RUN)) if flags & flag)
            loaded.chunks.append(Chunk(start, size, segment.data(), permissions, "segment"))
            at = file["e_phoff"] - segment["p_offset"]
            if 0 <= at < segment["p_filesz"]:
                loaded.headers = start + at
        elif segment["p_type"] == "PT_TLS":
            loaded.tls, loaded.tls_size = segment.data(), segment["p_memsz"]
            loaded.tls_align = max(1, segment["p_align"])
    if not loaded.chunks:
        raise LoadError(f"{path}: no segment to load; build it again")


# --- Relocatable files -------------------------------------------------------------------------


def _placed(path: Path, file: Any, data: bytearray, base: int, loaded: _Loaded) -> Any:
    """Lay out the sections of a relocatable file, as a linker would.

    Returns the file with the addresses of its sections and symbols, and with DWARF relocated.
    """
    sections = list(file.iter_sections())
    places, end = _lay_out(path, sections, base, loaded)
    for number, address in places.items():
        at = file["e_shoff"] + number * file["e_shentsize"] + 16
        struct.pack_into("<Q", data, at, address)
    addresses: list[int] = []
    common = end
    table: Any = next((each for each in sections if each["sh_type"] == "SHT_SYMTAB"), None)
    for number, symbol in enumerate(table.iter_symbols() if table is not None else ()):
        address, where = symbol["st_value"], symbol["st_shndx"]
        if where == "SHN_COMMON":
            address = round_up(common, max(1, address))
            common = address + symbol["st_size"]
        else:
            address += places.get(where, 0)
        addresses.append(address)
        at = table["sh_offset"] + number * table["sh_entsize"] + 8
        struct.pack_into("<Q", data, at, address)
    if common > end:
        loaded.chunks.append(Chunk(end, common - end, b"", READ | WRITE, "common"))
    for section in sections:
        if isinstance(section, RelocationSection):
            target = sections[section["sh_info"]]
            if target.name.startswith((".debug_", ".eh_frame")):
                start = places.get(section["sh_info"], 0)
                _relocate_debug(section, target, start, addresses, data)
    return ELFFile(io.BytesIO(data))


def _lay_out(
    path: Path, sections: list[Any], base: int, loaded: _Loaded
) -> tuple[dict[int, int], int]:
    """Group the sections by permission, on separate pages.

    Returns the address of each section by number, and the end; the address of a section of
    thread-local variables is its offset in their image.
    """
    places: dict[int, int] = {}
    tls = bytearray()
    at = base
    for wanted in (READ | RUN, READ, READ | WRITE):
        at = start = round_up(at)
        data = bytearray()
        for number, section in enumerate(sections):
            flags = section["sh_flags"]
            permissions = READ | (WRITE if flags & _WRITE_FLAG else 0)
            permissions = READ | RUN if flags & _EXEC else permissions
            if not flags & _ALLOC or wanted != (READ if flags & _TLS else permissions):
                continue
            align, size = max(1, section["sh_addralign"]), section["sh_size"]
            if size > 1 << 30:
                raise LoadError(f"{path}: damaged ELF file: section of {size} bytes")
            into, origin = (tls, 0) if flags & _TLS else (data, start)
            into += bytes(-len(into) % align)
            places[number] = origin + len(into)
            into += section.data()
            if flags & _TLS:
                loaded.tls_align = max(loaded.tls_align, align)
        if data:
            loaded.chunks.append(Chunk(start, len(data), bytes(data), wanted, "sections"))
        at = start + len(data)
    loaded.tls, loaded.tls_size = bytes(tls), len(tls)
    return places, round_up(at)


def _relocate_debug(
    section: Any, target: Any, start: int, addresses: list[int], data: bytearray
) -> None:
    """Apply the relocations of a section of DWARF, which begins at ``start``, in the file."""
    for each in section.iter_relocations():
        size, offset = _DEBUG_SIZES.get(each["r_info_type"]), each["r_offset"]
        if size is None or offset + size > target["sh_size"]:
            continue
        symbol = each["r_info_sym"]
        value = (addresses[symbol] if symbol < len(addresses) else 0) + each["r_addend"]
        if each["r_info_type"] in _RELATIVE_TYPES:
            value -= start + offset
        at = target["sh_offset"] + offset
        data[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
