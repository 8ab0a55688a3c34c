"""The base of the contracts of steps and devices: scenarios that use them, valid and invalid."""

from __future__ import annotations

import contextlib
import copy
import datetime as dt
import functools
import importlib
import json
import operator
import random
import re
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs

from fxframework.host import Host, default_host
from fxframework.kit.steps import Run
from fxframework.replay.report import Report
from fxframework.replay.runner import opened, replay
from fxframework.replay.scenario import Scenario, ScenarioError, parse, parse_document
from fxframework.replay.schema import json_schema
from fxframework.replay.values import class_of_parameters, key_of
from fxframework.testing.contracts.base import Contract, module_of
from fxframework.testing.contracts.checks import check_same, deliberate, skip, some

MISFIT = dt.date(1970, 1, 1)
"""A TOML value that is invalid for every type of parameter."""
UNKNOWN = "no_such_parameter"


@attrs.frozen
class Place:
    """A use of the step or device under test in a scenario."""

    scenario: str
    """The TOML text."""
    path: str
    """Its path, such as ``step[2]`` or ``device.ring``."""
    keys: tuple[Any, ...]
    """The keys that lead to its table in the document."""


class ScenarioContract(Contract):
    """Contract of steps and devices. Provide ``plugin``, ``name`` and ``scenarios()``."""

    name: ClassVar[str]
    """The kind of step or device, as a scenario names it."""
    plugins: ClassVar[tuple[str, ...]] = ()
    """Modules of further plugins that the scenarios need, in addition to the installed ones."""

    def scenarios(self) -> Iterable[str]:
        """Return scenarios (TOML) that use it, and in which all steps succeed.

        The default is the ``sample`` of the descriptor.
        """
        sample = self.kind.sample
        if sample is None:
            skip(
                f"{self.noun} {self.name} has no scenario to test: add a `sample` to its "
                "descriptor, or override `scenarios()`"
            )
        yield sample()

    def refused(self) -> Iterable[tuple[Mapping[str, Any], str]]:
        """Return parameters that must be refused before anything runs, with a word of the message.

        They replace parameters of the first scenario.
        """
        return ()

    # --- What is under test ------------------------------------------------------------------

    @property
    def kind(self) -> Any:
        """The descriptor under test: a StepKind or a DeviceKind."""
        return self.item

    def _host(self) -> Host:
        """Return a host with the plugin under test, ``plugins``, and the installed plugins."""
        return _host_with(module_of(self.plugin), self._plugin_name, self.plugins)

    def _fields(self) -> dict[str, attrs.Attribute[Any]]:
        """Return the parameters by key."""
        parameter_class: Any = attrs.resolve_types(class_of_parameters(self.kind))
        return {key_of(field.name): field for field in attrs.fields(parameter_class)}

    def _places(self) -> list[Place]:
        """Return each use in each scenario; at least one per scenario."""
        places: list[Place] = []
        for text in self.scenarios():
            uses = list(self._uses(text))
            assert uses, f"a scenario of {self.name} has no {self.noun} of this kind:\n{text}"
            places += uses
        assert places, "scenarios() gives none"
        return places

    def _uses(self, text: str) -> Iterator[Place]:
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise AssertionError(f"a scenario of {self.name} is not valid TOML: {error}") from None
        # Steps are an array in the document, and devices a table by name.
        tables: list[tuple[Any, Any]]
        if self.noun == "step":
            path = "step[{}]"
            kind = "do"
            tables = list(enumerate(document.get("step", ())))
        else:
            path = "device.{}"
            kind = "kind"
            tables = list(document.get("device", {}).items())
        for key, table in tables:
            if table.get(kind) == self.name:
                yield Place(text, path.format(key), (self.noun, key))
        if self.noun == "device" and self.name == "target" in document:
            yield Place(text, "target", ("target",))

    def _parse(self, text: str) -> Scenario:
        try:
            return parse(text, self._host())
        except ScenarioError as error:
            raise AssertionError(f"a scenario of {self.name} is refused: {error}") from error

    def _run(self, text: str) -> Report:
        scenario = self._parse(text)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            report = replay(scenario, host=self._host())
            left_files = sorted(path.name for path in Path().iterdir())
        assert not left_files, (
            f"{self.name} writes files of its own: {', '.join(left_files)}; use run.put()"
        )
        return report

    @contextlib.contextmanager
    def _running(self, scenario: Scenario) -> Iterator[Run]:
        """Yield a run with open devices, before its first step."""
        run = Run(name=scenario.name, host=self._host(), seed=scenario.seed)
        with opened(scenario, run) as failures:
            for failure in failures:
                raise AssertionError(f"{failure.do} cannot be opened: {failure.message}")
            yield run

    def _edited(self, place: Place, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the document of a scenario with changed parameters."""
        document = tomllib.loads(place.scenario)
        edited_step = functools.reduce(operator.getitem, place.keys, document)
        edited_step.update(copy.deepcopy(changes))
        return document

    def _faults(self, document: dict[str, Any]) -> dict[str, str]:
        """Return the messages of a scenario's faults by path; empty if it is valid."""
        try:
            parse_document(document, self._host())
        except ScenarioError as error:
            return {fault.path: fault.message for fault in error.faults}
        except Exception as error:
            what = f"end in {type(error).__name__}, not in a ScenarioError: {error}"
            raise AssertionError(f"parameters of {self.name} {what}") from error
        return {}

    # --- The descriptor ----------------------------------------------------------------------

    def test_parameters_are_documented(self) -> None:
        """Each parameter has a help text and a default within its bounds and choices."""
        for key, field in self._fields().items():
            notes = field.metadata
            what = f"parameter {key} of {self.name}"
            assert notes.get("help"), (
                f"{what} does not say what it is for: make it with "
                "fxframework.kit.steps.parameter(help=…)"
            )
            default = field.default
            choices = notes.get("choices")
            if isinstance(default, int | float) and not isinstance(default, bool):
                least = notes.get("least", default)
                most = notes.get("most", default)
                assert least <= default, f"{what}: its default {default} is below {least}"
                assert default <= most, f"{what}: its default {default} is above {most}"
            is_no_choice = choices and isinstance(default, str) and default not in choices
            assert not is_no_choice, f"{what}: its default {default!r} is not a choice"

    def test_schema_is_valid(self) -> None:
        """The JSON Schema for editors can be made, and every parameter has a type."""
        host = self._host()
        what = f"no JSON Schema of {self.name}"
        schema = json_schema(host)
        faults = [
            failure.error for failure in host.failures if failure.error.startswith(f"{what}: ")
        ]
        assert not faults, faults[0]
        try:
            json.dumps(schema, allow_nan=False)
        except ValueError as error:
            raise AssertionError(f"{what}: {error}") from error
        for key, field in self._fields().items():
            assert field.type is not None, f"parameter {key} of {self.name} has no type"

    # --- Running -----------------------------------------------------------------------------

    def test_scenarios_run(self) -> None:
        """All steps of all scenarios succeed, and no files are written."""
        for place in self._places():
            report = self._run(place.scenario)
            for step in report.steps:
                assert step.status == "ok", (
                    f"a scenario of {self.name}: {step.name} {step.status}: {step.message}"
                )

    def test_same_bytes_twice(self) -> None:
        """Equal seeds give equal outputs, messages and facts."""
        for place in self._places():
            state = random.getstate()
            try:
                random.seed(1)
                first_report = self._run(place.scenario)
                random.seed(2)
                second_report = self._run(place.scenario)
            finally:
                random.setstate(state)
            when = "when the scenario runs again with the same seed"
            what = f"{self.name}: outputs differ {when}; take chance from run.rng() and time from"
            first_outputs = dict(first_report.outputs)
            check_same(dict(second_report.outputs), first_outputs, f"{what} the target")
            first_steps = first_report.to_json(timing=False)["steps"]
            second_steps = second_report.to_json(timing=False)["steps"]
            check_same(second_steps, first_steps, f"{self.name}: reported results differ {when}")

    # --- Parameters --------------------------------------------------------------------------

    def test_wrong_parameters_are_refused_at_once(self) -> None:
        """Parameters of wrong types and an unknown parameter are refused in one error."""
        for place in self._places():
            wrong_values = {
                key: MISFIT for key, field in self._fields().items() if field.type is not Any
            }
            faults = self._faults(self._edited(place, {**wrong_values, UNKNOWN: 1}))
            for key in (*wrong_values, UNKNOWN):
                path = f"{place.path}.{key}"
                messages = [
                    message
                    for fault_path, message in faults.items()
                    if f"{fault_path}.".startswith(path)
                ]
                value_text = "a date" if key in wrong_values else "unknown, it"
                assert messages, (
                    f"parameter {key} of {self.name}: {value_text} is not refused together with "
                    f"the others; refused were {sorted(faults)}"
                )
                for message in messages:
                    is_python_error = re.match(r"[A-Z]\w*Error: |KeyError|AttributeError", message)
                    assert not is_python_error, (
                        f"parameter {key} of {self.name} is refused by {message!r}: raise "
                        "ValueError with a message for the user"
                    )

    def test_refused_parameters_say_why(self) -> None:
        """The parameters of refused() are refused before anything runs."""
        for changes, word in some(self.refused(), "refused() gives none"):
            edited_scenario = self._edited(self._places()[0], changes)
            faults = self._faults(edited_scenario)
            assert faults, f"{self.name} takes {dict(changes)}, which refused() gives"
            is_said = any(word in message for message in faults.values())
            assert is_said, f"{self.name} refuses {dict(changes)} without {word!r}: {faults}"

    def test_odd_values_end_in_coded_errors(self) -> None:
        """Boundary values give an outcome or a coded error."""
        for place in self._places()[:1]:
            for key, value in self._odd():
                document = self._edited(place, {key: value})
                try:
                    scenario = parse_document(document, self._host())
                except ScenarioError:
                    continue
                report = replay(scenario, host=self._host())
                for step in report.steps:
                    is_deliberate = step.error is None or deliberate(step.error)
                    assert is_deliberate, (
                        f"{self.name} with {key} = {value!r} ends in {step.message}: raise a coded "
                        "error, or refuse the parameter"
                    )

    def _odd(self) -> Iterator[tuple[str, Any]]:
        for key, field in self._fields().items():
            notes = field.metadata
            if {"refers", "makes", "choices"} & notes.keys():
                continue
            if field.type is int:
                yield key, notes.get("least", -1)
                if "most" in notes:
                    yield key, notes["most"]
            elif field.type is str:
                yield key, ""
            elif field.type == list[int]:
                yield from ((key, [value]) for value in (-1, 1 << 64, -(1 << 64)))


@functools.lru_cache(4)
def _host_with(module: Any, name: str, plugins: tuple[str, ...]) -> Host:
    """Return a host with a plugin, which is made once for the tests of a contract."""
    host = Host(discover=False)
    host.register(module, name=name, distribution="under test")
    own_names = {name, getattr(module, "__name__", "")}
    for other_module in dict.fromkeys([*plugins, *default_host().modules().values()]):
        if other_module not in own_names:
            host.register(
                importlib.import_module(other_module), name=other_module, distribution="installed"
            )
    return host
