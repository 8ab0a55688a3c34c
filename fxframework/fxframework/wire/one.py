"""One: a record or a part as an object, whose fields are read, written and shown one by one.

What depends on a layout alone is prepared once: what reads each field, with numbers that lie one
behind the other taken together; where fields of fixed sizes are written; what shows and parses.
"""

from __future__ import annotations

import functools
import itertools
import reprlib
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from fxframework.errors import Refusals, did_you_mean, refusal
from fxframework.kit.json_fields import JsonFields
from fxframework.wire.beside import Computed, Spare
from fxframework.wire.choices import Again, Choice
from fxframework.wire.cursor import AT, ROOMY, SIZE, Cursor, RefusalError, ShortError, mirror
from fxframework.wire.expressions import Checksum, Constant, Evaluator, Expression, wrapped
from fxframework.wire.families import OTHER, Family, Fields
from fxframework.wire.fields import Bits, Field, Integer, Mark, Number, Reader, Values
from fxframework.wire.floats import Float
from fxframework.wire.lists import Listed
from fxframework.wire.spans import Span

if TYPE_CHECKING:
    from fxframework.wire.state import State

__all__ = ["Draft", "One", "is_reference"]

LETTERS = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""Of ``struct``, by bytes of an integer."""
OF_RECORDS = frozenset({"offset", "nbytes", "raw", "refs"})
"""Attributes that all records have, and those of parts among them."""
WORDS_KEPT = 1024
"""Words of a place that are kept as they were taken apart."""
NOT_SHORT = frozenset({105, 106, 107, 108, *range(400, 500)})
"""Rules that are not for a field that does not fit."""


def is_reference(field: Field) -> bool:
    """Return whether a field shows an entry of a table."""
    return field.index is not None or (isinstance(field, Number) and field.refers is not None)


# --- Reading --------------------------------------------------------------------------------------


class Apart(NamedTuple):
    """A word of bits that was taken apart."""

    known: Mapping[Expression, int]
    values: Mapping[str, Any]


class Word:
    """A word of bits, which is taken apart once for each of its values: most come again."""

    def __init__(self, number: int, nbytes: int, place: int, reserved: int) -> None:
        self.number = number
        """Its number among the words and integers that are read together."""
        self.nbytes = nbytes
        self.place = place
        """Where it is, from the first of them."""
        self.mask = reserved
        """The bits that must be ``fixed``."""
        self.fixed = 0
        self.bits: list[tuple[Number, int, int]] = []
        """Fields, with the bits below each and its mask."""
        self.taken: dict[int, Apart] = {}

    def take_apart(self, word: int) -> Apart | None:
        """Return the numbers in a word, and what they show; None if that is not all there is."""
        if word & self.mask != self.fixed:
            return None
        known: dict[Expression, int] = {}
        values: dict[str, Any] = {}
        for field, shift, mask in self.bits:
            number = word >> shift & mask
            if field.signed and number > field.range[1]:
                number -= mask + 1
            known[field] = number
            if field.values and number not in field.values:
                return None
            if field.public:
                shown = field.values.get(number, number)
                values[field.name] = bool(number) if field.flag else shown
        apart = Apart(known, values)
        if len(self.taken) < WORDS_KEPT:
            self.taken[word] = apart
        return apart


class Numbers:
    """Numbers that are always there and lie one behind the other, read together.

    Where some of their bits are not what they must be, or too few bytes are left, each is read by
    itself, which says what is wrong.
    """

    def __init__(self, layout: One, fields: list[Number], big: bool, mirrored: bool) -> None:
        self.each = [_by_rules(field, field.read) for field in fields]
        self.words: list[Word] = []
        self.fixed: list[tuple[int, int]] = []
        """Integers that must be some number, by their numbers."""
        self.integers: list[tuple[Number, int, str]] = []
        """Those of which there is no more to say, with the names of their values."""
        self.others: list[tuple[Number, int, int, int, int]] = []
        """Numbers that are checked or change something: word, bits below, mask, and place."""
        self.summands: list[tuple[Number, int, Any]] = []
        """Integers that are added to a register, and have no other effect."""
        letters = ">" if big else "<"
        place = 0
        for field in fields:
            is_simple = field.is_simple and (field.equals is None or field in layout.measured)
            number = len(letters) - 1
            if isinstance(field, Integer):
                letter = LETTERS[field.nbytes]
                letters += letter.lower() if field.signed else letter
                if field in layout.constants:
                    self.fixed.append((number, layout.constants[field]))
                if field.only_adds:
                    self.summands.append((field, number, field.adds))
                elif is_simple and not field.values:
                    self.integers.append((field, number, field.name if field.public else ""))
                else:
                    self.others.append((field, number, 0, -1, place))
                place += field.nbytes
                continue
            assert isinstance(field, Bits)  # noqa: S101 (the other kind of number)
            if field in layout.words:
                nbytes, reserved = layout.words[field]
                letters += LETTERS[nbytes]
                reserved = mirror(reserved, nbytes) if mirrored else reserved
                self.words.append(Word(number, nbytes, place, reserved))
                place += nbytes
            # Integers may lie between the bits of a word and others of it.
            word = self.words[-1]
            shift, mask = field.shift(word.nbytes, mirrored), (1 << field.nbits) - 1
            if field in layout.constants:
                word.fixed |= (layout.constants[field] & mask) << shift
                word.mask |= mask << shift
            if is_simple:
                word.bits.append((field, shift, mask))
            else:
                self.others.append((field, word.number, shift, mask, word.place))
        self.unpack = struct.Struct(letters).unpack_from
        self.nbytes = place

    def read(self, c: Cursor, values: Values) -> None:
        """Read all of them."""
        begin = c.at
        if c.limit - begin < self.nbytes:
            self.read_each(c, values)
            return
        numbers = self.unpack(c.data, begin)
        known = c.known
        for word in self.words:
            number = numbers[word.number]
            apart = word.taken.get(number) or word.take_apart(number)
            if apart is None:
                self.read_each(c, values)
                return
            known.update(apart.known)
            values.update(apart.values)
        for place, wanted in self.fixed:
            if numbers[place] != wanted:
                self.read_each(c, values)
                return
        for field, place, name in self.integers:
            number = known[field] = numbers[place]
            if name:
                values[name] = number
        for field, place, register in self.summands:
            number = known[field] = values[field.name] = numbers[place]
            c.sets[register] = wrapped(known[register] + number)
        for field, place, shift, mask, at in self.others:
            number = numbers[place] >> shift & mask
            if field.signed and mask > 0 and number > field.range[1]:
                number -= mask + 1
            known[field] = number
            field.settle(c, begin + at, number, values)
        c.at = begin + self.nbytes
        if self.words:
            last = self.words[-1]  # other bits of it may follow
            c.word, c.word_nbytes, c.word_at = numbers[last.number], last.nbytes, begin + last.place

    def read_each(self, c: Cursor, values: Values) -> None:
        """Read one after the other."""
        for read in self.each:
            read(c, values)


def _by_rules(field: Field, read: Reader) -> Reader:
    """Return what reads a field; what does not fit is by the field's own rule."""
    if field.rules.keys() <= NOT_SHORT:
        return read

    def read_by_rules(c: Cursor, values: Values) -> None:
        try:
            read(c, values)
        except ShortError as problem:
            number = field.rules.get(problem.number, problem.number)
            raise ShortError(number, problem.needed) from None

    return read_by_rules


