"""Merges the calls of several captures, of any format, into one trace.

A capture with events of its own (``events()``, ``event_threads()``, ``payloads``) is written
exactly by them; of a view, those that belong to its rows. Any other is written by its slices,
instants and arguments.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fx_xray import format as wire
from fx_xray import rules
from fx_xray.format import ARGUMENT, BASIC_FORM, FORMS, Dialect, FileHeader
from fx_xray.read.events import Events
from fx_xray.read.header import asked_order
from fx_xray.read.views import chosen_events, has_events, picked, whole_of
from fx_xray.write.bulk import Calls
from fx_xray.write.packer import BasicPacker, Packer, RecorderPacker
from fxframework.errors import UsageError, WriteRefusedError, refusal
from fxframework.io.sink import Sink
from fxframework.io.words import U64_MAX
from fxframework.kit.omitted import omitted_columns
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_PER_SECOND

__all__ = ["IdAllocator", "Merger", "Packing", "open_merge", "open_merge_basic"]

I64 = NDArray[Any]
WRITTEN_ORDER: Final = "write_byte_order"
"""Name of the option for the byte order of the output."""
NAMES_LOST: Final = "names of functions (-o names=FILE keeps them in a file)"
FREQUENCIES: Final = "counters of other frequencies, converted to that of the first capture"
I32_END: Final = 1 << 31
AT_ONCE: Final = 1 << 20
"""Events of other formats written at a time."""
MOST_PADDED: Final = 1 << 26
"""Largest buffer of version 1, which is padded to its full size."""


class IdAllocator:
    """Assigns ids of 32 bits to the processes and threads of captures.

    ``dropped`` counts the ids that could not be kept: those that are too large and, in versions
    without process ids, those that two processes share.
    """

    def __init__(self, form: str, version: int) -> None:
        self._basic = form == BASIC_FORM
        least = wire.BASIC_PID_VERSION if self._basic else wire.PID_VERSION
        self._with_processes = version >= least
        self._implied = not self._basic and version == wire.EXTENTS_VERSION
        """Whether readers use the id of the thread as that of the process."""
        self._processes: dict[int, int] = {}
        self._threads: dict[tuple[int, int], int] = {}
        self._taken: set[tuple[int, int]] = set()
        """Numbers of threads, each with that of the process within which it is unique."""
        self._process_numbers: set[int] = set()
        self._next = 1
        self._kept: list[tuple[NDArray[np.uint64], NDArray[np.uint64]]] = []
        """Koids of the first capture if all are ids; they are entered when more follow."""
        self.dropped: Counter[str] = Counter()

    def numbers(self, pids: NDArray[np.uint64], tids: NDArray[np.uint64]) -> tuple[I64, I64]:
        """Return ids of processes and threads, int64 of shape (n,), for their koids."""
        if self._with_processes and not self._threads and not self._kept:
            low = -I32_END
            high = I32_END
            if self._basic:
                low = 0
                high = 1 << 32
            # Most captures have small ids throughout, which need no dictionaries.
            ids = pids.astype(np.uint64).view(np.int64), tids.astype(np.uint64).view(np.int64)
            if all(bool(((koid_array >= low) & (koid_array < high)).all()) for koid_array in ids):
                self._kept.append((pids, tids))
                return ids
        for koids in (*self._kept, (pids, tids)):
            pairs = list(zip(*(koid_array.tolist() for koid_array in koids), strict=True))
            for pid, tid in pairs:
                if (pid, tid) not in self._threads:
                    self._enter(pid, tid)
        self._kept.clear()
        processes = np.array([self._processes[pid] for pid, _ in pairs], np.int64)
        return processes, np.array([self._threads[pair] for pair in pairs], np.int64)

    def _enter(self, pid: int, tid: int) -> None:
        if pid not in self._processes:
            number = self._fitting(pid)
            if number is None or number in self._process_numbers:
                while self._next in self._process_numbers:
                    self._next += 1
                number = self._next
                if self._with_processes:
                    self.dropped["numbers of processes"] += 1
            self._process_numbers.add(number)
            self._processes[pid] = number
        # Numbers of threads are unique in their process, or in the trace if it has none.
        scope = 0
        if self._with_processes:
            scope = self._processes[pid]
        number = self._fitting(tid)
        if number is None or (scope, number) in self._taken:
            while (scope, self._next) in self._taken:
                self._next += 1
            number = self._next
            self.dropped["numbers of threads"] += 1
        self._taken.add((scope, number))
        self._threads[pid, tid] = number
        if self._with_processes:
            return
        process_read = 0
        if self._implied:
            process_read = tid
        if pid != process_read:
            self.dropped["processes of threads"] += 1

    def _fitting(self, koid: int) -> int | None:
        """Return the koid if it fits 32 bits, which are signed in the flight data recorder."""
        if self._basic:
            if koid < 1 << 32:
                return koid
            return None
        # A negative id is its complement of 64 bits as a koid.
        signed = (koid ^ 1 << 63) - (1 << 63)
        if -I32_END <= signed < I32_END:
            return signed
        return None


class Packing:
    """Writes events of captures, one capture after another, with a given header.

    ``byte_order`` is that of the output, little-endian where it is empty. Events that are left out
    go to ``left_out``, if it is given, with the name of the loss.
    """

    def __init__(
        self,
        sink: Sink,
        form: str,
        header: FileHeader,
        *,
        byte_order: str = "",
        left_out: list[tuple[Events, str]] | None = None,
    ) -> None:
        self._ids = IdAllocator(form, header.version)
        self._threads = 0
        kind = BasicPacker if form == BASIC_FORM else RecorderPacker
        self._packer: Packer = kind(sink, header, byte_order=byte_order, left_out=left_out)

    def add_threads(self, pids: NDArray[np.uint64], tids: NDArray[np.uint64]) -> int:
        """Add the threads of a capture. Return the offset of their ids."""
        first_thread = self._threads
        self._packer.add_threads(*self._ids.numbers(pids, tids))
        self._threads += len(tids)
        return first_thread

    def write(self, events: Events, payloads: NDArray[np.uint8], first: int = 0) -> None:
        """Write events; ``first`` is the result of ``add_threads``."""
        if first:
            events = events._replace(thread=events.thread + np.int32(first))
        self._packer.write(events, payloads)

    def close(self) -> Counter[str]:
        """Write the held-back records. Return the counts of what could not be written, by name."""
        return Counter(self._packer.close()) + self._ids.dropped


class Merger:
    """Writes the calls of captures into one trace (``fxframework.registry.ExportSession``).

    ``version`` 0 is the newest, ``buffer_size`` 0 the default of the flight data recorder. The
    frequency is that of the first capture; times of others are converted to it, rounded to the
    nearest tick. ``names`` is the file for the names of functions, as CSV.
    """

    def __init__(
        self,
        sink: Sink,
        form: str,
        *,
        version: int = 0,
        buffer_size: int = 0,
        byte_order: str = "",
        names: str = "",
    ) -> None:
        self._sink = sink
        self._form = form
        self._version = checked_version(form, version)
        self._buffer_size = checked_size(form, self._version, buffer_size)
        """In basic mode 0."""
        self._byte_order = byte_order
        self._names_file = names
        self._packing: Packing | None = None
        self._frequency = NS_PER_SECOND
        self._names: dict[bytes, int] = {}
        """Function numbers, by name, for captures without function numbers."""
        self._last = 0
        """Greatest function number so far."""
        self._listed: dict[int, bytes] = {}
        self._dropped: Counter[str] = Counter()

    def write(self, capture: Capture) -> None:
        """Add the calls of a capture."""
        if has_events(capture):
            self._write_events(capture)
        else:
            self._write_tables(capture)

    def close(self) -> Mapping[str, int]:
        """Finish the file. Return the counts of what could not be written, by name."""
        packing = self._begin(NS_PER_SECOND)
        self._dropped += packing.close()
        if self._names_file:
            with Sink.open(self._names_file) as sink:
                sink.write(_listing(self._listed))
        elif self._listed:
            self._dropped[NAMES_LOST] += len(self._listed)
        return +self._dropped

    def _begin(self, frequency: int, capture: Any = None) -> Packing:
        """Return the packing, created with the facts of the first capture."""
        if self._packing is None:
            self._frequency = frequency
            dialect = Dialect(self._form)
            header = FileHeader(
                type=dialect.type,
                version=self._version,
                constant_tsc=capture is None or capture.constant_tsc,
                nonstop_tsc=capture is None or capture.nonstop_tsc,
                cycle_frequency=frequency,
                buffer_size=self._buffer_size,
            )
            self._packing = Packing(self._sink, self._form, header, byte_order=self._byte_order)
        return self._packing

    # --- Captures with events ------------------------------------------------------------------

    def _write_events(self, capture: Capture) -> None:
        whole = whole_of(capture)
        frequency = whole.frequency
        packing = self._begin(frequency, whole)
        given = frequency or NS_PER_SECOND
        wanted = self._frequency or NS_PER_SECOND
        if given != wanted:
            self._dropped[FREQUENCIES] += 1
        first_thread = packing.add_threads(*whole.event_threads())
        shift = self._last if self._names else 0
        if shift:
            self._dropped["numbers of functions"] += len(whole.table("xray_functions"))
        for events in chosen_events(capture):
            function = events.function
            called = function[events.kind <= ARGUMENT]
            if shift:
                function = np.where(events.kind <= ARGUMENT, function + np.uint32(shift), function)
            self._last = max(self._last, shift + int(called.max(initial=0)))
            tsc = converted(events.tsc, given, wanted)
            packing.write(events._replace(function=function, tsc=tsc), whole.payloads, first_thread)
        self._list_functions(whole, shift)

    def _list_functions(self, capture: Capture, shift: int) -> None:
        """Collect the names of a capture's functions, if it has any."""
        if capture.format in wire.FORMS and not capture.request.options.get("instr_map"):
            return
        for batch in capture.batches("xray_functions"):
            names = batch.texts("name")
            for id, name in zip(batch.array("id").tolist(), names, strict=True):
                if name is not None and name != str(id):
                    self._listed.setdefault(id + shift, name.encode(errors="surrogateescape"))

    # --- Captures of other formats --------------------------------------------------------------

    def _write_tables(self, capture: Capture) -> None:
        calls = Calls(capture)
        packing = self._begin(NS_PER_SECOND)
        wanted = self._frequency or NS_PER_SECOND
        if wanted != NS_PER_SECOND:
            self._dropped[FREQUENCIES] += 1
        self._dropped += calls.dropped + omitted_columns(capture, ("slices", "instants", "args"))
        numbers = []
        for name in calls.names:
            if name not in self._names:
                self._last += 1
                self._names[name] = self._listed_as(self._last, name)
            numbers.append(self._names[name])
        first_thread = packing.add_threads(calls.pids, calls.tids)
        number_of_function = np.array([*numbers, 0], np.uint32)
        for start in range(0, len(calls.events.kind), AT_ONCE):
            events = picked(calls.events, slice(start, start + AT_ONCE))
            function = np.where(
                events.kind <= ARGUMENT, number_of_function[events.function], events.function
            )
            tsc = converted(events.tsc, NS_PER_SECOND, wanted)
            packing.write(events._replace(function=function, tsc=tsc), calls.payloads, first_thread)

    def _listed_as(self, number: int, name: bytes) -> int:
        self._listed[number] = name
        return number


