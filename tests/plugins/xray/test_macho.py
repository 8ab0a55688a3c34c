"""Instrumentation maps of macOS: images that ld64.lld 19 linked, files of slices, damage."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from fx_xray.read.instr_map import InstrumentationMap, read_map
from fxframework.errors import UnreadableError

from ...cases import cases

MAPS = Path(__file__).parents[2] / "conformance" / "xray" / "instr_map"
MACHINES = {"x86_64": 0x01000007, "arm64": 0x0100000C}
IMAGES = {name: (MAPS / f"macho-{name}").read_bytes() for name in MACHINES}


def yaml_of(found: InstrumentationMap) -> str:
    return b"".join(found.to_yaml()).decode()


def read(folder: Path, data: bytes) -> InstrumentationMap:
    path = folder / "image"
    path.write_bytes(data)
    return read_map(str(path))


def fat(slices: dict[str, bytes], *, wide: bool = False) -> bytes:
    """A file of several slices, as lipo writes it."""
    entry = struct.Struct(">2I2Q2I" if wide else ">5I")
    magic = 0xCAFEBABF if wide else 0xCAFEBABE
    table, body = b"", b""
    behind = 8 + entry.size * len(slices)
    for name, data in slices.items():
        figures = MACHINES[name], 3, behind + len(body), len(data), 12
        table += entry.pack(*figures, 0) if wide else entry.pack(*figures)
        body += data
    return struct.pack(">2I", magic, len(slices)) + table + body


def changed(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.count(old) == 1
    return data.replace(old, new)


@cases("machine", MACHINES)
def test_a_map_is_as_llvm_xray_says(machine: str) -> None:
    found = read_map(str(MAPS / f"macho-{machine}"))
    expected = (MAPS / f"macho-{machine}.yaml").read_text("utf-8")
    assert yaml_of(found) == expected
    assert not found.faults
    assert found.functions.of(4).linkage_name == "_ZNK2ns1A3getEv"
    assert found.functions.source(1) is None


@cases("wide", [False, True])
def test_slices_that_number_functions_alike_are_one_map(tmp_path: Path, wide: bool) -> None:
    found = read(tmp_path, fat(IMAGES, wide=wide))
    assert yaml_of(found) == yaml_of(read_map(str(MAPS / "macho-x86_64")))


def test_slices_that_number_functions_differently_are_refused(tmp_path: Path) -> None:
    other = changed(IMAGES["arm64"], b"__Z5plaini\0", b"__Z5plainj\0")
    with pytest.raises(UnreadableError, match="number functions differently") as caught:
        read(tmp_path, fat({**IMAGES, "arm64": other}))
    assert "lipo -thin arm64" in str(caught.value.remedy)


def test_an_object_is_refused(tmp_path: Path) -> None:
    image = IMAGES["arm64"]
    with pytest.raises(UnreadableError, match="an object that is not linked"):
        read(tmp_path, image[:12] + struct.pack("<I", 1) + image[16:])


@cases(
    ("data", "problem"),
    [
        (b"\xce\xfa\xed\xfe" + bytes(28), "not a Mach-O image of 64 bits"),
        (b"\xcf\xfa\xed\xfe" + bytes(20), "not a Mach-O image of 64 bits"),
        (struct.pack("<8I", 0xFEEDFACF, 18, 0, 2, 0, 0, 0, 0), "machine 0x12"),
        (struct.pack("<8I", 0xFEEDFACF, 0x01000007, 0, 2, 0, 0, 0, 0), "no section __DATA,xray"),
        (struct.pack("<8I", 0xFEEDFACF, 0x01000007, 0, 2, 1, 8, 0, 0), "commands are cut off"),
        (struct.pack("<10I", 0xFEEDFACF, 0x01000007, 0, 2, 1, 8, 0, 0, 2, 0), "does not fit"),
        (bytes.fromhex("cafebabe00000034") + bytes(40), "its 52 slices do not fit"),
        (bytes.fromhex("cafebabe00000001") + struct.pack(">5I", 7, 3, 0, 0, 0), "none of its"),
    ],
)
def test_what_is_no_image_is_refused(tmp_path: Path, data: bytes, problem: str) -> None:
    with pytest.raises(UnreadableError, match=problem):
        read(tmp_path, data)


def test_addresses_that_are_not_relative_are_read_if_nothing_is_left_to_the_linker(
    tmp_path: Path,
) -> None:
    """Entries of version 0 have addresses; with chained fixups these are something else."""
    image = bytearray(IMAGES["x86_64"])
    found = read_map(str(MAPS / "macho-x86_64"))
    assert found.sleds is not None
    entries = image.index(b"\1\2", 0x400) - 17
    sleds = zip(found.sleds.address.tolist(), found.sleds.function.tolist(), strict=True)
    for number, (address, function) in enumerate(sleds):
        at = entries + 32 * number
        image[at : at + 16] = struct.pack("<QQ", address, function)
        image[at + 18] = 0
    has_fixups = struct.pack("<II", 0x80000034, 16) in image
    if has_fixups:
        with pytest.raises(UnreadableError, match="chained fixups"):
            read(tmp_path, bytes(image))
        at = image.index(struct.pack("<II", 0x80000034, 16))
        image[at : at + 4] = struct.pack("<I", 0x29)
    again = read(tmp_path, bytes(image))
    assert yaml_of(again) == yaml_of(found).replace("version: 2", "version: 0")


def test_entries_of_no_known_kind_and_half_ones_are_left_out(tmp_path: Path) -> None:
    image = bytearray(IMAGES["x86_64"])
    image[image.index(b"\1\2", 0x400) - 1] = 9
    size_at = image.index(b"xray_instr_map") + 40
    (size,) = struct.unpack_from("<Q", image, size_at)
    struct.pack_into("<Q", image, size_at, size + 5)
    found = read(tmp_path, bytes(image))
    assert len(found.faults) == 2
    assert "5 bytes are left over" in str(found.faults[0])
    assert "kind 9" in str(found.faults[1])


def test_damage_gives_a_map_or_an_error(tmp_path: Path) -> None:
    """Sizes and places in a damaged image are claims: 1,000 changes, and every second cut."""
    chance = random.Random(1)
    image = IMAGES["x86_64"]
    damaged = [image[:size] for size in range(0, 0x700, 8)]
    for _ in range(1000):
        data = bytearray(image)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(0x600)
            data[at] = chance.choice((0, 0xFF, data[at] ^ 1 << chance.randrange(8)))
        damaged.append(bytes(data))
    read_ones = 0
    for data in damaged:
        try:
            found = read(tmp_path, data)
        except UnreadableError:
            continue
        read_ones += 1
        yaml_of(found)
    assert 100 < read_ones < len(damaged)
