"""Detects memory in conflict: words that several threads use and at least one stores into.

A switch of threads matters only before an access to such a word; every other instruction has the
same effect whenever it runs. These accesses are therefore the points at which an exploration may
switch threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from fx_emulator.native.decode import Access, AccessPart
from fx_emulator.native.space import WRITE, Region

TIME = -8
"""Stands for the word of the clock, which each reading of time changes: later ones are greater."""

TouchedWord = tuple[int, bool]
"""A word in conflict that an instruction uses, and whether it stores into it."""

_WORD = 8
_WRITE_ACCESS = 17
"""The engine's number of a store, of the two kinds of accesses."""
_PRIVATE = frozenset({"stack"})
"""Regions assumed to be private to a thread."""

_PATIENCE = 20_000
"""Accesses allowed after a new conflict before the run is restarted."""


class GrownError(Exception):
    """A run continues for long after a new conflict: it may wait for an invisible change."""


@attrs.define
class _WordUse:
    """Who has used a word, and where."""

    readers: int = 0
    """A bit for each agent."""
    writers: int = 0
    instructions: set[int] = attrs.field(factory=set)

    @property
    def in_conflict(self) -> bool:
        """Whether several agents use the word and at least one stores into it."""
        agents = self.readers | self.writers
        several = agents & (agents - 1) != 0  # more than one bit
        return self.writers != 0 and several


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
        self.accesses: dict[int, int] = {}
        self._patience = _PATIENCE
        self._uses: dict[int, _WordUse] = {}
        """The uses of each word."""
        self._noted: set[tuple[int, int, int, int]] = set()
        """Accesses that need no second look: agent, kind, address, instruction."""
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
        # Local names, because this function runs at each access.
        machine = self.machine
        start, view = region.start, region.view
        stores = machine.stores
        noted = self._noted
        accesses = self.accesses
        pc = machine.pc
        journaled = region.shared is None  # a device keeps its own journal

        def access(kind: int, address: int, size: int, _value: int) -> None:
            agent = self.agent
            accesses[agent] = accesses.get(agent, 0) + 1
            if journaled and kind == _WRITE_ACCESS and stores.journal is not None:
                offset = address - start
                stores.journal.append((region, offset, bytes(view[offset : offset + size])))
            if self.grown and self.restarts:
                self._patience -= 1
                if not self._patience:
                    raise GrownError
            key = (agent, kind, address, pc())
            if key not in noted:
                noted.add(key)
                self._note(agent, kind == _WRITE_ACCESS, address, size, key[3])

        self._hooks.append(machine.engine.on_access(access, start, region.end - 1, reads=True))

    def on_time(self) -> None:
        """Note that the running agent reads the time."""
        agent = self.agent
        self._count_access(agent)
        pc = self.machine.pc()
        key = (agent, _WRITE_ACCESS, TIME, pc)
        if key not in self._noted:
            self._noted.add(key)
            self._note(agent, writes=True, address=TIME, size=_WORD, pc=pc)

    def on_store(self, address: int, size: int) -> None:
        """Note that a function of the target, which the running agent has called, stores."""
        region = self.machine.space.find(address)
        if region is not None and region.name not in _PRIVATE:
            self._count_access(self.agent)
            pc = self.machine.pc()
            self._note(self.agent, writes=True, address=address, size=size, pc=pc)

    def _count_access(self, agent: int) -> None:
        self.accesses[agent] = self.accesses.get(agent, 0) + 1

    def settle(self) -> None:
        """Start the next run with the conflicts known so far."""
        self.grown = False
        self._patience = _PATIENCE

    def stop(self) -> None:
        """Remove all hooks."""
        engine = self.machine.engine
        for hook_number in [*self._hooks, *self._point_hooks.values()]:
            engine.unhook(hook_number)
        self._hooks.clear()
        self._point_hooks.clear()
        engine.forget_code()

    def _note(self, agent: int, writes: bool, address: int, size: int, pc: int) -> None:
        """Note an access to memory; a new conflict makes all instructions on its word points."""
        agent_bit = 1 << agent
        for word_address in range(address & -_WORD, address + size, _WORD):
            use = self._uses.setdefault(word_address, _WordUse())
            use.instructions.add(pc)
            if writes:
                use.writers |= agent_bit
            else:
                use.readers |= agent_bit
            if not use.in_conflict:
                continue
            if word_address not in self.words:
                self.words.add(word_address)
                self.grown = True
            if not use.instructions <= self.points:
                self.points |= use.instructions
                self.grown = True

    # --- points ---

    def hook_points(self, function: Callable[[int], None], more: set[int]) -> None:
        """Call ``function(address)`` before each instruction that is a point or in ``more``."""
        engine = self.machine.engine
        hooked = self._point_hooks.keys() | self.machine.provided.calls.keys()
        new_points = (self.points | more) - hooked
        for address in sorted(new_points):
            self._point_hooks[address] = engine.on_code(function, address, address)
        if new_points:
            engine.forget_code()

    def touched(self, access: Access) -> list[TouchedWord]:
        """Return the words in conflict that an instruction will use, and whether it stores each."""
        touched: list[TouchedWord] = []
        addresses = self.machine.operands
        words = self.words
        if access.timed and TIME in words:
            touched.append((TIME, True))
        if addresses.idle(access):
            return touched
        for operand in access.operands:
            operand_start = addresses.of(operand)
            for word_address in range(operand_start & -_WORD, operand_start + operand.size, _WORD):
                if word_address in words:
                    touched.append((word_address, operand.writes))  # noqa: PERF401 (at each point)
        return touched

    def touched_in(self, call: int) -> list[TouchedWord]:
        """Return the words in conflict that a function of the target has used, at its trap."""
        return [
            (word_address, True)
            for word_address in self.words
            if call in self._uses[word_address].instructions
        ]

    def touched_by(self, part: AccessPart) -> list[TouchedWord]:
        """Return the same for a part of an instruction."""
        return [
            (word_address, part.writes) for word_address in part.words if word_address in self.words
        ]
