"""Plain bytes as a device's memory."""

from __future__ import annotations

import pytest

from fxframework.io.memory import BytesMemory
from fxframework.model.target import Memory

from ..cases import cases


def test_it_is_a_memory() -> None:
    memory = BytesMemory(24)
    assert isinstance(memory, Memory)
    memory.store_u64(16, 7)
    memory.write(0, bytes(range(16)))
    memory.grow(4095)
    assert memory.size == 4096
    assert memory.words is not None
    assert memory.words[2] == memory.load_u64(16) == 7
    assert memory.read(3, 4) == bytes([3, 4, 5, 6])
    assert memory.read(24, 4072) == bytes(4072)


@cases("wrong", [-8, 4, 64])
def test_other_places_are_refused(wrong: int) -> None:
    memory = BytesMemory(bytes(64))
    for use in (memory.load_u64, lambda at: memory.store_u64(at, 1),
                lambda at: memory.write(at, bytes(8))):  # fmt: skip
        with pytest.raises(ValueError, match="cannot access 8 bytes"):
            use(wrong)
    with pytest.raises(ValueError, match="cannot access 8 bytes"):
        memory.read(60, 8)
    with pytest.raises(ValueError, match="must be a multiple of 8"):
        BytesMemory(12)
    with pytest.raises(ValueError, match="invalid memory size -8"):
        BytesMemory(-8)
