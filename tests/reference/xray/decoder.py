"""One record decoded at a time: the decoder written for clarity."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs
from tests.reference.xray import layout as wire
from tests.reference.xray.header import asked_frequency, asked_order, header_findings, read_header
from tests.reference.xray.layout import MetadataKind
from tests.reference.xray.records import (
    BASIC_FORM,
    BASIC_RECORDS,
    EVENTS,
    METADATA,
    BasicArgument,
    BasicFunction,
    BufferExtents,
    CallArgument,
    Damaged,
    Dialect,
    EndOfBuffer,
    FileHeader,
    Function,
    NewBuffer,
    NewCpu,
    Padding,
    Pid,
    PlacedRecord,
    TscWrap,
    Unknown,
    WallTime,
    XrayRecord,
    basic_codec,
    function_struct,
    metadata_codec,
)

from fx_xray import rules
from fxframework.errors import Rule
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX, view_of
from fxframework.model.diagnostics import Diagnostics, Found

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Data = NDArray[np.uint8] | bytes | bytearray | memoryview


class RecordDecoder:
    """Reads a trace record by record.

    ``form`` is xray or xray-basic. Findings go to ``diagnostics``; of ``limits``, ``max_record`` is
    heeded. ``options`` are the reader's: ``byte_order`` and ``cycle_frequency``. Nothing that the
    bytes say raises an exception, but for the StrictError of strict diagnostics; an option that
    is invalid does (UsageError).
    """

    def __init__(
        self,
        form: str,
        *,
        diagnostics: Diagnostics | None = None,
        limits: Limits | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.form = form
        self.diagnostics = diagnostics
        self.limits = limits or Limits()
        self.byte_order = asked_order(options)
        self.cycle_frequency = asked_frequency(options)

    def records(self, data: Data) -> Iterator[XrayRecord]:
        """Return every record in file order, as it is; their ``nbytes`` add up to ``len(data)``."""
        return self._noted(data, mend=False)

    def mended(self, data: Data) -> Iterator[XrayRecord]:
        """Return the same with records that a recorder cut in half made good, as tables have them.

        Such a record has 8 bytes and the time that it had, and the one that is in its second
        half is there too.
        """
        return self._noted(data, mend=True)

    def _noted(self, data: Data, *, mend: bool) -> Iterator[XrayRecord]:
        found: list[Found] = []
        index = -1
        for index, record in enumerate(self._walked(view_of(data), found, mend=mend)):
            self._note(found, index)
            yield record
        self._note(found, index)

    def _note(self, found: list[Found], index: int) -> None:
        """Report what was found when record ``index`` was read."""
        if self.diagnostics is not None:
            self.diagnostics.report(found, None if index < 0 else index)
        found.clear()

    def _walked(
        self, view: memoryview, found: list[Found], *, mend: bool, skip: int = 0
    ) -> Iterator[XrayRecord]:
        header = read_header(view, self.form, self.byte_order)
        if header is None:
            found.append(Found(rules.NO_FILE_HEADER, 0, len(view)))
            if len(view):
                yield Damaged(nbytes=len(view), code=rules.NO_FILE_HEADER.code, raw=view)
            return
        found.extend(header_findings(header, self.form, len(view), self.cycle_frequency))
        yield header
        walk = self.walk(view, header, found, mend=mend)
        yield from walk.records()

    def walk(
        self, view: memoryview, header: FileHeader, found: list[Found], *, mend: bool = False
    ) -> Walk:
        """Return the walk through a file behind its header, whose findings go to ``found``."""
        if self.form == BASIC_FORM:
            return BasicWalk(view, header, found, self)
        return FdrWalk(view, header, found, self, mend=mend)


class Walk:
    """A walk through a file behind its header."""

    def __init__(
        self, view: memoryview, header: FileHeader, found: list[Found], decoder: RecordDecoder
    ) -> None:
        self.view = view
        self.size = len(view)
        self.at = wire.HEADER_BYTES
        self.found = found
        self.dialect = Dialect(decoder.form, header.version, header.byte_order)
        self.version = self.dialect.defined
        self.order = self.dialect.order
        self.frequency = decoder.cycle_frequency or header.cycle_frequency
        self.max_record = decoder.limits.max_record

    def find(self, rule: Rule, offset: int, value: object = None) -> None:
        """Add a finding about the next record."""
        self.found.append(Found(rule, offset, value))

    def damaged(self, rule: Rule, at: int, end: int, value: object = None) -> Damaged:
        """Return bytes ``at`` to ``end`` as a damaged stretch, with a finding."""
        self.find(rule, at, value)
        return Damaged(offset=at, nbytes=end - at, code=rule.code, raw=self.view[at:end])

    def records(self) -> Iterator[XrayRecord]:
        """Return every record."""
        raise NotImplementedError

    def record(self, at: int) -> XrayRecord:
        """Return the record at byte ``at``, the first one or behind the one before."""
        raise NotImplementedError


# --- Basic mode -----------------------------------------------------------------------------------


class BasicWalk(Walk):
    """Records of 32 bytes, one after another."""

    call: BasicFunction | None = None
    """The function record before, as far as arguments may follow."""

    def records(self) -> Iterator[XrayRecord]:
        """Yield every record."""
        while self.at < self.size:
            record = self.record(self.at)
            self.at += record.nbytes
            yield record

    def record(self, at: int) -> XrayRecord:
        """Return the record at byte ``at``."""
        view, end = self.view, at + wire.BASIC_BYTES
        if end > self.size:
            return self.damaged(rules.PARTIAL_RECORD, at, self.size, self.size - at)
        type = int.from_bytes(view[at : at + 2], self.order)
        if type not in BASIC_RECORDS:
            self.call = None
            return self.damaged(rules.BAD_TYPE, at, end, type)
        codec = basic_codec(type, self.order)
        values = codec.unpack(view, at)
        del values["type"]
        if "kind" in values:
            kind = wire.FUNCTION_NAMES.get(values["kind"])
            if kind is None:
                self.call = None
                return self.damaged(rules.BAD_KIND, at, end, values["kind"])
            values["kind"] = kind
        record = BASIC_RECORDS[type](
            offset=at,
            nbytes=wire.BASIC_BYTES,
            frequency=self.frequency,
            padding=codec.padding(view, at),
            **values,
        )
        if isinstance(record, BasicFunction):
            self.call = record
            if record.kind == "tail_exit" and self.version < wire.BASIC_TAIL_EXIT_VERSION:
                self.find(rules.BASIC_TAIL_EXIT, at)
        elif isinstance(record, BasicArgument):
            self.belong(record)
        return record

    def belong(self, record: BasicArgument) -> None:
        """Find the call of an argument."""
        call, record.row_offset = self.call, record.offset
        if call is None:
            self.find(rules.BASIC_ORPHAN, record.offset, record.function_id)
        elif (
            (call.function_id, call.thread) != (record.function_id, record.thread)
            or (self.version >= wire.BASIC_PID_VERSION and call.process != record.process)
        ):  # fmt: skip
            self.find(rules.BASIC_ORPHAN, record.offset, record.function_id)
            self.call = None
        else:
            record.row_offset = call.offset
            record.tsc, record.cpu = call.tsc, call.cpu


# --- The flight data recorder ---------------------------------------------------------------------

_BODY: Final = frozenset(
    {"new_cpu", "tsc_wrap", "custom_event", "typed_event", "function", "end_of_buffer"}
)
_CALL: Final = _BODY | {"call_argument"}
_FOLLOWERS: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset({"buffer_extents", "new_buffer"}),
    "buffer_extents": frozenset({"new_buffer"}),
    "new_buffer": frozenset({"wall_time"}),
    "wall_time": frozenset({"pid", "new_cpu"}),
    "pid": frozenset({"new_cpu"}),
    "new_cpu": _BODY,
    "tsc_wrap": _BODY,
    "custom_event": _BODY,
    "typed_event": _BODY,
    "function": _CALL,
    "call_argument": _CALL,
}
"""What may follow what in a block."""
_PREAMBLE: Final = frozenset({"new_buffer", "wall_time", "pid"})
"""What no block ends with."""
_NEWER_KINDS: Final[Mapping[int, int]] = {
    MetadataKind.BUFFER_EXTENTS: wire.EXTENTS_VERSION,
    MetadataKind.TYPED_EVENT: wire.PID_VERSION,
    MetadataKind.PID: wire.PID_VERSION,
}
"""Kinds that early versions do not have, with the first that has them."""
_CUT_TSC: Final[Mapping[int, tuple[int, int]]] = {
    MetadataKind.NEW_CPU: (3, 8),
    MetadataKind.TSC_WRAP: (1, 8),
}
"""Of the kinds that the recorder may cut in half, the bytes of the time that are left."""
_CUT_BYTES: Final = wire.METADATA_BYTES // 2
_CUT_REACH: Final = 1 << 36
"""Ticks after the time before, within which the time of a record that was cut is looked for."""


@attrs.define
class Block:
    """What is known of the buffer that is being read."""

    thread: int | None = None
    process: int | None = None
    base: int | None = None
    """The time from which deltas count; None where no record said it."""
    cpu: int | None = None
    state: str = ""
    """The kind of the record before, as far as order goes."""
    last: int = 0
    """Its offset."""
    settled: bool = False
    """Whether a call, an argument or an event has been read: what its thread is, is decided."""
    timeless: bool = False
    """Whether it has been reported that times are not known."""
    call: Function | None = None
    """The function record before, as far as arguments may follow."""
    typed: int = 0
    """Typed events that it has."""
    foreign: bool = False
    """Whether one of them is as compiler-rt writes it, with garbage for padding."""
    cut: bool = False
    """Whether a record runs past its end."""


class FdrWalk(Walk):
    """Buffers of records of 8 and 16 bytes.

    ``limit`` is where the buffer ends: by its extents, or in version 1 by the size of buffers; the
    end of the file where nothing says it.
    """

    def __init__(
        self,
        view: memoryview,
        header: FileHeader,
        found: list[Found],
        decoder: RecordDecoder,
        *,
        mend: bool,
    ) -> None:
        super().__init__(view, header, found, decoder)
        self.mend = mend
        self.twin: FdrWalk | None = None
        """The walk that reports the findings from the first record on that was cut in half."""
        self.block: Block | None = None
        self.garbage = 0
        """Records in a row that are invalid."""
        self.metadata_bit = self.dialect.metadata_bit
        self.function = function_struct(self.order)
        self.new_buffer = self.dialect.first_byte(MetadataKind.NEW_BUFFER)
        self.extents = self.dialect.first_byte(MetadataKind.BUFFER_EXTENTS)
        self.by_extents = self.version >= wire.EXTENTS_VERSION
        self.page = 0
        """Bytes of a buffer of version 1, where they are believed."""
        self.padded = self.at
        """The end of the padding that comes."""
        self.limit = self.at
        self.bounded = True
        """Whether something that is believed says the limit."""
        if not self.by_extents:
            self.page = header.buffer_size if header.buffer_size >= wire.LEAST_BUFFER else 0
            self.turn_page(self.at)

    def records(self) -> Iterator[XrayRecord]:
        """Yield every record."""
        findings: Iterator[XrayRecord] | None = None
        while self.at < self.size:
            record = self.record(self.at)
            self.at = record.offset + record.nbytes
            if self.twin is not None:
                findings = findings or self.twin.records()
                while self.twin.at < self.at and next(findings, None) is not None:
                    pass
            yield record
        self.close_block()
        for _ in findings or ():
            pass

    def find(self, rule: Rule, offset: int, value: object = None) -> None:
        """Add a finding about the next record, unless the twin reports them."""
        if self.twin is None:
            super().find(rule, offset, value)

    def record(self, at: int) -> XrayRecord:
        """Return the record at byte ``at``, where there is one."""
        if at < self.padded:
            return self.space(at)
        if self.garbage >= wire.GARBAGE_RUN:
            self.garbage = 0
            end = self.limit if self.bounded else self.next_extents(at)
            if end > at:
                return self.lost(rules.GARBAGE, at, end, end - at)
        if at == self.limit:
            self.pass_limit(at)
        first = self.view[at]
        metadata = first & self.metadata_bit
        end = at + (wire.METADATA_BYTES if metadata else wire.FUNCTION_BYTES)
        while end > self.limit:
            cut = self.crossing(at, end)
            if cut is not None:
                return cut
        if not metadata:
            return self.called(at)
        kind = self.dialect.kind_of(first)
        if kind not in METADATA:
            self.garbage += 1
            self.unlink()
            self.find(rules.UNKNOWN_METADATA, at, kind)
            raw = self.view[at:end].tobytes()
            return Unknown(offset=at, nbytes=end - at, type=kind, raw=raw)
        return self.metadata(at, MetadataKind(kind))

    # --- Where buffers end ---

    def begins(self, at: int, *firsts: int) -> bool:
        """Return whether a record with one of these first bytes may be at ``at``."""
        return at < self.size and self.view[at] in firsts

    def unbound(self) -> None:
        """Believe no limit but the end of the file."""
        self.page = 0
        self.limit, self.bounded = self.size, False

    def turn_page(self, at: int) -> None:
        """Put the limit of version 1 where the buffer that begins at ``at`` ends by its size."""
        self.limit = at + self.page
        self.bounded = bool(self.page) and self.limit <= self.size
        if not self.bounded:
            self.limit = self.size

    def pass_limit(self, at: int) -> None:
        """Go on at a limit, behind which the file goes on."""
        if self.by_extents:
            if not self.begins(at, self.extents):
                self.find(rules.NO_EXTENTS, at)
            self.unbound()  # extents bound what follows them
        elif self.block is None or self.begins(at, self.new_buffer):
            self.close_block()
            self.turn_page(at)
        else:
            self.unbound()

    def crossing(self, at: int, end: int) -> Damaged | None:
        """Return what is lost of a record that runs past the limit to ``end``.

        None to read it anyway.
        """
        limit = self.limit
        if limit == self.size:
            return self.lost(rules.PAST_FILE, at, self.rest(at), end - at)
        if not self.by_extents:
            if self.begins(limit, self.new_buffer):
                return self.lost(rules.PAST_BUFFER, at, limit, end - at)
        elif self.sound_extents(limit):
            return self.lost(rules.PAST_BUFFER, at, limit, end - at)
        elif not self.begins(at, self.extents):
            self.find(rules.NO_EXTENTS, at)
        else:
            self.find(rules.EXTENTS_OVERLAP, at, limit - at)
        self.unbound()
        return None

    def sound_extents(self, at: int) -> bool:
        """Return whether extents are at ``at`` that do not run past the end of the file."""
        end = at + wire.METADATA_BYTES
        return self.begins(at, self.extents) and end <= self.size and self.extent(at) <= self.size

    def extent(self, at: int) -> int:
        """Return the end of the buffer by the extents at ``at``."""
        codec = metadata_codec(MetadataKind.BUFFER_EXTENTS, self.version, self.order)
        return at + wire.METADATA_BYTES + int(codec.unpack(self.view, at)["bytes"])

    def next_extents(self, at: int) -> int:
        """Return where the next buffer begins that is valid.

        The end of the file where none does.
        """
        for start in _places(self.view, self.extents, at):
            behind = start + wire.METADATA_BYTES
            if self.sound_extents(start) and (
                behind == self.size or self.begins(behind, self.new_buffer)
            ):
                return start
        return self.size

    def rest(self, at: int) -> int:
        """Return where what is given up with the record at ``at`` ends."""
        if self.bounded or not self.by_extents:
            return self.limit
        return self.next_extents(at + 1)

    def lost(self, rule: Rule, at: int, end: int, value: object) -> Damaged:
        """Return a stretch that is not a record, behind which something new begins."""
        self.garbage = 0
        if self.block is not None and rule in (rules.PAST_BUFFER, rules.PAST_FILE):
            self.block.cut = True
        self.unlink()
        return self.damaged(rule, at, end, value)

    def space(self, at: int) -> Padding:
        """The space behind the end of a buffer of version 1."""
        self.garbage = 0
        data = self.view[at : self.padded]
        padding = Padding(offset=at, nbytes=len(data))
        if not _is_zero(data):
            padding.raw = data
            self.find(rules.STALE_SPACE, at, len(data))
        return padding

    # --- Blocks, and the order of their records ---

    def open_block(self) -> Block:
        """Return the block, a new one where there is none."""
        if self.block is None:
            self.block = Block()
        return self.block

    def close_block(self) -> None:
        """End the block, as something else begins or the file ends."""
        block, self.block = self.block, None
        if block is None:
            return
        if block.state in _PREAMBLE:
            self.find(rules.ENDS_IN_PREAMBLE, block.last, block.state)
        if block.state and not self.by_extents:
            self.find(rules.NO_END_RECORD, block.last)
        if self.by_extents and block.foreign and not block.cut:
            self.find(rules.LOST_TAIL, block.last, 16 * block.typed)

    def follow(self, block: Block, name: str, at: int) -> None:
        """Hold a record against the one before."""
        if name not in _FOLLOWERS[block.state]:
            self.find(rules.OUT_OF_ORDER, at, f"{block.state or 'nothing'} to {name}")
        block.state, block.last = name, at

    def settle(self, block: Block, at: int) -> None:
        """Decide what the thread of a block is, where something of it is read."""
        if not block.settled:
            block.settled = True
            if block.thread is None:
                self.find(rules.NO_THREAD, at)

    def unlink(self) -> None:
        """Let no argument belong to a call before."""
        if self.block is not None:
            self.block.call = None

    def process_of(self, block: Block) -> int:
        """Return the process of a block's thread."""
        if block.process is not None:
            return block.process
        return block.thread or 0 if self.version == wire.EXTENTS_VERSION else 0

    def place(self, record: PlacedRecord, block: Block) -> None:
        """Say on a record what is known of its thread."""
        record.thread = block.thread or 0
        record.process = self.process_of(block)
        record.frequency = self.frequency

    # --- Records ---

    def called(self, at: int) -> XrayRecord:
        """Return the function record at ``at``."""
        word, delta = self.function.unpack_from(self.view, at)
        if self.dialect.byte_order == "big":
            kind, number = word >> 28 & 7, word & wire.MAX_FUNCTION_ID
        else:
            kind, number = word >> 1 & 7, word >> 4
        end = at + wire.FUNCTION_BYTES
        name = wire.FUNCTION_NAMES.get(kind)
        if name is None:
            self.garbage += 1
            self.unlink()
            return self.damaged(rules.BAD_FUNCTION, at, end, kind)
        self.garbage = 0
        block = self.block or self.open_block()
        self.follow(block, "function", at)
        self.settle(block, at)
        block.base = self.later(block, delta, at)
        record = Function(
            offset=at,
            nbytes=wire.FUNCTION_BYTES,
            kind=name,
            function_id=number,
            delta=delta,
            tsc=block.base,
            cpu=block.cpu,
        )
        self.place(record, block)
        if self.dialect.byte_order == "big-lsb" and word & 1:
            record.raw = self.view[at:end].tobytes()
        block.call = record
        return record

    def later(self, block: Block, delta: int, at: int) -> int | None:
        """Return the time ``delta`` ticks after the record before."""
        if block.base is None:
            if not block.timeless:
                block.timeless = True
                self.find(rules.NO_TIME, at)
            return None
        return block.base + delta & U64_MAX

    def metadata(self, at: int, kind: MetadataKind) -> XrayRecord:
        """Return the metadata record of a known kind at ``at``."""
        if kind in EVENTS:
            return self.event(at, kind)
        self.garbage = 0
        codec = metadata_codec(kind, self.version, self.order)
        values = codec.unpack(self.view, at)
        record = METADATA[kind](
            offset=at,
            nbytes=wire.METADATA_BYTES,
            padding=codec.padding(self.view, at),
            frequency=self.frequency,
            **values,
        )
        if self.version < _NEWER_KINDS.get(kind, 0):
            self.find(rules.NEWER_RECORD, at, record.record)
        if isinstance(record, NewBuffer):
            block = self.block
            if block is None or block.settled or block.thread is not None:
                self.close_block()
                block = self.open_block()
            block.thread = record.thread
        elif isinstance(record, BufferExtents):
            self.bound(record)
        elif isinstance(record, WallTime) and not 0 <= record.micros < 1_000_000:
            self.find(rules.BAD_WALL_TIME, at, record.micros)
        elif isinstance(record, EndOfBuffer) and self.version >= wire.EXTENTS_VERSION:
            self.find(rules.END_RECORD, at)
            self.unlink()
            return record
        block = self.open_block()
        self.follow(block, record.record, at)
        if isinstance(record, CallArgument):
            self.argument(block, record)
            return record
        block.call = None
        if isinstance(record, NewCpu | TscWrap):
            self.clock(block, record)
        elif isinstance(record, Pid):
            if not block.settled:
                block.process = record.process
        elif isinstance(record, EndOfBuffer):
            self.block = None
            self.padded = self.buffer_end(at + wire.METADATA_BYTES)
        return record

    def bound(self, record: BufferExtents) -> None:
        """Begin the buffer of these extents."""
        if self.by_extents and self.bounded:
            self.find(rules.EXTENTS_OVERLAP, record.offset, self.limit - record.offset)
        self.close_block()
        self.by_extents = True
        self.page = 0
        self.limit = record.offset + wire.METADATA_BYTES + record.bytes
        self.bounded = self.limit <= self.size
        if not self.bounded:
            self.find(rules.EXTENTS_PAST_FILE, record.offset, self.limit - self.size)
            self.limit = self.size

    def buffer_end(self, end: int) -> int:
        """Return where the space of a version-1 buffer ends whose records end at ``end``."""
        follows = self.begins(end, self.new_buffer)
        if self.by_extents:
            return end if follows or self.begins(end, self.extents) else self.limit
        if self.page:
            used = end - wire.HEADER_BYTES
            boundary = wire.HEADER_BYTES + -(-used // self.page) * self.page
            if boundary == self.size or self.begins(boundary, self.new_buffer):
                return boundary
            if boundary < self.size and not follows:
                return boundary
            self.unbound()
        return end if follows else self.size

    def argument(self, block: Block, record: CallArgument) -> None:
        """Find the call of an argument."""
        self.settle(block, record.offset)
        self.place(record, block)
        call, record.row_offset = block.call, record.offset
        if call is None:
            self.find(rules.ORPHAN_ARGUMENT, record.offset)
        else:
            record.row_offset = call.offset
            record.tsc, record.cpu = call.tsc, call.cpu

    def clock(self, block: Block, record: NewCpu | TscWrap) -> None:
        """Take the time, and the CPU, that a record says."""
        base, tsc = block.base, record.tsc
        if base is not None and abs(tsc - base) > wire.CUT_RECORD_JUMP:
            mended = self.cut_time(record, base)
            if mended is None:
                apart = (tsc - base + (1 << 63)) & U64_MAX  # counters wrap
                self.find(rules.TIME_JUMP, record.offset, apart - (1 << 63))
            else:
                self.find(rules.CUT_RECORD, record.offset, mended)
                if self.mend:
                    record.tsc = mended
                    record.nbytes = _CUT_BYTES
                elif self.twin is None:
                    self.split(record, mended)
        if isinstance(record, NewCpu):
            block.cpu = record.cpu
        else:
            record.cpu = block.cpu
        block.base = record.tsc
        self.place(record, block)

    def split(self, record: NewCpu | TscWrap, mended: int) -> None:
        """Let a twin report the findings, while this walk reads the records as they are."""
        twin = copy.copy(self)
        twin.mend = True
        twin.block = copy.copy(self.open_block())
        twin.block.base = mended
        if isinstance(record, NewCpu):
            twin.block.cpu = record.cpu
        twin.at = record.offset + _CUT_BYTES
        self.twin = twin

    def cut_time(self, record: NewCpu | TscWrap, base: int) -> int | None:
        """Return the time of a record whose second half was overwritten.

        None where it was not: where the bits that are left lead to no time soon after ``base``,
        or no record is in the second half. Seen on little-endian machines alone.
        """
        if self.order != "little":
            return None
        start, stop = (record.offset + each for each in _CUT_TSC[record.kind])
        period = 1 << 8 * (stop - start)
        low = int.from_bytes(self.view[start:stop], "little")
        mended = base - base % period + low
        if mended < base:
            mended += period
        if not base <= mended < min(base + _CUT_REACH, U64_MAX + 1):
            return None
        word, _ = self.function.unpack_from(self.view, record.offset + _CUT_BYTES)
        if word & 1:
            kind = word >> 1 & 0x7F
            sound = kind in wire.AFTER_CLOCK or (
                kind == MetadataKind.END_OF_BUFFER and self.version < wire.EXTENTS_VERSION
            )
        else:
            sound = word >> 1 & 7 in wire.FUNCTION_NAMES and bool(word >> 4)
        return mended if sound else None

    def event(self, at: int, kind: MetadataKind) -> XrayRecord:
        """Return the event at ``at``, whose first 16 bytes are there, and its payload."""
        start = at + wire.METADATA_BYTES
        codec = metadata_codec(kind, self.version, self.order)
        values = codec.unpack(self.view, at)
        size = values.pop("size")
        if size < 0:
            return self.lost(rules.BAD_SIZE, at, self.rest(at), size)
        end = start + size
        while end > self.limit:
            cut = self.crossing(at, end)
            if cut is not None:
                return cut
        if self.rest(at) < end:
            return self.lost(rules.PAST_BUFFER, at, self.rest(at), end - at)
        self.garbage = 0
        name = EVENTS[kind].record
        if self.version < _NEWER_KINDS.get(kind, 0):
            self.find(rules.NEWER_RECORD, at, name)
        if not size:
            self.find(rules.EMPTY_EVENT, at)
        block = self.open_block()
        self.follow(block, name, at)
        self.settle(block, at)
        block.call = None
        if "tsc" in values:
            tsc = values["absolute"] = values.pop("tsc")
            cpu = values["own_cpu"] = values.pop("cpu", None)
        else:
            tsc = block.base = self.later(block, values["delta"], at)
            cpu = block.cpu
            if kind == MetadataKind.TYPED_EVENT:
                block.typed += 1
                block.foreign |= bool(codec.padding(self.view, at))
        if self.max_record and end - at > self.max_record:
            return self.damaged(rules.RECORD_TOO_LARGE, at, end, end - at)
        record = EVENTS[kind](
            offset=at,
            nbytes=end - at,
            data=self.view[start:end].tobytes(),
            padding=codec.padding(self.view, at),
            tsc=tsc,
            cpu=cpu,
            **values,
        )
        self.place(record, block)
        return record


def _places(view: memoryview, value: int, at: int) -> Iterator[int]:
    """Yield where bytes of this value are from ``at`` on, a piece of the file at a time."""
    piece = 1 << 12
    while at < len(view):
        chunk = view[at : at + piece].tobytes()
        found = chunk.find(value)
        while found >= 0:
            yield at + found
            found = chunk.find(value, found + 1)
        at += len(chunk)
        piece = min(2 * piece, 1 << 20)


def _is_zero(data: memoryview) -> bool:
    """Return whether all bytes are zero."""
    piece = 1 << 16
    return not any(
        data[at : at + piece].tobytes().strip(b"\0") for at in range(0, len(data), piece)
    )
