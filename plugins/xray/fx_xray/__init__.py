"""LLVM XRay traces, read and written: the flight data recorder's versions 1 to 5, and basic mode.

The names below load when they are first used:

- ``FdrWriter`` and ``BasicWriter`` record calls of a program of your own; ``log_of`` makes a trace
  of the memory of a recorder that was stopped, of which ``slot_bytes`` says the size.
- ``RecordDecoder`` and ``RecordEncoder`` turn bytes into records and back, one at a time.
- ``InstrumentationMap`` and ``read_map`` name functions; ``demangle`` makes names readable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import fxframework  # noqa: F401 (it decides first whether kernels run compiled)

if TYPE_CHECKING:
    from fx_xray.read.decoder import RecordDecoder
    from fx_xray.read.demangling import demangle
    from fx_xray.read.instr_map import InstrumentationMap, read_map
    from fx_xray.write.basic_recorder import BasicWriter
    from fx_xray.write.encoder import RecordEncoder
    from fx_xray.write.flight_recorder import FdrWriter, log_of, slot_bytes

__all__ = [
    "BasicWriter",
    "FdrWriter",
    "InstrumentationMap",
    "RecordDecoder",
    "RecordEncoder",
    "demangle",
    "log_of",
    "read_map",
    "slot_bytes",
]

_MODULES = {
    "BasicWriter": "fx_xray.write.basic_recorder",
    "FdrWriter": "fx_xray.write.flight_recorder",
    "InstrumentationMap": "fx_xray.read.instr_map",
    "RecordDecoder": "fx_xray.read.decoder",
    "RecordEncoder": "fx_xray.write.encoder",
    "demangle": "fx_xray.read.demangling",
    "log_of": "fx_xray.write.flight_recorder",
    "read_map": "fx_xray.read.instr_map",
    "slot_bytes": "fx_xray.write.flight_recorder",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
