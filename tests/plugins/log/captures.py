"""Captures made by hand, of tables alone: what exporters are given, without any reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import attrs
from hypothesis import strategies as st

from fx_log import plugin
from fx_log.format import ArgType
from fx_log.severity import LEVELS
from fx_log.tables import GIVEN_LINE, GIVEN_MESSAGE, GIVEN_PID, GIVEN_TID, LOG_TAGS, LOGS
from fxframework.errors import Catalogue
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.capture import Capture, OpenRequest, Record, Summary
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.schema import STANDARD_TABLES, TABLE_CODES, TableSchema
from fxframework.model.table import Table
from fxframework.registry import Exporter, parse_options


@attrs.frozen(kw_only=True)
class Arg:
    """A row of `args`: a value of a Python type, or the words of a type that logs do not have."""

    name: str | bytes
    value: Any
    type: int | None = None

    @property
    def code(self) -> int:
        if self.type is not None:
            return self.type
        kinds = {type(None): ArgType.NULL, bool: ArgType.BOOL, float: ArgType.DOUBLE}
        kinds |= {str: ArgType.STRING, bytes: ArgType.STRING}
        small = isinstance(self.value, int) and self.value < 0
        return int(kinds.get(type(self.value), ArgType.INT64 if small else ArgType.UINT64))


@attrs.frozen(kw_only=True)
class Log:
    """A row of `logs` with its tags and arguments; None is not given."""

    ts: int = 0
    severity: int = 0x30
    pid: int | None = None
    tid: int | None = None
    tags: Sequence[str | bytes] = ()
    component: str | bytes | None = None
    url: str | bytes | None = None
    message: str | bytes | None = None
    file: str | bytes | None = None
    line: int | None = None
    dropped: int = 0
    rolled_out: int = 0
    verbosity: int = 0
    tag_bits: int = 0
    args: Sequence[Arg] = ()

    @property
    def given(self) -> int:
        bits = {
            GIVEN_MESSAGE: self.message,
            GIVEN_PID: self.pid,
            GIVEN_TID: self.tid,
            GIVEN_LINE: self.line,
        }
        return sum(bit for bit, value in bits.items() if value is not None)


class HandMade(Capture):
    """A capture of given tables."""

    format = "log"
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        "logs": LOGS,
        "args": STANDARD_TABLES["args"],
        "log_tags": LOG_TAGS,
    }

    def __init__(self, *, utc_offset_ns: int | None = None, damaged: int = 0) -> None:
        source = Source.open(b"made by hand")
        super().__init__(source, OpenRequest(), Diagnostics(Catalogue(())))
        self.made: dict[str, Table] = {}
        self._offset_ns = utc_offset_ns
        self._damaged = damaged

    @property
    def utc_offset_ns(self) -> int | None:
        return self._offset_ns

    def fill(self, name: str, /, **columns: Any) -> None:
        """Fill a table."""
        self.made[name] = Table.of(self.schemas[name], self.strings, **columns)

    def records(self) -> Iterator[Record]:
        return iter(())

    def summary(self) -> Summary:
        kinds = {"log": 1, "damaged": self._damaged}
        return Summary(records=1, kinds=kinds, start_ns=None, end_ns=None, facts={})

    def scan(self) -> None:
        """There is nothing to find."""

    def _table(self, name: str) -> Table:
        return self.made.get(name) or Table.of(self.schemas[name], self.strings)

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        whole = self._table(name)
        for at in range(0, len(whole), rows):
            yield whole.select(slice(at, at + rows))


def hand_made(*logs: Log, first_row: int = 0, **options: Any) -> HandMade:
    """A capture of some logs."""
    capture = HandMade(**options)
    rows = range(first_row, first_row + len(logs))
    capture.fill(
        "logs",
        row=list(rows),
        ts=[log.ts for log in logs],
        severity=[log.severity for log in logs],
        severity_name=[LEVELS[log.severity].name for log in logs],
        pid=[log.pid or 0 for log in logs],
        tid=[log.tid or 0 for log in logs],
        tags=[b",".join(map(_bytes, log.tags)) if log.tags else None for log in logs],
        component=[log.component for log in logs],
        message=[log.message or b"" for log in logs],
        file=[log.file for log in logs],
        line=[log.line or 0 for log in logs],
        dropped=[log.dropped for log in logs],
        log_url=[log.url for log in logs],
        log_tag=[log.tag_bits for log in logs],
        log_rolled_out=[log.rolled_out for log in logs],
        log_verbosity=[log.verbosity for log in logs],
        log_given=[log.given for log in logs],
    )
    tags = [(row, tag) for row, log in zip(rows, logs, strict=True) for tag in log.tags]
    capture.fill("log_tags", parent=[row for row, _ in tags], name=[tag for _, tag in tags])
    args = [(row, arg) for row, log in zip(rows, logs, strict=True) for arg in log.args]
    numbers = [arg.value if type(arg.value) in {int, bool} else 0 for _, arg in args]
    capture.fill(
        "args",
        table=TABLE_CODES["logs"],
        parent=[row for row, _ in args],
        name=[arg.name for _, arg in args],
        type=[arg.code for _, arg in args],
        int=[number - (1 << 64) if number >= 1 << 63 else number for number in numbers],
        uint=[number % (1 << 64) for number in numbers],
        float=[arg.value if isinstance(arg.value, float) else 0 for _, arg in args],
        str=[arg.value if isinstance(arg.value, str | bytes) else None for _, arg in args],
    )
    return capture


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def export(
    exporter: Exporter, *captures: Capture, **options: Any
) -> tuple[bytes, Mapping[str, int]]:
    """What an exporter writes of captures, and what it drops."""
    sink = Sink.memory()
    session = exporter.open(sink, parse_options(options, exporter.options, whose=exporter.name))
    for capture in captures:
        session.write(capture)
    dropped = session.close()
    return sink.getvalue(), dropped


def exporter(name: str, accepts: str | None = "log") -> Exporter:
    """An exporter of the plugin, by its name and by the format or, None, tables that it takes."""
    return next(
        one
        for one in plugin.fx_exporters()
        if one.name == name and one.accepts in {accepts, frozenset({"logs"})}
    )


# --- Any logs ------------------------------------------------------------------------------------

TEXTS = ["", "a", "b", "Zoë", "two\nlines", 'say "\\hi"', "\x00\x7f\u202e", b"caf\xe9", "😀", "k#2"]
I64 = st.integers(-(1 << 63), (1 << 63) - 1)
U64 = st.one_of(st.integers(0, 9), st.sampled_from([(1 << 63) - 1, 1 << 63, (1 << 64) - 1]))
texts = st.sampled_from(TEXTS) | st.text(max_size=6) | st.binary(max_size=6)
optional_texts = st.none() | texts
args = st.one_of(
    st.builds(Arg, name=texts, value=st.none() | st.booleans() | I64 | U64 | st.floats() | texts),
    st.builds(
        Arg, name=texts, value=st.binary(max_size=9), type=st.sampled_from([1, 2, 7, 8, 10, 15])
    ),
)
logs = st.builds(
    Log,
    ts=st.one_of(st.integers(-5, 5), st.integers(0, 10**15), I64),
    severity=st.integers(0, 255) | st.sampled_from([0x10, 0x20, 0x30, 0x40, 0x50, 0x60]),
    pid=st.none() | U64,
    tid=st.none() | U64,
    tags=st.lists(texts, max_size=3),
    component=optional_texts | st.just("core/network/netstack"),
    url=optional_texts,
    message=optional_texts,
    file=optional_texts,
    line=st.none() | st.integers(0, (1 << 32) - 1),
    dropped=U64,
    rolled_out=U64,
    verbosity=st.integers(-2, 2),
    args=st.lists(args, max_size=5),
)


def text(value: str | bytes) -> str:
    """A string as the exporters that need text have it."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")
