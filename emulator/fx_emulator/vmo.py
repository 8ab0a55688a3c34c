"""VMOs: memory objects of the target with handles, rights, mappings, slices and snapshots.

A VMO has whole pages, a size that may change, and a content size in bytes. The first store into a
page commits it; an uncommitted page reads as zeros and takes no memory. A snapshot shares the
committed pages of its parent until either stores into one, which is then its own. A slice is a
window into its parent. Each committed page is counted once, for the first of the objects that share
it.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator
from typing import Self

from fx_emulator.errors import MemoryAccessError, RightsError, VmoError
from fx_emulator.memory import Memory

PAGE = 4096
FIRST_KOID = 1024
"""The first koid that the kernel assigns."""

MOST_BYTES = 1 << 32
"""Most bytes of a VMO, if nothing else is said."""

_WORD = 8
_PAGE_BITS = 12
_NAME_BYTES = 31
# States of a page: absent (zeros), own, or shared between an object and its snapshots.
_ABSENT = 0
_OWN = 1
_SHARED = 2


class Rights(enum.IntFlag):
    """Rights of a handle, with Zircon's numbers."""

    NONE = 0
    DUPLICATE = 1 << 0
    TRANSFER = 1 << 1
    READ = 1 << 2
    WRITE = 1 << 3
    EXECUTE = 1 << 4
    MAP = 1 << 5
    GET_PROPERTY = 1 << 6
    SET_PROPERTY = 1 << 7
    SIGNAL = 1 << 12
    WAIT = 1 << 14
    INSPECT = 1 << 15
    RESIZE = 1 << 22


DEFAULT_RIGHTS = (
    Rights.DUPLICATE
    | Rights.TRANSFER
    | Rights.READ
    | Rights.WRITE
    | Rights.MAP
    | Rights.GET_PROPERTY
    | Rights.SET_PROPERTY
    | Rights.SIGNAL
    | Rights.WAIT
    | Rights.INSPECT
)
"""Rights of the handle of a new VMO; a resizable one has RESIZE too."""
_READ = int(Rights.READ)
_WRITE = int(Rights.WRITE)


# --- Pages ---------------------------------------------------------------------------------------


class _Storage:
    """The pages of one object: their bytes in a memory, and which of them are committed.

    A snapshot gets copies of the bytes at once. Which storages would still share a page is kept for
    the count of committed pages.
    """

    def __init__(self, memory: Memory, *, used: bytes | None = None) -> None:
        self.memory = memory
        self.state = bytearray(used or memory.size >> _PAGE_BITS)
        self.sharers: dict[int, list[_Storage]] = {}
        """The storages that share a page, in order of creation, by the page's index."""
        self.users = 0
        """Number of objects and mappings that use it."""

    @property
    def size(self) -> int:
        return len(self.state) << _PAGE_BITS

    def committed(self, first: int, end: int) -> int:
        """Return the number of pages of a range that are counted for this storage."""
        own_pages = self.state.count(_OWN, first, end)
        # A shared page is counted for the oldest of those that share it.
        shared_pages = sum(
            first <= page_index < end and sharers[0] is self
            for page_index, sharers in self.sharers.items()
        )
        return own_pages + shared_pages

    def store_u64(self, offset: int, value: int) -> None:
        # An invalid offset is refused by the memory below.
        page_index = offset >> _PAGE_BITS
        if page_index >= len(self.state) or self.state[page_index] != _OWN:
            self.claim(offset, _WORD)
        self.memory.store_u64(offset, value)

    def write(self, offset: int, words: bytes) -> None:
        page_index = offset >> _PAGE_BITS
        page_end = (page_index + 1) << _PAGE_BITS
        is_one_page = offset + len(words) <= page_end
        if not is_one_page or page_index >= len(self.state) or self.state[page_index] != _OWN:
            self.claim(offset, len(words))
        self.memory.write(offset, words)

    def claim(self, offset: int, nbytes: int) -> None:
        """Make the pages of a range this storage's own before a store into them."""
        # An invalid store is refused by the memory, and must not commit a page.
        is_valid = nbytes and not offset & 7 and 0 <= offset <= self.size - nbytes
        if not is_valid or self.memory.crashed:
            return
        first_page = offset >> _PAGE_BITS
        last_page = (offset + nbytes - 1) >> _PAGE_BITS
        for page_index in range(first_page, last_page + 1):
            self.give_up(page_index)
            self.state[page_index] = _OWN

    def share(self, first: int, count: int, heir: _Storage) -> None:
        """Share pages from ``first`` on with a new storage, as its pages from 0 on."""
        source_bytes = self.memory.bytes
        heir_bytes = heir.memory.bytes
        end = min(first + count, len(self.state))
        for heir_index, page_index in enumerate(range(first, end)):
            if self.state[page_index] == _ABSENT:
                continue
            sharers = self.sharers.setdefault(page_index, [self])
            sharers.append(heir)
            heir.sharers[heir_index] = sharers
            self.state[page_index] = _SHARED
            heir.state[heir_index] = _SHARED
            page_bytes = source_bytes[page_index * PAGE : (page_index + 1) * PAGE]
            heir_bytes[heir_index * PAGE : (heir_index + 1) * PAGE] = page_bytes

    def resize(self, size: int) -> None:
        pages = size >> _PAGE_BITS
        for page_index in range(pages, len(self.state)):
            self.give_up(page_index)
        self.memory.resize(size)
        self.state = self.state[:pages].ljust(pages, bytes([_ABSENT]))

    def give_up(self, page_index: int) -> None:
        """Share a page no longer, if it is shared."""
        sharers = self.sharers.pop(page_index, None)
        if sharers is not None:
            sharers.remove(self)

    def acquire(self) -> None:
        self.users += 1

    def release(self) -> None:
        """Remove a user; without users, give up all shared pages."""
        self.users -= 1
        if not self.users:
            for page_index in list(self.sharers):
                self.give_up(page_index)


