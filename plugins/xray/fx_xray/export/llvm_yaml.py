"""The exporter `yaml`: YAML as `llvm-xray convert -f yaml` writes and reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fx_xray.export.presentation import (
    CUSTOM,
    HELD,
    TYPED,
    Batch,
    Calls,
    SingleExport,
    argument_members,
    names_of,
    text_of,
    walk,
    who,
    whole_of,
)
from fx_xray.format import BASIC, FDR
from fx_xray.read.yaml_text import quoted
from fxframework.io.sink import Sink
from fxframework.kernels.parts import NATURAL, TEXT
from fxframework.kernels.templates import Templates
from fxframework.kit.in_time import Events, InTime
from fxframework.kit.row_texts import Numbered
from fxframework.model.capture import Capture, View
from fxframework.model.clock import NS_MAX

I64 = NDArray[np.int64]
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
        whole = whole_of(capture)
        version = READABLE if self._readable else whole.version
        header_type = FDR
        if whole.summary().facts["mode"] == "basic":
            header_type = BASIC
        self._put(
            [
                "---",
                "header:",
                f"  version:         {version}",
                f"  type:            {header_type}",
                f"  constant-tsc:    {_yaml_bool(whole.constant_tsc)}",
                f"  nonstop-tsc:     {_yaml_bool(whole.nonstop_tsc)}",
                f"  cycle-frequency: {whole.frequency}",
            ]
        )
        lines = _Lines(capture, self._dropped)
        # The earliest time from each batch on, and one later than any other.
        earliest = [_order(batch.tsc).min() for batch, _ in _shown(capture, Counter())]
        bounds = [*np.minimum.accumulate(earliest[::-1])[::-1].tolist(), NS_MAX + 1]
        with InTime(self._emit) as ordered:
            for place, (batch, shown) in enumerate(_shown(capture, self._dropped)):
                events = lines.of(batch, shown)
                if self._sorted:
                    ordered.add(events, bounds[place + 1])
                else:
                    self._emit(events)
        self._put(["records:         []", "..."] if self._empty else ["..."])

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
        threads = [
            f", thread: {tid}, process: {pid}, kind: " if pid else f", thread: {tid}, kind: "
            for pid, tid in who(capture)
        ]
        self._calls, self._threads, self._kinds = (
            Numbered(self._templates, make, sparse=True)
            for make in (
                lambda function: f"type: 0, func-id: {function}, function: {names[function]}, ",
                threads.__getitem__,
                KINDS.__getitem__,
            )
        )

    def of(self, batch: Batch, shown: I64) -> Events:
        """Return the lines of some events of a batch, by their places."""
        templates = self._templates
        templates.forget(HELD)
        members = argument_members(templates, batch, shown, lambda _: "")
        kind = batch.kind[shown]
        function = batch.function[shown]
        calls = np.flatnonzero(kind < CUSTOM)
        others = np.flatnonzero(kind >= CUSTOM)
        heads, data = np.zeros((2, shown.size), np.int64)
        heads[calls] = self._calls(function[calls])[1]
        data[calls] = templates.text(b"''")
        heads[others] = templates.texts(
            [b"type: %d, func-id: 0, function: '0', " % type for type in function[others].tolist()]
        )
        payloads = [
            text_of(batch.payloads[place], self._dropped) for place in shown[others].tolist()
        ]
        data[others] = templates.texts([quoted(text).encode() for text in payloads])
        starts, ends = templates.write(
            shown.size,
            b"  - { ",
            (TEXT, heads),
            *members,
            b"cpu: ",
            (NATURAL, batch.cpu[shown]),
            self._threads(batch.thread[shown]),
            self._kinds(kind),
            b", tsc: ",
            (NATURAL, batch.tsc[shown]),
            b", data: ",
            (TEXT, data),
            b" }\n",
        )
        none = np.zeros((0, shown.size), np.int64)
        return Events(_order(batch.tsc[shown]), templates.letters(), starts, ends - starts, none)


def _order(tsc: NDArray[np.uint64]) -> I64:
    """Return signed numbers in the order of ticks."""
    return (tsc ^ np.uint64(1 << 63)).view(np.int64)


def _yaml_bool(value: object) -> str:
    return "true" if value else "false"


def _shown(capture: Capture, dropped: Counter[str]) -> Iterator[tuple[Batch, I64]]:
    """Yield the events of a capture, and the places of those that belong to it."""
    calls = Calls(capture) if isinstance(capture, View) else None
    for batch in walk(capture, dropped):
        shown = np.arange(len(batch)) if calls is None else np.flatnonzero(calls.match(batch).shown)
        if shown.size:
            yield batch, shown
