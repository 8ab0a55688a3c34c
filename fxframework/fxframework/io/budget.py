"""Budget: bounds on the time, memory and output of an operation, checked while it runs."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING
from weakref import ref

from fxframework.errors import FxError, LimitError
from fxframework.io.limits import Limits

if TYPE_CHECKING:
    from fxframework.io.mapping import Mapping

__all__ = ["MEMORY_FACTOR", "Budget", "memory_in_use"]

OUTPUT_FACTOR = 256
"""Bytes of output allowed per byte of input, if ``max_output`` is not given."""
OUTPUT_FLOOR = 256 << 20
"""Bytes of output allowed for any input."""
MEMORY_FACTOR = 16
"""Bytes of memory allowed per byte of input, on the command line."""
MEMORY_FLOOR = 2 << 30
"""Bytes of memory allowed for any input, on the command line."""
WORKING = 64 << 20
"""Bytes that the program needs for any input: modules and buffers of fixed size."""
INTERVAL = 0.02
"""Seconds between two measurements of memory."""
STATUS = "/proc/self/statm"
"""Sizes of this process in pages: all, resident, shared, and others."""


class Budget:
    """The limits of an operation, and what it has used since this object was made.

    ``check()`` is called between batches, records and writes.
    """

    def __init__(self, limits: Limits, *, size: int = 0) -> None:
        self.limits = limits
        self.size = size
        """Bytes of input; the default of ``max_output`` is proportional to it."""
        self.memory_factor = 0
        """Bytes of memory allowed per byte of input if ``max_memory`` is not given; 0: no limit."""
        self.inputs: list[ref[Mapping]] = []
        """The mapped files that the operation reads; ``fault`` looks whether they are whole."""
        self._fault: FxError | None = None
        self.started = time.monotonic()
        self._memory_before = memory_in_use()
        self._next_measurement = 0.0

    @classmethod
    def joint(cls, budgets: Iterable[Budget]) -> Budget:
        """Return the budget for several inputs: the limits of the first, the total of the sizes."""
        distinct_budgets = list(dict.fromkeys(budgets))
        if len(distinct_budgets) == 1:
            return distinct_budgets[0]
        joint_budget = cls(
            distinct_budgets[0].limits, size=sum(budget.size for budget in distinct_budgets)
        )
        for budget in distinct_budgets:
            joint_budget.inputs += budget.inputs
        return joint_budget

    @property
    def memory(self) -> int:
        """Bytes by which the process may grow, beyond ``WORKING``; 0: no limit."""
        if self.limits.max_memory or not self.memory_factor:
            return self.limits.max_memory
        return self.memory_factor * self.size + MEMORY_FLOOR

    @property
    def elapsed(self) -> float:
        """Seconds since this object was made."""
        return time.monotonic() - self.started

    @property
    def grown(self) -> int:
        """Bytes by which the memory of the process has grown since this object was made."""
        return memory_in_use() - self._memory_before

    @property
    def most_output(self) -> int:
        """Bytes of output that may be written; 0: no limit."""
        max_output = self.limits.max_output
        if max_output is None:
            return OUTPUT_FACTOR * self.size + OUTPUT_FLOOR
        return max_output

    def check(self, *, path: str | None = None) -> None:
        """Raise LimitError if the operation has exceeded its time or memory.

        Raises UnreadableError if one of its input files was shortened.
        """
        error = self.exceeded(path=path)
        if error is not None:
            raise error

    def check_inputs(self) -> None:
        """Raise UnreadableError if an input file was shortened while it was read."""
        fault = self.fault()
        if fault is not None:
            raise fault

    def fault(self) -> FxError | None:
        """Return the error for an input file that was shortened; None if there is none."""
        # Remembered, because the mapping of a closed input cannot be asked again.
        if self._fault is None:
            # A copy, because another thread may open an input meanwhile.
            for reference in tuple(self.inputs):
                mapping = reference()
                self._fault = None if mapping is None else mapping.fault()
                if self._fault is not None:
                    break
        return self._fault

    def exceeded(self, *, path: str | None = None) -> FxError | None:
        """Return the error that ``check`` would raise; None if there is none."""
        fault = self.fault()
        if fault is not None:
            return fault
        max_time = self.limits.max_time
        max_growth = self.memory
        if not max_time and not max_growth:
            return None
        now = time.monotonic()
        if max_time and now - self.started > max_time:
            return LimitError(
                f"the work took longer than max_time={max_time:g} seconds",
                path=path,
                remedy="raise it with --max-time SECONDS (max_time= in Python); 0 means no limit",
            )
        if max_growth and now >= self._next_measurement:
            self._next_measurement = now + INTERVAL
            bound = max_growth + WORKING
            # Free blocks of the arena are returned only before an error: they are soon used again.
            if self.grown > bound and self._still_grown() > bound:
                return LimitError(
                    f"the work needs more than {_amount(max_growth)} of memory (max_memory)",
                    path=path,
                    remedy="raise it with --max-memory BYTES (max_memory= in Python; 0 means no "
                    "limit), or choose a part with --since and --until",
                )
        return None

    def _still_grown(self) -> int:
        """Release free blocks of the arena and return the remaining growth in bytes."""
        from fxframework.io import arena

        arena.release()
        return self.grown

    def check_output(self, written: int, *, path: str | None = None, what: str = "output") -> None:
        """Raise LimitError if the output is too long, or for the reasons of ``check``."""
        most_bytes = self.most_output
        if most_bytes and written > most_bytes:
            reason = ""
            if self.limits.max_output is None:
                reason = f", for an input of {_amount(self.size)}"
            raise LimitError(
                f"the {what} is longer than {_amount(most_bytes)} (max_output{reason}); the rest "
                "is left out",
                path=path,
                remedy="raise it with --max-output BYTES (max_output= in Python; 0 means no "
                "limit), choose a part, or a form that keeps each string once: parquet, perfetto",
            )
        self.check(path=path)


def memory_in_use() -> int:
    """Return the private memory of the process in bytes; 0 if the system does not report it.

    Pages of mapped files are not counted, because the system can drop them.
    """
    try:
        status_file = os.open(STATUS, os.O_RDONLY)
    except OSError:
        return _peak()
    try:
        fields = os.read(status_file, 128).split()
    finally:
        os.close(status_file)
    resident_pages = int(fields[1])
    shared_pages = int(fields[2])
    return (resident_pages - shared_pages) * _PAGE


def _peak() -> int:
    """Return the peak memory of the process, for systems without /proc."""
    with contextlib.suppress(ImportError):
        import resource

        peak_size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # macOS gives bytes, others give KiB.
        return peak_size if sys.platform == "darwin" else peak_size * 1024
    return 0


_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def _amount(nbytes: int) -> str:
    """Format bytes for a message: exact below a million, else in MB."""
    return f"{nbytes:,} bytes" if nbytes < 10**6 else f"{nbytes / 10**6:,.0f} MB"
