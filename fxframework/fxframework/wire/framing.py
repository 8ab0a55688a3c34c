"""Framing: where the records of a file begin and end, as rows of numbers.

``frames_of`` makes the loop (``fxframework.kernels.frames``) for a format. Each of its rows is a
record, or a damaged, unknown or padded stretch: place, size, number of the kind, entry (which kind
of the format it is, or why it is not a record) and byte order. After damage it goes on where a
record fits, so that damage never ends a block.

The size of a record comes from its family's size field, from its kind, or from one number or text
among its fields (``Prefix``). Where only reading all fields tells it, the loop stops there.

Where damage ends, a family may say itself (``Resume``): which numbers of a head are likely, and
that items have to fill a record. Then salvage also finds records that a damaged size hides.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.kernels.arrays import I64
from fxframework.wire.beside import Surplus
from fxframework.wire.choices import Choice
from fxframework.wire.cursor import AT, SIZE
from fxframework.wire.expressions import Calculation, Constant, Expression, wrapped
from fxframework.wire.families import declaration_error
from fxframework.wire.fields import Field, Integer, Number
from fxframework.wire.floats import Float
from fxframework.wire.format import Format, kinds_of
from fxframework.wire.lists import Listed, Texts
from fxframework.wire.rules import NOT_DECLARED
from fxframework.wire.spans import Span, Text

if TYPE_CHECKING:
    from fxframework.kernels.frames import Frames, Items
    from fxframework.wire.families import Family, Place
    from fxframework.wire.records import Layout, Record

Entry = tuple[int, int, "type[Record]"]
"""The first and the second number of a kind, and its class."""
NOWHERE = (0, 0, 0, 0)
NO_LEAST: Mapping[int, int] = MappingProxyType({})
ROOM = 1 << 16
"""Most rows that are found at a time."""
UNKNOWN, CUT, BAD_SIZE, NO_KIND, NO_ORDER, PADDING, BEHIND, HIDING = range(-1, -9, -1)
"""Entries of rows that are not records of a known kind.

