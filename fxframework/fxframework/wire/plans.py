"""Plans: in which order the classes of a run of records are read, so that registers are known.

A class may depend on registers, and a register on the records of other classes. A plan is made once
a format: first what depends on nothing, then what depends on that, and so on. What depends on
itself in a way that sums do not say is read one record at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs

from fxframework.wire.beside import Computed
from fxframework.wire.choices import Choice
from fxframework.wire.cursor import AT, SIZE
from fxframework.wire.expressions import Calculation, Constant, Expression, Register
from fxframework.wire.families import Fields
from fxframework.wire.fields import Bits, Field, Number
from fxframework.wire.framing import walk_of
from fxframework.wire.lists import Listed
from fxframework.wire.spans import Text

if TYPE_CHECKING:
    from fxframework.wire.format import Format
    from fxframework.wire.records import Layout

__all__ = ["ClassPlan", "Effect", "Plan", "plan_of"]


@attrs.frozen(eq=False)
class Effect:
    """What a record does to a register: it keeps it or not, 1 or 0, and adds a value."""

    register: Register
    keeps: Expression
    value: Expression
    field: Field | None
    """The field that it comes with, if that may be absent; None: it always happens."""


@attrs.define(eq=False)
class ClassPlan:
    """How the records of a class are read."""

    cls: Any
    uses: set[Register]
    """The registers that its fields depend on, but those of ``late`` ones."""
    late: Fields
    """Computed fields on which nothing depends, so that they are computed last: their registers
    may be changed by the same records."""
    effects: list[Effect]
    one_by_one: bool
    """Whether its records are read as objects."""
    stops: bool
    """Whether a record that is read as an object ends the run, for later ones depend on it."""
    stops_if_short: bool = False
    """Whether one that its fields do not fit into does so, too."""


@attrs.define(eq=False)
class Plan:
    """The steps of reading a run: classes, each once, and registers once they are known."""

    classes: dict[Any, ClassPlan]
    steps: list[ClassPlan | Register]
    unfitting: ClassPlan
    """The plan of records of which no class fits the registers."""


def plan_of(format: Format) -> Plan:
    """Return the plan of a format."""
    for layout in format.layouts():
        for field in layout.fields:
            if isinstance(field, Listed) and hasattr(field.item, "layout"):
                field.walk = walk_of(field.item.layout)
    classes = {cls: class_plan(cls) for cls in format.classes}
    for each in classes.values():
        same_kind = [
            cls for cls in format.classes if cls.layout.kind[:1] == each.cls.layout.kind[:1]
        ]
        for cls in same_kind:
            each.uses |= set() if cls.layout.when is None else registers_in([cls.layout.when])
        if not is_framed(each.cls.layout):
            each.stops = each.stops_if_short = True  # it alone knows where the next one begins
        sizes = {cls.layout.size for cls in same_kind if cls.layout.kind == each.cls.layout.kind}
        if len(sizes) > 1 and format.family.size is None:
            each.one_by_one = each.stops = True  # the loop knows one size of a kind
        each.stops_if_short |= each.cls is format.marked  # it may be in the other byte order
    steps: list[ClassPlan | Register] = []
    waiting_registers = list(format.registers)
    waiting = list(classes.values())
    while waiting or waiting_registers:
        step = next_step(waiting, waiting_registers, classes.values())
        if step is None:
            # Registers that depend on one another: only records read as objects change them.
            for each in classes.values():
                if any(effect.register in Registers(waiting_registers) for effect in each.effects):
                    each.one_by_one = each.stops = True
                    each.effects = []
            continue
        steps.append(step)
        if isinstance(step, ClassPlan):
            waiting.remove(step)
        else:
            waiting_registers = [each for each in waiting_registers if each is not step]
    unfitting = ClassPlan(None, set(), Fields(), [], one_by_one=True, stops=False)
    return Plan(classes, steps, unfitting)


class Registers(tuple[Register, ...]):
    """Registers, found by identity: ``==`` of registers makes a condition."""

    __slots__ = ()

    def __contains__(self, wanted: object) -> bool:
        return any(each is wanted for each in self)


def next_step(
    classes: list[ClassPlan], registers: list[Register], every: Iterable[ClassPlan]
) -> ClassPlan | Register | None:
    """Return a class all of whose registers are known, or a register that can be; else None."""
    unknown = Registers(registers)
    for each in classes:
        if not any(register in unknown for register in each.uses):
            return each
    for register in registers:
        effects = [
            (each, effect)
            for each in every
            for effect in each.effects
            if effect.register is register
        ]
        if all(each not in classes and is_known(effect, unknown) for each, effect in effects):
            return register
    return None


def is_known(effect: Effect, unknown: Registers) -> bool:
    """Return whether the value of an effect depends on known registers alone."""
    leaves = (*effect.keeps.leaves(), *effect.value.leaves())
    return not any(leaf in unknown for leaf in leaves)


def class_plan(cls: Any) -> ClassPlan:
    """Return how the records of a class are read, as far as the class says it."""
    layout = cls.layout
    effects, unfit = effects_of(layout)
    late = late_fields(layout)
    one_by_one = unfit or not is_fit(layout) or any(map(changes_in_parts, layout.fields))
    return ClassPlan(
        cls,
        uses=set() if one_by_one else registers_of(layout, late),
        late=late,
        effects=[] if one_by_one else effects,
        one_by_one=one_by_one,
        stops=layout.changes_state or any(map(changes_in_parts, layout.fields)),
    )


def effects_of(layout: Layout) -> tuple[list[Effect], bool]:
    """Return what records do to registers, and whether that is more than a plan can say.

    Of several effects on a register, the last one counts.
    """
    found: dict[Register, Effect] = {}
    optional: set[Register] = set()
    for field in layout.fields:
        if not isinstance(field, Number):
            continue
        when = None if field.when is None else field
        for register, factor in ((field.sets, 0), (field.adds, 1)):
            if register is None:
                continue
            if when is not None and register in found:
                optional.add(register)
            found[register] = Effect(register, Constant(factor), field, when)
    for register, value in layout.sets.items():
        assert isinstance(register, Register)  # noqa: S101 (what records may set)
        keeps, added = parted(value, register) or (Constant(0), value)
        found[register] = Effect(register, keeps, added, None)
        optional.discard(register)
    return list(found.values()), bool(optional)


def parted(value: Expression, register: Register) -> tuple[Expression, Expression] | None:
    """Return a factor and a summand, neither of which depends on a register.

    Their value is the register times the one, plus the other. None if it is not such a value.
    """
    if value is register:
        return Constant(1), Constant(0)
    if not any(leaf is register for leaf in value.leaves()):
        return Constant(0), value
    if not isinstance(value, Calculation):
        return None
    left, right = parted(value.left, register), parted(value.right, register)
    if left is None or right is None:
        return None
    if value.symbol == "+":
        return left[0] + right[0], left[1] + right[1]
    if value.symbol == "*" and is_zero(right[0]):
        return left[0] * value.right, left[1] * value.right
    if value.symbol == "*" and is_zero(left[0]):
        return right[0] * value.left, right[1] * value.left
    return None


def is_zero(value: Expression) -> bool:
    """Return whether an expression is the constant 0."""
    return isinstance(value, Constant) and value.number == 0


def late_fields(layout: Layout) -> Fields:
    """Return the computed fields of a record on which nothing else depends."""
    values = [*layout.sets.values(), *(e for field in layout.fields for e in field.conditions())]
    used = Fields(leaf for each in values for leaf in each.leaves() if isinstance(leaf, Computed))
    computed = (field for field in layout.fields if isinstance(field, Computed))
    return Fields(field for field in computed if field not in used and not field.uses_place)


def registers_of(layout: Layout, late: Fields) -> set[Register]:
    """Return the registers that fields depend on, those of parts too, but not ``late`` ones."""
    expressions = [] if layout.when is None else [layout.when]
    for field in every_field(layout):
        expressions += [] if field in late else field.conditions()
        if isinstance(field, Text) and field.defines is not None:
            expressions.append(field.defines.index)
    for part in parts_of(layout):
        expressions += [] if part.when is None else [part.when]
    return registers_in(expressions)


def registers_in(expressions: Iterable[Expression]) -> set[Register]:
    """Return the registers that expressions depend on."""
    leaves = (leaf for each in expressions for leaf in each.leaves())
    registers = {leaf for leaf in leaves if isinstance(leaf, Register)}
    return {each for each in registers if each is not AT and each is not SIZE}


def is_framed(layout: Layout) -> bool:
    """Return whether the framing knows the sizes of records without reading their fields."""
    return bool(layout.fixed) or layout.family.size is not None


def parts_of(layout: Layout) -> Iterable[Layout]:
    """Yield the layouts of parts in lists, and in theirs."""
    for field in layout.fields:
        if isinstance(field, Listed) and hasattr(field.item, "layout"):
            family = field.item.layout.family
            others = [] if family.other is None else [family.other]
            for cls in (field.item, *family.members, *others):
                yield cls.layout
                yield from parts_of(cls.layout)


def every_field(layout: Layout) -> Iterable[Field]:
    """Yield the fields of a layout and of its parts."""
    for each in (layout, *parts_of(layout)):
        for field in each.fields:
            yield field
            if isinstance(field, Choice):
                yield from field.fields


def changes_in_parts(field: Field) -> bool:
    """Return whether parts of a list change what later records depend on."""
    if not isinstance(field, Listed) or not hasattr(field.item, "layout"):
        return False
    family = field.item.layout.family
    others = [] if family.other is None else [family.other]
    layouts = [cls.layout for cls in (field.item, *family.members, *others)]
    return any(
        layout.changes_state or any(map(changes_in_parts, layout.fields)) for layout in layouts
    )


def is_fit(layout: Layout) -> bool:
    """Return whether the fields of a layout, and of its parts, can be read of many records."""
    for each in (layout, *parts_of(layout)):
        for field in each.fields:
            if type(field).read_many is Field.read_many:
                return False
            # A word that is not there leaves its bits to the word before it.
            if isinstance(field, Bits) and field in each.words and field.when is not None:
                return False
    return True
