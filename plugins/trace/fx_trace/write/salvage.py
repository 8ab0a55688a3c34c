"""Salvage of traces: all sound records, made complete on their own, and what was lost of others.

Beside leaving out what is not a record, it mends what leans on something that is gone: a
reference to
a string or thread that was never registered. Everything else keeps its bytes.
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
"""The thread that stands for one that was never registered, as libtrace writes it."""


def salvage(capture: Capture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
    """Write the sound records of a trace; give each loss as it is met (``registry.Writer``).

    A record that was kept, but not unchanged, is a loss of no bytes. What comes out begins with
    the magic number, and refers to nothing that it does not hold.
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
                    record.offset, 0, "metadata", "the magic number was missing; put in", "FXT0201"
                )
        yield from mender.write(record)
    writer.close()


def _is_magic(record: TraceRecord) -> bool:
    """Whether a record is the magic number, exactly as files begin with it."""
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
    """References of one record to what was never registered."""

    strings: dict[int, str] = attrs.field(factory=dict)
    """Where each is used, by index."""
    threads: dict[int, str] = attrs.field(factory=dict)

    def losses(self, record: TraceRecord) -> Iterator[Loss]:
        """What is lost with them: the text or the thread, not the record."""
        for index, where in self.strings.items():
            shown = string_marker(index)
            message = f"{where}: string {index} was never registered; written as {shown}"
            yield Loss(record.offset, 0, record.record, message, "FXT0104")
        for index, where in self.threads.items():
            message = f"{where}: thread {index} was never registered; written as 0, 0"
            yield Loss(record.offset, 0, record.record, message, "FXT0105")


class _Mender:
    """Writes records, and makes up for what they refer to and is not there."""

    def __init__(self, writer: RecordWriter) -> None:
        self._writer = writer
        self._tables = Tables()
        """What the records of the input registered so far."""

    def write(self, record: TraceRecord) -> Iterator[Loss]:
        """Write a sound record; give what of it could not be written unchanged."""
        lack = self._lack(record)
        record.apply(self._tables, _unheard)
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
        """The references that lead nowhere; None where there are none."""
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
        """The record with what is missing inline: the marker of a string, nobody for a thread."""
        changes = _without_threads(record, lack)
        changes["refs"] = _without(record.refs, record.parts, lack)
        if hasattr(record, "args"):
            changes["args"] = tuple(
                attrs.evolve(argument, refs=_kept(argument.refs, lack.strings))
                for argument in record.args
            )
        return attrs.evolve(record, **changes)

    def _register(self, record: TraceRecord, lack: _Lack) -> None:
        """Write what is missing in front of the record, which then keeps its very bytes."""
        for index in lack.strings:
            self._writer.write(StringRecord(index=index, value=string_marker(index)))
        for index in lack.threads:
            self._writer.write(ThreadRecord(index=index, pid=NOBODY[0], tid=NOBODY[1]))
        self._writer.write(attrs.evolve(record, **_without_threads(record, lack)))


def _without_threads(record: TraceRecord, lack: _Lack) -> dict[str, Any]:
    """The fields that hold missing threads, with nobody in their place."""
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
    """The indexes of a record that lead somewhere."""
    strings = {part.name for part in parts if isinstance(part, StringReference)}
    return {
        name: index
        for name, index in (refs or {}).items()
        if index not in (lack.strings if name in strings else lack.threads)
    } or None


def _kept(refs: Mapping[str, int] | None, missing: Mapping[int, str]) -> dict[str, int] | None:
    """The indexes of an argument that lead somewhere."""
    return {name: index for name, index in (refs or {}).items() if index not in missing} or None


def _unheard(code: str, message: str = "") -> None:
    """Where findings go that the reader of the capture makes."""
