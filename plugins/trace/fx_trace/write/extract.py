"""Extracts a part of a trace as a trace of its own, with every record that the part needs.

The events of the part are selected by their columns; another walk over the records then marks the
strings, threads, objects and providers that they need. Marked records are copied unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace.format import EventType, RecordType
from fx_trace.read.capture import TraceCapture
from fx_trace.read.chunks import Chunk
from fx_trace.records import ProviderInfo, ThreadRecord
from fx_trace.write.needs import MAYBE, Needs, Part, tick
from fxframework.errors import UsageError
from fxframework.io.sink import Sink
from fxframework.io.words import WORD
from fxframework.kernels.sorting import begins_of_runs, stable_order
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.rows import category_mask, thread_mask
from fxframework.model.selection import Selection
from fxframework.model.skipped import SkippedSlices
from fxframework.model.strings import TextColumn

__all__ = ["OPEN_SLICES", "extract"]

U8 = NDArray[np.uint8]
I64 = NDArray[np.int64]
KEEP, CLOSE, DROP = "keep", "close", "drop"
OPEN_SLICES = (KEEP, CLOSE, DROP)
"""Ways to handle slices that begin before the stretch of time or end after it."""
BLOCK = 1 << 19
"""Words copied at a time."""
KINDS = np.arange(256)
IS_SLICE = np.isin(
    KINDS, [EventType.DURATION_BEGIN, EventType.DURATION_COMPLETE, EventType.ASYNC_BEGIN]
)
"""By type: whether events begin a slice, end one, or are points of a flow."""
IS_END = np.isin(KINDS, [EventType.DURATION_END, EventType.ASYNC_END])
IS_FLOW = np.isin(KINDS, [EventType.FLOW_BEGIN, EventType.FLOW_STEP, EventType.FLOW_END])
_NAMES = {
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


def extract(
    capture: Capture, selection: Selection, sink: Sink, options: Mapping[str, Any]
) -> Mapping[str, int]:
    """Write the selected part of a trace. Return the counts of records left out, by kind.

    An event is kept if its time, thread and category are selected, a slice if any part of it is
    within the stretch of time. ``options["open_slices"]`` selects how slices that reach beyond the
    stretch are handled: kept whole (``keep``), made to end at its bounds (``close``), or left out
    (``drop``). Closed slices that now begin together are written outer before inner, unless slots
    were reused between them: then they keep their order, and Perfetto may refuse to nest them.

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
    return _Extraction(capture, selection, options.get("open_slices", KEEP)).run(sink)


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
    return _Extraction(capture, selection, how).run(sink, _Providers(providers, name))


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
class _Providers:
    """Provider ids for a capture that is joined to others."""

    archive: ProviderIds
    name: str
    ids: dict[int, int] = attrs.field(factory=dict)

    def id(self, old: int) -> int:
        """Return the id under which a provider is written: its own if that is free."""
        if old not in self.ids:
            self.ids[old] = self.archive.claim(old)
        return self.ids[old]


@attrs.define
class _Patch:
    """Words to change, by word of the file."""

    words: I64
    values: NDArray[np.uint64]


