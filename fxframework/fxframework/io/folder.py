"""Folder: an output of several files, created atomically."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Self

from fxframework.errors import WriteRefusedError
from fxframework.io.pending import PendingFolder
from fxframework.io.sink import Sink

__all__ = ["Folder", "names_folder"]


def names_folder(where: str | os.PathLike[str]) -> bool:
    """Return whether a name denotes a folder: a path that ends with a slash."""
    text = os.fspath(where)
    return "://" not in text and text.endswith(("/", os.sep))


class Folder(Sink):
    """A sink of files; ``file(name)`` opens one. The folder gets its name when it is committed."""

    def __init__(self, pending: PendingFolder, *, name: str) -> None:
        super().__init__(io.BytesIO(), name=name)
        self._folder = pending
        self._files: list[Sink] = []

    @classmethod
    def open(cls, where: str | os.PathLike[str], *, force: bool = False) -> Self:  # noqa: ARG003
        """Create a folder. Raises WriteRefusedError if the name exists and is not an empty folder.

        A folder with files is never replaced, not even with ``force``.
        """
        target = Path(where)
        is_taken = os.path.lexists(target) and (not target.is_dir() or any(target.iterdir()))
        if is_taken:
            raise WriteRefusedError(
                "it already exists and is not an empty folder",
                path=str(target),
                remedy="choose another name, or remove it",
            )
        try:
            return cls(PendingFolder(target), name=str(target))
        except OSError as error:
            raise WriteRefusedError(
                f"cannot write there: {error.strerror or error}",
                path=str(target),
                remedy="check that the parent folder exists and is writable",
            ) from error

    def file(self, name: str) -> Sink:
        """Open a new file in the folder; the caller commits it."""
        sink = Sink.open(self._folder.path / name)
        sink.budget = self.budget
        self._files.append(sink)
        return sink

    @property
    def written(self) -> int:
        """Bytes written so far to all files."""
        return sum(file.written for file in self._files)

    def write(self, data: bytes | bytearray | memoryview) -> None:  # noqa: ARG002
        """Raise WriteRefusedError: a folder has no bytes of its own."""
        raise WriteRefusedError(
            "only tables make a folder of files",
            path=self.name,
            remedy="leave out the slash at the end, or use -t parquet or -t arrow",
        )

    def _finish(self) -> None:
        self._folder.settle()

    def _discard(self) -> None:
        for file in self._files:
            file.abort()
        self._folder.discard()
