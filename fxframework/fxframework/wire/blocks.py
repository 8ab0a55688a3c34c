"""Blocks: the records of a declared format, thousands at a time, as columns of tables.

``BlockReader`` reads a file from its beginning. A block ends where it is full, and nowhere else, so
that it is the same whatever is asked for. Within a block, records are read in *runs* (``runs``):

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

import numpy as np
from numpy.typing import NDArray

from fxframework.io.limits import Limits
from fxframework.io.source import RELEASED, Source
from fxframework.kernels.arrays import I64
from fxframework.kernels.pools import codes_of
from fxframework.model.strings import StringPool
from fxframework.wire.cells import ObjectRows, RowSource, TableColumns, merged
from fxframework.wire.choices import Again
from fxframework.wire.columns import Rows
from fxframework.wire.cursor import AT, SIZE
from fxframework.wire.expressions import Register, wrapped
from fxframework.wire.findings import FIELDS, Findings
from fxframework.wire.floats import Float
from fxframework.wire.format import Format
from fxframework.wire.framing import ROOM, UNKNOWN, frames_of, item_size
from fxframework.wire.many import ClassRows, FileNumbers, Many, Reference
from fxframework.wire.plans import Plan, plan_of
from fxframework.wire.rules import TIME_BEYOND
from fxframework.wire.runs import REASONS, SIZE_RULE, Block, Run, StateOfRun
from fxframework.wire.spans import Span
from fxframework.wire.state import Change, Registrations
from fxframework.wire.walk import Walk

if TYPE_CHECKING:
    from fxframework.kernels.frames import Frames
    from fxframework.kit.lossless import LosslessRecord

BLOCK_BYTES = 4 << 20
"""A block ends behind the first record that ends so many bytes from its beginning, or later."""
BLOCK_ITEMS = 500_000
"""Rows of items that a block may have, unless one record has more."""
LEAST_RUN = 64
"""A run of fewer records that ends early costs more than reading its records as objects."""
LONGEST_PAUSE = 1024
"""Most records that are read as objects between two such runs."""


class BlockReader:
    """Reads the records of a file into blocks. ``strings`` is the pool that gets the texts.

    ``watch`` are kinds of records that ``seen`` gets as objects, in the order of the file.
    ``tables`` say which rows records make. Readers that make something else of the records derive
    from it, and override what runs ask: ``fxframework.wire.lines`` makes lines, ``objects`` makes
    objects, and ``verbs.copies`` copies their bytes.
    """

    for_lines: ClassVar[bool] = False
    """Whether lines are made, for which ``Reading`` keeps more."""
    without: ClassVar[frozenset[Any]] = frozenset()
    """Fields that are not read (``Reading.without``)."""
    mirrored = False
    """Whether bits of words count from the most significant one."""
    apart: ClassVar[frozenset[Any]] = frozenset()
    """Tables whose texts have codes of their own (``codes_apart``)."""
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
        self.watch = watch
        self.seen = seen
        self.numbers = FileNumbers(source.data if source.size else np.zeros(0, np.uint8))
        self.plan = plan_for(format)
        self.frames, self.walk = self.begin(limits)
        self.frames.growing = int(growing)
        self.walk.frames.growing = int(growing)
        self.findings = Findings(limits.max_findings)
        self.registers = {register: register.initial for register in format.registers}
        """The value of each register before the next record."""
        self.registrations = {table: Registrations() for table in format.text_tables}
        self.columns: dict[str, TableColumns] = {}
        for name in dict.fromkeys(rows.table for rows in tables):
            rows_of_table = [rows for rows in tables if rows.table == name]
            self.columns[name] = TableColumns(rows_of_table, strings.intern)
        self.objects = [ObjectRows(rows, self.columns[rows.table]) for rows in tables]
        """Rows of records that were read as objects, by ``tables``."""
        self.candidates = format.candidates
        self.needs_places = [
            any(needs_places(rows) for rows in tables if rows.record in classes)
            for classes in self.candidates
        ]
        """Whether rows of an entry's records need the places of their fields."""
        self.absent: dict[bytes, int] = {}
        """That of ``State``, which lasts longer than one."""
        self.kinds: dict[str, int] = {}
        """Records by kind, so far."""
        self.at = 0
        """The byte where the next run begins."""
        self.records = 0
        """Records before it."""
        self.handed = 0
        """Records that were read as objects because they are odd."""
        self.sound = 0
        """The end of the last stretch that is not damaged."""
        self.header = b""
        """The bytes before the first record, if they are sound."""
        self.copied = [cls for cls in format.classes if cls.layout.changes_state]
        """Classes of records whose places blocks have."""
        self.longest_run = ROOM
        """Most records of the next run."""
        self.pause = 1
        """Records to be read as objects after the next run that is short."""
        self.by_objects = 0
        """Records to be read as objects before the next run."""
        self.block_bytes = BLOCK_BYTES
        item_bytes = min((least_item(rows) for rows in tables if rows.items is not None), default=0)
        if item_bytes:
            # Items of 2 bytes would make 2 million rows of a block: it then has 1 MB of the file.
            self.block_bytes = min(BLOCK_BYTES, BLOCK_ITEMS * item_bytes)

    def begin(self, limits: Limits) -> tuple[Frames, Walk]:
        """Return what finds records, and what reads one of them as an object."""
        return (
            frames_of(self.format, self.source, limits),
            Walk(self.format, self.source, None, limits),
        )

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks of the file, from its beginning; release the bytes behind them."""
        released_to = 0
        block = self._new_block()
        if self.format.begin and self.source.size:
            self._read_objects(block, 1, self.source.size)
            self.handed = 0  # that the header is read as an object says nothing about the records
            self.header = self.source.read(0, self.sound)
        while self.at < self.source.size:
            self._fill(block)
            block.end = self.at
            yield block
            if self.at - released_to > RELEASED:
                self.source.passed(released_to, self.at)
                released_to = self.at
            block = self._new_block()
        # Rows of a header without records, or of an empty file, have a block of their own.
        if any(block.tables.values()) or not self.source.size:
            yield block

    def _new_block(self) -> Block:
        return Block({name: [] for name in self.columns}, 0)

    def _fill(self, block: Block) -> None:
        """Read the records of a block."""
        begin = self.at
        room = ROOM
        # A run may show that the blocks of a file should be shorter, also the one at hand: so the
        # end is computed again before each run.
        while room and self.at < min(begin + self.block_bytes, self.source.size):
            end = begin + self.block_bytes
            records_before = self.records
            if self.by_objects:
                end_of_objects = min(end, self.source.size)
                self._read_objects(block, min(room, self.by_objects), end_of_objects)
                self.by_objects = 0
            else:
                self._read_some(block, min(room, self.longest_run), end)
            room -= self.records - records_before

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
        # What is read behind the place where a run ends is read again: runs should not be far
        # longer than the records from one such place to the next.
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
        copied_rows: list[int] = []
        finding_rows: list[tuple[int, int, int, int]] = []
        while len(places) < most and self.walk.at < end:
            row = len(places)
            places.append(self.walk.at)
            record, notes = self.next_object()
            sizes.append(record.nbytes)
            finding_rows += [
                (int(number), offset, row, wrapped(value)) for number, offset, value in notes
            ]
            if self.add_object(row, record):
                finding_rows.append((TIME_BEYOND, record.offset, row, 0))
            if record.record != "damaged":
                self.sound = self.walk.at
            if type(record) in self.copied:
                copied_rows.append(row)
        self.end_walk()
        self.add_findings(np.array(finding_rows, np.int64).reshape(-1, FIELDS))
        every_place = np.array(places, np.int64)
        self.take_rows(block, [[rows.source()] for rows in self.objects], every_place)
        if copied_rows:
            every_size = np.array(sizes, np.int64)
            block.copies.append((every_place[copied_rows], every_size[copied_rows]))
        self.records += len(places)
        self.handed += len(places)

    # --- While fields are read --------------------------------------------------------------------

    def restarts_of(self, run: Run, register: Register) -> Change | None:  # noqa: ARG002 (for others)
        """Return where a register begins again in a run, before a record; None for nowhere."""
        return None

    def end_fields(self, many: Many) -> None:
        """Go from the ends of the fields of records to those of the records."""
        many.pad_to(many.limit)

    def judge(self, many: Many) -> None:
        """Look at records whose fields were read, as for those that objects know better."""

    # --- Once all are read, in this order ---------------------------------------------------------

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

    def codes_apart(self, run: Run, table: Any, starts: I64, lengths: I64) -> NDArray[np.int32]:
        """Return the codes of texts of a table that is ``apart``, likewise."""
        raise NotImplementedError

    def look_up(self, reference: Reference) -> None:
        """Look up the texts of numbers; report those that nothing declared."""
        registrations = self.registrations[reference.table]
        codes = registrations.find(reference.numbers, reference.ordinals, reference.codes)
        unknown = codes < 0
        if unknown.any():
            reference.note(unknown)

    def report_stretches(self, run: Run, entry: int, rows: I64) -> None:
        """Report stretches that are not records, by their entry."""
        values = run.sizes[rows]
        if entry == UNKNOWN:
            values = self.frames.kinds_found[rows]
        run.note_rows(REASONS.get(entry, SIZE_RULE), rows, values)

    def report_short(self, run: Run, own: ClassRows, short: I64) -> None:
        """Report records into which a field does not fit, by an index of those of their class."""
        rows = own.ordinals[short]
        run.note_rows(self.short_rule, rows, run.sizes[rows])

    def watched_of(self, many: Many) -> I64:
        """Return the rows of the sound records of a class that are wanted as objects, too."""
        if not issubclass(many.layout.cls, self.watch):
            return np.zeros(0, np.int64)
        return many.own.ordinals[many.own.sound]

    def take_run(self, block: Block, run: Run) -> None:
        """Add the rows of a run to a block."""
        self.take_rows(block, run.sources_of_rows(), run.places)

    def take_rows(self, block: Block, sources: list[list[RowSource]], places: I64) -> None:
        """Add the rows of a run to a block; ``sources`` are by ``tables``."""
        sources_of_table: dict[str, list[RowSource]] = {name: [] for name in self.columns}
        for rows, sources_of_rows in zip(self.tables, sources, strict=True):
            with_rows = [source for source in sources_of_rows if source.ordinals.size]
            sources_of_table[rows.table] += with_rows
        for name, table_sources in sources_of_table.items():
            if table_sources:
                ordinals, cells = merged(table_sources, places.size)
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

    # --- Objects --------------------------------------------------------------------------------

    def begin_walk(self) -> None:
        """Let objects be read from where the reader is, between runs."""
        self.walk.state = StateOfRun(self, self.registers, big=bool(self.frames.big))
        self.walk.at = self.at

    def end_walk(self) -> None:
        """Go on behind the objects that were read."""
        state = self.walk.state
        self.registers = {
            register: wrapped(state.registers[register]) for register in self.registers
        }
        self.frames.big = int(state.big)
        self.at = self.walk.at

    def next_object(self) -> tuple[LosslessRecord, Any]:
        """Return the next record as an object, and its findings."""
        walk = self.walk
        if walk.at == 0 and self.format.begin:
            header: tuple[LosslessRecord, Any] = walk.head()
            return header
        walk.frames.big = int(walk.state.big)
        entry = walk.frames.entry_at(walk.at)
        self.keep_places(needed=entry >= 0 and self.needs_places[entry])
        return walk.next()

    def keep_places(self, *, needed: bool) -> None:
        """Say whether the next object is read with the places of its fields, which takes longer."""
        self.walk.views = [] if needed else None

    def add_object(self, ordinal: int, record: LosslessRecord) -> bool:
        """Take a record that was read as an object; return whether a time does not fit 64 bits."""
        self.kinds[record.record] = self.kinds.get(record.record, 0) + 1
        if isinstance(record, self.watch):
            self.see(record)
        is_beyond = False
        for object_rows in self.objects:
            if type(record) is object_rows.rows.record:
                registers = self.walk.state.registers
                is_beyond |= object_rows.add(ordinal, record, self.walk.last, registers)
        return is_beyond

    def see(self, record: LosslessRecord) -> None:
        """Take a sound record that is wanted as an object, too."""
        self.seen(record)


def least_item(rows: Rows) -> int:
    """Return the fewest bytes of an item that makes a row."""
    assert rows.items is not None  # noqa: S101 (asked only then)
    return item_size(rows.items) or rows.items.least_item()


def needs_places(rows: Rows) -> bool:
    """Return whether rows need more of a record than its integers, which all objects keep."""
    if rows.items is not None:
        return True
    for source in rows.sources.values():
        for leaf in source.leaves():
            if isinstance(leaf, Span | Float | Again) or leaf is SIZE or leaf is AT:
                return True
    return False


def plan_for(format: Format) -> Plan:
    """Return the plan of a format, made once."""
    plan = format.compiled.get(("/plan",))
    if plan is None:
        plan = plan_of(format)
        format.compiled["/plan",] = plan
    return plan
