"""The contract of writers."""

from __future__ import annotations

import collections
import copy
import functools
import gc
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fxframework.errors import Severity
from fxframework.io.sink import Sink
from fxframework.model.schema import STANDARD_TABLES
from fxframework.testing.contracts.checks import (
    check_json,
    check_same,
    findings_of,
    skip,
    some,
    through_json,
)
from fxframework.testing.contracts.refusing import Refusing
from fxframework.testing.contracts.repetition import growth, peak_of, peaks_shown
from fxframework.testing.contracts.rewriting import Rewriting
from fxframework.testing.contracts.watching import WatchedSink
from fxframework.testing.contracts.writing import Json, Stream, all_written, json_of

__all__ = ["WriterContract"]

MOST = 3_000
"""The most records in a long file."""
COUNTS = (250, 1_000, 4_000, 16_000)
"""Records of the files for which memory is compared, until a longer file takes no more."""
GROWN = 1 / 8
"""Bytes of memory per further byte of the file that a writer may take."""


class WriterContract(Refusing, Rewriting):
    """Contract of every writer. Provide ``plugin``, ``format`` and ``samples()``.

    The reader of the format is in ``reader_plugin`` if not in the writer's plugin; without any
    reader, provide ``records()`` and ``rules``, and no samples.
    """

    # --- The descriptor --------------------------------------------------------------------

    def test_suffixes_are_the_readers(self) -> None:
        """The writer has the same suffixes as the reader."""
        suffixes = self.writer.suffixes
        assert set(suffixes) == set(self.reader.suffixes), (
            f"the writer of {self.format} has the suffixes {suffixes}, "
            f"its reader {self.reader.suffixes}"
        )

    def test_accepts_names_standard_tables(self) -> None:
        """``accepts`` names standard tables or one format, and only if there is a ``merge``."""
        writer = self.writer
        if writer.merge is None:
            assert not writer.accepts, "accepts is for merge, which is not given"
            return
        assert writer.accepts, "merge is given, but accepts no table"
        if isinstance(writer.accepts, str):
            own = writer.format
            assert writer.accepts == own, f"accepts is {writer.accepts!r}, and the format {own!r}"
            return
        unknown = sorted(writer.accepts - STANDARD_TABLES.keys())
        assert not unknown, f"accepts names {unknown}, which are not standard tables"

    # --- Lossless writing ------------------------------------------------------------------

    def test_records_round_trip(self) -> None:
        """Records of samples, damaged too, written as objects and as JSON give the same bytes.

        The capture's ``writer_options`` are options of the writer, and plain JSON, so that the
        header of a records file can have them.
        """

        def check(data: bytes) -> None:
            for as_json, form in ((False, "as they are"), (True, "as JSON")):
                rewritten = self._rewrite(data, as_json=as_json)
                check_same(rewritten, data, f"{len(data)} bytes, their records written {form}")

        for sample, capture in self._opened():
            check_json(dict(capture.writer_options), f"{sample.name}: writer_options")
            check(sample.data)
        self._try_damaged(check)

    def _rewrite(self, data: bytes, *, as_json: bool) -> bytes:
        """Write the records of ``data`` with the capture's writer options; return the bytes."""
        with self._open(data) as capture:
            records = json_of(capture.records()) if as_json else capture.records()
            return self._bytes_of(records, self._options(capture.writer_options))

    def test_records_are_left_as_they_were(self) -> None:
        """``write()`` does not change its argument, object or JSON."""
        for stream in itertools.chain(self._scratch(), self._sampled()):
            json_copy = copy.deepcopy(stream.json_records)
            self._bytes_of(json_copy, stream.options)
            check_same(json_copy, stream.json_records, f"{stream.name}: write() changed the JSON")
            if stream.data is not None:
                self._bytes_of(stream.records, stream.options)
                what = f"{stream.name}: write() changed a record"
                check_same(json_of(stream.records), stream.json_records, what)

    def test_records_from_scratch_are_read_back(self) -> None:
        """The records of records() are read back without findings, and written again unchanged."""
        for stream in some(self._scratch(), "records() gives none"):
            output = self._bytes_of(stream.json_records, stream.options)
            with self._open(output) as capture:
                read_back = self._without_derived(json_of(capture.records()))
                findings = findings_of(capture, Severity.WARNING)
            expected = self._without_derived(stream.json_records)
            check_same(read_back, expected, "records() written and read")
            assert not findings, f"the reader reports a finding in the output: {findings[0]}"
            check_same(self._rewrite(output, as_json=True), output, "records() written again")

    # --- The sink --------------------------------------------------------------------------

    def test_bytes_reach_the_sink_in_order(self) -> None:
        """After any record, the bytes in the sink are a prefix of the file.

        This holds for objects, and where every other record is JSON. The writer does not commit,
        abort or close the sink.
        """
        for stream in itertools.chain(self._scratch(), self._sampled()):
            file_bytes = self._bytes_of(stream.json_records, stream.options)
            if stream.data is not None:
                check_same(file_bytes, stream.data, f"{stream.name} written")
            for first_json in (0, 1):
                mixed = list(stream.records)
                mixed[first_json::2] = stream.json_records[first_json::2]
                self._check_order(mixed, stream, file_bytes)

    def _check_order(self, records: Sequence[Any], stream: Stream, file_bytes: bytes) -> None:
        sink = WatchedSink()
        writer = self._open_writer(sink, stream.options)
        for number, record in enumerate(records):
            writer.write(record)
            written = sink.getvalue()
            check_same(written, file_bytes[: len(written)], f"{stream.name} after record {number}")
        sink.check_left_open("write()")
        writer.close()
        sink.check_left_open("close()")
        check_same(sink.getvalue(), file_bytes, f"{stream.name} after close()")

    def test_close_puts_out_what_was_held_back(self) -> None:
        """``close()`` writes all buffered bytes, once; a second call or deletion writes nothing."""
        gc.freeze()  # make the collections below fast
        try:
            for stream in self._streams():
                sink = Sink.memory()
                writer = all_written(self._open_writer(sink, stream.options), stream.json_records)
                writer.close()
                file_bytes = sink.getvalue()
                writer.close()
                check_same(sink.getvalue(), file_bytes, f"{stream.name} closed twice")
                del writer
                gc.collect()
                check_same(sink.getvalue(), file_bytes, f"{stream.name} when the writer is gone")
        finally:
            gc.unfreeze()

    def test_writers_do_not_disturb_each_other(self) -> None:
        """Two writers at once write the same as each alone."""
        streams = [
            (stream, self._bytes_of(stream.json_records, stream.options))
            for stream in self._streams()[:4]
        ]
        for (first, first_alone), (second, second_alone) in itertools.product(streams, repeat=2):
            # The second is begun when half of the first is written; then they take turns.
            half = len(first.json_records) // 2
            first_sink, first_writer = self._written_until(first, half)
            second_sink, second_writer = self._written_until(second, 0)
            remaining = first.json_records[half:]
            for record, record_of_second in itertools.zip_longest(remaining, second.json_records):
                if record_of_second is not None:
                    second_writer.write(record_of_second)
                if record is not None:
                    first_writer.write(record)
            second_writer.close()
            first_writer.close()
            what = f"{first.name} while {second.name} is written"
            check_same(first_sink.getvalue(), first_alone, what)
            check_same(second_sink.getvalue(), second_alone, f"{second.name} beside {first.name}")

    def test_many_records_come_back(self) -> None:
        """A file larger than the writer's buffer has all records in order."""
        sink = Sink.memory()
        records = itertools.islice(self.many(), MOST)
        written = list(self._write_each(sink, records, 4 * self.held))
        with self._open(sink.getvalue()) as capture:
            read_back = self._without_derived(json_of(capture.records()))
        check_same(read_back, self._without_derived(written), "many() written and read")

    def test_memory_does_not_grow_with_what_was_written(self) -> None:
        """Four times as many records take no more memory, once the writer's buffers are full."""
        peaks: list[tuple[int, int]] = []
        few_records = self._write_each(Sink.nowhere(), itertools.islice(self.many(), COUNTS[0]))
        collections.deque(few_records, maxlen=0)  # what is made once, such as tables, is made now
        for count in COUNTS:
            sink = Sink.nowhere()
            written = self._write_each(sink, itertools.islice(self.many(), count))
            peak = peak_of(functools.partial(collections.deque, written, maxlen=0))
            peaks.append((sink.written, peak))
            if len(peaks) > 1 and growth(peaks) < GROWN:
                assert peak <= self.held, (
                    f"writing {count} records of {sink.written:,} bytes took {peak:,} "
                    f"bytes of memory, more than {self.held:,}"
                )
                return
            # By this rate, not even the longest files would fill the writer's buffers.
            if sink.written * COUNTS[-2] < self.held * count:
                skip(
                    f"{COUNTS[-2]:,} records of many() fit in the {self.held:,} bytes that the "
                    "writer may hold: larger ones would show whether its memory grows"
                )
        raise AssertionError(f"the writer's memory grows with the file: {peaks_shown(peaks)}")

    def _write_each(
        self, sink: Sink, records: Iterable[Json], most_bytes: int | None = None
    ) -> Iterator[Json]:
        """Write records, or ``most`` bytes of them, and yield each after writing it."""
        writer = self._open_writer(sink, self._options({}))
        for record in records:
            writer.write(through_json(record))
            yield record
            if most_bytes is not None and sink.written > most_bytes:
                break
        writer.close()
