"""Spans: fields that are stretches of bytes, texts among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fxframework.errors import PluginError
from fxframework.kit.json_fields import JsonFields, show_text
from fxframework.wire.cursor import AT, Cursor, Draft, RefusalError, ShortError
from fxframework.wire.expressions import Constant, Expression, expression_or_none, leaves_of
from fxframework.wire.fields import Field, Number, Refs, Values, index_of
from fxframework.wire.known import CODE, LENGTH, START, STRANGE, Codes
from fxframework.wire.rules import DOES_NOT_FIT, NO_SUCH_TEXT, NOT_DECLARED, NOT_UTF8, WRONG_TYPE
from fxframework.wire.state import Entry, State

if TYPE_CHECKING:
    import numpy as np

    from fxframework.kernels.arrays import I64
    from fxframework.wire.many import Many
else:
    from fxframework.kit.lazy import numpy as np

FIRST_STEP = 256
"""Bytes that are searched at first for the end of a text."""


class Span(Field):
    """Bytes: counted, terminated, of a fixed size, or all that the record has left."""

    exact = True

    def __init__(
        self,
        nbytes: Any = None,
        *,
        until: bytes = b"",
        pad: bytes = b"",
        align: int = 1,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        for option, byte in (("until", until), ("pad", pad)):
            if len(byte) > 1:
                raise PluginError(f"{option} is {byte!r}, not one byte")
        if until and nbytes is not None:
            raise PluginError("a span is terminated or counted, not both")
        self.nbytes = expression_or_none(nbytes)
        self.until = until
        self.pad = pad
        self.aligned = align
        self.placed = any(leaf is AT for leaf in leaves_of(self.nbytes))
        """Whether its size depends on its place in the record."""

    @property
    def fixed(self) -> int | None:
        """Its size in bytes, if that is a constant."""
        if isinstance(self.nbytes, Constant):
            return self.nbytes.number
        return None

    def least(self) -> int:
        """Return the fewest bytes that it takes."""
        if self.when is not None:
            return 0
        return self.fixed or len(self.until)

    def expressions(self) -> list[Expression]:
        """Return the expressions that it depends on."""
        terms = super().expressions()
        if self.nbytes is None:
            return terms
        return [*terms, self.nbytes]

    def bytes_of(self, value: Any) -> bytes:
        """Return the bytes of a value, without terminator and padding."""
        if not isinstance(value, bytes | bytearray | memoryview):
            raise RefusalError(WRONG_TYPE, f"{self.name} must be bytes, not {value!r}")
        return bytes(value)

    def take(self, cursor: Cursor) -> tuple[int, bytes]:
        """Return the place and the bytes, without terminator and padding."""
        start = cursor.at
        if self.until:
            end = place_of(cursor.data, cursor.at, cursor.limit, self.until, cursor.state.absent)
            if end < 0:
                raise cursor.short(cursor.limit - cursor.at + 1)
            data = bytes(cursor.data[cursor.at : end])
            cursor.at = end + 1
        else:
            if self.placed:
                cursor.known[AT] = cursor.at - cursor.start
            if self.nbytes is None:
                length = cursor.limit - cursor.at
            else:
                length = self.nbytes.value(cursor.known)
            data = bytes(cursor.take(length))
        if self.pad:
            padded_length = len(data)
            data = data.rstrip(self.pad)
            # Only a fixed size says how much padding is written again.
            cursor.differs |= self.fixed is None and len(data) < padded_length
        if cursor.views is not None:
            cursor.spans[self] = start, len(data)
        return start, data

    def ended(self, data: bytes) -> bytes:
        """Return bytes with terminator and padding. Raises RefusalError if they do not fit."""
        if self.until and self.until in data:
            message = f"{self.name} has the byte {self.until!r}, which ends it"
            raise self.refused(DOES_NOT_FIT, message)
        if self.pad and data.endswith(self.pad):
            message = f"{self.name} ends in {self.pad!r}, which is its padding"
            raise RefusalError(DOES_NOT_FIT, message)
        fixed = self.fixed
        if fixed is None:
            return data + self.until
        fits = len(data) <= fixed if self.pad else len(data) == fixed
        if not fits:
            sizes = f"0 to {fixed}" if self.pad else f"{fixed}"
            message = f"{self.name} has {len(data)} bytes, but its field has {sizes}"
            raise RefusalError(DOES_NOT_FIT, message)
        return data + self.pad * (fixed - len(data))

    def length_written(self, draft: Draft) -> int:
        """Return how many bytes it has, without terminator and padding."""
        return len(draft.bytes_of(self))

    def put(self, draft: Draft) -> bytes:
        """Return the bytes with terminator and padding, up to where what follows is aligned."""
        data = self.ended(draft.bytes_of(self))
        return data + bytes(-(draft.at + len(data)) % self.aligned)

    def read(self, cursor: Cursor, values: Values) -> None:
        """Read the bytes."""
        begin, data = self.take(cursor)
        values[self.name] = self.decoded(cursor, begin, data)
        if cursor.views is not None:
            cursor.stretch(self.name, begin, self.meaning(values[self.name]))
        if self.aligned > 1:
            cursor.align(self.aligned, self)

    def read_many(self, many: Many) -> None:
        """Find the bytes of many records: their places, and lengths without padding."""
        starts, lengths = self.take_of_many(many)
        many.known[self, START] = starts
        many.known[self, LENGTH] = lengths
        self.check_spans(many, starts, lengths)
        many.align(self.aligned, self)

    def take_of_many(self, many: Many) -> tuple[I64, I64]:
        """Return the places of the bytes, and their lengths without terminator and padding."""
        begins = many.at()
        if self.until:
            room = np.maximum(many.limit - begins, 0)
            ends = many.found(begins, room, self.until[0])
            has_no_end = ends < 0
            many.lose(has_no_end)
            starts = begins
            lengths = np.where(has_no_end, 0, ends - begins)
            many.go_to(np.where(has_no_end, begins, ends + 1))
        elif self.fixed is not None and self.fixed <= many.assured:
            # All of the records are known to have these bytes.
            starts = many.take(self.fixed)
            lengths = np.full(begins.size, self.fixed)
        else:
            sizes = many.limit - begins if self.nbytes is None else self.nbytes.column(many)
            starts, lengths = many.stretch(sizes)
        if self.pad:
            padded_lengths = lengths
            lengths = many.trimmed(starts, lengths, self.pad[0])
            self._check_trimmed(many, starts + lengths, padded_lengths - lengths)
        return starts, lengths

    def _check_trimmed(self, many: Many, ends: I64, trimmed: I64) -> None:
        """Mark the records in which padding was taken off that writing does not add again."""
        if self.fixed is not None:
            return
        layout = many.layout
        is_rest = self.nbytes is None and not self.until
        if layout.is_sized and is_rest and self.pad == b"\0":
            many.check_end(ends, trimmed)  # zero bytes fill the record
        else:
            many.keep_raw(trimmed > 0)

    def check_spans(self, many: Many, starts: I64, lengths: I64) -> None:
        """Look at the bytes that were read of many records."""

    def decoded(self, cursor: Cursor, at: int, data: bytes) -> Any:
        """Return the value of bytes that were read."""
        del cursor, at
        return data

    def meaning(self, value: Any) -> str | None:
        """Return what `fxf explain` says of the value."""
        if isinstance(value, bytes):
            return None
        return str(value)


def place_of(data: memoryview, at: int, limit: int, byte: bytes, absent: dict[bytes, int]) -> int:
    """Return the place of the first ``byte`` from ``at`` up to ``limit``; -1 if there is none.

    ``absent`` has, for each byte, the place from which on the data do not have it.
    """
    # A hostile file of many records, none of which ends, would be searched to its end for each of
    # them: ``absent`` keeps what one search found out, and growing steps keep short texts cheap.
    to_end = limit == len(data)
    if to_end and at >= absent.get(byte, limit):
        return -1
    begin = at
    step = FIRST_STEP
    while begin < limit:
        index = bytes(data[begin : min(begin + step, limit)]).find(byte)
        if index >= 0:
            return begin + index
        begin += step
        step *= 2
    if to_end:
        absent[byte] = at
    return -1


class Octets(Span):
    """Bytes without further meaning; hex in record JSON, as ``NAME_hex``."""

    json_suffix = "_hex"

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the bytes into record JSON."""
        out[self.key] = bytes(value).hex()

    def parse(self, form: JsonFields) -> Any:
        """Return the bytes."""
        return form.octets(self.key)


