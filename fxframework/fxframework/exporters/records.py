"""Records as JSON lines: export of any capture, and conversion back to the same bytes."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import IO, Any, TypeVar, cast

import attrs
import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework import rules
from fxframework.errors import (
    FxError,
    LimitError,
    NoReaderError,
    OutputError,
    PluginError,
    UnreadableError,
    UsageError,
    WriteRefusedError,
    did_you_mean,
)
from fxframework.exporters.plugin import BYTE_ORDER_MARK
from fxframework.host import Host, default_host
from fxframework.io.limits import Limits
from fxframework.io.sink import Sink
from fxframework.io.source import CHUNK, Source, spool_file
from fxframework.io.temporary import Spool
from fxframework.kernels import native
from fxframework.kernels.digests import LineDigests
from fxframework.kit.export import Export
from fxframework.kit.line_packing import LinePacker
from fxframework.kit.lossless import RecordRewriter
from fxframework.model.capture import Capture, OpenRequest, Record
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.table import Table
from fxframework.registry import Option, Reader, RecordWriter, Writer

__all__ = ["VERSION", "OpaqueCapture", "RecordsExport", "open_raw_writer", "open_records"]

T = TypeVar("T")
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

VERSION = 1
"""Version of the records file format, in the header line."""
BULK = 1 << 20
"""Bytes of lines that are converted at once; a smaller file is converted line by line."""
COMPILED = native.is_compiled("fxframework.kernels.line_shapes")
"""Whether lines are found faster by kernels than parsed one by one."""
FIRST = 64
"""Lines that are written one by one before all others."""
MOST_ODD = 0.25
"""Share of the lines of a chunk that are made one by one for having been made wrong."""
NEWLINE = 0x0A
EXPANSION = 64
"""Bytes of output allowed per byte of a records file, in addition to ``Limits.max_claimed``."""


# --- Export ------------------------------------------------------------------------------------


class RecordsExport(Export):
    """The exporter `records`: writes the records of one capture, after a header line."""

    def write(self, capture: Capture) -> None:
        """Write a capture's records. Raises WriteRefusedError for a second capture."""
        self._only_one_capture("a records file holds one capture")
        if self._options.get("header", True):
            self._sink.write(_header(capture))
        for chunk in capture.records_json():
            self._sink.write(chunk)


def _header(capture: Capture) -> bytes:
    header: dict[str, Any] = {
        "fxframework": "records",
        "format": capture.format,
        "version": VERSION,
    }
    if capture.writer_options:
        header["options"] = dict(capture.writer_options)
    reading = _reading(capture)
    if reading:
        header["reading"] = reading
    return orjson.dumps(header) + b"\n"


def _reading(capture: Capture) -> dict[str, Any]:
    """Return the portable reader options of a capture that differ from the defaults."""
    given = capture.request.options
    if not given:
        return {}
    host: Host = capture.request.host or default_host()
    reader = host.readers.get(capture.format)
    return {
        option.name: given[option.name]
        for option in (() if reader is None else reader.options)
        if option.portable and given.get(option.name, option.default) != option.default
    }


# --- Import ------------------------------------------------------------------------------------


def open_records(source: Source, request: OpenRequest) -> Capture:
    """Open a records file as the capture that its records came from.

    The writer of their format converts the records to bytes, which the reader of that format opens,
    both with the portable options (``Option.portable``) of the header. Invalid lines are findings.
    A file without a header line is opened as an ``OpaqueCapture``, unless the option ``format``
    names its format.

    Raises NoReaderError for a format without an installed reader and writer, UnreadableError for a
    records file of a later version, LimitError if the records represent more bytes than
    ``max_claimed`` allows, PluginError if the writer raises anything but an FxError.
    """
    lines = _Lines(source)
    first = next(lines, b"")
    header = _parse(first)
    given = request.options.get("format")
    if not (isinstance(header, dict) and header.get("fxframework") == "records"):
        if not given:
            return OpaqueCapture(source, request)
        header = {"format": given, "version": VERSION}
        lines = _Lines(source)
    if header.get("version") != VERSION:
        raise UnreadableError(
            f"records file of version {header.get('version')}; only version {VERSION} can be read",
            path=source.name,
            remedy="install a later fxframework",
        )
    return _rebuilt(source, request, lines, header)


