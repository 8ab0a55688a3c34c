"""Record JSON of one object: its fields are shown, and taken from JSON, one by one."""

from __future__ import annotations

import functools
import reprlib
from collections.abc import Mapping
from typing import Any

import attrs

from fxframework.errors import Refusals, did_you_mean, refusal
from fxframework.kit.json_fields import JsonFields
from fxframework.wire.beside import Computed
from fxframework.wire.choices import Choice
from fxframework.wire.cursor import ROOMY
from fxframework.wire.expressions import Constant, Expression
from fxframework.wire.fields import Field, Number, Values
from fxframework.wire.shape import Shape, is_reference


class InJson(Shape):
    """What a layout knows of objects in record JSON."""

    @functools.cached_property
    def members(self) -> list[Field | None]:
        """The fields in the order of record JSON; None stands for the type of a part."""
        members: list[Field | None] = list(self.shown)
        if self.shows_type:
            members.insert(self.keys.index("type") if "type" in self.keys else 0, None)
        return members

    def show(self, made: Any, out: dict[str, Any]) -> None:
        """Put all fields of an object, and the numbers of references, into record JSON."""
        for field in self.members:
            if field is None:
                out["type"] = made.record
                continue
            may_be_absent = field.when is not None or field.is_computed
            if not may_be_absent or getattr(made, field.name) is not None:
                field.show_of(made, out)
        if made.refs:
            out["refs"] = dict(made.refs)

    def parse(self, form: JsonFields) -> Values:
        """Return all fields, from record JSON; derived ones are not looked at."""
        values: Values = {}
        for field in self.shown:
            self.parse_field(field, form, values)
        if "refs" in form:
            values["refs"] = self.parse_refs(form, values)
        return values

    def parse_field(self, field: Field, form: JsonFields, values: Values) -> None:
        """Take a field from record JSON, given the values of those before it."""
        if self.derives(field) and not isinstance(field, Computed):
            form.used.add(field.key)
            return
        # A field with a ``parse_of`` of its own may be shown in several ways, with keys beside.
        parses_itself = type(field).parse_of is not Field.parse_of
        if field.when is not None and not isinstance(field, Computed):
            is_there = presence_of(field, field.when, values)
            if is_there is False or (field.key not in form and not is_there):
                values[field.name] = None
                return
        elif parses_itself:
            form.used |= {f"{field.key}_bytes_hex", f"{field.key}_bits"}
        elif field.key not in form and field.default is not attrs.NOTHING:
            form.used.add(field.key)
            values[field.name] = field.default
            return
        field.parse_of(form, values)

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


def presence_of(field: Field, when: Expression, values: Values) -> bool | None:
    """Return whether a field is there, as public numbers before it tell; None if they do not.

    The room in the record may decide, a register, or a hidden number, which JSON does not say.
    """
    known: dict[Any, int] = {**ROOMY}
    for leaf in when.leaves():
        if isinstance(leaf, Number) and leaf.public:
            known[leaf] = leaf.numbered(values[leaf.name])
        elif not isinstance(leaf, Constant) and leaf not in ROOMY:
            return None
    is_there = bool(when.value(known))
    if is_there and field.by_room:
        return None
    return is_there
