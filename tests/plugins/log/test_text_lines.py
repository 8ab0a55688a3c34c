"""Lines by templates: they are what lines made of one row after another are."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx_log.export import presentation
from fx_log.export import text as text_export
from fx_log.export.lines import VERBOSITY, LineExport
from fx_log.export.presentation import Forms, Head, Texts, leaf, rust_double, shown_values, walk
from fx_log.export.text import MONIKER, plain
from fx_log.severity import LEVELS
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.table import Table
from fxframework.registry import parse_options

from ...cases import cases
from .captures import Arg, Log, export, exporter, hand_made, logs

TEXT = exporter("text")
COLOURS = {"TRACE": 95, "DEBUG": 94, "INFO": None, "WARN": 33, "ERROR": 31, "FATAL": "97;41"}
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        name: st.booleans()
        for name in ("show_metadata", "show_full_moniker", "show_tags", "show_file", "color")
    },
)


class RowByRow(LineExport):
    """Writes lines on the clock of the capture, one after another."""

    def _pieces(self, capture: Capture) -> Iterator[bytes]:
        self.texts = Texts(capture.strings, self._dropped)
        self.names = self.texts.pooled(plain)
        self.tags = self.texts.tags(plain)
        self.monikers: dict[int, str] = {}
        for batch in walk(capture, self.arguments, self._dropped):
            messages = batch.messages.shown(self.message, self.texts)
            for row in batch.rows(batch.ts.tolist(), messages):
                yield f"{self.line(*row)}\n".encode()

    def arguments(self, args: Table) -> Sequence[tuple[str, str]]:
        forms = Forms(string=self.names, integer=str, double=rust_double,
                      data=lambda data: f"[{data.hex()}]", true="true", false="false",
                      null="null")  # fmt: skip
        keys = [self.names[code] for code in args.array("name").tolist()]
        shown = shown_values(args, forms)
        return [(key, f" {key}={value}") for key, value in zip(keys, shown, strict=True)]

    def message(self, message: str) -> str:
        shown, nul, rest = message.partition("\0")
        self._dropped["ends of messages, behind a NUL"] += bool(nul and rest)
        return plain(shown)

    def moniker(self, code: int) -> str:
        if code not in self.monikers:
            found = self.names[code]
            found = found if self._options["show_full_moniker"] else leaf(found)
            self.monikers[code] = f"{found[:MONIKER]}..." if len(found) > MONIKER else found
            lost = "ends of monikers of more than 1000 characters"
            self._dropped[lost] += len(found) > MONIKER
        return self.monikers[code]

    def head(self, head: Head) -> str:
        found = ""
        if self._options["show_metadata"]:
            pid, tid = ("" if each is None else each for each in (head.pid, head.tid))
            found += f"[{pid}][{tid}]"
        moniker = self.moniker(head.component)
        found += f"[{moniker}]"
        tags = [self.tags[tag] for tag in head.tags] if self._options["show_tags"] else []
        if others := [tag for tag in tags if tag != moniker]:
            found += f"[{','.join(others)}]"
        found += f" {LEVELS[head.severity].name}: "
        if self._options["show_file"] and head.file >= 0:
            line = "" if head.line is None else f"({head.line})"
            found += f"[{self.names[head.file]}{line}] "
        return found if head.has_message else f"{found}<missing message>"

    def line(
        self, ns: int, key: Any, message: str, args: Any, dropped: int, rolled: int, verbosity: int
    ) -> str:
        head = Head.of(key)
        if verbosity:
            args = [*args, (VERBOSITY, f" {VERBOSITY}={verbosity}")]
        micros = max(ns, 0) // 1000
        line = f"[{micros // 10**6:05d}.{micros % 10**6:06d}]{self.head(head)}{message}"
        line += "".join(shown for _, shown in sorted(args, key=itemgetter(0)))
        coloured = self._options["color"]
        for word, count in (("dropped", dropped), ("rolled", rolled)):
            if count:
                line += ("\x1b[0m\x1b[33m" if coloured else "") + f" [{word}={count}]"
        if not coloured:
            return line
        colour = COLOURS[LEVELS[head.severity].name]
        if colour:
            line = f"\x1b[{colour}m{line}"
        return f"{line}\x1b[0m" if "\x1b[" in line else line


def both_ways(some: list[Log], options: dict[str, Any]) -> list[tuple[bytes, Any]]:
    sink = Sink.memory()
    row_by_row = RowByRow(sink, parse_options(options, TEXT.options, whose="text"))
    row_by_row.write(hand_made(*some))
    dropped: Mapping[str, int] = row_by_row.close()
    return [export(TEXT, hand_made(*some), **options), (sink.getvalue(), dropped)]


@given(some=st.lists(logs, min_size=1, max_size=12), options=OPTIONS)
def test_any_logs(some: list[Log], options: dict[str, Any]) -> None:
    bulk, single = both_ways(some, options)
    assert bulk == single


PLAIN = [
    Log(ts=5, message="x", args=[Arg(name=f"k{n % 7}", value=n) for n in range(31)]),
    Log(ts=10**14, message="x", args=[Arg(name=f"k{n}", value=n) for n in range(33)]),
    Log(ts=-1, component="core/net", tags=["net", "core/net", "dns", ""], message=""),
    Log(ts=(1 << 63) - 1, component="a/", pid=(1 << 64) - 1, tid=0, message="~ !"),
    Log(file="a.cc", line=(1 << 32) - 1, severity=0x50),
    Log(file="a.cc", severity=255, dropped=(1 << 64) - 1, rolled_out=1),
    Log(component="m" * 1000, message="x"),
    *(Log(message="x", args=[Arg(name="d", value=v)]) for v in (0.5, 5.0, 1e300, -0.0, 1e-9)),
    Log(args=[Arg(name="b", value=True), Arg(name="a", value=None), Arg(name="", value=-5)]),
]
OTHER = [
    Log(component="m" * 1001, message="x"),
    Log(message="caf\u00e9"),
    Log(message="a\0b"),
    Log(message="x", verbosity=3),
    Log(message="x", tags=["a\nb"]),
    Log(message="x", args=[Arg(name="b", value=b"\1" * 8, type=7)]),
    Log(message="x", args=[Arg(name="\x7f", value=1)]),
    Log(message=b"\xff"),
]


@cases("rows", [1, 7, 1 << 14])
def test_plain_rows_and_others_in_every_order(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(presentation, "ROWS", rows)
    rng = random.Random(rows)
    for _ in range(8):
        some = rng.choices(PLAIN + OTHER, k=60)
        for full in (True, False):
            bulk, single = both_ways(some, {"show_full_moniker": full})
            assert bulk == single


def test_texts_that_are_forgotten_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    some = PLAIN[:5] + OTHER * 30 + PLAIN * 20 + OTHER[:1]
    expected = both_ways(some, {})[1]
    monkeypatch.setattr(text_export, "KEPT", 0)
    monkeypatch.setattr(presentation, "ROWS", 9)
    assert both_ways(some, {})[0] == expected


def written(data: bytes) -> bytes:
    from fxframework.host import default_host
    from fxframework.registry import parse_options

    class Sink:
        data = b""

        def write(self, data: Any) -> None:
            self.data += bytes(data)

    host = default_host()
    chosen = next(each for each in host.exporters if (each.name, each.accepts) == ("text", "log"))
    sink = Sink()
    with host.open(data, format="log") as capture:
        session = chosen.open(sink, parse_options({}, chosen.options, whose="text"))
        if capture.summary().rows["logs"]:
            session.write(capture)
        session.close()
    return sink.data
