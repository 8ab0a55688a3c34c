"""Lines of logs in bulk: rows of plain ASCII, straight from their columns.

It writes exactly what `text.py` makes of such rows, on the clock of the capture and without
colors, and leaves every other row to it. Tests compare the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fx_log import format as wire
from fx_log.export.presentation import rust_double
from fx_log.read import tables
from fx_log.severity import LEVELS, Level
from fxframework.kernels.annotations import (
    Array,
    Bytes,
    Fallible,
    View,
    f64,
    flag,
    i32,
    i64,
    status,
    with_gil,
)
from fxframework.kernels.buffers import room, view
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.output import Output

__all__ = ["TEXTS", "TextLines"]

TEXTS = (
    b"[", b"]", b"][", b"\n", b",", b"(", b")] ", b" [dropped=", b" [rolled=", b" ", b"=", b"true",
    b"false", b"null", b"<missing message>", b"] ", b".",
    *(f" {level.name}: ".encode() for level in Level),
)  # fmt: skip
(
    OPEN, CLOSE, BETWEEN, NEWLINE, COMMA, BEFORE_LINE, AFTER_LINE, DROPPED, ROLLED_OUT_TEXT, BLANK,
    EQUALS, TRUE, FALSE, NULL_TEXT, NO_MESSAGE, AFTER_FILE, POINT, FIRST_LEVEL,
) = range(len(TEXTS) - len(Level) + 1)  # fmt: skip
SIGNED_TYPES = 0xA

SHOWN_ARGUMENTS = 32
LONGEST_MONIKER = 1000
FIRST_PRINTABLE = 0x20
LAST_PRINTABLE = 0x7E
SLASH = 0x2F
SECOND_DIGITS = 5
MICRO_DIGITS = 6
LEVEL_OF = np.array([list(Level).index(level) for level in LEVELS], np.uint8)


class TextLines(Kernel):
    """Writes the lines of rows to ``out``, whose literals are ``TEXTS``.

    ``pool`` has the strings; ``columns`` are those of ``ColumnBatch.columns``, by name.
    ``run`` gives END behind the last row, FULL once ``most`` bytes are written, and NOT_PLAIN at a
    row that is not plain ASCII; ``row`` is the next row.
    """

    out: Output
    metadata: flag
    full: flag
    show_tags: flag
    show_file: flag
    most: i64
    level_of: Bytes
    order: Array[i64]
    row: i64
    rows: i64
    moniker_at: i64
    moniker_bytes: i64
    letters: Bytes
    message: Bytes
    severity: Bytes
    given: Bytes
    odd: Bytes
    arg_types: Bytes
    starts: View[i64]
    lengths: View[i64]
    ts: View[i64]
    pid: View[i64]
    tid: View[i64]
    line: View[i64]
    dropped: View[i64]
    rolled_out: View[i64]
    offsets: View[i64]
    tag_starts: View[i64]
    tag_stops: View[i64]
    arg_starts: View[i64]
    arg_stops: View[i64]
    arg_integers: View[i64]
    component: View[i32]
    file: View[i32]
    tag_names: View[i32]
    arg_names: View[i32]
    arg_strings: View[i32]
    arg_doubles: View[f64]

    def __init__(
        self,
        out: Output,
        pool: Any,
        columns: Mapping[str, Any],
        *,
        metadata: bool,
        full: bool,
        tags: bool,
        file: bool,
        most: int,
    ) -> None:
        self.out = out
        self.metadata = int(metadata)
        self.full = int(full)
        self.show_tags = int(tags)
        self.show_file = int(file)
        self.most = most
        self.level_of = view(LEVEL_OF, np.uint8)
        self.order = room(SHOWN_ARGUMENTS, "i8")
        self.row = 0
        self.rows = len(columns["ts"])
        self.moniker_at = 0
        self.moniker_bytes = 0
        self.letters = view(np.asarray(pool.words).view(np.uint8), np.uint8)
        self.starts = view(np.asarray(pool.starts), np.int64)
        self.lengths = view(np.asarray(pool.lengths), np.int64)
        self.ts = view(columns["ts"], np.int64)
        self.pid = view(columns["pid"], np.int64)
        self.tid = view(columns["tid"], np.int64)
        self.line = view(columns["line"], np.int64)
        self.dropped = view(columns["dropped"], np.int64)
        self.rolled_out = view(columns["rolled_out"], np.int64)
        self.offsets = view(columns["offsets"], np.int64)
        self.message = view(columns["message"], np.uint8)
        self.severity = view(columns["severity"], np.uint8)
        self.given = view(columns["given"], np.uint8)
        self.odd = view(columns["odd"], np.uint8)
        self.component = view(columns["component"], np.int32)
        self.file = view(columns["file"], np.int32)
        self.tag_starts = view(columns["tag_starts"], np.int64)
        self.tag_stops = view(columns["tag_stops"], np.int64)
        self.tag_names = view(columns["tag_names"], np.int32)
        self.arg_starts = view(columns["arg_starts"], np.int64)
        self.arg_stops = view(columns["arg_stops"], np.int64)
        self.arg_names = view(columns["arg_names"], np.int32)
        self.arg_types = view(columns["arg_types"], np.uint8)
        self.arg_integers = view(columns["arg_integers"], np.int64)
        self.arg_doubles = view(columns["arg_doubles"], np.float64)
        self.arg_strings = view(columns["arg_strings"], np.int32)

    def step(self) -> Fallible[i64]:
        """Write lines."""
        while self.row < self.rows:
            if self.out.used >= self.most:
                return tables.FULL
            before = self.out.used
            if self.odd[self.row] or not self.write_row(self.row):
                self.out.used = before
                return tables.NOT_PLAIN
            self.row += 1
        return tables.END

    def write_row(self, row: i64) -> status:
        """Write the line of a row. Return 1, or 0 if it is not plain."""
        given = self.given[row]
        self.time(self.ts[row])
        if self.metadata:
            self.out.literal(OPEN)
            if given & tables.GIVEN_PID:
                self.out.natural(self.pid[row])
            self.out.literal(BETWEEN)
            if given & tables.GIVEN_TID:
                self.out.natural(self.tid[row])
            self.out.literal(CLOSE)
        if not self.moniker(self.component[row]):
            return 0
        if self.show_tags and not self.tags(row):
            return 0
        self.out.literal(FIRST_LEVEL + self.level_of[self.severity[row]])
        if self.show_file and self.file[row] >= 0:
            self.out.literal(OPEN)
            if not self.text(self.file[row]):
                return 0
            if given & tables.GIVEN_LINE:
                self.out.literal(BEFORE_LINE)
                self.out.natural(self.line[row])
                self.out.literal(AFTER_LINE)
            else:
                self.out.literal(AFTER_FILE)
        if not given & tables.GIVEN_MESSAGE:
            self.out.literal(NO_MESSAGE)
        if not self.octets(0, self.offsets[row], self.offsets[row + 1]):
            return 0
        if not self.arguments(self.arg_starts[row], self.arg_stops[row]):
            return 0
        if self.dropped[row]:
            self.out.literal(DROPPED)
            self.out.natural(self.dropped[row])
            self.out.literal(CLOSE)
        if self.rolled_out[row]:
            self.out.literal(ROLLED_OUT_TEXT)
            self.out.natural(self.rolled_out[row])
            self.out.literal(CLOSE)
        self.out.literal(NEWLINE)
        return 1

    def time(self, ns: i64) -> status:
        """Write a time in seconds, with at least five digits and six decimals."""
        micros = ns // 1000 if ns > 0 else 0
        seconds = micros // 1000000
        self.out.literal(OPEN)
        if seconds < 100000:
            self.out.padded(seconds, SECOND_DIGITS)
        else:
            self.out.natural(seconds)
        self.out.literal(POINT)
        self.out.padded(micros - 1000000 * seconds, MICRO_DIGITS)
        self.out.literal(CLOSE)
        return 0

    def octets(self, pooled: flag, start: i64, end: i64) -> status:
        """Write bytes of the pool or of messages. Return 1, or 0 if one is not printable ASCII."""
        if self.out.used + end - start > self.out.size:
            self.out.grow(end - start)
        used = self.out.used
        at = start
        while at < end:
            byte = self.letters[at] if pooled else self.message[at]
            if byte < FIRST_PRINTABLE or byte > LAST_PRINTABLE:
                return 0
            self.out.data[used] = byte
            used += 1
            at += 1
        self.out.used = used
        return 1

    def text(self, code: i64) -> status:
        """Write a string of the pool. Return 1, or 0 if it is not plain."""
        if code < 0:
            return 1
        start = 8 * self.starts[code]
        return self.octets(1, start, start + self.lengths[code])

    def moniker(self, code: i64) -> status:
        """Write the moniker in brackets. Return 1, or 0 if it is not plain."""
        self.moniker_at = 0
        self.moniker_bytes = 0
        if code >= 0:
            start = 8 * self.starts[code]
            end = start + self.lengths[code]
            if not self.full:
                at = end
                while at > start and self.letters[at - 1] != SLASH:
                    at -= 1
                start = at
            self.moniker_at = start
            self.moniker_bytes = end - start
        if self.moniker_bytes > LONGEST_MONIKER:
            return 0
        self.out.literal(OPEN)
        if not self.octets(1, self.moniker_at, self.moniker_at + self.moniker_bytes):
            return 0
        self.out.literal(CLOSE)
        return 1

    def is_moniker(self, code: i64) -> flag:
        """Return whether a string of the pool equals the written moniker."""
        if code < 0 or self.lengths[code] != self.moniker_bytes:
            return code < 0 and self.moniker_bytes == 0
        start = 8 * self.starts[code]
        index = 0
        while index < self.moniker_bytes:
            if self.letters[start + index] != self.letters[self.moniker_at + index]:
                return False
            index += 1
        return True

    def tags(self, row: i64) -> status:
        """Write the tags except the moniker, in brackets. Return 1, or 0 if one is not plain."""
        written = 0
        at = self.tag_starts[row]
        while at < self.tag_stops[row]:
            code = self.tag_names[at]
            at += 1
            if self.is_moniker(code):
                continue
            self.out.literal(COMMA if written else OPEN)
            if not self.text(code):
                return 0
            written = 1
        if written:
            self.out.literal(CLOSE)
        return 1

    def arguments(self, first: i64, stop: i64) -> status:
        """Write arguments sorted by name. Return 1, or 0 if one is not plain."""
        count = stop - first
        if count > SHOWN_ARGUMENTS:
            return 0
        number = 0
        while number < count:
            place = number
            while place > 0 and self.comes_before(first + number, self.order[place - 1]):
                self.order[place] = self.order[place - 1]
                place -= 1
            self.order[place] = first + number
            number += 1
        number = 0
        while number < count:
            at = self.order[number]
            number += 1
            self.out.literal(BLANK)
            if not self.text(self.arg_names[at]):
                return 0
            self.out.literal(EQUALS)
            if not self.value(at):
                return 0
        return 1

    def comes_before(self, left: i64, right: i64) -> flag:
        """Return whether the name of an argument sorts before that of another one."""
        one = self.arg_names[left]
        other = self.arg_names[right]
        if one == other or one < 0 or other < 0:
            return one < 0 <= other
        start = 8 * self.starts[one]
        second = 8 * self.starts[other]
        index = 0
        while index < self.lengths[one] and index < self.lengths[other]:
            if self.letters[start + index] != self.letters[second + index]:
                return self.letters[start + index] < self.letters[second + index]
            index += 1
        return self.lengths[one] < self.lengths[other]

    def value(self, at: i64) -> status:
        """Write the value of an argument. Return 1, or 0 if it is not plain."""
        kind = self.arg_types[at]
        if kind == wire.STRING:
            return self.text(self.arg_strings[at])
        if kind == wire.DOUBLE:
            self.real(self.arg_doubles[at])
        elif kind == wire.BOOL:
            self.out.literal(TRUE if self.arg_integers[at] else FALSE)
        elif kind == wire.NULL:
            self.out.literal(NULL_TEXT)
        elif kind > wire.BOOL or self.arg_strings[at] >= 0:
            return 0
        elif SIGNED_TYPES & (1 << kind):
            self.out.signed(self.arg_integers[at])
        else:
            self.out.natural(self.arg_integers[at])
        return 1

    @with_gil
    def real(self, value: f64) -> status:
        """Write a double as ffx prints it."""
        self.out.put(rust_double(value).encode())
        return 0
