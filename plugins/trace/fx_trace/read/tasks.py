"""Tasks: the processes and threads that a trace mentions, in columns."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace.read.scanner import Chunk

__all__ = ["TaskCollector", "Tasks"]

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
NAMELESS = -1


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
        out = np.full(tids.size, -1, np.int32)
        places = np.searchsorted(self._known, tids[rows].view(np.uint64))
        out[rows] = self._threads[places]
        return out


class TaskCollector:
    """Gathers who is mentioned, chunk by chunk."""

    def __init__(self) -> None:
        self._objects: list[tuple[NDArray[Any], ...]] = []
        """Type, koid, pid, name and offset of kernel objects."""
        self._tids = np.zeros(0, np.uint64)
        self._tid_offsets = np.zeros(0, np.int64)

    def add(self, chunk: Chunk) -> None:
        """Take in the kernel objects and the context switches of a chunk."""
        objects = chunk.objects
        kernel = (objects.kind == 0) & np.isin(
            objects.type, (wire.OBJECT_PROCESS, wire.OBJECT_THREAD)
        )
        if kernel.any():
            self._objects.append(
                (
                    objects.type[kernel],
                    objects.value[kernel].view(np.uint64),
                    objects.pid[kernel].view(np.uint64),
                    objects.name[kernel],
                    objects.offset[kernel],
                )
            )
        sched = chunk.sched
        if sched.kind.size:
            newer = sched.kind != wire.SCHED_LEGACY_SWITCH
            switched = sched.kind == wire.SCHED_SWITCH
            for column, rows in ((sched.prev, switched), (sched.next, newer)):
                self._tids, self._tid_offsets = _earliest(
                    np.append(self._tids, column[rows].view(np.uint64)),
                    np.append(self._tid_offsets, sched.offset[rows]),
                )

    def settle(self, known: dict[str, NDArray[Any]]) -> Tasks:
        """Everybody, with the threads that the scan knows: columns tid, pid, offset and gone."""
        empty = (np.zeros(0, np.uint8), *(np.zeros(0, np.uint64),) * 2)
        kinds, koids, homes, names, offsets = (
            np.concatenate(parts)
            for parts in zip(
                (*empty, np.zeros(0, np.int32), np.zeros(0, np.int64)), *self._objects, strict=True
            )
        )
        self._objects.clear()
        tids, pids, gone = known["tid"].view(np.uint64), known["pid"].view(np.uint64), known["gone"]
        threads = kinds == wire.OBJECT_THREAD
        mentioned, first = _earliest(
            np.append(self._tids, koids[threads]), np.append(self._tid_offsets, offsets[threads])
        )
        # The threads that other records name by their tid: the first of each.
        here, place = np.unique(tids[gone == 0], return_index=True)
        number = np.flatnonzero(gone == 0)[place]
        new = ~np.isin(mentioned, here)
        mentioned, first = mentioned[new], first[new]
        order = np.lexsort((mentioned, first))
        mentioned, first = mentioned[order], first[order]
        homed = threads & (homes > 0)
        added = _looked_up(mentioned, *_last(koids[homed], homes[homed]), 0)
        every_pid, every_tid = np.append(pids, added), np.append(tids, mentioned)
        every_gone = np.append(gone, np.zeros(mentioned.size, np.int64))
        every_offset = np.append(known["offset"], first)
        thread_names = _looked_up(every_tid, *_last(koids[threads], names[threads]), NAMELESS)
        thread_names[every_gone > 0] = NAMELESS
        by_tid = np.append(here, mentioned)
        in_order = np.argsort(by_tid)
        there, process = every_gone == 0, kinds == wire.OBJECT_PROCESS
        processes, since = _earliest(
            np.append(every_pid[there], koids[process]),
            np.append(every_offset[there], offsets[process]),
        )
        order = np.lexsort((processes, since))
        processes = processes[order]
        return Tasks(
            pids=every_pid,
            tids=every_tid,
            offsets=every_offset,
            gone=every_gone,
            names=thread_names,
            processes=processes,
            process_offsets=since[order],
            process_names=_looked_up(processes, *_last(koids[process], names[process]), NAMELESS),
            known=by_tid[in_order],
            threads=np.append(number, np.arange(tids.size, every_tid.size))[in_order],
        )


def _earliest(keys: U64, offsets: I64) -> tuple[U64, I64]:
    """Return each key once, in order, with the least of its offsets."""
    order = np.lexsort((offsets, keys))
    keys, offsets = keys[order], offsets[order]
    first = np.ones(keys.size, np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    return keys[first], offsets[first]


def _last(keys: U64, values: NDArray[Any]) -> tuple[U64, NDArray[Any]]:
    """Return each key once, in order, with the last of its values."""
    found, place = np.unique(keys[::-1], return_index=True)
    return found, values[::-1][place]


def _looked_up(wanted: U64, keys: U64, values: NDArray[Any], otherwise: int) -> NDArray[Any]:
    """The values of some keys, of the dtype of ``values``; ``otherwise`` for a key without one."""
    out = np.full(wanted.size, otherwise, values.dtype)
    if keys.size:
        places = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        has = keys[places] == wanted
        out[has] = values[places[has]]
    return out
