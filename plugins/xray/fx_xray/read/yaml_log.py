"""The reader of the YAML that `llvm-xray convert -f yaml` writes: a header, and a record a line.

PyYAML parses each record by itself, so that one that is invalid leaves the rest alone. What is
before the time of a record is the same in very many lines, and parsed once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import attrs
import numpy as np

from fx_xray import format as wire
from fx_xray import rules
from fx_xray.format import ARGUMENT, CUSTOM, TYPED
from fx_xray.read.capture import MODES, EventCapture
from fx_xray.read.events import EVENT, Events
from fx_xray.read.header import asked_frequency
from fx_xray.read.instr_map import number
from fx_xray.read.log import GivenLog
from fx_xray.read.symbols import Symbols
from fx_xray.read.yaml_text import OddYamlError, nodes
from fxframework.errors import Rule
from fxframework.io.source import Source
from fxframework.kit.memo import Memo
from fxframework.model.capture import OpenRequest
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.diagnostics import Found

__all__ = ["YamlCapture"]

HEAD: Final = 1 << 16
"""Bytes in which the header ends."""
KNOWN: Final = 1 << 14
"""Beginnings of records that are remembered."""
AT_ONCE: Final = 1 << 15
"""Events that are made columns at once."""
REPLACEMENT: Final = "\ufffd"
"""What llvm-xray puts at the first byte that is not UTF-8; it leaves out what follows."""
REQUIRED: Final = ("kind", "type", "cpu", "tsc")
PLACED: Final = (("tsc", 64), ("cpu", 16), ("thread", 32), ("process", 32))
"""Numbers that say when and where a record was made, and their bits."""
EVENTS: Final = {"custom-event": "custom_event", "typed-event": "typed_event"}
FUNCTIONS: Final = ("enter", "exit", "tail_exit", "enter_arg")

_RECORDS: Final = re.compile(
    rb"^records:[ \t]*(\[(?![ \t]*\]))?(?:\[[ \t]*\])?[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z)", re.MULTILINE
)
_LINE: Final = re.compile(
    rb"([ \t]*- [^\n]{1,1000}), tsc: (\d{1,19})(, data: '')? \}[ \t]*(?:\r?\n|\Z)"
)
"""A record whose time is its last value, or is before an empty payload."""
_END: Final = re.compile(rb"^(?:\.\.\.|---)(?:[ \t\r\n]|\Z)", re.MULTILINE)
_FOLLOWING: Final = re.compile(rb"^[ \t]*-[ \t]|" + _END.pattern, re.MULTILINE)
_LETTERS: Final = re.compile(rb"\\[xuU\r\n]")
"""An escape that may be, or lie within, a letter of a key."""
_NEWLINE: Final = re.compile(rb"\n")
_NOTHING: Final = re.compile(rb"(?:[ \t]*+(?:#[^\n]*+)?(?:\r?\n|\Z))*+")


@attrs.frozen
class YamlRecord:
    """A record of the YAML, or a stretch of it that is not one (docs, Records)."""

    offset: int
    nbytes: int
    shown: Mapping[str, Any]
    ns: int | None = None
    """Its time; None for what has none."""
    rule: Rule | None = None
    """The rule of the finding about it."""
    value: object = None

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON."""
        return {"record": None, "offset": self.offset, "nbytes": self.nbytes, **self.shown}


