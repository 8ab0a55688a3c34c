"""The contract of writers."""

from __future__ import annotations

import collections
import copy
import functools
import gc
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

import attrs

from fxframework.errors import FxError, Severity, UsageError, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.kit.salvage import UNSOUND
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.schema import STANDARD_TABLES
from fxframework.model.selection import Selection
from fxframework.registry import Reader, RecordWriter, Writer, parse_options
from fxframework.rules import RULES as FRAMEWORK_RULES
from fxframework.testing.contracts.checks import (
    MISSING,
    check_dropped,
    check_json,
    check_same,
    contents_of,
    findings_of,
    short,
    shown_of,
    skip,
    some,
    through_json,
    tolerating,
)
from fxframework.testing.contracts.choosing import check_extract, selections_of
from fxframework.testing.contracts.expectation import Sample
from fxframework.testing.contracts.repetition import growth, peak_of, peaks_shown
from fxframework.testing.contracts.sessions import Input, Sessions
from fxframework.testing.contracts.watching import WatchedSink

__all__ = ["WriterContract"]

Json = Mapping[str, Any]
Path = tuple[Any, ...]
"""Keys and indexes that lead to a value of JSON."""

NO_RECORDS: Sequence[Json] = (
    {}, {"no": "record"}, {"record": None}, {"record": 7}, {"record": ""}, {"record": []},
    {"record": {}}, {"record": "no-such-record"},
)  # fmt: skip
"""JSON objects that are not records of any format."""
VALUES: Sequence[Any] = (
    None, True, 0, 1, 3, 255, -1, 1 << 64, 1 << 70, 0.5, "", "text", "\ud800", "x" * 70_000,
    [], [[]], {}, {"a": 1},
)  # fmt: skip
"""JSON values to put into every field; most are invalid in most fields."""
EDGES: Mapping[type, Sequence[Any]] = {
    bool: (2, "true"),
    int: (-1 << 63, (1 << 64) - 1, "1"),
    float: (1e300, "NaN", "-Infinity", "0.5"),
    str: ("a\0",),
}
"""By the type of a value: what else is at the edges of its fields, or nearly of its type."""
ADDED = "no_such_field"
"""A field that no record has; it may be refused or ignored."""
MOST = 10_000
"""The most records in a long file."""
COUNTS = (250, 1_000, 4_000, 16_000)
"""Records of the files for which memory is compared, until a longer file takes no more."""
MISSING_ROWS = 12
"""Slices that are removed, one at a time, before a capture is merged."""
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


