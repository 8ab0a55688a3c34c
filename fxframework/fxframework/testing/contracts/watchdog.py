"""The watchdog: a process that notices an input on which a reader hangs, and keeps it.

A loop in compiled code takes no signals, so nothing in the process itself can end it, or say what
it was given. Each input is put into a file that the watchdog looks into twice a second. Of one that
takes too much CPU time it keeps the bytes, says so, and ends the process.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["Watchdog", "watchdog"]

HEAD = struct.Struct("<QdII")
"""In front of an input: its number, the CPU seconds that it may take, and the bytes of its name and
of itself. Without an input, all but the number are 0."""

WATCHING = f"""
import os, select, signal, struct, sys, tempfile
pid, shared = int(sys.argv[1]), int(sys.argv[2])
head = struct.Struct({HEAD.format!r})
tick = os.sysconf("SC_CLK_TCK")

def cpu():
    with open(f"/proc/{{pid}}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / tick

watched, begin = -1, 0
while not select.select([0], [], [], 0.5)[0]:  # until the other process closes it, or ends
    now = cpu()
    number, seconds, name_bytes, nbytes = head.unpack(os.pread(shared, head.size, 0))
    if number != watched:
        watched, begin = number, now
    elif seconds and now - begin > seconds:
        what = os.pread(shared, name_bytes, head.size).decode()
        data = os.pread(shared, nbytes, head.size + name_bytes)
        with tempfile.NamedTemporaryFile(prefix="hanging-input-", delete=False) as file:
            file.write(data)
        shown = data[:64].hex(" ") + (" ..." if len(data) > 64 else "")
        print(
            f"\\n{{what}} hangs: {{seconds:g}} s of CPU time for an input of "
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
        self._number = 0
        # A file, into which an input is written without waking the other process.
        self._shared = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close())
        self.end()
        self._process = subprocess.Popen(  # noqa: S603 (this interpreter, with the code above)
            [sys.executable, "-I", "-c", WATCHING, str(self.pid), str(self._shared.fileno())],
            pass_fds=[self._shared.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        atexit.register(self.close)

    def _write(self, seconds: float, what: bytes, data: bytes) -> None:
        # A forked process has no watchdog of its own.
        if os.getpid() == self.pid:
            self._number += 1
            head = HEAD.pack(self._number, seconds, len(what), len(data))
            with contextlib.suppress(OSError, ValueError):
                os.pwrite(self._shared.fileno(), head + what + data, 0)

    def begin(self, what: str, data: bytes, seconds: float) -> None:
        """Watch until the next call: an input may take so many seconds of CPU time."""
        self._write(seconds, what.encode(), data)

    def end(self) -> None:
        """Watch no more."""
        self._write(0.0, b"", b"")

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None and os.getpid() == self.pid:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._process.wait()
            self._shared.close()


_started: list[Watchdog] = []


def watchdog() -> Watchdog | None:
    """Return the watchdog of this process, which is started once; None where there is no /proc."""
    if not Path("/proc/self/stat").exists():
        return None
    if not _started or _started[0].pid != os.getpid():
        _started[:] = [Watchdog()]
    return _started[0]
