"""Slots: a provider's string or thread table as a writer fills it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, Literal, TypeVar

from fxframework.errors import UsageError, did_you_mean

__all__ = ["POLICIES", "Policy", "Slots"]

K = TypeVar("K", bound=Hashable)
Policy = Literal["allocate", "reuse", "inline"]
POLICIES = ("allocate", "reuse", "inline")


class Slots(Generic[K]):
    """Which value has which index, 1 to ``limit``.

    ``policy`` says where new values go: ``allocate`` gives each a slot while there are free ones
    and none after that, ``reuse`` then takes the slot that was given first (registering an index
    again replaces what it means), ``inline`` gives none. Changes are tentative until ``keep()``;
    ``undo()`` takes them back.
    """

    def __init__(self, limit: int, policy: Policy) -> None:
        if policy not in POLICIES:
            raise UsageError(
                f"there is no policy {policy!r} for slots{did_you_mean(policy, POLICIES)}",
                remedy=f"there are {', '.join(POLICIES)}",
            )
        self.limit = limit
        self.policy = policy
        self.index: dict[K, int] = {}
        """Values that have an index now."""
        self.evictions = 0
        """How often a value lost its slot."""
        self.evicted: K | None = None
        """The value that did so last."""
        self.paused = False
        """Whether no slot is given for now."""
        self._value: dict[int, K] = {}
        self._next = 1
        self._undo: list[Callable[[], None]] = []

    def __len__(self) -> int:
        return len(self._value)

    def take(self, value: K) -> int:
        """A slot for a value that has none; 0 where it gets none."""
        if self.policy == "inline" or self.paused:
            return 0
        before = self._next
        while len(self._value) < self.limit and self._next in self._value:
            self._next = self._next % self.limit + 1  # taken by `put`
        if self._next > self.limit or self._next in self._value:
            if self.policy == "allocate":
                return 0
            self._next = (self._next - 1) % self.limit + 1
        index = self._next
        self._next += 1

        def back() -> None:
            self._next = before

        self._undo.append(back)
        self.put(index, value)
        return index

    def put(self, index: int, value: K) -> None:
        """Give ``value`` the index, whatever had it before."""
        old = self._value.get(index)
        was = self.index.get(value)
        loses = old is not None and self.index.get(old) == index
        if old is not None and loses:
            del self.index[old]
            self.evictions += 1
            self.evicted = old
        self._value[index] = value
        self.index[value] = index

        def back() -> None:
            if was is None:
                self.index.pop(value, None)
            else:
                self.index[value] = was
            if old is None:
                self._value.pop(index, None)
            else:
                self._value[index] = old
                if loses:
                    self.index[old] = index

        self._undo.append(back)

    def at(self, index: int) -> K | None:
        """The value at an index now; None for none."""
        return self._value.get(index)

    def close(self) -> None:
        """Give no more slots; those given stay."""
        self.policy = "inline"

    def drop(self, value: K) -> None:
        """Take back the slot of a value that was not registered after all."""
        index = self.index.pop(value, 0)
        if index:
            del self._value[index]

    def keep(self) -> None:
        """What was changed stays."""
        self._undo.clear()

    def undo(self) -> None:
        """Take back what was changed since the last ``keep()``."""
        while self._undo:
            self._undo.pop()()
