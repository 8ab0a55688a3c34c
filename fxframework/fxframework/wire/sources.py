"""Sources: Python that is generated for a class, to read and write its fields several times faster.

It does what ``Layout.read`` and ``Layout.write`` do, which read and write what it does not know.
A reader sets ``Cursor.odd`` where the fields may not encode to the same bytes.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fxframework.wire.beside import Spare
from fxframework.wire.choices import Check, Choice, Flag
from fxframework.wire.cursor import AT, SIZE, RefusalError, ShortError
from fxframework.wire.expressions import Calculation, Constant, Expression, Register, wrapped
from fxframework.wire.fields import (
    Bits,
    Field,
    Float,
    Integer,
    Mark,
    Nan,
    Number,
    Span,
    Text,
)
from fxframework.wire.lists import Listed, Texts

__all__ = ["LETTERS", "function_of", "reader_of", "writer_of"]

# A layout is a ``fxframework.wire.records.Layout``.

LETTERS = {1: "B", 2: "H", 4: "I", 8: "Q"}
I64 = -(1 << 63), (1 << 63) - 1
ZEROS = tuple(bytes(count) for count in range(64))
FITTING = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__, "<<": int.__lshift__}


def function_of(text: str, name: str, place: str, env: dict[str, Any]) -> Any:
    """Return the function ``name`` of a source, which tracebacks and debuggers show at ``place``.

    ``env`` has the objects that its names stand for, and gets the function.
    """
    linecache.cache[place] = (len(text), None, text.splitlines(keepends=True), place)
    exec(compile(text, place, "exec"), env)  # noqa: S102 (it is made of the declaration)
    return env[name]


class UnfitError(Exception):
    """Nothing is generated for a class with such a field."""


class Source:
    """Lines of a function, and the objects that its names stand for."""

    def __init__(self, layout: Any) -> None:
        self.layout = layout
        self.lines: list[str] = []
        self.depth = 1
        self.env: dict[str, Any] = {
            "ShortError": ShortError, "RefusalError": RefusalError, "wrapped": wrapped,
            "Nan": Nan, "ZEROS": ZEROS, "layout": layout, "cls": layout.cls,
        }  # fmt: skip
        self.numbers: dict[Expression, str] = {}
        """Variables with the values of numbers."""

    def put(self, *lines: str) -> None:
        """Add lines."""
        self.lines += ["    " * self.depth + line for line in lines]

    @contextmanager
    def inside(self, line: str) -> Iterator[None]:
        """Indent what follows ``line``."""
        self.put(line)
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.put("pass")
        self.depth -= 1

    def let(self, value: Any) -> str:
        """Return a name for an object."""
        name = f"x{len(self.env)}"
        self.env[name] = value
        return name

    def fresh(self) -> str:
        """Return a name for a variable."""
        return self.let(None)

    def format(self, nbytes: int, *, signed: bool, method: str) -> str:
        """Return the function that packs or unpacks an integer in the byte order at hand."""
        letter = LETTERS.get(nbytes)
        if letter is None:
            raise UnfitError
        letter = letter.lower() if signed else letter
        little, big = (getattr(struct.Struct(order + letter), method) for order in "<>")
        name = f"{method}_{letter}"
        if name not in self.env:
            self.env[name] = little
            self.env[f"{name}_big"] = big
        return name

    def chosen_order(self) -> list[str]:
        """Return the lines that take the functions of the byte order."""
        names = [name for name in self.env if name.endswith("_big")]
        return [f"    {name.removesuffix('_big')}_ = {name} if big else {name.removesuffix('_big')}"
                for name in names]  # fmt: skip

    def made(self, name: str, arguments: str, begin: list[str]) -> Any:
        """Return the function."""
        head = [f"def {name}({arguments}):", *begin, *self.chosen_order()]
        place = f"<{name} of {self.layout.cls.__module__}.{self.layout.cls.__qualname__}>"
        return function_of("\n".join([*head, *self.lines, ""]), name, place, self.env)

    # --- Expressions ----------------------------------------------------------------------------

    def expression(self, value: Expression) -> str:
        """Return an expression as Python, with the result of ``Expression.value``."""
        return self.bounded(value)[0]

    def bounded(self, value: Expression) -> tuple[str, int, int]:
        """Return an expression as Python, with its least and its greatest value."""
        if isinstance(value, Constant):
            text, least, most = str(value.number), value.number, value.number
        elif value is SIZE or value is AT:
            text, least, most = self.place(value), 0, 1 << 48
        elif isinstance(value, Register):
            text, least, most = f"known.get({self.let(value)}, {value.initial})", *I64
        elif isinstance(value, Number):
            text, (least, most) = self.numbers[value], value.range
        elif isinstance(value, Calculation):
            return self.calculated(value)
        else:
            raise UnfitError
        if least < I64[0] or most > I64[1]:
            return f"wrapped({text})", *I64
        return text, least, most

    def calculated(self, value: Calculation) -> tuple[str, int, int]:
        """Return a calculation as Python, which wraps to 64 bits if it can exceed them."""
        (left, a, b), (right, c, d) = self.bounded(value.left), self.bounded(value.right)
        symbol = value.symbol
        text = f"({left} {symbol} {right})"
        if symbol in ("==", "!=", "<", "<="):
            return text, 0, 1
        if symbol in ("<<", ">>") and not (c == d and 0 <= c < 64):
            raise UnfitError
        if symbol in ("&", "|", ">>"):
            least = min(a, c, 0) if symbol != "&" or min(a, c) < 0 else 0
            bits = (max(b, -a) | max(d, -c)).bit_length()
            most = min(b, d) if symbol == "&" and a >= 0 and c >= 0 else (1 << bits) - 1
            return text, max(I64[0], least if a >= 0 <= c else -(1 << bits)), min(I64[1], most)
        corners = [FITTING[symbol](x, y) for x in (a, b) for y in (c, d)]
        if min(corners) < I64[0] or max(corners) > I64[1]:
            return f"wrapped{text}", *I64
        return text, min(corners), max(corners)

    def place(self, value: Expression) -> str:
        """Return the size of the record, or the place in it, as Python."""
        raise NotImplementedError


# --- Reading --------------------------------------------------------------------------------------


class Reader(Source):
    """Generates the reading of a record, or of a part without kind and size."""

    def __init__(self, layout: Any, *, part: bool) -> None:
        super().__init__(layout)
        self.part = part
        self.values: dict[str, str] = {}
        self.words: dict[Field, str] = {}
        self.end = False

    def place(self, value: Expression) -> str:
        """Return the size of the record, or the place in it, as Python."""
        if value is AT or self.end:
            return "(at - start)"
        return f"known.get({self.let(value)}, 0)"

    def note(self, number: int, value: str, offset: str, field: Field | None = None) -> None:
        """Add a finding, as ``Cursor.note`` makes it."""
        own = field.rules if field is not None and field.rules else self.layout.family.rules
        if number in own:
            number, offset = own[number], "start"
        if number:
            self.put(f"notes.append(({int(number)}, {offset}, wrapped({value})))")

    def room(self, nbytes: str, field: Field) -> None:
        """Add the check that there are so many bytes."""
        number = int(field.rules.get(104, 104))
        self.put(f"if {nbytes} > limit - at: raise ShortError({number})")

    def field(self, field: Field) -> None:
        """Add a field."""
        if field.when is None:
            self.one(field)
            return
        if isinstance(field, Bits) and field in self.layout.words:
            raise UnfitError
        name = self.fresh()
        with self.inside(f"if {self.expression(field.when)}:"):
            self.one(field)
            self.put(f"{name} = {self.values.get(field.name, 'None')}")
            number = self.numbers.get(field)
        with self.inside("else:"):
            self.put(f"{name} = None", *([f"{number} = 0"] if number else []))
        if field.name in self.values:
            self.values[field.name] = name

    def one(self, field: Field) -> None:
        """Add a field that is there."""
        if isinstance(field, Mark | Spare) or field.tail:
            raise UnfitError
        if isinstance(field, Number):
            self.number(field)
        elif isinstance(field, Float):
            self.float(field)
        elif isinstance(field, Span):
            self.span(field)
        elif isinstance(field, Listed):
            self.listed(field)
        elif isinstance(field, Choice):
            self.choice(field)
        elif isinstance(field, Flag):
            self.values[field.name] = f"({self.numbers[field.number]} & 1 == 1)"
            self.put(f"if {self.numbers[field.number]} > 1: c.odd = True")
        elif isinstance(field, Check):
            with self.inside(f"if {self.expression(field.condition)}:"):
                shown = self.expression(field.shown)
                self.put(f"notes.append(({int(field.rule)}, start, wrapped({shown})))")
        elif isinstance(field, Texts) and not self.part:
            read = self.let(field.read_by_rules)
            name = self.values[field.name] = self.fresh()
            self.put("c.at = at", f"{name} = {{}}", f"{read}(c, {name})", "at = c.at",
                     f"{name} = {name}[{field.name!r}]")  # fmt: skip
        else:
            raise UnfitError

    def number(self, field: Number) -> None:
        """Add a number."""
        layout = self.layout
        if field.refers is not None or field.checksums or field.closed:
            raise UnfitError
        name = self.numbers[field] = self.fresh()
        offset = "at"
        if isinstance(field, Bits):
            if field in layout.words:
                nbytes, reserved = layout.words[field]
                word = self.words[field] = self.fresh()
                self.unpacked(word, nbytes, field, signed=False)
                if reserved:
                    with self.inside(f"if {word} & {reserved}:"):
                        self.note(105, f"{word} & {reserved}", f"at - {nbytes}")
                        self.put("c.odd = True")
            first = layout.word_of[field]
            offset = f"at - {layout.words[first][0]}"
            self.put(f"{name} = {self.words[first]} >> {field.low} & {(1 << field.nbits) - 1}")
            if field.signed:
                self.put(f"if {name} >> {field.nbits - 1}: {name} -= {1 << field.nbits}")
        else:
            assert isinstance(field, Integer)  # noqa: S101 (the other kind of number)
            self.unpacked(name, field.nbytes, field, signed=field.signed)
            offset = f"at - {field.nbytes}"
        self.checks(field, name, offset)
        shown = name
        if field.values:
            names = self.let(field.values)
            shown = f"{names}.get({name}, {name})"
            if len(set(field.values.values())) < len(field.values):
                self.put("c.odd = True")
        elif field.flag:
            shown = f"({name} == 1)"
        if field.public:
            self.values[field.name] = shown

    def unpacked(self, name: str, nbytes: int, field: Field, *, signed: bool) -> None:
        """Add what unpacks an integer into a variable."""
        unpack = self.format(nbytes, signed=signed, method="unpack_from")
        self.room(str(nbytes), field)
        self.put(f"{name} = {unpack}_(data, at)[0]", f"at += {nbytes}")

    def checks(self, field: Number, name: str, offset: str) -> None:
        """Add the checks of a number, and what it sets."""
        layout = self.layout
        if field.equals is not None and field not in layout.measured:
            self.equal(field, name)
        if field.values:
            with self.inside(f"if {name} not in {self.let(field.values)}:"):
                self.note(106, name, "origin", field)
        if layout.is_reserved(field):
            with self.inside(f"if {name}:"):
                self.note(105, f"{name} & {(1 << field.nbits) - 1}", offset, field)
                self.put("c.odd = True")
        if field.below is not None:
            with self.inside(f"if {name} >= {self.expression(field.below)}:"):
                self.note(108, name, "origin", field)
        if any(how == "present" for how, *_ in layout.implied.get(field, ())):
            self.put("c.odd = True")
        for register, total in ((field.sets, name), (field.adds, f"known[{{}}] + {name}")):
            if register is not None:
                key = self.let(register)
                total = total.format(key)
                self.put(f"c.effects.append(('set', {key}, wrapped({total})))")

    def equal(self, field: Number, name: str) -> None:
        """Add the check of what a number must be equal to."""
        assert field.equals is not None  # noqa: S101 (asked only then)
        with self.inside(f"if wrapped({self.expression(field.equals)} - {name}):"):
            self.note(106, name, "origin", field)
            self.put("c.odd = True")

    def float(self, field: Float) -> None:
        """Add a double."""
        if field.nbytes != 8:
            raise UnfitError
        name, bits = self.fresh(), self.fresh()
        self.numbers[field] = bits
        self.unpacked(bits, 8, field, signed=False)
        self.env["double"] = struct.Struct("d").unpack
        self.env["packed"] = struct.Struct("Q").pack
        self.put(
            f"{name} = double(packed({bits}))[0]", f"if {name} != {name}: {name} = Nan({bits})"
        )
        self.values[field.name] = name

    def span(self, field: Span) -> None:
        """Add text or bytes."""
        name, place = self.fresh(), self.fresh()
        if isinstance(field, Text) and field.entry is not None:
            self.inline(field, name)
            return
        self.put(f"{place} = at")
        if field.until:
            self.put(f"{name} = data[at:limit].tobytes().partition({field.until!r})")
            self.put(f"if not {name}[1]: raise ShortError({int(field.rules.get(104, 104))})")
            self.put(f"{name} = {name}[0]", f"at += len({name}) + 1")
        else:
            size = "limit - at"
            if field.nbytes is not None:
                size = self.fresh()
                self.put(f"{size} = {self.expression(field.nbytes)}")
                number = int(field.rules.get(104, 104))
                self.put(f"if not 0 <= {size} <= limit - at: raise ShortError({number})")
            self.put(f"{name} = data[at:at + {size}].tobytes()", f"at += len({name})")
        if field.pad:
            if field.fixed is None:
                self.put("c.odd = True")
            self.put(f"{name} = {name}.rstrip({field.pad!r})")
        if not self.part:
            self.put(f"c.spans[{self.let(field)}] = {place}, len({name})")
        if isinstance(field, Text):
            if field.defines is not None:
                raise UnfitError
            self.decoded(field, name, place)
        self.values[field.name] = name
        self.aligned(field)

    def inline(self, field: Text, name: str) -> None:
        """Add a text that is inline or empty."""
        entry = field.entry
        if entry is None or not entry.table.closed or not isinstance(entry.index, Number):
            raise UnfitError
        if field.empty != 0:
            raise UnfitError
        index, place = self.numbers[entry.index], self.fresh()
        number = int(field.rules.get(108, 108))
        with self.inside(f"if not {index}:"):
            self.put(f"{name} = ''")
        with self.inside(f"elif {index} & {field.inline}:"):
            size = f"{index} - {field.inline}"
            self.put(f"{place} = at")
            self.room(size, field)
            self.put(f"at += {size}", f"{name} = data[{place}:at].tobytes()")
            self.decoded(field, name, place)
            self.aligned(field)
            self.put(f"if {index} == {field.inline}: c.odd = True")
        self.put(f"else: raise ShortError({number})")
        self.values[field.name] = name

    def decoded(self, field: Text, name: str, place: str) -> None:
        """Add what decodes UTF-8."""
        with self.inside("try:"):
            self.put(f"{name} = {name}.decode()")
        with self.inside("except UnicodeDecodeError:"):
            self.note(107, place if field.rules else "0", place, field)
            self.put(f"{name} = {name}.decode(errors='surrogateescape')")

    def aligned(self, field: Span) -> None:
        """Add what goes over the padding of a field."""
        unit = field.aligned
        if unit == 1:
            return
        if unit > len(ZEROS):
            raise UnfitError
        end = self.fresh()
        self.put(f"{end} = at - (at - start) % -{unit}")
        self.put(f"if {end} > limit: {end} = limit; c.odd = True")
        with self.inside(f"if {end} > at:"):
            with self.inside(f"if data[at:{end}] != ZEROS[{end} - at]:"):
                self.note(105, "0", "at", field)
                self.put("c.odd = True")
            self.put(f"at = {end}")

    def listed(self, field: Listed) -> None:
        """Add a list."""
        name = self.values[field.name] = self.fresh()
        more = "at < limit"
        self.put(f"{name} = []")
        if field.count is not None:
            count = self.fresh()
            self.put(f"{count} = {self.expression(field.count)}")
            number = int(field.rules.get(104, 104))
            self.put(f"if not 0 <= {count} * {field.least_item()} <= limit - at: "
                     f"raise ShortError({number})")  # fmt: skip
            more = f"len({name}) < {count}"
        if isinstance(field.item, Integer):
            item = self.fresh()
            with self.inside(f"while {more}:"):
                self.unpacked(item, field.item.nbytes, field, signed=field.item.signed)
                self.put(f"{name}.append({item})")
        else:
            item = self.let(field.item.layout.read_part)
            self.put("c.at = at", "c.limit = limit")
            with self.inside(f"while {more}:"):
                self.put(f"{name}.append({item}(c))", "at = c.at")
        self.put(f"{name} = tuple({name})")

    def choice(self, field: Choice) -> None:
        """Add a choice."""
        name, tag = self.fresh(), self.numbers[field.tag]
        implied = {
            number: [variant for _, variant, _, _ in given if variant in self.layout.choice_of]
            for number, given in self.layout.implied.items()
        }
        branches = [f"if {tag} == {int(key)}:" for key in field.kinds]
        variants = [*field.kinds.values(), field.other]
        for branch, variant in zip([*branches, "else:"], variants, strict=True):
            with self.inside(branch if branch in (branches[0], "else:") else f"el{branch}"):
                self.values[field.name] = "None"
                if variant is not None:
                    self.one(variant)
                self.put(f"{name} = {self.values[field.name]}")
                for number, given in implied.items():
                    if given and not any(each is variant for each in given):
                        self.put(f"if {self.numbers[number]}: c.odd = True")
        self.values[field.name] = name

    def body(self) -> None:
        """Add all fields."""
        layout = self.layout
        for field in layout.fields:
            self.field(field)
        self.end = True
        for number in layout.measured:
            assert isinstance(number, Number)  # noqa: S101 (only numbers are measured)
            self.equal(number, self.numbers[number])
        for register, value in layout.sets.items():
            self.put(f"c.effects.append(('set', {self.let(register)}, {self.expression(value)}))")
        for table in layout.clears:
            self.put(f"c.effects.append(('clear', {self.let(table)}))")
        hidden = {field.name for field in layout.family.kinds if field not in layout.public}
        values = [f"{name!r}: {value}" for name, value in self.values.items() if name not in hidden]
        if self.part:
            shown = ", ".join(each.replace("': ", "=", 1)[1:] for each in values)
            self.put("c.at = at", f"return cls(offset=start, {shown})")
            return
        self.put(*(f"known[{self.let(each)}] = {name}" for each, name in self.numbers.items()))
        self.put("c.at = at", f"return {{{', '.join(values)}}}")


def reader_of(layout: Any, *, part: bool) -> Callable[[Any], Any] | None:
    """Return the function that reads a record's values, or a part, from a cursor; None if none."""
    source = Reader(layout, part=part)
    begin = [
        "    data, at, limit, known, notes = c.data, c.at, c.limit, c.known, c.notes",
        "    origin, big = c.origin, c.big",
        "    start = at" if part else "    start = c.start",
    ]
    try:
        if part:
            with source.inside("try:"):
                source.body()
            with source.inside("except ShortError as problem:"):
                source.put("c.at = start", "return cls.recover(c, problem)")
        else:
            source.body()
    except UnfitError:
        return None
    made: Callable[[Any], Any] = source.made("read", "c", begin)
    return made


