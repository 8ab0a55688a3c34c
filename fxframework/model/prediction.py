"""Prediction: what a reference reader will refuse, drop or misread of a capture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

import attrs

__all__ = ["Effect", "Loss", "Place", "Prediction", "Quirk"]

PLACES = 1000
"""Places of one quirk that are kept; all are counted."""


class Effect(Enum):
    """What a reference reader does, from the worst on."""

    REFUSES = "refuses"
    """Nothing of the file is shown: an error, or a crash."""
    STOPS = "stops"
    """The rest of the file is not read."""
    DROPS = "drops"
    """A record, or a part of it, is left out."""
    MISREADS = "misreads"
    """A record is kept, and means something else."""
    UNPREDICTED = "unpredicted"
    """The reader passes the bytes on to something that is not modelled. Not a loss by itself."""


@attrs.frozen
class Quirk:
    """One way of a reference reader with what is in a file: a row of its table."""

    key: str
    """Identifies it among those of its reader; never changes."""
    effect: Effect
    """What becomes of the data."""
    title: str
    """What the reader does with it: a clause without the reader's name."""
    counter: str | None = attrs.field(default=None, kw_only=True)
    """The reader's own counter of it, by its name; None where it is silent."""
    message: str | None = attrs.field(default=None, kw_only=True)
    """The reader's own message, word by word, where it always has the same."""


@attrs.frozen
class Place:
    """Where a quirk applies."""

    offset: int
    """Byte offset in the (unpacked) file."""
    record: int | None
    """Index of the record in file order, as the reference reader frames them."""
    detail: str = ""
    """What is particular to this place; may be empty."""


@attrs.define
class Loss:
    """All places of one quirk in one file."""

    quirk: Quirk
    """What the reference reader does."""
    count: int = 0
    """How often it applies: what the reader's counter shows, where it has one."""
    places: list[Place] = attrs.field(factory=list)
    """The first ones found."""

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "key": self.quirk.key,
            "effect": self.quirk.effect.value,
            "title": self.quirk.title,
            "counter": self.quirk.counter,
            "count": self.count,
            "places": [attrs.asdict(place) for place in self.places],
        }


class Prediction:
    """What one reference reader makes of one capture.

    Memory is bounded: of each quirk the first ``PLACES`` places are kept and all are counted.
    """

    def __init__(self, quirks: Iterable[Quirk], *, reader: str = "", title: str = "") -> None:
        self._losses = {quirk.key: Loss(quirk) for quirk in quirks}
        self.reader = reader
        """The reference reader's name."""
        self.title = title
        """The reference reader, and the version that was modelled."""
        self.records = 0
        """Records that the reader frames, kept or not."""

    def add(
        self, key: str, offset: int, record: int | None = None, detail: str = "", *, times: int = 1
    ) -> None:
        """Count a quirk at a place. Raises KeyError for one that the table does not have."""
        loss = self._losses[key]
        loss.count += times
        if len(loss.places) < PLACES:
            loss.places.append(Place(offset, record, detail))

    @property
    def has_counters(self) -> bool:
        """Whether the reader counts any of its losses."""
        return any(loss.quirk.counter is not None for loss in self._losses.values())

    def count(self, key: str) -> int:
        """How often a quirk applies."""
        return self._losses[key].count

    @property
    def losses(self) -> list[Loss]:
        """Each quirk that applies; the worst effect first, then in the order of the table.

        Where the reader refuses the file, only why it does: nothing else is seen of it.
        """
        found = [loss for loss in self._losses.values() if loss.count]
        refused = [loss for loss in found if loss.quirk.effect is Effect.REFUSES]
        order = list(Effect)
        return refused or sorted(found, key=lambda loss: order.index(loss.quirk.effect))

    @property
    def counters(self) -> Mapping[str, int]:
        """The reader's counters that are not zero, by name; empty where it refuses the file."""
        found: dict[str, int] = {}
        for loss in self.losses:
            if loss.quirk.counter is not None:
                found[loss.quirk.counter] = found.get(loss.quirk.counter, 0) + loss.count
        return dict(sorted(found.items()))

    @property
    def refused(self) -> Loss | None:
        """Why the reader refuses the file; None where it does not."""
        first = next(iter(self.losses), None)
        return first if first is not None and first.quirk.effect is Effect.REFUSES else None

    @property
    def clean(self) -> bool:
        """Whether the reader has all that is in the file, with its meaning."""
        return all(loss.quirk.effect is Effect.UNPREDICTED for loss in self.losses)

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "reader": self.reader,
            "title": self.title,
            "records": self.records,
            "refused": self.refused is not None,
            "clean": self.clean,
            "counters": dict(self.counters),
            "losses": [loss.to_json() for loss in self.losses],
        }
