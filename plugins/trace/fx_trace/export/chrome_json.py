"""The exporter `json`: Chrome JSON, as trace2json writes it, with ftrace's lines of scheduling."""

from __future__ import annotations

import base64
import re
import struct
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from fx_trace.export.events import (
    ASYNC,
    ASYNC_SCOPE,
    COMPLETE,
    KEPT,
    LEGACY,
    NEVER,
    WAKEUP,
    EventMaker,
    Made,
    firsts,
)
from fx_trace.export.first_pass import (
    TIMED,
    FirstPass,
    KernelNames,
    ThreadNames,
    dropped_records,
    refusal,
)
from fx_trace.export.nesting import ALONE, ENDLESS, ON_THREAD, SLICE, Nesting
from fx_trace.export.windows import last_offset, windows
from fx_trace.format import ArgType, BlobType, SchedulingType
from fxframework.io.sink import Sink
from fxframework.kernels.parts import HEX, MARK, MICROS, NATURAL, SECONDS, SIGNED, TEXT
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.export import BEFORE_ZERO, LARGE_IDS, LARGEST_EXACT, Export
from fxframework.kit.in_time import Events, InTime
from fxframework.kit.row_texts import (
    Form,
    Lines,
    Members,
    Numbered,
    groups,
    json_string,
    repeated,
    value_forms,
)
from fxframework.model.capture import Capture
from fxframework.model.schema import TABLE_CODES
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

__all__ = ["HEADER", "JsonExport", "SchedLines"]

HEADER = "# tracer: nop\n"
"""The first line, by which Perfetto recognises the text."""
STATES = {2: "T", 3: "S", 4: "Z", 5: "X"}
"""ftrace's letters for thread states at a switch; other states are runnable."""
RUNNABLE = "R"
SWITCHED = ("ts", "cpu", "prev", "next", "prev_state", "prev_priority", "next_priority")
"""Columns of ``sched`` in lines."""
UNFIT = re.compile(r"[\s\x00-\x1f\x7f]")
"""Characters that would end a name in a line."""
SPACE = "\N{NO-BREAK SPACE}"
TID_BITS = 0xFFFF_FFFF
"""Bits of an id that Perfetto keeps."""
UNKNOWN_WAKER = f"<...>-{TID_BITS} (-----"
"""The thread of a wakeup whose waker is not recorded: ftrace has no line without a thread."""


class SchedLines:
    """Renders rows of ``sched`` as lines of ftrace; ``left_out`` counts rows without a line."""

    def __init__(self, tasks: ThreadNames, names: KernelNames) -> None:
        self.left_out = 0
        """Rows before time 0, which ftrace cannot express."""
        templates = Templates(b"", b"", b"", width=1)
        self._lines = Lines(templates)

        def comm(thread: int) -> str:
            pid, tid = tasks.pids[thread], tasks.tids[thread]
            name = names.threads.get((pid, tid)) or tasks.thread_names.get(thread)
            return orjson.dumps(_comm(name, tid))[1:-1].decode()

        def pid(thread: int) -> str:
            return str(tasks.pids[thread] & TID_BITS or "-----")

        by_tid = {tasks.tids[thread]: thread for thread in tasks.ids}

        def waker(tid: int) -> str:
            if not tid:
                return UNKNOWN_WAKER
            if tid not in by_tid:
                return f"<...>-{tid & TID_BITS} (-----"
            return f"{comm(by_tid[tid])}-{tid & TID_BITS} ({pid(by_tid[tid])}"

        self._waker = Numbered(templates, waker, sparse=True)
        self._comms = Numbered(templates, comm)
        self._tids = Numbered(templates, lambda thread: str(tasks.tids[thread] & TID_BITS))
        self._pids = Numbered(templates, pid)
        self._cpus = Numbered(templates, "{:03d}".format)
        self._states = Numbered(templates, lambda state: STATES.get(state, RUNNABLE))

    def of(self, sched: Table) -> bytes:
        """Return a line for each switch and wakeup, as in a JSON string.

        Perfetto reads the seconds as a double and truncates to nanoseconds, so half of one is
        added. Times are exact below 26 days.
        """
        self._lines.templates.forget(KEPT)
        sound = sched.array("ts") >= 0
        self.left_out += int(np.count_nonzero(~sound))
        sched = sched.select(sound)
        for wakes, rows in groups(sched.array("kind") == SchedulingType.THREAD_WAKEUP):
            some = {name: sched.array(name)[rows] for name in SWITCHED}
            cpu = self._cpus(some["cpu"])
            when: list[Cell] = [b") [", cpu, b"] .... ", (SECONDS, some["ts"]), b"5: "]
            comm, tid = self._comms(some["next"]), self._tids(some["next"])
            left, entered = (
                (NATURAL, np.maximum(some[name], 0)) for name in ("prev_priority", "next_priority")
            )
            if wakes:
                waker = self._waker(sched.array("waker")[rows])
                line: list[Cell] = [waker, *when, b"sched_waking: comm=", comm]
                line += [b" pid=", tid, b" prio=", entered, b" target_cpu=", cpu]
            else:
                old_comm, old_tid = self._comms(some["prev"]), self._tids(some["prev"])
                line = [old_comm, b"-", old_tid, b" (", self._pids(some["prev"]), *when]
                line += [b"sched_switch: prev_comm=", old_comm, b" prev_pid=", old_tid]
                line += [b" prev_prio=", left, b" prev_state=", self._states(some["prev_state"])]
                line += [b" ==> next_comm=", comm, b" next_pid=", tid, b" next_prio=", entered]
            self._lines.put(rows, *line, rb"\n")
        return self._lines.joined()[0].data.tobytes()


