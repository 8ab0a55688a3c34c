"""Framing of a declared format: what the kernel ``fxframework.kernels.framing`` needs to know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.kernels.buffers import view
from fxframework.kernels.framing import Framing
from fxframework.wire.expressions import wrapped
from fxframework.wire.format import Format, kinds_of

if TYPE_CHECKING:
    from fxframework.wire.families import Place

__all__ = ["framing_of"]

NOWHERE = (0, 0, 0, 0)


def framing_of(
    format: Format, source: Source, limits: Limits | None = None, *, mirrored: bool = False
) -> Framing:
    """Return the framing of a file, at its beginning; ``mirrored`` is that of ``State``."""

    def numbers_of(place: Place | None) -> tuple[int, int, int, int]:
        if place is None:
            return NOWHERE
        return place.offset, place.nbytes, place.shift_in(mirrored), place.mask

    family = format.family
    places = [family.places[field] for field in family.kinds]
    kind, second = (*places, None, None)[:2]
    size = None if family.size is None else family.places[family.size]
    longest = limits.max_record if limits else 0

    def most_of(own: int) -> int:
        return min(filter(None, (own, longest)), default=0)

    mark = (0, 0, 0, 0)
    if format.marked is not None:
        layout = format.marked.layout
        assert layout.mark is not None  # noqa: S101 (why it is the marked one)
        place = layout.mark_place
        mark = (*layout.kind, 0)[0], place.offset, place.nbytes, layout.mark.number
    entries = kinds_of(format)
    align = format.base.layout.align
    numbers = [
        *numbers_of(kind),
        *numbers_of(second),
        *numbers_of(size),
        family.unit,
        family.plus,
        family.nbytes,
        max(1, family.head),
        most_of(family.most),
        align if align & align - 1 == 0 else 1,
        int(family.padding),
        *mark,
        -1 if family.other is None else len(entries),
    ]
    others = [] if family.other is None else [(-1, -1, family.other)]
    kinds = [
        number
        for first, second, cls in entries + others
        for number in (first, second, cls.layout.size, most_of(cls.layout.most))
    ]
    data = np.ascontiguousarray(source.data) if source.size else np.zeros(0, np.uint8)
    words = data[: data.size // 8 * 8].view("<i8")
    framing = Framing(
        view(data, "u1"),
        view(words if words.size else np.zeros(1, "<i8"), "i8"),
        view(np.array([wrapped(number) for number in numbers], "i8"), "i8"),
        view(np.array(kinds, "i8"), "i8"),
    )
    framing.big = int(format.order == "big")
    return framing
