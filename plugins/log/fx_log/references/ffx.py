"""A model of `ffx log`: which structured records it shows, and the table of its quirks.

The model follows the Rust parser of 2026: arguments are read one after another, whatever their size
fields, and the stream ends at the first record that cannot be parsed.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from fx_log import layout
from fx_log.layout import ArgType
from fxframework.io.words import WORD, view_of
from fxframework.model.prediction import Effect, Prediction, Quirk

if TYPE_CHECKING:
    from fxframework.model.capture import Capture

__all__ = ["QUIRKS", "predict", "quirks"]

S, D, M = Effect.STOPS, Effect.DROPS, Effect.MISREADS


QUIRKS: Final[tuple[Quirk, ...]] = (
    Quirk("size-zero", S, "a record of size 0 ends the stream: Invalid record size in header"),
    Quirk("cut", S, "a record that is cut off ends the stream: Truncated record at end of stream"),
    Quirk("record", S, "a record of another type, or without a time, ends the stream"),
    Quirk("reference", S, "a string reference without its inline bit ends the stream"),
    Quirk("string", S, "a string that is longer than the rest of its record ends the stream"),
    Quirk("number", S, "a number whose word is not in its record ends the stream"),
    Quirk("arg-type", S, "an argument of a type that logs do not have ends the stream"),
    Quirk("utf8", S, "a name or string that is not UTF-8 ends the stream, except in the first "
          "message"),
    Quirk("rolled-out", D, "a control record that says how many logs were lost is left out"),
    Quirk("manifest", D, "a manifest without a moniker or without a url is left out"),
    Quirk("unknown-tag", M, "a log whose tag no manifest named is shown with the moniker UNKNOWN"),
    Quirk("message", M, "bytes of the first message that are not UTF-8 become U+FFFD"),
    Quirk("null", M, "a null, and each zero word at the end of a record, becomes the number 1"),
    Quirk("dropped", M, "`dropped_logs`, as C++ writes it, is an ordinary key, and no logs count "
          "as lost"),
    Quirk("type", M, "a well-known argument of another type is an ordinary key"),
    Quirk("repeated", M, "of several well-known arguments of one name, tags aside, the last one "
          "is kept"),
)  # fmt: skip
INVALID, UNSUPPORTED, MISSING = "ValueOutOfValidRange", "Unsupported", "InvalidArgument"
"""The parser's error names."""
WELL_KNOWN: Final = {
    name.encode(): kind
    for name, kind in layout.WELL_KNOWN.items()
    if name not in {"dropped_logs", "verbosity"}
}
MESSAGE: Final = b"message"
WORDS = Struct("<Q").unpack_from


class _Stopped(Exception):  # noqa: N818 (internal: the outcome of reading)
    """The stream ends: the quirk's key, and the parser's message."""

    def __init__(self, key: str, said: str) -> None:
        super().__init__(said)
        self.key, self.said = key, said


def quirks() -> tuple[Quirk, ...]:
    """Return the table of quirks."""
    return QUIRKS


def predict(capture: Capture, found: Prediction) -> None:
    """Add the predicted effects of ffx on a stream of logs."""
    _Stream(view_of(capture.source.data), found).run()


class _Stream:
    """One reading of a stream."""

    def __init__(self, data: memoryview, found: Prediction) -> None:
        self.data = data
        self.found = found
        self.named: set[int] = set()
        """Tags named by a manifest."""
        self.offset = self.record = 0
        """Byte offset and number of the current record."""

    def run(self) -> None:
        """Read records up to the first one that cannot be parsed."""
        data, size = self.data, len(self.data)
        try:
            while self.offset < size:
                if self.offset + WORD > size:
                    raise _Stopped("cut", "Truncated record at end of stream")
                header = WORDS(data, self.offset)[0]
                nbytes = layout.SIZE.get(header) * WORD
                if not nbytes:
                    raise _Stopped("size-zero", "Invalid record size in header")
                if self.offset + nbytes > size:
                    raise _Stopped("cut", "Truncated record at end of stream")
                wrong_type = layout.TYPE.get(header) != layout.RECORD_TYPE
                if wrong_type or nbytes < layout.MIN_RECORD_WORDS * WORD:
                    raise _Stopped("record", INVALID)
                self._record(header, self.offset + nbytes)
                self.offset += nbytes
                self.record += 1
        except _Stopped as why:
            self._note(why.key, why.said)
        self.found.records = self.record

    def _note(self, key: str, detail: str = "") -> None:
        self.found.add(key, self.offset, self.record, detail)

    def _record(self, header: int, end: int) -> None:
        """Parse the arguments of a record and note their quirks."""
        tag = layout.TAG_BITS.get(header)
        at = self.offset + layout.MIN_RECORD_WORDS * WORD
        names: list[bytes] = []
        lossy = True
        while at < end:
            at, kind, name, lossy = self._argument(at, end, lossy)
            names.append(name)
            if kind == ArgType.NULL:
                self._note("null")
            elif name == b"dropped_logs":
                self._note("dropped")
            elif WELL_KNOWN.get(name, kind) != kind:
                self._note("type")
        if tag & layout.CONTROL:
            self._control(tag & ~layout.CONTROL, set(names))
            return
        if tag not in self.named:
            self._note("unknown-tag")
        single = [name for name in names if name in WELL_KNOWN and name != b"tag"]
        if len(set(single)) < len(single):
            self._note("repeated")

    def _control(self, tag: int, names: set[bytes]) -> None:
        """Handle a control record: a manifest names a tag, any other is dropped."""
        if layout.CONTROL_ROLLED_OUT.encode() in names:
            self._note("rolled-out")
        elif {layout.MANIFEST_MONIKER.encode(), layout.MANIFEST_URL.encode()} <= names:
            self.named.add(tag)
        else:
            self._note("manifest")

    def _argument(self, at: int, end: int, lossy: bool) -> tuple[int, int, bytes, bool]:
        """Return the end of an argument, its type and name, and whether no message came yet."""
        header = WORDS(self.data, at)[0]
        kind = layout.ARG_TYPE.get(header)
        if kind > ArgType.BOOL:
            raise _Stopped("arg-type", INVALID)
        name, at = self._string(layout.NAME_REF.get(header), at + WORD, end)
        self._check_text(name)
        if kind in layout.TRACE_TYPES:
            raise _Stopped("arg-type", UNSUPPORTED)
        if kind in layout.NUMBERS:
            at += WORD
            if at > end:
                raise _Stopped("number", MISSING)
        elif kind == ArgType.STRING:
            value, at = self._string(layout.VALUE_REF.get(header), at, end)
            if lossy and name == MESSAGE:
                lossy = False
                self._check_message(value)
            else:
                self._check_text(value)
        return at, kind, name, lossy

    def _string(self, reference: int, at: int, end: int) -> tuple[bytes, int]:
        """Return an inline string, and the offset after its padding."""
        if not reference:
            return b"", at
        if not reference & layout.INLINE:
            raise _Stopped("reference", UNSUPPORTED)
        size = reference & layout.MAX_STRING
        behind = at + -(-size // WORD) * WORD
        if behind > end:
            raise _Stopped("string", INVALID)
        return bytes(self.data[at : at + size]), behind

    def _check_text(self, text: bytes) -> None:
        if not text.isascii() and not _is_utf8(text):
            raise _Stopped("utf8", INVALID)

    def _check_message(self, text: bytes) -> None:
        if not text.isascii() and not _is_utf8(text):
            self._note("message")


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
