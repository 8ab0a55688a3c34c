"""The writer: structured records from calls, one call a record.

``LogWriter`` orders the arguments of a record as the reference writer does, refuses values that the
format cannot hold before it writes anything, and counts the records that a socket drops.
"""

from __future__ import annotations

import os
import reprlib
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import attrs

from fx_log import format as wire
from fx_log import rules
from fx_log.format import ArgType
from fx_log.severity import Level
from fx_log.write.arguments import (
    MAX_TIME,
    MAX_VALUE_WORDS,
    SEVERITY_AT,
    SIZE_AT,
    TAG_AT,
    Arguments,
    argument_bytes,
    name_head,
    octets,
    pairs,
    shortened,
    typed,
    whole_number,
)
from fx_log.write.sinks import (
    Closing,
    Levels,
    OnTooLarge,
    Output,
    Where,
    cuts,
    severity_of,
    texts,
    time_of,
)
from fxframework.errors import WriteRefusedError, refusal
from fxframework.io.words import U64_MAX
from fxframework.model.target import Clock

CACHED = 4096
"""Number of threads whose bytes are cached."""
_WORD = struct.Struct("<Q").pack
_UNSIGNED = struct.Struct("<Q").unpack_from
_HEADER = struct.Struct("<Qq").pack
_STRING = int(ArgType.STRING)
_TAG_BITS = (1 << 32) - 1
_DROPPED_HEAD = argument_bytes("num_dropped", ArgType.UINT64, 0)[:-8]
DROPPED_WORDS = len(_DROPPED_HEAD) // 8 + 1

Argument = tuple[str | bytes, int, Any]
"""Name, type and value; a string's value is text or bytes."""


@attrs.frozen
class Origin:
    """The part of a program, or the component, that writes a record."""

    target: str | None = None
    """A tag that precedes the message."""
    tag_bits: int = 0
    """The tag of a component that a manifest names."""


_UNSTATED = Origin()


