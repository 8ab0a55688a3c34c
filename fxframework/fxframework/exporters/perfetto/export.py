"""The exporter `perfetto`: captures of any formats as one Perfetto trace, table by table.

Perfetto sorts packets by time and keeps the order of equal times, so each kind of event is written
separately: slices in order on each track, then instants, counters, switches and logs.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.spans import WITHOUT_SLICE, flow_points
from fxframework.exporters.perfetto.arguments import (
    INTERNED,
    NEEDED,
    SEQUENCE_FLAGS,
    Arguments,
    Interned,
    Tails,
)
from fxframework.exporters.perfetto.ids import SortedMap, distinct
from fxframework.exporters.perfetto.nest import OPEN, Nesting
from fxframework.exporters.perfetto.order import (
    START,
    TAIL,
    Columns,
    SortedSlices,
    columns_of,
    in_order,
)
from fxframework.exporters.perfetto.scheduling import Scheduling
from fxframework.exporters.perfetto.slices import SliceTracks, ends_of
from fxframework.exporters.perfetto.tracks import (
    KeyedTracks,
    Names,
    Tracks,
    grown,
    process_uuids,
    thread_uuids,
)
from fxframework.exporters.perfetto.wire import (
    Messages,
    integer,
    interleave,
    message,
    runs,
    string,
)
from fxframework.exporters.stacks import place_of
from fxframework.io.sink import Sink
from fxframework.io.words import U64_MAX
from fxframework.kit.export import Export
from fxframework.model.capture import Capture
from fxframework.model.logs import log_levels
from fxframework.model.schema import (
    LOG_LEVELS,
    PROPERTY_TYPES,
)
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table
from fxframework.model.timeline import before_zero, later

__all__ = ["PerfettoExport"]

I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

# --- Fields and numbers of perfetto_trace.proto ------------------------------------------------
CLOCK_SNAPSHOT, TIMESTAMP, SEQUENCE, TRACK_EVENT, ANDROID_LOG = 6, 8, 10, 11, 39
TRACK_DESCRIPTOR = 60
CLEARED = 1
"""Flag that clears the interned state of a packet sequence."""
CATEGORY_IIDS, TYPE, NAME_IID, TRACK_UUID, COUNTER_VALUE = 3, 9, 10, 11, 30
SOURCE_LOCATION, DOUBLE_COUNTER_VALUE, FLOW_IDS = 34, 44, 47
BEGIN, END, INSTANT, COUNT = 1, 2, 3, 4
CATEGORIES, NAMES, LOCATIONS = 1, 2, 4
REALTIME, MONOTONIC, BOOTTIME = 1, 3, 6
ASYNC_SCOPE = 255
"""Scope of an instant of an asynchronous operation."""
PRIORITIES = {"TRACE": 2, "DEBUG": 3, "INFO": 4, "WARN": 5, "ERROR": 6, "FATAL": 7}

CHUNK = 1 << 15
"""Events encoded at a time."""
ROWS = 1 << 17
"""Rows of a table in a batch."""
ENDS = 1 << 16
"""Finished slices whose ends may be pending."""
BUNDLE = 4096
"""The most logs in one packet."""
LONGEST_BUNDLE = 1 << 20
"""Bytes of log texts after which a new packet is started."""
CUT_SHORT = "lengths of slices that overlap more than 32 others"
NOT_NUMBERS = "properties that are not numbers"
RENUMBERED = "ids of processes and threads that are taken, or do not fit 31 bits"
TABLES = frozenset(
    {
        "processes",
        "threads",
        "slices",
        "instants",
        "counters",
        "flows",
        "sched",
        "logs",
        "log_tags",
        "args",
        "nodes",
        "properties",
    }
)
ARGUED = frozenset({"instants", "logs"})
"""Tables but `slices` whose rows are written with their arguments."""
_PRIORITIES = np.array([4, *(PRIORITIES[name] for name in LOG_LEVELS)])
"""Priorities by level; logs without a severity (in traces) are INFO."""
_INT, _UINT, _DOUBLE, *_OTHERS = PROPERTY_TYPES


class PerfettoExport(Export):
    """Writes the packets of each capture, each with its own packet sequence."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._sequence = 0
        self._tracks = Tracks(self._descriptors)
        self._flows = 0
        self._shift: int | None = None
        """How much later all times are (ns); None until all captures are known."""

    def expect(self, capture: Capture) -> None:
        """Take into account when a capture begins, before the first one is written."""
        self._shift = max(self._shift or 0, before_zero(capture))

    def write(self, capture: Capture) -> None:
        """Write a capture: its clock, its tracks, then its events."""
        shift = before_zero(capture) if self._shift is None else self._shift
        if shift:
            self._dropped[f"the beginning of time: all times are later by {shift} ns"] += 1
        capture = later(capture, shift)
        self._sequence += 1
        self._clock(_utc_offset(capture))
        writer = _CaptureWriter(capture, self._sequence, self._tracks, self._sink, self._dropped)
        self._flows = writer.write(self._flows)
        functions = capture.calls.functions if capture.calls is not None else ""
        self._drop_rows(capture.row_counts(), but={*TABLES, functions})
        self._drop_arguments(capture, "flows", "sched")

    @property
    def renumbered(self) -> Mapping[int, int]:
        """Changed ids of processes and threads in the output, with their original ids."""
        return self._tracks.renumbered()

    def close(self) -> Mapping[str, int]:
        """Return the counts of what Perfetto cannot represent, by name."""
        self._dropped[RENUMBERED] += self._tracks.moved
        return super().close()

    def _descriptors(self, body: Messages, tails: Sequence[bytes]) -> None:
        """Write track descriptors, each followed by its tail."""
        sizes = np.fromiter(map(len, tails), np.int64, len(tails))
        packet = Messages(body.rows).constant(integer(SEQUENCE, self._sequence))
        packet.embed(TRACK_DESCRIPTOR, body, sizes)
        framed = Messages(body.rows).embed(1, packet, sizes)
        text = np.frombuffer(b"".join(tails), np.uint8)
        self._sink.write(interleave([(framed.data(), framed.lengths), (text, sizes)]).data)

    def _clock(self, offset: int) -> None:
        """Write a clock snapshot, and clear the sequence's interned state."""
        first = max(0, -offset)
        clocks = b"".join(
            message(1, integer(1, clock) + integer(2, first + shift))
            for clock, shift in ((BOOTTIME, 0), (MONOTONIC, 0), (REALTIME, offset))
        )
        head = integer(TIMESTAMP, first) + integer(SEQUENCE_FLAGS, CLEARED)
        _write_packet(self._sink, self._sequence, head + message(CLOCK_SNAPSHOT, clocks))


