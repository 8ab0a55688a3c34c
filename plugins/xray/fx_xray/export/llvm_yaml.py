"""The exporter `yaml`: YAML as `llvm-xray convert -f yaml` writes and reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fx_xray.export.presentation import (
    HELD,
    NOT_UTF8,
    Batch,
    SingleExport,
    argument_members,
    names_of,
    process_and_thread_ids,
    walk_chosen,
)
from fx_xray.format import BASIC, CUSTOM, FDR, TYPED
from fx_xray.read.capture import EventCapture
from fx_xray.read.views import whole_of
from fx_xray.read.yaml_text import quoted
from fxframework.io.sink import Sink
from fxframework.kernels.arrays import I64
from fxframework.kernels.parts import NATURAL, TEXT
from fxframework.kernels.templates import Templates
from fxframework.kit.export import decoded
from fxframework.kit.in_time import Events, InTime
from fxframework.kit.row_texts import Numbered
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX

READABLE: Final = "1"
"""The version that llvm-xray reads back."""
KINDS: Final[Mapping[int, str]] = {
    0: "function-enter",
    1: "function-exit",
    2: "function-tail-exit",
    3: "function-enter-arg",
    CUSTOM: "custom-event",
    TYPED: "typed-event",
}


class YamlExport(SingleExport):
    """Writes the YAML that `llvm-xray convert -f yaml` writes, and reads back."""

    what = "YAML of llvm-xray"

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._readable = options["header_version"] == READABLE
        self._sorted = options["sort"]
        self._empty = True

    def _write(self, capture: Capture) -> None:
        self._put(["---", *self._header(whole_of(capture))])
        lines = _Lines(capture, self._dropped)
        earliest = [_order(batch.tsc).min() for batch in walk_chosen(capture, Counter())]
        # Minima from the end: no event from a batch on is earlier than the batch's bound.
        bounds = np.minimum.accumulate(earliest[::-1])[::-1].tolist()
        bounds.append(NS_MAX + 1)
        with InTime(self._emit) as ordered:
            for batch_number, batch in enumerate(walk_chosen(capture, self._dropped)):
                events = lines.of(batch)
                if self._sorted:
                    ordered.add(events, bounds[batch_number + 1])
                else:
                    self._emit(events)
        if self._empty:
            self._put(["records:         []"])
        self._put(["..."])

    def _header(self, trace: EventCapture) -> list[str]:
        """Return the lines of the header."""
        version = READABLE if self._readable else trace.version
        header_type = BASIC if trace.summary().facts["mode"] == "basic" else FDR
        return [
            "header:",
            f"  version:         {version}",
            f"  type:            {header_type}",
            f"  constant-tsc:    {_yaml_bool(trace.constant_tsc)}",
            f"  nonstop-tsc:     {_yaml_bool(trace.nonstop_tsc)}",
            f"  cycle-frequency: {trace.frequency}",
        ]

    def _emit(self, events: Events) -> None:
        if self._empty:
            self._put(["records:"])
            self._empty = False
        self._sink.write(events.text().data.data)


class _Lines:
    """Renders events as lines."""

    def __init__(self, capture: Capture, dropped: Counter[str]) -> None:
        self._dropped = dropped
        self._templates = Templates(b"args: [ ", b", ", b" ], ")
        names = names_of(capture, quoted, dropped)
        threads = [_thread_members(pid, tid) for pid, tid in process_and_thread_ids(capture)]
        numbered = partial(Numbered, self._templates, sparse=True)
        self._calls = numbered(
            lambda function: f"type: 0, func-id: {function}, function: {names[function]}, "
        )
        self._threads = numbered(threads.__getitem__)
        self._kinds = numbered(KINDS.__getitem__)

    def of(self, batch: Batch) -> Events:
        """Return the lines of the events of a batch."""
        templates = self._templates
        templates.forget(HELD)
        count = len(batch)
        members = argument_members(templates, batch, np.arange(count), lambda _: "")
        kind = batch.kind
        function = batch.function
        tsc = batch.tsc
        calls = np.flatnonzero(kind < CUSTOM)
        payload_events = np.flatnonzero(kind >= CUSTOM)
        heads = np.zeros(count, np.int64)
        data = np.zeros(count, np.int64)
        heads[calls] = self._calls(function[calls])[1]
        data[calls] = templates.text(b"''")
        event_types = function[payload_events].tolist()
        heads[payload_events] = templates.texts(
            [b"type: %d, func-id: 0, function: '0', " % event_type for event_type in event_types]
        )
        data[payload_events] = templates.texts(
            [self._payload(batch, place) for place in payload_events.tolist()]
        )
        starts, ends = templates.write(
            count,
            b"  - { ",
            (TEXT, heads),
            *members,
            b"cpu: ",
            (NATURAL, batch.cpu),
            self._threads(batch.thread),
            self._kinds(kind),
            b", tsc: ",
            (NATURAL, tsc),
            b", data: ",
            (TEXT, data),
            b" }\n",
        )
        no_keys = np.zeros((0, count), np.int64)
        return Events(_order(tsc), templates.letters(), starts, ends - starts, no_keys)

    def _payload(self, batch: Batch, place: int) -> bytes:
        return quoted(decoded(batch.payloads[place], self._dropped, NOT_UTF8)).encode()


def _order(tsc: NDArray[np.uint64]) -> I64:
    """Return signed numbers in the order of ticks."""
    return (tsc ^ np.uint64(1 << 63)).view(np.int64)


def _yaml_bool(value: object) -> str:
    return "true" if value else "false"


def _thread_members(pid: int, tid: int) -> str:
    """Return the members of a thread, and the key of the kind; process 0 is unknown."""
    process = f", process: {pid}" if pid else ""
    return f", thread: {tid}{process}, kind: "
