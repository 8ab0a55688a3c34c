"""Diagnostics: findings as data, with a stable code and a byte offset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

import attrs

from fxframework import rules
from fxframework.errors import BadCallError, Rule, Severity, StrictError, did_you_mean

__all__ = ["Diagnostic", "Diagnostics", "Found"]


@attrs.frozen
class Diagnostic:
    """One finding about one place of a capture."""

    code: str
    """The code of its rule."""
    severity: Severity
    """Its severity: that of the rule, unless the reader overrides it."""
    offset: int | None
    """Byte offset in the (unpacked) file; None if the finding is about the whole file."""
    record: int | None
    """Index of the record in file order; None if the finding is not about a record."""
    message: str
    """What is wrong at this place, in one line."""


class _Report(NamedTuple):
    """What a finding is made of when it is looked at: most never are, and messages take time."""

    rule: Rule
    severity: Severity
    offset: int | None
    record: int | None
    value: object
    values: Mapping[str, object]

    def diagnostic(self) -> Diagnostic:
        """Return the finding."""
        message = self.rule.message(self.value, **self.values)
        return Diagnostic(self.rule.code, self.severity, self.offset, self.record, message)


_NO_VALUES: Mapping[str, object] = {}


class Found(NamedTuple):
    """A finding about the record that a decoder is reading; ``report`` adds the record's index."""

    rule: Rule
    """The rule."""
    offset: int
    """Byte offset in the (unpacked) file."""
    value: object = None
    """What the message shows."""


@attrs.define
class _Readings:
    """The readings of the records since findings were forgotten."""

    brought: int = 0
    """How many findings they have brought."""
    ended: bool = False
    """Whether findings were forgotten since."""