class _Extraction:
    """One extraction: marks by word of the file, then the copy."""

    def __init__(self, capture: TraceCapture, selection: Selection, how: str) -> None:
        if selection.by_logs:
            raise UsageError(
                "a part of a trace cannot be selected by the contents of logs",
                path=capture.name,
                remedy="choose times, threads, processes and categories; or an exporter",
            )
        if selection.functions:
            raise UsageError(
                "a part of a trace cannot be selected by functions: other records have none",
                path=capture.name,
                remedy="choose times, threads, processes and categories; or an exporter, such as "
                "-t csv",
            )
        self.capture = capture
        self.selection = selection
        self.passed = passed = capture.first_pass()
        self.words = capture.words
        # Kernels use 64 bits, which hold all times.
        self.start = NS_MIN if selection.start_ns is None else _clamped(selection.start_ns)
        self.last = NS_MAX if selection.stop_ns is None else _clamped(selection.stop_ns - 1)
        self.how = how
        self.mark: U8 = np.zeros(self.words.size, np.uint8)
        self.patches: list[_Patch] = []
        self.moved: list[NDArray[np.int64]] = []
        """Slices moved to the start of the stretch, shape (4, n): word, thread, time, depth."""
        self.running = np.zeros(0, np.int64)
        """Thread koids of the scheduling records that are kept."""
        self.homeless = np.zeros(0, np.int32)
        """Threads that run whose process only records that are left out say."""
        self.clocks = passed.reader.clocks
        threads = thread_mask(selection, capture)
        categories = category_mask(selection, capture)
        self.threads: U8 = (
            np.ones(passed.tasks.pids.size, np.uint8)
            if threads is None
            else threads.astype(np.uint8)
        )
        self.categories: U8 = (
            np.ones(len(capture.strings), np.uint8)
            if categories is None
            else categories.astype(np.uint8)
        )
        self.slices = np.zeros(passed.rows["slices"], bool)
        """Which slices are kept, and which points of flows are."""
        self.flows = np.ones(passed.rows["flows"], bool)
        self.skipped = SkippedSlices(selection, capture) if selection.skips else None

    def run(self, sink: Sink, providers: _Providers | None = None) -> Mapping[str, int]:
        """Run the extraction. Return the counts of what was left out."""
        self.choose()
        owners, lent = self.complete(joins=providers is not None)
        return self.write(sink, owners, lent, providers)

    # --- The rows of the part ------------------------------------------------------------------

    def choose(self) -> None:
        """Mark the records of the rows in the part."""
        flows: list[tuple[NDArray[Any], ...]] = []
        for chunk in self.capture.chunks():
            self._choose_slices(chunk)
            flows.append(self._flows(chunk))
        self._choose_flows(flows)
        for chunk in self.capture.chunks():
            self._mark_events(chunk)
            self._choose_others(chunk)
            if self.how == CLOSE:
                self._close(chunk)

    def _choose_slices(self, chunk: Chunk) -> None:
        """Choose the slices of a chunk: selected ones that reach into the stretch of time."""
        rows = np.flatnonzero(IS_SLICE[chunk.events.kind])
        first = chunk.first["slices"]
        slices = slice(first, first + rows.size)
        now = chunk.events.time[rows]
        end = np.asarray(self.passed.spans.end)[slices]
        is_open = end == wire.OPEN_END
        end = np.where(end == wire.INVALID_END, now, end)  # it ends before it begins: a moment
        is_inside = self._within(now)
        if self.how == DROP:
            reaches = is_inside & ~is_open & ((end == now) | (end - 1 <= self.last))
        else:
            reaches = is_inside | ((now < self.start) & (is_open | (end > self.start)))
        reaches &= self._is_wanted(chunk)[rows]
        if self.skipped is not None:
            reaches &= ~self.skipped.among(np.arange(first, first + rows.size))
        self.slices[slices] = reaches

    def _mark_events(self, chunk: Chunk) -> None:
        """Mark the events of a chunk that are kept, now that slices and flows are chosen."""
        spans = self.passed.spans
        kind = chunk.events.kind
        is_kept = self._within(chunk.events.time) & self._is_wanted(chunk)
        for is_of_kind, name in ((IS_SLICE, "slices"), (IS_END, "ends"), (IS_FLOW, "flows")):
            rows = np.flatnonzero(is_of_kind[kind])
            own = slice(chunk.first[name], chunk.first[name] + rows.size)
            if name == "slices":
                is_kept[rows] = self.slices[own]
            elif name == "flows":
                is_kept[rows] &= self.flows[own]
            else:
                closed = np.asarray(spans.ends)[own]
                closes = closed >= 0
                is_kept[rows[closes]] = self.slices[closed[closes]]
        self.mark[chunk.events.offset[is_kept] // 8] = 1

    def _is_wanted(self, chunk: Chunk) -> NDArray[np.bool_]:
        """Return of which events of a chunk thread and category are selected."""
        events = chunk.events
        wanted = self.threads[events.thread] & self.categories[events.category]
        is_wanted: NDArray[np.bool_] = wanted != 0
        return is_wanted

    def _within(self, times: I64) -> NDArray[np.bool_]:
        return np.asarray((times >= self.start) & (times <= self.last))

    def _flows(self, chunk: Chunk) -> tuple[NDArray[Any], ...]:
        """Return id, phase, time, and selection of a chunk's flow rows."""
        events = chunk.events
        rows = np.flatnonzero((events.kind >= 8) & (events.kind <= 10))
        wanted = self.threads[events.thread[rows]] & self.categories[events.category[rows]]
        return events.word[rows], events.kind[rows] - 8, events.time[rows], wanted

    def _choose_flows(self, parts: list[tuple[NDArray[Any], ...]]) -> None:
        """Keep the points of a flow within the time if its begin is one of them, or none.

        Points without their begin, or without those of other threads, would join another flow of
        the same id.
        """
        if not parts:
            return
        ids, phases, times, wanted = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = stable_order(times)
        if order is None:
            order = np.arange(ids.size)
        flow, first = followed(order, ids, phases)
        within = self._within(times)
        kept = np.ones(first.size + 1, np.bool_)  # the last one: points without a begin
        kept[:-1] = within[first]
        kept[flow[(wanted == 0) & within & (flow >= 0)]] = False
        self.flows[: flow.size] = kept[flow]

    def _choose_others(self, chunk: Chunk) -> None:
        """Mark scheduling and log rows, which have no category; blobs and objects may be needed."""
        for offsets in (chunk.blobs.offset, chunk.objects.offset):
            self.mark[offsets // 8] = MAYBE
        if self.selection.categories:
            return
        sched = chunk.sched
        if sched.kind.size:
            keep = self._within(sched.time)
            if not self.selection.by_time_and_skips:
                woken = self.passed.tasks.threads_of(sched.next, sched.kind == 2)
                keep &= (sched.kind != 2) | (self.threads[woken] != 0)
            self.mark[sched.offset[keep] // 8] = 1
            tids = [sched.prev[keep & (sched.kind == 1)], sched.next[keep & (sched.kind != 0)]]
            self.running = np.unique(np.concatenate([self.running, *tids]))
        logs = chunk.logs
        if logs.thread.size:
            keep = self._within(logs.time) & (self.threads[logs.thread] != 0)
            self.mark[logs.offset[keep] // 8] = 1

    def _close(self, chunk: Chunk) -> None:
        """Patch the times of kept slices that reach beyond the stretch."""
        events = chunk.events
        rows = np.flatnonzero(self.mark[events.offset // 8])
        kind, time, word = events.kind[rows], events.time[rows], events.offset[rows] // 8
        # A slice that is open at the start must begin before the first tick of the stretch.
        opened = [max(tick - 1, 0) for tick in self._ticks(self.start + 1)]
        first = chunk.by_clock(opened)[rows]
        last = chunk.by_clock(self._ticks(self.last + 1))[rows]
        begins = ((kind == 2) | (kind == 4) | (kind == 5)) & (time < self.start)
        ends = ((kind == 3) | (kind == 7)) & (time > self.last)
        complete = (kind == 4) & (events.finish[rows] - 1 > self.last)
        sizes = wire.SIZE.get(self.words[word[complete]])
        self.patches += [
            _Patch(word[begins] + 1, first[begins]),
            _Patch(word[ends] + 1, last[ends]),
            _Patch(word[complete] + sizes - 1, last[complete]),
        ]
        if not begins.any():
            return
        together = ((kind == 2) | (kind == 4)) & (events.ticks[rows].view(np.uint64) <= first)
        number = np.searchsorted(
            np.flatnonzero((events.kind == 2) | (events.kind == 4) | (events.kind == 5)),
            rows[together],
        )
        depth = self.passed.spans.depth[chunk.first["slices"] + number]
        columns = (word[together], events.thread[rows[together]], time[together], depth)
        self.moved.append(np.array(columns, np.int64))

    def _ticks(self, ns: int) -> list[int]:
        """Return the first tick not before ``ns``, for each clock."""
        return [tick(clock, ns) for clock in self.clocks]

    # --- Dependencies --------------------------------------------------------------------------

    def complete(self, *, joins: bool) -> tuple[I64, I64]:
        """Mark the dependencies of marked records, and the kept records without rows.

        Return what has to be copied from provider 0 to others: the words of records, and those of
        the ones to copy before them.
        """
        tasks = self.passed.tasks
        wanted = self.threads != 0
        runs = tasks.threads_of(self.running, np.ones(self.running.size, np.bool_))
        pids, tids = tasks.pids.view(np.int64), tasks.tids.view(np.int64)
        is_known = wanted & (tasks.gone == 0)  # others have no koids
        part = Part(
            mark=self.mark,
            start=self.start,
            last=self.last,
            pids=pids[is_known],
            tids=tids[is_known],
            running=self.running,
            named=np.concatenate((pids[wanted], tids[wanted], self.running, pids[runs])),
            everything=self.selection.by_time_and_skips,
            whole=self.selection == Selection(),
            profiles=not self.selection.categories,
            joins=joins,
        )
        needs = Needs(self.capture.file(), self.capture.request.limits, part)
        needs.run()
        if self.selection.categories:
            for word, category in needs.large:
                text = category.decode(errors="replace")
                if not Selection.matches(text, self.selection.categories):
                    self.mark[word] = 0
        # Objects are kept, as are thread records of those that run; other records may be left out.
        known = runs[runs < self.passed.reader.threads.count]
        self.homeless = known[self.mark[tasks.offsets[known] // 8] == 0]
        loans = needs.all_loans()
        return loans.owner, loans.needed

    # --- The copy ------------------------------------------------------------------------------

    def write(
        self, sink: Sink, owners: I64, lent: I64, providers: _Providers | None = None
    ) -> Mapping[str, int]:
        """Copy the marked records; with ``providers`` as a part of a joined archive.

        What providers borrow is copied before the record that needs it.
        """
        places = np.flatnonzero(self.mark)
        if providers is not None:
            places = places[~_is_metadata(self.words[places], wire.MetadataType.TRACE_INFO)]
        before = np.searchsorted(places, owners)
        positions = np.insert(places, before, lent)
        places = np.insert(places, before, owners)
        headers = self.words[positions]
        # Drop sections without kept records, which another provider record follows directly.
        section = _is_metadata(headers, wire.MetadataType.PROVIDER_SECTION)
        kept = ~(section & np.append(_is_provider_record(headers)[1:], True))
        places, positions, headers = places[kept], positions[kept], headers[kept]
        order = self._outer_first(places, headers)
        positions, headers = positions[order], headers[order]
        if providers is not None:
            sink.write(self._introduction(headers, providers))
            self._rename(positions, headers, providers)
        elif not positions.size or int(headers[0]) != wire.MAGIC_WORD:
            sink.write(wire.MAGIC_BYTES_BIG_ENDIAN if self.capture.big_endian else wire.MAGIC_BYTES)
        types = wire.TYPE.get(headers)
        large = types == RecordType.LARGE
        sizes = np.where(large, wire.LARGE_SIZE.get(headers), wire.SIZE.get(headers))
        for block in self._blocks(positions, sizes):
            sink.write(block)
        for thread in self.homeless.tolist():
            pid, tid = int(self.passed.tasks.pids[thread]), int(self.passed.tasks.tids[thread])
            record = ThreadRecord(index=1, pid=pid, tid=tid)  # nothing behind it uses the index
            sink.write(record.pack(big_endian=self.capture.big_endian))
        return self._left_out(types)

    def _introduction(self, headers: I64, providers: _Providers) -> bytes:
        """Return a record that introduces provider 0 where its records need one.

        The record that introduces it later becomes a section.
        """
        rows = np.flatnonzero(_is_metadata(headers, *wire.MetadataType))
        ids = wire.PROVIDER_ID.get(headers[rows])
        for other in np.unique(ids[ids > 0]).tolist():
            providers.id(other)  # those that are free are kept
        own = rows[ids == 0]
        infos = own[_is_metadata(headers[own], wire.MetadataType.PROVIDER_INFO)]
        bare = headers.size > 0 and not _is_provider_record(headers[:1])[0]
        if not bare and np.array_equal(own[:1], infos[:1]):
            return b""
        name = b""
        if infos.size:
            headers[infos[0]] = _SECTION
            default = self.passed.reader.speakers.default
            name = default.name.encode(errors="surrogateescape")
        info = ProviderInfo(
            id=providers.id(0), name=name.decode(errors="surrogateescape") or providers.name
        )
        return info.pack(big_endian=self.capture.big_endian)

    def _outer_first(self, places: I64, headers: I64) -> Any:
        """Return the order of the records: of slices that now begin together, outer ones first.

        Readers nest slices of one time in file order, and an inner complete event may precede the
        outer one. If slots were reused, or another provider's section lies between, moving a record
        would change its references, so it stays.
        """
        if not self.moved:
            return slice(None)
        word, thread, time, depth = np.concatenate(self.moved, axis=1)
        if not word.size:
            return slice(None)  # only asynchronous slices begin earlier
        at = np.searchsorted(places, word, "right") - 1  # behind what is lent to it
        provider_records = np.cumsum(_is_provider_record(headers))
        _, group = np.unique(
            np.column_stack((thread, provider_records[at])), axis=0, return_inverse=True
        )
        group = group.reshape(-1)
        first = np.full(int(group.max()) + 1, places.size)
        last = np.zeros(first.size, np.int64)
        np.minimum.at(first, group, at)
        np.maximum.at(last, group, at)
        types = wire.TYPE.get(headers)
        slots = np.flatnonzero((types == RecordType.STRING) | (types == RecordType.THREAD))
        named = np.column_stack((provider_records[slots], headers[slots] & _SLOT_OF_HEADER))
        _, new = np.unique(named, axis=0, return_index=True)
        again = np.delete(slots, new)
        safe = np.searchsorted(again, first) == np.searchsorted(again, last)
        at, group, time, depth = (column[safe[group]] for column in (at, group, time, depth))
        place = np.arange(places.size)
        place[at] = last[group]
        rank = np.zeros(places.size, np.int64)
        rank[at[np.lexsort((depth, time))]] = np.arange(at.size)
        return np.lexsort((rank, place))

    def _rename(self, positions: I64, headers: I64, providers: _Providers) -> None:
        """Patch the provider ids of metadata records."""
        rows = np.flatnonzero(_is_metadata(headers, *wire.MetadataType))
        bits = wire.PROVIDER_ID
        patched = [
            header & ~bits.mask | bits.put(providers.id(bits.get(header)))
            for header in headers[rows].view(np.uint64).tolist()
        ]
        self.patches.append(_Patch(positions[rows], np.array(patched, np.uint64)))

    def _blocks(self, positions: I64, sizes: I64) -> Iterator[bytes]:
        """Yield the bytes of the records, in order."""
        ends = np.cumsum(sizes)
        places, values = self._patches(positions, ends - sizes)
        data = self.capture.source.data
        first = 0
        while first < positions.size:
            begin = int(ends[first - 1]) if first else 0
            stop = int(np.searchsorted(ends, begin + BLOCK, "right"))
            if stop <= first:
                stop = first + 1
            records = slice(first, stop)
            copied = TextColumn.gather(data, WORD * positions[records], WORD * sizes[records]).data
            here = slice(*np.searchsorted(places, (begin, ends[stop - 1])).tolist())
            copied.view(np.int64)[places[here] - begin] = values[here]
            yield copied.tobytes()
            first = stop

    def _patches(self, positions: I64, starts: I64) -> tuple[I64, I64]:
        """Return the changed words of the output, in order, and their new values."""
        if not self.patches:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        words = np.concatenate([patch.words for patch in self.patches])
        values = np.concatenate([patch.values for patch in self.patches])
        if self.capture.big_endian:
            values = values.byteswap()
        by_place = np.argsort(positions, kind="stable")
        record = by_place[np.searchsorted(positions[by_place], words, "right") - 1]
        places = starts[record] + words - positions[record]
        order = np.argsort(places, kind="stable")
        return places[order], values[order].view(np.int64)

    def _left_out(self, types: I64) -> dict[str, int]:
        kinds = self.passed.reader.kinds_seen
        kept = np.bincount(types, minlength=16)
        out = {}
        for number, name in _NAMES.items():
            missing = int(kinds[16 * number : 16 * number + 16].sum()) - int(kept[number])
            if missing > 0:
                out[name] = missing
        for kind, name in (
            (wire.KIND_PADDING, "padding"),
            (wire.KIND_DAMAGED, "damaged stretches"),
        ):
            if int(kinds[kind]):
                out[name] = int(kinds[kind])
        return out


_SECTION = wire.PROVIDER_SECTION_WORD.pack(
    record_type=RecordType.METADATA,
    record_size=1,
    metadata_type=wire.MetadataType.PROVIDER_SECTION,
)
"""The header that begins a section of provider 0."""
_SLOT_OF_HEADER = 15 | 0x7FFF << 16
"""Type and index in the header of a string or thread record."""


def _is_metadata(headers: I64, *kinds: int) -> NDArray[np.bool_]:
    """Return which records are metadata of these kinds."""
    return np.asarray(
        (wire.TYPE.get(headers) == RecordType.METADATA)
        & np.isin(wire.METADATA_TYPE.get(headers), kinds)
    )


def _is_provider_record(headers: I64) -> NDArray[np.bool_]:
    """Return which records start the section of a provider."""
    return _is_metadata(
        headers, wire.MetadataType.PROVIDER_INFO, wire.MetadataType.PROVIDER_SECTION
    )


def _clamped(ns: int) -> int:
    return min(max(ns, NS_MIN), NS_MAX)


def followed(order: I64, ids: I64, phases: NDArray[Any]) -> tuple[I64, I64]:
    """Return the flow of each point, -1 for none, and the point that began each flow.

    ``order`` are points by time, ``phases`` as in `flows`. A flow goes on, in whatever process,
    until it ends; a begin of its id is a point of it till then.
    """
    points = order[np.argsort(ids[order], kind="stable")]
    id, phase = ids[points], phases[points]
    place = np.arange(points.size)
    begins_id = begins_of_runs(id)
    # Whether a flow of the id is open says the begin or the end before the point.
    last = np.maximum.accumulate(np.where(phase == wire.FLOW_STEP_PHASE, -1, place))
    before = np.append(-1, last)[: place.size]
    is_of_id = before >= np.maximum.accumulate(np.where(begins_id, place, 0))
    is_open = is_of_id & (phase[before] == wire.FLOW_BEGIN_PHASE)
    begins = (phase == wire.FLOW_BEGIN_PHASE) & ~is_open
    flow = np.empty(points.size, np.int64)
    flow[points] = np.where(is_open | begins, np.cumsum(begins) - 1, -1)
    return flow, points[begins]
