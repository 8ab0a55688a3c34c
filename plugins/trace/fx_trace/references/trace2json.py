"""trace2json: what Fuchsia's converter makes of a trace: the table of its quirks, and a model.

The model follows Fuchsia's trace reader in C++ of 2024 and later, and what its converter exports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fx_trace import layout
from fx_trace.layout import ArgType, MetadataType, ObjectType
from fx_trace.references.fields import FieldWalk
from fx_trace.references.walk import LeftOut
from fxframework.io.source import Source
from fxframework.model.prediction import Effect, Prediction, Quirk

if TYPE_CHECKING:
    from fxframework.model.capture import Capture

__all__ = ["QUIRKS", "predict", "quirks"]

R, D, M = Effect.REFUSES, Effect.DROPS, Effect.MISREADS


QUIRKS: Final[tuple[Quirk, ...]] = (
    Quirk("size-zero", R, "a record of size 0, whose header is not a word of zero, ends the "
          "conversion with an error"),
    Quirk("cut", R, "a last record that is cut off ends the conversion with an error"),
    Quirk("odd-bytes", R, "bytes at the end that are not a whole record end the conversion with "
          "an error"),
    Quirk("short", D, "a record whose fields are beyond its end is left out"),
    Quirk("string-ref", D, "a record with a string reference that was not registered is left out"),
    Quirk("thread-ref", D, "a record with a thread reference that was not registered is left out"),
    Quirk("index-zero", D, "a string or thread record with index 0 is left out"),
    Quirk("rate-zero", D, "an initialization record with a tick rate of 0 is left out"),
    Quirk("record-type", D, "userspace objects, profiler records and records of unknown types are "
          "left out"),
    Quirk("event-type", D, "events and scheduling records of unknown types are left out"),
    Quirk("arg-type", D, "a record with an argument of an unknown type is left out"),
    Quirk("object-type", D, "kernel objects other than processes and threads are left out"),
    Quirk("blob-type", D, "blobs other than last-branch records are left out"),
    Quirk("large", D, "large blobs are left out, except those of category `fidl:blob`"),
    Quirk("large-size", D, "a large record of more than 256 KiB is left out"),
    Quirk("buffer-full", D, "the note that a provider's buffer was full is logged, not exported"),
    Quirk("null", D, "arguments that are null are left out"),
    Quirk("rates", M, "all times are scaled by the last tick rate, that of any provider"),
    Quirk("reused", M, "a string or thread index that is registered again keeps its first "
          "meaning"),
    Quirk("names", M, "of several names of a process or thread, the longest one is kept"),
    Quirk("blob-arg", M, "an argument that is a blob is exported with the padding behind it"),
    Quirk("utf8", M, "bytes that are not UTF-8 become U+FFFD"),
)  # fmt: skip


def quirks() -> tuple[Quirk, ...]:
    """Return the table."""
    return QUIRKS


def predict(capture: Capture, found: Prediction) -> None:
    """Add what trace2json makes of the bytes of a trace."""
    _Conversion(capture.source, found).load()


class _Conversion(FieldWalk):
    """One conversion."""

    def __init__(self, source: Source, found: Prediction) -> None:
        super().__init__(source, found)
        self.rate: int | None = None
        self.names: dict[int, bytes] = {}

    def load(self) -> None:
        """Take all records."""
        self.run()
        self.found.records = self.record

    def zero_size(self, header: int) -> int:
        """Read words of zero, which are padding."""
        if not header:
            return self.zero_words()
        self.note("size-zero")
        return 0

    def check_text(self, text: bytes) -> None:
        """What is not UTF-8 is replaced."""
        if not text.isascii():
            try:
                text.decode("utf-8")
            except UnicodeDecodeError:
                self.note("utf8")

    def check_arg(self, kind: int, nbytes: int) -> None:
        """Nulls are left out, and blobs have their padding."""
        super().check_arg(kind, nbytes)
        if kind == ArgType.NULL:
            self.note("null")
        elif kind == ArgType.BLOB and nbytes % 8:
            self.note("blob-arg")

    def register_string(self, index: int, text: bytes) -> None:
        """The first one stays."""
        if self.provider.strings.setdefault(index, text) != text:
            self.note("reused")

    def register_thread(self, index: int, thread: int) -> None:
        """The first one stays."""
        if self.provider.threads.setdefault(index, thread) != thread:
            self.note("reused")

    def metadata(self, header: int) -> None:
        """Notes are logged."""
        if header >> 16 & 15 == MetadataType.PROVIDER_EVENT:
            self.note("buffer-full")
        else:
            super().metadata(header)

    def initialization(self, header: int) -> None:
        """One rate, that of the last record."""
        super().initialization(header)
        rate = self.words[self.at + 1]
        if not rate:
            raise LeftOut("rate-zero")
        if self.rate not in {None, rate}:
            self.note("rates")
        self.rate = rate

    def blob(self, header: int) -> None:
        """Last-branch records alone."""
        super().blob(header)
        if header >> 48 & 0xFF != layout.BlobType.LAST_BRANCH:
            raise LeftOut("blob-type")

    def userspace_object(self, _header: int) -> None:
        """They are unknown."""
        raise LeftOut("record-type")

    def profiler(self, _header: int) -> None:
        """They are not exported."""
        raise LeftOut("record-type")

    def kernel_object(self, header: int) -> None:
        """Names of processes and threads."""
        super().kernel_object(header)
        if header >> 16 & 0xFF not in {ObjectType.PROCESS, ObjectType.THREAD}:
            raise LeftOut("object-type")
        name, _ = self.text(header >> 24 & 0xFFFF, self.at + 2)
        if self.names.setdefault(self.words[self.at + 1], name) != name:
            self.note("names")

    def large(self, header: int) -> None:
        """Blobs of one category."""
        super().large(header)
        if 8 * layout.LARGE_SIZE.get(header) > layout.MAX_LARGE_BYTES:
            raise LeftOut("large-size")
        category, _ = self.text(self.words[self.at + 1] & 0xFFFF, self.at + 2)
        if category != b"fidl:blob":
            raise LeftOut("large")
