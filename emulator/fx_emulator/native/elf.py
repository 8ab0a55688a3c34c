"""Object files: ELF64 x86-64, relocatable, shared or static, as segments, symbols and relocations.

Files are decoded by pyelftools; ``machine`` maps them.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection, RelrRelocationSection

from fx_emulator.native.errors import LoadError
from fx_emulator.native.space import READ, RUN, WRITE, round_up

__all__ = ["Chunk", "ObjectFile", "Relocation", "Symbol", "open_object"]

_ALLOC, _WRITE_FLAG, _EXEC, _TLS = 0x2, 0x1, 0x4, 0x400
_NOBITS = "SHT_NOBITS"
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
    except (ELFError, ValueError, KeyError, IndexError, AttributeError, TypeError) as error:
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
    if kind == "relocatable":
        return _Relocatable(path, data, base).object()
    return _linked(path, file, kind, base)


# --- Linked files ------------------------------------------------------------------------------


def _permissions(flags: int) -> int:
    return (READ if flags & 4 else 0) | (WRITE if flags & 2 else 0) | (RUN if flags & 1 else 0)


def _linked(path: Path, file: Any, kind: str, base: int) -> ObjectFile:
    bias = base if kind == "shared" else 0
    chunks: list[Chunk] = []
    tls, tls_size, tls_align = b"", 0, 1
    headers = 0
    for segment in file.iter_segments():
        if segment["p_type"] == "PT_LOAD" and segment["p_memsz"]:
            size = segment["p_memsz"]
            if size > 1 << 32 or segment["p_filesz"] > size:
                raise LoadError(f"{path}: damaged ELF file: segment of {size} bytes")
            start = bias + segment["p_vaddr"]
            chunks.append(
                Chunk(start, size, segment.data(), _permissions(segment["p_flags"]), "segment")
            )
            at = file["e_phoff"] - segment["p_offset"]
            if 0 <= at < segment["p_filesz"]:
                headers = start + at
        elif segment["p_type"] == "PT_TLS":
            tls, tls_size = segment.data(), segment["p_memsz"]
            tls_align = max(1, segment["p_align"])
    if not chunks:
        raise LoadError(f"{path}: no segment to load; build it again")
    tables: dict[int, list[Symbol]] = {}
    for number, section in enumerate(file.iter_sections()):
        if section["sh_type"] in {"SHT_SYMTAB", "SHT_DYNSYM"}:
            tables[number] = [_symbol(each, bias) for each in section.iter_symbols()]
    relocations = list(_linked_relocations(file, tables, bias))
    initialisers: list[int] = []
    for name in (".preinit_array", ".init_array"):
        section = file.get_section_by_name(name)
        if section is not None:
            start = bias + section["sh_addr"]
            initialisers += range(start, start + section["sh_size"], 8)
    return ObjectFile(
        path=path,
        kind=kind,
        base=bias,
        entry=bias + file["e_entry"] if file["e_entry"] else 0,
        chunks=chunks,
        relocations=relocations,
        tls=tls,
        tls_size=tls_size,
        tls_align=tls_align,
        initialisers=initialisers,
        headers=headers,
        header_count=file["e_phnum"],
        debug=file,
        **_named(itertools.chain.from_iterable(tables.values()), relocations),
    )


def _linked_relocations(
    file: Any, tables: dict[int, list[Symbol]], bias: int
) -> Iterator[Relocation]:
    for section in file.iter_sections():
        if isinstance(section, RelrRelocationSection):
            for each in section.iter_relocations():
                yield Relocation(bias + each["r_offset"], _RELR, None, 0)
        elif isinstance(section, RelocationSection) and section["sh_flags"] & _ALLOC:
            yield from _relocations(section, bias, tables.get(section["sh_link"], []))


_RELR = -8
"""Type of a relative relocation whose addend is stored in its place."""

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


def _relocations(section: Any, base: int, symbols: Sequence[Symbol]) -> Iterator[Relocation]:
    for each in section.iter_relocations():
        number = each["r_info_sym"]
        symbol = symbols[number] if number else None
        yield Relocation(base + each["r_offset"], each["r_info_type"], symbol, each["r_addend"])


# --- Relocatable files -------------------------------------------------------------------------


_DEBUG_SIZES = {1: 8, 2: 4, 10: 4, 11: 4, 17: 8, 21: 4, 24: 8}
"""Size in bytes of each relocation type of DWARF sections."""
_RELATIVE_TYPES = {2, 24}


class _Relocatable:
    """Lays out the sections of an object file, as a linker would."""

    def __init__(self, path: Path, data: bytes, base: int) -> None:
        self.path = path
        self.data = bytearray(data)
        self.file: Any = ELFFile(io.BytesIO(data))
        self.base = base
        self.placed: dict[int, int] = {}
        """Address of each section by number; of a TLS section, its offset in the TLS image."""
        self.tls = bytearray()
        self.tls_align = 1
        self.common: dict[str, int] = {}

    def object(self) -> ObjectFile:
        chunks, after = self.lay_out()
        sections = list(self.file.iter_sections())
        table = next((each for each in sections if each["sh_type"] == "SHT_SYMTAB"), None)
        raw = list(table.iter_symbols()) if table is not None else []
        common_size = 0
        for each in raw:
            if each["st_shndx"] == "SHN_COMMON":
                align = max(1, each["st_value"])
                common_size = round_up(common_size, align)
                self.common[each.name] = after + common_size
                common_size += each["st_size"]
        if common_size:
            chunks.append(Chunk(after, common_size, b"", READ | WRITE, "common"))
        every = [self.symbol(each) for each in raw]
        relocations: list[Relocation] = []
        for section in sections:
            if isinstance(section, RelocationSection):
                target = section["sh_info"]
                if target in self.placed and not sections[target]["sh_flags"] & _TLS:
                    relocations += _relocations(section, self.placed[target], every)
        initialisers: list[int] = []
        for wanted in (".preinit_array", ".init_array", ".ctors"):
            for number, section in enumerate(sections):
                if section.name == wanted or section.name.startswith(wanted + "."):
                    start = self.placed[number]
                    initialisers += range(start, start + section["sh_size"], 8)
        return ObjectFile(
            path=self.path,
            kind="relocatable",
            base=self.base,
            entry=0,
            chunks=chunks,
            relocations=relocations,
            tls=bytes(self.tls),
            tls_size=len(self.tls),
            tls_align=self.tls_align,
            initialisers=initialisers,
            headers=0,
            header_count=0,
            debug=self.patched(raw, every),
            **_named(every, relocations),
        )

    def lay_out(self) -> tuple[list[Chunk], int]:
        """Group the sections by permission, on separate pages. Return them and the end address."""
        chunks = []
        at = self.base
        for wanted in (READ | RUN, READ, READ | WRITE):
            at = start = round_up(at)
            data = bytearray()
            for number, section in enumerate(self.file.iter_sections()):
                flags = section["sh_flags"]
                if not flags & _ALLOC:
                    continue
                align = max(1, section["sh_addralign"])
                size = section["sh_size"]
                if size > 1 << 30:
                    raise LoadError(f"{self.path}: damaged ELF file: section of {size} bytes")
                body = bytes(size) if section["sh_type"] == _NOBITS else section.data()
                if flags & _TLS:
                    if wanted == READ:
                        self.tls += bytes(-len(self.tls) % align)
                        self.placed[number] = len(self.tls)
                        self.tls += body
                        self.tls_align = max(self.tls_align, align)
                    continue
                permissions = READ | (WRITE if flags & _WRITE_FLAG else 0)
                permissions = READ | RUN if flags & _EXEC else permissions
                if permissions != wanted:
                    continue
                data += bytes(-len(data) % align)
                self.placed[number] = start + len(data)
                data += body
            if data:
                chunks.append(Chunk(start, len(data), bytes(data), wanted, "sections"))
            at = start + len(data)
        return chunks, round_up(at)

    def symbol(self, each: Any) -> Symbol:
        symbol = _symbol(each, 0)
        where = each["st_shndx"]
        if where == "SHN_COMMON":
            symbol.address = self.common[each.name]
        elif isinstance(where, int):
            symbol.address += self.placed.get(where, 0)
        return symbol

    def patched(self, raw: list[Any], every: list[Symbol]) -> Any:
        """Return the file with sections at their addresses and DWARF relocated."""
        header = self.file.header
        for number, address in self.placed.items():
            at = header["e_shoff"] + number * header["e_shentsize"] + 16
            self.data[at : at + 8] = address.to_bytes(8, "little")
        sections = list(self.file.iter_sections())
        for section in sections:
            if not isinstance(section, RelocationSection):
                continue
            number = section["sh_info"]
            target = sections[number]
            if not target.name.startswith((".debug_", ".eh_frame")):
                continue
            base = self.placed.get(number, 0)
            for each in section.iter_relocations():
                size = _DEBUG_SIZES.get(each["r_info_type"])
                offset = each["r_offset"]
                if size is None or offset + size > target["sh_size"]:
                    continue
                symbol = each["r_info_sym"]
                value = (every[symbol].address if symbol < len(raw) else 0) + each["r_addend"]
                if each["r_info_type"] in _RELATIVE_TYPES:
                    value -= base + offset
                at = target["sh_offset"] + offset
                self.data[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        return ELFFile(io.BytesIO(bytes(self.data)))
