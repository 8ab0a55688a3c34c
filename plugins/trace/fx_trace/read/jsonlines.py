"""Record JSON in bulk, the third way beside records and tables: plain events from templates.

An event is put together from parts that other events have too: its shape (type, size, number of
arguments), its thread, its strings, the names and types of its arguments. Where all parts are
known, from events that ``records.py`` decoded and showed, only times and values are new. The
lines are exactly those of ``orjson.dumps(record.to_json())``, to which tests hold them; what is
not plain goes that way. Lines and cached texts are bounded by bytes, however long strings are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from fx_trace import format as wire
from fx_trace.format import RecordType
from fx_trace.read.decoder import Walk
from fx_trace.read.plain_events import PlainEvents
from fxframework.io.words import U64_MAX

__all__ = ["record_lines"]

CHUNK_BYTES = 4 << 20
"""Bytes of lines after which a chunk ends."""
RELEASED = 8 << 20
"""Bytes of the file that are given back at a time."""
CACHED_BYTES = 16 << 20
"""Bytes of texts that are kept; with more, all are forgotten."""
_NARROW = frozenset({"int32", "uint32", "string"})
_WIDE = frozenset({"int64", "uint64", "double", "pointer", "koid"})
_FIXED = frozenset({"null", "bool"})
_PLAIN = _NARROW | _WIDE | _FIXED
_LOW24 = 0xFFFFFF
_LOW32 = 0xFFFFFFFF
_KEYS = ["record", "offset", "nbytes", "event", "timestamp", "thread", "category", "name", "args"]


def record_lines(
    walk: Walk, done: Callable[[int, int], None] = lambda _start, _stop: None
) -> Iterator[bytes]:
    """Return the JSON of every record of a walk, in chunks of whole lines.

    ``done`` is called with bytes that are not read again.
    """
    return _Lines(walk).chunks(done)


class _Lines:
    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._words: memoryview[int] = memoryview(b"").cast("q")
        self._plain = PlainEvents(CHUNK_BYTES)

    def chunks(self, done: Callable[[int, int], None]) -> Iterator[bytes]:
        """Chunks of whole lines."""
        plain = self._plain
        for start, end, all_records in self._walk.spans():
            # Where it has no events to learn from, no word is looked at.
            whole = end // 8 if all_records and not self._walk.big_endian else 0
            view = self._walk.framer.view[: 8 * whole]
            self._words = view.cast("q")
            plain.read_from(self._words, view.cast("d"), whole)
            behind = at = start
            while at < end:
                if at % 8 == 0 and at < 8 * whole:
                    at = self._events(at)
                if at < end and plain.out.used < CHUNK_BYTES:
                    at = self._record(at)
                if plain.out.used >= CHUNK_BYTES:
                    yield plain.out.take()
                    if at - behind <= RELEASED:
                        done(at, at)  # only how far this is
                    else:
                        done(behind, at)
                        behind = at
            done(at, at)
            plain.read_from(self._words[:0], view.cast("d")[:0], 0)
        if plain.out.used:
            yield plain.out.take()

    def _events(self, at: int) -> int:
        """Return the lines of the events from byte ``at`` on whose parts are known.

        Return where they end.
        """
        plain = self._plain
        plain.pos = at // 8
        plain.records = 0
        plain.run()
        self._walk.index += int(plain.records)
        return 8 * int(plain.pos)

    def _record(self, at: int) -> int:
        """Write the record at byte ``at`` by ``records.py``; return where it ends."""
        walk, plain = self._walk, self._plain
        header = self._words[at // 8] if at // 8 < len(self._words) else 0
        kind = wire.TYPE.get(header)
        # What was resolved must stay true: registering an index again makes it untrue.
        if kind == RecordType.METADATA:
            plain.forget()
        elif kind == RecordType.THREAD:
            plain.forget_thread(wire.THREAD.unpack(header & U64_MAX)["thread_index"])
        elif kind == RecordType.STRING:
            if plain.knows_string(wire.STRING.unpack(header & U64_MAX)["string_index"]):
                plain.forget()
        record = walk.record(at)
        shown = record.to_json()
        plain.out.put(orjson.dumps(shown) + b"\n")
        if kind == RecordType.EVENT and walk.clean:
            self._learn(header, at // 8, shown)
        return at + record.nbytes

    def _learn(self, header: int, at: int, shown: dict[str, Any]) -> None:
        """Take the parts of an event that ``records.py`` read without any finding."""
        plain = self._plain
        refs = shown.get("refs", {})
        keys = [key for key in shown if key != "refs"]
        word = keys[len(_KEYS) :]
        has_word = len(word) == 1 and word[0] != "scope"
        if keys[: len(_KEYS)] != _KEYS or (word and not has_word) or "thread" not in refs:
            return  # an instant with a scope looks, from its header, like one without
        if _inline(shown, refs, "category", "name") or not _plain_arguments(shown["args"]):
            return
        if plain.out.held() > CACHED_BYTES:
            plain.forget()
            return
        self._learn_arguments(at + 2, shown["args"])
        for key in ("category", "name"):
            plain.know_string(refs.get(key, 0), _text(shown[key]))
        plain.know_thread(refs["thread"], _text(shown["thread"]))
        event = _text(shown["event"])
        plain.know_shape(
            header & _LOW24,
            b',"nbytes":%d,"event":%s,"timestamp":' % (shown["nbytes"], event),
            b"],%s:" % _text(word[0]) if has_word else b"]",
            shown["nbytes"] // 8,
            len(shown["args"]),
            has_word,
        )

    def _learn_arguments(self, at: int, shown: list[dict[str, Any]]) -> None:
        """Take the texts of the arguments at word ``at``."""
        for arg in shown:
            refs = arg.get("refs", {})
            kind = arg["type"]
            word = self._words[at]
            start = b'{"name":%s,"type":%s,"value":' % (_text(arg["name"]), _text(kind))
            name = b""
            if "name" in refs:
                name = b'"name":%d' % refs["name"]
                # Known, so that all is forgotten where the index gets another string.
                self._plain.know_string(refs["name"], _text(arg["name"]))
            end = b',"refs":{%s}}' % name if name else b"}"
            texts: tuple[bytes | None, ...] = start, end
            if kind == "string":
                self._plain.know_string(refs.get("value", 0), _text(arg["value"]))
                texts = start, end, b',"refs":{%s"value":' % (name + b"," if name else b"")
            elif kind in _FIXED:
                texts = start + _text(arg["value"]) + end, None
            narrow = kind in _NARROW
            self._plain.know_argument(word & _LOW32 if narrow else word, narrow, texts)
            at += 1 + (kind in _WIDE)


def _text(value: Any) -> bytes:
    return orjson.dumps(value)


def _plain_arguments(shown: list[dict[str, Any]]) -> bool:
    """Return whether all arguments are of known types, and their strings are references."""
    return all(
        arg["type"] in _PLAIN
        and not _inline(arg, arg.get("refs", {}), "name")
        and not (arg["type"] == "string" and _inline(arg, arg.get("refs", {}), "value"))
        for arg in shown
    )


def _inline(shown: dict[str, Any], refs: dict[str, Any], *keys: str) -> bool:
    """Return whether one of these strings is inline, or not UTF-8: more than its index."""
    return any((shown[key] and key not in refs) or f"{key}_bytes_hex" in shown for key in keys)
