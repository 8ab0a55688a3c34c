"""Registration of the steps that every scenario can use."""

from __future__ import annotations

from collections.abc import Iterable

from fxframework import hookimpl
from fxframework.registry import StepKind, step_kinds

STEPS = {
    "capture.decode": "Read an output, or a device's image, as a capture.",
    "capture.expect": "Say what a capture holds; nothing unexpected may be found.",
    "capture.export": "Put a capture into another form, as an output.",
    "golden.compare": "An output is the same, byte for byte, as its golden file.",
}


@hookimpl
def fx_step_kinds() -> Iterable[StepKind]:
    """Return the built-in steps."""
    return step_kinds("fxframework.replay.steps", STEPS)
