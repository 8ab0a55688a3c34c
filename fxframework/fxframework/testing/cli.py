"""``run_cli`` runs the command line in this process, for tests."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs
import orjson

if TYPE_CHECKING:
    from fxframework.host import Host

__all__ = ["CliResult", "run_cli"]


@attrs.frozen
class CliResult:
    """The result of a run of ``fxf``."""

    exit_code: int
    """The exit status."""
    stdout: bytes
    """Its standard output."""
    stderr: str
    """Its standard error, as text."""

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.stdout.decode()

    def json(self) -> Any:
        """Parse standard output as one JSON document."""
        return orjson.loads(self.stdout)

    def json_lines(self) -> list[Any]:
        """Parse standard output as JSON lines."""
        return [orjson.loads(line) for line in self.stdout.splitlines()]


def run_cli(
    *arguments: object, stdin: bytes = b"", host: Host | None = None, terminal: bool = False
) -> CliResult:
    """Run ``fxf`` with these arguments, each taken as its ``str()``.

    ``stdin`` is the standard input; ``host`` replaces the installed plugins; with ``terminal``,
    stdout and stderr appear to be terminals.
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
    """Replace the three standard streams."""
    stdout = io.BytesIO()
    stderr = io.BytesIO()
    if terminal:
        stdout = _Terminal()
        stderr = _Terminal()
    streams_before = (sys.stdin, sys.stdout, sys.stderr)
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(stdout, encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(
        stderr, encoding="utf-8", errors="backslashreplace", write_through=True
    )
    wrappers = (sys.stdout, sys.stderr)
    try:
        yield stdout, stderr
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams_before
        for stream in wrappers:
            stream.detach()  # keep `out` and `err` open
