"""Sinks that remember what they were asked for."""

from __future__ import annotations

import io

from fxframework.io.sink import Sink

__all__ = ["WatchedSink"]


class WatchedSink(Sink):
    """Keeps its bytes, and remembers what it was asked for beside taking more."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), name="<memory>", force=True)
        self.asked: list[str] = []

    def commit(self) -> None:
        """Remember that it was asked."""
        self.asked.append("commit()")

    def abort(self) -> None:
        """Remember that it was asked."""
        self.asked.append("abort()")

    def check_left_open(self, who: str) -> None:
        """That it can still be written to."""
        assert not self.asked, f"{who} calls {self.asked[0]} of the sink, which is the caller's"
        assert not self._file.closed, f"{who} closes the file under the sink"
