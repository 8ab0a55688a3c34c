"""The exporter `perfetto`: captures of any formats as one Perfetto trace, table by table.

Perfetto sorts packets by time and keeps the order of equal times, so each kind of event is written
separately: slices in order on each track, then instants, counters, switches and logs.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.spans import WITHOUT_SLICE, flow_points
from fxframework.exporters.columns import joined, sizes_of
from fxframework.exporters.perfetto.arguments import (
    INTERNED,
    NEEDED,
    SEQUENCE_FLAGS,
    Arguments,
    Interned,
    Tails,
)
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
from fxframework.exporters.perfetto.threads import CaptureThreads, nameless, text_of, texts_of
from fxframework.exporters.perfetto.tracks import KeyedTracks, Tracks, grown, process_uuids
from fxframework.exporters.perfetto.wire import (
    Messages,
    integer,
    interleave,
    message,
    runs,
    string,
    total_lengths,
)
from fxframework.exporters.stacks import place_of
from fxframework.io.sink import Sink
from fxframework.io.words import U64_MAX
from fxframework.kernels.arrays import I64, Bools
from fxframework.kernels.nesting import NEVER_ENDS, Lanes
from fxframework.kernels.sorting import places_among
from fxframework.kit.export import Export
from fxframework.model.capture import Capture
from fxframework.model.logs import log_levels
from fxframework.model.schema import LOG_LEVELS, PROPERTY_TYPES
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table
from fxframework.model.timeline import before_zero, later

# --- Fields and numbers of perfetto_trace.proto ------------------------------------------------
# Fields of TracePacket.
CLOCK_SNAPSHOT = 6
TIMESTAMP = 8
SEQUENCE = 10
TRACK_EVENT = 11
ANDROID_LOG = 39
TRACK_DESCRIPTOR = 60
CLEARED = 1
"""Flag that clears the interned state of a packet sequence."""
# Fields of TrackEvent.
CATEGORY_IIDS = 3
TYPE = 9
NAME_IID = 10
TRACK_UUID = 11
COUNTER_VALUE = 30
SOURCE_LOCATION = 34
DOUBLE_COUNTER_VALUE = 44
FLOW_IDS = 47
# Types of TrackEvent.
BEGIN = 1
END = 2
INSTANT = 3
COUNT = 4
# Fields of InternedData.
CATEGORIES = 1
NAMES = 2
LOCATIONS = 4
# Fields of AndroidLogPacket.LogEvent, which are field 1 of the packet.
LOG_PID = 2
LOG_TID = 3
LOG_TIMESTAMP = 5
LOG_TAG = 6
LOG_PRIORITY = 7
LOG_MESSAGE = 8
# Clocks.
REALTIME = 1
MONOTONIC = 3
BOOTTIME = 6
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
_PRIORITIES = np.array([4, *(PRIORITIES[name] for name in LOG_LEVELS)])
"""Priorities by level; logs without a severity (in traces) are INFO."""
_INT, _UINT, _DOUBLE, *_OTHERS = PROPERTY_TYPES


class PerfettoExport(Export):
    """Writes the packets of each capture, each with its own packet sequence."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._sequence = 0
        self._tracks = Tracks(self._descriptors)
        self._used_flow_ids = 0
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
        self._used_flow_ids = writer.write(self._used_flow_ids)
        functions = capture.calls.functions if capture.calls is not None else ""
        self._drop_rows(capture.row_counts(), but={*TABLES, functions})
        self._drop_arguments(capture, "flows", "sched")

    @property
    def renumbered(self) -> Mapping[int, int]:
        """Changed ids of processes and threads in the output, with their original ids."""
        return self._tracks.renumbered()

    def close(self) -> Mapping[str, int]:
        """Return the counts of what Perfetto cannot represent, by name."""
        self._dropped[RENUMBERED] += self._tracks.renumbered_count
        return super().close()

    def _descriptors(self, body: Messages, tails: Sequence[bytes]) -> None:
        """Write track descriptors, each followed by its tail."""
        tail_lengths = sizes_of(tails)
        packet = Messages(body.rows).constant(integer(SEQUENCE, self._sequence))
        packet.embed(TRACK_DESCRIPTOR, body, tail_lengths)
        framed = Messages(body.rows).embed(1, packet, tail_lengths)
        tail_bytes = np.frombuffer(b"".join(tails), np.uint8)
        parts = [(framed.data(), framed.lengths), (tail_bytes, tail_lengths)]
        self._sink.write(interleave(parts).data)

    def _clock(self, offset: int) -> None:
        """Write a clock snapshot, and clear the sequence's interned state."""
        first_time = max(0, -offset)
        clocks = b"".join(
            message(1, integer(1, clock) + integer(2, first_time + shift))
            for clock, shift in ((BOOTTIME, 0), (MONOTONIC, 0), (REALTIME, offset))
        )
        head = integer(TIMESTAMP, first_time) + integer(SEQUENCE_FLAGS, CLEARED)
        snapshot = message(CLOCK_SNAPSHOT, clocks)
        _write_packet(self._sink, self._sequence, head + snapshot)


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
        self._threads = CaptureThreads(capture, tracks)
        pool = capture.strings
        # Keys are process, name and id of an operation, and process, name, series and id of a
        # counter.
        self._operations = KeyedTracks(tracks, 3, lambda names, *_: texts_of(pool, names))
        self._counters_by_key = KeyedTracks(
            tracks, 4, functools.partial(_counter_names, pool), counter=True
        )

    def write(self, flows: int) -> int:
        """Write everything; ``flows`` is the number of used flow ids before, the result after."""
        self._threads.describe()
        tables = self.capture.schemas.keys()
        if "slices" in tables:
            flows = self._slices(flows)
        if "instants" in tables:
            arguments = Arguments(self.capture, "instants", self._interned)
            for batch in self._batches("instants"):
                self._instants(batch, arguments)
        if "counters" in tables:
            for batch in self._batches("counters"):
                self._counters(batch)
        if "logs" in tables:
            arguments = Arguments(self.capture, "logs", self._interned)
            for batch in self._batches("logs"):
                self._logs(batch, arguments)
        if self.capture.row_counts().get("sched"):
            self._sched()
        if "properties" in tables:
            self._properties()
        return flows

    def _batches(self, table: str) -> Iterator[Table]:
        """Yield the batches of a table that have rows."""
        return filter(len, self.capture.batches(table, ROWS))

    # --- Slices ----------------------------------------------------------------------------------

    def _slices(self, flows: int) -> int:
        """Write the slices; ``flows`` as in ``write``."""
        flows_of_slices, flows = self._flows(flows)
        arguments = Arguments(self.capture, "slices", self._interned)
        locations = self._source_locations()
        further_columns = [] if locations is None else [locations.column]

        def tails_of(rows: I64) -> tuple[I64, NDArray[np.uint8]]:
            tails = Tails(rows)
            tails.add(*arguments.encoded(rows))
            tails.add(*flows_of_slices.of(rows))
            return tails.every()

        tracks = SliceTracks(self._threads.process_of_thread, self._operations)
        lanes = _SliceEvents(self, tracks)
        for part in in_order(self.capture, further_columns, tails_of):
            for slices, times, uuids in lanes.events(part):
                self._slice_events(part, slices, times, uuids, locations)
        for _, times, uuids in lanes.ends(NEVER_ENDS):
            types = np.full(times.size, END)
            body = Messages(times.size).varints(TYPE, types)
            self._events(times, body.varints(TRACK_UUID, uuids))
        self._dropped[CUT_SHORT] += lanes.cut
        return flows

    def _slice_events(
        self,
        part: SortedSlices,
        slices: I64,
        times: I64,
        uuids: I64,
        locations: _SourceLocations | None,
    ) -> None:
        """Write events: index of the slice that begins or -1 for an end, time and track."""
        begins = slices >= 0
        columns = {name: column[slices] for name, column in part.columns.items()}
        types = np.where(begins, BEGIN, END)
        body = Messages(slices.size).varints(TYPE, types)
        body.varints(TRACK_UUID, uuids)
        self._names(body, columns["category"], columns["name"], begins)
        if locations is not None:
            iids = locations.iids(columns)
            body.varints(SOURCE_LOCATION, iids, begins & (iids > 0))
        sizes = np.where(begins, columns[TAIL], 0)
        tails = TextColumn.gather(part.tails, columns[START], sizes).data
        self._events(times, body, sizes, tails)

    def lane_uuids(self, track: I64, level: NDArray[np.int32]) -> I64:
        """Return the uuids of lanes by number of the track and level of the lane."""
        # The first tracks are those of threads and of no thread, then operations follow.
        first_operation = self._threads.thread_count + 1
        uuids = np.empty(track.size, np.int64)
        of_thread = track < first_operation
        uuids[of_thread] = self._threads.uuids(track[of_thread])
        operations = track[~of_thread] - first_operation
        uuids[~of_thread] = self._operations.uuids(operations)
        is_further = level > 0
        if is_further.any():
            below_thread = of_thread & is_further
            names = itertools.repeat(b"overlapping", int(np.count_nonzero(below_thread)))
            uuids[below_thread] = self.tracks.describe_all(uuids[below_thread], names)
            beside_operation = ~of_thread & is_further
            uuids[beside_operation] = self._operations.again(
                track[beside_operation] - first_operation
            )
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
            present_codes = np.where(present, codes, -1)
            iids = self._interned.need(kind, present_codes)
            body.varints(field, iids, present)

    def _flows(self, used_ids: int) -> tuple[_Flows, int]:
        """Return the flows through slices, and the number of used ids."""
        names = ("ts", "slice", "id", "phase")
        parts: list[Columns] = [{name: np.zeros(0, np.int64) for name in names}]
        if "flows" in self.capture.schemas:
            parts += columns_of(self.capture, "flows", names)
        columns = joined(parts, names)
        slices, ids, used_ids = flow_points(columns, used_ids)
        self._dropped[WITHOUT_SLICE] += columns["ts"].size - slices.size
        order = np.argsort(slices, kind="stable")
        return _Flows(slices[order], ids[order]), used_ids

    def _source_locations(self) -> _SourceLocations | None:
        """Write the source locations of functions; None if there are none."""
        calls = self.capture.calls
        if calls is None:
            return None
        functions = self.capture.table(calls.functions)
        if not (functions.array("source") > 0).any():  # 0 is the empty string
            return None
        locations = _SourceLocations(calls.function, functions)
        for _, run in runs(locations.entries()):
            interned = message(INTERNED, b"".join(run))
            self._packet(integer(SEQUENCE_FLAGS, NEEDED) + interned)
        return locations

    # --- Instants and counters -------------------------------------------------------------------

    def _instants(self, table: Table, arguments: Arguments) -> None:
        threads = table.array("thread")
        uuids = self._threads.uuids(threads)
        async_rows = np.flatnonzero(table.array("scope") == ASYNC_SCOPE)
        if async_rows.size:
            processes = self._threads.process_of_thread[threads[async_rows]]
            names = table.array("name")[async_rows].astype(np.int64)
            ids = table.array("id")[async_rows].view(np.int64)
            numbers = self._operations.numbers(process_uuids(processes), names, ids)
            uuids[async_rows] = self._operations.uuids(numbers)
        times = table.array("ts")
        row_ids = table.array("row")
        category = table.array("category")
        name = table.array("name")
        tails = Tails(row_ids)
        tails.add(*arguments.encoded(row_ids))
        for first_row in range(0, times.size, CHUNK):
            end_row = min(first_row + CHUNK, times.size)
            chunk = np.arange(first_row, end_row)
            all_shown = np.ones(chunk.size, np.bool_)
            types = np.full(chunk.size, INSTANT)
            body = Messages(chunk.size).varints(TYPE, types)
            body.varints(TRACK_UUID, uuids[chunk])
            self._names(body, category[chunk], name[chunk], all_shown)
            self._events(times[chunk], body, *tails.of(chunk, all_shown))

    def _counters(self, table: Table) -> None:
        processes = self._threads.process_of_thread[table.array("thread")]
        numbers = self._counters_by_key.numbers(
            process_uuids(processes),
            table.array("name").astype(np.int64),
            table.array("series").astype(np.int64),
            table.array("id").view(np.int64),
        )
        self._values(
            self._counters_by_key.uuids(numbers),
            table.array("ts"),
            table.array("value"),
            table.array("value_int"),
            table.array("is_int"),
        )

    def _values(
        self, uuids: I64, times: I64, value: NDArray[Any], exact_value: I64, is_int: Bools
    ) -> None:
        """Write values of counters; an integer that does not fit int64 becomes a double."""
        # An exact value that wrapped around has another sign than the double.
        is_int = is_int & ((exact_value >= 0) | (value < 0))
        for first_row in range(0, times.size, CHUNK):
            chunk = slice(first_row, first_row + CHUNK)
            chunk_rows = times[chunk].size
            body = Messages(chunk_rows).varints(TYPE, np.full(chunk_rows, COUNT))
            body.varints(TRACK_UUID, uuids[chunk])
            body.varints(COUNTER_VALUE, exact_value[chunk], is_int[chunk])
            doubles = value[chunk].astype("<f8")
            body.fixed64(DOUBLE_COUNTER_VALUE, doubles, ~is_int[chunk])
            self._events(times[chunk], body)

    def _properties(self) -> None:
        """Write numeric properties of an Inspect tree as counters at time 0 of the capture."""
        table = self.capture.table("properties")
        types = table.array("type")
        rows = np.flatnonzero(np.isin(types, (_INT, _UINT, _DOUBLE)))
        self._dropped[NOT_NUMBERS] += types.size - rows.size
        if not rows.size:
            return
        nodes = self.capture.table("nodes")
        ids = nodes.array("id")
        node_of_property = table.array("node")
        largest_id = int(ids.max(initial=-1))
        largest_id = max(largest_id, int(node_of_property.max(initial=-1)))
        paths = np.full(largest_id + 2, -1, np.int32)  # the last element is for no node (id -1)
        paths[ids] = nodes.array("path")
        file_name = self.capture.name.rpartition("/")[2]
        group = self.tracks.named(0, f"Inspect {file_name}")
        for first_row in range(0, rows.size, CHUNK):
            chunk = rows[first_row : first_row + CHUNK]
            path_texts = texts_of(self.capture.strings, paths[node_of_property[chunk]])
            names = texts_of(self.capture.strings, table.array("name")[chunk])
            labels = (b"%b:%b" % label for label in zip(path_texts, names, strict=True))
            uuids = self.tracks.describe_all(np.full(chunk.size, group), labels, counter=True)
            chunk_types = types[chunk]
            signed = table.array("int")[chunk]
            unsigned = table.array("uint")[chunk]
            double = table.array("float")[chunk]
            is_double = chunk_types == _DOUBLE
            is_unsigned = chunk_types == _UINT
            exact_value = np.where(is_unsigned, unsigned.view(np.int64), signed)
            value = np.where(is_unsigned, unsigned.astype("f8"), signed.astype("f8"))
            value = np.where(is_double, double, value)
            times = np.zeros(chunk.size, np.int64)
            self._values(uuids, times, value, exact_value, ~is_double)

    # --- Switches and logs -----------------------------------------------------------------------

    def _sched(self) -> None:
        threads = self._threads
        scheduling = Scheduling(
            self.capture, threads.tid_of_thread, threads.names, threads.small_tids, self._packets
        )
        for batch in self.capture.batches("sched", ROWS):
            scheduling.write(batch)
        self._dropped += scheduling.dropped
        self._dropped["arguments of sched"] -= scheduling.named_wakers

    def _logs(self, table: Table, arguments: Arguments) -> None:
        pool = self.capture.strings
        row_ids = table.array("row")
        rows = np.arange(len(table))
        messages = table["message"]
        tags = table.array("tags")
        components = table.array("component")
        bundle: list[_Log] = []
        bundle_bytes = 0
        for part, arguments_by_row in arguments.texts(row_ids):
            columns = (
                rows[part].tolist(),
                row_ids[part].tolist(),
                texts_of(pool, tags[part]),
                texts_of(pool, components[part]),
            )
            for row, row_id, tag, component in zip(*columns, strict=True):
                text = str(messages[row])
                if row_id in arguments_by_row:
                    text = f"{text} {arguments_by_row[row_id]}".strip()
                log = _Log(row, tag or component, text.encode("utf-8", "replace"))
                bundle.append(log)
                bundle_bytes += len(log.tag) + len(log.text)
                if len(bundle) == BUNDLE or bundle_bytes > LONGEST_BUNDLE:
                    self._log_bundle(table, bundle)
                    bundle = []
                    bundle_bytes = 0
        if bundle:
            self._log_bundle(table, bundle)

    def _log_bundle(self, table: Table, bundle: list[_Log]) -> None:
        """Write logs in one packet, with times on the real-time clock."""
        rows = np.array([log.row for log in bundle])
        small_pids = self._threads.small_pids(table.array("pid")[rows])
        tids = table.array("tid")[rows].view(np.int64)
        has_thread = np.flatnonzero((small_pids > 0) & (tids != 0))
        small_tids = np.zeros(rows.size, np.int64)
        small_tids[has_thread] = self.tracks.threads(
            small_pids[has_thread], tids[has_thread], nameless
        )
        times = table.array("ts")[rows]
        body = Messages(rows.size).varints(LOG_PID, small_pids)
        body.varints(LOG_TID, small_tids)
        body.varints(LOG_TIMESTAMP, times + _utc_offset(self.capture))
        body.varints(LOG_PRIORITY, _PRIORITIES[log_levels(table)[rows]])
        # Texts may be long, so they are not in the matrices of Messages, but interleaved with them.
        parts = [(body.data(), body.lengths)]
        tags = [log.tag for log in bundle]
        texts = [log.text for log in bundle]
        for field, values in ((LOG_TAG, tags), (LOG_MESSAGE, texts)):
            sizes = sizes_of(values)
            header = Messages(rows.size).header(field, sizes)
            parts.append((header.data(), header.lengths))
            joined_values = np.frombuffer(b"".join(values), np.uint8)
            parts.append((joined_values, sizes))
        lengths = total_lengths(parts, rows.size)
        event_headers = Messages(rows.size).header(1, lengths)
        headers = (event_headers.data(), event_headers.lengths)
        events = interleave([headers, *parts]).tobytes()
        timestamp = integer(TIMESTAMP, int(times[0]))
        self._packet(timestamp + message(ANDROID_LOG, events))

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
        flags = integer(SEQUENCE_FLAGS, NEEDED)
        packet.constant(flags + integer(SEQUENCE, self._sequence))
        packet.embed(TRACK_EVENT, body, lengths)
        framed = Messages(times.size).embed(1, packet, lengths)
        parts = [(framed.data(), framed.lengths)]
        if lengths is not None and data is not None:
            parts.append((data, lengths))
        self._sink.write(interleave(parts).data)

    def _packets(self, packets: Messages) -> None:
        """Write packets without interned data."""
        packets.constant(integer(SEQUENCE, self._sequence))
        messages = Messages(packets.rows).embed(1, packets)
        self._sink.write(messages.data().data)


