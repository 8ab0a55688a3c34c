"""A sink that records calls of commit and abort."""

from __future__ import annotations

import io

from fxframework.io.sink import Sink

__all__ = ["WatchedSink"]


class WatchedSink(Sink):
    """A memory sink that records calls of ``commit()`` and ``abort()``."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), name="<memory>", force=True)
        self.calls: list[str] = []

    def commit(self) -> None:
        """Record the call."""
        self.calls.append("commit()")

    def abort(self) -> None:
        """Record the call."""
        self.calls.append("abort()")

    def check_left_open(self, who: str) -> None:
        """Check that it was neither committed, aborted nor closed."""
        assert not self.calls, f"{who} calls {self.calls[0]} of the sink, which is the caller's"
        assert not self._file.closed, f"{who} closes the file under the sink"
