"""Packing: compressions of inputs (recognised by first bytes) and outputs (by suffix)."""

from __future__ import annotations

import functools
import gzip
import zlib
from collections.abc import Callable
from typing import IO, Any, Protocol, cast

import attrs

from fxframework.errors import MissingExtraError

__all__ = ["PACKINGS", "Packing", "Unpacker", "bare_name", "packing_of_bytes", "packing_of_name"]

LEVEL = {"gzip": 6, "zstd": 3}
"""Compression levels: the defaults of gzip(1) and zstd(1)."""


class Unpacker(Protocol):
    """An incremental decompressor of one member, with bounded output per call."""

    @property
    def eof(self) -> bool:
        """Whether the member is complete."""

    @property
    def needs_input(self) -> bool:
        """Whether it needs further input to produce output."""

    @property
    def unused_data(self) -> bytes:
        """Bytes after the end of the member."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return at most ``max_length`` bytes; the rest of ``data`` is kept for the next call."""


@attrs.frozen(kw_only=True)
class Packing:
    """A compression: its magic and suffix, and how to read and write it."""

    name: str
    """Its name, such as ``gzip``."""
    suffix: str
    """The suffix of its files, such as ``.gz``."""
    magic: bytes
    """The first bytes of each member."""
    errors: Callable[[], tuple[type[Exception], ...]]
    """Returns the exceptions that decompression raises for damaged bytes."""
    unpacker: Callable[[], Unpacker]
    """Makes a decompressor for one member."""
    packer: Callable[[IO[bytes]], IO[bytes]]
    """Opens a file that compresses into another file, which it does not close."""

    def check(self) -> None:
        """Raise MissingExtraError if the package that it needs is missing."""
        self.errors()

    def continues(self, head: bytes) -> bool:
        """Return whether the bytes after a member begin another one."""
        if self.name == "zstd" and head[1:4] == b"*M\x18" and head[0] >> 4 == 5:
            return True  # a skippable frame: 50 to 5f, 2a 4d 18
        return head.startswith(self.magic)


class _Gzip:
    """A decompressor of a gzip member, with the interface ``Unpacker``."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not (self._inner.unconsumed_tail or self._inner.eof)

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


def _gzip_packer(file: IO[bytes]) -> IO[bytes]:
    # Omit name and time from the header, so that equal bytes give equal files.
    return cast("IO[bytes]", gzip.GzipFile("", "wb", LEVEL["gzip"], file, mtime=0))


@functools.cache
def _zstd() -> Any:
    """Import ``compression.zstd`` or its backport. Raises MissingExtraError without both."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            raise MissingExtraError("backports.zstd", "zstd", purpose="a .zst file") from None
    return zstd


def _zstd_packer(file: IO[bytes]) -> IO[bytes]:
    zstd = _zstd()
    parameter = zstd.CompressionParameter
    options = {parameter.compression_level: LEVEL["zstd"], parameter.checksum_flag: 1}
    return cast("IO[bytes]", zstd.ZstdFile(file, "wb", options=options))


PACKINGS = (
    Packing(
        name="gzip",
        suffix=".gz",
        magic=b"\x1f\x8b\x08",
        errors=lambda: (zlib.error,),
        unpacker=_Gzip,
        packer=_gzip_packer,
    ),
    Packing(
        name="zstd",
        suffix=".zst",
        magic=b"\x28\xb5\x2f\xfd",
        errors=lambda: (_zstd().ZstdError,),
        unpacker=lambda: cast("Unpacker", _zstd().ZstdDecompressor()),
        packer=_zstd_packer,
    ),
)
"""The supported compressions."""


def packing_of_bytes(head: bytes) -> Packing | None:
    """Return the compression of an input that begins with ``head``; None if not compressed."""
    return next((packing for packing in PACKINGS if head.startswith(packing.magic)), None)


def packing_of_name(name: str) -> Packing | None:
    """Return the compression for the suffix of a file name; None for other suffixes."""
    return next((packing for packing in PACKINGS if name.lower().endswith(packing.suffix)), None)


def bare_name(name: str) -> str:
    """Return a file name without the suffix of a compression."""
    packing = packing_of_name(name)
    return name if packing is None else name[: -len(packing.suffix)]
