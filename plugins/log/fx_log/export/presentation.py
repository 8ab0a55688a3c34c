"""Logs with their tags and arguments, in the form that all exporters of logs use.

Works on the tables of any format. Memory is bounded: batches of `logs`, `log_tags` and `args` are
read side by side, since all three are in the order of `logs`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, NamedTuple, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_log.format import UNKNOWN_COMPONENT
from fx_log.tables import GIVEN_LINE, GIVEN_MESSAGE, GIVEN_PID, GIVEN_TID, LOGS
from fxframework.errors import UsageError
from fxframework.kernels.arrays import I64
from fxframework.kit.export import decoded, quoted
from fxframework.kit.memo import Memo, strings_of
from fxframework.kit.omitted import omitted_values
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX, NS_MIN, NS_PER_SECOND
from fxframework.model.schema import STANDARD_TABLES, TABLE_CODES, ArgType
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table

NO_LOGS: Final = "the capture has no logs to write"
"""Why an exporter refuses a capture."""
T = TypeVar("T")
V = TypeVar("V")
D = TypeVar("D", str, bytes)

ROWS: Final = 1 << 14
"""Rows of a batch read from a capture."""
ENDLESS: Final = NS_MAX
"""Greater than every row number."""
NO_OFFSET: Final = "wall times: the offset from UTC is not known (-o utc_offset_ns=NS)"
"""Name of the loss for a capture whose clock has no known offset from UTC."""
OWN_TABLES: Final = frozenset({"logs", "log_tags", "args"})
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

SIGNED: Final = frozenset({ArgType.INT32, ArgType.INT64})
UNSIGNED: Final = frozenset({ArgType.UINT32, ArgType.UINT64, ArgType.POINTER, ArgType.KOID})
"""Integer types, including those of the trace format."""


def unquoted(text: str) -> str:
    """Return the text as a JSON string without quotes."""
    return quoted(text)[1:-1]


class Texts:
    """Decodes strings of a capture; invalid UTF-8 becomes U+FFFD and is counted in ``dropped``.

    A pooled string counts once, a message each time.
    """

    def __init__(self, pool: StringPool, dropped: Counter[str]) -> None:
        self._dropped = dropped
        octets = strings_of(pool)
        self._decoded: Memo[int, str] = Memo(lambda code: self.decoded(octets[code]), 0)

    def decoded(self, data: bytes) -> str:
        """Return the text of some bytes."""
        return decoded(data, self._dropped)

    def pooled(self, make: Callable[[str], V]) -> Memo[int, V]:
        """Return a memo of ``make`` for pooled strings, by code; null is the empty string."""
        return Memo(lambda code: make(self._decoded[code]), 0)

    def tags(self, make: Callable[[str], V]) -> Memo[bytes, V]:
        """Return a memo of ``make`` for tags."""
        return Memo(lambda tag: make(self.decoded(tag)), 0)


@attrs.frozen
class Messages:
    """The messages of a batch: their bytes and their bounds."""

    data: bytes
    bounds: list[int]
    """Start of each message in ``data``, and the end of the last one."""

    @classmethod
    def of(cls, column: TextColumn) -> Messages:
        """Return the messages of a column."""
        start = int(column.offsets[0])
        stop = int(column.offsets[-1])
        bounds = column.offsets - start  # in the bytes of the column alone
        return cls(column.data[start:stop].tobytes(), bounds.tolist())

    def raw(self) -> list[bytes]:
        """Return the messages as bytes."""
        data = self.data
        return [data[start:stop] for start, stop in itertools.pairwise(self.bounds)]

    def shown(self, show: Callable[[str], str], texts: Texts, special: str = "") -> list[str]:
        """Return the messages rendered by ``show``.

        ``show`` must leave printable ASCII unchanged, except for the characters of ``special``.
        """
        if not self.data.isascii():
            return [show(texts.decoded(data)) for data in self.raw()]
        # Characters and bytes have the same positions.
        all_texts = self.data.decode("ascii")
        messages = [all_texts[start:stop] for start, stop in itertools.pairwise(self.bounds)]
        if all_texts.isprintable() and not any(character in all_texts for character in special):
            return messages
        return list(map(show, messages))


class Head(NamedTuple):
    """The fields that many logs have in common: all except time, message and arguments."""

    severity: int
    level: int
    """Code of the severity's name; -1 if the format has no severities."""
    given: int
    """Presence of message, pid, tid and line: the bits of `log_given`."""
    pid: int | None
    tid: int | None
    line: int | None
    file: int
    component: int
    """Code of the moniker, -1 if unknown; likewise for file and url."""
    url: int
    tags: tuple[bytes, ...]
    """Tags, in order."""

    @classmethod
    def of(cls, key: tuple[Any, ...]) -> Head:
        """Return the head of a key, with None for numbers that are not given (0 in the key)."""
        head = cls._make(key)
        bits = {"pid": GIVEN_PID, "tid": GIVEN_TID, "line": GIVEN_LINE}
        absent: dict[str, Any] = {name: None for name, bit in bits.items() if not head.given & bit}
        return head._replace(**absent)

    @property
    def has_message(self) -> bool:
        """Whether the log has a message, which may be empty."""
        return bool(self.given & GIVEN_MESSAGE)


