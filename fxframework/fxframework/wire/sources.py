"""Sources: Python that is generated for a class, which reads, writes and shows its records.

What reads (``read_sources.py``) is for usual records: those whose fields are as declared, so that
there is nothing to report and nothing to keep beside them. At others it raises one of ``UNUSUAL``,
and ``Layout.read`` reads field by field. Writing (``write_sources.py``) and showing are all here.
"""

from __future__ import annotations

import functools
import linecache
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from fxframework.kit.json_fields import show_text
from fxframework.wire.beside import Computed
from fxframework.wire.choices import Choice
from fxframework.wire.cursor import AT, SIZE, RefusalError, order_of
from fxframework.wire.expressions import (
    Calculation,
    Constant,
    Expression,
    Register,
    calculated,
    wrapped,
)
from fxframework.wire.families import OTHER
from fxframework.wire.fields import Bits, Field, Integer, Number, index_of
from fxframework.wire.floats import Float
from fxframework.wire.spans import Span, Text

__all__ = [
    "ANY", "LETTERS", "UNUSUAL", "Generated", "Source", "UnfitError", "UnusualError", "shower_of",
]  # fmt: skip

# A layout is a ``fxframework.wire.records.Layout``.

LETTERS = {1: "B", 2: "H", 4: "I", 8: "Q"}
I64 = -(1 << 63), (1 << 63) - 1
ANY = "UnusualError"
FITTING = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}


class UnusualError(ValueError):
    """A record is not for generated code."""


UNUSUAL = UnusualError, KeyError, UnicodeDecodeError, RefusalError
"""What generated functions raise for what is not usual."""


class UnfitError(Exception):
    """Nothing is generated for a class with such a field."""


class Generated(dict[tuple[bool, bool], Any]):
    """Functions made by ``make``, for a byte order and whether bits are mirrored; None: unfit."""

    def __init__(self, make: Callable[..., Any], *arguments: Any) -> None:
        super().__init__()
        self.make = functools.partial(make, *arguments)

    def __missing__(self, key: tuple[bool, bool]) -> Any:
        try:
            self[key] = self.make(big=key[0], mirrored=key[1])
        except UnfitError:
            self[key] = None
        return self[key]


