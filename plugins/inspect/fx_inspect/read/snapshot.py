"""Snapshots: consistent copies of a VMO, taken while its writer continues.

The generation in the header is odd during a change, and differs after it. A copy is consistent if
the generation was even before it and is the same after it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Self

import attrs

from fx_inspect import format as wire
from fx_inspect import rules
from fxframework.errors import Rule, UnreadableError
from fxframework.io.mapping import Mapping
from fxframework.io.words import WORD
from fxframework.model.target import Memory

ATTEMPTS = 1025
"""Number of attempts of the reference."""
_AT_ONCE = 16
"""Attempts without a pause, within which most writers finish."""
_PAUSE = 20e-6
_LONGEST_PAUSE = 2e-3
"""Seconds between two attempts, doubling up to the longest pause, so that a writer that lost its
CPU during a change can continue."""

Source = Memory | bytes | bytearray | memoryview | str | os.PathLike[str]


class MappedFile:
    """A file that another process changes, mapped for reading (``model.target.Memory``).

    Its stores are visible at once. Raises UnreadableError if the file cannot be mapped.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.size = 0
        """Bytes mapped."""
        self._region: Mapping | None = None
        self._bytes = memoryview(b"")
        self._words = self._bytes.cast("Q")
        try:
            self._file = self.path.open("rb")
        except OSError as error:
            raise self._unreadable(error) from None
        try:
            self.refresh()
        except UnreadableError:
            self._file.close()
            raise

    def refresh(self) -> int:
        """Map the file again if its size has changed. Return the size."""
        try:
            size = os.fstat(self._file.fileno()).st_size
            if size != self.size:
                self._unmap()
                if size:
                    self._region = Mapping(self._file.fileno(), str(self.path), size)
                    self._bytes = memoryview(self._region)
                    self._words = self._bytes[: size - size % WORD].cast("Q")
                self.size = size
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from None
        return size

    def load_u64(self, offset: int) -> int:
        """Load the word at byte ``offset`` (a multiple of 8), in one load."""
        if offset % WORD or not 0 <= offset <= self.size - WORD:
            raise ValueError(f"no word at byte {offset} of {self.size}")
        return self._words[offset // WORD]

    def read(self, offset: int, n: int) -> bytes:
        """Return ``n`` bytes from ``offset``."""
        if n < 0 or not 0 <= offset <= self.size - n:
            raise ValueError(f"no {n} bytes at byte {offset} of {self.size}")
        return bytes(self._bytes[offset : offset + n])

    def store_u64(self, offset: int, value: int) -> None:
        """Raise ValueError: the file is mapped for reading."""
        raise ValueError(f"{value} at byte {offset}: {self.path} is mapped for reading")

    def write(self, offset: int, buffer: bytes) -> None:
        """Raise ValueError: the file is mapped for reading."""
        raise ValueError(f"{len(buffer)} bytes at byte {offset}: {self.path} is mapped for reading")

    def grow(self, size: int) -> None:
        """Raise ValueError for more than the current size: the file is mapped for reading."""
        if size > self.size:
            raise ValueError(f"{size} bytes: {self.path} is mapped for reading")

    def close(self) -> None:
        """Close the file. May be called twice."""
        self._unmap()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _unmap(self) -> None:
        self.size = 0
        self._words.release()
        self._bytes.release()
        if self._region is not None:
            self._region.close()
            self._region = None
        self._bytes = memoryview(b"")
        self._words = self._bytes.cast("Q")

    def _unreadable(self, error: OSError | ValueError) -> UnreadableError:
        why = error.strerror if isinstance(error, OSError) else str(error)
        return UnreadableError(f"cannot be mapped: {why}", path=str(self.path))


@attrs.frozen
class Snapshot:
    """A consistent copy of a VMO."""

    data: bytes = attrs.field(repr=lambda data: f"{len(data)} bytes")
    generation: int
    """Generation at the time of the copy; even."""
    attempts: int = attrs.field(default=1, eq=False)
    """Number of attempts made."""
    seconds: float = attrs.field(default=0.0, eq=False)
    """Time that the attempts took, in seconds."""

    @property
    def frozen(self) -> bool:
        """Whether the VMO is marked as no longer changing."""
        return self.generation == wire.FROZEN_GENERATION

    @classmethod
    def take(cls, source: Source, *, attempts: int = ATTEMPTS) -> Snapshot:
        """Copy a VMO from a memory, from bytes, or from a file given by its path.

        A memory or file may change meanwhile: the copy is retried up to ``attempts`` times, at
        increasing intervals. If the header has a size, as many bytes are copied, up to 128 MiB.
        Bytes are returned whole.

        Raises UnreadableError: NO_CONSISTENT_SNAPSHOT if the VMO was being changed at every
        attempt, NO_VMO if it has no header of version 0 to 2, MEMORY_TOO_SMALL for an invalid size.
        """
        if isinstance(source, bytes | bytearray | memoryview):
            return cls._of_bytes(bytes(source))
        if isinstance(source, str | os.PathLike):
            with MappedFile(source) as memory:
                return cls._of_memory(memory, attempts)
        return cls._of_memory(source, attempts)

    @classmethod
    def _of_bytes(cls, data: bytes) -> Snapshot:
        _check_header(data[: wire.HEADER_BYTES], None)
        generation = wire.GENERATION.get(data, 0)
        if generation % 2:
            raise _failed(
                rules.NO_CONSISTENT_SNAPSHOT, "the VMO was being changed when it was copied", None
            )
        return cls(data, generation)

    @classmethod
    def _of_memory(cls, memory: Memory, attempts: int) -> Snapshot:
        begin = time.perf_counter()
        path = str(memory.path) if isinstance(memory, MappedFile) else None
        pause = _PAUSE
        for attempt in range(1, attempts + 1):
            if attempt > _AT_ONCE:
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            if isinstance(memory, MappedFile):
                memory.refresh()
            mapped = memory.size
            # Load the generation before the header, because the VMO may grow in between.
            generation = (
                memory.load_u64(wire.GENERATION_AT) if memory.size >= wire.HEADER_BYTES else 0
            )
            head = memory.read(0, min(wire.HEADER_BYTES_SIZE, memory.size))
            _check_header(head[: wire.HEADER_BYTES], path)
            if generation % 2:
                continue
            size = _size(head, memory.size)
            if not wire.HEADER_BYTES <= size <= memory.size:
                # The VMO may have grown meanwhile: the next attempt sees all of it.
                if generation != memory.load_u64(wire.GENERATION_AT) or attempt < min(attempts, 3):
                    continue
                message = f"the header says {size} bytes, of a memory of {memory.size}"
                raise _failed(rules.MEMORY_TOO_SMALL, message, path, offset=wire.SIZE_AT)
            data = memory.read(0, size)
            same = generation == memory.load_u64(wire.GENERATION_AT) == wire.GENERATION.get(data, 0)
            if isinstance(memory, MappedFile) and memory.refresh() != mapped:
                continue
            if same or generation == wire.FROZEN_GENERATION:
                return cls(data, generation, attempt, time.perf_counter() - begin)
        message = f"the VMO was being changed at each of {attempts:,} attempts"
        raise _failed(rules.NO_CONSISTENT_SNAPSHOT, message, path)


def _size(head: bytes, nbytes: int) -> int:
    """Return the number of bytes to copy of a memory of ``nbytes``."""
    size = nbytes
    if not wire.is_legacy(head) and wire.FIRST_WORDS["new"].order.get(head, 0) == 1:
        size = wire.VMO_SIZE.get(head, 0)
        if size < wire.HEADER_BYTES_SIZE:
            return 0
    return min(size, wire.MAX_VMO)


def _check_header(head: bytes, path: str | None) -> None:
    """Raise UnreadableError for anything but a header of a known version."""
    if len(head) < wire.HEADER_BYTES:
        raise _failed(rules.MEMORY_TOO_SMALL, f"{len(head)} bytes are too few for a header", path)
    magic = head[4:8]
    version = wire.version_of(head)
    legacy = wire.is_legacy(head)
    is_header = legacy or head[1] == wire.BlockType.HEADER
    if not is_header or (magic != wire.MAGIC and not (legacy and magic == wire.SWAPPED_MAGIC)):
        raise _failed(
            rules.NO_VMO, f"{head[:8].hex(' ')} is not the beginning of an Inspect VMO", path
        )
    if version > wire.MAX_VERSION:
        message = f"version {version}, which is newer than {wire.MAX_VERSION}"
        raise _failed(rules.NO_VMO, message, path)


def _failed(rule: Rule, message: str, path: str | None, offset: int = 0) -> UnreadableError:
    return UnreadableError(message, rule=rule, path=path, offset=offset)
