"""Instrumentation maps: which function has which id, from a program, from YAML or from CSV.

A program that clang instrumented has the section `xray_instr_map`, with an entry for each place
that can be patched (a sled). Functions are numbered from 1 in the order of the map. Programs are
ELF, read here, or Mach-O (``macho.py``).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_xray.format import LOW32
from fx_xray.read.demangling import demangle
from fx_xray.read.elf_stream import Stream
from fx_xray.read.yaml_text import OddYamlError, nodes, quoted
from fxframework.errors import UnreadableError
from fxframework.io.source import Source
from fxframework.registry import lazy

if TYPE_CHECKING:
    from fx_xray.read.source_lines import SourceLines

__all__ = ["Fault", "Function", "Functions", "InstrumentationMap", "SledKind", "Sleds", "read_map"]

SECTION: Final = "xray_instr_map"
ELF_MAGIC: Final = b"\x7fELF"
MACHO_MAGICS: Final = tuple(
    bytes.fromhex(magic)
    for magic in ("cffaedfe", "cafebabe", "cafebabf", "cefaedfe", "feedface", "feedfacf")
)
"""Of images, of files of several slices, and of images of 32 bits or another byte order."""
_read_macho = lazy("fx_xray.read.macho:read_macho")
RELATIVE_VERSION: Final = 2
"""From this version of an entry on, its addresses are relative to where they are."""
REMEDY: Final = (
    "give the program that clang -fxray-instrument built, the YAML of "
    "`llvm-xray extract --symbolize`, or CSV with the columns function_id and name"
)
CSV_COLUMNS: Final = ("function_id", "name", "linkage_name", "address", "source")
MOST_IN_FIELD: Final = (1 << 31) - 1
"""The greatest limit that Python's CSV takes on every system."""
FAULTS: Final = 1000
"""Entries that are invalid, listed for one map."""
LEAST_SECTION: Final = {32: 40, 64: 64}
"""Bytes of a section's header, by the class of the file."""

ENTRIES: Final = {
    64: [("address", "u8"), ("function", "u8"), ("kind", "u1"), ("always", "u1"), ("version", "u1"),
         ("padding", "u1", 13)],
    32: [("address", "u4"), ("function", "u4"), ("kind", "u1"), ("always", "u1"), ("version", "u1"),
         ("padding", "u1", 5)],
}  # fmt: skip
"""An entry of the map, by the class of the file."""
_SYMBOLS: Final = {
    64: [("name", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2"), ("value", "u8"),
         ("size", "u8")],
    32: [("name", "u4"), ("value", "u4"), ("size", "u4"), ("info", "u1"), ("other", "u1"),
         ("section", "u2")],
}  # fmt: skip
_SYMBOL_32: Final = 8
_SYMBOL_64: Final = 32
"""Of a relocation's info: the lowest bit of the number of its symbol."""
_TYPE_BITS: Final = 0xF
"""Of a symbol's info: its type."""
_FUNCTION_TYPES: Final = (2, 10)
"""Of symbols: functions, and those that are resolved at run time."""

U1 = NDArray[np.uint8]
I8 = NDArray[np.int64]
U8 = NDArray[np.uint64]


class SledKind(IntEnum):
    """What is patched there."""

    FUNCTION_ENTER = 0
    FUNCTION_EXIT = 1
    TAIL_EXIT = 2
    LOG_ARGS_ENTER = 3
    CUSTOM_EVENT = 4
    TYPED_EVENT = 5

    @property
    def word(self) -> str:
        """As llvm-xray writes it."""
        return self.name.lower().replace("_", "-")


@attrs.frozen
class Fault:
    """An invalid entry of a map (INVALID_MAP_ENTRY), and its byte offset in the file."""

    path: str
    offset: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message} (at byte {self.offset})"


class Sleds(NamedTuple):
    """The entries of a map, all of shape (n,)."""

    id: I8
    """Id of the function."""
    address: U8
    """Of the sled, in its object."""
    function: U8
    """Of the function."""
    kind: U1
    always: NDArray[np.bool_]
    """Whether it is instrumented whatever its size."""
    version: U1


@attrs.frozen(kw_only=True)
class Function:
    """What a map says of a function."""

    name: str | None = None
    linkage_name: str | None = None
    address: int = 0
    source: str | None = None