def _rebuilt(
    source: Source, request: OpenRequest, lines: _Lines, header: Mapping[str, Any]
) -> Capture:
    host: Host = request.host or default_host()
    format = header.get("format")
    reader = host.readers.get(str(format))
    writer = host.writers.get(str(format))
    if reader is None or writer is None:
        both = host.readers.keys() & host.writers.keys()
        raise NoReaderError(
            f"the format of its records, {format!r}, cannot be both read and written here"
            f"{did_you_mean(str(format), both)}",
            path=source.name,
            remedy="`fxf plugins` lists what is installed",
        )
    rebuilding = _Rebuilding(host, source, request, header, reader, writer)
    bulk = rebuilding.in_bulk(lines) if source.size >= BULK and COMPILED else None
    rebuilt, invalid = bulk or rebuilding.one_by_one(lines)
    rebuilt.faults = source.faults
    rebuilt.rebuilt = True
    capture = reader.open(rebuilt, attrs.evolve(request, options=rebuilding.reading))
    try:
        invalid.report(capture.diagnostics)
    except BaseException:
        capture.close()
        raise
    return capture


@attrs.define
class _Attempt:
    """Records on their way to bytes."""

    sink: _BoundedSink
    target: RecordWriter
    invalid: _InvalidLines


class _Rebuilding:
    """Converts the lines of a records file to the bytes of their format."""

    def __init__(
        self,
        host: Host,
        source: Source,
        request: OpenRequest,
        header: Mapping[str, Any],
        reader: Reader,
        writer: Writer,
    ) -> None:
        self._host = host
        self._source = source
        self._request = request
        self._header = header
        self._reader = reader
        self._writer = writer
        self.reading: Mapping[str, Any] = {}
        """Options for reading the bytes."""

    def one_by_one(self, lines: _Lines) -> tuple[Source, _InvalidLines]:
        """Return the bytes, made of one record after another, and the invalid lines."""
        with spool_file() as spool:
            attempt = self._attempt(spool, lines)
            for line in lines:
                self._write(attempt, line, lines, attempt.target.write)
            attempt.target.close()
            return Source.spooled(spool, name=self._source.name), attempt.invalid

    def in_bulk(self, lines: _Lines) -> tuple[Source, _InvalidLines] | None:
        """Return the same, made of lines of one shape at a time; None if that fails.

        Nothing is read from ``lines`` but where they begin. The bytes are read back. From lines
        that read otherwise the next attempt learns, and makes them one by one, against the records
        before them.
        """
        unlike = np.zeros(0, np.int64)
        packer = LinePacker(_parse)
        for careful in (False, True, True):
            bulk = _Bulk(lines.copy(), unlike, careful=careful)
            try:
                with spool_file() as spool:
                    attempt = self._attempt(spool, bulk.lines)
                    if not self._write_bulk(attempt, bulk, packer):
                        return None
                    attempt.target.close()
                    rebuilt, again = (
                        Source.spooled(spool, name=self._source.name) for _ in range(2)
                    )
                found = self._unlike(again, bulk)
            except FxError:
                return None
            if found is not None and not found.size:
                return rebuilt, attempt.invalid
            rebuilt.close()
            if found is None or (careful and found.size > MOST_ODD * bulk.count):
                return None
            unlike = np.union1d(unlike, found)
        return None

    def _attempt(self, spool: Spool, lines: _Lines) -> _Attempt:
        """Open the writer; invalid options of the header are findings."""
        invalid = _InvalidLines(self._request.limits.max_findings or 1 << 62)
        settings = _settings(self._header, "options", self._writer.options, invalid)
        self.reading = _settings(self._header, "reading", self._reader.options, invalid)
        # Discard the writer's findings: reading the bytes repeats them with their offsets.
        unused = Diagnostics(self._reader.rules() if self._reader.rules else {}, limit=1)
        sink = _BoundedSink(spool, lines, self._request.limits)
        return _Attempt(sink, self._writer.open(sink, settings, unused), invalid)

    def _write(
        self, attempt: _Attempt, line: bytes, lines: _Lines, write: Callable[[Any], T]
    ) -> T | None:
        """Write the record of a line; None if the line is invalid or empty."""
        invalid, sink = attempt.invalid, attempt.sink
        if not line or line.isspace():
            return None
        record = _parse(line)
        if not isinstance(record, dict):
            invalid.add(lines.offset, lines.number, "not a JSON object")
            return None
        claim = record.get("nbytes") if record.get("record") == "padding" else 0
        if isinstance(claim, int) and claim > sink.room:
            invalid.add(lines.offset, lines.number, f"it claims {claim} bytes; {sink.excess}")
            return None
        sink.claimed += claim if isinstance(claim, int) else 0
        try:
            return write(record)
        except (PluginError, LimitError, OutputError):
            raise
        except FxError as error:
            invalid.add(lines.offset, lines.number, error.message)
        except Exception as error:
            raise _blamed(self._host, self._writer, error, lines, self._source) from error
        return None

    def _write_bulk(self, attempt: _Attempt, bulk: _Bulk, packer: LinePacker) -> bool:
        """Write the records of all lines; return whether the writer can write in bulk."""
        lines, target = bulk.lines, attempt.target
        # The first lines may say what the writer has to know about all others.
        for line in itertools.islice(lines, FIRST):
            before = len(attempt.invalid)
            self._write(attempt, line, lines, target.write)
            bulk.first += bool(line.strip()) and len(attempt.invalid) == before
        alone = target.alone() if isinstance(target, RecordRewriter) else None
        if alone is None:
            return False
        assert isinstance(target, RecordRewriter)  # noqa: S101 (it has alone)
        encode = target.encoder.encode if bulk.careful or alone.exact else alone.encode
        kinds = alone.parsed | alone.registering if bulk.careful else alone.parsed
        for chunk in lines.chunks():
            number = lines.number
            made = np.ones(chunk.count(b"\n"), np.bool_)
            single = partial(
                self._single, attempt, lines, encode, chunk, lines.offset, number, made
            )
            here = bulk.unlike[np.searchsorted(bulk.unlike, number) :] - number
            here = here[: np.searchsorted(here, made.size)]
            odd = here[: 0 if here.size > MOST_ODD * made.size else None]
            packed = packer.pack(chunk, alone.encode, single, kinds=kinds, odd=odd, unlike=here)
            self._request.budget.check()
            exact = ~packed.guessed if bulk.careful or alone.exact else np.zeros_like(made)
            offsets = bulk.add(chunk, number, made, exact)
            target.put_lines(packed.data.data, packed.ends, offsets)
        return True

    def _single(
        self,
        attempt: _Attempt,
        lines: _Lines,
        encode: Callable[[Any], bytes],
        chunk: bytes,
        offset: int,
        number: int,
        made: NDArray[np.bool_],
        row: int,
        start: int,
        end: int,
    ) -> bytes:
        """Return the bytes of a line of a chunk; none, and mark it, if there is no record."""
        lines.offset, lines.number = offset + start, number + row
        data = self._write(attempt, chunk[start:end], lines, encode)
        made[row] = data is not None
        return data or b""

    def _unlike(self, rebuilt: Source, bulk: _Bulk) -> I64 | None:
        """Return the numbers of the lines that the bytes do not read as; None if that is open."""
        request = attrs.evolve(self._request, options=self.reading, strict=False, observer=None)
        digests = LineDigests(whole=True)
        found = []
        with contextlib.closing(self._reader.open(rebuilt, request)) as capture:
            for chunk in capture.records_json():
                digests.read_from(chunk)
                digests.run()
                found.append(digests.lines.taken()["digest"])
        theirs: U64 = np.concatenate([np.zeros(0, np.uint64), *found])[bulk.first :]
        return bulk.differing(theirs)


