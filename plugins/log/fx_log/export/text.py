"""The exporter `text`: one line for each log, as ffx prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fx_log.export.lines import VERBOSITY, LineExport
from fx_log.export.presentation import (
    I64,
    NO_OFFSET,
    ColumnBatch,
    TagNumbers,
    Texts,
    bytes_by_code,
    leaf,
    message_texts,
    rust_double,
    utc_offset,
    value_kinds,
    walk_columns,
    wall_moments,
    wall_seconds,
)
from fx_log.severity import LEVELS, Level
from fx_log.tables import GIVEN_LINE, GIVEN_MESSAGE, GIVEN_PID, GIVEN_TID
from fxframework.io.sink import Sink
from fxframework.kernels.parts import (
    CLOCK,
    ITEMS,
    MEMBERS,
    MEMBERS_END,
    NATURAL,
    NOTHING,
    SIGNED,
)
from fxframework.kernels.sorting import stable_order
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.memo import Memo
from fxframework.kit.row_texts import (
    DOUBLE,
    ArgumentTexts,
    Form,
    Numbered,
    distinct,
    doubles,
    printable_json,
    value_forms,
    where,
)
from fxframework.model.capture import Capture
from fxframework.model.table import Table

__all__ = ["TextExport"]

CLOCKS: Final = ("boot", "monotonic")
CUT: Final = "ends of messages, behind a NUL"
NO_MESSAGE: Final = "<missing message>"
MONIKER: Final = 1000
"""Most characters of a moniker in a line: one long moniker may appear in all logs."""
LONG_MONIKERS: Final = f"ends of monikers of more than {MONIKER} characters"
LOUD: Final = -2
"""The code of the name of verbosities."""
KEPT: Final = 16 << 20
"""Most bytes of texts kept from one batch to the next."""
RESET: Final = "\x1b[0m"
LOST: Final = "\x1b[33m"
COLOURS: Final[Mapping[Level, str]] = {
    Level.TRACE: "\x1b[95m",
    Level.DEBUG: "\x1b[94m",
    Level.INFO: "",
    Level.WARN: "\x1b[33m",
    Level.ERROR: "\x1b[31m",
    Level.FATAL: "\x1b[97;41m",
}


def plain(text: str) -> str:
    """Return the text, or a JSON string of it if it has unprintable characters."""
    return text if not text or text.isprintable() else printable_json(text)


class TextExport(LineExport):
    """Writes the lines that `ffx log` prints."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        time = options["time"]
        self._zone = time if time in ("utc", "local") else options["tz"]
        self._on_wall = time not in CLOCKS

    def _pieces(self, capture: Capture) -> Iterator[bytes]:
        lines = _Lines(capture, self._options, self._dropped)
        offset = utc_offset(self._options, capture) if self._on_wall else None
        seconds = Numbered(lines.templates, wall_seconds(self._zone), sparse=True)
        for batch in walk_columns(capture, self._dropped):
            lines.templates.forget(KEPT)
            ts = batch.logs.array("ts")
            time: list[Cell] = [(CLOCK, ts)]
            if offset is not None:
                whole_seconds, millis = wall_moments(ts, offset)
                time = [seconds(whole_seconds), b".", lines.millis(millis)]
            elif self._on_wall:  # ffx falls back to boot time too
                self._dropped[NO_OFFSET] += ts.size
            yield from lines.of(batch, time)


