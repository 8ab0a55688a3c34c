"""Exporters of the trace format: Chrome JSON as trace2json writes it, and text for people.

Both read the tables, in batches: a window over the tables that have times holds whole records, so
that rows of several tables can be put in file order, and arguments beside what they belong to.
A first look over the capture (``FirstPass``) finds what only the whole of it tells.
"""

from __future__ import annotations

import base64
import bisect
import functools
import heapq
import itertools
import math
import struct
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any, Self

import numpy as np
import orjson
from numpy.typing import NDArray

from fx_trace.layout import ArgType, BlobType, ObjectType
from fxframework.errors import WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX
from fxframework.model.schema import FLOW_PHASES, SCOPES, TABLE_CODES, THREAD_STATES
from fxframework.model.strings import TextColumn
from fxframework.model.table import ColumnData, Table
from fxframework.model.window import Window
from fxframework.registry import ExportSession

__all__ = ["open_json", "open_text"]

I64 = NDArray[np.int64]
Members = Mapping[int, list[Any]]
"""Rendered arguments by the offset of their record."""
ROWS = 1 << 16
"""Rows of a batch."""
WAITING = 1 << 18
"""Rendered events that wait in memory to be put in order; more go to a temporary file."""
TIMED = ("slices", "instants", "counters", "flows", "sched", "logs")
SLICES, COUNTERS = TABLE_CODES["slices"], TABLE_CODES["counters"]
COMPLETE, ASYNC = 1, 2
"""Kinds of slices."""
LEGACY, WAKEUP = 0, 2
"""Kinds of scheduling rows."""
ASYNC_SCOPE = 255
ENDLESS = NS_MAX + 1
"""Later than any time."""
NEVER = -1
"""Length of a slice that was never closed."""
NONE = -1
"""Row of no slice."""
NOT_GIVEN = -1
"""Priority that no record gave."""
FIDL_CATEGORY = "fidl:blob"
IDLE = 0
"""Koid of no process, which trace2json puts first."""
PIECE = 1 << 16
"""Bytes of a run of events that are read at a time."""


def open_json(sink: Sink, options: Mapping[str, Any]) -> ExportSession:
    """The exporter `json`."""
    del options
    return _JsonExport(sink)


def open_text(sink: Sink, options: Mapping[str, Any]) -> ExportSession:
    """The exporter `text`."""
    del options
    return _TextExport(sink)


# --- Windows over several tables -----------------------------------------------------------------


def _windows(capture: Capture, names: Iterable[str]) -> Iterator[dict[str, Table]]:
    """The rows of several tables in file order, in windows; a record's rows are in one window.

    Relies on tables being in the order of their offsets, which are made those of reading.
    """
    streams = {
        name: _in_order(capture, capture.batches(name, ROWS))
        for name in names
        if name in capture.schemas
    }
    held: dict[str, tuple[Table, I64, int]] = {}
    while True:
        for name in list(streams):
            _fill(name, streams, held)
        if not held:
            return
        # Of the last record of a batch there may be more rows in the next one.
        limit = min((int(held[name][1][-1]) for name in streams), default=None)
        window = {}
        for name, (table, offsets, start) in list(held.items()):
            stop = len(table) if limit is None else int(np.searchsorted(offsets, limit))
            if stop > start:
                window[name] = table.select(slice(start, stop))
            if stop == len(table):
                del held[name]
            else:
                held[name] = (table, offsets, max(start, stop))
        yield window


def _in_order(capture: Capture, batches: Iterator[Table]) -> Iterator[Table]:
    """The batches with offsets that go up, also where a trace buffer is read from its middle."""
    whole = capture
    while isinstance(whole, Window):
        whole = whole.whole
    places: Callable[[I64], I64] | None = getattr(whole, "places", None)
    for batch in batches:
        offsets = batch.array("offset")
        ordered = offsets if places is None else places(offsets)
        if ordered is offsets:
            yield batch
            continue
        columns: dict[str, Any] = {
            name: functools.partial(batch.__getitem__, name) for name in batch
        }
        yield Table(batch.schema, len(batch), {**columns, "offset": ordered}, batch.pool)


def _fill(
    name: str, streams: dict[str, Iterator[Table]], held: dict[str, tuple[Table, I64, int]]
) -> None:
    """Hold rows of two records at least of a table that goes on."""
    while name not in held or held[name][1][held[name][2]] == held[name][1][-1]:
        batch = next(streams[name], None)
        if batch is None:
            del streams[name]
            return
        if name in held:
            table, _, start = held[name]
            batch = _joined([table.select(slice(start, None)), batch])
        if len(batch):
            held[name] = (batch, batch.array("offset"), 0)


def _last_offset(window: Mapping[str, Table]) -> int:
    return max(int(table.array("offset")[-1]) for table in window.values())


def _joined(tables: list[Table]) -> Table:
    """The rows of several tables of one schema, one after another."""

    def column(name: str) -> ColumnData:
        parts = [table[name] for table in tables]
        if isinstance(parts[0], TextColumn):
            return TextColumn.of(
                part.bytes_of(row)
                for part in parts
                if isinstance(part, TextColumn)
                for row in range(len(part))
            )
        return np.concatenate(parts)

    first = tables[0]
    return Table(
        first.schema,
        sum(map(len, tables)),
        {name: column(name) for name in first},
        first.pool,
    )