class _Bulk:
    """The lines of an attempt in bulk, and the digests of those that became records."""

    def __init__(self, lines: _Lines, unlike: I64, *, careful: bool) -> None:
        self.lines = lines
        self.unlike = unlike
        """Numbers of lines that earlier attempts made wrong."""
        self.careful = careful
        """Whether lines that are written one by one are so against the records before them."""
        self.first = 0
        """Records written before the first chunk."""
        self._digests: list[U64] = []
        self._numbers: list[I64] = []
        self._exact: list[NDArray[np.bool_]] = []
        self._kernel = LineDigests(whole=True)

    @property
    def count(self) -> int:
        """Number of records."""
        return sum(each.size for each in self._digests)

    def add(
        self, chunk: bytes, number: int, made: NDArray[np.bool_], exact: NDArray[np.bool_]
    ) -> I64:
        """Add the lines of a chunk: which became records, and which need no check.

        Return the offsets that they say, -1 where that is not known; shape (lines,).
        """
        self._kernel.read_from(chunk)
        self._kernel.run()
        rows = self._kernel.lines.taken()
        ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == NEWLINE)
        line = np.searchsorted(ends, rows["start"])
        keep = made[line]
        self._digests.append(np.where(rows["kind"] < 0, 0, rows["digest"])[keep])
        self._numbers.append(number + line[keep])
        self._exact.append(exact[line[keep]])
        offsets = np.full(made.size, -1, np.int64)
        offsets[line] = rows["offset"]
        return offsets

    def differing(self, theirs: U64) -> I64 | None:
        """Return the numbers of the lines that have other digests; None for another count."""
        if theirs.size != self.count:
            return None
        if not self._digests:
            return np.zeros(0, np.int64)
        unlike = np.concatenate(self._digests) != theirs
        unlike &= ~np.concatenate(self._exact)
        numbers: I64 = np.concatenate(self._numbers)[unlike]
        return numbers


