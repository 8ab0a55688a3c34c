"""Spans: fields that are stretches of bytes, texts among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fxframework.errors import PluginError
from fxframework.kit.json_fields import JsonFields, show_text
from fxframework.wire.cursor import AT, Cursor, Draft, RefusalError, ShortError
from fxframework.wire.expressions import Constant, Expression, expression
from fxframework.wire.fields import Field, Number, Refs, Values, index_of
from fxframework.wire.known import CODE, LENGTH, START, STRANGE, Codes
from fxframework.wire.state import Entry, State

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fxframework.wire.many import Many
else:
    from fxframework.kit.lazy import numpy as np

__all__ = ["Octets", "Span", "Text", "place_of"]

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
        for name, byte in (("until", until), ("pad", pad)):
            if len(byte) > 1:
                raise PluginError(f"{name} is {byte!r}, not one byte")
        if until and nbytes is not None:
            raise PluginError("a span is terminated or counted, not both")
        self.nbytes = None if nbytes is None else expression(nbytes)
        self.until = until
        self.pad = pad
        self.aligned = align
        self.placed = self.nbytes is not None and any(each is AT for each in self.nbytes.leaves())

    @property
    def fixed(self) -> int | None:
        """Its size in bytes, if that is a constant."""
        return self.nbytes.number if isinstance(self.nbytes, Constant) else None

    def least(self) -> int:
        """Return the fewest bytes that it takes."""
        if self.when is not None:
            return 0
        return self.fixed or (1 if self.until else 0)

    def expressions(self) -> list[Expression]:
        """Return the expressions that it depends on."""
        return super().expressions() + ([] if self.nbytes is None else [self.nbytes])

    def bytes_of(self, value: Any) -> bytes:
        """Return the bytes of a value, without terminator and padding."""
        if not isinstance(value, bytes | bytearray | memoryview):
            raise RefusalError(403, f"{self.name} must be bytes, not {value!r}")
        return bytes(value)

    def take(self, c: Cursor) -> tuple[int, bytes]:
        """Return the place and the bytes, without terminator and padding."""
        start = c.at
        if self.until:
            end = place_of(c.data, c.at, c.limit, self.until, c.state.absent)
            if end < 0:
                raise c.short(c.limit - c.at + 1)
            data = bytes(c.data[c.at : end])
            c.at = end + 1
        else:
            if self.placed:
                c.known[AT] = c.at - c.start
            length = c.limit - c.at if self.nbytes is None else self.nbytes.evaluate(c.known)
            data = bytes(c.take(length))
        if self.pad:
            taken = len(data)
            data = data.rstrip(self.pad)
            c.differs |= self.fixed is None and len(data) < taken
        if c.views is not None:
            c.spans[self] = start, len(data)
        return start, data

    def ended(self, data: bytes) -> bytes:
        """Return bytes with terminator and padding. Raises RefusalError if they do not fit."""
        if self.until and self.until in data:
            raise self.refused(404, f"{self.name} has the byte {self.until!r}, which ends it")
        if self.pad and data.endswith(self.pad):
            raise RefusalError(404, f"{self.name} ends in {self.pad!r}, which is its padding")
        fixed = self.fixed
        if fixed is not None and (len(data) > fixed or (len(data) < fixed and not self.pad)):
            least = 0 if self.pad else fixed
            what = f"{least} to {fixed}" if self.pad else f"{fixed}"
            raise RefusalError(404, f"{self.name} has {len(data)} bytes, but its field has {what}")
        return data + self.until + self.pad * ((fixed or 0) - len(data))

    def length_written(self, draft: Draft) -> int:
        """Return how many bytes it has, without terminator and padding."""
        return len(draft.bytes_of(self))

    def put(self, draft: Draft) -> bytes:
        """Return the bytes with terminator and padding, up to where what follows is aligned."""
        data = self.ended(draft.bytes_of(self))
        return data + bytes(-(draft.at + len(data)) % self.aligned)

    def read(self, c: Cursor, values: Values) -> None:
        """Read the bytes."""
        at, data = self.take(c)
        values[self.name] = self.seen(c, at, data)
        if c.views is not None:
            c.stretch(self.name, at, self.meaning(values[self.name]))
        if self.aligned > 1:
            c.align(self.aligned, self)

    def read_many(self, c: Many) -> None:
        """Find the bytes of many records: their places, and lengths without padding."""
        starts, lengths = self.take_of_many(c)
        c.known[self, START], c.known[self, LENGTH] = starts, lengths
        self.seen_of_many(c, starts, lengths)
        c.align(self.aligned, self)

    def take_of_many(self, c: Many) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the places of the bytes, and their lengths without terminator and padding."""
        at = c.at()
        if self.until:
            room = np.maximum(c.limit - at, 0)
            ends = c.found(at, room, self.until[0])
            c.lose(ends < 0)
            starts, lengths = at, np.where(ends < 0, 0, ends - at)
            c.go_to(np.where(ends < 0, at, ends + 1))
        elif self.fixed is not None and self.fixed <= c.assured:
            starts, lengths = c.take(self.fixed), np.full(at.size, self.fixed)
        else:
            starts, lengths = c.stretch(
                c.limit - at if self.nbytes is None else self.nbytes.column(c)
            )
        if self.pad:
            whole, lengths = lengths, c.trimmed(starts, lengths, self.pad[0])
            self._check_trimmed(c, starts + lengths, whole - lengths)
        return starts, lengths

    def _check_trimmed(self, c: Many, ends: NDArray[np.int64], trimmed: NDArray[np.int64]) -> None:
        """Mark the records in which padding was taken off that writing does not add again."""
        if self.fixed is not None:
            return
        layout = c.layout
        is_sized = bool(layout.fixed) or layout.family.size is not None
        is_rest = self.nbytes is None and not self.until
        if is_sized and is_rest and self.pad == b"\0":
            c.check_end(ends, trimmed)  # zero bytes fill the record
        else:
            c.keep_raw(trimmed > 0)

    def seen_of_many(self, c: Many, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> None:
        """Look at the bytes that were read of many records."""

    def seen(self, c: Cursor, at: int, data: bytes) -> Any:
        """Return the value of bytes that were read."""
        del c, at
        return data

    def meaning(self, value: Any) -> str | None:
        """Return what `fxf explain` says of the value."""
        return None if isinstance(value, bytes) else str(value)


def place_of(data: memoryview, at: int, limit: int, byte: bytes, absent: dict[bytes, int]) -> int:
    """Return the place of the first ``byte`` from ``at`` up to ``limit``; -1 if there is none.

    ``absent`` has, of each byte, from where on the data have none. Without it, and without steps, a
    file of many records that no byte ends would be searched to its end for each.
    """
    to_end = limit == len(data)
    if to_end and at >= absent.get(byte, limit):
        return -1
    begin, step = at, FIRST_STEP
    while begin < limit:
        found = bytes(data[begin : min(begin + step, limit)]).find(byte)
        if found >= 0:
            return begin + found
        begin, step = begin + step, 2 * step
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
        self.can_align_at_once = self.aligned & self.aligned - 1 == 0
        """Whether texts and the padding behind them are looked at together: by powers of two."""
        leaves = () if refers is None or isinstance(refers.index, Number) else refers.index.leaves()
        self.number = next((leaf for leaf in leaves if isinstance(leaf, Number)), None)
        """The number of which some bits say which entry it is, if that is not a number itself."""

    @property
    def changes_state(self) -> bool:
        """Whether it is declared in a table."""
        return self.defines is not None

    def expressions(self) -> list[Expression]:
        """Return the expressions that it depends on."""
        return super().expressions() + ([] if self.defines is None else [self.defines.index])

    def bytes_of(self, value: Any) -> bytes:
        """Return the bytes of a text. Raises RefusalError for something else."""
        if not isinstance(value, str):
            raise RefusalError(403, f"{self.name} must be a string, not {value!r}")
        try:
            return value.encode(errors="surrogateescape")
        except UnicodeEncodeError as error:
            raise RefusalError(403, f"{self.name} holds a lone surrogate: {error}") from None

    def read(self, c: Cursor, values: Values) -> None:
        """Read the text, or look it up."""
        if self.entry is None:
            super().read(c, values)
            return
        index = self.entry.index.evaluate(c.known)
        if self.number is not None and c.known[self.number] != index:
            c.differs = True
        if self.inline and index & self.inline:
            values[self.name] = self.read_inline(c, index & self.inline - 1)
        elif index == self.empty:
            values[self.name] = ""
        elif self.entry.table.closed:
            raise ShortError(self.rules.get(108, 108))
        else:
            c.refs[self.name] = index
            values[self.name] = c.text(self.entry.table, index, self)

    def read_inline(self, c: Cursor, nbytes: int) -> str:
        """Return the text of the next bytes, and go over the padding behind them."""
        begin, end = c.at, c.at + nbytes
        if end > c.limit:
            raise c.short(nbytes)
        c.at = end
        data = c.data[begin:end].tobytes()
        is_plain = self.defines is None and data.isascii()
        text = data.decode() if is_plain else self.seen(c, begin, data)
        # A text that earlier records declared is written as its number, and an empty one may be.
        if not text or not self.entry.table.closed:  # type: ignore[union-attr]
            c.differs |= self.is_written_shorter(text, c.state)
        if c.views is not None:
            c.stretch(self.name, begin, text)
        if self.aligned > 1 and (end - c.start) % self.aligned:
            c.align(self.aligned, self)
        return text

    def is_written_shorter(self, text: str, state: State) -> bool:
        """Return whether a text that is inline is written as a number alone."""
        assert self.entry is not None  # noqa: S101 (asked only of references)
        if not text:
            return self.empty is not None
        return not self.entry.table.closed and state.index(self.entry.table, text) is not None

    def put(self, draft: Draft) -> bytes:
        """Return the bytes of the text; none where its number says it all."""
        if self.entry is None or self.entry.index.evaluate(draft) & self.inline:
            return super().put(draft)
        return b""

    def index_written(self, draft: Draft) -> int:
        """Return the number that refers to the text."""
        return self.index_to_write(getattr(draft.made, self.name), draft.state, draft.made.refs)

    def seen(self, c: Cursor, at: int, data: bytes) -> str:
        """Return the text of bytes; report those that are not UTF-8, and define it in a table."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            c.note(107, at, at, self) if self.rules else c.note(107, 0, at)
            text = data.decode(errors="surrogateescape")
        if self.defines is not None:
            index = self.defines.index.value(c.known)
            c.effects.append(("define", self.defines.table, index, text, at, len(data)))
        return text

    def read_many(self, c: Many) -> None:
        """Read the texts of many records, or look them up."""
        if self.entry is None:
            self.read_counted(c)
            return
        indexes = c.full(self.entry.index.column(c))
        c.known[self, CODE] = Codes(indexes.size)
        is_said = np.zeros(indexes.size, bool)
        if self.inline:
            is_said = indexes & self.inline != 0
            self.read_inlines(c, np.flatnonzero(is_said), indexes)
        if self.empty is not None:
            empty = np.flatnonzero(indexes == self.empty)
            c.known[self, CODE].add(empty, np.zeros(empty.size, np.int32))
            is_said[empty] = True
        if self.entry.table.closed:
            c.lose(~is_said)
        else:
            index = self.entry.index
            unsigned = isinstance(index, Number) and not index.signed
            left = np.flatnonzero(~is_said) if is_said.any() else None
            c.refer(self, self.entry.table, indexes, left, unsigned=unsigned)

    def read_counted(self, c: Many) -> None:
        """Read texts that no number refers to."""
        counted = self.nbytes
        if counted is None or self.pad or self.fixed is not None or not self.can_align_at_once:
            super().read_many(c)
            return
        starts, lengths = c.texts(counted.column(c), self.aligned, self)
        c.known[self, START], c.known[self, LENGTH] = starts, lengths
        self.define_many(c, starts, lengths)

    def read_inlines(self, c: Many, there: NDArray[np.int64], indexes: NDArray[np.int64]) -> None:
        """Read the texts that are in the records themselves."""
        if not there.size:
            return
        if there.size == indexes.size:
            self.read_all_inlines(c, indexes)
            return
        part = c.some(there)
        part.known[self, CODE] = Codes(there.size)
        self.read_all_inlines(part, indexes[there])
        c.put_back(part, there)

    def read_all_inlines(self, c: Many, indexes: NDArray[np.int64]) -> None:
        """Read texts all of which are in the records themselves."""
        unit = self.aligned if self.can_align_at_once else 1
        starts, lengths = c.texts(indexes & self.inline - 1, unit, self)
        self.define_many(c, starts, lengths)
        c.known[self, CODE].add(slice(None), c.enter(starts, lengths))
        c.known[self, START], c.known[self, LENGTH] = starts, lengths
        if unit != self.aligned:
            c.align(self.aligned, self)

    def seen_of_many(self, c: Many, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> None:
        """Report texts that are not UTF-8, and define them in a table."""
        self.tell_strange(c, starts, c.not_utf8(starts, lengths))
        self.define_many(c, starts, lengths)

    def tell_strange(self, c: Many, starts: NDArray[np.int64], strange: NDArray[np.int64]) -> None:
        """Report texts that are not UTF-8, an index."""
        if strange.size:
            is_strange = c.known[self, STRANGE] = np.zeros(starts.size, bool)
            is_strange[strange] = True
            c.note(107, strange, starts if self.rules else 0, starts, self if self.rules else None)

    def define_many(self, c: Many, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> None:
        """Declare texts in a table, if the field does."""
        if self.defines is not None:
            indexes = c.full(self.defines.index.column(c))
            c.enter(starts, lengths, self.defines.table, indexes)

    def index_to_write(self, text: Any, state: State | None, refs: Refs) -> int:
        """Return the number that refers to the text: declared before, or that of an inline one."""
        assert self.entry is not None  # noqa: S101 (asked only of references)
        data = self.bytes_of(text)
        given = (refs or {}).get(self.name)
        if not data and self.empty is not None and given is None:
            return self.empty
        if given is not None and state is None:
            return int(given)
        if self.entry.table.closed or (self.inline and state is None):
            if len(data) >= self.inline:
                raise self.refused(
                    404, f"{self.name} has {len(data)} bytes; at most {self.inline - 1} fit"
                )
            return self.inline | len(data)
        try:
            index = index_of(self.entry.table, text, self.name, state, refs)
            if index != self.empty and not index & self.inline:
                return index  # another number means something else in this field
            raise RefusalError(408, f"{self.name}: {text!r} has the number {index}")
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
