"""Steps: parameters, inputs and results of the steps and devices of a scenario.

The parameters of a step or device are an attrs class, each field made with ``parameter``. Types
are those of TOML (bool, int, float, str, lists, tables of one type), ``Duration``, other such
classes, unions of classes that differ in their first field, and classes with a method
``from_toml``.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NewType, Protocol, TypeVar, runtime_checkable

import attrs

from fxframework.errors import BadCallError, UsageError, look_up
from fxframework.io.special import refuse_special

T = TypeVar("T")
Duration = NewType("Duration", int)
"""Nanoseconds; in a scenario an integer, or a text such as ``"1.5ms"``."""
Status = Literal["ok", "failed", "skipped"]
NAMES = ("device", "capture", "output", "input", "file")
"""What a text can name; an ``input`` is an output or a device, a ``file`` an existing file."""
OUTSIDE = (
    "move the file into the folder, or trust the scenario: --allow-outside on the command line, "
    "allow_outside=True in Python"
)
"""The remedy for a file outside of the scenario's folder."""
REPORT = "report.json"
"""The report beside the outputs, without durations, so that it is reproducible."""
UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
NUMBER = r"[+-]?([0-9][0-9_]*(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?"
"""Of a duration. With longer exponents it would be exact, and take gigabytes."""
DURATION = re.compile(rf"(?P<number>{NUMBER})\s*(?P<unit>{'|'.join(UNITS)})")


def nanoseconds(value: object) -> Duration:
    """Convert an integer or a text such as ``2ms`` to nanoseconds. Raises ValueError for others."""
    if type(value) is int:
        return Duration(value)
    match = DURATION.fullmatch(value.lstrip()) if isinstance(value, str) else None
    if match is not None:
        with contextlib.suppress(ValueError):  # of a number such as 1__0
            exact_ns = Fraction(match["number"]) * UNITS[match["unit"]]
            if exact_ns.denominator == 1:
                return Duration(exact_ns.numerator)
    raise ValueError(f'a duration is "2ms", "1.5s" or whole nanoseconds, not {value!r}')


def output_fault(name: str) -> str:
    """Return why an output cannot have this name; the empty string if it can."""
    path = PurePosixPath(name)
    is_plain = str(path) == name and "\\" not in name and "\0" not in name
    leads_out = path.is_absolute() or not {".", ".."}.isdisjoint(name.split("/"))
    if leads_out or not is_plain:
        return f"an output is named by a path within the output folder, not {name!r}"
    if name == REPORT:
        return f"{name!r} is the name of the report beside the outputs"
    return ""


def file_fault(name: str, folder: Path | None) -> str:
    """Return why a scenario may not name this file; the empty string if it may.

    A file is in the folder of the scenario (None: the current one), also once links are followed.
    """
    if "\0" in name:
        return f"{name!r} is not a file name"
    real_folder = os.path.realpath(folder or ".")
    path = os.path.realpath(os.path.join(real_folder, name))  # noqa: PTH118 (pathlib raises for loops)
    if Path(path).is_relative_to(real_folder):
        return ""
    return f"{name!r} is outside of the scenario's folder"


def parameter(
    default: Any = attrs.NOTHING,
    *,
    help: str,  # noqa: A002 (the name that options have)
    factory: Callable[[], Any] | None = None,
    refers: str | None = None,
    makes: Literal["capture", "output"] | None = None,
    least: int | None = None,
    most: int | None = None,
    below: str | None = None,
    rounds: bool = False,
    choices: Iterable[str] = (),
) -> Any:
    """Return a field of a parameter class; in a scenario its name has no trailing ``_``.

    ``refers`` and ``makes`` say what the text names, so that a scenario can be checked before it
    runs. ``refers`` is ``device``, ``device:KIND`` (with several kinds separated by commas),
    ``capture``, ``output``, ``input`` (an output or a device) or ``file`` (relative to the
    scenario). ``least`` and ``most`` bound a number, or each number of a list. ``below`` names a
    parameter of the target that the number must be less than. With ``rounds``, a text must become
    a number when ``{NAME}`` is replaced by the round of a loop. ``choices`` lists the valid texts.
    Raises BadCallError for any other ``refers``.
    """
    if refers is not None:
        referred(refers)
    facts: dict[str, Any] = {
        "help": help,
        "refers": refers,
        "makes": makes,
        "least": least,
        "most": most,
        "below": below,
        "rounds": rounds or None,
        "choices": tuple(choices) or None,
    }
    metadata = {name: value for name, value in facts.items() if value is not None}
    if factory is not None:
        return attrs.field(factory=factory, kw_only=True, metadata=metadata)
    return attrs.field(default=default, kw_only=True, metadata=metadata)


def referred(refers: str) -> tuple[str, tuple[str, ...]]:
    """Parse ``refers`` of a parameter: the noun, and the accepted kinds of device, () for any.

    Raises BadCallError for an invalid one.
    """
    noun, colon, kind_list = refers.partition(":")
    kinds: tuple[str, ...] = ()
    is_valid = noun in NAMES
    if colon:
        kinds = tuple(kind.strip() for kind in kind_list.split(","))
        is_valid = noun == "device" and all(kinds)
    if not is_valid:
        raise BadCallError(
            f"a parameter cannot refer to {refers!r}",
            remedy=f"it can be {', '.join(NAMES)}, or device:KIND,KIND",
        )
    return noun, kinds


