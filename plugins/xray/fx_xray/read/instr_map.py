"""Instrumentation maps: which function has which id, from a program, from YAML or from CSV.

A program that clang instrumented has the section `xray_instr_map`, with an entry for each place
that can be patched (a sled). Functions are numbered from 1 in the order of the map. Programs are
ELF (``elf.py``) or Mach-O (``macho.py``), whose entries are read alike (``ProgramMap``).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_xray.read.yaml_text import OddYamlError, nodes, quoted
from fxframework.errors import UnreadableError
from fxframework.io.source import Source
from fxframework.kernels.arrays import I64, U8, U64, Bools
from fxframework.registry import lazy

if TYPE_CHECKING:
    from fx_xray.read.source_lines import SourceLines

SECTION: Final = "xray_instr_map"
ELF_MAGIC: Final = b"\x7fELF"
MACHO_MAGICS: Final = tuple(
    bytes.fromhex(magic)
    for magic in ("cffaedfe", "cafebabe", "cafebabf", "cefaedfe", "feedface", "feedfacf")
)
"""Of images, of files of several slices, and of images of 32 bits or another byte order."""
_read_elf = lazy("fx_xray.read.elf:read_elf")
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
ENTRIES: Final = {
    64: [("address", "u8"), ("function", "u8"), ("kind", "u1"), ("always", "u1"), ("version", "u1"),
         ("padding", "u1", 13)],
    32: [("address", "u4"), ("function", "u4"), ("kind", "u1"), ("always", "u1"), ("version", "u1"),
         ("padding", "u1", 5)],
}  # fmt: skip
"""An entry of the map, by the class of the file."""


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


class Faults:
    """The first FAULTS entries of a map that are invalid; ``base`` is where its file begins."""

    def __init__(self, path: str, base: int = 0) -> None:
        self.path = path
        self.base = base
        self.listed: list[Fault] = []

    def add(self, offset: int, message: str) -> None:
        """Add an entry."""
        if len(self.listed) < FAULTS:
            self.listed.append(Fault(self.path, self.base + offset, message))


class Sleds(NamedTuple):
    """The entries of a map, all of shape (n,)."""

    id: I64
    """Id of the function."""
    address: U64
    """Of the sled, in its object."""
    function: U64
    """Of the function."""
    kind: U8
    always: Bools
    """Whether it is instrumented whatever its size."""
    version: U8


@attrs.frozen
class Function:
    """What a map says of a function; what it does not say is None, an address then 0."""

    name: str | None = None
    """As in the map: from a program, as in its linker."""
    address: int = 0
    """In its object."""
    mangled: str | None = None
    """As in the linker, where the map says so."""

    @property
    def linkage_name(self) -> str | None:
        """The name as in the linker."""
        name = self.name
        return self.mangled or (name if name is not None and demangle(name) != name else None)


UNKNOWN: Final = Function()


class Functions:
    """What a map says of functions, by id."""

    def __init__(
        self, functions: Mapping[int, Function], sources: Mapping[int, str] | None = None
    ) -> None:
        self._functions = functions
        self._sources = sources or {}

    @property
    def ids(self) -> Sequence[int]:
        """The ids that it knows, ascending."""
        return sorted(self._functions)

    def of(self, id: int) -> Function:
        """Return what is known of a function."""
        return self._functions.get(id, UNKNOWN)

    def name(self, id: int) -> str | None:
        """Return the name of a function as in the map."""
        return self.of(id).name

    def source(self, id: int) -> str | None:
        """Return file:line:column of the first instruction of a function; None: not known."""
        return self._sources.get(id)


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
            comment = ""
            if kind == SledKind.TYPED_EVENT:
                # llvm-xray knows no such kind, and refuses the whole file.
                comment = f" # {word}"
                word = SledKind.CUSTOM_EVENT.word
            members = {
                "id": id,
                "address": f"0x{address:X}",
                "function": f"0x{function:X}",
                "kind": word,
                "always-instrument": "true" if always else "false",
                "function-name": quoted(name),
                "version": version,
            }
            shown = ", ".join(f"{key}: {value}" for key, value in members.items())
            yield f"- {{ {shown} }}{comment}\n".encode()
        yield b"...\n"

    def to_csv(self, *, demangled: bool = True) -> Iterator[bytes]:
        """Yield the functions, one a line, under a header line."""
        yield csv_line(CSV_COLUMNS)
        for row in self.rows(demangled=demangled):
            yield csv_line(tuple(row.values()))

    def rows(self, *, demangled: bool = True) -> Iterator[dict[str, int | str]]:
        """Yield the functions by the names of ``CSV_COLUMNS``; what is not known is empty."""
        known = self.functions
        for id in known.ids:
            function = known.of(id)
            name = function.name or ""
            shown_name = demangle(name) if demangled else name
            shown_address = f"0x{function.address:x}" if function.address else ""
            source = known.source(id) or ""
            values = (id, shown_name, function.linkage_name or "", shown_address, source)
            yield dict(zip(CSV_COLUMNS, values, strict=True))


def _rows(sleds: Sleds | None) -> Iterator[tuple[int, ...]]:
    columns = [] if sleds is None else [column.tolist() for column in sleds]
    return zip(*columns, strict=True)


def csv_line(values: Sequence[object]) -> bytes:
    """Return a line of CSV."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue().encode(errors="surrogateescape")


