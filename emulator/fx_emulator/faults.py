"""Faults: what goes wrong on the target, where and when, as decided in advance.

A fault is a value without state: armed again, it has the same effect again. It goes into the
``faults`` list of a memory, a socket, a trace engine or a clock.
"""

from __future__ import annotations

from typing import Any

import attrs

from fx_emulator.errors import Crash, EmulatorError
from fx_emulator.memory import WORD

__all__ = [
    "BitFlip",
    "ClockJump",
    "Crash",
    "CrashAfter",
    "DropDatagram",
    "FullBuffer",
    "TornWrite",
]


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

    record: int = attrs.field(validator=_count)
    count: int = attrs.field(default=1, validator=_count)

    def __call__(self, number: int) -> bool:
        """Return whether the buffer has no room for record ``number``."""
        return self.record <= number < self.record + self.count


@attrs.frozen
class ClockJump:
    """Step monotonic and boot time by ``by_ns``, either way, when monotonic time is ``at_ns``."""

    at_ns: int = attrs.field(validator=_count)
    by_ns: int
