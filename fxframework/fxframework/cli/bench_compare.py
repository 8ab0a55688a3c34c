"""Comparison for ``fxf bench``: figures of this run beside those of a saved run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fxframework.cli.session import Session
from fxframework.errors import UnreadableError

__all__ = ["load_run", "ratios", "show_comparison"]

NOTABLE = 1.25
"""Ratios that changed by at least this factor are marked; smaller changes are noise."""
Key = tuple[str, str, str]


def load_run(path: str) -> Mapping[str, Any]:
    """Load a document printed by ``fxf bench --json``. Raises UnreadableError for others."""
    import orjson

    why = "this is not a run of `fxf bench`"
    try:
        found = orjson.loads(Path(path).read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        found, why = None, f"the saved run cannot be read: {error}"
    if not isinstance(found, dict) or found.get("fxframework") != "bench":
        remedy = "save one with `fxf bench --json > RUN.json`"
        raise UnreadableError(why, path=path, remedy=remedy)
    return found


def ratios(run: Mapping[str, Any]) -> dict[Key, float]:
    """Return the ratios of a run by format, measured case and figure.

    Raises UnreadableError if the document lacks a required field.
    """
    try:
        return dict(_ratios(run))
    except (KeyError, TypeError) as error:
        raise UnreadableError(
            f"the saved run lacks {error}", remedy="save it again with this version"
        ) from None


def _ratios(run: Mapping[str, Any]) -> Iterator[tuple[Key, float]]:
    for one in run.get("captures", ()):
        for each in one["measures"]:
            yield (one["format"], "sample", each["name"]), each["ratio"]
    for one in run.get("shapes", ()):
        for each in one["measures"]:
            yield (one["format"], one["shape"], each["name"]), each["ratio"]
    for one in run.get("stages", ()):
        yield (one["format"], one["stage"], "/copy"), one["ratio"]
    for one in run.get("growth", ()):
        yield (one["format"], one["stage"], "exponent"), one["exponent"]


def show_comparison(session: Session, now: Mapping[str, Any], path: str) -> None:
    """Print the figures that both runs have, the greatest change first."""
    before = ratios(load_run(path))
    screen = session.screen
    both = [
        (figure / before[key], key, before[key], figure)
        for key, figure in ratios(now).items()
        if before.get(key, 0) > 0 and figure > 0
    ]
    both.sort(key=lambda row: -abs(math.log(row[0])))
    rows = [("FORMAT", "WHAT", "FIGURE", "BEFORE", "NOW", "CHANGE")]
    rows += [
        (*key, f"{old:,.2f}", f"{new:,.2f}",
         f"{change:.2f} x{' *' if not 1 / NOTABLE < change < NOTABLE else '  '}")
        for change, key, old, new in both
    ]  # fmt: skip
    screen.table(rows, [False, False, False, True, True, True])
    notable = sum(not 1 / NOTABLE < row[0] < NOTABLE for row in both)
    screen.note(f"{len(both)} figures are in both runs; {notable} differ by a quarter or more (*)")
