"""Record JSON in bulk, the third way beside records and tables: plain events from templates.

An event is put together from parts that other events have too: its shape (type, size, number of
arguments), its thread, its strings, the names and types of its arguments. Where all parts are
known, from events that ``records.py`` decoded and showed, only times and values are new. The
lines are exactly those of ``orjson.dumps(record.to_json())``, to which tests hold them; what is
not plain goes that way. Lines and cached texts are bounded by bytes, however long strings are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from fx_trace import layout
from fx_trace.layout import ArgType, RecordType
from fx_trace.read.decoder import Reading

__all__ = ["record_lines"]

LINES = 4096
"""Lines in a chunk."""
CHUNK_BYTES = 4 << 20
"""Bytes of lines after which a chunk ends."""
RELEASED = 8 << 20
"""Bytes of the file that are given back at a time."""
CACHED_BYTES = 16 << 20
"""Bytes of texts that are kept; with more, all are forgotten."""
_NARROW = (ArgType.INT32, ArgType.UINT32)
_LOW24 = 0xFFFFFF
_LOW32 = 0xFFFFFFFF
_SIGN = 1 << 63
_KEYS = ["record", "offset", "nbytes", "event", "timestamp", "thread", "category", "name", "args"]

Shape = tuple[str, str, int, int, bool]
"""Texts before the time and after the arguments; words, arguments, whether a last word follows."""


def record_lines(
    reading: Reading, done: Callable[[int, int], None] = lambda _start, _stop: None
) -> Iterator[bytes]:
    """The JSON of every record of a reading, in chunks of whole lines.

    ``done`` is called with bytes that are not read again.
    """
    return _Lines(reading).chunks(done)


class _Lines:
    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._whole = 0
        """Words up to the end of the span that is read; 0 where it has no events to learn from."""
        self._words: memoryview[int] = memoryview(b"")
        self._doubles: memoryview[float] = memoryview(b"").cast("d")
        self._shapes: dict[int, Shape] = {}
        """By bits 0 to 23 of the header."""
        self._threads: dict[int, str] = {}
        self._strings: dict[int, str] = {0: '""'}
        self._cached = 0
        self._pending = 0
        """Bytes of the lines that wait."""
        self._args: dict[int, tuple[str, str]] = {}
        """By an argument's header word (bits 0 to 31 where the rest is its value): texts before
        the value and after it."""

    def chunks(self, done: Callable[[int, int], None]) -> Iterator[bytes]:
        """Chunks of whole lines."""
        out: list[str] = []
        for start, end, all_records in self._reading.spans():
            self._whole = end // 8 if all_records and not self._reading.big_endian else 0
            view = self._reading.framer.view[: 8 * self._whole]
            self._words, self._doubles = view.cast("Q"), view.cast("d")
            behind = at = start
            while at < end:
                if at % 8 == 0:
                    at = 8 * self._plain_events(at // 8, out)
                if at < end and len(out) < LINES and self._pending < CHUNK_BYTES:
                    at = self._record(at, out)
                if len(out) >= LINES or self._pending >= CHUNK_BYTES:
                    yield ("\n".join(out) + "\n").encode()
                    out.clear()
                    self._pending = 0
                    if at - behind > RELEASED:
                        done(behind, at)
                        behind = at
        if out:
            yield ("\n".join(out) + "\n").encode()

    def _record(self, at: int, out: list[str]) -> int:
        """The record at byte ``at`` by ``records.py``; gives where it ends."""
        reading = self._reading
        header = self._words[at // 8] if at // 8 < self._whole else 0
        kind = header & 15
        # What was resolved must stay true: registering an index again makes it untrue.
        if kind == RecordType.METADATA:
            self._threads.clear()
            self._forget_strings()
        elif kind == RecordType.THREAD:
            self._threads.pop(layout.THREAD.unpack(header)["thread_index"], None)
        elif kind == RecordType.STRING:
            index = layout.STRING.unpack(header)["string_index"]
            if index in self._strings:
                self._forget_strings()
        record = reading.record(at)
        shown = record.to_json()
        line = orjson.dumps(shown).decode()
        out.append(line)
        self._pending += len(line)
        if kind == RecordType.EVENT and reading.clean:
            self._learn(header, at // 8, shown)
        return at + record.nbytes

    def _forget_strings(self) -> None:
        self._strings = {0: '""'}
        self._args.clear()
        self._cached = 0

    def _learn(self, header: int, at: int, shown: dict[str, Any]) -> None:
        """Take the parts of an event that ``records.py`` read without any finding."""
        refs = shown.get("refs", {})
        keys = [key for key in shown if key != "refs"]
        word = keys[len(_KEYS) :]
        has_word = len(word) == 1 and word[0] != "scope"
        if keys[: len(_KEYS)] != _KEYS or (word and not has_word) or "thread" not in refs:
            return  # an instant with a scope looks, from its header, like one without
        if _inline(shown, refs, "category", "name"):
            return
        arguments = self._arguments(at + 2, shown["args"])
        if arguments is None:
            return
        if self._cached > CACHED_BYTES:
            self._forget_strings()
            return
        self._args.update(arguments)
        self._cached += sum(len(start) for start, _ in arguments.values())
        for key in ("category", "name"):
            text = self._strings[refs.get(key, 0)] = _text(shown[key])
            self._cached += len(text)
        self._threads[refs["thread"]] = _text(shown["thread"])
        self._shapes[header & _LOW24] = (
            f',"nbytes":{shown["nbytes"]},"event":{_text(shown["event"])},"timestamp":',
            f"],{_text(word[0])}:" if has_word else "]",
            shown["nbytes"] // 8,
            len(shown["args"]),
            has_word,
        )

    def _arguments(self, at: int, shown: list[dict[str, Any]]) -> dict[int, tuple[str, str]] | None:
        """Texts of the arguments at word ``at``; None where one is not plain."""
        made: dict[int, tuple[str, str]] = {}
        for arg in shown:
            refs = arg.get("refs", {})
            kind = arg["type"]
            if _inline(arg, refs, "name"):
                return None
            word = self._words[at]
            start = f'{{"name":{_text(arg["name"])},"type":{_text(kind)},"value":'
            name = f'"name":{refs["name"]}' if "name" in refs else ""
            end = f',"refs":{{{name}}}}}' if name else "}"
            if kind == "string":
                if _inline(arg, refs, "value"):
                    return None
                text = self._strings[refs.get("value", 0)] = _text(arg["value"])
                self._cached += len(text)
                made[word & _LOW32] = (start, name)
            elif kind in ("int32", "uint32"):
                made[word & _LOW32] = (start, end)
            elif kind in ("null", "bool"):
                made[word] = (f"{start}{_text(arg['value'])}{end}", "")
            elif kind in ("int64", "uint64", "double", "pointer", "koid"):
                made[word] = (start, end)
                at += 1
            else:
                return None
            at += 1
        return made

    def _plain_events(self, at: int, out: list[str]) -> int:
        """Lines of the events from word ``at`` on whose parts are known; gives where they end."""
        words, shapes, threads, strings = self._words, self._shapes, self._threads, self._strings
        before = len(out)
        add = out.append
        for _ in range(LINES - before):
            header = words[at] if at < self._whole else 0
            shape = shapes.get(header & _LOW24)
            thread_ref = header >> 24 & 0xFF
            category_ref = header >> 32 & 0xFFFF
            name_ref = header >> 48
            thread = threads.get(thread_ref)
            category = strings.get(category_ref)
            name = strings.get(name_ref)
            if shape is None or thread is None or category is None or name is None:
                break
            middle, last, size, count, has_word = shape
            end = at + size
            if end > self._whole:
                break
            inner = self._plain_arguments(at + 2, end - has_word, count) if count else ""
            if inner is None or (not count and size != 2 + has_word):
                break
            if self._pending >= CHUNK_BYTES:
                break
            category_shown = f',"category":{category_ref}' if category_ref else ""
            name_shown = f',"name":{name_ref}' if name_ref else ""
            word = words[end - 1] if has_word else ""
            self._pending += len(name) + len(category) + len(inner) + len(middle)
            add(
                f'{{"record":"event","offset":{8 * at}{middle}{words[at + 1]},"thread":{thread},'
                f'"category":{category},"name":{name},"args":[{inner}{last}{word},'
                f'"refs":{{"thread":{thread_ref}{category_shown}{name_shown}}}}}'
            )
            at = end
        self._reading.index += len(out) - before
        return at

    def _plain_arguments(self, at: int, end: int, count: int) -> str | None:
        """``count`` arguments from word ``at`` to ``end``; None where one is not known so well."""
        words, args = self._words, self._args
        shown = []
        while at < end:
            word = words[at]
            kind = word & 15
            at += 1
            if kind in _NARROW:
                arg = args.get(word & _LOW32)
                value: int | float = word >> 32
                if kind == ArgType.INT32 and value >> 31:  # type: ignore[operator]
                    value -= 1 << 32
            elif kind == ArgType.STRING:
                arg = args.get(word & _LOW32)
                value_ref = word >> 32
                text = self._strings.get(value_ref)
                if arg is None or text is None:
                    return None
                value_shown = f'"value":{value_ref}' if value_ref else ""
                comma = "," if arg[1] and value_shown else ""
                refs = f"{arg[1]}{comma}{value_shown}"
                shown.append(f'{arg[0]}{text},"refs":{{{refs}}}}}' if refs else f"{arg[0]}{text}}}")
                continue
            else:
                arg = args.get(word)
                if arg is None:
                    return None
                if not arg[1]:
                    shown.append(arg[0])
                    continue
                if at >= end:
                    return None
                value = words[at]
                if kind == ArgType.DOUBLE:
                    value = self._doubles[at]
                    if not math.isfinite(value):
                        return None
                    at += 1
                    shown.append(f"{arg[0]}{_text(value)}{arg[1]}")
                    continue
                if kind == ArgType.INT64 and value & _SIGN:
                    value -= 1 << 64
                at += 1
            if arg is None:
                return None
            shown.append(f"{arg[0]}{value}{arg[1]}")
        return ",".join(shown) if at == end and len(shown) == count else None


def _text(value: Any) -> str:
    return orjson.dumps(value).decode()


def _inline(shown: dict[str, Any], refs: dict[str, Any], *keys: str) -> bool:
    """Whether one of these strings is inline, or not UTF-8: then it is not its index alone."""
    return any((shown[key] and key not in refs) or f"{key}_bytes_hex" in shown for key in keys)