class Diagnostics(Sequence[Diagnostic]):
    """The findings of one capture, in the order they were made.

    Memory is bounded: per code the first ``limit`` findings are kept and all are counted.
    ``strict`` raises StrictError at the first one of DATA_LOSS or worse.
    """

    reading_began = False
    """Whether anything of the capture was read yet, beside what opening it needs."""
    before_look: Callable[[], None] | None = None
    """Reads the capture; called before findings are looked at while nothing was read yet."""

    def __init__(
        self,
        catalogue: Mapping[str, Rule],
        *,
        limit: int = 1000,
        strict: bool = False,
        path: str | None = None,
        observer: Callable[[Diagnostic], None] | None = None,
    ) -> None:
        self._own_rules = catalogue
        self._rules = {**rules.RULES, **catalogue}
        self._reports: list[_Report] = []
        self._counts: Counter[str] = Counter()
        self._severities: dict[str, Severity] = {}
        self._limit = limit or (1 << 62)
        self._strict = strict
        self._path = path
        self._observer = observer
        self._readings = _Readings()

    def add(
        self,
        rule: Rule,
        offset: int | None = None,
        record: int | None = None,
        value: object = None,
        *,
        severity: Severity | None = None,
        times: int = 1,
        **values: object,
    ) -> None:
        """Report a finding by a rule of the catalogue, at a byte offset and a record.

        The message is ``rule.message(value, **values)``; the severity is the rule's unless given.
        ``times`` counts that many findings, of which only this one is described. Raises
        BadCallError for a rule that is not in the catalogue, and StrictError in strict mode for
        DATA_LOSS or worse.
        """
        code = getattr(rule, "code", None)
        if code not in self._rules:
            raise BadCallError(
                f"the catalogue has no rule {rule!r}{did_you_mean(str(code), self._rules)}",
                remedy="add the rule to the format's catalogue",
            )
        if severity is None:
            severity = rule.severity
        earlier = self._counts[code]
        self._counts[code] = earlier + times
        if severity > self._severities.get(code, -1):
            self._severities[code] = severity
        is_within_limit = earlier < self._limit
        if not is_within_limit and self._observer is None and not self._strict:
            return
        report = _Report(rule, severity, offset, record, value, values)
        if is_within_limit:
            self._reports.append(report)
        if self._observer is not None:
            self._observer(report.diagnostic())
        if self._strict and severity >= Severity.DATA_LOSS:
            raise StrictError(
                report.diagnostic().message,
                rule=rule,
                path=self._path,
                offset=offset,
                record=record,
                remedy="omit --strict to keep the sound records",
            )

    def add_each(self, found: Iterable[tuple[Rule, int | None, int | None, object]]) -> None:
        """Report many findings: rule, byte offset, record and value of each, as ``add`` does."""
        if self._strict or self._observer is not None:
            for rule, offset, record, value in found:
                self.add(rule, offset, record, value)
            return
        # As in ``add``, without its checks, which the first of a code goes through: a damaged file
        # may have millions of findings.
        counts = self._counts
        severities = self._severities
        for rule, offset, record, value in found:
            code = rule.code
            earlier = counts[code]
            if not earlier:
                self.add(rule, offset, record, value)
                continue
            counts[code] = earlier + 1
            severities[code] = max(severities[code], rule.severity)
            if earlier < self._limit:
                self._reports.append(
                    _Report(rule, rule.severity, offset, record, value, _NO_VALUES)
                )

    def report(self, found: Iterable[Found], record: int | None = None) -> None:
        """Report findings about the record of an index, if it is known."""
        for rule, offset, value in found:
            self.add(rule, offset, record, value)

    def begin(self) -> None:
        """Note that the capture is being read: to look at findings needs no reading any more."""
        self.reading_began = True
        self.before_look = None

    def _look(self) -> None:
        """Read the capture if nothing of it was read yet."""
        read_whole = self.before_look
        if read_whole is not None:
            self.begin()
            read_whole()

    def reported(self, code: str) -> bool:
        """Return whether a code was reported so far; nothing is read for it."""
        return code in self._counts

    def reading(self) -> Diagnostics | None:
        """Return what a reading of the records reports to, for ``add`` and ``report`` only.

        Readings find the same in the same order: what one has brought, others do not bring again.
        After ``forget``, those begun before bring nothing any more. None where a pass over the
        records has brought its findings here: readings have nothing to add.
        """
        self.begin()
        # Findings by the format's own rules that no reading brought are those of a pass.
        has_own_findings = not self._counts.keys().isdisjoint(self._own_rules)
        if has_own_findings and not self._readings.brought:
            return None
        return _Reading(self, self._readings)

    def forget(self, codes: Iterable[str]) -> None:
        """Remove the findings of these codes, before their records are read again."""
        self.begin()
        self._readings.ended = True
        self._readings = _Readings()
        codes = set(codes)
        self._reports = [report for report in self._reports if report.rule.code not in codes]
        for code in codes:
            self._counts.pop(code, None)
            self._severities.pop(code, None)

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each code was reported, kept or not."""
        self._look()
        return dict(self._counts)

    @property
    def worst(self) -> Severity | None:
        """The greatest severity reported, kept or not; None without findings."""
        self._look()
        return max(self._severities.values(), default=None)

    def severity(self, code: str) -> Severity:
        """Return the greatest severity reported with a code; that of its rule if none was."""
        self._look()
        return self._severities.get(code, self._rules[code].severity)

    def rule(self, code: str) -> Rule:
        """Return the rule of a code."""
        return self._rules[code]

    def sorted(self) -> list[Diagnostic]:
        """Return the kept findings by offset; those about the whole file come first."""
        return sorted(self, key=lambda finding: -1 if finding.offset is None else finding.offset)

    def __len__(self) -> int:
        self._look()
        return len(self._reports)

    def __iter__(self) -> Iterator[Diagnostic]:
        self._look()
        return (report.diagnostic() for report in self._reports)

    @overload
    def __getitem__(self, index: int) -> Diagnostic: ...
    @overload
    def __getitem__(self, index: slice) -> list[Diagnostic]: ...
    def __getitem__(self, index: int | slice) -> Diagnostic | list[Diagnostic]:
        self._look()
        if isinstance(index, slice):
            return [report.diagnostic() for report in self._reports[index]]
        return self._reports[index].diagnostic()

    def __repr__(self) -> str:
        counts = str(dict(self._counts))
        if self.before_look is not None:
            counts += ", nothing was read yet"
        return f"Diagnostics({counts})"


class _Reading(Diagnostics):
    """What one reading of the records reports to; see ``Diagnostics.reading``."""

    def __init__(self, diagnostics: Diagnostics, readings: _Readings) -> None:
        super().__init__({})
        self._diagnostics = diagnostics
        self._shared = readings
        self._added = 0

    def add(self, *arguments: Any, times: int = 1, **options: Any) -> None:
        """Report a finding, unless another reading has brought it."""
        self._added += times
        # All readings find the same: what this one has beyond the furthest is new.
        new = self._added - self._shared.brought
        if new > 0 and not self._shared.ended:
            self._shared.brought = self._added
            self._diagnostics.add(*arguments, times=min(times, new), **options)
