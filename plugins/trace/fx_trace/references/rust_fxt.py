"""rust-fxt: what Fuchsia's Rust library makes of a trace: the table of its quirks, and a model.

The model follows the crate `fxt` of 2026, which `fxtdump` uses: a record that does not parse is
skipped by its size, and the reading goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fx_trace import layout
from fx_trace.layout import ArgType, EventType, ProfilerType
from fx_trace.references.fields import FieldWalk
from fx_trace.references.walk import LeftOut
from fxframework.io.source import Source
from fxframework.model.prediction import Effect, Prediction, Quirk

if TYPE_CHECKING:
    from fxframework.model.capture import Capture

__all__ = ["QUIRKS", "predict", "quirks"]

R, D, M = Effect.REFUSES, Effect.DROPS, Effect.MISREADS


QUIRKS: Final[tuple[Quirk, ...]] = (
    Quirk("no-magic", R, "a file that does not begin with the little-endian magic number record "
          "is refused: MissingMagicNumber"),
    Quirk("rate", R, "an event after a tick rate of 0, or beyond 63 bits of nanoseconds, panics"),
    Quirk("blob-size", R, "an argument that is a blob, of more bytes than it has, panics"),
    Quirk("size-zero", D, "a record of size 0 is an error, and the word is skipped: InvalidSize"),
    Quirk("short", D, "a record whose fields are beyond its end is an error, and left out"),
    Quirk("arg-size", D, "a record with an argument that does not fill its size is an error, and "
          "left out"),
    Quirk("utf8", D, "a record with a string that is not UTF-8, except the name of a kernel "
          "object, is an error, and left out"),
    Quirk("initialization", D, "an initialization record of more than two words is an error, and "
          "left out"),
    Quirk("index-zero", D, "a string or thread record with index 0 is left out"),
    Quirk("record-type", D, "records of unknown types are left out, with a warning"),
    Quirk("event-type", D, "events and scheduling records of unknown types are left out, with a "
          "warning"),
    Quirk("arg-type", D, "arguments of unknown types are left out with their record"),
    Quirk("cut", D, "a last record that is cut off is left out"),
    Quirk("odd-bytes", D, "bytes at the end that are not a whole word are left out"),
    Quirk("string-ref", M, "a string reference that was not registered becomes `<unknown>`"),
    Quirk("thread-ref", M, "a thread reference that was not registered becomes the koid 2^64 - 1"),
    Quirk("no-rate", M, "without an initialization record, a tick is a second"),
    Quirk("rates", M, "the last tick rate is that of all providers"),
    Quirk("threads", M, "a thread index of one provider replaces that of another"),
    Quirk("scope", M, "the scope of an instant is ignored"),
    Quirk("profiler", M, "the inline thread of a module or mmap is taken for a process alone"),
    Quirk("large-format", M, "a large blob without metadata is read as one with metadata"),
)  # fmt: skip
NS_PER_SECOND: Final = 1_000_000_000
SCOPES: Final = (1, 2)
"""Of instants of a process, or of all; those of a thread lose nothing."""


def quirks() -> tuple[Quirk, ...]:
    """Return the table."""
    return QUIRKS


def predict(capture: Capture, found: Prediction) -> None:
    """Add what the crate makes of the bytes of a trace."""
    _Parser(capture.source, found).load()


class _Parser(FieldWalk):
    """One parse."""

    exact_args = True

    def __init__(self, source: Source, found: Prediction) -> None:
        super().__init__(source, found)
        self.rate: int | None = None
        self.threads: dict[int, int] = {}
        self.strict_text = True

    def load(self) -> None:
        """Take all records."""
        if self.source.read(0, 8) != layout.MAGIC_BYTES:
            self.found.add("no-magic", 0)
        else:
            self.run()
        self.found.records = self.record

    def zero_size(self, _header: int) -> int:
        """One error, and one word."""
        self.note("size-zero")
        return 1

    def unregistered(self, _index: int) -> bytes:
        """Return a replacement."""
        self.note("string-ref")
        return b"<unknown>"

    def unregistered_thread(self, _index: int) -> None:
        """A replacement."""
        self.note("thread-ref")

    def thread_table(self) -> dict[int, int]:
        """One for all providers."""
        return self.threads

    def register_thread(self, index: int, thread: int) -> None:
        """The last one counts; where it is that of another provider, that is a mistake."""
        own = self.provider.threads
        if self.threads.get(index, thread) not in {thread, own.get(index)}:
            self.note("threads")
        own[index] = self.threads[index] = thread

    def check_text(self, text: bytes) -> None:
        """UTF-8, or an error."""
        if self.strict_text and not text.isascii():
            try:
                text.decode("utf-8")
            except UnicodeDecodeError:
                raise LeftOut("utf8") from None

    def args(self, count: int, cursor: int) -> int:
        """Return a blob of more bytes than its argument has panics."""
        at = cursor
        for _ in range(count):
            if at >= self.end:
                break
            header = self.words[at]
            size = header >> 4 & 0xFFF
            if header & 15 == ArgType.BLOB and header >> 32 > 8 * size:
                self.note("blob-size")
            at += size
        return super().args(count, cursor)

    def initialization(self, header: int) -> None:
        """Two words; one rate for all."""
        super().initialization(header)
        if self.end - self.at > 2:
            raise LeftOut("initialization")
        rate = self.words[self.at + 1]
        if self.rate not in {None, rate}:
            self.note("rates")
        self.rate = rate

    def event(self, header: int) -> None:
        """An event; its scope is not read."""
        cursor = self.event_fields(header)
        self._check_time()
        is_instant = header >> 16 & 15 == EventType.INSTANT
        if is_instant and cursor < self.end and self.words[cursor] in SCOPES:
            self.note("scope")

    def _check_time(self) -> None:
        rate = 1 if self.rate is None else self.rate
        if self.rate is None:
            self.note("no-rate")
        if not rate or self.words[self.at + 1] * NS_PER_SECOND // rate >> 63:
            self.note("rate")

    def kernel_object(self, header: int) -> None:
        """The name may be any bytes."""
        self.need(self.at + 2)
        self.strict_text = False
        try:
            _, cursor = self.text(header >> 24 & 0xFFFF, self.at + 2)
        finally:
            self.strict_text = True
        self.args(header >> 40 & 15, cursor)

    def profiler(self, header: int) -> None:
        """Inline threads of modules and mmaps are one word."""
        super().profiler(header)
        if header >> 20 & 0xFF:
            return
        kind = header >> 16 & 15
        known = self.at + 2
        if kind == ProfilerType.MODULE:
            known += ((header >> 44 & 0xFF) + 7 >> 3) + ((header >> 52 & 0xFF) + 7 >> 3)
        elif kind == ProfilerType.MMAP:
            known += 3
        else:
            return
        if self.end - known == 2:
            self.note("profiler")

    def large(self, header: int) -> None:
        """The large type is taken for the format of the blob."""
        super().large(header)
        if header >> 40 & 15 != header >> 36 & 15:
            self.note("large-format")
