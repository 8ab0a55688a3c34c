"""Format: a declared format, and what reads its records one at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from fxframework.errors import Catalogue, PluginError, WriteRefusedError, refusal
from fxframework.kit.lossless import (
    DamagedRecord,
    LosslessRecord,
    PaddingRecord,
    UnknownRecord,
    record_of_json,
)
from fxframework.registry import lazy
from fxframework.wire.columns import Rows, ThreadIds, bind_all
from fxframework.wire.cursor import AT, SIZE, RefusalError, order_of
from fxframework.wire.expressions import Constant, Expression, Register, leaves_of
from fxframework.wire.families import OTHER, Family, declaration_error
from fxframework.wire.fields import Field, Integer, Number
from fxframework.wire.records import Layout, Record
from fxframework.wire.rules import DOES_NOT_FIT, WRONG_FIELDS, catalogue, refusals
from fxframework.wire.spans import Text
from fxframework.wire.state import State, TextTable

if TYPE_CHECKING:
    from fxframework.registry import Reader, Writer

Note = tuple[int, int, int]
"""A finding: the number of its rule, its byte offset, and a value."""
Json = Mapping[str, Any]
_reader_of: Callable[[Format], Reader] = lazy("fxframework.wire.plugins:reader_of")
_writer_of: Callable[[Format], Writer] = lazy("fxframework.wire.plugins:writer_of")
_document: Callable[[Format], str] = lazy("fxframework.wire.document:document")
_sample: Callable[[Format, int], bytes] = lazy("fxframework.wire.sample:sample")

LEAST_MAGIC = 4
"""Bytes that every record begins with, and by which files of the format are known."""


@attrs.define(kw_only=True)
class Magic(LosslessRecord):
    """The first bytes of a file, where they are all of its header."""

    record: ClassVar[str] = "header"


class Format:
    """A format: its records, its tables, and the readers and writers that follow from them.

    ``base`` is the family of its records. Files begin with ``magic``, or with a record of the class
    ``header``; else the constants that every record begins with are known. ``codes`` is the prefix
    of its findings; ``rules`` are further ones, of the author.
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
        self.family: Family = base.layout.family
        self.classes = self._classes()
        """The classes of records: of all kinds, or the base alone if there are no kinds."""
        self._check_beginning()
        self._check_records()
        marked = [cls for cls in self.classes if cls.layout.mark is not None]
        if len(marked) > 1:
            raise declaration_error(marked[1], None, "is a second record with a byte order")
        self.marked = next(iter(marked), None)
        """The class of the record with a mark of the byte order."""
        self.kinds: dict[str, type[LosslessRecord]] = self._by_name()
        """The classes by name, with those that every format has."""
        self.rules: Catalogue = catalogue(codes, title, rules)
        self.refusals = refusals(self.rules)
        tables = list(tables)
        self.tables = tuple(rows for rows in tables if isinstance(rows, Rows))
        bind_all(self.tables, self)
        self.task_columns: tuple[str, ...] = ()
        """Columns with the ids of process and thread, if there are such."""
        for threads in tables:
            if isinstance(threads, ThreadIds):
                self.task_columns = tuple(threads)
                if not any({*threads} <= rows.known.keys() for rows in self.tables):
                    raise PluginError(f"{name}: no table has both columns {' and '.join(threads)}")
        self.registers, self.text_tables = self._state()
        self.compiled: dict[tuple[str, ...], Any] = {}
        """What was made of the declarations so far."""
        self.opened: Any = None
        """The class of captures, once one was opened."""

    # --- Checks of the declaration: PluginError says what contradicts what ----------------------

    def _classes(self) -> list[type[Record]]:
        """Return the classes of records."""
        if not self.family.kinds:
            return [self.base]
        if not self.family.members:
            raise PluginError(f"{self.name}: {self.base.__qualname__} has no records of any kind")
        return self.family.classes

    def _check_beginning(self) -> None:
        """Check what a file begins with, and the order of its bytes."""
        header = self.header
        if self.magic and header is not None:
            raise PluginError(f"{self.name}: a file begins with a magic or with a header, not both")
        if header is not None and header.layout.mark is not None:
            reason = "a header has no byte order; make it the first record of the format"
            raise declaration_error(header, header.layout.mark, reason)
        if self.order not in ("little", "big"):
            raise PluginError(f"{self.name}: order is {self.order!r}, not 'little' or 'big'")

    def _check_records(self) -> None:
        """Check kinds and sizes of the records, and of the parts in them."""
        layouts = every_layout(cls.layout for cls in self.classes)
        for family in {layout.family for layout in layouts}:
            if family.other is None:
                continue
            # Records of other kinds differ in this number, so they have to show it.
            for field in family.kinds:
                if not field.public:
                    reason = "tells which other kind it is, so its name must be public"
                    raise declaration_error(family.other, field, reason)
        align = self.family.align
        if align < 1 or align & align - 1:
            raise declaration_error(self.base, None, f"align is {align}, not a power of two")
        for cls in self.classes:
            is_sized = cls.layout.is_sized
            if cls.layout.tail and not is_sized:
                raise declaration_error(cls, None, "has a tail, but no size says where it is")
            if not cls.layout.least and not is_sized:
                raise declaration_error(cls, None, "may have no bytes at all")
        for cls in self.classes_with_header:
            check_depth(cls.layout, ())

    def _by_name(self) -> dict[str, type[LosslessRecord]]:
        """Return the classes by the names of their records."""
        kinds: dict[str, type[LosslessRecord]] = {}
        for cls in self.classes_with_header:
            namesake: Any = kinds.get(cls.record)
            if namesake is not None:
                # A kind may have a class for each version, all of one name.
                is_version = namesake.layout.kind == cls.layout.kind and cls.layout.when is not None
                if not is_version:
                    raise declaration_error(cls, None, f"two records are called {cls.record}")
            kinds[cls.record] = cls
        kinds_of_all: dict[str, type[LosslessRecord]] = {}
        if self.magic:
            kinds_of_all["header"] = Magic
        kinds_of_all |= {
            "unknown": UnknownRecord,
            "padding": PaddingRecord,
            "damaged": DamagedRecord,
        }
        for name in kinds_of_all.keys() & kinds.keys():
            reason = f"every format has records called {name}; give another name=…"
            raise declaration_error(kinds[name], None, reason)
        return kinds | kinds_of_all

    def layouts(self) -> Iterator[Layout]:
        """Yield the layouts of all records, and of the parts in them."""
        return every_layout(cls.layout for cls in self.classes_with_header)

    @property
    def classes_with_header(self) -> list[type[Record]]:
        """The classes of records, and that of the header."""
        if self.header is None:
            return self.classes
        return [*self.classes, self.header]

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
        terms: list[Expression | None] = []
        tables: list[TextTable | None] = []
        for layout in self.layouts():
            terms += [layout.when, *layout.changed, *layout.sets.values()]
            tables += layout.clears
            for field in layout.fields:
                terms += field.expressions()
                if isinstance(field, Number):
                    tables.append(field.refers)
                if isinstance(field, Text):
                    tables += [entry.table for entry in (field.defines, field.entry) if entry]
        for rows in self.tables:
            terms += rows.expressions
        leaves = (leaf for term in terms for leaf in leaves_of(term))
        # Dictionaries without values: sets that keep their order. Place and size do not belong to
        # the file: each record has its own.
        registers = dict.fromkeys(leaf for leaf in leaves if isinstance(leaf, Register))
        for of_record in (AT, SIZE):
            registers.pop(of_record, None)
        return list(registers), list(dict.fromkeys(filter(None, tables)))

    @functools.cached_property
    def candidates(self) -> list[list[Any]]:
        """For each entry of the framing, the classes that its records may be of, in order."""
        if not self.family.kinds:
            return [[self.base]]
        other = [] if self.family.other is None else [self.family.other]
        candidates: list[list[Any]] = []
        for first, second, _ in kinds_of(self):
            # A class of one number has records of any second one; one of two numbers has only its
            # own, and none where records have no second one (-1).
            of_entry = [
                cls for cls in self.family.members if cls.layout.kind in ((first,), (first, second))
            ]
            candidates.append(of_entry + other)
        if other:
            return [*candidates, other]
        return candidates

    @property
    def constant(self) -> bytes:
        """The bytes that every file begins with: its magic, or the constants of its first record.

        That is the header, or a record of any kind: at least LEAST_MAGIC bytes before its kind.
        """
        data = self.magic
        if self.header is None and data:
            return data
        first_record = self.header or self.base
        for field in first_record.layout.fields:
            if not (isinstance(field, Integer) and isinstance(field.equals, Constant)):
                break
            number = field.equals.number & (1 << 8 * field.nbytes) - 1
            data += number.to_bytes(field.nbytes, order_of(self.order == "big"))
        # Records of many formats begin with the same one or two bytes.
        if self.header is None and len(data) < LEAST_MAGIC:
            return b""
        return data

    @property
    def opening(self) -> bytes:
        """What a file begins with whose own header is lost: the magic, or a header of defaults.

        Empty if a field of the header has no default.
        """
        if self.header is None:
            return self.magic
        if any(field.default is attrs.NOTHING for field in self.header.layout.public):
            return b""
        return self.header().pack(self.state())

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
        return bool(self.timed_tables) and not any(layout.changes_state for layout in layouts)

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
        return _reader_of(self)

    @property
    def writer(self) -> Writer:
        """The writer (``fxframework.registry.Writer``)."""
        return _writer_of(self)

    # --- Records, one at a time -----------------------------------------------------------------

    @functools.cached_property
    def begin(self) -> int:
        """The fewest bytes before the first record."""
        if self.header is None:
            return len(self.magic)
        return self.header.layout.least

    def from_json(self, given: Json, state: State | None = None) -> LosslessRecord:
        """Return the record that a JSON object describes. Raises WriteRefusedError.

        Of classes of one name, the one is taken that can follow in a state.
        """
        kinds = self.kinds
        if self.family.versioned:
            known = (state or self.state()).registers
            kinds = kinds | {cls.record: cls for cls in self.classes if cls.layout.fits(known)}
        record: LosslessRecord = record_of_json(given, kinds, self.name, self.refusals)
        return record

    def pack(self, record: LosslessRecord, state: State | None) -> bytes:
        """Return the bytes of the fields of a record. Raises WriteRefusedError.

        Without a state, numbers that refer to texts are taken from the record's ``refs``.
        """
        if isinstance(record, Magic):
            return self.magic
        if isinstance(record, PaddingRecord):
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
        return _document(self)

    def sample(self, nbytes: int) -> bytes:
        """Return a typical file of about ``nbytes`` bytes."""
        return _sample(self, nbytes)

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
    visited: set[int] = set()
    while waiting:
        layout = waiting.pop(0)
        if id(layout) in visited:
            continue
        visited.add(id(layout))
        yield layout
        for field in layout.fields:
            waiting += layouts_in(field)