def _comm(name: str | None, tid: int) -> str:
    """Return a name valid in ftrace's lines: not empty, without blanks and equal signs."""
    text = UNFIT.sub(SPACE, name or ("swapper" if not tid else f"Thread {tid}"))
    return text.replace("=", "_")


I64 = NDArray[np.int64]
COUNTERS = TABLE_CODES["counters"]
NONE = -1
"""Row of no slice."""
NOT_GIVEN = -1
"""A priority that is not recorded."""
FIDL_CATEGORY = "fidl:blob"


SYSTEM_KEY = r"systemTrac\u0065Events"
"""``systemTraceEvents``, spelled with an escape that JSON parsers decode.

Perfetto looks for the plain spelling, expects lines of ftrace in a string behind it, and refuses
the whole file for the object that Fuchsia's tools write and read. It passes over a spelling with an
escape. Of the two members, which then have one name, other parsers take the last: the object.
"""
FTRACE_KEY = "systemTraceEvents"
_PHASES = ('"s"', '"t"', '"f","bp":"e"')
_SCOPE_LETTERS = {0: "t", 1: "p", 2: "g"}


def _us(ns: int) -> str:
    """Return nanoseconds as the text of exact microseconds."""
    return f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"


class JsonExport(Export):
    """Writes Chrome JSON as Fuchsia's trace2json does, for one capture.

    Events are sorted by time, except ends: an E precedes the first event of its thread outside its
    slice, so that a reader with a stable sort by time reconstructs the nesting of the tables.
    """

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._sched = options.get("sched", "both")
        self._comma = ""

    def write(self, capture: Capture) -> None:
        """Write the capture.

        Raises WriteRefusedError for a second capture, and if there is nothing to write.
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
        self._dropped[BEFORE_ZERO] = survey.before_zero
        tasks = ThreadNames(capture)
        self._dropped[LARGE_IDS] = sum(
            max(tasks.pids[thread], tasks.own_tids[thread]) > LARGEST_EXACT for thread in tasks.ids
        )
        self._sink.write(b'{"displayTimeUnit":"ns","traceEvents":[')
        self._put(names.metadata(tasks))
        events = _JsonEvents(capture.strings, tasks, survey)
        nesting = Nesting(events.threads, comma=bool(self._comma))

        def emit(ready: Events) -> None:
            self._sink.write(nesting.texts(ready).data)

        with InTime(emit) as ordered:
            for window in windows(capture, (*TIMED, "args")):
                ordered.add(events.window(window), survey.earliest_after(last_offset(window)))
        for ends in nesting.rest():
            self._sink.write(ends.data)
        self._comma = ",\n" if nesting.comma else ""
        self._put(self._fidl_blobs(capture))
        self._sink.write(b"]")
        if self._sched != "fuchsia" and survey.switches:
            self._put_ftrace(capture, SchedLines(tasks, names))
        if self._sched != "ftrace":
            self._put_system(capture, names, events)
        branches = self._last_branches(capture)
        if branches:
            self._sink.write(b',"lastBranch":' + orjson.dumps({"records": branches}))
        self._sink.write(b"}\n")
        self._dropped += events.dropped

    def _put(self, items: list[str]) -> None:
        if items:
            self._sink.write((self._comma + ",\n".join(items)).encode())
            self._comma = ",\n"

    def _put_ftrace(self, capture: Capture, lines: SchedLines) -> None:
        """Write context switches for Perfetto, if there are any."""
        head = f',"{FTRACE_KEY}":"{json_string(HEADER)[1:-1]}'.encode()
        for batch in capture.batches("sched"):
            self._sink.write(head + lines.of(batch))
            head = b""
        if not head:
            self._sink.write(b'"')
        self._dropped["context switches before time 0, for Perfetto"] = lines.left_out

    def _put_system(self, capture: Capture, names: KernelNames, events: _JsonEvents) -> None:
        """Write names and context switches for Fuchsia's tools."""
        self._sink.write(b',"' + SYSTEM_KEY.encode() + b'":{"type":"fuchsia","events":[')
        self._comma = ""
        self._put(names.system())
        for window in windows(capture, ("sched", "args")):
            if "sched" in window:
                text = events.switches(window).text().data
                self._sink.write(text.data if self._comma else text[len(BETWEEN) :].data)
                self._comma = ",\n"
        self._sink.write(b"]}")

    def _fidl_blobs(self, capture: Capture) -> list[str]:
        """Return the large blobs with FIDL messages, the only ones that trace2json writes."""
        if not self._dropped["large blobs"]:
            return []
        out = []
        for record in capture.checked_records():
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
                f'"ts":{_us(ns)},"pid":{pid},"tid":{tid},"blob":"{payload}"}}'
            )
        return out

    def _last_branches(self, capture: Capture) -> list[dict[str, Any]]:
        """Return the complete blobs of CPUs' last branches (perfmon's LastBranchRecordBlob)."""
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


