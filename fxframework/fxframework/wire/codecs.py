"""Codecs: Python generated for plain layouts, which reads, writes and shows one record quickly.

A layout is plain if bytes follow from its fields alone: numbers at fixed places, spare bytes, and
at most one payload behind them. What a codec cannot write it leaves to the fields, which say why.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fxframework.wire.beside import Computed, Spare
from fxframework.wire.cursor import ShortError
from fxframework.wire.expressions import Expression, calculated, wrapped
from fxframework.wire.fields import Bits, Field, Integer, Mark, Number, Octets
from fxframework.wire.sources import LETTERS, function_of

__all__ = ["Codec", "is_plain"]

# A layout is a ``fxframework.wire.records.Layout``.

Read = Callable[[memoryview, int, int, Mapping[Expression, int]], tuple[Any, dict[Expression, int]]]


def is_plain(layout: Any) -> bool:
    """Return whether a codec can be made of a layout."""
    family = layout.family
    whole = not layout.fixed or layout.least == layout.fixed
    if (
        layout.mark is not None
        or family.size is not None
        or layout.tail
        or layout.clears
        or not whole
    ):
        return False
    if layout.measured or family.rules or any(field.rules for field in layout.fields):
        return False
    if any(reserved or nbytes not in LETTERS for nbytes, reserved in layout.words.values()):
        return False
    *head, last = layout.fields or (None,)
    return all(_is_plain(layout, each) for each in head if each is not None) and (
        last is not None and (_is_plain(layout, last) or _is_payload(layout, last))
    )


def _is_plain(layout: Any, field: Field) -> bool:
    if isinstance(field, Computed | Spare):
        return True
    if not isinstance(field, Number) or isinstance(field, Mark) or field.when is not None:
        return False
    unusual = (field.equals, field.below, field.refers, (field.values and not field.closed) or None)
    implied = [(how, factor) for how, _, factor, _ in layout.implied.get(field, ())]
    return (
        all(each is None for each in unusual)
        and not layout.is_reserved(field)
        and implied in ([], [("length", 1)])
        and (isinstance(field, Bits) or field.nbits // 8 in LETTERS)
    )


def _is_payload(layout: Any, field: Field) -> bool:
    if type(field) is not Octets or field.when is not None or layout.fixed:
        return False
    if field.until or field.pad or field.aligned > 1:
        return False
    linear = None if field.nbytes is None else field.nbytes.linear()
    return field.nbytes is None or (linear is not None and linear[0] in layout.implied)


class Codec:
    """Functions that read, write and show the records of one layout."""

    def __init__(self, layout: Any) -> None:
        self.layout = layout
        self.names = {field: f"f{number}" for number, field in enumerate(layout.fields)}
        self.space: dict[str, Any] = {
            "ShortError": ShortError, "calculated": calculated, "wrapped": wrapped,
            "cls": layout.cls,
        }  # fmt: skip
        self.registers: dict[Expression, str] = {}
        last = layout.fields[-1]
        self.payload = last if isinstance(last, Octets) and _is_payload(layout, last) else None
        for field, name in self.names.items():
            if isinstance(field, Number) and field.values:
                self.space[f"names_{name}"] = field.values
                self.space[f"numbers_{name}"] = {text: n for n, text in field.values.items()}
        self._readers: dict[tuple[bool, bool], Read] = {}
        self._packers: dict[tuple[bool, bool], tuple[Callable[[Any], bytes], list[Any]]] = {}
        self.show: Callable[[Any, dict[str, Any]], None] = self._made("show", self._show())

    def reader(self, big: bool, mirrored: bool) -> Read:
        """Return what reads a record: the record, and the registers that it changes.

        Its arguments are data, the place of the record, that of its end at most, and the registers.
        Raises ShortError if there is no record of this class.
        """
        key = bool(big), bool(mirrored)
        if key not in self._readers:
            self._readers[key] = self._made("read", self._read(*key))
        return self._readers[key]

    def pack(self, made: Any, big: bool, mirrored: bool) -> bytes | None:
        """Return the bytes of a record; None for values that it cannot have."""
        key = bool(big), bool(mirrored)
        if key not in self._packers:
            self._packers[key] = self._made("pack", self._pack(*key)), self._kind(*key)
        packer, kind = self._packers[key]
        try:
            data = packer(made)
        except (struct.error, KeyError, TypeError, ValueError):
            return None
        for part, number in kind:
            if part(data) != number:
                return None
        return data

    def _kind(self, big: bool, mirrored: bool) -> list[tuple[Callable[[bytes], int], int]]:
        """Return the numbers of the kind that fields in the first word might change."""
        family, numbers = self.layout.family, self.layout.kind if self.layout.word else ()
        getters = (family.places[field].getter(big, mirrored) for field in family.kinds)
        return list(zip(getters, numbers, strict=False))

    def _made(self, name: str, lines: Iterator[str]) -> Any:
        """Return the function of some lines."""
        text = "\n    ".join(lines) + "\n"
        place = f"<{name} of {self.layout.cls.__qualname__} {len(linecache.cache)}>"
        return function_of(text, name, place, dict(self.space))

    # --- Source ---------------------------------------------------------------------------------

    def _form(self, big: bool) -> struct.Struct:
        """Return the layout of what is at fixed places."""
        form = ">" if big else "<"
        for field in self.layout.fields:
            if field in self.layout.words:
                form += LETTERS[self.layout.words[field][0]]
            elif isinstance(field, Integer):
                code = LETTERS[field.nbytes]
                form += code.lower() if field.signed else code
            elif isinstance(field, Spare):
                form += f"{field.own}s"
        return struct.Struct(form)

    def _source(self, value: Expression) -> str:
        def name(leaf: Expression) -> str:
            if leaf in self.names:
                return self.names[leaf]
            number = self.registers.setdefault(leaf, f"r{len(self.registers)}")
            self.space[number] = leaf
            return f"known[{number}]"

        return value.source(name)

    def _words(self) -> Iterator[str]:
        """Yield the variables of what is at fixed places."""
        for field, name in self.names.items():
            if field in self.layout.words:
                yield f"w{name}"
            elif isinstance(field, Integer | Spare):
                yield name

    def _read(self, big: bool, mirrored: bool) -> Iterator[str]:
        layout, names = self.layout, self.names
        form = self._form(big)
        self.space["unpack"] = form.unpack_from
        yield "def read(data, at, limit, known):"
        yield f"if limit - at < {form.size}: raise ShortError"
        yield f"({' '.join(f'{word},' for word in self._words())}) = unpack(data, at)"
        yield f"nbytes = {form.size}"
        given: dict[str, str] = {}
        changes: list[str] = []
        kinds: dict[Field, int] = dict(zip(layout.family.kinds, layout.kind, strict=False))
        odd = ["False"]
        for field, name in names.items():
            if isinstance(field, Bits):
                first = layout.word_of[field]
                shift = field.shift(layout.words[first][0], mirrored)
                yield f"{name} = w{names[first]} >> {shift} & {(1 << field.nbits) - 1}"
                if field.signed:
                    yield f"{name} -= {name} >> {field.nbits - 1} << {field.nbits}"
            if isinstance(field, Number) and field in kinds:
                odd.append(f"{name} != {kinds[field]}")
            elif isinstance(field, Number):
                if field.sets is not None:
                    changes.append(f"{self._register(field.sets)}: wrapped({name})")
                if field.adds is not None:
                    total = f"known[{self._register(field.adds)}] + {name}"
                    changes.append(f"{self._register(field.adds)}: wrapped({total})")
                given[field.name] = name
                if field.values:
                    yield f"n{name} = names_{name}.get({name})"
                    yield f"if n{name} is None: raise ShortError"
                    given[field.name] = f"n{name}"
                elif field.flag:
                    given[field.name] = f"bool({name})"
            elif isinstance(field, Spare):
                joined = name if field.after is None else f"{names[field.after]} + {name}"
                yield f"{name} = {joined}"
                given[field.name] = f"{name} if any({name}) else b''"
            elif isinstance(field, Computed):
                yield f"{name} = {self._source(field.of)} & {(1 << field.nbits) - 1}"
                if field.signed:
                    yield f"{name} -= {name} >> {field.nbits - 1} << {field.nbits}"
                given[field.name] = name
                if field.when is not None:
                    given[field.name] = f"{name} if {self._source(field.when)} else None"
        if self.payload is not None:
            size = self.payload.nbytes
            length = f"limit - at - {form.size}" if size is None else self._source(size)
            yield f"nbytes += {length}"
            yield f"if not {form.size} <= nbytes <= limit - at: raise ShortError"
            given[self.payload.name] = f"bytes(data[at + {form.size} : at + nbytes])"
        changes += [
            f"{self._register(register)}: wrapped({self._source(value)})"
            for register, value in layout.sets.items()
        ]
        given["raw"] = f"bytes(data[at : at + nbytes]) if {' or '.join(odd)} else None"
        shown = {field.name for field in layout.public} | {"raw"}
        values = ", ".join(f"{name}={text}" for name, text in given.items() if name in shown)
        yield f"made = cls(offset=at, nbytes=nbytes, {values})"
        yield f"return made, {{{', '.join(changes)}}}"

    def _register(self, register: Expression) -> str:
        return self._source(register).removeprefix("known[").removesuffix("]")

    def _pack(self, big: bool, mirrored: bool) -> Iterator[str]:
        layout, names = self.layout, self.names
        self.space["pack_into"] = self._form(big).pack
        kinds: dict[Field, int] = dict(zip(layout.family.kinds, layout.kind, strict=False))
        yield "def pack(made):"
        yield from (f"w{names[field]} = 0" for field in layout.words)
        for field, name in names.items():
            if isinstance(field, Number):
                yield f"{name} = {self._number(field, kinds)}"
            if isinstance(field, Bits):
                least, most = field.range
                first = layout.word_of[field]
                shift = field.shift(layout.words[first][0], mirrored)
                if field not in kinds:
                    yield f"if not {least} <= {name} <= {most}: raise ValueError"
                yield f"w{names[first]} |= ({name} & {(1 << field.nbits) - 1}) << {shift}"
            elif isinstance(field, Spare):
                total = field.shown.before + field.shown.own
                yield f"{name} = made.{field.shown.name}"
                yield f"if len({name}) not in (0, {total}): raise ValueError"
                yield f"{name} = {name}[{field.before} : {field.before + field.own}]"
        yield f"data = pack_into({', '.join(self._words())})"
        tail = "" if self.payload is None else f" + bytes(memoryview(made.{self.payload.name}))"
        yield f"return data{tail}"

    def _number(self, field: Number, kinds: Mapping[Field, int]) -> str:
        """Return the source of the number to write."""
        if field in kinds:
            return str(kinds[field])
        for _, other, _, summand in self.layout.implied.get(field, ()):
            return f"len(made.{other.name}) - {summand}"
        if field.values:
            return f"numbers_{self.names[field]}[made.{field.name}]"
        return f"made.{field.name}"

    def _show(self) -> Iterator[str]:
        yield "def show(made, out):"
        for field in self.layout.shown:
            value = f"made.{field.name}"
            if isinstance(field, Computed):
                yield f"if {value} is not None: out[{field.key!r}] = {value}"
            elif isinstance(field, Spare):
                yield f"if {value}: out[{field.key!r}] = {value}.hex()"
            elif isinstance(field, Octets):
                yield f"out[{field.key!r}] = bytes({value}).hex()"
            else:
                yield f"out[{field.key!r}] = {value}"
        yield "pass"
