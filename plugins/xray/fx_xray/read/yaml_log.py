"""The reader of the YAML that `llvm-xray convert -f yaml` writes: a header, and a record a line.

Lines as llvm-xray writes them are taken apart as they are; others go through PyYAML, each by
itself, so that one that is invalid leaves the rest alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs
import numpy as np
import orjson
from numpy.typing import NDArray

from fx_xray import layout, rules
from fx_xray.read.columns import Events
from fx_xray.read.header import asked_frequency
from fx_xray.read.instr_map import number
from fx_xray.read.log import GivenLog, Log
from fx_xray.read.reader import EventCapture
from fx_xray.read.symbols import Symbols
from fx_xray.read.yaml_lines import PlainLines
from fx_xray.read.yaml_text import ESCAPES, Entry, OddYamlError, entry_of, sections_of
from fx_xray.rules import RULES
from fxframework.errors import Rule
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest, Record
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.diagnostics import Found

if TYPE_CHECKING:
    from fx_xray.read.reader import CallPass

__all__ = ["YamlCapture", "open_yaml"]

HEAD: Final = 1 << 16
"""Bytes in which the header ends."""
HEADS: Final = 1 << 14
"""Beginnings of records that are remembered."""
AT_ONCE: Final = 1 << 15
"""Events that are made columns at once."""
ENTER: Final = 0
ENTER_ARG: Final = 3
ARGUMENT: Final = 4
CUSTOM: Final = 5
TYPED: Final = 6
KINDS: Final[Mapping[bytes, int]] = {
    b"function-enter": ENTER,
    b"function-exit": 1,
    b"function-tail-exit": 2,
    b"function-enter-arg": ENTER_ARG,
    b"custom-event": CUSTOM,
    b"typed-event": TYPED,
}
"""As in ``columns.Events``."""
PIECE: Final = 1 << 18
"""Bytes of text of which JSON is made at a time."""
REPLACEMENT: Final = "\ufffd"
"""What llvm-xray puts at the first byte that is not UTF-8; it leaves out what follows."""

_RECORDS: Final = re.compile(
    rb"^records:(?:\s*(\[)\s*(?=\{)|[ \t]*(?:\[[ \t]*\])?[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z))",
    re.MULTILINE,
)
_FLOW: Final = re.compile(
    rb"""(\{(?:[^{}'"]++|'(?:[^']++|'')*+'|"(?:[^"\\]++|\\.)*+")*+\})[\s,]*+""", re.DOTALL
)
"""A record of a list in brackets, and what separates it from the next."""
_OPEN: Final = re.compile(
    rb"""\{(?:[^{}'"]++|'(?:[^']++|'')*+'|"(?:[^"\\]++|\\.)*+")*+""", re.DOTALL
)
"""What is looked at of something that is no such record; not the string at its end without one."""
IN_VAIN: Final = 16
"""Times the bytes of the text that failed attempts may look at; then the rest is damaged."""
_QUOTED: Final = rb"""(?:'((?:[^'\n]++|'')*+)'|"((?:[^"\\\n]++|\\[^\n])*+)"|([^'"\s][^\n]*?))"""
_LINE: Final = re.compile(
    rb"([ \t]*- \{ [^\n]*?), tsc: (\d{1,20})(?:, data: ([^\n]*?))? \}[ \t]*(?:\r?\n|\Z)"
)
"""A record as llvm-xray writes it: what is before its time, which is much the same in many
records; the time; the payload."""
_HEAD: Final = re.compile(
    rb"[ \t]*- \{ type: (\d{1,5}), func-id: (-?\d{1,10}), function: " + _QUOTED + rb", "
    rb"(?:args: \[ (\d{1,20}(?:, \d{1,20})*) \], )?cpu: (\d{1,5}), (?:thread: (\d{1,10}), )?"
    rb"(?:process: (\d{1,10}), )?kind: ([a-z-]+)"
)
_REQUIRED: Final = ("kind", "type", "cpu", "tsc")
"""Keys that every record has."""
_CLOSED: Final = re.compile(rb" \}[ \t]*(?:\r?\n|\Z)")
TAIL: Final = 64
"""Bytes at the end of a line in which a record is closed."""
_DATA: Final = re.compile(_QUOTED)
_ITEM: Final = re.compile(rb"^[ \t]*-[ \t]", re.MULTILINE)
_NEXT: Final = re.compile(rb"\}\s*,\s*(?=\{)|(?=\])")
"""What is between a record of a list in brackets and the next, or the end of the list."""
_END: Final = re.compile(rb"^(?:\.\.\.|---)(?:[ \t\r\n]|\Z)", re.MULTILINE)
_FOLLOWING: Final = re.compile(_ITEM.pattern + rb"|" + _END.pattern, re.MULTILINE)
_NOTHING: Final = re.compile(rb"(?:[ \t]*+(?:#[^\n]*+)?(?:\r?\n|\Z))*+")
_REST_OF_LINE: Final = re.compile(rb"[^\n]*+\n?")
_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_LETTERS: Final[Mapping[str, str]] = {
    **{letter: character for character, letter in ESCAPES.items()}, "\t": "\t", " ": " ", "/": "/",
}  # fmt: skip


def open_yaml(source: Source, request: OpenRequest) -> YamlCapture:
    """Open a trace in YAML of llvm-xray. Nothing is read yet but its header."""
    return YamlCapture(source, request)


class _Row(NamedTuple):
    """A record of the YAML."""

    offset: int
    nbytes: int
    kind: int
    type: int
    """The type of a typed event; of others it says nothing."""
    function: int
    name: str | None
    args: tuple[int, ...]
    cpu: int
    thread: int
    process: int
    tsc: int
    payload: bytes
    cut: bool
    """Whether llvm-xray left out the end of the payload."""


class _Stretch(NamedTuple):
    """What is not a record of a call or an event."""

    offset: int
    nbytes: int
    what: str
    """``padding``, ``end`` or ``damaged``."""
    rule: Rule | None = None
    """The rule of the finding about what is damaged."""
    value: object = None


@attrs.frozen
class _Head:
    """The header of the YAML, and where its records begin."""

    version: int
    type: int
    constant_tsc: bool
    nonstop_tsc: bool
    cycle_frequency: int
    nbytes: int
    flow: bool
    """Whether the records are a list in brackets."""


@attrs.frozen
class YamlRecord:
    """A record of the YAML, or a stretch of it that is not one (docs, Records)."""

    offset: int
    nbytes: int
    shown: Mapping[str, Any]
    ns: int | None = None
    """Nanoseconds of the counter; None for what has no time."""

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON."""
        kind, *fields = self.shown.items()
        return dict((kind, ("offset", self.offset), ("nbytes", self.nbytes), *fields))


class YamlCapture(EventCapture):
    """A trace as llvm-xray converted it to YAML."""

    format = "llvm-yaml"

    def __init__(self, source: Source, request: OpenRequest) -> None:
        super().__init__(source, request)
        self._fault = ""
        self._head = self._read_head()
        head = self._head
        self.frequency = asked_frequency(request.options)
        if head is not None:
            self.frequency = self.frequency or head.cycle_frequency
            self.version = head.version
            self.constant_tsc, self.nonstop_tsc = head.constant_tsc, head.nonstop_tsc

    def _read_head(self) -> _Head | None:
        """Return the header; None where there is none."""
        start = self.source.read(0, HEAD)
        found = _RECORDS.search(start)
        try:
            if found is None:
                raise OddYamlError("there are no records")
            entry = sections_of(start[: found.start()])["header"]
            return _Head(
                version=number(entry["version"], 1 << 16),
                type=number(entry["type"], 1 << 16),
                constant_tsc=entry.get("constant-tsc") == "true",
                nonstop_tsc=entry.get("nonstop-tsc") == "true",
                cycle_frequency=number(entry.get("cycle-frequency", "0")),
                nbytes=found.end(),
                flow=bool(found[1]),
            )
        except (OddYamlError, KeyError, ValueError) as error:
            self._fault = f"the header is invalid: {error}"
            return None

    # --- The text --------------------------------------------------------------------------------

    def _items(self, start: int = 0) -> Iterator[_Row | _Stretch]:
        """Records and what is between them, from behind the header to the end of the text.

        Those from byte ``start`` on, where that is behind the header.
        """
        data, size = self.source.data.data, self.source.size
        if self._head is None:
            if size:
                yield _Stretch(0, size, "damaged", rules.NOT_YAML, self._fault)
            return
        at = start or self._head.nbytes
        most = self.request.limits.max_record or size
        if self._head.flow:
            yield from self._flow(at, most)
            return
        line, line_end, closes = _LINE.match, _REST_OF_LINE.match, _CLOSED.search
        heads: dict[bytes, _Row | None] = {}
        while at < size:
            # Where the line ends as a record does, one look along it decides.
            ended = line_end(data, at)
            stop = ended.end() if ended else at
            match = line(data, at) if closes(data, max(at, stop - TAIL), stop) else None
            stop = match.end() if match else 0
            row = _row(at, stop - at, match, heads) if match and stop - at <= most else None
            if row is not None:
                yield row
            else:
                ended = _END.match(data, at)
                if ended:
                    yield _Stretch(at, size - at, "end")
                    return
                stop = self._behind(data, at)
                yield self._odd(at, stop, most)
            at = stop

    def _flow(self, at: int, most: int) -> Iterator[_Row | _Stretch]:
        """Yield the records of a list in brackets, from its first one to the end of the text."""
        data, size = self.source.data.data, self.source.size
        vain = 0
        while at < size:
            match = _FLOW.match(data, at)
            if match:
                stop = match.end()
                yield self._entry(at, stop, most, match[1])
            elif self.source.read(at, 1) == b"]":
                stop = size
                yield _Stretch(at, size - at, "end")
            else:
                tried = _OPEN.match(data, at)
                if tried:
                    quoted = bytes(data[tried.end() : tried.end() + 1]) in {b"'", b'"'}
                    vain += (size if quoted else tried.end()) - at
                following = _NEXT.search(data, at + 1) if vain <= IN_VAIN * size else None
                stop = following.end() if following else size
                message = "it is not a mapping in braces"
                yield _Stretch(at, stop - at, "damaged", rules.INVALID_YAML_RECORD, message)
            at = stop

    @staticmethod
    def _behind(data: memoryview, at: int) -> int:
        """Return where what begins here ends: at the next item, or at the end of the list."""
        blank = _NOTHING.match(data, at)
        if blank and blank.end() > at:
            return blank.end()
        following = _FOLLOWING.search(data, at + 1)
        return following.start() if following else len(data)

    def _odd(self, at: int, stop: int, most: int) -> _Row | _Stretch:
        """Return what is not written as llvm-xray writes it."""
        text = self.source.read(at, stop - at)
        if _NOTHING.fullmatch(text):
            return _Stretch(at, stop - at, "padding")
        item = _ITEM.match(text)
        if item is None:
            return _Stretch(
                at, stop - at, "damaged", rules.INVALID_YAML_RECORD, "it is not an item of a list"
            )
        return self._entry(at, stop, most, b" " * item.end() + text[item.end() :])

    @staticmethod
    def _entry(at: int, stop: int, most: int, text: bytes) -> _Row | _Stretch:
        """Return the record between two places, whose mapping has this text."""
        if stop - at > most:
            return _Stretch(at, stop - at, "damaged", rules.RECORD_TOO_LARGE, stop - at)
        try:
            # Most of what is not a record lacks a key; PyYAML would take long to say so.
            for key in _REQUIRED:
                if key.encode() not in text and b"\\" not in text:
                    raise KeyError(key)
            return _row_of(at, stop - at, entry_of(text))
        except (OddYamlError, KeyError, ValueError) as error:
            return _Stretch(at, stop - at, "damaged", rules.INVALID_YAML_RECORD, _why(error))

    # --- Records ---------------------------------------------------------------------------------

    def records(self) -> Iterator[Record]:
        """Yield every record, in the order of the text."""
        # Findings are reported once: by the tables' pass where it has run, else from here.
        fresh = not self.diagnostics.has_any(RULES)
        if fresh:
            self.diagnostics.report(self._heading(), 0)
        head = self._head
        if head is not None:
            yield self._header_of(head)
        for index, item in enumerate(self._items(), head is not None):
            if fresh:
                _report(item, index, self.diagnostics.add)
            yield self._record_of(item)

    def records_json(self) -> Iterator[bytes]:
        """Return the same records as JSON lines.

        Those of plain lines are put together from parts.
        """
        head = self._head
        if head is None or head.flow:
            return super().records_json()
        return self.checked_pieces(self._json_lines(head))

    def _json_lines(self, head: _Head) -> Iterator[bytes]:
        fresh = not self.diagnostics.has_any(RULES)
        if fresh:
            self.diagnostics.report(self._heading(), 0)
        size, at, index = self.source.size, head.nbytes, 1
        most = self.request.limits.max_record or size
        plain = PlainLines(_shown_head)
        made = [orjson.dumps(self._header_of(head).to_json())]
        while at < size:
            base, piece = at, self.source.read(at, PIECE)
            while at < base + len(piece):
                stop = piece.find(b"\n", at - base)
                if stop < 0 and at > base and base + len(piece) < size:
                    break  # the line goes on in the next piece
                line = None
                if 0 <= stop < at - base + most:
                    line = plain.line(at, piece[at - base : stop])
                nbytes = stop + 1 - (at - base)
                if line is None:
                    item = next(self._items(at))
                    if fresh:
                        _report(item, index, self.diagnostics.add)
                    line, nbytes = orjson.dumps(self._record_of(item).to_json()), item.nbytes
                made.append(line)
                at += nbytes
                index += 1
            yield b"\n".join(made) + b"\n" if made else b""
            made.clear()
            self.source.passed(base, at)
        if made:
            yield b"\n".join(made) + b"\n"

    def _header_of(self, head: _Head) -> YamlRecord:
        shown = {"record": "file_header", **attrs.asdict(head)}
        del shown["nbytes"], shown["flow"]
        return YamlRecord(0, head.nbytes, shown)

    def _record_of(self, item: _Row | _Stretch) -> YamlRecord:
        if isinstance(item, _Row):
            ns = item.tsc * NS_PER_SECOND // (self.frequency or NS_PER_SECOND)
            return YamlRecord(item.offset, item.nbytes, _shown(item), ns)
        shown = {"record": item.what}
        if item.what == "damaged":
            shown["code"] = "" if item.rule is None else item.rule.code
        shown["raw"] = self.source.read(item.offset, item.nbytes).hex()
        return YamlRecord(item.offset, item.nbytes, shown)

    # --- Tables ----------------------------------------------------------------------------------

    @cached_property
    def _gathered(self) -> _Gathered:
        return _Gathered(self._items(), has_header=self._head is not None)

    def _scanned_log(self) -> Log:
        gathered = self._gathered
        self._names.symbols = Symbols.of(self.request.options, gathered.names)
        return gathered.log()

    @property
    def symbols(self) -> Symbols:
        """The names of functions: of the map, or else as the YAML has them."""
        _ = self.log  # which has the names
        return super().symbols

    def _heading(self) -> list[Found]:
        head = self._head
        if head is None:
            return []
        given = [
            (rules.TSC_NOT_CONSTANT, not head.constant_tsc),
            (rules.TSC_MAY_STOP, not head.nonstop_tsc),
            (rules.NO_FREQUENCY, not self.frequency),
        ]
        return [Found(rule, 0) for rule, found in given if found]

    def _report_faults(self) -> None:
        gathered = self._gathered
        for item, index in gathered.faults:
            _report(item, index, self.diagnostics.add)
        if self._head is not None and not gathered.rows:
            self.diagnostics.add(rules.NO_RECORDS, self._head.nbytes)

    def _report_names(self, passed: CallPass) -> None:
        """Say which functions have no name."""
        if self.request.options.get("instr_map"):
            super()._report_names(passed)
            return
        missing = np.count_nonzero(~self._names.named)
        if missing:
            named = f"{missing} of {passed.functions[0].size}"
            self.diagnostics.add(rules.NO_FUNCTION_NAMES, value=named)

    def _facts(self, passed: CallPass) -> dict[str, Any]:
        facts = super()._facts(passed)
        type = layout.FDR if self._head is None else self._head.type
        facts["mode"] = "basic" if type == layout.BASIC else "flight data recorder"
        facts["named_functions"] = int(np.count_nonzero(self._names.named))
        del facts["byte_order"]
        return facts


class _Gathered:
    """All records of the YAML as columns."""

    def __init__(self, items: Iterator[_Row | _Stretch], *, has_header: bool) -> None:
        self.rows = 0
        """Records of calls and events."""
        self.names: dict[int, str] = {}
        self.faults: list[tuple[_Row | _Stretch, int]] = []
        self.kinds: dict[str, int] = {"file_header": 1} if has_header else {}
        self._threads: dict[tuple[int, int], int] = {}
        self._first: list[int] = []
        self._events: list[tuple[int, ...]] = []
        self._columns: list[NDArray[Any]] = []
        self._payloads = bytearray()
        for index, item in enumerate(items, int(has_header)):
            if isinstance(item, _Stretch):
                kind = item.what
                if item.rule is not None:
                    self.faults.append((item, index))
            else:
                kind = _NAMES[item.kind]
                if item.cut:
                    self.faults.append((item, index))
                self._add(item)
                self.rows += 1
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
            if len(self._events) >= AT_ONCE:
                self._settle()
        self._settle()

    def _settle(self) -> None:
        """Make columns of the events so far."""
        self._columns.append(np.array(self._events, _EVENT))
        self._events.clear()

    def _add(self, row: _Row) -> None:
        who = row.process, row.thread
        thread = self._threads.get(who)
        if thread is None:
            thread = self._threads[who] = len(self._threads)
            self._first.append(row.offset)
        if row.kind < ARGUMENT:
            if row.name is not None:
                self.names.setdefault(row.function, row.name)
            kind = ENTER_ARG if row.args and row.kind == ENTER else row.kind
            event = (row.function, row.tsc, row.cpu, thread, row.offset)
            self._events.append((kind, *event, 0, 0))
            for value in row.args:
                self._events.append((ARGUMENT, *event, value, 0))
        else:
            type = row.type if row.kind == TYPED else 0
            place = len(self._payloads)
            self._payloads += row.payload
            self._events.append(
                (row.kind, type, row.tsc, row.cpu, thread, row.offset, place, len(row.payload))
            )

    def log(self) -> GivenLog:
        """Return the records as a log."""
        columns = np.concatenate(self._columns)
        events = Events(*(np.ascontiguousarray(columns[name]) for name in Events._fields))
        who: NDArray[np.uint64] = np.array(list(self._threads), np.uint64).reshape(-1, 2)
        return GivenLog(
            events,
            who[:, 0].copy(),
            who[:, 1].copy(),
            np.frombuffer(bytes(self._payloads), np.uint8),
            records=sum(self.kinds.values()),
            kinds=self.kinds,
            thread_offsets=np.array(self._first, np.int64),
        )


# --- Records of the text -------------------------------------------------------------------------

_EVENT: Final = [
    ("kind", "u1"), ("function", "u4"), ("tsc", "u8"), ("cpu", "u2"), ("thread", "i4"),
    ("offset", "i8"), ("value", "u8"), ("size", "i4"),
]  # fmt: skip
"""As in ``columns.Events``."""
_SHOWN_KINDS: Final = {0: "enter", 1: "exit", 2: "tail_exit", 3: "enter_arg"}
_NAMES: Final = {**dict.fromkeys(_SHOWN_KINDS, "function"), 5: "custom_event", 6: "typed_event"}


def _row(
    at: int, nbytes: int, match: re.Match[bytes], heads: dict[bytes, _Row | None]
) -> _Row | None:
    """Return the record of a line as llvm-xray writes it; None where PyYAML must look at it."""
    begins, tsc, data = match.groups()
    head = heads.get(begins)
    if head is None:
        if len(heads) >= HEADS:
            heads.clear()
        head = heads[begins] = _head(begins)
        if head is None:
            return None
    time = int(tsc)
    if time >= 1 << 64:
        return None
    payload, cut = b"", False
    if data and data != b"''":
        scalar = _DATA.fullmatch(data)
        if scalar is None:
            return None
        if head.kind >= CUSTOM:
            try:
                payload, cut = _payload(_text(*scalar.groups()))
            except ValueError:
                return None
    return _Row(at, nbytes, *head[2:10], time, payload, cut)


def _head(begins: bytes) -> _Row | None:
    """Return what the beginning of a line says, with neither place nor time; None as above."""
    match = _HEAD.fullmatch(begins)
    if match is None:
        return None
    type, id, single, double, plain, args, cpu, thread, process, kind = match.groups()
    code = KINDS.get(kind)
    if code is None:
        return None
    try:
        return _checked(
            _Row(
                0, 0, code, int(type), int(id), _name(_text(single, double, plain), int(id)),
                tuple(map(int, args.split(b", "))) if args else (), int(cpu), int(thread or 0),
                int(process or 0), 0, b"", False,
            )
        )  # fmt: skip
    except ValueError:
        return None


def _row_of(at: int, nbytes: int, entry: Entry) -> _Row:
    """Return the record that a mapping is. Raises KeyError and ValueError where it is not one."""

    def integer(name: str, default: str | None = None) -> int:
        text = entry[name] if default is None else entry.get(name, default)
        sign = -1 if isinstance(text, str) and text.startswith("-") else 1
        return sign * number(text[1:] if sign < 0 else text)

    kind = KINDS.get(str(entry["kind"]).encode())
    if kind is None:
        raise ValueError(f"kind {entry['kind']!r}")
    args, data = entry.get("args", ()), entry.get("data", "")
    if isinstance(args, str) or not isinstance(data, str):
        raise ValueError("args is not a list, or data no text")  # noqa: TRY004 (of the YAML)
    id = integer("func-id", "0")
    name = entry.get("function")
    payload, cut = _payload(data) if kind >= CUSTOM else (b"", False)
    return _checked(
        _Row(
            at, nbytes, kind, integer("type"), id,
            _name(name, id) if isinstance(name, str) else None, tuple(map(number, args)),
            integer("cpu"), integer("thread", "0"), integer("process", "0"), integer("tsc"),
            payload, cut,
        )
    )  # fmt: skip


def _checked(row: _Row) -> _Row:
    """Return the record, its function unsigned.

    Raises ValueError for a number that is too large.
    """
    function = row.function
    if function < 0:
        function += 1 << 32
    if not (
        0 <= function < 1 << 32
        and row.type < 1 << 16
        and row.cpu < 1 << 16
        and row.thread < 1 << 32
        and row.process < 1 << 32
        and row.tsc < 1 << 64
        and min(row.type, row.cpu, row.thread, row.process, row.tsc) >= 0
        and all(value < 1 << 64 for value in row.args)
    ):
        raise ValueError("a number is out of range")
    return row if function == row.function else row._replace(function=function)


def _name(text: str, id: int) -> str | None:
    """Return the name of a function.

    None where llvm-xray had none, and wrote its number or address.
    """
    return None if not text or text == str(id) or text.startswith("@(") else text


def _payload(text: str) -> tuple[bytes, bool]:
    """Return the bytes of a payload, and whether llvm-xray cut it."""
    cut = text.endswith(REPLACEMENT)
    return text.removesuffix(REPLACEMENT).encode("utf-8", "surrogateescape"), cut


def _text(single: bytes | None, double: bytes | None, plain: bytes | None) -> str:
    """Return the text of a scalar, of whichever of its three forms is there. Raises ValueError."""
    if double is not None:
        text = double.decode("utf-8", "surrogateescape")
        return _ESCAPE.sub(_unescaped, text) if "\\" in text else text
    if single is not None:
        return single.decode("utf-8", "surrogateescape").replace("''", "'")
    return (plain or b"").decode("utf-8", "surrogateescape")


def _unescaped(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    if digits is None:
        if match[4] not in _LETTERS:
            raise ValueError(f"an escape \\{match[4]}")
        return _LETTERS[match[4]]
    point = int(digits, 16)
    if 0xD800 <= point < 0xE000:
        raise ValueError("half of a character")
    return chr(point)


def _why(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)


def _shown_head(begins: bytes) -> dict[str, Any] | None:
    """Return the fields of a record that begins so; None where PyYAML must look at it."""
    head = _head(begins)
    return None if head is None else _shown(head)


def _shown(row: _Row) -> dict[str, Any]:
    """Return the fields of a record, as JSON."""
    placed = {"tsc": row.tsc, "cpu": row.cpu, "thread": row.thread, "process": row.process}
    if row.kind == CUSTOM:
        return {"record": "custom_event", **placed, "data_hex": row.payload.hex()}
    if row.kind == TYPED:
        event = {"record": "typed_event", "event_type": row.type}
        return {**event, **placed, "data_hex": row.payload.hex()}
    shown: dict[str, Any] = {
        "record": "function",
        "kind": _SHOWN_KINDS[row.kind],
        "function_id": row.function,
    }
    if row.name is not None:
        shown["function"] = row.name.encode(errors="surrogateescape").decode("utf-8", "replace")
    if row.args:
        shown["args"] = list(row.args)
    return shown | placed


def _report(item: _Row | _Stretch, index: int, add: Callable[..., None]) -> None:
    """Report what is wrong with a record, or with what should be one."""
    if isinstance(item, _Stretch):
        if item.rule is not None:
            add(item.rule, item.offset, index, item.value)
    elif item.cut:
        add(rules.PAYLOADS_CUT_SHORT, item.offset, index)