class YamlCapture(EventCapture):
    """A trace as llvm-xray converted it to YAML."""

    format = "llvm-yaml"

    def __init__(self, source: Source, request: OpenRequest) -> None:
        super().__init__(source, request)
        self._begin, self._fault = 0, ""
        self._head = head = self._read_head()
        self.frequency = asked_frequency(request.options) or head.get("cycle_frequency", 0)
        self.version, self.mode = head.get("version"), MODES[head.get("type") == wire.BASIC]
        self.constant_tsc = head.get("constant_tsc", True)
        self.nonstop_tsc = head.get("nonstop_tsc", True)

    def _read_head(self) -> dict[str, Any]:
        """Return the fields of the header; none where it is invalid."""
        start = self.source.read(0, HEAD)
        found = _RECORDS.search(start)
        try:
            if found is None or found[1]:
                raise OddYamlError("there is no list of records with a line each")
            ((_, document),) = nodes(start[: found.start()])
            given = document["header"]
            head = {name: number(given[name], 1 << 16) for name in ("version", "type")}
            for name in ("constant-tsc", "nonstop-tsc"):
                head[name.replace("-", "_")] = given.get(name) == "true"
            head["cycle_frequency"] = number(given.get("cycle-frequency", "0"))
        except (OddYamlError, LookupError, ValueError, TypeError, AttributeError) as error:
            self._fault = f"the header is invalid: {error}"
            return {}
        self._begin = found.end()
        return head

    # --- Records ---------------------------------------------------------------------------------

    def _items(self) -> Iterator[YamlRecord]:
        """Yield every record, and what is between them, in the order of the text."""
        data, at, size = self.source.data.data, self._begin, self.source.size
        if self._head:
            yield YamlRecord(0, at, {"record": "file_header", **self._head})
        elif size:
            yield self._stretch_of(0, size, "damaged", rules.NOT_YAML, self._fault)
            return
        most = self.request.limits.max_record or size
        known = Memo(_line_without_time, KNOWN)
        while at < size:
            line = _LINE.match(data, at)
            shown = known[line[1], line[3]] if line and line.end() - at <= most else None
            if line and shown:
                record = self._record_of(at, line.end(), {**shown, "tsc": int(line[2])})
            else:
                record = self._item(at, most)
            yield record
            at += record.nbytes

    def _item(self, at: int, most: int) -> YamlRecord:
        """Return what begins here: blank lines, the end, a record, or all up to the next item."""
        data, size = self.source.data.data, self.source.size
        if _END.match(data, at):
            return self._stretch_of(at, size, "end")
        blank = _NOTHING.match(data, at)
        if blank and blank.end() > at:
            return self._stretch_of(at, blank.end(), "padding")
        following = _FOLLOWING.search(data, at + 1)
        stop = following.start() if following else size
        ending = _NEWLINE.search(data, at, stop)
        line = ending.end() if ending else stop
        why = ""
        for end in sorted({line, stop}):
            if end - at > most:
                return self._stretch_of(at, stop, "damaged", rules.RECORD_TOO_LARGE, stop - at)
            shown, why = _parsed(self.source.read(at, end - at))
            if shown:
                return self._record_of(at, end, shown, rules.PAYLOADS_CUT_SHORT if why else None)
        return self._stretch_of(at, stop, "damaged", rules.INVALID_YAML_RECORD, why)

    def _record_of(
        self, at: int, stop: int, shown: dict[str, Any], rule: Rule | None = None
    ) -> YamlRecord:
        ns = shown["tsc"] * NS_PER_SECOND // (self.frequency or NS_PER_SECOND)
        return YamlRecord(at, stop - at, shown, ns, rule)

    def _stretch_of(
        self, at: int, stop: int, what: str, rule: Rule | None = None, value: object = None
    ) -> YamlRecord:
        shown = {"record": what} | ({"code": rule.code} if rule else {})
        shown["raw"] = self.source.read(at, stop - at).hex()
        return YamlRecord(at, stop - at, shown, None, rule, value)

    def records(self) -> Iterator[YamlRecord]:
        """Yield every record, in the order of the text."""
        diagnostics = self.record_diagnostics
        if diagnostics is not None:
            diagnostics.report(self._heading(), 0)
        for index, record in enumerate(self._items()):
            if diagnostics is not None and record.rule is not None:
                diagnostics.add(record.rule, record.offset, index, record.value)
            yield record

    # --- Tables ----------------------------------------------------------------------------------

    def _scanned_log(self) -> YamlLog:
        log = YamlLog(self._items())
        self._names.given = log.names
        return log

    @property
    def symbols(self) -> Symbols:
        """The names of functions: of the maps, or else as the YAML has them."""
        _ = self.log  # which has the names
        return super().symbols

    def _heading(self) -> list[Found]:
        given = [
            (rules.TSC_NOT_CONSTANT, not self.constant_tsc),
            (rules.TSC_MAY_STOP, not self.nonstop_tsc),
            (rules.NO_FREQUENCY, not self.frequency),
        ]
        return [Found(rule, 0) for rule, found in given if found and self._head]

    def _report_faults(self) -> None:
        for fault in cast("YamlLog", self.log).faults:
            self.diagnostics.add(*fault)
        if self._head and not self.log.pids.size:
            self.diagnostics.add(rules.NO_RECORDS, self._begin)


