"""The dependencies of the kept records of a part of a trace: strings, threads, objects, rates.

``Needs`` reads all records once more, as blocks: each reference is known with the record that
registered what it is to. A record needs those; an argument that is a pointer or a koid needs the
record of the object that it stands for, and what that needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fx_trace import records as r
from fx_trace import rules
from fx_trace.indexed import STRINGS, THREADS
from fx_trace.kinds import ArgType, EventType, RecordType
from fx_trace.read.blocks import Pairs, TraceBlocks
from fx_trace.read.frames import TraceFile, TraceFrames, trace_format
from fx_trace.write.selected import MAYBE, SelectedRecords
from fxframework.io.limits import Limits
from fxframework.io.words import WORD
from fxframework.kernels.arrays import I64, Bools
from fxframework.kernels.sorting import begins_of_runs
from fxframework.model.selection import Selection
from fxframework.model.strings import StringPool
from fxframework.wire.framing import PADDING
from fxframework.wire.known import CODE, START
from fxframework.wire.many import ClassRows, Many, Reference
from fxframework.wire.runs import Block, Run
from fxframework.wire.state import Registrations

Owners = tuple[I64, Bools, Bools | None]
"""Of the rows of a run: words, whether they are kept, and whether they are undecided objects."""
Columns = TypeVar("Columns", bound=tuple[I64, ...])
SIGN = -(1 << 63)
"""Turned in a process koid, it tells pointers from koids, whose process is 0."""
RATE = 0
"""The key of a loan that is a rate; strings have their index, threads theirs below 0."""
LAST = 1 << 30
"""A rate is lent behind all strings and threads."""
SPOKEN = (
    r.ProviderInfo, r.ProviderSection, r.ProviderEvent, r.TraceInfo, r.Initialization,
)  # fmt: skip
OBJECTS = (r.UserspaceObject, r.KernelObject)
BLOCK_BYTES = 1 << 19
"""A block of these bytes stays in the cache."""
IS_TIMED = np.arange(16) >= RecordType.SCHEDULING
IS_TIMED[RecordType.EVENT] = True
"""Whether records of a type may have a time."""
EVENT_ENTRY = trace_format().classes.index(r.Event)
EVENT_KIND = r.Event.layout.place("event")
KEYS = {STRINGS: 1, THREADS: -1}


ARGUMENT = r.Argument.layout.by_name
POINTER = ARGUMENT["value"].kinds[ArgType.POINTER]
KOID = ARGUMENT["value"].kinds[ArgType.KOID]
REFERRING = (POINTER, KOID, ARGUMENT["value"].kinds[ArgType.STRING])
NOT_NEEDED: Mapping[Any, tuple[str, ...]] = {
    r.Event: ("scope", "counter_id", "end_timestamp", "id"),
    r.Argument: ("_stray", "_left_over"),
    r.Blob: ("_unknown_type", "payload"),
    r.Log: ("message",),
    r.ProfilerBacktrace: ("frames",),
    r.LargeBlobWithMetadata: ("_blob_size", "payload"),
    r.LargeBlob: ("_blob_size", "payload"),
}
WITHOUT = frozenset(
    [cls.layout.by_name[name] for cls, names in NOT_NEEDED.items() for name in names]
    + [field for field in ARGUMENT["value"].fields if field not in set(REFERRING)]
)
"""Fields that say nothing about other records. Those with rows are known to have them."""


class Loans(NamedTuple):
    """What providers have of provider 0: int64 of shape (loans,) each."""

    number: I64
    """Number of the record that needs it, and which of its needs this is."""
    turn: I64
    owner: I64
    """Words of that record, and of the one that is to be copied before it."""
    needed: I64
    scope: I64
    key: I64


class Links(NamedTuple):
    """What records need: their rows or numbers, and words of both; int64 of one shape."""

    ordinal: I64
    owner: I64
    needed: I64


class Objects(NamedTuple):
    """Objects that records describe, or that their arguments stand for; int64 of one shape."""

    ordinal: I64
    word: I64
    """That of the record."""
    process: I64
    """The process of a pointer, with another sign; 0 of a koid."""
    value: I64


def joined(kind: type[Columns], parts: list[Columns]) -> Columns:
    """Return columns one after another."""
    nothing = [np.zeros(0, np.int64)] * len(kind._fields)  # type: ignore[attr-defined]
    columns = zip(nothing, *parts, strict=True)
    return kind(*map(np.concatenate, columns))


class Definers:
    """The records that registered strings or threads: their words, and where the value is."""

    def __init__(self) -> None:
        self.count = 0
        self.columns = np.zeros((3, 256), np.int64)

    def add(self, words: I64, starts: I64, lengths: I64) -> NDArray[np.int32]:
        """Add some; return their numbers."""
        numbers = np.arange(self.count, self.count + words.size, dtype=np.int32)
        self.count += words.size
        if self.count > self.columns.shape[1]:
            self.columns = np.pad(self.columns, ((0, 0), (0, self.count)))
        self.columns[:, numbers] = words, starts, lengths
        return numbers


class Needs(TraceBlocks):
    """Marks what the records of a part need, and the records without a row that are to be kept."""

    for_lines = True  # of which it has that all arguments are kept
    without = WITHOUT

    def __init__(
        self, file: TraceFile, limits: Limits, selected: SelectedRecords, *, joins: bool
    ) -> None:
        self.mark = selected.mark
        self.running = selected.running
        self.everything = selected.selection.by_time_and_skips
        """Whether what has neither a thread nor a category is kept."""
        self.whole = selected.selection == Selection()
        """Whether all threads are kept."""
        self.joins = joins
        """Whether nothing may be left of provider 0."""
        super().__init__(file, limits, StringPool(), tables=())
        self.block_bytes = BLOCK_BYTES
        self.definers = Definers()
        self.known_objects = Registrations()
        """The numbers of ``object_words`` by those of ``object_keys``."""
        self.object_keys = Pairs()
        self.object_words = Definers()
        self.links: list[Links] = []
        """The needs of objects, of which it is known later whether they are kept."""
        self.loans: list[Loans] = []
        self.lent: dict[int, Bools] = {}
        """By the id of a reference: which of them are to what provider 0 registered."""

    def run(self) -> None:
        """Mark what is needed."""
        for _ in self.blocks():
            pass
        # The needs of an object precede it, so that one pass from the end resolves them all.
        links = joined(Links, self.links)
        order = np.argsort(links.ordinal, kind="stable")[::-1]
        mark = self.mark
        for owner, needed in zip(
            links.owner[order].tolist(), links.needed[order].tolist(), strict=True
        ):
            if mark[owner]:
                mark[needed] = 1

    def all_loans(self) -> Loans:
        """Return what has to be copied from provider 0 before other records."""
        return first_loans(joined(Loans, self.loans))

    # --- Records --------------------------------------------------------------------------------

    def begin(self, limits: Limits) -> tuple[Any, Any]:
        """Return what finds records, without the events that are left out."""
        _, walk = super().begin(limits)
        frames = KeptFrames(self.file)
        frames.mark = self.mark
        frames.everything = self.everything
        return frames, walk

    def judge(self, many: Many) -> None:
        """Take all records as columns have them: other readings report what is odd."""
        self.take_notes(many)

    def codes_of(self, run: Run, ordinals: I64, starts: I64, lengths: I64) -> NDArray[np.int32]:
        """Return the numbers of the records that register something."""
        return self.definers.add(run.places[ordinals] // WORD, starts, lengths)

    def look_up(self, reference: Reference) -> None:
        """Find the records that registered strings or threads."""
        is_lent = self.find_codes(reference)
        self.lent[id(reference)] = is_lent & (reference.codes >= 0)

    def take_run(self, block: Block, run: Run) -> None:
        """Mark what the records of a run need."""
        del block
        words = run.places // WORD
        classes = [SoundRows(run, plan.cls, many) for plan, many in run.read_classes]
        # An object is kept where an argument of a kept record stands for it, maybe a later one.
        is_object = np.zeros(run.rows, bool)
        """Whether it is an object, of which it is known later whether it is kept."""
        for rows in classes:
            if rows.cls in OBJECTS:
                is_object[rows.ordinals] = self.mark[rows.words] != 0
        described: list[Objects] = []
        meant: list[Objects] = []
        for rows in classes:
            self.choose(rows)
            if rows.cls in OBJECTS:
                described.append(self.described(rows, is_object))
            meant += self.meant_by(rows, words)
        self.choose_unknown(run, words)
        is_marked = np.zeros(run.rows, bool)
        for rows in classes:
            is_marked[rows.ordinals] = self.mark[rows.words] == 1
            if rows.cls is r.UnknownProfiler:
                run.reading.references.append(self.of_unknown(run, rows))
        owners = words, is_marked, is_object if is_object.any() else None
        for turn, reference in enumerate(run.reading.references):
            self.link(run, turn, reference, owners)
        if described or meant:
            links = self.pointed(run, joined(Objects, described), joined(Objects, meant))
            self.take_links(links, owners)
        self.lent.clear()
        # Objects of this run that no argument stands for by now are left out.
        undecided = words[: run.count][is_object[: run.count]]
        self.mark[undecided[self.mark[undecided] == MAYBE]] = 0
        self.lend_rates(run, words)

    # --- What is kept ---------------------------------------------------------------------------

    def choose(self, rows: SoundRows) -> None:
        """Mark the records without a row of a class that are kept whatever others need."""
        cls = rows.cls
        marks = self.mark[rows.words]
        # Kinds that the format does not define have neither a time nor a thread.
        if cls.undefined_kinds:
            self.mark[rows.words] = self.everything
        elif cls in SPOKEN:
            self.mark[rows.words] = True
        elif cls is r.Event:
            # Those that the format defines are marked already.
            is_undefined = rows.column("event") > max(EventType)
            self.mark[rows.words] = (marks == 1) | (is_undefined & self.everything)
        elif cls is r.ThreadRecord:
            is_running = np.isin(rows.column("tid"), self.running)
            self.mark[rows.words] = (marks == 1) | is_running | self.whole

    def choose_unknown(self, run: Run, words: I64) -> None:
        """Mark records of types that the format does not define."""
        if self.everything:
            is_unknown = self.frames.faults[: run.count] == rules.UNKNOWN_RECORD
            self.mark[words[: run.count][is_unknown]] = 1

    def koids(self, rows: SoundRows, name: str) -> tuple[I64, I64]:
        """Return process and thread koid of threads; 0 for what nobody registered."""
        field = rows.fields[name]
        is_inline = rows.column(field.index) == 0
        start = np.zeros(rows.words.size, np.int64)
        if is_inline.any():
            start = np.where(is_inline, rows.column((field, START)), 0)
        code = np.full(rows.words.size, -1)
        if not is_inline.all():
            codes = rows.many.known[field, CODE].column()
            code = np.where(is_inline, -1, codes[rows.rows])
        if self.definers.count:
            definer_start = self.definers.columns[1].take(code, mode="clip")
            start = np.where(code < 0, start, definer_start)
        has_koids = start > 0
        process = self.file.words.take(start // WORD, mode="clip")
        thread = self.file.words.take(start // WORD + 1, mode="clip")
        return np.where(has_koids, process, 0), np.where(has_koids, thread, 0)

    # --- What is needed -------------------------------------------------------------------------

    def link(self, run: Run, turn: int, reference: Reference, owners: Owners) -> None:
        """Mark the strings or threads that kept records refer to; note those that are lent."""
        words, is_marked, is_object = owners
        codes = reference.codes
        ordinals = reference.ordinals
        is_used = is_marked[ordinals] & (codes >= 0)
        self.mark[self.definers.columns[0][codes[is_used]]] = 1
        if is_object is not None:
            of_objects = np.flatnonzero(is_object[ordinals] & (codes >= 0))
            is_used[of_objects] = True
            needed = self.definers.columns[0][codes[of_objects]]
            rows = ordinals[of_objects]
            self.links.append(Links(rows + self.records, words[rows], needed))
        if self.joins:
            lent = np.flatnonzero(self.lent[id(reference)] & is_used)
            keys = KEYS[reference.table] * reference.numbers[lent]
            self.lend(run, turn, ordinals[lent], self.definers.columns[0][codes[lent]], keys)

    def take_links(self, links: Links, owners: Owners) -> None:
        """Mark what kept records need, and note what objects do."""
        _, is_marked, is_object = owners
        self.mark[links.needed[is_marked[links.ordinal]]] = 1
        if is_object is not None:
            of_objects = np.flatnonzero(is_object[links.ordinal])
            numbers = links.ordinal[of_objects] + self.records
            self.links.append(Links(numbers, links.owner[of_objects], links.needed[of_objects]))

    def of_unknown(self, run: Run, rows: SoundRows) -> Reference:
        """Return the threads of profiler records of a kind that the format does not define."""
        index = rows.column("_thread_ref")
        own = ClassRows.of(rows.ordinals)
        own.settle(run.rows)
        codes = np.full(index.size, -1, np.int32)
        reference = Reference(
            own, np.arange(index.size), THREADS, index, codes, True, lambda _: None
        )
        self.look_up(reference)
        reference.codes[index == 0] = -1
        return reference

    def described(self, rows: SoundRows, is_object: Bools) -> Objects:
        """Return the objects that records describe."""
        process = np.zeros(rows.words.size, np.int64)
        if rows.cls is r.UserspaceObject:
            process = self.koids(rows, "process")[0] ^ SIGN
        name = "pointer" if rows.cls is r.UserspaceObject else "koid"
        of_objects = np.flatnonzero(is_object[rows.ordinals])
        columns = (rows.ordinals, rows.words, process, rows.column(name))
        return Objects(*(column[of_objects] for column in columns))

    def meant_by(self, rows: SoundRows, words: I64) -> Iterator[Objects]:
        """Yield the objects that arguments of records stand for."""
        is_sound = rows.many.own.sound
        thread_field = "process" if rows.cls is r.UserspaceObject else "thread"
        for items in rows.many.own.parts.get(rows.fields.get("args"), ()):
            types = items.known[ARGUMENT["type"]]
            owners = items.rows_at(np.arange(types.size))
            for field, number in ((POINTER, ArgType.POINTER), (KOID, ArgType.KOID)):
                places = np.flatnonzero((types == number) & is_sound[owners])
                if not places.size:
                    continue
                ordinals = rows.many.own.ordinals[owners[places]]
                process = np.zeros(places.size, np.int64)
                if field is POINTER:
                    # A pointer is one of the record's process, if it has one.
                    if thread_field in rows.fields:
                        process_of_row = np.zeros(words.size, np.int64)
                        process_of_row[rows.ordinals] = self.koids(rows, thread_field)[0]
                        process = process_of_row[ordinals]
                    process = process ^ SIGN
                yield Objects(ordinals, words[ordinals], process, items.known[field][places])

    def pointed(self, run: Run, described: Objects, meant: Objects) -> Links:
        """Return the records of the objects that arguments stand for."""
        order = np.argsort(described.ordinal, kind="stable")
        described = Objects(*(column[order] for column in described))
        nothing = np.zeros(described.word.size, np.int64)
        codes = self.object_words.add(described.word, nothing, nothing)
        keys = self.object_keys.enter(described.process, described.value)
        self.known_objects.begin(described.ordinal, keys, codes, np.zeros(0, np.int64))
        meant_keys = self.object_keys.find(meant.process, meant.value)
        meant_codes = self.known_objects.find(meant_keys, meant.ordinal)
        rows = np.flatnonzero(meant_codes >= 0)
        needed = self.object_words.columns[0][meant_codes[rows]]
        self.known_objects.settle(run.count)
        return Links(meant.ordinal[rows], meant.word[rows], needed)

    # --- What is lent ---------------------------------------------------------------------------

    def lend(self, run: Run, turn: int, ordinals: I64, needed: I64, keys: I64) -> None:
        """Note what records need of provider 0."""
        scopes = self.by_row(run, [turn.scope for turn in self.turns])
        scope = np.broadcast_to(scopes, run.rows)[ordinals]
        turns = np.full(keys.size, turn)
        owners = run.places[ordinals] // WORD
        loans = Loans(ordinals + self.records, turns, owners, needed, scope, keys)
        self.loans.append(first_loans(loans))

    def lend_rates(self, run: Run, words: I64) -> None:
        """Note the rates that providers without one of their own have of provider 0."""
        offsets = [turn.lent_rate_at for turn in self.turns]
        if not self.joins or max(offsets) < 0:
            return
        every = np.broadcast_to(self.by_row(run, offsets), run.rows)
        rows = np.flatnonzero(every[: run.count] >= 0)
        # Odd bytes at the end of a file are a row without a word.
        rows = rows[words[rows] < self.mark.size]
        rows = rows[self.mark[words[rows]] == 1]
        types = r.TYPE.of(self.file.words[words[rows]])
        rows = rows[IS_TIMED[types]]
        self.lend(run, LAST, rows, every[rows] // WORD, np.full(rows.size, RATE))


class KeptFrames(TraceFrames):
    """Where records begin and end; events that are left out count as padding."""

    mark: NDArray[np.uint8]
    everything: bool
    """Whether events of undefined types are kept."""

    def entries_of(self, framed: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the numbers of the classes of the listed records, by those of the framing."""
        entries = super().entries_of(framed)
        words = self.begin // WORD
        is_left_out = (entries == EVENT_ENTRY) & (self.mark[words] == 0)
        if self.everything:
            is_left_out &= EVENT_KIND.of(self.file.words[words]) <= max(EventType)
        entries[is_left_out] = PADDING
        return entries


