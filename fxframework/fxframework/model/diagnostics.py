"""Diagnostics: findings as data, with a stable code and a byte offset."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import overload

import attrs

from fxframework.errors import (
    FRAMEWORK_RULES,
    BadCallError,
    Rule,
    Severity,
    StrictError,
    did_you_mean,
)

__all__ = ["Diagnostic", "Diagnostics", "finding_message"]


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


SINGULAR = re.compile(r"\b1 ((?:zero )?(?:argument|byte|microsecond|slot|tick|word))s\b")
"""Plurals after the number 1, such as "1 words", which messages correct to the singular."""


def finding_message(rule: Rule, detail: str = "") -> str:
    """Return the message of a finding: the title of its rule, then the detail of this case."""
    detail = SINGULAR.sub(r"1 \1", detail)
    if not detail or detail.startswith(rule.title):
        return detail or rule.title
    return f"{rule.title}: {detail}"


class Diagnostics(Sequence[Diagnostic]):
    """The findings of one capture, in the order they were made.

    Memory is bounded: per code the first ``limit`` findings are kept and all are counted.
    ``strict`` raises StrictError at the first one of DATA_LOSS or worse.
    """

    def __init__(
        self,
        rules: Mapping[str, Rule],
        *,
        limit: int = 1000,
        strict: bool = False,
        path: str | None = None,
        observer: Callable[[Diagnostic], None] | None = None,
    ) -> None:
        self._rules = {**FRAMEWORK_RULES, **rules}
        self._kept: list[Diagnostic] = []
        self._counts: Counter[str] = Counter()
        self._severities: dict[str, Severity] = {}
        self._limit = limit or (1 << 62)
        self._strict = strict
        self._path = path
        self._observer = observer

    def add(
        self,
        code: str,
        detail: str = "",
        *,
        offset: int | None = None,
        record: int | None = None,
        severity: Severity | None = None,
        times: int = 1,
    ) -> None:
        """Report a finding with a ``code`` of the catalogue.

        The severity is the rule's unless given. The message consists of the rule's title and
        ``detail`` (``finding_message``). ``times`` counts that many findings, of which only this
        one is described. Raises BadCallError for a
        code that is not in the catalogue, and StrictError in strict mode for DATA_LOSS or worse.
        """
        rule = self._rules.get(code)
        if rule is None:
            raise BadCallError(
                f"the catalogue has no rule {code!r}{did_you_mean(code, self._rules)}",
                remedy="add the rule to the format's catalogue",
            )
        finding = Diagnostic(
            code,
            rule.severity if severity is None else severity,
            offset,
            record,
            finding_message(rule, detail),
        )
        self._counts[code] += times
        self._severities[code] = max(finding.severity, self._severities.get(code, finding.severity))
        if self._counts[code] - times < self._limit:
            self._kept.append(finding)
        if self._observer is not None:
            self._observer(finding)
        if self._strict and finding.severity >= Severity.DATA_LOSS:
            raise StrictError(
                finding.message,
                code=code,
                path=self._path,
                offset=offset,
                record=record,
                remedy="omit --strict to keep the sound records",
            )

    def has_any(self, codes: Iterable[str]) -> bool:
        """Whether any of these codes was reported, kept or not."""
        return not self._counts.keys().isdisjoint(codes)

    def forget(self, codes: Iterable[str]) -> None:
        """Remove the findings of these codes, before their records are read again."""
        gone = set(codes)
        self._kept = [finding for finding in self._kept if finding.code not in gone]
        for code in gone:
            self._counts.pop(code, None)
            self._severities.pop(code, None)

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each code was reported, kept or not."""
        return dict(self._counts)

    @property
    def worst(self) -> Severity | None:
        """The greatest severity reported, kept or not; None without findings."""
        return max(self._severities.values(), default=None)

    def rule(self, code: str) -> Rule:
        """Return the rule of a code."""
        return self._rules[code]

    def sorted(self) -> list[Diagnostic]:
        """Return the kept findings by offset; those about the whole file come first."""
        return sorted(self._kept, key=lambda found: -1 if found.offset is None else found.offset)

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._kept)

    @overload
    def __getitem__(self, index: int) -> Diagnostic: ...
    @overload
    def __getitem__(self, index: slice) -> list[Diagnostic]: ...
    def __getitem__(self, index: int | slice) -> Diagnostic | list[Diagnostic]:
        return self._kept[index]

    def __repr__(self) -> str:
        return f"Diagnostics({dict(self._counts)})"
