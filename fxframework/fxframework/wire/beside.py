"""Beside the data: fields that are computed, and bytes that have no meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fxframework.kit.json_fields import JsonFields
from fxframework.wire.cursor import Cursor, Draft, RefusalError, limits_of
from fxframework.wire.expressions import Expression, expression, wrapped
from fxframework.wire.fields import Field, Values
from fxframework.wire.known import START, with_sign
from fxframework.wire.rules import WRONG_SPARE
from fxframework.wire.spans import Octets

if TYPE_CHECKING:
    from fxframework.wire.many import Many


class Computed(Field):
    """A number that follows from fields and registers: shown, not in the file. See ``computed``."""

    is_computed = True
    exact = True

    def __init__(self, value: Any, *, nbits: int, signed: bool, **common: Any) -> None:
        super().__init__(**common)
        self.of = expression(value)
        self.nbits = nbits
        self.signed = signed

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest number."""
        return limits_of(self.nbits, self.signed)

    def expressions(self) -> list[Expression]:
        """Return the expressions that it depends on."""
        return [*super().expressions(), self.of]

    def compute(self, known: Mapping[Any, int]) -> int:
        """Return its number, given those of fields and registers."""
        number = self.of.value(known) & (1 << self.nbits) - 1
        if self.signed and number >> self.nbits - 1:
            number -= 1 << self.nbits
        return number

    def read(self, cursor: Cursor, values: Values) -> None:
        """Compute it."""
        number = self.compute(cursor.known)
        values[self.name] = number
        cursor.known[self] = wrapped(number)

    def read_many(self, many: Many) -> None:
        """Compute it of many records."""
        numbers = many.full(self.of.column(many))
        if self.nbits < 64:
            numbers = numbers & (1 << self.nbits) - 1
            if self.signed:
                numbers = with_sign(numbers, self.nbits)
        many.known[self] = numbers

    def written(self, draft: Draft) -> int:
        """Compute it from the numbers that are written."""
        return self.compute(draft)

    def parse(self, form: JsonFields) -> Any:
        """Return the number, which writing ignores; None if there is none."""
        if self.key in form:
            return form.number(self.key)
        return None


class Surplus(Field):
    """Bytes of a part behind the fields that are declared: a finding says how many units."""

    exact = True

    def __init__(self, rule: int, *, unit: int = 1) -> None:
        super().__init__()
        self.rule = rule
        self.unit = unit

    def read(self, cursor: Cursor, values: Values) -> None:
        """Go to the end of the part."""
        del values
        begin = cursor.at
        cursor.at = cursor.limit
        if begin < cursor.limit:
            cursor.differs = True
            cursor.notes.append((self.rule, cursor.start, (cursor.limit - begin) // self.unit))
            cursor.stretch("trailing", begin)

    def read_many(self, many: Many) -> None:
        """Go to the ends of many parts."""
        nbytes = many.limit - many.at()
        has_surplus = nbytes > 0
        if has_surplus.any():
            many.keep_raw(has_surplus)
            many.report(self.rule, has_surplus, nbytes // self.unit, many.start)
        many.go_to(many.limit)


class Spare(Octets):
    """Bytes without a meaning, kept where they are not zero. See ``spare``.

    Several fields may show their bytes as one value: each names the one before it (``after``), and
    the last one shows all of them.
    """

    def __init__(self, nbytes: int, *, after: Spare | None = None, **common: Any) -> None:
        super().__init__(nbytes, default=b"", **common)
        self.own = nbytes
        self.before = 0
        """Bytes of the value that lie elsewhere, before its own."""
        self.shown: Spare = self
        """The field that shows these bytes, with others."""
        self.after = after
        if after is not None:
            self.before = after.before + after.own
            earlier: Spare | None = after
            while earlier is not None:
                earlier.shown = self
                earlier = earlier.after

    def read(self, cursor: Cursor, values: Values) -> None:
        """Read the bytes; they count as none if all are zero."""
        begin = cursor.at
        _, data = self.take(cursor)
        cursor.stretch("padding", begin)
        if self.after is not None:
            data = cursor.spare[self.after] + data
        if self.shown is self:
            values[self.name] = data if any(data) else b""
        else:
            cursor.spare = {**cursor.spare, self: data}

    def read_many(self, many: Many) -> None:
        """Go over the bytes of many records; ``known`` has their places."""
        many.known[self, START] = many.take(self.own)

    def put(self, draft: Draft) -> bytes:
        """Return its bytes."""
        return self.own_bytes(getattr(draft.record, self.shown.name))

    def own_bytes(self, value: Any) -> bytes:
        """Return its bytes of the value, which begins with those before them.

        Raises RefusalError if the value has not as many bytes as the record.
        """
        data = self.bytes_of(value)
        total = self.shown.before + self.shown.own
        if data and len(data) != total:
            message = f"{self.shown.name} has {len(data)} bytes, and there are {total}"
            raise RefusalError(WRONG_SPARE, message)
        return data[self.before : self.before + self.own].ljust(self.own, b"\0")

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the bytes into record JSON, unless all are zero."""
        if value:
            super().show(value, out)

    def parse(self, form: JsonFields) -> Any:
        """Return the bytes; none if JSON has none."""
        if self.key in form:
            return form.octets(self.key)
        return b""
