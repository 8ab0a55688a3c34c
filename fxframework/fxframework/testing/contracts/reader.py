"""The contract of readers."""

from __future__ import annotations

import gzip
import itertools
import pickle
import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from fxframework.errors import FxError, Severity, StrictError
from fxframework.host import default_host
from fxframework.io.source import Source
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.schema import STANDARD_TABLES
from fxframework.registry import HEAD, Confidence, Probe, Reader
from fxframework.rules import RULES as FRAMEWORK_RULES
from fxframework.testing.contracts.agreement import check_agreement, check_summary, event_tables
from fxframework.testing.contracts.base import BATCH_SIZES, without_plugins
from fxframework.testing.contracts.checks import (
    check_cover,
    check_damage_codes,
    check_findings,
    check_json,
    check_same,
    check_tables,
    findings_of,
    rows_of,
    shown_of,
    skip,
    some,
    tables_of,
    tolerating,
)
from fxframework.testing.contracts.choosing import described, selections_of
from fxframework.testing.contracts.expectation import check_capture, check_golden
from fxframework.testing.contracts.repetition import peak_of, read_all
from fxframework.testing.contracts.requests import MAKE_DIAGNOSTICS, Requests
from fxframework.testing.strategies import byte_strings, every_truncation

__all__ = ["FOREIGN", "ReaderContract"]

CUT = 512
"""Size of a sample that is truncated, at most, if there is a sample as small."""
EDGE = (-1, 0, 1)
"""Where a sample is truncated: at these distances from the begin of a record of a new form, ..."""
APART = 3
"""... and after every so many bytes inside it. Multiples of 3, as of any odd number, reach all
places in a word."""
MOST_INSIDE = 64
"""Truncations inside a long record, about."""
FOREIGN: Mapping[str, bytes] = {
    "empty": b"",
    "one byte": b"\0",
    "zeros": bytes(4096),
    "ones": b"\xff" * 4096,
    "text": b"The quick brown fox jumps over the lazy dog.\n" * 40,
    "json": b'{"name": "report", "values": [1, 2.5, null, "x"], "nested": {"events": [{"at": 1}]}}',
    "json array": b'[{"name": "a", "size": 1}, {"name": "b", "size": 2}]',
    "json lines": b'{"a": 1}\n{"a": 2}\n',
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(64),
    "elf": b"\x7fELF\x02\x01\x01" + bytes(121),
    "zip": b"PK\x03\x04\x14\0\0\0\x08\0" + bytes(64),
    "zstd": b"\x28\xb5\x2f\xfd" + bytes(64),
    "sqlite": b"SQLite format 3\0" + bytes(84),
    "utf-16": "\ufefftext".encode("utf-16-le") * 20,
    "counting bytes": bytes(range(256)) * 4,
}
"""Inputs that are not telemetry."""


