"""Splitting: one capture as several outputs, each of which can be opened by itself."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.conversion import ConversionReport, plan
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.host import Host
from fxframework.io.folder import names_folder
from fxframework.io.sink import Sink
from fxframework.kernels.arrays import I64
from fxframework.kit.steps import nanoseconds
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.selection import Selection
from fxframework.targets import Target, find_target, matching_suffix

MOST_PARTS = 400
"""All parts get their names at once, so each is an open file until the last one is written."""
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[kKMGT]?i?B)")
_UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}  # fmt: skip


@attrs.frozen(kw_only=True)
class Split:
    """How a capture is split: one of these is not 0."""

    nbytes: int = 0
    """The most bytes of a part, before it is compressed."""
    length_ns: int = 0
    """The length of a part."""
    count: int = 0
    """The number of parts, which have about as many bytes each."""

    @classmethod
    def parse(cls, how: str | int) -> Self:
        """Parse a size (``100MB``, ``64KiB``), a length (``10s``), or a number of parts (``8``).

        Raises UsageError for anything else, and for 0.
        """
        text = str(how).strip()
        size = _SIZE.fullmatch(text)
        parsed = cls()
        with contextlib.suppress(ValueError):
            if size is not None and size["unit"] in _UNITS:
                parsed = cls(nbytes=int(Fraction(size["number"]) * _UNITS[size["unit"]]))
            elif text.isdecimal():
                parsed = cls(count=int(text))
            else:
                parsed = cls(length_ns=max(nanoseconds(text), 0))
        if parsed == cls():
            raise UsageError(
                f"a capture cannot be split into parts of {how!r}",
                remedy="give a size (100MB, 64KiB), a length (10s, 5ms), or a number of parts (8)",
            )
        return parsed


def split(
    host: Host,
    capture: Capture,
    out: str | os.PathLike[str],
    how: Split,
    *,
    to: str | None = None,
    part: Selection | None = None,
    options: Mapping[str, Any] | None = None,
    strict: bool = False,
    open_sink: Callable[[str], Sink],
) -> list[ConversionReport]:
    """Write a capture as several outputs, whose names are that of ``out`` with a number.

    Parts follow one another in time, and each begins where something does; what reaches beyond a
    part is treated as in a range of time. All outputs get their names at the end, or none does.
    ``part`` is what is split, by default everything; other arguments are those of ``plan``.

    Raises UsageError for a capture without times, and where there would be more than ``MOST_PARTS``
    parts; WriteRefusedError if a part of that size cannot hold what begins at one time; and the
    errors of ``plan``.
    """
    target = find_target(host, [capture], os.fspath(out), to)
    stem, suffix = _stem_and_suffix(os.fspath(out), target)
    moments = _Moments(capture, part or Selection())
    written_parts: list[tuple[Sink, ConversionReport]] = []
    with contextlib.ExitStack() as stack:

        def write(start: int, stop: int) -> int:
            """Write what begins at these moments as the next part; return its size."""
            number = len(written_parts) + 1
            if number > MOST_PARTS:
                raise _too_many(f"more than {MOST_PARTS}", capture)
            selection = moments.selection(start, stop)
            conversion = plan(
                host, [capture], out, to=to, parts=[selection], options=options, strict=strict
            )
            sink = stack.enter_context(open_sink(f"{stem}-{number:03}{suffix}"))
            written_parts.append((sink, conversion.run(sink)))
            return sink.written

        def withdraw() -> None:
            """Discard the last part."""
            sink, _ = written_parts.pop()
            sink.abort()

        if how.nbytes:
            _write_sized(moments, how.nbytes, write, withdraw)
        else:
            starts = moments.starts(how)
            for start, stop in itertools.pairwise([*starts, len(moments)]):
                write(start, stop)
    # A compressing sink knows its size only after it is closed.
    return [attrs.evolve(report, nbytes=sink.written) for sink, report in written_parts]


def _stem_and_suffix(out: str, target: Target) -> tuple[str, str]:
    """Return the name of the output in two pieces, between which the number of a part goes."""
    if out == "-" or names_folder(out):
        raise UsageError("parts are files of their own", remedy="name a file, such as part.fxt")
    # Behind the suffix of the target there may be that of a packed file.
    suffix = matching_suffix(out, target) or os.path.splitext(out)[1]  # noqa: PTH122 (no path)
    stem_length = out.lower().rindex(suffix.lower())
    return out[:stem_length], out[stem_length:]


def _too_many(count: str, capture: Capture) -> UsageError:
    return UsageError(
        f"that makes {count} parts, and {MOST_PARTS} is the most",
        path=capture.name,
        remedy="split it into larger parts, or choose a part first, with --since and --until",
    )


class _Moments(Sequence[int]):
    """The times at which something begins in a part of a capture, ascending, without equal ones."""

    def __init__(self, capture: Capture, selection: Selection) -> None:
        self._capture = capture
        self._selection = selection
        part = capture.select(selection)
        columns: list[tuple[I64, I64]] = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        for name, schema in part.schemas.items():
            if {"ts", "offset"} <= {column.name for column in schema.all_columns}:
                columns.extend(
                    # Copies, so that other columns of the batch are freed.
                    (np.array(batch.array("ts")), np.array(batch.array("offset")))
                    for batch in part.batches(name)
                )
        times, offsets = map(np.concatenate, zip(*columns, strict=True))
        if not times.size:
            raise UsageError(
                "nothing in it has a time to split it by",
                path=capture.name,
                remedy="convert all of it, without --split",
            )
        if selection.start_ns is not None:
            # A slice that reaches into the range belongs to its first part.
            times = np.maximum(times, max(selection.start_ns, NS_MIN))
        # A record takes the bytes up to the next one, and those of all rows but its last one none.
        order = np.argsort(offsets, kind="stable")
        sizes = np.diff(offsets[order], append=capture.source.size)
        self.times, moment_of_row = np.unique(times[order], return_inverse=True)
        sizes_of_moments = np.bincount(moment_of_row.reshape(-1), weights=np.maximum(sizes, 0))
        self.ends: NDArray[np.float64] = np.cumsum(sizes_of_moments)
        """The bytes of all records up to and with each moment, shape (moments,)."""

    def __len__(self) -> int:
        return int(self.times.size)

    def __getitem__(self, index: Any) -> Any:
        return self.times[index].tolist()

    def selection(self, start: int, stop: int) -> Selection:
        """Return the part from the moment at index ``start`` up to that at ``stop``."""
        part = self._selection
        if start > 0:
            part = attrs.evolve(part, start_ns=self[start])
        if stop < len(self):
            part = attrs.evolve(part, stop_ns=self[stop])
        return part

    def starts(self, how: Split) -> list[int]:
        """Return the indices at which parts of a length, or so many of them, begin."""
        return self._by_length(how.length_ns) if how.length_ns else self._by_count(how.count)

    def _by_length(self, length_ns: int) -> list[int]:
        """Return the index of the first moment of each stretch of that length that has one."""
        # The differences of times may need 64 bits, without a sign.
        ns_from_start = (self.times - self.times[0]).view(np.uint64)
        stretch_numbers = ns_from_start // np.uint64(min(length_ns, NS_MAX))
        _, starts = np.unique(stretch_numbers, return_index=True)
        if starts.size > MOST_PARTS:
            raise _too_many(f"{starts.size:,}", self._capture)
        return [int(start) for start in starts]

    def _by_count(self, count: int) -> list[int]:
        """Return the indices at which so many parts begin, of about the same number of bytes."""
        if count > min(len(self), MOST_PARTS):
            if count > MOST_PARTS:
                raise _too_many(f"{count:,}", self._capture)
            raise UsageError(
                f"things begin at {len(self)} different times, which are too few for {count} parts",
                path=self._capture.name,
                remedy=f"split it into at most {len(self)} parts",
            )
        bytes_before = self.ends[-1] * np.arange(count) / count
        starts = np.searchsorted(self.ends, bytes_before, "right")
        # Each part has at least one moment, and leaves one for each of those after it.
        numbers = np.arange(count)
        starts = np.maximum.accumulate(starts - numbers) + numbers
        return [int(start) for start in np.minimum(starts, len(self) - count + numbers)]


def _write_sized(
    moments: _Moments,
    nbytes: int,
    write: Callable[[int, int], int],
    withdraw: Callable[[], None],
) -> None:
    """Write parts of at most so many bytes.

    A part also holds what it needs of earlier records, so its size is only known when it is
    written. The bytes of its own records are guessed, and the guess is lowered until it fits.
    """
    start = 0
    own_bytes = float(nbytes)
    while start < len(moments):
        before = moments.ends[start - 1] if start else 0.0
        stop = int(np.searchsorted(moments.ends, before + own_bytes, "right"))
        stop = max(stop, start + 1)
        size = write(start, stop)
        if size <= nbytes:
            start = stop
            continue
        withdraw()
        if stop == start + 1:
            raise WriteRefusedError(
                f"what begins at {moments[start]} ns takes {size:,} bytes with what it needs, "
                f"which is more than a part of {nbytes:,} bytes",
                remedy="split it into larger parts, or leave out more, such as with --thread",
            )
        written_bytes = float(moments.ends[stop - 1] - before)
        own_bytes = written_bytes * min(nbytes / size, 0.95)
