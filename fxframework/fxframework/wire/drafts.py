"""Drafts: a record or a part that is written, field by field.

What has a size of its own is written first, so that lengths before it are known; then numbers, each
when it is asked for.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from fxframework.wire.beside import Spare
from fxframework.wire.cursor import SIZE, Draft, RefusalError
from fxframework.wire.expressions import Constant, Expression
from fxframework.wire.fields import Bits, Field, Number
from fxframework.wire.floats import Float
from fxframework.wire.shape import Shape

if TYPE_CHECKING:
    from fxframework.wire.state import State

OF_ANOTHER_KIND = "it would be read as a record of another kind"


class Drafted(Shape):
    """What a layout knows of objects that are written."""

    @functools.cached_property
    def bits_of(self) -> dict[Field, list[Bits]]:
        """The fields of each word, by the first of them.

        The size comes last: what makes a record too large is refused for itself.
        """
        bits_of: dict[Field, list[Bits]] = {first_field: [] for first_field in self.words}
        bit_fields = [field for field in self.fields if isinstance(field, Bits)]
        for field in sorted(bit_fields, key=lambda field: field.role == "size"):
            bits_of[self.word_of[field]].append(field)
        return bits_of

    @functools.cached_property
    def extents(self) -> list[tuple[Field, int]]:
        """The fields that have bytes, and how many; -1 of those that must be written to know."""
        extents = []
        for field in self.fields:
            in_word_of_others = isinstance(field, Bits) and field not in self.words
            if in_word_of_others or type(field).put is Field.put:
                continue
            nbytes = -1
            if isinstance(field, Number | Float | Spare) and field.when is None:
                nbytes = field.least()
                if field in self.words:
                    nbytes, _ = self.words[field]
            extents.append((field, nbytes))
        return extents

    def packed(self, record: Any, state: State | None, big: bool) -> bytes:
        """Return the bytes of an object. Raises RefusalError for a value that does not fit.

        What has a size of its own is written first, so that lengths before it are known.
        """
        draft = Draft(self, record, state, big)
        pieces: dict[Field, bytes] = {}
        padding = -1  # not known yet
        for field, nbytes in self.extents:
            if field.tail and padding < 0:
                padding = self._padding(draft)
                draft.at += padding
            draft.places[field] = draft.at
            if nbytes < 0:
                pieces[field] = b""
                if field.when is None or draft.has(field):
                    pieces[field] = field.put(draft)
                nbytes = len(pieces[field])
            draft.at += nbytes
        if padding < 0:
            padding = self._padding(draft)
            draft.at += padding
        # Now all lengths are known: numbers that say them can be written, in the order of fields,
        # so that a checksum sees the bytes before it.
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
            if isinstance(field, Number):
                for checksum in field.checksums:
                    draft[checksum] = checksum.of(data)
            data += field.put(draft)
        data += bytes(padding)
        if self.word and big and not draft.mirrored:
            self.check_kind(memoryview(data), big, draft.mirrored)
        return bytes(data)

    def _padding(self, draft: Draft) -> int:
        """Return how much padding is behind the fields so far, before the tail."""
        nbytes = draft.at
        whole_size = self._whole_size(draft)
        if whole_size:
            padding = whole_size - self.tail - nbytes
            if padding < 0:
                before_padding = [
                    field for field in self.fields if not field.tail and not field.is_computed
                ]
                message = f"the fields take {nbytes} of {whole_size} bytes"
                raise before_padding[-1].refused(404, message)
        else:
            padding = -(nbytes + self.tail) % self.align
        if padding and self.rest is not None:
            rule = 405 if self.family.power else 404
            message = f"{self.rest.name} would have {padding} bytes more, as padding"
            raise self.rest.refused(rule, message)
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
        stated_length = size.value(draft)
        length = field.length_written(draft)
        if stated_length != length:
            message = f"{field.name} has {length} bytes or items, and {size!r} is {stated_length}"
            if isinstance(size, Constant):
                message = f"{field.name} has {length} items, but its field has {stated_length}"
            raise field.refused(405, message)

    def check_kind(self, data: memoryview, big: bool, mirrored: bool) -> None:
        """Raise RefusalError if the fields make the record one of another kind."""
        kind_read = self.family.numbers(data, 0, big, mirrored)
        if any(own != read for own, read in zip(self.kind, kind_read, strict=False)):
            raise RefusalError(404, OF_ANOTHER_KIND)
