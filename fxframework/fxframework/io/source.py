"""Source: the bytes of an input, which is a file, a pipe or bytes in memory."""

from __future__ import annotations

import contextlib
import mmap
import os
import shlex
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast
from weakref import ref

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework import rules
from fxframework.errors import (
    FEWER_FILES,
    ClosedError,
    LimitError,
    Rule,
    UnreadableError,
    UsageError,
    out_of_descriptors,
    readable_name,
)
from fxframework.io.budget import MEMORY_FLOOR, Budget
from fxframework.io.limits import Limits
from fxframework.io.mapping import Mapping
from fxframework.io.packing import PACKINGS, Packing, bare_name, packing_of_bytes
from fxframework.io.temporary import Spool

__all__ = ["Progress", "Source", "SourceFault", "spool_file"]

CHUNK = 1 << 20
"""Bytes to read at a time."""
RELEASED = 8 << 20
"""Bytes that readers in blocks release at a time."""
FIRST_FEED = 1 << 12
"""Bytes of a compressed member to read first: the rest of a short one would be copied in vain."""
IN_MEMORY = 16 << 20
"""A spooled input up to this size stays in memory; a larger one goes to an unlinked file."""
MAGIC = max(len(packing.magic) for packing in PACKINGS)
"""Bytes that show whether an input is compressed."""

Progress = Callable[[int, int, int], None]
"""Called while bytes are fetched: with the bytes of the input that are there so far, and with the
position in the stored (perhaps compressed) bytes and their number, both 0 if unknown."""


@attrs.frozen
class SourceFault:
    """Damage found while bytes were fetched; readers convert it to a diagnostic."""

    rule: Rule
    """The framework's rule."""
    offset: int
    """Byte offset in the unpacked input from which bytes are missing or wrong."""
    message: str
    """What is wrong."""


