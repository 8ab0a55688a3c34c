"""Faults: what goes wrong on the target, where and when, as decided in advance.

A fault is a value without state: armed again, it has the same effect again. Each belongs to a kind
of device (``device``) and goes into its ``faults`` list; a ``FaultPlan`` holds several and can be
drawn from a seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, ClassVar, Protocol, Self

import attrs

from fx_emulator.errors import Crash, EmulatorError
from fx_emulator.memory import WORD


def _count(_instance: object, attribute: attrs.Attribute[int], value: int) -> None:
    if value < 0:
        raise EmulatorError(f"invalid {attribute.name} {value}: must not be negative")


def _within(least: int, most: int) -> Any:
    def check(_instance: object, attribute: attrs.Attribute[int], value: int) -> None:
        if not least <= value <= most:
            raise EmulatorError(f"invalid {attribute.name} {value}: must be {least} to {most}")

    return check


# --- Memory --------------------------------------------------------------------------------------


@attrs.frozen
class CrashAfter:
    """Stop the program after ``stores`` stores into the memory."""

    device: ClassVar[str] = "memory"

    stores: int = attrs.field(validator=_count)

    def __call__(self, offset: int, value: int, number: int) -> int:
        """Return ``value`` unchanged, or raise Crash."""
        if number >= self.stores:
            raise Crash(f"the program stopped after {self.stores} stores, before byte {offset}")
        return value


@attrs.frozen
class TornWrite:
    """Stop the program within store number ``store``: its low ``nbytes`` bytes (1 to 7) land.

    Hardware does not tear an aligned word; a bytewise copy or an unaligned store can.
    """

    device: ClassVar[str] = "memory"

    store: int = attrs.field(validator=_count)
    nbytes: int = attrs.field(validator=_within(1, 7))

    def __call__(self, offset: int, value: int, number: int) -> int:
        """Return ``value`` unchanged, or raise Crash."""
        if number >= self.store:
            landed = self.nbytes
            if number > self.store:
                # A fault that was armed late first sees a later store, of which nothing lands.
                landed = 0
            raise Crash(
                f"the program stopped within store {self.store}: {landed} bytes landed at {offset}",
                landed=landed,
            )
        return value


@attrs.frozen(kw_only=True)
class BitFlip:
    """Flip bit ``bit`` of a stored word: of store number ``store``, or of each store to ``offset``.

    With both, flip it only if that store goes to that byte offset, a multiple of 8.
    """

    device: ClassVar[str] = "memory"

    bit: int = attrs.field(validator=_within(0, 63))
    store: int | None = attrs.field(default=None, validator=attrs.validators.optional(_count))
    offset: int | None = attrs.field(default=None, validator=attrs.validators.optional(_count))

    def __attrs_post_init__(self) -> None:
        if self.store is None and self.offset is None:
            raise EmulatorError("a bit flip needs a store, an offset, or both")
        if self.offset is not None and self.offset % WORD:
            raise EmulatorError(f"invalid offset {self.offset}: must be a multiple of {WORD}")

    def __call__(self, offset: int, value: int, number: int) -> int:
        """Return the word that reaches the memory."""
        if self.store in {None, number} and self.offset in {None, offset}:
            return value ^ 1 << self.bit
        return value


# --- Sockets, buffers, clocks --------------------------------------------------------------------


@attrs.frozen
class DropDatagram:
    """Drop ``count`` datagrams, beginning with number ``datagram`` (from 0)."""

    device: ClassVar[str] = "socket"

    datagram: int = attrs.field(validator=_count)
    count: int = attrs.field(default=1, validator=_count)

    def __call__(self, number: int, datagram: bytes) -> bytes | None:
        """Return the datagram, or None where it is dropped."""
        if self.datagram <= number < self.datagram + self.count:
            return None
        return datagram


@attrs.frozen
class FullBuffer:
    """Let a buffer drop ``count`` records from number ``record`` on, as if it were full."""

    device: ClassVar[str] = "buffer"

    record: int = attrs.field(validator=_count)
    count: int = attrs.field(default=1, validator=_count)

    def __call__(self, number: int) -> bool:
        """Return whether the buffer has no room for record ``number``."""
        return self.record <= number < self.record + self.count


@attrs.frozen
class ClockJump:
    """Step monotonic and boot time by ``by_ns``, either way, when monotonic time is ``at_ns``."""

    device: ClassVar[str] = "clock"

    at_ns: int = attrs.field(validator=_count)
    by_ns: int


Fault = CrashAfter | TornWrite | BitFlip | DropDatagram | FullBuffer | ClockJump


# --- Plans ---------------------------------------------------------------------------------------


class Faulty(Protocol):
    """A device that accepts faults."""

    @property
    def faults(self) -> list[Any]:
        """The armed faults."""


def _in_order(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    return tuple(faults)


@attrs.frozen
class FaultPlan:
    """Several faults, in the order in which a device applies them."""

    faults: tuple[Fault, ...] = attrs.field(default=(), converter=_in_order)

    def __add__(self, plan: FaultPlan) -> FaultPlan:
        """Return the faults of both plans, in order."""
        return FaultPlan((*self.faults, *plan.faults))

    def of(self, device: str) -> tuple[Fault, ...]:
        """Return the faults for a kind of device: ``memory``, ``socket``, ``buffer``, ``clock``."""
        return tuple(fault for fault in self.faults if fault.device == device)

    def arm(self, **devices: Faulty) -> None:
        """Arm each device with its faults: ``plan.arm(memory=vmo.memory, clock=clock)``.

        Raises EmulatorError for an unknown kind of device, and for a fault whose device is not
        given.
        """
        known_kinds = {"memory", "socket", "buffer", "clock"}
        unknown_kinds = sorted(devices.keys() - known_kinds)
        if unknown_kinds:
            raise EmulatorError(
                f"no faults for {unknown_kinds[0]!r}; they are for {', '.join(sorted(known_kinds))}"
            )
        homeless_faults = [fault for fault in self.faults if fault.device not in devices]
        if homeless_faults:
            fault = homeless_faults[0]
            raise EmulatorError(f"{fault}: no {fault.device} is given to arm it on")
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
        """Draw ``count`` faults from a seed, for a run with these numbers of stores and so on.

        A kind whose number is 0 gets no fault. At most one fault ends the program; it comes last,
        so that the others can happen. The same arguments give the same plan on every machine.
        """
        draw = random.Random(seed)  # noqa: S311 - a simulation, no secret
        possible_kinds: list[str] = []
        if stores:
            possible_kinds += ["flip", "end"]
        if datagrams:
            possible_kinds.append("drop")
        if records:
            possible_kinds.append("full")
        if ns:
            possible_kinds.append("jump")
        if not possible_kinds:
            raise EmulatorError("a run without stores, datagrams, records or time has no faults")
        faults: list[Fault] = []
        end: list[Fault] = []
        # The order of the draws is part of the result: a seed stands for a plan.
        for _ in range(count):
            match draw.choice(possible_kinds):
                case "flip":
                    faults.append(BitFlip(bit=draw.randrange(64), store=draw.randrange(stores)))
                case "drop":
                    faults.append(DropDatagram(draw.randrange(datagrams), draw.randint(1, 3)))
                case "full":
                    faults.append(FullBuffer(draw.randrange(records), draw.randint(1, 3)))
                case "jump":
                    at_ns = draw.randrange(ns)
                    # Not to before boot.
                    faults.append(ClockJump(at_ns, draw.randint(-at_ns, ns)))
                case _:
                    last_store = draw.randrange(stores)
                    landed_bytes = draw.randrange(8)
                    end = [
                        TornWrite(last_store, landed_bytes)
                        if landed_bytes
                        else CrashAfter(last_store)
                    ]
                    possible_kinds.remove("end")
        return cls((*faults, *end))
