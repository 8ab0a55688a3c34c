"""The address space of a native program: regions of host memory at guest addresses."""

from __future__ import annotations

import bisect
import ctypes
import mmap
from typing import Any

import attrs

from fx_emulator.native.errors import NativeError

PAGE = 4096
# Permissions of a region, as the engine numbers them.
READ = 1
WRITE = 2
RUN = 4

GUARD = 1 << 16
"""Bytes that stay unmapped between two regions, so that a store beyond one of them faults."""


def round_up(size: int, to: int = PAGE) -> int:
    """Round ``size`` up to a multiple of ``to``."""
    return -(-size // to) * to


@attrs.define(eq=False)
class Region:
    """A mapped range of guest addresses over host memory."""

    name: str
    start: int
    size: int
    """Bytes mapped, whole pages."""
    view: memoryview
    """The host memory, at least ``size`` bytes or ``limit``."""
    permissions: int
    limit: int
    """Bytes that the program may use; the rest of the last page is padding."""
    shared: Any = None
    """The device (Memory, Vmo) whose bytes these are, or None."""
    keep: Any = attrs.field(default=None, repr=False)
    """Keeps the host memory alive."""

    @property
    def end(self) -> int:
        """First guest address after the region."""
        return self.start + self.size


class Space:
    """Regions by guest address. ``engine`` maps and unmaps them for the emulated CPU."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.regions: list[Region] = []
        """In ascending order."""
        self._starts: list[int] = []
        """The start of each region, for binary search."""
        self._next_free: dict[int, int] = {}
        """The next address to use, by area."""

    # --- making regions ---

    def place(self, area: int, size: int, room: int = GUARD) -> int:
        """Return a free address in an area (given by its start), with ``room`` to grow after it."""
        start = self._next_free.get(area, area)
        self._next_free[area] = start + round_up(size) + room
        return start

    def map(self, name: str, start: int, size: int, permissions: int) -> Region:
        """Map ``size`` zero bytes, rounded up to pages. Raises NativeError for an overlap."""
        nbytes = round_up(max(size, 1))
        try:
            host = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise NativeError(f"{name}: no memory for {nbytes:,} bytes: {error.strerror}") from None
        return self.map_host(name, start, host, nbytes, permissions, limit=nbytes)

    def map_host(
        self,
        name: str,
        start: int,
        host: Any,
        size: int,
        permissions: int,
        *,
        limit: int,
        offset: int = 0,
        shared: Any = None,
    ) -> Region:
        """Map host memory (a writable buffer, page-aligned) from ``offset`` on."""
        end = start + size
        for region in self.regions:
            if start < region.end and region.start < end:
                raise NativeError(
                    f"{name} at {start:#x} overlaps {region.name} at {region.start:#x}; "
                    "link the object to another address"
                )
        anchor = ctypes.c_char.from_buffer(host, offset)
        view = memoryview(host)[offset : offset + limit]
        region = Region(name, start, size, view, permissions, limit, shared, (host, anchor))
        self.engine.map_pointer(start, size, permissions, ctypes.addressof(anchor))
        index = bisect.bisect(self._starts, start)
        self.regions.insert(index, region)
        self._starts.insert(index, start)
        return region

    def unmap(self, region: Region) -> None:
        """Unmap a region."""
        self.engine.unmap(region.start, region.size)
        index = self.regions.index(region)
        del self.regions[index]
        del self._starts[index]
        region.view.release()
        region.keep = None

    def protect(self, start: int, size: int, permissions: int) -> None:
        """Change the permissions of whole pages."""
        self.engine.protect(start, size, permissions)

    # --- access ---

    def find(self, address: int) -> Region | None:
        """Return the region that contains an address, or None."""
        index = bisect.bisect(self._starts, address) - 1
        if index < 0:
            return None
        region = self.regions[index]
        return region if address < region.end else None

    def _locate(self, address: int, size: int, access: str) -> tuple[Region, int]:
        """Return the region of some bytes, and their offset in it.

        Raises NativeError, which names the access, unless all are in one region.
        """
        region = self.find(address)
        if region is None or address + size > region.start + region.limit:
            raise NativeError(f"{access} of {size} bytes at {address:#x}: nothing is mapped there")
        return region, address - region.start

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes. Raises NativeError unless all are in one region."""
        if size == 0:
            return b""
        region, offset = self._locate(address, size, "read")
        return bytes(region.view[offset : offset + size])

    def read_some(self, address: int, most: int) -> bytes:
        """Return at most ``most`` bytes from an address on: those that its region has."""
        region = self.find(address)
        if region is None:
            return b""
        offset = address - region.start
        return bytes(region.view[offset : offset + most])

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Write bytes without calling hooks."""
        if not len(data):
            return
        region, offset = self._locate(address, len(data), "write")
        region.view[offset : offset + len(data)] = data

    def read_word(self, address: int, size: int = 8) -> int:
        """Return an unsigned little-endian number."""
        return int.from_bytes(self.read(address, size), "little")

    def write_word(self, address: int, value: int, size: int = 8) -> None:
        """Write a number, modulo its size."""
        self.write(address, (value & ((1 << 8 * size) - 1)).to_bytes(size, "little"))

    def read_string(self, address: int, most: int = 1 << 16) -> bytes:
        """Return the bytes before a NUL, or the first ``most`` bytes."""
        region, offset = self._locate(address, 1, "read of a string")
        data = bytes(region.view[offset : min(offset + most, region.limit)])
        end = data.find(0)
        if end >= 0:
            return data[:end]
        if len(data) == most:
            return data
        raise NativeError(f"string at {address:#x}: no NUL before the end of {region.name}")
