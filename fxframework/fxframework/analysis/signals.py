"""Signals: what a comparison needs of counters, logs and properties."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.model.capture import Capture
from fxframework.model.clock import NS_PER_SECOND

__all__ = ["Signal", "counters_of", "entries_of", "instants_of", "templates_of"]

BLOCKS = 16
"""Parts of a run whose means are compared if there is one run a side."""
LONGEST = 400
"""Bytes of a message that its template is made of."""
_NUMBERS = re.compile(rb"0x[0-9a-fA-F]+|(?<![A-Za-z_])\d+(?:\.\d+)*")
_QUOTED = re.compile(rb"\"[^\"\0]*\"")
SEPARATOR = b"\0"


@attrs.frozen(eq=False)
class Signal:
    """The values of one counter in one run."""

    count: int
    level: float
    """Mean of the values."""
    rate: float | None
    """Change per second, from the first value to the last; None if no time passed."""
    blocks: NDArray[np.float64]
    """Means of at most BLOCKS parts of the run, each of as many values."""


def counters_of(capture: Capture) -> Mapping[tuple[str, ...], Signal]:
    """Return the counters of a capture, by category, name and series. NaN is left out."""
    table = capture.table("counters")
    values, ts = table.array("value"), table.array("ts")
    codes = np.stack(
        [table.array(name).astype(np.int64) for name in ("category", "name", "series")], axis=1
    )
    sound = np.flatnonzero(np.isfinite(values))
    distinct, which = np.unique(codes[sound], axis=0, return_inverse=True)
    order = np.lexsort((ts[sound], which.reshape(-1)))
    rows, which = sound[order], which.reshape(-1)[order]
    starts = np.searchsorted(which, np.arange(len(distinct) + 1))
    pool = table.pool
    found = {}
    for at, key in enumerate(distinct.tolist()):
        mine = rows[starts[at] : starts[at + 1]]
        level, times = values[mine], ts[mine]
        passed = int(times[-1]) - int(times[0])
        rate = float(level[-1] - level[0]) * NS_PER_SECOND / passed if passed else None
        blocks = [float(part.mean()) for part in np.array_split(level, min(BLOCKS, level.size))]
        found[tuple(map(pool.text, key))] = Signal(
            mine.size, float(level.mean()), rate, np.array(blocks)
        )
    return found


def _reduced(data: bytes) -> bytes:
    """Return what messages have in common that differ in numbers or quoted texts only."""
    return _NUMBERS.sub(b"#", _QUOTED.sub(b'"#"', data))


def templates_of(capture: Capture) -> Mapping[tuple[str, ...], int]:
    """Return how often messages were logged, by severity and template."""
    counts: Counter[tuple[int, bytes]] = Counter()
    for batch in capture.batches("logs"):
        column: Any = batch["message"]
        texts: Any = [
            column.bytes_of(row)[:LONGEST].replace(SEPARATOR, b" ") for row in range(len(batch))
        ]
        reduced = _reduced(SEPARATOR.join(texts)).split(SEPARATOR)
        counts.update(zip(batch.array("severity_name").tolist(), reduced, strict=True))
    return {
        (capture.strings.text(code), text.decode("utf-8", "replace")): count
        for (code, text), count in counts.items()
    }


def instants_of(capture: Capture) -> Mapping[tuple[str, ...], int]:
    """Return how often instants occurred, by category and name."""
    counts: Counter[tuple[int, int]] = Counter()
    for batch in capture.batches("instants"):
        keys = np.stack([batch.array(name).astype(np.int64) for name in ("category", "name")])
        distinct, times = np.unique(keys, axis=1, return_counts=True)
        for category, name, count in zip(*distinct.tolist(), times.tolist(), strict=True):
            counts[category, name] += count
    return {tuple(map(capture.strings.text, key)): count for key, count in counts.items()}


def entries_of(capture: Capture) -> Mapping[str, Any] | None:
    """Return the values of a state by path; None if the capture is a sequence of records.

    Of several entries with one path, the last one counts.
    """
    entries = capture.entries()
    if entries is None:
        return None
    return {entry.path: entry.value for entry in entries if entry.value is not None}
