"""LLVM XRay traces, read and written: the flight data recorder's versions 1 to 5, and basic mode.

The names below load when they are first used:

- ``FdrWriter`` and ``BasicWriter`` record calls of a program of your own; ``log_of`` makes a trace
  of the memory of a recorder that was stopped, of which ``slot_bytes`` says the size.
- ``RecordDecoder`` and ``RecordEncoder`` turn bytes into records and back, one at a time.
- ``InstrumentationMap`` and ``read_map`` name functions; ``demangle`` makes names readable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fxframework.kit.lazy import lazy_names

if TYPE_CHECKING:
    from fx_xray.read.decoder import RecordDecoder
    from fx_xray.read.instr_map import InstrumentationMap, demangle, read_map
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fx_xray.read.decoder": "RecordDecoder",
        "fx_xray.read.instr_map": "InstrumentationMap demangle read_map",
        "fx_xray.write.basic_recorder": "BasicWriter",
        "fx_xray.write.encoder": "RecordEncoder",
        "fx_xray.write.flight_recorder": "FdrWriter log_of slot_bytes",
    },
)