``BEHIND`` is what follows a record, ``HIDING`` one whose size hides others.
"""
UNFIT: tuple[int, ...] = (0, 0, 0, 0, 1, 0, 0, 0, -1, 1)
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
    align: int = 1
    """Padding follows up to a multiple of it."""


COUNTED, STATED, TEXTS, UNTIL, ABSENT, LISTED, NO_PART = range(7)
"""What ends a part of an item (``kernels.frames.Items``)."""
FARTHEST = 1 << 40
"""A number that says how long a part is, is less."""
WORD = 8
MOST_KINDS = 4096
NOT_MEASURED = "is not measured by the first word"
SHORT_RULE = 104
"""The rule for what ends before a field."""


class ItemPart(NamedTuple):
    """What one field of an item is for the loop: the numbers of ``kernels.frames.Items``."""

    how: int
    plus: int = 0
    """Bytes of the fields before it, which have as many in every item."""
    shift: int = 0
    mask: int = 0
    """Bits of the first word that say how long it is; of texts, the bytes of the longest."""
    inline: int = 0
    """The bit that says that bytes follow; of texts, how many there may be; of what is there if
    the number is 0, its bytes."""
    align: int = 1
    short: int = SHORT_RULE
    """The rules: for an item that ends before it, a bad reference (0: none is) or too many texts,
    a long one."""
    bad: int = NOT_DECLARED
    long: int = SHORT_RULE


@attrs.frozen
class Resumption:
    """Where reading goes on after damage, for the loop (``kernels.frames.Frames``)."""

    likely: I64
    """Of each number its place, bytes, shift and mask, the least value and how many more."""
    alone: int
    step: int
    items: Items | None
    items_at: int
    """Where in a record they begin."""
    most: int


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
        """The bytes at which the rows that were listed last begin."""
        self.size = np.zeros(0, np.int64)

    @property
    def listed_end(self) -> int:
        """The byte behind the rows that were listed last; -1 before any were."""
        return int(self.begin[-1] + self.size[-1]) if self.begin.size else -1

    @abc.abstractmethod
    def list_more(self) -> None:
        """List the next rows, in place of those before."""

    @abc.abstractmethod
    def take(self, rows: slice) -> tuple[int, int]:
        """Let listed rows be those that were read; return how many, and why they end."""

    def read(self, at: int, most: int, end: int) -> tuple[int, int]:
        """Find rows from byte ``at`` on; return how many, and why they end (``Frames.read``)."""
        first_row = self.row_of(at)
        # At least one row, and none that begins at byte ``end`` or later.
        end_row = max(first_row + 1, int(np.searchsorted(self.begin, end)))
        rows = slice(first_row, min(end_row, first_row + most))
        self.places = self.begin[rows]
        self.sizes = self.size[rows]
        return self.take(rows)

    def row_of(self, at: int) -> int:
        """Return the number of the row at a byte, or behind it, among those listed."""
        while at >= self.listed_end:
            self.list_more()
        return int(self.begin.searchsorted(at))


def numbers_of(
    base: type[Record],
    entries: list[tuple[int, int, type[Record]]],
    limits: Limits | None,
    marked: type[Record] | None = None,
    least: Mapping[int, int] = NO_LEAST,
) -> tuple[list[int], list[int]]:
    """Return what the loops need to know of a family: its numbers, and six of each kind.

    ``least`` has the fewest bytes of records, by the first number of their kind.
    """
    longest_record = limits.max_record if limits else 0

    def most_bytes(own_limit: int) -> int:
        """Return the smaller of two limits; 0 is none."""
        return min(filter(None, (own_limit, longest_record)), default=0)

    family = base.layout.family
    kinds_at = [family.places[field].numbers for field in family.kinds]
    first_kind, second_kind = (*kinds_at, NOWHERE, NOWHERE)[:2]
    size_at = NOWHERE if family.size is None else family.places[family.size].numbers
    mark = (0, 0, 0, 0)
    if marked is not None:
        layout = marked.layout
        assert layout.mark is not None  # noqa: S101 (why it is the marked one)
        place = layout.mark_place
        kind_of_marked = layout.kind[0] if layout.kind else 0
        mark = kind_of_marked, place.offset, place.nbytes, layout.mark.number
    align = base.layout.align
    if align & align - 1:
        align = 1  # the loop only knows powers of two
    head = max(1, family.head)
    least_bytes = head
    if family.resume is not None:
        least_bytes = min(cls.layout.least for _, _, cls in entries)
    # In the order of the constants of ``kernels/frames.pyx``.
    numbers = [
        *first_kind,
        *second_kind,
        *size_at,
        family.unit,
        family.plus,
        family.nbytes,
        head,
        most_bytes(family.most),
        align,
        int(family.padding),
        int(family.power),
        *mark,
        -1 if family.other is None else len(entries),
        least_bytes,
        int(family.resume is not None),
    ]
    every_entry = list(entries)
    if family.other is not None:
        every_entry.append((-1, -1, family.other))
    kinds: list[int] = []
    for first_number, second_number, cls in every_entry:
        layout = cls.layout
        size_mask = 0
        if layout.family.size is not None:
            size_mask = layout.family.places[layout.family.size].mask
        kinds += [first_number, second_number, layout.size, most_bytes(layout.most)]
        kinds += [least.get(first_number, 0), size_mask]
    return [wrapped(number) for number in numbers], kinds


def frames_of(format: Format, source: Source, limits: Limits | None = None) -> Frames:
    """Return the framing of a format's files."""
    data = source.data if source.size else np.zeros(0, np.uint8)
    frames = _frames(data, format.base, kinds_of(format), limits, marked=format.marked)
    frames.big = int(format.order == "big")
    frames.asking = int(format.choosy)
    return frames


def frames_of_records(
    data: NDArray[np.uint8], base: type[Record], *, behind: Items | None = None, room: int = ROOM
) -> Frames:
    """Return the framing of bytes that are records of one class or family, without a ``Format``.

    ``behind`` are items of which one follows each record (``items_of``).
    """
    entries = [(cls.layout.kind[0], -1, cls) for cls in base.layout.family.members]
    if not entries:
        entries = [(0, -1, base)]
    return _frames(data, base, entries, None, behind=behind, room=room)


