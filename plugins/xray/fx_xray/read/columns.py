"""Events of XRay traces as columns: threads merged by time, some thousands at once.

``FdrLog`` and ``BasicLog`` frame the bytes of a trace once, and then give its events as often as
they are asked for; ``GivenLog`` gives events that somebody else has read.
"""

from __future__ import annotations

import abc
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_xray import layout
from fx_xray.read import scan as k
from fxframework.io import arena
from fxframework.io.jit import Kernel
from fxframework.io.limits import Limits
from fxframework.model.clock import NS_PER_SECOND

__all__ = [
    "BasicLog",
    "Blocks",
    "Events",
    "FdrLog",
    "GivenLog",
    "Log",
    "Matcher",
    "Rows",
    "to_ns",
    "to_spans",
]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
STEP = 1 << 16
"""Stretches and blocks for which room is made at once."""
WINDOW = 64 << 20
"""Bytes of a file that are framed before they are let go of."""
AT_ONCE = 1 << 15
"""Events that are decoded at once where they are not kept."""
FED = 1 << 12
"""Events that are decoded at once where they are matched at once."""
_BIAS = np.int64(k.SIGN)


class Events(NamedTuple):
    """Events in order of time: columns of shape (n,).

    Threads are merged by time; those of one thread stand in the order of its records.
    """

    kind: NDArray[np.uint8]
    """0 enter, 1 exit, 2 tail exit, 3 enter with argument, 4 argument of the call before in the
    thread, 5 custom event, 6 typed event."""
    function: NDArray[np.uint32]
    """Id of the function, of 4 that of its call; of 6 the type of event; else 0."""
    tsc: NDArray[np.uint64]
    """Time in ticks."""
    cpu: NDArray[np.uint16]
    """CPU number; 65535 not known."""
    thread: NDArray[np.int32]
    """Id of the thread."""
    offset: NDArray[np.int64]
    """Byte offset of the record in the file."""
    value: NDArray[np.uint64]
    """Of 4 the argument; of 5 and 6 the byte of the payloads at which theirs begins; else 0."""
    size: NDArray[np.int32]
    """Of 5 and 6 the bytes of the payload; of 4 -1 where it belongs to no call; else 0."""

    @classmethod
    def of(cls, raw: k.Events) -> Events:
        """The same columns as the kernels have them; nothing is copied."""
        return cls(
            **{
                **raw._asdict(),
                "tsc": raw.tsc.view(np.uint64),
                "value": raw.value.view(np.uint64),
            }
        )

    def raw(self) -> k.Events:
        """The same columns as the kernels take them; nothing is copied."""
        return k.Events(
            **{
                **self._asdict(),
                "tsc": self.tsc.view(np.int64),
                "value": self.value.view(np.int64),
            }
        )


_DTYPES: Mapping[str, Any] = {
    "kind": np.uint8,
    "function": np.uint32,
    "tsc": np.int64,
    "cpu": np.uint16,
    "thread": np.int32,
    "offset": np.int64,
    "value": np.int64,
    "size": np.int32,
}


@attrs.frozen
class Blocks:
    """Buffers in file order: columns of shape (n,)."""

    offset: I64
    nbytes: I64
    thread: NDArray[np.int32]
    """Id of the thread; -1 of a buffer without records."""
    seconds: I64
    micros: I64
    ticks: I64
    """Bits of the time of the first record."""
    records: I64


class Log(abc.ABC):
    """A trace that has been framed: who is in it, and its events.

    A subclass sets what is declared here when it is made.
    """

    pids: NDArray[np.uint64]
    tids: NDArray[np.uint64]
    """By thread id."""
    thread_offsets: I64
    """By thread id: where it is first mentioned."""
    payloads: U8
    """What ``value`` and ``size`` of custom and typed events are places in."""
    records: int
    """Records of the file."""
    kinds: dict[str, int]
    """Records of each kind, by the names of record JSON."""
    entries: int
    """Calls that are entered."""
    blocks: Blocks | None = None
    notes: k.Notes | None = None
    """What framing found."""
    nbytes: int
    """Bytes of the trace: how much work it is."""

    @abc.abstractmethod
    def chunks(self, room: int = AT_ONCE) -> Iterator[k.Events]:
        """All events, up to ``room`` at once. What is given holds until the next ones are."""

    def events(self, room: int = AT_ONCE) -> Iterator[Events]:
        """All events, up to ``room`` at once, to be kept."""
        for chunk in self.chunks(room):
            mine = k.Events(*(column.copy() for column in chunk))
            np.bitwise_and(mine.kind, k.BACK - 1, out=mine.kind)
            yield Events.of(mine)

    def feed(self, matcher: Matcher) -> None:
        """Let all events be matched, of which the matcher keeps the rows."""
        for chunk in self.chunks():
            matcher.add(chunk)


