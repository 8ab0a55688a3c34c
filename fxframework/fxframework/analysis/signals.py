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

BLOCKS = 16
"""Parts of a run whose means are compared if there is one run a side."""
LONGEST = 400
"""Bytes of a message that its template is made of."""
NUMBERS = re.compile(rb"0x[0-9a-fA-F]+|(?<![A-Za-z_])\d+(?:\.\d+)*")
QUOTED = re.compile(rb"\"[^\"\0]*\"")
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
    values = table.array("value")
    ts = table.array("ts")
    codes = np.stack(
        [table.array(name).astype(np.int64) for name in ("category", "name", "series")], axis=1
    )
    finite = np.flatnonzero(np.isfinite(values))
    keys, counter_of_row = np.unique(codes[finite], axis=0, return_inverse=True)
    counter_of_row = counter_of_row.reshape(-1)
    by_counter = np.lexsort((ts[finite], counter_of_row))
    rows = finite[by_counter]
    starts = np.searchsorted(counter_of_row[by_counter], np.arange(len(keys) + 1))
    counters = {}
    for counter, key in enumerate(keys.tolist()):
        rows_of_counter = rows[starts[counter] : starts[counter + 1]]
        names = tuple(map(table.pool.text, key))
        counters[names] = _signal(values[rows_of_counter], ts[rows_of_counter])
    return counters


def _signal(values: NDArray[np.float64], ts: NDArray[np.int64]) -> Signal:
    """Return the signal of a counter, from its values in order of time."""
    duration = int(ts[-1]) - int(ts[0])
    rate = None
    if duration:
        rate = float(values[-1] - values[0]) * NS_PER_SECOND / duration
    blocks = np.array_split(values, min(BLOCKS, values.size))
    return Signal(
        count=values.size,
        level=float(values.mean()),
        rate=rate,
        blocks=np.array([float(block.mean()) for block in blocks]),
    )


def templates_of(capture: Capture) -> Mapping[tuple[str, ...], int]:
    """Return how often messages were logged, by severity and template.

    A template is what messages have in common that differ in numbers or quoted texts only.
    """
    counts: Counter[tuple[int, bytes]] = Counter()
    for batch in capture.batches("logs"):
        column: Any = batch["message"]
        messages = [
            column.bytes_of(row)[:LONGEST].replace(SEPARATOR, b" ") for row in range(len(batch))
        ]
        # All messages of a batch at once: no pattern matches the separator.
        without_quoted = QUOTED.sub(b'"#"', SEPARATOR.join(messages))
        templates = NUMBERS.sub(b"#", without_quoted).split(SEPARATOR)
        severities = batch.array("severity_name").tolist()
        counts.update(zip(severities, templates, strict=True))
    templates_by_text: dict[tuple[str, ...], int] = {}
    for (severity, template), count in counts.items():
        key = (capture.strings.text(severity), template.decode("utf-8", "replace"))
        templates_by_text[key] = count
    return templates_by_text


def instants_of(capture: Capture) -> Mapping[tuple[str, ...], int]:
    """Return how often instants occurred, by category and name."""
    counts: Counter[tuple[int, int]] = Counter()
    for batch in capture.batches("instants"):
        keys = np.stack([batch.array(name).astype(np.int64) for name in ("category", "name")])
        distinct, occurrences = np.unique(keys, axis=1, return_counts=True)
        for category, name, count in zip(*distinct.tolist(), occurrences.tolist(), strict=True):
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
