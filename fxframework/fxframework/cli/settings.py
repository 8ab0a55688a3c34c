"""Settings: the values of the global options."""

from __future__ import annotations

import contextlib
from typing import Self

import attrs

from fxframework.errors import UsageError
from fxframework.kit.steps import nanoseconds


@attrs.frozen
class Moment:
    """A time in nanoseconds: after the capture's first time, or, if ``absolute``, of its clock."""

    ns: int
    absolute: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``2s``, ``1.5ms``, ``300us``, ``20ns``, ``17`` (nanoseconds) or ``@NS``.

        Raises UsageError for anything else.
        """
        number = text.removeprefix("@")
        absolute = number != text
        if absolute or not number.endswith("s"):
            number += "ns"
        with contextlib.suppress(ValueError):
            ns = nanoseconds(number)
            if ns >= 0 or absolute:
                return cls(ns, absolute)
        raise UsageError(
            f"invalid time {text!r}",
            remedy="give 2s, 1.5ms, 300us, 20ns, 17 (nanoseconds), or @NS of the clock",
        )


@attrs.define
class Settings:
    """The values of the global options."""

    format: str | None = None
    options: dict[str, str] = attrs.field(factory=dict)
    since: Moment | None = None
    until: Moment | None = None
    json: bool = False
    strict: bool = False
    verbose: int = 0
    quiet: bool = False
    color: str = "auto"


def key_value(text: str) -> tuple[str, str]:
    """Split ``KEY=VALUE``, as ``-o`` takes it. Raises UsageError for anything else."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise UsageError(
            f"invalid option {text!r}: -o takes KEY=VALUE",
            remedy="as in -o max_findings=20; outputs are named with --out or --html, or last",
        )
    return key.strip(), value