def layouts_in(field: Field) -> list[Layout]:
    """Return the layouts of the parts in a list; none for another field."""
    item = getattr(field, "item", None)
    if item is None or not hasattr(item, "layout"):
        return []
    return [part.layout for part in (item, *item.layout.family.classes)]


def check_depth(layout: Layout, around: tuple[Layout, ...]) -> None:
    """Refuse a part that is declared to hold itself, given the layouts ``around`` it."""
    for field in layout.fields:
        for inner in layouts_in(field):
            if inner in (*around, layout):
                reason = "holds parts of its own family; declare a family for each depth"
                raise declaration_error(layout.cls, field, reason)
            check_depth(inner, (*around, layout))


def kinds_of(format: Format) -> list[tuple[int, int, type[Record]]]:
    """Return first and second number of each kind with its class, ordered for ``Framing``."""
    if not format.family.kinds:
        return [(0, -1, format.base)]
    class_of: dict[tuple[int, int], type[Record]] = {}
    for cls in format.classes:
        kind = cls.layout.kind
        if kind != (OTHER,):
            second = kind[1] if len(kind) > 1 else -1
            class_of.setdefault((kind[0], second), cls)
    # Those of two numbers before those of the first one alone, which have all the others.
    ordered = sorted(class_of, key=lambda kind: (kind[0], -kind[1]))
    return [(first, second, class_of[first, second]) for first, second in ordered]