class LogWriter(Levels, Closing):
    """Writes structured records.

    ``where`` is a path, whose file appears complete at ``close()``; a ``Sink``, a file, or any
    object with ``put(bytes)``, which get the records one after another; or a ``DatagramSink``.
    Records that the latter drops are counted, and the next one sent carries the count
    (``num_dropped``).

    ``pid`` and ``tid`` default to those of this process and of the calling thread. ``tags`` follow
    those of a call. ``clock`` gives the time if a call does not: a ``Clock`` (its boot time), a
    function, or by default this machine's time since boot. Records below ``minimum`` are not
    written. ``file`` and ``line`` are written for ERROR and above, or always with
    ``always_file_line``, as in the reference writer.

    With ``on_too_large="cut"``, the message of a record that is too large is cut between
    characters, then its longest texts; "..." ends a cut text. Names of keys are cut to 256 bytes,
    and finally the last keys are left out. ``cut`` counts such records, ``left_out`` the keys.
    Otherwise the record is refused. Methods raise WriteRefusedError without
    side effects. Several threads may write.
    """

    def __init__(
        self,
        where: Where,
        *,
        pid: int | None = None,
        tid: int | None = None,
        tags: Iterable[str] = (),
        clock: Clock | Callable[[], int] | None = None,
        minimum: int | str = 0,
        always_file_line: bool = False,
        on_too_large: OnTooLarge = "refuse",
        force: bool = False,
    ) -> None:
        self.minimum = severity_of(minimum)
        self.dropped = 0
        """Dropped records that no sent record has counted yet."""
        self.cut = 0
        """Number of records that were cut."""
        self.left_out = 0
        """Number of keys and tags left out of such records."""
        self._pid = None if pid is None else whole_number("pid", pid, 0, U64_MAX)
        self._tid = None if tid is None else whole_number("tid", tid, 0, U64_MAX)
        self._cut = cuts(on_too_large)
        self._always_file_line = always_file_line
        self._now = time_of(clock)
        self._lock = threading.Lock()
        self._starts: dict[tuple[int, int], bytes] = {}
        self._tags = texts(tags)
        self._output = Output(where, force=force)

    def write(
        self,
        severity: int | str,
        message: str | None,
        keys: Arguments = (),
        *,
        time: int | None = None,
        tags: Iterable[str] = (),
        file: str | None = None,
        line: int | None = None,
        pid: int | None = None,
        tid: int | None = None,
        dropped: int = 0,
        **origin: Any,
    ) -> bool:
        """Write a record. Return False if it was dropped, or is below the minimum.

        ``severity`` is a byte or a level's name, ``time`` in nanoseconds. Of ``file`` only the
        part after the last "../" is written. ``dropped`` is added to the writer's count. ``origin``
        is ``target`` and ``tag_bits`` of an Origin. A key with the name and type of a well-known
        argument is read as that.
        """
        written_by = Origin(**origin) if origin else _UNSTATED
        target = written_by.target
        tag_bits = written_by.tag_bits
        # Numbers of the usual kind are taken as they are: a call costs more than all else here.
        if type(severity) is not int or not 0 <= severity <= 255:
            severity = severity_of(severity)
        if severity < self.minimum:
            return False
        if time is None:
            time = self._now()
        if file is not None and severity < Level.ERROR and not self._always_file_line:
            file = None
        if tag_bits:
            tag_bits = whole_number("tag_bits", tag_bits, 0, _TAG_BITS)
        if dropped:
            dropped = whole_number("dropped", dropped, 0, U64_MAX)
        if type(keys) is not dict and keys:
            keys = pairs(keys)
        if tags:
            tags = texts(tags)
        start = self._start(pid, tid)
        arguments = self._arguments(message, keys, file, line, target, tags)
        try:
            body = b"".join(argument_bytes(*arg) for arg in chain.from_iterable(arguments))
            return self._send(severity, time, tag_bits, body, start, dropped)
        except WriteRefusedError as error:
            if not self._cut or error.code not in _TOO_LARGE:
                raise
        body, left_out = fitted_arguments(*arguments, MAX_VALUE_WORDS - len(start) // 8)
        is_sent = self._send(severity, time, tag_bits, body, start, dropped)
        self.cut += 1
        self.left_out += left_out
        return is_sent

    def put(
        self,
        severity: int | str,
        args: Iterable[Argument],
        *,
        time: int | None = None,
        tag_bits: int = 0,
    ) -> bool:
        """Write exactly these arguments, each (name, type, value).

        Types are those of ``fx_log.format.ArgType`` or their names. A drop is counted, but this
        record does not carry the count.
        """
        severity = severity_of(severity)
        body = b"".join(
            argument_bytes(name, _type(kind), value) for name, kind, value in _listed(args)
        )
        if time is None:
            time = self._now()
        bits = whole_number("tag_bits", tag_bits, 0, _TAG_BITS)
        return self._send(severity, time, bits, body)

    # --- Control records --------------------------------------------------------------------------

    def manifest(self, tag: int, moniker: str, url: str) -> bool:
        """Write a control record that names the component of a tag from here on."""
        args = [("moniker", _STRING, moniker), ("url", _STRING, url)]
        return self.put(Level.INFO, args, time=0, tag_bits=_control(tag))

    def rolled_out(self, tag: int, count: int, *, time: int | None = None) -> bool:
        """Write a control record with the number of a component's records that were lost."""
        args = [("rolled_out", ArgType.UINT64, count)]
        return self.put(Level.INFO, args, time=time, tag_bits=_control(tag))

    # --- Bytes ----------------------------------------------------------------------------------

    def _send(
        self,
        severity: int,
        time: int,
        tag_bits: int,
        body: bytes,
        start: bytes | None = None,
        dropped: int = 0,
    ) -> bool:
        """Send a record; the count of dropped ones is inserted after ``start``, if it has one."""
        before = start or b""
        size = wire.MIN_RECORD_WORDS + (len(before) + len(body)) // 8
        head = wire.RECORD_TYPE | tag_bits << TAG_AT | severity << SEVERITY_AT
        counted = 0
        with self._lock:
            count = self.dropped + dropped
            has_room = start is not None and size + DROPPED_WORDS <= wire.MAX_RECORD_WORDS
            if count and has_room:  # otherwise the next one
                counted = count
                before += _DROPPED_HEAD + _WORD(min(count, U64_MAX))
                size += DROPPED_WORDS
            if size > wire.MAX_RECORD_WORDS:
                raise refusal(
                    rules.TOO_LARGE,
                    f"the record needs {size} words; at most {wire.MAX_RECORD_WORDS} fit",
                )
            try:
                header = _HEADER(head | size << SIZE_AT, time)
            except struct.error:
                whole_number("time", time, -MAX_TIME - 1, MAX_TIME)
                raise
            if self._output.send(header + before + body):
                self.dropped = count - counted
                return True
            self.dropped = count + 1
            return False

    def _start(self, pid: int | None, tid: int | None) -> bytes:
        """Return the bytes of the arguments pid and tid."""
        if pid is None:
            pid = self._pid
            if pid is None:
                pid = os.getpid()
        if tid is None:
            tid = self._tid
            if tid is None:
                tid = threading.get_native_id()
        start = self._starts.get((pid, tid))
        if start is None:
            start = argument_bytes("pid", ArgType.UINT64, pid)
            start += argument_bytes("tid", ArgType.UINT64, tid)
            if len(self._starts) < CACHED:
                self._starts[pid, tid] = start
        return start

    def _arguments(
        self,
        message: str | None,
        keys: Any,
        file: str | None,
        line: int | None,
        target: str | None,
        tags: Iterable[str],
    ) -> tuple[list[Argument], list[Argument], list[Argument]]:
        """Return all arguments except pid and tid, unencoded: mandatory ones, keys, and tags."""
        always_written: list[Argument] = []
        if file is not None:
            always_written.append(("file", _STRING, octets("file", file).rpartition(b"../")[2]))
            if line is not None:
                always_written.append(("line", ArgType.UINT64, line))
        if target is not None:
            always_written.append(("tag", _STRING, octets("a tag", target)))
        if message is not None:
            always_written.append(("message", _STRING, octets("the message", message)))
        key_arguments: list[Argument] = [
            (name, *typed(name, value)) for name, value in _items(keys)
        ]
        tag_arguments: list[Argument] = [
            ("tag", _STRING, octets("a tag", tag)) for tag in (*tags, *self._tags)
        ]
        return always_written, key_arguments, tag_arguments


def _items(keys: Any) -> Iterable[tuple[Any, Any]]:
    """Return names and values, of which there may be pairs already."""
    return keys.items() if type(keys) is dict else keys


_TOO_LARGE = (rules.STRING_TOO_LONG.code, rules.TOO_LARGE.code)


def _listed(args: Iterable[Argument]) -> list[Argument]:
    try:
        return [(name, kind, value) for name, kind, value in args]
    except (TypeError, ValueError) as error:
        raise refusal(
            rules.WRONG_TYPE, f"an argument is name, type and value, not {reprlib.repr(args)}"
        ) from error


def _type(kind: int | str) -> int:
    """Return the number of an argument's type, given by number or name."""
    number: int | None = wire.ARG_TYPES.get(kind) if isinstance(kind, str) else kind
    if number is None:
        raise refusal(
            rules.UNSUPPORTED_VALUE, f"logs have no arguments of type {reprlib.repr(kind)}"
        )
    return number


def _control(tag: int) -> int:
    return wire.CONTROL | whole_number("tag", tag, 0, wire.CONTROL - 1)


def fitted_arguments(
    always: Sequence[Argument], keys: Sequence[Argument], tags: Sequence[Argument], room: int
) -> tuple[bytes, int]:
    """Return the bytes of arguments in at most ``room`` words, and the number left out.

    The message is cut first, then the longest texts; then the last keys are left out, then the last
    tags.
    """
    shorter_keys = [
        (shortened(octets("a key", name), MAX_NAME, b""), kind, value) for name, kind, value in keys
    ]
    args = [
        (name, kind, shorter_text(value) if kind == _STRING else value)
        for name, kind, value in (*always, *shorter_keys, *tags)
    ]
    sizes = [_words(*arg) for arg in args]
    excess = sum(sizes) - room
    text_indexes = [index for index, (_, kind, _) in enumerate(args) if kind == _STRING]
    # Messages first (False is less than True), then the longest ones.
    text_indexes.sort(key=lambda index: (args[index][0] != "message", -sizes[index]))
    for index in text_indexes:
        if excess <= 0:
            break
        name, kind, value = args[index]
        limit = max(LEFT, 8 * ((len(value) + 7) // 8 - excess))
        args[index] = (name, kind, shortened(value, limit))
        words = _words(*args[index])
        excess -= sizes[index] - words
        sizes[index] = words
    first_key = len(always)
    first_tag = first_key + len(keys)
    keys_from_last = reversed(range(first_key, first_tag))
    tags_from_last = reversed(range(first_tag, len(args)))
    left_out = set()
    for index in (*keys_from_last, *tags_from_last):
        if excess <= 0:
            break
        excess -= sizes[index]
        left_out.add(index)
    body = b"".join(argument_bytes(*arg) for index, arg in enumerate(args) if index not in left_out)
    return body, len(left_out)


def shorter_text(value: str | bytes) -> bytes:
    """Return the bytes of a text, cut to as many as a text may have."""
    return shortened(octets("a value", value), wire.MAX_STRING)


LEFT = 64
"""Bytes kept of a text that is cut to make room for others."""
MAX_NAME = wire.FIDL_NAME_BYTES
"""Bytes kept of a name in a record that is too large."""


def _words(name: str | bytes, kind: int, value: Any) -> int:
    """Return the words of an argument."""
    head, _ = name_head(name)
    size = wire.ARG_SIZE.get(head)
    if kind == _STRING:
        return size + (len(value) + 7) // 8
    return size + (kind not in (ArgType.BOOL, ArgType.NULL))


# --- Existing records -----------------------------------------------------------------------------


def add_dropped_count(record: bytes, count: int) -> bytes | None:
    """Return a structured record with ``count`` more dropped records, as the archivist edits them.

    The count is added to an existing argument num_dropped, up to 2^64-1, or appended as one. None
    if the bytes are not one whole record, its arguments do not chain, or it would exceed 4,095
    words.
    """
    whole_number("count", count, 0, U64_MAX)
    if len(record) < 8 * wire.MIN_RECORD_WORDS:
        return None
    (header,) = _UNSIGNED(record)
    size = wire.SIZE.get(header)
    if wire.TYPE.get(header) != wire.RECORD_TYPE or 8 * size != len(record):
        return None
    argument = 8 * wire.MIN_RECORD_WORDS
    count_place = None
    while argument < len(record):
        (word,) = _UNSIGNED(record, argument)
        argument_end = argument + 8 * wire.ARG_SIZE.get(word)
        if not argument < argument_end <= len(record):
            return None
        if count_place is None and record[argument : argument_end - 8] == _DROPPED_HEAD:
            count_place = argument_end - 8
        argument = argument_end
    if count_place is not None:
        (count_so_far,) = _UNSIGNED(record, count_place)
        total = min(count_so_far + count, U64_MAX)
        return record[:count_place] + _WORD(total) + record[count_place + 8 :]
    size += DROPPED_WORDS
    if size > wire.MAX_RECORD_WORDS:
        return None
    header = header & ~wire.SIZE.mask | wire.SIZE.put(size)
    return _WORD(header) + record[8:] + _DROPPED_HEAD + _WORD(count)