Row = tuple[T, tuple[Any, ...], D, Sequence[V], int, int, int]
"""Time, head, message, arguments, logs dropped and rolled out before it, verbosity."""


@attrs.frozen
class Batch(Generic[V]):
    """Some logs, as columns of equal length."""

    ts: I64
    heads: list[tuple[Any, ...]]
    """Fields of each log's ``Head``, usable as a key."""
    messages: Messages
    args: Sequence[Sequence[V]]
    """The rendered arguments of each log, in order."""
    dropped: list[int]
    rolled_out: list[int]
    verbosity: list[int]

    def __len__(self) -> int:
        return len(self.heads)

    def rows(self, times: Iterable[T], messages: Iterable[D]) -> Iterator[Row[T, D, V]]:
        """Yield the logs: the given times and messages, with head and columns."""
        counts = self.dropped, self.rolled_out, self.verbosity
        return zip(times, self.heads, messages, self.args, *counts, strict=True)


def walk(
    capture: Capture, render: Callable[[Table], Sequence[V]], dropped: Counter[str]
) -> Iterator[Batch[V]]:
    """Yield the logs of a capture in batches, with arguments rendered by ``render``.

    Values that no exporter can write are counted in ``dropped``: columns of other plugins, and ids
    of unnamed components.
    """
    args = ChildColumns(capture, "args", ("name", "type", "int", "uint", "float", "str"))
    tags: Tags = _JoinedTags(capture.strings)
    if "log_tags" in capture.schemas:
        tags = _TagRows(capture)
    for logs in _logs_with_children(capture, args, tags, dropped):
        yield Batch(
            ts=logs.array("ts"),
            heads=heads_of(logs, tags),
            messages=Messages.of(_text(logs, "message")),
            args=args.rendered(logs, render),
            dropped=logs.array("dropped").tolist(),
            rolled_out=own_column(logs, "log_rolled_out").tolist(),
            verbosity=own_column(logs, "log_verbosity").tolist(),
        )


def heads_of(logs: Table, tags: Tags) -> list[tuple[Any, ...]]:
    """Return the fields of the ``Head`` of each log."""
    columns = [
        logs.array("severity"),
        logs.array("severity_name"),
        given_bits(logs),
        logs.array("pid"),
        logs.array("tid"),
        logs.array("line"),
        logs.array("file"),
        logs.array("component"),
        own_column(logs, "log_url", -1),
    ]
    lists = [column.tolist() for column in columns]
    return list(zip(*lists, tags.of(logs), strict=True))


def own_column(logs: Table, name: str, absent: int = 0) -> NDArray[Any]:
    """Return a column of this plugin, or ``absent`` for `logs` of other formats."""
    return logs.array(name) if name in logs else np.full(len(logs), absent)


def given_bits(logs: Table) -> NDArray[np.uint8]:
    """Return the bits of `log_given` for each log, derived from the values if needed."""
    if "log_given" in logs:
        return np.asarray(logs.array("log_given"), np.uint8)
    bits = np.full(len(logs), GIVEN_MESSAGE, np.uint8)
    for name, bit in (("pid", GIVEN_PID), ("tid", GIVEN_TID), ("line", GIVEN_LINE)):
        bits[logs.array(name) != 0] |= bit
    return bits


def _logs_with_children(
    capture: Capture, args: ChildColumns, tags: Tags, dropped: Counter[str]
) -> Iterator[Table]:
    """Yield rows of `logs` in order, once all their children are loaded."""
    for batch in capture.batches("logs", ROWS):
        _count_placeless(batch, dropped)
        rows = batch.array("row")
        start = 0
        while start < len(batch):
            row = int(rows[start])
            complete = min(args.complete(row), tags.complete(row))
            stop = int(np.searchsorted(rows, complete))
            yield batch.select(slice(start, stop))
            start = stop


