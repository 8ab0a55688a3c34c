"""Sources of reading: Python that is generated for a class, which reads its usual records fast.

Of others, ``Layout.read`` reads field by field, or in strides: numbers that lie one behind the
other, as long as they are usual.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fxframework.io.words import U64_MAX
from fxframework.wire.beside import Computed, Spare, Surplus
from fxframework.wire.choices import Again, Check, Choice, Flag
from fxframework.wire.cursor import AT, Cursor, mirror
from fxframework.wire.expressions import Expression, Register
from fxframework.wire.families import Fields
from fxframework.wire.fields import Bits, Field, Integer, Mark, Number, Values
from fxframework.wire.floats import Float
from fxframework.wire.lists import Listed, Texts
from fxframework.wire.sources import ANY, LETTERS, UNUSUAL, Source, UnfitError, UnusualError
from fxframework.wire.spans import Span, Text, place_of

__all__ = ["Step", "part_reader", "reader_of", "strides_of"]

# A layout is a ``fxframework.wire.records.Layout``.


class Reader(Source):
    """Generates the reading of a record or a part from a cursor, from byte ``at`` to ``end``."""

    def __init__(self, layout: Any, *, big: bool, mirrored: bool) -> None:
        super().__init__(layout, big=big, mirrored=mirrored)
        self.sized = bool(layout.fixed or layout.family.size is not None)
        self.values: dict[str, str] = {}
        self.words: dict[Field, str] = {}
        self.raw: dict[Field, str] = {}
        self.refers = False
        self.compares = False
        """Whether what is read must be held against what it is written as."""
        self.ended = False

    def place(self, value: Expression) -> str:
        """Return the size of the record, or the place in it, as Python."""
        if value is AT or (self.ended and not self.sized):
            return "(at - start)"
        if not self.sized:
            raise UnfitError
        return "(end - start)"

    def register(self, value: Register) -> str:
        """Return the value of a register as Python; one that is not known is unusual."""
        return f"known[{self.let(value)}]"

    def body(self) -> None:
        """Add all fields."""
        layout = self.layout
        run: list[Field] = []
        in_tail = False
        for field in layout.fields:
            if field.tail and not in_tail:
                self.take(run)
                run, in_tail = [], True
                self.padding()
                self.put("limit = end")
            if self.is_steady(field):
                run.append(field)
                continue
            self.take(run)
            run = []
            self.field(field)
        self.take(run)
        if self.sized:
            self.padding() if not in_tail else self.unless("at == end")
        self.ended = True
        for number in layout.measured:
            self.equal(number, self.numbers[number])
        for register, value in layout.sets.items():
            self.put(f"sets[{self.let(register)}] = {self.expression(value)}")
        for table in layout.clears:
            self.put(f"c.effects.append(('clear', {self.let(table)}))")
        self.end()

    def end(self) -> None:
        """Add what makes the object."""
        layout = self.layout
        hidden = {field.name for field in layout.family.kinds if field not in layout.public}
        values = {name: value for name, value in self.values.items() if name not in hidden}
        if self.refers:
            values["refs"] = "refs or None"
        if not layout.is_part:
            values["nbytes"] = "at - start"
        self.make({"offset": "start", **values})
        if self.compares:
            self.unless("made.pack(c.state) == data[start:at]")
        if layout.in_rows:
            known = (f"{self.let(field)}: {name}" for field, name in self.numbers.items())
            self.put(f"c.known = {{{', '.join(known)}}}")
        self.put("c.at = at", "return made")

    def padding(self) -> None:
        """Add the check of what the fields leave of a record: zero bytes, up to a unit."""
        layout = self.layout
        with self.inside("if at != limit:"):
            if not layout.fixed:
                self.unless(f"limit - at == (start - at - {layout.tail}) % {layout.align}")
            self.put(f"if any(data[at:limit]): raise {ANY}", "at = limit")

    def is_steady(self, field: Field) -> bool:
        """Return whether the bytes of a field, if it has any, have one size, and stand alone."""
        if field.when is not None:
            return False
        if isinstance(field, Number):
            return not field.checksums
        if isinstance(field, Text) and (field.defines is not None or field.entry is not None):
            return False
        if isinstance(field, Span):
            return field.fixed is not None and field.aligned == 1
        return isinstance(field, Float | Computed | Check | Again)

    def take(self, run: list[Field]) -> None:
        """Add fields of fixed sizes, which are unpacked together."""
        letters = [(field, self.letter(field)) for field in run]
        self.raw.update((field, self.fresh()) for field, letter in letters if letter)
        names = ", ".join(self.raw[field] for field, letter in letters if letter)
        if names:
            form = self.form("".join(letter for _, letter in letters))
            self.put(
                f"if limit - at < {form.size}: raise {ANY}",
                f"{names}, = {self.let(form.unpack_from)}(data, at)",
                f"at += {form.size}",
            )
        for field in run:
            self.taken(field)

    def taken(self, field: Field) -> None:
        """Add what becomes of a field whose bytes are taken."""
        name = self.raw.get(field, "")
        if isinstance(field, Number):
            self.number(field)
        elif isinstance(field, Float):
            self.unless(f"{name} == {name}")
            if field.limits:
                least, most = self.let(field.at_least), self.let(field.at_most)
                self.unless(f"{least} <= {name} <= {most}")
            self.values[field.name] = name
        elif isinstance(field, Spare):
            if field.after is not None:
                self.put(f"{name} = {self.raw[field.after]} + {name}")
            if field.shown is field:
                self.values[field.name] = f"({name} if any({name}) else b'')"
        elif isinstance(field, Span):
            self.values[field.name] = self.text(field, name)
        elif isinstance(field, Flag):
            number = self.number_of(field.number)
            self.unless(f"{number} <= 1")
            self.values[field.name] = f"({number} == 1)"
        elif isinstance(field, Again):
            name = self.values[field.name] = self.fresh()
            self.put(f"{name} = {self.number_of(field.number)}")
            if field.signed:
                self.put(f"if {name} > {field.range[1]}: {name} -= {1 << field.number.nbits}")
        elif isinstance(field, Check):
            with self.inside(f"if {self.expression(field.condition)}:"):
                shown = self.expression(field.shown)
                self.put(f"c.notes.append(({int(field.rule)}, start, {shown}))")
        elif isinstance(field, Computed):
            name = self.fresh()
            value = self.expression(field.of).removeprefix("wrapped")  # its low bits are the same
            self.put(f"{name} = {value} & {(1 << field.nbits) - 1}")
            self.signed(name, field)
            self.numbers[field] = self.values[field.name] = name

    def signed(self, name: str, field: Any) -> None:
        """Add the sign of a number of bits."""
        if field.signed:
            self.put(f"if {name} >> {field.nbits - 1}: {name} -= {1 << field.nbits}")

    def field(self, field: Field) -> None:
        """Add a field with a size of its own, or one that may be absent."""
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
        if isinstance(field, Number):
            for checksum in field.checksums:
                self.numbers[checksum] = self.fresh()
                of = self.let(checksum.of)
                self.put(f"{self.numbers[checksum]} = {of}(data[start:at])")
        if isinstance(field, Number | Float | Computed | Check | Again):
            self.take([field])
        elif isinstance(field, Span):
            self.span(field)
        elif isinstance(field, Listed):
            self.listed(field)
        elif isinstance(field, Choice):
            self.choice(field)
        elif isinstance(field, Texts):
            self.texts(field)
        elif isinstance(field, Surplus):
            self.unless("at == limit")
        elif field.index is not None and field.usual is not None:
            name, self.refers = self.fresh(), True
            index = self.expression(field.index)
            self.put(f"{name}, at = {self.let(field.usual)}(c, at, limit, {index}, refs)")
            self.values[field.name] = name
        else:
            raise UnfitError

    def number(self, field: Number) -> None:
        """Add a number whose bytes are taken."""
        name = self.raw.get(field, "")
        if name and self.letter(field).endswith("s"):
            signed = isinstance(field, Integer) and field.signed
            self.put(f"{name} = int.from_bytes({name}, {self.order!r}, signed={signed})")
        if isinstance(field, Bits):
            layout = self.layout
            if field in layout.words:
                nbytes, reserved = layout.words[field]
                self.words[field] = name
                if reserved:
                    mask = mirror(reserved, nbytes) if self.mirrored else reserved
                    self.put(f"if {name} & {mask}: raise {ANY}")
            first = layout.word_of[field]
            shift = field.shift(layout.words[first][0], self.mirrored)
            name = self.fresh()
            self.put(f"{name} = {self.words[first]} >> {shift} & {(1 << field.nbits) - 1}")
            self.signed(name, field)
        self.numbers[field] = name
        self.check(field, name)
        if field.public:
            self.values[field.name] = self.shown(field, name)

    def shown(self, field: Number, name: str) -> str:
        """Return the value of a number in an object as Python."""
        if isinstance(field, Mark):
            return repr(field.names[int(self.big)])
        if field.refers is not None:
            return self.looked_up(field, name, field.refers)
        if field.values:
            return f"{self.let(field.values)}[{name}]"
        return f"({name} == 1)" if field.flag else name

    def looked_up(self, field: Field, number: str, table: Any) -> str:
        """Add what finds the text of a number in a table; return its variable."""
        text, self.refers = self.fresh(), True
        self.put(
            f"{text} = c.state.text({self.let(table)}, {number})",
            f"if {text} is None: raise {ANY}",
            f"refs[{field.name!r}] = {number}",
        )
        return text

    def check(self, field: Number, name: str) -> None:
        """Add the checks of a number, and what it sets."""
        layout = self.layout
        if isinstance(field, Mark):
            self.unless(f"{name} == {field.number}")
        if field in self.kinds:
            self.unless(f"{name} == {self.kinds[field]}")
        if field.role == "size":
            family = layout.family
            self.unless(f"{name} * {family.unit} + {family.plus} == end - start")
        if field.equals is not None and field not in layout.measured:
            self.equal(field, name)
        if field.values and not field.public:
            self.unless(f"{name} in {self.let(field.values)}")
        if layout.is_reserved(field):
            self.put(f"if {name}: raise {ANY}")
        for holds, _ in field.limits:
            self.unless(self.expression(holds))
        implied = [how for how, *_ in layout.implied.get(field, ())]
        if "present" in implied or len(set(field.values.values())) < len(field.values):
            self.compares = True
        for register, before in ((field.sets, ""), (field.adds, "known[{}] + ")):
            if register is not None:
                key = self.let(register)
                total = f"({before.format(key)}{name} + {1 << 63} & {U64_MAX}) - {1 << 63}"
                self.put(f"sets[{key}] = {total if before else self.in_64_bits(field, name)}")

    def equal(self, field: Any, name: str) -> None:
        """Add the check of what a number must be equal to."""
        if any(leaf is AT for leaf in field.equals.leaves()):
            raise UnfitError
        self.put(f"if ({self.expression(field.equals)} - {name}) & {U64_MAX}: raise {ANY}")

    def room(self, nbytes: str) -> None:
        """Add the check that there are so many bytes."""
        self.put(f"if not 0 <= {nbytes} <= limit - at: raise {ANY}")

    def span(self, field: Span) -> None:
        """Add text or bytes."""
        if isinstance(field, Text) and field.entry is not None:
            self.referred(field)
            return
        place, data = self.fresh(), self.fresh()
        self.put(f"{place} = at")
        if field.until:
            self.put(
                f"{data} = {self.let(place_of)}(data, at, limit, {field.until!r}, c.state.absent)",
                f"if {data} < 0: raise {ANY}",
                f"{data} = data[at:{data}].tobytes()",
                f"at += len({data}) + 1",
            )
        else:
            size = "limit - at"
            if field.nbytes is not None:
                size = self.fresh()
                self.put(f"{size} = {self.expression(field.nbytes)}")
                self.room(size)
            self.put(f"{data} = data[at:at + {size}].tobytes()", f"at += len({data})")
        shown = self.text(field, data)
        if field.pad and field.fixed is None:
            self.compares = True
        if isinstance(field, Text) and field.defines is not None:
            table, index = self.let(field.defines.table), self.expression(field.defines.index)
            self.put(f"c.effects.append(('define', {table}, {index}, {shown}, {place}, "
                     f"len({data})))")  # fmt: skip
        self.values[field.name] = shown
        self.align(field.aligned)

    def text(self, field: Span, data: str) -> str:
        """Add what takes the padding off; return the variable of the value."""
        if field.pad:
            self.put(f"{data} = {data}.rstrip({field.pad!r})")
        if not isinstance(field, Text):
            return data
        text = self.fresh()
        self.put(f"{text} = {data}.decode()")
        return text

    def referred(self, field: Text) -> None:
        """Add a text that is inline, empty, or in a table."""
        assert field.entry is not None  # noqa: S101 (asked only of references)
        index, data, name = self.fresh(), self.fresh(), self.fresh()
        self.put(f"{index} = {self.expression(field.entry.index)}")
        for leaf in () if isinstance(field.entry.index, Number) else field.entry.index.leaves():
            if isinstance(leaf, Number):
                self.unless(f"{self.number_of(leaf)} == {index}")
        if field.inline:
            with self.inside(f"if {index} & {field.inline}:"):
                size = f"({index} & {field.inline - 1})"
                self.room(size)
                self.put(f"if {index} == {field.inline}: raise {ANY}") if field.empty == 0 else None
                self.put(f"{data} = data[at:at + {size}].tobytes()", f"at += len({data})")
                self.put(f"{name} = {self.text(field, data)}")
                self.align(field.aligned)
        if field.empty is not None:
            with self.inside(f"{'elif' if field.inline else 'if'} {index} == {field.empty}:"):
                self.put(f"{name} = ''")
        with self.inside("else:" if field.inline or field.empty is not None else "if True:"):
            if field.entry.table.closed:
                self.put(f"raise {ANY}")
            else:
                self.put(f"{name} = {self.looked_up(field, index, field.entry.table)}")
        self.values[field.name] = name

    def align(self, unit: int) -> None:
        """Add what goes over the padding behind a field or an item."""
        if unit > 1:
            end = self.fresh()
            self.put(f"{end} = at + (start - at) % {unit}")
            with self.inside(f"if {end} > at:"):
                self.put(f"if {end} > limit or any(data[at:{end}]): raise {ANY}", f"at = {end}")

    def texts(self, field: Texts) -> None:
        """Add texts behind their sizes."""
        name, nbytes = self.fresh(), self.fresh()
        self.values[field.name] = name
        letter = self.letter(field.size)
        take = self.let(self.form(letter).unpack_from)
        own = field.size.nbytes
        self.put(f"{name} = []")
        with self.inside("while True:"):
            self.put(
                f"if limit - at < {own}: raise {ANY}",
                f"{nbytes}, = {take}(data, at)",
                f"at += {own}",
                f"if not {nbytes}: break",
                f"if {nbytes} > {field.longest} or len({name}) == {field.most}: raise {ANY}",
            )
            self.room(nbytes)
            self.put(f"{name}.append(data[at:at + {nbytes}].tobytes().decode())", f"at += {nbytes}")
        self.put(f"{name} = tuple({name})")

    def listed(self, field: Listed) -> None:
        """Add a list."""
        name = self.values[field.name] = self.fresh()
        least, item = field.least_item(), field.item
        count = self.fresh()
        counted = field.count is not None
        if field.count is not None:
            self.put(f"{count} = {self.expression(field.count)}")
            self.room(f"{count} * {least}")
        if isinstance(item, Integer):
            if item.nbytes not in LETTERS:
                raise UnfitError
            if not counted:
                self.put(f"{count} = (limit - at) // {least}")
                self.unless(f"{count} * {least} == limit - at")
            order, letter = ">" if self.big else "<", self.letter(item)
            take = self.let(struct.unpack_from)
            self.put(
                f"{name} = {take}(f'{order}{{{count}}}{letter}', data, at)",
                f"at += {count} * {least}",
            )
            return
        reader = item.layout.readers[self.big, self.mirrored]
        if reader is None:
            raise UnfitError
        read = self.let(reader)
        self.put(f"{name} = []")
        with self.inside(f"while {f'len({name}) < {count}' if counted else 'at < limit'}:"):
            self.put(f"{name}.append({read}(c, at, limit))", "at = c.at")
            self.align(item.layout.family.pad)
        self.put(f"{name} = tuple({name})")

    def choice(self, field: Choice) -> None:
        """Add a choice."""
        name, tag = self.fresh(), self.number_of(field.tag)
        implied = {
            number: [variant for _, variant, _, _ in given if variant in self.layout.choice_of]
            for number, given in self.layout.implied.items()
        }
        word = "if"
        known = dict(self.numbers)
        for key, variant in [*field.kinds.items(), (None, field.other)]:
            with self.inside("else:" if key is None else f"{word} {tag} == {int(key)}:"):
                self.values[field.name] = "None"
                if variant is not None:
                    self.one(variant)
                self.put(f"{name} = {self.values[field.name]}")
                for number, given in implied.items():
                    if given and not any(each is variant for each in given):
                        self.put(f"if {self.numbers[number]}: raise {ANY}")
            word = "elif"
        self.values[field.name], self.numbers = name, known


def reader_of(layout: Any, *, big: bool, mirrored: bool) -> Callable[..., Any]:
    """Return the function ``(cursor, at, end)`` that reads an object. Raises UnfitError."""
    source = Reader(layout, big=big, mirrored=mirrored)
    source.body()
    begin = ["data, start, known, sets = c.data, at, c.state.registers, c.sets"]
    if layout.fixed:
        begin += [f"if end - start < {layout.fixed}: raise {ANY}", f"end = start + {layout.fixed}"]
    begin.append(f"limit = end - {layout.tail}" if layout.tail else "limit = end")
    begin += ["refs = {}"] if source.refers else []
    made: Callable[..., Any] = source.made("read(c, at, end)", *begin)
    return made


def part_reader(layout: Any, *, big: bool, mirrored: bool) -> Callable[..., Any]:
    """Return the function ``(cursor, at, limit)`` that reads an item of a family."""
    family = layout.family
    if not (family.kinds or family.size is not None or layout.fixed):
        return reader_of(layout, big=big, mirrored=mirrored)
    classes = [each for each in (layout.cls, *family.members, family.other) if each is not None]
    readers: dict[Any, Callable[..., Any]] = {
        cls: reader_of(cls.layout, big=big, mirrored=mirrored)
        for cls in (classes[1:] if family.kinds else classes)
    }

    def read(c: Any, at: int, limit: int) -> Any:
        if family.head > limit - at:
            raise UnusualError
        cls = layout.cls
        if family.kinds:
            cls = family.choose(family.numbers(c.data, at, big, mirrored), c.state.registers)
            if cls is None:
                raise UnusualError
        size = family.size_at(c.data, at, big, mirrored) or cls.layout.size
        if not family.head <= size <= limit - at:
            size = limit - at if not size and family.size is None else -1
        return readers[cls](c, at, at + size)

    return read


# --- Records that are not usual -------------------------------------------------------------------


class Step(NamedTuple):
    """What reads a field, or several."""

    field: Field
    """The first of them."""
    begins_tail: bool
    when: Callable[[Mapping[Any, int]], Any] | None
    """Returns whether the field is there, by what is known; None: it always is."""
    read: Callable[[Cursor, Values], None]


class StrideReader(Reader):
    """Generates the reading of fields that are always there, from a cursor of ``Layout.read``."""

    def __init__(self, layout: Any, *, big: bool, mirrored: bool) -> None:
        super().__init__(layout, big=big, mirrored=mirrored)
        self.steps: list[Step] = []
        self.run = Fields()
        """The numbers."""
        self.checks: list[Check] = []
        """Findings by rules of the format, behind the numbers."""

    def number_of(self, field: Expression) -> str:
        """Return the variable of a field, or where the cursor has it."""
        return self.numbers.get(field) or f"known[{self.let(field)}]"

    def place(self, value: Expression) -> str:
        """Return the size of the record, or the place in it, as Python."""
        return f"known.get({self.let(value)}, 0)"

    def register(self, value: Register) -> str:
        """Return the value of a register as Python."""
        return Source.register(self, value)

    def check(self, field: Number, name: str) -> None:
        """Add the checks of a number."""
        if field.values and not field.public:
            self.unless(f"{name} in {self.let(field.values)}")
        if self.layout.is_reserved(field):
            self.put(f"if {name}: raise {ANY}")
        for holds, _ in field.limits:
            self.unless(self.expression(holds))

    def accepts(self, field: Field) -> bool:
        """Return whether a field can be read with those before it."""
        if field.when is not None:
            return False
        if isinstance(field, Check):
            return True
        if self.checks or type(field).read is not Number.read:
            return False
        assert isinstance(field, Number)  # noqa: S101 (it is read as one)
        does_more = field.equals, field.refers, field.sets, field.adds
        if any(each is not None for each in does_more):
            return False
        if isinstance(field, Bits) and field not in self.layout.words:
            return self.layout.word_of[field] in self.run
        return isinstance(field, Bits | Integer)

    def condition(self, when: Expression) -> Callable[[Mapping[Any, int]], Any]:
        """Return the function that tells, by what is known, whether a condition holds."""
        self.put(f"return {self.expression(when)}")
        made: Callable[[Mapping[Any, int]], Any] = self.made("there(known)")
        return made

    def add(self, step: Step) -> None:
        """Add a field."""
        if isinstance(step.field, Check):
            self.checks.append(step.field)
        else:
            self.run = Fields((*self.run, step.field))
        self.steps.append(step)

    def stride(self) -> Step:
        """Return what reads the fields at once, or one after the other where that is needed."""
        self.take(list(self.run))
        for number, name in self.numbers.items():
            self.put(f"known[{self.let(number)}] = {name}")
        for key, value in self.values.items():
            self.put(f"values[{key!r}] = {value}")
        word, behind = "", 0
        for field in self.run:
            behind += field.least()
            if field in self.words:
                nbytes, _ = self.layout.words[field]
                word, behind = f"{self.words[field]}, {nbytes}", nbytes
        if word:
            self.put(f"c.word, c.word_nbytes, c.word_at = {word}, at - {behind}")
        self.put("c.at = at")
        for check in self.checks:  # last: nothing else has been done where a number is not usual
            self.taken(check)
        begin = "data, at, limit, known, start = c.data, c.at, c.limit, c.known, c.start"
        together = self.made("stride(c, values)", begin)
        steps = self.steps

        def read(c: Cursor, values: Values) -> None:
            try:
                together(c, values)
            except UNUSUAL:
                for step in steps:
                    c.known[AT] = c.at - c.start
                    step.read(c, values)

        return Step(self.steps[0].field, self.steps[0].begins_tail, None, read)


def strides_of(layout: Any, *, big: bool, mirrored: bool) -> list[Step]:
    """Return what reads all fields of a layout, several of them together where that can be."""
    strides: list[Step] = []
    made = functools.partial(StrideReader, layout, big=big, mirrored=mirrored)
    run = made()
    for step in layout.steps:
        if run.steps and (step.begins_tail or not run.accepts(step.field)):
            strides.append(run.stride())
            run = made()
        if run.accepts(step.field):
            run.add(step)
        elif step.when is None:
            strides.append(step)
        else:
            strides.append(step._replace(when=made().condition(step.field.when)))
    if run.steps:
        strides.append(run.stride())
    return strides