def _blamed(host: Host, writer: Writer, error: Exception, lines: _Lines, source: Source) -> FxError:
    """Return the error for an unexpected exception of a writer."""
    made = host.blame(error) or PluginError(
        f"{type(error).__name__}: {error}, raised by the writer of {writer.format}",
        remedy=f"report it to the authors of {host.owner(writer).origin}, with this line",
    )
    made.message += f", for line {lines.number}"
    made.path, made.offset = source.name, lines.offset
    return made


class _BoundedSink(Sink):
    """Collects the bytes of the records, up to the bound for a records file of its size."""

    def __init__(self, spool: Spool, lines: _Lines, limits: Limits) -> None:
        super().__init__(cast("IO[bytes]", spool), name="a temporary file")
        self._lines = lines
        self._bound = limits.max_claimed
        self.claimed = 0
        """Bytes of padding claimed so far; the writer may still buffer some of them."""

    @property
    def room(self) -> int:
        """Remaining bytes."""
        if not self._bound:
            return 1 << 62
        taken = max(self.written, self.claimed)
        return self._bound + EXPANSION * self._lines.end - taken

    @property
    def excess(self) -> str:
        """The reason for rejecting more bytes."""
        return f"max_claimed allows {self._bound} more than {EXPANSION} times the file's size"

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes. Raises LimitError beyond the bound."""
        room = self._bound + EXPANSION * self._lines.end - self.written
        if self._bound and len(data) > room:
            raise LimitError(
                f"its records represent too many bytes: {self.excess}",
                path=self._lines.name,
                offset=self._lines.offset,
                remedy="raise the limit with -o max_claimed=BYTES",
            )
        super().write(data)


def _settings(
    header: Mapping[str, Any], key: str, known: Iterable[Option], invalid: _InvalidLines
) -> dict[str, Any]:
    """Return the options under a key of the header; invalid options are findings."""
    options = {option.name: option for option in known}
    settings = {name: option.default for name, option in options.items()}
    given = header.get(key, {})
    for name, value in (given if isinstance(given, dict) else {}).items():
        if name not in options:
            invalid.add(0, 1, f"the header's option {name!r} is unknown")
        elif not options[name].portable:
            invalid.ignored.append(name)
        else:
            try:
                settings[name] = options[name].accept(value)
            except UsageError as error:
                invalid.add(0, 1, f"in the header, {error.message}")
    return settings


def _parse(line: bytes) -> Any:
    """Parse a line as JSON; return None if it is invalid."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


