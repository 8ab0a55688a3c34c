"""Beside the data: fields that are computed, and bytes that have no meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fxframework.kit.json_fields import JsonFields
from fxframework.wire.cursor import Cursor, Draft, RefusalError, limits_of
from fxframework.wire.expressions import Expression, expression, wrapped
from fxframework.wire.fields import Field, Reader, Values
from fxframework.wire.known import START
from fxframework.wire.spans import Octets

if TYPE_CHECKING:
    from fxframework.wire.many import Many

__all__ = ["Computed", "Spare", "Surplus"]


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
        number = self.of.evaluate(known) & (1 << self.nbits) - 1
        return number - (number >> self.nbits - 1 << self.nbits) if self.signed else number

    def reader(self, layout: Any, reader_of: Callable[[Field], Reader]) -> Reader:
        """Return what computes it."""
        del layout, reader_of
        evaluate, mask = self.of.evaluate, (1 << self.nbits) - 1
        sign = 1 << self.nbits - 1 if self.signed else 0

        def compute(c: Cursor, values: Values) -> None:
            number = evaluate(c.known) & mask
            if number & sign:
                number -= sign + sign
            values[self.name] = number
            c.known[self] = number if number < 1 << 63 else wrapped(number)

        return compute

    def read_many(self, c: Many) -> None:
        """Compute it of many records."""
        numbers = c.full(self.of.column(c))
        if self.nbits < 64:
            numbers = numbers & (1 << self.nbits) - 1
            if self.signed:
                sign = 1 << self.nbits - 1
                numbers = (numbers ^ sign) - sign
        c.known[self] = numbers

    def written(self, draft: Draft) -> int:
        """Compute it from the numbers that are written."""
        return self.compute(draft)

    def parse(self, form: JsonFields) -> Any:
        """Return the number, which writing ignores; None if there is none."""
        return form.number(self.key) if self.key in form else None


class Surplus(Field):
    """What a part has behind the fields that are declared: a finding says how much it is."""

    exact = True

    def __init__(self, rule: int, *, unit: int = 1) -> None:
        super().__init__()
        self.rule = rule
        self.unit = unit

    def read(self, c: Cursor, values: Values) -> None:
        """Go to the end of the part."""
        del values
        at, c.at = c.at, c.limit
        if at < c.at:
            c.differs = True
            c.notes.append((self.rule, c.start, (c.at - at) // self.unit))
            c.stretch("trailing", at)

    def read_many(self, c: Many) -> None:
        """Go to the ends of many parts."""
        left = c.limit - c.at()
        is_left = left > 0
        if is_left.any():
            c.keep_raw(is_left)
            c.report(self.rule, is_left, left // self.unit, c.start)
        c.go_to(c.limit)


class Spare(Octets):
    """Bytes without a meaning, kept where they are not zero. See ``spare``."""

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
            each: Spare | None = after
            while each is not None:
                each.shown = self
                each = each.after

    def read(self, c: Cursor, values: Values) -> None:
        """Read the bytes; they count as none if all are zero."""
        at = c.at
        _, data = self.take(c)
        c.stretch("padding", at)
        if self.after is not None:
            data = c.spare[self.after] + data
        if self.shown is self:
            values[self.name] = data if any(data) else b""
        else:
            c.spare = {**c.spare, self: data}

    def read_many(self, c: Many) -> None:
        """Go over the bytes of many records; ``known`` has their places."""
        c.known[self, START] = c.take(self.own)

    def put(self, draft: Draft) -> bytes:
        """Return its bytes."""
        return self.own_bytes(getattr(draft.made, self.shown.name))

    def own_bytes(self, value: Any) -> bytes:
        """Return its bytes of the value, which begins with those before them.

        Raises RefusalError if the value has not as many bytes as the record.
        """
        given, total = self.bytes_of(value), self.shown.before + self.shown.own
        if given and len(given) != total:
            message = f"{self.shown.name} has {len(given)} bytes, and there are {total}"
            raise RefusalError(405, message)
        return given[self.before : self.before + self.own].ljust(self.own, b"\0")

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the bytes into record JSON, unless all are zero."""
        if value:
            super().show(value, out)

    def parse(self, form: JsonFields) -> Any:
        """Return the bytes; none if JSON has none."""
        return form.octets(self.key) if self.key in form else b""
