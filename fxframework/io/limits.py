"""Limits: what keeps memory and time in proportion to the input. Every one is an option."""

from __future__ import annotations

import attrs

__all__ = ["Limits"]


@attrs.frozen(kw_only=True)
class Limits:
    """Limits of a reading, settable with ``-o NAME=VALUE``; 0 means no limit.

    Declared sizes in a file never drive an allocation, whatever these say: they bound what a
    *sound* file may ask for.
    """

    max_string: int = 1 << 20
    """Bytes of one string that tables keep; a longer one is cut there, which is reported."""
    max_record: int = 1 << 30
    """Bytes of one record; a longer one is kept as `damaged`, which is reported."""
    max_depth: int = 1 << 16
    """Greatest nesting depth told apart; deeper slices are kept at this depth."""
    max_memory: int = 0
    """Bytes that the columns of whole tables may take; batches stay under it by themselves."""
    max_unpacked: int = 1 << 36
    """Bytes that a gzip or piped input may unpack to."""
    max_findings: int = 1000
    """Findings listed per code; all are counted."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The option names, in order."""
        return tuple(field.name for field in attrs.fields(cls))