def frames_of_families(
    data: NDArray[np.uint8],
    bases: Sequence[type[Record]],
    least: Mapping[int, int],
    rule: Resumption | None,
    *,
    big: bool = False,
    room: int = ROOM,
) -> Frames:
    """Return the framing of records of several families, in bytes of one byte order.

    They have kind and size at the same place, but the sizes of some may have more bits. An entry is
    the first number of a kind; of the numbers of ``least`` each is one, with the fewest bytes of
    its records. ``rule`` says where reading goes on after damage.
    """
    class_of_kind = {
        cls.layout.kind[0]: cls for base in bases for cls in base.layout.family.members
    }
    entries = [(kind, -1, class_of_kind[kind]) for kind in range(max(least) + 1) if kind in least]
    frames = _frames(data, bases[0], entries, None, least=least, rule=rule, room=room)
    frames.big = int(big)
    return frames


def frames_by_first_byte(
    data: NDArray[np.uint8],
    sizes: Mapping[int, int],
    counted: Mapping[int, Place],
    joined: NDArray[np.uint8] | None,
    *,
    big: bool,
) -> Frames:
    """Return the framing of bytes that are records whose first byte tells their sizes.

    At a byte without a size the loop stops, as it does at a record that does not fit. In records of
    the bytes ``counted``, a number of four bytes says how many more follow; one below 0 stops it.
    The entry of a row is its first byte. Records of those that are ``joined`` (1 of 256, all of one
    size) are one row where they follow one another.
    """
    from fxframework.kernels.frames import Frames

    first_byte = (0, 1, 0, 0xFF)
    numbers = [*first_byte, *NOWHERE, *NOWHERE, 1, 0, 0, 1, 0, 1, 0, 0, *NOWHERE, -1, 1, 0]
    kinds: list[int] = []
    prefixes: list[int] = []
    for byte in range(256):
        size = sizes.get(byte, 0)
        if byte not in counted:
            kinds += byte, -1, size, 0, 0, 0
            prefixes += UNFIT
            continue
        place = counted[byte]
        kinds += byte, -1, 0, size + (place.mask >> 1), 0, 0
        number = Prefix(None, 1, size, size)
        prefixes += *place.numbers, *number[1:]
    as_columns = [np.array(column, np.int64) for column in (numbers, kinds, prefixes)]
    frames = Frames(data, as_columns[0], as_columns[1], as_columns[2], ROOM, joined=joined)
    frames.big = int(big)
    frames.asking = 1
    return frames


def _frames(
    data: NDArray[np.uint8],
    base: type[Record],
    entries: list[tuple[int, int, type[Record]]],
    limits: Limits | None,
    *,
    marked: type[Record] | None = None,
    least: Mapping[int, int] = NO_LEAST,
    rule: Resumption | None = None,
    behind: Items | None = None,
    room: int = ROOM,
) -> Frames:
    from fxframework.kernels.frames import Frames

    family = base.layout.family
    numbers, kinds = numbers_of(base, entries, limits, marked, least)
    classes = [cls for _, _, cls in entries]
    if family.other is not None:
        classes.append(family.other)
    kinds_of_members = [cls.layout.kind for cls in family.members]
    prefixes: list[int] = []
    for cls in classes:
        # Which of several classes of a kind a record is of, only the state tells.
        is_one_of_many = kinds_of_members.count(cls.layout.kind) > 1
        if cls.layout.is_sized or is_one_of_many:
            prefixes += UNFIT
        else:
            prefixes += prefix_numbers(cls.layout)
    return Frames(
        data,
        np.array(numbers, np.int64),
        np.array([wrapped(number) for number in kinds], np.int64),
        np.array(prefixes, np.int64),
        room,
        rule or resumption_of(base, classes),
        behind,
    )


