"""Records: classes whose attributes declare where their fields lie.

A class derived from ``Record`` is a *family*: its fields are what every record begins with, one of
them marked with ``kind``, perhaps one with ``size``. A class derived from a family is a record of
one kind. ``Part`` is the same for what lies inside of records: items of lists.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

import attrs

from fxframework.errors import WriteRefusedError
from fxframework.io.words import FieldView
from fxframework.kit.json_fields import JsonFields
from fxframework.kit.lossless import LosslessRecord
from fxframework.wire.choices import Choice
from fxframework.wire.cursor import SIZE, Cursor, RefusalError, ShortError
from fxframework.wire.families import OTHER, Family, Fields, declaration_error
from fxframework.wire.fields import Field
from fxframework.wire.in_json import InJson
from fxframework.wire.one import One
from fxframework.wire.shape import is_reference
from fxframework.wire.state import State

if TYPE_CHECKING:
    from fxframework.wire.many import Many

ATTRIBUTE = type(attrs.field())
"""The type of attributes of a record that are not fields of the file."""
OPTIONS_OF_BOTH = frozenset({"size", "word", "most", "sets", "clears", "keys", "name", "section"})
OPTIONS_OF_FAMILIES = OPTIONS_OF_BOTH | {"align", "pad", "padding", "resume", "rules"}
OPTIONS_OF_KINDS = OPTIONS_OF_BOTH | {"kind", "when"}
TAKEN = frozenset({"record", "offset", "nbytes", "raw", "refs", "ns", "layout", "family", "type"})
"""Names that every record has already."""


class Layout(One, InJson):
    """The fields of a class, in the order of the file: read, written, and shown."""

    @functools.cached_property
    def recovers(self) -> bool:
        """Whether the class, of parts, says what is there in place of those that do not fit."""
        own: Any = getattr(self.cls, "recover", Part.recover)
        default: Any = Part.recover
        return own.__func__ is not default.__func__

    def read_many(self, many: Many, left: Fields = Fields()) -> None:  # noqa: B008 (it is a tuple)
        """Read all fields of many records but those ``left``, each up to its limit.

        What registers and tables become of it, a plan (``wire.plans``) says.
        """
        if self.tail:
            many.limit = many.limit - self.tail
        least_before_tail = self.least - self.tail
        has_least = many.limit - many.start >= least_before_tail
        many.assured = least_before_tail if has_least.all() else 0
        in_tail = False
        for number, field in enumerate(self.fields):
            if many.index is None:
                many.top = number
            if field.tail and not in_tail:
                many.pad_to(many.limit)
                many.limit = many.limit + self.tail
                in_tail = True
            if field not in left:
                many.read_field(field)
        if self.measured:
            # Their size is where the fields end, and not what a record around a part has.
            size_outside = many.known.pop(SIZE, None)
            many.known[SIZE] = many.at() - many.start
            for number_field in self.measured:
                number_field.check_many(many)
            if size_outside is not None:
                many.known[SIZE] = size_outside


def snake_case(name: str) -> str:
    """Return the name of a class as in JSON: ``ThreadName`` becomes ``thread_name``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _declare(cls: Any, root: type, options: dict[str, Any]) -> None:
    """Make attributes and layout of a class from the fields in its body."""
    parents = (base for base in cls.__mro__[1:] if base is root or "layout" in vars(base))
    parent: Any = next(parents, root)
    # A class derived from ``Record`` or ``Part`` makes a family, and one derived from that a kind.
    family = None if parent is root else parent.layout.family
    allowed = OPTIONS_OF_FAMILIES if family is None else OPTIONS_OF_KINDS
    for option in options:
        if option not in allowed:
            raise declaration_error(cls, None, f"no option {option!r}; it has {sorted(allowed)}")
    if family is not None and parent is not family.base:
        raise declaration_error(cls, None, f"derives from {parent.__qualname__}, which is a record")
    if family is not None and family.kinds and "kind" not in options:
        raise declaration_error(cls, None, "says no kind=…")
    own = _own_fields(cls, root, family)
    family_name = "" if family is None else family.name
    cls.record = options.get("name") or family_name or snake_case(cls.__name__)
    cls.layout = Layout(cls, family, own, options, is_part=root is Part)
    if family is not None:
        family.add(cls)
    _define(cls, family, own)


