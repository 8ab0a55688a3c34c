"""Names of figures, sort keys and recursion modes of call analyses. Imports nothing heavy."""

from __future__ import annotations

FIGURES = ("none", "count", "min", "med", "90p", "99p", "max", "sum", "self")
"""Figures that labels and colours of a graph can show: those of llvm-xray, and ``self``."""
SORTS = (
    "funcid", "count", "min", "med", "90p", "99p", "max", "sum", "self", "deviation", "func"
)  # fmt: skip
"""Sort keys of an account: the id of a function, its name (``func``), or a figure."""
FIELDS = {"med": "median", "90p": "p90", "99p": "p99", "self": "own"}
"""Fields of ``analysis.spread.Spread``, by name of the figure, if the two names differ."""
RECURSIONS = ("all", "only", "outermost")
"""Calls that an account counts: ``all``, every call; ``only``, calls that take part in a recursion;
``outermost``, every call, but sums add only the outermost call of a function, so that a sum does
not exceed the time that passed."""
