"""The contract of steps."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import attrs

from fxframework.errors import FxError
from fxframework.kit.steps import Outcome, Run
from fxframework.replay.scenario import Step
from fxframework.testing.contracts.checks import deliberate, skip, through_json
from fxframework.testing.contracts.scenario import Place, ScenarioContract

__all__ = ["StepContract"]


class BrokenUseError(FxError):
    """Raised by a device, capture or output that a test broke."""


class _Broken:
    """A device or capture whose every use fails; records whether it was used."""

    def __init__(self) -> None:
        object.__setattr__(self, "used", False)

    def __getattribute__(self, name: str) -> Any:
        if name in {"used", "close"}:
            return (lambda: None) if name == "close" else object.__getattribute__(self, name)
        object.__setattr__(self, "used", True)
        raise BrokenUseError("broken by a test")


class _Outputs(dict[str, bytes]):
    """Outputs, one of which cannot be read."""

    used = False
    broken = ""

    def __getitem__(self, name: str) -> bytes:
        if name == self.broken:
            self.used = True
            raise BrokenUseError("broken by a test")
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return an output, like ``[]``."""
        return super().get(name, default) if name != self.broken else self[name]


class StepContract(ScenarioContract):
    """Contract of every step. Provide ``plugin``, ``name`` and ``scenarios()``.

    A scenario is a TOML text with a step of this kind, in which all steps succeed. It can use the
    devices of installed plugins.
    """

    noun: ClassVar[Literal["step", "device"]] = "step"
    hook: ClassVar[str] = "fx_step_kinds"

    def _before(self, place: Place) -> Iterator[tuple[Run, Step]]:
        """Yield a run after the steps before the one under test, and that step."""
        scenario = self._parse(place.scenario)
        index = int(place.keys[1])
        with self._running(scenario) as run:
            for step in scenario.steps[:index]:
                step.kind.run(step.parameters, run)
            yield run, scenario.steps[index]

    # --- Outcome -----------------------------------------------------------------------------

    def test_outcome_is_plain(self) -> None:
        """A step returns None or an Outcome with a one-line message and JSON facts."""
        for place in self._places():
            for run, step in self._before(place):
                found = step.kind.run(step.parameters, run)
                assert found is None or isinstance(found, Outcome), (
                    f"{self.name} returns {found!r}, not an Outcome"
                )
                if found is None:
                    continue
                assert isinstance(found.message, str), f"{self.name}: its message is not a string"
                assert "\n" not in found.message, (
                    f"{self.name}: its message has several lines: {found.message!r}"
                )
                assert found.status in {"ok", "failed", "skipped"}, (
                    f"{self.name}: its status is {found.status!r}"
                )
                again = through_json(dict(found.facts), f"{self.name}: its facts")
                assert again == dict(found.facts), (
                    f"{self.name}: its facts are {dict(found.facts)}, as JSON {again}"
                )

    def test_what_it_makes_is_named_by_parameters(self) -> None:
        """Outputs and captures are named by parameters with ``makes``.

        A scenario is checked by these before it runs, so that later steps can refer to them.
        """
        for place in self._places():
            for run, step in self._before(place):
                before = set(run.outputs), set(run.captures)
                step.kind.run(step.parameters, run)
                made = {
                    "output": set(run.outputs) - before[0],
                    "capture": set(run.captures) - before[1],
                }
                for noun, names in made.items():
                    promised = set(_values(step.parameters, "makes", noun))
                    inside = tuple(f"{name}/" for name in promised)
                    for name in sorted(names - promised):
                        if noun == "output" and name.startswith(inside):
                            continue  # a folder of outputs
                        raise AssertionError(
                            f"{self.name} makes the {noun} {name!r}, which no parameter names: "
                            f"declare one with parameter(makes={noun!r})"
                        )
                    for name in sorted(promised - names):
                        made_any = any(each.startswith(f"{name}/") for each in names)
                        there = run.outputs if noun == "output" else run.captures
                        assert made_any or name in there, (
                            f"{self.name} does not make the {noun} {name!r}, although a parameter "
                            "says so"
                        )

    def test_parameters_are_left_as_they_were(self) -> None:
        """The step does not change its parameters, because a scenario may run again."""
        for place in self._places():
            for run, step in self._before(place):
                kept = copy.deepcopy(step.parameters)
                step.kind.run(step.parameters, run)
                assert step.parameters == kept, (
                    f"{self.name} changes its parameters: {kept} became {step.parameters}"
                )

    def test_runs_do_not_disturb_each_other(self) -> None:
        """Two runs at once give the same outputs: no state is kept in the module."""
        place = self._places()[0]
        alone = self._run(place.scenario)
        for run, step in self._before(place):
            for other, same in self._before(place):
                step.kind.run(step.parameters, run)
                same.kind.run(same.parameters, other)
                for name in sorted({*run.outputs, *other.outputs} & set(alone.outputs)):
                    one, two = run.outputs.get(name), other.outputs.get(name)
                    assert one == two, (
                        f"{self.name}: two runs at once give different outputs {name!r}"
                    )

    # --- Faults ------------------------------------------------------------------------------

    def test_faults_of_what_it_uses_reach_the_report(self) -> None:
        """A step fails if a device, capture or output that it uses fails."""
        tried = 0
        for place in self._places():
            for field, name in self._references(place):
                for run, step in self._before(place):
                    broken = _break(run, name)
                    tried += 1
                    try:
                        found = step.kind.run(step.parameters, run)
                    except FxError:
                        continue
                    except Exception as error:
                        if not object.__getattribute__(broken, "used"):
                            raise
                        raise AssertionError(
                            f"{self.name}: {name!r} (parameter {field}) fails with a coded error, "
                            f"and the step turns it into {type(error).__name__}: {error}"
                        ) from error
                    used = object.__getattribute__(broken, "used")
                    failed = found is not None and found.status == "failed"
                    assert failed or not used, (
                        f"{self.name} swallows a fault: {name!r} (parameter {field}) failed, and "
                        "the step reports success"
                    )
        if not tried:
            skip(f"{self.name} refers to nothing")

    def test_names_that_are_not_there_are_refused(self) -> None:
        """Unknown names are refused before the scenario runs."""
        place = self._places()[0]
        references = self._references(place)
        if not references:
            skip(f"{self.name} refers to nothing")
        keys = {field for field, _ in references}
        document = tomllib.loads(place.scenario)
        table = place.table(document)
        for key in keys:
            table[key] = ["no-such-name"] if isinstance(table.get(key), list) else "no-such-name"
        faults = self._faults(document)
        for key in sorted(keys):
            assert f"{place.path}.{key}" in faults, (
                f"parameter {key} of {self.name} takes a name that nothing has"
            )

    def test_devices_of_another_kind_are_refused(self) -> None:
        """A device of another kind is refused by ``refers="device:KIND"`` or with a coded error."""
        place = self._places()[0]
        names = [
            (field, name)
            for field, name in self._references(place)
            if str(self._fields()[field].metadata["refers"]) == "device"
        ]
        if not names:
            skip(f"no parameter of {self.name} takes a device of any kind")
        for field, name in names:
            for run, step in self._before(place):
                run.devices[name] = object()
                try:
                    step.kind.run(step.parameters, run)
                except Exception as error:
                    if deliberate(error):
                        continue
                    raise AssertionError(
                        f"{self.name} ends in {type(error).__name__} where {field} names a device "
                        f'of another kind: declare refers="device:KIND", or raise a coded error'
                    ) from error

    def _references(self, place: Place) -> list[tuple[str, str]]:
        """Return the parameters that name a device, capture or output, with the names."""
        document = tomllib.loads(place.scenario)
        table = place.table(document)
        found = []
        for key, field in self._fields().items():
            refers = field.metadata.get("refers")
            if refers is None or refers == "file":
                continue
            given = table.get(key, "")
            found += [
                (key, name) for name in ([given] if isinstance(given, str) else given) if name
            ]
        return found


def _break(run: Run, name: str) -> Any:
    """Make every use of a device, capture or output fail."""
    if name in run.outputs:
        outputs = _Outputs(run.outputs)
        outputs.broken = name
        run.outputs = outputs
        return outputs
    broken = _Broken()
    (run.captures if name in run.captures else run.devices)[name] = broken
    return broken


def _values(parameters: Any, note: str, noun: str) -> Iterator[str]:
    """Yield the values of parameters whose metadata ``note`` is ``noun``."""
    if not attrs.has(type(parameters)):
        return
    for field in attrs.fields(type(parameters)):
        if field.metadata.get(note) == noun:
            value = getattr(parameters, field.name)
            yield from [value] if isinstance(value, str) else value
