"""Numbers: those of a record that lie one behind the other are read together."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from fxframework.wire.cursor import Cursor, ShortError, mirror
from fxframework.wire.expressions import Expression, wrapped
from fxframework.wire.fields import Bits, Field, Integer, Number, Reader, Values
from fxframework.wire.shape import Shape

__all__ = ["LETTERS", "NOT_SHORT", "Numbers", "by_rules"]

LETTERS = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""Of ``struct``, by bytes of an integer."""
WORDS_KEPT = 1024
"""Words of a place that are kept as they were taken apart."""
NOT_SHORT = frozenset({105, 106, 107, 108, *range(400, 500)})
"""Rules that are not for a field that does not fit."""


class Apart(NamedTuple):
    """A word of bits that was taken apart."""

    known: Mapping[Expression, int]
    values: Mapping[str, Any]


class Word:
    """A word of bits, which is taken apart once for each of its values: most come again."""

    def __init__(self, index: int, nbytes: int, place: int, reserved: int) -> None:
        self.index = index
        """Its index among the words and integers that are read together."""
        self.nbytes = nbytes
        self.place = place
        """Where it is, from the first of them."""
        self.constant_mask = reserved
        """The bits that are the same in every sound record: those of ``constant_bits``."""
        self.constant_bits = 0
        self.fields: list[tuple[Number, int, int]] = []
        """Fields that are simple, with the bits below each and its mask."""
        self.known_words: dict[int, Apart] = {}
        """Words as they were taken apart."""

    def take_apart(self, word: int) -> Apart | None:
        """Return the numbers in a word, and what they show; None if the word needs a closer look.

        That is so if bits are not what they must be, or a number is none of those with a name.
        """
        if word & self.constant_mask != self.constant_bits:
            return None
        known: dict[Expression, int] = {}
        values: dict[str, Any] = {}
        for field, shift, mask in self.fields:
            number = word >> shift & mask
            if field.signed and number > field.range[1]:
                number -= mask + 1
            known[field] = number
            if field.values and number not in field.values:
                return None
            if not field.public:
                continue
            if field.flag:
                values[field.name] = bool(number)
            else:
                values[field.name] = field.values.get(number, number)
        apart = Apart(known, values)
        if len(self.known_words) < WORDS_KEPT:
            self.known_words[word] = apart
        return apart


class Numbers:
    """Numbers that are always there and lie one behind the other, read together.

    Where some of their bits are not what they must be, or too few bytes are left, each is read by
    itself, which says what is wrong.
    """

    def __init__(self, layout: Shape, fields: list[Number], big: bool, mirrored: bool) -> None:
        self.readers = [by_rules(field, field.read) for field in fields]
        """What reads each number by itself."""
        self.words: list[Word] = []
        # Numbers are unpacked into one tuple. ``index`` is that of a word or an integer in it, and
        # ``place`` the byte where it begins.
        self.constants: list[tuple[int, int]] = []
        """Integers that must be some number: index, and that number."""
        self.integers: list[tuple[Number, int, str]] = []
        """Integers of which there is no more to say: index, and the name to show it by, or ""."""
        self.summands: list[tuple[Number, int, Any]] = []
        """Integers that are added to a register, and have no other effect: index, and register."""
        self.others: list[tuple[Number, int, int, int, int]] = []
        """Numbers that are checked or change something: index, bits below, mask, and place."""
        letters = ">" if big else "<"
        place = 0
        for field in fields:
            is_simple = field.is_simple and (field.equals is None or field in layout.measured)
            index = len(letters) - 1
            if isinstance(field, Integer):
                letter = LETTERS[field.nbytes]
                if field.signed:
                    letter = letter.lower()
                letters += letter
                if field in layout.constants:
                    self.constants.append((index, layout.constants[field]))
                if field.only_adds:
                    self.summands.append((field, index, field.adds))
                elif is_simple and not field.values:
                    self.integers.append((field, index, field.name if field.public else ""))
                else:
                    self.others.append((field, index, 0, -1, place))
                place += field.nbytes
                continue
            assert isinstance(field, Bits)  # noqa: S101 (the other kind of number)
            if field in layout.words:
                nbytes, reserved = layout.words[field]
                letters += LETTERS[nbytes]
                if mirrored:
                    reserved = mirror(reserved, nbytes)
                self.words.append(Word(index, nbytes, place, reserved))
                place += nbytes
            # Integers may lie between the bits of a word and others of it.
            word = self.words[-1]
            shift = field.shift(word.nbytes, mirrored)
            mask = (1 << field.nbits) - 1
            if field in layout.constants:
                word.constant_bits |= (layout.constants[field] & mask) << shift
                word.constant_mask |= mask << shift
            if is_simple:
                word.fields.append((field, shift, mask))
            else:
                self.others.append((field, word.index, shift, mask, word.place))
        self.unpack = struct.Struct(letters).unpack_from
        self.nbytes = place

    def read(self, cursor: Cursor, values: Values) -> None:
        """Read all of them."""
        begin = cursor.at
        if cursor.limit - begin < self.nbytes:
            self.read_each(cursor, values)
            return
        unpacked = self.unpack(cursor.data, begin)
        known = cursor.known
        # What is wrong must be found before anything is settled: ``read_each`` starts again.
        for word in self.words:
            bits = unpacked[word.index]
            apart = word.known_words.get(bits) or word.take_apart(bits)
            if apart is None:
                self.read_each(cursor, values)
                return
            known.update(apart.known)
            values.update(apart.values)
        for index, constant in self.constants:
            if unpacked[index] != constant:
                self.read_each(cursor, values)
                return
        for field, index, shown_name in self.integers:
            number = unpacked[index]
            known[field] = number
            if shown_name:
                values[shown_name] = number
        for field, index, register in self.summands:
            number = unpacked[index]
            known[field] = number
            values[field.name] = number
            cursor.sets[register] = wrapped(known[register] + number)
        for field, index, shift, mask, place in self.others:
            number = unpacked[index] >> shift & mask
            if field.signed and mask > 0 and number > field.range[1]:
                number -= mask + 1
            known[field] = number
            field.settle(cursor, begin + place, number, values)
        cursor.at = begin + self.nbytes
        if self.words:
            last_word = self.words[-1]  # other bits of it may follow
            cursor.word = unpacked[last_word.index]
            cursor.word_nbytes = last_word.nbytes
            cursor.word_at = begin + last_word.place

    def read_each(self, cursor: Cursor, values: Values) -> None:
        """Read one after the other."""
        for read in self.readers:
            read(cursor, values)


def by_rules(field: Field, read: Reader) -> Reader:
    """Return what reads a field; what does not fit is by the field's own rule."""
    if field.rules.keys() <= NOT_SHORT:
        return read

    def read_by_rules(cursor: Cursor, values: Values) -> None:
        try:
            read(cursor, values)
        except ShortError as problem:
            rule = field.rules.get(problem.number, problem.number)
            raise ShortError(rule, problem.needed) from None

    return read_by_rules
