"""What is done with whole captures of declared formats as bytes: salvage."""

from __future__ import annotations

import random

from fxframework.errors import WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.kit.salvage import Loss, salvage_records
from fxframework.model.capture import OpenRequest
from fxframework.wire.capture import DeclaredCapture, open_capture
from fxframework.wire.encoder import open_writer
from fxframework.wire.format import Format
from fxframework.wire.verbs.copies import salvage

from ..cases import cases
from .test_one_reading import generated, stream


def opened(format: Format, data: bytes) -> DeclaredCapture:
    return open_capture(format, Source.open(data), OpenRequest())


def hurt(data: bytes, rng: random.Random, times: int) -> bytes:
    """Data in which some bytes are others, or missing."""
    out = bytearray(data)
    for _ in range(times if out else 0):
        at = rng.randrange(len(out))
        if rng.random() < 0.5:
            out[at] = rng.randrange(256)
        else:
            del out[at : at + rng.choice([1, 2, 8])]
        if not out:
            break
    return bytes(out)


def salvaged(format: Format, data: bytes) -> tuple[bytes, list[Loss]]:
    sink = Sink.memory()
    losses = list(salvage(format, opened(format, data), sink))
    return sink.getvalue(), losses


def salvaged_one_by_one(format: Format, data: bytes) -> tuple[bytes, list[Loss]]:
    sink = Sink.memory()
    writer = open_writer(format, sink)
    losses = list(salvage_records(opened(format, data), writer.write))
    writer.close()
    return sink.getvalue(), losses


@cases("seed", range(24))
def test_salvage_by_bytes_is_salvage_record_by_record(seed: int) -> None:
    format = generated(seed)
    rng = random.Random(seed)
    data = stream(format, rng)
    for times in range(4):
        some = hurt(data, rng, times)
        try:
            expected = salvaged_one_by_one(format, some)
        except WriteRefusedError as error:  # of unknown kinds it writes those below 2^63
            assert "unknown" in str(error)
            continue
        assert salvaged(format, some) == expected