class FirstPass:
    """What a first look over a capture finds."""

    def __init__(self, capture: Capture) -> None:
        self._seen_to: list[int] = []
        """By window: the last offset in it."""
        self._earliest: list[int] = []
        """By window: the earliest time in it and after it; one more, later than any time."""
        self.annotated = 0
        self.unowned = 0
        """Arguments of ends that close nothing."""
        self.untimed = 0
        """Arguments of objects and blobs."""
        self.rows = 0
        self._ends: list[Table] = []
        for window in _windows(capture, (*TIMED, "args")):
            self._look(window)
        self._earliest.append(ENDLESS)
        for place in range(len(self._earliest) - 2, -1, -1):
            self._earliest[place] = min(self._earliest[place], self._earliest[place + 1])

    def _look(self, window: Mapping[str, Table]) -> None:
        self._seen_to.append(_last_offset(window))
        times = [table.array("ts") for name, table in window.items() if name in TIMED]
        self._earliest.append(min((int(ts.min()) for ts in times), default=NS_MAX))
        self.rows += sum(ts.size for ts in times)
        args = window.get("args")
        if args is not None:
            self._look_at_args(args, window.get("slices"))

    def _look_at_args(self, args: Table, slices: Table | None) -> None:
        owners = args.array("table")
        timed = np.isin(owners, [TABLE_CODES[name] for name in TIMED])
        if "trace_annotation" in args:
            noted = args.array("trace_annotation") >= 0
            self.annotated += int(np.count_nonzero(noted & timed))
        # The process of a thread object comes out as the thread's process.
        used = timed | (args.array("name") == args.pool.code("process"))
        self.untimed += int(np.count_nonzero(~used))
        mine = owners == SLICES
        parents = args.array("parent")
        self.unowned += int(np.count_nonzero(mine & (parents < 0)))
        mine &= parents >= 0
        if not mine.any():
            return
        at_end = mine.copy()
        if slices is not None:
            rows, offsets = slices.array("row"), slices.array("offset")
            place = np.minimum(np.searchsorted(rows, parents), rows.size - 1)
            own = (rows[place] == parents) & (offsets[place] == args.array("offset"))
            at_end &= ~own
        if at_end.any():
            self._ends.append(args.select(at_end))

    def earliest_after(self, offset: int) -> int:
        """A time that no event behind ``offset`` is before."""
        return self._earliest[bisect.bisect_right(self._seen_to, offset)]

    def end_args(self) -> Table | None:
        """Arguments of end events whose slice is known, grouped by it; None for none at all."""
        if not self._ends:
            return None
        joined = _joined(self._ends)
        self._ends = [joined.select(np.argsort(joined.array("parent"), kind="stable"))]
        return self._ends[0]


class ThreadNames:
    """Threads and processes by the id that other tables hold."""

    def __init__(self, capture: Capture) -> None:
        threads, processes = capture.table("threads"), capture.table("processes")
        self.names = {
            pid: name
            for pid, name in zip(
                processes.array("pid").tolist(), processes.texts("name"), strict=True
            )
            if name is not None
        }
        ids = threads.array("id").tolist()
        self.pids: dict[int, int] = dict(zip(ids, threads.array("pid").tolist(), strict=True))
        self.tids: dict[int, int] = dict(zip(ids, threads.array("tid").tolist(), strict=True))
        self.thread_names: dict[int, str | None] = dict(
            zip(ids, threads.texts("name"), strict=True)
        )
        self.pids[-1] = self.tids[-1] = 0
        self.thread_names[-1] = None


def _by_offset(args: Table | None, render: Callable[[Table], list[Any]]) -> Members:
    """Rendered arguments by the offset of their record."""
    if args is None:
        return {}
    return _grouped(args.array("offset").tolist(), render(args))


def _grouped(keys: list[int], values: list[Any]) -> dict[int, list[Any]]:
    groups: dict[int, list[Any]] = {}
    last, group = None, []
    for key, value in zip(keys, values, strict=True):
        if key != last:
            last = key
            group = groups.setdefault(key, [])
        group.append(value)
    return groups


_LEFT_OUT = {
    "blob": "blobs",
    "damaged": "damaged stretches",
    "large": "large blobs",
    "metadata provider_event": "provider events",
    "unknown": "records of unknown types",
    "userspace_object": "userspace objects",
}
"""Kinds of records that have no place in an output, as a person calls them."""


def _dropped_records(capture: Capture, survey: FirstPass) -> Counter[str]:
    """What has no place in an output, by name."""
    dropped: Counter[str] = Counter()
    for kind, count in capture.summary().kinds.items():
        family, _, subtype = kind.partition(" ")
        if kind in _LEFT_OUT:
            dropped[_LEFT_OUT[kind]] += count
        elif family == "profiler":
            dropped["profiler records"] += count
        elif subtype.isdecimal():
            dropped[f"{family} records of unknown kinds"] += count
    found = capture.diagnostics.counts
    dropped["damaged stretches"] -= found.get("FXT0505", 0)  # stale bytes are nothing lost
    dropped["ends that close nothing"] = found.get("FXT0302", 0) + found.get("FXT0306", 0)
    dropped["arguments of ends that close nothing"] = survey.unowned
    dropped["arguments of objects and blobs"] = survey.untimed
    return dropped


def _refusal(capture: Capture) -> WriteRefusedError:
    return WriteRefusedError(
        "there is nothing to write: no event, no message, no name",
        path=capture.name,
        remedy="`fxf info` shows what the capture holds",
    )


def _json(text: str) -> str:
    r"""The text as a JSON string that Perfetto's parser takes too.

    That stumbles over a backslash right before the closing quote, and over a DEL.
    """
    made = orjson.dumps(text).decode()
    if made.endswith('\\\\"'):
        made = made[:-3] + r'\u005c"'
    return made.replace("\x7f", r"\u007f")


