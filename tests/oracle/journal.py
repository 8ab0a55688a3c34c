"""systemd as an oracle: its importer takes what `journald` writes, its reader gives it back."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

IMPORTERS = (
    "/lib/systemd/systemd-journal-remote",
    "/usr/lib/systemd/systemd-journal-remote",
)

LEAST = 252
"""The oldest systemd that these tests were tried with: that of Debian 12."""
Entry = list[tuple[str, bytes]]
"""Fields in order, with their names."""


def why_not() -> str | None:
    """The reason why the oracle cannot run here; None where it can."""
    if importer() is None:
        return "the journal oracle needs systemd-journal-remote (Debian's package of that name)"
    if shutil.which("journalctl") is None:
        return "the journal oracle needs journalctl"
    said = _run("journalctl", "--version").decode("utf-8", "replace")
    found = re.match(r"systemd (\d+)", said)
    version = int(found[1]) if found else 0
    if version < LEAST:
        return f"the journal oracle needs systemd {LEAST} or newer, and this is systemd {version}"
    return None


def importer() -> str | None:
    """Where the importer is."""
    return next((path for path in IMPORTERS if Path(path).exists()), None)


def through_the_journal(data: bytes, folder: Path) -> list[Entry]:
    """What the journal has after it imported a file of the export format."""
    tool = importer()
    assert tool is not None
    folder.mkdir()
    source, journal = folder / "logs.export", folder / "logs.journal"
    source.write_bytes(data)
    _run(tool, "-o", str(journal), str(source))
    return entries(_run("journalctl", "--directory", str(folder), "--all", "--output", "export"))


def _run(*command: str) -> bytes:
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    return done.stdout


def entries(data: bytes) -> list[Entry]:
    """The entries of a file of the export format, by the description of the format alone."""
    found: list[Entry] = []
    entry: Entry = []
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        line = data[at:end]
        at = end + 1
        if not line:
            if entry:
                found.append(entry)
            entry = []
            continue
        name, equals, value = line.partition(b"=")
        if not equals:
            length = int.from_bytes(data[at : at + 8], "little")
            value = data[at + 8 : at + 8 + length]
            at += 8 + length + 1
            assert data[at - 1 : at] == b"\n"
        entry.append((name.decode("ascii"), value))
    assert not entry, "the last entry has no end"
    return found
