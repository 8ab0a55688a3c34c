"""Pending files: outputs that have no name until they are whole, so that nothing is left behind.

On Linux such a file has no name at all, and ends with its process, whatever ends that. Elsewhere,
and on file systems that cannot do this, it has a hidden name that says whose it is; what dead
processes have left is removed when the next output is written to the same folder.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import secrets
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

__all__ = [
    "PendingFile",
    "PendingFolder",
    "hidden_name",
    "is_left",
    "remove_leftovers",
    "scratch_folder",
]

_DESCRIPTORS = Path("/proc/self/fd")
_OWNER = re.compile(r"\.fxf-([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\Z")


class PendingFile:
    """A new file for the place ``target``; ``file`` takes its bytes.

    ``settle()`` gives it its name, ``discard()`` removes it. Raises OSError where the folder cannot
    be written.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self._hidden: Path | None = None
        descriptor = _unnamed(target.parent)
        if descriptor is None:
            remove_leftovers(target.parent, f".{target.name}")
            self._hidden = target.with_name(hidden_name(f".{target.name}"))
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            descriptor = os.open(self._hidden, flags, 0o666)
        self.file: IO[bytes] = os.fdopen(descriptor, "wb")

    @property
    def path(self) -> Path:
        """Where others can read it before it has its name."""
        return self._hidden or _DESCRIPTORS / str(self.file.fileno())

    def settle(self, *, replace: bool) -> None:
        """Close the file and give it its name, in one step.

        Raises FileExistsError where the name is taken and ``replace`` is not given.
        """
        self.file.flush()
        if self._hidden is not None:
            self.file.close()
            if not replace and os.path.lexists(self.target):
                raise FileExistsError(self.target)
            self._hidden.replace(self.target)
            return
        try:
            self._link(self.target)
        except FileExistsError:
            if not replace:
                raise
            # A link never replaces a file; only a rename does.
            remove_leftovers(self.target.parent, f".{self.target.name}")
            hidden = self.target.with_name(hidden_name(f".{self.target.name}"))
            self._link(hidden)
            try:
                hidden.replace(self.target)
            except OSError:
                hidden.unlink(missing_ok=True)
                raise
        self.file.close()

    def _link(self, name: Path) -> None:
        """Give the nameless file a name. Raises FileExistsError where it is taken."""
        folder = os.open(name.parent, os.O_RDONLY)
        try:
            # With a folder given, Python calls linkat(2), which alone follows the link in /proc.
            source = str(self.path)
            os.link(source, name.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=True)
        finally:
            os.close(folder)

    def discard(self) -> None:
        """Close the file, and remove it where it has not got its name."""
        with contextlib.suppress(OSError):  # a full disk: the buffers cannot be written either
            self.file.close()
        if self._hidden is not None:
            self._hidden.unlink(missing_ok=True)


class PendingFolder:
    """A new folder for the place ``target``; ``path`` is where its files go until then.

    ``settle()`` gives it its name, ``discard()`` removes it. Raises OSError where the folder around
    it cannot be written.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        remove_leftovers(target.parent, f".{target.name}")
        self.path = target.with_name(hidden_name(f".{target.name}"))
        self.path.mkdir()

    def settle(self) -> None:
        """Give it its name, in one step. Raises OSError where a folder with files has the name."""
        if os.name == "nt" and self.target.is_dir():
            self.target.rmdir()  # elsewhere an empty folder is replaced
        self.path.replace(self.target)

    def discard(self) -> None:
        """Remove it where it has not got its name."""
        shutil.rmtree(self.path, ignore_errors=True)


def _unnamed(folder: Path) -> int | None:
    """The descriptor of a file without a name in a folder; None where there can be none."""
    if not hasattr(os, "O_TMPFILE") or not _DESCRIPTORS.is_dir():
        return None
    try:
        return os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o666)
    except OSError:
        return None  # the file system has none; what else is wrong shows when a named one is made


# --- leftovers ---------------------------------------------------------------------------------


@contextlib.contextmanager
def scratch_folder(purpose: str) -> Iterator[Path]:
    """A temporary folder, removed at the end; what dead processes left of its kind, before."""
    parent = Path(tempfile.gettempdir())
    remove_leftovers(parent, f"fxf-{purpose}")
    folder = parent / hidden_name(f"fxf-{purpose}")
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(folder: Path, prefix: str) -> None:
    """Remove what processes of this machine that have ended left in a folder under such names."""
    try:
        names = [name for name in os.listdir(folder) if name.startswith(f"{prefix}.fxf-")]  # noqa: PTH208 (names alone)
    except OSError:
        return
    for left in (folder / name for name in names if is_left(name, prefix)):
        with contextlib.suppress(OSError):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink()


def is_left(name: str, prefix: str, *, elsewhere: bool = False) -> bool:
    """Whether it is a ``hidden_name`` of this prefix whose process, of this machine, has ended.

    With ``elsewhere``, whether it is one of another machine.
    """
    owner = _OWNER.fullmatch(name[len(prefix) :]) if name.startswith(prefix) else None
    if owner is None or (owner[1] != _machine()) != elsewhere:
        return False
    return elsewhere or not _runs(int(owner[2]))


def hidden_name(prefix: str) -> str:
    """A name that says which process it belongs to."""
    return f"{prefix}.fxf-{_machine()}-{os.getpid()}-{secrets.token_hex(4)}"


@functools.cache
def _machine() -> str:
    """What distinguishes machines, and containers, whose processes have numbers of their own."""
    import platform

    space = ""
    with contextlib.suppress(OSError):
        space = str(Path("/proc/self/ns/pid").readlink())
    return f"{zlib.crc32(f'{platform.node()}/{space}'.encode()):08x}"


def _runs(process: int) -> bool:
    """Whether a process is there."""
    if os.name == "nt":  # the file of a process that runs cannot be removed there
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
