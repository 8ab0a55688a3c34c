"""Blocks: the records of a trace as columns, thousands at a time, in reading order.

``frames`` finds records, and their classes (``fx_trace.records``) say where fields lie, as
``fxframework.wire.blocks`` has it. What providers say about the records behind theirs, ``Tables``
takes in (``TraceRecord.apply``). What is found is what ``decoder`` finds in one record, in the same
order.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from fx_trace import records as r
from fx_trace import rules
from fx_trace.indexed import LENT, STRINGS, THREADS
from fx_trace.kinds import MAX_STRING_INDEX, MAX_THREAD_INDEX
from fx_trace.read.cursor import Provider, Tables
from fx_trace.read.decoder import Records
from fx_trace.read.frames import SPEAKING, TraceFile, TraceFrames, trace_format
from fx_trace.rules import RULES
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX, WORD
from fxframework.kernels.arrays import I64, Bools
from fxframework.kernels.pools import PairMap
from fxframework.kernels.sorting import begins_of_runs
from fxframework.model.clock import Clock
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.strings import StringPool
from fxframework.wire.blocks import BlockReader
from fxframework.wire.cursor import order_of
from fxframework.wire.expressions import wrapped
from fxframework.wire.fields import Number
from fxframework.wire.findings import Noted
from fxframework.wire.known import LENGTH, START, THERE
from fxframework.wire.many import ClassRows, Many, Moment, Reference
from fxframework.wire.runs import Run
from fxframework.wire.state import ScopedRegistrations

if TYPE_CHECKING:
    from fx_trace.records import TraceRecord

AS_IT_IS = 1 << 62
"""What findings show is a number as it is, if that is below."""
EVENT_TYPE: Any
INFO_TYPE: Any
PROVIDER_ID: Any
EVENT_TYPE, INFO_TYPE, PROVIDER_ID = (
    cls.layout.by_name[name]
    for cls, name in ((r.Event, "event"), (r.TraceInfo, "info_type"), (r.ProviderSection, "id"))
)
BEHIND_FIELDS = 1 << 28
"""The number of the field of findings that come behind those of all fields."""
ONCE = (int(rules.RESERVED_BITS), int(rules.PADDING_NOT_ZERO))
"""Rules that are reported once a record, behind others, in this order."""
LEFT_OVER = BEHIND_FIELDS + len(ONCE)
"""The same for words behind the fields."""
SAID = LEFT_OVER + 1
"""The same for what a record says about others."""
WITHOUT_VALUE = frozenset(
    map(int, (*ONCE, rules.INDEX_ZERO, rules.ONE_WORD_THREAD, rules.TWO_WORD_PROCESS))
)
"""Rules of findings that show nothing."""
OF_TEXTS = frozenset(map(int, (rules.NOT_UTF8, rules.OBJECT_NOT_UTF8)))
"""Rules of findings that show the bytes of a text."""


class Pairs:
    """Pairs of numbers of 64 bits, made one number each."""

    def __init__(self) -> None:
        self.first = PairMap()
        self.second = PairMap()

    def enter(self, first: I64, second: I64) -> I64:
        """Return the numbers of pairs."""
        return as_one(self.first.enter(first), self.second.enter(second))

    def find(self, first: I64, second: I64) -> I64:
        """Return the numbers of pairs; -1 for those of which a part was never entered."""
        return as_one(self.first.find(first), self.second.find(second))


PAIRED = 1 << 32
"""More than there are numbers of one kind."""


def as_one(first: I64, second: I64) -> I64:
    """Return two small numbers as one; -1 if one of them is negative."""
    is_missing = (first < 0) | (second < 0)
    return np.where(is_missing, -1, first * PAIRED + second)


class BlockTables(Tables):
    """What providers say, with the strings and threads that blocks know, as of the row at hand."""

    def __init__(self, registrations: Any, strings: StringPool, *, big: bool) -> None:
        super().__init__()
        self.registrations: Mapping[Any, ScopedRegistrations] = registrations
        self.pool = strings
        self.thread_pool = strings
        self.big = big
        self.row = np.zeros(1, np.int64)

    def speak(self) -> None:
        """Let the speaker be that of all records, between runs."""
        for registrations in self.registrations.values():
            registrations.scopes = self.current.scope
            registrations.lenders = self.default.scope

    def register(self, table: Any, index: int, value: Any) -> None:
        """Register a string or a thread of the speaker."""
        if table is STRINGS:
            code = self.pool.intern(value.encode(errors="surrogateescape"))
        else:
            order = order_of(self.big)
            octets = b"".join(koid.to_bytes(WORD, order) for koid in value)
            code = self.thread_pool.intern(octets)
        self.registrations[table].define(index, code)

    def look_up(self, table: Any, index: int) -> tuple[Any, bool]:
        """Return what is registered at an index, and whether only by the default provider.

        None if nothing is.
        """
        number = np.array([index])
        registrations = self.registrations[table]
        (code,) = registrations.find_own(number, self.row).tolist()
        is_lent = code < 0
        if is_lent:
            (code,) = registrations.find_lent(number, self.row).tolist()
        if code < 0:
            return None, is_lent
        if table is STRINGS:
            return self.pool.bytes_of(code).decode(errors="surrogateescape"), is_lent
        return koids_of(self.thread_pool.bytes_of(code), big=self.big), is_lent


def koids_of(octets: bytes, *, big: bool) -> tuple[int, int]:
    """Return process and thread koid of the bytes of a thread record."""
    pid = r.FIRST_WORD.get(octets, 0, big)
    tid = r.FIRST_WORD.get(octets, WORD, big)
    return pid, tid


class Details:
    """What findings show that is not a small number: they are numbers, and have its place here."""

    def __init__(self) -> None:
        self.values: list[object] = []

    def number_of(self, value: object) -> int:
        """Return what a finding shows as a number."""
        if isinstance(value, int) and 0 <= value < AS_IT_IS:
            return value
        self.values.append(value)
        return -len(self.values)

    def value_of(self, number: int) -> object:
        """Return what a number of ``number_of`` shows."""
        if number < 0:
            return self.values[-1 - number]
        return number


class Objects(Records):
    """Reads the record at ``at`` as an object, in place of ``fxframework.wire.walk.Walk``."""

    views = last = None

    def __init__(self, file: TraceFile, frames: TraceFrames) -> None:
        super().__init__(file, frames)
        self.details = Details()
        self.state: Any = None
        self.applies = False  # a run takes in itself what is said there

    def next(self) -> tuple[TraceRecord, list[tuple[int, int, int]]]:
        """Return the record, and rule, offset and value of its findings; go behind it."""
        self.reader.tables.row[0] = self.state.ordinal  # type: ignore[attr-defined]
        record, findings = self.read()
        number_of = self.details.number_of
        numbered = [(int(rule), offset, number_of(value)) for rule, offset, value in findings]
        return record, numbered


class Turn(NamedTuple):
    """Who speaks, and what follows from it."""

    scope: int
    lender: int
    """The scope of the default provider."""
    clock: Clock
    lent_rate_at: int
    """The offset of the record with the rate of the default provider, if it has none itself."""
    lacks_rate: bool
    """Whether neither it nor the default provider had a rate when it was first heard of."""
    provider: Provider

    @classmethod
    def of(cls, tables: Tables) -> Turn:
        """Return who speaks."""
        current = tables.current
        lent_rate_at = -1
        if current.rate_at < 0:
            lent_rate_at = current.default_rate_at
        lacks_rate = current.rate_at < 0 and lent_rate_at < 0 and not current.missed_rate
        lender = tables.default.scope
        return cls(current.scope, lender, current.clock, lent_rate_at, lacks_rate, current)


class Spoken(NamedTuple):
    """Records of a class in a run that say something about providers."""

    cls: Any
    many: Many
    sound: I64
    """Those of them that count."""
    rows: I64
    """The rows of the run that these are in."""


def places_of(mask: Bools) -> Any:
    """Return where a mask holds: an index, or a slice of all."""
    return slice(None) if mask.all() else np.flatnonzero(mask)


def some_of(note: Noted, where: Bools) -> Noted:
    """Return some of the findings by a rule."""
    names = ("rows", "offsets", "values", "places", "items")
    columns = {name: getattr(note, name)[where] for name in names}
    return attrs.evolve(note, **columns)


def first_of_records(notes: list[Noted], top: int) -> Noted:
    """Return the first finding of each record, of those by a rule, as that of a field ``top``."""
    rows = np.concatenate([note.rows for note in notes])
    offsets = np.concatenate([note.offsets for note in notes])
    places = np.concatenate([note.places for note in notes])
    items = np.concatenate([note.items for note in notes])
    sizes = [note.rows.size for note in notes]
    tops = np.repeat([note.top for note in notes], sizes)
    steps = np.repeat([note.step for note in notes], sizes)
    order = np.lexsort((steps, items, places, tops, rows))
    first = order[begins_of_runs(rows[order])]
    return attrs.evolve(
        notes[0],
        rows=rows[first],
        offsets=offsets[first],
        values=np.zeros(first.size, np.int64),
        top=top,
        places=places[first],
        items=items[first],
    )


class TraceBlocks(BlockReader):
    """Reads the records of a trace."""

    short_rule = int(rules.CONTENTS_OVERRUN)
    reports_begin = True
    """Whether a missing magic number is a finding of the first record."""
    frames: Any
    walk: Any
    registrations: dict[Any, Any]

    def __init__(self, file: TraceFile, limits: Limits, *arguments: Any, **options: Any) -> None:
        self.file = file
        super().__init__(trace_format(), file.source, limits, *arguments, **options)  # type: ignore[arg-type]
        self.registrations = {
            STRINGS: ScopedRegistrations(MAX_STRING_INDEX.bit_length()),
            THREADS: ScopedRegistrations(MAX_THREAD_INDEX.bit_length()),
        }
        self.speakers = BlockTables(self.registrations, self.strings, big=file.big_endian)
        self.walk.reader.tables = self.speakers
        self.turns: list[Turn] = []
        """Who speaks in the run: from each of ``turn_rows`` on, the ``turn_index``-th of them."""
        self.turn_rows = np.zeros(1, np.int64)
        self.turn_index = np.zeros(1, np.int64)
        self.known_turns: dict[int, Turn] = {}
        """What sections of providers begin, by id, as long as nothing else is said."""
        self.details: Details = self.walk.details
        if file.begins_wrong and self.reports_begin:
            no_detail = self.details.number_of(None)
            self.add_findings(np.array([[rules.NO_MAGIC, 0, 0, no_detail]]))

    def begin(self, limits: Limits) -> tuple[Any, Any]:
        """Return what finds records, and what reads one of them as an object."""
        del limits  # the bounds of the file have them
        frames = TraceFrames(self.file)
        return frames, Objects(self.file, frames)

    # --- What is found in records

    def end_fields(self, many: Many) -> None:
        """Report words that records have behind their fields, and go over them."""
        left = many.limit - many.at()
        index = np.flatnonzero(left > 0)
        if index.size:
            many.keep_raw(index)
            if many.layout.cls is r.Event:
                # What follows the fields of an undefined type may be anything.
                index = index[~EVENT_TYPE.without_name(many.known[EVENT_TYPE][index])]
            moment = Moment(LEFT_OVER, many.reading.step, many.at())
            many.report(rules.WORDS_LEFT_OVER, index, left // WORD, many.start, moment)
        many.go_to(many.limit)

    def judge(self, many: Many) -> None:
        """Report the findings that ``decoder`` would report of these records."""
        notes = self.take_notes(many)
        unknown = self.unknown_kinds(many)
        if unknown.size:
            many.own.raw[unknown] = True
            is_known = np.ones(many.start.size, bool)
            is_known[unknown] = False
            some_notes = [some_of(note, is_known[note.rows]) for note in notes]
            notes = [note for note in some_notes if note.rows.size]
            self.report_unknown(many, unknown)
        for turn, rule in enumerate(ONCE):
            of_rule = [note for note in notes if note.number == rule]
            if of_rule:
                for note in of_rule:
                    many.own.raw[note.rows] = True
                once = first_of_records(of_rule, BEHIND_FIELDS + turn)
                many.reading.notes.append(self.with_details(once))
        many.reading.notes += [self.with_details(note) for note in notes if note.number not in ONCE]

    def unknown_kinds(self, many: Many) -> I64:
        """Return which records are of kinds that the format does not define."""
        if many.layout.cls is r.TraceInfo:
            return np.flatnonzero(many.known[INFO_TYPE])
        if not many.layout.cls.undefined_kinds:
            return np.zeros(0, np.int64)
        return np.arange(many.start.size)

    def report_unknown(self, many: Many, index: I64) -> None:
        """Report records of undefined kinds, of which nothing else is found."""
        headers = self.file.words[many.start[index] // WORD]
        if many.layout.cls is r.Unknown:
            rule = rules.UNKNOWN_RECORD
            values = r.TYPE.of(headers)
        else:
            rule = rules.UNKNOWN_KIND
            starts = many.start[index]

            def kind(row: int) -> str:
                return self.kind_at(int(starts[row]))

            values = self.details_of(rule, index.size, kind)
        every_value = np.zeros(many.start.size, np.int64)
        every_value[index] = values
        many.report(rule, index, every_value, many.start)

    def with_details(self, note: Noted) -> Noted:
        """Return findings with values that show what theirs mean (``Details``)."""
        count = note.values.size
        if note.number == int(rules.INDEX_ZERO):
            note.top = SAID
        if note.number in WITHOUT_VALUE:
            note.values = np.full(count, self.details.number_of(None))
        elif note.number in OF_TEXTS:
            begins, ends = note.values, note.places  # read as far as the text

            def text(row: int) -> bytes:
                return self.file.view[begins[row] : ends[row]].tobytes()

            note.values = self.details_of(note.number, count, text)
        elif note.number == int(rules.UNKNOWN_KIND):

            def kind(row: int) -> str:
                return self.kind_at(int(note.offsets[row]))

            note.values = self.details_of(note.number, count, kind)
        else:
            is_large = (note.values < 0) | (note.values >= AS_IT_IS)
            large_values = note.values[is_large]

            def value(row: int) -> int:
                return int(large_values[row]) & U64_MAX

            if large_values.size:
                note.values = note.values.copy()
                note.values[is_large] = self.details_of(note.number, large_values.size, value)
        return note

    def kind_at(self, place: int) -> str:
        """Return what makes the record at a place one of an undefined kind."""
        return r.undefined_kind(int(self.file.words[place // WORD]) & U64_MAX)

    def details_of(self, rule: Any, count: int, detail: Callable[[int], object]) -> I64:
        """Return values of so many findings by a rule, of which no more than are listed count."""
        values = np.zeros(count, np.int64)
        left_to_list = self.findings.limit - int(self.findings.totals[int(rule)])
        for row in range(min(count, left_to_list)):
            values[row] = self.details.number_of(detail(row))
        return values

    def report_short(self, run: Run, own: ClassRows, short: I64) -> None:
        """Report records whose contents do not fit, and how many words they would need."""
        rows = own.ordinals[short]
        if not rows.size:
            return
        assert own.needed is not None  # noqa: S101 (some are short)
        needed = own.needed[short].view(np.uint64)
        places = run.places[rows]
        sizes = run.sizes[rows]

        def detail(row: int) -> str:
            needed_bytes = int(needed[row]) - int(places[row])
            needed_words = (needed_bytes + WORD - 1) // WORD
            return rules.overrun_detail(needed_words, int(sizes[row]) // WORD)

        values = self.details_of(self.short_rule, rows.size, detail)
        run.note_rows(self.short_rule, rows, values)

    def report_stretches(self, run: Run, entry: int, rows: I64) -> None:
        """Report damage and zero words; objects say what is found in special stretches."""
        del entry
        faults = self.frames.faults[rows]
        for fault in np.unique(faults[faults > 0]).tolist():
            of_fault = rows[faults == fault]
            run.note_rows(fault, of_fault, self.frames.values[of_fault])

    def take_notes(self, many: Many) -> list[Any]:
        """Return and drop the findings about the records of a class."""
        own_notes: list[Noted] = []
        other_notes: list[Noted] = []
        for note in many.reading.notes:
            (own_notes if note.own is many.own else other_notes).append(note)
        many.reading.notes[:] = other_notes
        return own_notes

    def begin_walk(self) -> None:
        """Let objects be read from where the reader is, between runs."""
        super().begin_walk()
        self.walk.applies = True
        self.speakers.speak()

    def end_walk(self) -> None:
        """Go on behind the objects that were read."""
        super().end_walk()
        self.walk.applies = False

    def next_object(self) -> tuple[TraceRecord, list[tuple[int, int, int]]]:
        """Return the next record as an object, and its findings."""
        record, notes = self.walk.next()
        self.speakers.speak()
        return record, notes

    # --- What providers say

    def follow(self, run: Run) -> None:
        """Find who speaks in each row of a run, and whose strings and threads others may use."""
        self.turns = [Turn.of(self.speakers)]
        self.turn_rows = self.turn_index = np.zeros(1, np.int64)
        spoken = self.spoken(run)
        # Rates may be said by the million: those behind all else are taken in together.
        last_rows = [int(said.rows[-1]) for said in spoken if said.cls is not r.Initialization]
        last_other = max(last_rows, default=-1)
        statements = self.statements(spoken, last_other)
        rows, ids = self.sections(run)
        if rows.size or statements:
            self.follow_statements(run, statements, rows, ids)
        for said in spoken:
            if said.cls is r.Initialization and said.rows[-1] > last_other:
                is_behind = said.rows > last_other
                self.follow_rates(run, said.many, said.sound[is_behind])
        self.scope_registrations(run)

    def spoken(self, run: Run) -> list[Spoken]:
        """Return the records of a run that say something about providers."""
        spoken: list[Spoken] = []
        for plan, many in run.read_classes:
            if plan.cls not in SPEAKING:
                continue
            index = np.flatnonzero(many.own.sound)
            if index.size:
                spoken.append(Spoken(plan.cls, many, index, many.own.ordinals[index]))
        return spoken

    def follow_statements(
        self, run: Run, statements: list[tuple[int, Any, dict[str, Any]]], rows: I64, ids: I64
    ) -> None:
        """Find who speaks behind statements, and behind sections at some rows, by their ids."""
        tables = self.speakers
        found: list[tuple[int, int, int, int]] = []
        statement_rows = np.array([row for row, _, _ in statements], np.int64)
        # Between two statements all sections of a provider begin the same turn, and the first of
        # them may say something new.
        between = np.searchsorted(statement_rows, rows)
        numbers = PairMap().enter(between * (1 << PROVIDER_ID.nbits) + ids)
        # Numbers are given in order: a first section has one greater than all before it.
        is_first = begins_of_runs(np.maximum.accumulate(numbers))
        first_rows = rows[is_first].tolist()
        first_ids = ids[is_first].tolist()
        known_turns = list(map(self.known_turns.get, first_ids))
        if not statements and None not in known_turns:
            self.turns += known_turns  # type: ignore[arg-type]
            self.turn_rows = np.append(0, rows)
            self.turn_index = np.append(0, numbers + 1)
            tables.current = tables.providers[int(ids[-1])]
            return
        first_sections = zip(first_rows, first_ids, strict=True)
        firsts = [(row, r.ProviderSection, {"id": id}) for row, id in first_sections]
        sections_before = np.searchsorted(rows, statement_rows).tolist()
        section_turns: list[int] = []
        statement_turns: list[int] = []
        for row, cls, values in sorted([*firsts, *statements], key=operator.itemgetter(0)):
            if cls is r.ProviderSection:
                section_turns.append(len(self.turns))
                known_turn = self.known_turns.get(values["id"])
                if known_turn is not None:
                    tables.current = known_turn.provider
                    self.turns.append(known_turn)
                    continue
            else:
                last_section = sections_before[len(statement_turns)] - 1
                if last_section >= 0 and between[last_section] == len(statement_turns):
                    tables.current = tables.providers[int(ids[last_section])]
                statement_turns.append(len(self.turns))
                self.known_turns.clear()
            find = functools.partial(self.find_said, found, row, int(run.places[row]))
            cls.apply(SimpleNamespace(**values), tables, find)
            turn = Turn.of(tables)
            self.turns.append(turn)
            if cls is r.ProviderSection:
                self.known_turns[values["id"]] = turn
        if rows.size and between[-1] == len(statements):
            tables.current = tables.providers[int(ids[-1])]
        turns_of_sections = np.array(section_turns, np.int64)[numbers]
        turn_rows = np.concatenate([[0], rows, statement_rows])
        turn_index = np.concatenate([[0], turns_of_sections, statement_turns])
        order = np.argsort(turn_rows, kind="stable")
        self.turn_rows = turn_rows[order]
        self.turn_index = turn_index[order].astype(np.int64)
        self.report_said(run, found)

    def scope_registrations(self, run: Run) -> None:
        """Let registrations be those of who speaks."""
        scopes = self.by_row(run, [turn.scope for turn in self.turns])
        lender_of_turn = [turn.lender for turn in self.turns]
        lenders = lender_of_turn[0]  # mostly there is one default provider
        if lender_of_turn.count(lenders) < len(lender_of_turn):
            lenders = self.by_row(run, lender_of_turn)
        for registrations in self.registrations.values():
            registrations.scopes = scopes
            registrations.lenders = lenders

    def follow_rates(self, run: Run, many: Many, index: I64) -> None:
        """Follow the rates that some records say, behind all else that the run says."""
        fields = r.Initialization.layout.by_name
        has_all = index.size == many.own.ordinals.size
        picked: Any = slice(None) if has_all else index

        def numbers_of(name: str) -> I64:
            column = many.full(many.known[fields[name]])
            return column[picked]  # type: ignore[no-any-return]

        rows = many.own.ordinals[picked]
        rates = numbers_of("ticks_per_second")
        bases = numbers_of("base_tick")
        walls = numbers_of("base_wall_ns")
        has_base = many.known[fields["base_tick"], THERE][picked]
        self.known_turns.clear()
        provider = self.speakers.current
        is_rate = rates != 0
        with_rate = places_of(is_rate)
        # The rate before each one; 0 where there is none.
        rate_at_begin = wrapped(provider.ticks_per_second or 0)
        rates_in_order = np.append(rate_at_begin, rates[with_rate])
        if isinstance(with_rate, slice):
            rate_before = rates_in_order[:-1]
        else:
            rate_before = rates_in_order[np.cumsum(is_rate) - is_rate]
        is_change = is_rate & (rate_before != 0) & (rate_before != rates)
        changes = places_of(is_change)
        for rule, is_found in ((rules.BASE_TIME, has_base), (rules.RATE_ZERO, ~is_rate)):
            found_rows = rows[places_of(is_found)]
            no_details = np.full(found_rows.size, self.details.number_of(None))
            run.note_rows(int(rule), found_rows, no_details, top=SAID)
        new_rates = rates[changes].view(np.uint64)

        def new_rate(row: int) -> int:
            return int(new_rates[row])

        details = self.details_of(rules.RATE_CHANGES, new_rates.size, new_rate)
        run.note_rows(int(rules.RATE_CHANGES), rows[changes], details, top=SAID)
        said = (rows, rates, has_base, bases, walls)
        self.take_rates(*[column[with_rate] for column in said])
        if is_rate.any():
            last_row = rows[with_rate][-1]
            provider.rate_at = int(run.places[last_row])

    def take_rates(self, rows: I64, rates: I64, has_base: Bools, bases: I64, walls: I64) -> None:
        """Let the speaker have rates from some rows on, each of which is one, in order."""
        tables = self.speakers
        timed = np.flatnonzero(has_base & (walls != -1))
        if timed.size and tables.base_wall_ns in (None, U64_MAX):
            tables.base_wall_ns = int(walls[timed[0]]) & U64_MAX
        # A rate right before another one is nobody's.
        is_followed_by_row = np.diff(rows) > 1
        holds_for_a_row = np.append(is_followed_by_row, True)[: rows.size]
        holding = np.flatnonzero(holds_for_a_row)
        rows = rows[holding]
        columns = (rates, has_base, bases, walls)
        said = np.stack([column[holding] for column in columns])
        is_other = (said[:, 1:] != said[:, :-1]).any(0)
        begins = np.flatnonzero(np.append(True, is_other)[: rows.size])
        clocks, index = np.unique(said[:, begins], axis=1, return_inverse=True)
        first_turn = len(self.turns)
        turn = Turn.of(tables)._replace(lent_rate_at=-1, lacks_rate=False)
        for rate, is_based, base, wall in clocks.T.tolist():
            base_wall = wall & U64_MAX if is_based else None
            clock = Clock(rate & U64_MAX, base & U64_MAX, base_wall)
            self.turns.append(turn._replace(clock=clock))
        self.turn_rows = np.append(self.turn_rows, rows[begins])
        turns_of_rates = first_turn + index.reshape(-1)
        self.turn_index = np.append(self.turn_index, turns_of_rates)
        if rows.size:
            last_turn = self.turns[int(self.turn_index[-1])]
            tables.current.clock = last_turn.clock
            tables.current.ticks_per_second = last_turn.clock.ticks_per_second

    def sections(self, run: Run) -> tuple[I64, I64]:
        """Return rows and providers of the sections of a run."""
        for plan, many in run.read_classes:
            if plan.cls is r.ProviderSection:
                sound = many.own.sound
                return many.own.ordinals[sound], many.known[PROVIDER_ID][sound]
        return np.zeros(0, np.int64), np.zeros(0, np.int64)

    def by_row(self, run: Run, values: Any) -> Any:
        """Return values of ``turns`` by row of a run; the only one if there is one turn."""
        if len(values) == 1:
            return values[0]
        counts = np.diff(self.turn_rows, append=run.rows)
        return np.repeat(np.asarray(values)[self.turn_index], counts, axis=0)

    def find_said(
        self,
        found: list[tuple[int, int, int, int]],
        row: int,
        place: int,
        rule: int,
        value: object = None,
    ) -> None:
        """Add a finding to those that were found: which of its record it is, rule, row, value."""
        if rule == rules.UNKNOWN_KIND:
            value = self.kind_at(place)
        turn = 0
        if found and found[-1][2] == row:
            turn = found[-1][0] + 1
        found.append((turn, int(rule), row, self.details.number_of(value)))

    def statements(
        self, spoken: list[Spoken], last_row: int
    ) -> list[tuple[int, Any, dict[str, Any]]]:
        """Return row, class and fields of what is said up to a row, but for sections."""
        said: list[tuple[int, Any, dict[str, Any]]] = []
        for cls, many, index, every_row in spoken:
            if cls is r.ProviderSection:
                continue
            rows = index[every_row <= last_row]
            columns: dict[str, list[Any]] = {"offset": many.start[rows].tolist()}
            for field in cls.layout.public:
                if isinstance(field, Number):
                    columns[field.name] = self.values_of(many, field, rows)
            if cls is r.ProviderInfo:
                columns["name"] = self.names_of(many, rows)
            ordinals = many.own.ordinals[rows].tolist()
            for ordinal, values in zip(ordinals, zip(*columns.values(), strict=True), strict=True):
                fields = dict(zip(columns, values, strict=True))
                said.append((ordinal, cls, fields))
        return sorted(said, key=operator.itemgetter(0))

    def names_of(self, many: Many, rows: I64) -> list[str]:
        """Return the names of providers."""
        name = r.ProviderInfo.layout.by_name["name"]
        starts = many.known[name, START][rows].tolist()
        lengths = many.known[name, LENGTH][rows].tolist()
        names = []
        for start, length in zip(starts, lengths, strict=True):
            octets = self.file.view[start : start + length].tobytes()
            names.append(octets.decode(errors="surrogateescape"))
        return names

    def values_of(self, many: Many, field: Number, rows: I64) -> list[int | None]:
        """Return the values of a number; None where it is not there."""
        numbers = many.full(many.known[field])[rows].view(np.uint64)
        there = many.known.get((field, THERE))
        if there is None:
            return list(numbers.tolist())
        pairs = zip(numbers.tolist(), there[rows].tolist(), strict=True)
        return [number if is_there else None for number, is_there in pairs]

    def report_said(self, run: Run, found: list[tuple[int, int, int, int]]) -> None:
        """Report findings: which of its record each is, rule, row, and value."""
        if not found:
            return
        turns, rules_said, rows, values = np.array(found, np.int64).T
        for turn, rule in sorted({(turn, rule) for turn, rule, _, _ in found}):
            is_alike = (turns == turn) & (rules_said == rule)
            run.note_rows(rule, rows[is_alike], values[is_alike], top=SAID)

    # --- References

    def look_up(self, reference: Reference) -> None:
        """Look up strings or threads; report what nobody registered, or the default provider."""
        is_lent = self.find_codes(reference)
        if is_lent.any():
            unknown = reference.codes < 0
            reference.note(unknown)
            reference.note(is_lent & ~unknown, LENT)

    def find_codes(self, reference: Reference) -> Bools:
        """Find the codes of strings or threads; return which the speakers did not register."""
        registrations = self.registrations[reference.table]
        numbers = reference.numbers
        ordinals = reference.ordinals
        codes = registrations.find_own(numbers, ordinals, reference.codes)
        is_lent: Bools = codes < 0
        if is_lent.all():
            codes[:] = registrations.find_lent(numbers, ordinals)
        elif is_lent.any():
            codes[is_lent] = registrations.find_lent(numbers[is_lent], ordinals[is_lent])
        return is_lent

    # --- Findings

    def report(self, diagnostics: Diagnostics | None) -> None:
        """Report the findings so far."""
        rows = self.findings.taken()
        offsets = self.file.offset_of(rows[:, 1]).tolist()
        for (number, _, record, value), offset in zip(rows.tolist(), offsets, strict=True):
            if diagnostics is not None:
                shown = self.details.value_of(value)
                diagnostics.add(RULES.numbered(number), offset, record, shown)
        self.details.values.clear()

    def report_more(self, diagnostics: Diagnostics | None) -> None:
        """Report how many findings there are beyond those that are listed."""
        if diagnostics is not None:
            for number, times in self.findings.beyond_limit():
                diagnostics.add(RULES.numbered(number), times=times)
