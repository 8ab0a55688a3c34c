"""Framing: where the records of a file begin and end, as rows of numbers.

``frames_of`` makes the loop (``fxframework.kernels.frames``) for a format. Each of its rows is a
record, or a damaged, unknown or padded stretch: place, size, number of the kind, entry (which kind
of the format it is, or why it is not a record) and byte order. After damage it goes on where a
record fits, so that damage never ends a block.

The size of a record comes from its family's size field, from its kind, or from one number or text
among its fields (``Prefix``). Where only reading all fields tells it, the loop stops there.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.wire.beside import Computed
from fxframework.wire.choices import Again, Check
from fxframework.wire.expressions import Constant, Expression, wrapped
from fxframework.wire.fields import Bits, Field, Integer, Number
from fxframework.wire.floats import Float
from fxframework.wire.format import Format, kinds_of
from fxframework.wire.lists import Listed
from fxframework.wire.spans import Span, Text

if TYPE_CHECKING:
    from fxframework.kernels.frames import Frames
    from fxframework.wire.families import Place
    from fxframework.wire.records import Layout

__all__ = [
    "BAD_SIZE", "CUT", "NO_KIND", "NO_ORDER", "PADDING", "ROOM", "UNKNOWN", "ListedFrames",
    "frames_of", "item_size", "walk_of",
]  # fmt: skip

I64 = NDArray[np.int64]
NOWHERE = (0, 0, 0, 0)
ROOM = 1 << 16
"""Most rows that are found at a time."""
UNKNOWN, CUT, BAD_SIZE, NO_KIND, NO_ORDER, PADDING = range(-1, -7, -1)
"""Entries of rows that are not records of a known kind."""
UNFIT: tuple[int, ...] = (0, 0, 0, 0, 1, 0, 0, 0, -1)
"""The prefix of records whose size neither one number nor the end of one text tells."""


class Prefix(NamedTuple):
    """How one number, or the end of one text, tells the size of a record that has no size field."""

    leaf: Number | None
    unit: int
    plus: int
    least: int
    """The bytes that every such record has."""
    text_at: int = 0
    """The place of a text that a byte ends."""
    until: int = -1
    """The byte; -1 if there is no such text."""


class ListedFrames(abc.ABC):
    """Where records begin and end, as a loop of the format's own lists them.

    It takes the place of ``kernels.frames.Frames``: the rows of the last ``read`` are its
    ``places``, ``sizes``, ``entries`` and ``orders``.
    """

    growing = 0
    places: I64
    sizes: I64
    entries: NDArray[Any]

    def __init__(self, *, big: bool) -> None:
        self.big = int(big)
        self.orders = np.full(ROOM, self.big, np.uint8)
        self.begin = np.zeros(0, np.int64)
        self.end = np.zeros(0, np.int64)
        """The bytes at which the rows that were listed last begin and end."""

    @abc.abstractmethod
    def list_more(self) -> None:
        """List the next rows, in place of those before."""

    @abc.abstractmethod
    def take(self, rows: slice) -> tuple[int, int]:
        """Let listed rows be those that were read; return how many, and why they end."""

    def read(self, at: int, most: int, end: int) -> tuple[int, int]:
        """Find rows from byte ``at`` on; return how many, and why they end (``Frames.read``)."""
        first = self.row_of(at)
        # At least one row, and none that begins at byte ``end`` or later.
        behind = max(first + 1, int(np.searchsorted(self.begin, end)))
        rows = slice(first, min(behind, first + most))
        self.places = self.begin[rows]
        self.sizes = self.end[rows] - self.places
        return self.take(rows)

    def row_of(self, at: int) -> int:
        """Return the number of the row at a byte, or behind it, among those listed."""
        while not self.end.size or at >= self.end[-1]:
            self.list_more()
        return int(np.searchsorted(self.begin, at))


def numbers_of(format: Format, limits: Limits | None) -> tuple[list[int], list[int]]:
    """Return what the loops need to know of a format: its numbers, and four of each kind."""

    def place_of(place: Place | None) -> tuple[int, int, int, int]:
        if place is None:
            return NOWHERE
        return place.offset, place.nbytes, place.shift_in(False), place.mask

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
        *place_of(kind),
        *place_of(second),
        *place_of(size),
        family.unit,
        family.plus,
        family.nbytes,
        max(1, family.head),
        most_of(family.most),
        align if align & align - 1 == 0 else 1,
        int(family.padding),
        int(family.power),
        *mark,
        -1 if family.other is None else len(entries),
    ]
    others = [] if family.other is None else [(-1, -1, family.other)]
    kinds = [
        number
        for first, second, cls in entries + others
        for number in (first, second, cls.layout.size, most_of(cls.layout.most))
    ]
    return [wrapped(number) for number in numbers], kinds


def frames_of(format: Format, source: Source, limits: Limits | None = None) -> Frames:
    """Return the framing of a format's files."""
    from fxframework.kernels.frames import Frames

    numbers, kinds = numbers_of(format, limits)
    sized = format.family.size is not None
    prefixes: list[int] = []
    for _, _, cls in kinds_of(format):
        fixed = sized or cls.layout.fixed
        prefixes += UNFIT if fixed else prefix_numbers(format, cls)
    if format.family.other is not None:
        prefixes += UNFIT if sized else prefix_numbers(format, format.family.other)
    frames = Frames(
        source.data if source.size else np.zeros(0, np.uint8),
        np.array(numbers, np.int64),
        np.array([wrapped(number) for number in kinds], np.int64),
        np.array(prefixes, np.int64),
        ROOM,
    )
    frames.big = int(format.order == "big")
    frames.asking = int(format.choosy)
    return frames


