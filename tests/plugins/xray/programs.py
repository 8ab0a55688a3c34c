"""Small ELF files with an instrumentation map, made by hand."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import attrs

MAP_ADDRESS = 0x1000
EM_X86_64 = 62
R_RELATIVE = 8


class Sled(NamedTuple):
    """An entry of the map. ``section`` is that of the function, in an object."""

    address: int
    function: int
    kind: int = 0
    always: int = 1
    version: int = 2
    section: int = 0


class Symbol(NamedTuple):
    value: int
    size: int
    name: str
    type: int = 2
    section: int = 1


@attrs.frozen(kw_only=True)
class Program:
    """A program, or with ``relocatable`` an object, which has a map for each list of sleds."""

    maps: Sequence[Sequence[Sled]]
    symbols: Sequence[Symbol] = ()
    bits: int = 64
    order: str = "<"
    relocatable: bool = False
    dynamic_symbols: bool = False
    moved: bool = False
    """Whether entries before version 2 are zeros that the loader fills in."""

    def pack(self) -> bytes:
        sections = [_Section("", 0)]
        names = bytearray(b"\0")
        table = bytearray(self._symbol(0, 0, 0, 0, 0))
        for symbol in sorted(self.symbols, key=lambda each: each.type != 3):
            table += self._symbol(
                len(names), symbol.value, symbol.size, symbol.type | 0x10, symbol.section
            )
            names += symbol.name.encode("utf-8", "surrogateescape") + b"\0"
        strings, symbols = 1, 2
        sections.append(_Section(".strtab", 3, bytes(names)))
        kind = (".dynsym", 11) if self.dynamic_symbols else (".symtab", 2)
        sections.append(
            _Section(*kind, bytes(table), link=strings, entry=24 if self.bits == 64 else 16)
        )
        address = MAP_ADDRESS
        for sleds in self.maps:
            start = 0 if self.relocatable else address
            data, relocations = self._map(sleds, start)
            sections.append(_Section("xray_instr_map", 1, data, address=start))
            if relocations:
                info = len(sections) - 1 if self.relocatable else 0
                sections.append(
                    _Section(".rela", 4, relocations, link=symbols, info=info, entry=24)
                )
            address += len(data)
        return self._file(sections)

    def _symbol(self, name: int, value: int, size: int, info: int, section: int) -> bytes:
        if self.bits == 64:
            return struct.pack(self.order + "IBBHQQ", name, info, 0, section, value, size)
        return struct.pack(self.order + "IIIBBH", name, value, size, info, 0, section)

    def _map(self, sleds: Sequence[Sled], start: int) -> tuple[bytes, bytes]:
        word, form = self.bits // 8, self.order + ("Q" if self.bits == 64 else "I")
        mask = (1 << self.bits) - 1
        data, relocations = bytearray(), bytearray()
        for sled in sleds:
            for value in (sled.address, sled.function):
                at = start + len(data)
                if self.relocatable or (self.moved and sled.version < 2):
                    # The first symbol of the section stands for it.
                    symbol = self._section_symbol(sled.section) if self.relocatable else 0
                    relocations += struct.pack(
                        self.order + "QQq", at, symbol << 32 | R_RELATIVE, value
                    )
                    stored = 0
                elif sled.version >= 2:
                    stored = value - at
                else:
                    stored = value
                data += struct.pack(form, stored & mask)
            data += bytes((sled.kind, sled.always, sled.version)).ljust(4 * word - 2 * word, b"\0")
        assert self.bits == 64 or not relocations
        return bytes(data), bytes(relocations)

    def _section_symbol(self, section: int) -> int:
        ordered = sorted(self.symbols, key=lambda each: each.type != 3)
        return 1 + next(
            i for i, each in enumerate(ordered) if each.type == 3 and each.section == section
        )

    def _file(self, sections: list[_Section]) -> bytes:
        names = bytearray()
        sections.append(_Section(".shstrtab", 3))
        places = []
        for section in sections:
            places.append(len(names))
            names += section.name.encode() + b"\0"
        sections[-1] = sections[-1]._replace(data=bytes(names))
        wide = self.bits == 64
        head, row = (64, 64) if wide else (52, 40)
        body = bytearray()
        headers = bytearray()
        for place, section in zip(places, sections, strict=True):
            fields = (
                place, section.type, 0, section.address, head + len(body), len(section.data),
                section.link, section.info, 1, section.entry,
            )  # fmt: skip
            headers += struct.pack(self.order + ("IIQQQQIIQQ" if wide else "10I"), *fields)
            body += section.data
        identity = b"\x7fELF" + bytes((2 if wide else 1, 1 if self.order == "<" else 2, 1))
        form = self.order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH")
        machine = EM_X86_64 if wide else 40
        return (
            identity.ljust(16, b"\0")
            + struct.pack(
                form, 1 if self.relocatable else 3, machine, 1, 0, 0, head + len(body), 0, head,
                0, 0, row, len(sections), len(sections) - 1,
            )
            + body
            + headers
        )  # fmt: skip


class _Section(NamedTuple):
    name: str
    type: int
    data: bytes = b""
    address: int = 0
    link: int = 0
    info: int = 0
    entry: int = 0
