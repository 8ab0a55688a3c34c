"""Packets of pcapng files are those that tshark shows, also after a change of the byte order."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from fx_pcapng import plugin
from fx_pcapng.capture import FORMAT
from fxframework.host import Host
from fxframework.wire.encoder import Encoder

from ..cases import cases

FILES = sorted(Path(__file__).parents[2].glob("examples/plugins/pcapng/tests/files/*.pcapng"))
FIELDS = ("frame.time_epoch", "frame.len", "frame.cap_len", "frame.interface_id")
Packets = list[tuple[int, int, int, int]]


@pytest.fixture(scope="module")
def tshark() -> str:
    found = shutil.which("tshark")
    if found is None:
        message = "tshark is not installed (Debian's tshark)"
        if os.environ.get("FXF_REQUIRE_ORACLES"):
            pytest.fail(message)
        pytest.skip(message)
    return found


def shown_by(tshark: str, path: Path) -> Packets:
    """Time in nanoseconds, lengths and interface of each packet."""
    fields = [each for name in FIELDS for each in ("-e", name)]
    done = subprocess.run(
        [tshark, "-n", "-r", path, "-T", "fields", *fields],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = []
    for line in done.stdout.splitlines():
        time, length, captured, interface = line.split("\t")
        seconds, _, fraction = time.partition(".")
        ns = int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
        found.append((ns, int(length), int(captured), int(interface)))
    return found


def read_by_us(data: bytes) -> Packets:
    host = Host(discover=False)
    host.register(plugin, name="pcapng")
    with host.open(data) as capture:
        table = capture.table("instants")
        columns: Iterator[list[int]] = (
            table.array(name).tolist() for name in ("ts", "pcapng_length", "pcapng_interface")
        )
        captured = table.array("pcapng_data")[:, 1].tolist()
        times, lengths, interfaces = columns
        return list(zip(times, lengths, captured, interfaces, strict=True))


def test_there_are_files() -> None:
    assert len(FILES) >= 5


@cases("path", FILES, ids=lambda path: path.stem)
def test_packets_are_those_of_tshark(path: Path, tshark: str) -> None:
    found = read_by_us(path.read_bytes())
    assert found
    assert found == shown_by(tshark, path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_tshark_reads_the_other_byte_order(path: Path, tshark: str, tmp_path: Path) -> None:
    from fxframework.io.source import Source
    from fxframework.wire.walk import Walk

    records = [record.to_json() for record, _ in Walk(FORMAT, Source.open(path))]
    for record in records:
        if record["record"] == "section":
            record["order"] = {"little": "big", "big": "little"}[record["order"]]
    encoder = Encoder(FORMAT)
    turned = tmp_path / "turned.pcapng"
    turned.write_bytes(b"".join(map(encoder.encode, orjson.loads(orjson.dumps(records)))))
    assert turned.read_bytes() != path.read_bytes()
    assert shown_by(tshark, turned) == shown_by(tshark, path) == read_by_us(turned.read_bytes())
