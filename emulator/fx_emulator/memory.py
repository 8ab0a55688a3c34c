"""Memory of the emulated target: a writer stores into it, other processes may map it.

``Memory`` is ``fxframework.model.target.Memory`` over ``mmap``: anonymous memory, a file, or a
memfd. ``StoreLog`` records all stores in order, and so every state that the memory ever had.

Guarantees: ``load_u64`` and ``store_u64`` are one aligned load or store of a ``uint64``; on every
64-bit machine they do not tear. On x86-64 another process sees the stores in program order. On a
machine with weaker ordering (ARM, RISC-V, POWER) each store is still whole, but another process may
see them in another order, because Python has no release store; stores made before the program died
are there in any case. ``write`` into memory that can be shared makes one such store for each word,
in ascending order. ``read`` is a plain copy: use ``load_u64`` for a word that must not tear.
"""

from __future__ import annotations

import builtins
import contextlib
import itertools
import mmap
import os
import sys
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fx_emulator.errors import Crash, EmulatorError, MemoryAccessError

CLOEXEC = getattr(os, "O_CLOEXEC", 0)
"""Flag for descriptors that children do not inherit; 0 where the system has none."""

WORD = 8
_LIMIT = 1 << 64

StoreFault = Callable[[int, int, int], int]
"""``(offset, value, number) -> value``: the word that store ``number`` (from 0) to byte ``offset``
really stores. May raise ``Crash``."""


# --- The log -------------------------------------------------------------------------------------