class GivenLog(Log):
    """Events that are given, whole, each thread's in the order of its records."""

    def __init__(
        self,
        events: Events,
        pids: NDArray[np.uint64],
        tids: NDArray[np.uint64],
        payloads: U8,
        *,
        records: int,
        kinds: dict[str, int],
        thread_offsets: I64 | None = None,
    ) -> None:
        self.pids, self.tids, self.payloads = pids, tids, payloads
        self.records, self.kinds = records, kinds
        self.thread_offsets = np.zeros(pids.size, np.int64)
        if thread_offsets is not None:
            self.thread_offsets = thread_offsets
        elif events.thread.size:
            threads, first = np.unique(events.thread, return_index=True)
            self.thread_offsets[threads] = events.offset[first]
        self.entries = int(
            np.count_nonzero((events.kind == k.ENTER) | (events.kind == k.ENTER_ARG))
        )
        self.nbytes = 32 * int(events.kind.size)
        order = merged_order(events)
        self._events = k.Events(*(column[order] for column in events.raw()))
        self._events.kind[_backward(self._events)] |= k.BACK

    def chunks(self, room: int = AT_ONCE) -> Iterator[k.Events]:
        """All events, up to ``room`` at once."""
        for at in range(0, self._events.kind.size, room):
            yield k.Events(*(column[at : at + room] for column in self._events))


def merged_order(events: Events) -> I64:
    """The order that merges threads by time, and keeps that of each thread; shape (n,)."""
    time = events.tsc.copy()
    order = np.argsort(events.thread, kind="stable")
    starts = np.flatnonzero(np.diff(events.thread[order], prepend=-1))
    for mine in np.split(order, starts[1:]):
        time[mine] = np.maximum.accumulate(time[mine])
    return order[np.argsort(time[order], kind="stable")]


def _backward(events: k.Events) -> I64:
    """Events of functions whose time is before that of the thread's last one."""
    calls = np.flatnonzero(events.kind < k.ARGUMENT)
    calls = calls[np.argsort(events.thread[calls], kind="stable")]
    time, thread = events.tsc[calls].view(np.uint64), events.thread[calls]
    back: I64 = calls[1:][(time[1:] < time[:-1]) & (thread[1:] == thread[:-1])]
    return back


# --- Calls ---------------------------------------------------------------------------------------

_SLICE_DTYPES: Mapping[str, Any] = {
    "offset": np.int64,
    "ticks": np.int64,
    "thread": np.int32,
    "function": np.uint32,
    "depth": np.int32,
    "parent": np.int64,
    "cpu": np.uint16,
    "entry": np.uint8,
}
_INSTANT_DTYPES: Mapping[str, Any] = {
    "offset": np.int64,
    "ticks": np.int64,
    "thread": np.int32,
    "kind": np.uint8,
    "function": np.uint32,
    "cpu": np.uint16,
}
_ARG_DTYPES: Mapping[str, Any] = {
    "offset": np.int64,
    "of_instant": np.uint8,
    "parent": np.int64,
    "name": np.int32,
    "value": np.int64,
    "size": np.int32,
}


@attrs.frozen
class Rows:
    """Raw columns of some rows of each table, and where they begin in the whole tables."""

    slices: k.Slices
    instants: k.Instants
    args: k.Args
    first: dict[str, int]


