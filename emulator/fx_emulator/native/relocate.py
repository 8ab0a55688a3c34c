"""Relocations of x86-64: the value and size of each type, as the psABI defines them."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from fx_emulator.native.elf import RELR, ObjectFile, Relocation, Symbol
from fx_emulator.native.errors import LoadError
from fx_emulator.native.space import Space

_NONE = 0
_COPY = 5
_TLSDESC_CALL = 35
_TLSDESC = 36
_IRELATIVE = 37
_MODULE = 1
"""Number of the file among the modules with thread-local variables: it is the only one."""
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
    _slots: dict[tuple[str, int], int] = attrs.field(factory=dict)
    """Addresses of GOT entries, by kind and first word."""
    _used_words: int = 0
    """Words of the GOT that are in use."""
    _stubs: dict[int, int] = attrs.field(factory=dict)
    """The stub that jumps through a GOT entry."""
    deferred: list[tuple[int, int]] = attrs.field(factory=list)
    """Places of IRELATIVE relocations, and the resolvers to call for them."""

    def apply(self) -> None:
        """Apply all relocations. Raises LoadError that lists all unknown types."""
        used_types = {relocation.type for relocation in self.file.relocations}
        unknown_types = sorted(used_types - _NUMBERS.keys() - _SPECIAL)
        if unknown_types:
            type_names = ", ".join(f"type {number}" for number in unknown_types)
            raise LoadError(
                f"{self.file.path}: unknown relocations: {type_names}; "
                "build without -mcmodel=large and without options for other loaders"
            )
        for relocation in self.file.relocations:
            self._apply(relocation)

    def slot(self, kind: str, *words: int) -> int:
        """Return the address of the GOT entry of these words; made unless there is one.

        Entries of one kind that begin with the same word are the same.
        """
        slot_key = (kind, words[0])
        if slot_key not in self._slots:
            slot_address = self.got_start + 8 * self._used_words
            for word_number, word in enumerate(words):
                self.space.write_word(slot_address + 8 * word_number, word)
            self._used_words += len(words)
            self._slots[slot_key] = slot_address
        return self._slots[slot_key]

    def _address(self, symbol: Symbol | None) -> int:
        if symbol is None:
            return 0
        if symbol.kind == "ifunc" and symbol.defined:
            return self._indirect(symbol)
        return self.resolve(symbol)

    def _indirect(self, symbol: Symbol) -> int:
        """Return a stub that jumps through a word, which the function's resolver fills."""
        slot_address = self.slot("ifunc", symbol.address)
        if slot_address not in self._stubs:
            self.deferred.append((slot_address, symbol.address))
            # jmp *rel32(%rip): 6 bytes, so that an entry of one word holds it; relative to its end.
            stub_address = self.slot("stub", slot_address)
            distance = slot_address - (stub_address + 6)
            self.space.write(
                stub_address, b"\xff\x25" + distance.to_bytes(4, "little", signed=True)
            )
            self._stubs[slot_address] = stub_address
        return self._stubs[slot_address]

    def _apply(self, relocation: Relocation) -> None:
        space = self.space
        place = relocation.place
        if relocation.type in _NUMBERS:
            self._store(relocation, *_NUMBERS[relocation.type])
        elif relocation.type == RELR:
            space.write_word(place, space.read_word(place) + self.file.base)
        elif relocation.type == _IRELATIVE:
            self.deferred.append((place, self.file.base + relocation.addend))
        elif relocation.type == _COPY:
            symbol = relocation.symbol
            assert symbol is not None  # noqa: S101
            space.write(place, space.read(self.resolve(symbol), symbol.size))
        elif relocation.type == _TLSDESC:
            space.write_word(place, self.descriptor)
            space.write_word(place + 8, self._term("thread", relocation) + relocation.addend)

    def _term(self, term: str, relocation: Relocation) -> int:
        """Return the value of a term of a formula."""
        symbol = relocation.symbol
        # The address of a thread-local variable is its offset in their initial image.
        tls_offset = symbol.address if symbol is not None else 0
        thread_offset = tls_offset + self.tls_offset
        match term:
            case "":
                return 0
            case "P":
                return relocation.place
            case "B":
                return self.file.base
            case "S":
                return self._address(symbol)
            case "Z":
                return symbol.size if symbol is not None else 0
            case "GOT":
                return self.got_start
            case "G":
                return self.slot("address", self._address(symbol))
            case "module":
                return _MODULE
            case "tls":
                return tls_offset
            case "thread":
                return thread_offset
            case "module in GOT":
                return self.slot(term, _MODULE, 0)
            # Entries of two words, whose first one is always the same, differ by their kind.
            case "module and tls in GOT":
                return self.slot(f"{term} {tls_offset}", _MODULE, tls_offset)
            case "thread in GOT":
                return self.slot(term, thread_offset)
            case _:
                return self.slot(f"{term} {tls_offset}", self.descriptor, thread_offset)

    def _store(self, relocation: Relocation, name: str, size: int, plus: str, minus: str) -> None:
        """Store the number of a relocation; the rest is its entry in ``_NUMBERS``."""
        value = self._term(plus, relocation) + relocation.addend - self._term(minus, relocation)
        if size < 8 and not _fits(value, name, 8 * size):
            symbol = relocation.symbol
            target_name = symbol.name if symbol is not None and symbol.name else "a section"
            raise LoadError(
                f"{self.file.path}: relocation {name} at {relocation.place:#x}: {target_name} is "
                "too far away; build with -fPIC, or make a library with -shared"
            )
        self.space.write_word(relocation.place, value, size)


def _fits(value: int, name: str, bits: int) -> bool:
    """Return whether a relocation's value fits its bits: unsigned, signed, or either."""
    if name == "32":
        return 0 <= value < 1 << bits
    if name in {"16", "8"}:
        return -(1 << bits - 1) <= value < 1 << bits
    return -(1 << bits - 1) <= value < 1 << bits - 1
