"""Arguments: the named values of a record."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

import attrs
from tests.reference.trace import layout as wire
from tests.reference.trace.cursor import Cursor, RecordBuilder, Tables, TraceFields, Value
from tests.reference.trace.parts import (
    Double,
    Flag,
    HeaderField,
    Nothing,
    Number,
    Part,
    Reference,
    Rest,
    Signed,
    SignedWord,
    Stream,
    StringReference,
    Word,
    parse_refs,
)

from fx_trace import rules
from fxframework.errors import refusal
from fxframework.io.words import WORD, WordLayout
from fxframework.kit.json_fields import (
    exactly,
)

# --- Arguments ---------------------------------------------------------------------------------


@attrs.frozen
class ArgumentKind:
    """One argument type: its header word, and the parts of name and value."""

    shown: str | int
    number: int
    layout: WordLayout
    parts: tuple[Part, ...]
    reserved: int


def _argument_kind(number: int, value: Part) -> ArgumentKind:
    known = number in wire.ARG_NAMES
    layout = wire.ARG_LAYOUTS.get(wire.ArgType(number), wire.ARG) if known else wire.ARG
    name = StringReference()
    name.bind("name", layout)
    value.bind("value", layout)
    reserved = layout.reserved_mask if known else 0
    return ArgumentKind(wire.ARG_NAMES.get(number, number), number, layout, (name, value), reserved)


_ARGUMENT_VALUES: dict[wire.ArgType, Part] = {
    wire.ArgType.NULL: Nothing(),
    wire.ArgType.INT32: Signed(),
    wire.ArgType.UINT32: Number(),
    wire.ArgType.INT64: SignedWord(),
    wire.ArgType.UINT64: Word(),
    wire.ArgType.DOUBLE: Double(),
    wire.ArgType.STRING: StringReference(),
    wire.ArgType.POINTER: Word(),
    wire.ArgType.KOID: Word(),
    wire.ArgType.BOOL: Flag(),
    wire.ArgType.BLOB: Stream("blob_size"),
}
ARGUMENT_KINDS = tuple(
    _argument_kind(
        number, _ARGUMENT_VALUES[wire.ArgType(number)] if number in wire.ARG_NAMES else Rest()
    )
    for number in range(wire.ARG_TYPE.limit + 1)
)
_ARGUMENT_BY_NAME = {kind.shown: kind for kind in ARGUMENT_KINDS}
_ARGUMENT_NUMBERS = {kind.shown: kind.number for kind in ARGUMENT_KINDS if type(kind.shown) is str}
ARG_SIZE = Number(wire.ARG_SIZE)


@attrs.define(kw_only=True)
class Argument:
    """A named value of a record (Argument header).

    ``type`` is one of null int32 uint32 int64 uint64 double string pointer koid bool blob, or the
    number of a type that the format does not define; ``value`` is None, an int, float, bool, str,
    or bytes (a blob's, or the payload words of an unknown type).
    """

    name: str
    type: str | int
    value: Value = attrs.field(eq=exactly)
    refs: dict[str, int] | None = None
    """Indexes of ``name`` and, of a string, ``value``, where they are indexed."""
    bits: int | None = None
    """The 64 bits of a double that is a NaN, where they are not the usual ones."""

    @property
    def title(self) -> str:
        """What a message calls it."""
        return f"argument {reprlib.repr(self.name)}"

    @property
    def parts(self) -> tuple[Part, ...]:
        """What name and value are made of."""
        return _ARGUMENT_BY_NAME[self.type].parts

    def to_json(self) -> dict[str, Any]:
        """Return the argument as the record JSON shows it."""
        out: dict[str, Any] = {}
        name, value = _ARGUMENT_BY_NAME[self.type].parts
        name.show(self, out)
        out["type"] = self.type
        value.show(self, out)
        if self.refs:
            out["refs"] = dict(self.refs)
        return out

    @classmethod
    def from_json(cls, given: Any, what: str = "argument") -> Argument:
        """Return an argument from its JSON. Raises WriteRefusedError."""
        if not isinstance(given, Mapping):
            raise refusal(rules.NO_SUCH_NAME, f"{what}: an argument is an object, not {given!r}")
        form = TraceFields(what, given)
        shown = form.one_of("type", _ARGUMENT_NUMBERS, wire.ARG_TYPE.limit)
        kind = _ARGUMENT_BY_NAME[shown]
        values: dict[str, Any] = {}
        for part in kind.parts:
            part.parse(form, values)
        refs = parse_refs(form, kind.parts)
        form.finish()
        return cls(type=shown, refs=refs, **values)

    def pack(self, outer: RecordBuilder) -> bytes:
        """Return the argument's bytes; its refs are taken at their word."""
        kind = _ARGUMENT_BY_NAME[self.type]
        b = RecordBuilder(outer.pack, kind.number, self, outer)
        for part in kind.parts:
            part.write(self, b)
        return b.finish(ARG_SIZE)

    def with_valid_refs(self, tables: Tables) -> Argument:
        """Return the argument with only those refs that still give what it shows."""
        if not self.refs:
            return self
        refs = live_refs(self, _ARGUMENT_BY_NAME[self.type].parts, tables)
        return self if refs == self.refs else attrs.evolve(self, refs=refs)


def _read_argument(c: Cursor) -> Argument:
    """Return the next argument."""
    kind = ARGUMENT_KINDS[c.enter_argument()]
    if kind.shown is kind.number:
        c.find(rules.UNKNOWN_ARGUMENT, kind.number)
    if c.header & kind.reserved:
        c.find_once(reserved=True)
    values: dict[str, Any] = {}
    for part in kind.parts:
        part.read(c, values)
    if c.at < c.end:
        c.find(rules.ARGUMENT_LEFT_OVER, (c.end - c.at) // WORD)
    argument = Argument(type=kind.shown, refs=c.refs, **values)
    c.leave_argument()
    return argument


def live_refs(holder: Any, parts: tuple[Part, ...], tables: Tables) -> dict[str, int] | None:
    """Return the refs that still give what the record or argument shows; None for none."""
    refs = holder.refs
    return {
        part.name: refs[part.name]
        for part in parts
        if isinstance(part, Reference)
        and part.name in refs
        and part.holds(holder, refs[part.name], tables)
    } or None


class Arguments(HeaderField):
    """The arguments, as many as the header says."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        count = c.header >> self.low & self.limit
        values[self.name] = tuple([_read_argument(c) for _ in range(count)]) if count else ()

    def skip(self, c: Cursor) -> None:
        for _ in range(c.header >> self.low & self.limit):
            size = c.word(c.data, c.at)[0] >> ARG_SIZE.low & ARG_SIZE.limit if c.at < c.end else 0
            # An argument that cannot be stepped over does not lead to the end.
            c.at = c.at + size * WORD if size else c.end + WORD

    def write(self, record: Any, b: RecordBuilder) -> None:
        arguments = getattr(record, self.name)
        if len(arguments) > self.limit:
            raise refusal(
                rules.TOO_MANY, f"{b.what}: {len(arguments)} arguments, at most {self.limit}"
            )
        b.put(self, len(arguments))
        b.chunks.extend(argument.pack(b) for argument in arguments)

    def show(self, record: Any, out: dict[str, Any]) -> None:
        out[self.name] = [argument.to_json() for argument in getattr(record, self.name)]

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        form.used.add(self.name)
        given = form.given.get(self.name, ())
        if not isinstance(given, list | tuple):
            raise form.wrong(self.name, "a list of arguments")
        values[self.name] = tuple(
            Argument.from_json(each, f"{form.what}, argument {number}")
            for number, each in enumerate(given)
        )
