"""Names of what an analysis of calls can show, sort by and count. Imports nothing heavy."""

from __future__ import annotations

__all__ = ["FIELDS", "FIGURES", "RECURSIONS", "SORTS"]

FIGURES = ("none", "count", "min", "med", "90p", "99p", "max", "sum", "self")
"""What a label or a colour of a graph shows; ``self`` is ours, the others llvm-xray's."""
SORTS = ("funcid", "count", "min", "med", "90p", "99p", "max", "sum", "self", "func")
"""What an account is sorted by: the number of a function, its name (``func``), or a figure."""
FIELDS = {"med": "median", "90p": "p90", "99p": "p99", "self": "own"}
"""Fields of ``analysis.spread.Spread`` by the names of figures, where the names differ."""
RECURSIONS = ("all", "only", "outermost")
"""Which calls an account counts: every one; those that take part in a recursion; and every one, but
in the sum the outermost of a function alone, so that it is no longer than the time that passed."""
