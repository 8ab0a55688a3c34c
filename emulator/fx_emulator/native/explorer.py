"""One exploration: prepares the machine for a search, and restores it afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from fx_emulator.native.checks import Check, Checks, RejectedError
from fx_emulator.native.depth_first import DepthFirst
from fx_emulator.native.devices import MappedDevice
from fx_emulator.native.errors import NativeError
from fx_emulator.native.execution import Execution, ExploreFailure
from fx_emulator.native.machine import Listeners, Machine
from fx_emulator.native.program import NativeEntry
from fx_emulator.native.replay import RandomSchedules, Replay
from fx_emulator.native.schedule import read_schedule
from fx_emulator.native.search import Coverage, Search


class Explorer:
    """One exploration; takes the arguments of ``explore``."""

    def __init__(
        self,
        entries: Sequence[NativeEntry],
        check: Check,
        *,
        preemptions: int | None,
        memory: Any,
        crash: bool,
        final: Check | None,
        signal: NativeEntry | None,
    ) -> None:
        if not entries:
            raise NativeError("explore takes at least one thread")
        program = entries[0].program
        if any(entry.program is not program for entry in entries):
            raise NativeError("the threads of an exploration must belong to one program")
        memories = [entry.memory for entry in entries if entry.memory is not None]
        if memory is None and memories:
            memory = memories[0]
        if memory is None:
            raise NativeError("no thread has a memory among its arguments; give memory=")
        self.machine: Machine = program.machine
        self.device: MappedDevice = self.machine.map_device(memory)
        self.checks = Checks(check, final, after_stores=crash)
        self.execution = Execution(entries, self.device, signal)
        self.coverage = Coverage()
        self._bound = preemptions

    def run(
        self, *, schedule: str | None, random: Sequence[int], limit: int
    ) -> ExploreFailure | None:
        """Explore. Return the failure found, or None. Restores the program's state."""
        with self._prepared():
            failure = self._check_first()
            if failure is not None:
                return failure
            return self._search(schedule, random, limit).run()

    def _search(self, schedule: str | None, random: Sequence[int], limit: int) -> Search:
        """Return the search that the arguments of ``explore`` ask for."""
        shared = (self.execution, self.checks, self.coverage)
        if schedule is not None and not schedule.startswith("random:"):
            base = self.machine.file.base
            path = read_schedule(schedule, base, len(self.execution.threads))
            return Replay(*shared, path)
        if schedule is not None:
            seed = schedule.removeprefix("random:")
            if not seed.isdigit():
                raise NativeError(f"schedule {schedule!r}: a number follows 'random:'")
            random = [int(seed)]
        if random:
            return RandomSchedules(*shared, random)
        return DepthFirst(*shared, bound=self._bound, limit=limit)

    @contextlib.contextmanager
    def _prepared(self) -> Iterator[None]:
        """Context in which the machine reports to this exploration; its state is restored after."""
        machine = self.machine
        execution = self.execution
        conflicts = execution.conflicts
        listeners = machine.listeners
        journal = machine.stores.journal
        machine.stores.journal = []
        execution.start()
        try:
            conflicts.watch()
            machine.listeners = Listeners(
                sink=self._on_store,
                on_result=execution.on_value,
                on_store=conflicts.on_store,
                before_call=execution.on_call,
            )
            machine.timer.on_read = execution.on_time
            if machine.order is not None:
                machine.order.manual = True
                machine.order.on_drain = execution.state.on_drain
            yield
        finally:
            conflicts.stop()
            execution.state.restore(execution.beginning)
            machine.listeners = listeners
            machine.stores.journal = journal
            machine.timer.on_read = None
            if machine.order is not None:
                machine.order.reveal()
                machine.order.manual = False
                machine.order.on_drain = None

    def _check_first(self) -> ExploreFailure | None:
        """Check the image before the first store."""
        if not self.checks.after_stores:
            return None
        image = self.device.image()
        error = self.checks.first_error([self.checks.check], image)
        if error is None:
            return None
        return self.execution.failure(error, image=image)

    def _on_store(self, device: MappedDevice, offset: int, size: int, value: int, pc: int) -> None:
        """Check the image after a store, which is about to become visible."""
        if device is not self.device:
            return
        state = self.execution.state
        content_before = state.content
        state.stored(offset, size, value, self._storing_thread(), pc)
        if not self.checks.needs_check(content_before, state.content):
            return
        earlier = device.image()
        image = bytearray(earlier)
        image[offset : offset + size] = value.to_bytes(size, "little")
        try:
            self.checks.ask(self.checks.check, bytes(image), earlier)
        except Exception as error:  # noqa: BLE001 (any exception of a check is a failure)
            raise RejectedError(error, bytes(image)) from None

    def _storing_thread(self) -> int:
        """Return the number of the thread whose store becomes visible, -1 for none."""
        machine = self.machine
        if machine.order is not None and machine.order.draining is not None:
            return machine.order.draining
        if machine.current is not None:
            return machine.current.number
        return -1
