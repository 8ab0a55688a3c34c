"""The exporter `json`: Chrome JSON, as trace2json writes it, with ftrace's lines of scheduling."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson

from fx_trace.export.events import NEVER, TEXT_BYTES, EventMaker, RowEvents, firsts
from fx_trace.export.first_pass import (
    NOTHING,
    TIMED,
    FirstPass,
    KernelNames,
    ThreadNames,
    dropped_records,
)
from fx_trace.export.nesting import (
    ALONE,
    ENDLESS,
    ON_THREAD,
    PARENT,
    PLACES,
    ROW,
    SLICE,
    TAIL,
    THREAD,
    UNTIL,
    WHAT,
    Nesting,
)
from fx_trace.export.windows import last_offset, windows
from fx_trace.kinds import ArgType, BlobType, SchedulingType
from fx_trace.meaning import ASYNC_SCOPE
from fx_trace.records import LastBranches
from fxframework.io.sink import Sink
from fxframework.kernels.arrays import I64
from fxframework.kernels.parts import HEX, MARK, MICROS, NATURAL, SECONDS, SIGNED, TEXT
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.export import BEFORE_ZERO, LARGE_IDS, LARGEST_EXACT, Export, empty_refusal
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
from fxframework.model.schema import ASYNC, COMPLETE, SCOPES, TABLE_CODES
from fxframework.model.strings import StringPool
from fxframework.model.table import Table
from fxframework.wire.cursor import ShortError
from fxframework.wire.state import State

HEADER = "# tracer: nop\n"
"""The first line, by which Perfetto recognises the text."""
STATES = {2: "T", 3: "S", 4: "Z", 5: "X"}
"""ftrace's letters for thread states at a switch; other states are runnable."""
RUNNABLE = "R"
LINE_COLUMNS = ("ts", "cpu", "prev", "next", "prev_state", "prev_priority", "next_priority")
"""Columns of `sched` that are in lines."""
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
            tid = tasks.tids[thread]
            kernel_name = names.threads.get((tasks.pids[thread], tid))
            name = kernel_name or tasks.thread_names.get(thread)
            return orjson.dumps(_comm(name, tid))[1:-1].decode()

        def pid(thread: int) -> str:
            return str(tasks.pids[thread] & TID_BITS or "-----")

        by_tid = {tasks.tids[thread]: thread for thread in tasks.ids}

        def waker(tid: int) -> str:
            if not tid:
                return UNKNOWN_WAKER
            if tid not in by_tid:
                return f"<...>-{tid & TID_BITS} (-----"
            thread = by_tid[tid]
            return f"{comm(thread)}-{tid & TID_BITS} ({pid(thread)}"

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
        self._lines.templates.forget(TEXT_BYTES)
        has_line = sched.array("ts") >= 0
        self.left_out += int(np.count_nonzero(~has_line))
        sched = sched.select(has_line)
        for is_wakeup, rows in groups(sched.array("kind") == SchedulingType.THREAD_WAKEUP):
            columns = {name: sched.array(name)[rows] for name in LINE_COLUMNS}
            cpu = self._cpus(columns["cpu"])
            seconds = (SECONDS, columns["ts"])
            when: list[Cell] = [b") [", cpu, b"] .... ", seconds, b"5: "]
            comm = self._comms(columns["next"])
            tid = self._tids(columns["next"])
            priority = (NATURAL, np.maximum(columns["next_priority"], 0))
            if is_wakeup:
                waker = self._waker(sched.array("waker")[rows])
                line: list[Cell] = [waker, *when, b"sched_waking: comm=", comm]
                line += [b" pid=", tid, b" prio=", priority, b" target_cpu=", cpu]
            else:
                prev_comm = self._comms(columns["prev"])
                prev_tid = self._tids(columns["prev"])
                prev_priority = (NATURAL, np.maximum(columns["prev_priority"], 0))
                prev_state = self._states(columns["prev_state"])
                prev_pid = self._pids(columns["prev"])
                line = [prev_comm, b"-", prev_tid, b" (", prev_pid, *when]
                line += [b"sched_switch: prev_comm=", prev_comm, b" prev_pid=", prev_tid]
                line += [b" prev_prio=", prev_priority, b" prev_state=", prev_state]
                line += [b" ==> next_comm=", comm, b" next_pid=", tid, b" next_prio=", priority]
            self._lines.put(rows, *line, rb"\n")
        return self._lines.joined()[0].data.tobytes()


def _comm(name: str | None, tid: int) -> str:
    """Return a name valid in ftrace's lines: not empty, without blanks and equal signs."""
    if not name:
        name = f"Thread {tid}" if tid else "swapper"
    return UNFIT.sub(SPACE, name).replace("=", "_")


