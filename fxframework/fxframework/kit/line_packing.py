"""Packing of record JSON in bulk: lines of one shape become bytes by columns.

What the bytes of a shape are is learned from examples that the encoder of the format encodes: each
bit of them is constant, or part of a value. That is a guess for all other lines of the shape, and
the caller has to check it: bytes that read back as a line are those that the line encodes to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from fxframework.errors import FxError
from fxframework.kernels.hashing import FIRST
from fxframework.kernels.line_shapes import LineShapes

__all__ = ["LinePacker", "Packed"]

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
U8 = NDArray[np.uint8]
Encode = Callable[[Mapping[str, Any]], bytes]
WORD = 8
ENOUGH = 128
"""Lines of a shape after which it is learned."""
EXAMPLES = 16
"""Lines chosen as examples each time, besides those with extreme values."""
MOST_EXAMPLES = 256
TRIES = 4
"""How often a shape is learned; lines that it does not fit are encoded one by one."""
MOST_TRIES = 8
"""Likewise, with lines for which it was wrong."""
FEW = 8
"""Lines of a shape in a chunk for which nothing is learned."""
LARGEST = 1024
"""Size in bytes of the largest records that are packed by shape."""


@attrs.frozen(eq=False)
class Packed:
    """Lines as bytes."""

    data: U8
    """The bytes of all lines."""
    ends: I64
    """Where those of each line end, shape (lines,)."""
    guessed: NDArray[np.bool_]
    """Whether they were made by shape, shape (lines,)."""


@attrs.frozen(eq=False)
class _Columns:
    """The values of the lines of one shape."""

    numbers: U64
    """Integers, hashes of strings and bits of real numbers, shape (lines, values)."""
    starts: I64
    """Where the strings begin, shape (lines, values)."""
    nbytes: I64
    """Their sizes, shape (lines, values)."""

    def column(self, value: int, *, size: bool) -> U64:
        """Return the numbers of a value, or the sizes of its strings."""
        return self.nbytes[:, value].view(np.uint64) if size else self.numbers[:, value]

    def __getitem__(self, rows: Any) -> _Columns:
        return _Columns(self.numbers[rows], self.starts[rows], self.nbytes[rows])


@attrs.frozen(eq=False)
class _Chunk:
    """Lines, and their values."""

    lines: bytes
    text: U8
    """Likewise, with the characters that are escaped in them."""
    starts: I64
    """Where the lines begin, and where the last ends."""
    first: I64
    """The first value of each line, shape (lines,)."""
    values: _Columns
    """All values, shape (values, 1)."""

    def line(self, row: int) -> bytes:
        """Return a line without its end."""
        return self.lines[self.starts[row] : self.starts[row + 1] - 1]

    def columns_of(self, rows: I64, count: int) -> _Columns:
        """Return the values of lines that have ``count`` of them each."""
        take = self.first[rows][:, None] + np.arange(count)
        return _Columns(
            self.values.numbers[:, 0][take],
            self.values.starts[:, 0][take],
            self.values.nbytes[:, 0][take],
        )


@attrs.frozen
class _Value:
    """What is known of a value from the text of a line."""

    text: bool
    referenced: bool
    """Whether an index in ``refs`` stands for it."""


@attrs.frozen
class _Bits:
    """A value, or the size of a string, in consecutive bits, the lowest first."""

    value: int
    low: int
    width: int
    size: bool
    """Whether it is the size of the string."""


@attrs.frozen
class _Bytes:
    """The bytes of a string, or of its hexadecimal digits, with zeros up to whole words."""

    value: int
    start: int
    room: int
    hexadecimal: bool


@attrs.frozen(eq=False)
class _Plan:
    """How lines of a shape are packed."""

    big: bool
    """Whether the bits of a record are counted from its last byte on, as in big-endian numbers."""
    template: U8
    bits: Sequence[_Bits]
    texts: Sequence[_Bytes]
    fixed: Sequence[tuple[int, bool, np.uint64]]
    """Values, or sizes of strings, that must be as in the examples."""

    def fits(self, columns: _Columns) -> NDArray[np.bool_]:
        """Return which lines the plan is for."""
        fit = np.ones(len(columns.numbers), np.bool_)
        for value, size, wanted in self.fixed:
            fit &= columns.column(value, size=size) == wanted
        return fit

    def pack(self, columns: _Columns, text: U8) -> U8:
        """Return the bytes of lines, shape (lines, nbytes)."""
        out = np.empty((len(columns.numbers), self.template.size), np.uint8)
        out[:] = self.template
        for each in self.texts:
            _put_text(out, each, columns, text)
        if self.bits:
            self._put_bits(out, columns)
        return out

    def _put_bits(self, out: U8, columns: _Columns) -> None:
        nbytes = out.shape[1]
        ordered = out[:, ::-1] if self.big else out
        whole = nbytes % WORD == 0 and not self.big
        words = out if whole else np.pad(ordered, ((0, 0), (0, -nbytes % WORD)))
        wide = words.view("<u8")
        for each in self.bits:
            mask = np.uint64((1 << each.width) - 1)
            number = columns.column(each.value, size=each.size) & mask
            word, shift = divmod(each.low, 64)
            wide[:, word] |= number << np.uint64(shift)
            if shift + each.width > 64:
                wide[:, word + 1] |= number >> np.uint64(64 - shift)
        if words is not out:
            ordered[:] = words[:, :nbytes]


def _put_text(out: U8, place: _Bytes, columns: _Columns, text: U8) -> None:
    """Copy the strings of a column to their places in the records."""
    data, fit = _text_of(columns, place.value, text, place.room, hexadecimal=place.hexadecimal)
    part = out[:, place.start : place.start + place.room]
    np.copyto(part, data, where=fit)


def _text_of(
    columns: _Columns, value: int, text: U8, room: int, *, hexadecimal: bool
) -> tuple[U8, NDArray[np.bool_]]:
    """Return strings as bytes of shape (lines, room), and which of these they have."""
    starts, nbytes = columns.starts[:, value, None], columns.nbytes[:, value, None]
    at = np.arange(room)
    if not hexadecimal:
        fit = at < nbytes
        return text[np.where(fit, starts + at, 0)], fit
    fit = 2 * at < nbytes
    high, low = (_DIGITS[text[np.where(fit, starts + 2 * at + place, 0)]] for place in (0, 1))
    return (high << 4 | low).astype(np.uint8), fit


_DIGIT = np.zeros(256, np.bool_)
_DIGIT[np.frombuffer(b"0123456789abcdef", np.uint8)] = True
_DIGITS = np.zeros(256, np.uint8)
_DIGITS[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)


class _Shape:
    """What is known of the lines of one shape, or of those with the same names in them."""

    def __init__(self, values: Sequence[_Value], *, part: bool = False) -> None:
        self.values = values
        self.part = part
        """Whether it has only lines with the same names."""
        self.seen = 0
        self.tries = 0
        self.plan: _Plan | None = None
        self.names: Sequence[int] = ()
        """Strings that are not in the bytes, but may decide about them."""
        self.parts: dict[int, _Shape] = {}
        self._columns: list[_Columns] = []
        self._texts: list[U8] = []
        self._encoded: list[bytes] = []

    def names_of(self, columns: _Columns) -> U64:
        """Return for each line a number of its names; shape (lines,)."""
        numbers = columns.numbers[:, self.names]
        powers = np.cumprod(np.full(numbers.shape[1], FIRST, np.uint64))
        return np.asarray(numbers @ powers, np.uint64)

    def add(self, columns: _Columns, text: U8, encoded: Sequence[bytes]) -> None:
        """Add examples, and learn from all."""
        # The texts of examples are kept one after another.
        base = sum(part.size for part in self._texts)
        starts = np.zeros_like(columns.starts)
        for row, value in zip(*np.nonzero(columns.nbytes), strict=True):
            start, nbytes = columns.starts[row, value], columns.nbytes[row, value]
            starts[row, value] = base
            self._texts.append(text[start : start + nbytes])
            base += int(nbytes)
        self._columns.append(_Columns(columns.numbers, starts, columns.nbytes))
        self._encoded += encoded
        self.tries += 1
        self.plan = self._learn()

    def _learn(self) -> _Plan | None:
        sizes = {len(data) for data in self._encoded}
        (size,) = sizes if len(sizes) == 1 else (0,)
        if not 0 < size <= LARGEST:
            return None
        known = _Columns(
            *(
                np.concatenate([getattr(each, name) for each in self._columns])
                for name in ("numbers", "starts", "nbytes")
            )
        )
        text = np.concatenate([*self._texts, np.zeros(1, np.uint8)])
        encoded = np.frombuffer(b"".join(self._encoded), np.uint8).reshape(-1, size)
        for big in (False, True):
            learning = _Learning(self.values, known, text, encoded, big=big)
            plan = learning.plan()
            self.names = learning.names
            if plan is not None:
                return plan
        return None


class _Learning:
    """Finds where the values of examples are in their bytes."""

    def __init__(
        self, values: Sequence[_Value], columns: _Columns, text: U8, encoded: U8, *, big: bool
    ) -> None:
        self.values = values
        self.columns = columns
        self.text = text
        self.encoded = encoded
        self.big = big
        ordered = encoded[:, ::-1] if big else encoded
        self.bits = np.unpackbits(ordered, axis=1, bitorder="little")
        self.taken = np.zeros(self.bits.shape[1], np.bool_)
        self.names: list[int] = []
        """Strings that are not in the bytes."""

    def plan(self) -> _Plan | None:
        """Return how the examples are packed; None if that is not known."""
        texts = []
        numbers: list[tuple[int, bool, U64]] = []
        fixed = []
        for at, value in enumerate(self.values):
            if value.referenced:
                continue
            size = False
            if value.text:
                place = self._place_text(at)
                if place is None:
                    self.names.append(at)
                else:
                    texts.append(place)
                    size = True
            column = self.columns.column(at, size=size)
            if (column == column[0]).all():
                fixed.append((at, size, column[0]))
            elif value.text and not size:
                return None
            else:
                numbers.append((at, size, column))
        bits = self._place_bits(numbers)
        found = _Plan(self.big, self._template(), bits, texts, fixed)
        if not np.array_equal(found.pack(self.columns, self.text), self.encoded):
            return None
        return found

    def _template(self) -> U8:
        """Return the bytes of the first example, without those bits that belong to a value."""
        template = np.packbits(np.where(self.taken, 0, self.bits[0]), bitorder="little")
        return template[::-1] if self.big else template

    def _place_text(self, at: int) -> _Bytes | None:
        """Return where the string ``at`` is in all examples; None if nowhere."""
        nbytes = self.columns.nbytes[:, at]
        most = int(nbytes.max())
        # Zeros may follow it up to whole words; if not, its size must be that of the examples.
        rooms = [-(-most // WORD) * WORD, *([most] if (nbytes == most).all() else [])]
        for hexadecimal in (False, True):
            for room in rooms:
                place = self._place(_Bytes(at, 0, room // (1 + hexadecimal), hexadecimal))
                if place is not None:
                    return place
        return None

    def _place(self, place: _Bytes) -> _Bytes | None:
        """Return a place for a string of such a size; None if there is none."""
        room = place.room
        if not 0 < room <= self.encoded.shape[1]:
            return None
        data, fit = _text_of(
            self.columns, place.value, self.text, room, hexadecimal=place.hexadecimal
        )
        if place.hexadecimal and not _DIGIT[self._characters(place.value)].all():
            return None
        windows = sliding_window_view(self.encoded, room, axis=1)
        same = (windows == np.where(fit, data, 0)[:, None, :]).all(axis=(0, 2))
        for start in np.flatnonzero(same).tolist():
            first = self.encoded.shape[1] - start - room if self.big else start
            bits = slice(8 * first, 8 * (first + room))
            if not self.taken[bits].any():
                self.taken[bits] = True
                return attrs.evolve(place, start=start)
        return None

    def _characters(self, at: int) -> U8:
        """Return all characters of a string in the examples."""
        most = int(self.columns.nbytes[:, at].max())
        data, fit = _text_of(self.columns, at, self.text, most, hexadecimal=False)
        return data[fit]

    def _place_bits(self, numbers: Sequence[tuple[int, bool, U64]]) -> Sequence[_Bits]:
        """Return where numbers are in all examples, of those that are anywhere."""
        # The widest goes first: its place is the most certain.
        placed: list[tuple[int, int, bool, U64]] = []
        widths = [_width(column) for _, _, column in numbers]
        for index in sorted(range(len(numbers)), key=lambda index: -widths[index]):
            at, size, column = numbers[index]
            width = widths[index]
            wanted = _bits_of(column)[:, :width]
            if width > self.bits.shape[1]:
                continue
            windows = sliding_window_view(self.bits, width, axis=1)
            same = (windows == wanted[:, None, :]).all(axis=(0, 2))
            for low in np.flatnonzero(same).tolist():
                if not self.taken[low : low + width].any():
                    self.taken[low : low + width] = True
                    placed.append((low, at, size, column))
                    break
        found = []
        for low, at, size, column in placed:
            width = _width(column)
            bits = _bits_of(column)
            # As wide as the examples allow: greater values may follow.
            while (
                width < 64
                and low + width < self.taken.size
                and not self.taken[low + width]
                and (self.bits[:, low + width] == bits[:, width]).all()
            ):
                self.taken[low + width] = True
                width += 1
            found.append(_Bits(at, low, width, size))
        return found


def _bits_of(column: U64) -> U8:
    """Return the bits of numbers, the lowest first, shape (numbers, 64)."""
    return np.unpackbits(
        np.ascontiguousarray(column, "<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little"
    )


def _width(column: U64) -> int:
    """Return the least number of bits that tells numbers apart from all others like them."""
    signed = column.view(np.int64)
    magnitude = np.where(signed < 0, ~signed, signed)
    return max(1, int(np.bitwise_or.reduce(magnitude)).bit_length())


class LinePacker:
    """Packs lines: by shape what it has learned, all else one by one.

    ``parse`` returns the JSON of a line. What was learned holds for further lines.
    """

    def __init__(self, parse: Callable[[bytes], Any]) -> None:
        self._parse = parse
        self._kernel = LineShapes()
        self._encode: Encode = lambda _record: b""
        self._shapes: dict[int, _Shape | None] = {}
        self._kinds: dict[int, str] = {}

    def pack(
        self,
        lines: bytes,
        encode: Encode,
        single: Callable[[int, int, int], bytes],
        *,
        kinds: Collection[str] = (),
        odd: I64,
        unlike: I64,
    ) -> Packed:
        """Return the bytes of lines.

        ``encode`` returns the bytes of a record that is given as JSON, whatever the records before
        it were; it may raise FxError. ``single(number, start, end)`` returns the bytes of a line
        that is not packed by shape, in order of the lines; these are the lines ``odd``, by number,
        the records of ``kinds``, and those whose shape is not known or rare. From the lines
        ``unlike`` it learns first: earlier guesses were wrong for them.
        """
        kernel = self._kernel
        self._encode = encode
        kernel.lines.renew(1 + len(lines) // 64)
        kernel.values.renew(1 + len(lines) // 16)
        kernel.read_from(lines)
        kernel.run()
        rows, values = kernel.lines.filled(), kernel.values.filled()
        real = values["real"].view(np.uint64)
        chunk = _Chunk(
            lines,
            np.asarray(kernel.unescaped),
            np.append(rows["start"], len(lines)),
            rows["value"],
            _Columns(
                np.where(real != 0, real, values["number"])[:, None],
                values["start"][:, None],
                values["nbytes"][:, None],
            ),
        )
        shapes = rows["shape"].copy()
        for number in np.unique(shapes[unlike]).tolist():
            shape = self._shapes.get(number)
            if shape is not None:
                self._learn_again(shape, unlike[shapes[unlike] == number], chunk)
        shapes[odd] = 0
        if kinds:
            self._leave(chunk, shapes, kinds)
        order = np.argsort(shapes, kind="stable")
        order = order[np.searchsorted(shapes[order], 1) :]
        changes = np.flatnonzero(shapes[order][1:] != shapes[order][:-1]) + 1
        pieces: list[tuple[I64, U8]] = []
        left = [np.flatnonzero(shapes == 0)]
        for group in np.split(order, changes) if order.size else ():
            shape = self._shape(int(shapes[group[0]]), chunk.line(int(group[0])))
            if shape is None:
                left.append(group)
            else:
                columns = chunk.columns_of(group, len(shape.values))
                left += self._pack_shape(shape, columns, group, chunk, pieces)
        return _joined(chunk, pieces, np.sort(np.concatenate(left)), single)

    def _leave(self, chunk: _Chunk, shapes: U64, kinds: Collection[str]) -> None:
        """Take the shape from lines that are of certain kinds."""
        rows = np.flatnonzero(shapes)
        # The kind is the first value.
        hashes = chunk.values.numbers[chunk.first[rows], 0] if rows.size else rows
        found, where, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        for at, number in enumerate(found.tolist()):
            if number not in self._kinds:
                record = self._parse(chunk.line(int(rows[where[at]])))
                self._kinds[number] = str(record.get("record")) if isinstance(record, dict) else ""
        leave = np.array([self._kinds[number] in kinds for number in found.tolist()], np.bool_)
        shapes[rows[leave[inverse]]] = 0

    def _shape(self, number: int, line: bytes) -> _Shape | None:
        """Return what is known of a shape, of which a line is given; None to leave it alone."""
        if number not in self._shapes:
            record = self._parse(line) if line.startswith(b'{"record":"') else None
            usual = isinstance(record, dict)
            self._shapes[number] = _Shape(list(_values_of(record))) if usual else None
        return self._shapes[number]

    def _pack_shape(
        self,
        shape: _Shape,
        columns: _Columns,
        group: I64,
        chunk: _Chunk,
        pieces: list[tuple[I64, U8]],
    ) -> Iterator[I64]:
        """Pack the lines of a group into ``pieces``; yield those that are left."""
        shape.seen += group.size
        while group.size:
            if shape.plan is not None:
                fit = shape.plan.fits(columns)
                if fit.any():
                    pieces.append((group[fit], shape.plan.pack(columns[fit], chunk.text)))
                    columns, group = columns[~fit], group[~fit]
                    continue
            elif shape.names and not shape.part:
                yield from self._pack_parts(shape, columns, group, chunk, pieces)
                return
            few = shape.seen < ENOUGH or group.size < FEW
            if few or shape.tries >= TRIES or not self._learn(shape, columns, group, chunk):
                yield group
                return

    def _pack_parts(
        self,
        shape: _Shape,
        columns: _Columns,
        group: I64,
        chunk: _Chunk,
        pieces: list[tuple[I64, U8]],
    ) -> Iterator[I64]:
        """Pack lines with different names apart, since their bytes may differ in more."""
        names = shape.names_of(columns)
        order = np.argsort(names, kind="stable")
        changes = np.flatnonzero(names[order][1:] != names[order][:-1]) + 1
        for rows in np.split(order, changes):
            name = int(names[rows[0]])
            part = shape.parts.get(name)
            if part is None:
                part = shape.parts[name] = _Shape(shape.values, part=True)
            yield from self._pack_shape(part, columns[rows], group[rows], chunk, pieces)

    def _learn_again(self, shape: _Shape, group: I64, chunk: _Chunk) -> None:
        """Learn from lines of a shape for which a guess was wrong."""
        columns = chunk.columns_of(group, len(shape.values))
        if not shape.parts:
            self._correct(shape, columns, group, chunk)
            return
        names = shape.names_of(columns)
        for name in np.unique(names).tolist():
            same = names == name
            part = shape.parts.get(name)
            if part is not None:
                self._correct(part, columns[same], group[same], chunk)

    def _correct(self, shape: _Shape, columns: _Columns, group: I64, chunk: _Chunk) -> None:
        """Learn from lines if the first is not encoded as it was guessed."""
        if shape.plan is None or shape.tries >= MOST_TRIES:
            return
        guess = shape.plan.pack(columns[:1], chunk.text).tobytes()
        if self._encoded(chunk.line(int(group[0]))) != guess:
            self._learn(shape, columns, group, chunk)

    def _learn(self, shape: _Shape, columns: _Columns, group: I64, chunk: _Chunk) -> bool:
        """Learn from some lines of a group; return whether all of them could be encoded."""
        chosen = _examples(columns)
        encoded = []
        for row in group[chosen].tolist():
            data = self._encoded(chunk.line(row))
            if data is None:
                shape.tries = TRIES
                return False
            encoded.append(data)
        shape.add(columns[chosen], chunk.text, encoded)
        return True

    def _encoded(self, line: bytes) -> bytes | None:
        record = self._parse(line)
        try:
            return self._encode(record) if isinstance(record, dict) else None
        except FxError:
            return None


def _examples(columns: _Columns) -> I64:
    """Return rows that differ much: evenly spread ones, and those of extreme values."""
    count = len(columns.numbers)
    if count <= EXAMPLES:
        return np.arange(count)
    spread = np.linspace(0, count - 1, EXAMPLES).astype(np.int64)
    signed = columns.numbers.view(np.int64)
    extreme = [
        each
        for column in (columns.numbers, signed, columns.nbytes)
        for each in (column.argmax(axis=0), column.argmin(axis=0))
    ]
    return np.unique(np.concatenate([spread, *extreme]))[:MOST_EXAMPLES]


def _joined(
    chunk: _Chunk,
    pieces: Sequence[tuple[I64, U8]],
    left: I64,
    single: Callable[[int, int, int], bytes],
) -> Packed:
    """Return the bytes of all lines in order; those ``left`` are made one by one."""
    count = chunk.starts.size - 1
    sizes = np.zeros(count, np.int64)
    guessed = np.zeros(count, np.bool_)
    for rows, packed in pieces:
        sizes[rows] = packed.shape[1]
        guessed[rows] = True
    alone = {
        row: single(row, int(chunk.starts[row]), int(chunk.starts[row + 1]) - 1)
        for row in left.tolist()
    }
    for row, data in alone.items():
        sizes[row] = len(data)
    ends = np.cumsum(sizes)
    begins = ends - sizes
    out = np.empty(int(ends[-1]) if count else 0, np.uint8)
    words = out[: out.size // WORD * WORD].view(np.uint64)
    for rows, packed in pieces:
        wide = packed.shape[1]
        if wide % WORD == 0 and not (begins[rows] % WORD).any():
            at = begins[rows][:, None] // WORD + np.arange(wide // WORD)
            words[at] = packed.view(np.uint64)
        else:
            out[begins[rows][:, None] + np.arange(wide)] = packed
    for row, data in alone.items():
        out[begins[row] : ends[row]] = np.frombuffer(data, np.uint8)
    return Packed(out, ends, guessed)


def _values_of(value: Any, *, referenced: bool = False, top: bool = True) -> Iterator[_Value]:
    """Yield the values of a line in the order of its text, as the kernel finds them."""
    if isinstance(value, dict):
        refs = value.get("refs")
        indexes = refs.keys() if isinstance(refs, dict) else ()
        for key, inner in value.items():
            if not (top and key in {"offset", "nbytes"}):
                yield from _values_of(inner, referenced=referenced or key in indexes, top=False)
    elif isinstance(value, list):
        for inner in value:
            yield from _values_of(inner, referenced=referenced, top=False)
    elif isinstance(value, str):
        yield _Value(text=True, referenced=referenced)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield _Value(text=False, referenced=referenced)
