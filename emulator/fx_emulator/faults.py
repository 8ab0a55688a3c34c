"""Faults: what goes wrong on the target, where, and when; decided beforehand.

A fault is a value without state: armed again, it does the same again. Each goes to a kind of device
(``device``), into its ``faults`` list; ``FaultPlan`` holds several and can be drawn from a seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, ClassVar, Protocol, Self

import attrs

from fx_emulator.errors import Crash, EmulatorError

__all__ = [
    "BitFlip",
    "ClockJump",
    "Crash",
    "CrashAfter",
    "DropDatagram",
    "Fault",
    "FaultPlan",
    "Faulty",
    "FullBuffer",
    "TornWrite",
]


def _count(_instance: object, attribute: attrs.Attribute[int], value: int) -> None:
    if value < 0:
        raise EmulatorError(f"{attribute.name} is {value}: it counts from 0")


def _within(least: int, most: int) -> Any:
    def check(_instance: object, attribute: attrs.Attribute[int], value: int) -> None:
        if not least <= value <= most:
            raise EmulatorError(f"{attribute.name} is {value}: it is {least} to {most}")

    return check


# --- Memory --------------------------------------------------------------------------------------


@attrs.frozen
class CrashAfter:
    """The program stops when it has made ``stores`` stores into the memory."""

    device: ClassVar[str] = "memory"

    stores: int = attrs.field(validator=_count)

    def __call__(self, offset: int, value: int, number: int) -> int:
        """Let the store pass, or raise Crash."""
        if number >= self.stores:
            raise Crash(f"the program stopped after {self.stores} stores, before byte {offset}")
        return value


@attrs.frozen
class TornWrite:
    """The program stops within store ``store``: its low ``nbytes`` bytes (1 to 7) land.

    Hardware tears no aligned word; a copy byte by byte or an unaligned store does.
    """

    device: ClassVar[str] = "memory"

    store: int = attrs.field(validator=_count)
    nbytes: int = attrs.field(validator=_within(1, 7))

    def __call__(self, offset: int, value: int, number: int) -> int:
        """Let the store pass, or raise Crash."""
        if number >= self.store:
            # It may come to a later store where it was armed late: nothing of that lands.
            landed = self.nbytes if number == self.store else 0
            raise Crash(
                f"the program stopped within store {self.store}: {landed} bytes landed at {offset}",
                landed=landed,
            )
        return value


@attrs.frozen(kw_only=True)
class BitFlip:
    """Bit ``bit`` of a word arrives wrong: of store ``store``, or of each to byte ``offset``.

    With both, only of that store and if it goes there.
    """

    device: ClassVar[str] = "memory"

    bit: int = attrs.field(validator=_within(0, 63))
    store: int | None = attrs.field(default=None, validator=attrs.validators.optional(_count))
    offset: int | None = attrs.field(default=None, validator=attrs.validators.optional(_count))

    def __attrs_post_init__(self) -> None:
        if self.store is None and self.offset is None:
            raise EmulatorError("a bit flip has a store, an offset, or both")

    def __call__(self, offset: int, value: int, number: int) -> int:
        """The word that arrives."""
        hit = self.store in {None, number} and self.offset in {None, offset}
        return value ^ 1 << self.bit if hit else value


# --- Sockets, buffers, clocks --------------------------------------------------------------------


@attrs.frozen
class DropDatagram:
    """``count`` datagrams from the one numbered ``datagram`` on (from 0) are dropped."""

    device: ClassVar[str] = "socket"

    datagram: int = attrs.field(validator=_count)
    count: int = attrs.field(default=1, validator=_count)

    def __call__(self, number: int, datagram: bytes) -> bytes | None:
        """The datagram that arrives, or None."""
        return None if self.datagram <= number < self.datagram + self.count else datagram


@attrs.frozen
class FullBuffer:
    """A buffer acts as if it were full for ``count`` records from number ``record`` on (from 0)."""

    device: ClassVar[str] = "buffer"

    record: int = attrs.field(validator=_count)
    count: int = attrs.field(default=1, validator=_count)

    def __call__(self, number: int) -> bool:
        """Whether the buffer has no room for record ``number``."""
        return self.record <= number < self.record + self.count


@attrs.frozen
class ClockJump:
    """Monotonic and boot time step by ``by_ns``, either way, when monotonic time is ``at_ns``."""

    device: ClassVar[str] = "clock"

    at_ns: int = attrs.field(validator=_count)
    by_ns: int


Fault = CrashAfter | TornWrite | BitFlip | DropDatagram | FullBuffer | ClockJump


# --- Plans ---------------------------------------------------------------------------------------


class Faulty(Protocol):
    """A device that takes faults."""

    @property
    def faults(self) -> list[Any]:
        """Those that are armed."""


def _in_order(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    return tuple(faults)


@attrs.frozen
class FaultPlan:
    """Several faults, in the order in which a device asks them."""

    faults: tuple[Fault, ...] = attrs.field(default=(), converter=_in_order)

    def __add__(self, other: FaultPlan) -> FaultPlan:
        """Both, one behind the other."""
        return FaultPlan((*self.faults, *other.faults))

    def of(self, device: str) -> tuple[Fault, ...]:
        """Those for one kind of device: ``memory``, ``socket``, ``buffer`` or ``clock``."""
        return tuple(fault for fault in self.faults if fault.device == device)

    def arm(self, **devices: Faulty) -> None:
        """Give each device its faults: ``plan.arm(memory=vmo.memory, clock=clock)``.

        Raises EmulatorError when the plan has a fault for none of them, or there is no such kind.
        """
        known = {"memory", "socket", "buffer", "clock"}
        unknown = sorted(devices.keys() - known)
        if unknown:
            raise EmulatorError(
                f"no faults for {unknown[0]!r}; they are for {', '.join(sorted(known))}"
            )
        left = [fault for fault in self.faults if fault.device not in devices]
        if left:
            raise EmulatorError(f"{left[0]}: no {left[0].device} is given to arm it on")
        for kind, device in devices.items():
            device.faults.extend(self.of(kind))

    @classmethod
    def random(
        cls,
        seed: int,
        *,
        count: int = 1,
        stores: int = 0,
        datagrams: int = 0,
        records: int = 0,
        ns: int = 0,
    ) -> Self:
        """``count`` faults drawn from a seed, for a run of so many stores, datagrams and so on.

        What is 0 gets no fault. At most one of them ends the program; it is last, so that the
        others can happen. The same arguments give the same plan on every machine.
        """
        draw = random.Random(seed)  # noqa: S311 - a simulation, no secret
        kinds: list[str] = []
        kinds += ["flip", "end"] if stores else []
        kinds += ["drop"] if datagrams else []
        kinds += ["full"] if records else []
        kinds += ["jump"] if ns else []
        if not kinds:
            raise EmulatorError("a run without stores, datagrams, records or time has no faults")
        faults: list[Fault] = []
        end: list[Fault] = []
        for _ in range(count):
            kind = draw.choice(kinds)
            if kind == "flip":
                faults.append(BitFlip(bit=draw.randrange(64), store=draw.randrange(stores)))
            elif kind == "drop":
                faults.append(DropDatagram(draw.randrange(datagrams), draw.randint(1, 3)))
            elif kind == "full":
                faults.append(FullBuffer(draw.randrange(records), draw.randint(1, 3)))
            elif kind == "jump":
                at = draw.randrange(ns)
                faults.append(ClockJump(at, draw.randint(-at, ns)))
            else:
                at, torn = draw.randrange(stores), draw.randrange(8)
                end = [TornWrite(at, torn) if torn else CrashAfter(at)]
                kinds.remove("end")
        return cls((*faults, *end))