def prefix_numbers(format: Format, cls: Any) -> tuple[int, ...]:
    """Return how the loop finds the size of the records of a class; ``UNFIT`` if it cannot."""
    same_kind = [each for each in format.classes if each.layout.kind == cls.layout.kind]
    found = prefix_of(cls.layout) if len(same_kind) == 1 else None
    if found is None or found.least < 1:
        return UNFIT
    place = NOWHERE
    if found.leaf is not None:
        where = cls.layout.places()[found.leaf]
        place = where.offset, where.nbytes, where.shift, where.mask
    rest = found.unit, found.plus, found.least, found.text_at, found.until
    return *map(wrapped, place), *rest


def prefix_of(layout: Layout) -> Prefix | None:
    """Return how one number, or one text, tells the size of records; None if that is not enough."""
    leaf: Expression | None = None
    unit, plus, least = 1, 0, 0
    text_at, until = 0, -1
    places = layout.places()
    for field in layout.fields:
        if field.when is not None or field.tail:
            return None
        nbytes = fixed_bytes(layout, field)
        if nbytes is not None:
            plus, least = plus + nbytes, least + nbytes
            continue
        if isinstance(field, Span) and field.until and field.aligned == 1:
            if leaf is not None or until >= 0:
                return None
            text_at, until = plus, field.until[0]
            plus, least = plus + 1, least + 1
            continue
        length = length_of(field)
        linear = None if length is None else length.linear()
        if (
            leaf is not None
            or until >= 0
            or linear is None
            or linear[0] not in places
            or linear[1] < 1
        ):
            return None
        leaf, unit, summand = linear
        plus += summand
        if not isinstance(leaf, Number) or leaf.signed:
            return None
    return Prefix(leaf, unit, plus, least, text_at, until)  # type: ignore[arg-type]


def fixed_bytes(layout: Layout, field: Field) -> int | None:
    """Return the bytes of a field that has as many in every record; None for another one."""
    if isinstance(field, Bits):
        return layout.words.get(field, (0, 0))[0]
    if isinstance(field, Integer | Float):
        return field.nbytes
    if isinstance(field, Again | Check | Computed):
        return 0
    if isinstance(field, Text) and field.entry is not None:
        return None if field.inline else 0
    if isinstance(field, Span) and field.aligned == 1:
        return field.fixed
    return None


def length_of(field: Field) -> Expression | None:
    """Return the expression for the bytes of a field of a counted size; None for another one."""
    if isinstance(field, Span) and field.aligned == 1 and not isinstance(field.nbytes, Constant):
        return field.nbytes
    if isinstance(field, Listed) and field.count is not None:
        size = item_size(field)
        return None if size is None else field.count * size
    return None


def item_size(field: Listed) -> int | None:
    """Return the size of the items of a list; None if they differ."""
    if isinstance(field.item, Integer | Float):
        return field.item.nbytes
    layout = field.item.layout
    if layout.family.kinds or layout.family.size is not None or layout.family.pad != 1:
        return None
    return layout.size or steady_size(layout)


def steady_size(layout: Layout) -> int | None:
    """Return the size of all parts of a layout whose fields have fixed sizes; None for others."""
    found = prefix_of(layout)
    steady = found is not None and found.leaf is None and found.until < 0
    return found.plus if found is not None and steady else None


def walk_of(layout: Layout) -> tuple[int, ...] | None:
    """Return how ``kernels.stretches.Items`` finds the parts of a layout; None if it cannot.

    Their size and head; or 0, the head, and place and meaning of the number that tells the size.
    """
    family = layout.family
    if family.power:
        return None
    if family.size is not None:
        place, unit, plus = family.places[family.size], family.unit, family.plus
        head = family.head
    elif family.nbytes:
        return family.nbytes, family.nbytes
    else:
        prefix = None if family.kinds else prefix_of(layout)
        if prefix is None or prefix.until >= 0:
            return None
        if prefix.leaf is None:
            return prefix.plus, prefix.plus
        place, unit, plus = layout.places()[prefix.leaf], prefix.unit, prefix.plus
        head = prefix.least
    return 0, head, place.offset, place.nbytes, place.shift, wrapped(place.mask), unit, plus
