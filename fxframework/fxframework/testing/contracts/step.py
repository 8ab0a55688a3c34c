"""The contract of steps."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs

from fxframework.errors import FxError
from fxframework.kit.steps import Outcome, Run
from fxframework.replay.scenario import Step, key_of, named_values
from fxframework.testing.contracts.checks import check_json, deliberate, some
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

    noun: ClassVar[str] = "step"

    def _before(self, *places: Place) -> Iterator[tuple[Run, Step]]:
        """Yield runs after the steps before the one under test, and that step."""
        for place in places or self._places():
            scenario = self._parse(place.scenario)
            index = int(place.keys[1])
            with self._running(scenario) as run:
                for step in scenario.steps[:index]:
                    step.kind.run(step.parameters, run)
                yield run, scenario.steps[index]

    # --- Outcome -----------------------------------------------------------------------------

    def test_outcome_is_plain(self) -> None:
        """A step returns None or an Outcome with a one-line message and JSON facts."""
        for run, step in self._before():
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
            known = found.status in {"ok", "failed", "skipped"}
            assert known, f"{self.name}: its status is {found.status!r}"
            check_json(dict(found.facts), f"{self.name}: its facts")

    def test_what_it_makes_is_named_by_parameters(self) -> None:
        """Outputs and captures are named by parameters with ``makes``.

        A scenario is checked by these before it runs, so that later steps can refer to them.
        """
        for run, step in self._before():
            there: dict[str, Mapping[str, Any]] = {"output": run.outputs, "capture": run.captures}
            before = {noun: set(names) for noun, names in there.items()}
            step.kind.run(step.parameters, run)
            for noun, names in there.items():
                promised = {
                    name
                    for field, name in named_values(step.parameters)
                    if field.metadata.get("makes") == noun
                }
                for name in sorted({*names} - before[noun] - promised):
                    folder = noun == "output" and any(name.startswith(f"{p}/") for p in promised)
                    assert folder, (
                        f"{self.name} makes the {noun} {name!r}, which no parameter names: "
                        f"declare one with parameter(makes={noun!r})"
                    )
                for name in sorted(promised):
                    made = name in names or any(each.startswith(f"{name}/") for each in names)
                    assert made, (
                        f"{self.name} does not make the {noun} {name!r}, although a parameter "
                        "says so"
                    )

    def test_parameters_are_left_as_they_were(self) -> None:
        """The step does not change its parameters, because a scenario may run again."""
        for run, step in self._before():
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
                for name in alone.outputs:
                    one, two = (each.outputs.get(name) for each in (run, other))
                    assert one == two, (
                        f"{self.name}: two runs at once give different outputs {name!r}"
                    )

    # --- Faults ------------------------------------------------------------------------------

    def test_faults_of_what_it_uses_reach_the_report(self) -> None:
        """A step fails if a device, capture or output that it uses fails."""
        for place, field, name in some(self._references(), f"{self.name} refers to nothing"):
            for run, step in self._before(place):
                broken = _break(run, name)
                what = f"{name!r} (parameter {key_of(field.name)})"
                try:
                    found = step.kind.run(step.parameters, run)
                except FxError:
                    continue
                except Exception as error:
                    if not _was_used(broken):
                        raise
                    raise AssertionError(
                        f"{self.name}: {what} fails with a coded error, and the step turns it into "
                        f"{type(error).__name__}: {error}"
                    ) from error
                swallowed = _was_used(broken) and (found is None or found.status != "failed")
                assert not swallowed, (
                    f"{self.name} swallows a fault: {what} failed, and the step reports success"
                )

    def test_devices_of_another_kind_are_refused(self) -> None:
        """A device of another kind is refused by ``refers="device:KIND"`` or with a coded error."""
        names = (each for each in self._references() if each[1].metadata["refers"] == "device")
        reason = f"no parameter of {self.name} takes a device of any kind"
        for place, field, name in some(names, reason):
            for run, step in self._before(place):
                run.devices[name] = object()
                try:
                    step.kind.run(step.parameters, run)
                except Exception as error:
                    if deliberate(error):
                        continue
                    raise AssertionError(
                        f"{self.name} ends in {type(error).__name__} where {key_of(field.name)} "
                        'names a device of another kind: declare refers="device:KIND", or raise '
                        "a coded error"
                    ) from error

    def _references(self) -> Iterator[tuple[Place, attrs.Attribute[Any], str]]:
        """Yield the parameters that name a device, capture or output, with the names."""
        for place in self._places():
            step = self._parse(place.scenario).steps[place.keys[1]]
            for field, name in named_values(step.parameters):
                if field.metadata.get("refers", "file") != "file":
                    yield place, field, name


def _was_used(broken: Any) -> bool:
    used: bool = object.__getattribute__(broken, "used")
    return used


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
