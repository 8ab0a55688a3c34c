"""Record JSON of one object: its fields are shown, and taken from JSON, one by one."""

from __future__ import annotations

import functools
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import attrs

from fxframework.errors import Refusals, did_you_mean, refusal
from fxframework.kit.json_fields import JsonFields
from fxframework.wire.beside import Computed
from fxframework.wire.choices import Choice
from fxframework.wire.cursor import ROOMY
from fxframework.wire.expressions import Constant
from fxframework.wire.fields import Field, Number, Values
from fxframework.wire.shape import Shape, is_reference

__all__ = ["InJson"]


class Shower(NamedTuple):
    """What puts a field into record JSON."""

    key: str
    """Its key there."""
    name: str
    """The attribute with its value."""
    show: Callable[[Any, dict[str, Any]], None] | None
    """Puts it there; None if it is shown as it is."""
    may_be_absent: bool
    """Whether it is left out if its value is None."""


def _shower_of(field: Field) -> Shower:
    """Return what puts a field into record JSON."""
    cls = type(field)
    is_plain = cls.show is Field.show
    if isinstance(field, Number):
        is_plain |= cls.show is Number.show and field.refers is None
    is_plain &= cls.show_of is Field.show_of
    show = None if is_plain else field.show_of
    may_be_absent = field.when is not None or isinstance(field, Computed)
    return Shower(field.key, field.name, show, may_be_absent)


class InJson(Shape):
    """What a layout knows of objects in record JSON."""

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
        """Return what takes a field from record JSON; which way, the field alone decides."""
        key = field.key
        presence = self.presence_of(field)
        default = field.default
        # A field with a ``parse_of`` of its own may be shown in several ways, with keys beside.
        parses_itself = type(field).parse_of is not Field.parse_of
        keys_beside = (f"{key}_bytes_hex", f"{key}_bits")

        def optional(form: JsonFields, values: Values) -> None:
            is_there = None
            if presence is not None:
                numbers, presence_for = presence
                is_there = presence_for(*(values[number.name] for number in numbers))
            if is_there is False or (key not in form and not is_there):
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
            form.used.update(keys_beside)

        if isinstance(field, Computed):
            return field.parse_of
        if self.derives(field):
            return lambda form, _: form.used.add(key)
        if field.when is not None:
            return optional
        if parses_itself:
            return by_itself
        if default is attrs.NOTHING:
            return field.parse_of
        return defaulted

    def presence_of(self, field: Field) -> tuple[list[Number], Callable[..., bool | None]] | None:
        """Return public numbers, and what tells by them whether a field is there; None if nothing.

        What tells it returns None if the room in the record decides.
        """
        if field.when is None or isinstance(field, Computed) or self.derives(field):
            return None
        numbers: list[Number] = []
        for leaf in field.when.leaves():
            if isinstance(leaf, Number) and leaf.public:
                numbers.append(leaf)
            elif not isinstance(leaf, Constant) and leaf not in ROOMY:
                return None  # a register, or a hidden number: JSON does not say it
        when = field.when
        by_room = field.by_room

        # Of many records, few differ in these numbers.
        @functools.lru_cache(maxsize=64)
        def presence_for(*values: Any) -> bool | None:
            known: dict[Any, int] = {**ROOMY}
            for number, value in zip(numbers, values, strict=True):
                known[number] = number.numbered(value)
            is_there = bool(when.value(known))
            if is_there and by_room:
                return None
            return is_there

        return numbers, presence_for

    def parse_refs(self, form: JsonFields, values: Mapping[str, Any]) -> dict[str, int] | None:
        """Return the numbers of references, from record JSON."""
        refs = form.need("refs")
        if not isinstance(refs, Mapping):
            raise form.wrong("refs", "an object of numbers by field")
        fields = {field.name: field for field in self.referring}
        for name, number in refs.items():
            if type(number) is not int or number < 0:
                raise form.wrong("refs", "an object of numbers by field")
            field = fields.get(name)
            if isinstance(field, Choice):
                field = field.chosen(values)
            if field is None or not is_reference(field):
                message = f"{form.what}: refs has {name!r}, which is not a reference here"
                raise refusal(form.rules.fields, message)
        return dict(refs) or None

    def parse_part(self, value: Any, place: str, rules: Refusals) -> Any:
        """Return an item of this family, from JSON. Refusals name its ``place``."""
        if not isinstance(value, Mapping):
            raise refusal(rules.name, f"{place} must be an object, not {reprlib.repr(value)}")
        form = JsonFields(place, value, rules)
        cls = self.cls
        if self.family.kinds:
            name = form.need("type")
            classes = {part.record: part for part in self.family.classes}
            if not isinstance(name, str) or name not in classes:
                hint = did_you_mean(name, classes) if isinstance(name, str) else ""
                raise refusal(rules.name, f"{place}: no type {reprlib.repr(name)}{hint}")
            cls = classes[name]
        values = cls.recovered(form)
        if values is None:
            values = cls.parse(form)
        form.finish()
        return cls(**values)
