"""llvm-xray: what LLVM's reader of XRay traces makes of a file: the table of its quirks, a model.

The model is that of llvm-xray 19: all records, then the order of records in each block, then their
events. A file is read whole or refused; only `fdr-dump` shows the records before an error.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from fx_xray import format as wire
from fxframework.io.words import view_of
from fxframework.model.prediction import Effect, Prediction, Quirk

if TYPE_CHECKING:
    from fxframework.model.capture import Capture

__all__ = ["QUIRKS", "predict", "quirks"]

R, D, M = Effect.REFUSES, Effect.DROPS, Effect.MISREADS


QUIRKS: Final[tuple[Quirk, ...]] = (
    Quirk("header", R, "a file that is too short, or of an unknown version or type, is refused"),
    Quirk("no-records", R, "a log without a buffer is refused"),
    Quirk("extents", R, "bytes behind the last buffer without another buffer extents record are "
          "refused"),
    Quirk("metadata-kind", R, "a metadata record of an unknown kind, or an end of buffer from "
          "version 2 on, is refused"),
    Quirk("function-kind", R, "a function record of kinds 4 to 7 is refused"),
    Quirk("cut", R, "a record that is cut off by the end of the file is refused"),
    Quirk("event-size", R, "an event with a payload of no bytes, or of a negative size, is "
          "refused"),
    Quirk("over-read", R, "a record that reaches beyond the extents of its buffer is refused; the "
          "runtime writes such a log where there are typed events"),
    Quirk("transition", R, "a block whose records are in another order than the runtime writes is "
          "refused"),
    Quirk("terminal", R, "a block that ends within its first records is refused"),
    Quirk("basic-size", R, "a basic log without a record, or whose size is not a multiple of 32 "
          "bytes, is refused"),
    Quirk("basic-record", R, "a basic record of an unknown type or kind is refused"),
    Quirk("basic-argument", R, "an argument of basic mode that does not follow a record of its "
          "function and thread is refused"),
    Quirk("between", D, "bytes between buffers are skipped up to the next byte 0x0F"),
    Quirk("short-extents", D, "a buffer whose extents reach beyond the end of the file is read up "
          "to there, as if it were whole"),
    Quirk("after-end", D, "records behind an end of buffer, up to the next buffer, are left out"),
    Quirk("event", D, "custom and typed events are in `convert -f yaml` and `fdr-dump` alone"),
    Quirk("payload", M, "the payload of an event that is not UTF-8 is cut at the first such byte "
          "in YAML"),
    Quirk("typed-event", M, "typed events of versions 3 and 4 are read in the layout of version "
          "5"),
    Quirk("event-cpu", M, "the padding of a custom event of versions 1 to 3 is read as its CPU"),
    Quirk("argument", M, "a call with an argument becomes an entry, whatever it is"),
    Quirk("order", M, "`account`, `stack` and `convert -sort=false` take threads in the order of "
          "a hash table, and reject what is earlier than what they took first"),
)  # fmt: skip

NAMES: Final = {
    wire.NEW_BUFFER: ("NewBuffer", "a new buffer record"),
    wire.END_OF_BUFFER: ("EndOfBuffer", "an end-of-buffer record"),
    wire.NEW_CPU: ("NewCPUId", "a new cpu id record"),
    wire.TSC_WRAP: ("TSCWrap", "a new TSC wrap record"),
    wire.WALL_TIME: ("WallClockTime", "a wallclock record"),
    wire.CUSTOM_EVENT: ("CustomEvent", "a custom event record"),
    wire.CALL_ARGUMENT: ("CallArg", "a call argument record"),
    wire.BUFFER_EXTENTS: ("BufferExtents", "a buffer extent"),
    wire.TYPED_EVENT: ("TypedEvent", "a typed event record"),
    wire.PID: ("PIDEntry", "a process ID record"),
}
"""What its messages call a kind, in an order of records and where a record is cut off."""
FUNCTION: Final = len(NAMES)
UNKNOWN: Final = FUNCTION + 1
"""States of a block beside the kinds of its last metadata record."""
STATES: Final = {**{kind: name for kind, (name, _) in NAMES.items()}, FUNCTION: "Function",
                 UNKNOWN: "Unknown"}  # fmt: skip
_BODY: Final = frozenset(
    {wire.NEW_CPU, wire.TSC_WRAP, wire.CUSTOM_EVENT, wire.TYPED_EVENT, wire.END_OF_BUFFER, FUNCTION}
)
_CALL: Final = _BODY | {wire.CALL_ARGUMENT}
ORDER: Final[dict[int, frozenset[int]]] = {
    UNKNOWN: frozenset({wire.NEW_BUFFER}),
    wire.NEW_BUFFER: frozenset({wire.WALL_TIME}),
    wire.WALL_TIME: frozenset({wire.PID, wire.NEW_CPU}),
    wire.PID: frozenset({wire.NEW_CPU}),
    wire.NEW_CPU: _BODY,
    wire.TSC_WRAP: _BODY,
    wire.CUSTOM_EVENT: _BODY,
    wire.TYPED_EVENT: _BODY,
    FUNCTION: _CALL,
    wire.CALL_ARGUMENT: _CALL,
    wire.END_OF_BUFFER: frozenset({wire.NEW_BUFFER}),
}
"""What may follow what in a block."""
ENDS: Final = _CALL
"""What a block may end with."""
MODES: Final = (("Basic/Naive", "XRay log"), ("FDR", "XRay FDR log"))
UINT32: Final = 0xFFFFFFFF
"""Cuts the bytes of a buffer to 32 bits, as LLVM counts them."""
HEAD: Final = wire.place(wire.FileHeader, "type").end
"""Bytes of a header that say what it is."""
EXTENTS_END: Final = wire.place(wire.BufferExtents, "bytes").end
FEW: Final = 16
"""Function records one after another from which on more are looked at at once."""
AT_ONCE: Final = 1 << 12
"""Bytes of them."""
CALLER: Final = ("function_id", "thread", "process")
"""What an argument of basic mode has to have in common with its call."""


class _Refused(Exception):  # noqa: N818 (the outcome of reading, not an error of ours)
    """LLVM refuses the file: the quirk, the place, and its message word by word."""

    def __init__(self, key: str, offset: int, message: str = "") -> None:
        super().__init__(message or key)
        self.key, self.offset, self.message = key, offset, message


def quirks() -> tuple[Quirk, ...]:
    """Return the table."""
    return QUIRKS


def predict(capture: Capture, found: Prediction) -> None:
    """Add what llvm-xray makes of the bytes of a trace: little-endian first, then big-endian."""
    data = view_of(capture.source.data)
    loading = _Loading(data, found, big=False)
    if not loading.known:
        swapped = _Loading(data, found, big=True)
        loading = swapped if swapped.known else loading
    try:
        loading.load()
    except _Refused as why:
        found.add(why.key, why.offset, loading.records, why.message)
    for said, (key, offset, record) in loading.wrong.items():
        found.add(key, offset, record, said)
    if len(loading.threads) > 1:
        found.add("order", wire.HEADER_BYTES, times=len(loading.threads) - 1)
    found.records = loading.records


class _Loading:
    """One attempt to load a file, in one byte order."""

    def __init__(self, data: memoryview, found: Prediction, *, big: bool) -> None:
        self.data = data
        self.size = len(data)
        self.found = found
        self.records = 0
        self.words = np.dtype(np.uint32).newbyteorder(">" if big else "<")
        self.not_a_call = wire.IS_METADATA.mask << 24 * big | wire.KIND_2.mask
        """Bits of the first word that no sound function record has."""
        number_of = partial(wire.number_of, big=big)
        self.function_kind = number_of(wire.Function, "kind")
        self.thread_of = number_of(wire.NewBuffer, "thread")
        self.process_of = number_of(wire.Pid, "process")
        self.extents_of = number_of(wire.BufferExtents, "bytes")
        self.event_size = number_of(wire.CustomEvent, "_size")
        self.basic_type = number_of(wire.BasicFunction, "_type")
        self.caller = [number_of(wire.BasicFunction, name) for name in CALLER]
        self.argument_caller = [number_of(wire.BasicArgument, name) for name in CALLER]
        self.state = UNKNOWN
        self.block: int | None = None
        """Where the block at hand begins; None before the first record of one."""
        self.wrong: dict[str, tuple[str, int, int]] = {}
        """What is said of blocks with records in a wrong order; their order is looked at when all
        records are read, block by block in the order of a hash table."""
        self.thread = self.process = 0
        self.threads: set[tuple[int, int]] = set()
        self.last_kind = -1
        """Kind of the last function record; -1 where an event came after it."""

        head = bytes(data[:HEAD]).ljust(HEAD, b"\xff")
        self.version = number_of(wire.FileHeader, "version")(head, 0)
        self.kind = number_of(wire.FileHeader, "type")(head, 0)

    @property
    def known(self) -> bool:
        """Whether the header is of a known type and version."""
        if self.kind == wire.FDR:
            return self.version in wire.FDR_VERSIONS
        return self.kind == wire.BASIC and self.version in wire.BASIC_VERSIONS

    def load(self) -> None:
        """Read the header and all records. Raises _Refused."""
        if self.size < HEAD:
            raise _Refused("header", 0, "too small for XRay.")
        mode, name = MODES[self.kind == wire.FDR]
        if not self.known:
            said = f"Unsupported version for {mode} Mode logging: {self.version}"
            raise _Refused("header", 0, said if self.kind in {wire.BASIC, wire.FDR} else "")
        if self.size < wire.HEADER_BYTES:
            raise _Refused("header", 0, f"Not enough bytes for an {name}.")
        if self.kind == wire.FDR:
            self._recorder()
        else:
            self._basic()

    # --- Flight data recorder --------------------------------------------------------------------

    def _recorder(self) -> None:
        data, size = self.data, self.size
        at, left = wire.HEADER_BYTES, 0
        bounded = self.version >= wire.EXTENTS_VERSION + 1
        calls = 0
        while at < size:
            if bounded and not left:
                start = at
                at, left = self._next_extents(at)
                if at - wire.METADATA_BYTES > start:
                    self.found.add("between", start, self.records)
                self._check_extents(at, left)
                self.records += 1
                continue
            first = data[at]
            if wire.IS_METADATA.get(first):
                kind = wire.METADATA_KIND.get(first)
                behind = self._metadata(at, kind)
                if kind == wire.BUFFER_EXTENTS:
                    left = self.extents_of(data, at) & UINT32
                    if bounded:
                        self._check_extents(behind, left)
                    self.records += 1
                    at = behind
                    continue
                name = f"Metadata:{NAMES[kind][0]}"
                if kind == wire.CUSTOM_EVENT and self.version >= wire.EVENT_DELTA_VERSION:
                    name += "V5"
            else:
                kind, behind, name = FUNCTION, at + wire.FUNCTION_BYTES, "Function"
                if behind > size:
                    raise _Refused("cut", at, f"Invalid offset for a function record ({at}).")
                called = self.function_kind(data, at)
                if called > wire.ENTER_ARG:
                    said = f"Unknown function record type '{called}' at offset {at}."
                    raise _Refused("function-kind", at, said)
            if bounded:
                over = behind - at - left
                if over > 0:
                    said = f"Buffer over-read at offset {behind} (over-read by {over} bytes); "
                    raise _Refused("over-read", at, f"{said}Record Type = {name}.")
                left -= behind - at
            self._enter_block(kind, at)
            self.records += 1
            at = behind
            calls = calls + 1 if kind == FUNCTION else 0
            if calls:
                self.last_kind = called
            if calls > FEW and self.state == FUNCTION:
                more = self._calls(at, min(left, size - at) if bounded else size - at)
                at, left = at + more, left - more
        self._end_block(size)

    def _calls(self, at: int, nbytes: int) -> int:
        """Count the sound function records from a byte on, one after another; return their bytes.

        Since there is one before them, they may follow.
        """
        count = min(nbytes, AT_ONCE) // wire.FUNCTION_BYTES
        words = np.frombuffer(self.data, self.words, 2 * count, at)[::2]
        others = np.flatnonzero(words & self.not_a_call)
        count = int(others[0]) if others.size else count
        if count:
            self.last_kind = wire.FUNCTION_KIND.get(int(words[count - 1]))
        self.records += count
        return count * wire.FUNCTION_BYTES

    def _next_extents(self, at: int) -> tuple[int, int]:
        """Return the byte behind the next buffer extents record, and the bytes of that buffer."""
        introducer = wire.FIRST_EXTENTS
        end = self.size
        step = 1 << 16
        start = at
        while at < end:
            found = bytes(self.data[at : at + step]).find(introducer)
            if found >= 0:
                at += found
                self._metadata(at, wire.BUFFER_EXTENTS)
                return at + wire.METADATA_BYTES, self.extents_of(self.data, at) & UINT32
            at += step
        raise _Refused("extents", start, "Failed to find the next BufferExtents record.")

    def _check_extents(self, at: int, left: int) -> None:
        if at + left > self.size:
            self.found.add("short-extents", at - wire.METADATA_BYTES, self.records)

    def _metadata(self, at: int, kind: int) -> int:
        """Return the byte behind a metadata record and its payload. Raises _Refused."""
        if kind not in NAMES:
            raise _Refused("metadata-kind", at, f"Invalid metadata record type: {kind}")
        if kind == wire.END_OF_BUFFER and self.version >= wire.EXTENTS_VERSION:
            said = "End of buffer records are no longer supported starting version 2 of the log."
            raise _Refused("metadata-kind", at, said)
        _, name = NAMES[kind]
        behind = at + wire.METADATA_BYTES
        needed = EXTENTS_END if kind == wire.BUFFER_EXTENTS else wire.METADATA_BYTES
        if at + needed > self.size:
            raise _Refused("cut", at, f"Invalid offset for {name} ({at + wire.SIZE_AT}).")
        if kind not in {wire.CUSTOM_EVENT, wire.TYPED_EVENT}:
            return behind
        size = self.event_size(self.data, at)
        event = "custom" if kind == wire.CUSTOM_EVENT else "typed"
        if size <= 0:
            said = f"Invalid size for {event} event (size = {size}) at offset {at + wire.DELTA_AT}."
            raise _Refused("event-size", at, said)
        if behind + size > self.size:
            said = f"Cannot read {size} bytes of custom event data from offset {behind}."
            raise _Refused("cut", at, said)
        self._check_event(at, kind, behind, size)
        return behind + size

    def _check_event(self, at: int, kind: int, payload: int, size: int) -> None:
        """Note what an event loses that is kept otherwise."""
        found = self.found
        found.add("event", at, self.records)
        try:
            str(self.data[payload : payload + size], "utf-8")
        except UnicodeDecodeError:
            found.add("payload", at, self.records)
        if kind == wire.TYPED_EVENT and self.version < wire.EVENT_DELTA_VERSION:
            found.add("typed-event", at, self.records)
        if kind == wire.CUSTOM_EVENT and self.version < wire.EVENT_DELTA_VERSION - 1:
            found.add("event-cpu", at, self.records)

    def _enter_block(self, kind: int, at: int) -> None:
        """Put a record into its block; a wrong order is kept for the end."""
        if kind == wire.NEW_BUFFER:
            self._end_block(at)
            self.thread, self.process = self.thread_of(self.data, at), 0
        elif kind == wire.PID:
            self.process = self.process_of(self.data, at)
        if self.block is None:
            self.block, self.state = at, UNKNOWN
        state = self.state
        if state == wire.END_OF_BUFFER and kind != wire.NEW_BUFFER:
            self.found.add("after-end", at, self.records)
            return
        if kind not in ORDER[state]:
            said = f"BlockVerifier: Invalid transition from {STATES[state]} to {STATES[kind]}."
            self.wrong.setdefault(said, ("transition", at, self.records))
        if kind == wire.CALL_ARGUMENT:
            if self.last_kind not in {wire.ENTER, wire.ENTER_ARG}:
                self.found.add("argument", at, self.records)
        elif kind in {wire.CUSTOM_EVENT, wire.TYPED_EVENT}:
            self.last_kind = -1
        self.state = kind

    def _end_block(self, at: int) -> None:
        """End the block at hand; at the end of a file there is always one, if an empty one."""
        if self.block is None and at < self.size:
            return
        if self.block is None:
            self.state = UNKNOWN
        if self.state not in ENDS:
            said = (
                f"BlockVerifier: Invalid terminal condition {STATES[self.state]}, malformed block."
            )
            key = "no-records" if self.block is None else "terminal"
            offset = at if self.block is None else self.block
            self.wrong.setdefault(said, (key, offset, self.records))
        self.threads.add((self.process, self.thread))
        self.block = None

    # --- Basic mode ------------------------------------------------------------------------------

    def _basic(self) -> None:
        data, size = self.data, self.size
        nbytes = wire.BASIC_BYTES
        if size == wire.HEADER_BYTES or size % nbytes:
            raise _Refused("basic-size", 0, "Invalid-sized XRay data.")
        last: list[int] = []
        for at in range(wire.HEADER_BYTES, size, nbytes):
            kind = self.basic_type(data, at)
            if kind == wire.BASIC_FUNCTION:
                called = data[at + wire.BASIC_KIND_AT]
                if called > wire.ENTER_ARG:
                    said = f"Unknown record type '{called}' at offset {at + wire.BASIC_ID_AT}."
                    raise _Refused("basic-record", at, said)
                last = [number(data, at) for number in self.caller]
                self.threads.add((last[2], last[1]))
            elif kind == wire.BASIC_ARGUMENT:
                own = [number(data, at) for number in self.argument_caller]
                if not last:
                    raise _Refused("basic-argument", at)
                checked = 3 if self.version >= wire.BASIC_VERSIONS[-1] else 2
                if own[:checked] != last[:checked]:
                    said = (
                        "Corrupted log, found arg payload following non-matching function+thread "
                        f"record. Record for function {last[0]} != {own[0]} at offset "
                        f"{at + wire.BASIC_VALUE_AT}."
                    )
                    raise _Refused("basic-argument", at, said)
            else:
                said = f"Unknown record type '{kind}' at offset {at + wire.BASIC_CPU_AT}."
                raise _Refused("basic-record", at, said)
            self.records += 1
