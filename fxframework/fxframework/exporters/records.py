"""Records as JSON lines: export of any capture, and conversion back to the same bytes."""

from __future__ import annotations

import gc
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, TypeVar, cast

import attrs
import numpy as np
import orjson

from fxframework import rules
from fxframework.errors import (
    FxError,
    LimitError,
    NoReaderError,
    OutputError,
    PluginError,
    Refusals,
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
from fxframework.kit.export import Export
from fxframework.kit.lossless import (
    BlockPacker,
    DamagedRecord,
    Encoder,
    RecordRewriter,
    UnfitError,
    record_of_json,
)
from fxframework.model.capture import Capture, OpenRequest, Record
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.table import Table
from fxframework.registry import Option, Reader, RecordWriter, Writer

T = TypeVar("T")

VERSION = 1
"""Version of the records file format, in the header line."""
FIRST = 64
"""Lines that are written one by one before all others."""
BLOCK = 2048
"""Lines that are packed at once: as many as the objects of which fit the cache."""
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
    request_options = capture.request.options
    if not request_options:
        return {}
    host: Host = capture.request.host or default_host()
    reader = host.readers.get(capture.format)
    if reader is None:
        return {}
    return {
        option.name: request_options[option.name]
        for option in reader.options
        if option.portable and request_options.get(option.name, option.default) != option.default
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
    first_line = next(lines, b"")
    header = _parse(first_line)
    named_format = request.options.get("format")
    if not (isinstance(header, dict) and header.get("fxframework") == "records"):
        if not named_format:
            return OpaqueCapture(source, request)
        header = {"format": named_format, "version": VERSION}
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
        convertible = host.readers.keys() & host.writers.keys()
        raise NoReaderError(
            f"the format of its records, {format!r}, cannot be both read and written here"
            f"{did_you_mean(str(format), convertible)}",
            path=source.name,
            remedy="`fxf plugins` lists what is installed",
        )
    rebuilding = _Rebuilding(host, source, request, header, reader, writer)
    try:
        rebuilt, invalid = rebuilding.rebuilt(lines.copy())
    except UnfitError:
        rebuilt, invalid = rebuilding.rebuilt(lines, in_blocks=False)
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

    lines: _Lines
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

    def rebuilt(self, lines: _Lines, *, in_blocks: bool = True) -> tuple[Source, _InvalidLines]:
        """Return the bytes of the records, and the invalid lines."""
        with spool_file() as spool:
            attempt = self._attempt(spool, lines)
            target = attempt.target
            # The first records may say how the writer writes all others.
            self._write_each(attempt, itertools.islice(lines, FIRST if in_blocks else None))
            packer = target.packer() if isinstance(target, RecordRewriter) and in_blocks else None
            if packer is None:
                self._write_each(attempt, lines)
            else:
                assert isinstance(target, RecordRewriter)  # noqa: S101 (it has a packer)
                for block in lines.blocks():
                    with _CollectorPaused():
                        self._write_block(attempt, target, packer, block)
            target.close()
            return Source.spooled(spool, name=self._source.name), attempt.invalid

    def _attempt(self, spool: Spool, lines: _Lines) -> _Attempt:
        """Open the writer; invalid options of the header are findings."""
        invalid = _InvalidLines(self._request.limits.max_findings or 1 << 62)
        settings = _settings(self._header, "options", self._writer.options, invalid)
        self.reading = _settings(self._header, "reading", self._reader.options, invalid)
        # Discard the writer's findings: reading the bytes repeats them with their offsets.
        rules_of_reader = self._reader.rules() if self._reader.rules else {}
        unused = Diagnostics(rules_of_reader, limit=1)
        sink = _BoundedSink(spool, lines, self._request.limits)
        return _Attempt(lines, sink, self._writer.open(sink, settings, unused), invalid)

    def _write_each(self, attempt: _Attempt, lines: Iterable[bytes]) -> None:
        """Write the records of lines one after another."""
        for line in lines:
            self._write(attempt, line, _parse(line), attempt.target.write)

    def _write_block(
        self, attempt: _Attempt, target: RecordRewriter, packer: BlockPacker, block: Sequence[bytes]
    ) -> None:
        """Write the records of a block of lines. Raises UnfitError if the block was not the way."""
        lines = attempt.lines
        first_number = lines.number
        sizes = np.fromiter(map(len, block), np.int64) + 1
        offsets = lines.offset + np.cumsum(sizes) - sizes
        records = _parse_block(block)

        def single(row: int) -> bytes:
            # What is said of an invalid line needs its place.
            lines.number = first_number + row
            lines.offset = int(offsets[row])
            encode = target.encoder.encode
            return self._write(attempt, block[row], records[row], encode) or b""

        data, ends = packer.pack(records, single)
        self._request.budget.check()
        try:
            target.put_records(data.data, ends, records)
        except WriteRefusedError as error:
            raise UnfitError from error

    def _write(
        self, attempt: _Attempt, line: bytes, record: Any, write: Callable[[Any], T]
    ) -> T | None:
        """Write the record of a line; None if the line is invalid or empty."""
        invalid = attempt.invalid
        sink = attempt.sink
        lines = attempt.lines
        if not line or line.isspace():
            return None
        if not isinstance(record, dict):
            invalid.add(lines.offset, lines.number, "not a JSON object")
            return None
        # A line of padding is short, whatever its size: refuse it before a writer makes the bytes.
        claimed_bytes = record.get("nbytes") if record.get("record") == "padding" else 0
        if isinstance(claimed_bytes, int):
            if claimed_bytes > sink.room:
                why = f"it claims {claimed_bytes} bytes; {sink.excess}"
                invalid.add(lines.offset, lines.number, why)
                return None
            sink.claimed += claimed_bytes
        try:
            return write(record)
        except (PluginError, LimitError, OutputError):
            raise
        except FxError as error:
            invalid.add(lines.offset, lines.number, error.message)
        except Exception as error:
            raise _blamed(self._host, self._writer, error, lines, self._source) from error
        return None


def _blamed(host: Host, writer: Writer, error: Exception, lines: _Lines, source: Source) -> FxError:
    """Return the error for an unexpected exception of a writer."""
    blamed = host.blame(error) or PluginError(
        f"{type(error).__name__}: {error}, raised by the writer of {writer.format}",
        remedy=f"report it to the authors of {host.owner(writer).origin}, with this line",
    )
    blamed.message += f", for line {lines.number}"
    blamed.path = source.name
    blamed.offset = lines.offset
    return blamed


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
        used = max(self.written, self.claimed)
        return self._bound + EXPANSION * self._lines.end - used

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
    header_options = header.get(key)
    if not isinstance(header_options, dict):
        return settings
    for name, value in header_options.items():
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


class _CollectorPaused:
    """While a block is packed, Python looks for no reference cycles: its many objects have none.

    Looking for them takes longer than packing. Several threads may pack at the same time.
    """

    _lock = threading.Lock()
    _count = 0
    _was_enabled = False

    def __enter__(self) -> None:
        """Pause the collector, if it is not paused yet."""
        cls = type(self)
        with self._lock:
            if not cls._count:
                cls._was_enabled = gc.isenabled()
                gc.disable()
            cls._count += 1

    def __exit__(self, *_: object) -> None:
        """Let the collector go on, if no block is being packed, and it was not disabled."""
        cls = type(self)
        with self._lock:
            cls._count -= 1
            if not cls._count and cls._was_enabled:
                gc.enable()


def _parse_block(lines: Sequence[bytes]) -> list[Any]:
    """Parse lines as JSON; None for each that is invalid."""
    try:
        return list(map(orjson.loads, lines))
    except orjson.JSONDecodeError:
        return [_parse(line) for line in lines]


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
        self._read_offset = 0
        self._unfinished_line = b""
        """The bytes that were read behind the last line end."""
        self._ready_lines: list[bytes] = []
        """Lines that were read, the next one last."""
        self._next_offset = 0
        self.offset = 0
        self.number = 0
        self.name = source.name

    @property
    def end(self) -> int:
        """The offset after the last line."""
        return self._next_offset

    def __next__(self) -> bytes:
        while not self._ready_lines:
            chunk = self._source.read(self._read_offset, CHUNK)
            self._read_offset += len(chunk)
            if not chunk:
                if not self._unfinished_line:
                    raise StopIteration
                self._ready_lines = [self._unfinished_line]
                self._unfinished_line = b""
                break
            chunk_offset = self._read_offset - len(chunk)
            release_from = max(0, self._read_offset - 2 * CHUNK)
            self._source.passed(release_from, chunk_offset, self._read_offset)
            # A line may be as long as the file, so join its pieces only once.
            pieces = [self._unfinished_line, chunk]
            while b"\n" not in chunk and chunk:
                chunk = self._source.read(self._read_offset, CHUNK)
                self._read_offset += len(chunk)
                pieces.append(chunk)
            lines = b"".join(pieces).split(b"\n")
            self._unfinished_line = lines.pop()
            lines.reverse()
            self._ready_lines = lines
        line = self._ready_lines.pop()
        self.offset = self._next_offset
        self.number += 1
        self._next_offset += len(line) + 1
        return line.removeprefix(BYTE_ORDER_MARK) if self.number == 1 else line

    def copy(self) -> _Lines:
        """Return an iterator over the same lines, from the next one on."""
        lines = _Lines(self._source)
        lines._read_offset = self._next_offset
        lines._next_offset = self._next_offset
        lines.number = self.number
        return lines

    def blocks(self) -> Iterator[Sequence[bytes]]:
        """Yield the other lines, many at once.

        ``offset`` and ``number`` locate the first of them.
        """
        for line in self:
            number = self.number
            # The next lines are the last ones of ``_ready_lines``: this one, and up to BLOCK - 1.
            block = [line, *self._ready_lines[:-BLOCK:-1]]
            del self._ready_lines[-BLOCK + 1 :]
            newlines = len(block)
            self._next_offset = self.offset + sum(map(len, block)) + newlines
            yield block
            self.number = number + len(block) - 1


class _InvalidLines:
    """Collects invalid lines: the first are described, all are counted."""

    def __init__(self, limit: int) -> None:
        self.ignored: list[str] = []
        """Options of the header that are not portable."""
        self._limit = limit
        self._described: list[tuple[int, str]] = []
        self._undescribed_count = 0

    def add(self, offset: int, number: int, why: str) -> None:
        if len(self._described) < self._limit:
            self._described.append((offset, f"line {number}: {why}"))
        else:
            self._undescribed_count += 1

    def __len__(self) -> int:
        return len(self._described) + self._undescribed_count

    def report(self, diagnostics: Diagnostics) -> None:
        for name in self.ignored:
            diagnostics.add(rules.IGNORED_OPTION, 0, value=name)
        for offset, message in self._described:
            diagnostics.add(rules.INVALID_LINE, offset, value=message)
        if self._undescribed_count:
            diagnostics.add(rules.INVALID_LINE, times=self._undescribed_count)


# --- Bytes of an unknown format ----------------------------------------------------------------


REFUSALS = Refusals(*[rules.WRITE_REFUSED] * 4)
"""The rules of errors in records without a format."""


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
            data = self.source.read(0, self.source.size)
            yield DamagedRecord(nbytes=self.source.size, raw=data, code=rules.INVALID_LINE.code)

    def _table(self, name: str) -> Table:
        raise AssertionError(name)  # it has only `diagnostics`


def open_raw_writer(
    sink: Sink,
    options: Mapping[str, Any],  # noqa: ARG001 (the signature of all writers)
    diagnostics: Diagnostics,  # noqa: ARG001
) -> RecordWriter:
    """Open a writer for opaque records."""
    return RecordRewriter(sink, _OpaqueEncoder())


class _OpaqueEncoder(Encoder):
    """Encodes damaged records: their bytes."""

    def encode(self, record: Any) -> bytes:
        """Return the bytes of a damaged record. Raises WriteRefusedError for any other."""
        if not isinstance(record, DamagedRecord):
            given = {"code": rules.INVALID_LINE.code, **record}
            kinds = {DamagedRecord.record: DamagedRecord}
            record = record_of_json(given, kinds, "a file without a format", REFUSALS)
        return bytes(record.raw)