class ChildColumns:
    """Columns of a table whose rows are children of rows of `logs`, in the same order."""

    def __init__(self, capture: Capture, name: str, columns: Sequence[str]) -> None:
        self._schema = {**STANDARD_TABLES, **capture.schemas}[name]
        self._batches: Iterator[Table] = iter(())
        if name in capture.schemas:
            self._batches = capture.batches(name, ROWS)
        self._pool = capture.strings
        self._parents = np.zeros(0, np.int64)
        nothing = Table.of(self._schema, self._pool)
        self.columns = {column: nothing.array(column) for column in columns}
        self._more = True

    def complete(self, row: int) -> int:
        """Load the children of ``row`` and drop those of earlier rows.

        Returns a row number up to which all children are loaded.
        """
        while self._more and not (self._parents.size and int(self._parents[-1]) > row):
            batch = next(self._batches, None)
            if batch is None:
                self._more = False
                break
            if "table" in batch:
                is_of_logs = batch.array("table") == TABLE_CODES["logs"]
                if not is_of_logs.all():
                    batch = batch.select(is_of_logs)
            first_child = int(np.searchsorted(self._parents, row))
            self._parents = np.append(self._parents[first_child:], batch.array("parent"))
            for name, column in self.columns.items():
                self.columns[name] = np.append(column[first_child:], batch.array(name))
        return int(self._parents[-1]) if self._more else ENDLESS

    def bounds(self, logs: Table) -> tuple[I64, I64]:
        """Return for each row the bounds of its children."""
        rows = logs.array("row")
        starts = np.searchsorted(self._parents, rows, "left").astype(np.int64)
        return starts, np.searchsorted(self._parents, rows, "right").astype(np.int64)

    def rendered(self, logs: Table, render: Callable[[Table], Sequence[V]]) -> list[tuple[V, ...]]:
        """Return for each row what ``render`` makes of its children."""
        starts, stops = self.bounds(logs)
        first_child = int(starts[0])
        children = slice(first_child, stops[-1])
        columns = {name: column[children] for name, column in self.columns.items()}
        table = Table.of(self._schema, self._pool, **columns)
        values = tuple(render(table))
        bounds = zip((starts - first_child).tolist(), (stops - first_child).tolist(), strict=True)
        return [values[start:stop] for start, stop in bounds]


class _TagRows(ChildColumns):
    """Tags of a format with a table of tags."""

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture, "log_tags", ("name",))
        self._names = strings_of(self._pool)

    def of(self, logs: Table) -> list[tuple[bytes, ...]]:
        """Return the tags of each row."""

        def names_of(tags: Table) -> list[bytes]:
            return [self._names[code] for code in tags.array("name").tolist()]

        return self.rendered(logs, names_of)


def _text(table: Table, name: str) -> TextColumn:
    column = table[name]
    assert isinstance(column, TextColumn)  # noqa: S101 (its kind is text)
    return column


class _JoinedTags:
    """Tags of a format that has only text joined by commas."""

    def __init__(self, pool: StringPool) -> None:
        self._tags: Memo[int, tuple[bytes, ...]] = Memo(
            lambda code: tuple(pool.bytes_of(code).split(b",")) if code >= 0 else (), 0
        )

    def complete(self, row: int) -> int:
        """Return a bound behind all rows, which all have their tags."""
        del row
        return ENDLESS

    def of(self, logs: Table) -> list[tuple[bytes, ...]]:
        """Return the tags of each row."""
        return [self._tags[code] for code in logs.array("tags").tolist()]


Tags = _TagRows | _JoinedTags


# --- Arguments -----------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Forms(Generic[V]):
    """Renderings of arguments' values, by type."""

    string: Mapping[int, V]
    """Rendered strings, by code."""
    integer: Callable[[int], V]
    double: Callable[[float], V]
    data: Callable[[bytes], V]
    """Renders the words of a type that logs do not have."""
    true: V
    false: V
    null: V


