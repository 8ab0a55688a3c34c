"""The reader of the YAML that `llvm-xray convert -f yaml` writes: a header, and a record a line.

PyYAML parses each record by itself, so that one that is invalid leaves the rest alone. What is
before the time of a record is the same in very many lines, and parsed once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, cast

import numpy as np

from fx_xray import format as wire
from fx_xray import rules
from fx_xray.read.capture import MODES, EventCapture
from fx_xray.read.events import EVENT, Events
from fx_xray.read.header import asked_frequency
from fx_xray.read.instr_map import number
from fx_xray.read.log import GivenLog
from fx_xray.read.symbols import Symbols
from fx_xray.read.yaml_text import nodes
from fxframework.errors import Rule
from fxframework.io.source import Source
from fxframework.kit.memo import Memo
from fxframework.kit.pieces import Piece, reported
from fxframework.model.capture import OpenRequest
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.diagnostics import Found

HEAD: Final = 1 << 16
"""Bytes in which the header ends."""
KNOWN: Final = 1 << 14
"""Beginnings of records that are remembered."""
REPLACEMENT: Final = "\ufffd"
"""What llvm-xray puts at the first byte that is not UTF-8; it leaves out what follows."""
REQUIRED: Final = ("kind", "type", "cpu", "tsc")
DEFAULTS: Final = dict.fromkeys(REQUIRED, "") | {"thread": "0", "process": "0", "func-id": "0"}
PLACED: Final = (("tsc", 64), ("cpu", 16), ("thread", 32), ("process", 32))
"""Numbers that say when and where a record was made, and their bits."""
FUNCTIONS: Final = ("enter", "exit", "tail_exit", "enter_arg")

_RECORDS: Final = re.compile(
    rb"^records:[ \t]*(?:\[[ \t]*\])?[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z)", re.MULTILINE
)
_LINE: Final = re.compile(
    rb"([ \t]*- [^\n]{1,1000}), tsc: (\d{1,19})(, data: '')? \}[ \t]*(?:\r?\n|\Z)"
)
"""A record whose time is its last value, or is before an empty payload."""
_END: Final = rb"(?:\.\.\.|---)(?:[ \t\r\n]|\Z)"
_ITEM: Final = re.compile(
    rb"(?P<end>" + _END + rb"(?s:.*))"
    rb"|(?P<padding>(?:[ \t]*+(?:#[^\n]*+)?(?:\r?\n|\Z))++)"
    rb"|(?P<item>[^\n]*+(?:\n(?![ \t]*-[ \t]|" + _END + rb"|\Z)[^\n]*+)*+\n?)"
)
"""The end of the document, blank lines, or all up to the next item."""

Parsed = tuple[str, dict[str, Any], Rule | None]
"""Kind and fields of a record, and the rule of the finding about it."""


class YamlCapture(EventCapture):
    """A trace as llvm-xray converted it to YAML."""

    format = "llvm-yaml"

    def __init__(self, source: Source, request: OpenRequest) -> None:
        super().__init__(source, request)
        self._begin = 0
        self._fault = ""
        self._head = self._read_head()
        head = self._head
        self.frequency = asked_frequency(request.options) or head.get("cycle_frequency", 0)
        is_basic = head.get("type") == wire.BASIC
        self.version = head.get("version")
        self.mode = MODES[is_basic]
        self._names.whole_ids = is_basic
        self.constant_tsc = head.get("constant_tsc", True)
        self.nonstop_tsc = head.get("nonstop_tsc", True)

    def _read_head(self) -> dict[str, Any]:
        """Return the fields of the header; none where it is invalid."""
        start = self.source.read(0, HEAD)
        fields_found = _RECORDS.search(start)
        try:
            if fields_found is None:
                raise ValueError("there is no list of records with a line each")
            ((_, header_text),) = nodes(start[: fields_found.start()])
            given = header_text["header"]
            head = {name: number(given[name], 1 << 16) for name in ("version", "type")}
            for name in ("constant-tsc", "nonstop-tsc"):
                head[name.replace("-", "_")] = given.get(name) == "true"
            head["cycle_frequency"] = number(given.get("cycle-frequency", "0"))
        except (LookupError, ValueError, TypeError, AttributeError) as error:
            self._fault = f"the header is invalid: {error}"
            return {}
        self._begin = fields_found.end()
        return head

    # --- Records ---------------------------------------------------------------------------------

    def _pieces(self) -> Iterator[Piece]:
        """Yield every record, and what is between them, in the order of the text."""
        data = self.source.data.data
        piece_start = self._begin
        size = self.source.size
        if self._head:
            yield Piece("file_header", 0, self.source.read(0, piece_start), self._head)
        elif size:
            yield _damaged(0, self.source.read(0, size), rules.NOT_YAML, self._fault)
            return
        most_bytes = self.request.limits.max_record or size
        known = Memo(_line_without_time, KNOWN)
        while piece_start < size:
            line = _LINE.match(data, piece_start)
            parsed = None
            if line and len(line[0]) <= most_bytes:
                parsed = known[line[1], line[3]]
            if line and parsed:
                kind, fields, _ = parsed
                piece = self._timed(piece_start, line[0], kind, {**fields, "tsc": int(line[2])})
            else:
                piece = self._odd_piece(piece_start, most_bytes)
            yield piece
            piece_start += piece.nbytes

    def _odd_piece(self, at: int, most: int) -> Piece:
        """Return what begins here: blank lines, the end, a record, or all up to the next item."""
        found = cast("re.Match[bytes]", _ITEM.match(self.source.data.data, at))
        text = found[0]
        why = ""
        if found.lastgroup != "item":
            return Piece(str(found.lastgroup), at, text, {"raw": text.hex()})
        for nbytes in sorted({text.find(b"\n") + 1 or len(text), len(text)}):
            if nbytes > most:
                return _damaged(at, text, rules.RECORD_TOO_LARGE, len(text))
            try:
                return self._timed(at, text[:nbytes], *_parsed(text[:nbytes]))
            except ValueError as error:
                why = str(error)
        return _damaged(at, text, rules.INVALID_YAML_RECORD, why)

    def _timed(
        self, at: int, raw: bytes, kind: str, fields: dict[str, Any], rule: Rule | None = None
    ) -> Piece:
        ns = fields["tsc"] * NS_PER_SECOND // (self.frequency or NS_PER_SECOND)
        return Piece(kind, at, raw, fields, ns=ns, rule=rule)

    def records(self) -> Iterator[Piece]:
        """Yield every record, in the order of the text."""
        diagnostics = self.record_diagnostics
        if diagnostics is not None:
            diagnostics.report(self._heading(), 0)
        yield from reported(self._pieces(), diagnostics)

    # --- Tables ----------------------------------------------------------------------------------

    def _scanned_log(self) -> GivenLog:
        threads: dict[tuple[int, int], int] = {}
        kinds: Counter[str] = Counter()
        payloads = bytearray()
        self._faults: list[tuple[Rule, int, int, object]] = []
        self._given: dict[int, str] = {}
        events = np.fromiter(self._events(threads, kinds, payloads), EVENT)
        self._names.given = self._given
        pids, tids = np.array(list(threads), np.uint64).reshape(-1, 2).T.copy()
        joined = np.frombuffer(bytes(payloads), np.uint8)
        return GivenLog(Events.of(events), pids, tids, joined, dict(kinds))

    def _events(
        self, threads: dict[tuple[int, int], int], kinds: Counter[str], payloads: bytearray
    ) -> Iterator[tuple[int, ...]]:
        """Yield all events, as in EVENT; number ``threads``, count ``kinds``, join ``payloads``."""
        for index, piece in enumerate(self._pieces()):
            fields = piece.fields
            at = piece.offset
            kinds[piece.record] += 1
            if piece.rule is not None:
                self._faults.append((piece.rule, at, index, piece.value))
            if "tsc" not in fields:
                continue
            thread = threads.setdefault((fields["process"], fields["thread"]), len(threads))
            placed = fields["tsc"], fields["cpu"], thread, at
            if piece.record == "function":
                id = fields["function_id"]
                args = fields.get("args", ())
                if "function" in fields:
                    self._given.setdefault(id, fields["function"])
                kind = "enter_arg" if args and fields["kind"] == "enter" else fields["kind"]
                yield (FUNCTIONS.index(kind), id, *placed, 0, 0)
                for value in args:
                    yield (wire.ARGUMENT, id, *placed, value, 0)
            else:
                payload = bytes.fromhex(fields["data_hex"])
                kind = wire.TYPED if "event_type" in fields else wire.CUSTOM
                yield (kind, fields.get("event_type", 0), *placed, len(payloads), len(payload))
                payloads += payload

    @property
    def symbols(self) -> Symbols:
        """The names of functions: of the maps, or else as the YAML has them."""
        _ = self.log  # which has the names
        return super().symbols

    def _heading(self) -> list[Found]:
        sound = {
            rules.TSC_NOT_CONSTANT: self.constant_tsc,
            rules.TSC_MAY_STOP: self.nonstop_tsc,
            rules.NO_FREQUENCY: self.frequency,
        }
        return [Found(rule, 0) for rule, is_so in sound.items() if self._head and not is_so]

    def _report_faults(self) -> None:
        for fault in self._faults:
            self.diagnostics.add(*fault)
        if self._head and not self.log.pids.size:
            self.diagnostics.add(rules.NO_RECORDS, self._begin)


def _damaged(at: int, raw: bytes, rule: Rule, value: object) -> Piece:
    return Piece("damaged", at, raw, {"code": rule.code}, rule=rule, value=value)


def _line_without_time(around: tuple[bytes, bytes | None]) -> Parsed | None:
    """Return what a line says, by what is around its time; None for an odd one."""
    try:
        parsed = _parsed(b"%b, tsc: 0%b }" % (around[0], around[1] or b""))
    except ValueError:
        return None
    return None if parsed[2] else parsed


def _parsed(text: bytes) -> Parsed:
    """Return what a record says. Raises ValueError for what is not a record."""
    # Most of what is not a record lacks a key; PyYAML would take long to say so.
    for key in REQUIRED:
        if key.encode() not in text:
            raise ValueError(f"it has no {key!r}")
    ((_, item),) = nodes(text, items=True)
    if not isinstance(item, dict):
        raise ValueError("it is not a mapping")  # noqa: TRY004 (of the YAML)
    given: dict[str, Any] = DEFAULTS | item
    placed = {name: number(given[name], 1 << bits) for name, bits in PLACED}
    type = number(given["type"], 1 << 16)
    word = str(given["kind"])
    data = given.get("data", "")
    args = given.get("args", [])
    if not isinstance(data, str) or not isinstance(args, list):
        raise ValueError("args is not a list, or data no text")  # noqa: TRY004 (of the YAML)
    if word in {"custom-event", "typed-event"}:
        fields: dict[str, Any] = {"event_type": type} if word == "typed-event" else {}
        payload = data.removesuffix(REPLACEMENT)
        fields |= {**placed, "data_hex": payload.encode().hex()}
        rule = rules.PAYLOADS_CUT_SHORT if payload != data else None
        return word.replace("-", "_"), fields, rule
    kind = word.removeprefix("function-").replace("-", "_")
    if kind not in FUNCTIONS:
        raise ValueError(f"kind {word!r}")
    id = str(given["func-id"])
    name = given.get("function")
    function = number(id.removeprefix("-"), 1 << 32)
    function = -function % (1 << 32) if id.startswith("-") else function
    fields = {"kind": kind, "function_id": function}
    # Without a name llvm-xray writes the number of the function, or its address.
    if isinstance(name, str) and name not in {"", id} and not name.startswith("@("):
        fields["function"] = name
    if args:
        fields["args"] = [number(record_text) for record_text in args]
    return "function", fields | placed, None
