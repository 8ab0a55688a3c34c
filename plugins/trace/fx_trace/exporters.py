"""Exporters of the trace format: Chrome JSON as trace2json writes it, and text for people.

Both read the tables, in batches: a window over the tables that have times holds whole records, so
that rows of several tables can be put in file order, and arguments beside what they belong to.
A first look over the capture (``_Survey``) finds what only the whole of it tells.
"""

from __future__ import annotations

import base64
import heapq
import math
import struct
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any

import attrs
import numpy as np
import orjson
from numpy.typing import NDArray

from fx_trace.layout import ArgType, BlobType, ObjectType
from fxframework.errors import WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.io.words import U64_MAX
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX
from fxframework.model.schema import FLOW_PHASES, SCHED_KINDS, TABLE_CODES, THREAD_STATES
from fxframework.model.strings import TextColumn
from fxframework.model.table import ColumnData, Table
from fxframework.registry import ExportSession

__all__ = ["open_json", "open_text"]

I64 = NDArray[np.int64]
ROWS = 1 << 16
"""Rows of a batch."""
LINES = 1 << 18
"""Lines of text that wait in memory to be put in order; more go to a temporary file."""
TIMED = ("slices", "instants", "counters", "flows", "sched", "logs")
SLICES = TABLE_CODES["slices"]
BEGIN_END, COMPLETE, ASYNC = 0, 1, 2
ASYNC_SCOPE = 255
NEVER = -1
FIDL_CATEGORY = "fidl:blob"
IDLE = 0
"""Koid of the process that trace2json sorts first: none."""


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

    Relies on tables being in the order of their offsets.
    """
    streams = {name: capture.batches(name, ROWS) for name in names if name in capture.schemas}
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


class _Survey:
    """What a first look over a capture finds."""

    def __init__(self, capture: Capture) -> None:
        self.jumping: set[int] = set()
        """Threads whose slices do not stand in order of time."""
        self.earliest: list[int] = []
        """By window: the earliest time in it and after it."""
        self.annotated = 0
        self.unowned = 0
        """Arguments of ends that close nothing."""
        self.rows = 0
        self._last: dict[int, int] = {}
        self._ends: list[Table] = []
        for window in _windows(capture, (*TIMED, "args")):
            self._look(window)
        for place in range(len(self.earliest) - 2, -1, -1):
            self.earliest[place] = min(self.earliest[place], self.earliest[place + 1])

    def _look(self, window: Mapping[str, Table]) -> None:
        times = [table.array("ts") for name, table in window.items() if name in TIMED]
        self.earliest.append(min((int(ts.min()) for ts in times), default=NS_MAX))
        self.rows += sum(ts.size for ts in times)
        slices, args = window.get("slices"), window.get("args")
        if slices is not None:
            self._look_at_order(slices)
        if args is not None:
            self._look_at_args(args, slices)

    def _look_at_order(self, slices: Table) -> None:
        on_thread = np.flatnonzero(slices.array("kind") != ASYNC)
        threads = slices.array("thread")[on_thread]
        order = np.argsort(threads, kind="stable")
        threads, ts = threads[order], slices.array("ts")[on_thread][order]
        # A parent that stands behind its child began at the same time, but is longer.
        behind = slices.array("parent")[on_thread][order] > slices.array("row")[on_thread][order]
        same = threads[1:] == threads[:-1]
        self.jumping.update(threads[1:][same & (ts[1:] < ts[:-1])].tolist())
        self.jumping.update(threads[behind].tolist())
        starts = np.flatnonzero(np.concatenate(([True], ~same)))[: threads.size]
        stops = np.append(starts[1:], threads.size) - 1
        for thread, first, last in zip(
            threads[starts].tolist(), ts[starts].tolist(), ts[stops].tolist(), strict=True
        ):
            if first < self._last.get(thread, first):
                self.jumping.add(thread)
            self._last[thread] = last

    def _look_at_args(self, args: Table, slices: Table | None) -> None:
        if "trace_annotation" in args:
            self.annotated += int(np.count_nonzero(args.array("trace_annotation") >= 0))
        mine = args.array("table") == SLICES
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

    def end_args(self) -> Table | None:
        """Arguments of end events whose slice is known, grouped by it; None where there are none."""
        if not self._ends:
            return None
        joined = _joined(self._ends)
        self._ends = [joined.select(np.argsort(joined.array("parent"), kind="stable"))]
        return self._ends[0]


class _Cast:
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


def _by_offset(args: Table | None, render: Callable[[Table], list[Any]]) -> dict[int, list[Any]]:
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


def _dropped_records(capture: Capture, shown: Iterable[str]) -> Counter[str]:
    """Records that have no place in an output, by a name that a person reads."""
    kinds = capture.summary().kinds
    silent = {"initialization", "string", "thread", "padding", *shown}
    titles = {
        "blob": "blobs",
        "damaged": "damaged stretches",
        "large": "large blobs",
        "metadata provider_event": "provider events",
        "unknown": "records of unknown types",
        "userspace_object": "userspace objects",
    }
    dropped: Counter[str] = Counter()
    for kind, count in kinds.items():
        family, _, subtype = kind.partition(" ")
        if kind in titles:
            dropped[titles[kind]] += count
        elif kind in silent or family in silent:
            continue
        elif family == "metadata" and subtype in {"provider_info", "provider_section", "trace_info"}:
            continue
        elif family == "profiler":
            dropped["profiler records"] += count
        elif subtype.isdecimal():
            dropped[f"{family} records of unknown kinds"] += count
    ends = capture.diagnostics.counts
    dropped["ends that close nothing"] = ends.get("FXT0302", 0) + ends.get("FXT0306", 0)
    return dropped


def _refuse_second(used: bool) -> None:  # noqa: FBT001
    if used:
        raise WriteRefusedError(
            "this form holds one capture", remedy="convert the inputs one by one"
        )


def _refuse_empty(capture: Capture) -> WriteRefusedError:
    return WriteRefusedError(
        "there is nothing to write: no event, no message, no name",
        path=capture.name,
        remedy="`fxf info` shows what the capture holds",
    )


# --- Chrome JSON ---------------------------------------------------------------------------------

SYSTEM_KEY = r"systemTrac\u0065Events"
"""``systemTraceEvents``, as every JSON parser reads it.

