"""Writing of trace archives by one or several providers, whole or only the last part.

An archive is a magic number record followed by the records of providers, in sections
(docs/formats/trace.md). Each provider writes through its own ``TraceWriter``.
"""

from __future__ import annotations

import os
import reprlib
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, Self

from fx_trace import format as wire
from fx_trace import records as r
from fx_trace import rules
from fx_trace.kinds import RecordType
from fx_trace.records import ProviderEvent, ProviderInfo, ProviderSection, TraceInfo, TraceRecord
from fx_trace.write.writer import TraceWriter
from fxframework.errors import UsageError, refusal
from fxframework.io.sink import Sink
from fxframework.io.words import U64_MAX, WORD
from fxframework.wire.families import Place

BUFFER = 1 << 20
"""Bytes buffered before they go to the sink."""


class Writable(Protocol):
    """A target that accepts bytes in order."""

    def write(self, data: bytes, /) -> object:
        """Write all bytes."""


Where = str | os.PathLike[str] | Sink | Writable


class Section:
    """One provider's section of an archive, the destination of its ``TraceWriter``."""

    keeps_order = True
    """Whether readers see records in the order of ``put``."""

    def __init__(self, archive: Archive, id: int, name: str) -> None:
        self.id = id
        self.name = name
        self.introduced = False
        self.lock = archive.lock
        self._archive = archive

    def put(self, record: bytes, *, durable: bool = False) -> bool:  # noqa: ARG002 (everything is durable)
        """Write one whole record. Return True, since an archive drops none."""
        archive = self._archive
        if archive.current is not self:
            archive.switch(self)
        archive.append(self, record)
        return True

    def has_room(self, nbytes: int) -> bool:  # noqa: ARG002 (an archive has no limit)
        """Return True: an archive has no limit."""
        return True


class Archive:
    """A trace archive in a file, a ``Sink`` or any object with ``write(bytes)``.

        with Archive("boot.fxt") as archive:
            app = archive.provider(1, "app")
            app.instant("boot", "ready")

    The file of a path appears complete at the end, or not at all after an exception; a sink or file
    of the caller stays open. Several threads may write at once.
    """

    def __init__(self, where: Where, *, force: bool = False, big_endian: bool = False) -> None:
        self.lock = threading.RLock()
        self.big_endian = big_endian
        self.current: Section | None = None
        self._sections: dict[int, Section] = {}
        self._pending = bytearray()
        self._owned: Sink | None = None
        self._file: Any = where
        self._closed = False
        if isinstance(where, str | os.PathLike):
            self._owned = self._file = Sink.open(Path(where), force=force)
        self._begin()

    def provider(self, id: int, name: str = "", **options: Any) -> TraceWriter:
        """Add a provider. Return its writer, created with ``options`` of ``TraceWriter``.

        Raises WriteRefusedError if the id is taken (CONTRADICTION) or does not fit 32 bits, or if
        the name has more than 255 bytes.
        """
        with self.lock:
            if not isinstance(id, int) or not isinstance(name, str):
                raise refusal(
                    rules.WRONG_TYPE,
                    f"a provider needs an integer id and a name, not {reprlib.repr((id, name))}",
                )
            if id in self._sections:
                raise refusal(rules.CONTRADICTION, f"provider {id} is in this archive already")
            ProviderInfo(id=id, name=name).pack()
            section = Section(self, id, name)
            writer = TraceWriter(section, big_endian=self.big_endian, begin=False, **options)
            self._sections[id] = section
            self.switch(section)
            writer.begin()
            return writer

    def buffer_full(self, id: int) -> None:
        """Record that a provider's buffer was full, so that records may be missing."""
        with self.lock:
            event = ProviderEvent(id=id, event=0).pack(big_endian=self.big_endian)
            self.append(self._sections.get(id) or self.current, event)

    def switch(self, section: Section) -> None:
        """Start a section of another provider."""
        self.current = section
        record: TraceRecord = ProviderSection(id=section.id)
        if not section.introduced:
            section.introduced = True
            record = ProviderInfo(id=section.id, name=section.name)
        self.append(section, record.pack(big_endian=self.big_endian))

    def append(self, section: Section | None, record: bytes) -> None:  # noqa: ARG002 (for FlightRecorder)
        """Append the bytes of one record. ``section`` is used by ``FlightRecorder``."""
        if self._closed:
            raise _closed()
        pending = self._pending
        pending += record
        if len(pending) >= BUFFER:
            self.flush()

    def flush(self) -> None:
        """Write the buffered bytes."""
        with self.lock:
            pending, self._pending = self._pending, bytearray()
            if pending:
                self._file.write(pending)

    def close(self) -> None:
        """Write the buffered bytes; a file that the archive opened appears under its name."""
        with self.lock:
            if self._closed:
                return
            try:
                self.flush()
            except BaseException:
                self.abort()
                raise
            self._end()
            if self._owned is not None:
                self._owned.commit()

    def abort(self) -> None:
        """Discard the archive's own file."""
        with self.lock:
            self._end()
            if self._owned is not None:
                self._owned.abort()

    def _end(self) -> None:
        self._closed = True

    def _begin(self) -> None:
        magic = TraceInfo(info_type=0, magic=wire.MAGIC)
        self.append(None, magic.pack(big_endian=self.big_endian))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def _closed() -> UsageError:
    return UsageError(
        "the archive is closed", remedy="write before closing it, or open another one"
    )


