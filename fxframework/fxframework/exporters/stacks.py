"""Helpers shared by the exporters of calls: call trees, and counts of what is left out."""

from __future__ import annotations

import itertools
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.calls import Functions
from fxframework.analysis.tree import CallTree, call_tree
from fxframework.errors import WriteRefusedError
from fxframework.kernels.maps import PairMap
from fxframework.kit.export import empty_refusal
from fxframework.model.capture import Capture
from fxframework.model.schema import STANDARD_TABLES
from fxframework.model.strings import StringPool

__all__ = ["Frames", "left_out", "no_calls", "place_of", "stacks_of"]

ASYNCHRONOUS = "asynchronous slices"
UNFINISHED = "lengths of calls that never ended"
TIMELESS = "calls that took no time"
DEEP = "calls that are too deep, added to those above"


def left_out(capture: Capture) -> Counter[str]:
    """Count the rows and columns of a capture that are unrelated to its calls, by name."""
    dropped: Counter[str] = Counter()
    for name, rows in capture.row_counts().items():
        if rows and name not in {"slices", "threads", "processes"}:
            if capture.calls is None or name != capture.calls.functions:
                dropped[f"rows of {name}"] += rows
            continue
        if rows and name == "slices":
            known = {column.name for column in STANDARD_TABLES[name].all_columns}
            if capture.calls is not None:
                known |= {capture.calls.function, capture.calls.ticks, capture.calls.ended}
            for column in capture.schemas[name].all_columns:
                if column.name not in known:
                    dropped[f"values of slices.{column.name}"] += rows
    return dropped


def stacks_of(capture: Capture, options: Mapping[str, Any], dropped: Counter[str]) -> CallTree:
    """Return the call tree for the options `by`, `thread` and `depth`; count what is omitted.

    Calls that took no time are omitted if the option `weight` is a time.

    Raises WriteRefusedError, and counts nothing, if there are no calls.
    """
    tree = call_tree(
        capture, by=options["by"], per_thread=options["thread"], depth=options["depth"]
    )
    if len(tree) == len(tree.roots):
        raise no_calls(capture)
    found = {
        ASYNCHRONOUS: tree.asynchronous,
        UNFINISHED: int(tree.unfinished.sum()),
        DEEP: tree.deep,
        TIMELESS: tree.timeless if options.get("weight", "count") != "count" else 0,
    }
    dropped.update(left_out(capture))
    dropped.update({name: count for name, count in found.items() if count})
    return tree


def no_calls(capture: Capture) -> WriteRefusedError:
    """Return the error for a capture without calls."""
    return empty_refusal(capture, "there are no calls")


def place_of(source: str) -> tuple[str, int | None, int | None]:
    """Return file, line and column of ``file:line:column``, whose numbers may be missing."""
    numbers: list[int] = []
    head, colon, tail = source.rpartition(":")  # the name of a file may contain a colon
    while colon and tail.isdecimal() and len(numbers) < 2:
        source = head
        numbers.insert(0, int(tail))
        head, colon, tail = source.rpartition(":")
    line, column = (*numbers, None, None)[:2]
    return source, line, column


class Frames:
    """Numbers the functions of several captures; equal name and source get the same number."""

    def __init__(self, pool: StringPool | None = None) -> None:
        self._pool = pool
        self._of_name = array("i")
        """By code of the name, the number of the function without a source; -1 where unknown."""
        self._of_place = PairMap()
        """By codes of name and source, the number of the function."""
        self._codes = array("i")

    def numbers_of(self, functions: Functions) -> NDArray[np.int32]:
        """Return the numbers of functions, of shape (functions,); new ones are appended."""
        if self._pool is None:
            self._pool = functions.pool
        shared = self._pool is functions.pool
        found = np.empty(len(functions), np.int32)
        source = -1
        for place, code in enumerate(map(int, functions.codes)):
            name = code if shared else self._pool.intern(functions.pool.bytes_of(code))
            if functions.sources is not None:
                source = int(functions.sources[place])
            where = max(source, 0)
            if where and not shared:
                where = self._pool.intern(functions.pool.bytes_of(where))
            number = found[place] = self._number(name, where)
            if 2 * number == len(self._codes):
                self._codes.extend((name, where))
        return found

    @property
    def pool(self) -> StringPool:
        """The names and sources of the functions: as given, or that of the first capture."""
        if self._pool is None:
            self._pool = StringPool()
        return self._pool

    def _number(self, name: int, where: int) -> int:
        """The number of a function, which is the next one where it is new."""
        following = len(self._codes) // 2
        if where:
            number = self._of_place.get(name, where)
            if number < 0:
                self._of_place.put(name, where, following)
        else:
            if name >= len(self._of_name):
                self._of_name.extend(itertools.repeat(-1, name + 1 - len(self._of_name)))
            number = self._of_name[name]
            if number < 0:
                self._of_name[name] = following
        return following if number < 0 else number

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield the codes of name and source of each function, by number."""
        return zip(self._codes[::2], self._codes[1::2], strict=True)
