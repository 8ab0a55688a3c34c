"""The reader and the writer pass the contracts of fxframework, on files of Wireshark's tools.

``tests/files`` is what text2pcap 4.0 made of random bytes (``nano``, ``udp``), and what editcap and
mergecap 4.0 made of these: packets cut to 40 bytes with comments, several interfaces, keys.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fx_pcapng import plugin
from fx_pcapng.capture import FORMAT, nanoseconds
from fxframework.host import Host
from fxframework.testing import Expected, ReaderContract, Sample, WriterContract
from fxframework.wire.encoder import Encoder

FILES = {path.name: path.read_bytes() for path in sorted(Path(__file__).parent.glob("files/*"))}
NS = 1_700_000_000_000_000_007


def of_json(*records: Mapping[str, Any]) -> bytes:
    encoder = Encoder(FORMAT)
    return b"".join(encoder.encode(record) for record in records)


def section(order: str = "little") -> dict[str, Any]:
    return {"record": "section", "order": order, "major": 1, "minor": 0, "length": -1,
            "options": []}  # fmt: skip


def interface(*options: dict[str, Any]) -> dict[str, Any]:
    return {"record": "interface", "link_type": 1, "snap_length": 0, "options": list(options)}


def packet(ticks: int, data: str = "0102030405", interface: int = 0) -> dict[str, Any]:
    return {"record": "packet", "interface": interface, "time_high": ticks >> 32,
            "time_low": ticks & 0xFFFFFFFF, "original": 60, "data_hex": data,
            "options": []}  # fmt: skip


NANO = {"type": "resolution", "exponent": 9, "binary": False}
EVERY_BLOCK = (
    section("big"),
    interface({"type": "name", "text": "eth0"}, NANO, {"type": "offset", "seconds": 1}),
    packet(5),
    {"record": "simple_packet", "original": 4, "data_hex": "01020304"},
    {"record": "names", "records": [{"type": "other_option", "code": 0, "data_hex": ""}]},
    {"record": "statistics", "interface": 0, "time_high": 0, "time_low": 1, "options": []},
    {"record": "journal", "entry_hex": "5f5f0a00"},
    {"record": "secrets", "secrets_type": 0x544C534B, "data_hex": "61", "options": []},
    {"record": "custom", "enterprise": 32473, "data_hex": "00000000"},
    {"record": "custom_not_copied", "enterprise": 32473, "data_hex": ""},
    section(),
    interface(),
    {"record": "old_packet", "interface": 0, "drops": 1, "time_high": 0, "time_low": 7,
     "original": 3, "data_hex": "070707", "options": [{"type": "comment", "text": "é"}]},
)  # fmt: skip
KNOWN = Expected(
    kinds={"section": 1, "interface": 1, "packet": 2},
    rows={"instants": 2, "pcapng_interfaces": 1},
    values={
        "instants": [
            {"ts": NS, "pcapng_length": 60, "pcapng_interface": 0, "name": "packet"},
            {"ts": NS + 1, "pcapng_length": 60},
        ]
    },
    findings=[],
)
SOUND = of_json(section(), interface(NANO), packet(NS), packet(NS + 1, "00"))


def samples() -> Iterator[Sample]:
    yield Sample("two.pcapng", SOUND, expected=KNOWN)
    yield Sample("every-block.pcapng", of_json(*EVERY_BLOCK))
    for name, data in FILES.items():
        yield Sample(name, data)
    yield Sample("cut-off.pcapng", SOUND[:-7], sound=False)
    yield Sample("no-interface.pcapng", of_json(section(), packet(1, interface=3)), sound=False)
    unknown = struct.pack("<IIII", 0x0BADCAFE, 16, 0, 16)
    yield Sample("unknown.pcapng", SOUND + unknown + SOUND, sound=False)


class TestReader(ReaderContract):
    plugin = "fx_pcapng.plugin"
    format = "pcapng"

    def samples(self) -> Iterator[Sample]:
        return samples()


class TestWriter(WriterContract):
    plugin = "fx_pcapng.plugin"
    format = "pcapng"

    def samples(self) -> Iterator[Sample]:
        return samples()

    def records(self) -> Iterator[dict[str, Any]]:
        yield from EVERY_BLOCK

    def many(self) -> Iterator[dict[str, Any]]:
        yield from (section(), interface(NANO))
        yield from (packet(NS + number, "00" * 1400) for number in itertools.count())

    def refused(self) -> Iterator[tuple[dict[str, Any], str]]:
        yield {"record": "block"}, "PCNG0401"
        yield {**section(), "order": "middle"}, "PCNG0403"
        yield {**packet(1), "time_low": 1 << 32}, "PCNG0404"
        yield {"record": "simple_packet", "original": 1, "data_hex": "01"}, "PCNG0404"


@pytest.mark.parametrize(
    ("ticks", "exponent", "binary", "ns"),
    [
        (7, 0, False, 7_000_000_000),
        (7, 9, False, 7),
        (7_999, 12, False, 7),
        (7, 127, False, 0),
        (3, 1, True, 1_500_000_000),
        ((5 << 33) + 1, 33, True, 5_000_000_000),
        ((5 << 40) + (1 << 39), 40, True, 5_500_000_000),
    ],
)
def test_times_are_exact(ticks: int, exponent: int, binary: bool, ns: int) -> None:
    column = np.array([ticks], np.uint64)
    assert nanoseconds(column, exponent, binary, 0).tolist() == [ns]
    two_seconds_earlier = nanoseconds(column, exponent, binary, -2)
    assert two_seconds_earlier.tolist() == [ns - 2_000_000_000]


def test_interfaces_are_numbered_through_all_sections() -> None:
    data = of_json(*EVERY_BLOCK)
    host = Host(discover=False)
    host.register(plugin, name="pcapng")
    with host.open(data) as capture:
        table = capture.table("instants")
        assert table.array("pcapng_interface").tolist() == [0, 1]
        assert table.array("ts").tolist() == [1_000_000_005, 7000]
        assert len(capture.table("pcapng_interfaces")) == 2
