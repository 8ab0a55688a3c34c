"""Runs: records that follow one another, read together as columns.

``Run.read`` finds where the records are and reads their fields, class by class, in the order of the
plan. ``Run.finish`` makes of them what a block has: it enters texts, looks up references, reads
records that columns cannot hold as objects, and puts findings and rows in the order of the file.
A ``BlockReader`` has the state between runs, and is asked at each of these steps.
"""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.arrays import I64
from fxframework.kernels.sorting import stable_order
from fxframework.model.strings import StringPool
from fxframework.wire.cells import Cells, RowSource, rows_of_class
from fxframework.wire.cursor import SIZE
from fxframework.wire.expressions import Register, wrapped
from fxframework.wire.findings import Noted, in_order
from fxframework.wire.framing import BAD_SIZE, CUT, HIDING, NO_ORDER, PADDING, UNKNOWN
from fxframework.wire.known import CODE, LENGTH, START, THERE, Codes
from fxframework.wire.many import ClassRows, Entered, Many, Reading
from fxframework.wire.plans import ClassPlan
from fxframework.wire.rules import TIME_BEYOND
from fxframework.wire.spans import Span, Text
from fxframework.wire.state import Change, Registrations, State, TextTable, register_columns

# A reader is a ``fxframework.wire.blocks.BlockReader``.

REASONS = {UNKNOWN: 103, CUT: 102, NO_ORDER: 101, PADDING: 0}
"""The rules by which stretches that are not records are reported; for others it is SIZE_RULE."""
SIZE_RULE = 104
FRAMING_STOPPED = 2
"""Why ``Frames.read`` ends before a record whose size only its fields tell."""
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

    def __init__(self, reader: Any, registers: dict[Any, int], *, big: bool) -> None:
        super().__init__(big=big, mirrored=reader.mirrored)
        # Not the reader itself, which has the walk, which has this.
        self.registrations: dict[Any, Registrations] = reader.registrations
        self.strings: StringPool = reader.strings
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


