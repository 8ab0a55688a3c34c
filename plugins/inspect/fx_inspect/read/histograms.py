"""Histograms: an array's slots as buckets with bounds, and the condensed JSON of ffx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs

LINEAR = 1
EXPONENTIAL = 2
"""Array formats of histograms (`inspect_format` of `properties`)."""
PARAMETERS: Final = {LINEAR: 2, EXPONENTIAL: 3}
"""Slots before the buckets: floor and step; floor, initial step and step multiplier."""
LEAST_BUCKETS: Final = 3
"""Fewest buckets of a histogram: underflow, one bucket, and overflow."""
RANGES: Final[dict[str, tuple[float, float]]] = {
    "int": (-(1 << 63), (1 << 63) - 1),
    "uint": (0, (1 << 64) - 1),
    "double": (float("-inf"), float("inf")),
}
"""Range of each type: the outer bounds of underflow and overflow."""

Bound = int | float


@attrs.frozen
class Histogram:
    """A histogram of ints, uints or doubles (docs/formats/inspect.md).

    ``counts`` begins with the underflow bucket and ends with the overflow bucket.
    """

    type: str
    """``int``, ``uint`` or ``double``."""
    floor: Bound
    step: Bound
    """The step; of an exponential histogram, the initial step."""
    multiplier: Bound | None
    """The step multiplier; None for a linear histogram."""
    counts: Sequence[Bound]

    @classmethod
    def of(cls, type: str, format: int, slots: Sequence[Bound]) -> Histogram | None:
        """Return the histogram of an array's slots; None for a flat array or too few slots."""
        first_bucket = PARAMETERS.get(format)
        if first_bucket is None or len(slots) < first_bucket + LEAST_BUCKETS:
            return None
        multiplier = slots[2] if format == EXPONENTIAL else None
        return cls(type, slots[0], slots[1], multiplier, slots[first_bucket:])

    @property
    def size(self) -> int:
        """Number of buckets, with underflow and overflow."""
        return len(self.counts)

    @property
    def kind(self) -> str:
        """``linear`` or ``exponential``."""
        return "linear" if self.multiplier is None else "exponential"

    def edges(self) -> list[Bound]:
        """Return the edges between buckets: ``size - 1`` numbers, the first one the floor.

        An edge beyond the range of the type is clamped to it.
        """
        least, greatest = RANGES[self.type]
        edges = [self.floor]
        width: Bound = self.step
        for number in range(1, self.size - 1):
            if self.multiplier is None:
                edge = self.floor + self.step * number
            else:
                edge = self.floor + width
                width *= self.multiplier
                if isinstance(width, int):  # bounds the powers of a hostile multiplier
                    width = max(min(width, 1 << 65), -(1 << 65))
            edges.append(min(max(edge, least), greatest))
        return edges

    def bounds(self) -> list[tuple[Bound, Bound]]:
        """Return the bounds of each bucket: the lower one included, the upper one excluded."""
        least, greatest = RANGES[self.type]
        edges = self.edges()
        return list(zip([least, *edges], [*edges, greatest], strict=True))

    def slots(self) -> list[Bound]:
        """Return the array's slots."""
        parameter_slots = [self.floor, self.step]
        if self.multiplier is not None:
            parameter_slots.append(self.multiplier)
        return [*parameter_slots, *self.counts]

    def parameters(self) -> dict[str, Bound]:
        """Return the slots before the buckets, by their names in JSON."""
        if self.multiplier is None:
            return {"floor": self.floor, "step": self.step}
        return {
            "floor": self.floor,
            "initial_step": self.step,
            "step_multiplier": self.multiplier,
        }

    def condensed(self) -> dict[str, Any]:
        """Return the histogram in the JSON of ffx and iquery.

        If at most half of the buckets (rounded down) are not empty, only these counts are included,
        with their ``indexes``.
        """
        members: dict[str, Any] = {"size": self.size, **self.parameters()}
        indexes = [bucket for bucket, count in enumerate(self.counts) if count]
        if len(indexes) > self.size // 2:
            return {**members, "counts": list(self.counts)}
        return {
            **members,
            "counts": [self.counts[bucket] for bucket in indexes],
            "indexes": indexes,
        }