class SoundRows:
    """The sound records of a class in a run."""

    def __init__(self, run: Run, cls: Any, many: Many) -> None:
        self.cls = cls
        self.many = many
        self.fields = cls.layout.by_name
        self.rows = np.flatnonzero(many.own.sound)
        self.ordinals = many.own.ordinals[self.rows]
        self.words = run.places[self.ordinals] // WORD

    def column(self, field: Any) -> I64:
        """Return the numbers of a field, given by name or as ``Many.known`` has it."""
        key = self.fields[field] if isinstance(field, str) else field
        return self.many.full(self.many.known[key])[self.rows]


def first_loans(loans: Loans) -> Loans:
    """Return loans in order, without those that a provider has had since another of their key."""
    by_turn = np.lexsort((loans.turn, loans.number))
    loans = Loans(*(column[by_turn] for column in loans))
    # Of a key, one after another: another record is lent where it is not the one before.
    by_key = np.lexsort((loans.key, loans.scope))
    is_new_by_key = np.zeros(by_key.size, bool)
    for column in (loans.scope, loans.key, loans.needed):
        is_new_by_key |= begins_of_runs(column[by_key])
    is_new = np.empty(by_key.size, bool)
    is_new[by_key] = is_new_by_key
    return Loans(*(column[is_new] for column in loans))
