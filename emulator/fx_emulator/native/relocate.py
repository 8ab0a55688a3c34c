"""Relocations of x86-64: the value and size of each type, as the psABI defines them."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from fx_emulator.native.elf import RELR, ObjectFile, Relocation, Symbol
from fx_emulator.native.errors import LoadError
from fx_emulator.native.space import Space

__all__ = ["Linker"]

_NONE, _COPY, _TLSDESC_CALL, _TLSDESC, _IRELATIVE = 0, 5, 35, 36, 37
_SPECIAL = frozenset({_NONE, _COPY, _TLSDESC_CALL, _TLSDESC, _IRELATIVE, RELR})
_NUMBERS = {
    1: ("64", 8, "S", ""), 2: ("PC32", 4, "S", "P"), 3: ("GOT32", 4, "G", "GOT"),
    4: ("PLT32", 4, "S", "P"), 6: ("GLOB_DAT", 8, "S", ""), 7: ("JUMP_SLOT", 8, "S", ""),
    8: ("RELATIVE", 8, "B", ""), 9: ("GOTPCREL", 4, "G", "P"), 10: ("32", 4, "S", ""),
    11: ("32S", 4, "S", ""), 12: ("16", 2, "S", ""), 13: ("PC16", 2, "S", "P"),
    14: ("8", 1, "S", ""), 15: ("PC8", 1, "S", "P"), 16: ("DTPMOD64", 8, "module", ""),
    17: ("DTPOFF64", 8, "tls", ""), 18: ("TPOFF64", 8, "thread", ""),
    19: ("TLSGD", 4, "module and tls in GOT", "P"), 20: ("TLSLD", 4, "module in GOT", "P"),
    21: ("DTPOFF32", 4, "tls", ""), 22: ("GOTTPOFF", 4, "thread in GOT", "P"),
    23: ("TPOFF32", 4, "thread", ""), 24: ("PC64", 8, "S", "P"), 25: ("GOTOFF64", 8, "S", "GOT"),
    26: ("GOTPC32", 4, "GOT", "P"), 32: ("SIZE32", 4, "Z", ""), 33: ("SIZE64", 8, "Z", ""),
    34: ("GOTPC32_TLSDESC", 4, "descriptor in GOT", "P"),
    41: ("GOTPCRELX", 4, "G", "P"), 42: ("REX_GOTPCRELX", 4, "G", "P"),
}  # fmt: skip
"""Relocations that store a number: its name, its bytes, and the two terms that the addend is added
to and that are subtracted: ``S`` the symbol, ``Z`` its size, ``P`` the place, ``B`` the base of the
file, ``GOT`` the offset table and ``G`` the symbol's entry in it; ``tls``, the offset of a variable
in the image of thread-local variables, and ``thread``, that from the thread pointer."""


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
        used = {each.type for each in self.file.relocations}
        unknown = sorted(used - _NUMBERS.keys() - _SPECIAL)
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
        space, place = self.space, each.place
        if each.type in _NUMBERS:
            self._store(each, *_NUMBERS[each.type])
        elif each.type == RELR:
            space.write_word(place, space.read_word(place) + self.file.base)
        elif each.type == _IRELATIVE:
            self.deferred.append((place, self.file.base + each.addend))
        elif each.type == _COPY:
            assert each.symbol is not None  # noqa: S101
            space.write(place, space.read(self.resolve(each.symbol), each.symbol.size))
        elif each.type == _TLSDESC:
            space.write_word(place, self.descriptor)
            space.write_word(place + 8, self._term("thread", each) + each.addend)

    def _term(self, term: str, each: Relocation) -> int:
        """Return the value of a term of a formula."""
        symbol, known = each.symbol, {"": 0, "P": each.place, "B": self.file.base, "module": 1}
        if term in known:
            return known[term]
        within = symbol.address if symbol is not None else 0
        match term:
            case "S":
                return self._address(symbol)
            case "Z":
                return symbol.size if symbol is not None else 0
            case "G":
                return self.slot("address", self._address(symbol))
            case "GOT":
                return self.got_start
            case "tls":
                return within
            case "thread":
                return within + self.tls_offset
            case "module in GOT":
                return self.slot(term, 1, 0)
            case "module and tls in GOT":
                return self.slot(f"{term} {within}", 1, within)
            case "thread in GOT":
                return self.slot(term, within + self.tls_offset)
            case _:
                return self.slot(f"{term} {within}", self.descriptor, within + self.tls_offset)

    def _store(self, each: Relocation, name: str, size: int, plus: str, minus: str) -> None:
        value, bits = self._term(plus, each) + each.addend - self._term(minus, each), 8 * size
        least = 0 if name == "32" else -(1 << bits - 1)
        most = 1 << bits if name in {"32", "16", "8"} else 1 << bits - 1
        if size < 8 and not least <= value < most:
            what = each.symbol.name if each.symbol is not None and each.symbol.name else "a section"
            raise LoadError(
                f"{self.file.path}: relocation {name} at {each.place:#x}: {what} is too far away; "
                "build with -fPIC, or make a library with -shared"
            )
        self.space.write_word(each.place, value, size)