Perfetto looks for the plain spelling, expects a string behind it, and refuses the whole file for
the object that Fuchsia's tools write and read. Spelled with an escape it passes over it.
"""
_PHASES = ("s", "t", "f")
_SCOPES = {0: "t", 1: "p", 2: "g"}


def _us(ns: I64) -> list[str]:
    """Nanoseconds as the text of exact microseconds."""
    whole, part = np.divmod(np.abs(ns.astype(np.object_) if ns.min(initial=0) < 0 else ns), 1000)
    texts = [f"{w}.{p:03d}" for w, p in zip(whole.tolist(), part.tolist(), strict=True)]
    if ns.min(initial=0) < 0:
        return [f"-{text}" if sign < 0 else text for sign, text in zip(ns, texts, strict=True)]
    return texts


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
                text = "null" if code < 0 else orjson.dumps(pool[code]).decode()
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

    Durations of a thread whose records stand in order of time are B and E, of another one X.
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
        _refuse_second(used=self._used)
        self._used = True
        survey = _Survey(capture)
        names = _KernelNames(capture)
        if not survey.rows and not names:
            raise _refusal(capture)
        self._dropped = _dropped_records(capture, survey)
        self._dropped["annotations of pointers and koids"] = survey.annotated
        self._dropped["kernel objects other than processes and threads"] = names.others
        strings = _Strings()
        arguments = _JsonArgs(strings)
        cast = _Cast(capture)
        self._sink.write(b'{"displayTimeUnit":"ns","traceEvents":[')
        self._put(names.metadata(cast))
        events = _JsonEvents(cast, strings, arguments, survey)
        for window in _windows(capture, (*TIMED, "args")):
            self._put(events.window(window))
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

    def metadata(self, cast: _Cast) -> list[str]:
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


_SLICE, _ON_THREAD, _FLOW, _ALONE = range(4)
Item = tuple[Any, ...]
"""What it is (one of the four), then what its place among the others needs, then its JSON."""


class _JsonEvents:
    """Rows of a window as trace events, in file order.

    Where a thread's records stand in order of time, each E comes out before the first event that
    is not within its slice, so that a reader who sorts by time, stably, nests them as we do.
    """

    def __init__(
        self, cast: _Cast, strings: _Strings, arguments: _JsonArgs, survey: _Survey
    ) -> None:
        self._strings = strings
        self._arguments = arguments
        self._jumping = survey.jumping
        self._who = {
            thread: f'"pid":{cast.pids[thread]},"tid":{tid}' for thread, tid in cast.tids.items()
        }
        ends = survey.end_args()
        self._end_args = (
            {} if ends is None else _grouped(ends.array("parent").tolist(), arguments.render(ends))
        )
        self._stacks: dict[int, list[tuple[int, float, str]]] = {
            thread: [] for thread in cast.tids
        }
        self.dropped: Counter[str] = Counter()

    def window(self, window: Mapping[str, Table]) -> list[str]:
        """The events of a window, as JSON objects."""
        args = window.get("args")
        members = _by_offset(args, self._arguments.render)
        offsets: list[I64] = []
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
                offsets.append(table.array("offset"))
                items += make(table, members)
        if args is not None:
            self._count_numberless(args, window.get("counters"))
        if not items:
            return []
        order = np.argsort(np.concatenate(offsets), kind="stable")
        return self._placed(items[place] for place in order.tolist())

    def rest(self) -> list[str]:
        """The ends that are still to be written."""
        return [
            text for stack in self._stacks.values() for _, _, text in reversed(stack) if text
        ]

    def _placed(self, items: Iterable[Item]) -> list[str]:
        out: list[str] = []
        put = out.append
        stacks = self._stacks
        for item in items:
            what = item[0]
            if what == _SLICE:
                _, thread, parent, row, end, begin, finish = item
                stack = stacks[thread]
                while stack and stack[-1][0] != parent:
                    text = stack.pop()[2]
                    if text:
                        put(text)
                put(begin)
                stack.append((row, end, finish))
                continue
            if what == _ON_THREAD:
                stack, now = stacks[item[1]], item[2]
                while stack and stack[-1][1] <= now:
                    text = stack.pop()[2]
                    if text:
                        put(text)
            elif what == _FLOW:
                stack, row = stacks[item[1]], item[2]
                if any(entry[0] == row for entry in stack):
                    while stack[-1][0] != row:
                        text = stack.pop()[2]
                        if text:
                            put(text)
            put(item[-1])
        return out

    def _heads(self, table: Table) -> list[str]:
        """The beginning that every event has, without its bracket's end."""
        who = self._who
        return [
            f'{{"cat":{category},"name":{name},"ts":{ts},{who[thread]}'
            for category, name, ts, thread in zip(
                self._strings.of(table, "category"),
                self._strings.of(table, "name"),
                _us(table.array("ts")),
                table.array("thread").tolist(),
                strict=True,
            )
        ]

    def _slices(self, table: Table, members: Members) -> list[Item]:
        ts, dur = table.array("ts"), table.array("dur")
        ends = ts + np.maximum(dur, 0)
        items: list[Item] = []
        for head, thread, row, parent, kind, number, length, finish, when, offset, tail in zip(
            self._heads(table),
            table.array("thread").tolist(),
            table.array("row").tolist(),
            table.array("parent").tolist(),
            table.array("kind").tolist(),
            table.array("id").tolist(),
            dur.tolist(),
            ends.tolist(),
            _us(ends),
            table.array("offset").tolist(),
            self._tails(table),
            strict=True,
        ):
            args = _object(members.get(offset, ()))
            if kind == ASYNC:
                text = f'{head},"ph":"b","id":{number}{args}}}'
                if length != NEVER:
                    text += f',\n{tail(when)},"ph":"e","id":{number}{self._end(row)}}}'
                items.append((_ALONE, text))
            elif kind == COMPLETE or (length != NEVER and thread in self._jumping):
                if length == NEVER:
                    self.dropped["ends of complete events that lie before their begins"] += 1
                    length, finish = 0, NS_MAX
                if self._end_args and row in self._end_args:
                    args = _object([*members.get(offset, ()), *self._end_args[row]])
                text = f'{head},"ph":"X","dur":{length // 1000}.{length % 1000:03d}{args}}}'
                if thread in self._jumping:
                    items.append((_ALONE, text))
                else:
                    items.append((_SLICE, thread, parent, row, finish, text, ""))
            elif length == NEVER:
                text = f'{head},"ph":"B"{args}}}'
                if thread in self._jumping:
                    items.append((_ALONE, text))
                else:
                    items.append((_SLICE, thread, parent, row, math.inf, text, ""))
            else:
                close = f'{tail(when)},"ph":"E"{self._end(row)}}}'
                text = f'{head},"ph":"B"{args}}}'
                items.append((_SLICE, thread, parent, row, finish, text, close))
        return items

    def _tails(self, table: Table) -> list[Callable[[str], str]]:
        """Per slice: what makes the beginning of its end event of a time."""
        who = self._who

        def maker(category: str, name: str, thread: int) -> Callable[[str], str]:
            return lambda ts: f'{{"cat":{category},"name":{name},"ts":{ts},{who[thread]}'

        return [
            maker(category, name, thread)
            for category, name, thread in zip(
                self._strings.of(table, "category"),
                self._strings.of(table, "name"),
                table.array("thread").tolist(),
                strict=True,
            )
        ]

    def _end(self, row: int) -> str:
        return _object(self._end_args[row]) if row in self._end_args else ""
