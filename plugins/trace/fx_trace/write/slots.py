"""Slots: a provider's string or thread table, as a writer fills it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, Literal, TypeVar

from fxframework.errors import UsageError, did_you_mean

K = TypeVar("K", bound=Hashable)
Policy = Literal["allocate", "reuse", "inline"]
POLICIES = ("allocate", "reuse", "inline")


class Slots(Generic[K]):
    """A table of values with indexes from 1 to ``limit``.

    ``policy`` selects what new values get: ``allocate``: a free slot, or none once all are used;
    ``reuse``: a free slot, or the slot assigned first (registering an index again replaces its
    value); ``inline``: none. Changes are tentative until ``keep()``; ``undo()`` reverts them.
    """

    def __init__(self, limit: int, policy: Policy) -> None:
        if policy not in POLICIES:
            raise UsageError(
                f"unknown policy {policy!r} for slots{did_you_mean(policy, POLICIES)}",
                remedy=f"use one of {', '.join(POLICIES)}",
            )
        self.limit = limit
        self.policy = policy
        self.index: dict[K, int] = {}
        """Current indexes by value."""
        self.evictions = 0
        """Number of values that lost their slot."""
        self.evicted: K | None = None
        """The last value that lost its slot."""
        self.paused = False
        """Whether no slots are assigned for now."""
        self._value: dict[int, K] = {}
        """Current values by index."""
        self._next = 1
        """The index that is assigned next."""
        self._undo: list[Callable[[], None]] = []
        """What reverts each change since the last ``keep()``, to be called from last to first."""

    def __len__(self) -> int:
        return len(self._value)

    def take(self, value: K) -> int:
        """Assign a slot to a new value. Return its index, or 0 without a slot."""
        if self.policy == "inline" or self.paused:
            return 0
        previous_next = self._next
        while len(self._value) < self.limit and self._next in self._value:
            self._next = self._next % self.limit + 1  # taken by `put`
        if self._next > self.limit or self._next in self._value:
            if self.policy == "allocate":
                return 0
            self._next = (self._next - 1) % self.limit + 1
        index = self._next
        self._next += 1

        def back() -> None:
            self._next = previous_next

        self._undo.append(back)
        self.put(index, value)
        return index

    def put(self, index: int, value: K) -> None:
        """Assign ``index`` to ``value``, replacing any other value."""
        old_value = self._value.get(index)
        old_index = self.index.get(value)
        # A value that was registered once more elsewhere keeps that other index.
        loses_slot = old_value is not None and self.index.get(old_value) == index
        if old_value is not None and loses_slot:
            del self.index[old_value]
            self.evictions += 1
            self.evicted = old_value
        self._value[index] = value
        self.index[value] = index

        def back() -> None:
            if old_index is None:
                self.index.pop(value, None)
            else:
                self.index[value] = old_index
            if old_value is None:
                self._value.pop(index, None)
            else:
                self._value[index] = old_value
                if loses_slot:
                    self.index[old_value] = index

        self._undo.append(back)

    def at(self, index: int) -> K | None:
        """Return the current value at an index, or None."""
        return self._value.get(index)

    def close(self) -> None:
        """Assign no more slots; assigned ones remain."""
        self.policy = "inline"

    def drop(self, value: K) -> None:
        """Remove a value that was not registered after all."""
        index = self.index.pop(value, 0)
        if index:
            del self._value[index]

    def keep(self) -> None:
        """Make the changes permanent."""
        self._undo.clear()

    def undo(self) -> None:
        """Revert the changes since the last ``keep()``."""
        while self._undo:
            self._undo.pop()()
