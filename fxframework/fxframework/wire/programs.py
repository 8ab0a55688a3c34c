"""Programs: a declared format as operations for the interpreter ``fxframework.kernels.program``.

For each class of records there are operations that check its fields and write a line of record
JSON, or rows. What a program cannot do, it leaves to the object decoder, record by record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.kernels import ops
from fxframework.kernels.buffers import view
from fxframework.kernels.notes import Notes
from fxframework.kernels.pools import Pool
from fxframework.kernels.program import Program
from fxframework.wire.columns import WHICH, Rows, differing
from fxframework.wire.cursor import SIZE
from fxframework.wire.expressions import (
    OPERATIONS,
    Calculation,
    Constant,
    Expression,
    Register,
    wrapped,
)
from fxframework.wire.fields import Bits, Field, Float, Integer, Mark, Number, Span, Text
from fxframework.wire.format import Format, kinds_of
from fxframework.wire.framing import framing_of
from fxframework.wire.lists import Listed
from fxframework.wire.records import OTHER, Layout
from fxframework.wire.state import TextTable

__all__ = ["CODES", "COPIES", "Compiled", "compile_copy", "compile_lines", "compile_rows"]

COPIES = "copies"
"""A table of the places and sizes of records."""
CODES = 256
"""Numbers of rules that a program may report."""
SYMBOLS = {symbol: number for number, symbol in enumerate(OPERATIONS)}
POS, NBYTES = 0, 1
"""Slots of the place and the size of the record."""
DATA_LOSS_CODES = ("0101", "0102", "0103", "0104")


@attrs.define
class Compiled:
    """A program of a format: operations, entries, literals and columns."""

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
    columns: dict[str, list[str]]
    """Cells of each table, by name of the column; texts and bytes take two."""
    lines: bool
    table_numbers: dict[Any, int]
    copied: tuple[Any, ...] = ()
    """Classes of which the table ``COPIES`` has places."""

    def start(self, source: Source, limits: Limits, pool: Pool, notes: Notes, most: int) -> Program:
        """Return the interpreter of the program, at the beginning of a file."""
        slots = np.zeros(self.slots, "i8")
        for register, slot in self.registers.items():
            slots[slot] = register.initial
        sizes = [len(cells) for cells in self.columns.values()]
        arrays = [
            view(self.code, "i8"),
            view(self.entries, "i8"),
            slots.data,
            np.arange(max(1, self.tables), dtype="i8").data,
            view(np.array(sizes, "i8"), "i8"),
        ]
        framing = framing_of(self.format, source, limits)
        program = Program(framing, arrays, self.texts, pool, notes, most, len(self.format.classes))
        program.lines = int(self.lines)
        for table, value, literal in self.names:
            program.texts.put(table, value, literal)
        return program


class UnfitError(Exception):
    """A program cannot do this; the record is for the object decoder."""


def key_beside(field: Field, what: str, before: bytes) -> bytes:
    """Return a key of JSON beside that of a field, and the beginning of its value."""
    return b"," + orjson.dumps(f"{field.key}_{what}") + b":" + before


class Writer:
    """Collects operations, literals and slots of a program."""

    def __init__(self, format: Format, *, lines: bool, fields: Sequence[Rows]) -> None:
        self.format = format
        self.lines = lines
        self.rows = fields
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
        self.columns: dict[str, list[str]] = {}
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

    def patch(self, at: int, operand: int, value: int | None = None) -> None:
        """Set an operand of an earlier operation: by default the place of the next one."""
        self.code[at + 1 + operand] = len(self.code) if value is None else value

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

    # --- Expressions ----------------------------------------------------------------------------

    def calculate(self, value: Expression) -> int:
        """Add what computes an expression; return its slot."""
        if value in self.slots:
            return self.slots[value]
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


class Compiler:
    """Translates the layouts of a format into operations of one ``Writer``."""

    def __init__(self, out: Writer, *, big: bool) -> None:
        self.out = out
        self.big = big
        self.format = out.format
        self.word: Field | None = None
        """The field that begins the word at hand; None if it is another one."""
        self.saved: dict[Field, int] = {}
        self.start = POS
        self.effects: list[tuple[int, ...]] = []
        self.refs: list[tuple[str, int, int]] = []
        """Name, slot and flag (-1: always there) of each reference."""
        self.needed: set[Expression] = set()
        self.sinks: dict[Field, list[tuple[int, str]]] = {}
        self.tables: list[int] = []
        """The tables of the record, if they are more than one."""
        self.behind = "", b""
        """A field, and what a line has behind it: the type of a part."""

    # --- Records --------------------------------------------------------------------------------

    def record(self, choices: list[Any]) -> int:
        """Add the operations of the classes for one kind; return the first one's place."""
        begin = len(self.out.code)
        for cls in choices:
            when = cls.layout.when
            skip = -1
            if when is not None:
                skip = self.out.op(ops.JUMPZ, self.out.calculate(when))
            self.single(cls)
            if skip < 0:
                return begin
            self.out.patch(skip, 1)
        self.out.op(ops.HANDOVER)
        return begin

    def single(self, cls: Any) -> None:
        """Add the operations of one class; a hand-over if it needs more than there is."""
        out = self.out
        kept = len(out.code)
        self.word, self.saved, self.effects, self.refs = None, {}, [], []
        self.start = POS
        if not out.lines and cls in getattr(self.format.capture, "watch", ()):
            out.op(ops.HANDOVER)
            return
        rows = [each for each in out.rows if each.record is cls]
        self.sinks = self._sinks(rows)
        self.tables = [self._table(each) for each in rows] if len(rows) > 1 else []
        self.needed = self._needed(cls.layout, rows)
        try:
            self._record(cls, rows)
        except UnfitError:
            del out.code[kept:]
            out.op(ops.HANDOVER)

    def _record(self, cls: Any, rows: list[Rows]) -> None:
        out, layout = self.out, cls.layout
        if out.lines:
            out.op(
                ops.BEGIN,
                out.literal(f'{{"record":{orjson.dumps(cls.record).decode()},"offset":'.encode()),
                out.literal(b',"nbytes":'),
            )
        for each in rows:
            out.op(ops.ROW, self._table(each))
            out.op(ops.PUTPOS, 0, 0, self._column(each, "offset"))
            for name in out.columns[each.table]:
                if name not in each.sources and name not in ("offset", "nbytes"):
                    slot = out.new()
                    out.op(ops.CONST, slot, each.default(name))
                    out.op(ops.PUTSLOT, slot, 0, self._column(each, name))
        self.fields(layout, "")
        if out.lines:
            self.show_refs()
            out.op(ops.FINISH)
        values = [out.kept(value) for value in layout.sets.values()]
        for effect in self.effects:
            out.op(*effect)
        for register, slot in zip(layout.sets, values, strict=True):
            out.op(ops.MOVE, out.slots[register], slot)
        for table in layout.clears:
            out.op(ops.CLEAR, out.tables[table])
        for each in rows:
            if self.tables:
                out.op(ops.ROW, self._table(each))
            if each.table == COPIES:
                out.op(ops.PUTPOS, 1, 0, self._column(each, "nbytes"))
            for name, source in each.sources.items():
                if not isinstance(source, Field):
                    out.op(ops.PUTSLOT, out.calculate(source), 0, self._column(each, name))
            out.op(ops.ROW, self._table(each), 1)
        out.op(ops.END, self.format.classes.index(cls))

    def _table(self, rows: Rows) -> int:
        return list(self.out.columns).index(rows.table)

    def _column(self, rows: Rows, name: str) -> int:
        before = 0
        for table, cells in self.out.columns.items():
            if table == rows.table:
                return before + cells.index(name)
            before += len(cells)
        raise AssertionError(name)

    def _sinks(self, rows: list[Rows]) -> dict[Field, list[tuple[int, str]]]:
        """Return the columns of each field, with their kinds."""
        found: dict[Field, list[tuple[int, str]]] = {}
        for each in rows:
            for name, source in each.sources.items():
                if isinstance(source, Field):
                    kind = each.known[name].kind
                    found.setdefault(source, []).append((self._column(each, name), kind))
        return found

    def columns(self, field: Field) -> Iterator[tuple[int, str]]:
        """Yield the columns of a field, with their kinds; go to the row of each first."""
        for column, kind in self.sinks.get(field, ()):
            if self.tables:
                before = 0
                for number, cells in enumerate(self.out.columns.values()):
                    if before <= column < before + len(cells) and number in self.tables:
                        self.out.op(ops.ROW, number)
                    before += len(cells)
            yield column, kind

    def _needed(self, layout: Layout, rows: list[Rows]) -> set[Expression]:
        """Return the fields whose values are used again, so that they need slots."""
        found: set[Expression] = set()
        for each in [*layout.sets.values(), *(e for r in rows for e in r.expressions)]:
            found.update(each.leaves())
        for field in layout.fields:
            for each in field.expressions():
                found.update(each.leaves())
        return found

    # --- Fields ---------------------------------------------------------------------------------

    def fields(self, layout: Layout, prefix: str) -> None:
        """Add the operations of all fields; their keys of JSON follow ``prefix``."""
        out = self.out
        in_file = [field.name for field in layout.fields if field in layout.shown]
        if out.lines and [field.name for field in layout.shown] != in_file:
            raise UnfitError  # another order than that of the file
        if layout.measured or layout.family.rules or any(field.rules for field in layout.fields):
            raise UnfitError
        sized = bool(layout.fixed or layout.family.size is not None)
        if layout.tail:
            out.op(ops.MARKSPAN, 1, layout.tail)
        tail = False
        for field in layout.fields:
            if field.tail and not tail:
                self.body(layout, layout.tail)
                tail = True
            skip = -1
            if field.when is not None:
                if out.lines and prefix == "{":
                    raise UnfitError
                if isinstance(field, Bits) and field in layout.words:
                    raise UnfitError
                if field in self.needed:
                    out.op(ops.CONST, self.slot(field), 0)
                self.default(field)
                skip = out.op(ops.JUMPZ, out.calculate(field.when))
            self.field(layout, field, prefix)
            if out.lines and self.behind[0] == field.name:
                out.op(ops.LIT, out.literal(self.behind[1]))
            if skip >= 0:
                out.patch(skip, 1)
                self.word = None
            if field in layout.shown:
                prefix = ","
        if sized and not tail:
            self.body(layout, 0)

    def body(self, layout: Layout, tail: int) -> None:
        """Add the check of what the fields leave of the record."""
        unit = 0 if layout.fixed else layout.align
        if unit & unit - 1:
            raise UnfitError
        self.out.op(ops.BODY, unit, tail, self.start)

    def default(self, field: Field) -> None:
        """Add the column of a field that is absent."""
        for column, kind in self.columns(field):
            slot = self.out.new()
            self.out.op(ops.CONST, slot, -1 if kind == "code" else 0)
            self.out.op(ops.PUTSLOT, slot, 0, column)
            if kind in ("text", "bytes"):
                self.out.op(ops.PUTSLOT, slot, 0, column + 1)

    def slot(self, field: Expression) -> int:
        """Return the slot of a field."""
        if field not in self.out.slots:
            self.out.slots[field] = self.out.new()
        return self.out.slots[field]

    def field(self, layout: Layout, field: Field, prefix: str) -> None:
        """Add the operations of a field."""
        if isinstance(field, Number):
            self.number(layout, field, prefix)
        elif isinstance(field, Float):
            self.float(field, prefix)
        elif isinstance(field, Span):
            self.span(field, prefix)
        elif isinstance(field, Listed):
            self.listed(field, prefix)
        else:
            raise UnfitError

    def key(self, field: Field, prefix: str, before: bytes = b"") -> int:
        """Return the literal of a key of JSON."""
        comma = b"" if prefix == "{" else b","
        return self.out.literal(comma + orjson.dumps(field.key) + b":" + before)

    def beside(self, field: Field, what: str, before: bytes) -> int:
        """Return the literal of a key beside that of a field."""
        return self.out.literal(key_beside(field, what, before))

    def load(self, layout: Layout, field: Number) -> tuple[int, int]:
        """Add what brings the word of a number to hand; return shift and mask."""
        out = self.out
        if isinstance(field, Integer):
            out.op(ops.LOAD, field.nbytes, int(self.big))
            self.word = field
            return 0, -1 if field.nbytes == 8 else (1 << field.nbits) - 1
        assert isinstance(field, Bits)  # noqa: S101 (the other kind of number)
        if field in layout.words:
            nbytes, reserved = layout.words[field]
            out.op(ops.LOAD, nbytes, int(self.big))
            self.word = field
            if reserved:
                out.op(ops.RESERVED, reserved, 0, nbytes)
            places = [n for n, f in enumerate(layout.fields) if layout.word_of.get(f) is field]
            if places[-1] - places[0] >= len(places):  # other fields lie between
                self.saved[field] = out.new()
                out.op(ops.SAVE, self.saved[field])
        first = layout.word_of[field]
        if self.word is not first:
            if first not in self.saved or layout.is_reserved(field):
                raise UnfitError
            out.op(ops.USE, self.saved[first])
            self.word = first
        return field.low, -1 if field.nbits == 64 else (1 << field.nbits) - 1

    def number(self, layout: Layout, field: Number, prefix: str) -> None:
        """Add the operations of an integer."""
        out = self.out
        shift, mask = self.load(layout, field)
        sign = 1 << field.nbits - 1 if field.signed and field.nbits < 64 else 0
        if layout.is_reserved(field):
            nbytes = (
                layout.words[layout.word_of[field]][0]
                if field in layout.word_of
                else field.nbits // 8
            )
            out.op(ops.RESERVED, mask << shift if mask > 0 else -1, shift, nbytes)
        by_slot = (
            field in self.needed
            or field.equals is not None
            or field.below is not None
            or field.values
            or field.refers is not None
            or field.sets is not None
            or field.adds is not None
        )
        if field.role == "size" and field not in self.needed:
            by_slot = False
        if by_slot:
            out.op(ops.KEEP, shift, mask, self.slot(field), sign)
            self.check(field)
        if isinstance(field, Mark):
            if out.lines:
                name = orjson.dumps(field.names[int(self.big)])
                out.op(ops.LIT, self.key(field, prefix, name))
            return
        shown = field.public and field in layout.public
        if out.lines and shown:
            self.show_number(field, prefix, shift, mask, sign)
        for column, _ in self.columns(field):
            if field.refers is not None:
                first = int(column == self.sinks[field][0][0])
                out.op(ops.PUTREF, self.slot(field), out.tables[field.refers], column, first)
            else:
                out.op(ops.PUT, shift, mask, column, sign)

    def check(self, field: Number) -> None:
        """Add the checks of a number, and what it changes."""
        out, slot = self.out, self.slot(field)
        for checksum in field.checksums:
            if isinstance(field, Bits):
                raise UnfitError
            out.slots[checksum] = out.new()
            nbytes = field.nbits // 8
            out.op(ops.CHECKSUM, out.slots[checksum], checksum.number, nbytes, self.start)
        if field.equals is not None:
            same = Calculation("==", field, field.equals)
            out.op(ops.EXPECT, out.calculate(same), 106, 1, slot)
        if field.values:
            names = out.table(field.values)
            out.op(ops.KNOWN, slot, names, 106)
        if field.below is not None:
            out.op(ops.EXPECT, out.calculate(field < field.below), 108, 0, slot)
        if field.refers is not None and not self.looked_up(field):
            out.op(ops.KNOWN, slot, out.tables[field.refers], 108)
        if field.sets is not None:
            self.effects.append((ops.MOVE, out.slots[field.sets], slot))
        if field.adds is not None:
            total = out.new()
            out.op(ops.CALC, total, SYMBOLS["+"], out.slots[field.adds], slot)
            self.effects.append((ops.MOVE, out.slots[field.adds], total))

    def looked_up(self, field: Field) -> bool:
        """Return whether a line or a column looks the text up once, which reports it too."""
        return self.out.lines or field in self.sinks

    def show_number(self, field: Number, prefix: str, shift: int, mask: int, sign: int) -> None:
        """Add what writes a number into JSON."""
        out = self.out
        key = self.key(field, prefix)
        if field.flag:
            out.op(ops.NAMES, shift, mask, key, out.table({0: False, 1: True}))
        elif field.values:
            if field.signed:
                raise UnfitError
            out.op(ops.NAMES, shift, mask, key, out.table(field.values))
        elif field.refers is not None:
            slot = self.slot(field)
            around = out.around(field.refers, field)
            out.op(ops.REF, slot, out.tables[field.refers], key, around)
            self.refs.append((field.name, slot, -1))
        elif field.signed:
            out.op(ops.SIGNED, shift, mask, key, sign)
        else:
            out.op(ops.NATURAL, shift, mask, key)

    def show_refs(self) -> None:
        """Add the numbers of references."""
        out = self.out
        for name, slot, flag in self.refs:
            key = orjson.dumps(name) + b":"
            skip = -1 if flag < 0 else out.op(ops.JUMPZ, flag, 0)
            first, later = out.literal(b',"refs":{' + key), out.literal(b"," + key)
            out.op(ops.REFNUM, slot, first, later)
            if skip >= 0:
                out.patch(skip, 1)
        if self.refs:
            out.op(ops.REFEND, out.literal(b"}"))

    def float(self, field: Float, prefix: str) -> None:
        """Add the operations of a double or a float."""
        out = self.out
        out.op(ops.LOAD, field.nbytes, int(self.big))
        self.word = field
        if out.lines:
            code = ops.REAL if field.nbytes == 8 else ops.HALFREAL
            out.op(code, self.key(field, prefix), self.beside(field, "bits", b'"0x'))
        for column, _ in self.columns(field):
            out.op(ops.PUT, 0, -1 if field.nbytes == 8 else 0xFFFFFFFF, column)

    def span(self, field: Span, prefix: str) -> None:
        """Add the operations of text and bytes."""
        out = self.out
        if isinstance(field, Text) and field.entry is not None:
            self.reference(field, prefix)
            return
        self.find(field)
        if isinstance(field, Text):
            out.op(ops.UTF8)
        if out.lines:
            if isinstance(field, Text):
                out.op(ops.TEXT, self.key(field, prefix), self.beside(field, "bytes_hex", b'"'))
            else:
                out.op(ops.HEX, self.key(field, prefix, b'"'), out.literal(b'"'))
        self.put_span(field)
        if isinstance(field, Text) and field.defines is not None:
            index = out.calculate(field.defines.index)
            place = out.new(2)
            out.op(ops.MARKSPAN, 0, place)
            self.effects.append((ops.DEFINE, index, out.tables[field.defines.table], place))
        if field.aligned > 1:
            self.align(field.aligned)

    def find(self, field: Span) -> None:
        """Add what finds the bytes of a span."""
        out = self.out
        if field.until:
            out.op(ops.UNTIL, field.until[0])
        elif field.nbytes is None:
            out.op(ops.REST)
        elif field.fixed is not None:
            out.op(ops.SPAN, field.fixed, -1)
        else:
            out.op(ops.SPAN, 0, out.calculate(field.nbytes))
        if field.pad:
            out.op(ops.TRIM, field.pad[0])

    def put_span(self, field: Span) -> None:
        """Add the columns of a span."""
        for column, kind in self.columns(field):
            code = ops.PUTCODE if kind == "code" else ops.PUTSPAN
            self.out.op(code, 0, 0, column)

    def align(self, unit: int) -> None:
        """Add what skips padding."""
        if unit & unit - 1:
            raise UnfitError
        self.out.op(ops.ALIGN, unit, self.start)

    def reference(self, field: Text, prefix: str) -> None:
        """Add the operations of a text that may be inline, or declared before."""
        out = self.out
        assert field.entry is not None  # noqa: S101 (asked only of references)
        if field.entry.table.closed:
            raise UnfitError
        table = out.tables[field.entry.table]
        index = out.calculate(field.entry.index)
        shown = self.key(field, prefix) if out.lines else 0
        flag = out.new()
        out.op(ops.CONST, flag, 0)
        ends: list[int] = []
        if field.inline:
            marked = out.calculate(field.entry.index & field.inline)
            skip = out.op(ops.JUMPZ, marked, 0)
            out.op(ops.SPAN, 0, out.calculate(field.entry.index & field.inline - 1))
            out.op(ops.UTF8)
            if out.lines:
                out.op(ops.TEXT, shown, self.beside(field, "bytes_hex", b'"'))
            for column, _ in self.columns(field):
                out.op(ops.PUTCODE, 0, 0, column)
            if field.aligned > 1:
                self.align(field.aligned)
            ends.append(out.op(ops.JUMP, 0))
            out.patch(skip, 1)
        if field.empty is not None:
            skip = out.op(ops.JUMPZ, out.calculate(field.entry.index == field.empty), 0)
            if out.lines:
                out.op(ops.LIT, self.key(field, prefix, b'""'))
            nothing = out.new()
            out.op(ops.CONST, nothing, 0)
            for column, _ in self.columns(field):
                out.op(ops.PUTSLOT, nothing, 0, column)
            ends.append(out.op(ops.JUMP, 0))
            out.patch(skip, 1)
        if not self.looked_up(field):
            out.op(ops.KNOWN, index, table, 108)
        out.op(ops.CONST, flag, 1)
        if out.lines:
            around = out.around(field.entry.table, field)
            out.op(ops.REF, index, table, shown, around)
            self.refs.append((field.name, index, flag))
        for column, _ in self.columns(field):
            out.op(ops.PUTREF, index, table, column, int(column == self.sinks[field][0][0]))
        for end in ends:
            out.patch(end, 0)

    def listed(self, field: Listed, prefix: str) -> None:
        """Add the operations of a list."""
        out = self.out
        out.op(ops.LIT, self.key(field, prefix, b"[")) if out.lines else None
        again = self.begin_list(field)
        start = len(out.code)
        if isinstance(field.item, Integer):
            self.integer_item(field.item)
        else:
            self.part(field.item)
        self.end_list(field, again, start)
        if out.lines:
            out.op(ops.LIT, out.literal(b"]"))
        self.word = None

    def begin_list(self, field: Listed) -> tuple[int, int]:
        """Add the beginning of a loop; return the slot of its count, or -1, and what to patch."""
        out = self.out
        if field.count is None:
            skip = out.op(ops.MORE, 0, 0, -1)
            end = out.op(ops.JUMP, 0)
            out.patch(skip, 0)
            return -1, end
        count = out.new()
        out.op(ops.MOVE, count, out.calculate(field.count))
        return count, out.op(ops.LOOP, count, field.least_item(), 0)

    def end_list(self, field: Listed, again: tuple[int, int], start: int) -> None:
        """Add the end of a loop."""
        out = self.out
        count, skip = again
        comma = out.literal(b",") if out.lines else -1
        if field.count is None:
            out.op(ops.MORE, start, 0, comma)
            out.patch(skip, 0)
        else:
            out.op(ops.AGAIN, count, start, comma)
            out.patch(skip, 2)

    def integer_item(self, item: Integer) -> None:
        """Add the operations of an integer of a list."""
        out = self.out
        out.op(ops.LOAD, item.nbytes, int(self.big))
        if out.lines:
            mask = -1 if item.nbytes == 8 else (1 << item.nbits) - 1
            sign = 1 << item.nbits - 1 if item.signed and item.nbytes < 8 else 0
            code = ops.SIGNED if item.signed else ops.NATURAL
            out.op(code, 0, mask, out.literal(b""), sign)

    def part(self, base: Any) -> None:
        """Add the operations of an item: those of the class for its kind."""
        out, family = self.out, base.layout.family
        outer = self.start
        start = self.start = out.new()
        out.op(ops.MARKSPAN, 2, start)
        limit = -1
        size = family.size
        if family.head:
            self.peek(base.layout)
        if size is not None or family.nbytes:
            limit = out.new()
            if size is None:
                nbytes = out.new()
                out.op(ops.CONST, nbytes, family.nbytes)
            else:
                nbytes = out.calculate(size * family.unit + family.plus)
            out.op(ops.PUSH, nbytes, limit, max(family.head, 1), start)
        ends: list[int] = []
        if not family.kinds:
            self.item(base, limit)
        for cls in [*family.members, *([family.other] if family.other else [])]:
            skips = [] if cls.layout.kind == (OTHER,) else self.guards(family, cls.layout)
            self.item(cls, limit)
            ends.append(out.op(ops.JUMP, 0))
            for skip in skips:
                out.patch(skip, 1)
        if family.kinds and family.other is None:
            out.op(ops.FAIL)
        for end in ends:
            out.patch(end, 0)
        self.start = outer
        if family.pad > 1:
            self.align(family.pad)

    def guards(self, family: Any, layout: Layout) -> list[int]:
        """Add what skips the class unless the item is of its kind; return what to patch."""
        out = self.out
        found = []
        for number, field in zip(layout.kind, family.kinds, strict=False):
            wanted, same = out.new(), out.new()
            out.op(ops.CONST, wanted, number)
            out.op(ops.CALC, same, SYMBOLS["=="], self.slot(field), wanted)
            found.append(out.op(ops.JUMPZ, same, 0))
        if layout.when is not None:
            found.append(out.op(ops.JUMPZ, out.calculate(layout.when), 0))
        return found

    def peek(self, layout: Layout) -> None:
        """Add what reads kind and size of an item ahead, and goes back to its start."""
        out = self.out
        family = layout.family
        for field in [*family.kinds, *([family.size] if family.size is not None else [])]:
            place = family.places[field]
            out.op(ops.MARKSPAN, 3, self.start, place.offset)
            out.op(ops.LOAD, place.nbytes, int(self.big))
            mask = -1 if place.mask == (1 << 64) - 1 else place.mask
            out.op(ops.KEEP, place.shift, mask, self.slot(field))
        out.op(ops.MARKSPAN, 3, self.start, 0)

    def item(self, cls: Any, limit: int) -> None:
        """Add the operations of a part of one class."""
        out, layout = self.out, cls.layout
        saved = self.word, self.saved, self.refs, self.needed, self.sinks, self.behind
        self.word, self.saved, self.refs, self.sinks = None, {}, [], {}
        self.behind = "", b""
        self.needed = self._needed(layout, [])
        prefix = "{"
        if out.lines:
            out.op(ops.LIT, out.literal(b"{"))
            shown = b'"type":' + orjson.dumps(cls.record)
            before = layout.order[: layout.order.index("type")] if "type" in layout.order else ()
            if before:
                self.behind = before[-1], b"," + shown
            elif layout.family.kinds:
                out.op(ops.LIT, out.literal(shown))
                prefix = ","
        before = len(self.effects)
        self.fields(layout, prefix)
        if len(self.effects) > before or layout.sets or layout.clears:
            raise UnfitError  # what the last item of a list changes is not known after it
        if out.lines:
            self.show_refs()
            out.op(ops.LIT, out.literal(b"}"))
        if limit >= 0:
            out.op(ops.POP, limit)
        self.word, self.saved, self.refs, self.needed, self.sinks, self.behind = saved


