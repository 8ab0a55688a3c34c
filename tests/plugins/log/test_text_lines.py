"""Lines in bulk: the kernel writes what `text` makes of one row after another."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fx_log.export import text as text_export
from fx_log.sample import sample
from fxframework.testing.kernels import plain_kernels

from .captures import Arg, Log, export, exporter, hand_made, logs
from .streams import damaged, log_files

TEXT = exporter("text")
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        name: st.booleans()
        for name in ("show_metadata", "show_full_moniker", "show_tags", "show_file")
    },
)


def both_ways(
    monkeypatch: pytest.MonkeyPatch, some: list[Log], options: dict[str, Any]
) -> list[tuple[bytes, Any]]:
    found = []
    for bulk in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr(text_export, "BULK", bulk)
            found.append(export(TEXT, hand_made(*some), **options))
    return found


@settings(max_examples=150, deadline=None)
@given(some=st.lists(logs, min_size=1, max_size=12), options=OPTIONS)
def test_any_logs(some: list[Log], options: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        bulk, single = both_ways(patch, some, options)
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


def test_plain_rows_and_others_in_every_order(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    for _ in range(20):
        some = rng.choices(PLAIN + OTHER, k=60)
        for full in (True, False):
            bulk, single = both_ways(monkeypatch, some, {"show_full_moniker": full})
            assert bulk == single


def test_stretches_of_other_rows_and_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    some = PLAIN[:5] + OTHER * 300 + PLAIN * 20 + OTHER[:1]
    expected = both_ways(monkeypatch, some, {})[1]
    monkeypatch.setattr(text_export, "PIECE", 500)
    assert both_ways(monkeypatch, some, {})[0] == expected


def written(data: bytes) -> bytes:
    from fx_log.export import text
    from fxframework.host import Host
    from fxframework.registry import parse_options

    class Sink:
        data = b""

        def write(self, data: Any) -> None:
            self.data += bytes(data)

    host = Host()
    chosen = next(each for each in host.exporters if (each.name, each.accepts) == ("text", "log"))
    sink = Sink()
    before, text.BULK = text.BULK, True  # type: ignore[misc]
    try:
        with host.open(data, format="log") as capture:
            session = chosen.open(sink, parse_options({}, chosen.options, whose="text"))
            if capture.summary().rows["logs"]:
                session.write(capture)
            session.close()
    finally:
        text.BULK = before  # type: ignore[misc]
    return sink.data


@settings(max_examples=20, deadline=None)
@given(data=log_files() | damaged(log_files()))
def test_compiled_and_plain_agree(data: bytes) -> None:
    compiled = written(data)
    with plain_kernels():
        assert written(data) == compiled


def test_compiled_and_plain_agree_on_typical_logs() -> None:
    compiled = written(sample(50_000))
    assert compiled.count(b"\n") == 280
    with plain_kernels():
        assert written(sample(50_000)) == compiled
