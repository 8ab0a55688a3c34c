"""Format: a declared format, and what reads its records one at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from fxframework.errors import Catalogue, PluginError, WriteRefusedError, refusal
from fxframework.kit.lossless import DamagedRecord as Damaged
from fxframework.kit.lossless import LosslessRecord, record_of_json
from fxframework.kit.lossless import PaddingRecord as Padding
from fxframework.kit.lossless import UnknownRecord as Unknown
from fxframework.registry import lazy
from fxframework.wire.columns import Rows, ThreadIds, bind_all
from fxframework.wire.cursor import RefusalError, order_of
from fxframework.wire.expressions import Constant, Expression, Register
from fxframework.wire.families import Family, declaration_error
from fxframework.wire.fields import Integer, Number
from fxframework.wire.records import OTHER, Layout, Record
from fxframework.wire.rules import DOES_NOT_FIT, WRONG_FIELDS, catalogue, refusals
from fxframework.wire.spans import Text
from fxframework.wire.state import State, TextTable

if TYPE_CHECKING:
    from fxframework.registry import Reader, Writer

__all__ = ["Damaged", "Format", "Magic", "Padding", "Unknown", "kinds_of"]

Note = tuple[int, int, int]
"""A finding: the number of its rule, its byte offset, and a value."""
Json = Mapping[str, Any]
_reader_of = lazy("fxframework.wire.plugins:reader_of")
_writer_of = lazy("fxframework.wire.plugins:writer_of")
_document = lazy("fxframework.wire.document:document")
_sample = lazy("fxframework.wire.sample:sample")


@attrs.define(kw_only=True)
class Magic(LosslessRecord):
    """The first bytes of a file, where they are all of its header."""

    record: ClassVar[str] = "header"


class Format:
    """A format: its records, its tables, and the readers and writers that follow from them.

    ``base`` is the family of its records. Files begin with ``magic``, or with a record of the class
    ``header``. ``codes`` is the prefix of its findings; ``rules`` are further ones, of the author.
    ``tables`` says which fields make which columns (``rows``), and which columns name threads
    (``threads``). ``order`` is the byte order, little or big, up to a record with a mark of its own
    (``wire.byte_order``).
    """

    def __init__(
        self,
        name: str,
        title: str,
        base: type[Record],
        *,
        codes: str,
        magic: bytes = b"",
        header: type[Record] | None = None,
        tables: Iterable[Rows | ThreadIds] = (),
        order: str = "little",
        suffixes: Iterable[str] = (),
        rules: Iterable[Any] = (),
    ) -> None:
        self.name = name
        self.title = title
        self.base = base
        self.codes = codes
        self.magic = magic
        self.header = header
        self.order = order
        self.suffixes = tuple(suffixes) or (f".{name}",)
        self.sample_records: Callable[[int], Iterable[Any]] | None = None
        """What samples are made of, in the place of records that follow from the fields: the author
        sets a function that returns records, or their JSON, for the numbers 0, 1, 2, … of turns.
        The first turn has the header, if it is a record."""
        self.capture: Any = None
        """The class of captures, if the format has one of its own (``DeclaredCapture``)."""
        family = base.layout.family
        self.family: Family = family
        if magic and header is not None:
            raise PluginError(f"{name}: a file begins with a magic or with a header, not both")
        if header is not None and header.layout.mark is not None:
            what = "a header has no byte order; make it the first record of the format"
            raise declaration_error(header, header.layout.mark, what)
        if order not in ("little", "big"):
            raise PluginError(f"{name}: order is {order!r}, not 'little' or 'big'")
        single = not family.kinds
        self.classes: list[type[Record]] = [base] if single else list(family.members)
        if not single and not self.classes:
            raise PluginError(f"{name}: {base.__qualname__} has no records of any kind")
        if family.other is not None:
            self.classes.append(family.other)
        for each in {layout.family for layout in every_layout(cls.layout for cls in self.classes)}:
            for field in each.kinds if each.other is not None else ():
                if not field.public:
                    what = "tells which other kind it is, so its name must be public"
                    raise declaration_error(each.other, field, what)
        if (family.align & family.align - 1) or family.align < 1:
            raise declaration_error(base, None, f"align is {family.align}, not a power of two")
        marks = [cls for cls in self.classes if cls.layout.mark is not None]
        if len(marks) > 1:
            raise declaration_error(marks[1], None, "is a second record with a byte order")
        self.marked = marks[0] if marks else None
        for cls in self.classes:
            sized = cls.layout.fixed or family.size is not None
            if cls.layout.tail and not sized:
                raise declaration_error(cls, None, "has a tail, but no size says where it is")
            if not cls.layout.least and not sized:
                raise declaration_error(cls, None, "may have no bytes at all")
        self.kinds: dict[str, type[LosslessRecord]] = {}
        for cls in [*self.classes, *([header] if header else [])]:
            same: Any = self.kinds.get(cls.record)
            variant = same and same.layout.kind == cls.layout.kind and cls.layout.when is not None
            if same is not None and not variant:
                raise declaration_error(cls, None, f"two records are called {cls.record}")
            self.kinds[cls.record] = cls
        every: dict[str, type[LosslessRecord]] = {"header": Magic} if magic else {}
        every |= {"unknown": Unknown, "padding": Padding, "damaged": Damaged}
        for name_of_all in every.keys() & self.kinds.keys():
            what = f"every format has records called {name_of_all}; give another name=…"
            raise declaration_error(self.kinds[name_of_all], None, what)
        self.kinds |= every
        self.rules: Catalogue = catalogue(codes, title, rules)
        self.refusals = refusals(self.rules)
        given = list(tables)
        self.tables = tuple(rows for rows in given if isinstance(rows, Rows))
        bind_all(self.tables, self)
        self.task_columns: tuple[str, ...] = ()
        """Columns with the ids of process and thread, if there are such."""
        for threads in (each for each in given if isinstance(each, ThreadIds)):
            self.task_columns = tuple(threads)
            if not any({*threads} <= rows.known.keys() for rows in self.tables):
                raise PluginError(f"{name}: no table has both columns {' and '.join(threads)}")
        self.registers, self.text_tables = self._state()
        self.compiled: dict[tuple[str, ...], Any] = {}
        """What was made of the declarations so far."""
        self.opened: Any = None
        """The class of captures, once one was opened."""

    def layouts(self) -> Iterator[Layout]:
        """Yield the layouts of all records, and of the parts in them."""
        header = [] if self.header is None else [self.header]
        return every_layout(cls.layout for cls in (*self.classes, *header))

    @functools.cached_property
    def derived(self) -> frozenset[str]:
        """The keys of record JSON that follow from others."""
        return frozenset(
            field.key
            for layout in self.layouts()
            for field in layout.public
            if layout.derives(field)
        )

    def _state(self) -> tuple[list[Register], list[TextTable]]:
        """Return the registers and tables that the records use."""
        registers: dict[Register, None] = {}
        tables: dict[TextTable, None] = {}

        def take(each: Expression) -> None:
            registers.update((leaf, None) for leaf in each.leaves() if isinstance(leaf, Register))

        for layout in self.layouts():
            for field in layout.fields:
                for each in field.expressions():
                    take(each)
                if isinstance(field, Number):
                    for register in (field.sets, field.adds):
                        registers |= {} if register is None else {register: None}
                    tables |= {} if field.refers is None else {field.refers: None}
                if isinstance(field, Text):
                    for entry in (field.defines, field.entry):
                        tables |= {} if entry is None else {entry.table: None}
            for register, value in layout.sets.items():
                registers[register] = None
                take(value)
            if layout.when is not None:
                take(layout.when)
            tables |= dict.fromkeys(layout.clears)
        for rows in self.tables:
            for each in rows.expressions:
                take(each)
        return [each for each in registers if each.name not in ("AT", "SIZE")], list(tables)

    @functools.cached_property
    def candidates(self) -> list[list[Any]]:
        """For each entry of the framing, the classes that its records may be of, in order."""
        other = [] if self.family.other is None else [self.family.other]
        if not self.family.kinds:
            return [[self.base]]
        candidates = []
        for first, second, _ in kinds_of(self):
            numbers = [first, second]
            candidates.append([
                cls
                for cls in self.family.members
                if all(
                    kind == number for kind, number in zip(cls.layout.kind, numbers, strict=False)
                ) and (second >= 0 or len(cls.layout.kind) == 1)
            ] + other)  # fmt: skip
        return [*candidates, other] if other else candidates

    @property
    def constant(self) -> bytes:
        """The bytes that every file begins with: its magic, or the constants of its header."""
        data = self.magic
        for field in () if self.header is None else self.header.layout.fields:
            if not (isinstance(field, Integer) and isinstance(field.equals, Constant)):
                break
            number = field.equals.number & (1 << 8 * field.nbytes) - 1
            data += number.to_bytes(field.nbytes, order_of(self.order == "big"))
        return data

    @property
    def opening(self) -> bytes:
        """What a file begins with whose own header is lost: the magic, or a header of defaults.

        Empty if a field of the header has no default.
        """
        public = () if self.header is None else self.header.layout.public
        has_all = all(each.default is not attrs.NOTHING for each in public)
        return self.magic if self.header is None or not has_all else self.header().pack()

    @property
    def parts_depend(self) -> bool:
        """Whether records that a part by time may lack say something about later ones."""
        return any(
            "ts" in rows.sources and rows.record.layout.changes_state for rows in self.tables
        )

    @property
    def timed_tables(self) -> list[str]:
        """The tables whose rows have times."""
        return list(dict.fromkeys(rows.table for rows in self.tables if "ts" in rows.sources))

    @property
    def merges(self) -> bool:
        """Whether captures can be merged: records have times, and none says something of others."""
        layouts = every_layout(cls.layout for cls in self.classes)
        return bool(self.timed_tables) and not any(each.changes_state for each in layouts)

    @property
    def choosy(self) -> bool:
        """Whether its records say where damage ends, which only objects ask."""
        default: Any = Record.fits
        return getattr(self.base.fits, "__func__", None) is not default.__func__

    @property
    def advice(self) -> str:
        """What the declaration lacks, so that damage costs more than it need to; else empty."""
        family = self.family
        has_mark = family.kinds or family.size is not None or family.nbytes or self.choosy
        if has_mark:
            return ""
        return (
            f"records of {self.name} have no kind and no size, so nothing shows where one begins "
            f"again behind damage: give {self.base.__name__} a `fits`"
        )

    def state(self) -> State:
        """Return the state at the beginning of a file."""
        return State(self.registers, big=self.order == "big")

    # --- Descriptors ----------------------------------------------------------------------------

    @property
    def reader(self) -> Reader:
        """The reader (``fxframework.registry.Reader``)."""
        made: Reader = _reader_of(self)
        return made

    @property
    def writer(self) -> Writer:
        """The writer (``fxframework.registry.Writer``)."""
        made: Writer = _writer_of(self)
        return made

    # --- Records, one at a time -----------------------------------------------------------------

    @functools.cached_property
    def begin(self) -> int:
        """The fewest bytes before the first record."""
        return len(self.magic) or (0 if self.header is None else self.header.layout.least)

    def from_json(self, given: Json, state: State | None = None) -> LosslessRecord:
        """Return the record that a JSON object describes. Raises WriteRefusedError.

        Of classes of one name, the one is taken that can follow in a state.
        """
        kinds = self.kinds
        if self.family.versioned:
            known = (state or self.state()).registers
            kinds = kinds | {cls.record: cls for cls in self.classes if cls.layout.fits(known)}
        record = record_of_json(given, kinds, self.name, self.refusals)
        if isinstance(record, Padding):
            record.nbytes = given["nbytes"]
        return record

    def pack(self, record: LosslessRecord, state: State | None) -> bytes:
        """Return the bytes of the fields of a record. Raises WriteRefusedError.

        Without a state, numbers that refer to texts are taken from the record's ``refs``.
        """
        if isinstance(record, Magic):
            return self.magic
        if isinstance(record, Padding):
            if record.nbytes < 0:
                raise self.refuse(DOES_NOT_FIT, f"padding: nbytes is {record.nbytes}")
            return bytes(record.nbytes)
        if not isinstance(record, Record):
            raise self.refuse(WRONG_FIELDS, f"{record.record}: raw is missing")
        try:
            data = record.pack(state)
        except RefusalError as problem:
            raise self.refused(record.record, problem) from None
        most = record.layout.most
        if 0 < most < len(data):
            raise self.refuse(
                DOES_NOT_FIT, f"{record.record}: would have {len(data)} bytes, not up to {most}"
            )
        return data

    def document(self) -> str:
        """Return the fields of all records as Markdown, for a README or docs."""
        made: str = _document(self)
        return made

    def sample(self, nbytes: int) -> bytes:
        """Return a typical file of about ``nbytes`` bytes."""
        made: bytes = _sample(self, nbytes)
        return made

    def refuse(self, number: int, message: str) -> WriteRefusedError:
        """Return the error for what cannot be written, by the number of its rule."""
        return refusal(self.rules.numbered(number), message)

    def refused(self, name: str, problem: RefusalError) -> WriteRefusedError:
        """Return the error for a record with this name, which has a problem."""
        rule = self.rules.numbered(problem.number)
        return refusal(rule, f"{name}: {problem.message}", problem.remedy)


def every_layout(layouts: Iterable[Layout]) -> Iterator[Layout]:
    """Yield layouts with those of the parts inside, each once."""
    waiting = list(layouts)
    seen: set[int] = set()
    while waiting:
        layout = waiting.pop(0)
        if id(layout) in seen:
            continue
        seen.add(id(layout))
        yield layout
        for field in layout.fields:
            item = getattr(field, "item", None)
            if item is not None and hasattr(item, "layout"):
                family = item.layout.family
                others = [] if family.other is None else [family.other]
                waiting += [each.layout for each in (item, *family.members, *others)]


def kinds_of(format: Format) -> list[tuple[int, int, type[Record]]]:
    """Return first and second number of each kind with its class, ordered for ``Framing``."""
    if not format.family.kinds:
        return [(0, -1, format.base)]
    found: dict[tuple[int, int], type[Record]] = {}
    for cls in format.classes:
        kind = cls.layout.kind
        if kind != (OTHER,):
            found.setdefault((kind[0], kind[1] if len(kind) > 1 else -1), cls)
    ordered = sorted(found.items(), key=lambda each: (each[0][0], -each[0][1]))
    return [(first, second, cls) for (first, second), cls in ordered]
