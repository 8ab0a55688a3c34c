"""Errors of native programs, and the source positions that they give."""

from __future__ import annotations

import sys

import attrs

from fx_emulator.errors import EmulatorError

PACKAGES = "capstone unicorn"
"""Packages of the extra ``native``."""


@attrs.frozen
class Frame:
    """A position in a native program: an address, with function and line from the object file."""

    address: int
    function: str = ""
    """Name of the function; empty where the symbol table has none."""
    offset: int = 0
    """Offset from the start of the function, in bytes."""
    file: str = ""
    """Name of the source file, without its folders; empty without DWARF lines."""
    line: int = 0
    own: bool = False
    """Whether the file is the user's own, not one of a compiler or library."""
    inner: tuple[str, ...] = ()
    """Places in files of libraries that were inlined here, innermost first."""

    @property
    def place(self) -> str:
        """``writer.c:42``, or function and offset, or the bare address."""
        if self.file:
            return f"{self.file}:{self.line}"
        if self.function:
            return f"{self.function}+{self.offset:#x}"
        return f"{self.address:#x}"

    def __str__(self) -> str:
        place = self.place
        if self.inner:
            place += f", via {self.inner[0]}"
        if self.file and self.function:
            return f"{self.function} ({place})"
        return place


class NativeError(EmulatorError):
    """An invalid operation of a native program.

    ``frames`` is the backtrace, innermost first; ``registers`` maps names to 64-bit values.
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
    def frame(self) -> Frame | None:
        """The innermost frame in a file of the user's own; without one, the innermost frame."""
        for frame in self.frames:
            if frame.own:
                return frame
        return self.frames[0] if self.frames else None

    @property
    def place(self) -> str:
        """The position of the error, such as ``writer.c:42``; empty before anything ran."""
        if self.frame is None:
            return ""
        return self.frame.place

    @property
    def function(self) -> str:
        """The function in which the error happened; empty if unknown."""
        if self.frame is None:
            return ""
        return self.frame.function

    def __str__(self) -> str:
        message = self.message
        if self.thread:
            message = f"thread {self.thread}: {message}"
        if not self.frames:
            return message
        trace = "".join(f"\n  at {frame} [{frame.address:#x}]" for frame in self.frames)
        return f"{message}, in {self.frame}{trace}"


class BudgetError(NativeError):
    """The program exceeded its budget of instructions; most likely an endless loop."""


class LoadError(NativeError):
    """An object file that cannot be loaded: wrong machine, relocation, or missing symbols."""


class MissingPackageError(EmulatorError, ImportError):
    """A package of the extra ``native`` is not installed; the message tells how to install it."""

    def __init__(self, package: str) -> None:
        self.package = package
        super().__init__(
            f"a native program needs {package}, which is not installed; to install it: "
            f"{sys.executable or 'python3'} -m pip install {PACKAGES}"
        )
