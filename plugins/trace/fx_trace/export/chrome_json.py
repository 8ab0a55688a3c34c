"""The exporter `json`: Chrome JSON as trace2json writes it."""

from __future__ import annotations

import base64
import math
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from fx_trace.export.first_pass import (
    ENDLESS,
    TIMED,
    FirstPass,
    KernelNames,
    ThreadNames,
    dropped_records,
    ends_of,
    refusal,
)
from fx_trace.export.items import (
    ASYNC,
    ASYNC_SCOPE,
    CODE,
    COMPLETE,
    LEGACY,
    NEVER,
    PLAIN_FORMS,
    REAL,
    UNSIGNED,
    WAKEUP,
    Forms,
    ItemMaker,
    argument_values,
)
from fx_trace.export.json_text import json_string
from fx_trace.export.sched_text import HEADER, SchedText
from fx_trace.export.time_order import InTime
from fx_trace.export.windows import Members, by_offset, last_offset, windows
from fx_trace.layout import ArgType, BlobType
from fxframework.io.sink import Sink
from fxframework.kit.export import Export
from fxframework.kit.memo import Memo
from fxframework.model.capture import Capture
from fxframework.model.schema import TABLE_CODES
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

__all__ = ["JsonExport"]

I64 = NDArray[np.int64]
COUNTERS = TABLE_CODES["counters"]
NONE = -1
"""Row of no slice."""
NOT_GIVEN = -1
"""Priority that no record gave."""
FIDL_CATEGORY = "fidl:blob"


SYSTEM_KEY = r"systemTrac\u0065Events"
"""``systemTraceEvents``, as every JSON parser reads it.

Perfetto looks for the plain spelling, expects lines of ftrace in a string behind it, and refuses
the whole file for the object that Fuchsia's tools write and read. It passes over a spelling with an
escape. Of the two members, which then have one name, other parsers take the last: the object.
"""
FTRACE_KEY = "systemTraceEvents"
_PHASES = ("s", "t", "f")
_SCOPE_LETTERS = {0: "t", 1: "p", 2: "g"}


def _size(item: Item) -> int:
    """Characters of an event."""
    return len(item[-1]) + (len(item[-2]) if item[0] == _SLICE else 0)


def _us(ns: I64) -> list[str]:
    """Nanoseconds as the text of exact microseconds."""
    if ns.size and int(ns.min()) < 0:
        return [
            f"{'-' if value < 0 else ''}{abs(value) // 1000}.{abs(value) % 1000:03d}"
            for value in ns.tolist()
        ]
    whole, part = np.divmod(ns, 1000)
    return [f"{w}.{p:03d}" for w, p in zip(whole.tolist(), part.tolist(), strict=True)]


class _JsonArgs:
    """Strings and arguments as JSON."""

    def __init__(self, pool: StringPool) -> None:
        self.texts: Memo[int, str] = Memo(
            lambda code: "null" if code < 0 else json_string(pool[code])
        )
        self._forms: Forms = {
            **PLAIN_FORMS,
            ArgType.DOUBLE: (REAL, _double),
            ArgType.STRING: (CODE, self.texts.__getitem__),
            ArgType.POINTER: (UNSIGNED, '"0x{:x}"'.format),
            ArgType.KOID: (UNSIGNED, '"#{}"'.format),
            ArgType.BLOB: (
                CODE,
                lambda code: f'"{base64.b64encode(pool.bytes_of(code)).decode()}"',
            ),
        }
        self.unknown = 0
        """Arguments of unknown types, which have no value to show."""

    def column(self, table: Table, name: str) -> list[str]:
        """A code column as JSON strings; null as ``null``."""
        return [self.texts[code] for code in table.array(name).tolist()]

    def render(self, args: Table) -> list[tuple[str, str] | None]:
        """Per row: name and value, as JSON."""
        values = list(argument_values(args, self._forms))
        self.unknown += values.count(None)
        return [
            None if value is None else (name, value)
            for name, value in zip(self.column(args, "name"), values, strict=True)
        ]


