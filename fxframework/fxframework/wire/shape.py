"""Shape: what a layout knows of its fields, and what follows from that alone."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from fxframework.io.words import Bits as WordBits
from fxframework.io.words import WordLayout
from fxframework.wire.beside import Computed, Spare
from fxframework.wire.choices import Again, Check, Choice
from fxframework.wire.cursor import AT, SIZE
from fxframework.wire.expressions import (
    Calculation,
    Checksum,
    Constant,
    Expression,
    Named,
    Register,
    expression,
    expression_or_none,
)
from fxframework.wire.families import OTHER, Family, Fields, Place, declaration_error
from fxframework.wire.fields import Bits, Field, Integer, Mark, Number
from fxframework.wire.floats import Float
from fxframework.wire.lists import Listed
from fxframework.wire.spans import Span, Text


def is_reference(field: Field) -> bool:
    """Return whether a field shows an entry of a table."""
    if field.index is not None:
        return True
    return isinstance(field, Number) and field.refers is not None


class Shape:
    """The fields of a class, in the order of the file, and what follows from their order."""

    def __init__(
        self, cls: Any, family: Family | None, own: list[Field], options: Any, *, is_part: bool
    ) -> None:
        self.cls = cls
        self.is_part = is_part
        kind = options.get("kind", ())
        if isinstance(kind, int):
            kind = (kind,)
        self.kind: tuple[int, ...] = tuple(kind)
        """The numbers of its kind: one, or two."""
        self.when = expression_or_none(options.get("when"))
        """The condition on registers under which the kind is of this class."""
        self.size: int = 0
        """The size of this kind, where the family has no size."""
        self.word: int = 0
        """Bytes of the first word of this kind, where it is longer than that of the family."""
        inherited: list[Field] = []
        kinds: list[Number] = []
        if family is None:
            self.family = Family(cls, options)
        else:
            self.family = family
            self.size = options.get("size", 0)
            self.word = options.get("word", 0)
            base: Any = family.base
            inherited += base.layout.fields
            if self.kind != (OTHER,):
                kinds = family.kinds
        limits = (options.get("most"), self.family.most)
        self.most: int = min(filter(None, limits), default=0)
        """The greatest size of a record of this kind; 0 for none."""
        self.section: str = options.get("section", "")
        """The section of the format's document."""
        self.clears = tuple(options.get("clears", ()))
        self.keys: tuple[str, ...] = tuple(options.get("keys", ()))
        # A kind of one number has no field for a second one: its bits are the class's own.
        unused_kinds = Fields(kinds[len(self.kind) :])
        head = [field for field in inherited if not field.tail and field not in unused_kinds]
        body = [field for field in own if not field.tail]
        tail = [field for field in (*inherited, *own) if field.tail]
        self.fields = Fields([*head, *body, *tail])
        hidden = Fields(kinds)  # the class says the kind
        self.public = Fields(field for field in self.fields if field.public and field not in hidden)
        self.by_name: dict[str, Any] = {field.name: field for field in self.fields}
        """The fields by name."""
        self.sets = {
            register: expression(value).resolved(self._field_of)
            for register, value in options.get("sets", {}).items()
        }
        self.words: dict[Field, tuple[int, int]] = {}
        """Size and reserved bits of a word, by the field that begins it."""
        self.word_of: dict[Field, Field] = {}
        """The field that begins the word of a field of bits."""
        self.implied: dict[Field, list[tuple[str, Field, int, int]]] = {}
        """What implies the value of a field: how, field, factor and summand."""
        self.shows_type = bool(self.family.kinds) and self.is_part
        """Whether record JSON has the type beside the fields: of parts of several kinds."""
        self.stated: dict[Field, Expression] = {}
        """The lengths and counts of fields whose numbers are shown, because none is implied."""
        self.choice_of: dict[Field, Choice] = {}
        """The choice that a field is a part of."""
        self._bind_words()
        self._bind_references()
        self.measured: dict[Number, None] = {}
        """Numbers that are equal to a size which is known once the other fields are read."""
        if not self.fixed and self.family.size is None:
            self.measured = dict.fromkeys(self._equal_to_size())
        marks = (field for field in self.fields if isinstance(field, Mark))
        self.mark: Mark | None = next(marks, None)
        in_order = [field for field in self.fields if not field.tail and not field.is_computed]
        self.rest: Field | None = None
        """The field that has all that the record has left."""
        if in_order and takes_rest(in_order[-1]):
            self.rest = in_order[-1]
        self.tail = sum(self._least(field) for field in self.fields if field.tail)
        self.least = sum(self._least(field) for field in self.fields)
        self.shown = self._in_order()
        if family is None:
            self.family.take_fields(self)
        self._check_options(options, family)
        if self.mark is not None:
            self.mark_place = self.places[self.mark]

    def _field_of(self, name: str) -> Expression:
        """Return the field of a name; the name itself if there is none."""
        field: Expression = self.by_name.get(name, Named(name))
        return field

    def _equal_to_size(self) -> Iterator[Number]:
        """Yield the numbers that are equal to something of the record's size."""
        for field in self.fields:
            if not isinstance(field, Number) or field.equals is None:
                continue
            if any(leaf is SIZE for leaf in field.equals.leaves()):
                yield field

    def _check_options(self, options: Any, family: Family | None) -> None:
        """Raise PluginError for options that the fields contradict."""
        cls = self.cls
        fixed = self.fixed
        if fixed and self.least > fixed:
            # Name the field that is the first beyond the end.
            end = 0
            for field in self.fields:
                end += self._least(field)
                if end > fixed:
                    raise declaration_error(
                        cls, field, f"ends at byte {end} of a record of {fixed} bytes"
                    )
        if family and "most" in options and (self.is_part or family.size is None):
            raise declaration_error(cls, None, "says most=…, but no field says a size")
        if self.when is not None:
            for leaf in self.when.leaves():
                if not isinstance(leaf, Constant | Register):
                    raise declaration_error(cls, None, f"when depends on {leaf!r}, not a register")

    @property
    def changes_state(self) -> bool:
        """Whether records of the class say something about later ones."""
        if self.sets or self.clears or self.mark is not None:
            return True
        return any(field.changes_state for field in self.fields)

    @property
    def changed(self) -> list[Expression]:
        """The registers that records of the class change."""
        numbers = [field for field in self.fields if isinstance(field, Number)]
        registers = [*self.sets]
        for field in numbers:
            registers += [field.sets, field.adds]
        return [register for register in registers if register is not None]

    def _least(self, field: Field) -> int:
        if field in self.words:
            return self.words[field][0]
        return field.least()

    def _bind_words(self) -> None:
        """Find the word of each field of bits. Raises PluginError for bits that overlap."""
        first_bits: Field | None = None
        nbytes = 0
        named_bits = 0
        for field in self.fields:
            if not isinstance(field, Bits):
                continue
            if field.of is not None or first_bits is None:
                first_bits = field
                named_bits = 0
                nbytes = field.of or self.family.word
                if self.word and not self.words:
                    nbytes = self.word  # the first word
            if field.high >= 8 * nbytes:
                raise declaration_error(
                    self.cls, field, f"bit {field.high} is not in its word of {nbytes} bytes"
                )
            if named_bits & field.mask:
                raise declaration_error(self.cls, field, "overlaps an earlier field of its word")
            named_bits |= field.mask
            reserved = (1 << 8 * nbytes) - 1 & ~named_bits
            self.words[first_bits] = nbytes, reserved
            self.word_of[field] = first_bits

    def _bind_references(self) -> None:
        """Find what implies the value of each field. Raises PluginError for a missing field."""
        # Fields are read in this order, so expressions are of earlier ones. Writing goes backwards:
        # a number that only says how long something is follows from it.
        earlier: set[Expression] = {SIZE}
        for field in self.fields:
            for term in field.expressions():
                self._check_order(field, term, earlier)
            earlier.add(field)
            if isinstance(field, Choice):
                for field_of_kind in field.fields:
                    self.choice_of[field_of_kind] = field
                    self._bind_value(field_of_kind)
            else:
                self._bind_value(field)
            self._imply_presence(field)
        for field in self.fields:
            if field.public:
                continue
            has_value = isinstance(field, Listed | Span | Float | Choice | Again | Computed)
            is_shown_elsewhere = isinstance(field, Spare) and field.shown is not field
            if has_value and not is_shown_elsewhere:
                raise declaration_error(self.cls, field, "has a value, so its name must be public")
            if isinstance(field, Number) and field.refers is not None:
                raise declaration_error(self.cls, field, "shows a text, so its name must be public")

    def _check_order(self, field: Field, term: Expression, earlier: set[Expression]) -> None:
        """Raise PluginError for an expression of a field that depends on what is not known."""
        # ``equals`` may be of later fields: such a number is checked behind all of them.
        is_late = isinstance(field, Number) and term is field.equals
        for leaf in term.leaves():
            if isinstance(leaf, Float):
                raise declaration_error(
                    self.cls, field, f"depends on {leaf!r}: expressions are of integers"
                )
            if isinstance(leaf, Constant | Register | Checksum) or leaf in earlier:
                continue
            if isinstance(leaf, Named):
                raise declaration_error(
                    self.cls,
                    field,
                    f"depends on wire.field({leaf.name!r}), which is for rows and `sets`: use "
                    "the field itself, and declare one of the family before its class",
                )
            if not (is_late and leaf in self.fields):
                raise declaration_error(
                    self.cls, field, f"depends on {leaf!r}, which does not come before it"
                )

    def _bind_value(self, field: Field) -> None:
        """Find the numbers that the value of a field implies: its length, count or index."""
        if isinstance(field, Span) and field.nbytes is not None:
            self._imply(field, "length", field.nbytes)
        if isinstance(field, Listed) and field.count is not None:
            self._imply(field, "count", field.count)
        if field.index is not None:
            self._imply(field, "index", field.index)
        if isinstance(field, Again):
            self._imply(field, "number", field.number)

    def _imply(self, field: Field, how: str, term: Expression) -> None:
        """Let a field imply the number of which its length, count or index is an expression."""
        if how == "index" and isinstance(term, Calculation) and term.symbol == "&":
            term = term.left  # the other bits of the number mean something else
        if how in ("length", "count") and is_said_before(field, term):
            self.stated[field] = term
            return
        linear = term.linear()
        if linear is None:
            numbers = [leaf for leaf in term.leaves() if isinstance(leaf, Number)]
            if all(number.equals is not None for number in numbers):
                return  # they follow from something else
            if all(number.public for number in numbers):
                self.stated[field] = term
                return
        if linear is None or not linear[1]:
            raise declaration_error(
                self.cls, field, f"its {how} is {term!r}, not one field times a number plus one"
            )
        leaf, factor, summand = linear
        if isinstance(leaf, Number) and leaf in self.fields:
            self.implied.setdefault(leaf, []).append((how, field, factor, summand))

    def _imply_presence(self, field: Field) -> None:
        """Let the presence of a field imply the value of a hidden one, where it says so."""
        when = field.when
        if not isinstance(when, Calculation) or when.symbol not in ("==", "!="):
            return
        number = when.left
        constant = when.right
        if not isinstance(number, Number) or not isinstance(constant, Constant):
            return
        if number.public or number.role or number not in self.fields or number in self.implied:
            return
        if when.symbol == "==":
            present = constant.number
            absent = int(present == 0)  # any other number
        else:
            # ``!= 0``: any other number does; 1 is the smallest.
            present = 1
            absent = 0
        self.implied.setdefault(number, []).append(("present", field, absent, present))

    def _in_order(self) -> Fields:
        """Return the public fields in the order of record JSON."""
        unknown = set(self.keys) - {field.name for field in self.public} - {"type"}
        if unknown:
            raise declaration_error(self.cls, None, f"keys= names no field: {sorted(unknown)}")
        rank = {name: number for number, name in enumerate(self.keys)}
        # Fields that ``keys`` does not name come last, in the order of the file.
        return Fields(sorted(self.public, key=lambda field: rank.get(field.name, len(rank))))

    def fixed_bytes(self, field: Field) -> int | None:
        """Return the bytes of a field that has as many in every record; None for another one."""
        if isinstance(field, Bits):  # the first of a word has its bytes, the others none
            nbytes_of_word, _ = self.words.get(field, (0, 0))
            return nbytes_of_word
        if isinstance(field, Integer | Float):
            return field.nbytes
        if isinstance(field, Again | Check | Computed):
            return 0
        if isinstance(field, Text) and field.entry is not None:
            return None if field.inline else 0
        if isinstance(field, Span) and field.aligned == 1:
            return field.fixed
        return None

    @functools.cached_property
    def places(self) -> dict[Field, Place]:
        """The places of the numbers whose place is the same in every record."""
        places: dict[Field, Place] = {}
        offset = 0
        word_offset = 0
        for field in self.fields:
            nbytes = self.fixed_bytes(field)
            if field.tail or field.when is not None or nbytes is None:
                break
            if isinstance(field, Text) and field.entry is not None:
                break
            if isinstance(field, Bits):
                if field in self.words:
                    word_offset = offset
                word_nbytes, _ = self.words[self.word_of[field]]
                mask = (1 << field.nbits) - 1
                places[field] = Place(word_offset, word_nbytes, field.low, mask, field.nbits)
            elif isinstance(field, Integer):
                places[field] = Place(offset, nbytes, 0, (1 << field.nbits) - 1)
            offset += nbytes
        return places

    def place(self, name: str) -> Place:
        """Return the place of the field with this name, which is the same in every record."""
        return self.places[self.by_name[name]]

    def bits(self, name: str) -> WordBits:
        """Return a field of bits for code that takes words apart, compiled kernels among it."""
        field = self.by_name[name]
        assert isinstance(field, Bits)  # noqa: S101 (asked only of bits)
        return field.word_bits

    def header(self, section: str = "", number: int = 0) -> WordLayout:
        """Return a word of bits, the first one or another, for code that takes words apart."""
        first_bits = list(self.words)[number]
        word_bits = [
            field.word_bits
            for field in self.fields
            if isinstance(field, Bits) and self.word_of[field] is first_bits
        ]
        name = f"{self.cls.__name__} header"
        section = section or self.section or self.family.section
        return WordLayout(name, section, tuple(word_bits))

    def fits(self, known: Mapping[Any, int]) -> bool:
        """Return whether records of the class can follow, by the registers."""
        return self.when is None or bool(self.when.value(known))

    def derives(self, field: Field) -> bool:
        """Return whether the value of a field follows from others, so that writing ignores it."""
        if field.role == "kind":
            return self.kind != (OTHER,)
        if field.role == "size" and self.family.power:
            return False
        if isinstance(field, Computed) or field.role or field in self.implied:
            return True
        return isinstance(field, Number) and field.equals is not None

    def numbers_in(self, values: Mapping[str, Any]) -> dict[Field, int]:
        """Return the numbers of those fields whose values are given by name."""
        numbers: dict[Field, int] = {}
        for field in self.public:
            value = values.get(field.name)
            if value is None or not isinstance(field, Number) or isinstance(field, Mark):
                continue
            if field.refers is None:
                numbers[field] = field.numbered(value)
        return numbers

    def is_reserved(self, field: Field) -> bool:
        """Return whether a number has no meaning, and must be zero."""
        return not field.public and field.role != "kind" and not self.derives(field)

    @functools.cached_property
    def fixed(self) -> int:
        """The size of all records of the class; 0 if sizes differ."""
        return self.size or self.family.nbytes

    @functools.cached_property
    def align(self) -> int:
        """The unit of the sizes of records."""
        unit = self.family.unit if self.family.size is not None else 1
        return max(unit, self.family.align)

    @functools.cached_property
    def reserved_fields(self) -> frozenset[Field]:
        """The numbers for which ``is_reserved`` holds."""
        numbers = (field for field in self.fields if isinstance(field, Number))
        return frozenset(filter(self.is_reserved, numbers))

    @functools.cached_property
    def constants(self) -> dict[Field, int]:
        """The numbers that all records of the class have."""
        constants: dict[Field, int] = dict.fromkeys(self.reserved_fields, 0)
        if self.kind != (OTHER,):
            # A kind may have one number where the family has two.
            constants |= zip(self.family.kinds, self.kind, strict=False)
        if self.mark is not None:
            constants[self.mark] = self.mark.number
        return constants

    @functools.cached_property
    def referring(self) -> list[Field]:
        """The fields that refer to tables, and choices of which some do."""
        referring: list[Field] = []
        for field in self.fields:
            fields_of_kinds = field.fields if isinstance(field, Choice) else (field,)
            if any(map(is_reference, fields_of_kinds)):
                referring.append(field)
        return referring

    @functools.cached_property
    def is_sized(self) -> bool:
        """Whether the size of a record or a part is known before its fields are read."""
        return bool(self.fixed) or self.family.size is not None


def is_said_before(field: Field, term: Expression) -> bool:
    """Return whether a length or count is known before the record is; what pads checks its own."""
    if isinstance(field, Span) and (field.pad or isinstance(term, Constant)):
        return False
    return all(
        isinstance(leaf, Constant | Register) and leaf is not AT and leaf is not SIZE
        for leaf in term.leaves()
    )


def takes_rest(field: Field) -> bool:
    """Return whether a field has all that its record has left, zero bytes too."""
    if isinstance(field, Listed):
        return field.count is None
    if not isinstance(field, Span) or (isinstance(field, Text) and field.entry is not None):
        return False
    # Zero bytes behind a span that they fill up may as well be those that fill up the record.
    return field.nbytes is None and not field.until and field.pad != b"\0"
