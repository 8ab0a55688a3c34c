"""Sources of JSON: Python that is generated for a class, which takes usual record JSON apart.

What is usual has all keys that its class shows, and values as they are shown. At anything else it
raises one of ``ODD``, and ``Layout.parse`` goes field by field, which accepts more, and says what
is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from fxframework.errors import WriteRefusedError
from fxframework.kit.json_fields import JsonFields
from fxframework.wire.beside import Computed, Spare
from fxframework.wire.choices import Again, Choice, Flag
from fxframework.wire.fields import Field, Integer, Mark, Number
from fxframework.wire.floats import Float
from fxframework.wire.lists import Listed, Texts
from fxframework.wire.sources import ANY, Source, UnfitError, UnusualError
from fxframework.wire.spans import Octets, Text

__all__ = ["ODD", "part_taker", "taker_of"]

# A layout is a ``fxframework.wire.records.Layout``.

ODD = ValueError, KeyError, WriteRefusedError
"""What generated functions raise for JSON that is not usual."""
Maker = Callable[[Any, Any], Any]


class Taker(Source):
    """Generates the reading of values from ``given``, which the fields of ``form`` are."""

    def __init__(self, layout: Any) -> None:
        super().__init__(layout)
        self.keys: set[str] = set()
        """Keys that are read, or not looked at, whether they are there or not."""
        self.values: dict[str, str] = {}
        self.own = any(type(each).parse_of is not Field.parse_of and type(each) is not Choice
                       and not isinstance(each, Computed) for each in layout.shown)  # fmt: skip
        """Whether fields of a format's own put values beside each other."""

    def body(self) -> None:
        """Add all fields."""
        for field in self.layout.shown:
            if isinstance(field, Computed):
                name = self.values[field.name] = self.fresh()
                self.put(f"{name} = given.get({field.key!r})")
                with self.inside(f"if {field.key!r} in given:"):
                    self.used(field.key)
                    self.unless(f"{name}.__class__ is int")
            elif self.layout.derives(field):
                self.keys.add(field.key)
            else:
                self.field(field)

    def used(self, key: str) -> None:
        """Add the use of a key that may be left out."""
        self.put(f"form.used.add({key!r})")

    def field(self, field: Field) -> None:
        """Add a field, which may be left out."""
        name, key = self.fresh(), repr(field.key)
        presence = self.layout.presence_of(field)
        own = type(field).parse_of is not Field.parse_of
        if field.when is not None:
            there = "None"
            if presence is not None:
                numbers, known = presence
                given = ", ".join(self.values[each.name] for each in numbers)
                there = f"{self.let(known)}({given})"
            self.put(f"there = {there}")
            with self.inside(f"if there is False or ({key} not in given and not there):"):
                self.put(f"if {key} in given: raise {ANY}", f"{name} = None")
            with self.inside("else:"):
                self.used(field.key)
                self.one(field, name)
        elif type(field).parse is Spare.parse:
            self.keys.add(field.key)
            self.put(f"{name} = b''")
            with self.inside(f"if {key} in given:"):
                self.octets(key, name)
        elif field.default is not attrs.NOTHING and not own:
            self.keys.add(field.key)
            with self.inside(f"if {key} in given:"):
                self.one(field, name)
            with self.inside("else:"):
                self.put(f"{name} = {self.let(field.default)}")
        else:
            self.keys.add(field.key)
            self.one(field, name)
        self.values[field.name] = name
        if self.own:
            self.put(f"values[{field.name!r}] = {name}")

    def one(self, field: Field, name: str) -> None:
        """Add a field that is there."""
        key, kind = repr(field.key), type(field)
        if kind is Choice:
            self.choice(field, name)
        elif kind.parse_of is not Field.parse_of:
            self.put(f"{self.let(field.parse_of)}(form, values)")
            self.put(f"{name} = values[{field.name!r}]")
        elif kind.parse is Octets.parse:
            self.octets(key, name)
        elif kind.parse is Listed.parse or kind.parse is Texts.parse:
            self.put(f"{name} = given[{key}]")
            self.unless(f"{name}.__class__ is list")
            self.items(field, name)
        else:
            self.simple(field, name)

    def octets(self, key: str, name: str) -> None:
        """Add bytes in hex."""
        self.put(f"{name} = given[{key}]")
        self.unless(f"{name}.__class__ is str")
        self.put(f"{name} = bytes.fromhex({name})")

    def simple(self, field: Any, name: str) -> None:
        """Add a value that is shown as it is; that of another kind is for the field itself."""
        parse = type(field).parse
        test = ""
        if parse is Text.parse or (parse is Number.parse and field.refers is not None):
            self.text(field, name)
            return
        if parse is Flag.parse or (parse is Number.parse and field.flag):
            test = "{0}.__class__ is bool"
        elif parse is Float.parse:
            test = (
                f"{{0}}.__class__ is float and {{0}} == {{0}} and '{field.key}_bits' not in given"
            )
        elif parse is Mark.parse:
            test = f"{{0}}.__class__ is str and {{0}} in {self.let(set(field.names.values()))}"
        elif parse is Number.parse and field.values:
            test = f"{{0}}.__class__ is str and {{0}} in {self.let(field.names_of)}"
        elif parse is Number.parse or parse is Again.parse:
            least, most = field.range
            test = f"{{0}}.__class__ is int and {least} <= {{0}} <= {most}"
        if test:
            self.put(f"{name} = given[{field.key!r}]")
            self.unless(test.format(name))
        else:
            self.by_form(field, name)

    def by_form(self, field: Field, name: str) -> None:
        """Add a value that the field itself reads."""
        self.put(f"{name} = {self.let(field.parse)}(form)")

    def text(self, field: Field, name: str) -> None:
        """Add a text without bytes beside it."""
        self.put(f"{name} = given[{field.key!r}]")
        self.unless(f"{name}.__class__ is str and '{field.key}_bytes_hex' not in given")
        self.put(f"if not {name}.isascii(): {name}.encode()")

    def items(self, field: Any, name: str) -> None:
        """Add the items of a list that is at hand."""
        if isinstance(field, Texts):
            self.beside(field)
            with self.inside(f"for each in {name}:"):
                self.unless("each.__class__ is str")
                self.put("each.encode()")
            self.put(f"{name} = tuple({name})")
        elif isinstance(field.item, Integer):
            least, most = field.item.range
            with self.inside(f"for each in {name}:"):
                self.unless(f"each.__class__ is int and {least} <= each <= {most}")
            self.put(f"{name} = tuple({name})")
        else:
            make = self.let(field.item.layout.taken_part)
            self.put(f"{name} = tuple([{make}(each, rules) for each in {name}])")

    def beside(self, field: Field, what: str = "bytes_hex") -> None:
        """Add the check that JSON has nothing beside a key, where it might."""
        key = f"{field.key}_{what}"
        self.put(f"if {key!r} in given: raise {ANY}")
        self.used(key)

    def choice(self, field: Any, name: str) -> None:
        """Add a choice."""
        tag = self.values[field.tag.name]
        self.beside(field)
        self.beside(field, "bits")
        word = "if"
        for number, variant in [*field.kinds.items(), (None, field.other)]:
            shown = field.tag.values.get(number, number)
            test = "else:" if number is None else f"{word} {tag} == {shown!r}:"
            with self.inside(test):
                if variant is None:
                    self.unless(f"given.get({field.key!r}) is None")
                    self.put(f"{name} = None")
                else:
                    self.one(variant, name)
            word = "elif"

    def pairs(self) -> str:
        """Return the values by name, as Python."""
        return ", ".join(f"{name!r}: {value}" for name, value in self.values.items())


