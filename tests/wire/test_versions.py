"""Writers refuse records and parts that the version at hand does not have; samples have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from tests.wire.support import check

from fxframework import wire
from fxframework.errors import WriteRefusedError
from fxframework.wire import strategies
from fxframework.wire.encoder import Encoder

from ..cases import cases

version = wire.register(1, name="version")


class Note(wire.Record):
    """Kind and size."""

    _kind = wire.kind(wire.u8())
    _size = wire.size(wire.u8())


class Score(Note, kind=1):
    """A version begins."""

    version: int = wire.u8(sets=version)


class Beat(Note, kind=2, when=version < 2):
    """A beat of the first version."""

    time: int = wire.u32(unit="ns")


class LongBeat(Note, kind=2, when=version >= 2):
    """A beat of later versions."""

    time: int = wire.u64(unit="ns")


class Loud(Note, kind=3, when=version >= 2):
    """What the first version does not have."""

    force: int = wire.u8()


class Item(wire.Part):
    """An item."""

    code: int = wire.kind(wire.u8())


class Narrow(Item, kind=1, when=version < 2):
    """An item of the first version."""

    x: int = wire.u8()


class Broad(Item, kind=1, when=version >= 2):
    """An item of later versions."""

    x: int = wire.u16()


class Other(Item, kind=wire.OTHER):
    """Anything else."""

    x: int = wire.u8()


class Chord(Note, kind=4):
    """Items."""

    _count = wire.u8()
    items: tuple[Item, ...] = wire.listed(Item, _count)


class Pause(Note, kind=5):
    """A field that later versions have, and one that another field announces."""

    shape: str = wire.u8(values={0: "short", 1: "long"})
    length: int = wire.u16(when=shape == 1)
    late: int = wire.u8(when=version >= 2)


TABLES = [wire.rows("instants", each, ts="time", scope=2) for each in (Beat, LongBeat)]
SCORES = wire.Format("scores", "Scores", Note, codes="SCO", tables=TABLES)
BEFORE = "write what makes"
HOLDS = "(2 <= version) does not hold: version is 1"
OLD, NEW = Score(version=1), Score(version=2)
REFUSED: list[tuple[Score, Any, str, str]] = [
    (OLD, LongBeat(time=1), f"long_beat: it would be read as 'beat', because {HOLDS}", BEFORE),
    (OLD, Loud(force=1), f"loud: it would be read as 'unknown', because {HOLDS}", BEFORE),
    (NEW, Beat(time=1), "beat: it would be read as 'long_beat', because (version < 2)", BEFORE),
    (OLD, Chord(items=(Narrow(x=1), Broad(x=1))),
     f"chord: items[1]: it would be read as 'narrow', because {HOLDS}", BEFORE),
    (NEW, Chord(items=(Narrow(x=1),)), "chord: items[0]: it would be read as 'broad'", BEFORE),
    (NEW, Chord(items=(Other(code=1, x=1),)),
     "chord: items[0]: it would be read as 'broad'", "write 'broad' here"),
    (OLD, Pause(shape="short", late=1),
     "pause: late is given, but it is there only when (2 <= version)", "leave late out"),
    (NEW, Pause(shape="short"), "pause: late is missing, which is there when (2 <= version)", ""),
    (OLD, Pause(shape="short", length=1),
     "pause: length is given, but it is there only when (Pause.shape == 1)", "leave length out"),
]  # fmt: skip


@cases("form", [lambda record: record, lambda record: record.to_json()],
                         ids=["object", "JSON"])  # fmt: skip
@cases("row", range(len(REFUSED)))
def test_what_a_version_does_not_have_is_refused(row: int, form: Callable[[Any], Any]) -> None:
    begin, record, message, remedy = REFUSED[row]
    encoder = Encoder(SCORES)
    encoder.encode(begin)
    with pytest.raises(WriteRefusedError) as caught:
        encoder.encode(form(record))
    if "length" not in message or form(record) is record:  # JSON: no such field
        assert message in str(caught.value)
        assert (caught.value.remedy or "").startswith(remedy)
    beat = Beat(time=1) if begin is OLD else LongBeat(time=1)
    assert encoder.encode(form(beat))


def test_raw_bytes_are_of_the_version_too() -> None:
    record = {"record": "loud", "force": 1, "raw": "030301"}
    with pytest.raises(WriteRefusedError, match="would be read as 'unknown'"):
        Encoder(SCORES).encode(record)


@cases("nbytes", [0, 500, 5000])
def test_samples_are_of_their_version(nbytes: int) -> None:
    records, capture = check(SCORES, SCORES.sample(nbytes))
    assert not list(capture.diagnostics)
    assert {"score", "chord", "pause", "long_beat"} <= {each.record for each in records}


@given(strategies.files(SCORES))
def test_files_of_versions_come_back(made: tuple[bytes, list[wire.Record]]) -> None:
    assert check(SCORES, made[0])[0] == made[1]