def shown_values(args: Table, forms: Forms[V]) -> list[V]:
    """Return the value of each row of `args`, rendered by ``forms``."""
    rendered: list[V] = []
    octets = strings_of(args.pool)
    for kind, signed, unsigned, real, code in args.tuples("type", "int", "uint", "float", "str"):
        # Numbers of a type that logs do not have are bytes, too; then they have a code.
        if kind == ArgType.STRING:
            value = forms.string[code]
        elif kind in UNSIGNED and code < 0:
            value = forms.integer(unsigned)
        elif kind in SIGNED and code < 0:
            value = forms.integer(signed)
        elif kind == ArgType.BOOL:
            value = forms.true if signed else forms.false
        elif kind == ArgType.DOUBLE:
            value = forms.double(real)
        elif kind == ArgType.NULL:
            value = forms.null
        else:
            value = forms.data(octets[code])
        rendered.append(value)
    return rendered


# --- Names and times -----------------------------------------------------------------------------


def leaf(moniker: str) -> str:
    """Return the last segment of a moniker."""
    return moniker.rpartition("/")[2]


def utc_offset(options: Mapping[str, Any], capture: Capture) -> int | None:
    """Return the offset in ns from a capture's times to those since the epoch; None if unknown.

    Raises UsageError for an option out of range.
    """
    stated_offset = options["utc_offset_ns"]
    if abs(stated_offset) > NS_MAX:
        raise UsageError(
            f"invalid utc_offset_ns {stated_offset}: must be from -2^63+1 to 2^63-1",
            remedy="give the time since 1970 in UTC, less the time on the capture's clock",
        )
    return stated_offset or capture.utc_offset_ns


def wall_moments(ts: I64, offset: int) -> tuple[NDArray[Any], I64]:
    """Return whole seconds since the epoch, and milliseconds, for times of a capture."""
    edges = (offset, int(ts.min()) + offset, int(ts.max()) + offset)
    moments: NDArray[Any] = ts
    if min(edges) < NS_MIN or max(edges) > NS_MAX:
        moments = ts.astype(object)  # of exact integers
    moments = moments + offset
    milliseconds = moments % NS_PER_SECOND // 1_000_000
    return moments // NS_PER_SECOND, milliseconds.astype(np.int64)


def wall_seconds(tz: str) -> Callable[[int], str]:
    """Return a formatter of seconds since the epoch, in ``utc`` or the ``local`` time zone."""

    def show(seconds: int) -> str:
        moment = EPOCH + timedelta(seconds=seconds)
        if tz == "local":
            moment = moment.astimezone()
        return moment.replace(tzinfo=None).isoformat(" ")

    return show


def process_names(capture: Capture) -> dict[int, int]:
    """Return the codes of process names by pid; empty if the capture has none."""
    if "processes" not in capture.schemas:
        return {}
    table = capture.table("processes")
    names_by_pid = dict(table.tuples("pid", "name"))
    return {pid: name for pid, name in names_by_pid.items() if name >= 0}


# --- Refusals and losses -------------------------------------------------------------------------


def left_out(capture: Capture) -> Counter[str]:
    """Count the parts of a capture other than logs, by name: damage, and rows of other tables."""
    counts_left_out: Counter[str] = Counter()
    counts_left_out["damaged stretches"] = capture.summary().kinds.get("damaged", 0)
    if capture.schemas.keys() <= OWN_TABLES:
        return counts_left_out
    for name, count in capture.row_counts().items():
        if name not in OWN_TABLES:
            counts_left_out[f"rows of {name}"] = count
    if "args" in capture.schemas:
        for batch in capture.batches("args"):
            is_of_others = batch.array("table") != TABLE_CODES["logs"]
            counts_left_out["rows of args"] += int(np.count_nonzero(is_of_others))
    return counts_left_out


def _count_placeless(logs: Table, dropped: Counter[str]) -> None:
    """Count values in columns of other plugins, and ids of unnamed components."""
    for name in set(logs.columns) - _KNOWN_COLUMNS:
        dropped[f"values of {name}"] += omitted_values(logs, name)
    if "log_tag" in logs:
        component = logs.array("component")
        is_unnamed = (component < 0) | (component == logs.pool.code(UNKNOWN_COMPONENT))
        has_tag = (logs.array("log_tag") & np.uint64(_ID)) != 0
        count = int(np.count_nonzero(is_unnamed & has_tag))
        dropped["ids of components that nothing names"] += count


_KNOWN_COLUMNS = frozenset(column.name for column in LOGS.all_columns)
_ID = 0xFFFFFFFF_7FFFFFFF
"""Tag bits without the control bit."""
