"""Profile: opens the files of XRay's profiling mode; paths of calls become slices.

A profile has no times, only how long the calls of each path took together. So each path of a thread
is one slice, as long as all its calls, and the paths of a thread lie one behind the other, each
within its caller's, from time 0 on.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fx_xray.profile import CUT_PATH, FORMAT, HEADER_BYTES, Header, Total
from fx_xray.read.batches import small_columns
from fx_xray.read.events import to_ns, to_spans
from fx_xray.read.symbols import FunctionNames
from fx_xray.read.tables import SCHEMAS
from fxframework.io.source import Source
from fxframework.kernels.pools import PairMap
from fxframework.kit.scanned import Columns
from fxframework.model.capture import CallColumns, OpenRequest
from fxframework.model.clock import NS_MAX
from fxframework.model.schema import CALL, STANDARD_TABLES, Column, TableSchema
from fxframework.wire.capture import BlockPass, Cells, DeclaredCapture
from fxframework.wire.many import FileNumbers

__all__ = ["FORMAT", "Paths", "ProfileCapture"]

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
WORD_BYTES: Final = 4
CALLS, TICKS = (Total.layout.place(name) for name in ("calls", "ticks"))
"""Of a path, behind the zero that ends its ids."""
TOTAL_WORDS: Final = TICKS.end // WORD_BYTES
SLICES: Final = STANDARD_TABLES["slices"].extended(
    Column("xray_function", "u4", "id of the function"),
    Column("xray_ticks", "i8", "length of all its calls, with what they called", "ticks"),
    Column("xray_calls", "i8", "calls that it stands for; 0 where only longer paths were written"),
)


def words_of(data: NDArray[np.uint8]) -> I64:
    """Return the bytes behind a block's header as numbers, int64 of shape (words,)."""
    places = WORD_BYTES * np.arange(data.size // WORD_BYTES)
    return FileNumbers(data).integers(places, WORD_BYTES, big=False)


def whole_paths(words: I64) -> Iterator[tuple[int, int]]:
    """Yield where each path of a block begins, and the zero that ends its ids, if it has figures.

    Words of a path of two functions: 7 3 0, then calls and ticks, two words each: 1 0 900 0.
    """
    start = 0
    for zero in np.flatnonzero(words == 0).tolist():
        next_start = zero + TOTAL_WORDS
        # Zeros before the path are in the figures of the path before it.
        if zero >= start and next_start <= words.size:
            yield start, zero
            start = next_start


class Paths:
    """The paths of a profile, each summed over all blocks of its thread; callers come first.

    A path is a number: its place in the columns.
    """

    def __init__(self) -> None:
        self.threads: dict[int, tuple[int, int]] = {}
        """The number of each thread, and the offset of its first block."""
        self.cut: list[tuple[int, int]] = []
        """Offsets of blocks that end within a path, and the bytes of what is left of it."""
        self.parent = array("q")
        """The path without its innermost function; -1 of a path of one function."""
        self.function = array("I")
        self.thread = array("i")
        self.depth = array("i")
        self.offset = array("q")
        """Of the block that has the path first."""
        self.calls = array("q")
        """At most ``NS_MAX``, as are ticks."""
        self.ticks = array("q")
        self.start = array("q")
        """Ticks of the thread's paths before it."""
        self._numbers = PairMap()

    def __len__(self) -> int:
        return len(self.parent)

    def add(self, data: NDArray[np.uint8], offset: int, tid: int) -> None:
        """Add the paths in the bytes behind a block's header; ``offset`` is the block's."""
        thread, _ = self.threads.setdefault(tid, (len(self.threads), offset))
        words = words_of(data)
        end = 0
        for start, zero in whole_paths(words):
            path = self._path(words[start:zero], thread, offset)
            if path >= 0:
                calls = CALLS.get(data.data, zero * WORD_BYTES)
                ticks = TICKS.get(data.data, zero * WORD_BYTES)
                self.calls[path] = min(self.calls[path] + calls, NS_MAX)
                self.ticks[path] = min(self.ticks[path] + ticks, NS_MAX)
            end = zero + TOTAL_WORDS
        words_left = words.size - end
        if words_left:
            self.cut.append((offset, words_left * WORD_BYTES))

    def _path(self, functions: I64, thread: int, offset: int) -> int:
        """Return the path of functions, innermost first, added with its callers; -1 of none."""
        path = -1
        # No list: a path may have millions of functions.
        for depth, function in enumerate(functions[::-1].copy().data):
            # Outermost functions have no caller, but are other paths in each thread.
            caller = path if depth else -1 - thread
            number = self._numbers.number(caller, function)
            if number == len(self):
                self.parent.append(path)
                self.function.append(function)
                self.thread.append(thread)
                self.depth.append(depth)
                self.offset.append(offset)
                self.calls.append(0)
                self.ticks.append(0)
            path = number
        return path

    def finish(self) -> None:
        """Give paths their places in time; those that were not written take as long as callees.

        No paths are added from here on.
        """
        del self._numbers
        # Callers come before callees. So a walk backwards meets a path when the ticks of all of its
        # callees are summed, and a walk forwards when the start of its caller is known.
        ticks_of_callees = array("q", [0]) * len(self)
        for path in reversed(range(len(self))):
            ticks = max(self.ticks[path], ticks_of_callees[path])
            self.ticks[path] = ticks
            caller = self.parent[path]
            if caller >= 0:
                ticks_of_callees[caller] = min(ticks_of_callees[caller] + ticks, NS_MAX)
        # Outermost paths of a thread lie one behind the other, as callees of the thread do.
        next_starts_of_threads = [0] * len(self.threads)
        next_starts = array("q", [0]) * len(self)
        for path, ticks in enumerate(self.ticks):
            caller = self.parent[path]
            if caller >= 0:
                start = next_starts[caller]
                next_starts[caller] = min(start + ticks, NS_MAX)
            else:
                thread = self.thread[path]
                start = next_starts_of_threads[thread]
                next_starts_of_threads[thread] = min(start + ticks, NS_MAX)
            self.start.append(start)
            next_starts[path] = start

    def column(self, name: str, kind: Any = np.int64) -> Any:
        """Return a column of all paths, of shape (paths,).

        Numbers are limited so that their sum fits.
        """
        largest = NS_MAX // max(1, len(self))
        return np.minimum(np.array(getattr(self, name), np.int64), largest).astype(kind)


class Threads(NamedTuple):
    """The threads of a profile, as columns of shape (threads,)."""

    pids: U64
    tids: U64
    thread_offsets: I64


class ProfilePass(BlockPass):
    """A whole profile, read once, with its paths."""

    def __init__(self, capture: ProfileCapture, *, whole: bool) -> None:
        super().__init__(capture, whole=whole)
        self.paths = Paths()
        for offset, nbytes, tid in capture.blocks:
            data = capture.source.data[offset + HEADER_BYTES : offset + nbytes]
            self.paths.add(data, offset, tid)
            capture.check_budget()
        self.paths.finish()
        tids = np.array(list(self.paths.threads), np.uint64)
        thread_offsets = np.array([offset for _, offset in self.paths.threads.values()], np.int64)
        pids = np.full(tids.size, capture.process, np.uint64)
        self.log = Threads(pids, tids, thread_offsets)
        functions = self.paths.column("function")
        ids, first_paths, row_of_path = np.unique(functions, return_index=True, return_inverse=True)
        calls = np.zeros(ids.size, np.int64)
        np.add.at(calls, row_of_path, self.paths.column("calls"))
        self.functions = ids, calls
        self.function_offsets = self.paths.column("offset")[first_paths]
        if len(self.paths):
            ends = self.paths.column("start") + self.paths.column("ticks")
            self._range = 0, int(to_ns(ends, capture.frequency).max())
        self._rows |= {
            "processes": min(tids.size, 1),
            "threads": tids.size,
            "slices": len(self.paths),
            "xray_functions": ids.size,
        }


class ProfileCapture(DeclaredCapture, of=FORMAT):
    """A profile: a slice for each path of a thread."""

    streamed = frozenset({"xray_blocks"})
    watch = (Header,)
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        name: SCHEMAS[name] for name in ("processes", "threads", "xray_functions")
    } | {"slices": SLICES}
    calls = CallColumns(
        function="xray_function",
        ticks="xray_ticks",
        ended="",
        functions="xray_functions",
        count="xray_calls",
    )
    fits_memory = True  # paths are summed over the whole file

    def __init__(self, source: Source, request: OpenRequest) -> None:
        super().__init__(source, request)
        self.frequency = max(0, int(request.options.get("cycle_frequency") or 0))
        self.blocks: list[tuple[int, int, int]] = []
        """Offset, size and thread id of the sound blocks, of the last pass."""
        self.process = 0
        self._names = FunctionNames(request.options, self.strings)
        self._names.whole_ids = True

    @property
    def ticks_per_second(self) -> int:
        """The frequency that the option gives; 0: lengths are ticks alone."""
        return self.frequency

    def resume(self) -> None:
        """A file that grows is not followed: its paths are sums."""

    def begin(self) -> None:
        """Begin a pass over the file."""
        self.blocks = []

    def seen(self, context: Any, header: Any) -> None:
        """Take the header."""
        del context
        self.process = header.process

    def finish(self, context: Any, table: str, columns: Cells) -> Cells:
        """Note where the blocks of a batch are."""
        del context, table
        offsets = columns["offset"].tolist()
        sizes = columns["xray_bytes"].tolist()
        self.blocks += zip(offsets, sizes, columns["xray_tid"].tolist(), strict=True)
        return columns

    def _run_pass(self, *, whole: bool) -> ProfilePass:
        passed = ProfilePass(self, whole=whole)
        self._names.functions = passed.functions[0]
        return passed

    def _report(self, passed: Any) -> None:
        super()._report(passed)
        for offset, nbytes in passed.paths.cut:
            self.diagnostics.add(CUT_PATH, offset, None, nbytes)
        for rule, value in self._names.findings():
            self.diagnostics.add(rule, value=value)

    def _small(self, name: str, passed: Any) -> Columns:
        if name == "slices":
            return self._slices(passed.paths)
        columns = small_columns(name, passed, self._names)
        if name == "xray_functions":
            columns["offset"] = passed.function_offsets
        return columns

    def _slices(self, paths: Paths) -> Columns:
        count = len(paths)
        start_ticks = paths.column("start")
        length_ticks = paths.column("ticks")
        functions = paths.column("function", np.uint32)
        starts, lengths = to_spans(start_ticks, length_ticks, self.frequency)
        return {
            "offset": paths.column("offset"),
            "ts": starts,
            "ticks": start_ticks.view(np.uint64),
            "dur": lengths,
            "thread": paths.column("thread", np.int32),
            "category": np.full(count, -1, np.int32),
            "name": self._names.of(functions),
            "depth": paths.column("depth", np.int32),
            "parent": paths.column("parent"),
            "kind": np.full(count, CALL, np.uint8),
            "id": np.zeros(count, np.uint64),
            "xray_function": functions,
            "xray_ticks": length_ticks,
            "xray_calls": paths.column("calls"),
        }

    def _facts(self, passed: Any) -> dict[str, Any]:
        return {
            "mode": "profiling",
            "frequency_hz": self.frequency or "not known: ticks are taken for nanoseconds",
            "process": self.process,
            "threads": len(passed.paths.threads),
            "functions": int(passed.functions[0].size),
            "calls": int(passed.functions[1].sum()),
        }
