"""Extracts a part of a trace as a trace of its own, with every record that the part needs.

``selected`` marks the records of the rows in the part, ``needs`` the strings, threads, objects and
providers that they refer to. Marked records are copied unchanged, but for times that are moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import attrs
import numpy as np

from fx_trace import format as wire
from fx_trace.kinds import RecordType
from fx_trace.read.capture import TraceCapture
from fx_trace.read.frames import words_of
from fx_trace.records import (
    FIRST_WORD,
    METADATA_KIND,
    PROVIDER_ID,
    TYPE,
    ProviderInfo,
    ProviderSection,
    StringRecord,
    ThreadRecord,
)
from fx_trace.write.needs import Needs
from fx_trace.write.selected import (
    KEEP,
    MovedSlices,
    NewTimes,
    NewWords,
    SelectedRecords,
    nested_ticks,
)  # fmt: skip
from fxframework.errors import UsageError
from fxframework.io.sink import Sink
from fxframework.io.words import WORD
from fxframework.kernels.arrays import I64, Bools
from fxframework.model.capture import Capture
from fxframework.model.selection import Selection
from fxframework.wire.verbs.copies import Copies

BLOCK = 1 << 19
"""Words copied at a time."""
NAMES = {
    RecordType.STRING: "strings",
    RecordType.THREAD: "threads",
    RecordType.EVENT: "events",
    RecordType.BLOB: "blobs",
    RecordType.USERSPACE_OBJECT: "userspace objects",
    RecordType.KERNEL_OBJECT: "kernel objects",
    RecordType.SCHEDULING: "scheduling records",
    RecordType.LOG: "logs",
    RecordType.PROFILER: "profiler records",
    RecordType.LARGE: "large records",
}
SECTION_OF_DEFAULT = FIRST_WORD.get(ProviderSection(id=0).pack(), 0)
"""The header that begins a section of provider 0."""
STRING_INDEX = StringRecord.layout.place("index")
THREAD_INDEX = ThreadRecord.layout.place("index")


def extract(
    capture: Capture, selection: Selection, sink: Sink, options: Mapping[str, Any]
) -> Mapping[str, int]:
    """Write the selected part of a trace. Return the counts of records left out, by kind.

    An event is kept if its time, thread and category are selected, a slice if any part of it is
    within the stretch of time. ``options["open_slices"]`` selects how slices that reach beyond the
    stretch are handled: kept whole (``keep``), made to end at its bounds (``close``), or left out
    (``drop``). Closed slices that now begin together are written outer before inner. Where the
    records have to keep their order, or clocks have other ticks, outer slices are longer by a tick.

    All points of a flow within the time are kept if its begin is one of them and all are selected;
    otherwise none, because the others would join another flow of the same id. Context switches are
    kept for all CPUs unless categories are selected: a part of them would wrongly show threads as
    running. Records with neither time nor thread (blobs, unknown records) are kept if only time is
    selected, whatever slices are skipped. Damage and padding are always left out.

    Raises UsageError if a name matches nothing, and for options that do not apply to a part.
    """
    if not isinstance(capture, TraceCapture):
        raise UsageError(
            f"a part can be extracted from a whole trace only, not from a {type(capture).__name__}",
            path=capture.name,
            remedy="pass the capture itself, and everything to select as one Selection",
        )
    big_endian = options.get("big_endian", capture.big_endian)
    if options.get("perfetto_safe") or bool(big_endian) != capture.big_endian:
        raise UsageError(
            "a part copies records unchanged: perfetto_safe and big_endian do not apply",
            path=capture.name,
            remedy="extract the part first, then convert it",
        )
    return PartWriter(capture, selection, options.get("open_slices", KEEP)).write(sink)


def join(
    capture: TraceCapture,
    selection: Selection,
    sink: Sink,
    *,
    providers: ProviderIds,
    name: str,
    how: str = KEEP,
) -> Mapping[str, int]:
    """Append the selected part to others in one archive. Return the counts of what was left out.

    No magic number is written. Its providers get free ids, which are then taken; records before the
    first provider get one, named ``name`` unless it is introduced later. Registrations and the rate
    of provider 0 are copied to the providers that lack them. Provider 0 of the archive is not
    used: providers of other captures would find its registrations and rate.
    """
    return PartWriter(capture, selection, how, NewIds(providers, name)).write(sink)


class ProviderIds:
    """The provider ids in use in an archive."""

    def __init__(self) -> None:
        self._taken = {0}
        self._next = 1

    def free(self) -> int:
        """Take and return the least free id, from 1 on."""
        while self._next in self._taken:
            self._next += 1
        self._taken.add(self._next)
        return self._next

    def claim(self, id: int) -> int:
        """Take and return the given id if it is free, or another free one."""
        if id in self._taken:
            return self.free()
        self._taken.add(id)
        return id


@attrs.define
class NewIds:
    """The provider ids of a capture that is joined to others."""

    archive: ProviderIds
    name: str
    ids: dict[int, int] = attrs.field(factory=dict)

    def of(self, id: int) -> int:
        """Return the id under which a provider is written: its own if that is free."""
        if id not in self.ids:
            self.ids[id] = self.archive.claim(id)
        return self.ids[id]


class Written(NamedTuple):
    """Records in the order in which they are written: columns of shape (records,)."""

    place: I64
    """The word of the file where a record is, or the record before which it is lent."""
    word: I64
    """The word of the file where it begins."""
    header: I64


class PartWriter:
    """Writes one part of a trace; with ``new_ids`` as a part of a joined archive."""

    def __init__(
        self,
        capture: TraceCapture,
        selection: Selection,
        open_slices: str,
        new_ids: NewIds | None = None,
    ) -> None:
        check_selection(capture, selection)
        self.capture = capture
        self.selection = selection
        self.new_ids = new_ids
        self.selected = SelectedRecords(capture, selection, open_slices)
        self.words: I64 = capture.words
        self.mark = self.selected.mark
        self.new_words: list[NewWords] = []
        self.homeless = np.zeros(0, np.int32)
        """Threads that run whose process only records that are left out say."""

    def write(self, sink: Sink) -> Mapping[str, int]:
        """Write the part. Return the counts of what was left out."""
        self.selected.choose()
        borrowers, lent = self._complete()
        records = self._without_bare_sections(self._marked(borrowers, lent))
        order = self._outer_first(records)
        records = Written(*(column[order] for column in records))
        self._move_times(records)
        if self.new_ids is not None:
            sink.write(self._introduction(records, self.new_ids))
            self._rename(records, self.new_ids)
        elif not records.word.size or int(records.header[0]) != wire.MAGIC_WORD:
            is_big = self.capture.big_endian
            sink.write(wire.MAGIC_BYTES_BIG_ENDIAN if is_big else wire.MAGIC_BYTES)
        for block in self._blocks(records.word, words_of(records.header)):
            sink.write(block)
        tasks = self.selected.passed.tasks
        for thread in self.homeless.tolist():
            # Nothing behind it uses the index.
            pid = int(tasks.pids[thread])
            record = ThreadRecord(index=1, pid=pid, tid=int(tasks.tids[thread]))
            sink.write(record.pack(big_endian=self.capture.big_endian))
        return self._left_out(TYPE.of(records.header))

    # --- What belongs to the part ---------------------------------------------------------------

    def _complete(self) -> tuple[I64, I64]:
        """Mark what marked records need, and the kept records without rows.

        Return what has to be copied from provider 0 to others: the words of the records that need
        it, and those of the ones to copy before them.
        """
        selected = self.selected
        tasks = selected.passed.tasks
        running = selected.running
        runs = tasks.threads_of(running, np.ones(running.size, np.bool_))
        needs = Needs(
            self.capture.file(),
            self.capture.request.limits,
            selected,
            joins=self.new_ids is not None,
        )
        needs.run()
        # Objects are kept, as are thread records of those that run; other records may be left out.
        has_record = runs < selected.passed.reader.threads.count
        recorded_runs = runs[has_record]
        self.homeless = recorded_runs[self.mark[tasks.offsets[recorded_runs] // WORD] == 0]
        loans = needs.all_loans()
        return loans.owner, loans.needed

    def _marked(self, borrowers: I64, lent: I64) -> Written:
        """Return the marked records; what providers borrow is before the record that needs it."""
        places = np.flatnonzero(self.mark)
        if self.new_ids is not None:
            is_info = is_metadata(self.words[places], wire.MetadataType.TRACE_INFO)
            places = places[~is_info]
        borrower_rows = np.searchsorted(places, borrowers)
        words = np.insert(places, borrower_rows, lent)
        return Written(np.insert(places, borrower_rows, borrowers), words, self.words[words])

    def _without_bare_sections(self, records: Written) -> Written:
        """Return the records without sections that another provider record follows directly."""
        headers = records.header
        is_section = is_metadata(headers, wire.MetadataType.PROVIDER_SECTION)
        is_last_of_provider = np.append(begins_provider(headers)[1:], True)
        is_written = ~(is_section & is_last_of_provider)
        return Written(*(column[is_written] for column in records))

    def _outer_first(self, records: Written) -> Any:
        """Return the order of the records: of slices that now begin together, outer ones first.

        Readers nest slices of one time in file order, and an inner complete event may precede the
        outer one. If slots were reused, or another provider's section lies between, moving a record
        would change its references, so it stays (and ``nested_ticks`` moves its time).
        """
        if not self.selected.moved:
            return slice(None)
        columns = zip(*self.selected.moved, strict=True)
        moved = MovedSlices(*map(np.concatenate, columns))
        if not moved.word.size:
            return slice(None)  # only asynchronous slices begin earlier
        # Behind what is lent to a record, there is the record.
        rows = np.searchsorted(records.place, moved.word, "right") - 1
        section: I64 = np.cumsum(begins_provider(records.header), dtype=np.int64)
        threads_and_sections = np.column_stack((moved.thread, section[rows]))
        _, group = np.unique(threads_and_sections, axis=0, return_inverse=True)
        group = group.reshape(-1)
        first_row = np.full(int(group.max()) + 1, records.place.size)
        last_row = np.zeros(first_row.size, np.int64)
        np.minimum.at(first_row, group, rows)
        np.maximum.at(last_row, group, rows)
        reused = reused_slots(records.header)
        is_safe = np.searchsorted(reused, first_row) == np.searchsorted(reused, last_row)
        rows = rows[is_safe[group]]
        moved = MovedSlices(*(column[is_safe[group]] for column in moved))
        group = group[is_safe[group]]
        # The slices of a group go to the place of its last one, the outer ones first.
        new_row = np.arange(records.place.size)
        new_row[rows] = last_row[group]
        rank = np.zeros(records.place.size, np.int64)
        rank[rows[np.lexsort((moved.depth, moved.time))]] = np.arange(rows.size)
        return np.lexsort((rank, new_row))

    def _move_times(self, records: Written) -> None:
        """Give begins and ends of slices their new times."""
        selected = self.selected
        clocks = selected.passed.reader.clocks
        by_word = np.argsort(records.word, kind="stable")
        for parts in (selected.new_begins, selected.new_ends):
            if parts:
                times = NewTimes.of(parts)
                places = by_word[np.searchsorted(records.word[by_word], times.record)]
                places[times.words > times.record + 1] = -1  # ends of complete events
                are_begins = parts is selected.new_begins
                ticks = nested_ticks(times, places, clocks, are_begins=are_begins)
                self.new_words.append(NewWords(times.words, ticks))

    # --- Providers of a joined archive ----------------------------------------------------------

    def _introduction(self, records: Written, new_ids: NewIds) -> bytes:
        """Return a record that introduces provider 0 where its records need one.

        The record that introduces it later becomes a section.
        """
        headers = records.header
        rows = np.flatnonzero(is_metadata(headers, *wire.MetadataType))
        ids = PROVIDER_ID.of(headers[rows])
        for id in np.unique(ids[ids > 0]).tolist():
            new_ids.of(id)  # those that are free are kept
        own_rows = rows[ids == 0]
        infos = own_rows[is_metadata(headers[own_rows], wire.MetadataType.PROVIDER_INFO)]
        begins_bare = headers.size > 0 and not begins_provider(headers[:1])[0]
        if not begins_bare and np.array_equal(own_rows[:1], infos[:1]):
            return b""
        name = new_ids.name
        if infos.size:
            headers[infos[0]] = SECTION_OF_DEFAULT
            name = self.selected.passed.reader.speakers.default.name or name
        info = ProviderInfo(id=new_ids.of(0), name=name)
        return info.pack(big_endian=self.capture.big_endian)

    def _rename(self, records: Written, new_ids: NewIds) -> None:
        """Give the metadata records the new ids of their providers."""
        rows = np.flatnonzero(is_metadata(records.header, *wire.MetadataType))
        renamed = [
            PROVIDER_ID.put(header, new_ids.of(PROVIDER_ID.of(header)))
            for header in records.header[rows].view(np.uint64).tolist()
        ]
        self.new_words.append(NewWords(records.word[rows], np.array(renamed, np.uint64)))

    # --- The copy -------------------------------------------------------------------------------

    def _blocks(self, words: I64, sizes: I64) -> Iterator[bytes]:
        """Yield the bytes of the records at some words of the file, of so many words, in order."""
        ends = np.cumsum(sizes)
        places, values = self._changes(words, ends - sizes)
        data = self.capture.source.data
        first_record = 0
        while first_record < words.size:
            begin = int(ends[first_record - 1]) if first_record else 0
            # At least one record, which may be larger than a block.
            stop = max(int(np.searchsorted(ends, begin + BLOCK, "right")), first_record + 1)
            offsets = WORD * words[first_record:stop]
            copies = Copies(data, offsets, WORD * sizes[first_record:stop], offsets)
            block = copies.joined()
            changes = slice(*np.searchsorted(places, (begin, ends[stop - 1])).tolist())
            block.view(np.int64)[places[changes] - begin] = values[changes]
            yield block.tobytes()
            first_record = stop

    def _changes(self, words: I64, starts: I64) -> tuple[I64, I64]:
        """Return the changed words of the output, in order, and their values.

        ``words`` are where records begin in the file, ``starts`` where they do in the output.
        """
        nothing = NewWords(np.zeros(0, np.int64), np.zeros(0, np.uint64))
        columns = zip(nothing, *self.new_words, strict=True)
        new = NewWords(*map(np.concatenate, columns))
        if not new.words.size:
            return new.words, new.words
        values = new.values.byteswap() if self.capture.big_endian else new.values
        by_word = np.argsort(words, kind="stable")
        words_up_to = np.searchsorted(words[by_word], new.words, "right")
        record = by_word[words_up_to - 1]
        places = starts[record] + new.words - words[record]
        order = np.argsort(places, kind="stable")
        return places[order], values[order].view(np.int64)

    def _left_out(self, types: I64) -> dict[str, int]:
        """Return the counts of the records that are not among those of these types, by name."""
        kinds = self.selected.passed.reader.kinds_seen
        written_counts = np.bincount(types, minlength=16)
        counts = {}
        for number, name in NAMES.items():
            all_of_type = int(kinds[16 * number : 16 * number + 16].sum())
            counts[name] = all_of_type - int(written_counts[number])
        counts["padding"] = int(kinds[wire.KIND_PADDING])
        counts["damaged stretches"] = int(kinds[wire.KIND_DAMAGED])
        return {name: count for name, count in counts.items() if count > 0}


def check_selection(capture: TraceCapture, selection: Selection) -> None:
    """Raise UsageError for a selection that does not apply to traces."""
    message = ""
    remedy = ""
    if selection.by_logs:
        message = "a part of a trace cannot be selected by the contents of logs"
        remedy = "choose times, threads, processes and categories; or an exporter"
    elif selection.functions:
        message = "a part of a trace cannot be selected by functions: other records have none"
        remedy = "choose times, threads, processes and categories; or an exporter, such as -t csv"
    if message:
        raise UsageError(message, path=capture.name, remedy=remedy)


def reused_slots(headers: I64) -> I64:
    """Return the string and thread records before which another one of the index may be in force.

    That is one of the provider in any of its sections, or one of provider 0.
    """
    begins = begins_provider(headers)
    ids = np.append(0, PROVIDER_ID.of(headers[begins]))
    types = TYPE.of(headers)
    is_registration = (types == RecordType.STRING) | (types == RecordType.THREAD)
    rows: I64 = np.flatnonzero(is_registration)
    is_string = types[rows] == RecordType.STRING
    indexes = np.where(is_string, STRING_INDEX.of(headers[rows]), -THREAD_INDEX.of(headers[rows]))
    provider = ids[np.cumsum(begins)[rows]]
    _, first_use = np.unique(np.column_stack((provider, indexes)), axis=0, return_index=True)
    is_of_default = provider == 0
    is_reused: Bools = np.isin(indexes, indexes[is_of_default]) & ~is_of_default
    is_reused |= ~np.isin(np.arange(rows.size), first_use)
    return rows[is_reused]


def is_metadata(headers: I64, *kinds: int) -> Bools:
    """Return which records are metadata of these kinds."""
    is_of_kind = np.isin(METADATA_KIND.of(headers), kinds)
    is_metadata = TYPE.of(headers) == RecordType.METADATA
    return np.asarray(is_metadata & is_of_kind)


def begins_provider(headers: I64) -> Bools:
    """Return which records start the section of a provider."""
    return is_metadata(headers, wire.MetadataType.PROVIDER_INFO, wire.MetadataType.PROVIDER_SECTION)
