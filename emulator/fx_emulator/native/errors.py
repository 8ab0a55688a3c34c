"""Errors of native programs, and the places in the program that they name."""

from __future__ import annotations

import sys

import attrs

from fx_emulator.errors import EmulatorError

__all__ = ["BudgetError", "Frame", "LoadError", "MissingPackageError", "NativeError"]

PACKAGES = "capstone unicorn"
"""What the extra ``native`` installs."""


@attrs.frozen
class Frame:
    """One place in a native program: an address, and what the object file says about it."""

    address: int
    function: str = ""
    """Name of the function; empty where the symbol table has none."""
    offset: int = 0
    """Bytes from the beginning of the function."""
    file: str = ""
    """Name of the source file, without its folders; empty without DWARF lines."""
    line: int = 0

    @property
    def place(self) -> str:
        """``writer.c:42``, or the function and offset, or the bare address."""
        if self.file:
            return f"{self.file}:{self.line}"
        if self.function:
            return f"{self.function}+{self.offset:#x}"
        return f"{self.address:#x}"

    def __str__(self) -> str:
        if self.file and self.function:
            return f"{self.function} ({self.place})"
        return self.place


class NativeError(EmulatorError):
    """A native program did what no program may do.

    ``frames`` is the backtrace, innermost first; ``registers`` maps names to values of 64 bits.
    """

    def __init__(
        self,
        message: str,
        *,
        frames: tuple[Frame, ...] = (),
        registers: dict[str, int] | None = None,
        thread: str = "",
    ) -> None:
        self.message = message
        self.frames = frames
        self.registers = registers or {}
        self.thread = thread
        super().__init__(message)

    @property
    def place(self) -> str:
        """Where it happened: ``writer.c:42``; empty where nothing ran yet."""
        return self.frames[0].place if self.frames else ""

    @property
    def function(self) -> str:
        """The function in which it happened."""
        return self.frames[0].function if self.frames else ""

    def __str__(self) -> str:
        who = f"thread {self.thread}: " if self.thread else ""
        if not self.frames:
            return who + self.message
        trace = "".join(f"\n  at {frame} [{frame.address:#x}]" for frame in self.frames)
        return f"{who}{self.message}, in {self.frames[0]}{trace}"


class BudgetError(NativeError):
    """The program ran more instructions than its budget: an endless loop, most likely."""


class LoadError(NativeError):
    """An object file that cannot be loaded: another machine, a relocation, missing symbols."""


class MissingPackageError(EmulatorError, ImportError):
    """A package of the extra ``native`` is not installed; the message has the install line."""

    def __init__(self, package: str) -> None:
        self.package = package
        super().__init__(
            f"a native program needs {package}, which is not installed; to install it: "
            f"{sys.executable or 'python3'} -m pip install {PACKAGES}"
        )
