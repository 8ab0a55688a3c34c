"""Drafts: a record or a part that is written, field by field.

What has a size of its own is written first, so that lengths before it are known; then numbers, each
when it is asked for.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

from fxframework.wire.beside import Spare
from fxframework.wire.cursor import SIZE, Draft, RefusalError
from fxframework.wire.expressions import Checksum, Expression
from fxframework.wire.fields import Bits, Field, Number
from fxframework.wire.floats import Float
from fxframework.wire.shape import Shape

if TYPE_CHECKING:
    from fxframework.wire.state import State

__all__ = ["Drafted"]


class Drafted(Shape):
    """What a layout knows of objects that are written."""

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
    def plain_numbers(self) -> dict[Field, tuple[str, int, int]]:
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
                padding = self._padding(draft)
                draft.at += padding
            if self.writes_places:
                draft.places[field] = draft.at
            if nbytes < 0:
                is_there = field.when is None or draft.has(field)
                piece = pieces[field] = field.put(draft) if is_there else b""
                nbytes = len(piece)
            draft.at += nbytes
        if padding < 0:
            padding = self._padding(draft)
            draft.at += padding
        draft[SIZE] = draft.at
        for field, size in self.stated.items():
            self._check_stated(draft, field, size)
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

    def _padding(self, draft: Draft) -> int:
        """Return how much padding is behind the fields so far, before the tail."""
        nbytes = draft.at
        whole = self._whole_size(draft)
        if whole:
            padding = whole - self.tail - nbytes
            if padding < 0:
                last = [field for field in self.fields if not field.tail and not field.is_computed]
                raise last[-1].refused(404, f"the fields take {nbytes} of {whole} bytes")
        else:
            padding = -(nbytes + self.tail) % self.align
        if padding and self.rest is not None:
            message = f"{self.rest.name} would have {padding} bytes more, as padding"
            raise self.rest.refused(405 if self.family.power else 404, message)
        return padding

    def _whole_size(self, draft: Draft) -> int:
        """Return the size of a record that its fields do not change; 0 if they do."""
        if not self.family.power:
            return self.fixed
        assert self.family.size is not None  # noqa: S101 (it says the power)
        if getattr(draft.record, self.family.size.name) is None:
            return self.family.unit << self.family.smallest_power(draft.at + self.tail)
        return self.family.size_of(draft[self.family.size])

    def _check_stated(self, draft: Draft, field: Field, size: Expression) -> None:
        """Raise RefusalError if a field is not as long as other fields say."""
        choice = self.choice_of.get(field)
        if choice is not None and choice.of(draft[choice.tag]) is not field:
            return
        if not draft.has(field if choice is None else choice):
            return
        wanted, length = size.value(draft), field.length_written(draft)
        if wanted != length:
            message = f"{field.name} has {length} bytes or items, and {size!r} is {wanted}"
            raise field.refused(405, message)

    def check_kind(self, data: memoryview, big: bool, mirrored: bool) -> None:
        """Raise RefusalError if the fields make the record one of another kind."""
        found = self.family.numbers(data, 0, big, mirrored)
        if any(a != b for a, b in zip(self.kind, found, strict=False)):
            raise RefusalError(404, "it would be read as a record of another kind")