def resumption_of(base: type[Record], classes: list[type[Record]]) -> Resumption | None:
    """Return where reading goes on after damage; None if the family does not say it."""
    resume = base.layout.family.resume
    if resume is None:
        return None
    layout = classes[0].layout
    places = {field.name: (0, place) for field, place in layout.places.items()}
    items = None
    items_at = 0
    holds = resume.holds
    if holds is None and isinstance(layout.rest, Listed):
        holds = layout.rest.item
    if holds is not None:
        items = items_of(holds.layout)
        sizes = [layout.fixed_bytes(field) for field in layout.fields[:-1]]
        if None in sizes:
            raise declaration_error(base, None, "resume: its items have no fixed place")
        items_at = sum(filter(None, sizes))
        # A record that holds one item is as likely as that.
        of_item = {field.name: (items_at, place) for field, place in holds.layout.places.items()}
        places = of_item | places
    likely = []
    for name, numbers in resume.likely.items():
        if name not in places or not numbers or numbers.step != 1:
            raise declaration_error(base, None, f"resume: {name} is not a number with a range")
        begin, place = places[name]
        least = wrapped(numbers.start)
        span = wrapped(len(numbers) - 1)
        offset, *bits = place.numbers
        likely.append((begin + offset, *bits, least, span))
    return Resumption(
        likely=np.array(likely, np.int64).reshape(-1, 6),
        alone=int(resume.alone),
        step=layout.align,
        items=items,
        items_at=items_at,
        most=resume.most,
    )


def prefix_numbers(layout: Layout) -> tuple[int, ...]:
    """Return how the loop finds the size of records of a layout; ``UNFIT`` if it cannot."""
    prefix = prefix_of(layout)
    if prefix is None or prefix.least < 1:
        return UNFIT
    leaf_at = NOWHERE if prefix.leaf is None else layout.places[prefix.leaf].numbers
    return (*leaf_at, *prefix[1:])


def prefix_of(layout: Layout) -> Prefix | None:
    """Return how one number, or one text, tells the size of records; None if that is not enough."""
    leaf: Number | None = None
    unit = 1
    # Bytes that do not depend on the number, so far, and those that every record has. They differ
    # where a length says more than its text has: ``(n - 4)`` bytes are plus -4.
    plus = 0
    least = 0
    text_at = 0
    until = -1
    align = 1
    places = layout.places
    for field in layout.fields:
        if field.when is not None or field.tail:
            return None
        nbytes = layout.fixed_bytes(field)
        if nbytes is not None:
            plus += nbytes
            least += nbytes
            continue
        # The one field of a size of its own was before.
        if leaf is not None or until >= 0:
            return None
        if isinstance(field, Span) and field.until and field.aligned == 1:
            text_at = plus
            until = field.until[0]
            plus += 1
            least += 1
            continue
        length = length_of(field)
        if isinstance(field, Span) and field.nbytes is not None and field is layout.fields[-1]:
            length = field.nbytes
            align = field.aligned
        linear = None if length is None else length.linear()
        if linear is None:
            return None
        number, unit, summand = linear
        if number not in places or unit < 1:
            return None
        if not isinstance(number, Number) or number.signed:
            return None
        leaf = number
        plus += summand
    return Prefix(leaf, unit, plus, least, text_at, until, align)


def length_of(field: Field) -> Expression | None:
    """Return the expression for the bytes of a field of a counted size; None for another one."""
    if isinstance(field, Span) and field.aligned == 1 and not isinstance(field.nbytes, Constant):
        return field.nbytes
    if isinstance(field, Listed) and field.count is not None:
        size = item_size(field)
        if size is not None:
            return field.count * size
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
    prefix = prefix_of(layout)
    if prefix is None or prefix.leaf is not None or prefix.until >= 0:
        return None
    return prefix.plus


def walk_of(layout: Layout) -> tuple[Any, ...] | None:
    """Return how ``kernels.frames.Items`` finds the parts of a layout; None if it cannot.

    Their size and head; or 0, the head, and place and meaning of the number that tells the size.
    """
    family = layout.family
    if family.power:
        return None
    if family.kinds and family.size is None and not family.nbytes:
        return walk_by_kinds(family)
    if family.size is not None:
        place = family.places[family.size]
        unit = family.unit
        plus = family.plus
        head = family.head
    elif family.nbytes:
        return family.nbytes, family.nbytes
    else:
        prefix = prefix_of(layout)
        if prefix is None or prefix.until >= 0 or prefix.align > 1:
            return None
        if prefix.leaf is None:
            return prefix.plus, prefix.plus
        place = layout.places[prefix.leaf]
        unit = prefix.unit
        plus = prefix.plus
        head = prefix.least
    return 0, head, *place.numbers, unit, plus


