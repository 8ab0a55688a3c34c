"""Fuchsia Inspect VMOs, versions 0 to 2: reading and writing of files, and of live memory.

The names below load at first use:

- ``Inspector`` keeps a tree of nodes and values in a VMO.
- ``Snapshot`` takes a consistent copy of a VMO that a program is changing; ``MappedFile`` maps a
  file as the memory to copy from.
- ``RecordDecoder`` and ``RecordEncoder`` convert bytes to records and back, one block at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fxframework.kit.lazy import lazy_names

if TYPE_CHECKING:
    from fx_inspect.read.decoder import RecordDecoder
    from fx_inspect.read.snapshot import MappedFile, Snapshot
    from fx_inspect.write.encoder import RecordEncoder
    from fx_inspect.write.writer import Inspector

__all__ = [
    "Inspector",
    "MappedFile",
    "RecordDecoder",
    "RecordEncoder",
    "Snapshot",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fx_inspect.read.decoder": "RecordDecoder",
        "fx_inspect.read.snapshot": "MappedFile Snapshot",
        "fx_inspect.write.encoder": "RecordEncoder",
        "fx_inspect.write.writer": "Inspector",
    },
)