COUNTERS = TABLE_CODES["counters"]
NO_SLICE = -1
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


def _us(ns: int) -> str:
    """Return nanoseconds as the text of exact microseconds."""
    sign = "-" if ns < 0 else ""
    whole_us, rest_ns = divmod(abs(ns), 1000)
    return f"{sign}{whole_us}.{rest_ns:03d}"


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
            raise empty_refusal(capture, NOTHING)
        self._dropped = dropped_records(capture, survey)
        self._dropped["annotations of pointers and koids"] = survey.annotated
        self._dropped["kernel objects other than processes and threads"] = names.others
        self._dropped[BEFORE_ZERO] = survey.before_zero
        tasks = ThreadNames(capture)
        for thread in tasks.ids:
            if max(tasks.pids[thread], tasks.own_tids[thread]) > LARGEST_EXACT:
                self._dropped[LARGE_IDS] += 1
        self._sink.write(b'{"displayTimeUnit":"ns","traceEvents":[')
        self._put(names.metadata(tasks))
        events = _JsonEvents(capture.strings, tasks, survey)
        nesting = Nesting(events.threads, comma=bool(self._comma))

        def emit(ready: Events) -> None:
            self._sink.write(nesting.texts(ready).data)

        # Events are written once no event of a later window can be earlier.
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
        header = json_string(HEADER)[1:-1]  # without quotes
        head = f',"{FTRACE_KEY}":"{header}'.encode()
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
                if not self._comma:  # each event has one before it
                    text = text[len(BETWEEN) :]
                self._sink.write(text.data)
                self._comma = ",\n"
        self._sink.write(b"]}")

    def _fidl_blobs(self, capture: Capture) -> list[str]:
        """Return the large blobs with FIDL messages, the only ones that trace2json writes."""
        if not self._dropped["large blobs"]:
            return []
        events: list[str] = []
        for record in capture.checked_records():
            if getattr(record, "category", None) != FIDL_CATEGORY:
                continue
            fields = record.to_json()
            ns = getattr(record, "ns", None)
            if fields["record"] != "large" or ns is None:
                continue
            pid, tid = 0, 0
            if isinstance(fields["thread"], list):
                pid, tid = fields["thread"]
            name = json_string(fields["name"])
            payload = bytes.fromhex(fields["payload_hex"])
            blob = base64.b64encode(payload).decode()
            self._dropped["large blobs"] -= 1
            head = f'{{"ph":"O","id":"","cat":"{FIDL_CATEGORY}","name":{name}'
            events.append(f'{head},"ts":{_us(ns)},"pid":{pid},"tid":{tid},"blob":"{blob}"}}')
        return events

    def _last_branches(self, capture: Capture) -> list[dict[str, Any]]:
        """Return the complete blobs of CPUs' last branches (perfmon's LastBranchRecordBlob)."""
        last_branches: list[dict[str, Any]] = []
        state = State(big=getattr(capture, "big_endian", False))
        for batch in capture.batches("blobs"):
            blobs = batch.select(batch.array("type") == BlobType.LAST_BRANCH)
            for start, length in blobs.array("data").tolist():
                payload = capture.source.read(start, length)
                try:
                    of_cpu, _ = LastBranches.unpack(memoryview(payload), 0, length, state)
                except ShortError:
                    continue
                branches = [
                    {"from": branch.origin, "to": branch.target, "info": branch.info}
                    for branch in of_cpu.branches
                ]
                last_branches.append(
                    {
                        "cpu": of_cpu.cpu,
                        "aspace": of_cpu.aspace,
                        "event_time": of_cpu.event_time,
                        "branches": branches,
                    }
                )
        self._dropped["blobs"] -= len(last_branches)
        return last_branches


BETWEEN = b",\n"
"""Separator of events."""