def _own_fields(cls: Any, root: type, family: Family | None) -> list[Field]:
    """Return the fields in the body of a class, and tell them their names."""
    own = []
    for name, field in list(vars(cls).items()):
        if not isinstance(field, Field):
            continue
        if field.name:
            raise declaration_error(cls, field, f"is declared again as {name}")
        field.name = name
        field.owner = cls.__qualname__
        if isinstance(field, Choice):
            field.bind()
        # Only JSON of parts of several kinds has a ``type`` of its own.
        may_be_type = root is Record or family is None
        is_taken = name in TAKEN and not (name == "type" and may_be_type)
        if is_taken or name == "self" or callable(getattr(root, name, None)):
            raise declaration_error(cls, field, "the name is taken; choose another one")
        own.append(field)
    return own


def _define(cls: Any, family: Family | None, own: list[Field]) -> None:
    """Replace the fields in the body of a class by attributes of its objects."""
    attributes: dict[str, Any] = {}
    for name, value in list(vars(cls).items()):
        if isinstance(value, ATTRIBUTE):
            attributes[name] = value
            delattr(cls, name)
    for field in own:
        delattr(cls, field.name)
        if not field.public or (family is None and field.role == "kind"):
            continue
        if cls.layout.derives(field) and field.role != "kind":
            # Records are equal if what is written is; this follows from it.
            attributes[field.name] = attrs.field(default=None, eq=False)
        elif field.when is not None:
            attributes[field.name] = attrs.field(default=None, eq=field.key_of)
        else:
            attributes[field.name] = attrs.field(default=field.default, eq=field.key_of)
    if family is not None and cls.layout.kind == (OTHER,):
        attributes |= {field.name: attrs.field() for field in family.kinds if field.public}
    attrs.define(cls, these=attributes, kw_only=True, slots=False, eq=False, repr=False)