def walk_by_kinds(family: Family) -> tuple[Any, ...] | None:
    """Return how ``Items`` finds parts whose kind tells their size; None if it does not."""
    place = family.places[family.kinds[0]]
    if len(family.kinds) > 1 or family.versioned:
        return None
    pairs: list[int] = []
    for cls in family.members:
        size = steady_size(cls.layout)
        if size is None or cls.layout.size:
            return None
        pairs += wrapped(cls.layout.kind[0]), size
    size_of_others: int | None = 0
    if family.other is not None:
        size_of_others = steady_size(family.other.layout)
    if size_of_others is None:
        return None
    return 0, family.head, *place.numbers, 1, size_of_others, pairs


# --- Items that have parts ------------------------------------------------------------------------


class StatedSize(NamedTuple):
    """Bits of the first word of items that state their size; without any bits they do not."""

    nbytes: int = 0
    shift: int = 0
    mask: int = 0
    unit: int = 1
    plus: int = 0


class ItemShape(NamedTuple):
    """The parts of items by kind, which the number ``tag`` tells; without it all are of kind 0."""

    tag: Number | None
    by_kind: dict[int, list[ItemPart]]
    of_others: list[ItemPart] | None
    """The parts of items of other kinds; None if there are no such items."""


def items_of(layout: Layout, *, big: bool = False) -> Items:
    """Return what finds items by the numbers in their first words. Raises PluginError if none can.

    Items have fields of fixed sizes, texts and bytes that these numbers measure, a choice among
    such, texts behind their sizes, and a text that a byte ends. Or they are records, which say how
    long they are and of what kind. ``big`` is the byte order.
    """
    from fxframework.kernels.frames import Items

    find_shape = shape_of_records if layout.family.kinds else shape_of
    shape = find_shape(layout)
    kind_at = 0
    kinds = 1
    if shape.tag is not None:
        kind_place = layout.places[shape.tag]
        kind_at = kind_place.shift
        kinds = kind_place.mask + 1
        if kind_place.end > WORD or kinds > MOST_KINDS:
            raise declaration_error(layout.cls, shape.tag, "the kind is not in the first word")
    # A row of parts for each kind; the last one is that of all other kinds, if there are any.
    rows = list(shape.by_kind.values())
    row_of_kind = np.full(kinds, -1, np.int32)
    if shape.of_others is not None:
        row_of_kind[:] = len(rows)
        rows.append(shape.of_others)
    row_of_kind[list(shape.by_kind)] = np.arange(len(shape.by_kind))
    width = max(map(len, rows))
    padded_rows = [[*row, *[ItemPart(NO_PART)] * (width - len(row))] for row in rows]
    parts = np.array(padded_rows, np.int64)
    stated = stated_by(layout)
    return Items(0, WORD, 1, big, 0, *stated, (), kind_at, row_of_kind, parts, len(shape.by_kind))


def shape_of_records(layout: Layout) -> ItemShape:
    """Return the parts of items that are records of a family: each goes up to its own end."""
    family = layout.family
    if family.power:
        raise declaration_error(layout.cls, family.size, NOT_MEASURED)
    parts = {
        cls.layout.kind[0]: [ItemPart(STATED, plus=cls.layout.least)] for cls in family.members
    }
    return ItemShape(family.kinds[0], parts, None)


def shape_of(layout: Layout) -> ItemShape:
    """Return the parts of items of a layout, whose last field may be a choice."""
    for field in layout.fields:
        if field.when is not None or field.tail:
            raise declaration_error(layout.cls, field, NOT_MEASURED)
    common = list(itertools.takewhile(lambda field: not isinstance(field, Choice), layout.fields))
    behind = layout.fields[len(common) :]
    if not behind:
        return ItemShape(None, {0: item_parts(layout, common, part_of)}, None)
    choice, *further = behind
    assert isinstance(choice, Choice)  # noqa: S101 (what ends the common fields)
    for field in further:
        if not isinstance(field, Surplus):
            raise declaration_error(layout.cls, field, NOT_MEASURED)

    def parts_with(value: Field | None) -> list[ItemPart]:
        return item_parts(layout, common if value is None else [*common, value], part_of)

    by_kind = {number: parts_with(value) for number, value in choice.kinds.items()}
    of_others = None if choice.other is None else parts_with(choice.other)
    return ItemShape(choice.tag, by_kind, of_others)


