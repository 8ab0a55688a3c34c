"""Cursor and draft: where fields of one record are read, and where they are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from fxframework.io.words import FieldView, explain_stretch
from fxframework.wire.expressions import Constant, Expression, Register, wrapped
from fxframework.wire.rules import BAD_SIZE, NOT_DECLARED, RESERVED
from fxframework.wire.state import State, TextTable

SIZE = Register(name="SIZE")
"""The size of the record, or of the part, in bytes."""
AT = Register(name="AT")
"""Bytes of the record, or of the part, before the field."""
ROOMY: dict[Expression, int] = {SIZE: 1 << 62, AT: 0}
"""What conditions on size and place are with when a record is written: its room follows."""


def order_of(big: bool) -> Literal["big", "little"]:
    """Return the byte order as ``int.from_bytes`` takes it."""
    return "big" if big else "little"


NOTHING: Mapping[Any, bytes] = {}


class ShortError(Exception):
    """The fields of a record do not fit into it, by the rule with this number.

    They go on to byte ``needed`` at least, if that is known; ``is_negative`` if a length is less
    than what it counts at least.
    """

    def __init__(
        self, number: int = BAD_SIZE, needed: int = 0, *, is_negative: bool = False
    ) -> None:
        super().__init__(number)
        self.number = number
        self.needed = needed
        self.is_negative = is_negative


class RefusalError(Exception):
    """A value that cannot be written: the number of a rule, and a message without the record.

    ``remedy`` replaces that of the rule.
    """

    def __init__(self, number: int, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.number = number
        self.message = message
        self.remedy = remedy


class Cursor:
    """Reads the fields of one record, from byte ``at`` to ``limit`` of ``data``.

    Fields read with it one after another, and leave here what they find. The state stays as it is
    until the record is read whole: what the record changes waits in ``sets`` and ``effects``.
    """

    wanted: int | None = None
    """With ``views``, the byte that `fxf explain` asks for, near which long data are shown."""
    spans: dict[Any, tuple[int, int]]
    """With ``views``, place and size of spans of bytes that were read."""
    items: dict[Any, list[tuple[Any, ...]]]
    """With ``views``, items of lists that rows are made of, with numbers and places of fields."""

    def __init__(
        self,
        data: memoryview,
        at: int,
        limit: int,
        state: State,
        views: list[FieldView] | None = None,
    ) -> None:
        self.data = data
        self.at = at
        """The next byte."""
        self.limit = limit
        """The byte behind the record; within a part, behind the part."""
        self.origin = at
        """Where the record begins."""
        self.start = at
        """Where the record begins; within a part, where the part begins."""
        self.state = state
        self.big = state.big
        self.mirrored = state.mirrored
        self.known: dict[Expression, int] = dict(state.registers)
        """Numbers of fields that were read, and of registers as they were before the record."""
        self.notes: list[tuple[int, int, int]] = []
        """Findings: number of the rule, offset, value."""
        self.sets: dict[Expression, int] = {}
        """Registers that the record sets, and to what."""
        self.effects: list[tuple[Any, ...]] = []
        """What the record changes in tables (``State.apply``)."""
        self.refs: dict[str, int] = {}
        """The numbers of references, by name of the field."""
        self.differs = False
        """Whether the fields may be written as other bytes; where something is reported, too."""
        self.layout: Any = None
        """The layout of the record, or of the part, that is being read."""
        self.section = ""
        self.word = 0
        """The last word of bits."""
        self.word_nbytes = 0
        self.word_at = 0
        self.spare: Mapping[Any, bytes] = NOTHING
        """Bytes without a meaning, with those before them, of which a later field shows all."""
        self.views = views
        """Collects annotated fields for `fxf explain`, if it is a list."""
        if views is not None:
            self.spans = {}
            self.items = {}

    def short(self, nbytes: int) -> ShortError:
        """Return the error for a record that has not the next ``nbytes`` bytes."""
        return ShortError(needed=self.at + nbytes, is_negative=nbytes < 0)

    def take(self, nbytes: int) -> memoryview:
        """Return the next bytes. Raises ShortError if the record has fewer."""
        if not 0 <= nbytes <= self.limit - self.at:
            raise self.short(nbytes)
        self.at += nbytes
        return self.data[self.at - nbytes : self.at]

    def number(self, nbytes: int, *, signed: bool = False) -> int:
        """Return the next integer."""
        return int.from_bytes(self.take(nbytes), order_of(self.big), signed=signed)

    def open_word(self, nbytes: int, reserved: int) -> None:
        """Read the next word of bits; report bits that are set and reserved."""
        self.word_at = self.at
        self.word = self.number(nbytes)
        self.word_nbytes = nbytes
        if self.mirrored:
            reserved = mirror(reserved, nbytes)
        stray_bits = self.word & reserved
        if stray_bits:
            self.note(RESERVED, stray_bits, self.word_at)
            low = (stray_bits & -stray_bits).bit_length() - 1
            high = stray_bits.bit_length() - 1
            self.bits("reserved", low, high, stray_bits >> low, "should be zero")

    def align(self, unit: int, field: Any = None) -> None:
        """Go to the next multiple of ``unit`` from the start of the record; check the bytes."""
        begin = self.at
        end = begin + (self.start - begin) % unit
        if end > self.limit:
            end = self.limit
            self.differs = True
        if self.views is not None or self.data[begin:end].tobytes().strip(b"\0"):
            self.pad_to(end, field)
        self.at = end

    def pad_to(self, end: int, field: Any = None) -> None:
        """Go to byte ``end``, which the record has; report bytes that are not zero."""
        begin = self.at
        if end > begin:
            self.at = end
            if self.data[begin:end].tobytes().strip(b"\0"):
                self.note(RESERVED, 0, begin, field)
            if self.views is not None:
                self.stretch("padding", begin)

    def note(self, number: int, value: int, offset: int | None = None, field: Any = None) -> None:
        """Report a finding by the number of its rule, at the start of the record by default.

        If the field, or else the family, has a rule of its own in place of this one, it is reported
        by that, at the start of the record or the part; 0 in its place: nothing is reported.
        """
        self.differs = True
        rules = self.layout.family.rules
        if field is not None and field.rules:
            rules = field.rules
        if number in rules:
            number = rules[number]
            offset = self.start
        if offset is None:
            offset = self.origin
        if number:
            self.notes.append((number, offset, wrapped(value)))

    def text(self, table: TextTable, index: int, field: Any) -> str:
        """Return the text of a number; report one that nothing declared."""
        text = self.state.text(table, index)
        if text is None:
            self.note(NOT_DECLARED, index, None, field)
            return table.unknown(index)
        return text

    # --- Annotated fields -----------------------------------------------------------------------

    def bits(self, name: str, low: int, high: int, value: int, meaning: str) -> None:
        """Show bits of the current word."""
        if self.views is not None:
            view = FieldView(self.word_at, low, high, name, value, meaning, self.section)
            self.views.append(view)

    def stretch(self, name: str, at: int, meaning: str | None = None) -> None:
        """Show the bytes from ``at`` to the cursor."""
        if self.views is None or at == self.at:
            return
        nbytes = self.at - at
        if nbytes <= 8 and meaning is not None:
            value = int.from_bytes(self.data[at : self.at], order_of(self.big))
            self.views.append(FieldView(at, 0, 8 * nbytes - 1, name, value, meaning, self.section))
        else:
            self.views += explain_stretch(
                self.data, at, self.at, name, self.section, meaning=meaning,
                wanted=at if self.wanted is None else self.wanted, order=order_of(self.big),
            )  # fmt: skip


class Draft(dict[Any, int]):
    """A record or a part that is written: its numbers by field, each computed when it is asked for.

    A number may follow from other fields, of whose numbers some follow from others again: each asks
    for what it needs, as ``draft[field]``, and the order comes by itself. The registers are there,
    too, and the size once it is known.
    """

    def __init__(self, layout: Any, record: Any, state: State | None, big: bool) -> None:
        super().__init__(layout.constants)
        if state is not None:
            self.update(state.registers)
        self.layout = layout
        self.record = record
        """The object with the values of the public fields."""
        self.state = state
        self.big = big
        self.mirrored = state is not None and state.mirrored
        self.at = 0
        """Bytes of the record before the field that is written."""
        self.places: dict[Any, int] = {}
        """Where fields are that have bytes; of bits, those that begin a word."""
        self._octets: dict[Any, bytes] = {}

    def __missing__(self, field: Any) -> int:
        is_there = field.when is None or self.has(field)
        number = field.written(self) if is_there else 0
        self[field] = number
        return number

    def has(self, field: Any) -> bool:
        """Return whether a field is there. Raises RefusalError if its value says otherwise."""
        if field.when is None:
            return True
        if field.is_computed:
            return bool(field.when.value(self))
        has_value = field.public and getattr(self.record, field.name) is not None
        if field.by_room:
            # The size of the record is not known yet: its value says whether the field is there.
            # With all room there is, the rest of the condition must not contradict it.
            leaves = (leaf for leaf in field.when.leaves() if leaf not in ROOMY)
            numbers = {leaf: self[leaf] for leaf in leaves if not isinstance(leaf, Constant)}
            if has_value and not field.when.value({**self, **numbers, **ROOMY}):
                raise field.unwanted()
            return has_value
        is_there = bool(field.when.value(self))
        if field.public and is_there and not has_value:
            raise field.missing()
        if has_value and not is_there:
            raise field.unwanted()
        return is_there

    def bytes_of(self, field: Any) -> bytes:
        """Return the bytes of a text or of bytes, without terminator and padding."""
        data = self._octets.get(field)
        if data is None:
            data = field.bytes_of(getattr(self.record, field.name))
            self._octets[field] = data
        return data

    def implied(self, number: Any, ways: list[tuple[str, Any, int, int]]) -> int:
        """Return a number that follows from other fields. Raises RefusalError if they disagree.

        ``ways`` are how, from which field, factor and summand (``Layout.implied``).
        """
        choice_of = self.layout.choice_of
        if len(ways) == 1 and ways[0][1] not in choice_of:
            return self._implied_by(*ways[0]) or 0
        if not any(field in choice_of for _, field, _, _ in ways):
            agreed: int = number.agreed((self._implied_by(*way), way[1].name) for way in ways)
            return agreed
        # Of the fields of a choice, only the one of the kind that the record has says something.
        implied_number = 0
        for how, field, factor, summand in ways:
            choice = choice_of.get(field)
            if choice is None or choice.of(self[choice.tag]) is field:
                implied_number = self._implied_by(how, field, factor, summand) or 0
        return implied_number

    def _implied_by(self, how: str, field: Any, factor: int, summand: int) -> int | None:
        """Return the number that a field implies; None if it is not there."""
        value = getattr(self.record, field.name)
        if how == "present":
            # Two numbers: of one that is absent, and of one that is there.
            if value is None:
                return factor
            return summand
        if value is None and field.when is not None:
            return None
        if how == "index":
            index: int = field.index_written(self)
            return index
        if how == "number":
            number_to_write: int = field.number_to_write(value)
            return number_to_write
        size: int = field.length_written(self)
        number, remainder = divmod(size - summand, factor)
        if remainder:
            raise field.uneven(size)
        return number


def mirror(mask: int, nbytes: int) -> int:
    """Return a mask of a word with its bits in the opposite order."""
    return int(f"{mask:0{8 * nbytes}b}"[::-1], 2)


def limits_of(nbits: int, signed: bool) -> tuple[int, int]:
    """Return the least and the greatest integer of that many bits."""
    if signed:
        return -1 << nbits - 1, (1 << nbits - 1) - 1
    return 0, (1 << nbits) - 1
