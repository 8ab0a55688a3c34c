"""Remote: inputs and outputs at addresses such as ``s3://bucket/boot.fxt``, through fsspec."""

from __future__ import annotations

import contextlib
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from fxframework.errors import (
    FxError,
    MissingExtraError,
    TemporaryFileError,
    UnreadableError,
    WriteRefusedError,
    one_line,
)
from fxframework.io.limits import Limits
from fxframework.io.packing import packing_of_name
from fxframework.io.pending import PendingFile, hidden_name, is_left
from fxframework.io.sink import Sink, already_exists
from fxframework.io.source import CHUNK, Progress, Source
from fxframework.io.temporary import temporary_errors

__all__ = ["file_system", "is_address", "open_sink", "open_source"]

MARK = "://"
OBJECT_STORES = frozenset(
    [
        "s3",
        "s3a",
        "gs",
        "gcs",
        "abfs",
        "abfss",
        "az",
        "adl",
        "oci",
        "oss",
        "http",
        "https",
        "memory",
    ]
)
"""Schemes whose objects appear only after all of their bytes were sent."""
ABANDONED = timedelta(hours=24)
"""The age after which a hidden file of another machine is considered abandoned."""


def is_address(name: object) -> bool:
    """Return whether a name is an address rather than a path."""
    return isinstance(name, str) and MARK in name


def file_system(uri: str, refusal: type[FxError] = UnreadableError) -> tuple[Any, str]:
    """Return the fsspec file system of an address, and the path within it.

    Raises MissingExtraError without fsspec, and ``refusal`` for a scheme that fsspec does not know
    or whose package is missing.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtraError("fsspec", "remote", purpose="a remote file") from None
    try:
        file_system_and_path: tuple[Any, str] = url_to_fs(uri)
    except ImportError as error:
        raise refusal(
            f"its scheme needs another package: {error}",
            path=uri,
            remedy="install the package that the message names",
        ) from None
    except Exception as error:
        raise refusal(
            f"no plugin opens this kind of address, and fsspec does not: {error}",
            path=uri,
            remedy="`fxf plugins` lists what is installed; correct the scheme",
        ) from error
    return file_system_and_path


def is_local(fs: Any) -> bool:
    """Return whether a file system is the local one (``file://``)."""
    return "file" in _schemes(fs)


def _schemes(fs: Any) -> frozenset[str]:
    """Return the schemes of a file system; fsspec has one as a string, several as a tuple."""
    if isinstance(fs.protocol, str):
        return frozenset([fs.protocol])
    return frozenset(fs.protocol)


def open_source(
    uri: str, *, limits: Limits | None = None, progress: Progress | None = None
) -> Source:
    """Fetch an address to memory, or to an unlinked file if it is large.

    Raises UnreadableError if it cannot be fetched, LimitError beyond ``max_unpacked``.
    """
    limits = limits or Limits()
    fs, path = file_system(uri)
    if is_local(fs):
        return Source.open(path, limits=limits, progress=progress)
    try:
        with fs.open(path, "rb", cache_type="readahead", block_size=4 * CHUNK) as file:
            raw = Source.gather(
                lambda: cast("bytes", file.read(CHUNK)),
                name=uri,
                limits=limits,
                progress=progress,
                size=getattr(file, "size", None) or 0,  # some servers do not say it
            )
    except FxError:
        raise
    except Exception as error:
        raise UnreadableError(
            f"cannot fetch it: {one_line(error)}",
            path=uri,
            remedy="check the address, the network and your permissions",
        ) from error
    return raw.unpack(limits, progress)


def open_sink(uri: str, *, force: bool = False) -> Sink:
    """Return an output at an address: collected in a temporary file, and sent when complete.

    If the file system shows files while they are sent, the file has a hidden name until it is
    complete. Hidden files left by dead processes of this machine are removed first, and those of
    other machines after ``ABANDONED``.

    Raises WriteRefusedError if the output exists and ``force`` is not given, or if the address
    cannot be used.
    """
    fs, path = file_system(uri, WriteRefusedError)
    if is_local(fs):
        return Sink.open(path, force=force)
    return _RemoteSink(fs, path, uri, force=force)


class _RemoteSink(Sink):
    """A sink that sends its file to another machine on commit."""

    def __init__(self, fs: Any, path: str, uri: str, *, force: bool) -> None:
        self._fs = fs
        self._path = path
        packing = packing_of_name(path)
        if packing is not None:
            packing.check()
        if not force:
            self._refuse_existing(uri)
        with temporary_errors():
            pending = PendingFile(Path(tempfile.gettempdir(), "fxf-sink"))
        file = pending.file if packing is None else packing.packer(pending.file)
        super().__init__(file, name=uri, force=force)
        self._pending = pending

    def _refuse_existing(self, uri: str) -> None:
        """Raise WriteRefusedError if the output exists."""
        exists = False
        with contextlib.suppress(Exception):  # some file systems cannot test existence
            exists = self._fs.exists(self._path)
        if exists:
            raise already_exists(uri)

    def _failure(self, error: OSError) -> FxError:
        return TemporaryFileError(error, folder=tempfile.gettempdir())

    def _settle(self, pending: PendingFile) -> None:
        """Send the complete file. Raises WriteRefusedError if that fails."""
        if not self._force:
            self._refuse_existing(self.name)
        try:
            self._send(str(pending.path))
        except Exception as error:
            raise WriteRefusedError(
                f"cannot send it: {one_line(error)}",
                path=self.name,
                remedy="check the address, the network and your permissions",
            ) from error

    def _send(self, local_path: str) -> None:
        """Send the file so that nobody sees a part of it under its name."""
        fs = self._fs
        folder, _, name = self._path.rpartition("/")
        fs.makedirs(fs._parent(self._path), exist_ok=True)  # noqa: SLF001
        if _schemes(fs) & OBJECT_STORES:
            fs.put_file(local_path, self._path)
            return
        _remove_leftovers(fs, folder, f".{name}")
        hidden_path = f"{folder}/{hidden_name(f'.{name}')}"
        try:
            fs.put_file(local_path, hidden_path)
            try:
                fs.mv(hidden_path, self._path)
            except Exception:
                if not self._force:
                    raise
                fs.rm_file(self._path)  # some file systems cannot rename over an existing file
                fs.mv(hidden_path, self._path)
        except BaseException:
            with contextlib.suppress(Exception):
                fs.rm_file(hidden_path)
            raise


def _remove_leftovers(fs: Any, folder: str, prefix: str) -> None:
    """Remove the hidden files that dead processes left in a folder."""
    with contextlib.suppress(Exception):  # some file systems cannot list folders
        for path in fs.ls(folder, detail=False):
            name = path.rpartition("/")[2]
            is_abandoned = is_left(name, prefix)
            # Whether processes of other machines are alive is not known; time has to tell.
            if is_left(name, prefix, elsewhere=True):
                is_abandoned = datetime.now(UTC) - fs.modified(path) > ABANDONED
            if is_abandoned:
                fs.rm_file(path)
