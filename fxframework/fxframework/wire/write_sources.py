"""Sources of writing: Python that is generated for a class, which returns the bytes of a record."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fxframework.io.words import U64_MAX
from fxframework.wire.beside import Spare
from fxframework.wire.choices import Again, Choice
from fxframework.wire.cursor import AT, ROOMY, SIZE, RefusalError
from fxframework.wire.expressions import Checksum, Expression
from fxframework.wire.fields import Bits, Field, Integer, Mark, Number
from fxframework.wire.floats import Float
from fxframework.wire.lists import Listed, Texts
from fxframework.wire.sources import Source, UnfitError
from fxframework.wire.spans import Span, Text

__all__ = ["writer_of"]

# A layout is a ``fxframework.wire.records.Layout``.


def is_inline(field: Text) -> bool:
    """Return whether a text that a number refers to is in the record, or empty."""
    return field.entry is not None and field.entry.table.closed and field.empty == 0


class Writer(Source):
    """Generates the writing of a record or a part: what it returns are the bytes.

    What has a size of its own is made first, so that lengths before it are known; then the numbers;
    those of one size that follow one another are packed together.
    """

    def __init__(self, layout: Any, *, big: bool, mirrored: bool) -> None:
        super().__init__(layout, big=big, mirrored=mirrored)
        self.pieces: dict[Field, str] = {}
        """Variables with the bytes of fields that have a size of their own."""
        self.data: dict[Field, str] = {}
        """Variables with the bytes of texts, without padding."""
        self.at: tuple[str, int] = "", 0
        """The place of the next field: a variable, if it depends on sizes, and a number."""
        self.places: dict[Field, str] = {}
        self.pad = ""
        """What is behind the fields, as Python."""
        self.of: Field | None = None
        """The number that is computed."""
        self.whole = False
        self.roomy = False
        """Whether there is room for what a condition asks."""

    def place(self, value: Expression) -> str:
        """Return the size of the record, or the place of the number at hand, as Python."""
        if self.roomy:
            return str(ROOMY[value])
        if value is AT and self.of in self.places:
            return self.places[self.of]
        if value is AT or not self.whole:
            raise UnfitError
        return "size"

    def here(self) -> str:
        """Return the place of the next field as Python."""
        name, number = self.at
        return f"({name} + {number})" if name else str(number)

    def refuse(self, condition: str, problem: Callable[..., RefusalError], *values: str) -> None:
        """Add the refusal of a record, if a condition holds."""
        self.put(f"if {condition}: raise {self.let(problem)}({', '.join(values)})")

    @contextmanager
    def branch(self, line: str) -> Iterator[None]:
        """Indent what follows ``line``, whose variables others do not know."""
        kept = dict(self.numbers), dict(self.data)
        with self.inside(line):
            yield
        self.numbers, self.data = kept

    @contextmanager
    def there(self, field: Field, absent: str) -> Iterator[None]:
        """Indent what is for a field that is there; ``absent`` is for one that is not."""
        if field.when is None:
            yield
            return
        value = f"made.{field.name}"
        if field.by_room:
            self.roomy, kept = True, self.roomy
            condition, self.roomy = self.known(field.when), kept
            with self.branch(f"if {value} is not None:"):
                self.refuse(f"not {condition}", field.unwanted)
                yield
            with self.branch("else:"):
                self.put(absent)
            return
        with self.branch(f"if {self.known(field.when)}:"):
            self.refuse(f"{value} is None", field.missing) if field.public else None
            yield
        with self.branch("else:"):
            self.refuse(f"{value} is not None", field.unwanted) if field.public else None
            self.put(absent)

    def body(self) -> None:
        """Add all fields, and the padding."""
        layout = self.layout
        in_tail = False
        for field in layout.fields:
            if field.tail and not in_tail:
                self.padding()
                in_tail = True
            self.measure(field)
        if not in_tail:
            self.padding()
        self.put(f"size = {self.here()}")
        self.whole = True
        self.joined()
        if layout.word and self.big and not self.mirrored:
            check = self.let(layout.check_kind)
            self.put(f"{check}(memoryview(done), {self.big}, {self.mirrored})")
        self.put("return done")

    def measure(self, field: Field) -> None:
        """Add the bytes of a field that has a size of its own; go behind any other."""
        letter = self.letter(field) if isinstance(field, Number | Float | Spare) else ""
        if field.when is None and letter:
            self.places[field] = self.here()
            self.at = self.at[0], self.at[1] + struct.calcsize(f"<{letter}")
        elif letter or isinstance(field, Span | Choice | Listed | Texts) or field.index is not None:
            piece, name = self.fresh(), self.fresh()
            with self.there(field, f"{piece} = b''"):
                self.put(f"{piece} = {self.piece(field)}")
            self.pieces[field] = piece
            self.put(f"{name} = {self.here()} + len({piece})")
            self.at = name, 0

    def padding(self) -> None:
        """Add what the fields leave of a record."""
        layout, (name, number) = self.layout, self.at
        end = layout.fixed - layout.tail
        if layout.fixed and not name:
            self.put(f"pad = {end - number}")
            self.at = "", end
        elif layout.fixed:
            self.put(f"pad = {end} - {self.here()}")
            self.refuse("pad < 0", layout.overflowing, self.here())
            self.at = "", end
        elif layout.align > 1:
            self.put(f"pad = -({self.here()} + {layout.tail}) % {layout.align}")
            self.put(f"place = {self.here()} + pad")
            self.at = "place", 0
        else:
            return
        if layout.rest is not None:
            self.refuse("pad", layout.padded, "pad")
        elif end != number or name:
            self.pad = "bytes(pad)"

    def joined(self) -> None:
        """Add the numbers, and the join of all parts."""
        parts: list[str] = []
        run: list[Field] = []
        in_tail = False
        for field in self.layout.fields:
            checksums = getattr(field, "checksums", ())
            begins_tail = field.tail and not in_tail
            if begins_tail or checksums or field in self.pieces:
                parts += self.packed(run)
                run = []
            if begins_tail:
                parts += [self.pad] if self.pad else []
                in_tail = True
            if checksums:
                self.put(f"done = {joined(parts)}")
                parts = ["done"]
            for checksum in checksums:
                self.numbers[checksum] = self.fresh()
                self.put(f"{self.numbers[checksum]} = {self.let(checksum.of)}(done)")
            if field in self.pieces:
                parts.append(self.pieces[field])
            elif self.letter(field):
                run.append(field)
        parts += self.packed(run)
        if self.pad and not in_tail:
            parts.append(self.pad)
        self.put(f"done = {joined(parts)}")

    def packed(self, run: list[Field]) -> list[str]:
        """Return the source of the bytes of fields of fixed sizes; one or none."""
        if not run:
            return []
        letters = [
            f"{each.nbytes}s" if isinstance(each, Float) else self.letter(each) for each in run
        ]
        form = self.form("".join(letters))
        return [f"{self.let(form.pack)}({', '.join(self.value(each) for each in run)})"]

    def value(self, field: Field) -> str:
        """Return the source of what is packed for a field, or for the word that it begins."""
        if isinstance(field, Spare):
            return f"{self.let(field.own_bytes)}(made.{field.shown.name})"
        if isinstance(field, Float):
            name = f"made.{field.name}"
            octets = f"{self.let(field.octets)}({name}, {self.big})"
            if field.nbytes != 8:
                return octets
            pack = self.let(self.form("d").pack)
            return (
                f"({pack}({name}) if {name}.__class__ is float and {name} == {name} else {octets})"
            )
        if isinstance(field, Bits):
            nbytes, _ = self.layout.words[field]
            parts = []
            word = [
                each
                for each in self.layout.fields
                if isinstance(each, Bits) and self.layout.word_of[each] is field
            ]
            # The size comes last: what makes a record too large is refused for itself.
            for each in sorted(word, key=lambda each: each.role == "size"):
                mask = f" & {(1 << each.nbits) - 1}" if each.signed else ""
                number, shift = self.need(each), each.shift(nbytes, self.mirrored)
                parts += [f"({number}{mask}) << {shift}"] if number != "0" else []
            text = " | ".join(parts) or "0"
        else:
            assert isinstance(field, Integer)  # noqa: S101 (the other kind with a letter)
            text, nbytes = self.need(field), field.nbytes
        if not self.letter(field).endswith("s"):
            return text
        signed = isinstance(field, Integer) and field.signed
        return f"({text}).to_bytes({nbytes}, {self.order!r}, signed={signed})"

    # --- Numbers --------------------------------------------------------------------------------

    def known(self, value: Expression) -> str:
        """Return an expression as Python; add the numbers that it needs."""
        for leaf in value.leaves():
            if isinstance(leaf, Number):
                self.need(leaf)
        return self.expression(value)

    def need(self, field: Number) -> str:
        """Return the variable of a number, or the number; add what computes it."""
        if field in self.numbers:
            return self.numbers[field]
        constant = self.constant(field)
        if constant is None:
            name = self.fresh()
            with self.there(field, f"{name} = 0"):
                self.compute(field, name)
            constant = name
        self.numbers[field] = constant
        return constant

    def constant(self, field: Number) -> str | None:
        """Return the number that a field always has; None if it depends on something."""
        if isinstance(field, Mark):
            return str(field.number)
        if field in self.kinds:
            return str(self.kinds[field])
        return "0" if self.layout.is_reserved(field) else None

    def compute(self, field: Number, name: str) -> None:
        """Add what computes a number that is there, and the check that it fits."""
        layout = self.layout
        outer, self.of = self.of, field
        beyond = field.beyond
        if field.role == "size":
            units_of = self.let(layout.family.units_of)
            self.put(f"{name} = {units_of}({self.place(SIZE)}, {layout.most})")
        elif field.equals is not None:
            mask = U64_MAX if field.nbits == 64 and not field.signed else -1
            self.put(f"{name} = {self.known(field.equals)} & {mask}")
            late = any(leaf is SIZE or isinstance(leaf, Checksum) for leaf in field.equals.leaves())
            beyond = field.too_much if late else beyond
        elif field in layout.implied:
            self.implied(field, name)
        elif field.refers is not None:
            table = self.let(field.refers)
            self.put(f"{name} = index_of({table}, made.{field.name}, {field.name!r}, state, "
                     f"made.refs)")  # fmt: skip
        else:
            self.put(f"{name} = made.{field.name}")
            if field.values:
                self.put(f"{name} = {self.let(field.names_of)}.get({name}, {name})")
            self.put(f"if {name}.__class__ is not int: {name} = {self.let(field.given)}({name})")
        self.of = outer
        least, most = field.range
        self.refuse(f"not {least} <= {name} <= {most}", beyond, name)

    def implied(self, field: Number, name: str) -> None:
        """Add a number that follows from other fields."""
        given = self.layout.implied[field]
        if len(given) > 1 and not any(each[1] in self.layout.choice_of for each in given):
            names = [(self.fresh(), *each) for each in given]
            for each, how, other, factor, summand in names:
                self.put(f"{each} = None")
                self.implies(each, how, other, factor, summand)
            found = ", ".join(f"({each}, {other.name!r})" for each, _, other, _, _ in names)
            self.put(f"{name} = {self.let(field.agreed)}(({found}))")
            return
        self.put(f"{name} = 0")
        for how, other, factor, summand in given:
            choice = self.layout.choice_of.get(other)
            if choice is None:
                self.implies(name, how, other, factor, summand)
                continue
            tag = self.need(choice.tag)
            keys = [int(key) for key, each in choice.kinds.items() if each is other]
            test = f"{tag} in {keys}" if choice.other is not other else (
                f"{tag} not in {[int(key) for key in choice.kinds]}")  # fmt: skip
            with self.branch(f"if {test}:"):
                self.implies(name, how, other, factor, summand)

    def implies(self, name: str, how: str, field: Field, factor: int, summand: int) -> None:
        """Add the number that a field implies."""
        given = f"made.{field.name}"
        if how == "present":
            self.put(f"{name} = {factor} if {given} is None else {summand}")
            return
        if field.when is not None:
            with self.branch(f"if {given} is not None:"):
                self.says(name, how, field, factor, summand)
        else:
            self.says(name, how, field, factor, summand)

    def says(self, name: str, how: str, field: Field, factor: int, summand: int) -> None:
        """Add the number that a field which is there implies."""
        given = f"made.{field.name}"
        if how == "number" and isinstance(field, Again):
            self.put(f"{name} = {self.let(field.number_to_write)}({given})")
        elif how == "index" and not isinstance(field, Text):
            self.put(f"{name} = {self.let(field.index_of)}(made)")  # type: ignore[attr-defined]
        elif how == "index" and isinstance(field, Text):
            index = f"{self.let(field.index_to_write)}({given}, state, made.refs)"
            if is_inline(field):
                data = self.octets(field)
                index = (
                    f"len({data}) | {field.inline} if 0 < len({data}) < {field.inline} else {index}"
                )
            self.put(f"{name} = {index}")
        else:
            size = f"len({self.octets(field)})" if isinstance(field, Span) else f"len({given})"
            size = f"{size} - {summand}" if summand else size
            if factor == 1:
                self.put(f"{name} = {size}")
            else:
                self.put(f"{name}, rest = divmod({size}, {factor})")
                self.refuse("rest", field.uneven, f"{name} * {factor} + rest + {summand}")

    def octets(self, field: Span) -> str:
        """Return the variable of the bytes of a text or of bytes, without padding."""
        if field not in self.data:
            name = self.data[field] = self.fresh()
            self.put(f"{name} = {self.let(field.bytes_of)}(made.{field.name})")
        return self.data[field]

    # --- Pieces ---------------------------------------------------------------------------------

    def piece(self, field: Field) -> str:
        """Return the source of the bytes of a field that has a size of its own."""
        if isinstance(field, Span) and not isinstance(field, Spare):
            return self.span(field)
        if isinstance(field, Choice):
            return self.choice(field)
        if isinstance(field, Listed | Texts):
            packed = self.let(field.packed)
            return f"{packed}(made.{field.name}, state, {self.big}, {self.here()})"
        if isinstance(field, Number | Float | Spare):
            return self.packed([field])[0]
        if field.index is not None:
            packed = self.let(field.packed)  # type: ignore[attr-defined]
            return f"{packed}(made, {self.known(field.index)}, {self.big})"
        return "b''"

    def span(self, field: Span) -> str:
        """Return the source of text or bytes, with its padding."""
        piece = data = self.octets(field)
        if field.until or field.pad or field.fixed is not None:
            piece = self.fresh()
            self.put(f"{piece} = {self.let(field.ended)}({data})")
        here = ""
        if isinstance(field, Text) and field.entry is not None:
            here = data if is_inline(field) else f"{self.known(field.entry.index)} & {field.inline}"
        if here or field.aligned > 1:
            pad = f" + bytes(-({self.here()} + len({piece})) % {field.aligned})"
            piece, data = self.fresh(), piece + pad * (field.aligned > 1)
            self.put(f"{piece} = {data}" + (f" if {here} else b''" if here else ""))
        return piece

    def choice(self, field: Choice) -> str:
        """Return the source of the bytes of a choice; add the numbers that its kinds imply."""
        name, tag = self.fresh(), self.need(field.tag)
        of_this = {
            number: (self.fresh(), given)
            for number, given in self.layout.implied.items()
            if number not in self.numbers
            and all(self.layout.choice_of.get(other) is field for _, other, _, _ in given)
        }
        self.put(*(f"{each} = 0" for each, _ in of_this.values()))
        word = "if"
        for key, variant in [*field.kinds.items(), (None, field.other)]:
            with self.branch("else:" if key is None else f"{word} {tag} == {int(key)}:"):
                if variant is None:
                    self.refuse(
                        f"made.{field.name} is not None", field.unknown, f"made.{field.name}"
                    )
                for each, given in of_this.values():
                    for how, other, factor, summand in given:
                        if variant is not None and other is variant:
                            self.implies(each, how, other, factor, summand)
                self.numbers.update((number, each) for number, (each, _) in of_this.items())
                self.put(f"{name} = {repr(b'') if variant is None else self.piece(variant)}")
            word = "elif"
        for number, (each, _) in of_this.items():
            self.numbers[number] = each
            least, most = number.range
            self.refuse(f"not {least} <= {each} <= {most}", number.beyond, each)
        return name


def joined(parts: list[str]) -> str:
    """Return the source of the join of some bytes."""
    if len(parts) < 4:
        return " + ".join(parts) or "b''"
    return f"b''.join(({', '.join(parts)}))"


def writer_of(layout: Any, *, big: bool, mirrored: bool) -> Callable[[Any, Any], bytes]:
    """Return the function ``(object, state)`` that returns the bytes. Raises UnfitError."""
    source = Writer(layout, big=big, mirrored=mirrored)
    source.body()
    begin = "known = {} if state is None else state.registers"
    made: Callable[[Any, Any], bytes] = source.made("write(made, state)", begin)
    return made
