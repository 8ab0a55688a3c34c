"""Prediction: which parts of a capture a reference reader will refuse, drop or misread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

import attrs

__all__ = ["Effect", "Loss", "Place", "Prediction", "Quirk"]

PLACES = 1000
"""Places kept per quirk; all are counted."""


class Effect(Enum):
    """What a reference reader does with the data, the worst first."""

    REFUSES = "refuses"
    """The reader shows nothing of the file: it reports an error or crashes."""
    STOPS = "stops"
    """The rest of the file is not read."""
    DROPS = "drops"
    """A record, or a part of it, is omitted."""
    MISREADS = "misreads"
    """A record is kept with a different meaning."""
    UNPREDICTED = "unpredicted"
    """The reader passes the bytes to something that is not modelled. Not a loss by itself."""


@attrs.frozen
class Quirk:
    """A known behaviour of a reference reader that loses or changes data: a row of its table."""

    key: str
    """Stable identifier, unique within the reader."""
    effect: Effect
    """What happens to the data."""
    title: str
    """What the reader does: a clause without the reader's name."""
    counter: str | None = attrs.field(default=None, kw_only=True)
    """Name of the reader's counter for it; None if the reader is silent."""
    message: str | None = attrs.field(default=None, kw_only=True)
    """The reader's exact message, if it is always the same."""


@attrs.frozen
class Place:
    """Where a quirk applies."""

    offset: int
    """Byte offset in the (unpacked) file."""
    record: int | None
    """Index of the record in file order, as the reference reader frames records."""
    detail: str = ""
    """Details of this place; may be empty."""


@attrs.define
class Loss:
    """All places of one quirk in one file."""

    quirk: Quirk
    """What the reference reader does."""
    count: int = 0
    """How often it applies: the value of the reader's counter, if it has one."""
    places: list[Place] = attrs.field(factory=list)
    """The first ones found."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "key": self.quirk.key,
            "effect": self.quirk.effect.value,
            "title": self.quirk.title,
            "counter": self.quirk.counter,
            "count": self.count,
            "places": [attrs.asdict(place) for place in self.places],
        }


class Prediction:
    """The predicted losses of one capture in one reference reader.

    Memory is bounded: the first ``PLACES`` places of each quirk are kept, all are counted.
    """

    def __init__(self, quirks: Iterable[Quirk], *, reader: str = "", title: str = "") -> None:
        self._losses = {quirk.key: Loss(quirk) for quirk in quirks}
        self.reader = reader
        """The reference reader's name."""
        self.title = title
        """The reference reader and the modelled version."""
        self.records = 0
        """Records that the reader frames, kept or not."""

    def add(
        self, key: str, offset: int, record: int | None = None, detail: str = "", *, times: int = 1
    ) -> None:
        """Count a quirk at a place. Raises KeyError for a key that is not in the table."""
        loss = self._losses[key]
        loss.count += times
        if len(loss.places) < PLACES:
            loss.places.append(Place(offset, record, detail))

    def add_more(self, key: str, times: int) -> None:
        """Count a quirk some more times, at places that are not kept."""
        self._losses[key].count += times

    @property
    def has_counters(self) -> bool:
        """Whether the reader counts any of its losses."""
        return any(loss.quirk.counter is not None for loss in self._losses.values())

    def count(self, key: str) -> int:
        """Return how often a quirk applies."""
        return self._losses[key].count

    @property
    def losses(self) -> list[Loss]:
        """The quirks that apply, by effect, the worst first, then in the order of the table.

        If the reader refuses the file, only the reasons for that: it reads nothing else.
        """
        found = [loss for loss in self._losses.values() if loss.count]
        refused = [loss for loss in found if loss.quirk.effect is Effect.REFUSES]
        order = list(Effect)
        return refused or sorted(found, key=lambda loss: order.index(loss.quirk.effect))

    @property
    def counters(self) -> Mapping[str, int]:
        """The reader's nonzero counters by name; empty if it refuses the file."""
        found: dict[str, int] = {}
        for loss in self.losses:
            if loss.quirk.counter is not None:
                found[loss.quirk.counter] = found.get(loss.quirk.counter, 0) + loss.count
        return dict(sorted(found.items()))

    @property
    def refused(self) -> Loss | None:
        """Why the reader refuses the file; None if it does not."""
        first = next(iter(self.losses), None)
        return first if first is not None and first.quirk.effect is Effect.REFUSES else None

    @property
    def clean(self) -> bool:
        """Whether the reader keeps all data of the file with its meaning."""
        return all(loss.quirk.effect is Effect.UNPREDICTED for loss in self.losses)

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "reader": self.reader,
            "title": self.title,
            "records": self.records,
            "refused": self.refused is not None,
            "clean": self.clean,
            "counters": dict(self.counters),
            "losses": [loss.to_json() for loss in self.losses],
        }
