"""Lines of record JSON: those that a kernel writes, and between them those of ``decoder.py``.

The kernel (``jsonlines.py``) puts an event together from parts that other events have too: its
shape (type, size, number of arguments), its thread, its strings, the names and types of its
arguments. Where all parts are known, from events that ``decoder.py`` decoded and showed, only times
and values are new; an index that was never registered is a part like others. The lines are exactly
those of ``orjson.dumps(record.to_json())``, to which tests hold them; what is not plain goes that
way. Lines and cached texts are bounded by bytes, however long strings are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import orjson

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.format import RecordType
from fx_trace.read.cursor import NO_STRINGS, NO_THREADS, rule_of
from fx_trace.read.decoder import Walk
from fx_trace.read.jsonlines import UNKNOWN, JsonLines
from fxframework.errors import Rule
from fxframework.io.words import U64_MAX, WORD
from fxframework.kernels.notes import Notes
from fxframework.kit.json_fields import shown_text
from fxframework.kit.scanned import listed_notes

__all__ = ["lines_of"]

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
_PARTS = {"name", "type", "value", "refs"}
_LOW24 = 0xFFFFFF
_LOW32 = 0xFFFFFFFF
_OF_PARTS = (
    rules.STRING_NOT_REGISTERED,
    rules.THREAD_NOT_REGISTERED,
    rules.OF_DEFAULT_PROVIDER,
)
"""Rules about strings and threads, which the kernel applies too."""
_KEYS = ["record", "offset", "nbytes", "event", "timestamp", "thread", "category", "name", "args"]


def lines_of(
    walk: Walk,
    done: Callable[[int, int], None] = lambda _start, _stop: None,
    max_findings: int = 0,
) -> Iterator[bytes]:
    """Return the JSON of every record of a walk, in chunks of whole lines.

    ``done`` is called with bytes that are not read again. Of a rule, only the first
    ``max_findings`` (0: all) are listed.
    """
    return _Lines(walk, max_findings).chunks(done)


class _Lines:
    def __init__(self, walk: Walk, max_findings: int) -> None:
        self._walk = walk
        self._words: memoryview[int] = memoryview(b"").cast("q")
        most = walk.framer.max_record
        notes = self._notes = Notes(rules.RULES.numbers, max_findings)
        self._reported = Counter[Rule]()
        """Findings of the kernel that were reported."""
        self._plain = JsonLines(CHUNK_BYTES, most // WORD if most else 1 << 60, notes)

    def chunks(self, done: Callable[[int, int], None]) -> Iterator[bytes]:
        """Chunks of whole lines."""
        plain = self._plain
        for start, end, all_records in self._walk.spans():
            # Where it has no events to learn from, no word is looked at.
            whole = end // 8 if all_records and not self._walk.big_endian else 0
            view = self._walk.framer.view[: 8 * whole]
            self._words = view.cast("q")
            plain.read_from(view, self._words, view.cast("d"), whole)
            behind = at = start
            while at < end:
                # The first record is looked at: whether it is the magic number.
                if at % WORD == 0 and at < WORD * whole and self._walk.index:
                    at = self._events(at)
                if at < end and plain.out.used < CHUNK_BYTES:
                    at = self._record(at)
                if plain.out.used >= CHUNK_BYTES:
                    self._report()
                    yield plain.out.take()
                    if at - behind <= RELEASED:
                        done(at, at)  # only how far this is
                    else:
                        done(behind, at)
                        behind = at
            done(at, at)
            self._report()
            self._take_registered()
            plain.forget_registered()
            plain.read_from(view[:0], self._words[:0], view.cast("d")[:0], 0)
        if plain.out.used:
            yield plain.out.take()

    def _events(self, at: int) -> int:
        """Return the lines of the events from byte ``at`` on whose parts are known.

        Return where they end.
        """
        plain = self._plain
        plain.pos = at // 8
        while True:
            plain.first, plain.records = self._walk.index, 0
            plain.run()
            self._walk.index += int(plain.records)
            at = int(plain.pos)
            if plain.out.used >= CHUNK_BYTES or not self._introduce(at):
                return 8 * at

    def _introduce(self, at: int) -> bool:
        """Tell the kernel what the event at a word refers to; return whether any of it is new."""
        plain, words = self._plain, self._words
        end = len(words)
        if at >= end or wire.TYPE.get(words[at]) != RecordType.EVENT:
            return False
        if plain.out.held() > CACHED_BYTES:
            return False
        header = wire.EVENT.unpack(words[at] & U64_MAX)
        end = min(end, at + header["record_size"])
        place = at + 2 + 2 * (not header["thread"])
        refs = [header["category"], header["name"]]
        place += sum(map(_inline_words, refs))
        for _ in range(header["arg_count"]):
            if place >= end:
                break
            arg = words[place] & U64_MAX
            refs.append(wire.ARG_NAME.get(arg))
            if wire.ARG_TYPE.get(arg) == wire.ARG_STRING:
                refs.append(wire.ARG_STRING_REF.get(arg))
            place += wire.ARG_SIZE.get(arg) or end
        new = [ref for ref in refs if ref < wire.INLINE_STRING and plain.strings[ref] == UNKNOWN]
        thread = header["thread"]
        unknown = bool(thread) and plain.threads[thread] == UNKNOWN
        if not new and not unknown:
            return False
        self._take_registered()
        found = {ref: self._walk.tables.string(ref) for ref in new}
        if any(text is not None and shown_text(text) != text for text in found.values()):
            return False  # records show its bytes
        for ref, text in found.items():
            self._know_string(ref, f"<str#{ref}>" if text is None else text)
        if unknown:
            koids = self._walk.tables.thread(thread)
            self._know_thread(thread, f"<thr#{thread}>" if koids is None else koids)
        return True

    def _report(self) -> None:
        """Report what the kernel has found since the last time."""
        notes, diagnostics = self._notes, self._walk.diagnostics
        listed = list(listed_notes(notes, rules.RULES))
        notes.used = 0
        if diagnostics is None:
            return
        for rule, offset, record, value in listed:
            diagnostics.add(rule, offset, record, value)
            self._reported[rule] += 1
        for rule in _OF_PARTS:
            more = notes.count(int(rule)) - self._reported[rule]
            if more:
                diagnostics.add(rule, times=more)
                self._reported[rule] += more

    def _record(self, at: int) -> int:
        """Write the record at byte ``at`` by ``decoder.py``; return where it ends."""
        walk, plain = self._walk, self._plain
        header = self._words[at // 8] if at // 8 < len(self._words) else 0
        kind = wire.TYPE.get(header)
        self._take_registered()
        # What was resolved must stay true: registering an index again makes it untrue.
        if kind == RecordType.METADATA:
            plain.forget_registered()
        elif kind == RecordType.THREAD:
            plain.forget_thread(wire.THREAD.unpack(header & U64_MAX)["thread_index"])
        elif kind == RecordType.STRING:
            plain.forget_string(wire.STRING.unpack(header & U64_MAX)["string_index"])
        if self._notes.used:
            self._report()
        record = walk.record(at)
        shown = record.to_json()
        plain.out.line(shown)
        if kind == RecordType.EVENT and all(one.rule in _OF_PARTS for one in walk.found):
            self._learn(header, at // 8, shown)
        return at + record.nbytes

    def _take_registered(self) -> None:
        """Register what the kernel has registered, for records that are decoded here."""
        plain, words = self._plain, self._words
        if not plain.registered:
            return
        provider = self._walk.tables.current
        for at in np.asarray(plain.pending)[: plain.registered].tolist():
            header = words[at] & U64_MAX
            if wire.TYPE.get(header) == RecordType.THREAD:
                if provider.threads is NO_THREADS:
                    provider.threads = {}
                pid, tid = words[at + 1] & U64_MAX, words[at + 2] & U64_MAX
                provider.threads[wire.THREAD.unpack(header)["thread_index"]] = pid, tid
            else:
                if provider.strings is NO_STRINGS:
                    provider.strings = {}
                fields = wire.STRING.unpack(header)
                start = WORD * (at + 1)
                data = self._walk.framer.view[start : start + fields["string_length"]]
                provider.strings[fields["string_index"]] = data.tobytes().decode()
        plain.registered = 0

    def _learn(self, header: int, at: int, shown: dict[str, Any]) -> None:
        """Take the parts of an event about which nothing was found but about these parts."""
        plain = self._plain
        refs = shown.get("refs", {})
        keys = [key for key in shown if key != "refs"]
        word = keys[len(_KEYS) :]
        has_word = len(word) == 1 and word[0] not in {"scope", "raw"}
        if keys[: len(_KEYS)] != _KEYS or (word and not has_word):
            return  # an instant with a scope looks, from its header, like one without
        if not all(arg["type"] in _PLAIN and arg.keys() <= _PARTS for arg in shown["args"]):
            return
        if plain.out.held() > CACHED_BYTES:
            self._take_registered()
            plain.forget()
            return
        self._learn_arguments(at, shown)
        for key in ("category", "name"):
            if key in refs:
                self._know_string(refs[key], shown[key])
        if "thread" in refs:
            self._know_thread(refs["thread"], shown["thread"])
        plain.know_shape(
            header & _LOW24,
            b',"nbytes":%d,"event":%s,"timestamp":' % (shown["nbytes"], _text(shown["event"])),
            b"],%s:" % _text(word[0]) if has_word else b"]",
            shown["nbytes"] // WORD,
            len(shown["args"]),
            has_word,
        )

    def _know_thread(self, index: int, shown: Any) -> None:
        tables = self._walk.tables
        thread, own = tables.thread(index), tables.current.threads
        rule = rule_of(thread, own, index, rules.THREAD_NOT_REGISTERED)
        self._plain.know_thread(index, _text(shown), int(rule or 0))

    def _know_string(self, index: int, text: str) -> None:
        tables = self._walk.tables
        string, own = tables.string(index), tables.current.strings
        rule = rule_of(string, own, index, rules.STRING_NOT_REGISTERED)
        self._plain.know_string(index, _text(text), int(rule or 0))

    def _learn_arguments(self, at: int, shown: dict[str, Any]) -> None:
        """Take the texts of the arguments of the event at a word."""
        place = at + 2 + 2 * ("thread" not in shown.get("refs", {}))
        header = wire.EVENT.unpack(self._words[at] & U64_MAX)
        place += sum(_inline_words(header[key]) for key in ("category", "name"))
        for arg in shown["args"]:
            refs = arg.get("refs", {})
            word = self._words[place] & ~wire.ARG_NAME.mask
            narrow = arg["type"] in _NARROW
            text = b',"type":%s,"value":' % _text(arg["type"])
            if arg["type"] in _FIXED:
                text += _text(arg["value"])
            for key in ("name", "value"):
                if key in refs:
                    self._know_string(refs[key], arg[key])
            self._plain.know_argument(word & _LOW32 if narrow else word, narrow, text)
            place += wire.ARG_SIZE.get(self._words[place] & U64_MAX)


def _inline_words(ref: int) -> int:
    inline = ref & wire.INLINE_STRING
    return -(-(ref & wire.STRING_FIELD_BYTES) // WORD) if inline else 0


def _text(value: Any) -> bytes:
    return orjson.dumps(value)