class _Log(NamedTuple):
    """A log as it is written: its row in the table, and tag and text in UTF-8."""

    row: int
    tag: bytes
    text: bytes


class _SourceLocations:
    """The source locations of functions: the iid of one is the row of its function and 1.

    ``column`` is the column of slices that identifies functions.
    """

    def __init__(self, column: str, functions: Table) -> None:
        self.column = column
        self._functions = functions
        self._has_source = functions.array("source") > 0
        ids = functions.array("id").astype(np.int64)
        self._rows_by_id = np.argsort(ids)
        self._sorted_ids = ids[self._rows_by_id]

    def entries(self) -> Iterator[bytes]:
        """Yield the entries of InternedData."""
        pool = self._functions.pool
        names = self._functions.array("name")
        sources = self._functions.array("source")
        for row in np.flatnonzero(self._has_source).tolist():
            name = text_of(pool, names[row])
            location = _location(row + 1, name, pool[sources[row]])
            yield message(LOCATIONS, location)

    def iids(self, columns: Columns) -> NDArray[np.uint64]:
        """Return the iids for slices, 0 for those whose functions have no location."""
        wanted = columns[self.column].astype(np.int64)
        places = places_among(wanted, self._sorted_ids)
        rows = self._rows_by_id[places]
        is_located = (places >= 0) & self._has_source[rows]
        return np.where(is_located, rows + 1, 0).astype(np.uint64)