class _Lines(Iterator[bytes]):
    """Iterates over the lines of a source; ``offset`` and ``number`` locate the last line."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._at = 0
        self._rest = b""
        self._ready: list[bytes] = []
        self._next = 0
        self.offset = 0
        self.number = 0
        self.name = source.name

    @property
    def end(self) -> int:
        """The offset after the last line."""
        return self._next

    def __next__(self) -> bytes:
        while not self._ready:
            chunk = self._source.read(self._at, CHUNK)
            self._at += len(chunk)
            if not chunk:
                if not self._rest:
                    raise StopIteration
                self._ready, self._rest = [self._rest], b""
                break
            self._source.passed(max(0, self._at - 2 * CHUNK), self._at - len(chunk), self._at)
            # A line may be as long as the file, so join its pieces only once.
            pieces = [self._rest, chunk]
            while b"\n" not in chunk and chunk:
                chunk = self._source.read(self._at, CHUNK)
                self._at += len(chunk)
                pieces.append(chunk)
            lines = b"".join(pieces).split(b"\n")
            self._rest = lines.pop()
            lines.reverse()
            self._ready = lines
        line = self._ready.pop()
        self.offset = self._next
        self.number += 1
        self._next += len(line) + 1
        return line.removeprefix(BYTE_ORDER_MARK) if self.number == 1 else line

    def copy(self) -> _Lines:
        """Return an iterator over the same lines, from the next one on."""
        other = _Lines(self._source)
        other._at = other._next = self._next
        other.number = self.number
        return other

    def chunks(self) -> Iterator[bytes]:
        """Yield the other lines, many at once, each with its end.

        ``offset`` and ``number`` locate the first of them.
        """
        self._at, self._rest = self._next, b""
        self._ready.clear()
        number = self.number + 1
        while True:
            pieces = [self._rest]
            while True:
                chunk = self._source.read(self._at, BULK)
                self._at += len(chunk)
                pieces.append(chunk)
                if not chunk or b"\n" in chunk:
                    break
            joined = b"".join(pieces)
            if not joined:
                return
            end = joined.rfind(b"\n") + 1 if chunk else len(joined)
            self._rest = joined[end:]
            lines = joined[:end] if chunk or joined.endswith(b"\n") else joined + b"\n"
            self.offset, self.number = self._next, number
            self._next += len(lines)
            self._source.passed(max(0, self._at - 2 * BULK), self.offset, self._at)
            yield lines
            number += lines.count(b"\n")


class _InvalidLines:
    """Collects invalid lines: the first are described, all are counted."""

    def __init__(self, limit: int) -> None:
        self.ignored: list[str] = []
        """Options of the header that are not portable."""
        self._limit = limit
        self._kept: list[tuple[int, str]] = []
        self._more = 0

    def add(self, offset: int, number: int, why: str) -> None:
        if len(self._kept) < self._limit:
            self._kept.append((offset, f"line {number}: {why}"))
        else:
            self._more += 1

    def __len__(self) -> int:
        return len(self._kept) + self._more

    def report(self, diagnostics: Diagnostics) -> None:
        for name in self.ignored:
            diagnostics.add(rules.IGNORED_OPTION, 0, value=name)
        for offset, message in self._kept:
            diagnostics.add(rules.INVALID_LINE, offset, value=message)
        if self._more:
            diagnostics.add(rules.INVALID_LINE, times=self._more)


# --- Bytes of an unknown format ----------------------------------------------------------------


@attrs.frozen
class OpaqueRecord:
    """All bytes of an input, as one damaged record."""

    offset: int
    nbytes: int
    raw: bytes

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of a damaged record."""
        return {
            "record": "damaged",
            "offset": self.offset,
            "nbytes": self.nbytes,
            "code": rules.INVALID_LINE.code,
            "raw": self.raw.hex(),
        }


class OpaqueCapture(Capture):
    """Bytes that are not a records file, opened with `-f records`: one damaged record."""

    format = "records"

    def __init__(self, source: Source, request: OpenRequest) -> None:
        diagnostics = request.diagnostics({}, source)
        super().__init__(source, request, diagnostics)
        if source.size:
            diagnostics.add(
                rules.INVALID_LINE,
                0,
                value="there is no header line; -o format=NAME names the format of the records",
            )

    def records(self) -> Iterator[Record]:
        """Yield one damaged record; none if there are no bytes."""
        if self.source.size:
            yield OpaqueRecord(0, self.source.size, self.source.read(0, self.source.size))

    def _table(self, name: str) -> Table:
        raise AssertionError(name)  # it has only `diagnostics`


def open_raw_writer(
    sink: Sink,
    options: Mapping[str, Any],  # noqa: ARG001 (the signature of all writers)
    diagnostics: Diagnostics,  # noqa: ARG001
) -> RecordWriter:
    """Open a writer for opaque records."""
    return _RawWriter(sink)


class _RawWriter:
    """Writes the bytes of damaged records."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, record: Any) -> None:
        """Write the bytes of a damaged record. Raises WriteRefusedError for any other."""
        shown = record if isinstance(record, dict) else record.to_json()
        if shown.get("record") != "damaged":
            raise WriteRefusedError("only damaged records can be written without a format")
        if odd := shown.keys() - {"record", "offset", "nbytes", "code", "raw"}:
            raise WriteRefusedError(
                f"a damaged record has no field {min(odd)!r}", remedy="leave it out"
            )
        try:
            raw = bytes.fromhex(shown["raw"])
        except (KeyError, TypeError, ValueError):
            raise WriteRefusedError(
                "a damaged record must have its bytes in hex, as raw",
                remedy="do not edit damaged records",
            ) from None
        self._sink.write(raw)

    def close(self) -> None:
        """Do nothing: nothing is buffered."""