def unreadable(problem: str, path: str, remedy: str = REMEDY) -> UnreadableError:
    """Return the error for a file whose structure is invalid, or which has no map."""
    return UnreadableError(problem, path=path, remedy=remedy)


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
        program_read: InstrumentationMap = _read_elf(source.data, path)
        return program_read
    if head.startswith(MACHO_MAGICS):
        section_found: InstrumentationMap = _read_macho(source.data, path)
        return section_found
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith((b"---", b"- ", b"[", b"#")):
        return _from_yaml(source.data.tobytes(), path)
    if b"function_id" in text.partition(b"\n")[0]:
        return _from_csv(source.data.tobytes(), path)
    raise unreadable("it is not an instrumentation map", path)


# --- Programs ------------------------------------------------------------------------------------


class SymbolTable(NamedTuple):
    """Symbols of functions, by section, address and size, each of shape (n,); and their names."""

    place: I64
    value: U64
    size: U64
    name: I64
    strings: U8

    @classmethod
    def of(
        cls, place: I64, value: NDArray[Any], size: NDArray[Any], name: NDArray[Any], strings: U8
    ) -> SymbolTable:
        """Return symbols that are in any order."""
        order = np.lexsort((size, value, place))
        value = value[order].astype(np.uint64)
        size = size[order].astype(np.uint64)
        return cls(place[order], value, size, name[order].astype(np.int64), strings)

    def at(self, address: int, place: int) -> tuple[str | None, int]:
        """Return the name of the function that an address is in, and where it ends.

        None, 0: none.
        """
        first, stop = np.searchsorted(self.place, (place, place + 1)).tolist()
        symbols_up_to = np.searchsorted(self.value[first:stop], np.uint64(address), "right")
        row = first + int(symbols_up_to) - 1
        if row < first:
            return None, 0
        start = int(self.value[row])
        size = int(self.size[row])
        if size and address - start >= size:
            return None, 0
        text = _until_zero(self.strings, int(self.name[row]))
        return text.decode("utf-8", "replace") or None, start + size


def _until_zero(data: U8, start: int) -> bytes:
    """Return bytes from a place to before the next zero, or to the end."""
    length = 64
    while True:
        piece = data[start : start + length].tobytes()
        if b"\0" in piece or len(piece) < length:
            return piece.partition(b"\0")[0]
        length *= 4


_ReadSymbols = Callable[[], SymbolTable]
_ReadLines = Callable[[], "SourceLines | None"]
"""None if the program has no lines."""


class _ProgramFunctions(Functions):
    """Functions of a program: symbols and lines are read when they are first asked for."""

    def __init__(
        self, symbols: _ReadSymbols, lines: _ReadLines, addresses: U64, places: I64
    ) -> None:
        super().__init__({})
        self._symbols = cache(symbols)
        self._lines = cache(lines)
        self._addresses = addresses
        self._places = places

    @property
    def ids(self) -> range:
        return range(1, self._addresses.size + 1)

    def _symbol(self, id: int) -> tuple[str | None, int]:
        if id not in self.ids:
            return None, 0
        row = id - 1
        return self._symbols().at(int(self._addresses[row]), int(self._places[row]))

    def of(self, id: int) -> Function:
        name, _ = self._symbol(id)
        address = int(self._addresses[id - 1]) if id in self.ids else 0
        return Function(name, address, mangled=name)

    def source(self, id: int) -> str | None:
        if id not in self.ids:
            return None
        lines = self._lines()
        if lines is None:
            return None
        _, end = self._symbol(id)
        return lines.at(int(self._addresses[id - 1]), end)


def whole_rows(data: U8, fields: Any, order: str = "<") -> NDArray[Any]:
    """Return bytes as rows of a table; those of a row that is cut off are not looked at."""
    row = np.dtype(fields).newbyteorder(order)
    return data[: data.size - data.size % row.itemsize].view(row)


