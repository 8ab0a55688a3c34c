"""Names of what an analysis of calls can show, sort by and count. Imports nothing heavy."""

from __future__ import annotations

from fxframework.errors import UsageError, did_you_mean

__all__ = ["FIELDS", "FIGURES", "RECURSIONS", "SORTS", "check_figure"]

FIGURES = ("none", "count", "min", "med", "90p", "99p", "max", "sum", "self")
"""What a label or a colour of a graph shows; ``self`` is ours, the others llvm-xray's."""
SORTS = ("funcid", "count", "min", "med", "90p", "99p", "max", "sum", "self", "func")
"""What an account is sorted by: the number of a function, its name (``func``), or a figure."""
FIELDS = {"med": "median", "90p": "p90", "99p": "p99", "self": "own"}
"""Fields of ``analysis.spread.Spread`` by the names of figures, where the names differ."""
RECURSIONS = ("all", "only", "outermost")
"""Which calls an account counts: every one; those that take part in a recursion; and every one, but
in the sum the outermost of a function alone, so that it is no longer than the time that passed."""


def check_figure(name: str, what: str) -> str:
    """The name of a figure. Raises UsageError for an unknown one."""
    if name not in FIGURES:
        raise UsageError(
            f"{what} cannot show {name!r}{did_you_mean(name, FIGURES)}",
            remedy=f"there are {', '.join(FIGURES)}",
        )
    return name
