"""How fast logs are written: ratios against yardsticks of the same run. Never a failure.

Run with ``tox run -e bench`` or ``pytest -m bench -s``. The goal: 0.1 M structured records a
second, one at a time, with pid, tid, a tag, a message and a key.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from typing import Any

import pytest

import fxframework as fxf
from fx_log.sample import sample
from fx_log.write.copying import open_merge, open_stream_merge
from fx_log.write.handler import LogHandler
from fx_log.write.rewriter import open_writer
from fx_log.write.sinks import PacketWriter, RingWriter
from fx_log.write.writer import LogWriter
from fxframework.io.memory import BytesMemory
from fxframework.io.sink import Sink
from fxframework.model.diagnostics import Diagnostics

from .yardstick import Say, least

ONE_BY_ONE = 50_000
"""Records that are written one at a time."""
COMPOSED = 4_000_000
"""Bytes of a file that is merged."""


class Nowhere:
    """A socket that only counts: what is measured is the making."""

    def __init__(self) -> None:
        self.count = 0

    def send(self, data: bytes) -> bool:
        self.count += len(data)
        return True


# --- One record at a time ------------------------------------------------------------------------


def packing_alone() -> None:
    """The yardstick: as many records of three words, packed by struct and gathered."""
    pack = struct.Struct("<3Q").pack
    out = bytearray()
    for number in range(ONE_BY_ONE):
        out += pack(0x3000_0000_0000_0039, number, number)


def records() -> None:
    writer = LogWriter(Nowhere(), pid=1, tid=2, tags=["app"])
    for number in range(ONE_BY_ONE):
        writer.write(0x30, "something was done", {"number": number})


def records_of_this_thread() -> None:
    writer = LogWriter(Nowhere(), tags=["app"])
    for number in range(ONE_BY_ONE):
        writer.info("something was done", number=number)


def entries_of_a_ring() -> None:
    ring = RingWriter(BytesMemory(4096 + (1 << 20)))
    writer = LogWriter(ring.tagged(1), pid=1, tid=2, tags=["app"])
    for number in range(ONE_BY_ONE):
        writer.write(0x30, "something was done", {"number": number})


def packets() -> None:
    writer = PacketWriter(Nowhere(), pid=1, tags=["app"])
    for number in range(ONE_BY_ONE):
        writer.write(0x30, f"something was done {number}")


def python_logging() -> None:
    handler = LogHandler(Nowhere())
    logger = logging.getLogger("bench.log")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        for number in range(ONE_BY_ONE):
            logger.info("something was done %d", number)
    finally:
        logger.removeHandler(handler)


@pytest.mark.parametrize(
    "run", [records, records_of_this_thread, entries_of_a_ring, packets, python_logging]
)
def test_one_at_a_time_against_struct(run: Callable[[], None], say: Say) -> None:
    bare, seconds = least(packing_alone), least(run)
    what = run.__name__.replace("_", " ")
    say(
        f"{what}: {ONE_BY_ONE / seconds / 1e6:.2f} M/s (goal 0.1 of records), "
        f"{seconds / bare:.1f} x packing 3 words with struct ({ONE_BY_ONE / bare / 1e6:.1f} M/s)"
    )
    assert seconds > 0


# --- Files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("compose", [open_merge, open_stream_merge])
def test_composing_against_copying_the_records(compose: Any, say: Say) -> None:
    data = sample(COMPOSED)

    def copy() -> int:
        with fxf.open(data, format="log") as capture:
            writer = open_writer(Sink.nowhere(), {}, Diagnostics({}))
            count = 0
            for record in capture.records():
                writer.write(record)
                count += 1
            writer.close()
        return count

    def run() -> None:
        with fxf.open(data, format="log") as capture:
            session = compose(Sink.nowhere(), {})
            session.write(capture)
            session.close()

    count = copy()
    bare, seconds = least(copy, 1), least(run, 1)
    say(
        f"{compose.__name__}, {count / 1e6:.2f} M logs: {count / seconds / 1e6:.3f} M/s, "
        f"{seconds / bare:.2f} x records read and written again"
    )
    assert seconds > 0