class _InTime:
    """Puts rendered events in order of time, those of one time in the order they came in.

    They wait in memory until nothing earlier can come. Too many of them go to a temporary file in
    sorted runs, which are merged at the end: ``pack`` makes a line of one, ``unpack`` one of that.
    """

    def __init__(
        self,
        emit: Callable[[list[Any]], None],
        pack: Callable[[Any], bytes],
        unpack: Callable[[bytes], Any],
    ) -> None:
        self._emit = emit
        self._pack = pack
        self._unpack = unpack
        self._times = np.zeros(0, np.int64)
        self._items: list[Any] = []
        self._runs: list[tuple[int, int]] = []
        self._file: IO[bytes] | None = None

    def add(self, times: I64, items: list[Any], earliest: int) -> None:
        """Take in events and their times, and give out what is before ``earliest``.

        No event that is still to come may be before that.
        """
        self._times = np.concatenate((self._times, times))
        self._items += items
        if (self._times[1:] < self._times[:-1]).any():
            order = np.argsort(self._times, kind="stable")
            self._times = self._times[order]
            self._items = [self._items[place] for place in order.tolist()]
        if not self._runs:
            ready = self._items[: bisect.bisect_left(self._times, earliest)]
            if ready:
                self._emit(ready)
                self._items, self._times = self._items[len(ready) :], self._times[len(ready) :]
        if len(self._items) > WAITING:
            self._spill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self._finish()
        if self._file is not None:
            self._file.close()

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by __exit__)
        start = self._file.tell()
        for time, item in zip(self._times.tolist(), self._items, strict=True):
            self._file.write(b"%d\t%b\n" % (time, self._pack(item)))
        self._runs.append((start, self._file.tell()))
        self._items, self._times = [], self._times[:0]

    def _finish(self) -> None:
        waiting = zip(self._times.tolist(), self._items, strict=True)
        runs = [self._run(*bounds) for bounds in self._runs]
        # Of one time the earlier run comes first, as it came in first.
        merged = heapq.merge(*runs, waiting, key=lambda pair: pair[0])
        while batch := [item for _, item in itertools.islice(merged, ROWS)]:
            self._emit(batch)

    def _run(self, start: int, stop: int) -> Iterator[tuple[int, Any]]:
        """The events of a run, read in pieces."""
        assert self._file is not None  # noqa: S101 (there is a run)
        rest = b""
        while start < stop:
            self._file.seek(start)
            data = self._file.read(min(PIECE, stop - start))
            start += len(data)
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                time, _, packed = line.partition(b"\t")
                yield int(time), self._unpack(packed)


# --- Chrome JSON ---------------------------------------------------------------------------------

SYSTEM_KEY = r"systemTrac\u0065Events"
"""``systemTraceEvents``, as every JSON parser reads it.

Perfetto looks for the plain spelling, expects a string behind it, and refuses the whole file for
the object that Fuchsia's tools write and read. Spelled with an escape it passes over it.
"""
_PHASES = ("s", "t", "f")
_SCOPE_LETTERS = {0: "t", 1: "p", 2: "g"}


def _us(ns: I64) -> list[str]:
    """Nanoseconds as the text of exact microseconds."""
    if ns.size and int(ns.min()) < 0:
        return [
            f"{'-' if value < 0 else ''}{abs(value) // 1000}.{abs(value) % 1000:03d}"
            for value in ns.tolist()
        ]
    whole, part = np.divmod(ns, 1000)
    return [f"{w}.{p:03d}" for w, p in zip(whole.tolist(), part.tolist(), strict=True)]


class _Strings:
    """Texts of a pool as JSON, each made once."""

    def __init__(self) -> None:
        self._made: dict[int, str] = {}

    def of(self, table: Table, name: str) -> list[str]:
        """A code column as JSON strings; null as ``null``."""
        made = self._made
        pool = table.pool
        out = []
        for code in table.array(name).tolist():
            text = made.get(code)
            if text is None:
                text = "null" if code < 0 else _json(pool[code])
                made[code] = text
            out.append(text)
        return out


class _JsonArgs:
    """Arguments as members of a JSON object."""

    def __init__(self, strings: _Strings) -> None:
        self._strings = strings
        self.unknown = 0
        """Arguments of unknown types, which have no value to show."""

    def render(self, args: Table) -> list[tuple[str, str] | None]:
        """Per row: name and value, as JSON."""
        names = self._strings.of(args, "name")
        texts = self._strings.of(args, "str")
        out: list[tuple[str, str] | None] = []
        for name, kind, signed, unsigned, real, text, code in zip(
            names,
            args.array("type").tolist(),
            args.array("int").tolist(),
            args.array("uint").tolist(),
            args.array("float").tolist(),
            texts,
            args.array("str").tolist(),
            strict=True,
        ):
            if kind == ArgType.STRING:
                value = text
            elif kind == ArgType.POINTER:
                value = f'"0x{unsigned:x}"'
            elif kind in {ArgType.INT32, ArgType.INT64}:
                value = str(signed)
            elif kind in {ArgType.UINT32, ArgType.UINT64}:
                value = str(unsigned)
            elif kind == ArgType.DOUBLE:
                value = repr(real) if math.isfinite(real) else _not_finite(real)
            elif kind == ArgType.KOID:
                value = f'"#{unsigned}"'
            elif kind == ArgType.BOOL:
                value = "true" if signed else "false"
            elif kind == ArgType.NULL:
                value = "null"
            elif kind == ArgType.BLOB:
                value = f'"{base64.b64encode(args.pool.bytes_of(code)).decode()}"'
            else:
                self.unknown += 1
                out.append(None)
                continue
            out.append((name, value))
        return out


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return '"NaN"'
    return '"Infinity"' if value > 0 else '"-Infinity"'


