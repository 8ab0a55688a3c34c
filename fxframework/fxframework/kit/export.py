"""Base class of exporter sessions, and the text of bytes that need not be UTF-8."""

from __future__ import annotations

import abc
from collections import Counter
from collections.abc import Container, Mapping
from typing import Any

import orjson

from fxframework.errors import WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.schema import TABLE_CODES

NOT_UTF8 = "strings that are not UTF-8, in part"
BEFORE_ZERO = "events before time 0, which Perfetto drops"
"""In Chrome JSON, which has them; `perfetto` and `trace` move the beginning of time instead."""
LARGEST_EXACT = 1 << 53
"""The greatest id up to which all are exact where JSON's numbers are doubles."""
LARGE_IDS = "threads with ids above 2^53, which viewers may take for others"


class Export(abc.ABC):
    """A session of an exporter; ``Exporter.open`` names a subclass.

    ``write`` writes to ``_sink`` according to ``_options``, and counts in ``_dropped``, by name,
    what the output cannot represent.
    """

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        self._sink = sink
        self._options = options
        self._dropped: Counter[str] = Counter()
        self._used = False

    @abc.abstractmethod
    def write(self, capture: Capture) -> None:
        """Export a capture. Raises WriteRefusedError for a capture that it cannot export."""

    def close(self) -> Mapping[str, int]:
        """Return the counts of what could not be written, by name."""
        return {what: count for what, count in self._dropped.items() if count > 0}

    def _only_one_capture(self, what: str) -> None:
        """Raise WriteRefusedError with the message ``what`` for a second capture."""
        if self._used:
            raise WriteRefusedError(what, remedy="convert the inputs one by one")
        self._used = True

    def _drop_rows(self, counts: Mapping[str, int], *, but: Container[str]) -> None:
        """Count the rows of all tables ``but`` some as dropped; ``counts`` are rows by table."""
        for name, rows in counts.items():
            if rows and name not in but:
                self._dropped[f"rows of {name}"] += rows

    def _drop_arguments(self, capture: Capture, *tables: str) -> None:
        """Count the arguments of these tables' rows as dropped, and those that belong to no row."""
        if "args" not in capture.schemas:
            return
        for batch in capture.batches("args"):
            owners, loose = batch.array("table"), batch.array("parent") < 0
            for name in tables:
                mine = (owners == TABLE_CODES[name]) & ~loose
                self._dropped[f"arguments of {name}"] += int(mine.sum())
            self._dropped["arguments that belong to no row"] += int(loose.sum())


def empty_refusal(capture: Capture, message: str) -> WriteRefusedError:
    """Return the error for a capture that has nothing of what an exporter writes."""
    return WriteRefusedError(message, path=capture.name, remedy="`fxf info` shows what there is")


def quoted(text: str | None) -> str:
    """Return a text, which may be absent, as a JSON string."""
    return orjson.dumps(text or "").decode()


def decoded(data: bytes, dropped: Counter[str] | None, what: str = NOT_UTF8) -> str:
    """Return the text of some bytes; invalid UTF-8 becomes U+FFFD and is counted in ``dropped``.

    ``what`` is the name under which it is counted.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        if dropped is not None:
            dropped[what] += 1
        return data.decode("utf-8", "replace")
