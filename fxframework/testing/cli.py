"""``run_cli``: the command line within this process, for tests."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from fxframework.host import Host

__all__ = ["CliResult", "run_cli"]


@attrs.frozen
class CliResult:
    """What a run of ``fxf`` came to."""

    exit_code: int
    """The exit status."""
    stdout: bytes
    """What it printed."""
    stderr: str
    """Its messages."""

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.stdout.decode()

    def json(self) -> Any:
        """Standard output as one JSON document."""
        import orjson

        return orjson.loads(self.stdout)

    def json_lines(self) -> list[Any]:
        """Standard output as JSON lines."""
        import orjson

        return [orjson.loads(line) for line in self.stdout.splitlines()]


def run_cli(
    *arguments: object, stdin: bytes = b"", host: Host | None = None, terminal: bool = False
) -> CliResult:
    """Run ``fxf`` with these arguments, each taken as its ``str()``.

    ``stdin`` is what ``-`` reads; ``host`` replaces the installed plugins; with ``terminal``
    the run believes that a person is looking at stdout and stderr.
    """
    from fxframework.cli import main

    with _streams(stdin, terminal=terminal) as (out, err):
        status = main([str(argument) for argument in arguments], host=host)
        sys.stdout.flush()
        sys.stderr.flush()
        return CliResult(int(status), out.getvalue(), err.getvalue().decode("utf-8", "replace"))


class _Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


@contextlib.contextmanager
def _streams(stdin: bytes, *, terminal: bool) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Stand-ins for the three standard streams."""
    out, err = (_Terminal(), _Terminal()) if terminal else (io.BytesIO(), io.BytesIO())
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(
        err, encoding="utf-8", errors="backslashreplace", write_through=True
    )
    streams = sys.stdout, sys.stderr
    try:
        yield out, err
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        for stream in streams:
            stream.detach()  # what is in `out` and `err` outlives the wrappers