@attrs.define(kw_only=True, slots=False, eq=False, repr=False)
class Declared:
    """What records and parts have in common."""

    layout: ClassVar[Layout]
    """Its fields."""
    beside: ClassVar[frozenset[str]] = frozenset()
    """Keys of its JSON that follow from its fields, so that writing ignores them."""

    refs: dict[str, int] | None = attrs.field(default=None, eq=False)
    """Numbers of references, by field."""

    __hash__ = None  # type: ignore[assignment]

    # They are compared and shown as attrs does it, which would compile that for each class: this
    # takes as long as all else of a declaration.

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._compared() == other._compared()

    def _compared(self) -> list[object]:
        """Return the values that count when records are compared."""
        values = []
        for attribute in attrs.fields(type(self)):
            if attribute.eq:
                value = getattr(self, attribute.name)
                values.append(attribute.eq_key(value) if attribute.eq_key else value)
        return values

    def __repr__(self) -> str:
        cls = type(self)
        names = [attribute.name for attribute in attrs.fields(cls) if attribute.repr]
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{cls.__qualname__}({shown})"

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the fields as keyword arguments, from JSON."""
        return cls.layout.parse(form)


@dataclass_transform(kw_only_default=True)
@attrs.define(kw_only=True, slots=False, eq=False, repr=False)
class Record(Declared, LosslessRecord):
    """A record of a declared format.

    Options of a family:

    - ``size``: bytes of every record; ``most``: of the longest one, longer ones are damaged.
    - ``word``: bytes of a word of bits, 8 by default.
    - ``align``: records are padded to a multiple of so many bytes.
    - ``padding``: zero bytes may lie between records.
    - ``resume``: where reading goes on after damage (``wire.resume``).
    - ``rules``: the format's own rules, by the numbers of the common ones that they replace.

    Options of a kind:

    - ``kind``: its number, or two, in the order of the fields; ``when``: a condition on registers.
    - ``size`` or ``most``: as of a family; ``word``: bytes of its first word, which holds the kind
      at its place.
    - ``sets``: registers and their values; ``clears``: tables that it empties.

    Options of both: ``keys`` (their order in JSON), ``name`` (in JSON), ``section`` (of the
    format's document). Attributes that are not of the file are ``attrs.field(…)``. A class that is
    ``shared`` is the base of several families.
    """

    ns: int | None = attrs.field(default=None, eq=False)
    """Its time in nanoseconds; None if it has none."""

    def __init_subclass__(cls, *, shared: bool = False, **options: Any) -> None:
        super().__init_subclass__()
        if not shared:
            _declare(cls, Record, options)
            return
        for name, value in vars(cls).items():
            if isinstance(value, Field):
                reason = f"is shared, so {name} belongs into the families that derive from it"
                raise declaration_error(cls, None, reason)

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into a JSON object."""
        self.layout.show(self, out)

    @classmethod
    def fits(cls, data: memoryview, at: int) -> bool:  # noqa: ARG003 (for others)
        """Return whether damage may end at byte ``at``; a family may have its own.

        It is asked of places where a record of a known kind and a possible size lies that another
        one follows. By default all of them do. In a family without kinds it is asked of every
        record: where it says no, the bytes are damaged up to the next place where it says yes.
        """
        return True

    def pack(self, state: State | None = None) -> bytes:
        """Return the bytes of the fields, in a state of the tables; ``raw`` is not used.

        Raises RefusalError for a value that the format cannot represent.
        """
        big = state is not None and state.big
        mark = self.layout.mark
        if mark is not None:
            big = getattr(self, mark.name) == mark.names[1]
        return self.layout.packed(self, state, big)

    @classmethod
    def unpack(
        cls,
        data: memoryview,
        at: int,
        end: int,
        state: State,
        views: list[FieldView] | None = None,
        wanted: int | None = None,
    ) -> tuple[Self, Cursor]:
        """Return the record in bytes ``at`` to ``end``; raises ShortError if it does not fit.

        ``views`` gets its fields, of long ones what is around the byte ``wanted``. Without a size
        of its own it ends where its fields end. The cursor has the findings, and the effects on the
        state.
        """
        layout = cls.layout
        cursor = Cursor(data, at, end, state, views)
        if wanted is not None:
            cursor.wanted = wanted
        size = layout.fixed
        if not size:
            size = layout.family.size_at(data, at, state.big, state.mirrored)
        elif at + size < end:
            cursor.limit = at + size
        cursor.known[SIZE] = size
        values = layout.read(cursor)
        layout.finish(cursor, size)
        nbytes = cursor.at - at
        values["refs"] = cursor.refs or None
        record: Self = layout.made(values, at, nbytes)
        # Most records are written as they were read, and need no trial.
        may_differ = cursor.differs or not layout.is_exact or 0 < size != nbytes
        if may_differ and not record.packs_to(data[at : cursor.at], state):
            record.raw = bytes(data[at : cursor.at])
        return record, cursor

    @classmethod
    def decoded(cls, raw: bytes, state: State) -> Self | None:
        """Return the record that all of these bytes are, with its ``raw``; None for others."""
        try:
            record, _ = cls.unpack(memoryview(raw), 0, len(raw), state)
        except ShortError:
            return None
        record.raw = raw
        if record.nbytes == len(raw):
            return record
        return None

    def packs_to(self, data: memoryview, state: State) -> bool:
        """Return whether the fields alone encode to these bytes."""
        try:
            return self.pack(state) == data
        except (RefusalError, WriteRefusedError):
            return False


@dataclass_transform(kw_only_default=True)
@attrs.define(kw_only=True, slots=False, eq=False, repr=False)
class Part(Declared):
    """What lies inside of a record: an item of a list.

    Options are those of ``Record``, but for ``shared``.
    ``pad`` aligns what follows a part; the padding is not counted in its size.
    """

    record: ClassVar[str] = ""
    """Its kind, as in JSON."""

    offset: int = attrs.field(default=0, eq=False)
    """Byte offset in the (unpacked) file."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__()
        _declare(cls, Part, options)

    @classmethod
    def recover(cls, cursor: Cursor, problem: ShortError) -> Self:  # noqa: ARG003 (for others)
        """Return what stands for a part at ``cursor.at`` that cannot be read, and go behind it.

        By default the record around it is damaged: ``problem`` is raised again.
        """
        raise problem

    @classmethod
    def recovered(cls, form: JsonFields) -> dict[str, Any] | None:  # noqa: ARG003 (for others)
        """Return the fields of what ``recover`` returned, from JSON; None if it is not that.

        It is asked of JSON from which the declared fields cannot be taken.
        """
        return None

    def put(self, state: State | None, big: bool) -> bytes:
        """Return the bytes in a byte order. Raises RefusalError for a value that does not fit."""
        return self.layout.packed(self, state, big)

    def pack(self, state: State | None = None) -> bytes:
        """Return the bytes of the part. Raises RefusalError for a value that does not fit."""
        return self.put(state, state is not None and state.big)

    def to_json(self) -> dict[str, Any]:
        """Return the part as JSON."""
        shown: dict[str, Any] = {}
        self.layout.show(self, shown)
        return shown


def references(layout: Layout, values: Mapping[str, Any] | None = None) -> Iterator[Field]:
    """Yield the fields of a layout that refer to tables; of choices those for some values."""
    for field in layout.referring:
        chosen: Field | None = field
        if isinstance(field, Choice) and values:
            chosen = field.chosen(values)
        if chosen is not None and is_reference(chosen):
            yield chosen
