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
    name: str
    show: Callable[[Any, dict[str, Any]], None] | None
    """Puts it there; None if it is shown as it is."""
    may_be_absent: bool


def _shower_of(field: Field) -> Shower:
    """Return what puts a field into record JSON."""
    ways = type(field)
    is_plain = ways.show is Field.show
    if isinstance(field, Number):
        is_plain |= ways.show is Number.show and field.refers is None
    as_it_is = is_plain and ways.show_of is Field.show_of
    may_be_absent = field.when is not None or isinstance(field, Computed)
    return Shower(field.key, field.name, None if as_it_is else field.show_of, may_be_absent)


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
        key, presence = field.key, self.presence_of(field)
        own, default = type(field).parse_of is not Field.parse_of, field.default
        beside = (f"{key}_bytes_hex", f"{key}_bits") if own else ()

        def optional(form: JsonFields, values: Values) -> None:
            there = None
            if presence is not None:
                numbers, known = presence
                there = known(*(values[each.name] for each in numbers))
            if there is False or (key not in form and not there):
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
            form.used.update(beside)

        if isinstance(field, Computed):
            return field.parse_of
        if self.derives(field):
            return lambda form, _: form.used.add(key)
        if field.when is not None:
            return optional
        if own:
            return by_itself
        return field.parse_of if default is attrs.NOTHING else defaulted

    def presence_of(self, field: Field) -> tuple[list[Number], Callable[..., bool | None]] | None:
        """Return public numbers, and what tells by them whether a field is there; None if nothing.

        It returns None if the room decides.
        """
        if field.when is None or isinstance(field, Computed) or self.derives(field):
            return None
        leaves = [each for each in field.when.leaves() if not isinstance(each, Constant)]
        numbers = [each for each in leaves if isinstance(each, Number) and each.public]
        if len(numbers) + sum(each in ROOMY for each in leaves) < len(leaves):
            return None
        when, by_room = field.when, field.by_room

        @functools.lru_cache(maxsize=64)
        def known(*values: Any) -> bool | None:
            given = (each.numbered(value) for each, value in zip(numbers, values, strict=True))
            there = bool(when.value({**ROOMY, **dict(zip(numbers, given, strict=True))}))
            return None if there and by_room else there

        return numbers, known

    def parse_refs(self, form: JsonFields, values: Mapping[str, Any]) -> dict[str, int] | None:
        """Return the numbers of references, from record JSON."""
        given = form.need("refs")
        fields = {field.name: field for field in self.referring}
        for name, number in given.items() if isinstance(given, Mapping) else [(None, None)]:
            if type(number) is not int or number < 0:
                raise form.wrong("refs", "an object of numbers by field")
            field = fields.get(name or "")
            if isinstance(field, Choice):
                field = field.chosen(values)
            if field is None or not is_reference(field):
                message = f"{form.what}: refs has {name!r}, which is not a reference here"
                raise refusal(form.rules.fields, message)
        return dict(given) or None

    def parse_part(self, given: Any, what: str, rules: Refusals) -> Any:
        """Return an item of this family, from JSON."""
        if not isinstance(given, Mapping):
            raise refusal(rules.name, f"{what} must be an object, not {reprlib.repr(given)}")
        form = JsonFields(what, given, rules)
        cls = self.cls
        if self.family.kinds:
            name = form.need("type")
            classes = {each.record: each for each in self.family.members}
            if self.family.other is not None:
                classes[self.family.other.record] = self.family.other
            if not isinstance(name, str) or name not in classes:
                hint = did_you_mean(name, classes) if isinstance(name, str) else ""
                raise refusal(rules.name, f"{what}: no type {reprlib.repr(name)}{hint}")
            cls = classes[name]
        values = cls.recovered(form)
        if values is None:
            values = cls.parse(form)
        form.finish()
        return cls(**values)