def item_parts(
    layout: Layout,
    fields: Iterable[Field],
    measured: Callable[[Layout, int, Field], ItemPart | None],
) -> list[ItemPart]:
    """Return fields that follow one another as parts, given what measures those of no fixed size.

    Raises PluginError for one that it does not measure.
    """
    parts: list[ItemPart] = []
    plus = 0  # bytes since the last part, which the next one that has a size of its own takes along
    short_rule = SHORT_RULE
    for field in fields:
        nbytes = layout.fixed_bytes(field)
        if nbytes is not None:
            plus += nbytes
            short_rule = field.rules.get(SHORT_RULE, SHORT_RULE)
            continue
        part = measured(layout, plus, field)
        if part is None:
            raise declaration_error(layout.cls, field, NOT_MEASURED)
        parts.append(part)
        plus = 0
    if plus:
        parts.append(ItemPart(COUNTED, plus, short=short_rule))
    return parts


def part_of(layout: Layout, plus: int, field: Field) -> ItemPart | None:
    """Return a field whose size differs, behind ``plus`` bytes; None if no loop finds its end."""
    rules = {
        "short": field.rules.get(SHORT_RULE, SHORT_RULE),
        "bad": field.rules.get(NOT_DECLARED, NOT_DECLARED),
    }
    if isinstance(field, Texts) and field.size.nbytes == 1 and field.most < FARTHEST:
        rules |= {"bad": field.many[0], "long": field.long[0]}
        return ItemPart(TEXTS, plus, mask=field.longest, inline=field.most, **rules)
    if not isinstance(field, Span):
        return None
    if field.until and field.aligned == 1:
        return ItemPart(UNTIL, plus, mask=field.until[0], **rules)
    length = field.nbytes
    inline = 0
    if isinstance(field, Text) and field.entry is not None:
        length = field.entry.index
        inline = field.inline
        if not field.entry.table.closed:
            rules["bad"] = 0
    if length is None:  # all that the item has left
        return ItemPart(STATED, plus, **rules)
    places = layout.places
    if isinstance(length, Calculation) and length.symbol == "-" and length.right is AT:
        # ``size - AT`` is all that the item has left, if the item states this size.
        leaf, unit, plus_of_size = length.left.linear() or (length, 0, 0)
        place = places.get(leaf)  # type: ignore[call-overload]
        if place is None:
            return None
        size_read = place.shift, place.mask, unit, plus_of_size
        stated = stated_by(layout)
        if size_read != (stated.shift, stated.mask, stated.unit, stated.plus):
            return None
        return ItemPart(STATED, plus, **rules)
    lowest_bits = -1
    if isinstance(length, Calculation) and length.symbol == "&":
        lowest_bits, length = masked_number(length)
    place = places.get(length)  # type: ignore[call-overload]
    if place is None or place.end > WORD or place.mask >= FARTHEST:
        return None
    mask = place.mask & lowest_bits
    return ItemPart(COUNTED, plus, place.shift, mask, inline, field.aligned, **rules)


def masked_number(masked: Calculation) -> tuple[int, Expression]:
    """Return the mask of ``number & mask``, and the number; all bits, and all of it, for others."""
    if isinstance(masked.right, Constant):
        return masked.right.number, masked.left
    return -1, masked


def stated_by(layout: Layout) -> StatedSize:
    """Return where items state their size."""
    family = layout.family
    if family.size is not None:
        place = family.places[family.size]
        return StatedSize(WORD, place.shift, place.mask, family.unit, family.plus)
    for field, place in layout.places.items():
        equals: Any = getattr(field, "equals", None)
        if equals is SIZE:
            return StatedSize(WORD, place.shift, place.mask)
        if not isinstance(equals, Calculation) or equals.left is not SIZE:
            continue
        if equals.symbol == ">>" and isinstance(equals.right, Constant):
            return StatedSize(WORD, place.shift, place.mask, 1 << equals.right.number)
    return StatedSize()