class YamlLog(GivenLog):
    """All records of the YAML as events; ``names`` are those of functions, by id."""

    def __init__(self, records: Iterator[YamlRecord]) -> None:
        self.names: dict[int, str] = {}
        self.faults: list[tuple[Rule, int, int, object]] = []
        threads: dict[tuple[int, int], tuple[int, int]] = {}
        """By process and thread: its number, and the offset of its first record."""
        kinds: Counter[str] = Counter()
        payloads = bytearray()
        columns = [np.array([], EVENT)]
        events: list[tuple[int, ...]] = []
        for index, record in enumerate(records):
            shown, at = record.shown, record.offset
            kinds[shown["record"]] += 1
            if record.rule is not None:
                self.faults.append((record.rule, at, index, record.value))
            if "tsc" in shown:
                who = shown["process"], shown["thread"]
                thread, _ = threads.setdefault(who, (len(threads), at))
                events += self._events_of(shown, (shown["tsc"], shown["cpu"], thread, at), payloads)
            if len(events) >= AT_ONCE:
                columns.append(np.array(events, EVENT))
                events.clear()
        pids, tids = np.array(list(threads), np.uint64).reshape(-1, 2).T.copy()
        super().__init__(
            Events.of(np.concatenate([*columns, np.array(events, EVENT)])),
            pids,
            tids,
            np.frombuffer(bytes(payloads), np.uint8),
            records=kinds.total(),
            kinds=dict(kinds),
            thread_offsets=np.array([first for _, first in threads.values()], np.int64),
        )

    def _events_of(
        self, shown: Mapping[str, Any], placed: tuple[int, ...], payloads: bytearray
    ) -> list[tuple[int, ...]]:
        """Return the events of a record, as in ``events.Events``."""
        if shown["record"] == "function":
            id, args = shown["function_id"], shown.get("args", ())
            if "function" in shown:
                self.names.setdefault(id, shown["function"])
            kind = "enter_arg" if args and shown["kind"] == "enter" else shown["kind"]
            call = (FUNCTIONS.index(kind), id, *placed, 0, 0)
            return [call, *((ARGUMENT, id, *placed, value, 0) for value in args)]
        payload, start = bytes.fromhex(shown["data_hex"]), len(payloads)
        payloads += payload
        kind = TYPED if "event_type" in shown else CUSTOM
        return [(kind, shown.get("event_type", 0), *placed, start, len(payload))]


def _line_without_time(around: tuple[bytes, bytes | None]) -> dict[str, Any] | None:
    """Return the fields of a line, by what is before and behind its time; None for an odd one."""
    shown, why = _parsed(b"%b, tsc: 0%b }" % (around[0], around[1] or b""))
    return None if why else shown


def _parsed(text: bytes) -> tuple[dict[str, Any], str]:
    """Return the fields of an item of the list as JSON, and what is odd about it.

    Without fields it is not a record; otherwise llvm-xray cut its payload short.
    """
    try:
        # Most of what is not a record lacks a key; PyYAML would take long to say so.
        for key in REQUIRED:
            if key.encode() not in text and not _LETTERS.search(text):
                raise KeyError(key)
        ((_, entry),) = nodes(text, items=True)
        return _fields(entry)
    except KeyError as error:
        return {}, f"it has no {error}"
    except AttributeError:
        return {}, "it is not a mapping"
    except (OddYamlError, ValueError) as error:
        return {}, str(error)


def _fields(entry: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return as above for a mapping. Raises KeyError and ValueError for what is not a record."""
    given = dict.fromkeys(("thread", "process", "func-id"), "0") | dict(entry.items())
    placed = {name: number(given[name], 1 << bits) for name, bits in PLACED}
    type, word = number(given["type"], 1 << 16), str(given["kind"])
    text, args = given.get("data", ""), given.get("args", [])
    if not isinstance(text, str) or not isinstance(args, list):
        raise ValueError("args is not a list, or data no text")  # noqa: TRY004 (of the YAML)
    if word in EVENTS:
        shown = {"record": EVENTS[word]} | ({"event_type": type} if word == "typed-event" else {})
        payload = text.removesuffix(REPLACEMENT)
        return {**shown, **placed, "data_hex": payload.encode().hex()}, text[len(payload) :]
    kind = word.removeprefix("function-").replace("-", "_")
    if kind not in FUNCTIONS:
        raise ValueError(f"kind {word!r}")
    id, name = str(given["func-id"]), given.get("function")
    function = number(id.removeprefix("-"), 1 << 32)
    function = -function % (1 << 32) if id.startswith("-") else function
    shown = {"record": "function", "kind": kind, "function_id": function}
    # Without a name llvm-xray writes the number of the function, or its address.
    if isinstance(name, str) and name not in {"", id} and not name.startswith("@("):
        shown["function"] = name
    return {**shown, **({"args": [number(each) for each in args]} if args else {}), **placed}, ""
