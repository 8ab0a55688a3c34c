"""Datagram sockets between processes of the target, and the service that reads logs from them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal

from fx_emulator.errors import EmulatorError

DatagramFault = Callable[[int, bytes], bytes | None]
"""``(number, datagram) -> datagram``: what arrives of send ``number`` (from 0), or None."""

_LOG_TYPE = 9
_MIN_BYTES = 16
"""Smallest log record: a header and a timestamp."""


class DatagramSocket:
    """A socket that keeps datagrams whole and in order (``fxframework.model.target.DatagramSink``).

    It holds up to ``capacity`` bytes and, if given, ``datagrams`` datagrams; a datagram that does
    not fit is dropped, never cut. Each send passes through ``faults`` in their order; a datagram
    that they swallow is dropped too. ``attempts`` counts the sends, ``sent`` the accepted ones,
    ``dropped`` the others.
    """

    def __init__(self, capacity: int = 1 << 18, *, datagrams: int | None = None) -> None:
        if capacity < 1 or (datagrams is not None and datagrams < 1):
            raise EmulatorError(
                f"invalid socket size: {capacity} bytes, {datagrams} datagrams: each must be at "
                "least 1"
            )
        self.capacity = capacity
        self.datagrams = datagrams
        self.faults: list[DatagramFault] = []
        self.sent = 0
        self.dropped = 0
        self.closed = False
        self._queue: deque[bytes] = deque()
        self._nbytes = 0

    def __len__(self) -> int:
        """Number of datagrams in the queue."""
        return len(self._queue)

    @property
    def attempts(self) -> int:
        """Number of sends so far."""
        return self.sent + self.dropped

    @property
    def nbytes(self) -> int:
        """Bytes in the queue."""
        return self._nbytes

    def send(self, datagram: bytes, /) -> bool:
        """Send a datagram. Return False where it was dropped: socket full or closed, or a fault."""
        arriving = self._arriving(bytes(datagram))
        if arriving is None or not self._has_room(len(arriving)):
            self.dropped += 1
            return False
        self._queue.append(arriving)
        self._nbytes += len(arriving)
        self.sent += 1
        return True

    def _arriving(self, datagram: bytes) -> bytes | None:
        """Return what arrives of a datagram after all faults, or None."""
        if self.closed:
            return None
        arriving: bytes | None = datagram
        for fault in self.faults:
            if arriving is None:
                return None
            arriving = fault(self.attempts, arriving)
        return arriving

    def receive(self) -> bytes | None:
        """Remove and return the oldest datagram in the queue; None if the queue is empty."""
        if not self._queue:
            return None
        datagram = self._queue.popleft()
        self._nbytes -= len(datagram)
        return datagram

    def close(self, *, discard: bool = False) -> None:
        """Accept no more datagrams. Those in the queue can be received, unless discarded."""
        self.closed = True
        if discard:
            self._queue.clear()
            self._nbytes = 0

    def _has_room(self, nbytes: int) -> bool:
        if self.datagrams is not None and len(self._queue) >= self.datagrams:
            return False
        return self._nbytes + nbytes <= self.capacity


class LogService:
    """The service that reads log records from sockets, one record a datagram.

    A datagram is invalid if it has less than 16 bytes, is not of type 9, or differs in size from
    its header. With ``invalid="disconnect"`` the service closes that socket and loses its queue, as
    the format document says; with ``"count"`` it goes on, as the service does today.
    """

    def __init__(
        self, *sockets: DatagramSocket, invalid: Literal["disconnect", "count"] = "count"
    ) -> None:
        if invalid not in {"disconnect", "count"}:
            raise EmulatorError(f"invalid={invalid!r}: must be 'disconnect' or 'count'")
        self.sockets = list(sockets)
        self.behaviour = invalid
        self.records: list[bytes] = []
        """The valid records, in the order of reading."""
        self.invalid = 0
        self.lost = 0
        """Number of datagrams in the queues of sockets when they were disconnected."""

    def connect(self, socket: DatagramSocket) -> None:
        """Add a socket to read from."""
        self.sockets.append(socket)

    def drain(self) -> int:
        """Read all queued datagrams, socket by socket. Return the number of valid records."""
        already_read = len(self.records)
        for socket in self.sockets:
            while (datagram := socket.receive()) is not None:
                if _is_valid(datagram):
                    self.records.append(datagram)
                    continue
                self.invalid += 1
                if self.behaviour == "disconnect":
                    self.lost += len(socket)
                    socket.close(discard=True)
        return len(self.records) - already_read

    def capture(self) -> bytes:
        """Return the valid records in order, as a file of structured records holds them."""
        return b"".join(self.records)


def _is_valid(datagram: bytes) -> bool:
    header = int.from_bytes(datagram[:8], "little")
    size = (header >> 4 & 0xFFF) * 8
    return len(datagram) >= _MIN_BYTES and header & 0xF == _LOG_TYPE and size == len(datagram)