def _write_packet(sink: Sink, sequence: int, content: bytes) -> None:
    sink.write(message(1, content + integer(SEQUENCE, sequence)))


class _CaptureWriter:
    """Writes the events of one capture as packets of one sequence."""

    def __init__(
        self, capture: Capture, sequence: int, tracks: Tracks, sink: Sink, dropped: Counter[str]
    ) -> None:
        self.capture = capture
        self.tracks = tracks
        self._sequence = sequence
        self._sink = sink
        self._dropped = dropped
        # A bound method would form a cycle that keeps the capture in memory.
        self._packet = functools.partial(_write_packet, sink, sequence)
        self._interned = Interned(capture, self._packet)
        texts = functools.partial(_texts, capture.strings)
        self._operations = KeyedTracks(tracks, 3, lambda names, *_: texts(names))
        self._counted = KeyedTracks(
            tracks, 4, functools.partial(_counter_names, capture.strings), counter=True
        )

    def write(self, flows: int) -> int:
        """Write everything; ``flows`` is the number of used flow ids before, the result after."""
        self._threads()
        has = self.capture.schemas.keys()
        if "slices" in has:
            flows = self._slices(flows)
        for name, write in (
            ("instants", self._instants),
            ("counters", self._counters),
            ("logs", self._logs),
        ):
            if name in has:
                own = [Arguments(self.capture, name, self._interned)] if name in ARGUED else []
                for batch in self.capture.batches(name, ROWS):
                    if len(batch):
                        write(batch, *own)
        if self.capture.row_counts().get("sched"):
            self._sched()
        if "properties" in has:
            self._properties()
        return flows

    # --- Processes and threads -------------------------------------------------------------------

    def _threads(self) -> None:
        """Describe all processes and threads; keep small ids and names by thread id."""
        self._pids = SortedMap()
        if "processes" in self.capture.schemas:
            table = self.capture.table("processes")
            for at in range(0, len(table), CHUNK):
                some = table.select(slice(at, at + CHUNK))
                pids, names = some.array("pid").view(np.int64), some.array("name")
                for name in self._texts(names[pids == 0]):
                    self.tracks.name_process_0(name)
                rows = np.flatnonzero(pids)
                small = self.tracks.processes(pids[rows], self._names_of(names[rows]))
                last, _ = distinct(pids[rows][::-1])
                self._pids.put(pids[rows][::-1][last], small[::-1][last])
        size = 0
        if "threads" in self.capture.schemas:
            table = self.capture.table("threads")
            size = int(table.array("id").max(initial=-1)) + 1
        # The last element is for rows without a thread (id -1).
        self._process, self._tid = (np.zeros(size + 1, np.int32) for _ in range(2))
        self._name = np.full(size + 1, -1, np.int32)
        self._own_track = np.zeros(size + 1, np.int64)
        """Uuids of tracks of threads with tid 0."""
        if not size:
            return
        unknown = table.array("pid") == 0
        tracked = self._tracked(size) if unknown.any() else np.zeros(size, np.bool_)
        # Describe threads of known processes first, so that threads without one can match them.
        order = np.argsort(unknown, kind="stable")
        for at in range(0, order.size, CHUNK):
            self._some_threads(table.select(order[at : at + CHUNK]), tracked)

    def _some_threads(self, table: Table, tracked: Bools) -> None:
        """Describe these threads; ``tracked`` says by id whether the track has events."""
        ids, names = table.array("id"), table.array("name")
        self._name[ids] = names
        self._process[ids] = process = self._small_pids(table.array("pid"))
        tids = table.array("tid").view(np.int64)
        rows = np.flatnonzero(tids)
        self._tid[ids[rows]] = self.tracks.threads(
            process[rows], tids[rows], self._names_of(names[rows]), tracked[ids[rows]]
        )

    def _tracked(self, size: int) -> Bools:
        """Return by thread id whether slices, instants or counters are on its track."""
        found = np.zeros(size + 1, np.bool_)
        for name in ("slices", "instants", "counters"):
            if name in self.capture.schemas:
                for batch in self.capture.batches(name, ROWS):
                    found[batch.array("thread")] = True  # id -1 sets the last element
        return found[:-1]

    def _small_pids(self, pids: NDArray[Any]) -> I64:
        """Return the small ids of processes, 0 for 0; describe new ones."""
        given = pids.view(np.int64)
        first, which = distinct(given)
        own = given[first]
        found = np.where(own == 0, 0, self._pids.get(own))
        new = found < 0
        if new.any():
            found[new] = self.tracks.processes(own[new], _nameless)
            self._pids.put(own[new], found[new])
        return found[which]

    def _texts(self, codes: NDArray[Any]) -> Iterator[bytes]:
        return _texts(self.capture.strings, codes)

    def _names_of(self, codes: NDArray[Any]) -> Names:
        return lambda rows: self._texts(codes[rows])

    def _thread_uuid(self, thread: NDArray[Any]) -> I64:
        """Return the uuids of the tracks of threads; rows without a thread share a track."""
        uuid = thread_uuids(self._tid[thread])
        without = uuid == 0
        if without.any():
            no_thread = self._tid.size - 1
            new = np.unique(thread[without] % self._tid.size)  # -1 becomes the last element
            new = new[self._own_track[new] == 0]
            if new.size and new[-1] == no_thread:
                no_parent = np.zeros(1, np.int64)
                self._own_track[-1:] = self.tracks.describe_all(no_parent, [b"no thread"])
                new = new[:-1]
            if new.size:
                names = self._names_of(self._name[new])
                process = self._process[new].astype(np.int64)
                self._own_track[new] = thread_uuids(self.tracks.threads_of_tid_0(process, names))
            uuid = np.where(without, self._own_track[thread], uuid)
        return uuid

    # --- Slices ----------------------------------------------------------------------------------

    def _slices(self, flows: int) -> int:
        through, flows = self._flows(flows)
        arguments = Arguments(self.capture, "slices", self._interned)
        calls = self.capture.calls
        source = self._sources()
        own = [calls.function] if calls is not None and source is not None else []

        def tails_of(rows: I64) -> tuple[I64, NDArray[np.uint8]]:
            tails = Tails(rows)
            tails.add(*arguments.encoded(rows))
            tails.add(*through.of(rows))
            return tails.every()

        places = (lambda columns: source(columns[own[0]])) if source is not None else None
        lanes = _SliceEvents(self, SliceTracks(self._process, self._operations))
        for part in in_order(self.capture, own, tails_of):
            for slices, times, uuids in lanes.events(part):
                self._slice_events(part, slices, times, uuids, places)
        for _, times, uuids in lanes.ends(OPEN):
            body = Messages(times.size).varints(TYPE, np.full(times.size, END))
            self._events(times, body.varints(TRACK_UUID, uuids))
        self._dropped[CUT_SHORT] += lanes.cut
        return flows

    def _slice_events(
        self,
        part: SortedSlices,
        slices: I64,
        times: I64,
        uuids: I64,
        places_of: Callable[[Columns], NDArray[np.uint64]] | None,
    ) -> None:
        """Write events: index of the slice that begins or -1 for an end, time and track."""
        begins = slices >= 0
        columns = {name: column[slices] for name, column in part.columns.items()}
        body = Messages(slices.size).varints(TYPE, np.where(begins, BEGIN, END))
        body.varints(TRACK_UUID, uuids)
        self._names(body, columns["category"], columns["name"], begins)
        if places_of is not None:
            places = places_of(columns)
            body.varints(SOURCE_LOCATION, places, begins & (places > 0))
        sizes = np.where(begins, columns[TAIL], 0)
        tails = TextColumn.gather(part.tails, columns[START], sizes).data
        self._events(times, body, sizes, tails)

    def lane_uuids(self, track: I64, level: NDArray[np.int32]) -> I64:
        """Return the uuids of lanes by number of the track and level of the lane."""
        threads = self._tid.size
        uuids = np.empty(track.size, np.int64)
        of_thread, further = track < threads, level > 0
        uuids[of_thread] = self._thread_uuid(track[of_thread])
        uuids[~of_thread] = self._operations.uuids(track[~of_thread] - threads)
        if further.any():
            some = of_thread & further
            names = itertools.repeat(b"overlapping", int(np.count_nonzero(some)))
            uuids[some] = self.tracks.describe_all(uuids[some], names)
            some = ~of_thread & further
            uuids[some] = self._operations.again(track[some] - threads)
        return uuids

    def _names(
        self, body: Messages, category: NDArray[Any], name: NDArray[Any], shown: Bools
    ) -> None:
        """Append the iids of category and name to the events in ``shown``."""
        for field, kind, codes in (
            (CATEGORY_IIDS, CATEGORIES, category),
            (NAME_IID, NAMES, name),
        ):
            present = shown & (codes >= 0)
            iids = self._interned.need(kind, np.where(present, codes, -1))
            body.varints(field, iids, present)

    def _flows(self, taken: int) -> tuple[_Flows, int]:
        """Return the flows through slices, and the number of used ids."""
        names = ("ts", "slice", "id", "phase")
        parts: list[Columns] = [{name: np.zeros(0, np.int64) for name in names}]
        if "flows" in self.capture.schemas:
            parts += columns_of(self.capture, "flows", names)
        columns = {name: np.concatenate([part[name] for part in parts]) for name in names}
        slices, ids, taken = flow_points(columns, taken)
        self._dropped[WITHOUT_SLICE] += columns["ts"].size - slices.size
        order = np.argsort(slices, kind="stable")
        return _Flows(slices[order], ids[order]), taken

    def _sources(self) -> Callable[[I64], NDArray[np.uint64]] | None:
        """Write the source locations of functions; return a function that finds iids, or 0."""
        calls = self.capture.calls
        if calls is None:
            return None
        functions = self.capture.table(calls.functions)
        pool, names, texts = functions.pool, functions.array("name"), functions.array("source")
        known = texts > 0  # 0 is the empty string
        if not known.any():
            return None
        entries = (
            message(LOCATIONS, _location(place + 1, _text(pool, names[place]), pool[texts[place]]))
            for place in np.flatnonzero(known).tolist()
        )
        for _, some in runs(entries):
            self._packet(integer(SEQUENCE_FLAGS, NEEDED) + message(INTERNED, b"".join(some)))
        numbers = functions.array("id").astype(np.int64)
        order = np.argsort(numbers)
        ordered = numbers[order]

        def find(asked: NDArray[Any]) -> NDArray[np.uint64]:
            asked = asked.astype(np.int64)
            found = order[np.minimum(np.searchsorted(ordered, asked), numbers.size - 1)]
            good = (numbers[found] == asked) & known[found]
            return np.where(good, found + 1, 0).astype(np.uint64)

        return find

    # --- Instants and counters -------------------------------------------------------------------

    def _instants(self, table: Table, arguments: Arguments) -> None:
        thread, scope = table.array("thread"), table.array("scope")
        uuid = self._thread_uuid(thread)
        apart = np.flatnonzero(scope == ASYNC_SCOPE)
        if apart.size:
            uuid[apart] = self._operations.uuids(
                self._operations.numbers(
                    process_uuids(self._process[thread[apart]]),
                    table.array("name")[apart].astype(np.int64),
                    table.array("id")[apart].view(np.int64),
                )
            )
        times, numbers = table.array("ts"), table.array("row")
        category, name = table.array("category"), table.array("name")
        tails = Tails(numbers)
        tails.add(*arguments.encoded(numbers))
        for at in range(0, times.size, CHUNK):
            some = np.arange(at, min(at + CHUNK, times.size))
            shown = np.ones(some.size, np.bool_)
            body = Messages(some.size).varints(TYPE, np.full(some.size, INSTANT))
            body.varints(TRACK_UUID, uuid[some])
            self._names(body, category[some], name[some], shown)
            self._events(times[some], body, *tails.of(some, shown))

    def _counters(self, table: Table) -> None:
        uuid = self._counted.uuids(
            self._counted.numbers(
                process_uuids(self._process[table.array("thread")]),
                table.array("name").astype(np.int64),
                table.array("series").astype(np.int64),
                table.array("id").view(np.int64),
            )
        )
        times, value, exact, whole = (
            table.array(name) for name in ("ts", "value", "value_int", "is_int")
        )
        self._values(uuid, times, value, exact, whole)

    def _values(self, uuid: I64, times: I64, value: NDArray[Any], exact: I64, whole: Bools) -> None:
        """Write values of counters; an integer that does not fit int64 becomes a double."""
        whole = whole & ((exact >= 0) | (value < 0))
        for at in range(0, times.size, CHUNK):
            some = slice(at, at + CHUNK)
            count = times[some].size
            body = Messages(count).varints(TYPE, np.full(count, COUNT))
            body.varints(TRACK_UUID, uuid[some])
            body.varints(COUNTER_VALUE, exact[some], whole[some])
            body.fixed64(DOUBLE_COUNTER_VALUE, value[some].astype("<f8"), ~whole[some])
            self._events(times[some], body)

    def _properties(self) -> None:
        """Write numeric properties of an Inspect tree as counters at time 0 of the capture."""
        table = self.capture.table("properties")
        kinds = table.array("type")
        rows = np.flatnonzero(np.isin(kinds, (_INT, _UINT, _DOUBLE)))
        self._dropped[NOT_NUMBERS] += kinds.size - rows.size
        if not rows.size:
            return
        nodes = self.capture.table("nodes")
        ids, owners = nodes.array("id"), table.array("node")
        last = max(int(ids.max(initial=-1)), int(owners.max(initial=-1)))
        paths = np.full(last + 2, -1, np.int32)  # the last element is for no node (id -1)
        paths[ids] = nodes.array("path")
        group = self.tracks.named(0, f"Inspect {self.capture.name.rpartition('/')[2]}")
        for at in range(0, rows.size, CHUNK):
            some = rows[at : at + CHUNK]
            places = paths[owners[some]], table.array("name")[some]
            labels = (b"%b:%b" % each for each in zip(*map(self._texts, places), strict=True))
            uuids = self.tracks.describe_all(np.full(some.size, group), labels, counter=True)
            kind = kinds[some]
            signed, unsigned, double = (
                table.array(name)[some] for name in ("int", "uint", "float")
            )
            exact = np.where(kind == _UINT, unsigned.view(np.int64), signed)
            value = np.select(
                (kind == _DOUBLE, kind == _UINT),
                (double, unsigned.astype("f8")),
                signed.astype("f8"),
            )
            times = np.zeros(some.size, np.int64)
            self._values(uuids, times, value, exact, kind != _DOUBLE)

    # --- Switches and logs -----------------------------------------------------------------------

    def _sched(self) -> None:
        scheduling = Scheduling(
            self.capture,
            self._tid,
            lambda threads: self._texts(self._name[threads]),
            self._tids_of,
            self._packets,
        )
        for batch in self.capture.batches("sched", ROWS):
            scheduling.write(batch)
        self._dropped += scheduling.dropped
        self._dropped["arguments of sched"] -= scheduling.named_wakers

    def _tids_of(self, own: I64) -> I64:
        """Return Perfetto's tids of the capture's own, whatever their processes."""
        known = own != 0
        found = np.zeros(own.size, np.int64)
        count = int(np.count_nonzero(known))
        no_process, undescribed = np.zeros(count, np.int64), np.zeros(count, np.bool_)
        found[known] = self.tracks.threads(no_process, own[known], _nameless, undescribed)
        return found

    def _logs(self, table: Table, arguments: Arguments) -> None:
        numbers, rows = table.array("row"), np.arange(len(table))
        messages, tags, components = table["message"], table.array("tags"), table.array("component")
        bundle: list[tuple[int, bytes, bytes]] = []
        size = 0
        for some, found in arguments.texts(numbers):
            here = rows[some]
            words = self._texts(tags[here]), self._texts(components[here])
            columns = here.tolist(), numbers[some].tolist(), *words
            for row, number, tag, component in zip(*columns, strict=True):
                text = str(messages[row])
                if number in found:
                    text = f"{text} {found[number]}".strip()
                bundle.append((row, tag or component, text.encode("utf-8", "replace")))
                size += len(bundle[-1][1]) + len(bundle[-1][2])
                if len(bundle) == BUNDLE or size > LONGEST_BUNDLE:
                    self._log_bundle(table, bundle)
                    bundle, size = [], 0
        if bundle:
            self._log_bundle(table, bundle)

    def _log_bundle(self, table: Table, bundle: list[tuple[int, bytes, bytes]]) -> None:
        """Write logs, given as row, tag and text, with times on the real-time clock."""
        places, labels, texts = zip(*bundle, strict=True)
        rows = np.array(places)
        pids = self._small_pids(table.array("pid")[rows])
        tids = table.array("tid")[rows].view(np.int64)
        known = np.flatnonzero((pids > 0) & (tids != 0))
        small = np.zeros(rows.size, np.int64)
        small[known] = self.tracks.threads(pids[known], tids[known], _nameless)
        times = table.array("ts")[rows]
        body = (
            Messages(rows.size)
            .varints(2, pids)
            .varints(3, small)
            .varints(5, times + _utc_offset(self.capture))
        )
        body.varints(7, _PRIORITIES[log_levels(table)[rows]])
        parts = [(body.data(), body.lengths)]
        for field, values in ((6, labels), (8, texts)):
            sizes = np.fromiter(map(len, values), np.int64, len(values))
            head = Messages(rows.size).header(field, sizes)
            parts.append((head.data(), head.lengths))
            parts.append((np.frombuffer(b"".join(values), np.uint8), sizes))
        total = sum((sizes for _, sizes in parts), np.zeros(rows.size, np.int64))
        head = Messages(rows.size).header(1, total)
        events = interleave([(head.data(), head.lengths), *parts]).tobytes()
        self._packet(integer(TIMESTAMP, int(times[0])) + message(ANDROID_LOG, events))

    # --- Packets ---------------------------------------------------------------------------------

    def _events(
        self,
        times: I64,
        body: Messages,
        lengths: I64 | None = None,
        data: NDArray[np.uint8] | None = None,
    ) -> None:
        """Write track events, each followed by its part of ``data``, of these lengths."""
        self._interned.announce()
        packet = Messages(times.size).varints(TIMESTAMP, times)
        packet.constant(integer(SEQUENCE_FLAGS, NEEDED) + integer(SEQUENCE, self._sequence))
        packet.embed(TRACK_EVENT, body, lengths)
        framed = Messages(times.size).embed(1, packet, lengths)
        parts = [(framed.data(), framed.lengths)]
        if lengths is not None and data is not None:
            parts.append((data, lengths))
        self._sink.write(interleave(parts).data)

    def _packets(self, packets: Messages) -> None:
        """Write packets without interned data."""
        packets.constant(integer(SEQUENCE, self._sequence))
        self._sink.write(Messages(packets.rows).embed(1, packets).data().data)