def table_schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    """Return the JSON schema of a TOML table that has these keys only."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = list(required)
    schema["additionalProperties"] = False
    return schema


@runtime_checkable
class Image(Protocol):
    """A device whose bytes can be stored as an output, read as a capture and saved as a file."""

    def image(self) -> bytes:
        """Return its contents as a file of its format, without changing the device."""


@attrs.frozen
class Outcome:
    """The result of a step."""

    status: Status = "ok"
    """Whether the step did what it should."""
    message: str = ""
    """One line: why it failed or was skipped, or what it did."""
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    """Its results as JSON values; equal seeds give equal facts."""

    @classmethod
    def ok(cls, message: str = "", **facts: Any) -> Outcome:
        """Return the outcome of a step that succeeded."""
        return cls("ok", message, facts)

    @classmethod
    def failed(cls, message: str, **facts: Any) -> Outcome:
        """Return the outcome of a failed expectation; the scenario continues."""
        return cls("failed", message, facts)

    @classmethod
    def skipped(cls, message: str, **facts: Any) -> Outcome:
        """Return the outcome of a step that had nothing to do."""
        return cls("skipped", message, facts)


@attrs.define(kw_only=True, eq=False, repr=False, slots=False)
class Run:
    """A running scenario, which is passed to each step with its parameters."""

    name: str
    """The scenario's name."""
    host: Any
    """The Host, which has the readers, writers and exporters."""
    seed: int
    """What its random numbers follow from."""
    own_seed: bool = True
    """Whether the seed is the scenario's own, for which its golden files are made."""
    folder: Path | None = None
    """The folder of the scenario; None if it is not in a file."""
    golden: Path | None = None
    """The default folder of its golden files."""
    update_golden: bool = False
    """Whether to write golden files instead of comparing them."""
    allow_outside: bool = False
    """Whether the scenario may name files outside of its folder."""
    _on_output: Callable[[str, bytes], None] | None = None
    target: Any = attrs.field(default=None, init=False)
    """The device of kind ``target``; None if there is none."""
    devices: dict[str, Any] = attrs.field(factory=dict, init=False)
    """Devices by name."""
    captures: dict[str, Any] = attrs.field(factory=dict, init=False)
    """Captures (``fxframework.model.capture.Capture``) by name."""
    outputs: dict[str, bytes] = attrs.field(factory=dict, init=False)
    """Outputs by name."""
    findings: dict[str, set[str]] = attrs.field(factory=dict, init=False)
    """Codes of findings that the scenario expects, by name of the capture."""
    _shared: dict[object, Any] = attrs.field(factory=dict, init=False)

    def rng(self, label: str = "") -> random.Random:
        """Return a random number generator seeded with the seed and a label."""
        return random.Random(f"{self.seed}/{label}")  # noqa: S311 (reproducible)

    def device(self, name: str) -> Any:
        """Return a device by name. Raises UsageError if there is none."""
        return look_up(self.devices, name, "device")

    def capture(self, name: str) -> Any:
        """Return a decoded capture by name. Raises UsageError if there is none."""
        return look_up(self.captures, name, "capture")

    def output(self, name: str) -> bytes:
        """Return an output by name. Raises UsageError if there is none."""
        return look_up(self.outputs, name, "output")

    def bytes_of(self, name: str) -> bytes:
        """Return the bytes of an output or a device.

        A plugin's device returns them from its method ``image() -> bytes``; for devices of the
        target, ``target.snapshot(name)`` does. Raises UsageError if there is neither.
        """
        if name in self.outputs:
            return self.outputs[name]
        device = look_up({**self.outputs, **self.devices}, name, "output or device")
        if isinstance(device, Image):
            return bytes(device.image())
        snapshot = getattr(self.target, "snapshot", None)
        if snapshot is None:
            raise UsageError(
                f"device {name!r} has no bytes to read",
                remedy="its class needs a method image() that returns them",
            )
        return bytes(snapshot(name))

    def put(self, name: str, data: bytes) -> None:
        """Store an output. Raises UsageError if its name leads out of the output folder."""
        fault = output_fault(name)
        if fault:
            raise UsageError(fault)
        contents = bytes(data)
        if self._on_output is not None:
            self._on_output(name, contents)
        self.outputs[name] = contents

    def file(self, path: str) -> Path:
        """Return the path of a file that the scenario names, relative to the scenario's folder.

        Raises UsageError for a file outside of this folder, unless ``allow_outside``, and
        UnreadableError for a pipe, socket or device, for which the replay might wait.
        """
        if not self.allow_outside:
            fault = file_fault(path, self.folder)
            if fault:
                raise UsageError(fault, remedy=OUTSIDE)
        file = Path(path)
        if self.folder is not None:
            file = self.folder / path
        refuse_special(file, "a scenario")
        return file

    def shared(self, key: object, make: Callable[[], T]) -> T:
        """Return an object that several steps share, making it on first use."""
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]  # type: ignore[no-any-return]

    def begin(self, key: object, make: Callable[[], T], what: str) -> T:
        """Make a shared object. Raises UsageError, worded by ``what``, if it exists already."""
        if key in self._shared:
            raise UsageError(f"{what} already")
        return self.shared(key, make)
