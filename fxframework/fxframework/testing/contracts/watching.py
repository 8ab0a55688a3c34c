"""Watching: records what code opens, prints and does to the sink that it is given."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

from fxframework.io.sink import Sink

_EVENTS = {
    "uses the network": ("socket.connect", "socket.bind", "socket.getaddrinfo", "urllib.Request"),
    "starts a process": ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork"),
    "lists or changes folders": ("os.listdir", "os.scandir", "os.mkdir", "os.remove", "os.rename",
                                 "os.rmdir"),
}  # fmt: skip
"""Audit events, by what code does that raises them."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CODE = (".py", ".pyc", ".pyi", ".so", ".pyd", ".pth")
"""Suffixes of files that imports open."""


_LISTENERS: list[list[str]] = []
"""Lists that receive the events of this process."""


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    """Tell the listeners of an event; the audit hook of this process."""
    if not _LISTENERS:
        return
    note = _described(event, arguments)
    if note:
        for listener in _LISTENERS:
            listener.append(note)


@functools.cache
def _install() -> None:
    """Install the hook, once; audit hooks cannot be removed."""
    sys.addaudithook(_note)


def _described(event: str, arguments: tuple[Any, ...]) -> str:
    """Describe an event; return the empty string for irrelevant events."""
    if event != "open":
        for activity, events in _EVENTS.items():
            if event in events:
                return f"{activity} ({event} {arguments[:1]})"
        return ""
    path, mode, flags = (*arguments, None, None, None)[:3]
    name = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else str(path)
    if (flags or 0) & _WRITES or set(mode or "") & set("wax+"):
        return f"writes the file {name!r}"
    # An open file has a number for a path; imports open files of code.
    if isinstance(path, int) or name.endswith(_CODE):
        return ""
    return f"opens the file {name!r}"


@contextlib.contextmanager
def watched(*, streams: bool = False) -> Iterator[list[str]]:
    """Yield a list that receives events in order, as texts that begin with a verb.

    With ``streams``, also capture prints to standard output and standard error.
    """
    _install()
    events: list[str] = []
    stdout = io.StringIO()
    stderr = io.StringIO()
    with contextlib.ExitStack() as stack:
        if streams:
            stack.enter_context(contextlib.redirect_stdout(stdout))
            stack.enter_context(contextlib.redirect_stderr(stderr))
        _LISTENERS.append(events)
        try:
            yield events
        finally:
            # Compare by identity: two lists may be equal.
            _LISTENERS[:] = [listener for listener in _LISTENERS if listener is not events]
            for stream, stream_name in ((stdout, "standard output"), (stderr, "standard error")):
                if stream.getvalue():
                    text = stream.getvalue().splitlines()[0]
                    events.append(f"prints {text!r} to {stream_name}")


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