def _location(iid: int, name: str, source: str) -> bytes:
    """Encode a SourceLocation from ``file:line:column``."""
    file, line, _ = place_of(source)
    location = integer(1, iid) + string(2, file) + string(3, name)
    if line is not None and line < 1 << 31:
        location += integer(4, line)
    return location


def _utc_offset(capture: Capture) -> int:
    """Return the capture's offset from UTC; 0 if unknown or beyond 146 years."""
    offset = capture.utc_offset_ns or 0
    return offset if abs(offset) < 1 << 62 else 0


def _counter_names(pool: StringPool, names: I64, series: I64, ids: I64) -> Iterator[bytes]:
    columns = zip(texts_of(pool, names), texts_of(pool, series), ids.tolist(), strict=True)
    return (b"%b:%b:%d" % (name, series_name, id & U64_MAX) for name, series_name, id in columns)


class _SliceEvents:
    """Makes the events of slices, with their lanes."""

    def __init__(self, writer: _CaptureWriter, tracks: SliceTracks) -> None:
        self._writer = writer
        self._tracks = tracks
        self._lanes = Lanes()
        self._uuids = np.zeros(16, np.int64)
        self._described_count = 0
        self._open_at_last_end = 0

    @property
    def cut(self) -> int:
        """Number of slices that were cut short."""
        return self._lanes.cut

    def events(self, part: SortedSlices) -> Iterator[tuple[I64, I64, I64]]:
        """Yield begins and due ends: index of the slice or -1, time and uuid of each."""
        columns = part.columns
        track = self._tracks.of(columns, part.following)
        end = ends_of(columns["ts"], columns["dur"])
        spans = (track, columns["ts"], end, columns["depth"])
        contiguous = (np.ascontiguousarray(column, np.int64) for column in spans)
        yield from self._pieces(*self._lanes.nest(*contiguous))
        # An end waits until a later slice begins on its lane. Make all that are due when many wait,
        # but not before the open slices doubled: each of these sweeps goes through all of them.
        if self._lanes.open_count > 2 * self._open_at_last_end + ENDS:
            yield from self.ends(part.following)
            self._open_at_last_end = self._lanes.open_count

    def ends(self, limit: int) -> Iterator[tuple[I64, I64, I64]]:
        """Yield the ends before a time, if no later slice begins before it."""
        return self._pieces(*self._lanes.ends_before(limit))

    def _pieces(self, slices: I64, times: I64, lanes: I64) -> Iterator[tuple[I64, I64, I64]]:
        self._describe()
        for begin in range(0, slices.size, CHUNK):
            piece = slice(begin, begin + CHUNK)
            yield slices[piece], times[piece], self._uuids[lanes[piece]]

    def _describe(self) -> None:
        """Describe the tracks of new lanes."""
        described = self._described_count
        lane_count = self._lanes.lane_count
        if lane_count == described:
            return
        self._uuids = grown(self._uuids, lane_count)
        tracks, levels = self._lanes.places_from(described)
        uuids = self._writer.lane_uuids(tracks, levels.astype(np.int32))
        self._uuids[described:lane_count] = uuids
        self._described_count = lane_count


class _Flows:
    """The flows through slices, by row of the slice."""

    def __init__(self, rows: I64, ids: NDArray[np.uint64]) -> None:
        self._rows = rows
        self._ids = ids

    def of(self, rows: I64) -> tuple[I64, NDArray[np.uint8], I64]:
        """Return the flows of sorted rows: row, bytes and length of each."""
        if rows.size:
            bounds = np.searchsorted(self._rows, (rows[0], rows[-1] + 1))
            first, stop = bounds.tolist()
        else:
            first = stop = 0
        body = Messages(stop - first).fixed64(FLOW_IDS, self._ids[first:stop])
        return self._rows[first:stop], body.data(), body.lengths
