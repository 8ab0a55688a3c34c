"""Requests: contract that readers honour limits, strictness, observers and names."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from fxframework import hookimpl
from fxframework.errors import FxError, Severity, StrictError
from fxframework.host import Host
from fxframework.io.source import Source
from fxframework.kit.salvage import UNSOUND
from fxframework.model.capture import Capture
from fxframework.registry import HEAD, Probe
from fxframework.testing.contracts.base import RoundTrips, Sample
from fxframework.testing.contracts.checks import skip
from fxframework.testing.contracts.choosing import events_from
from fxframework.testing.contracts.watching import watched

__all__ = ["Requests"]

DAMAGES = 60
"""Damaged samples to search for one with several findings of a code."""
RECORD = 8
"""Records of up to this many bytes are not tested: no sensible limit is smaller."""


class Requests(RoundTrips):
    """Contract of a reader's handling of the OpenRequest."""

    bounded_records: ClassVar[bool] = False
    """Whether the format bounds records to a few kilobytes, so that max_record is not tested."""

    def _damages(self) -> Iterator[bytes]:
        """Yield small samples that are truncated or have changed bytes."""
        chance = random.Random(1)  # noqa: S311 (reproducible)
        small = [sample.data for sample in self._small()]
        for number in range(DAMAGES):
            data = bytearray(chance.choice(small))
            if number % 3 == 0:
                yield bytes(data[: chance.randrange(len(data))])
                continue
            for _ in range(1 + len(data) // 24):
                data[chance.randrange(len(data))] ^= chance.choice((0xFF, 0x80, 0x01, 0x40))
            yield bytes(data)

    def _own(self, capture: Capture) -> dict[str, int]:
        """Return the counts of findings with codes of the format."""
        return {c: n for c, n in capture.diagnostics.counts.items() if c in self.rules}

    def _with_findings(self) -> Iterator[tuple[bytes, dict[str, int]]]:
        """Yield samples and damaged samples with findings of the format, and the counts."""
        for data in (*(sample.data for sample in self._small()), *self._damages()):
            try:
                with self._open(data) as capture:
                    capture.scan()
                    counts = {
                        c: n for c, n in capture.diagnostics.counts.items() if c in self.rules
                    }
            except FxError:
                continue
            if counts:
                yield data, counts

    def test_max_findings_is_honoured(self) -> None:
        """At most ``max_findings`` findings of a code are kept, and all are counted."""
        if not self.rules:
            skip(f"the reader of {self.format} has no catalogue of findings")
        most = max(self._with_findings(), key=lambda one: max(one[1].values()), default=None)
        if most is None or max(most[1].values()) < 2:
            skip("no small sample, damaged or not, has two findings of one code")
        data, counts = most
        with self._open(data, options={"max_findings": 1}) as capture:
            capture.scan()
            kept = Counter(found.code for found in capture.diagnostics)
            found = self._own(capture)
        over = {code: n for code, n in kept.items() if n > 1}
        assert not over, (
            f"max_findings=1 is ignored: {over} are kept; make diagnostics with "
            "request.diagnostics(rules, source)"
        )
        assert found == counts, f"max_findings=1 changes the counts: {found} in place of {counts}"

    def test_max_record_is_honoured(self) -> None:
        """A record longer than ``max_record`` is reported, or kept as another kind.

        Tested with kinds whose records differ in size; the size of others is fixed by the format.
        """
        if self.bounded_records:
            skip(f"a record of {self.format} has a few kilobytes at most")
        ignored = []
        for sample in self._small():
            for kind, (nbytes, offset) in self._longest(sample).items():
                try:
                    with self._open(sample.data, options={"max_record": nbytes - 1}) as capture:
                        capture.scan()
                        now = {r.offset: (r.nbytes, _shown(r)) for r in capture.records()}
                        worst = capture.diagnostics.worst
                except FxError:
                    return
                if worst is not None or now.get(offset) != (nbytes, kind):
                    return
                ignored.append(
                    f"max_record={nbytes - 1} is ignored: {sample.name} has a record {kind!r} of "
                    f"{nbytes} bytes at {offset}, which is neither reported nor kept as damaged"
                )
        if not ignored:
            skip("no sound sample has records of one kind and different sizes")
        raise AssertionError(ignored[0])

    def _longest(self, sample: Sample) -> dict[str, tuple[int, int]]:
        """Return size and offset of the longest record of each kind with different sizes."""
        sizes: dict[str, list[tuple[int, int]]] = {}
        if sample.sound:
            with self._open(sample.data) as capture:
                for record in capture.records():
                    if (kind := _shown(record)) not in UNSOUND:
                        sizes.setdefault(kind, []).append((record.nbytes, record.offset))
        return {
            kind: max(found)
            for kind, found in sizes.items()
            if len({nbytes for nbytes, _ in found}) > 1 and max(found)[0] > RECORD
        }

    def test_observers_see_every_finding(self) -> None:
        """``request.observer`` is called once for each finding."""
        found = next(self._with_findings(), None)
        if found is None:
            skip("no small sample, damaged or not, has a finding")
        data, counts = found
        observer = _Observer()
        host = Host(discover=False)
        host.register(observer, name="observer")
        with host.read(Source.open(data), self.reader) as capture:
            capture.scan()
            made = self._own(capture)
        assert made == counts, f"observed, it has other findings: {made} in place of {counts}"
        missed = sorted(code for code in counts if not observer.seen[code])
        assert not missed, (
            f"the observer is not called for {', '.join(missed)}: make diagnostics with "
            "request.diagnostics(rules, source)"
        )

    def test_errors_name_the_input(self) -> None:
        """A StrictError has the path of the input and a catalogued code."""
        for data, _ in self._with_findings():
            with self._open(data) as capture:
                capture.scan()
                worst = capture.diagnostics.worst
            if worst is None or worst < Severity.DATA_LOSS:
                continue
            try:
                with self._open(data, strict=True, name="input.bin") as capture:
                    capture.scan()
            except StrictError as error:
                assert error.path == "input.bin", (
                    f"path: the error of a strict reading names {error.path!r}, not the input: "
                    "make diagnostics with request.diagnostics(rules, source)"
                )
                assert error.code in self.rules or error.code.startswith("FXF"), (
                    f"the error of a strict reading has the code {error.code}, of no catalogue"
                )
                return
            except FxError:
                continue
        skip("no small sample, damaged or not, loses data")

    # --- Following ---------------------------------------------------------------------------

    def test_resume_stops_behind_the_last_whole_record(self) -> None:
        """``resume()`` returns where to continue, so that the rest reads as in the whole file."""
        tried = 0
        for sample in self._small():
            if not sample.sound:
                continue
            with self._open(sample.data) as capture:
                if capture.resume() is None:
                    continue
                records = [(r.offset, r.offset + r.nbytes, _content(r)) for r in capture.records()]
            ends = [end for _, end, _ in records]
            for at in _cuts(ends, len(sample.data)):
                try:
                    with self._open(sample.data[:at]) as capture:
                        found = capture.resume()
                except FxError:
                    continue
                tried += 1
                self._check_resume(sample, at, found, records)
        if not tried:
            skip(f"{self.format} captures cannot be followed: resume() gives None")

    def _check_resume(
        self,
        sample: Sample,
        at: int,
        found: tuple[int, bytes] | None,
        records: list[tuple[int, int, dict[str, Any]]],
    ) -> None:
        where = f"{sample.name} cut at {at}"
        assert found is not None, f"resume() of {where} gives None, of the whole file an offset"
        stop, before = found
        whole = max((end for _, end, _ in records if end <= at), default=0)
        assert stop == whole, (
            f"resume() of {where} stops at {stop}; the last whole record ends at {whole}"
        )
        rest = sample.data[stop:]
        if not rest:
            return
        with self._open(before + rest) as capture:
            later = [_content(r) for r in capture.records() if r.offset >= len(before)]
            rows = {name: events_from(capture, name, len(before)) for name in _timed(capture)}
        with self._open(sample.data) as capture:
            for name, found_rows in rows.items():
                wanted_rows = events_from(capture, name, stop)
                assert found_rows == wanted_rows, (
                    f"resume() of {where}: behind the bytes that must precede, rows of {name} are "
                    f"{found_rows[:2]} in place of {wanted_rows[:2]}"
                )
        wanted = [record for offset, _, record in records if offset >= stop]
        assert later == wanted, (
            f"resume() of {where}: behind the bytes that must precede, the rest reads as "
            f"{len(later)} records, {_first_other(later, wanted)}"
        )

    # --- Side effects ------------------------------------------------------------------------

    def test_sniffing_opens_nothing(self, tmp_path: Path) -> None:
        """The sniffer opens no file, not the one that it is asked about either, and no process."""
        for sample in self._small():
            path = tmp_path / sample.name
            path.write_bytes(sample.data)
            probe = Probe(head=sample.data[:HEAD], size=len(sample.data), name=str(path))
            self.reader.sniff(probe)  # trigger imports before watching
            with watched() as events:
                self.reader.sniff(probe)
            assert not events, (
                f"the sniffer of {self.format} does more than read the probe: {events[0]}"
            )

    def test_sniffing_prints_nothing(self) -> None:
        """Sniffing and reading print nothing."""
        for sample in self._small()[:2]:
            with watched(streams=True) as events:
                self.reader.sniff(Probe(head=sample.data, size=len(sample.data), name=sample.name))
                with self._open(sample.data) as capture:
                    self._read_all(capture)
            printed = [event for event in events if event.startswith("prints")]
            assert not printed, f"the reader of {self.format} {printed[0]}"

    def test_reading_writes_no_file(self) -> None:
        """Reading writes no file."""
        sample = self._small()[0]
        with self._open(sample.data) as capture:
            self._read_all(capture)
        with watched() as events, self._open(sample.data) as capture:
            self._read_all(capture)
        wrote = [event for event in events if event.startswith("writes")]
        assert not wrote, f"the reader of {self.format} {wrote[0]}"

    def _read_all(self, capture: Capture) -> None:
        """Read every view of a capture."""
        for record in capture.records():
            record.to_json()
        for name in capture.tables:
            capture.table(name)
        capture.summary()


class _Observer:
    """A plugin that counts findings."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    @hookimpl
    def fx_diagnostic(self, diagnostic: Any) -> None:
        """Count a finding."""
        self.seen[diagnostic.code] += 1


def _timed(capture: Capture) -> list[str]:
    return [name for name in capture.schemas if "ts" in capture.table(name)]


def _shown(record: Any) -> str:
    return str(record.to_json()["record"])


def _content(record: Any) -> dict[str, Any]:
    """Return a record as JSON without its offset."""
    return {key: value for key, value in record.to_json().items() if key != "offset"}


def _cuts(ends: list[int], size: int) -> list[int]:
    """Return where to cut a sample: at and near the ends of records."""
    places = {end + step for end in ends[:6] + ends[-3:] for step in (-1, 0, 1, 5)}
    return sorted(place for place in places if 0 < place <= size)


def _first_other(found: list[Any], wanted: list[Any]) -> str:
    number = next(
        (n for n, (one, other) in enumerate(zip(found, wanted, strict=False)) if one != other),
        min(len(found), len(wanted)),
    )
    one = found[number] if number < len(found) else "nothing"
    other = wanted[number] if number < len(wanted) else "nothing"
    return f"record {number} being {one} in place of {other}"
