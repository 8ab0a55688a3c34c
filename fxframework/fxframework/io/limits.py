"""Limits: bounds on memory, time and output. Each one is an option."""

from __future__ import annotations

from typing import Any

import attrs

__all__ = ["MOST", "Limits"]

MOST = (1 << 63) - 1
"""The greatest limit: kernels count with signed numbers of 64 bits."""


def _limit(default: Any, doc: str, *, type: type = int) -> Any:
    bounds = [attrs.validators.ge(0)]
    if type is int:
        bounds.append(attrs.validators.le(MOST))
    bound = attrs.validators.optional(attrs.validators.and_(*bounds))
    return attrs.field(default=default, metadata={"help": doc, "type": type}, validator=bound)


@attrs.frozen(kw_only=True)
class Limits:
    """Limits for reading a capture, settable with ``-o NAME=VALUE``; 0 means no limit.

    Independently of these limits, a size declared in a file is never allocated unchecked; the
    limits bound the resources of *valid* files. Raises ValueError for a negative limit, and for one
    beyond ``MOST``.
    """

    max_string: int = _limit(
        1 << 20,
        "bytes of one string that tables keep; longer ones are cut, and reported",
    )
    max_record: int = _limit(
        1 << 30, "bytes of one record; longer ones are kept as `damaged`, and reported"
    )
    max_depth: int = _limit(1 << 16, "greatest nesting depth; deeper slices are kept at this depth")
    max_memory: int = _limit(
        0,
        "bytes that whole tables, and the work as a whole, may take beyond 64 MB; on the command "
        "line 0 stands for 2 GB and 16 times the input",
    )
    max_time: float = _limit(
        0.0, "seconds that the work may take, from when the input is opened", type=float
    )
    max_output: int | None = _limit(
        None, "bytes of output; by default 256 MiB and 256 times the input"
    )
    max_unpacked: int = _limit(1 << 36, "bytes that a compressed, piped or remote input may have")
    max_claimed: int = _limit(
        1 << 28,
        "bytes that a records file may stand for, beyond 64 times its own size: padding is only "
        "claimed, not spelled out",
    )
    max_findings: int = _limit(1000, "findings listed per code; all are counted")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the option names, in order."""
        return tuple(field.name for field in attrs.fields(cls))