class _JsonEvents(EventMaker):
    """Renders rows as trace events, with the columns that ``Nesting`` needs to order them."""

    around = b',"args":{', b",", b"}"
    equals = ":"
    places = PLACES

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
        self._tids = self.numbered(lambda thread: f'"tid":{tasks.tids[thread]}')
        self._threads = self.numbered(
            lambda thread: f'"pid":{tasks.pids[thread]},"tid":{tasks.own_tids[thread]}'
        )
        self._scopes = self.numbered(lambda scope: SCOPES.get(scope, SCOPES[0])[0])
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
        is_of_counter = args.array("table")[rows] == COUNTERS
        is_large = (values >= 1 << 63) & is_of_counter
        if not is_large.any():
            return NATURAL, values
        texts = [str(value) for value in values.tolist()]
        for place in np.flatnonzero(is_large).tolist():
            digits = texts[place]
            exponent = len(digits) - 1
            texts[place] = f"{digits[0]}.{digits[1:]}e{exponent}"
        return TEXT, self.templates.texts([text.encode() for text in texts])

    def member_columns(self, args: Table, keys: I64) -> list[I64]:
        """Return arguments as members; repeated names of an event get ``#2`` and so on."""
        columns = super().member_columns(args, keys)
        codes = args.array("name")
        for row, times in repeated(keys, self.names(codes)[1]):
            type_number = int(args.array("type")[row])
            form = self.arguments.forms[type_number]
            name = self._json(int(codes[row]))[:-1]  # without the closing quote
            head = f'{name}#{times}":{form.before}'
            columns[0][row] = self.templates.text(head.encode())
        return columns

    def members(self, window: Mapping[str, Table]) -> Members:
        """Render the arguments of a window, and count those that cannot be written."""
        if "args" in window:
            args = window["args"]
            unknown = int(np.count_nonzero(~self.known(args)))
            self.dropped["arguments of unknown types"] += unknown
            # Counters without a numeric argument have no row, hence no time.
            is_of_counter = args.array("table") == COUNTERS
            record_count = firsts(args.array("offset")[is_of_counter]).size
            if "counters" in window:
                record_count -= firsts(window["counters"].array("offset")).size
            self.dropped["counters without a number"] += record_count
        return super().members(window)

    # --- Events ----------------------------------------------------------------------------------

    def window(self, window: Mapping[str, Table]) -> Events:
        """Return the events of a window, in file order, each async end behind its begin."""
        events = super().window(window)
        is_async = events.places[WHAT] == ALONE
        rows = np.flatnonzero(is_async & (events.places[TAIL] > 0))
        if not rows.size:
            return events
        # The text of an end is the last part of the text of its begin: they become two events.
        tails = events.places[TAIL, rows]
        starts = events.starts
        sizes = events.sizes
        sizes[rows] -= tails
        return Events(
            np.insert(events.times, rows + 1, events.places[UNTIL, rows]),
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
            self._threads(table.array("thread")[rows]),
        ]

    def _slices(self, table: Table, texts: RowEvents, members: Members) -> None:
        starts = table.array("ts")
        lengths = table.array("dur")
        ends = starts + np.maximum(lengths, 0)
        kinds = table.array("kind").astype(np.int64)
        is_open = lengths == NEVER
        texts.places[WHAT] = SLICE
        texts.places[THREAD] = table.array("thread") + 1
        texts.places[PARENT] = table.array("parent")
        texts.places[ROW] = table.array("row")
        texts.places[UNTIL] = ends
        texts.places[TAIL] = 0
        # Rows of a group are alike, as its first one is.
        for _, rows in groups(2 * kinds + is_open):
            kind = int(kinds[rows[0]])
            begin = self._head(table, rows, starts)
            arguments = members.of(table.array("offset")[rows])
            if kind == COMPLETE and not is_open[rows[0]]:
                length = (MICROS, lengths[rows])
                texts.write(rows, *begin, b',"ph":"X","dur":', length, *arguments, b"}")
                continue
            end = self._head(table, rows, ends)
            end_arguments = self.ends.of(table.array("row")[rows])
            if kind == ASYNC:
                texts.places[WHAT, rows] = ALONE
                number: Cell = (NATURAL, table.array("id")[rows])
                begin += [b',"ph":"b","id":', number, *arguments, b"}"]
                end += [b',"ph":"e","id":', number, *end_arguments, b"}"]
            else:
                begin += [b',"ph":"B"', *arguments, b"}"]
                end += [b',"ph":"E"', *end_arguments, b"}"]
            if is_open[rows[0]]:
                texts.write(rows, *begin)
                texts.places[UNTIL, rows] = ENDLESS
            else:
                texts.write(rows, *begin, (MARK, 0), *end)
                tail_bytes = texts.ends[rows] - texts.templates.marks
                texts.places[TAIL, rows] = tail_bytes

    def _instants(self, table: Table, texts: RowEvents, members: Members) -> None:
        scopes = table.array("scope")
        times = table.array("ts")
        no_slices = np.full(times.size, NO_SLICE)
        self._put_on_thread(texts, table.array("thread"), no_slices)
        for is_async, rows in groups(scopes == ASYNC_SCOPE):
            members_of_kind: list[Cell] = [b',"ph":"i","s":"', self._scopes(scopes[rows]), b'"']
            if is_async:
                members_of_kind = [b',"ph":"n","id":', (NATURAL, table.array("id")[rows])]
                texts.places[WHAT, rows] = ALONE
            arguments = members.of(table.array("offset")[rows])
            texts.write(rows, *self._head(table, rows, times), *members_of_kind, *arguments, b"}")

    def _flows(self, table: Table, texts: RowEvents, members: Members) -> None:
        rows = np.arange(len(table))
        self._put_on_thread(texts, table.array("thread"), table.array("slice"))
        phase = self._phases(table.array("phase"))
        phase_and_id: list[Cell] = [
            b',"ph":',
            phase,
            b',"id":"',
            (NATURAL, table.array("id")),
            b'"',
        ]
        head = self._head(table, rows, table.array("ts"))
        texts.write(rows, *head, *phase_and_id, *members.of(table.array("offset")), b"}")

    @staticmethod
    def _put_on_thread(texts: RowEvents, threads: I64, slices: I64) -> None:
        """Put events into slices of their threads, or into none (NO_SLICE)."""
        texts.places[WHAT] = ON_THREAD
        texts.places[THREAD] = threads + 1
        texts.places[ROW] = slices

    def _counters(self, table: Table, texts: RowEvents, members: Members) -> None:
        ids = table.array("id")
        texts.places[WHAT] = ALONE
        for has_id, rows in groups(ids != 0):
            id: list[Cell] = []
            if has_id:
                id = [b',"id":"0x', (HEX, ids[rows]), b'"']
            head = self._head(table, rows, table.array("ts"))
            arguments = members.of(table.array("offset")[rows])
            texts.write(rows, *head, b',"ph":"C"', *id, *arguments, b"}")

    def _logs(self, table: Table, texts: RowEvents, members: Members) -> None:
        del members
        texts.places[WHAT] = ALONE
        endings = []
        ids = table.tuples("pid", "tid")
        for (pid, tid), message in zip(ids, table.texts("message"), strict=True):
            arguments = f'{{"message":{json_string(message or "")}}}'
            ending = f',"pid":{pid},"tid":{tid},"ph":"i","s":"g","args":{arguments}}}'
            endings.append(ending.encode())
        numbers = self.templates.texts(endings)
        head = b'{"cat":"log","name":"log","ts":'
        rows = np.arange(len(table))
        times = (MICROS, table.array("ts"))
        texts.write(rows, head, times, (TEXT, numbers))

    # --- Context switches ------------------------------------------------------------------------

    def switches(self, window: Mapping[str, Table]) -> Events:
        """Return the context switches and wakeups of a window, with ``BETWEEN`` before each."""
        self.templates.forget(TEXT_BYTES)
        members = super().members(window)
        sched = window["sched"]
        texts = RowEvents.of(self.templates, len(sched), 0)
        kinds = sched.array("kind").astype(np.int64)
        has_prev = sched.array("prev_priority") != NOT_GIVEN
        has_next = sched.array("next_priority") != NOT_GIVEN
        # Rows of a group are alike, as its first one is.
        for _, rows in groups(4 * kinds + 2 * has_prev + has_next):
            kind = int(kinds[rows[0]])
            is_legacy = kind == SchedulingType.LEGACY_CONTEXT_SWITCH
            threads = self._threads if is_legacy else self._tids
            prev_priority: list[Cell] = []
            next_priority: list[Cell] = []
            if is_legacy or has_prev[rows[0]]:
                prev_priority = [b',"prio":', (SIGNED, sched.array("prev_priority")[rows])]
            if is_legacy or has_next[rows[0]]:
                next_priority = [b',"prio":', (SIGNED, sched.array("next_priority")[rows])]
            time = (MICROS, sched.array("ts")[rows])
            cpu = (SIGNED, sched.array("cpu")[rows])
            head: list[Cell] = [b',"ts":', time, b',"cpu":', cpu]
            next_thread = threads(sched.array("next")[rows])
            if kind == SchedulingType.THREAD_WAKEUP:
                event: list[Cell] = [b'{"ph":"w"', *head, b",", next_thread, *next_priority]
            else:
                prev_thread = threads(sched.array("prev")[rows])
                state: Cell = (SIGNED, sched.array("prev_state")[rows])
                event = [b'{"ph":"k"', *head, b',"out":{', prev_thread]
                event += [b',"state":', state, *prev_priority]
                event += [b'},"in":{', next_thread, *next_priority, b"}"]
            arguments = members.of(sched.array("offset")[rows])
            texts.write(rows, BETWEEN, *event, *arguments, b"}")
        sizes = texts.ends - texts.starts
        times = sched.array("ts")
        return Events(times, self.templates.letters(), texts.starts, sizes, texts.places)
