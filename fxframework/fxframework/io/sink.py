"""Sink: an output. Files are created atomically, and are not replaced unless forced."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import IO, Any, Self, cast

from fxframework.errors import BadCallError, FxError, OutputError, WriteRefusedError
from fxframework.io.budget import Budget
from fxframework.io.packing import packing_of_name
from fxframework.io.pending import PendingFile

__all__ = ["Sink", "already_exists"]


class _Nowhere(io.RawIOBase):
    """A file that discards its bytes."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return memoryview(data).nbytes


class Sink:
    """An output, used as a context manager: committed on success, discarded on an exception.

    A sink for a path writes a file that gets its name on commit (``fxframework.io.pending``),
    compressed if the path ends in ``.gz`` or ``.zst``. A sink for standard output passes bytes
    through. ``Sink.memory()`` keeps them for ``getvalue()``.
    """

    def __init__(self, file: IO[bytes], *, name: str, force: bool = False) -> None:
        self._file = file
        self.name = name
        self._force = force
        self._written = 0
        self._open = True
        self.budget: Budget | None = None
        """The budget of the operation that writes this output."""

    @classmethod
    def open(cls, where: str | os.PathLike[str], *, force: bool = False) -> Self:
        """Open a sink for a path or ``-`` (standard output).

        Raises WriteRefusedError, without changing anything, if the file exists and ``force`` is
        not given, or if the folder is not writable. ``force`` replaces a symbolic link, not what
        it leads to.
        """
        if os.fspath(where) == "-":
            if sys.stdout is None:
                raise WriteRefusedError("standard output is closed", path="<stdout>")
            return cls(sys.stdout.buffer, name="<stdout>", force=force)
        target = Path(where)
        try:
            if target.is_dir():
                raise WriteRefusedError(
                    "it is a folder", path=str(target), remedy="name a file in it"
                )
            if target.exists() and not target.is_file():  # /dev/null or a FIFO
                return cls(target.open("wb"), name=str(target), force=force)
            if not force and os.path.lexists(target):  # also a symbolic link that leads nowhere
                raise already_exists(str(target))
            packing = packing_of_name(target.name)
            if packing is not None:
                packing.check()
            pending = PendingFile(target)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise WriteRefusedError(
                f"cannot write there: {reason}",
                path=str(target),
                remedy="check the name, and that the folder exists and is writable",
            ) from error
        file = pending.file
        if packing is not None:
            file = packing.packer(file)
        sink = cls(file, name=str(target), force=force)
        sink._pending = pending
        return sink

    @classmethod
    def memory(cls) -> Self:
        """Return a sink that keeps its bytes for ``getvalue()``."""
        return cls(io.BytesIO(), name="<memory>", force=True)

    @classmethod
    def nowhere(cls) -> Self:
        """Return a sink that discards its bytes and counts them in ``written``."""
        return cls(cast("IO[bytes]", _Nowhere()), name="<nowhere>", force=True)

    _pending: PendingFile | None = None
    """The file that gets its name on commit; None for other outputs."""
    _stored: int | None = None
    """The size of a compressed file, once it is complete."""

    @property
    def written(self) -> int:
        """Bytes written so far; of a compressed file that is complete, its size."""
        if self._stored is not None:
            return self._stored
        return self._written

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes.

        Raises OutputError if that fails, for example on a full disk; LimitError beyond the
        ``budget``; BadCallError for what is not bytes.
        """
        try:
            nbytes = memoryview(data).nbytes
        except TypeError as error:
            raise BadCallError(
                f"a sink takes bytes, not {type(data).__name__}",
                remedy="encode text: sink.write(text.encode())",
            ) from error
        if self.budget is not None:
            self.budget.check_output(self._written + nbytes, path=self.name)
        try:
            self._file.write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._failure(error) from error
        self._written += nbytes

    def getvalue(self) -> bytes:
        """Return all bytes of a memory sink."""
        if not isinstance(self._file, io.BytesIO):
            raise TypeError("only a memory sink keeps its bytes")
        return self._file.getvalue()

    def commit(self) -> None:
        """Finish the output and name its file atomically.

        Raises OutputError if writing fails, UnreadableError if an input of the ``budget`` was
        shortened while it was read.
        """
        if not self._open:
            return
        self._open = False
        try:
            if self.budget is not None:
                self.budget.check_inputs()
            self._finish()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._failure(error) from error
        finally:
            self._discard()

    def _failure(self, error: OSError) -> FxError:
        """The error to raise where the file cannot be written."""
        return OutputError(error, path=self.name)

    @property
    def _is_file(self) -> bool:
        """Whether ``_file`` is a file that this object must close."""
        return self.name not in {"<stdout>", "<memory>"}

    def _discard(self) -> None:
        """Close the file, and remove it unless it has its name."""
        if self._is_file:
            with contextlib.suppress(OSError):  # a full disk: the buffers cannot be written either
                self._file.close()
        if self._pending is not None:
            self._pending.discard()

    def _finish(self) -> None:
        """Write what is buffered, and name the file. Raises OSError."""
        self._file.flush()
        if self._pending is None:
            if self._is_file:
                self._file.close()
            return
        if self._file is not self._pending.file:
            self._file.close()  # write the end of the compressed data
            self._pending.file.flush()
            self._stored = os.fstat(self._pending.file.fileno()).st_size
        try:
            self._settle(self._pending)
        except FileExistsError:
            raise already_exists(str(self._pending.target)) from None

    def _settle(self, pending: PendingFile) -> None:
        """Name the complete file. Raises FileExistsError if it exists and is not to be replaced."""
        pending.settle(replace=self._force)

    def abort(self) -> None:
        """Discard the output; an existing file is left unchanged."""
        if not self._open:
            return
        self._open = False
        self._discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.abort()


def already_exists(name: str) -> WriteRefusedError:
    """Return the error for an output that exists and is not to be replaced."""
    return WriteRefusedError(
        "it already exists (force=True replaces it)",
        path=name,
        remedy="choose another name, or replace it: --force on the command line, force=True in "
        "Python",
    )
