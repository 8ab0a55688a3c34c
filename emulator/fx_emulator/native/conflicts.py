"""Detects memory in conflict: words that several threads use and at least one stores into.

A switch of threads matters only before an access to such a word; every other instruction has the
same effect whenever it runs. These accesses are therefore the points at which an exploration may
switch threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fx_emulator.native.decode import Access, AccessPart
from fx_emulator.native.space import WRITE, Region

__all__ = ["TIME", "Conflicts", "GrownError"]

TIME = -8
"""Stands for the word of the clock, which each reading of time changes: later ones are greater."""

_WORD = 8
_WRITE_ACCESS = 17
_PRIVATE = frozenset({"stack"})
"""Regions assumed to be private to a thread."""

_PATIENCE = 20_000
"""Accesses allowed after a new conflict before the run is restarted."""


class GrownError(Exception):
    """A run continues for long after a new conflict: it may wait for an invisible change."""


class Conflicts:
    """Watches the accesses of agents (a thread, or a signal handler on one) to shared memory.

    ``points`` are the addresses of instructions that use a word in conflict. ``grown`` is set when
    one is added, until it is cleared. ``accesses`` counts the accesses of each agent.
    """

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.agent = 0
        self.points: set[int] = set()
        self.words: set[int] = set()
        self.grown = False
        self.restarts = False
        """Whether GrownError may be raised."""
        self._patience = _PATIENCE
        self.accesses: dict[int, int] = {}
        self._readers: dict[int, int] = {}
        self._writers: dict[int, int] = {}
        self._users: dict[int, set[int]] = {}
        self._seen: set[tuple[int, int, int, int]] = set()
        self._hooks: list[int] = []
        self._point_hooks: dict[int, int] = {}

    # --- watching ---

    def watch(self) -> None:
        """Hook all memory that threads can share."""
        machine = self.machine
        for region in machine.space.regions:
            if region.permissions & WRITE and region.name not in _PRIVATE:
                self._watch(region)
        machine.engine.forget_code()

    def _watch(self, region: Region) -> None:
        machine, start, view = self.machine, region.start, region.view
        seen, accesses, pc = self._seen, self.accesses, self.machine.pc
        journaled = region.shared is None  # a device keeps its own journal

        def access(kind: int, address: int, size: int, _value: int) -> None:
            agent = self.agent
            accesses[agent] = accesses.get(agent, 0) + 1
            at = address - start
            if journaled and kind == _WRITE_ACCESS and machine.journal is not None:
                machine.journal.append((region, at, bytes(view[at : at + size])))
            if self.grown and self.restarts:
                self._patience -= 1
                if not self._patience:
                    raise GrownError
            key = (agent, kind, address, pc())
            if key not in seen:
                seen.add(key)
                self._note(agent, kind == _WRITE_ACCESS, address, size, key[3])

        self._hooks.append(machine.engine.on_access(access, start, region.end - 1, reads=True))

    def on_time(self) -> None:
        """Note that the running agent reads the time."""
        agent, pc = self.agent, self.machine.pc()
        self.accesses[agent] = self.accesses.get(agent, 0) + 1
        key = (agent, _WRITE_ACCESS, TIME, pc)
        if key not in self._seen:
            self._seen.add(key)
            self._note(agent, writes=True, address=TIME, size=_WORD, pc=pc)

    def on_store(self, address: int, size: int) -> None:
        """Note that a function of the target, which the running agent has called, stores."""
        region = self.machine.space.find(address)
        if region is not None and region.name not in _PRIVATE:
            agent, pc = self.agent, self.machine.pc()
            self.accesses[agent] = self.accesses.get(agent, 0) + 1
            self._note(agent, writes=True, address=address, size=size, pc=pc)

    def settle(self) -> None:
        """Start the next run with the conflicts known so far."""
        self.grown = False
        self._patience = _PATIENCE

    def stop(self) -> None:
        """Remove all hooks."""
        engine = self.machine.engine
        for number in [*self._hooks, *self._point_hooks.values()]:
            engine.unhook(number)
        self._hooks.clear()
        self._point_hooks.clear()
        engine.forget_code()

    def _note(self, agent: int, writes: bool, address: int, size: int, pc: int) -> None:
        bit = 1 << agent
        for word in range(address & -_WORD, address + size, _WORD):
            users = self._users.setdefault(word, set())
            users.add(pc)
            table = self._writers if writes else self._readers
            table[word] = table.get(word, 0) | bit
            writers = self._writers.get(word, 0)
            everybody = writers | self._readers.get(word, 0)
            if writers and everybody & everybody - 1:
                if word not in self.words:
                    self.words.add(word)
                    self.grown = True
                if not users <= self.points:
                    self.points |= users
                    self.grown = True

    # --- points ---

    def hook_points(self, function: Callable[[int], None], more: set[int]) -> None:
        """Call ``function(address)`` before each instruction that is a point or in ``more``."""
        engine = self.machine.engine
        new = (self.points | more) - self._point_hooks.keys() - self.machine.calls.keys()
        for address in sorted(new):
            self._point_hooks[address] = engine.on_code(function, address, address)
        if new:
            engine.forget_code()

    def touched(self, access: Access) -> list[tuple[int, bool]]:
        """Return the words in conflict that an instruction will use, and whether it stores each."""
        found: list[tuple[int, bool]] = []
        addresses, words = self.machine.operands, self.words
        if access.timed and TIME in words:
            found.append((TIME, True))
        if addresses.idle(access):
            return found
        for operand in access.operands:
            begin = addresses.of(operand)
            for word in range(begin & -_WORD, begin + operand.size, _WORD):
                if word in words:
                    found.append((word, operand.writes))  # noqa: PERF401 (it runs at each point)
        return found

    def touched_in(self, call: int) -> list[tuple[int, bool]]:
        """Return the words in conflict that a function of the target has used, at its trap."""
        return [(word, True) for word in self.words if call in self._users[word]]

    def touched_by(self, part: AccessPart) -> list[tuple[int, bool]]:
        """Return the same for a part of an instruction."""
        return [(word, part.writes) for word in part.words if word in self.words]