def _where_there(field: Field, when: Expression, read: Reader) -> Reader:
    """Return what reads a field that is there if a condition holds."""
    holds, name = when.evaluate, field.name if field.public else ""
    is_bits = isinstance(field, Bits)

    def read_if_there(c: Cursor, values: Values) -> None:
        if holds(c.known):
            read(c, values)
            return
        c.known[field] = 0
        if name:
            values[name] = None
        if is_bits:
            c.differs = True  # the bits are there, whatever they are

    return read_if_there


def _at_its_place(read: Reader) -> Reader:
    """Return what reads a field that depends on its place."""

    def read_at_place(c: Cursor, values: Values) -> None:
        c.known[AT] = c.at - c.start
        read(c, values)

    return read_at_place


class One:
    """What the layout of a class (``records.Layout``) knows of single objects of the class."""

    cls: Any
    family: Family
    fields: Fields
    kind: tuple[int, ...]
    public: Fields
    shown: Fields
    sets: dict[Any, Expression]
    clears: tuple[Any, ...]
    section: str
    size: int
    tail: int
    most: int
    word: int
    rest: Field | None
    measured: dict[Number, None]
    words: dict[Field, tuple[int, int]]
    word_of: dict[Field, Field]
    implied: dict[Field, list[tuple[str, Field, int, int]]]
    choice_of: dict[Field, Choice]
    mark: Mark | None
    shows_type: bool
    keys: tuple[str, ...]
    derives: Callable[[Field], bool]
    is_reserved: Callable[[Field], bool]

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
        kinds = () if self.kind == (OTHER,) else self.kind
        found: dict[Field, int] = dict.fromkeys(self.reserved_fields, 0)
        found |= zip(self.family.kinds, kinds, strict=False)
        return found if self.mark is None else {**found, self.mark: self.mark.number}

    @functools.cached_property
    def referring(self) -> list[Field]:
        """The fields that refer to tables, and choices of which some do."""
        return [
            field
            for field in self.fields
            if any(map(is_reference, field.fields if isinstance(field, Choice) else (field,)))
        ]

    @functools.cached_property
    def readers(self) -> dict[tuple[bool, bool], list[Reader]]:
        """What reads a record, by byte order and whether bits are mirrored."""
        orders = [(big, mirrored) for big in (False, True) for mirrored in (False, True)]
        return {order: [*self._readers(order), *self._closers()] for order in orders}

    @functools.cached_property
    def explaining_readers(self) -> list[Reader]:
        """What reads a record, each field by itself, so that all of them can be shown."""
        return [*self._readers(None), *self._closers()]

    @functools.cached_property
    def rules_of(self) -> dict[Reader, Mapping[int, int]]:
        """Fields' own rules for what does not fit, by what reads them."""
        return {}

    def _readers(self, order: tuple[bool, bool] | None) -> Iterable[Reader]:
        """Yield what reads the fields; without an order, each by itself."""
        together: list[Number] = []
        in_tail = False

        def reader_of(field: Field) -> Reader:
            """Return what reads one field alone."""
            if order is not None and self._joins(field, []):
                assert isinstance(field, Number)  # noqa: S101 (only they join)
                return Numbers(self, [field], *order).read
            read = field.reader(self, reader_of)
            if field in self.choice_of:
                read = _by_rules(field, read)
            # Spans find their places themselves, and a choice reads others.
            needs_place = field.uses_place and not isinstance(field, Span | Choice)
            return _at_its_place(read) if needs_place else read

        for field in self.fields:
            begins_tail = field.tail and not in_tail
            if together and (begins_tail or not self._joins(field, together)):
                assert order is not None  # noqa: S101 (without one there are none)
                yield Numbers(self, together, *order).read
                together = []
            if begins_tail:
                yield self._begin_tail
                in_tail = True
            if order is not None and self._joins(field, together):
                assert isinstance(field, Number)  # noqa: S101 (only they join)
                together.append(field)
                continue
            read = reader_of(field)
            if field.when is not None:
                read = _where_there(field, field.when, read)
            if field.by_room or order is None:
                read = _at_its_place(read)
            if not field.rules.keys() <= NOT_SHORT:
                self.rules_of[read] = field.rules
            yield read
        if together:
            assert order is not None  # noqa: S101 (without one there are none)
            yield Numbers(self, together, *order).read

    def _closers(self) -> Iterable[Reader]:
        """Yield what there is to do once all fields are read."""
        if self.measured:
            yield self._check_measured
        if self.implied_kinds:
            yield self._drop_implied_kinds
        if self.sets or self.clears:
            yield self._change

    def _check_measured(self, c: Cursor, values: Values) -> None:
        """Check the numbers that are equal to the size."""
        del values
        known = c.known
        claimed = known[SIZE]
        known[SIZE] = c.at - c.start
        for number, evaluate in self._measures:
            if evaluate(known) != known[number]:
                number.check(c)
        known[SIZE] = claimed

    @functools.cached_property
    def _measures(self) -> list[tuple[Number, Evaluator]]:
        """The numbers that are equal to the size, and what computes them from it."""
        return [(each, each.equals.evaluate) for each in self.measured if each.equals is not None]

    def _drop_implied_kinds(self, c: Cursor, values: Values) -> None:
        """Drop the numbers of kinds that the class says."""
        del c
        for name in self.implied_kinds:
            del values[name]

    @functools.cached_property
    def _constant_changes(self) -> dict[Any, int]:
        """The registers that records set to what is always the same."""
        constants = {each: to for each, to in self.sets.items() if isinstance(to, Constant)}
        return {register: value.number for register, value in constants.items()}

    @functools.cached_property
    def _changes(self) -> list[tuple[Any, Evaluator]]:
        """The other registers that records set, and what computes their values."""
        constant = self._constant_changes
        return [(each, to.evaluate) for each, to in self.sets.items() if each not in constant]

    def _change(self, c: Cursor, values: Values) -> None:
        """Let the record change registers and tables."""
        del values
        c.sets.update(self._constant_changes)
        for register, evaluate in self._changes:
            c.sets[register] = int(evaluate(c.known))
        for table in self.clears:
            c.effects.append(("clear", table))

    def _joins(self, field: Field, together: list[Number]) -> bool:
        """Return whether a field is read with the numbers before it, or may be the first."""
        if field.when is not None or type(field).read is not Number.read or field.uses_place:
            return False
        assert isinstance(field, Number)  # noqa: S101 (it is read as one)
        if field.checksums:
            return False
        if isinstance(field, Integer):
            return field.nbytes in LETTERS
        if field in self.words:
            return self.words[field][0] in LETTERS
        return bool(together) and self.word_of[field] in Fields(together)

    def _begin_tail(self, c: Cursor, values: Values) -> None:
        """Go over the padding before the tail."""
        del values
        self._go_over_padding(c)
        c.limit += self.tail

    def _go_over_padding(self, c: Cursor) -> None:
        """Go from the end of the fields, but for those of the tail, to the limit."""
        gap = c.limit - c.at
        if not self.fixed and gap != (c.start - c.at - self.tail) % self.align:
            c.differs = True
        if gap:
            c.pad_to(c.limit)

    def finish(self, c: Cursor, size: int) -> None:
        """Go to the end of a record or a part that says its ``size``; 0 if its fields end it."""
        if not size:
            c.differs |= (c.at - c.start) % self.align != 0
        elif self.fixed and c.at == c.limit:
            return
        elif not self.tail:
            self._go_over_padding(c)
        elif c.at < c.limit:
            c.differs = True
            c.pad_to(c.limit)

    def read(self, c: Cursor) -> Values:
        """Read all fields up to ``c.limit``. Raises ShortError if they do not fit."""
        c.layout = self
        values = self.defaults.copy()
        c.limit -= self.tail
        if c.views is None:
            readers = self.readers[c.big, c.mirrored]
        else:
            readers = self.explaining_readers
            c.section = self.section or self.family.section or c.section
        try:
            for read in readers:
                read(c, values)
        except ShortError as problem:
            number = self.rules_of.get(read, {}).get(problem.number)
            if number is None:
                raise
            raise ShortError(number, problem.needed) from None
        return values

    @functools.cached_property
    def defaults(self) -> Values:
        """The values of attributes that are not read; none where ``cls`` has to find them.

        Those that are read are None, so that there is room for them.
        """
        attributes = [each for each in attrs.fields(self.cls) if each.name not in OF_RECORDS]
        if not self.only_sets:
            return {}
        read = {field.name for field in self.fields}
        defaults = {each.name: each.default for each in attributes}
        return {name: None if name in read else value for name, value in defaults.items()}

    @functools.cached_property
    def ends_making(self) -> bool:
        """Whether the class does something once an object is made."""
        return hasattr(self.cls, "__attrs_post_init__")

    @functools.cached_property
    def only_sets(self) -> bool:
        """Whether making an object only sets attributes, but for what comes after it."""
        return not any(
            each.converter or each.validator or hasattr(each.default, "factory")
            for each in attrs.fields(self.cls)
        )

    def made(self, values: Values, offset: int, nbytes: int | None = None) -> Any:
        """Return the object of values, which it keeps; ``nbytes`` are those of a record."""
        cls = self.cls
        if not self.only_sets:
            place = {"offset": offset} if nbytes is None else {"offset": offset, "nbytes": nbytes}
            return cls(**values, **place)
        made = object.__new__(cls)
        made.__dict__ = values
        made.offset = offset
        if nbytes is not None:
            made.nbytes, made.raw = nbytes, None
        if self.ends_making:
            made.__attrs_post_init__()
        return made

    def read_part(self, c: Cursor) -> Any:
        """Read an item of this family; one that does not fit is that of its ``recover``."""
        begin, limit, start, layout, refs = c.at, c.limit, c.start, c.layout, c.refs
        views = 0 if c.views is None else len(c.views)
        known = c.known
        whole = known.get(SIZE, 0)
        c.start = begin
        own: dict[str, int] = {}
        c.refs = own
        problem: ShortError | None = None
        try:
            own_layout = self if self.is_alone else self._layout_of(c)
            values = own_layout.read(c)
            if own_layout.is_sized or own_layout.align > 1:
                own_layout.finish(c, c.limit - begin if own_layout.is_sized else 0)
        except ShortError as short:
            problem = short
        c.limit, c.start, c.layout, c.refs = limit, start, layout, refs
        known[SIZE] = whole
        if problem is not None:
            if c.views is not None:
                del c.views[views:]
            c.at = begin
            c.differs = True
            return self.cls.recover(c, problem)
        if self.family.pad > 1:
            c.align(self.family.pad)
        values["refs"] = own or None
        return own_layout.made(values, begin)

    @functools.cached_property
    def is_alone(self) -> bool:
        """Whether all parts of the family are of this layout, and end where their fields end."""
        return not self.family.kinds and not self.is_sized

    def _layout_of(self, c: Cursor) -> One:
        """Return the layout of the part that begins at ``c.start``, and limit the cursor to it.

        Raises ShortError if it has no class or does not fit.
        """
        family, cls, begin = self.family, self.cls, c.start
        if family.head > c.limit - begin:
            raise c.short(family.head)
        if family.kinds:
            cls = family.choose(family.numbers(c.data, begin, c.big, c.mirrored), c.known)
            if cls is None:
                raise ShortError
        if cls.layout.is_sized:
            size = family.size_at(c.data, begin, c.big, c.mirrored) or cls.layout.size
            if not family.head <= size <= c.limit - begin:
                raise c.short(max(size, family.head))
            c.limit = begin + size
            c.known[SIZE] = size
        layout: One = cls.layout
        return layout

    @functools.cached_property
    def is_sized(self) -> bool:
        """Whether the size of an object is known before its fields are read."""
        return bool(self.fixed) or self.family.size is not None

    @functools.cached_property
    def implied_kinds(self) -> list[str]:
        """Names of kinds that the class says, so that its records do not have them."""
        return [each.name for each in self.family.kinds if each.public and each not in self.public]

    @functools.cached_property
    def is_exact(self) -> bool:
        """Whether objects are written as the bytes that were read, unless reading says otherwise.

        A number that says whether a field is there may be any one that says the same.
        """
        every = [*self.fields, *self.choice_of]
        implied = [way for ways in self.implied.values() for way, *_ in ways]
        items = [field.item for field in every if isinstance(field, Listed)]
        families = [item.layout.family for item in items if not isinstance(item, Integer)]
        parts = [part for family in families for part in (family.base, *family.members)]
        parts += [family.other for family in families if family.other is not None]
        return (
            all(field.exact for field in every)
            and "present" not in implied
            and all(part.layout.is_exact for part in parts)
        )

    def unsaid(self, choice: Choice, chosen: Field | None) -> list[Field]:
        """Return the numbers that follow from other kinds of a choice than the chosen one.

        They are written as zero.
        """
        found = []
        for number, ways in self.implied.items():
            fields = [field for _, field, _, _ in ways]
            of_choice = all(self.choice_of.get(field) is choice for field in fields)
            if of_choice and not any(field is chosen for field in fields):
                found.append(number)
        return found

    # --- Writing ----------------------------------------------------------------------------------

    @functools.cached_property
    def words_written(self) -> dict[tuple[Field, bool], tuple[int, list[tuple[Bits, int, int]]]]:
        """How words are put together, by the bits that begin them and whether bits are mirrored.

        The bits that are always the same, and the others: field, mask, and place in the word. The
        size comes last: what makes a record too large is refused for itself.
        """
        found = {}
        bits = [field for field in self.fields if isinstance(field, Bits)]
        for first, mirrored in itertools.product(self.words, (False, True)):
            fixed = 0
            rows: list[tuple[Bits, int, int]] = []
            for field in sorted(bits, key=lambda each: each.role == "size"):
                if self.word_of[field] is not first:
                    continue
                mask, shift = (1 << field.nbits) - 1, field.shift(self.words[first][0], mirrored)
                if field in self.constants:
                    fixed |= (self.constants[field] & mask) << shift
                else:
                    rows.append((field, mask, shift))
            found[first, mirrored] = fixed, rows
        return found

    @functools.cached_property
    def extents(self) -> list[tuple[Field, int]]:
        """The fields that have bytes, and how many; -1 of those that must be written to know."""
        found = []
        for field in self.fields:
            is_number = isinstance(field, Number | Float | Spare)
            in_word_of_others = isinstance(field, Bits) and field not in self.words
            if in_word_of_others or type(field).put is Field.put:
                continue
            if is_number and field.when is None:
                found.append(
                    (field, self.words[field][0] if field in self.words else field.least())
                )
            else:
                found.append((field, -1))
        return found

    @functools.cached_property
    def checksums_before(self) -> dict[Field, list[Checksum]]:
        """The checksums of the bytes before fields."""
        numbers = [field for field in self.fields if isinstance(field, Number)]
        return {field: field.checksums for field in numbers if field.checksums}

    @functools.cached_property
    def given(self) -> dict[Field, tuple[str, int, int]]:
        """The numbers that an object has as they are: name, least and greatest."""
        return {
            field: (field.name, *field.range)
            for field in self.public
            if isinstance(field, Number)
            and field.when is None
            and field.refers is None
            and (field.role == "kind" or not self.derives(field))
        }

    @functools.cached_property
    def writes_places(self) -> bool:
        """Whether numbers follow from their places."""
        return any(isinstance(field, Number) and field.uses_place for field in self.fields)

    def packed(self, made: Any, state: State | None, big: bool) -> bytes:
        """Return the bytes of an object. Raises RefusalError for a value that does not fit.

        What has a size of its own is written first, so that lengths before it are known.
        """
        draft = Draft(self, made, state, big)
        pieces: dict[Field, bytes] = {}
        padding = -1
        for field, nbytes in self.extents:
            if field.tail and padding < 0:
                padding = self._padding(draft.at)
                draft.at += padding
            if self.writes_places:
                draft.places[field] = draft.at
            if nbytes < 0:
                is_there = field.when is None or draft.has(field)
                piece = pieces[field] = field.put(draft) if is_there else b""
                nbytes = len(piece)
            draft.at += nbytes
        if padding < 0:
            padding = self._padding(draft.at)
            draft.at += padding
        draft[SIZE] = draft.at
        data = bytearray()
        for field, nbytes in self.extents:
            if field.tail and padding:
                data += bytes(padding)
                padding = 0
            if nbytes < 0:
                data += pieces[field]
                continue
            for checksum in self.checksums_before.get(field, ()):
                draft[checksum] = checksum.of(data)
            data += field.put(draft)
        data += bytes(padding)
        if self.word and big and not draft.mirrored:
            self.check_kind(memoryview(data), big, draft.mirrored)
        return bytes(data)

    def _padding(self, nbytes: int) -> int:
        """Return how much padding is behind so many bytes of fields, before the tail."""
        if self.fixed:
            padding = self.fixed - self.tail - nbytes
            if padding < 0:
                message = f"the fields take {nbytes} of {self.fixed} bytes"
                raise RefusalError(404, message)
        else:
            padding = -(nbytes + self.tail) % self.align
        if padding and self.rest is not None:
            message = f"{self.rest.name} would have {padding} bytes more, as padding"
            raise RefusalError(404, message)
        return padding

    def check_kind(self, data: memoryview, big: bool, mirrored: bool) -> None:
        """Raise RefusalError if the fields make the record one of another kind."""
        found = self.family.numbers(data, 0, big, mirrored)
        if any(a != b for a, b in zip(self.kind, found, strict=False)):
            raise RefusalError(404, "it would be read as a record of another kind")

    # --- Record JSON ------------------------------------------------------------------------------

    @functools.cached_property
    def showers(self) -> list[Shower]:
        """What puts the fields into record JSON."""
        showers = [_shower_of(field) for field in self.shown]
        if self.shows_type:
            place = self.keys.index("type") if "type" in self.keys else 0
            showers.insert(place, Shower("type", "record", None, may_be_absent=False))
        return showers

    def show(self, made: Any, out: dict[str, Any]) -> None:
        """Put all fields of an object, and the numbers of references, into record JSON."""
        for key, name, show, may_be_absent in self.showers:
            value = getattr(made, name)
            if value is None and may_be_absent:
                continue
            if show is None:
                out[key] = value
            else:
                show(made, out)
        if made.refs:
            out["refs"] = dict(made.refs)

    def parse(self, form: JsonFields) -> Values:
        """Return all fields, from record JSON; derived ones are not looked at."""
        values: Values = {}
        for parse in self.parsers:
            parse(form, values)
        if "refs" in form:
            values["refs"] = self.parse_refs(form, values)
        return values

    @functools.cached_property
    def parsers(self) -> list[Callable[[JsonFields, Values], None]]:
        """What takes each field from record JSON."""
        return [self._parser_of(field) for field in self.shown]

    def _parser_of(self, field: Field) -> Callable[[JsonFields, Values], None]:
        key, presence = field.key, self.presence_of(field)
        own, default = type(field).parse_of is not Field.parse_of, field.default
        beside = (f"{key}_bytes_hex", f"{key}_bits") if own else ()

        def optional(form: JsonFields, values: Values) -> None:
            there = None
            if presence is not None:
                numbers, known = presence
                there = known(*(values[each.name] for each in numbers))
            if there is False or (key not in form and not there):
                values[field.name] = None
            else:
                field.parse_of(form, values)

        def defaulted(form: JsonFields, values: Values) -> None:
            if key in form:
                field.parse_of(form, values)
            else:
                form.used.add(key)
                values[field.name] = default

        def by_itself(form: JsonFields, values: Values) -> None:
            field.parse_of(form, values)
            form.used.update(beside)

        if isinstance(field, Computed):
            return field.parse_of
        if self.derives(field):
            return lambda form, _: form.used.add(key)
        if field.when is not None:
            return optional
        if own:
            return by_itself
        return field.parse_of if default is attrs.NOTHING else defaulted

    def presence_of(self, field: Field) -> tuple[list[Number], Callable[..., bool | None]] | None:
        """Return public numbers, and what tells by them whether a field is there; None if nothing.

        It returns None if the room decides.
        """
        if field.when is None or isinstance(field, Computed) or self.derives(field):
            return None
        leaves = [each for each in field.when.leaves() if not isinstance(each, Constant)]
        numbers = [each for each in leaves if isinstance(each, Number) and each.public]
        if len(numbers) + sum(each in ROOMY for each in leaves) < len(leaves):
            return None
        when, by_room = field.when, field.by_room

        @functools.lru_cache(maxsize=64)
        def known(*values: Any) -> bool | None:
            given = (each.numbered(value) for each, value in zip(numbers, values, strict=True))
            there = bool(when.value({**ROOMY, **dict(zip(numbers, given, strict=True))}))
            return None if there and by_room else there

        return numbers, known

    def parse_refs(self, form: JsonFields, values: Mapping[str, Any]) -> dict[str, int] | None:
        """Return the numbers of references, from record JSON."""
        given = form.need("refs")
        fields = {field.name: field for field in self.referring}
        for name, number in given.items() if isinstance(given, Mapping) else [(None, None)]:
            if type(number) is not int or number < 0:
                raise form.wrong("refs", "an object of numbers by field")
            field = fields.get(name or "")
            if isinstance(field, Choice):
                field = field.chosen(values)
            if field is None or not is_reference(field):
                message = f"{form.what}: refs has {name!r}, which is not a reference here"
                raise refusal(form.rules.fields, message)
        return dict(given) or None

    def parse_part(self, given: Any, what: str, rules: Refusals) -> Any:
        """Return an item of this family, from JSON."""
        if not isinstance(given, Mapping):
            raise refusal(rules.name, f"{what} must be an object, not {reprlib.repr(given)}")
        form = JsonFields(what, given, rules)
        cls = self.cls
        if self.family.kinds:
            name = form.need("type")
            classes = {each.record: each for each in self.family.members}
            if self.family.other is not None:
                classes[self.family.other.record] = self.family.other
            if not isinstance(name, str) or name not in classes:
                hint = did_you_mean(name, classes) if isinstance(name, str) else ""
                raise refusal(rules.name, f"{what}: no type {reprlib.repr(name)}{hint}")
            cls = classes[name]
        values = cls.recovered(form)
        if values is None:
            values = cls.parse(form)
        form.finish()
        return cls(**values)


