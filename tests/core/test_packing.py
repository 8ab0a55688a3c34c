"""Compressed inputs and outputs: gzip and zstd alike, damage located, bombs bounded."""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

import fxframework as fxf
from fxframework.errors import LimitError
from fxframework.io.limits import Limits
from fxframework.io.packing import PACKINGS, Packing
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.testing.cli import run_cli

from ..cases import cases

DATA = bytes(range(256)) * 8192


def packed(packing: Packing, data: bytes) -> bytes:
    out = io.BytesIO()
    with packing.packer(out) as file:
        file.write(data)
    return out.getvalue()


every = pytest.mark.parametrize("packing", PACKINGS, ids=lambda each: each.name)


@every
@cases(
    ("spoil", "size", "message"),
    [
        (lambda one: one, len(DATA), None),
        (lambda one: one + one, 2 * len(DATA), None),
        (lambda one: one + bytes(100), len(DATA), None),
        (lambda one: one + b"other bytes", len(DATA), "other bytes follow"),
        (lambda one: one[:-2], len(DATA), "too early"),
        (lambda one: one + one[: len(one) // 2], None, "too early"),
        (lambda one: one[:-1] + bytes([one[-1] ^ 1]), len(DATA), ""),
        (lambda one: one + one[:-1] + bytes([one[-1] ^ 1]), 2 * len(DATA), ""),
    ],
    ids=["whole", "two", "padded", "trailing", "cut", "second-cut", "checksum", "second-checksum"],
)
def test_members_are_unpacked_up_to_the_damage(
    packing: Packing, spoil: Callable[[bytes], bytes], size: int | None, message: str | None
) -> None:
    with_faults = Source.open(spoil(packed(packing, DATA)))
    assert with_faults.unpacked
    if size is not None:
        assert with_faults.size == size
    whole = DATA * 2
    assert with_faults.read(0, len(whole)) == whole[: with_faults.size]
    assert [fault.rule.code for fault in with_faults.faults] == (
        [] if message is None else ["FXF0101"]
    )
    assert all((message or "") in fault.message for fault in with_faults.faults)


def test_gzip_is_unpacked_up_to_the_byte_that_is_damaged() -> None:
    data = random.Random(7).choices(b"abcdefgh", k=100_000)
    whole = gzip.compress(bytes(data))
    for place in (500, len(whole) // 2, len(whole) - 8):
        damaged = bytearray(whole)
        damaged[place : place + 4] = b"\xff\xff\xff\xff"
        byte_by_byte = zlib.decompressobj(wbits=31)
        expected = bytearray()
        with contextlib.suppress(zlib.error):
            for byte in damaged:
                expected += byte_by_byte.decompress(bytes([byte]))
        source = Source.open(bytes(damaged))
        assert source.read(0, source.size) == expected
        assert [fault.offset for fault in source.faults] == [len(expected)]


@every
def test_a_bomb_is_refused_before_it_is_held(packing: Packing) -> None:
    bomb = packed(packing, bytes(1 << 26))
    with pytest.raises(LimitError, match="has more than 1000000 bytes"):
        Source.open(bomb, limits=Limits(max_unpacked=1_000_000))
    assert Source.open(bomb).size == 1 << 26


@every
def test_bytes_that_only_begin_like_it_are_read_as_they_are(packing: Packing) -> None:
    source = Source.open(packing.magic + b"\xff" * 20)
    assert (source.unpacked, source.size) == (False, len(packing.magic) + 20)


def test_a_skippable_frame_of_zstd_is_skipped() -> None:
    zstd = PACKINGS[1]
    skippable = b"\x51*M\x18" + (5).to_bytes(4, "little") + b"hello"
    source = Source.open(packed(zstd, DATA) + skippable + packed(zstd, b"end"))
    assert source.read(0, source.size + 1) == DATA + b"end"
    assert not source.faults


@every
def test_sinks_pack_by_suffix_whole_or_not_at_all(packing: Packing, tmp_path: Path) -> None:
    path = tmp_path / f"a{packing.suffix.upper()}"
    with Sink.open(path) as sink:
        sink.write(DATA)
        assert not path.exists()
    first = path.read_bytes()
    assert Source.open(path).read(0, len(DATA) + 1) == DATA
    sink = Sink.open(path, force=True)
    sink.write(b"never")
    sink.abort()
    with Sink.open(path, force=True) as sink:
        sink.write(DATA)
    assert path.read_bytes() == first
    assert list(tmp_path.iterdir()) == [path]
    tool = shutil.which(packing.name)
    if tool is not None:
        theirs = subprocess.run([tool, "-dc"], input=first, capture_output=True, check=True)
        assert theirs.stdout == DATA


def test_every_command_takes_and_makes_zst(tmp_path: Path) -> None:
    capture = gzip.decompress(
        (Path(__file__).parents[2] / "examples/magic_trace_sample.fxt.gz").read_bytes()
    )[: 8 * 3000]
    (tmp_path / "a.fxt").write_bytes(capture)
    out = tmp_path / "b.fxt.zst"
    assert run_cli("convert", str(tmp_path / "a.fxt"), str(out)).exit_code in {0, 3}
    assert out.read_bytes().startswith(PACKINGS[1].magic)
    with fxf.open(out) as one, fxf.open(capture) as other:
        assert (one.format, one.source.size) == ("trace", len(capture))
        assert one.summary().kinds == other.summary().kinds
    assert run_cli("info", str(out)).exit_code in {0, 3}
