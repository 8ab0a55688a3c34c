"""Static Linux executables on the emulated CPU: their start, and their files and output."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from fx_emulator.native.calls import Blocked
from fx_emulator.native.errors import BudgetError
from fx_emulator.native.linux import Linux
from fx_emulator.native.machine import Machine
from fx_emulator.native.space import PAGE
from fx_emulator.native.threads import Finished

__all__ = ["LinuxProcess"]


class LinuxProcess:
    """A static Linux executable; created by ``Target.execute``."""

    def __init__(
        self,
        machine: Machine,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        files: Mapping[str, bytes],
    ) -> None:
        self.path = machine.file.path
        self.machine = machine
        self.system: Linux = machine.linux
        self.system.files = {name: bytearray(data) for name, data in files.items()}
        self._put_start(arguments, environment)

    @property
    def files(self) -> dict[str, bytes]:
        """All files by path, given and written."""
        return {path: bytes(data) for path, data in self.system.files.items()}

    @property
    def output(self) -> bytes:
        """Bytes printed so far."""
        return bytes(self.machine.output)

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs."""
        return self.system.exit_code

    def _put_start(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Set up the stack as the kernel does: arguments, environment, auxiliary vector."""
        machine = self.machine
        thread = machine.main
        machine.start(thread, machine.file.entry)
        space = machine.space
        at = thread.top - 64

        def put(text: bytes) -> int:
            nonlocal at
            at -= len(text) + 1
            space.write(at, text + b"\0")
            return at

        names = (str(self.path), *arguments)
        pairs = [f"{name}={value}" for name, value in environment.items()]
        self.system.own = {
            "/proc/self/cmdline": b"".join(each.encode() + b"\0" for each in names),
            "/proc/self/environ": b"".join(each.encode() + b"\0" for each in pairs),
        }
        texts = [put(each.encode()) for each in names]
        variables = [put(each.encode()) for each in pairs]
        chance = put(bytes(range(1, 17)))
        file = machine.file
        vector = (
            (3, file.headers), (4, 56), (5, file.header_count), (6, PAGE), (7, 0),
            (9, file.entry), (11, 0), (12, 0), (13, 0), (14, 0), (17, 100), (23, 0),
            (25, chance), (31, texts[0]), (16, 0), (0, 0),
        )  # fmt: skip
        words = [len(texts), *texts, 0, *variables, 0, *(each for pair in vector for each in pair)]
        at = (at - 8 * len(words)) & -16
        space.write(at, struct.pack(f"<{len(words)}Q", *words))
        machine.select(thread)
        machine.engine.set("rsp", at)
        machine.engine.set("fs_base", 0)
        machine.select(None)

    def run(self, budget: int = 100_000_000) -> int:
        """Run to the end. Return the exit code. Raises NativeError as calls of functions do."""
        machine = self.machine
        outcome = machine.advance(machine.main, budget)
        machine.timer.spend()
        match outcome:
            case Blocked(action="exit") | Finished():
                return self.exit_code or 0
            case _:
                error = machine.endless(machine.main)
                raise BudgetError(error.message, frames=error.frames, registers=error.registers)
