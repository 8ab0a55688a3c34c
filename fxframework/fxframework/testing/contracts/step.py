"""The contract of steps."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs

from fxframework.errors import FxError
from fxframework.kit.steps import Outcome, Run
from fxframework.replay.scenario import Step
from fxframework.replay.values import key_of, named_values
from fxframework.testing.contracts.checks import check_json, check_same, deliberate, some
from fxframework.testing.contracts.scenario import Place, ScenarioContract

__all__ = ["StepContract"]


class BrokenUseError(FxError):
    """Raised by a device, capture or output that a test broke."""


class _Broken:
    """A device or capture whose every use fails, and is noted in a list."""

    def __init__(self, uses: list[str]) -> None:
        object.__setattr__(self, "uses", uses)

    def __getattribute__(self, name: str) -> Any:
        if name == "close":
            return lambda: None
        object.__getattribute__(self, "uses").append(name)
        raise BrokenUseError("broken by a test")


class _Outputs(dict[str, bytes]):
    """Outputs, one of which cannot be read."""

    def __init__(self, outputs: Mapping[str, bytes], broken: str, uses: list[str]) -> None:
        super().__init__(outputs)
        self._broken = broken
        self._uses = uses

    def __getitem__(self, name: str) -> bytes:
        if name == self._broken:
            self._uses.append(name)
            raise BrokenUseError("broken by a test")
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return an output, like ``[]``."""
        if name == self._broken:
            return self[name]
        return super().get(name, default)


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
            outcome = step.kind.run(step.parameters, run)
            is_outcome = outcome is None or isinstance(outcome, Outcome)
            assert is_outcome, f"{self.name} returns {outcome!r}, not an Outcome"
            if outcome is None:
                continue
            message = outcome.message
            status = outcome.status
            assert isinstance(message, str), f"{self.name}: its message is not a string"
            assert "\n" not in message, f"{self.name}: its message has several lines: {message!r}"
            is_known = status in {"ok", "failed", "skipped"}
            assert is_known, f"{self.name}: its status is {status!r}"
            check_json(dict(outcome.facts), f"{self.name}: its facts")

    def test_what_it_makes_is_named_by_parameters(self) -> None:
        """Outputs and captures are named by parameters with ``makes``.

        A scenario is checked by these before it runs, so that later steps can refer to them.
        """
        for run, step in self._before():
            names_by_noun: dict[str, Mapping[str, Any]] = {
                "output": run.outputs,
                "capture": run.captures,
            }
            names_before = {noun: set(names) for noun, names in names_by_noun.items()}
            step.kind.run(step.parameters, run)
            for noun, names in names_by_noun.items():
                named = named_values(step.parameters)
                promised_names = {
                    name for field, name in named if field.metadata.get("makes") == noun
                }
                for name in sorted({*names} - names_before[noun] - promised_names):
                    # A parameter may name a folder, whose outputs have its name before theirs.
                    is_in_folder = noun == "output" and any(
                        name.startswith(f"{folder_name}/") for folder_name in promised_names
                    )
                    assert is_in_folder, (
                        f"{self.name} makes the {noun} {name!r}, which no parameter names: "
                        f"declare one with parameter(makes={noun!r})"
                    )
                for name in sorted(promised_names):
                    is_made = name in names or any(
                        made_name.startswith(f"{name}/") for made_name in names
                    )
                    assert is_made, f"{self.name} does not make the {noun} {name!r} of a parameter"

    def test_parameters_are_left_as_they_were(self) -> None:
        """The step does not change its parameters, because a scenario may run again."""
        for run, step in self._before():
            parameters_before = copy.deepcopy(step.parameters)
            step.kind.run(step.parameters, run)
            assert step.parameters == parameters_before, (
                f"{self.name} changes its parameters: {parameters_before} became {step.parameters}"
            )

    def test_runs_do_not_disturb_each_other(self) -> None:
        """Two runs at once give the same outputs: no state is kept in the module."""
        place = self._places()[0]
        for run, step in self._before(place):
            for other_run, same_step in self._before(place):
                step.kind.run(step.parameters, run)
                same_step.kind.run(same_step.parameters, other_run)
                what = f"{self.name}: two runs at once give different outputs"
                check_same(dict(run.outputs), dict(other_run.outputs), what)

    # --- Faults ------------------------------------------------------------------------------

    def test_faults_of_what_it_uses_reach_the_report(self) -> None:
        """A step fails if a device, capture or output that it uses fails."""
        for place, field, name in some(self._references(), f"{self.name} refers to nothing"):
            for run, step in self._before(place):
                uses = _break(run, name)
                what = f"{name!r} (parameter {key_of(field.name)})"
                try:
                    outcome = step.kind.run(step.parameters, run)
                except FxError:
                    continue
                except Exception as error:
                    assert not uses, (
                        f"{self.name}: {what} fails with a coded error, and the step turns it into "
                        f"{type(error).__name__}: {error}"
                    )
                    raise
                is_swallowed = uses and (outcome is None or outcome.status != "failed")
                assert not is_swallowed, (
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
            scenario = self._parse(place.scenario)
            step = scenario.steps[place.keys[1]]
            for field, name in named_values(step.parameters):
                if field.metadata.get("refers", "file") != "file":
                    yield place, field, name


def _break(run: Run, name: str) -> list[str]:
    """Make every use of a device, capture or output fail; return the list that notes the uses."""
    uses: list[str] = []
    if name in run.outputs:
        run.outputs = _Outputs(run.outputs, name, uses)
    else:
        places: Any = run.captures if name in run.captures else run.devices
        places[name] = _Broken(uses)
    return uses
