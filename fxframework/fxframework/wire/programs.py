"""Programs: a declared format as operations for the interpreter ``fxframework.kernels.program``.

For each class of records there are operations that check its fields and write a line of record
JSON. What a program cannot do, it leaves to the object decoder, record by record.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from fxframework.kernels import ops
from fxframework.wire.beside import Computed, Spare
from fxframework.wire.choices import Again, Check, Choice, Flag
from fxframework.wire.cursor import SIZE, mirror
from fxframework.wire.expressions import Calculation, Constant, Expression, Register
from fxframework.wire.families import Fields
from fxframework.wire.fields import Bits, Field, Integer, Mark, Number
from fxframework.wire.floats import Float
from fxframework.wire.format import Format, kinds_of
from fxframework.wire.lists import Listed
from fxframework.wire.operations import (
    NBYTES,
    POS,
    SYMBOLS,
    Compiled,
    UnfitError,
    Writer,
    is_steady,
    key_beside,
    part_key,
)
from fxframework.wire.records import OTHER, Layout, Record
from fxframework.wire.spans import Span, Text

__all__ = ["CODES", "compile_lines"]

DENSE = 64
"""Most names of an enumeration that are found by number."""
CODES = 256
"""Numbers of rules that a program may report."""
REFUSALS = 400
"""Rules from this number on are of writing."""


class Compiler:
    """Translates the layouts of a format into operations of one ``Writer``."""

    def __init__(self, out: Writer, *, big: bool, mirrored: bool = False) -> None:
        self.out = out
        self.needed: set[Expression] = set()
        """The fields whose values are used again, so that they need slots."""
        self.big = big
        self.mirrored = mirrored
        self.format = out.format
        self.word: Field | None = None
        """The field that begins the word at hand; None if it is another one."""
        self.saved: dict[Field, int] = {}
        self.start = POS
        self.effects: list[tuple[Any, ...]] = []
        self.refs: list[tuple[str, int, int]] = []
        """Name, slot and flag (-1: always there) of each reference."""
        self.behind = "", b""
        """A field, and what a line has behind it: the type of a part."""
        self.turn: list[Field] = []
        """The fields that a line has yet to show, in their order."""
        self.kept: dict[Field, Callable[[], None]] = {}
        """What shows a field that was read before its turn."""
        self.mute = False
        """Whether the field at hand is not shown yet."""
        self.sized = False
        """Whether the record or part says how long it is."""
        self.spares: dict[Field, tuple[int, int]] = {}
        """Slots of a flag, whether there are spare bytes that are not zero, and of their place."""

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
        self.kept, self.spares, self.start, out.slots[SIZE] = {}, {}, POS, NBYTES
        if cls in out.left:
            out.op(ops.HANDOVER)
            return
        try:
            self._record(cls)
        except UnfitError:
            del out.code[kept:]
            out.op(ops.HANDOVER)

    def _record(self, cls: Any) -> None:
        out, layout = self.out, cls.layout
        self.needed = needed_by(layout)
        out.op(
            ops.BEGIN,
            out.literal(f'{{"record":{orjson.dumps(cls.record).decode()},"offset":'.encode()),
            out.literal(b',"nbytes":'),
        )
        self.fields(layout, "")
        self.show_refs()
        out.op(ops.FINISH)
        if not layout.fixed and layout.family.size is None:
            out.op(ops.BOUND)
        constant = {r: value for r, value in layout.sets.items() if isinstance(value, Constant)}
        values = {r: out.kept(to) for r, to in layout.sets.items() if r not in constant}
        for effect in self.effects:
            if isinstance(effect[0], Register):
                out.set(*effect)
            else:
                out.op(*effect)
        for register, slot in values.items():
            out.set(register, slot)
        for register, value in constant.items():
            out.set(register, value)
        for table in layout.clears:
            out.op(ops.CLEAR, out.tables[table])
        out.op(ops.END, self.format.classes.index(cls))

    # --- Fields ---------------------------------------------------------------------------------

    def fields(self, layout: Layout, prefix: str) -> None:
        """Add the operations of all fields; their keys of JSON follow ``prefix``."""
        out = self.out
        if layout.measured or layout.family.rules:
            raise UnfitError
        if not all(self.notes_by(field, layout) for field in layout.fields):
            raise UnfitError
        self.turn = list(layout.shown)
        outer, self.sized = self.sized, bool(layout.fixed or layout.family.size is not None)
        if layout.tail:
            out.op(ops.MARKSPAN, 1, layout.tail)
        tail = False
        for field in layout.fields:
            if field.tail and not tail:
                self.body(layout, layout.tail)
                tail = True
            if isinstance(field, Computed):
                self.computed(field, prefix)
                continue
            self.mute = field in Fields(self.turn) and self.turn[0] is not field
            if self.mute and (prefix or field.when is not None):
                raise UnfitError
            skip = -1
            if field.when is not None:
                if prefix == "{":
                    raise UnfitError
                if field.changes_state or (isinstance(field, Bits) and field in layout.words):
                    raise UnfitError
                if field in self.needed:
                    out.op(ops.CONST, self.slot(field), 0)
                skip = out.op(ops.JUMPZ, out.calculate(field.when))
            self.field(layout, field, prefix)
            if self.behind[0] == field.name:
                out.op(ops.LIT, out.literal(self.behind[1]))
            if skip >= 0:
                out.patch(skip, 1)
                self.word = None
            if self.mute:
                self.mute = False
            elif field in layout.shown:
                self.turn.pop(0)
                prefix = prefix and ","
                self.flush(prefix)
        if self.sized and not tail and not (layout.fixed == layout.least and is_whole(layout)):
            self.body(layout, 0)
        self.sized = outer

    def body(self, layout: Layout, tail: int) -> None:
        """Add the check of what the fields leave of the record."""
        unit = 0 if layout.fixed else layout.align
        if unit & unit - 1:
            raise UnfitError
        self.out.op(ops.BODY, unit, tail, self.start)

    def field(self, layout: Layout, field: Field, prefix: str) -> None:
        """Add the operations of a field."""
        if isinstance(field, Number):
            shift, mask, sign = self.number(layout, field, prefix)
            if self.mute:
                slot = self.out.new()
                self.out.op(ops.SAVE, slot)
                self.kept[field] = lambda: self.again(field, slot, shift, mask, sign)
        elif isinstance(field, Spare):
            self.spare(field)
        elif self.mute:
            raise UnfitError
        elif isinstance(field, Float):
            self.float(field, prefix)
        elif isinstance(field, Span):
            self.span(field, prefix)
        elif isinstance(field, Listed):
            self.listed(field, prefix)
        elif isinstance(field, Choice):
            self.choice(layout, field, prefix)
        elif isinstance(field, Again):
            self.repeated(field, prefix)
        elif isinstance(field, Check):
            self.finding(layout, field)
        else:
            raise UnfitError

    def finding(self, layout: Layout, field: Check) -> None:
        """Add a finding by a rule of the format's own."""
        if not issubclass(layout.cls, Record) or field.rule >= CODES:
            raise UnfitError  # it is reported at the beginning of a record
        value = self.out.calculate(field.shown)
        self.out.op(ops.EXPECT, self.out.calculate(field.condition == 0), field.rule, 0, value)

    def repeated(self, field: Again, prefix: str) -> None:
        """Add an earlier number, or whether it is odd."""
        out, number = self.out, field.number
        if not isinstance(field, Flag):
            wide = 1 << number.nbits
            sign = (number > field.range[1]) * wide
            shown = out.calculate(number - sign if field.signed and number.nbits < 64 else number)
            out.op(ops.SGNSLOT if field.signed else ops.NATSLOT, shown, self.key(field, prefix))
            return
        out.op(ops.EXPECT, out.calculate((number & -2) == 0), 0, 1)
        skip = out.op(ops.JUMPZ, out.calculate(number & 1))
        out.op(ops.LIT, self.key(field, prefix, b"true"))
        end = out.op(ops.JUMP, 0)
        out.patch(skip, 1)
        out.op(ops.LIT, self.key(field, prefix, b"false"))
        out.patch(end, 0)

    def choice(self, layout: Layout, field: Choice, prefix: str) -> None:
        """Add the value of each kind, behind the test of its tag."""
        out = self.out
        implied = [
            (number, Fields(variant for _, variant, _, _ in given if variant in layout.choice_of))
            for number, given in layout.implied.items()
        ]
        ends: list[int] = []
        for key, variant in [*field.kinds.items(), (None, field.other)]:
            skip = -1 if key is None else out.op(ops.JUMPZ, out.calculate(field.tag == int(key)))
            if variant is not None:
                self.field(layout, variant, prefix)
            else:
                out.op(ops.LIT, self.key(field, prefix, b"null"))
            for number, variants in implied:
                if variants and variant not in variants:  # nothing else says what it is
                    out.op(ops.EXPECT, out.calculate(number == 0), 0, 1)
            ends.append(out.op(ops.JUMP, 0))
            if skip >= 0:
                out.patch(skip, 1)
        for end in ends:
            out.patch(end, 0)
        self.word = None

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
                wrong = mirror(reserved, nbytes) if self.mirrored else reserved
                out.op(ops.RESERVED, wrong, 0, nbytes, -1)
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
        shift = field.shift(layout.words[first][0], self.mirrored)
        return shift, -1 if field.nbits == 64 else (1 << field.nbits) - 1

    def number(self, layout: Layout, field: Number, prefix: str) -> tuple[int, int, int]:
        """Add the operations of an integer; return shift, mask and sign."""
        out = self.out
        shift, mask = self.load(layout, field)
        sign = 1 << field.nbits - 1 if field.signed and field.nbits < 64 else 0
        if layout.is_reserved(field):
            nbytes = (
                layout.words[layout.word_of[field]][0]
                if field in layout.word_of
                else field.nbits // 8
            )
            out.op(ops.RESERVED, mask << shift if mask > 0 else -1, shift, nbytes, mask)
        by_slot = (
            field in self.needed
            or field.equals is not None
            or field.limits
            or (field.values and not self.checked_when_shown(field))
            or field.refers is not None
            or field.sets is not None
            or field.adds is not None
        )
        if field.role == "size" and field not in self.needed:
            by_slot = False
        if by_slot:
            out.op(ops.KEEP, shift, mask, self.slot(field), sign)
            self.check(field)
        if field.role == "kind" and layout.word and self.big and not self.mirrored:
            # The bits that tell the kind are elsewhere in the word.
            out.op(ops.KEEP, shift, mask, self.slot(field))
            number = layout.kind[layout.family.kinds.index(field)]
            out.op(ops.EXPECT, out.calculate(Calculation("==", field, number)), 0, 1)
        if isinstance(field, Mark):
            if self.mute:
                raise UnfitError
            name = orjson.dumps(field.names[int(self.big)])
            out.op(ops.LIT, self.key(field, prefix, name))
            return shift, mask, sign
        shown = field.public and not self.mute
        shown = shown and (field in layout.public or field in layout.choice_of)
        if shown:
            self.show_number(field, prefix, shift, mask, sign)
        return shift, mask, sign

    def slot(self, field: Expression) -> int:
        """Return the slot of a field."""
        if field not in self.out.slots:
            self.out.slots[field] = self.out.new()
        return self.out.slots[field]

    def again(self, field: Number, slot: int, shift: int, mask: int, sign: int) -> None:
        """Add what shows a number that was read before."""
        self.out.op(ops.USE, slot)
        self.word = None
        self.show_number(field, "", shift, mask, sign)

    def flush(self, prefix: str) -> None:
        """Add what shows the fields whose turn it is and that are known."""
        while self.turn:
            run = list(itertools.takewhile(is_steady, self.turn))
            if run and not prefix:
                del self.turn[: len(run)]
                self.once([each for each in run if isinstance(each, Computed)])
            elif self.turn[0] in self.kept:
                self.kept.pop(self.turn.pop(0))()
            else:
                return

    def once(self, run: list[Computed]) -> None:
        """Add what shows fields that depend on registers alone, or repeats how it did so before."""
        out = self.out
        slot, _ = out.parts[part_key(run)]
        begin = out.op(ops.ONCE, slot, 0)
        for each in run:
            self.show_computed(each)
        out.op(ops.KEPT, slot)
        out.patch(begin, 1)

    def computed(self, field: Computed, prefix: str) -> None:
        """Add the operations of a number that is not in the file."""
        out = self.out
        if prefix:
            raise UnfitError
        if field in self.needed:
            out.op(ops.CONST, self.slot(field), 0)
            skip = -1 if field.when is None else out.op(ops.JUMPZ, out.calculate(field.when))
            mask, sign = self.use(field)
            out.op(ops.KEEP, 0, mask, self.slot(field), sign)
            if skip >= 0:
                out.patch(skip, 1)
        if field in Fields(self.turn):
            self.kept[field] = lambda: self.show_computed(field)
        self.flush(prefix)

    def use(self, field: Computed) -> tuple[int, int]:
        """Add what brings a computed number to hand; return its mask and sign."""
        self.out.op(ops.USE, self.out.calculate(field.of))
        self.word = None
        wide = field.nbits == 64
        sign = 1 << field.nbits - 1 if field.signed and not wide else 0
        return -1 if wide else (1 << field.nbits) - 1, sign

    def show_computed(self, field: Computed) -> None:
        """Add what writes a computed number into JSON."""
        out = self.out
        skip = -1 if field.when is None else out.op(ops.JUMPZ, out.calculate(field.when))
        key = self.key(field, "")
        if field.nbits == 64:
            code = ops.SGNSLOT if field.signed else ops.NATSLOT
            out.op(code, out.calculate(field.of), key)
            if skip >= 0:
                out.patch(skip, 1)
            return
        mask, sign = self.use(field)
        if field.signed:
            out.op(ops.SIGNED, 0, mask, key, sign)
        else:
            out.op(ops.NATURAL, 0, mask, key)
        if skip >= 0:
            out.patch(skip, 1)

    def spare(self, field: Spare) -> None:
        """Add the operations of bytes without a meaning."""
        out = self.out
        flag = out.new() if field.after is None else self.spares[field.after][0]
        self.spares[field] = flag, out.new(2)
        out.op(ops.SPAN, field.own, -1)
        out.op(ops.NONZERO, flag, int(field.after is None))
        out.op(ops.MARKSPAN, 0, self.spares[field][1])
        if field.shown is not field:
            return
        if self.mute:
            self.kept[field] = lambda: self.show_spare(field)
        else:
            self.show_spare(field)

    def show_spare(self, field: Spare) -> None:
        """Add what writes spare bytes into JSON, with those before them."""
        out = self.out
        chain: list[Spare] = []
        each: Spare | None = field
        while each is not None:
            chain.insert(0, each)
            each = each.after
        skip = out.op(ops.JUMPZ, self.spares[field][0])
        out.op(ops.LIT, self.key(field, "", b'"'))
        for each in chain:
            out.op(ops.MARKSPAN, 4, self.spares[each][1])
            out.op(ops.HEX, out.literal(b""), out.literal(b""))
        out.op(ops.LIT, out.literal(b'"'))
        out.patch(skip, 1)

    def notes_by(self, field: Field, layout: Layout) -> bool:
        """Return whether a program can report what is wrong with a field by the field's own rules.

        It reports at the beginning of a record, with a number that the kernel has room for.
        """
        reading = {each: number for each, number in field.rules.items() if each < REFUSALS}
        plain = isinstance(field, Float) or (
            isinstance(field, Number)
            and not (field.role or field.closed or field.refers is not None)
        )
        here = (
            plain
            and issubclass(layout.cls, Record)
            and reading.keys() <= {106, 108}
            and all(number < CODES for number in reading.values())
        )
        of_kinds = field.fields if isinstance(field, Choice) else ()
        fits = all(self.notes_by(each, layout) and not each.changes_state for each in of_kinds)
        return (here or not reading) and fits

    def check(self, field: Number) -> None:
        """Add the checks of a number, and what it changes."""
        out, slot = self.out, self.slot(field)
        for checksum in field.checksums:
            if isinstance(field, Bits) or checksum.number < 0:
                raise UnfitError
            out.slots[checksum] = out.new()
            nbytes = field.nbits // 8
            out.op(ops.CHECKSUM, out.slots[checksum], checksum.number, nbytes, self.start)
        if field.equals is not None:
            same = Calculation("==", field, field.equals)
            out.op(ops.EXPECT, out.calculate(same), field.rules.get(106, 106), 1, slot)
        undefined = field.rules.get(106, 106)
        if field.values and undefined and not self.checked_when_shown(field):
            out.op(ops.KNOWN, slot, out.table(field.values), undefined, int(field.closed))
        self.limits(field)
        if field.sets is not None:
            self.effects.append((field.sets, slot))
        if field.adds is not None:
            total = out.new()
            out.op(ops.CALC, total, SYMBOLS["+"], out.slots[field.adds], slot)
            if field.when is None:
                out.sums[id(field.adds), id(field)] = total
            self.effects.append((field.adds, total))

    def limits(self, field: Number | Float) -> None:
        """Add the checks of what a value in its slot must be within."""
        for holds, rule in field.limits:
            number = field.rules.get(rule, rule)
            self.out.op(ops.EXPECT, self.out.calculate(holds), number, 0, self.slot(field))

    def checked_when_shown(self, field: Number) -> bool:
        """Return whether a line cannot show a number that the enumeration does not have."""
        return field.public and field.closed and is_dense(field.values)

    def show_number(self, field: Number, prefix: str, shift: int, mask: int, sign: int) -> None:
        """Add what writes a number into JSON."""
        out = self.out
        key = self.key(field, prefix)
        names: Mapping[int, Any] = {0: False, 1: True} if field.flag else field.values
        if is_dense(names):
            first = out.names_of(out.texts[key], names)
            out.op(ops.ONEOF, shift, mask, first, len(names), int(field.closed))
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
        code = ops.REAL if field.nbytes == 8 else ops.HALFREAL
        out.op(code, self.key(field, prefix), self.beside(field, "bits", b'"0x'))
        mask = -1 if field.nbytes == 8 else 0xFFFFFFFF
        if field.limits or field in self.needed:
            out.op(ops.KEEP, 0, mask, self.slot(field))
            self.limits(field)

    def span(self, field: Span, prefix: str) -> None:
        """Add the operations of text and bytes."""
        out = self.out
        if isinstance(field, Text) and field.entry is not None:
            self.reference(field, prefix)
            return
        self.find(field)
        if isinstance(field, Text):
            out.op(ops.UTF8)
        if isinstance(field, Text):
            out.op(ops.TEXT, self.key(field, prefix), self.beside(field, "bytes_hex", b'"'))
        else:
            out.op(ops.HEX, self.key(field, prefix, b'"'), out.literal(b'"'))
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
            out.op(ops.TRIM, field.pad[0], self.trimmed(field))

    def trimmed(self, field: Span) -> int:
        """Return what becomes of padding: 0 that of a fixed size, 1 kept, 2 that of the record."""
        if field.fixed is not None:
            return 0
        return 2 if self.sized and field.nbytes is None and field.pad == b"\0" else 1

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
        shown = self.key(field, prefix)
        flag = out.new()
        out.op(ops.CONST, flag, 0)
        ends: list[int] = []
        if field.inline:
            marked = out.calculate(field.entry.index & field.inline)
            skip = out.op(ops.JUMPZ, marked, 0)
            out.op(ops.SPAN, 0, out.calculate(field.entry.index & field.inline - 1))
            out.op(ops.UTF8)
            out.op(ops.TEXT, shown, self.beside(field, "bytes_hex", b'"'))
            if field.aligned > 1:
                self.align(field.aligned)
            ends.append(out.op(ops.JUMP, 0))
            out.patch(skip, 1)
        if field.empty is not None:
            skip = out.op(ops.JUMPZ, out.calculate(field.entry.index == field.empty), 0)
            out.op(ops.LIT, self.key(field, prefix, b'""'))
            ends.append(out.op(ops.JUMP, 0))
            out.patch(skip, 1)
        out.op(ops.CONST, flag, 1)
        around = out.around(field.entry.table, field)
        out.op(ops.REF, index, table, shown, around)
        self.refs.append((field.name, index, flag))
        for end in ends:
            out.patch(end, 0)

    def listed(self, field: Listed, prefix: str) -> None:
        """Add the operations of a list."""
        out = self.out
        out.op(ops.LIT, self.key(field, prefix, b"["))
        again = self.begin_list(field)
        start = len(out.code)
        if isinstance(field.item, Integer):
            self.integer_item(field.item)
        else:
            self.part(field.item)
        self.end_list(field, again, start)
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
        comma = out.literal(b",")
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
        mask = -1 if item.nbytes == 8 else (1 << item.nbits) - 1
        sign = 1 << item.nbits - 1 if item.signed and item.nbytes < 8 else 0
        if item in self.needed:
            out.op(ops.KEEP, 0, mask, self.slot(item), sign)
        code = ops.SIGNED if item.signed else ops.NATURAL
        out.op(code, 0, mask, out.literal(b""), sign)

    def part(self, base: Any) -> None:
        """Add the operations of an item: those of the class for its kind."""
        out, family = self.out, base.layout.family
        outer, whole = self.start, out.slots[SIZE]
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
            out.slots[SIZE] = nbytes
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
        self.start, out.slots[SIZE] = outer, whole
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
            out.op(ops.KEEP, place.shift_in(self.mirrored), mask, self.slot(field))
        out.op(ops.MARKSPAN, 3, self.start, 0)

    def item(self, cls: Any, limit: int) -> None:
        """Add the operations of a part of one class."""
        out, layout = self.out, cls.layout
        saved = self.word, self.saved, self.refs, self.needed, self.behind, self.turn
        self.word, self.saved, self.refs, self.behind = None, {}, [], ("", b"")
        self.needed = needed_by(layout)
        prefix = "{"
        out.op(ops.LIT, out.literal(b"{"))
        shown = b'"type":' + orjson.dumps(cls.record)
        before = layout.keys[: layout.keys.index("type")] if "type" in layout.keys else ()
        if before:
            self.behind = before[-1], b"," + shown
        elif layout.family.kinds:
            out.op(ops.LIT, out.literal(shown))
            prefix = ","
        before = len(self.effects)
        if layout.size:
            raise UnfitError  # of one kind alone
        self.fields(layout, prefix)
        if len(self.effects) > before or layout.sets or layout.clears:
            raise UnfitError  # what the last item of a list changes is not known after it
        self.show_refs()
        out.op(ops.LIT, out.literal(b"}"))
        if limit >= 0:
            out.op(ops.POP, limit)
        self.word, self.saved, self.refs, self.needed, self.behind, self.turn = saved


