"""Declarations: the functions that make fields, tables, registers and rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from fxframework.errors import PluginError
from fxframework.model.schema import Column
from fxframework.wire.beside import Computed, Spare, Surplus
from fxframework.wire.choices import Again, Check, Choice, Flag
from fxframework.wire.columns import Always, Rows, ThreadIds
from fxframework.wire.expressions import Checksum, Named, Register
from fxframework.wire.families import Resume
from fxframework.wire.fields import Bits, Integer, Mark, Number
from fxframework.wire.floats import Float
from fxframework.wire.lists import Listed, Texts
from fxframework.wire.spans import Octets, Text
from fxframework.wire.state import TextTable


def bits(low: int, high: int, *, of: int | None = None, **options: Any) -> Any:
    """Bits ``low`` to ``high``, both included, of a word; bit 0 is the least significant.

    The first field of bits begins a word, and so does one with ``of``, the size of the word in
    bytes; the fields after it are of the same word. Bits that no field names are reserved: if they
    are set, that is a finding.

    Options of all numbers:

    - ``values``: names of an enumeration; ``closed``: any other number is damage.
    - ``refers``: a table whose text is shown in place of the number.
    - ``equals``: what it must be, an expression.
    - ``least``, ``most`` and ``below``: limits; ``below`` may be a register.
    - ``sets`` and ``adds``: a register that it sets, or is added to.
    - ``signed``, ``unit``.

    Options of all fields:

    - ``when``: a condition; if it does not hold, the field is not there.
    - ``tail``: the field lies behind those of derived classes.
    - ``default``: its value in a record that is made without it.
    - ``doc``: what it is for.
    - ``rules``: rules of the format's own, by the numbers of the common ones that they replace; 0
      replaces one by no finding.
    """
    return Bits(low, high, of, **options)


def flag(bit: int, *, of: int | None = None, **options: Any) -> Any:
    """A bit that is shown as true or false. Options are those of ``bits``."""
    bits_of_flag = Bits(bit, bit, of, **options)
    bits_of_flag.flag = True
    return bits_of_flag


def number_of(number: Any, *, signed: bool = False, **common: Any) -> Any:
    """An earlier field of bits as a number, which is written in its place."""
    return Again(number, signed=signed, **common)


def surplus(rule: int, *, unit: int = 1) -> Any:
    """Bytes of a part behind the fields that are declared: a finding says how many units."""
    return Surplus(rule, unit=unit)


def flag_of(number: Any, **common: Any) -> Any:
    """An earlier number as true (odd) or false, which is written in its place as 1 or 0."""
    return Flag(number, **common)


def choice(tag: Any, kinds: dict[int, Any], other: Any = None, **common: Any) -> Any:
    """A value of one of several kinds, by an earlier number, the ``tag``.

    ``kinds`` has a field for each number, ``other`` is the field for all other numbers; ``None`` in
    their place is a kind without bytes.
    """
    return Choice(tag, kinds, other, **common)


def finding(rule: int, when: Any, value: Any = 0) -> Any:
    """A finding by a rule of the format's own, if a condition holds. It has no bytes.

    Its name begins with ``_``.
    """
    return Check(rule, when, value)


def integer(nbytes: int, *, signed: bool = False, **options: Any) -> Any:
    """An integer of 1 to 8 bytes. Options are those of ``bits``."""
    if not 1 <= nbytes <= 8:
        raise PluginError(f"an integer of {nbytes} bytes: it has 1 to 8")
    return Integer(nbytes, signed=signed, **options)


def u8(**options: Any) -> Any:
    """An unsigned integer of 1 byte. Options are those of ``bits``."""
    return integer(1, **options)


def u16(**options: Any) -> Any:
    """An unsigned integer of 2 bytes. Options are those of ``bits``."""
    return integer(2, **options)


def u32(**options: Any) -> Any:
    """An unsigned integer of 4 bytes. Options are those of ``bits``."""
    return integer(4, **options)


def u64(**options: Any) -> Any:
    """An unsigned integer of 8 bytes. Options are those of ``bits``."""
    return integer(8, **options)


def i8(**options: Any) -> Any:
    """A signed integer of 1 byte. Options are those of ``bits``."""
    return integer(1, signed=True, **options)


def i16(**options: Any) -> Any:
    """A signed integer of 2 bytes. Options are those of ``bits``."""
    return integer(2, signed=True, **options)


def i32(**options: Any) -> Any:
    """A signed integer of 4 bytes. Options are those of ``bits``."""
    return integer(4, signed=True, **options)


def i64(**options: Any) -> Any:
    """A signed integer of 8 bytes. Options are those of ``bits``."""
    return integer(8, signed=True, **options)


def f32(*, unit: str = "", **common: Any) -> Any:
    """A floating-point number of 4 bytes. ``least`` and ``most`` are limits; NaN exceeds them."""
    return Float(4, unit=unit, **common)


def f64(*, unit: str = "", **common: Any) -> Any:
    """A floating-point number of 8 bytes. ``least`` and ``most`` are limits; NaN exceeds them."""
    return Float(8, unit=unit, **common)


def text(nbytes: Any = None, **options: Any) -> Any:
    """UTF-8 of ``nbytes`` (a number, a field or an expression), or all that the record has left.

    If the size is one field, perhaps times a number plus a number, that field follows from the text
    when the record is written. The fields of any other expression are shown, and must agree.

    - ``until``: a byte that ends it, in place of a size.
    - ``pad``: a byte that fills it up.
    - ``align``: zero bytes follow, up to a multiple of so many bytes from the record's start.
    - ``defines=names[number]``: declares it in a table.
    - ``refers=names[number]``: shows a text of a table. With ``inline``, a bit of the number, the
      text may be here instead: then the bit is set, and the lower bits say how long it is.
      ``empty`` is the number of the empty text.
    """
    return Text(nbytes, **options)


def octets(nbytes: Any = None, **options: Any) -> Any:
    """Bytes, shown in hex. Sizes and options are those of ``text``, without tables."""
    return Octets(nbytes, **options)


def listed(item: Any, count: Any = None, **common: Any) -> Any:
    """A list of parts (a class derived from ``Part``) or of numbers (``listed(u32(), count)``).

    Without a ``count`` it has all that the record has left.
    """
    return Listed(item, count, **common)


def texts(size: Any, **options: Any) -> Any:
    """Texts, each behind its size (an integer); a size of zero ends them.

    There are up to ``most`` texts of up to ``longest`` bytes; ``many`` and ``long`` are the rules
    for more of them and for longer ones: a rule of reading and one of writing each.
    """
    return Texts(size, **options)


def spare(nbytes: int, *, after: Any = None, **common: Any) -> Any:
    """Bytes without a meaning, which writers need not clear: kept, and shown if not all are zero.

    The value is empty if all are zero. ``after`` is an earlier, hidden spare field: its bytes are
    shown here, before the field's own.
    """
    return Spare(nbytes, after=after, **common)


def computed(value: Any, *, nbits: int = 64, signed: bool = False, **common: Any) -> Any:
    """A number that is not in the file, computed from fields and registers.

    It is shown; writing ignores it, and so do comparisons of records.
    """
    return Computed(value, nbits=nbits, signed=signed, **common)


def kind(number: Any) -> Any:
    """The field of a family whose number tells the kind of a record.

    There may be two; kinds may leave the second one unused.
    """
    return _with_role(number, "kind")


def size(number: Any, *, unit: int = 1, plus: int = 0, power: bool = False) -> Any:
    """The field of a family that says how long a record is: ``number * unit + plus`` bytes.

    With ``power`` it is ``unit << number`` bytes, as of the blocks of a heap, and zero bytes fill
    the record up. The number is shown then; a record that is made without it gets the smallest one
    that fits.
    """
    size_field = _with_role(number, "size")
    if power and plus:
        raise PluginError("a size that is a power of two has no plus")
    size_field.size_unit = unit
    size_field.size_plus = plus
    size_field.size_power = power
    if power and size_field.default is attrs.NOTHING:
        size_field.default = None  # the smallest that fits
    return size_field


def resume(*, alone: bool = False, holds: Any = None, most: int = 64, **likely: range) -> Any:
    """Where reading goes on after damage, as an option of a family: ``resume=wire.resume(…)``.

    It goes on at the next multiple of ``align`` where three records in a row have a known kind, a
    possible size and likely numbers (``severity=range(1, 128)``, by the names of their fields);
    fewer will do at the end of the file. ``holds`` is the class of the items that fill a record, by
    default that of its last list. With ``alone``, one record that its items fill is enough;
    without, a record counts only if its items fill it. ``most`` items are looked at. Records of
    kinds that are not declared are damage.
    """
    return Resume(likely, alone, holds, most)


def _with_role(number: Any, role: str) -> Any:
    if not isinstance(number, Number) or number.when is not None or number.signed:
        raise PluginError(f"the {role} of a record is an unsigned number that is always there")
    number.role = role
    return number


def byte_order(number: int, nbytes: int = 4) -> Any:
    """A mark of the byte order: ``number``, in the order of this record and of all after it.

    It is shown as ``little`` or ``big``. The kind of its record must be a number that is the same
    in both orders.
    """
    return Mark(number, nbytes)


def crc32() -> Any:
    """The CRC (zlib's) of the record's bytes before the field: ``u32(equals=crc32())``."""
    return Checksum("crc32")


def byte_sum() -> Any:
    """The sum of the record's bytes before the field; ``& 0xff`` for one byte."""
    return Checksum("sum")


def byte_xor() -> Any:
    """The exclusive or of the record's bytes before the field."""
    return Checksum("xor")


def checksum(of: Callable[[Any], int]) -> Any:
    """A checksum of the format's own: a function of the record's bytes before the field."""
    return Checksum("checksum", of)


def table(name: str, *, closed: bool = False) -> Any:
    """A table of texts by number: ``defines=names[number]`` fills it, ``refers=names`` uses it.

    Nothing fills a ``closed`` one: its texts are inline or empty, and any other reference is
    damage.
    """
    return TextTable(name, closed=closed)


def register(initial: int = 0, name: str = "") -> Any:
    """A number of 64 bits that records set (``sets``, ``adds``) and later ones use."""
    return Register(initial, name)


def field(name: str) -> Any:
    """A field by its name, for the expressions of ``rows``, and of ``sets`` of a class.

    Fields use those before them, also of the family, as they are: ``pid = wire.u32()`` in front of
    the classes, ``pid: int = pid`` in the family, ``wire.text(refers=names[pid])`` in a record.
    """
    return Named(name)


def always(text: str) -> Any:
    """A text that a column has in every row; a plain text is the name of a field."""
    return Always(text)


def rows(
    table: str, record: Any, *, doc: str = "", own: Iterable[Column] = (), **columns: Any
) -> Rows:
    """A row of ``table`` for every record of a class: what each column has, by its name.

    A column has the field of this name (a text), an expression of fields and registers, a number,
    or ``always("a text")``. ``"samples.level"`` is a field of the items of a list, and each item is
    a row of its own; so is each number of a list of numbers.

    Times are in nanoseconds: a field with another ``unit`` of time (us, ms, s) is converted. A time
    that 64 bits cannot hold is the nearest one, and a finding.

    Columns that the standard table does not have begin with a prefix of the format; ``own``
    describes those that are not fields. ``doc`` says what a row is, if the table is the format's
    own.
    """
    return Rows(table, record, columns, doc, tuple(own))


def threads(process: str, thread: str) -> ThreadIds:
    """Which columns have the ids of a row's process and thread: they make the row's ``thread``.

    It is one of the ``tables`` of a format. The tables `threads` and `processes` have all ids.
    """
    return ThreadIds(process, thread)
