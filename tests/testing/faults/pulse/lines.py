"""Lines: one per event."""

from collections.abc import Mapping
from typing import Any

from fxframework.errors import WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture

WRITTEN = {"row", "offset", "ts", "name", "dur"}
TABLES = ("slices", "instants")


class LinesExport:
    """Writes the time, the length and the name of slices and instants."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        self._sink = sink
        self._head = options["head"]
        self._rows = 0
        self._dropped: dict[str, int] = {}

    def write(self, capture: Capture) -> None:
        """Write one capture; a further one follows behind it."""
        for name in TABLES:
            if name not in capture.schemas:
                continue
            for batch in capture.batches(name):
                self._write(batch)
        for name in capture.schemas:
            rows = len(capture.table(name))
            if name not in TABLES and rows:
                self._drop(name, rows)
        if not self._rows:
            raise WriteRefusedError("there are no events", path=capture.name)

    def _write(self, batch: Any) -> None:
        ts = batch.array("ts").tolist()
        dur = batch.array("dur").tolist() if "dur" in batch else [0] * len(ts)
        codes = batch.array("name").tolist()
        if self._head and codes:
            self._sink.write(b"time length name\n")
            self._head = False
        for time, length, code in zip(ts, dur, codes, strict=True):
            name = batch.pool.bytes_of(code) if code >= 0 else b""
            self._sink.write(b"%d %d %s\n" % (time, length, name.replace(b"\n", b"\\n")))
        self._rows += len(batch)
        for column in set(batch.columns) - WRITTEN:
            self._drop(column, len(batch))

    def _drop(self, what: str, count: int) -> None:
        if count:
            self._dropped[what] = self._dropped.get(what, 0) + count

    def close(self) -> Mapping[str, int]:
        """What was left out."""
        return dict(sorted(self._dropped.items()))
