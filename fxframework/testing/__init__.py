"""The public test kit for those who write plugins. Needs pytest and hypothesis.

Subclass ``ReaderContract``, ``WriterContract`` or ``ExporterContract`` in a test module of yours,
give samples, and pytest collects the tests that every bundled plugin passes too. ``strategies``
makes the damaged and made-up inputs that they use, for tests of your own.
"""

from __future__ import annotations

from fxframework.testing.contracts import (
    FOREIGN,
    Contract,
    ExporterContract,
    ReaderContract,
    Sample,
    WriterContract,
    open_bytes,
)

__all__ = [
    "FOREIGN",
    "Contract",
    "ExporterContract",
    "ReaderContract",
    "Sample",
    "WriterContract",
    "open_bytes",
]
