"""The contract of writers."""

from __future__ import annotations

import copy
import functools
import gc
import itertools
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

import attrs
from hypothesis import strategies as st

from fxframework.errors import (
    Catalogue,
    FxError,
    Severity,
    UsageError,
    WriteRefusedError,
)
from fxframework.io.sink import Sink
from fxframework.kit.salvage import UNSOUND, Loss
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.schema import STANDARD_TABLES
from fxframework.model.selection import Selection
from fxframework.registry import Reader, RecordWriter, Writer, parse_options
from fxframework.rules import RULES as FRAMEWORK_RULES
from fxframework.testing.contracts.base import Sample, descriptors
from fxframework.testing.contracts.changed import Change, Foreign, check_missing, widen
from fxframework.testing.contracts.checks import (
    check_dropped,
    check_same,
    contents_of,
    or_fx_error,
    skip,
    through_json,
    tolerating,
)
from fxframework.testing.contracts.choosing import Extracting, selections_of
from fxframework.testing.contracts.generated import SEEDS, GeneratedCapture
from fxframework.testing.contracts.repetition import growth
from fxframework.testing.contracts.sinks import WatchedSink

__all__ = ["WriterContract"]

Json = Mapping[str, Any]

NO_RECORDS: Sequence[Json] = (
    {},
    {"record": None},
    {"record": 7},
    {"record": ""},
    {"record": []},
    {"record": {}},
    {"record": "no-such-record"},
    {"no": "record"},
)
"""JSON objects that are not records of any format."""
VALUES: Sequence[Any] = (
    None, True, 0, 1, 3, 255, -1, 1 << 64, 1 << 70, 0.5, "", "text", "\ud800", "x" * 70_000,
    [], [[]], {}, {"a": 1},
)  # fmt: skip
"""JSON values to put into every field; most are invalid in most fields."""
MISSING = "<missing>"
ADDED = "no_such_field"
"""A field that no record has; it may be refused or ignored."""
MOST = 10_000
"""The most records in a long file."""
COUNTS = (250, 1_000, 4_000, 16_000)
"""Records of the files for which memory is compared, until a longer file takes no more."""
MISSING_ROWS = 12
"""Rows of a table that are removed, one at a time, before it is merged."""
GROWN = 1 / 8
"""Bytes of memory per further byte of the file that a writer may take."""


@attrs.frozen
class Stream:
    """The records of a file, in order."""

    name: str
    shown: list[dict[str, Any]]
    """The records as JSON."""
    options: Mapping[str, Any]
    """Options of the writer."""
    records: Sequence[Any]
    """The records as objects of the reader; as JSON if there is no reader."""
    data: bytes | None = None
    """The bytes of the file, if there is one."""


