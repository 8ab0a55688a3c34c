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

# Entries of the auxiliary vector (getauxval(3)).
_AT_NULL = 0
_AT_PHDR = 3
_AT_PHENT = 4
_AT_PHNUM = 5
_AT_PAGESZ = 6
_AT_BASE = 7
_AT_ENTRY = 9
_AT_UID = 11
_AT_EUID = 12
_AT_GID = 13
_AT_EGID = 14
_AT_HWCAP = 16
_AT_CLKTCK = 17
_AT_SECURE = 23
_AT_RANDOM = 25
_AT_EXECFN = 31
_HEADER_BYTES = 56
"""Bytes of a program header."""


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
        sp = thread.top - 64

        def put(text: bytes) -> int:
            nonlocal sp
            sp -= len(text) + 1
            space.write(sp, text + b"\0")
            return sp

        command_line = [text.encode() for text in (str(self.path), *arguments)]
        variables = [f"{name}={value}".encode() for name, value in environment.items()]
        self.system.own = {
            "/proc/self/cmdline": b"".join(text + b"\0" for text in command_line),
            "/proc/self/environ": b"".join(text + b"\0" for text in variables),
        }
        argument_addresses = [put(text) for text in command_line]
        variable_addresses = [put(text) for text in variables]
        random_bytes = put(bytes(range(1, 17)))  # libc makes the stack protector's word of them
        file = machine.file
        auxiliary = {
            _AT_PHDR: file.headers,
            _AT_PHENT: _HEADER_BYTES,
            _AT_PHNUM: file.header_count,
            _AT_PAGESZ: PAGE,
            _AT_BASE: 0,
            _AT_ENTRY: file.entry,
            _AT_UID: 0,
            _AT_EUID: 0,
            _AT_GID: 0,
            _AT_EGID: 0,
            _AT_CLKTCK: 100,
            _AT_SECURE: 0,
            _AT_RANDOM: random_bytes,
            _AT_EXECFN: argument_addresses[0],
            _AT_HWCAP: 0,
            _AT_NULL: 0,
        }
        words = [len(argument_addresses), *argument_addresses, 0, *variable_addresses, 0]
        for number, value in auxiliary.items():
            words += [number, value]
        sp = (sp - 8 * len(words)) & -16
        space.write(sp, struct.pack(f"<{len(words)}Q", *words))
        machine.select(thread)
        machine.engine.set("rsp", sp)
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
