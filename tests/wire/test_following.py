"""Following of declared formats: what is read as a file grows is what the whole file has."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from tests.wire.test_framing import BEATS, CHUNKS, MARKED, ODD_HEAD

from fxframework import wire
from fxframework.cli.follow import Appended
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.wire.capture import open_capture

from ..cases import cases


class Loose(wire.Record):
    """A record whose fields say where it ends."""

    _kind = wire.kind(wire.u8())


class Tone(Loose, kind=1):
    """A number."""

    value: int = wire.u8(unit="ns")


class Spoken(Loose, kind=2):
    """A text behind its size."""

    _length = wire.u16()
    text: str = wire.text(_length)


class Ended(Loose, kind=3):
    """A text that a byte ends."""

    text: str = wire.text(until=b"\xff")


class Padded(Loose, kind=4):
    """A text and zeros."""

    _length = wire.u8()
    text: str = wire.text(_length, align=4)


class Chord(Loose, kind=5):
    """Numbers, and a closed enumeration."""

    _count = wire.u8()
    numbers: tuple[int, ...] = wire.listed(wire.u16(), _count)
    color: str = wire.bits(0, 7, of=1, values={7: "red", 8: "blue"}, closed=True)


class Section(Loose, kind=6):
    """A byte order begins."""

    order: str = wire.byte_order(0x01010201)


class Setting(wire.Part):
    """A number that a register keeps."""

    number: int = wire.u8(sets=wire.register(0, name="setting"))


class Settings(wire.Record):
    """Its size, and as many settings as fit into it."""

    _size = wire.size(wire.u8())
    settings: tuple[Setting, ...] = wire.listed(Setting)


SETTINGS = wire.Format("settings", "Settings", Settings, codes="SET")
TONES = wire.Format(
    "tones", "Tones", Loose, codes="TON", tables=[wire.rows("instants", Tone, ts="value", scope=2)]
)
TONE = bytes([1, 9])
FALSE = TONE * 6
MARK_LITTLE, MARK_BIG = b"\6\1\2\1\1", b"\6\1\1\2\1"
LOOSE = [
    b"\2\x0c\0" + FALSE, TONE, b"\3" + FALSE + b"\xff", TONE, b"\4\5" + FALSE[:5] + b"\0", TONE,
    b"\5\6" + FALSE + b"\7", TONE, MARK_BIG, b"\2\0\x0c" + FALSE, TONE, MARK_LITTLE, TONE,
]  # fmt: skip
DAMAGED_CHORD = b"\5\7" + b"\xfe" * 14 + b"\x63"
LARGE = struct.pack("<HH", 2, 11) + BEATS
LONG = struct.pack("<HHI", 1, 999, 0)
"""A size that no record of the kind may have."""
GOOD = struct.pack("<2sBB4s", b"MK", 1, 8, b"good")
FILES: dict[str, tuple[wire.Format, bytes]] = {
    "a record that holds records": (CHUNKS, ODD_HEAD + BEATS + LARGE + BEATS),
    "padding": (CHUNKS, ODD_HEAD + BEATS + bytes(12) + LARGE + bytes(8) + BEATS),
    "damage": (CHUNKS, ODD_HEAD + BEATS + b"\xff" * 8 + LONG + BEATS + LARGE + BEATS),
    "damage, then a record that holds records": (
        CHUNKS, ODD_HEAD + b"\xff" * 8 + BEATS[:8] + LARGE + BEATS
    ),
    "its own place of damage's end": (
        MARKED, GOOD + b"\xff" * 4 + GOOD + b"MK\1\x14" + GOOD * 2 + GOOD
    ),
    "records that say no size": (TONES, b"".join(LOOSE)),
    "a list that ends where its record says": (SETTINGS, b"\3\7\7\2\7\5\7\7\7\7"),
    "damage without sizes": (TONES, b"".join([*LOOSE, DAMAGED_CHORD, *LOOSE, TONE * 2])),
}  # fmt: skip


def followed(format: wire.Format, data: bytes, cuts: Iterable[int]) -> tuple[list[Any], int]:
    """What is shown of a file that grows, as by ``fxf cat --follow``, and how far it was read."""
    found: list[Any] = []
    at, before = 0, b""
    for cut in cuts:
        capture = open_capture(format, Source.open(before + data[at:cut]), OpenRequest())
        resumed = capture.resume()
        assert resumed is not None
        part = Appended(capture, len(before), resumed[0], at - len(before))
        found += shown(part)
        at, before = max(resumed[0], len(before)) + at - len(before), resumed[1]
    return found, at


def shown(capture: Any) -> list[Any]:
    """The records and the rows of a capture."""
    records = [record.to_json() for record in capture.records()]
    rows = capture.table("instants") if "instants" in capture.schemas else None
    return records + ([] if rows is None else rows.array("offset").tolist())


def by_key(found: list[Any]) -> list[str]:
    """What was shown, in an order that does not depend on the pieces."""
    return sorted(map(repr, found))


@cases("name", FILES)
def test_what_is_followed_is_what_the_whole_file_has(name: str) -> None:
    format, data = FILES[name]
    size = len(data)
    wanted = by_key(shown(open_capture(format, Source.open(data), OpenRequest())))
    # It grows by a byte each time, or once.
    for cuts in [range(size + 1), *([at, size] for at in range(0, size + 1, 3))]:
        found, end = followed(format, data, cuts)
        assert (end, by_key(found)) == (size, wanted), cuts