BETWEEN = b",\n"
"""Separator of events."""


class _JsonEvents(EventMaker):
    """Renders rows as trace events, with the columns that ``Nesting`` needs to order them."""

    around = b',"args":{', b",", b"}"
    equals = ":"
    places = 6

    def __init__(self, pool: StringPool, tasks: ThreadNames, survey: FirstPass) -> None:
        self._pool = pool
        super().__init__(survey, self._json)
        self.makers = {
            "slices": self._slices,
            "instants": self._instants,
            "flows": self._flows,
            "logs": self._logs,
            "counters": self._counters,
        }
        self.dropped: Counter[str] = Counter()
        self.threads = len(tasks.tids)
        """Number of threads, including one for events without a thread."""
        self._tid = self.numbered(lambda thread: f'"tid":{tasks.tids[thread]}')
        self._who = self.numbered(
            lambda thread: f'"pid":{tasks.pids[thread]},"tid":{tasks.own_tids[thread]}'
        )
        self._letters = self.numbered(lambda scope: _SCOPE_LETTERS.get(scope, "t"))
        self._phases = self.numbered(lambda phase: _PHASES[phase])

    def _json(self, code: int) -> str:
        """Return the string of a code as JSON."""
        return "null" if code < 0 else json_string(self._pool[code])

    # --- Arguments -------------------------------------------------------------------------------

    def forms(self) -> dict[int, Form]:
        """Return the form of the values of each argument type."""

        def blob(code: int) -> str:
            return f'"{base64.b64encode(self._pool.bytes_of(code)).decode()}"'

        forms = value_forms(self.templates, string=self._json, blob=blob)
        return forms | {
            ArgType.UINT64: Form(self._uint64),
            ArgType.POINTER: Form(lambda args, rows: (HEX, args["uint"][rows]), '"0x', '"'),
            ArgType.KOID: Form(forms[ArgType.KOID].value, '"#', '"'),
        }

    def _uint64(self, args: Table, rows: I64) -> Cell:
        """Render unsigned values, large ones of counters with an exponent: Perfetto reads int64."""
        values = args.array("uint")[rows]
        large = (values >= 1 << 63) & (args.array("table")[rows] == COUNTERS)
        if not large.any():
            return NATURAL, values
        texts = [
            f"{text[0]}.{text[1:]}e{len(text) - 1}" if has_exponent else text
            for text, has_exponent in zip(map(str, values.tolist()), large.tolist(), strict=True)
        ]
        return TEXT, self.templates.texts([text.encode() for text in texts])

    def member_columns(self, args: Table, keys: I64) -> list[I64]:
        """Return arguments as members; repeated names of an event get ``#2`` and so on."""
        columns = super().member_columns(args, keys)
        codes = args.array("name")
        for row, times in repeated(keys, self.names(codes)[1]):
            before = self.arguments.forms[int(args.array("type")[row])].before
            text = f'{self._json(int(codes[row]))[:-1]}#{times}":{before}'
            columns[0][row] = self.templates.text(text.encode())
        return columns

    def members(self, window: Mapping[str, Table]) -> Members:
        """Render the arguments of a window, and count those that cannot be written."""
        if "args" in window:
            args, counters = window["args"], window.get("counters")
            unknown = len(args) - int(np.count_nonzero(self.known(args)))
            self.dropped["arguments of unknown types"] += unknown
            # Counters without a numeric argument have no row, hence no time.
            offsets = args.array("offset")[args.array("table") == COUNTERS]
            offsets = offsets[firsts(offsets)]
            have = 0 if counters is None else firsts(counters.array("offset")).size
            self.dropped["counters without a number"] += offsets.size - have
        return super().members(window)

    # --- Events ----------------------------------------------------------------------------------

    def window(self, window: Mapping[str, Table]) -> Events:
        """Return the events of a window, in file order, each async end behind its begin."""
        events = super().window(window)
        kinds, *_, until, tails = events.places
        rows = np.flatnonzero((kinds == ALONE) & (tails > 0))
        if not rows.size:
            return events
        starts, sizes, tails = events.starts, events.sizes, tails[rows]
        sizes[rows] -= tails
        return Events(
            np.insert(events.times, rows + 1, until[rows]),
            events.data,
            np.insert(starts, rows + 1, starts[rows] + sizes[rows]),
            np.insert(sizes, rows + 1, tails),
            np.insert(events.places, rows + 1, events.places[:, rows], axis=1),
        )

    def _head(self, table: Table, rows: I64, ts: I64) -> list[Cell]:
        """Return the parts for the members that all events have."""
        return [
            b'{"cat":',
            self.names(table.array("category")[rows]),
            b',"name":',
            self.names(table.array("name")[rows]),
            b',"ts":',
            (MICROS, ts[rows]),
            b",",
            self._who(table.array("thread")[rows]),
        ]

    def _slices(self, table: Table, made: Made, own: Members) -> None:
        ts, dur, kind = table.array("ts"), table.array("dur"), table.array("kind")
        ends = ts + np.maximum(dur, 0)
        thread, parent, row = (table.array(name) for name in ("thread", "parent", "row"))
        places = (np.full(ts.size, SLICE), thread + 1, parent, row, ends, 0)
        for place, column in enumerate(places):
            made.places[place] = column
        for group, rows in groups(2 * kind.astype(np.int64) + (dur == NEVER)):
            of_kind, unclosed = divmod(group, 2)
            closed = not unclosed
            begin, finish = self._head(table, rows, ts), self._head(table, rows, ends)
            mine = own.of(table.array("offset")[rows])
            later = self.ends.of(row[rows])
            if of_kind == ASYNC:
                number: Cell = (NATURAL, table.array("id")[rows])
                finish += [b',"ph":"e","id":', number, *later, b"}"]
                self._begins(made, rows, [*begin, b',"ph":"b","id":', number, *mine, b"}"],
                             finish if closed else [])  # fmt: skip
                made.places[0, rows] = ALONE
            elif of_kind == COMPLETE and closed:
                made.write(rows, *begin, b',"ph":"X","dur":', (MICROS, dur[rows]), *mine, b"}")
            else:
                self._begins(made, rows, [*begin, b',"ph":"B"', *mine, b"}"],
                             [*finish, b',"ph":"E"', *later, b"}"] if closed else [])  # fmt: skip

    def _begins(self, made: Made, rows: I64, begin: list[Cell], end: list[Cell]) -> None:
        """Render begins of slices, each followed by the text of its end."""
        if not end:
            made.write(rows, *begin)
            made.places[4, rows] = ENDLESS
            return
        made.write(rows, *begin, (MARK, 0), *end)
        made.places[5, rows] = made.ends[rows] - made.templates.marks

    def _instants(self, table: Table, made: Made, own: Members) -> None:
        scope, ts = table.array("scope"), table.array("ts")
        self._on_thread(made, table.array("thread"), np.full(ts.size, NONE))
        for is_async, rows in groups(scope == ASYNC_SCOPE):
            what: list[Cell] = [b',"ph":"i","s":"', self._letters(scope[rows]), b'"']
            if is_async:
                what = [b',"ph":"n","id":', (NATURAL, table.array("id")[rows])]
                made.places[0, rows] = ALONE
            members = own.of(table.array("offset")[rows])
            made.write(rows, *self._head(table, rows, ts), *what, *members, b"}")

    def _flows(self, table: Table, made: Made, own: Members) -> None:
        rows = np.arange(len(table))
        self._on_thread(made, table.array("thread"), table.array("slice"))
        phase, number = self._phases(table.array("phase")), (NATURAL, table.array("id"))
        what: list[Cell] = [b',"ph":', phase, b',"id":"', number, b'"']
        head = self._head(table, rows, table.array("ts"))
        made.write(rows, *head, *what, *own.of(table.array("offset")), b"}")

    @staticmethod
    def _on_thread(made: Made, threads: I64, slices: I64) -> None:
        made.places[0] = ON_THREAD
        made.places[1] = threads + 1
        made.places[3] = slices

    def _counters(self, table: Table, made: Made, own: Members) -> None:
        number = table.array("id")
        made.places[0] = ALONE
        for shown, rows in groups(number != 0):
            id: list[Cell] = [b',"id":"0x', (HEX, number[rows]), b'"'] if shown else []
            head = self._head(table, rows, table.array("ts"))
            members = own.of(table.array("offset")[rows])
            made.write(rows, *head, b',"ph":"C"', *id, *members, b"}")

    def _logs(self, table: Table, made: Made, own: Members) -> None:
        del own
        made.places[0] = ALONE
        texts = [
            f',"pid":{pid},"tid":{tid},"ph":"i","s":"g",'
            f'"args":{{"message":{json_string(message or "")}}}}}'
            for (pid, tid), message in zip(
                table.tuples("pid", "tid"), table.texts("message"), strict=True
            )
        ]
        numbers = self.templates.texts([text.encode() for text in texts])
        head = b'{"cat":"log","name":"log","ts":'
        rows = np.arange(len(table))
        made.write(rows, head, (MICROS, table.array("ts")), (TEXT, numbers))

    # --- Context switches ------------------------------------------------------------------------

    def switches(self, window: Mapping[str, Table]) -> Events:
        """Return the context switches and wakeups of a window, with ``BETWEEN`` before each."""
        self.templates.forget(KEPT)
        own = super().members(window)
        sched = window["sched"]
        made = Made.of(self.templates, len(sched), 0)
        names = ("kind", "prev_priority", "next_priority")
        kind, left, entered = (sched.array(name).astype(np.int64) for name in names)
        given = 2 * (left != NOT_GIVEN) + (entered != NOT_GIVEN)
        for group, rows in groups(4 * kind + given):
            of_kind, ranked = divmod(group, 4)
            legacy = of_kind == LEGACY
            who = self._who if legacy else self._tid
            before, after = (who(sched.array(name)[rows]) for name in ("prev", "next"))
            ranks: list[list[Cell]] = [
                [b',"prio":', (SIGNED, rank[rows])] if legacy or ranked & bit else []
                for rank, bit in ((left, 2), (entered, 1))
            ]
            head: list[Cell] = [b',"ts":', (MICROS, sched.array("ts")[rows])]
            head += [b',"cpu":', (SIGNED, sched.array("cpu")[rows])]
            extra = own.of(sched.array("offset")[rows])
            if of_kind == WAKEUP:
                what: list[Cell] = [BETWEEN, b'{"ph":"w"', *head, b",", after, *ranks[1]]
            else:
                state: Cell = (SIGNED, sched.array("prev_state")[rows])
                out: list[Cell] = [b',"out":{', before, b',"state":', state, *ranks[0]]
                what = [BETWEEN, b'{"ph":"k"', *head, *out, b'},"in":{', after, *ranks[1], b"}"]
            made.write(rows, *what, *extra, b"}")
        sizes = made.ends - made.starts
        return Events(sched.array("ts"), self.templates.letters(), made.starts, sizes, made.places)
