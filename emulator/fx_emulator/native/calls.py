"""Functions that the target gives a native program: how they are called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

import attrs

__all__ = ["Blocked", "Call", "RefusedError", "Table"]

_MASK = (1 << 64) - 1

Table = dict[str, Callable[..., int | None]]
"""Functions by name: ``function(machine, *arguments)``, of integers."""


class RefusedError(Exception):
    """A call fails: it returns ``status``."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


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
    def of(cls, name: str, function: Callable[..., Any], *, bare: bool = True) -> Call:
        """A Python function: it is given as many integers as it has parameters.

        One that is not ``bare`` is given the machine before them.
        """
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            parameters = {}.values()
        kinds = [each.kind for each in parameters]
        count = 6 if inspect.Parameter.VAR_POSITIONAL in kinds else len(kinds) - (not bare)
        return cls(name, count, function, bare)

    def __call__(self, machine: Any, arguments: list[int]) -> int:
        """Call it; RAX."""
        try:
            result = self.function(*arguments) if self.bare else self.function(machine, *arguments)
        except RefusedError as refused:
            result = refused.status
        return 0 if result is None else int(result) & _MASK