class Functions:
    """What a map says of functions, by id. What it does not say is None, an address then 0."""

    def __init__(self, functions: Mapping[int, Function]) -> None:
        self._functions = functions

    @property
    def ids(self) -> Sequence[int]:
        """The ids that it knows, ascending."""
        return sorted(self._functions)

    def _of(self, id: int) -> Function:
        return self._functions.get(id, UNKNOWN)

    def name(self, id: int) -> str | None:
        """Return the name as in the map: from a program, as in its linker."""
        return self._of(id).name or self._of(id).linkage_name

    def linkage_name(self, id: int) -> str | None:
        """Return the name as in the linker."""
        name = self.name(id)
        mangled = name if name is not None and demangle(name) != name else None
        return self._of(id).linkage_name or mangled

    def address(self, id: int) -> int:
        """Its address in its object."""
        return self._of(id).address

    def source(self, id: int) -> str | None:
        """file:line:column of its first instruction."""
        return self._of(id).source


UNKNOWN: Final = Function()


@attrs.frozen
class InstrumentationMap:
    """The map of one object."""

    path: str
    functions: Functions
    sleds: Sleds | None
    """The places that are patched; None where a CSV names functions alone."""
    faults: tuple[Fault, ...] = ()

    def to_yaml(self, *, demangled: bool = True) -> Iterator[bytes]:
        """Yield the map as `llvm-xray extract --symbolize` writes it, a sled a line."""
        yield b"---\n"
        for id, address, function, kind, always, version in _rows(self.sleds):
            name = self.functions.name(id)
            if name is None:
                name = f"@({function:x})"
            elif demangled:
                name = demangle(name)
            word = SledKind(kind).word
            note = ""
            if kind == SledKind.TYPED_EVENT:
                # llvm-xray knows no such kind, and refuses the whole file.
                word, note = SledKind.CUSTOM_EVENT.word, f" # {word}"
            yield (
                f"- {{ id: {id}, address: 0x{address:X}, function: 0x{function:X}, "
                f"kind: {word}, always-instrument: {'true' if always else 'false'}, "
                f"function-name: {quoted(name)}, version: {version} }}{note}\n"
            ).encode()
        yield b"...\n"

    def to_csv(self, *, demangled: bool = True) -> Iterator[bytes]:
        """Yield the functions, one a line, under a header line."""
        yield _csv_line(CSV_COLUMNS)
        for row in self.rows(demangled=demangled):
            yield _csv_line(tuple(row.values()))

    def rows(self, *, demangled: bool = True) -> Iterator[dict[str, int | str]]:
        """Yield the functions by the names of ``CSV_COLUMNS``; what is not known is empty."""
        known = self.functions
        for id in known.ids:
            name = known.name(id) or ""
            values = (
                id,
                demangle(name) if demangled else name,
                known.linkage_name(id) or "",
                f"0x{known.address(id):x}" if known.address(id) else "",
                known.source(id) or "",
            )
            yield dict(zip(CSV_COLUMNS, values, strict=True))


def _rows(sleds: Sleds | None) -> Iterator[tuple[int, ...]]:
    columns = [] if sleds is None else [column.tolist() for column in sleds]
    return zip(*columns, strict=True)