class Text(Span):
    """UTF-8. Bytes that are not are kept as surrogate escapes, and reported."""

    def __init__(
        self,
        nbytes: Any = None,
        *,
        defines: Entry | None = None,
        refers: Entry | None = None,
        inline: int = 0,
        empty: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(nbytes, **options)
        self.defines = defines
        self.entry = refers
        self.index = None if refers is None else refers.index
        self.inline = inline
        self.empty = empty
        self.number: Number | None = None
        """The number of which some bits say which entry it is, as in ``refers=names[ref & 0xff]``.
        """
        if refers is not None and not isinstance(refers.index, Number):
            numbers = (leaf for leaf in refers.index.leaves() if isinstance(leaf, Number))
            self.number = next(numbers, None)

    @property
    def changes_state(self) -> bool:
        """Whether it is declared in a table."""
        return self.defines is not None

    def expressions(self) -> list[Expression]:
        """Return the expressions that it depends on."""
        terms = super().expressions()
        if self.defines is None:
            return terms
        return [*terms, self.defines.index]

    def bytes_of(self, value: Any) -> bytes:
        """Return the bytes of a text. Raises RefusalError for something else."""
        if not isinstance(value, str):
            raise RefusalError(WRONG_TYPE, f"{self.name} must be a string, not {value!r}")
        try:
            return value.encode(errors="surrogateescape")
        except UnicodeEncodeError as error:
            raise RefusalError(WRONG_TYPE, f"{self.name} holds a lone surrogate: {error}") from None

    def read(self, cursor: Cursor, values: Values) -> None:
        """Read the text, or look it up."""
        if self.entry is None:
            super().read(cursor, values)
            return
        index = self.entry.index.value(cursor.known)
        # Bits of the number that the index leaves out are lost, and written as zero.
        if self.number is not None and cursor.known[self.number] != index:
            cursor.differs = True
        # The bit ``inline`` says that the text is here, and the bits below it how long it is.
        if self.inline and index & self.inline:
            values[self.name] = self.read_inline(cursor, index & self.inline - 1)
        elif index == self.empty:
            values[self.name] = ""
        elif self.entry.table.closed:
            raise ShortError(self.rules.get(NOT_DECLARED, NOT_DECLARED))
        else:
            cursor.refs[self.name] = index
            values[self.name] = cursor.text(self.entry.table, index, self)

    def read_inline(self, cursor: Cursor, nbytes: int) -> str:
        """Return the text of the next bytes, and go over the padding behind them."""
        begin = cursor.at
        end = begin + nbytes
        if end > cursor.limit:
            raise cursor.short(nbytes)
        cursor.at = end
        data = cursor.data[begin:end].tobytes()
        is_plain = self.defines is None and data.isascii()
        text = data.decode() if is_plain else self.decoded(cursor, begin, data)
        # A text that earlier records declared is written as its number, and an empty one may be.
        if not text or not self.entry.table.closed:  # type: ignore[union-attr]
            cursor.differs |= self.is_written_shorter(text, cursor.state)
        if cursor.views is not None:
            cursor.stretch(self.name, begin, text)
        if self.aligned > 1 and (end - cursor.start) % self.aligned:
            cursor.align(self.aligned, self)
        return text

    def is_written_shorter(self, text: str, state: State) -> bool:
        """Return whether a text that is inline is written as a number alone."""
        assert self.entry is not None  # noqa: S101 (asked only of references)
        if not text:
            return self.empty is not None
        return not self.entry.table.closed and state.index(self.entry.table, text) is not None

    def put(self, draft: Draft) -> bytes:
        """Return the bytes of the text; none where its number says it all."""
        if self.entry is None or self.entry.index.value(draft) & self.inline:
            return super().put(draft)
        return b""

    def index_written(self, draft: Draft) -> int:
        """Return the number that refers to the text."""
        return self.index_to_write(getattr(draft.record, self.name), draft.state, draft.record.refs)

    def decoded(self, cursor: Cursor, at: int, data: bytes) -> str:
        """Return the text of bytes; report those that are not UTF-8, and define it in a table."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            # A rule of the format's own is reported at the start of the record, so its value is the
            # place of the text.
            if self.rules:
                cursor.note(NOT_UTF8, at, at, self)
            else:
                cursor.note(NOT_UTF8, 0, at)
            text = data.decode(errors="surrogateescape")
        if self.defines is not None:
            index = self.defines.index.value(cursor.known)
            cursor.effects.append(("define", self.defines.table, index, text, at, len(data)))
        return text

    def read_many(self, many: Many) -> None:
        """Read the texts of many records, or look them up."""
        if self.entry is None:
            super().read_many(many)
            return
        indexes = many.full(self.entry.index.column(many))
        many.known[self, CODE] = Codes(indexes.size)
        # Texts are inline, or empty, or else entries of the table.
        needs_no_entry = np.zeros(indexes.size, bool)
        if self.inline and np.bitwise_or.reduce(indexes) & self.inline:
            needs_no_entry = indexes & self.inline != 0
            self.read_inlines(many, np.flatnonzero(needs_no_entry), indexes)
        if self.empty is not None and self.empty in indexes:
            empty_rows = np.flatnonzero(indexes == self.empty)
            # Code 0 is the empty text.
            codes = np.zeros(empty_rows.size, np.int32)
            many.known[self, CODE].add(empty_rows, codes)
            needs_no_entry[empty_rows] = True
        if self.entry.table.closed:
            many.lose(~needs_no_entry)
            return
        index = self.entry.index
        unsigned = isinstance(index, Number) and not index.signed
        referring_rows = None  # all of them
        if needs_no_entry.any():
            referring_rows = np.flatnonzero(~needs_no_entry)
        many.refer(self, self.entry.table, indexes, referring_rows, unsigned=unsigned)

    def read_inlines(self, many: Many, inline_rows: I64, indexes: I64) -> None:
        """Read the texts that are in the records themselves."""
        if not inline_rows.size:
            return
        if inline_rows.size == indexes.size:
            self.read_all_inlines(many, indexes)
            return
        having_text = many.some(inline_rows)
        having_text.known[self, CODE] = Codes(inline_rows.size)
        self.read_all_inlines(having_text, indexes[inline_rows])
        many.put_back(having_text, inline_rows)

    def read_all_inlines(self, many: Many, indexes: I64) -> None:
        """Read texts all of which are in the records themselves."""
        starts, lengths = many.stretch(indexes & self.inline - 1)
        self.check_spans(many, starts, lengths)
        codes = many.enter(starts, lengths)
        many.known[self, CODE].add(slice(None), codes)
        many.known[self, START] = starts
        many.known[self, LENGTH] = lengths
        many.align(self.aligned, self)

    def check_spans(self, many: Many, starts: I64, lengths: I64) -> None:
        """Report texts that are not UTF-8, and define them in a table."""
        self.tell_strange(many, starts, many.not_utf8(starts, lengths))
        self.define_many(many, starts, lengths)

    def tell_strange(self, many: Many, starts: I64, strange: I64) -> None:
        """Report texts that are not UTF-8, an index."""
        if strange.size:
            is_strange = np.zeros(starts.size, bool)
            is_strange[strange] = True
            many.known[self, STRANGE] = is_strange
            if self.rules:
                many.note(NOT_UTF8, strange, starts, starts, self)
            else:
                many.note(NOT_UTF8, strange, 0, starts)

    def define_many(self, many: Many, starts: I64, lengths: I64) -> None:
        """Declare texts in a table, if the field does."""
        if self.defines is not None:
            indexes = many.full(self.defines.index.column(many))
            many.enter(starts, lengths, self.defines.table, indexes)

    def index_to_write(self, text: Any, state: State | None, refs: Refs) -> int:
        """Return the number that refers to the text: declared before, or that of an inline one."""
        assert self.entry is not None  # noqa: S101 (asked only of references)
        data = self.bytes_of(text)
        index_read = (refs or {}).get(self.name)
        if not data and self.empty is not None and index_read is None:
            return self.empty
        if index_read is not None and state is None:
            return int(index_read)
        if self.entry.table.closed or (self.inline and state is None):
            if len(data) >= self.inline:
                message = f"{self.name} has {len(data)} bytes; at most {self.inline - 1} fit"
                raise self.refused(DOES_NOT_FIT, message)
            return self.inline | len(data)
        try:
            index = index_of(self.entry.table, text, self.name, state, refs)
            if index != self.empty and not index & self.inline:
                return index  # another number means something else in this field
            raise RefusalError(NO_SUCH_TEXT, f"{self.name}: {text!r} has the number {index}")
        except RefusalError:
            if not self.inline or len(data) >= self.inline:
                raise
            return self.inline | len(data)

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the text into record JSON."""
        show_text(out, self.key, value)

    def parse(self, form: JsonFields) -> Any:
        """Return the text."""
        return form.text(self.key)
