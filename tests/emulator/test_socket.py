"""Datagram sockets, and the log service in both of its behaviours."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx_emulator.errors import EmulatorError
from fx_emulator.faults import DropDatagram
from fx_emulator.socket import DatagramSocket, LogService
from fxframework.model import target

from ..cases import cases


def record(words=2, *, kind=9, claims=None, fill=0):
    header = kind | (words if claims is None else claims) << 4 | 0x30 << 56
    return header.to_bytes(8, "little") + bytes([fill]) * 8 * (words - 1)


def test_is_a_sink_of_the_protocol():
    assert isinstance(DatagramSocket(), target.DatagramSink)


@given(
    st.lists(st.none() | st.binary(max_size=12), max_size=40),
    st.integers(1, 40),
    st.none() | st.integers(1, 5),
)
def test_as_a_queue(steps, capacity, datagrams):
    socket, queue, dropped = DatagramSocket(capacity, datagrams=datagrams), deque(), 0
    for step in steps:
        if step is None:
            assert socket.receive() == (queue.popleft() if queue else None)
            continue
        room = sum(map(len, queue)) + len(step) <= capacity
        room = room and (datagrams is None or len(queue) < datagrams)
        assert socket.send(step) == room
        if room:
            queue.append(step)
        dropped += not room
        assert len(socket) == len(queue)
        assert socket.nbytes == sum(map(len, queue))
        assert socket.dropped == dropped
    assert socket.attempts == sum(step is not None for step in steps)
    assert socket.sent == socket.attempts - dropped


def test_what_is_sent_is_kept_as_it_was():
    socket, datagram = DatagramSocket(), bytearray(b"abc")
    socket.send(datagram)
    datagram[0] = 0
    assert socket.receive() == b"abc"


def test_a_closed_one_drops_and_can_be_emptied():
    socket = DatagramSocket()
    socket.send(b"1")
    socket.close()
    assert not socket.send(b"2")
    assert (socket.receive(), socket.receive()) == (b"1", None)
    assert (socket.sent, socket.dropped) == (1, 1)


def test_faults_drop_by_number():
    socket = DatagramSocket()
    socket.faults.append(DropDatagram(1, count=2))
    assert [socket.send(bytes([n])) for n in range(5)] == [True, False, False, True, True]
    assert [socket.receive() for _ in range(4)] == [b"\0", b"\3", b"\4", None]
    assert socket.dropped == 2


@cases("options", [{"capacity": 0}, {"datagrams": 0}])
def test_what_no_socket_is(options):
    with pytest.raises(EmulatorError):
        DatagramSocket(**options)


INVALID = [
    b"",
    record(1),
    record()[:15],
    record(kind=4),
    record(claims=3),
    record(3, claims=2),
    record() + b"\0",
    record(claims=0),
]


class TestLogService:
    @cases("datagram", INVALID)
    def test_counts_and_goes_on(self, datagram):
        socket = DatagramSocket()
        service = LogService(socket, invalid="count")
        for each in (record(fill=1), datagram, record(4, fill=2)):
            assert socket.send(each)
        assert service.drain() == 2
        assert service.records == [record(fill=1), record(4, fill=2)]
        assert service.capture() == record(fill=1) + record(4, fill=2)
        assert (service.invalid, service.lost, socket.closed) == (1, 0, False)

    @cases("datagram", INVALID)
    def test_disconnects(self, datagram):
        socket, other = DatagramSocket(), DatagramSocket()
        service = LogService(socket, invalid="disconnect")
        service.connect(other)
        for each in (record(fill=1), datagram, record(fill=2), record(fill=3)):
            assert socket.send(each)
        other.send(record(fill=4))
        assert service.drain() == 2
        assert service.records == [record(fill=1), record(fill=4)]
        assert (service.invalid, service.lost) == (1, 2)
        assert not socket.send(record())
        assert other.send(record(fill=5))
        assert service.drain() == 1

    def test_the_largest_record(self):
        socket = DatagramSocket()
        service = LogService(socket)
        socket.send(record(4095))
        assert service.drain() == 1
        assert service.invalid == 0

    def test_a_behaviour_that_is_none(self):
        with pytest.raises(EmulatorError, match="'disconnect' or 'count'"):
            LogService(invalid="ignore")
