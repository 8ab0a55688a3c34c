"""A column that grows keeps its values, in memory and in a file, and lets its pages go."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from fxframework.io import spill
from fxframework.io.spill import Spill

from ..cases import cases


@cases("bound", [0, 100, 1 << 20])
def test_values_stay_as_it_grows(monkeypatch: pytest.MonkeyPatch, bound: int) -> None:
    """Whatever is in memory or in the file, and after its pages are released."""
    monkeypatch.setattr(spill, "IN_MEMORY", bound)
    column = Spill(np.int64)
    expected = np.zeros(0, np.int64)
    for size in (3, 5, 100, 101, 20_000, 20_001, 70_000):
        array = column.grow(size)
        assert array.size >= size
        assert np.array_equal(array[: expected.size], expected)
        expected = np.arange(size) * 3
        array[:size] = expected
        column.release()
        assert np.array_equal(column.array[:size], expected)


def test_earlier_arrays_share_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kernel writes through an array that it got earlier is in the later one, too."""
    monkeypatch.setattr(spill, "IN_MEMORY", 0)
    column = Spill(np.int32)
    column.grow(4)
    earlier = column.grow(8)
    later = column.grow(100_000)
    earlier[7] = 42
    assert later[7] == 42


def test_its_file_is_closed_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """By reference counting alone."""
    monkeypatch.setattr(spill, "IN_MEMORY", 0)
    held = Path("/proc/self/fd")
    if not held.is_dir():
        pytest.skip("this system does not list open files")
    gc.disable()
    try:
        before = len(list(held.iterdir()))
        column = Spill(np.int32)
        column.grow(4)
        column.grow(40)
        del column
        assert len(list(held.iterdir())) == before
    finally:
        gc.enable()