class _Object:
    """The object behind the handles of one VMO."""

    def __init__(
        self,
        storage: _Storage,
        *,
        koids: Iterator[int],
        name: str,
        content_size: int,
        resizable: bool,
        window: tuple[int, int] | None = None,
    ) -> None:
        storage.acquire()
        self.storage = storage
        self.koids = koids
        self.koid = next(koids)
        self.name = name
        self.content_size = content_size
        self.resizable = resizable
        self.window = window
        """First byte and size of a slice in its storage; None: all of it."""
        self.base = 0 if window is None else window[0]
        self.handles = 0

    @property
    def size(self) -> int:
        if self.window is None:
            return self.storage.size
        return self.window[1]

    def check(self, access: str, offset: int, nbytes: int) -> None:
        if nbytes < 0 or not 0 <= offset <= self.size - nbytes:
            message = (
                f"{self}: {access} of {nbytes} bytes at byte {offset}: "
                f"outside its {self.size} bytes"
            )
            if self.resizable:
                message += "; set_size() makes it larger"
            raise MemoryAccessError(message)

    def release(self) -> None:
        self.handles -= 1
        if not self.handles:
            self.storage.release()

    def __str__(self) -> str:
        if not self.name:
            return f"VMO {self.koid}"
        return f"VMO {self.koid} {self.name!r}"


# --- Handles -------------------------------------------------------------------------------------


