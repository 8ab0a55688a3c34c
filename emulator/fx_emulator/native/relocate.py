"""Relocations of x86-64: the value and size of each type."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from fx_emulator.native.elf import ObjectFile, Relocation, Symbol
from fx_emulator.native.errors import LoadError
from fx_emulator.native.space import Space

__all__ = ["Linker"]

RELR = -8
IRELATIVE = 37
NAMES = {
    0: "NONE", 1: "64", 2: "PC32", 3: "GOT32", 4: "PLT32", 5: "COPY", 6: "GLOB_DAT",
    7: "JUMP_SLOT", 8: "RELATIVE", 9: "GOTPCREL", 10: "32", 11: "32S", 12: "16", 13: "PC16",
    14: "8", 15: "PC8", 16: "DTPMOD64", 17: "DTPOFF64", 18: "TPOFF64", 19: "TLSGD", 20: "TLSLD",
    21: "DTPOFF32", 22: "GOTTPOFF", 23: "TPOFF32", 24: "PC64", 25: "GOTOFF64", 26: "GOTPC32",
    32: "SIZE32", 33: "SIZE64", 34: "GOTPC32_TLSDESC", 35: "TLSDESC_CALL", 36: "TLSDESC",
    37: "IRELATIVE", 41: "GOTPCRELX", 42: "REX_GOTPCRELX", RELR: "RELATIVE (RELR)",
}  # fmt: skip


@attrs.define
class Linker:
    """Applies the relocations of an object file.

    ``resolve`` returns a symbol's address. ``tls_offset`` is the distance from the thread pointer
    to the initial image of thread-local variables. ``got_start`` is the memory for GOT entries.
    """

    file: ObjectFile
    space: Space
    resolve: Callable[[Symbol], int]
    tls_offset: int
    got_start: int
    descriptor: int
    """Address of the routine that a TLS descriptor calls."""
    _got: dict[tuple[str, int], int] = attrs.field(factory=dict)
    _used: int = 0
    deferred: list[tuple[int, int]] = attrs.field(factory=list)
    """Places of IRELATIVE relocations, and the resolvers to call for them."""

    def apply(self) -> None:
        """Apply all relocations. Raises LoadError that lists all unknown types."""
        unknown = sorted({each.type for each in self.file.relocations} - NAMES.keys())
        if unknown:
            listed = ", ".join(f"type {number}" for number in unknown)
            raise LoadError(
                f"{self.file.path}: unknown relocations: {listed}; "
                "build without -mcmodel=large and without options for other loaders"
            )
        for each in self.file.relocations:
            self._one(each)

    def slot(self, kind: str, value: int, *more: int) -> int:
        """Return the address of a GOT entry with a value, followed by the words of ``more``."""
        key = (kind, value)
        if key not in self._got:
            at = self.got_start + 8 * self._used
            for number, word in enumerate((value, *more)):
                self.space.write_word(at + 8 * number, word)
            self._used += 1 + len(more)
            self._got[key] = at
        return self._got[key]

    def _address(self, symbol: Symbol | None) -> int:
        if symbol is None:
            return 0
        if symbol.kind == "ifunc" and symbol.defined:
            return self._indirect(symbol)
        return self.resolve(symbol)

    def _indirect(self, symbol: Symbol) -> int:
        """Return a stub that jumps through a word, which the function's resolver fills."""
        slot = self.slot("ifunc", symbol.address)
        if ("stub", slot) not in self._got:
            self.deferred.append((slot, symbol.address))
            # jmp *rel32(%rip)
            stub = self.slot("stub", slot)
            self.space.write(
                stub, b"\xff\x25" + (slot - stub - 6).to_bytes(4, "little", signed=True)
            )
            self._got["stub", slot] = stub
        return self._got["stub", slot]

    def _one(self, each: Relocation) -> None:
        place, addend, name = each.place, each.addend, NAMES[each.type]
        symbol = each.symbol
        if name in {"NONE", "TLSDESC_CALL"}:
            return
        if name == "RELATIVE (RELR)":
            self.space.write_word(place, self.space.read_word(place) + self.file.base)
        elif name == "RELATIVE":
            self.space.write_word(place, self.file.base + addend)
        elif name == "IRELATIVE":
            self.deferred.append((place, self.file.base + addend))
        elif name == "COPY":
            assert symbol is not None  # noqa: S101
            self.space.write(place, self.space.read(self.resolve(symbol), symbol.size))
        elif name in {"64", "GLOB_DAT", "JUMP_SLOT"}:
            extra = addend if name == "64" else 0
            self.space.write_word(place, self._address(symbol) + extra)
        elif name in {"DTPMOD64", "DTPOFF64", "TPOFF64", "TLSDESC"}:
            self._tls_word(place, name, symbol, addend)
        else:
            self._code(place, name, symbol, addend)

    def _tls_word(self, place: int, name: str, symbol: Symbol | None, addend: int) -> None:
        within = (symbol.address if symbol is not None else 0) + addend
        if name == "TLSDESC":
            self.space.write_word(place, self.descriptor)
            self.space.write_word(place + 8, within + self.tls_offset)
            return
        value = {"DTPMOD64": 1, "DTPOFF64": within, "TPOFF64": within + self.tls_offset}[name]
        self.space.write_word(place, value)

    def _code(self, place: int, name: str, symbol: Symbol | None, addend: int) -> None:
        """Apply a relocation that occurs in relocatable files only."""
        if name in {"TLSGD", "TLSLD", "GOTTPOFF", "TPOFF32", "DTPOFF32", "GOTPC32_TLSDESC"}:
            value = self._tls_code(place, name, symbol, addend)
        elif name in {"GOTPCREL", "GOTPCRELX", "REX_GOTPCRELX"}:
            value = self.slot("address", self._address(symbol)) + addend - place
        elif name == "GOTPC32":
            value = self.got_start + addend - place
        elif name == "GOTOFF64":
            value = self._address(symbol) + addend - self.got_start
        elif name == "GOT32":
            value = self.slot("address", self._address(symbol)) + addend - self.got_start
        elif name.startswith("SIZE"):
            value = (symbol.size if symbol is not None else 0) + addend
        else:
            value = self._address(symbol) + addend
            if name.startswith(("PC", "PLT")):
                value -= place
        size = {"64": 8, "16": 2, "8": 1}.get(name.removeprefix("PC").removeprefix("SIZE"), 4)
        if name == "GOTOFF64":
            size = 8
        self._store(place, name, value, size, symbol)

    def _tls_code(self, place: int, name: str, symbol: Symbol | None, addend: int) -> int:
        within = symbol.address if symbol is not None else 0
        if name == "TLSGD":
            return self.slot(f"tlsgd {within}", 1, within) + addend - place
        if name == "TLSLD":
            return self.slot("tlsld", 1, 0) + addend - place
        if name == "GOTTPOFF":
            return self.slot(f"tpoff {within}", within + self.tls_offset) + addend - place
        if name == "GOTPC32_TLSDESC":
            slot = self.slot(f"tlsdesc {within}", self.descriptor, within + self.tls_offset)
            return slot + addend - place
        return within + addend + (self.tls_offset if name == "TPOFF32" else 0)

    def _store(self, place: int, name: str, value: int, size: int, symbol: Symbol | None) -> None:
        bits = 8 * size
        least = 0 if name == "32" else -(1 << bits - 1)
        most = (1 << bits) if name in {"32", "16", "8"} or size == 8 else 1 << bits - 1
        if not least <= value < most and size < 8:
            what = symbol.name if symbol is not None and symbol.name else "a section"
            raise LoadError(
                f"{self.file.path}: relocation {name} at {place:#x}: {what} is too far away; "
                "build with -fPIC, or make a library with -shared"
            )
        self.space.write_word(place, value, size)