def _object(members: Iterable[tuple[str, str] | None]) -> str:
    """``,"args":{…}``; a name that stands again gets ``#2``, ``#3``, …; nothing for no members."""
    known = [member for member in members if member is not None]
    if not known:
        return ""
    if len(known) > 1 and len({name for name, _ in known}) < len(known):
        taken: Counter[str] = Counter()
        numbered = []
        for name, value in known:
            taken[name] += 1
            again = f'{name[:-1]}#{taken[name]}"' if taken[name] > 1 else name
            numbered.append((again, value))
        known = numbered
    return ',"args":{' + ",".join(f"{name}:{value}" for name, value in known) + "}"


class _JsonExport:
    """Writes Chrome JSON as Fuchsia's trace2json does, for one capture.

    Events come in order of time, but for ends: an E comes before the first event of its thread
    that is not in its slice, so that a reader who sorts by time, stably, nests as the tables do.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._used = False
        self._comma = ""
        self._dropped: Counter[str] = Counter()

    def write(self, capture: Capture) -> None:
        """Write the one capture.

        Raises WriteRefusedError for a second one, and where there is nothing to write.
        """
        if self._used:
            raise WriteRefusedError(
                "Chrome JSON holds one capture", remedy="convert the inputs one by one"
            )
        self._used = True
        capture.scan()
        survey = FirstPass(capture)
        names = _KernelNames(capture)
        if not survey.rows and not names:
            raise _refusal(capture)
        self._dropped = _dropped_records(capture, survey)
        self._dropped["annotations of pointers and koids"] = survey.annotated
        self._dropped["kernel objects other than processes and threads"] = names.others
        strings = _Strings()
        arguments = _JsonArgs(strings)
        cast = ThreadNames(capture)
        self._sink.write(b'{"displayTimeUnit":"ns","traceEvents":[')
        self._put(names.metadata(cast))
        events = _JsonEvents(cast, strings, arguments, survey)

        def emit(ready: list[Item]) -> None:
            self._put(events.placed(ready))

        with _InTime(emit, orjson.dumps, orjson.loads) as ordered:
            for window in _windows(capture, (*TIMED, "args")):
                ordered.add(*events.window(window), survey.earliest_after(_last_offset(window)))
        self._put(events.rest())
        self._put(self._fidl_blobs(capture))
        self._sink.write(b'],"' + SYSTEM_KEY.encode() + b'":{"type":"fuchsia","events":[')
        self._comma = ""
        self._put(names.system())
        for window in _windows(capture, ("sched", "args")):
            if "sched" in window:
                self._put(_sched_json(window["sched"], window.get("args"), cast, arguments))
        self._sink.write(b"]}")
        branches = self._last_branches(capture)
        if branches:
            self._sink.write(b',"lastBranch":' + orjson.dumps({"records": branches}))
        self._sink.write(b"}\n")
        self._dropped += events.dropped
        self._dropped["arguments of unknown types"] = arguments.unknown

    def close(self) -> Mapping[str, int]:
        """What was left out, by name."""
        return {what: count for what, count in self._dropped.items() if count > 0}

    def _put(self, items: list[str]) -> None:
        if items:
            self._sink.write((self._comma + ",\n".join(items)).encode())
            self._comma = ",\n"

    def _fidl_blobs(self, capture: Capture) -> list[str]:
        """Large blobs that carry FIDL messages: the only ones that trace2json writes."""
        if not self._dropped["large blobs"]:
            return []
        out = []
        for record in capture.records():
            if getattr(record, "category", None) != FIDL_CATEGORY:
                continue
            shown = record.to_json()
            ns = getattr(record, "ns", None)
            if shown["record"] != "large" or ns is None:
                continue
            pid, tid = shown["thread"] if isinstance(shown["thread"], list) else (0, 0)
            payload = base64.b64encode(bytes.fromhex(shown["payload_hex"])).decode()
            self._dropped["large blobs"] -= 1
            out.append(
                f'{{"ph":"O","id":"","cat":"{FIDL_CATEGORY}","name":{_json(shown["name"])},'
                f'"ts":{_us(np.array([ns]))[0]},"pid":{pid},"tid":{tid},"blob":"{payload}"}}'
            )
        return out

    def _last_branches(self, capture: Capture) -> list[dict[str, Any]]:
        """Blobs of a CPU's last branches (perfmon's LastBranchRecordBlob), where they are whole."""
        out = []
        order = ">" if getattr(capture, "big_endian", False) else "<"
        head = struct.Struct(f"{order}HHIQQ")
        entry = struct.Struct(f"{order}QQQ")
        for batch in capture.batches("blobs"):
            wanted = batch.select(batch.array("type") == BlobType.LAST_BRANCH)
            for start, length in wanted.array("data").tolist():
                payload = capture.source.read(start, length)
                if len(payload) < head.size:
                    continue
                cpu, count, _, event_time, aspace = head.unpack_from(payload)
                entries = payload[head.size : head.size + count * entry.size]
                if len(entries) < count * entry.size:
                    continue
                out.append(
                    {
                        "cpu": cpu,
                        "aspace": aspace,
                        "event_time": event_time,
                        "branches": [
                            {"from": origin, "to": target, "info": info}
                            for origin, target, info in entry.iter_unpack(entries)
                        ],
                    }
                )
        self._dropped["blobs"] -= len(out)
        return out


class _KernelNames:
    """Names that kernel objects give to processes and threads; of several the longest.

    As trace2json has it: a provider may cut names short, so the longest is the best.
    """

    def __init__(self, capture: Capture) -> None:
        self.processes: dict[int, str] = {}
        self.threads: dict[tuple[int, int], str] = {}
        self.others = 0
        """Kernel objects that are neither."""
        lengths: dict[Any, int] = {}
        for batch in capture.batches("trace_objects"):
            kernel = batch.select(batch.array("kind") == 0)
            for kind, koid, pid, name, code in zip(
                kernel.array("type").tolist(),
                kernel.array("id").tolist(),
                kernel.array("pid").tolist(),
                kernel.texts("name"),
                kernel.array("name").tolist(),
                strict=True,
            ):
                key: Any = koid
                names: dict[Any, str] = self.processes
                if kind == ObjectType.THREAD:
                    key, names = (pid, koid), self.threads
                elif kind != ObjectType.PROCESS:
                    self.others += 1
                    continue
                length = len(kernel.pool.bytes_of(code))
                if length > lengths.get((kind, key), -1):
                    lengths[kind, key] = length
                    names[key] = name or ""

    def __bool__(self) -> bool:
        return bool(self.processes or self.threads)

    def system(self) -> list[str]:
        """The names as ``systemTraceEvents`` has them, in order of koids."""
        out = []
        for pid, name in sorted(self.processes.items()):
            first = ',"sort_index":-1' if pid == IDLE else ""
            out.append(f'{{"ph":"p","pid":{pid},"name":{_json(name)}{first}}}')
        for (pid, tid), name in sorted(self.threads.items()):
            out.append(f'{{"ph":"t","pid":{pid},"tid":{tid},"name":{_json(name)}}}')
        return out

    def metadata(self, cast: ThreadNames) -> list[str]:
        """The same names as Chrome's and Perfetto's viewers take them; trace2json has none."""
        out = []
        for pid, name in {**cast.names, **self.processes}.items():
            out.append(
                f'{{"ph":"M","name":"process_name","pid":{pid},"tid":0,'
                f'"args":{{"name":{_json(name)}}}}}'
            )
        for thread, tid in cast.tids.items():
            pid = cast.pids[thread]
            named = self.threads.get((pid, tid)) or cast.thread_names[thread]
            if named is not None:
                out.append(
                    f'{{"ph":"M","name":"thread_name","pid":{pid},"tid":{tid},'
                    f'"args":{{"name":{_json(named)}}}}}'
                )
        return out


_SLICE, _ON_THREAD, _ALONE = range(3)
_Open = tuple[int, int, str]
"""A slice that may enclose others: its row, when it ends, and the JSON of that end, if any."""
Item = tuple[Any, ...]
"""What it is (one of the three), then what its place among the others needs, then its JSON."""


class _JsonEvents:
    """Rows as trace events, and their places."""

    def __init__(
        self, cast: ThreadNames, strings: _Strings, arguments: _JsonArgs, survey: FirstPass
    ) -> None:
        self._strings = strings
        self._arguments = arguments
        self._who = {
            thread: f'"pid":{cast.pids[thread]},"tid":{tid}' for thread, tid in cast.tids.items()
        }
        ends = survey.end_args()
        self._end_args = (
            {} if ends is None else _grouped(ends.array("parent").tolist(), arguments.render(ends))
        )
        self._stacks: dict[int, list[_Open]] = {thread: [] for thread in cast.tids}
        self.dropped: Counter[str] = Counter()

    def window(self, window: Mapping[str, Table]) -> tuple[I64, list[Item]]:
        """Times and events of a window, in file order."""
        args = window.get("args")
        members = _by_offset(args, self._arguments.render)
        times, offsets = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        items: list[Item] = []
        for name, make in (
            ("slices", self._slices),
            ("instants", self._instants),
            ("flows", self._flows),
            ("logs", self._logs),
            ("counters", self._counters),
        ):
            if name in window:
                table = window[name]
                if name == "counters":  # one event of all the series of a record
                    table = table.select(np.unique(table.array("offset"), return_index=True)[1])
                times.append(table.array("ts"))
                offsets.append(table.array("offset"))
                items += make(table, members)
        if args is not None:
            self._count_numberless(args, window.get("counters"))
        order = np.argsort(np.concatenate(offsets), kind="stable")
        return np.concatenate(times)[order], [items[place] for place in order.tolist()]

    def rest(self) -> list[str]:
        """The ends that are still to be written."""
        return [text for stack in self._stacks.values() for *_, text in reversed(stack) if text]

    def placed(self, items: Iterable[Item]) -> list[str]:
        """The JSON of events that come in order of time, and of the ends before and between."""
        out: list[str] = []
        put = out.append
        stacks = self._stacks

        def close(stack: list[_Open]) -> None:
            text = stack.pop()[2]
            if text:
                put(text)

        for item in items:
            what = item[0]
            if what == _SLICE:
                _, thread, parent, row, until, end, text = item
                stack = stacks[thread]
                while stack and stack[-1][0] != parent:
                    close(stack)
                put(text)
                stack.append((row, until, end))
                continue
            if what == _ON_THREAD:
                _, thread, now, row, _ = item
                stack = stacks[thread]
                if row >= 0 and any(entry[0] == row for entry in stack):
                    while stack[-1][0] != row:
                        close(stack)
                else:
                    while stack and stack[-1][1] <= now:
                        close(stack)
            put(item[-1])
        return out

    def _heads(self, table: Table, times: list[str]) -> list[str]:
        """The members that every event has."""
        who = self._who
        return [
            f'{{"cat":{category},"name":{name},"ts":{ts},{who[thread]}'
            for category, name, ts, thread in zip(
                self._strings.of(table, "category"),
                self._strings.of(table, "name"),
                times,
                table.array("thread").tolist(),
                strict=True,
            )
        ]

    def _slices(self, table: Table, members: Members) -> list[Item]:
        ts, dur = table.array("ts"), table.array("dur")
        ends = ts + np.maximum(dur, 0)
        items: list[Item] = []
        for begin, finish, offset, row, parent, thread, kind, number, length, end in zip(
            self._heads(table, _us(ts)),
            self._heads(table, _us(ends)),
            table.array("offset").tolist(),
            table.array("row").tolist(),
            table.array("parent").tolist(),
            table.array("thread").tolist(),
            table.array("kind").tolist(),
            table.array("id").tolist(),
            dur.tolist(),
            ends.tolist(),
            strict=True,
        ):
            own = members.get(offset, [])
            later = self._end_args.get(row, [])
            if kind == ASYNC:
                text = f'{begin},"ph":"b","id":{number}{_object(own)}}}'
                if length != NEVER:
                    text += f',\n{finish},"ph":"e","id":{number}{_object(later)}}}'
                items.append((_ALONE, text))
                continue
            text, close, until = f'{begin},"ph":"B"{_object(own)}}}', "", ENDLESS
            if kind == COMPLETE:
                if length == NEVER:
                    self.dropped["ends of complete events that lie before their begins"] += 1
                    length = 0
                span = f"{length // 1000}.{length % 1000:03d}"
                text = f'{begin},"ph":"X","dur":{span}{_object(own)}}}'
                until = end
            elif length != NEVER:
                close = f'{finish},"ph":"E"{_object(later)}}}'
                until = end
            items.append((_SLICE, thread, parent, row, until, close, text))
        return items

    def _instants(self, table: Table, members: Members) -> list[Item]:
        items: list[Item] = []
        for head, offset, thread, ts, scope, number in zip(
            self._heads(table, _us(table.array("ts"))),
            table.array("offset").tolist(),
            table.array("thread").tolist(),
            table.array("ts").tolist(),
            table.array("scope").tolist(),
            table.array("id").tolist(),
            strict=True,
        ):
            args = _object(members.get(offset, []))
            if scope == ASYNC_SCOPE:
                items.append((_ALONE, f'{head},"ph":"n","id":{number}{args}}}'))
            else:
                letter = _SCOPE_LETTERS.get(scope, "t")
                text = f'{head},"ph":"i","s":"{letter}"{args}}}'
                items.append((_ON_THREAD, thread, ts, NONE, text))
        return items

    def _flows(self, table: Table, members: Members) -> list[Item]:
        items: list[Item] = []
        for head, offset, thread, ts, row, phase, number in zip(
            self._heads(table, _us(table.array("ts"))),
            table.array("offset").tolist(),
            table.array("thread").tolist(),
            table.array("ts").tolist(),
            table.array("slice").tolist(),
            table.array("phase").tolist(),
            table.array("id").tolist(),
            strict=True,
        ):
            letter = _PHASES[phase]
            bind = ',"bp":"e"' if letter == "f" else ""
            args = _object(members.get(offset, []))
            text = f'{head},"ph":"{letter}"{bind},"id":"{number}"{args}}}'
            items.append((_ON_THREAD, thread, ts, row, text))
        return items

    def _counters(self, table: Table, members: Members) -> list[Item]:
        items: list[Item] = []
        for head, offset, number in zip(
            self._heads(table, _us(table.array("ts"))),
            table.array("offset").tolist(),
            table.array("id").tolist(),
            strict=True,
        ):
            shown = f',"id":"0x{number:x}"' if number else ""
            args = _object(
                # Perfetto takes 64 bits for signed, but not in scientific notation.
                (member[0], repr(float(member[1]))) if member and _over_int64(member[1]) else member
                for member in members.get(offset, [])
            )
            items.append((_ALONE, f'{head},"ph":"C"{shown}{args}}}'))
        return items

    def _count_numberless(self, args: Table, counters: Table | None) -> None:
        """Counters of which no argument is a number have no row, and so no time."""
        offsets = np.unique(args.array("offset")[args.array("table") == COUNTERS])
        if counters is not None:
            offsets = np.setdiff1d(offsets, counters.array("offset"))
        self.dropped["counters without a number"] += int(offsets.size)

    def _logs(self, table: Table, members: Members) -> list[Item]:
        del members
        items: list[Item] = []
        for ts, pid, tid, message in zip(
            _us(table.array("ts")),
            table.array("pid").tolist(),
            table.array("tid").tolist(),
            table.texts("message"),
            strict=True,
        ):
            head = f'{{"cat":"log","name":"log","ts":{ts},"pid":{pid},"tid":{tid},"ph":"i","s":"g"'
            items.append((_ALONE, f'{head},"args":{{"message":{_json(message or "")}}}}}'))
        return items


def _over_int64(value: str) -> bool:
    return len(value) > 18 and value.isdecimal() and int(value) >> 63 > 0


def _sched_json(
    sched: Table, args: Table | None, cast: ThreadNames, arguments: _JsonArgs
) -> list[str]:
    """Context switches and wakeups as ``systemTraceEvents`` has them, with their arguments."""
    members = _by_offset(args, arguments.render)
    out = []
    for offset, ts, cpu, kind, before, after, state, left, entered in zip(
        sched.array("offset").tolist(),
        _us(sched.array("ts")),
        sched.array("cpu").tolist(),
        sched.array("kind").tolist(),
        sched.array("prev").tolist(),
        sched.array("next").tolist(),
        sched.array("prev_state").tolist(),
        sched.array("prev_priority").tolist(),
        sched.array("next_priority").tolist(),
        strict=True,
    ):
        extra = _object(members.get(offset, []))
        legacy = kind == LEGACY
        who = [
            (f'"pid":{cast.pids[thread]},' if legacy else "") + f'"tid":{cast.tids[thread]}'
            for thread in (before, after)
        ]
        ranks = [
            f',"prio":{rank}' if legacy or rank != NOT_GIVEN else "" for rank in (left, entered)
        ]
        if kind == WAKEUP:
            text = f'{{"ph":"w","ts":{ts},"cpu":{cpu},{who[1]}{ranks[1]}{extra}}}'
        else:
            text = (
                f'{{"ph":"k","ts":{ts},"cpu":{cpu},'
                f'"out":{{{who[0]},"state":{state}{ranks[0]}}},"in":{{{who[1]}{ranks[1]}}}{extra}}}'
            )
        out.append(text)
    return out


# --- Text ----------------------------------------------------------------------------------------

_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"))


class _TextExport:
    """Writes one line for each event, in order of time: when, who, what, its arguments."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._dropped: Counter[str] = Counter()

    def write(self, capture: Capture) -> None:
        """Write one capture; a further one follows behind it.

        Raises WriteRefusedError where there is nothing to write.
        """
        capture.scan()
        survey = FirstPass(capture)
        if not survey.rows:
            raise _refusal(capture)
        self._dropped += _dropped_records(capture, survey)
        names = _KernelNames(capture)
        self._dropped["kernel objects other than processes and threads"] += names.others
        lines = _TextLines(ThreadNames(capture), survey)
        with _InTime(self._emit, str.encode, bytes.decode) as ordered:
            for window in _windows(capture, (*TIMED, "args")):
                ordered.add(*lines.window(window), survey.earliest_after(_last_offset(window)))

    def _emit(self, lines: list[str]) -> None:
        self._sink.write(("\n".join(lines) + "\n").encode())

    def close(self) -> Mapping[str, int]:
        """What was left out, by name."""
        return {what: count for what, count in self._dropped.items() if count > 0}


