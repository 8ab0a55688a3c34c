"""Pulse: a device that holds marks, and the steps that fill and keep it."""

import struct

import attrs

from fxframework.errors import UsageError
from fxframework.kit.steps import Outcome, Run, parameter
from pulse.plugin import MAGIC

MARK = struct.Struct("<BBHHqq")
STRING = b"\x01\x08\x01\x00tick"


@attrs.frozen
class RingParameters:
    """How a ring begins."""

    capacity: int = parameter(64, help="how many marks it holds", least=1, most=4096)
    mode: str = parameter("newest", help="which marks a full ring keeps",
                          choices=("newest", "oldest"))  # fmt: skip


class Ring:
    """Marks in order of their times."""

    def __init__(self, given: RingParameters) -> None:
        self.given = given
        self.marks: list[bytes] = []
        self.time = 0

    def put(self, value: int) -> bool:
        """Keep a mark; gives whether another one had to go."""
        self.time += 1
        mark = MARK.pack(5, MARK.size, 0, 1, self.time, value)
        full = len(self.marks) >= self.given.capacity
        if full and self.given.mode == "oldest":
            return True
        self.marks.append(mark)
        if full:
            del self.marks[0]
        return full

    def image(self) -> bytes:
        """What it holds, as a file."""
        return MAGIC + STRING + b"".join(self.marks)

    def close(self) -> None:
        """Forget the marks."""
        self.marks.clear()


def open_ring(given: RingParameters, run: Run, name: str) -> Ring:
    """Make a ring."""
    return Ring(given)


@attrs.frozen
class Emit:
    """Marks with values."""

    ring: str = parameter(help="the ring", refers="device:pulse_ring")
    count: int = parameter(3, help="how many marks", least=0, most=10_000)
    values: list[int] = parameter(factory=list, help="the values, instead of random ones")


def emit(given: Emit, run: Run) -> Outcome:
    """Put marks into the ring."""
    ring = run.device(given.ring)
    chance = run.rng(f"pulse/{given.ring}")
    values = given.values or [chance.randrange(100) for _ in range(given.count)]
    if any(not -(1 << 63) <= value < 1 << 63 for value in values):
        raise UsageError("a value does not fit 64 bits")
    lost = sum(ring.put(value) for value in values)
    return Outcome.ok(f"{len(values)} marks", marks=len(values), lost=lost)


@attrs.frozen
class Save:
    """The ring's bytes as an output."""

    ring: str = parameter(help="the ring", refers="device:pulse_ring")
    as_: str = parameter(help="the output", makes="output")


def save(given: Save, run: Run) -> Outcome:
    """Keep the bytes."""
    data = run.bytes_of(given.ring)
    run.put(given.as_, data)
    return Outcome.ok(f"{len(data)} bytes", bytes=len(data))


def scenario() -> str:
    """A scenario with the steps and the device."""
    return """
[scenario]
name = "pulse"
seed = 3

[device.ring]
kind = "pulse_ring"
capacity = 4

[[step]]
do = "pulse.emit"
ring = "ring"
count = 6

[[step]]
do = "pulse.save"
ring = "ring"
as = "ring.pulse"
"""
