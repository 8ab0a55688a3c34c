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
        small = self._small_data
        for number in range(DAMAGES):
            data = bytearray(chance.choice(small))
            if number % 3 == 0:
                yield bytes(data[: chance.randrange(len(data))])
                continue
            for _ in range(1 + len(data) // 24):
                data[chance.randrange(len(data))] ^= chance.choice((0xFF, 0x80, 0x01, 0x40))
            yield bytes(data)

    def _own(self, capture: Capture) -> dict[str, int]:
        """Read a capture; return the counts of its findings with codes of the format."""
        capture.scan()
        return {c: n for c, n in capture.diagnostics.counts.items() if c in self.rules}

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
        found = some(self._with_findings(), "no small sample, damaged or not, has a finding")
        data, counts = max(found, key=lambda one: max(one[1].values()))
        seen: list[Diagnostic] = []
        options = parse_options({}, self.reader.options, whose=f"reader {self.format}")
        request = OpenRequest(
            limits=Limits(max_findings=1),
            observer=seen.append,
            options=options,
            host=Host(discover=False),
        )
        with self.reader.open(Source.open(data), request) as capture:
            made = self._own(capture)
        kept = Counter(one.code for one in capture.diagnostics)
        over = {code: n for code, n in kept.items() if n > 1}
        assert not over, f"max_findings=1 is ignored: {over} are kept; {MAKE_DIAGNOSTICS}"
        assert made == counts, f"max_findings=1 changes the counts: {made} in place of {counts}"
        missed = sorted(counts.keys() - {found.code for found in seen})
        assert not missed, f"the observer is not called for {', '.join(missed)}: {MAKE_DIAGNOSTICS}"

    def test_max_record_is_honoured(self) -> None:
        """A record longer than ``max_record`` is reported, or kept as another kind.

        Tested with kinds whose records differ in size; the size of others is fixed by the format.
        """
        if self.bounded_records:
            skip(f"a record of {self.format} has a few kilobytes at most")
        reason = "no sound sample has records of one kind and different sizes"
        for sample, kind, nbytes, offset in some(self._longest(), reason):
            ignored = (
                f"max_record={nbytes - 1} is ignored: {sample.name} has a record {kind!r} of "
                f"{nbytes} bytes at {offset}, which is neither reported nor kept as damaged"
            )
            try:
                with self._open(sample.data, options={"max_record": nbytes - 1}) as capture:
                    capture.scan()
                    now = {r.offset: (r.nbytes, kind_of(r)) for r in capture.records()}
            except FxError:
                return
            if capture.diagnostics.worst is not None or now.get(offset) != (nbytes, kind):
                return
        raise AssertionError(ignored)

    def _longest(self) -> Iterator[tuple[Sample, str, int, int]]:
        """Yield kind, size and offset of the longest records of kinds with different sizes."""
        for sample, capture in self._opened(each for each in self._small() if each.sound):
            sizes: dict[str, list[tuple[int, int]]] = {}
            for record in capture.records():
                sizes.setdefault(kind_of(record), []).append((record.nbytes, record.offset))
            for kind, found in sizes.items():
                if kind not in UNSOUND and max(found)[0] > max(min(found)[0], RECORD):
                    yield sample, kind, *max(found)

    # --- Following ---------------------------------------------------------------------------

    def test_resume_stops_behind_the_last_whole_record(self) -> None:
        """``resume()`` returns where to continue, so that the rest reads as in the whole file."""
        reason = f"{self.format} captures cannot be followed: resume() gives None"
        for sample, at, found in some(self._resumed(), reason):
            where = f"resume() of {sample.name} cut at {at}"
            assert found is not None, f"{where} gives None, of the whole file an offset"
            stop, before = found
            with self._open(sample.data) as whole:
                ends = [r.offset + r.nbytes for r in whole.records()]
                last = max((end for end in ends if end <= at), default=0)
                assert stop == last, (
                    f"{where} stops at {stop}; the last whole record ends at {last}"
                )
                if stop == len(sample.data):
                    continue
                wanted = _from(whole, stop)
            with self._open(before + sample.data[stop:]) as rest:
                there = _from(rest, len(before))
            for name, behind in there.items():
                what = f"{where}: behind the bytes that must precede, rows of {name} differ"
                check_same(behind, wanted[name], what)

    def _resumed(self) -> Iterator[tuple[Sample, int, tuple[int, bytes] | None]]:
        """Yield sound samples, where they are cut short, and where reading would continue."""
        for sample, capture in self._opened(each for each in self._small() if each.sound):
            if capture.resume() is None:
                continue
            ends = [record.offset + record.nbytes for record in capture.records()]
            near = {end + step for end in ends[:6] + ends[-3:] for step in (-1, 0, 1, 5)}
            for at in sorted(place for place in near if 0 < place <= len(sample.data)):
                with contextlib.suppress(FxError), self._open(sample.data[:at]) as cut:
                    yield sample, at, cut.resume()

    # --- Side effects ------------------------------------------------------------------------

    def test_reading_has_no_side_effects(self, tmp_path: Path) -> None:
        """The sniffer opens no file, not the one that it is asked about either, and no process.

        Sniffing and reading print nothing and write no file.
        """
        for sample in self._small():
            path = tmp_path / sample.name
            path.write_bytes(sample.data)
            probe = Probe(head=sample.data[:HEAD], size=len(sample.data), name=str(path))
            with watched(streams=True) as first:
                self.reader.sniff(probe)
                self._digest(sample.data)
            with watched() as sniffed:  # without imports, which open and write files
                self.reader.sniff(probe)
            assert not sniffed, (
                f"the sniffer of {self.format} does more than read the probe: {sniffed[0]}"
            )
            with watched() as again:
                self._digest(sample.data)
            found = [event for event in first if event.startswith("prints")]
            found += [event for event in again if event.startswith("writes")]
            assert not found, f"the reader of {self.format} {found[0]}"


def _from(capture: Capture, offset: int) -> dict[str, list[Any]]:
    """Return what follows an offset, apart from offsets: the records, and the rows with times."""
    found = {name: events_from(capture, name, offset) for name in capture.schemas
             if "ts" in capture.table(name)}  # fmt: skip
    return {**found, "records": [{**shown, "offset": None} for shown in shown_of(capture, offset)]}