class _TextLines:
    """Rows as lines, without their ends."""

    def __init__(self, cast: ThreadNames, survey: FirstPass) -> None:
        self._texts = _Plain()
        self._who = {thread: self._label(cast, thread) for thread in cast.tids}
        self._cast = cast
        ends = survey.end_args()
        self._end_args = (
            {} if ends is None else _grouped(ends.array("parent").tolist(), self._render(ends))
        )

    def window(self, window: Mapping[str, Table]) -> tuple[I64, list[str]]:
        """Times and lines of a window, in file order."""
        args = window.get("args")
        shown = _by_offset(args, self._render)
        times, offsets = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        lines: list[str] = []
        for name, make in (
            ("slices", self._slices),
            ("instants", self._instants),
            ("flows", self._flows),
            ("counters", self._counters),
            ("sched", self._sched),
            ("logs", self._logs),
        ):
            if name in window:
                table = window[name]
                if name == "counters":  # one line for all the series of a record
                    table = table.select(np.unique(table.array("offset"), return_index=True)[1])
                times.append(table.array("ts"))
                offsets.append(table.array("offset"))
                starts = [_seconds(ts) for ts in table.array("ts").tolist()]
                lines += [
                    f"{start} {line}"
                    for start, line in zip(starts, make(table, shown), strict=True)
                ]
        order = np.argsort(np.concatenate(offsets), kind="stable")
        return np.concatenate(times)[order], [lines[place] for place in order.tolist()]

    def _label(self, cast: ThreadNames, thread: int) -> str:
        pid, tid = cast.pids[thread], cast.tids[thread]
        process, name = cast.names.get(pid), cast.thread_names[thread]
        if name is not None and name.startswith("<thr#"):
            return name
        return f"{_named(process, pid)}/{_named(name, tid)}"

    def _title(self, table: Table) -> list[str]:
        """``category:name``, or the name alone."""
        return [
            name if category in {"", EMPTY} else f"{category}:{name}"
            for category, name in zip(
                self._texts.of(table, "category"), self._texts.of(table, "name"), strict=True
            )
        ]

    def _on_thread(self, table: Table) -> list[str]:
        who = self._who
        return [who[thread] for thread in table.array("thread").tolist()]

    def _slices(self, table: Table, shown: Members) -> list[str]:
        lines = []
        for who, title, offset, row, kind, number, dur in zip(
            self._on_thread(table),
            self._title(table),
            table.array("offset").tolist(),
            table.array("row").tolist(),
            table.array("kind").tolist(),
            table.array("id").tolist(),
            table.array("dur").tolist(),
            strict=True,
        ):
            what = f"async id={number}" if kind == ASYNC else "slice"
            length = "unclosed" if dur == NEVER else f"dur={_duration(dur)}"
            parts = [*shown.get(offset, []), *self._end_args.get(row, [])]
            lines.append(" ".join([who, what, title, length, *parts]))
        return lines

    def _instants(self, table: Table, shown: Members) -> list[str]:
        lines = []
        for who, title, offset, scope, number in zip(
            self._on_thread(table),
            self._title(table),
            table.array("offset").tolist(),
            table.array("scope").tolist(),
            table.array("id").tolist(),
            strict=True,
        ):
            what = "instant"
            if scope == ASYNC_SCOPE:
                what = f"async-instant id={number}"
            elif scope:
                what = f"instant scope={SCOPES.get(scope, scope)}"
            lines.append(" ".join([who, what, title, *shown.get(offset, [])]))
        return lines

    def _flows(self, table: Table, shown: Members) -> list[str]:
        return [
            " ".join([who, f"flow-{FLOW_PHASES[phase]} id={number}", title, *shown.get(offset, [])])
            for who, title, offset, phase, number in zip(
                self._on_thread(table),
                self._title(table),
                table.array("offset").tolist(),
                table.array("phase").tolist(),
                table.array("id").tolist(),
                strict=True,
            )
        ]

    def _counters(self, table: Table, shown: Members) -> list[str]:
        return [
            " ".join([who, f"counter id={number}", title, *shown.get(offset, [])])
            for who, title, offset, number in zip(
                self._on_thread(table),
                self._title(table),
                table.array("offset").tolist(),
                table.array("id").tolist(),
                strict=True,
            )
        ]

    def _sched(self, table: Table, shown: Members) -> list[str]:
        lines = []
        for offset, cpu, kind, before, after, state, left, entered in zip(
            table.array("offset").tolist(),
            table.array("cpu").tolist(),
            table.array("kind").tolist(),
            table.array("prev").tolist(),
            table.array("next").tolist(),
            table.array("prev_state").tolist(),
            table.array("prev_priority").tolist(),
            table.array("next_priority").tolist(),
            strict=True,
        ):
            extra = shown.get(offset, [])
            incoming = self._who[after]
            if kind == LEGACY:
                extra = [f"prio={left}->{entered}", *extra]
            if kind == WAKEUP:
                parts = [f"cpu{cpu}", "wakeup", incoming, *extra]
            else:
                word = THREAD_STATES.get(state, str(state))
                parts = [f"cpu{cpu}", "switch", self._who[before], word, "->", incoming, *extra]
            lines.append(" ".join(parts))
        return lines

    def _logs(self, table: Table, shown: Members) -> list[str]:
        del shown
        cast = self._cast
        ids = {(cast.pids[thread], tid): thread for thread, tid in cast.tids.items()}
        lines = []
        for pid, tid, message in zip(
            table.array("pid").tolist(),
            table.array("tid").tolist(),
            table.texts("message"),
            strict=True,
        ):
            thread = ids.get((pid, tid))
            who = f"{pid}/{tid}" if thread is None else self._who[thread]
            lines.append(f"{who} log {_json(message or '')}")
        return lines

    def _render(self, args: Table) -> list[str]:
        """Per argument: ``name=value``, with the name of the object that it means."""
        notes: list[str | None] = [None] * len(args)
        if "trace_annotation" in args:
            notes = args.texts("trace_annotation")
        out = []
        for name, kind, signed, unsigned, real, code, note in zip(
            self._texts.of(args, "name"),
            args.array("type").tolist(),
            args.array("int").tolist(),
            args.array("uint").tolist(),
            args.array("float").tolist(),
            args.array("str").tolist(),
            notes,
            strict=True,
        ):
            if kind == ArgType.STRING:
                value = _json(args.pool[code])
            elif kind in {ArgType.INT32, ArgType.INT64}:
                value = str(signed)
            elif kind in {ArgType.UINT32, ArgType.UINT64}:
                value = str(unsigned)
            elif kind == ArgType.POINTER:
                value = f"0x{unsigned:x}"
            elif kind == ArgType.KOID:
                value = f"#{unsigned}"
            elif kind == ArgType.DOUBLE:
                value = repr(real)
            elif kind == ArgType.BOOL:
                value = "true" if signed else "false"
            elif kind == ArgType.NULL:
                value = "null"
            elif kind == ArgType.BLOB:
                value = f"[{args.pool.bytes_of(code).hex(' ')}]"
            else:
                value = f"<type {kind}>"
            out.append(f"{name}={value}" if note is None else f"{name}={value}({_plain(note)})")
        return out