def needed_by(layout: Layout) -> set[Expression]:
    """Return the fields whose values are used again, so that they need slots."""
    expressions = [*layout.sets.values(), *(e for f in layout.fields for e in f.expressions())]
    return {leaf for each in expressions for leaf in each.leaves()}


def is_whole(layout: Layout) -> bool:
    """Return whether a layout of a fixed size has fields of fixed sizes alone."""
    return all(isinstance(field, Number | Float | Spare | Computed) for field in layout.fields)


def is_dense(names: Mapping[int, Any]) -> bool:
    """Return whether an enumeration names the numbers from 0 on, and few."""
    return 0 < len(names) <= DENSE and set(names) == set(range(len(names)))


def _compiled(out: Writer, format: Format, *, mirrored: bool = False) -> Compiled:
    kinds = kinds_of(format)
    other = format.family.other
    entries: list[int] = []
    for big in (False, True):
        compiler = Compiler(out, big=big, mirrored=mirrored)
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
        table_numbers=out.tables,
        parts=tuple(slot for slot, _ in out.parts.values()),
        mirrored=mirrored,
    )


def compile_lines(format: Format, *, mirrored: bool = False, left: Sequence[Any] = ()) -> Compiled:
    """Return the program that writes record JSON; ``mirrored`` is that of ``State``.

    Records of the classes in ``left`` are handed over.
    """
    out = Writer(format)
    # Whether a record begins is asked for each of a family without kinds that can say it.
    ask = [format.base] if format.choosy and not format.family.kinds else []
    out.left = [*left, *ask]
    return _compiled(out, format, mirrored=mirrored)
