"""Plans: in which order the classes of a run of records are read, so that registers are known.

A class may depend on registers, and a register on the records of other classes. A plan is made once
a format: first what depends on nothing, then what depends on that, and so on. What depends on
itself in a way that sums do not say is read one record at a time. Example: ``Tick`` records add to
the register ``clock``, and are read first; then ``clock`` is known before and after each record;
then ``Event`` records are read, whose times are computed from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import attrs

from fxframework.wire.beside import Computed
from fxframework.wire.choices import Choice
from fxframework.wire.cursor import AT, SIZE
from fxframework.wire.expressions import Calculation, Constant, Expression, Register, leaves_of
from fxframework.wire.families import Fields
from fxframework.wire.fields import Bits, Field, Number
from fxframework.wire.format import every_layout
from fxframework.wire.framing import walk_of
from fxframework.wire.lists import Listed
from fxframework.wire.spans import Text

if TYPE_CHECKING:
    from fxframework.wire.format import Format
    from fxframework.wire.records import Layout


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
    plans = {cls: class_plan(cls) for cls in format.classes}
    for plan in plans.values():
        complete_plan(plan, format)
    steps: list[ClassPlan | Register] = []
    waiting_plans = list(plans.values())
    waiting_registers = list(format.registers)
    while waiting_plans or waiting_registers:
        step = next_step(waiting_plans, waiting_registers, plans.values())
        if step is None:
            # Registers that depend on one another: only records read as objects change them.
            unknown = set(waiting_registers)
            for plan in plans.values():
                if any(effect.register in unknown for effect in plan.effects):
                    plan.one_by_one = True
                    plan.stops = True
                    plan.effects = []
            continue
        steps.append(step)
        if isinstance(step, ClassPlan):
            waiting_plans.remove(step)
        else:
            waiting_registers = [register for register in waiting_registers if register is not step]
    unfitting = ClassPlan(None, set(), Fields(), [], one_by_one=True, stops=False)
    return Plan(plans, steps, unfitting)


def complete_plan(plan: ClassPlan, format: Format) -> None:
    """Take into a plan what other classes of the format say about its records."""
    layout = plan.cls.layout
    same_kind = [cls for cls in format.classes if cls.layout.kind[:1] == layout.kind[:1]]
    # Which of the classes of a kind a record is of, their conditions say.
    plan.uses |= registers_in(cls.layout.when for cls in same_kind)
    if not layout.is_sized:  # it alone knows where the next record begins
        plan.stops = True
        plan.stops_if_short = True
    sizes = {cls.layout.size for cls in same_kind if cls.layout.kind == layout.kind}
    if len(sizes) > 1 and format.family.size is None:  # the loop knows one size of a kind
        plan.one_by_one = True
        plan.stops = True
    if plan.cls is format.marked:  # it may be in the other byte order
        plan.stops_if_short = True


def next_step(
    waiting_plans: list[ClassPlan],
    waiting_registers: list[Register],
    every_plan: Iterable[ClassPlan],
) -> ClassPlan | Register | None:
    """Return a class all of whose registers are known, or a register that can be; else None.

    A register can be known once all classes that change it were read.
    """
    unknown = set(waiting_registers)
    for plan in waiting_plans:
        if unknown.isdisjoint(plan.uses):
            return plan
    for register in waiting_registers:
        can_be_known = True
        for plan in every_plan:
            for effect in plan.effects:
                if effect.register is register:
                    is_read = plan not in waiting_plans
                    can_be_known &= is_read and is_known(effect, unknown)
        if can_be_known:
            return register
    return None


def is_known(effect: Effect, unknown: AbstractSet[Register]) -> bool:
    """Return whether the value of an effect depends on known registers alone."""
    return unknown.isdisjoint(registers_in((effect.keeps, effect.value)))


def class_plan(cls: Any) -> ClassPlan:
    """Return how the records of a class are read, as far as the class says it."""
    layout = cls.layout
    effects, is_unfit = effects_of(layout)
    late = late_fields(layout)
    _, *parts = every_layout([layout])
    parts_change_state = any(part.changes_state for part in parts)
    one_by_one = is_unfit or parts_change_state or not is_fit(layout)
    stops = layout.changes_state or parts_change_state
    if one_by_one:  # an object knows the registers before it, and what it does to them
        return ClassPlan(cls, set(), late, [], one_by_one=True, stops=stops)
    uses = registers_of(layout, late)
    return ClassPlan(cls, uses, late, effects, one_by_one=False, stops=stops)


def effects_of(layout: Layout) -> tuple[list[Effect], bool]:
    """Return what records do to registers, and whether that is more than a plan can say.

    Of several effects on a register, the last one counts.
    """
    effects: dict[Register, Effect] = {}
    # Registers of which the last effect may be absent, so that an earlier one counts.
    unclear: set[Register] = set()
    for field in layout.fields:
        if not isinstance(field, Number):
            continue
        optional_field = None if field.when is None else field
        for register, factor in ((field.sets, 0), (field.adds, 1)):
            if register is None:
                continue
            if optional_field is not None and register in effects:
                unclear.add(register)
            effects[register] = Effect(register, Constant(factor), field, optional_field)
    for register, value in layout.sets.items():
        assert isinstance(register, Register)  # noqa: S101 (what records may set)
        keeps, added = parted(value, register) or (Constant(0), value)
        effects[register] = Effect(register, keeps, added, None)
        unclear.discard(register)
    return list(effects.values()), bool(unclear)


def parted(value: Expression, register: Register) -> tuple[Expression, Expression] | None:
    """Return the factor and the summand of ``value = factor * register + summand``.

    Neither depends on the register. None if the value is not of this form.
    """
    if value is register:
        return Constant(1), Constant(0)
    if not any(leaf is register for leaf in value.leaves()):
        return Constant(0), value
    if not isinstance(value, Calculation):
        return None
    left = parted(value.left, register)
    right = parted(value.right, register)
    if left is None or right is None:
        return None
    left_factor, left_summand = left
    right_factor, right_summand = right
    if value.symbol == "+":
        return left_factor + right_factor, left_summand + right_summand
    # (factor * register + summand) * other, where the other side does not have the register.
    if value.symbol == "*" and is_zero(right_factor):
        return left_factor * value.right, left_summand * value.right
    if value.symbol == "*" and is_zero(left_factor):
        return right_factor * value.left, right_summand * value.left
    return None


def is_zero(value: Expression) -> bool:
    """Return whether an expression is the constant 0."""
    return isinstance(value, Constant) and value.number == 0


def late_fields(layout: Layout) -> Fields:
    """Return the computed fields of a record on which nothing else depends."""
    expressions = list(layout.sets.values())
    for field in layout.fields:
        expressions += field.conditions()
    leaves = [leaf for expression in expressions for leaf in expression.leaves()]
    used = Fields(leaf for leaf in leaves if isinstance(leaf, Computed))
    computed = [field for field in layout.fields if isinstance(field, Computed)]
    return Fields(field for field in computed if field not in used and not field.uses_place)


def registers_of(layout: Layout, late: Fields) -> set[Register]:
    """Return the registers that fields depend on, those of parts too, but not ``late`` ones."""
    expressions: list[Expression | None] = []
    for field in every_field(layout):
        if field not in late:
            expressions += field.conditions()
        if isinstance(field, Text) and field.defines is not None:
            expressions.append(field.defines.index)
    expressions += [own_or_part.when for own_or_part in every_layout([layout])]
    return registers_in(expressions)


def registers_in(expressions: Iterable[Expression | None]) -> set[Register]:
    """Return the registers that expressions depend on; None is one that is left out."""
    leaves = (leaf for expression in expressions for leaf in leaves_of(expression))
    registers = {leaf for leaf in leaves if isinstance(leaf, Register)}
    return {register for register in registers if register is not AT and register is not SIZE}


def every_field(layout: Layout) -> Iterable[Field]:
    """Yield the fields of a layout and of its parts."""
    for own_or_part in every_layout([layout]):
        for field in own_or_part.fields:
            yield field
            if isinstance(field, Choice):
                yield from field.fields


def is_fit(layout: Layout) -> bool:
    """Return whether the fields of a layout, and of its parts, can be read of many records."""
    for own_or_part in every_layout([layout]):
        for field in own_or_part.fields:
            if type(field).read_many is Field.read_many:
                return False
            # A word that is not there leaves its bits to the word before it.
            begins_word = isinstance(field, Bits) and field in own_or_part.words
            if begins_word and field.when is not None:
                return False
    return True
