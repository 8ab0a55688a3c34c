"""Program: the map of a program, made of its entries in the same way for ELF and Mach-O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_xray.read.instr_map import (
    FAULTS,
    RELATIVE_VERSION,
    Fault,
    InstrumentationMap,
    Program,
    ProgramFunctions,
    SledKind,
    Sleds,
)

__all__ = ["ProgramMap", "targets_of", "whole_rows"]

U1 = NDArray[np.uint8]
U8 = NDArray[np.uint64]


def whole_rows(data: U1, fields: Any, order: str = "<") -> NDArray[Any]:
    """Return bytes as rows of a table; those of a row that is cut off are not looked at."""
    row = np.dtype(fields).newbyteorder(order)
    return data[: data.size - data.size % row.itemsize].view(row)


def targets_of(rows: NDArray[Any], section_address: int, bits: int) -> Iterator[U8]:
    """Yield the addresses of the sleds of entries, and of their functions, each of shape (n,)."""
    is_relative = rows["version"] >= RELATIVE_VERSION
    entry_bytes = np.uint64(rows.itemsize)
    places = np.arange(rows.size, dtype=np.uint64) * entry_bytes + np.uint64(section_address)
    # Each field is relative to where it is itself: the function's is a word behind the sled's.
    for field, offset in (("address", 0), ("function", bits // 8)):
        value = rows[field].astype(np.uint64)
        target = np.where(is_relative, value + places + np.uint64(offset), value)
        yield target & np.uint64((1 << bits) - 1)


class ProgramMap:
    """Collects the sleds of a program, section by section; ``base`` is where its file begins."""

    def __init__(self, path: str, base: int = 0) -> None:
        self._path = path
        self._base = base
        self._faults: list[Fault] = []
        self._parts: list[tuple[NDArray[Any], ...]] = []

    def add(
        self, rows: NDArray[Any], targets: Iterable[NDArray[Any]], offset: int, size: int
    ) -> None:
        """Add the entries of a section that lies at a byte offset of the file.

        ``targets`` are the addresses of sleds and functions, and the sections of the functions.
        """
        if rows.nbytes < size:
            bytes_left = size - rows.nbytes
            problem = f"{bytes_left} bytes are left over behind {rows.size} entries"
            self._fault(offset + rows.nbytes, problem)
        is_known = rows["kind"] <= max(SledKind)
        for row in np.flatnonzero(~is_known).tolist():
            self._fault(offset + row * rows.itemsize, f"a sled of kind {rows['kind'][row]}")
        columns = (*targets, rows["kind"], rows["always"] != 0, rows["version"])
        self._parts.append(tuple(column[is_known] for column in columns))

    def _fault(self, offset: int, message: str) -> None:
        if len(self._faults) < FAULTS:
            self._faults.append(Fault(self._path, self._base + offset, message))

    def finished(self, program: Program) -> InstrumentationMap:
        """Return the map, in which the program names the functions."""
        columns = map(np.concatenate, zip(*self._parts, strict=True))
        address, function, place, kind, always, version = columns
        # The sleds of a function follow one another, and the ids of functions are 1, 2, 3, ….
        is_first = np.ones(function.size, np.bool_)
        is_other_function = function[1:] != function[:-1]
        is_elsewhere = place[1:] != place[:-1]
        is_first[1:] = is_other_function | is_elsewhere
        ids = np.cumsum(is_first).astype(np.int64)
        functions = ProgramFunctions(program, function[is_first], place[is_first])
        sleds = Sleds(ids, address, function, kind, always, version)
        return InstrumentationMap(self._path, functions, sleds, tuple(self._faults))
