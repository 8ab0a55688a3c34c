"""What is common to the tests of writers: the records to write, and writing them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from fxframework.errors import FxError, Severity
from fxframework.io.sink import Sink
from fxframework.kit.salvage import UNSOUND
from fxframework.model.diagnostics import Diagnostics
from fxframework.registry import Reader, RecordWriter, Writer, parse_options
from fxframework.testing.contracts.checks import findings_of, skip, through_json
from fxframework.testing.contracts.sessions import Sessions

Json = Mapping[str, Any]


@attrs.frozen
class Stream:
    """The records of a file, in order."""

    name: str
    json_records: list[dict[str, Any]]
    """The records as JSON."""
    options: Mapping[str, Any]
    """Options of the writer."""
    records: Sequence[Any]
    """The records as objects of the reader; as JSON if there is no reader."""
    data: bytes | None = None
    """The bytes of the file, if there is one."""


class Writing(Sessions):
    """The writer under test, records to write with it, and what writes them."""

    noun: ClassVar[str] = "writer"
    derived: ClassVar[frozenset[str]] = frozenset({"offset", "nbytes", "refs", "raw"})
    """Keys of record JSON that are derived from others or from the offset, and not compared, beside
    those that the writer names."""
    held: ClassVar[int] = 2 << 20
    """Bytes of memory that a writer may use, independent of the size of the output."""
    salvage_leaves: ClassVar[frozenset[str]] = frozenset()
    """Codes of DATA_LOSS that a salvaged file may still have."""
    may_be_empty: ClassVar[bool] = False
    """Whether a file without records has no bytes, as in a format without a header."""

    def records(self) -> Iterable[Json]:
        """Return the records of a sound file as JSON, ideally one of every kind."""
        return ()

    def refused(self) -> Iterable[tuple[Json, str]]:
        """Return records (JSON) that the format cannot represent, with the code of the error."""
        return ()

    def many(self) -> Iterable[Json]:
        """Return an endless sequence of records (JSON) for one file.

        The default is the records of a sample, with the last one repeated. Records of a kilobyte
        or more fill a writer's buffers sooner, and show whether it frees what it wrote.
        """
        streams = [*self._scratch(), *self._sampled(sound=True)]
        assert streams, "neither records() nor samples() gives anything sound"
        longest = max(streams, key=lambda stream: len(stream.json_records))
        records = longest.json_records
        sound_records = [record for record in records if record["record"] not in UNSOUND]
        assert sound_records, "no record of the samples is sound"
        repeated = sound_records[-1]
        return itertools.chain(records[: records.index(repeated)], itertools.repeat(repeated))

    # --- What is under test ----------------------------------------------------------------

    @property
    def writer(self) -> Writer:
        """The writer under test."""
        writer: Writer = self.item
        return writer

    @property
    def reader(self) -> Reader:
        """The reader of the format; skips the test if there is none."""
        reader = self._reader_if_any()
        if reader is None:
            skip(f"nothing is known to read {self.format}")
        return reader

    def _sampled(self, *, sound: bool = False) -> Iterator[Stream]:
        """Yield the records of each small sample, with its capture open."""
        small_samples = self._small() if self._reader_if_any() is not None else ()
        for sample, capture in self._opened(small_samples):
            if sample.sound or not sound:
                options = self._options(capture.writer_options)
                records = list(capture.records())
                yield Stream(sample.name, json_of(records), options, records, sample.data)

    def _scratch(self) -> Iterator[Stream]:
        """Yield the records of records(), if there are any."""
        json_records = through_json([*self.records()])
        if json_records:
            yield Stream("records()", json_records, self._options({}), json_records)

    def _streams(self) -> list[Stream]:
        """Return all streams, to be used as JSON because their captures are closed."""
        streams = [*self._scratch(), *self._sampled()]
        assert streams, "give samples(), or records() where nothing reads the format"
        return streams

    @property
    def _derived(self) -> frozenset[str]:
        return self.derived | self.writer.derived()

    def _without_derived(self, json_value: Any) -> Any:
        """Return record JSON without derived keys, at any depth."""
        if isinstance(json_value, Mapping):
            return {
                key: self._without_derived(value)
                for key, value in json_value.items()
                if key not in self._derived
            }
        if isinstance(json_value, list | tuple):
            return [self._without_derived(value) for value in json_value]
        return json_value

    # --- Writing and reading ---------------------------------------------------------------

    def _options(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return parse_options(values, self.writer.options, whose=f"writer {self.format}")

    def _open_writer(self, sink: Sink, options: Mapping[str, Any]) -> RecordWriter:
        return self.writer.open(sink, options, Diagnostics(self.rules))

    def _bytes_of(self, records: Iterable[Any], options: Mapping[str, Any]) -> bytes:
        """Write records; return the bytes of the file."""
        sink = Sink.memory()
        all_written(self._open_writer(sink, options), records).close()
        return sink.getvalue()

    def _written_until(self, stream: Stream, count: int) -> tuple[Sink, RecordWriter]:
        """Return a sink and a writer that wrote the first ``count`` records of a stream."""
        sink = Sink.memory()
        return sink, all_written(
            self._open_writer(sink, stream.options), stream.json_records[:count]
        )

    def _check_readable(
        self, output: bytes, what: str, allowed: frozenset[str] = frozenset()
    ) -> None:
        """Check that the reader reads an output without data loss."""
        assert output, f"{what} is an empty file"
        try:
            with self._open(output) as capture:
                for name in capture.tables:
                    capture.table(name)
                losses = findings_of(capture, Severity.DATA_LOSS)
        except FxError as error:
            raise AssertionError(f"{what} cannot be read: {error}") from error
        losses = [finding for finding in losses if finding.code not in allowed]
        assert not losses, f"{what} is read with {losses[0]}"


def json_of(records: Iterable[Any]) -> list[dict[str, Any]]:
    """Return copies of records as JSON."""
    copies: list[dict[str, Any]] = through_json([record.to_json() for record in records])
    return copies


def all_written(writer: RecordWriter, records: Iterable[Any]) -> RecordWriter:
    """Write records; return the writer."""
    for record in records:
        writer.write(record)
    return writer
