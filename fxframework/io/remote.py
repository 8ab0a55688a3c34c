"""Remote: inputs and outputs at addresses such as ``s3://bucket/boot.fxt``, through fsspec."""

from __future__ import annotations

import contextlib
import tempfile
from typing import IO, Any, cast

from fxframework.errors import FxError, MissingExtraError, UnreadableError, WriteRefusedError
from fxframework.io.limits import Limits
from fxframework.io.packing import packing_of_name
from fxframework.io.sink import Sink
from fxframework.io.source import CHUNK, Progress, Source

__all__ = ["file_system", "is_address", "open_sink", "open_source"]

MARK = "://"


def is_address(name: object) -> bool:
    """Whether a name is an address rather than a path."""
    return isinstance(name, str) and MARK in name


def file_system(uri: str, refusal: type[FxError] = UnreadableError) -> tuple[Any, str]:
    """The fsspec file system of an address, and the path within it.

    Raises MissingExtraError without fsspec, and ``refusal`` for a scheme that fsspec does not know
    or whose package is missing.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtraError("fsspec", "remote", purpose="a remote file") from None
    try:
        found: tuple[Any, str] = url_to_fs(uri)
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
    return found


def is_local(fs: Any) -> bool:
    """Whether a file system is that of this machine (``file://``)."""
    return "file" in ((fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol)


def open_source(
    uri: str, *, limits: Limits | None = None, progress: Progress | None = None
) -> Source:
    """Fetch an address to memory, or to an unlinked file where it is large.

    Raises UnreadableError for what cannot be fetched, LimitError beyond ``max_unpacked``.
    """
    limits = limits or Limits()
    fs, path = file_system(uri)
    if is_local(fs):
        return Source.open(path, limits=limits, progress=progress)
    try:
        with fs.open(path, "rb", cache_type="readahead", block_size=4 * CHUNK) as file:
            raw = Source.gather(
                lambda: cast("bytes", file.read(CHUNK)), name=uri, limits=limits, progress=progress
            )
    except FxError:
        raise
    except Exception as error:
        raise UnreadableError(
            f"cannot fetch it: {_line(error)}",
            path=uri,
            remedy="check the address, the network and your permissions",
        ) from error
    return raw.unpack(limits, progress)


def open_sink(uri: str, *, force: bool = False) -> Sink:
    """An output at an address: gathered in a temporary file, and sent when it is whole.

    Raises WriteRefusedError where it exists and ``force`` is not given, or cannot be asked for.
    """
    fs, path = file_system(uri, WriteRefusedError)
    if is_local(fs):
        return Sink.open(path, force=force)
    return _RemoteSink(fs, path, uri, force=force)


class _RemoteSink(Sink):
    """Sends a file to another machine when it is committed."""

    def __init__(self, fs: Any, path: str, uri: str, *, force: bool) -> None:
        self._fs = fs
        self._path = path
        self._replace = force
        packing = packing_of_name(path)
        if packing is not None:
            packing.check()
        self._refuse_existing(uri)
        self._local = tempfile.NamedTemporaryFile(prefix="fxf-")  # noqa: SIM115 (to the commit)
        packed = None if packing is None else packing.packer(cast("IO[bytes]", self._local))
        self._packed = packed
        super().__init__(packed or cast("IO[bytes]", self._local), name=uri, force=force)

    def _refuse_existing(self, uri: str) -> None:
        exists = False
        with contextlib.suppress(Exception):  # a file system that cannot tell
            exists = not self._replace and self._fs.exists(self._path)
        if exists:
            raise WriteRefusedError(
                "it exists already",
                path=uri,
                remedy="choose another name, or replace it: --force on the command line, "
                "force=True in Python",
            )

    def commit(self) -> None:
        """Send the file. Raises WriteRefusedError where that fails."""
        if not self._open:
            return
        self._open = False
        try:
            if self._packed is not None:
                self._packed.close()
            self._local.flush()
            self._refuse_existing(self.name)
            self._fs.makedirs(self._fs._parent(self._path), exist_ok=True)  # noqa: SLF001
            self._fs.put_file(self._local.name, self._path)
        except FxError:
            raise
        except Exception as error:
            raise WriteRefusedError(
                f"cannot send it: {_line(error)}",
                path=self.name,
                remedy="check the address, the network and your permissions",
            ) from error
        finally:
            self._local.close()

    def abort(self) -> None:
        """Discard what was written; nothing was sent."""
        self._open = False
        self._local.close()


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