class FlightRecorder(Archive):
    """An archive in memory that keeps only the last ``nbytes`` bytes of events.

        recorder = FlightRecorder(16 << 20)
        app = recorder.provider(1, "app")
        ...
        recorder.save("last.fxt")

    Records that later ones depend on are kept longer: providers, rates, strings and threads in
    slots, names of kernel and userspace objects. The saved archive therefore reads as the end of
    the whole one. Saving changes nothing, and may be repeated.
    """

    def __init__(self, nbytes: int, *, big_endian: bool = False) -> None:
        self.nbytes = nbytes
        self._kept: deque[tuple[Section, bytes]] = deque()
        self._size = 0
        self._states: dict[int, _State] = {}
        super().__init__(_Nowhere(), big_endian=big_endian)

    def append(self, section: Section | None, record: bytes) -> None:
        """Append a record, and drop the oldest ones over the limit."""
        if self._closed:
            raise _closed()
        if section is None:
            return  # the magic number
        kept = self._kept
        kept.append((section, record))
        self._size += len(record)
        while self._size > self.nbytes and kept:
            oldest, gone = kept.popleft()
            self._size -= len(gone)
            state = self._states.get(oldest.id)
            if state is None:
                state = self._states[oldest.id] = _State()
            state.apply(gone, big_endian=self.big_endian)

    def save(self, where: Where, *, force: bool = False) -> None:
        """Write the kept records as an archive."""
        with self.lock:
            whole = Archive(where, force=force, big_endian=self.big_endian)
            with whole:
                last: Section | None = None
                for section in self._sections.values():
                    state = self._states.get(section.id, _State())
                    info = ProviderInfo(id=section.id, name=section.name)
                    whole.append(None, info.pack(big_endian=self.big_endian))
                    for record in state.records():
                        whole.append(None, record)
                for section, record in self._kept:
                    if _is_provider_record(record, big_endian=self.big_endian):
                        continue
                    if section is not last:
                        last = section
                        switch = ProviderSection(id=section.id)
                        whole.append(None, switch.pack(big_endian=self.big_endian))
                    whole.append(None, record)


class _Nowhere:
    """The file of a flight recorder, which is never written to."""

    def write(self, data: bytes) -> None:
        raise AssertionError(data)


PROCESS = Place(2 * WORD, WORD, 0, U64_MAX)
SLOT_OF_RECORD: Mapping[int, tuple[Place, ...]] = {
    RecordType.INITIALIZATION: (),
    RecordType.STRING: (r.StringRecord.layout.place("index"),),
    RecordType.THREAD: (r.ThreadRecord.layout.place("index"),),
    RecordType.KERNEL_OBJECT: (
        r.KernelObject.layout.place("koid"), r.KernelObject.layout.place("object_type"),
    ),
    # Its process is inline.
    RecordType.USERSPACE_OBJECT: (r.UserspaceObject.layout.place("pointer"), PROCESS),
}  # fmt: skip
"""By record type, the numbers that tell what a later record replaces."""


class _State:
    """The effect of a provider's dropped records on the kept ones: the last record of each slot."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, ...], bytes] = {}

    def apply(self, record: bytes, *, big_endian: bool) -> None:
        kind = r.TYPE.get(record, 0, big_endian)
        if kind in SLOT_OF_RECORD:
            slot = [place.get(record, 0, big_endian) for place in SLOT_OF_RECORD[kind]]
            self._last[kind, *slot] = record

    def records(self) -> list[bytes]:
        """Return rates, then strings, then threads, then names."""
        return [record for _, record in sorted(self._last.items())]


def _is_provider_record(record: bytes, *, big_endian: bool) -> bool:
    return r.class_of(r.FIRST_WORD.get(record, 0, big_endian)) in (ProviderInfo, ProviderSection)
