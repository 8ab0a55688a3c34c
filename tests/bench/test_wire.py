"""How fast declared formats are decoded: ratios against a copy in the same run.

Run with ``tox run -e bench`` or ``pytest -m bench -s``.
"""

from __future__ import annotations

import pytest

from fx_pcapng.capture import FORMAT as PCAPNG
from fxframework import wire
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.wire.capture import open_capture
from fxframework.wire.encoder import Encoder
from fxframework.wire.format import Format

from .yardstick import MEGABYTES, Say, copied, least

names = wire.table("name")


class Drum(wire.Record, size=24):
    """The records of the template."""

    _kind = wire.kind(wire.bits(0, 7))


class Name(Drum, kind=1):
    """A text that events refer to."""

    number: int = wire.bits(8, 23)
    text: str = wire.text(16, pad=b"\0", defines=names[number])


class Event(Drum, kind=2):
    """A moment with a value."""

    name: str = wire.bits(8, 23, refers=names)
    time: int = wire.i64(unit="ns")
    value: int = wire.u64()


DRUMS = wire.Format(
    "drums",
    "Drums",
    Drum,
    codes="DRUM",
    magic=b"DRUMLOG1",
    tables=[wire.rows("instants", Event, ts="time", name="name", scope=2, drums_value="value")],
)


def drums() -> bytes:
    return DRUMS.sample(MEGABYTES * 1_000_000)


def packets() -> bytes:
    encoder = Encoder(PCAPNG)
    head = [
        {"record": "section", "order": "little", "major": 1, "minor": 0, "length": -1},
        {"record": "interface", "link_type": 1, "snap_length": 0},
    ]
    begin = b"".join(encoder.encode({**each, "options": []}) for each in head)
    packet = {"record": "packet", "interface": 0, "time_high": 1, "original": 90, "options": []}
    some = b"".join(
        encoder.encode({**packet, "time_low": n, "data_hex": bytes(40 + n % 50).hex()})
        for n in range(1000)
    )
    return begin + some * (MEGABYTES * 1_000_000 // len(some))


SAMPLES = {"drums": (DRUMS, drums), "pcapng": (PCAPNG, packets)}


@pytest.mark.parametrize("name", SAMPLES)
def test_columns_and_lines(name: str, say: Say) -> None:
    format, make = SAMPLES[name]
    data = make()

    def columns() -> int:
        capture = open_capture(format, Source.open(data), OpenRequest())
        table = capture.table("instants")
        assert all(len(table[column]) == len(table) for column in table.columns)
        assert not capture.first_pass().handed * 100 > len(table)
        return len(table)

    def lines(format: Format = format) -> int:
        capture = open_capture(format, Source.open(data), OpenRequest())
        return sum(map(len, capture.records_json()))

    rows = columns()
    seconds = least(columns, 5)
    ratio = seconds / copied(len(data))
    say(f"{name}: {ratio:.1f} x copying, {rows / seconds / 1e6:.1f} M rows/s")
    json = least(lines, 2)
    say(f"{name}: record JSON, {rows / json / 1e6:.1f} M records/s")
    assert rows > 0
