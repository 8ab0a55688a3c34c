"""Requests: contract that readers honour limits, strictness, observers and names."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from fxframework.errors import FxError
from fxframework.host import Host
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.kit.salvage import UNSOUND
from fxframework.model.capture import Capture, OpenRequest, kind_of
from fxframework.model.diagnostics import Diagnostic
from fxframework.registry import HEAD, Probe, parse_options
from fxframework.testing.contracts.checks import check_same, shown_of, skip, some
from fxframework.testing.contracts.choosing import events_from
from fxframework.testing.contracts.expectation import Sample
from fxframework.testing.contracts.repetition import Repetition
from fxframework.testing.contracts.watching import watched

DAMAGES = 60
"""Damaged samples to search for one with several findings of a code."""
MAKE_DIAGNOSTICS = "make diagnostics with request.diagnostics(rules, source)"
"""The remedy for findings that are not made as requested."""
RECORD = 8
"""Records of up to this many bytes are not tested: no sensible limit is smaller."""


class Requests(Repetition):
    """Contract of a reader's handling of the OpenRequest."""

    bounded_records: ClassVar[bool] = False
    """Whether the format bounds records to a few kilobytes, so that max_record is not tested."""

    def _damages(self) -> Iterator[bytes]:
        """Yield small samples that are truncated or have changed bytes."""
        chance = random.Random(1)  # noqa: S311 (reproducible)
        small_files = self._small_data
        for number in range(DAMAGES):
            data = bytearray(chance.choice(small_files))
            if number % 3 == 0:
                yield bytes(data[: chance.randrange(len(data))])
                continue
            for _ in range(1 + len(data) // 24):
                place = chance.randrange(len(data))
                data[place] ^= chance.choice((0xFF, 0x80, 0x01, 0x40))
            yield bytes(data)

    def _own(self, capture: Capture) -> dict[str, int]:
        """Read a capture; return the counts of its findings with codes of the format."""
        capture.scan()
        counts = capture.diagnostics.counts
        return {code: count for code, count in counts.items() if code in self.rules}

    def _with_findings(self) -> Iterator[tuple[bytes, dict[str, int]]]:
        """Yield samples and damaged samples with findings of the format, and the counts."""
        for data in (*self._small_data, *self._damages()):
            with contextlib.suppress(FxError):
                with self._open(data) as capture:
                    counts = self._own(capture)
                if counts:
                    yield data, counts

    def test_findings_are_made_as_requested(self) -> None:
        """At most ``max_findings`` findings of a code are kept, and all are counted.

        ``request.observer`` is called for each.
        """
        reason = "no small sample, damaged or not, has a finding"
        data, counts = max(
            some(self._with_findings(), reason),
            key=lambda data_and_counts: max(data_and_counts[1].values()),
        )
        observed: list[Diagnostic] = []
        options = parse_options({}, self.reader.options, whose=f"reader {self.format}")
        request = OpenRequest(
            limits=Limits(max_findings=1),
            observer=observed.append,
            options=options,
            host=Host(discover=False),
        )
        with self.reader.open(Source.open(data), request) as capture:
            counts_with_limit = self._own(capture)
        listed_counts = Counter(finding.code for finding in capture.diagnostics)
        too_many = {code: count for code, count in listed_counts.items() if count > 1}
        assert not too_many, f"max_findings=1 is ignored: {too_many} are kept; {MAKE_DIAGNOSTICS}"
        assert counts_with_limit == counts, (
            f"max_findings=1 changes the counts: {counts_with_limit} in place of {counts}"
        )
        observed_codes = {finding.code for finding in observed}
        unobserved = sorted(counts.keys() - observed_codes)
        codes = ", ".join(unobserved)
        assert not unobserved, f"the observer is not called for {codes}: {MAKE_DIAGNOSTICS}"

    def test_max_record_is_honoured(self) -> None:
        """A record longer than ``max_record`` is reported, or kept as another kind.

        Tested with kinds whose records differ in size; the size of others is fixed by the format.
        """
        if self.bounded_records:
            skip(f"a record of {self.format} has a few kilobytes at most")
        reason = "no sound sample has records of one kind and different sizes"
        for sample, kind, nbytes, offset in some(self._longest(), reason):
            fault = (
                f"max_record={nbytes - 1} is ignored: {sample.name} has a record {kind!r} of "
                f"{nbytes} bytes at {offset}, which is neither reported nor kept as damaged"
            )
            try:
                with self._open(sample.data, options={"max_record": nbytes - 1}) as capture:
                    capture.scan()
                    is_kept = any(
                        (record.offset, record.nbytes, kind_of(record)) == (offset, nbytes, kind)
                        for record in capture.records()
                    )
            except FxError:
                return
            if capture.diagnostics.worst is not None or not is_kept:
                return
        raise AssertionError(fault)

    def _longest(self) -> Iterator[tuple[Sample, str, int, int]]:
        """Yield kind, size and offset of the longest records of kinds with different sizes."""
        for sample, capture in self._opened(self._small_sound()):
            sizes: dict[str, list[tuple[int, int]]] = {}
            for record in capture.records():
                sizes.setdefault(kind_of(record), []).append((record.nbytes, record.offset))
            for kind, sizes_and_offsets in sizes.items():
                smallest, _ = min(sizes_and_offsets)
                largest, offset = max(sizes_and_offsets)
                if kind not in UNSOUND and largest > max(smallest, RECORD):
                    yield sample, kind, largest, offset

    def _small_sound(self) -> Iterator[Sample]:
        return (sample for sample in self._small() if sample.sound)

    # --- Following ---------------------------------------------------------------------------

    def test_resume_stops_behind_the_last_whole_record(self) -> None:
        """``resume()`` returns where to continue, so that the rest reads as in the whole file."""
        reason = f"{self.format} captures cannot be followed: resume() gives None"
        for sample, cut, resumed in some(self._resumed(), reason):
            where = f"resume() of {sample.name} cut at {cut}"
            assert resumed is not None, f"{where} gives None, of the whole file an offset"
            stop, resume_bytes = resumed
            with self._open(sample.data) as capture:
                ends = [record.offset + record.nbytes for record in capture.records()]
                last_end = max((end for end in ends if end <= cut), default=0)
                assert stop == last_end, (
                    f"{where} stops at {stop}; the last whole record ends at {last_end}"
                )
                if stop == len(sample.data):
                    continue
                expected = _from(capture, stop)
            with self._open(resume_bytes + sample.data[stop:]) as resumed_capture:
                contents = _from(resumed_capture, len(resume_bytes))
            for name, rows in contents.items():
                what = f"{where}: behind the bytes that must precede, rows of {name} differ"
                check_same(rows, expected[name], what)

    def _resumed(self) -> Iterator[tuple[Sample, int, tuple[int, bytes] | None]]:
        """Yield sound samples, where they are cut short, and where reading would continue."""
        for sample, capture in self._opened(self._small_sound()):
            if capture.resume() is None:
                continue
            ends = [record.offset + record.nbytes for record in capture.records()]
            # Near the ends of records: cut short by a byte, whole, and with some of the next one.
            cuts = {end + step for end in ends[:6] + ends[-3:] for step in (-1, 0, 1, 5)}
            for cut in sorted(cuts):
                if 0 < cut <= len(sample.data):
                    with contextlib.suppress(FxError), self._open(sample.data[:cut]) as shorter:
                        yield sample, cut, shorter.resume()

    # --- Side effects ------------------------------------------------------------------------

    def test_reading_has_no_side_effects(self, tmp_path: Path) -> None:
        """The sniffer opens no file, not the one that it is asked about either, and no process.

        Sniffing and reading print nothing and write no file.
        """
        for sample in self._small():
            path = tmp_path / sample.name
            path.write_bytes(sample.data)
            probe = Probe(head=sample.data[:HEAD], size=len(sample.data), name=str(path))
            with watched(streams=True) as first_events:
                self.reader.sniff(probe)
                self._digest(sample.data)
            with watched() as sniffed:  # without imports, which open and write files
                self.reader.sniff(probe)
            assert not sniffed, (
                f"the sniffer of {self.format} does more than read the probe: {sniffed[0]}"
            )
            with watched() as later_events:
                self._digest(sample.data)
            side_effects = [event for event in first_events if event.startswith("prints")]
            side_effects += [event for event in later_events if event.startswith("writes")]
            assert not side_effects, f"the reader of {self.format} {side_effects[0]}"


def _from(capture: Capture, offset: int) -> dict[str, list[Any]]:
    """Return what follows an offset, apart from offsets: the records, and the rows with times."""
    contents: dict[str, list[Any]] = {
        name: events_from(capture, name, offset)
        for name in capture.schemas
        if "ts" in capture.table(name)
    }
    contents["records"] = [{**record, "offset": None} for record in shown_of(capture, offset)]
    return contents