def targets_of(rows: NDArray[Any], section_address: int, bits: int) -> Iterator[U64]:
    """Yield the addresses of the sleds of entries, and of their functions, each of shape (n,)."""
    is_relative = rows["version"] >= RELATIVE_VERSION
    entry_bytes = np.uint64(rows.itemsize)
    places = np.arange(rows.size, dtype=np.uint64) * entry_bytes + np.uint64(section_address)
    # Each field is relative to where it is itself: the function's is a word behind the sled's.
    for field, offset in (("address", 0), ("function", bits // 8)):
        value = rows[field].astype(np.uint64)
        target = np.where(is_relative, value + places + np.uint64(offset), value)
        yield target & np.uint64((1 << bits) - 1)


class ProgramMap:
    """Collects the sleds of a program, section by section; ``base`` is where its file begins."""

    def __init__(self, path: str, base: int = 0) -> None:
        self._faults = Faults(path, base)
        self._parts: list[tuple[NDArray[Any], ...]] = []

    def add(
        self, rows: NDArray[Any], targets: Iterable[NDArray[Any]], offset: int, size: int
    ) -> None:
        """Add the entries of a section that lies at a byte offset of the file.

        ``targets`` are the addresses of sleds and functions, and the sections of the functions.
        """
        if rows.nbytes < size:
            bytes_left = size - rows.nbytes
            problem = f"{bytes_left} bytes are left over behind {rows.size} entries"
            self._faults.add(offset + rows.nbytes, problem)
        is_known = rows["kind"] <= max(SledKind)
        for row in np.flatnonzero(~is_known).tolist():
            self._faults.add(offset + row * rows.itemsize, f"a sled of kind {rows['kind'][row]}")
        columns = (*targets, rows["kind"], rows["always"] != 0, rows["version"])
        self._parts.append(tuple(column[is_known] for column in columns))

    def finished(
        self, symbols: _ReadSymbols, lines: _ReadLines = lambda: None
    ) -> InstrumentationMap:
        """Return the map; ``symbols`` and ``lines`` read what names functions and shows them."""
        columns = map(np.concatenate, zip(*self._parts, strict=True))
        address, function, place, kind, always, version = columns
        # The sleds of a function follow one another, and the ids of functions are 1, 2, 3, ….
        is_first = np.ones(function.size, np.bool_)
        is_first[1:] = (function[1:] != function[:-1]) | (place[1:] != place[:-1])
        ids = np.cumsum(is_first).astype(np.int64)
        functions = _ProgramFunctions(symbols, lines, function[is_first], place[is_first])
        sleds = Sleds(ids, address, function, kind, always, version)
        return InstrumentationMap(self._faults.path, functions, sleds, tuple(self._faults.listed))


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
    faults = Faults(path)
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
                faults.add(offset, "an entry that is not a sled")
                continue
            rows.append(row)
            name = entry.get("function-name")
            # llvm-xray shows the address of a function without a name in this way.
            if not isinstance(name, str) or not name or name == f"@({function:x})":
                name = None
            functions.setdefault(id, Function(name, function))
    except OddYamlError as error:
        raise unreadable(f"its YAML is invalid: {error}", path) from error
    if not rows and faults.listed:
        raise unreadable("it has no sleds", path)
    types = (np.int64, np.uint64, np.uint64, np.uint8, np.bool_, np.uint8)
    columns: Sequence[Sequence[int]] = [()] * len(types)
    if rows:
        columns = list(zip(*rows, strict=True))
    sleds = Sleds(*(np.array(column, type) for column, type in zip(columns, types, strict=True)))
    return InstrumentationMap(path, Functions(functions), sleds, tuple(faults.listed))


def _from_csv(data: bytes, path: str) -> InstrumentationMap:
    """Functions by id, in a table with a header line; only the id and a name must be there."""
    text = data.decode("utf-8-sig", "replace")
    functions: dict[int, Function] = {}
    sources: dict[int, str] = {}
    faults = Faults(path)
    reader = csv.DictReader(io.StringIO(text, newline=""))
    # Python refuses fields over 131,072 characters, but names of C++ functions may be longer. The
    # limit is that of the whole process, so it is put back.
    limit_before = csv.field_size_limit()
    csv.field_size_limit(max(limit_before, min(len(text), MOST_IN_FIELD)))
    try:
        columns = set(reader.fieldnames or ())
        if "function_id" not in columns or not columns & {"name", "linkage_name"}:
            raise unreadable("it has no columns function_id and name", path)
        for row in reader:
            try:
                id = number(row["function_id"], 1 << 32)
                address = number(row.get("address") or "0")
            except ValueError:
                line = reader.line_num
                faults.add(_line_offset(data, line), f"line {line} names no function")
                continue
            if id not in functions:
                mangled = row.get("linkage_name") or None
                functions[id] = Function(row.get("name") or mangled, address, mangled)
                sources[id] = row.get("source") or ""
    except csv.Error as error:
        raise unreadable(f"its CSV is invalid: {error}", path) from error
    finally:
        csv.field_size_limit(limit_before)
    return InstrumentationMap(path, Functions(functions, sources), None, tuple(faults.listed))


def _line_offset(data: bytes, line: int) -> int:
    """Return the byte at which a line begins, counted from 1."""
    at = 0
    for _ in range(line - 1):
        at = data.find(b"\n", at) + 1
        if not at:
            return len(data)
    return at


def demangle(name: str) -> str:
    """Return a C++ or Rust name as in its source, spelled as LLVM spells it.

    One that is not mangled, or not understood, is returned as it is. The library limits how deep a
    name nests and how long it becomes. Where LLVM writes ``auto`` for a parameter of a generic
    lambda's call, it writes the type.
    """
    if not name.startswith(("_Z", "__Z", "_R")):
        return name
    import demangle as library

    return library.demangle(name, language="rust" if name.startswith("_R") else "itanium")