def _location(iid: int, name: str, source: str) -> bytes:
    """Encode a SourceLocation from ``file:line:column``."""
    file, line, _ = place_of(source)
    found = integer(1, iid) + string(2, file) + string(3, name)
    return found + integer(4, line) if line is not None and line < 1 << 31 else found


def _utc_offset(capture: Capture) -> int:
    """Return the capture's offset from UTC; 0 if unknown or beyond 146 years."""
    offset = capture.utc_offset_ns or 0
    return offset if abs(offset) < 1 << 62 else 0


def _text(pool: StringPool, code: int) -> str:
    return pool.bytes_of(code).decode("utf-8", "replace") if code >= 0 else ""


def _texts(pool: StringPool, codes: NDArray[Any]) -> Iterator[bytes]:
    return (_text(pool, code).encode("utf-8", "replace") for code in codes.tolist())


def _nameless(rows: I64) -> Iterator[bytes]:
    return itertools.repeat(b"", rows.size)


def _counter_names(pool: StringPool, names: I64, series: I64, ids: I64) -> Iterator[bytes]:
    words = zip(_texts(pool, names), _texts(pool, series), ids.tolist(), strict=True)
    return (b"%b:%b:%d" % (name, each, id & U64_MAX) for name, each, id in words)


class _SliceEvents:
    """Makes the events of slices, with their lanes."""

    def __init__(self, writer: _CaptureWriter, tracks: SliceTracks) -> None:
        self._writer = writer
        self._tracks = tracks
        self._nesting = Nesting()
        self._uuids = np.zeros(16, np.int64)
        self._known = 0
        self._most_open = 0

    @property
    def cut(self) -> int:
        """Number of slices that were cut short."""
        return int(self._nesting.cut)

    def events(self, part: SortedSlices) -> Iterator[tuple[I64, I64, I64]]:
        """Yield begins and due ends: index of the slice or -1, time and uuid of each."""
        columns = part.columns
        track = self._tracks.of(columns, part.following)
        end = ends_of(columns["ts"], columns["dur"])
        self._nesting.load(track, columns["ts"], end, columns["depth"])
        yield from self._made()
        if self._nesting.open_count > 2 * self._most_open + ENDS:
            yield from self.ends(part.following)
            self._most_open = self._nesting.open_count

    def ends(self, limit: int) -> Iterator[tuple[I64, I64, I64]]:
        """Yield the ends before a time, if no later slice begins before it."""
        self._nesting.end_before(limit)
        return self._made()

    def _made(self) -> Iterator[tuple[I64, I64, I64]]:
        nesting = self._nesting
        more = True
        while more:
            more = bool(nesting.run())
            self._describe()
            some = slice(nesting.count)
            if nesting.count:
                yield (
                    np.asarray(nesting.slices)[some],
                    np.asarray(nesting.times)[some],
                    self._uuids[np.asarray(nesting.lanes)[some]],
                )

    def _describe(self) -> None:
        """Describe the tracks of new lanes."""
        known, count = self._known, self._nesting.lane_count
        if count == known:
            return
        self._uuids = grown(self._uuids, count)
        self._uuids[known:count] = self._writer.lane_uuids(
            np.asarray(self._nesting.lane_track)[known:count],
            np.asarray(self._nesting.lane_level)[known:count],
        )
        self._known = count


class _Flows:
    """The flows through slices, by row of the slice."""

    def __init__(self, rows: I64, ids: NDArray[np.uint64]) -> None:
        self._rows = rows
        self._ids = ids

    def of(self, rows: I64) -> tuple[I64, NDArray[np.uint8], I64]:
        """Return the flows of sorted rows: row, bytes and length of each."""
        first, stop = np.searchsorted(self._rows, (rows[0], rows[-1] + 1)) if rows.size else (0, 0)
        body = Messages(int(stop - first)).fixed64(FLOW_IDS, self._ids[first:stop])
        return self._rows[first:stop], body.data(), body.lengths