def converted(ticks: NDArray[np.uint64], given: int, wanted: int) -> NDArray[np.uint64]:
    """Return ticks of one frequency in another, rounded to the nearest and clamped to 64 bits.

    Takes and returns uint64 of shape (n,).
    """
    if given == wanted or not ticks.size:
        return ticks
    greatest_tick = U64_MAX
    if (
        given * wanted <= greatest_tick // 2
        and int(ticks.max()) // given * wanted + wanted <= greatest_tick
    ):
        whole, part = np.divmod(ticks, np.uint64(given))
        part = (part * np.uint64(wanted) + np.uint64(given // 2)) // np.uint64(given)
        return whole * np.uint64(wanted) + part
    exact = [min((tick * wanted + given // 2) // given, greatest_tick) for tick in ticks.tolist()]
    return np.array(exact, np.uint64)


def checked_version(form: str, version: int) -> int:
    """Return the requested version, the newest for 0. Raises UsageError for an unknown one."""
    versions = Dialect(form).versions
    version = version or versions[-1]
    if version not in versions:
        raise UsageError(
            f"{form} has no version {version}",
            remedy=f"give one of {', '.join(map(str, versions))}",
        )
    return version


def checked_size(form: str, version: int, size: int) -> int:
    """Return the requested size of buffers, the default for 0; basic mode has none.

    Raises WriteRefusedError (BUFFER_TOO_SMALL) for a size that is too small, and UsageError for one
    that is far too large in version 1, which pads its buffers.
    """
    if form == BASIC_FORM:
        return 0
    size = size or wire.BUFFER_BYTES
    if not wire.SMALLEST_BUFFER <= size < 1 << 63:
        raise refusal(rules.BUFFER_TOO_SMALL, f"buffers of {size} bytes")
    if version < wire.EXTENTS_VERSION and size > MOST_PADDED:
        raise UsageError(
            f"each buffer of version 1 would be filled up to {size} bytes",
            remedy=f"give at most {MOST_PADDED}, or a newer version",
        )
    return size


def _listing(names: Mapping[int, bytes]) -> bytes:
    """Return the names of functions as CSV, in the form of ``-o instr_map``."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("function_id", "name"))
    for number, name in sorted(names.items()):
        rows.writerow((number, name.decode(errors="surrogateescape")))
    return out.getvalue().encode(errors="surrogateescape")


def open_any_merge(form: str, sink: Sink, options: Mapping[str, Any]) -> Merger:
    """Open a session that merges captures into a trace of a format.

    The options ``version``, ``buffer_size`` and ``write_byte_order`` select the form of the file,
    ``names`` a file for the names of functions. Raises UsageError or WriteRefusedError for invalid
    values.
    """
    names = str(options.get("names") or "")
    if names and Path(names).exists():
        raise WriteRefusedError("the file already exists", path=names, remedy="choose another name")
    return Merger(
        sink,
        form,
        version=int(options.get("version") or 0),
        buffer_size=int(options.get("buffer_size") or 0),
        byte_order=asked_order(options, WRITTEN_ORDER),
        names=names,
    )


open_merge, open_merge_basic = (partial(open_any_merge, form) for form in FORMS)