def _csv_line(values: Sequence[object]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue().encode()


def read_map(path: str) -> InstrumentationMap:
    """Return the map in a file: a program, YAML of llvm-xray, or CSV.

    Raises UnreadableError for a file that cannot be opened, or that has no map.
    """
    source = Source.open(path)
    try:
        return _map_in(source, path)
    finally:
        source.check()


def _map_in(source: Source, path: str) -> InstrumentationMap:
    head = source.read(0, 256)
    if head.startswith(ELF_MAGIC):
        return _Elf(source, path).read()
    if head.startswith(MACHO_MAGICS):
        section_found: InstrumentationMap = _read_macho(source.data, path)
        return section_found
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith((b"---", b"- ", b"[", b"#")):
        return _from_yaml(source.data.tobytes(), path)
    if b"function_id" in text.partition(b"\n")[0]:
        return _from_csv(source.data.tobytes(), path)
    raise UnreadableError("it is not an instrumentation map", path=path, remedy=REMEDY)


def is_other_function(function: U8, places: I8 | None = None) -> NDArray[np.bool_]:
    """Return which sleds are of another function than the sled before, and so have a new id.

    ``places`` are the sections of the functions, where addresses alone do not tell them apart.
    """
    is_other = np.ones(function.size, np.bool_)
    is_other[1:] = function[1:] != function[:-1]
    if places is not None:
        is_other[1:] |= places[1:] != places[:-1]
    return is_other


# --- Programs ------------------------------------------------------------------------------------


class _Section(NamedTuple):
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


class _Elf:
    """Reads the map of a program."""

    def __init__(self, source: Source, path: str) -> None:
        self._data = source.data
        self._path = path
        self._faults: list[Fault] = []

    def read(self) -> InstrumentationMap:
        try:
            return self._read()
        except UnreadableError:
            raise
        except Exception as error:
            # pyelftools raises what it likes where bytes are invalid.
            raise UnreadableError(
                f"its ELF structure is invalid: {type(error).__name__}: {error}",
                path=self._path,
                remedy=REMEDY,
            ) from error

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
            raise UnreadableError(
                "the program has no instrumentation map: no section xray_instr_map",
                path=self._path,
                remedy=REMEDY,
            )
        parts = [self._entries(section) for section in maps]
        address, function, kind, always, version, places = map(
            np.concatenate, zip(*parts, strict=True)
        )
        new = is_other_function(function, places)
        ids = np.cumsum(new).astype(np.int64)
        functions = ProgramFunctions(self, function[new], places[new])
        sleds = Sleds(ids, address, function, kind, always, version)
        return InstrumentationMap(self._path, functions, sleds, tuple(self._faults))

    def _listed(self, elf: Any) -> list[_Section]:
        """Return the sections that make sense."""
        number = elf.num_sections()
        size = elf["e_shentsize"]
        if size < LEAST_SECTION[self._bits] or number * size > self._data.size:
            raise UnreadableError(
                f"its {number} section headers do not fit", path=self._path, remedy=REMEDY
            )
        entries_found = []
        for index in range(number):
            try:
                section = elf.get_section(index)
                name = section.name
            except Exception:  # noqa: BLE001, S112 (pyelftools; the other sections may be sound)
                continue
            header = section.header
            entries_found.append(
                _Section(
                    index, name, header["sh_type"], header["sh_addr"], header["sh_offset"],
                    header["sh_size"], header["sh_entsize"], header["sh_link"], header["sh_info"],
                )
            )  # fmt: skip
        return entries_found

    def _bytes(self, section: _Section) -> U1:
        """Return what of a section is in the file."""
        if section.type == "SHT_NOBITS":
            return self._data[:0]
        return self._data[section.offset : section.offset + section.size]

    def _rows(self, section: _Section, fields: Any) -> NDArray[Any]:
        """Return a section as a table of entries; what is left over at its end is not looked at."""
        type = np.dtype(fields).newbyteorder(self._order)
        data = self._bytes(section)
        return data[: data.size // type.itemsize * type.itemsize].view(type)

    def _entries(self, section: _Section) -> tuple[NDArray[Any], ...]:
        """Addresses of sleds and functions, kinds, flags, versions; sections of the functions."""
        rows = self._rows(section, ENTRIES[self._bits])
        left = section.size - rows.nbytes
        if left:
            at = section.offset + rows.nbytes
            self._fault(at, f"{left} bytes are left over behind {rows.size} entries")
        mask = np.uint64((1 << self._bits) - 1)
        word = self._bits // 8
        base = np.uint64(section.address) + np.arange(rows.size, dtype=np.uint64) * np.uint64(
            rows.dtype.itemsize
        )
        relative = rows["version"] >= RELATIVE_VERSION
        fields = []
        places = np.zeros(rows.size, np.int64)
        for name, at in (("address", 0), ("function", word)):
            value = rows[name].astype(np.uint64)
            value = np.where(relative, value + base + np.uint64(at), value) & mask
            for row, (target, place) in self._relocated(section, rows, name, at).items():
                # In a linked program those of version 2 are right as they are.
                if self._relocatable or not relative[row]:
                    value[row] = target & int(mask)
                    places[row] = place
            fields.append(value)
        known = rows["kind"] <= max(SledKind)
        for row in np.flatnonzero(~known).tolist():
            at = section.offset + row * rows.dtype.itemsize
            self._fault(at, f"a sled of kind {rows['kind'][row]}")
        columns = (*fields, rows["kind"], rows["always"] != 0, rows["version"], places)
        return tuple(column[known] for column in columns)

    def _fault(self, offset: int, message: str) -> None:
        if len(self._faults) < FAULTS:
            self._faults.append(Fault(self._path, offset, message))

    def _relocated(
        self, section: _Section, rows: NDArray[Any], field: str, at: int
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

    def _symbols_of(self, table: _Section) -> NDArray[Any]:
        for section in self._sections:
            if section.number == table.link and section.type in ("SHT_SYMTAB", "SHT_DYNSYM"):
                return self._rows(section, _SYMBOLS[self._bits])
        return np.zeros(0, np.dtype(_SYMBOLS[self._bits]))

    def _symbol(self, symbols: NDArray[Any], info: int, addend: int) -> tuple[int, int]:
        """Return the place that a relocation means: an address, and the section of its symbol."""
        if self._bits == 32:
            index = info >> _SYMBOL_32
        elif self._machine == "EM_MIPS" and self._order == "<":
            index = info & LOW32
        else:
            index = info >> _SYMBOL_64
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
                rows = self._rows(section, _SYMBOLS[self._bits])
                names = [each for each in self._sections if each.number == section.link]
                functions = np.isin(rows["info"] & _TYPE_BITS, _FUNCTION_TYPES)
                functions &= rows["section"] != 0
                if names and functions.any():
                    return self._table(rows[functions], self._bytes(names[0]))
        return self._table(np.zeros(0, np.dtype(_SYMBOLS[self._bits])), self._data[:0])

    def _table(self, rows: NDArray[Any], names: U1) -> SymbolTable:
        value = rows["value"].astype(np.uint64)
        if self._machine == "EM_ARM":
            value &= ~np.uint64(1)
        size = rows["size"].astype(np.uint64)
        place = rows["section"].astype(np.int64) * self._relocatable
        order = np.lexsort((np.arange(rows.size), size, value, place))
        return SymbolTable(
            place[order], value[order], size[order], rows["name"][order].astype(np.int64), names
        )

    def lines(self) -> SourceLines | None:
        """Return the lines of the source, where the program has them."""
        from fx_xray.read.source_lines import SourceLines

        # Addresses of objects that are not linked are not unique.
        return None if self._relocatable else SourceLines(self._data)


class SymbolTable(NamedTuple):
    """Symbols of functions, by section, address and size, each of shape (n,); and their names."""

    place: I8
    value: U8
    size: U8
    name: I8
    strings: U1

    def at(self, address: int, place: int) -> tuple[str | None, int]:
        """Return the name of the function that an address is in, and where it ends.

        None, 0: none.
        """
        first, stop = np.searchsorted(self.place, (place, place + 1)).tolist()
        row = int(np.searchsorted(self.value[first:stop], np.uint64(address), "right")) - 1 + first
        if row < first:
            return None, 0
        start = int(self.value[row])
        size = int(self.size[row])
        if size and address - start >= size:
            return None, 0
        text = _until_zero(self.strings, int(self.name[row]))
        return text.decode("utf-8", "replace") or None, start + size


class Program(Protocol):
    """What names the functions of a program."""

    def symbols(self) -> SymbolTable:
        """Return the symbols of functions."""

    def lines(self) -> SourceLines | None:
        """Return the lines of the source; None if the program has none."""


def _until_zero(data: U1, start: int) -> bytes:
    """Return bytes from a place to before the next zero, or to the end."""
    length = 64
    while True:
        piece = data[start : start + length].tobytes()
        if b"\0" in piece or len(piece) < length:
            return piece.partition(b"\0")[0]
        length *= 4


class ProgramFunctions(Functions):
    """Functions of a program: names and lines are looked up when they are asked for."""

    def __init__(self, program: Program, addresses: U8, places: I8) -> None:
        super().__init__({})
        self._program = program
        self._addresses = addresses
        self._places = places
        self._symbols: SymbolTable | None = None
        self._lines: SourceLines | None = None
        self._has_lines = True

    @property
    def ids(self) -> range:
        return range(1, self._addresses.size + 1)

    def _symbol(self, id: int) -> tuple[str | None, int]:
        if id not in self.ids:
            return None, 0
        if self._symbols is None:
            self._symbols = self._program.symbols()
        return self._symbols.at(int(self._addresses[id - 1]), int(self._places[id - 1]))

    def name(self, id: int) -> str | None:
        return self._symbol(id)[0]

    def linkage_name(self, id: int) -> str | None:
        return self.name(id)

    def address(self, id: int) -> int:
        return int(self._addresses[id - 1]) if id in self.ids else 0

    def source(self, id: int) -> str | None:
        if id not in self.ids or not self._has_lines:
            return None
        if self._lines is None:
            self._lines = self._program.lines()
            self._has_lines = self._lines is not None
        if self._lines is None:
            return None
        return self._lines.at(self.address(id), self._symbol(id)[1])


# --- YAML and CSV --------------------------------------------------------------------------------


def number(text: object, bound: int = 1 << 64) -> int:
    """Return a number as YAML and CSV have it: decimal, or hexadecimal behind 0x.

    Raises ValueError for what is not one, or is not below the bound.
    """
    if not isinstance(text, str) or len(text) > 40:
        raise ValueError("no number")
    text = text.strip()
    value = int(text, 16) if text[:2].lower() == "0x" else int(text)
    if not 0 <= value < bound:
        raise ValueError("out of range")
    return value


def _from_yaml(data: bytes, path: str) -> InstrumentationMap:
    """Return the map as `llvm-xray extract` writes it, with names or without."""
    functions: dict[int, Function] = {}
    rows: list[tuple[int, ...]] = []
    faults: list[Fault] = []
    words = {kind.word: int(kind) for kind in SledKind}
    try:
        for offset, entry in nodes(data, items=True):
            try:
                id = number(entry["id"], 1 << 32)
                function = number(entry["function"])
                row = (
                    id,
                    number(entry["address"]),
                    function,
                    words[str(entry["kind"])],
                    entry.get("always-instrument", "false") == "true",
                    number(entry.get("version", "0"), 1 << 8),
                )
            except (KeyError, ValueError, TypeError, AttributeError):
                if len(faults) < FAULTS:
                    faults.append(Fault(path, offset, "an entry that is not a sled"))
                continue
            rows.append(row)
            name = entry.get("function-name")
            # llvm-xray shows the address of a function without a name in this way.
            if not isinstance(name, str) or not name or name == f"@({function:x})":
                name = None
            functions.setdefault(id, Function(name=name, address=function))
    except OddYamlError as error:
        raise UnreadableError(f"its YAML is invalid: {error}", path=path, remedy=REMEDY) from error
    if not rows and faults:
        raise UnreadableError("it has no sleds", path=path, remedy=REMEDY)
    types = (np.int64, np.uint64, np.uint64, np.uint8, np.bool_, np.uint8)
    columns: Sequence[Sequence[int]] = [()] * len(types)
    if rows:
        columns = list(zip(*rows, strict=True))
    sleds = Sleds(*(np.array(column, type) for column, type in zip(columns, types, strict=True)))
    return InstrumentationMap(path, Functions(functions), sleds, tuple(faults))


def _from_csv(data: bytes, path: str) -> InstrumentationMap:
    """Functions by id, in a table with a header line; only the id and a name must be there."""
    text = data.decode("utf-8-sig", "replace")
    functions: dict[int, Function] = {}
    faults: list[Fault] = []
    reader = csv.DictReader(io.StringIO(text, newline=""))
    # Python refuses fields over 131,072 characters; names of C++ functions are longer. The limit is
    # that of the whole process, so it is put back.
    limit_before = csv.field_size_limit()
    csv.field_size_limit(max(limit_before, min(len(text), MOST_IN_FIELD)))
    try:
        columns = set(reader.fieldnames or ())
        if "function_id" not in columns or not columns & {"name", "linkage_name"}:
            raise UnreadableError(
                "it has no columns function_id and name", path=path, remedy=REMEDY
            )
        for row in reader:
            try:
                id = number(row["function_id"], 1 << 32)
                address = number(row.get("address") or "0")
            except ValueError:
                if len(faults) < FAULTS:
                    message = f"line {reader.line_num} names no function"
                    faults.append(Fault(path, _line_offset(data, reader.line_num), message))
                continue
            functions.setdefault(
                id,
                Function(
                    name=row.get("name") or None,
                    linkage_name=row.get("linkage_name") or None,
                    address=address,
                    source=row.get("source") or None,
                ),
            )
    except csv.Error as error:
        raise UnreadableError(f"its CSV is invalid: {error}", path=path, remedy=REMEDY) from error
    finally:
        csv.field_size_limit(limit_before)
    return InstrumentationMap(path, Functions(functions), None, tuple(faults))


def _line_offset(data: bytes, line: int) -> int:
    """Return the byte at which a line begins, counted from 1."""
    at = 0
    for _ in range(line - 1):
        at = data.find(b"\n", at) + 1
        if not at:
            return len(data)
    return at
