"""The exporter `yaml`: YAML as `llvm-xray convert -f yaml` writes and reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fx_xray.export.presentation import (
    CUSTOM,
    TYPED,
    Batch,
    Calls,
    Names,
    in_time,
    names_of,
    text_of,
    walk,
    who,
    whole_of,
)
from fx_xray.export.session import SingleExport
from fx_xray.format import BASIC, FDR
from fx_xray.read.yaml_text import quoted
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture, View

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

    def _write(self, capture: Capture) -> None:
        whole = whole_of(capture)
        version = READABLE if self._readable else whole.version
        basic = whole.summary().facts["mode"] == "basic"
        self._put(
            [
                "---",
                "header:",
                f"  version:         {version}",
                f"  type:            {BASIC if basic else FDR}",
                f"  constant-tsc:    {_yaml_bool(whole.constant_tsc)}",
                f"  nonstop-tsc:     {_yaml_bool(whole.nonstop_tsc)}",
                f"  cycle-frequency: {whole.frequency}",
            ]
        )
        names = names_of(capture, quoted, self._dropped)
        threads = [
            f"thread: {tid}, process: {pid}, " if pid else f"thread: {tid}, "
            for pid, tid in who(capture)
        ]
        heads: dict[int, str] = {}
        written = False

        lost: Counter[str] = Counter()

        def batches() -> Iterator[Batch]:
            lost.clear()  # called twice; the last pass counts
            return _shown(capture, lost)

        for batch in in_time(batches) if self._sorted else batches():
            if not written and len(batch):
                self._put(["records:"])
                written = True
            self._put(self._lines(batch, names, threads, heads))
        self._put(["..."] if written else ["records:         []", "..."])
        self._dropped += lost

    def _lines(
        self, batch: Batch, names: Names, threads: Sequence[str], heads: dict[int, str]
    ) -> list[str]:
        lines = []
        args, payloads = batch.args, batch.payloads
        for place, (kind, function, cpu, thread, tsc) in enumerate(
            zip(
                batch.kind.tolist(),
                batch.function.tolist(),
                batch.cpu.tolist(),
                batch.thread.tolist(),
                batch.tsc.tolist(),
                strict=True,
            )
        ):
            data = "''"
            if kind >= CUSTOM:
                head = f"type: {function}, func-id: 0, function: '0', "
                data = quoted(text_of(payloads[place], self._dropped))
            else:
                known = heads.get(function)
                if known is None:
                    known = heads[function] = (
                        f"type: 0, func-id: {function}, function: {names[function]}, "
                    )
                head = known
            values = f"args: [ {', '.join(map(str, args[place]))} ], " if place in args else ""
            lines.append(
                f"  - {{ {head}{values}cpu: {cpu}, {threads[thread]}"
                f"kind: {KINDS[kind]}, tsc: {tsc}, data: {data} }}"
            )
        return lines


def _yaml_bool(value: object) -> str:
    return "true" if value else "false"


def _shown(capture: Capture, dropped: Counter[str]) -> Iterator[Batch]:
    """Yield the events of a capture; of a view, those that belong to it."""
    if not isinstance(capture, View):
        yield from walk(capture, dropped)
        return
    calls = Calls(capture)
    for batch in walk(capture, dropped):
        shown = calls.match(batch).shown
        yield batch if shown.all() else batch.take(shown)