class StoreLog:
    """Log of every 8-byte store, in order, and of every change of size between them.

    It grows by 16 bytes a store, and is never truncated; assign a new one
    (``memory.log = StoreLog()``) to start over. It contains the stores made through the ``Memory``
    only: not those of another process, nor those through ``Memory.words``.
    """

    def __init__(self) -> None:
        self._offsets = array("Q")
        self._values = array("Q")
        self._sizes: list[tuple[int, int]] = []

    def __len__(self) -> int:
        """Number of stores."""
        return len(self._values)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Byte offset of each store, int64 (n,); a copy."""
        return np.array(self._offsets, np.int64)

    @property
    def values(self) -> NDArray[np.uint64]:
        """Word stored by each store, uint64 (n,); a copy."""
        return np.array(self._values, np.uint64)

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Changes of size: the number of stores before each, and the new size in bytes."""
        return tuple(self._sizes)

    def stored(self, offset: int, value: int) -> None:
        """Log one store."""
        self._offsets.append(offset)
        self._values.append(value)

    def stored_words(self, offset: int, words: bytes) -> None:
        """Log ascending stores of whole words from ``offset`` on."""
        self._offsets.extend(range(offset, offset + len(words), WORD))
        self._values.frombytes(words)

    def resized(self, size: int) -> None:
        """Log a change of the memory's size to ``size`` bytes."""
        self._sizes.append((len(self), size))

    def image(self, first: bytes, stores: int) -> bytes:
        """Return the memory after the first ``stores`` stores.

        ``first`` is the memory at the beginning of the log. A change of size directly after the
        last of these stores is included. Raises MemoryAccessError if the log has fewer stores.
        """
        if not 0 <= stores <= len(self):
            raise MemoryAccessError(f"no image after {stores} stores: the log holds {len(self)}")
        return bytes(next(itertools.islice(self.images(first), stores, None)))

    def images(self, first: bytes) -> Iterator[memoryview]:
        """Yield the memory after 0, 1, 2 … all stores: ``len(log) + 1`` images.

        All are one read-only view of bytes that change in place with each step (another view after
        a change of size): copy an image to keep it. As in ``image``, a change of size appears in
        the image of the store before it.
        """
        image_bytes = bytearray(first)
        image_words = memoryview(image_bytes).cast("Q")
        resizes = iter(self._sizes)
        resize = next(resizes, None)
        for stores in range(len(self) + 1):
            if stores:
                image_words[self._offsets[stores - 1] // WORD] = self._values[stores - 1]
            while resize is not None and resize[0] == stores:
                # A view keeps its bytearray from being resized, so there is a new one.
                _, size = resize
                image_bytes = bytearray(bytes(image_bytes[:size]).ljust(size, b"\0"))
                image_words = memoryview(image_bytes).cast("Q")
                resize = next(resizes, None)
            yield memoryview(image_bytes).toreadonly()


# --- The memory ----------------------------------------------------------------------------------


class Memory:
    """A region of bytes, addressed from 0, little-endian (``fxframework.model.target.Memory``).

    Created by ``anonymous``, ``file``, ``memfd`` or ``descriptor``. ``log`` (a StoreLog, or None)
    and ``faults`` (a list of StoreFault) may be set at any time; each store passes through the
    faults in order. When a fault raises ``Crash`` the memory halts: every later store raises that
    crash again, until ``resume()``. ``stores`` counts the stores that landed.

    A Memory is for one thread at a time. Another process maps the same file with its own Memory.
    """

    def __init__(
        self,
        region: mmap.mmap | bytearray,
        *,
        fd: int | None = None,
        name: str = "the memory",
        log: bool = False,
        writable: bool = True,
    ) -> None:
        if sys.byteorder != "little":
            raise EmulatorError(
                f"memory is little-endian, and this machine is {sys.byteorder}-endian"
            )
        self._fd = fd
        self._writable = writable
        self._name = name
        self.log = StoreLog() if log else None
        self.faults: list[StoreFault] = []
        self.stores = 0
        self._crash: Crash | None = None
        self._attach(region)

    def __repr__(self) -> str:
        return f"<Memory: {self._name}, {self.size} bytes, {self.stores} stores>"

    # --- constructors ---

    @classmethod
    def anonymous(cls, size: int, *, log: bool = False) -> Self:
        """Allocate ``size`` zero bytes (a multiple of 8) that no other process can map."""
        _check_size(size)
        return cls(_private(size), log=log)

    @classmethod
    def file(
        cls,
        path: str | os.PathLike[str],
        size: int | None = None,
        *,
        log: bool = False,
        writable: bool = True,
    ) -> Self:
        """Map a file, shared with every process that maps it. Stores outlive this process.

        With ``size`` the file is created or extended as needed, and never truncated; without
        ``size`` it must exist. With ``writable=False`` it is opened for reading, and stores raise
        an error. No process may truncate the file while it is mapped. Raises MemoryAccessError if
        the file cannot be opened, or if its size is not a multiple of 8.
        """
        flags = os.O_RDWR if writable else os.O_RDONLY
        if size is not None:
            _check_size(size)
            if writable:
                flags |= os.O_CREAT
        try:
            fd = os.open(Path(path), flags | CLOEXEC, 0o666)
        except OSError as error:
            raise MemoryAccessError(f"{path}: cannot be mapped: {error.strerror}") from None
        return cls._over(fd, size, str(path), log=log, writable=writable)

    @classmethod
    def memfd(cls, size: int, *, log: bool = False) -> Self:
        """Allocate ``size`` zero bytes in an anonymous file, to be shared by ``fileno()`` (Linux).

        Another process that has the descriptor maps it with ``Memory.descriptor(fd)``.
        """
        _check_size(size)
        if not hasattr(os, "memfd_create"):
            raise EmulatorError("this system has no memfd; use Memory.file")
        fd = os.memfd_create("fx_emulator", os.MFD_CLOEXEC)
        return cls._over(fd, size, "memfd", log=log)

    @classmethod
    def descriptor(cls, fd: int, *, log: bool = False, writable: bool = True) -> Self:
        """Map the file of an open descriptor, which remains owned by the caller."""
        try:
            own_fd = os.dup(fd)
        except OSError as error:
            raise MemoryAccessError(f"descriptor {fd}: {error.strerror}") from None
        return cls._over(own_fd, None, f"descriptor {fd}", log=log, writable=writable)

    @classmethod
    def _over(
        cls, fd: int, size: int | None, name: str, *, log: bool, writable: bool = True
    ) -> Self:
        """Map a descriptor, taking ownership; extend a file shorter than ``size`` bytes."""
        try:
            actual_size = os.fstat(fd).st_size
            if size is not None and actual_size < size:
                os.ftruncate(fd, size)
                actual_size = size
            bytes_to_add = -actual_size % WORD
            if bytes_to_add:
                raise MemoryAccessError(
                    f"{name}: its {actual_size} bytes are not a multiple of 8; "
                    f"ask for {actual_size + bytes_to_add} to make it larger"
                )
            region = _shared(fd, actual_size, writable=writable)
        except (OSError, ValueError) as error:
            os.close(fd)
            raise MemoryAccessError(f"{name}: cannot be mapped: {error}") from None
        except EmulatorError:
            os.close(fd)
            raise
        return cls(region, fd=fd, name=name, log=log, writable=writable)

    # --- properties ---

    @property
    def size(self) -> int:
        """Bytes in the region."""
        return self._size

    @property
    def shared(self) -> bool:
        """Whether another process can map it."""
        return self._fd is not None

    @property
    def crashed(self) -> Crash | None:
        """The crash that halted the memory, or None."""
        return self._crash

    @property
    def bytes(self) -> NDArray[np.uint8]:
        """The region itself, uint8 (size,). Get it again after a change of size.

        Stores through it are not counted, not logged, and not seen by faults.
        """
        return np.frombuffer(self._bytes, np.uint8)

    @property
    def words(self) -> NDArray[np.uint64]:
        """The region itself, uint64 (size / 8,), with the limits of ``bytes``."""
        return np.frombuffer(self._words, np.uint64)

    def fileno(self) -> int:
        """Return the descriptor of the file. Raises MemoryAccessError for an anonymous memory."""
        if self._fd is None:
            raise MemoryAccessError(f"{self._name} has no file; use Memory.file or Memory.memfd")
        return self._fd

    # --- loads and stores ---

    def load_u64(self, offset: int) -> int:
        """Load the word at byte ``offset`` (a multiple of 8), in one load."""
        if offset & 7 or offset < 0:
            raise self._refused("load", offset, WORD)
        try:
            return self._words[offset >> 3]
        except IndexError:
            raise self._refused("load", offset, WORD) from None

    def store_u64(self, offset: int, value: int) -> None:
        """Store the word at byte ``offset`` (a multiple of 8), in one store."""
        if offset & 7 or offset < 0:
            raise self._refused("store", offset, WORD)
        if self.faults:
            self._store_watched(offset, value)
            return
        try:
            self._words[offset >> 3] = value
        except (IndexError, ValueError, TypeError) as error:
            raise self._not_stored(offset, value, error) from None
        self.stores += 1
        if self.log is not None:
            self.log.stored(offset, value)

    def read(self, offset: int, n: int) -> builtins.bytes:
        """Return ``n`` bytes from ``offset``, at any alignment; a plain copy."""
        if n < 0 or not 0 <= offset <= self._size - n:
            raise self._refused("read", offset, n)
        return bytes(self._bytes[offset : offset + n])

    def write(self, offset: int, buffer: builtins.bytes) -> None:
        """Store whole words, in ascending order, one store for each."""
        nbytes = len(buffer)
        if (offset | nbytes) & 7 or not 0 <= offset <= self._size - nbytes:
            raise self._refused("write", offset, nbytes)
        if self.faults:
            for word_number, value in enumerate(_words_of(buffer)):
                self._store_watched(offset + WORD * word_number, value)
            return
        if self._fd is None:
            # No other process sees this memory, so the order of the bytes does not matter.
            self._bytes[offset : offset + nbytes] = buffer
        else:
            if not self._writable:
                raise self._read_only()
            words = self._words
            for word_index, value in enumerate(_words_of(buffer), offset >> 3):
                words[word_index] = value
        self.stores += nbytes >> 3
        if self.log is not None and nbytes:
            self.log.stored_words(offset, buffer)

    # --- size ---

    def grow(self, size: int) -> None:
        """Grow to at least ``size`` bytes, rounded up to a word; new bytes are zero."""
        if size > self.size:
            self.resize(size + -size % WORD)

    def resize(self, size: int) -> None:
        """Resize to ``size`` bytes (a multiple of 8); new bytes are zero."""
        _check_size(size)
        if self._crash is not None:
            raise self._crash
        self._check_open()
        if size == self.size:
            return
        if not self._writable:
            raise self._read_only()
        if self._fd is None:
            new_region = _private(size)
            common = min(size, self.size)
            memoryview(new_region)[:common] = self._bytes[:common]
        else:
            try:
                os.ftruncate(self._fd, size)
                new_region = _shared(self._fd, size, writable=True)
            except OSError as error:
                message = f"{self._name}: cannot be made {size} bytes: {error.strerror}"
                raise MemoryAccessError(message) from None
        self._detach()
        self._attach(new_region)
        if self.log is not None:
            self.log.resized(size)

    def refresh(self) -> int:
        """Adopt the file's size as changed by another process, in whole words. Return it."""
        self._check_open()
        if self._fd is not None:
            file_size = os.fstat(self._fd).st_size // WORD * WORD
            if file_size != self.size:
                new_region = _shared(self._fd, file_size, writable=self._writable)
                self._detach()
                self._attach(new_region)
                if self.log is not None:
                    self.log.resized(file_size)
        return self.size

    # --- halting ---

    def halt(self, crash: Crash) -> None:
        """Halt: each later store raises ``crash``. The memory can still be read."""
        self.resume()
        self._crash = crash
        self.faults.insert(0, self._halted)

    def resume(self) -> None:
        """Accept stores again, as of a restarted program; faults stay armed."""
        self._crash = None
        if self._halted in self.faults:
            self.faults.remove(self._halted)

    # --- closing ---

    def close(self) -> None:
        """Release the region; existing views of it stay valid. May be called twice."""
        self._detach()
        self._attach(bytearray())
        self._writable = False
        self._closed = True
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        fd = getattr(self, "_fd", None)
        if fd is not None:
            self._fd = None
            os.close(fd)

    # --- helpers ---

    def _attach(self, region: mmap.mmap | bytearray) -> None:
        self._closed = False
        self._region = region
        self._bytes = memoryview(region)
        self._words = self._bytes.cast("Q")
        self._size = len(self._bytes)

    def _detach(self) -> None:
        self._words.release()
        self._bytes.release()
        if isinstance(self._region, mmap.mmap):
            # With exported views the mapping is freed with the last of them.
            with contextlib.suppress(BufferError):
                self._region.close()

    def _store_watched(self, offset: int, value: int) -> None:
        """Store a word that passes through the faults."""
        word_index = offset >> 3
        if word_index >= len(self._words) or not 0 <= value < _LIMIT or not self._writable:
            raise self._not_stored(offset, value, None)
        try:
            for fault in self.faults:
                value = fault(offset, value, self.stores)
        except Crash as crash:
            # Nothing lands in a memory that has halted before.
            if crash is not self._crash:
                if 0 < crash.landed < WORD:
                    mask = (1 << 8 * crash.landed) - 1
                    self._land(word_index, (self._words[word_index] & ~mask) | (value & mask))
                self.halt(crash)
            raise
        self._land(word_index, value)

    def _land(self, word_index: int, value: int) -> None:
        """Store the word with an index, and count it."""
        try:
            self._words[word_index] = value
        except (ValueError, TypeError) as error:
            raise self._not_stored(WORD * word_index, value, error) from None
        self.stores += 1
        if self.log is not None:
            self.log.stored(WORD * word_index, value)

    def _halted(self, _offset: int, value: int, _number: int) -> int:
        """Raise the crash of a halted memory, as a fault."""
        if self._crash is not None:
            raise self._crash
        return value

    def _check_open(self) -> None:
        if self._closed:
            raise MemoryAccessError(f"{self._name} is closed")

    def _read_only(self) -> MemoryAccessError:
        self._check_open()
        return MemoryAccessError(f"{self._name} was opened for reading; open it writable to store")

    def _refused(self, access: str, offset: int, nbytes: int) -> MemoryAccessError:
        """Return the error of an access that is outside of the memory, or not whole words."""
        self._check_open()
        if 0 <= offset <= self.size - nbytes and nbytes >= 0:
            reason = "not whole words; begin and end at a multiple of 8"
        else:
            reason = f"outside its {self.size} bytes; grow it first"
        return MemoryAccessError(
            f"{self._name}: {access} of {nbytes} bytes at byte {offset}: {reason}"
        )

    def _not_stored(self, offset: int, value: object, error: Exception | None) -> EmulatorError:
        if offset >= self.size:
            return self._refused("store", offset, WORD)
        if not self._writable:
            return self._read_only()
        reason = "a word has 64 bits" if isinstance(value, int) else str(error)
        return MemoryAccessError(f"{self._name}: store of {value!r} at byte {offset}: {reason}")


# --- Regions -------------------------------------------------------------------------------------


def _check_size(size: int) -> None:
    if size < 0 or size % WORD:
        raise MemoryAccessError(
            f"invalid memory size {size}: must be a multiple of 8, not negative"
        )


def _private(size: int) -> mmap.mmap | bytearray:
    if not size:
        return bytearray()  # mmap refuses length 0
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise MemoryAccessError(f"cannot allocate {size} bytes: {error}") from None


def _shared(fd: int, size: int, *, writable: bool) -> mmap.mmap | bytearray:
    if not size:
        return bytearray()  # mmap refuses length 0
    access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
    return mmap.mmap(fd, size, access=access)


def _words_of(buffer: bytes) -> list[int]:
    return memoryview(buffer).cast("Q").tolist()
