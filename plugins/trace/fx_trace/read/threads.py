"""Threads and processes: who is mentioned by records, and what they are called.

``Threads`` numbers threads in the order in which records mention them, as rows need it block by
block; ``TaskCollector`` finds what only the whole file says.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace.kinds import ObjectType, SchedulingType
from fx_trace.read.chunks import Chunk
from fxframework.kernels.arrays import I32, I64, U64
from fxframework.kernels.pools import PairMap
from fxframework.kernels.sorting import begins_of_runs
from fxframework.model.strings import StringPool

NAMELESS = -1
GONE = 1 << 30
"""Numbers of threads from here on are those of indexes that nobody registered."""


class FirstUses(NamedTuple):
    """Records that mention threads; one shape."""

    ordinals: I64
    turns: I64
    """Which of the fields with threads it is."""
    numbers: I32
    """Codes of koids, or GONE and numbers of those that nobody registered."""
    starts: I64
    """Places of koids."""
    indexes: I64
    """Indexes of those that nobody registered."""


class Threads:
    """The threads that records mention, in the order in which they do."""

    def __init__(self) -> None:
        self.pool = StringPool()
        """Koids of both, 16 bytes each, as the file has them."""
        self.gone = PairMap()
        """Scopes and indexes of threads that nobody registered."""
        self.of_koids = np.full(64, -1, np.int32)
        """The thread by code of ``pool``; -1: not mentioned yet."""
        self.of_gone = np.full(64, -1, np.int32)
        """The thread by number of ``gone``, likewise."""
        self.pids, self.tids, self.offsets, self.indexes = np.zeros((4, 0), np.int64)
        """By thread: koids, offset of the first record, and one more than the index of one that
        nobody registered, else 0."""

    @property
    def count(self) -> int:
        """Threads so far."""
        return int(self.pids.size)

    def make_room(self) -> None:
        """Have a place for each that may be looked up."""
        self.of_koids = longer(self.of_koids, len(self.pool))
        self.of_gone = longer(self.of_gone, self.gone.count)

    def find(self, numbers: I32) -> I32:
        """Return the threads of codes, or of GONE and numbers of ``gone``; -1 for -1."""
        if not numbers.size:
            return numbers
        # Numbers of another kind are clipped to valid places, and what is there is not taken.
        threads = self.of_koids.take(numbers, mode="clip")
        if int(numbers.max()) >= GONE:
            gone_threads = self.of_gone.take(numbers - GONE, mode="clip")
            threads = np.where(numbers >= GONE, gone_threads, threads)
        if int(numbers.min()) < 0:
            threads[numbers < 0] = -1
        return threads

    def add(self, numbers: I32, koids: I64, offsets: I64, indexes: I64) -> None:
        """Add threads that were not mentioned before."""
        threads = np.arange(self.count, self.count + numbers.size, dtype=np.int32)
        is_gone = numbers >= GONE
        self.of_gone[numbers[is_gone] - GONE] = threads[is_gone]
        self.of_koids[numbers[~is_gone]] = threads[~is_gone]
        self.pids = np.append(self.pids, koids[0])
        self.tids = np.append(self.tids, koids[1])
        self.offsets = np.append(self.offsets, offsets)
        self.indexes = np.append(self.indexes, indexes)

    def known(self) -> dict[str, I64]:
        """Return the columns."""
        return {
            "pid": self.pids, "tid": self.tids, "offset": self.offsets, "gone": self.indexes,
        }  # fmt: skip


def longer(column: I32, count: int) -> I32:
    """Return a column with room for so many numbers; new ones are -1."""
    if count <= column.size:
        return column
    long_column = np.full(max(count, 2 * column.size), -1, np.int32)
    long_column[: column.size] = column
    return long_column


# --- Tasks ---------------------------------------------------------------------------------------


@attrs.define
class Tasks:
    """Threads, numbered by the row of `threads`, and processes, in the order of their offsets."""

    pids: U64
    tids: U64
    offsets: I64
    """Of the first record that mentions each thread."""
    gone: I64
    """One more than a thread's index where its record is missing; 0 for the others."""
    names: I32
    processes: U64
    process_offsets: I64
    process_names: I32
    _known: U64
    """Tids that other records may name, in order."""
    _threads: I64
    """The thread of each of them."""

    def threads_of(self, tids: I64, rows: NDArray[np.bool_]) -> I32:
        """Return the threads of a column of tids, where ``rows`` is set.

        Elsewhere -1; same shape.
        """
        threads = np.full(tids.size, -1, np.int32)
        places = np.searchsorted(self._known, tids[rows].view(np.uint64))
        threads[rows] = self._threads[places]
        return threads


class KernelObjects(NamedTuple):
    """Annotations of processes and threads; one shape."""

    types: NDArray[np.uint8]
    koids: U64
    pids: U64
    """Of a thread the process it belongs to; 0 if that is not given."""
    names: I32
    offsets: I64

    @classmethod
    def none(cls) -> KernelObjects:
        """Return no annotations."""
        no_koids = np.zeros(0, np.uint64)
        no_names = np.zeros(0, np.int32)
        return cls(np.zeros(0, np.uint8), no_koids, no_koids, no_names, np.zeros(0, np.int64))