class Run:
    """Records that follow one another and are read together.

    A *row* is the number of a record in the run. ``entries`` say of which kind each is, or why it
    is not a record (``framing``). ``cut`` may end the run earlier, while its columns are read: rows
    from ``count`` on then stay in the columns, but make nothing.
    """

    def __init__(self, reader: Any, most: int, end: int) -> None:
        self.reader = reader
        frames = reader.frames
        self.big = frames.big
        """The byte order before the first record."""
        count, reason = frames.read(reader.at, most, end)
        self.count: int = count
        """Records of the run."""
        self.rows = self.count
        """Rows that were found, some of which may turn out not to belong to the run."""
        self.stopped = reason == FRAMING_STOPPED
        """Whether the record behind the run has to be read as an object."""
        self.places: I64 = frames.places[: self.count]
        self.sizes = frames.sizes[: self.count]
        self.entries = frames.entries[: self.count]
        self.orders = frames.orders[: self.count]
        """The byte order behind each record, which is that of the record itself."""
        registers: dict[Any, Any] = dict(reader.registers)
        self.reading = Reading(
            reader.numbers, registers, mirrored=reader.mirrored, for_lines=reader.for_lines
        )
        self.reading.without = reader.without
        self.reading.findings = reader.findings
        self.after: dict[Any, Any] = dict(registers)
        """The value of each register after each record."""
        self.read_classes: list[tuple[ClassPlan, Many]] = []
        self.odd_classes: list[tuple[ClassPlan, ClassRows]] = []
        self.unclaimed: dict[int, I64] = {}
        """The rows of each entry that no class has taken yet."""
        self.objects: list[tuple[int, type]] = []
        """Rows and classes of the records that were read as objects."""
        self.stretches: list[tuple[int, I64]] = []
        """Entry and rows of stretches that are not records."""

    # --- Records --------------------------------------------------------------------------------

    def read(self) -> None:
        """Read the fields of all records."""
        if not self.count:
            return
        self._cut_where_nothing_fits()
        self._sort()
        candidates = [self.reader.candidates[entry] for entry in self.unclaimed]
        classes = set(itertools.chain.from_iterable(candidates))
        for step in self.reader.plan.steps:
            if isinstance(step, ClassPlan):
                if step.cls in classes:
                    self._read_class(step)
            else:
                self._find_register(step)
        # Late fields may depend on any register, and no register depends on them.
        for plan, many in self.read_classes:
            many.read_fields(plan.late)
        for rows in self.unclaimed.values():  # no class of the kind fits the registers
            if rows.size:
                self._hand_over(self.reader.plan.unfitting, rows)

    def cut(self, row: int) -> None:
        """End the run before a row."""
        if row < self.count:
            self.count = row
            self.stopped = True
            if row == 0:  # the order is that before the run, whatever its records say
                self.reader.frames.big = self.big

    def _cut_where_nothing_fits(self) -> None:
        """End the run where a format without kinds says that no record begins."""
        format = self.reader.format
        if not format.choosy or format.family.kinds:
            return
        data = self.reader.walk.data
        for row, place in enumerate(self.places.tolist()):
            if self.entries[row] >= 0 and not format.base.fits(data, place):
                self.cut(row)
                return

    def _sort(self) -> None:
        """Find the rows of each entry, and keep those that are not records."""
        entries = self.entries
        first_entry = int(entries[0])
        if (entries == first_entry).all():
            rows_by_entry = {first_entry: np.arange(self.rows)}
        else:
            # Entries of what is not a record are negative, down to HIDING.
            counts = np.bincount(entries - HIDING)
            present = (np.flatnonzero(counts) + HIDING).tolist()
            rows_by_entry = {entry: np.flatnonzero(entries == entry) for entry in present}
        for entry, rows in rows_by_entry.items():
            if entry >= 0:
                self.unclaimed[entry] = rows
            else:
                self.stretches.append((entry, rows))

    def _claim_rows(self, plan: ClassPlan) -> I64:
        """Return the rows of the records of a class, and take them from ``unclaimed``."""
        claimed: list[I64] = []
        for entry, rows in list(self.unclaimed.items()):
            classes = self.reader.candidates[entry]
            if not rows.size or plan.cls not in classes:
                continue
            if classes[0] is plan.cls and plan.cls.layout.when is None:
                claimed.append(rows)
                del self.unclaimed[entry]
                continue
            # A record is of the first of its candidates that fits the registers before it.
            is_claimed = self._fits(plan.cls, rows)
            for cls in classes[: classes.index(plan.cls)]:
                is_claimed &= ~self._fits(cls, rows)
            claimed.append(rows[is_claimed])
            self.unclaimed[entry] = rows[~is_claimed]
        if not claimed:
            return np.zeros(0, np.int64)
        if len(claimed) == 1:
            return claimed[0]
        return np.sort(np.concatenate(claimed))

    def _fits(self, cls: Any, rows: I64) -> NDArray[np.bool_]:
        """Return which rows may be records of a class, by the registers before them."""
        if cls.layout.when is None:
            return np.ones(rows.size, bool)
        places = self.places[rows]
        many = Many(self.reading, cls.layout, ClassRows.of(rows), places, places, big=False)
        return ~many.fails(cls.layout.when)

    def _hand_over(self, plan: ClassPlan, rows: I64) -> None:
        """Let all records in some rows be read as objects."""
        own = ClassRows.of(rows)
        own.odd[:] = True
        self.odd_classes.append((plan, own))

    def _read_class(self, plan: ClassPlan) -> None:
        """Read the records of a class, those of each byte order by themselves."""
        rows = self._claim_rows(plan)
        if not rows.size:
            return
        if plan.one_by_one:
            self._hand_over(plan, rows)
            if plan.stops:
                self.cut(int(rows[0]))
            return
        orders = self.orders
        if rows.size < self.rows:
            orders = orders[rows]
        if orders.any() == orders.all():
            self._read_columns(plan, rows, big=bool(orders[0]))
            return
        for big in (False, True):
            self._read_columns(plan, rows[orders == big], big=big)

    def _read_columns(self, plan: ClassPlan, rows: I64, *, big: bool) -> None:
        """Read the fields of records of a class as columns."""
        layout = plan.cls.layout
        own = ClassRows.of(rows)
        places = self.places
        sizes = self.sizes
        if rows.size < self.rows:
            places = places[rows]
            sizes = sizes[rows]
        framed = layout.is_sized
        # The size of a record that is not framed is only known once its fields are read.
        ends = places + sizes if framed else np.full(rows.size, self.reader.source.size)
        many = Many(self.reading, layout, own, places, ends, big=big)
        many.known[SIZE] = sizes if framed else 0
        layout.read_many(many, plan.late)
        if framed:
            self.reader.end_fields(many)
        # Where the fields end elsewhere than the framing says, the object knows what is wrong.
        # ``ends`` itself, not a copy, is where fields that fill their record go.
        if not framed or many.at() is not ends:
            ends_elsewhere = many.at() != places + sizes
            if ends_elsewhere.any():
                many.hand_over(ends_elsewhere & ~own.short)
        self.reader.judge(many)
        self._enter_columns(many)
        self.read_classes.append((plan, many))
        if plan.stops and own.odd.any():
            self.cut(int(rows[np.argmax(own.odd)]))
        if plan.stops_if_short and own.short.any():
            self.cut(int(rows[np.argmax(own.short)]))

    def _enter_columns(self, many: Many) -> None:
        """Enter the texts of fields that are columns of codes."""
        for rows in self.reader.tables:
            if rows.record is not many.layout.cls:
                continue
            for name, source in rows.sources.items():
                if not isinstance(source, Span) or rows.known[name].kind != "code":
                    continue
                if isinstance(source, Text) and source.entry is not None:
                    continue  # it has entered its texts itself
                if source not in rows.inside:
                    enter_texts(many, source)
                    continue
                for items in many.own.lists.get(rows.items, []):
                    enter_texts(items, source)

    def _find_register(self, register: Register) -> None:
        """Find the values of a register before and after each record."""
        changes: list[Change] = []
        for plan, many in self.read_classes:
            effects = [effect for effect in plan.effects if effect.register is register]
            changes += [self._change_of(effect, many) for effect in effects]
        changes = [change for change in changes if change.ordinals.size]
        restarts = self.reader.restarts_of(self, register)
        if changes or restarts is not None:
            initial = self.reader.registers[register]
            values_before, values_after = register_columns(initial, self.rows, changes, restarts)
            self.reading.registers[register] = values_before
            self.after[register] = values_after

    def _change_of(self, effect: Any, many: Many) -> Change:
        """Return what the sound records of a class do to a register."""
        own = many.own
        happens = ~(own.short | own.odd)
        if effect.field is not None:
            happens &= many.known[effect.field, THERE]
        # The register becomes keeps * register + value: 0 sets it, 1 adds to it. Records with any
        # other factor (a bit above the lowest is set) are read as objects.
        keeps = many.full(effect.keeps.column(many))
        not_sums = np.flatnonzero(happens & (keeps >> 1 != 0))
        if not_sums.size:
            own.odd[not_sums] = True
            self.cut(int(own.ordinals[not_sums[0]]))
        values = many.full(effect.value.column(many))
        if happens.all():
            return Change(own.ordinals, values, keeps == 1)
        return Change(own.ordinals[happens], values[happens], keeps[happens] == 1)

    # --- What becomes of them -------------------------------------------------------------------

    def finish(self, block: Block) -> None:
        """Enter texts, report findings, add the rows to a block, and go behind the run."""
        reader = self.reader
        if not self.count:
            return
        for plan, many in self.read_classes:
            reader.count(plan.cls.record, many.own.settle(self.count))
        reader.follow(self)
        # In this order: a record may refer to a text that another of the run declares. An object
        # sees texts and registers as they are before its row, so all of them are known by then.
        # Rows have codes of texts, and come from objects too. Some of them are findings.
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
        # Of each group of texts, those of sound records: an index, or a slice of all.
        sound_texts: list[tuple[Entered, Any]] = []
        for entered in self.reading.entered:
            own = entered.own
            index: Any = slice(None)
            if not own.all_sound:
                index = np.flatnonzero(own.sound[entered.rows])
            sound_texts.append((entered, index))
        apart = self.reader.apart
        self._give_codes(None, [pair for pair in sound_texts if pair[0].table not in apart])
        for table in apart:
            self._give_codes(table, [pair for pair in sound_texts if pair[0].table is table])
        for table, registrations in self.reader.registrations.items():
            self._define(table, registrations, sound_texts)

    def _give_codes(self, table: Any, sound_texts: list[tuple[Entered, Any]]) -> None:
        """Give texts their codes, in the order of the file, whichever field they are of.

        They are those of a table that is apart, or with None all others.
        """
        if not sound_texts:
            return
        starts = joined([entered.starts[index] for entered, index in sound_texts])
        lengths = joined([entered.lengths[index] for entered, index in sound_texts])
        rows_of_texts = [entered.rows[index] for entered, index in sound_texts]
        ordinals = joined(
            [
                entered.own.ordinals[rows]
                for (entered, _), rows in zip(sound_texts, rows_of_texts, strict=True)
            ]
        )
        order = order_of_places(ordinals, starts)
        if order is not None:
            ordinals = ordinals[order]
            starts = starts[order]
            lengths = lengths[order]
        if table is None:
            codes_in_order = self.reader.codes_of(self, ordinals, starts, lengths)
        else:
            codes_in_order = self.reader.codes_apart(self, table, starts, lengths)
        codes = codes_in_order
        if order is not None:
            codes = np.empty(starts.size, np.int32)
            codes[order] = codes_in_order
        begin = 0
        for (entered, index), rows in zip(sound_texts, rows_of_texts, strict=True):
            end = begin + rows.size
            entered.codes[index] = codes[begin:end]
            begin = end

    def _define(
        self, table: Any, registrations: Registrations, sound_texts: list[tuple[Entered, Any]]
    ) -> None:
        """Tell a table what the run declares in it."""
        nothing = np.zeros(0, np.int64)
        ordinals = [nothing]
        numbers = [nothing]
        codes = [np.zeros(0, np.int32)]
        for entered, index in sound_texts:
            if entered.table is table and entered.numbers is not None:
                ordinals.append(entered.own.ordinals[entered.rows[index]])
                numbers.append(entered.numbers[index])
                codes.append(entered.codes[index])
        clears = [nothing]
        for plan, many in self.read_classes:
            if any(cleared is table for cleared in plan.cls.layout.clears):
                clears.append(many.own.ordinals[many.own.sound])
        if len(codes) == 1 and len(clears) == 1:
            return
        registrations.begin(
            np.concatenate(ordinals),
            np.concatenate(numbers),
            np.concatenate(codes),
            np.sort(np.concatenate(clears)),
        )

    def _look_up(self) -> None:
        """Look up all references; those to nothing are findings, and show their numbers."""
        for reference in self.reading.references:
            self.reader.look_up(reference)
        if self.reading.for_lines:  # which write the numbers themselves
            return
        for reference in self.reading.references:
            sound = reference.own.sound
            if reference.codes.min(initial=0) >= 0:
                continue
            missing = np.flatnonzero(reference.codes < 0)
            missing = missing[sound[reference.rows][missing]]
            if not missing.size:
                continue
            numbers, number_of_row = np.unique(reference.numbers[missing], return_inverse=True)
            shown_texts = [reference.shown(number) for number in numbers.tolist()]
            codes = np.array([self.reader.strings.intern(text.encode()) for text in shown_texts])
            reference.codes[missing] = codes[number_of_row]

    def _report_stretches(self) -> None:
        """Report and count what is not a record: damaged, unknown and padding stretches."""
        kinds = {UNKNOWN: "unknown", PADDING: "padding"}
        for entry, every_row in self.stretches:
            rows = every_row[every_row < self.count]
            self.reader.count(kinds.get(entry, "damaged"), rows.size)
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
        if not self.reading.lists(number):
            self.reader.findings.count(number, rows.size)
            return
        own = ClassRows.of(rows)
        own.sound = np.ones(rows.size, bool)
        if offsets is None:
            offsets = self.places[rows]
        zeros = np.zeros(rows.size, np.int64)
        self.reading.step += 1
        self.reading.notes.append(
            Noted(
                number=number, own=own, rows=np.arange(rows.size), offsets=offsets, values=values,
                top=top, places=zeros, items=zeros, step=self.reading.step,
            )
        )  # fmt: skip

    def _read_objects(self) -> None:
        """Read odd records as objects, in place, and those that the capture watches."""
        reader = self.reader
        odd_rows = self._odd_rows()
        watched_rows = self._watched_rows()
        if not odd_rows.size and not watched_rows.size:
            return
        every_row = np.unique(np.concatenate([odd_rows, watched_rows]))
        is_odd = np.isin(every_row, odd_rows)
        for row, odd in zip(every_row.tolist(), is_odd.tolist(), strict=True):
            reader.keep_places(needed=odd and reader.needs_places[self.entries[row]])
            record, notes = self._object_at(row)
            if not odd:
                # Its columns have its rows and findings.
                reader.see(record)
                continue
            reader.handed += 1
            for number, offset, value in notes:
                values = np.array([wrapped(value)])
                self.note_rows(int(number), np.array([row]), values, np.array([offset]))
            if reader.add_object(row, record):
                self._note_beyond(np.array([row]))
            self.objects.append((row, type(record)))
            if record.record == "damaged":
                self.entries[row] = BAD_SIZE  # for ``_last_sound``

    def _odd_rows(self) -> I64:
        """Return the rows of records that columns cannot hold."""
        rows = [np.zeros(0, np.int64)]
        rows += [own.ordinals[own.odd] for _, own in self.odd_classes]
        for _, many in self.read_classes:
            if not many.own.all_sound:
                rows.append(many.own.ordinals[many.own.odd])
        every_row = np.concatenate(rows)
        return every_row[every_row < self.count]

    def _watched_rows(self) -> I64:
        """Return the rows of sound records that are wanted as objects, too."""
        watched: list[I64] = [self.reader.watched_of(many) for _, many in self.read_classes]
        return np.concatenate([np.zeros(0, np.int64), *watched])

    def _object_at(self, row: int) -> tuple[Any, Any]:
        """Return the record of a row as an object, and its findings."""
        order_before = self.orders[row - 1] if row else self.big
        registers = {register: self._before(register, row) for register in self.reader.registers}
        state = StateOfRun(self.reader, registers, big=bool(order_before))
        state.ordinal = row
        walk = self.reader.walk
        walk.state = state
        walk.at = int(self.places[row])
        record, notes = walk.next()
        return record, notes

    def _before(self, register: Register, row: int) -> int:
        """Return the value of a register before a row."""
        value = self.reading.registers[register]
        if isinstance(value, np.ndarray):
            value = value[row]
        return int(value)

    def sources_of_rows(self) -> list[list[RowSource]]:
        """Return the sources of rows, by ``BlockReader.tables``; report times beyond 64 bits."""
        reader = self.reader
        sources: list[list[RowSource]] = []
        beyond: list[I64] = [np.zeros(0, np.int64)]
        for rows, object_rows in zip(reader.tables, reader.objects, strict=True):
            sources_of_table: list[RowSource] = []
            if object_rows.ordinals:
                sources_of_table.append(object_rows.source())
            for plan, many in self.read_classes:
                if plan.cls is rows.record:
                    columns = reader.columns[rows.table]
                    class_sources, saturated = rows_of_class(rows, many, self.after, columns)
                    sources_of_table += class_sources
                    beyond.append(saturated)
            sources.append(sources_of_table)
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
        reader = self.reader
        last_row = self.count - 1
        for registrations in reader.registrations.values():
            registrations.settle(self.count)
        for register, value in self.after.items():
            if isinstance(value, np.ndarray):
                reader.registers[register] = int(value[last_row])
        reader.frames.big = int(self.orders[last_row])
        reader.at = int(self.places[last_row] + self.sizes[last_row])
        reader.records += self.count
        sound_row = self._last_sound()
        if sound_row >= 0:
            reader.sound = int(self.places[sound_row] + self.sizes[sound_row])

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
        sound_rows = np.flatnonzero(~damaged)
        return int(sound_rows[-1]) if sound_rows.size else -1

    def _let_go(self) -> None:
        """Drop what refers to itself, so that the columns of the run are freed at once."""
        self.reading.forget()
        for _, many in self.read_classes:
            many.own.lists.clear()
            many.own.parts.clear()


def joined(columns: list[I64]) -> I64:
    """Return one or more columns, one after another."""
    if len(columns) == 1:  # a column that nobody changes is not copied
        return columns[0]
    return np.concatenate(columns)


def order_of_places(ordinals: I64, places: I64) -> I64 | None:
    """Return the order of places by row of the run, and within a row; None if they are in it."""
    # Mostly a few sorted columns follow one another, and rows lie in the file one after another.
    by_place = stable_order(places)
    if by_place is None:
        return stable_order(ordinals)
    by_row = stable_order(ordinals[by_place])
    return by_place if by_row is None else by_place[by_row]


def enter_texts(many: Many, field: Any) -> None:
    """Let the texts of a field be entered, of the records that have it."""
    known = many.known
    if (field, CODE) in known or (field, START) not in known:
        return
    starts = known[field, START]
    lengths = known[field, LENGTH]
    index = np.arange(starts.size)
    if (field, THERE) in known:
        index = np.flatnonzero(known[field, THERE])
    codes = np.full(index.size, -1, np.int32)
    many.reading.entered.append(
        Entered(many.own, many.rows_at(index), starts[index], lengths[index], codes)
    )
    column = Codes(starts.size)
    column.add(index, codes)
    known[field, CODE] = column
