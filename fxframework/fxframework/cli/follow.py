"""Following of growing files: reads on after the last whole record."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import attrs
import numpy as np

from fxframework.cli.session import Session
from fxframework.errors import Severity, StrictError, UnreadableError, UsageError
from fxframework.io.source import Source
from fxframework.model.capture import Capture, Record, View
from fxframework.model.table import Table

if TYPE_CHECKING:
    from fxframework.model.selection import Selection
    from fxframework.registry import Option

POLL = 0.25
"""Seconds between two checks of the file."""
PIECE = 1 << 24
"""Bytes to read at a time; doubled if they contain no whole record."""
LISTED = 5
"""Losses listed per piece; all are counted."""
# Events that end the reading of a file.
MISSING = "is gone"
REPLACED = "was replaced"
CUT = "was cut short"

Choose = Callable[[Capture], "Selection | None"]


def pause() -> None:
    """Wait until the next check of the file."""
    time.sleep(POLL)


def follow(
    session: Session,
    text: str,
    choose: Choose,
    show: Callable[[Capture], None],
    *,
    also: Callable[[Capture], Sequence[Option]],
) -> None:
    """Show the contents of a file, and then what is appended to it, until an exception.

    ``choose`` returns the selection for a whole capture, ``show`` is called with each selected
    piece; ``also`` is as in ``Session.open``. An incomplete record is shown once it is complete. A
    file that was replaced or cut short is noted and shown from its beginning.

    Raises UsageError for a file that cannot be followed, StrictError for a loss with
    ``--strict``, and the errors of opening.
    """
    path = _path_of(session, text)
    while True:
        try:
            file = path.open("rb")
        except OSError as error:
            raise UnreadableError(
                f"cannot open it: {error.strerror or error}",
                path=str(path),
                remedy="check the path and its permissions",
            ) from error
        with file:
            reading = _FollowedFile(session, file, str(path), show)
            with session.open(text, also=also, strict=False) as whole:
                # Keep the format, because a new file may still be too short to detect it.
                text = f"{whole.format}:{path}"
                reading.begin(whole, choose(whole))
            session.screen.flush()
            ending = None
            while ending is None:
                pause()
                reading.advance()
                session.screen.flush()
                ending = reading.ended(path)
                while ending == MISSING:
                    pause()
                    ending = reading.ended(path)
            if ending == REPLACED:
                # The old file may have grown after it was renamed.
                reading.advance()
                session.screen.flush()
        session.screen.note(f"{path} {ending}: it is shown from its beginning")


def _path_of(session: Session, text: str) -> Path:
    """Return the path of the file to follow. Raises UsageError for other inputs."""
    _, path = session.named(text)
    if path == "-" or "://" in path or (Path(path).exists() and not Path(path).is_file()):
        raise UsageError(
            f"--follow needs a file that grows, and {path!r} is not a plain file",
            remedy="name a file; without --follow, a pipe is read to its end",
        )
    return Path(path)


class _FollowedFile:
    """The state of following one open file."""

    def __init__(
        self, session: Session, file: IO[bytes], name: str, show: Callable[[Capture], None]
    ) -> None:
        self._session = session
        self._file = file
        self._name = name
        self._show = show
        self._open_piece: Callable[[Source], Capture] | None = None
        self._selection: Selection | None = None
        self._shown_end = 0
        """Offset in the file after the last record that was shown."""
        self._resume_bytes = b""
        """Bytes to put before the rest of the file; see ``Capture.resume``."""
        self._read_end = 0
        """Size of the file when it was last read."""
        self._piece_size = PIECE

    def begin(self, whole: Capture, selection: Selection | None) -> None:
        """Show the initial contents."""
        session = self._session
        if whole.source.unpacked or whole.source.rebuilt:
            raise UsageError(
                "a compressed file or a records file cannot be followed",
                path=whole.name,
                remedy="follow the original file",
            )
        reader = session.host.reader(whole.format)
        # An incomplete record is not a loss yet, so losses are checked here.
        request = attrs.evolve(whole.request, strict=False)
        self._open_piece = lambda source: reader.open(source, request)
        self._selection = selection
        self._read_end = whole.source.size
        self._show_piece(whole, 0)

    def advance(self) -> None:
        """Show the whole records that were appended since the last check."""
        size = os.fstat(self._file.fileno()).st_size
        while self._read_end < size:
            assert self._open_piece is not None  # noqa: S101 (set by `begin`)
            self._file.seek(self._shown_end)
            data = self._file.read(min(size - self._shown_end, self._piece_size))
            self._read_end = self._shown_end + len(data)
            shown_before = self._shown_end
            # Do not use Source.open: bytes of a record may look like gzip.
            piece_bytes = np.frombuffer(self._resume_bytes + data, np.uint8)
            with self._open_piece(Source(piece_bytes, name=self._name)) as capture:
                self._show_piece(capture, len(self._resume_bytes))
            if self._shown_end > shown_before:
                self._piece_size = PIECE
            elif self._read_end < size and data:
                # Not one whole record in it: read the same again, and more.
                self._piece_size *= 2
                self._read_end = self._shown_end
            else:
                return

    def ended(self, path: Path) -> str | None:
        """Return what happened to the opened file; None if nothing did."""
        opened_stat = os.fstat(self._file.fileno())
        if opened_stat.st_size < self._read_end:
            return CUT
        try:
            current_stat = path.stat()
        except OSError:
            return MISSING
        if os.path.samestat(opened_stat, current_stat):
            return None
        return REPLACED

    def _show_piece(self, capture: Capture, first: int) -> None:
        """Show the whole records of a piece from byte ``first`` on, and report its losses."""
        resumed = capture.resume()
        if resumed is None:
            raise UsageError(
                f"{capture.format} captures cannot be followed: what is appended cannot be read "
                "without what is before it",
                path=capture.name,
                remedy="omit --follow",
            )
        stop, resume_bytes = resumed
        shift = self._shown_end - first
        if stop > first:
            part = Appended(capture, first, stop, shift)
            if self._selection is None:
                self._show(part)
            else:
                self._show(part.select(self._selection))
        capture.scan()
        self._warn_of_losses(capture, first, stop, shift)
        self._shown_end = max(stop, first) + shift
        self._resume_bytes = resume_bytes

    def _warn_of_losses(self, capture: Capture, first: int, stop: int, shift: int) -> None:
        losses = [
            finding
            for finding in capture.diagnostics.sorted()
            if finding.severity >= Severity.DATA_LOSS
            and finding.offset is not None
            and first <= finding.offset < stop
        ]
        screen = self._session.screen
        for finding in losses[:LISTED]:
            offset = (finding.offset or 0) + shift
            if self._session.settings.strict:
                raise StrictError(
                    f"{finding.code}: {finding.message}",
                    path=self._name,
                    offset=offset,
                    remedy="omit --strict to continue after the loss",
                )
            screen.warn(finding.code, f"{self._name} @ 0x{offset:08x}: {finding.message}")
        if len(losses) > LISTED:
            screen.note(f"{self._name}: {len(losses) - LISTED:,} losses more")


class Appended(View):
    """The rows and records in a range of a capture's bytes, with offsets of the whole file.

    The range is ``first`` to ``stop`` in the capture, and ``shift`` bytes further in the file.
    """

    def __init__(self, whole: Capture, first: int, stop: int, shift: int) -> None:
        super().__init__(whole)
        self._first = first
        self._stop = stop
        self._shift = shift

    def records(self) -> Iterator[Record]:
        """Yield the records that begin in the range."""
        for record in self.whole.records():
            if record.offset >= self._stop:
                return
            if record.offset >= self._first:
                yield _Shifted(record, self._shift) if self._shift else record

    def summary(self) -> Any:
        """Return the summary of the whole capture, with the rows of the range."""
        rows = {name: sum(len(batch) for batch in self.batches(name)) for name in self.schemas}
        return attrs.evolve(self.whole.summary(), rows=rows, timeline=())

    def _part(self, table: Table) -> Table:
        if "offset" not in table or table.schema.plain:
            return table
        offsets = table.array("offset")
        is_in_range = (offsets >= self._first) & (offsets < self._stop)
        part = table if is_in_range.all() else table.select(is_in_range)
        if not self._shift:
            return part
        return part.replaced(offset=part.array("offset") + self._shift)


class _Shifted:
    """A record with its offset in the whole file."""

    def __init__(self, record: Record, shift: int) -> None:
        self._record = record
        self._shift = shift
        self.offset = record.offset + shift
        self.nbytes = record.nbytes
        self.ns: int | None = getattr(record, "ns", None)
        self.row_offset: int = getattr(record, "row_offset", record.offset) + shift

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of the record with the shifted offset."""
        return {**self._record.to_json(), "offset": self.offset}
