"""Checksums that a format brings: computed on writing, held against the bytes on reading."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.wire.support import check

from fxframework import wire
from fxframework.wire import strategies


def running_sum(data: Any) -> int:
    total = running = 0
    for byte in bytes(data):
        total += byte
        running += total
    return running & 0xFF


class Message(wire.Record):
    """A text between a size and two sums."""

    _size = wire.size(wire.u8())
    text: str = wire.text()
    _first = wire.u8(equals=wire.byte_sum() & 0xFF, tail=True)
    _second = wire.u8(equals=wire.checksum(lambda data: running_sum(data[:-1])), tail=True)


MESSAGES = wire.Format("messages", "Messages: for tests", Message, codes="MES")


@given(strategies.files(MESSAGES), st.data())
def test_a_checksum_of_the_formats_own(made: tuple[bytes, list[Any]], data: st.DataObject) -> None:
    whole, records = made
    read, capture = check(MESSAGES, whole)
    assert read == records
    assert not capture.diagnostics.counts
    if whole:
        changed = bytearray(whole)
        changed[-1] ^= data.draw(st.integers(1, 255))
        _, capture = check(MESSAGES, bytes(changed))
        assert capture.diagnostics.counts == {"MES0106": 1}
