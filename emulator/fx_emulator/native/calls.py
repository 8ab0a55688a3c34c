"""Functions that the target gives a native program: how they are called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

import attrs

__all__ = ["Blocked", "Call"]

_MASK = (1 << 64) - 1


class Blocked(Exception):  # noqa: N818 (not an error: the thread does something else first)
    """The thread that called sleeps, gives way or ends; then the call returns ``result``."""

    def __init__(
        self, action: Literal["sleep", "yield", "exit"], result: int = 0, *, ns: int = 0
    ) -> None:
        super().__init__(action)
        self.action = action
        self.result = result
        self.ns = ns


@attrs.frozen
class Call:
    """A function of the target: ``function(machine, *arguments)`` gives RAX, or None for 0."""

    name: str
    count: int
    """Integer arguments that it takes."""
    function: Callable[..., int | None]
    bare: bool = False
    """Whether it is given its arguments only."""

    @classmethod
    def of(cls, name: str, function: Callable[..., Any]) -> Call:
        """A Python function of a test: it is given as many integers as it has parameters."""
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            parameters = {}.values()
        variable = inspect.Parameter.VAR_POSITIONAL
        count = 6 if any(each.kind is variable for each in parameters) else len(parameters)
        return cls(name, count, function, bare=True)

    def __call__(self, machine: Any, arguments: list[int]) -> int:
        """Call it; RAX."""
        result = self.function(*arguments) if self.bare else self.function(machine, *arguments)
        return 0 if result is None else int(result) & _MASK