class ReaderContract(Requests):
    """Contract of every reader. Provide ``plugin``, ``format`` and ``samples()``."""

    golden: ClassVar[Path | str | None] = None
    """A folder of golden files NAME.json, one per sample, which `pytest --fxf-update-golden`
    writes."""
    memory: ClassVar[tuple[int, int]] = (64 << 20, 200)
    """Bytes of memory for reading a damaged sample: a base, and bytes per byte of input."""

    noun: ClassVar[str] = "reader"

    @property
    def reader(self) -> Reader:
        """The reader under test."""
        reader: Reader = self.item
        return reader

    def foreign(self) -> Mapping[str, bytes]:
        """Return inputs that the sniffer must reject, by name."""
        return FOREIGN

    # --- The descriptor --------------------------------------------------------------------

    def test_public_things_have_docstrings(self) -> None:
        """The capture class, its tables and their columns are documented."""
        with self._open(self._small()[0].data) as capture:
            capture_class = type(capture)
            has_own_docstring = capture_class.__doc__ and capture_class.__doc__ != Capture.__doc__
            assert has_own_docstring, (
                f"{capture_class.__name__} has no docstring that says what it is"
            )
            format = capture.format
            assert format == self.format, (
                f"format: the capture has {format!r}, the reader {self.format!r}"
            )
            for name, schema in capture.schemas.items():
                assert name == schema.name, (
                    f"schemas: the table {name!r} has the schema of {schema.name!r}"
                )
                assert schema.doc, f"table {name} does not say what a row is (doc)"
                for column in schema.columns:
                    assert column.doc, f"column {name}.{column.name} has no doc"

    def test_standard_tables_keep_their_columns(self) -> None:
        """Standard columns come first and are complete; added columns and tables have a prefix."""
        prefix = f"prefix of the plugin, such as {self.format.partition('-')[0]}_"
        with self._open(self._small()[0].data) as capture:
            for name, schema in capture.schemas.items():
                if name not in STANDARD_TABLES:
                    assert "_" in name, f"table {name} is not a standard table, and has no {prefix}"
                    continue
                standard = STANDARD_TABLES[name].columns
                assert schema.columns[: len(standard)] == standard, (
                    f"table {name} does not have the standard columns, in their order, first"
                )
                for column in schema.columns[len(standard) :]:
                    assert "_" in column.name, f"column {name}.{column.name} has no {prefix}"

    def test_rules_are_complete(self) -> None:
        """Each rule of the catalogue has a valid code, title, rule, section and description."""
        for code, rule in self.rules.items():
            assert re.fullmatch(r"[A-Z]{3,4}[0-9]{4}", code), (
                f"rule {code!r}: a code is 3 or 4 capitals and 4 digits"
            )
            assert code not in FRAMEWORK_RULES, f"rule {code} has a code of the framework"
            for field in ("title", "rule", "section", "ours"):
                assert getattr(rule, field), f"rule {code} has no {field}"

    def test_codes_are_of_this_format_alone(self) -> None:
        """No installed format of another plugin has a rule of the same code."""
        for other_reader in default_host().readers.values():
            other_rules = (
                {}
                if other_reader.rules is None or other_reader.format == self.format
                else other_reader.rules()
            )
            for code in [code for code in other_rules if code in self.rules]:
                assert self.rules[code].title == other_rules[code].title, (
                    f"rule {code} has a code of the format {other_reader.format}: give the format "
                    "codes with a prefix of its own"
                )

    # --- Sniffing --------------------------------------------------------------------------

    def _sniff(self, data: bytes, name: str = "") -> Confidence:
        probe = Probe(head=data[:HEAD], size=len(data), name=name)
        confidence = self.reader.sniff(probe)
        assert isinstance(confidence, Confidence), f"sniff gives {confidence!r}, not a Confidence"
        return confidence

    def test_sniff_knows_its_samples(self) -> None:
        """The sniffer returns the expected confidence for each sample."""
        for sample in self.samples():
            confidence = self._sniff(sample.data, sample.name)
            expected = sample.confidence
            assert confidence is expected, (
                f"sniff: {sample.name} is {confidence.name}, not {expected.name}"
            )

    def test_sniff_leaves_others_alone(self) -> None:
        """Inputs of other formats get NONE, and are not CERTAIN even with the format's suffix."""
        for name, data in self.foreign().items():
            confidence = self._sniff(data)
            assert confidence is Confidence.NONE, (
                f"sniff: bytes of another format ({name}) are {confidence.name}, not NONE"
            )
            for suffix in self.reader.suffixes:
                confidence = self._sniff(data, f"x{suffix}")
                assert confidence is not Confidence.CERTAIN, (
                    f"sniff: bytes of another format ({name}) are CERTAIN under {suffix}"
                )

    def test_sniff_never_raises(self) -> None:
        """Any bytes get a confidence; a prefix of a sample gets no more than the whole."""
        samples = list(self.samples())
        heads = [sample.data[:512] for sample in samples]
        self._try(byte_strings(heads), self._sniff)
        for sample in samples:
            for head in itertools.islice(every_truncation(sample.data), 256):
                confidence = self._sniff(head)
                assert confidence <= sample.confidence, (
                    f"sniff: {len(head)} bytes of {sample.name} are surer than the whole"
                )

    # --- Records ---------------------------------------------------------------------------

    def test_samples_hold_together(self) -> None:
        """Records cover the file without gap or overlap; tables and findings are well formed.

        Columns have the types of the schema and equal lengths, and offsets lie in the file.
        Findings have catalogued codes, and offsets within the file.
        """
        for sample in self.samples():
            self._hold_together(sample.data)

    def test_records_are_json(self) -> None:
        """Each record is a JSON object with its kind and place."""
        for sample, capture in self._opened():
            for record in capture.records():
                json_record = record.to_json()
                place_text = f"JSON of the record at byte {record.offset} of {sample.name}"
                assert isinstance(json_record.get("record"), str), (
                    f"{place_text} has no `record`: {json_record}"
                )
                place = json_record.get("offset"), json_record.get("nbytes")
                record_place = record.offset, record.nbytes
                assert place == record_place, (
                    f"{place_text} has offset and nbytes {place}, the record {record_place}"
                )
                check_json(json_record, place_text)

    def test_records_can_be_pickled(self) -> None:
        """Each kind of record is the same after pickling, so other processes can be given it."""
        for sample, capture in self._opened():
            # A kind of records shows with its class; the last of each is tried.
            record_by_kind = {(type(record), record.to_json().get("record")): record
                     for record in capture.records()}  # fmt: skip
            for record in record_by_kind.values():
                where = f"the record at byte {record.offset} of {sample.name}"
                unpickled = pickle.loads(pickle.dumps(record))  # noqa: S301 (it was just made)
                assert unpickled == record, f"{where} is another one after pickling: {unpickled}"
                shown = unpickled.to_json()
                assert shown == record.to_json(), f"{where} shows {shown} after pickling"

    # --- Tables ----------------------------------------------------------------------------

    def test_batches_are_the_table(self) -> None:
        """Batches of any size have the rows of the table in order, and at most that many rows."""
        for sample, whole in self._opened():
            tables = tables_of(whole)
            row_counts = {name: len(whole.table(name)) for name in whole.tables}
            for size in BATCH_SIZES:
                if max(row_counts.values(), default=0) > 5000 and size < 64:
                    continue  # small batches are for small samples
                with self._open(sample.data) as capture:
                    for name, rows in row_counts.items():
                        where = f"batches of {name} by {size} rows, {sample.name}"
                        batches = list(capture.batches(name, size))
                        sizes = [len(part) for part in batches]
                        are_within = all(0 < rows_in <= size for rows_in in sizes)
                        sizes_fit = are_within and sum(sizes) == rows
                        assert sizes_fit, f"{where}: they have {sizes[:8]} rows, the table {rows}"
                        joined = [rows_of(part) for part in batches]
                        for column, values in tables[name].items():
                            batch_values = [value for part in joined for value in part[column]]
                            check_same(batch_values, values, f"{where}: {column}")

    def test_views_do_not_disturb_each_other(self) -> None:
        """Tables are the same in any order, on repetition, and while records are read."""
        for sample in self._small():
            digest = self._digest(sample.data)
            with self._open(sample.data) as capture:
                records = capture.records()
                json_records = [record.to_json() for record in itertools.islice(records, 1)]
                last_first = capture.tables[::-1]
                backwards = {name: rows_of(capture.table(name)) for name in last_first}
                tables_again = tables_of(capture)
                json_records += [record.to_json() for record in records]
            what = f"order: views of {sample.name} that are asked for in another order, or again"
            for view in (backwards, tables_again, {"records": json_records}):
                check_same(view, {name: digest[name] for name in view}, what)

    def test_records_rows_and_findings_agree(self) -> None:
        """Records, rows, findings and summary agree, in samples that are whole and cut short."""
        whole_samples = [(sample, len(sample.data)) for sample in self.samples()]
        small_samples = [(sample, len(sample.data)) for sample in self._small()]
        cut_samples = [
            (sample, end) for sample, size in small_samples for end in (size * 2 // 3, size - 1)
        ]
        for sample, end in (*whole_samples, *cut_samples):
            errors = () if end == len(sample.data) else (FxError,)
            try:
                with tolerating(*errors), self._open(sample.data[:end]) as capture:
                    check_agreement(capture)
            except AssertionError as error:
                raise AssertionError(f"{error} ({sample.name}, {end} bytes)") from None

    def test_samples_are_what_is_expected(self) -> None:
        """Samples match ``Sample.expected`` and their golden files."""
        samples = [
            sample for sample in self.samples() if sample.expected or self.golden is not None
        ]
        reason = (
            "no sample has expected contents: add `expected` to a sample or a folder `golden` "
            "to the contract; only these can detect a wrong unit of time"
        )
        for sample in some(samples, reason):
            with self._open(sample.data, name=sample.name) as capture:
                check_capture(capture, sample)
                if self.golden is not None:
                    check_golden(capture, Path(self.golden) / f"{sample.name}.json")

    # --- Findings and summary --------------------------------------------------------------

    def test_sound_samples_have_no_findings(self) -> None:
        """Sound samples have no finding of WARNING or worse."""
        sound_samples = [sample for sample in self.samples() if sample.sound]
        for sample, capture in self._opened(sound_samples):
            findings = findings_of(capture, Severity.WARNING)
            assert not findings, f"findings: {sample.name} is sound, but has {findings[0]}"

    def test_findings_are_made_once(self) -> None:
        """Reading again, in turns, or through another view, does not repeat findings."""
        for sample in self._small():
            for data in (sample.data, sample.data[: len(sample.data) * 2 // 3]):
                with self._open(data) as capture:
                    deque(capture.records(), maxlen=0)
                    counts_of_one = capture.diagnostics.counts
                message = f"findings of {sample.name} are reported again"
                with self._open(data) as capture:
                    deque(zip(capture.records(), capture.records(), strict=False), maxlen=0)
                    counts_in_turns = capture.diagnostics.counts
                    check_same(
                        counts_in_turns, counts_of_one, f"{message} where two readings take turns"
                    )
                with self._open(data) as capture:
                    begun_records = capture.records()
                    next(begun_records, None)
                    capture.scan()
                    counts_of_scan = capture.diagnostics.counts
                    deque(begun_records, maxlen=0)
                    read_all(capture)
                    for name in capture.tables:
                        list(capture.batches(name, 3))
                    check_same(capture.diagnostics.counts, counts_of_scan, message)

    def test_tables_report_what_they_read(self) -> None:
        """Reading all tables, whole or in batches, reports the findings that a scan reports."""
        for sample in self._small():
            for data in (sample.data, sample.data[: len(sample.data) * 2 // 3]):
                with tolerating(FxError):
                    self._report_alike(data, f"{len(data)} bytes of {sample.name}")

    def _report_alike(self, data: bytes, what: str) -> None:
        with self._open(data) as capture:
            if not capture.schemas:
                skip(f"captures of {self.format} have no tables")
            capture.scan()
            counts_of_scan = capture.diagnostics.counts
        remedy = "make rows of records(), or report to record_diagnostics; the count of"
        with self._open(data) as capture:
            for name in capture.schemas:
                capture.table(name)
            fault = f"findings of the tables are not those of a scan ({what}): {remedy}"
            check_same(capture.diagnostics.counts, counts_of_scan, fault)
        with self._open(data) as capture:
            for name in capture.schemas:
                deque(capture.batches(name), maxlen=0)
            fault = f"findings of batches are not those of a scan ({what}): {remedy}"
            check_same(capture.diagnostics.counts, counts_of_scan, fault)

    def test_strict_stops_at_a_loss(self) -> None:
        """Strict reading raises StrictError where lenient reading reports DATA_LOSS.

        The error has the path of the input and a catalogued code.
        """
        loss_count = 0
        small_samples = self._small()
        # All samples together are cut some 50 times: each of several in other places.
        step = 4 * len(small_samples)
        for number, sample in enumerate(small_samples):
            for data in itertools.islice(every_truncation(sample.data), 1 + 4 * number, 200, step):
                with self._open(data) as capture:
                    has_loss = bool(findings_of(capture, Severity.DATA_LOSS))
                loss_count += has_loss
                try:
                    with self._open(data, strict=True, name=sample.name) as capture:
                        capture.scan()
                    assert not has_loss, (
                        f"a loss at strict reading ({len(data)} bytes of {sample.name}) is not "
                        "refused with StrictError"
                    )
                except StrictError as error:
                    assert error.path == sample.name, (
                        f"path: the error of a strict reading names {error.path!r}, not the "
                        f"input: {MAKE_DIAGNOSTICS}"
                    )
                    assert error.code in self.rules or error.code in FRAMEWORK_RULES, (
                        f"the error of a strict reading has the code {error.code}, of no catalogue"
                    )
        assert loss_count, (
            "findings: no small sample that is cut short has one of DATA_LOSS: a record that is "
            "cut off must be reported"
        )

    def test_summary_counts_the_records(self) -> None:
        """``summary()`` agrees with ``records()`` and is plain JSON."""
        for _, capture in self._opened():
            summary = capture.summary()  # before the records are read
            check_summary(summary, capture, list(capture.records()))

    def test_explain_covers_every_byte(self) -> None:
        """The explained fields at any offset lie in its record, and name their section."""
        explain = self.reader.explain
        if explain is None:
            skip(f"the reader of {self.format} explains no bytes")
        sample = self._small()[0]
        with self._open(sample.data) as capture:
            for record in capture.records():
                for offset in (record.offset, record.offset + record.nbytes - 1):
                    views = explain(capture.source, offset)
                    assert views, f"explain: nothing at byte {offset}"
                    end = record.offset + record.nbytes
                    for view in views:
                        assert record.offset <= view.offset < end, (
                            f"explain: of byte {offset} it shows byte {view.offset}, which is not "
                            "of that record"
                        )
                        assert view.name, f"explain: a field at byte {view.offset} has no name"
                        assert view.section, f"explain: {view.name} does not name its section"

    def test_select_keeps_the_records_of_its_time(self) -> None:
        """A selection has the records in its time range and those without a time."""
        cases = (
            (f"{sample.name}, {described(selection)}", selection, capture)
            for sample, capture in self._opened(self._small())
            if capture.timed_records and capture.row_table is None
            for selection in selections_of(capture)
            if selection.by_time_alone
        )
        reason = (
            "no small sample has records to select by their own time (timed_records, row_table)"
        )
        for name, selection, capture in some(cases, reason):
            # Half-open, as selections are: a record at ``stop_ns`` is outside.
            start_ns = NS_MIN if selection.start_ns is None else selection.start_ns
            stop_ns = NS_MAX + 1 if selection.stop_ns is None else selection.stop_ns
            times = [(record.offset, getattr(record, "ns", None)) for record in capture.records()]
            expected_offsets = [
                offset for offset, ns in times if ns is None or start_ns <= ns < stop_ns
            ]
            selected_offsets = [record.offset for record in capture.select(selection).records()]
            what = f"select: {name}, in place of a filter of their ns: records"
            check_same(selected_offsets, expected_offsets, what)

    # --- Damaged inputs --------------------------------------------------------------------

    def test_truncation_keeps_the_records_before_it(self) -> None:
        """A truncated sample keeps the whole records before the cut, or is refused.

        A sample is truncated inside every record, and of the first of each form also around its
        edges and at every third byte.
        """
        small_samples = self._small()
        tiny_samples = [sample for sample in small_samples if len(sample.data) <= CUT]
        sample = (tiny_samples or small_samples)[-1]
        size = len(sample.data)
        with self._open(sample.data) as capture:
            records = shown_of(capture)
            events = _event_places(capture, records)
        ends = {size - 1}
        known_forms = set()
        for record in records:
            offset = record["offset"]
            form = (record["record"], record.get("kind"), tuple(record))
            if form in known_forms:
                ends.add(offset + 1)
                continue
            known_forms.add(form)
            ends |= {*(offset + distance for distance in EDGE), offset + record["nbytes"] - 1}
            apart = max(APART, record["nbytes"] // MOST_INSIDE | 1)
            ends |= {*range(offset, offset + record["nbytes"], apart)}
        for end in sorted(ends):
            if 0 <= end < size:
                self._check_cut(sample.data[:end], records, events)

    def _check_cut(
        self,
        data: bytes,
        records: Sequence[Mapping[str, Any]],
        events: Sequence[tuple[int, int]],
    ) -> None:
        """Check what is read of a file that is cut short: its records, and a finding of the loss.

        ``records`` and ``events`` are those of the whole file, as JSON and as begin and end.
        """
        what = f"cut short at {len(data)}"
        records_before = [
            record for record in records if record["offset"] + record["nbytes"] <= len(data)
        ]
        records_of_cut: list[dict[str, Any]] = []
        events_of_cut: list[tuple[int, int]] = []
        says_loss = True  # as an error does, too
        # Only a file without any whole record may be refused.
        tolerated = () if records_before else (FxError,)
        with tolerating(*tolerated), self._open(data) as capture:
            records_of_cut = shown_of(capture)
            check_tables(capture, len(data))
            says_loss = bool(findings_of(capture, Severity.DATA_LOSS))
            events_of_cut = _event_places(capture, records_of_cut)
        same_records = records_of_cut[: len(records_before)]
        check_same(same_records, records_before, f"{what}: the whole records before it")
        begins_of_cut = {begin for begin, _ in events_of_cut}
        for begin, end in events:
            # White space alone is not the beginning of an event.
            is_cut = begin < len(data) < end and bool(data[begin:].strip())
            is_accounted_for = begin in begins_of_cut or says_loss
            assert not is_cut or is_accounted_for, (
                f"{what}: an event that began at {begin} is lost, and no finding of DATA_LOSS "
                "says so"
            )

    def test_bit_flips_are_survived(self) -> None:
        """Samples with flipped bits hold together, and time is bounded."""
        self._try_flipped(self._hold_together)

    def test_any_bytes_are_survived(self) -> None:
        """Any bytes give a result or a coded error."""
        self._try(byte_strings(self._small_data), tolerating(FxError)(self._hold_together))

    def _hold_together(self, data: bytes) -> None:
        """Check what holds for any bytes that can be read, and that reading them takes no time."""
        start = time.process_time()
        with self._open(data) as capture:
            records = list(capture.records())
            check_cover([(record.offset, record.nbytes) for record in records], data)
            check_damage_codes(records, self.rules)
            check_tables(capture, len(data))
            capture.summary()
            capture.scan()
            check_findings(capture, self.rules)
        seconds_spent = time.process_time() - start
        assert seconds_spent < self.seconds, f"time: {len(data)} bytes took {seconds_spent:.1f} s"

    def test_memory_follows_the_input(self) -> None:
        """Memory for a damaged file is bounded by its size, whatever sizes it declares."""
        base, per_byte = self.memory

        def check(data: bytes) -> None:
            def read() -> None:
                with self._open(data) as capture:
                    read_all(capture)

            peak = peak_of(read)
            most_memory = base + per_byte * len(data)
            assert peak <= most_memory, (
                f"memory: {len(data)} damaged bytes took {peak:,} bytes of memory"
            )

        self._try_flipped(check)

    def test_empty_input_is_a_finding_or_an_error(self) -> None:
        """An empty input has no records, and has a finding or gives a coded error."""
        with tolerating(FxError), self._open(b"") as capture:
            assert list(capture.records()) == [], "an empty input has records"
            for name in capture.schemas:
                assert len(capture.table(name)) == 0, f"an empty input has rows of {name}"
            capture.scan()
            assert capture.diagnostics.worst is not None, "an empty input has no finding"

    # --- Sources ---------------------------------------------------------------------------

    def test_paths_and_gzip_give_the_same(self, tmp_path: Path) -> None:
        """A file, a compressed file and bytes in memory give the same records."""
        for sample, capture_of_bytes in self._opened(self._small()):
            for suffix, data in (("", sample.data), (".gz", gzip.compress(sample.data))):
                path = tmp_path / f"{sample.name}{suffix}"
                path.write_bytes(data)
                with without_plugins().read(Source.open(path), self.reader) as capture:
                    what = f"{path.name}, a file, reads differently from its bytes in memory"
                    check_same(shown_of(capture), shown_of(capture_of_bytes), what)

    def test_close_may_be_called_again(self) -> None:
        """A capture can be closed twice, even if it was never read; its columns remain valid."""
        for sample in self._small():
            capture = self._open(sample.data)
            capture.close()
            capture.close()
            with self._open(sample.data) as capture:
                tables = [capture.table(name) for name in capture.tables]
                rows_before = [rows_of(table) for table in tables]
            what = f"tables of {sample.name} once the capture is closed"
            check_same([rows_of(table) for table in tables], rows_before, what)


def _event_places(capture: Capture, records: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """Return begin and end of those records (JSON) that have rows with times."""
    begins = {
        offset for table in event_tables(capture) for offset in table.array("offset").tolist()
    }
    extents = []
    for record in records:
        offset = record["offset"]
        if offset in begins:
            extents.append((offset, offset + record["nbytes"]))
    return extents