class _Plain:
    """Texts of a pool as they stand in a line, each made once."""

    def __init__(self) -> None:
        self._made: dict[int, str] = {-1: ""}

    def of(self, table: Table, name: str) -> list[str]:
        """A code column; null as nothing."""
        made = self._made
        out = []
        for code in table.array(name).tolist():
            text = made.get(code)
            if text is None:
                text = made[code] = _plain(table.pool[code])
            out.append(text)
        return out


EMPTY = '""'
"""How an empty text stands in a line."""


def _plain(text: str) -> str:
    """The text as it is, or as a JSON string where it would break the line or hide in it."""
    return text if text and text.isprintable() else _json(text)


def _named(name: str | None, koid: int) -> str:
    return str(koid) if name is None else f"{_plain(name)}({koid})"


def _seconds(ns: int) -> str:
    """A time in seconds, to the nanosecond; a sign only where it is negative."""
    whole, part = divmod(abs(ns), 1_000_000_000)
    sign = "-" if ns < 0 else ""
    return f"{sign + str(whole):>6}.{part:09d}"


def _duration(ns: int) -> str:
    """A length in the greatest unit that it fills, exact to the nanosecond."""
    for size, unit in _UNITS:
        if ns >= size:
            whole, part = divmod(ns, size)
            digits = f"{part:0{len(str(size)) - 1}d}".rstrip("0")
            return f"{whole}.{digits}{unit}" if digits else f"{whole}{unit}"
    return f"{ns}ns"