def _compiled(out: Writer, format: Format) -> Compiled:
    kinds = kinds_of(format)
    other = format.family.other
    entries: list[int] = []
    for big in (False, True):
        compiler = Compiler(out, big=big)
        for first, second, cls in kinds:
            number = (first,) if second < 0 else (first, second)
            choices = [each for each in format.classes if each.layout.kind == number]
            entries.append(compiler.record(choices or [cls]))
        if other is not None:
            entries.append(compiler.record([other]))
    return Compiled(
        format=format,
        code=np.array(out.code, "i8"),
        entries=np.array(entries, "i8"),
        texts=out.texts,
        registers=out.registers,
        slots=out.used,
        names=out.names,
        tables=out.count,
        columns=out.columns,
        lines=out.lines,
        table_numbers=out.tables,
    )


def compile_lines(format: Format) -> Compiled:
    """Return the program that writes record JSON."""
    return _compiled(Writer(format, lines=True, fields=()), format)


def compile_rows(format: Format, tables: Sequence[str]) -> Compiled:
    """Return the program that makes the rows of some tables."""
    rows = [each for each in format.tables if each.table in tables]
    out = Writer(format, lines=False, fields=rows)
    for each in rows:
        cells = out.columns.setdefault(each.table, ["offset"])
        mixed = differing(rows, each.table)
        for name in [*each.sources, *mixed, *([WHICH] if mixed else [])]:
            if name not in cells:
                cells.append(name)
                if name != WHICH and each.known[name].kind in ("text", "bytes"):
                    cells.append(f"{name}/length")
    return _compiled(out, format)


def compile_copy(format: Format, classes: Sequence[Any]) -> Compiled:
    """Return the program that tells place and size of sound records (table ``COPIES``)."""
    rows = [Rows(COPIES, cls, {}, "", ()) for cls in classes]
    out = Writer(format, lines=False, fields=rows)
    out.columns[COPIES] = ["offset", "nbytes"]
    made = _compiled(out, format)
    made.copied = tuple(classes)
    return made