class WriterContract(Extracting):
    """Contract of every writer. Provide ``plugin``, ``format`` and ``samples()``.

    The reader of the format is in ``reader_plugin`` if not in the writer's plugin; without any
    reader, provide ``records()`` and ``rules``, and no samples.
    """

    reader_plugin: ClassVar[Any] = None
    """The module of the reader's hooks; None: the writer's plugin."""
    derived: ClassVar[frozenset[str]] = frozenset({"offset", "nbytes", "refs", "raw"})
    """Keys of record JSON that are derived from others or from the offset, and not compared."""
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
        shown = max(streams, key=lambda stream: len(stream.shown)).shown
        whole = [record for record in shown if record["record"] not in UNSOUND]
        assert whole, "no record of the samples is sound"
        return itertools.chain(shown[: shown.index(whole[-1])], itertools.repeat(whole[-1]))

    # --- What is under test ----------------------------------------------------------------

    @property
    def writer(self) -> Writer:
        """The writer under test."""
        writers: list[Writer] = self._descriptors("fx_writers")
        found = [writer for writer in writers if writer.format == self.format]
        assert len(found) == 1, (
            f"{self._plugin_name} registers {len(found)} writers of {self.format!r}"
        )
        return found[0]

    @property
    def reader(self) -> Reader:
        """The reader of the format; skips the test if there is none."""
        reader = self._reader_if_any()
        if reader is None:
            skip(f"nothing is known to read {self.format}")
        return reader

    @property
    def item(self) -> Writer:
        """The writer."""
        return self.writer

    def _reader_if_any(self) -> Reader | None:
        module = self._imported(self.reader_plugin or self.plugin)
        readers: list[Reader] = descriptors(module, "fx_readers")
        return next((reader for reader in readers if reader.format == self.format), None)

    @property
    def rules(self) -> Catalogue:
        """The catalogue of the reader; empty if there is none."""
        reader = self._reader_if_any()
        return Catalogue([]) if reader is None or reader.rules is None else reader.rules()

    def _options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return parse_options(given, self.writer.options, whose=f"writer {self.format}")

    def _start(self, sink: Sink, options: Mapping[str, Any]) -> RecordWriter:
        return self.writer.open(sink, options, Diagnostics(self.rules))

    def _write(self, records: Iterable[Any], options: Mapping[str, Any]) -> bytes:
        sink = Sink.memory()
        _all_written(self._start(sink, options), records).close()
        return sink.getvalue()

    def _sampled(self, *, sound: bool = False) -> Iterator[Stream]:
        """Yield the records of each small sample, with its capture open."""
        if self._reader_if_any() is None:
            return
        for sample, capture in self._opened(self._small()):
            if sample.sound or not sound:
                records = list(capture.records())
                shown = [through_json(record.to_json()) for record in records]
                options = self._options(capture.writer_options)
                yield Stream(sample.name, shown, options, records, sample.data)

    def _scratch(self) -> Iterator[Stream]:
        """Yield the records of records(), if there are any."""
        shown = [through_json(record) for record in self.records()]
        if shown:
            yield Stream("records()", shown, self._options({}), shown)

    def _streams(self) -> list[Stream]:
        """Return all streams, with records as JSON because their captures are closed."""
        streams = [*self._scratch(), *self._sampled()]
        assert streams, "give samples(), or records() where nothing reads the format"
        return [attrs.evolve(stream, records=stream.shown) for stream in streams]

    def _plain(self, shown: Any) -> Any:
        """Return record JSON without derived keys, at any depth."""
        if isinstance(shown, Mapping):
            kept = {key: self._plain(value) for key, value in shown.items()}
            return {key: value for key, value in kept.items() if key not in self.derived}
        if isinstance(shown, list | tuple):
            return [self._plain(value) for value in shown]
        return shown

    # --- The descriptor --------------------------------------------------------------------

    def test_suffixes_are_the_readers(self) -> None:
        """The writer has the same suffixes as the reader."""
        suffixes = self.writer.suffixes
        assert set(suffixes) == set(self.reader.suffixes), (
            f"the writer of {self.format} has the suffixes {suffixes}, "
            f"its reader {self.reader.suffixes}"
        )

    def test_accepts_names_standard_tables(self) -> None:
        """``accepts`` names standard tables, and only if there is a ``merge``."""
        writer = self.writer
        if writer.merge is None:
            assert not writer.accepts, "accepts is for merge, which is not given"
            return
        assert writer.accepts, "merge is given, but accepts no table"
        unknown = sorted(writer.accepts - STANDARD_TABLES.keys())
        assert not unknown, f"accepts names {unknown}, which are not standard tables"

    # --- Lossless writing ------------------------------------------------------------------

    def test_writer_options_of_captures_are_its_own(self) -> None:
        """The capture's ``writer_options`` are options of the writer and plain JSON.

        The header of a records file has them, so that the same bytes can be written again.
        """
        self._need_reader()
        known = {option.name for option in self.writer.options}
        for sample, capture in self._opened():
            given = dict(capture.writer_options)
            unknown = sorted(given.keys() - known)
            assert not unknown, f"{sample.name}: the writer has no option {unknown}"
            again = through_json(given)
            assert again == given, f"{sample.name}: writer_options are {given}, as JSON {again}"
            self._options(again)

    def test_objects_and_json_can_be_mixed(self) -> None:
        """A record's object and its JSON are written identically, in any mix."""
        for stream in self._sampled():
            assert stream.data is not None
            pairs = list(zip(stream.records, stream.shown, strict=True))
            for first in (0, 1):
                mixed = [pair[(number + first) % 2] for number, pair in enumerate(pairs)]
                found = self._write(mixed, stream.options)
                check_same(found, stream.data, f"{stream.name}, every other record as JSON")

    def test_records_are_left_as_they_were(self) -> None:
        """``write()`` does not change its argument, object or JSON."""
        for stream in itertools.chain(self._scratch(), self._sampled()):
            given = copy.deepcopy(stream.shown)
            self._write(given, stream.options)
            changed = _first_other(given, stream.shown)
            assert changed is None, f"{stream.name}: write() changed the JSON of record {changed}"
            if stream.data is not None:
                self._write(stream.records, stream.options)
                now = [through_json(record.to_json()) for record in stream.records]
                changed = _first_other(now, stream.shown)
                assert changed is None, f"{stream.name}: write() changed record {changed}"

    def test_records_from_scratch_are_read_back(self) -> None:
        """The records of records() are read back without findings, and written again unchanged."""
        self._need_reader()
        stream = next(self._scratch(), None)
        if stream is None:
            skip("records() gives none")
        output = self._write(stream.shown, stream.options)
        with self._open(output) as capture:
            found = [through_json(record.to_json()) for record in capture.records()]
            capture.scan()
            bad = [one for one in capture.diagnostics if one.severity >= Severity.WARNING]
        given, shown = self._plain(stream.shown), self._plain(found)
        other = _first_other(shown, given)
        assert other is None, (
            f"record {other} was written as {_at(given, other)} and is read as {_at(shown, other)}"
        )
        assert not bad, f"the reader reports a finding in the output: {bad[0]}"
        check_same(self._rewritten(output, as_json=True), output, "records() written again")

    # --- The sink --------------------------------------------------------------------------

    def test_bytes_reach_the_sink_in_order(self) -> None:
        """After any record, the bytes in the sink are a prefix of the file.

        The writer does not commit, abort or close the sink.
        """
        for stream in itertools.chain(self._scratch(), self._sampled()):
            whole = self._write(stream.shown, stream.options)
            if stream.data is not None:
                check_same(whole, stream.data, f"{stream.name} written")
            sink = WatchedSink()
            writer = self._start(sink, stream.options)
            for number, record in enumerate(stream.records):
                writer.write(record)
                so_far = sink.getvalue()
                check_same(so_far, whole[: len(so_far)], f"{stream.name} after record {number}")
            sink.check_left_open("write()")
            writer.close()
            sink.check_left_open("close()")
            check_same(sink.getvalue(), whole, f"{stream.name} after close()")

    def test_close_puts_out_what_was_held_back(self) -> None:
        """``close()`` writes all buffered bytes, once; a second call or deletion writes nothing."""
        gc.freeze()  # make the collections below fast
        try:
            for stream in self._streams():
                sink = Sink.memory()
                writer = _all_written(self._start(sink, stream.options), stream.shown)
                writer.close()
                closed = sink.getvalue()
                writer.close()
                check_same(sink.getvalue(), closed, f"{stream.name} closed twice")
                del writer
                gc.collect()
                check_same(sink.getvalue(), closed, f"{stream.name} when the writer is gone")
        finally:
            gc.unfreeze()

    def test_writers_do_not_disturb_each_other(self) -> None:
        """Two writers at once write the same as each alone."""
        streams = self._streams()[:4]
        alone = [self._write(stream.shown, stream.options) for stream in streams]
        for one, two in itertools.product(range(len(streams)), repeat=2):
            first, second = streams[one], streams[two]
            sinks = Sink.memory(), Sink.memory()
            writers = self._start(sinks[0], first.options), self._start(sinks[1], second.options)
            half = len(first.shown) // 2
            _all_written(writers[0], first.shown[:half])
            for mine, other in itertools.zip_longest(first.shown[half:], second.shown):
                if other is not None:
                    writers[1].write(other)
                if mine is not None:
                    writers[0].write(mine)
            writers[1].close()
            writers[0].close()
            what = f"{first.name} while {second.name} is written"
            check_same(sinks[0].getvalue(), alone[one], what)
            check_same(sinks[1].getvalue(), alone[two], f"{second.name} beside {first.name}")

    def test_many_records_come_back(self) -> None:
        """A file larger than the writer's buffer has all records in order."""
        self._need_reader()
        sink = Sink.memory()
        given = list(self._written(sink, MOST, 4 * self.held))
        with self._open(sink.getvalue()) as capture:
            records = (self._plain(through_json(r.to_json())) for r in capture.records())
            for number, (found, wanted) in enumerate(itertools.zip_longest(records, given)):
                assert found == self._plain(wanted), (
                    f"record {number} of {len(given)} was written as {_short(wanted)} "
                    f"and is read as {_short(found)}"
                )

    def test_memory_does_not_grow_with_what_was_written(self) -> None:
        """Four times as many records take no more memory, once the writer's buffers are full."""
        peaks: list[tuple[int, int]] = []
        list(self._written(Sink.nowhere(), COUNTS[0]))  # what is made once is made now
        for count in COUNTS:
            sink = Sink.nowhere()
            written = self._written(sink, count)
            tracemalloc.start()
            try:
                for _ in written:
                    pass
                peaks.append((sink.written, tracemalloc.get_traced_memory()[1]))
            finally:
                tracemalloc.stop()
            if len(peaks) > 1 and growth(*peaks[-2:]) < GROWN:
                assert peaks[-1][1] <= self.held, (
                    f"writing {count} records of {sink.written:,} bytes took {peaks[-1][1]:,} "
                    f"bytes of memory, more than {self.held:,}"
                )
                return
            if sink.written * COUNTS[-2] < self.held * count:
                skip(
                    f"{COUNTS[-2]:,} records of many() fit in the {self.held:,} bytes that the "
                    "writer may hold: larger ones would show whether its memory grows"
                )
        shown = ", ".join(f"{size:,} bytes of file take {peak:,}" for size, peak in peaks)
        raise AssertionError(f"the writer's memory grows with the file: {shown} bytes of memory")

    def _written(self, sink: Sink, count: int, most: int | None = None) -> Iterator[Json]:
        """Write ``count`` records of many(), or ``most`` bytes, and yield each after writing it."""
        given = itertools.islice(self.many(), count)

        def write() -> Iterator[Json]:
            writer = self._start(sink, self._options({}))
            for record in given:
                writer.write(through_json(record))
                yield record
                if most is not None and sink.written > most:
                    break
            writer.close()

        return write()

    # --- Refusals --------------------------------------------------------------------------

    def test_refused_records_say_why(self) -> None:
        """The records of refused() raise WriteRefusedError with the code and a remedy."""
        refused = list(self.refused())
        if not refused:
            skip("refused() gives none")
        for record, code in refused:
            self._check_refused(record, code)

    def test_what_is_no_record_is_refused(self) -> None:
        """JSON objects that are not records raise WriteRefusedError."""
        for record in NO_RECORDS:
            self._check_refused(record)

    def _check_refused(self, record: Json, code: str | None = None) -> None:
        error = _refusal(self._start(Sink.memory(), self._options({})), record)
        assert error is not None, (
            f"{_short(record)} was written, not refused with {code or 'a code'}"
        )
        assert code in {None, error.code}, (
            f"{_short(record)} is refused with {error.code}, not {code}"
        )
        self._check_refusal(error, record)

    def test_refused_records_leave_nothing(self) -> None:
        """A refused record leaves no bytes, wherever it occurs."""
        stream = self._streams()[0]
        good = stream.shown[:40]
        expected = self._write(good, stream.options)
        for bad in [*(record for record, _ in self.refused()), *NO_RECORDS]:
            for at in sorted({0, len(good) // 2, len(good)}):
                sink = Sink.memory()
                writer = _all_written(self._start(sink, stream.options), good[:at])
                assert _refusal(writer, bad) is not None, f"{_short(bad)} was not refused"
                _all_written(writer, good[at:]).close()
                check_same(sink.getvalue(), expected, f"{_short(bad)} refused after {at} records")

    def test_wrong_values_are_refused_or_take_effect(self) -> None:
        """An edited field is read back as edited, or the record is refused.

        Fields get any JSON values, and are removed and emptied; one that no record has is refused.
        Only WriteRefusedError may be raised, and a refused record must have no effect.
        """
        streams = [attrs.evolve(s, shown=s.shown[:100], data=None) for s in self._streams()]
        expected = [self._write(stream.shown, stream.options) for stream in streams]
        places = _places(streams)

        def check(made: tuple[tuple[int, int, tuple[Any, ...]], Any]) -> None:
            (which, number, path), value = made
            stream = streams[which]
            edited = _edited(stream.shown[number], path, value)
            where = f"{stream.shown[number]['record']} with {_named(path)} {_short(value)}"
            sink = Sink.memory()
            writer = _all_written(self._start(sink, stream.options), stream.shown[:number])
            error = _refusal(writer, edited)
            if error is None:
                unknown = ADDED in path and value is not MISSING
                assert not unknown, f"{where}: a field that no record has is not refused"
                writer.close()
                self._check_effect(sink.getvalue(), (stream, number, path), value, where)
                return
            self._check_refusal(error, edited)
            _all_written(writer, stream.shown[number:]).close()
            check_same(sink.getvalue(), expected[which], f"{where}, which was refused")

        for turn, place in enumerate(places):
            which, number, path = place
            check((place, MISSING))
            check((place, type(_value_at(streams[which].shown[number], path))()))
            for value in (None, VALUES[turn % len(VALUES)]):
                check((place, value))
        self._try(st.tuples(st.sampled_from(places), st.sampled_from(VALUES)), check)

    def _check_effect(
        self, output: bytes, place: tuple[Stream, int, tuple[Any, ...]], value: Any, where: str
    ) -> None:
        """Check that the last record of a file has the value, if that can be determined."""
        stream, number, path = place
        ignored = any(
            key in {ADDED, *self.derived} or str(key).endswith(("_bytes_hex", "_bits"))
            for key in path
        )
        if value is MISSING or ignored or self._reader_if_any() is None:
            return
        with self._open(output) as capture:
            shown = [record.to_json() for record in capture.records()]
        assert shown, f"{where}: accepted, but there is no record in the file"
        if shown[-1]["record"] in UNSOUND:
            return
        found = _value_at(shown[-1], path)
        if isinstance(value, int) and isinstance(found, str) and found is not MISSING:
            return  # a value of an enumeration, shown by name
        before = _value_at(stream.shown[number], path)
        if found is MISSING and not value and type(value) is type(before):
            without = _edited(stream.shown[number], path, MISSING)
            same = self._write([*stream.shown[:number], without], stream.options)
            check_same(output, same, f"{where}, which is not shown, beside no such field")
            return  # the default value of an omitted field
        if found is MISSING and output != self._write(stream.shown[: number + 1], stream.options):
            return  # it took effect, and made the record one of another form
        assert self._plain(found) == self._plain(value), (
            f"{where}: accepted, but read again it is {_short(found)}"
        )

    def _check_refusal(self, error: WriteRefusedError, record: Json) -> None:
        what = f"{_short(record)} is refused with {error.code}"
        rule = {**FRAMEWORK_RULES, **self.rules}.get(error.code)
        assert rule is not None, f"{what}, which is in no catalogue"
        assert rule.severity is Severity.ERROR, f"{what}, whose severity is {rule.severity.word}"
        assert error.message, f"{what}, without a message"
        assert error.remedy or rule.remedy, (
            f"{what}: neither the error nor the rule has a remedy: give one to the Rule, or as "
            "remedy= of the error"
        )

    # --- Optional functions ----------------------------------------------------------------

    def _optional(self, name: str) -> Callable[..., Any]:
        """Return a function of the descriptor; skip the test if there is none."""
        self._need_reader()
        function: Callable[..., Any] | None = getattr(self.writer, name)
        if function is None:
            skip(f"the writer of {self.format} has no {name} of its own")
        return function

    def _sound(self) -> Iterator[tuple[Sample, Capture]]:
        sound = [sample for sample in self.samples() if sample.sound]
        assert sound, "samples() gives none that is sound"
        return self._opened(sound)

    def _salvaged(self, capture: Capture) -> tuple[bytes, list[Loss]]:
        salvage = self._optional("salvage")
        sink = WatchedSink()
        losses = list(salvage(capture, sink, self._options(capture.writer_options)))
        sink.check_left_open("salvage")
        return sink.getvalue(), losses

    def test_salvage_keeps_what_is_sound(self) -> None:
        """Salvaging a sound sample gives the same bytes, without losses."""
        self._optional("salvage")
        for sample, capture in self._sound():
            output, losses = self._salvaged(capture)
            check_same(output, sample.data, f"{sample.name}, which is sound, salvaged")
            assert not losses, f"{sample.name} is sound, but {losses[0]}"

    def test_salvaged_files_are_sound(self) -> None:
        """Salvaged files are read without data loss, and each loss has a kind, place and message.

        Without reported losses, the bytes are those of the input.
        """
        self._optional("salvage")
        rules = {**FRAMEWORK_RULES, **self.rules}

        def check(data: bytes) -> None:
            with self._open(data) as capture:
                output, losses = self._salvaged(capture)
            for loss in losses:
                assert 0 <= loss.offset <= len(data), f"{loss} is outside of {len(data)} bytes"
                assert 0 <= loss.nbytes <= len(data) - loss.offset, f"{loss} has too many bytes"
                assert loss.what, f"{loss} does not say what was lost"
                assert loss.message, f"{loss} does not say what was wrong"
                assert not loss.code or loss.code in rules, f"{loss}: the code is in no catalogue"
            if not losses:
                check_same(output, data, "a sample salvaged without a loss")
            if output:
                self._check_readable(output, "a salvaged sample", self.salvage_leaves)

        self._try(self._damaged(), or_fx_error(check))

    # --- Extracting ---------------------------------------------------------------------------

    def _extracted(self, capture: Capture, selection: Selection) -> bytes:
        extract = self._optional("extract")
        sink = WatchedSink()
        dropped = extract(capture, selection, sink, self._options(capture.writer_options))
        sink.check_left_open("extract")
        check_dropped(dropped, "extract")
        return sink.getvalue()

    def test_extract_of_everything_is_everything(self) -> None:
        """A selection of everything in a sound sample keeps all rows of all tables.

        Data that is in no table, such as an unused string, may be omitted.
        """
        self._optional("extract")
        for sample, whole in self._sound():
            output = self._extracted(whole, Selection())
            self._check_readable(output, f"{sample.name} extracted")
            with self._open(output) as part:
                for name in whole.schemas:
                    found, wanted = contents_of(part, name), contents_of(whole, name)
                    assert found[1] == wanted[1], (
                        f"{sample.name}: of {wanted[1]} rows of {name} it has {found[1]}"
                    )
                    for column, values in wanted[0].items():
                        same = found[0].get(column) == values
                        assert same, f"{sample.name}: {name}.{column} is not what it was"

    def test_extract_of_nothing_is_readable(self) -> None:
        """Extracting an empty time range gives a readable file."""
        self._optional("extract")
        for sample, whole in self._sound():
            for start, stop in ((0, 0), (NS_MAX - 1, NS_MAX), (NS_MAX, NS_MAX)):
                output = self._extracted(whole, Selection(start_ns=start, stop_ns=stop))
                if output or not self.may_be_empty:
                    self._check_readable(output, f"{sample.name} from {start} to {stop} ns")

    def test_extract_keeps_what_a_filter_keeps(self) -> None:
        """Extracting has exactly the events that a plain filter keeps, and reports the others."""
        extract = self._optional("extract")
        for sample, whole in self._sound():
            for selection in selections_of(whole):
                sink = WatchedSink()
                dropped = extract(whole, selection, sink, self._options(whole.writer_options))
                if sink.getvalue() or not self.may_be_empty:
                    self._check_extract(whole, selection, sink.getvalue(), dropped, sample.name)

    # --- Merging -------------------------------------------------------------------------

    def _merged(self, captures: Iterable[Capture]) -> tuple[bytes, Mapping[str, int]]:
        merge = self._optional("merge")
        sink = WatchedSink()
        session = merge(sink, self._options({}))
        for capture in captures:
            session.write(capture)
        dropped = session.close()
        check_dropped(dropped, "merge")
        sink.check_left_open("merge")
        return sink.getvalue(), dropped

    def _mergeable(self) -> Iterator[tuple[str, Callable[[], Capture]]]:
        """Yield names and functions that open captures: sound samples, and generated ones."""
        self._optional("merge")
        for sample in self.samples():
            if sample.sound:
                yield sample.name, functools.partial(self._open, sample.data)
        for seed in SEEDS if self.writer.accepts & GeneratedCapture.schemas.keys() else ():
            yield f"generated capture {seed}", functools.partial(GeneratedCapture, seed)

    def test_merged_files_are_readable(self) -> None:
        """Merged files are read without loss, have rows, and are reproducible."""
        for name, opened in self._mergeable():
            with opened() as capture:
                had = self._accepted_rows(capture)
                with tolerating(*(() if had else (WriteRefusedError,))):
                    output, _ = self._merged([capture])
                    self._check_readable(output, f"{name} merged")
                    check_same(self._merged([capture])[0], output, f"{name} merged again")
                    with self._open(output) as merged:
                        rows = self._accepted_rows(merged)
                        assert rows or not had, f"{name}: none of {had} rows was merged"

    def test_several_captures_are_merged_or_refused(self) -> None:
        """A second capture is merged or refused with a coded error."""
        for name, opened in self._mergeable():
            with tolerating(WriteRefusedError, UsageError), opened() as first, opened() as second:
                output, _ = self._merged([first, second])
                self._check_readable(output, f"{name} merged with itself")

    def test_a_row_that_is_missing_is_noticed_by_merge(self) -> None:
        """Without one of its rows, a capture merges into another file, or `close()` counts it."""
        for name, opened in self._mergeable():
            with opened() as capture:
                tables = {
                    t: len(capture.table(t)) for t in self.writer.accepts & {*capture.schemas}
                }
            for table, rows in tables.items():
                most = range(min(rows, MISSING_ROWS)) if rows > 1 else range(0)
                check_missing(functools.partial(self._merged_tables, opened), table, most, name)

    def _merged_tables(
        self, opened: Callable[[], Capture], change: Change
    ) -> tuple[bytes, Mapping[str, int]]:
        """Merge the tables of a changed capture, as of one of an unknown format."""
        with opened() as capture:
            foreign = Foreign(capture)
            change(foreign)
            return self._merged([foreign])

    def test_columns_without_a_place_are_reported(self) -> None:
        """Columns that other plugins add and the format cannot represent are reported."""
        added = "contract_added"
        for name, opened in self._mergeable():
            with opened() as capture:
                had = self._accepted_rows(capture)
            if had:
                _, dropped = self._merged_tables(opened, widen(added))
                assert any(added in what for what in dropped), (
                    f"{name}: a column {added!r} of other plugins is lost silently; "
                    "fxframework.kit.omitted.omitted_columns() counts such columns"
                )

    def _accepted_rows(self, capture: Capture) -> int:
        accepted = self.writer.accepts & capture.schemas.keys()
        return sum(len(capture.table(name)) for name in accepted)

    def _check_readable(
        self, output: bytes, what: str, allowed: frozenset[str] = frozenset()
    ) -> None:
        """Check that the reader reads an output without data loss."""
        assert output, f"{what} is an empty file"
        try:
            with self._open(output) as capture:
                capture.scan()
                for name in capture.tables:
                    capture.table(name)
        except FxError as error:
            raise AssertionError(f"{what} cannot be read: {error}") from error
        lost = [
            found
            for found in capture.diagnostics
            if found.severity >= Severity.DATA_LOSS and found.code not in allowed
        ]
        assert not lost, f"{what} is read with {lost[0]}"


# --- JSON --------------------------------------------------------------------------------------


def _short(shown: Any) -> str:
    text = shown if shown is MISSING else repr(shown)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _first_other(found: Sequence[Any], expected: Sequence[Any]) -> int | None:
    """Return the index of the first unequal item; None if all are equal."""
    pairs = itertools.zip_longest(found, expected, fillvalue=MISSING)
    return next((n for n, (one, other) in enumerate(pairs) if one != other), None)


def _at(items: Sequence[Any], number: int | None) -> str:
    return _short(items[number] if number is not None and number < len(items) else MISSING)


def _places(streams: Sequence[Stream]) -> list[tuple[int, int, tuple[Any, ...]]]:
    """Return stream, record number and path of each field of each form of record, once.

    Records have the same form if their kind and their fields are the same.
    """
    found: dict[Any, tuple[int, int, tuple[Any, ...]]] = {}
    for which, stream in enumerate(streams):
        for number, shown in enumerate(stream.shown):
            words = tuple(sorted((k, v) for k, v in shown.items() if k in {"record", "kind"}))
            for path in [*_paths(shown), (ADDED,)]:
                found.setdefault((words, tuple(shown), path), (which, number, path))
    return list(found.values())


def _paths(shown: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in JSON; of lists only the first three items."""
    inside: Iterable[tuple[Any, Any]] = ()
    if isinstance(shown, Mapping):
        inside = shown.items()
    elif isinstance(shown, list):
        inside = list(enumerate(shown))[:3]
    for key, value in inside:
        yield (key,)
        for path in _paths(value):
            yield (key, *path)


def _value_at(shown: Any, path: tuple[Any, ...]) -> Any:
    """Return the value in JSON at a path; ``MISSING`` if there is none."""
    try:
        for key in path:
            shown = shown[key]
    except (KeyError, IndexError, TypeError):
        return MISSING
    return shown


def _edited(shown: Json, path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    edited: Any = copy.deepcopy(dict(shown))
    holder = edited
    for key in path[:-1]:
        holder = holder[key]
    if value is not MISSING:
        holder[path[-1]] = value
    elif isinstance(holder, list) or path[-1] in holder:
        del holder[path[-1]]
    return cast("dict[str, Any]", edited)


def _named(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path))


def _all_written(writer: RecordWriter, records: Iterable[Any]) -> RecordWriter:
    for record in records:
        writer.write(record)
    return writer


def _refusal(writer: RecordWriter, record: Json) -> WriteRefusedError | None:
    """Return the error that refuses a record; None if it is written. Others fail the test."""
    try:
        writer.write(record)
    except WriteRefusedError as error:
        return error
    except Exception as error:
        raise AssertionError(
            f"{_short(record)} raises {type(error).__name__} ({error}), not WriteRefusedError"
        ) from error
    return None