class TaskCollector:
    """Gathers who is mentioned, chunk by chunk."""

    def __init__(self) -> None:
        self._objects = [KernelObjects.none()]
        self._tids = np.zeros(0, np.uint64)
        """Threads that context switches and wakeups name, each once, in order."""
        self._tid_offsets = np.zeros(0, np.int64)
        """Offset of the first record that names each of them."""

    def add(self, chunk: Chunk) -> None:
        """Take in the kernel objects and the context switches of a chunk."""
        objects = chunk.objects
        if objects.kind.size:
            is_task = np.isin(objects.type, (ObjectType.PROCESS, ObjectType.THREAD))
            tasks = np.flatnonzero((objects.kind == 0) & is_task)
            self._objects.append(
                KernelObjects(
                    objects.type[tasks],
                    objects.value[tasks].view(np.uint64),
                    objects.pid[tasks].view(np.uint64),
                    objects.name[tasks],
                    objects.offset[tasks],
                )
            )
        sched = chunk.sched
        if sched.kind.size:
            # Legacy switches have numbers of threads in these columns, which are known anyway.
            has_next = sched.kind != SchedulingType.LEGACY_CONTEXT_SWITCH
            has_prev = sched.kind == SchedulingType.CONTEXT_SWITCH
            for column, rows in ((sched.prev, has_prev), (sched.next, has_next)):
                tids = np.append(self._tids, column[rows].view(np.uint64))
                offsets = np.append(self._tid_offsets, sched.offset[rows])
                self._tids, self._tid_offsets = earliest(tids, offsets)

    def settle(self, known: dict[str, I64]) -> Tasks:
        """Return everybody, with the threads that records mention: columns of ``Threads.known``."""
        objects = KernelObjects(*map(np.concatenate, zip(*self._objects, strict=True)))
        self._objects.clear()
        is_thread = objects.types == ObjectType.THREAD
        is_process = objects.types == ObjectType.PROCESS
        known_tids = known["tid"].view(np.uint64)
        registered = np.flatnonzero(known["gone"] == 0)
        # Other records name threads by their tid alone: they mean the first thread that has it.
        own_tids, first_places = np.unique(known_tids[registered], return_index=True)
        own_threads = registered[first_places]
        # Behind the threads that records mention come those that are only named by their tid.
        other_tids, other_offsets = earliest(
            np.append(self._tids, objects.koids[is_thread]),
            np.append(self._tid_offsets, objects.offsets[is_thread]),
        )
        is_new = ~np.isin(other_tids, own_tids)
        other_tids, other_offsets = by_offset(other_tids[is_new], other_offsets[is_new])
        has_pid = is_thread & (objects.pids > 0)
        other_pids = looked_up(other_tids, objects.koids[has_pid], objects.pids[has_pid], 0)
        pids = np.append(known["pid"].view(np.uint64), other_pids)
        tids = np.append(known_tids, other_tids)
        offsets = np.append(known["offset"], other_offsets)
        gone = np.append(known["gone"], np.zeros(other_tids.size, np.int64))
        thread_koids = objects.koids[is_thread]
        names = looked_up(tids, thread_koids, objects.names[is_thread], NAMELESS)
        names[gone > 0] = NAMELESS
        is_known = gone == 0
        process_koids = objects.koids[is_process]
        processes, process_offsets = earliest(
            np.append(pids[is_known], process_koids),
            np.append(offsets[is_known], objects.offsets[is_process]),
        )
        processes, process_offsets = by_offset(processes, process_offsets)
        object_names = objects.names[is_process]
        process_names = looked_up(processes, process_koids, object_names, NAMELESS)
        named_tids = np.append(own_tids, other_tids)
        named_threads = np.append(own_threads, np.arange(known_tids.size, tids.size))
        order = np.argsort(named_tids)
        return Tasks(
            pids=pids,
            tids=tids,
            offsets=offsets,
            gone=gone,
            names=names,
            processes=processes,
            process_offsets=process_offsets,
            process_names=process_names,
            known=named_tids[order],
            threads=named_threads[order],
        )


def earliest(keys: U64, offsets: I64) -> tuple[U64, I64]:
    """Return each key once, in order, with the least of its offsets."""
    order = np.lexsort((offsets, keys))
    is_first = begins_of_runs(keys[order])
    return keys[order][is_first], offsets[order][is_first]


def by_offset(keys: U64, offsets: I64) -> tuple[U64, I64]:
    """Return keys and their offsets in the order of offsets, and of keys where these are equal."""
    order = np.lexsort((keys, offsets))
    return keys[order], offsets[order]


def looked_up(wanted_keys: U64, keys: U64, values: NDArray[Any], default: int) -> NDArray[Any]:
    """Return the last value of each wanted key among ``keys``; the default for one without any."""
    wanted_values = np.full(wanted_keys.size, default, values.dtype)
    if not keys.size:
        return wanted_values
    # Turned around, the first of equal keys is the last one.
    distinct_keys, last_places = np.unique(keys[::-1], return_index=True)
    places = np.searchsorted(distinct_keys, wanted_keys)
    places = np.minimum(places, distinct_keys.size - 1)
    has_value = distinct_keys[places] == wanted_keys
    last_values = values[::-1][last_places]
    wanted_values[has_value] = last_values[places[has_value]]
    return wanted_values
