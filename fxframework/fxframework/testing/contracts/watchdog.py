"""The watchdog: a process that notices an input on which a reader hangs, and keeps it.

A loop in compiled code takes no signals, so nothing in the process itself can end it, or say what
it was given. The watchdog gets each input before it is read. Of one that takes too much CPU time it
writes a file, says so, and ends the process.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import struct
import subprocess
import sys
from pathlib import Path

__all__ = ["Watchdog", "watchdog"]

HEAD = struct.Struct("<dII")
"""Of a message: the CPU seconds that an input may take, and the bytes of its name and of itself.
Without an input, all are 0."""

WATCHING = f"""
import os, select, signal, struct, sys, tempfile
pid = int(sys.argv[1])
head = struct.Struct({HEAD.format!r})
tick = os.sysconf("SC_CLK_TCK")

def cpu():
    with open(f"/proc/{{pid}}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / tick

def read(nbytes):
    parts = []
    while nbytes:  # not through a buffer, of whose contents select knows nothing
        parts.append(os.read(0, nbytes))
        nbytes -= len(parts[-1])
        if not parts[-1]:
            sys.exit()
    return b"".join(parts)

seconds, what, data, begin = 0, b"", b"", 0
while True:
    ready, _, _ = select.select([0], [], [], 1 if seconds else None)
    if ready:
        seconds, name_bytes, nbytes = head.unpack(read(head.size))
        what, data, begin = read(name_bytes), read(nbytes), cpu()
    elif cpu() - begin > seconds:
        with tempfile.NamedTemporaryFile(prefix="hanging-input-", delete=False) as file:
            file.write(data)
        shown = data[:64].hex(" ") + (" ..." if len(data) > 64 else "")
        print(
            f"\\n{{what.decode()}} hangs: {{seconds:g}} s of CPU time for an input of "
            f"{{len(data):,}} bytes, which is kept in {{file.name}}\\n  {{shown}}",
            file=sys.stderr, flush=True,
        )
        os.kill(pid, signal.SIGKILL)
        sys.exit()
"""


class Watchdog:
    """The connection to the process that watches this one."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._process = subprocess.Popen(  # noqa: S603 (this interpreter, with the code above)
            [sys.executable, "-I", "-u", "-c", WATCHING, str(self.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        atexit.register(self.close)

    def _send(self, seconds: float, what: bytes, data: bytes) -> None:
        # A forked process has no watchdog of its own.
        if self._process.stdin is not None and os.getpid() == self.pid:
            with contextlib.suppress(OSError):
                self._process.stdin.write(HEAD.pack(seconds, len(what), len(data)) + what + data)
                self._process.stdin.flush()

    def begin(self, what: str, data: bytes, seconds: float) -> None:
        """Watch until the next call: an input may take so many seconds of CPU time."""
        self._send(seconds, what.encode(), data)

    def end(self) -> None:
        """Watch no more."""
        self._send(0.0, b"", b"")

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None and os.getpid() == self.pid:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._process.wait()


_started: list[Watchdog] = []


def watchdog() -> Watchdog | None:
    """Return the watchdog of this process, which is started once; None where there is no /proc."""
    if not Path("/proc/self/stat").exists():
        return None
    if not _started or _started[0].pid != os.getpid():
        _started[:] = [Watchdog()]
    return _started[0]