def taker_of(layout: Any) -> Callable[[JsonFields], dict[str, Any]]:
    """Return the function ``(form)`` that returns the fields as keyword arguments."""
    source = Taker(layout)
    source.body()
    source.put(f"form.used |= {source.let(frozenset(source.keys))}")
    source.put("return values" if source.own else f"return {{{source.pairs()}}}")
    begin = ["given, rules = form.given, form.rules", *(["values = {}"] if source.own else [])]
    made: Callable[[JsonFields], dict[str, Any]] = source.made("take(form)", *begin)
    return made


class PartTaker(Taker):
    """Generates the reading of an item, without a form, from ``given`` by ``rules``."""

    def used(self, key: str) -> None:
        """Take a key as one that there may be."""
        self.keys.add(key)

    def by_form(self, field: Field, name: str) -> None:  # noqa: ARG002 (the signature of all)
        """Refuse a field that reads from a form."""
        raise UnfitError

    def end(self) -> None:
        """Add the check of the keys, and the object."""
        layout = self.layout
        self.keys |= {"type"} if layout.shows_type else set()
        if layout.referring:
            self.keys.add("refs")
            parse, form = self.let(layout.parse_refs), self.let(JsonFields)
            self.put("refs = None")
            with self.inside("if 'refs' in given:"):
                self.put(f"refs = {parse}({form}('', given, rules), {{{self.pairs()}}})")
            self.values["refs"] = "refs"
        self.unless(f"{self.let(frozenset(self.keys))}.issuperset(given)")
        self.make(self.values)
        self.put("return made")


def part_taker(layout: Any, parse: Any) -> Maker:
    """Return the function ``(given, rules)`` that returns an item of a family.

    Classes with another method ``parse`` than this one are asked themselves.
    """
    family = layout.family
    if not family.kinds:
        return maker_of(layout, parse)
    members = [*family.members, *([] if family.other is None else [family.other])]
    makers = {each.record: maker_of(each.layout, parse) for each in members}

    def make(given: Any, rules: Any) -> Any:
        name = given["type"] if given.__class__ is dict else None
        if name.__class__ is not str:
            raise UnusualError
        return makers[name](given, rules)

    return make


def maker_of(layout: Any, parse: Any) -> Maker:
    """Return the function ``(given, rules)`` that returns an object of a class."""
    cls = layout.cls

    def make(given: Any, rules: Any) -> Any:
        if given.__class__ is not dict:
            raise UnusualError
        form = JsonFields(cls.record, given, rules)
        form.used |= {"type"} if layout.shows_type else set()
        values = cls.parse(form)
        form.finish()
        return cls(**values)

    source = PartTaker(layout)
    if cls.parse.__func__ is not parse.__func__ or source.own:
        return make
    try:
        source.body()
        source.end()
    except UnfitError:
        return make
    checked = f"if given.__class__ is not dict: raise {ANY}"
    made: Maker = source.made("take_part(given, rules)", checked)
    return made
