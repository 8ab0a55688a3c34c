"""The calling interface of functions that the target provides to native programs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

import attrs

_MASK = (1 << 64) - 1
_IN_REGISTERS = 6
"""Number of arguments that are passed in registers."""

Table = dict[str, Callable[..., int | None]]
"""Functions by name: ``function(machine, *arguments)``, of integers."""


class RefusedError(Exception):
    """Raised by a call that fails and returns ``status``."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Blocked(Exception):  # noqa: N818 (not an error: the call returns later)
    """Raised by a call that sleeps, yields or ends its thread; it then returns ``result``."""

    def __init__(
        self, action: Literal["sleep", "yield", "exit"], result: int = 0, *, ns: int = 0
    ) -> None:
        super().__init__(action)
        self.action = action
        self.result = result
        self.ns = ns


@attrs.frozen
class Call:
    """A function of the target: ``function(machine, *arguments)`` returns RAX, or None for 0."""

    name: str
    count: int
    """Number of integer arguments."""
    function: Callable[..., int | None]
    bare: bool = False
    """Whether the function takes its arguments only, without the machine."""
    skip: int = 0
    """Number of leading arguments that the function does not take."""

    @classmethod
    def of(
        cls, name: str, function: Callable[..., Any], *, bare: bool = True, skip: int = 0
    ) -> Call:
        """Wrap a Python function, which gets as many integers as it has parameters.

        A function that is not ``bare`` gets the machine as first argument.
        """
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            parameters = {}.values()
        kinds = [parameter.kind for parameter in parameters]
        if inspect.Parameter.VAR_POSITIONAL in kinds:
            count = _IN_REGISTERS
        elif bare:
            count = len(kinds)
        else:
            count = len(kinds) - 1  # the machine
        return cls(name, count, function, bare, skip)

    def __call__(self, machine: Any, arguments: list[int]) -> int:
        """Call the function with the first of these arguments. Return RAX."""
        taken: list[Any] = list(arguments[self.skip : self.skip + self.count])
        if not self.bare:
            taken.insert(0, machine)
        try:
            result = self.function(*taken)
        except RefusedError as refused:
            result = refused.status
        if result is None:
            return 0
        return int(result) & _MASK