class _Lines:
    """Renders logs as lines."""

    def __init__(self, capture: Capture, options: Mapping[str, Any], dropped: Counter[str]) -> None:
        self.templates = Templates(b"[", b",", b"]")
        self._dropped = dropped
        self._full = options["show_full_moniker"]
        self._show_tags = options["show_tags"]
        self._show_metadata = options["show_metadata"]
        self._show_file = options["show_file"]
        self._colour = options["color"]
        self._texts = Texts(capture.strings, dropped)
        self._names = self._texts.pooled(plain)
        self._tags = TagNumbers(self.templates, capture.strings, self._texts.tags(plain))
        monikers: Memo[int, str] = Memo(self._moniker, 0)
        self._monikers = self._numbered(monikers.__getitem__)
        self._severities = self._numbered(lambda severity: f" {LEVELS[severity].name}: ")
        self._colours = self._numbered(lambda severity: COLOURS[LEVELS[severity]])
        self._files = self._numbered(lambda code: f"[{self._names[code]}" if code >= 0 else "")
        self._numbers = self._numbered(str)
        self._line_numbers = self._numbered(lambda number: f"({number})")
        self.millis = self._numbered(lambda millis: f"{millis:03d}")
        self._lost = [self._numbered(partial(self._loss, word)) for word in ("dropped", "rolled")]
        self._arguments = ArgumentTexts(
            self.templates, lambda code: f" {self._names[code]}=", self._forms(capture)
        )

    def _numbered(self, make: Callable[[int], str]) -> Numbered:
        return Numbered(self.templates, make, sparse=True)

    def _forms(self, capture: Capture) -> Mapping[int, Form]:
        octets = bytes_by_code(capture.strings)

        def blob(code: int) -> str:
            return f"[{octets[code].hex()}]"

        forms = value_forms(self.templates, string=self._names.__getitem__, blob=blob)

        def real(args: Any, rows: I64) -> Cell:
            return doubles(self.templates, args["float"][rows], rust_double, whole=False)

        return forms | {DOUBLE: Form(real)}

    def _moniker(self, code: int) -> str:
        """Return the moniker as lines show it, truncated if it is long."""
        moniker = self._names[code]
        if not self._full:
            moniker = leaf(moniker)
        if len(moniker) <= MONIKER:
            return moniker
        self._dropped[LONG_MONIKERS] += 1
        return f"{moniker[:MONIKER]}..."

    def _loss(self, word: str, count: int) -> str:
        """Return how many logs are missing before one."""
        if not count:
            return ""
        colour = f"{RESET}{LOST}" if self._colour else ""
        return f"{colour} [{word}={count}]"

    def _message(self, message: str) -> str:
        start, _, behind_nul = message.partition("\0")
        if behind_nul:
            self._dropped[CUT] += 1
        return plain(start)

    def _number(self, column: NDArray[np.integer], is_given: NDArray[np.bool_]) -> Cell:
        """Return numbers, and nothing where they are not given."""
        if is_given.all():
            return NATURAL, column
        return where(self.templates, is_given, self._numbers(column)[1])

    def of(self, batch: ColumnBatch, time: Sequence[Cell]) -> Iterator[bytes]:
        """Yield the lines of a batch in pieces; ``time`` is their first part."""
        logs = batch.logs
        self._empty = self.templates.text(b"")
        given_bits = batch.given()
        severity = logs.array("severity")
        loss_counts = logs.array("dropped"), batch.column("log_rolled_out")
        losses = []
        for lost, count in zip(self._lost, loss_counts, strict=True):
            if count.any():
                losses.append(lost(count))
        moniker = self._monikers(logs.array("component"))
        tag_bounds, argument_bounds = self._hold(batch, moniker[1])
        line_cells: list[Cell] = [b"[", *time, b"]"]
        if self._show_metadata:
            for name, bit in (("pid", GIVEN_PID), ("tid", GIVEN_TID)):
                shown_number = self._number(logs.array(name), given_bits & bit != 0)
                line_cells += [b"[", shown_number, b"]"]
        line_cells += [b"[", moniker, b"]"]
        if self._show_tags:
            line_cells += [(MEMBERS, tag_bounds[0]), (MEMBERS_END, tag_bounds[1])]
        line_cells.append(self._severities(severity))
        if self._show_file and logs.array("file").max() >= 0:
            line_cells += self._places(logs, given_bits)
        line_cells += [
            where(self.templates, given_bits & GIVEN_MESSAGE == 0, NO_MESSAGE),
            message_texts(self.templates, logs, self._message, self._texts),
            (ITEMS, argument_bounds[0]),
            (MEMBERS_END, argument_bounds[1]),
            *losses,
        ]
        if self._colour:
            colour = self._colours(severity)
            is_lossy = (loss_counts[0] != 0) | (loss_counts[1] != 0)
            is_coloured = is_lossy | (colour[1] != self._empty)
            line_cells = [colour, *line_cells, where(self.templates, is_coloured, RESET)]
        yield from self.templates.pieces(len(logs), *line_cells, b"\n")

    def _places(self, logs: Table, given_bits: NDArray[np.uint8]) -> list[Cell]:
        """Return source files and lines."""
        code = logs.array("file")
        numbers = self._line_numbers(logs.array("line"))[1]
        has_line = (code >= 0) & (given_bits & GIVEN_LINE != 0)
        return [
            self._files(code),
            where(self.templates, has_line, numbers),
            where(self.templates, code >= 0, "] "),
        ]

    def _hold(
        self, batch: ColumnBatch, monikers: NDArray[np.integer]
    ) -> tuple[tuple[I64, I64], tuple[I64, I64]]:
        """Set tags and arguments as members; return the bounds of both for each row."""
        tag_counts: I64 = np.zeros(len(batch.logs), np.int64)
        tags: NDArray[np.integer] = tag_counts[:0]
        if self._show_tags:
            tag_counts, tags = batch.tags.numbers(batch.logs, self._tags)
            owners = np.repeat(np.arange(tag_counts.size), tag_counts)
            is_shown = tags != monikers[owners]  # the moniker is not shown twice
            tag_counts = np.bincount(owners[is_shown], minlength=tag_counts.size)
            tags = tags[is_shown]
        tag_members = np.full((4, tags.size), self._empty)
        tag_members[0] = tags
        tag_members[1] = NOTHING
        argument_counts, argument_members = self._arguments_of(batch)
        self.templates.hold(*np.concatenate((tag_members, argument_members), axis=1))
        tag_ends = np.cumsum(tag_counts)
        argument_ends = np.cumsum(argument_counts) + tags.size
        return (
            (tag_ends - tag_counts, tag_ends),
            (argument_ends - argument_counts, argument_ends),
        )

    def _arguments_of(self, batch: ColumnBatch) -> tuple[I64, list[I64]]:
        """Return for each row the number of its arguments, and members, sorted by name in a row."""
        counts, args = batch.args.of_rows(batch.logs)
        members = self._arguments.of(args, value_kinds(args))
        codes = args["name"]
        verbosity = batch.column("log_verbosity")
        loud_rows = np.flatnonzero(verbosity)
        if loud_rows.size:  # an argument too, behind the others of its row
            places = np.cumsum(counts)[loud_rows]
            name = self.templates.text(f" {VERBOSITY}=".encode())
            cells: list[Any] = [name, SIGNED, verbosity[loud_rows], self._empty]
            columns_and_cells = zip(members, cells, strict=True)
            members = [np.insert(column, places, cell) for column, cell in columns_and_cells]
            codes = np.insert(codes, places, LOUD)
            counts = counts.copy()
            counts[loud_rows] += 1
        if counts.max() > 1:
            owners = np.repeat(np.arange(counts.size), counts)
            order = stable_order(owners * codes.size + self._ranks(codes))
            if order is not None:
                members = [column[order] for column in members]
        return counts, members

    def _ranks(self, codes: NDArray[np.integer]) -> I64:
        """Return the rank of each name among these; that of LOUD is the name of verbosities."""
        different, place = distinct(codes)
        names = [VERBOSITY if code == LOUD else self._names[code] for code in different.tolist()]
        ranks = {name: rank for rank, name in enumerate(sorted(set(names)))}
        rank_of_code = np.array([ranks[name] for name in names], np.int64)
        return rank_of_code[place]
