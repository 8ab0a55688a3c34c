"""Operations: what programs are made of, collected one after another, and the finished program."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.kernels import ops
from fxframework.kernels.buffers import view
from fxframework.kernels.framing import Framing
from fxframework.kernels.notes import Notes
from fxframework.kernels.output import PART
from fxframework.kernels.program import Program
from fxframework.wire.beside import Computed
from fxframework.wire.cursor import SIZE
from fxframework.wire.expressions import (
    OPERATIONS,
    Calculation,
    Constant,
    Expression,
    Register,
    wrapped,
)
from fxframework.wire.fields import Field
from fxframework.wire.format import Format
from fxframework.wire.framing import numbers_of
from fxframework.wire.state import TextTable

__all__ = [
    "NBYTES", "POS", "SYMBOLS", "Compiled", "UnfitError", "Writer", "is_steady", "key_beside",
    "part_key",
]  # fmt: skip

SYMBOLS = {symbol: number for number, symbol in enumerate(OPERATIONS)}
POS, NBYTES = 0, 1
"""Slots of the place and the size of the record."""
DATA_LOSS_CODES = ("0101", "0102", "0103", "0104")


@attrs.define
class Compiled:
    """A program of a format: operations, entries and literals."""

    format: Format
    code: NDArray[np.int64]
    entries: NDArray[np.int64]
    texts: list[bytes]
    registers: dict[Register, int]
    """Slots of the registers."""
    slots: int
    names: list[tuple[int, int, int]]
    """Table, value and literal of each name of an enumeration."""
    tables: int
    table_numbers: dict[Any, int]
    parts: tuple[int, ...] = ()
    """Slots that say whether parts of lines are kept."""
    mirrored: bool = False
    """Whether it reads words whose bits count from the most significant one."""

    def start(self, source: Source, limits: Limits, notes: Notes, most: int) -> Program:
        """Return the interpreter of the program, at the beginning of a file."""
        slots = np.zeros(self.slots, "i8")
        for register, slot in self.registers.items():
            slots[slot] = register.initial
        for number, slot in enumerate(self.parts):
            slots[slot + 1] = number * PART
        arrays = [
            view(self.code, "i8"),
            view(self.entries, "i8"),
            slots.data,
            np.arange(max(1, self.tables), dtype="i8").data,
        ]
        framing = framing_of(self.format, source, limits, mirrored=self.mirrored)
        counts = len(self.format.classes), max(1, len(self.parts))
        program = Program(framing, arrays, self.texts, notes, most, *counts)
        program.sound_only = int(self.format.choosy)
        most_bytes = self.format.family.most, limits.max_record
        program.longest = min(filter(None, most_bytes), default=0)
        for table, value, literal in self.names:
            program.texts.name(table, value, literal)
        return program


def framing_of(format: Format, source: Source, limits: Limits, *, mirrored: bool) -> Framing:
    """Return the framing for one record at a time; ``mirrored`` is that of ``State``."""
    numbers, kinds = numbers_of(format, limits, mirrored=mirrored)
    data = np.ascontiguousarray(source.data) if source.size else np.zeros(0, np.uint8)
    words = data[: data.size // 8 * 8].view("<i8")
    framing = Framing(
        view(data, "u1"),
        view(words if words.size else np.zeros(1, "<i8"), "i8"),
        view(np.array(numbers, "i8"), "i8"),
        view(np.array([wrapped(number) for number in kinds], "i8"), "i8"),
    )
    framing.big = int(format.order == "big")
    return framing


def is_steady(field: Field) -> bool:
    """Return whether what is shown of a field depends on registers alone."""
    leaves = (leaf for each in field.expressions() for leaf in each.leaves())
    return isinstance(field, Computed) and all(
        isinstance(leaf, Register | Constant) and leaf is not SIZE for leaf in leaves
    )


def steady_runs(fields: Iterable[Field]) -> Iterator[list[Computed]]:
    """Yield the fields that follow one another and depend on registers alone."""
    for steady, run in itertools.groupby(fields, is_steady):
        if steady:
            yield [each for each in run if isinstance(each, Computed)]


def part_key(run: Iterable[Computed]) -> tuple[Any, ...]:
    """Return what is the same for fields that are shown in the same way."""
    return tuple((each.key, id(each.of), id(each.when), each.nbits, each.signed) for each in run)


class UnfitError(Exception):
    """A program cannot do this; the record is for the object decoder."""


def key_beside(field: Field, what: str, before: bytes) -> bytes:
    """Return a key of JSON beside that of a field, and the beginning of its value."""
    return b"," + orjson.dumps(f"{field.key}_{what}") + b":" + before


class Writer:
    """Collects operations, literals and slots of a program."""

    def __init__(self, format: Format) -> None:
        self.format = format
        self.left: Sequence[Any] = ()
        """Classes whose records are handed over."""
        self.code: list[int] = []
        self.texts: list[bytes] = []
        self.literals: dict[bytes, int] = {}
        self.slots: dict[Expression, int] = {}
        self.used = 2
        self.registers: dict[Register, int] = {}
        for register in format.registers:
            self.registers[register] = self.slots[register] = self.new()
        self.slots[SIZE] = NBYTES
        self.tables: dict[Any, int] = {each: n for n, each in enumerate(format.text_tables)}
        self.count = len(self.tables)
        self.names: list[tuple[int, int, int]] = []
        self.sums: dict[tuple[int, int], int] = {}
        """Slots of registers to which a field is added, by both."""
        self.parts: dict[tuple[Any, ...], tuple[int, set[Expression]]] = {}
        """Slot and registers of each part of a line that depends on registers alone."""
        for cls in format.classes:
            for run in steady_runs(cls.layout.shown):
                values = [value for each in run for value in each.expressions()]
                registers = {leaf for value in values for leaf in value.leaves()}
                if part_key(run) not in self.parts:
                    self.parts[part_key(run)] = self.new(3), registers
        self.fixed()

    def new(self, count: int = 1) -> int:
        """Return a new slot, the first of ``count``."""
        self.used += count
        return self.used - count

    def op(self, code: int, *operands: int) -> int:
        """Add an operation; return its place."""
        at = len(self.code)
        self.code += [code, *(wrapped(each) for each in operands), 0, 0, 0, 0, 0][: ops.WIDTH]
        return at

    def patch(self, at: int, operand: int) -> None:
        """Set an operand of an earlier operation to the place of the next one."""
        self.code[at + 1 + operand] = len(self.code)

    def literal(self, text: bytes) -> int:
        """Return the number of a literal."""
        if text not in self.literals:
            self.literals[text] = len(self.texts)
            self.texts.append(text)
        return self.literals[text]

    def around(self, table: TextTable, field: Field) -> int:
        """Return the number of what surrounds the number of an unknown text; a key follows."""
        self.texts += [f'"<{table.name}#'.encode(), b'>"', key_beside(field, "bytes_hex", b'"')]
        return len(self.texts) - 3

    def fixed(self) -> None:
        """Add the literals that the interpreter knows by number."""
        prefix = self.format.codes
        self.texts += [
            b'{"record":"damaged","offset":', b',"nbytes":', b',"code":"', b'"', b'"}\n',
            b'{"record":"unknown","offset":', b',"type":', b'{"record":"padding","offset":', b"}\n",
        ]  # fmt: skip
        self.texts += [b'"', "\ufffd".encode(), b'"NaN"', b'"Infinity"', b'"-Infinity"']
        self.texts += [f'{prefix}{number}"'.encode() for number in DATA_LOSS_CODES]
        self.texts[3] = b',"raw":"'

    def table(self, values: Mapping[int, Any]) -> int:
        """Return the number of a table that gives the literals of names."""
        number = self.count
        self.count += 1
        for value, name in values.items():
            self.names.append((number, wrapped(value), self.literal(orjson.dumps(name))))
        return number

    def set(self, register: Expression, to: int | Constant) -> None:
        """Set a register, on which parts of lines may depend, to that of a slot or a constant."""
        constant = isinstance(to, Constant)
        number = to.number if isinstance(to, Constant) else to
        self.op(ops.CONST if constant else ops.MOVE, self.slots[register], number)
        for part, registers in self.parts.values():
            if register in registers:
                self.op(ops.CONST, part, 0)

    def names_of(self, key: bytes, names: Mapping[int, Any]) -> int:
        """Return the first of the literals of dense names, each behind a key; last is the key."""
        first = len(self.texts)
        self.texts += [key + orjson.dumps(names[number]) for number in range(len(names))]
        self.texts.append(key)
        return first

    # --- Expressions ----------------------------------------------------------------------------

    def calculate(self, value: Expression) -> int:
        """Add what computes an expression; return its slot."""
        if value in self.slots:
            return self.slots[value]
        if isinstance(value, Calculation) and value.symbol == "+":
            shared = self.sums.get((id(value.left), id(value.right)))
            if shared is not None:
                return shared
        slot = self.new()
        if isinstance(value, Constant):
            self.op(ops.CONST, slot, value.number)
            return slot
        if not isinstance(value, Calculation):
            raise UnfitError
        left, right = self.calculate(value.left), self.calculate(value.right)
        self.op(ops.CALC, slot, SYMBOLS[value.symbol], left, right)
        return slot

    def kept(self, value: Expression) -> int:
        """Add what computes an expression into a slot of its own; return the slot."""
        slot = self.new()
        self.op(ops.MOVE, slot, self.calculate(value))
        return slot