class Vmo:
    """A handle to a VMO; also a ``fxframework.model.target.Memory``.

    Each operation names the rights that it requires, and raises RightsError without them.
    ``create`` and ``over`` create a VMO; ``duplicate``, ``snapshot`` and ``slice`` return further
    handles. A VMO lives as long as a handle, a mapping or a slice of it.
    """

    def __init__(self, vmo: _Object, rights: Rights) -> None:
        vmo.handles += 1
        self._vmo = vmo
        self._rights = rights
        # Plain integers: IntFlag arithmetic is slow, and loads and stores must be fast.
        self._bits = int(rights)
        self._closed = False

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{self._vmo.size} bytes, {self._rights.name}"
        return f"<Vmo: {self._vmo}, {state}>"

    @classmethod
    def create(
        cls,
        size: int,
        *,
        name: str = "",
        resizable: bool = False,
        koids: Iterator[int] | None = None,
        log: bool = False,
    ) -> Self:
        """Create a VMO of ``size`` zero bytes, rounded up to pages.

        ``size`` is its content size. ``koids`` yields its koid and those of its children (default:
        1024, 1025 …). With ``log`` its ``memory`` has a store log.
        """
        _check_size(size)
        storage = _Storage(Memory.anonymous(_round_up(size), log=log))
        return cls._new(storage, size, name=name, resizable=resizable, koids=koids)

    @classmethod
    def over(
        cls,
        memory: Memory,
        *,
        name: str = "",
        resizable: bool = False,
        koids: Iterator[int] | None = None,
    ) -> Self:
        """Create a VMO over a memory of whole pages, which another process may map.

        Pages that are not all zero count as committed. Stores of another process are visible, but
        commit no page.
        """
        if memory.size % PAGE:
            raise VmoError(f"{memory}: its size is not a multiple of {PAGE} bytes")
        _check_size(memory.size)
        used = memory.bytes.reshape(-1, PAGE).any(axis=1).tobytes()
        storage = _Storage(memory, used=used)
        return cls._new(storage, memory.size, name=name, resizable=resizable, koids=koids)

    @classmethod
    def _new(
        cls,
        storage: _Storage,
        size: int,
        *,
        name: str,
        resizable: bool,
        koids: Iterator[int] | None,
    ) -> Self:
        vmo = _Object(
            storage,
            koids=itertools.count(FIRST_KOID) if koids is None else koids,
            name=_fit_name(name),
            content_size=size,
            resizable=resizable,
        )
        rights = DEFAULT_RIGHTS
        if resizable:
            rights |= Rights.RESIZE
        return cls(vmo, rights)

    # --- the handle ---

    @property
    def rights(self) -> Rights:
        """The rights of this handle."""
        return self._rights

    @property
    def koid(self) -> int:
        """The object's koid, the same for all of its handles."""
        return self._vmo.koid

    @property
    def resizable(self) -> bool:
        """Whether its size can change."""
        return self._vmo.resizable

    @property
    def memory(self) -> Memory:
        """The memory with its pages, for the store log and for faults. A slice has its parent's."""
        return self._vmo.storage.memory

    def duplicate(self, rights: Rights | None = None) -> Self:
        """Return another handle, with the same rights or fewer. Requires DUPLICATE."""
        self._need(Rights.DUPLICATE, "duplicate")
        if rights is None:
            rights = self._rights
        missing_rights = rights & ~self._rights
        if missing_rights:
            raise RightsError(
                f"{self._vmo}: cannot duplicate with {missing_rights.name}, which this handle "
                "lacks; duplicate a handle that has it"
            )
        return type(self)(self._vmo, rights)

    def close(self) -> None:
        """Close the handle. May be called twice."""
        if not self._closed:
            self._closed = True
            self._bits = 0
            self._vmo.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- properties ---

    @property
    def name(self) -> str:
        """The name, up to 31 bytes. Requires GET_PROPERTY."""
        self._need(Rights.GET_PROPERTY, "get name")
        return self._vmo.name

    def set_name(self, name: str) -> None:
        """Set the name, truncated to 31 bytes. Requires SET_PROPERTY."""
        self._need(Rights.SET_PROPERTY, "set name")
        self._vmo.name = _fit_name(name)

    @property
    def content_size(self) -> int:
        """Bytes of content. Requires GET_PROPERTY."""
        self._need(Rights.GET_PROPERTY, "get content size")
        return self._vmo.content_size

    def set_content_size(self, nbytes: int) -> None:
        """Set the bytes of content, up to the size. Requires SET_PROPERTY."""
        self._need(Rights.SET_PROPERTY, "set content size")
        self._vmo.check("content", 0, nbytes)
        self._vmo.content_size = nbytes

    @property
    def size(self) -> int:
        """Size in bytes, whole pages."""
        return self._vmo.size

    def set_size(self, size: int) -> None:
        """Resize to ``size`` bytes, rounded up to pages; ``size`` becomes the content size.

        New bytes are zero. Requires RESIZE and WRITE. Raises VmoError if the VMO is not resizable,
        or for more than ``MOST_BYTES``.
        """
        vmo = self._vmo
        self._need(Rights.NONE, "set size")
        if not vmo.resizable:
            raise VmoError(f"{vmo} is not resizable; create it with resizable=True")
        self._need(Rights.RESIZE | Rights.WRITE, "set size")
        _check_size(size)
        if _round_up(size) != vmo.size:
            vmo.storage.resize(_round_up(size))
        vmo.content_size = size

    @property
    def committed_pages(self) -> int:
        """Number of committed pages counted for this VMO; for a slice, those of its window."""
        vmo = self._vmo
        first = vmo.base >> _PAGE_BITS
        return vmo.storage.committed(first, first + (vmo.size >> _PAGE_BITS))

    # --- loads and stores ---

    def load_u64(self, offset: int) -> int:
        """Load the word at byte ``offset`` (a multiple of 8), in one load. Requires READ."""
        if not self._bits & _READ:
            self._need(Rights.READ, "load")
        vmo = self._vmo
        if vmo.window:
            vmo.check("load", offset, _WORD)
        return vmo.storage.memory.load_u64(vmo.base + offset)

    def store_u64(self, offset: int, value: int) -> None:
        """Store the word at byte ``offset`` (a multiple of 8), in one store. Requires WRITE."""
        if not self._bits & _WRITE:
            self._need(Rights.WRITE, "store")
        vmo = self._vmo
        if vmo.window:
            vmo.check("store", offset, _WORD)
        vmo.storage.store_u64(vmo.base + offset, value)

    def read(self, offset: int, n: int) -> bytes:
        """Return ``n`` bytes from ``offset``. Requires READ."""
        if not self._bits & _READ:
            self._need(Rights.READ, "read")
        vmo = self._vmo
        vmo.check("read", offset, n)
        return vmo.storage.memory.read(vmo.base + offset, n)

    def write(self, offset: int, buffer: bytes) -> None:
        """Store bytes, in ascending 8-byte stores. Requires WRITE.

        They may begin and end within a word, as the kernel allows: such a word is read, changed,
        and stored whole.
        """
        if not self._bits & _WRITE:
            self._need(Rights.WRITE, "write")
        vmo = self._vmo
        vmo.check("write", offset, len(buffer))
        if not len(buffer):
            return
        start = vmo.base + offset
        if (start | len(buffer)) & 7:
            # Complete the first and the last word with the bytes that are there.
            first_word = start & -_WORD
            end = start + len(buffer)
            head = vmo.storage.memory.read(first_word, start - first_word)
            tail = vmo.storage.memory.read(end, -end % _WORD)
            buffer = head + bytes(buffer) + tail
            start = first_word
        vmo.storage.write(start, buffer)

    def grow(self, size: int) -> None:
        """Grow to at least ``size`` bytes, by ``set_size``."""
        if size > self._vmo.size:
            content = self._vmo.content_size
            self.set_size(size)
            self._vmo.content_size = max(content, size)

    # --- mappings and children ---

    def map(self, offset: int = 0, length: int | None = None, *, write: bool = True) -> Mapping:
        """Map ``length`` bytes (default: to the end) from ``offset``, both whole pages.

        Requires MAP and READ; WRITE as well for a writable mapping. The mapping outlives the
        handle.
        """
        needed = Rights.MAP | Rights.READ
        if write:
            needed |= Rights.WRITE
        self._need(needed, "map")
        vmo = self._vmo
        if length is None:
            length = vmo.size - offset
        _check_pages("map", offset, length)
        vmo.check("map", offset, length)
        return Mapping(vmo, offset, length, write=write)

    def snapshot(
        self,
        offset: int = 0,
        size: int | None = None,
        *,
        name: str | None = None,
        resizable: bool = False,
    ) -> Self:
        """Return a child with the current bytes; later stores into either do not affect the other.

        ``size`` (default: to the end) is rounded up to pages and may go beyond the end, where the
        child has zeros. Requires DUPLICATE and READ; the child's handle is writable.
        """
        self._need(Rights.DUPLICATE | Rights.READ, "snapshot")
        vmo = self._vmo
        if size is None:
            size = vmo.size - offset
        _check_pages("snapshot", offset, 0)
        _check_size(size)
        storage = _Storage(Memory.anonymous(_round_up(size)))
        common_bytes = min(storage.size, max(0, vmo.size - offset))
        first_page = (vmo.base + offset) >> _PAGE_BITS
        vmo.storage.share(first_page, common_bytes >> _PAGE_BITS, storage)
        child_object = _Object(
            storage,
            koids=vmo.koids,
            name=vmo.name if name is None else _fit_name(name),
            content_size=size,
            resizable=resizable,
        )
        rights = self._rights & ~(Rights.EXECUTE | Rights.RESIZE)
        rights |= Rights.WRITE | Rights.GET_PROPERTY | Rights.SET_PROPERTY
        if resizable:
            rights |= Rights.RESIZE
        return type(self)(child_object, rights)

    def slice(self, offset: int, size: int, *, name: str | None = None) -> Self:
        """Return a child that is a window into this VMO, of whole pages, and shares its bytes.

        Requires DUPLICATE and READ; the child's handle has this one's rights. Raises VmoError if
        this VMO is resizable.
        """
        self._need(Rights.DUPLICATE | Rights.READ, "slice")
        vmo = self._vmo
        if vmo.resizable:
            raise VmoError(f"{vmo} is resizable and cannot have slices; take a snapshot")
        _check_pages("slice", offset, size)
        vmo.check("slice", offset, size)
        child_object = _Object(
            vmo.storage,
            koids=vmo.koids,
            name=vmo.name if name is None else _fit_name(name),
            content_size=size,
            resizable=False,
            window=(vmo.base + offset, size),
        )
        return type(self)(child_object, self._rights)

    # --- helpers ---

    def _need(self, rights: Rights, operation: str) -> None:
        if self._closed:
            raise VmoError(
                f"{self._vmo}: {operation} through a closed handle; duplicate it before closing"
            )
        missing_rights = rights & ~self._rights
        if missing_rights:
            raise RightsError(
                f"{self._vmo}: {operation} requires {missing_rights.name}, which this handle "
                "lacks; use a handle with more rights"
            )