class Shower(NamedTuple):
    """What puts a field into record JSON."""

    key: str
    name: str
    show: Callable[[Any, dict[str, Any]], None] | None
    """Puts it there; None if it is shown as it is."""
    may_be_absent: bool


def _shower_of(field: Field) -> Shower:
    """Return what puts a field into record JSON."""
    ways = type(field)
    is_plain = ways.show is Field.show
    if isinstance(field, Number):
        is_plain |= ways.show is Number.show and field.refers is None
    as_it_is = is_plain and ways.show_of is Field.show_of
    may_be_absent = field.when is not None or isinstance(field, Computed)
    return Shower(field.key, field.name, None if as_it_is else field.show_of, may_be_absent)


class Draft(dict[Any, int]):
    """A record or a part that is written: its numbers by field, each computed when it is asked for.

    It has the registers, too, and the size once that is known.
    """

    def __init__(self, layout: One, made: Any, state: State | None, big: bool) -> None:
        super().__init__(layout.constants)
        if state is not None:
            self.update(state.registers)
        self.layout = layout
        self.made = made
        self.state = state
        self.big = big
        self.mirrored = state is not None and state.mirrored
        self.at = 0
        """Bytes of the record before the field that is written."""
        self.places: dict[Field, int] = {}
        """Where fields are that have bytes; of bits, those that begin a word."""
        self._octets: dict[Field, bytes] = {}

    def __missing__(self, field: Field) -> int:
        given = self.layout.given.get(field)
        if given is not None:
            name, least, most = given
            number: int = getattr(self.made, name)
            if type(number) is int and least <= number <= most:
                self[field] = number
                return number
        is_there = field.when is None or self.has(field)
        number = self[field] = field.written(self) if is_there else 0
        return number

    def has(self, field: Field) -> bool:
        """Return whether a field is there. Raises RefusalError if its value says otherwise."""
        if field.when is None:
            return True
        if isinstance(field, Computed):
            return bool(field.when.value(self))
        given = field.public and getattr(self.made, field.name) is not None
        if field.by_room:
            numbers = {each: self[each] for each in field.when.leaves() if isinstance(each, Field)}
            if given and not field.when.value({**self, **numbers, **ROOMY}):
                raise field.unwanted()
            return given
        there = bool(field.when.value(self))
        if field.public and there and not given:
            raise field.missing()
        if given and not there:
            raise field.unwanted()
        return there

    def bytes_of(self, field: Span) -> bytes:
        """Return the bytes of a text or of bytes, without terminator and padding."""
        data = self._octets.get(field)
        if data is None:
            data = self._octets[field] = field.bytes_of(getattr(self.made, field.name))
        return data

    def implied(self, number: Number, ways: list[tuple[str, Field, int, int]]) -> int:
        """Return a number that follows from other fields. Raises RefusalError if they disagree."""
        choice_of = self.layout.choice_of
        if len(ways) == 1 and ways[0][1] not in choice_of:
            return self._said(*ways[0]) or 0
        if not any(field in choice_of for _, field, _, _ in ways):
            return number.agreed((self._said(*way), way[1].name) for way in ways)
        said = 0
        for how, field, factor, summand in ways:
            choice = choice_of.get(field)
            if choice is None or choice.of(self[choice.tag]) is field:
                said = self._said(how, field, factor, summand) or 0
        return said

    def _said(self, how: str, field: Field, factor: int, summand: int) -> int | None:
        """Return the number that a field implies; None if it is not there."""
        value = getattr(self.made, field.name)
        if how == "present":
            return factor if value is None else summand
        if value is None and field.when is not None:
            return None
        if how == "index":
            return field.index_written(self)
        if how == "number":
            assert isinstance(field, Again)  # noqa: S101 (it implies its number)
            return field.number_to_write(value)
        size = len(self.bytes_of(field) if isinstance(field, Span) else value)
        number, rest = divmod(size - summand, factor)
        if rest:
            raise field.uneven(size)
        return number
