"""Texts of ftrace keep the contract of readers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fxframework.testing import ReaderContract, Sample

FILES = Path(__file__).parent / "files"
LOST = b"""# tracer: nop
#           TASK-PID   CPU#  |||||  TIMESTAMP  FUNCTION
CPU:1 [LOST 12 EVENTS]
          <idle>-0     [001] d.h1.    2.000001: irq_handler_entry: irq=29 name=eth0
          <idle>-0     [001] d.h1.    2.000009: irq_handler_exit: irq=29 ret=handled
"""


class TestReader(ReaderContract):
    plugin = "fx_ftrace.plugin"
    format = "ftrace"
    examples = 10
    golden = Path(__file__).parent / "golden"

    def samples(self) -> Iterable[Sample]:
        yield Sample("lost.ftrace", LOST, sound=False)
        for path in sorted(FILES.iterdir()):
            yield Sample(path.name, path.read_bytes())
