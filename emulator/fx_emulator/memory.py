"""Memory: bytes that a writer stores into, another process may map, and a fault can cut off.

``Memory`` is ``fxframework.model.target.Memory`` over ``mmap``: anonymous, a file, or a memfd.
``StoreLog`` is what was stored, in order, and so every state that the memory ever had.

What is guaranteed. ``load_u64`` and ``store_u64`` are one aligned load or store of a ``uint64``:
on every 64-bit machine they do not tear. On x86-64 another process sees the stores in the order in
which they were made. On a machine with weaker ordering (ARM, RISC-V, POWER) each of them is still
whole, but another process may see them in another order, because Python has no release store;
whatever was stored before the program died is there in any case. ``write`` into memory that can be
shared makes one such store for each word, in ascending order. ``read`` is a plain copy: what must
not tear is loaded.
"""

from __future__ import annotations

import builtins
import contextlib
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

__all__ = ["Memory", "StoreFault", "StoreLog"]

CLOEXEC = getattr(os, "O_CLOEXEC", 0)
"""The flag of a descriptor that no child inherits; 0 where the system has none."""

WORD = 8
_LIMIT = 1 << 64

StoreFault = Callable[[int, int, int], int]
"""``(offset, value, number) -> value``: what store ``number`` (from 0) to byte ``offset`` really
stores; or it raises ``Crash``."""


# --- The log -------------------------------------------------------------------------------------


