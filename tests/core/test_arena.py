"""Memory for bulk columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from fxframework.io import arena

MAPS = Path("/proc/self/maps")


@pytest.mark.skipif(not MAPS.exists(), reason="the system does not list a process's memory")
def test_large_arrays_are_private_memory_which_can_have_huge_pages() -> None:
    array = arena.empty(2 * arena.SMALL, "u1")
    address = array.__array_interface__["data"][0]
    modes = [
        mode
        for bounds, mode, *_ in map(str.split, MAPS.read_text().splitlines())
        if int(bounds.split("-")[0], 16) <= address < int(bounds.split("-")[1], 16)
    ]
    assert modes == ["rw-p"]


def test_freed_memory_is_used_again() -> None:
    arena.release()
    first = arena.empty(arena.SMALL, "i8")
    address = first.__array_interface__["data"][0]
    del first
    again = arena.empty(arena.SMALL, "i8")
    assert again.__array_interface__["data"][0] == address
    arena.release()
