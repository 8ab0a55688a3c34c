"""``fxf watch``: shows how a state changes while another program writes it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fxframework.cli import complete
from fxframework.cli.diff import change_line, entry_line
from fxframework.cli.options import Number
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session, worst
from fxframework.cli.text import optional_fields
from fxframework.errors import ExitCode, FxError, UsageError
from fxframework.kit.shown import amount, printable

if TYPE_CHECKING:
    from fxframework.model.capture import Capture, Entry
    from fxframework.registry import LiveSnapshot, Reader

INTERVAL = 0.25
"""Default seconds between two snapshots."""
LONGEST = 86400.0
"""Most seconds between two snapshots."""
MARKS = {"added": "+", "removed": "-", "changed": "~"}
COLOURS = {"added": "green", "removed": "red", "changed": "yellow"}

Key = tuple[str, int]
"""A path, and the number of the entry among those of the path."""
Change = tuple[str, "Entry | None", "Entry | None"]
"""A change of an entry: a key of MARKS, the old entry, the new one."""


@_command(name="watch")
@click.option(
    "--interval",
    type=Number(min=0, max=LONGEST),
    default=INTERVAL,
    metavar="SECONDS",
    help=f"Seconds between two snapshots. Default: {INTERVAL}.",
)
@click.option(
    "--count",
    type=click.IntRange(1),
    metavar="N",
    help="Take N snapshots. Default: until interrupted.",
)
@click.argument("file", shell_complete=complete.files)
@click.argument("selectors", nargs=-1, metavar="[SELECTOR...]")
def command(
    session: Session, interval: float, count: int | None, file: str, selectors: tuple[str, ...]
) -> ExitCode:
    """Show how the state in FILE changes while another program writes it.

    Prints one line for each change: the generation, the kind of change, the path, and the values.
    Takes snapshots of FILE until interrupted; several changes between two snapshots count as one.
    SELECTORs watch a part of it. With --json each change is a JSON object on its own line.
    """
    session.whole("watch")
    watch = _Watch(session, file, selectors)
    snapshot_count = 0
    while True:
        watch.look()
        session.screen.flush()
        snapshot_count += 1
        if snapshot_count == count:
            return watch.status
        pause(interval)


def pause(seconds: float) -> None:
    """Wait until the next snapshot."""
    time.sleep(seconds)


class _Watch:
    """A watched file, and its entries in the last snapshot."""

    def __init__(self, session: Session, text: str, selectors: tuple[str, ...]) -> None:
        self._session = session
        self._selectors = selectors
        format, path = session.named(text)
        self._path = Path(path)
        self._reader = self._find_reader(format, path)
        session.check_reader_options(self._reader)
        self._data: bytes | None = None
        self._last_entries: Mapping[Key, Entry] | None = None
        self._losses = ""
        self.status = ExitCode.OK

    def _find_reader(self, format: str | None, path: str) -> Reader:
        """Return the reader of the file. Raises UsageError if its captures are not states."""
        host = self._session.host
        if path == "-" or "://" in path:
            raise UsageError(
                f"{path!r} is not a file, so no other program can be writing it",
                remedy="name the file",
            )
        if format is None:
            source = host.source(path, options=self._session.settings.options)
            reader = host.detect(source)
            source.close()
        else:
            reader = host.reader(format)
        if reader.snapshot is None:
            raise UsageError(
                f"{reader.format} captures are not states that change",
                path=path,
                remedy="`fxf cat --follow FILE` shows what is appended to a file",
            )
        return reader

    def look(self) -> None:
        """Take a snapshot, and show what changed since the last one."""
        snapshot = self._snapshot()
        if snapshot is None or snapshot.data == self._data:
            return
        self._data = snapshot.data
        session = self._session
        with self._opened(snapshot) as whole:
            capture = whole
            if self._selectors:
                capture = whole.choose(self._selectors)
            entries = _numbered(capture)
            if self._last_entries is None:
                session.screen.note(
                    f"{self._path}: {amount(len(entries), 'entry', 'entries')}, "
                    f"generation {snapshot.generation}"
                )
            else:
                for change in _changes(self._last_entries, entries):
                    self._show(snapshot.generation, *change)
            self._last_entries = entries
            losses = repr(sorted(whole.diagnostics.counts.items()))
            if losses != self._losses:
                self._losses = losses
                self.status = worst(self.status, session.status(whole))

    def _snapshot(self) -> LiveSnapshot | None:
        """Return a consistent copy; None, with a warning, if there is none."""
        host = self._session.host
        assert self._reader.snapshot is not None  # noqa: S101 (checked by `_find_reader`)
        try:
            snapshot = host.called(self._reader, self._reader.snapshot, self._path)
        except FxError as error:
            # A failure of the first snapshot means that the file cannot be watched.
            if self._data is None or self._session.settings.strict:
                raise
            self._session.screen.warn(error.code, f"{self._path}: {error.message}")
            return None
        if not (hasattr(snapshot, "data") and hasattr(snapshot, "generation")):
            raise host.faulty(self._reader, f"snapshot() returned {snapshot!r}, not a snapshot")
        taken: LiveSnapshot = snapshot
        return taken

    def _opened(self, snapshot: LiveSnapshot) -> Capture:
        import numpy as np

        from fxframework.io.source import Source

        settings = self._session.settings
        # Do not use Source.open: these bytes are not gzip.
        source = Source(np.frombuffer(snapshot.data, np.uint8), name=str(self._path))
        return self._session.host.read(
            source, self._reader, strict=settings.strict, options=settings.options
        )

    def _show(self, generation: int, kind: str, before: Entry | None, after: Entry | None) -> None:
        screen = self._session.screen
        entry = after or before
        assert entry is not None  # noqa: S101 (one of the two is given)
        if self._session.settings.json:
            line = {
                "generation": generation,
                "change": kind,
                "path": entry.path,
                "before": optional_fields(before, "type value"),
                "after": optional_fields(after, "type value"),
            }
            screen.write(screen.json_line(line))
            return
        if before is not None and after is not None:
            text = change_line(self._session, before, after)
        else:
            text = entry_line(self._session, entry)
        mark = screen.paint(MARKS[kind], fg=COLOURS[kind], bold=True)
        screen.print(f"{generation:>8}  {mark} {printable(text)}")


def _numbered(capture: Capture) -> dict[Key, Entry]:
    """Return the entries of a capture by path and order within the path."""
    count_of_path: Counter[str] = Counter()
    entries: dict[Key, Entry] = {}
    for entry in capture.entries() or ():
        entries[entry.path, count_of_path[entry.path]] = entry
        count_of_path[entry.path] += 1
    return entries


def _changes(before: Mapping[Key, Entry], after: Mapping[Key, Entry]) -> Iterator[Change]:
    """Yield the changes of entries: removed ones first, then the others in order."""
    for key, entry in before.items():
        if key not in after:
            yield "removed", entry, None
    for key, entry in after.items():
        earlier = before.get(key)
        if earlier is None:
            yield "added", None, entry
        # By repr, because -0.0 is not 0.0.
        elif earlier.type != entry.type or repr(earlier.value) != repr(entry.value):
            yield "changed", earlier, entry
