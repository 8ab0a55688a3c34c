"""Merges the calls of several captures, of any format, into one trace.

A capture with events of its own (``events()``, ``event_threads()``, ``payloads``) is written
exactly by them; of a view, those that belong to its rows. Any other is written by its slices,
instants and arguments.
"""

from __future__ import annotations

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
from fx_xray.read.events import parts_of
from fx_xray.read.header import asked_order
from fx_xray.read.instr_map import csv_line
from fx_xray.read.views import chosen_events, has_events, whole_of
from fx_xray.write.bulk import Calls
from fx_xray.write.packer import Packer, packer_of
from fxframework.errors import UsageError, WriteRefusedError, refusal
from fxframework.io.sink import Sink
from fxframework.io.words import U64_MAX
from fxframework.kit.omitted import omitted_columns
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_PER_SECOND

I64 = NDArray[Any]
WRITTEN_ORDER: Final = "write_byte_order"
"""Name of the option for the byte order of the output."""
NAMES_LOST: Final = "names of functions (-o names=FILE keeps them in a file)"
FREQUENCIES: Final = "counters of other frequencies, converted to that of the first capture"
AT_ONCE: Final = 1 << 20
"""Events of other formats written at a time."""
MOST_PADDED: Final = 1 << 26
"""Largest buffer of version 1, which is padded to its full size."""


class Merger:
    """Writes the calls of captures into one trace (``fxframework.registry.ExportSession``).

    The options ``version``, ``buffer_size`` and ``write_byte_order`` select the form of the file,
    ``names`` a file for the names of functions, as CSV. The frequency is that of the first capture;
    times of others are converted to it, rounded to the nearest tick. Raises UsageError or
    WriteRefusedError for invalid options.
    """

    def __init__(self, form: str, sink: Sink, options: Mapping[str, Any]) -> None:
        self._sink = sink
        self._form = form
        self._version = checked_version(form, int(options.get("version") or 0))
        buffer_size = int(options.get("buffer_size") or 0)
        self._buffer_size = checked_size(form, self._version, buffer_size)
        """In basic mode 0."""
        self._byte_order = asked_order(options, WRITTEN_ORDER)
        names = str(options.get("names") or "")
        if names and Path(names).exists():
            remedy = "choose another name"
            raise WriteRefusedError("the file already exists", path=names, remedy=remedy)
        self._names_file = names
        self._packer: Packer | None = None
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
        packer = self._begin(NS_PER_SECOND)
        self._dropped += packer.close()
        if self._names_file:
            with Sink.open(self._names_file) as sink:
                sink.write(_listing(self._listed))
        elif self._listed:
            self._dropped[NAMES_LOST] += len(self._listed)
        return +self._dropped

    def _begin(self, frequency: int, capture: Any = None) -> Packer:
        """Return the packer, created with the facts of the first capture."""
        if self._packer is None:
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
            self._packer = packer_of(self._form, self._sink, header, byte_order=self._byte_order)
        return self._packer

    # --- Captures with events ------------------------------------------------------------------

    def _write_events(self, capture: Capture) -> None:
        trace = whole_of(capture)
        frequency = trace.frequency
        packer = self._begin(frequency, trace)
        rate = frequency or NS_PER_SECOND
        wanted_rate = self._frequency or NS_PER_SECOND
        if rate != wanted_rate:
            self._dropped[FREQUENCIES] += 1
        packer.add_koids(*trace.event_threads())
        # Behind captures of other formats, whose functions were numbered from 1 on, functions get
        # numbers behind those.
        shift = self._last if self._names else 0
        if shift:
            self._dropped["numbers of functions"] += len(trace.table("xray_functions"))
        for events in chosen_events(capture):
            function = events.function
            has_function = events.kind <= ARGUMENT
            greatest_id = int(function[has_function].max(initial=0))
            self._last = max(self._last, shift + greatest_id)
            if shift:
                function = np.where(has_function, function + np.uint32(shift), function)
            tsc = converted(events.tsc, rate, wanted_rate)
            renumbered = events._replace(function=function, tsc=tsc)
            packer.write(renumbered, trace.payloads)
        self._list_functions(trace, shift)

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
        packer = self._begin(NS_PER_SECOND)
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
        packer.add_koids(calls.pids, calls.tids)
        number_of_function = np.array([*numbers, 0], np.uint32)
        for events in parts_of(calls.events, AT_ONCE):
            has_function = events.kind <= ARGUMENT
            own_numbers = number_of_function[events.function]
            function = np.where(has_function, own_numbers, events.function)
            tsc = converted(events.tsc, NS_PER_SECOND, wanted)
            renumbered = events._replace(function=function, tsc=tsc)
            packer.write(renumbered, calls.payloads)

    def _listed_as(self, number: int, name: bytes) -> int:
        self._listed[number] = name
        return number


def converted(ticks: NDArray[np.uint64], rate: int, wanted_rate: int) -> NDArray[np.uint64]:
    """Return ticks of one frequency in another, rounded to the nearest and clamped to 64 bits.

    Takes and returns uint64 of shape (n,).
    """
    if rate == wanted_rate or not ticks.size:
        return ticks
    half = rate // 2
    greatest_seconds = int(ticks.max()) // rate
    products_fit = rate * wanted_rate <= U64_MAX // 2
    if products_fit and (greatest_seconds + 1) * wanted_rate <= U64_MAX:
        divisor = np.uint64(rate)
        factor = np.uint64(wanted_rate)
        seconds, remainder = np.divmod(ticks, divisor)
        fraction = (remainder * factor + np.uint64(half)) // divisor
        return seconds * factor + fraction
    exact = ((tick * wanted_rate + half) // rate for tick in ticks.tolist())
    return np.array([min(tick, U64_MAX) for tick in exact], np.uint64)


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
    lines = [csv_line(("function_id", "name"))]
    for number, name in sorted(names.items()):
        lines.append(csv_line((number, name.decode(errors="surrogateescape"))))
    return b"".join(lines)


open_merge, open_merge_basic = (partial(Merger, form) for form in FORMS)
