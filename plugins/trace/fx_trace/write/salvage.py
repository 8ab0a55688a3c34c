"""Salvage of traces: writes all sound records so that they are complete without the damaged ones.

Besides leaving out damage, it repairs references to strings or threads that were never registered.
All other bytes are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import attrs

from fx_trace.layout import MAGIC, MAGIC_BYTES
from fx_trace.read.arguments import Argument
from fx_trace.read.cursor import Tables, string_marker
from fx_trace.read.parts import Reference, StringReference
from fx_trace.read.records import (
    Damaged,
    Padding,
    StringRecord,
    ThreadRecord,
    TraceInfo,
    TraceRecord,
    UserspaceObject,
)
from fx_trace.write.rewriter import open_writer
from fxframework.errors import WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.kit.salvage import Loss, lost
from fxframework.model.capture import Capture
from fxframework.registry import RecordWriter

__all__ = ["salvage"]

NOBODY = (0, 0)
"""The thread written for one that was never registered, as in libtrace."""


def salvage(capture: Capture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
    """Write the sound records of a trace. Yield each loss (``registry.Writer``).

    A record that was kept but changed is a loss of 0 bytes. The output begins with the magic
    number, and all its references can be resolved.
    """
    writer = open_writer(sink, options, capture.diagnostics)
    mender = _Mender(writer)
    begun = False
    for one in capture.records():
        record = cast("TraceRecord", one)
        if isinstance(record, Padding | Damaged):
            yield _left_out(record)
            continue
        if not begun:
            begun = True
            if not _is_magic(record):
                writer.write(TraceInfo(info_type=0, magic=MAGIC))
                yield Loss(
                    record.offset, 0, "metadata", "the magic number was missing; added", "FXT0201"
                )
        yield from mender.write(record)
    writer.close()


def _is_magic(record: TraceRecord) -> bool:
    """Return whether a record is the magic number, in the exact form of the start of files."""
    if not isinstance(record, TraceInfo) or record.raw is not None or record.opaque:
        return False
    return record.pack() == MAGIC_BYTES


def _left_out(record: Padding | Damaged) -> Loss:
    loss = lost(record)
    if isinstance(record, Damaged):
        return loss
    message = f"{record.nbytes} bytes are zero words between records; left out"
    return attrs.evolve(loss, message=message, code="FXT0006")


@attrs.define
class _Lack:
    """Unresolved references of one record."""

    strings: dict[int, str] = attrs.field(factory=dict)
    """Field that uses each string, by index."""
    threads: dict[int, str] = attrs.field(factory=dict)

    def losses(self, record: TraceRecord) -> Iterator[Loss]:
        """Yield the losses: the text or the thread, not the record."""
        for index, where in self.strings.items():
            shown = string_marker(index)
            message = f"{where}: string {index} was never registered; written as {shown}"
            yield Loss(record.offset, 0, record.record, message, "FXT0104")
        for index, where in self.threads.items():
            message = f"{where}: thread {index} was never registered; written as 0, 0"
            yield Loss(record.offset, 0, record.record, message, "FXT0105")


class _Mender:
    """Writes records, and adds what they refer to if it is missing."""

    def __init__(self, writer: RecordWriter) -> None:
        self._writer = writer
        self._tables = Tables()
        """Strings and threads registered by the input so far."""

    def write(self, record: TraceRecord) -> Iterator[Loss]:
        """Write a sound record. Yield the losses if it cannot be written unchanged."""
        lack = self._lack(record)
        record.apply(self._tables, _ignore)
        try:
            if lack is None:
                self._writer.write(record)
                return
            if record.raw is None:
                try:
                    self._writer.write(self._inlined(record, lack))
                except WriteRefusedError:  # a full record has no room for inline words
                    self._register(record, lack)
            else:
                self._register(record, lack)
        except WriteRefusedError as error:
            message = f"it cannot be written: {error.message}"
            yield Loss(record.offset, record.nbytes, record.record, message, error.code)
        else:
            yield from lack.losses(record)

    def _lack(self, record: TraceRecord) -> _Lack | None:
        """Return the unresolved references, or None."""
        lack = None
        if record.refs:
            for part in record.parts:
                if isinstance(part, Reference) and part.name in record.refs:
                    index = record.refs[part.name]
                    is_string = isinstance(part, StringReference)
                    find = self._tables.string if is_string else self._tables.thread
                    if find(index) is None:
                        lack = lack or _Lack()
                        (lack.strings if is_string else lack.threads).setdefault(index, part.name)
        arguments: tuple[Argument, ...] = getattr(record, "args", ())
        for number, argument in enumerate(arguments):
            for name, index in (argument.refs or {}).items():
                if self._tables.string(index) is None:
                    lack = lack or _Lack()
                    lack.strings.setdefault(index, f"{name} of argument {number}")
        return lack

    def _inlined(self, record: TraceRecord, lack: _Lack) -> TraceRecord:
        """Return the record with inline values for what is missing: marker, or thread 0, 0."""
        changes = _without_threads(record, lack)
        changes["refs"] = _without(record.refs, record.parts, lack)
        if hasattr(record, "args"):
            changes["args"] = tuple(
                attrs.evolve(argument, refs=_kept(argument.refs, lack.strings))
                for argument in record.args
            )
        return attrs.evolve(record, **changes)

    def _register(self, record: TraceRecord, lack: _Lack) -> None:
        """Write what is missing before the record, which then keeps its bytes."""
        for index in lack.strings:
            self._writer.write(StringRecord(index=index, value=string_marker(index)))
        for index in lack.threads:
            self._writer.write(ThreadRecord(index=index, pid=NOBODY[0], tid=NOBODY[1]))
        self._writer.write(attrs.evolve(record, **_without_threads(record, lack)))


def _without_threads(record: TraceRecord, lack: _Lack) -> dict[str, Any]:
    """Return the fields with missing threads, replaced by thread 0, 0."""
    refs = record.refs or {}
    return {
        part.name: NOBODY[0] if isinstance(record, UserspaceObject) else NOBODY
        for part in record.parts
        if isinstance(part, Reference)
        and not isinstance(part, StringReference)
        and refs.get(part.name) in lack.threads
    }


def _without(
    refs: Mapping[str, int] | None, parts: tuple[Any, ...], lack: _Lack
) -> dict[str, int] | None:
    """Return the resolvable references of a record."""
    strings = {part.name for part in parts if isinstance(part, StringReference)}
    return {
        name: index
        for name, index in (refs or {}).items()
        if index not in (lack.strings if name in strings else lack.threads)
    } or None


def _kept(refs: Mapping[str, int] | None, missing: Mapping[int, str]) -> dict[str, int] | None:
    """Return the resolvable references of an argument."""
    return {name: index for name, index in (refs or {}).items() if index not in missing} or None


def _ignore(code: str, message: str = "") -> None:
    """Ignore a finding: the reader of the capture has reported it."""
