"""Histograms: an array's slots as buckets with their bounds, and the condensed JSON of ffx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs

__all__ = ["EXPONENTIAL", "LINEAR", "Bound", "Histogram"]

LINEAR, EXPONENTIAL = 1, 2
"""Formats of an array that is a histogram (`inspect_format` of `properties`)."""
PARAMETERS: Final = {LINEAR: 2, EXPONENTIAL: 3}
"""Slots before the buckets: floor and step; floor, initial step and step multiplier."""
LEAST_BUCKETS: Final = 3
"""Underflow, one bucket and overflow: with fewer slots an array is none."""
RANGES: Final[dict[str, tuple[float, float]]] = {
    "int": (-(1 << 63), (1 << 63) - 1),
    "uint": (0, (1 << 64) - 1),
    "double": (float("-inf"), float("inf")),
}
"""What the numbers of each type reach to: the outer bounds of underflow and overflow."""

Bound = int | float


@attrs.frozen
class Histogram:
    """A histogram of ints, uints or doubles (inspect.md §1.3).

    ``counts`` has the underflow bucket first and the overflow bucket last.
    """

    type: str
    """``int``, ``uint`` or ``double``."""
    floor: Bound
    step: Bound
    """Of an exponential one the initial step."""
    multiplier: Bound | None
    """The step multiplier; None of a linear one."""
    counts: Sequence[Bound]

    @classmethod
    def of(cls, type: str, format: int, slots: Sequence[Bound]) -> Histogram | None:
        """The histogram of an array's slots; None where they are too few, or the array is flat."""
        first = PARAMETERS.get(format)
        if first is None or len(slots) < first + LEAST_BUCKETS:
            return None
        multiplier = slots[2] if format == EXPONENTIAL else None
        return cls(type, slots[0], slots[1], multiplier, slots[first:])

    @property
    def size(self) -> int:
        """Buckets, underflow and overflow included."""
        return len(self.counts)

    @property
    def kind(self) -> str:
        """``linear`` or ``exponential``."""
        return "linear" if self.multiplier is None else "exponential"

    def edges(self) -> list[Bound]:
        """Where the buckets meet: ``size - 1`` numbers, the first one the floor.

        A number beyond what the type holds is the last one that it holds.
        """
        least, most = RANGES[self.type]
        edges = [self.floor]
        width: Bound = self.step
        for number in range(1, self.size - 1):
            if self.multiplier is None:
                edge = self.floor + self.step * number
            else:
                edge = self.floor + width
                width *= self.multiplier
                if isinstance(width, int):  # powers of a hostile multiplier stay small
                    width = max(min(width, 1 << 65), -(1 << 65))
            edges.append(min(max(edge, least), most))
        return edges

    def bounds(self) -> list[tuple[Bound, Bound]]:
        """The bounds of each bucket, from the lower one up to but without the upper one."""
        least, most = RANGES[self.type]
        edges = self.edges()
        return list(zip([least, *edges], [*edges, most], strict=True))

    def slots(self) -> list[Bound]:
        """The array's slots."""
        before = [self.floor, self.step]
        if self.multiplier is not None:
            before.append(self.multiplier)
        return [*before, *self.counts]

    def parameters(self) -> dict[str, Bound]:
        """The slots before the buckets, by their names in JSON."""
        if self.multiplier is None:
            return {"floor": self.floor, "step": self.step}
        return {
            "floor": self.floor,
            "initial_step": self.step,
            "step_multiplier": self.multiplier,
        }

    def condensed(self) -> dict[str, Any]:
        """As ffx and iquery have it in JSON.

        Where at most half of the buckets hold something (rounded down), only their counts are
        there, and ``indexes`` says which they are.
        """
        shown: dict[str, Any] = {"size": self.size, **self.parameters()}
        indexes = [at for at, count in enumerate(self.counts) if count]
        if len(indexes) > self.size // 2:
            return {**shown, "counts": list(self.counts)}
        return {**shown, "counts": [self.counts[at] for at in indexes], "indexes": indexes}