class Source:
    """Read-only bytes of one input, memory-mapped if possible.

    ``data`` is a uint8 array of shape (size,); ``words()`` returns its whole words. After
    ``close()`` both raise ClosedError; arrays that are still referenced remain valid.
    """

    def __init__(
        self,
        data: NDArray[np.uint8],
        *,
        name: str,
        path: Path | None = None,
        mapping: mmap.mmap | None = None,
        faults: tuple[SourceFault, ...] = (),
        unpacked: bool = False,
    ) -> None:
        self._data: NDArray[np.uint8] | None = data
        self.name = readable_name(name)
        """The name of the input for people and outputs (see ``readable_name``); not for opening."""
        self.path = path
        self.faults = faults
        self.unpacked = unpacked
        """Whether the input was compressed; offsets are those of the unpacked bytes."""
        self.packed_size = 0
        """Bytes of the compressed input; 0 if it was not compressed."""
        self.rebuilt = False
        """Whether a writer made these bytes from records, so that rewriting reproduces them."""
        self.budget: Budget | None = None
        """The budget of the operation that reads it, checked by ``passed``."""
        self.position = 0
        """How far the current pass over the bytes is, for showing progress."""
        self._mapping = mapping

    def bill(self, budget: Budget) -> None:
        """Count the input in the budget of the operation that reads it."""
        self.budget = budget
        budget.size += self.size
        if isinstance(self._mapping, Mapping):
            budget.inputs.append(ref(self._mapping))

    @property
    def data(self) -> NDArray[np.uint8]:
        """The bytes, uint8 of shape (size,). Raises ClosedError after ``close()``."""
        if self._data is None:
            raise ClosedError(self.name)
        return self._data

    @property
    def closed(self) -> bool:
        """Whether ``close()`` was called."""
        return self._data is None

    @property
    def size(self) -> int:
        """Bytes in the source. Raises ClosedError after ``close()``."""
        return int(self.data.size)

    @property
    def suffix_name(self) -> str:
        """The file name without the suffix of its compression, for looking up formats by suffix."""
        name = os.path.basename(self.name)  # noqa: PTH119 (a name, not always a path)
        if self.unpacked:
            name = bare_name(name)
        return name

    def words(self) -> NDArray[np.uint64]:
        """Return the whole words as little-endian uint64, shape (size // 8,), without copying."""
        word_bytes = self.size // 8 * 8
        return self.data[:word_bytes].view("<u8")

    def read(self, offset: int, nbytes: int) -> bytes:
        """Return up to ``nbytes`` bytes from ``offset``; fewer at the end."""
        return self.data[offset : offset + nbytes].tobytes()

    def pieces(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes from ``start`` to ``stop`` (None: the end), up to 1 MiB at a time."""
        if stop is None:
            stop = self.size
        offsets = range(start, stop, CHUNK)
        return (self.read(offset, min(CHUNK, stop - offset)) for offset in offsets)

    def passed(self, start: int, stop: int, position: int | None = None) -> None:
        """Release bytes that were read (see ``release``) and check the budget. Raises LimitError.

        A reader calls it between the stretches of a long pass. ``position`` is how far the pass is;
        by default ``stop``.
        """
        self.release(start, stop)
        if position is None:
            position = stop
        self.position = position
        if self.budget is not None:
            self.budget.check(path=self.name)

    def release(self, start: int, stop: int) -> None:
        """Release the memory of bytes ``start`` to ``stop``, which can still be read.

        Streaming readers call this to bound their memory.
        """
        page = mmap.PAGESIZE
        # Whole pages only: the bytes around them in the outer ones may still be needed.
        start = -(-start // page) * page
        length = stop // page * page - start
        if self._mapping is not None and length > 0 and hasattr(mmap, "MADV_DONTNEED"):
            self._mapping.madvise(mmap.MADV_DONTNEED, start, length)

    def check(self) -> None:
        """Raise UnreadableError if the file has lost bytes since it was opened."""
        if not isinstance(self._mapping, Mapping):
            return
        fault = self._mapping.fault()
        if fault is not None:
            raise fault

    def close(self) -> None:
        """Release the bytes. The mapping is closed when the last array over it is freed.

        Calling it twice is allowed.
        """
        if self.budget is not None:
            self.budget.fault()  # the budget remembers it for results that are written later
        self._data = None
        self._mapping = None

    @classmethod
    def spooled(cls, spool: Spool, *, name: str) -> Source:
        """Return a source of the bytes written to a ``spool_file()``, which may then be closed."""
        size = spool.tell()
        if size <= IN_MEMORY:
            spool.seek(0)
            return cls(np.frombuffer(spool.read(), np.uint8), name=name)
        spool.flush()
        mapping = mmap.mmap(spool.fileno(), size, access=mmap.ACCESS_READ)
        return cls(np.frombuffer(mapping, np.uint8), name=name, mapping=mapping)

    @classmethod
    def open(
        cls,
        what: str | os.PathLike[str] | bytes | bytearray | memoryview | mmap.mmap | IO[bytes],
        *,
        limits: Limits | None = None,
        progress: Progress | None = None,
    ) -> Source:
        """Open a path, ``-`` (standard input), bytes or a file; gzip and zstd are unpacked.

        A file is read from where it is to its end. ``progress`` is called while bytes are fetched.
        Raises UnreadableError if the input cannot be opened, LimitError beyond ``max_unpacked``.
        """
        limits = limits or Limits()
        if isinstance(what, bytes | bytearray | memoryview | mmap.mmap):
            raw = cls(np.frombuffer(what, np.uint8), name="<bytes>")
        elif hasattr(what, "read") and not isinstance(what, str | os.PathLike):
            raw = _spool(_pieces(what), _name_of(what), limits, progress)
        elif (path := os.fspath(cast("str", what))) == "-":
            if sys.stdin is None:
                raise UnreadableError("standard input is closed", path="<stdin>")
            raw = _spool(_pieces(sys.stdin.buffer), "<stdin>", limits, progress)
        else:
            raw = _from_path(Path(path), limits, progress)
        return raw.unpack(limits, progress)

    def unpack(self, limits: Limits, progress: Progress | None = None) -> Source:
        """Return a source of the unpacked bytes; this source if it is not compressed.

        Raises LimitError beyond ``max_unpacked``, MissingExtraError for zstd without its package.
        """
        packing = packing_of_bytes(self.data[:MAGIC].tobytes())
        if packing is None:
            return self
        return _unpacked(self, packing, limits, progress)

    @classmethod
    def gather(
        cls,
        piece: Callable[[], bytes],
        *,
        name: str,
        limits: Limits | None = None,
        progress: Progress | None = None,
        size: int = 0,
    ) -> Source:
        """Return a source of the bytes that ``piece`` returns, until it returns no bytes.

        ``size`` is their number for ``progress``; 0 if unknown. Raises LimitError beyond
        ``max_unpacked``.
        """
        return _spool(piece, name, limits or Limits(), progress, lambda total: (total, size))


def spool_file() -> Spool:
    """Return a file to collect bytes for ``Source.spooled``; on disk once it is large."""
    return Spool(max_size=IN_MEMORY)


def _from_path(path: Path, limits: Limits, progress: Progress | None) -> Source:
    name = str(path)
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            is_regular = stat.S_ISREG(mode)
            mapping = _mapped(file, name) if is_regular else None
            if mapping is None:
                option = "max_unpacked"
                if stat.S_ISCHR(mode):
                    option = "max_memory"  # a device may never end
                source = _spool(_pieces(file), name, limits, progress, option=option)
                if is_regular:
                    source.path = path
                return source
    except ValueError as error:  # a null character in the name
        raise UnreadableError(
            f"cannot open: {error}", path=name, remedy="check the path"
        ) from error
    except OSError as error:
        if path.is_dir():
            folder = shlex.quote(name)
            raise UnreadableError(
                "cannot open: this is a folder",
                path=name,
                remedy=f"name the files in it: {folder}/*; `fxf batch {folder} --out DATASET` "
                "converts all of them, and `fxf sql` queries the dataset",
            ) from error
        remedy = "check the path and its permissions"
        if out_of_descriptors(error):
            remedy = FEWER_FILES
        raise UnreadableError(
            f"cannot open: {error.strerror or error}", path=name, remedy=remedy
        ) from error
    return Source(np.frombuffer(mapping, np.uint8), name=name, path=path, mapping=mapping)


def _mapped(file: IO[bytes], name: str) -> Mapping | None:
    """Map a file; return None if it cannot be mapped, so that it must be read."""
    try:
        mapping = Mapping(file.fileno(), name)
    except ValueError:  # a size of 0, which files in /proc have although they have bytes
        return None
    except OSError as error:
        if out_of_descriptors(error):  # a mapping has one of its own
            raise
        return None  # its file system does not map files
    return mapping if mapping.safe else None


def _pieces(file: IO[bytes]) -> Callable[[], bytes]:
    """Return a function that reads the next piece of a file."""
    return lambda: file.read(CHUNK)


def _name_of(file: IO[bytes]) -> str:
    """Return the name of an open file. Raises UsageError for one that gives text."""
    if not isinstance(file.read(0), bytes):
        raise UsageError("the file gives text, not bytes", remedy='open it with the mode "rb"')
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else "<file>"


def _spool(
    piece: Callable[[], bytes],
    name: str,
    limits: Limits,
    progress: Progress | None,
    stored: Callable[[int], tuple[int, int]] = lambda _total: (0, 0),
    *,
    option: str = "max_unpacked",
) -> Source:
    """Collect pieces in memory, or, if they are large, in an unlinked file that is mapped.

    ``stored`` is called with the number of collected bytes, and returns the last two arguments of
    ``progress``. ``option`` names the limit.
    """
    total_bytes = 0
    most_bytes: int = getattr(limits, option)
    if not most_bytes and option == "max_memory":
        most_bytes = MEMORY_FLOOR
    with spool_file() as spool:
        while chunk := piece():
            total_bytes += len(chunk)
            if most_bytes and total_bytes > most_bytes:
                raise LimitError(
                    f"the input has more than {most_bytes} bytes ({option})",
                    path=name,
                    remedy=f"raise it with -o {option}=BYTES, or end the input earlier",
                )
            spool.write(chunk)
            if progress is not None:
                progress(total_bytes, *stored(total_bytes))
        return Source.spooled(spool, name=name)


def _unpacked(raw: Source, packing: Packing, limits: Limits, progress: Progress | None) -> Source:
    """Unpack all members; keep the bytes before any damage, and record its offset."""
    members = _Members(raw, packing)
    source = _spool(
        members.piece, raw.name, limits, progress, lambda _total: (members.position, raw.size)
    )
    raw.check()
    if not source.size and members.faults:
        return raw  # not compressed, although the magic matches
    source.path = raw.path
    source.faults = tuple(members.faults)
    source.unpacked = True
    source.packed_size = raw.size
    return source


class _Members:
    """Unpacks the members of a compressed source one after the other."""

    def __init__(self, raw: Source, packing: Packing) -> None:
        self.faults: list[SourceFault] = []
        self._raw = raw
        self._packing = packing
        self._damage = packing.errors()
        self._unpacker = packing.unpacker()
        self._read_size = FIRST_FEED
        """Bytes to read next."""
        self.position = 0
        """Compressed bytes that were read."""
        self._last_input = 0
        """Where the last of them begin that were read at once."""
        self._unpacked_size = 0
        self._member_start = (0, 0)
        """Where the member begins: the position, and the unpacked bytes before it."""

    def piece(self) -> bytes:
        """Return the next bytes; none at the end and after the first damage."""
        while not self.faults:
            if self._unpacker.eof and not self._next_member():
                return b""
            packed_bytes = b""
            has_ended = False
            # A call gives at most CHUNK bytes, so the last input may suffice for several calls.
            if self._unpacker.needs_input:
                packed_bytes = self._raw.read(self.position, self._read_size)
                has_ended = not packed_bytes
                self._last_input = self.position
            self._read_size = min(2 * self._read_size, CHUNK)
            self.position += len(packed_bytes)
            try:
                unpacked_bytes = self._unpacker.decompress(packed_bytes, CHUNK)
            except self._damage as error:
                rest = self._up_to_damage()
                self._unpacked_size += len(rest)
                self._fault(str(error))
                return rest
            if unpacked_bytes:
                self._unpacked_size += len(unpacked_bytes)
                return unpacked_bytes
            if has_ended and not self._unpacker.eof:
                return self._fault("it ends too early")
        return b""

    def _up_to_damage(self) -> bytes:
        """Return the bytes before the damage that were not returned yet.

        A decompressor that fails returns nothing of that call. So the member is unpacked again, its
        last input byte by byte.
        """
        unpacker = self._packing.unpacker()
        position, unpacked_before = self._member_start
        known_bytes = self._unpacked_size - unpacked_before
        rest = bytearray()
        with contextlib.suppress(*self._damage):
            while not unpacker.eof and (position < self.position or not unpacker.needs_input):
                size = 0
                if unpacker.needs_input:
                    size = max(min(CHUNK, self._last_input - position), 1)
                unpacked_bytes = unpacker.decompress(self._raw.read(position, size), CHUNK)
                position += size
                rest += unpacked_bytes[known_bytes:]
                known_bytes = max(known_bytes - len(unpacked_bytes), 0)
        return bytes(rest)

    def _next_member(self) -> bool:
        """Start the next member; return False if there is none."""
        # The last piece of input went beyond the end of the member.
        self.position -= len(self._unpacker.unused_data)
        next_bytes = self._raw.read(self.position, MAGIC)
        if not next_bytes.strip(b"\0"):
            return False
        if not self._packing.continues(next_bytes):
            self._fault(f"it ends at byte {self.position}, but other bytes follow")
            return False
        self._unpacker = self._packing.unpacker()
        self._member_start = (self.position, self._unpacked_size)
        self._read_size = FIRST_FEED
        return True

    def _fault(self, message: str) -> bytes:
        """Note the damage after the bytes so far; return no bytes, which ends the input."""
        self.faults.append(SourceFault(rules.DAMAGED_STREAM, self._unpacked_size, message))
        return b""
