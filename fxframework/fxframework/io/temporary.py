"""Temporary files without a name, which end with the process; errors name their folder.

They are in the folder of ``tempfile``, which TMPDIR sets. Their blocks are allocated before they
are mapped, because a write to a mapping on a full disk would kill the process.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fxframework.errors import FxError, TemporaryFileError, out_of_descriptors

__all__ = ["Spool", "TemporaryFile", "reserve", "temporary_errors"]

PIECE = 1 << 20
"""Bytes written at a time if the system cannot allocate blocks."""


@contextlib.contextmanager
def temporary_errors() -> Iterator[None]:
    """Convert OSError to TemporaryFileError."""
    try:
        yield
    except OSError as error:
        try:
            folder = tempfile.gettempdir()
        except OSError:
            folder = os.environ.get("TMPDIR", "")
        raise TemporaryFileError(_cause(error), folder=folder) from error


def _cause(error: OSError) -> OSError:
    """Return why a temporary file could not be made.

    tempfile says that there is no usable folder also where no file at all can be opened.
    """
    if isinstance(error, FileNotFoundError):
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as reason:
            if out_of_descriptors(reason):
                return reason
    return error


class _Raw(io.FileIO):
    def write(self, data: Any) -> int:
        with temporary_errors():
            return super().write(data)


class TemporaryFile(io.BufferedRandom):
    """An empty temporary file for writing and reading. Raises TemporaryFileError.

    Closing it never raises: unwritten bytes are not needed any more.
    """

    def __init__(self) -> None:
        with temporary_errors(), tempfile.TemporaryFile(buffering=0) as file:
            raw = _Raw(os.dup(file.fileno()), "r+b")
        super().__init__(raw)

    def close(self) -> None:
        """Close and remove the file."""
        with contextlib.suppress(FxError):
            super().close()


if TYPE_CHECKING:
    _Spooled = tempfile.SpooledTemporaryFile[bytes]
else:
    _Spooled = tempfile.SpooledTemporaryFile


class Spool(_Spooled):
    """A buffer that moves to a temporary file when it is large. Raises TemporaryFileError."""

    def write(self, data: Any) -> int:
        """Append bytes; return their number."""
        with temporary_errors():
            return super().write(data)

    def flush(self) -> None:
        """Write the buffered bytes."""
        with temporary_errors():
            super().flush()

    def fileno(self) -> int:
        """Return the descriptor of the temporary file, creating it if necessary."""
        with temporary_errors():
            return super().fileno()

    def seek(self, *place: int) -> int:
        """Set the position; return it."""
        with temporary_errors():
            return super().seek(*place)

    def close(self) -> None:
        """Close and remove the file."""
        with contextlib.suppress(OSError):  # a full disk: the buffers cannot be written either
            super().close()


def reserve(descriptor: int, nbytes: int) -> None:
    """Extend a temporary file to ``nbytes``, with blocks allocated. Raises TemporaryFileError."""
    with temporary_errors():
        size = os.fstat(descriptor).st_size
        if size < nbytes and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, size, nbytes - size)
            return
        while size < nbytes:
            size += os.pwrite(descriptor, bytes(min(PIECE, nbytes - size)), size)
