"""Registration of the steps that every scenario can use."""

from __future__ import annotations

from collections.abc import Iterable

from fxframework import hookimpl
from fxframework.registry import StepKind, lazy, lazy_type

STEPS = (
    ("capture.decode", "Read an output, or a device's image, as a capture.", "decode"),
    ("capture.expect", "Say what a capture holds; nothing unexpected may be found.", "expect"),
    ("capture.export", "Put a capture into another form, as an output.", "export"),
    ("golden.compare", "An output is the same, byte for byte, as its golden file.", "compare"),
)


@hookimpl
def fx_step_kinds() -> Iterable[StepKind]:
    """Return the built-in steps."""
    return [
        StepKind(
            name=name,
            title=title,
            parameters=lazy_type(f"fxframework.replay.steps:{function.capitalize()}"),
            run=lazy(f"fxframework.replay.steps:{function}"),
        )
        for name, title, function in STEPS
    ]