class Source:
    """Lines of a function, and the objects that its names stand for."""

    def __init__(self, layout: Any, *, big: bool = False, mirrored: bool = False) -> None:
        self.layout = layout
        self.big = big
        self.mirrored = mirrored
        self.order = order_of(big)
        self.lines: list[str] = []
        self.depth = 1
        self.env: dict[str, Any] = {
            "UnusualError": UnusualError, "cls": layout.cls, "wrapped": wrapped,
            "calculated": calculated, "show_text": show_text, "index_of": index_of,
        }  # fmt: skip
        self.numbers: dict[Expression, str] = {}
        """Variables with the values of numbers."""
        kinds = () if layout.kind == (OTHER,) else layout.kind
        self.kinds: dict[Field, int] = dict(zip(layout.family.kinds, kinds, strict=False))

    def put(self, *lines: str) -> None:
        """Add lines."""
        self.lines += ["    " * self.depth + line for line in lines]

    def unless(self, condition: str) -> None:
        """Add a check: records without the condition are not usual."""
        self.put(f"if not ({condition}): raise UnusualError")

    @contextmanager
    def inside(self, line: str) -> Iterator[None]:
        """Indent what follows ``line``."""
        self.put(line)
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.put("pass")
        self.depth -= 1

    def let(self, value: Any) -> str:
        """Return a name for an object."""
        name = f"x{len(self.env)}"
        self.env[name] = value
        return name

    def fresh(self) -> str:
        """Return a name for a variable."""
        return self.let(None)

    def form(self, letters: str) -> struct.Struct:
        """Return a layout in the byte order at hand."""
        return struct.Struct((">" if self.big else "<") + letters)

    def letter(self, field: Field) -> str:
        """Return the letter of a field of a fixed size; empty if another one has its bytes."""
        if isinstance(field, Float):
            return "d" if field.nbytes == 8 else "f"
        if isinstance(field, Bits):
            nbytes, _ = self.layout.words.get(field, (0, 0))
            return LETTERS.get(nbytes, f"{nbytes}s") if nbytes else ""
        if isinstance(field, Integer):
            letter = LETTERS.get(field.nbytes, f"{field.nbytes}s")
            return letter.lower() if field.signed else letter
        if isinstance(field, Span):
            return f"{field.fixed}s"
        return ""

    def made(self, head: str, *begin: str) -> Any:
        """Return the function, which tracebacks and debuggers show."""
        name = head.partition("(")[0]
        lines = [f"def {head}:", *("    " + line for line in begin), *self.lines, ""]
        place = f"<{name} of {self.layout.cls.__module__}.{self.layout.cls.__qualname__}>"
        place = f"{place} {len(linecache.cache)}"
        text = "\n".join(lines)
        linecache.cache[place] = (len(text), None, text.splitlines(keepends=True), place)
        exec(compile(text, place, "exec"), self.env)  # noqa: S102 (it is made of the declaration)
        return self.env[name]

    def make(self, values: dict[str, str]) -> None:
        """Add the making of the object of its values.

        Without a call, which takes three times as long, where that only sets attributes.
        """
        cls = self.layout.cls
        fields = attrs.fields(cls)
        if hasattr(cls, "__attrs_post_init__") or any(
            each.converter or each.validator or hasattr(each.default, "factory") for each in fields
        ):
            shown = ", ".join(f"{name}={value}" for name, value in values.items())
            self.put(f"made = cls({shown})")
            return
        self.put(f"made = {self.let(object.__new__)}(cls)")
        for each in fields:
            self.put(f"made.{each.name} = {values.get(each.name) or self.let(each.default)}")

    # --- Expressions ----------------------------------------------------------------------------

    def expression(self, value: Expression) -> str:
        """Return an expression as Python, with the result of ``Expression.value``."""
        return self.bounded(value)[0]

    def bounded(self, value: Expression) -> tuple[str, int, int]:
        """Return an expression as Python, with its least and its greatest value."""
        if isinstance(value, Constant):
            text, least, most = str(value.number), value.number, value.number
        elif value is SIZE or value is AT:
            text, least, most = self.place(value), 0, 1 << 48
        elif isinstance(value, Register):
            text, least, most = self.register(value), *I64
        elif isinstance(value, Calculation):
            return self.calculated(value)
        else:
            text, (least, most) = self.number_of(value), getattr(value, "range", I64)
        if least < I64[0] or most > I64[1]:
            return f"wrapped({text})", *I64
        return text, least, most

    def calculated(self, value: Calculation) -> tuple[str, int, int]:
        """Return a calculation as Python, which wraps to 64 bits if it can exceed them."""
        (left, a, b), (right, c, d) = self.bounded(value.left), self.bounded(value.right)
        symbol = value.symbol
        text = f"({left} {symbol} {right})"
        if symbol in ("==", "!=", "<", "<="):
            return text, 0, 1
        if symbol == "<<" or (symbol == ">>" and not (c == d and 0 <= c < 64)):
            return f"calculated({symbol!r}, {left}, {right})", *I64
        if symbol in ("&", "|", ">>"):
            least = min(a, c, 0) if symbol != "&" or min(a, c) < 0 else 0
            bits = (max(b, -a) | max(d, -c)).bit_length()
            most = min(b, d) if symbol == "&" and a >= 0 and c >= 0 else (1 << bits) - 1
            return text, max(I64[0], least if a >= 0 <= c else -(1 << bits)), min(I64[1], most)
        corners = [FITTING[symbol](x, y) for x in (a, b) for y in (c, d)]
        if min(corners) < I64[0] or max(corners) > I64[1]:
            return f"wrapped{text}", *I64
        return text, min(corners), max(corners)

    def register(self, value: Register) -> str:
        """Return the value of a register as Python."""
        return f"known.get({self.let(value)}, {value.initial})"

    def in_64_bits(self, field: Number, text: str) -> str:
        """Return the value of a number as Python, wrapped to 64 bits with a sign."""
        return text if field.range[1] <= I64[1] else f"wrapped({text})"

    def place(self, value: Expression) -> str:
        """Return the size of the record, or the place in it, as Python."""
        raise NotImplementedError

    def number_of(self, field: Expression) -> str:
        """Return the variable of a field."""
        if field not in self.numbers:
            raise UnfitError
        return self.numbers[field]


# --- Record JSON ----------------------------------------------------------------------------------


def _show(source: Source, field: Field) -> None:
    """Add what puts a value that is there into record JSON."""
    value, key = f"made.{field.name}", repr(field.key)
    if isinstance(field, Choice):
        shows, other = field.shows
        tag = f"{source.let(shows)}.get(made.{field.tag.name}, {source.let(other)})"
        source.put(f"{tag}({value}, out)")
    elif type(field).show_of is not Field.show_of:
        source.put(f"{source.let(field.show_of)}(made, out)")
    elif type(field).show is Field.show or (
        type(field).show is Number.show and getattr(field, "refers", None) is None
    ):
        source.put(f"out[{key}] = {value}")
    elif isinstance(field, Text):
        source.put(f"if {value}.isascii(): out[{key}] = {value}")
        source.put(f"else: show_text(out, {key}, {value})")
    else:
        source.put(f"{source.let(field.show)}({value}, out)")


def shower_of(layout: Any) -> Callable[[Any, dict[str, Any]], None]:
    """Return the function ``(object, out)`` that puts all fields into record JSON."""
    source = Source(layout)
    typed = layout.keys.index("type") if "type" in layout.keys else 0
    for number, field in enumerate([*layout.shown, None]):
        if layout.shows_type and (number == typed or (field is None and typed > number)):
            source.put("out['type'] = made.record")
        if field is None:
            break
        if field.when is not None or isinstance(field, Computed):
            with source.inside(f"if made.{field.name} is not None:"):
                _show(source, field)
        else:
            _show(source, field)
    source.put("if made.refs: out['refs'] = dict(made.refs)")
    made: Callable[[Any, dict[str, Any]], None] = source.made("show(made, out)")
    return made
