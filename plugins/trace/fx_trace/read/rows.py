"""Rows: the raw rows of tables, from the columns of blocks; ``fx_trace.meaning`` says which.

``RowReader`` reads a trace from its beginning and yields a ``Chunk`` for each block. It knows what
records before said: which threads there are, which rates providers have, and names of objects.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace import records as r
from fx_trace import rules
from fx_trace.indexed import STRINGS, THREADS, Process, Thread
from fx_trace.kinds import EventType, RecordType
from fx_trace.meaning import (
    COLUMNS,
    IS_ROW_OF,
    MAKERS,
    PRIORITIES,
    PROCESS_NAME,
    TABLE_CODE,
    TABLE_OF_EVENT,
    A,
    Cells,
    E,
    counts_of,
    is_numeric,
)
from fx_trace.read.blocks import SAID, Pairs, TraceBlocks, places_of
from fx_trace.read.chunk_maker import ROWS_OF, ChunkMaker
from fx_trace.read.chunks import Chunk
from fx_trace.read.frames import SPECIAL, TraceFile, trace_format
from fx_trace.read.threads import GONE, FirstUses, TaskCollector, Tasks, Threads
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX, WORD
from fxframework.kernels.arrays import I32, I64
from fxframework.kernels.buffers import gathered
from fxframework.kernels.pools import codes_of
from fxframework.kernels.sorting import begins_of_runs, dense, ends_of_runs
from fxframework.model.clock import NS_MAX, NS_MIN, Clock
from fxframework.model.strings import StringPool
from fxframework.wire.families import Fields
from fxframework.wire.known import CODE, LENGTH, START, Codes
from fxframework.wire.many import Entered, Many, Reference
from fxframework.wire.runs import Block, Run, enter_texts
from fxframework.wire.state import Registrations

Ordinals = Callable[[], I64]
"""Gives the rows of the run that arguments are of, which mostly nobody asks for."""
ARGUMENT = r.Argument.layout.by_name
VALUES = ARGUMENT["value"].kinds
"""The fields of values, by type of argument."""
TIMED = (
    r.ContextSwitch, r.ThreadWakeup, r.LegacyContextSwitch, r.Log, r.ProfilerModule,
    r.ProfilerMmap, r.ProfilerBacktrace, r.LargeBlobWithMetadata,
)  # fmt: skip
"""Classes of records with a time, beside events of defined types."""
NAMED = Fields([r.StringRecord.layout.by_name["value"], r.ProviderInfo.layout.by_name["name"]])
"""Texts that get their codes elsewhere."""
LAST_EVENT = int(max(EventType))
OF_LARGE = 15
"""What stands for the kind of a large record that the format does not define."""


UNDEFINED: tuple[Any, ...] = (r.UnknownMetadata, r.UnknownScheduling, r.UnknownProfiler)
"""Classes of records of kinds that the format does not define; of large ones, none is counted."""


def kind_of(cls: Any) -> int:
    """Return the number by which records of a class are counted: 16 * type + subtype.

    Where a field tells the subtype, it is that of subtype 0.
    """
    if cls is r.Unknown:
        return wire.KIND_UNKNOWN
    kind = cls.layout.kind
    if cls is r.UnknownLarge:
        return 16 * RecordType.LARGE + OF_LARGE
    if cls.undefined_kinds:
        defined_class = cls.layout.family.members[0]
        return 16 * int(defined_class.layout.kind[0])
    record_type, *subtypes = map(int, kind)
    return 16 * record_type + (subtypes[-1] if subtypes else 0)


KIND_OF = {cls: kind_of(cls) for cls in trace_format().classes}
KIND_FIELDS = {
    r.Event: r.Event.layout.by_name["event"],
    **{cls: cls.layout.family.kinds[1] for cls in UNDEFINED},
}
"""The fields that tell the subtypes."""


class RowRecords:
    """The records of a class in a run that make rows."""

    def __init__(self, reader: RowReader, many: Many) -> None:
        self.reader = reader
        self.many = many
        self.cls = many.layout.cls
        self.fields = self.cls.layout.by_name
        own = many.own
        self.is_row = own.sound
        self.index: I64 | None = None
        """Which records of the class they are; None: all."""
        has_all = own.all_sound
        if self.cls is r.Event:
            is_defined = many.known[self.fields["event"]] <= LAST_EVENT
            if not is_defined.all():
                self.is_row = self.is_row & is_defined
                has_all = False
        if not has_all:
            self.index = np.flatnonzero(self.is_row)
        self.ordinals: I64 = self.picked(own.ordinals)
        self.count = self.ordinals.size
        self.places: I64 = self.picked(many.start)

    def picked(self, column: Any) -> Any:
        """Return the values of a column for these records."""
        return column if self.index is None else column[self.index]

    def has(self, name: str) -> bool:
        """Return whether any record has a field with a condition."""
        return isinstance(self.many.known.get(self.fields[name]), np.ndarray)

    def number(self, name: str) -> I64:
        """Return the values of a number."""
        field = self.fields[name]
        return self.picked(self.many.full(self.many.known[field]))  # type: ignore[no-any-return]

    def aspect(self, name: str, key: str) -> I64:
        """Return places or lengths of the bytes of a field."""
        return self.picked(self.many.known[self.fields[name], key])  # type: ignore[no-any-return]

    def codes(self, name: str) -> I32:
        """Return the codes of the texts of a field."""
        codes = self.many.known[self.fields[name], CODE]
        return self.picked(codes.column())  # type: ignore[no-any-return]

    def every(self, value: int) -> I64:
        """Return a column of one value."""
        return np.broadcast_to(np.int64(value), self.count)

    def offsets(self, places: I64) -> I64:
        """Return the offsets in the file of places in the bytes that are read."""
        return self.reader.file.offset_of(places)

    def threads(self, name: str) -> I32:
        """Return the threads of a field; -1 for those of which only the process is there."""
        return self.picked(self.reader.threads_of(self.many, self.fields[name]))  # type: ignore[no-any-return]

    def processes(self, name: str) -> I64:
        """Return the process koids of a field; 0 for threads that nobody registered."""
        many = self.many
        field = self.fields[name]
        threads = self.reader.threads_of(many, field)
        # Behind those of all threads there is one for -1, no thread.
        pids = np.append(self.reader.threads.pids, 0)[threads]
        is_inline = np.flatnonzero(many.known[field.index] == 0)
        if is_inline.size:
            starts = many.known[field, START][is_inline]
            starts = np.minimum(starts, many.reading.data.size - WORD)
            pids[is_inline] = many.reading.numbers.integers(starts, WORD, big=many.big)
        return self.picked(pids)  # type: ignore[no-any-return]


class RowReader(TraceBlocks, ChunkMaker):
    """Reads the records of a trace into raw rows."""

    apart = frozenset([THREADS])
    reports_begin = False

    def __init__(
        self, file: TraceFile, limits: Limits, strings: StringPool, *, args: bool = True
    ) -> None:
        self.threads = Threads()
        self.reads_args = args
        """Whether rows of arguments are made, and what depends on them.

        They are read in any case: one that does not fit makes a record damage.
        """
        ChunkMaker.__init__(self)
        super().__init__(file, limits, strings, tables=())
        self.copied = []
        self.speakers.thread_pool = self.threads.pool
        self.longest_string = limits.max_string or 1 << 62
        self.clocks: list[Clock] = [Clock()]
        """The clocks of events; the first one counts nanoseconds."""
        self.clock_numbers: dict[Clock, int] = {self.clocks[0]: 0}
        self.known_clocks: dict[int, tuple[Clock, int]] = {}
        """Clocks that were asked for, and their numbers, by identity: a hash takes longer."""
        self.markers = np.full(wire.MAX_STRING_INDEX + 1, -1, np.int32)
        """By index, the code of the text for a string that nobody registered; -1: not needed."""
        self.objects_by_key = Registrations()
        """The names of objects, by process and pointer, or by koid."""
        self.object_keys = Pairs()
        self.names_objects = False
        self.thread_columns: dict[tuple[int, Any], I32] = {}

    @property
    def pids(self) -> I64:
        """The process koid of each thread so far."""
        return self.threads.pids

    def known_tasks(self, collector: TaskCollector) -> Tasks:
        """Return the threads and processes of the file, with those that a collector has."""
        return collector.settle(self.threads.known())

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows of each block; a file has one at least."""
        first = dict(self.rows)
        for block in self.blocks():
            yield self.take_chunk(first, block.end)
            first = dict(self.rows)

    # --- What is read ---------------------------------------------------------------------------

    def judge(self, many: Many) -> None:
        """Have threads and texts that rows need entered; report what rows alone tell."""
        super().judge(many)
        for field in many.layout.fields:
            if isinstance(field, Thread) and not isinstance(field, Process):
                self.enter_koids(many, field)
        fields = many.layout.by_name
        if many.layout.cls is r.ProfilerModule:
            for name in ("name", "build_id"):
                enter_texts(many, fields[name])
        for items in self.items_of(many):
            self.enter_blobs(items)
        self.report_long(many)

    def items_of(self, many: Many) -> list[Many]:
        """Return the arguments of the records of a class, those read together."""
        args = many.layout.by_name.get("args")
        return many.own.lists.get(args, []) if self.reads_args else []

    def enter_koids(self, many: Many, field: Thread) -> None:
        """Have the koids of threads entered that are in the records."""
        if (field, START) not in many.known:
            return
        has_koids = many.known[field.index] == 0
        if (field, LENGTH) in many.known:  # of others, only the process is there
            has_koids &= many.known[field, LENGTH] == 2 * WORD
        rows = np.flatnonzero(has_koids)
        starts = many.known[field, START][rows]
        codes = np.full(rows.size, -1, np.int32)
        lengths = np.full(rows.size, 2 * WORD)
        # The codes are filled once all texts and koids of the run are entered, in its order.
        many.reading.entered.append(Entered(many.own, rows, starts, lengths, codes, THREADS))
        if (field, CODE) not in many.known:
            many.known[field, CODE] = Codes(has_koids.size)
        many.known[field, CODE].add(rows, codes)

    def enter_blobs(self, items: Many) -> None:
        """Have the values of arguments entered that are bytes."""
        field = VALUES[A.BLOB]
        blobs = np.flatnonzero(items.known[ARGUMENT["type"]] == A.BLOB)
        if blobs.size:
            codes = np.full(blobs.size, -1, np.int32)
            starts = items.known[field, START][blobs]
            lengths = items.known[field, LENGTH][blobs]
            rows = items.rows_at(blobs)
            items.reading.entered.append(Entered(items.own, rows, starts, lengths, codes))
            items.known[field, CODE] = Codes(items.start.size)
            items.known[field, CODE].add(blobs, codes)

    def report_long(self, many: Many) -> None:
        """Report strings that are longer than they may be."""
        longest = self.longest_string
        for part in (many, *self.items_of(many)):
            for key, lengths in part.known.items():
                # Keys are fields, or pairs of a field and what is known of it.
                if type(key) is not tuple or key[1] != LENGTH or isinstance(key[0], Thread):
                    continue
                # What has no code is bytes, but for the texts that records are about.
                is_text = (key[0], CODE) in part.known or key[0] in NAMED
                if is_text and int(np.max(lengths, initial=0)) > longest:
                    rule = rules.STRING_OVER_LIMIT
                    part.report(rule, lengths > longest, lengths, part.start)

    def codes_of(self, run: Run, ordinals: I64, starts: I64, lengths: I64) -> I32:
        """Return the codes of texts, of long ones those of the beginnings."""
        return super().codes_of(run, ordinals, starts, np.minimum(lengths, self.longest_string))

    def codes_apart(self, run: Run, table: Any, starts: I64, lengths: I64) -> I32:
        """Return the codes of the koids of threads."""
        del table
        return codes_of(self.threads.pool.pool, run.reading.data, starts, lengths)

    def look_up(self, reference: Reference) -> None:
        """Look up strings or threads; give markers to those that nobody registered."""
        super().look_up(reference)
        if reference.codes.min(initial=0) >= 0:
            return
        sound = reference.own.sound
        is_missing = reference.codes < 0
        if not reference.own.all_sound:
            is_missing &= sound[reference.rows]
        if not is_missing.any():
            return
        missing = places_of(is_missing)
        numbers = reference.numbers[missing]
        if reference.table is STRINGS:
            reference.codes[missing] = self.markers_of(numbers)
            return
        registrations = self.registrations[THREADS]
        ordinals = reference.ordinals[missing]
        keys = registrations.scoped(registrations.scopes, numbers, ordinals)
        index_of_key, distinct_keys = dense(keys)
        numbers_of_keys = self.threads.gone.enter(distinct_keys)
        reference.codes[missing] = GONE + numbers_of_keys[index_of_key]

    def markers_of(self, numbers: I64) -> I32:
        """Return the codes of the texts that stand for strings that nobody registered."""
        present = np.flatnonzero(np.bincount(numbers))
        for number in present[self.markers[present] < 0].tolist():
            code = self.strings.intern(STRINGS.unknown(number).encode())
            self.markers[number] = code
            self.unnamed.append(code)
        return self.markers.take(numbers)

    def report_stretches(self, run: Run, entry: int, rows: I64) -> None:
        """Count what is not a record of a known type."""
        super().report_stretches(run, entry, rows)
        faults = self.frames.faults[rows]
        self.count_kind(wire.KIND_PADDING, int(np.count_nonzero(faults == rules.ZERO_WORDS)))
        is_damage = (faults > 0) & (faults != rules.ZERO_WORDS)
        self.count_kind(wire.KIND_DAMAGED, int(np.count_nonzero(is_damage)))
        for row in rows[faults <= 0].tolist():
            place = int(run.places[row])
            if self.frames.faults[row] == SPECIAL:
                self.count_kind(self.file.counted_as(place), 1)
                end = place + int(run.sizes[row])
                if self.file.special(place, end) is None:
                    detail = self.details.number_of(rules.odd_bytes_detail(end))
                    run.note_rows(int(rules.ODD_BYTES), np.array([row]), np.array([detail]))
            else:  # metadata in an image, which says nothing
                word = int(self.file.words[place // WORD])
                self.count_kind(r.METADATA_KIND.of(word), 1)

    def count_kind(self, number: int, count: int) -> None:
        """Count records of a kind, if it is one (-1 is none)."""
        if number >= 0:
            self.kinds_seen[number] += count

    # --- Rows -----------------------------------------------------------------------------------

    def take_run(self, block: Block, run: Run) -> None:
        """Make the rows of a run."""
        del block
        self.number_threads(run)
        sources: dict[str, list[tuple[RowRecords, Cells]]] = {}
        timed: list[I64] = []
        for plan, many in run.read_classes:
            rows = RowRecords(self, many)
            self.count_records(rows)
            if plan.cls in TIMED or plan.cls is r.Event:
                timed.append(rows.ordinals)
            if plan.cls in MAKERS and rows.count:
                table, make = MAKERS[plan.cls]
                cells = {"offset": rows.offsets(rows.places), **make(rows)}
                if table == "objects":
                    cells["ordinal"] = rows.ordinals
                sources.setdefault(table, []).append((rows, cells))
        self.report_missing_rates(run, timed)
        clocks = self.clocks_of(run)
        merged: dict[str, Cells] = {}
        arguments: list[tuple[Ordinals, Cells]] = []
        for table, by_class in sources.items():
            places = self.put_rows(run, table, by_class, clocks)
            merged[table] = self.parts[table][-1]
            for (rows, _), row_places in zip(by_class, places, strict=True):
                arguments += self.arguments_of(rows, table, merged[table], row_places)
        self.put_arguments(run, arguments, merged)
        for table, cells in merged.items():
            self.count_rows(table, cells)
        self.thread_columns.clear()

    def count_records(self, rows: RowRecords) -> None:
        """Count the records of a class by kind; those that do not fit are damaged."""
        many = rows.many
        own = many.own
        count = own.ordinals.size
        if not own.all_sound:
            short = int(np.count_nonzero(own.short & ~own.odd))
            self.count_kind(wire.KIND_DAMAGED, short)
            count -= short
        kind = KIND_OF[rows.cls]
        if rows.cls not in KIND_FIELDS:
            self.count_kind(kind, count)
            return
        subtypes = many.full(many.known[KIND_FIELDS[rows.cls]]).astype(np.uint8)
        if not own.all_sound:
            subtypes = subtypes[own.sound]
        self.kinds_seen[kind : kind + 16] += counts_of(subtypes)[:16]

    def put_rows(
        self,
        run: Run,
        table: str,
        by_class: list[tuple[RowRecords, Cells]],
        clocks: ClocksOfRun,
    ) -> list[I64]:
        """Put rows of all classes of a table in the order of the file; return where each went."""
        rows, cells = by_class[0]
        ordinals = rows.ordinals
        places = [np.arange(ordinals.size)]
        if len(by_class) > 1:
            is_row = np.zeros(run.rows, bool)
            for rows, _ in by_class:
                is_row[rows.ordinals] = True
            place_of_ordinal = np.cumsum(is_row) - 1
            places = [place_of_ordinal[rows.ordinals] for rows, _ in by_class]
            ordinals = np.flatnonzero(is_row)
            names = list(cells)
            cells = {}
            for name in names:
                column = np.empty(ordinals.size, COLUMNS[table].get(name, "i8"))
                for (_, class_cells), class_places in zip(by_class, places, strict=True):
                    column[class_places] = class_cells[name]
                cells[name] = column
        if "time" in COLUMNS[table]:
            # No table has the times of blobs, so that none of them is reported.
            offsets = None if table == "blobs" else cells["offset"]
            cells["time"] = clocks.times(ordinals, cells["ticks"], offsets)
        if table == "events":
            cells["finish"] = cells["time"]
            if (cells["kind"] == E.DURATION_COMPLETE).any():
                cells["finish"] = clocks.times(ordinals, cells["word"], None)
            self.clock_parts.append(clocks.segments(ordinals, self.rows_in_chunk("events")))
        self.parts[table].append(cells)
        return places

    # --- Arguments ------------------------------------------------------------------------------

    def arguments_of(
        self, rows: RowRecords, table: str, cells: Cells, place: I64
    ) -> list[tuple[Ordinals, Cells]]:
        """Return the arguments of records, whose rows are at some places of those of the run."""
        groups: list[tuple[Ordinals, Cells]] = []
        own = rows.many.own
        for items in self.items_of(rows.many):
            if not items.start.size:
                continue
            # The record of each argument, among those of its class; then its row.
            records = np.arange(items.start.size) if items.rows is None else items.rows
            row_of_record = place
            picked: Any = slice(None)
            if rows.index is not None:  # some records have no row, and neither have their arguments
                picked = np.flatnonzero(rows.is_row[records])
                records = records[picked]
                row_of_record = np.zeros(own.ordinals.size, np.int64)
                row_of_record[rows.index] = place
            row = row_of_record.take(records)
            kinds = items.known[ARGUMENT["type"]][picked].astype(np.uint8)
            group: Cells = {
                "type": kinds,
                "name": items.known[ARGUMENT["name"], CODE].column()[picked],
                "offset": cells["offset"].take(row),
                "value": value_of(items, kinds, picked),
                "row": row,
            }
            if table == "events":
                group["table"], group["parent"] = self.owners_of(cells["kind"], row)
                self.report_counters(items, kinds, picked, group["table"])
            else:
                group["table"] = np.broadcast_to(np.uint8(TABLE_CODE[table]), row.size)
                group["parent"] = self.rows[ROWS_OF[table]] + row
            groups.append((functools.partial(gathered, own.ordinals, records), group))
        return groups

    def owners_of(self, kinds: NDArray[np.uint8], row: I64) -> tuple[NDArray[np.uint8], I64]:
        """Return tables and rows of the events that arguments belong to, by their rows of the run.

        ``kinds`` are the types of all events of the run.
        """
        present = np.flatnonzero(counts_of(kinds))
        tables = TABLE_OF_EVENT[present]
        for name, of_table in IS_ROW_OF.items():
            if of_table[present].all() and name != "ends":  # their rows follow one another
                same_table = np.broadcast_to(tables[0], row.size)
                return same_table, self.rows[name] + row
        table_of_event = TABLE_OF_EVENT.take(kinds)
        return table_of_event.take(row), self.event_rows(kinds).take(row)

    def report_counters(
        self, items: Many, kinds: NDArray[np.uint8], picked: Any, tables: Any
    ) -> None:
        """Report arguments of counters, of those picked, that are something else than numbers."""
        of_counters = tables == wire.TABLE_COUNTERS
        if not of_counters.any():
            return
        is_strange = of_counters & ~is_numeric(kinds)
        if is_strange.any():
            places = np.arange(items.start.size)[picked][is_strange]
            every_kind = items.known[ARGUMENT["type"]]
            items.report(rules.COUNTER_NOT_NUMERIC, places, every_kind, items.start)

    def put_arguments(
        self, run: Run, groups: list[tuple[Ordinals, Cells]], merged: Mapping[str, Cells]
    ) -> None:
        """Put the arguments of a run in the order of the file, and take in what they say."""
        if not groups:
            self.refer(run, None, merged)
            return
        ordinals, cells = groups[0]
        if len(groups) > 1:
            # Those of a class are in order; of several classes, they are merged.
            every_ordinal = np.concatenate([ordinals_of_group() for ordinals_of_group, _ in groups])
            order = np.argsort(every_ordinal, kind="stable")
            ordinals = functools.partial(gathered, every_ordinal, order)
            for name in list(cells):
                column = np.concatenate([group[name] for _, group in groups])
                cells[name] = column[order]
        if "sched" in merged:
            self.put_priorities(cells, merged["sched"])
        if "objects" in merged:
            self.put_processes(cells, merged["objects"])
        self.refer(run, (ordinals, cells), merged)
        self.put_args(cells)

    def put_priorities(self, cells: Cells, sched: Cells) -> None:
        """Take priorities from the arguments of scheduling records."""
        of_sched = cells["table"] == wire.TABLE_SCHED
        is_number = of_sched & (cells["type"] == A.INT32)
        if not is_number.any():
            return
        for (kind, name), column in PRIORITIES.items():
            has_name = cells["name"] == self.strings.code(name)
            args = np.flatnonzero(is_number & has_name)
            rows = cells["row"][args]
            is_of_kind = sched["kind"][rows] == kind
            values = cells["value"][args[is_of_kind]]
            sched[column] = with_last(sched[column], rows[is_of_kind], values)

    def put_processes(self, cells: Cells, objects: Cells) -> None:
        """Take the processes of kernel objects from their arguments."""
        is_process = cells["table"] == wire.TABLE_OBJECTS
        is_process &= cells["type"] == A.KOID
        is_process &= cells["name"] == self.strings.code(PROCESS_NAME)
        args = np.flatnonzero(is_process)
        rows = cells["row"][args]
        is_kernel = objects["kind"][rows] == 0
        koids = cells["value"][args[is_kernel]]
        objects["pid"] = with_last(objects["pid"], rows[is_kernel], koids)

    # --- Objects --------------------------------------------------------------------------------

    def refer(
        self, run: Run, arguments: tuple[Ordinals, Cells] | None, merged: Mapping[str, Cells]
    ) -> None:
        """Note the names of objects, and which arguments mean objects that records before named."""
        objects = merged.get("objects")
        if objects is not None:
            is_kernel = objects["kind"] == 0
            owners = np.where(is_kernel, 0, objects["pid"] ^ wire.SIGN)
            keys = self.object_keys.enter(owners, np.ascontiguousarray(objects["value"]))
            names = objects["name"].astype(np.int32, copy=False)
            no_scopes = np.zeros(0, np.int64)
            self.objects_by_key.begin(objects["ordinal"], keys, names, no_scopes)
            self.names_objects = True
        if not self.names_objects:
            return
        if arguments is not None:
            ordinals, cells = arguments
            self.annotate(ordinals(), cells, merged)
        self.objects_by_key.settle(run.count)

    def annotate(self, ordinals: I64, cells: Cells, merged: Mapping[str, Cells]) -> None:
        """Annotate koids, and pointers of events, with the names of the objects that they mean."""
        # A pointer outside of an event is of no process.
        of_others = np.isin(cells["table"], list(TABLE_CODE.values()))
        is_pointer = (cells["type"] == A.POINTER) & ~of_others
        is_koid = cells["type"] == A.KOID
        args = np.flatnonzero(is_pointer | is_koid)
        if not args.size:
            return
        pointers = np.flatnonzero(is_pointer[args])
        owners = np.zeros(args.size, np.int64)
        if pointers.size:
            events = cells["row"][args[pointers]]
            threads = merged["events"]["thread"][events]
            owners[pointers] = self.threads.pids[threads] ^ wire.SIGN
        keys = self.object_keys.find(owners, cells["value"][args])
        names = self.objects_by_key.find(keys, ordinals[args])
        is_named = names >= 0
        named_args = self.rows_in_chunk("args") + args[is_named]
        self.parts["annotations"].append({"arg": named_args, "name": names[is_named]})

    # --- Threads --------------------------------------------------------------------------------

    def threads_of(self, many: Many, field: Thread) -> I32:
        """Return the threads of a field, by row of the class; -1 where there is none."""
        key = id(many), field
        threads = self.thread_columns.get(key)
        if threads is None:
            threads = self.threads.find(numbers_of(many, field))
            self.thread_columns[key] = threads
        return threads

    def number_threads(self, run: Run) -> None:
        """Number the threads that the records of a run are the first to mention."""
        self.threads.make_room()
        uses: list[FirstUses] = []
        for entered in run.reading.entered:
            if entered.table is THREADS and entered.numbers is not None:
                threads = self.threads.find(entered.codes)
                uses += self.first_uses(
                    entered.own, entered.rows, entered.codes, threads, entered.starts, 0, 0
                )
        for _, many in run.read_classes:
            fields = [field for field in many.layout.fields if isinstance(field, Thread)]
            for turn, field in enumerate(fields):
                numbers = numbers_of(many, field)
                threads = self.threads_of(many, field)
                starts = many.known.get((field, START), 0)
                indexes = many.known[field.index]
                uses += self.first_uses(many.own, None, numbers, threads, starts, turn, indexes)
        if uses:
            self.add_threads(run, uses)
            self.thread_columns.clear()

    def first_uses(
        self,
        own: Any,
        rows: I64 | None,
        numbers: I32,
        threads: I32,
        starts: Any,
        turn: int,
        indexes: Any,
    ) -> list[FirstUses]:
        """Return the first uses, by records of a class, of threads that are not known yet."""
        if threads.min(initial=0) >= 0:
            return []
        rows = np.arange(numbers.size) if rows is None else rows
        places = np.flatnonzero((threads < 0) & (numbers >= 0))
        places = places[own.sound[rows[places]]]
        if not places.size:
            return []
        index_of_number, distinct = dense(numbers[places])
        first_places = np.full(distinct.size, places.size)
        np.minimum.at(first_places, index_of_number, np.arange(places.size))
        places = places[np.sort(first_places)]
        starts_by_row = np.broadcast_to(starts, numbers.size)
        indexes_by_row = np.broadcast_to(indexes, numbers.size)
        use = FirstUses(
            ordinals=own.ordinals[rows[places]],
            turns=np.full(places.size, turn),
            numbers=numbers[places],
            starts=starts_by_row[places],
            indexes=indexes_by_row[places],
        )
        return [use]

    def add_threads(self, run: Run, uses_by_class: list[FirstUses]) -> None:
        """Add threads in the order in which records mention them."""
        columns = zip(*uses_by_class, strict=True)
        uses = FirstUses(*map(np.concatenate, columns))
        order = np.lexsort((uses.turns, uses.ordinals))
        # Several classes may have a use of the same thread that is their first.
        _, first_places = np.unique(uses.numbers[order], return_index=True)
        order = order[np.sort(first_places)]
        numbers = uses.numbers[order]
        ordinals = uses.ordinals[order]
        starts = uses.starts[order]
        indexes = uses.indexes[order]
        is_gone = numbers >= GONE
        places = np.where(is_gone, 0, starts)
        koids = np.zeros((2, numbers.size), np.int64)
        for word in range(2) if not is_gone.all() else ():
            word_places = places + WORD * word
            big = bool(self.file.big_endian)
            words = run.reading.numbers.integers(word_places, WORD, big=big)
            koids[word] = np.where(is_gone, 0, words)
        offsets = self.file.offset_of(run.places[ordinals])
        self.threads.add(numbers, koids, offsets, np.where(is_gone, indexes + 1, 0))

    # --- Clocks ---------------------------------------------------------------------------------

    def clocks_of(self, run: Run) -> ClocksOfRun:
        """Return the clocks of the records of a run."""
        clocks = {id(turn.clock): turn.clock for turn in self.turns}
        for key, clock in clocks.items():
            if key not in self.known_clocks:
                self.number_clock(clock)
        distinct = {self.known_clocks[key][1] for key in clocks}
        if len(distinct) == 1:
            return ClocksOfRun(self, distinct.pop(), None)
        numbers = [self.known_clocks[id(turn.clock)][1] for turn in self.turns]
        return ClocksOfRun(self, 0, self.by_row(run, numbers))

    def number_clock(self, clock: Clock) -> None:
        """Give a clock its number, that of an equal one if there is one."""
        number = self.clock_numbers.setdefault(clock, len(self.clocks))
        if number == len(self.clocks):
            self.clocks.append(clock)
        self.known_clocks[id(clock)] = clock, number

    def report_missing_rates(self, run: Run, timed: list[I64]) -> None:
        """Report the first record with a time of each provider that has no rate."""
        if not any(turn.lacks_rate for turn in self.turns):
            return
        is_timed = np.zeros(run.rows + 1, np.int64)
        for ordinals in timed:
            is_timed[ordinals + 1] = 1
        before = np.cumsum(is_timed)
        places = np.flatnonzero(is_timed[1:])
        ends = np.append(self.turn_rows[1:], run.rows)
        counts = before[ends] - before[self.turn_rows]
        lacks = np.array([turn.lacks_rate for turn in self.turns])[self.turn_index]
        for number in np.flatnonzero(lacks & (counts > 0)).tolist():
            provider = self.turns[int(self.turn_index[number])].provider
            if not provider.missed_rate:
                provider.missed_rate = True
                self.known_turns.clear()
                row = places[before[self.turn_rows[number]]]
                detail = np.array([self.details.number_of(None)])
                run.note_rows(int(rules.NO_RATE), np.array([row]), detail, top=SAID)


def numbers_of(many: Many, field: Thread) -> I32:
    """Return the codes of threads, or GONE and the numbers of those that nobody registered.

    -1 for none.
    """
    codes = many.known.get((field, CODE))
    if codes is None:
        return np.full(many.start.size, -1, np.int32)
    return codes.column()  # type: ignore[no-any-return]


class ClocksOfRun:
    """The clocks by which the records of a run tell the time: ``number``, or one by row."""

    def __init__(self, reader: RowReader, number: int, by_row: I64 | None) -> None:
        self.reader = reader
        self.number = number
        self.by_row = by_row

    def times(self, ordinals: I64, ticks: I64, offsets: I64 | None) -> I64:
        """Return times in ns; note the offsets of those that do not fit 63 bits.

        They are ``ticks`` where a clock counts ns and all fit.
        """
        if self.by_row is None:
            return self.converted(self.number, ticks, offsets)
        numbers = self.by_row[ordinals]
        times = np.empty(ticks.size, np.int64)
        order = np.argsort(numbers, kind="stable")
        in_order = numbers[order]
        begins = np.flatnonzero(begins_of_runs(in_order))
        for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), order.size], strict=True):
            rows = order[begin:end]
            row_offsets = None if offsets is None else offsets[rows]
            times[rows] = self.converted(int(in_order[begin]), ticks[rows], row_offsets)
        return times

    def converted(self, number: int, ticks: I64, offsets: I64 | None) -> I64:
        """Return the nanoseconds of ticks of a clock; note which are outside of what fits."""
        clock = self.reader.clocks[number]
        unsigned = ticks.view(np.uint64)
        times, lost = clock.to_ns(unsigned)
        if lost and offsets is not None:
            is_outside = np.zeros(ticks.size, bool)
            first_tick = clock.ticks(NS_MIN)
            end_tick = clock.ticks(NS_MAX + 1)
            if first_tick > 0:
                is_outside |= unsigned < np.uint64(first_tick)
            if end_tick <= U64_MAX:
                is_outside |= unsigned >= np.uint64(end_tick)
            self.reader.outside.append(offsets[is_outside])
        if clock.is_identity and not lost:
            return ticks  # the same array, so that rows of a file hold it once
        return times

    def segments(self, ordinals: I64, first: int) -> I64:
        """Return from which events on each clock holds, and its number, as ``Chunk.clocks``."""
        if self.by_row is None:
            return np.array([[first, self.number]])
        numbers = self.by_row[ordinals]
        begins = np.flatnonzero(begins_of_runs(numbers))
        return np.stack([first + begins, numbers[begins]], 1)


def value_of(items: Many, kinds: NDArray[np.uint8], picked: Any) -> I64:
    """Return the values of arguments: integers, the bits of doubles, codes of strings and bytes."""
    value: Any = None
    for kind in np.flatnonzero(counts_of(kinds)).tolist():
        field = VALUES.get(kind)
        if field is None:
            continue
        if kind in (A.STRING, A.BLOB):
            codes = items.known[field, CODE].column()[picked]
            column = np.maximum(codes, 0).astype(np.int64)
        else:
            column = items.full(items.known[field])[picked]
        # Each is 0 where an argument has another type.
        value = column if value is None else value | column
    return np.zeros(kinds.size, np.int64) if value is None else value


def with_last(column: NDArray[Any], rows: I64, values: I64) -> NDArray[Any]:
    """Return a column with values at some rows, given in order; of several the last one counts."""
    if not rows.size:
        return column
    is_last = ends_of_runs(rows)
    changed = np.array(column)
    changed[rows[is_last]] = values[is_last]
    return changed
