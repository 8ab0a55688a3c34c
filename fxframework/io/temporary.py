"""Temporary files: they have no name and end with the process; an error names their folder.

They are in the folder of ``tempfile``, which TMPDIR changes. Their blocks are there before they are
mapped: a write to a mapping that finds the disk full would end the process.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fxframework.errors import FxError, TemporaryFileError

__all__ = ["Spool", "TemporaryFile", "reserve", "temporary_errors"]

PIECE = 1 << 20
"""Bytes that are written at once where the system cannot allocate blocks."""


@contextlib.contextmanager
def temporary_errors() -> Iterator[None]:
    """Within it, an OSError is raised as a TemporaryFileError."""
    try:
        yield
    except OSError as error:
        try:
            folder = tempfile.gettempdir()
        except OSError:
            folder = os.environ.get("TMPDIR", "")
        raise TemporaryFileError(error, folder=folder) from error


class _Raw(io.FileIO):
    def write(self, data: Any) -> int:
        with temporary_errors():
            return super().write(data)


class TemporaryFile(io.BufferedRandom):
    """A temporary file, empty, to be written and read. Raises TemporaryFileError.

    Closing it raises nothing: what was not written is not needed any more.
    """

    def __init__(self) -> None:
        with temporary_errors(), tempfile.TemporaryFile(buffering=0) as file:
            raw = _Raw(os.dup(file.fileno()), "r+b")
        super().__init__(raw)

    def close(self) -> None:
        """Close it, and remove it."""
        with contextlib.suppress(FxError):
            super().close()


if TYPE_CHECKING:
    _Spooled = tempfile.SpooledTemporaryFile[bytes]
else:
    _Spooled = tempfile.SpooledTemporaryFile


class Spool(_Spooled):
    """Bytes in memory, in a temporary file once they are many. Raises TemporaryFileError."""

    def write(self, data: Any) -> int:
        """Append bytes; gives how many."""
        with temporary_errors():
            return super().write(data)

    def flush(self) -> None:
        """Write what is buffered."""
        with temporary_errors():
            super().flush()

    def fileno(self) -> int:
        """The descriptor of the temporary file, which is made if need be."""
        with temporary_errors():
            return super().fileno()

    def seek(self, *place: int) -> int:
        """Go to a place; gives it."""
        with temporary_errors():
            return super().seek(*place)

    def close(self) -> None:
        """Close it, and remove it."""
        with contextlib.suppress(OSError):  # a full disk: the buffers cannot be written either
            super().close()


def reserve(descriptor: int, nbytes: int) -> None:
    """Make a temporary file ``nbytes`` long, all on the disk. Raises TemporaryFileError."""
    with temporary_errors():
        size = os.fstat(descriptor).st_size
        if size < nbytes and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, size, nbytes - size)
            return
        while size < nbytes:
            size += os.pwrite(descriptor, bytes(min(PIECE, nbytes - size)), size)
