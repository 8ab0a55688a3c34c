"""Limits: what keeps memory and time in proportion to the input. Every one is an option."""

from __future__ import annotations

from typing import Any

import attrs

__all__ = ["Limits"]


def _limit(default: int, doc: str) -> Any:
    return attrs.field(default=default, metadata={"help": doc}, validator=attrs.validators.ge(0))


@attrs.frozen(kw_only=True)
class Limits:
    """Limits of a reading, settable with ``-o NAME=VALUE``; 0 means no limit.

    Declared sizes in a file never drive an allocation, whatever these say: they bound what a
    *sound* file may ask for. ValueError for a negative one.
    """

    max_string: int = _limit(
        1 << 20,
        "bytes of one string that tables keep; a longer one is cut there, which is reported",
    )
    max_record: int = _limit(
        1 << 30, "bytes of one record; a longer one is kept as `damaged`, which is reported"
    )
    max_depth: int = _limit(
        1 << 16, "greatest nesting depth told apart; deeper slices are kept at this depth"
    )
    max_memory: int = _limit(
        0, "bytes that the columns of whole tables may take; batches stay under it by themselves"
    )
    max_unpacked: int = _limit(1 << 36, "bytes that a gzip or piped input may unpack to")
    max_claimed: int = _limit(
        1 << 28,
        "bytes that a records file may stand for, beyond 64 times its own size: padding is only "
        "claimed, not spelled out",
    )
    max_findings: int = _limit(1000, "findings listed per code; all are counted")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The option names, in order."""
        return tuple(field.name for field in attrs.fields(cls))