class Matcher:
    """Makes calls of the events of a log, from its first one on.

    ``spans`` are those that an earlier matcher of the same log filled. Where there are none, they
    are filled, and findings noted.
    """

    def __init__(self, log: Log, limits: Limits, spans: k.Spans | None = None) -> None:
        self._log = log
        self.notes = new_notes(limits.max_findings if spans is None else 1)
        self.spans = spans or k.Spans(
            _spilled(log.entries, np.int64), _spilled(log.entries, np.uint8)
        )
        threads = max(log.pids.size, 1)
        self._one = threads == 1
        scalars = np.zeros(k.MATCH_SCALARS, np.int64)
        scalars[k.M_FREE] = -1
        scalars[k.M_LOW], scalars[k.M_HIGH] = k.LATEST, k.SIGN
        scalars[k.M_AGAIN] = spans is not None
        scalars[k.M_MAX_DEPTH] = limits.max_depth or 1 << 62

        def by_thread(value: int) -> I64:
            return np.full(threads, value, np.int64)

        self.calls = k.Calls(
            nodes=np.zeros(0, np.int64),
            top=by_thread(-1),
            depth=by_thread(0),
            shallow=by_thread(-1),
            deep_key=np.zeros(16, np.int64),
            deep_open=np.zeros(16, np.int64),
            counts=np.zeros(min(COUNTED, max(16, log.nbytes // 16)), np.int64),
            count_key=np.zeros(16, np.int64),
            count_of=np.zeros(16, np.int64),
            scalars=scalars,
        )
        self._kernel = k.match.for_size(log.nbytes)
        self._refill = k.refill.for_size(log.nbytes)
        self._slices = k.Slices(*_empty(_SLICE_DTYPES, 0))
        self._instants = k.Instants(*_empty(_INSTANT_DTYPES, 0))
        self._args = k.Args(*_empty(_ARG_DTYPES, 0))

    @property
    def range(self) -> tuple[int, int] | None:
        """The least and the greatest time of an event so far, in ticks."""
        low, high = (int(self.calls.scalars[at]) - k.SIGN for at in (k.M_LOW, k.M_HIGH))
        return (low, high) if low <= high else None

    @property
    def unmatched_exits(self) -> int:
        """Exits of calls that were not open."""
        return int(self.calls.scalars[k.M_UNMATCHED])

    @property
    def unwound(self) -> int:
        """Calls that ended with the one around them."""
        return int(self.calls.scalars[k.M_UNWOUND])

    def add(self, events: k.Events) -> None:
        """Match these events too; their rows stay here until they are taken."""
        count = int(events.kind.size)
        if not count:
            return
        self._make_room(count)
        self._kernel(
            events, count, self.calls, self._slices, self.spans, self._instants, self._args,
            self.notes,
        )  # fmt: skip

    def exited(self) -> list[int]:
        """Functions with unmatched exits since rows were taken last."""
        rows = int(self.calls.scalars[k.M_INSTANTS])
        exits = self._instants.kind[:rows] < k.ARGUMENT
        found: list[int] = np.unique(self._instants.function[:rows][exits]).tolist()
        return found

    def run(self, kernel: Callable[..., int], count: int) -> None:
        """Let a kernel match all events of the log, ``count`` at once."""
        self.reserve()
        self._make_room(count)
        while kernel(self.calls, self._slices, self.spans, self._instants, self._args, self.notes):
            self._make_room(count)

    def beyond(self, bound: int) -> tuple[int, int] | None:
        """Of the rows since rows were taken last, those whose time is beyond ``bound`` ticks.

        Gives the least byte offset, and how many there are; None where there are none.
        """
        if self.range is None or self.range[1] <= bound:
            return None
        scalars = self.calls.scalars
        found = []
        for rows, at in ((self._slices, k.M_SLICES), (self._instants, k.M_INSTANTS)):
            count = int(scalars[at])
            late = rows.ticks[:count].view(np.uint64) > np.uint64(bound)
            found.append(rows.offset[:count][late])
        offsets = np.concatenate(found)
        return (int(offsets.min()), int(offsets.size)) if offsets.size else None

    def take(self) -> Rows:
        """The rows since the last time."""
        scalars = self.calls.scalars
        slices, instants, args = (int(scalars[at]) for at in (k.M_SLICES, k.M_INSTANTS, k.M_ARGS))
        rows = Rows(
            self._taken_slices(slices),
            k.Instants(*(column[:instants] for column in self._instants)),
            k.Args(*(column[:args] for column in self._args)),
            {
                "slices": int(scalars[k.M_FIRST_SLICE]),
                "instants": int(scalars[k.M_FIRST_INSTANT]),
                "args": int(scalars[k.M_FIRST_ARG]),
            },
        )
        self._drop(slices, instants, args)
        self._slices = k.Slices(*_empty(_SLICE_DTYPES, 0))
        self._instants = k.Instants(*_empty(_INSTANT_DTYPES, 0))
        self._args = k.Args(*_empty(_ARG_DTYPES, 0))
        return rows

    def _taken_slices(self, count: int) -> k.Slices:
        taken = k.Slices(*(column[:count] for column in self._slices))
        # The number of the only thread was left out.
        return taken._replace(thread=np.broadcast_to(np.int32(0), count)) if self._one else taken

    def forget(self) -> None:
        """Forget the rows since the last time, but for how many there were."""
        scalars = self.calls.scalars
        self._drop(*(int(scalars[at]) for at in (k.M_SLICES, k.M_INSTANTS, k.M_ARGS)))

    def _drop(self, slices: int, instants: int, args: int) -> None:
        scalars = self.calls.scalars
        scalars[k.M_FIRST_SLICE] += slices
        scalars[k.M_FIRST_INSTANT] += instants
        scalars[k.M_FIRST_ARG] += args
        scalars[k.M_SLICES] = scalars[k.M_INSTANTS] = scalars[k.M_ARGS] = 0

    def reserve(self) -> None:
        """Make room for all slices of the log at once."""
        left = self._log.entries - int(self.calls.scalars[k.M_FIRST_SLICE])
        self._slices = k.Slices(*_empty(_SLICE_DTYPES, left))
        if self._one:
            self._slices = self._slices._replace(thread=np.zeros(0, np.int32))

    def _make_room(self, count: int) -> None:
        """Room for what ``count`` events may make."""
        scalars, calls = self.calls.scalars, self.calls
        used = int(scalars[k.M_SLICES])
        left = self._log.entries - int(scalars[k.M_FIRST_SLICE])
        wanted = min(used + count, left)
        if self._slices.offset.size < wanted:
            size = min(max(wanted, 2 * used), left)
            self._slices = k.Slices(*(_resized(c, used, size) for c in self._slices))
            if self._one:
                self._slices = self._slices._replace(thread=np.zeros(0, np.int32))
        used = int(scalars[k.M_INSTANTS])
        if self._instants.offset.size < used + count:
            size = max(used + 2 * count, 3 * used // 2)
            self._instants = k.Instants(*(_resized(c, used, size) for c in self._instants))
        used = int(scalars[k.M_ARGS])
        if self._args.offset.size < used + 2 * count:
            size = max(used + 4 * count, 3 * used // 2)
            self._args = k.Args(*(_resized(c, used, size) for c in self._args))
        nodes = k.NODE_FIELDS * (int(scalars[k.M_NODES]) + count)
        if calls.nodes.size < nodes:
            used = k.NODE_FIELDS * int(scalars[k.M_NODES])
            calls = calls._replace(nodes=_resized(calls.nodes, used, 2 * nodes))
        calls = self._roomy_map(calls, "deep_key", "deep_open", k.M_DEEP, count)
        calls = self._roomy_map(calls, "count_key", "count_of", k.M_COUNTED, count)
        self.calls = calls
        opened = int(scalars[k.M_NODES])
        self.notes = roomy_notes(self.notes, opened + 4 * count)

    def _roomy_map(self, calls: k.Calls, keys: str, values: str, used: int, more: int) -> k.Calls:
        """The same with room in a map; half of it stays free."""
        wanted = 2 * (int(calls.scalars[used]) + more)
        old = getattr(calls, keys)
        if old.size >= wanted:
            return calls
        size = 1 << (wanted - 1).bit_length()
        new_keys, new_values = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self._refill(old, getattr(calls, values), new_keys, new_values)
        return calls._replace(**{keys: new_keys, values: new_values})

    def entries(self) -> tuple[I64, I64]:
        """Function ids, ascending, and how many entries each has so far."""
        counts = self.calls.counts
        ids = np.flatnonzero(counts)
        far = np.flatnonzero(self.calls.count_key)
        far = far[np.argsort(self.calls.count_key[far])]
        return (
            np.concatenate((ids, self.calls.count_key[far] - 1)),
            np.concatenate((counts[ids], self.calls.count_of[far])),
        )

    def open_calls(self) -> I64:
        """Byte offsets of the entries of the calls that are open, ascending."""
        nodes = self.calls.nodes.reshape(-1, k.NODE_FIELDS)
        found = []
        level = self.calls.top[self.calls.top >= 0]
        while level.size:
            found.append(nodes[level, k.NODE_OFFSET])
            level = nodes[level, k.NODE_BELOW]
            level = level[level >= 0]
        return np.sort(np.concatenate(found)) if found else np.zeros(0, np.int64)


COUNTED = 1 << 17
"""Function ids below this are counted in a table, others in a map."""
IN_MEMORY = 1 << 30
"""Bytes of one column that stay in memory; a longer one goes to a file."""


def _empty(dtypes: Mapping[str, Any], size: int) -> list[NDArray[Any]]:
    return [arena.empty(size, dtype) for dtype in dtypes.values()]


def _resized(array: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    larger = arena.empty(size, array.dtype)
    larger[:used] = array[:used]
    return larger


def _spilled(size: int, dtype: type) -> NDArray[Any]:
    """An array in memory, or where it is very large in a file."""
    if size * np.dtype(dtype).itemsize <= IN_MEMORY:
        return arena.empty(size, dtype)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype, "w+", shape=(size,))


def _rate(frequency: int) -> int:
    """The bits of the ticks per second; where they are not known, ticks are nanoseconds."""
    return int(np.array([frequency or NS_PER_SECOND], np.uint64).view(np.int64)[0])


def to_ns(ticks: I64, frequency: int, nbytes: int) -> I64:
    """Nanoseconds of ticks, which are the bits of uint64, rounded down; same shape.

    What int64 does not hold is its greatest number. ``nbytes`` says how much work it is.
    """
    out: I64 = arena.empty(ticks.size, np.int64)
    k.times.for_size(nbytes)(ticks, _rate(frequency), np.zeros(2, np.int64), out)
    return out


def to_spans(ticks: I64, more: I64, frequency: int, nbytes: int) -> tuple[I64, I64]:
    """The same of ``ticks``, and the nanoseconds from there to ``more`` ticks later.

    Of ``more`` that are -1 they are -1.
    """
    starts: I64 = arena.empty(ticks.size, np.int64)
    lengths: I64 = arena.empty(ticks.size, np.int64)
    parts = np.zeros(2, np.int64)
    k.spans_of.for_size(nbytes)(ticks, more, _rate(frequency), parts, starts, lengths)
    return starts, lengths


# --- Traces of both modes -------------------------------------------------------------------------


class _FileLog(Log):
    """A trace of which the bytes are given: how both modes are framed."""

    _decode_kernel: ClassVar[Kernel]
    _run_kernel: ClassVar[Kernel]
    _all_columns: ClassVar[tuple[bool, ...]] = ()

    def __init__(
        self,
        data: U8,
        *,
        version: int,
        byte_order: str,
        limits: Limits,
        release: Callable[[int, int], None],
    ) -> None:
        self.payloads = self._data = data
        self.nbytes = int(data.size)
        self._version = version
        self._order = layout.BYTE_ORDERS.index(byte_order)
        self._release = release
        scalars = np.zeros(k.FRAME_SCALARS, np.int64)
        scalars[k.AT] = scalars[k.LIMIT] = layout.HEADER_BYTES
        scalars[k.SIZE] = self.nbytes
        scalars[k.RECORD] = 1
        scalars[k.VERSION] = version
        scalars[k.ORDER] = self._order
        scalars[k.MAX_RECORD] = limits.max_record
        scalars[k.OPEN] = scalars[k.BLOCK] = -1
        self._scalars = scalars
        self.notes = new_notes(limits.max_findings)
        self._counted = np.zeros(len(k.KIND_NAMES), np.int64)
        self._counted[k.FILE_HEADER] = 1
        self._heads: k.Heads | None = None

    def _make_room(self) -> None:
        """Room for findings, as many as one record may have."""
        assert self.notes is not None  # noqa: S101 (a file has them)
        self.notes = roomy_notes(self.notes, STEP)
        self._scalars[k.ROOM_FINDINGS] = self.notes.findings.size // k.FINDING_FIELDS

    def _run(self, frame: Callable[[], None]) -> None:
        """Frame up to the end, making room where it stands still for want of it."""
        scalars = self._scalars
        released = 0
        while int(scalars[k.AT]) < self.nbytes:
            scalars[k.UNTIL] = min(int(scalars[k.AT]) + WINDOW, self.nbytes)
            self._make_room()
            frame()
            at = int(scalars[k.AT])
            if self.nbytes > WINDOW and at - released >= WINDOW:
                self._release(released, at)
                released = at

    def _counted_kinds(self) -> dict[str, int]:
        counted = zip(k.KIND_NAMES, self._counted.tolist(), strict=True)
        return {name: count for name, count in counted if count}

    def _set_threads(self, pids: I64, tids: I64, offsets: I64) -> NDArray[np.int32]:
        """Number the threads in the order of ``offsets``; gives the id of each row."""
        keys = np.stack((pids, tids))
        found, first, inverse = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        order = np.argsort(offsets[first], kind="stable")
        ids = np.empty(order.size, np.int32)
        ids[order] = np.arange(order.size, dtype=np.int32)
        self.pids = found[0][order].view(np.uint64)
        self.tids = found[1][order].view(np.uint64)
        self.thread_offsets = offsets[first][order]
        return ids[inverse.reshape(-1)]

    def _new_heads(self, firsts: I64, lasts: I64) -> k.Heads:
        """All threads at the beginning of their stretches."""

        def by_thread(value: int = 0) -> I64:
            return np.full(firsts.size, value, np.int64)

        alive = np.flatnonzero(firsts < lasts)
        heads = k.Heads(
            next=firsts.copy(),
            last=lasts,
            at=by_thread(),
            stop=by_thread(),
            base=by_thread(k.SIGN),
            cpu=by_thread(k.NO_CPU),
            function=by_thread(-1),
            latest=by_thread(k.SIGN),
            head=by_thread(k.SIGN),
            heap=by_thread(),
            used=np.array([alive.size], np.int64),
        )
        heads.heap[: alive.size] = alive
        return heads

    @abc.abstractmethod
    def _decoding(self, kernel: Kernel, *more: Any) -> Callable[..., int]:
        """A kernel that decodes, with all that it takes before ``events``."""

    def _room(self, room: int) -> k.Events:
        room = max(1, min(room, self.nbytes // 8))
        return k.Events(*(np.zeros(room, _DTYPES[name]) for name in k.Events._fields))

    def feed(self, matcher: Matcher) -> None:
        """Let all events be matched, of which the matcher keeps the rows."""
        run = self._decoding(self._run_kernel)
        events = self._room(FED)
        matcher.run(partial(run, events), events.kind.size)

    def chunks(self, room: int = AT_ONCE) -> Iterator[k.Events]:
        """All events, up to ``room`` at once. What is given holds until the next ones are."""
        decode = self._decoding(self._decode_kernel, *self._all_columns)
        events = self._room(room)
        room = events.kind.size
        let_go = 0
        while count := decode(events):
            yield k.Events(*(column[:count] for column in events)) if count < room else events
            let_go += 8 * count
            if let_go >= WINDOW:
                # Threads stand here and there in the file; what is still needed comes back.
                self._release(0, self.nbytes)
                let_go = 0


class _Words:
    """The little-endian word at every byte, as plain kernels take it."""

    def __init__(self, data: U8) -> None:
        self._data = data.data

    def __getitem__(self, at: int) -> int:
        return int.from_bytes(self._data[at : at + 8], "little", signed=True)


def words_of(data: U8, run: Callable[..., Any]) -> Any:
    """The little-endian word at every byte of ``data``, a view of it, as ``run`` takes it.

    ``run`` is what ``Kernel.for_size`` gave.
    """
    if isinstance(getattr(run, "__self__", None), Kernel):
        return _Words(data)
    return np.ndarray((max(int(data.size) - 7, 0),), "<i8", data, 0, (1,))


def new_notes(limit: int) -> k.Notes:
    """Notes that keep up to ``limit`` findings per code; 0 is no limit."""
    notes = k.Notes(np.empty(256 * k.FINDING_FIELDS, np.int64), np.zeros(k.CODES + 2, np.int64))
    notes.counts[1] = limit or 1 << 62
    return notes


def roomy_notes(notes: k.Notes, more: int) -> k.Notes:
    """The same notes with room for ``more`` findings, or as many as may still be kept."""
    kept = int(notes.counts[0])
    more = min(more, int(notes.counts[1]) * 64) + k.RECORD_FINDINGS
    if k.FINDING_FIELDS * (kept + more) <= notes.findings.size:
        return notes
    grown = np.empty(k.FINDING_FIELDS * (max(kept + more, 2 * kept)), np.int64)
    grown[: k.FINDING_FIELDS * kept] = notes.findings[: k.FINDING_FIELDS * kept]
    return notes._replace(findings=grown)


def _longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    if array.size >= size:
        return array
    longer = np.zeros(max(size, 2 * array.size), array.dtype)
    longer[: array.size] = array
    return longer


def _no_stretches() -> k.Stretches:
    empty = np.zeros(0, np.int64)
    return k.Stretches(empty, empty, empty, np.zeros(0, np.uint8), empty)


# --- The flight data recorder ---------------------------------------------------------------------


class FdrLog(_FileLog):
    """A trace of the flight data recorder.

    ``release`` is told which bytes are done with for now. ``frequency`` places buffers whose time
    is only known by the wall clock.
    """

    def __init__(
        self,
        data: U8,
        *,
        version: int,
        byte_order: str,
        buffer_size: int,
        frequency: int,
        limits: Limits,
        release: Callable[[int, int], None] = lambda _start, _stop: None,
    ) -> None:
        super().__init__(
            data, version=version, byte_order=byte_order, limits=limits, release=release
        )
        empty = np.zeros(0, np.int64)
        self._blocks = k.Blocks(*(empty for _ in k.Blocks._fields))
        self._stretches = _no_stretches()
        scalars = self._scalars
        scalars[k.BY_EXTENTS] = version >= layout.EXTENTS_VERSION
        scalars[k.BOUNDED] = scalars[k.MEND] = 1
        if version < layout.EXTENTS_VERSION:
            page = buffer_size if buffer_size >= layout.LEAST_BUFFER else 0
            scalars[k.PAGE] = min(page, 1 << 62)
            k.turn_page.plain(layout.HEADER_BYTES, scalars)
        kernel = k.frame_fdr.for_size(self.nbytes)
        words = words_of(data, kernel)

        def frame() -> None:
            kernel(
                words, self._data, self._blocks, self._stretches, scalars, self._counted,
                self.notes,
            )  # fmt: skip

        begin = scalars.copy()
        self._run(frame)
        k.frame_end.plain(self._blocks, self._stretches, scalars, self.notes)
        self._settle(frequency)
        self.records, self.kinds = int(scalars[k.RECORD]), self._counted_kinds()
        if scalars[k.CUTS]:
            self._count_literally(begin)

    def _count_literally(self, begin: I64) -> None:
        """Count records as they stand, of which some are cut in half."""
        scalars, self._scalars = begin, begin
        scalars[k.MEND] = 0
        self._counted[:] = 0
        self._counted[k.FILE_HEADER] = 1
        found, self.notes = self.notes, new_notes(1)
        kernel = k.frame_fdr.for_size(self.nbytes)
        words = words_of(self._data, kernel)
        blocks, stretches = self._blocks, self._stretches
        self._blocks = k.Blocks(*(np.zeros(0, np.int64) for _ in k.Blocks._fields))
        self._stretches = _no_stretches()
        self._run(
            lambda: kernel(
                words,
                self._data,
                self._blocks,
                self._stretches,
                scalars,
                self._counted,
                self.notes,
            )
        )
        self.records, self.kinds = int(scalars[k.RECORD]), self._counted_kinds()
        self._blocks, self._stretches, self.notes = blocks, stretches, found

    def _make_room(self) -> None:
        super()._make_room()
        scalars = self._scalars
        # Blocks and stretches take 16 bytes of the file each, but for two at once.
        step = min(STEP, self.nbytes // 8 + 8)
        blocks = int(scalars[k.N_BLOCKS]) + step
        if self._blocks.start.size < blocks - step // 2:
            self._blocks = k.Blocks(*(_longer(column, blocks) for column in self._blocks))
        stretches = int(scalars[k.N_STRETCHES]) + step
        if self._stretches.start.size < stretches - step // 2:
            self._stretches = k.Stretches(
                *(_longer(column, stretches) for column in self._stretches)
            )

    def _settle(self, frequency: int) -> None:
        """Number the threads, and put their stretches in order."""
        scalars = self._scalars
        self.entries = int(scalars[k.N_ENTRIES])
        blocks = k.Blocks(*(column[: int(scalars[k.N_BLOCKS])] for column in self._blocks))
        stretches = k.Stretches(
            *(column[: int(scalars[k.N_STRETCHES])] for column in self._stretches)
        )
        self._blocks, self._stretches = blocks, stretches
        flags = blocks.flags
        # A buffer that is nothing but its extents is nobody's.
        inhabited = np.flatnonzero(flags & k.INHABITED)
        thread = np.full(blocks.start.size, -1, np.int32)
        pids = self._processes(blocks)
        thread[inhabited] = self._set_threads(
            pids[inhabited], blocks.tid[inhabited], blocks.start[inhabited]
        )
        walled = (flags & k.WALLED) != 0
        bases = blocks.tsc.copy()
        for block in np.flatnonzero(flags & (k.TIMELESS | k.EARLY)).tolist():
            seconds, micros = int(blocks.seconds[block]), int(blocks.micros[block])
            wall = (seconds * 1_000_000 + micros) * frequency // 1_000_000
            bases[block] = np.uint64(max(wall, 0) & (1 << 64) - 1).view(np.int64)
        ticks: I64 = np.where(flags & k.TIMELESS, bases, blocks.tsc)
        self.blocks = Blocks(
            blocks.start, blocks.stop - blocks.start, thread, blocks.seconds, blocks.micros, ticks,
            blocks.records,
        )  # fmt: skip
        place = _places(thread, walled, blocks.seconds, blocks.micros)
        kept = thread[stretches.block] >= 0
        chosen = np.flatnonzero(kept)
        order = chosen[np.argsort(place[stretches.block[chosen]], kind="stable")]
        of_stretch = stretches.block[order]
        flag = stretches.flags[order] & np.uint8(k.CUT)
        firsts = np.diff(of_stretch, prepend=-1) != 0
        flag[firsts] |= np.uint8(k.FIRST)
        cut = (flag & k.CUT) != 0
        base = np.where(cut, stretches.tsc[order], bases[of_stretch] ^ _BIAS)
        self._plan = k.Plan(stretches.start[order], stretches.stop[order], flag, base)
        threads = thread[of_stretch]
        ids = np.arange(self.pids.size)
        self._firsts = np.searchsorted(threads, ids).astype(np.int64)
        self._lasts = np.searchsorted(threads, ids, side="right").astype(np.int64)

    def _processes(self, blocks: k.Blocks) -> I64:
        """The process of each block: version 2 does not say it, and llvm-xray takes the thread."""
        if self._version == layout.EXTENTS_VERSION:
            return np.where(blocks.flags & k.HAS_PID, blocks.pid, blocks.tid)
        return blocks.pid

    _decode_kernel, _run_kernel = k.decode_fdr, k.run_fdr
    _all_columns = (True,)

    def _decoding(self, kernel: Kernel, *more: Any) -> Callable[..., int]:
        heads = self._new_heads(self._firsts, self._lasts)
        run = kernel.for_size(self.nbytes)
        data = self._normalised() if self._order else self._data
        most = int(self._scalars[k.MAX_RECORD])
        words = words_of(data, run)
        return partial(run, words, data, self._version, most, *more, self._plan, heads)

    def _normalised(self) -> U8:
        """The sound records as a little-endian machine writes them."""
        out = self._data.copy()
        normalise = k.normalise.for_size(self.nbytes)
        words = words_of(self._data, normalise)
        for start, stop in zip(self._plan.start.tolist(), self._plan.stop.tolist(), strict=True):
            normalise(words, self._data, out, self._version, self._order, start, stop)
        return out


def _places(thread: NDArray[np.int32], walled: Any, seconds: I64, micros: I64) -> I64:
    """By block, its place in the order of decoding: by thread, wall time, place in the file."""
    order = np.argsort(thread, kind="stable")
    # A block without a wall time stays behind the one before it of its thread.
    latest = np.where(walled[order], np.arange(order.size), -1)
    latest = np.maximum.accumulate(latest) if latest.size else latest
    starts = np.searchsorted(thread[order], thread[order])
    known = latest >= starts
    taken = order[np.where(known, latest, 0)] if order.size else order
    lead = np.where(known, seconds[taken], np.iinfo(np.int64).min) if order.size else latest
    rest = np.where(known, micros[taken], 0) if order.size else latest
    final = order[np.lexsort((rest, lead, thread[order]))]
    place = np.empty(order.size, np.int64)
    place[final] = np.arange(order.size)
    return place


# --- Basic mode -----------------------------------------------------------------------------------


class BasicLog(_FileLog):
    """A trace of basic mode."""

    def __init__(
        self,
        data: U8,
        *,
        version: int,
        byte_order: str,
        limits: Limits,
        release: Callable[[int, int], None] = lambda _start, _stop: None,
    ) -> None:
        super().__init__(
            data, version=version, byte_order=byte_order, limits=limits, release=release
        )
        self._stretches = _no_stretches()
        scalars = self._scalars
        kernel = k.frame_basic.for_size(self.nbytes)
        words = words_of(data, kernel)

        def frame() -> None:
            kernel(words, self._data, self._stretches, scalars, self._counted, self.notes)

        self._run(frame)
        k.end_run.plain(self._whole_end(), self._stretches, scalars)
        self._settle()
        self.records, self.kinds = int(scalars[k.RECORD]), self._counted_kinds()

    def _whole_end(self) -> int:
        """Where the last whole record ends."""
        return max(self.nbytes - self.nbytes % layout.BASIC_BYTES, 0)

    def _make_room(self) -> None:
        super()._make_room()
        step = min(STEP, self.nbytes // layout.BASIC_BYTES + 8)
        stretches = int(self._scalars[k.N_STRETCHES]) + step
        if self._stretches.start.size < stretches - step // 2:
            self._stretches = k.Stretches(
                *(_longer(column, stretches) for column in self._stretches)
            )

    def _settle(self) -> None:
        """Number the threads, and put their stretches in order."""
        scalars = self._scalars
        self.entries = int(scalars[k.N_ENTRIES])
        stretches = k.Stretches(
            *(column[: int(scalars[k.N_STRETCHES])] for column in self._stretches)
        )
        thread = self._set_threads(
            (stretches.block.view(np.uint64) >> np.uint64(32)).view(np.int64),
            stretches.block & np.int64(k.LOW32),
            stretches.start,
        )
        order = np.argsort(thread, kind="stable")
        self._plan = k.Plan(
            stretches.start[order], stretches.stop[order], stretches.flags[order],
            stretches.tsc[order],
        )  # fmt: skip
        ids = np.arange(self.pids.size)
        self._firsts = np.searchsorted(thread[order], ids).astype(np.int64)
        self._lasts = np.searchsorted(thread[order], ids, side="right").astype(np.int64)

    _decode_kernel, _run_kernel = k.decode_basic, k.run_basic

    def _decoding(self, kernel: Kernel, *more: Any) -> Callable[..., int]:
        heads = self._new_heads(self._firsts, self._lasts)
        run = kernel.for_size(self.nbytes)
        words = words_of(self._data, run)
        return partial(run, words, self._data, bool(self._order), *more, self._plan, heads)
