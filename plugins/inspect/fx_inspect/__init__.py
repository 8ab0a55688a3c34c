"""Fuchsia Inspect VMOs, versions 0 to 2, read and written: files, and memory that is being changed.

The names below load when they are first used:

- ``Inspector`` keeps a tree of nodes and values in a VMO.
- ``Snapshot`` takes a consistent copy of a VMO that a program is changing; ``MappedFile`` is a file
  as memory to take it of.
- ``RecordDecoder`` and ``RecordEncoder`` turn bytes into records and back, one block at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

_MODULES = {
    "Inspector": "fx_inspect.write.writer",
    "MappedFile": "fx_inspect.read.snapshot",
    "RecordDecoder": "fx_inspect.read.decoder",
    "RecordEncoder": "fx_inspect.write.encoder",
    "Snapshot": "fx_inspect.read.snapshot",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