def _double(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    if math.isnan(value):
        return '"NaN"'
    return '"Infinity"' if value > 0 else '"-Infinity"'


def _object(members: Iterable[tuple[str, str] | None]) -> str:
    """``,"args":{…}``; a name that occurs again gets ``#2``, ``#3``, …; nothing for no members."""
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


class JsonExport(Export):
    """Writes Chrome JSON as Fuchsia's trace2json does, for one capture.

    Events come in order of time, but for ends: an E comes before the first event of its thread
    that is not in its slice, so that a reader who sorts by time, stably, nests as the tables do.
    """

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._sched = options.get("sched", "both")
        self._comma = ""

    def write(self, capture: Capture) -> None:
        """Write the one capture.

        Raises WriteRefusedError for a second one, and where there is nothing to write.
        """
        self._only_one_capture("Chrome JSON holds one capture")
        capture.scan()
        survey = FirstPass(capture)
        names = KernelNames(capture)
        if not survey.rows and not names:
            raise refusal(capture)
        self._dropped = dropped_records(capture, survey)
        self._dropped["annotations of pointers and koids"] = survey.annotated
        self._dropped["kernel objects other than processes and threads"] = names.others
        arguments = _JsonArgs(capture.strings)
        cast = ThreadNames(capture)
        self._sink.write(b'{"displayTimeUnit":"ns","traceEvents":[')
        self._put(names.metadata(cast))
        events = _JsonEvents(cast, arguments, survey)

        def emit(ready: list[Item]) -> None:
            self._put(events.placed(ready))

        with InTime(emit, orjson.dumps, orjson.loads, _size) as ordered:
            for window in windows(capture, (*TIMED, "args")):
                ordered.add(*events.window(window), survey.earliest_after(last_offset(window)))
        self._put(events.rest())
        self._put(self._fidl_blobs(capture))
        self._sink.write(b"]")
        if self._sched != "fuchsia":
            self._put_ftrace(capture, SchedText(cast, names))
        if self._sched != "ftrace":
            self._put_system(capture, cast, names, arguments)
        branches = self._last_branches(capture)
        if branches:
            self._sink.write(b',"lastBranch":' + orjson.dumps({"records": branches}))
        self._sink.write(b"}\n")
        self._dropped += events.dropped
        self._dropped["arguments of unknown types"] = arguments.unknown

    def _put(self, items: list[str]) -> None:
        if items:
            self._sink.write((self._comma + ",\n".join(items)).encode())
            self._comma = ",\n"

    def _put_ftrace(self, capture: Capture, text: SchedText) -> None:
        """Context switches for Perfetto, where there are any."""
        head = f',"{FTRACE_KEY}":"{json_string(HEADER)[1:-1]}'
        for batch in capture.batches("sched"):
            lines = json_string("".join(text.lines(batch)))[1:-1]
            self._sink.write((head + lines).encode())
            head = ""
        if not head:
            self._sink.write(b'"')
        self._dropped["context switches before time 0, for Perfetto"] = text.left_out

    def _put_system(
        self, capture: Capture, cast: ThreadNames, names: KernelNames, arguments: _JsonArgs
    ) -> None:
        """Names and context switches for Fuchsia's tools."""
        self._sink.write(b',"' + SYSTEM_KEY.encode() + b'":{"type":"fuchsia","events":[')
        self._comma = ""
        self._put(names.system())
        for window in windows(capture, ("sched", "args")):
            if "sched" in window:
                self._put(_sched_json(window["sched"], window.get("args"), cast, arguments))
        self._sink.write(b"]}")

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
                f'{{"ph":"O","id":"","cat":"{FIDL_CATEGORY}","name":{json_string(shown["name"])},'
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


_SLICE, _ON_THREAD, _ALONE = range(3)
_Open = tuple[int, int, str]
"""A slice that may enclose others: its row, when it ends, and the JSON of that end, if any."""
Item = tuple[Any, ...]
"""What it is (one of the three), then what its place among the others needs, then its JSON."""


class _JsonEvents(ItemMaker[Item]):
    """Rows as trace events, and their places."""

    def __init__(self, cast: ThreadNames, arguments: _JsonArgs, survey: FirstPass) -> None:
        self.makers = {
            "slices": self._slices,
            "instants": self._instants,
            "flows": self._flows,
            "logs": self._logs,
            "counters": self._counters,
        }
        self._arguments = arguments
        self.render = arguments.render  # type: ignore[method-assign]
        self._who = {
            thread: f'"pid":{cast.pids[thread]},"tid":{tid}' for thread, tid in cast.tids.items()
        }
        self._end_args = survey.end_args()
        self._stacks: dict[int, list[_Open]] = {thread: [] for thread in cast.tids}
        self.dropped: Counter[str] = Counter()

    def window(self, window: Mapping[str, Table]) -> tuple[I64, list[Item]]:
        """Times and events of a window, in file order."""
        if "args" in window:
            self._count_numberless(window["args"], window.get("counters"))
        return super().window(window)

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
                self._arguments.column(table, "category"),
                self._arguments.column(table, "name"),
                times,
                table.array("thread").tolist(),
                strict=True,
            )
        ]

    def _slices(self, table: Table, members: Members) -> list[Item]:
        ts, dur = table.array("ts"), table.array("dur")
        ends = ts + np.maximum(dur, 0)
        later_args = ends_of(self._end_args, table, self._arguments.render)
        items: list[Item] = []
        for begin, finish, (offset, row, parent, thread, kind, number), length, end in zip(
            self._heads(table, _us(ts)),
            self._heads(table, _us(ends)),
            table.tuples("offset", "row", "parent", "thread", "kind", "id"),
            dur.tolist(),
            ends.tolist(),
            strict=True,
        ):
            own = members.get(offset, [])
            later = later_args.get(row, [])
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
        for head, (offset, thread, ts, scope, number) in zip(
            self._heads(table, _us(table.array("ts"))),
            table.tuples("offset", "thread", "ts", "scope", "id"),
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
        for head, (offset, thread, ts, row, phase, number) in zip(
            self._heads(table, _us(table.array("ts"))),
            table.tuples("offset", "thread", "ts", "slice", "phase", "id"),
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
        for head, (offset, number) in zip(
            self._heads(table, _us(table.array("ts"))), table.tuples("offset", "id"), strict=True
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
        for ts, (pid, tid), message in zip(
            _us(table.array("ts")), table.tuples("pid", "tid"), table.texts("message"), strict=True
        ):
            head = f'{{"cat":"log","name":"log","ts":{ts},"pid":{pid},"tid":{tid},"ph":"i","s":"g"'
            items.append((_ALONE, f'{head},"args":{{"message":{json_string(message or "")}}}}}'))
        return items


def _over_int64(value: str) -> bool:
    return len(value) > 18 and value.isdecimal() and int(value) >> 63 > 0


def _sched_json(
    sched: Table, args: Table | None, cast: ThreadNames, arguments: _JsonArgs
) -> list[str]:
    """Context switches and wakeups as ``systemTraceEvents`` has them, with their arguments."""
    members = by_offset(args, arguments.render)
    out = []
    for offset, ts, (cpu, kind, before, after, state, left, entered) in zip(
        sched.array("offset").tolist(),
        _us(sched.array("ts")),
        sched.tuples("cpu", "kind", "prev", "next", "prev_state", "prev_priority", "next_priority"),
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