class WriterContract(Sessions):
    """Contract of every writer. Provide ``plugin``, ``format`` and ``samples()``.

    The reader of the format is in ``reader_plugin`` if not in the writer's plugin; without any
    reader, provide ``records()`` and ``rules``, and no samples.
    """

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
        shown = max(streams, key=lambda stream: len(stream.shown)).shown
        whole = [record for record in shown if record["record"] not in UNSOUND]
        assert whole, "no record of the samples is sound"
        return itertools.chain(shown[: shown.index(whole[-1])], itertools.repeat(whole[-1]))

    # --- What is under test ----------------------------------------------------------------

    @property
    def writer(self) -> Writer:
        """The writer under test."""
        writer: Writer = self.item
        return writer

    @property
    def reader(self) -> Reader:
        """The reader of the format; skips the test if there is none."""
        found = self._reader_if_any()
        return skip(f"nothing is known to read {self.format}") if found is None else found

    def _sampled(self, *, sound: bool = False) -> Iterator[Stream]:
        """Yield the records of each small sample, with its capture open."""
        small = self._small() if self._reader_if_any() is not None else ()
        for sample, capture in self._opened(small):
            if sample.sound or not sound:
                options, records = self._options(capture.writer_options), list(capture.records())
                yield Stream(sample.name, _json_of(records), options, records, sample.data)

    def _scratch(self) -> Iterator[Stream]:
        """Yield the records of records(), if there are any."""
        shown = through_json([*self.records()])
        if shown:
            yield Stream("records()", shown, self._options({}), shown)

    def _streams(self) -> list[Stream]:
        """Return all streams, to be used as JSON because their captures are closed."""
        streams = [*self._scratch(), *self._sampled()]
        assert streams, "give samples(), or records() where nothing reads the format"
        return streams

    @property
    def _derived(self) -> frozenset[str]:
        return self.derived | self.writer.derived()

    def _plain(self, shown: Any) -> Any:
        """Return record JSON without derived keys, at any depth."""
        if isinstance(shown, Mapping):
            kept = {key: self._plain(value) for key, value in shown.items()}
            return {key: value for key, value in kept.items() if key not in self._derived}
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
            for form in ("as they are", "as JSON"):
                found = self._rewritten(data, as_json=form == "as JSON")
                check_same(found, data, f"{len(data)} bytes, their records written {form}")

        for sample, capture in self._opened():
            check_json(dict(capture.writer_options), f"{sample.name}: writer_options")
            check(sample.data)
        self._try_damaged(check)

    def _rewritten(self, data: bytes, *, as_json: bool) -> bytes:
        """Write the records of ``data`` with the capture's writer options; return the bytes."""
        with self._open(data) as capture:
            records = _json_of(capture.records()) if as_json else capture.records()
            return self._bytes_of(records, self._options(capture.writer_options))

    def _options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return parse_options(given, self.writer.options, whose=f"writer {self.format}")

    def _start(self, sink: Sink, options: Mapping[str, Any]) -> RecordWriter:
        return self.writer.open(sink, options, Diagnostics(self.rules))

    def _bytes_of(self, records: Iterable[Any], options: Mapping[str, Any]) -> bytes:
        """Write records; return the bytes of the file."""
        sink = Sink.memory()
        _all_written(self._start(sink, options), records).close()
        return sink.getvalue()

    def test_records_are_left_as_they_were(self) -> None:
        """``write()`` does not change its argument, object or JSON."""
        for stream in itertools.chain(self._scratch(), self._sampled()):
            given = copy.deepcopy(stream.shown)
            self._bytes_of(given, stream.options)
            check_same(given, stream.shown, f"{stream.name}: write() changed the JSON")
            if stream.data is not None:
                self._bytes_of(stream.records, stream.options)
                now = _json_of(stream.records)
                check_same(now, stream.shown, f"{stream.name}: write() changed a record")

    def test_records_from_scratch_are_read_back(self) -> None:
        """The records of records() are read back without findings, and written again unchanged."""
        for stream in some(self._scratch(), "records() gives none"):
            output = self._bytes_of(stream.shown, stream.options)
            with self._open(output) as capture:
                found, bad = _json_of(capture.records()), findings_of(capture, Severity.WARNING)
            check_same(self._plain(found), self._plain(stream.shown), "records() written and read")
            assert not bad, f"the reader reports a finding in the output: {bad[0]}"
            check_same(self._rewritten(output, as_json=True), output, "records() written again")

    # --- The sink --------------------------------------------------------------------------

    def test_bytes_reach_the_sink_in_order(self) -> None:
        """After any record, the bytes in the sink are a prefix of the file.

        This holds for objects, and where every other record is JSON. The writer does not commit,
        abort or close the sink.
        """
        for stream in itertools.chain(self._scratch(), self._sampled()):
            whole = self._bytes_of(stream.shown, stream.options)
            if stream.data is not None:
                check_same(whole, stream.data, f"{stream.name} written")
            for json_from in (0, 1):
                mixed = list(stream.records)
                mixed[json_from::2] = stream.shown[json_from::2]
                self._check_order(mixed, stream, whole)

    def _check_order(self, records: Sequence[Any], stream: Stream, whole: bytes) -> None:
        sink = WatchedSink()
        writer = self._start(sink, stream.options)
        for number, record in enumerate(records):
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
        streams = [(s, self._bytes_of(s.shown, s.options)) for s in self._streams()[:4]]
        for (first, alone), (second, other) in itertools.product(streams, repeat=2):
            sink, writer = self._after(first, len(first.shown) // 2)
            beside, its_writer = self._after(second, 0)
            rest = first.shown[len(first.shown) // 2 :]
            for mine, its in itertools.zip_longest(rest, second.shown):
                if its is not None:
                    its_writer.write(its)
                if mine is not None:
                    writer.write(mine)
            its_writer.close()
            writer.close()
            check_same(sink.getvalue(), alone, f"{first.name} while {second.name} is written")
            check_same(beside.getvalue(), other, f"{second.name} beside {first.name}")

    def test_many_records_come_back(self) -> None:
        """A file larger than the writer's buffer has all records in order."""
        sink = Sink.memory()
        many = itertools.islice(self.many(), MOST)
        given = [self._plain(each) for each in self._given(sink, many, 4 * self.held)]
        with self._open(sink.getvalue()) as capture:
            check_same(self._plain(_json_of(capture.records())), given, "many() written and read")

    def test_memory_does_not_grow_with_what_was_written(self) -> None:
        """Four times as many records take no more memory, once the writer's buffers are full."""
        peaks: list[tuple[int, int]] = []
        warm = self._given(Sink.nowhere(), itertools.islice(self.many(), COUNTS[0]))
        collections.deque(warm, maxlen=0)  # what is made once is made now
        for count in COUNTS:
            sink = Sink.nowhere()
            written = self._given(sink, itertools.islice(self.many(), count))
            peak = peak_of(functools.partial(collections.deque, written, maxlen=0))
            peaks.append((sink.written, peak))
            if len(peaks) > 1 and growth(peaks) < GROWN:
                assert peak <= self.held, (
                    f"writing {count} records of {sink.written:,} bytes took {peak:,} "
                    f"bytes of memory, more than {self.held:,}"
                )
                return
            if sink.written * COUNTS[-2] < self.held * count:
                skip(
                    f"{COUNTS[-2]:,} records of many() fit in the {self.held:,} bytes that the "
                    "writer may hold: larger ones would show whether its memory grows"
                )
        raise AssertionError(f"the writer's memory grows with the file: {peaks_shown(peaks)}")

    def _given(
        self, sink: Sink, records: Iterable[Json], most: int | None = None
    ) -> Iterator[Json]:
        """Write records, or ``most`` bytes of them, and yield each after writing it."""
        writer = self._start(sink, self._options({}))
        for record in records:
            writer.write(through_json(record))
            yield record
            if most is not None and sink.written > most:
                break
        writer.close()

    # --- Refusals --------------------------------------------------------------------------

    def test_refused_records_say_why(self) -> None:
        """The records of refused() raise WriteRefusedError with the code and a remedy."""
        for record, code in some(self.refused(), "refused() gives none"):
            self._check_refused(record, code)

    def test_what_is_no_record_is_refused(self) -> None:
        """JSON objects that are not records raise WriteRefusedError."""
        for record in NO_RECORDS:
            self._check_refused(record)

    def _check_refused(self, record: Json, code: str | None = None) -> None:
        error = self._refusal(self._start(Sink.memory(), self._options({})), record)
        found = "was written" if error is None else f"is refused with {error.code}"
        right = error is not None and code in {None, error.code}
        assert right, f"{short(record)} {found}, not refused with {code or 'a code'}"

    def test_refused_records_leave_nothing(self) -> None:
        """A refused record leaves no bytes, wherever it occurs."""
        first = self._streams()[0]
        stream = attrs.evolve(first, shown=first.shown[:40])
        whole = self._bytes_of(stream.shown, stream.options)
        refused = [*(record for record, _ in self.refused()), *NO_RECORDS]
        for at in sorted({0, len(stream.shown) // 2, len(stream.shown)}):
            self._check_no_effect(stream, at, refused, whole)

    def _after(self, stream: Stream, number: int) -> tuple[Sink, RecordWriter]:
        """Return a sink and a writer that wrote the first ``number`` records of a stream."""
        sink = Sink.memory()
        return sink, _all_written(self._start(sink, stream.options), stream.shown[:number])

    def _check_no_effect(
        self, stream: Stream, number: int, refused: Sequence[Json], whole: bytes
    ) -> None:
        """Check that records are refused after ``number`` others, and leave the file as it is."""
        sink, writer = self._after(stream, number)
        for record in refused:
            assert self._refusal(writer, record) is not None, f"{short(record)} was not refused"
        _all_written(writer, stream.shown[number:]).close()
        if sink.getvalue() != whole and len(refused) > 1:
            for record in refused:  # find the one that had an effect
                self._check_no_effect(stream, number, [record], whole)
        what = f"{' or '.join(map(short, refused[:3]))}, refused after {number} records"
        check_same(sink.getvalue(), whole, what)

    def test_wrong_values_are_refused_or_take_effect(self) -> None:
        """An edited field is read back as edited, or the record is refused.

        Fields get any JSON values, and are removed and emptied; one that no record has is refused.
        Only WriteRefusedError may be raised, and a refused record must have no effect.
        """
        streams = [attrs.evolve(s, shown=s.shown[:100], data=None) for s in self._streams()]
        wholes = [self._bytes_of(stream.shown, stream.options) for stream in streams]
        for (which, number), paths in _places(streams).items():
            shown = streams[which].shown[number]
            edits = [
                (path, value)
                for path in paths
                for kind in [type(_value_at(shown, path))]
                for value in (MISSING, kind(), *VALUES, *EDGES.get(kind, ()))
            ]
            self._check_edits(streams[which], number, edits, wholes[which])

    def _check_edits(
        self, stream: Stream, number: int, edits: Sequence[tuple[Path, Any]], whole: bytes
    ) -> None:
        """Check that each edit of a record takes effect or is refused."""
        refused = []
        sink, writer = self._after(stream, number)
        for path, value in edits:
            shown = stream.shown[number]
            edited = _edited(shown, path, value)
            if self._refusal(writer, edited) is not None:
                refused.append(edited)
                continue
            where = f"{shown['record']} with {'.'.join(map(str, path))} {short(value)}"
            unknown = ADDED in path and value is not MISSING
            assert not unknown, f"{where}: a field that no record has is not refused"
            writer.close()
            self._check_effect(sink.getvalue(), stream, number, (path, value), where)
            sink, writer = self._after(stream, number)
        if refused:
            self._check_no_effect(stream, number, refused, whole)

    def _check_effect(
        self, output: bytes, stream: Stream, number: int, edit: tuple[Path, Any], where: str
    ) -> None:
        """Check that the last record of a file has the value, if that can be determined."""
        path, value = edit
        ignored = any(
            key in {ADDED, *self._derived} or str(key).endswith(("_bytes_hex", "_bits"))
            for key in path
        )
        if value is MISSING or ignored or self._reader_if_any() is None:
            return
        with self._open(output) as capture:
            shown = shown_of(capture)
        assert shown, f"{where}: accepted, but there is no record in the file"
        if shown[-1]["record"] in UNSOUND:
            return
        found, before = _value_at(shown[-1], path), _value_at(stream.shown[number], path)
        if isinstance(value, int) and isinstance(found, str) and found is not MISSING:
            return  # a value of an enumeration, shown by name
        if found is MISSING and not value and type(value) is type(before):
            without = _edited(stream.shown[number], path, MISSING)
            same = self._bytes_of([*stream.shown[:number], without], stream.options)
            check_same(output, same, f"{where}, which is not shown, beside no such field")
            return  # the default value of an omitted field
        if found is MISSING:
            unchanged = self._bytes_of(stream.shown[: number + 1], stream.options)
            if output != unchanged:
                return  # it took effect, and made the record one of another form
        assert self._plain(found) == self._plain(value), (
            f"{where}: accepted, but read again it is {short(found)}"
        )

    def _refusal(self, writer: RecordWriter, record: Json) -> WriteRefusedError | None:
        """Return the error that refuses a record, and check it; None if it is written."""
        try:
            writer.write(record)
            return None
        except WriteRefusedError as error:
            refused = error
        except Exception as error:
            what = f"{type(error).__name__} ({error}), not WriteRefusedError"
            raise AssertionError(f"{short(record)} raises {what}") from error
        what = f"{short(record)} is refused with {refused.code}"
        rule = {**FRAMEWORK_RULES, **self.rules}.get(refused.code)
        assert rule is not None, f"{what}, which is in no catalogue"
        assert rule.severity is Severity.ERROR, f"{what}, whose severity is {rule.severity.word}"
        assert refused.message, f"{what}, without a message"
        assert refused.remedy or rule.remedy, f"{what}: neither the error nor the rule has a remedy"
        return refused

    # --- Optional functions ----------------------------------------------------------------

    def _optional(self, name: str) -> Callable[..., Any]:
        """Return a function of the descriptor; skip the test if there is none."""
        function: Callable[..., Any] | None = getattr(self.writer, name)
        if function is None or self._reader_if_any() is None:
            skip(f"the writer of {self.format} has no {name} of its own, or the format no reader")
        return function

    def _sound(self, name: str) -> Iterator[tuple[Sample, Capture]]:
        """Yield the sound samples, open, for a test of a function of the descriptor."""
        self._optional(name)
        sound = [sample for sample in self.samples() if sample.sound]
        assert sound, "samples() gives none that is sound"
        return self._opened(sound)

    def _made(self, name: str, capture: Capture, *more: Any) -> tuple[bytes, Any]:
        """Call ``salvage`` or ``extract`` of the descriptor; return the bytes and the result."""
        sink = WatchedSink()
        made = self._optional(name)(capture, *more, sink, self._options(capture.writer_options))
        result = list(made) if name == "salvage" else made
        sink.check_left_open(name)
        return sink.getvalue(), result

    def test_salvage_keeps_what_is_sound(self) -> None:
        """Salvaging a sound sample gives the same bytes, without losses."""
        for sample, capture in self._sound("salvage"):
            output, losses = self._made("salvage", capture)
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
                output, losses = self._made("salvage", capture)
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

        self._try_damaged(check)

    def _extracted(self, capture: Capture, selection: Selection, what: str) -> tuple[bytes, Any]:
        """Extract a part; return the bytes, which can be read, and what was dropped."""
        output, dropped = self._made("extract", capture, selection)
        check_dropped(dropped, f"extract: {what}")
        if output or not self.may_be_empty:
            self._check_readable(output, f"extract: {what}")
        return output, dropped

    def test_extract_of_everything_is_everything(self) -> None:
        """A selection of everything in a sound sample keeps all rows of all tables.

        Data that is in no table, such as an unused string, may be omitted.
        """
        for sample, whole in self._sound("extract"):
            output, _ = self._extracted(whole, Selection(), sample.name)
            with self._open(output) as part:
                for name in whole.schemas:
                    what = f"{sample.name}, all of it extracted: {name}"
                    check_same(contents_of(part, name), contents_of(whole, name), what)

    def test_extract_of_nothing_is_readable(self) -> None:
        """Extracting an empty time range gives a readable file."""
        for sample, whole in self._sound("extract"):
            for start, stop in ((0, 0), (NS_MAX - 1, NS_MAX), (NS_MAX, NS_MAX)):
                nothing = Selection(start_ns=start, stop_ns=stop)
                self._extracted(whole, nothing, f"{sample.name} from {start} to {stop} ns")

    def test_extract_keeps_what_a_filter_keeps(self) -> None:
        """Extracting has exactly the events that a plain filter keeps, and reports the others."""
        for sample, whole in self._sound("extract"):
            for selection in selections_of(whole):
                output, dropped = self._extracted(whole, selection, sample.name)
                if output or not self.may_be_empty:
                    with self._open(output) as again:
                        check_extract(whole, selection, again, dropped, sample.name)

    # --- Merging -------------------------------------------------------------------------

    def _session(self, sink: Sink, options: Mapping[str, Any] | None = None) -> Any:
        return self._optional("merge")(sink, self._options(options or {}))

    def _takes(self, capture: Capture) -> bool:
        return self.writer.merges(capture.format, capture.tables)

    def _check_output(self, output: bytes, capture: Capture, given: Input) -> None:
        self._check_readable(output, f"{given.name} merged")
        with self._open(output) as merged:
            had = self._rows(capture)
            assert self._rows(merged) or not had, f"{given.name}: none of {had} rows was merged"

    def _inputs(self) -> Iterator[Input]:
        """Yield the sound samples, and generated captures; skip where none can be merged."""
        try:
            self._session(Sink.memory())
        except UsageError as refused:
            skip(str(refused))
        yield from (self._input(sample) for sample in self.samples() if sample.sound)
        yield from self._generated()

    def _foreign(self) -> Iterator[Input]:
        """Yield the same as captures of a format that nobody knows, with the same tables."""
        for given in self._inputs():
            with given.open() as capture:
                rows = self._rows(capture)
            if rows:
                yield attrs.evolve(given, foreign=True)

    def test_merged_files_are_readable(self) -> None:
        """Merged files are read without loss, have rows, and are reproducible."""
        for given in self._inputs():
            with given.open() as capture:
                had = self._rows(capture)
            with tolerating(*(() if had else (WriteRefusedError,))):
                output, _ = self._written(given)
                check_same(self._written(given)[0], output, f"{given.name} merged again")

    def test_a_row_that_is_missing_is_noticed_by_merge(self) -> None:
        """Without one of its rows, a capture merges into another file, or `close()` counts it."""
        self._check_missing_rows(self._foreign(), MISSING_ROWS)

    def test_columns_without_a_place_are_reported(self) -> None:
        """Columns that other plugins add and the format cannot represent are reported."""
        self._check_added_columns(self._foreign())

    def _check_readable(
        self, output: bytes, what: str, allowed: frozenset[str] = frozenset()
    ) -> None:
        """Check that the reader reads an output without data loss."""
        assert output, f"{what} is an empty file"
        try:
            with self._open(output) as capture:
                for name in capture.tables:
                    capture.table(name)
                lost = findings_of(capture, Severity.DATA_LOSS)
        except FxError as error:
            raise AssertionError(f"{what} cannot be read: {error}") from error
        lost = [found for found in lost if found.code not in allowed]
        assert not lost, f"{what} is read with {lost[0]}"


# --- JSON --------------------------------------------------------------------------------------


def _json_of(records: Iterable[Any]) -> list[dict[str, Any]]:
    """Return copies of records as JSON."""
    shown: list[dict[str, Any]] = through_json([record.to_json() for record in records])
    return shown


def _places(streams: Sequence[Stream]) -> dict[tuple[int, int], list[Path]]:
    """Return the paths of each field of each form of record, once, by stream and record number.

    Records have the same form if their kind and their fields are the same.
    """
    found: dict[tuple[int, int], list[Path]] = {}
    known = set()
    for which, stream in enumerate(streams):
        for number, shown in enumerate(stream.shown):
            words = tuple(sorted((k, v) for k, v in shown.items() if k in {"record", "kind"}))
            for path in [*_paths(shown), (ADDED,)]:
                form = words, tuple(shown), path
                if form not in known:
                    known.add(form)
                    found.setdefault((which, number), []).append(path)
    return found


def _paths(shown: Any) -> Iterator[Path]:
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


def _value_at(shown: Any, path: Path) -> Any:
    """Return the value in JSON at a path; ``MISSING`` if there is none."""
    try:
        return functools.reduce(operator.getitem, path, shown)
    except (KeyError, IndexError, TypeError):
        return MISSING


def _edited(shown: Json, path: Path, value: Any) -> dict[str, Any]:
    edited: dict[str, Any] = copy.deepcopy(dict(shown))
    holder = functools.reduce(operator.getitem, path[:-1], cast("Any", edited))
    if value is not MISSING:
        holder[path[-1]] = value
    elif isinstance(holder, list) or path[-1] in holder:
        del holder[path[-1]]
    return edited


def _all_written(writer: RecordWriter, records: Iterable[Any]) -> RecordWriter:
    for record in records:
        writer.write(record)
    return writer