# --- Writing --------------------------------------------------------------------------------------


class Writer(Source):
    """Generates the writing of a record or a part."""

    def place(self, value: Expression) -> str:
        """Return the size of the record as Python, once it is known."""
        if value is AT:
            raise UnfitError
        return "size"

    def need(self, field: Number) -> str:
        """Return the variable of a number; add what computes it."""
        if field in self.numbers:
            return self.numbers[field]
        name = self.numbers[field] = self.fresh()
        layout = self.layout
        kinds = dict(zip(layout.family.kinds, layout.kind, strict=False))
        if field.refers is not None or field.checksums or isinstance(field, Mark):
            raise UnfitError
        if kinds.get(field, -1) >= 0:
            self.put(f"{name} = {kinds[field]}")
        elif self.is_late(field):
            self.put(f"{name} = 0")
        elif field.equals is not None:
            for leaf in field.equals.leaves():
                if isinstance(leaf, Number):
                    self.need(leaf)
            mask = (1 << 64) - 1 if field.nbits == 64 and not field.signed else -1
            self.put(f"{name} = {self.expression(field.equals)} & {mask}")
        elif field in layout.implied:
            self.implied(field, name)
        elif not field.public:
            self.put(f"{name} = 0")
        else:
            self.put(f"{name} = made.{field.name}")
            if field.values:
                numbers = self.let(field.names_of)
                self.put(f"{name} = {numbers}.get({name}, {name})")
            given = self.let(field.given)
            self.put(f"if {name}.__class__ is not int: "
                     f"{name} = {given}({name})")  # fmt: skip
        least, most = field.range
        self.put(f"if not {least} <= {name} <= {most}: raise {self.let(field.beyond)}({name})")
        return name

    def is_late(self, field: Number) -> bool:
        """Return whether a number is known once everything else is written."""
        late = field.equals is not None and any(each is SIZE for each in field.equals.leaves())
        return field.role == "size" or late

    def implied(self, field: Number, name: str) -> None:
        """Add a number that follows from other fields."""
        self.put(f"{name} = 0")
        given = self.layout.implied[field]
        if len(given) > 1 and not all(other in self.layout.choice_of for _, other, _, _ in given):
            raise UnfitError
        for how, other, factor, summand in given:
            choice = self.layout.choice_of.get(other)
            if choice is None:
                self.implies(name, how, other, factor, summand)
                continue
            tag = self.need(choice.tag)
            keys = [int(key) for key, each in choice.kinds.items() if each is other]
            test = f"{tag} in {keys}" if choice.other is not other else (
                f"{tag} not in {[int(key) for key in choice.kinds]}")  # fmt: skip
            with self.inside(f"if {test}:"):
                self.implies(name, how, other, factor, summand)

    def implies(self, name: str, how: str, field: Field, factor: int, summand: int) -> None:
        """Add the number that a field implies."""
        given = f"made.{field.name}"
        if how == "flag":
            self.put(f"{name} = int(bool({given}))")
        elif how == "index" and isinstance(field, Text):
            if field.entry is None or not field.entry.table.closed or field.empty != 0:
                raise UnfitError
            data = self.octets(field)
            self.put(f"{name} = len({data})")
            index_of = self.let(field.index_to_write)
            with self.inside(f"if {name} >= {field.inline}:"):
                self.put(f"{index_of}(b, {{{field.name!r}: {given}}})")
            self.put(f"if {name}: {name} |= {field.inline}")
        elif how in ("length", "count") and factor == 1:
            size = f"len({self.octets(field)})" if isinstance(field, Span) else f"len({given})"
            self.put(f"{name} = {size} - {summand}")
        else:
            raise UnfitError

    def octets(self, field: Span) -> str:
        """Return the variable with the bytes of text or octets; add what makes them."""
        name = self.fresh()
        bytes_of = self.let(field.bytes_of)
        if isinstance(field, Text):
            with self.inside("try:"):
                self.put(f"{name} = made.{field.name}.encode()")
            with self.inside("except (AttributeError, UnicodeEncodeError):"):
                self.put(f"{name} = {bytes_of}(made.{field.name})")
        else:
            self.put(f"{name} = {bytes_of}(made.{field.name})")
        return name

    def packed(self, nbytes: int, *, signed: bool) -> str:
        """Return the function that packs an integer."""
        return self.format(nbytes, signed=signed, method="pack") + "_"

    def one(self, field: Field) -> None:
        """Add the writing of a field."""
        if field.when is not None or field.tail or isinstance(field, Mark | Spare):
            raise UnfitError
        if isinstance(field, Bits):
            if field in self.layout.words:
                self.word(field)
        elif isinstance(field, Integer):
            name = self.need(field)
            pack = self.packed(field.nbytes, signed=field.signed)
            if self.is_late(field):
                self.late.append((self.mark(), pack, "0", field))
            self.put(f"out += {pack}({name})")
        elif isinstance(field, Text) and field.entry is not None:
            with self.inside(f"if made.{field.name}:"):
                self.span(field)
        elif isinstance(field, Span):
            self.span(field)
        elif isinstance(field, Listed):
            self.listed(field)
        elif isinstance(field, Choice):
            self.choice(field)
        elif isinstance(field, Float | Texts):
            write = self.let(field.write)
            self.put(f"{write}(b, {{{field.name!r}: made.{field.name}}})")
        elif not isinstance(field, Check | Flag):
            raise UnfitError

    def mark(self) -> str:
        """Return a variable with the place of what is written next."""
        name = self.fresh()
        self.put(f"{name} = len(out)")
        return name

    def word(self, first: Field) -> None:
        """Add a word of bits."""
        nbytes, _ = self.layout.words[first]
        pack, fields = self.packed(nbytes, signed=False), []
        for field in self.layout.fields:
            if isinstance(field, Bits) and self.layout.word_of[field] is first:
                mask = f" & {(1 << field.nbits) - 1}" if field.signed else ""
                fields.append((field, f"({self.need(field)}{mask}) << {field.low}"))
        late = [field for field, _ in fields if self.is_late(field)]
        word = " | ".join(text for field, text in fields if not self.is_late(field)) or "0"
        if late:
            name = self.fresh()
            self.put(f"{name} = {word}")
            at = self.mark()
            self.late += [(at, pack, name, field) for field in late]
            word = name
        self.put(f"out += {pack}({word})")

    def span(self, field: Span) -> None:
        """Add text or bytes."""
        put = self.let(field.put)
        data = self.octets(field)
        if field.until or field.pad or field.fixed is not None:
            self.put(f"{put}(b, {data})")
            return
        self.put(f"out += {data}")
        if field.aligned > 1:
            if field.aligned > len(ZEROS):
                raise UnfitError
            self.put(f"out += ZEROS[(start - len(out)) % {field.aligned}]")

    def listed(self, field: Listed) -> None:
        """Add a list, by the fields' own way of writing."""
        write = self.let(field.write)
        self.put(f"{write}(b, {{{field.name!r}: made.{field.name}}})")

    def choice(self, field: Choice) -> None:
        """Add a choice."""
        tag = self.need(field.tag)
        word = "if"
        for key, variant in [*field.kinds.items(), (None, field.other)]:
            test = "else:" if key is None else f"{word} {tag} == {int(key)}:"
            word = "elif"
            numbers = dict(self.numbers)
            with self.inside(test):
                if variant is None:
                    self.put(f"if made.{field.name} is not None: "
                             f"raise {self.let(field.unwanted)}(made.{field.name})")  # fmt: skip
                else:
                    self.one(variant)
            self.numbers = numbers

    def body(self) -> None:
        """Add all fields, the padding, and what follows from the size."""
        layout, family = self.layout, self.layout.family
        self.late: list[tuple[str, str, str, Number]] = []
        for field in layout.fields:
            self.one(field)
        if layout.fixed or layout.align > 1:
            self.put("before, b.start = b.start, start", "layout.pad_record(b)", "b.start = before")
        self.put("size = len(out) - start")
        words: dict[str, tuple[str, str, list[str]]] = {}
        for at, pack, word, field in self.late:
            name = self.numbers[field]
            if field.role == "size":
                self.put(f"{name} = {self.let(family.units_of)}(size)")
            else:
                assert field.equals is not None  # noqa: S101 (why it is late)
                self.put(f"{name} = {self.expression(field.equals)}")
            least, most = field.range
            self.put(f"if not {least} <= {name} <= {most}: raise {self.let(field.beyond)}({name})")
            low = field.low if isinstance(field, Bits) else 0
            words.setdefault(at, (pack, word, []))[2].append(f"{name} << {low}")
        for at, (pack, word, more) in words.items():
            data = self.fresh()
            self.put(f"{data} = {pack}({' | '.join([word, *more])})")
            self.put(f"out[{at}:{at} + len({data})] = {data}")


def writer_of(layout: Any) -> Callable[[Any, Any], None] | None:
    """Return the function that writes a record or a part with a builder; None if there is none."""
    source = Writer(layout)
    try:
        source.body()
    except UnfitError:
        return None
    begin = ["    out, big, known = b.out, b.big, b.known", "    start = len(out)"]
    made: Callable[[Any, Any], None] = source.made("write", "b, made", begin)
    return made