class StoreLog:
    """Every 8-byte store in the order made, and every change of size between them.

    It grows by 8 bytes for a word and 16 for each call that stored some, and is never cut; take a
    new one (``memory.log = StoreLog()``) to start over. It knows the stores made through the
    ``Memory`` only: not those of another process, nor through ``Memory.words``.
    """

    def __init__(self) -> None:
        # Runs of neighbouring words: where each begins, how many words it has, and all the words.
        self._starts = array("Q")
        self._lengths = array("Q")
        self._values = array("Q")
        self._sizes: list[tuple[int, int]] = []

    def __len__(self) -> int:
        """How many stores it holds."""
        return len(self._values)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Byte offset of each store, int64 (n,); a copy."""
        starts = np.array(self._starts, np.int64)
        lengths = np.array(self._lengths, np.int64)
        first = np.cumsum(lengths) - lengths
        within = np.arange(len(self), dtype=np.int64) - np.repeat(first, lengths)
        offsets: NDArray[np.int64] = np.repeat(starts, lengths) + WORD * within
        return offsets

    @property
    def values(self) -> NDArray[np.uint64]:
        """The word that each store left, uint64 (n,); a copy."""
        return np.array(self._values, np.uint64)

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Changes of size: how many stores were made before, and the bytes that there were then."""
        return tuple(self._sizes)

    def stored(self, offset: int, value: int) -> None:
        """Note one store."""
        self._starts.append(offset)
        self._lengths.append(1)
        self._values.append(value)

    def stored_words(self, offset: int, words: bytes) -> None:
        """Note ascending stores of whole words from ``offset``."""
        self._starts.append(offset)
        self._lengths.append(len(words) // WORD)
        self._values.frombytes(words)

    def resized(self, size: int) -> None:
        """Note that the memory has ``size`` bytes from here on."""
        self._sizes.append((len(self), size))

    def image(self, first: bytes, stores: int) -> bytes:
        """The memory after the first ``stores`` stores.

        ``first`` is the memory as it was when the log began. A change of size that came right
        behind the last of these stores is in it. Raises MemoryAccessError for stores that are not
        in the log.
        """
        if not 0 <= stores <= len(self):
            raise MemoryAccessError(f"no image after {stores} stores: the log holds {len(self)}")
        image = np.frombuffer(first, np.uint8).copy()
        places, values = self.offsets // WORD, self.values
        done = 0
        for before, size in [*self._sizes, (stores, None)]:
            upto = min(before, stores)
            # Where a place repeats, the last of its values stays.
            image.view(np.uint64)[places[done:upto]] = values[done:upto]
            done = upto
            if before > stores or size is None:
                break
            kept = image[:size]
            image = np.zeros(size, np.uint8)
            image[: len(kept)] = kept
        return image.tobytes()

    def images(self, first: bytes) -> Iterator[memoryview]:
        """The memory after 0, 1, 2 … all stores: ``len(log) + 1`` images.

        All are one read-only view of bytes that change in place with each step (and another one
        after a change of size): copy what is to be kept. As in ``image``, a change of size shows
        in the image of the store before it.
        """
        data = bytearray(first)
        words = memoryview(data).cast("Q")
        sizes = iter([*self._sizes, (-1, 0)])
        before, size = next(sizes)
        places = (self.offsets // WORD).tolist()
        for number in range(len(self) + 1):
            if number:
                words[places[number - 1]] = self._values[number - 1]
            while before == number:
                data = bytearray(bytes(data[:size]).ljust(size, b"\0"))
                words = memoryview(data).cast("Q")
                before, size = next(sizes)
            yield memoryview(data).toreadonly()


# --- The memory ----------------------------------------------------------------------------------


class Memory:
    """A region of bytes, addressed from 0, little-endian (``fxframework.model.target.Memory``).

    Made by ``anonymous``, ``file``, ``memfd`` or ``descriptor``. ``log`` (a StoreLog, or None) and
    ``faults`` (a list of StoreFault) may be set at any time; each store asks the faults in their
    order. When one raises ``Crash`` the memory halts: every later store raises that crash again,
    until ``resume()``. ``stores`` counts what was stored; a store that did not land is not counted.

    One thread uses a Memory at a time. Another process maps the same file with a Memory of its own.
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

    # --- where it comes from ---

    @classmethod
    def anonymous(cls, size: int, *, log: bool = False) -> Self:
        """``size`` zero bytes (whole words) of this process alone."""
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
        """A file, shared with every process that maps it; what is stored outlives this process.

        With ``size`` the file is made, or made larger, as needed; without, it is there. A file that
        is larger stays so. Not ``writable``, it is opened for reading, and stores are refused.
        Nobody may make the file smaller while it is mapped. Raises MemoryAccessError where it
        cannot be opened, or whose size is not a multiple of 8.
        """
        flags = os.O_RDWR if writable else os.O_RDONLY
        if size is not None:
            _check_size(size)
            flags |= os.O_CREAT if writable else 0
        try:
            fd = os.open(Path(path), flags | CLOEXEC, 0o666)
        except OSError as error:
            raise MemoryAccessError(f"{path}: cannot be mapped: {error.strerror}") from None
        return cls._over(fd, size, str(path), log=log, writable=writable)

    @classmethod
    def memfd(cls, size: int, *, log: bool = False) -> Self:
        """``size`` zero bytes in a file without a name, to be shared through ``fileno()`` (Linux).

        Another process maps it with ``Memory.descriptor(fd)`` when it is given the descriptor.
        """
        _check_size(size)
        if not hasattr(os, "memfd_create"):
            raise EmulatorError("this system has no memfd; take Memory.file")
        fd = os.memfd_create("fx_emulator", os.MFD_CLOEXEC)
        return cls._over(fd, size, "memfd", log=log)

    @classmethod
    def descriptor(cls, fd: int, *, log: bool = False, writable: bool = True) -> Self:
        """The file of an open descriptor, which stays the caller's."""
        try:
            own = os.dup(fd)
        except OSError as error:
            raise MemoryAccessError(f"descriptor {fd}: {error.strerror}") from None
        return cls._over(own, None, f"descriptor {fd}", log=log, writable=writable)

    @classmethod
    def _over(
        cls, fd: int, size: int | None, name: str, *, log: bool, writable: bool = True
    ) -> Self:
        """Over a descriptor, which it takes; the file is made at least ``size`` bytes."""
        try:
            actual = os.fstat(fd).st_size
            if size is not None and actual < size:
                os.ftruncate(fd, size)
                actual = size
            if actual % WORD:
                raise MemoryAccessError(
                    f"{name}: its {actual} bytes are not a multiple of 8; "
                    f"ask for {actual + -actual % WORD} to make it larger"
                )
            region = _shared(fd, actual, writable=writable)
        except (OSError, ValueError) as error:
            os.close(fd)
            raise MemoryAccessError(f"{name}: cannot be mapped: {error}") from None
        except EmulatorError:
            os.close(fd)
            raise
        return cls(region, fd=fd, name=name, log=log, writable=writable)

    # --- what it is ---

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
        """What halted it, or None."""
        return self._crash

    @property
    def bytes(self) -> NDArray[np.uint8]:
        """The region itself, uint8 (size,). After a change of size take it again.

        What is stored through it is neither counted nor logged, and no fault sees it.
        """
        return np.frombuffer(self._bytes, np.uint8)

    @property
    def words(self) -> NDArray[np.uint64]:
        """The region itself, uint64 (size / 8,); as ``bytes``."""
        return np.frombuffer(self._words, np.uint64)

    def fileno(self) -> int:
        """The descriptor of the file below. Raises MemoryAccessError for an anonymous memory."""
        if self._fd is None:
            raise MemoryAccessError(f"{self._name} has no file; take Memory.file or Memory.memfd")
        return self._fd

    # --- loads and stores ---

    def load_u64(self, offset: int) -> int:
        """The word at byte ``offset`` (a multiple of 8), in one load."""
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
        """``n`` bytes from ``offset``, which need not be that of a word; a plain copy."""
        if n < 0 or not 0 <= offset <= self._size - n:
            raise self._refused("read", offset, n)
        return bytes(self._bytes[offset : offset + n])

    def write(self, offset: int, buffer: builtins.bytes) -> None:
        """Store whole words, in ascending order, one store for each."""
        nbytes = len(buffer)
        if (offset | nbytes) & 7 or not 0 <= offset <= self._size - nbytes:
            raise self._refused("write", offset, nbytes)
        if self.faults:
            for place, value in enumerate(_words_of(buffer)):
                self._store_watched(offset + WORD * place, value)
            return
        if self._fd is None:
            # Nobody can look in between, so the order in which bytes arrive does not matter.
            self._bytes[offset : offset + nbytes] = buffer
        else:
            if not self._writable:
                raise self._read_only()
            words = self._words
            for place, value in enumerate(_words_of(buffer), offset >> 3):
                words[place] = value
        self.stores += nbytes >> 3
        if self.log is not None and nbytes:
            self.log.stored_words(offset, buffer)

    # --- size ---

    def grow(self, size: int) -> None:
        """Make it at least ``size`` bytes, to the next word; new bytes are zero."""
        if size > self.size:
            self.resize(size + -size % WORD)

    def resize(self, size: int) -> None:
        """Make it ``size`` bytes, larger or smaller; bytes that come (back) are zero."""
        _check_size(size)
        if self._crash is not None:
            raise self._crash
        self._check_open()
        if size == self.size:
            return
        if not self._writable:
            raise self._read_only()
        if self._fd is None:
            region = _private(size)
            kept = min(size, self.size)
            memoryview(region)[:kept] = self._bytes[:kept]
        else:
            try:
                os.ftruncate(self._fd, size)
                region = _shared(self._fd, size, writable=True)
            except OSError as error:
                message = f"{self._name}: cannot be made {size} bytes: {error.strerror}"
                raise MemoryAccessError(message) from None
        self._detach()
        self._attach(region)
        if self.log is not None:
            self.log.resized(size)

    def refresh(self) -> int:
        """Map what another process made of the file's size, whole words of it; that size."""
        self._check_open()
        if self._fd is not None:
            size = os.fstat(self._fd).st_size // WORD * WORD
            if size != self.size:
                region = _shared(self._fd, size, writable=self._writable)
                self._detach()
                self._attach(region)
                if self.log is not None:
                    self.log.resized(size)
        return self.size

    # --- halting ---

    def halt(self, crash: Crash) -> None:
        """Take no store from here on: each raises ``crash``. What is stored stays to be read."""
        self.resume()
        self._crash = crash
        self.faults.insert(0, self._halted)

    def resume(self) -> None:
        """Take stores again, as from a program that was restarted; faults stay armed."""
        self._crash = None
        if self._halted in self.faults:
            self.faults.remove(self._halted)

    # --- end ---

    def close(self) -> None:
        """Let go of the region; a view taken of it stays good. Harmless when done twice."""
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

    # --- within ---

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
            # Where somebody has a view of it, it goes with the last of them.
            with contextlib.suppress(BufferError):
                self._region.close()

    def _store_watched(self, offset: int, value: int) -> None:
        """One store that the faults are asked about."""
        place = offset >> 3
        if place >= len(self._words) or not 0 <= value < _LIMIT or not self._writable:
            raise self._not_stored(offset, value, None)
        try:
            for fault in self.faults:
                value = fault(offset, value, self.stores)
        except Crash as crash:
            if crash is not self._crash:
                if 0 < crash.landed < WORD:
                    mask = (1 << 8 * crash.landed) - 1
                    self._land(place, (self._words[place] & ~mask) | (value & mask))
                self.halt(crash)
            raise
        self._land(place, value)

    def _land(self, place: int, value: int) -> None:
        try:
            self._words[place] = value
        except (ValueError, TypeError) as error:
            raise self._not_stored(WORD * place, value, error) from None
        self.stores += 1
        if self.log is not None:
            self.log.stored(WORD * place, value)

    def _halted(self, _offset: int, value: int, _number: int) -> int:
        """The fault of a memory that is halted."""
        if self._crash is not None:
            raise self._crash
        return value

    def _check_open(self) -> None:
        if self._closed:
            raise MemoryAccessError(f"{self._name} is closed")

    def _read_only(self) -> MemoryAccessError:
        self._check_open()
        return MemoryAccessError(f"{self._name} was opened for reading; open it writable to store")

    def _refused(self, what: str, offset: int, nbytes: int) -> MemoryAccessError:
        self._check_open()
        inside = 0 <= offset <= self.size - nbytes and nbytes >= 0
        why = "no whole words" if inside else f"outside its {self.size} bytes"
        advice = "begin and end at a multiple of 8" if inside else "grow it first"
        return MemoryAccessError(
            f"{self._name}: {what} of {nbytes} bytes at byte {offset}: {why}; {advice}"
        )

    def _not_stored(self, offset: int, value: object, error: Exception | None) -> EmulatorError:
        if offset >= self.size:
            return self._refused("store", offset, WORD)
        if not self._writable:
            return self._read_only()
        why = "a word has 64 bits" if isinstance(value, int) else str(error)
        return MemoryAccessError(f"{self._name}: store of {value!r} at byte {offset}: {why}")


# --- Regions -------------------------------------------------------------------------------------


def _check_size(size: int) -> None:
    if size < 0 or size % WORD:
        raise MemoryAccessError(f"a memory of {size} bytes: it has whole words of 8 bytes")


def _private(size: int) -> mmap.mmap | bytearray:
    if not size:
        return bytearray()  # there is no mapping of nothing
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise MemoryAccessError(f"no memory of {size} bytes: {error}") from None


def _shared(fd: int, size: int, *, writable: bool) -> mmap.mmap | bytearray:
    access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
    return mmap.mmap(fd, size, access=access) if size else bytearray()


def _words_of(buffer: bytes) -> list[int]:
    return memoryview(buffer).cast("Q").tolist()
