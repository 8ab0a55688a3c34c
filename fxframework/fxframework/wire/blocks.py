"""Blocks: the records of a declared format, thousands at a time, as columns of tables.

``BlockReader`` reads a file from its beginning. A block ends where it is full, and nowhere else, so
that it is the same whatever is asked for. Within a block, records are read in *runs*:

1. The framing (``framing``) finds where records begin and end.
2. A plan (``plans``) says in which order their classes are read, each as columns (``many``), and
   when registers are known (``state``).
3. Texts get their codes in the order of the file, references are looked up, findings are put in
   order (``findings``), and rows where they belong (``cells``).

A record that columns cannot say is *odd*: it is read as an object (``walk``), and its rows and
findings are put in place. If later records depend on it, the run ends there and another begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.io.limits import Limits
from fxframework.io.source import RELEASED, Source
from fxframework.kernels.pools import codes_of
from fxframework.model.strings import StringPool
from fxframework.wire.cells import (
    Cells,
    ObjectRows,
    RowSource,
    TableColumns,
    merged,
    rows_of_class,
)
from fxframework.wire.choices import Again
from fxframework.wire.columns import Rows
from fxframework.wire.cursor import AT, SIZE
from fxframework.wire.expressions import Register, wrapped
from fxframework.wire.findings import FIELDS, Findings, Noted, in_order
from fxframework.wire.floats import Float
from fxframework.wire.format import Format
from fxframework.wire.framing import (
    BAD_SIZE,
    CUT,
    HIDING,
    NO_ORDER,
    PADDING,
    ROOM,
    UNKNOWN,
    frames_of,
    item_size,
)  # fmt: skip
from fxframework.wire.known import CODE, LENGTH, START, THERE, Codes
from fxframework.wire.many import ClassRows, Entered, FileNumbers, Many, Reading, Reference
from fxframework.wire.plans import ClassPlan, Plan, is_framed, plan_of
from fxframework.wire.spans import Span, Text
from fxframework.wire.state import Change, Registrations, State, TextTable, register_columns
from fxframework.wire.walk import Walk

if TYPE_CHECKING:
    from fxframework.kernels.frames import Frames
    from fxframework.kit.lossless import LosslessRecord

__all__ = ["Block", "BlockReader"]

I64 = NDArray[np.int64]
BLOCK_BYTES = 4 << 20
"""A block ends behind the first record that ends so many bytes from its beginning, or later."""
BLOCK_ITEMS = 500_000
"""Rows of items that a block may have, unless one record has more."""
LEAST_RUN = 64
"""Records that are read as objects after shorter runs are more and more, up to LONGEST_PAUSE."""
LONGEST_PAUSE = 1024
TIME_BEYOND = 109
REASONS = {UNKNOWN: 103, CUT: 102, NO_ORDER: 101, PADDING: 0}
"""The rules by which stretches that are not records are reported; for others it is SIZE_RULE."""
SIZE_RULE = 104
LAST = 1 << 30
"""The number of the field of findings that come behind those of all fields."""


@attrs.define(eq=False)
class Block:
    """Rows of all tables that a block of records makes."""

    tables: dict[str, list[tuple[I64, Cells]]]
    """Of each table, offsets of the records and columns, in parts that follow one another."""
    end: int
    """The byte behind its last record."""
    copies: list[tuple[I64, I64]] = attrs.field(factory=list)
    """Places and sizes of the sound records of the classes that ``BlockReader.copied`` names."""


class StateOfRun(State):
    """The state as of one record of a run, or behind the last one, for the object reader."""

    def __init__(self, reader: BlockReader, registers: dict[Any, int], *, big: bool) -> None:
        super().__init__(big=big)
        # Not the reader itself, which has the walk, which has this.
        self.registrations, self.strings = reader.registrations, reader.strings
        self.absent = reader.absent
        self.registers = dict(registers)
        self.ordinal = 0
        """The row of the run that it is as of."""

    def text(self, table: TextTable, index: int) -> str | None:
        """Return the text of a number; None if nothing declared it."""
        number = np.array([wrapped(index)])
        ordinal = np.array([self.ordinal])
        code = int(self.registrations[table].find(number, ordinal)[0])
        if code < 0:
            return None
        return self.strings.bytes_of(code).decode(errors="surrogateescape")

    def define(self, table: TextTable, index: int, text: str, start: int, nbytes: int) -> None:
        """Declare a text."""
        del start, nbytes
        code = self.strings.intern(text.encode(errors="surrogateescape"))
        self.registrations[table].define(index, code)

    def clear(self, table: TextTable) -> None:
        """Forget all texts of a table."""
        self.registrations[table].clear()


class BlockReader:
    """Reads the records of a file into blocks. ``strings`` is the pool that gets the texts.

    ``watch`` are kinds of records that ``seen`` gets as objects, in the order of the file.
    ``tables`` say which rows records make. ``fxframework.wire.lines`` makes lines of them instead.
    """

    for_lines: ClassVar[bool] = False
    """Whether lines are made, for which ``Reading`` keeps more."""
    without: ClassVar[frozenset[Any]] = frozenset()
    """Fields that are not read (``Reading.without``)."""
    mirrored = False
    """Whether bits of words count from the most significant one."""
    short_rule: ClassVar[int] = SIZE_RULE
    """The rule by which records are reported into which a field does not fit."""

    def __init__(
        self,
        format: Format,
        source: Source,
        limits: Limits,
        strings: StringPool,
        *,
        tables: tuple[Rows, ...],
        watch: tuple[type[LosslessRecord], ...] = (),
        seen: Callable[[LosslessRecord], None] = lambda _: None,
        growing: bool = False,
    ) -> None:
        self.format = format
        self.tables = tables
        self.source = source
        self.strings = strings
        self.watch, self.seen = watch, seen
        self.numbers = FileNumbers(source.data if source.size else np.zeros(0, np.uint8))
        self.plan = plan_for(format)
        self.frames, self.walk = self.begin(limits)
        self.frames.growing = self.walk.frames.growing = int(growing)
        self.findings = Findings(limits.max_findings)
        self.registers: dict[Register, int] = {each: each.initial for each in format.registers}
        self.registrations = {table: Registrations() for table in format.text_tables}
        self.columns = {
            name: TableColumns([rows for rows in tables if rows.table == name], strings.intern)
            for name in dict.fromkeys(rows.table for rows in tables)
        }  # fmt: skip
        self.objects = [ObjectRows(rows, self.columns[rows.table]) for rows in tables]
        self.candidates = format.candidates
        self.needs_places = [
            any(needs_places(rows) for rows in tables if rows.record in classes)
            for classes in self.candidates
        ]
        """Whether rows of an entry's records need the places of their fields."""
        self.absent: dict[bytes, int] = {}
        """That of ``State``, which lasts longer than one."""
        self.kinds: dict[str, int] = {}
        self.at = 0
        self.records = 0
        self.handed = 0
        """Records that were read as objects because they are odd."""
        self.sound = 0
        """The end of the last stretch that is not damaged."""
        self.header = b""
        """The bytes before the first record, if they are sound."""
        self.copied = [cls for cls in format.classes if cls.layout.changes_state]
        """Classes of records whose places blocks have."""
        self.longest_run = ROOM
        self.pause = 1
        self.by_objects = 0
        """Records to be read as objects before the next run."""
        least = min((least_item(rows) for rows in tables if rows.items is not None), default=0)
        self.block_bytes = min(BLOCK_BYTES, BLOCK_ITEMS * least) if least else BLOCK_BYTES

    def begin(self, limits: Limits) -> tuple[Frames, Walk]:
        """Return what finds records, and what reads one of them as an object."""
        return (
            frames_of(self.format, self.source, limits),
            Walk(self.format, self.source, None, limits),
        )

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks of the file, from its beginning; release the bytes behind them."""
        released = 0
        block = Block({name: [] for name in self.columns}, 0)
        if self.format.begin and self.source.size:
            self._read_objects(block, 1, self.source.size)
            self.handed = 0
            self.header = self.source.read(0, self.sound)
        while self.at < self.source.size:
            self._fill(block)
            block.end = self.at
            yield block
            if self.at - released > RELEASED:
                self.source.passed(released, self.at)
                released = self.at
            block = Block({name: [] for name in self.columns}, 0)
        if any(block.tables.values()) or not self.source.size:
            yield block

    def _fill(self, block: Block) -> None:
        """Read the records of a block."""
        begin = self.at
        left = ROOM
        # A run may show that the blocks of a file should be shorter, also the one at hand.
        while left and self.at < min(begin + self.block_bytes, self.source.size):
            end = begin + self.block_bytes
            before = self.records
            if self.by_objects:
                self._read_objects(block, min(left, self.by_objects), min(end, self.source.size))
                self.by_objects = 0
            else:
                self._read_some(block, min(left, self.longest_run), end)
            left -= self.records - before

    def _read_some(self, block: Block, most: int, end: int) -> None:
        """Read a run. The record at which it stopped, if there is one, is then read as an object.

        Where runs are short, more and more records are read as objects before the next one: a run
        costs as much as many objects.
        """
        run = Run(self, most, end)
        run.read()
        run.finish(block)
        if not run.stopped:
            self.longest_run = min(ROOM, 2 * self.longest_run)
            if run.count >= LEAST_RUN:
                self.pause = 1
            return
        self.longest_run = max(LEAST_RUN, 2 * run.count)
        self.by_objects = 1
        if run.count < LEAST_RUN:
            self.by_objects = self.pause
            self.pause = min(LONGEST_PAUSE, 2 * self.pause)

    def _read_objects(self, block: Block, most: int, end: int) -> None:
        """Read up to ``most`` records as objects, between runs, none from byte ``end`` on."""
        self.begin_walk()
        places: list[int] = []
        sizes: list[int] = []
        copied: list[int] = []
        notes: list[tuple[int, int, int, int]] = []
        while len(places) < most and self.walk.at < end:
            places.append(self.walk.at)
            record, found = self.next_object()
            sizes.append(record.nbytes)
            row = len(places) - 1
            notes += [(int(number), at, row, wrapped(value)) for number, at, value in found]
            if self.add_object(row, record):
                notes.append((TIME_BEYOND, record.offset, row, 0))
            if record.record != "damaged":
                self.sound = self.walk.at
            if type(record) in self.copied:
                copied.append(row)
        self.end_walk()
        self.add_findings(np.array(notes, np.int64).reshape(-1, FIELDS))
        every_place = np.array(places, np.int64)
        self.take_rows(block, [[each.source()] for each in self.objects], every_place)
        if copied:
            block.copies.append((every_place[copied], np.array(sizes, np.int64)[copied]))
        self.records += len(places)
        self.handed += len(places)

    def begin_walk(self) -> None:
        """Let objects be read from where the reader is, between runs."""
        self.walk.state = StateOfRun(self, self.registers, big=bool(self.frames.big))
        self.walk.at = self.at

    def end_walk(self) -> None:
        """Go on behind the objects that were read."""
        state = self.walk.state
        self.registers = {each: wrapped(state.registers[each]) for each in self.registers}
        self.frames.big = int(state.big)
        self.at = self.walk.at

    def next_object(self) -> tuple[LosslessRecord, Any]:
        """Return the next record as an object, and its findings."""
        walk = self.walk
        if walk.at == 0 and self.format.begin:
            head: tuple[LosslessRecord, Any] = walk.head()
            return head
        walk.frames.big = int(walk.state.big)
        entry = walk.frames.entry_at(walk.at)
        # Only with views does the reader keep the places of fields, and it takes its time then.
        walk.views = [] if entry >= 0 and self.needs_places[entry] else None
        return walk.next()

    def add_object(self, ordinal: int, record: LosslessRecord) -> bool:
        """Take a record that was read as an object; return whether a time does not fit 64 bits."""
        self.kinds[record.record] = self.kinds.get(record.record, 0) + 1
        if isinstance(record, self.watch):
            self.see(record)
        beyond = False
        for each in self.objects:
            if type(record) is each.rows.record:
                registers = self.walk.state.registers
                beyond |= each.add(ordinal, record, self.walk.last, registers)
        return beyond

    def see(self, record: LosslessRecord) -> None:
        """Take a sound record that is wanted as an object, too."""
        self.seen(record)

    def restarts_of(self, run: Run, register: Register) -> Change | None:  # noqa: ARG002 (for others)
        """Return where a register begins again in a run, before a record; None for nowhere."""
        return None

    def end_fields(self, many: Many) -> None:
        """Go from the ends of the fields of records to those of the records."""
        many.pad_to(many.limit)

    def judge(self, many: Many) -> None:
        """Look at records whose fields were read, as for those that objects know better."""

    def follow(self, run: Run) -> None:
        """Take what the sound records of a run say about later ones, beside texts and registers."""

    def codes_of(
        self,
        run: Run,
        ordinals: I64,  # noqa: ARG002 (for others)
        starts: I64,
        lengths: I64,
    ) -> NDArray[np.int32]:
        """Return the codes of texts of a run, given in the order of the file, by their rows."""
        codes: NDArray[np.int32] = codes_of(self.strings.pool, run.reading.data, starts, lengths)
        return codes

    def report_stretches(self, run: Run, entry: int, rows: I64) -> None:
        """Report stretches that are not records, by their entry."""
        values = self.frames.kinds_found[rows] if entry == UNKNOWN else run.sizes[rows]
        run.note_rows(REASONS.get(entry, SIZE_RULE), rows, values)

    def report_short(self, run: Run, own: ClassRows, short: I64) -> None:
        """Report records into which a field does not fit, by an index of those of their class."""
        rows = own.ordinals[short]
        run.note_rows(self.short_rule, rows, run.sizes[rows])

    def look_up(self, reference: Reference) -> None:
        """Look up the texts of numbers; report those that nothing declared."""
        registrations = self.registrations[reference.table]
        codes = registrations.find(reference.numbers, reference.ordinals)
        reference.codes[:] = codes
        unknown = codes < 0
        if unknown.any():
            reference.note(unknown)

    def watched_of(self, many: Many) -> I64:
        """Return the rows of the sound records of a class that are wanted as objects, too."""
        assert many.own.sound is not None  # noqa: S101 (set by ``Run.finish``)
        is_watched = issubclass(many.layout.cls, self.watch)
        return many.own.ordinals[many.own.sound if is_watched else []]

    def take_run(self, block: Block, run: Run) -> None:
        """Add the rows of a run to a block."""
        self.take_rows(block, run.sources_of_rows(), run.places)

    def take_rows(self, block: Block, sources: list[list[RowSource]], places: I64) -> None:
        """Add the rows of a run to a block; ``sources`` are by ``tables``."""
        for name in self.columns:
            of_table = [
                source
                for rows, some in zip(self.tables, sources, strict=True)
                for source in some
                if rows.table == name and source.ordinals.size
            ]
            if of_table:
                ordinals, cells = merged(of_table, places.size)
                block.tables[name].append((places[ordinals], cells))

    def add_findings(self, rows: I64) -> None:
        """Add findings of the records from ``self.records`` on, in their order."""
        if len(rows):
            rows[:, 2] += self.records
            self.findings.add(rows)

    def count(self, kind: str, times: int) -> None:
        """Count records of a kind."""
        if times:
            self.kinds[kind] = self.kinds.get(kind, 0) + times


class Run:
    """Records that follow one another and are read together."""

    def __init__(self, reader: BlockReader, most: int, end: int) -> None:
        self.reader = reader
        frames = reader.frames
        self.big = frames.big
        """The byte order before the first record."""
        self.count, why = frames.read(reader.at, most, end)
        """Records of the run."""
        self.rows = self.count
        """Rows that were found, some of which may turn out not to belong to the run."""
        self.stopped = why == 2
        self.places = frames.places[: self.count]
        self.sizes = frames.sizes[: self.count]
        self.entries = frames.entries[: self.count]
        self.orders = frames.orders[: self.count]
        registers: dict[Any, Any] = dict(reader.registers)
        self.reading = Reading(
            reader.numbers, registers, mirrored=reader.mirrored, for_lines=reader.for_lines
        )
        self.reading.without = reader.without
        self.after: dict[Any, Any] = dict(registers)
        """The value of each register after each record."""
        self.read_classes: list[tuple[ClassPlan, Many]] = []
        self.odd_classes: list[tuple[ClassPlan, ClassRows]] = []
        self.unclaimed: dict[int, I64] = {}
        """The rows of each entry that no class has taken yet."""
        self.objects: list[tuple[int, type]] = []
        """Rows and classes of the records that were read as objects."""
        self.stretches: list[tuple[int, I64]] = []
        """Rule and rows of stretches that are not records."""

    # --- Records --------------------------------------------------------------------------------

    def read(self) -> None:
        """Read the fields of all records."""
        if not self.count:
            return
        self._cut_where_nothing_fits()
        self._sort()
        for step in self.reader.plan.steps:
            if isinstance(step, ClassPlan):
                self._read_class(step)
            else:
                self._find_register(step)
        for plan, many in self.read_classes:
            many.read_fields(plan.late)
        for rows in self.unclaimed.values():  # no class of the kind fits the registers
            if rows.size:
                own = ClassRows.of(rows)
                own.odd[:] = True
                self.odd_classes.append((self.reader.plan.unfitting, own))

    def cut(self, row: int) -> None:
        """End the run before a row."""
        if row < self.count:
            self.count = row
            self.stopped = True

    def _cut_where_nothing_fits(self) -> None:
        """End the run where a format without kinds says that no record begins."""
        format = self.reader.format
        if not format.choosy or format.family.kinds:
            return
        data, fits = self.reader.walk.data, format.base.fits
        for row, place in enumerate(self.places.tolist()):
            if self.entries[row] >= 0 and not fits(data, place):
                self.cut(row)
                return

    def _sort(self) -> None:
        """Find the rows of each entry, and report those that are not records."""
        entries = self.entries
        first = int(entries[0])
        if (entries == first).all():
            by_entry = {first: np.arange(self.rows)}
        else:
            counts = np.bincount(entries - HIDING)
            present = (np.flatnonzero(counts) + HIDING).tolist()
            by_entry = {entry: np.flatnonzero(entries == entry) for entry in present}
        for entry, rows in by_entry.items():
            if entry >= 0:
                self.unclaimed[entry] = rows
            else:
                self.stretches.append((entry, rows))

    def _rows_of(self, plan: ClassPlan) -> I64:
        """Return the rows of the records of a class, and take them."""
        taken: list[I64] = []
        for entry, rows in list(self.unclaimed.items()):
            classes = self.reader.candidates[entry]
            if not rows.size or plan.cls not in classes:
                continue
            if classes[0] is plan.cls and plan.cls.layout.when is None:
                taken.append(rows)
                del self.unclaimed[entry]
                continue
            mine = np.ones(rows.size, bool)
            for cls in classes:
                fits = self._fits(cls, rows)
                mine &= fits if cls is plan.cls else ~fits
                if cls is plan.cls:
                    break
            taken.append(rows[mine])
            self.unclaimed[entry] = rows[~mine]
        if not taken:
            return np.zeros(0, np.int64)
        return taken[0] if len(taken) == 1 else np.sort(np.concatenate(taken))

    def _fits(self, cls: Any, rows: I64) -> NDArray[np.bool_]:
        """Return which rows may be records of a class, by the registers before them."""
        if cls.layout.when is None:
            return np.ones(rows.size, bool)
        own = ClassRows.of(rows)
        places = self.places[rows]
        return ~Many(self.reading, cls.layout, own, places, places, big=False).fails(
            cls.layout.when
        )

    def _read_class(self, plan: ClassPlan) -> None:
        """Read the records of a class, those of each byte order by themselves."""
        rows = self._rows_of(plan)
        if not rows.size:
            return
        if plan.one_by_one:
            own = ClassRows.of(rows)
            own.odd[:] = True
            self.odd_classes.append((plan, own))
            self.cut(int(rows[0])) if plan.stops else None
            return
        orders = self.orders if rows.size == self.rows else self.orders[rows]
        for big in (False, True):
            of_order = rows[orders == big] if orders.any() != orders.all() else rows
            if of_order.size and bool(self.orders[of_order[0]]) == big:
                self._read_columns(plan, of_order, big=big)

    def _read_columns(self, plan: ClassPlan, rows: I64, *, big: bool) -> None:
        """Read the fields of records of a class as columns."""
        layout = plan.cls.layout
        own = ClassRows.of(rows)
        places, sizes = self.places, self.sizes
        if rows.size < self.rows:
            places, sizes = places[rows], sizes[rows]
        framed = is_framed(layout)
        ends = places + sizes if framed else np.full(rows.size, self.reader.source.size)
        many = Many(self.reading, layout, own, places, ends, big=big)
        many.known[SIZE] = sizes if framed else 0
        if rows.size == self.rows and layout.fixed and (sizes == sizes[0]).all():
            many.step = int(sizes[0])
        layout.read_many(many, plan.late)
        if framed:
            self.reader.end_fields(many)
        if not framed or many.at() is not ends:
            elsewhere = many.at() != places + sizes
            if elsewhere.any():
                many.hand_over(elsewhere & ~own.short)
        self.reader.judge(many)
        self._enter_columns(many)
        self.read_classes.append((plan, many))
        if plan.stops and own.odd.any():
            self.cut(int(rows[np.argmax(own.odd)]))
        if plan.stops_if_short and own.short.any():
            self.cut(int(rows[np.argmax(own.short)]))

    def _enter_columns(self, many: Many) -> None:
        """Let texts that columns of codes have be entered."""
        for rows in self.reader.tables:
            if rows.record is not many.layout.cls:
                continue
            for name, source in rows.sources.items():
                if not isinstance(source, Span) or rows.known[name].kind != "code":
                    continue
                if isinstance(source, Text) and source.entry is not None:
                    continue
                parts = many.own.lists.get(rows.items, []) if source in rows.inside else [many]
                for part in parts:
                    enter_texts(part, source)

    def _find_register(self, register: Register) -> None:
        """Find the values of a register before and after each record."""
        changes = [
            change
            for plan, many in self.read_classes
            for effect in plan.effects
            if effect.register is register
            for change in [self._change_of(effect, many)]
            if change.ordinals.size
        ]
        restarts = self.reader.restarts_of(self, register)
        if changes or restarts is not None:
            initial = self.reader.registers[register]
            before, after = register_columns(initial, self.rows, changes, restarts)
            self.reading.registers[register], self.after[register] = before, after

    def _change_of(self, effect: Any, many: Many) -> Change:
        """Return what the sound records of a class do to a register."""
        own = many.own
        happens = ~(own.short | own.odd)
        if effect.field is not None:
            happens &= many.known[effect.field, THERE]
        keeps = many.full(effect.keeps.column(many))
        beyond = np.flatnonzero(happens & (keeps >> 1 != 0))
        if beyond.size:  # neither 0 nor 1, set nor added to: an object knows what becomes of it
            own.odd[beyond] = True
            self.cut(int(own.ordinals[beyond[0]]))
        values = many.full(effect.value.column(many))
        if happens.all():
            return Change(own.ordinals, values, keeps == 1)
        return Change(own.ordinals[happens], values[happens], keeps[happens] == 1)

    # --- What becomes of them -------------------------------------------------------------------

    def finish(self, block: Block) -> None:
        """Enter texts, report findings, add the rows to a block, and go behind the run."""
        reader, count = self.reader, self.count
        if not count:
            return
        for plan, many in self.read_classes:
            own = many.own
            own.settle(count)
            reader.count(plan.cls.record, own.ordinals[own.sound].size)
        reader.follow(self)
        self._enter_texts()
        self._look_up()
        self._report_stretches()
        self._read_objects()
        reader.take_run(block, self)
        reader.add_findings(in_order(reader.findings.left_to_list(self.reading.notes)))
        self._copy(block)
        self._settle()
        self._let_go()

    def _enter_texts(self) -> None:
        """Give all texts their codes, in the order of the file, and define them in tables."""
        found: list[tuple[Entered, Any]] = []
        for entered in self.reading.entered:
            own = entered.own
            assert own.sound is not None  # noqa: S101 (set by ``finish``)
            everything = slice(None)
            index = everything if own.all_sound else np.flatnonzero(own.sound[entered.rows])
            found.append((entered, index))
        if found:
            starts = joined([entered.starts[index] for entered, index in found])
            lengths = joined([entered.lengths[index] for entered, index in found])
            ordinals = joined(
                [entered.own.ordinals[entered.rows[index]] for entered, index in found]
            )
            order = order_of_places(ordinals, starts)
            if order is None:
                codes = self.reader.codes_of(self, ordinals, starts, lengths)
            else:
                codes = np.empty(starts.size, np.int32)
                codes[order] = self.reader.codes_of(
                    self, ordinals[order], starts[order], lengths[order]
                )
            begin = 0
            for entered, index in found:
                end = begin + entered.codes[index].size
                entered.codes[index] = codes[begin:end]
                begin = end
        for table, registrations in self.reader.registrations.items():
            self._define(table, registrations, found)

    def _define(
        self, table: Any, registrations: Registrations, found: list[tuple[Entered, Any]]
    ) -> None:
        """Tell a table what the run declares in it."""
        defining = [(entered, index) for entered, index in found if entered.table is table]
        clears = [
            many.own.ordinals[many.own.sound]
            for plan, many in self.read_classes
            if any(each is table for each in plan.cls.layout.clears)
        ]
        if not defining and not clears:
            return
        ordinals, numbers, codes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], []
        for entered, index in defining:
            assert entered.numbers is not None  # noqa: S101 (they are with a table)
            ordinals.append(entered.own.ordinals[entered.rows[index]])
            numbers.append(entered.numbers[index])
            codes.append(entered.codes[index])
        registrations.begin(
            np.concatenate(ordinals),
            np.concatenate(numbers),
            np.concatenate([np.zeros(0, np.int32), *codes]),
            np.sort(np.concatenate([np.zeros(0, np.int64), *clears])),
        )

    def _look_up(self) -> None:
        """Look up all references; those to nothing are findings, and show their numbers."""
        for reference in self.reading.references:
            self.reader.look_up(reference)
        if self.reading.for_lines:  # which write the numbers themselves
            return
        for reference in self.reading.references:
            sound = reference.own.sound
            assert sound is not None  # noqa: S101 (set by ``finish``)
            missing = np.flatnonzero(reference.codes < 0)
            if not missing.size:
                continue
            missing = missing[sound[reference.rows][missing]]
            if not missing.size:
                continue
            numbers, where = np.unique(reference.numbers[missing], return_inverse=True)
            texts = [
                reference.table.unknown(number % (1 << 64) if reference.unsigned else number)
                for number in numbers.tolist()
            ]
            codes = np.array([self.reader.strings.intern(text.encode()) for text in texts])
            reference.codes[missing] = codes[where]

    def _report_stretches(self) -> None:
        """Report and count what is not a record: damaged, unknown and padding stretches."""
        for entry, every_row in self.stretches:
            rows = every_row[every_row < self.count]
            kind = {UNKNOWN: "unknown", PADDING: "padding"}.get(entry, "damaged")
            self.reader.count(kind, rows.size)
            self.reader.report_stretches(self, entry, rows)
        for _, many in self.read_classes:
            own = many.own
            if own.all_sound:
                continue
            short = np.flatnonzero(own.short & ~own.odd & (own.ordinals < self.count))
            self.reader.count("damaged", short.size)
            self.reader.report_short(self, own, short)

    def note_rows(
        self, number: int, rows: I64, values: I64, offsets: I64 | None = None, top: int = 0
    ) -> None:
        """Report a finding about whole rows."""
        if not number or not rows.size:
            return
        own = ClassRows.of(rows)
        own.sound = np.ones(rows.size, bool)
        offsets = self.places[rows] if offsets is None else offsets
        nothing = np.zeros(rows.size, np.int64)
        self.reading.step += 1
        self.reading.notes.append(
            Noted(
                number=number, own=own, rows=np.arange(rows.size), offsets=offsets, values=values,
                top=top, places=nothing, items=nothing, step=self.reading.step,
            )
        )  # fmt: skip

    def _read_objects(self) -> None:
        """Read odd records as objects, in place, and those that the capture watches."""
        reader = self.reader
        odd = [own.ordinals[own.odd] for _, own in self.odd_classes]
        odd += [
            many.own.ordinals[many.own.odd]
            for _, many in self.read_classes
            if not many.own.all_sound
        ]
        odd_rows = np.concatenate([np.zeros(0, np.int64), *odd])
        odd_rows = odd_rows[odd_rows < self.count]
        watched = self._watched()
        if not odd_rows.size and not watched.size:
            return
        every_row = np.unique(np.concatenate([odd_rows, watched]))
        is_odd = np.isin(every_row, odd_rows)
        for row, as_object in zip(every_row.tolist(), is_odd.tolist(), strict=True):
            reader.walk.views = [] if as_object and reader.needs_places[self.entries[row]] else None
            record, notes = self._object_at(row)
            if not as_object:
                reader.see(record)
                continue
            reader.handed += 1
            for number, offset, value in notes:
                place = np.array([row])
                self.note_rows(int(number), place, np.array([wrapped(value)]), np.array([offset]))
            if reader.add_object(row, record):
                self._note_beyond(np.array([row]))
            self.objects.append((row, type(record)))
            if record.record == "damaged":
                self.entries[row] = BAD_SIZE

    def _watched(self) -> I64:
        """Return the rows of sound records that are wanted as objects, too."""
        found = [self.reader.watched_of(many) for _, many in self.read_classes]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def _object_at(self, row: int) -> tuple[Any, Any]:
        """Return the record of a row as an object, and its findings."""
        big = bool(self.orders[row - 1]) if row else bool(self.big)
        registers = {register: self._before(register, row) for register in self.reader.registers}
        state = StateOfRun(self.reader, registers, big=big)
        state.ordinal = row
        walk = self.reader.walk
        walk.state, walk.at = state, int(self.places[row])
        return walk.next()

    def _before(self, register: Register, row: int) -> int:
        """Return the value of a register before a row."""
        value = self.reading.registers[register]
        return int(value[row]) if isinstance(value, np.ndarray) else int(value)

    def sources_of_rows(self) -> list[list[RowSource]]:
        """Return the sources of rows, by ``BlockReader.tables``; report times beyond 64 bits."""
        reader = self.reader
        sources: list[list[RowSource]] = []
        beyond: list[I64] = [np.zeros(0, np.int64)]
        for rows, objects in zip(reader.tables, reader.objects, strict=True):
            made = [objects.source()] if objects.ordinals else []
            for plan, many in self.read_classes:
                if plan.cls is rows.record:
                    some, saturated = rows_of_class(
                        rows, many, self.after, reader.columns[rows.table]
                    )
                    made += some
                    beyond.append(saturated)
            sources.append(made)
        self._note_beyond(np.unique(np.concatenate(beyond)))
        return sources

    def _note_beyond(self, rows: I64) -> None:
        """Report records with a time that 64 bits of nanoseconds cannot hold."""
        self.note_rows(TIME_BEYOND, rows, np.zeros(rows.size, np.int64), top=LAST)

    def _copy(self, block: Block) -> None:
        """Add places and sizes of records to a block."""
        copied = self.reader.copied
        rows = [
            many.own.ordinals[many.own.sound]
            for plan, many in self.read_classes
            if plan.cls in copied
        ]
        rows += [np.array([row]) for row, cls in self.objects if cls in copied]
        if rows:
            every_row = np.sort(np.concatenate(rows))
            block.copies.append((self.places[every_row], self.sizes[every_row]))

    def _settle(self) -> None:
        """Let the state be that behind the run, and go there."""
        reader, count = self.reader, self.count
        for registrations in reader.registrations.values():
            registrations.settle(count)
        for register, value in self.after.items():
            if isinstance(value, np.ndarray):
                reader.registers[register] = int(value[count - 1])
        reader.frames.big = int(self.orders[count - 1])
        reader.at = int(self.places[count - 1] + self.sizes[count - 1])
        reader.records += count
        last = self._last_sound()
        if last >= 0:
            reader.sound = int(self.places[last] + self.sizes[last])

    def _last_sound(self) -> int:
        """Return the last row that is not damaged; -1 if all are."""
        damaged = (self.entries < 0) & (self.entries != UNKNOWN) & (self.entries != PADDING)
        damaged = damaged[: self.count]
        for _, many in self.read_classes:
            own = many.own
            if not own.all_sound:
                short = own.ordinals[own.short & ~own.odd]
                damaged[short[short < self.count]] = True
        if not damaged[-1]:
            return self.count - 1
        sound = np.flatnonzero(~damaged)
        return int(sound[-1]) if sound.size else -1

    def _let_go(self) -> None:
        """Drop what refers to itself, so that the columns of the run are freed at once."""
        self.reading.forget()
        for _, many in self.read_classes:
            many.own.lists.clear()
            many.own.parts.clear()


def joined(columns: list[I64]) -> I64:
    """Return one or more columns, one after another."""
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def order_of_places(ordinals: I64, places: I64) -> I64 | None:
    """Return the order of places by row of the run, and within a row; None if they are in it."""
    if is_sorted(places) and is_sorted(ordinals):
        return None
    # Mostly a few sorted columns follow one another, and rows lie in the file one after another.
    order = np.argsort(places, kind="stable")
    return order if is_sorted(ordinals[order]) else np.lexsort((places, ordinals))


def is_sorted(numbers: I64) -> bool:
    """Return whether none of the numbers is less than the one before."""
    return bool((numbers[1:] >= numbers[:-1]).all())


def enter_texts(many: Many, field: Any) -> None:
    """Let the texts of a field be entered, of the records that have it."""
    if (field, CODE) in many.known or (field, START) not in many.known:
        return
    starts, lengths = many.known[field, START], many.known[field, LENGTH]
    there = np.flatnonzero(many.known.get((field, THERE), np.ones(starts.size, bool)))
    rows = many.rows_at(there)
    codes = np.full(there.size, -1, np.int32)
    many.reading.entered.append(Entered(many.own, rows, starts[there], lengths[there], codes))
    column = Codes(starts.size)
    column.add(there, codes)
    many.known[field, CODE] = column


def least_item(rows: Rows) -> int:
    """Return the fewest bytes of an item that makes a row."""
    assert rows.items is not None  # noqa: S101 (asked only then)
    return item_size(rows.items) or rows.items.least_item()


def needs_places(rows: Rows) -> bool:
    """Return whether rows need more of a record than its integers, which all objects keep."""
    leaves = [leaf for source in rows.sources.values() for leaf in source.leaves()]
    return rows.items is not None or any(
        isinstance(leaf, Span | Float | Again) or leaf is SIZE or leaf is AT for leaf in leaves
    )


def plan_for(format: Format) -> Plan:
    """Return the plan of a format, made once."""
    plan = format.compiled.get(("/plan",))
    if plan is None:
        plan = format.compiled["/plan",] = plan_of(format)
    return plan