class Mapping:
    """A mapping of a VMO into a process; a ``fxframework.model.target.Memory``.

    An access beyond the end of a VMO that was shrunk raises MemoryAccessError, where a process
    would fault.
    """

    def __init__(self, vmo: _Object, offset: int, nbytes: int, *, write: bool) -> None:
        vmo.handles += 1
        self._vmo = vmo
        self._start = vmo.base + offset
        """First byte of the window in the VMO's storage."""
        self._offset = offset
        self._size = nbytes
        self._writable = write
        self._mapped = True

    def __repr__(self) -> str:
        return f"<Mapping: {self._size} bytes at byte {self._offset} of {self._vmo}>"

    @property
    def size(self) -> int:
        """Bytes in the window."""
        return self._size

    def load_u64(self, offset: int) -> int:
        """Load the word at byte ``offset`` (a multiple of 8), in one load."""
        self._check("load", offset, _WORD)
        return self._vmo.storage.memory.load_u64(self._start + offset)

    def store_u64(self, offset: int, value: int) -> None:
        """Store the word at byte ``offset`` (a multiple of 8), in one store."""
        self._check("store", offset, _WORD, write=True)
        self._vmo.storage.store_u64(self._start + offset, value)

    def read(self, offset: int, n: int) -> bytes:
        """Return ``n`` bytes from ``offset``."""
        self._check("read", offset, n)
        return self._vmo.storage.memory.read(self._start + offset, n)

    def write(self, offset: int, buffer: bytes) -> None:
        """Store whole words, in ascending order, one store for each."""
        self._check("write", offset, len(buffer), write=True)
        if (offset | len(buffer)) & 7:
            raise MemoryAccessError(
                f"{self!r}: write of {len(buffer)} bytes at byte {offset}: not whole words; "
                "begin and end at a multiple of 8"
            )
        self._vmo.storage.write(self._start + offset, buffer)

    def grow(self, size: int) -> None:
        """Raise VmoError for more than the mapping's size, which is fixed; map the VMO again."""
        if size > self._size:
            raise VmoError(f"{self!r} cannot have {size} bytes; grow the VMO and map it again")

    def unmap(self) -> None:
        """Remove the mapping. May be called twice."""
        if self._mapped:
            self._mapped = False
            self._vmo.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.unmap()

    def _check(self, access: str, offset: int, nbytes: int, *, write: bool = False) -> None:
        if not self._mapped:
            raise VmoError(f"{self!r}: {access} after it was unmapped")
        if write and not self._writable:
            raise RightsError(
                f"{self!r}: {access} into a read-only mapping; map it with write=True"
            )
        if nbytes < 0 or not 0 <= offset <= self._size - nbytes:
            raise MemoryAccessError(
                f"{self!r}: {access} of {nbytes} bytes at byte {offset}: out of range; map more"
            )


# --- Sizes and names -----------------------------------------------------------------------------


def _round_up(size: int) -> int:
    return size + -size % PAGE


def _check_size(size: int) -> None:
    if not 0 <= size <= MOST_BYTES:
        raise VmoError(f"invalid VMO size {size}: must be 0 to {MOST_BYTES}")


def _check_pages(what: str, offset: int, nbytes: int) -> None:
    if offset % PAGE or nbytes % PAGE or offset < 0:
        raise VmoError(
            f"{what} of {nbytes} bytes from byte {offset}: both must be multiples of {PAGE}"
        )


def _fit_name(name: str) -> str:
    return name.encode()[:_NAME_BYTES].decode(errors="ignore")
