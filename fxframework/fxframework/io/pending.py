"""Pending files: outputs that get their name when complete, so that no partial file remains.

On Linux such a file has no name until then and disappears with its process, even after a kill.
Elsewhere, and on file systems without unnamed files, it has a hidden name that identifies its
process; files left by dead processes are removed when the next output is written to the folder.
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

from fxframework.io.temporary import temporary_errors

__all__ = [
    "PendingFile",
    "PendingFolder",
    "hidden_name",
    "is_left",
    "new_scratch_folder",
    "remove_leftovers",
    "scratch_folder",
]

_DESCRIPTORS = Path("/proc/self/fd")
_OWNER = re.compile(r"\.fxf-([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\Z")
"""What ``hidden_name`` adds to a prefix: the machine, the process and a random number."""


class PendingFile:
    """A new file that will be named ``target``; write its bytes to ``file``.

    ``settle()`` names it, ``discard()`` removes it. Raises OSError if the folder is not writable.
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
        """A path at which the file can be read before it has its name."""
        return self._hidden or _DESCRIPTORS / str(self.file.fileno())

    def settle(self, *, replace: bool) -> None:
        """Close the file and name it atomically.

        Raises FileExistsError if the name exists and ``replace`` is false.
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
            # A link cannot replace a file, so link a hidden name and rename that.
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
        """Give the unnamed file a name. Raises FileExistsError if it exists."""
        folder = os.open(name.parent, os.O_RDONLY)
        try:
            # With folder descriptors, Python calls linkat(2), which can follow the link in /proc.
            source = str(self.path)
            os.link(source, name.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=True)
        finally:
            os.close(folder)

    def discard(self) -> None:
        """Close the file, and remove it unless it has its name."""
        with contextlib.suppress(OSError):  # a full disk: the buffers cannot be written either
            self.file.close()
        if self._hidden is not None:
            self._hidden.unlink(missing_ok=True)


class PendingFolder:
    """A new folder that will be named ``target``; until then its files are in ``path``.

    ``settle()`` names it, ``discard()`` removes it. Raises OSError if the parent folder is not
    writable.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        remove_leftovers(target.parent, f".{target.name}")
        self.path = target.with_name(hidden_name(f".{target.name}"))
        self.path.mkdir()

    def settle(self) -> None:
        """Name the folder atomically. Raises OSError if a folder with files has the name."""
        if os.name == "nt" and self.target.is_dir():
            self.target.rmdir()  # elsewhere an empty folder is replaced
        self.path.replace(self.target)

    def discard(self) -> None:
        """Remove the folder unless it has its name."""
        shutil.rmtree(self.path, ignore_errors=True)


def _unnamed(folder: Path) -> int | None:
    """Open an unnamed file in a folder; return its descriptor, or None if unsupported."""
    if not hasattr(os, "O_TMPFILE") or not _DESCRIPTORS.is_dir():
        return None
    try:
        return os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o666)
    except OSError:
        return None  # unsupported by the file system; other errors recur when a named file is made


# --- Leftovers ---------------------------------------------------------------------------------


@contextlib.contextmanager
def scratch_folder(purpose: str) -> Iterator[Path]:
    """Yield a temporary folder, removed at the end; first remove those of dead processes."""
    folder = new_scratch_folder(purpose)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_scratch_folder(purpose: str) -> Path:
    """Make a temporary folder that the caller removes; first remove those of dead processes."""
    with temporary_errors():
        parent = Path(tempfile.gettempdir())
        remove_leftovers(parent, f"fxf-{purpose}")
        folder = parent / hidden_name(f"fxf-{purpose}")
        folder.mkdir(mode=0o700)
    return folder


def remove_leftovers(folder: Path, prefix: str) -> None:
    """Remove the hidden files with this prefix that dead processes of this machine left."""
    try:
        names = [name for name in os.listdir(folder) if name.startswith(f"{prefix}.fxf-")]  # noqa: PTH208 (names alone)
    except OSError:
        return
    for leftover in (folder / name for name in names if is_left(name, prefix)):
        with contextlib.suppress(OSError):
            if leftover.is_dir() and not leftover.is_symlink():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink()


def is_left(name: str, prefix: str, *, elsewhere: bool = False) -> bool:
    """Return whether a name is a ``hidden_name`` of a dead process of this machine.

    With ``elsewhere``, return whether it is a hidden name of another machine.
    """
    if not name.startswith(prefix):
        return False
    owner = _OWNER.fullmatch(name[len(prefix) :])
    if owner is None:
        return False
    machine, process = owner.groups()
    if elsewhere:
        return bool(machine != _machine())
    return machine == _machine() and not _runs(int(process))


def hidden_name(prefix: str) -> str:
    """Return a unique name that identifies this machine and process."""
    return f"{prefix}.fxf-{_machine()}-{os.getpid()}-{secrets.token_hex(4)}"


@functools.cache
def _machine() -> str:
    """Return a hash that identifies the machine and the container (its space of process ids)."""
    import platform

    process_space = ""
    with contextlib.suppress(OSError):
        process_space = str(Path("/proc/self/ns/pid").readlink())
    return f"{zlib.crc32(f'{platform.node()}/{process_space}'.encode()):08x}"


def _runs(process: int) -> bool:
    """Return whether a process exists."""
    if os.name == "nt":  # Windows does not let others remove the file of a running process
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
